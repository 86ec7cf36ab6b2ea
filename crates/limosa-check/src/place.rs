//! Where calls come from, in words: a line of a Python program, a line of a program that was compiled with `-g`, or a
//! function and an address.

use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::process::Command;
use std::sync::Mutex;

use limosa_interpose::python;
use limosa_interpose::site::{self, Site};

/// Folders of libraries, whose lines are not the user's.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "<frozen"];
/// Between the words for an address, which [`words`] turns into a line.
const SEPARATOR: char = '\t';

/// A folder in the path of our Python package.
const PACKAGE: &str = "/limosa/";

/// A place in words, and whether a line of our Python package is the innermost.
type Known = (String, bool);

static KNOWN: Mutex<Option<HashMap<usize, Known>>> = Mutex::new(None);

/// The place of the call of this thread that has just begun. Called without any lock of ours: it may wait for Python's.
pub(crate) fn here() -> Site {
    static IS_PYTHON_SOUGHT: std::sync::Once = std::sync::Once::new();
    IS_PYTHON_SOUGHT.call_once(python::find);
    // SAFETY: the variables of a thread live as long as it does.
    let returns_to = unsafe { (*site::kept()).returns_to };
    let site = site::of_call(returns_to);
    let is_known = |known: &Option<HashMap<usize, Known>>| known.as_ref().is_some_and(|all| all.contains_key(&site.0));
    if !KNOWN.lock().is_ok_and(|known| is_known(&known)) {
        let text = python::lines().map_or_else(
            || (address(site.0), false),
            |lines| (of_user(&lines), lines.split('\t').next().is_some_and(|line| line.contains(PACKAGE))),
        );
        if let Ok(mut known) = KNOWN.lock() {
            known.get_or_insert_default().insert(site.0, text);
        }
    }
    site
}

/// What is known of a place, in a form that another process can make words of.
pub(crate) fn text(site: Site) -> String {
    known(site).0
}

/// The place is in our Python package, whose users need not free anything.
pub(crate) fn is_in_package(site: Site) -> bool {
    known(site).1
}

fn known(site: Site) -> Known {
    let known = KNOWN.lock().ok().and_then(|known| known.as_ref()?.get(&site.0).cloned());
    known.unwrap_or_default()
}

/// The innermost line that is not a library's: `file:line`.
fn of_user(lines: &str) -> String {
    let own = lines.split('\t').find(|line| !LIBRARIES.iter().any(|folder| line.contains(folder)));
    let line = own.or(lines.split('\t').next()).unwrap_or_default();
    let line = line.rsplit_once(" in ").map_or(line, |(line, _)| line);
    line.rsplit('/').next().unwrap_or(line).to_owned()
}

/// The program or library, the address in it, and the function, if they are known.
fn address(address: usize) -> String {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is written if the call succeeds; its texts live as long as the module, which is here.
    unsafe {
        if libc::dladdr(address as *const _, found.as_mut_ptr()) == 0 {
            return String::new();
        }
        let found = found.assume_init();
        let text = |name: *const libc::c_char| match name.is_null() {
            true => String::new(),
            false => CStr::from_ptr(name).to_string_lossy().replace(SEPARATOR, " "),
        };
        let file = std::fs::canonicalize(text(found.dli_fname)).unwrap_or_default();
        let is_program = std::fs::read_link("/proc/self/exe").is_ok_and(|program| program == file);
        // The call ends before the address to which it returns.
        let base = if is_program && !is_position_independent(&file) { 0 } else { found.dli_fbase as usize };
        let offset = address.wrapping_sub(base).wrapping_sub(1);
        format!("{}{SEPARATOR}{offset:x}{SEPARATOR}{}", file.display(), text(found.dli_sname))
    }
}

/// Whether a program may lie anywhere: addresses in its file then count from its beginning.
fn is_position_independent(program: &std::path::Path) -> bool {
    use std::io::Read;
    let mut head = [0u8; 18];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut head));
    // The type of an ELF file is ET_DYN.
    read.is_ok() && head[16] == 3
}

/// The place in words, behind a comma; nothing if it is not known.
pub(crate) fn words(text: &str) -> String {
    let mut parts = text.split(SEPARATOR);
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        ("", ..) => String::new(),
        (line, None, _) => format!(", at {line}"),
        (file, Some(offset), symbol) => line(file, offset).unwrap_or_else(|| {
            let name = file.rsplit('/').next().unwrap_or(file);
            match symbol.unwrap_or_default() {
                "" => format!(", at {name}+0x{offset}"),
                symbol => format!(", in {symbol} ({name}+0x{offset})"),
            }
        }),
    }
}

/// The line of an address, where the program knows it, and there is `addr2line`.
fn line(file: &str, offset: &str) -> Option<String> {
    let mut command = Command::new("addr2line");
    command.args(["-e", file, &format!("0x{offset}")]).env_remove("LD_PRELOAD");
    let said = command.stderr(std::process::Stdio::null()).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let line = said.split_whitespace().next()?;
    let line = line.rsplit('/').next()?;
    (!line.contains('?')).then(|| format!(", at {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_users_innermost_line() {
        let lines =
            "/v/lib/python3.11/site-packages/x/y.py:3 in f\t/home/a/heat.py:31 in step\t/home/a/heat.py:80 in main";
        assert_eq!(words(&of_user(lines)), ", at heat.py:31");
    }

    #[test]
    fn an_address_without_a_line_is_a_function_and_a_number() {
        assert_eq!(words("/nowhere/heat\t11f0\tstep"), ", in step (heat+0x11f0)");
        assert_eq!(words("/nowhere/heat\t11f0\t"), ", at heat+0x11f0");
        assert_eq!(words(""), "");
    }
}
