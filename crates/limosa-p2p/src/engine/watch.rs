//! Threads that wait for events without a ring, and then ring the process's doorbell, so that one sleep covers
//! everything: descriptors of devices ([`Watch`]), and deaths of processes of this host ([`DeathWatcher`]).

use super::Engine;
use limosa_base::readiness::{Ready, StopSignal, wait_readable};
use limosa_base::thread;
use limosa_device::DeathWatch;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A watched descriptor.
pub(super) struct Watch {
    descriptor: OwnedFd,
    ready: Arc<Ready>,
    watcher: Mutex<Option<Watcher>>,
}

struct Watcher {
    stop: Arc<StopSignal>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Stops the thread. It cannot be reached while it sleeps if the program has closed the pipe and reused its number,
    /// or a child holds it open. It is then abandoned, and ends when it wakes or with the process.
    fn end(self) {
        let told = self.stop.give();
        for _ in 0..JOIN_TIMEOUT_MS {
            if told || self.thread.is_finished() {
                let _ = self.thread.join();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Time in milliseconds to join a thread that may not have received the signal.
const JOIN_TIMEOUT_MS: u32 = 100;

impl Watch {
    pub fn new(descriptor: OwnedFd, ready: Arc<Ready>) -> Watch {
        Watch { descriptor, ready, watcher: Mutex::new(None) }
    }

    /// Starts the thread.
    pub fn start(&self, engine: &Arc<Engine>) -> io::Result<()> {
        let stop = Arc::new(StopSignal::new()?);
        let (descriptor, ready) = (self.descriptor.try_clone()?, self.ready.clone());
        let (signal, engine) = (stop.clone(), engine.clone());
        ready.restart();
        let watch = move |engine: &Engine| {
            while wait_readable(descriptor.as_fd(), &signal) {
                ready.set();
                engine.doorbell.ring(true);
                if !ready.wait_taken() {
                    return;
                }
            }
        };
        let thread = thread::spawn_without_signals("limosa-watch", move || engine.serve("watch", watch))?;
        *self.watcher.lock() = Some(Watcher { stop, thread });
        Ok(())
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.ready.stop();
        if let Some(watcher) = self.watcher.lock().take() {
            watcher.end();
        }
    }
}

/// A thread that waits for the deaths of processes of this host.
pub(super) struct DeathWatcher {
    watch: Arc<DeathWatch>,
    watcher: Mutex<Option<Watcher>>,
}

impl DeathWatcher {
    pub fn new(watch: Arc<DeathWatch>) -> DeathWatcher {
        DeathWatcher { watch, watcher: Mutex::new(None) }
    }

    /// Makes an end of this process without [`DeathWatcher::stop`] count as a death.
    pub fn stay(&self) {
        self.watch.stay();
    }

    /// Starts the thread, unless it runs.
    pub fn start(&self, engine: &Arc<Engine>) -> io::Result<()> {
        let mut watcher = self.watcher.lock();
        if watcher.is_some() {
            return Ok(());
        }
        let stop = Arc::new(StopSignal::new()?);
        let (watch, signal, engine) = (self.watch.clone(), stop.clone(), engine.clone());
        let body = move |engine: &Engine| {
            while watch.wait(&signal) {
                engine.core.lock().devices.notice_deaths();
                engine.doorbell.ring(true);
            }
        };
        let thread = thread::spawn_without_signals("limosa-deaths", move || engine.serve("death watch", body))?;
        *watcher = Some(Watcher { stop, thread });
        Ok(())
    }

    /// Restarts the thread with the current set of processes.
    pub fn restart(&self, engine: &Arc<Engine>) -> io::Result<()> {
        if let Some(watcher) = self.watcher.lock().take() {
            watcher.end();
        }
        self.start(engine)
    }

    /// Stops the thread, if it runs: the process has finished in good order.
    pub fn stop(&self) {
        self.watch.leave();
        if let Some(watcher) = self.watcher.lock().take() {
            watcher.end();
        }
    }
}
