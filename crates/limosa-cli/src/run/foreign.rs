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
    /// It is said in these words; without words it means nothing here, and no other launcher needs it.
    Is(&'static [&'static str]),
    /// Its value belongs to this option of ours.
    As(&'static str),
    /// A value is said in these words; others are refused.
    By(&'static [(&'static str, &'static [&'static str])]),
    /// It is refused with this sentence.
    Refused(&'static str),
}

use Family::{Hydra, Prrte};
use Rule::{As, By, Drops, DropsOnly, DropsWith, Is, Refused};

const CPUS: &str = "without --bind-to each rank may use all processors of its host; leave it out";
const CPU_SET: &str = "`taskset -c LIST limosa run --bind-to core ...` binds the ranks to the processors of a list";
const LOGIN: &str = "other hosts are reached by ssh; LIMOSA_SSH names another command";
const ORDER: &str = "ranks are numbered in the order of the slots; leave it out";
const RANKFILE: &str = "give the hosts in the order of the ranks, with their numbers: -host a:2,b:1";
const XTERM: &str = "-xterm opens no windows: the output of all ranks comes here; -l marks its lines with their ranks";
const ALLOCATION: &str = "it belongs to the allocation: give it to sbatch or salloc, and start `limosa run` there";
const PATTERN: &str = "--output-filename FOLDER writes the output of each rank to files of its own";
const PROFILER: &str = "--profile records the calls of all ranks and shows what they cost";
const MAP: &str = "--show-map shows where the ranks of a job run, which then runs";
const DEBUGGER: &str = "`--debug gdb` runs rank 0 under gdb, `--debug gdb --rank 3` rank 3";

/// The options of other launchers: names, number of values, treatment.
const OPTIONS: &[(&[&str], usize, Rule)] = &[
    (&["allow-run-as-root", "oversubscribe", "nooversubscribe", "nolocal", "quiet", "q"], 0, Drops(Prrte)),
    (&["use-hwthread-cpus", "enable-recovery", "hetero-nodes", "abort-on-non-zero-status"], 0, Drops(Prrte)),
    (&["mca", "gmca", "omca", "prtemca", "pmixmca"], 2, Drops(Prrte)),
    (&["prefix", "personality"], 1, Drops(Prrte)),
    (
        &["envall", "genvall", "localonly", "pmi-port", "print-all-exitcodes", "disable-hostname-propagation"],
        0,
        Drops(Hydra),
    ),
    (&["order-nodes", "ordered-output", "silent-abort"], 0, Drops(Hydra)),
    (&["exclusive", "overlap", "kill-on-bad-exit", "K", "unbuffered", "u", "pty"], 0, Is(&[])),
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
    (&["display-devel-map", "print-rank-map"], 0, Is(&["--show-map"])),
    (&["check_mpi"], 0, Is(&["--check"])),
    (&["D"], 1, As("--wdir")),
    (&["s"], 1, As("--stdin")),
    (&["export"], 1, By(&[("ALL", &[]), ("NONE", &["--genvnone"])])),
    (&["distribution"], 1, By(&[("block", &["--map-by", "slot"]), ("cyclic", &["--map-by", "node"])])),
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
    (&["partition", "p", "account", "A", "qos", "job-name", "J"], 1, Refused(ALLOCATION)),
    (&["mem", "mem-per-cpu", "gres", "gpus", "constraint"], 1, Refused(ALLOCATION)),
    (&["time", "t"], 1, Refused("--timeout SECONDS ends the job after that time")),
    (&["outfile-pattern", "errfile-pattern"], 1, Refused(PATTERN)),
    (&["merge-stderr-to-stdout"], 0, Refused("`2>&1` after the command writes both to one place")),
    (&["path"], 1, Refused("name the program with its folder")),
    (&["preload-binary"], 0, Refused("the program must be there on each host, under the same path")),
    (&["do-not-launch"], 0, Refused(MAP)),
    (&["trace", "aps"], 0, Refused(PROFILER)),
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
        Some(As(option)) => own(&[option, &value]),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::run::options::{Options, parse};

    fn read(line: &str) -> Result<Options, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let mut sections = parse("limosa run", &args).map_err(|error| error.to_string())?;
        Ok(sections.remove(0))
    }

    /// Texts between backticks.
    fn quoted(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_table_of_options_in_the_documentation_says_what_the_launcher_does() {
        let page = include_str!("../../../../docs/options.md");
        let mut documented = Vec::new();
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            let [theirs, _, here] = row.trim_matches('|').split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
            for option in quoted(theirs) {
                let name = option.split([' ', '=']).next().unwrap_or_default().trim_start_matches('-');
                documented.push(name);
                let got = read(&format!("{option} a"));
                let here = here.trim();
                if let Some(why) = here.strip_prefix("refused: ") {
                    let error = got.err().unwrap_or_else(|| panic!("{option} is not refused"));
                    assert!(error.contains(why), "{option}: {error}");
                    continue;
                }
                let got = got.unwrap_or_else(|error| panic!("{option}: {error}"));
                let ours = if here == "nothing" { String::new() } else { quoted(here).join(" ") };
                let wanted = read(&format!("{ours} a")).expect("an option of this launcher");
                let known = Options { dropped: Vec::new(), ..got };
                assert_eq!(format!("{known:?}"), format!("{wanted:?}"), "{option}");
            }
        }
        for (names, ..) in OPTIONS {
            let missing: Vec<_> = names.iter().filter(|name| !documented.contains(name)).collect();
            assert!(missing.is_empty(), "docs/options.md has no {missing:?}");
        }
        // The Java options are in its own page.
        for arg in Options::command().get_arguments().filter(|arg| arg.get_id() != "class_path") {
            for name in arg.get_all_aliases().unwrap_or_default() {
                assert!(documented.contains(&name), "docs/options.md has no {name}");
            }
        }
    }
}
