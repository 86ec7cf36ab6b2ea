//! Conversions of handles, numbers, addresses and error codes between MPICH's ABI and the standard ABI.
//!
//! Handles of MPICH are integers, but for files, which are pointers in both ABIs. Predefined handles are found by
//! arithmetic and small tables. All others are converted by the library: `MPI_Comm_fromint`, `MPI_Comm_toint`, and so
//! on. Their integers must differ from MPICH's predefined handles of the same kind; those of Limosa, MPICH, Intel MPI
//! and Open MPI do.

use std::mem::MaybeUninit;

use crate::library::has_plain_handles;
use crate::standard::{
    CLASSES, CLASSES_FROM_MPICH, CLASSES_OF_TOOLS, DATATYPES, OPERATIONS, PAIRS, PREDEFINED, no_process_to_mpich,
    no_process_to_standard,
};
use crate::standard::{abi, mpich_value as mpich, standard_value as standard};

/// A kind of handle.
pub(crate) trait Kind {
    /// Type of a handle in MPICH's ABI.
    type C: Copy;
    /// The null handle in the standard ABI.
    const NULL: usize;
    /// Converts a handle of the program.
    fn to_standard(handle: Self::C) -> usize;
    /// Converts a handle of the library.
    fn to_mpich(handle: usize) -> Self::C;
}

/// A kind of handle that is an integer in MPICH.
pub(crate) trait QuickKind: Kind<C = i32> {
    /// The null handle in MPICH's ABI.
    const MPICH_NULL: i32;
    /// Converts a handle of the program, if no function of the library is needed for it.
    fn quick(handle: i32) -> Option<usize>;
}

/// Defines a kind of handle. `$fast` converts predefined handles but the null handle, `$frequent` the usual ones.
macro_rules! kind {
    ($kind:ident, $null:ident, $fromint:ident, $toint:ident, |$handle:ident| $fast:expr) => {
        kind!($kind, $null, $fromint, $toint, |$handle| $fast, $fast);
    };
    ($kind:ident, $null:ident, $fromint:ident, $toint:ident, |$handle:ident| $fast:expr, $frequent:expr) => {
        pub(crate) struct $kind;

        impl Kind for $kind {
            type C = i32;
            const NULL: usize = standard::$null as usize;

            #[inline]
            fn to_standard($handle: i32) -> usize {
                match $fast {
                    Some(handle) => handle,
                    None if $handle == mpich::$null => standard::$null as usize,
                    // SAFETY: may be called at any time with any number.
                    None => unsafe { abi::$fromint($handle) },
                }
            }

            #[inline]
            fn to_mpich(handle: usize) -> i32 {
                match PREDEFINED.get(handle) {
                    _ if handle == standard::$null as usize => mpich::$null,
                    Some(&predefined) if predefined != 0 => predefined,
                    // SAFETY: may be called at any time with a handle of the library.
                    _ => unsafe { abi::$toint(handle) },
                }
            }
        }

        impl QuickKind for $kind {
            const MPICH_NULL: i32 = mpich::$null;

            #[inline(always)]
            fn quick($handle: i32) -> Option<usize> {
                match $frequent {
                    Some(handle) => Some(handle),
                    // The sign bit is set in some of MPICH's predefined handles, in none of a library like this.
                    None if has_plain_handles() && $handle != mpich::$null && $handle > 0 => {
                        Some($handle as u32 as usize)
                    }
                    None => None,
                }
            }
        }
    };
}

/// Returns whether a call with a handle behind this address may go the quick way.
#[inline(always)]
pub(crate) fn is_quick(address: usize) -> bool {
    address != 0 && has_plain_handles()
}

/// Writes a handle of a library with plain handles to an address of the program.
///
/// # Safety
/// The address is valid for a handle.
#[inline(always)]
pub(crate) unsafe fn set_quick<K: QuickKind>(address: usize, handle: usize) {
    let theirs = match handle {
        _ if handle >= PREDEFINED.len() => handle as i32,
        _ if handle == K::NULL => K::MPICH_NULL,
        _ => predefined::<K>(handle),
    };
    // SAFETY: promised by the caller.
    unsafe { *(address as *mut i32) = theirs };
}

#[inline(never)]
fn predefined<K: QuickKind>(handle: usize) -> i32 {
    K::to_mpich(handle)
}

/// A kind of handle whose predefined handles are found by arithmetic.
pub(crate) trait Predefined: QuickKind {
    /// Returns a number below 2^24 for a predefined handle but the null handle, for other handles a larger one.
    fn distance(handle: i32) -> u32;
    /// Converts a predefined handle.
    fn predefined(handle: i32) -> usize;
}

impl Predefined for Communicator {
    #[inline(always)]
    fn distance(handle: i32) -> u32 {
        const WORLDS: u32 = (mpich::MPI_COMM_WORLD - standard::MPI_COMM_WORLD) as u32;
        (handle as u32).wrapping_sub(WORLDS)
    }

    /// What follows MPI_COMM_SELF is no communicator in either ABI.
    #[inline(always)]
    fn predefined(handle: i32) -> usize {
        Communicator::distance(handle) as usize
    }
}

impl Predefined for Datatype {
    #[inline(always)]
    fn distance(handle: i32) -> u32 {
        handle as u32 ^ 0x4c00_0000
    }

    #[inline(always)]
    fn predefined(handle: i32) -> usize {
        DATATYPES[handle as u8 as usize] as usize
    }
}

impl Predefined for Operation {
    #[inline(always)]
    fn distance(handle: i32) -> u32 {
        handle as u32 ^ 0x5800_0000
    }

    #[inline(always)]
    fn predefined(handle: i32) -> usize {
        OPERATIONS[handle as u8 as usize] as usize
    }
}

/// Returns `Some(standard)` if the handle is `theirs`.
#[inline(always)]
fn if_equal(handle: i32, theirs: i32, ours: i32) -> Option<usize> {
    (handle == theirs).then_some(ours as usize)
}

kind!(Communicator, MPI_COMM_NULL, MPI_Comm_fromint, MPI_Comm_toint, |handle| {
    // MPI_COMM_WORLD and MPI_COMM_SELF follow one another in both ABIs.
    const _: () = assert!(mpich::MPI_COMM_SELF == mpich::MPI_COMM_WORLD + 1);
    const _: () = assert!(standard::MPI_COMM_SELF == standard::MPI_COMM_WORLD + 1);
    let place = handle.wrapping_sub(mpich::MPI_COMM_WORLD) as u32;
    (place < 2).then_some((place + standard::MPI_COMM_WORLD as u32) as usize)
});
kind!(
    Datatype,
    MPI_DATATYPE_NULL,
    MPI_Type_fromint,
    MPI_Type_toint,
    |handle| {
        // Bits 8 to 15 are the size.
        match (handle as u32) >> 16 {
            0x4c00 => Some(DATATYPES[(handle & 0xff) as usize] as usize),
            0x8c00 if (handle as u32 & 0xffff) < 5 => Some(PAIRS[(handle & 7) as usize] as usize),
            _ => None,
        }
    },
    ((handle as u32) >> 24 == 0x4c).then(|| DATATYPES[(handle as u8) as usize] as usize)
);
kind!(Operation, MPI_OP_NULL, MPI_Op_fromint, MPI_Op_toint, |handle| {
    ((handle as u32) >> 4 == 0x0580_0000).then(|| OPERATIONS[(handle & 15) as usize] as usize)
});
kind!(Group, MPI_GROUP_NULL, MPI_Group_fromint, MPI_Group_toint, |handle| {
    if_equal(handle, mpich::MPI_GROUP_EMPTY, standard::MPI_GROUP_EMPTY)
});
kind!(Window, MPI_WIN_NULL, MPI_Win_fromint, MPI_Win_toint, |_handle| None);
kind!(Session, MPI_SESSION_NULL, MPI_Session_fromint, MPI_Session_toint, |_handle| None);
kind!(Message, MPI_MESSAGE_NULL, MPI_Message_fromint, MPI_Message_toint, |handle| {
    if_equal(handle, mpich::MPI_MESSAGE_NO_PROC, standard::MPI_MESSAGE_NO_PROC)
});
kind!(Info, MPI_INFO_NULL, MPI_Info_fromint, MPI_Info_toint, |handle| {
    if_equal(handle, mpich::MPI_INFO_NULL, standard::MPI_INFO_NULL)
        .or_else(|| if_equal(handle, mpich::MPI_INFO_ENV, standard::MPI_INFO_ENV))
});
kind!(Errhandler, MPI_ERRHANDLER_NULL, MPI_Errhandler_fromint, MPI_Errhandler_toint, |handle| {
    match handle {
        mpich::MPI_ERRORS_ARE_FATAL => Some(standard::MPI_ERRORS_ARE_FATAL as usize),
        mpich::MPI_ERRORS_RETURN => Some(standard::MPI_ERRORS_RETURN as usize),
        mpich::MPI_ERRORS_ABORT => Some(standard::MPI_ERRORS_ABORT as usize),
        _ => None,
    }
});
kind!(Request, MPI_REQUEST_NULL, MPI_Request_fromint, MPI_Request_toint, |handle| {
    if_equal(handle, mpich::MPI_REQUEST_NULL, standard::MPI_REQUEST_NULL)
});

/// Handles of files, which are pointers in both ABIs.
pub(crate) struct File;

impl Kind for File {
    type C = usize;
    const NULL: usize = standard::MPI_FILE_NULL as usize;

    #[inline]
    fn to_standard(handle: usize) -> usize {
        if handle == mpich::MPI_FILE_NULL as usize { File::NULL } else { handle }
    }

    #[inline]
    fn to_mpich(handle: usize) -> usize {
        if handle == File::NULL { mpich::MPI_FILE_NULL as usize } else { handle }
    }
}

/// Reads a handle that the program passes by its address.
///
/// # Safety
/// The address is null or that of a handle.
#[inline]
pub(crate) unsafe fn handle_at<K: Kind>(address: usize) -> usize {
    if address == 0 {
        return K::NULL;
    }
    // SAFETY: promised by the caller.
    K::to_standard(unsafe { *(address as *const K::C) })
}

/// Writes a handle to an address of the program.
///
/// # Safety
/// The address is null or valid for a handle.
#[inline]
pub(crate) unsafe fn set_handle<K: Kind>(address: usize, handle: usize) {
    if address != 0 {
        // SAFETY: promised by the caller.
        unsafe { *(address as *mut K::C) = K::to_mpich(handle) };
    }
}

/// Returns the address of a local in place of one of the program, which may be null.
#[inline(always)]
pub(crate) fn address_unless_null<T>(address: usize, own: &mut T) -> usize {
    if address == 0 { 0 } else { own as *mut T as usize }
}

/// An array of the program, converted. Short ones are on the stack.
pub(crate) struct Own<T> {
    short: [MaybeUninit<T>; SHORT],
    long: Vec<T>,
    length: usize,
}

const SHORT: usize = 32;

impl<T: Copy> Own<T> {
    #[inline]
    pub(crate) fn from_fn(length: i64, value: impl Fn(usize) -> T) -> Own<T> {
        let length = usize::try_from(length).unwrap_or(0);
        let mut own = Own { short: [const { MaybeUninit::uninit() }; SHORT], long: Vec::new(), length };
        match length <= SHORT {
            true => own.short[..length].iter_mut().enumerate().for_each(|(index, slot)| {
                slot.write(value(index));
            }),
            false => own.long.extend((0..length).map(value)),
        }
        own
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        if self.length <= SHORT { self.short.as_mut_ptr().cast() } else { self.long.as_mut_ptr() }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        let start = if self.length <= SHORT { self.short.as_ptr().cast() } else { self.long.as_ptr() };
        // SAFETY: that many elements were written in `from_fn`.
        unsafe { std::slice::from_raw_parts(start, self.length) }
    }

    /// Returns the array's address, in place of the program's, which may be null.
    #[inline]
    pub(crate) fn address(&mut self, program: usize) -> usize {
        if program == 0 { 0 } else { self.as_mut_ptr() as usize }
    }
}

/// An array of handles.
pub(crate) struct Handles<K: Kind>(Own<usize>, std::marker::PhantomData<K>);

impl<K: Kind> Handles<K> {
    /// Converts an array of the program.
    ///
    /// # Safety
    /// The address is null or that of so many handles.
    pub(crate) unsafe fn read(address: usize, length: i64) -> Handles<K> {
        let length = if address == 0 { 0 } else { length };
        // SAFETY: promised by the caller.
        let handle = |index| K::to_standard(unsafe { *(address as *const K::C).add(index) });
        Handles(Own::from_fn(length, handle), std::marker::PhantomData)
    }

    /// Makes an array that the library fills.
    pub(crate) fn empty(length: i64) -> Handles<K> {
        Handles(Own::from_fn(length, |_| K::NULL), std::marker::PhantomData)
    }

    pub(crate) fn address(&mut self, program: usize) -> usize {
        self.0.address(program)
    }

    /// Writes the handles, as the library has left them, to the program's array.
    ///
    /// # Safety
    /// The address is null or that of so many handles.
    pub(crate) unsafe fn write(&self, address: usize) {
        if address != 0 {
            for (index, handle) in self.0.as_slice().iter().enumerate() {
                // SAFETY: promised by the caller.
                unsafe { *(address as *mut K::C).add(index) = K::to_mpich(*handle) };
            }
        }
    }
}

impl<K: Kind> Handles<K> {
    /// As [`Handles::write`], of so many handles only.
    ///
    /// # Safety
    /// The address is null or that of so many handles.
    pub(crate) unsafe fn write_first(&self, address: usize, length: usize) {
        for (index, handle) in self.0.as_slice().iter().take(if address == 0 { 0 } else { length }).enumerate() {
            // SAFETY: promised by the caller.
            unsafe { *(address as *mut K::C).add(index) = K::to_mpich(*handle) };
        }
    }
}

/// An array of numbers that the library only reads.
pub(crate) struct Numbers(Own<i32>);

impl Numbers {
    /// Converts an array of the program.
    ///
    /// # Safety
    /// The address is null or that of so many numbers.
    pub(crate) unsafe fn read(address: usize, length: i64, convert: fn(i32) -> i32) -> Numbers {
        let length = if address == 0 { 0 } else { length };
        // SAFETY: promised by the caller.
        Numbers(Own::from_fn(length, |index| convert(unsafe { *(address as *const i32).add(index) })))
    }

    pub(crate) fn address(&self, program: usize) -> usize {
        if program == 0 { 0 } else { self.0.as_slice().as_ptr() as usize }
    }
}

/// Converts an array of the program in place.
///
/// # Safety
/// The address is null or that of so many numbers.
pub(crate) unsafe fn convert_numbers(address: usize, length: i64, convert: fn(i32) -> i32) {
    for index in 0..if address == 0 { 0 } else { usize::try_from(length).unwrap_or(0) } {
        // SAFETY: promised by the caller.
        unsafe { convert_number((address as *mut i32).add(index) as usize, convert) };
    }
}

/// Converts a number of the program in place.
///
/// # Safety
/// The address is null or that of a number.
#[inline]
pub(crate) unsafe fn convert_number(address: usize, convert: fn(i32) -> i32) {
    if address != 0 {
        let number = address as *mut i32;
        // SAFETY: promised by the caller.
        unsafe { *number = convert(*number) };
    }
}

/// Reads and converts a number that the program passes by its address.
///
/// # Safety
/// The address is null or that of a number.
pub(crate) unsafe fn number_at(address: usize, convert: fn(i32) -> i32) -> i32 {
    // SAFETY: promised by the caller.
    if address == 0 { 0 } else { convert(unsafe { *(address as *const i32) }) }
}

/// Writes a number to an address of the program.
///
/// # Safety
/// The address is null or valid for a number.
pub(crate) unsafe fn set_number(address: usize, number: i32) {
    if address != 0 {
        // SAFETY: promised by the caller.
        unsafe { *(address as *mut i32) = number };
    }
}

#[inline(always)]
pub(crate) fn rank_to_standard(rank: i32) -> i32 {
    if rank >= 0 { rank } else { no_process_to_standard(rank) }
}

#[inline(always)]
pub(crate) fn rank_to_mpich(rank: i32) -> i32 {
    if rank >= 0 { rank } else { no_process_to_mpich(rank) }
}

#[inline(always)]
pub(crate) fn tag_to_standard(tag: i32) -> i32 {
    if tag == mpich::MPI_ANY_TAG { standard::MPI_ANY_TAG } else { tag }
}

#[inline(always)]
pub(crate) fn tag_to_mpich(tag: i32) -> i32 {
    if tag == standard::MPI_ANY_TAG { mpich::MPI_ANY_TAG } else { tag }
}

/// Converts the address of a buffer. `MPI_BOTTOM` is the same in both ABIs; the others are the negated numbers.
#[inline(always)]
pub(crate) fn buffer_to_standard(buffer: usize) -> usize {
    const _: () = assert!(mpich::MPI_BOTTOM == standard::MPI_BOTTOM);
    const _: () = assert!(mpich::MPI_IN_PLACE == -standard::MPI_IN_PLACE);
    const _: () = assert!(mpich::MPI_BUFFER_AUTOMATIC == -standard::MPI_BUFFER_AUTOMATIC);
    if (buffer as isize) < 0 { buffer.wrapping_neg() } else { buffer }
}

/// Returns the address of an array that is not significant beside a buffer `MPI_IN_PLACE`.
#[inline]
pub(crate) fn unless_in_place(buffer: usize, array: usize) -> usize {
    if buffer as isize == mpich::MPI_IN_PLACE as isize { 0 } else { array }
}

pub(crate) fn displacement_to_standard(displacement: i64) -> i64 {
    match displacement == i64::from(mpich::MPI_DISPLACEMENT_CURRENT) {
        true => i64::from(standard::MPI_DISPLACEMENT_CURRENT),
        false => displacement,
    }
}

/// Numbers of error codes from here on are not predefined classes.
const FIRST_CODE: i32 = standard::MPI_ERR_LASTCODE + 1;
/// Bit that distinguishes classes and codes of the program in MPICH, so that they exceed its `MPI_ERR_LASTCODE`.
const DYNAMIC: i32 = 1 << 30;
const _: () = assert!(mpich::MPI_ERR_LASTCODE == DYNAMIC - 1);

/// Exchanges the halves of the numbers from `FIRST_CODE` on; the inverse of itself.
fn exchange(code: i32) -> i32 {
    if code & (DYNAMIC - 1) >= FIRST_CODE { code ^ DYNAMIC } else { code }
}

/// Converts an error class or code of the library.
#[cold]
pub(crate) fn error_code_to_mpich(code: i32) -> i32 {
    let class = match code {
        standard::MPI_ERR_LASTCODE => return mpich::MPI_ERR_LASTCODE,
        0..128 => CLASSES[code as usize],
        1000..1032 => CLASSES_OF_TOOLS[(code - 1000) as usize],
        _ => -1,
    };
    if class >= 0 { class } else { exchange(code) }
}

/// Converts an error class or code of the program.
#[cold]
pub(crate) fn error_code_to_standard(code: i32) -> i32 {
    let class = match code {
        mpich::MPI_ERR_LASTCODE => return standard::MPI_ERR_LASTCODE,
        0..128 => CLASSES_FROM_MPICH[code as usize],
        _ => -1,
    };
    if class >= 0 { class } else { exchange(code) }
}

/// Returns the code of a call to the program.
#[inline(always)]
pub(crate) fn result(code: i32) -> i32 {
    if code != 0 { error_code_to_mpich(code) } else { as_it_is(code) }
}

/// Returns the number. The compiler does not see that it is always 0 here: it would load a zero instead.
#[inline(always)]
fn as_it_is(code: i32) -> i32 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut same = code;
        // SAFETY: there is no instruction.
        unsafe { std::arch::asm!("", inout("eax") same, options(pure, nomem, nostack, preserves_flags)) };
        same
    }
    #[cfg(not(target_arch = "x86_64"))]
    code
}

/// Lengths of arrays that depend on the communicator.
pub(crate) mod sizes {
    use crate::standard::{abi, standard_value as standard};

    fn ask(function: unsafe fn(usize, usize) -> i32, comm: usize) -> i64 {
        let mut answer = 0i32;
        // SAFETY: the library checks the communicator.
        let code = unsafe { function(comm, &raw mut answer as usize) };
        if code == 0 { i64::from(answer) } else { 0 }
    }

    /// Processes in the group, of an intercommunicator in the remote one.
    pub(crate) fn group_size(comm: usize) -> i64 {
        match ask(abi::MPI_Comm_test_inter, comm) {
            0 => ask(abi::MPI_Comm_size, comm),
            _ => ask(abi::MPI_Comm_remote_size, comm),
        }
    }

    /// Sources and destinations in the topology.
    fn degrees(comm: usize) -> (i64, i64) {
        let (mut sources, mut destinations, mut weighted, mut rank) = (0i32, 0i32, 0i32, 0i32);
        // SAFETY: the library checks the communicator; the addresses are those of locals.
        unsafe {
            match ask(abi::MPI_Topo_test, comm) as i32 {
                standard::MPI_CART => {
                    let both = 2 * ask(abi::MPI_Cartdim_get, comm);
                    (both, both)
                }
                standard::MPI_GRAPH => {
                    abi::MPI_Comm_rank(comm, &raw mut rank as usize);
                    abi::MPI_Graph_neighbors_count(comm, rank, &raw mut sources as usize);
                    (i64::from(sources), i64::from(sources))
                }
                standard::MPI_DIST_GRAPH => {
                    let (sources_at, destinations_at) = (&raw mut sources as usize, &raw mut destinations as usize);
                    abi::MPI_Dist_graph_neighbors_count(comm, sources_at, destinations_at, &raw mut weighted as usize);
                    (i64::from(sources), i64::from(destinations))
                }
                _ => (0, 0),
            }
        }
    }

    /// The calling process's sources.
    pub(crate) fn indegree(comm: usize) -> i64 {
        degrees(comm).0
    }

    /// The calling process's destinations.
    pub(crate) fn outdegree(comm: usize) -> i64 {
        degrees(comm).1
    }
}
