//! What the death of a peer ends, and what it leaves.
//!
//! A device tells of a death in two places, in either order:
//! - a send fails: nothing reaches the peer any more, but what it has sent may still be arriving. Sends to it end.
//! - a poll fails, once, after all that it had sent: the peer is *silent*. Receives end that need it.
//!
//! So does the end of the exchange with a peer that lives, when a file between the two could not be written or read. A
//! peer of another job that leaves in good order ends the sends that wait for it, and nothing else.
//!
//! Everything ends with [`Failure::PeerDied`] or [`Failure::Severed`], which names the peer. What has arrived whole stays; what does not need
//! the peer goes on.
//!
//! Some contexts are those of a group that acts together (collectives): what happens there needs all members, also the
//! messages between two that live. Otherwise one of them would wait for another that has given up. The layer above
//! knows which contexts these are ([`Concerns`]). Nothing begins there, and nothing is said there, from the first sign
//! of the death on: what this process calls after a failed call would look like a disagreement to members that have not
//! heard of the death. For the same reason a death that is known here counts more than a disagreement.

use super::{Deferred, Direct, DirectPhase, Job, State, Unexpected};
use crate::arriving::{Arrival, Target};
use crate::handlers::{Actions, DeathHook};
use crate::matching::{EntryId, Pattern};
use crate::request::{Completion, Failure, Phase, RequestId};
use crate::wire;
use limosa_device::{DeviceError, Meta, Peer, Urgency};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// Whether an operation on a context may need a peer. Asked under the engine's lock, and only when a peer has died.
pub type Concerns = dyn Fn(u64, Needs, Peer) -> bool + Send + Sync;

/// Whom an operation needs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The process of this rank.
    Rank(i32),
    /// Any member of the context's group.
    Anybody,
    /// Nobody but processes that live.
    Living,
}

/// The peers that have died.
#[derive(Default)]
pub(crate) struct Deaths {
    dead: Vec<Dead>,
    /// Contexts of groups on which nothing can be done any more, and why: this process gave up a collective there, or
    /// the members disagree.
    ended: Vec<(u64, Failure)>,
    /// Pairs of others that exchange no more messages.
    parted: Vec<([Peer; 2], Failure)>,
    /// Members of such groups that have left in good order ([`wire::LEAVE`]).
    left: Vec<Peer>,
    concerns: Option<Box<Concerns>>,
    hooks: Vec<DeathHook>,
}

struct Dead {
    peer: Peer,
    failure: Failure,
    is_silent: bool,
}

impl Deaths {
    /// Says how to find out what a peer concerns. Without it every receive may need every peer.
    pub fn set_concerns(&mut self, concerns: Box<Concerns>) {
        self.concerns = Some(concerns);
    }

    /// Has a layer told of each death.
    pub fn add_hook(&mut self, hook: DeathHook) {
        self.hooks.push(hook);
    }

    fn of(&self, peer: Peer) -> Option<&Dead> {
        self.dead.iter().find(|dead| dead.peer == peer)
    }

    /// Nothing arrives from this peer any more.
    pub fn is_silent(&self, peer: Peer) -> bool {
        self.of(peer).is_some_and(|dead| dead.is_silent)
    }

    /// Nothing can be sent to this peer any more.
    pub fn includes(&self, peer: Peer) -> bool {
        self.of(peer).is_some()
    }

    /// Why nothing can be done on this context of a group any more, whether or not messages are there.
    fn end_of(&self, context: u64) -> Option<&Failure> {
        self.ended.iter().find(|(ended, _)| *ended == context).map(|(_, failure)| failure)
    }

    /// The members of the group of this context are known to disagree.
    pub fn disagree(&self, context: u64) -> bool {
        matches!(self.end_of(context), Some(Failure::Disagreement { .. }))
    }

    /// The contexts of the groups whose members disagree.
    pub fn disagreeing(&self) -> Vec<u64> {
        let disagree = |(_, failure): &&(u64, Failure)| matches!(failure, Failure::Disagreement { .. });
        self.ended.iter().filter(disagree).map(|(context, _)| *context).collect()
    }

    /// Why a send of this phase will never end, if its receiver has left: its group has ended, or it is in the middle
    /// of a message.
    fn abandoned(&self, phase: &Phase) -> Option<Failure> {
        let has_left = |peer: &Peer| self.left.contains(peer);
        match phase {
            Phase::Unmatched { peer, envelope } | Phase::Offered { peer, envelope, .. } if has_left(peer) => {
                self.end_of(envelope.context).cloned()
            }
            Phase::Feeding { peer, .. } if has_left(peer) => self.ended.last().map(|(_, failure)| failure.clone()),
            _ => None,
        }
    }

    /// Why a receive with this pattern may never get a message.
    fn concerning(&self, pattern: &Pattern) -> Option<Failure> {
        self.needed(pattern.context, pattern.source.map_or(Needs::Anybody, Needs::Rank))
    }

    /// Why an operation that needs these processes will never end, if so.
    fn needed(&self, context: u64, needs: Needs) -> Option<Failure> {
        if let Some(failure) = self.end_of(context) {
            return Some(failure.clone());
        }
        let concerned = |dead: &&Dead| {
            let without_answer = needs != Needs::Living;
            (dead.is_silent || needs == Needs::Living)
                && self.concerns.as_ref().map_or(without_answer, |concerns| concerns(context, needs, dead.peer))
        };
        let dead = self.dead.iter().find(concerned).map(|dead| dead.failure.clone());
        dead.or_else(|| {
            // What a group does together needs them both.
            let concerns = self.concerns.as_ref()?;
            let needs_both = |pair: &[Peer; 2]| pair.iter().all(|peer| concerns(context, Needs::Living, *peer));
            self.parted.iter().find(|(pair, _)| needs_both(pair)).map(|(_, failure)| failure.clone())
        })
    }
}

impl State {
    /// A device has failed while it was polled, or while a packet was sent.
    #[cold]
    pub fn device_failed(&mut self, error: DeviceError, while_polled: bool) {
        match error {
            DeviceError::Died { peer, .. } => self.peer_died(peer, error.into(), while_polled),
            DeviceError::Left { peer, .. } => self.end_sends_to(peer, &error.into()),
            DeviceError::Severed { peer, ref what } => {
                if while_polled {
                    self.tell_of_parting(peer, what);
                }
                self.peer_died(peer, error.into(), while_polled);
            }
            _ => self.break_down(error.into()),
        }
    }

    /// A message could not be sent: what its sender is told.
    #[cold]
    pub fn send_failed(&mut self, error: DeviceError) -> Failure {
        if let DeviceError::Died { peer, .. } | DeviceError::Severed { peer, .. } = error {
            let failure = Failure::from(error);
            self.peer_died(peer, failure.clone(), false);
            return failure;
        }
        error.into()
    }

    /// Tells the others that this process and a peer exchange no more messages: what a group of theirs does together
    /// will never end.
    fn tell_of_parting(&mut self, peer: Peer, what: &str) {
        let others = (0..self.backlog.len() as Peer).filter(|other| ![peer, self.rank].contains(other));
        for to in others.filter(|to| !self.deaths.includes(*to)).collect::<Vec<_>>() {
            let meta = Meta { kind: wire::PARTED, words: [peer.into(), 0] };
            let data = SmallVec::from_slice(wire::cut(what).as_bytes());
            self.deferred.push(Deferred::Packet { to, meta, data, urgency: Urgency::Urgent });
        }
    }

    /// Two others exchange no more messages. False if the packet makes no sense.
    #[cold]
    pub fn others_parted(&mut self, from: Peer, meta: &Meta, data: &[u8]) -> bool {
        let Some((peer, what)) = wire::parting(meta, data) else { return false };
        let pair = [from.min(peer), from.max(peer)];
        if peer == self.rank || self.deaths.parted.iter().any(|(known, _)| *known == pair) {
            return true;
        }
        let [first, second] = pair;
        let detail = format!("processes {first} and {second} cannot exchange messages any more: {what}");
        self.deaths.parted.push((pair, Failure::Severed(detail)));
        self.impair();
        self.end_lost_receives();
        self.recall_sends();
        true
    }

    /// This process has given up a collective on this context, because the program was interrupted: whatever it does
    /// there from now on would be taken for something else.
    #[cold]
    pub fn fall_out_of_step(&mut self, context: u64) {
        self.refuse(context, Failure::OutOfStep);
    }

    /// The members of the group of this context disagree: what is under way there ends, and nothing begins there any
    /// more. False if that was known, or nothing could be done there before.
    #[cold]
    pub fn end_group(&mut self, context: u64, failure: Failure) -> bool {
        if self.lost_group(context).is_some() || !self.refuse(context, failure.clone()) {
            return false;
        }
        self.end_queued(context, &failure);
        self.end_lost_receives();
        self.recall_sends();
        self.end_abandoned_sends();
        self.give_back_held(context);
        true
    }

    /// A member of a group whose members disagree has left in good order: it answers nothing any more.
    #[cold]
    pub fn peer_left(&mut self, peer: Peer) {
        if !self.deaths.left.contains(&peer) {
            self.deaths.left.push(peer);
        }
        self.end_abandoned_sends();
    }

    /// Ends the sends of groups that have ended whose receivers have left: they would wait for an answer for ever.
    fn end_abandoned_sends(&mut self) {
        if self.deaths.left.is_empty() {
            return;
        }
        // What a thread is copying stays its own until it is done: see `State::helped`.
        let busy = self.joints.busy;
        let is_free = |phase: &Phase| match phase {
            Phase::Offered { joint, .. } => joint.is_none_or(|index| busy & (1 << index) == 0),
            _ => true,
        };
        for id in self.requests.in_phase(is_free) {
            let failure = self.requests.get(id).and_then(|request| self.deaths.abandoned(&request.phase));
            if let Some(failure) = failure {
                self.fail_send(id, &failure);
            }
        }
        let requests = &self.requests;
        self.feeding.retain(|id| requests.get(*id).is_some_and(|r| matches!(r.phase, Phase::Feeding { .. })));
        self.completed = true;
    }

    /// Gives back the messages of this context that nobody will receive here and that wait at their senders: this
    /// process may not be there any more when they ask.
    fn give_back_held(&mut self, context: u64) {
        let held = self.matcher.unexpected().filter(|(envelope, _)| envelope.context == context);
        let offered = held.filter_map(|(envelope, message)| match message {
            Unexpected::Offer { from, offer } => Some((*envelope, *from, offer.send)),
            _ => None,
        });
        for (envelope, from, send) in offered.collect::<Vec<_>>() {
            let is_it =
                |u: &Unexpected| matches!(u, Unexpected::Offer { from: f, offer } if *f == from && offer.send == send);
            if let Some(message) = self.matcher.take_where(&envelope, is_it) {
                self.release(&message);
                self.give_back(from, send);
            }
        }
    }

    /// Gives back a message that a peer has offered and nobody will receive.
    pub fn give_back(&mut self, to: Peer, send: u64) {
        let meta = wire::about(wire::RECALLED, send, 1);
        self.deferred.push(Deferred::Packet { to, meta, data: SmallVec::new(), urgency: Urgency::Urgent });
    }

    /// Nothing begins on this context any more; false if that was known.
    fn refuse(&mut self, context: u64, failure: Failure) -> bool {
        let is_new = self.deaths.end_of(context).is_none();
        if is_new {
            self.deaths.ended.push((context, failure));
            self.impair();
        }
        is_new
    }

    fn peer_died(&mut self, peer: Peer, failure: Failure, is_silent: bool) {
        match self.deaths.dead.iter_mut().find(|dead| dead.peer == peer) {
            Some(dead) => dead.is_silent |= is_silent,
            None => self.deaths.dead.push(Dead { peer, failure: failure.clone(), is_silent }),
        }
        self.impair();
        self.end_sends_to(peer, &failure);
        if is_silent {
            self.end_receives_from(peer, &failure);
            self.recall_sends();
            for hook in &mut self.deaths.hooks {
                hook(
                    &mut Actions { deferred: &mut self.deferred, jobs: &mut self.jobs, completed: &mut self.completed },
                    peer,
                    &failure,
                );
            }
        }
    }

    /// Asks for messages back whose receivers live, but may not want them any more because somebody else has died.
    fn recall_sends(&mut self) {
        let offered = self.requests.in_phase(|phase| matches!(phase, Phase::Unmatched { .. } | Phase::Offered { .. }));
        for id in offered {
            let Some(Phase::Unmatched { peer, envelope } | Phase::Offered { peer, envelope, .. }) =
                self.requests.get(id).map(|r| r.phase)
            else {
                continue;
            };
            if self.deaths.needed(envelope.context, Needs::Living).is_some() {
                let (meta, data) =
                    (wire::enveloped(wire::RECALL, &envelope), SmallVec::from_slice(&id.to_wire().to_ne_bytes()));
                self.deferred.push(Deferred::Packet { to: peer, meta, data, urgency: Urgency::Urgent });
            }
        }
    }

    /// A peer has given a message back; false if it had none. The program has cancelled it, or it is not wanted any
    /// more because somebody has died.
    pub fn given_back(&mut self, from: Peer, id: RequestId) -> bool {
        let context = match self.requests.get(id).map(|r| r.phase) {
            Some(Phase::Unmatched { peer, envelope } | Phase::Offered { peer, envelope, .. }) if peer == from => {
                envelope.context
            }
            _ => return self.settle_send_to(from, id, true),
        };
        match self.lost_group(context) {
            Some(failure) => self.fail_send(id, &failure),
            None => self.settle_send(id, true),
        }
        true
    }

    /// Why nothing can be sent to this peer, and nothing fetched from it, if so.
    #[inline]
    pub fn unreachable(&self, peer: Peer) -> Option<Failure> {
        if self.impaired { self.why_unreachable(peer) } else { None }
    }

    /// Why nothing can be done on a context that needs all members of its group, if so.
    #[inline]
    pub fn lost_group(&self, context: u64) -> Option<Failure> {
        if self.impaired { self.why_lost_group(context) } else { None }
    }

    #[cold]
    fn why_lost_group(&self, context: u64) -> Option<Failure> {
        self.broken.clone().or_else(|| self.deaths.needed(context, Needs::Living))
    }

    #[cold]
    fn why_unreachable(&self, peer: Peer) -> Option<Failure> {
        self.broken.clone().or_else(|| self.deaths.of(peer).map(|dead| dead.failure.clone()))
    }

    /// Why a receive with this pattern will get no message, if so: none is there, and none comes.
    #[cold]
    pub fn lost(&mut self, pattern: &Pattern) -> Option<Failure> {
        if self.broken.is_some() {
            return self.broken.clone();
        }
        if let Some(failure) = self.deaths.end_of(pattern.context) {
            return Some(failure.clone());
        }
        if self.matcher.probe(pattern).is_some() {
            return None;
        }
        self.deaths.concerning(pattern).or_else(|| self.deaths.needed(pattern.context, Needs::Living))
    }

    /// Ends a send that waited for its receiver.
    pub fn fail_send(&mut self, id: RequestId, failure: &Failure) {
        self.interest -= 1;
        self.unannounced.retain(|(_, offer)| *offer != id);
        self.complete(id, Completion::failed(failure.clone()));
    }

    fn end_sends_to(&mut self, peer: Peer, failure: &Failure) {
        // The peer stays on the list of those with a backlog, where the next look finds nothing for it.
        for packet in std::mem::take(&mut self.backlog[peer as usize]) {
            if let Some(request) = packet.request() {
                self.complete(request, Completion::failed(failure.clone()));
            }
        }
        let busy = self.joints.busy;
        // What a thread is copying stays its own until it is done: see `State::helped` and `State::finish_push`.
        let waits = |phase: &Phase| match phase {
            Phase::Unmatched { peer: to, .. } | Phase::Feeding { peer: to, .. } => *to == peer,
            Phase::Offered { peer: to, joint, .. } => *to == peer && joint.is_none_or(|index| busy & (1 << index) == 0),
            _ => false,
        };
        for id in self.requests.in_phase(waits) {
            self.fail_send(id, failure);
        }
        let requests = &self.requests;
        self.feeding.retain(|id| requests.get(*id).is_some_and(|r| matches!(r.phase, Phase::Feeding { .. })));
        for job in self.take_jobs(|job| matches!(job, Job::Push(push) if push.to == peer)) {
            if let Job::Push(push) = job {
                self.fail_send(push.request, failure);
            }
        }
    }

    /// A thread has stopped helping with an offered message: its receiver may have died meanwhile.
    #[cold]
    pub fn end_sends_to_the_dead(&mut self) {
        let dead: Vec<_> = self.deaths.dead.iter().map(|dead| (dead.peer, dead.failure.clone())).collect();
        for (peer, failure) in dead {
            self.end_sends_to(peer, &failure);
        }
        self.end_abandoned_sends();
    }

    fn end_receives_from(&mut self, peer: Peer, failure: &Failure) {
        self.end_arrival(peer, failure);
        let comes = |phase: &Phase| match phase {
            Phase::Streaming { peer: from, .. } | Phase::Filling { peer: from } => *from == peer,
            _ => false,
        };
        for id in self.requests.in_phase(comes) {
            self.interest -= 1;
            self.complete(id, Completion::failed(failure.clone()));
        }
        for job in self.take_jobs(|job| matches!(job, Job::Pull(pull) if pull.from == peer)) {
            if let Job::Pull(pull) = job {
                self.complete(pull.request, Completion::failed(failure.clone()));
            }
        }
        self.end_lost_receives();
    }

    /// Ends the receives that will get no message any more.
    fn end_lost_receives(&mut self) {
        if let Some(Direct { pattern, region, phase: phase @ DirectPhase::Waiting, .. }) = &mut self.direct
            && let Some(failure) = self.deaths.concerning(pattern)
        {
            self.interest -= usize::from(region.len() > self.eager_limit);
            *phase = DirectPhase::Done(Completion::failed(failure));
        }
        for (entry, pattern) in self.matcher.posted() {
            if let Some(failure) = self.deaths.concerning(&pattern) {
                self.end_posted(entry, failure);
            }
        }
    }

    fn end_posted(&mut self, entry: EntryId, failure: Failure) {
        let Some(id) = self.matcher.withdraw(entry) else { return };
        let is_large = self.requests.get(id).is_some_and(|r| r.region.len() > self.eager_limit);
        self.interest -= usize::from(is_large);
        self.complete(id, Completion::failed(failure));
    }

    /// Ends the message whose parts were coming from a peer.
    fn end_arrival(&mut self, peer: Peer, failure: &Failure) {
        let Some(Arrival { envelope, target, .. }) = self.arrivals.from(peer).take() else { return };
        match target {
            Target::Direct => {
                if let Some(direct) = &mut self.direct {
                    direct.phase = DirectPhase::Done(Completion::failed(failure.clone()));
                }
            }
            Target::Request(id, _) => self.complete(id, Completion::failed(failure.clone())),
            Target::Kept(slot) => {
                // If a matched probe has taken it, it fails when it is received.
                let is_it = |u: &Unexpected| match u {
                    Unexpected::Arriving { from, slot: s, .. } => *from == peer && *s == slot,
                    _ => false,
                };
                if let Some(message) = self.matcher.take_where(&envelope, is_it) {
                    self.release(&message);
                    drop(self.arrivals.take(peer, slot, || Target::Kept(slot)));
                }
            }
        }
    }

    /// Another process has this peer's number now.
    pub fn forget(&mut self, peer: Peer) {
        let failure = Failure::from(DeviceError::Died { peer, what: "another process has its number now" });
        self.end_sends_to(peer, &failure);
        self.end_arrival(peer, &failure);
        self.deaths.dead.retain(|dead| dead.peer != peer);
        self.deaths.left.retain(|left| *left != peer);
        self.deaths.parted.retain(|(pair, _)| !pair.contains(&peer));
        if self.broken.is_none()
            && self.deaths.parted.is_empty()
            && self.deaths.dead.is_empty()
            && self.deaths.ended.is_empty()
        {
            self.impaired = false;
            self.is_impaired.store(false, Ordering::Relaxed);
        }
    }

    /// Takes out the jobs that nobody has begun and for which `wanted` holds.
    fn take_jobs(&mut self, wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (taken, left) = std::mem::take(&mut self.jobs).into_iter().partition(wanted);
        self.jobs = left;
        taken
    }
}
