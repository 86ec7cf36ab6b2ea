//! The library in this process: its job, its engine, and the two predefined communicators. Made by initialisation (MPI-5 section 11.2), once.

use crate::attr;
use crate::bsend;
use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::observe::Waiting;
use limosa_base::{clock, fork};
use limosa_job::config::{self, WaitMode};
use limosa_job::{Job, JobError};
use limosa_p2p::{Engine, Options, Wait};
use std::sync::{Arc, OnceLock};

/// What initialisation makes.
pub struct Instance {
    job: &'static Job,
    engine: Arc<Engine>,
    world: Arc<Comm>,
    this: Arc<Comm>,
}

static INSTANCE: OnceLock<Instance> = OnceLock::new();

/// Joins the job and starts the engine; later calls return the same instance.
///
/// # Errors
/// `MPI_ERR_OTHER` when the job cannot be joined, `MPI_ERR_NO_MEM` when there is no memory for it.
pub fn init() -> Result<&'static Instance> {
    if let Some(instance) = INSTANCE.get() {
        return Ok(instance);
    }
    let job: &'static Job = match Job::attach() {
        Ok(job) => job,
        Err(JobError::System(error)) if out_of_memory(error) => {
            fail!(MPI_ERR_NO_MEM, "there is not enough memory to join the job: {error}")
        }
        Err(error) => fail!(MPI_ERR_OTHER, "this process cannot join its job: {error}"),
    };
    let config = config::get();
    let options = Options {
        wait: match config.wait {
            WaitMode::Auto => Wait::Auto,
            WaitMode::Poll => Wait::Poll,
            WaitMode::Block => Wait::Block,
        },
        spin_ns: config.spin.as_nanos() as u64,
        eager_limit: config.eager_bytes,
        cross_memory: config.cma,
    };
    let engine = match Engine::join(job.segment(), job.device_offset(), job.rank(), job.size(), options) {
        Ok(engine) => engine,
        Err(error) if out_of_memory(&error) => {
            fail!(MPI_ERR_NO_MEM, "there is not enough memory for the messages of {} processes: {error}", job.size())
        }
        Err(error) => fail!(MPI_ERR_OTHER, "the message engine cannot start: {error}"),
    };
    fork::claim();
    attr::UNIVERSE_SIZE.set(job.universe_size() as i32);
    attr::WTIME_IS_GLOBAL.set(1);
    if job.launched() {
        attr::APPNUM.set(job.appnum() as i32);
        crate::info::set_maxprocs(job.size());
    }
    let made = Instance { job, engine, world: Comm::world(job.size(), job.rank()), this: Comm::this(job.rank()) };
    let instance = INSTANCE.get_or_init(|| made);
    instance.job.seat().running();
    Ok(instance)
}

fn out_of_memory(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::OutOfMemory | std::io::ErrorKind::StorageFull)
}

/// The instance, if initialisation has made it.
#[inline]
pub fn get() -> Option<&'static Instance> {
    INSTANCE.get()
}

/// The engine.
///
/// # Panics
/// Before initialisation, when there are no communicators to ask for it with.
#[inline]
pub fn engine() -> &'static Arc<Engine> {
    &INSTANCE.get().expect("communicators exist only after initialisation").engine
}

/// True in a process that was forked from one that initialised MPI: it may compute and exit, but not communicate.
#[inline]
pub fn in_forked_child() -> bool {
    fork::in_child()
}

impl Instance {
    /// `MPI_COMM_WORLD`.
    pub fn world(&self) -> &Arc<Comm> {
        &self.world
    }

    /// `MPI_COMM_SELF`.
    pub fn this(&self) -> &Arc<Comm> {
        &self.this
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The job.
    pub fn job(&self) -> &'static Job {
        self.job
    }

    /// Leaves the job (`MPI_Finalize`): deletes the attributes of `MPI_COMM_SELF`, last set first deleted, then those of `MPI_COMM_WORLD`, waits
    /// until what was sent is on its way, and stops the engine's helper.
    ///
    /// # Errors
    /// Those of delete callbacks.
    pub fn finalize(&self) -> Result<()> {
        let deleted = self.this.attributes().delete_all(self.this.handle.load(std::sync::atomic::Ordering::Relaxed));
        let deleted = deleted.and(self.world.attributes().delete_all(self.world.handle.load(std::sync::atomic::Ordering::Relaxed)));
        bsend::flush_all();
        self.engine.drain(&Waiting::nothing_in_particular());
        self.engine.stop();
        self.job.seat().finalized();
        deleted
    }
}

/// Ends all processes of the job (`MPI_Abort`). Without an instance, or in a forked child, it ends this process.
pub fn abort(code: i32, message: &str) -> ! {
    match INSTANCE.get() {
        Some(instance) if !fork::in_child() => instance.job.abort(code, message),
        _ => {
            eprintln!("limosa: {message}; this ends process {}, which is no rank of a job", std::process::id());
            std::process::exit(if code & 0xff == 0 { 1 } else { code & 0xff })
        }
    }
}

/// Seconds since a point in the past that is the same for all processes of this machine (`MPI_Wtime`).
pub fn wtime() -> f64 {
    clock::now_ns() as f64 * 1e-9
}

/// Resolution of [`wtime`] in seconds (`MPI_Wtick`).
pub fn wtick() -> f64 {
    clock::resolution_ns() as f64 * 1e-9
}
