// The functions of the modern API that are compiled; ../inst has the others.

#include "progress.h"

using namespace limosa;

namespace
{
void usage(bool is_right, const char *form)
{
    if (!is_right)
        fail("arg", "this is how to call it: %s", form);
}
} // namespace

DEFUN_DLD(__limosa_finish__, , , "Finalise MPI. Octave calls this when it ends.")
{
    finish();
    return octave_value_list();
}

DEFUN_DLD(limosa_rank, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{rank} =} limosa_rank (@var{comm})
Return the number of this process: from 0 to @code{limosa_size () - 1}.

@example
printf ("rank %d of %d\n", limosa_rank (), limosa_size ());
@end example
@seealso{limosa_size, limosa_split}
@end deftypefn)")
{
    count_arguments(args, 0, 1, "rank = limosa_rank (comm)");
    int rank;
    check(MPI_Comm_rank(comm_argument(args, 0), &rank));
    return octave_value(double(rank));
}

DEFUN_DLD(limosa_size, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{size} =} limosa_size (@var{comm})
Return how many processes there are.
@seealso{limosa_rank}
@end deftypefn)")
{
    count_arguments(args, 0, 1, "size = limosa_size (comm)");
    int size;
    check(MPI_Comm_size(comm_argument(args, 0), &size));
    return octave_value(double(size));
}

DEFUN_DLD(limosa_world, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{comm} =} limosa_world ()
Return the communicator of all processes of the job, which functions use that are given none.

@example
limosa_size (limosa_world ()) == limosa_size ()    # 1
@end example
@seealso{limosa_split, limosa_dup}
@end deftypefn)")
{
    count_arguments(args, 0, 0, "comm = limosa_world ()");
    return comm_value(comm_argument(args, 0));
}

DEFUN_DLD(limosa_split, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{new} =} limosa_split (@var{color}, @var{key}, @var{comm})
Return a communicator of the ranks that give the same @var{color}, ordered by @var{key} (default 0) and rank.

A rank that gives [] as color belongs to none and gets []. All ranks call it.

@example
half = limosa_split (mod (limosa_rank (), 2));
total = limosa_allreduce (1, "sum", half);
limosa_free (half);
@end example
@seealso{limosa_dup, limosa_free}
@end deftypefn)")
{
    count_arguments(args, 1, 3, "new = limosa_split (color, key, comm)");
    const int color = args(0).isempty() ? MPI_UNDEFINED : int_argument(args(0), "limosa_split", "color");
    MPI_Comm made;
    check(MPI_Comm_split(comm_argument(args, 2), color, optional_int(args, 1, 0, "limosa_split", "key"), &made));
    return made == MPI_COMM_NULL ? octave_value(Matrix()) : comm_value(made);
}

DEFUN_DLD(limosa_dup, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{new} =} limosa_dup (@var{comm})
Return a communicator of the same ranks, whose messages do not meet those of others. All ranks call it.
@seealso{limosa_split, limosa_free}
@end deftypefn)")
{
    count_arguments(args, 0, 1, "new = limosa_dup (comm)");
    MPI_Comm made;
    check(MPI_Comm_dup(comm_argument(args, 0), &made));
    return comm_value(made);
}

DEFUN_DLD(limosa_free, args, , R"(-*- texinfo -*-
@deftypefn {} {} limosa_free (@var{comm})
Free a communicator of @code{limosa_split} or @code{limosa_dup}. All its ranks call it.
@seealso{limosa_split, limosa_dup}
@end deftypefn)")
{
    count_arguments(args, 1, 1, "limosa_free (comm)");
    MPI_Comm comm = comm_argument(args, 0);
    forget_communicator(comm);
    check(MPI_Comm_free(&comm));
    return octave_value_list();
}

DEFUN_DLD(limosa_abort, args, , R"(-*- texinfo -*-
@deftypefn {} {} limosa_abort (@var{code})
End all processes of the job with this exit code (default 1).
@end deftypefn)")
{
    count_arguments(args, 0, 1, "limosa_abort (code)");
    MPI_Abort(MPI_COMM_WORLD, optional_int(args, 0, 1, "limosa_abort", "code"));
    return octave_value_list();
}

DEFUN_DLD(limosa_serialize, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{bytes} =} limosa_serialize (@var{value})
Return the bytes of a message that carries @var{value}, as a row of uint8.

@code{limosa_deserialize} makes the value of them again.

@example
bytes = limosa_serialize (struct ("name", "mesh", "size", [3 4]));
isequal (limosa_deserialize (bytes).size, [3 4])   # 1
@end example
@seealso{limosa_deserialize}
@end deftypefn)")
{
    usage(args.length() == 1, "bytes = limosa_serialize (value)");
    const Message message(args(0));
    Fresh bytes(Class::uint8_, 0, dim_vector(1, message.bytes()));
    message.copy_to(static_cast<char *>(bytes.data()));
    return bytes.value();
}

DEFUN_DLD(limosa_deserialize, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{value} =} limosa_deserialize (@var{bytes})
Return the value of which @code{limosa_serialize} has made @var{bytes}.

Bytes that it has not made are the error @code{limosa:damaged}.
@seealso{limosa_serialize}
@end deftypefn)")
{
    Dense view;
    usage(args.length() == 1 && dense(args(0), view) && view.cls == Class::uint8_,
          "value = limosa_deserialize (bytes), with bytes of class uint8");
    return decode(static_cast<const char *>(view.data()), view.elements);
}
