//! Source lines of Java ranks, which the `jstack` of their own JDK reads.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use limosa_hang::places::SourcePosition;

use crate::procfs;

/// A machine that does not answer within this time is not waited for: it may have been stopped. `jstack` starts a
/// machine of its own, which takes some tenths of a second, and seconds where other programs want the processors.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the threads of a Java process are, by their numbers; none if it is no Java process, or has no JDK.
pub fn places(pid: u32) -> BTreeMap<u32, SourcePosition> {
    let Some(tool) = tool(pid) else { return BTreeMap::new() };
    parse(&dump(&tool, pid).unwrap_or_default())
}

fn tool(pid: u32) -> Option<PathBuf> {
    let java = procfs::executable(pid).filter(|file| file.file_name().is_some_and(|name| name == "java"))?;
    Some(java.with_file_name("jstack")).filter(|file| procfs::is_executable(file))
}

fn dump(tool: &PathBuf, pid: u32) -> Option<String> {
    let mut command = Command::new(tool);
    command.arg(pid.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    // The text is longer than what a pipe holds.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        _ = output.read_to_end(&mut text);
        text
    });
    let begin = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if begin.elapsed() > PATIENCE {
            _ = child.kill();
            _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(String::from_utf8_lossy(&reader.join().ok()?).into_owned())
}

/// The innermost line of the program's own code of each thread of a dump.
fn parse(text: &str) -> BTreeMap<u32, SourcePosition> {
    let mut places = BTreeMap::new();
    let mut thread = None;
    for line in text.lines() {
        if line.starts_with('"') {
            thread = number(line);
        } else if let (Some(number), Some(line)) = (thread, line.trim_start().strip_prefix("at ").and_then(own_line)) {
            places.insert(number, SourcePosition { line, verb: None, text: None });
            thread = None;
        }
    }
    places
}

/// The kernel's number of a thread, in hexadecimal before JDK 21.
fn number(line: &str) -> Option<u32> {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix("nid="))?;
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

/// `FILE:LINE in CLASS.METHOD` for a frame `CLASS.METHOD(FILE:LINE)` that is not of Java or of Limosa.
fn own_line(frame: &str) -> Option<String> {
    let (method, place) = frame.strip_suffix(')')?.split_once('(')?;
    // A module or class loader comes before a slash.
    let method = method.rsplit('/').next()?;
    let theirs = ["java.", "jdk.", "sun.", "mpi.", "org.limosa."].iter().any(|begin| method.starts_with(begin));
    (!theirs && place.contains(':')).then(|| format!("{place} in {method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_innermost_line_is_found() {
        let text = "2026-11-23 19:00:00\nFull thread dump OpenJDK 64-Bit Server VM:\n\n\
            \"main\" #3 [4711] prio=5 os_prio=0 cpu=1ms elapsed=2s tid=0x00007f nid=4711 runnable  [0x00007f]\n   \
            java.lang.Thread.State: RUNNABLE\n\tat org.limosa.abi.Abi.MPI_Recv_c(Abi.java:7000)\n\tat \
            mpi.Comm.Recv(Comm.java:208)\n\tat app//Ring.step(Ring.java:12)\n\tat Ring.main(Ring.java:30)\n\n\
            \"old\" #9 prio=5 tid=0x00007f nid=0x1f runnable\n\tat java.lang.Thread.run(Thread.java:1)\n\tat \
            Other.run(Other.java:5)\n\n\"VM Thread\" os_prio=0 tid=0x00007f nid=4712 runnable\n";
        let lines: Vec<(u32, String)> = parse(text).into_iter().map(|(thread, place)| (thread, place.line)).collect();
        assert_eq!(
            lines,
            [(31, "Other.java:5 in Other.run".to_owned()), (4711, "Ring.java:12 in Ring.step".to_owned())]
        );
        assert!(parse("not a dump").is_empty());
    }
}
