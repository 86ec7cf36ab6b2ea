//! What the death of a peer ends, and what it leaves.
//!
//! A device tells of a death in two places, in either order:
//! - a send fails: nothing reaches the peer any more, but what it has sent may still be arriving. Sends to it end.
//! - a poll fails, once, after all that it had sent: the peer is *silent*. Receives end that need it.
//!
//! Everything ends with [`Failure::PeerDied`], which names the peer. What has arrived whole stays; what does not need the peer goes on.

use super::{Direct, DirectPhase, Job, State, Unexpected};
use crate::arriving::{Arrival, Target};
use crate::matching::{EntryId, Pattern};
use crate::request::{Completion, Failure, Phase, RequestId};
use limosa_device::{DeviceError, Peer};

/// Whether a receive on a context, from a rank or from any, may need a peer: that rank is the peer, or the peer is a member of the context's group.
/// Asked under the engine's lock, and only when a peer has died.
pub type Concerns = dyn Fn(u64, Option<i32>, Peer) -> bool + Send + Sync;

/// The peers that have died.
#[derive(Default)]
pub(crate) struct Deaths {
    dead: Vec<Dead>,
    concerns: Option<Box<Concerns>>,
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

    /// Why a receive with this pattern may never get a message.
    fn concerning(&self, pattern: &Pattern) -> Option<Failure> {
        let concerned = |dead: &&Dead| {
            dead.is_silent && self.concerns.as_ref().is_none_or(|concerns| concerns(pattern.context, pattern.source, dead.peer))
        };
        self.dead.iter().find(concerned).map(|dead| dead.failure.clone())
    }
}

impl State {
    /// A device has failed while it was polled, or while a packet was sent.
    #[cold]
    pub fn device_failed(&mut self, error: DeviceError, while_polled: bool) {
        match error {
            DeviceError::Died { peer, .. } => self.peer_died(peer, error.into(), while_polled),
            _ => self.break_down(error.into()),
        }
    }

    /// A message could not be sent: what its sender is told.
    #[cold]
    pub fn send_failed(&mut self, error: DeviceError) -> Failure {
        if let DeviceError::Died { peer, .. } = error {
            let failure = Failure::from(error);
            self.peer_died(peer, failure.clone(), false);
            return failure;
        }
        error.into()
    }

    fn peer_died(&mut self, peer: Peer, failure: Failure, is_silent: bool) {
        match self.deaths.dead.iter_mut().find(|dead| dead.peer == peer) {
            Some(dead) => dead.is_silent |= is_silent,
            None => self.deaths.dead.push(Dead { peer, failure: failure.clone(), is_silent }),
        }
        self.impaired = true;
        // Threads that wait for a message to be there have to look too.
        self.completed = true;
        self.end_sends_to(peer, &failure);
        if is_silent {
            self.end_receives_from(peer, &failure);
        }
    }

    /// Why nothing can be sent to this peer, and nothing fetched from it, if so.
    #[inline]
    pub fn unreachable(&self, peer: Peer) -> Option<Failure> {
        if self.impaired { self.why_unreachable(peer) } else { None }
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
        if self.matcher.probe(pattern).is_some() { None } else { self.deaths.concerning(pattern) }
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
    }

    fn end_receives_from(&mut self, peer: Peer, failure: &Failure) {
        self.end_arrival(peer, failure);
        for id in self.requests.in_phase(|phase| matches!(phase, Phase::Streaming { peer: from, .. } if *from == peer)) {
            self.interest -= 1;
            self.complete(id, Completion::failed(failure.clone()));
        }
        for job in self.take_jobs(|job| matches!(job, Job::Pull(pull) if pull.from == peer)) {
            if let Job::Pull(pull) = job {
                self.complete(pull.request, Completion::failed(failure.clone()));
            }
        }
        if let Some(Direct { pattern, region, phase: phase @ DirectPhase::Waiting }) = &mut self.direct
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
                let is_it = |u: &Unexpected| matches!(u, Unexpected::Arriving { from, slot: s, .. } if *from == peer && *s == slot);
                if let Some(message) = self.matcher.take_where(&envelope, is_it) {
                    self.release(&message);
                    drop(self.arrivals.take(peer, slot, || Target::Kept(slot)));
                }
            }
        }
    }

    /// Takes out the jobs that nobody has begun and for which `wanted` holds.
    fn take_jobs(&mut self, wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (taken, left) = std::mem::take(&mut self.jobs).into_iter().partition(wanted);
        self.jobs = left;
        taken
    }
}
