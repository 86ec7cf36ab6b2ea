//! The checks that a job asks for with `LIMOSA_CHECK=1` (`limosa run --check`): whether they are on.
//!
//! All processes of a job agree on the checks when they join (`world`). While they are on:
//! - a message of the program begins with a header, which says what basic types it holds ([`crate::headers`]). What the
//!   program is told of a message's length is without the header;
//! - every non-blocking send and receive has an object, so that what is left of it at the end can be described;
//! - no call takes a fast path: the datatypes do not say that they are dense (`Datatype::region`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use limosa_p2p::{Completion, Failure};

static ON: AtomicBool = AtomicBool::new(false);
static STRICT: AtomicBool = AtomicBool::new(false);

/// Whether the checks are on.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether mistakes that other libraries let pass are errors, not warnings.
#[inline]
pub fn is_strict() -> bool {
    STRICT.load(Ordering::Relaxed)
}

/// Sets whether the checks are on, which are strict, before the first communication.
pub(crate) fn set(on: bool, strict: bool) {
    ON.store(on, Ordering::Relaxed);
    STRICT.store(on || strict, Ordering::Relaxed);
}

/// How the layer above finds the line of the program from which a call comes.
pub struct Sites {
    /// The line of the call that this thread is in, in a form that every process can make words of; empty if unknown.
    pub here: fn() -> String,
    /// The words for it, behind a comma; empty if nothing is known.
    pub words: fn(&str) -> String,
}

static SITES: OnceLock<Sites> = OnceLock::new();

/// Sets how lines of the program are found. The first call counts.
pub fn plug_in_sites(sites: Sites) {
    let _ = SITES.set(sites);
}

/// [`Sites::here`].
#[cold]
pub fn site() -> String {
    SITES.get().map_or_else(String::new, |sites| (sites.here)())
}

/// [`Sites::words`].
#[cold]
pub fn site_in_words(site: &str) -> String {
    SITES.get().map_or_else(String::new, |sites| (sites.words)(site))
}

/// Bytes of a header.
pub const HEADER: usize = 128;

/// Returns the length of the program's data in a message of the engine.
#[inline]
pub fn without_header(bytes: u64) -> u64 {
    if is_on() { bytes.saturating_sub(HEADER as u64) } else { bytes }
}

/// Returns the end of a receive or a probe as the program sees it: lengths are without the header.
#[cold]
pub(crate) fn strip(mut completion: Completion) -> Completion {
    completion.bytes = without_header(completion.bytes);
    if let Some(Failure::Truncated { sent, room }) = completion.failure.as_deref_mut() {
        (*sent, *room) = (without_header(*sent), without_header(*room));
    }
    completion
}
