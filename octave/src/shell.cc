// One rank of `limosa shell --octave`: runs the pieces of code that the front sends (python/limosa/_group.py says what
// the two tell each other; here a message is the bytes of its fields with a zero byte between them, after their number
// in 4 bytes, the highest first).
//
// The main thread runs code in Octave's base workspace; a second thread reads what the front says, so that an interrupt
// and the end of the front are noticed at any time. An interrupt does what Octave's handler of SIGINT does, which also
// ends calls of MPI that wait. It is ignored while no piece runs.

#include "input.h"
#include "session.h"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <string>
#include <streambuf>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <octave/cmd-edit.h>
#include <octave/interpreter.h>
#include <octave/pager.h>
#include <octave/parse.h>
#include <octave/quit.h>

namespace
{
using Fields = std::vector<std::string>;

class Front
{
  public:
    explicit Front(const std::string &path) : m_socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path)
            limosa::fail("arg", "the name of the session's socket is too long: %s", path.c_str());
        path.copy(address.sun_path, path.size());
        if (connect(m_socket, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
            limosa::fail("other", "the session at %s cannot be reached", path.c_str());
    }

    void send(const Fields &fields)
    {
        std::string bytes(4, '\0');
        for (const std::string &field : fields)
            bytes += field + '\0';
        bytes.pop_back();
        const uint32_t length = htonl(static_cast<uint32_t>(bytes.size() - 4));
        bytes.replace(0, 4, reinterpret_cast<const char *>(&length), 4);
        for (std::size_t done = 0; done < bytes.size();) {
            const ssize_t n = ::send(m_socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
            if (n < 0 && errno != EINTR)
                _exit(1); // the front has gone, and nothing can be reported
            done += n > 0 ? n : 0;
        }
    }

    // The next task. Interrupts are not among them.
    Fields next()
    {
        std::unique_lock<std::mutex> lock(m_mutex);
        m_arrived.wait(lock, [&]() { return !m_tasks.empty(); });
        return first();
    }

    // Asks the user for a line. An interrupt, or the end of the user's lines, leaves the debugger.
    std::string line(bool is_debugger)
    {
        const std::string none = is_debugger ? "dbquit all\n" : "";
        fflush(nullptr);
        send({"input", is_debugger ? "debug" : "input"});
        std::unique_lock<std::mutex> lock(m_mutex);
        m_arrived.wait(lock, [&]() { return !m_tasks.empty() || octave_interrupt_state != 0; });
        if (m_tasks.empty()) {
            octave_interrupt_state = 0;
            octave_signal_caught = 0;
            return none;
        }
        const Fields answer = first();
        return answer[0] == "line" && answer.size() == 2 ? answer[1] + "\n" : none;
    }

    // From here on interrupts are dropped, up to the next task that runs code: from its arrival on they count.
    void rest()
    {
        const std::lock_guard<std::mutex> lock(m_mutex);
        m_busy = false;
        octave_interrupt_state = 0;
        octave_signal_caught = 0;
    }

    // Begins to read.
    void listen()
    {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the other threads
        std::thread([this]() { read_all(); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

  private:
    int m_socket;
    bool m_busy = false;
    std::mutex m_mutex;
    std::condition_variable m_arrived;
    std::deque<Fields> m_tasks;

    Fields first()
    {
        Fields task = m_tasks.front();
        m_tasks.pop_front();
        return task;
    }

    bool read_exactly(char *to, std::size_t bytes)
    {
        for (std::size_t done = 0; done < bytes;) {
            const ssize_t n = read(m_socket, to + done, bytes - done);
            if (n == 0 || (n < 0 && errno != EINTR))
                return false;
            done += n > 0 ? n : 0;
        }
        return true;
    }

    Fields receive()
    {
        uint32_t length = 0;
        if (!read_exactly(reinterpret_cast<char *>(&length), sizeof length))
            return {"gone"};
        std::string bytes(ntohl(length), '\0');
        if (!read_exactly(&bytes[0], bytes.size()))
            return {"gone"};
        Fields fields(1);
        for (const char each : bytes) {
            if (each == '\0')
                fields.emplace_back();
            else
                fields.back() += each;
        }
        return fields;
    }

    void read_all()
    {
        while (true) {
            const Fields fields = receive();
            const std::lock_guard<std::mutex> lock(m_mutex);
            if (fields[0] == "interrupt") {
                if (m_busy) {
                    octave_interrupt_state = 1;
                    octave_signal_caught = 1;
                    m_arrived.notify_one();
                }
                continue;
            }
            if (fields[0] == "gone" && m_busy)
                _exit(1); // the main thread may wait for ever
            m_busy = fields[0] == "run" || fields[0] == "line" || fields[0] == "no line";
            m_tasks.push_back(fields);
            m_arrived.notify_one();
            if (fields[0] == "end" || fields[0] == "gone")
                return;
        }
    }
};

// Takes the place of a standard stream: sends whole lines, and the rest at the end of a piece.
class Lines : public std::streambuf
{
  public:
    Lines(Front &front, const char *name, std::ostream &stream)
        : m_front(front), m_name(name), m_stream(stream), m_before((stream.flush(), stream.rdbuf(this)))
    {
    }
    ~Lines() override
    {
        m_stream.flush();
        m_stream.rdbuf(m_before);
        if (!m_text.empty())
            m_front.send({"text", m_name, m_text});
    }
    Lines(const Lines &) = delete;
    Lines &operator=(const Lines &) = delete;

  protected:
    int_type overflow(int_type one) override
    {
        const char each = traits_type::to_char_type(one);
        if (!traits_type::eq_int_type(one, traits_type::eof()))
            xsputn(&each, 1);
        return traits_type::not_eof(one);
    }
    std::streamsize xsputn(const char *text, std::streamsize n) override
    {
        m_text.append(text, n);
        const std::size_t end = m_text.rfind('\n');
        if (end != std::string::npos) {
            m_front.send({"text", m_name, m_text.substr(0, end + 1)});
            m_text.erase(0, end + 1);
        }
        return n;
    }

  private:
    Front &m_front;
    const char *m_name;
    std::ostream &m_stream;
    std::streambuf *m_before;
    std::string m_text;
};

// An error as Octave's prompt shows it, with the frames of the user's code only.
std::string told(const octave::execution_exception &error)
{
    const char *session = getenv("OCTAVE_LIMOSA_SCRIPT");
    std::string text = "error: " + error.message();
    text.erase(text.find_last_not_of('\n') + 1);
    std::string stack;
    for (const octave::frame_info &frame : error.stack_info()) {
        if (session && frame.file_name() == session)
            break;
        stack += "\n    " + frame.fcn_name() + (frame.line() > 0 ? " at line " + std::to_string(frame.line()) : "");
    }
    return stack.empty() ? text : text + "\nerror: called from" + stack;
}

// Runs a piece; gives the kind and the text of the answer.
Fields run(Front &front, octave::interpreter &interpreter, const std::string &code)
{
    Fields answer = {"value", ""};
    {
        const Lines out(front, "out", octave_stdout), err(front, "err", std::cerr);
        try {
            interpreter.evalin("base", code, 0);
        } catch (const octave::execution_exception &error) {
            answer = {"error", told(error)};
        } catch (const octave::exit_exception &leaving) {
            answer = {"exit", std::to_string(leaving.exit_status())};
        } catch (const octave::interrupt_exception &) {
            answer = {"error", "error: interrupted"};
        } catch (const std::bad_alloc &) {
            answer = {"error", "error: out of memory or dimension too large for Octave's index type"};
        } catch (const std::exception &error) {
            answer = {"error", error.what()};
        } catch (...) { // the user has left the debugger by `dbquit`
            answer = {"error", "error: interrupted"};
        }
        if (answer[0] == "error")
            interpreter.recover_from_exception();
    }
    fflush(nullptr); // what C code has printed
    return answer;
}

std::string completions(const std::string &text)
{
    const octave_value_list found = octave::feval("completion_matches", ovl(text), 1);
    const string_vector names = found.length() > 0 ? found(0).string_vector_value() : string_vector();
    std::string all;
    for (octave_idx_type i = 0; i < names.numel(); i++) {
        const std::string name = names[i];
        const std::string trimmed = name.substr(0, name.find_last_not_of(" \t") + 1);
        if (!trimmed.empty())
            all += (all.empty() ? "" : "\n") + trimmed;
    }
    return all;
}
} // namespace

DEFUN_DLD(__limosa_serve__, args, , "Be a rank of the session whose front listens at a socket, up to its end.")
{
    octave::interpreter &interpreter = *octave::interpreter::the_interpreter();
    limosa::start();
    int rank = 0, size = 0, length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    limosa::check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    limosa::check(MPI_Comm_size(MPI_COMM_WORLD, &size));
    limosa::check(MPI_Get_library_version(version, &length));
    limosa::renew_world(0);
    static Front front(args(0).string_value()); // the thread uses it as long as the process lives
    front.rest();
    front.listen();
    limosa::set_line_source([](bool is_debugger) { return front.line(is_debugger); });
    if (FILE *unseen = fopen("/dev/null", "w"))
        octave::command_editor::set_output_stream(unseen); // the front shows prompts
    const std::string name(version);
    front.send({"hello", std::to_string(rank), std::to_string(size),
                name.substr(0, name.find_first_of("\n,")) + ", Octave " OCTAVE_VERSION});
    while (true) {
        const Fields task = front.next();
        if (task[0] == "end" || task[0] == "gone")
            break;
        Fields answer = {"value", ""};
        if (task[0] == "run" && task.size() == 5) {
            limosa::renew_world(std::stoi(task[4]));
            answer = run(front, interpreter, task[2]);
        } else if (task[0] == "complete" && task.size() == 3)
            answer[1] = completions(task[2]);
        front.rest();
        front.send({"done", task[1], answer[0], answer[1]});
    }
    return octave_value_list();
}
