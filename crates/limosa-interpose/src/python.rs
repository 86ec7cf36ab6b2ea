//! The current lines of a thread in a Python program, without the interpreter's lock: mpi4py releases the lock before
//! it calls MPI, and acquiring it again would cost more than the call.
//!
//! A frame of the interpreter contains its current instruction and the address of its caller's frame. Both change only
//! on the thread that they belong to, which is the calling one. The offsets of these two words differ between versions,
//! so they are determined once ([`Layout::find`]): Python itself gives the addresses of its frame objects, code objects
//! and threads, and the words that link them are searched. Without them (Python before 3.11, PyPy), all calls seem to
//! come from one call site.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

type Object = *mut c_void;

/// Number of inspected frames: the user's line is the innermost one, or a few library frames away from it.
const FRAMES: usize = 8;
/// Number of inspected words of an interpreter's structure.
const WORDS: usize = 48;
/// Offset of the frame's address in a frame object, in bytes.
const FRAME_OF_OBJECT: usize = 24;

/// Functions of the interpreter.
struct Python {
    is_initialized: unsafe extern "C" fn() -> c_int,
    thread: unsafe extern "C" fn() -> Object,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    occurred: unsafe extern "C" fn() -> Object,
    clear: unsafe extern "C" fn(),
    new_dictionary: unsafe extern "C" fn() -> Object,
    run: unsafe extern "C" fn(*const c_char, c_int, Object, Object) -> Object,
    as_utf8: unsafe extern "C" fn(Object, *mut isize) -> *const c_char,
    decref: unsafe extern "C" fn(Object),
}

/// `Py_file_input` and `Py_eval_input`: kinds of a text.
const STATEMENTS: c_int = 257;
const EXPRESSION: c_int = 258;

/// Queries to the interpreter. The two innermost frames are those of the query.
const FUNCTIONS: &CStr = c"
import sys

def lines():
    frame, found = sys._getframe(2), []
    while frame is not None and len(found) < 8:
        code = frame.f_code
        found.append(f'{code.co_filename}:{frame.f_lineno} in {code.co_name}'.replace('\\n', ' ').replace('\\t', ' '))
        frame = frame.f_back
    return '\\t'.join(found)

def places():
    frame = sys._getframe(2)
    behind = frame.f_back
    return f'{id(frame)} {id(frame.f_code)} {sys.getsizeof(frame.f_code)} {0 if behind is None else id(behind)}'
";

/// Offsets in bytes.
struct Layout {
    /// Of the innermost frame in a thread, or of the structure that contains it.
    in_thread: usize,
    in_structure: Option<usize>,
    /// Of the instruction and of the caller's frame in a frame.
    instruction: usize,
    behind: usize,
}

static IS_HERE: AtomicBool = AtomicBool::new(false);
static PYTHON: OnceLock<Option<(Python, Layout)>> = OnceLock::new();

/// Looks for the interpreter. Called at the first call of MPI, which comes from the program's first thread or, in a
/// Python program, from any thread that runs Python.
pub fn find() {
    // SAFETY: Python documents each function with the type of the field in which it is stored.
    PYTHON.get_or_init(|| unsafe {
        let python = Python::find()?;
        let layout = Layout::find(&python)?;
        IS_HERE.store(true, Relaxed);
        Some((python, layout))
    });
}

/// Returns whether the lines of this process's Python program are known.
#[inline]
pub fn is_here() -> bool {
    IS_HERE.load(Relaxed)
}

/// Returns a number for the lines of this thread's innermost frames; `None` if it runs no Python.
#[inline(never)]
pub fn digest_of_lines() -> Option<usize> {
    let (python, layout) = PYTHON.get()?.as_ref()?;
    let mut digest = 0usize;
    // SAFETY: the structures belong to this thread and exist during this call; null ends the chain.
    unsafe {
        let thread = (python.thread)();
        if thread.is_null() {
            return None;
        }
        let mut frame = word(thread as usize + layout.in_thread);
        if let Some(offset) = layout.in_structure {
            frame = word(frame + offset);
        }
        for _ in 0..FRAMES {
            if frame == 0 {
                break;
            }
            digest = (digest.rotate_left(5) ^ word(frame + layout.instruction)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            frame = word(frame + layout.behind);
        }
    }
    (digest != 0).then_some(digest)
}

/// # Safety
/// Eight bytes must be readable.
#[inline]
unsafe fn word(address: usize) -> usize {
    // SAFETY: see this function's contract.
    unsafe { *(address as *const usize) }
}

/// Returns the lines of those frames, innermost first: `file:line in function`, separated by tabs; `None` if this
/// thread runs no Python. Acquires the interpreter's lock.
pub fn lines() -> Option<String> {
    let (python, _) = PYTHON.get()?.as_ref()?;
    // SAFETY: queries this thread's state, which is allowed at any time.
    let is_python = unsafe { !(python.thread)().is_null() };
    if is_python { python.ask(c"lines()") } else { None }
}

/// Returns whether an uncaught exception has ended the program.
pub fn has_failed() -> bool {
    let Some(Some((python, _))) = PYTHON.get() else { return false };
    python.ask(c"str(hasattr(sys, 'last_type'))").as_deref() == Some("True")
}

impl Python {
    /// # Safety
    /// The fields must have the types of the functions after which they are named here.
    unsafe fn find() -> Option<Python> {
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
                thread: find(c"PyGILState_GetThisThreadState")?,
                ensure: find(c"PyGILState_Ensure")?,
                release: find(c"PyGILState_Release")?,
                occurred: find(c"PyErr_Occurred")?,
                clear: find(c"PyErr_Clear")?,
                new_dictionary: find(c"PyDict_New")?,
                run: find(c"PyRun_String")?,
                as_utf8: find(c"PyUnicode_AsUTF8AndSize")?,
                decref: find(c"Py_DecRef")?,
            })
        }
    }

    /// Evaluates an expression of `FUNCTIONS`, which returns a string; `None` if the interpreter cannot be called now.
    fn ask(&self, expression: &CStr) -> Option<String> {
        static NAMES: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
        // SAFETY: the functions have the types that Python documents. All but the first are called between `ensure` and
        // `release`, thus with the interpreter's lock. A pending exception belongs to the caller, and prevents the
        // query; an exception of the query is cleared. The results are references owned by this function, which are
        // released; the dictionary is kept.
        unsafe {
            if (self.is_initialized)() == 0 {
                return None;
            }
            let state = (self.ensure)();
            let mut answer = None;
            if (self.occurred)().is_null() {
                if NAMES.load(Relaxed).is_null() {
                    let names = (self.new_dictionary)();
                    self.give_back((self.run)(FUNCTIONS.as_ptr(), STATEMENTS, names, names));
                    NAMES.store(names, Relaxed);
                }
                let names = NAMES.load(Relaxed);
                let text = (self.run)(expression.as_ptr(), EXPRESSION, names, names);
                let mut bytes = 0;
                let start = if text.is_null() { std::ptr::null() } else { (self.as_utf8)(text, &mut bytes) };
                if !start.is_null() {
                    let text = std::slice::from_raw_parts(start.cast::<u8>(), bytes as usize);
                    answer = Some(String::from_utf8_lossy(text).into_owned());
                }
                self.give_back(text);
                (self.clear)();
            }
            (self.release)(state);
            answer
        }
    }

    /// Releases a reference, if it is not null.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock and no longer uses the reference.
    unsafe fn give_back(&self, reference: Object) {
        if !reference.is_null() {
            // SAFETY: see this function's contract.
            unsafe { (self.decref)(reference) };
        }
    }
}

impl Layout {
    /// Searches for the offsets. Memory is read through the kernel, so a wrong guess is harmless.
    fn find(python: &Python) -> Option<Layout> {
        let memory = std::fs::File::open("/proc/self/mem").ok()?;
        let read = |address: usize| {
            let mut bytes = [0; 8];
            memory.read_exact_at(&mut bytes, address as u64).ok()?;
            Some(usize::from_ne_bytes(bytes))
        };
        let offset = |of: usize, is_it: &dyn Fn(usize) -> bool| {
            (0..WORDS).map(|at| at * size_of::<usize>()).find(|at| read(of + at).is_some_and(is_it))
        };
        let said = python.ask(c"places()")?;
        let mut said = said.split(' ').map(|text| text.parse::<usize>().unwrap_or(0));
        let [object, code, size, object_behind] = std::array::from_fn(|_| said.next().unwrap_or(0));
        // SAFETY: queries this thread's state.
        let thread = unsafe { (python.thread)() } as usize;
        if [object, code, size, object_behind, thread].contains(&0) {
            return None;
        }
        let (frame, frame_behind) = (read(object + FRAME_OF_OBJECT)?, read(object_behind + FRAME_OF_OBJECT)?);
        let in_code = |address: usize| code < address && address < code + size;
        let (instruction, behind) = (offset(frame, &in_code)?, offset(frame, &|found| found == frame_behind)?);
        if let Some(in_thread) = offset(thread, &|found| found == frame) {
            return Some(Layout { in_thread, in_structure: None, instruction, behind });
        }
        // Between the thread and the frame there is a structure, whose first or second word is the frame.
        let at = |found: usize| [0, 8].into_iter().find(|at| read(found + at) == Some(frame));
        let in_thread = offset(thread, &|found| at(found).is_some())?;
        let in_structure = at(read(thread + in_thread)?);
        Some(Layout { in_thread, in_structure, instruction, behind })
    }
}
