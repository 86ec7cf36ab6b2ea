//! Helpers of the launcher's tests: run `limosa`, with a watchdog, and look for what is left behind.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command under test.
pub const LIMOSA: &str = env!("CARGO_BIN_EXE_limosa");
/// The rank that plays parts.
pub const RANK: &str = env!("CARGO_BIN_EXE_limosa-test-rank");
/// No test takes longer than this unless something is wrong.
pub const WATCHDOG: Duration = Duration::from_secs(300);

/// How a command ended.
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

/// `limosa` with these arguments, and an environment without variables of an outer job.
pub fn limosa(args: &[&str]) -> Command {
    let mut command = Command::new(LIMOSA);
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LIMOSA_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub fn finish(mut command: Command, input: &[u8]) -> Done {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let start = Instant::now();
    let mut child = command.spawn().expect("limosa starts");
    if let Some(mut stdin) = child.stdin.take() {
        // Limosa ends with ranks that do not read, perhaps before all is written.
        if let Err(error) = stdin.write_all(input) {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "limosa takes its input");
        }
    }
    let output = wait(child);
    Done {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: start.elapsed(),
    }
}

/// `limosa run` with these arguments, to its end.
pub fn run(args: &[&str]) -> Done {
    finish(limosa(&[&["run"], args].concat()), b"")
}

/// Waits for a child and its output; a child that takes too long is killed and fails the test.
pub fn wait(mut child: Child) -> Output {
    let reader = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                let _ = stream.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let out = reader(child.stdout.take().map(|s| Box::new(s) as _));
    let err = reader(child.stderr.take().map(|s| Box::new(s) as _));
    let deadline = Instant::now() + WATCHDOG;
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                panic!(
                    "limosa did not end; stderr so far: {}",
                    String::from_utf8_lossy(&err.join().unwrap_or_default())
                );
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Output { status, stdout: out.join().expect("stdout is read"), stderr: err.join().expect("stderr is read") }
}

/// Waits until `condition` holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WATCHDOG;
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What `limosa ps` with these options says of the ranks of a job, if it is there.
pub fn ranks_of(launcher: u32, options: &[&str]) -> Option<serde_json::Value> {
    let done = finish(limosa(&[&["ps", "--format", "json"], options].concat()), b"");
    let jobs: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    Some(jobs.as_array()?.iter().find(|job| job["launcher"] == launcher)?["ranks"].clone())
}

/// A value that marks all processes of one test: put it into a variable of the job, then look for survivors with
/// [`survivors`].
pub struct Mark(String);

impl Mark {
    pub fn new(test: &str) -> Mark {
        Mark(format!("MARK_{test}={}", std::process::id()))
    }

    /// For the environment of the command: name and value.
    pub fn variable(&self) -> (&str, &str) {
        self.0.split_once('=').expect("a mark has a value")
    }

    /// The processes that carry the mark and have not ended.
    pub fn survivors(&self) -> Vec<u32> {
        let pids = std::fs::read_dir("/proc")
            .expect("/proc is there")
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let carries = |pid: &u32| {
            // A process that has ended but was not waited for has no environment any more.
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|raw| raw.split(|b| *b == 0).any(|word| word == self.0.as_bytes()))
        };
        pids.filter(carries).collect()
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: sends a signal.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0, "process {pid} is there");
}

/// A directory of the test's own, removed at its end.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// Writes a file and makes it executable or not.
pub fn script(dir: &tempfile::TempDir, name: &str, text: &str, executable: bool) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("the script is written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
        .expect("its mode is set");
    path
}
