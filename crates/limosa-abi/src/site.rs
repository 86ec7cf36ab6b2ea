//! The line of the program from which a call of MPI comes: for a Python program that of its innermost own frame, for a
//! program compiled with `-g` that of the return address.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use limosa_base::place;
use limosa_mpi::check::{self, Sites};
use parking_lot::RwLock;

use crate::python;

/// An encoded line of the program, which [`place::words`] decodes; empty if it is unknown.
#[derive(Clone, Default)]
pub(crate) struct Site {
    text: String,
    /// Whether it has called our Python package, which has called MPI.
    pub(crate) in_package: bool,
}

impl Site {
    /// Returns the line as the end of a sentence: `, at heat.c:31`, or nothing.
    pub(crate) fn in_words(&self) -> String {
        place::words(&self.text)
    }
}

/// Registers this module as the source of line numbers for the layers below.
pub(crate) fn plug_in() {
    check::plug_in_sites(Sites { here: || here().text, words: place::words });
}

/// Returns the line of the call that this thread is in. This may run code of the program, so no lock may be held.
pub(crate) fn here() -> Site {
    match python::line() {
        Some(line) => Site { text: line.place, in_package: line.in_package },
        None => Site { text: return_address().map(text_of).unwrap_or_default(), in_package: false },
    }
}

/// Maximum number of frames of this library, and of interposed ones, in a call.
const MOST_FRAMES: usize = 64;

/// Interpreters: the return address in them is no line of the user's code.
const INTERPRETERS: [&str; 3] = ["octave", "java", "python"];

/// Returns the encoded line of an address, from a cache: encoding opens files.
fn text_of(address: usize) -> String {
    static TEXTS: RwLock<BTreeMap<usize, String>> = RwLock::new(BTreeMap::new());
    cached(&TEXTS, address, place::address)
}

/// Returns what `find` finds for an address, from a cache.
fn cached<T: Clone>(cache: &RwLock<BTreeMap<usize, T>>, address: usize, find: impl FnOnce(usize) -> T) -> T {
    if let Some(known) = cache.read().get(&address) {
        return known.clone();
    }
    let found = find(address);
    cache.write().insert(address, found.clone());
    found
}

unsafe extern "C" {
    /// Calls `visit` with each frame of this thread, from the innermost one, until it returns anything but 0.
    fn _Unwind_Backtrace(visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    /// Returns the return address of a frame that is being visited.
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

/// Result of [`_Unwind_Backtrace`]: there are no frames left.
const END_OF_STACK: c_int = 5;

/// Search for the innermost frame of the program.
#[derive(Default)]
struct Search {
    frames: usize,
    found: Option<usize>,
}

/// Looks at a frame; ends the search if it is one of the program.
extern "C" fn visit(frame: *mut c_void, search: *mut c_void) -> c_int {
    // SAFETY: the search of the caller of `_Unwind_Backtrace`, and the frame that it visits.
    let (search, address) = unsafe { (&mut *search.cast::<Search>(), _Unwind_GetIP(frame)) };
    search.frames += 1;
    if is_of_program(address) {
        search.found = Some(address);
    }
    if search.found.is_some() || search.frames == MOST_FRAMES { END_OF_STACK } else { 0 }
}

/// Returns the address to which this library returns, unless the program is an interpreter.
fn return_address() -> Option<usize> {
    static IS_INTERPRETER: OnceLock<bool> = OnceLock::new();
    if *IS_INTERPRETER.get_or_init(is_interpreter) {
        return None;
    }
    let mut search = Search::default();
    // SAFETY: `visit` uses its argument as the search that it is.
    unsafe { _Unwind_Backtrace(visit, std::ptr::from_mut(&mut search).cast()) };
    search.found
}

/// Returns whether the program is an interpreter, or unknown.
fn is_interpreter() -> bool {
    let Ok(program) = std::env::current_exe() else { return true };
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}

/// Returns whether an address is in a module of the program: neither in this library, nor in that of Fortran, nor in an
/// interposed one of ours.
/// The loader takes microseconds to find a module, so the answers are cached.
fn is_of_program(address: usize) -> bool {
    static ANSWERS: RwLock<BTreeMap<usize, bool>> = RwLock::new(BTreeMap::new());
    cached(&ANSWERS, address, |address| {
        let own = module(here as fn() -> Site as *const c_void).map(|(start, _)| start);
        let found = module(address as *const c_void);
        found.is_some_and(|(start, name)| {
            Some(start) != own && !["liblimosa", "libmpi_abi"].iter().any(|own| name.starts_with(own))
        })
    })
}

/// Returns the module of an address: its base address, and the name of its file.
fn module(address: *const c_void) -> Option<(usize, String)> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is written if the call succeeds; the name lives as long as the module.
    unsafe {
        if libc::dladdr(address, found.as_mut_ptr()) == 0 {
            return None;
        }
        let found = found.assume_init();
        let file = if found.dli_fname.is_null() { c"" } else { CStr::from_ptr(found.dli_fname) }.to_string_lossy();
        Some((found.dli_fbase as usize, file.rsplit('/').next().unwrap_or_default().to_owned()))
    }
}
