//! Starting processes (MPI-5 section 11.8).
//!
//! | the root | the launcher | the spawned processes |
//! |---|---|---|
//! | asks for processes | finds the programs and free numbers, answers with these | |
//! | makes the numbers' part of the shared memory ready, says *go* | starts the processes | join the job |
//! | | answers when all have joined, or one has ended before | |
//! | tells its group; both groups meet (`Comm::meet`) | | meet their parents in `MPI_Init` |

use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

pub use limosa_job::control::Program;
use limosa_job::control::{self, Refusal, Reply, Request};

use super::{ask, job, receive};
use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::instance;
use crate::mix::mix;
use crate::world::World;

/// Numbers of spawned processes, as the root tells its group.
struct Places {
    first: u32,
    number: u64,
    counts: Vec<u32>,
}

impl Places {
    fn size(&self) -> u32 {
        self.counts.iter().sum()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let words = [u64::from(self.first), self.number].into_iter().chain(self.counts.iter().map(|n| u64::from(*n)));
        words.flat_map(u64::to_ne_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Places> {
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        let (first, number) = (u32::try_from(words.next()?).ok()?, words.next()?);
        Some(Places { first, number, counts: words.map(|word| word as u32).collect() })
    }
}

/// How many processes of each program the root asks for, as it tells all members.
///
/// # Errors
/// `MPI_ERR_COMM`, `MPI_ERR_ROOT`; errors of the machine.
pub fn asked_for(comm: &Arc<Comm>, root: i32, counts: &[u32]) -> Result<Vec<u32>> {
    comm.check_intra()?;
    let root = comm.check_root(root)? as usize;
    let bytes = comm.led(root, || Ok(counts.iter().flat_map(|count| count.to_ne_bytes()).collect()))?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect())
}

/// Starts processes of these programs, which only the root names; returns the communicator with them, and how many
/// there are of each program.
///
/// # Errors
/// `MPI_ERR_SPAWN` when they cannot be started; errors of `programs`.
pub fn spawn(
    comm: &Arc<Comm>,
    root: i32,
    programs: impl FnOnce() -> Result<Vec<Program>>,
) -> Result<(Arc<Comm>, Vec<u32>)> {
    comm.check_intra()?;
    let root = comm.check_root(root)? as usize;
    let world = comm.world();
    // From here on no member waits for a process whose number is used again.
    comm.wait_for_all()?;
    let bytes = comm.led(root, || start(world, programs()?).map(|places| places.to_bytes()))?;
    let Some(places) = Places::from_bytes(&bytes) else {
        fail!(MPI_ERR_INTERN, "the root has told its group nothing of the processes that it has spawned")
    };
    let context = world.meeting_context(places.number);
    let leaders = (comm.rank() as usize == root).then(|| Ok(Some(Comm::of_two(world, places.first, true, context))));
    let made = comm.meet(root, mix(context, 0), leaders, &comm.errhandler())?;
    Ok((made.expect("there is a remote group, since its leader has answered"), places.counts))
}

/// Starts the processes, at the root, until all have joined the job.
fn start(world: &Arc<World>, programs: Vec<Program>) -> Result<Places> {
    let job = job()?;
    let folder = std::env::current_dir().map(|dir| dir.as_os_str().as_bytes().to_vec()).unwrap_or_default();
    let (stream, reply) = ask(&Request::Spawn { rank: job.rank(), folder, programs })?;
    let places = match reply {
        Reply::Places { first, number, counts } => Places { first, number, counts },
        other => return refused(other),
    };
    // If this fails, the launcher sees that the connection ends.
    for next in places.first..places.first + places.size() {
        if let Err(error) = world.prepare(next) {
            fail!(MPI_ERR_NO_MEM, "there is not enough memory for the messages of spawned processes: {error}");
        }
    }
    // Before any of them can send something.
    world.acquaint(&Group::contiguous(places.first, places.size()))?;
    if let Err(error) = control::send(&stream, &Request::Go.fields()) {
        fail!(MPI_ERR_SPAWN, "the launcher of the job does not answer: {error}");
    }
    match receive(&stream, None)?.and_then(Reply::read) {
        Ok(Reply::Started) => Ok(places),
        Ok(other) => refused(other),
        Err(error) => fail!(MPI_ERR_SPAWN, "the launcher of the job does not answer: {error}"),
    }
}

fn refused<T>(reply: Reply) -> Result<T> {
    match reply {
        Reply::Refused { why: Refusal::Info, text } => fail!(MPI_ERR_INFO_VALUE, "{text}"),
        Reply::Refused { text, .. } => fail!(MPI_ERR_SPAWN, "{text}"),
        _ => fail!(MPI_ERR_INTERN, "the launcher's answer is not understood"),
    }
}

static PARENT: OnceLock<Option<Arc<Comm>>> = OnceLock::new();

/// Meets the processes that have spawned this one, if any have. To be called once, at the end of `MPI_Init`.
///
/// # Errors
/// Errors of the machine.
pub fn meet_parent() -> Result<Option<Arc<Comm>>> {
    let (Some(instance), Some(spawner)) = (instance::get(), job()?.seat().spawner()) else {
        return Ok(None);
    };
    let world = instance::Instance::world(instance);
    let context = world.meeting_context(spawner.number);
    let own = Comm::of_spawned(world);
    world.acquaint(&Group::contiguous(spawner.rank, 1))?;
    let leaders = (own.rank() == 0).then(|| Ok(Some(Comm::of_two(world, spawner.rank, false, context))));
    let made = own.meet(0, mix(context, 1), leaders, &own.errhandler())?;
    if let Some(parent) = &made {
        parent.set_name(b"MPI_COMM_PARENT");
    }
    Ok(PARENT.get_or_init(|| made).clone())
}
