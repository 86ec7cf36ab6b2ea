//! Descriptors of devices that do not ring the process's doorbell themselves: a thread for each waits until it is readable and rings, so that one
//! sleep covers all devices.

use super::Engine;
use limosa_base::readiness::{Ready, StopSignal, wait_readable};
use limosa_base::thread;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A descriptor that is watched.
pub(super) struct Watch {
    descriptor: OwnedFd,
    ready: Arc<Ready>,
    watcher: Mutex<Option<Watcher>>,
}

struct Watcher {
    stop: Arc<StopSignal>,
    thread: JoinHandle<()>,
}

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
        let Some(Watcher { stop, thread }) = self.watcher.lock().take() else { return };
        stop.give();
        self.ready.stop();
        let _ = thread.join();
    }
}
