//! Views: the bytes of a file that a process sees (MPI-5 section 14.3).
//!
//! A process sees its part of a file as a *stream* of bytes: the data of the filetype, repeated endlessly from the
//! displacement on. Offsets of the standard count etypes of this stream. A view maps a range of the stream to *pieces*
//! of the file: offset and length, merged where they touch. It walks the filetype's loop program as if the file were
//! memory at address 0, so a type of a million blocks takes no more memory here than elsewhere.

use std::sync::Arc;

use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_p2p::memory::Layout;

use crate::datarep::Datarep;

/// A piece of the file: offset and length in bytes.
pub(crate) type Piece = (u64, u64);

/// The bytes of a file that a process sees.
pub(crate) struct View {
    pub disp: u64,
    pub etype: Arc<Datatype>,
    pub filetype: Arc<Datatype>,
    pub datarep: Arc<Datarep>,
    /// The filetype in file representation.
    layout: Arc<Datatype>,
    /// Bytes of an etype in the file.
    pub etype_size: u64,
    /// Extent of an etype in the file.
    pub etype_extent: i64,
    /// Offset in the file, if the whole stream is one piece.
    pub start: Option<u64>,
    /// Whether the order of the stream is that of the file.
    pub is_ordered: bool,
    /// Whether a byte of the file occurs more than once in one filetype.
    pub overlaps: bool,
    /// End of the first filetype's data in the file.
    first_end: u64,
}

impl View {
    /// Returns the view of a newly opened file: all its bytes.
    pub fn bytes() -> View {
        let byte = Datatype::named(MPI_BYTE);
        View::new(0, &byte, &byte, Datarep::native()).expect("bytes can always be seen")
    }

    /// Creates a view from the program's arguments.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`, `MPI_ERR_ARG`, and those of the functions of a data representation.
    pub fn new(disp: u64, etype: &Arc<Datatype>, filetype: &Arc<Datatype>, datarep: Arc<Datarep>) -> Result<View> {
        etype.check_committed()?;
        filetype.check_committed()?;
        let (etype_in_file, layout) = (datarep.in_file(etype)?, datarep.in_file(filetype)?);
        let size = etype_in_file.size() as u64;
        if size == 0 {
            fail!(MPI_ERR_TYPE, "the etype has no data");
        }
        if !(layout.size() as u64).is_multiple_of(size) {
            fail!(
                MPI_ERR_TYPE,
                "the filetype has {} bytes of data, which is no multiple of the {size} bytes of the etype",
                layout.size()
            );
        }
        if layout.size() > 0 && (layout.true_lb() < 0 || layout.extent() <= 0) {
            fail!(
                MPI_ERR_TYPE,
                "the filetype begins at {} and has the extent {}, but what is seen of a file must lie at offsets that \
                 grow from 0",
                layout.true_lb(),
                layout.extent()
            );
        }
        let is_dense = layout.size() > 0 && layout.is_dense();
        let mut view = View {
            disp,
            etype: etype.clone(),
            filetype: filetype.clone(),
            datarep,
            start: is_dense.then(|| disp + layout.true_lb() as u64),
            layout,
            etype_size: size,
            etype_extent: etype_in_file.extent(),
            is_ordered: true,
            overlaps: false,
            first_end: 0,
        };
        if !is_dense {
            view.check_order()?;
        }
        Ok(view)
    }

    /// Walks one filetype, and the first byte of the next one, which may lie before the end of this one. The latter
    /// matters only to accesses that reach so far.
    fn check_order(&mut self) -> Result<()> {
        let (mut last, mut end, mut goes_back, mut overlaps) = (0, 0, false, false);
        let tile = self.layout.size() as u64;
        self.pieces(0, tile, &mut |at, len| {
            goes_back |= at < last;
            overlaps |= at < end;
            (last, end) = (at, end.max(at + len));
            true
        });
        if goes_back {
            fail!(
                MPI_ERR_TYPE,
                "the displacements in the filetype must not decrease: a view shows data in the order of the file"
            );
        }
        self.overlaps = overlaps;
        self.is_ordered = !overlaps && (tile == 0 || self.byte_of(tile) >= end);
        self.first_end = end;
        Ok(())
    }

    /// Returns whether `len` bytes of the stream from `from` on are in the order of the file.
    pub fn is_ordered_in(&self, from: u64, len: u64) -> bool {
        let tile = self.layout.size() as u64;
        let in_one_tile = || len <= tile && from % tile <= tile - len;
        self.is_ordered || len == 0 || !self.overlaps && in_one_tile()
    }

    /// Returns whether the view has no bytes.
    pub fn is_empty(&self) -> bool {
        self.layout.size() == 0
    }

    /// Returns the mean length of a piece in bytes.
    pub fn mean_piece(&self) -> usize {
        if self.start.is_some() { usize::MAX } else { self.layout.mean_piece() }
    }

    /// Calls `visit` for each piece of `len` bytes of the stream from `from` on, until it returns false.
    pub fn pieces(&self, from: u64, len: u64, visit: &mut dyn FnMut(u64, u64) -> bool) {
        if len == 0 || self.is_empty() {
            return;
        }
        // The addresses are only computed, not accessed.
        let base = std::ptr::without_provenance_mut(self.disp as usize);
        self.layout.pieces(base, usize::MAX, from as usize, len as usize, &mut |at, len| visit(at as u64, len as u64));
    }

    /// Returns the file offset of byte `at` of the stream.
    pub fn byte_of(&self, at: u64) -> u64 {
        let mut found = self.disp;
        self.pieces(at, 1, &mut |at, _| {
            found = at;
            false
        });
        found
    }

    /// Returns the number of bytes of the stream before the first one beyond the end of a file of `size` bytes.
    pub fn bytes_within(&self, size: u64) -> u64 {
        if self.is_empty() || size <= self.disp {
            return 0;
        }
        if let Some(start) = self.start {
            return size.saturating_sub(start);
        }
        let tile = self.layout.size() as u64;
        let full = match size.checked_sub(self.first_end) {
            Some(behind) => behind / self.layout.extent() as u64 + 1,
            None => 0,
        };
        let mut count = full * tile;
        self.pieces(full * tile, tile, &mut |at, len| {
            count += len.min(size.saturating_sub(at));
            at + len <= size
        });
        count
    }

    /// Returns the end of the file in etypes of this view, rounded up.
    pub fn end(&self, size: u64) -> i64 {
        self.bytes_within(size).div_ceil(self.etype_size) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the file offsets of the first `n` bytes of the stream, one by one.
    fn model(disp: u64, blocks: &[(i64, i64)], extent: i64, n: usize) -> Vec<u64> {
        let in_tile = || blocks.iter().flat_map(|(at, len)| *at..*at + *len);
        (0i64..).flat_map(|tile| in_tile().map(move |at| disp + (tile * extent + at) as u64)).take(n).collect()
    }

    fn bytes_of(view: &View, from: u64, len: u64) -> Vec<u64> {
        let mut bytes = Vec::new();
        view.pieces(from, len, &mut |at, len| {
            bytes.extend(at..at + len);
            true
        });
        bytes
    }

    /// Generates disjoint blocks in order, and an extent, behind them or not.
    fn blocks() -> impl Strategy<Value = (Vec<(i64, i64)>, i64)> {
        (prop::collection::vec((0i64..9, 1i64..9), 1..7), -20i64..9).prop_map(|(gaps, rest)| {
            let mut end = 0;
            let blocks = gaps.into_iter().map(|(gap, len)| {
                let at = end + gap;
                end = at + len;
                (at, len)
            });
            let blocks: Vec<_> = blocks.collect();
            (blocks, (end + rest).max(1))
        })
    }

    proptest! {
        #[test]
        fn the_stream_is_mapped_byte_by_byte(
            (blocks, extent) in blocks(), disp in 0u64..99, from in 0u64..99, len in 0u64..99, size in 0u64..400
        ) {
            let (lengths, displacements): (Vec<i64>, Vec<i64>) = blocks.iter().map(|(at, len)| (*len, *at)).unzip();
            let byte = Datatype::named(MPI_BYTE);
            let indexed = Datatype::hindexed(&lengths, &displacements, &byte).unwrap();
            let filetype = Datatype::resized(&indexed, 0, extent).unwrap();
            filetype.commit();
            let view = View::new(disp, &byte, &filetype, Datarep::native()).unwrap();
            prop_assert!(!view.overlaps);
            let slow = model(disp, &blocks, extent, 30_000);
            let (from_index, end) = (from as usize, (from + len) as usize);
            prop_assert_eq!(&bytes_of(&view, from, len)[..], &slow[from_index..end]);
            prop_assert_eq!(view.byte_of(from), slow[from_index]);
            let grows = slow[from_index..end].windows(2).all(|pair| pair[0] < pair[1]);
            prop_assert!(grows || !view.is_ordered_in(from, len));
            prop_assert_eq!(view.bytes_within(size) as usize, slow.iter().take_while(|at| **at < size).count());
        }
    }

    #[test]
    fn what_cannot_be_a_view_is_refused() {
        let (byte, int) = (Datatype::named(MPI_BYTE), Datatype::named(MPI_INT));
        let class = |etype: &Arc<Datatype>, filetype: &Arc<Datatype>| {
            etype.commit();
            filetype.commit();
            View::new(0, etype, filetype, Datarep::native()).err().map(|error| error.class)
        };
        assert_eq!(class(&int, &byte), Some(MPI_ERR_TYPE), "no whole etype in the filetype");
        assert_eq!(class(&Datatype::contiguous(0, &byte).unwrap(), &byte), Some(MPI_ERR_TYPE), "an empty etype");
        let before = Datatype::hindexed(&[1, 1], &[-4, 4], &byte).unwrap();
        assert_eq!(class(&byte, &before), Some(MPI_ERR_TYPE), "bytes before the displacement");
        let back = Datatype::hindexed(&[1, 1], &[8, 0], &byte).unwrap();
        assert_eq!(class(&byte, &back), Some(MPI_ERR_TYPE), "displacements that decrease");
        assert_eq!(class(&byte, &Datatype::contiguous(0, &byte).unwrap()), None, "seeing nothing is allowed");
    }
}
