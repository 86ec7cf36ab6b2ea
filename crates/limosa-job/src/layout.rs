//! The drawn layout of the first part of a job's segment.
//!
//! ```text
//! byte 0        JobHeader   description of the job, abort record, doorbell of the launcher       4096 bytes
//! byte 4096     Entry[0]    status of rank 0                                             4160 bytes = 65 cache lines
//!    + 4160     Entry[1]    ...
//!               ...         ranks that may be spawned later: no memory until then
//! device_offset             the device's part, at the next multiple of 4096
//! ```
//!
//! Everything is an atomic. Text and waits are written under a sequence lock: odd while being written, and a reader
//! that sees the number change reads again. [`VERSION`] changes with every change of this file.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::card::CardSlot;
use crate::sys::AtomicsOnly;

/// First eight bytes of a segment.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"LIMOSAJB");
/// Version of the layout in this file.
pub(crate) const VERSION: u32 = 12;
/// Unit of the segment's parts.
pub(crate) const PAGE: usize = 4096;
/// Most ranks a board may have; bounds what a damaged header can make us map.
pub const MAX_RANKS: u32 = 1 << 16;
/// Threads of one rank whose waits are recorded.
pub(crate) const RECORDS: usize = 4;
/// Waits recorded per thread.
pub const WAITS: usize = 4;
/// Waits counted per thread. A wait for more operations than that may be recorded as one for so many.
pub const MOST_COUNTED: usize = 100;
/// Unreceived messages recorded per thread.
pub(crate) const LYING: usize = 3;
/// Threads of one rank whose numbers are recorded when they call the library.
pub(crate) const CALLERS: usize = 16;

/// Description of the job. The first group is written by the launcher before any rank starts and never changes.
#[repr(C, align(64))]
pub(crate) struct JobHeader {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    /// Ranks that there is room for.
    pub capacity: AtomicU32,
    pub id: AtomicU64,
    pub universe: AtomicU32,
    pub launcher_pid: AtomicU32,
    /// The choice of devices, which must be the same on all ranks; 0 = no rank has joined yet.
    pub devices: AtomicU64,
    /// Ranks that the launcher started at first.
    pub started: AtomicU32,
    /// One more than the highest rank that there has been.
    pub used: AtomicU32,
    /// Number of hosts; 0 = one. Then which of them this segment is for.
    pub hosts: AtomicU32,
    pub host_here: AtomicU32,
    reserved: [AtomicU64; 1],
    /// 0 = no rank has aborted, 1 = record is being written, 2 = written. The first rank to abort wins.
    pub abort_state: AtomicU32,
    pub abort_rank: AtomicU32,
    pub abort_code: AtomicI32,
    /// 1 = the launcher ends the job.
    pub ending: AtomicU32,
    pub abort_text: Text<64>,
    reserved3: [AtomicU64; 6],
    /// The launcher sleeps on this word; a process that changes it wakes the launcher.
    pub bell: AtomicU32,
    reserved4: [AtomicU32; 15],
}

/// Status of one rank. `pid`, `state`, counters and records are written by the rank; `started` and the final states by
/// the launcher.
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// Process that claimed this rank (0 = none yet).
    pub pid: AtomicU32,
    pub state: AtomicU32,
    /// Process that the launcher started for this rank: the rank itself or a wrapper around it.
    pub started: AtomicU32,
    /// Number of the application of this rank in a job of several programs.
    pub appnum: AtomicU32,
    /// Live threads that have called the library.
    pub threads: AtomicU32,
    /// Threads now asleep in the library; may exceed the number of records.
    pub asleep: AtomicU32,
    /// 1 = the rank has finalized; unlike `state` this stays when the process ends.
    pub finalized: AtomicU32,
    /// Ranks of the group with which this one was started, its own `MPI_COMM_WORLD`.
    pub group_size: AtomicU32,
    /// CLOCK_MONOTONIC time of the last change of `state`.
    pub state_since: AtomicU64,
    /// A number that must be the same on all ranks; 0 = not published yet.
    pub common: AtomicU64,
    /// First rank of that group.
    pub group_first: AtomicU32,
    /// Rank that spawned the group.
    pub parent: AtomicU32,
    /// Number of the spawn among those of the job, from 1; 0 = started with the job.
    pub spawn: AtomicU64,
    /// Changes with each sleep, wake-up and step of progress. Second cache line.
    pub epoch: AtomicU64,
    pub sleeps: AtomicU64,
    pub wakeups: AtomicU64,
    /// Wake-ups after which there was nothing to do.
    pub idle_wakeups: AtomicU64,
    /// 1 = the job goes on if the rank's process dies; written by the rank.
    pub expendable: AtomicU32,
    /// How the process has ended, as `waitpid` tells it; written by the launcher before `state`.
    pub wait_status: AtomicU32,
    reserved3: [AtomicU64; 3],
    /// Where the rank is, written by the launcher or its agent: the host's number, its first rank, how many it has, its
    /// name. Third cache line.
    pub host: AtomicU32,
    pub host_first: AtomicU32,
    pub host_size: AtomicU32,
    reserved4: AtomicU32,
    pub host_name: Text<6>,
    /// Kernel numbers of live threads that have called the library, 0 = free. Fourth cache line.
    pub callers: [AtomicU32; CALLERS],
    pub records: [RecordSlot; RECORDS],
    /// What the rank tells all others about itself.
    pub card: CardSlot,
}

/// What one thread waits for, asleep or polling.
#[repr(C, align(64))]
pub(crate) struct RecordSlot {
    /// Kernel number of the thread; 0 = record is free. Claimed by compare and swap.
    pub owner: AtomicU32,
    /// Sequence lock of all that follows.
    pub seq: AtomicU32,
    pub since: AtomicU64,
    pub call: Text<6>,
    pub waits: AtomicU32,
    /// Waits beyond those listed.
    pub more: AtomicU32,
    /// 1 = all waits must end, 0 = one of them is enough.
    pub all: AtomicU32,
    /// 0 = the thread sleeps; otherwise how often it has polled in vain, which changes outside the sequence lock.
    pub polls: AtomicU32,
    /// Messages listed in `lying`.
    pub lie: AtomicU32,
    /// Messages beyond those listed.
    pub more_lie: AtomicU32,
    reserved: [AtomicU32; 10],
    pub wait: [WaitSlot; WAITS],
    pub lying: [LyingSlot; LYING],
    reserved2: [AtomicU64; 2],
}

/// One thing waited for.
#[repr(C, align(64))]
pub(crate) struct WaitSlot {
    pub kind: AtomicU32,
    /// 0 = any, 1 = all members of the communicator, 2 = one rank, 3 = processes of `job`, 4 = one of them, 5 = all
    /// members, which are every `peer_world`-th rank of the job from `peer` on.
    pub peer_kind: AtomicU32,
    pub peer: AtomicU32,
    pub peer_world: AtomicU32,
    pub has_tag: AtomicU32,
    pub tag: AtomicI32,
    pub context: AtomicU64,
    pub members: AtomicU32,
    reserved: AtomicU32,
    pub name: Text<6>,
    /// The call that started it, if that is not the one that waits.
    pub started: Text<4>,
    /// The other job, if one is waited for.
    pub job: AtomicU64,
}

/// A message that has not been received.
#[repr(C)]
pub(crate) struct LyingSlot {
    pub source: AtomicU32,
    pub source_world: AtomicU32,
    pub tag: AtomicI32,
    reserved: AtomicU32,
    pub context: AtomicU64,
    pub bytes: AtomicU64,
    pub name: Text<6>,
}

/// Up to `8 * N` bytes of text, ended by a zero byte if shorter.
#[repr(transparent)]
pub(crate) struct Text<const N: usize>([AtomicU64; N]);

// SAFETY: nothing but atomics; reserved fields fill what would be padding.
unsafe impl AtomicsOnly for JobHeader {}
// SAFETY: as above.
unsafe impl AtomicsOnly for Entry {}

impl<const N: usize> Text<N> {
    /// Stores `text`, cut at a character boundary if it is too long.
    pub(crate) fn store(&self, text: &str) {
        let mut end = text.len().min(8 * N);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &text.as_bytes()[..end];
        for (i, word) in self.0.iter().enumerate() {
            let mut value = [0u8; 8];
            let part = bytes.get(8 * i..).unwrap_or(&[]);
            let n = part.len().min(8);
            value[..n].copy_from_slice(&part[..n]);
            word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
        }
    }

    /// The text up to the first zero byte; what is not printable is replaced.
    pub(crate) fn load(&self) -> String {
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).take_while(|b| *b != 0).collect();
        String::from_utf8_lossy(&bytes).chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect()
    }
}

/// Words of an entry that other hosts are shown: all but the card, which they have.
pub(crate) const ENTRY_WORDS: usize = offset_of!(Entry, card) / 8;

impl Entry {
    /// Which word says since when its state is what it is.
    pub(crate) const WORD_OF_STATE_SINCE: usize = offset_of!(Entry, state_since) / 8;

    /// The words of a record.
    pub(crate) fn words_of_record(number: usize) -> Range<usize> {
        let first = (offset_of!(Entry, records) + number * size_of::<RecordSlot>()) / 8;
        first..first + size_of::<RecordSlot>() / 8
    }

    /// Which word says since when a record's thread waits.
    pub(crate) fn word_of_since(number: usize) -> usize {
        Entry::words_of_record(number).start + offset_of!(RecordSlot, since) / 8
    }

    /// The entry as words, without the card.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: an entry consists of atomics, is aligned to a cache line, and its size is a multiple of one; atomics
        // of smaller sizes may be read and written as one word.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast::<AtomicU64>(), ENTRY_WORDS) }
    }
}

/// Byte at which the entry of `rank` begins.
pub(crate) fn entry_offset(rank: u32) -> usize {
    PAGE + rank as usize * size_of::<Entry>()
}

/// Byte at which the device's part begins in a job of `ranks` ranks.
pub(crate) fn device_offset(ranks: u32) -> usize {
    entry_offset(ranks).next_multiple_of(PAGE)
}

const _: () = assert!(size_of::<JobHeader>() <= PAGE);
const _: () = assert!(size_of::<WaitSlot>() == 128);
const _: () = assert!(size_of::<LyingSlot>() == 80);
const _: () = assert!(size_of::<RecordSlot>() == 896);
const _: () = assert!(size_of::<Entry>() == 4160);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn empty<const N: usize>() -> Text<N> {
        Text(std::array::from_fn(|_| AtomicU64::new(u64::MAX)))
    }

    proptest! {
        #[test]
        fn text_comes_back_as_a_prefix_cut_between_characters(text in "[^\\p{Cc}]{0,40}") {
            let slot = empty::<6>();
            slot.store(&text);
            let back = slot.load();
            prop_assert!(text.starts_with(&back));
            prop_assert!(back == text || back.len() > 48 - 4);
        }

        #[test]
        fn arbitrary_bytes_load_as_harmless_text(words in proptest::array::uniform3(any::<u64>())) {
            let slot = Text::<3>(words.map(AtomicU64::new));
            prop_assert!(slot.load().chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}
