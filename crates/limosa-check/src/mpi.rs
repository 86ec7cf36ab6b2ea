//! The functions of the MPI library that the checker itself calls, with their types, and values of the ABI; and whether
//! a thread is inside of a call.

use std::cell::Cell;

use limosa_interpose::next::Next;

pub(crate) const SUCCESS: i32 = 0;
pub(crate) const ANY_SOURCE: i32 = -1;
pub(crate) const COMM_WORLD: usize = 0x101;
pub(crate) const COMM_SELF: usize = 0x102;
pub(crate) const COMM_NULL: usize = 0x100;
pub(crate) const REQUEST_NULL: usize = 0x180;
pub(crate) const MESSAGE_NULL: usize = 0x128;
pub(crate) const MESSAGE_NO_PROC: usize = 0x129;
const INT: usize = 0x209;
pub(crate) const INT64: usize = 0x258;
pub(crate) const BYTE: usize = 0x247;
const ERRORS_ARE_FATAL: usize = 0x141;
const ERRORS_ABORT: usize = 0x142;
const ERRORS_RETURN: usize = 0x143;

/// Bytes of `MPI_Status`; its first two words are source and tag.
pub(crate) const STATUS: usize = 32;

macro_rules! library {
    ($(fn $name:ident = $symbol:literal($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the standard says of the function.
        #[cfg_attr(test, allow(dead_code, reason = "unit tests have no library"))]
        pub(crate) unsafe fn $name($($arg: $type),*) -> i32 {
            static NEXT: Next = Next::new($symbol);
            // SAFETY: this is the function's type in the standard, with handles as words.
            let function: unsafe extern "C" fn($($type),*) -> i32 = unsafe { std::mem::transmute(NEXT.address()) };
            // SAFETY: see this function's contract.
            unsafe { function($($arg),*) }
        }
    )*};
}

library! {
    fn comm_rank = c"PMPI_Comm_rank"(comm: usize, rank: *mut i32);
    fn comm_size = c"PMPI_Comm_size"(comm: usize, size: *mut i32);
    fn comm_remote_size = c"PMPI_Comm_remote_size"(comm: usize, size: *mut i32);
    fn comm_test_inter = c"PMPI_Comm_test_inter"(comm: usize, flag: *mut i32);
    fn comm_split = c"PMPI_Comm_split"(comm: usize, color: i32, key: i32, new: *mut usize);
    fn comm_free = c"PMPI_Comm_free"(comm: *mut usize);
    fn comm_get_name = c"PMPI_Comm_get_name"(comm: usize, name: *mut u8, length: *mut i32);
    fn comm_set_errhandler = c"PMPI_Comm_set_errhandler"(comm: usize, handler: usize);
    fn comm_call_errhandler = c"PMPI_Comm_call_errhandler"(comm: usize, code: i32);
    fn comm_get_errhandler = c"PMPI_Comm_get_errhandler"(comm: usize, handler: *mut usize);
    fn errhandler_free = c"PMPI_Errhandler_free"(handler: *mut usize);
    fn abort = c"PMPI_Abort"(comm: usize, code: i32);
    fn barrier = c"PMPI_Barrier"(comm: usize);
    fn iallgather = c"PMPI_Iallgather"(
        from: *const i64, count: i32, of: usize, to: *mut i64, each: i32, as_: usize, comm: usize, request: *mut usize
    );
    fn alltoall = c"PMPI_Alltoall"(
        from: *const i32, count: i32, of: usize, to: *mut i32, each: i32, as_: usize, comm: usize
    );
    fn alltoallv = c"PMPI_Alltoallv"(
        from: *const u8, counts: *const i32, places: *const i32, of: usize,
        to: *mut u8, each: *const i32, at: *const i32, as_: usize, comm: usize
    );
    fn wait = c"PMPI_Wait"(request: *mut usize, status: usize);
    fn test = c"PMPI_Test"(request: *mut usize, flag: *mut i32, status: usize);
    fn test_cancelled = c"PMPI_Test_cancelled"(status: usize, flag: *mut i32);
    fn type_size = c"PMPI_Type_size_c"(datatype: usize, size: *mut i64);
    fn type_get_envelope = c"PMPI_Type_get_envelope"(
        datatype: usize, integers: *mut i32, addresses: *mut i32, types: *mut i32, combiner: *mut i32
    );
    fn type_get_contents = c"PMPI_Type_get_contents"(
        datatype: usize, integers: i32, addresses: i32, types: i32, i: *mut i32, a: *mut i64, d: *mut usize
    );
    fn type_free = c"PMPI_Type_free"(datatype: *mut usize);
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is in a call of MPI.
pub(crate) fn is_nested() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// Calls the library.
pub(crate) fn nested<T>(next: impl FnOnce() -> T) -> T {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let result = next();
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    result
}

/// Returns the handle at an address, 0 for the null address.
///
/// # Safety
/// There is a handle, or the address is null.
pub(crate) unsafe fn handle(address: usize) -> usize {
    // SAFETY: see this function's contract.
    if address == 0 { 0 } else { unsafe { *(address as *const usize) } }
}

/// A number that a function of the form `MPI_Comm_size` gives; 0 if it fails.
pub(crate) fn number(function: unsafe fn(usize, *mut i32) -> i32, comm: usize) -> i32 {
    let mut value = 0;
    // SAFETY: the communicator is one that the library has made; the value is ours.
    if unsafe { function(comm, &mut value) } == SUCCESS { value } else { 0 }
}

/// The name of a communicator, if it has one.
pub(crate) fn name(comm: usize) -> String {
    let (mut text, mut length) = ([0u8; 512], 0);
    // SAFETY: the text has room for the longest name of the ABI.
    let code = unsafe { comm_get_name(comm, text.as_mut_ptr(), &mut length) };
    let length = if code == SUCCESS { usize::try_from(length).unwrap_or(0).min(text.len()) } else { 0 };
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// The same in unit tests, which have no library, for the types that they name.
#[cfg(test)]
pub(crate) fn size_of_type(datatype: usize) -> u64 {
    let name = crate::names::DATATYPES.iter().find(|(_, handle)| *handle == datatype).map_or("", |(name, _)| name);
    match name {
        "MPI_CHAR" => 1,
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_FLOAT" => 4,
        "MPI_LONG" | "MPI_UNSIGNED_LONG" | "MPI_DOUBLE" => 8,
        _ => 0,
    }
}

/// Bytes of an element; 0 if that is not known.
#[cfg(not(test))]
pub(crate) fn size_of_type(datatype: usize) -> u64 {
    const DATATYPE_NULL: usize = 0x200;
    let mut size = 0;
    if datatype == DATATYPE_NULL {
        return 0; // which programs pass with MPI_PROC_NULL
    }
    // SAFETY: the datatype is one that the program has passed, which the library looks at; the size is ours.
    let code = unsafe { type_size(datatype, &mut size) };
    if code == SUCCESS { u64::try_from(size).unwrap_or(0) } else { 0 }
}

/// A communicator of the same members for the checker's own messages, which fails without a word; made by all members
/// together.
pub(crate) fn shadow_of(comm: usize) -> Option<usize> {
    let mut shadow = COMM_NULL;
    // SAFETY: the communicator exists, and all its members are here.
    let code = unsafe { comm_split(comm, 0, number(comm_rank, comm), &mut shadow) };
    if code != SUCCESS || shadow == COMM_NULL {
        return None;
    }
    // SAFETY: the communicator was just made.
    unsafe { comm_set_errhandler(shadow, ERRORS_RETURN) };
    Some(shadow)
}

/// Frees a shadow, with all its members.
pub(crate) fn free(mut shadow: usize) {
    // SAFETY: all members free the communicator that it belongs to, and nothing else uses it.
    unsafe { comm_free(&mut shadow) };
}

/// Does what the error handler of a communicator would do. Errors of ours are classes of the ABI, which not every
/// library knows in a place where its own codes are expected.
pub(crate) fn raise(comm: usize, class: i32) {
    let mut handler = ERRORS_RETURN;
    // SAFETY: the communicator is the program's, which has passed it to the call that is wrong.
    unsafe { comm_get_errhandler(comm, &mut handler) };
    match handler {
        ERRORS_ARE_FATAL | ERRORS_ABORT => {
            // SAFETY: as above.
            unsafe { abort(comm, class) };
        }
        ERRORS_RETURN => {}
        // SAFETY: as above; the handle is a new reference.
        _ => unsafe {
            comm_call_errhandler(comm, class);
            errhandler_free(&mut handler);
        },
    }
}

/// Gives each member of a communicator some bytes, and takes those that each gives; none where that fails.
pub(crate) fn exchange(comm: usize, to_each: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let lengths: Option<Vec<i32>> = to_each.iter().map(|bytes| i32::try_from(bytes.len()).ok()).collect();
    let given = lengths.unwrap_or_else(|| vec![0; to_each.len()]);
    let mut taken = vec![0; given.len()];
    // SAFETY: both arrays have a number for each member, and all members call this.
    if unsafe { alltoall(given.as_ptr(), 1, INT, taken.as_mut_ptr(), 1, INT, comm) } != SUCCESS {
        return None;
    }
    // One byte more than needed: the address of nothing may be that of MPI_IN_PLACE.
    let bytes = to_each.iter().zip(&given).flat_map(|(bytes, n)| &bytes[..*n as usize]);
    let from: Vec<u8> = bytes.copied().chain([0]).collect();
    let (places, at) = (places(&given)?, places(&taken)?);
    let mut to = vec![0; taken.iter().map(|n| *n as usize).sum::<usize>() + 1];
    // SAFETY: the arrays describe the two buffers, and agree with those of the other members.
    let code = unsafe {
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        alltoallv(from, given.as_ptr(), places.as_ptr(), BYTE, to, taken.as_ptr(), at.as_ptr(), BYTE, comm)
    };
    let part = |(start, length): (&i32, &i32)| to[*start as usize..(*start + *length) as usize].to_vec();
    (code == SUCCESS).then(|| at.iter().zip(&taken).map(part).collect())
}

/// Where each part begins; none if they do not fit behind each other.
fn places(lengths: &[i32]) -> Option<Vec<i32>> {
    let mut end = 0i32;
    let begin = |length: &i32| {
        let begin = end;
        end = end.checked_add(*length)?;
        Some(begin)
    };
    lengths.iter().map(begin).collect()
}
