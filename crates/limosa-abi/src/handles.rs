//! Handles: the numbers that denote objects in the C ABI (MPI-5 section 20.3).
//!
//! Predefined handles are the ABI's constants (below `0x1000`). The others are
//!
//! ```text
//! bit 30    29..26    25..20               19..0
//!  0        kind      generation           slot          every kind but requests: 1 M live handles each
//!  1        0 (29)    generation (28..23)  slot (22..0)  requests with an object: 8 M live handles
//!  1        1 (29)    generation (28..18)  slot (17..0)  requests in the engine: 256 K live handles; more have objects
//! ```
//!
//! Invariants:
//! - a handle fits in 31 bits, so that conversion to and from an integer is the identity;
//! - freed slots wait in a queue of at least [`RESTING`] and are reused under the next generation. A stale handle of an
//!   object is detected until 4,000 further objects of its kind have been created, one of a request in the engine until
//!   [`Short::DISTANCE`] (65,536) further ones have been;
//! - a table returns only objects of its own kind, for any number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use limosa_base::hazard::{Cell, Eternal, Ref, sweep};
use limosa_mpi::Short;
use limosa_mpi::consts::{self, ErrorClass};
use parking_lot::Mutex;

use crate::entry::kind;

/// A handle as C passes it.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    /// Creates the handle of one of the ABI's constants.
    pub(crate) const fn predefined(value: i32) -> Handle {
        Handle(value as usize)
    }
}

/// Properties of a kind of handle.
pub(crate) struct HandleKind {
    /// Noun with article: "a communicator".
    pub(crate) noun: &'static str,
    /// Value of the null handle.
    pub(crate) null: i32,
    /// Name of the null handle.
    pub(crate) null_name: &'static str,
    /// Error class of an invalid handle.
    pub(crate) class: ErrorClass,
    /// Number of the kind in a handle, from 1.
    pub(crate) tag: usize,
    /// Smallest predefined value.
    pub(crate) low: i32,
    /// Largest predefined value.
    pub(crate) high: i32,
}

/// Numbers below this one are predefined handles, or invalid.
const PREDEFINED_END: usize = 0x1000;
const REQUEST_BIT: usize = 1 << 30;
const REQUEST_SLOT_BITS: usize = 23;
/// Bits of the slot number of objects that are not requests.
const SLOT_BITS: usize = 20;
/// Bit of a request's handle: it lives in the engine, under this generation and slot.
const LIGHT_BIT: usize = 1 << 29;
const LIGHT_SLOT_BITS: usize = 18;
const COMPLETED_SLOT: usize = (1 << LIGHT_SLOT_BITS) - 1;
const _: () = assert!((Short::GENERATIONS as usize) << LIGHT_SLOT_BITS == LIGHT_BIT);
const _: () = assert!(Short::FAST <= COMPLETED_SLOT);
const GENERATIONS: usize = 1 << 6;
/// Generation of a slot that was never used.
const NEVER: usize = usize::MAX;
/// Freed slots that are kept back: a stale handle is detected for at least this many times [`GENERATIONS`] new objects.
const RESTING: usize = 64;

/// An object with handles.
pub(crate) trait Object: Send + Sync + 'static {
    /// Its kind of handle.
    const KIND: HandleKind;
    /// Returns the table of all objects of this type.
    fn table() -> &'static HandleTable<Self>
    where
        Self: Sized;
    /// Stores in the object the handle under which it is registered.
    fn set_handle(&self, _handle: Handle) {}
    /// Returns whether the object owns shared memory, or much memory. It is then dropped as soon as its handle is freed
    /// and it is unused, not later together with other objects.
    fn keeps_memory(&self) -> bool {
        false
    }
    /// Returns an object for a request that lives in the engine, for the duration of a call.
    fn light(_handle: Handle) -> Option<Arc<Self>>
    where
        Self: Sized,
    {
        None
    }
    /// Returns the object behind a predefined handle. Called once per value, on first use.
    fn builtin(_value: i32) -> Option<Arc<Self>>
    where
        Self: Sized,
    {
        None
    }
}

impl Handle {
    /// Returns the handle of a request that lives in the engine; `None` if its slot number is too high for a handle.
    #[inline]
    pub(crate) fn light(short: Short) -> Option<Handle> {
        let slot = short.index as usize;
        (slot < COMPLETED_SLOT)
            .then_some(Handle(REQUEST_BIT | LIGHT_BIT | (short.generation as usize) << LIGHT_SLOT_BITS | slot))
    }

    /// The handle of all sends that were complete when they were started.
    pub(crate) const COMPLETED: Handle = Handle(REQUEST_BIT | LIGHT_BIT | COMPLETED_SLOT);

    /// Returns the handle without its generation, which all objects share that use this slot one after another.
    pub(crate) fn without_generation(self) -> Handle {
        let slot_bits = match self.0 {
            number if number & REQUEST_BIT == 0 => SLOT_BITS,
            _ if self.is_light() => LIGHT_SLOT_BITS,
            _ => REQUEST_SLOT_BITS,
        };
        let generations = if self.is_light() { Short::GENERATIONS as usize } else { GENERATIONS };
        Handle(self.0 & !((generations - 1) << slot_bits))
    }

    /// Returns whether the request lives in the engine, or is [`Handle::COMPLETED`].
    #[inline]
    pub(crate) fn is_light(self) -> bool {
        self.0 >> 29 == 3
    }

    /// Returns the request's name in the engine; `None` for [`Handle::COMPLETED`]. Only for light handles.
    #[inline]
    pub(crate) fn short(self) -> Option<Short> {
        let index = (self.0 & COMPLETED_SLOT) as u32;
        (index as usize != COMPLETED_SLOT)
            .then_some(Short { index, generation: (self.0 >> LIGHT_SLOT_BITS) as u32 % Short::GENERATIONS })
    }
}

/// Reason why a number is not the handle of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It is the null handle of the kind.
    Null,
    /// It was one, and was freed.
    Freed,
    /// It never was one of this kind.
    Foreign,
    /// It is predefined, and cannot be freed.
    Predefined,
}

struct Slot<T: Object> {
    generation: AtomicUsize,
    object: Cell<T>,
}

/// Slots in the first chunk; each further chunk has twice as many, so that slots never move.
const FIRST_CHUNK: usize = 64;
/// Number of chunks for the 8 M slots of requests.
const CHUNKS: usize = 18;

/// Returns the chunk of a slot, and the index in it.
#[inline]
fn place(slot: usize) -> (usize, usize) {
    let n = slot + FIRST_CHUNK;
    let chunk = (n.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, n - (FIRST_CHUNK << chunk))
}

/// Record of the slots in use.
struct SlotRecord {
    used: usize,
    free: VecDeque<usize>,
}

/// All live objects of one kind. A look-up takes no lock and counts no reference (see [`limosa_base::hazard`]).
pub(crate) struct HandleTable<T: Object> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    builtin: OnceLock<Box<[Eternal<T>]>>,
    slots: Mutex<SlotRecord>,
}

impl<T: Object> HandleTable<T> {
    /// Creates an empty table.
    pub(crate) const fn new() -> HandleTable<T> {
        HandleTable {
            chunks: [const { OnceLock::new() }; CHUNKS],
            builtin: OnceLock::new(),
            slots: Mutex::new(SlotRecord { used: 0, free: VecDeque::new() }),
        }
    }

    const IS_REQUEST: bool = T::KIND.tag == kind::REQUEST.tag;
    const SLOT_BITS: usize = if Self::IS_REQUEST { REQUEST_SLOT_BITS } else { SLOT_BITS };
    /// Maximum number of live objects.
    const LIMIT: usize = 1 << Self::SLOT_BITS;
    const BASE: usize = if Self::IS_REQUEST { REQUEST_BIT } else { T::KIND.tag << 26 };

    fn encode(slot: usize, generation: usize) -> Handle {
        Handle(Self::BASE | generation << Self::SLOT_BITS | slot)
    }

    /// Returns slot and generation of a handle of this kind.
    #[inline]
    fn decode(handle: Handle) -> Option<(usize, usize)> {
        let rest = handle.0.wrapping_sub(Self::BASE);
        let limit = GENERATIONS << Self::SLOT_BITS;
        if rest < limit { Some((rest & ((1 << Self::SLOT_BITS) - 1), rest >> Self::SLOT_BITS)) } else { None }
    }

    #[inline]
    fn slot(&self, slot: usize) -> Option<&Slot<T>> {
        let (chunk, at) = place(slot);
        self.chunks[chunk].get().map(|slots| &slots[at])
    }

    /// Returns the object behind a handle.
    ///
    /// Inlined so that the reference stays in registers. Written to the stack in parts and read back as a whole, it
    /// would stall every call for longer than the look-up takes.
    #[inline(always)]
    pub(crate) fn get(&self, handle: Handle) -> Result<Ref<T>, Miss> {
        let at = (handle.0 as i32).wrapping_sub(T::KIND.low) as usize;
        if handle.0 < PREDEFINED_END
            && let Some(all) = self.builtin.get()
            && at < all.len()
            && let Some(object) = all[at].get()
        {
            return Ok(object);
        }
        self.get_other(handle)
    }

    /// Returns the object behind a predefined handle that was used before, without a reference.
    #[inline(always)]
    pub(crate) fn look(&self, handle: Handle) -> Option<&T> {
        let at = (handle.0 as i32).wrapping_sub(T::KIND.low) as usize;
        if handle.0 < PREDEFINED_END { self.builtin.get()?.get(at)?.look() } else { None }
    }

    #[inline(never)]
    fn get_other(&self, handle: Handle) -> Result<Ref<T>, Miss> {
        if handle.0 < PREDEFINED_END {
            return self.predefined(handle.0 as i32);
        }
        if Self::IS_REQUEST && handle.is_light() {
            return T::light(handle).map(Ref::counted).ok_or(Miss::Freed);
        }
        let (slot, generation) = Self::decode(handle).ok_or(Miss::Foreign)?;
        let slot = self.slot(slot).ok_or(Miss::Foreign)?;
        match slot.object.get() {
            Some(object) if slot.generation.load(Ordering::Acquire) == generation => Ok(object),
            None if slot.generation.load(Ordering::Acquire) == NEVER => Err(Miss::Foreign),
            _ => Err(Miss::Freed),
        }
    }

    fn predefined(&self, value: i32) -> Result<Ref<T>, Miss> {
        let at = value.wrapping_sub(T::KIND.low) as usize;
        if let Some(place) = self.builtin.get().and_then(|all| all.get(at))
            && let Some(object) = place.get()
        {
            return Ok(object);
        }
        self.first_use(value)
    }

    /// Returns the object behind a predefined handle that was not used before, or an error.
    #[cold]
    fn first_use(&self, value: i32) -> Result<Ref<T>, Miss> {
        if value == T::KIND.null {
            return Err(Miss::Null);
        }
        if !(T::KIND.low..=T::KIND.high).contains(&value) {
            return Err(Miss::Foreign);
        }
        let object = T::builtin(value).ok_or(Miss::Foreign)?;
        Ok(Ref::counted(self.set_predefined(value, object, false)))
    }

    /// Registers `object` under a predefined handle and returns the registered object. Without `replace`, an earlier
    /// object is kept.
    pub(crate) fn set_predefined(&self, value: i32, object: Arc<T>, replace: bool) -> Arc<T> {
        let many = (T::KIND.high - T::KIND.low + 1) as usize;
        let all = self.builtin.get_or_init(|| (0..many).map(|_| Eternal::new()).collect());
        let place = &all[(value - T::KIND.low) as usize];
        let _slots = self.slots.lock();
        if !replace && let Some(there) = place.get() {
            return Arc::clone(&there);
        }
        object.set_handle(Handle::predefined(value));
        place.set(object.clone());
        object
    }

    /// Removes the object behind a predefined handle.
    pub(crate) fn clear_predefined(&self, value: i32) {
        if let Some(all) = self.builtin.get() {
            all[(value - T::KIND.low) as usize].clear();
        }
    }

    /// Registers an object; `None` if no handle of this kind is free.
    pub(crate) fn insert(&self, object: Arc<T>) -> Option<Handle> {
        let at = {
            let mut slots = self.slots.lock();
            let full = slots.used >= Self::LIMIT;
            match if slots.free.len() > RESTING || full { slots.free.pop_front() } else { None } {
                Some(at) => at,
                None if full => return None,
                None => {
                    slots.used += 1;
                    slots.used - 1
                }
            }
        };
        let (chunk, place) = place(at);
        let fresh = || Slot { generation: AtomicUsize::new(NEVER), object: Cell::new() };
        let slot = &self.chunks[chunk].get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| fresh()).collect())[place];
        let generation = (slot.generation.load(Ordering::Relaxed).wrapping_add(1)) % GENERATIONS;
        slot.generation.store(generation, Ordering::Release);
        let handle = Self::encode(at, generation);
        object.set_handle(handle);
        slot.object.set(object);
        Some(handle)
    }

    /// Returns all objects with handles, except the predefined ones.
    pub(crate) fn live(&self) -> Vec<(Handle, Arc<T>)> {
        let used = self.slots.lock().used;
        let object = |at: usize| {
            let slot = self.slot(at)?;
            let object = slot.object.get()?;
            Some((Self::encode(at, slot.generation.load(Ordering::Acquire)), Arc::clone(&object)))
        };
        (0..used).filter_map(object).collect()
    }

    /// Frees a handle. Returns its object, which lives until its last reference is dropped.
    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>, Miss> {
        if handle.0 < PREDEFINED_END {
            return Err(self.predefined(handle.0 as i32).err().unwrap_or(Miss::Predefined));
        }
        let (at, generation) = Self::decode(handle).ok_or(Miss::Foreign)?;
        let slot = self.slot(at).ok_or(Miss::Foreign)?;
        let mut slots = self.slots.lock();
        match slot.generation.load(Ordering::Relaxed) {
            NEVER => return Err(Miss::Foreign),
            now if now != generation => return Err(Miss::Freed),
            _ => {}
        }
        let object = slot.object.take().ok_or(Miss::Freed)?;
        slots.free.push_back(at);
        drop(slots);
        if object.keeps_memory() {
            sweep();
        }
        Ok(object)
    }
}

/// Describes a number that was passed as a handle of `wanted`: "MPI_INT, not a communicator".
pub(crate) fn describe(handle: Handle, wanted: &HandleKind, miss: &Miss) -> String {
    let number = handle.0;
    match miss {
        Miss::Null if number == wanted.null as usize => format!("is {}", wanted.null_name),
        Miss::Freed => format!("(0x{number:x}) has been freed"),
        Miss::Predefined => {
            format!(
                "({}) is predefined and cannot be freed",
                predefined_name(number).unwrap_or_else(|| format!("0x{number:x}"))
            )
        }
        _ if number == 0 => format!("is a null pointer, not {}: use {} for none", wanted.noun, wanted.null_name),
        _ => {
            if let Some(library) = foreign::library_of(number, wanted) {
                return format!(
                    "(0x{number:x}) is {} of {library}, not of Limosa: a part of the program was compiled for another \
                     MPI library; compile it with Limosa's mpicc (`limosa cc`)",
                    wanted.noun
                );
            }
            let owner = kind::ALL.iter().find(|k| owns(k, number));
            match (predefined_name(number), owner) {
                (Some(name), Some(owner)) if owner.tag == wanted.tag => {
                    format!(
                        "is {name}, which exists between MPI_Init and MPI_Finalize only; sessions make communicators \
                         of their groups"
                    )
                }
                (Some(name), _) => format!("is {name}, not {}", wanted.noun),
                (None, Some(owner)) if owner.tag != wanted.tag => {
                    format!("(0x{number:x}) is {}, not {}", owner.noun, wanted.noun)
                }
                _ => format!("(0x{number:x}) is not the handle of {}", wanted.noun),
            }
        }
    }
}

mod foreign {
    //! Recognition of handles of other MPI libraries, from parts of a program that were compiled for them.

    use super::HandleKind;

    /// Returns the library that this handle belongs to.
    pub(super) fn library_of(number: usize, wanted: &HandleKind) -> Option<&'static str> {
        if is_of_mpich(number, wanted) {
            return Some("MPICH or Intel MPI");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        is_of_open_mpi(number, &maps).then_some("Open MPI")
    }

    /// Returns whether a number is a handle of MPICH: a 32-bit number, of which two bits are the access method, 01 for
    /// predefined ones, and four the kind.
    fn is_of_mpich(number: usize, wanted: &HandleKind) -> bool {
        const PREDEFINED: usize = 1;
        let kind = match wanted.null_name {
            "MPI_COMM_NULL" => 1,
            "MPI_GROUP_NULL" => 2,
            "MPI_DATATYPE_NULL" => 3,
            "MPI_ERRHANDLER_NULL" => 5,
            "MPI_OP_NULL" => 6,
            "MPI_INFO_NULL" => 7,
            "MPI_WIN_NULL" => 8,
            "MPI_REQUEST_NULL" => 11,
            _ => return false,
        };
        let (way, index) = (number >> 30, number & 0x3ff_ffff);
        // Requests of this library have numbers like those of MPICH's predefined objects.
        let is_predefined = way == PREDEFINED && index < 1 << 16 && kind != 11;
        number >> 26 & 0xf == kind && (is_predefined || way == 2 || way == 3)
    }

    /// Returns whether a number is a predefined handle of Open MPI: the address of an object in its library.
    fn is_of_open_mpi(number: usize, maps: &str) -> bool {
        let holds = |line: &str| {
            let (range, file) = (line.split(' ').next()?, line.rsplit('/').next()?);
            let (start, end) = range.split_once('-')?;
            let bound = |text| usize::from_str_radix(text, 16).ok();
            Some((bound(start)?..bound(end)?).contains(&number) && line.contains('/') && file.starts_with("libmpi"))
        };
        number > u32::MAX as usize && maps.lines().any(|line| holds(line) == Some(true))
    }

    #[cfg(test)]
    mod tests {
        use super::super::kind;
        use super::*;

        #[test]
        fn handles_of_mpich_are_known_by_their_numbers() {
            assert!(is_of_mpich(0x4400_0000, &kind::COMMUNICATOR) && is_of_mpich(0x8400_0002, &kind::COMMUNICATOR));
            assert!(is_of_mpich(0x4c00_0405, &kind::DATATYPE) && is_of_mpich(0x5800_0003, &kind::OPERATION));
            assert!(is_of_mpich(0xac00_0001, &kind::REQUEST) && !is_of_mpich(0x6c00_0001, &kind::REQUEST));
            assert!(!is_of_mpich(0x4400_0000, &kind::DATATYPE) && !is_of_mpich(0x7f00_4400_0000, &kind::COMMUNICATOR));
        }

        #[test]
        fn handles_of_open_mpi_lie_in_its_library() {
            let maps = "7f0010-7f0020 rw-p 0 0:0 7 /x/libmpi.so.40.30\n7f0020000000-7f0020002000 rw-p 0 0:0 7 \
                        /x/libmpi.so.40.30\n7f0030000000-7f0030001000 rw-p 0 0:0 8 /x/libc.so.6\n";
            assert!(is_of_open_mpi(0x7f00_2000_1000, maps));
            assert!(!is_of_open_mpi(0x7f00_2000_2000, maps) && !is_of_open_mpi(0x7f00_3000_0000, maps));
            assert!(!is_of_open_mpi(0x7f0018, maps));
        }
    }
}

fn owns(kind: &HandleKind, number: usize) -> bool {
    match number {
        n if n < PREDEFINED_END => (kind.low..=kind.high).contains(&(n as i32)),
        n if n >> 30 == 1 => kind.tag == kind::REQUEST.tag,
        n => n >> 26 == kind.tag && kind.tag != kind::REQUEST.tag,
    }
}

fn predefined_name(number: usize) -> Option<String> {
    let value = i32::try_from(number).ok()?;
    let known = consts::PREDEFINED_HANDLES;
    let at = known.binary_search_by_key(&value, |entry| entry.0).ok()?;
    Some(known[at].1.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    struct Thing(u32, AtomicUsize);

    fn thing(n: u32) -> Arc<Thing> {
        Arc::new(Thing(n, AtomicUsize::new(0)))
    }

    impl Object for Thing {
        const KIND: HandleKind = kind::COMMUNICATOR;
        fn table() -> &'static HandleTable<Thing> {
            unreachable!("the tests make their own tables")
        }
        fn set_handle(&self, handle: Handle) {
            self.1.store(handle.0, Ordering::Relaxed);
        }
    }

    struct Ticket;

    impl Object for Ticket {
        const KIND: HandleKind = kind::REQUEST;
        fn table() -> &'static HandleTable<Ticket> {
            unreachable!("the tests make their own tables")
        }
    }

    #[test]
    fn a_handle_leads_to_its_object_until_it_is_freed() {
        let table = HandleTable::<Thing>::new();
        let handle = table.insert(thing(7)).unwrap();
        let object = table.get(handle).unwrap();
        assert_eq!((object.0, object.1.load(Ordering::Relaxed)), (7, handle.0));
        assert_eq!(table.remove(handle).unwrap().0, 7);
        assert_eq!(table.get(handle).err(), Some(Miss::Freed));
        assert_eq!(table.remove(handle).err(), Some(Miss::Freed));
        let next = table.insert(thing(8)).unwrap();
        assert_ne!(next, handle, "the slot is reused, the handle is not");
        assert_eq!(table.get(handle).err(), Some(Miss::Freed));
    }

    #[test]
    fn null_predefined_and_foreign_handles_are_told_apart() {
        let table = HandleTable::<Thing>::new();
        assert_eq!(table.get(Handle::predefined(consts::MPI_COMM_NULL)).err(), Some(Miss::Null));
        assert_eq!(table.get(Handle::predefined(consts::MPI_INT)).err(), Some(Miss::Foreign));
        table.set_predefined(consts::MPI_COMM_WORLD, thing(1), false);
        assert_eq!(table.get(Handle::predefined(consts::MPI_COMM_WORLD)).unwrap().0, 1);
        assert_eq!(table.remove(Handle::predefined(consts::MPI_COMM_WORLD)).err(), Some(Miss::Predefined));
        let say = |n: usize| describe(Handle(n), &kind::COMMUNICATOR, &Miss::Foreign);
        assert_eq!(say(consts::MPI_INT as usize), "is MPI_INT, not a communicator");
        assert!(say(kind::DATATYPE.tag << 26 | 5).contains("is a datatype, not a communicator"));
        assert!(say(REQUEST_BIT | 9).contains("is a request"));
        assert!(say(usize::MAX).contains("is not the handle of a communicator"));
    }

    #[test]
    fn handles_fit_in_31_bits_and_the_sorts_are_told_apart() {
        assert!(HandleTable::<Thing>::encode((1 << 20) - 1, GENERATIONS - 1).0 < 1 << 30);
        let last = HandleTable::<Ticket>::encode(HandleTable::<Ticket>::LIMIT - 1, GENERATIONS - 1);
        assert!(last.0 >> 30 == 1 && !last.is_light());
        for short in [
            Short { index: 0, generation: 0 },
            Short { index: COMPLETED_SLOT as u32 - 1, generation: Short::GENERATIONS - 1 },
        ] {
            let handle = Handle::light(short).unwrap();
            assert!(handle.0 >> 30 == 1 && handle.is_light());
            assert_eq!(handle.short(), Some(short));
            let first = Handle::light(Short { generation: 0, ..short });
            assert_eq!(Some(handle.without_generation()), first, "the next request in this slot");
        }
        let thing = HandleTable::<Thing>::encode;
        assert_eq!(thing(7, GENERATIONS - 1).without_generation(), thing(7, 0));
        assert_eq!(last.without_generation(), HandleTable::<Ticket>::encode(HandleTable::<Ticket>::LIMIT - 1, 0));
        assert_eq!(Handle::light(Short { index: COMPLETED_SLOT as u32, generation: 0 }), None);
        assert!(Handle::COMPLETED.is_light() && Handle::COMPLETED.short().is_none());
        let last = kind::ALL.iter().map(|k| k.tag).max().unwrap();
        assert!(last < 16);
    }

    proptest! {
        #[test]
        fn any_number_is_an_object_or_an_error(number: usize, inserted in 0u32..5) {
            let table = HandleTable::<Thing>::new();
            let live: Vec<Handle> = (0..inserted).map(|n| table.insert(thing(n)).unwrap()).collect();
            let found = table.get(Handle(number));
            prop_assert_eq!(found.is_ok(), live.contains(&Handle(number)));
            if let Err(miss) = found {
                prop_assert!(!describe(Handle(number), &kind::COMMUNICATOR, &miss).is_empty());
            }
        }

        #[test]
        fn a_table_behaves_like_a_map(steps in prop::collection::vec((any::<bool>(), 0usize..8), 0..60)) {
            let table = HandleTable::<Thing>::new();
            let mut model: Vec<(Handle, u32)> = Vec::new();
            for (n, (insert, pick)) in steps.into_iter().enumerate() {
                if insert || model.is_empty() {
                    model.push((table.insert(thing(n as u32)).unwrap(), n as u32));
                } else {
                    let (handle, value) = model.swap_remove(pick % model.len());
                    prop_assert_eq!(table.remove(handle).unwrap().0, value);
                    prop_assert_eq!(table.get(handle).err(), Some(Miss::Freed));
                }
                for (handle, value) in &model {
                    prop_assert_eq!(table.get(*handle).unwrap().0, *value);
                }
            }
        }
    }
}
