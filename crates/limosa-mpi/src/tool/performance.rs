//! Performance variables (MPI-5 section 15.3.7): numbers of the engine of the job that this process was launched for.
//!
//! A counter counts for a handle from the handle's start to its stop, which leaves the engine's own counting alone: the
//! handle keeps what the engine's count was when it was started. Levels say what is the case now; they always run.
//! Before `MPI_Init` everything is 0. Layers above the engine add variables of their own ([`offer`]).

use super::{error, index, next_handle};
use crate::consts::{self, ErrorClass};
use crate::error::Result;
use limosa_p2p::{Engine, Holdings, Traffic};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

/// What a variable says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// How often something has happened (`MPI_T_PVAR_CLASS_COUNTER`).
    Counter,
    /// The sum of something over all that has happened (`MPI_T_PVAR_CLASS_AGGREGATE`).
    Aggregate,
    /// How much there is of something now (`MPI_T_PVAR_CLASS_LEVEL`).
    Level,
}

impl Class {
    /// Returns the standard's number.
    pub fn number(self) -> i32 {
        match self {
            Class::Counter => consts::MPI_T_PVAR_CLASS_COUNTER,
            Class::Aggregate => consts::MPI_T_PVAR_CLASS_AGGREGATE,
            Class::Level => consts::MPI_T_PVAR_CLASS_LEVEL,
        }
    }

    /// Whether it runs by itself, and can be neither started nor stopped, reset nor written.
    pub fn is_continuous(self) -> bool {
        self == Class::Level
    }
}

/// A variable.
pub struct Variable {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it says, in one sentence.
    pub text: Cow<'static, str>,
    /// Its class.
    pub class: Class,
    origin: Origin,
}

/// Where its value comes from.
enum Origin {
    Engine(fn(&Reading) -> u64),
    Other(&'static dyn Source, usize),
}

/// Something else than the engine that has values of variables.
pub trait Source: Sync {
    /// A tool is going to read it. Nothing has to be counted before.
    fn begin(&self);

    /// Returns the value with this number.
    fn read(&self, which: usize) -> u64;
}

/// What the engine says.
struct Reading {
    traffic: Traffic,
    holdings: Holdings,
    rings: u64,
}

const fn variable(name: &'static str, class: Class, text: &'static str, read: fn(&Reading) -> u64) -> Variable {
    Variable { name: Cow::Borrowed(name), text: Cow::Borrowed(text), class, origin: Origin::Engine(read) }
}

/// Those of the engine, in the order of their indices.
static OF_ENGINE: [Variable; 12] = [
    variable(
        "limosa_messages_sent",
        Class::Counter,
        "Messages that this process has started to send, those of collectives that go by messages among them",
        |now| now.traffic.sent,
    ),
    variable("limosa_bytes_sent", Class::Aggregate, "Bytes of the messages sent", |now| now.traffic.sent_bytes),
    variable("limosa_messages_received", Class::Counter, "Messages that this process has received", |now| {
        now.traffic.received
    }),
    variable("limosa_bytes_received", Class::Aggregate, "Bytes of the messages received", |now| {
        now.traffic.received_bytes
    }),
    variable(
        "limosa_messages_copied",
        Class::Counter,
        "Messages that this process has copied directly from or to the memory of another process",
        |now| now.traffic.copied,
    ),
    variable("limosa_unexpected_messages", Class::Level, "Messages that have arrived and wait for a receive", |now| {
        now.holdings.unexpected as u64
    }),
    variable(
        "limosa_unexpected_bytes",
        Class::Level,
        "Memory that messages take that wait for a receive, in bytes",
        |now| now.holdings.unexpected_bytes as u64,
    ),
    variable("limosa_posted_receives", Class::Level, "Receives that wait for a message", |now| {
        now.holdings.posted as u64
    }),
    variable(
        "limosa_requests",
        Class::Level,
        "Sends and receives that are under way, or whose ends were not taken",
        |now| now.holdings.requests as u64,
    ),
    variable("limosa_sleeps", Class::Counter, "How often a blocked call went to sleep", |now| now.traffic.sleeps),
    variable("limosa_wakeups", Class::Counter, "How often other processes had to wake this one", |now| now.rings),
    variable(
        "limosa_helper_wakeups",
        Class::Counter,
        "How often the helper thread was woken to serve others while the program computed",
        |now| now.traffic.helped,
    ),
];

/// Those behind them.
static OFFERED: OnceLock<Vec<Variable>> = OnceLock::new();

/// Adds variables, if none were added yet. Before a tool asks for any: indices do not change.
pub fn offer(variables: impl FnOnce() -> Vec<Variable>) {
    OFFERED.get_or_init(variables);
}

/// All, by index.
pub fn all() -> impl Iterator<Item = &'static Variable> {
    OF_ENGINE.iter().chain(OFFERED.get().into_iter().flatten())
}

static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();

/// From now on variables say what this engine does: that of the job.
pub(crate) fn read_from(engine: &Arc<Engine>) {
    ENGINE.get_or_init(|| engine.clone());
}

impl Variable {
    /// One whose value is that of a source with this number.
    pub fn new(name: String, class: Class, text: String, source: &'static dyn Source, which: usize) -> Variable {
        Variable { name: name.into(), text: text.into(), class, origin: Origin::Other(source, which) }
    }

    /// What its source says now.
    fn now(&self) -> u64 {
        let read = match self.origin {
            Origin::Engine(read) => read,
            Origin::Other(source, which) => return source.read(which),
        };
        let reading = ENGINE.get().map(|engine| Reading {
            traffic: engine.traffic(),
            holdings: engine.holdings(),
            rings: engine.rings().into(),
        });
        reading.map_or(0, |reading| read(&reading))
    }
}

/// The handle of a variable.
struct Handle {
    session: usize,
    variable: &'static Variable,
    /// What was counted until it was stopped.
    counted: u64,
    /// What the engine said when it was started.
    since: Option<u64>,
}

impl Handle {
    fn value(&self, now: u64) -> u64 {
        match self.since {
            _ if self.variable.class.is_continuous() => now,
            None => self.counted,
            Some(since) => self.counted.wrapping_add(now.wrapping_sub(since)),
        }
    }

    fn set(&mut self, value: u64, now: u64) {
        self.counted = value;
        self.since = self.since.map(|_| now);
    }
}

#[derive(Default)]
struct Sessions {
    open: Vec<usize>,
    handles: FxHashMap<usize, Handle>,
}

static SESSIONS: LazyLock<Mutex<Sessions>> = LazyLock::new(Mutex::default);

impl Sessions {
    fn check(&self, session: usize) -> Result<()> {
        if self.open.contains(&session) { Ok(()) } else { Err(error(consts::MPI_T_ERR_INVALID_SESSION)) }
    }

    fn handle(&mut self, session: usize, handle: usize) -> Result<&mut Handle> {
        self.check(session)?;
        let found = self.handles.get_mut(&handle).filter(|found| found.session == session);
        found.ok_or_else(|| error(consts::MPI_T_ERR_INVALID_HANDLE))
    }
}

/// Returns the variable with this index.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn at(pvar_index: i32) -> Result<&'static Variable> {
    let place = index(pvar_index, all().count())?;
    all().nth(place).ok_or_else(|| error(consts::MPI_T_ERR_INVALID_INDEX))
}

/// Makes a session.
pub fn create_session() -> usize {
    let session = next_handle();
    SESSIONS.lock().open.push(session);
    session
}

/// Frees a session with its handles.
///
/// # Errors
/// `MPI_T_ERR_INVALID_SESSION`.
pub fn free_session(session: usize) -> Result<()> {
    let mut sessions = SESSIONS.lock();
    sessions.check(session)?;
    sessions.open.retain(|open| *open != session);
    sessions.handles.retain(|_, handle| handle.session != session);
    Ok(())
}

/// Makes a handle, which is not started.
///
/// # Errors
/// `MPI_T_ERR_INVALID_SESSION`, `MPI_T_ERR_INVALID_INDEX`.
pub fn allocate(session: usize, pvar_index: i32) -> Result<usize> {
    let variable = at(pvar_index)?;
    let mut sessions = SESSIONS.lock();
    sessions.check(session)?;
    if let Origin::Other(source, _) = variable.origin {
        source.begin();
    }
    let handle = next_handle();
    sessions.handles.insert(handle, Handle { session, variable, counted: 0, since: None });
    Ok(handle)
}

/// Frees a handle.
///
/// # Errors
/// `MPI_T_ERR_INVALID_SESSION`, `MPI_T_ERR_INVALID_HANDLE`.
pub fn free(session: usize, handle: usize) -> Result<()> {
    let mut sessions = SESSIONS.lock();
    sessions.handle(session, handle)?;
    sessions.handles.remove(&handle);
    Ok(())
}

/// Does something with a handle, or with all of a session (`None`) that it makes sense for.
fn each(session: usize, handle: Option<usize>, refused: ErrorClass, act: impl Fn(&mut Handle, u64)) -> Result<()> {
    let mut sessions = SESSIONS.lock();
    sessions.check(session)?;
    match handle {
        Some(handle) => {
            let found = sessions.handle(session, handle)?;
            if found.variable.class.is_continuous() {
                return Err(error(refused));
            }
            let now = found.variable.now();
            act(found, now);
        }
        None => {
            let all = sessions.handles.values_mut().filter(|handle| handle.session == session);
            for handle in all.filter(|handle| !handle.variable.class.is_continuous()) {
                let now = handle.variable.now();
                act(handle, now);
            }
        }
    }
    Ok(())
}

/// Starts a handle, or all of a session.
///
/// # Errors
/// `MPI_T_ERR_INVALID_SESSION`, `MPI_T_ERR_INVALID_HANDLE`, `MPI_T_ERR_PVAR_NO_STARTSTOP`.
pub fn start(session: usize, handle: Option<usize>) -> Result<()> {
    each(session, handle, consts::MPI_T_ERR_PVAR_NO_STARTSTOP, |handle, now| {
        handle.since.get_or_insert(now);
    })
}

/// Stops a handle, or all of a session.
///
/// # Errors
/// As for [`start`].
pub fn stop(session: usize, handle: Option<usize>) -> Result<()> {
    each(session, handle, consts::MPI_T_ERR_PVAR_NO_STARTSTOP, |handle, now| {
        handle.counted = handle.value(now);
        handle.since = None;
    })
}

/// Sets a handle, or all of a session, to 0.
///
/// # Errors
/// `MPI_T_ERR_INVALID_SESSION`, `MPI_T_ERR_INVALID_HANDLE`, `MPI_T_ERR_PVAR_NO_WRITE`.
pub fn reset(session: usize, handle: Option<usize>) -> Result<()> {
    each(session, handle, consts::MPI_T_ERR_PVAR_NO_WRITE, |handle, now| handle.set(0, now))
}

/// Sets a handle to a value.
///
/// # Errors
/// As for [`reset`].
pub fn write(session: usize, handle: usize, value: u64) -> Result<()> {
    each(session, Some(handle), consts::MPI_T_ERR_PVAR_NO_WRITE, |handle, now| handle.set(value, now))
}

/// Returns the value of a handle; `and_reset` sets it to 0 in the same step.
///
/// # Errors
/// As for [`reset`].
pub fn read(session: usize, handle: usize, and_reset: bool) -> Result<u64> {
    let mut sessions = SESSIONS.lock();
    let found = sessions.handle(session, handle)?;
    if and_reset && found.variable.class.is_continuous() {
        return Err(error(consts::MPI_T_ERR_PVAR_NO_WRITE));
    }
    let now = found.variable.now();
    let value = found.value(now);
    if and_reset {
        found.set(0, now);
    }
    Ok(value)
}
