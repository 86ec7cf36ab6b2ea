//! Hang detection in a job without a launcher of ours. Either the job has one rank (`python program.py`), or another
//! launcher has started it on one host; then the rank that created the job's memory watches it.
//!
//! A thread polls the status board while a thread of the program waits in the library, and ends some time after the
//! last wait: a job in which this rank does not wait does not hang. It reports to standard error as the launcher would,
//! and with `LIMOSA_ON_HANG=abort` ends the job with the launcher's exit code for hangs.
//!
//! It does not report on a process that has ever waited for a process outside its job: the latter may end the wait.

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
/// Number of polls without a sleeping thread after which the watching thread ends.
const IDLE_LOOKS: u32 = 5;

/// Set while the watching thread runs.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// Set once the process has waited for a process outside its job.
static ACCOMPANIED: AtomicBool = AtomicBool::new(false);

/// Returns whether this process must watch its job.
pub fn is_in_charge(job: &Job) -> bool {
    let is_alone = !job.launched() && job.size() == 1;
    let is_first = || job.site().is_some() && job.board().hosts() == 1 && job.is_own_board();
    job.is_own_process() && (is_alone || is_first())
}

/// Starts the watching thread if necessary. Called in a process in charge when a thread is about to sleep, or polls
/// without success. `accompanied`: the thread waits for a process outside the job, which it has spawned or is connected
/// with.
pub fn about_to_wait(job: &'static Job, accompanied: bool) {
    if accompanied {
        ACCOMPANIED.store(true, Ordering::Relaxed);
    }
    if ACCOMPANIED.load(Ordering::Relaxed) || WATCHED.swap(true, Ordering::SeqCst) {
        return;
    }
    let wanted = config::get().on_hang != OnHang::Off;
    if !wanted || thread::spawn_without_signals("limosa-watch", move || look_after(job)).is_err() {
        // The program also runs without the watching thread; its creation is not tried again.
        ACCOMPANIED.store(true, Ordering::Relaxed);
    }
}

/// Runs the watching thread.
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
            // A thread that has begun to wait meanwhile relies on this thread.
            let waits = job.board().views().iter().any(|view| view.asleep > 0 || !view.records.is_empty());
            if !waits || WATCHED.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let now = monotonic_ns();
        let abort = config.on_hang == OnHang::Abort;
        // Connected jobs may end the wait.
        let neighbours = Neighbours::find(job.id(), &views, |_| None);
        match watch.look(now, &views, neighbours, others_of) {
            Look::Quiet => {}
            Look::Hang(hang) => {
                let ends_in = abort.then_some(config.hang_grace);
                let mut text = explain::report(now, &views, &hang, &Places::default(), ends_in);
                text.push_str("hint: `limosa stack` shows where each thread is\n");
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
    say("limosa: ending the job because of the hang (LIMOSA_ON_HANG=abort)\n");
    job.abort(EXIT_CODE.into(), "")
}

fn say(text: &str) {
    // A closed stderr has no remedy.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Returns the state of a rank's threads that do not wait according to the status board.
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
