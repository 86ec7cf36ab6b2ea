//! Predefined datatypes that are found by their properties: parameterised Fortran types, which have no name,
//! value-index pairs, types of a class and size (MPI-5 sections 6.9.4 and 19.1.5).
//!
//! The same arguments always give the same datatype, which the program cannot free. Only value-index pairs with a name
//! exist: the standard leaves others open, and programs such as mpi4py 4 do not expect them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Datatype;
use super::contents::Maker;
use super::named::PAIRS;
use crate::consts::*;
use crate::error::Result;
use crate::fail;

/// All parameterised types made so far, by combiner and parameters.
static MADE: Mutex<Vec<(Key, Arc<Datatype>)>> = Mutex::new(Vec::new());

type Key = (i32, i32, i32);

/// Returns the real kind with at least `p` decimal digits and decimal exponents up to `r`, as bytes of a REAL.
fn real_size(p: i32, r: i32) -> Result<i32> {
    if p == MPI_UNDEFINED && r == MPI_UNDEFINED {
        fail!(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED; at least one must be given");
    }
    let wanted = |value, limit| value == MPI_UNDEFINED || value <= limit;
    match [(6, 37, 4), (15, 307, 8), (33, 4931, 16)]
        .into_iter()
        .find(|(digits, range, _)| wanted(p, *digits) && wanted(r, *range))
    {
        Some((_, _, size)) => Ok(size),
        None => fail!(
            MPI_ERR_ARG,
            "no real type has precision {p} and exponent range {r}; the widest has precision 33 and range 4931"
        ),
    }
}

impl Datatype {
    /// `MPI_Type_create_f90_real`: `p` digits, exponents up to `r`; either may be `MPI_UNDEFINED`.
    pub fn f90_real(p: i32, r: i32) -> Result<Arc<Datatype>> {
        let same = match real_size(p, r)? {
            4 => MPI_REAL4,
            8 => MPI_REAL8,
            _ => MPI_REAL16,
        };
        Datatype::f90(MPI_COMBINER_F90_REAL, &[p, r], same)
    }

    /// `MPI_Type_create_f90_complex`.
    pub fn f90_complex(p: i32, r: i32) -> Result<Arc<Datatype>> {
        let same = match real_size(p, r)? {
            4 => MPI_COMPLEX8,
            8 => MPI_COMPLEX16,
            _ => MPI_COMPLEX32,
        };
        Datatype::f90(MPI_COMBINER_F90_COMPLEX, &[p, r], same)
    }

    /// `MPI_Type_create_f90_integer`: integers of `r` decimal digits.
    pub fn f90_integer(r: i32) -> Result<Arc<Datatype>> {
        let same = match r {
            ..=2 => MPI_INTEGER1,
            3..=4 => MPI_INTEGER2,
            5..=9 => MPI_INTEGER4,
            10..=18 => MPI_INTEGER8,
            19..=38 => MPI_INTEGER16,
            _ => fail!(MPI_ERR_ARG, "no integer type has {r} decimal digits; the widest has 38"),
        };
        Datatype::f90(MPI_COMBINER_F90_INTEGER, &[r], same)
    }

    fn f90(combiner: i32, arguments: &[i32], same: i32) -> Result<Arc<Datatype>> {
        let key = (combiner, arguments[0], arguments.get(1).copied().unwrap_or(0));
        let mut made = MADE.lock();
        if let Some((_, datatype)) = made.iter().find(|(k, _)| *k == key) {
            return Ok(datatype.clone());
        }
        let datatype =
            Datatype::make(Maker::F90 { combiner, arguments: arguments.into(), same: Datatype::named(same) })?;
        datatype.commit();
        made.push((key, datatype.clone()));
        Ok(datatype)
    }

    /// `MPI_Type_get_value_index`: the pair type of these two types, `None` if there is none.
    pub fn value_index(value: &Arc<Datatype>, index: &Arc<Datatype>) -> Option<Arc<Datatype>> {
        let (value, index) = (value.as_basic()?, index.as_basic()?);
        let pair = PAIRS.iter().find(|pair| pair.value == value.handle && pair.index == index.handle)?;
        Some(Datatype::named(pair.handle))
    }

    /// `MPI_Type_match_size`: the Fortran type of a class that has so many bytes.
    pub fn match_size(class: i32, size: i64) -> Result<Arc<Datatype>> {
        let (name, types): (&str, &[i32]) = match class {
            MPI_TYPECLASS_REAL => ("real", &[MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16]),
            MPI_TYPECLASS_INTEGER => {
                ("integer", &[MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16])
            }
            MPI_TYPECLASS_COMPLEX => ("complex", &[MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32]),
            _ => fail!(
                MPI_ERR_ARG,
                "typeclass is {class}, but it must be MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER or \
                 MPI_TYPECLASS_COMPLEX"
            ),
        };
        match types.iter().map(|handle| Datatype::named(*handle)).find(|datatype| datatype.size() == size) {
            Some(datatype) => Ok(datatype),
            None => fail!(MPI_ERR_ARG, "no {name} type has {size} bytes"),
        }
    }
}
