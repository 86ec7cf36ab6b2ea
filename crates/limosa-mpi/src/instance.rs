//! What `MPI_Init` makes (MPI-5 section 11.2): the world model's two communicators, in the world of the process's job.
//! Made once.
//!
//! The world model and each session are users of that world ([`enter`], [`leave`]); while there is any, this process
//! takes part in the job.

use crate::attr;
use crate::comm::Comm;
use crate::error::Result;
use crate::observe::Waiting;
use crate::world::{self, World};
use limosa_base::{clock, fork};
use limosa_job::Job;
pub use limosa_p2p::interrupt;
use parking_lot::Mutex;
use rustix::thread::{Timespec, nanosleep};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What initialisation makes.
pub struct Instance {
    world: Arc<World>,
    comm_world: Arc<Comm>,
    comm_self: Arc<Comm>,
}

static INSTANCE: OnceLock<Instance> = OnceLock::new();

/// Joins the job and starts the engine; later calls return the same instance.
///
/// # Errors
/// As for [`World::of_job`] and [`World::enter`].
pub fn init() -> Result<&'static Instance> {
    if let Some(instance) = INSTANCE.get() {
        return Ok(instance);
    }
    let world = enter()?;
    attr::WTIME_IS_GLOBAL.set(1);
    if let Some(job) = Job::current() {
        attr::UNIVERSE_SIZE.set(job.universe_size() as i32);
        if job.launched() || job.seat().spawner().is_some() {
            attr::APPNUM.set(job.appnum() as i32);
            crate::info::set_maxprocs(job.size());
        }
    }
    let made = Instance { comm_world: Comm::all_of(&world), comm_self: Comm::self_of(&world), world };
    Ok(INSTANCE.get_or_init(|| made))
}

/// Users of the job's world.
static USERS: Mutex<usize> = Mutex::new(0);

/// Joins the job, unless that is done, and begins to use its world.
///
/// # Errors
/// As for [`World::of_job`] and [`World::enter`].
pub(crate) fn enter() -> Result<Arc<World>> {
    let mut users = USERS.lock();
    let world = World::of_job()?;
    world.enter()?;
    *users += 1;
    if *users == 1 {
        fork::claim();
        if let Some(job) = Job::current() {
            job.seat().running();
        }
    }
    Ok(world)
}

/// Ends the use of the job's world that [`enter`] began.
pub(crate) fn leave(world: &World) {
    let mut users = USERS.lock();
    world.leave(&Waiting::nothing_in_particular());
    *users -= 1;
    if *users == 0
        && let Some(job) = Job::current()
    {
        job.finalized();
    }
}

/// Returns the instance, if initialisation has made it.
#[inline]
pub fn get() -> Option<&'static Instance> {
    INSTANCE.get()
}

/// Returns the world of the process's job, once a thread has joined it.
#[inline]
pub fn world() -> Option<&'static Arc<World>> {
    world::of_job_if_any()
}

/// True in a process that was forked from one that initialised MPI: it may compute and exit, but not communicate.
#[inline]
pub fn in_forked_child() -> bool {
    fork::in_child()
}

impl Instance {
    /// Returns the world of the process's job.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// `MPI_COMM_WORLD`.
    pub fn comm_world(&self) -> &Arc<Comm> {
        &self.comm_world
    }

    /// `MPI_COMM_SELF`.
    pub fn comm_self(&self) -> &Arc<Comm> {
        &self.comm_self
    }

    /// Ends the world model (`MPI_Finalize`): deletes the attributes of `MPI_COMM_SELF`, last set first deleted, then
    /// those of `MPI_COMM_WORLD`, calls `look`, which may see what the program has left, and leaves the world.
    ///
    /// # Errors
    /// Those of delete callbacks.
    pub fn finalize(&self, look: impl FnOnce(&Arc<World>)) -> Result<()> {
        let delete_all = |comm: &Comm| comm.attributes().delete_all(comm.handle.load(Ordering::Relaxed));
        let deleted = delete_all(&self.comm_self);
        let deleted = deleted.and(delete_all(&self.comm_world));
        look(&self.world);
        leave(&self.world);
        deleted
    }
}

/// Ends all processes of the job (`MPI_Abort`). Before the process has joined it, or in a forked child, it ends this
/// process.
pub fn abort(code: i32, message: &str) -> ! {
    match Job::current() {
        Some(job) if world().is_some() && !fork::in_child() => job.abort(code, message),
        _ => {
            eprintln!("limosa: {message}; this ends process {}, which is no rank of a job", std::process::id());
            std::process::exit(if code & 0xff == 0 { 1 } else { code & 0xff })
        }
    }
}

/// Whether Limosa's launcher hears of the ends of some processes of the job from other hosts only.
pub fn has_ends_elsewhere() -> bool {
    Job::current().is_some_and(|job| job.site().is_none() && job.board().hosts() > 1)
}

/// Returns after `limit` if the job is ending; then the signal that ends this process normally comes before. Returns
/// sooner if a handler of a signal has run, and at once if the job is not ending.
pub fn wait_if_job_is_ending(limit: Duration) {
    if Job::current().is_some_and(|job| job.board().is_ending()) {
        let limit = Timespec::try_from(limit).expect("some seconds");
        let _ = nanosleep(&limit);
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
