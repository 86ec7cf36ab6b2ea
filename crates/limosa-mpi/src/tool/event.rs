//! Events (MPI-5 section 15.3.8): what has just happened, told to functions that a tool has registered.
//!
//! All come from one source, in the order in which they happen on each thread, from threads of the program and with no
//! lock held. A callback may therefore call the library. What a callback's own calls cause is not told.

use super::{error, index, next_handle};
use crate::consts;
use crate::error::Result;
use limosa_base::clock;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A communicator was made: its context, its size.
    CommCreated,
    /// The program has freed a communicator: the same.
    CommFreed,
    /// A call of the program has failed: the error class, 0.
    Error,
}

/// All, by index.
pub const ALL: [Event; 3] = [Event::CommCreated, Event::CommFreed, Event::Error];

/// The elements of every event: `MPI_UNSIGNED_LONG_LONG` at 0, `MPI_INT` at 8.
pub type Elements = (u64, i32);

impl Event {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Event::CommCreated => "limosa_comm_created",
            Event::CommFreed => "limosa_comm_freed",
            Event::Error => "limosa_error",
        }
    }

    /// What it says, in one sentence.
    pub fn text(self) -> &'static str {
        match self {
            Event::CommCreated => "A communicator was made; elements: its number (context), its number of processes",
            Event::CommFreed => "A communicator was freed; elements: its number (context), its number of processes",
            Event::Error => "A call has failed; elements: its error class, 0",
        }
    }
}

/// One that has happened.
pub struct Instance {
    /// Which one.
    pub event: Event,
    /// When, in nanoseconds of the source's clock.
    pub time: u64,
    /// Its elements.
    pub elements: Elements,
}

/// Called with the registration and what has happened.
pub type Callback = Arc<dyn Fn(usize, &Instance) + Send + Sync>;

struct Registration {
    handle: usize,
    event: Event,
    /// By level of safety, as the standard numbers them; the most that an event needs is called.
    callbacks: Vec<(i32, Callback)>,
}

static REGISTRATIONS: Mutex<Vec<Registration>> = Mutex::new(Vec::new());
/// Number of registrations: without any, events cost nothing.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the event with this index.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn at(event_index: i32) -> Result<Event> {
    Ok(ALL[index(event_index, ALL.len())?])
}

/// Registers for an event, without a callback yet.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn register(event_index: i32) -> Result<usize> {
    let event = at(event_index)?;
    let handle = next_handle();
    let mut all = REGISTRATIONS.lock();
    all.push(Registration { handle, event, callbacks: Vec::new() });
    COUNT.store(all.len(), Ordering::Release);
    Ok(handle)
}

fn with<T>(handle: usize, act: impl FnOnce(&mut Registration) -> T) -> Result<T> {
    let mut all = REGISTRATIONS.lock();
    let found = all.iter_mut().find(|registration| registration.handle == handle);
    found.map(act).ok_or_else(|| error(consts::MPI_T_ERR_INVALID_HANDLE))
}

/// Checks a registration.
///
/// # Errors
/// `MPI_T_ERR_INVALID_HANDLE`.
pub fn check(handle: usize) -> Result<()> {
    with(handle, |_| ())
}

/// Sets the callback of a level of safety, or takes it away.
///
/// # Errors
/// `MPI_T_ERR_INVALID_HANDLE`.
pub fn set_callback(handle: usize, safety: i32, callback: Option<Callback>) -> Result<()> {
    with(handle, |registration| {
        registration.callbacks.retain(|(level, _)| *level != safety);
        registration.callbacks.extend(callback.map(|callback| (safety, callback)));
        registration.callbacks.sort_by_key(|(level, _)| *level);
    })
}

/// Ends a registration.
///
/// # Errors
/// `MPI_T_ERR_INVALID_HANDLE`.
pub fn free(handle: usize) -> Result<()> {
    check(handle)?;
    let mut all = REGISTRATIONS.lock();
    all.retain(|registration| registration.handle != handle);
    COUNT.store(all.len(), Ordering::Release);
    Ok(())
}

/// Returns the time of the source, in nanoseconds.
pub fn time() -> u64 {
    clock::now_ns()
}

/// Something has happened. Called by a thread of the program, without a lock.
#[inline]
pub fn happened(event: Event, elements: Elements) {
    if COUNT.load(Ordering::Acquire) > 0 {
        tell(event, elements);
    }
}

#[cold]
fn tell(event: Event, elements: Elements) {
    if TELLING.replace(true) {
        return;
    }
    let instance = Instance { event, time: time(), elements };
    let callbacks: Vec<(usize, Callback)> = REGISTRATIONS
        .lock()
        .iter()
        .filter(|registration| registration.event == event)
        .filter_map(|registration| Some((registration.handle, registration.callbacks.first()?.1.clone())))
        .collect();
    for (handle, callback) in callbacks {
        callback(handle, &instance);
    }
    TELLING.set(false);
}
