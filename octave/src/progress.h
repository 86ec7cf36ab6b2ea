// Waiting in the modern API, where receives may be under way.
//
// A value's length is not known before it comes, so `limosa_irecv` cannot hand memory to MPI. It only notes what is
// wanted. Messages are matched with these notes in their order, as MPI matches posted receives, whenever any function
// of the modern API waits; so a partner's long send goes on, whatever this rank waits for.
//
// A request is a value of class double, the number of the request. When its last copy goes, the request is withdrawn:
// a receive takes no message any more, and one that it has taken is kept for the next receive that wants it. If the
// number has been taken out of the value, as by putting it into an array, only `withdraw` withdraws the request.

#ifndef LIMOSA_PROGRESS_H
#define LIMOSA_PROGRESS_H

#include "session.h"

namespace limosa
{
// Waits for a request of a function that blocks. What the request uses must outlive it even if the user interrupts:
// such a request is cancelled if it can be. A value that is being sent stays under way.
void complete(MPI_Request &request);
void complete(Sending &sending);

// Send a value, and receive one behind all receives that were noted before.
void send_in_order(const octave_value &value, int dest, int tag, MPI_Comm comm);
octave_value receive_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status);

// Waits for a message that `receive_in_order` would receive, and leaves it; `look_in_order` only tells whether there is
// one.
void peek_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status);
bool look_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status);

// --- requests

octave_value start_send(const octave_value &value, int dest, int tag, MPI_Comm comm);
octave_value start_receive(int source, int tag, MPI_Comm comm);

// Fails unless the value is a request that is under way.
void check_request(const octave_value &request, const char *function);

// The value that a request has received, and its status; [] for a send. `test` gives nothing if the request is not
// complete.
octave_value_list wait_for(const octave_value &request, const char *function);
octave_value_list test(const octave_value &request, const char *function);

void withdraw(const octave_value &request, const char *function);

// Forgets what belongs to a communicator that is freed.
void forget_communicator(MPI_Comm comm);

// --- arguments and results

octave_value status_value(const MPI_Status &status);

// Fails unless an argument list has from `least` to `most` arguments.
void count_arguments(const octave_value_list &arguments, int least, int most, const char *form);

// An optional argument: `missing` if it is not there or []. For a source or tag also "any", which is -1.
int optional_int(const octave_value_list &arguments, int index, int missing, const char *function, const char *name);
} // namespace limosa

#endif
