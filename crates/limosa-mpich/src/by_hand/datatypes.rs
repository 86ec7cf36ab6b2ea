//! Functions of datatypes that MPI-5 no longer has, and the contents of a datatype.

use crate::convert::{Datatype, Handle, Handles, Kind, error_code_to_theirs, result, set_handle};
use crate::handles::{lower_bound, upper_bound};
use crate::standard::{abi, standard_value as standard, their_value as theirs};
use crate::standard::{distribution_argument_to_theirs, distribution_to_theirs, order_to_theirs};

pub(crate) unsafe fn mpi_address(location: usize, address: usize) -> i32 {
    // SAFETY: the addresses are the program's.
    unsafe { result(abi::MPI_Get_address(location, address)) }
}

/// Asks for the lower bound and the extent of a datatype.
unsafe fn bounds(datatype: Handle<Datatype>) -> Result<(i64, i64), i32> {
    let (mut lower, mut extent) = (0i64, 0i64);
    // SAFETY: the handle is checked by the library; the addresses are those of locals.
    let code = unsafe {
        let datatype = Datatype::to_standard(datatype);
        abi::MPI_Type_get_extent(datatype, &raw mut lower as usize, &raw mut extent as usize)
    };
    if code == 0 { Ok((lower, extent)) } else { Err(error_code_to_theirs(code)) }
}

unsafe fn bound(datatype: Handle<Datatype>, at: usize, choose: fn((i64, i64)) -> i64) -> i32 {
    // SAFETY: the address is the program's.
    unsafe {
        match bounds(datatype) {
            Ok(_) if at == 0 => theirs::MPI_ERR_ARG,
            Ok(both) => {
                *(at as *mut i64) = choose(both);
                0
            }
            Err(code) => code,
        }
    }
}

pub(crate) unsafe fn mpi_type_extent(datatype: Handle<Datatype>, extent: usize) -> i32 {
    // SAFETY: the arguments are the program's.
    unsafe { bound(datatype, extent, |(_, extent)| extent) }
}

pub(crate) unsafe fn mpi_type_lb(datatype: Handle<Datatype>, displacement: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { bound(datatype, displacement, |(lower, _)| lower) }
}

pub(crate) unsafe fn mpi_type_ub(datatype: Handle<Datatype>, displacement: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { bound(datatype, displacement, |(lower, extent)| lower + extent) }
}

pub(crate) unsafe fn mpi_type_hvector(
    count: i32,
    length: i32,
    stride: i64,
    oldtype: Handle<Datatype>,
    newtype: usize,
) -> i32 {
    let mut made = Datatype::NULL;
    // SAFETY: the library checks the arguments.
    unsafe {
        let oldtype = Datatype::to_standard(oldtype);
        let code = abi::MPI_Type_create_hvector(count, length, stride, oldtype, &raw mut made as usize);
        set_handle::<Datatype>(newtype, made);
        result(code)
    }
}

pub(crate) unsafe fn mpi_type_hindexed(
    count: i32,
    lengths: usize,
    displs: usize,
    oldtype: Handle<Datatype>,
    newtype: usize,
) -> i32 {
    let mut made = Datatype::NULL;
    // SAFETY: likewise.
    unsafe {
        let oldtype = Datatype::to_standard(oldtype);
        let code = abi::MPI_Type_create_hindexed(count, lengths, displs, oldtype, &raw mut made as usize);
        set_handle::<Datatype>(newtype, made);
        result(code)
    }
}

/// Blocks of the datatypes `MPI_LB` and `MPI_UB`, which the standard no longer has, set the bounds of the new one.
pub(crate) unsafe fn mpi_type_struct(count: i32, lengths: usize, displs: usize, types: usize, newtype: usize) -> i32 {
    // SAFETY: the arrays have `count` elements; the library checks what they hold.
    unsafe {
        let (mut lower, mut upper) = (None::<i64>, None::<i64>);
        let (mut kept_lengths, mut kept_displs, mut kept_types) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..usize::try_from(count).unwrap_or(0) {
            let displ = *(displs as *const i64).add(index);
            match *(types as *const Handle<Datatype>).add(index) {
                marker if marker == lower_bound() => lower = Some(lower.map_or(displ, |least| least.min(displ))),
                marker if marker == upper_bound() => upper = Some(upper.map_or(displ, |most| most.max(displ))),
                datatype => {
                    kept_lengths.push(*(lengths as *const i32).add(index));
                    kept_displs.push(displ);
                    kept_types.push(Datatype::to_standard(datatype));
                }
            }
        }
        let kept = if count < 0 { count } else { kept_types.len() as i32 };
        let arrays = (kept_lengths.as_ptr() as usize, kept_displs.as_ptr() as usize, kept_types.as_ptr() as usize);
        let mut made = Datatype::NULL;
        let mut code = abi::MPI_Type_create_struct(kept, arrays.0, arrays.1, arrays.2, &raw mut made as usize);
        if code == 0 && (lower.is_some() || upper.is_some()) {
            let (mut first, mut extent, mut resized) = (0i64, 0i64, Datatype::NULL);
            abi::MPI_Type_get_extent(made, &raw mut first as usize, &raw mut extent as usize);
            let (low, high) = (lower.unwrap_or(first), upper.unwrap_or(first + extent));
            code = abi::MPI_Type_create_resized(made, low, high - low, &raw mut resized as usize);
            abi::MPI_Type_free(&raw mut made as usize);
            made = resized;
        }
        set_handle::<Datatype>(newtype, made);
        result(code)
    }
}

/// Converts the integers of a datatype's contents that are constants.
unsafe fn convert_integers(combiner: i32, integers: usize, length: usize, has_large_counts: bool) {
    if integers == 0 {
        return;
    }
    // SAFETY: the library has written that many.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers as *mut i32, length) };
    let mut convert = |first: usize, count: usize, convert: fn(i32) -> i32| {
        for number in integers.iter_mut().skip(first).take(count) {
            *number = convert(*number);
        }
    };
    // Behind the sizes, which are elsewhere if they are large.
    let sizes = if has_large_counts { 0 } else { 1 };
    match combiner {
        standard::MPI_COMBINER_SUBARRAY => convert(length - 1, 1, order_to_theirs),
        standard::MPI_COMBINER_DARRAY => {
            let dimensions = (length - 4) / (3 + sizes);
            let first = 3 + sizes * dimensions;
            convert(first, dimensions, distribution_to_theirs);
            convert(first + dimensions, dimensions, distribution_argument_to_theirs);
            convert(length - 1, 1, order_to_theirs);
        }
        _ => {}
    }
}

pub(crate) unsafe fn mpi_type_get_contents(
    datatype: Handle<Datatype>,
    max_integers: i32,
    max_addresses: i32,
    max_datatypes: i32,
    integers: usize,
    addresses: usize,
    datatypes: usize,
) -> i32 {
    let datatype = Datatype::to_standard(datatype);
    let (mut count, mut combiner, mut other, mut types) = (0i32, 0i32, 0i32, 0i32);
    let mut own = Handles::<Datatype>::empty(if datatypes == 0 { 0 } else { i64::from(max_datatypes) });
    // SAFETY: the arrays are the program's, of the lengths that it says.
    unsafe {
        let at = own.address(datatypes);
        let code =
            abi::MPI_Type_get_contents(datatype, max_integers, max_addresses, max_datatypes, integers, addresses, at);
        if code == 0 {
            let places = [&raw mut count, &raw mut other, &raw mut types, &raw mut combiner].map(|at| at as usize);
            abi::MPI_Type_get_envelope(datatype, places[0], places[1], places[2], places[3]);
            convert_integers(combiner, integers, count as usize, false);
            own.write_first(datatypes, types as usize);
        }
        result(code)
    }
}

pub(crate) unsafe fn mpi_type_get_contents_c(
    datatype: Handle<Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: usize,
    addresses: usize,
    large_counts: usize,
    datatypes: usize,
) -> i32 {
    let datatype = Datatype::to_standard(datatype);
    let (mut count, mut other, mut large, mut types, mut combiner) = (0i64, 0i64, 0i64, 0i64, 0i32);
    let mut own = Handles::<Datatype>::empty(if datatypes == 0 { 0 } else { max_datatypes });
    // SAFETY: likewise.
    unsafe {
        let at = own.address(datatypes);
        let code = abi::MPI_Type_get_contents_c(
            datatype,
            max_integers,
            max_addresses,
            max_large_counts,
            max_datatypes,
            integers,
            addresses,
            large_counts,
            at,
        );
        if code == 0 {
            let places = [&raw mut count, &raw mut other, &raw mut large, &raw mut types].map(|at| at as usize);
            let combiner_at = &raw mut combiner as usize;
            abi::MPI_Type_get_envelope_c(datatype, places[0], places[1], places[2], places[3], combiner_at);
            convert_integers(combiner, integers, count as usize, large > 0);
            own.write_first(datatypes, types as usize);
        }
        result(code)
    }
}
