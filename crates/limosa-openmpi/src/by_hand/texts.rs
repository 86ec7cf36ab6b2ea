//! Texts, for which Open MPI's programs have shorter buffers than those of the standard ABI.

use std::ffi::{CStr, c_char};
use std::sync::atomic::AtomicI32;

use super::environment::{give, text};
use crate::convert::{
    Communicator, Datatype, Handle, Info, Kind, Window, convert_number, error_code_to_standard, error_code_to_theirs,
    result,
};
use crate::errors::raise;
use crate::standard::{abi, standard_value as standard, their_value as theirs};

/// Calls a function with a buffer of the standard's size and gives the program the text, cut to its own size, and the
/// length.
macro_rules! short {
    ($size:ident, $name:expr, $length:expr, |$own:ident, $own_length:ident| $call:expr) => {{
        let mut buffer = [0 as c_char; standard::$size as usize + 1];
        let mut written = 0i32;
        let ($own, $own_length) = (buffer.as_mut_ptr() as usize, &raw mut written as usize);
        let _ = $own_length;
        // SAFETY: the library writes to locals; the program's buffer is as long as its header says.
        unsafe {
            let code = $call;
            if code == 0 {
                give(&text(&buffer), theirs::$size as usize, $name, $length);
            }
            result(code)
        }
    }};
}

pub(crate) unsafe fn mpi_comm_get_name(comm: Handle<Communicator>, name: usize, length: usize) -> i32 {
    let comm = Communicator::to_standard(comm);
    short!(MPI_MAX_OBJECT_NAME, name, length, |own, own_length| abi::MPI_Comm_get_name(comm, own, own_length))
}

pub(crate) unsafe fn mpi_type_get_name(datatype: Handle<Datatype>, name: usize, length: usize) -> i32 {
    let datatype = Datatype::to_standard(datatype);
    short!(MPI_MAX_OBJECT_NAME, name, length, |own, own_length| abi::MPI_Type_get_name(datatype, own, own_length))
}

pub(crate) unsafe fn mpi_win_get_name(win: Handle<Window>, name: usize, length: usize) -> i32 {
    let win = Window::to_standard(win);
    short!(MPI_MAX_OBJECT_NAME, name, length, |own, own_length| abi::MPI_Win_get_name(win, own, own_length))
}

/// Says what a class means that only Open MPI has. The library gives no code of it, but programs ask.
fn own_class(code: i32) -> Option<&'static str> {
    match code {
        theirs::MPI_ERR_PROC_FAILED => Some("MPI_ERR_PROC_FAILED: a process has failed"),
        theirs::MPI_ERR_PROC_FAILED_PENDING => Some("MPI_ERR_PROC_FAILED_PENDING: a possible sender has failed"),
        theirs::MPI_ERR_REVOKED => Some("MPI_ERR_REVOKED: the communicator was revoked"),
        _ => None,
    }
}

pub(crate) unsafe fn mpi_error_class(code: i32, class: usize) -> i32 {
    if own_class(code).is_some() && class != 0 {
        // SAFETY: the address is the program's.
        unsafe { *(class as *mut i32) = code };
        return 0;
    }
    // SAFETY: the library checks the code and the address.
    unsafe {
        let answer = abi::MPI_Error_class(error_code_to_standard(code), class);
        if answer == 0 {
            convert_number(class, error_code_to_theirs);
        }
        result(answer)
    }
}

pub(crate) unsafe fn mpi_error_string(code: i32, string: usize, length: usize) -> i32 {
    if let Some(said) = own_class(code) {
        // SAFETY: the program's buffer is as long as its header says.
        unsafe { give(said, theirs::MPI_MAX_ERROR_STRING as usize, string, length) };
        return 0;
    }
    let code = error_code_to_standard(code);
    short!(MPI_MAX_ERROR_STRING, string, length, |own, own_length| abi::MPI_Error_string(code, own, own_length))
}

/// Refuses texts for which programs have no room, as Open MPI does.
pub(crate) unsafe fn mpi_info_set(info: Handle<Info>, key: usize, value: usize) -> i32 {
    static KEY: AtomicI32 = AtomicI32::new(0);
    static VALUE: AtomicI32 = AtomicI32::new(0);
    let limits = [
        (key, theirs::MPI_MAX_INFO_KEY, &KEY, standard::MPI_ERR_INFO_KEY, "key"),
        (value, theirs::MPI_MAX_INFO_VAL, &VALUE, standard::MPI_ERR_INFO_VALUE, "value"),
    ];
    for (address, room, code, class, what) in limits {
        // SAFETY: the address is null or that of a text.
        let length = if address == 0 { 0 } else { unsafe { CStr::from_ptr(address as *const c_char) }.count_bytes() };
        if length >= room as usize {
            let said = format!("MPI_Info_set: the {what} has {length} bytes; Open MPI's ABI has room for {}", room - 1);
            return raise(code, class, &said);
        }
    }
    // SAFETY: the library checks the handle and the texts.
    unsafe { result(abi::MPI_Info_set(Info::to_standard(info), key, value)) }
}

pub(crate) unsafe fn mpi_info_get_nthkey(info: Handle<Info>, n: i32, key: usize) -> i32 {
    let info = Info::to_standard(info);
    short!(MPI_MAX_INFO_KEY, key, 0, |own, own_length| abi::MPI_Info_get_nthkey(info, n, own))
}
