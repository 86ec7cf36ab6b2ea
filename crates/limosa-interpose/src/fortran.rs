//! Call sites of Fortran programs. Their calls go through `libmpi_abi_fortran.so`, which therefore contains the return
//! address; it knows the program's.

use std::sync::OnceLock;

type Caller = unsafe extern "C" fn(usize) -> usize;

/// Returns the program's return address for one in the library of Fortran, other addresses as they are.
pub fn caller(returns_to: usize) -> usize {
    static FOUND: OnceLock<Option<Caller>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // SAFETY: looks up a name.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"limosa_fortran_caller".as_ptr()) };
        // SAFETY: the function of this name has this type (`fortran/library.c`).
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Caller>(address) })
    });
    // SAFETY: the function compares numbers and reads a variable of this thread.
    found.map_or(returns_to, |caller| unsafe { caller(returns_to) })
}
