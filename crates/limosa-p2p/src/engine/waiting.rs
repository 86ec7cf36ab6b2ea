//! Waiting and progress: what a thread does while it is blocked in the engine.

use super::leaving::in_service;
use super::sleepers::Awaited;
use super::{Core, Engine, Observer, View, Wait};
use crate::handlers;
use crate::interrupt::{self, Asking, Interrupted};
use crate::request::{Failure, RequestId};
use crate::state::{Job, State};
use crate::transfer::{self, Pull, Push};
use limosa_base::biased::Guard;
use limosa_base::doorbell::Turn;
use limosa_base::futex::Wakened;
use limosa_base::{clock, cpu};
use limosa_device::{Peer, Urgency};
use smallvec::SmallVec;
use std::time::Duration;

/// Polls between looks at the clock.
const POLLS_PER_LOOK: u32 = 64;
/// Polls before yielding the processor when processes outnumber processors: a partner that is running right now may be
/// about to answer.
const POLLS_SCARCE: u32 = 8;
/// How long a call yields the processor again and again before it sleeps, in nanoseconds. Yielding costs less than
/// sleeping and being woken, and lets every other process of this processor run.
const YIELDING_NS: u64 = 60_000;
/// How many times as long it looks before it sleeps while a device's watcher rests: it would have to be woken by the
/// watcher, which has to be woken first.
const FAR_FACTOR: u64 = 4;
/// How long a sender waits for an offer to be taken before it has the receiver's helper woken, in nanoseconds: a
/// receiver that is in the library takes about as long to copy a message of 64 KB.
const ANNOUNCE_NS: u64 = 8_000;
/// A sleeping call with a backlog polls again after this time, because the receiver may have left the library when it
/// was asked for room.
const BACKLOG_SLEEP: Duration = Duration::from_millis(1);
/// Every such sleep in a row that brings nothing is followed by one of twice its length, this many times.
pub(super) const MOST_DOUBLINGS: u32 = 7;
/// A polling call tells its observer after this time.
const POLL_REPORT_NS: u64 = 100_000_000;

/// How long a blocked call has looked in vain.
#[derive(Default)]
struct Idle {
    polls: u32,
    /// When it looked at the clock first, in nanoseconds.
    since: Option<u64>,
    /// A call that polls has told its observer that it waits.
    reported: bool,
    /// When a call that polls asks whether it is interrupted, in nanoseconds; 0: not yet known.
    ask_at: u64,
    /// A call that polls is to ask now.
    asks_now: bool,
    /// When a call that sleeps asks.
    asking: Asking,
}

/// How a sleep has ended.
enum Slept {
    /// There was something already.
    NotAtAll,
    /// Something may have changed.
    Woken,
    /// A signal has come, and nobody has asked what the program wants.
    Signalled,
    /// The program wants the call to end.
    Interrupted,
}

impl Idle {
    /// How long it has looked, in nanoseconds.
    fn time(&mut self) -> u64 {
        let now = clock::now_ns();
        now.saturating_sub(*self.since.get_or_insert(now))
    }

    /// Something moved, or it has slept.
    fn start_again(&mut self) {
        self.polls = 0;
        self.since = None;
    }
}

impl Engine {
    /// Makes progress until `condition` holds. The condition is evaluated under the lock and must not call the engine.
    ///
    /// Whoever makes it hold sees to it that a thread that sleeps here looks: a handler of packets by
    /// [`Actions::notify`](crate::handlers::Actions::notify), anybody else in this process by [`Engine::notify`],
    /// another process by ringing ([`HostMemory::ring`](limosa_device::shm::HostMemory::ring)). The engine does so for
    /// requests that had begun before the call, and for all that shows in a [`View`] besides.
    ///
    /// # Errors
    /// [`Interrupted`]: it does not hold.
    pub fn block_on(
        &self,
        condition: &mut dyn FnMut(&View<'_>) -> bool,
        observer: &dyn Observer,
    ) -> Result<(), Interrupted> {
        self.block_with(&mut |state| condition(&View(state)), observer, Awaited::News)
    }

    /// As [`Engine::block_on`], for a condition that is only about requests that have begun before the call.
    ///
    /// # Errors
    /// [`Interrupted`]: it does not hold.
    pub fn block_on_requests(
        &self,
        condition: &mut dyn FnMut(&View<'_>) -> bool,
        observer: &dyn Observer,
    ) -> Result<(), Interrupted> {
        self.block_with(&mut |state| condition(&View(state)), observer, Awaited::Requests)
    }

    /// Waits until all messages that this process has started to send are on their way, for leaving in good order.
    ///
    /// # Errors
    /// [`Interrupted`]: some are not.
    pub fn drain(&self, observer: &dyn Observer) -> Result<(), Interrupted> {
        self.block_with(
            &mut |state| state.broken.is_some() || (!state.has_needed_backlog() && state.sends_pending() == 0),
            observer,
            Awaited::Anything,
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

    /// Waits until all packets have left the process.
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
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
        awaited: Awaited,
    ) -> Result<(), Interrupted> {
        let (core, waited) = self.wait_as(self.core.lock(), condition, observer, awaited);
        self.leave(core);
        waited
    }

    /// Makes progress until the condition holds, which is about requests that have begun, or until the program wants the
    /// call to end. The lock is given up for a while whenever something must be done without it.
    pub(super) fn wait_with<'a>(
        &'a self,
        core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
    ) -> (Guard<'a, Core>, Result<(), Interrupted>) {
        self.wait_as(core, condition, observer, Awaited::Requests)
    }

    /// As [`Engine::wait_with`], whatever the program wants: for what ends by itself.
    pub(super) fn wait_for_certain<'a>(
        &'a self,
        core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
    ) -> Guard<'a, Core> {
        self.wait_as(core, condition, observer, Awaited::CertainRequests).0
    }

    fn wait_as<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
        awaited: Awaited,
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
                // Something is under way after all. If nothing follows, the call says again that it waits.
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
                core.sleeps_in_vain = 0;
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
                core.state.requests.turn += u64::from(std::mem::take(&mut waits_for_new));
                let asking = if awaited != Awaited::CertainRequests { Some(&mut idle.asking) } else { None };
                core.state.wishes.add(awaited);
                (core, slept, moved_in_sleep) = self.sleep(core, condition, observer, asking);
                core.state.wishes.remove(awaited);
                idle.start_again();
            }
            // Otherwise it has looked itself.
            woken = matches!(slept, Slept::Signalled | Slept::Interrupted);
            let is_wanted = match slept {
                Slept::Signalled => {
                    self.hand_over(&core);
                    awaited != Awaited::CertainRequests && Guard::unlocked(&mut core, interrupt::wanted)
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

    /// Looks once more whether the call need not wait any longer, before it ends because the program wants so.
    #[cold]
    fn has_to_wait(&self, core: &mut Guard<'_, Core>, condition: &mut dyn FnMut(&mut State) -> bool) -> bool {
        self.progress(core);
        core.state.has_jobs(true) || !condition(&mut core.state)
    }

    /// Helps a receiver to copy an offered message of this process, if one is copying; true if it did.
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

    /// What a blocked call does between two polls that bring nothing, by mode of waiting; false when it is to sleep.
    #[inline]
    fn pause(&self, core: &mut Guard<'_, Core>, idle: &mut Idle, observer: &dyn Observer) -> bool {
        if idle.polls == 0 && self.options.wait != Wait::Block {
            self.look_out(core);
        }
        idle.polls += 1;
        match self.options.wait {
            Wait::Block => false,
            Wait::Auto if self.oversubscribed => {
                if idle.polls < POLLS_SCARCE {
                    return true;
                }
                self.announce(core);
                let yields = idle.time() < self.patience_ns(core, self.options.spin_ns.min(YIELDING_NS));
                if yields {
                    Guard::unlocked(core, cpu::yield_now);
                }
                yields
            }
            _ if !idle.polls.is_multiple_of(POLLS_PER_LOOK) => true,
            Wait::Auto => {
                Guard::bump(core);
                let time = idle.time();
                if time >= ANNOUNCE_NS {
                    self.announce(core);
                }
                time < self.patience_ns(core, self.options.spin_ns)
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
                        // Observers may ask the engine.
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

    /// How long a call looks before it sleeps, in nanoseconds, if that is `near` where only shared memory is used.
    fn patience_ns(&self, core: &Core, near: u64) -> u64 {
        if core.devices.is_unwatched() { near * FAR_FACTOR } else { near }
    }

    /// Sleeps until something may have changed; also whether anything has moved. `asking`: when it asks meanwhile whether
    /// the program is interrupted.
    ///
    /// A device that polls by a clock wakes the thread at each tick. The thread polls once per tick: the status board
    /// shows one long wait, and the device is polled no more often than its clock ticks.
    fn sleep<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
        mut asking: Option<&mut Asking>,
    ) -> (Guard<'a, Core>, Slept, bool) {
        let mut slept = Slept::NotAtAll;
        self.announce(&mut core);
        core.sleepers += 1;
        observer.arrange();
        let moved = loop {
            let backlog = core.state.has_backlog();
            let longest = backlog.then(|| BACKLOG_SLEEP * (1 << core.sleeps_in_vain.min(MOST_DOUBLINGS)));
            core.sleeps_in_vain += u32::from(backlog);
            if backlog {
                let core = &mut *core;
                core.state.want_room(&mut core.devices);
            }
            let turn = self.doorbell.set_asleep();
            // The look that makes the doorbell's handshake complete.
            let moved = self.progress(&mut core);
            let has_slept = matches!(slept, Slept::Woken);
            let is_attended = has_slept && self.attend(&mut core);
            if moved || is_attended || core.state.has_jobs(true) || condition(&mut core.state) {
                break moved;
            }
            core.state.traffic.sleeps += 1;
            core.devices.watch_again();
            self.wake_others(&mut core);
            // Observers may ask the engine, so they run without its lock. A ring in the meantime makes the sleep return
            // at once.
            Guard::unlocked(&mut core, || {
                if has_slept {
                    observer.woken_for_nothing();
                } else {
                    observer.blocked();
                }
                self.leave_place();
                slept = self.sleep_patiently(turn, longest, asking.as_deref_mut(), observer);
                self.find_place();
                if !self.oversubscribed && self.doorbell.rung_from_here() {
                    cpu::step_aside();
                }
            });
            if !matches!(slept, Slept::Woken) {
                break false;
            }
        };
        if !matches!(slept, Slept::NotAtAll) {
            Guard::unlocked(&mut core, || observer.resumed());
        }
        observer.retract();
        core.sleepers -= 1;
        (core, slept, moved)
    }

    /// Sleeps on the doorbell, and meanwhile tells the observer when it has run out of patience, and asks whether the
    /// program is interrupted. The status board shows one long wait.
    fn sleep_patiently(
        &self,
        turn: Turn,
        longest: Option<Duration>,
        mut asking: Option<&mut Asking>,
        observer: &dyn Observer,
    ) -> Slept {
        loop {
            let patience = observer.patience().filter(|patience| longest.is_none_or(|longest| *patience < longest));
            let next = patience.or(longest);
            let ask_in =
                asking.as_mut().and_then(|asking| asking.left()).filter(|left| next.is_none_or(|next| *left < next));
            match self.doorbell.sleep(turn, ask_in.or(next)) {
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

    /// Tells the helper threads of receivers about offers, in case that no thread of theirs is in the library.
    #[inline]
    pub(super) fn announce(&self, core: &mut Core) {
        if !core.state.unannounced.is_empty() {
            for (peer, _) in std::mem::take(&mut core.state.unannounced) {
                core.devices.alert(peer);
            }
        }
    }

    // ---- progress --------------------------------------------------------------------------------------------------

    /// Handles what has arrived and sends what waits; true if anything moved.
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
            let failure = nonsense_from(from, kind, state.handlers.find(kind).is_some());
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

    /// As [`Engine::progress`], for a visit that waits for nothing: when too much is held already, packets stay on
    /// their lanes.
    pub(super) fn progress_unasked(&self, core: &mut Core) -> bool {
        if !core.state.is_full() {
            return self.progress(core);
        }
        core.state.held_back = true;
        core.state.has_backlog() && core.state.flush(&mut core.devices, true)
    }

    /// The helper's progress.
    pub(super) fn progress_in_service(&self, core: &mut Core) -> bool {
        core.state.in_service = true;
        let moved = self.progress_unasked(core);
        core.state.in_service = false;
        moved
    }

    /// Does the jobs that must be done without the lock.
    pub(super) fn run_jobs<'a>(&'a self, mut core: Guard<'a, Core>) -> Guard<'a, Core> {
        let jobs = std::mem::take(&mut core.state.jobs);
        let reach = |push: &Push| core.devices.reach(push.to);
        let pushed_to: SmallVec<[_; 2]> =
            jobs.iter().filter_map(|job| if let Job::Push(push) = job { Some(reach(push)) } else { None }).collect();
        let mut pushed_to = pushed_to.into_iter();
        let for_program = if in_service() { Vec::new() } else { std::mem::take(&mut core.state.for_program) };
        if !for_program.is_empty() {
            self.hand_over(&core);
        }
        core.state.continuations -= for_program.len();
        drop(core);
        let mut pulls: Vec<(Pull, bool)> = Vec::new();
        for job in jobs {
            match job {
                Job::Pull(pull) => {
                    let done = self.memory.as_ref().is_some_and(|memory| pull.run(&**memory).is_ok());
                    pulls.push((pull, done));
                    // Tell the sender at once: it may be waiting for its buffer.
                    self.finish_pulls(&mut pulls);
                }
                Job::Push(push) => {
                    let at = pushed_to.next().flatten();
                    let done = self.memory.as_ref().zip(at).is_some_and(|(memory, at)| push.run(&**memory, at).is_ok());
                    let core = &mut *self.core.lock();
                    core.state.traffic.copied += u64::from(done);
                    core.state.finish_push(&mut core.devices, push.request, done);
                }
                Job::TakePackets => {
                    self.progress_unasked(&mut self.core.lock());
                }
                Job::Layer(job) => job(self),
                Job::Continue(then, end) => then(self, end),
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
                // Not allowed after all, or the sender has gone: streaming works without a right to its memory.
                state.accept(devices, pull, false);
            }
        }
    }
}

/// A packet that makes no sense.
#[cold]
fn nonsense_from(peer: Peer, kind: u8, is_known: bool) -> Failure {
    let why = if is_known || kind < handlers::FIRST_KIND {
        "that makes no sense"
    } else {
        "for which no handler is registered here"
    };
    Failure::Device(format!("process {peer} sent a packet of kind {kind} {why}"))
}
