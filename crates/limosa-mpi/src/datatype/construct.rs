//! The general constructors (MPI-5 sections 5.1.2, 5.1.7 and 5.1.10).
//!
//! Counts and block lengths must not be negative; arrays that belong together must be equally long, which the caller
//! ensures.

use std::sync::Arc;

use super::Datatype;
use super::contents::{BlockLengths, Maker};
use crate::consts::*;
use crate::error::Result;
use crate::fail;

fn check_count(count: i64) -> Result<()> {
    if count < 0 {
        fail!(MPI_ERR_COUNT, "count is {count}, but it must not be negative");
    }
    Ok(())
}

fn check_length(length: i64) -> Result<()> {
    if length < 0 {
        fail!(MPI_ERR_ARG, "blocklength is {length}, but it must not be negative");
    }
    Ok(())
}

fn check_lengths(lengths: &[i64], displacements: usize) -> Result<()> {
    assert_eq!(lengths.len(), displacements, "as many block lengths as displacements");
    if let Some(i) = lengths.iter().position(|length| *length < 0) {
        fail!(MPI_ERR_ARG, "array_of_blocklengths[{i}] is {}, but it must not be negative", lengths[i]);
    }
    Ok(())
}

impl Datatype {
    /// `MPI_Type_dup` without the attributes, whose copying needs the handle of the old type.
    pub fn dup(old: &Arc<Datatype>) -> Arc<Datatype> {
        let new = Datatype::make(Maker::Dup(old.clone())).expect("a duplicate is as small as the original");
        if old.is_committed() {
            new.commit();
        }
        new
    }

    /// `MPI_Type_contiguous`.
    pub fn contiguous(count: i64, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_count(count)?;
        Datatype::make(Maker::Contiguous { count, old: old.clone() })
    }

    /// `MPI_Type_vector`: `stride` counts elements.
    pub fn vector(count: i64, length: i64, stride: i64, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_count(count)?;
        check_length(length)?;
        let bytes = match stride.checked_mul(old.extent()) {
            Some(bytes) => bytes,
            None if count <= 1 => 0,
            None => fail!(
                MPI_ERR_VALUE_TOO_LARGE,
                "a stride of {stride} elements of {} bytes does not fit in 64 bits",
                old.extent()
            ),
        };
        Datatype::make(Maker::Vector { count, length, stride, bytes, old: old.clone() })
    }

    /// `MPI_Type_create_hvector`: `stride` counts bytes.
    pub fn hvector(count: i64, length: i64, stride: i64, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_count(count)?;
        check_length(length)?;
        Datatype::make(Maker::Hvector { count, length, stride, old: old.clone() })
    }

    /// `MPI_Type_indexed`: displacements count elements.
    pub fn indexed(lengths: &[i64], displacements: &[i64], old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_lengths(lengths, displacements.len())?;
        Datatype::any_indexed(
            MPI_COMBINER_INDEXED,
            BlockLengths::Each(lengths.into()),
            displacements,
            old.extent(),
            old,
        )
    }

    /// `MPI_Type_create_hindexed`: displacements count bytes.
    pub fn hindexed(lengths: &[i64], displacements: &[i64], old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_lengths(lengths, displacements.len())?;
        Datatype::any_indexed(MPI_COMBINER_HINDEXED, BlockLengths::Each(lengths.into()), displacements, 1, old)
    }

    /// `MPI_Type_create_indexed_block`: displacements count elements.
    pub fn indexed_block(length: i64, displacements: &[i64], old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_length(length)?;
        Datatype::any_indexed(MPI_COMBINER_INDEXED_BLOCK, BlockLengths::All(length), displacements, old.extent(), old)
    }

    /// `MPI_Type_create_hindexed_block`: displacements count bytes.
    pub fn hindexed_block(length: i64, displacements: &[i64], old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        check_length(length)?;
        Datatype::any_indexed(MPI_COMBINER_HINDEXED_BLOCK, BlockLengths::All(length), displacements, 1, old)
    }

    fn any_indexed(
        combiner: i32,
        lengths: BlockLengths,
        displacements: &[i64],
        unit: i64,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        Datatype::make(Maker::Indexed {
            combiner,
            lengths,
            displacements: displacements.into(),
            unit,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_struct`: displacements count bytes.
    pub fn structure(lengths: &[i64], displacements: &[i64], types: &[Arc<Datatype>]) -> Result<Arc<Datatype>> {
        check_lengths(lengths, displacements.len())?;
        assert_eq!(types.len(), displacements.len(), "as many types as displacements");
        Datatype::make(Maker::Struct {
            lengths: lengths.into(),
            displacements: displacements.into(),
            types: types.into(),
        })
    }

    /// `MPI_Type_create_resized`.
    pub fn resized(old: &Arc<Datatype>, lb: i64, extent: i64) -> Result<Arc<Datatype>> {
        Datatype::make(Maker::Resized { lb, extent, old: old.clone() })
    }
}
