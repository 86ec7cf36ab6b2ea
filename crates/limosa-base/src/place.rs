//! Source lines of programs that were compiled with `-g`.
//!
//! The process that makes a call encodes its return address as text ([`address`]), which other processes can print. The
//! process that reports decodes it ([`words`]).

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::process::Command;

/// Separates the parts of an encoded address.
const SEPARATOR: char = '\t';

/// Encodes an address: the program or library, the address in it, and the function, if they are known.
pub fn address(address: usize) -> String {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is written if the call succeeds; its strings live as long as the loaded module.
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
        // The call instruction precedes the return address.
        let base = if is_program && !is_position_independent(&file) { 0 } else { found.dli_fbase as usize };
        let offset = address.wrapping_sub(base).wrapping_sub(1);
        format!("{}{SEPARATOR}{offset:x}{SEPARATOR}{}", file.display(), text(found.dli_sname))
    }
}

/// Returns whether a program is position-independent: addresses in its file then count from its beginning.
fn is_position_independent(program: &std::path::Path) -> bool {
    use std::io::Read;
    let mut head = [0u8; 18];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut head));
    // The file type in the ELF header is ET_DYN.
    read.is_ok() && head[16] == 3
}

/// Describes an encoded address, with a leading comma; empty if the place is unknown.
pub fn words(text: &str) -> String {
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

/// Returns the source line of an address, if the program has line tables and `addr2line` is installed.
pub fn line(file: &str, offset: &str) -> Option<String> {
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
    fn an_address_without_a_line_is_a_function_and_a_number() {
        assert_eq!(words("/nowhere/heat\t11f0\tstep"), ", in step (heat+0x11f0)");
        assert_eq!(words("/nowhere/heat\t11f0\t"), ", at heat+0x11f0");
        assert_eq!(words(""), "");
    }
}
