//! Operations: whatever a request can be waiting for, behind one interface.
//!
//! A [`Request`](crate::request::Request) holds one operation and does not know its kind: a send or a receive in the
//! engine, a collective, or anything else that the standard lets a program wait for. A new kind implements
//! [`Operation`]. The code of requests, of the calls that wait for several requests, and of the hang report does not
//! change.
//!
//! # Callers of each method
//!
//! | method | called by | with the engine's lock | meanwhile |
//! |---|---|---|---|
//! | `start` | `MPI_Start`, or the call that makes a started request | no | no other method: it is not under way |
//! | `progress`, `look` | any call that tests or waits | no | other threads may be in any method but `start` |
//! | `is_ready` | a thread that waits | **yes**: it must not call the engine, wait, or run user code | as above |
//! | `wait` | `MPI_Wait` and `MPI_Waitall` | no | as above |
//! | `begin_sleep` | a thread that waits for several requests, before its last look and sleep | **yes** | as above |
//! | `end_sleep` | the same thread, once for each `begin_sleep` | no | as above |
//! | `finish` | the call that completes the request | no | only one thread is in `finish` or `release` |
//! | `cancel`, `release` | `MPI_Cancel`, `MPI_Request_free` | no | as above |
//! | `keeps_memory` | the call that retires the request | no | as above |
//! | `awaits` | the thread that waits, when it is about to sleep | no | as above |
//! | `file` | the call that takes an end with an error | no | as above |
//! | `bytes` | `MPI_Finalize` | no | as above |
//!
//! The request's lock-free state ([`StateWord`]) ensures that `finish` is called until it has returned the end once for
//! each start, and that the next `start` comes after that. The operation ensures that a thread that waits in the engine
//! wakes when `is_ready` becomes true. A message wakes the thread anyway; an operation that ends in another way calls
//! [`Engine::notify`](limosa_p2p::Engine::notify).

use crate::check;
use crate::comm::Comm;
use crate::error::{Error, Result, error_of};
use crate::fail;
use crate::observe::{Awaits, Waiting};
use limosa_p2p::{Completion, Interrupted, View};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One kind of operation under a request. The module's documentation has the callers of each method.
pub trait Operation: Any + Send + Sync {
    /// Starts it: for the first time, or once more after it has ended.
    ///
    /// # Errors
    /// Those of the kind; the operation is then not under way.
    fn start(self: Arc<Self>) -> Result<()>;

    /// Does the remaining local work; true when the operation has ended. Makes no progress in the engine: the caller
    /// does that.
    fn progress(&self) -> bool;

    /// Whether it has ended, or [`Operation::progress`] would bring it further. Called with the engine's lock, of which
    /// `view` is the contents.
    fn is_ready(&self, view: &View<'_>) -> bool;

    /// Does the remaining local work and returns the end, with its error if it failed; `None` if the operation has not
    /// ended.
    fn finish(&self) -> Option<End>;

    /// Returns a copy of the end of an operation that has ended; `finish` can still be called
    /// (`MPI_Request_get_status`).
    fn look(&self) -> Option<End>;

    /// Asks for cancellation.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for kinds that cannot be cancelled.
    fn cancel(&self) -> Result<()>;

    /// Releases the operation, whose request the program has freed: it completes, and its end is dropped.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for kinds that cannot be freed while they are under way.
    fn release(&self) -> Result<()>;

    /// Waits until it has ended. Returns false at once for a kind that the engine waits for, which must have ended as
    /// soon as it is ready.
    ///
    /// # Errors
    /// [`Interrupted`]: it is still under way.
    fn wait(&self, _waiting: &Waiting<'_>) -> std::result::Result<bool, Interrupted> {
        Ok(false)
    }

    /// The calling thread is about to sleep until this or another operation is ready.
    fn begin_sleep(&self) {}

    /// It has woken.
    fn end_sleep(&self) {}

    /// Whether it owns shared memory, or much memory, so that it should be dropped as soon as its request is retired.
    fn keeps_memory(&self) -> bool {
        false
    }

    /// Returns the handle of the window that it belongs to: the window's error handler gets its error.
    fn window(&self) -> Option<usize> {
        None
    }

    /// What it waits for, for the report of a hang; `None` if the standard has no name for it.
    fn awaits(&self) -> Option<Awaits<'_>>;

    /// Returns the handle of the file whose error handler gets the errors; `None` if that is a communicator's.
    fn file(&self) -> Option<usize> {
        None
    }

    /// Returns the bytes of its buffer, for the report of what is left at the end; `None` if they are not known.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// How an operation ended, in the standard's terms.
#[derive(Clone, Debug)]
pub struct End {
    /// Rank of the sender, for receives; `MPI_ANY_SOURCE` otherwise.
    pub source: i32,
    /// Tag of the message, for receives; `MPI_ANY_TAG` otherwise.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// It was cancelled.
    pub cancelled: bool,
    /// What went wrong.
    pub error: Option<Error>,
}

impl End {
    /// Returns the end of an inactive request: the empty status (MPI-5 section 3.7.3).
    pub fn empty() -> End {
        End {
            source: crate::consts::MPI_ANY_SOURCE,
            tag: crate::consts::MPI_ANY_TAG,
            bytes: 0,
            cancelled: false,
            error: None,
        }
    }

    /// Returns the end of a receive from `MPI_PROC_NULL`.
    pub fn proc_null() -> End {
        End { source: crate::consts::MPI_PROC_NULL, ..End::empty() }
    }

    pub(crate) fn of_receive(completion: Completion) -> End {
        let completion = if check::is_on() { check::strip(completion) } else { completion };
        End {
            source: completion.source,
            tag: completion.tag,
            bytes: completion.bytes,
            cancelled: completion.cancelled,
            error: completion.failure.map(error_of),
        }
    }

    pub(crate) fn of_send(completion: Completion) -> End {
        End { cancelled: completion.cancelled, error: completion.failure.map(error_of), ..End::empty() }
    }
}

/// An operation that has ended before its request is made.
pub(crate) struct Completed(pub(crate) End);

impl Operation for Completed {
    fn start(self: Arc<Self>) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "the operation has ended and cannot be started")
    }

    fn progress(&self) -> bool {
        true
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        true
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        Some(self.0.clone())
    }

    fn cancel(&self) -> Result<()> {
        Ok(())
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self, _waiting: &Waiting<'_>) -> std::result::Result<bool, Interrupted> {
        Ok(true)
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        None
    }
}

/// What a send or a receive waits for.
pub(crate) fn awaits_message(
    comm: Option<&Arc<Comm>>,
    is_send: bool,
    peer: Option<i32>,
    tag: Option<i32>,
) -> Option<Awaits<'_>> {
    let comm = comm?;
    Some(if is_send { Awaits::Send { comm, dest: peer, tag } } else { Awaits::Receive { comm, source: peer, tag } })
}

/// State and number of an operation in one atomic word, so that a step on behalf of one start cannot touch the next
/// one.
///
/// An operation may be started again, under another number, as soon as it has ended. A thread that read the state
/// before the restart must not change the state after it. Every transition therefore names the number that it expects,
/// and fails if the word has a different number.
///
/// ```text
/// 63                              3 2      0
/// | number                         | state |
/// ```
#[derive(Debug)]
pub struct StateWord(AtomicU64);

/// A copy of a [`StateWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The number of the start.
    pub number: u64,
    /// A state below [`StateWord::STATES`].
    pub state: u8,
}

impl StateWord {
    /// How many states there can be.
    pub const STATES: u8 = 8;
    const SHIFT: u32 = StateWord::STATES.trailing_zeros();

    /// Number 0 in this state.
    pub const fn new(state: u8) -> StateWord {
        StateWord(AtomicU64::new(StateWord::pack(0, state)))
    }

    const fn pack(number: u64, state: u8) -> u64 {
        debug_assert!(state < StateWord::STATES);
        number << StateWord::SHIFT | state as u64
    }

    /// State and number now, with acquire ordering: writes before the last transition are visible.
    #[inline]
    #[must_use]
    pub fn load(&self) -> Moment {
        let word = self.0.load(Ordering::Acquire);
        Moment { number: word >> StateWord::SHIFT, state: word as u8 % StateWord::STATES }
    }

    /// Changes the state of start `number` from one to another; false, without a change, if the word has another state
    /// or number.
    #[inline]
    #[must_use]
    pub fn advance(&self, number: u64, from: u8, to: u8) -> bool {
        let (from, to) = (StateWord::pack(number, from), StateWord::pack(number, to));
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Sets the state of start `number`. Only for the thread that alone may change the word now: the one that starts or
    /// finishes it.
    #[inline]
    pub fn set(&self, number: u64, state: u8) {
        self.0.store(StateWord::pack(number, state), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTED: u8 = 2;
    const FETCHING: u8 = 3;
    const DONE: u8 = 5;

    #[test]
    fn a_step_for_one_start_does_not_touch_the_next() {
        let word = StateWord::new(DONE);
        word.set(7, POSTED);
        // The helper looks; then the user's thread finishes start 7 and starts again before the helper acts.
        let seen_by_helper = word.load();
        assert!(word.advance(7, POSTED, FETCHING));
        word.set(7, DONE);
        word.set(8, POSTED);
        assert!(!word.advance(seen_by_helper.number, POSTED, FETCHING));
        assert_eq!(word.load(), Moment { number: 8, state: POSTED });
    }

    #[test]
    fn one_of_two_threads_gets_a_transition() {
        let word = StateWord::new(DONE);
        word.set(1 << 60, POSTED);
        let (first, second) = std::thread::scope(|scope| {
            let attempt = || scope.spawn(|| word.advance(1 << 60, POSTED, FETCHING));
            let (first, second) = (attempt(), attempt());
            (first.join().unwrap(), second.join().unwrap())
        });
        assert!(first != second);
        assert_eq!(word.load(), Moment { number: 1 << 60, state: FETCHING });
    }
}
