//! Records of calls, in a memory-mapped file: `HOST.PID.profile` in the folder that `LIMOSA_PROFILE` names. Without
//! that variable nothing is recorded.
//!
//! The file consists of a [`Header`], the names of the functions (40 bytes each), and [`THREADS`] blocks ([`Thread`]),
//! one for each thread that calls MPI. It is sparse and grows by pieces, whose space is reserved before they are
//! written; it ends behind the last piece. If there is no space, on the disk or by the limit of file sizes, the program
//! continues without the piece. With `LIMOSA_PROFILE_EVENTS=N` there is also `HOST.PID.events`, with up to N calls
//! ([`Event`]), in which threads allocate chunks. Numbers are in the processor's byte order, little-endian on all
//! supported ones. Descriptions of call sites and communicators are text in `HOST.PID.names` ([`crate::names`]).
//! `lab/limosa_lab/profile/files.py` reads all three.
//!
//! A call costs two reads of the processor's counter and some additions to thread-private memory. The usual call takes
//! [`record`], which calls no function; rare or expensive work is done by [`record_first`].

use std::cell::Cell;
use std::mem::{offset_of, size_of};
use std::path::PathBuf;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use limosa_interpose::next::{self, Next};
use limosa_interpose::{python, site};

use crate::file::{host, mapped, reserve, with_ending};
use crate::names;

include!(concat!(env!("OUT_DIR"), "/function_names.rs"));

/// Threads with a block of their own; further ones share the last.
const THREADS: usize = 256;
/// Ranks whose messages are counted individually; higher ranks are counted together.
const PEERS: usize = 4096;
/// Entries for combinations of function, object and call site. Without a free entry, calls are counted by function
/// alone.
const ENTRIES: usize = 1 << ENTRIES_LOG;
const ENTRIES_LOG: u32 = 11;
/// Maximum number of entries that are probed for a call.
const LOOKS: usize = 16;
/// Size classes: 0, and up to 2^k - 1 bytes for each k.
const SIZES: usize = 40;
/// Events per chunk.
const CHUNK: usize = 1024;
const NAME: usize = 40;
/// Added to the function of an event that is not a call, but one of the requests or messages of a call.
const PART: u32 = 1 << 31;
const MAGIC: [u8; 8] = *b"LIMOPROF";
const VERSION: u32 = 4;

/// Start of a file; its size is a multiple of a page.
#[repr(C, align(4096))]
struct Header {
    magic: [u8; 8],
    version: u32,
    functions: u32,
    threads: u32,
    peers: u32,
    entries: u32,
    sizes: u32,
    /// Number of blocks that threads have taken.
    taken: AtomicU32,
    pid: u32,
    rank: AtomicU32,
    size: AtomicU32,
    /// The processor's counter and the system's monotonic clock in ns, read together: at the first call, at the
    /// initialisation of MPI, and at its finalization.
    clocks: [[AtomicU64; 2]; 3],
    /// Calls without room among the events.
    lost: AtomicU64,
    /// Capacity for events, and number of chunks that are taken.
    events: u64,
    chunks: AtomicU64,
    /// Pieces of the file without space.
    refused: AtomicU64,
}

/// Counters of one function and one thread.
#[repr(C)]
struct Function {
    sizes: [Size; SIZES],
    bytes: AtomicU64,
    longest: AtomicU64,
}

/// Calls of one size class.
#[repr(C)]
struct Size {
    calls: AtomicU64,
    ticks: AtomicU64,
    /// Complement of the shortest call's ticks; 0 for none. It thus grows from the file's initial contents.
    shortest: AtomicU64,
}

/// Calls of a function with one communicator, window or file, or none, from one call site.
#[repr(C)]
struct Entry {
    key: Key,
    calls: AtomicU64,
    ticks: AtomicU64,
    bytes: AtomicU64,
}

/// Key of an entry.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// Number of the function plus 1 in the lower half, kind of the object in the upper one; 0: the entry is free.
    function_and_kind: u64,
    object: u64,
    site: u64,
}

#[repr(C)]
struct Peer {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// Adds to a counter of the calling thread. In the last block, which several threads may share, additions may be lost.
/// (It is one instruction; the compiler does not merge two of them into a slower one.)
#[inline]
fn add(to: &AtomicU64, number: u64) {
    to.store(to.load(Relaxed).wrapping_add(number), Relaxed);
}

/// Updates a maximum of the calling thread, with the same restriction.
#[inline]
fn raise(to: &AtomicU64, number: u64) {
    if to.load(Relaxed) < number {
        to.store(number, Relaxed);
    }
}

#[repr(C)]
struct Thread {
    entries: [Entry; ENTRIES],
    id: u64,
    /// Whether a call needs more than counting: its events are recorded, or call sites are Python lines.
    has_more: u64,
    /// Whether space for the function is reserved in the file.
    has_room: [u8; NAMES.len().next_multiple_of(8)],
    peers: [Peer; PEERS + 1],
    /// Space in the file from here on is reserved at the first call of each function.
    functions: [Function; NAMES.len()],
}

/// An event: one call, or a part of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    begin: u64,
    end: u64,
    /// Number of the function plus 1; 0: not written.
    function: u32,
    /// Ranks in `MPI_COMM_WORLD` of receiver and sender, or -1.
    peer: i32,
    source: i32,
    /// Tags of the sent and the received message.
    tag: i32,
    received_tag: i32,
    thread: u32,
    bytes: u64,
    object: u64,
    site: u64,
    /// Request that the call has started or queried, or the message that it has matched; for a part, its own. Or 0.
    request: u64,
}

/// Counted properties of a call.
pub(crate) struct Facts {
    pub bytes: u64,
    /// Receiver, as a rank in the object's group; negative: none.
    pub peer: i32,
    pub object: Object,
}

impl Facts {
    pub const NONE: Facts = Facts { bytes: 0, peer: -1, object: Object::NONE };
}

/// Further properties where events are recorded.
pub(crate) struct Details {
    /// Tag of the sent message.
    pub tag: i32,
    /// Source of a receive, as a rank in the object's group, and its tag; negative: any, or none.
    pub source: i32,
    pub received_tag: i32,
    /// Address of the request that the call has started or queried, or of the message that it has matched, or 0.
    pub request: usize,
}

impl Details {
    pub const NONE: Details = Details { tag: -1, source: -1, received_tag: -1, request: 0 };
}

/// A request or message that a call has started or completed.
pub(crate) struct CallPart {
    pub handle: usize,
    /// Source of a received message, in its communicator's group, and its tag; or [`CANCELLED`].
    pub source: i32,
    pub tag: i32,
}

/// Source of a cancelled operation.
pub(crate) const CANCELLED: i32 = i32::MIN;

/// Object of a call: its kind (1: communicator, 2: window, 3: file; 0: none) and its handle.
#[derive(Clone, Copy)]
pub(crate) struct Object(pub u32, pub usize);

impl Object {
    pub const NONE: Object = Object(0, 0);
}

/// Files of this process.
struct Record {
    header: *mut Header,
    blocks: *mut Thread,
    events: *mut Event,
    /// Path of the files without suffix, and address of the blocks in the first.
    name: PathBuf,
    blocks_at: usize,
}

// SAFETY: the pointers are to memory that stays mapped. Threads share only atomics there, and the last block, in which
// counts may be lost.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

/// Thread-local state, initially 0.
#[repr(C)]
struct Local {
    /// The thread's block; null before its first call, [`IN_CALL`] during a call, and permanently if nothing is
    /// recorded.
    block: Cell<*mut Thread>,
    /// Position of the next event, and number of further ones in the chunk.
    event: Cell<*mut Event>,
    events_left: Cell<usize>,
    /// Whether there is no space for further functions.
    is_full: Cell<bool>,
}

const _: () = assert!(size_of::<Local>() <= site::OWN * size_of::<usize>());

/// Calls of the library to itself are not recorded: during a call the thread has no block.
const IN_CALL: *mut Thread = without_provenance_mut(1);

impl Local {
    /// Returns the state of this thread.
    #[inline]
    fn here() -> &'static Local {
        Local::of(site::kept())
    }

    #[inline]
    fn of(kept: *mut site::Kept) -> &'static Local {
        // SAFETY: thread-local variables live as long as the thread, and no reference leaves it. These words are for
        // our use, and 0 is a valid value of each field.
        unsafe { &*(&raw const (*kept).own).cast::<Local>() }
    }
}

static RECORD: OnceLock<Option<Record>> = OnceLock::new();
static IS_WORLD_KNOWN: AtomicBool = AtomicBool::new(false);

/// Whether events are recorded.
static TRACE: AtomicU8 = AtomicU8::new(NO_TRACE);
const NO_TRACE: u8 = 0;
const TRACED: u8 = 1;
/// Events are full: calls are only counted as lost.
const FULL: u8 = 2;

/// Returns whether events are recorded and there is room for them.
#[inline]
pub(crate) fn is_traced() -> bool {
    TRACE.load(Relaxed) == TRACED
}

/// A call in progress.
pub(crate) struct Call {
    block: *mut Thread,
    /// Return address of the call.
    returns_to: usize,
    /// The processor's counter at its start and, later, at its end.
    begin: u64,
    end: u64,
}

impl Call {
    /// Starts recording a call. Returns `None` if it is not recorded: it is the library's own, or there is no room.
    #[inline]
    pub(crate) fn begin() -> Option<Call> {
        let kept = site::kept();
        // SAFETY: thread-local variables live as long as the thread.
        let returns_to = unsafe { (*kept).returns_to };
        let mut block = Local::of(kept).block.replace(IN_CALL);
        if block.addr() <= IN_CALL.addr() {
            block = first_call(block);
            if block.is_null() {
                return None;
            }
        }
        Some(Call { block, returns_to, begin: ticks(), end: 0 })
    }

    /// Records the call. The facts are queried only if it has succeeded, the details and parts only where events are
    /// recorded.
    ///
    /// Until this returns, calls of program code that runs meanwhile (an interpreter's finalizers) are not recorded.
    #[inline]
    pub(crate) fn end(
        mut self,
        function: usize,
        success: bool,
        facts: impl Fn() -> Facts,
        details: impl FnOnce() -> Details,
        parts: impl FnOnce() -> Vec<CallPart>,
    ) {
        self.end = ticks();
        if !success {
            return self.end_failed(function);
        }
        let Facts { bytes, peer, object } = facts();
        if record(&self, function_and_kind(function, object.0), bytes, object.1, peer) {
            self.trace(function, &facts(), &details(), &parts());
        }
    }

    #[cold]
    #[inline(never)]
    fn end_failed(&self, function: usize) {
        if record_first(self, function_and_kind(function, 0), 0, 0, -1) {
            self.trace(function, &Facts::NONE, &Details::NONE, &[]);
        }
    }

    /// Records the events of the call and of each of its parts.
    #[cold]
    #[inline(never)]
    fn trace(&self, function: usize, facts: &Facts, details: &Details, parts: &[CallPart]) {
        let local = Local::here();
        // SAFETY: the block is mapped and belongs to this thread.
        let thread = unsafe { (*self.block).id as u32 };
        let Object(kind, object) = facts.object;
        if kind == 1 {
            // The first use of a communicator describes its members.
            translated(kind, object, 0);
        }
        let in_world = |rank: i32| if rank < 0 { -1 } else { world_rank(kind, object, rank) };
        let event = Event {
            begin: self.begin,
            end: self.end,
            function: function as u32 + 1,
            peer: in_world(facts.peer),
            source: in_world(details.source),
            tag: details.tag,
            received_tag: details.received_tag,
            thread,
            bytes: facts.bytes,
            object: object as u64,
            site: site::of_call(self.returns_to).0 as u64,
            // SAFETY: the call has succeeded, so there is a request.
            request: if details.request == 0 { 0 } else { unsafe { *(details.request as *const usize) as u64 } },
        };
        let of_parts = parts.iter().map(|part| Event {
            function: event.function | PART,
            source: part.source,
            received_tag: part.tag,
            request: part.handle as u64,
            ..event
        });
        for event in std::iter::once(event).chain(of_parts) {
            let Some(place) = next_event(local) else { break };
            // SAFETY: the position is mapped and in this thread's chunk.
            unsafe { place.write(event) };
        }
        local.block.set(self.block);
    }
}

#[inline]
const fn function_and_kind(function: usize, kind: u32) -> u64 {
    (function as u64 + 1) | (kind as u64) << 32
}

/// Counts a usual call: one with an existing entry, and without further work. Leaves all others to [`record_first`].
/// Returns whether events are to be recorded; otherwise the call of the thread is over.
///
/// This calls no function, so the processor's registers need not be saved.
#[inline(never)]
fn record(call: &Call, function_and_kind: u64, bytes: u64, object: usize, peer: i32) -> bool {
    let key = Key { function_and_kind, object: object as u64, site: call.returns_to as u64 };
    // SAFETY: the block is mapped and belongs to this thread. Several threads may share the last block; they may lose
    // each other's counts, but write nothing else there.
    let block = unsafe { &mut *call.block };
    let entry = &mut block.entries[place_of(&key)];
    if block.has_more != 0 || entry.key != key {
        return record_first(call, function_and_kind, bytes, object, peer);
    }
    let took = call.end.saturating_sub(call.begin);
    entry.count(took, bytes);
    let function = (function_and_kind as u32 - 1) as usize;
    // SAFETY: the wrappers pass valid function numbers.
    unsafe { block.functions.get_unchecked(function) }.count(took, bytes);
    if peer >= 0 {
        return record_peer(call, function_and_kind, bytes, object, peer);
    }
    Local::here().block.set(call.block);
    false
}

/// Counts any call; otherwise like [`record`].
#[inline(never)]
fn record_first(call: &Call, function_and_kind: u64, bytes: u64, object: usize, peer: i32) -> bool {
    // SAFETY: as in `record`.
    let block = unsafe { &mut *call.block };
    let function = (function_and_kind as u32 - 1) as usize;
    if block.has_room[function] != 0 || make_room(block, function) {
        let took = call.end.saturating_sub(call.begin);
        block.functions[function].count(took, bytes);
        let site = site::of_call(call.returns_to);
        let key = Key { function_and_kind, object: object as u64, site: site.0 as u64 };
        if let Some(entry) = entry(&mut block.entries, &key) {
            entry.count(took, bytes);
        }
    }
    record_peer(call, function_and_kind, bytes, object, peer)
}

/// Counts a message to a peer, if there is one, and then the call like [`record`].
#[inline(never)]
fn record_peer(call: &Call, function_and_kind: u64, bytes: u64, object: usize, peer: i32) -> bool {
    if peer >= 0 {
        let peer = world_rank((function_and_kind >> 32) as u32, object, peer);
        // SAFETY: as in `record`.
        let peers = unsafe { &mut (*call.block).peers };
        let counted = &mut peers[usize::try_from(peer).unwrap_or(PEERS).min(PEERS)];
        add(&counted.messages, 1);
        add(&counted.bytes, bytes);
    }
    if TRACE.load(Relaxed) != NO_TRACE {
        return true;
    }
    Local::here().block.set(call.block);
    false
}

impl Function {
    #[inline]
    fn count(&self, took: u64, bytes: u64) {
        add(&self.bytes, bytes);
        raise(&self.longest, took);
        // Number of binary digits.
        let class = (63 - (bytes << 1 | 1).leading_zeros()) as usize;
        let size = &self.sizes[class.min(SIZES - 1)];
        raise(&size.shortest, !took);
        add(&size.calls, 1);
        add(&size.ticks, took);
    }
}

impl Entry {
    #[inline]
    fn count(&self, took: u64, bytes: u64) {
        add(&self.calls, 1);
        add(&self.ticks, took);
        add(&self.bytes, bytes);
    }
}

/// Reserves space in the file for a function of a block. Without space this thread records no further functions.
#[cold]
fn make_room(block: &mut Thread, function: usize) -> bool {
    let Some(Some(record)) = RECORD.get() else { return false };
    if Local::here().is_full.get() {
        return false;
    }
    let at = (&raw const block.functions[function]) as usize - record.header as usize;
    let has_room = record.reserve(at, size_of::<Function>());
    block.has_room[function] = u8::from(has_room);
    Local::here().is_full.set(!has_room);
    has_room
}

/// Returns the first probed position of an entry.
#[inline]
fn place_of(key: &Key) -> usize {
    let sum = key.site.wrapping_add(key.object).wrapping_add(key.function_and_kind << 3);
    (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ENTRIES_LOG)) as usize
}

/// Finds or creates the entry of a function, an object and a call site; `None` if there is no room. Few positions are
/// probed, so that a program with many short-lived objects does not become slow.
fn entry<'a>(entries: &'a mut [Entry; ENTRIES], key: &Key) -> Option<&'a mut Entry> {
    let first = place_of(key);
    let is_free = |entry: &Entry| entry.key.function_and_kind == 0;
    let at = (first..first + LOOKS).map(|at| at % ENTRIES).find(|at| {
        let found = &entries[*at];
        is_free(found) || found.key == *key
    })?;
    let found = &mut entries[at];
    if is_free(found) {
        found.key = *key;
        names::describe(site::Site(key.site as usize));
    }
    Some(found)
}

/// Returns the processor's counter, which is synchronous on all processors.
#[inline]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: programs may read this register.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
        value
    }
}

fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to our variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Assigns a block to the calling thread. Returns null inside another call, or if nothing is recorded.
#[cold]
fn first_call(block: *mut Thread) -> *mut Thread {
    if block == IN_CALL {
        return null_mut();
    }
    let Some(record) = RECORD.get_or_init(Record::open) else { return null_mut() };
    // SAFETY: the header stays mapped.
    let taken = unsafe { &(*record.header).taken };
    let number = (taken.fetch_add(1, Relaxed) as usize).min(THREADS - 1);
    let at = record.blocks_at + number * size_of::<Thread>();
    if !record.reserve(at, offset_of!(Thread, functions)) {
        return null_mut();
    }
    // SAFETY: the number is below that of the consecutive blocks.
    let block = unsafe { record.blocks.add(number) };
    // SAFETY: the block is mapped; gettid cannot fail.
    unsafe { (*block).id = libc::gettid() as u64 };
    // SAFETY: as above.
    unsafe { (*block).has_more = u64::from(!record.events.is_null() || python::is_here()) };
    block
}

impl Record {
    /// Creates the files. An error is reported once, and then nothing is recorded.
    fn open() -> Option<Record> {
        let folder = PathBuf::from(std::env::var_os("LIMOSA_PROFILE")?);
        let events = std::env::var("LIMOSA_PROFILE_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(0usize);
        let room = events.div_ceil(CHUNK) * CHUNK;
        let pid = std::process::id();
        let names = (NAMES.len() * NAME).next_multiple_of(4096);
        let name = folder.join(format!("{}.{pid}", host()));
        let file = with_ending(&name, "profile");
        let blocks_at = size_of::<Header>() + names;
        let start = mapped(&file, blocks_at + THREADS * size_of::<Thread>())?;
        if !reserve(&file, 0, blocks_at) {
            return None;
        }
        let header = start.cast::<Header>();
        // SAFETY: the mapping is long enough for the header, the names and all blocks, and is not shared yet.
        let record = unsafe {
            for (number, name) in NAMES.iter().enumerate() {
                let to = start.add(size_of::<Header>() + number * NAME);
                to.copy_from_nonoverlapping(name.as_ptr(), name.len().min(NAME));
            }
            (*header).version = VERSION;
            (*header).functions = NAMES.len() as u32;
            (*header).threads = THREADS as u32;
            (*header).peers = PEERS as u32;
            (*header).entries = ENTRIES as u32;
            (*header).sizes = SIZES as u32;
            (*header).pid = pid;
            (*header).rank = AtomicU32::new(u32::MAX);
            (*header).events = room as u64;
            (*header).magic = MAGIC;
            Record { header, blocks: start.add(blocks_at).cast(), events: null_mut(), name, blocks_at }
        };
        record.read_clocks(0);
        let place = (room > 0).then(|| mapped(&record.file("events"), room * size_of::<Event>()));
        let events: *mut Event = place.flatten().map_or(null_mut(), |place| place.cast());
        TRACE.store(if events.is_null() { NO_TRACE } else { TRACED }, Relaxed);
        names::open(&record.file("names"));
        python::find();
        Some(Record { events, ..record })
    }

    /// Reserves space for a piece of the file.
    fn reserve(&self, at: usize, bytes: usize) -> bool {
        let has_room = reserve(&self.file("profile"), at, bytes);
        if !has_room {
            // SAFETY: the header stays mapped, and its shared fields are atomic.
            unsafe { &(*self.header).refused }.fetch_add(1, Relaxed);
        }
        has_room
    }

    fn file(&self, ending: &str) -> PathBuf {
        with_ending(&self.name, ending)
    }

    fn read_clocks(&self, which: usize) {
        // SAFETY: the header stays mapped, and its shared fields are atomic.
        let clocks = unsafe { &(*self.header).clocks[which] };
        clocks[0].store(ticks(), Relaxed);
        clocks[1].store(nanoseconds(), Relaxed);
    }
}

/// Returns the position of this thread's next event; `None` if there is no room.
fn next_event(local: &Local) -> Option<*mut Event> {
    let (place, left) = (local.event.get(), local.events_left.get());
    if left == 0 {
        return next_chunk(local);
    }
    // SAFETY: there are further positions in the chunk, or this is its end.
    local.event.set(unsafe { place.add(1) });
    local.events_left.set(left - 1);
    Some(place)
}

#[cold]
fn next_chunk(local: &Local) -> Option<*mut Event> {
    let record = RECORD.get()?.as_ref()?;
    // SAFETY: the header stays mapped, and its shared fields are atomic.
    let header = unsafe { &*record.header };
    let take = || {
        let number = header.chunks.fetch_add(1, Relaxed);
        let at = number as usize * CHUNK * size_of::<Event>();
        let has_room = (number + 1) * CHUNK as u64 <= header.events
            && reserve(&record.file("events"), at, CHUNK * size_of::<Event>());
        if !has_room {
            header.chunks.fetch_sub(1, Relaxed);
            TRACE.store(FULL, Relaxed);
        }
        has_room.then_some(number)
    };
    let Some(number) = is_traced().then(take).flatten() else {
        header.lost.fetch_add(1, Relaxed);
        return None;
    };
    // SAFETY: the chunk lies in the mapping.
    let chunk = unsafe { record.events.add(number as usize * CHUNK) };
    // SAFETY: a chunk has more than one place.
    local.event.set(unsafe { chunk.add(1) });
    local.events_left.set(CHUNK - 1);
    Some(chunk)
}

/// Records the initialisation of MPI: the process has a rank in `MPI_COMM_WORLD`.
pub(crate) fn joined() {
    static RANK: Next = Next::new(c"PMPI_Comm_rank");
    static SIZE: Next = Next::new(c"PMPI_Comm_size");
    let Some(Some(record)) = RECORD.get() else { return };
    let (rank, size) = (next::ask(&RANK, next::WORLD), next::ask(&SIZE, next::WORLD));
    // SAFETY: the header stays mapped, and its shared fields are atomic.
    let header = unsafe { &*record.header };
    header.rank.store(rank.unwrap_or(-1) as u32, Relaxed);
    header.size.store(size.unwrap_or(0) as u32, Relaxed);
    record.read_clocks(1);
    IS_WORLD_KNOWN.store(rank.is_some(), Relaxed);
}

/// Records that MPI is about to be finalized.
pub(crate) fn ending() {
    IS_WORLD_KNOWN.store(false, Relaxed);
    if let Some(Some(record)) = RECORD.get() {
        record.read_clocks(2);
    }
}

/// Ranks in `MPI_COMM_WORLD` of the members of a used communicator or window.
struct Group {
    kind: u32,
    handle: usize,
    /// Counter value from which the handle may have had this meaning.
    since: u64,
    /// The ranks: unknown before the first message, inner `None` if they cannot be determined.
    ranks: Option<Option<Vec<i32>>>,
}

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

/// Returns the rank in `MPI_COMM_WORLD` of a rank of an object's group; -1 if there is none or it is unknown.
#[inline]
fn world_rank(kind: u32, object: usize, rank: i32) -> i32 {
    if (kind, object) == (1, next::WORLD) { rank } else { translated(kind, object, rank) }
}

fn translated(kind: u32, object: usize, rank: i32) -> i32 {
    if !IS_WORLD_KNOWN.load(Relaxed) {
        return -1;
    }
    let Ok(mut groups) = GROUPS.lock() else { return -1 };
    let known = groups.iter().position(|group| (group.kind, group.handle) == (kind, object)).unwrap_or_else(|| {
        groups.push(Group { kind, handle: object, since: 0, ranks: None });
        groups.len() - 1
    });
    let Group { since, ranks, .. } = &mut groups[known];
    let ranks = ranks.get_or_insert_with(|| {
        let ranks = next::world_ranks(object, kind == 2);
        if kind == 1 && is_traced() {
            names::describe_communicator(object, *since, ranks.as_deref().unwrap_or_default());
        }
        ranks
    });
    ranks.as_ref().and_then(|ranks| ranks.get(rank as usize)).copied().unwrap_or(-1)
}

/// Forgets the communicator or window at this address, which is about to be freed: its handle may be reused.
pub(crate) fn forget(kind: u32, address: usize) {
    if address == 0 {
        return;
    }
    // SAFETY: the program passes the address of a handle.
    let handle = unsafe { *(address as *const usize) };
    if let Ok(mut groups) = GROUPS.lock()
        && let Some(group) = groups.iter_mut().find(|group| (group.kind, group.handle) == (kind, handle))
    {
        (group.since, group.ranks) = (ticks(), None);
    }
}
