//! What becomes of that for which an interrupted call waits ([`crate::interrupt`]), and of what is under way in a group
//! whose members disagree.

use super::{Core, Engine, Observer, View};
use crate::interrupt::Interrupted;
use crate::request::{Completion, Failure, RequestId};
use crate::wire;
use limosa_base::biased::Guard;
use limosa_device::{Meta, Peer, Urgency};
use std::time::Duration;

/// How often a process that leaves looks for room for its farewell, a millisecond apart.
const FAREWELL_LOOKS: u32 = 100;

/// The end of an operation that only an interrupted call can have cancelled.
pub(super) fn interrupted_if_cancelled(end: Completion) -> Completion {
    if end.cancelled { Interrupted.completion() } else { end }
}

impl Engine {
    /// Waits until the operation is done. If the program is interrupted, the operation is cancelled first, if that can
    /// be done.
    pub(super) fn wait_or_withdraw<'a>(
        &'a self,
        core: Guard<'a, Core>,
        id: RequestId,
        observer: &dyn Observer,
    ) -> Guard<'a, Core> {
        let (core, waited) = self.wait_with(core, &mut |state| View(state).is_done(id), observer);
        if waited.is_ok() { core } else { self.withdraw(core, id, observer) }
    }

    /// Cancels the operation, or waits for its end if a partner is copying already. Either ends by itself.
    #[cold]
    fn withdraw<'a>(&'a self, mut core: Guard<'a, Core>, id: RequestId, observer: &dyn Observer) -> Guard<'a, Core> {
        let core_ref = &mut *core;
        core_ref.state.cancel(&mut core_ref.devices, id);
        self.wait_for_certain(core, &mut |state| View(state).is_done(id), observer)
    }

    /// Ends the direct receive, or waits for its end if its message has begun to arrive.
    #[cold]
    pub(super) fn withdraw_direct<'a>(&'a self, mut core: Guard<'a, Core>, observer: &dyn Observer) -> Guard<'a, Core> {
        core.state.end_direct_unless_begun(Interrupted.completion());
        self.wait_for_certain(core, &mut |state| state.direct_done(), observer)
    }

    /// Cancels these operations, and waits for the ends of all of them.
    pub fn withdraw_all(&self, ids: impl Iterator<Item = RequestId>, observer: &dyn Observer) {
        let mut core = self.core.lock();
        for id in ids {
            core = self.withdraw(core, id, observer);
        }
        self.leave(core);
    }

    /// This process has given up a collective operation on this context: nothing can be done there any more.
    #[cold]
    pub fn fall_out_of_step(&self, context: u64) {
        self.core.lock().state.fall_out_of_step(context);
        self.notify();
    }

    /// The contexts of the groups whose members disagree, as far as that is known here.
    pub fn ended_groups(&self) -> Vec<u64> {
        self.core.lock().state.deaths.disagreeing()
    }

    /// This process leaves: says so to these peers, members of groups that disagree, which may wait for its answers.
    #[cold]
    pub fn say_farewell(&self, peers: &[Peer]) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        for peer in peers.iter().filter(|peer| **peer != self.rank) {
            state.control(devices, *peer, Meta { kind: wire::LEAVE, words: [0; 2] }, &[], Urgency::Urgent);
        }
        state.run_deferred(devices);
        for _ in 0..FAREWELL_LOOKS {
            if !core.state.has_backlog() {
                break;
            }
            Guard::unlocked(&mut core, || std::thread::sleep(Duration::from_millis(1)));
            self.progress(&mut core);
        }
        // A device may hold packets back that this process would never send any more.
        let _ = core.devices.release();
        self.leave(core);
    }

    /// The members of the group of this context disagree, as `detail` says: what is under way there ends with
    /// [`Failure::Disagreement`], here and at these peers, and nothing begins there any more. Does nothing if that is
    /// known here.
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
