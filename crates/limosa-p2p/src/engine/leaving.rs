//! Leaving the library: what a thread does before it returns to the program, and what the helper and the alarm thread do
//! while none is there.

use super::waiting::MOST_DOUBLINGS;
use super::{Core, Engine};
use limosa_base::biased::Guard;
use limosa_base::doorbell::State as Bell;
use limosa_base::{cpu, thread};
use limosa_device::DeathWatch;
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

/// The alarm thread does what a thread has left undone when it left the library, after this time.
pub(super) const LINGER: Duration = Duration::from_micros(100);
/// The same, if that is only to watch a device from which nothing is expected.
const LINGER_UNASKED: Duration = Duration::from_millis(1);
/// If a thread has come back meanwhile and has left something undone again, the time starts again, this often, and
/// grows up to this many times its length.
const MOST_AGAIN: u32 = 16;
const LONGEST_AGAIN: u32 = 4;
/// An attendant that wants to be called again is called after this time, then after twice as long, and so on,
/// [`MOST_DOUBLINGS`] times.
const REMINDER: Duration = Duration::from_millis(1);
/// Time between two attempts to start the thread that watches for deaths.
const AGAIN: Duration = Duration::from_secs(1);

impl Engine {
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
        let is_expected = !core.state.unannounced.is_empty()
            || (core.state.continuations > 0 && !self.doorbell.is(Bell::AwayAll))
            || self.has_looked_for_sleepers(&core)
            || (core.devices.is_unwatched() && core.state.serves_urgently());
        let put_off = is_expected || core.devices.is_unwatched();
        if put_off && !self.leave_to_alarm(&mut core, if is_expected { LINGER } else { LINGER_UNASKED }) {
            return self.leave_for_good(core);
        }
        self.leave_for(core, put_off);
    }

    /// Calls the attendant, and again later if it wants that; true if it does.
    pub(super) fn attend(&self, core: &mut Guard<'_, Core>) -> bool {
        let wants_more = self.attendant.get().is_some_and(|attendant| Guard::unlocked(core, attendant));
        if wants_more {
            self.set_reminder(core);
            core.reminders += 1;
        }
        wants_more
    }

    /// Sets the alarm for calling the attendant. The time grows with the number of reminders in a row.
    pub(super) fn set_reminder(&self, core: &mut Core) {
        self.set_alarm(core, REMINDER * (1 << core.reminders.min(MOST_DOUBLINGS)));
    }

    /// Sets the alarm to go off after [`LINGER`]; false if it cannot be set.
    pub(super) fn set_alarm_soon(&self, core: &mut Core) -> bool {
        self.leave_to_alarm(core, LINGER)
    }

    /// Leaves something to the alarm thread, after this time if no thread comes back; false if that cannot be.
    fn leave_to_alarm(&self, core: &mut Core, after: Duration) -> bool {
        let count = self.put_off.load(Ordering::Relaxed).wrapping_add(1);
        self.put_off.store(count, Ordering::Relaxed);
        if core.alarm.is_some_and(|set| set <= after) {
            return true;
        }
        self.put_off_then.store(count, Ordering::Relaxed);
        self.linger_us.store(after.as_micros() as u32, Ordering::Relaxed);
        self.set_alarm(core, after)
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
            let has_come_back = now != self.put_off_then.swap(now, Ordering::Relaxed);
            if has_come_back && again < MOST_AGAIN {
                again += 1;
                let linger = Duration::from_micros(self.linger_us.load(Ordering::Relaxed).into());
                self.alarm.set(linger * again.min(LONGEST_AGAIN));
                continue;
            }
            again = 0;
            let mut core = self.core.lock();
            core.alarm = None;
            self.attend(&mut core);
            if has_come_back && core.devices.is_unwatched() {
                self.look_for_watcher(core);
            } else {
                self.leave_for_good(core);
            }
        }
    }

    /// Has the watcher of a device rest on, since threads come and go, which see what comes from there. Should they look
    /// for nothing, this look is for them.
    fn look_for_watcher<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.progress_in_service(&mut core);
        self.linger_us.store(LINGER_UNASKED.as_micros() as u32, Ordering::Relaxed);
        if core.has_poller() || !self.set_alarm(&mut core, LINGER_UNASKED) {
            return self.leave_for_good(core);
        }
        self.announce(&mut core);
        self.leave_for(core, false);
    }

    /// As [`Engine::leave`], leaving nothing to the alarm.
    pub(super) fn leave_for_good<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.announce(&mut core);
        if core.has_poller() {
            // It sees to all this when it leaves, or sleeps.
            return self.wake_sleepers(&mut core);
        }
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
            let must_look = core.state.has_backlog() && {
                let core = &mut *core;
                core.state.want_room(&mut core.devices)
            };
            if must_look {
                // Others have been asked for room: the look below completes that.
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
