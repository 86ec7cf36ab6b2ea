//! The memory of windows: what the members of a host share, memory of this process, or the program's own.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use limosa_base::segment::{PAGE, Shared};
use limosa_p2p::HostMemory;

use crate::allocated::{Bytes, LINE};
use crate::guard::Member;
use crate::notices::Told;
use crate::shared_lock::Waiter;

/// Memory that the members of a window on one host share: a few lines for each ([`Member`]), the places of each in the
/// queue of each one's lock ([`Waiter`]), what each was told by each ([`Told`]), then their parts of the window.
pub(crate) struct Area {
    first: Shared<Member>,
    host: Arc<HostMemory>,
    members: usize,
    /// If this process is to give the memory back when it is the last to use it: its place and length.
    owned: Option<(u64, usize)>,
}

/// How the parts of an area lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Of each member, the offset of its part.
    pub starts: Vec<usize>,
    /// Bytes of the area.
    pub bytes: usize,
    /// Of the area's address.
    pub alignment: usize,
}

impl Plan {
    /// Where the places in queues begin.
    fn waiters(members: usize) -> Option<usize> {
        members.checked_mul(size_of::<Member>())
    }

    /// Where what a member was told begins; `None` beyond the address space. For as many as there are members: its end.
    fn told(members: usize, member: usize) -> Option<usize> {
        let waiters = members.checked_mul(members)?.checked_mul(size_of::<Waiter>())?;
        let row = members.checked_mul(size_of::<Told>())?.checked_next_multiple_of(LINE)?;
        let start = Self::waiters(members)?.checked_add(waiters)?.checked_next_multiple_of(LINE)?;
        start.checked_add(row.checked_mul(member)?)
    }

    /// Places parts of these sizes, one directly behind the other if `contiguous`, else at multiples of `alignment`;
    /// `None` if they do not fit in the address space.
    pub fn new(sizes: &[usize], contiguous: bool, alignment: usize) -> Option<Plan> {
        let of_area = alignment.max(PAGE);
        let mut end = Self::told(sizes.len(), sizes.len())?.checked_next_multiple_of(of_area)?;
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

    /// Where a member's part begins.
    pub fn address(&self, plan: &Plan, member: usize) -> *mut u8 {
        self.first.mapping().address(plan.starts[member])
    }

    /// What each member has beside its part.
    #[inline(always)]
    pub fn lines(&self) -> &[Member] {
        // SAFETY: they consist of atomics, for which any bytes are valid.
        unsafe { self.first.mapping().slice(0, self.members) }
    }

    /// The places of the members in the queue of one member's lock.
    pub fn waiters(&self, member: usize) -> &[Waiter] {
        let start = Plan::waiters(self.members).expect("the area exists") + member * self.members * size_of::<Waiter>();
        // SAFETY: as above.
        unsafe { self.first.mapping().slice(start, self.members) }
    }

    /// What a member was told by each.
    #[inline]
    pub fn told(&self, member: usize) -> &[Told] {
        let start = Plan::told(self.members, member).expect("the area exists");
        // SAFETY: as above.
        unsafe { self.first.mapping().slice(start, self.members) }
    }

    /// The host whose memory it is.
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

/// Zeroed memory of this process.
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an address range, accessed by the rules of windows.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// `None` if there is not so much memory.
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

/// What keeps the memory of a window.
#[allow(dead_code)] // held, not used
pub(crate) enum Keeper {
    Area(Arc<Area>),
    Block(Block),
    /// The program does. Memory of others that is mapped here.
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
