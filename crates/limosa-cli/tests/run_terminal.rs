//! The launcher on a terminal: prompts, Ctrl-C, Ctrl-Z, end of input. Python's `pty` plays the person in front of it.

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
signal.alarm(30)
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
    let line = format!("{LIMOSA} run -n 2 sh -c 'echo up; sleep 0.3; echo done'\n");
    let steps = [("", line.as_str()), ("up\r\nup\r\n", "\x1a"), ("Stopped", "fg\n"), ("done\r\ndone\r\n", "exit\n")];
    assert_eq!(person(&["/bin/bash", "--norc", "--noediting", "-i"], &steps).0, 0);
}

#[test]
fn in_the_background_the_job_leaves_the_terminal_to_others() {
    let line = format!("{LIMOSA} run -n 2 sh -c 'sleep 0.1; echo do''ne' &\n");
    let steps = [("", line.as_str()), ("done\r\ndone\r\n", "echo mi''ne\n"), ("mine", "exit\n")];
    assert_eq!(person(&["/bin/bash", "--norc", "--noediting", "-i"], &steps).0, 0);
}
