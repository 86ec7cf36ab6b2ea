//! A job of one rank without a launcher (`python program.py`): nobody else sees it hang.
//!
//! A thread looks at the rank's own place on the board while a thread of the program waits in the library, and ends
//! some time after none does. It reports as the launcher would, on standard error, and with `LIMOSA_ON_HANG=abort` ends
//! the process with the launcher's exit code for hangs.
//!
//! It says nothing of a process that has ever waited for another one: that one may do what is awaited.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use limosa_base::thread;
use limosa_job::config::{self, OnHang};
use limosa_job::{Job, RankView, monotonic_ns};

use crate::explain;
use crate::jobs::Neighbours;
use crate::places::Places;
use crate::threads::{self, Known, Others};
use crate::watch::{Look, PERIOD, Watch};

/// Exit code of a job that was ended because it hangs.
pub const EXIT_CODE: u8 = 86;
/// The thread ends after so many looks that have found nobody asleep.
const IDLE_LOOKS: u32 = 5;

/// The thread is there.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// The process has waited for another one.
static ACCOMPANIED: AtomicBool = AtomicBool::new(false);

/// A thread is about to sleep in this job of one rank, or polls in vain. `accompanied`: it waits for another process,
/// which the rank has started or is connected with.
pub fn about_to_wait(job: &'static Job, accompanied: bool) {
    if accompanied {
        ACCOMPANIED.store(true, Ordering::Relaxed);
    }
    if ACCOMPANIED.load(Ordering::Relaxed) || WATCHED.swap(true, Ordering::SeqCst) {
        return;
    }
    let wanted = config::get().on_hang != OnHang::Off;
    if !wanted || thread::spawn_without_signals("limosa-watch", move || look_after(job)).is_err() {
        // Without the thread the program runs as well; it is not tried again.
        ACCOMPANIED.store(true, Ordering::Relaxed);
    }
}

/// The thread.
fn look_after(job: &Job) {
    let config = config::get();
    let mut watch = Watch::new(config.hang_after, config.hang_grace);
    let mut idle = 0;
    while !ACCOMPANIED.load(Ordering::Relaxed) {
        std::thread::sleep(PERIOD);
        let views = job.board().views();
        let waits = views.iter().any(|view| view.asleep > 0 || !view.records.is_empty());
        idle = if waits { 0 } else { idle + 1 };
        if idle >= IDLE_LOOKS {
            WATCHED.store(false, Ordering::SeqCst);
            // One that has begun to wait meanwhile has relied on this thread.
            let waits = job.board().views().iter().any(|view| view.asleep > 0 || !view.records.is_empty());
            if !waits || WATCHED.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let now = monotonic_ns();
        let abort = config.on_hang == OnHang::Abort;
        match watch.look(now, &views, Neighbours::default(), others_of) {
            Look::Quiet => {}
            Look::Hang(hang) => {
                let ends_in = abort.then_some(config.hang_grace);
                let mut text = explain::report(now, &views, &hang, &Places::default(), ends_in);
                text.push_str("hint: `limosa stack` shows where each thread of this process is\n");
                say(&text);
                if abort && !hang.doubtful {
                    end(job);
                }
            }
            Look::Overdue if abort => end(job),
            Look::Overdue => {}
        }
    }
}

fn end(job: &Job) -> ! {
    say("limosa: ending the process because of the hang (LIMOSA_ON_HANG=abort)\n");
    job.abort(EXIT_CODE.into(), "")
}

fn say(text: &str) {
    // Nothing can be done about a closed stderr.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// What the threads of a rank do of which the board does not say that they wait.
pub fn others_of(view: &RankView) -> Others {
    let waiting: Vec<u32> = view.records.iter().map(|record| record.thread).collect();
    let asleep = view.records.iter().filter(|record| record.polls == 0).count();
    let known = Known {
        waiting: &waiting,
        callers: &view.callers,
        more_callers: view.threads as usize > view.callers.len(),
        unlisted: (view.asleep as usize).saturating_sub(asleep),
    };
    threads::others(view.pid, &known)
}
