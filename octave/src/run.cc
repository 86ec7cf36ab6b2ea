// What `limosa run script.m` needs of the interpreter: see ../run/start.m.

#include "input.h"
#include "session.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <sstream>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <octave/interpreter.h>
#include <octave/load-path.h>
#include <octave/ov-usr-fcn.h>
#include <octave/parse.h>
#include <octave/pt-cmd.h>
#include <octave/pt-stmt.h>
#include <octave/symtab.h>

namespace
{
// How long one that has printed waits for the launcher to read; and as in `limosa._uncaught`, which does the same for
// Python: how long a rank that prints nothing waits for the end of the first one and then for its own, and one that
// fails because another has died for the launcher to say so.
constexpr unsigned handlers_s = 3; // how long the program's exit handlers may take
constexpr unsigned to_read_us = 200000, to_show_us = 10000000, to_abort_us = 1000000, of_launcher_us = 10000000;

// Takes (`bind`) or asks for (`connect`) the name of the first rank of the job to show an error, which the kernel keeps
// for as long as that rank lives, so nothing is left behind. True if that succeeds, or if it cannot be tried.
template <typename F> bool name_of_the_first(F call)
{
    const char *job = getenv("LIMOSA_JOB_ID");
    if (!job)
        return true;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "limosa-uncaught-%s", job);
    const int word = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const socklen_t bytes = offsetof(sockaddr_un, sun_path) + 1 + length;
    return word < 0 || call(word, reinterpret_cast<const sockaddr *>(&address), bytes) == 0;
}

// Has the name outlive this process: else a rank that fails after this one has ended, and before the launcher has ended
// it, would take it. What keeps it is a child, which the launcher ends with the job.
void keep_the_name()
{
    if (fork() != 0)
        return;
    signal(SIGTERM, SIG_DFL);
    for (int stream = 0; stream < 3; stream++)
        close(stream);
    sleep(to_show_us / 1000000);
    _exit(0);
}

// Waits until the first rank has ended.
void wait_for_the_first()
{
    const auto asks = [](int word, const sockaddr *address, socklen_t bytes) {
        const int refused = connect(word, address, bytes);
        close(word);
        return refused;
    };
    constexpr unsigned pause_us = 20000;
    for (unsigned waited = 0; waited < to_show_us && name_of_the_first(asks); waited += pause_us)
        usleep(pause_us);
    usleep(to_abort_us);
}
// A line of standard input. The debugger, which would ask for ever at the end of it, is told to report that.
std::string line_of_stdin(bool is_debugger)
{
    char *line = nullptr;
    std::size_t room = 0;
    const ssize_t length = getline(&line, &room, stdin);
    const std::string text(length > 0 ? line : "", length > 0 ? length : 0);
    free(line);
    return text.empty() && is_debugger ? "__limosa_no_input__ ();\n" : text;
}

// What Octave does with the file PKG_ADD of a module's folder (see Makefile): makes the functions of the module known.
// Octave would scan all folders before it runs such a file.
void autoload_functions(const std::string &folder)
{
    octave::interpreter &interpreter = *octave::interpreter::the_interpreter();
    const std::string module = folder + folder.substr(folder.rfind('/')) + ".oct";
    std::ifstream lines(folder + "/PKG_ADD");
    for (std::string line; std::getline(lines, line);) {
        const std::size_t begin = line.find('"') + 1, end = line.find('"', begin);
        if (line.compare(0, 8, "autoload") == 0 && end != std::string::npos)
            interpreter.feval("autoload", ovl(line.substr(begin, end - begin), module), 0);
    }
}

bool is_first = true; // of the ranks that fail
std::atomic<bool> is_leaving{false};

// The last act of a rank that has failed, after its exit handlers. A rank that is not the first waits until that one
// has ended: if it ended before, the launcher would end that one in the middle of its text.
void leave()
{
    is_leaving = true;
    fflush(nullptr);
    if (!is_first)
        wait_for_the_first();
    _exit(1);
}
} // namespace

DEFUN_DLD(__limosa_begin__, , , "Prepare Octave for a rank of a job: what it starts does not load default_signals.c.")
{
    const char *before = getenv("OCTAVE_LIMOSA_PRELOAD");
    if (before && *before)
        setenv("LD_PRELOAD", before, 1);
    else
        unsetenv("LD_PRELOAD");
    return octave_value_list();
}

DEFUN_DLD(__limosa_add_folders__, , ,
          "Add the folders of this package to the path, and that of the script to its end: what `addpath` does, but it "
          "would scan all folders each time.")
{
    octave::load_path &path = octave::interpreter::the_interpreter()->get_load_path();
    std::istringstream list(getenv("OCTAVE_LIMOSA_PATH"));
    std::list<std::string> folders; // the one that is found first is added last
    for (std::string folder; std::getline(list, folder, ':');)
        folders.push_front(folder);
    const auto hook = path.get_add_hook();
    path.set_add_hook(autoload_functions);
    for (const std::string &folder : folders)
        path.prepend(folder, true);
    path.set_add_hook(hook);
    const std::string script = getenv("OCTAVE_LIMOSA_SCRIPT");
    path.append(script.substr(0, script.rfind('/')), true);
    return octave_value_list();
}

DEFUN_DLD(__limosa_watch_input__, , , "Have the debugger end if there is no input for it.")
{
    limosa::set_line_source(line_of_stdin);
    return octave_value_list();
}

DEFUN_DLD(__limosa_source__, args, ,
          "Run a script file, with its functions defined from the start; a file of functions runs the first one.")
{
    octave::interpreter &interpreter = *octave::interpreter::the_interpreter();
    const std::string file = args(0).string_value();
    octave_value code;
    try {
        code = octave::parse_fcn_file(interpreter, file, file, "", "", "", true, true, false, false);
    } catch (const octave::execution_exception &problem) {
        // Only in a file of functions may functions be nested.
        if (problem.message().find("nested functions not implemented") == std::string::npos)
            throw;
        interpreter.recover_from_exception();
        const std::string name = file.substr(file.rfind('/') + 1, file.rfind('.') - file.rfind('/') - 1);
        code = octave::parse_fcn_file(interpreter, file, name, "", "", "", true, false, false, false);
        octave::feval(code, octave_value_list(), 0);
        return octave_value_list();
    }
    octave_user_script *script = code.is_defined() ? code.user_script_value() : nullptr;
    if (!script || !script->body())
        return octave_value_list();
    std::string first;
    bool has_commands = false;
    for (octave::tree_statement *statement : *script->body()) {
        auto *definition = dynamic_cast<octave::tree_function_def *>(statement->command());
        // The end of the file is a statement, too.
        has_commands |= !definition && !statement->is_end_of_fcn_or_script();
        octave_value function = definition ? definition->function() : octave_value();
        if (octave_function *named = function.is_defined() ? function.function_value(true) : nullptr) {
            interpreter.get_symbol_table().install_cmdline_function(named->name(), function);
            if (first.empty())
                first = named->name();
        }
    }
    if (has_commands || first.empty())
        script->call(interpreter.get_evaluator(), 0);
    else
        octave::feval(first, octave_value_list(), 0);
    return octave_value_list();
}

DEFUN_DLD(__limosa_leave__, args, ,
          "Print the text of an error, unless another rank has, and have `quit` end this process soon, without MPI: "
          "(TEXT, OF_DEATH), where OF_DEATH says whether another rank has died, which the launcher knows more about.")
{
    const std::string text = args(0).string_value();
    octave::interpreter &interpreter = *octave::interpreter::the_interpreter();
    octave_stdout.flush();
    fflush(nullptr);
    if (args(1).bool_value())
        usleep(of_launcher_us);
    is_first = name_of_the_first(bind);
    if (is_first) {
        if (fwrite(text.data(), 1, text.size(), stderr) == text.size())
            fflush(stderr);
        if (getenv("LIMOSA_RANK"))
            keep_the_name();
        else
            usleep(to_read_us);
    }
    // The other ranks may wait for this one in calls that it will never make: it does not finalise MPI.
    for (const char *ours : {"__limosa_finish__", "__matmpi_exit__"})
        interpreter.remove_atexit_fcn(ours);
    std::atexit(leave);
    std::thread([] {
        sleep(handlers_s);
        if (!is_leaving)
            _exit(1);
    }).detach();
    return octave_value_list();
}
