//! Attributes (MPI-5 section 7.7 and the deprecated section 16.1).
//!
//! The copy and delete functions of a keyval get its extra state: here the address of [`Functions`], which are kept
//! until the process ends, because attributes outlive their keyval.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::convert::{
    Communicator, Datatype, Handle, Kind, Window, error_code_to_standard, error_code_to_theirs, rank_to_theirs, result,
};
use crate::standard::{abi, standard_value as standard, their_value as theirs};
use crate::standard::{keyval_to_standard, keyval_to_theirs};

/// The functions of a keyval, and its extra state.
struct Functions {
    copy: usize,
    delete: usize,
    state: usize,
}

type Copy<C> = unsafe extern "C" fn(C, c_int, usize, usize, usize, usize) -> c_int;
type Delete<C> = unsafe extern "C" fn(C, c_int, usize, usize) -> c_int;

unsafe extern "C" fn copy<K: Kind>(
    object: usize,
    keyval: c_int,
    functions: &Functions,
    value: usize,
    copied: usize,
    flag: usize,
) -> c_int {
    // SAFETY: the program has given a function of this type, and the arguments are the library's.
    let code = unsafe {
        let function = std::mem::transmute::<usize, Copy<K::C>>(functions.copy);
        function(K::to_theirs(object), keyval_to_theirs(keyval), functions.state, value, copied, flag)
    };
    if code == 0 { 0 } else { error_code_to_standard(code) }
}

unsafe extern "C" fn delete<K: Kind>(object: usize, keyval: c_int, value: usize, functions: &Functions) -> c_int {
    // SAFETY: likewise.
    let code = unsafe {
        let function = std::mem::transmute::<usize, Delete<K::C>>(functions.delete);
        function(K::to_theirs(object), keyval_to_theirs(keyval), value, functions.state)
    };
    if code == 0 { 0 } else { error_code_to_standard(code) }
}

/// Creates a keyval by a function of the library.
unsafe fn create<K: Kind>(
    create: unsafe fn(usize, usize, usize, usize) -> i32,
    functions: Functions,
    keyval: usize,
) -> i32 {
    // The predefined functions that do nothing are null in both ABIs.
    let copy_at = if functions.copy == 0 { 0 } else { copy::<K> as *const c_void as usize };
    let delete_at = if functions.delete == 0 { 0 } else { delete::<K> as *const c_void as usize };
    let state = Box::into_raw(Box::new(functions)) as usize;
    // SAFETY: the functions have the types of the standard; the keyval's address is the program's.
    unsafe { result(create(copy_at, delete_at, keyval, state)) }
}

pub(crate) unsafe fn mpi_comm_create_keyval(copy: usize, delete: usize, keyval: usize, state: usize) -> i32 {
    // SAFETY: the arguments are the program's.
    unsafe { create::<Communicator>(abi::MPI_Comm_create_keyval, Functions { copy, delete, state }, keyval) }
}

pub(crate) unsafe fn mpi_keyval_create(copy: usize, delete: usize, keyval: usize, state: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { create::<Communicator>(abi::MPI_Keyval_create, Functions { copy, delete, state }, keyval) }
}

pub(crate) unsafe fn mpi_type_create_keyval(copy: usize, delete: usize, keyval: usize, state: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { create::<Datatype>(abi::MPI_Type_create_keyval, Functions { copy, delete, state }, keyval) }
}

pub(crate) unsafe fn mpi_win_create_keyval(copy: usize, delete: usize, keyval: usize, state: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { create::<Window>(abi::MPI_Win_create_keyval, Functions { copy, delete, state }, keyval) }
}

/// Values of predefined attributes that are converted: the program gets the address of one of these.
static HOST: AtomicI32 = AtomicI32::new(0);
static IO: AtomicI32 = AtomicI32::new(0);
static LAST_USED_CODE: AtomicI32 = AtomicI32::new(0);
static FLAVORS: [i32; 4] = [
    theirs::MPI_WIN_FLAVOR_CREATE,
    theirs::MPI_WIN_FLAVOR_ALLOCATE,
    theirs::MPI_WIN_FLAVOR_DYNAMIC,
    theirs::MPI_WIN_FLAVOR_SHARED,
];
static MODELS: [i32; 2] = [theirs::MPI_WIN_UNIFIED, theirs::MPI_WIN_SEPARATE];

/// Converts the value of a predefined attribute.
unsafe fn convert_value(keyval: i32, value: *mut *const i32, flag: *const c_int) {
    if value.is_null() || flag.is_null() {
        return;
    }
    // SAFETY: the call has succeeded, so both are valid; the value of an attribute in question is a number's address.
    unsafe {
        if *flag == 0 || (*value).is_null() {
            return;
        }
        let kept = |place: &'static AtomicI32, number: i32| {
            place.store(number, Relaxed);
            place.as_ptr().cast_const()
        };
        match keyval {
            standard::MPI_HOST => *value = kept(&HOST, rank_to_theirs(**value)),
            standard::MPI_IO => *value = kept(&IO, rank_to_theirs(**value)),
            standard::MPI_LASTUSEDCODE => *value = kept(&LAST_USED_CODE, error_code_to_theirs(**value)),
            standard::MPI_WIN_CREATE_FLAVOR => {
                if let Some(flavor) = FLAVORS.get((**value - standard::MPI_WIN_FLAVOR_CREATE) as usize) {
                    *value = flavor;
                }
            }
            standard::MPI_WIN_MODEL => {
                if let Some(model) = MODELS.get((**value - standard::MPI_WIN_UNIFIED) as usize) {
                    *value = model;
                }
            }
            _ => {}
        }
    }
}

unsafe fn get(
    get: unsafe fn(usize, i32, usize, usize) -> i32,
    object: usize,
    keyval: i32,
    value: usize,
    flag: usize,
) -> i32 {
    let keyval = keyval_to_standard(keyval);
    // SAFETY: the addresses are the program's.
    unsafe {
        let code = get(object, keyval, value, flag);
        if code == 0 {
            convert_value(keyval, value as *mut *const i32, flag as *const c_int);
        }
        result(code)
    }
}

pub(crate) unsafe fn mpi_comm_get_attr(comm: Handle<Communicator>, keyval: i32, value: usize, flag: usize) -> i32 {
    // SAFETY: the arguments are the program's.
    unsafe { get(abi::MPI_Comm_get_attr, Communicator::to_standard(comm), keyval, value, flag) }
}

pub(crate) unsafe fn mpi_attr_get(comm: Handle<Communicator>, keyval: i32, value: usize, flag: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { get(abi::MPI_Attr_get, Communicator::to_standard(comm), keyval, value, flag) }
}

pub(crate) unsafe fn mpi_type_get_attr(datatype: Handle<Datatype>, keyval: i32, value: usize, flag: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { get(abi::MPI_Type_get_attr, Datatype::to_standard(datatype), keyval, value, flag) }
}

pub(crate) unsafe fn mpi_win_get_attr(win: Handle<Window>, keyval: i32, value: usize, flag: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { get(abi::MPI_Win_get_attr, Window::to_standard(win), keyval, value, flag) }
}
