//! Conditions that must hold when nothing moves any more, whatever the schedule (MPI-5, sections 3.5 and 3.8).

use crate::process::{Op, Process, Progress, What};
use crate::world::{World, is_member};
use limosa_p2p::Failure;
use limosa_p2p::matching::Pattern;
use std::collections::HashMap;

/// Judges all operations of the living processes.
pub fn judge(world: &World) {
    let mut received = HashMap::new();
    for (rank, process) in living(world) {
        for (index, op) in process.ops.iter().enumerate() {
            let context = format!("operation {index} of process {rank}");
            match &op.what {
                What::Send { .. } => judge_send(world, op, &context),
                What::Receive { pattern } => {
                    if let Some(message) = judge_receive(world, rank, pattern, op, &context)
                        && let Some(before) = received.insert(message, (rank, index))
                    {
                        panic!("message {message} was received twice, by {before:?} and {context}");
                    }
                }
            }
        }
    }
    for (rank, process) in living(world) {
        judge_order(world, rank, process, &received);
        judge_what_is_pending(world, process, &received);
    }
}

fn living(world: &World) -> impl Iterator<Item = (u32, &Process)> {
    (0..).zip(&world.processes).filter(|(_, process)| !process.is_dead)
}

fn is_dead(world: &World, process: u32) -> bool {
    world.processes[process as usize].is_dead
}

/// Returns whether the failure names a dead process for which `may_be` holds.
fn names_a_dead_one(world: &World, failure: &Failure, may_be: impl Fn(u32) -> bool) -> bool {
    let Failure::PeerDied(what) = failure else { return false };
    let names = |process: u32| what.starts_with(&format!("process {process} "));
    (0..world.size).any(|process| is_dead(world, process) && may_be(process) && names(process))
}

fn judge_send(world: &World, op: &Op, context: &str) {
    let What::Send { to, .. } = op.what else { return };
    match &op.progress {
        Progress::Over(end) => {
            if let Some(failure) = &end.failure {
                assert!(names_a_dead_one(world, failure, |process| process == to), "{context}: {failure}");
            }
            assert!(!end.cancelled || op.cancelled, "{context} was cancelled without a request");
        }
        _ => assert!(!is_dead(world, to), "{context} waits for the dead process {to}"),
    }
}

/// Returns whether a receive may need this process.
fn may_need(world: &World, pattern: &Pattern, process: u32) -> bool {
    pattern.source.map_or_else(|| is_member(pattern.context, process, world.size), |source| source as u32 == process)
}

/// Checks the completion of a receive. Returns the message that it got.
fn judge_receive(world: &World, rank: u32, pattern: &Pattern, op: &Op, context: &str) -> Option<usize> {
    let Progress::Over(end) = &op.progress else {
        let needed = (0..world.size).find(|&process| is_dead(world, process) && may_need(world, pattern, process));
        let is_held = matches!(op.progress, Progress::Held(_));
        assert!(is_held || needed.is_none(), "{context} waits for the dead process {needed:?}");
        return None;
    };
    if end.cancelled {
        assert!(op.cancelled, "{context} was cancelled without a request");
        return None;
    }
    match end.failure.as_deref() {
        None => {}
        Some(Failure::Truncated { .. }) => {}
        Some(failure) => {
            assert!(
                names_a_dead_one(world, failure, |process| may_need(world, pattern, process)),
                "{context}: {failure}"
            );
            // A message that fits one packet was there, whole, when it was probed.
            let was_there = op
                .foreseen
                .as_ref()
                .is_some_and(|seen| seen.bytes <= 4096 && !may_be_elsewhere(world, rank, pattern, seen.bytes));
            assert!(!was_there, "{context} failed although its message was there: {failure}");
            return None;
        }
    }
    let number = if end.bytes == 0 {
        let is_it = |message: &crate::world::Message| message.bytes.is_empty() && message.envelope.tag == end.tag;
        world
            .messages
            .iter()
            .position(is_it)
            .unwrap_or_else(|| panic!("{context} got an empty message that was never sent"))
    } else {
        u64::from_ne_bytes(op.got[..8].try_into().expect("eight bytes")) as usize
    };
    let message = world.messages.get(number).unwrap_or_else(|| panic!("{context} got bytes that were never sent"));
    assert!(op.got == message.bytes[..op.got.len()], "{context} got a damaged message {number}");
    assert_eq!((message.to, message.from as i32), (rank, end.source), "{context} got message {number}");
    assert_eq!(message.envelope.tag, end.tag, "{context} got message {number}");
    assert!(pattern.matches(&message.envelope), "{context} got message {number}, which it did not ask for");
    let is_cut = end.bytes < message.bytes.len() as u64;
    let is_said = matches!(
        end.failure.as_deref(),
        Some(Failure::Truncated { sent, room }) if *sent == message.bytes.len() as u64 && *room == end.bytes
    );
    assert_eq!(is_cut, is_said, "{context}, message {number}: {end:?}");
    if let Some(seen) = &op.foreseen
        && !may_be_elsewhere(world, rank, pattern, seen.bytes)
    {
        assert_eq!(
            (seen.source, seen.tag, seen.bytes),
            (end.source, end.tag, message.bytes.len() as u64),
            "{context} was probed otherwise"
        );
    }
    Some(number)
}

/// Checks that neither messages of one sender nor receives overtake each other.
fn judge_order(world: &World, rank: u32, process: &Process, received: &HashMap<usize, (u32, usize)>) {
    let mine = |message: &usize| received.get(message).filter(|(by, _)| *by == rank).map(|(_, index)| *index);
    let to_me: Vec<usize> = (0..world.messages.len()).filter(|&m| world.messages[m].to == rank).collect();
    for (at, &later) in to_me.iter().enumerate() {
        let Some(by) = mine(&later) else { continue };
        let What::Receive { pattern } = &process.ops[by].what else { continue };
        let envelope = &world.messages[later].envelope;
        for &earlier in &to_me[..at] {
            let other = &world.messages[earlier];
            if other.from != world.messages[later].from
                || !pattern.matches(&other.envelope)
                || is_withdrawn(world, earlier)
            {
                continue;
            }
            let by_earlier = mine(&earlier);
            let is_in_order = by_earlier.is_some_and(|index| index < by)
                || is_held(process, earlier, world)
                || consumed_by_failure(world, process, earlier, by);
            assert!(is_in_order, "message {later} overtook message {earlier} at process {rank}");
        }
        // An earlier receive must have completed by itself.
        for (index, op) in process.ops[..by].iter().enumerate() {
            let What::Receive { pattern } = &op.what else { continue };
            let waits = matches!(op.progress, Progress::Pending(_));
            assert!(
                !(waits && pattern.matches(envelope)),
                "operation {by} of process {rank} overtook operation {index}"
            );
        }
    }
}

/// Returns whether a message of a dead process may have gone to a receive that failed for that reason.
fn consumed_by_failure(world: &World, process: &Process, message: usize, before: usize) -> bool {
    let message = &world.messages[message];
    is_dead(world, message.from)
        && process.ops[..before].iter().any(|op| match (&op.what, &op.progress) {
            (What::Receive { pattern }, Progress::Over(end)) => {
                matches!(end.failure.as_deref(), Some(Failure::PeerDied(_))) && pattern.matches(&message.envelope)
            }
            _ => false,
        })
}

/// Returns whether a message was withdrawn by its sender, or may never have left it. Whether a dead sender's withdrawal
/// succeeded is unknown.
fn is_withdrawn(world: &World, message: usize) -> bool {
    let sender = &world.processes[world.messages[message].from as usize];
    let is_it = |op: &&Op| matches!(op.what, What::Send { message: number, .. } if number == message as u64);
    sender.ops.iter().find(is_it).is_some_and(|op| match &op.progress {
        Progress::Over(end) => end.cancelled || end.failure.is_some(),
        _ => op.cancelled && sender.is_dead,
    })
}

/// Returns whether the message that a probe has seen may not have been here, but at its sender: it was offered for want
/// of credit, or withdrawn before it was received.
fn may_be_elsewhere(world: &World, rank: u32, pattern: &Pattern, bytes: u64) -> bool {
    let is_it = |number: &usize| {
        let message = &world.messages[*number];
        message.to == rank && pattern.matches(&message.envelope) && message.bytes.len() as u64 == bytes
    };
    world.limits_credit || (0..world.messages.len()).filter(is_it).any(|number| is_withdrawn(world, number))
}

/// Checks the pending operations: no receive matches an unreceived message, and pending sends have unreceived messages.
fn judge_what_is_pending(world: &World, process: &Process, received: &HashMap<usize, (u32, usize)>) {
    for (index, op) in process.ops.iter().enumerate() {
        if !matches!(op.progress, Progress::Pending(_)) {
            continue;
        }
        match &op.what {
            What::Send { message, .. } => {
                assert!(
                    !received.contains_key(&(*message as usize)),
                    "message {message} was received, but its send waits"
                );
            }
            What::Receive { pattern } => {
                let is_left = |number: &usize| {
                    let message = &world.messages[*number];
                    let to_me = std::ptr::eq(&raw const world.processes[message.to as usize], process);
                    to_me
                        && !received.contains_key(number)
                        && !is_withdrawn(world, *number)
                        && !is_held(process, *number, world)
                        && !is_dead(world, message.from)
                        && pattern.matches(&message.envelope)
                };
                let left = (0..world.messages.len()).find(is_left);
                assert!(left.is_none(), "operation {index} waits although message {left:?} has arrived");
            }
        }
    }
}

/// Returns whether a matched probe may have taken the message.
fn is_held(process: &Process, message: usize, world: &World) -> bool {
    let envelope = &world.messages[message].envelope;
    process.ops.iter().any(|op| match &op.progress {
        Progress::Held(matched) => {
            (matched.completion().source, matched.completion().tag) == (envelope.source, envelope.tag)
        }
        _ => false,
    })
}
