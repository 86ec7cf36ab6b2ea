//! Detection of hangs.
//!
//! [`Watch::look`] is called every [`PERIOD`] with a copy of the status board. It returns true when
//! - every rank has left (finalized or exited) or is blocked, and at least one is blocked;
//! - no thread of a blocked rank waits for a disk or has been stopped, and none runs but those that poll for what they
//!   wait for;
//! - this has been so, with the same epochs, for at least [`QUIET`] between looks;
//! - the last rank fell asleep at least the configured time ago;
//! - this hang has not been reported yet.
//!
//! A rank that tests for messages, computes, sleeps in its own code, or has not called the library yet is not blocked:
//! there is no hang then.
//!
//! The board does not know threads that have not called the library yet. A program in which all other threads wait for
//! such a thread gets a false report; this is one reason why the default is to report and keep waiting.

use std::time::Duration;

use limosa_job::{RankView, State};

/// Time between looks.
pub const PERIOD: Duration = Duration::from_millis(400);
/// How long nothing must change between looks.
const QUIET: Duration = Duration::from_millis(800);

/// Memory of earlier looks.
pub struct Watch {
    after_ns: u64,
    /// Since when the epochs have not changed.
    quiet: Option<(u64, Vec<u64>)>,
    reported: Vec<u64>,
}

impl Watch {
    /// Time after the last rank fell asleep from which on this is a hang.
    pub fn new(after: Duration) -> Watch {
        Watch { after_ns: after.as_nanos() as u64, quiet: None, reported: Vec::new() }
    }

    /// Looks at the board. `is_active` tells whether the threads of a rank's process look awake.
    pub fn look(&mut self, now_ns: u64, views: &[RankView], mut is_active: impl FnMut(&RankView) -> bool) -> bool {
        let epochs = match all_wait(views) {
            true => epochs(views),
            false => {
                self.quiet = None;
                return false;
            }
        };
        if views.iter().any(|view| view.is_blocked() && is_active(view)) {
            self.quiet = None;
            return false;
        }
        match &self.quiet {
            Some((since, old)) if *old == epochs => {
                let quiet_ns = now_ns.saturating_sub(*since);
                let asleep_ns = now_ns.saturating_sub(last_fell_asleep(views));
                let hangs =
                    quiet_ns >= QUIET.as_nanos() as u64 && asleep_ns >= self.after_ns && self.reported != epochs;
                if hangs {
                    self.reported = epochs;
                }
                hangs
            }
            _ => {
                self.quiet = Some((now_ns, epochs));
                false
            }
        }
    }

    /// True if nothing has happened since the hang that was noticed last.
    pub fn still_hangs(&self, views: &[RankView]) -> bool {
        all_wait(views) && epochs(views) == self.reported
    }
}

fn all_wait(views: &[RankView]) -> bool {
    let waits = |view: &RankView| match view.state {
        State::Finalized | State::Exited => true,
        State::Running => view.is_blocked(),
        State::Empty | State::Starting | State::Aborted => false,
    };
    views.iter().all(waits) && views.iter().any(RankView::is_blocked)
}

fn epochs(views: &[RankView]) -> Vec<u64> {
    views.iter().map(|view| view.epoch).collect()
}

fn last_fell_asleep(views: &[RankView]) -> u64 {
    let blocked = views.iter().filter(|view| view.is_blocked());
    blocked.flat_map(|view| view.records.iter().map(|record| record.since_ns)).max().unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use limosa_job::{Kind, Peer, Record, WaitView};

    pub const MS: u64 = 1_000_000;
    const NONE: [u64; 0] = [];

    /// A rank in this state.
    pub fn rank(rank: u32, state: State) -> RankView {
        let (pid, started) = (1000 + rank, 1000 + rank);
        RankView {
            rank,
            pid,
            started,
            state,
            state_since_ns: 0,
            appnum: 0,
            threads: 1,
            asleep: 0,
            epoch: 5,
            sleeps: 0,
            wakeups: 0,
            idle_wakeups: 0,
            records: vec![],
        }
    }

    /// A wait for one rank in a communicator of four that is numbered like the job.
    pub fn wait(kind: Kind, world: u32, tag: Option<i32>) -> WaitView {
        WaitView {
            kind,
            peer: Peer::Rank { rank: world, world },
            tag,
            context: 2,
            comm: "MPI_COMM_WORLD".into(),
            members: 4,
        }
    }

    /// A rank that sleeps in `call` since 0.
    pub fn blocked(rank_: u32, call: &str, waits: Vec<WaitView>) -> RankView {
        let record = Record { thread: 1000 + rank_, call: call.into(), since_ns: 0, waits, more: 0, all: true };
        RankView { asleep: 1, records: vec![record], ..rank(rank_, State::Running) }
    }

    fn pair() -> Vec<RankView> {
        vec![
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(7))]),
        ]
    }

    /// The times, in milliseconds, of the looks that found a hang.
    fn alarms(until_ms: u64, mut views: impl FnMut(u64) -> Vec<RankView>, active: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut watch = Watch::new(Duration::from_secs(1));
        let looks = (0..=until_ms).step_by(PERIOD.as_millis() as usize);
        looks.filter(|ms| watch.look(ms * MS, &views(*ms), |_| active(*ms))).collect()
    }

    #[test]
    fn a_hang_is_noticed_once_and_soon() {
        assert_eq!(alarms(10_000, |_| pair(), |_| false), [1200]);
    }

    #[test]
    fn a_rank_awake_prevents_the_alarm() {
        for state in [State::Empty, State::Starting, State::Running, State::Aborted] {
            let mut views = pair();
            views.push(rank(2, state));
            assert_eq!(alarms(5000, |_| views.clone(), |_| false), NONE, "{state:?}");
        }
    }

    #[test]
    fn ranks_that_have_left_do_not() {
        for state in [State::Finalized, State::Exited] {
            let views = vec![blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, None)]), rank(1, state)];
            assert_eq!(alarms(5000, |_| views.clone(), |_| false).len(), 1);
            assert_eq!(alarms(5000, |_| vec![rank(0, state), rank(1, state)], |_| false), NONE, "nobody waits");
        }
    }

    #[test]
    fn whoever_wakes_up_now_and_then_is_alive() {
        let views = |ms: u64| {
            let mut views = pair();
            views[1].epoch = ms / 700;
            views
        };
        assert_eq!(alarms(10_000, views, |_| false), NONE);
    }

    #[test]
    fn a_thread_that_computes_prevents_the_alarm() {
        let mut views = pair();
        views[0].threads = 2;
        assert_eq!(
            alarms(5000, |_| views.clone(), |_| false),
            NONE,
            "its other thread uses the library too and is awake"
        );
        assert_eq!(alarms(5000, |_| pair(), |ms| ms % 800 == 0), NONE, "some thread runs at every other look");
    }

    #[test]
    fn a_second_hang_is_reported_too() {
        let views = |ms: u64| {
            let mut views = pair();
            if ms > 4000 {
                views[0].epoch += 2;
            }
            views
        };
        assert_eq!(alarms(10_000, views, |_| false).len(), 2);
    }

    #[test]
    fn a_wake_up_between_alarm_and_report_withdraws_it() {
        let mut watch = Watch::new(Duration::ZERO);
        let mut views = pair();
        assert!(!watch.look(0, &views, |_| false));
        assert!(watch.look(900 * MS, &views, |_| false));
        assert!(watch.still_hangs(&views));
        views[1].epoch += 1;
        assert!(!watch.still_hangs(&views));
    }
}
