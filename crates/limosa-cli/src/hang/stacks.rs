//! Source lines of Python ranks, read from outside by py-spy, of Octave ranks, which write them down themselves, and of
//! Java ranks.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{procfs, sys};
pub use limosa_hang::places::{Places, Program, SourcePosition};

/// Most processes that are read at the same time; more would slow each other down.
const MOST: usize = 16;

/// A rank's process.
pub type Target = (u32, u32);

/// The name of the file in memory in which an Octave rank that has waited for a moment writes where it is
/// (`octave/src/session.cc`): `FILE:LINE in FUNCTION`, and in a second line the function that it has called.
const OCTAVE_FILE: &str = "/memfd:limosa-line";

/// Finds where the threads of these processes (rank, process id) are, as far as they run Python, Octave or Java. Takes
/// some tenths of a second.
pub fn collect(targets: &[Target]) -> Places {
    let mut places = Places::default();
    for (rank, pid) in targets {
        if let Some(place) = octave_place(*pid) {
            places.program = Program::Octave;
            places.threads.insert((*rank, *pid), place);
        }
    }
    for group in targets.chunks(MOST) {
        // Each starts a Java machine of its own. Without a thread for it there are no lines.
        std::thread::scope(|scope| {
            let read = |pid| std::thread::Builder::new().spawn_scoped(scope, move || super::java_stacks::places(pid));
            let readers: Vec<_> = group.iter().map(|(rank, pid)| (*rank, read(*pid))).collect();
            for (rank, reader) in readers {
                let java = reader.ok().and_then(|reader| reader.join().ok()).unwrap_or_default();
                if !java.is_empty() {
                    places.program = Program::Java;
                }
                places.threads.extend(java.into_iter().map(|(thread, place)| ((rank, thread), place)));
            }
        });
    }
    let python: Vec<Target> = targets.iter().copied().filter(|(_, pid)| is_python(*pid)).collect();
    let Some((_, first)) = python.first() else { return places };
    places.program = Program::Python;
    let Some(tool) = find_tool(*first) else {
        places.notes.push("to see the source lines of Python ranks here, install py-spy: `pip install py-spy`".into());
        return places;
    };
    for group in python.chunks(MOST) {
        let dumps: Vec<_> = group.iter().map(|(rank, pid)| (*rank, Dump::start(&tool, *pid, &["--json"]))).collect();
        for (rank, dump) in dumps {
            match dump.finish() {
                Ok(json) => places.threads.extend(parse(&json).into_iter().map(|(t, place)| ((rank, t), place))),
                Err(why) => note(&mut places.notes, &why),
            }
        }
    }
    places
}

fn note(notes: &mut Vec<String>, why: &str) {
    let text = format!("py-spy cannot read the source lines of the ranks: {why}");
    if !notes.contains(&text) {
        notes.push(text);
    }
}

/// The first line that says something.
fn reason(why: &str) -> String {
    why.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given").to_owned()
}

/// A run of py-spy that reads the stacks of one process.
struct Dump<'a> {
    tool: &'a Path,
    pid: u32,
    format: &'a [&'a str],
    child: io::Result<Child>,
}

impl Dump<'_> {
    /// Starts py-spy. It does not stop the process.
    fn start<'a>(tool: &'a Path, pid: u32, format: &'a [&'a str]) -> Dump<'a> {
        Dump { tool, pid, format, child: spawn(tool, pid, &[format, &["--nonblocking"]].concat()) }
    }

    /// Waits for the output. If the process runs, its stack may change while py-spy reads it, which then fails: py-spy
    /// reads such a process again, and stops it for some milliseconds.
    ///
    /// # Errors
    /// The reason why the process cannot be read.
    fn finish(self) -> Result<Vec<u8>, String> {
        output(self.child).or_else(|_| output(spawn(self.tool, self.pid, self.format)))
    }
}

fn spawn(tool: &Path, pid: u32, options: &[&str]) -> io::Result<Child> {
    let mut command = Command::new(tool);
    command.args(["dump", "--pid", &pid.to_string()]).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: the closure makes one async-signal-safe system call.
    unsafe { command.pre_exec(sys::die_with_parent) };
    command.spawn()
}

fn output(child: io::Result<Child>) -> Result<Vec<u8>, String> {
    let output = child.and_then(Child::wait_with_output).map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(reason(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// True if the process runs a Python interpreter, as a program or as a library.
pub fn is_python(pid: u32) -> bool {
    let name = procfs::executable(pid).and_then(|exe| Some(exe.file_name()?.to_string_lossy().into_owned()));
    name.is_some_and(|name| name.starts_with("python"))
        || std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("/libpython3"))
}

/// Where an Octave process waits; only its first thread calls MPI.
fn octave_place(pid: u32) -> Option<SourcePosition> {
    let open_files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let is_ours =
        |file: &PathBuf| std::fs::read_link(file).is_ok_and(|to| to.to_string_lossy().starts_with(OCTAVE_FILE));
    let file = open_files.flatten().map(|entry| entry.path()).find(is_ours)?;
    let text = std::fs::read(file).ok()?;
    parse_octave(&String::from_utf8_lossy(&text))
}

fn parse_octave(text: &str) -> Option<SourcePosition> {
    let mut lines = text.trim_end_matches('\0').lines();
    let line = lines.next().filter(|line| !line.is_empty())?.to_owned();
    let verb = lines.next().filter(|verb| !verb.is_empty()).map(str::to_owned);
    Some(SourcePosition { line, verb, text: None })
}

/// py-spy beside this command, beside the rank's Python, or in PATH.
fn find_tool(pid: u32) -> Option<PathBuf> {
    let beside = |file: PathBuf| Some(file.parent()?.join("py-spy"));
    let mut candidates: Vec<PathBuf> = std::env::current_exe().ok().and_then(beside).into_iter().collect();
    // A virtual environment's python may be a link: its own folder is known only from how it was called.
    if let Some(called) = procfs::command_line(pid).and_then(|line| line.split(' ').next().map(PathBuf::from)) {
        candidates.extend(beside(called));
    }
    candidates.extend(procfs::executable(pid).and_then(beside));
    candidates.into_iter().find(|file| procfs::is_executable(file)).or_else(|| procfs::in_path("py-spy"))
}

/// The stacks of all threads of a Python process, as py-spy writes them for people.
///
/// # Errors
/// Why there are none.
pub fn dump_text(pid: u32) -> Result<String, String> {
    let tool = find_tool(pid).ok_or("py-spy is not installed; `pip install py-spy`")?;
    let text = Dump::start(&tool, pid, &[]).finish()?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The place of each thread of a dump: the innermost line of the user's own code, or else the innermost one that is not
/// ours, and what it has called of ours.
pub fn parse(json: &[u8]) -> BTreeMap<u32, SourcePosition> {
    let Ok(Value::Array(threads)) = serde_json::from_slice(json) else { return BTreeMap::new() };
    let place = |thread: &Value| {
        let number = u32::try_from(thread["os_thread_id"].as_u64().or_else(|| thread["thread_id"].as_u64())?).ok()?;
        let frames = thread["frames"].as_array()?;
        let first = |wanted: fn(Owner) -> bool| frames.iter().position(|frame| wanted(owner(frame)));
        let at = first(|owner| owner == Owner::User).or_else(|| first(|owner| owner == Owner::Installed)).unwrap_or(0);
        let (frame, inner) = (frames.get(at)?, at.checked_sub(1).and_then(|inner| frames.get(inner)));
        let verb = inner.filter(|frame| owner(frame) == Owner::Limosa).and_then(verb_of);
        let (file, at) = (frame["filename"].as_str()?, frame["line"].as_u64()?);
        let line = format!("{file}:{at} in {}", frame["name"].as_str()?);
        let text = if verb.is_none() { source_line(file, at, thread["pid"].as_u64()) } else { None };
        Some((number, SourcePosition { line, verb: verb.map(str::to_owned), text }))
    };
    threads.iter().filter_map(place).collect()
}

/// The function of our package that a frame is in, as users know it.
fn verb_of(frame: &Value) -> Option<&str> {
    // Its constructor and its thread have no names that users know.
    if frame["filename"].as_str()?.ends_with("/limosa/_executor.py") {
        return Some("limosa.Executor");
    }
    // The class in front of a method's name says nothing to users.
    frame["name"].as_str()?.rsplit('.').next().map(|name| name.trim_start_matches("_long_"))
}

/// A line of a file, or of a process's command line (`python -c`).
fn source_line(file: &str, at: u64, pid: Option<u64>) -> Option<String> {
    let text = match file {
        "<string>" => procfs::argument_after(u32::try_from(pid?).ok()?, "-c")?,
        _ => std::fs::read_to_string(file).ok()?,
    };
    text.lines().nth(usize::try_from(at).ok()?.checked_sub(1)?).map(str::to_owned)
}

/// Whose code a frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The user's: a script, a cell of a notebook.
    User,
    /// Python's own library, or an installed package.
    Installed,
    /// Our package's (installed, or in its sources), and the dialects' that it brings.
    Limosa,
    /// The interpreter's start-up, or the MPI binding.
    Machinery,
}

fn owner(frame: &Value) -> Owner {
    let file = frame["filename"].as_str().unwrap_or("<unknown>");
    let has = |parts: &[&str]| parts.iter().any(|part| file.contains(part));
    if ["<frozen", "<unknown>", "<shim>"].iter().any(|start| file.starts_with(start))
        || has(&["-packages/mpi4py/", "mpi4py/MPI.src/"])
    {
        Owner::Machinery
    } else if has(&["-packages/limosa/", "python/limosa/"]) {
        Owner::Limosa
    } else if has(&["-packages/", "/lib/python3"]) {
        Owner::Installed
    } else {
        Owner::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_octave_rank_has_written_down_is_read() {
        let place = parse_octave("/home/u/ring.m:12 in exchange\nlimosa_recv\n\0\0").unwrap();
        assert_eq!(
            (place.line.as_str(), place.verb.as_deref()),
            ("/home/u/ring.m:12 in exchange", Some("limosa_recv"))
        );
        assert_eq!(parse_octave("a.m:1\n").unwrap().verb, None);
        assert_eq!(parse_octave("\0\0"), None);
    }

    #[test]
    fn a_process_whose_stack_changes_during_the_read_is_stopped_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let stub = |name: &str, script: &str| {
            let file = folder.path().join(name);
            // A shell writes the file. While a process has a file open for writing, the file cannot be executed, and a
            // fork in another thread of this process would keep it open.
            let text = format!("echo '#!/bin/sh\n{script}' >{0} && chmod +x {0}", file.display());
            assert!(Command::new("sh").args(["-c", &text]).status().unwrap().success());
            file
        };
        let moving = stub("moving", "case \"$*\" in *--nonblocking*) exit 1 ;; esac; echo \"$*\"");
        assert_eq!(Dump::start(&moving, 7, &["--json"]).finish().unwrap(), b"dump --pid 7 --json\n");
        let refused = stub("refused", "echo; echo no permission >&2; exit 1");
        assert_eq!(Dump::start(&refused, 7, &[]).finish().unwrap_err(), "no permission");
    }

    fn places(json: &str) -> Vec<(u32, String, Option<String>)> {
        parse(json.as_bytes()).into_iter().map(|(thread, place)| (thread, place.line, place.verb)).collect()
    }

    #[test]
    fn the_users_innermost_line_is_found_behind_the_binding() {
        let json = r#"[{"pid":7,"thread_id":140,"os_thread_id":12,"active":false,"frames":[
            {"name":"recv","filename":"/v/lib/python3.11/site-packages/mpi4py/util/pkl5.py","line":9},
            {"name":"exchange","filename":"/home/u/ring.py","short_filename":"ring.py","line":12},
            {"name":"<module>","filename":"/home/u/ring.py","line":30}]},
            {"thread_id":5,"frames":[]}]"#;
        assert_eq!(places(json), [(12, "/home/u/ring.py:12 in exchange".to_owned(), None)]);
        assert!(parse(b"not json").is_empty());
    }

    #[test]
    fn the_verb_of_our_package_that_the_user_called_is_found() {
        let json = r#"[{"os_thread_id":12,"frames":[
            {"name":"_exchanged","filename":"/v/lib/python3.11/site-packages/limosa/_agreement.py","line":9},
            {"name":"Collectives.allreduce","filename":"/v/lib/python3.11/site-packages/limosa/_collectives.py","line":8},
            {"name":"step","filename":"<cell 3>","line":2},
            {"name":"run","filename":"/v/lib/python3.11/site-packages/limosa/_group_rank.py","line":8}]}]"#;
        assert_eq!(places(json), [(12, "<cell 3>:2 in step".to_owned(), Some("allreduce".to_owned()))]);
    }

    #[test]
    fn lines_of_pythons_library_count_only_if_there_is_none_of_the_user() {
        let json = r#"[{"os_thread_id":12,"frames":[
            {"name":"join","filename":"/usr/lib/python3.11/threading.py","line":1119},
            {"name":"main","filename":"/home/u/pool.py","line":3}]},
            {"os_thread_id":13,"frames":[
            {"name":"<module>","filename":"<frozen runpy>","line":3},
            {"name":"_worker","filename":"/usr/lib/python3.11/concurrent/futures/thread.py","line":81},
            {"name":"run","filename":"/usr/lib/python3.11/threading.py","line":975}]}]"#;
        let lines: Vec<String> = places(json).into_iter().map(|(_, line, _)| line).collect();
        assert_eq!(
            lines,
            ["/home/u/pool.py:3 in main", "/usr/lib/python3.11/concurrent/futures/thread.py:81 in _worker"]
        );
    }
}
