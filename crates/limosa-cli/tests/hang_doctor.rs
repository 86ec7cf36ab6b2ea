//! The hang doctor and `limosa ps`, with ranks that only claim to wait.

mod common;
use common::*;
use std::process::{Command, Stdio};

/// Runs a job that is expected to be ended by the hang doctor.
fn hang(args: &[&str]) -> Done {
    let done = run(&[&["--on-hang=abort"], args].concat());
    assert_eq!(done.code, Some(86), "{}", done.err);
    done
}

#[test]
fn two_ranks_that_both_receive_are_reported_with_their_calls() {
    let done = hang(&["-n", "2", RANK, "init", "0=recv:1:7", "1=recv:0:8"]);
    let seconds = |line: &str| line.rsplit_once(", for ").map(|(text, _)| text.to_owned()).unwrap_or(line.to_owned());
    let lines: Vec<String> = done.err.lines().map(seconds).collect();
    assert_eq!(
        lines,
        [
            "limosa: this job hangs: ranks 0, 1 wait and nothing is under way",
            "  rank 0: MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD",
            "  rank 1: MPI_Recv from rank 0, tag 8, on MPI_COMM_WORLD",
            "limosa: ranks 0, 1 wait for each other in a circle: 0 -> 1 -> 0",
            "hint: each of them receives before it sends: let one send first, or use MPI_Sendrecv or MPI_Irecv",
            "limosa: ending the job because of the hang (--on-hang=abort)",
        ]
    );
}

#[test]
fn a_rank_missing_from_a_collective_call_is_named() {
    let done = hang(&["-n", "3", RANK, "init", "0=barrier:all", "1=barrier:all", "2=recv:0:5"]);
    assert!(
        done.err.contains(
            "limosa: rank 2 is not in MPI_Barrier on MPI_COMM_WORLD; it waits in MPI_Recv from rank 0, tag 5, on \
             MPI_COMM_WORLD\n"
        ),
        "{}",
        done.err
    );
}

#[test]
fn a_rank_that_left_while_others_wait_for_it_is_named() {
    for leave in ["1=sleep", "1=exit:0"] {
        let done = hang(&["-n", "3", RANK, "init", "1=finalize", leave, "recv:1:0"]);
        assert!(
            done.err.contains("limosa: rank 1 has left by MPI_Finalize while ranks 0, 2 wait for it\n"),
            "{}",
            done.err
        );
    }
}

#[test]
fn by_default_the_job_goes_on_after_one_report() {
    // The report comes in the first of these seconds, unless the launcher has to wait for a processor.
    let mut command =
        limosa(&["run", "-n", "2", RANK, "init", "0=recv:1:7:5", "1=recv:0:7:5", "finalize", "print:done"]);
    command.env("LIMOSA_HANG_AFTER", "0.1");
    let done = finish(command, b"");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "done\ndone\n"));
    assert_eq!(done.err.matches("this job hangs").count(), 1, "{}", done.err);
}

#[test]
fn whoever_is_busy_elsewhere_raises_no_alarm() {
    for busy in [
        // Sleeps in its own code.
        &["1=sleep:3"][..],
        // Computes in another thread that uses the library.
        &["1=thread", "1=recv:0:1:3"],
        // Wakes up now and then.
        &["1=recv:0:1:0.7", "1=recv:0:1:0.7", "1=recv:0:1:0.7", "1=recv:0:1:0.7"],
    ] {
        let done = run(&[&["-n", "2", "--on-hang=abort", RANK, "init", "0=recv:1:7:3"], busy, &["finalize"]].concat());
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{busy:?}");
    }
    let done = run(&["--on-hang=abort", RANK, "init", "recv:0:1:3", "finalize", ":", "sleep", "3"]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (Some(0), ""),
        "a program that does not use the library may do anything"
    );
}

#[test]
fn the_alarm_can_be_turned_off_and_put_off() {
    let done = run(&["-n", "2", "--on-hang=off", RANK, "init", "recv:any:1:3", "finalize"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let mut command = limosa(&["run", "-n", "2", RANK, "init", "recv:any:1:3", "finalize"]);
    command.env("LIMOSA_HANG_AFTER", "30");
    let done = finish(command, b"");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let mut command = limosa(&["run", "-n", "2", RANK, "init", "recv:any:1", "finalize"]);
    command.env("LIMOSA_ON_HANG", "abort");
    assert_eq!(finish(command, b"").code, Some(86));
}

#[test]
fn ps_shows_what_each_rank_is_doing() {
    let mut command = limosa(&["run", "--on-hang=off", "-n", "2", RANK, "init", "0=recv:1:7", "1=sleep"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("limosa starts");
    let launcher = child.id();
    until("both ranks are up", || {
        ranks_of(launcher, &[]).is_some_and(|ranks| ranks[0]["state"] == "blocked" && ranks[1]["state"] == "running")
    });
    let ranks = ranks_of(launcher, &[]).expect("the job is still there");
    let thread = &ranks[0]["threads"][0];
    assert_eq!(
        (&thread["call"], &thread["waits"][0]["peer"], &thread["waits"][0]["tag"]),
        (&"MPI_Recv".into(), &1.into(), &7.into())
    );
    assert_eq!(thread["waits"][0]["communicator"], "MPI_COMM_WORLD");
    assert!(ranks[1]["memory_bytes"].as_u64().expect("a number") > 0);
    let text = finish(limosa(&["ps"]), b"").out;
    assert!(text.contains("MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD"), "{text}");
    signal(launcher, libc::SIGTERM);
    wait(child);
    assert!(ranks_of(launcher, &[]).is_none());
}

#[test]
fn ps_shows_how_quiet_each_rank_is() {
    let quiet = ["0=recv:1:7:0.01", "0=woken-in-vain", "0=recv:1:7:0.01", "0=recv:1:7"];
    let mut command =
        limosa(&[&["run", "--on-hang=off", "-n", "2", RANK, "init"], &quiet[..], &["1=compute"]].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("limosa starts");
    let launcher = child.id();
    let ranks = |options: &[&str]| ranks_of(launcher, options);
    let counts = |rank: &serde_json::Value| {
        ["sleeps", "wakeups", "idle_wakeups"].map(|name| rank[name].as_u64().expect("a count"))
    };
    let percent = |rank: &serde_json::Value| rank["cpu_percent"].as_f64().expect("a number");
    until("one rank waits for the third time and the other computes", || {
        ranks(&[]).is_some_and(|ranks| {
            counts(&ranks[0])[0] == 3 && ranks[1]["cpu_percent"].as_f64().is_some_and(|percent| percent > 0.0)
        })
    });
    let since_start = ranks(&[]).expect("the job is still there");
    assert_eq!((counts(&since_start[0]), counts(&since_start[1])), ([3, 2, 1], [0, 0, 0]));
    until("the rank that computes gets a processor for a while", || {
        let lately = ranks(&["--during", "0.5"]).expect("the job is still there");
        assert_eq!(counts(&lately[0]), [0, 0, 0], "nothing happens to a rank that waits");
        percent(&lately[1]) > percent(&lately[0])
    });
    let text = finish(limosa(&["ps"]), b"").out;
    let row = |first: &str| -> Vec<String> {
        let ours =
            text.split("job ").find(|job| job.contains(&format!("launcher {launcher} "))).expect("the job is listed");
        let line = ours.lines().find(|line| line.trim_start().starts_with(first)).expect("the line is there");
        line.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(row("rank")[6..], ["slept", "woken", "in vain", "waits in"].map(String::from), "{text}");
    assert!(row("0 ").join("|").contains("|3|2|1|MPI_Recv from rank 1, tag 7"), "{text}");
    signal(launcher, libc::SIGTERM);
    wait(child);
}

#[test]
fn ps_takes_only_spans_that_make_sense() {
    for span in ["0", "-1", "NaN", "soon", "1e9"] {
        let done = finish(limosa(&["ps", &format!("--during={span}")]), b"");
        assert_eq!(done.code, Some(2), "{span}");
        assert!(done.err.contains("a number of seconds from 0.1 to 86400 is needed"), "{}", done.err);
    }
}

#[test]
fn python_ranks_show_their_source_line_if_py_spy_is_there() {
    let Some(tool) = find_py_spy() else {
        eprintln!("not run: py-spy is not installed here; set PY_SPY to its path or put it in PATH");
        return;
    };
    let dir = directory();
    let program = script(&dir, "ring.py", &PYTHON_RANK.replace("FUTEX", &libc::SYS_futex.to_string()), false);
    let line =
        1 + PYTHON_RANK.lines().position(|line| line.contains("time.sleep")).expect("the program waits somewhere");
    let mut command = limosa(&["run", "--on-hang=abort", "-n", "2", program.to_str().expect("a plain path")]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", tool.parent().expect("a folder").display()));
    let done = finish(command, b"");
    assert_eq!(done.code, Some(86), "{}", done.err);
    assert!(done.err.contains(&format!("ring.py:{line} in exchange")), "{}", done.err);
}

fn find_py_spy() -> Option<std::path::PathBuf> {
    let given = std::env::var_os("PY_SPY").map(std::path::PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed: Vec<_> = std::env::split_paths(&path).map(|dir| dir.join("py-spy")).collect();
    given
        .into_iter()
        .chain(listed)
        .find(|file| Command::new(file).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()))
}

/// Writes its own entry of the board by hand, as the drawn layout says; the wait begins in line 40.
/// A rank that needs no library: it writes its entry of the board by hand, as the drawn layout says.
const PYTHON_RANK: &str = r#"import ctypes, mmap, os, struct, time

libc = ctypes.CDLL(None)
rank = int(os.environ["LIMOSA_RANK"])
board = mmap.mmap(int(os.environ["LIMOSA_JOB_FD"]), 4096 + 2 * 4160)
BELL, ENTRY = 640, 4096 + rank * 4160
PID, STATE, THREADS, ASLEEP, RECORD = (ENTRY + at for at in (0, 4, 16, 20, 256))


def write(at, value, form="<I"):
    struct.pack_into(form, board, at, value)


def exchange():
    write(RECORD, libc.gettid())
    write(RECORD + 8, time.monotonic_ns(), "<Q")
    write(RECORD + 16, b"MPI_Recv", "8s")
    write(RECORD + 4, 2)
    write(ASLEEP, 1)
    time.sleep(600)


write(PID, os.getpid())
write(THREADS, 1)
write(STATE, 2)
write(BELL, 1)
libc.syscall(ctypes.c_long(FUTEX), ctypes.byref(ctypes.c_uint32.from_buffer(board, BELL)), 1, 1 << 30, None, None, 0)
exchange()
"#;
