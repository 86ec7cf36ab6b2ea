//! The tool information interface (MPI-5 chapter 15): objects of a type that a query tells, and callbacks of events.

use std::ffi::{c_int, c_void};

use crate::convert::{
    Communicator, Datatype, Errhandler, File, Group, Handle, Handles, Info, Kind, Message, Operation, Request, Session,
    Window, convert_number, handle_at, result, set_handle,
};
use crate::standard::{abi, standard_value as standard};
use crate::standard::{bind_to_theirs, safety_to_standard, safety_to_theirs, verbosity_to_theirs};

/// Converts the handle of an object to which something is bound.
unsafe fn object(bind: i32, address: usize) -> usize {
    // SAFETY: the address is null or that of a handle of this kind.
    unsafe {
        match bind {
            standard::MPI_T_BIND_MPI_COMM => handle_at::<Communicator>(address),
            standard::MPI_T_BIND_MPI_DATATYPE => handle_at::<Datatype>(address),
            standard::MPI_T_BIND_MPI_ERRHANDLER => handle_at::<Errhandler>(address),
            standard::MPI_T_BIND_MPI_FILE => handle_at::<File>(address),
            standard::MPI_T_BIND_MPI_GROUP => handle_at::<Group>(address),
            standard::MPI_T_BIND_MPI_OP => handle_at::<Operation>(address),
            standard::MPI_T_BIND_MPI_REQUEST => handle_at::<Request>(address),
            standard::MPI_T_BIND_MPI_WIN => handle_at::<Window>(address),
            standard::MPI_T_BIND_MPI_MESSAGE => handle_at::<Message>(address),
            standard::MPI_T_BIND_MPI_INFO => handle_at::<Info>(address),
            standard::MPI_T_BIND_MPI_SESSION => handle_at::<Session>(address),
            _ => 0,
        }
    }
}

pub(crate) unsafe fn mpi_t_cvar_handle_alloc(index: i32, object_at: usize, handle: usize, count: usize) -> i32 {
    // SAFETY: the addresses are the program's or those of locals.
    unsafe {
        let mut bind = standard::MPI_T_BIND_NO_OBJECT;
        let at = &raw mut bind as usize;
        abi::MPI_T_cvar_get_info(index, 0, 0, 0, 0, 0, 0, 0, at, 0);
        let mut own = object(bind, object_at);
        let own = if object_at == 0 { 0 } else { &raw mut own as usize };
        result(abi::MPI_T_cvar_handle_alloc(index, own, handle, count))
    }
}

pub(crate) unsafe fn mpi_t_pvar_handle_alloc(
    session: usize,
    index: i32,
    object_at: usize,
    handle: usize,
    count: usize,
) -> i32 {
    // SAFETY: likewise.
    unsafe {
        let mut bind = standard::MPI_T_BIND_NO_OBJECT;
        let at = &raw mut bind as usize;
        abi::MPI_T_pvar_get_info(index, 0, 0, 0, 0, 0, 0, 0, 0, at, 0, 0, 0);
        let mut own = object(bind, object_at);
        let own = if object_at == 0 { 0 } else { &raw mut own as usize };
        result(abi::MPI_T_pvar_handle_alloc(session, index, own, handle, count))
    }
}

pub(crate) unsafe fn mpi_t_event_handle_alloc(
    index: i32,
    object_at: usize,
    info: Handle<Info>,
    registration: usize,
) -> i32 {
    // SAFETY: likewise.
    unsafe {
        let mut bind = standard::MPI_T_BIND_NO_OBJECT;
        let at = &raw mut bind as usize;
        abi::MPI_T_event_get_info(index, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at);
        let mut own = object(bind, object_at);
        let own = if object_at == 0 { 0 } else { &raw mut own as usize };
        result(abi::MPI_T_event_handle_alloc(index, own, Info::to_standard(info), registration))
    }
}

pub(crate) unsafe fn mpi_t_event_get_info(
    index: i32,
    name: usize,
    name_len: usize,
    verbosity: usize,
    datatypes: usize,
    displacements: usize,
    elements: usize,
    enumtype: usize,
    info: usize,
    desc: usize,
    desc_len: usize,
    bind: usize,
) -> i32 {
    // SAFETY: the addresses are the program's; the arrays have as many elements as `elements` says.
    unsafe {
        let room = if elements == 0 { 0 } else { *(elements as *const i32) };
        let mut own = Handles::<Datatype>::empty(if datatypes == 0 { 0 } else { i64::from(room) });
        let mut own_info = Info::NULL;
        let own_info_at = if info == 0 { 0 } else { &raw mut own_info as usize };
        let at = own.address(datatypes);
        let code = abi::MPI_T_event_get_info(
            index,
            name,
            name_len,
            verbosity,
            at,
            displacements,
            elements,
            enumtype,
            own_info_at,
            desc,
            desc_len,
            bind,
        );
        if code == 0 {
            let given = if elements == 0 { 0 } else { *(elements as *const i32) };
            own.write_first(datatypes, given.max(0) as usize);
            set_handle::<Info>(info, own_info);
            convert_number(verbosity, verbosity_to_theirs);
            convert_number(bind, bind_to_theirs);
        }
        result(code)
    }
}

/// A callback of the program and its data. Kept until the process ends: events may be under way.
struct Callback {
    function: usize,
    data: usize,
}

fn callback(function: usize, data: usize) -> usize {
    Box::into_raw(Box::new(Callback { function, data })) as usize
}

unsafe extern "C" fn happened(instance: usize, registration: usize, safety: c_int, own: &Callback) {
    type Function = unsafe extern "C" fn(usize, usize, c_int, usize);
    // SAFETY: the program has given a function of this type.
    unsafe {
        let function = std::mem::transmute::<usize, Function>(own.function);
        function(instance, registration, safety_to_theirs(safety), own.data);
    }
}

pub(crate) unsafe fn mpi_t_event_register_callback(
    registration: usize,
    safety: i32,
    info: Handle<Info>,
    data: usize,
    function: usize,
) -> i32 {
    let caller = if function == 0 { 0 } else { happened as *const c_void as usize };
    let (safety, info) = (safety_to_standard(safety), Info::to_standard(info));
    // SAFETY: the function has the type of the standard.
    unsafe { result(abi::MPI_T_event_register_callback(registration, safety, info, callback(function, data), caller)) }
}

unsafe extern "C" fn freed(registration: usize, safety: c_int, own: *mut Callback) {
    type Function = unsafe extern "C" fn(usize, c_int, usize);
    // SAFETY: the program has given a function of this type; the library calls this once.
    unsafe {
        let own = Box::from_raw(own);
        let function = std::mem::transmute::<usize, Function>(own.function);
        function(registration, safety_to_theirs(safety), own.data);
    }
}

pub(crate) unsafe fn mpi_t_event_handle_free(registration: usize, data: usize, function: usize) -> i32 {
    // SAFETY: likewise.
    unsafe {
        result(match function {
            0 => abi::MPI_T_event_handle_free(registration, 0, 0),
            _ => {
                let caller = freed as *const c_void as usize;
                abi::MPI_T_event_handle_free(registration, callback(function, data), caller)
            }
        })
    }
}

/// Handlers of dropped events get the data of the registered callback, here a [`Callback`]; they themselves have none.
/// All registrations of a program share the last handler that it has set.
static DROPPED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

unsafe extern "C" fn dropped(count: i64, registration: usize, source: c_int, safety: c_int, own: *const Callback) {
    type Function = unsafe extern "C" fn(i64, usize, c_int, c_int, usize);
    // SAFETY: the program has given a function of this type; the data are those of `mpi_t_event_register_callback`.
    unsafe {
        let function = DROPPED.load(std::sync::atomic::Ordering::Acquire);
        let data = own.as_ref().map_or(0, |own| own.data);
        std::mem::transmute::<usize, Function>(function)(count, registration, source, safety_to_theirs(safety), data);
    }
}

pub(crate) unsafe fn mpi_t_event_set_dropped_handler(registration: usize, function: usize) -> i32 {
    let caller = if function == 0 { 0 } else { dropped as *const c_void as usize };
    if function != 0 {
        DROPPED.store(function, std::sync::atomic::Ordering::Release);
    }
    // SAFETY: the function has the type of the standard.
    unsafe { result(abi::MPI_T_event_set_dropped_handler(registration, caller)) }
}
