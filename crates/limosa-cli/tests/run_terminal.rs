//! The launcher on a terminal: prompts, Ctrl-C, Ctrl-Z, end of input, debuggers. Python's `pty` plays the person in
//! front of it.

mod common;
use common::*;
use std::process::{Command, Stdio};

/// Reads until the expected text comes, then types the answer; at the end prints the exit code and everything shown.
const PERSON: &str = r#"
import json, os, pty, signal, sys
command, steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    # A shell's background jobs ignore Ctrl-C, and what they start inherits that; a terminal's programs do not.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], command)
shown = b""
def read():
    global shown
    try:
        part = os.read(terminal, 4096)
    except OSError:
        part = b""
    shown += part
    return part
def give_up(*_):
    sys.exit(f"waited too long for {expected!r}: {shown!r}")
signal.signal(signal.SIGALRM, give_up)
signal.alarm(200)
for expected, answer in steps:
    at = len(shown)
    while expected.encode() not in shown[at:]:
        if not read():
            sys.exit(f"ended before {expected!r}: {shown!r}")
    os.write(terminal, answer.encode())
while read():
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(shown.decode().replace("\r\n", "\n"), end="")
"#;

/// Exit code and everything that the terminal showed.
fn person(command: &[&str], steps: &[(&str, &str)]) -> (i32, String) {
    let plan = serde_json::json!([command, steps]).to_string();
    let mut python = Command::new("python3");
    python.args(["-c", PERSON, &plan]).stdin(Stdio::null()).env("HISTFILE", "");
    let done = finish(python, b"");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let (code, shown) = done.out.split_once('\n').expect("the person reports");
    (code.parse().expect("an exit code"), shown.to_owned())
}

#[test]
fn control_c_ends_the_job_and_says_how_to_insist() {
    // `exec`, because a shell that is interrupted while it starts a child may leave that child behind.
    let (code, shown) = person(&[LIMOSA, "run", "sh", "-c", "echo up; exec sleep 600"], &[("up", "\x03")]);
    assert_eq!(code, 130);
    assert!(shown.contains("limosa: passed on SIGINT, interrupt; once more ends all ranks at once"), "{shown}");
}

#[test]
fn python_ranks_can_ask_and_show_their_lines_at_once() {
    let program =
        "import os\nif os.environ['LIMOSA_RANK'] == '0':\n    print('early')\n    print('hello', input('name? '))";
    let (code, shown) = person(&[LIMOSA, "run", "-n", "2", "python3", "-c", program], &[("early\r\nname? ", "bob\n")]);
    assert_eq!((code, shown.as_str()), (0, "early\nname? bob\nhello bob\n"));
}

#[test]
fn the_end_of_input_reaches_all_who_read() {
    let (code, shown) = person(
        &[LIMOSA, "run", "--stdin", "all", "-n", "2", "cat"],
        &[("", "abc\n"), ("abc\r\nabc\r\nabc\r\n", "\x04")],
    );
    assert_eq!((code, shown.as_str()), (0, "abc\nabc\nabc\n"), "once typed, twice copied");
}

#[test]
fn control_z_stops_the_ranks_and_fg_goes_on() {
    let script = r#"trap "echo done; exit" CONT; echo up; while :; do sleep 0.05; done"#;
    let line = format!("{LIMOSA} run -n 2 sh -c '{script}'\n");
    let steps = [("", line.as_str()), ("up\r\nup\r\n", "\x1a"), ("Stopped", "fg\n"), ("done\r\ndone\r\n", "exit\n")];
    assert_eq!(person(&["/bin/bash", "--norc", "--noediting", "-i"], &steps).0, 0);
}

#[test]
fn in_the_background_the_job_leaves_the_terminal_to_others() {
    let line = format!("{LIMOSA} run -n 2 sh -c 'sleep 0.1; echo do''ne' &\n");
    let steps = [("", line.as_str()), ("done\r\ndone\r\n", "echo mi''ne\n"), ("mine", "exit\n")];
    assert_eq!(person(&["/bin/bash", "--norc", "--noediting", "-i"], &steps).0, 0);
}

/// A debugger for programs of tests: it reads commands, and an interrupt does not end it.
const DEBUGGER: &str = "#!/bin/bash
trap 'echo interrupted' INT
shift 2
while :; do
  read -p '(gdb) ' word || [ $? -gt 128 ] || exit 0
  case $word in run) \"$@\";; quit) exit;; *) echo \"$word?\";; esac
done
";

/// A folder with a program `gdb`, and the value of PATH that finds it.
fn with_debugger() -> (tempfile::TempDir, String) {
    let folder = directory();
    script(&folder, "gdb", DEBUGGER, true);
    let path = format!("PATH={}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    (folder, path)
}

#[test]
fn a_debugger_has_the_terminal_and_its_keys() {
    let (_folder, path) = with_debugger();
    let steps = [("(gdb) ", "run\n"), ("up\r\n", "\x03"), ("interrupted\r\n(gdb) ", "quit\n")];
    let ranks = ["run", "-x", &path, "--debug", "gdb", "--rank", "1", "-n", "2", RANK, "init"];
    let ranks = [&ranks[..], &["1=print:up", "sleep"]].concat();
    let (code, shown) = person(&[&[LIMOSA], &ranks[..]].concat(), &steps);
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("limosa: rank 1 is under gdb; the job ends with the debugger\n"), "{shown}");
    assert!(shown.ends_with("has ended before MPI_Finalize; ending the other rank\n"), "{shown}");
}

#[test]
fn control_z_stops_a_debugger_with_its_job_and_fg_goes_on() {
    let (_folder, path) = with_debugger();
    let line = format!("{LIMOSA} run -x {path} --debug gdb -n 2 {RANK} init 0=print:u''p sleep:5 0=print:aga''in\n");
    let steps = [
        ("", line.as_str()),
        ("(gdb) ", "run\n"),
        ("up\r\n", "\x1a"),
        ("Stopped", "fg\n"),
        ("again\r\n(gdb) ", "quit\n"),
        ("bash", "exit\n"),
    ];
    person(&["/bin/bash", "--norc", "--noediting", "-i"], &steps);
}

#[test]
fn a_debugger_reads_a_pipe_too_and_the_job_waits_for_it() {
    let (_folder, path) = with_debugger();
    // Rank 1 fails long before the debugger starts rank 0.
    let mut command =
        limosa(&["run", "-x", &path, "--debug", "gdb", "--on-hang", "abort", "--timeout", "0.1", "-n", "3"]);
    command.args([RANK, "init", "1=exit:3", "2=abort:4:no fuel", "print:up", "finalize"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut errors = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !(said.contains("exited with code 3") && said.contains("no fuel")) {
        assert_ne!(std::io::BufRead::read_line(&mut errors, &mut said).expect("a line"), 0, "{said}");
    }
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), b"run\n").expect("limosa takes its input");
    let output = wait(child);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "up\n");
    assert_eq!(said.matches("limosa: the job goes on until the debugger of rank 0 ends\n").count(), 1, "{said}");
    assert!(!said.contains("has ended"), "{said}");
    assert!(said.contains("--timeout does not count with --debug"), "{said}");
    assert!([3, 4].map(Some).contains(&output.status.code()), "the code of the rank that failed first");
}

#[test]
fn leaving_the_debugger_ends_the_job() {
    let (_folder, path) = with_debugger();
    let mut command = limosa(&["run", "-x", &path, "--debug", "gdb", "-n", "3", RANK, "init", "1=sleep", "2=sleep"]);
    command.stdin(Stdio::null());
    let done = finish(command, b"quit\n");
    assert_eq!(done.code, Some(1));
    assert_eq!(done.err, "limosa: the debugger of rank 0 has ended before MPI_Finalize; ending the other 2 ranks\n");
}

#[test]
fn ranks_that_end_in_order_beside_a_debugger_are_told() {
    let (_folder, path) = with_debugger();
    let steps = [("limosa: ranks 1, 2 have ended\r\n", "run\n"), ("up\r\n(gdb) ", "quit\n")];
    let ranks = ["run", "-x", &path, "--debug", "gdb", "-n", "3", RANK, "init", "0=print:up", "finalize"];
    let (code, shown) = person(&[&[LIMOSA], &ranks[..]].concat(), &steps);
    assert_eq!(code, 0, "{shown}");
}
