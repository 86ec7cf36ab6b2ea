//! Accesses that go on while the program does: one thread of the library does them one after the other, in the order in
//! which they were started.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | queued | the thread has not done it | moved |
//! | moved | the data are where they should be, but have to be converted by a thread of the program | converting |
//! | converting | a thread of the program does that | done |
//! | done | it has ended | |
//!
//! The thread never waits for other processes, except for locks on parts of files, which their owners hold for one
//! access. It is started on first use, and never ends: a process has at most one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use limosa_base::thread::spawn_without_signals;
use limosa_mpi::consts::MPI_ERR_INTERN;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::observe::Awaits;
use limosa_mpi::operation::{End, Operation};
use limosa_p2p::{Engine, View};
use parking_lot::{Condvar, Mutex};

use crate::access::Core;

type Job = Box<dyn FnOnce() + Send>;

/// What moves the data; returns the bytes of the stream that were moved, and the buffer that holds them if they are to
/// be converted.
pub(crate) type Work = Box<dyn FnOnce() -> Result<(u64, Vec<u8>)> + Send>;
/// Converts what was read; returns the bytes in the program's buffer.
pub(crate) type Convert = Box<dyn FnOnce(Vec<u8>, u64) -> Result<u64> + Send>;

struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    filled: Condvar,
}

static QUEUE: Queue = Queue { jobs: Mutex::new((VecDeque::new(), false)), filled: Condvar::new() };

/// Has the thread do a job, after those that it has been given before.
fn queue(job: Job) {
    let mut jobs = QUEUE.jobs.lock();
    jobs.0.push_back(job);
    if !jobs.1 {
        jobs.1 = spawn_without_signals("limosa-io", work).is_ok();
        if !jobs.1 {
            // There can be no more threads: it is done here.
            let waiting = std::mem::take(&mut jobs.0);
            drop(jobs);
            waiting.into_iter().for_each(|job| job());
            return;
        }
    }
    QUEUE.filled.notify_one();
}

fn work() {
    let mut jobs = QUEUE.jobs.lock();
    loop {
        match jobs.0.pop_front() {
            Some(job) => parking_lot::MutexGuard::unlocked(&mut jobs, job),
            None => QUEUE.filled.wait(&mut jobs),
        }
    }
}

enum State {
    Queued,
    Moved(Result<(u64, Vec<u8>)>),
    Converting,
    Done(End),
}

/// An access in the background.
pub(crate) struct Background {
    state: Mutex<State>,
    convert: Mutex<Option<Convert>>,
    /// The thread has done its part.
    is_moved: AtomicBool,
    is_released: AtomicBool,
    core: Arc<Core>,
    engine: Arc<Engine>,
    /// The handle of the file.
    file: usize,
    bytes: u64,
}

impl Background {
    /// Starts one. `bytes`: those of the program's buffer.
    pub fn start(
        core: &Arc<Core>,
        engine: &Arc<Engine>,
        file: usize,
        bytes: u64,
        work: Work,
        convert: Option<Convert>,
    ) -> Arc<Background> {
        core.outstanding.fetch_add(1, Ordering::Relaxed);
        let made = Arc::new(Background {
            state: Mutex::new(State::Queued),
            convert: Mutex::new(convert),
            is_moved: AtomicBool::new(false),
            is_released: AtomicBool::new(false),
            core: core.clone(),
            engine: engine.clone(),
            file,
            bytes,
        });
        let shared = made.clone();
        queue(Box::new(move || {
            let moved = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                Err(Error::new(MPI_ERR_INTERN, "an internal error of Limosa in an access to a file, please report it"))
            });
            shared.moved(moved);
        }));
        made
    }

    fn moved(self: Arc<Self>, moved: Result<(u64, Vec<u8>)>) {
        *self.state.lock() = State::Moved(moved);
        self.is_moved.store(true, Ordering::SeqCst);
        if self.is_released.load(Ordering::SeqCst) && self.convert.lock().is_some() {
            let shared = self.clone();
            self.engine.leave_to_program(Box::new(move |_| drop(shared.settle())));
        }
        self.engine.notify();
    }

    /// Converts what was read, if that is to be done; the end, if it has ended.
    fn settle(&self) -> Option<End> {
        let mut state = self.state.lock();
        match &*state {
            State::Queued | State::Converting => return None,
            State::Done(end) => return Some(end.clone()),
            State::Moved(_) => {}
        }
        let State::Moved(moved) = std::mem::replace(&mut *state, State::Converting) else { return None };
        // The program's function is called without a lock.
        drop(state);
        let convert = self.convert.lock().take();
        let moved = moved.and_then(|(bytes, data)| convert.map_or(Ok(bytes), |convert| convert(data, bytes)));
        let end = match moved {
            Ok(bytes) => End { bytes, ..End::empty() },
            Err(error) => End { error: Some(error), ..End::empty() },
        };
        *self.state.lock() = State::Done(end.clone());
        Some(end)
    }
}

impl Operation for Background {
    fn start(self: Arc<Self>) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "an access to a file is started by its call and cannot be started again")
    }

    fn progress(&self) -> bool {
        self.is_moved.load(Ordering::Acquire)
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.is_moved.load(Ordering::Acquire)
    }

    fn finish(&self) -> Option<End> {
        let end = self.settle()?;
        self.core.outstanding.fetch_sub(1, Ordering::Relaxed);
        Some(end)
    }

    fn look(&self) -> Option<End> {
        self.settle()
    }

    fn cancel(&self) -> Result<()> {
        // It completes as if nobody had asked, which the standard allows.
        Ok(())
    }

    fn release(&self) -> Result<()> {
        self.core.outstanding.fetch_sub(1, Ordering::Relaxed);
        self.is_released.store(true, Ordering::SeqCst);
        if self.is_moved.load(Ordering::SeqCst) {
            self.settle();
        }
        Ok(())
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        None
    }

    fn file(&self) -> Option<usize> {
        Some(self.file)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
