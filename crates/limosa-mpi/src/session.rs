//! Sessions (MPI-5 section 11.3): groups of processes without `MPI_Init`.
//!
//! A session uses the world of the process's job, as the world model does; there may be any number of both, one after
//! the other and at once, on several threads. Process sets are the two that the standard names. What comes from a
//! session (groups, and communicators made of them) carries its number, by which its buffer for buffered sends is
//! found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::bsend::{self, BufferOwner};
use crate::errhandler::{Errhandler, Scope};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::info::Info;
use crate::instance;
pub use crate::process_sets::{PROCESS_SETS, ProcessSet};
use crate::world::World;

/// The levels of thread support that a program can ask for.
const THREAD_LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

/// A session.
pub struct Session {
    world: Arc<World>,
    /// Among the sessions of this process, from 1.
    number: u64,
    errhandler: RwLock<Arc<Errhandler>>,
    /// The handle value under which the ABI layer registered this session; 0 if none.
    pub handle: AtomicUsize,
}

impl Session {
    /// Begins a session (`MPI_Session_init`).
    ///
    /// # Errors
    /// `MPI_ERR_INFO_VALUE` for a level of thread support that there is not, and errors of joining the job.
    pub fn init(info: Option<&Info>, errhandler: &Arc<Errhandler>) -> Result<Arc<Session>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        errhandler.check_fits(Scope::Session)?;
        if let Some(level) = info.and_then(|info| info.lookup(b"thread_level"))
            && !THREAD_LEVELS.iter().any(|known| known.as_bytes() == &*level)
        {
            let level = String::from_utf8_lossy(&level);
            fail!(MPI_ERR_INFO_VALUE, "thread_level is `{level}`, but must be one of {}", THREAD_LEVELS.join(", "));
        }
        let world = instance::enter()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Session {
            world,
            number,
            errhandler: RwLock::new(errhandler.clone()),
            handle: AtomicUsize::new(0),
        }))
    }

    /// Ends the session (`MPI_Session_finalize`): waits until sent messages are on their way, if this is the last user
    /// of the library. To be called once.
    pub fn finalize(&self) {
        // An interrupted program ends without having waited for its last messages.
        let _ = bsend::detach(self.send_buffer());
        instance::leave(&self.world);
    }

    /// Where its buffer for buffered sends is kept.
    pub fn send_buffer(&self) -> BufferOwner<'_> {
        BufferOwner::Session(&self.world, self.number)
    }

    /// Returns the error handler in force.
    pub fn errhandler(&self) -> Arc<Errhandler> {
        self.errhandler.read().clone()
    }

    /// Puts another error handler in force.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER` if it was made for another kind of object.
    pub fn set_errhandler(&self, errhandler: Arc<Errhandler>) -> Result<()> {
        errhandler.check_fits(Scope::Session)?;
        *self.errhandler.write() = errhandler;
        Ok(())
    }

    /// What the session offers (`MPI_Session_get_info`).
    ///
    /// # Errors
    /// None in practice.
    pub fn info(&self) -> Result<Arc<Info>> {
        let info = Info::new();
        info.set(b"thread_level", THREAD_LEVELS[3].as_bytes())?;
        info.set(b"mpi_memory_alloc_kinds", b"mpi,system")?;
        Ok(info)
    }

    /// Returns the name of process set `n`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` if there is no such set.
    pub fn process_set_name(&self, n: i32) -> Result<&'static str> {
        match usize::try_from(n).ok().and_then(|n| PROCESS_SETS.get(n)) {
            Some((name, _)) => Ok(name),
            None => fail!(MPI_ERR_ARG, "n is {n}, but this session has process sets 0 to {}", PROCESS_SETS.len() - 1),
        }
    }

    /// What is known of a process set (`MPI_Session_get_pset_info`): its size.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` if there is no such set.
    pub fn process_set_info(&self, name: &[u8]) -> Result<Arc<Info>> {
        let info = Info::new();
        info.set(b"mpi_size", self.group(name)?.size().to_string().as_bytes())?;
        Ok(info)
    }

    /// Returns the processes of a set (`MPI_Group_from_session_pset`).
    ///
    /// # Errors
    /// `MPI_ERR_ARG` if there is no such set.
    pub fn group(&self, name: &[u8]) -> Result<Arc<Group>> {
        let Some((_, set)) = PROCESS_SETS.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)) else {
            let known = PROCESS_SETS.map(|(name, _)| name).join(", ");
            fail!(MPI_ERR_ARG, "there is no process set `{}`; this session has {known}", String::from_utf8_lossy(name))
        };
        let group = match set {
            ProcessSet::World => self.world.members(),
            ProcessSet::Own => Group::contiguous(self.world.rank(), 1),
        };
        Ok(group.of_session(self.number))
    }
}
