//! A job without a launcher of ours: nobody else sees it hang. It has one rank (`python program.py`), or another
//! launcher has started it on one host; there the rank that has made the job's memory looks after it.
//!
//! A thread looks at the status board while a thread of the program waits in the library, and ends some time after none
//! does: a job in which this rank does not wait does not hang. It reports as the launcher would, on standard error, and
//! with `LIMOSA_ON_HANG=abort` ends the job with the launcher's exit code for hangs.
//!
//! It says nothing of a process that has ever waited for one outside its job: that one may do what is awaited.

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
/// The process has waited for one outside its job.
static ACCOMPANIED: AtomicBool = AtomicBool::new(false);

/// Whether this process has to look after its job.
pub fn is_in_charge(job: &Job) -> bool {
    let is_alone = !job.launched() && job.size() == 1;
    let is_first = || job.site().is_some() && job.board().hosts() == 1 && job.is_own_board();
    job.is_own_process() && (is_alone || is_first())
}

/// A thread of a process in charge is about to sleep, or polls in vain. `accompanied`: it waits for a process outside
/// the job, which it has started or is connected with.
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
        // Jobs that it is connected with may do what is awaited.
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
