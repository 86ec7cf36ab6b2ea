//! The requests and messages that a call has started or completed, where calls are recorded one by one: a part of the
//! call for each. Elsewhere nothing is noted of them.
//!
//! A call that completes a request sets its handle to null, and from where a message has come may be known from its
//! status alone. So the handles are read before the call, and the library is given statuses of ours if the program
//! wants none.

use limosa_interpose::next::Next;

use crate::bytes::OwnStatus;
use crate::record;

/// One of the requests or messages that a call is about.
pub(crate) struct Part {
    pub handle: usize,
    /// Where a message that was received has come from, in its communicator's group, and its tag; or [`CANCELLED`].
    pub source: i32,
    pub tag: i32,
}

/// The source of an operation that has ended because it was cancelled.
const CANCELLED: i32 = i32::MIN;
const UNKNOWN: i32 = -1;

/// What a call is given; nothing if calls are not recorded one by one.
pub(crate) struct Asked(Option<Box<Noted>>);

struct Noted {
    handles: Vec<usize>,
    /// The address of the statuses that the library writes, or 0.
    statuses: usize,
    /// Those of ours.
    _own: Vec<OwnStatus>,
}

impl Asked {
    /// An array of handles.
    #[inline]
    pub(crate) fn handles(count: i32, handles: usize) -> Asked {
        Asked(record::is_traced().then(|| Box::new(Noted::new(count, handles, 0, Vec::new()))))
    }

    /// An array of handles, of which the call completes some, and writes so many statuses at most to `statuses`, unless
    /// that is 0: the program wants none.
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

    /// What the library is given for statuses in place of the program's `statuses`.
    #[inline]
    pub(crate) fn statuses(&self, statuses: usize) -> usize {
        self.0.as_ref().map_or(statuses, |noted| noted.statuses)
    }

    /// The call has been about all of them; there is a status for each if there are any.
    pub(crate) fn all(&self) -> Vec<Part> {
        self.parts(|noted| (0..noted.handles.len()).map(|at| (at, at)).collect())
    }

    /// The call has completed the one of this number, if it is not MPI_UNDEFINED; there is one status.
    pub(crate) fn one(&self, number: i32) -> Vec<Part> {
        self.parts(|_| usize::try_from(number).map(|at| (at, 0)).into_iter().collect())
    }

    /// The call has completed those of which the numbers are in an array; there is a status for each number.
    pub(crate) fn some(&self, count: i32, numbers: usize) -> Vec<Part> {
        let numbers = read(count, numbers, |at| at as *const i32);
        self.parts(|_| numbers.iter().enumerate().map(|(status, at)| (*at as usize, status)).collect())
    }

    /// The parts for pairs of the numbers of a handle and its status.
    fn parts(&self, pairs: impl FnOnce(&Noted) -> Vec<(usize, usize)>) -> Vec<Part> {
        let Some(noted) = &self.0 else { return Vec::new() };
        pairs(noted).into_iter().filter_map(|(at, status)| noted.part(at, status)).collect()
    }
}

impl Noted {
    fn new(count: i32, handles: usize, statuses: usize, own: Vec<OwnStatus>) -> Noted {
        Noted { handles: read(count, handles, |at| at as *const usize), statuses, _own: own }
    }

    fn part(&self, at: usize, status: usize) -> Option<Part> {
        let handle = *self.handles.get(at)?;
        if self.statuses == 0 {
            return Some(Part { handle, source: UNKNOWN, tag: UNKNOWN });
        }
        let status = self.statuses + status * size_of::<OwnStatus>();
        // SAFETY: the library has written this status, which begins with source and tag.
        let [source, tag] = unsafe { *(status as *const [i32; 2]) };
        Some(Part { handle, source: if is_cancelled(status) { CANCELLED } else { source }, tag })
    }
}

/// Copies an array of the program's.
fn read<T: Copy>(count: i32, address: usize, pointer: impl FnOnce(usize) -> *const T) -> Vec<T> {
    let Ok(count @ 1..) = usize::try_from(count) else { return Vec::new() };
    if address == 0 {
        return Vec::new();
    }
    // SAFETY: the program, or the library in a call that has succeeded, passes an array of so many elements.
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

/// An integer that a call that has succeeded has written.
pub(crate) fn number_at(address: usize) -> i32 {
    // SAFETY: the program has passed the address of an integer.
    unsafe { *(address as *const i32) }
}
