//! Execution of schedules on the engine: in the calling thread, or in the background.
//!
//! A [`ScheduleRun`] continues whenever a completion of its round arrives, on whichever thread that is:
//!
//! | state | owner of the progress | next |
//! |---|---|---|
//! | idle | the run (`rest`) | running, by [`ScheduleRun::start`] |
//! | running | the thread that starts transfers and does local steps | waiting, or idle at the end |
//! | waiting | the run (`rest`) | running, by the thread that completes the round's last transfer |
//! | left to the program | the run (`rest`) | running, by the next thread of the program that is in the library |
//!
//! `open` counts the unfinished transfers of the round, and one more while the round is being started, so that no other
//! thread continues before. Local steps run without any lock. Steps that call a function of the program are left to a
//! thread of the program: the helper and the alarm thread stop before them. A thread that completes rounds of several
//! runs serves them in order from a queue of its own, so nested completions do not grow the stack.
//!
//! When a member dies, its communicator's transfers end for all members (`limosa_p2p`): every rank that still needs a
//! transfer gets the error. When ranks disagree about the length of a message, the schedule continues without its local
//! steps, so that no other rank is left waiting, and the error is returned at the end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Engine, Failure, Interrupted, Mode, RequestId, Started, View, in_service};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::call_log::{self, Inquirer, LoggedCall};
use super::disagreement::OtherLength;
use super::schedule::{Schedule, Step, broken, mismatch};
use limosa_mpi::comm::Comm;
use limosa_mpi::error::{Error, Result, error_of};
use limosa_mpi::fail;
use limosa_mpi::observe::{Awaits, Inquiry, Waiting, current_call};
use limosa_mpi::operation::{End, Operation};

/// Sender and number of bytes of a receive; `None` for a send.
type Awaited = Option<(u32, usize)>;

/// The first error, and the first message of another length.
#[derive(Default)]
struct Trouble(Option<Error>, Option<OtherLength>);

/// Returns how a message to this rank, `to`, from rank `from` differs from the expected length, if it does.
fn other_length(to: u32, from: u32, expected: usize, end: &Completion) -> Option<OtherLength> {
    let sent = match end.failure.as_deref() {
        None => end.bytes,
        Some(Failure::Truncated { sent, .. }) => *sent,
        Some(_) => return None,
    };
    (sent != expected as u64).then_some(OtherLength {
        from: from as usize,
        to: to as usize,
        sent: sent as usize,
        expected,
    })
}

impl Trouble {
    fn is_there(&self) -> bool {
        self.0.is_some()
    }

    #[cold]
    fn note(&mut self, error: Error) {
        self.0.get_or_insert(error);
    }

    /// Checks the end of a receive of `expected` bytes from rank `from`.
    fn look(&mut self, to: u32, from: u32, expected: usize, end: Completion) {
        if let Some(message) = other_length(to, from, expected, &end) {
            self.1.get_or_insert(message);
            self.note(mismatch(message.from, message.sent, expected));
        } else if let Some(failure) = end.failure {
            self.note(error_of(failure));
        }
    }
}

fn start_send(
    engine: &Engine,
    comm: &Comm,
    tag: i32,
    to: u32,
    region: &Region,
) -> std::result::Result<Started, Failure> {
    let peer = comm.world_rank_of(to as i32).expect("schedules name members only");
    let envelope = Envelope { context: comm.coll_context(), source: comm.rank() as i32, tag };
    engine.send(peer, &envelope, region.clone(), Mode::Standard)
}

fn start_receive(engine: &Engine, comm: &Comm, tag: i32, from: u32, region: &Region) -> RequestId {
    let pattern = Pattern { context: comm.coll_context(), source: Some(from as i32), tag: Some(tag) };
    engine.receive(&pattern, region.clone())
}

impl Schedule {
    /// Lists the partners in the messages of the round that ends with this step or contains it.
    fn partners(&self, next: usize, tell: &mut dyn FnMut(usize)) {
        let steps = &self.steps[..next];
        let steps = if let Some((Step::Wait, before)) = steps.split_last() { before } else { steps };
        for step in steps.iter().rev().take_while(|step| !matches!(step, Step::Wait)) {
            if let Step::Send { to: rank, .. } | Step::Receive { from: rank, .. } = step {
                tell(*rank as usize);
            }
        }
    }
}

/// Runs a schedule in the calling thread.
///
/// # Errors
/// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` when ranks disagree about the length of a message, and errors of the machine.
pub fn run(comm: &Comm, schedule: Schedule) -> Result<()> {
    let engine = comm.engine();
    let mut round = Round { pending: SmallVec::new(), trouble: Trouble::default(), broken: false, interrupted: false };
    for (index, step) in schedule.steps.iter().enumerate() {
        match step {
            Step::Send { to, region } => match start_send(engine, comm, schedule.tag, *to, region) {
                Ok(Started::Done) => {}
                Ok(Started::Pending(id)) => round.pending.push((id, None)),
                Err(failure) => {
                    // After a death the remaining transfers end by themselves, with their errors.
                    round.broken = !(ends_group(&failure) || failure == Failure::OutOfStep);
                    round.trouble.note(error_of(failure));
                }
            },
            Step::Receive { from, region } => {
                let id = start_receive(engine, comm, schedule.tag, *from, region);
                round.pending.push((id, Some((*from, region.len()))));
            }
            Step::Wait => round.finish(engine, comm, &schedule, index),
            Step::Copy { .. } | Step::Reduce { .. } => {
                if !round.trouble.is_there()
                    && let Err(error) = schedule.do_local(step)
                {
                    round.trouble.note(error);
                }
            }
        }
        if round.broken || round.interrupted {
            break;
        }
    }
    round.finish(engine, comm, &schedule, schedule.steps.len());
    if let Some(message) = round.trouble.1 {
        call_log::tell_length(comm, schedule.call, message);
    }
    if round.broken {
        // The device failed with transfers under way, which may still access this memory.
        std::mem::forget(schedule);
    }
    round.trouble.0.map_or(Ok(()), Err)
}

/// Whether everything that the group has under way ends with this failure.
fn ends_group(failure: &Failure) -> bool {
    matches!(failure, Failure::PeerDied(_) | Failure::Severed(_) | Failure::Disagreement { .. })
}

/// The transfers of a round, for [`run`].
struct Round {
    pending: SmallVec<[(RequestId, Awaited); 16]>,
    trouble: Trouble,
    broken: bool,
    interrupted: bool,
}

impl Round {
    /// Waits for the transfers, or withdraws them if a signal ends the wait.
    fn wait(
        &self,
        engine: &Engine,
        comm: &Comm,
        schedule: &Schedule,
        next: usize,
    ) -> std::result::Result<(), Interrupted> {
        let find = || {
            let arrived = |(id, receive): &(RequestId, Awaited)| {
                let ((from, expected), end) = ((*receive)?, engine.peek(*id)?);
                other_length(comm.rank(), from, expected, &end)
            };
            self.trouble.1.or_else(|| self.pending.iter().find_map(arrived))
        };
        let inquirer = Inquirer::new(comm, schedule.call.signature, Some(schedule.call.number), |tell| {
            schedule.partners(next, tell);
        })
        .or_ends(&find);
        let waiting = Waiting::collective(comm, Some(&inquirer));
        let mut left = self.pending.len();
        let is_over = &mut |view: &View<'_>| {
            while left > 0 && view.is_done(self.pending[left - 1].0) {
                left -= 1;
            }
            left == 0 || view.is_broken()
        };
        engine.block_on_requests(is_over, &waiting).inspect_err(|_| {
            engine.fall_out_of_step(comm.coll_context());
            engine.withdraw_all(self.pending.iter().map(|(id, _)| *id), &waiting);
        })
    }

    fn finish(&mut self, engine: &Engine, comm: &Comm, schedule: &Schedule, next: usize) {
        if self.pending.is_empty() || self.broken {
            return;
        }
        if let Err(interrupted) = self.wait(engine, comm, schedule, next) {
            self.interrupted = true;
            self.trouble.note(interrupted.into());
        }
        for (id, receive) in self.pending.drain(..) {
            match (engine.take(id), receive) {
                (Some(end), Some((from, expected))) => self.trouble.look(comm.rank(), from, expected, end),
                (Some(Completion { failure: Some(failure), .. }), None) => self.trouble.note(error_of(failure)),
                (Some(_), None) => {}
                (None, _) => {
                    self.broken = true;
                    self.trouble.note(broken());
                }
            }
        }
    }
}

/// A collective in the background.
pub struct ScheduleRun {
    comm: Arc<Comm>,
    /// Name of the call that made it, for hang reports.
    started: &'static str,
    rest: Mutex<Option<Box<Progress>>>,
    open: AtomicUsize,
    trouble: Mutex<Trouble>,
    done: AtomicBool,
    keeps_memory: bool,
    call: LoggedCall,
    /// Whether the ranks it waits for were asked for the reason of the delay.
    has_inquired: AtomicBool,
}

/// Position in a schedule.
struct Progress {
    schedule: Schedule,
    next: usize,
    /// Whether it was left to the program in the middle of a round, whose transfers are counted.
    in_round: bool,
}

/// The reason why a run pauses.
enum Pause {
    /// The next step is a wait, or there is none.
    Wait,
    /// The next step is for a thread of the program.
    ForProgram,
}

impl ScheduleRun {
    /// Makes a run, not started. The schedule's temporary memory lives until the run is dropped.
    pub fn new(comm: &Arc<Comm>, schedule: Schedule) -> Arc<ScheduleRun> {
        Arc::new(ScheduleRun {
            comm: comm.clone(),
            keeps_memory: schedule.keeps_memory(),
            call: schedule.call,
            has_inquired: AtomicBool::new(false),
            started: current_call(),
            rest: Mutex::new(Some(Box::new(Progress { schedule, next: 0, in_round: false }))),
            open: AtomicUsize::new(0),
            trouble: Mutex::default(),
            done: AtomicBool::new(false),
        })
    }

    /// Starts the run, which must be new or done. It then continues by itself.
    pub fn start(self: &Arc<ScheduleRun>) {
        self.done.store(false, Ordering::Relaxed);
        *self.trouble.lock() = Trouble::default();
        if let Some(progress) = &mut *self.rest.lock() {
            progress.next = 0;
        }
        resume(self.clone(), self.comm.engine());
    }

    /// Whether it has ended.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Takes the error, if there was one.
    pub fn take_error(&self) -> Option<Error> {
        self.trouble.lock().0.take()
    }

    /// Continues until a round waits for other ranks, or to the end. Called by one thread at a time, with no transfer
    /// under way.
    fn advance(self: &Arc<ScheduleRun>, engine: &Engine) {
        loop {
            let mut progress = self.rest.lock().take().expect("only the thread that completes a round goes on");
            let ended = progress.next == progress.schedule.steps.len() && !progress.in_round;
            if !std::mem::take(&mut progress.in_round) {
                self.open.store(1, Ordering::Relaxed);
            }
            let started = if ended { Ok(Pause::Wait) } else { self.start_round(engine, &mut progress) };
            progress.in_round = matches!(started, Ok(Pause::ForProgram));
            *self.rest.lock() = Some(progress);
            match started {
                Ok(Pause::Wait) => {}
                Ok(Pause::ForProgram) => {
                    let run = self.clone();
                    return engine.leave_to_program(Box::new(move |engine| resume(run, engine)));
                }
                Err(failure) => {
                    self.trouble.lock().note(error_of(failure));
                    // Transfers under way may still access the schedule's memory: it is never freed.
                    std::mem::forget(self.clone());
                    return self.finish(engine);
                }
            }
            if ended {
                return self.finish(engine);
            }
            if self.open.fetch_sub(1, Ordering::AcqRel) != 1 {
                return;
            }
        }
    }

    /// Runs the steps up to the next wait, or up to a step that this thread must not run.
    fn start_round(
        self: &Arc<ScheduleRun>,
        engine: &Engine,
        progress: &mut Progress,
    ) -> std::result::Result<Pause, Failure> {
        let schedule = &progress.schedule;
        while let Some(step) = schedule.steps.get(progress.next) {
            if in_service() && schedule.is_for_program(step) {
                return Ok(Pause::ForProgram);
            }
            progress.next += 1;
            match step {
                Step::Send { to, region } => match start_send(engine, &self.comm, schedule.tag, *to, region) {
                    Ok(Started::Done) => {}
                    Ok(Started::Pending(id)) => self.expect(engine, id, None),
                    Err(failure) if ends_group(&failure) => self.trouble.lock().note(error_of(failure)),
                    Err(failure) => return Err(failure),
                },
                Step::Receive { from, region } => {
                    let id = start_receive(engine, &self.comm, schedule.tag, *from, region);
                    self.expect(engine, id, Some((*from, region.len())));
                }
                Step::Wait => break,
                Step::Copy { .. } | Step::Reduce { .. } => {
                    let is_well = !self.trouble.lock().is_there();
                    let outcome = if is_well { schedule.do_local(step) } else { Ok(()) };
                    if let Err(error) = outcome {
                        self.trouble.lock().note(error);
                    }
                }
            }
        }
        Ok(Pause::Wait)
    }

    /// Registers a transfer of the round; continues when the last one has ended.
    fn expect(self: &Arc<ScheduleRun>, engine: &Engine, id: RequestId, receive: Awaited) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let run = self.clone();
        engine.then(
            id,
            Box::new(move |engine, end| {
                match receive {
                    Some((from, expected)) => {
                        if end.failure.is_some() || end.bytes != expected as u64 {
                            run.trouble.lock().look(run.comm.rank(), from, expected, end);
                        }
                    }
                    None => {
                        if let Some(failure) = end.failure {
                            run.trouble.lock().note(error_of(failure));
                        }
                    }
                }
                if run.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    resume(run, engine);
                }
            }),
        );
    }

    fn finish(&self, engine: &Engine) {
        if self.has_inquired.swap(false, Ordering::Relaxed) {
            call_log::end_inquiries(&self.comm, self.call);
        }
        let other_length = self.trouble.lock().1;
        if let Some(message) = other_length {
            call_log::tell_length(&self.comm, self.call, message);
        }
        self.done.store(true, Ordering::Release);
        engine.notify();
    }
}

impl Inquiry for ScheduleRun {
    fn inquire(&self) {
        let mut partners: SmallVec<[usize; 16]> = SmallVec::new();
        if let Some(progress) = &*self.rest.lock() {
            progress.schedule.partners(progress.next, &mut |rank| partners.push(rank));
        }
        // Set first: it may end meanwhile.
        self.has_inquired.store(true, Ordering::Relaxed);
        let find = || self.trouble.lock().1;
        call_log::inquire(&self.comm, self.call, &|tell| partners.iter().for_each(|rank| tell(*rank)), &find);
    }
}

impl Operation for ScheduleRun {
    fn start(self: Arc<Self>) -> Result<()> {
        ScheduleRun::start(&self);
        Ok(())
    }

    fn progress(&self) -> bool {
        self.is_done()
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.is_done()
    }

    fn finish(&self) -> Option<End> {
        self.is_done().then(|| End { error: self.take_error(), ..End::empty() })
    }

    fn look(&self) -> Option<End> {
        if !self.is_done() {
            self.comm.engine().poll();
        }
        self.is_done().then(|| End { error: self.trouble.lock().0.clone(), ..End::empty() })
    }

    fn cancel(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "collective operations cannot be cancelled")
    }

    fn release(&self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        fail!(MPI_ERR_REQUEST, "an active collective operation cannot be freed: complete it first")
    }

    fn keeps_memory(&self) -> bool {
        self.keeps_memory
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        Some(Awaits::Collective { comm: &self.comm, started: self.started, inquiry: Some(self) })
    }
}

thread_local! {
    /// Runs that this thread is to continue.
    static READY: RefCell<VecDeque<Arc<ScheduleRun>>> = const { RefCell::new(VecDeque::new()) };
    /// Whether this thread is continuing them.
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Continues a run, and other runs that become ready on this thread meanwhile.
fn resume(run: Arc<ScheduleRun>, engine: &Engine) {
    READY.with_borrow_mut(|ready| ready.push_back(run));
    if SERVING.replace(true) {
        return;
    }
    while let Some(run) = READY.with_borrow_mut(VecDeque::pop_front) {
        run.advance(engine);
    }
    SERVING.set(false);
}
