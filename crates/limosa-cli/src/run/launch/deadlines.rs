//! What the launcher does when a job does not end, or does not go on: after a signal, after `--timeout`, when a rank
//! has left that never joined, and when no rank joins.

use std::time::{Duration, Instant};

use limosa_job::config::OnHang;
use limosa_job::{RankView, monotonic_ns};

use super::{Job, Then, is_stdin_terminal};
use crate::hang::watch::Hang;
use crate::run::outcome::Cause;
use crate::run::output::is_terminal;
use crate::run::patience::{Patience, Verdict};
use crate::{message, sys};

/// How long all ranks must have waited for a signal to be followed by a report of what they wait for.
const HANG_AT_SIGNAL: Duration = Duration::from_millis(500);
/// How long a signal is held back for the source lines of that report, which take some tenths of a second unless the
/// machine is busy. A second signal is not.
const STACKS_AT_SIGNAL: Duration = Duration::from_secs(2);

impl Job<'_> {
    /// When the main loop must wake up at the latest.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let look = self.is_watching().then_some(self.next_look);
        let kill = self.ending.as_ref().and_then(|(_, kill)| *kill);
        let soon = self.soon.as_ref().filter(|_| self.ending.is_none() && self.running() > 0).map(|(_, at)| *at);
        let hang = self.hang.as_ref().map(|hang| hang.deadline);
        let patience = self.patience.as_ref().filter(|_| self.ending.is_none()).map(Patience::next_look);
        let timeout = self.timeout_at.filter(|_| self.ending.is_none());
        let absent = self.absent.as_ref().filter(|_| self.ending.is_none()).map(|(_, patience)| patience.next_look());
        let strangers = self.may_be_strangers().then(|| self.strangers.next_look());
        let hosts = self.next_word_to_hosts();
        let debugging = self.debugging.next_deadline();
        [
            hosts,
            debugging,
            absent,
            strangers,
            look,
            kill,
            soon,
            patience,
            timeout,
            hang,
            self.drained_at,
            self.lines_due,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Says what ranks wait for if all have done so for a while, and goes on then. If it were the other way round, they
    /// might not be there to be asked.
    pub(super) fn report_and_then(&mut self, then: Then) {
        let views = self.board.views();
        let neighbours = self.neighbours(&views);
        let is_told = self.hang.is_none() && self.watch.still_hangs(&views, &neighbours);
        if self.settings.on_hang == OnHang::Off || is_told || self.ending.is_some() || !self.all_wait(&views) {
            self.hang = None;
            return self.go_on(then);
        }
        match &mut self.hang {
            // The lines are being looked up already.
            Some(hang) => (hang.then, hang.deadline) = (then, hang.deadline.min(Instant::now() + STACKS_AT_SIGNAL)),
            None => self.find_places(Hang::default(), &views, STACKS_AT_SIGNAL, then),
        }
    }

    /// Whether all ranks that have not ended have waited for a while.
    pub(super) fn all_wait(&self, views: &[RankView]) -> bool {
        let now = monotonic_ns();
        let long_ago = |since| now.saturating_sub(since) >= HANG_AT_SIGNAL.as_nanos() as u64;
        let wait = |view: &RankView| view.is_blocked() && view.records.iter().all(|record| long_ago(record.since_ns));
        let is_left = |view: &&RankView| self.ranks.get(view.rank as usize).is_some_and(|rank| rank.ended.is_none());
        let mut left = views.iter().filter(is_left).peekable();
        left.peek().is_some() && left.all(wait)
    }

    pub(super) fn go_on(&mut self, then: Then) {
        match then {
            Then::GoOn => {}
            Then::TimeIsOver(after) => self.end(Cause::TimedOut { after }),
            Then::PassOn(signal) if self.unready.is_some() => self.end(Cause::Interrupted { signal }),
            Then::PassOn(signal) => {
                // A single rank on a terminal may be an interpreter: see `Patience`.
                let is_interactive = signal == libc::SIGINT && self.ranks.len() == 1 && is_stdin_terminal();
                self.patience = Some(Patience::new(Instant::now(), !is_interactive));
                self.signal_all(signal);
                if is_terminal(true) {
                    let name = sys::signal_name(signal);
                    self.say(&format!("limosa: passed on {name}; once more ends all ranks at once\n"));
                }
            }
        }
    }

    pub(super) fn end_at_timeout(&mut self, now: Instant) {
        let (Some(timeout), Some(at)) = (self.settings.timeout, self.timeout_at) else { return };
        if now >= at && self.ending.is_none() && self.running() > 0 {
            self.timeout_at = None;
            self.report_and_then(Then::TimeIsOver(timeout));
        }
    }

    /// Ends the job if ranks have not ended in time after a signal.
    pub(super) fn lose_patience(&mut self, now: Instant) {
        let due = self.patience.as_ref().is_some_and(|patience| now >= patience.next_look());
        if self.ending.is_some() || !due {
            return;
        }
        let left = self.left();
        let (Some(patience), Some(signal)) = (&mut self.patience, self.interrupted) else { return };
        let why = match patience.look(now, &left) {
            Verdict::Wait => return,
            Verdict::Waiting(ranks) => {
                let verb = if ranks.len() == 1 { "waits" } else { "wait" };
                format!("{} still {verb} in MPI", message::ranks(&ranks))
            }
            Verdict::TimeIsOver => {
                let ranks: Vec<u32> = left.iter().map(|view| view.rank).collect();
                let verb = if ranks.len() == 1 { "runs" } else { "run" };
                format!("{} still {verb} 10 seconds later", message::ranks(&ranks))
            }
        };
        self.say(&format!("limosa: passed on {}, but {why}: ending the job\n", sys::signal_name(signal)));
        self.end(Cause::Interrupted { signal });
    }

    /// The ranks that have not ended, as they are on the status board.
    fn left(&self) -> Vec<RankView> {
        let is_left = |view: &RankView| self.ranks.get(view.rank as usize).is_some_and(|rank| rank.ended.is_none());
        self.board.views().into_iter().filter(is_left).collect()
    }

    /// Ends the job if a rank has ended without having joined, and all others wait, which can only be for it.
    pub(super) fn end_if_absent_rank_is_awaited(&mut self, now: Instant) {
        let due = self.absent.as_ref().is_some_and(|(_, patience)| now >= patience.next_look());
        if !due || self.ending.is_some() {
            return;
        }
        let left = self.left();
        if let Some((rank, patience)) = &mut self.absent
            && let Verdict::Waiting(_) = patience.look(now, &left)
        {
            let cause = Cause::NeverJoined { rank: *rank };
            self.absent = None;
            self.end(cause);
        }
    }

    /// True while ranks run and none has joined the job.
    pub(super) fn may_be_strangers(&self) -> bool {
        self.ranks.len() > 1
            && self.ending.is_none()
            && self.running() > 0
            && (0..self.ranks.len()).all(|rank| self.board.seat(rank as u32).pid().is_none())
    }

    pub(super) fn look_for_strangers(&mut self, now: Instant) {
        if now >= self.strangers.next_look() && self.may_be_strangers() {
            let running: Vec<u32> = self
                .ranks
                .iter()
                .filter(|rank| rank.ended.is_none() && rank.pid != 0 && rank.host.is_none())
                .map(|rank| rank.pid)
                .collect();
            if let Some(text) = self.strangers.look(now, &running, self.ranks.len()) {
                self.say(&text);
            }
        }
    }

    /// Says that no rank has joined the job, if the program uses another MPI library; true if so.
    pub(super) fn report_strangers(&mut self) -> bool {
        let nobody = (0..self.ranks.len()).all(|rank| self.board.seat(rank as u32).pid().is_none());
        if !nobody || !self.strangers.are_there() {
            return false;
        }
        if let Some(text) = self.strangers.report(self.ranks.len()) {
            self.say(&text);
        }
        true
    }
}
