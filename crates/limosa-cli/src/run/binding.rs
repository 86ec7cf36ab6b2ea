//! Binding ranks to processors (`--bind-to`).
//!
//! On each host, the processors that the launcher or agent there may use are dealt out by cores: the host's first rank
//! gets those of the first core, the next one those of the second, and so on, beginning again when there are more ranks
//! than cores. Without the option nothing is bound:
//! the library itself begins each rank on a processor of its own, and the system may move it.

use std::collections::BTreeMap;

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity};

/// What a rank is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BindTo {
    /// The processors of one core
    Core,
    /// Nothing
    None,
}

impl BindTo {
    /// As other launchers call it.
    pub fn word(self) -> &'static str {
        match self {
            BindTo::Core => "core",
            BindTo::None => "none",
        }
    }
}

/// The processors of each of so many ranks of this host; empty without binding.
pub fn of_ranks(bind_to: BindTo, ranks: usize) -> Vec<Vec<usize>> {
    let cores = match bind_to {
        BindTo::Core => cores(&allowed(), siblings),
        BindTo::None => Vec::new(),
    };
    if cores.is_empty() { Vec::new() } else { cores.iter().cycle().take(ranks).cloned().collect() }
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

/// Processors grouped by core.
fn cores(allowed: &[usize], first_of_core: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for processor in allowed {
        cores.entry(first_of_core(*processor)).or_default().push(*processor);
    }
    cores.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_one_core_stay_together_and_forbidden_ones_are_left_out() {
        assert_eq!(cores(&[0, 1, 3, 4, 6], |processor| processor % 4), [vec![0, 4], vec![1], vec![6], vec![3]]);
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
    }
}
