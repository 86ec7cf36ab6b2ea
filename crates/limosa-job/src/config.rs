//! The `LIMOSA_*` variables: declared once ([`VARIABLES`]), read once ([`get`]).
//!
//! - A value that cannot be understood counts as not set; that, and a variable that does not exist, is said once (by
//!   the launcher for the ranks it starts, by the library in a job of one).
//! - To add a variable: a line in `VARIABLES`, a field in [`Config`], a line in [`parse`]. A test compares the three.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::names::{ENV_FD, ENV_ID, ENV_PID, ENV_RANK, ENV_SIZE};

/// The declaration of one variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it may be set to.
    pub form: Form,
    /// Its value when not set.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub text: &'static str,
    /// Who sets it.
    pub audience: Audience,
}

/// What a variable may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or the second one, a colon and the name of a folder, with `local:` before it if each host has
    /// a folder of its own.
    ChoiceOrFolder(&'static [&'static str], &'static str),
    /// 1 or 0 (also on/off, yes/no, true/false).
    Switch,
    /// A whole number in this range, and its unit.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Unit, as words after the number.
        unit: &'static str,
    },
    /// Seconds, with a fraction if wanted.
    Seconds,
    /// The name of a file.
    Path,
    /// Anything.
    Text,
}

/// Who sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The user.
    User,
    /// The launcher, for the ranks; of use to scripts.
    Rank,
    /// The launcher, for the library only.
    Internal,
}

/// Every variable, in the order in which `limosa env` lists them.
pub const VARIABLES: &[Variable] = &[
    user(
        "LIMOSA_WAIT",
        Form::Choice(&["auto", "poll", "block"]),
        "auto",
        "How a blocked call waits: spin then sleep, only spin, or sleep at once",
    ),
    user(
        "LIMOSA_SPIN_US",
        Form::Number { min: 0, max: 1_000_000, unit: "microseconds" },
        "50",
        "How long a blocked call spins before it sleeps",
    ),
    user(
        "LIMOSA_DEVICE",
        Form::ChoiceOrFolder(&["shm", "fabric", "messages", "file:local"], "file"),
        "shm",
        "How processes reach each other: by shared memory; by a network, with libfabric; by files in this folder; by \
         files in folders of their hosts, which ssh carries; or by messages only, as between hosts (for tests)",
    ),
    user(
        "LIMOSA_FABRIC_LIBRARY",
        Form::Path,
        "",
        "File of libfabric; otherwise where the system finds it, or the packages of other MPI libraries have it",
    ),
    user(
        "LIMOSA_FABRIC_PROVIDER",
        Form::Text,
        "",
        "The provider of libfabric to use, such as tcp or verbs; otherwise the fastest one that it offers",
    ),
    user(
        "LIMOSA_FABRIC_INTERFACE",
        Form::Text,
        "",
        "The network interface to use, such as eth0; otherwise the first one, or none if all ranks are on one machine",
    ),
    user(
        "LIMOSA_PMIX_LIBRARY",
        Form::Path,
        "",
        "File of PMIx's library, for programs that prterun or `srun --mpi=pmix` starts; otherwise the launcher's own, or \
         where the system finds it",
    ),
    user(
        "LIMOSA_FILE_NOTIFY",
        Form::Choice(&["auto", "inotify", "clock"]),
        "auto",
        "How processes that exchange files learn of new ones: the system says so, or a clock ticks; auto: by the file \
         system",
    ),
    user("LIMOSA_FILE_KEEP", Form::Switch, "0", "Keep the files of messages that were received"),
    user(
        "LIMOSA_HOSTS",
        Form::Number { min: 1, max: 4096, unit: "hosts" },
        "1",
        "Number of hosts to imitate, in blocks of equal size: \
         only processes of one host share memory (for tests)",
    ),
    user(
        "LIMOSA_CMA",
        Form::Switch,
        "1",
        "Copy large messages directly from the partner's memory if the system allows it",
    ),
    user(
        "LIMOSA_COLL",
        Form::Choice(&["auto", "p2p"]),
        "auto",
        "How blocking collectives communicate: directly in shared memory if all ranks share it, or by messages",
    ),
    user(
        "LIMOSA_COLL_TABLE",
        Form::Path,
        "",
        "File with a table of collective algorithms; its rows replace the built-in ones",
    ),
    forced("LIMOSA_COLL_BARRIER", &["auto", "flags", "messages", "dissemination", "leaders"]),
    forced(
        "LIMOSA_COLL_BCAST",
        &["auto", "slots", "rounds", "single_copy", "messages", "linear", "binomial", "scatter_exchange", "leaders"],
    ),
    forced("LIMOSA_COLL_GATHER", &["auto", "slots", "single_copy", "messages", "linear", "binomial", "leaders"]),
    forced("LIMOSA_COLL_SCATTER", &["auto", "slots", "single_copy", "messages", "linear", "binomial", "leaders"]),
    forced(
        "LIMOSA_COLL_ALLGATHER",
        &["auto", "slots", "rounds", "single_copy", "messages", "exchange", "bruck", "ring", "leaders"],
    ),
    forced("LIMOSA_COLL_ALLTOALL", &["auto", "slots", "rounds", "single_copy", "messages", "exchange", "leaders"]),
    forced(
        "LIMOSA_COLL_REDUCE",
        &["auto", "slots", "rounds", "pieces", "messages", "binomial", "binomial_rotated", "sliced", "leaders"],
    ),
    forced(
        "LIMOSA_COLL_ALLREDUCE",
        &["auto", "slots", "rounds", "pieces", "messages", "recursive_doubling", "sliced", "leaders"],
    ),
    forced("LIMOSA_COLL_REDUCE_SCATTER", &["auto", "slots", "rounds", "pieces", "messages", "exchange", "via_reduce"]),
    forced("LIMOSA_COLL_SCAN", &["auto", "slots", "rounds", "pieces", "messages", "doubling"]),
    forced("LIMOSA_COLL_NEIGHBOR_ALLGATHER", &["auto", "slots", "single_copy", "messages", "exchange"]),
    forced("LIMOSA_COLL_NEIGHBOR_ALLTOALL", &["auto", "slots", "single_copy", "messages", "exchange"]),
    user(
        "LIMOSA_EAGER",
        Form::Number { min: 0, max: 1 << 24, unit: "bytes" },
        "8192",
        "Largest message that is sent before its receiver asks for it; up to \
         four times as much if there are more processes than processors",
    ),
    user(
        "LIMOSA_UNEXPECTED_BYTES",
        Form::Number { min: 0, max: 1 << 40, unit: "bytes" },
        "268435456",
        "How many bytes of unexpected messages a rank stores while it \
         does not wait for a message; beyond that the senders wait",
    ),
    user(
        "LIMOSA_CHECK",
        Form::Switch,
        "0",
        "Compare the datatypes of sender and receiver, and say what is left at MPI_Finalize; slower",
    ),
    user(
        "LIMOSA_ON_HANG",
        Form::Choice(&["report", "abort", "off"]),
        "report",
        "What is done when all ranks wait for each other, by the launcher or by a rank that has none",
    ),
    user(
        "LIMOSA_HANG_AFTER",
        Form::Seconds,
        "1",
        "Time without any progress after which a hang is reported; ten times as long if it is in doubt",
    ),
    user(
        "LIMOSA_HANG_GRACE",
        Form::Seconds,
        "30",
        "Time from the report of a possible hang to the end of the job, with LIMOSA_ON_HANG=abort",
    ),
    user("LIMOSA_PYTHON_FAST_PATH", Form::Switch, "1", "Use the compiled part of `import limosa` where it was built"),
    user(
        "LIMOSA_SSH",
        Form::Text,
        "ssh -o BatchMode=yes -o ConnectTimeout=15 -x -T",
        "Command that runs a command line on another host; both are put behind it",
    ),
    user("LIMOSA_LOGIN_LIMIT", Form::Seconds, "120", "Time that a login on another host may take"),
    user("LIMOSA_TAG_OUTPUT", Form::Switch, "0", "Begin each line of output with its rank"),
    user(
        "LIMOSA_DIALECT",
        Form::Choice(&["auto", "pympi", "mympi", "boost"]),
        "auto",
        "Which of the modules called `mpi` a Python script means; auto: decided by the names that it uses",
    ),
    rank(ENV_RANK, "Rank of this process in its job"),
    rank(ENV_SIZE, "Number of ranks of the job"),
    internal(ENV_ID, "Id of the job"),
    internal(ENV_PID, "Process id of the launcher"),
    internal(ENV_FD, "Descriptor of the job's memory"),
];

/// The collective operations of which an algorithm can be forced, and the variables for it.
const COLLECTIVES: [(&str, &str); 12] = [
    ("barrier", "LIMOSA_COLL_BARRIER"),
    ("bcast", "LIMOSA_COLL_BCAST"),
    ("gather", "LIMOSA_COLL_GATHER"),
    ("scatter", "LIMOSA_COLL_SCATTER"),
    ("allgather", "LIMOSA_COLL_ALLGATHER"),
    ("alltoall", "LIMOSA_COLL_ALLTOALL"),
    ("reduce", "LIMOSA_COLL_REDUCE"),
    ("allreduce", "LIMOSA_COLL_ALLREDUCE"),
    ("reduce_scatter", "LIMOSA_COLL_REDUCE_SCATTER"),
    ("scan", "LIMOSA_COLL_SCAN"),
    ("neighbor_allgather", "LIMOSA_COLL_NEIGHBOR_ALLGATHER"),
    ("neighbor_alltoall", "LIMOSA_COLL_NEIGHBOR_ALLTOALL"),
];

/// The values of all user variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `LIMOSA_WAIT`
    pub wait: WaitMode,
    /// `LIMOSA_SPIN_US`
    pub spin: Duration,
    /// `LIMOSA_DEVICE`
    pub device: DeviceChoice,
    /// `LIMOSA_FABRIC_LIBRARY`
    pub fabric_library: Option<PathBuf>,
    /// `LIMOSA_FABRIC_PROVIDER`
    pub fabric_provider: Option<String>,
    /// `LIMOSA_FABRIC_INTERFACE`
    pub fabric_interface: Option<String>,
    /// `LIMOSA_PMIX_LIBRARY`
    pub pmix_library: Option<PathBuf>,
    /// `LIMOSA_FILE_NOTIFY`
    pub file_notify: FileNotify,
    /// `LIMOSA_FILE_KEEP`
    pub file_keep: bool,
    /// `LIMOSA_HOSTS`
    pub hosts: u32,
    /// `LIMOSA_SSH`
    pub ssh: String,
    /// `LIMOSA_LOGIN_LIMIT`
    pub login_limit: Duration,
    /// `LIMOSA_CMA`
    pub cma: bool,
    /// `LIMOSA_COLL`
    pub coll: CollPath,
    /// `LIMOSA_COLL_TABLE`
    pub coll_table: Option<String>,
    /// Every other `LIMOSA_COLL_...` that is set: the operation in small letters, and the algorithm.
    pub coll_forced: Vec<(&'static str, String)>,
    /// `LIMOSA_EAGER`
    pub eager_bytes: usize,
    /// `LIMOSA_UNEXPECTED_BYTES`
    pub unexpected_bytes: usize,
    /// `LIMOSA_CHECK`
    pub check: bool,
    /// `LIMOSA_ON_HANG`
    pub on_hang: OnHang,
    /// `LIMOSA_HANG_AFTER`
    pub hang_after: Duration,
    /// `LIMOSA_HANG_GRACE`
    pub hang_grace: Duration,
    /// `LIMOSA_PYTHON_FAST_PATH`; read in Python (`limosa._channel`)
    pub python_fast_path: bool,
    /// `LIMOSA_TAG_OUTPUT`
    pub tag_output: bool,
    /// `LIMOSA_DIALECT`; read in Python (`limosa.dialects`)
    pub dialect: Dialect,
    /// Why no job can be started or joined with these variables, if so: a folder for messages was asked for and cannot
    /// be used, and to do without would not be what was meant.
    pub refusal: Option<String>,
}

/// Python's old MPI interfaces that share the name `mpi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The names that the script uses tell.
    Auto,
    /// pyMPI.
    Pympi,
    /// MYMPI, later pydusa.
    Mympi,
    /// The Python bindings of Boost.MPI.
    Boost,
}

/// How a blocked call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Spin for a while, then sleep.
    Auto,
    /// Spin for ever.
    Poll,
    /// Sleep at once.
    Block,
}

/// How processes reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// By shared memory.
    Shm,
    /// By libfabric.
    Fabric,
    /// By messages only.
    Messages,
    /// By files in this folder, which all hosts share.
    Files(PathBuf),
    /// By files in this folder, which each host has for itself.
    LocalFiles(PathBuf),
}

impl DeviceChoice {
    fn of(word: &str) -> DeviceChoice {
        match (word, word.strip_prefix("file:")) {
            ("file:local", _) => DeviceChoice::LocalFiles(temporary_folder()),
            (_, Some(folder)) => match folder.strip_prefix("local:") {
                Some(folder) => DeviceChoice::LocalFiles(folder.into()),
                None => DeviceChoice::Files(folder.into()),
            },
            ("messages", _) => DeviceChoice::Messages,
            ("fabric", _) => DeviceChoice::Fabric,
            _ => DeviceChoice::Shm,
        }
    }

    /// The folder for the files of the messages of job `id`, if there are such files.
    pub fn message_folder(&self, id: u64) -> Option<PathBuf> {
        match self {
            DeviceChoice::Files(folder) | DeviceChoice::LocalFiles(folder) => {
                Some(folder.join(format!("limosa-{id:016x}")))
            }
            _ => None,
        }
    }
}

/// The folder of this host for files that are wanted for a while.
pub fn temporary_folder() -> PathBuf {
    Some(std::env::temp_dir()).filter(|folder| folder.is_absolute()).unwrap_or_else(|| "/tmp".into())
}

/// How processes that exchange files learn of new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileNotify {
    /// It depends on the file system.
    Auto,
    /// The system says so.
    Inotify,
    /// A clock ticks.
    Clock,
}

/// How blocking collectives travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollPath {
    /// Straight in shared memory where all ranks share it.
    Auto,
    /// As messages.
    P2p,
}

/// What the launcher does about a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHang {
    /// Report it and keep waiting.
    Report,
    /// Report it and end the job.
    Abort,
    /// Do not look for hangs.
    Off,
}

/// The configuration of this process, read from its environment at the first call. Says what is wrong with it on
/// stderr, once, unless a launcher has done so already.
pub fn get() -> &'static Config {
    CONFIG.get_or_init(|| {
        let settings = settings();
        let (config, complaints) = parse(settings.iter().cloned());
        let _ = READ.set(settings);
        if std::env::var_os(ENV_ID).is_none() {
            for complaint in complaints {
                eprintln!("limosa: warning: {complaint}");
            }
        }
        config
    })
}

static CONFIG: OnceLock<Config> = OnceLock::new();
/// What a tool has set before the configuration was read; it counts more than the environment.
static BY_TOOL: Mutex<Vec<(OsString, OsString)>> = Mutex::new(Vec::new());

/// The settings that were read, from both.
static READ: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// The variables that are set, those that a tool has set last first: of several settings the first counts.
fn settings() -> Vec<(OsString, OsString)> {
    let by_tool = BY_TOOL.lock().expect("no panic while it is locked");
    by_tool.iter().rev().cloned().chain(std::env::vars_os()).collect()
}

/// The value of a variable, in its plain spelling: the one that was read, or would be read now.
pub fn value(variable: &Variable) -> String {
    let settings = READ.get().cloned().unwrap_or_else(settings);
    let set = settings.into_iter().find(|(name, _)| name == variable.name);
    let text = set.and_then(|(_, value)| value.into_string().ok());
    text.and_then(|text| variable.form.check(text.trim()).ok()).unwrap_or_else(|| variable.default.to_owned())
}

/// Sets a variable for this process, if its value is legal and the configuration has not been read yet; false if it has.
///
/// # Errors
/// What the value should have been, in words.
pub fn set(variable: &Variable, value: &str) -> Result<bool, String> {
    let value = variable.form.check(value)?;
    let mut by_tool = BY_TOOL.lock().expect("no panic while it is locked");
    let in_time = CONFIG.get().is_none();
    if in_time {
        by_tool.push((variable.name.into(), value.into()));
    }
    Ok(in_time)
}

/// Number of ranks of the job that this process was launched for, as the launcher says.
pub fn launched_size() -> Option<u32> {
    std::env::var(ENV_SIZE).ok()?.parse().ok()
}

/// The configuration that these environment variables describe, and one sentence for each thing that is wrong with
/// them.
pub fn parse(vars: impl IntoIterator<Item = (OsString, OsString)>) -> (Config, Vec<String>) {
    let mut values = Values::default();
    for (name, value) in vars {
        let Some(name) = name.to_str().filter(|name| name.starts_with("LIMOSA_")) else { continue };
        values.add(name, value);
    }
    let config = Config {
        wait: match values.word("LIMOSA_WAIT") {
            "poll" => WaitMode::Poll,
            "block" => WaitMode::Block,
            _ => WaitMode::Auto,
        },
        spin: Duration::from_micros(values.number("LIMOSA_SPIN_US")),
        device: DeviceChoice::of(values.word("LIMOSA_DEVICE")),
        fabric_library: values.text("LIMOSA_FABRIC_LIBRARY").map(PathBuf::from),
        fabric_provider: values.text("LIMOSA_FABRIC_PROVIDER"),
        fabric_interface: values.text("LIMOSA_FABRIC_INTERFACE"),
        pmix_library: values.text("LIMOSA_PMIX_LIBRARY").map(PathBuf::from),
        file_notify: match values.word("LIMOSA_FILE_NOTIFY") {
            "inotify" => FileNotify::Inotify,
            "clock" => FileNotify::Clock,
            _ => FileNotify::Auto,
        },
        file_keep: values.switch("LIMOSA_FILE_KEEP"),
        hosts: values.number("LIMOSA_HOSTS") as u32,
        ssh: values.word("LIMOSA_SSH").to_owned(),
        login_limit: values.seconds("LIMOSA_LOGIN_LIMIT"),
        cma: values.switch("LIMOSA_CMA"),
        coll: if values.word("LIMOSA_COLL") == "p2p" { CollPath::P2p } else { CollPath::Auto },
        coll_table: values.text("LIMOSA_COLL_TABLE"),
        coll_forced: COLLECTIVES
            .iter()
            .map(|(operation, name)| (*operation, values.word(name).to_owned()))
            .filter(|(_, algorithm)| algorithm != "auto")
            .collect(),
        eager_bytes: values.number("LIMOSA_EAGER") as usize,
        unexpected_bytes: values.number("LIMOSA_UNEXPECTED_BYTES") as usize,
        check: values.switch("LIMOSA_CHECK"),
        on_hang: match values.word("LIMOSA_ON_HANG") {
            "abort" => OnHang::Abort,
            "off" => OnHang::Off,
            _ => OnHang::Report,
        },
        hang_after: values.seconds("LIMOSA_HANG_AFTER"),
        hang_grace: values.seconds("LIMOSA_HANG_GRACE"),
        python_fast_path: values.switch("LIMOSA_PYTHON_FAST_PATH"),
        tag_output: values.switch("LIMOSA_TAG_OUTPUT"),
        dialect: match values.word("LIMOSA_DIALECT") {
            "pympi" => Dialect::Pympi,
            "mympi" => Dialect::Mympi,
            "boost" => Dialect::Boost,
            _ => Dialect::Auto,
        },
        refusal: values.refusal,
    };
    (config, values.complaints)
}

impl Config {
    /// Deletes the files of the messages of job `id`, if there are any and they are not to be kept. The last one of the
    /// job does that.
    pub fn delete_messages(&self, id: u64) {
        if let Some(folder) = self.device.message_folder(id).filter(|_| !self.file_keep) {
            // A file system of several machines may show late what is in a folder. What cannot be deleted stays.
            for _ in 0..20 {
                match std::fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                        std::thread::sleep(std::time::Duration::from_millis(100));
                    }
                    _ => return,
                }
            }
        }
    }
}

/// The declaration of a variable.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// The declared name most like `name`, if any is at all like it.
pub fn nearest(name: &str) -> Option<&'static str> {
    let candidates = VARIABLES.iter().filter(|v| v.audience == Audience::User);
    let best = candidates.map(|v| (strsim::damerau_levenshtein(name, v.name), v.name)).min()?;
    (best.0 <= 4).then_some(best.1)
}

impl Form {
    /// `value` in its plain spelling, or in words what it should have been.
    pub fn check(&self, value: &str) -> Result<String, String> {
        match *self {
            Form::Choice(words) if words.contains(&value) => Ok(value.to_owned()),
            Form::Choice(words) => Err(format!("one of {}", words.join(", "))),
            Form::ChoiceOrFolder(words, _) if words.contains(&value) => Ok(value.to_owned()),
            Form::ChoiceOrFolder(words, word) => match value.strip_prefix(word).and_then(|rest| rest.strip_prefix(':'))
            {
                Some(folder) if Path::new(folder.strip_prefix("local:").unwrap_or(folder)).is_absolute() => {
                    Ok(value.to_owned())
                }
                _ => Err(format!("one of {}, or {word}: and the absolute path of a folder", words.join(", "))),
            },
            Form::Switch => match value.to_ascii_lowercase().as_str() {
                "1" | "on" | "yes" | "true" => Ok("1".into()),
                "0" | "off" | "no" | "false" => Ok("0".into()),
                _ => Err("1 or 0".into()),
            },
            Form::Number { min, max, unit } => match value.parse::<u64>() {
                Ok(n) if (min..=max).contains(&n) => Ok(n.to_string()),
                _ => Err(format!("an integer number of {unit} from {min} to {max}")),
            },
            Form::Seconds => match value.parse::<f64>() {
                Ok(s) if (0.0..=1e9).contains(&s) => Ok(s.to_string()),
                _ => Err("a number of seconds".into()),
            },
            Form::Path | Form::Text => Ok(value.to_owned()),
        }
    }

    /// What may be set, in a few words.
    pub fn describe(&self) -> String {
        match *self {
            Form::Choice(words) => words.join("|"),
            Form::ChoiceOrFolder(words, word) => format!("{}|{word}:FOLDER|{word}:local:FOLDER", words.join("|")),
            Form::Switch => "1|0".into(),
            Form::Number { unit, .. } => unit.into(),
            Form::Seconds => "seconds".into(),
            Form::Path => "file".into(),
            Form::Text => "text".into(),
        }
    }
}

/// Checked values of variables that are set, and what was wrong with the others.
#[derive(Default)]
struct Values {
    set: Vec<(&'static str, String)>,
    complaints: Vec<String>,
    refusal: Option<String>,
}

/// True if this is `word`, a colon and the name of a folder.
fn is_folder_of(value: &str, word: &str) -> bool {
    value.trim().split_once(':').is_some_and(|(first, _)| first == word)
}

impl Values {
    fn add(&mut self, name: &str, value: OsString) {
        let Some(variable) = find(name) else {
            let hint = nearest(name).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.complaints.push(format!("there is no variable {name}{hint} (`limosa env` lists all)"));
            return;
        };
        let value = value.to_string_lossy();
        match variable.form.check(value.trim()) {
            Ok(plain) => self.set.push((variable.name, plain)),
            Err(_) if matches!(variable.form, Form::ChoiceOrFolder(_, word) if is_folder_of(&value, word)) => {
                let folder = value.trim().split_once(':').map_or("", |(_, folder)| folder);
                let folder = folder.strip_prefix("local:").unwrap_or(folder);
                self.refusal = Some(format!(
                    "{name} is `{value}`, but the folder must be given as an absolute path: it begins with `/`, \
                     `{folder}` does not"
                ));
            }
            Err(wanted) => self
                .complaints
                .push(format!("{name} is `{value}` but must be {wanted}; using the default, {}", variable.default)),
        }
    }

    fn word(&self, name: &'static str) -> &str {
        let set = self.set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str());
        set.or_else(|| find(name).map(|v| v.default)).unwrap_or("")
    }

    /// `None` for no text.
    fn text(&self, name: &'static str) -> Option<String> {
        Some(self.word(name).to_owned()).filter(|text| !text.is_empty())
    }

    fn number(&self, name: &'static str) -> u64 {
        self.word(name).parse().unwrap_or(0)
    }

    fn seconds(&self, name: &'static str) -> Duration {
        Duration::from_secs_f64(self.word(name).parse().unwrap_or(0.0))
    }

    fn switch(&self, name: &'static str) -> bool {
        self.word(name) == "1"
    }
}

const fn user(name: &'static str, form: Form, default: &'static str, text: &'static str) -> Variable {
    Variable { name, form, default, text, audience: Audience::User }
}

const fn forced(name: &'static str, names: &'static [&'static str]) -> Variable {
    user(
        name,
        Form::Choice(names),
        "auto",
        "Algorithm of this collective, where it applies; messages: the best of those that use messages",
    )
}

const fn rank(name: &'static str, text: &'static str) -> Variable {
    Variable { name, form: Form::Text, default: "", text, audience: Audience::Rank }
}

const fn internal(name: &'static str, text: &'static str) -> Variable {
    Variable { name, form: Form::Text, default: "", text, audience: Audience::Internal }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> (Config, Vec<String>) {
        parse(vars.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))))
    }

    #[test]
    fn every_default_is_a_legal_value() {
        for variable in VARIABLES {
            assert!(variable.form.check(variable.default).is_ok(), "{}", variable.name);
        }
    }

    #[test]
    fn every_user_variable_changes_the_configuration() {
        let (default, _) = of(&[]);
        for variable in VARIABLES.iter().filter(|v| v.audience == Audience::User) {
            let other = ["poll", "p2p", "abort", "pympi", "messages", "clock", "0", "1", "2"]
                .into_iter()
                .find(|v| *v != variable.default && variable.form.check(v).is_ok())
                .unwrap();
            let (changed, complaints) = of(&[(variable.name, other)]);
            assert_ne!(changed, default, "{} is declared but not read", variable.name);
            assert!(complaints.is_empty());
        }
    }

    #[test]
    fn a_misspelt_variable_names_the_nearest_one() {
        let (_, complaints) = of(&[("LIMOSA_WIAT", "poll")]);
        assert_eq!(
            complaints,
            ["there is no variable LIMOSA_WIAT; did you mean LIMOSA_WAIT? (`limosa env` lists all)"]
        );
    }

    #[test]
    fn a_variable_like_no_other_gets_no_suggestion() {
        let (_, complaints) = of(&[("LIMOSA_COFFEE_MACHINE", "1")]);
        assert_eq!(complaints, ["there is no variable LIMOSA_COFFEE_MACHINE (`limosa env` lists all)"]);
    }

    #[test]
    fn a_bad_value_is_named_and_the_default_used() {
        let (config, complaints) = of(&[("LIMOSA_EAGER", "-5"), ("LIMOSA_WAIT", "fast")]);
        assert_eq!(config.eager_bytes, 8192);
        assert_eq!(config.wait, WaitMode::Auto);
        assert_eq!(
            complaints[0],
            "LIMOSA_EAGER is `-5` but must be an integer number of bytes from 0 to 16777216; using the default, 8192"
        );
        assert_eq!(
            complaints[1],
            "LIMOSA_WAIT is `fast` but must be one of auto, poll, block; using the default, auto"
        );
    }

    #[test]
    fn a_folder_without_an_absolute_path_is_refused_and_no_other_device_taken() {
        let (config, complaints) = of(&[("LIMOSA_DEVICE", "file:messages")]);
        assert!(complaints.is_empty());
        assert_eq!(
            config.refusal.as_deref(),
            Some(
                "LIMOSA_DEVICE is `file:messages`, but the folder must be given as an absolute path: it begins with \
                 `/`, `messages` does not"
            )
        );
        let (config, _) = of(&[("LIMOSA_DEVICE", "file:/messages")]);
        assert_eq!((config.refusal, config.device), (None, DeviceChoice::Files("/messages".into())));
    }

    #[test]
    fn hosts_may_have_folders_of_their_own() {
        let (config, complaints) = of(&[("LIMOSA_DEVICE", "file:local:/scratch")]);
        assert_eq!((config.refusal, config.device), (None, DeviceChoice::LocalFiles("/scratch".into())));
        assert!(complaints.is_empty());
        let (config, _) = of(&[("LIMOSA_DEVICE", "file:local")]);
        assert_eq!((config.refusal, config.device), (None, DeviceChoice::LocalFiles(temporary_folder())));
        let (config, _) = of(&[("LIMOSA_DEVICE", "file:local:scratch")]);
        assert!(config.refusal.expect("a reason").contains("`scratch` does not"));
    }

    #[test]
    fn variables_of_others_are_none_of_our_business() {
        assert!(of(&[("LIMO", "1"), ("PATH", "x")]).1.is_empty());
    }
}
