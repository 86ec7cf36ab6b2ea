//! The tool information interface (MPI-5 chapter 15): initialisation and finalisation, enumerations, categories and
//! sources. Variables are in `tool_variables.rs`, events in `tool_event.rs`.
//!
//! All pointers arrive raw: a null pointer means that the program ignores the result.

use std::ffi::{CStr, c_char, c_int, c_void};

use limosa_mpi::consts::{self, ErrorClass};
use limosa_mpi::info::Info;
use limosa_mpi::tool::category::{self, Category};
use limosa_mpi::tool::control::Variable;
use limosa_mpi::tool::{self, control, error, event};
use limosa_mpi::{Error, Result};

use crate::args;
use crate::cx::Cx;
use crate::handles::Handle;

/// Stores a result, unless the program ignores it.
pub(super) fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.
        unsafe { to.write(value) };
    }
}

/// Stores a text, cut off if its array is too short, and the required length (MPI-5 section 15.3.3).
pub(super) fn put_text(to: *mut c_char, len: *mut c_int, text: &str) {
    if len.is_null() {
        return;
    }
    // SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.
    let room = unsafe { *len };
    if !to.is_null() && room > 0 {
        // SAFETY: the program promises an array of so many bytes.
        unsafe { args::copy_text(to, room as usize, text) };
    }
    put(len, text.len() as c_int + 1);
}

/// Stores a new, empty info object, unless the program ignores it.
pub(super) fn put_info(cx: &Cx, to: *mut Handle) -> Result<()> {
    if !to.is_null() {
        put(to, cx.register(Info::new())?);
    }
    Ok(())
}

/// Stores as many numbers as an array of `len` elements can take.
fn put_all(to: *mut c_int, len: c_int, values: &[usize]) -> Result<()> {
    if len < 0 || (to.is_null() && len > 0) {
        return Err(error(consts::MPI_T_ERR_INVALID));
    }
    for (at, value) in values.iter().take(len as usize).enumerate() {
        // SAFETY: the program promises an array of `len` elements.
        unsafe { to.add(at).write(*value as c_int) };
    }
    Ok(())
}

/// Returns the index of a name in a list.
pub(super) fn find<'a>(name: *const c_char, names: impl IntoIterator<Item = &'a str>, to: *mut c_int) -> Result<()> {
    if name.is_null() || to.is_null() {
        return Err(invalid());
    }
    // SAFETY: the program promises a string.
    let wanted = unsafe { CStr::from_ptr(name) };
    let place = names.into_iter().position(|name| name.as_bytes() == wanted.to_bytes());
    put(to, place.ok_or_else(|| error(consts::MPI_T_ERR_INVALID_NAME))? as c_int);
    Ok(())
}

#[cold]
pub(super) fn invalid() -> Error {
    error(consts::MPI_T_ERR_INVALID)
}

/// Returns the handle behind a non-null pointer.
pub(super) fn handle_of(handle: *mut *mut c_void, class: ErrorClass) -> Result<usize> {
    if handle.is_null() {
        return Err(error(class));
    }
    // SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.
    Ok(unsafe { *handle } as usize)
}

pub(crate) fn mpi_t_init_thread(_cx: &Cx, required: c_int, provided: *mut c_int) -> Result<()> {
    if provided.is_null() || !(consts::MPI_THREAD_SINGLE..=consts::MPI_THREAD_MULTIPLE).contains(&required) {
        return Err(invalid());
    }
    put(provided, consts::MPI_THREAD_MULTIPLE);
    limosa_coll::offer_counts();
    tool::init();
    Ok(())
}

pub(crate) fn mpi_t_finalize(_cx: &Cx) -> Result<()> {
    tool::finalize()
}

// ---- enumerations: one for each control variable with named values; its handle is the variable's index -------------

/// First handle of an enumeration: 0 is `MPI_T_ENUM_NULL`.
const FIRST_ENUM: usize = 0x100;

/// Returns the enumeration of a control variable.
pub(super) fn enum_of(place: usize, variable: &Variable) -> *mut c_void {
    control::words(variable).map_or(consts::MPI_T_ENUM_NULL, |_| FIRST_ENUM + place) as *mut c_void
}

fn words_of(enumtype: *mut c_void) -> Result<(&'static Variable, &'static [&'static str])> {
    let place = (enumtype as usize).checked_sub(FIRST_ENUM);
    let variable = place.and_then(|place| control::variables().get(place).copied());
    variable
        .and_then(|variable| Some((variable, control::words(variable)?)))
        .ok_or_else(|| error(consts::MPI_T_ERR_INVALID_HANDLE))
}

pub(crate) fn mpi_t_enum_get_info(
    _cx: &Cx,
    enumtype: *mut c_void,
    num: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Result<()> {
    let (variable, words) = words_of(enumtype)?;
    put(num, words.len() as c_int);
    put_text(name, name_len, variable.name);
    Ok(())
}

pub(crate) fn mpi_t_enum_get_item(
    _cx: &Cx,
    enumtype: *mut c_void,
    index: c_int,
    value: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Result<()> {
    let (_, words) = words_of(enumtype)?;
    let at = tool::index(index, words.len()).map_err(|_| error(consts::MPI_T_ERR_INVALID_ITEM))?;
    put(value, index);
    put_text(name, name_len, words[at]);
    Ok(())
}

// ---- categories -----------------------------------------------------------------------------------------------------

fn category(cat_index: c_int) -> Result<Category> {
    Ok(category::ALL[tool::index(cat_index, category::ALL.len())?])
}

pub(crate) fn mpi_t_category_get_num(_cx: &Cx, num_cat: *mut c_int) -> Result<()> {
    put(num_cat, category::ALL.len() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_category_get_info(
    _cx: &Cx,
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Result<()> {
    let category = category(cat_index)?;
    put_text(name, name_len, category.name());
    put_text(desc, desc_len, category.text());
    put(num_cvars, category.controls().len() as c_int);
    put(num_pvars, category.performances().len() as c_int);
    put(num_categories, category.categories().len() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_category_get_num_events(_cx: &Cx, cat_index: c_int, num_events: *mut c_int) -> Result<()> {
    put(num_events, category(cat_index)?.events().len() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_category_get_index(_cx: &Cx, name: *const c_char, cat_index: *mut c_int) -> Result<()> {
    find(name, category::ALL.map(Category::name), cat_index)
}

pub(crate) fn mpi_t_category_get_cvars(_cx: &Cx, cat_index: c_int, len: c_int, indices: *mut c_int) -> Result<()> {
    put_all(indices, len, &category(cat_index)?.controls())
}

pub(crate) fn mpi_t_category_get_pvars(_cx: &Cx, cat_index: c_int, len: c_int, indices: *mut c_int) -> Result<()> {
    put_all(indices, len, &category(cat_index)?.performances())
}

pub(crate) fn mpi_t_category_get_events(_cx: &Cx, cat_index: c_int, len: c_int, indices: *mut c_int) -> Result<()> {
    put_all(indices, len, &category(cat_index)?.events())
}

pub(crate) fn mpi_t_category_get_categories(_cx: &Cx, cat_index: c_int, len: c_int, indices: *mut c_int) -> Result<()> {
    put_all(indices, len, &category(cat_index)?.categories())
}

pub(crate) fn mpi_t_category_changed(_cx: &Cx, update_number: *mut c_int) -> Result<()> {
    // Categories never change.
    put(update_number, 0);
    Ok(())
}

// ---- sources of events ----------------------------------------------------------------------------------------------

/// Index of the only source.
pub(super) const SOURCE: c_int = 0;

pub(crate) fn mpi_t_source_get_num(_cx: &Cx, num_sources: *mut c_int) -> Result<()> {
    put(num_sources, 1);
    Ok(())
}

pub(crate) fn mpi_t_source_get_info(
    cx: &Cx,
    source_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    ordering: *mut c_int,
    ticks_per_second: *mut i64,
    max_ticks: *mut i64,
    info: *mut Handle,
) -> Result<()> {
    tool::index(source_index, 1)?;
    put_text(name, name_len, "limosa");
    put_text(desc, desc_len, "Events of this process, in the order in which each thread causes them");
    put(ordering, consts::MPI_T_SOURCE_UNORDERED);
    put(ticks_per_second, 1_000_000_000);
    put(max_ticks, i64::MAX);
    put_info(cx, info)
}

pub(crate) fn mpi_t_source_get_timestamp(_cx: &Cx, source_index: c_int, timestamp: *mut i64) -> Result<()> {
    tool::index(source_index, 1)?;
    put(timestamp, event::time() as i64);
    Ok(())
}
