/* What Limosa has beside the MPI standard. Only this library has these functions: a program that uses them and is to
 * run with others too asks for the macro LIMOSA_H, and finds them at run time with dlsym.
 *
 * They report errors as MPI's functions do: by the error handler of the communicator, or by their return value. */
#ifndef LIMOSA_H
#define LIMOSA_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Multicast: sends a message of process `source` to the processes in the list `dests`, as MatlabMPI's MPI_Mcast does.
 *
 * The source and the processes of the list call it, with the same arguments; whoever else calls it goes on at once. All
 * buffers have `count` elements of the same type signature: that of the source is sent, the others are filled. The
 * source may be in the list, and a process may be there twice. The function returns when the buffer may be used again.
 * The messages meet no other calls than those of this function with the same tag.
 *
 * Every host gets the message once, and hands it on inside: its cost between hosts is that of a broadcast among as many
 * processes as there are hosts.
 *
 * Errors: MPI_ERR_COMM (also an intercommunicator), MPI_ERR_RANK, MPI_ERR_TAG, MPI_ERR_COUNT, MPI_ERR_TYPE,
 * MPI_ERR_BUFFER, MPI_ERR_ARG (a negative ndests, a list that is null). */
int limosa_mcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int source, int ndests, const int dests[],
                 int tag, MPI_Comm comm);

/* For the runtime systems of languages, whose handlers of signals run at a safe point only: while a thread that may
 * handle signals (the process's first one) waits in a call of MPI, `hook` is called after a signal and again and again,
 * from a tenth of a second after the call began to wait. If it returns a number other than 0, the call gives up what it
 * waits for and ends with an error. The hook may be called in a process that Python runs in only if Python has started
 * after MPI; the first hook stays. Returns MPI_SUCCESS. */
int limosa_set_interrupt_hook(int (*hook)(void));

#ifdef __cplusplus
}
#endif

#endif
