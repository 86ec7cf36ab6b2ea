//! Requests and messages that a call has started or completed: each is a part of the call where events are recorded.
//! Otherwise they are ignored.
//!
//! A call that completes a request sets its handle to null, and the source of a message may be known from its status
//! alone. The handles are therefore read before the call, and the library gets our own statuses if the program passes
//! none.

use limosa_interpose::next::Next;

use crate::bytes::OwnStatus;
use crate::record::{self, CANCELLED, CallPart};

const UNKNOWN: i32 = -1;

/// Arguments of a call; `None` if events are not recorded.
pub(crate) struct Asked(Option<Box<Noted>>);

struct Noted {
    handles: Vec<usize>,
    /// Address of the statuses that the library writes, or 0.
    statuses: usize,
    /// Our own statuses.
    _own: Vec<OwnStatus>,
}

impl Asked {
    /// Reads an array of handles.
    #[inline]
    pub(crate) fn handles(count: i32, handles: usize) -> Asked {
        Asked(record::is_traced().then(|| Box::new(Noted::new(count, handles, 0, Vec::new()))))
    }

    /// Reads an array of handles of which the call completes some. It writes at most so many statuses to `statuses`; 0
    /// means that the program ignores them.
    #[inline]
    pub(crate) fn completing(count: i32, handles: usize, most: i32, statuses: usize) -> Asked {
        if record::is_traced() { Asked::noted(count, handles, most, statuses) } else { Asked(None) }
    }

    #[cold]
    fn noted(count: i32, handles: usize, most: i32, statuses: usize) -> Asked {
        let wanted = if statuses == 0 { usize::try_from(most).unwrap_or(0) } else { 0 };
        let own: Vec<OwnStatus> = (0..wanted).map(|_| OwnStatus::new()).collect();
        let statuses = if wanted == 0 { statuses } else { own.as_ptr() as usize };
        Asked(Some(Box::new(Noted::new(count, handles, statuses, own))))
    }

    /// Returns the address of the statuses for the library, in place of the program's `statuses`.
    #[inline]
    pub(crate) fn statuses(&self, statuses: usize) -> usize {
        self.0.as_ref().map_or(statuses, |noted| noted.statuses)
    }

    /// Returns the parts of a call that concerned all handles; there is a status for each, if any.
    pub(crate) fn all(&self) -> Vec<CallPart> {
        self.parts(|noted| (0..noted.handles.len()).map(|at| (at, at)).collect())
    }

    /// Returns the part of a call that completed the handle with this index, unless it is MPI_UNDEFINED; there is one
    /// status.
    pub(crate) fn one(&self, number: i32) -> Vec<CallPart> {
        self.parts(|_| usize::try_from(number).map(|at| (at, 0)).into_iter().collect())
    }

    /// Returns the parts of a call that completed the handles with the indices in an array; there is a status for each
    /// index.
    pub(crate) fn some(&self, count: i32, numbers: usize) -> Vec<CallPart> {
        let numbers = read(count, numbers, |at| at as *const i32);
        self.parts(|_| numbers.iter().enumerate().map(|(status, at)| (*at as usize, status)).collect())
    }

    /// Returns the parts for pairs of a handle's and its status's indices.
    fn parts(&self, pairs: impl FnOnce(&Noted) -> Vec<(usize, usize)>) -> Vec<CallPart> {
        let Some(noted) = &self.0 else { return Vec::new() };
        pairs(noted).into_iter().filter_map(|(at, status)| noted.part(at, status)).collect()
    }
}

impl Noted {
    fn new(count: i32, handles: usize, statuses: usize, own: Vec<OwnStatus>) -> Noted {
        Noted { handles: read(count, handles, |at| at as *const usize), statuses, _own: own }
    }

    fn part(&self, at: usize, status: usize) -> Option<CallPart> {
        let handle = *self.handles.get(at)?;
        if self.statuses == 0 {
            return Some(CallPart { handle, source: UNKNOWN, tag: UNKNOWN });
        }
        let status = self.statuses + status * size_of::<OwnStatus>();
        // SAFETY: the library has written this status, which begins with source and tag.
        let [source, tag] = unsafe { *(status as *const [i32; 2]) };
        Some(CallPart { handle, source: if is_cancelled(status) { CANCELLED } else { source }, tag })
    }
}

/// Copies an array of the program.
fn read<T: Copy>(count: i32, address: usize, pointer: impl FnOnce(usize) -> *const T) -> Vec<T> {
    let Ok(count @ 1..) = usize::try_from(count) else { return Vec::new() };
    if address == 0 {
        return Vec::new();
    }
    // SAFETY: the program, or the library in a successful call, passes an array of so many elements.
    unsafe { std::slice::from_raw_parts(pointer(address), count) }.to_vec()
}

fn is_cancelled(status: usize) -> bool {
    static TEST_CANCELLED: Next = Next::new(c"PMPI_Test_cancelled");
    let mut flag = 0;
    // SAFETY: this is the type of MPI_Test_cancelled.
    let test: unsafe extern "C" fn(usize, *mut i32) -> i32 = unsafe { std::mem::transmute(TEST_CANCELLED.address()) };
    // SAFETY: the library has just written the status.
    unsafe { test(status, &mut flag) == 0 && flag != 0 }
}

/// Reads an integer that a successful call has written.
pub(crate) fn number_at(address: usize) -> i32 {
    // SAFETY: the program has passed the address of an integer.
    unsafe { *(address as *const i32) }
}
