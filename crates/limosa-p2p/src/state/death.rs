//! Consequences of a peer's death.
//!
//! A device reports a death in two places, in either order:
//! - a send fails: nothing reaches the peer any more, but packets that it has sent may still be arriving. Sends to it
//!   fail.
//! - a poll fails, once, after everything that the peer had sent: the peer is *silent*. Receives that need it fail.
//!
//! The same happens when messages can no longer be exchanged with a living peer, because a file between the two could
//! not be written or read. A peer of another job that leaves in good order fails the sends that wait for it, and
//! nothing else.
//!
//! All these operations fail with [`Failure::PeerDied`] or [`Failure::Severed`], which names the peer. Messages that
//! have arrived whole stay; operations that do not need the peer continue.
//!
//! Some contexts are collective: operations there need all members, even messages between two living ones. Otherwise
//! one of them would wait for a member that has given up. The layer above knows these contexts ([`Concerns`]). From the
//! first sign of the death on, no operation begins there and no statement is sent there: a call of this process after a
//! failed call would look like a disagreement to members that do not know of the death. For the same reason a known
//! death takes precedence over a disagreement.

use super::{Deferred, Direct, DirectPhase, ProtocolState, Unexpected, UnlockedJob};
use crate::arriving::{Arrival, ArrivalTarget};
use crate::completion::{Completion, Failure, RequestId};
use crate::handlers::{Actions, DeathHook};
use crate::matching::{EntryId, Pattern};
use crate::request::Phase;
use crate::wire;
use limosa_device::{DeviceError, Meta, Peer, Urgency};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use tracing::warn;

/// Decides whether an operation on a context may need a peer. Called under the engine's lock, and only after a death.
pub type Concerns = dyn Fn(u64, Needs, Peer) -> bool + Send + Sync;

/// Peers that an operation itself needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The process of this rank.
    Rank(i32),
    /// Any member of the context's group.
    AnyMember,
    /// Only living processes.
    Living,
}

/// The peers that have died.
#[derive(Default)]
pub(crate) struct Deaths {
    dead: Vec<Dead>,
    /// Collective contexts that can no longer be used, with the reason: this process abandoned a collective there, or
    /// the members disagree.
    ended: Vec<(u64, Failure)>,
    /// Pairs of peers that exchange no more messages.
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
    /// Sets the function that decides which operations need a peer. Without it every receive may need every peer.
    pub fn set_concerns(&mut self, concerns: Box<Concerns>) {
        self.concerns = Some(concerns);
    }

    /// Registers a hook for deaths.
    pub fn add_hook(&mut self, hook: DeathHook) {
        self.hooks.push(hook);
    }

    fn of(&self, peer: Peer) -> Option<&Dead> {
        self.dead.iter().find(|dead| dead.peer == peer)
    }

    /// Returns whether nothing can arrive from this peer any more.
    pub fn is_silent(&self, peer: Peer) -> bool {
        self.of(peer).is_some_and(|dead| dead.is_silent)
    }

    /// Returns whether nothing can be sent to this peer any more.
    pub fn includes(&self, peer: Peer) -> bool {
        self.of(peer).is_some()
    }

    /// Returns the reason why a collective context can no longer be used, even if messages are held, if any.
    fn end_of(&self, context: u64) -> Option<&Failure> {
        self.ended.iter().find(|(ended, _)| *ended == context).map(|(_, failure)| failure)
    }

    /// Returns whether the members of the group of this context are known to disagree.
    pub fn disagree(&self, context: u64) -> bool {
        matches!(self.end_of(context), Some(Failure::Disagreement { .. }))
    }

    /// Returns the contexts of the groups whose members disagree.
    pub fn disagreeing(&self) -> Vec<u64> {
        let disagree = |(_, failure): &&(u64, Failure)| matches!(failure, Failure::Disagreement { .. });
        self.ended.iter().filter(disagree).map(|(context, _)| *context).collect()
    }

    /// Returns the reason why a send in this phase can never complete once its receiver has left, if any: its group has
    /// ended, or it is in the middle of a message.
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

    /// Returns the reason why a receive with this pattern may never get a message, if any.
    fn concerning(&self, pattern: &Pattern) -> Option<Failure> {
        self.needed(pattern.context, pattern.source.map_or(Needs::AnyMember, Needs::Rank))
    }

    /// Returns the reason why an operation that needs these processes can never complete, if any.
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
            // A collective operation of the group needs both.
            let concerns = self.concerns.as_ref()?;
            let needs_both = |pair: &[Peer; 2]| pair.iter().all(|peer| concerns(context, Needs::Living, *peer));
            self.parted.iter().find(|(pair, _)| needs_both(pair)).map(|(_, failure)| failure.clone())
        })
    }
}

impl ProtocolState {
    /// Records the failure of a device during a poll or a send.
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

    /// Records that a message could not be sent. Returns the failure for its sender.
    #[cold]
    pub fn send_failed(&mut self, error: DeviceError) -> Failure {
        if let DeviceError::Died { peer, .. } | DeviceError::Severed { peer, .. } = error {
            let failure = Failure::from(error);
            self.peer_died(peer, failure.clone(), false);
            return failure;
        }
        error.into()
    }

    /// Tells the other processes that this process and a peer exchange no more messages: collective operations that
    /// include both can never complete.
    fn tell_of_parting(&mut self, peer: Peer, what: &str) {
        let others = (0..self.backlog.len() as Peer).filter(|other| ![peer, self.rank].contains(other));
        for to in others.filter(|to| !self.deaths.includes(*to)).collect::<Vec<_>>() {
            let meta = Meta { kind: wire::PARTED, words: [peer.into(), 0] };
            let data = SmallVec::from_slice(wire::cut(what).as_bytes());
            self.deferred.push(Deferred::Packet { to, meta, data, urgency: Urgency::Urgent });
        }
    }

    /// Handles `PARTED`: two peers exchange no more messages. Returns false if the packet is invalid.
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

    /// Records that this process has abandoned a collective on this context after an interrupt: the other members would
    /// misinterpret its later messages there.
    #[cold]
    pub fn fall_out_of_step(&mut self, context: u64) {
        self.refuse(context, Failure::OutOfStep);
    }

    /// Ends the group of this context, because its members disagree: pending operations fail, and none can begin.
    /// Returns false if the context could not be used before.
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

    /// Handles `LEAVE`: a member of a group whose members disagree has left in good order, and answers no more.
    #[cold]
    pub fn peer_left(&mut self, peer: Peer) {
        if !self.deaths.left.contains(&peer) {
            self.deaths.left.push(peer);
        }
        self.end_abandoned_sends();
    }

    /// Ends the sends of ended groups whose receivers have left: they would wait for an answer for ever.
    fn end_abandoned_sends(&mut self) {
        if self.deaths.left.is_empty() {
            return;
        }
        // A message that a thread is copying stays until the thread has finished: see `ProtocolState::helped`.
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

    /// Returns the unmatched messages of this context to their senders, where they wait: this process may have left
    /// when they are recalled.
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

    /// Returns an offered message, which will not be received, to its sender.
    pub fn give_back(&mut self, to: Peer, send: u64) {
        let meta = wire::about(wire::RECALLED, send, 1);
        self.deferred.push(Deferred::Packet { to, meta, data: SmallVec::new(), urgency: Urgency::Urgent });
    }

    /// Closes this context for new operations. Returns false if it was closed.
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
        warn!("peer {peer} cannot be reached any more: {failure:?}");
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

    /// Recalls messages whose receivers are alive, but may not want them any more because a third process has died.
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

    /// Handles `RECALLED`: a peer has returned a message, because the program cancelled it or because a process has
    /// died. Returns false if the peer had none.
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

    /// Returns the reason why nothing can be sent to this peer, or pulled from it, if any.
    #[inline]
    pub fn unreachable(&self, peer: Peer) -> Option<Failure> {
        if self.impaired { self.why_unreachable(peer) } else { None }
    }

    /// Returns the reason why a collective context can no longer be used, if any.
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

    /// Returns the reason why a receive with this pattern can get no message, neither a held one nor a later one, if
    /// any.
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

    /// Fails a send that waited for its receiver.
    pub fn fail_send(&mut self, id: RequestId, failure: &Failure) {
        self.interest -= 1;
        self.unannounced.retain(|(_, offer)| *offer != id);
        self.complete(id, Completion::failed(failure.clone()));
    }

    fn end_sends_to(&mut self, peer: Peer, failure: &Failure) {
        // The peer stays on the list of backlogged peers; the next flush finds nothing for it.
        for packet in std::mem::take(&mut self.backlog[peer as usize]) {
            if let Some(request) = packet.request() {
                self.complete(request, Completion::failed(failure.clone()));
            }
        }
        let busy = self.joints.busy;
        // A message that a thread is copying stays until the thread has finished: see `ProtocolState::helped` and
        // `ProtocolState::finish_push`.
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
        for job in self.take_jobs(|job| matches!(job, UnlockedJob::Push(push) if push.to == peer)) {
            if let UnlockedJob::Push(push) = job {
                self.fail_send(push.request, failure);
            }
        }
    }

    /// Ends the sends to dead peers, after a thread has finished helping with an offered message: its receiver may have
    /// died meanwhile.
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
            Phase::Fetching { peer: from, .. }
            | Phase::Streaming { peer: from, .. }
            | Phase::Filling { peer: from } => *from == peer,
            _ => false,
        };
        for id in self.requests.in_phase(comes) {
            self.interest -= 1;
            self.complete(id, Completion::failed(failure.clone()));
        }
        for job in self.take_jobs(|job| matches!(job, UnlockedJob::Pull(pull) if pull.from == peer)) {
            if let UnlockedJob::Pull(pull) = job {
                self.complete(pull.request, Completion::failed(failure.clone()));
            }
        }
        self.end_lost_receives();
    }

    /// Fails the receives that can get no message any more.
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

    /// Fails the message whose segments were arriving from a peer.
    fn end_arrival(&mut self, peer: Peer, failure: &Failure) {
        let Some(Arrival { envelope, target, .. }) = self.arrivals.from(peer).take() else { return };
        match target {
            ArrivalTarget::Direct => {
                if let Some(direct) = &mut self.direct {
                    direct.phase = DirectPhase::Done(Completion::failed(failure.clone()));
                }
            }
            ArrivalTarget::Request(id, _) => self.complete(id, Completion::failed(failure.clone())),
            ArrivalTarget::Kept(slot) => {
                // A matched probe may have extracted it: the message then fails when it is received.
                let is_it = |u: &Unexpected| match u {
                    Unexpected::Arriving { from, slot: s, .. } => *from == peer && *s == slot,
                    _ => false,
                };
                if let Some(message) = self.matcher.take_where(&envelope, is_it) {
                    self.release(&message);
                    drop(self.arrivals.take(peer, slot, || ArrivalTarget::Kept(slot)));
                }
            }
        }
    }

    /// Resets a peer whose number belongs to another process now.
    pub fn forget(&mut self, peer: Peer) {
        let failure = Failure::from(DeviceError::Died { peer, what: "another process has its number now" });
        self.end_sends_to(peer, &failure);
        self.end_arrival(peer, &failure);
        self.credit.forget(peer);
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

    /// Takes out the jobs that have not begun and for which `wanted` holds.
    fn take_jobs(&mut self, wanted: impl Fn(&UnlockedJob) -> bool) -> Vec<UnlockedJob> {
        let (taken, left) = std::mem::take(&mut self.jobs).into_iter().partition(wanted);
        self.jobs = left;
        taken
    }
}
