// Messages of the modern API: send, recv, and the requests of isend and irecv.

#include "progress.h"

#include <memory>
#include <vector>

#include <octave/Cell.h>

using namespace limosa;

namespace
{
// The requests of one argument: a request, or an array of them.
std::vector<octave_value> requests_of(const octave_value &value, const char *function)
{
    if (value.numel() == 1)
        return {value};
    if (!value.isnumeric())
        fail("request", "%s: give the requests as one array, such as [first, second]", function);
    std::vector<octave_value> requests;
    const NDArray numbers = value.array_value();
    for (octave_idx_type i = 0; i < numbers.numel(); i++)
        requests.emplace_back(numbers(i));
    return requests;
}
} // namespace

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
    MPI_Status status;
    octave_value_list result(receive_in_order(optional_int(args, 0, MPI_ANY_SOURCE, "limosa_recv", "source"),
                                              optional_int(args, 1, MPI_ANY_TAG, "limosa_recv", "tag"),
                                              comm_argument(args, 2), status));
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
    MPI_Status status;
    octave_value_list result(receive_in_order(source, tag, comm, status));
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
    return start_send(args(0), int_argument(args(1), "limosa_isend", "to"),
                      optional_int(args, 2, 0, "limosa_isend", "tag"), comm_argument(args, 3));
}

DEFUN_DLD(limosa_irecv, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{request} =} limosa_irecv (@var{source}, @var{tag}, @var{comm})
Begin to receive as @code{limosa_recv} does, and return a request at once. @code{limosa_wait} gives the value.

The message moves while this rank is in one of the functions of this package. If the last variable that holds the
request is cleared, the request is withdrawn, as by @code{limosa_cancel}; a request in an array stays.

@example
other = mod (limosa_rank () + 1, limosa_size ());
request = limosa_irecv ();
limosa_send (@{"from", limosa_rank()@}, other);
x = limosa_wait (request);
@end example
@seealso{limosa_wait, limosa_test, limosa_waitall, limosa_cancel, limosa_isend}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "request = limosa_irecv (source, tag, comm)");
    return start_receive(optional_int(args, 0, MPI_ANY_SOURCE, "limosa_irecv", "source"),
                         optional_int(args, 1, MPI_ANY_TAG, "limosa_irecv", "tag"), comm_argument(args, 2));
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
    const std::vector<octave_value> requests = requests_of(args(0), "limosa_waitall");
    for (const octave_value &each : requests)
        check_request(each, "limosa_waitall");
    Cell values(args(0).dims());
    for (std::size_t i = 0; i < requests.size(); i++)
        values(i) = wait_for(requests[i], "limosa_waitall")(0);
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
    const octave_value_list found = test(args(0), "limosa_test");
    octave_value_list result(octave_value(!found.empty()));
    if (found.empty())
        result(1) = octave_value(Matrix());
    else
        result.append(found);
    return result;
}

DEFUN_DLD(limosa_cancel, args, , R"(-*- texinfo -*-
@deftypefn {} {} limosa_cancel (@var{requests})
Withdraw requests of @code{limosa_irecv}: they receive no message any more.

A message that a request has already received is kept for the next receive that wants it. Clearing the last variable
that holds a request withdraws it, too, except where requests are in an array. A value of @code{limosa_isend} is sent
all the same.

@example
request = limosa_irecv (limosa_rank (), 1);
limosa_cancel (request);
limosa_send ("x", limosa_rank (), 1);
x = limosa_recv (limosa_rank (), 1);   # "x"
@end example
@seealso{limosa_irecv, limosa_isend}
@end deftypefn)")
{
    count_arguments(args, 1, 1, "limosa_cancel (requests)");
    const std::vector<octave_value> requests = requests_of(args(0), "limosa_cancel");
    for (const octave_value &each : requests)
        check_request(each, "limosa_cancel");
    for (const octave_value &each : requests)
        withdraw(each, "limosa_cancel");
    return octave_value_list();
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
    peek_in_order(source, tag, comm, status);
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
    MPI_Status status;
    const bool found =
        look_in_order(optional_int(args, 0, MPI_ANY_SOURCE, "limosa_iprobe", "source"),
                      optional_int(args, 1, MPI_ANY_TAG, "limosa_iprobe", "tag"), comm_argument(args, 2), status);
    octave_value_list result((octave_value(found)));
    result(1) = found ? status_value(status) : octave_value(Matrix());
    return result;
}
