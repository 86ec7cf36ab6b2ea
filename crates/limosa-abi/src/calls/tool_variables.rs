//! Control and performance variables of the tool information interface (MPI-5 sections 15.3.6 and 15.3.7).

use std::ffi::{CStr, c_char, c_int, c_void};

use limosa_mpi::tool::control::{self, Form, TEXT_BYTES, Value};
use limosa_mpi::tool::performance::{self, Variable};
use limosa_mpi::{Result, consts};

use super::tool::{enum_of, find, handle_of, invalid, put, put_text};
use crate::args;
use crate::cx::Cx;
use crate::handles::Handle;

// ---- control variables ----------------------------------------------------------------------------------------------

/// Returns datatype and element count of a variable's value.
fn layout(form: Form) -> (i32, c_int) {
    match form {
        Form::Choice(_) | Form::Switch => (consts::MPI_INT, 1),
        Form::Number { .. } => (consts::MPI_UNSIGNED_LONG_LONG, 1),
        Form::Seconds => (consts::MPI_DOUBLE, 1),
        Form::Device | Form::Filter | Form::Path | Form::Text => (consts::MPI_CHAR, TEXT_BYTES as c_int),
    }
}

pub(crate) fn mpi_t_cvar_get_num(_cx: &Cx, num_cvar: *mut c_int) -> Result<()> {
    put(num_cvar, control::variables().len() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_cvar_get_info(
    _cx: &Cx,
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut Handle,
    enumtype: *mut *mut c_void,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> Result<()> {
    let variable = control::at(cvar_index)?;
    put_text(name, name_len, variable.name);
    put_text(desc, desc_len, variable.text);
    let is_for_tuning = variable.name.starts_with("LIMOSA_COLL");
    put(
        verbosity,
        if is_for_tuning { consts::MPI_T_VERBOSITY_TUNER_BASIC } else { consts::MPI_T_VERBOSITY_USER_BASIC },
    );
    put(datatype, Handle::predefined(layout(variable.form).0));
    put(enumtype, enum_of(cvar_index as usize, variable));
    put(bind, consts::MPI_T_BIND_NO_OBJECT);
    let writable = control::is_writable(variable);
    put(scope, if writable { consts::MPI_T_SCOPE_ALL_EQ } else { consts::MPI_T_SCOPE_READONLY });
    Ok(())
}

pub(crate) fn mpi_t_cvar_get_index(_cx: &Cx, name: *const c_char, cvar_index: *mut c_int) -> Result<()> {
    find(name, control::variables().into_iter().map(|variable| variable.name), cvar_index)
}

pub(crate) fn mpi_t_cvar_handle_alloc(
    _cx: &Cx,
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut c_int,
) -> Result<()> {
    let variable = control::at(cvar_index)?;
    if handle.is_null() {
        return Err(invalid());
    }
    put(handle, control::allocate(cvar_index)? as *mut c_void);
    put(count, layout(variable.form).1);
    Ok(())
}

pub(crate) fn mpi_t_cvar_handle_free(_cx: &Cx, handle: *mut *mut c_void) -> Result<()> {
    control::free(handle_of(handle, consts::MPI_T_ERR_INVALID_HANDLE)?)?;
    put(handle, consts::MPI_T_CVAR_HANDLE_NULL as *mut c_void);
    Ok(())
}

pub(crate) fn mpi_t_cvar_read(_cx: &Cx, handle: *mut c_void, buf: *mut c_void) -> Result<()> {
    let variable = control::of(handle as usize)?;
    if buf.is_null() {
        return Err(invalid());
    }
    match control::read(variable) {
        Value::Int(value) => put(buf.cast(), value),
        Value::Unsigned(value) => put(buf.cast(), value),
        Value::Double(value) => put(buf.cast(), value),
        // SAFETY: the program promises room for the count of elements that it was told.
        Value::Text(text) => drop(unsafe { args::copy_text(buf.cast(), TEXT_BYTES, &text) }),
    }
    Ok(())
}

pub(crate) fn mpi_t_cvar_write(_cx: &Cx, handle: *mut c_void, buf: *mut c_void) -> Result<()> {
    let variable = control::of(handle as usize)?;
    if buf.is_null() {
        return Err(invalid());
    }
    // SAFETY: the program promises a value of the variable's datatype.
    let value = unsafe {
        match variable.form {
            Form::Choice(_) | Form::Switch => Value::Int(*buf.cast()),
            Form::Number { .. } => Value::Unsigned(*buf.cast()),
            Form::Seconds => Value::Double(*buf.cast()),
            Form::Device | Form::Filter | Form::Path | Form::Text => {
                let bytes: &[u8] = std::slice::from_raw_parts(buf.cast(), TEXT_BYTES);
                let text = CStr::from_bytes_until_nul(bytes).map_err(|_| invalid())?;
                Value::Text(text.to_str().map_err(|_| invalid())?.to_owned())
            }
        }
    };
    control::write(variable, &value)
}

// ---- performance variables ------------------------------------------------------------------------------------------

pub(crate) fn mpi_t_pvar_get_num(_cx: &Cx, num_pvar: *mut c_int) -> Result<()> {
    put(num_pvar, performance::all().count() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_pvar_get_info(
    _cx: &Cx,
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut Handle,
    enumtype: *mut *mut c_void,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Result<()> {
    let variable = performance::at(pvar_index)?;
    put_text(name, name_len, &variable.name);
    put_text(desc, desc_len, &variable.text);
    put(verbosity, consts::MPI_T_VERBOSITY_USER_BASIC);
    put(var_class, variable.class.number());
    put(datatype, Handle::predefined(consts::MPI_UNSIGNED_LONG_LONG));
    put(enumtype, consts::MPI_T_ENUM_NULL as *mut c_void);
    put(bind, consts::MPI_T_BIND_NO_OBJECT);
    let runs_alone = variable.class.is_continuous();
    put(readonly, runs_alone.into());
    put(continuous, runs_alone.into());
    put(atomic, (!runs_alone).into());
    Ok(())
}

pub(crate) fn mpi_t_pvar_get_index(
    _cx: &Cx,
    name: *const c_char,
    var_class: c_int,
    pvar_index: *mut c_int,
) -> Result<()> {
    let name_in_class = |variable: &'static Variable| {
        if variable.class.number() == var_class { &*variable.name } else { "" }
    };
    find(name, performance::all().map(name_in_class), pvar_index)
}

pub(crate) fn mpi_t_pvar_session_create(_cx: &Cx, pe_session: *mut *mut c_void) -> Result<()> {
    if pe_session.is_null() {
        return Err(invalid());
    }
    put(pe_session, performance::create_session() as *mut c_void);
    Ok(())
}

pub(crate) fn mpi_t_pvar_session_free(_cx: &Cx, pe_session: *mut *mut c_void) -> Result<()> {
    performance::free_session(handle_of(pe_session, consts::MPI_T_ERR_INVALID_SESSION)?)?;
    put(pe_session, consts::MPI_T_PVAR_SESSION_NULL as *mut c_void);
    Ok(())
}

pub(crate) fn mpi_t_pvar_handle_alloc(
    _cx: &Cx,
    pe_session: *mut c_void,
    pvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut c_int,
) -> Result<()> {
    if handle.is_null() {
        return Err(invalid());
    }
    put(handle, performance::allocate(pe_session as usize, pvar_index)? as *mut c_void);
    put(count, 1);
    Ok(())
}

pub(crate) fn mpi_t_pvar_handle_free(_cx: &Cx, pe_session: *mut c_void, handle: *mut *mut c_void) -> Result<()> {
    performance::free(pe_session as usize, handle_of(handle, consts::MPI_T_ERR_INVALID_HANDLE)?)?;
    put(handle, consts::MPI_T_PVAR_HANDLE_NULL as *mut c_void);
    Ok(())
}

/// Returns a handle, or `None` for `MPI_T_PVAR_ALL_HANDLES`.
fn one_or_all(handle: *mut c_void) -> Option<usize> {
    (handle as usize != consts::MPI_T_PVAR_ALL_HANDLES).then_some(handle as usize)
}

pub(crate) fn mpi_t_pvar_start(_cx: &Cx, pe_session: *mut c_void, handle: *mut c_void) -> Result<()> {
    performance::start(pe_session as usize, one_or_all(handle))
}

pub(crate) fn mpi_t_pvar_stop(_cx: &Cx, pe_session: *mut c_void, handle: *mut c_void) -> Result<()> {
    performance::stop(pe_session as usize, one_or_all(handle))
}

pub(crate) fn mpi_t_pvar_reset(_cx: &Cx, pe_session: *mut c_void, handle: *mut c_void) -> Result<()> {
    performance::reset(pe_session as usize, one_or_all(handle))
}

fn read(pe_session: *mut c_void, handle: *mut c_void, buf: *mut c_void, and_reset: bool) -> Result<()> {
    if buf.is_null() {
        return Err(invalid());
    }
    put(buf.cast(), performance::read(pe_session as usize, handle as usize, and_reset)?);
    Ok(())
}

pub(crate) fn mpi_t_pvar_read(_cx: &Cx, pe_session: *mut c_void, handle: *mut c_void, buf: *mut c_void) -> Result<()> {
    read(pe_session, handle, buf, false)
}

pub(crate) fn mpi_t_pvar_readreset(
    _cx: &Cx,
    pe_session: *mut c_void,
    handle: *mut c_void,
    buf: *mut c_void,
) -> Result<()> {
    read(pe_session, handle, buf, true)
}

pub(crate) fn mpi_t_pvar_write(_cx: &Cx, pe_session: *mut c_void, handle: *mut c_void, buf: *mut c_void) -> Result<()> {
    if buf.is_null() {
        return Err(invalid());
    }
    // SAFETY: the program promises a value of the variable's datatype.
    performance::write(pe_session as usize, handle as usize, unsafe { *buf.cast() })
}
