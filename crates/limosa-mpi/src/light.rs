//! Requests without an object: non-blocking sends and receives live in the engine alone, under a short name that
//! becomes their handle.
//!
//! The common calls, waiting for and testing such requests, take the engine's lock once. For all other calls [`object`]
//! makes an object for the duration of the call.

use crate::comm::Comm;
use crate::consts::MPI_ANY_TAG;
use crate::observe::{self, Awaits, Waiting};
use crate::operation::{End, awaits_message};
use crate::request::Request;
use crate::transfer::{Direction, Transfer};
use crate::world::{of_job_if_any, of_light_requests};
use limosa_job::MOST_COUNTED;
use limosa_p2p::{Completion, Received, Short, Unknown};
pub use limosa_p2p::{FastWait, NotAwaited};
use std::sync::Arc;

/// Returns an object for the request of that name; `None` if there is none.
pub fn object(short: Short) -> Option<Arc<Request>> {
    let (id, label) = of_light_requests().engine().find(short)?;
    let direction = match label.is_send {
        true => Direction::To { dest: label.peer.unwrap_or_default(), tag: label.tag.unwrap_or(MPI_ANY_TAG) },
        false => Direction::From { source: label.peer, tag: label.tag },
    };
    let comm = Comm::find(of_light_requests(), label.context);
    let transfer = Transfer::under_way(of_light_requests().engine(), id, comm.clone(), direction);
    Some(Request::light(comm, transfer))
}

#[inline]
fn end_of(is_send: bool, completion: Completion) -> End {
    match completion.cancelled {
        true => End { cancelled: true, ..End::empty() },
        false if is_send => End::of_send(completion),
        false => End::of_receive(completion),
    }
}

/// Waits for `n` requests and takes their ends: `name(i)` is the name of the i-th, `None` if there is nothing to wait
/// for; `done` gets index, the communicator's handle and the end, and must not call the library.
///
/// # Errors
/// As for [`Engine::wait_each`](limosa_p2p::Engine::wait_each).
#[inline]
pub fn wait_each(
    n: usize,
    name: impl Fn(usize) -> Option<Short>,
    mut done: impl FnMut(usize, usize, End),
) -> Result<(), NotAwaited> {
    let list = |tell: &mut dyn FnMut(Awaits<'_>)| list_awaits((0..n).filter_map(&name), tell);
    of_light_requests().engine().wait_each(n, &name, &Waiting::several(&list, true), |i, note, is_send, completion| {
        done(i, note, end_of(is_send, completion))
    })
}

/// As [`wait_each`], if all requests have ended without an error; false if not, and nothing has happened then. `done`
/// is called for all `n`, with what a receive has received.
#[inline(always)]
pub fn try_wait(n: usize, awaited: impl Fn(usize) -> FastWait, done: impl FnMut(usize, Option<Received>)) -> bool {
    of_job_if_any().and_then(|world| world.engine_if_any()).is_some_and(|engine| engine.try_wait(n, awaited, done))
}

/// Takes the end of a request, with its communicator's handle, if it has ended.
///
/// # Errors
/// [`Unknown`].
pub fn test(short: Short) -> Result<Option<(usize, End)>, Unknown> {
    let tested = of_light_requests().engine().test_one(short)?;
    if tested.is_none() {
        let subject = u64::from(short.generation) << 32 | u64::from(short.index);
        observe::polled(subject, &|tell| list_awaits(std::iter::once(short), tell));
    }
    Ok(tested.map(|(note, is_send, completion)| (note, end_of(is_send, completion))))
}

/// Cancels the requests of these names, or waits for their ends if a partner is copying already, so that [`wait_each`]
/// does not wait for them.
#[cold]
pub fn withdraw(shorts: impl Iterator<Item = Short>) {
    let engine = of_light_requests().engine();
    let ids: Vec<_> = shorts.filter_map(|short| engine.find(short)).map(|(id, _)| id).collect();
    engine.withdraw_all(ids.into_iter(), &Waiting::nothing_in_particular());
}

/// Lists what those of these requests wait for that have not ended; of more than [`MOST_COUNTED`] the last ones. They
/// are found at once, since requests mostly end in order: a wait for many requests does not look at all of them each
/// time that it sleeps.
#[cold]
fn list_awaits(shorts: impl DoubleEndedIterator<Item = Short>, tell: &mut dyn FnMut(Awaits<'_>)) {
    let light = of_light_requests();
    let mut comm: Option<Arc<Comm>> = None;
    for label in light.engine().open_labels(shorts.rev(), MOST_COUNTED).into_iter().rev() {
        if comm.as_ref().is_none_or(|comm| comm.context() != label.context) {
            comm = Comm::find(light, label.context);
        }
        if let Some(awaits) = awaits_message(comm.as_ref(), label.is_send, label.peer, label.tag) {
            tell(awaits);
        }
    }
}
