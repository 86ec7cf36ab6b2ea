//! What is recorded of calls, in a file that is mapped into memory: `HOST.PID.profile` in the folder that
//! `LIMOSA_PROFILE` names. Without that variable nothing is recorded.
//!
//! The file is a [`Header`], the names of the functions (40 bytes each), and [`THREADS`] blocks ([`Thread`]), of which
//! each thread that calls MPI gets one. It is sparse: only what is written takes room. With `LIMOSA_PROFILE_EVENTS=N`
//! there is `HOST.PID.events` as well, with room for N calls ([`Event`]), which threads take in chunks. Numbers are those of
//! the processor, little-endian on all that are supported. What is known of the places of the program from which calls
//! came, and of communicators, is text in `HOST.PID.names` ([`crate::names`]). `lab/limosa_lab/profile/files.py` reads
//! all three.
//!
//! A call costs two readings of the processor's counter and some additions to memory of the calling thread alone.

use std::cell::Cell;
use std::ffi::CString;
use std::mem::{offset_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use limosa_interpose::next::{self, Next};
use limosa_interpose::{python, site};

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
/// Added to the function of an event that is not a call but one of the requests that a call has completed.
const PART: u32 = 1 << 31;
const MAGIC: [u8; 8] = *b"LIMOPROF";
const VERSION: u32 = 2;

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
}

/// What is recorded of one function by one thread.
#[repr(C)]
struct Function {
    bytes: u64,
    longest: u64,
    sizes: [Size; SIZES],
}

/// Calls of one class of sizes.
#[repr(C)]
struct Size {
    calls: u64,
    ticks: u64,
    /// The shortest call, if there is any.
    least: u64,
}

/// The calls of a function with one communicator, window or file, or none, from one place of the program.
#[repr(C)]
struct Entry {
    /// The number of the function plus 1; 0: the entry is free.
    function: u32,
    kind: u32,
    object: u64,
    site: u64,
    calls: u64,
    ticks: u64,
    bytes: u64,
}

#[repr(C)]
struct Peer {
    messages: u64,
    bytes: u64,
}

#[repr(C)]
struct Thread {
    id: u64,
    /// Whether the function has room in the file.
    has_room: [u8; NAMES.len().next_multiple_of(8)],
    entries: [Entry; ENTRIES],
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
    /// The request that the call has begun or completed, or 0.
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
    /// The address of the request that the call has begun, or 0.
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

/// What a thread keeps.
pub(crate) struct Local {
    /// Its block; null before its first call, and if nothing is recorded.
    block: Cell<*mut Thread>,
    /// How many calls it is in: those of the library to itself are its affair.
    depth: Cell<u32>,
    /// Where the next event goes, and how many more fit into the chunk.
    event: Cell<*mut Event>,
    /// The largest number: no events are recorded.
    events_left: Cell<usize>,
    /// There is no room for its calls.
    is_over: Cell<bool>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            block: Cell::new(null_mut()),
            depth: Cell::new(0),
            event: Cell::new(null_mut()),
            events_left: Cell::new(0),
            is_over: Cell::new(false),
        }
    };
}

static RECORD: OnceLock<Option<Record>> = OnceLock::new();
static HAS_EVENTS: AtomicBool = AtomicBool::new(false);
static IS_WORLD_KNOWN: AtomicBool = AtomicBool::new(false);

/// A call that has begun.
pub(crate) struct Call {
    /// Of the calling thread, in which the call also ends.
    local: *const Local,
    /// Null if the call is not recorded.
    block: *mut Thread,
    /// The address to which the call returns.
    returns_to: usize,
    begin: u64,
}

impl Call {
    #[inline]
    pub(crate) fn begin() -> Call {
        // SAFETY: the variables of a thread live as long as it does.
        let kept = unsafe { &mut *site::kept() };
        if kept.local == 0 {
            kept.local = LOCAL.with(|local| std::ptr::from_ref(local) as usize);
        }
        let kept_local = kept.local as *const Local;
        // SAFETY: as above.
        let local = unsafe { &*kept_local };
        let depth = local.depth.get();
        local.depth.set(depth + 1);
        let block = match local.block.get() {
            block if depth > 0 || block.is_null() => first_call(local, depth),
            block => block,
        };
        Call { local: kept_local, block, returns_to: kept.returns_to, begin: ticks() }
    }

    /// Records the call, which has completed these requests. What is said of it is asked for only if it has succeeded,
    /// and the details only where calls are recorded one by one.
    #[inline]
    pub(crate) fn end(
        self,
        function: usize,
        success: bool,
        completed: &[usize],
        facts: impl FnOnce() -> Facts,
        details: impl FnOnce() -> Details,
    ) {
        let end = ticks();
        // SAFETY: the variables of a thread live as long as it does, and this is still the same thread.
        let local = unsafe { &*self.local };
        if !self.block.is_null() {
            let Facts { bytes, peer, object } = if success { facts() } else { Facts::NONE };
            let took = end.saturating_sub(self.begin);
            // SAFETY: the block is mapped and is this thread's; the last block may be that of several threads, which
            // then may lose numbers of each other, but write nothing else there.
            let block = unsafe { &mut *self.block };
            let peer = record(block, function, took, bytes, peer, object, self.returns_to);
            if local.events_left.get() != usize::MAX {
                let details = if success { details() } else { Details::NONE };
                self.trace(end, function, peer, &Facts { bytes, peer, object }, &details, completed);
            }
        }
        // Until here, what code of the program calls that runs meanwhile (an interpreter's finalizers) is not recorded.
        local.depth.set(local.depth.get() - 1);
    }

    /// Records the call one by one, and each request that it has completed.
    #[cold]
    #[inline(never)]
    fn trace(&self, end: u64, function: usize, peer: i32, facts: &Facts, details: &Details, completed: &[usize]) {
        // SAFETY: as in `end`.
        let (local, block) = unsafe { (&*self.local, &*self.block) };
        let Object(kind, object) = facts.object;
        if kind == 1 {
            // With the first look at a communicator its members are written down.
            translated(kind, object, 0);
        }
        let event = Event {
            begin: self.begin,
            end,
            function: function as u32 + 1,
            peer,
            source: if details.source < 0 { -1 } else { world_rank(kind, object, details.source) },
            tag: details.tag,
            received_tag: details.received_tag,
            thread: block.id as u32,
            bytes: facts.bytes,
            object: object as u64,
            site: site::of_call(self.returns_to).0 as u64,
            // SAFETY: the call has succeeded, so that there is a request.
            request: if details.request == 0 { 0 } else { unsafe { *(details.request as *const usize) as u64 } },
        };
        if let Some(place) = next_event(local) {
            // SAFETY: the place is mapped and in this thread's chunk.
            unsafe { place.write(event) };
        }
        for request in completed {
            let Some(place) = next_event(local) else { return };
            let part = Event { function: event.function | PART, request: *request as u64, ..event };
            // SAFETY: as above.
            unsafe { place.write(part) };
        }
    }
}

/// Counts a call; gives the peer's rank in `MPI_COMM_WORLD`, or -1.
#[inline(never)]
fn record(
    block: &mut Thread,
    function: usize,
    took: u64,
    bytes: u64,
    peer: i32,
    Object(kind, object): Object,
    returns_to: usize,
) -> i32 {
    if block.has_room[function] == 0 && !make_room(block, function) {
        return -1;
    }
    let recorded = &mut block.functions[function];
    recorded.bytes += bytes;
    recorded.longest = recorded.longest.max(took);
    let class = (64 - bytes.leading_zeros() as usize).min(SIZES - 1);
    let size = &mut recorded.sizes[class];
    size.least = if size.calls == 0 { took } else { size.least.min(took) };
    size.calls += 1;
    size.ticks += took;
    let site = site::of_call(returns_to);
    if let Some(entry) = entry(&mut block.entries, function as u32 + 1, kind, object as u64, site) {
        entry.calls += 1;
        entry.ticks += took;
        entry.bytes += bytes;
    }
    if peer < 0 {
        return -1;
    }
    let peer = world_rank(kind, object, peer);
    let counted = &mut block.peers[usize::try_from(peer).unwrap_or(PEERS).min(PEERS)];
    counted.messages += 1;
    counted.bytes += bytes;
    peer
}

/// The requests in an array of the program's, which a call is about to complete; none if calls are not traced.
#[inline]
pub(crate) fn requests(count: i32, array: usize) -> Vec<usize> {
    if !HAS_EVENTS.load(Relaxed) || array == 0 {
        return Vec::new();
    }
    // SAFETY: the program passes an array of so many handles, each as long as a pointer.
    (0..usize::try_from(count).unwrap_or(0)).map(|at| unsafe { *(array as *const usize).add(at) }).collect()
}

/// Gives a function of a block its room in the file; without it this thread records nothing more.
#[cold]
fn make_room(block: &mut Thread, function: usize) -> bool {
    let Some(Some(record)) = RECORD.get() else { return false };
    let at = (&raw const block.functions[function]) as usize - record.header as usize;
    let has_room = reserve(&record.file("profile"), at, size_of::<Function>());
    if has_room {
        block.has_room[function] = 1;
    } else {
        LOCAL.with(|local| {
            local.is_over.set(true);
            local.block.set(null_mut());
        });
    }
    has_room
}

/// Finds the entry of a function, an object and a place, or makes it; none if there is no room.
#[inline]
fn entry(
    entries: &mut [Entry; ENTRIES],
    function: u32,
    kind: u32,
    object: u64,
    site: site::Site,
) -> Option<&mut Entry> {
    let site_id = site.0 as u64;
    let mix = (object ^ u64::from(function) << 32 ^ site_id.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (mix >> (64 - ENTRIES_LOG)) as usize;
    let found = &entries[first];
    let is_it = (found.function, found.object, found.site) == (function, object, site_id);
    if is_it { Some(&mut entries[first]) } else { other_entry(entries, first, (function, kind, object), site) }
}

/// The same where the first place has another entry or none. Few places are looked at: a program in which many objects
/// come and go is not to become slow.
#[cold]
#[inline(never)]
fn other_entry(
    entries: &mut [Entry; ENTRIES],
    first: usize,
    (function, kind, object): (u32, u32, u64),
    site: site::Site,
) -> Option<&mut Entry> {
    let at = (first..first + LOOKS).map(|at| at % ENTRIES).find(|at| {
        let found = &entries[*at];
        found.function == 0 || (found.function, found.object, found.site) == (function, object, site.0 as u64)
    })?;
    let found = &mut entries[at];
    if found.function == 0 {
        (found.function, found.kind, found.object, found.site) = (function, kind, object, site.0 as u64);
        names::describe(site);
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
fn first_call(local: &Local, depth: u32) -> *mut Thread {
    if depth > 0 || local.is_over.get() {
        return null_mut();
    }
    let Some(record) = RECORD.get_or_init(Record::open) else { return null_mut() };
    // SAFETY: the header stays mapped.
    let taken = unsafe { &(*record.header).taken };
    let number = (taken.fetch_add(1, Relaxed) as usize).min(THREADS - 1);
    let at = record.blocks_at + number * size_of::<Thread>();
    if !reserve(&record.file("profile"), at, offset_of!(Thread, functions)) {
        local.is_over.set(true);
        return null_mut();
    }
    // SAFETY: there are so many blocks behind each other.
    let block = unsafe { record.blocks.add(number) };
    // SAFETY: the block is mapped; gettid cannot fail.
    unsafe { (*block).id = libc::gettid() as u64 };
    if record.events.is_null() {
        local.events_left.set(usize::MAX);
    }
    local.block.set(block);
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
        HAS_EVENTS.store(!events.is_null(), Relaxed);
        names::open(&record.file("names"));
        python::find();
        Some(Record { events, ..record })
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

fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Makes sure that a part of a file has room: to write there without it would kill the process.
fn reserve(file: &Path, at: usize, bytes: usize) -> bool {
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: plain system calls; the name ends with a null character, the descriptor is closed once.
    let error = unsafe {
        let descriptor = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if descriptor < 0 {
            std::io::Error::last_os_error()
        } else {
            let done = libc::fallocate(descriptor, 0, at as libc::off_t, bytes as libc::off_t) == 0;
            let error = std::io::Error::last_os_error();
            libc::close(descriptor);
            // Where files cannot be given room in advance, the system gives it later.
            if done || error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                return true;
            }
            error
        }
    };
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Relaxed) {
        eprintln!("limosa: profile: no room in {}: {error}; the profile will not be complete", file.display());
    }
    false
}

fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the name is written to our array, which has room for it and a null character behind it.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let text: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0 && *byte != b'/').collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// A new file of that size, mapped into memory; its parts take room when they are written.
fn mapped(file: &Path, bytes: usize) -> Option<*mut u8> {
    let failed = |what: &str| {
        let error = std::io::Error::last_os_error();
        eprintln!("limosa: profile: cannot {what} {}: {error}; this process is not recorded", file.display());
        None
    };
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return failed("name") };
    // SAFETY: plain system calls; the name ends with a null character, the descriptor is closed once.
    unsafe {
        let descriptor =
            libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, 0o600);
        if descriptor < 0 {
            return failed("make");
        }
        if libc::ftruncate(descriptor, bytes as libc::off_t) != 0 {
            libc::close(descriptor);
            return failed("make room in");
        }
        let place = libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, descriptor, 0);
        libc::close(descriptor);
        if place == libc::MAP_FAILED { failed("map") } else { Some(place.cast()) }
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
    let number = header.chunks.fetch_add(1, Relaxed);
    let at = number as usize * CHUNK * size_of::<Event>();
    let has_room =
        (number + 1) * CHUNK as u64 <= header.events && reserve(&record.file("events"), at, CHUNK * size_of::<Event>());
    if !has_room {
        header.chunks.fetch_sub(1, Relaxed);
        header.lost.fetch_add(1, Relaxed);
        return None;
    }
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

/// The ranks in `MPI_COMM_WORLD` of the members of communicators and windows that something was sent through.
struct Groups(Vec<(u32, usize, Option<Vec<i32>>)>);

static GROUPS: Mutex<Groups> = Mutex::new(Groups(Vec::new()));

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
    let known = groups.0.iter().position(|(of, handle, _)| (*of, *handle) == (kind, object));
    let known = known.unwrap_or_else(|| {
        let ranks = next::world_ranks(object, kind == 2);
        if kind == 1 && HAS_EVENTS.load(Relaxed) {
            names::describe_communicator(object, ranks.as_deref().unwrap_or_default());
        }
        groups.0.push((kind, object, ranks));
        groups.0.len() - 1
    });
    let ranks = groups.0[known].2.as_ref();
    ranks.and_then(|ranks| ranks.get(rank as usize)).copied().unwrap_or(-1)
}

/// A communicator or window was freed: its handle may come to mean another one.
pub(crate) fn forget_groups() {
    if let Ok(mut groups) = GROUPS.lock() {
        groups.0.clear();
    }
}
