//! Checked buffers of the program, with counts and addresses wide enough for any size.
//!
//! `MPI_IN_PLACE` is no buffer. Where it is valid, an operation takes an `Option`, and `None` stands for it
//! ([`Buffer::or_in_place`], [`Blocks::or_in_place`]). Everywhere else it is an error.

use std::sync::Arc;

use limosa_base::readable::is_readable;
use limosa_p2p::memory::{Layout, Region};

use limosa_mpi::consts::MPI_IN_PLACE;
use limosa_mpi::datatype::{Datatype, Held};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;

/// Limit for the number of elements of a buffer that [`Buffer::dense`] makes: their bytes cannot overflow.
const MANY: u64 = 1 << 16;

/// Bytes from address 0 on that are never part of a buffer.
const FIRST_PAGE: i64 = 4096;

/// `count` elements of a datatype at an address.
///
/// The creator of a buffer promises that its memory is what the program has passed for the operation: valid until the
/// end of the operation, and readable or writable as the parameter says.
#[derive(Clone)]
pub struct Buffer {
    pub(super) base: *mut u8,
    pub(super) count: usize,
    pub(super) datatype: Held,
}

impl Buffer {
    /// Checks the program's argument `arg`.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT` (negative, or more bytes than there can be), `MPI_ERR_TYPE` (not committed), `MPI_ERR_BUFFER`
    /// (null, or `MPI_IN_PLACE`).
    #[inline(always)]
    pub fn new(base: *mut u8, count: i64, datatype: impl Into<Held>, arg: &str) -> Result<Buffer> {
        let datatype = datatype.into();
        if base as usize == MPI_IN_PLACE {
            fail!(MPI_ERR_BUFFER, "{arg} is MPI_IN_PLACE, which has no meaning here");
        }
        check_elements(count, &datatype, arg)?;
        check_address(base, count, &datatype, arg)?;
        datatype.check_readable(base, count, arg)?;
        Ok(Buffer { base, count: count as usize, datatype })
    }

    /// Makes a buffer of elements without gaps for which [`Buffer::new`] would find no error; `None` for any other
    /// buffer.
    #[inline(always)]
    pub fn dense(base: *mut u8, count: i64, datatype: Held) -> Option<Buffer> {
        let bytes = datatype.dense_bytes()?;
        let is_sound = base as usize > MPI_IN_PLACE && count as u64 <= MANY;
        let is_usable = is_sound && is_readable(base, count as usize * bytes);
        is_usable.then(|| Buffer { base, count: count as usize, datatype })
    }

    /// As [`Buffer::new`], or `None` for `MPI_IN_PLACE`. Calls `elements` only if the datatype is significant.
    ///
    /// # Errors
    /// As for [`Buffer::new`], and those of `elements`.
    #[inline(always)]
    pub fn or_in_place<D: Into<Held>>(
        base: *mut u8,
        elements: impl FnOnce() -> Result<(i64, D)>,
        arg: &str,
    ) -> Result<Option<Buffer>> {
        if base as usize == MPI_IN_PLACE {
            return Ok(None);
        }
        let (count, datatype) = elements()?;
        Buffer::new(base, count, datatype, arg).map(Some)
    }

    /// Returns the number of data bytes.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.datatype.size() as usize
    }

    /// Whether two buffers of `bytes` data bytes without gaps may overlap.
    #[inline]
    pub(super) fn is_near(&self, other: &Buffer) -> bool {
        (self.base as usize).abs_diff(other.base as usize) < self.bytes().max(1)
    }

    /// Returns the memory, for transfers and copies.
    #[inline]
    pub(super) fn region(&self) -> Region {
        // SAFETY: the promise of the buffer's creator.
        unsafe { self.datatype.region(self.base, self.count) }
    }

    /// Returns `count` of the elements, from element `first` on.
    pub(super) fn slice(&self, first: usize, count: usize) -> Buffer {
        debug_assert!(first + count <= self.count);
        let base = self.base.wrapping_offset(first as isize * self.datatype.extent() as isize);
        Buffer { base, count, datatype: self.datatype.clone() }
    }

    /// Returns the range of addresses of the first contiguous data bytes; it is empty if there are no data.
    fn span(&self) -> (usize, usize) {
        if let Some(place) = self.datatype.contiguous_at(self.count) {
            let start = self.base.wrapping_offset(place) as usize;
            return (start, start.wrapping_add(self.bytes()));
        }
        let mut span = (0, 0);
        self.datatype.pieces(self.base, self.count, 0, self.bytes(), &mut |address, len| {
            span = (address as usize, address as usize + len);
            false
        });
        span
    }
}

/// One block of memory per rank.
#[derive(Clone)]
pub struct Blocks {
    base: *mut u8,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    /// Blocks of equal size, contiguous in rank order.
    Even { count: usize, datatype: Held },
    /// Counts, and displacements in extents of the datatype.
    Uneven { counts: Vec<usize>, displs: Vec<i64>, datatype: Held },
    /// Counts, displacements in bytes, and datatypes.
    Each { counts: Vec<usize>, displs: Vec<i64>, datatypes: Vec<Held> },
}

impl Blocks {
    /// Makes blocks of `count` elements for each of `ranks` ranks.
    ///
    /// # Errors
    /// As for [`Buffer::new`].
    pub fn even(base: *mut u8, count: i64, datatype: impl Into<Held>, ranks: usize, arg: &str) -> Result<Blocks> {
        let whole = count.checked_mul(ranks as i64);
        let Some(whole) = whole else {
            fail!(MPI_ERR_COUNT, "{arg} has room for {ranks} times {count} elements, which is more than there can be")
        };
        let whole = Buffer::new(base, whole, datatype, arg)?;
        Ok(Blocks { base: whole.base, shape: Shape::Even { count: count as usize, datatype: whole.datatype } })
    }

    /// Makes blocks of `counts[i]` elements for rank `i`, at `displs[i]` extents.
    ///
    /// # Errors
    /// As for [`Buffer::new`].
    pub fn uneven(
        base: *mut u8,
        counts: &[i64],
        displs: Vec<i64>,
        datatype: impl Into<Held>,
        arg: &str,
    ) -> Result<Blocks> {
        let datatype = datatype.into();
        let mut checked = Vec::with_capacity(counts.len());
        for (rank, &count) in counts.iter().enumerate() {
            check_block(base, count, &datatype, arg, rank)?;
            checked.push(count as usize);
        }
        Ok(Blocks { base, shape: Shape::Uneven { counts: checked, displs, datatype } })
    }

    /// Makes blocks of `counts[i]` elements of `datatypes[i]` for rank `i`, at `displs[i]` bytes.
    ///
    /// # Errors
    /// As for [`Buffer::new`].
    pub fn each(
        base: *mut u8,
        counts: &[i64],
        displs: Vec<i64>,
        datatypes: Vec<Arc<Datatype>>,
        arg: &str,
    ) -> Result<Blocks> {
        let mut checked = Vec::with_capacity(counts.len());
        for (block, (&count, datatype)) in counts.iter().zip(&datatypes).enumerate() {
            // With MPI_BOTTOM the displacements are addresses. The first page of memory is never mapped.
            let start = if base.is_null() && displs[block] >= FIRST_PAGE { displs[block] as *mut u8 } else { base };
            check_block(start, count, datatype, arg, block)?;
            checked.push(count as usize);
        }
        let datatypes = datatypes.into_iter().map(Held::from).collect();
        Ok(Blocks { base, shape: Shape::Each { counts: checked, displs, datatypes } })
    }

    /// Calls `make`, or returns `None` for `MPI_IN_PLACE`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn or_in_place(base: *mut u8, make: impl FnOnce() -> Result<Blocks>) -> Result<Option<Blocks>> {
        if base as usize == MPI_IN_PLACE { Ok(None) } else { make().map(Some) }
    }

    /// Returns the block of a rank.
    pub(super) fn of(&self, rank: usize) -> Buffer {
        let (base, count, datatype) = self.at(rank);
        Buffer { base, count, datatype: datatype.clone() }
    }

    #[inline]
    fn at(&self, rank: usize) -> (*mut u8, usize, &Held) {
        let (count, offset, datatype) = match &self.shape {
            Shape::Even { count, datatype } => (*count, (rank * count) as i64 * datatype.extent(), datatype),
            Shape::Uneven { counts, displs, datatype } => {
                (counts[rank], displs[rank].wrapping_mul(datatype.extent()), datatype)
            }
            Shape::Each { counts, displs, datatypes } => (counts[rank], displs[rank], &datatypes[rank]),
        };
        (self.base.wrapping_offset(offset as isize), count, datatype)
    }

    /// Returns the blocks of `ranks` ranks from `first` on as one buffer; blocks must be equal.
    pub(super) fn run(&self, first: usize, ranks: usize) -> Buffer {
        let Shape::Even { count, .. } = &self.shape else {
            unreachable!("only blocks of equal size are asked for in one piece")
        };
        Buffer { count: count * ranks, ..self.of(first) }
    }

    /// Returns the same equal blocks, grouped by `each`.
    pub(super) fn grouped(&self, each: usize) -> Blocks {
        let Shape::Even { count, datatype } = &self.shape else {
            unreachable!("only blocks of equal size are grouped")
        };
        Blocks { base: self.base, shape: Shape::Even { count: count * each, datatype: datatype.clone() } }
    }

    /// Returns the blocks of some ranks, renumbered: block `i` is that of rank `ranks[i]`.
    pub(super) fn subset(&self, ranks: &[u32]) -> Blocks {
        if let (Shape::Even { .. }, Some(first)) = (&self.shape, consecutive_from(ranks)) {
            return Blocks { base: self.at(first).0, shape: self.shape.clone() };
        }
        Blocks::those_of(self.base, ranks.iter().map(|rank| self.of(*rank as usize)))
    }

    /// Returns these buffers as blocks.
    fn those_of(base: *mut u8, buffers: impl Iterator<Item = Buffer>) -> Blocks {
        let mut shape = (Vec::new(), Vec::new(), Vec::new());
        for buffer in buffers {
            shape.0.push(buffer.count);
            shape.1.push((buffer.base as i64).wrapping_sub(base as i64));
            shape.2.push(buffer.datatype);
        }
        Blocks { base, shape: Shape::Each { counts: shape.0, displs: shape.1, datatypes: shape.2 } }
    }

    /// Returns the blocks of groups of ranks, with one block per group; the first group is that of rank 0. The result
    /// is even if `alike`, for groups of equal size that follow each other.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`; the number of bytes overflows.
    pub(super) fn joined<'g>(&self, groups: impl Iterator<Item = &'g [u32]>, alike: Option<usize>) -> Result<Blocks> {
        if let (Shape::Even { .. }, Some(each)) = (&self.shape, alike) {
            return Ok(self.grouped(each));
        }
        let buffers = groups.map(|group| self.together(group)).collect::<Result<Vec<Buffer>>>()?;
        Ok(Blocks::those_of(self.base, buffers.into_iter()))
    }

    /// Returns the blocks of some ranks, in the order of this list, as one buffer.
    ///
    /// # Errors
    /// As for [`Blocks::joined`].
    pub(super) fn together(&self, ranks: &[u32]) -> Result<Buffer> {
        if let (Shape::Even { .. }, Some(first)) = (&self.shape, consecutive_from(ranks)) {
            return Ok(self.run(first, ranks.len()));
        }
        let blocks = ranks.iter().map(|rank| self.of(*rank as usize)).filter(|block| block.count > 0);
        let (mut counts, mut places, mut datatypes) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            counts.push(block.count as i64);
            places.push((block.base as i64).wrapping_sub(self.base as i64));
            datatypes.push(Arc::clone(&block.datatype));
        }
        let datatype = Datatype::structure(&counts, &places, &datatypes)?;
        datatype.commit();
        Ok(Buffer { base: self.base, count: 1, datatype: datatype.into() })
    }

    /// Returns the memory of a rank's block.
    pub(super) fn region(&self, rank: usize) -> Region {
        let (base, count, datatype) = self.at(rank);
        // SAFETY: the promise of the blocks' creator.
        unsafe { datatype.region(base, count) }
    }

    /// Whether all blocks have the same size by construction.
    pub(super) fn are_even(&self) -> bool {
        matches!(self.shape, Shape::Even { .. })
    }

    /// Returns the data bytes of the largest block of `ranks` ranks.
    pub(super) fn most_bytes(&self, ranks: usize) -> usize {
        if self.are_even() { self.bytes(0) } else { (0..ranks).map(|rank| self.bytes(rank)).max().unwrap_or(0) }
    }

    /// Returns the data bytes of the first `blocks` blocks.
    pub(super) fn all_bytes(&self, blocks: usize) -> usize {
        (0..blocks).map(|block| self.bytes(block)).fold(0, usize::saturating_add)
    }

    /// Returns the data bytes of a rank's block.
    pub(super) fn bytes(&self, rank: usize) -> usize {
        match &self.shape {
            Shape::Even { count, datatype } => count * datatype.size() as usize,
            Shape::Uneven { counts, datatype, .. } => counts[rank] * datatype.size() as usize,
            Shape::Each { counts, datatypes, .. } => counts[rank] * datatypes[rank].size() as usize,
        }
    }
}

/// Returns the first of consecutive ranks; `None` if they are not consecutive.
fn consecutive_from(ranks: &[u32]) -> Option<usize> {
    ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]).then(|| ranks.first().map_or(0, |first| *first as usize))
}

#[inline]
fn check_elements(count: i64, datatype: &Datatype, arg: &str) -> Result<()> {
    if count < 0 {
        fail!(MPI_ERR_COUNT, "the count of {arg} is {count}, but it must not be negative");
    }
    datatype.check_committed()?;
    datatype.bytes_of(count).map(|_| ())
}

#[inline]
fn check_address(base: *mut u8, count: i64, datatype: &Datatype, arg: &str) -> Result<()> {
    // With a derived datatype, address 0 is MPI_BOTTOM.
    if base.is_null() && count != 0 && datatype.size() != 0 && datatype.is_predefined() {
        fail!(MPI_ERR_BUFFER, "{arg} is a null pointer, but has {count} elements of {}", datatype.describe());
    }
    Ok(())
}

fn check_block(base: *mut u8, count: i64, datatype: &Datatype, arg: &str, block: usize) -> Result<()> {
    if base as usize == MPI_IN_PLACE {
        fail!(MPI_ERR_BUFFER, "{arg} is MPI_IN_PLACE, which has no meaning here");
    }
    if count < 0 {
        fail!(MPI_ERR_COUNT, "the count of block {block} of {arg} is {count}, but it must not be negative");
    }
    check_elements(count, datatype, arg)?;
    check_address(base, count, datatype, arg)
}

/// Fails if the send and receive buffers overlap. Of a buffer with gaps, only the first contiguous piece is checked.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub(super) fn check_apart(send: &Buffer, receive: &Buffer) -> Result<()> {
    check_spans(send.span(), receive.span())
}

#[inline]
fn check_spans(read: (usize, usize), write: (usize, usize)) -> Result<()> {
    if overlap(read, write) { Err(not_apart(read, write)) } else { Ok(()) }
}

/// Whether two spans have a byte in common.
#[inline]
fn overlap(one: (usize, usize), other: (usize, usize)) -> bool {
    one.0.max(other.0) < one.1.min(other.1)
}

#[cold]
fn not_apart(read: (usize, usize), write: (usize, usize)) -> Error {
    let how = if read.0 == write.0 {
        format!("are the same memory ({:#x})", read.0)
    } else {
        format!("overlap: {:#x} to {:#x} and {:#x} to {:#x}", read.0, read.1, write.0, write.1)
    };
    Error::new(
        limosa_mpi::consts::MPI_ERR_BUFFER,
        format!("the send and receive buffers {how}: pass MPI_IN_PLACE to send from the receive buffer"),
    )
}

impl Blocks {
    /// As [`check_apart`], for the blocks of `ranks` ranks and a buffer.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub(super) fn check_apart_from(&self, ranks: usize, buffer: &Buffer) -> Result<()> {
        let span = buffer.span();
        self.spans(ranks).try_for_each(|block| check_spans(span, block))
    }

    /// As [`check_apart`], for the blocks of `ranks` ranks on both sides.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub(super) fn check_apart_from_blocks(&self, ranks: usize, receive: &Blocks) -> Result<()> {
        self.check_apart_from_others(ranks, receive, ranks)
    }

    /// As [`check_apart`], for `here` sent blocks and `there` received blocks.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub(super) fn check_apart_from_others(&self, here: usize, receive: &Blocks, there: usize) -> Result<()> {
        let hull = |blocks: &Blocks, count: usize| {
            let spans = blocks.spans(count).filter(|span| span.0 < span.1);
            spans.fold((usize::MAX, 0), |hull, span| (hull.0.min(span.0), hull.1.max(span.1)))
        };
        if !overlap(hull(self, here), hull(receive, there)) {
            return Ok(());
        }
        self.spans(here).try_for_each(|read| receive.spans(there).try_for_each(|write| check_spans(read, write)))
    }

    /// Returns the spans of the blocks of `ranks` ranks.
    fn spans(&self, ranks: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        // Contiguous blocks are one span.
        let joined = match &self.shape {
            Shape::Even { count, datatype } => datatype.contiguous_at(count * ranks).is_some(),
            _ => false,
        };
        let count = if joined { 1 } else { ranks };
        (0..count).map(move |rank| if joined { self.run(0, ranks).span() } else { self.of(rank).span() })
    }
}
