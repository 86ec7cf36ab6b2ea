// How an Octave process uses MPI: see session.h.

#include "session.h"

#include <cstdarg>
#include <cmath>
#include <exception>
#include <cstdlib>
#include <cstring>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <octave/call-stack.h>
#include <octave/interpreter.h>
#include <octave/pt-eval.h>
#include <octave/quit.h>

// Limosa's own; other libraries have no such function.
extern "C" int limosa_set_interrupt_hook(int (*hook)(void)) __attribute__((weak));

namespace limosa
{
namespace
{
bool is_started = false;
bool is_ours = false;           // we have initialised MPI
bool asks = false;              // the library asks for interrupts while it waits
std::exception_ptr interrupted; // what the interpreter wants to throw
MPI_Comm all_ranks = MPI_COMM_WORLD;
bool is_whole = false; // an interrupt has to wait: see `Whole`

// Messages up to this length are sent from one buffer, longer ones from where the value lies.
constexpr std::size_t joined_bytes = 2048;

struct Name {
    int cls;
    const char *name;
};

const Name names[] = {
    {MPI_ERR_BUFFER, "buffer"},
    {MPI_ERR_COUNT, "count"},
    {MPI_ERR_TYPE, "type"},
    {MPI_ERR_TAG, "tag"},
    {MPI_ERR_COMM, "comm"},
    {MPI_ERR_RANK, "rank"},
    {MPI_ERR_REQUEST, "request"},
    {MPI_ERR_ROOT, "root"},
    {MPI_ERR_GROUP, "group"},
    {MPI_ERR_OP, "op"},
    {MPI_ERR_TOPOLOGY, "topology"},
    {MPI_ERR_DIMS, "dims"},
    {MPI_ERR_ARG, "arg"},
    {MPI_ERR_UNKNOWN, "unknown"},
    {MPI_ERR_TRUNCATE, "truncate"},
    {MPI_ERR_OTHER, "other"},
    {MPI_ERR_INTERN, "intern"},
    {MPI_ERR_PENDING, "pending"},
    {MPI_ERR_IN_STATUS, "in_status"},
    {MPI_ERR_ACCESS, "access"},
    {MPI_ERR_AMODE, "amode"},
    {MPI_ERR_ASSERT, "assert"},
    {MPI_ERR_BAD_FILE, "bad_file"},
    {MPI_ERR_BASE, "base"},
    {MPI_ERR_CONVERSION, "conversion"},
    {MPI_ERR_DISP, "disp"},
    {MPI_ERR_DUP_DATAREP, "dup_datarep"},
    {MPI_ERR_FILE_EXISTS, "file_exists"},
    {MPI_ERR_FILE_IN_USE, "file_in_use"},
    {MPI_ERR_FILE, "file"},
    {MPI_ERR_INFO_KEY, "info_key"},
    {MPI_ERR_INFO_NOKEY, "info_nokey"},
    {MPI_ERR_INFO_VALUE, "info_value"},
    {MPI_ERR_INFO, "info"},
    {MPI_ERR_IO, "io"},
    {MPI_ERR_KEYVAL, "keyval"},
    {MPI_ERR_LOCKTYPE, "locktype"},
    {MPI_ERR_NAME, "name"},
    {MPI_ERR_NO_MEM, "no_mem"},
    {MPI_ERR_NOT_SAME, "not_same"},
    {MPI_ERR_NO_SPACE, "no_space"},
    {MPI_ERR_NO_SUCH_FILE, "no_such_file"},
    {MPI_ERR_PORT, "port"},
    {MPI_ERR_QUOTA, "quota"},
    {MPI_ERR_READ_ONLY, "read_only"},
    {MPI_ERR_RMA_CONFLICT, "rma_conflict"},
    {MPI_ERR_RMA_SYNC, "rma_sync"},
    {MPI_ERR_SERVICE, "service"},
    {MPI_ERR_SIZE, "size"},
    {MPI_ERR_SPAWN, "spawn"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "unsupported_datarep"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "unsupported_operation"},
    {MPI_ERR_WIN, "win"},
    {MPI_ERR_RMA_RANGE, "rma_range"},
    {MPI_ERR_RMA_ATTACH, "rma_attach"},
    {MPI_ERR_RMA_SHARED, "rma_shared"},
    {MPI_ERR_RMA_FLAVOR, "rma_flavor"},
    {MPI_ERR_SESSION, "session"},
    {MPI_ERR_PROC_ABORTED, "proc_aborted"},
    {MPI_ERR_VALUE_TOO_LARGE, "value_too_large"},
    {MPI_ERR_ERRHANDLER, "errhandler"},
};

// While there is one, interrupts wait: a message is received to its end.
struct Whole {
    Whole()
    {
        is_whole = true;
    }
    ~Whole()
    {
        is_whole = false;
    }
};

// Runs what the interpreter has to do after a signal.
bool is_interrupted()
{
    if (is_whole)
        return false;
    try {
        octave_quit();
        return false;
    } catch (...) {
        interrupted = std::current_exception();
        return true;
    }
}

// --- where the program waits
// ------------------------------------------------------------------------------------------

// A frame of our own package's m-files, whose folders `limosa run` names.
bool is_ours_file(const std::string &file)
{
    const char *folders = getenv("OCTAVE_LIMOSA_PATH");
    std::istringstream list(folders ? folders : "");
    for (std::string folder; std::getline(list, folder, ':');)
        if (!folder.empty() && file.compare(0, folder.size() + 1, folder + "/") == 0)
            return true;
    return false;
}

bool ends_with(const std::string &text, const std::string &end)
{
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The function of the program's that runs: a compiled one of ours, or the outermost of our m-files that has called it.
std::string function_of_the_program()
{
    octave::call_stack &stack = octave::interpreter::the_interpreter()->get_evaluator().get_call_stack();
    const octave_function *called = stack.current_function();
    std::string name = called && called->name().compare(0, 2, "__") != 0 ? called->name() : "";
    for (const octave::frame_info &frame : stack.backtrace_info()) {
        if (!is_ours_file(frame.file_name()))
            break;
        name = frame.fcn_name();
    }
    return name;
}

// Writes where the program is into a file in memory, in which the launcher finds it (limosa-cli/src/hang/stacks.rs):
// `FILE:LINE in FUNCTION`, and in a second line the function that has called us. Called when a wait has lasted a while.
void write_line()
{
    static const int file = memfd_create("limosa-line", MFD_CLOEXEC);
    octave::call_stack &stack = octave::interpreter::the_interpreter()->get_evaluator().get_call_stack();
    std::string text;
    for (const octave::frame_info &frame : stack.backtrace_info()) {
        if (frame.file_name().empty() || is_ours_file(frame.file_name()))
            continue;
        text = frame.file_name() + ":" + std::to_string(frame.line());
        // The name of a script or of a file's main function says nothing more.
        const std::string &name = frame.fcn_name();
        if (!name.empty() && name != frame.file_name() && !ends_with(frame.file_name(), "/" + name + ".m"))
            text += " in " + name;
        break;
    }
    const octave_function *called = stack.current_function();
    text += "\n" + (called ? called->name() : std::string()) + "\n";
    if (file >= 0 && pwrite(file, text.data(), text.size(), 0) == ssize_t(text.size()))
        (void)!ftruncate(file, text.size());
}

// What Limosa calls while a call of MPI waits, from a tenth of a second on: no exception may leave it.
int asked() noexcept
{
    try {
        write_line();
    } catch (...) {
        // The report of a hang will have no line.
    }
    return is_interrupted();
}

// Polls until `is_done`; first without a pause, then less and less often.
template <typename F> void poll(F is_done)
{
    for (int turn = 0; !is_done(); turn++) {
        if (is_interrupted())
            throw_interrupt();
        if (turn == 10100)
            write_line();
        if (turn < 1000)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(turn < 10000 ? 20 : 500));
    }
}
} // namespace

void throw_interrupt()
{
    if (interrupted)
        std::rethrow_exception(std::exchange(interrupted, nullptr));
}

void start()
{
    if (is_started)
        return;
    int initialized = 0, finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized)
        fail("finalized", "MPI has been finalised in this process: it cannot be used again; start a new Octave");
    MPI_Initialized(&initialized);
    if (!initialized) {
        int provided;
        check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
        is_ours = true;
        octave::interpreter::the_interpreter()->add_atexit_fcn("__limosa_finish__");
    }
    listen();
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    is_started = true;
}

namespace
{
// One of several ranks leaves no file with its variables if its job is ended.
void leave_no_workspace()
{
    int size = 1;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (size == 1)
        return;
    for (const char *each : {"sigterm", "sighup", "sigquit", "crash"})
        octave::interpreter::the_interpreter()->feval(std::string(each) + "_dumps_octave_core", ovl(false), 0);
}
} // namespace

void listen()
{
    if (limosa_set_interrupt_hook)
        asks = limosa_set_interrupt_hook(asked) == MPI_SUCCESS;
    leave_no_workspace();
    // Memory of values that are received again and again is used again: new memory costs more than the message.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
}

void renew_world(int epoch)
{
    static MPI_Comm base = MPI_COMM_NULL;
    static int now = 0;
    if (base == MPI_COMM_NULL)
        check(MPI_Comm_dup(MPI_COMM_WORLD, &base));
    for (; now < epoch; now++)
        check(MPI_Comm_dup(base, &all_ranks));
}

void finish()
{
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (is_ours && !finalized)
        MPI_Finalize();
    is_ours = false;
    is_started = false;
}

void check(int code)
{
    throw_interrupt();
    if (code == MPI_SUCCESS)
        return;
    int cls = MPI_ERR_UNKNOWN, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &cls);
    MPI_Error_string(code, text, &length);
    const char *id = "unknown";
    for (const Name &name : names)
        if (name.cls == cls)
            id = name.name;
    // The library's text begins with the name of its function: MPI_Send: ...
    const char *colon = std::strstr(text, ": ");
    const std::string function = function_of_the_program();
    if (std::strncmp(text, "MPI_", 4) == 0 && colon && !function.empty())
        fail(id, "%s%s", function.c_str(), colon);
    fail(id, "%s", text);
}

void fail(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_with_id((std::string("limosa:") + name).c_str(), "%s", text);
}

void wait(MPI_Request &request, MPI_Status *status)
{
    if (asks) {
        check(MPI_Wait(&request, status));
        return;
    }
    poll([&]() {
        int done = 0;
        check(MPI_Test(&request, &done, status));
        return done != 0;
    });
}

void peek(int source, int tag, MPI_Comm comm, MPI_Status &status)
{
    if (asks) {
        check(MPI_Probe(source, tag, comm, &status));
        return;
    }
    poll([&]() {
        int found = 0;
        check(MPI_Iprobe(source, tag, comm, &found, &status));
        return found != 0;
    });
}

void probe(int source, int tag, MPI_Comm comm, MPI_Message &message, MPI_Status &status)
{
    if (asks) {
        check(MPI_Mprobe(source, tag, comm, &message, &status));
        return;
    }
    poll([&]() {
        int found = 0;
        check(MPI_Improbe(source, tag, comm, &found, &message, &status));
        return found != 0;
    });
}

MPI_Comm comm_argument(const octave_value_list &arguments, int index)
{
    if (index >= arguments.length() || (arguments(index).isempty() && arguments(index).isnumeric()))
        return all_ranks;
    const octave_value &value = arguments(index);
    if (!value.isnumeric() || value.numel() != 1)
        fail("comm", "argument %d is no communicator; give one from limosa_split or limosa_dup, or [] for all ranks",
             index + 1);
    return MPI_Comm_fromint(value.int_value());
}

octave_value comm_value(MPI_Comm comm)
{
    return octave_value(octave_int32(MPI_Comm_toint(comm)));
}

int int_argument(const octave_value &value, const char *function, const char *argument)
{
    if ((value.isnumeric() || value.islogical()) && value.numel() == 1 && !value.iscomplex()) {
        const double number = value.double_value();
        if (number == std::floor(number) && std::abs(number) <= 2147483647.0)
            return static_cast<int>(number);
    }
    fail("arg", "%s: %s must be one whole number", function, argument);
}

MPI_Datatype datatype(Class cls, std::uint8_t flags)
{
    switch (cls) {
    case Class::double_: return flags & complex_flag ? MPI_C_DOUBLE_COMPLEX : MPI_DOUBLE;
    case Class::single_: return flags & complex_flag ? MPI_C_FLOAT_COMPLEX : MPI_FLOAT;
    case Class::int8_: return MPI_INT8_T;
    case Class::int16_: return MPI_INT16_T;
    case Class::int32_: return MPI_INT32_T;
    case Class::int64_: return MPI_INT64_T;
    case Class::uint8_: return MPI_UINT8_T;
    case Class::uint16_: return MPI_UINT16_T;
    case Class::uint32_: return MPI_UINT32_T;
    case Class::uint64_: return MPI_UINT64_T;
    case Class::logical_: return MPI_C_BOOL;
    case Class::char_: return MPI_CHAR;
    default: return MPI_BYTE;
    }
}

namespace
{
// What precedes a body that comes as a message of its own: the envelope, and the tag of the body.
constexpr std::size_t announcement_bytes = envelope_bytes + sizeof(int);

// How many of the largest tags are those of bodies.
constexpr int body_tags = 65536;

// What is under way and is not waited for. It is never destroyed: at the end of the process Octave has gone before.
std::list<std::pair<std::shared_ptr<const Message>, MPI_Request>> &left_alone()
{
    static auto &list = *new std::list<std::pair<std::shared_ptr<const Message>, MPI_Request>>;
    return list;
}

// Forgets of that what is complete.
void forget_complete()
{
    left_alone().remove_if([](auto &each) {
        int done = 0;
        return MPI_Test(&each.second, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
    });
}

int next_body_tag()
{
    static int count = 0;
    count = (count + 1) % body_tags;
    return largest_tag() + 1 + count;
}

bool is_short(const Message &message)
{
    return message.bytes() <= joined_bytes;
}

// So short a message waits for no receiver.
void send_short(const Message &message, int dest, int tag, MPI_Comm comm)
{
    char buffer[joined_bytes];
    message.copy_to(buffer);
    check(MPI_Send(buffer, static_cast<int>(message.bytes()), MPI_BYTE, dest, tag, comm));
}

// Sends the envelope of a message whose body follows, and gives the tag of the body.
int announce(const Message &message, int dest, int tag, MPI_Comm comm)
{
    if (tag > largest_tag())
        fail("tag", "the tag %d is too large: tags of values go up to %d", tag, largest_tag());
    char announcement[announcement_bytes];
    const int body_tag = next_body_tag();
    std::memcpy(announcement, message.envelope(), envelope_bytes);
    announcement[5] = static_cast<char>(announcement[5] | apart_flag);
    std::memcpy(announcement + envelope_bytes, &body_tag, sizeof body_tag);
    // From here on the body must follow: an interrupt waits.
    const int code = MPI_Send(announcement, announcement_bytes, MPI_BYTE, dest, tag, comm);
    if (code != MPI_SUCCESS)
        check(code);
    return body_tag;
}

int start_body(const Message &message, int dest, int body_tag, MPI_Comm comm, bool is_synchronous, MPI_Request *request)
{
    return (is_synchronous ? MPI_Issend_c : MPI_Isend_c)(message.body(), message.body_bytes(), MPI_BYTE, dest, body_tag,
                                                         comm, request);
}

void receive_body(Arrival &arrival, int source, int tag, MPI_Comm comm)
{
    check(MPI_Recv_c(arrival.body(), arrival.body_bytes(), MPI_BYTE, source, tag, comm, MPI_STATUS_IGNORE));
}
} // namespace

int largest_tag()
{
    static const int largest = [] {
        int *most = nullptr, found = 0;
        check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found));
        return (found ? *most : 32767) - body_tags;
    }();
    return largest;
}

Sending::Sending(std::shared_ptr<const Message> message, int dest, int tag, MPI_Comm comm, bool is_synchronous)
    : m_message(std::move(message))
{
    forget_complete();
    if (is_short(*m_message) && !is_synchronous)
        send_short(*m_message, dest, tag, comm);
    else {
        const int body_tag = announce(*m_message, dest, tag, comm);
        const int code = start_body(*m_message, dest, body_tag, comm, is_synchronous, &m_request);
        if (code != MPI_SUCCESS)
            check(code);
    }
}

Sending::~Sending()
{
    if (m_request != MPI_REQUEST_NULL)
        left_alone().emplace_back(std::move(m_message), m_request);
}

void send(const std::shared_ptr<const Message> &message, int dest, int tag, MPI_Comm comm)
{
    if (is_short(*message)) {
        send_short(*message, dest, tag, comm);
        return;
    }
    if (!asks) {
        Sending sending(message, dest, tag, comm);
        wait(sending.request());
        return;
    }
    forget_complete();
    const int body_tag = announce(*message, dest, tag, comm);
    const int code = interrupted ? MPI_ERR_PENDING
                                 : MPI_Send_c(message->body(), message->body_bytes(), MPI_BYTE, dest, body_tag, comm);
    MPI_Request rest;
    if (code != MPI_SUCCESS && interrupted && start_body(*message, dest, body_tag, comm, false, &rest) == MPI_SUCCESS)
        left_alone().emplace_back(message, rest);
    check(code);
}

octave_value receive(MPI_Message &message, MPI_Status &status, MPI_Comm comm, std::uint8_t *mark)
{
    const Whole whole;
    MPI_Count length = 0;
    check(MPI_Get_count_c(&status, MPI_BYTE, &length));
    if (message == MPI_MESSAGE_NO_PROC) {
        check(MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, &status));
        return octave_value(Matrix());
    }
    if (length > MPI_Count(joined_bytes)) {
        std::vector<char> bytes(length);
        check(MPI_Mrecv_c(bytes.data(), length, MPI_BYTE, &message, &status));
        return decode(bytes.data(), length, mark);
    }
    char buffer[joined_bytes];
    check(MPI_Mrecv(buffer, static_cast<int>(length), MPI_BYTE, &message, &status));
    if (length != MPI_Count(announcement_bytes) || !(buffer[5] & apart_flag))
        return decode(buffer, length, mark);
    int body_tag;
    std::memcpy(&body_tag, buffer + envelope_bytes, sizeof body_tag);
    buffer[5] = static_cast<char>(buffer[5] & ~apart_flag);
    Arrival arrival(envelope_bytes + Arrival::announced(buffer));
    std::memcpy(arrival.envelope(), buffer, envelope_bytes);
    receive_body(arrival, status.MPI_SOURCE, body_tag, comm);
    if (mark)
        *mark = arrival.mark();
    return arrival.value();
}
} // namespace limosa
