//! Conversions of handles, addresses of buffers and error codes between Open MPI's ABI and the standard ABI.
//!
//! A handle of Open MPI is an address. That of a predefined object is the address of a variable ([`Object`]), in this
//! library or copied into the program, whose first word holds the standard ABI's handle. Other handles only pass
//! through the program: they are those of the library with [`OWN`] inverted, which no address of a variable has.

use std::marker::PhantomData;

use crate::kind::Kind;
use crate::standard::{OBJECTS, ompi_mpi_lb, ompi_mpi_ub};
use crate::standard::{standard_value as standard, their_value as theirs};

/// A variable behind a predefined handle; with its first word it is as large as Open MPI's.
#[repr(C, align(16))]
#[allow(missing_docs)]
pub struct Object<const REST: usize> {
    standard: usize,
    rest: [u8; REST],
}

impl<const REST: usize> Object<REST> {
    pub(crate) const fn new(standard: usize) -> Self {
        Object { standard, rest: [0; REST] }
    }
}

/// Address of a variable, or none. Where the program has a copy of the variable, it is that of the copy.
#[repr(transparent)]
pub(crate) struct Address(*const u8);

// SAFETY: the variables are only read.
unsafe impl Sync for Address {}

impl Address {
    pub(crate) const NONE: Address = Address(std::ptr::null());

    pub(crate) const fn of<T>(variable: *const T) -> Address {
        Address(variable.cast())
    }
}

/// Bit that distinguishes handles of the library from addresses. Addresses of programs have none of the bits from this
/// one on; handles of libraries are small, negative, or addresses.
const OWN: usize = 1 << 62;

/// Returns a number below [`OWN`] if the handle is an address.
#[inline(always)]
fn distance(handle: usize) -> usize {
    handle.wrapping_sub(1)
}

#[inline(always)]
fn to_standard(handle: usize) -> usize {
    if are_predefined(distance(handle)) { predefined(handle) } else { handle ^ OWN }
}

#[inline(always)]
fn predefined(handle: usize) -> usize {
    // SAFETY: by the caller's promise, a handle that is neither null nor one of the library is the address of a
    // predefined object.
    unsafe { *(handle as *const usize) }
}

#[inline(always)]
fn to_theirs(handle: usize) -> usize {
    match OBJECTS.get(handle) {
        Some(object) if !object.0.is_null() => object.0 as usize,
        _ => handle ^ OWN,
    }
}

/// A kind of handle, named by its null handle in the standard ABI.
pub(crate) struct OfKind<const NULL: i32>(PhantomData<()>);

impl<const NULL: i32> Kind for OfKind<NULL> {
    type C = usize;
    const NULL: usize = NULL as usize;

    #[inline(always)]
    fn to_standard(handle: usize) -> usize {
        to_standard(handle)
    }

    #[inline(always)]
    fn to_theirs(handle: usize) -> usize {
        to_theirs(handle)
    }
}

impl<const NULL: i32> OfKind<NULL> {
    /// Converts a handle of the program. Never fails: no function of the library is needed.
    #[inline(always)]
    pub(crate) fn quick(handle: usize) -> Option<usize> {
        Some(to_standard(handle))
    }

    /// Returns a number for [`are_predefined`].
    #[inline(always)]
    pub(crate) fn distance(handle: usize) -> usize {
        distance(handle)
    }

    /// Converts a predefined handle.
    #[inline(always)]
    pub(crate) fn predefined(handle: usize) -> usize {
        predefined(handle)
    }
}

pub(crate) type Communicator = OfKind<{ standard::MPI_COMM_NULL }>;
pub(crate) type Datatype = OfKind<{ standard::MPI_DATATYPE_NULL }>;
pub(crate) type Operation = OfKind<{ standard::MPI_OP_NULL }>;
pub(crate) type Group = OfKind<{ standard::MPI_GROUP_NULL }>;
pub(crate) type Window = OfKind<{ standard::MPI_WIN_NULL }>;
pub(crate) type Session = OfKind<{ standard::MPI_SESSION_NULL }>;
pub(crate) type Message = OfKind<{ standard::MPI_MESSAGE_NULL }>;
pub(crate) type Info = OfKind<{ standard::MPI_INFO_NULL }>;
pub(crate) type Errhandler = OfKind<{ standard::MPI_ERRHANDLER_NULL }>;
pub(crate) type Request = OfKind<{ standard::MPI_REQUEST_NULL }>;
pub(crate) type File = OfKind<{ standard::MPI_FILE_NULL }>;

/// Returns whether all handles with these distances, combined by `|`, are addresses of objects.
#[inline(always)]
pub(crate) fn are_predefined(distances: usize) -> bool {
    distances < OWN
}

/// Returns whether a call with a handle behind this address may go the quick way.
#[inline(always)]
pub(crate) fn is_quick(address: usize) -> bool {
    address != 0
}

/// Writes a handle of the library to an address of the program.
///
/// # Safety
/// The address is valid for a handle.
#[inline(always)]
pub(crate) unsafe fn set_quick<K: Kind<C = usize>>(address: usize, handle: usize) {
    // SAFETY: promised by the caller.
    unsafe { *(address as *mut usize) = K::to_theirs(handle) };
}

/// The addresses that stand for something else than a buffer are the same in both ABIs.
#[inline(always)]
pub(crate) fn buffer_to_standard(buffer: usize) -> usize {
    const _: () = assert!(theirs::MPI_BOTTOM == standard::MPI_BOTTOM);
    const _: () = assert!(theirs::MPI_IN_PLACE == standard::MPI_IN_PLACE);
    buffer
}

#[inline(always)]
pub(crate) fn is_plain_buffer(_buffer: usize) -> bool {
    true
}

pub(crate) fn buffer_to_theirs(buffer: usize) -> usize {
    buffer
}

/// Converts the address of weights.
pub(crate) fn weights_to_standard(weights: usize) -> usize {
    const UNWEIGHTED: usize = theirs::MPI_UNWEIGHTED as usize;
    const EMPTY: usize = theirs::MPI_WEIGHTS_EMPTY as usize;
    match weights {
        UNWEIGHTED => standard::MPI_UNWEIGHTED as usize,
        EMPTY => standard::MPI_WEIGHTS_EMPTY as usize,
        _ => weights,
    }
}

/// Numbers of error codes from here on are not predefined classes.
const FIRST_CODE: i32 = standard::MPI_ERR_LASTCODE + 1;
/// Bit of classes of the standard that Open MPI does not have.
const UNKNOWN: i32 = 1 << 30;
const _: () = assert!(theirs::MPI_ERR_LASTCODE < FIRST_CODE);

/// Exchanges the numbers below `FIRST_CODE`, of which Open MPI has given its own meaning to some, with others; the
/// inverse of itself.
pub(crate) fn exchange(code: i32) -> i32 {
    if code & (UNKNOWN - 1) < FIRST_CODE { code ^ UNKNOWN } else { code }
}

/// The datatype `MPI_LB`, which the standard no longer has.
pub(crate) fn lower_bound() -> usize {
    &raw const ompi_mpi_lb as usize
}

/// The datatype `MPI_UB`, likewise.
pub(crate) fn upper_bound() -> usize {
    &raw const ompi_mpi_ub as usize
}
