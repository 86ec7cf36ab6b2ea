//! What the kernel tells about processes in /proc. Processes come and go: everything is an `Option`.

use std::fs;
use std::path::{Path, PathBuf};

pub use limosa_hang::threads::threads;

/// Part of /proc/<pid>/stat.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// R running, S sleeping, D in I/O, T stopped, t traced, Z ended, ...
    pub state: char,
    /// CPU seconds used, in user code and in the kernel.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// When the process began, in seconds since the machine did.
    pub begin_seconds: f64,
}

/// Reads the state of a process.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may itself contain some; the last one ends it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        cpu_seconds: (number(11)? + number(12)?) as f64 / ticks,
        rss_bytes: number(21)? * rustix::param::page_size() as u64,
        begin_seconds: number(19)? as f64 / ticks,
    })
}

/// The executable file of this name in PATH.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_executable(file))
}

/// Whether this is a file that can be executed.
pub fn is_executable(file: &Path) -> bool {
    file.is_absolute() && file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The command line as one readable line.
pub fn command_line(pid: u32) -> Option<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = raw.split(|b| *b == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The argument of a process that comes after this one.
pub fn argument_after(pid: u32, before: &str) -> Option<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = raw.split(|b| *b == 0).skip_while(|argument| *argument != before.as_bytes());
    Some(String::from_utf8_lossy(arguments.nth(1)?).into_owned())
}

/// All process ids.
pub fn processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that a process has started and that still run, with those that these have started.
pub fn descendants(pid: u32) -> Vec<u32> {
    let started_by = |thread: &u32| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok();
    let lists: Vec<String> = threads(pid).iter().filter_map(started_by).collect();
    let children = lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|word| word.parse().ok());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// The short name of a process.
pub fn name(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// True if the process was started with this `NAME=value` in its environment.
pub fn has_variable(pid: u32, entry: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|raw| raw.split(|b| *b == 0).any(|word| word == entry.as_bytes()))
}

/// The file that a process executes.
pub fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The files of a process's open descriptors that are called `/memfd:<prefix>...`, with their numbers.
pub fn memory_files(pid: u32, prefix: &str) -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let found = entries.flatten().filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let name = target.to_str()?.strip_prefix("/memfd:")?.split(' ').next()?.to_owned();
        let number = entry.file_name().to_str()?.parse().ok()?;
        name.starts_with(prefix).then_some((number, name))
    });
    found.collect()
}

/// How often the kernel has killed processes of this control group for lack of memory.
pub fn oom_kills() -> u64 {
    let count = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
    };
    cgroup_dir("memory")
        .and_then(|dir| count(dir.join("memory.events")).or_else(|| count(dir.join("memory.oom_control"))))
        .unwrap_or(0)
}

/// The memory limit of this control group in bytes, if there is one.
pub fn memory_limit() -> Option<u64> {
    let mut dir = cgroup_dir("memory")?;
    let mut limit: Option<u64> = None;
    // A parent's limit holds for its children too.
    while dir.starts_with("/sys/fs/cgroup") {
        for name in ["memory.max", "memory.limit_in_bytes"] {
            let value = fs::read_to_string(dir.join(name)).ok().and_then(|text| text.trim().parse::<u64>().ok());
            // Version 1 writes "no limit" as a number near 2^63.
            if let Some(value) = value.filter(|v| *v < 1 << 60) {
                limit = Some(limit.map_or(value, |old| old.min(value)));
            }
        }
        if !dir.pop() {
            break;
        }
    }
    limit
}

/// The share of processors that the control group allows, as a number of processors, if it is limited.
pub fn cpu_quota() -> Option<f64> {
    let dir = cgroup_dir("cpu")?;
    if let Ok(text) = fs::read_to_string(dir.join("cpu.max")) {
        let (quota, period) = text.trim().split_once(' ')?;
        return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<f64>().ok();
    let quota = read("cpu.cfs_quota_us").filter(|q| *q > 0.0)?;
    Some(quota / read("cpu.cfs_period_us")?)
}

/// The directory of this process's control group for `controller`, in version 1 or 2.
fn cgroup_dir(controller: &str) -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.splitn(3, ':').collect()).filter(|parts: &Vec<&str>| parts.len() == 3).collect();
    let own = lines.iter().find(|parts| parts[1].split(',').any(|c| c == controller));
    let (root, path) = match own {
        Some(parts) => (PathBuf::from("/sys/fs/cgroup").join(controller), parts[2]),
        None => (PathBuf::from("/sys/fs/cgroup"), lines.iter().find(|parts| parts[0] == "0")?[2]),
    };
    let dir = root.join(path.trim_start_matches('/'));
    // Inside a container the path may be the host's; then the root is ours.
    Some(if dir.is_dir() { dir } else { root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_reader() {
        let mut text = String::from("12 (a) b (c)) S 1 12 12 0 -1 0 0 0 0 0 100 50");
        text.push_str(" 0 0 20 0 1 0 99 1000 7 0");
        let stat = parse_stat(&text).unwrap();
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.cpu_seconds, 150.0 / rustix::param::clock_ticks_per_second() as f64);
        assert_eq!(stat.rss_bytes, 7 * rustix::param::page_size() as u64);
        assert_eq!(stat.begin_seconds, 99.0 / rustix::param::clock_ticks_per_second() as f64);
    }

    #[test]
    fn this_process_is_there() {
        let me = std::process::id();
        assert!(processes().contains(&me));
        assert!(stat(me).unwrap().rss_bytes > 0);
    }
}
