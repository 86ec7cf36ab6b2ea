/* Limosa's extensions to the MPI standard. No other library has these functions: a portable program tests the macro
 * LIMOSA_H, and looks them up at run time with dlsym.
 *
 * They report errors like the functions of MPI: by the error handler of the communicator, or by their return value. */
#ifndef LIMOSA_H
#define LIMOSA_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Multicasts a message of process `source` to the processes in the list `dests`, like MatlabMPI's MPI_Mcast.
 *
 * The source and the processes of the list call it with the same arguments; for all other callers it has no effect. All
 * buffers have `count` elements of the same type signature: that of the source is sent, the others are filled. The
 * list may contain the source, and a process twice. The function returns when the buffer may be reused. Its messages
 * match only calls of this function with the same tag.
 *
 * Every host gets the message once, and forwards it internally: the cost between hosts is that of a broadcast among as
 * many processes as there are hosts.
 *
 * Errors: MPI_ERR_COMM (also an intercommunicator), MPI_ERR_RANK, MPI_ERR_TAG, MPI_ERR_COUNT, MPI_ERR_TYPE,
 * MPI_ERR_BUFFER, MPI_ERR_ARG (a negative ndests, a null list). */
int limosa_mcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int source, int ndests, const int dests[],
                 int tag, MPI_Comm comm);

/* Registers a hook for the runtime systems of languages whose signal handlers run only at a safe point. While a thread
 * that may handle signals (the process's first one) waits in a call of MPI, `hook` is called after a signal, and also
 * repeatedly, from a tenth of a second after the start of the wait. If it returns a value other than 0, the call
 * withdraws its operation and ends with an error. The hook may be called in a process with a Python interpreter only if
 * Python was started after MPI. The first hook stays. Returns MPI_SUCCESS. */
int limosa_set_interrupt_hook(int (*hook)(void));

#ifdef __cplusplus
}
#endif

#endif
