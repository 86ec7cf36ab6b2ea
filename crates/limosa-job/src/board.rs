//! The status board: what each rank of a job waits for and how far it has come, in the memory that its host shares.
//!
//! Invariants:
//! - a rank writes its own entry only; the launcher writes `started`, `appnum` and the final state;
//! - a record belongs to the thread whose number is in `owner`, from the compare and swap that claims it until it is
//!   released;
//! - readers never write, and never trust what they read: a board can be looked at while ranks crash.
//!
//! | state | set by | from |
//! |---|---|---|
//! | `Empty` | creation | |
//! | `Starting` | [`Board::claim`] | `Empty` |
//! | `Running` | [`Seat::running`] | `Starting` |
//! | `Finalized` | [`Seat::finalized`] | `Running` |
//! | `Aborted` | [`Board::abort`] | any |
//! | `Exited` | the launcher, [`Seat::exited`] | any |

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};
use std::time::Duration;

use rustix::fs::FallocateFlags;
use rustix::thread::futex;

use crate::error::JobError;
use crate::layout::{
    Entry, JobHeader, LYING, MAGIC, MAX_RANKS, RECORDS, RecordSlot, VERSION, WAITS, device_offset, entry_offset,
};
use crate::names::{MEMFD_PREFIX, MEMFD_SINGLE};
use crate::sys::{Mapping, memory_file, monotonic_ns, random_id, thread_id};
use crate::view::{Abort, Blocked, Kind, LyingView, Peer, RankView, Record, State, WaitView};

/// The status board of a job, mapped from its segment.
pub struct Board {
    map: Mapping,
    /// Ranks that there is room for.
    capacity: u32,
}

/// One rank's place on the board.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    entry: &'a Entry,
    rank: u32,
}

/// A thread that sleeps, as the board shows it. Dropping it says that the thread is awake again.
///
/// Keep it during wake-ups without progress, so that the board's epoch does not change while nothing happens.
#[must_use = "dropping this says that the thread is awake"]
pub struct Asleep<'a> {
    entry: &'a Entry,
    record: Option<&'a RecordSlot>,
    /// The record carries the number of the thread that made it.
    not_send: PhantomData<*const ()>,
}

/// A thread that polls in vain, as the board shows it. Dropping it says that the thread does so no more.
#[must_use = "dropping this says that the thread polls no more"]
pub struct Polling<'a> {
    entry: &'a Entry,
    record: &'a RecordSlot,
    /// The record carries the number of the thread that made it.
    not_send: PhantomData<*const ()>,
}

/// The spawn that started a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawner {
    /// The rank that asked for it.
    pub rank: u32,
    /// Number of the spawn among those of the job, from 1.
    pub number: u64,
}

/// Description of a job to be made.
#[derive(Clone, Debug)]
pub struct Shape {
    /// For each rank the number of its application.
    pub appnums: Vec<u32>,
    /// Ranks that may be added later.
    pub spare: u32,
    /// Number of processes that the machine is asked to hold.
    pub universe: u32,
    /// Process id of the launcher; 0 in a job of one without launcher.
    pub launcher_pid: u32,
}

impl Board {
    /// Makes the segment of a new job, with its memory reserved, and maps its board.
    pub fn create(shape: &Shape) -> io::Result<(OwnedFd, Board)> {
        Board::create_as(shape, random_id()?)
    }

    /// As [`Board::create`], on another host of the job `id`.
    pub fn create_as(shape: &Shape, id: u64) -> io::Result<(OwnedFd, Board)> {
        let ranks = u32::try_from(shape.appnums.len())
            .ok()
            .filter(|n| (1..=MAX_RANKS).contains(n))
            .ok_or(io::ErrorKind::InvalidInput)?;
        let name = if shape.launcher_pid == 0 { MEMFD_SINGLE.to_owned() } else { format!("{MEMFD_PREFIX}{id:016x}") };
        let capacity = ranks.saturating_add(shape.spare).min(MAX_RANKS);
        let len = device_offset(capacity);
        let fd = memory_file(&name, len, entry_offset(ranks))?;
        let board = Board { map: Mapping::new(fd.as_fd(), len)?, capacity };
        let header = board.header();
        header.version.store(VERSION, Relaxed);
        header.capacity.store(capacity, Relaxed);
        header.started.store(ranks, Relaxed);
        header.used.store(ranks, Relaxed);
        header.id.store(id, Relaxed);
        header.universe.store(shape.universe, Relaxed);
        header.launcher_pid.store(shape.launcher_pid, Relaxed);
        for (rank, appnum) in shape.appnums.iter().enumerate() {
            let entry = board.seat(rank as u32).entry;
            entry.appnum.store(*appnum, Relaxed);
            entry.group_size.store(ranks, Relaxed);
        }
        header.magic.store(MAGIC, Release);
        Ok((fd, board))
    }

    /// Maps the board of the job whose segment is `fd`, after checking that it is one.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Board, JobError> {
        let len = usize::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0);
        if len < size_of::<JobHeader>() {
            return Err(JobError::NoSegment("the file is too short".into()));
        }
        let first = Mapping::new(fd, size_of::<JobHeader>())?;
        let header: &JobHeader = first.at(0).ok_or_else(|| JobError::NoSegment("the header is not mapped".into()))?;
        if header.magic.load(Acquire) != MAGIC {
            return Err(JobError::NoSegment("its first bytes are not those of a job's segment".into()));
        }
        let version = header.version.load(Relaxed);
        if version != VERSION {
            return Err(JobError::Version { segment: version, library: VERSION });
        }
        let capacity = header.capacity.load(Relaxed);
        if capacity == 0 || capacity > MAX_RANKS || device_offset(capacity) > len {
            return Err(JobError::NoSegment(format!("it claims {capacity} ranks in {len} bytes")));
        }
        Ok(Board { map: Mapping::new(fd, device_offset(capacity))?, capacity })
    }

    pub(crate) fn header(&self) -> &JobHeader {
        // INVARIANT: `create` and `open` map at least the header.
        self.map.at(0).expect("the header is mapped")
    }

    /// Number of ranks that the job was started with.
    pub fn size(&self) -> u32 {
        self.header().started.load(Relaxed).clamp(1, self.capacity)
    }

    /// Number of ranks that there is room for.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// One more than the highest rank that there has been.
    pub fn used(&self) -> u32 {
        self.header().used.load(Acquire).clamp(1, self.capacity)
    }

    /// For the launcher: makes ready the places of the `size` ranks from `first` on, which the rank `parent` spawns, as
    /// the spawn of this number. These places are not used any more.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory.
    pub fn prepare(&self, segment: BorrowedFd<'_>, first: u32, appnums: &[u32], by: &Spawner) -> io::Result<()> {
        let size = appnums.len() as u32;
        let (from, to) = (entry_offset(first), entry_offset(first + size));
        rustix::fs::fallocate(segment, FallocateFlags::empty(), from as u64, (to - from) as u64)?;
        for (rank, appnum) in (first..).zip(appnums) {
            self.map.clear::<Entry>(entry_offset(rank));
            let entry = self.seat_of(rank).entry;
            entry.appnum.store(*appnum, Relaxed);
            entry.group_first.store(first, Relaxed);
            entry.group_size.store(size, Relaxed);
            entry.parent.store(by.rank, Relaxed);
            entry.spawn.store(by.number, Release);
        }
        self.header().used.fetch_max(first + size, AcqRel);
        Ok(())
    }

    /// For a launcher that takes the job over: it is its launcher from now on.
    pub fn set_launcher(&self, pid: u32) {
        self.header().launcher_pid.store(pid, Relaxed);
    }

    /// The job's id: random, never 0.
    pub fn id(&self) -> u64 {
        self.header().id.load(Relaxed)
    }

    /// Number of processes that the machine is asked to hold.
    pub fn universe_size(&self) -> u32 {
        self.header().universe.load(Relaxed)
    }

    /// Process id of the launcher; 0 in a job of one without launcher.
    pub fn launcher_pid(&self) -> u32 {
        self.header().launcher_pid.load(Relaxed)
    }

    /// Whether this choice of devices, a word that is not 0, is that of the ranks that have joined before.
    pub fn agree_on_devices(&self, choice: u64) -> bool {
        match self.header().devices.compare_exchange(0, choice, AcqRel, Acquire) {
            Ok(_) => true,
            Err(before) => before == choice,
        }
    }

    /// Byte of the segment at which the device's part begins; a multiple of 4096.
    pub fn device_offset(&self) -> u64 {
        device_offset(self.capacity) as u64
    }

    /// The place of `rank`.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn seat(&self, rank: u32) -> Seat<'_> {
        self.seat_of(rank)
    }

    /// Publishes a rank's number that must be the same on all, and returns the ranks with a different one.
    pub(crate) fn differing(&self, rank: u32, number: u64) -> Vec<u32> {
        self.seat_of(rank).entry.common.store(number, Release);
        // Of two ranks that do this at the same time, at least one sees both numbers.
        fence(SeqCst);
        let other = |rank: &u32| ![0, number].contains(&self.seat_of(*rank).entry.common.load(Acquire));
        (0..self.used()).filter(other).collect()
    }

    /// The number that a rank has published; 0 if none.
    pub(crate) fn common_number(&self, rank: u32) -> u64 {
        self.seat_of(rank).entry.common.load(Acquire)
    }

    fn seat_of(&self, rank: u32) -> Seat<'_> {
        assert!(rank < self.capacity, "rank {rank} of a board of {} ranks", self.capacity);
        // INVARIANT: entries of all ranks lie before `device_offset(capacity)`, which is mapped.
        let entry = self.map.at(entry_offset(rank)).expect("the entry is mapped");
        Seat { entry, rank }
    }

    /// Makes process `pid` the holder of `rank`. If another process has claimed it before, returns that one's id.
    pub fn claim(&self, rank: u32, pid: u32) -> Result<Seat<'_>, u32> {
        let seat = self.seat(rank);
        match seat.entry.pid.compare_exchange(0, pid, AcqRel, Acquire) {
            Ok(_) => {
                seat.set_state(State::Starting);
                self.ring();
                Ok(seat)
            }
            Err(other) => Err(other),
        }
    }

    /// Records that `rank` aborts the job, unless another has done so before, and wakes the launcher.
    pub fn abort(&self, rank: u32, code: i32, message: &str) {
        let header = self.header();
        if header.abort_state.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
            header.abort_rank.store(rank, Relaxed);
            header.abort_code.store(code, Relaxed);
            header.abort_text.store(message);
            header.abort_state.store(2, Release);
        }
        self.seat(rank).set_state(State::Aborted);
        self.ring();
    }

    /// The abort record, if a rank has aborted.
    pub fn aborted(&self) -> Option<Abort> {
        let header = self.header();
        (header.abort_state.load(Acquire) == 2).then(|| Abort {
            rank: header.abort_rank.load(Relaxed).min(self.used() - 1),
            code: header.abort_code.load(Relaxed),
            message: header.abort_text.load(),
        })
    }

    /// Wakes the threads that sleep in [`Board::wait_bell`].
    pub fn ring(&self) {
        let bell = &self.header().bell;
        bell.fetch_add(1, AcqRel);
        let _ = futex::wake(bell, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// How often the bell has been rung.
    pub fn bell(&self) -> u32 {
        self.header().bell.load(Acquire)
    }

    /// Sleeps until the bell has been rung since it was read as `seen`. May also return early.
    pub fn wait_bell(&self, seen: u32) {
        let _ = futex::wait(&self.header().bell, futex::Flags::empty(), seen, None);
    }

    /// Copies out what the board says of `rank`.
    pub fn view(&self, rank: u32) -> RankView {
        let seat = self.seat(rank);
        let e = seat.entry;
        // The epoch is read first: if something happens while the rest is read, the next look sees another epoch.
        let epoch = e.epoch.load(Acquire);
        RankView {
            rank,
            pid: e.pid.load(Acquire),
            started: e.started.load(Relaxed),
            state: State::from_u32(e.state.load(Acquire)),
            state_since_ns: e.state_since.load(Relaxed),
            appnum: e.appnum.load(Relaxed),
            threads: e.threads.load(Relaxed),
            asleep: e.asleep.load(Acquire),
            callers: e.callers.iter().map(|slot| slot.load(Acquire)).filter(|thread| *thread != 0).collect(),
            finalized: e.finalized.load(Relaxed) != 0,
            epoch,
            sleeps: e.sleeps.load(Relaxed),
            wakeups: e.wakeups.load(Relaxed),
            idle_wakeups: e.idle_wakeups.load(Relaxed),
            records: e.records.iter().filter_map(|slot| slot.read(self.used())).collect(),
        }
    }

    /// Copies out what the board says of every rank that there has been.
    pub fn views(&self) -> Vec<RankView> {
        (0..self.used()).map(|rank| self.view(rank)).collect()
    }
}

thread_local! {
    /// Where this thread is counted, if it is.
    static COUNTED: ThreadCount = const { ThreadCount(Cell::new(None)) };
}

/// Takes the thread off the board's count and list when the thread ends.
struct ThreadCount(Cell<Option<&'static Entry>>);

impl Drop for ThreadCount {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            let me = thread_id();
            if let Some(slot) = entry.callers.iter().find(|slot| slot.load(Relaxed) == me) {
                slot.store(0, Release);
            }
            entry.threads.fetch_sub(1, Relaxed);
        }
    }
}

impl<'a> Seat<'a> {
    fn set_state(&self, state: State) {
        self.entry.state_since.store(monotonic_ns(), Relaxed);
        self.entry.state.store(state as u32, Release);
        self.entry.epoch.fetch_add(1, AcqRel);
    }

    pub(crate) fn entry(&self) -> &'a Entry {
        self.entry
    }

    /// The rank whose place this is.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Process that claimed the rank, if any has.
    pub fn pid(&self) -> Option<u32> {
        Some(self.entry.pid.load(Acquire)).filter(|pid| *pid != 0)
    }

    /// Number of the rank's application.
    pub fn appnum(&self) -> u32 {
        self.entry.appnum.load(Relaxed)
    }

    /// The group with which this rank was started: its first rank and its size.
    pub fn group(&self) -> (u32, u32) {
        (self.entry.group_first.load(Relaxed), self.entry.group_size.load(Relaxed))
    }

    /// The spawn that started this rank; `None` if it was started with the job.
    pub fn spawner(&self) -> Option<Spawner> {
        let number = self.entry.spawn.load(Acquire);
        (number != 0).then(|| Spawner { rank: self.entry.parent.load(Relaxed), number })
    }

    /// Records that initialisation is complete.
    pub fn running(&self) {
        self.set_state(State::Running);
    }

    /// Records that the rank has finalized.
    pub fn finalized(&self) {
        self.entry.finalized.store(1, Relaxed);
        self.set_state(State::Finalized);
    }

    /// Publishes up to [`CARD_BYTES`](crate::CARD_BYTES) bytes about this rank for all others, in place of earlier
    /// ones. Ranks that wait for them are told otherwise; [`Board::ring`] has them sent to other hosts.
    ///
    /// # Panics
    /// If there are more.
    pub fn publish_card(&self, card: &[u8]) {
        self.entry.card.write(card);
    }

    /// What was published about this rank; `None` if nothing was. Untrusted, as all that is on the board.
    pub fn card(&self) -> Option<Vec<u8>> {
        self.entry.card.read()
    }

    /// For the launcher: which process it started for this rank.
    pub fn set_started(&self, pid: u32) {
        self.entry.started.store(pid, Relaxed);
    }

    /// For the launcher: the process of this rank has ended.
    pub fn exited(&self) {
        self.set_state(State::Exited);
    }

    /// Records progress for this rank while its threads sleep (a helper thread moved a message, for example).
    pub fn touch(&self) {
        self.entry.epoch.fetch_add(1, AcqRel);
    }

    /// Counts a wake-up after which there was nothing to do.
    pub fn woken_for_nothing(&self) {
        self.entry.idle_wakeups.fetch_add(1, Relaxed);
    }

    /// Counts a thread that is about to sleep, and shows what it waits for.
    pub fn blocked(&self, blocked: &Blocked<'_>) -> Asleep<'a> {
        let e = self.entry;
        let record = e.claim_record(blocked, 0);
        e.sleeps.fetch_add(1, Relaxed);
        e.asleep.fetch_add(1, AcqRel);
        e.epoch.fetch_add(1, AcqRel);
        Asleep { entry: e, record, not_send: PhantomData }
    }
}

impl<'a> Seat<'a> {
    /// Shows what the calling thread polls for in vain; `None` if as many threads as the board has room for wait.
    pub fn polling(&self, blocked: &Blocked<'_>) -> Option<Polling<'a>> {
        let record = self.entry.claim_record(blocked, 1)?;
        self.entry.epoch.fetch_add(1, AcqRel);
        Some(Polling { entry: self.entry, record, not_send: PhantomData })
    }
}

impl Polling<'_> {
    /// The thread has polled in vain once more.
    #[inline]
    pub fn again(&self) {
        let polls = self.record.polls.load(Relaxed).wrapping_add(1).max(1);
        self.record.polls.store(polls, Relaxed);
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.record.owner.store(0, Release);
        self.entry.epoch.fetch_add(1, AcqRel);
    }
}

impl Entry {
    /// Claims a free record for the calling thread and fills it; `None` if there is none.
    fn claim_record(&self, blocked: &Blocked<'_>, polls: u32) -> Option<&RecordSlot> {
        let me = thread_id();
        let slot = self.records.iter().find(|slot| slot.owner.compare_exchange(0, me, AcqRel, Relaxed).is_ok())?;
        slot.write(blocked, polls);
        Some(slot)
    }
}

impl Seat<'_> {
    /// Live threads of this rank that have called the library.
    pub fn threads(&self) -> u32 {
        self.entry.threads.load(Relaxed)
    }
}

impl Seat<'static> {
    /// Counts the calling thread among those that use the library, once, until it ends. Cheap enough for every call.
    #[inline]
    pub fn thread(&self) {
        // When a thread ends, its thread-local values are gone before its last steps; it need not be counted then.
        let _ = COUNTED.try_with(|counted| {
            if counted.0.get().is_none() {
                counted.0.set(Some(self.entry));
                self.entry.threads.fetch_add(1, Relaxed);
                let me = thread_id();
                let claims = |slot: &&AtomicU32| slot.compare_exchange(0, me, AcqRel, Relaxed).is_ok();
                let _ = self.entry.callers.iter().find(claims);
            }
        });
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let e = self.entry;
        e.epoch.fetch_add(1, AcqRel);
        e.asleep.fetch_sub(1, AcqRel);
        e.wakeups.fetch_add(1, Relaxed);
        if let Some(slot) = self.record {
            slot.owner.store(0, Release);
        }
    }
}

impl RecordSlot {
    /// Writes the record under its sequence lock. Only the owner calls this.
    fn write(&self, blocked: &Blocked<'_>, polls: u32) {
        let seq = self.seq.load(Relaxed) | 1;
        self.seq.store(seq, Relaxed);
        fence(Release);
        self.since.store(monotonic_ns(), Relaxed);
        self.call.store(blocked.call);
        let listed = blocked.waits.len().min(WAITS);
        self.waits.store(listed as u32, Relaxed);
        self.more.store((blocked.waits.len() - listed + blocked.more) as u32, Relaxed);
        self.all.store(blocked.all.into(), Relaxed);
        self.polls.store(polls, Relaxed);
        let lie = blocked.lying.len().min(LYING);
        self.lie.store(lie as u32, Relaxed);
        self.more_lie.store((blocked.lying.len() - lie) as u32, Relaxed);
        for (slot, lying) in self.lying.iter().zip(blocked.lying) {
            slot.source.store(lying.source, Relaxed);
            slot.source_world.store(lying.source_world, Relaxed);
            slot.tag.store(lying.tag, Relaxed);
            slot.context.store(lying.context, Relaxed);
            slot.bytes.store(lying.bytes, Relaxed);
            slot.name.store(lying.comm);
        }
        for (slot, wait) in self.wait.iter().zip(blocked.waits) {
            let (peer_kind, rank, world, job) = match wait.peer {
                Peer::Any => (0, 0, 0, 0),
                Peer::Members => wait.series.map_or((1, 0, 0, 0), |(first, distance)| (5, first, distance, 0)),
                Peer::Rank { rank, world } => (2, rank, world, 0),
                Peer::Outside { job, member: None } => (3, 0, 0, job),
                Peer::Outside { job, member: Some((rank, world)) } => (4, rank, world, job),
            };
            slot.kind.store(wait.kind as u32, Relaxed);
            slot.peer_kind.store(peer_kind, Relaxed);
            slot.peer.store(rank, Relaxed);
            slot.peer_world.store(world, Relaxed);
            slot.job.store(job, Relaxed);
            slot.has_tag.store(wait.tag.is_some().into(), Relaxed);
            slot.tag.store(wait.tag.unwrap_or(0), Relaxed);
            slot.context.store(wait.context, Relaxed);
            slot.name.store(wait.comm);
            slot.members.store(wait.members, Relaxed);
            slot.started.store(wait.started);
        }
        self.seq.store(seq.wrapping_add(1), Release);
    }

    /// Reads the record; `None` if it is free or was changing all the time.
    fn read(&self, ranks: u32) -> Option<Record> {
        for _ in 0..100 {
            let thread = self.owner.load(Acquire);
            if thread == 0 {
                return None;
            }
            let seq = self.seq.load(Acquire);
            if seq.is_multiple_of(2) && seq != 0 {
                let record = self.read_unlocked(thread, ranks);
                fence(Acquire);
                if self.seq.load(Relaxed) == seq && self.owner.load(Relaxed) == thread {
                    return Some(record);
                }
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        None
    }

    fn read_unlocked(&self, thread: u32, ranks: u32) -> Record {
        let listed = (self.waits.load(Relaxed) as usize).min(WAITS);
        let waits = self.wait[..listed].iter().map(|slot| WaitView {
            kind: Kind::from_u32(slot.kind.load(Relaxed)),
            peer: match (slot.peer_kind.load(Relaxed), slot.peer_world.load(Relaxed)) {
                (2, world) if world < ranks => Peer::Rank { rank: slot.peer.load(Relaxed), world },
                (1 | 5, _) => Peer::Members,
                (3, _) => Peer::Outside { job: slot.job.load(Relaxed), member: None },
                (4, world) => {
                    Peer::Outside { job: slot.job.load(Relaxed), member: Some((slot.peer.load(Relaxed), world)) }
                }
                _ => Peer::Any,
            },
            tag: (slot.has_tag.load(Relaxed) != 0).then(|| slot.tag.load(Relaxed)),
            context: slot.context.load(Relaxed),
            comm: slot.name.load(),
            members: slot.members.load(Relaxed),
            series: (slot.peer_kind.load(Relaxed) == 5)
                .then(|| (slot.peer.load(Relaxed), slot.peer_world.load(Relaxed))),
            started: slot.started.load(),
        });
        let lie = (self.lie.load(Relaxed) as usize).min(LYING);
        let lying = self.lying[..lie].iter().map(|slot| LyingView {
            source: slot.source.load(Relaxed),
            source_world: slot.source_world.load(Relaxed),
            tag: slot.tag.load(Relaxed),
            bytes: slot.bytes.load(Relaxed),
            context: slot.context.load(Relaxed),
            comm: slot.name.load(),
        });
        Record {
            thread,
            call: self.call.load(),
            since_ns: self.since.load(Relaxed),
            waits: waits.collect(),
            more: self.more.load(Relaxed),
            all: self.all.load(Relaxed) != 0,
            polls: self.polls.load(Relaxed),
            lying: lying.collect(),
            more_lying: self.more_lie.load(Relaxed),
        }
    }
}

const _: () = assert!(RECORDS == 4, "the documentation says four");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Wait;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicBool;

    fn board(ranks: usize) -> (OwnedFd, Board) {
        Board::create(&Shape { appnums: (0..ranks as u32).collect(), spare: 2, universe: 9, launcher_pid: 1 }).unwrap()
    }

    /// A thread that waits for all of these.
    fn waiting<'a>(call: &'a str, waits: &'a [Wait<'a>]) -> Blocked<'a> {
        Blocked { call, waits, more: 0, all: true, lying: &[] }
    }

    fn receive(world: u32, tag: i32) -> Wait<'static> {
        Wait {
            kind: Kind::Receive,
            peer: Peer::Rank { rank: world, world },
            tag: Some(tag),
            context: 6,
            comm: "MPI_COMM_WORLD",
            members: 3,
            series: None,
            started: "",
        }
    }

    #[test]
    fn what_a_rank_writes_another_mapping_reads() {
        let (fd, mine) = board(3);
        let theirs = Board::open(fd.as_fd()).unwrap();
        assert_eq!((theirs.size(), theirs.id(), theirs.universe_size(), theirs.launcher_pid()), (3, mine.id(), 9, 1));
        assert_eq!(theirs.view(2).appnum, 2);

        let seat = mine.claim(1, 77).unwrap();
        assert_eq!(theirs.view(1).state, State::Starting);
        assert_eq!(mine.claim(1, 78).err(), Some(77));
        seat.running();
        let before = theirs.view(1).epoch;
        let asleep = seat.blocked(&waiting("MPI_Recv", &[receive(2, 7); 6]));
        let view = theirs.view(1);
        assert!(view.is_blocked());
        assert_ne!(view.epoch, before);
        let record = &view.records[0];
        assert_eq!((record.call.as_str(), record.waits.len(), record.more, record.all), ("MPI_Recv", 4, 2, true));
        assert_eq!(record.thread, thread_id());
        assert_eq!(record.waits[3].peer, Peer::Rank { rank: 2, world: 2 });
        assert_eq!((record.waits[3].tag, record.waits[3].comm.as_str()), (Some(7), "MPI_COMM_WORLD"));
        drop(asleep);
        seat.woken_for_nothing();
        let view = theirs.view(1);
        assert!(!view.is_blocked() && view.records.is_empty());
        assert_eq!((view.sleeps, view.wakeups, view.idle_wakeups), (1, 1, 1));
        assert_eq!(theirs.seat(1).card(), None);
        seat.publish_card(b"how to reach me");
        assert_eq!(theirs.seat(1).card(), Some(b"how to reach me".to_vec()));
        seat.finalized();
        assert_eq!(theirs.view(1).state, State::Finalized);
    }

    #[test]
    fn a_rank_is_blocked_only_when_all_its_threads_sleep() {
        let (_fd, board) = board(1);
        let board: &'static Board = Box::leak(Box::new(board));
        let seat = board.claim(0, 5).unwrap();
        seat.running();
        seat.thread();
        seat.thread();
        std::thread::scope(|scope| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let (ready, is_ready) = std::sync::mpsc::channel::<()>();
            let other = scope.spawn(move || {
                seat.thread();
                let asleep = seat.blocked(&waiting("MPI_Recv", &[receive(0, 0)]));
                ready.send(()).unwrap();
                wait.recv().unwrap();
                drop(asleep);
            });
            is_ready.recv().unwrap();
            assert_eq!((board.view(0).threads, board.view(0).asleep), (2, 1));
            assert!(!board.view(0).is_blocked(), "the main thread computes");
            let asleep = seat.blocked(&waiting("MPI_Send", &[receive(0, 0)]));
            assert!(board.view(0).is_blocked());
            assert_eq!(board.view(0).records.len(), 2);
            drop(asleep);
            go.send(()).unwrap();
            other.join().unwrap();
        });
        assert_eq!(board.view(0).threads, 1, "the other thread has ended");
    }

    #[test]
    fn more_sleeping_threads_than_records_are_counted() {
        let (_fd, board) = board(1);
        let seat = board.claim(0, 5).unwrap();
        let asleep: Vec<_> = (0..7).map(|_| seat.blocked(&waiting("MPI_Wait", &[]))).collect();
        assert_eq!((board.view(0).asleep, board.view(0).records.len()), (7, 4));
        drop(asleep);
        assert_eq!(board.view(0).asleep, 0);
    }

    #[test]
    fn the_first_abort_wins() {
        let (_fd, board) = board(2);
        assert_eq!(board.aborted(), None);
        let bell = board.bell();
        board.abort(1, 3, "why");
        board.abort(0, 4, "other");
        assert_eq!(board.aborted(), Some(Abort { rank: 1, code: 3, message: "why".into() }));
        assert_ne!(board.bell(), bell);
        board.wait_bell(bell);
    }

    #[test]
    fn a_reader_never_sees_half_a_record() {
        let (_fd, board) = board(1);
        let seat = board.claim(0, 5).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..20_000 {
                    let call = if i % 2 == 0 { "MPI_Even" } else { "MPI_Odd_with_a_long_name" };
                    drop(seat.blocked(&waiting(call, &[receive(0, i % 2)])));
                }
                stop.store(true, Relaxed);
            });
            while !stop.load(Relaxed) {
                for record in board.view(0).records {
                    assert_eq!(record.waits[0].tag, Some((record.call != "MPI_Even").into()), "{}", record.call);
                }
            }
        });
    }

    #[test]
    fn a_file_that_is_no_segment_is_refused() {
        let fd = memory_file("x", 8192, 8192).unwrap();
        let short = memory_file("x", 10, 10).unwrap();
        assert!([fd, short].iter().all(|f| matches!(Board::open(f.as_fd()), Err(JobError::NoSegment(_)))));
        let (fd, board) = board(1);
        board.header().version.store(VERSION + 1, Relaxed);
        assert!(matches!(Board::open(fd.as_fd()), Err(JobError::Version { .. })));
        board.header().version.store(VERSION, Relaxed);
        board.header().capacity.store(60_000, Relaxed);
        assert!(matches!(Board::open(fd.as_fd()), Err(JobError::NoSegment(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_board_is_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), size_of::<Entry>())) {
            let (fd, board) = board(2);
            rustix::io::pwrite(&fd, &bytes, entry_offset(1) as u64).unwrap();
            let view = board.view(1);
            for record in view.records {
                prop_assert!(record.waits.len() <= WAITS);
                prop_assert!(record.lying.len() <= LYING);
                for wait in record.waits {
                    let is_known = !matches!(wait.peer, Peer::Rank { world, .. } if world >= 2);
                    prop_assert!(is_known);
                }
            }
        }
    }
}
