//! What becomes of that for which an interrupted call waits ([`crate::interrupt`]), and of what is under way in a group
//! whose members disagree.

use super::{Core, Engine, Observer, View};
use crate::interrupt::Interrupted;
use crate::request::{Completion, Failure, RequestId};
use crate::wire;
use limosa_base::biased::Guard;
use limosa_device::{Meta, Peer, Urgency};

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
    }

    /// The members of the group of this context disagree, as `detail` says: what is under way there ends with
    /// [`Failure::Disagreement`], here and at these peers, and nothing begins there any more. Does nothing if that is
    /// known here.
    #[cold]
    pub fn end_group(&self, context: u64, peers: impl Iterator<Item = Peer>, class: i32, detail: &str) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        let end = (0..=detail.len().min(wire::MAX_TEXT)).rev().find(|end| detail.is_char_boundary(*end)).unwrap_or(0);
        let detail = &detail[..end];
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
