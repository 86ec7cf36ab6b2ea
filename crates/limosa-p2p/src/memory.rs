//! Message memory, as the protocols see it.
//!
//! A [`Region`] is a *stream* of bytes in this process: either one contiguous block or `count` elements of a
//! [`Layout`]. The protocols move the stream without knowledge of datatypes: they copy ranges of it in and out
//! ([`Region::read`], [`Region::write`]) or walk its contiguous pieces ([`Region::pieces`]) to build scatter lists.
//!
//! Invariants:
//! - stream order is the order of the type map; offset `o` of the stream is byte `o % size` of element `o / size`;
//! - a layout never touches memory outside the pieces that it reports.

use limosa_base::copy::copy;
use std::any::Any;
use std::sync::Arc;

/// Layout of the data bytes of `count` equal elements around a base address.
///
/// Implemented by committed datatypes. All offsets are bytes of the packed stream.
pub trait Layout: Any + Send + Sync {
    /// Returns the data bytes of one element (the MPI type size).
    fn size(&self) -> usize;

    /// Copies the stream bytes `[offset, offset + dst.len())` of `count` elements at `base` into `dst`.
    ///
    /// # Safety
    /// The memory that the layout covers around `base` must be readable, and `offset + dst.len() <= count * size`.
    unsafe fn pack(&self, base: *const u8, count: usize, offset: usize, dst: &mut [u8]);

    /// Copies `src` over the stream bytes `[offset, offset + src.len())` of `count` elements at `base`.
    ///
    /// # Safety
    /// The memory that the layout covers around `base` must be writable, and `offset + src.len() <= count * size`.
    unsafe fn unpack(&self, base: *mut u8, count: usize, offset: usize, src: &[u8]);

    /// Calls `visit(address, length)` for each contiguous piece of the stream bytes `[offset, offset + len)`, in stream
    /// order, merged where neighbours touch, until `visit` returns `false`. Computes addresses only; touches no memory.
    fn pieces(
        &self,
        base: *mut u8,
        count: usize,
        offset: usize,
        len: usize,
        visit: &mut dyn FnMut(*mut u8, usize) -> bool,
    );

    /// Returns the mean length of a contiguous piece in bytes, for choosing between scatter lists and packing.
    fn mean_piece(&self) -> usize;
}

/// Memory of one message.
#[derive(Clone)]
pub struct Region {
    base: *mut u8,
    count: usize,
    bytes: usize,
    layout: Option<Arc<dyn Layout>>,
}

// SAFETY: a region is an address and a description. Its creator guarantees (see `contiguous`, `typed`) that the memory
// stays valid for the whole operation, on any thread.
unsafe impl Send for Region {}
// SAFETY: as above; a shared region offers no mutation of its own fields.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region of `bytes` contiguous bytes at `base`.
    ///
    /// # Safety
    /// The memory must stay valid for the operation's duration: readable for a send, writable and otherwise untouched
    /// for a receive.
    #[inline(always)]
    pub unsafe fn contiguous(base: *mut u8, bytes: usize) -> Region {
        Region { base, count: 1, bytes, layout: None }
    }

    /// Creates a region of `count` elements of `layout` at `base`.
    ///
    /// # Safety
    /// As for [`Region::contiguous`], for all bytes that the layout covers.
    pub unsafe fn typed(base: *mut u8, count: usize, layout: Arc<dyn Layout>) -> Region {
        Region { base, count, bytes: count * layout.size(), layout: Some(layout) }
    }

    /// Creates the empty region.
    pub fn empty() -> Region {
        Region { base: std::ptr::null_mut(), count: 0, bytes: 0, layout: None }
    }

    /// Returns the stream bytes `[offset, offset + len)` as a region of their own.
    pub fn part(&self, offset: usize, len: usize) -> Region {
        assert!(offset + len <= self.bytes, "a part beyond the end of a message");
        match &self.layout {
            _ if len == 0 => Region::empty(),
            // The creator of the whole region has guaranteed the memory of its parts.
            None => Region { base: self.base.wrapping_add(offset), count: 1, bytes: len, layout: None },
            Some(_) => {
                let part: Arc<dyn Layout> = Arc::new(RegionPart { whole: self.clone(), offset, len });
                Region { base: self.base, count: 1, bytes: len, layout: Some(part) }
            }
        }
    }

    /// Replaces the region by the empty one.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes = 0;
        if self.layout.is_some() {
            self.layout = None;
        }
    }

    /// Returns the length of the stream in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the stream has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the layout, unless the stream is one contiguous block.
    pub fn layout(&self) -> Option<&dyn Layout> {
        self.layout.as_deref()
    }

    /// Returns the base address, if the stream is one contiguous block.
    pub fn as_contiguous(&self) -> Option<*mut u8> {
        if self.layout.is_none() { Some(self.base) } else { None }
    }

    /// Returns the bytes, if the stream is one contiguous block.
    #[inline]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match (&self.layout, self.bytes) {
            (Some(_), _) => None,
            (None, 0) => Some(&[]),
            // SAFETY: the creator of the region guarantees readable memory.
            (None, bytes) => Some(unsafe { std::slice::from_raw_parts(self.base, bytes) }),
        }
    }

    /// Returns the mean length of a contiguous piece in bytes.
    pub fn mean_piece(&self) -> usize {
        match &self.layout {
            None => self.bytes,
            Some(layout) => layout.mean_piece(),
        }
    }

    /// Copies stream bytes `[offset, offset + dst.len())` into `dst`.
    #[inline]
    pub fn read(&self, offset: usize, dst: &mut [u8]) {
        assert!(offset + dst.len() <= self.bytes, "read beyond the end of a message");
        if dst.is_empty() {
            return;
        }
        match &self.layout {
            // SAFETY: in range by the assertion; the creator of the region guarantees readable memory.
            None => unsafe { copy(self.base.add(offset), dst.as_mut_ptr(), dst.len()) },
            // SAFETY: as above.
            Some(layout) => unsafe { layout.pack(self.base, self.count, offset, dst) },
        }
    }

    /// Copies `src` over stream bytes `[offset, offset + src.len())`.
    #[inline]
    pub fn write(&self, offset: usize, src: &[u8]) {
        assert!(offset + src.len() <= self.bytes, "write beyond the end of a message");
        if src.is_empty() {
            return;
        }
        match &self.layout {
            // SAFETY: in range by the assertion; the creator of the region guarantees writable memory.
            None => unsafe { copy(src.as_ptr(), self.base.add(offset), src.len()) },
            // SAFETY: as above.
            Some(layout) => unsafe { layout.unpack(self.base, self.count, offset, src) },
        }
    }

    /// Calls `visit` for each contiguous piece of stream bytes `[offset, offset + len)` until it returns `false`.
    pub fn pieces(&self, offset: usize, len: usize, visit: &mut dyn FnMut(*mut u8, usize) -> bool) {
        assert!(offset + len <= self.bytes, "pieces beyond the end of a message");
        if len == 0 {
            return;
        }
        match &self.layout {
            None => {
                visit(self.base.wrapping_add(offset), len);
            }
            Some(layout) => layout.pieces(self.base, self.count, offset, len, visit),
        }
    }
}

/// A range of a region's stream, as one element.
struct RegionPart {
    whole: Region,
    offset: usize,
    len: usize,
}

impl Layout for RegionPart {
    fn size(&self) -> usize {
        self.len
    }

    unsafe fn pack(&self, _base: *const u8, _count: usize, offset: usize, dst: &mut [u8]) {
        self.whole.read(self.offset + offset, dst);
    }

    unsafe fn unpack(&self, _base: *mut u8, _count: usize, offset: usize, src: &[u8]) {
        self.whole.write(self.offset + offset, src);
    }

    fn pieces(
        &self,
        _base: *mut u8,
        _count: usize,
        offset: usize,
        len: usize,
        visit: &mut dyn FnMut(*mut u8, usize) -> bool,
    ) {
        self.whole.pieces(self.offset + offset, len, visit);
    }

    fn mean_piece(&self) -> usize {
        self.whole.mean_piece().min(self.len)
    }
}
