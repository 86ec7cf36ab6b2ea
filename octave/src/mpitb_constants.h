// How mpitb_constants.cc, which is generated, defines MPI's constants: each is a function without arguments. Handles
// are uint64, numbers are double, and what is an address in C is a text here, with the constant's name. Does not know
// mpi.h, where the names are macros.

#if !defined(LIMOSA_MPITB_CONSTANTS_H)
#define LIMOSA_MPITB_CONSTANTS_H 1

#include <octave/oct.h>

#define MPITB_HANDLE(BITS) octave_uint64(UINT64_C(BITS))

#define MPITB_CONSTANT(NAME, VALUE)                                                                                    \
    DEFUN_DLD(NAME, args, , #NAME ": a constant of MPI")                                                               \
    {                                                                                                                  \
        if (args.length() > 0)                                                                                         \
            error_with_id("limosa:usage", #NAME " is a constant: it takes no arguments");                              \
        return ovl(VALUE);                                                                                             \
    }

#endif
