//! The shared-memory device: processes of one machine.
//!
//! The device's part of the job's shared file, from `offset` on:
//!
//! ```text
//!   port of process 0 | port of process 1 | ...         PORT_BYTES each, reserved before the process starts
//!   lane 0->0 | lane 1->0 | ... | lane 0->1 | ...       LANE_BYTES each, reserved and mapped on first use
//!   pool of process 0 | pool of process 1 | ...         POOL_BYTES each, mapped on first use, reserved in steps
//!   names of areas | areas                              see `directory` and `host_memory`
//! ```
//!
//! A port holds what others need to reach a process: its doorbell, process id, an address to probe, and one bit per
//! peer that has opened a lane to it. A lane (from one sender to one receiver) is a ring of cells and an arena:
//!
//! ```text
//!   cell info:  bits 0-7 kind, 8-15 length of inline data or IN_ARENA or IN_POOL or IN_CHAIN,
//!               16-31 length of a chain's data
//!   cell body:  words[0], words[1] of the packet | 40 bytes of inline data, or: arena position u64, length u64
//!   in a chain: the data go on in the bodies of the cells that follow
//! ```
//!
//! Data that are too long for cells lie in a block of the sender's pool, or in the lane's arena if the pool has no
//! room. Instead of position and length in the arena, the cell then has `first slot | generation << 32` and length.
//!
//! Memory grows with the pairs that exchange packets: the file is sparse, and so is the address space.
//!
//! There is room for more processes than there are ([`Seats`]). A process that joins later takes a free number; a
//! process that knows of it prepares the number's part of the file ([`ShmDevice::prepare`]). Each of its partners
//! forgets the former process of that number ([`ShmDevice::meet`]), and only then may either of them send.
//!
//! Packets to and from the former process never reach the new process:
//! - A number's port counts its processes. A process opens a lane only to the process that it has met: later it finds a
//!   different count, and the former process dead.
//! - A process clears a lane before it opens it. No other process uses the lane before that: its receiver reads it only
//!   when it is announced, and a prepared port announces none. Earlier packets on the lane, from its sender to the
//!   former process or left by a receiver that was taking one, are gone.

use crate::{Address, Data, Device, DeviceError, Meta, PeerMemory, Sent, Urgency};
use limosa_base::descriptor::Descriptor;
use limosa_base::fence;
use limosa_base::pool::{self, Blocks, GivenBack, POOL_BYTES};
use limosa_base::ring::{ARENA_UNIT, BODY_BYTES, Body, Consumer, LANE_BYTES, Producer, Ring, TAIL_BYTES};
use limosa_base::segment::{self, Mapping, PAGE, Shared};
use limosa_base::sync::Ordering;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

mod deaths;
mod directory;
mod fast_path;
mod host_memory;
mod ports;
mod pull;
#[cfg(test)]
mod tests;

pub use deaths::DeathWatch;
pub use directory::NamedArea;
pub use host_memory::HostMemory;
pub use ports::DoorbellRef;

use ports::{PORT_BYTES, Ports};
use pull::CrossMemory;

/// Most processes of one job on one machine.
pub const MAX_PEERS: usize = 4096;

const CELLS: usize = 256;
const ARENA_OFFSET: usize = size_of::<Ring<CELLS>>();
const ARENA_BYTES: usize = LANE_BYTES - ARENA_OFFSET;
const INLINE_BYTES: usize = TAIL_BYTES;
const IN_ARENA: u32 = 255;
const IN_CHAIN: u32 = 254;
const IN_POOL: u32 = 253;
/// Slots by which a pool grows.
const POOL_STEP: usize = 256;
/// Blocks for which a pool that could not grow does not try to; doubled each time that it still cannot, up to the
/// longest.
const FIRST_PAUSE: u32 = 64;
const LONGEST_PAUSE: u32 = 1 << 16;
/// Times that a pool has no block before an owner of its blocks is checked for being dead.
const REFUSALS: u32 = 64;
/// Most cells that follow a first one: up to here data arrive sooner in cells than in the arena, where reading begins a
/// memory access later.
const CHAIN: usize = 4;
const CHAIN_BYTES: usize = INLINE_BYTES + CHAIN * BODY_BYTES;
/// Packets taken from one lane before the next lane is polled.
const BURST: usize = 16;

/// The processes that share the memory of a host.
#[derive(Clone, Debug)]
pub struct Seats {
    /// Returns the number of this process.
    pub me: Address,
    /// Processes known from the start, including this one.
    pub known: Range<Address>,
    /// Number of processes that there is room for.
    pub capacity: u32,
}

impl Seats {
    /// Process `me` of `size`, to which no other ones come.
    pub fn all(me: Address, size: u32) -> Seats {
        Seats { me, known: 0..size, capacity: size }
    }
}

struct OutLane {
    memory: Shared<Ring<CELLS>>,
    producer: Producer,
    /// The receiver's.
    doorbell: DoorbellRef,
}

struct InLane {
    peer: Address,
    memory: Shared<Ring<CELLS>>,
    consumer: Consumer,
    /// The peer's pool.
    pool: Shared<GivenBack>,
}

/// This process's pool.
struct OwnPool {
    memory: Shared<GivenBack>,
    blocks: Blocks,
}

/// The shared-memory device of one process.
pub struct ShmDevice {
    fd: Descriptor,
    offset: u64,
    seats: Seats,
    rank: Address,
    size: u32,
    ports: Arc<Ports>,
    outgoing: Vec<Option<OutLane>>,
    incoming: Vec<InLane>,
    pool: Option<OwnPool>,
    /// Blocks to be taken without asking for more memory, since there was none the last time.
    pool_pause: u32,
    /// The next such pause.
    next_pause: u32,
    /// Times that the pool had no block.
    refused: u32,
    /// The process that was last asked about because of that.
    suspect: Address,
    /// Processes with an accepted lane to this process, one bit each.
    accepted: Vec<u64>,
    /// As `accepted`, while there are only new lanes to look for: a poll compares it with the announcements of peers.
    /// While a death is to be reported, the first word differs, so polls take a closer look; otherwise this check costs
    /// nothing.
    expected: Vec<u64>,
    deaths: Arc<DeathWatch>,
    /// Deaths that the watch has found and that were looked at here.
    deaths_seen: usize,
    /// For each number which of its processes this one knows, see `Port::holder`.
    holders: Vec<u32>,
    /// Dead processes. Nothing is sent to them.
    dead: Vec<Address>,
    /// Dead processes whose deaths are to be reported once all their packets are taken.
    dying: Vec<Address>,
    /// Index in `incoming` of the lane of each process.
    lane_of: Vec<u32>,
    /// Lane polled first: the lane of the last packet.
    favourite: usize,
    memory: Arc<CrossMemory>,
    fences: fence::Membership,
}

impl ShmDevice {
    /// Joins the processes of this host in the file `fd`, whose bytes from `offset` (page-aligned) on belong to the
    /// device. `cross_memory`: whether peers' memory may be read directly where possible.
    ///
    /// # Errors
    /// The operating system's, among them lack of memory.
    pub fn join(fd: BorrowedFd<'_>, offset: u64, seats: &Seats, cross_memory: bool) -> io::Result<ShmDevice> {
        ShmDevice::join_with(fd, offset, seats, cross_memory, None)
    }

    /// Joins a second device between the same processes, at `offset` in the same file, which rings the doorbells of
    /// this one.
    ///
    /// # Errors
    /// As for [`ShmDevice::join`].
    pub fn join_beside(&self, offset: u64) -> io::Result<ShmDevice> {
        ShmDevice::join_with(self.fd.get()?, offset, &self.seats, false, Some(self))
    }

    /// Returns the bytes of the file that lanes and pools of `size` processes take, without areas.
    pub fn bytes_without_areas(size: u32) -> u64 {
        let lanes = u64::from(size) * u64::from(size) * LANE_BYTES as u64;
        let pools = u64::from(size) * POOL_BYTES as u64;
        ports_bytes(size) as u64 + (lanes + pools).next_multiple_of(PAGE as u64)
    }

    fn join_with(
        fd: BorrowedFd<'_>,
        offset: u64,
        seats: &Seats,
        cross_memory: bool,
        beside: Option<&ShmDevice>,
    ) -> io::Result<ShmDevice> {
        let (rank, size, known) = (seats.me, seats.capacity, seats.known.clone());
        if size as usize > MAX_PEERS || known.end > size || !known.contains(&rank) {
            return Err(io::Error::other(format!("at most {MAX_PEERS} processes can share a machine")));
        }
        let ports_bytes = ports_bytes(size);
        segment::grow(fd, offset + ShmDevice::bytes_without_areas(size))?;
        let (from, to) = ports_of(&known);
        segment::reserve(fd, offset + from, (to - from) as usize)?;
        let ports = Arc::new(Ports::new(fd, offset, ports_bytes, beside.map(|other| other.ports.clone()))?);
        let fences = fence::join_among(ports.clone(), rank, known.clone());
        ports.of(rank).open();
        let holders = (0..size).map(|peer| if known.contains(&peer) { ports.of(peer).holder() } else { 0 }).collect();
        let words = (known.end as usize).div_ceil(64);
        Ok(ShmDevice {
            deaths: beside.map_or_else(
                || Arc::new(DeathWatch::new(ports.clone(), rank, known, size)),
                |other| other.deaths.clone(),
            ),
            deaths_seen: 0,
            holders,
            dead: Vec::new(),
            dying: Vec::new(),
            fd: Descriptor::new(fd.try_clone_to_owned()?)?,
            offset: offset + ports_bytes as u64,
            seats: seats.clone(),
            rank,
            size,
            memory: Arc::new(CrossMemory::new(ports.clone(), size, cross_memory)),
            ports,
            outgoing: (0..size).map(|_| None).collect(),
            incoming: Vec::new(),
            pool: None,
            pool_pause: 0,
            next_pause: FIRST_PAUSE,
            refused: 0,
            suspect: 0,
            accepted: vec![0; words],
            expected: vec![0; words],
            lane_of: vec![u32::MAX; size as usize],
            favourite: 0,
            fences,
        })
    }

    /// Returns this process's number on this host.
    pub fn rank(&self) -> Address {
        self.rank
    }

    /// Returns the number of processes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns this process's doorbell.
    pub fn doorbell(&self) -> DoorbellRef {
        DoorbellRef::new(&self.ports, self.rank)
    }

    /// Returns direct access to the memory of the other processes.
    pub fn peer_memory(&self) -> Arc<dyn PeerMemory> {
        self.memory.clone()
    }

    /// Doorbells and areas.
    ///
    /// # Errors
    /// The operating system's, when there are no file descriptors left.
    pub fn host_memory(&self) -> io::Result<HostMemory> {
        let pools_end = (self.pool_offset(0) + u64::from(self.size) * POOL_BYTES as u64).next_multiple_of(PAGE as u64);
        let first = pools_end + directory::BYTES as u64;
        let (me, size, ports) = (self.rank, self.size, self.ports.clone());
        let fd = Descriptor::new(self.fd.get()?.try_clone_to_owned()?)?;
        Ok(HostMemory { fd, ports, first, me, size, directory: OnceLock::new() })
    }

    /// Makes the part of the file ready for a process that is to join as number `next`: one that has never been used,
    /// or whose process has ended.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory for it.
    pub fn prepare(&self, next: Address) -> io::Result<()> {
        let fd = self.fd.get()?;
        let (from, to) = ports_of(&(next..next + 1));
        segment::reserve(fd, self.offset - ports_bytes(self.size) as u64 + from, (to - from) as usize)?;
        self.ports.of(next).clear();
        segment::release(fd, self.lane_offset(0, next), self.size as usize * LANE_BYTES);
        for peer in 0..self.size {
            segment::release(fd, self.lane_offset(next, peer), LANE_BYTES);
        }
        segment::release(fd, self.pool_offset(next), POOL_BYTES);
        Ok(())
    }

    /// Adds the process that has joined as number `peer`. If this process knew a former process of this number, it
    /// forgets it; neither of the two may have sent anything yet.
    pub fn meet(&mut self, peer: Address, knew_another: bool) {
        let words = self.accepted.len().max(peer as usize / 64 + 1);
        self.accepted.resize(words, 0);
        self.expected.resize(words, 0);
        self.fences.admit(peer);
        self.holders[peer as usize] = self.ports.of(peer).holder();
        if knew_another {
            self.forget(peer);
        }
    }

    fn forget(&mut self, peer: Address) {
        self.outgoing[peer as usize] = None;
        if let Some(pool) = &mut self.pool {
            pool.blocks.take_back(peer);
        }
        self.dead.retain(|dead| *dead != peer);
        self.dying.retain(|dead| *dead != peer);
        self.close_lane(peer);
        self.memory.forget(peer);
        let (word, bit) = (peer as usize / 64, 1u64 << (peer % 64));
        self.accepted[word] &= !bit;
        self.ports.of(self.rank).senders[word].fetch_and(!bit, Ordering::AcqRel);
        self.expected.clone_from(&self.accepted);
        if !self.dying.is_empty() {
            self.expected[0] = !self.accepted[0];
        }
    }

    fn lane_offset(&self, from: Address, to: Address) -> u64 {
        self.offset + (u64::from(to) * u64::from(self.size) + u64::from(from)) * LANE_BYTES as u64
    }

    fn pool_offset(&self, of: Address) -> u64 {
        let lanes = u64::from(self.size) * u64::from(self.size);
        self.offset + lanes * LANE_BYTES as u64 + u64::from(of) * POOL_BYTES as u64
    }

    /// Adds memory to this process's pool; if there is none, the pool stays as it is for a while.
    #[cold]
    fn grow_pool(&mut self) {
        let offset = self.pool_offset(self.rank);
        let start = self.pool.as_ref().map_or(0, |pool| pool.blocks.room() * pool::SLOT_BYTES) as u64;
        let head = (POOL_BYTES - pool::SLOTS * pool::SLOT_BYTES) as u64;
        let (from, to) =
            (if start == 0 { 0 } else { head + start }, head + start + (POOL_STEP * pool::SLOT_BYTES) as u64);
        let grown = self.fd.get().and_then(|fd| {
            segment::reserve(fd, offset + from, (to - from) as usize)?;
            match &mut self.pool {
                Some(pool) => Ok(pool),
                none => {
                    let memory = Shared::new(fd, offset, POOL_BYTES)?;
                    Ok(none.insert(OwnPool { memory, blocks: Blocks::new(pool::most_slots()) }))
                }
            }
        });
        match grown {
            Ok(pool) => {
                pool.blocks.grow(POOL_STEP);
                self.next_pause = FIRST_PAUSE;
            }
            // A block may be free later, but asking costs more than the block is worth.
            Err(_) => {
                self.pool_pause = self.next_pause;
                self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Takes a block of the pool for `to` and has `data` written to it; returns the cell's words for it.
    #[inline]
    fn put_into_pool(&mut self, to: Address, data: &mut Data<'_>) -> Option<u64> {
        let len = data.len();
        if self.pool.as_ref().is_none_or(|pool| pool.blocks.at_end(len)) {
            if self.pool_pause == 0 {
                self.grow_pool();
            } else {
                self.pool_pause -= 1;
            }
        }
        let pool = self.pool.as_mut()?;
        let Some((start, generation)) = pool.blocks.take(&pool.memory, len, to) else {
            self.look_for_the_dead();
            return None;
        };
        let at = pool::place(start, len).expect("blocks that are taken lie in the pool");
        // SAFETY: the block is inside the mapping and was given back by its last receiver, or never used; the next one
        // does not look at it before the cell that names it.
        data.write(unsafe { std::slice::from_raw_parts_mut(pool.memory.mapping().address(at), len) });
        Some(u64::from(start) | u64::from(generation) << 32)
    }

    /// Takes back what a process that has ended keeps of the pool. Asks about one process at a time, and seldom, since
    /// that costs more than a block is worth.
    #[cold]
    fn look_for_the_dead(&mut self) {
        self.refused = self.refused.wrapping_add(1);
        if let Some(pool) = &mut self.pool
            && self.refused.is_multiple_of(REFUSALS)
            && let Some(holder) = pool.blocks.next_holder(self.suspect)
        {
            self.suspect = holder;
            if !self.ports.of(holder).is_alive() {
                pool.blocks.take_back(holder);
            }
        }
    }

    #[cold]
    fn open_lane(&mut self, to: Address) -> Result<(), DeviceError> {
        if self.dead.contains(&to) || self.ports.of(to).holder() != self.holders[to as usize] {
            return Err(died(to));
        }
        let offset = self.lane_offset(self.rank, to);
        if let Ok(fd) = self.fd.get() {
            segment::release(fd, offset, LANE_BYTES);
        }
        let reserved = self.fd.get().and_then(|fd| segment::reserve(fd, offset, LANE_BYTES).map(|()| fd));
        let memory = reserved
            .and_then(|fd| Shared::new(fd, offset, LANE_BYTES))
            .map_err(|cause| DeviceError::NoMemory { peer: to, cause })?;
        let doorbell = DoorbellRef::new(&self.ports, to);
        self.outgoing[to as usize] = Some(OutLane { memory, producer: Producer::default(), doorbell });
        // The first packet's ring and fence make this bit visible before the receiver can go to sleep without having
        // looked at it.
        self.ports.of(to).senders[self.rank as usize / 64].fetch_or(1 << (self.rank % 64), Ordering::Release);
        Ok(())
    }

    /// Checks whether other processes have opened lanes to this process since the last check, or have died.
    #[inline]
    fn look_around(&mut self) -> Result<(), DeviceError> {
        for word in 0..self.expected.len() {
            if self.ports.of(self.rank).senders[word].load(Ordering::Acquire) != self.expected[word] {
                return self.look_closer();
            }
        }
        Ok(())
    }

    #[cold]
    fn look_closer(&mut self) -> Result<(), DeviceError> {
        (0..self.accepted.len()).try_for_each(|word| self.accept_lanes(word))?;
        let dead = self.next_dead();
        self.expected.clone_from(&self.accepted);
        if !self.dying.is_empty() {
            self.expected[0] = !self.accepted[0];
        }
        dead.map_or(Ok(()), |peer| Err(died(peer)))
    }

    /// Maps lanes that others have opened to this process.
    fn accept_lanes(&mut self, word: usize) -> Result<(), DeviceError> {
        let mut fresh = self.ports.of(self.rank).senders[word].load(Ordering::Acquire) & !self.accepted[word];
        while fresh != 0 {
            let peer = word as u32 * 64 + fresh.trailing_zeros();
            fresh &= fresh - 1;
            if peer >= self.size {
                return Err(DeviceError::Corrupt { peer, what: "the number of a process that does not exist" });
            }
            let fd = self.fd.get().map_err(|cause| DeviceError::NoMemory { peer, cause })?;
            let memory = Shared::new(fd, self.lane_offset(peer, self.rank), LANE_BYTES)
                .map_err(|cause| DeviceError::NoMemory { peer, cause })?;
            let pool = Shared::new(fd, self.pool_offset(peer), POOL_BYTES)
                .map_err(|cause| DeviceError::NoMemory { peer, cause })?;
            self.lane_of[peer as usize] = self.incoming.len() as u32;
            self.incoming.push(InLane { peer, memory, consumer: Consumer::default(), pool });
            self.accepted[word] |= 1 << (peer % 64);
        }
        Ok(())
    }

    /// Returns a dead peer whose lane is drained; the lane is closed.
    fn next_dead(&mut self) -> Option<Address> {
        let incoming = &mut self.incoming;
        let is_empty = |peer: &Address| {
            let lane = incoming.iter_mut().find(|lane| lane.peer == *peer);
            lane.is_none_or(|lane| lane.consumer.peek(&lane.memory).is_none())
        };
        let at = self.dying.iter().position(is_empty)?;
        let peer = self.dying.remove(at);
        self.close_lane(peer);
        Some(peer)
    }

    /// Takes nothing from this process any more.
    fn close_lane(&mut self, peer: Address) {
        self.incoming.retain(|lane| lane.peer != peer);
        self.lane_of.fill(u32::MAX);
        for (index, lane) in self.incoming.iter().enumerate() {
            self.lane_of[lane.peer as usize] = index as u32;
        }
        self.favourite = 0;
    }
}

fn died(peer: Address) -> DeviceError {
    DeviceError::Died { peer, what: "its process has ended without MPI_Finalize" }
}

fn ports_bytes(size: u32) -> usize {
    (size as usize * PORT_BYTES).next_multiple_of(PAGE)
}

/// Returns the pages that have the ports of these processes: from where to where behind the first port.
fn ports_of(processes: &Range<Address>) -> (u64, u64) {
    let end = (processes.end as usize * PORT_BYTES).next_multiple_of(PAGE);
    ((processes.start as usize * PORT_BYTES / PAGE * PAGE) as u64, end as u64)
}

fn arena_bytes(mapping: &Mapping, position: u64) -> *mut u8 {
    mapping.address(ARENA_OFFSET + (position % ARENA_BYTES as u64) as usize)
}

impl InLane {
    /// Hands up to [`BURST`] packets to `sink`.
    #[inline]
    fn poll(&mut self, ports: &Ports, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let mut any = false;
        for _ in 0..BURST {
            let Some((info, body)) = self.consumer.peek(&self.memory) else { break };
            any = true;
            let meta = Meta { kind: info as u8, words: [body[0], body[1]] };
            let inline = (info >> 8) & 0xff;
            if inline == IN_CHAIN {
                let len = (info >> 16) as usize;
                if len <= INLINE_BYTES || len > CHAIN_BYTES {
                    return Err(DeviceError::Corrupt { peer: self.peer, what: "a chain of impossible length" });
                }
                let cells = (len - INLINE_BYTES).div_ceil(BODY_BYTES);
                let mut data = [[0u64; BODY_BYTES / 8]; 1 + CHAIN];
                data[0] = body;
                for (i, part) in data.iter_mut().enumerate().take(1 + cells).skip(1) {
                    *part = self.consumer.peek_more(&self.memory, i);
                }
                // SAFETY: an array of integers, all bytes of which are initialised.
                let bytes = unsafe { &*(&raw const data).cast::<[u8; (1 + CHAIN) * BODY_BYTES]>() };
                sink(self.peer, &meta, &bytes[16..16 + len]);
                self.consumer.advance_by(&self.memory, 1 + cells);
                continue;
            }
            if inline == IN_POOL {
                let (start, generation, len) = (body[2] as u32, (body[2] >> 32) as u32, body[3]);
                let Some(at) = usize::try_from(len).ok().and_then(|len| pool::place(start, len)) else {
                    return Err(DeviceError::Corrupt { peer: self.peer, what: "a block outside its pool" });
                };
                // SAFETY: the block is inside the mapping by the check above; the sender leaves it alone until it is
                // given back below.
                let data = unsafe { std::slice::from_raw_parts(self.pool.mapping().address(at), len as usize) };
                sink(self.peer, &meta, data);
                self.pool.give(start, generation);
                self.consumer.advance(&self.memory);
                continue;
            }
            if inline == IN_ARENA {
                let (position, len) = (body[2], body[3]);
                let at = position % ARENA_BYTES as u64;
                if len > ARENA_BYTES as u64 || at + len > ARENA_BYTES as u64 {
                    return Err(DeviceError::Corrupt { peer: self.peer, what: "a block outside its lane" });
                }
                // SAFETY: the block is inside the mapping by the check above; the sender leaves it alone until it is
                // given back below.
                let data =
                    unsafe { std::slice::from_raw_parts(arena_bytes(self.memory.mapping(), position), len as usize) };
                sink(self.peer, &meta, data);
                self.consumer.free_arena(&self.memory, position, len as usize);
            } else {
                // SAFETY: a body is an array of integers, all bytes of which are initialised.
                let bytes = unsafe { &*(&raw const body).cast::<[u8; BODY_BYTES]>() };
                let Some(data) = bytes[16..].get(..inline as usize) else {
                    return Err(DeviceError::Corrupt { peer: self.peer, what: "a cell of impossible length" });
                };
                sink(self.peer, &meta, data);
            }
            self.consumer.advance(&self.memory);
        }
        if any {
            fence::light();
            if self.memory.take_starved() {
                ports.doorbell(self.peer).ring(true);
            }
        }
        Ok(any)
    }
}

impl Device for ShmDevice {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn is_alive(&self, peer: Address) -> bool {
        !self.dead.contains(&peer) && self.ports.of(peer).is_alive()
    }

    fn max_data(&self) -> usize {
        ARENA_BYTES / 2 - ARENA_UNIT
    }

    #[inline]
    fn send(&mut self, to: Address, meta: &Meta, mut data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError> {
        if let (Some(lane), Data::Bytes(bytes)) = (&mut self.outgoing[to as usize], &data)
            && bytes.len() <= INLINE_BYTES
        {
            if !lane.producer.push_parts(
                &lane.memory,
                u32::from(meta.kind) | (bytes.len() as u32) << 8,
                meta.words,
                bytes,
            ) {
                return Ok(Sent::NoRoom);
            }
            lane.doorbell.ring(urgency == Urgency::Urgent);
            return Ok(Sent::Done);
        }
        if self.outgoing[to as usize].is_none() {
            self.open_lane(to)?;
        }
        let lane = self.outgoing[to as usize].as_mut().expect("the lane was opened above");
        let len = data.len();
        let mut body: Body = [0; BODY_BYTES / 8];
        body[0] = meta.words[0];
        body[1] = meta.words[1];
        let cells = 1 + len.saturating_sub(INLINE_BYTES).div_ceil(BODY_BYTES);
        if len > INLINE_BYTES && len <= CHAIN_BYTES && lane.producer.has_room_for(&lane.memory, cells) {
            let mut parts: [Body; 1 + CHAIN] = [[0; BODY_BYTES / 8]; 1 + CHAIN];
            parts[0] = body;
            // SAFETY: an array of integers; any bytes may be written to it.
            let bytes = unsafe { &mut *(&raw mut parts).cast::<[u8; (1 + CHAIN) * BODY_BYTES]>() };
            data.write(&mut bytes[16..16 + len]);
            lane.producer.push_chain(
                &lane.memory,
                u32::from(meta.kind) | IN_CHAIN << 8 | (len as u32) << 16,
                &parts[0],
                &parts[1..cells],
            );
            lane.doorbell.ring(urgency == Urgency::Urgent);
            return Ok(Sent::Done);
        }
        let mut room = lane.producer.has_room(&lane.memory);
        if room
            && len > INLINE_BYTES
            && let Some(block) = self.put_into_pool(to, &mut data)
        {
            body[2] = block;
            body[3] = len as u64;
            let lane = self.outgoing[to as usize].as_mut().expect("the lane was opened above");
            let pushed = lane.producer.push(&lane.memory, u32::from(meta.kind) | IN_POOL << 8, &body);
            debug_assert!(pushed, "there was room for a cell");
            lane.doorbell.ring(urgency == Urgency::Urgent);
            return Ok(Sent::Done);
        }
        let lane = self.outgoing[to as usize].as_mut().expect("the lane was opened above");
        if room {
            let inline = if len <= INLINE_BYTES {
                // SAFETY: a body is an array of integers; any bytes may be written to it.
                let bytes = unsafe { &mut *(&raw mut body).cast::<[u8; BODY_BYTES]>() };
                data.write(&mut bytes[16..16 + len]);
                len as u32
            } else if let Some(position) = lane.producer.take_arena(&lane.memory, ARENA_BYTES, len) {
                // SAFETY: the block was just taken, lies inside the mapping, and the receiver does not look at it
                // before the cell below.
                data.write(unsafe {
                    std::slice::from_raw_parts_mut(arena_bytes(lane.memory.mapping(), position), len)
                });
                body[2] = position;
                body[3] = len as u64;
                IN_ARENA
            } else {
                room = false;
                0
            };
            room = room && lane.producer.push(&lane.memory, u32::from(meta.kind) | inline << 8, &body);
        }
        if !room {
            return Ok(Sent::NoRoom);
        }
        lane.doorbell.ring(urgency == Urgency::Urgent);
        Ok(Sent::Done)
    }

    fn want_room(&mut self, to: Address) {
        if let Some(lane) = &self.outgoing[to as usize] {
            lane.memory.set_starved();
            fence::heavy();
            self.ports.doorbell(to).ring(true);
        }
    }

    #[inline]
    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.look_around()?;
        let lanes = self.incoming.len();
        let mut any = false;
        for i in 0..lanes {
            let index = if self.favourite + i < lanes { self.favourite + i } else { self.favourite + i - lanes };
            if self.incoming[index].poll(&self.ports, sink)? {
                any = true;
                self.favourite = index;
                break;
            }
        }
        if any && lanes > 1 {
            // The other lanes are polled too, or a busy lane would starve them.
            for index in 0..lanes {
                if index != self.favourite {
                    let _ = self.incoming[index].poll(&self.ports, sink)?;
                }
            }
        }
        Ok(any)
    }

    fn alert(&self, to: Address) {
        self.ports.doorbell(to).ring(true);
    }

    fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        Some(self.deaths.clone())
    }

    fn notice_deaths(&mut self) {
        let dead = self.deaths.dead_after(self.deaths_seen);
        self.deaths_seen += dead.len();
        for peer in dead {
            // The next send finds no lane, and the next poll something to look at.
            self.outgoing[peer as usize] = None;
            if let Some(pool) = &mut self.pool {
                pool.blocks.take_back(peer);
            }
            self.dead.push(peer);
            self.dying.push(peer);
            self.expected[0] = !self.accepted[0];
        }
    }

    fn is_attended(&self, to: Address) -> bool {
        self.ports.doorbell(to).is_attended()
    }
}
