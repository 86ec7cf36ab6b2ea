//! Withdrawal of operations: those for which an interrupted call waits ([`crate::interrupt`]), and those of a group
//! whose members disagree.

use super::{Core, Engine, Observer, View};
use crate::completion::{Completion, Failure, RequestId};
use crate::interrupt::Interrupted;
use crate::wire;
use limosa_base::biased::Guard;
use limosa_device::{Meta, Peer, Urgency};
use std::time::Duration;

/// Attempts, a millisecond apart, of a leaving process to find room for its farewell.
const FAREWELL_ATTEMPTS: u32 = 100;

/// Translates the cancellation of an operation, which only an interrupted call can have requested.
pub(super) fn interrupted_if_cancelled(end: Completion) -> Completion {
    if end.cancelled { Interrupted.completion() } else { end }
}

impl Engine {
    /// Waits until the operation is complete. If the program interrupts the call, cancels the operation first, if
    /// possible.
    pub(super) fn wait_or_withdraw<'a>(
        &'a self,
        core: Guard<'a, Core>,
        id: RequestId,
        observer: &dyn Observer,
    ) -> Guard<'a, Core> {
        let (core, waited) = self.wait_with(core, &mut |state| View(state).is_done(id), observer);
        if waited.is_ok() { core } else { self.withdraw(core, id, observer) }
    }

    /// Cancels the operation, or waits for its completion if a partner is copying already. Both are certain to end.
    #[cold]
    fn withdraw<'a>(&'a self, mut core: Guard<'a, Core>, id: RequestId, observer: &dyn Observer) -> Guard<'a, Core> {
        let core_ref = &mut *core;
        core_ref.state.cancel(&mut core_ref.devices, id);
        self.wait_for_certain(core, &mut |state| View(state).is_done(id), observer)
    }

    /// Ends the direct receive, or waits for its completion if its message has begun to arrive.
    #[cold]
    pub(super) fn withdraw_direct<'a>(&'a self, mut core: Guard<'a, Core>, observer: &dyn Observer) -> Guard<'a, Core> {
        core.state.end_direct_unless_begun(Interrupted.completion());
        self.wait_for_certain(core, &mut |state| state.direct_done(), observer)
    }

    /// Cancels these operations, and waits until all are complete.
    pub fn withdraw_all(&self, ids: impl Iterator<Item = RequestId>, observer: &dyn Observer) {
        let mut core = self.core.lock();
        for id in ids {
            core = self.withdraw(core, id, observer);
        }
        self.leave(core);
    }

    /// Records that this process has abandoned a collective operation on this context, which can then no longer be
    /// used.
    #[cold]
    pub fn fall_out_of_step(&self, context: u64) {
        self.core.lock().state.fall_out_of_step(context);
        self.notify();
    }

    /// Returns the contexts of groups whose members are known to disagree.
    pub fn ended_groups(&self) -> Vec<u64> {
        self.core.lock().state.deaths.disagreeing()
    }

    /// Announces to these peers, members of groups that disagree, that this process leaves: they may wait for its
    /// answers.
    #[cold]
    pub fn say_farewell(&self, peers: &[Peer]) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        for peer in peers.iter().filter(|peer| **peer != self.rank) {
            state.control(devices, *peer, Meta { kind: wire::LEAVE, words: [0; 2] }, &[], Urgency::Urgent);
        }
        state.run_deferred(devices);
        for _ in 0..FAREWELL_ATTEMPTS {
            if !core.state.has_backlog() {
                break;
            }
            Guard::unlocked(&mut core, || std::thread::sleep(Duration::from_millis(1)));
            self.progress(&mut core);
        }
        // A device may hold back packets that this process would never send otherwise.
        let _ = core.devices.release();
        self.leave(core);
    }

    /// Records that these peers have left in good order, and answer nothing more. Sends to them in groups that have
    /// ended fail: they would wait for ever.
    #[cold]
    pub fn peers_left(&self, peers: impl Iterator<Item = Peer>) {
        let mut core = self.core.lock();
        peers.for_each(|peer| core.state.peer_left(peer));
        self.leave(core);
        self.notify();
    }

    /// Ends the group of this context, because its members disagree as `detail` says. Pending operations fail with
    /// [`Failure::Disagreement`], here and at these peers, and none can begin. Without effect if the group has ended
    /// before.
    #[cold]
    pub fn end_group(&self, context: u64, peers: impl Iterator<Item = Peer>, class: i32, detail: &str) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        let detail = wire::cut(detail);
        if state.end_group(context, Failure::Disagreement { class, detail: detail.to_owned() }) {
            let meta = Meta { kind: wire::END_GROUP, words: [context, class as u64] };
            for peer in peers.filter(|peer| *peer != self.rank) {
                state.control(devices, peer, meta, detail.as_bytes(), Urgency::Urgent);
            }
            state.run_deferred(devices);
        }
        self.progress(&mut core);
        self.leave(core);
        self.notify();
    }
}
