//! What the launcher does when a job does not end, or does not go on: after a signal, after `--timeout`, when a rank has
//! left that never joined, and when no rank joins.

use std::time::{Duration, Instant};

use limosa_job::config::OnHang;
use limosa_job::{RankView, monotonic_ns};

use super::Job;
use crate::hang::explain;
use crate::hang::stacks::Places;
use crate::hang::watch::Hang;
use crate::run::outcome::Cause;
use crate::run::patience::Verdict;
use crate::{message, sys};

/// How long all ranks must have waited for a signal to be followed by a report of what they wait for.
const HANG_AT_SIGNAL: Duration = Duration::from_millis(500);

impl Job<'_> {
    /// Says what ranks wait for if all have done so for a while: after the signal they may not be there to be asked.
    pub(super) fn report_waiting(&mut self) {
        let (now, views) = (monotonic_ns(), self.board.views());
        let is_left = |view: &&RankView| self.ranks.get(view.rank as usize).is_some_and(|rank| rank.ended.is_none());
        let wait = |view: &RankView| {
            let long_ago = |since| now.saturating_sub(since) >= HANG_AT_SIGNAL.as_nanos() as u64;
            view.is_blocked() && view.records.iter().all(|record| long_ago(record.since_ns))
        };
        let left: Vec<&RankView> = views.iter().filter(is_left).collect();
        if self.settings.on_hang == OnHang::Off
            || self.ending.is_some()
            || left.is_empty()
            || !left.into_iter().all(wait)
            || self.watch.still_hangs(&views)
        {
            return;
        }
        self.hang = None;
        let text = explain::report(now, &views, &Hang::default(), &Places::default(), None);
        self.say(&text);
    }

    pub(super) fn end_at_timeout(&mut self, now: Instant) {
        let (Some(timeout), Some(at)) = (self.settings.timeout, self.timeout_at) else { return };
        if now >= at && self.ending.is_none() && self.running() > 0 {
            self.timeout_at = None;
            self.report_waiting();
            self.end(Cause::TimedOut { after: timeout });
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
            let running: Vec<u32> =
                self.ranks.iter().filter(|rank| rank.ended.is_none()).map(|rank| rank.pid).collect();
            self.strangers.look(now, &running);
        }
    }

    /// Says that no rank has joined the job, if the program uses another MPI library.
    pub(super) fn report_strangers(&mut self) {
        let nobody = (0..self.ranks.len()).all(|rank| self.board.seat(rank as u32).pid().is_none());
        if nobody && let Some(text) = self.strangers.report(self.ranks.len()) {
            self.say(&text);
        }
    }
}
