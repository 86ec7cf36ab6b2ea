//! Conversions of numbers, of arrays, and of what the program passes by its address. Those of handles, addresses of
//! buffers and error codes are in [`crate::handles`].

use std::mem::MaybeUninit;

pub(crate) use crate::handles::*;
pub(crate) use crate::kind::{Handle, Kind};
use crate::standard::{CLASSES, CLASSES_FROM_THEIRS, CLASSES_OF_TOOLS, no_process_to_standard, no_process_to_theirs};
use crate::standard::{standard_value as standard, their_value as theirs};

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
        unsafe { *(address as *mut K::C) = K::to_theirs(handle) };
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
                unsafe { *(address as *mut K::C).add(index) = K::to_theirs(*handle) };
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
            unsafe { *(address as *mut K::C).add(index) = K::to_theirs(*handle) };
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
pub(crate) fn rank_to_theirs(rank: i32) -> i32 {
    if rank >= 0 { rank } else { no_process_to_theirs(rank) }
}

#[inline(always)]
pub(crate) fn tag_to_standard(tag: i32) -> i32 {
    if tag == theirs::MPI_ANY_TAG { standard::MPI_ANY_TAG } else { tag }
}

#[inline(always)]
pub(crate) fn tag_to_theirs(tag: i32) -> i32 {
    if tag == standard::MPI_ANY_TAG { theirs::MPI_ANY_TAG } else { tag }
}

/// Returns the address of an array that is not significant beside a buffer `MPI_IN_PLACE`.
#[inline]
pub(crate) fn unless_in_place(buffer: usize, array: usize) -> usize {
    if buffer_to_standard(buffer) == standard::MPI_IN_PLACE as usize { 0 } else { array }
}

pub(crate) fn displacement_to_standard(displacement: i64) -> i64 {
    match displacement == i64::from(theirs::MPI_DISPLACEMENT_CURRENT) {
        true => i64::from(standard::MPI_DISPLACEMENT_CURRENT),
        false => displacement,
    }
}

/// Converts an error class or code of the library.
#[cold]
pub(crate) fn error_code_to_theirs(code: i32) -> i32 {
    let class = match code {
        standard::MPI_ERR_LASTCODE => return theirs::MPI_ERR_LASTCODE,
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
        theirs::MPI_ERR_LASTCODE => return standard::MPI_ERR_LASTCODE,
        0..128 => CLASSES_FROM_THEIRS[code as usize],
        _ => -1,
    };
    if class >= 0 { class } else { exchange(code) }
}

/// Returns the code of a call to the program.
#[inline(always)]
pub(crate) fn result(code: i32) -> i32 {
    if code != 0 { error_code_to_theirs(code) } else { as_it_is(code) }
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
