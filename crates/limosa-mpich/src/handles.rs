//! Conversions of handles, addresses of buffers and error codes between MPICH's ABI and the standard ABI.
//!
//! Handles of MPICH are integers, but for files, which are pointers in both ABIs. Predefined handles are found by
//! arithmetic and small tables. All others are converted by the library: `MPI_Comm_fromint`, `MPI_Comm_toint`, and so
//! on. Their integers must differ from MPICH's predefined handles of the same kind; those of Limosa, MPICH, Intel MPI
//! and Open MPI do.

use crate::kind::Kind;
use crate::library::has_plain_handles;
use crate::standard::{DATATYPES, OPERATIONS, PAIRS, PREDEFINED};
use crate::standard::{abi, standard_value as standard, their_value as theirs};

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
                    None if $handle == theirs::$null => standard::$null as usize,
                    // SAFETY: may be called at any time with any number.
                    None => unsafe { abi::$fromint($handle) },
                }
            }

            #[inline]
            fn to_theirs(handle: usize) -> i32 {
                match PREDEFINED.get(handle) {
                    _ if handle == standard::$null as usize => theirs::$null,
                    Some(&predefined) if predefined != 0 => predefined,
                    // SAFETY: may be called at any time with a handle of the library.
                    _ => unsafe { abi::$toint(handle) },
                }
            }
        }

        impl QuickKind for $kind {
            const MPICH_NULL: i32 = theirs::$null;

            #[inline(always)]
            fn quick($handle: i32) -> Option<usize> {
                match $frequent {
                    Some(handle) => Some(handle),
                    // The sign bit is set in some of MPICH's predefined handles, in none of a library like this.
                    None if has_plain_handles() && $handle != theirs::$null && $handle > 0 => {
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
    K::to_theirs(handle)
}

/// Returns whether all handles with these distances, combined by `|`, are predefined.
#[inline(always)]
pub(crate) fn are_predefined(distances: u32) -> bool {
    distances >> 24 == 0
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
        const WORLDS: u32 = (theirs::MPI_COMM_WORLD - standard::MPI_COMM_WORLD) as u32;
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
    const _: () = assert!(theirs::MPI_COMM_SELF == theirs::MPI_COMM_WORLD + 1);
    const _: () = assert!(standard::MPI_COMM_SELF == standard::MPI_COMM_WORLD + 1);
    let place = handle.wrapping_sub(theirs::MPI_COMM_WORLD) as u32;
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
    if_equal(handle, theirs::MPI_GROUP_EMPTY, standard::MPI_GROUP_EMPTY)
});
kind!(Window, MPI_WIN_NULL, MPI_Win_fromint, MPI_Win_toint, |_handle| None);
kind!(Session, MPI_SESSION_NULL, MPI_Session_fromint, MPI_Session_toint, |_handle| None);
kind!(Message, MPI_MESSAGE_NULL, MPI_Message_fromint, MPI_Message_toint, |handle| {
    if_equal(handle, theirs::MPI_MESSAGE_NO_PROC, standard::MPI_MESSAGE_NO_PROC)
});
kind!(Info, MPI_INFO_NULL, MPI_Info_fromint, MPI_Info_toint, |handle| {
    if_equal(handle, theirs::MPI_INFO_NULL, standard::MPI_INFO_NULL)
        .or_else(|| if_equal(handle, theirs::MPI_INFO_ENV, standard::MPI_INFO_ENV))
});
kind!(Errhandler, MPI_ERRHANDLER_NULL, MPI_Errhandler_fromint, MPI_Errhandler_toint, |handle| {
    match handle {
        theirs::MPI_ERRORS_ARE_FATAL => Some(standard::MPI_ERRORS_ARE_FATAL as usize),
        theirs::MPI_ERRORS_RETURN => Some(standard::MPI_ERRORS_RETURN as usize),
        theirs::MPI_ERRORS_ABORT => Some(standard::MPI_ERRORS_ABORT as usize),
        _ => None,
    }
});
kind!(Request, MPI_REQUEST_NULL, MPI_Request_fromint, MPI_Request_toint, |handle| {
    if_equal(handle, theirs::MPI_REQUEST_NULL, standard::MPI_REQUEST_NULL)
});

/// Handles of files, which are pointers in both ABIs.
pub(crate) struct File;

impl Kind for File {
    type C = usize;
    const NULL: usize = standard::MPI_FILE_NULL as usize;

    #[inline]
    fn to_standard(handle: usize) -> usize {
        if handle == theirs::MPI_FILE_NULL as usize { File::NULL } else { handle }
    }

    #[inline]
    fn to_theirs(handle: usize) -> usize {
        if handle == File::NULL { theirs::MPI_FILE_NULL as usize } else { handle }
    }
}

/// Converts the address of a buffer. `MPI_BOTTOM` is the same in both ABIs; the others are the negated numbers.
#[inline(always)]
pub(crate) fn buffer_to_standard(buffer: usize) -> usize {
    const _: () = assert!(theirs::MPI_BOTTOM == standard::MPI_BOTTOM);
    const _: () = assert!(theirs::MPI_IN_PLACE == -standard::MPI_IN_PLACE);
    const _: () = assert!(theirs::MPI_BUFFER_AUTOMATIC == -standard::MPI_BUFFER_AUTOMATIC);
    if (buffer as isize) < 0 { buffer.wrapping_neg() } else { buffer }
}

/// Returns whether the address of a buffer is the same in both ABIs.
#[inline(always)]
pub(crate) fn is_plain_buffer(buffer: usize) -> bool {
    buffer as isize >= 0
}

/// Converts the address of a buffer of the library.
pub(crate) fn buffer_to_theirs(buffer: usize) -> usize {
    if buffer <= standard::MPI_BUFFER_AUTOMATIC as usize { buffer.wrapping_neg() } else { buffer }
}

/// Converts the address of weights, which the program reads from variables with the addresses of the standard ABI.
#[inline(always)]
pub(crate) fn weights_to_standard(weights: usize) -> usize {
    weights
}

/// Numbers of error codes from here on are not predefined classes.
const FIRST_CODE: i32 = standard::MPI_ERR_LASTCODE + 1;
/// Bit that distinguishes classes and codes of the program in MPICH, so that they exceed its `MPI_ERR_LASTCODE`.
const DYNAMIC: i32 = 1 << 30;
const _: () = assert!(theirs::MPI_ERR_LASTCODE == DYNAMIC - 1);

/// Exchanges the halves of the numbers from `FIRST_CODE` on; the inverse of itself.
pub(crate) fn exchange(code: i32) -> i32 {
    if code & (DYNAMIC - 1) >= FIRST_CODE { code ^ DYNAMIC } else { code }
}

/// The datatype `MPI_LB`, which the standard no longer has.
pub(crate) fn lower_bound() -> i32 {
    theirs::MPI_LB
}

/// The datatype `MPI_UB`, likewise.
pub(crate) fn upper_bound() -> i32 {
    theirs::MPI_UB
}
