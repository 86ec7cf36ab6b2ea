//! State of a process's threads, as the kernel shows it in /proc.

use std::fs;

/// Returns the state in the text of a `stat` file: R running, S sleeping, D in I/O, T stopped, t traced, Z ended, ...
fn state_of(text: &str) -> Option<char> {
    // The name is in parentheses and may contain parentheses; the last one ends it.
    text.rsplit_once(')')?.1.split_whitespace().next()?.chars().next()
}

/// Threads of a process that do not wait according to the status board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Whether a thread runs, waits for a disk, has been stopped, or sleeps in code of its own and has called the
    /// library before.
    pub busy: bool,
    /// Threads that only another thread of the process can wake: they wait for a lock, or for the end of a thread.
    /// Includes threads that have never called the library and wait for a signal, like an interpreter's thread for
    /// Ctrl-C.
    pub stuck: Vec<u32>,
    /// Threads that sleep otherwise and have never called the library.
    pub non_callers: Vec<u32>,
}

/// Threads of a process that the status board lists.
pub struct Known<'a> {
    /// Waiting threads. Even if one of them runs, it does not count as busy: it may wait by polling.
    pub waiting: &'a [u32],
    /// Threads that have called the library.
    pub callers: &'a [u32],
    /// Whether more threads have called the library than the board lists.
    pub more_callers: bool,
    /// Number of waiting threads that are not listed.
    pub unlisted: usize,
}

/// Returns whether this is the name of a service thread of the library or of the Python package.
fn is_ours(name: &str) -> bool {
    let library = ["limosa-helper", "limosa-alarm", "limosa-watch", "limosa-deaths"];
    library.contains(&name) || ["limosa-requests", "limosa-look"].contains(&name)
}

/// Returns whether this is the name of a service thread of a Java machine: for memory, compilation, signals and the
/// like. They poll from time to time, and run code of the program only on demand. The kernel keeps 15 bytes of a name.
fn is_of_java(name: &str) -> bool {
    let whole = [
        "Attach Listener",
        "Common-Cleaner",
        "Finalizer",
        "G1 Main Marker",
        "G1 Service",
        "Monitor Deflati",
        "Notification Th",
        "Reference Handl",
        "Service Thread",
        "Signal Dispatch",
        "Sweeper thread",
        "VM Periodic Tas",
        "VM Thread",
    ];
    let numbered = ["C1 CompilerThre", "C2 CompilerThre", "G1 Conc#", "G1 Refine#", "GC Thread#"];
    whole.contains(&name) || numbered.iter().any(|begin| name.starts_with(begin))
}

/// Inspects the threads of a process. Service threads of the library and of a Java machine count only while they run.
pub fn others(pid: u32, known: &Known<'_>) -> Others {
    let mut others = Others::default();
    let threads = threads(pid);
    let name_of = |file: String| fs::read_to_string(file).unwrap_or_default().trim_end().to_owned();
    let is_java = name_of(format!("/proc/{pid}/comm")) == "java";
    let is_idle = |name: &str| is_ours(name) || is_java && is_of_java(name);
    let mut away = 0;
    // The inspecting thread runs, which says nothing about the others.
    for &thread in threads.iter().filter(|thread| **thread != limosa_job::thread_id()) {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}")).ok();
        // A thread that has ended meanwhile does not count.
        let Some(state) = read("stat").and_then(|text| state_of(&text)) else { continue };
        let waits = known.waiting.contains(&thread);
        if "DTt".contains(state) || state == 'R' && !waits {
            others.busy = true;
            return others;
        }
        let name = || name_of(format!("/proc/{pid}/task/{thread}/comm"));
        if waits || "ZX".contains(state) || (thread != pid && is_idle(&name())) {
            continue;
        }
        let (call, has_called) = (read("syscall"), known.more_callers || known.callers.contains(&thread));
        let is_stuck = |text: &String| is_stuck(text, &threads) || !has_called && waits_for_signal(text);
        if call.as_ref().is_some_and(is_stuck) {
            others.stuck.push(thread);
        } else if has_called {
            away += 1;
        } else {
            others.non_callers.push(thread);
        }
    }
    others.busy = away > known.unlisted;
    others
}

/// Returns whether this line of /proc/<pid>/task/<thread>/syscall shows an untimed wait for a lock of the process, or
/// for the end of one of these threads.
fn is_stuck(line: &str, threads: &[u32]) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    let arguments: Vec<u64> =
        words.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).take(4).collect();
    let (Some(libc::SYS_futex), &[_, operation, value, limit]) = (number, &arguments[..]) else { return false };
    let operation = operation as i32;
    let waits = matches!(
        operation & libc::FUTEX_CMD_MASK,
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | libc::FUTEX_WAIT_REQUEUE_PI
    );
    // The kernel announces a thread's end with a shared wake-up on the word that holds its id.
    let is_private = operation & libc::FUTEX_PRIVATE_FLAG != 0;
    waits && limit == 0 && (is_private || threads.iter().any(|thread| u64::from(*thread) == value))
}

/// Returns whether this line of /proc/<pid>/task/<thread>/syscall shows an untimed wait for a signal to the process.
fn waits_for_signal(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    number == Some(libc::SYS_rt_sigtimedwait) && words.nth(2) == Some("0x0")
}

/// Returns the ids of a process's threads.
pub fn threads(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pid: u32) -> char {
        state_of(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap()).unwrap()
    }

    fn signal(pid: u32, name: &str) {
        std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    }

    fn known(waiting: &[u32]) -> Known<'_> {
        Known { waiting, callers: &[], more_callers: false, unlisted: 0 }
    }

    #[test]
    fn a_thread_that_polls_for_what_it_waits_for_is_not_busy_unless_it_is_stopped() {
        let mut poller = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = poller.id();
        // A process that has just begun may wait for pages of its program.
        while state(pid) != 'R' || others(pid, &known(&[pid])).busy {}
        assert!(others(pid, &known(&[])).busy);
        signal(pid, "STOP");
        while state(pid) != 'T' {}
        assert!(others(pid, &known(&[pid])).busy);
        poller.kill().unwrap();
        poller.wait().unwrap();
    }

    #[test]
    fn a_thread_that_waits_for_a_signal_without_a_limit_is_recognised() {
        let line = |number: i64, limit: &str| format!("{number} 0x7f01 0x7f02 {limit} 0x8 0x0 0x0 0x7f03 0x7f04");
        assert!(waits_for_signal(&line(libc::SYS_rt_sigtimedwait, "0x0")));
        assert!(!waits_for_signal(&line(libc::SYS_rt_sigtimedwait, "0x7f05")));
        assert!(!waits_for_signal(&line(libc::SYS_futex, "0x0")));
        assert!(!waits_for_signal("running"));
    }

    #[test]
    fn a_sleeping_thread_is_busy_if_it_has_called_the_library_and_a_stranger_otherwise() {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = sleeper.id();
        while !fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n") || state(pid) != 'S'
        {
        }
        assert_eq!(others(pid, &known(&[])), Others { non_callers: vec![pid], ..Others::default() });
        assert!(others(pid, &Known { callers: &[pid], ..known(&[]) }).busy);
        assert!(others(pid, &Known { more_callers: true, ..known(&[]) }).busy);
        assert!(!others(pid, &Known { more_callers: true, unlisted: 1, ..known(&[]) }).busy);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }

    #[test]
    fn who_waits_for_a_lock_or_a_thread_without_a_time_limit_is_stuck() {
        let line = |operation: i32, value: u32, limit: u32| {
            format!("{} 0x7f00 {operation:#x} {value:#x} {limit:#x} 0x0 0xffffffff 0x7ffc 0x7f01", libc::SYS_futex)
        };
        let private = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        assert!(is_stuck(&line(private, 2, 0), &[12]));
        assert!(!is_stuck(&line(private, 2, 0x7ffc), &[12]), "it wakes by itself");
        assert!(is_stuck(&line(libc::FUTEX_WAIT, 12, 0), &[12]), "it joins a thread");
        assert!(!is_stuck(&line(libc::FUTEX_WAIT, 2, 0), &[12]), "another process may wake it");
        assert!(!is_stuck(&line(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 2, 0), &[12]));
        for other in ["running", "", "0 0x3 0x55 0x20 0x0 0x0 0x0 0x7f 0x7f", "x y", "202 0x1"] {
            assert!(!is_stuck(other, &[12]), "{other}");
        }
    }

    #[test]
    fn threads_of_a_java_machine_are_known_by_name() {
        for name in ["VM Thread", "GC Thread#0", "C2 CompilerThre", "G1 Refine#12"] {
            assert!(is_of_java(name), "{name}");
        }
        for name in ["main", "Thread-0", "pool-1-thread-1", "java", "VM"] {
            assert!(!is_of_java(name), "{name}");
        }
    }

    #[test]
    fn a_process_that_is_not_there_has_no_threads() {
        assert_eq!(others(u32::MAX, &known(&[])), Others::default());
    }
}
