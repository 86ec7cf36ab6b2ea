//! The checks that a job asks for with `LIMOSA_CHECK=1` (`limosa run --check`): whether they are on.
//!
//! All processes of a job agree on the checks when they join (`world`). While they are on:
//! - a message of the program begins with a header, which says what basic types it holds ([`crate::headers`]). What the
//!   program is told of a message's length is without the header;
//! - every non-blocking send and receive has an object, so that what is left of it at the end can be described;
//! - no call takes a fast path: the datatypes do not say that they are dense (`Datatype::region`).

use std::sync::atomic::{AtomicBool, Ordering};

use limosa_p2p::{Completion, Failure};

static ON: AtomicBool = AtomicBool::new(false);

/// True if the checks are on.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Turns the checks on, before the first communication.
pub(crate) fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Bytes of a header.
pub const HEADER: usize = 128;

/// Length of the program's data in a message of the engine.
#[inline]
pub fn without_header(bytes: u64) -> u64 {
    if is_on() { bytes.saturating_sub(HEADER as u64) } else { bytes }
}

/// The end of a receive or a probe as the program sees it: lengths are without the header.
#[cold]
pub(crate) fn strip(mut completion: Completion) -> Completion {
    completion.bytes = without_header(completion.bytes);
    if let Some(Failure::Truncated { sent, room }) = completion.failure.as_deref_mut() {
        (*sent, *room) = (without_header(*sent), without_header(*room));
    }
    completion
}
