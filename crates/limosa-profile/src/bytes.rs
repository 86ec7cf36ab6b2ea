//! Data volume of a call: sizes of datatypes and groups, and contents of a status. Only local functions are called,
//! with handles that the library has just accepted.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use limosa_interpose::next::{Next, PREDEFINED, ask};

/// Returns the bytes of a buffer of `count` elements; 0 if it is not `present`.
#[inline]
pub(crate) fn bytes_of(present: bool, count: i64, datatype: usize) -> u64 {
    if !present || count <= 0 { 0 } else { count as u64 * size_of_type(datatype) }
}

/// Returns the bytes of a buffer with one block for each process of a communicator. `counts` is the address of an array
/// of 64-bit integers if `wide`, else of 32-bit ones.
pub(crate) fn bytes_of_blocks(present: bool, counts: usize, wide: bool, datatype: usize, comm: usize) -> u64 {
    if !present || counts == 0 {
        return 0;
    }
    let blocks = group_size(comm);
    // SAFETY: the library has accepted the call, so there is a count for each process of the group.
    let count = |at: usize| unsafe {
        if wide { *(counts as *const i64).add(at) } else { i64::from(*(counts as *const i32).add(at)) }
    };
    bytes_of(true, (0..blocks).map(count).sum(), datatype)
}

fn size_of_type(datatype: usize) -> u64 {
    // Cache of the sizes of predefined datatypes, which do not change. 1 is added: 0 means unknown.
    static SIZES: [AtomicU32; PREDEFINED] = [const { AtomicU32::new(0) }; PREDEFINED];
    match SIZES.get(datatype).map(|size| size.load(Relaxed)) {
        Some(size) if size > 0 => return u64::from(size - 1),
        _ => {}
    }
    static TYPE_SIZE: Next = Next::new(c"PMPI_Type_size_c");
    let mut size = 0i64;
    // SAFETY: this is the function's type; the size is written to our variable.
    let type_size: unsafe extern "C" fn(usize, *mut i64) -> i32 = unsafe { std::mem::transmute(TYPE_SIZE.address()) };
    // SAFETY: the library has accepted the datatype in the recorded call.
    if unsafe { type_size(datatype, &mut size) } != 0 || size < 0 {
        return 0;
    }
    if let (Some(known), Ok(size)) = (SIZES.get(datatype), u32::try_from(size)) {
        known.store(size + 1, Relaxed);
    }
    size as u64
}

/// A status for calls whose status the program ignores.
#[repr(C, align(8))]
pub(crate) struct OwnStatus([u8; STATUS]);

/// Bytes of `MPI_Status` in the ABI.
const STATUS: usize = 32;
/// `MPI_BYTE` in the ABI.
const BYTE: usize = 0x247;

impl OwnStatus {
    pub(crate) fn new() -> OwnStatus {
        OwnStatus([0; STATUS])
    }
}

/// Status of a receiving call: the program's, or our own in place of `MPI_STATUS_IGNORE`.
pub(crate) struct Received<'a>(pub usize, pub &'a mut OwnStatus);

impl Received<'_> {
    /// Returns the address that is passed to the library.
    #[inline]
    pub(crate) fn status(&self) -> usize {
        if self.0 == 0 { std::ptr::from_ref(&*self.1) as usize } else { self.0 }
    }

    /// Returns the source of a message, as a rank of the communicator's group. The call must have succeeded.
    #[inline]
    pub(crate) fn source(&self) -> i32 {
        self.word(0)
    }

    /// Returns the tag of the message. The call must have succeeded.
    #[inline]
    pub(crate) fn tag(&self) -> i32 {
        self.word(1)
    }

    /// Returns one of the integers at the start of a status in the ABI.
    fn word(&self, at: usize) -> i32 {
        // SAFETY: the library has just written the status, which has eight integers.
        unsafe { *(self.status() as *const i32).add(at) }
    }

    /// Returns the bytes received. The call must have succeeded.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        static GET_COUNT: Next = Next::new(c"PMPI_Get_count_c");
        // SAFETY: this is the type of MPI_Get_count_c.
        let get_count: unsafe extern "C" fn(usize, usize, *mut i64) -> i32 =
            unsafe { std::mem::transmute(GET_COUNT.address()) };
        let mut count = 0;
        // SAFETY: the library has just written the status.
        let code = unsafe { get_count(self.status(), BYTE, &mut count) };
        if code == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
    }
}

/// Returns the number of processes whose blocks a collective call has: for an intercommunicator, the remote ones.
fn group_size(comm: usize) -> usize {
    static TEST_INTER: Next = Next::new(c"PMPI_Comm_test_inter");
    static SIZE: Next = Next::new(c"PMPI_Comm_size");
    static REMOTE_SIZE: Next = Next::new(c"PMPI_Comm_remote_size");
    let is_inter = ask(&TEST_INTER, comm).unwrap_or(0) != 0;
    ask(if is_inter { &REMOTE_SIZE } else { &SIZE }, comm).unwrap_or(0) as usize
}
