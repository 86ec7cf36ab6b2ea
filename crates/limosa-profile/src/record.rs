//! What is recorded of calls, in a file that is mapped into memory: `HOST.PID.profile` in the folder that
//! `LIMOSA_PROFILE` names. Without that variable nothing is recorded.
//!
//! The file is a [`Header`], the names of the functions (40 bytes each), and [`THREADS`] blocks ([`Thread`]), of which
//! each thread that calls MPI gets one. It grows by pieces, each of which gets its room before it is written, and is
//! sparse; it ends behind the last piece. Where there is no room, on the disk or by a limit of files' sizes, the program
//! goes on without the piece. With `LIMOSA_PROFILE_EVENTS=N` there is `HOST.PID.events` as well, with up to N calls
//! ([`Event`]), for which threads take room in chunks. Numbers are those of
//! the processor, little-endian on all that are supported. What is known of the places of the program from which calls
//! came, and of communicators, is text in `HOST.PID.names` ([`crate::names`]). `lab/limosa_lab/profile/files.py` reads
//! all three.
//!
//! A call costs two readings of the processor's counter and some additions to memory of the calling thread alone. The
//! usual call goes through [`record`], which calls nothing; what is seldom or costs more is done by [`record_first`].

use std::cell::Cell;
use std::mem::{offset_of, size_of};
use std::path::PathBuf;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use limosa_interpose::next::{self, Next};
use limosa_interpose::{python, site};

use crate::file::{host, mapped, reserve, with_ending};
use crate::requests::Part;
use crate::{NAMES, names};

/// Threads that get a block of their own; further ones share the last.
const THREADS: usize = 256;
/// Ranks of which messages are counted one by one; those behind are counted together.
const PEERS: usize = 4096;
/// Entries for a function, an object and a place of the program; where there is no room, calls are counted by function
/// alone.
const ENTRIES: usize = 1 << ENTRIES_LOG;
const ENTRIES_LOG: u32 = 11;
/// Entries that are looked at for a call.
const LOOKS: usize = 16;
/// Classes of sizes: 0, and up to 2^k - 1 bytes for each k.
const SIZES: usize = 40;
/// Events of a chunk.
const CHUNK: usize = 1024;
const NAME: usize = 40;
/// Added to the function of an event that is not a call but one of the requests or messages that a call is about.
const PART: u32 = 1 << 31;
const MAGIC: [u8; 8] = *b"LIMOPROF";
const VERSION: u32 = 4;

/// The beginning of a file; its size is a multiple of a page.
#[repr(C, align(4096))]
struct Header {
    magic: [u8; 8],
    version: u32,
    functions: u32,
    threads: u32,
    peers: u32,
    entries: u32,
    sizes: u32,
    /// Blocks that threads have taken.
    taken: AtomicU32,
    pid: u32,
    rank: AtomicU32,
    size: AtomicU32,
    /// The processor's counter and the system's monotonic clock in ns, read together: with the first call, when MPI was
    /// initialised, and when it was finalized.
    clocks: [[AtomicU64; 2]; 3],
    /// Calls for which there was no room among the events.
    lost: AtomicU64,
    /// Room for events, and chunks of them that are taken.
    events: u64,
    chunks: AtomicU64,
    /// Pieces of the file for which there was no room.
    refused: AtomicU64,
}

/// What is recorded of one function by one thread.
#[repr(C)]
struct Function {
    sizes: [Size; SIZES],
    bytes: AtomicU64,
    longest: AtomicU64,
}

/// Calls of one class of sizes.
#[repr(C)]
struct Size {
    calls: AtomicU64,
    ticks: AtomicU64,
    /// The complement of the shortest call's ticks, 0 if there is none: it grows from what the file holds at first.
    shortest: AtomicU64,
}

/// The calls of a function with one communicator, window or file, or none, from one place of the program.
#[repr(C)]
struct Entry {
    key: Key,
    calls: AtomicU64,
    ticks: AtomicU64,
    bytes: AtomicU64,
}

/// What an entry is of.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The number of the function plus 1 in the lower half, and the kind of the object; 0: the entry is free.
    function_and_kind: u64,
    object: u64,
    site: u64,
}

#[repr(C)]
struct Peer {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// Adds to a number of the calling thread. Of the last block, which may be that of several threads, something may be
/// lost. (It is one instruction, and the compiler does not join two of them into one that takes longer.)
#[inline]
fn add(to: &AtomicU64, number: u64) {
    to.store(to.load(Relaxed).wrapping_add(number), Relaxed);
}

/// The same for the largest of some numbers.
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
    /// More is to be done than to count a call: its events are recorded, or the program's lines are Python's.
    has_more: u64,
    /// Whether the function has room in the file.
    has_room: [u8; NAMES.len().next_multiple_of(8)],
    peers: [Peer; PEERS + 1],
    /// From here on the file gets room with the first call of a function.
    functions: [Function; NAMES.len()],
}

/// One call.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    begin: u64,
    end: u64,
    /// The number of the function plus 1; 0: not written.
    function: u32,
    /// The ranks in `MPI_COMM_WORLD` that something was sent to and received from, or -1.
    peer: i32,
    source: i32,
    /// Of what was sent, and of what was received.
    tag: i32,
    received_tag: i32,
    thread: u32,
    bytes: u64,
    object: u64,
    site: u64,
    /// The request that the call has started or asked for, or the message that it has found; of a part, what that is. Or
    /// 0.
    request: u64,
}

/// What is counted of a call.
pub(crate) struct Facts {
    pub bytes: u64,
    /// The rank that something is sent to, in the object's group; negative: none.
    pub peer: i32,
    pub object: Object,
}

impl Facts {
    pub const NONE: Facts = Facts { bytes: 0, peer: -1, object: Object::NONE };
}

/// What is recorded beside that where calls are recorded one by one.
pub(crate) struct Details {
    /// Of what is sent.
    pub tag: i32,
    /// The rank from which something is received, in the object's group, and the tag; negative: any, or none.
    pub source: i32,
    pub received_tag: i32,
    /// The address of the request that the call has started or asked for, or of the message that it has found, or 0.
    pub request: usize,
}

impl Details {
    pub const NONE: Details = Details { tag: -1, source: -1, received_tag: -1, request: 0 };
}

/// The object that a call is about: its kind (1: communicator, 2: window, 3: file; 0: none) and its handle.
#[derive(Clone, Copy)]
pub(crate) struct Object(pub u32, pub usize);

impl Object {
    pub const NONE: Object = Object(0, 0);
}

/// The file of this process.
struct Record {
    header: *mut Header,
    blocks: *mut Thread,
    events: *mut Event,
    /// The files without their endings, and where the blocks begin in the first.
    name: PathBuf,
    blocks_at: usize,
}

// SAFETY: the pointers are to memory that stays mapped; of what lies there, threads share only atomic numbers, and the
// last block, in which numbers may be lost.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

/// What a thread keeps; all 0 at first.
#[repr(C)]
struct Local {
    /// Its block; null before its first call, [`IN_CALL`] in a call, and for ever if nothing is recorded.
    block: Cell<*mut Thread>,
    /// Where the next event goes, and how many more fit into the chunk.
    event: Cell<*mut Event>,
    events_left: Cell<usize>,
    /// There is no room for further functions.
    is_full: Cell<bool>,
}

const _: () = assert!(size_of::<Local>() <= site::OWN * size_of::<usize>());

/// Calls of the library to itself are its affair: while a thread is in a call, it has no block.
const IN_CALL: *mut Thread = without_provenance_mut(1);

impl Local {
    /// Those of this thread.
    #[inline]
    fn here() -> &'static Local {
        Local::of(site::kept())
    }

    #[inline]
    fn of(kept: *mut site::Kept) -> &'static Local {
        // SAFETY: a thread's variables live as long as it does, and no reference leaves it; these words are for our use,
        // and 0 is a value of each field.
        unsafe { &*(&raw const (*kept).own).cast::<Local>() }
    }
}

static RECORD: OnceLock<Option<Record>> = OnceLock::new();
static IS_WORLD_KNOWN: AtomicBool = AtomicBool::new(false);

/// Whether calls are recorded one by one.
static TRACE: AtomicU8 = AtomicU8::new(NO_TRACE);
const NO_TRACE: u8 = 0;
const TRACED: u8 = 1;
/// There is no room for more: calls are only counted as lost.
const FULL: u8 = 2;

/// Calls are recorded one by one, and there is room for them.
#[inline]
pub(crate) fn is_traced() -> bool {
    TRACE.load(Relaxed) == TRACED
}

/// A call that has begun.
pub(crate) struct Call {
    block: *mut Thread,
    /// The address to which the call returns.
    returns_to: usize,
    /// The processor's counter at its begin and, later, at its end.
    begin: u64,
    end: u64,
}

impl Call {
    /// None if the call is not recorded: it is the library's own, or there is no room.
    #[inline]
    pub(crate) fn begin() -> Option<Call> {
        let kept = site::kept();
        // SAFETY: the variables of a thread live as long as it does.
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

    /// Records the call. What is said of it is asked for only if it has succeeded, and the details and parts only where
    /// calls are recorded one by one.
    ///
    /// Until this is over, calls of code of the program that runs meanwhile (an interpreter's finalizers) are not
    /// recorded.
    #[inline]
    pub(crate) fn end(
        mut self,
        function: usize,
        success: bool,
        facts: impl Fn() -> Facts,
        details: impl FnOnce() -> Details,
        parts: impl FnOnce() -> Vec<Part>,
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

    /// Records the call one by one, and each of its parts.
    #[cold]
    #[inline(never)]
    fn trace(&self, function: usize, facts: &Facts, details: &Details, parts: &[Part]) {
        let local = Local::here();
        // SAFETY: the block is mapped and is this thread's.
        let thread = unsafe { (*self.block).id as u32 };
        let Object(kind, object) = facts.object;
        if kind == 1 {
            // With the first look at a communicator its members are written down.
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
            // SAFETY: the call has succeeded, so that there is a request.
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
            // SAFETY: the place is mapped and in this thread's chunk.
            unsafe { place.write(event) };
        }
        local.block.set(self.block);
    }
}

#[inline]
const fn function_and_kind(function: usize, kind: u32) -> u64 {
    (function as u64 + 1) | (kind as u64) << 32
}

/// Counts a call of the usual sort: one like it was counted before, and there is nothing more to do. All others are left
/// to [`record_first`]. Says whether the call is to be recorded one by one; otherwise the thread has left it.
///
/// This calls nothing, so that the processor's registers need not be saved.
#[inline(never)]
fn record(call: &Call, function_and_kind: u64, bytes: u64, object: usize, peer: i32) -> bool {
    let key = Key { function_and_kind, object: object as u64, site: call.returns_to as u64 };
    // SAFETY: the block is mapped and is this thread's; the last block may be that of several threads, which then may
    // lose numbers of each other, but write nothing else there.
    let block = unsafe { &mut *call.block };
    let entry = &mut block.entries[place_of(&key)];
    if block.has_more != 0 || entry.key != key {
        return record_first(call, function_and_kind, bytes, object, peer);
    }
    let took = call.end.saturating_sub(call.begin);
    entry.count(took, bytes);
    let function = (function_and_kind as u32 - 1) as usize;
    // SAFETY: the wrappers have the numbers of the functions.
    unsafe { block.functions.get_unchecked(function) }.count(took, bytes);
    if peer >= 0 {
        return record_peer(call, function_and_kind, bytes, object, peer);
    }
    Local::here().block.set(call.block);
    false
}

/// Counts a call of any sort; as [`record`].
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

/// Counts what is sent to a peer, if there is one; then as [`record`].
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
        // The number of binary digits.
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

/// Gives a function of a block its room in the file; without it this thread records no further functions.
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

/// Where an entry is looked for first.
#[inline]
fn place_of(key: &Key) -> usize {
    let sum = key.site.wrapping_add(key.object).wrapping_add(key.function_and_kind << 3);
    (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ENTRIES_LOG)) as usize
}

/// Finds the entry of a function, an object and a place, or makes it; none if there is no room. Few places are looked
/// at: a program in which many objects come and go is not to become slow.
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

/// The processor's counter, which runs evenly on all processors.
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

/// The block of the calling thread, which it gets now; null inside another call, or if nothing is recorded.
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
    // SAFETY: there are so many blocks behind each other.
    let block = unsafe { record.blocks.add(number) };
    // SAFETY: the block is mapped; gettid cannot fail.
    unsafe { (*block).id = libc::gettid() as u64 };
    // SAFETY: as above.
    unsafe { (*block).has_more = u64::from(!record.events.is_null() || python::is_here()) };
    block
}

impl Record {
    /// Makes the file. What goes wrong is said once, and then nothing is recorded.
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
        // SAFETY: the mapping is long enough for the header, the names and all blocks; nobody else knows it.
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

    /// Gives a piece of the file its room.
    fn reserve(&self, at: usize, bytes: usize) -> bool {
        let has_room = reserve(&self.file("profile"), at, bytes);
        if !has_room {
            // SAFETY: the header stays mapped, and what is shared there is atomic.
            unsafe { &(*self.header).refused }.fetch_add(1, Relaxed);
        }
        has_room
    }

    fn file(&self, ending: &str) -> PathBuf {
        with_ending(&self.name, ending)
    }

    fn read_clocks(&self, which: usize) {
        // SAFETY: the header stays mapped, and what is shared there is atomic.
        let clocks = unsafe { &(*self.header).clocks[which] };
        clocks[0].store(ticks(), Relaxed);
        clocks[1].store(nanoseconds(), Relaxed);
    }
}

/// The place of the next event of this thread; none if there is no room.
fn next_event(local: &Local) -> Option<*mut Event> {
    let (place, left) = (local.event.get(), local.events_left.get());
    if left == 0 {
        return next_chunk(local);
    }
    // SAFETY: there are more places in the chunk, or this is the end of it.
    local.event.set(unsafe { place.add(1) });
    local.events_left.set(left - 1);
    Some(place)
}

#[cold]
fn next_chunk(local: &Local) -> Option<*mut Event> {
    let record = RECORD.get()?.as_ref()?;
    // SAFETY: the header stays mapped, and what is shared there is atomic.
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

/// MPI was initialised: the process has a rank in `MPI_COMM_WORLD`.
pub(crate) fn joined() {
    static RANK: Next = Next::new(c"PMPI_Comm_rank");
    static SIZE: Next = Next::new(c"PMPI_Comm_size");
    let Some(Some(record)) = RECORD.get() else { return };
    let (rank, size) = (next::ask(&RANK, next::WORLD), next::ask(&SIZE, next::WORLD));
    // SAFETY: the header stays mapped, and what is shared there is atomic.
    let header = unsafe { &*record.header };
    header.rank.store(rank.unwrap_or(-1) as u32, Relaxed);
    header.size.store(size.unwrap_or(0) as u32, Relaxed);
    record.read_clocks(1);
    IS_WORLD_KNOWN.store(rank.is_some(), Relaxed);
}

/// MPI is about to be finalized.
pub(crate) fn ending() {
    IS_WORLD_KNOWN.store(false, Relaxed);
    if let Some(Some(record)) = RECORD.get() {
        record.read_clocks(2);
    }
}

/// The ranks in `MPI_COMM_WORLD` of the members of a communicator or window that something was sent through.
struct Group {
    kind: u32,
    handle: usize,
    /// When the handle has come to mean this, or before.
    since: u64,
    /// Not known before something is sent. None if there are none.
    ranks: Option<Option<Vec<i32>>>,
}

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

/// The rank in `MPI_COMM_WORLD` of a rank of an object's group; -1 if it has none there, or that cannot be told.
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

/// The communicator or window at this address is about to be freed: its handle may come to mean another one.
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
