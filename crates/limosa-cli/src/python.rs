//! Commands that are written in Python: finds Python and Limosa's packages, and runs them in place of this process or
//! asks them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::Access;
use serde_json::Value;

use crate::exit;
use crate::message::say;

/// A package of Limosa's, and what to install if it is missing.
#[derive(Clone, Copy)]
pub struct Package {
    /// Its name for `import`.
    pub name: &'static str,
    /// Its name for pip.
    pub install: &'static str,
}

/// The Python package that comes with this command.
pub const LIMOSA: Package = Package { name: "limosa", install: "limosa" };
/// The laboratory.
pub const LABORATORY: Package = Package { name: "limosa_lab", install: "limosa[lab]" };

/// Replaces this process by `python -m module args...`; returns only if that is not possible. `called` is the command
/// as the user knows it.
pub fn hand_over(called: &str, package: Package, module: &str, args: &[OsString]) -> ExitCode {
    let Some(python) = prepared(called, package) else { return ExitCode::from(exit::ENVIRONMENT) };
    let error = Command::new(&python).args(["-m", module]).args(args).exec();
    say(&format!("cannot run {}: {error}", python.display()), None);
    ExitCode::from(exit::ENVIRONMENT)
}

/// The JSON that `python -m module args...` prints; its messages go to our stderr. If it fails, the exit code for this
/// command.
pub fn ask(called: &str, package: Package, module: &str, args: &[&str]) -> Result<Value, ExitCode> {
    let environment = ExitCode::from(exit::ENVIRONMENT);
    let python = prepared(called, package).ok_or(environment)?;
    let mut command = Command::new(&python);
    command.args(["-m", module]).args(args).stdin(Stdio::null()).stderr(Stdio::inherit());
    match command.output() {
        Ok(output) if output.status.success() => serde_json::from_slice(&output.stdout).map_err(|error| {
            say(&format!("`{} -m {module}` gave an invalid answer: {error}", python.display()), None);
            environment
        }),
        Ok(output) => Err(output.status.code().map_or_else(
            || {
                say(&format!("`{} -m {module}` did not come to its end: {}", python.display(), output.status), None);
                environment
            },
            // It has printed why.
            |code| ExitCode::from(code as u8),
        )),
        Err(error) => {
            say(&format!("cannot run {}: {error}", python.display()), None);
            Err(environment)
        }
    }
}

/// A Python that has the package; without one, says what is missing.
fn prepared(called: &str, package: Package) -> Option<PathBuf> {
    let Package { name, install } = package;
    let Some(python) = find() else {
        say(
            &format!("`{called}` needs Python, and there is no python3 beside this command or in PATH"),
            Some("install Python 3.10 or newer"),
        );
        return None;
    };
    let probe = format!("import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)");
    let probe = Command::new(&python)
        .args(["-c", &probe])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        let python = python.display();
        let hint = format!("install it: {python} -m pip install '{install}'");
        say(&format!("`{called}` needs the Python package {name}, which {python} does not find"), Some(&hint));
        return None;
    }
    Some(python)
}

/// The Python that this command is installed with, else the one in PATH.
pub fn find() -> Option<PathBuf> {
    let usable = |file: &PathBuf| rustix::fs::access(file, Access::EXEC_OK).is_ok();
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("python3"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join("python3")).find(usable);
    beside.filter(usable).or(in_path)
}
