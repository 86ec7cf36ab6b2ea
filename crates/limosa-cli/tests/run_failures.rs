//! How jobs end when something goes wrong: exit codes, messages, and no survivors.

mod common;
use common::*;
use std::process::Stdio;

/// Ranks with grandchildren, one of which has left the process group and the session. Rank 0 says when everything is
/// up.
const FAMILY: &str = "sleep 600 & setsid sleep 600 & sleep 0.1; echo ready; wait";

fn family(test: &str, ranks: &str) -> (std::process::Child, Mark) {
    use std::io::{BufRead, BufReader};
    let mark = Mark::new(test);
    let (name, value) = mark.variable();
    let mut command = limosa(&["run", "-n", ranks, "sh", "-c", FAMILY]);
    command.env(name, value).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..ranks.parse::<u32>().expect("a number") {
        let mut line = String::new();
        out.read_line(&mut line).expect("the ranks report");
        assert_eq!(line, "ready\n");
    }
    // The launcher and its guardian, and for each rank a shell and two sleepers.
    let family = 3 * ranks.parse::<usize>().expect("a number");
    until("all are there", || mark.survivors().len() >= family);
    (child, mark)
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("the launcher has children");
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[test]
fn the_first_failing_rank_decides_the_exit_code() {
    let done = run(&["-n", "4", "sh", "-c", "test $LIMOSA_RANK = 2 && exit 7; sleep 600"]);
    assert_eq!(done.code, Some(7));
    assert!(done.err.starts_with("limosa: rank 2 (process "), "{}", done.err);
    assert!(done.err.ends_with("sh) exited with code 7; ending the other 3 ranks\n"), "{}", done.err);
}

#[test]
fn a_single_rank_passes_its_code_on_without_comment() {
    let done = run(&["sh", "-c", "exit 9"]);
    assert_eq!((done.code, done.err.as_str()), (Some(9), ""));
}

#[test]
fn a_rank_killed_by_a_signal_ends_the_job() {
    let done = run(&["-n", "3", RANK, "init", "1=segv", "sleep"]);
    assert_eq!(done.code, Some(128 + libc::SIGSEGV));
    assert!(done.err.contains("rank 1 (process "), "{}", done.err);
    assert!(
        done.err.contains("was killed by signal 11 (SIGSEGV, segmentation fault); ending the other 2 ranks"),
        "{}",
        done.err
    );
}

/// Waits until these processes have ended, of which their parent does not know yet.
fn until_ended(pids: &[u32]) {
    for pid in pids {
        until("a rank has ended", || {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|text| text.contains(") Z "))
        });
    }
}

#[test]
fn a_killed_rank_is_the_cause_even_if_another_ends_because_of_it() {
    use std::io::{BufRead, BufReader};
    let ranks = "trap 'exit 1' USR1; echo $LIMOSA_RANK $$; while :; do sleep 0.01; done";
    let mut command = limosa(&["run", "-n", "2", "sh", "-c", ranks]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("limosa starts");
    let mut lines: Vec<String> = Vec::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..2 {
        let mut line = String::new();
        out.read_line(&mut line).expect("the ranks report");
        lines.push(line);
    }
    lines.sort();
    let pids: Vec<u32> = lines.iter().map(|line| line[2..].trim().parse().expect("a number")).collect();
    // The launcher sees both ends at once.
    signal(child.id(), libc::SIGSTOP);
    signal(pids[1], libc::SIGKILL);
    signal(pids[0], libc::SIGUSR1);
    until_ended(&pids);
    signal(child.id(), libc::SIGCONT);
    let output = wait(child);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("rank 1 (process ") && err.contains("was killed by signal 9"), "{err}");
    assert_eq!(output.status.code(), Some(137));
}

#[test]
fn an_abort_ends_the_whole_job_with_its_code_and_reason() {
    let done = run(&["-n", "3", RANK, "init", "1=abort:5:no fuel left", "sleep"]);
    assert_eq!(done.code, Some(5));
    assert!(done.err.contains("aborted the job with code 5: no fuel left"), "{}", done.err);
    let done = run(&["-n", "2", RANK, "init", "0=abort:0", "sleep"]);
    assert_eq!(done.code, Some(1), "an abort never looks like success");
}

#[test]
fn an_abort_behind_a_wrapper_that_lives_on_ends_the_job_too() {
    let done = run(&["-n", "2", "sh", "-c", "$0 init 1=abort:6:x sleep; sleep 600", RANK]);
    assert_eq!(done.code, Some(6));
}

#[test]
fn a_rank_that_ignores_the_request_to_end_is_killed() {
    let done = run(&[
        "-n",
        "2",
        "sh",
        "-c",
        "trap '' TERM INT; test $LIMOSA_RANK = 0 && sleep 0.1 && exit 3; while :; do sleep 1; done",
    ]);
    assert_eq!(done.code, Some(3));
}

#[test]
fn leaving_without_finalize_while_others_run_is_a_failure() {
    let done = run(&["-n", "2", RANK, "init", "0=exit:0", "sleep"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("rank 0 (process "), "{}", done.err);
    assert!(done.err.contains("exited without calling MPI_Finalize; ending the other rank"), "{}", done.err);
    let done = run(&["-n", "2", "sh", "-c", "$0 init 0=exit:0 sleep; sleep 600", RANK]);
    assert_eq!(done.code, Some(1), "also behind a wrapper that lives on: {}", done.err);
}

#[test]
fn leaving_without_finalize_all_together_is_worth_a_warning() {
    let dir = directory();
    let go = dir.path().join("go");
    let mut command = limosa(&["run", "-n", "2", RANK, "init", &format!("until:{}", go.display())]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("limosa starts");
    let ranks = || ranks_of(child.id(), &[]).and_then(|ranks| ranks.as_array().cloned()).unwrap_or_default();
    until("both ranks are up", || ranks().iter().filter(|rank| rank["state"] == "running").count() == 2);
    let process = |rank: &serde_json::Value| rank["process"].as_u64().expect("a number") as u32;
    let pids: Vec<u32> = ranks().iter().map(process).collect();
    // The launcher sees both ends at once.
    signal(child.id(), libc::SIGSTOP);
    std::fs::write(go, "").expect("a file");
    until_ended(&pids);
    signal(child.id(), libc::SIGCONT);
    let output = wait(child);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("limosa: warning: rank "), "{err}");
}

#[test]
fn a_failure_after_finalize_lets_the_others_end_by_themselves() {
    let dir = directory();
    let begun = |rank: u32| dir.path().join(rank.to_string()).display().to_string();
    let (first, second) = (begun(1), begun(2));
    // Rank 0 fails when the others have begun: these are waited for for a second.
    let steps = format!("init finalize 0=until:{first} 0=until:{second} 0=exit:4 sleep:0.1 print:whole");
    let script = format!("touch $0/$LIMOSA_RANK; exec {RANK} {steps}");
    let done = run(&["-n", "3", "sh", "-c", &script, dir.path().to_str().expect("a plain path")]);
    assert_eq!((done.code, done.out.as_str()), (Some(4), "whole\nwhole\n"));
    assert!(done.err.contains("exited with code 4"), "{}", done.err);
}

#[test]
fn what_a_rank_said_last_comes_before_what_is_said_about_it() {
    let done = run(&["-n", "2", "sh", "-c", "test $LIMOSA_RANK = 0 && sleep 600; echo cause >&2; exit 3"]);
    assert!(done.err.starts_with("cause\nlimosa: rank 1 "), "{}", done.err);
}

#[test]
fn kill_9_of_a_rank_leaves_no_process() {
    let (child, mark) = family("rank", "3");
    let ranks: Vec<u32> = children(child.id()).into_iter().filter(|pid| name_of(*pid) == "sh").collect();
    assert_eq!(ranks.len(), 3);
    signal(ranks[1], libc::SIGKILL);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(137));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        err.contains("rank 1 (process ")
            && err.contains("was killed by signal 9 (SIGKILL, kill)")
            && err.contains("hint: "),
        "{err}"
    );
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn kill_9_of_the_launcher_leaves_no_process() {
    let (child, mark) = family("launcher", "2");
    signal(child.id(), libc::SIGKILL);
    wait(child);
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn a_job_inside_a_job_ends_with_it() {
    let mark = Mark::new("nested");
    let (name, value) = mark.variable();
    let dir = directory();
    let up = dir.path().join("up");
    let inner = format!("touch {}; sleep 600", up.display());
    let mut command = limosa(&["run", "-n", "1", LIMOSA, "run", "-n", "2", "sh", "-c", &inner]);
    command.env(name, value);
    let child = command.spawn().expect("limosa starts");
    until("the inner job is up", || up.exists());
    signal(child.id(), libc::SIGKILL);
    wait(child);
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn an_interrupt_reaches_all_ranks() {
    let (child, mark) = family("interrupt", "2");
    signal(child.id(), libc::SIGINT);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "Ctrl-C needs no report");
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn ranks_may_end_in_order_after_an_interrupt() {
    use std::io::{BufRead, BufReader};
    let mut command =
        limosa(&["run", "-n", "2", "sh", "-c", "trap 'echo saved; exit 0' INT; echo up; while :; do sleep 0.02; done"]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert_eq!((lines.next().as_deref(), lines.next().as_deref()), (Some("up"), Some("up")));
    signal(child.id(), libc::SIGINT);
    assert_eq!(lines.collect::<Vec<_>>(), ["saved", "saved"]);
    assert_eq!(wait(child).status.code(), Some(0));
}

#[test]
fn a_second_interrupt_kills_ranks_that_ignore_the_first() {
    use std::io::{BufRead, BufReader};
    let mut command = limosa(&[
        "run",
        "-n",
        "2",
        "sh",
        "-c",
        "trap 'sleep 0.2; echo no' INT TERM; echo up; while :; do sleep 0.02; done",
    ]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let mut expect = |wanted: &str| (0..2).for_each(|_| assert_eq!(lines.next().as_deref(), Some(wanted)));
    expect("up");
    signal(child.id(), libc::SIGINT);
    expect("no");
    signal(child.id(), libc::SIGINT);
    assert_eq!(wait(child).status.code(), Some(130));
}

#[test]
fn ranks_that_wait_in_mpi_and_ignore_a_signal_are_ended_with_a_report() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let ignore = format!("trap '' INT TERM; exec {RANK} print:up init recv:1:$LIMOSA_RANK");
        let mut command = limosa(&["run", "-n", "2", "sh", "-c", &ignore]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("limosa starts");
        // So long all ranks must have waited for a signal to be followed by a report.
        let waits = |rank: &serde_json::Value| {
            rank["state"] == "blocked" && rank["since_seconds"].as_f64().is_some_and(|since| since > 0.5)
        };
        until("both ranks have waited for a while", || {
            ranks_of(child.id(), &[]).is_some_and(|ranks| (0..2).all(|rank| waits(&ranks[rank])))
        });
        signal(child.id(), number);
        let output = wait(child);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + number), "{err}");
        assert!(err.contains("limosa: this job hangs: ranks 0, 1 wait"), "{err}");
        assert!(err.contains("ranks 0, 1 still wait in MPI: ending the job"), "{err}");
    }
}

#[test]
fn a_rank_that_never_joins_while_others_wait_ends_the_job() {
    let done = run(&["-n", "2", "sh", "-c", &format!("test $LIMOSA_RANK = 1 || exec {RANK} init recv:1:0")]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("limosa: rank 1 (process "), "{}", done.err);
    assert!(done.err.contains("exited without calling MPI_Init, and all others wait; ending the other rank"));
    let done = run(&["-n", "2", "sh", "-c", &format!("test $LIMOSA_RANK = 1 || exec {RANK} init sleep:1 finalize")]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "no rank waits for it");
}

#[test]
fn ranks_that_use_another_mpi_library_are_told_that_none_has_joined() {
    let dir = directory();
    let library = dir.path().join("libmpi.so.40");
    let compiled =
        std::process::Command::new("cc").args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(&library).status();
    assert!(compiled.expect("a C compiler").success());
    let text =
        format!("import ctypes, time; ctypes.CDLL('{}'); time.sleep(2); print('rank 0 of 1')", library.display());
    let done = run(&["-n", "2", "python3", "-c", &text]);
    assert_eq!((done.code, done.out.as_str()), (Some(1), "rank 0 of 1\nrank 0 of 1\n"));
    assert!(done.err.contains("none of the 2 ranks has joined the job: the program uses another MPI library"));
    assert!(done.err.contains("libmpi.so.40"), "{}", done.err);
    let done = run(&["-n", "2", "sh", "-c", "sleep 0.3"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "a program without MPI");
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let done = run(&["-n", "2", "--timeout", "0.5", "sleep", "600"]);
    assert_eq!(done.code, Some(124));
    assert_eq!(done.err, "limosa: the job has taken longer than 0.5 s: ending it (--timeout)\n");
    let done = run(&["-n", "1", "--timeout", "50", "echo", "quick"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "quick\n"));
}

#[test]
fn user_signals_are_passed_on() {
    use std::io::{BufRead, BufReader};
    let mut command = limosa(&[
        "run",
        "sh",
        "-c",
        "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo up; while :; do sleep 0.02; done",
    ]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert_eq!(lines.next().as_deref(), Some("up"));
    signal(child.id(), libc::SIGUSR1);
    assert_eq!(lines.next().as_deref(), Some("one"));
    signal(child.id(), libc::SIGUSR2);
    assert_eq!(lines.next().as_deref(), Some("two"));
    assert_eq!(wait(child).status.code(), Some(0));
}

#[test]
fn what_cannot_start_is_said_at_once() {
    let done = run(&["-n", "2", "no-such-program"]);
    assert_eq!((done.code, done.err.as_str()), (Some(2), "limosa: there is no program `no-such-program` in PATH\n"));
    let done = run(&["-n", "2", "/etc/passwd"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("/etc/passwd is not executable\nhint: "), "{}", done.err);
    let done = run(&["-wdir", "/no/such", "true"]);
    assert_eq!(done.code, Some(2));
    let done = run(&["--device", "shm", "-host", "elsewhere", "true"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("no device reaches the other hosts\nhint: pass --device file:"), "{}", done.err);
    let done = run(&["--no-such-option", "true"]);
    assert_eq!(done.code, Some(2));
}

#[test]
fn a_file_that_the_kernel_cannot_execute_is_named() {
    let dir = directory();
    let file = script(&dir, "lost", "#!/no/such/interpreter\n", true);
    let done = run(&["-n", "2", file.to_str().expect("a plain path")]);
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("limosa: cannot start rank 0: "), "{}", done.err);
}

#[test]
fn a_misspelt_variable_is_pointed_out_once() {
    let done = run(&["-n", "3", "-x", "LIMOSA_WIAT=poll", RANK, "init", "finalize"]);
    assert_eq!(
        done.err,
        "limosa: warning: there is no variable LIMOSA_WIAT; did you mean LIMOSA_WAIT? (`limosa env` lists all)\n"
    );
    assert_eq!(done.code, Some(0));
}

#[test]
fn a_lack_of_memory_is_an_error_at_start() {
    // A file size limit stands in for it: it bounds the job's memory file in the same call.
    let shell = format!("trap '' XFSZ; ulimit -f 8; exec {LIMOSA} run -n 64 {RANK} init finalize");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &shell]).stdin(Stdio::null());
    let done = finish(command, b"");
    assert_eq!(done.code, Some(3));
    assert!(done.err.starts_with("limosa: cannot get the memory for a job of this size: "), "{}", done.err);
}
