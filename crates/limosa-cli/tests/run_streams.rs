//! Standard input, output, tags, environment, directories, several programs.

mod common;
use common::*;

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn programs_that_are_not_mpi_run_too() {
    let done = run(&["-n", "3", "sh", "-c", "echo $LIMOSA_RANK of $LIMOSA_SIZE"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert_eq!(sorted(&done.out), ["0 of 3", "1 of 3", "2 of 3"]);
}

#[test]
fn ranks_attach_to_their_job() {
    let done = run(&["-n", "2", RANK, "init", "place", "finalize", ":", "-n", "1", RANK, "init", "place", "finalize"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert_eq!(
        sorted(&done.out),
        ["0 of 3 app 0 launched true", "1 of 3 app 0 launched true", "2 of 3 app 1 launched true"]
    );
}

#[test]
fn without_a_launcher_a_program_is_a_job_of_one() {
    let mut command = limosa(&[]);
    command = {
        let mut plain = std::process::Command::new(RANK);
        plain.arg("init").arg("place");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => plain.env(name, value),
                None => plain.env_remove(name),
            };
        }
        plain
    };
    assert_eq!(finish(command, b"").out, "0 of 1 app 0 launched false\n");
}

#[test]
fn a_program_started_by_a_rank_is_a_job_of_its_own() {
    let done = run(&["-n", "2", RANK, "init", "1=child", "finalize"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(0), "0 of 1 app 0 launched false\n", ""));
}

#[test]
fn a_rank_behind_wrappers_that_close_descriptors_finds_its_job() {
    let python = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))";
    let done = run(&[
        "-n",
        "2",
        "sh",
        "-c",
        "\"$@\"; exit $?",
        "sh",
        "python3",
        "-c",
        python,
        RANK,
        "init",
        "place",
        "finalize",
    ]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert_eq!(sorted(&done.out), ["0 of 2 app 0 launched true", "1 of 2 app 0 launched true"]);
}

#[test]
fn a_second_program_cannot_take_the_place_of_a_rank_that_has_ended() {
    let done = run(&["-n", "1", "sh", "-c", "$0 init finalize; $0 place", RANK]);
    assert_eq!(done.code, Some(99));
    assert!(done.err.contains("only one process can be that rank"), "{}", done.err);
}

#[test]
fn lines_never_mix_and_no_byte_is_lost() {
    let script = "import os, sys\nr = os.environ['LIMOSA_RANK']\nfor i in range(2000):\n    \
                  os.write(1, (r + ' ' + 'x' * (i % 70)).encode()); os.write(1, f' {i}\\n'.encode())";
    let done = run(&["-n", "4", "python3", "-c", script]);
    assert_eq!(done.code, Some(0));
    let mut next = [0; 4];
    for line in done.out.lines() {
        let rank: usize = line[..1].parse().expect("a line begins with its rank");
        assert_eq!(line, format!("{rank} {} {}", "x".repeat(next[rank] % 70), next[rank]));
        next[rank] += 1;
    }
    assert_eq!(next, [2000; 4]);
}

#[test]
fn long_lines_of_several_ranks_stay_whole() {
    let script = "import os\nr = os.environ['LIMOSA_RANK']\nfor i in range(10): print(f'{r}:{i}:' + r * 300000)\n\
                  print(r * 300000, end='')";
    for (options, tag) in [(&[][..], 0), (&["-l"][..], 4)] {
        let done = run(&[options, &["-n", "4", "python3", "-c", script]].concat());
        assert_eq!(done.code, Some(0));
        let mut whole = 0;
        for line in done.out.lines().map(|line| &line[tag..]) {
            let (begin, letters) = line.split_at(line.rfind(':').map_or(0, |at| at + 1));
            assert!(letters.len() == 300_000 && letters.bytes().all(|byte| byte == letters.as_bytes()[0]), "{begin}");
            whole += 1;
        }
        assert_eq!(whole, 44);
    }
}

#[test]
fn tags_name_the_rank_of_each_line_of_both_streams() {
    let done = run(&["-l", "-n", "2", "sh", "-c", "echo out; echo err >&2; printf last"]);
    assert_eq!(sorted(&done.out), ["[0] last", "[0] out", "[1] last", "[1] out"]);
    assert_eq!(sorted(&done.err), ["[0] err", "[1] err"]);
}

#[test]
fn bytes_that_are_no_text_pass_unchanged() {
    let mut command = limosa(&["run", "-n", "1", "python3", "-c", "import os; os.write(1, bytes(range(256)) * 5000)"]);
    command.stdout(std::process::Stdio::piped());
    let output = wait(command.spawn().expect("limosa starts"));
    let expected: Vec<u8> = (0..=255u8).cycle().take(256 * 5000).collect();
    assert!(output.stdout == expected);
}

#[test]
fn an_unfinished_line_of_a_single_rank_is_shown_at_once() {
    let mut command = limosa(&["run", RANK, "init", "prompt:name? ", "sleep"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut shown = [0u8; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut shown).expect("the prompt comes");
    assert_eq!(&shown, b"name? ");
    signal(child.id(), libc::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(128 + libc::SIGTERM));
}

#[test]
fn rank_0_reads_standard_input_and_the_others_nothing() {
    let cat = "echo $LIMOSA_RANK $(cat)";
    let done = finish(limosa(&["run", "-n", "3", "sh", "-c", cat]), b"hello\n");
    assert_eq!(sorted(&done.out), ["0 hello", "1", "2"]);
    let done = finish(limosa(&["run", "--stdin", "2", "-n", "3", "sh", "-c", cat]), b"hello\n");
    assert_eq!(sorted(&done.out), ["0", "1", "2 hello"]);
    let done = finish(limosa(&["run", "--stdin=none", "-n", "2", "sh", "-c", cat]), b"hello\n");
    assert_eq!(sorted(&done.out), ["0", "1"]);
}

#[test]
fn all_ranks_can_have_a_copy_of_standard_input() {
    let input: Vec<u8> = (0..300_000u32).map(|i| if i % 50 == 49 { b'\n' } else { b'a' }).collect();
    let done = finish(
        limosa(&["run", "--stdin", "all", "-n", "3", "sh", "-c", "test $LIMOSA_RANK = 1 && sleep 0.2; wc -c"]),
        &input,
    );
    assert_eq!(done.out, "300000\n".repeat(3));
    let done =
        finish(limosa(&["run", "--stdin", "all", "-n", "2", "sh", "-c", "test $LIMOSA_RANK = 1 || wc -c"]), &input);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "300000\n"), "a rank that does not read holds no rank up");
}

#[test]
fn variables_and_directories_reach_the_programs() {
    let dir = directory();
    let here = dir.path().to_str().expect("a plain path");
    let mut command = limosa(&[
        "run",
        "-x",
        "A=1",
        "-x",
        "B",
        "-genv",
        "C",
        "3",
        "-wdir",
        here,
        "sh",
        "-c",
        "echo $A $B $C $D; pwd",
        ":",
    ]);
    command.args(["-env", "D", "4", "sh", "-c", "echo $A $B $C $D"]).env("B", "2");
    let done = finish(command, b"");
    assert_eq!(
        sorted(&done.out),
        sorted(&format!("1 2 3\n{}\n1 2 3 4", dir.path().canonicalize().expect("it exists").display()))
    );
    let mut command = limosa(&["run", "-genvlist", "B,PATH", "sh", "-c", "echo $B $HIDDEN"]);
    command.env("B", "2").env("HIDDEN", "x");
    assert_eq!(finish(command, b"").out, "2\n");
}

#[test]
fn a_python_file_needs_neither_mode_nor_interpreter() {
    let dir = directory();
    script(&dir, "x.py", "import sys; print('python', sys.argv[1:])", false);
    let mut command = limosa(&["run", "x.py", "a"]);
    command.current_dir(dir.path());
    assert_eq!(finish(command, b"").out, "python ['a']\n");
    script(&dir, "y.py", "#!/bin/sh\necho shell", true);
    let mut command = limosa(&["run", "./y.py"]);
    command.current_dir(dir.path());
    assert_eq!(finish(command, b"").out, "shell\n", "an executable file decides for itself");
    script(&dir, "z.py", "import sys; print('python', sys.argv[1:])", true);
    let mut command = limosa(&["run", "./z.py", "a"]);
    command.current_dir(dir.path());
    assert_eq!(finish(command, b"").out, "python ['a']\n", "if it says how");
}

#[test]
fn called_as_mpiexec_or_mpirun_it_is_the_launcher() {
    let dir = directory();
    for name in ["mpiexec", "mpirun"] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(LIMOSA, &link).expect("a link is made");
        let mut command = std::process::Command::new(&link);
        command.args(["-np", "2", "--oversubscribe", "echo", "x"]).stdin(std::process::Stdio::null());
        assert_eq!(finish(command, b"").out, "x\nx\n");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly_and_the_status_says_so() {
    let command = format!("set -o pipefail; {LIMOSA} run -n 2 sh -c 'while :; do echo y; done' | head -n 3");
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &command]).stdin(std::process::Stdio::null());
    let done = finish(shell, b"");
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(141), "y\ny\ny\n", ""));
}

/// `limosa run` of a Python text, its output a pipe.
fn python(options: &[&str], text: &str) -> std::process::Command {
    limosa(&[&["run"], options, &["python3", "-c", text]].concat())
}

#[test]
fn what_python_prints_is_there_at_once_and_not_lost_when_the_rank_is_killed() {
    use std::io::{BufRead, BufReader};
    let mut command = python(&["-n", "1"], "import os, sys\nprint('shown')\nsys.stdin.read()\nos.kill(os.getpid(), 9)");
    command.env_remove("PYTHONUNBUFFERED").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("limosa starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("text");
    assert_eq!(line, "shown\n", "while the rank still waits for its input");
    drop(child.stdin.take());
    wait(child);
    let mut command = python(&["-n", "2"], "import os\nprint('last words')\nos.kill(os.getpid(), 11)");
    command.env_remove("PYTHONUNBUFFERED");
    assert!(finish(command, b"").out.contains("last words\n"));
}

#[test]
fn whoever_wants_pythons_buffers_gets_them() {
    let text = "import os; print(repr(os.environ.get('PYTHONUNBUFFERED')))";
    for (options, wanted) in [(&["-n", "1"][..], "'1'\n"), (&["-x", "PYTHONUNBUFFERED="], "''\n")] {
        let mut command = python(options, text);
        command.env_remove("PYTHONUNBUFFERED");
        assert_eq!(finish(command, b"").out, wanted);
    }
}

#[test]
fn a_module_runs_with_its_arguments_and_its_exit_code() {
    let dir = directory();
    std::fs::write(dir.path().join("wave.py"), "import sys\nprint(__name__, *sys.argv[1:])\nsys.exit(5)\n")
        .expect("a module");
    let mut command = limosa(&["run", "-n", "1", "-m", "wave", "-n", "x"]);
    command.current_dir(dir.path());
    let done = finish(command, b"");
    assert_eq!((done.code, done.out.as_str()), (Some(5), "__main__ -n x\n"), "{}", done.err);
}

#[test]
fn ranks_are_bound_to_cores_if_asked_and_it_is_said_how() {
    let text = "import os; print(sorted(os.sched_getaffinity(0)))";
    let free = finish(python(&["-n", "1"], text), b"").out;
    let done = finish(python(&["-n", "1", "--bind-to", "core", "--report-bindings"], text), b"");
    let list = done.err.trim().split_once("processor").expect("a report").1.trim_start_matches(['s', ' ']).to_owned();
    assert_eq!(done.out, format!("[{list}]\n"), "{}", done.err);
    let none = finish(python(&["-n", "1", "--bind-to", "none", "--report-bindings"], text), b"");
    assert_eq!((none.out, none.err.as_str()), (free, "limosa: rank 0 is not bound\n"));
}

#[test]
fn help_and_version_are_words_too() {
    let said = |args: &[&str]| finish(limosa(args), b"");
    assert_eq!(said(&["help"]).out, said(&["--help"]).out);
    assert_eq!(said(&["help", "run"]).out, said(&["run", "--help"]).out);
    assert_eq!(said(&["version"]).out, said(&["--version"]).out);
    assert!(said(&["version"]).out.starts_with("limosa "));
}

#[test]
fn a_limit_of_file_sizes_is_named() {
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &format!("ulimit -f 1; {LIMOSA} run -n 4 {RANK} init finalize")]);
    let done = finish(shell, b"");
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("`ulimit -f`"), "{}", done.err);
}

#[test]
fn a_process_in_a_session_of_its_own_ends_with_the_job() {
    let mark = Mark::new("session");
    let mut command = limosa(&["run", "-n", "2", "sh", "-c", "setsid sleep 600 & sleep 0.3; echo done"]);
    let (name, value) = mark.variable();
    command.env(name, value);
    let done = finish(command, b"");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "done\ndone\n"));
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn a_process_left_behind_does_not_hold_up_the_end() {
    let mark = Mark::new("left");
    let mut command = limosa(&["run", "-n", "2", "sh", "-c", "sleep 600 & echo done"]);
    let (name, value) = mark.variable();
    command.env(name, value);
    let done = finish(command, b"");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "done\ndone\n"));
    until("nothing is left", || mark.survivors().is_empty());
}

#[test]
fn output_written_after_the_ranks_end_is_not_lost() {
    // The launcher hears of the end and of the output at once: it does not wait long for what comes later.
    let late = "until grep -q ') Z ' /proc/$$/stat; do sleep 0.01; done; echo late; kill -CONT $PPID";
    let done = run(&["-n", "1", "sh", "-c", &format!("kill -STOP $PPID; ({late}) & exit 0")]);
    assert_eq!(done.out, "late\n");
}

#[test]
fn the_output_of_each_rank_goes_to_files_that_grow_while_it_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("a/b");
    let option = out.to_str().expect("text").to_owned();
    let script = "printf 'out'; echo err$LIMOSA_RANK >&2; until grep -q out $0/1/rank.1/stdout; do sleep 0.01; done";
    let done = run(&["--output-filename", &option, "-n", "2", "sh", "-c", script, &option]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "out\nout"));
    assert_eq!(sorted(&done.err), ["err0", "err1"]);
    let read = |name: &str| std::fs::read_to_string(out.join("1").join(name)).expect(name);
    assert_eq!((read("rank.0/stdout"), read("rank.1/stderr")), ("out".into(), "err1\n".into()));

    // Files of an earlier job are emptied, and nothing is shown twice.
    let done = run(&[&format!("-output-filename={option}:nocopy"), "-n", "2", "sh", "-c", "echo $LIMOSA_RANK"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""));
    assert_eq!(
        (read("rank.0/stdout"), read("rank.1/stdout"), read("rank.1/stderr")),
        ("0\n".into(), "1\n".into(), "".into())
    );
}

#[test]
fn files_for_output_that_cannot_be_written_are_named() {
    let done = run(&["--output-filename", "/etc/passwd/x", "true"]);
    assert_eq!(done.code, Some(3));
    assert!(done.err.starts_with("limosa: cannot make the folder /etc/passwd/x/1/rank.0"), "{}", done.err);
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(dir.path().join("1/rank.1")).expect("a folder");
    std::os::unix::fs::symlink("/dev/full", dir.path().join("1/rank.1/stdout")).expect("a link");
    let option = dir.path().to_str().expect("text");
    let done = run(&["--output-filename", option, "-n", "2", "sh", "-c", "echo line; sleep 600"]);
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("rank.1/stdout: No space left on device"), "{}", done.err);
    assert_eq!(run(&["--output-filename", ":nocopy", "true"]).code, Some(2));
}
