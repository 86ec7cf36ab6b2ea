//! Jobs over several hosts, all of which are this machine: instead of ssh a shell runs the agents. Real hosts are in
//! `tests/hosts`.

mod common;

use std::process::Command;

use common::{Done, directory, finish, limosa, script};

/// `limosa run` on hosts that a script reaches.
fn on_hosts(folder: &tempfile::TempDir, ssh: &str, args: &[&str]) -> Command {
    let script = script(folder, "ssh", &format!("#!/bin/sh\n{ssh}\n"), true);
    let mut command = limosa(&[&["run"], args].concat());
    command.env("LIMOSA_SSH", &script);
    // On a busy machine a login may take so long that it is mentioned.
    command.env("LIMOSA_LOGIN_LIMIT", "1200");
    command.env("LIMOSA_DEVICE", format!("file:{}", folder.path().join("messages").display()));
    command
}

/// Runs it to its end, with this input.
fn run_with(args: &[&str], input: &[u8]) -> Done {
    let folder = directory();
    finish(on_hosts(&folder, "echo \"Welcome to $1\"; export ON=$1; exec sh -c \"$2\"", args), input)
}

fn run(args: &[&str]) -> Done {
    run_with(args, b"")
}

#[test]
fn ranks_of_all_hosts_are_one_job() {
    let done =
        run(&["-l", "-host", "one.example:2,localhost:1,two.example:1", "sh", "-c", "echo $LIMOSA_RANK/$LIMOSA_SIZE"]);
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((done.code, lines), (Some(0), vec!["[0] 0/4", "[1] 1/4", "[2] 2/4", "[3] 3/4"]), "{}", done.err);
    assert_eq!(done.err, "");
}

#[test]
fn each_rank_knows_its_number_on_its_host() {
    let script = "echo $LIMOSA_RANK/$LIMOSA_LOCAL_RANK/$LIMOSA_LOCAL_SIZE $MPI_LOCALRANKID $OMPI_COMM_WORLD_LOCAL_RANK";
    let done = run(&["-host", "one.example:2,localhost:1", "sh", "-c", script]);
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/0/2 0 0", "1/1/2 1 1", "2/0/1 0 0"], "{}", done.err);
}

#[test]
fn a_failing_rank_elsewhere_ends_all_and_its_exit_code_is_passed_on() {
    for rank in 0..3 {
        let script = format!("test $LIMOSA_RANK = {rank} && exit 9; sleep 1000");
        let done = run(&["-host", "one.example,localhost,two.example", "-n", "3", "sh", "-c", &script]);
        assert_eq!(done.code, Some(9), "{}", done.err);
        assert!(done.err.contains(&format!("rank {rank} (process ")) && done.err.contains("exited with code 9"));
    }
}

#[test]
fn input_reaches_readers_everywhere() {
    let text = "some text\n".repeat(50_000);
    let done = run_with(&["-host", "one.example:1", "sh", "-c", "sleep 0.1; cat"], text.as_bytes());
    assert_eq!((done.code, done.out == text, done.err.as_str()), (Some(0), true, ""));
    let done = run_with(&["--stdin", "all", "-host", "one.example:2,localhost:1", "wc", "-c"], text.as_bytes());
    assert_eq!((done.code, done.out.as_str()), (Some(0), "500000\n500000\n500000\n"), "{}", done.err);
    let done = run_with(&["-host", "one.example:1", "sh", "-c", "exec <&-; sleep 0.3"], text.as_bytes());
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "a rank that does not read does not hold up the job");
}

#[test]
fn an_agent_that_does_not_start_is_explained() {
    let folder = directory();
    let args = ["-host", "localhost:1,far.example:1", "sleep", "1000"];
    let done = finish(on_hosts(&folder, "echo 'ssh: no route' >&2; exit 255", &args), b"");
    assert_eq!(done.code, Some(3));
    assert!(
        done.err.starts_with("limosa: cannot start ranks on the host far.example: ssh: no route\nhint: "),
        "{}",
        done.err
    );
    let done = finish(on_hosts(&folder, "echo limosa-agent 0 0.0.0; sleep 1000", &args), b"");
    assert!(done.err.contains("far.example: it has Limosa 0.0.0, and this is Limosa "), "{}", done.err);
    let done = finish(on_hosts(&folder, "yes", &args), b"");
    assert!(done.err.contains("far.example: what answers there is not Limosa"), "{}", done.err);
}

#[test]
fn no_rank_starts_before_all_hosts_have_answered() {
    let folder = directory();
    let began = folder.path().join("began");
    let ssh = "test $1 = far.example && { sleep 0.5; echo 'Permission denied (publickey).' >&2; exit 255; }; exec sh -c \
               \"$2\"";
    let program = format!("echo >> {}; sleep 1000", began.display());
    let hosts = "localhost:1,one.example:1,far.example:1";
    let done = finish(on_hosts(&folder, ssh, &["-host", hosts, "sh", "-c", &program]), b"");
    assert_eq!(done.code, Some(3));
    let says =
        "limosa: cannot start ranks on the host far.example: Permission denied (publickey).\nhint: ssh needs a key";
    assert!(done.err.starts_with(says), "{}", done.err);
    assert!(!began.exists());
}

#[test]
fn a_login_that_does_not_end_names_the_host_and_the_limit() {
    let folder = directory();
    let mut command = on_hosts(&folder, "sleep 1000", &["-host", "localhost:1,far.example:1", "sleep", "1000"]);
    command.env("LIMOSA_LOGIN_LIMIT", "0.5");
    let done = finish(command, b"");
    assert_eq!(done.code, Some(3));
    let says = "limosa: cannot start ranks on the host far.example: the login has taken longer than 0.5 s";
    assert!(done.err.starts_with(says), "{}", done.err);
}

#[test]
fn an_agent_that_breaks_off_or_talks_nonsense_ends_the_job() {
    let folder = directory();
    let args = ["-host", "localhost:1,far.example:1", "sleep", "1000"];
    let greeting = finish(limosa(&["agent"]), b"").out;
    assert!(greeting.starts_with("limosa-agent "), "{greeting}");
    let greet = format!("echo '{}'", greeting.trim());
    // A login that looks for the agent finds none.
    let once = format!("case $2 in *--again*) exec sh -c \"$2\";; esac; {greet}");
    let done = finish(on_hosts(&folder, &once, &args), b"");
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("the host far.example is lost, with rank 1: its agent has ended"), "{}", done.err);
    let done = finish(on_hosts(&folder, &format!("{greet}; echo 'no message at all'; sleep 1000"), &args), b"");
    assert!(done.err.contains("its agent has sent what is no message of an agent"), "{}", done.err);
}

#[test]
fn each_host_binds_its_ranks() {
    let done = run(&["--bind-to", "core", "--report-bindings", "-host", "one.example:1,localhost:1", "true"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let mut lines: Vec<&str> = done.err.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{}", done.err);
    assert!(lines[0].starts_with("limosa: rank 0 on one.example is bound to processor"), "{}", done.err);
    assert!(lines[1].starts_with("limosa: rank 1 on ") && lines[1].contains(" is bound to processor"), "{}", done.err);
}
