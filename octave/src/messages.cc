// Messages of the modern API: send, recv, and the requests of isend and irecv.

#include "progress.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include <octave/Cell.h>
#include <octave/oct-map.h>
#include <octave/quit.h>

namespace limosa
{
namespace
{
// A send or receive that the program has started and not waited for.
struct Pending {
    // Null for a receive.
    std::unique_ptr<Sending> sending;

    // Of a receive.
    int source = 0, tag = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    bool has_value = false;
    octave_value value;
    MPI_Status status;

    bool is_receive() const
    {
        return !sending;
    }
};

// By the number that Octave code holds. Numbers are never used again.
std::map<std::uint32_t, Pending> pending;
std::uint32_t latest = 0;

// Receives without a message, oldest first.
std::list<std::uint32_t> waiting;

// The oldest receive that wants a message with this source and tag; the end if there is none.
std::list<std::uint32_t>::iterator wanted_by(MPI_Comm comm, const MPI_Status &status)
{
    return std::find_if(waiting.begin(), waiting.end(), [&](std::uint32_t number) {
        const Pending &receive = pending[number];
        return receive.comm == comm && (receive.source == MPI_ANY_SOURCE || receive.source == status.MPI_SOURCE) &&
               (receive.tag == MPI_ANY_TAG || receive.tag == status.MPI_TAG);
    });
}

void deliver(std::list<std::uint32_t>::iterator place, MPI_Message message, const MPI_Status &status)
{
    Pending &receive = pending[*place];
    waiting.erase(place);
    receive.status = status;
    receive.value = limosa::receive(message, receive.status, receive.comm);
    receive.has_value = true;
}

// Takes the messages that have come for receives in their order. A message may come after an older receive has found
// none, and be found by a later one: it belongs to the older one.
void take_messages()
{
    for (auto place = waiting.begin(); place != waiting.end();) {
        const Pending &receive = pending[*place];
        MPI_Message message;
        MPI_Status status;
        int found = 0;
        check(MPI_Improbe(receive.source, receive.tag, receive.comm, &found, &message, &status));
        if (!found) {
            ++place;
            continue;
        }
        deliver(wanted_by(receive.comm, status), message, status);
        // While the rest of a long message was waited for, others may have been taken.
        place = waiting.begin();
    }
}

// Takes messages until `is_done`.
template <typename F> void go_on_until(F is_done)
{
    while (!is_done()) {
        take_messages();
        octave_quit();
        std::this_thread::yield();
    }
}

octave_value status_value(const MPI_Status &status)
{
    octave_scalar_map map;
    map.assign("source", octave_value(double(status.MPI_SOURCE)));
    map.assign("tag", octave_value(double(status.MPI_TAG)));
    return octave_value(map);
}

// The request that an argument of this function is.
std::map<std::uint32_t, Pending>::iterator request_of(const octave_value &value, const char *function)
{
    const auto found = pending.find(static_cast<std::uint32_t>(int_argument(value, function, "a request")));
    if (found == pending.end())
        fail("request", "%s: request %d is not under way: it was waited for before, or never started", function,
             value.int_value());
    return found;
}

octave_value new_request(Pending &&started)
{
    pending[++latest] = std::move(started);
    return octave_value(double(latest));
}

// The value that a request has received, and its status; the request is gone.
octave_value_list finished(std::map<std::uint32_t, Pending>::iterator place)
{
    octave_value_list result;
    if (place->second.is_receive()) {
        result(0) = place->second.value;
        result(1) = status_value(place->second.status);
    } else
        result(0) = octave_value(Matrix());
    pending.erase(place);
    return result;
}

octave_value_list wait_for(const octave_value &value, const char *function)
{
    const auto place = request_of(value, function);
    Pending &it = place->second;
    if (!it.is_receive())
        complete(*it.sending);
    else if (!it.has_value && waiting.size() == 1) {
        MPI_Message message;
        probe(it.source, it.tag, it.comm, message, it.status);
        waiting.pop_front();
        it.value = receive(message, it.status, it.comm);
    } else
        go_on_until([&] { return it.has_value; });
    return finished(place);
}

void send_in_order(const octave_value &value, int dest, int tag, MPI_Comm comm)
{
    const auto message = std::make_shared<Message>(value);
    if (waiting.empty()) {
        send(message, dest, tag, comm);
        return;
    }
    Sending sending(message, dest, tag, comm);
    complete(sending);
}

void wait_in_order(MPI_Request &request)
{
    if (waiting.empty())
        wait(request);
    else
        go_on_until([&] {
            int done = 0;
            check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            return done != 0;
        });
}
} // namespace

void complete(MPI_Request &request)
{
    try {
        wait_in_order(request);
    } catch (...) {
        if (request != MPI_REQUEST_NULL && MPI_Cancel(&request) == MPI_SUCCESS)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        throw;
    }
}

void complete(Sending &sending)
{
    wait_in_order(sending.request());
}

void probe_in_order(int source, int tag, MPI_Comm comm, MPI_Message &message, MPI_Status &status)
{
    if (waiting.empty()) {
        probe(source, tag, comm, message, status);
        return;
    }
    go_on_until([&] {
        take_messages();
        int found = 0;
        check(MPI_Improbe(source, tag, comm, &found, &message, &status));
        const auto owner = found ? wanted_by(comm, status) : waiting.end();
        if (owner == waiting.end())
            return found != 0;
        deliver(owner, message, status);
        return false;
    });
}

void count_arguments(const octave_value_list &arguments, int least, int most, const char *form)
{
    start();
    if (arguments.length() < least || arguments.length() > most)
        fail("arg", "this is how to call it: %s", form);
}

int optional_int(const octave_value_list &arguments, int index, int missing, const char *function, const char *name)
{
    if (index >= arguments.length() || arguments(index).isempty())
        return missing;
    if (missing == -1 && arguments(index).is_string() && arguments(index).string_value() == "any")
        return missing;
    return int_argument(arguments(index), function, name);
}
} // namespace limosa

using namespace limosa;

DEFUN_DLD(limosa_send, args, , R"(-*- texinfo -*-
@deftypefn  {} {} limosa_send (@var{x}, @var{to})
@deftypefnx {} {} limosa_send (@var{x}, @var{to}, @var{tag}, @var{comm})
Send the value @var{x}, of any class, to rank @var{to}.

@var{tag} is a number from 0 on, 0 by default. @var{comm} is a communicator, that of all ranks by default. A short
message is on its way when the function returns; a long one has been received, or is being so.

@example
if (limosa_rank () == 0)
  limosa_send (struct ("steps", 100, "mesh", ones (50)), 1);
elseif (limosa_rank () == 1)
  s = limosa_recv (0);
  disp (s.steps)
end
@end example
@seealso{limosa_recv, limosa_isend, limosa_sendrecv}
@end deftypefn)")
{
    count_arguments(args, 2, 4, "limosa_send (x, to, tag, comm)");
    send_in_order(args(0), int_argument(args(1), "limosa_send", "to"), optional_int(args, 2, 0, "limosa_send", "tag"),
                  comm_argument(args, 3));
    return octave_value_list();
}

DEFUN_DLD(limosa_recv, args, nargout, R"(-*- texinfo -*-
@deftypefn  {} {@var{x} =} limosa_recv ()
@deftypefnx {} {[@var{x}, @var{status}] =} limosa_recv (@var{source}, @var{tag}, @var{comm})
Wait for a value from rank @var{source} with tag @var{tag} and return it.

Either may be @qcode{"any"} or [] or left out: then any will do. @var{status} is a struct with the fields
@code{source} and @code{tag} of the message.

@example
if (limosa_rank () == 0)
  for k = 2:limosa_size ()
    [x, status] = limosa_recv ();
    printf ("%s from rank %d\n", x, status.source);
  end
else
  limosa_send ("hello", 0);
end
@end example
@seealso{limosa_send, limosa_irecv, limosa_probe}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "[x, status] = limosa_recv (source, tag, comm)");
    const MPI_Comm comm = comm_argument(args, 2);
    MPI_Message message;
    MPI_Status status;
    probe_in_order(optional_int(args, 0, MPI_ANY_SOURCE, "limosa_recv", "source"),
                   optional_int(args, 1, MPI_ANY_TAG, "limosa_recv", "tag"), comm, message, status);
    octave_value_list result;
    result(0) = receive(message, status, comm);
    if (nargout > 1)
        result(1) = status_value(status);
    return result;
}

DEFUN_DLD(limosa_sendrecv, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{y}, @var{status}] =} limosa_sendrecv (@var{x}, @var{to}, @var{source}, @var{tag}, @var{comm})
Send @var{x} to rank @var{to} and receive the value of rank @var{source}, both with tag @var{tag} (default 0).

All ranks of a ring can call it at once.

@example
right = mod (limosa_rank () + 1, limosa_size ());
left = mod (limosa_rank () - 1, limosa_size ());
y = limosa_sendrecv (limosa_rank (), right, left);   # y is left
@end example
@seealso{limosa_send, limosa_recv}
@end deftypefn)")
{
    count_arguments(args, 3, 5, "[y, status] = limosa_sendrecv (x, to, source, tag, comm)");
    const auto message = std::make_shared<Message>(args(0));
    const int dest = int_argument(args(1), "limosa_sendrecv", "to");
    const int source = optional_int(args, 2, MPI_ANY_SOURCE, "limosa_sendrecv", "source");
    const int tag = optional_int(args, 3, 0, "limosa_sendrecv", "tag");
    const MPI_Comm comm = comm_argument(args, 4);
    Sending sending(message, dest, tag, comm);
    octave_value_list result;
    MPI_Message arriving;
    MPI_Status status;
    probe_in_order(source, tag, comm, arriving, status);
    result(0) = receive(arriving, status, comm);
    if (nargout > 1)
        result(1) = status_value(status);
    complete(sending);
    return result;
}

DEFUN_DLD(limosa_isend, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{request} =} limosa_isend (@var{x}, @var{to}, @var{tag}, @var{comm})
Begin to send @var{x} as @code{limosa_send} does, and return a request at once.

What is sent is @var{x} as it is now, also if the variable changes later.

@example
other = mod (limosa_rank () + 1, limosa_size ());
request = limosa_isend (rand (1000), other);
x = limosa_recv ();
limosa_wait (request);
@end example
@seealso{limosa_wait, limosa_test, limosa_waitall, limosa_irecv}
@end deftypefn)")
{
    count_arguments(args, 2, 4, "request = limosa_isend (x, to, tag, comm)");
    Pending started;
    started.sending.reset(new Sending(std::make_shared<Message>(args(0)), int_argument(args(1), "limosa_isend", "to"),
                                      optional_int(args, 2, 0, "limosa_isend", "tag"), comm_argument(args, 3)));
    return new_request(std::move(started));
}

DEFUN_DLD(limosa_irecv, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{request} =} limosa_irecv (@var{source}, @var{tag}, @var{comm})
Begin to receive as @code{limosa_recv} does, and return a request at once. @code{limosa_wait} gives the value.

@example
other = mod (limosa_rank () + 1, limosa_size ());
request = limosa_irecv ();
limosa_send (@{"from", limosa_rank()@}, other);
x = limosa_wait (request);
@end example
@seealso{limosa_wait, limosa_test, limosa_waitall, limosa_isend}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "request = limosa_irecv (source, tag, comm)");
    Pending started;
    started.source = optional_int(args, 0, MPI_ANY_SOURCE, "limosa_irecv", "source");
    started.tag = optional_int(args, 1, MPI_ANY_TAG, "limosa_irecv", "tag");
    started.comm = comm_argument(args, 2);
    // Wrong arguments are an error now and not when somebody waits.
    int found;
    check(MPI_Iprobe(started.source, started.tag, started.comm, &found, MPI_STATUS_IGNORE));
    const octave_value request = new_request(std::move(started));
    waiting.push_back(latest);
    return request;
}

DEFUN_DLD(limosa_wait, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{x}, @var{status}] =} limosa_wait (@var{request})
Wait until the request of @code{limosa_isend} or @code{limosa_irecv} is complete. Return the value received and its
status; [] for a send.

@example
request = limosa_isend (1:3, limosa_rank ());
x = limosa_wait (limosa_irecv (limosa_rank ()));   # 1 2 3
limosa_wait (request);
@end example
@seealso{limosa_waitall, limosa_test}
@end deftypefn)")
{
    count_arguments(args, 1, 1, "[x, status] = limosa_wait (request)");
    return wait_for(args(0), "limosa_wait");
}

DEFUN_DLD(limosa_waitall, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{values} =} limosa_waitall (@var{requests})
Wait until all requests of an array are complete. Return a cell with what each has received, [] for a send.

@example
requests = [limosa_irecv(limosa_rank ()), limosa_isend("a", limosa_rank ())];
values = limosa_waitall (requests);   # @{"a", []@}
@end example
@seealso{limosa_wait}
@end deftypefn)")
{
    count_arguments(args, 1, 1, "values = limosa_waitall (requests)");
    if (!args(0).isnumeric())
        fail("request", "limosa_waitall: give the requests as one array, such as [first, second]");
    const NDArray requests = args(0).array_value();
    for (octave_idx_type i = 0; i < requests.numel(); i++)
        request_of(octave_value(requests(i)), "limosa_waitall");
    Cell values(requests.dims());
    for (octave_idx_type i = 0; i < requests.numel(); i++)
        values(i) = wait_for(octave_value(requests(i)), "limosa_waitall")(0);
    return octave_value(values);
}

DEFUN_DLD(limosa_test, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{done}, @var{x}, @var{status}] =} limosa_test (@var{request})
Tell whether a request is complete. If so, it is gone, and @var{x} and @var{status} are those of @code{limosa_wait}.

@example
request = limosa_irecv (limosa_rank ());
limosa_test (request)                  # 0
limosa_send (pi, limosa_rank ());
do [done, x] = limosa_test (request); until done
@end example
@seealso{limosa_wait}
@end deftypefn)")
{
    count_arguments(args, 1, 1, "[done, x, status] = limosa_test (request)");
    const auto place = request_of(args(0), "limosa_test");
    Pending &it = place->second;
    int done = 0;
    if (it.is_receive()) {
        take_messages();
        done = it.has_value;
    } else
        check(MPI_Test(&it.sending->request(), &done, MPI_STATUS_IGNORE));
    octave_value_list result(octave_value(done != 0));
    if (done)
        result.append(finished(place));
    else
        result(1) = octave_value(Matrix());
    return result;
}

DEFUN_DLD(limosa_probe, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{status} =} limosa_probe (@var{source}, @var{tag}, @var{comm})
Wait for a message as @code{limosa_recv} does, and return its status without receiving it.

@example
limosa_send ("x", limosa_rank (), 7);
status = limosa_probe ();
x = limosa_recv (status.source, status.tag);   # "x"
@end example
@seealso{limosa_iprobe, limosa_recv}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "status = limosa_probe (source, tag, comm)");
    const int source = optional_int(args, 0, MPI_ANY_SOURCE, "limosa_probe", "source");
    const int tag = optional_int(args, 1, MPI_ANY_TAG, "limosa_probe", "tag");
    const MPI_Comm comm = comm_argument(args, 2);
    MPI_Status status;
    if (waiting.empty())
        peek(source, tag, comm, status);
    else
        go_on_until([&] {
            take_messages();
            int found = 0;
            check(MPI_Iprobe(source, tag, comm, &found, &status));
            return found != 0;
        });
    return status_value(status);
}

DEFUN_DLD(limosa_iprobe, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{found}, @var{status}] =} limosa_iprobe (@var{source}, @var{tag}, @var{comm})
Tell whether @code{limosa_recv} with these arguments would find a message now.

@example
limosa_iprobe ()                       # 0
limosa_send (1, limosa_rank ());
limosa_iprobe (limosa_rank ())         # 1
limosa_recv (limosa_rank ());
@end example
@seealso{limosa_probe}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "[found, status] = limosa_iprobe (source, tag, comm)");
    take_messages();
    int found = 0;
    MPI_Status status;
    check(MPI_Iprobe(optional_int(args, 0, MPI_ANY_SOURCE, "limosa_iprobe", "source"),
                     optional_int(args, 1, MPI_ANY_TAG, "limosa_iprobe", "tag"), comm_argument(args, 2), &found,
                     &status));
    octave_value_list result(octave_value(found != 0));
    result(1) = found ? status_value(status) : octave_value(Matrix());
    return result;
}
