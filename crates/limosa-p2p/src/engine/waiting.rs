//! Waiting and progress: what a thread does while it is blocked in the engine and when it leaves it, and what the helper and the alarm thread do
//! while none is there.

use super::{Core, Engine, Observer, View, Wait};
use crate::request::Failure;
use crate::state::{Job, State};
use crate::transfer::{self, Pull};
use limosa_base::biased::Guard;
use limosa_base::doorbell::State as Bell;
use limosa_base::{clock, cpu, thread};
use limosa_device::Urgency;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

thread_local! {
    /// This is the helper or the alarm thread.
    static SERVICE: Cell<bool> = const { Cell::new(false) };
}

/// Polls between looks at the clock.
const POLLS_PER_LOOK: u32 = 64;
/// Polls before giving the processor away when processes outnumber processors: a partner that is running right now may be about to answer.
const POLLS_SCARCE: u32 = 8;
/// How long the processor is given away again and again before sleeping, in nanoseconds: that costs less than being put to sleep and woken, and
/// lets every other process of this processor have its turn.
const YIELDING_NS: u64 = 60_000;
/// How long a sender waits for an offer to be taken before it has the receiver's helper woken, in nanoseconds: a receiver that is in the library
/// takes about as long to copy a message of 64 KB.
const ANNOUNCE_NS: u64 = 8_000;
/// A sleeper with a backlog looks again after this time, in case that the receiver left the library in the moment when it was asked for room.
const BACKLOG_NAP: Duration = Duration::from_millis(1);
/// Every nap in a row that brings nothing is followed by one of twice its length, this many times.
const LONGEST_NAP: u32 = 7;
/// A polling call tells its observer after this time.
const POLL_REPORT_NS: u64 = 100_000_000;
/// What a thread leaves undone when it leaves the library is done after this time, if it has not come back.
const LINGER: Duration = Duration::from_micros(100);
/// If it has come back and left something undone again, the time starts anew, so often, and grows up to this many times its length.
const MOST_AGAIN: u32 = 16;
const LONGEST_AGAIN: u32 = 4;
/// When an attendant is called again that wants to be; then after twice as long, and so on as for naps.
const REMINDER: Duration = Duration::from_millis(1);
/// The helper thread takes no more unexpected messages than this for a program that does not receive, in bytes.
const HELPER_HOARD: usize = 64 << 20;

impl Engine {
    /// Makes progress until `condition` holds. The condition is evaluated under the lock and must not call the engine.
    pub fn block_on(&self, condition: &mut dyn FnMut(&View<'_>) -> bool, observer: &dyn Observer) {
        self.block_with(&mut |state| condition(&View(state)), observer);
    }

    pub(super) fn block_with(&self, condition: &mut dyn FnMut(&mut State) -> bool, observer: &dyn Observer) {
        let core = self.wait_with(self.core.lock(), condition, observer);
        self.leave(core);
    }

    /// Makes progress until the condition holds. The lock is given up for a while whenever something must be done without it.
    pub(super) fn wait_with<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
    ) -> Guard<'a, Core> {
        let mut polls = 0u32;
        let mut spin_until = None;
        let mut reported = false;
        let mut woken = false;
        core.state.may_stream = !self.oversubscribed;
        loop {
            let moved = self.progress(&mut core);
            let just_woken = std::mem::take(&mut woken);
            if just_woken {
                self.attend(&mut core);
            }
            if reported && (moved || !core.state.jobs.is_empty()) {
                // Something is under way after all. If nothing follows, the call says again that it waits.
                reported = false;
                spin_until = None;
                Guard::unlocked(&mut core, || observer.resumed());
            }
            if !core.state.jobs.is_empty() {
                core = self.run_jobs(core);
                continue;
            }
            if condition(&mut core.state) {
                break;
            }
            if core.state.joints.count > 0
                && !self.oversubscribed
                && let Some((index, to, region)) = core.joint_to_help()
            {
                Guard::unlocked(&mut core, || transfer::help(&*self.puller, &self.commons, self.rank, index, to, &region));
                core.state.helped(index);
                continue;
            }
            if moved {
                if core.sleepers > 0 && std::mem::take(&mut core.state.completed) {
                    self.doorbell.wake_own();
                }
                spin_until = None;
                polls = 0;
                core.naps = 0;
                continue;
            }
            if just_woken {
                observer.woken_for_nothing();
            }
            if polls == 0 && core.state.interest > 0 && core.sleepers == 0 && self.options.wait != Wait::Block {
                // Somebody is looking: no need to wake the helper for what is awaited here.
                self.doorbell.set(Bell::Awake);
            }
            polls += 1;
            match self.options.wait {
                Wait::Block => {}
                Wait::Auto if self.oversubscribed => {
                    if polls < POLLS_SCARCE {
                        continue;
                    }
                    self.announce(&mut core);
                    let now = clock::now_ns();
                    if now < *spin_until.get_or_insert(now + self.options.spin_ns.min(YIELDING_NS)) {
                        Guard::unlocked(&mut core, cpu::yield_now);
                        continue;
                    }
                }
                Wait::Auto => {
                    if !polls.is_multiple_of(POLLS_PER_LOOK) {
                        continue;
                    }
                    Guard::bump(&mut core);
                    let now = clock::now_ns();
                    let until = *spin_until.get_or_insert(now + self.options.spin_ns);
                    if now + self.options.spin_ns >= until + ANNOUNCE_NS {
                        self.announce(&mut core);
                    }
                    if now < until {
                        continue;
                    }
                }
                Wait::Poll => {
                    if !polls.is_multiple_of(POLLS_PER_LOOK) {
                        continue;
                    }
                    self.announce(&mut core);
                    Guard::bump(&mut core);
                    if self.oversubscribed {
                        Guard::unlocked(&mut core, cpu::yield_now);
                    }
                    let now = clock::now_ns();
                    if !reported && now > *spin_until.get_or_insert(now + POLL_REPORT_NS) {
                        reported = true;
                        Guard::unlocked(&mut core, || observer.blocked());
                    }
                    continue;
                }
            }
            (core, woken) = self.sleep(core, condition, observer);
            spin_until = None;
            polls = 0;
        }
        if reported {
            Guard::unlocked(&mut core, || observer.resumed());
        }
        core.state.may_stream = false;
        core
    }

    /// Sleeps until something may have changed; false if there was something already.
    pub(super) fn sleep<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        condition: &mut dyn FnMut(&mut State) -> bool,
        observer: &dyn Observer,
    ) -> (Guard<'a, Core>, bool) {
        let backlog = core.state.has_backlog();
        let nap = backlog.then(|| BACKLOG_NAP * (1 << core.naps.min(LONGEST_NAP)));
        core.naps += u32::from(backlog);
        if backlog {
            let core = &mut *core;
            core.state.want_room(&mut *core.device);
        }
        self.announce(&mut core);
        core.sleepers += 1;
        observer.arrange();
        self.doorbell.set(Bell::Asleep);
        // The look that makes the doorbell's handshake complete.
        let moved = self.progress(&mut core);
        let sleeps = !moved && core.state.jobs.is_empty() && !condition(&mut core.state);
        if sleeps {
            self.wake_others(&mut core);
            // Observers may ask the engine, so they run without its lock. A ring in the meantime makes the sleep return at once.
            Guard::unlocked(&mut core, || {
                observer.blocked();
                self.leave_place();
                self.doorbell.sleep(nap);
                self.find_place();
                if !self.oversubscribed && self.doorbell.rung_from_here() {
                    cpu::step_aside();
                }
                observer.resumed();
            });
        }
        observer.retract();
        core.sleepers -= 1;
        (core, sleeps)
    }

    /// Tells the helper threads of receivers about offers, in case that no thread of theirs is in the library.
    #[inline]
    pub(super) fn announce(&self, core: &mut Core) {
        if !core.state.unannounced.is_empty() {
            for (peer, _) in std::mem::take(&mut core.state.unannounced) {
                self.commons.ring_urgently(peer);
            }
        }
    }

    pub(super) fn wake_others(&self, core: &mut Core) {
        // What was completed here may be what another sleeper waits for; this thread has looked already and sets the state again if need be.
        if std::mem::take(&mut core.state.completed) && core.sleepers > 1 {
            self.doorbell.wake_own();
        }
    }

    // ---- progress --------------------------------------------------------------------------------------------------

    /// Handles what has arrived and sends what waits; true if anything moved.
    pub(super) fn progress(&self, core: &mut Core) -> bool {
        let Core { device, state, answers, .. } = core;
        if state.broken.is_some() {
            return false;
        }
        let mut nonsense = None;
        let polled = device.poll(&mut |from, meta, data| {
            if !state.handle(from, meta, data, answers) {
                nonsense = Some((from, meta.kind));
            }
        });
        let mut moved = match polled {
            Ok(moved) => moved,
            Err(error) => {
                state.break_down(error.into());
                true
            }
        };
        if let Some((from, kind)) = nonsense {
            state.break_down(Failure::Device(format!("process {from} sent a packet of kind {kind} that makes no sense")));
        }
        if moved && !(answers.is_empty() && state.deferred.is_empty()) {
            for (to, meta) in answers.drain(..) {
                state.control(&mut **device, to, meta, &[], Urgency::Normal);
            }
            state.run_deferred(&mut **device);
        }
        if state.has_backlog() {
            moved |= state.flush(&mut **device);
        }
        moved
    }

    /// The helper's progress.
    fn progress_in_service(&self, core: &mut Core) -> bool {
        core.state.in_service = true;
        let moved = self.progress(core);
        core.state.in_service = false;
        moved
    }

    /// Does the jobs that must be done without the lock.
    pub(super) fn run_jobs<'a>(&'a self, mut core: Guard<'a, Core>) -> Guard<'a, Core> {
        let jobs = std::mem::take(&mut core.state.jobs);
        drop(core);
        let mut pulls: Vec<(Pull, bool)> = Vec::new();
        for job in jobs {
            match job {
                Job::Pull(pull) => {
                    let done = pull.run(&*self.puller, &self.commons).is_ok();
                    pulls.push((pull, done));
                    // Tell the sender at once: it may be waiting for its buffer.
                    self.finish_pulls(&mut pulls);
                }
                Job::Push(push) => {
                    let done = push.run(&*self.puller).is_ok();
                    let core = &mut *self.core.lock();
                    core.state.finish_push(&mut *core.device, push.request, done);
                }
                Job::Continue(then, end) => then(self, end),
            }
        }
        self.core.lock()
    }

    pub(super) fn finish_pulls(&self, pulls: &mut Vec<(Pull, bool)>) {
        let mut core = self.core.lock();
        let Core { device, state, .. } = &mut *core;
        for (pull, done) in pulls.drain(..) {
            if done {
                state.finish_fetch(&mut **device, pull.request, pull.from, pull.offer.send);
            } else {
                // Not allowed after all, or the sender has gone: streaming works without a right to its memory.
                state.accept(&mut **device, pull, false);
            }
        }
    }

    /// Ends a visit to the engine: runs jobs, wakes threads whose requests are done, states who is where.
    ///
    /// What only matters if no thread comes back soon is left to the alarm: telling others' helpers about offers, and having the own helper see to
    /// unfinished schedules. Both would cost more than what they are for in a program that goes on communicating.
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
        core.state.unannounced.retain(|(peer, _)| !self.commons.is_attended(*peer));
        let put_off = !core.state.unannounced.is_empty() || (core.state.continuations > 0 && !self.doorbell.is(Bell::AwayAll));
        if !put_off || self.linger(&mut core) {
            let rest = if core.state.continuations > 0 && !put_off { Bell::AwayAll } else { Bell::Away };
            return self.leave_for(core, rest);
        }
        self.leave_for_good(core);
    }

    /// Calls the attendant, and again later if it wants that.
    fn attend(&self, core: &mut Guard<'_, Core>) {
        if let Some(attendant) = self.attendant.get()
            && Guard::unlocked(core, attendant)
        {
            self.call_back(core);
            core.reminders += 1;
        }
    }

    /// Sets the alarm, unless it is going to go off anyway.
    pub(super) fn call_back(&self, core: &mut Core) {
        if !core.lingering && !self.stopping.load(Ordering::Relaxed) && self.has_alarm_thread() {
            core.lingering = true;
            self.alarm.set(REMINDER * (1 << core.reminders.min(LONGEST_NAP)));
        }
    }

    /// Sees to it that the alarm goes off soon; false if it cannot.
    pub(super) fn linger(&self, core: &mut Core) -> bool {
        let count = self.put_off.load(Ordering::Relaxed).wrapping_add(1);
        self.put_off.store(count, Ordering::Relaxed);
        if core.lingering {
            return true;
        }
        if self.stopping.load(Ordering::Relaxed) || !self.has_alarm_thread() {
            return false;
        }
        core.lingering = true;
        self.put_off_then.store(count, Ordering::Relaxed);
        self.alarm.set(LINGER);
        true
    }

    pub(super) fn has_alarm_thread(&self) -> bool {
        self.alarm_thread
            .get_or_init(|| {
                let engine = self.this.upgrade()?;
                let thread = thread::spawn_without_signals("limosa-alarm", move || engine.heed_alarms()).ok()?;
                Some(Mutex::new(Some(thread)))
            })
            .is_some()
    }

    /// The alarm thread: does what a thread that left the library has put off.
    ///
    /// If a thread has been there again meanwhile, it is not gone: the alarm is put off too, without the lock, since a lock that changes hands and
    /// woken helpers would cost a program that goes on communicating a third of its time.
    pub(super) fn heed_alarms(&self) {
        SERVICE.set(true);
        cpu::take_short_turns();
        let mut again = 0;
        loop {
            self.alarm.wait();
            if self.stopping.load(Ordering::Acquire) {
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
            core.lingering = false;
            self.attend(&mut core);
            self.leave_for_good(core);
        }
    }

    /// As [`Engine::leave`], leaving nothing to the alarm.
    pub(super) fn leave_for_good<'a>(&'a self, mut core: Guard<'a, Core>) {
        self.announce(&mut core);
        let rest = if core.state.continuations > 0 { Bell::AwayAll } else { Bell::Away };
        self.leave_for(core, rest);
    }

    /// Ends a visit, leaving the doorbell in state `rest` unless threads sleep.
    #[inline]
    pub(super) fn leave_for<'a>(&'a self, mut core: Guard<'a, Core>, rest: Bell) {
        loop {
            if !core.state.jobs.is_empty() {
                core = self.run_jobs(core);
                continue;
            }
            if core.sleepers > 0 {
                if std::mem::take(&mut core.state.completed) {
                    self.doorbell.wake_own();
                }
                if !self.doorbell.is(Bell::Awake) {
                    return;
                }
                // Sleepers may rely on this thread's look; let them look for themselves.
                self.doorbell.set(Bell::Asleep);
                self.doorbell.wake_own();
                return;
            }
            core.state.completed = false;
            if core.state.has_backlog() {
                let core = &mut *core;
                core.state.want_room(&mut *core.device);
            } else if self.doorbell.is(rest) {
                return;
            } else if rest == Bell::Away && core.state.interest == 0 {
                self.doorbell.set_away_lazily();
                return;
            }
            self.doorbell.set(rest);
            if !self.progress(&mut core) && core.state.jobs.is_empty() {
                return;
            }
        }
    }

    /// The helper thread: serves what cannot wait while no thread is in the library.
    pub(super) fn help(&self) {
        SERVICE.set(true);
        cpu::take_short_turns();
        loop {
            self.doorbell.helper_wait();
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            let mut core = self.core.lock();
            self.attend(&mut core);
            while core.state.unexpected_bytes < HELPER_HOARD {
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
}
