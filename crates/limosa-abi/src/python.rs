//! Python support: signal handlers of Python programs while a rank waits in MPI, and the line of the program that has
//! called ([`line`]).
//!
//! Python's own handler for a signal only sets a flag. The program's handler (by default for SIGINT, one that raises
//! `KeyboardInterrupt`) runs when the interpreter continues. This hook ([`limosa_p2p::interrupt`]) runs it in the
//! waiting thread, by `PyErr_CheckSignals`. If it raises an exception, the call ends with an error code.
//!
//! mpi4py creates an `MPI.Exception` from that code. The program must see the handler's exception instead, so the
//! constructor of `MPI.Exception` is replaced by one that raises it. No `MPI.Exception` is created if the call has
//! succeeded at the last moment, or its code is ignored. Therefore the interpreter is also asked to raise the exception
//! when it continues (`Py_AddPendingCall`). Whichever comes first raises it.
//!
//! The constructor is a C function: a Python function would have a frame of its own, which replaces the program's frame
//! in tracebacks of Python 3.11 and before.
//!
//! The library is not linked with Python: it finds the interpreter of the process it is loaded into. All functions used
//! here exist in all versions of CPython 3.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use limosa_mpi::instance::interrupt;

/// A reference to a Python object.
type Object = *mut c_void;

/// Functions of the interpreter.
struct Python {
    is_initialized: unsafe extern "C" fn() -> c_int,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    check_signals: unsafe extern "C" fn() -> c_int,
    occurred: unsafe extern "C" fn() -> Object,
    fetch: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    normalize: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    clear: unsafe extern "C" fn(),
    set_error: unsafe extern "C" fn(Object, Object),
    type_of: unsafe extern "C" fn(Object) -> Object,
    modules: unsafe extern "C" fn() -> Object,
    get_item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    get_attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    set_attribute: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int,
    new_method: unsafe extern "C" fn(Object, *const Method) -> Object,
    pack: unsafe extern "C" fn(isize, ...) -> Object,
    concatenate: unsafe extern "C" fn(Object, Object) -> Object,
    call: unsafe extern "C" fn(Object, Object) -> Object,
    decref: unsafe extern "C" fn(Object),
    add_pending_call: unsafe extern "C" fn(extern "C" fn(*mut c_void) -> c_int, *mut c_void) -> c_int,
    frame: unsafe extern "C" fn() -> Object,
    as_utf8: unsafe extern "C" fn(Object, *mut isize) -> *const c_char,
    as_long: unsafe extern "C" fn(Object) -> c_long,
}

static PYTHON: OnceLock<Option<Python>> = OnceLock::new();

/// Exception to be raised, as an owned reference; null for none. This and `PLAIN` change only with the interpreter's
/// lock held.
static RAISED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Set when a signal handler has ended a wait.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);
/// Original constructor of `MPI.Exception`, once it is replaced.
static PLAIN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// `PyMethodDef`.
#[repr(C)]
struct Method {
    name: *const c_char,
    function: extern "C" fn(Object, Object) -> Object,
    flags: c_int,
    doc: *const c_char,
}

// SAFETY: it points to constants only.
unsafe impl Sync for Method {}

/// `METH_VARARGS`: the function gets its arguments as a tuple.
const VARARGS: c_int = 1;

const INIT: &CStr = c"__init__";

static CONSTRUCTOR: Method = Method { name: INIT.as_ptr(), function: construct, flags: VARARGS, doc: ptr::null() };

/// Looks for the interpreter. If there is one, registers the interrupt hook and enables the check of buffers. Called
/// when MPI starts.
pub(crate) fn watch_for_signals() {
    if PYTHON.get_or_init(Python::find).is_some() {
        interrupt::set_hook(is_wanted);
        limosa_base::readable::watch();
    }
}

/// Runs pending signal handlers. Returns whether one of them has raised an exception.
fn is_wanted() -> bool {
    let Some(Some(python)) = PYTHON.get() else { return false };
    // Handlers run only in the interpreter's main thread, which is the process's first thread in all programs that
    // start as Python programs. Other threads need not wait for the interpreter's lock.
    if !limosa_base::thread::is_first() {
        return false;
    }
    // SAFETY: the functions have the types that Python documents. All but the first one are called between `ensure` and
    // `release`, thus with the interpreter's lock; the interpreter exists until this thread, its main thread, ends it.
    unsafe {
        if (python.is_initialized)() == 0 {
            return false;
        }
        let state = (python.ensure)();
        let raised = python.has_raised();
        (python.release)(state);
        CUT_SHORT.fetch_or(raised, Ordering::Relaxed);
        raised
    }
}

/// A line of a Python program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// File and line.
    pub(crate) place: String,
    /// Whether it has called our Python package, which has called MPI.
    pub(crate) in_package: bool,
}

/// Owner of a Python source file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    /// Python's standard library, or an installed package.
    Installed,
    /// Our package.
    Limosa,
    /// The interpreter's start-up, or the MPI binding.
    Machinery,
}

impl Owner {
    fn of(file: &str) -> Owner {
        let has = |parts: &[&str]| parts.iter().any(|part| file.contains(part));
        if file.is_empty() || file.starts_with("<frozen") || has(&["-packages/mpi4py/", "mpi4py/MPI.src/"]) {
            Owner::Machinery
        } else if has(&["-packages/limosa/", "python/limosa/"]) {
            Owner::Limosa
        } else if has(&["-packages/", "/lib/python3"]) {
            Owner::Installed
        } else {
            Owner::User
        }
    }
}

/// Returns the line of the program that this thread is in, if it runs Python. This may run code of the program, so no
/// lock may be held.
pub(crate) fn line() -> Option<Line> {
    let python = PYTHON.get()?.as_ref()?;
    // SAFETY: as in `is_wanted`; a pending exception belongs to the caller, and prevents the query.
    unsafe {
        if (python.is_initialized)() == 0 {
            return None;
        }
        let state = (python.ensure)();
        let line = if (python.occurred)().is_null() { python.line() } else { None };
        (python.release)(state);
        line
    }
}

/// Returns the name by which users know the function of an error: mpi4py calls the large-count forms.
pub(crate) fn known_name(name: &'static str) -> &'static str {
    // SAFETY: queries the interpreter's state, which is allowed at any time.
    let is_python = || matches!(PYTHON.get(), Some(Some(python)) if unsafe { (python.is_initialized)() } != 0);
    name.strip_suffix("_c").filter(|_| is_python()).unwrap_or(name)
}

/// Records that the runtime system of another language has ended a wait.
pub(crate) fn note_cut_short() {
    CUT_SHORT.store(true, Ordering::Relaxed);
}

/// Returns whether an exception is ending the program, or a signal handler has ended a wait: leaks are then no errors
/// of the program.
pub(crate) fn was_cut_short() -> bool {
    if CUT_SHORT.load(Ordering::Relaxed) {
        return true;
    }
    let Some(Some(python)) = PYTHON.get() else { return false };
    // SAFETY: as in `line`. What `get_item` returns is borrowed.
    unsafe {
        if (python.is_initialized)() == 0 {
            return false;
        }
        let state = (python.ensure)();
        let mut is_set = false;
        if (python.occurred)().is_null() {
            let system = (python.get_item)((python.modules)(), c"sys".as_ptr());
            // Set when an uncaught exception is printed.
            let last = if system.is_null() { system } else { (python.get_attribute)(system, c"last_type".as_ptr()) };
            is_set = !last.is_null();
            python.give_back(last);
            (python.clear)();
        }
        (python.release)(state);
        is_set
    }
}

/// Constructs an `MPI.Exception`, or raises the kept exception.
extern "C" fn construct(this: Object, arguments: Object) -> Object {
    let Some(Some(python)) = PYTHON.get() else { return ptr::null_mut() };
    // SAFETY: the interpreter calls this with its lock held, and lends both objects for the call. The two tuples that
    // are created here are released.
    unsafe {
        if limosa_base::thread::is_first() && python.raise() {
            return ptr::null_mut();
        }
        let first = (python.pack)(1, this);
        if first.is_null() {
            return ptr::null_mut();
        }
        let all = (python.concatenate)(first, arguments);
        (python.decref)(first);
        if all.is_null() {
            return ptr::null_mut();
        }
        let answer = (python.call)(PLAIN.load(Ordering::Relaxed), all);
        (python.decref)(all);
        answer
    }
}

/// Raises the exception. Called by the interpreter's main thread when it continues.
///
/// A module of Cython for several versions of Python evaluates a Python expression for each traceback entry, and drops
/// what that raises. So the call is postponed while one is evaluated.
extern "C" fn raise_when_back(_: *mut c_void) -> c_int {
    let Some(Some(python)) = PYTHON.get() else { return 0 };
    // SAFETY: the interpreter calls this with its lock held. The frame is borrowed.
    unsafe {
        let frame = (python.frame)();
        if !frame.is_null() && Owner::of(&python.file_of(frame)) == Owner::Machinery {
            (python.add_pending_call)(raise_when_back, ptr::null_mut());
            return 0;
        }
        if python.raise() { -1 } else { 0 }
    }
}

impl Python {
    fn find() -> Option<Python> {
        // SAFETY: Python documents each function with the type of the field in which it is stored.
        unsafe { Python::find_all() }
    }

    /// # Safety
    /// The fields must have the types of the functions after which they are named here.
    unsafe fn find_all() -> Option<Python> {
        /// Looks up the function of this name, with the type of the result.
        unsafe fn find<T: Copy>(name: &CStr) -> Option<T> {
            const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
            // SAFETY: looks up a name; a null pointer means that there is none.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            // SAFETY: the caller guarantees that this is the function's type, which is as long as its address.
            (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
        }
        // SAFETY: see this function's contract.
        unsafe {
            Some(Python {
                is_initialized: find(c"Py_IsInitialized")?,
                ensure: find(c"PyGILState_Ensure")?,
                release: find(c"PyGILState_Release")?,
                check_signals: find(c"PyErr_CheckSignals")?,
                occurred: find(c"PyErr_Occurred")?,
                fetch: find(c"PyErr_Fetch")?,
                normalize: find(c"PyErr_NormalizeException")?,
                clear: find(c"PyErr_Clear")?,
                set_error: find(c"PyErr_SetObject")?,
                type_of: find(c"PyObject_Type")?,
                modules: find(c"PyImport_GetModuleDict")?,
                get_item: find(c"PyDict_GetItemString")?,
                get_attribute: find(c"PyObject_GetAttrString")?,
                set_attribute: find(c"PyObject_SetAttrString")?,
                new_method: find(c"PyDescr_NewMethod")?,
                pack: find(c"PyTuple_Pack")?,
                concatenate: find(c"PySequence_Concat")?,
                call: find(c"PyObject_CallObject")?,
                decref: find(c"Py_DecRef")?,
                add_pending_call: find(c"Py_AddPendingCall")?,
                frame: find(c"PyEval_GetFrame")?,
                as_utf8: find(c"PyUnicode_AsUTF8AndSize")?,
                as_long: find(c"PyLong_AsLong")?,
            })
        }
    }

    /// Runs the handlers. Keeps an exception of theirs for the program.
    ///
    /// # Safety
    /// With the interpreter's lock, in its main thread.
    unsafe fn has_raised(&self) -> bool {
        // SAFETY: see this function's contract. The three references of `fetch` belong to this function; one is kept.
        unsafe {
            // The caller may be freeing an object while it handles an error.
            if !(self.occurred)().is_null() || (self.check_signals)() == 0 {
                return false;
            }
            let (mut kind, mut value, mut trace) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            (self.fetch)(&mut kind, &mut value, &mut trace);
            (self.normalize)(&mut kind, &mut value, &mut trace);
            self.give_back(kind);
            self.give_back(trace);
            self.give_back(RAISED.swap(value, Ordering::Relaxed));
            if !self.replace_constructor() {
                // Not mpi4py: the interpreter raises the exception when it continues.
                (self.clear)();
            }
            // If its list of pending calls is full, an exception is pending already.
            (self.add_pending_call)(raise_when_back, ptr::null_mut());
            true
        }
    }

    /// Returns the source file of a frame; empty if it has none.
    ///
    /// # Safety
    /// With the interpreter's lock, and no pending exception; `frame` is a frame object.
    unsafe fn file_of(&self, frame: Object) -> String {
        // SAFETY: see this function's contract. The reference to the code is released.
        unsafe {
            let code = (self.get_attribute)(frame, c"f_code".as_ptr());
            let file = self.attribute_text(code, c"co_filename");
            self.give_back(code);
            file.unwrap_or_default()
        }
    }

    /// Returns the innermost line of the user's own code that this thread is in.
    ///
    /// # Safety
    /// With the interpreter's lock, and no pending exception.
    unsafe fn line(&self) -> Option<Line> {
        // SAFETY: see this function's contract. The first frame is borrowed; every other object is a reference owned by
        // this function, which is released. The text of a string lives as long as the string.
        unsafe {
            let mut frame = (self.frame)();
            let mut owned: Object = ptr::null_mut();
            let (mut found, mut in_package) = (None, None);
            while !frame.is_null() && found.is_none() {
                let file = self.file_of(frame);
                match Owner::of(&file) {
                    Owner::User => {
                        let number = (self.get_attribute)(frame, c"f_lineno".as_ptr());
                        let line = if number.is_null() { 0 } else { (self.as_long)(number) };
                        self.give_back(number);
                        found = Some(Line { place: format!("{file}:{line}"), in_package: in_package == Some(true) });
                    }
                    owner => {
                        if owner != Owner::Machinery {
                            in_package.get_or_insert(owner == Owner::Limosa);
                        }
                        frame = (self.get_attribute)(frame, c"f_back".as_ptr());
                        self.give_back(std::mem::replace(&mut owned, frame));
                    }
                }
            }
            self.give_back(owned);
            // Behind the outermost frame comes None, which has no code.
            (self.clear)();
            found
        }
    }

    /// Copies an attribute that is a string.
    ///
    /// # Safety
    /// With the interpreter's lock; `object` is null or an object.
    unsafe fn attribute_text(&self, object: Object, name: &CStr) -> Option<String> {
        // SAFETY: see this function's contract. The text lives as long as the string, and its length is given.
        unsafe {
            let string = if object.is_null() { object } else { (self.get_attribute)(object, name.as_ptr()) };
            if string.is_null() {
                return None;
            }
            let mut bytes = 0;
            let text = (self.as_utf8)(string, &mut bytes);
            let copy = (!text.is_null()).then(|| {
                let text = std::slice::from_raw_parts(text.cast::<u8>(), bytes as usize);
                String::from_utf8_lossy(text).into_owned()
            });
            self.give_back(string);
            copy
        }
    }

    /// Replaces the constructor of `MPI.Exception`, once. Returns false if that is not possible.
    ///
    /// # Safety
    /// With the interpreter's lock.
    unsafe fn replace_constructor(&self) -> bool {
        if !PLAIN.load(Ordering::Relaxed).is_null() {
            return true;
        }
        // SAFETY: see this function's contract. References from dictionaries are borrowed, all others are released; the
        // original constructor is kept permanently.
        unsafe {
            let module = (self.get_item)((self.modules)(), c"mpi4py.MPI".as_ptr());
            if module.is_null() {
                return false;
            }
            let kind = (self.get_attribute)(module, c"Exception".as_ptr());
            if kind.is_null() {
                return false;
            }
            let plain = (self.get_attribute)(kind, INIT.as_ptr());
            let ours = (self.new_method)(kind, &CONSTRUCTOR);
            let is_ready = !plain.is_null() && !ours.is_null();
            if is_ready {
                PLAIN.store(plain, Ordering::Relaxed);
            }
            let replaced = is_ready && (self.set_attribute)(kind, INIT.as_ptr(), ours) == 0;
            if !replaced {
                PLAIN.store(ptr::null_mut(), Ordering::Relaxed);
                self.give_back(plain);
            }
            self.give_back(ours);
            (self.decref)(kind);
            replaced
        }
    }

    /// Raises the kept exception. Returns whether there was one.
    ///
    /// # Safety
    /// With the interpreter's lock.
    unsafe fn raise(&self) -> bool {
        let value = RAISED.swap(ptr::null_mut(), Ordering::Relaxed);
        if value.is_null() {
            return false;
        }
        // SAFETY: see this function's contract. The reference was kept for this; setting the error takes its own.
        unsafe {
            let kind = (self.type_of)(value);
            (self.set_error)(kind, value);
            self.give_back(kind);
            self.give_back(value);
        }
        true
    }

    /// Releases a reference, if it is not null.
    ///
    /// # Safety
    /// With the interpreter's lock; the reference is no longer used.
    unsafe fn give_back(&self, reference: Object) {
        if !reference.is_null() {
            // SAFETY: see this function's contract.
            unsafe { (self.decref)(reference) };
        }
    }
}
