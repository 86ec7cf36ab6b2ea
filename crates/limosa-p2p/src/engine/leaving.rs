//! Leaving the library: what a thread does before it returns to the program, and what the service threads (helper and
//! alarm) do while no thread is in the library. Continuations and jobs that a thread leaves for later.

use super::{Core, Engine, MAX_DOUBLINGS};
use crate::completion::RequestId;
use crate::request::{Continuation, Owner};
use crate::state::ProgramJob;
use limosa_base::biased::Guard;
use limosa_base::doorbell::DoorbellState;
use limosa_base::{cpu, thread};
use limosa_device::DeathWatch;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

thread_local! {
    /// Set on service threads.
    static SERVICE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this is a service thread (helper, alarm). Service threads have small stacks, and the program does
/// not know them: they must not run functions of the program.
pub fn in_service() -> bool {
    SERVICE.get()
}

/// Time after which the alarm thread does the work that a thread deferred when it left the library.
pub(super) const LINGER: Duration = Duration::from_micros(100);
/// The same, if the only deferred work is to poll a device from which nothing is expected.
const LINGER_UNASKED: Duration = Duration::from_millis(1);
/// Number of times that the alarm is restarted because a thread has deferred work again meanwhile.
const MAX_RESTARTS: u32 = 16;
/// Maximum time of a restarted alarm, as a multiple of its first time.
const MAX_LINGER_FACTOR: u32 = 4;
/// Time after which an attendant that asked for it is called again. It doubles with each consecutive call,
/// [`MAX_DOUBLINGS`] times.
const REMINDER: Duration = Duration::from_millis(1);
/// Time between attempts to start the thread that watches for deaths.
const AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Runs `then` when the request is complete (at once, if it is), without the lock, and frees the request.
    pub fn then(&self, id: RequestId, then: Continuation) {
        self.continue_with(id, then, true);
    }

    /// Runs `then` like [`Engine::then`], but asks for no service of traffic: while no thread is in the library, the
    /// completion may wait.
    pub fn then_lazily(&self, id: RequestId, then: Continuation) {
        self.continue_with(id, then, false);
    }

    fn continue_with(&self, id: RequestId, then: Continuation, is_served: bool) {
        let mut core = self.core.lock();
        if core.state.end_of(id).is_some() {
            let end = core.state.requests.remove(id).unwrap_or_default();
            drop(core);
            then(self, end);
            return;
        }
        let state = &mut core.state;
        if let Some(request) = state.requests.get_mut(id) {
            request.owner = Owner::Continuation { then, is_served };
            state.continuations += usize::from(is_served);
        }
        self.leave(core);
    }

    /// Leaves a job to the next thread of the program that enters the library, which runs it without the lock: for work
    /// that service threads must not do ([`in_service`]).
    pub fn leave_to_program(&self, job: ProgramJob) {
        let mut core = self.core.lock();
        core.state.for_program.push(job);
        core.state.continuations += 1;
        if core.sleepers > 0 {
            self.doorbell.wake_own();
        }
    }

    /// Ends a visit to the engine: runs jobs, wakes threads whose requests are complete, and sets the doorbell's state.
    ///
    /// Work that matters only if no thread returns soon is deferred to the alarm: announcing offers to the receivers'
    /// helpers, and assigning unfinished schedules to this process's helper. In a program that keeps communicating,
    /// both would cost more than they gain.
    #[inline]
    pub(super) fn leave<'a>(&'a self, mut core: Guard<'a, Core>) {
        if core.is_quiet() && self.doorbell.is(DoorbellState::Away) {
            core.state.completed = false;
            return;
        }
        self.leave_slowly(core);
    }

    /// Ends a visit on the slow path of [`Engine::leave`]: peers may depend on this process.
    #[inline(never)]
    fn leave_slowly<'a>(&'a self, mut core: Guard<'a, Core>) {
        let Core { devices, state, .. } = &mut *core;
        state.unannounced.retain(|(peer, _)| !devices.is_attended(*peer));
        let is_expected = !core.state.unannounced.is_empty()
            || (core.state.continuations > 0 && !self.doorbell.is(DoorbellState::AwayAll))
            || self.has_polled_for_sleepers(&core)
            || (core.devices.is_unwatched() && core.state.serves_urgently());
        let deferred = is_expected || core.devices.is_unwatched();
        if deferred && !self.leave_to_alarm(&mut core, if is_expected { LINGER } else { LINGER_UNASKED }) {
            return self.leave_without_deferring(core);
        }
        self.leave_for(core, deferred);
    }

    /// Calls the attendant, and schedules another call if it asks for that. Returns whether it does.
    pub(super) fn attend(&self, core: &mut Guard<'_, Core>) -> bool {
        let wants_more = self.attendant.get().is_some_and(|attendant| Guard::unlocked(core, attendant));
        if wants_more {
            self.set_reminder(core);
            core.reminders += 1;
        }
        wants_more
    }

    /// Sets the alarm for the attendant. The time grows with the number of consecutive reminders.
    pub(super) fn set_reminder(&self, core: &mut Core) {
        self.set_alarm(core, REMINDER * (1 << core.reminders.min(MAX_DOUBLINGS)));
    }

    /// Sets the alarm to expire after [`LINGER`]. Returns false if it cannot be set.
    pub(super) fn set_alarm_soon(&self, core: &mut Core) -> bool {
        self.leave_to_alarm(core, LINGER)
    }

    /// Defers work to the alarm thread, which does it after `after` unless a thread returns. Returns false if the alarm
    /// cannot be set.
    fn leave_to_alarm(&self, core: &mut Core, after: Duration) -> bool {
        let count = self.deferrals.load(Ordering::Relaxed).wrapping_add(1);
        self.deferrals.store(count, Ordering::Relaxed);
        if core.alarm.is_some_and(|set| set <= after) {
            return true;
        }
        self.deferrals_when_set.store(count, Ordering::Relaxed);
        self.linger_us.store(after.as_micros() as u32, Ordering::Relaxed);
        self.set_alarm(core, after)
    }

    /// Sets the alarm, unless it is set to the same or a shorter time: the earlier alarm wins. Returns false if it
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

    /// Runs the body of one of the engine's own threads. A panic there would end independent progress silently, so it
    /// ends the job.
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

    /// Runs the alarm thread, which does the work that a leaving thread deferred.
    ///
    /// If a thread has been in the engine since, the alarm is deferred again, without the lock. Contention for the lock
    /// and needless helper wake-ups would cost a program that keeps communicating a third of its time.
    fn run_alarm(&self) {
        let mut again = 0;
        loop {
            if !self.alarm.wait() || self.stopping.load(Ordering::Acquire) {
                return;
            }
            let now = self.deferrals.load(Ordering::Relaxed);
            let has_come_back = now != self.deferrals_when_set.swap(now, Ordering::Relaxed);
            if has_come_back && again < MAX_RESTARTS {
                again += 1;
                let linger = Duration::from_micros(self.linger_us.load(Ordering::Relaxed).into());
                self.alarm.set(linger * again.min(MAX_LINGER_FACTOR));
                continue;
            }
            again = 0;
            let mut core = self.core.lock();
            core.alarm = None;
            self.attend(&mut core);
            if has_come_back && core.devices.is_unwatched() {
                self.poll_for_watcher(core);
            } else {
                self.leave_without_deferring(core);
            }
        }
    }

    /// Polls on behalf of a device's watcher, which stays paused while threads of the program come and go and poll
    /// themselves. They may stop doing so, hence this poll.
    fn poll_for_watcher<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.progress_in_service(&mut core);
        self.linger_us.store(LINGER_UNASKED.as_micros() as u32, Ordering::Relaxed);
        if core.has_poller() || !self.set_alarm(&mut core, LINGER_UNASKED) {
            return self.leave_without_deferring(core);
        }
        self.announce(&mut core);
        self.leave_for(core, false);
    }

    /// Ends a visit like [`Engine::leave`], without deferring work to the alarm.
    pub(super) fn leave_without_deferring<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.announce(&mut core);
        if core.has_poller() {
            // That thread does all this when it leaves or sleeps.
            return self.wake_sleepers(&mut core);
        }
        core.devices.watch_again();
        self.leave_for(core, false);
    }

    /// Ends a visit, leaving the doorbell in the state for a process without threads in the library, unless some sleep.
    /// `deferred`: the alarm is set, and takes care of unfinished schedules.
    #[inline]
    pub(super) fn leave_for<'a>(&'a self, mut core: Guard<'a, Core>, deferred: bool) {
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
                if deferred && core.alarm.is_some() && self.has_polled_for_sleepers(&core) {
                    // This thread probably returns soon. Until the alarm expires, every visit polls for the sleepers.
                    if self.progress_unasked(&mut core) {
                        continue;
                    }
                    return;
                }
                // Sleepers may rely on this thread's polling.
                self.end_delegation(&core);
                return;
            }
            core.state.completed = false;
            // Jobs ran without the lock: schedules may have ended or begun meanwhile, and the alarm may have expired.
            let by_alarm = deferred && core.alarm.is_some();
            let rest =
                if core.state.continuations > 0 && !by_alarm { DoorbellState::AwayAll } else { DoorbellState::Away };
            let must_poll = core.state.has_backlog() && {
                let core = &mut *core;
                core.state.want_room(&mut core.devices)
            };
            if must_poll {
                // Peers were asked for room; the poll below completes that handshake.
            } else if self.doorbell.is(rest) && !moved {
                return;
            } else if rest == DoorbellState::Away && !core.state.serves_urgently() {
                self.doorbell.set_away_lazily();
                return;
            }
            self.doorbell.set(rest);
            // A poll takes a part of what has arrived, and no further ring announces the rest. Hence the loop.
            moved = self.progress_unasked(&mut core);
            if !moved && !core.state.has_jobs(by_program) {
                if !by_alarm {
                    core.devices.watch_again();
                }
                return;
            }
        }
    }

    /// Runs the helper thread, which serves urgent traffic while no thread is in the library. It also starts the thread
    /// that watches for deaths, when its first check is due: a short job has ended by then and needs no such thread.
    pub(super) fn run_helper(&self) {
        let mut deaths = self
            .deaths
            .as_ref()
            .filter(|_| self.has_host_peers)
            .map(|deaths| (Instant::now() + DeathWatch::FIRST_LOOK, deaths));
        loop {
            let is_called = self.doorbell.helper_wait(deaths.map(|(due, _)| due));
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            if let Some((due, watcher)) = deaths
                && Instant::now() >= due
            {
                // Thread creation may succeed later.
                let is_started = self.this.upgrade().is_some_and(|engine| watcher.start(&engine).is_ok());
                deaths = (!is_started).then(|| (Instant::now() + AGAIN, watcher));
            }
            if is_called {
                self.help_once();
            }
        }
    }

    /// Does the work of one call of the helper thread.
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
        self.leave_without_deferring(core);
    }
}
