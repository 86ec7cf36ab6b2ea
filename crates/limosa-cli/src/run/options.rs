//! The launcher's command line.
//!
//! It understands the usual options of other launchers ([`super::foreign`]), with one dash or two. [`split`] turns a
//! section of the line into the form that clap reads; everything from the first word on that is no option belongs to
//! the program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, CommandFactory, Parser, ValueEnum};
use limosa_job::config::{self, OnHang};

use super::binding::BindTo;
use super::foreign::{self, Dropped, Meaning};

const LONG_HELP: &str = "\
Examples:
  limosa run -n 4 ./wave               four processes
  limosa run -n 4 wave.py --steps 100  of a Python program
  limosa run -n 1 ./master : -n 7 ./worker
                                       one job of two programs
  limosa run -host a:2,b:2 ./wave      two processes on each of two hosts
  limosa run -l -x OMP_NUM_THREADS=2 -n 2 ./wave
  limosa run -n 4 -m package.wave      of a Python module
  limosa run --mpi mpich -n 4 wave.py  on MPICH, which is installed on first use
  limosa run --profile -n 4 wave.py    and show which calls cost how much time
  limosa run --debug gdb --rank 1 -n 4 ./wave
                                       rank 1 under a debugger, while the others wait
  limosa run --mpi list                which MPI libraries there are

Usual options of other launchers are understood too, with one dash or two:
  -np, -c, -hosts, -f, -machinefile, -wd, -genv, -genvlist, -genvnone, -env, -envlist, -prepend-rank,
  -perhost, -npernode, -usize, -maxtime, -configfile and others. --oversubscribe, --allow-run-as-root,
  --mca and the like mean nothing here and are ignored (with --mpi they are passed on); what cannot be done
  is refused.

Each rank gets LIMOSA_RANK, LIMOSA_SIZE, LIMOSA_LOCAL_RANK and LIMOSA_LOCAL_SIZE (its number on its host, and
how many there are); for programs that look for those of other launchers, also PMI_RANK, MPI_LOCALRANKID,
MPI_LOCALNRANKS, OMPI_COMM_WORLD_LOCAL_RANK and OMPI_COMM_WORLD_LOCAL_SIZE.

Signals INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to all ranks. After INT, TERM, HUP or QUIT
a job whose ranks all wait in MPI is ended within a second, with a report of what they wait for; others
have 10 seconds to end (a single rank on a terminal any time after INT). A second such signal kills all.
When a rank fails, the others are ended. Processes that ranks have started end with the job, also those in
sessions of their own; a service that is to live on must drop the variable LIMOSA_JOB_ID and leave the
session (env -u LIMOSA_JOB_ID setsid ...).

Python's output is shown line by line also in files and pipes: ranks run with PYTHONUNBUFFERED=1,
unless that variable is set (-x PYTHONUNBUFFERED= gives Python its buffers back).

--output-filename FOLDER writes FOLDER/1/rank.N/stdout and stderr, as Open MPI does, while the job runs.

Exit codes:
  0      all ranks exited with 0
  2      bad option, or a program or directory that does not exist
  3      the operating system refused something
  86     the job hung (with --on-hang=abort)
  124    the job took too long (with --timeout)
  141    the reader of the job's output has closed it, as `| head` does
  128+N  signal N killed a rank or the launcher
  other  the code of the first rank that failed; 1 if it left without MPI_Finalize";

/// Run a program in several processes, on this machine or on several hosts.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "limosa",
    version,
    override_usage = "limosa run [-n N] [OPTIONS] PROGRAM [ARGS]... [: [-n N] [OPTIONS] PROGRAM [ARGS]...]...",
    after_help = "Usual options of other launchers are understood too, with one dash or two.",
    after_long_help = LONG_HELP
)]
pub struct Options {
    /// Number of processes; without it 1, or as many as the hosts have slots
    #[arg(
        short = 'n',
        long = "np",
        alias = "ntasks",
        short_alias = 'c',
        allow_negative_numbers = true,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limosa_job::MAX_RANKS))
    )]
    pub count: Option<u32>,
    /// Hosts to run on, with the number of ranks on each: a:2,b:2 or node[1-8]; those of a host file that are meant
    #[arg(short = 'H', long = "host", aliases = ["hosts", "nodelist", "w"], value_name = "LIST")]
    pub host: Option<String>,
    /// File that lists hosts, one per line: HOST, HOST:N or HOST slots=N
    #[arg(long = "hostfile", aliases = ["machinefile", "f"], value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// Ranks on each host
    #[arg(long = "ppn", value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(aliases = ["perhost", "npernode", "ntasks-per-node", "grr", "N"])]
    pub per_host: Option<u32>,
    /// Which hosts get ranks: slot (host by host), node (one rank on each) or ppr:N:node (N on each)
    #[arg(long = "map-by", value_name = "HOW", hide_short_help = true)]
    pub map_by: Option<MapBy>,
    /// Working directory of the processes
    #[arg(long = "wdir", aliases = ["wd", "workdir", "chdir"], value_name = "DIR")]
    pub wdir: Option<PathBuf>,
    /// Set a variable, or pass on the present one, for all programs
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    pub export: Vec<OsString>,
    /// Set a variable for this program (--genv: for all)
    #[arg(long = "env", num_args = 2, action = ArgAction::Append, value_names = ["NAME", "VALUE"])]
    pub env: Vec<OsString>,
    /// Set a variable for all programs
    #[arg(long = "genv", num_args = 2, action = ArgAction::Append, value_names = ["NAME", "VALUE"], hide = true)]
    pub genv: Vec<OsString>,
    /// Pass on these variables, and only these
    #[arg(long = "genvlist", alias = "envlist", value_name = "LIST", hide_short_help = true)]
    pub genvlist: Option<String>,
    /// Pass on no variables
    #[arg(long = "genvnone", alias = "envnone", hide = true)]
    pub genvnone: bool,
    /// Begin each line of output with its rank
    #[arg(short = 'l', long = "tag-output", aliases = ["prepend-rank", "label"])]
    pub tag_output: bool,
    /// Write the output of each rank to files in this folder too; with `:nocopy` only there
    #[arg(long = "output-filename", value_name = "FOLDER", hide_short_help = true)]
    pub output_filename: Option<Destination>,
    /// How many processes the program may have in all: MPI_UNIVERSE_SIZE
    #[arg(long = "universe-size", alias = "usize", value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub universe_size: Option<u32>,
    /// Which ranks read standard input: a rank, all or none
    #[arg(long = "stdin", value_name = "RANKS", default_value = "0", hide_short_help = true)]
    pub stdin: Stdin,
    /// Run one rank under a debugger, gdb, lldb or pdb, while the others wait
    #[arg(long = "debug", value_name = "DEBUGGER", hide_possible_values = true, hide_short_help = true)]
    pub debug: Option<Debugger>,
    /// With --debug: the rank; otherwise rank 0
    #[arg(long = "rank", value_name = "N", hide_short_help = true, requires = "debug")]
    pub rank: Option<u32>,
    /// Compare datatypes between ranks, and say what is left at the end; slower
    #[arg(long = "check")]
    pub check: bool,
    /// Record the calls of all ranks, into a new folder, and show what they cost
    #[arg(long = "profile", value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub profile: Option<OsString>,
    /// With --profile: record up to N calls of each rank with their times, too
    #[arg(long = "profile-events", value_name = "N", hide_short_help = true, requires = "profile")]
    pub profile_events: Option<u64>,
    /// Do collectives as `limosa tune` has found to be fastest; with --mpi, too
    #[arg(long = "tuned", value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(hide_short_help = true)]
    pub tuned: Option<OsString>,
    /// When all ranks wait for each other: report, abort or off
    #[arg(long = "on-hang", value_name = "WHAT", hide_possible_values = true)]
    pub on_hang: Option<OnHangArg>,
    /// End the job after this time
    #[arg(long = "timeout", alias = "maxtime", allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Bind each rank to a core, hwthread, socket or numa node; or none
    #[arg(long = "bind-to", value_name = "WHAT", hide_possible_values = true)]
    pub bind_to: Option<BindTo>,
    /// Say which processors each rank is bound to
    #[arg(long = "report-bindings", hide_short_help = true)]
    pub report_bindings: bool,
    /// How processes reach each other: shm, fabric, messages, file:DIR, messages as files below this folder, or
    /// file:local, as files that ssh carries between hosts; shm,fabric and its like: fabric to other hosts only
    #[arg(long = "device", value_name = "DEVICE", value_parser = device, hide_short_help = true)]
    pub device: Option<String>,
    /// Keep the files of messages (with --device file:DIR), for `limosa messages DIR`
    #[arg(long = "keep-messages", hide_short_help = true)]
    pub keep_messages: bool,
    /// The program is a Python module
    #[arg(short = 'm')]
    pub module: bool,
    /// The program is a Java archive
    #[arg(long = "jar", hide_short_help = true)]
    pub jar: bool,
    /// The ranks of a Java program are threads of one Java machine
    #[arg(long = "threads", hide_short_help = true)]
    pub threads: bool,
    /// With --threads: ranks in each Java machine; Java carries the messages between the machines
    #[arg(long = "per-jvm", value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(requires = "threads")]
    pub per_jvm: Option<u32>,
    /// Where the classes of a Java program are; the program may then be the name of a class
    #[arg(long = "cp", aliases = ["classpath", "class-path"], value_name = "PATHS", hide_short_help = true)]
    pub class_path: Option<OsString>,
    /// MPI library to run on: mpich, intel, openmpi or a folder that holds one; `list` shows what there is
    #[arg(long = "mpi", value_name = "NAME")]
    pub mpi: Option<String>,
    /// Which old interface a script means: pympi, mympi, boost (Python), matlabmpi, mpi, mpitb or pmatlab
    /// (Octave), mpj (Java)
    #[arg(long = "dialect", value_name = "NAME", hide_possible_values = true, hide_short_help = true)]
    pub dialect: Option<Dialect>,
    /// Say on which host each rank is, and which devices reach the others
    #[arg(long = "show-map", aliases = ["display-map", "display-allocation"], hide_short_help = true)]
    pub show_map: bool,
    /// Print what is started
    #[arg(short = 'v', long = "verbose")]
    pub verbose: bool,
    /// Options of other launchers that mean nothing here
    #[arg(skip)]
    pub dropped: Vec<Dropped>,
    /// The program and its arguments
    #[arg(required = true, value_name = "PROGRAM", hide = true)]
    pub command: Vec<OsString>,
}

/// Reads a time in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    positive
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or("give a number of seconds above 0".into())
}

/// Reads a value of `LIMOSA_DEVICE`.
fn device(text: &str) -> Result<String, String> {
    let variable = config::find("LIMOSA_DEVICE").ok_or("there is no such variable")?;
    variable.form.check(text).map_err(|wanted| format!("it must be {wanted}"))
}

/// A debugger that can start a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Debugger {
    /// The debugger of GNU, for compiled programs
    Gdb,
    /// The debugger of LLVM, for compiled programs
    Lldb,
    /// Python's own debugger
    Pdb,
}

impl Debugger {
    /// The debugger's command.
    pub fn word(self) -> &'static str {
        match self {
            Debugger::Gdb => "gdb",
            Debugger::Lldb => "lldb",
            Debugger::Pdb => "pdb",
        }
    }
}

/// The ranks that read standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// One rank.
    Rank(u32),
    /// Every rank gets a copy.
    All,
    /// No rank.
    None,
}

impl std::str::FromStr for Stdin {
    type Err = String;

    fn from_str(text: &str) -> Result<Stdin, String> {
        match text {
            "all" => Ok(Stdin::All),
            "none" => Ok(Stdin::None),
            rank => rank.parse().map(Stdin::Rank).map_err(|_| "give a rank, `all` or `none`".into()),
        }
    }
}

/// As [`OnHang`], for the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnHangArg {
    /// Report the hang and keep waiting
    Report,
    /// Report the hang and end the job
    Abort,
    /// Do not look for hangs
    Off,
}

impl OnHangArg {
    /// The word for it, also in LIMOSA_ON_HANG.
    pub fn word(self) -> &'static str {
        match self {
            OnHangArg::Report => "report",
            OnHangArg::Abort => "abort",
            OnHangArg::Off => "off",
        }
    }
}

impl From<OnHangArg> for OnHang {
    fn from(arg: OnHangArg) -> OnHang {
        match arg {
            OnHangArg::Report => OnHang::Report,
            OnHangArg::Abort => OnHang::Abort,
            OnHangArg::Off => OnHang::Off,
        }
    }
}

/// Old interfaces that share names: in Python the module `mpi`, in Octave the functions `MPI_Send` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// pyMPI
    Pympi,
    /// MYMPI, later pydusa
    Mympi,
    /// The Python bindings of Boost.MPI
    Boost,
    /// MatlabMPI
    Matlabmpi,
    /// The package `mpi` of Octave Forge
    Mpi,
    /// MPITB
    Mpitb,
    /// pMatlab
    Pmatlab,
    /// MPJ Express
    Mpj,
}

impl Dialect {
    /// The value of `LIMOSA_DIALECT`.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Pympi => "pympi",
            Dialect::Mympi => "mympi",
            Dialect::Boost => "boost",
            Dialect::Matlabmpi => "matlabmpi",
            Dialect::Mpi => "mpi",
            Dialect::Mpitb => "mpitb",
            Dialect::Pmatlab => "pmatlab",
            Dialect::Mpj => "mpj",
        }
    }
}

/// Which hosts get ranks (`--map-by`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapBy {
    /// The slots of the hosts in turn.
    Slot,
    /// One rank on each host.
    Node,
    /// So many ranks on each host.
    PerNode(u32),
}

impl std::str::FromStr for MapBy {
    type Err = String;

    fn from_str(text: &str) -> Result<MapBy, String> {
        let (what, qualifiers) = match text.strip_prefix("ppr:") {
            // The number and the part belong together.
            Some(rest) => match rest.match_indices(':').nth(1) {
                Some((at, _)) => (&text[..4 + at], &text[4 + at + 1..]),
                None => (text, ""),
            },
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let is_usual = |word: &str| {
            let word = word.to_ascii_lowercase();
            ["", "oversubscribe", "nooversubscribe", "nolocal", "hwtcpus", "corecpus"].contains(&word.as_str())
        };
        if let Some(word) = qualifiers.split([':', ',']).find(|word| !is_usual(word)) {
            return Err(format!("`{word}` is not supported; --bind-to says what ranks are bound to (PE=N does not)"));
        }
        match what {
            "node" => Ok(MapBy::Node),
            // Parts of a host: ranks on it are consecutive in any case.
            "slot" | "core" | "hwthread" | "socket" | "package" | "numa" | "l1cache" | "l2cache" | "l3cache" => {
                Ok(MapBy::Slot)
            }
            _ => what
                .strip_prefix("ppr:")
                .and_then(|rest| rest.strip_suffix(":node"))
                .and_then(|number| number.parse().ok().filter(|number| *number > 0))
                .map(MapBy::PerNode)
                .ok_or("give slot, node or ppr:N:node".into()),
        }
    }
}

/// Where output goes besides, or instead of, the launcher's own streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The folder.
    pub folder: PathBuf,
    /// Output is shown by the launcher too.
    pub copy: bool,
}

impl std::str::FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Destination, String> {
        let (folder, copy) = match text.rsplit_once(':') {
            Some((folder, "nocopy")) => (folder, false),
            Some((folder, "copy")) => (folder, true),
            _ => (text, true),
        };
        if folder.is_empty() {
            return Err("give a folder, with `:nocopy` behind it if output is to go there only".into());
        }
        Ok(Destination { folder: folder.into(), copy })
    }
}

/// Options that cannot be carried out: the reason, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    /// One sentence.
    pub what: String,
    /// One sentence.
    pub hint: Option<String>,
}

/// Returns an error of these two sentences.
pub fn unusable<T>(what: impl Into<String>, hint: impl Into<Option<String>>) -> Result<T, Unusable> {
    Err(Unusable { what: what.into(), hint: hint.into() })
}

/// True if the command line is `--mpi list` and nothing else.
pub fn asks_for_libraries(args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    matches!(words[..], ["--mpi" | "-mpi", "list"] | ["--mpi=list" | "-mpi=list"]) && words.len() == args.len()
}

/// The MPI library that was chosen, if it is not this one.
pub fn library(sections: &[Options]) -> Option<&str> {
    sections.iter().find_map(|section| section.mpi.as_deref()).filter(|name| *name != "limosa")
}

/// Cuts the command line into sections and reads each of them.
pub fn parse(called: &str, args: &[OsString]) -> Result<Vec<Options>, clap::Error> {
    let args = with_configuration(args)?;
    let sections: Vec<&[OsString]> = args.split(|arg| arg == ":").collect();
    let multiple = sections.len() > 1;
    let mut read = Vec::new();
    for (i, section) in sections.into_iter().enumerate() {
        if section.is_empty() && multiple {
            let text =
                format!("section {} of the command line is empty: write a program on both sides of `:`\n", i + 1);
            return Err(clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, text));
        }
        let (words, dropped) = split(section)?;
        let options = Options::try_parse_from(std::iter::once(called.into()).chain(words))?;
        read.push(Options { dropped, ..options });
    }
    Ok(read)
}

/// The command line with the lines of a configuration file in place of the option that names it (MPI 5.0, section
/// 11.5), as sections.
fn with_configuration(args: &[OsString]) -> Result<Vec<OsString>, clap::Error> {
    let known = Options::command();
    let mut rest = args;
    while let Some((option, tail)) = rest.split_first().filter(|(word, _)| is_option(word) && *word != "-m") {
        let word = option.to_string_lossy();
        let bare = word.trim_start_matches('-');
        let (name, attached) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)));
        if ["configfile", "app"].contains(&name) {
            let file = attached.map(OsString::from).or_else(|| tail.first().cloned()).unwrap_or_default();
            let behind = tail.get(usize::from(attached.is_none())..).unwrap_or_default();
            let lines = lines_of(Path::new(&file)).map_err(|why| {
                let text = format!("{word}: cannot read the configuration file `{}`: {why}\n", file.display());
                clap::Error::raw(clap::error::ErrorKind::InvalidValue, text)
            })?;
            return Ok([&args[..args.len() - rest.len()], &lines.join(&OsString::from(":")), behind].concat());
        }
        let number = foreign::values_of(name).or_else(|| values_of(&known, name)).filter(|_| attached.is_none());
        rest = &tail[number.unwrap_or(0).min(tail.len())..];
    }
    Ok(args.to_vec())
}

/// The words of each line that has any. Quotes are those of a shell, `#` begins a comment, `\` continues a line.
fn lines_of(file: &Path) -> Result<Vec<Vec<OsString>>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?.replace("\\\n", " ");
    let words = |(number, line): (usize, &str)| {
        let words = shlex::split(line).ok_or_else(|| format!("a quote on line {} does not end", number + 1))?;
        Ok(words.into_iter().map(OsString::from).collect::<Vec<_>>())
    };
    let lines = text.lines().enumerate().map(words).collect::<Result<Vec<_>, String>>()?;
    let lines: Vec<_> = lines.into_iter().filter(|words| !words.is_empty()).collect();
    if lines.is_empty() { Err("it names no program".into()) } else { Ok(lines) }
}

/// True for a word of the command line that is an option, not the program.
fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-") && word != "--"
}

/// The words of a section in the form that clap reads (long options with two dashes, `--` before the program), and what
/// means nothing here.
fn split(section: &[OsString]) -> Result<(Vec<OsString>, Vec<Dropped>), clap::Error> {
    let known = Options::command();
    let (mut words, mut dropped) = (Vec::new(), Vec::new());
    let mut rest = section;
    while let Some((first, tail)) = rest.split_first() {
        if first == "--" {
            rest = tail;
            break;
        }
        if first == "-m" {
            // As for Python: what follows is the module and its arguments.
            words.push("-m".into());
            rest = tail;
            break;
        }
        let Some(option) = first.to_str().filter(|_| is_option(first)) else { break };
        let bare = option.trim_start_matches('-');
        let (name, attached) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)));
        let values = |number: usize| match attached {
            Some(value) => (vec![OsString::from(value)], tail),
            None => (tail[..number.min(tail.len())].to_vec(), &tail[number.min(tail.len())..]),
        };
        if let Some(number) = foreign::values_of(name) {
            let (given, behind) = values(number);
            match foreign::meaning(name, &given) {
                Meaning::Nothing(what) => dropped.push(what),
                Meaning::Words(own) => words.extend(own.iter().map(OsString::from)),
                Meaning::Refused(why) => {
                    let text = format!("{option}: {why}\n");
                    return Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, text));
                }
            }
            rest = behind;
            continue;
        }
        let follow = values_of(&known, name);
        // `-n4` is a number; other words behind one dash are names, of which no letter counts by itself.
        let has_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_attached_number = bare.strip_prefix(['n', 'c']).is_some_and(has_number);
        let dashes = if has_short(&known, name) || is_attached_number { "-" } else { "--" };
        let dashed = format!("{dashes}{bare}");
        words.push(dashed.into());
        let follow = if attached.is_some() { 0 } else { follow.unwrap_or(0).min(tail.len()) };
        words.extend_from_slice(&tail[..follow]);
        rest = &tail[follow..];
    }
    if !rest.is_empty() {
        words.push("--".into());
        words.extend_from_slice(rest);
    }
    Ok((words, dropped))
}

/// Whether there is an option of this one letter.
fn has_short(command: &clap::Command, name: &str) -> bool {
    let shorts = |arg: &clap::Arg| {
        let hidden = arg.get_all_short_aliases().unwrap_or_default();
        arg.get_short().into_iter().chain(hidden).map(String::from).any(|short| short == name)
    };
    command.get_arguments().any(shorts) || ["h", "V"].contains(&name)
}

/// How many words follow the option of this name, if there is one.
fn values_of(command: &clap::Command, name: &str) -> Option<usize> {
    let is_name = |arg: &&clap::Arg| {
        let long = arg.get_long_and_visible_aliases().unwrap_or_default();
        let hidden = arg.get_all_aliases().unwrap_or_default();
        let shorts = arg.get_short().into_iter().chain(arg.get_all_short_aliases().unwrap_or_default());
        long.contains(&name) || hidden.contains(&name) || shorts.map(String::from).any(|short| short == name)
    };
    let arg = command.get_arguments().find(is_name)?;
    Some(match arg.get_action() {
        // A value that may be left out is attached with `=`.
        ArgAction::Set | ArgAction::Append => arg.get_num_args().map_or(1, |range| range.min_values()),
        _ => 0,
    })
}

/// Pairs of a list in which names and values alternate.
pub fn pairs(list: &[OsString]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    list.chunks_exact(2).map(|pair| (pair[0].as_os_str(), pair[1].as_os_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<Options> {
        let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        parse("limosa run", &args).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_folder_may_say_that_output_goes_nowhere_else() {
        let parse = |text: &str| text.parse::<Destination>().map(|to| (to.folder, to.copy));
        assert_eq!(parse("out"), Ok(("out".into(), true)));
        assert_eq!(parse("a:b:nocopy"), Ok(("a:b".into(), false)));
        assert_eq!(parse("a:b"), Ok(("a:b".into(), true)));
        assert!(parse("").is_err() && parse(":nocopy").is_err());
    }

    #[test]
    fn the_declaration_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_number_of_processes_has_many_spellings() {
        for text in ["-n 4 a", "-np 4 a", "--np 4 a", "--np=4 a", "-c 4 a", "-np=4 a", "-n4 a", "-n=4 a"] {
            assert_eq!(line(text)[0].count, Some(4), "{text}");
        }
        assert_eq!(line("a")[0].count, None);
    }

    #[test]
    fn options_behind_the_program_are_the_programs() {
        let options = &line("-n 2 prog -n 3 --np 9 -l")[0];
        assert_eq!((options.count, options.tag_output), (Some(2), false));
        assert_eq!(options.command, ["prog", "-n", "3", "--np", "9", "-l"]);
        assert_eq!(line("-n 2 -- -odd-name x")[0].command, ["-odd-name", "x"]);
    }

    #[test]
    fn options_of_other_launchers_do_no_harm() {
        let options = &line("--allow-run-as-root -map-by slot --mca btl self --oversubscribe -ppn 2 -np 3 prog")[0];
        assert_eq!((options.count, options.command.as_slice()), (Some(3), ["prog".into()].as_slice()));
        assert_eq!((options.per_host, options.map_by), (Some(2), Some(MapBy::Slot)));
        assert_eq!(options.dropped.iter().map(|what| what.words.len()).collect::<Vec<_>>(), [1, 3, 1]);
        assert_eq!(line("--map-by=core prog")[0].map_by, Some(MapBy::Slot));
        assert!(line("-xterm 1 prog")[0].dropped[0].note.is_some_and(|note| note.contains("-l marks its lines")));
    }

    #[test]
    fn options_of_other_launchers_are_said_in_ours() {
        let same = |theirs: &str, ours: &str| {
            let (theirs, ours) = (format!("{:?}", line(theirs)), format!("{:?}", line(ours)));
            assert_eq!(theirs, ours);
        };
        for (theirs, ours) in [
            ("-usize 8 a", "--universe-size 8 a"),
            ("-maxtime 5 a", "--timeout 5 a"),
            ("-perhost 2 a", "--ppn 2 a"),
            ("-N 1 a", "--ppn 1 a"),
            ("-npernode 2 a", "--ppn 2 a"),
            ("-pernode a", "--ppn 1 a"),
            ("-bynode a", "--map-by node a"),
            ("-rr a", "--map-by node a"),
            ("--output tag a", "-l a"),
            ("--output=tag a", "-l a"),
            ("--output dir=x a", "--output-filename x a"),
            ("--ntasks=2 --label a", "-n 2 -l a"),
            ("-w a,b --chdir /tmp a", "-host a,b -wdir /tmp a"),
            ("--display map a", "--show-map a"),
            ("-bind-to package a", "--bind-to socket a"),
            ("-binding core a", "--bind-to core a"),
        ] {
            same(theirs, ours);
        }
    }

    #[test]
    fn letters_behind_one_dash_are_no_options_of_their_own() {
        for text in ["-cx 1 a", "-xyz a", "-modx a", "-lv a", "-nx a", "-Hab a", "-vx a", "-n4x a"] {
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let error = parse("limosa run", &args).expect_err(text).to_string();
            let name = text.split(' ').next().unwrap_or_default();
            assert!(error.contains(&format!("unexpected argument '-{name}'")), "{error}");
        }
    }

    #[test]
    fn what_other_launchers_do_and_this_one_does_not_is_refused_with_a_sentence() {
        for (text, advice) in [
            ("-configfile /no/such a", "cannot read the configuration file `/no/such`: No such file"),
            ("-configfile /dev/null", "it names no program"),
            ("-configfile", "cannot read the configuration file ``"),
            ("-rankfile x a", "-host"),
            ("--cpu-set 0,1 a", "taskset"),
            ("--cpus-per-rank 4 a", "--bind-to"),
            ("--map-by ppr:2:socket a", "ppr:N:node"),
            ("--map-by slot:PE=2 a", "PE"),
            ("--rank-by node a", "order of the slots"),
            ("-launcher slurm a", "LIMOSA_SSH"),
            ("--output timestamp a", "tag"),
        ] {
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let error = parse("limosa run", &args).expect_err(text).to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }

    #[test]
    fn variables_come_in_the_forms_of_both_families() {
        let options = &line("-x A=1 -x B -env C 2 -genv D 3 -genv E 4 -genvlist F,G prog")[0];
        assert_eq!(options.export, ["A=1", "B"]);
        assert_eq!(pairs(&options.env).collect::<Vec<_>>(), [(OsStr::new("C"), OsStr::new("2"))]);
        assert_eq!(pairs(&options.genv).count(), 2);
        assert_eq!(options.genvlist.as_deref(), Some("F,G"));
    }

    #[test]
    fn a_module_and_its_arguments_follow_its_option() {
        let options = &line("-n 2 -m package.wave -n 3 -m x")[0];
        assert_eq!((options.count, options.module), (Some(2), true));
        assert_eq!(options.command, ["package.wave", "-n", "3", "-m", "x"]);
        assert!(parse("x", &["-n".into(), "2".into(), "-m".into()]).is_err());
    }

    #[test]
    fn a_number_that_cannot_be_is_named() {
        for (text, wanted) in [("-n -1 a", "-1"), ("-np -4 a", "-4"), ("--timeout -3 a", "-3"), ("--timeout x a", "x")]
        {
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let error = parse("limosa run", &args).expect_err(text).to_string();
            assert!(error.contains(&format!("invalid value '{wanted}'")), "{error}");
        }
    }

    #[test]
    fn a_colon_separates_programs() {
        let sections = line("-n 1 a x : -n 2 -wdir /tmp b : c");
        let counts: Vec<Option<u32>> = sections.iter().map(|s| s.count).collect();
        assert_eq!(counts, [Some(1), Some(2), None]);
        assert_eq!(sections[1].wdir.as_deref(), Some(std::path::Path::new("/tmp")));
        assert!(parse("x", &["a".into(), ":".into()]).is_err());
    }

    #[test]
    fn the_lines_of_a_configuration_file_are_sections() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "# a comment\n-n 1 ./a 'x y' # another\n\n-n 2 \\\n  -wdir /tmp b -configfile c\n";
        std::fs::write(file.path(), text).unwrap();
        let name = file.path().display();
        for (theirs, ours) in [
            (format!("-configfile {name}"), "-n 1 ./a x_y : -n 2 -wdir /tmp b -configfile c"),
            (format!("-l -ppn 2 --app={name} d"), "-l -ppn 2 -n 1 ./a x_y : -n 2 -wdir /tmp b -configfile c d"),
        ] {
            assert_eq!(format!("{:?}", line(&theirs)), format!("{:?}", line(ours)).replace("x_y", "x y"));
        }
        assert_eq!(line("-m x -configfile y")[0].command, ["x", "-configfile", "y"]);
        std::fs::write(file.path(), "-n 1 a\n-n 2 'b").unwrap();
        let error = parse("x", &["-configfile".into(), file.path().into()]).expect_err("a quote is open").to_string();
        assert!(error.contains("a quote on line 2 does not end"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["", "-n 0 a", "-n x a", "-n", "--no-such-option a", "-genv A", "--stdin x a", "--on-hang=maybe a"]
        {
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            assert!(parse("limosa run", &args).is_err(), "`{text}` was accepted");
        }
    }
}
