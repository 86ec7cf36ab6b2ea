// The functions of Octave's package mpi: the messages of the modern API under other names and with other arguments.

#include "progress.h"

#include <cmath>
#include <list>
#include <vector>

#include <unistd.h>

#include <octave/interpreter.h>
#include <octave/oct-lvalue.h>
#include <octave/oct-map.h>
#include <octave/pt-eval.h>

// The name of a function here.
#undef MPI_COMM_WORLD

using namespace limosa;

namespace
{
enum class State { before, within, after };
State state = State::before;

// Fails unless MPI is initialised and the call has all its arguments. Gives the communicator, which is the last one; a
// call of one argument may leave it out, as in early versions of the package.
MPI_Comm checked(const octave_value_list &args, int needed, const char *function)
{
    if (state != State::within)
        fail("other", "%s: MPI is not initialized: %s", function,
             state == State::before ? "call MPI_Init first" : "MPI_Finalize has been called");
    if (needed == 0 || (needed == 1 && args.empty()))
        return comm_argument(octave_value_list(), 0);
    if (args.length() != needed)
        fail("arg", "%s: there are %d arguments, and %d are needed; see help %s", function,
             static_cast<int>(args.length()), needed, function);
    const octave_value &comm = args(needed - 1);
    if (comm.is_int32_type() && comm.numel() == 1)
        return comm_argument(args, needed - 1);
    if (needed == 4 && args(2).is_int32_type())
        fail("dialect",
             "%s: the communicator is the third argument, as in MatlabMPI; for a script of MatlabMPI give "
             "--dialect matlabmpi",
             function);
    fail("comm", "%s: the last argument is of class %s and no communicator; take MPI_COMM_WORLD", function,
         comm.class_name().c_str());
}

// A source or a tag: -1 means any.
int any_argument(const octave_value &value, int any, const char *function, const char *name)
{
    const int number = int_argument(value, function, name);
    return number == -1 ? any : number;
}

// A number and the error code, which is always 0: errors are Octave's. In MPITB the error code comes first; a caller
// that ignores the number is written for MPITB and would take the error code for the number.
octave_value_list number_first(double number, int nargout, const char *function)
{
    const std::list<octave::octave_lvalue> *outputs =
        octave::interpreter::the_interpreter()->get_evaluator().lvalue_list();
    if (nargout > 1 && outputs && !outputs->empty() && outputs->front().is_black_hole())
        fail("dialect",
             "%s: the number is the first result of package mpi, and this call ignores it; in a script of MPITB it is "
             "the second: give --dialect mpitb",
             function);
    return ovl(number, 0.0);
}

// What a status is in this package.
octave_scalar_map probed(bool is_found, const MPI_Status &status)
{
    MPI_Count bytes = 0;
    if (is_found)
        check(MPI_Get_count_c(&status, MPI_BYTE, &bytes));
    octave_scalar_map map;
    map.assign("MPI_SOURCE", octave_value(is_found ? double(status.MPI_SOURCE) : 0.0));
    map.assign("MPI_TAG", octave_value(is_found ? double(status.MPI_TAG) : 0.0));
    map.assign("MPI_ERROR", octave_value(0.0));
    map.assign("MPI_Get_count", octave_value(double(bytes)));
    map.assign("cancelled", octave_value(0.0));
    return map;
}
} // namespace

DEFUN_DLD(MPI_Init, , , R"(-*- texinfo -*-
@deftypefn {} {@var{info} =} MPI_Init ()
Join the job. Every rank calls this first, once.
@seealso{MPI_Initialized, MPI_Finalize}
@end deftypefn)")
{
    if (state != State::before)
        fail("other", "MPI_Init: MPI has been initialized already; MPI_Initialized tells whether it has");
    start();
    state = State::within;
    return ovl(0.0);
}

DEFUN_DLD(MPI_Finalize, , , R"(-*- texinfo -*-
@deftypefn {} {@var{info} =} MPI_Finalize ()
Leave the job. Every rank calls this last; the script goes on, without MPI.
@end deftypefn)")
{
    checked(octave_value_list(), 0, "MPI_Finalize");
    state = State::after;
    finish();
    return ovl(0.0);
}

DEFUN_DLD(MPI_Initialized, , , R"(-*- texinfo -*-
@deftypefn {} {[@var{flag}, @var{info}] =} MPI_Initialized ()
Tell whether @code{MPI_Init} has been called.
@end deftypefn)")
{
    return ovl(state != State::before, 0.0);
}

DEFUN_DLD(MPI_Finalized, , , R"(-*- texinfo -*-
@deftypefn {} {[@var{flag}, @var{info}] =} MPI_Finalized ()
Tell whether @code{MPI_Finalize} has been called.
@end deftypefn)")
{
    return ovl(state == State::after, 0.0);
}

DEFUN_DLD(MPI_COMM_WORLD, , , R"(-*- texinfo -*-
@deftypefn {} {@var{comm} =} MPI_COMM_WORLD ()
Return the communicator of all ranks.
@end deftypefn)")
{
    start();
    return comm_value(comm_argument(octave_value_list(), 0));
}

DEFUN_DLD(MPI_Comm_Load, , , R"(-*- texinfo -*-
@deftypefn {} {@var{comm} =} MPI_Comm_Load (@var{name})
Return the communicator of all ranks: what @code{MPI_COMM_WORLD} was called in early versions of the package. The name
means nothing.
@end deftypefn)")
{
    start();
    return comm_value(comm_argument(octave_value_list(), 0));
}

DEFUN_DLD(MPI_Comm_rank, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{rank}, @var{info}] =} MPI_Comm_rank (@var{comm})
Return the number of this process, from 0.

@example
my_rank = MPI_Comm_rank (MPI_COMM_WORLD);
@end example
@end deftypefn)")
{
    int rank;
    check(MPI_Comm_rank(checked(args, 1, "MPI_Comm_rank"), &rank));
    return number_first(rank, nargout, "MPI_Comm_rank");
}

DEFUN_DLD(MPI_Comm_size, args, nargout, R"(-*- texinfo -*-
@deftypefn {} {[@var{size}, @var{info}] =} MPI_Comm_size (@var{comm})
Return how many processes there are.

@example
p = MPI_Comm_size (MPI_COMM_WORLD);
@end example
@end deftypefn)")
{
    int size;
    check(MPI_Comm_size(checked(args, 1, "MPI_Comm_size"), &size));
    return number_first(size, nargout, "MPI_Comm_size");
}

DEFUN_DLD(MPI_Send, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{info} =} MPI_Send (@var{value}, @var{ranks}, @var{tag}, @var{comm})
Send a value of any class to a rank, or to each of a vector of ranks.

@example
if (MPI_Comm_rank (MPI_COMM_WORLD) == 0)
  MPI_Send (@{magic(3), "name"@}, 0:MPI_Comm_size (MPI_COMM_WORLD) - 1, 1, MPI_COMM_WORLD);
endif
value = MPI_Recv (0, 1, MPI_COMM_WORLD);
@end example
@seealso{MPI_Recv}
@end deftypefn)")
{
    const MPI_Comm comm = checked(args, 4, "MPI_Send");
    if (!args(1).isnumeric() || args(1).isempty())
        fail("arg", "MPI_Send: the second argument is the rank, or a vector of ranks, to send to");
    const int tag = int_argument(args(2), "MPI_Send", "tag");
    if (args(1).numel() == 1) {
        send_in_order(args(0), int_argument(args(1), "MPI_Send", "rank"), tag, comm);
        return ovl(0.0);
    }
    const NDArray ranks = args(1).array_value();
    const auto message = std::make_shared<Message>(args(0));
    std::list<Sending> all;
    for (octave_idx_type i = 0; i < ranks.numel(); i++)
        all.emplace_back(message, int_argument(octave_value(ranks(i)), "MPI_Send", "rank"), tag, comm);
    for (Sending &each : all)
        complete(each);
    return ovl(0.0);
}

DEFUN_DLD(MPI_Recv, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{value}, @var{info}] =} MPI_Recv (@var{source}, @var{tag}, @var{comm})
Wait for a value, and return it. A source or tag of -1 means any.

@example
MPI_Send (1:3, MPI_Comm_rank (MPI_COMM_WORLD), 2, MPI_COMM_WORLD);
value = MPI_Recv (MPI_Comm_rank (MPI_COMM_WORLD), 2, MPI_COMM_WORLD);   # 1 2 3
@end example
@seealso{MPI_Send, MPI_Probe}
@end deftypefn)")
{
    const MPI_Comm comm = checked(args, 3, "MPI_Recv");
    MPI_Status status;
    return ovl(receive_in_order(any_argument(args(0), MPI_ANY_SOURCE, "MPI_Recv", "source"),
                                any_argument(args(1), MPI_ANY_TAG, "MPI_Recv", "tag"), comm, status),
               0.0);
}

DEFUN_DLD(MPI_Probe, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{stat}, @var{info}] =} MPI_Probe (@var{source}, @var{tag}, @var{comm})
Wait for a message that @code{MPI_Recv} with these arguments would receive, and tell which it is.

@var{stat} has the fields @code{MPI_SOURCE}, @code{MPI_TAG}, @code{MPI_ERROR}, @code{MPI_Get_count} (bytes; of
a long value those of its announcement) and @code{cancelled}.
@seealso{MPI_Iprobe, MPI_Recv}
@end deftypefn)")
{
    const MPI_Comm comm = checked(args, 3, "MPI_Probe");
    MPI_Status status;
    peek_in_order(any_argument(args(0), MPI_ANY_SOURCE, "MPI_Probe", "source"),
                  any_argument(args(1), MPI_ANY_TAG, "MPI_Probe", "tag"), comm, status);
    return ovl(probed(true, status), 0.0);
}

DEFUN_DLD(MPI_Iprobe, args, , R"(-*- texinfo -*-
@deftypefn {} {[@var{flag}, @var{stat}, @var{info}] =} MPI_Iprobe (@var{source}, @var{tag}, @var{comm})
Tell whether there is a message that @code{MPI_Recv} with these arguments would receive now, and which.
@seealso{MPI_Probe, MPI_Recv}
@end deftypefn)")
{
    const MPI_Comm comm = checked(args, 3, "MPI_Iprobe");
    MPI_Status status;
    const bool is_found = look_in_order(any_argument(args(0), MPI_ANY_SOURCE, "MPI_Iprobe", "source"),
                                        any_argument(args(1), MPI_ANY_TAG, "MPI_Iprobe", "tag"), comm, status);
    return ovl(double(is_found), probed(is_found, status), 0.0);
}

DEFUN_DLD(MPI_Barrier, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{info} =} MPI_Barrier (@var{comm})
Wait until all ranks have called this.
@end deftypefn)")
{
    MPI_Request request;
    check(MPI_Ibarrier(checked(args, 1, "MPI_Barrier"), &request));
    complete(request);
    return ovl(0.0);
}

DEFUN_DLD(MPI_Get_processor_name, , , R"(-*- texinfo -*-
@deftypefn {} {[@var{name}, @var{length}, @var{info}] =} MPI_Get_processor_name ()
Return the name of the host, and how long it is.
@end deftypefn)")
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return ovl(name, double(std::string(name).size()), 0.0);
}
