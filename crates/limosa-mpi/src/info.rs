//! Info objects: ordered lists of (key, value) pairs of text (MPI-5 chapter 10).
//!
//! Contract
//! - Keys are unique and keep the order in which they were first set; setting a key again replaces its value in place.
//! - Keys and values are bytes without a terminating zero. A key has 1 to `MPI_MAX_INFO_KEY - 1` bytes, a value at most
//!   `MPI_MAX_INFO_VAL - 1`. A longer or empty key is `MPI_ERR_INFO_KEY`, a longer value `MPI_ERR_INFO_VALUE`.
//! - `MPI_INFO_ENV` can be read and duplicated only; a duplicate is an ordinary info object.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::consts::{MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL};
use crate::error::Result;
use crate::fail;

/// Longest key in bytes.
pub const MAX_KEY_BYTES: usize = MPI_MAX_INFO_KEY as usize - 1;
/// Longest value in bytes.
pub const MAX_VALUE_BYTES: usize = MPI_MAX_INFO_VAL as usize - 1;

/// An ordered list of (key, value) pairs.
pub struct Info {
    pairs: Mutex<Vec<Pair>>,
    read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    key: Box<[u8]>,
    value: Box<[u8]>,
}

impl Info {
    /// Makes an info object without pairs.
    pub fn new() -> Arc<Info> {
        Info::with(Vec::new(), false)
    }

    /// Returns the start of this process as `MPI_Info_create_env` describes it (MPI-5 section 11.5.1).
    ///
    /// `argv` is the program's command line; if it is empty, that of the operating system is taken. Unknown values are
    /// left out.
    pub fn environment(argv: &[Vec<u8>]) -> Arc<Info> {
        Info::with(environment_pairs(argv, maxprocs()), false)
    }

    /// Returns the predefined object `MPI_INFO_ENV`, as far as the start of this process is known now: to be made again
    /// after initialisation.
    pub fn predefined_environment() -> Arc<Info> {
        Info::with(environment_pairs(&[], maxprocs()), true)
    }

    fn with(pairs: Vec<Pair>, read_only: bool) -> Arc<Info> {
        Arc::new(Info { pairs: Mutex::new(pairs), read_only })
    }

    /// Makes an independent object with the same pairs.
    pub fn dup(&self) -> Arc<Info> {
        Info::with(self.pairs.lock().clone(), false)
    }

    /// Sets a key, replacing its value if it has one.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_writable()?;
        check_key(key)?;
        if value.len() > MAX_VALUE_BYTES {
            fail!(
                MPI_ERR_INFO_VALUE,
                "the value of key \"{}\" has {} bytes; at most {MAX_VALUE_BYTES} are possible",
                text(key),
                value.len()
            );
        }
        let mut pairs = self.pairs.lock();
        match pairs.iter_mut().find(|pair| *pair.key == *key) {
            Some(pair) => pair.value = value.into(),
            None => pairs.push(Pair { key: key.into(), value: value.into() }),
        }
        Ok(())
    }

    /// Removes a key; `MPI_ERR_INFO_NOKEY` if it is not there.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.check_writable()?;
        check_key(key)?;
        let mut pairs = self.pairs.lock();
        match pairs.iter().position(|pair| *pair.key == *key) {
            Some(at) => {
                pairs.remove(at);
                Ok(())
            }
            None => fail!(MPI_ERR_INFO_NOKEY, "the info object has no key \"{}\"", text(key)),
        }
    }

    /// Returns the value of a key, if it is there.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        check_key(key)?;
        Ok(self.lookup(key))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.pairs.lock().len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the `n`-th key in the order of setting.
    pub fn nth_key(&self, n: i64) -> Result<Vec<u8>> {
        let pairs = self.pairs.lock();
        match usize::try_from(n).ok().and_then(|n| pairs.get(n)) {
            Some(pair) => Ok(pair.key.to_vec()),
            None => fail!(
                MPI_ERR_ARG,
                "key number {n} is asked for, but the info object has {} keys, counted from 0",
                pairs.len()
            ),
        }
    }

    /// Whether this object cannot be changed (`MPI_INFO_ENV`).
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the value of a key known to be legal, such as a hint of this library.
    pub fn lookup(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.pairs.lock().iter().find(|pair| *pair.key == *key).map(|pair| pair.value.to_vec())
    }

    fn check_writable(&self) -> Result<()> {
        if self.read_only {
            fail!(MPI_ERR_INFO, "MPI_INFO_ENV can only be read; change a duplicate of it instead");
        }
        Ok(())
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        fail!(MPI_ERR_INFO_KEY, "the key is empty");
    }
    if key.len() > MAX_KEY_BYTES {
        fail!(MPI_ERR_INFO_KEY, "the key has {} bytes; at most {MAX_KEY_BYTES} are possible", key.len());
    }
    Ok(())
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Number of processes that the launcher was asked for; 0 if not known.
static MAXPROCS: AtomicU32 = AtomicU32::new(0);

/// The same before initialisation too, as far as the launcher has said it.
fn maxprocs() -> u32 {
    match MAXPROCS.load(Ordering::Relaxed) {
        0 => limosa_job::config::launched_size().unwrap_or(0),
        known => known,
    }
}

/// Notes the number of processes that the launcher was asked for, for info objects about the environment made from now
/// on.
pub fn set_maxprocs(processes: u32) {
    MAXPROCS.store(processes, Ordering::Relaxed);
}

fn environment_pairs(argv: &[Vec<u8>], maxprocs: u32) -> Vec<Pair> {
    let argv = if argv.is_empty() { command_line() } else { argv.to_vec() };
    let host = std::fs::read("/proc/sys/kernel/hostname").ok().map(|name| name.trim_ascii_end().to_vec());
    let facts = [
        ("command", argv.first().cloned()),
        ("argv", (argv.len() > 1).then(|| argv[1..].join(&b' '))),
        ("maxprocs", (maxprocs > 0).then(|| maxprocs.to_string().into_bytes())),
        ("host", host),
        ("arch", Some(std::env::consts::ARCH.into())),
        ("wdir", std::env::current_dir().ok().map(|path| path.as_os_str().as_bytes().to_vec())),
    ];
    facts
        .into_iter()
        .filter_map(|(key, value)| {
            let mut value = value.filter(|value| !value.is_empty())?;
            value.truncate(MAX_VALUE_BYTES);
            Some(Pair { key: key.as_bytes().into(), value: value.into() })
        })
        .collect()
}

/// Returns the command line of this process as the operating system has it: a library is not handed `argv`.
fn command_line() -> Vec<Vec<u8>> {
    let from_arguments = || std::env::args_os().map(|arg| OsStr::as_bytes(&arg).to_vec()).collect();
    match std::fs::read("/proc/self/cmdline") {
        Ok(bytes) if !bytes.is_empty() => {
            bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|&b| b == 0).map(<[u8]>::to_vec).collect()
        }
        _ => from_arguments(),
    }
}

#[cfg(test)]
mod tests;
