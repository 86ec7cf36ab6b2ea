//! Datatypes (MPI-5 sections 5.1, 3.2.5, 5.1.11, 13.3 and 19.1.5). Packing is in [`pack`](super::pack).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::{Error, Result, consts};
use parking_lot::Mutex;

use crate::args::{self, IntArray, OutInt};
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds;
use crate::status::Status;

/// Registers a new derived type.
fn derived(cx: &Cx, datatype: Arc<Datatype>, newtype: &mut Handle) -> Result<()> {
    *newtype = cx.register(if cx.large() { datatype.into_large() } else { datatype })?;
    Ok(())
}

/// Returns the handle of a predefined type. A type without a constant is registered on first use.
fn predefined(cx: &Cx, datatype: Arc<Datatype>) -> Result<Handle> {
    static FIRST: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FIRST.lock();
    match datatype.handle() {
        0 => cx.register(datatype),
        handle => Ok(Handle(handle)),
    }
}

/// Returns the handle of a type that a call did not create: its own if it is predefined, otherwise that of a copy,
/// which the program must free.
pub(crate) fn handle_of_part(cx: &Cx, datatype: Arc<Datatype>) -> Result<Handle> {
    if datatype.is_predefined() { predefined(cx, datatype) } else { cx.register(datatype.again()) }
}

pub(crate) fn mpi_type_contiguous(
    cx: &Cx,
    count: i64,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    derived(cx, Datatype::contiguous(count, oldtype)?, newtype)
}

pub(crate) fn mpi_type_vector(
    cx: &Cx,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    derived(cx, Datatype::vector(count, blocklength, stride, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_hvector(
    cx: &Cx,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    derived(cx, Datatype::hvector(count, blocklength, stride, oldtype)?, newtype)
}

/// Returns block lengths and displacements of an indexed type.
fn blocks(count: i64, lengths: IntArray, displacements: IntArray) -> Result<(Vec<i64>, Vec<i64>)> {
    Ok((
        lengths.to_vec(count as usize, "array_of_blocklengths")?,
        displacements.to_vec(count as usize, "array_of_displacements")?,
    ))
}

pub(crate) fn mpi_type_indexed(
    cx: &Cx,
    count: i64,
    array_of_blocklengths: IntArray,
    array_of_displacements: IntArray,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let (lengths, displacements) = blocks(count, array_of_blocklengths, array_of_displacements)?;
    derived(cx, Datatype::indexed(&lengths, &displacements, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_hindexed(
    cx: &Cx,
    count: i64,
    array_of_blocklengths: IntArray,
    array_of_displacements: IntArray,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let (lengths, displacements) = blocks(count, array_of_blocklengths, array_of_displacements)?;
    derived(cx, Datatype::hindexed(&lengths, &displacements, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_indexed_block(
    cx: &Cx,
    count: i64,
    blocklength: i64,
    array_of_displacements: IntArray,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let displacements = array_of_displacements.to_vec(count as usize, "array_of_displacements")?;
    derived(cx, Datatype::indexed_block(blocklength, &displacements, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_hindexed_block(
    cx: &Cx,
    count: i64,
    blocklength: i64,
    array_of_displacements: IntArray,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let displacements = array_of_displacements.to_vec(count as usize, "array_of_displacements")?;
    derived(cx, Datatype::hindexed_block(blocklength, &displacements, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_struct(
    cx: &Cx,
    count: i64,
    array_of_blocklengths: IntArray,
    array_of_displacements: IntArray,
    array_of_types: *const Handle,
    newtype: &mut Handle,
) -> Result<()> {
    let (lengths, displacements) = blocks(count, array_of_blocklengths, array_of_displacements)?;
    let types = cx.get_all(array_of_types, count as usize, "array_of_types")?;
    derived(cx, Datatype::structure(&lengths, &displacements, &types)?, newtype)
}

pub(crate) fn mpi_type_create_subarray(
    cx: &Cx,
    ndims: c_int,
    array_of_sizes: IntArray,
    array_of_subsizes: IntArray,
    array_of_starts: IntArray,
    order: c_int,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let n = ndims as usize;
    let (sizes, subsizes) =
        (array_of_sizes.to_vec(n, "array_of_sizes")?, array_of_subsizes.to_vec(n, "array_of_subsizes")?);
    let starts = array_of_starts.to_vec(n, "array_of_starts")?;
    derived(cx, Datatype::subarray(&sizes, &subsizes, &starts, order, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_darray(
    cx: &Cx,
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: IntArray,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: &Arc<kinds::Datatype>,
    newtype: &mut Handle,
) -> Result<()> {
    let n = ndims as usize;
    let sizes = array_of_gsizes.to_vec(n, "array_of_gsizes")?;
    let distributions = cx.slice(array_of_distribs, n, "array_of_distribs")?;
    let arguments = cx.slice(array_of_dargs, n, "array_of_dargs")?;
    let processes = cx.slice(array_of_psizes, n, "array_of_psizes")?;
    derived(cx, Datatype::darray(size, rank, &sizes, distributions, arguments, processes, order, oldtype)?, newtype)
}

pub(crate) fn mpi_type_create_resized(
    cx: &Cx,
    oldtype: &Arc<kinds::Datatype>,
    lb: i64,
    extent: i64,
    newtype: &mut Handle,
) -> Result<()> {
    derived(cx, Datatype::resized(oldtype, lb, extent)?, newtype)
}

pub(crate) fn mpi_type_dup(cx: &Cx, oldtype: &Arc<kinds::Datatype>, newtype: &mut Handle) -> Result<()> {
    let new = Datatype::dup(oldtype);
    oldtype.attributes.copy_to(oldtype.handle(), &new.attributes)?;
    *newtype = cx.register(new)?;
    Ok(())
}

pub(crate) fn mpi_type_create_f90_real(cx: &Cx, p: c_int, r: c_int, newtype: &mut Handle) -> Result<()> {
    *newtype = predefined(cx, Datatype::f90_real(p, r)?)?;
    Ok(())
}

pub(crate) fn mpi_type_create_f90_complex(cx: &Cx, p: c_int, r: c_int, newtype: &mut Handle) -> Result<()> {
    *newtype = predefined(cx, Datatype::f90_complex(p, r)?)?;
    Ok(())
}

pub(crate) fn mpi_type_create_f90_integer(cx: &Cx, r: c_int, newtype: &mut Handle) -> Result<()> {
    *newtype = predefined(cx, Datatype::f90_integer(r)?)?;
    Ok(())
}

pub(crate) fn mpi_type_match_size(cx: &Cx, typeclass: c_int, size: c_int, datatype: &mut Handle) -> Result<()> {
    *datatype = predefined(cx, Datatype::match_size(typeclass, size as i64)?)?;
    Ok(())
}

pub(crate) fn mpi_type_get_value_index(
    cx: &Cx,
    value_type: &Arc<kinds::Datatype>,
    index_type: &Arc<kinds::Datatype>,
    pair_type: &mut Handle,
) -> Result<()> {
    *pair_type = match Datatype::value_index(value_type, index_type) {
        Some(pair) => predefined(cx, pair)?,
        None => Handle::predefined(consts::MPI_DATATYPE_NULL),
    };
    Ok(())
}

pub(crate) fn mpi_type_commit(cx: &Cx, datatype: &mut Handle) -> Result<()> {
    cx.get::<Datatype>(*datatype, "datatype")?.commit();
    Ok(())
}

pub(crate) fn mpi_type_free(cx: &Cx, datatype: &mut Handle) -> Result<()> {
    let object = cx.get::<Datatype>(*datatype, "datatype")?;
    if object.is_predefined() {
        return Err(Error::new(
            consts::MPI_ERR_TYPE,
            format!("datatype is {}, which is predefined and cannot be freed", object.describe()),
        ));
    }
    object.attributes.delete_all(datatype.0)?;
    cx.free::<Datatype>(datatype, "datatype")?.set_handle(0);
    Ok(())
}

pub(crate) fn mpi_type_size(_cx: &Cx, datatype: &Arc<kinds::Datatype>, size: OutInt) -> Result<()> {
    size.set(datatype.size());
    Ok(())
}

pub(crate) fn mpi_type_size_x(_cx: &Cx, datatype: &Arc<kinds::Datatype>, size: &mut i64) -> Result<()> {
    *size = datatype.size();
    Ok(())
}

pub(crate) fn mpi_type_get_extent(_cx: &Cx, datatype: &Arc<kinds::Datatype>, lb: OutInt, extent: OutInt) -> Result<()> {
    lb.set(datatype.lb());
    extent.set(datatype.extent());
    Ok(())
}

pub(crate) fn mpi_type_get_extent_x(
    _cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    lb: &mut i64,
    extent: &mut i64,
) -> Result<()> {
    (*lb, *extent) = (datatype.lb(), datatype.extent());
    Ok(())
}

pub(crate) fn mpi_type_get_true_extent(
    _cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    true_lb: OutInt,
    true_extent: OutInt,
) -> Result<()> {
    true_lb.set(datatype.true_lb());
    true_extent.set(datatype.true_extent());
    Ok(())
}

pub(crate) fn mpi_type_get_true_extent_x(
    _cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    true_lb: &mut i64,
    true_extent: &mut i64,
) -> Result<()> {
    (*true_lb, *true_extent) = (datatype.true_lb(), datatype.true_extent());
    Ok(())
}

/// Refuses to return the arguments of a large-count constructor in `int`s.
fn check_form(cx: &Cx, datatype: &Datatype) -> Result<()> {
    if datatype.is_large() && !cx.large() {
        let detail = format!(
            "datatype was made by a large-count constructor, so that only {}_c can tell its arguments",
            cx.name()
        );
        return Err(Error::new(consts::MPI_ERR_TYPE, detail));
    }
    Ok(())
}

pub(crate) fn mpi_type_get_envelope(
    cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    num_integers: OutInt,
    num_addresses: OutInt,
    num_large_counts: OutInt,
    num_datatypes: OutInt,
    combiner: &mut c_int,
) -> Result<()> {
    check_form(cx, datatype)?;
    if cx.large() {
        num_large_counts.check("num_large_counts")?;
    }
    let envelope = datatype.envelope();
    *combiner = envelope.combiner;
    num_integers.set(envelope.integers as i64);
    num_addresses.set(envelope.addresses as i64);
    num_large_counts.set(envelope.large_counts as i64);
    num_datatypes.set(envelope.types as i64);
    Ok(())
}

pub(crate) fn mpi_type_get_contents(
    cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_large_counts: *mut i64,
    array_of_datatypes: *mut Handle,
) -> Result<()> {
    check_form(cx, datatype)?;
    let contents = datatype.contents()?;
    for (max, needed, arg) in [
        (max_integers, contents.integers.len(), "max_integers"),
        (max_addresses, contents.addresses.len(), "max_addresses"),
        (max_large_counts, contents.large_counts.len(), "max_large_counts"),
        (max_datatypes, contents.types.len(), "max_datatypes"),
    ] {
        if max < needed as i64 {
            let detail = format!("{arg} is {max}, but there are {needed}, as MPI_Type_get_envelope says");
            return Err(Error::new(consts::MPI_ERR_ARG, detail));
        }
    }
    let integers = cx.slice_mut(array_of_integers, contents.integers.len(), "array_of_integers")?;
    let addresses = cx.slice_mut(array_of_addresses, contents.addresses.len(), "array_of_addresses")?;
    let large_counts = cx.slice_mut(array_of_large_counts, contents.large_counts.len(), "array_of_large_counts")?;
    let datatypes = cx.slice_mut(array_of_datatypes, contents.types.len(), "array_of_datatypes")?;
    for (place, value) in integers.iter_mut().zip(&contents.integers) {
        *place = *value as c_int; // passed as an int
    }
    addresses.copy_from_slice(&contents.addresses);
    large_counts.copy_from_slice(&contents.large_counts);
    for (place, datatype) in datatypes.iter_mut().zip(contents.types) {
        *place = handle_of_part(cx, datatype)?;
    }
    Ok(())
}

pub(crate) fn mpi_type_set_name(_cx: &Cx, datatype: &Arc<kinds::Datatype>, type_name: &CStr) -> Result<()> {
    let name = type_name.to_string_lossy();
    if name.len() >= consts::MPI_MAX_OBJECT_NAME as usize {
        let detail =
            format!("type_name has {} bytes, but at most {} are allowed", name.len(), consts::MPI_MAX_OBJECT_NAME - 1);
        return Err(Error::new(consts::MPI_ERR_ARG, detail));
    }
    datatype.set_name(&name);
    Ok(())
}

pub(crate) fn mpi_type_get_name(
    _cx: &Cx,
    datatype: Option<&Arc<kinds::Datatype>>,
    type_name: *mut c_char,
    resultlen: &mut c_int,
) -> Result<()> {
    let name = datatype.map_or_else(|| "MPI_DATATYPE_NULL".to_owned(), |datatype| datatype.name());
    // SAFETY: the program promises room for MPI_MAX_OBJECT_NAME bytes.
    *resultlen = unsafe { args::copy_text(type_name, consts::MPI_MAX_OBJECT_NAME as usize, &name) };
    Ok(())
}

pub(crate) fn mpi_type_set_attr(
    _cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    type_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<()> {
    datatype.attributes.set(datatype.handle(), type_keyval, attribute_val as usize)
}

pub(crate) fn mpi_type_get_attr(
    _cx: &Cx,
    datatype: &Arc<kinds::Datatype>,
    type_keyval: c_int,
    attribute_val: *mut c_void,
    flag: &mut c_int,
) -> Result<()> {
    super::attr::give(datatype.attributes.get(type_keyval)?, attribute_val, flag)
}

pub(crate) fn mpi_type_delete_attr(_cx: &Cx, datatype: &Arc<kinds::Datatype>, type_keyval: c_int) -> Result<()> {
    datatype.attributes.delete(datatype.handle(), type_keyval)
}

/// Converts a count that may be undefined.
fn or_undefined(count: Option<i64>) -> i64 {
    count.unwrap_or(consts::MPI_UNDEFINED as i64)
}

/// Returns the number of received basic elements.
fn elements(status: &Status, datatype: &Datatype) -> i64 {
    match status.bytes() {
        -1 => consts::MPI_UNDEFINED as i64,
        bytes => or_undefined(datatype.elements_of_bytes(bytes)),
    }
}

pub(crate) fn mpi_get_count(_cx: &Cx, status: &Status, datatype: &Arc<kinds::Datatype>, count: OutInt) -> Result<()> {
    count.set(match status.bytes() {
        -1 => consts::MPI_UNDEFINED as i64,
        bytes => or_undefined(datatype.count_of_bytes(bytes)),
    });
    Ok(())
}

pub(crate) fn mpi_get_elements(
    _cx: &Cx,
    status: &Status,
    datatype: &Arc<kinds::Datatype>,
    count: OutInt,
) -> Result<()> {
    count.set(elements(status, datatype));
    Ok(())
}

pub(crate) fn mpi_get_elements_x(
    _cx: &Cx,
    status: &Status,
    datatype: &Arc<kinds::Datatype>,
    count: &mut i64,
) -> Result<()> {
    *count = elements(status, datatype);
    Ok(())
}

pub(crate) fn mpi_status_set_elements(
    _cx: &Cx,
    status: &mut Status,
    datatype: &Arc<kinds::Datatype>,
    count: i64,
) -> Result<()> {
    if count == consts::MPI_UNDEFINED as i64 {
        status.set_bytes(-1);
        return Ok(());
    }
    args::at_least(count, 0, "count", consts::MPI_ERR_COUNT)?;
    let bytes = datatype.bytes_of_elements(count).ok_or_else(|| {
        Error::new(
            consts::MPI_ERR_COUNT,
            format!("count is {count}, but that is not a possible number of basic elements of {}", datatype.describe()),
        )
    })?;
    status.set_bytes(bytes);
    Ok(())
}

pub(crate) fn mpi_status_set_elements_x(
    cx: &Cx,
    status: &mut Status,
    datatype: &Arc<kinds::Datatype>,
    count: i64,
) -> Result<()> {
    mpi_status_set_elements(cx, status, datatype, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cx(large: bool) -> Cx {
        Cx::new("MPI_Test", large)
    }

    fn int() -> Arc<Datatype> {
        Datatype::named(consts::MPI_INT)
    }

    /// Returns handles of a vector type and of its element type, as `MPI_Type_get_contents` returns it.
    fn vector_of_pairs() -> (Handle, Handle) {
        let (mut pair, mut vector, mut part) = (Handle::default(), Handle::default(), Handle::default());
        mpi_type_contiguous(&cx(false), 2, &int(), &mut pair).unwrap();
        let old = cx(false).get::<Datatype>(pair, "oldtype").unwrap();
        mpi_type_vector(&cx(false), 3, 1, 2, &old, &mut vector).unwrap();
        mpi_type_free(&cx(false), &mut pair).unwrap();
        let datatype = cx(false).get::<Datatype>(vector, "datatype").unwrap();
        let (mut integers, null) = ([0; 3], std::ptr::null_mut());
        let integers = integers.as_mut_ptr();
        mpi_type_get_contents(&cx(false), &datatype, 3, 0, 0, 1, integers, null, null, &mut part).unwrap();
        (vector, part)
    }

    #[test]
    fn predefined_types_cannot_be_freed() {
        let mut real = Handle::default();
        mpi_type_create_f90_real(&cx(false), 6, 30, &mut real).unwrap();
        for mut handle in [Handle::predefined(consts::MPI_INT), real] {
            let before = handle;
            assert_eq!(mpi_type_free(&cx(false), &mut handle).unwrap_err().class, consts::MPI_ERR_TYPE);
            assert_eq!(handle, before);
        }
        let mut again = Handle::default();
        mpi_type_create_f90_real(&cx(false), 6, 30, &mut again).unwrap();
        assert_eq!(again, real);
    }

    #[test]
    fn contents_come_with_handles_of_their_own() {
        let (mut vector, mut part) = vector_of_pairs();
        mpi_type_free(&cx(false), &mut vector).unwrap();
        assert_eq!(vector, Handle::predefined(consts::MPI_DATATYPE_NULL));
        assert_eq!(cx(false).get::<Datatype>(part, "datatype").unwrap().size(), 8);
        mpi_type_free(&cx(false), &mut part).unwrap();
    }

    #[test]
    fn only_the_large_form_tells_the_arguments_of_a_large_constructor() {
        let (mut handle, mut combiner) = (Handle::default(), 0);
        mpi_type_contiguous(&cx(true), 1 << 40, &int(), &mut handle).unwrap();
        let datatype = cx(true).get::<Datatype>(handle, "datatype").unwrap();
        let absent = OutInt::absent;
        let base = mpi_type_get_envelope(&cx(false), &datatype, absent(), absent(), absent(), absent(), &mut combiner);
        assert_eq!(base.unwrap_err().class, consts::MPI_ERR_TYPE);
        let mut counts = 0i64;
        let place = OutInt::from(&raw mut counts);
        mpi_type_get_envelope(&cx(true), &datatype, absent(), absent(), place, absent(), &mut combiner).unwrap();
        assert_eq!((counts, combiner), (1, consts::MPI_COMBINER_CONTIGUOUS));
        let mut size = 0;
        mpi_type_size(&cx(false), &datatype, OutInt::from(&raw mut size)).unwrap();
        assert_eq!(size, consts::MPI_UNDEFINED);
        mpi_type_free(&cx(true), &mut handle).unwrap();
    }

    #[test]
    fn elements_set_in_a_status_are_those_that_are_got() {
        let pair = Datatype::named(consts::MPI_DOUBLE_INT);
        let mut status = Status::new(0, 0, 0);
        for wanted in [0, 1, 2, 7] {
            let (mut elements, mut count) = (0, 0);
            mpi_status_set_elements(&cx(false), &mut status, &pair, wanted).unwrap();
            mpi_get_elements(&cx(false), &status, &pair, OutInt::from(&raw mut elements)).unwrap();
            mpi_get_count(&cx(false), &status, &pair, OutInt::from(&raw mut count)).unwrap();
            assert_eq!(elements as i64, wanted);
            assert_eq!(count, if wanted % 2 == 0 { wanted as c_int / 2 } else { consts::MPI_UNDEFINED });
        }
        assert_eq!(
            mpi_status_set_elements(&cx(false), &mut status, &pair, -5).unwrap_err().class,
            consts::MPI_ERR_COUNT
        );
    }
}
