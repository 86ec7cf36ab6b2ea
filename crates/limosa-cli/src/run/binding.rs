//! Binding ranks to processors (`--bind-to`).
//!
//! On each host, the processors that the launcher or agent there may use are dealt out by cores (or hardware threads,
//! sockets, NUMA nodes): the host's first rank gets those of the first core, the next one those of the second, and so
//! on, beginning again when there are more ranks than cores. Without the option nothing is bound: the library itself
//! begins each rank on a processor of its own, and the system may move it.

use std::collections::BTreeMap;

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity};

/// What a rank is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BindTo {
    /// The processors of one core
    Core,
    /// One processor
    Hwthread,
    /// The processors of one socket
    #[value(alias = "package")]
    Socket,
    /// The processors of one NUMA node
    Numa,
    /// Nothing
    None,
}

impl BindTo {
    /// All, by the numbers that stand for them between hosts.
    pub const ALL: [BindTo; 5] = [BindTo::None, BindTo::Core, BindTo::Hwthread, BindTo::Socket, BindTo::Numa];

    /// As other launchers call it.
    pub fn word(self) -> &'static str {
        match self {
            BindTo::Core => "core",
            BindTo::Hwthread => "hwthread",
            BindTo::Socket => "socket",
            BindTo::Numa => "numa",
            BindTo::None => "none",
        }
    }
}

/// The processors of each of so many ranks of this host; empty without binding.
pub fn of_ranks(bind_to: BindTo, ranks: usize) -> Vec<Vec<usize>> {
    let parts = match bind_to {
        BindTo::Core => parts(&allowed(), siblings),
        BindTo::Hwthread => parts(&allowed(), |processor| processor),
        BindTo::Socket => parts(&allowed(), socket),
        BindTo::Numa => parts(&allowed(), node),
        BindTo::None => Vec::new(),
    };
    if parts.is_empty() { Vec::new() } else { parts.iter().cycle().take(ranks).cloned().collect() }
}

/// The processors as a set for the system.
pub fn set_of(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    processors.iter().filter(|processor| **processor < CpuSet::MAX_CPU).for_each(|processor| set.set(*processor));
    set
}

/// What `--report-bindings` says of a rank; its host has a name in a job over several hosts.
pub fn report(rank: u32, host: &str, processors: &[usize]) -> String {
    let words = match processors {
        [] => "is not bound".to_owned(),
        [one] => format!("is bound to processor {one}"),
        several => {
            let list: Vec<String> = several.iter().map(usize::to_string).collect();
            format!("is bound to processors {}", list.join(", "))
        }
    };
    let on = if host.is_empty() { String::new() } else { format!(" on {host}") };
    format!("limosa: rank {rank}{on} {words}\n")
}

/// The processors that this process may use.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

/// The first processor of the core that this one belongs to; itself if that is not known.
fn siblings(processor: usize) -> usize {
    let file = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    let list = std::fs::read_to_string(file).unwrap_or_default();
    list.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok()).unwrap_or(processor)
}

/// The number of the socket of a processor; 0 if it is not known.
fn socket(processor: usize) -> usize {
    let file = format!("/sys/devices/system/cpu/cpu{processor}/topology/physical_package_id");
    std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The number of the NUMA node of a processor; 0 if it is not known.
fn node(processor: usize) -> usize {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{processor}")).into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix("node")?.parse().ok();
    entries.filter_map(|entry| number(entry.file_name())).next().unwrap_or(0)
}

/// Processors grouped by core, socket or node.
fn parts(allowed: &[usize], part_of: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for processor in allowed {
        parts.entry(part_of(*processor)).or_default().push(*processor);
    }
    parts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_one_core_stay_together_and_forbidden_ones_are_left_out() {
        assert_eq!(parts(&[0, 1, 3, 4, 6], |processor| processor % 4), [vec![0, 4], vec![1], vec![6], vec![3]]);
    }

    #[test]
    fn the_report_says_what_each_rank_got() {
        assert_eq!(report(0, "", &[0, 4]), "limosa: rank 0 is bound to processors 0, 4\n");
        assert_eq!(report(1, "box", &[1]), "limosa: rank 1 on box is bound to processor 1\n");
        assert_eq!(report(2, "", &[]), "limosa: rank 2 is not bound\n");
    }

    #[test]
    fn ranks_share_cores_when_there_are_more_of_them() {
        let cores = of_ranks(BindTo::Core, 1000);
        assert_eq!(cores.len(), 1000);
        assert!(cores.iter().all(|core| !core.is_empty()));
        assert!(of_ranks(BindTo::None, 2).is_empty());
        assert!(of_ranks(BindTo::Hwthread, 3).iter().all(|part| part.len() == 1));
        for larger in [BindTo::Socket, BindTo::Numa] {
            let part = &of_ranks(larger, 1)[0];
            assert!(of_ranks(BindTo::Core, 1)[0].iter().all(|processor| part.contains(processor)));
        }
    }
}
