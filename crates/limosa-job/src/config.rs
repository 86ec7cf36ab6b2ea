//! The `LIMOSA_*` variables: declared once ([`VARIABLES`]), read once ([`get`]).
//!
//! - A value that cannot be understood counts as not set; that, and a variable that does not exist, is said once (by
//!   the launcher for the ranks it starts, by the library in a job of one).
//! - To add a variable: a line in `VARIABLES`, a field in [`Config`], a line in [`parse`]. A test compares the three.

mod variables;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::log::Filter;
use crate::names::{ENV_COLL_TUNED, ENV_HOST_ADDRESS, ENV_ID, ENV_SIZE};
use variables::COLLECTIVES;
pub use variables::{Audience, Form, VARIABLES, Variable};

/// The values of all user variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `LIMOSA_WAIT`
    pub wait: WaitMode,
    /// `LIMOSA_SPIN_US`
    pub spin: Duration,
    /// `LIMOSA_DEVICE`
    pub device: DeviceChoice,
    /// Processes of one host share memory although `device` reaches them, too.
    pub shares_memory: bool,
    /// `LIMOSA_FABRIC_LIBRARY`
    pub fabric_library: Option<PathBuf>,
    /// `LIMOSA_FABRIC_PROVIDER`
    pub fabric_provider: Option<String>,
    /// `LIMOSA_FABRIC_INTERFACE`
    pub fabric_interface: Option<String>,
    /// `LIMOSA_JOB_ADDRESS`
    pub host_address: Option<IpAddr>,
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
    /// `LIMOSA_HOST_LIMIT`
    pub host_limit: Duration,
    /// `LIMOSA_LOGINS`
    pub logins: usize,
    /// `LIMOSA_CMA`
    pub cma: bool,
    /// `LIMOSA_COLL`
    pub coll: CollPath,
    /// `LIMOSA_COLL_TABLE`
    pub coll_table: Option<String>,
    /// `LIMOSA_TUNING`; read by the launcher
    pub tuning: Option<String>,
    /// `LIMOSA_TUNED_ROWS`, which the launcher has read from that file
    pub coll_tuned: Option<String>,
    /// Every other `LIMOSA_COLL_...` that is set: the operation in small letters, and the algorithm.
    pub coll_forced: Vec<(&'static str, String)>,
    /// `LIMOSA_EAGER`
    pub eager_bytes: usize,
    /// `LIMOSA_UNEXPECTED_BYTES`
    pub unexpected_bytes: usize,
    /// `LIMOSA_CHECK`
    pub check: bool,
    /// `LIMOSA_STRICT`
    pub strict: bool,
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
    /// `LIMOSA_LOG`
    pub log: Filter,
    /// `LIMOSA_LOG_FILE`
    pub log_file: Option<PathBuf>,
    /// Why no job can be started or joined with these variables, if so: a folder for messages was asked for and cannot
    /// be used, and to do without would not be what was meant.
    pub refusal: Option<String>,
}

/// Python's old MPI interfaces that share the name `mpi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The names that the script uses tell; also if a toolbox of Octave was chosen.
    Auto,
    /// pyMPI.
    Pympi,
    /// MYMPI, later pydusa.
    Mympi,
    /// The Python bindings of Boost.MPI.
    Boost,
}

impl Dialect {
    fn of(word: &str) -> Dialect {
        match word {
            "pympi" => Dialect::Pympi,
            "mympi" => Dialect::Mympi,
            "boost" => Dialect::Boost,
            _ => Dialect::Auto,
        }
    }
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
        let word = word.strip_prefix(SHARING).unwrap_or(word);
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

/// Sets a variable for this process, if its value is legal and the configuration has not been read yet; false if it
/// has.
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
        // With a number of hosts to imitate, libfabric is for processes of one host as well.
        shares_memory: values.word("LIMOSA_DEVICE").starts_with(SHARING)
            || values.word("LIMOSA_DEVICE") == "fabric" && !values.is_set("LIMOSA_HOSTS"),
        fabric_library: values.text("LIMOSA_FABRIC_LIBRARY").map(PathBuf::from),
        fabric_provider: values.text("LIMOSA_FABRIC_PROVIDER"),
        fabric_interface: values.text("LIMOSA_FABRIC_INTERFACE"),
        host_address: values.text(ENV_HOST_ADDRESS).and_then(|address| address.parse().ok()),
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
        host_limit: values.seconds("LIMOSA_HOST_LIMIT"),
        logins: values.number("LIMOSA_LOGINS") as usize,
        cma: values.switch("LIMOSA_CMA"),
        coll: if values.word("LIMOSA_COLL") == "p2p" { CollPath::P2p } else { CollPath::Auto },
        coll_table: values.text("LIMOSA_COLL_TABLE"),
        tuning: values.text("LIMOSA_TUNING"),
        coll_tuned: values.text(ENV_COLL_TUNED),
        coll_forced: values.forced_algorithms(),
        eager_bytes: values.number("LIMOSA_EAGER") as usize,
        unexpected_bytes: values.number("LIMOSA_UNEXPECTED_BYTES") as usize,
        check: values.switch("LIMOSA_CHECK"),
        strict: values.switch("LIMOSA_STRICT"),
        on_hang: match values.word("LIMOSA_ON_HANG") {
            "abort" => OnHang::Abort,
            "off" => OnHang::Off,
            _ => OnHang::Report,
        },
        hang_after: values.seconds("LIMOSA_HANG_AFTER"),
        hang_grace: values.seconds("LIMOSA_HANG_GRACE"),
        python_fast_path: values.switch("LIMOSA_PYTHON_FAST_PATH"),
        tag_output: values.switch("LIMOSA_TAG_OUTPUT"),
        dialect: Dialect::of(values.word("LIMOSA_DIALECT")),
        log: values.word("LIMOSA_LOG").parse().unwrap_or_else(|_| Filter::default()),
        log_file: values.text("LIMOSA_LOG_FILE").map(PathBuf::from),
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

/// Variables that the compiler wrapper `mpicc` reads itself: a user sets them beside those of the library.
const OF_WRAPPERS: [&str; 3] = ["LIMOSA_CC", "LIMOSA_CXX", "LIMOSA_FC"];

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
            Form::Device => check_device(value),
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
            Form::Filter => value.parse::<Filter>().map(|_| value.to_owned()),
            Form::Path | Form::Text => Ok(value.to_owned()),
        }
    }

    /// What may be set, in a few words.
    pub fn describe(&self) -> String {
        match *self {
            Form::Choice(words) => words.join("|"),
            Form::Device => "shm|messages|[shm,]fabric|[shm,]file:FOLDER|[shm,]file:local[:FOLDER]".into(),
            Form::Switch => "1|0".into(),
            Form::Number { unit, .. } => unit.into(),
            Form::Seconds => "seconds".into(),
            Form::Filter => "[PART=]LEVEL,...".into(),
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

/// What precedes the device between hosts if processes of one host share memory.
const SHARING: &str = "shm,";

/// A device as it was given, or in words what it should have been.
fn check_device(value: &str) -> Result<String, String> {
    let between = value.strip_prefix(SHARING).unwrap_or(value);
    let has_folder = folder_of(between).is_some_and(|folder| Path::new(folder).is_absolute());
    if has_folder || ["fabric", "file:local"].contains(&between) || ["shm", "messages"].contains(&value) {
        return Ok(value.to_owned());
    }
    let words = "one of shm, messages, fabric, file:local, or file: and the absolute path of a folder; the last three \
                 also with `shm,` before";
    Err(words.into())
}

/// The folder that a device's name has.
fn folder_of(device: &str) -> Option<&str> {
    let folder = device.strip_prefix(SHARING).unwrap_or(device).strip_prefix("file:")?;
    Some(folder.strip_prefix("local:").unwrap_or(folder))
}

impl Values {
    fn add(&mut self, name: &str, value: OsString) {
        let Some(variable) = find(name) else {
            if OF_WRAPPERS.contains(&name) {
                return;
            }
            let hint = nearest(name).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.complaints.push(format!("there is no variable {name}{hint} (`limosa env` lists all)"));
            return;
        };
        let value = value.to_string_lossy();
        match variable.form.check(value.trim()) {
            Ok(plain) => self.set.push((variable.name, plain)),
            Err(wanted) => match folder_of(value.trim()).filter(|_| variable.form == Form::Device) {
                Some(folder) => {
                    self.refusal = Some(format!(
                        "{name} is `{value}`, but the folder must be given as an absolute path: it begins with `/`, \
                         `{folder}` does not"
                    ));
                }
                None if variable.form == Form::Filter => {
                    self.complaints.push(format!("{name} is `{value}` and counts as not set: {wanted}"));
                }
                None => self
                    .complaints
                    .push(format!("{name} is `{value}` but must be {wanted}; using the default, {}", variable.default)),
            },
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.set.iter().any(|(known, _)| *known == name)
    }

    fn word(&self, name: &'static str) -> &str {
        let set = self.set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str());
        set.or_else(|| find(name).map(|v| v.default)).unwrap_or("")
    }

    /// The collectives of which an algorithm is forced.
    fn forced_algorithms(&self) -> Vec<(&'static str, String)> {
        let all = COLLECTIVES.iter().map(|(operation, name)| (*operation, self.word(name).to_owned()));
        all.filter(|(_, algorithm)| algorithm != "auto").collect()
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
        // The profiler and what replaces collectives are libraries of their own, which read their variables themselves.
        let of_others = |v: &Variable| v.name.starts_with("LIMOSA_PROFILE") || v.name == "LIMOSA_TUNED";
        let is_read_here = |v: &&Variable| v.audience == Audience::User && !of_others(v);
        for variable in VARIABLES.iter().filter(is_read_here) {
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
    fn variables_of_the_compiler_wrapper_cause_no_warning() {
        let (_, complaints) = of(&OF_WRAPPERS.map(|name| (name, "clang")));
        assert_eq!(complaints, Vec::<String>::new());
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
    fn a_wrong_filter_of_events_is_told_by_the_word_that_is_wrong() {
        let (config, complaints) = of(&[("LIMOSA_LOG", "coll=info,p2p=loud")]);
        assert_eq!(config.log, Filter::default());
        assert_eq!(
            complaints,
            ["LIMOSA_LOG is `coll=info,p2p=loud` and counts as not set: `loud` in `p2p=loud` is no level: the levels \
              are off, error, warn, info, debug, trace"]
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
        assert_eq!(config.eager_bytes, 65536);
        assert_eq!(config.wait, WaitMode::Auto);
        assert_eq!(
            complaints[0],
            "LIMOSA_EAGER is `-5` but must be an integer number of bytes from 0 to 16777216; using the default, 65536"
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
    fn a_device_between_hosts_may_go_with_shared_memory_inside() {
        for (word, device) in [
            ("fabric", DeviceChoice::Fabric),
            ("file:/scratch", DeviceChoice::Files("/scratch".into())),
            ("file:local", DeviceChoice::LocalFiles(temporary_folder())),
        ] {
            let (alone, _) = of(&[("LIMOSA_DEVICE", word)]);
            let (both, complaints) = of(&[("LIMOSA_DEVICE", &format!("shm,{word}"))]);
            assert_eq!((&alone.device, alone.shares_memory), (&device, word == "fabric"));
            let (apart, _) = of(&[("LIMOSA_DEVICE", word), ("LIMOSA_HOSTS", "4096")]);
            assert_eq!((&apart.device, apart.shares_memory), (&device, false));
            assert_eq!((&both.device, both.shares_memory), (&device, true));
            assert!(complaints.is_empty() && both.refusal.is_none());
        }
        assert_eq!(of(&[("LIMOSA_DEVICE", "shm,messages")]).1.len(), 1);
        assert!(
            of(&[("LIMOSA_DEVICE", "shm,file:scratch")]).0.refusal.expect("a reason").contains("`scratch` does not")
        );
    }

    #[test]
    fn variables_of_others_are_none_of_our_business() {
        assert!(of(&[("LIMO", "1"), ("PATH", "x")]).1.is_empty());
    }
}
