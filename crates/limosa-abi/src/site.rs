//! The line of the program from which a call of MPI comes: for a Python program that of its innermost own frame, for a
//! program compiled with `-g` that of the return address.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
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

/// Returns the address to which this library returns, unless the program is an interpreter.
fn return_address() -> Option<usize> {
    static IS_INTERPRETER: OnceLock<bool> = OnceLock::new();
    if *IS_INTERPRETER.get_or_init(is_interpreter) {
        return None;
    }
    let mut frames = [std::ptr::null_mut::<c_void>(); MOST_FRAMES];
    // SAFETY: the array has room for so many addresses.
    let found = unsafe { libc::backtrace(frames.as_mut_ptr(), MOST_FRAMES as i32) };
    let callers = &frames[..usize::try_from(found).ok()?];
    callers.iter().map(|frame| *frame as usize).find(|frame| is_of_program(*frame))
}

/// Returns whether the program is an interpreter, or unknown.
fn is_interpreter() -> bool {
    let Ok(program) = std::env::current_exe() else { return true };
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}

/// Returns whether an address is in a module of the program: neither in this library nor in an interposed one of ours.
/// The loader takes microseconds to find a module, so the answers are cached.
fn is_of_program(address: usize) -> bool {
    static ANSWERS: RwLock<BTreeMap<usize, bool>> = RwLock::new(BTreeMap::new());
    cached(&ANSWERS, address, |address| {
        let own = module(here as fn() -> Site as *const c_void).map(|(start, _)| start);
        let found = module(address as *const c_void);
        found.is_some_and(|(start, name)| Some(start) != own && !name.starts_with("liblimosa"))
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
