//! Waiting and progress: the work of a thread that is blocked in the engine.

use super::leaving::in_service;
use super::sleepers::WaitReason;
use super::{Core, Engine, MAX_DOUBLINGS, Observer, View, Wait};
use crate::completion::{Failure, RequestId};
use crate::handlers;
use crate::interrupt::{self, Asking, Interrupted};
use crate::state::{ProtocolState, UnlockedJob};
use crate::transfer::{self, Pull, Push};
use limosa_base::biased::Guard;
use limosa_base::doorbell::SleepToken;
use limosa_base::futex::Wakened;
use limosa_base::{clock, cpu};
use limosa_device::{Peer, Urgency};
use smallvec::SmallVec;
use std::time::Duration;
use tracing::trace;

/// Polls between reads of the clock.
const POLLS_PER_CLOCK_READ: u32 = 64;
/// Polls before yielding when processes outnumber processors: a partner that is running right now may be about to
/// answer.
const POLLS_SCARCE: u32 = 8;
/// Time in nanoseconds for which a call yields repeatedly before it sleeps. Yielding costs less than a sleep and a
/// wake-up, and lets every other process of this processor run.
const YIELDING_NS: u64 = 60_000;
/// Factor of the spin limit while the watcher of a device is paused: a wake-up would then have to wake the watcher
/// first.
const FAR_FACTOR: u64 = 4;
/// The same while a device moves bytes of long messages: the partner is at work, too, and a part of a message takes
/// longer than a short message.
const TRANSFER_FACTOR: u64 = 20;
/// Time in nanoseconds for which a sender waits before it wakes the receiver's helper for an offer. A receiver in the
/// library needs about as long to copy a message of 64 KB.
const ANNOUNCE_NS: u64 = 8_000;
/// Time after which a sleeping call with a backlog polls again: the receiver may have left the library when it was
/// asked for room.
const BACKLOG_SLEEP: Duration = Duration::from_millis(1);
/// Time in nanoseconds after which a polling call reports to its observer.
const POLL_REPORT_NS: u64 = 100_000_000;

/// Progress of a blocked call's idle period.
#[derive(Default)]
struct Idle {
    polls: u32,
    /// Time of the first read of the clock, in nanoseconds.
    since: Option<u64>,
    /// Whether a polling call has reported that it waits.
    reported: bool,
    /// Time in nanoseconds of a polling call's next check for an interrupt; 0 if not yet known.
    ask_at: u64,
    /// Whether a polling call must check for an interrupt now.
    asks_now: bool,
    /// Schedule of a sleeping call's checks for an interrupt.
    asking: Asking,
}

/// How a sleep has ended.
enum Slept {
    /// Something was there before the sleep.
    NotAtAll,
    /// Woken: something may have changed.
    Woken,
    /// A signal has arrived; the interrupt hook has not been called yet.
    Signalled,
    /// The program wants the call to end.
    Interrupted,
}

impl Idle {
    /// Returns the duration of the idle period, in nanoseconds.
    fn time(&mut self) -> u64 {
        let now = clock::now_ns();
        now.saturating_sub(*self.since.get_or_insert(now))
    }

    /// Restarts the idle period, after progress or a sleep.
    fn start_again(&mut self) {
        self.polls = 0;
        self.since = None;
    }
}

impl Engine {
    /// Makes progress until `condition` holds. The condition is evaluated under the lock and must not call the engine.
    ///
    /// The party that makes the condition hold must wake sleeping callers: a packet handler by
    /// [`Actions::notify`](crate::handlers::Actions::notify), other code of this process by [`Engine::notify`], another
    /// process by ringing ([`HostMemory::ring`](limosa_device::shm::HostMemory::ring)). The engine does so for requests
    /// that had begun before the call, and for everything else that a [`View`] shows.
    ///
    /// # Errors
    /// [`Interrupted`]: the condition does not hold.
    pub fn block_on(
        &self,
        condition: &mut dyn FnMut(&View<'_>) -> bool,
        observer: &dyn Observer,
    ) -> Result<(), Interrupted> {
        self.block_with(&mut |state| condition(&View(state)), observer, WaitReason::News)
    }

    /// Waits like [`Engine::block_on`], for a condition that concerns only requests that have begun before the call.
    ///
    /// # Errors
    /// [`Interrupted`]: the condition does not hold.
    pub fn block_on_requests(
        &self,
        condition: &mut dyn FnMut(&View<'_>) -> bool,
        observer: &dyn Observer,
    ) -> Result<(), Interrupted> {
        self.block_with(&mut |state| condition(&View(state)), observer, WaitReason::Requests)
    }

    /// Waits until all started sends have left this process, for an orderly shutdown.
    ///
    /// # Errors
    /// [`Interrupted`]: some have not.
    pub fn drain(&self, observer: &dyn Observer) -> Result<(), Interrupted> {
        self.block_with(
            &mut |state| state.broken.is_some() || (!state.has_needed_backlog() && state.sends_pending() == 0),
            observer,
            WaitReason::Anything,
        )?;
        {
            let Core { devices, state, .. } = &mut *self.core.lock();
            if let Err(error) = devices.release() {
                state.device_failed(error, false);
            }
        }
        self.flush();
        Ok(())
    }

    /// Waits until all packets have left this process.
    fn flush(&self) {
        let mut pause = Duration::from_micros(20);
        loop {
            let mut core = self.core.lock();
            if core.devices.is_drained() || core.state.broken.is_some() {
                return;
            }
            let moved = self.progress(&mut core);
            drop(core);
            if !moved {
                std::thread::sleep(pause);
                pause = (2 * pause).min(Duration::from_millis(5));
            }
        }
    }

    pub(super) fn block_with(
        &self,
        condition: &mut dyn FnMut(&mut ProtocolState) -> bool,
        observer: &dyn Observer,
        reason: WaitReason,
    ) -> Result<(), Interrupted> {
        let (core, waited) = self.wait_as(self.core.lock(), condition, observer, reason);
        self.leave(core);
        waited
    }

    /// Makes progress until the condition, which concerns requests that have begun, holds, or until the program
    /// interrupts the call. Releases the lock temporarily for unlocked work.
    pub(super) fn wait_with<'a>(
        &'a self,
        core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut ProtocolState) -> bool,
        observer: &dyn Observer,
    ) -> (Guard<'a, Core>, Result<(), Interrupted>) {
        self.wait_as(core, condition, observer, WaitReason::Requests)
    }

    /// Waits like [`Engine::wait_with`], but uninterruptibly: for operations that are certain to complete.
    pub(super) fn wait_for_certain<'a>(
        &'a self,
        core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut ProtocolState) -> bool,
        observer: &dyn Observer,
    ) -> Guard<'a, Core> {
        self.wait_as(core, condition, observer, WaitReason::CertainRequests).0
    }

    fn wait_as<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut ProtocolState) -> bool,
        observer: &dyn Observer,
        reason: WaitReason,
    ) -> (Guard<'a, Core>, Result<(), Interrupted>) {
        let mut outcome = Ok(());
        let mut idle = Idle::default();
        let (mut moved_in_sleep, mut woken, mut waits_for_new) = (false, false, true);
        core.state.may_stream = !self.oversubscribed;
        core.waiters += 1;
        loop {
            let moved = self.progress(&mut core) | std::mem::take(&mut moved_in_sleep);
            let just_woken = std::mem::take(&mut woken);
            if just_woken {
                self.attend(&mut core);
            }
            if idle.reported && (moved || core.state.has_jobs(true)) {
                // There is progress after all. If no more follows, the call reports again that it waits.
                idle = Idle { polls: idle.polls, ..Idle::default() };
                Guard::unlocked(&mut core, || observer.resumed());
            }
            if core.state.has_jobs(true) {
                core.waiters -= 1;
                core = self.run_jobs(core);
                core.waiters += 1;
                waits_for_new = true;
                self.wake_sleepers(&mut core);
                continue;
            }
            if condition(&mut core.state) {
                break;
            }
            if core.state.joints.count > 0 && self.help_receiver(&mut core) {
                continue;
            }
            if moved {
                self.wake_sleepers(&mut core);
                idle.start_again();
                core.fruitless_sleeps = 0;
                continue;
            }
            if just_woken {
                observer.woken_for_nothing();
            }
            let slept;
            if self.pause(&mut core, &mut idle, observer) {
                if !std::mem::take(&mut idle.asks_now) {
                    continue;
                }
                slept = Slept::Signalled;
            } else {
                core.state.requests.epoch += u64::from(std::mem::take(&mut waits_for_new));
                let asking = if reason != WaitReason::CertainRequests { Some(&mut idle.asking) } else { None };
                core.state.sleep_conditions.add(reason);
                (core, slept, moved_in_sleep) = self.sleep(core, condition, observer, asking);
                core.state.sleep_conditions.remove(reason);
                // A signal to the program is no reason to poll again before the next sleep.
                if !matches!(slept, Slept::Signalled) {
                    idle.start_again();
                }
            }
            // Otherwise this thread has polled itself.
            woken = matches!(slept, Slept::Signalled | Slept::Interrupted);
            let is_wanted = match slept {
                Slept::Signalled => {
                    self.end_delegation(&core);
                    reason != WaitReason::CertainRequests && Guard::unlocked(&mut core, interrupt::wanted)
                }
                Slept::Interrupted => true,
                Slept::NotAtAll | Slept::Woken => false,
            };
            if is_wanted && self.has_to_wait(&mut core, condition) {
                outcome = Err(Interrupted);
                break;
            }
        }
        if idle.reported {
            Guard::unlocked(&mut core, || observer.resumed());
        }
        core.state.may_stream = false;
        core.waiters -= 1;
        (core, outcome)
    }

    /// Returns whether the call must still wait, before an interrupt ends it.
    #[cold]
    fn has_to_wait(&self, core: &mut Guard<'_, Core>, condition: &mut dyn FnMut(&mut ProtocolState) -> bool) -> bool {
        self.progress(core);
        core.state.has_jobs(true) || !condition(&mut core.state)
    }

    /// Helps a receiver with the joint copy of a message of this process. Returns whether there was one.
    fn help_receiver(&self, core: &mut Guard<'_, Core>) -> bool {
        if self.oversubscribed {
            return false;
        }
        let Some(memory) = &self.memory else { return false };
        let Some(help) = core.joint_to_help() else { return false };
        Guard::unlocked(core, || transfer::help(&**memory, help.me, help.joint, help.to, &help.region));
        core.state.helped(help.joint);
        true
    }

    /// Pauses a blocked call between two polls without progress, by its waiting strategy. Returns false when it is to
    /// sleep.
    #[inline]
    fn pause(&self, core: &mut Guard<'_, Core>, idle: &mut Idle, observer: &dyn Observer) -> bool {
        if idle.polls == 0 && self.options.wait != Wait::Block {
            self.delegate_polling(core);
        }
        idle.polls += 1;
        match self.options.wait {
            Wait::Block => false,
            Wait::Auto if self.oversubscribed => {
                if idle.polls < POLLS_SCARCE {
                    return true;
                }
                self.announce(core);
                let yields = idle.time() < self.spin_limit_ns(core, self.options.spin_ns.min(YIELDING_NS));
                if yields {
                    Guard::unlocked(core, cpu::yield_now);
                }
                yields
            }
            _ if !idle.polls.is_multiple_of(POLLS_PER_CLOCK_READ) => true,
            Wait::Auto => {
                Guard::bump(core);
                let time = idle.time();
                if time >= ANNOUNCE_NS {
                    self.announce(core);
                }
                time < self.spin_limit_ns(core, self.options.spin_ns)
            }
            Wait::Poll => {
                self.announce(core);
                Guard::bump(core);
                if self.oversubscribed {
                    Guard::unlocked(core, cpu::yield_now);
                }
                if !idle.reported && idle.time() > POLL_REPORT_NS {
                    idle.reported = true;
                    Guard::unlocked(core, || observer.blocked());
                }
                let now = clock::now_ns();
                if now > idle.ask_at {
                    idle.asks_now = idle.ask_at > 0 && interrupt::may_come();
                    idle.ask_at = now + interrupt::ASK_AFTER.as_nanos() as u64;
                    if idle.reported {
                        // Observers may call the engine.
                        Guard::unlocked(core, || {
                            if observer.patience().is_some_and(|patience| patience.is_zero()) {
                                observer.overdue();
                            }
                        });
                    }
                }
                true
            }
        }
    }

    /// Returns the spin limit in nanoseconds, which is `near` where only shared memory is used.
    fn spin_limit_ns(&self, core: &Core, near: u64) -> u64 {
        match core.devices.is_unwatched() {
            false => near,
            true if core.devices.is_transferring() => near * TRANSFER_FACTOR,
            true => near * FAR_FACTOR,
        }
    }

    /// Sleeps until something may have changed. Also returns whether there was progress. `asking`: schedule of the
    /// checks for an interrupt.
    ///
    /// A device that polls by a clock wakes the thread at each tick. The thread polls once per tick, so that the status
    /// board shows one long wait, and the device is not polled more often than its clock ticks.
    fn sleep<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut ProtocolState) -> bool,
        observer: &dyn Observer,
        mut asking: Option<&mut Asking>,
    ) -> (Guard<'a, Core>, Slept, bool) {
        let mut slept = Slept::NotAtAll;
        self.announce(&mut core);
        core.sleepers += 1;
        observer.arrange();
        let moved = loop {
            let backlog = core.state.has_backlog();
            let longest = backlog.then(|| BACKLOG_SLEEP * (1 << core.fruitless_sleeps.min(MAX_DOUBLINGS)));
            core.fruitless_sleeps += u32::from(backlog);
            if backlog {
                let core = &mut *core;
                core.state.want_room(&mut core.devices);
            }
            // A ring from before the sleep says nothing about the place of the wake-up.
            let _ = self.watcher_ring.take();
            let token = self.doorbell.set_asleep();
            // The poll that completes the doorbell's handshake.
            let moved = self.progress(&mut core);
            let has_slept = matches!(slept, Slept::Woken);
            let is_attended = has_slept && self.attend(&mut core);
            if moved || is_attended || core.state.has_jobs(true) || condition(&mut core.state) {
                break moved;
            }
            trace!("sleeps");
            core.state.traffic.sleeps += 1;
            core.devices.watch_again();
            self.wake_others(&mut core);
            // Observers may call the engine, so they run without its lock. A ring in the meantime ends the sleep at
            // once.
            Guard::unlocked(&mut core, || {
                if has_slept {
                    observer.woken_for_nothing();
                } else {
                    observer.blocked();
                }
                self.publish_sleep();
                slept = self.sleep_patiently(token, longest, asking.as_deref_mut(), observer);
                self.publish_wake_up();
                self.leave_partner();
            });
            if !matches!(slept, Slept::Woken) {
                break false;
            }
        };
        if !matches!(slept, Slept::NotAtAll) {
            Guard::unlocked(&mut core, || observer.resumed());
        }
        trace!("awake");
        observer.retract();
        core.sleepers -= 1;
        (core, slept, moved)
    }

    /// Moves this thread, which has woken, to another processor if it shares one with a busy partner.
    fn leave_partner(&self) {
        if self.oversubscribed {
            return;
        }
        match self.watcher_ring.take() {
            Some(ring) => ring.to_follow(cpu::current(), self.options.spin_ns).into_iter().for_each(cpu::move_onto),
            None if self.doorbell.rung_from_here() => cpu::step_aside(),
            None => {}
        }
    }

    /// Sleeps on the doorbell. Meanwhile reports an overdue wait to the observer, and checks for an interrupt. The
    /// status board shows one long wait.
    fn sleep_patiently(
        &self,
        token: SleepToken,
        longest: Option<Duration>,
        mut asking: Option<&mut Asking>,
        observer: &dyn Observer,
    ) -> Slept {
        loop {
            let patience = observer.patience().filter(|patience| longest.is_none_or(|longest| *patience < longest));
            let next = patience.or(longest);
            let ask_in =
                asking.as_mut().and_then(|asking| asking.left()).filter(|left| next.is_none_or(|next| *left < next));
            match self.doorbell.sleep(token, ask_in.or(next)) {
                Wakened::BySignal => return Slept::Signalled,
                Wakened::TooLate if ask_in.is_some() => {
                    if asking.as_mut().is_some_and(|asking| asking.ask()) {
                        return Slept::Interrupted;
                    }
                }
                Wakened::TooLate if patience.is_some() => observer.overdue(),
                _ => return Slept::Woken,
            }
        }
    }

    /// Announces offers to the receivers' helper threads, in case that no other thread of theirs is in the library.
    #[inline]
    pub(super) fn announce(&self, core: &mut Core) {
        if !core.state.unannounced.is_empty() {
            for (peer, _) in std::mem::take(&mut core.state.unannounced) {
                core.devices.alert(peer);
            }
        }
    }

    // ---- progress --------------------------------------------------------------------------------------------------

    /// Handles arrived packets and sends backlogged ones. Returns whether there was progress.
    pub(super) fn progress(&self, core: &mut Core) -> bool {
        let Core { devices, state, answers, .. } = core;
        if state.broken.is_some() {
            return false;
        }
        let mut nonsense = None;
        let polled = devices.poll(&mut |from, meta, data| {
            if !state.handle(from, meta, data, answers) {
                nonsense = Some((from, meta.kind));
            }
        });
        while let Some(note) = devices.next_ended() {
            state.ended_straight(RequestId::from_wire(note));
        }
        let mut moved = match polled {
            Ok(moved) => moved,
            Err(error) => {
                state.device_failed(error, true);
                true
            }
        };
        if let Some((from, kind)) = nonsense {
            let failure = invalid_packet(from, kind, state.handlers.find(kind).is_some());
            state.break_down(failure);
        }
        if moved && !(answers.is_empty() && state.deferred.is_empty()) {
            for (to, meta) in answers.drain(..) {
                state.control(devices, to, meta, &[], Urgency::Normal);
            }
            state.run_deferred(devices);
        }
        if state.has_backlog() {
            let polled = devices.has_polled_others();
            moved |= state.flush(devices, polled);
        }
        moved
    }

    /// Makes progress like [`Engine::progress`], for a visit that waits for nothing: when too much is held already,
    /// packets stay on their lanes.
    pub(super) fn progress_unasked(&self, core: &mut Core) -> bool {
        if !core.state.is_full() {
            return self.progress(core);
        }
        core.state.held_back = true;
        core.state.has_backlog() && core.state.flush(&mut core.devices, true)
    }

    /// Makes progress on the helper thread.
    pub(super) fn progress_in_service(&self, core: &mut Core) -> bool {
        core.state.in_service = true;
        let moved = self.progress_unasked(core);
        core.state.in_service = false;
        moved
    }

    /// Runs the jobs that need the lock released.
    pub(super) fn run_jobs<'a>(&'a self, mut core: Guard<'a, Core>) -> Guard<'a, Core> {
        let jobs = std::mem::take(&mut core.state.jobs);
        let reach = |push: &Push| core.devices.reach(push.to);
        let pushed_to: SmallVec<[_; 2]> = jobs
            .iter()
            .filter_map(|job| if let UnlockedJob::Push(push) = job { Some(reach(push)) } else { None })
            .collect();
        let mut pushed_to = pushed_to.into_iter();
        let for_program = if in_service() { Vec::new() } else { std::mem::take(&mut core.state.for_program) };
        if !for_program.is_empty() {
            self.end_delegation(&core);
        }
        core.state.continuations -= for_program.len();
        drop(core);
        let mut pulls: Vec<(Pull, bool)> = Vec::new();
        for job in jobs {
            match job {
                UnlockedJob::Pull(pull) => {
                    let done = self.memory.as_ref().is_some_and(|memory| pull.run(&**memory).is_ok());
                    pulls.push((pull, done));
                    // The sender learns at once: it may be waiting for its buffer.
                    self.finish_pulls(&mut pulls);
                }
                UnlockedJob::Push(push) => {
                    let at = pushed_to.next().flatten();
                    let done = self.memory.as_ref().zip(at).is_some_and(|(memory, at)| push.run(&**memory, at).is_ok());
                    let core = &mut *self.core.lock();
                    core.state.traffic.copied += u64::from(done);
                    core.state.finish_push(&mut core.devices, push.request, done);
                }
                UnlockedJob::TakePackets => {
                    self.progress_unasked(&mut self.core.lock());
                }
                UnlockedJob::Layer(job) => job(self),
                UnlockedJob::Continue(then, end) => then(self, end),
            }
        }
        for_program.into_iter().for_each(|job| job(self));
        self.core.lock()
    }

    pub(super) fn finish_pulls(&self, pulls: &mut Vec<(Pull, bool)>) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        for (pull, done) in pulls.drain(..) {
            if done {
                state.traffic.copied += 1;
                state.finish_fetch(devices, pull.request, pull.from, pull.offer.send);
            } else {
                // The access was refused, or the sender has gone. Streaming needs no access to its memory.
                state.accept(devices, pull, false);
            }
        }
    }
}

/// Returns the failure for an invalid packet.
#[cold]
fn invalid_packet(peer: Peer, kind: u8, is_known: bool) -> Failure {
    let problem = if is_known || kind < handlers::FIRST_KIND {
        format!("an invalid packet of kind {kind}")
    } else {
        format!("a packet of unknown kind {kind}")
    };
    Failure::Device(format!(
        "received {problem} from process {peer}; do the processes run different versions of Limosa?"
    ))
}
