//! `limosa bench`: hands over to the Python package that measures and reports.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::Access;

use crate::exit;
use crate::message::say;

/// The package, and a program for Python that fails if it is not installed.
const PACKAGE: &str = "limosa_lab";
const PROBE: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('limosa_lab') is None)";

/// Replaces this process by Python; returns only if that is not possible.
pub fn main(args: &[OsString]) -> ExitCode {
    let Some(python) = find_python() else {
        say("`limosa bench` needs Python, and there is no python3 beside this command or in PATH", Some("install Python 3.11 or newer"));
        return ExitCode::from(exit::ENVIRONMENT);
    };
    let probe = Command::new(&python).args(["-c", PROBE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        say(
            &format!("`limosa bench` needs the Python package {PACKAGE}, which {} does not find", python.display()),
            Some(&format!("install it: {} -m pip install 'limosa[lab]'", python.display())),
        );
        return ExitCode::from(exit::ENVIRONMENT);
    }
    let error = Command::new(&python).args(["-m", PACKAGE, "bench"]).args(args).exec();
    say(&format!("cannot run {}: {error}", python.display()), None);
    ExitCode::from(exit::ENVIRONMENT)
}

/// The Python that this command is installed with, else the one in PATH.
fn find_python() -> Option<PathBuf> {
    let usable = |file: &PathBuf| rustix::fs::access(file, Access::EXEC_OK).is_ok();
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("python3"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join("python3")).find(usable);
    beside.filter(usable).or(in_path)
}
