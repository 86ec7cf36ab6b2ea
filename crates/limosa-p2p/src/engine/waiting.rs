//! Waiting and progress: what a thread does while it is blocked in the engine and when it leaves it, and what the
//! helper and the alarm thread do while none is there.

use super::sleepers::Awaited;
use super::{Core, Engine, Observer, View, Wait};
use crate::handlers;
use crate::interrupt::{self, Asking, Interrupted};
use crate::request::Failure;
use crate::state::{Job, State};
use crate::transfer::{self, Pull, Push};
use limosa_base::biased::Guard;
use limosa_base::doorbell::{State as Bell, Turn};
use limosa_base::futex::Wakened;
use limosa_base::{clock, cpu, thread};
use limosa_device::{DeathWatch, Peer, Urgency};
use smallvec::SmallVec;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

thread_local! {
    /// This is the helper or the alarm thread.
    static SERVICE: Cell<bool> = const { Cell::new(false) };
}

/// True on the helper and the alarm thread, which have small stacks and are unknown to the program: no function of the
/// program may run there.
pub fn in_service() -> bool {
    SERVICE.get()
}

/// Polls between looks at the clock.
const POLLS_PER_LOOK: u32 = 64;
/// Polls before yielding the processor when processes outnumber processors: a partner that is running right now may be
/// about to answer.
const POLLS_SCARCE: u32 = 8;
/// How long a call yields the processor again and again before it sleeps, in nanoseconds. Yielding costs less than
/// sleeping and being woken, and lets every other process of this processor run.
const YIELDING_NS: u64 = 60_000;
/// How long a sender waits for an offer to be taken before it has the receiver's helper woken, in nanoseconds: a
/// receiver that is in the library takes about as long to copy a message of 64 KB.
const ANNOUNCE_NS: u64 = 8_000;
/// A sleeping call with a backlog polls again after this time, because the receiver may have left the library when it
/// was asked for room.
const BACKLOG_SLEEP: Duration = Duration::from_millis(1);
/// Every such sleep in a row that brings nothing is followed by one of twice its length, this many times.
const MOST_DOUBLINGS: u32 = 7;
/// A polling call tells its observer after this time.
const POLL_REPORT_NS: u64 = 100_000_000;
/// The alarm thread does what a thread has left undone when it left the library, after this time.
pub(super) const LINGER: Duration = Duration::from_micros(100);
/// If a thread has come back meanwhile and has left something undone again, the time starts again, this often, and
/// grows up to this many times its length.
const MOST_AGAIN: u32 = 16;
const LONGEST_AGAIN: u32 = 4;
/// An attendant that wants to be called again is called after this time, then after twice as long, and so on,
/// [`MOST_DOUBLINGS`] times.
const REMINDER: Duration = Duration::from_millis(1);
/// Time between two attempts to start the thread that watches for deaths.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a blocked call has looked in vain.
#[derive(Default)]
struct Idle {
    polls: u32,
    /// When this kind of waiting ends, in nanoseconds.
    until: Option<u64>,
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
    /// Something moved, or it has slept.
    fn start_again(&mut self) {
        self.polls = 0;
        self.until = None;
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
            &mut |state| state.broken.is_some() || (!state.has_backlog() && state.sends_pending() == 0),
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
        let (mut woken, mut waits_for_new) = (false, true);
        core.state.may_stream = !self.oversubscribed;
        loop {
            let moved = self.progress(&mut core);
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
                core = self.run_jobs(core);
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
                (core, slept) = self.sleep(core, condition, observer, asking);
                core.state.wishes.remove(awaited);
                idle.start_again();
            }
            woken = !matches!(slept, Slept::NotAtAll);
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
                let now = clock::now_ns();
                let yields = now < *idle.until.get_or_insert(now + self.options.spin_ns.min(YIELDING_NS));
                if yields {
                    Guard::unlocked(core, cpu::yield_now);
                }
                yields
            }
            _ if !idle.polls.is_multiple_of(POLLS_PER_LOOK) => true,
            Wait::Auto => {
                Guard::bump(core);
                let now = clock::now_ns();
                let until = *idle.until.get_or_insert(now + self.options.spin_ns);
                if now + self.options.spin_ns >= until + ANNOUNCE_NS {
                    self.announce(core);
                }
                now < until
            }
            Wait::Poll => {
                self.announce(core);
                Guard::bump(core);
                if self.oversubscribed {
                    Guard::unlocked(core, cpu::yield_now);
                }
                let now = clock::now_ns();
                if !idle.reported && now > *idle.until.get_or_insert(now + POLL_REPORT_NS) {
                    idle.reported = true;
                    Guard::unlocked(core, || observer.blocked());
                }
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

    /// Sleeps until something may have changed. `asking`: when it asks meanwhile whether the program is interrupted.
    fn sleep<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
        asking: Option<&mut Asking>,
    ) -> (Guard<'a, Core>, Slept) {
        let backlog = core.state.has_backlog();
        let longest = backlog.then(|| BACKLOG_SLEEP * (1 << core.sleeps_in_vain.min(MOST_DOUBLINGS)));
        core.sleeps_in_vain += u32::from(backlog);
        let mut slept = Slept::NotAtAll;
        if backlog {
            let core = &mut *core;
            core.state.want_room(&mut core.devices);
        }
        self.announce(&mut core);
        core.sleepers += 1;
        observer.arrange();
        let turn = self.doorbell.set_asleep();
        // The look that makes the doorbell's handshake complete.
        let moved = self.progress(&mut core);
        let sleeps = !moved && !core.state.has_jobs(true) && !condition(&mut core.state);
        if sleeps {
            core.state.traffic.sleeps += 1;
            core.devices.watch_again();
            self.wake_others(&mut core);
            // Observers may ask the engine, so they run without its lock. A ring in the meantime makes the sleep return
            // at once.
            Guard::unlocked(&mut core, || {
                observer.blocked();
                self.leave_place();
                slept = self.sleep_patiently(turn, longest, asking, observer);
                self.find_place();
                if !self.oversubscribed && self.doorbell.rung_from_here() {
                    cpu::step_aside();
                }
                observer.resumed();
            });
        }
        observer.retract();
        core.sleepers -= 1;
        (core, slept)
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
            moved |= state.flush(devices);
        }
        moved
    }

    /// As [`Engine::progress`], for a visit that waits for nothing: when too much is held already, packets stay on
    /// their lanes.
    fn progress_unasked(&self, core: &mut Core) -> bool {
        if !core.state.is_full() {
            return self.progress(core);
        }
        core.state.held_back = true;
        core.state.has_backlog() && core.state.flush(&mut core.devices)
    }

    /// The helper's progress.
    fn progress_in_service(&self, core: &mut Core) -> bool {
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

    /// Ends a visit to the engine: runs jobs, wakes threads whose requests are done, states who is where.
    ///
    /// What only matters if no thread comes back soon is left to the alarm: telling others' helpers about offers, and
    /// having the own helper see to unfinished schedules. Both would cost more than what they are for in a program that
    /// goes on communicating.
    #[inline]
    pub(super) fn leave<'a>(&'a self, mut core: Guard<'a, Core>) {
        if core.is_quiet() && self.doorbell.is(Bell::Away) {
            core.state.completed = false;
            return;
        }
        self.leave_something(core);
    }

    /// As [`Engine::leave`], when something may have to be done for others.
    #[inline(never)]
    fn leave_something<'a>(&'a self, mut core: Guard<'a, Core>) {
        let Core { devices, state, .. } = &mut *core;
        state.unannounced.retain(|(peer, _)| !devices.is_attended(*peer));
        let put_off = !core.state.unannounced.is_empty()
            || core.devices.is_unwatched()
            || (core.state.continuations > 0 && !self.doorbell.is(Bell::AwayAll))
            || self.has_looked_for_sleepers(&core);
        if put_off && !self.set_alarm_soon(&mut core) {
            return self.leave_for_good(core);
        }
        self.leave_for(core, put_off);
    }

    /// Calls the attendant, and again later if it wants that.
    fn attend(&self, core: &mut Guard<'_, Core>) {
        if let Some(attendant) = self.attendant.get()
            && Guard::unlocked(core, attendant)
        {
            self.set_reminder(core);
            core.reminders += 1;
        }
    }

    /// Sets the alarm for calling the attendant. The time grows with the number of reminders in a row.
    pub(super) fn set_reminder(&self, core: &mut Core) {
        self.set_alarm(core, REMINDER * (1 << core.reminders.min(MOST_DOUBLINGS)));
    }

    /// Sets the alarm to go off after [`LINGER`]; false if it cannot be set.
    pub(super) fn set_alarm_soon(&self, core: &mut Core) -> bool {
        let count = self.put_off.load(Ordering::Relaxed).wrapping_add(1);
        self.put_off.store(count, Ordering::Relaxed);
        if core.alarm == Some(LINGER) {
            return true;
        }
        self.put_off_then.store(count, Ordering::Relaxed);
        self.set_alarm(core, LINGER)
    }

    /// Sets the alarm, unless it is set to the same or a shorter time already: the sooner alarm wins. False if it
    /// cannot be set.
    fn set_alarm(&self, core: &mut Core, after: Duration) -> bool {
        if core.alarm.is_some_and(|set| set <= after) {
            return true;
        }
        if self.stopping.load(Ordering::Relaxed) || !self.has_alarm_thread() {
            return false;
        }
        let is_set = self.alarm.set(after);
        core.alarm = is_set.then_some(after);
        is_set
    }

    pub(super) fn has_alarm_thread(&self) -> bool {
        let mut running = self.alarm_thread.lock();
        if running.is_none() && self.options.independent_progress {
            *running = self.this.upgrade().and_then(|engine| {
                thread::spawn_without_signals("limosa-alarm", move || engine.serve("alarm", Engine::run_alarm)).ok()
            });
        }
        running.is_some()
    }

    /// The frame of the engine's own threads. A panic in one of them would end independent progress without a word, so
    /// it ends the job.
    pub(super) fn serve(&self, name: &str, body: impl FnOnce(&Engine)) {
        SERVICE.set(true);
        cpu::take_short_turns();
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(self))) else { return };
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        let reason = format!("an internal error of Limosa in its {name} thread, please report it: {text}");
        match self.panic_hook.get() {
            Some(end_job) => end_job(&reason),
            None => {
                eprintln!("limosa: {reason}");
                std::process::abort();
            }
        }
    }

    /// The alarm thread: does what a thread that left the library has put off.
    ///
    /// If a thread has been there again meanwhile, it is not gone: the alarm is put off too, without the lock, since a
    /// lock that changes hands and woken helpers would cost a program that goes on communicating a third of its time.
    fn run_alarm(&self) {
        let mut again = 0;
        loop {
            if !self.alarm.wait() || self.stopping.load(Ordering::Acquire) {
                return;
            }
            let now = self.put_off.load(Ordering::Relaxed);
            if now != self.put_off_then.swap(now, Ordering::Relaxed) && again < MOST_AGAIN {
                again += 1;
                self.alarm.set(LINGER * again.min(LONGEST_AGAIN));
                continue;
            }
            again = 0;
            let mut core = self.core.lock();
            core.alarm = None;
            self.attend(&mut core);
            self.leave_for_good(core);
        }
    }

    /// As [`Engine::leave`], leaving nothing to the alarm.
    pub(super) fn leave_for_good<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.announce(&mut core);
        core.devices.watch_again();
        self.leave_for(core, false);
    }

    /// Ends a visit, leaving the doorbell in the state for a process without threads in the library, unless some sleep.
    /// `put_off`: the alarm is set, and sees to unfinished schedules.
    #[inline]
    pub(super) fn leave_for<'a>(&'a self, mut core: Guard<'a, Core>, put_off: bool) {
        let by_program = !core.state.for_program.is_empty() && !in_service();
        let mut moved = false;
        loop {
            if core.state.has_jobs(by_program) {
                core = self.run_jobs(core);
                continue;
            }
            if core.sleepers > 0 {
                self.wake_sleepers(&mut core);
                if !self.doorbell.is_polled() {
                    return;
                }
                if put_off && core.alarm.is_some() && self.has_looked_for_sleepers(&core) {
                    // This thread probably comes back soon. Until the alarm goes off, every visit looks for them.
                    if self.progress_unasked(&mut core) {
                        continue;
                    }
                    return;
                }
                // Sleepers may rely on this thread's look.
                self.hand_over(&core);
                return;
            }
            core.state.completed = false;
            // Jobs ran without the lock: schedules may have ended or begun meanwhile, and the alarm may have gone off.
            let by_alarm = put_off && core.alarm.is_some();
            let rest = if core.state.continuations > 0 && !by_alarm { Bell::AwayAll } else { Bell::Away };
            if core.state.has_backlog() {
                let core = &mut *core;
                core.state.want_room(&mut core.devices);
            } else if self.doorbell.is(rest) && !moved {
                return;
            } else if rest == Bell::Away && !core.state.serves_urgently() {
                self.doorbell.set_away_lazily();
                return;
            }
            self.doorbell.set(rest);
            // A look takes a part of what has arrived. Nobody rings again for the rest, so this thread looks until it
            // finds nothing.
            moved = self.progress_unasked(&mut core);
            if !moved && !core.state.has_jobs(by_program) {
                if !by_alarm {
                    core.devices.watch_again();
                }
                return;
            }
        }
    }

    /// The helper thread: serves what cannot wait while no thread is in the library. It also starts the thread that
    /// watches for deaths when the first look is due: a short job has ended by then, and does without.
    pub(super) fn run_helper(&self) {
        let mut deaths = self
            .deaths
            .as_ref()
            .filter(|_| self.has_company)
            .map(|deaths| (Instant::now() + DeathWatch::FIRST_LOOK, deaths));
        loop {
            let is_called = self.doorbell.helper_wait(deaths.map(|(due, _)| due));
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            if let Some((due, watcher)) = deaths
                && Instant::now() >= due
            {
                // Where there can be no more threads now there may be later.
                let is_started = self.this.upgrade().is_some_and(|engine| watcher.start(&engine).is_ok());
                deaths = (!is_started).then(|| (Instant::now() + AGAIN, watcher));
            }
            if is_called {
                self.help_once();
            }
        }
    }

    /// Does what the helper thread does when it is called.
    pub fn help_once(&self) {
        let mut core = self.core.lock();
        core.state.traffic.helped += 1;
        self.attend(&mut core);
        loop {
            if !core.state.jobs.is_empty() {
                core = self.run_jobs(core);
            } else if !self.progress_in_service(&mut core) {
                break;
            }
            Guard::bump(&mut core);
        }
        self.leave_for_good(core);
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
