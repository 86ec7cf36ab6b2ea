//! Memory of windows: shared by the members of a host, private to this process, or the program's own.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use limosa_base::bulk::{Bulk, Singles};
use limosa_base::process_lock::ProcessLock;
use limosa_base::segment::{Foreign, PAGE, Shared};
use limosa_base::sync::{AtomicU32, AtomicU64};
use limosa_p2p::HostMemory;

use crate::allocated::{Bytes, LINE};

/// Shared state of a window's member: for updates of its memory, and for its own updates of other members' memory.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Member {
    /// Held during bulk updates of this member's memory, and during updates of elements that the processor cannot
    /// change atomically.
    pub lock: ProcessLock,
    pub bulk: Bulk,
    pub user: User,
    /// The lock of `MPI_Win_lock`.
    pub window_lock: LockWord,
    /// In the first member's line: number of members that have sent accesses by packets before a fence
    /// ([`Notices`](crate::notices::Notices)); consecutive fences alternate.
    pub senders: [AtomicU32; 2],
}

/// Announcement of a member's single updates.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct User {
    pub singles: Singles,
    /// Number of the process on the host, counted from 1.
    pub host_number: AtomicU32,
}

// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for Member {}

/// The lock of a member's memory.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct LockWord {
    pub word: AtomicU32,
    pub queue: ProcessLock,
    /// Queue position of the next rank to arrive.
    pub next: AtomicU64,
}

/// A member's entry in the queue for a lock.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Waiter {
    /// Queue position, counted from 1, shifted left by one, with the lowest bit set for an exclusive request; 0 if it
    /// does not wait.
    pub place: AtomicU64,
    /// Number of its request.
    pub ticket: AtomicU64,
}

/// Notices of one member for another. The counters wrap around.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Notified {
    /// Number of notices of each kind.
    pub notices: [AtomicU32; 2],
    /// Number of accesses sent by packets.
    pub packets: AtomicU32,
}

/// Memory that the members of a window on one host share: a few lines per member ([`Member`]); for each lock, the
/// members' queue entries ([`Waiter`]); the notices of each pair ([`Notified`]); and the members' parts of the window.
pub(crate) struct Area {
    first: Shared<Member>,
    host: Arc<HostMemory>,
    members: usize,
    /// Position and length of the area, if this process frees the memory when it is the last user.
    owned: Option<(u64, usize)>,
}

/// Layout of an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Offset of each member's part.
    pub starts: Vec<usize>,
    /// Bytes of the area.
    pub bytes: usize,
    /// Alignment of the area's address.
    pub alignment: usize,
}

impl Plan {
    /// Returns the offset of the queue entries.
    fn waiters(members: usize) -> Option<usize> {
        members.checked_mul(size_of::<Member>())
    }

    /// Returns the offset of a member's notices; `None` beyond the address space. With `member` equal to `members`:
    /// their end.
    fn notices(members: usize, member: usize) -> Option<usize> {
        let waiters = members.checked_mul(members)?.checked_mul(size_of::<Waiter>())?;
        let row = members.checked_mul(size_of::<Notified>())?.checked_next_multiple_of(LINE)?;
        let start = Self::waiters(members)?.checked_add(waiters)?.checked_next_multiple_of(LINE)?;
        start.checked_add(row.checked_mul(member)?)
    }

    /// Lays out parts of these sizes, without gaps if `contiguous`, else at multiples of `alignment`. Returns `None` if
    /// they do not fit in the address space.
    pub fn new(sizes: &[usize], contiguous: bool, alignment: usize) -> Option<Plan> {
        let of_area = alignment.max(PAGE);
        let mut end = Self::notices(sizes.len(), sizes.len())?.checked_next_multiple_of(of_area)?;
        let mut starts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            if !contiguous {
                end = end.checked_next_multiple_of(if size >= PAGE { of_area } else { alignment })?;
            }
            starts.push(end);
            end = end.checked_add(size)?;
        }
        let bytes = end.checked_next_multiple_of(PAGE)?;
        i64::try_from(bytes).ok().map(|_| Plan { starts, bytes, alignment: of_area })
    }
}

impl Area {
    /// Maps the area at `place`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn map(host: &Arc<HostMemory>, place: u64, plan: &Plan, is_owner: bool) -> io::Result<Area> {
        let first = host.map_aligned_area::<Member>(place, plan.bytes, plan.alignment)?;
        let owned = is_owner.then_some((place, plan.bytes));
        Ok(Area { first, host: host.clone(), members: plan.starts.len(), owned })
    }

    /// Returns the address of a member's part.
    pub fn address(&self, plan: &Plan, member: usize) -> *mut u8 {
        self.first.mapping().address(plan.starts[member])
    }

    /// Returns the lines of the members.
    #[inline(always)]
    pub fn lines(&self) -> &[Member] {
        // SAFETY: they consist of atomics, for which any bytes are valid.
        unsafe { self.first.mapping().slice(0, self.members) }
    }

    /// Returns the members' entries in the queue of one member's lock.
    pub fn waiters(&self, member: usize) -> &[Waiter] {
        let start = Plan::waiters(self.members).expect("the area exists") + member * self.members * size_of::<Waiter>();
        // SAFETY: as above.
        unsafe { self.first.mapping().slice(start, self.members) }
    }

    /// Returns the notices of all members for one member.
    #[inline]
    pub fn notices(&self, member: usize) -> &[Notified] {
        let start = Plan::notices(self.members, member).expect("the area exists");
        // SAFETY: as above.
        unsafe { self.first.mapping().slice(start, self.members) }
    }

    /// Returns the host whose memory it is.
    pub fn host(&self) -> &HostMemory {
        &self.host
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if let Some((place, bytes)) = self.owned {
            self.host.free_area(place, bytes);
        }
    }
}

/// Zeroed private memory.
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an address range, accessed by the rules of windows.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates the block; `None` if there is not enough memory.
    pub fn new(bytes: usize, alignment: usize) -> Option<Block> {
        let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })?;
        Some(Block { start, layout })
    }

    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Owner of a window's memory.
#[allow(dead_code)] // held, not used
pub(crate) enum MemoryOwner {
    Area(Arc<Area>),
    Block(Block),
    /// The program; with mapped memory of other processes.
    Program(Vec<Shared<Bytes>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_or_begin_on_lines_and_pages() {
        let plan = Plan::new(&[10, 0, 20, 5000], true, LINE).unwrap();
        assert_eq!(plan.starts, [PAGE, PAGE + 10, PAGE + 10, PAGE + 30]);
        assert_eq!(plan.bytes, 3 * PAGE);
        let plan = Plan::new(&[10, 0, 20, 5000], false, LINE).unwrap();
        assert_eq!(plan.starts, [PAGE, PAGE + LINE, PAGE + LINE, 2 * PAGE]);
        let plan = Plan::new(&[10, 20], false, 4 * PAGE).unwrap();
        assert_eq!((plan.starts, plan.alignment), (vec![4 * PAGE, 8 * PAGE], 4 * PAGE));
        assert_eq!(Plan::new(&[usize::MAX - 2 * PAGE, PAGE], false, LINE), None);
        assert_eq!(Plan::new(&[usize::MAX / 2], true, LINE), None);
    }
}
