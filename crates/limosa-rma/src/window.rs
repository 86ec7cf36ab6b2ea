//! Windows: memory of a process that the members of a group may access (MPI-5 section 12.2).
//!
//! Contract
//! - A window has a communicator of its own, a child of the one that it was created from: for its barriers, and as its
//!   name in packets, by the context.
//! - The members agree before anything is kept: if one of them cannot continue, all fail.
//! - The access path to each target is fixed when the window is created ([`WindowTarget`]).

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use limosa_base::biased::Biased;
use limosa_base::segment::available;
use limosa_mpi::attr::{Attributes, Kind};
use limosa_mpi::check;
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::errhandler::{Errhandler, Scope};
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::group::Group;
use limosa_mpi::info::Info;
use limosa_p2p::{Address, Peer};
use parking_lot::{Mutex, RwLock};

use crate::agree::{self, Flavor, WindowPart};
use crate::allocated::{self, LINE};
use crate::conflicts::AccessLog;
use crate::epochs::{Epochs, Gates};
use crate::guard::Guard;
use crate::hints::Hints;
use crate::memory::{Area, Block, MemoryOwner, Plan};
use crate::notices::Notices;
use crate::shared_lock::SharedLocks;
use crate::station::{Exposed, Station, StationState, Stations};

/// Access path to a target's memory.
pub(crate) enum Reach {
    /// Mapped here, at this address.
    Direct(*mut u8),
    /// By system copies, at this address of that process; everything else by packets.
    Attached(Address, u64),
    /// By packets.
    Remote,
}

/// A target of a window.
pub(crate) struct WindowTarget {
    pub peer: Peer,
    pub size: u64,
    pub unit: i64,
    pub reach: Reach,
    /// Guard for accumulation, if the memory is mapped here.
    pub guard: Option<Arc<Guard>>,
}

/// A window.
pub struct Window {
    pub(crate) comm: Arc<Comm>,
    flavor: Flavor,
    is_freed: AtomicBool,
    pub(crate) targets: Box<[WindowTarget]>,
    pub(crate) station: Arc<Station>,
    /// StationState machine of the epochs. The thread that creates the window enters it without locked instructions.
    pub(crate) epochs: Biased<Epochs>,
    /// Log of the accesses, if the job checks conflicts.
    pub(crate) access_log: Option<Mutex<AccessLog>>,
    /// Gates that the epochs open.
    pub(crate) gates: Arc<Gates>,
    /// Locks and notices of the members, if all share memory.
    pub(crate) locks: Option<SharedLocks>,
    pub(crate) notices: Option<Notices>,
    /// Whether all memory is mapped here.
    pub(crate) is_direct: bool,
    /// Whether members announce the number of accesses sent by packets: all members, or none.
    pub(crate) counts_packets: bool,
    /// Owner of the window's memory.
    #[allow(dead_code)]
    owner: MemoryOwner,
    attributes: Attributes,
    hints: Hints,
    name: Mutex<Vec<u8>>,
    errhandler: RwLock<Arc<Errhandler>>,
    /// Values whose addresses `MPI_Win_get_attr` returns.
    size: i64,
    unit: c_int,
    flavor_constant: c_int,
    model: c_int,
    /// Handle under which the ABI layer registered this window; 0 if none.
    pub handle: AtomicUsize,
}

// SAFETY: the addresses are of memory that lives as long as the window and is accessed by the rules of windows.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

/// Access path to the memory of each member, with its guard if it is mapped here.
type Reaches = Vec<(Reach, Option<Arc<Guard>>)>;

/// Memory of all members, as one member sees it.
struct WindowMemory {
    owner: MemoryOwner,
    reaches: Reaches,
    /// This process's part, and the guard of all processes that change it.
    base: *mut u8,
    guard: Arc<Guard>,
    /// Shared memory of all members, if any.
    common: Option<Arc<Area>>,
}

impl Window {
    /// Creates a window with all members of a communicator.
    ///
    /// # Errors
    /// `MPI_ERR_DISP`, `MPI_ERR_RMA_SHARED`, `MPI_ERR_RMA_FLAVOR`, `MPI_ERR_NO_MEM`; at all members.
    pub fn make(comm: &Arc<Comm>, part: WindowPart, info: Option<&Info>) -> Result<Arc<Window>> {
        let Some(comm) = comm.create(comm.group())? else {
            fail!(MPI_ERR_INTERN, "this process is no member of its communicator")
        };
        comm.set_name(b"a window");
        let hints = Hints::new(info);
        let stations = Stations::of(comm.world());
        let parts = agree::on_parts(&comm, &part, hints.are_apart(), allocated::alignment(info))?;
        let provided = provide(&comm, &part, &parts)?;
        let targets = targets(&comm, &parts, provided.reaches);
        let exposed = Exposed {
            base: if part.flavor == Flavor::Dynamic { 0 } else { provided.base as usize },
            size: part.size as u64,
            is_dynamic: part.flavor == Flavor::Dynamic,
        };
        let station = Arc::new(Station {
            context: comm.context(),
            group: comm.group().clone(),
            rank: comm.rank(),
            memory: exposed,
            guard: provided.guard,
            max_packet: comm.engine().max_packet().clamp(MIN_PACKET, MAX_PACKET),
            done: (0..comm.size()).map(|_| AtomicU32::new(0)).collect(),
            state: Mutex::new(StationState::new(comm.size())),
        });
        stations.enter(&station, comm.engine());
        // No member sends packets before all are ready for them.
        if let Err(error) = limosa_coll::barrier(&comm) {
            stations.leave(&station, comm.engine());
            return Err(error);
        }
        let epochs = Epochs::new(comm.size());
        let access_log = check::is_on().then(|| Mutex::new(AccessLog::new(comm.size())));
        let me = comm.rank() as usize;
        let notices = provided.common.as_ref().map(|area| Notices::new(area, &comm, me));
        Ok(Arc::new(Window {
            comm,
            flavor: part.flavor,
            is_freed: AtomicBool::new(false),
            is_direct: targets.iter().all(|target| matches!(target.reach, Reach::Direct(_))),
            targets,
            station,
            gates: epochs.gates().clone(),
            epochs: Biased::new(epochs),
            access_log,
            locks: provided.common.map(|area| SharedLocks::new(&area, me)),
            counts_packets: part.flavor == Flavor::Create && notices.is_some(),
            notices,
            owner: provided.owner,
            attributes: Attributes::new(Kind::Window),
            hints,
            name: Mutex::default(),
            errhandler: RwLock::new(Errhandler::fatal()),
            size: part.size,
            unit: part.unit as c_int,
            flavor_constant: part.flavor.constant(),
            model: MPI_WIN_UNIFIED,
            handle: AtomicUsize::new(0),
        }))
    }

    /// Frees the window (`MPI_Win_free`), when all members have called this.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` in an epoch, or the error of a delete callback: the window stays as it is. The death of a
    /// member: the window is freed nevertheless ([`Window::is_freed`]).
    pub fn free(&self) -> Result<()> {
        self.epochs.lock().check_free()?;
        self.attributes.delete_all(self.handle.load(Ordering::Relaxed))?;
        let waited = limosa_coll::barrier(&self.comm);
        if waited.as_ref().is_err_and(|error| error.interrupted) {
            return waited;
        }
        Stations::of(self.comm.world()).leave(&self.station, self.comm.engine());
        self.is_freed.store(true, Ordering::Release);
        self.comm.free()?;
        waited
    }

    /// Returns whether the window was freed.
    pub fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::Acquire)
    }

    /// Returns the group of the members.
    pub fn group(&self) -> &Arc<Group> {
        self.comm.group()
    }

    /// Returns the origin of the memory.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Returns the start of this process's memory.
    pub fn base(&self) -> *mut u8 {
        self.station.memory.base as *mut u8
    }

    /// Returns bytes, displacement unit and local address of a member's memory (`MPI_Win_shared_query`); with
    /// `MPI_PROC_NULL`, of the first member that has memory. Returns zero bytes and null if it is not mapped here, or
    /// there are none.
    ///
    /// # Errors
    /// `MPI_ERR_RANK`, `MPI_ERR_RMA_FLAVOR`.
    pub fn query(&self, rank: i32) -> Result<(i64, i64, *mut u8)> {
        if self.flavor == Flavor::Dynamic {
            fail!(
                MPI_ERR_RMA_FLAVOR,
                "the window was made by MPI_Win_create_dynamic: its memory is not shared, only attached"
            );
        }
        let of = |target: &WindowTarget| match target.reach {
            Reach::Direct(at) if target.size > 0 => Some((target.size as i64, target.unit, at)),
            _ => None,
        };
        if rank == MPI_PROC_NULL {
            let first = self.targets.iter().find(|target| target.size > 0);
            return Ok(first.and_then(of).unwrap_or((0, self.targets[0].unit, std::ptr::null_mut())));
        }
        self.comm.partner(rank, "rank")?;
        let target = &self.targets[rank as usize];
        Ok(of(target).unwrap_or((0, target.unit, std::ptr::null_mut())))
    }

    /// Attaches memory of the program to a dynamic window.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_FLAVOR`, `MPI_ERR_RMA_ATTACH`.
    pub fn attach(&self, base: *mut u8, size: i64) -> Result<()> {
        self.check_dynamic("attached")?;
        let (start, bytes) = (base as usize, size as usize);
        if bytes == 0 {
            return Ok(());
        }
        if base.is_null() || start.checked_add(bytes).is_none() {
            fail!(
                MPI_ERR_RMA_ATTACH,
                "MPI_Win_attach got base {base:p} and size {bytes}, which describe no valid memory"
            );
        }
        let attached = &mut self.station.state.lock().attached;
        let overlaps = attached.range(..start + bytes).next_back().is_some_and(|(at, len)| at + len > start);
        if overlaps {
            fail!(MPI_ERR_RMA_ATTACH, "some of the {bytes} bytes at {base:p} are attached already");
        }
        attached.insert(start, bytes);
        Ok(())
    }

    /// Detaches memory from a dynamic window.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_FLAVOR`, `MPI_ERR_RMA_ATTACH`.
    pub fn detach(&self, base: *mut u8) -> Result<()> {
        self.check_dynamic("detached")?;
        if self.station.state.lock().attached.remove(&(base as usize)).is_none() {
            fail!(MPI_ERR_RMA_ATTACH, "no memory was attached at {base:p}");
        }
        Ok(())
    }

    fn check_dynamic(&self, what: &str) -> Result<()> {
        if self.flavor == Flavor::Dynamic {
            return Ok(());
        }
        fail!(MPI_ERR_RMA_FLAVOR, "memory can be {what} only with a window made by MPI_Win_create_dynamic")
    }

    /// Returns the value of an attribute, if it is set: an address, or the program's value.
    ///
    /// # Errors
    /// `MPI_ERR_KEYVAL`.
    pub fn attribute(&self, keyval: i32) -> Result<Option<usize>> {
        let int = |value: &c_int| Some(&raw const *value as usize);
        Ok(match keyval {
            MPI_WIN_BASE => Some(self.base() as usize),
            MPI_WIN_SIZE => Some(&raw const self.size as usize),
            MPI_WIN_DISP_UNIT => int(&self.unit),
            MPI_WIN_CREATE_FLAVOR => int(&self.flavor_constant),
            MPI_WIN_MODEL => int(&self.model),
            _ => self.attributes.get(keyval)?,
        })
    }

    /// Returns the attributes that the program has set.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the hints in use.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Returns the name in bytes; empty if none was set.
    pub fn name(&self) -> Vec<u8> {
        self.name.lock().clone()
    }

    /// Names the window. A name longer than the ABI allows is cut off.
    pub fn set_name(&self, name: &[u8]) {
        *self.name.lock() = name[..name.len().min(MPI_MAX_OBJECT_NAME as usize - 1)].to_vec();
    }

    /// Returns the current error handler.
    pub fn errhandler(&self) -> Arc<Errhandler> {
        self.errhandler.read().clone()
    }

    /// Sets the error handler.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER`.
    pub fn set_errhandler(&self, errhandler: Arc<Errhandler>) -> Result<()> {
        errhandler.check_fits(Scope::Window)?;
        *self.errhandler.write() = errhandler;
        Ok(())
    }
}

/// Creates the targets of a window.
fn targets(comm: &Comm, parts: &[agree::Announced], reaches: Reaches) -> Box<[WindowTarget]> {
    let target = |(rank, (part, (reach, guard))): (usize, (&agree::Announced, _))| WindowTarget {
        peer: comm.group().world_rank(rank).expect("the rank of a member"),
        size: part.size,
        unit: part.unit,
        reach,
        guard,
    };
    parts.iter().zip(reaches).enumerate().map(target).collect()
}

/// Bytes that fit a packet of any device.
const MIN_PACKET: usize = 512;
/// Bytes of an access that travel in one packet.
const MAX_PACKET: usize = 8 * 1024;

/// Provides the memory of all members.
fn provide(comm: &Arc<Comm>, part: &WindowPart, parts: &[agree::Announced]) -> Result<WindowMemory> {
    let me = comm.rank() as usize;
    let neighbours = neighbours(comm);
    if part.flavor == Flavor::Shared && neighbours.len() < parts.len() {
        fail!(
            MPI_ERR_RMA_SHARED,
            "the processes of the communicator do not all share memory: split it with MPI_COMM_TYPE_SHARED first"
        );
    }
    if let Flavor::Create | Flavor::Dynamic = part.flavor {
        return provide_own(comm, part, parts, &neighbours);
    }
    let sizes: Vec<usize> = neighbours.iter().map(|rank| parts[*rank].size as usize).collect();
    let alignment = parts.iter().map(|part| part.alignment).max().unwrap_or(LINE);
    let plan = Plan::new(&sizes, part.flavor == Flavor::Shared && !parts[0].apart, alignment);
    let area = share(comm, &neighbours, plan.as_ref())?;
    let block = if neighbours.len() > 1 { None } else { Block::new(part.size as usize, alignment) };
    let is_made = area.is_some() || block.is_some();
    if agree::on_words(comm, is_made.into())?.contains(&0) {
        fail!(MPI_ERR_NO_MEM, "there is not enough memory for the window: this process requests {} bytes", part.size);
    }
    let mut reaches = all_remote(parts.len());
    let Some((area, plan)) = area.zip(plan) else {
        let block = block.expect("what is not shared is a block");
        let (base, guard) = (block.address(), Arc::new(Guard::own()));
        reaches[me] = (Reach::Direct(base), Some(guard.clone()));
        return Ok(WindowMemory { owner: MemoryOwner::Block(block), reaches, base, guard, common: None });
    };
    let mine = neighbours.iter().position(|rank| *rank == me).expect("a process is on its own host");
    for (member, &rank) in neighbours.iter().enumerate() {
        let guard = Arc::new(Guard::shared(&area, member, mine));
        reaches[rank] = (Reach::Direct(area.address(&plan, member)), Some(guard));
    }
    let (base, guard) = (area.address(&plan, mine), reaches[me].1.clone().expect("set above"));
    let common = (neighbours.len() == parts.len()).then(|| area.clone());
    Ok(WindowMemory { owner: MemoryOwner::Area(area), reaches, base, guard, common })
}

/// Provides the memory of a window over the program's memory. Members that share memory also share locks, and map
/// blocks that lie in the host's shared memory.
fn provide_own(
    comm: &Arc<Comm>,
    part: &WindowPart,
    parts: &[agree::Announced],
    neighbours: &[usize],
) -> Result<WindowMemory> {
    let me = comm.rank() as usize;
    let mut reaches = all_remote(parts.len());
    if part.flavor == Flavor::Create {
        attach(comm, parts, neighbours, &mut reaches);
    }
    let base = if part.flavor == Flavor::Create { part.base } else { std::ptr::null_mut() };
    let plan = if neighbours.len() == parts.len() { Plan::new(&vec![0; parts.len()], true, LINE) } else { None };
    let area = share(comm, neighbours, plan.as_ref())?;
    // All members use the same path: if one of them cannot map the area, all use packets.
    let area = if agree::on_words(comm, area.is_some().into())?.contains(&0) { None } else { area };
    let guard = Arc::new(area.as_ref().map_or_else(Guard::own, |area| Guard::shared(area, me, me)));
    let mut mapped = Vec::new();
    if let (Some(area), Some(host)) = (&area, comm.engine().host_memory()) {
        for (rank, part) in parts.iter().enumerate().filter(|(rank, _)| *rank != me) {
            let Some(location) = part.location else { continue };
            let Some(memory) = allocated::map(host, location, part.size) else { continue };
            let there = memory.mapping().address(location.offset as usize);
            reaches[rank] = (Reach::Direct(there), Some(Arc::new(Guard::shared(area, rank, me))));
            mapped.push(memory);
        }
    }
    reaches[me] = (Reach::Direct(base), Some(guard.clone()));
    Ok(WindowMemory { owner: MemoryOwner::Program(mapped), reaches, base, guard, common: area })
}

fn all_remote(ranks: usize) -> Reaches {
    (0..ranks).map(|_| (Reach::Remote, None)).collect()
}

/// Creates memory that the members of a host share; one of them allocates it. Returns `None` at all members if one of
/// them cannot map it, or if there is only one.
fn share(comm: &Arc<Comm>, neighbours: &[usize], plan: Option<&Plan>) -> Result<Option<Arc<Area>>> {
    let shared = neighbours.len() > 1;
    let is_owner = shared && neighbours[0] == comm.rank() as usize;
    let host = comm.engine().host_memory();
    let created = match (plan, host) {
        (Some(plan), Some(host)) if is_owner && available().is_none_or(|room| plan.bytes as u64 <= room) => {
            host.create_area(plan.bytes).ok()
        }
        _ => None,
    };
    let place = agree::on_words(comm, created.unwrap_or(u64::MAX))?[neighbours[0]];
    Ok(match (plan, host) {
        (Some(plan), Some(host)) if shared && place != u64::MAX => {
            Area::map(host, place, plan, is_owner).ok().map(Arc::new)
        }
        _ => None,
    })
}

/// Returns the ranks that share memory with this one, including itself, in order.
fn neighbours(comm: &Comm) -> Vec<usize> {
    let (engine, me) = (comm.engine(), comm.rank() as usize);
    let is_near = |&rank: &usize| {
        let peer = comm.group().world_rank(rank).expect("the rank of a member");
        rank == me || engine.host_memory().is_some() && engine.host_address(peer).is_some()
    };
    (0..comm.size()).filter(is_near).collect()
}

/// Sets the path to the program's memory in other processes of this host to system copies, where these are allowed.
fn attach(comm: &Comm, parts: &[agree::Announced], neighbours: &[usize], reaches: &mut Reaches) {
    let Some(memory) = comm.engine().peer_memory() else { return };
    for &rank in neighbours {
        let peer = comm.group().world_rank(rank).expect("the rank of a member");
        if let Some(address) = comm.engine().host_address(peer)
            && memory.can_access(address)
        {
            reaches[rank].0 = Reach::Attached(address, parts[rank].base);
        }
    }
}
