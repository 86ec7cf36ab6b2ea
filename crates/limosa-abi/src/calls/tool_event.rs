//! Events of the tool information interface (MPI-5 section 15.3.8).
//!
//! Every event has the same elements: `MPI_UNSIGNED_LONG_LONG` at displacement 0 and `MPI_INT` at 8. An event instance
//! is a pointer that is valid during the callback.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use limosa_mpi::tool::event::{self, Instance};
use limosa_mpi::tool::{error, index};
use limosa_mpi::{Result, consts};

use super::tool::{SOURCE, find, invalid, put, put_info, put_text};
use crate::callback;
use crate::cx::Cx;
use crate::handles::Handle;

/// Displacement of the second element, and bytes of both elements.
const SECOND: usize = 8;

thread_local! {
    /// Instance that is being passed to a callback on this thread.
    static CURRENT: Cell<*const Instance> = const { Cell::new(std::ptr::null()) };
}

/// Runs `ask` with the instance of the current callback, outside of which it is unknown.
fn with_instance<T>(event_instance: *mut c_void, ask: impl FnOnce(&Instance) -> Result<T>) -> Result<T> {
    let current = CURRENT.get();
    if current.is_null() || event_instance.cast_const().cast() != current {
        return Err(error(consts::MPI_T_ERR_INVALID_HANDLE));
    }
    // SAFETY: it is set while the instance lives, by the callback below this call.
    ask(unsafe { &*current })
}

fn check_safety(cb_safety: c_int) -> Result<()> {
    let known = [
        consts::MPI_T_CB_REQUIRE_NONE,
        consts::MPI_T_CB_REQUIRE_MPI_RESTRICTED,
        consts::MPI_T_CB_REQUIRE_THREAD_SAFE,
        consts::MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
    ];
    if known.contains(&cb_safety) { Ok(()) } else { Err(invalid()) }
}

pub(crate) fn mpi_t_event_get_num(_cx: &Cx, num_events: *mut c_int) -> Result<()> {
    put(num_events, event::ALL.len() as c_int);
    Ok(())
}

pub(crate) fn mpi_t_event_get_info(
    cx: &Cx,
    event_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    array_of_datatypes: *mut Handle,
    array_of_displacements: *mut i64,
    num_elements: *mut c_int,
    enumtype: *mut *mut c_void,
    info: *mut Handle,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
) -> Result<()> {
    let event = event::at(event_index)?;
    put_text(name, name_len, event.name());
    put_text(desc, desc_len, event.text());
    put(verbosity, consts::MPI_T_VERBOSITY_USER_BASIC);
    let elements = [(consts::MPI_UNSIGNED_LONG_LONG, 0), (consts::MPI_INT, SECOND)];
    // SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.
    let room = if num_elements.is_null() { 0 } else { unsafe { *num_elements } };
    for (at, (datatype, displacement)) in elements.iter().enumerate().take(room.max(0) as usize) {
        if !array_of_datatypes.is_null() {
            // SAFETY: the program promises arrays of so many elements.
            unsafe { array_of_datatypes.add(at).write(Handle::predefined(*datatype)) };
        }
        if !array_of_displacements.is_null() {
            // SAFETY: as above.
            unsafe { array_of_displacements.add(at).write(*displacement as i64) };
        }
    }
    put(num_elements, elements.len() as c_int);
    put(enumtype, consts::MPI_T_ENUM_NULL as *mut c_void);
    put(bind, consts::MPI_T_BIND_NO_OBJECT);
    put_info(cx, info)
}

pub(crate) fn mpi_t_event_get_index(_cx: &Cx, name: *const c_char, event_index: *mut c_int) -> Result<()> {
    find(name, event::ALL.map(|event| event.name()), event_index)
}

pub(crate) fn mpi_t_event_handle_alloc(
    _cx: &Cx,
    event_index: c_int,
    _obj_handle: *mut c_void,
    _info: Handle,
    event_registration: *mut *mut c_void,
) -> Result<()> {
    if event_registration.is_null() {
        return Err(invalid());
    }
    put(event_registration, event::register(event_index)? as *mut c_void);
    Ok(())
}

pub(crate) fn mpi_t_event_handle_set_info(_cx: &Cx, event_registration: *mut c_void, _info: Handle) -> Result<()> {
    event::check(event_registration as usize)
}

pub(crate) fn mpi_t_event_handle_get_info(
    cx: &Cx,
    event_registration: *mut c_void,
    info_used: *mut Handle,
) -> Result<()> {
    event::check(event_registration as usize)?;
    put_info(cx, info_used)
}

pub(crate) fn mpi_t_event_register_callback(
    _cx: &Cx,
    event_registration: *mut c_void,
    cb_safety: c_int,
    _info: Handle,
    user_data: *mut c_void,
    event_cb_function: Option<callback::MPI_T_event_cb_function>,
) -> Result<()> {
    check_safety(cb_safety)?;
    let user_data = user_data as usize;
    let callback = event_cb_function.map(|function| {
        let call: event::Callback = Arc::new(move |registration, instance: &Instance| {
            let instance: *const Instance = instance;
            let before = CURRENT.replace(instance);
            // SAFETY: the program promises a function of this type.
            unsafe {
                function(
                    instance.cast_mut().cast(),
                    registration as *mut c_void,
                    consts::MPI_T_CB_REQUIRE_NONE,
                    user_data as *mut c_void,
                );
            }
            CURRENT.set(before);
        });
        call
    });
    event::set_callback(event_registration as usize, cb_safety, callback)
}

pub(crate) fn mpi_t_event_callback_set_info(
    _cx: &Cx,
    event_registration: *mut c_void,
    cb_safety: c_int,
    _info: Handle,
) -> Result<()> {
    check_safety(cb_safety)?;
    event::check(event_registration as usize)
}

pub(crate) fn mpi_t_event_callback_get_info(
    cx: &Cx,
    event_registration: *mut c_void,
    cb_safety: c_int,
    info_used: *mut Handle,
) -> Result<()> {
    check_safety(cb_safety)?;
    event::check(event_registration as usize)?;
    put_info(cx, info_used)
}

pub(crate) fn mpi_t_event_handle_free(
    _cx: &Cx,
    event_registration: *mut c_void,
    user_data: *mut c_void,
    free_cb_function: Option<callback::MPI_T_event_free_cb_function>,
) -> Result<()> {
    event::free(event_registration as usize)?;
    if let Some(function) = free_cb_function {
        // SAFETY: the program promises a function of this type.
        unsafe { function(event_registration, consts::MPI_T_CB_REQUIRE_NONE, user_data) };
    }
    Ok(())
}

/// Ignores the function: no event is ever dropped.
pub(crate) fn mpi_t_event_set_dropped_handler(
    _cx: &Cx,
    event_registration: *mut c_void,
    _dropped_cb_function: Option<callback::MPI_T_event_dropped_cb_function>,
) -> Result<()> {
    event::check(event_registration as usize)
}

pub(crate) fn mpi_t_event_read(
    _cx: &Cx,
    event_instance: *mut c_void,
    element_index: c_int,
    buffer: *mut c_void,
) -> Result<()> {
    with_instance(event_instance, |instance| {
        let at = index(element_index, 2)?;
        if buffer.is_null() {
            return Err(invalid());
        }
        match at {
            0 => put(buffer.cast(), instance.elements.0),
            _ => put(buffer.cast(), instance.elements.1),
        }
        Ok(())
    })
}

pub(crate) fn mpi_t_event_copy(_cx: &Cx, event_instance: *mut c_void, buffer: *mut c_void) -> Result<()> {
    with_instance(event_instance, |instance| {
        if buffer.is_null() {
            return Err(invalid());
        }
        put(buffer.cast(), instance.elements.0);
        put(buffer.wrapping_byte_add(SECOND).cast(), instance.elements.1);
        Ok(())
    })
}

pub(crate) fn mpi_t_event_get_timestamp(
    _cx: &Cx,
    event_instance: *mut c_void,
    event_timestamp: *mut i64,
) -> Result<()> {
    with_instance(event_instance, |instance| {
        put(event_timestamp, instance.time as i64);
        Ok(())
    })
}

pub(crate) fn mpi_t_event_get_source(_cx: &Cx, event_instance: *mut c_void, source_index: *mut c_int) -> Result<()> {
    with_instance(event_instance, |_| {
        put(source_index, SOURCE);
        Ok(())
    })
}
