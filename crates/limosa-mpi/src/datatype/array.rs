//! Arrays: `MPI_Type_create_subarray` and `MPI_Type_create_darray` (MPI-5 sections 5.1.3 and 5.1.4).
//!
//! Both are put together dimension by dimension, the fastest first. A dimension of `size` elements selects some of them
//! and gets the bounds 0 and `size` times the extent of what it is made of, which makes it the element of the next
//! dimension.

use std::sync::Arc;

use super::Datatype;
use super::contents::{ArrayArguments, Maker};
use crate::consts::*;
use crate::error::{Error, Result};
use crate::fail;

/// Dimensions from the fastest to the slowest.
fn fastest_first(ndims: usize, order: i32) -> Result<Box<dyn Iterator<Item = usize>>> {
    match order {
        MPI_ORDER_C => Ok(Box::new((0..ndims).rev())),
        MPI_ORDER_FORTRAN => Ok(Box::new(0..ndims)),
        _ => fail!(
            MPI_ERR_ARG,
            "order is {order}, but it must be MPI_ORDER_C ({MPI_ORDER_C}) or MPI_ORDER_FORTRAN ({MPI_ORDER_FORTRAN})"
        ),
    }
}

fn in_bytes(elements: i64, old: &Datatype) -> Result<i64> {
    elements.checked_mul(old.extent()).ok_or_else(|| {
        Error::new(
            MPI_ERR_VALUE_TOO_LARGE,
            format!("{elements} elements of {} bytes do not fit in 64 bits", old.extent()),
        )
    })
}

/// Places `built` at element `first` of a dimension of `size` elements of `old`.
fn dimension(built: &Arc<Datatype>, first: i64, size: i64, old: &Datatype) -> Result<Arc<Datatype>> {
    let placed = Datatype::hindexed_block(1, &[in_bytes(first, old)?], built)?;
    Datatype::resized(&placed, 0, in_bytes(size, old)?)
}

/// What one process owns of one dimension of a distributed array.
struct Share {
    /// Elements of the dimension.
    size: i64,
    /// Consecutive elements that go to one process.
    block: i64,
    /// Processes along the dimension, and which of them this is.
    processes: i64,
    place: i64,
}

impl Share {
    fn new(d: usize, size: i64, distribution: i32, argument: i32, processes: i64, place: i64) -> Result<Share> {
        let default = argument == MPI_DISTRIBUTE_DFLT_DARG;
        if !default && argument <= 0 && distribution != MPI_DISTRIBUTE_NONE {
            fail!(
                MPI_ERR_ARG,
                "array_of_dargs[{d}] is {argument}, but it must be positive or MPI_DISTRIBUTE_DFLT_DARG"
            );
        }
        let block = match distribution {
            MPI_DISTRIBUTE_NONE if processes == 1 => size,
            MPI_DISTRIBUTE_NONE => {
                fail!(
                    MPI_ERR_ARG,
                    "array_of_psizes[{d}] is {processes}, but it must be 1 because the dimension is not distributed"
                )
            }
            MPI_DISTRIBUTE_BLOCK if default => size / processes + i64::from(size % processes != 0),
            MPI_DISTRIBUTE_BLOCK if (argument as i128) * (processes as i128) < size as i128 => fail!(
                MPI_ERR_ARG,
                "array_of_dargs[{d}] is {argument}, but {processes} blocks of that length do not cover the {size} \
                 elements of the dimension"
            ),
            MPI_DISTRIBUTE_CYCLIC if default => 1,
            MPI_DISTRIBUTE_BLOCK | MPI_DISTRIBUTE_CYCLIC => argument as i64,
            _ => fail!(
                MPI_ERR_ARG,
                "array_of_distribs[{d}] is {distribution}, but it must be MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK or \
                 MPI_DISTRIBUTE_CYCLIC"
            ),
        };
        Ok(Share { size, block, processes, place })
    }

    /// Returns the type of the dimension: whole blocks at equal distances, then perhaps a shorter one at the array's
    /// end.
    fn of(&self, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        let first = self.place.saturating_mul(self.block).min(self.size);
        let period = self.block.saturating_mul(self.processes);
        let rest = self.size - first;
        let whole = rest / period + i64::from(rest % period >= self.block);
        let partial = if rest % period < self.block { rest % period } else { 0 };
        let stride = if whole > 1 { in_bytes(period, old)? } else { 0 };
        let blocks = Datatype::hvector(whole, self.block, stride, old)?;
        let end = Datatype::contiguous(partial, old)?;
        let behind = if partial > 0 { in_bytes(whole * period, old)? } else { 0 };
        dimension(&Datatype::structure(&[1, 1], &[0, behind], &[blocks, end])?, first, self.size, old)
    }
}

impl Datatype {
    /// `MPI_Type_create_subarray`: the block of `subsizes` elements at `starts` in an array of `sizes` elements.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: i32,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let ndims = sizes.len();
        assert!(subsizes.len() == ndims && starts.len() == ndims, "arrays of equal length");
        check_ndims(ndims)?;
        for d in 0..ndims {
            let (size, subsize, start) = (sizes[d], subsizes[d], starts[d]);
            if size < 1 {
                fail!(MPI_ERR_ARG, "array_of_sizes[{d}] is {size}, but it must be at least 1");
            }
            if subsize < 1 || subsize > size {
                fail!(
                    MPI_ERR_ARG,
                    "array_of_subsizes[{d}] is {subsize}, but it must be between 1 and {size}, the size of the array \
                     there"
                );
            }
            if start < 0 || start > size - subsize {
                fail!(
                    MPI_ERR_ARG,
                    "array_of_starts[{d}] is {start}, but it must be between 0 and {}, so that {subsize} of {size} \
                     elements follow",
                    size - subsize
                );
            }
        }
        let mut built = old.clone();
        for d in fastest_first(ndims, order)? {
            built = dimension(&Datatype::contiguous(subsizes[d], &built)?, starts[d], sizes[d], &built)?;
        }
        let arguments = ArrayArguments {
            before: [ndims as i64].into(),
            counts: [sizes, subsizes, starts].concat().into(),
            after: [order as i64].into(),
        };
        Datatype::make(Maker::Array { combiner: MPI_COMBINER_SUBARRAY, arguments, built, old: old.clone() })
    }

    /// `MPI_Type_create_darray`: the part of process `rank` of an array of `gsizes` elements distributed over a grid of
    /// `psizes` processes.
    #[allow(clippy::too_many_arguments)] // the standard's list
    pub fn darray(
        size: i32,
        rank: i32,
        gsizes: &[i64],
        distributions: &[i32],
        arguments: &[i32],
        psizes: &[i32],
        order: i32,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let ndims = gsizes.len();
        assert!(
            distributions.len() == ndims && arguments.len() == ndims && psizes.len() == ndims,
            "arrays of equal length"
        );
        check_ndims(ndims)?;
        if let Some(d) = (0..ndims).find(|d| psizes[*d] < 1) {
            fail!(MPI_ERR_ARG, "array_of_psizes[{d}] is {}, but it must be at least 1", psizes[d]);
        }
        if let Some(d) = (0..ndims).find(|d| gsizes[*d] < 1) {
            fail!(MPI_ERR_ARG, "array_of_gsizes[{d}] is {}, but it must be at least 1", gsizes[d]);
        }
        let grid = psizes.iter().fold(1i128, |n, p| n.saturating_mul(*p as i128));
        if grid != size as i128 {
            fail!(MPI_ERR_ARG, "size is {size}, but the grid of array_of_psizes has {grid} processes");
        }
        if rank < 0 || rank >= size {
            fail!(MPI_ERR_RANK, "rank is {rank}, but it must be between 0 and {}", size - 1);
        }
        // The grid of processes is in row-major order whatever the order of the array.
        let mut places = vec![0i64; ndims];
        let mut number = rank;
        for d in (0..ndims).rev() {
            places[d] = (number % psizes[d]) as i64;
            number /= psizes[d];
        }
        let mut built = old.clone();
        for d in fastest_first(ndims, order)? {
            built =
                Share::new(d, gsizes[d], distributions[d], arguments[d], psizes[d] as i64, places[d])?.of(&built)?;
        }
        let wide = |part: &[i32]| part.iter().map(|v| *v as i64).collect::<Vec<i64>>();
        let arguments = ArrayArguments {
            before: wide(&[size, rank, ndims as i32]).into(),
            counts: gsizes.into(),
            after: [wide(distributions), wide(arguments), wide(psizes), vec![order as i64]].concat().into(),
        };
        Datatype::make(Maker::Array { combiner: MPI_COMBINER_DARRAY, arguments, built, old: old.clone() })
    }
}

fn check_ndims(ndims: usize) -> Result<()> {
    if ndims == 0 {
        fail!(MPI_ERR_ARG, "ndims is 0, but an array has at least one dimension");
    }
    Ok(())
}
