//! Background accesses: one thread of the library performs them in the order in which they were started.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | queued | the thread has not performed it | moved |
//! | moved | the data have been read or written, but a thread of the program must convert them | converting |
//! | converting | a thread of the program converts the data | done |
//! | done | it is complete | |
//!
//! The thread never waits for other processes, except for locks on byte ranges, which their owners hold for one access.
//! It is started on first use, and never ends: a process has at most one.

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

type Task = Box<dyn FnOnce() + Send>;

/// Moves the data. Returns the number of stream bytes moved, and the buffer that holds them if they must be converted.
pub(crate) type MoveData = Box<dyn FnOnce() -> Result<(u64, Vec<u8>)> + Send>;
/// Converts data that were read. Returns the number of bytes in the program's buffer.
pub(crate) type Convert = Box<dyn FnOnce(Vec<u8>, u64) -> Result<u64> + Send>;

struct Queue {
    tasks: Mutex<(VecDeque<Task>, bool)>,
    filled: Condvar,
}

static QUEUE: Queue = Queue { tasks: Mutex::new((VecDeque::new(), false)), filled: Condvar::new() };

/// Appends a task to the thread's queue.
fn queue(task: Task) {
    let mut tasks = QUEUE.tasks.lock();
    tasks.0.push_back(task);
    if !tasks.1 {
        tasks.1 = spawn_without_signals("limosa-io", work).is_ok();
        if !tasks.1 {
            // No thread can be created: the tasks are performed here.
            let waiting = std::mem::take(&mut tasks.0);
            drop(tasks);
            waiting.into_iter().for_each(|task| task());
            return;
        }
    }
    QUEUE.filled.notify_one();
}

fn work() {
    let mut tasks = QUEUE.tasks.lock();
    loop {
        match tasks.0.pop_front() {
            Some(task) => parking_lot::MutexGuard::unlocked(&mut tasks, task),
            None => QUEUE.filled.wait(&mut tasks),
        }
    }
}

enum BackgroundState {
    Queued,
    Moved(Result<(u64, Vec<u8>)>),
    Converting,
    Done(End),
}

/// A background access.
pub(crate) struct Background {
    state: Mutex<BackgroundState>,
    convert: Mutex<Option<Convert>>,
    /// Whether the thread has done its part.
    is_moved: AtomicBool,
    is_released: AtomicBool,
    core: Arc<Core>,
    engine: Arc<Engine>,
    /// Handle of the file.
    file: usize,
    bytes: u64,
}

impl Background {
    /// Starts an access. `bytes`: length of the program's buffer.
    pub fn start(
        core: &Arc<Core>,
        engine: &Arc<Engine>,
        file: usize,
        bytes: u64,
        work: MoveData,
        convert: Option<Convert>,
    ) -> Arc<Background> {
        core.outstanding.fetch_add(1, Ordering::Relaxed);
        let made = Arc::new(Background {
            state: Mutex::new(BackgroundState::Queued),
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
        *self.state.lock() = BackgroundState::Moved(moved);
        self.is_moved.store(true, Ordering::SeqCst);
        if self.is_released.load(Ordering::SeqCst) && self.convert.lock().is_some() {
            let shared = self.clone();
            self.engine.leave_to_program(Box::new(move |_| drop(shared.settle())));
        }
        self.engine.notify();
    }

    /// Converts data that were read, if necessary. Returns the completion, if the access is complete.
    fn settle(&self) -> Option<End> {
        let mut state = self.state.lock();
        match &*state {
            BackgroundState::Queued | BackgroundState::Converting => return None,
            BackgroundState::Done(end) => return Some(end.clone()),
            BackgroundState::Moved(_) => {}
        }
        let BackgroundState::Moved(moved) = std::mem::replace(&mut *state, BackgroundState::Converting) else {
            return None;
        };
        // The program's function is called without a lock.
        drop(state);
        let convert = self.convert.lock().take();
        let moved = moved.and_then(|(bytes, data)| convert.map_or(Ok(bytes), |convert| convert(data, bytes)));
        let end = match moved {
            Ok(bytes) => End { bytes, ..End::empty() },
            Err(error) => End { error: Some(error), ..End::empty() },
        };
        *self.state.lock() = BackgroundState::Done(end.clone());
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
        // The access completes as if it had not been cancelled, which the standard allows.
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
