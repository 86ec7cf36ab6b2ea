//! Source lines of Python ranks, read from outside by py-spy.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Access;
use serde_json::Value;

use crate::{procfs, sys};

/// Most processes that are read at the same time; more would slow each other down.
const MOST: usize = 16;

/// Source lines by rank and thread.
#[derive(Debug, Default)]
pub struct Places {
    /// (rank, kernel's thread number) to `file:line in function`.
    pub lines: BTreeMap<(u32, u32), String>,
    /// Why source lines are missing, as hints.
    pub notes: Vec<String>,
}

/// A rank's process.
pub type Target = (u32, u32);

/// Finds where the threads of these processes (rank, process id) are, as far as they run Python. Takes some tenths of a
/// second.
pub fn collect(targets: &[Target]) -> Places {
    let mut places = Places::default();
    let python: Vec<Target> = targets.iter().copied().filter(|(_, pid)| is_python(*pid)).collect();
    let Some((_, first)) = python.first() else { return places };
    let Some(tool) = find_tool(*first) else {
        places.notes.push("to see the source lines of Python ranks here, install py-spy: `pip install py-spy`".into());
        return places;
    };
    for group in python.chunks(MOST) {
        let dumps: Vec<_> = group.iter().map(|(rank, pid)| (*rank, dump(&tool, *pid))).collect();
        for (rank, child) in dumps {
            let output = child.and_then(|child| child.wait_with_output());
            match output {
                Ok(output) if output.status.success() => {
                    places.lines.extend(parse(&output.stdout).into_iter().map(|(t, line)| ((rank, t), line)))
                }
                Ok(output) => note(&mut places.notes, &String::from_utf8_lossy(&output.stderr)),
                Err(error) => note(&mut places.notes, &error.to_string()),
            }
        }
    }
    places
}

fn note(notes: &mut Vec<String>, why: &str) {
    let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim();
    let text = format!("py-spy cannot read the source lines of the ranks: {why}");
    if !notes.contains(&text) {
        notes.push(text);
    }
}

fn dump(tool: &Path, pid: u32) -> io::Result<std::process::Child> {
    let mut command = Command::new(tool);
    command.args(["dump", "--json", "--nonblocking", "--pid", &pid.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: the closure makes one async-signal-safe system call.
    unsafe { command.pre_exec(sys::die_with_parent) };
    command.spawn()
}

/// True if the process runs a Python interpreter, as a program or as a library.
fn is_python(pid: u32) -> bool {
    let name = procfs::executable(pid).and_then(|exe| Some(exe.file_name()?.to_string_lossy().into_owned()));
    name.is_some_and(|name| name.starts_with("python"))
        || std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("/libpython3"))
}

/// py-spy beside this command, beside the rank's Python, or in PATH.
fn find_tool(pid: u32) -> Option<PathBuf> {
    let beside = |file: PathBuf| Some(file.parent()?.join("py-spy"));
    let mut candidates: Vec<PathBuf> = std::env::current_exe().ok().and_then(beside).into_iter().collect();
    // A virtual environment's python is a link to another one: its own folder is known only from how it was called.
    if let Some(called) = procfs::command_line(pid).and_then(|line| line.split(' ').next().map(PathBuf::from)) {
        candidates.extend(beside(called));
    }
    candidates.extend(procfs::executable(pid).and_then(beside));
    candidates.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths).map(|dir| dir.join("py-spy")));
    candidates
        .into_iter()
        .find(|file| file.is_absolute() && file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok())
}

/// The innermost line of the user's own code in each thread of a dump.
pub fn parse(json: &[u8]) -> BTreeMap<u32, String> {
    let Ok(Value::Array(threads)) = serde_json::from_slice(json) else { return BTreeMap::new() };
    let line = |thread: &Value| {
        let number = u32::try_from(thread["os_thread_id"].as_u64().or_else(|| thread["thread_id"].as_u64())?).ok()?;
        let frames = thread["frames"].as_array()?;
        let frame = frames.iter().find(|frame| is_users(frame)).or(frames.first())?;
        let file = frame["filename"].as_str()?;
        Some((number, format!("{file}:{} in {}", frame["line"].as_u64()?, frame["name"].as_str()?)))
    };
    threads.iter().filter_map(line).collect()
}

/// True unless the frame belongs to the interpreter's start-up, to the MPI binding or to our own package (installed, or
/// in its sources).
fn is_users(frame: &Value) -> bool {
    let file = frame["filename"].as_str().unwrap_or("<unknown>");
    let binding = ["-packages/mpi4py/", "mpi4py/MPI.src/", "-packages/limosa/", "python/limosa/"];
    !file.starts_with('<') && !binding.iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_innermost_line_is_found_behind_the_binding() {
        let json = br#"[{"pid":7,"thread_id":140,"os_thread_id":12,"active":false,"frames":[
            {"name":"recv","filename":"/v/lib/python3.11/site-packages/mpi4py/util/pkl5.py","line":9},
            {"name":"recv","filename":"/v/lib/python3.11/site-packages/limosa/_comm.py","line":8},
            {"name":"exchange","filename":"/home/u/ring.py","short_filename":"ring.py","line":12},
            {"name":"<module>","filename":"/home/u/ring.py","line":30}]},
            {"thread_id":5,"frames":[]}]"#;
        assert_eq!(parse(json), BTreeMap::from([(12, "/home/u/ring.py:12 in exchange".to_owned())]));
        assert!(parse(b"not json").is_empty());
    }
}
