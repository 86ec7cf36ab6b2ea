//! Worlds: the processes that this one can communicate with, and the engine that reaches them.
//!
//! A world belongs to a job. For each process it knows the host, the number on that host, the device that reaches it,
//! and whether it lives. It owns the engine, and so everything that a thread can sleep on. A communicator holds its
//! world, and all work on a communicator reaches the engine through it. In tests, ranks that are threads of one
//! process have a world each.
//!
//! Contract
//! - The world of the job that this process was launched for is made once ([`World::of_job`]), by the first
//!   initialisation: that of `MPI_Init` or of a session; several may come at the same time. It lives as long as the
//!   process.
//! - Its helper threads run while it has users ([`World::enter`]). When the last user leaves, they send the messages
//!   under way and then stop. A later user starts them again.
//! - Contexts begin with the job's id, so that contexts of different jobs do not collide.
//! - Processes of other jobs that it is connected with have numbers behind those of the job ([`outsiders`]).

use std::any::Any;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use limosa_job::config::{self, DeviceChoice, FileNotify, WaitMode};
use limosa_job::{Job, JobError};
use limosa_p2p::{
    Address, Cards, Device, DeviceId, Devices, Engine, FabricDevice, FileDevice, FileOptions, Folders, Links,
    MessagesDevice, Notify, Observer, Options, Peer, Seats, ShmDevice, Wait, Wish,
};
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::check;
use crate::consts::MPI_ERR_INTERN;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::mix::mix;
use crate::tool::performance;
use tracing::info;

mod buffers;
mod outsiders;
mod parting;
mod registry;

pub use buffers::SendBuffer;
pub(crate) use outsiders::{Hold, Terms, WORDS, machine};

use buffers::Buffers;
use outsiders::Outsiders;
use registry::Registry;

/// Keep contexts of spawned processes apart from others.
const SPAWNED: u64 = 0x6c69_6d6f_7361_0005;
const MEETING: u64 = 0x6c69_6d6f_7361_0006;

/// The processes that this one can communicate with.
pub struct World {
    /// `None` in a world without communication, for which collectives are only planned.
    engine: Option<Arc<Engine>>,
    id: u64,
    rank: u32,
    /// The processes of this one's `MPI_COMM_WORLD`.
    members: Range<u32>,
    /// How many processes there is room for, and how many the job was started with.
    capacity: u32,
    started: u32,
    /// The number of the spawn that started this process; 0 if none did.
    spawn: u64,
    hosts: Hosts,
    /// The processes that this one knows: for each the number of the spawn that started it.
    known: Mutex<FxHashMap<Peer, u64>>,
    users: Mutex<usize>,
    pub(crate) comms: Registry,
    pub(crate) buffers: Buffers,
    windows: OnceLock<Box<dyn Any + Send + Sync>>,
    outsiders: Outsiders,
}

/// Which process is on which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    /// All are on this one and share memory.
    One,
    /// Every process is treated as if it were alone on its host.
    Alone,
    /// Processes pretend to be on this many hosts, in blocks of equal size.
    Blocks(u32),
    /// The launcher has started them on several hosts, and the status board says which.
    Several,
}

/// What a world knows about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its host, counted from 0.
    pub host: u32,
    /// Its number among the processes of that host.
    pub rank_on_host: u32,
    /// The device that reaches it.
    pub device: &'static str,
    /// False once its death is known.
    pub is_alive: bool,
}

impl Hosts {
    fn of(job: &Job, config: &config::Config) -> Hosts {
        match (&config.device, config.hosts) {
            _ if job.board().hosts() > 1 => Hosts::Several,
            (DeviceChoice::Messages, _) => Hosts::Alone,
            (device, 1) if *device == DeviceChoice::Shm || config.shares_memory => Hosts::One,
            (_, 1) => Hosts::Alone,
            (_, hosts) => Hosts::Blocks(hosts),
        }
    }

    /// Host and number on it of process `rank` in a job that was started with `size`. Those that are spawned are each
    /// alone if there are several hosts.
    fn find(self, rank: u32, size: u32) -> (u32, u32) {
        match self {
            Hosts::One => (0, rank),
            Hosts::Alone => (rank, 0),
            Hosts::Several => {
                // INVARIANT: only a job that was joined is on several hosts.
                let board = Job::current().expect("a job over several hosts").board();
                if rank >= size {
                    return (board.hosts() + rank - size, 0);
                }
                let seat = board.seat(rank.min(board.capacity() - 1));
                (seat.host(), rank.saturating_sub(seat.host_first()))
            }
            Hosts::Blocks(hosts) if rank >= size => (hosts + rank - size, 0),
            Hosts::Blocks(hosts) => {
                let block = size.div_ceil(hosts.min(size));
                (rank / block, rank % block)
            }
        }
    }

    /// Returns the choices that must be the same in all processes of a job, as a word that is not 0.
    fn word(self, config: &config::Config) -> u64 {
        let device = match &config.device {
            DeviceChoice::Files(folder) | DeviceChoice::LocalFiles(folder) => FxBuildHasher.hash_one(folder) << 32 >> 2,
            DeviceChoice::Fabric => 1 << 31,
            _ => 0,
        };
        let choices = u64::from(config.check) << 63 | u64::from(config.strict) << 62 | device;
        match self {
            Hosts::One => choices | 1,
            Hosts::Alone => choices | 2,
            Hosts::Blocks(hosts) => choices | u64::from(hosts) << 2 | 3,
            Hosts::Several => choices | 4,
        }
    }

    /// Returns the processes that share memory with this one, as far as they are known from the start.
    fn known(self, job: &Job) -> Range<u32> {
        match self {
            Hosts::Several => job.seat().host_first()..job.seat().host_first() + job.seat().host_size(),
            _ => job.first()..job.first() + job.size(),
        }
    }

    /// Joins the devices that reach the processes of the job.
    fn links(self, job: &'static Job, config: &config::Config) -> std::io::Result<Links> {
        let (rank, started, offset) = (job.rank(), job.board().size(), job.device_offset());
        let (known, size) = (self.known(job), job.board().capacity());
        let processes_here = match self {
            Hosts::Several => (0..job.board().used()).filter(|rank| job.board().is_here(*rank)).count() as u32,
            _ => job.board().used(),
        };
        let seats = Seats { me: rank, known, capacity: size };
        let join = |offset| ShmDevice::join(job.segment(), offset, &seats, config.cma);
        if self == Hosts::One {
            return join(offset).map(|device| Links { processes_here, ..Links::from(device) });
        }
        // The file has the part of one device behind the part of the other device.
        let (shm, packets) = match self {
            Hosts::Alone => (None, join(offset)?),
            _ => {
                let shm = join(offset + ShmDevice::bytes_without_areas(size))?;
                let packets = shm.join_beside(offset)?;
                (Some(shm), packets)
            }
        };
        let doorbell = packets.doorbell();
        let mut devices = Devices::new(shm);
        let messages = devices.add_device(elsewhere(job, config, packets)?);
        let here = self.find(rank, started).0;
        for peer in 0..size {
            let is_here = self != Hosts::Alone && self.find(peer, started).0 == here;
            devices.add_peer(if is_here { DeviceId::SHM } else { messages }, peer);
        }
        // Also ranks that act as if they were on several hosts share this machine's processors.
        Ok(Links { devices, doorbell, rank, peers: size, processes_here })
    }
}

/// Cards of the ranks of a job, on its status board.
struct OnBoard(&'static Job);

impl Cards for OnBoard {
    fn publish(&self, card: &[u8]) {
        self.0.seat().publish_card(card);
        self.0.board().ring();
    }

    fn card(&self, of: Address) -> Option<Vec<u8>> {
        let board = self.0.board();
        (of < board.capacity()).then(|| board.seat(of).card())?
    }

    fn has_left(&self, who: Address) -> bool {
        let board = self.0.board();
        who < board.capacity() && board.seat(who).has_left()
    }
}

/// Returns the device that reaches processes that are treated as if they were on other hosts. `packets` reaches all of
/// them.
fn elsewhere(job: &'static Job, config: &config::Config, packets: ShmDevice) -> std::io::Result<Box<dyn Device>> {
    if config.device == DeviceChoice::Fabric {
        let wish = Wish {
            library: config.fabric_library.clone(),
            provider: config.fabric_provider.clone(),
            interface: config.fabric_interface.clone(),
            address: config.host_address,
            connect_limit: Some(config.host_limit),
            is_local: job.board().hosts() == 1,
        };
        let device = FabricDevice::join(&wish, Box::new(OnBoard(job)), packets);
        let device = device.map_err(|what| std::io::Error::other(format!("LIMOSA_DEVICE is fabric, but {what}")))?;
        return Ok(Box::new(device));
    }
    let Some(folder) = config.device.message_folder(job.id()) else {
        if job.board().hosts() > 1 {
            let what = "no device reaches the other hosts of the job: pass --device fabric, or --device file:FOLDER with \
                        a folder that all hosts share, or --device file:local; under another launcher than Limosa's \
                        set LIMOSA_DEVICE";
            return Err(std::io::Error::other(what));
        }
        return Ok(Box::new(MessagesDevice::new(packets)));
    };
    if matches!(config.device, DeviceChoice::LocalFiles(_))
        && job.board().hosts() > 1
        && !Folders::below(&folder).has_map()
    {
        let what = "no courier carries messages to the other hosts: file:local needs `limosa run` as launcher; under \
                    other launchers use file:FOLDER with a folder that all hosts share, or fabric";
        return Err(std::io::Error::other(what));
    }
    let notify = match config.file_notify {
        FileNotify::Auto => Notify::Auto,
        FileNotify::Inotify => Notify::Inotify,
        FileNotify::Clock => Notify::Clock,
    };
    let options = FileOptions { notify, keep: config.file_keep };
    let folders = Folders::below(&folder);
    match FileDevice::join(&folders, packets, options) {
        Ok(device) => {
            if job.site().is_some() && !config.file_keep {
                parting::leave_at_exit(job, folders);
            }
            Ok(Box::new(device))
        }
        Err(error) => {
            let what = format!("the folder {} for the files of messages cannot be used: {error}", folder.display());
            Err(std::io::Error::new(error.kind(), what))
        }
    }
}

impl World {
    /// Returns the world of the job that this process was launched for; made at the first call.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when the job cannot be joined, `MPI_ERR_NO_MEM` when there is no memory for it. A later call
    /// tries again.
    pub fn of_job() -> Result<Arc<World>> {
        static JOINING: Mutex<()> = Mutex::new(());
        let _alone = JOINING.lock();
        if let Some(world) = OF_JOB.get() {
            return Ok(world.clone());
        }
        let made = World::join_job()?;
        let world = OF_JOB.get_or_init(|| made).clone();
        world.engine.as_ref().inspect(|engine| performance::read_from(engine));
        Ok(world)
    }

    fn join_job() -> Result<Arc<World>> {
        let job: &'static Job = match Job::attach() {
            Ok(job) => job,
            Err(JobError::System(error)) if out_of_memory(error) => {
                fail!(MPI_ERR_NO_MEM, "there is not enough memory to join the job: {error}")
            }
            Err(error) => fail!(MPI_ERR_OTHER, "this process cannot join its job: {error}"),
        };
        let config = config::get();
        if let Some(refusal) = &config.refusal {
            fail!(MPI_ERR_OTHER, "{refusal}");
        }
        limosa_job::log::begin(&config.log, config.log_file.as_deref(), job.rank());
        info!("rank {} of {} is process {}, of job {:016x}", job.rank(), job.size(), std::process::id(), job.id());
        info!("device {:?}", config.device);
        let hosts = Hosts::of(job, config);
        if !job.board().agree_on_devices(hosts.word(config)) {
            fail!(
                MPI_ERR_OTHER,
                "LIMOSA_DEVICE, LIMOSA_HOSTS, LIMOSA_STRICT or LIMOSA_CHECK is not the same for all processes of the \
                 job: set it for all or for none"
            );
        }
        check::set(config.check, config.strict);
        let engine = match hosts.links(job, config).and_then(|links| Engine::start(links, options(config))) {
            Ok(engine) => engine,
            Err(error) if out_of_memory(&error) => {
                fail!(
                    MPI_ERR_NO_MEM,
                    "there is not enough memory for the messages of {} processes: {error}",
                    job.size()
                )
            }
            Err(error) => fail!(MPI_ERR_OTHER, "the message engine cannot start: {error}"),
        };
        if let Err(what) = job.exchange_cards() {
            fail!(MPI_ERR_OTHER, "the processes of the job cannot tell each other their addresses: {what}");
        }
        engine.set_panic_hook(|reason| match Job::current() {
            Some(job) => job.abort(MPI_ERR_INTERN, reason),
            None => std::process::abort(),
        });
        let mut world = World::new(Some(engine), job.id(), job.rank(), job.size(), hosts);
        world.members = job.first()..job.first() + job.size();
        world.capacity = job.board().capacity();
        world.spawn = job.seat().spawner().map_or(0, |spawner| spawner.number);
        world.started = job.board().size();
        world.known = Mutex::new(world.members.clone().map(|peer| (peer, world.spawn)).collect());
        Ok(Arc::new(world))
    }

    fn new(engine: Option<Arc<Engine>>, id: u64, rank: u32, size: u32, hosts: Hosts) -> World {
        let (users, comms, buffers) = (Mutex::new(0), Registry::default(), Buffers::default());
        if let Some(engine) = &engine {
            engine.set_concerns(comms.concerns());
        }
        let known = Mutex::default();
        World {
            engine,
            id,
            rank,
            members: 0..size,
            capacity: size,
            started: size,
            spawn: 0,
            hosts,
            known,
            users,
            comms,
            buffers,
            windows: OnceLock::new(),
            outsiders: Outsiders::default(),
        }
    }

    /// Makes a world of `size` processes without communication, as process `rank` sees it: for plans and for tests.
    pub fn without_engine(size: u32, rank: u32) -> Arc<World> {
        Arc::new(World::new(None, 1, rank, size, Hosts::One))
    }

    /// Makes a world on an engine that exists, of job `id`: for tests with several processes in one.
    pub fn with_engine(engine: Arc<Engine>, id: u64, size: u32) -> Arc<World> {
        let rank = engine.rank();
        Arc::new(World::new(Some(engine), id, rank, size, Hosts::One))
    }

    /// Returns the engine.
    ///
    /// # Panics
    /// If the world has no communication.
    #[inline]
    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("only communicators of worlds with an engine communicate")
    }

    /// As [`World::engine`]; `None` in a world without communication.
    #[inline]
    pub fn engine_if_any(&self) -> Option<&Arc<Engine>> {
        self.engine.as_ref()
    }

    /// What the layer of windows keeps for this world, made at the first call.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn windows<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let windows: &dyn Any = &**self.windows.get_or_init(|| Box::new(make()));
        windows.downcast_ref().expect("one layer keeps one type")
    }

    /// Returns this process's number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of processes of its `MPI_COMM_WORLD`.
    pub fn size(&self) -> u32 {
        self.members.end - self.members.start
    }

    /// Returns the processes of its `MPI_COMM_WORLD`.
    pub fn members(&self) -> Arc<Group> {
        Group::contiguous(self.members.start, self.size())
    }

    /// Whether processes of this group may be unknown to others of the job: some were spawned.
    pub(crate) fn has_spawned(&self, group: &Group) -> bool {
        group.iter().any(|peer| peer >= self.started)
    }

    /// Makes ready the place of a process that is to be spawned as number `next`.
    pub(crate) fn prepare(&self, next: Peer) -> std::io::Result<()> {
        self.engine.as_ref().map_or(Ok(()), |engine| engine.prepare(next))
    }

    /// Gets to know the members of a group of this job, as far as this process does not know them. Where it knew others
    /// by the same numbers, the members may not have sent it anything yet.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when there can be no more threads.
    pub(crate) fn acquaint(&self, group: &Group) -> Result<()> {
        let (Some(engine), Some(job)) = (&self.engine, Job::current().filter(|job| job.id() == self.id)) else {
            return Ok(());
        };
        let mut known = self.known.lock();
        let mut met = Vec::new();
        for peer in group.iter().filter(|peer| *peer < self.capacity) {
            let number = job.board().seat(peer).spawner().map_or(0, |spawner| spawner.number);
            let before = known.insert(peer, number);
            // Between hosts no number is used again, and devices know of all numbers from the start.
            if before != Some(number) && job.board().hosts() == 1 {
                met.push((peer, before.is_some()));
            }
        }
        if !met.is_empty()
            && let Err(error) = engine.meet(&met)
        {
            fail!(MPI_ERR_OTHER, "a thread that watches for deaths of processes cannot be started: {error}");
        }
        Ok(())
    }

    /// Returns the context with this number among those of the job; an even number, different in every job.
    pub(crate) fn context(&self, number: u64) -> u64 {
        mix(mix(self.id, number), 0) & !1
    }

    /// The same among those of the processes that were started together with this one.
    pub(crate) fn own_context(&self, number: u64) -> u64 {
        if self.spawn == 0 { self.context(number) } else { mix(mix(mix(self.id, SPAWNED), self.spawn), number) & !1 }
    }

    /// Returns the context in which the leader of spawned processes and their spawner meet.
    pub(crate) fn meeting_context(&self, spawn: u64) -> u64 {
        mix(mix(mix(self.id, MEETING), spawn), 0) & !1
    }

    /// What is known about a process.
    pub fn process(&self, peer: Peer) -> Process {
        let (host, rank_on_host) = self.hosts.find(peer, self.started);
        let (device, is_alive) =
            self.engine.as_ref().map_or(("", true), |engine| (engine.device_name(peer), engine.is_alive(peer)));
        Process { host, rank_on_host, device, is_alive }
    }

    /// Where the members of a group are found in the memory that they share ([`Engine::host_memory`]), in the order of
    /// their ranks; `None` if not all of them share memory with this process.
    pub fn shared_addresses(&self, group: &Group) -> Option<Box<[Address]>> {
        let engine = self.engine.as_ref()?;
        engine.host_memory()?;
        group.iter().map(|peer| engine.host_address(peer)).collect()
    }

    /// Adds a user of the world.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when the helper threads cannot be started.
    pub fn enter(&self) -> Result<()> {
        let mut users = self.users.lock();
        if *users == 0
            && let Some(engine) = &self.engine
            && let Err(error) = engine.resume()
        {
            fail!(MPI_ERR_OTHER, "the message engine cannot start its threads: {error}");
        }
        *users += 1;
        Ok(())
    }

    /// Removes a user. The last one waits until all messages have been handed to the devices, which `observer` learns,
    /// and stops the helper threads.
    pub fn leave(&self, observer: &dyn Observer) {
        let mut users = self.users.lock();
        *users -= 1;
        if *users > 0 {
            return;
        }
        if let Some(engine) = &self.engine {
            // An interrupted program ends without having waited for its last messages.
            let flushed = self.buffers.flush_all(engine, observer);
            let _ = flushed.and_then(|()| engine.drain(observer));
            engine.stop();
            self.say_farewell(engine);
            self.part_from_all();
        }
        // A launcher deletes the files of the messages itself, when all ranks have ended.
        if Job::current().is_some_and(|job| job.id() == self.id && !job.launched()) {
            config::get().delete_messages(self.id);
        }
    }

    /// Tells the members of communicators whose members disagree that this process answers nothing any more.
    fn say_farewell(&self, engine: &Engine) {
        let ended = engine.ended_groups();
        let groups = ended.iter().filter_map(|context| self.comms.group(context & !1));
        let mut peers: Vec<Peer> = groups.flat_map(|group| group.iter().collect::<Vec<_>>()).collect();
        peers.sort_unstable();
        peers.dedup();
        if !peers.is_empty() {
            engine.say_farewell(&peers);
        }
    }
}

/// Returns whether this process of the job has left by `MPI_Finalize`.
pub fn has_finalized(peer: Peer) -> bool {
    let is_there = |job: &&Job| peer < job.board().capacity();
    Job::current().filter(is_there).is_some_and(|job| job.board().seat(peer).has_finalized())
}

static OF_JOB: OnceLock<Arc<World>> = OnceLock::new();

/// Returns the world of the process's job. Requests without an object ([`crate::light`]) belong to it: their handle
/// names a slot of its engine.
///
/// # Panics
/// Before initialisation: there are no such requests then.
#[inline]
pub(crate) fn of_light_requests() -> &'static World {
    of_job_if_any().expect("requests exist only after initialisation")
}

/// The same; `None` before initialisation.
#[inline]
pub(crate) fn of_job_if_any() -> Option<&'static Arc<World>> {
    OF_JOB.get()
}

fn options(config: &config::Config) -> Options {
    Options {
        wait: match config.wait {
            WaitMode::Auto => Wait::Auto,
            WaitMode::Poll => Wait::Poll,
            WaitMode::Block => Wait::Block,
        },
        spin_ns: config.spin.as_nanos() as u64,
        eager_limit: config.eager_bytes + if config.check { check::HEADER } else { 0 },
        unexpected_limit: config.unexpected_bytes,
        independent_progress: true,
    }
}

fn out_of_memory(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::OutOfMemory | std::io::ErrorKind::StorageFull)
}

#[cfg(test)]
mod tests;
