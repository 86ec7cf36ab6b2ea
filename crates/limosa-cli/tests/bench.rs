//! `limosa bench` and `limosa study` hand over to Python, or says what is missing. Python is played by small scripts.

mod common;
use common::*;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A `python3` in `folder` that does this.
fn python(folder: &Path, script: &str) {
    let file = folder.join("python3");
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("the script is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the script may be executed");
}

fn bench(path: &Path, args: &[&str]) -> Done {
    let mut command = limosa(&[&["bench"], args].concat());
    command.env("PATH", path);
    finish(command, b"")
}

#[test]
fn hands_all_arguments_over_and_its_exit_code_back() {
    let folder = tempfile::tempdir().expect("a folder");
    python(folder.path(), r#"[ "$1" = -c ] && exit 0; echo "$@"; exit 7"#);
    let done = bench(folder.path(), &["--against", "mpich,intel", "-h", "--only=bcast"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(7), "-m limosa_lab bench --against mpich,intel -h --only=bcast\n")
    );
}

#[test]
fn study_is_handed_over_too() {
    let folder = tempfile::tempdir().expect("a folder");
    python(folder.path(), r#"[ "$1" = -c ] && exit 0; echo "$@""#);
    let mut command = limosa(&["study", "thesis", "--quick"]);
    command.env("PATH", folder.path());
    let done = finish(command, b"");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "-m limosa_lab study thesis --quick\n"));
}

#[test]
fn says_when_python_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = bench(folder.path(), &[]);
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("needs Python") && done.err.contains("hint: install Python"), "{}", done.err);
}

#[test]
fn says_when_the_package_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    python(folder.path(), "exit 1");
    let done = bench(folder.path(), &["--quick"]);
    assert_eq!((done.code, done.out.as_str()), (Some(3), ""));
    assert!(done.err.contains("limosa_lab") && done.err.contains("pip install 'limosa[lab]'"), "{}", done.err);
}
