//! How long ranks may go on after the launcher has passed a signal on that asks the job to end.
//!
//! | ranks | ended after |
//! |---|---|
//! | all that are left wait in MPI, and none has moved between two looks | about [`FIRST_LOOK`] + [`BETWEEN_LOOKS`] |
//! | others | [`LONGEST`]; never if there is a single one, on a terminal, and the signal is that of Ctrl-C |
//!
//! Ranks that wait in MPI for something that does not come would wait for ever. Others may save their work. A single
//! rank on a terminal may be an interpreter or a debugger, which takes Ctrl-C as a request to stop what it is doing.

use std::time::{Duration, Instant};

use limosa_job::RankView;

/// Time from the signal to the first look at the ranks.
const FIRST_LOOK: Duration = Duration::from_millis(400);
/// Time between looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// How long ranks may take that do something.
const LONGEST: Duration = Duration::from_secs(10);

/// What the launcher is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Look again later.
    Wait,
    /// These ranks wait in MPI: end the job.
    Waiting(Vec<u32>),
    /// The time is over: end the job.
    TimeIsOver,
}

/// The time since a signal was passed on.
pub struct Patience {
    since: Instant,
    next_look: Instant,
    is_limited: bool,
    /// Number and epoch of each rank that was left at the last look, if all of them waited in MPI.
    seen: Option<Vec<(u32, u64)>>,
}

impl Patience {
    /// The signal was passed on at `now`. `is_limited`: whether [`LONGEST`] applies.
    pub fn new(now: Instant, is_limited: bool) -> Patience {
        Patience { since: now, next_look: now + FIRST_LOOK, is_limited, seen: None }
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks at the ranks that have not ended.
    pub fn look(&mut self, now: Instant, left: &[RankView]) -> Verdict {
        if now < self.next_look {
            return Verdict::Wait;
        }
        self.next_look = now + BETWEEN_LOOKS;
        let all_wait = !left.is_empty() && left.iter().all(RankView::is_blocked);
        let seen = all_wait.then(|| left.iter().map(|view| (view.rank, view.epoch)).collect::<Vec<_>>());
        let before = std::mem::replace(&mut self.seen, seen);
        match &self.seen {
            Some(ranks) if before.as_ref() == Some(ranks) => {
                Verdict::Waiting(ranks.iter().map(|(rank, _)| *rank).collect())
            }
            _ if self.is_limited && now >= self.since + LONGEST => Verdict::TimeIsOver,
            _ => Verdict::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_hang::samples::{blocked, rank};
    use limosa_job::State;

    /// What is said at looks every 100 ms, and when, until something is said or the time is over.
    fn first_verdict(is_limited: bool, mut left: impl FnMut(u32) -> Vec<RankView>) -> Option<(u32, Verdict)> {
        let start = Instant::now();
        let mut patience = Patience::new(start, is_limited);
        (0..=12_000).step_by(100).find_map(|ms| {
            let verdict = patience.look(start + Duration::from_millis(u64::from(ms)), &left(ms));
            (verdict != Verdict::Wait).then_some((ms, verdict))
        })
    }

    #[test]
    fn ranks_that_wait_in_mpi_are_ended_within_a_second() {
        let views = || vec![blocked(1, "MPI_Recv", vec![]), blocked(2, "MPI_Recv", vec![])];
        assert_eq!(first_verdict(false, |_| views()), Some((600, Verdict::Waiting(vec![1, 2]))));
    }

    #[test]
    fn whoever_does_something_gets_more_time() {
        let views = || vec![blocked(0, "MPI_Recv", vec![]), rank(1, State::Running)];
        assert_eq!(first_verdict(true, |_| views()), Some((10_000, Verdict::TimeIsOver)));
        assert_eq!(first_verdict(false, |_| views()), None);
    }

    #[test]
    fn whoever_waits_now_and_then_does_something() {
        let views = |ms: u32| {
            let mut view = blocked(0, "MPI_Recv", vec![]);
            view.epoch = u64::from(ms / 150);
            vec![view]
        };
        assert_eq!(first_verdict(false, views), None);
    }
}
