// MatlabMPI's messages by memory; ../matlabmpi has the other functions, and messages as files.
//
// A message is a list of values under a tag, which is compared as text: 7 and "7" are the same tag. It travels on a
// communicator of its own job, as a value with a mark:
//
//   tag of MPI            mark   value
//   the number            0      the only value
//   the number            1      a cell with all values
//   made of the text      2      a cell with the text and all values
//   the largest one       0      nothing: the sender has finished
//
// A send never waits for the receiver: it keeps the values until they have been fetched. A receive takes whatever its
// source has sent and lays what has another tag into the mailbox, from which later receives and MPI_Probe take it. So
// it also learns that the source has finished, and that what it waits for cannot come any more.
//
// A job is either all ranks that `limosa run` has started, or an interpreter as rank 0 with ranks that MPI_Run has
// started in the background as a job of MPI; the two are connected by a port. An interpreter can have one such job
// in turn.

#include "session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <octave/Cell.h>
#include <octave/error.h>
#include <octave/interpreter.h>
#include <octave/ov-struct.h>

using namespace limosa;

namespace
{
enum Mark : std::uint8_t { only_value = 0, all_values = 1, text_and_values = 2 };

// A tag as text, and the tag of MPI that messages with it have.
struct Tag {
    std::string text;
    int number;
    bool is_number; // the number says it all
};

struct Posted {
    Sending sending;
    int dest;
};

using Key = std::pair<int, std::string>; // source and text of the tag

struct Job {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    std::vector<bool> finished;
    std::map<Key, std::deque<octave_value_list>> mailbox;
    std::list<Posted> posted;
    std::size_t prune_at = 8;
    int empty_probes = 0;

    bool is_open() const
    {
        return comm != MPI_COMM_NULL;
    }
};

Job job;

// Tags below this are themselves, those above it are made of texts.
int numbers()
{
    return largest_tag() / 2;
}

// --- arguments ----------------------------------------------------------------------------------------------------

struct Comm {
    int rank;
    int size;
    bool by_files;
    bool saves;          // files stay after they were received
    std::string job_key; // written into lock files; empty: lock files of any job count
    octave_scalar_map map;
};

int field(const octave_scalar_map &map, const char *name, const char *function)
{
    const octave_value value = map.getfield(name);
    if (!value.is_defined())
        fail("comm", "%s: the communicator has no field %s; take it from MPI_COMM_WORLD", function, name);
    return int_argument(value, function, name);
}

// What a communicator says. That of the latest one is kept: to take a struct apart costs as much as to send a number.
// The program cannot change the value that is kept.
std::shared_ptr<const Comm> communicator(const octave_value &value, const char *function)
{
    static auto &latest = *new std::pair<octave_value, std::shared_ptr<const Comm>>;
    if (latest.second && value.internal_rep() == latest.first.internal_rep())
        return latest.second;
    if (!value.isstruct() || value.numel() != 1)
        fail("comm", "%s: the communicator is no communicator but of class %s; take MPI_COMM_WORLD after MPI_Init",
             function, value.class_name().c_str());
    const octave_scalar_map map = value.scalar_map_value();
    const octave_value by_files = map.getfield("by_files");
    const octave_value saves = map.getfield("save_message_flag");
    const octave_value key = map.getfield("job_key");
    const bool does_save = saves.is_defined() && saves.is_true();
    latest.second = std::make_shared<Comm>(Comm{field(map, "rank", function), field(map, "size", function),
                                                !by_files.is_defined() || by_files.is_true() || does_save, does_save,
                                                key.is_string() ? key.string_value() : "", map});
    latest.first = value;
    return latest.second;
}

octave_value_list args_from(const octave_value_list &args, int first)
{
    return args.slice(first, args.length() - first);
}

void need(const octave_value_list &args, int at_least, const char *form)
{
    if (args.length() < at_least)
        fail("arg", "this is how to call it: %s", form);
}

void need_job(const char *function)
{
    if (!job.is_open())
        fail("other",
             "%s: no job is running: call MPI_Init in a script that `limosa run --dialect matlabmpi` or MPI_Run "
             "has started",
             function);
}

int rank_argument(const octave_value &value, const Comm &comm, const char *function, const char *name)
{
    const int rank = int_argument(value, function, name);
    if (rank < 0 || rank >= comm.size)
        fail("rank", "%s: %s is %d; the communicator has the ranks 0 to %d", function, name, rank, comm.size - 1);
    return rank;
}

// The number of a text if it is one that MPI can have as a tag, written the usual way; else -1.
int number_of(const std::string &text)
{
    if (text.empty() || text.size() > 9 || (text[0] == '0' && text.size() > 1) ||
        !std::all_of(text.begin(), text.end(), [](char each) { return each >= '0' && each <= '9'; }))
        return -1;
    const int number = std::stoi(text);
    return number < numbers() ? number : -1;
}

std::string text_of(const octave_value &value)
{
    if (value.is_real_scalar()) {
        const double number = value.double_value();
        if (number == std::floor(number) && std::abs(number) < 1e15)
            return std::to_string(static_cast<long long>(number));
    }
    return result_of("matmpi_tag_text", ovl(value)).string_value();
}

Tag tag_argument(const octave_value &value)
{
    Tag tag{text_of(value), 0, true};
    tag.number = number_of(tag.text);
    tag.is_number = tag.number >= 0;
    if (!tag.is_number)
        tag.number = numbers() + static_cast<int>(std::hash<std::string>()(tag.text) %
                                                  static_cast<std::size_t>(largest_tag() - numbers()));
    return tag;
}

// --- sending ------------------------------------------------------------------------------------------------------

// Forgets what has been fetched.
void prune()
{
    if (job.posted.size() > 8 && job.posted.size() < job.prune_at)
        return;
    for (auto each = job.posted.begin(); each != job.posted.end();) {
        int done = 0;
        check(MPI_Test(&each->sending.request(), &done, MPI_STATUS_IGNORE));
        each = done ? job.posted.erase(each) : std::next(each);
    }
    job.prune_at = 2 * job.posted.size() + 8;
}

std::shared_ptr<Message> packed(const Tag &tag, const octave_value_list &values)
{
    if (tag.is_number && values.length() == 1)
        return std::make_shared<Message>(values(0), only_value);
    octave_value_list all = values;
    if (!tag.is_number)
        all.prepend(octave_value(tag.text));
    return std::make_shared<Message>(octave_value(Cell(all)), tag.is_number ? all_values : text_and_values);
}

void post(int dest, const Tag &tag, const std::shared_ptr<Message> &message, bool is_synchronous)
{
    Sending sending(message, dest, tag.number, job.comm, is_synchronous);
    if (sending.request() != MPI_REQUEST_NULL)
        job.posted.push_back({std::move(sending), dest});
}

void send_to(int dest, const Tag &tag, const octave_value_list &values)
{
    prune();
    if (dest == job.rank)
        job.mailbox[Key(dest, tag.text)].push_back(values);
    else
        post(dest, tag, packed(tag, values), false);
}

// To several ranks; ends when all of them have taken the message.
void send_to_all(const std::vector<int> &dests, const Tag &tag, const octave_value_list &values)
{
    prune();
    const std::shared_ptr<Message> message = packed(tag, values);
    std::size_t before = job.posted.size();
    for (int dest : dests)
        if (dest == job.rank)
            job.mailbox[Key(dest, tag.text)].push_back(values);
        else
            post(dest, tag, message, true);
    for (auto each = std::next(job.posted.begin(), before); each != job.posted.end();) {
        wait(each->sending.request());
        each = job.posted.erase(each);
    }
}

// --- receiving ----------------------------------------------------------------------------------------------------

octave_value_list list_of(const Cell &cell, octave_idx_type from)
{
    octave_value_list values;
    for (octave_idx_type i = from; i < cell.numel(); i++)
        values.append(cell(i));
    return values;
}

// A message that has been received; no values if it says that its source has finished.
struct Received {
    Key key;
    octave_value_list values;
    bool is_end = false;
};

// Receives a message that has been taken.
Received received(MPI_Message &message, MPI_Status &status)
{
    const int source = status.MPI_SOURCE, number = status.MPI_TAG;
    std::uint8_t mark = only_value;
    const octave_value value = receive(message, status, job.comm, &mark);
    if (number == largest_tag()) {
        job.finished[source] = true;
        return {Key(source, ""), {}, true};
    }
    if (mark == text_and_values) {
        const Cell cell = value.cell_value();
        return {Key(source, cell(0).string_value()), list_of(cell, 1)};
    }
    return {Key(source, std::to_string(number)),
            mark == all_values ? list_of(value.cell_value(), 0) : octave_value_list(value)};
}

void store(const Received &message)
{
    if (!message.is_end)
        job.mailbox[message.key].push_back(message.values);
}

// Takes all messages that have arrived from a source. An error if the source, or any of several, has died.
void drain(int source = MPI_ANY_SOURCE)
{
    for (int found = 1; found;) {
        MPI_Message message;
        MPI_Status status;
        check(MPI_Improbe(source, MPI_ANY_TAG, job.comm, &found, &message, &status));
        if (found)
            store(received(message, status));
    }
}

// What else waits from a source, for an error.
std::string others_from(int source)
{
    std::string tags;
    for (const auto &each : job.mailbox)
        if (each.first.first == source && tags.size() < 200)
            tags += (tags.empty() ? "" : ", ") + each.first.second;
    return tags.empty() ? "nothing else has come from it"
                        : "what has come from it and was not received has the tags: " + tags;
}

// The values that a message holds, of which a program wants so many.
const octave_value_list &enough(const octave_value_list &values, int outputs, const Key &key, const char *function)
{
    if (outputs > values.length())
        fail("arg", "%s: %d values were asked for, but the message from rank %d with tag %s holds %d", function,
             outputs, key.first, key.second.c_str(), static_cast<int>(values.length()));
    return values;
}

octave_value_list receive_from(int source, const Tag &tag, int outputs, const char *function)
{
    prune();
    const Key key(source, tag.text);
    auto found = job.mailbox.find(key);
    while (found == job.mailbox.end()) {
        if (source == job.rank)
            fail("other", "%s: rank %d waits for a message from itself with tag %s, which it has not sent; %s",
                 function, source, tag.text.c_str(), others_from(source).c_str());
        if (job.finished[source])
            fail("other", "%s: rank %d has finished and sent no message with tag %s to rank %d; %s", function, source,
                 tag.text.c_str(), job.rank, others_from(source).c_str());
        MPI_Message message;
        MPI_Status status;
        // Not `probe`, which may have to poll: that does not find out that the source has died.
        check(MPI_Mprobe(source, MPI_ANY_TAG, job.comm, &message, &status));
        const Received latest = received(message, status);
        if (latest.key == key && outputs <= latest.values.length() && !latest.is_end)
            return latest.values;
        store(latest);
        found = job.mailbox.find(key);
    }
    std::deque<octave_value_list> &queue = found->second;
    const octave_value_list values = enough(queue.front(), outputs, key, function);
    queue.pop_front();
    if (queue.empty())
        job.mailbox.erase(found);
    return values;
}

// Calls something that needs other ranks. If one of them has died, the error says what became of it.
template <typename F> auto with_others(const char *function, F action) -> decltype(action())
{
    try {
        return action();
    } catch (const octave::execution_exception &failure) {
        if (failure.identifier() != "limosa:proc_aborted")
            throw;
        const std::string text = failure.message();
        octave::interpreter::the_interpreter()->recover_from_exception();
        octave::interpreter::the_interpreter()->feval("matmpi_explain", ovl(function, text), 0);
        throw;
    }
}

// --- messages as files ------------------------------------------------------------------------------------------

// The name of the buffer or lock file of a message. Each machine has a folder for the messages to its ranks.
std::string file_name_of(const std::string &source, int dest, const std::string &tag, const Comm &comm,
                         const char *kind)
{
    if (tag.find('/') != std::string::npos)
        fail("tag", "MatlabMPI: a tag of a message in a file cannot hold \"/\", as %s does", tag.c_str());
    const octave_scalar_map machines = comm.map.getfield("machine_db").scalar_map_value();
    const octave_idx_type machine = comm.map.getfield("machine_id").array_value()(dest);
    return machines.getfield("dir").cell_value()(machine - 1).string_value() + "/p" + source + "_p" +
           std::to_string(dest) + "_t" + tag + "_" + kind + ".mat";
}

std::string file_name(int source, int dest, const std::string &tag, const Comm &comm, const char *kind)
{
    return file_name_of(std::to_string(source), dest, tag, comm, kind);
}

// Whether a file as MATLAB's `save -v6` writes it holds this value as it is.
bool fits_v6(const octave_value &value)
{
    if (value.iscell()) {
        const Cell cell = value.cell_value();
        for (octave_idx_type i = 0; i < cell.numel(); i++)
            if (!fits_v6(cell(i)))
                return false;
        return true;
    }
    if (value.isstruct()) {
        const octave_map map = value.map_value();
        const string_vector names = map.fieldnames();
        for (octave_idx_type i = 0; i < names.numel(); i++)
            if (names(i).size() > 31 || !fits_v6(map.contents(names(i))))
                return false;
        return true;
    }
    // A sparse logical matrix would come back as a full one.
    return (value.isnumeric() || value.islogical() || value.is_string()) && !(value.issparse() && value.islogical());
}

// Makes a lock file. Its text is the key of the job: MatlabMPI itself makes it empty and only looks whether it exists.
void lock(const std::string &file, const Comm &comm)
{
    const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (made < 0 || write(made, comm.job_key.data(), comm.job_key.size()) != ssize_t(comm.job_key.size()))
        fail("file", "MatlabMPI: %s cannot be made: %s", file.c_str(), strerror(errno));
    close(made);
}

// Whether a lock file is there and belongs to this job. One with the key of another job announces a message that an
// earlier run in the same folder has left. An empty one is MatlabMPI's own, or its text is about to be written.
bool is_locked(const std::string &file, const Comm &comm)
{
    const int found = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (found < 0)
        return false;
    char text[64];
    const ssize_t length = read(found, text, sizeof text);
    close(found);
    return length <= 0 || comm.job_key.empty() || comm.job_key == std::string(text, length);
}

void save_values(const std::string &file, const octave_value_list &values)
{
    const octave_value all = Cell(values);
    octave::interpreter::the_interpreter()->feval("matmpi_save", ovl(file, all, fits_v6(all)), 0);
}

// The data come first, then the empty file that says that they are complete. A message that was not received is
// replaced by the next one with the same tag.
void send_file(int dest, const std::string &tag, const Comm &comm, const octave_value_list &values)
{
    save_values(file_name(comm.rank, dest, tag, comm, "buffer"), values);
    lock(file_name(comm.rank, dest, tag, comm, "lock"), comm);
}

// Whether a rank can do nothing more: it has said so or has died, where the ranks are a job of MPI, or has left a note.
bool has_ended(int rank, const Comm &comm)
{
    if (job.is_open() && rank < job.size) {
        try {
            drain(rank);
        } catch (const octave::execution_exception &failure) {
            if (failure.identifier() != "limosa:proc_aborted")
                throw;
            octave::interpreter::the_interpreter()->recover_from_exception();
            return true;
        }
        if (job.finished[rank])
            return true;
    }
    return result_of("matmpi_has_ended", ovl(comm.map, rank)).is_true();
}

// Looks again and again whether a lock file has come, or has gone: at once, then less and less often, up to every 10
// ms. An error if that cannot happen because the process it depends on has ended.
void await_file(const std::string &file, bool is_to_come, const Comm &comm, int other, const char *function)
{
    const auto is_as_wanted = [&]() { return is_locked(file, comm) == is_to_come; };
    const auto begin = std::chrono::steady_clock::now();
    for (int look = 1; !is_as_wanted(); look++) {
        const auto waited = std::chrono::steady_clock::now() - begin;
        if (waited < std::chrono::milliseconds(1)) {
            std::this_thread::yield();
            continue;
        }
        // An eighth of what has gone by: so much later, at most, is the change seen.
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 8, std::chrono::milliseconds(10)));
        octave_quit();
        if (look % 50 == 0 && has_ended(other, comm) && !is_as_wanted()) {
            const std::string text = "rank " + std::to_string(other) + " has ended, and " +
                                     (is_to_come ? "there is no message " : "has not received ") + file;
            octave::interpreter::the_interpreter()->feval("matmpi_explain", ovl(function, text), 0);
        }
    }
}

octave_value_list receive_file(int source, const std::string &tag, const Comm &comm, int outputs, const char *function)
{
    const std::string buffer = file_name(source, comm.rank, tag, comm, "buffer");
    const std::string lock_file = file_name(source, comm.rank, tag, comm, "lock");
    await_file(lock_file, true, comm, source, function);
    const octave_value_list values = list_of(result_of("matmpi_load", ovl(buffer)).cell_value(), 0);
    enough(values, outputs, Key(source, tag), function);
    if (!comm.saves) {
        unlink(buffer.c_str());
        unlink(lock_file.c_str());
    }
    return values;
}

// There is one file with data; the receivers' files are links to it. It is removed when all have received it.
void broadcast_file(const std::vector<int> &dests, const std::string &tag, const Comm &comm,
                    const octave_value_list &values, const char *function)
{
    const std::string buffer = file_name(comm.rank, comm.rank, tag, comm, "buffer");
    save_values(buffer, values);
    const std::string target = result_of("make_absolute_filename", ovl(buffer)).string_value();
    for (int dest : dests) {
        const std::string link = file_name(comm.rank, dest, tag, comm, "buffer");
        unlink(link.c_str());
        if (symlink(target.c_str(), link.c_str()) != 0)
            fail("file", "%s: %s cannot be made: %s", function, link.c_str(), strerror(errno));
        lock(file_name(comm.rank, dest, tag, comm, "lock"), comm);
    }
    if (comm.saves)
        return;
    for (int dest : dests)
        await_file(file_name(comm.rank, dest, tag, comm, "lock"), false, comm, dest, function);
    unlink(buffer.c_str());
}

// --- jobs ---------------------------------------------------------------------------------------------------------

// Leaves a job, before the next one begins or when there is none any more.
void forget()
{
    if (!job.is_open())
        return;
    if (job.posted.empty())
        MPI_Comm_free(&job.comm);
    job = Job(); // what has not been fetched stays under way
}

void open_job(MPI_Comm comm)
{
    forget();
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    job.comm = comm;
    check(MPI_Comm_rank(comm, &job.rank));
    check(MPI_Comm_size(comm, &job.size));
    job.finished.assign(job.size, false);
    static bool is_registered = false;
    if (!is_registered)
        octave::interpreter::the_interpreter()->add_atexit_fcn("__matmpi_exit__");
    is_registered = true;
}

// Two groups become one job; those that have been connected to come first.
void open_merged(MPI_Comm inter, bool is_high)
{
    MPI_Comm merged;
    check(MPI_Intercomm_merge(inter, is_high, &merged));
    check(MPI_Comm_free(&inter));
    open_job(merged);
}

// Says to all others that nothing more will come from here.
void say_end()
{
    if (!job.is_open() || job.finished[job.rank])
        return;
    job.finished[job.rank] = true;
    char nothing[envelope_bytes];
    Message(octave_value(Matrix())).copy_to(nothing);
    for (int other = 0; other < job.size; other++)
        if (other != job.rank)
            MPI_Send(nothing, envelope_bytes, MPI_BYTE, other, largest_tag(), job.comm);
}

// Waits until what was sent has been fetched, or the ranks that have not fetched it have finished or are dead.
void flush()
{
    for (Posted &each : job.posted) {
        if (job.finished[each.dest])
            continue;
        char nothing[envelope_bytes];
        MPI_Request either[2] = {each.sending.request(), MPI_REQUEST_NULL};
        int which = 0;
        if (MPI_Irecv(nothing, envelope_bytes, MPI_BYTE, each.dest, largest_tag(), job.comm, &either[1]) !=
                MPI_SUCCESS ||
            MPI_Waitany(2, either, &which, MPI_STATUS_IGNORE) != MPI_SUCCESS || which == 1) {
            job.finished[each.dest] = true;
            continue;
        }
        each.sending.request() = MPI_REQUEST_NULL;
        MPI_Status status;
        int is_cancelled = 0;
        MPI_Cancel(&either[1]);
        MPI_Wait(&either[1], &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        job.finished[each.dest] = !is_cancelled;
    }
}
} // namespace

// --- what scripts call
// ------------------------------------------------------------------------------------------------

DEFUN_DLD(MPI_Send, args, , R"(-*- texinfo -*-
@deftypefn {} {} MPI_Send (@var{dest}, @var{tag}, @var{comm}, @var{value}, @dots{})
Send any number of values of any class to rank @var{dest}.

The tag is a number or a text. The call never waits for the receiver.

@example
MPI_Send (1, 7, comm, rand (3), "any text");    # rank 1: [a, b] = MPI_Recv (0, 7, comm);
@end example
@seealso{MPI_Recv, MPI_Bcast, MPI_Probe}
@end deftypefn)")
{
    need(args, 3, "MPI_Send (dest, tag, comm, value, ...)");
    if (args.length() == 4 && args(3).isstruct() && !args(2).isstruct())
        fail(
            "dialect",
            "MPI_Send: the communicator is the last argument, as in Octave's package mpi, whose scripts need --dialect "
            "mpi; in MatlabMPI it is the third");
    const auto taken = communicator(args(2), "MPI_Send");
    const Comm &comm = *taken;
    const int dest = rank_argument(args(0), comm, "MPI_Send", "dest");
    if (comm.by_files) {
        send_file(dest, text_of(args(1)), comm, args_from(args, 3));
        return octave_value_list();
    }
    need_job("MPI_Send");
    with_others("MPI_Send", [&]() {
        send_to(dest, tag_argument(args(1)), args_from(args, 3));
        return 0;
    });
    return octave_value_list();
}

DEFUN_DLD(MPI_Recv, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{value}, @dots{}] =} MPI_Recv (@var{source}, @var{tag}, @var{comm})
Receive the values that rank @var{source} has sent, or broadcast, with this tag; wait until they are there.

Messages with the same source and tag are received in the order in which they were sent.

@example
[a, b] = MPI_Recv (0, 7, comm);
@end example
@seealso{MPI_Send, MPI_Bcast, MPI_Probe}
@end deftypefn)")
{
    need(args, 3, "[value, ...] = MPI_Recv (source, tag, comm)");
    const auto taken = communicator(args(2), "MPI_Recv");
    const Comm &comm = *taken;
    const int source = rank_argument(args(0), comm, "MPI_Recv", "source");
    if (comm.by_files)
        return receive_file(source, text_of(args(1)), comm, nargout, "MPI_Recv");
    need_job("MPI_Recv");
    return with_others("MPI_Recv", [&]() { return receive_from(source, tag_argument(args(1)), nargout, "MPI_Recv"); });
}

namespace
{
// What MPI_Bcast and MPI_Mcast do once they know which ranks are meant.
octave_value_list broadcast(int source, const std::vector<int> &dests, const octave_value &tag_value, const Comm &comm,
                            const octave_value_list &values, int nargout, const char *function)
{
    if (comm.by_files) {
        if (comm.rank != source)
            return receive_file(source, text_of(tag_value), comm, nargout, function);
        broadcast_file(dests, text_of(tag_value), comm, values, function);
        return values;
    }
    need_job(function);
    return with_others(function, [&]() {
        const Tag tag = tag_argument(tag_value);
        if (comm.rank != source)
            return receive_from(source, tag, nargout, function);
        send_to_all(dests, tag, values);
        return values;
    });
}
} // namespace

DEFUN_DLD(MPI_Bcast, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{value}, @dots{}] =} MPI_Bcast (@var{source}, @var{tag}, @var{comm}, @var{value}, @dots{})
Send values from rank @var{source} to all other ranks, and return them.

The others receive them by @code{MPI_Recv (source, tag, comm)} or by @code{MPI_Bcast} with any values. The call ends at
the source when all others have taken them.
@seealso{MPI_Mcast, MPI_Recv}
@end deftypefn)")
{
    need(args, 3, "[value, ...] = MPI_Bcast (source, tag, comm, value, ...)");
    const auto taken = communicator(args(2), "MPI_Bcast");
    const Comm &comm = *taken;
    const int source = rank_argument(args(0), comm, "MPI_Bcast", "source");
    std::vector<int> dests;
    for (int rank = 0; rank < comm.size; rank++)
        if (rank != source)
            dests.push_back(rank);
    return broadcast(source, dests, args(1), comm, args_from(args, 3), nargout, "MPI_Bcast");
}

DEFUN_DLD(MPI_Mcast, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{value}, @dots{}] =} MPI_Mcast (@var{source}, @var{dests}, @var{tag}, @var{comm}, @var{value}, @dots{})
Send values from rank @var{source} to the ranks in @var{dests}, as @code{MPI_Bcast} does to all.

The source itself may be among the destinations; it is left out.
@seealso{MPI_Bcast}
@end deftypefn)")
{
    need(args, 4, "[value, ...] = MPI_Mcast (source, dests, tag, comm, value, ...)");
    const auto taken = communicator(args(3), "MPI_Mcast");
    const Comm &comm = *taken;
    const int source = rank_argument(args(0), comm, "MPI_Mcast", "source");
    if (!args(1).isnumeric())
        fail("arg", "MPI_Mcast: the destinations are ranks, not of class %s", args(1).class_name().c_str());
    std::vector<int> dests;
    const NDArray listed = args(1).array_value();
    for (octave_idx_type i = 0; i < listed.numel(); i++) {
        const int rank = rank_argument(octave_value(listed(i)), comm, "MPI_Mcast", "a destination");
        if (rank != source && std::find(dests.begin(), dests.end(), rank) == dests.end())
            dests.push_back(rank);
    }
    return broadcast(source, dests, args(2), comm, args_from(args, 4), nargout, "MPI_Mcast");
}

DEFUN_DLD(MPI_Probe, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{ranks}, @var{tags}, @var{texts}] =} MPI_Probe (@var{source}, @var{tag}, @var{comm})
List the messages that have arrived for this rank and were not received; do not wait for any.

@var{source} and @var{tag} may be @qcode{"*"}, or patterns as of file names. @var{tags} has NaN for tags that are no
numbers, @var{texts} the tags as texts. With two results messages whose tag is no number are left out.

@example
[ranks, tags] = MPI_Probe ("*", "*", comm);
if ! isempty (ranks)
  value = MPI_Recv (ranks(1), tags(1), comm);
end
@end example
@seealso{MPI_Recv}
@end deftypefn)")
{
    need(args, 3, "[ranks, tags, texts] = MPI_Probe (source, tag, comm)");
    const auto taken = communicator(args(2), "MPI_Probe");
    const Comm &comm = *taken;
    if (!args(0).is_string())
        rank_argument(args(0), comm, "MPI_Probe", "source");
    if (comm.by_files) {
        const std::string pattern = file_name_of(text_of(args(0)), comm.rank, text_of(args(1)), comm, "lock");
        return octave::interpreter::the_interpreter()->feval("matmpi_file_probe", ovl(pattern, args(2), nargout),
                                                             std::max(nargout, 1));
    }
    need_job("MPI_Probe");
    with_others("MPI_Probe", [&]() {
        prune();
        drain();
        return 0;
    });
    const std::string source = text_of(args(0)), tag = text_of(args(1));
    // In the order of the names of the files that the messages would be.
    std::vector<std::pair<std::string, int>> found;
    for (const auto &each : job.mailbox)
        if (fnmatch(source.c_str(), std::to_string(each.first.first).c_str(), 0) == 0 &&
            fnmatch(tag.c_str(), each.first.second.c_str(), 0) == 0)
            found.emplace_back(each.first.second, each.first.first);
    std::sort(found.begin(), found.end(), [](const auto &one, const auto &other) {
        return std::make_pair(std::to_string(one.second), one.first) <
               std::make_pair(std::to_string(other.second), other.first);
    });
    if (found.empty()) {
        // A program that asks again and again must not use up a processor.
        job.empty_probes = std::min(job.empty_probes + 1, 200);
        std::this_thread::sleep_for(std::chrono::microseconds(job.empty_probes * 50));
        octave_quit();
    } else
        job.empty_probes = 0;
    Cell texts(found.size(), 1);
    ColumnVector ranks(found.size());
    for (std::size_t i = 0; i < found.size(); i++) {
        texts(i) = found[i].first;
        ranks(i) = found[i].second;
    }
    return octave::interpreter::the_interpreter()->feval("matmpi_listing", ovl(ranks, texts, nargout),
                                                         std::max(nargout, 1));
}

// --- what the other functions of the toolbox call
// ---------------------------------------------------------------------

DEFUN_DLD(__matmpi_world__, , ,
          "[rank, size, key] = __matmpi_world__ (): join the job of all ranks that were started together.")
{
    start();
    MPI_Comm comm;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    open_job(comm);
    std::uint64_t key = 0;
    if (job.rank == 0)
        key = std::random_device()() + (std::uint64_t(getpid()) << 32);
    check(MPI_Bcast(&key, 1, MPI_UINT64_T, 0, job.comm));
    return ovl(job.rank, job.size, std::to_string(key));
}

DEFUN_DLD(__matmpi_alone__, , , "Begin a job of this process alone.")
{
    start();
    MPI_Comm comm;
    check(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    open_job(comm);
    return octave_value_list();
}

DEFUN_DLD(__matmpi_port__, , , "port = __matmpi_port__ (): open a port to which background ranks can connect.")
{
    start();
    char port[MPI_MAX_PORT_NAME];
    check(MPI_Open_port(MPI_INFO_NULL, port));
    return ovl(port);
}

DEFUN_DLD(__matmpi_accept__, args, , "__matmpi_accept__ (port): as rank 0, begin a job with the ranks that connect.")
{
    const std::string port = args(0).string_value();
    MPI_Comm inter;
    check(MPI_Comm_accept(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    open_merged(inter, false);
    MPI_Close_port(port.c_str());
    return octave_value_list();
}

DEFUN_DLD(__matmpi_connect__, args, , R"(__matmpi_connect__ (port, file): connect all ranks of this job to rank 0.

The file is made when all of them are ready.)")
{
    start();
    const std::string port = args(0).string_value(), file = args(1).string_value();
    int rank;
    check(MPI_Barrier(MPI_COMM_WORLD));
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) {
        FILE *made = fopen(file.c_str(), "w");
        if (!made)
            fail("file", "MPI_Run: %s cannot be made: %s", file.c_str(), strerror(errno));
        fclose(made);
    }
    MPI_Comm inter;
    check(MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    open_merged(inter, true);
    return octave_value_list();
}

DEFUN_DLD(__matmpi_comm__, , , "Give the communicator of the job, for what other toolboxes do with all ranks.")
{
    if (!job.is_open())
        fail("other", "the ranks of this job exchange files only; distributed arrays need messages by memory: "
                      "start it on this machine, without MATMPI_COMM_DIR");
    return comm_value(job.comm);
}

DEFUN_DLD(__matmpi_file__, args, , "name = __matmpi_file__ (source, dest, tag, comm, kind): the file of a message.")
{
    const auto taken = communicator(args(3), "MatMPI_Buffer_file");
    const Comm &comm = *taken;
    return ovl(file_name(rank_argument(args(0), comm, "MatMPI_Buffer_file", "source"),
                         rank_argument(args(1), comm, "MatMPI_Buffer_file", "dest"), text_of(args(2)), comm,
                         args(4).string_value().c_str()));
}

DEFUN_DLD(__matmpi_is_locked__, args, , "__matmpi_is_locked__ (file, comm): whether a lock file belongs to this job.")
{
    return ovl(is_locked(args(0).string_value(), *communicator(args(1), "MPI_Probe")));
}

DEFUN_DLD(__matmpi_is_open__, , , "True if a job is running whose messages travel by memory.")
{
    return ovl(job.is_open() && !job.finished[job.rank]);
}

DEFUN_DLD(__matmpi_finalize__, , , "Say to the other ranks that nothing more will come.")
{
    say_end();
    return octave_value_list();
}

DEFUN_DLD(__matmpi_drop__, , , "Leave the job, whose other ranks have been killed.")
{
    forget();
    return octave_value_list();
}

DEFUN_DLD(__matmpi_exit__, , , "Finish the job. Octave calls this when it ends.")
{
    say_end();
    if (job.is_open())
        flush();
    return octave_value_list();
}

DEFUN_DLD(__matmpi_abort__, , , "End all ranks that were started together with this one.")
{
    int is_initialized = 0, is_finalized = 0;
    MPI_Initialized(&is_initialized);
    MPI_Finalized(&is_finalized);
    if (is_initialized && !is_finalized)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return octave_value_list();
}
