// How an Octave process uses MPI: for all modules.
//
// Starting. The first function that needs MPI calls `start`, as does every one after it: MPI is initialised then,
// unless the program has done so itself. The level is MPI_THREAD_FUNNELED: Octave has one thread that calls. When
// Octave ends, MPI is finalised if we have initialised it. Errors of MPI_COMM_WORLD and MPI_COMM_SELF, and so of all
// communicators that come from them, are returned.
//
// Errors. Every call of MPI goes through `check`, which makes an Octave error of a code other than MPI_SUCCESS. Its
// identifier is that of the error class (`limosa:rank` for MPI_ERR_RANK ...), its text that of the library, with the
// Octave function that was called in place of the function of MPI.
//
// Ctrl-C. Blocking calls can be interrupted: Limosa asks the interpreter while it waits (limosa_set_interpreter in
// limosa.h) and gives up the call if the user wants that. `check` then throws what the interpreter wants to throw. With
// a library that does not ask, `wait` and `probe` poll and look for interrupts themselves; a collective call that
// blocks then cannot be interrupted. So: messages by `probe` and `wait`, everything else straight by MPI's functions.
// An interrupt never leaves half a message: what `probe` has taken is received to its end before the interrupt is seen,
// and what has been announced goes on its way although no call waits for it any more.
//
// Handles. Octave code holds a communicator as an int32 scalar, the integer of MPI_Comm_toint. 0-by-0 stands for
// MPI_COMM_WORLD, or what `renew_world` has put in its place, where it is an optional argument.
//
// Where. Limosa also asks where in the Octave program a rank waits, for the report of a hang; that costs the calls
// nothing.

#ifndef LIMOSA_SESSION_H
#define LIMOSA_SESSION_H

#include <mpi.h>
#include <memory>
#include <utility>

#include <octave/oct.h>

#include "values.h"

namespace limosa
{
// MPI is initialised after this; the error `limosa:finalized` if it has been finalised.
void start();

// Makes this process a good rank: the library asks, while a call waits, for interrupts and for the line of the program;
// memory is used again; no file is left if the job is ended. `start` calls it; a module that lets programs initialise
// MPI themselves calls it then.
void listen();

// Throws what the interpreter wanted to throw while a call of MPI waited; `check` does so too.
void throw_interrupt();

// Has [] stand for another communicator of all ranks than before. All ranks call it in the same order, with growing
// numbers: what an interrupt has left half done in the old one does not meet what comes.
void renew_world(int epoch);

// Finalises MPI if we have initialised it. Called when Octave ends; calling it again does nothing.
void finish();

// Throws if the code is that of an error, or if the user has interrupted the call, also if the call then succeeded.
void check(int code);

// Throws the error `limosa:NAME`, also where the library was not asked.
[[noreturn]] void fail(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Waits for a request, and can be interrupted. A request that is not complete stays under way.
void wait(MPI_Request &request, MPI_Status *status = MPI_STATUS_IGNORE);

// Waits for a message; `peek` leaves it, `probe` takes it.
void peek(int source, int tag, MPI_Comm comm, MPI_Status &status);
void probe(int source, int tag, MPI_Comm comm, MPI_Message &message, MPI_Status &status);

// --- Octave values ------------------------------------------------------------------------------------------------

// The communicator that argument `index` (from 0) is; MPI_COMM_WORLD if there is none or it is [].
MPI_Comm comm_argument(const octave_value_list &arguments, int index);
octave_value comm_value(MPI_Comm comm);

// An argument that is a whole number; the error `limosa:arg` names the function and the argument if it is not.
int int_argument(const octave_value &value, const char *function, const char *argument);

// The datatype of the elements of an array.
MPI_Datatype datatype(Class cls, std::uint8_t flags);

// --- messages of one value ----------------------------------------------------------------------------------------

// A value is sent as one message, or, if it is long, as one with the envelope and the tag of a second one with the
// body: that one is received straight into the new array, at the speed of MPI_Recv. Tags of bodies lie above
// `largest_tag` and differ, so no other receive can match them; a receive of any tag matches the envelope first, which
// comes before, and `receive` takes the body at once.

// The largest tag of a value.
int largest_tag();

// A value on its way. If it goes before the request is complete, the value stays where it is until MPI needs it no
// more.
class Sending
{
  public:
    // With `is_synchronous` the request is complete when the value has been received.
    Sending(std::shared_ptr<const Message> message, int dest, int tag, MPI_Comm comm, bool is_synchronous = false);
    ~Sending();
    Sending(Sending &&other) noexcept
        : m_message(std::move(other.m_message)), m_request(std::exchange(other.m_request, MPI_REQUEST_NULL))
    {
    }

    MPI_Request &request()
    {
        return m_request;
    }

  private:
    std::shared_ptr<const Message> m_message;
    MPI_Request m_request = MPI_REQUEST_NULL;
};

// Sends a value and waits until that is done.
void send(const std::shared_ptr<const Message> &message, int dest, int tag, MPI_Comm comm);

// Receives the message that `probe` has taken, which must be done before any other receive with any tag.
octave_value receive(MPI_Message &message, MPI_Status &status, MPI_Comm comm, std::uint8_t *mark = nullptr);
} // namespace limosa

#endif
