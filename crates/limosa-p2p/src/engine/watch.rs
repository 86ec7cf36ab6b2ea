//! Threads that wait for events without a ring, and then ring the process's doorbell, so that one sleep covers
//! everything: descriptors of devices ([`Watch`]), and deaths of processes of this host ([`DeathWatcher`]).

use super::Engine;
use limosa_base::readiness::{Ready, StopSignal, wait_readable};
use limosa_base::{clock, cpu, thread};
use limosa_device::DeathWatch;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
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
                engine.watcher_ring.note();
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

/// The last ring by a watcher of this process.
#[derive(Default)]
pub(super) struct WatcherRing {
    /// Time in nanoseconds; 0: taken.
    at_ns: AtomicU64,
    /// Number of the watcher's processor, plus one; 0: unknown.
    processor: AtomicU32,
}

/// A ring by a watcher, as the woken thread finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rung {
    age_ns: u64,
    processor: Option<u32>,
}

impl WatcherRing {
    /// Notes a ring by the calling watcher, which follows.
    fn note(&self) {
        self.processor.store(cpu::current().map_or(0, |processor| processor + 1), Ordering::Relaxed);
        self.at_ns.store(clock::now_ns(), Ordering::Release);
    }

    /// Takes the ring, if there was one.
    pub fn take(&self) -> Option<Rung> {
        let at = self.at_ns.swap(0, Ordering::Acquire);
        let age_ns = (at > 0).then(|| clock::now_ns().saturating_sub(at))?;
        Some(Rung { age_ns, processor: self.processor.load(Ordering::Relaxed).checked_sub(1) })
    }
}

impl Rung {
    /// Returns the processor to which the woken thread moves, which runs on processor `here`.
    ///
    /// The watcher is no busy partner: it sleeps at once, and its processor had room. So a thread that has woken beside
    /// it stays. A thread that got its own processor more than `late_ns` after the ring shares that one with a thread
    /// that polls, perhaps its partner, and follows the watcher.
    pub fn to_follow(self, here: Option<u32>, late_ns: u64) -> Option<u32> {
        self.processor.filter(|_| self.age_ns > late_ns && self.processor != here)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_beside_its_watcher_and_follows_it_from_a_processor_that_it_got_late() {
        let rung = |age_ns| Rung { age_ns, processor: Some(1) };
        assert_eq!(rung(90_000).to_follow(Some(1), 50_000), None, "beside the watcher");
        assert_eq!(rung(10_000).to_follow(Some(0), 50_000), None, "its processor was free");
        assert_eq!(rung(90_000).to_follow(Some(0), 50_000), Some(1));
        assert_eq!(Rung { age_ns: 90_000, processor: None }.to_follow(Some(0), 50_000), None);
    }

    #[test]
    fn a_ring_is_taken_once() {
        let ring = WatcherRing::default();
        assert!(ring.take().is_none());
        ring.note();
        assert!(ring.take().is_some());
        assert!(ring.take().is_none());
    }
}
