//! Requests without an object: non-blocking sends and receives live in the engine alone, under a short name that becomes their handle.
//!
//! What is common is done here in one visit to the engine: waiting for and testing such requests. For everything else [`object`] makes an object
//! for the duration of a call.

use crate::comm::registry;
use crate::consts::MPI_ANY_TAG;
use crate::instance::engine;
use crate::observe::{self, Waiting};
use crate::request::{About, End, Request};
use limosa_job::{Kind, Wait};
use limosa_p2p::{Completion, Label, Short, Unknown};
use std::sync::Arc;

/// An object for the request of that name; `None` if there is none.
pub fn object(short: Short) -> Option<Arc<Request>> {
    let (id, label) = engine().find(short)?;
    let about = match label.is_send {
        true => About::Send { dest: label.peer.unwrap_or_default(), tag: label.tag.unwrap_or(MPI_ANY_TAG) },
        false => About::Receive { source: label.peer, tag: label.tag },
    };
    Some(Request::pending(id, registry::find(label.context), about))
}

#[inline]
fn end_of(is_send: bool, completion: Completion) -> End {
    match completion.cancelled {
        true => End { cancelled: true, ..End::empty() },
        false if is_send => End::of_send(completion),
        false => End::of_receive(completion),
    }
}

/// Waits for `n` requests and takes their ends: `name(i)` is the name of the i-th, `None` if there is nothing to wait for; `done` gets index,
/// the communicator's handle and the end, and must not call the library.
///
/// # Errors
/// The first `i` whose name is none.
#[inline]
pub fn wait_each(n: usize, name: impl Fn(usize) -> Option<Short>, mut done: impl FnMut(usize, usize, End)) -> Result<(), usize> {
    engine().wait_each(n, &name, &Waiting::light(n, &name), |i, note, is_send, completion| done(i, note, end_of(is_send, completion)))
}

/// Takes the end of a request, with its communicator's handle, if it has ended.
///
/// # Errors
/// [`Unknown`].
pub fn test(short: Short) -> Result<Option<(usize, End)>, Unknown> {
    Ok(engine().test_one(short)?.map(|(note, is_send, completion)| (note, end_of(is_send, completion))))
}

/// What a request waits for, in the status board's terms, with the communicator's name kept by `names`.
pub(crate) fn wait_records<'n>(shorts: impl Iterator<Item = Short>, names: &'n mut Vec<String>) -> Vec<Wait<'n>> {
    let open: Vec<_> =
        shorts.filter_map(|short| engine().open_label(short)).filter_map(|label| Some((label, registry::find(label.context)?))).collect();
    names.extend(open.iter().map(|(_, comm)| comm.describe()));
    let kind = |label: &Label| if label.is_send { Kind::Send } else { Kind::Receive };
    open.iter()
        .zip(names.iter())
        .map(|((label, comm), name)| observe::message_wait(kind(label), comm, label.peer, label.tag, name))
        .collect()
}
