//! The lane from one sender to one receiver: a ring buffer of one-line cells, and an arena for longer data.
//!
//! ```text
//!   Ring<N>
//!   +0    consumed  u32   cells taken so far               (written by the receiver)
//!   +8    freed     u64   arena bytes released so far       (written by the receiver)
//!   +128  starved   u32   1: the sender waits for room      (set by the sender, cleared by the receiver)
//!   +256  cells     N x 64 bytes
//!
//!   Cell  +0 sequence u32 | info u32     written last, in one store: the cell is valid at the expected sequence
//!         +8 body     56 bytes
//! ```
//!
//! Contract:
//! - one [`Producer`] and one [`Consumer`] per ring, each with its own private position;
//! - an entry is one cell, or a chain: a first cell followed by cells that carry more of its body. All cells of a chain
//!   are written before the first one's sequence number appears, and are released together; a chain does not cross the
//!   end of the ring;
//! - a cell is written completely before its sequence number appears, and not rewritten before the receiver has counted
//!   it as consumed;
//! - positions are 32-bit and wrap; cell `p % N` is valid at position `p` when its sequence is `p + 1`, which no
//!   earlier lap has left there;
//! - arena positions are 64-bit and never wrap; a block is contiguous, so a block that would cross the end starts at
//!   the beginning instead;
//! - arena blocks are released in the order in which they were taken.
//!
//! The receiver treats info and body as untrusted input: another process has written them.

use crate::copy::copy;
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// Bytes of a cell's body.
pub const BODY_BYTES: usize = 56;
/// Bytes of a cell's body behind its first two words.
pub const TAIL_BYTES: usize = BODY_BYTES - 16;
/// A cell's body.
pub type Body = [u64; BODY_BYTES / 8];

/// Granularity of the arena in bytes: a cache line.
pub const ARENA_UNIT: usize = 64;

/// A cell: one cache line of the ring.
#[repr(C, align(64))]
#[derive(Debug)]
struct Cell {
    flag: AtomicU64,
    body: UnsafeCell<Body>,
}

/// The shared part of a lane.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring<const N: usize> {
    receiver: ReceiverCounters,
    sender: SenderFlags,
    cells: [Cell; N],
}

#[repr(C, align(128))]
#[derive(Debug)]
struct ReceiverCounters {
    consumed: AtomicU32,
    freed: AtomicU64,
}

#[repr(C, align(128))]
#[derive(Debug)]
struct SenderFlags {
    starved: AtomicU32,
}

// SAFETY: the cells' bodies are handed over by the release store of the sequence number and the release store of
// `consumed`, so that at any time at most one side accesses a body.
unsafe impl<const N: usize> Sync for Ring<N> {}
// SAFETY: nothing in a ring belongs to a thread.
unsafe impl<const N: usize> Send for Ring<N> {}

// SAFETY: a zeroed ring is an empty one, its fields are integers, and access is synchronised as said above. A peer that
// breaks the protocol can make us read torn bytes, which are checked as untrusted input.
#[cfg(not(loom))]
unsafe impl<const N: usize> crate::segment::Foreign for Ring<N> {}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Ring::new()
    }
}

impl<const N: usize> Ring<N> {
    /// Creates an empty ring, equal to zeroed memory.
    pub fn new() -> Ring<N> {
        const { assert!(N.is_power_of_two()) };
        Ring {
            receiver: ReceiverCounters { consumed: AtomicU32::new(0), freed: AtomicU64::new(0) },
            sender: SenderFlags { starved: AtomicU32::new(0) },
            cells: std::array::from_fn(|_| Cell {
                flag: AtomicU64::new(0),
                body: UnsafeCell::new([0; BODY_BYTES / 8]),
            }),
        }
    }

    /// Sets the sender's starved flag. The sender must check for room once more after a heavy fence.
    pub fn set_starved(&self) {
        self.sender.starved.store(1, Ordering::Relaxed);
    }

    /// Returns whether the sender waits for room, and clears its flag. The receiver calls this after a light fence
    /// behind its last release of room.
    #[inline]
    pub fn take_starved(&self) -> bool {
        self.sender.starved.load(Ordering::Relaxed) != 0 && self.sender.starved.swap(0, Ordering::Relaxed) != 0
    }
}

fn flag(sequence: u32, info: u32) -> u64 {
    u64::from(sequence) | u64::from(info) << 32
}

/// The sender's private state.
#[derive(Debug, Default)]
pub struct Producer {
    position: u32,
    consumed_seen: u32,
    arena_position: u64,
    freed_seen: u64,
}

impl Producer {
    /// Returns whether a cell is free.
    #[inline]
    pub fn has_room<const N: usize>(&mut self, ring: &Ring<N>) -> bool {
        if self.position.wrapping_sub(self.consumed_seen) < N as u32 {
            return true;
        }
        // Pairs with the release store in `Consumer::advance`: the receiver has finished reading the cells that it
        // counts.
        self.consumed_seen = ring.receiver.consumed.load(Ordering::Acquire);
        self.position.wrapping_sub(self.consumed_seen) < N as u32
    }

    /// Writes the next cell and publishes it. Returns false if there is no room.
    #[inline]
    pub fn push<const N: usize>(&mut self, ring: &Ring<N>, info: u32, body: &Body) -> bool {
        if !self.has_room(ring) {
            return false;
        }
        let cell = &ring.cells[self.position as usize % N];
        cell.body.with_mut(|b| {
            // SAFETY: the receiver has counted this cell as consumed (or it was never used), and does not read it
            // before the flag below.
            unsafe { *b = *body }
        });
        self.position = self.position.wrapping_add(1);
        // Pairs with the acquire load in `Consumer::peek`.
        cell.flag.store(flag(self.position, info), Ordering::Release);
        true
    }

    /// Writes the next cell like [`Producer::push`], with a body of two words followed by at most [`TAIL_BYTES`] bytes.
    /// Each part is written directly to its place. A body assembled elsewhere and copied as a whole would stall on
    /// store forwarding.
    #[inline(always)]
    pub fn push_parts<const N: usize>(&mut self, ring: &Ring<N>, info: u32, words: [u64; 2], tail: &[u8]) -> bool {
        assert!(tail.len() <= TAIL_BYTES, "a cell has no room for {} bytes", tail.len());
        if !self.has_room(ring) {
            return false;
        }
        let cell = &ring.cells[self.position as usize % N];
        cell.body.with_mut(|b| {
            // SAFETY: as for `push`; the words and the tail, whose length was checked, fit into the body.
            unsafe {
                (*b)[0] = words[0];
                (*b)[1] = words[1];
                copy(tail.as_ptr(), b.cast::<u8>().add(16), tail.len());
            }
        });
        self.position = self.position.wrapping_add(1);
        // Pairs with the acquire load in `Consumer::peek`.
        cell.flag.store(flag(self.position, info), Ordering::Release);
        true
    }

    /// Returns whether a chain of `cells` cells is free without crossing the end of the ring.
    #[inline]
    pub fn has_room_for<const N: usize>(&mut self, ring: &Ring<N>, cells: usize) -> bool {
        let fits = |consumed: u32, position: u32| position.wrapping_sub(consumed) as usize + cells <= N;
        if self.position as usize % N + cells > N {
            return false;
        }
        if !fits(self.consumed_seen, self.position) {
            self.consumed_seen = ring.receiver.consumed.load(Ordering::Acquire);
        }
        fits(self.consumed_seen, self.position)
    }

    /// Writes a chain, for which there is room: a first cell with `body`, and one cell for each body of `more`.
    #[inline]
    pub fn push_chain<const N: usize>(&mut self, ring: &Ring<N>, info: u32, body: &Body, more: &[Body]) {
        let first = self.position;
        for (i, part) in (1u32..).zip(more) {
            let position = first.wrapping_add(i);
            let cell = &ring.cells[position as usize % N];
            cell.body.with_mut(|b| {
                // SAFETY: as for a single cell: the chain's cells are free and the receiver does not read them before
                // the first one's flag.
                unsafe { *b = *part }
            });
            cell.flag.store(flag(position.wrapping_add(1), 0), Ordering::Relaxed);
        }
        let cell = &ring.cells[first as usize % N];
        cell.body.with_mut(|b| {
            // SAFETY: as above.
            unsafe { *b = *body }
        });
        self.position = first.wrapping_add(1 + more.len() as u32);
        // Pairs with the acquire load in `Consumer::peek`, for all cells of the chain.
        cell.flag.store(flag(first.wrapping_add(1), info), Ordering::Release);
    }

    /// Takes `bytes` contiguous bytes of an arena of `capacity` bytes. Returns their position, to be used modulo
    /// `capacity`, or `None` if there is no room now.
    ///
    /// # Panics
    /// If the block could never fit.
    pub fn take_arena<const N: usize>(&mut self, ring: &Ring<N>, capacity: usize, bytes: usize) -> Option<u64> {
        let units = bytes.next_multiple_of(ARENA_UNIT) as u64;
        let capacity = capacity as u64;
        assert!(units <= capacity / 2, "a block of {bytes} bytes is too large for an arena of {capacity}");
        let offset = self.arena_position % capacity;
        let start =
            if offset + units > capacity { self.arena_position + (capacity - offset) } else { self.arena_position };
        let end = start + units;
        if end.wrapping_sub(self.freed_seen) > capacity {
            // Pairs with the release store in `Consumer::free_arena`.
            self.freed_seen = ring.receiver.freed.load(Ordering::Acquire);
            if end.wrapping_sub(self.freed_seen) > capacity {
                return None;
            }
        }
        self.arena_position = end;
        Some(start)
    }
}

/// A published cell that the receiver reads in place.
#[derive(Debug)]
pub struct CellRef<'a> {
    /// Info of the cell.
    pub info: u32,
    body: &'a UnsafeCell<Body>,
}

impl<'a> CellRef<'a> {
    /// Returns the first two words of the body.
    #[inline(always)]
    pub fn words(&self) -> [u64; 2] {
        // SAFETY: as for `Consumer::peek`.
        self.body.with(|b| unsafe { [(*b)[0], (*b)[1]] })
    }

    /// Returns the body behind its first two words.
    #[inline(always)]
    pub fn tail(&self) -> &'a [u8; TAIL_BYTES] {
        // SAFETY: as for `Consumer::peek`; these are the bytes of the body behind its two words.
        self.body.with(|b| unsafe { &*b.cast::<u8>().add(16).cast::<[u8; TAIL_BYTES]>() })
    }
}

/// The receiver's private state.
#[derive(Debug, Default)]
pub struct Consumer {
    position: u32,
}

impl Consumer {
    /// Returns info and body of the next cell, if it is published. The cell stays in place until [`Consumer::advance`].
    #[inline]
    pub fn peek<const N: usize>(&self, ring: &Ring<N>) -> Option<(u32, Body)> {
        let cell = &ring.cells[self.position as usize % N];
        // Pairs with the release store in `Producer::push`.
        let flag = cell.flag.load(Ordering::Acquire);
        if flag as u32 != self.position.wrapping_add(1) {
            return None;
        }
        // SAFETY: the sender finished the body before it stored this sequence number and leaves the cell alone until it
        // is consumed.
        let body = cell.body.with(|b| unsafe { *b });
        Some(((flag >> 32) as u32, body))
    }

    /// Returns the next cell, if it is published, for reading in place: each byte at most once, and none after
    /// [`Consumer::advance`].
    #[inline(always)]
    pub fn peek_in_place<'a, const N: usize>(&self, ring: &'a Ring<N>) -> Option<CellRef<'a>> {
        let cell = &ring.cells[self.position as usize % N];
        // Pairs with the release store in `Producer::push`.
        let flag = cell.flag.load(Ordering::Acquire);
        if flag as u32 == self.position.wrapping_add(1) {
            Some(CellRef { info: (flag >> 32) as u32, body: &cell.body })
        } else {
            None
        }
    }

    /// Returns the body of the `i`-th further cell of the chain whose first cell was peeked at.
    #[inline]
    pub fn peek_more<const N: usize>(&self, ring: &Ring<N>, i: usize) -> Body {
        let cell = &ring.cells[(self.position as usize + i) % N];
        // SAFETY: the sender finished all cells of the chain before the first one's sequence number, which was seen,
        // and leaves them alone.
        cell.body.with(|b| unsafe { *b })
    }

    /// Releases a chain of `cells` cells to the sender.
    #[inline]
    pub fn advance_by<const N: usize>(&mut self, ring: &Ring<N>, cells: usize) {
        self.position = self.position.wrapping_add(cells as u32);
        ring.receiver.consumed.store(self.position, Ordering::Release);
    }

    /// Returns whether a cell is published.
    #[inline]
    pub fn has_next<const N: usize>(&self, ring: &Ring<N>) -> bool {
        let cell = &ring.cells[self.position as usize % N];
        cell.flag.load(Ordering::Relaxed) as u32 == self.position.wrapping_add(1)
    }

    /// Releases the cell last peeked at to the sender.
    #[inline]
    pub fn advance<const N: usize>(&mut self, ring: &Ring<N>) {
        self.position = self.position.wrapping_add(1);
        ring.receiver.consumed.store(self.position, Ordering::Release);
    }

    /// Releases the arena up to the end of the block of `bytes` at `start`.
    #[inline]
    pub fn free_arena<const N: usize>(&mut self, ring: &Ring<N>, start: u64, bytes: usize) {
        let end = start.wrapping_add(bytes.next_multiple_of(ARENA_UNIT) as u64);
        ring.receiver.freed.store(end, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_new_ring_is_zeroed_memory_of_the_drawn_layout() {
        assert_eq!(size_of::<Ring<4>>(), 256 + 4 * 64);
        let ring = Ring::<4>::new();
        // SAFETY: reads the bytes of a value that was built from zeroes, including any padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const ring).cast::<u8>().add(256), 256) };
        assert!(bytes.iter().all(|&b| b == 0));
    }

    #[test]
    fn cells_arrive_in_order_over_many_laps_and_the_ring_says_when_it_is_full() {
        let ring = Ring::<4>::new();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        let mut next = 0u64;
        let mut expected = 0u64;
        for lap in 0..1000u64 {
            let burst = lap % 5;
            let mut pushed = 0;
            while pushed < burst && producer.push(&ring, next as u32, &[next; 7]) {
                next += 1;
                pushed += 1;
            }
            assert_eq!(pushed, burst.min(4));
            while let Some((info, body)) = consumer.peek(&ring) {
                assert_eq!((info, body), (expected as u32, [expected; 7]));
                consumer.advance(&ring);
                expected += 1;
            }
            assert_eq!(expected, next);
        }
    }

    #[test]
    fn a_cell_is_read_where_it_lies_until_it_is_taken() {
        let ring = Ring::<4>::new();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        assert!(consumer.peek_in_place(&ring).is_none());
        for i in 0..9u64 {
            assert!(producer.push_parts(&ring, i as u32, [i, i + 1], &[i as u8; 3]));
            for _ in 0..2 {
                let cell = consumer.peek_in_place(&ring).expect("it stays until it is taken");
                assert_eq!((cell.info, cell.words(), &cell.tail()[..3]), (i as u32, [i, i + 1], &[i as u8; 3][..]));
            }
            consumer.advance(&ring);
            assert!(consumer.peek_in_place(&ring).is_none());
        }
    }

    #[test]
    fn a_body_in_parts_is_a_body() {
        let ring = Ring::<4>::new();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        for len in 0..=TAIL_BYTES {
            let tail: Vec<u8> = (0..len).map(|i| (i * 5 + len) as u8).collect();
            assert!(producer.push_parts(&ring, len as u32, [1, u64::MAX], &tail));
            let (info, body) = consumer.peek(&ring).expect("a cell");
            let bytes: Vec<u8> = body[2..].iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!((info, body[0], body[1], &bytes[..len]), (len as u32, 1, u64::MAX, &tail[..]));
            consumer.advance(&ring);
        }
        assert!((0..4).all(|_| producer.push_parts(&ring, 0, [0; 2], &[])));
        assert!(!producer.push_parts(&ring, 0, [0; 2], &[]), "the ring is full");
    }

    #[test]
    fn chains_arrive_whole_between_single_cells_and_never_cross_the_end() {
        let ring = Ring::<8>::new();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        let mut refused = 0;
        for i in 0..1000u64 {
            let more: Vec<Body> = (0..i % 4).map(|j| [i * 10 + j; 7]).collect();
            if producer.has_room_for(&ring, 1 + more.len()) {
                producer.push_chain(&ring, i as u32, &[i; 7], &more);
                assert_eq!(consumer.peek(&ring), Some((i as u32, [i; 7])));
                let got: Vec<Body> = (1..=more.len()).map(|j| consumer.peek_more(&ring, j)).collect();
                assert_eq!(got, more);
                consumer.advance_by(&ring, 1 + more.len());
            } else {
                // Only the end of the ring prevents the chain.
                refused += 1;
                assert!(producer.push(&ring, 0, &[0; 7]));
                assert!(consumer.peek(&ring).is_some());
                consumer.advance(&ring);
            }
            assert!(consumer.peek(&ring).is_none());
        }
        assert!(refused > 0);
    }

    #[test]
    fn positions_survive_their_wrap_around() {
        let ring = Ring::<4>::new();
        let start = u32::MAX - 5;
        ring.receiver.consumed.store(start, Ordering::Relaxed);
        let mut producer = Producer { position: start, consumed_seen: start, ..Producer::default() };
        let mut consumer = Consumer { position: start };
        for i in 0..20u64 {
            assert!(consumer.peek(&ring).is_none());
            assert!(producer.push(&ring, 0, &[i; 7]));
            assert_eq!(consumer.peek(&ring).expect("a cell").1, [i; 7]);
            consumer.advance(&ring);
        }
    }

    #[test]
    fn arena_blocks_never_overlap_and_never_cross_the_end() {
        let ring = Ring::<4>::new();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        let mut live = std::collections::VecDeque::new();
        for i in 0..5000usize {
            let bytes = 1 + (i * 7919) % 500;
            match producer.take_arena(&ring, 1024, bytes) {
                Some(start) => {
                    let at = (start % 1024) as usize;
                    assert!(at + bytes <= 1024);
                    for &(other, length) in &live {
                        let other = (other % 1024) as usize;
                        assert!(at + bytes <= other || other + length <= at, "blocks overlap");
                    }
                    live.push_back((start, bytes));
                }
                None => {
                    let (start, bytes): (u64, usize) = live.pop_front().expect("an empty arena has room");
                    consumer.free_arena(&ring, start, bytes);
                }
            }
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn every_cell_arrives_whole_and_in_order() {
        loom::model(|| {
            let ring = Arc::new(Ring::<2>::new());
            let sender = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let mut producer = Producer::default();
                    for i in 1..=3u64 {
                        while !producer.push(&ring, i as u32, &[i; 7]) {
                            thread::yield_now();
                        }
                    }
                })
            };
            let mut consumer = Consumer::default();
            for i in 1..=3u64 {
                loop {
                    if let Some((info, body)) = consumer.peek(&ring) {
                        assert_eq!((info, body), (i as u32, [i; 7]));
                        consumer.advance(&ring);
                        break;
                    }
                    thread::yield_now();
                }
            }
            assert!(consumer.peek(&ring).is_none());
            sender.join().unwrap();
        });
    }

    #[test]
    fn chains_arrive_whole() {
        loom::model(|| {
            let ring = Arc::new(Ring::<4>::new());
            let sender = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let mut producer = Producer::default();
                    for i in 1..=3u64 {
                        while !producer.has_room_for(&ring, 2) {
                            thread::yield_now();
                        }
                        producer.push_chain(&ring, i as u32, &[i; 7], &[[10 * i; 7]]);
                    }
                })
            };
            let mut consumer = Consumer::default();
            for i in 1..=3u64 {
                while consumer.peek(&ring).is_none() {
                    thread::yield_now();
                }
                assert_eq!(consumer.peek_more(&ring, 1), [10 * i; 7]);
                consumer.advance_by(&ring, 2);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn arena_blocks_are_not_reused_before_they_were_freed() {
        loom::model(|| {
            let ring = Arc::new(Ring::<2>::new());
            let data = Arc::new([UnsafeCell::new(0u64), UnsafeCell::new(0u64)]);
            let sender = {
                let (ring, data) = (ring.clone(), data.clone());
                thread::spawn(move || {
                    let mut producer = Producer::default();
                    for i in 1..=3u64 {
                        let start = loop {
                            match producer.take_arena(&ring, 128, 64) {
                                Some(start) => break start,
                                None => thread::yield_now(),
                            }
                        };
                        // SAFETY: loom checks that the access to the block is exclusive.
                        data[(start % 128 / 64) as usize].with_mut(|d| unsafe { *d = i });
                        while !producer.push(&ring, 0, &[start; 7]) {
                            thread::yield_now();
                        }
                    }
                })
            };
            let mut consumer = Consumer::default();
            for i in 1..=3u64 {
                let start = loop {
                    if let Some((_, body)) = consumer.peek(&ring) {
                        break body[0];
                    }
                    thread::yield_now();
                };
                // SAFETY: as above.
                data[(start % 128 / 64) as usize].with(|d| assert_eq!(unsafe { *d }, i));
                consumer.free_arena(&ring, start, 64);
                consumer.advance(&ring);
            }
            sender.join().unwrap();
        });
    }
}
