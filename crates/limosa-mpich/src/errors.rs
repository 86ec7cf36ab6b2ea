//! Errors of the translation itself.

use std::ffi::c_char;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::convert::{error_code_to_theirs, result};
use crate::standard::{OWNER, abi, standard_value as standard};

/// Ends a call of a function that the other library has and the standard has not.
#[cold]
pub(crate) fn unsupported(function: &'static str) -> i32 {
    static CODE: AtomicI32 = AtomicI32::new(0);
    let text = format!("{function} is an extension of {OWNER} that the MPI-5 standard ABI does not have");
    raise(&CODE, standard::MPI_ERR_UNSUPPORTED_OPERATION, &text)
}

/// Raises an error with a sentence, on `MPI_COMM_SELF`. Returns the code, if the error handler returns. `code` keeps
/// the code for the next time.
#[cold]
pub(crate) fn raise(code: &AtomicI32, class: i32, text: &str) -> i32 {
    let mut number = code.load(Relaxed);
    // SAFETY: all functions may be called at any time, with addresses of locals.
    unsafe {
        if number == 0 && abi::MPI_Add_error_code(class, &raw mut number as usize) != 0 {
            return error_code_to_theirs(class);
        }
        code.store(number, Relaxed);
        let bytes = text.bytes().take(standard::MPI_MAX_ERROR_STRING as usize - 1).chain([0]);
        let text: Vec<c_char> = bytes.map(|byte| byte as c_char).collect();
        abi::MPI_Add_error_string(number, text.as_ptr() as usize);
        let comm = standard::MPI_COMM_SELF as usize;
        let answer = abi::MPI_Comm_call_errhandler(comm, number);
        result(if answer == 0 { number } else { answer })
    }
}
