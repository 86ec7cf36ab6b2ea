//! Which lines of a Python program a thread is at, without its interpreter's lock: mpi4py gives the lock back before it
//! calls MPI, and to take it again would cost more than the call.
//!
//! A frame of the interpreter says which instruction it is at, and which frame is behind it. Both change only by the
//! thread that they belong to, which is here. Where these two words lie differs between versions, so it is found out
//! once ([`Layout::find`]): Python itself says where its frame objects, code objects and threads are, and the words that
//! lead from one to the other are looked for. What cannot be found (Python before 3.11, PyPy) is not used; then all
//! calls come from one place.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

type Object = *mut c_void;

/// Frames that are looked at: the user's line is the innermost one, or a few libraries away from it.
const FRAMES: usize = 8;
/// Words of a structure of the interpreter that are looked at.
const WORDS: usize = 48;
/// Where a frame object has the address of its frame.
const FRAME_OF_OBJECT: usize = 24;

/// The functions of the interpreter.
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

/// `Py_file_input` and `Py_eval_input`: what a text is.
const STATEMENTS: c_int = 257;
const EXPRESSION: c_int = 258;

/// What is asked of the interpreter. Of the frames the two innermost are those of the question.
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
    /// Of the innermost frame in a thread, or of the structure that has it.
    in_thread: usize,
    in_structure: Option<usize>,
    /// Of the instruction and of the frame behind in a frame.
    instruction: usize,
    behind: usize,
}

static IS_HERE: AtomicBool = AtomicBool::new(false);
static PYTHON: OnceLock<Option<(Python, Layout)>> = OnceLock::new();

/// Looks for the interpreter. Called with the first call of MPI, which comes from the program's first thread or, in a
/// Python program, from any thread that runs Python.
pub fn find() {
    // SAFETY: Python documents each function with the type of the field that it is stored in.
    PYTHON.get_or_init(|| unsafe {
        let python = Python::find()?;
        let layout = Layout::find(&python)?;
        IS_HERE.store(true, Relaxed);
        Some((python, layout))
    });
}

/// The lines of this process's Python program are known.
#[inline]
pub fn is_here() -> bool {
    IS_HERE.load(Relaxed)
}

/// A number for the lines at which the innermost frames of this thread are; none if it runs no Python.
#[inline(never)]
pub fn digest_of_lines() -> Option<usize> {
    let (python, layout) = PYTHON.get()?.as_ref()?;
    let mut digest = 0usize;
    // SAFETY: the structures are this thread's own and exist while it is in this call; null ends the chain.
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
/// There are eight readable bytes.
#[inline]
unsafe fn word(address: usize) -> usize {
    // SAFETY: see this function's contract.
    unsafe { *(address as *const usize) }
}

/// The lines of those frames, innermost first: `file:line in function`, with tabs between; none if this thread runs no
/// Python. Takes the interpreter's lock.
pub fn lines() -> Option<String> {
    let (python, _) = PYTHON.get()?.as_ref()?;
    // SAFETY: asks for this thread's state, at any time.
    let is_python = unsafe { !(python.thread)().is_null() };
    if is_python { python.ask(c"lines()") } else { None }
}

/// An exception that nobody has caught has ended the program.
pub fn has_failed() -> bool {
    let Some(Some((python, _))) = PYTHON.get() else { return false };
    python.ask(c"str(hasattr(sys, 'last_type'))").as_deref() == Some("True")
}

impl Python {
    /// # Safety
    /// The fields have the types of the functions that they are named for here.
    unsafe fn find() -> Option<Python> {
        /// The function of this name, of the type that is wanted.
        unsafe fn find<T: Copy>(name: &CStr) -> Option<T> {
            const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
            // SAFETY: looks up a name; a null pointer says that there is none.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            // SAFETY: the caller says that this is the function's type, which is as long as its address.
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

    /// What an expression of `FUNCTIONS` gives, a string; none if the interpreter cannot be asked now.
    fn ask(&self, expression: &CStr) -> Option<String> {
        static NAMES: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
        // SAFETY: the functions have the types that Python documents. All but the first are called between `ensure` and
        // `release`, thus with the interpreter's lock. An exception that is set belongs to the caller, and then nothing
        // is asked; one of ours is cleared. The results are references of this function's own, which are given back; the
        // dictionary is kept.
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

    /// Gives a reference back, if it is one.
    ///
    /// # Safety
    /// With the interpreter's lock; it is not used any more.
    unsafe fn give_back(&self, reference: Object) {
        if !reference.is_null() {
            // SAFETY: see this function's contract.
            unsafe { (self.decref)(reference) };
        }
    }
}

impl Layout {
    /// Looks for the words. Memory is read through the system, so that a wrong guess is harmless.
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
        // SAFETY: asks for this thread's state.
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
        // Between the thread and the frame there is a structure, of which the frame is the first or second word.
        let at = |found: usize| [0, 8].into_iter().find(|at| read(found + at) == Some(frame));
        let in_thread = offset(thread, &|found| at(found).is_some())?;
        let in_structure = at(read(thread + in_thread)?);
        Some(Layout { in_thread, in_structure, instruction, behind })
    }
}
