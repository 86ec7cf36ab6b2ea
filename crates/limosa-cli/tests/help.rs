//! Snapshots of every help text. To accept a change: run the tests with UPDATE_SNAPSHOTS=1 and read the difference.

mod common;
use common::*;

fn snapshot(name: &str, args: &[&str]) {
    let mut command = limosa(args);
    command.env("COLUMNS", "120");
    let done = finish(command, b"");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{args:?}");
    let file = format!("{}/tests/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, &done.out).expect("the snapshot is written");
    }
    let expected = std::fs::read_to_string(&file).expect("there is a snapshot");
    assert_eq!(done.out, expected, "the help of {args:?} has changed; see the top of this file");
}

#[test]
fn help_texts_are_as_they_were() {
    snapshot("limosa", &["-h"]);
    snapshot("run-short", &["run", "-h"]);
    snapshot("run", &["run", "--help"]);
    snapshot("doctor", &["doctor", "-h"]);
    snapshot("env", &["env", "-h"]);
    snapshot("ps", &["ps", "-h"]);
    snapshot("env-list", &["env", "--all"]);
}

#[test]
fn short_help_fits_one_screen() {
    for args in [&["-h"][..], &["run", "-h"], &["doctor", "-h"], &["env", "-h"], &["ps", "-h"]] {
        let done = finish(limosa(args), b"");
        assert!(done.out.lines().count() <= 24, "{args:?}");
    }
}

#[test]
fn the_version_is_data_and_the_rest_is_not() {
    let done = finish(limosa(&["--version"]), b"");
    assert_eq!(done.out, format!("limosa {}\n", env!("CARGO_PKG_VERSION")));
    let done = finish(limosa(&["no-such-command"]), b"");
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""));
    let done = finish(limosa(&[]), b"");
    assert_eq!(done.code, Some(2));
}

#[test]
fn doctor_tries_the_folder_for_messages() {
    let folder = directory();
    let messages = folder.path().join("messages");
    let look = |device: String| {
        let mut command = limosa(&["doctor"]);
        command.env("LIMOSA_DEVICE", device);
        finish(command, b"").out
    };
    let said = look(format!("file:{}", messages.display()));
    assert!(said.contains(&format!("message folder: {}", messages.display())), "{said}");
    assert!(!messages.exists(), "nothing stays");
    let said = look("file:/proc/none".to_owned());
    assert!(said.contains("fail message folder: /proc/none cannot be used: "), "{said}");
}

#[test]
fn doctor_answers_in_text_and_json() {
    let done = finish(limosa(&["doctor"]), b"");
    assert!(done.out.lines().any(|line| line.starts_with("ok   shared memory: ")), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "no colours into a pipe");
    let done = finish(limosa(&["doctor", "--format=json"]), b"");
    let list: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let checks: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|item| item["check"].as_str()).collect();
    for check in [
        "processors",
        "memory",
        "shared memory",
        "cross-memory copy",
        "membarrier",
        "ssh",
        "message folder",
        "MPI library",
        "commands",
        "mpi4py",
        "mpicc",
        "py-spy",
        "octave",
        "java",
    ] {
        assert!(checks.contains(&check), "{check}");
    }
    assert_eq!(done.code, Some(0));
}

#[test]
fn the_compiler_wrapper_has_a_name_that_no_other_package_takes() {
    let done = finish(limosa(&["cc", "-show", "x.c"]), b"");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains(" -lmpi_abi") && done.out.contains("x.c"), "{}", done.out);
}

#[test]
fn env_shows_values_and_points_out_what_is_wrong() {
    let mut command = limosa(&["env"]);
    command.env("LIMOSA_WAIT", "poll").env("LIMOSA_CMAA", "1");
    let done = finish(command, b"");
    assert!(done.out.starts_with("LIMOSA_WAIT=poll "), "{}", done.out);
    assert_eq!(
        done.err,
        "limosa: warning: there is no variable LIMOSA_CMAA; did you mean LIMOSA_CMA? (`limosa env` lists all)\n"
    );
}
