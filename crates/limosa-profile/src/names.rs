//! Meaning of the numbers in a profile, as text in `HOST.PID.names`: one line per number, with fields separated by
//! tabs:
//!
//! ```text
//! python  SITE  FILE:LINE in FUNCTION  ...              innermost first
//! code    SITE  FILE  LOADED AT  RETURNS TO  SYMBOL     numbers in hexadecimal; the symbol may be missing
//! comm    HANDLE  SINCE  RANK  ...                      its members' ranks in MPI_COMM_WORLD, of an intercommunicator
//!                                                       those of the other group
//! ```
//!
//! A line is written with one system call when its number is first recorded, so it is there when the process is killed.
//! Another thread may write the same line again. A communicator's handle may be reused: SINCE is the processor's
//! counter from which the line may be valid.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::OnceLock;

use limosa_interpose::python;
use limosa_interpose::site::Site;

use crate::file::without_size_signal;

static FILE: OnceLock<Option<File>> = OnceLock::new();

/// Creates the file. Without it numbers have no names.
pub(crate) fn open(file: &Path) {
    FILE.get_or_init(|| OpenOptions::new().create_new(true).append(true).open(file).ok());
}

/// Describes a call site of the program, at which this thread is now.
#[cold]
pub(crate) fn describe(site: Site) {
    let line = match python::lines() {
        Some(lines) => Some(format!("python\t{:x}\t{lines}\n", site.0)),
        None => code(site.0),
    };
    write(line.as_deref().unwrap_or_default());
}

/// Describes the members of a communicator.
#[cold]
pub(crate) fn describe_communicator(handle: usize, since: u64, ranks: &[i32]) {
    let mut line = format!("comm\t{handle:x}\t{since:x}");
    for rank in ranks {
        let _ = write!(line, "\t{rank}");
    }
    line.push('\n');
    write(&line);
}

/// Describes an address in the program, as far as it is known.
fn code(address: usize) -> Option<String> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is written if the call succeeds; its strings live as long as the loaded module.
    unsafe {
        if libc::dladdr(address as *const _, found.as_mut_ptr()) == 0 {
            return None;
        }
        let found = found.assume_init();
        let text = |name: *const libc::c_char| match name.is_null() {
            true => String::new(),
            false => CStr::from_ptr(name).to_string_lossy().replace(['\t', '\n'], " "),
        };
        let (file, symbol) = (text(found.dli_fname), text(found.dli_sname));
        // The name of the program itself may be a relative path.
        let file = std::fs::canonicalize(&file).map_or(file, |path| path.to_string_lossy().into_owned());
        Some(format!("code\t{address:x}\t{file}\t{:x}\t{address:x}\t{symbol}\n", found.dli_fbase as usize))
    }
}

fn write(line: &str) {
    if let Some(Some(mut file)) = FILE.get().map(Option::as_ref) {
        // Without space in the file the number has no name.
        let _ = without_size_signal(|| file.write_all(line.as_bytes()));
    }
}
