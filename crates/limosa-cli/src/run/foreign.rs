//! Options of other launchers: Open MPI's (PRRTE's), MPICH's and Intel's (hydra's), Slurm's `srun`.
//!
//! Other names of our own options are aliases in [`super::options`]. Here are those that have other words, that mean
//! nothing here, or that are refused with a sentence about what to do instead.

use std::ffi::OsString;

/// Which launchers know an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MPICH's and Intel's.
    Hydra,
    /// Open MPI's.
    Prrte,
}

/// An option that means nothing here, with its values, and whose it is. With `--mpi` it is passed on to such a
/// launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The launchers that know it.
    pub family: Family,
    /// With two dashes.
    pub words: Vec<OsString>,
    /// What the user is told of it.
    pub note: Option<&'static str>,
}

/// What an option means.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing here.
    Nothing(Dropped),
    /// The same as these words.
    Words(Vec<String>),
    /// It is not supported, and what to do instead.
    Refused(String),
}

/// Treatment of an option.
enum Rule {
    /// It means nothing here.
    Drops(Family),
    /// It means nothing here, and the user is told this sentence.
    DropsWith(Family, &'static str),
    /// With these values it means nothing here; others are refused with this sentence.
    DropsOnly(Family, &'static [&'static str], &'static str),
    /// It is said in these words.
    Is(&'static [&'static str]),
    /// A value is said in these words; others are refused.
    By(&'static [(&'static str, &'static [&'static str])]),
    /// It is refused with this sentence.
    Refused(&'static str),
}

use Family::{Hydra, Prrte};
use Rule::{By, Drops, DropsOnly, DropsWith, Is, Refused};

const CPUS: &str = "without --bind-to each rank may use all processors of its host; leave it out";
const CPU_SET: &str = "`taskset -c LIST limosa run --bind-to core ...` binds the ranks to the processors of a list";
const LOGIN: &str = "other hosts are reached by ssh; LIMOSA_SSH names another command";
const ORDER: &str = "ranks are numbered in the order of the slots; leave it out";
const RANKFILE: &str = "give the hosts in the order of the ranks, with their numbers: -host a:2,b:1";
const XTERM: &str = "-xterm opens no windows: the output of all ranks comes here; -l marks its lines with their ranks";
const DEBUGGER: &str = "`--debug gdb` runs rank 0 under gdb, `--debug gdb --rank 3` rank 3";

/// The options of other launchers: names, number of values, treatment.
const OPTIONS: &[(&[&str], usize, Rule)] = &[
    (&["allow-run-as-root", "oversubscribe", "nooversubscribe", "nolocal", "quiet", "q"], 0, Drops(Prrte)),
    (&["use-hwthread-cpus", "enable-recovery", "do-not-launch", "abort-on-non-zero-status"], 0, Drops(Prrte)),
    (&["mca", "gmca", "omca", "prtemca", "pmixmca"], 2, Drops(Prrte)),
    (&["prefix"], 1, Drops(Prrte)),
    (
        &["envall", "genvall", "localonly", "pmi-port", "print-all-exitcodes", "disable-hostname-propagation"],
        0,
        Drops(Hydra),
    ),
    (&["iface", "ckpoint-interval", "demux"], 1, Drops(Hydra)),
    (&["launcher", "bootstrap"], 1, DropsOnly(Hydra, &["ssh", "rsh", "fork"], LOGIN)),
    (&["launcher-exec", "bootstrap-exec"], 1, Refused(LOGIN)),
    (&["rmk"], 1, DropsOnly(Hydra, &["user", "none", "slurm"], "the hosts are those of -host or of Slurm")),
    (&["membind"], 1, DropsOnly(Hydra, &["none"], "memory is not bound; --bind-to numa keeps ranks near theirs")),
    (&["rank-by"], 1, DropsOnly(Prrte, &["slot", "core", "fill"], ORDER)),
    (&["cpus-per-rank", "cpus-per-proc", "cpus-per-task"], 1, DropsOnly(Prrte, &["1"], CPUS)),
    (&["byslot"], 0, Is(&["--map-by", "slot"])),
    (&["bynode", "rr"], 0, Is(&["--map-by", "node"])),
    (&["pernode"], 0, Is(&["--ppn", "1"])),
    (&["bind-to-core"], 0, Is(&["--bind-to", "core"])),
    (&["bind-to-none"], 0, Is(&["--bind-to", "none"])),
    (&["bind-to-socket"], 0, Is(&["--bind-to", "socket"])),
    (
        &["binding"],
        1,
        By(&[("core", &["--bind-to", "core"]), ("none", &["--bind-to", "none"]), ("off", &["--bind-to", "none"])]),
    ),
    (&["output"], 1, By(&[("tag", &["--tag-output"])])),
    (
        &["display"],
        1,
        By(&[("map", &["--show-map"]), ("allocation", &["--show-map"]), ("bind", &["--report-bindings"])]),
    ),
    (&["timestamp-output", "xml"], 0, Refused("-l marks lines with their rank")),
    (&["xterm"], 1, DropsWith(Prrte, XTERM)),
    (&["rankfile", "rf"], 1, Refused(RANKFILE)),
    (&["cpu-set", "cpu-list", "pe-list", "cpu-bind"], 1, Refused(CPU_SET)),
    (&["nodes"], 1, Refused("give the hosts (-host), and how many ranks each gets (-ppn)")),
    (&["gdb", "gdba", "tv"], 0, Refused(DEBUGGER)),
];

fn find(name: &str) -> Option<&'static (&'static [&'static str], usize, Rule)> {
    OPTIONS.iter().find(|(names, ..)| names.contains(&name))
}

/// How many values follow the option of this name, if it is one of those here.
pub fn values_of(name: &str) -> Option<usize> {
    find(name).map(|(_, values, _)| *values)
}

/// What the option of this name, which is one of those here, means with these values.
pub fn meaning(name: &str, values: &[OsString]) -> Meaning {
    let own = |words: &[&str]| Meaning::Words(words.iter().map(|word| (*word).to_owned()).collect());
    let value = values.first().map(|value| value.to_string_lossy()).unwrap_or_default();
    let dropped = |family, note| {
        let words = std::iter::once(format!("--{name}").into()).chain(values.iter().cloned()).collect();
        Meaning::Nothing(Dropped { family, words, note })
    };
    match find(name).map(|(_, _, rule)| rule) {
        Some(Drops(family)) => dropped(*family, None),
        Some(DropsWith(family, note)) => dropped(*family, Some(*note)),
        Some(DropsOnly(family, usual, _)) if usual.contains(&&*value) => dropped(*family, None),
        Some(DropsOnly(_, _, why)) => Meaning::Refused(format!("`{value}` is not supported: {why}")),
        Some(Is(words)) => own(words),
        Some(By(_)) if name == "output" && value.starts_with("dir=") => {
            Meaning::Words(vec!["--output-filename".to_owned(), value[4..].to_owned()])
        }
        Some(By(known)) => match known.iter().find(|(word, _)| *word == value) {
            Some((_, words)) => own(words),
            None => {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                Meaning::Refused(format!("`{value}` is not supported, only {}", words.join(", ")))
            }
        },
        Some(Refused(why)) => Meaning::Refused(format!("this is not supported: {why}")),
        None => Meaning::Words(Vec::new()),
    }
}
