// Waiting in the modern API, where receives may be under way.
//
// A value's length is not known before it comes, so `limosa_irecv` cannot hand memory to MPI. It only notes what is
// wanted. Messages are matched with these notes in their order, as MPI matches posted receives, whenever any function
// of the modern API waits; so a partner's long send goes on, whatever this rank waits for.

#ifndef LIMOSA_PROGRESS_H
#define LIMOSA_PROGRESS_H

#include "session.h"

namespace limosa
{
// Waits for a request of a function that blocks. What the request uses must outlive it even if the user interrupts:
// such a request is cancelled if it can be. A value that is being sent stays under way.
void complete(MPI_Request &request);
void complete(Sending &sending);

// Waits for a message as `probe` does, behind all receives that were noted before.
void probe_in_order(int source, int tag, MPI_Comm comm, MPI_Message &message, MPI_Status &status);

// Fails unless an argument list has from `least` to `most` arguments.
void count_arguments(const octave_value_list &arguments, int least, int most, const char *form);

// An optional argument: `missing` if it is not there or []. For a source or tag also "any", which is -1.
int optional_int(const octave_value_list &arguments, int index, int missing, const char *function, const char *name);
} // namespace limosa

#endif
