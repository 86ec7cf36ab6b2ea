//! Detection of hangs from successive copies of the status board.
//!
//! [`Watch::look`] is called every [`PERIOD`] with a copy of the status board. A job hangs when
//! - every rank has left (finalized or exited) or waits, and at least one waits;
//! - this has been so, with the same epochs, for at least [`QUIET`] between polls;
//! - the last rank began to wait at least the configured time ago;
//! - this hang has not been reported yet.
//!
//! A rank waits when its threads that use the library wait in it and no other thread of the process can run
//! ([`Others`]). Four situations leave a doubt:
//! - a thread of the process sleeps and has never called the library: it may do so later (if a thread that has called
//!   it may be waiting for such a thread, there is no hang at all);
//! - a thread polls (`MPI_Test`, `MPI_Iprobe`) without success: it may stop polling and do something else;
//! - no thread of a rank is in the library and all wait for locks: a signal may end that;
//! - a rank waits for another group to connect or accept: it may be started later.
//!
//! A rank may also wait for processes of another job. Then that job's ranks must wait, too, and those of the jobs that
//! they wait for ([`Neighbours`]). If the status board of one is not readable, that job may be at work: the report
//! comes [`UNSEEN`] times later, and the job is never ended.
//!
//! With a doubt the report comes [`DOUBT`] times later, or [`POLLING`] times if the only doubt is that ranks poll. It
//! states the doubt, and the job is ended only after another period, which the report states too. The report also comes
//! [`DOUBT`] times later while the process of a finalized rank still runs: it may end with an error, which then matters
//! more to the user. The same holds where ranks are on several hosts. After a host has been silent, nothing is reported
//! for twice that time: TCP doubles the time until it tries again, and of several connections that were cut each does
//! so at its own times.
//!
//! A rank that computes, sleeps in its own code, or has not called the library yet does not wait: there is no hang.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use limosa_job::{RankView, State};

use crate::jobs::Neighbours;
use crate::threads::Others;
use crate::waits::waits_for_connection;

/// Time between polls.
pub const PERIOD: Duration = Duration::from_millis(400);
/// Longest time between two polls that count as consecutive. A longer gap means that the machine stood still or was
/// overloaded, and so were the ranks: their pending work is not visible yet.
const LATE: Duration = Duration::from_millis(1200);
/// Minimum time without changes.
const QUIET: Duration = Duration::from_millis(800);
/// Factor of this time if there is a doubt, while a process that has finalized still runs, and where ranks are on
/// several hosts.
const DOUBT: u64 = 10;
/// Factor if the only doubt is that ranks poll: they do so all the time without success.
const POLLING: u64 = 5;
/// Factor if a job that is waited for is not visible.
const UNSEEN: u64 = 60;
/// Longest time until TCP tries again.
const RETRY: Duration = Duration::from_secs(120);
/// Maximum time between polls of a thread that counts as polling.
const POLLS_WITHIN: Duration = Duration::from_millis(2500);

/// Result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing to report.
    Quiet,
    /// A hang that has not been reported yet.
    Hang(Hang),
    /// A doubtful hang that was reported and has lasted until the job is to be ended.
    Overdue,
}

/// Data of a hang that the status board does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hang {
    /// By rank, threads that wait for locks or for the end of threads.
    pub stuck: BTreeMap<u32, Vec<u32>>,
    /// By rank, threads that sleep and have never called the library.
    pub non_callers: BTreeMap<u32, Vec<u32>>,
    /// Whether there is a doubt that it is a hang.
    pub doubtful: bool,
    /// Whether there is a doubt other than polling ranks.
    pub may_go_on: bool,
    /// Time without changes.
    pub quiet: Duration,
    /// Other jobs that are part of the hang.
    pub neighbours: Neighbours,
    /// Other jobs that leave a doubt.
    pub others_may_go_on: BTreeSet<u64>,
}

impl Hang {
    /// Returns whether the job may be ended because of the hang in spite of a doubt.
    pub fn may_be_overdue(&self) -> bool {
        self.doubtful && self.neighbours.unseen.is_empty()
    }
}

/// State of the detection between polls.
pub struct Watch {
    after_ns: u64,
    grace_ns: u64,
    /// Time of the last poll.
    looked_ns: Option<u64>,
    /// Time since which the epochs have not changed, and the epochs.
    quiet: Option<(u64, Vec<u64>)>,
    /// By polling rank and thread: number of its polls, and the time of the last change.
    polls: BTreeMap<(u32, u32), (u32, u64)>,
    /// Epochs of the last reported hang, and whether there was a doubt.
    reported: (Vec<u64>, bool),
    /// Time at which a reported hang with a doubt ends the job.
    due_ns: Option<u64>,
    /// Time since which a host has been silent.
    silent_ns: Option<u64>,
    /// Time until which connections that were cut may not have been tried again.
    retried_ns: u64,
    /// Whether the ranks are on several hosts: messages may be in flight between them, and the state of their threads
    /// is unknown.
    pub is_between_hosts: bool,
}

impl Watch {
    /// Creates the detection. `after`: time after the last rank began to wait until it is a hang. `grace`: time after
    /// the report until a hang with a doubt ends the job.
    pub fn new(after: Duration, grace: Duration) -> Watch {
        Watch {
            after_ns: after.as_nanos() as u64,
            grace_ns: grace.as_nanos() as u64,
            looked_ns: None,
            quiet: None,
            polls: BTreeMap::new(),
            reported: (Vec::new(), false),
            due_ns: None,
            silent_ns: None,
            retried_ns: 0,
            is_between_hosts: false,
        }
    }

    /// Restarts the detection, because another host has not been heard lately.
    pub fn host_is_silent(&mut self, now_ns: u64) {
        self.begin_anew();
        self.silent_ns.get_or_insert(now_ns);
    }

    /// Restarts the detection: earlier polls no longer count.
    pub fn begin_anew(&mut self) {
        self.quiet = None;
        self.due_ns = None;
    }

    /// Polls the status board, and those of the jobs that are waited for. `others` returns the state of the threads of
    /// a rank's process that do not wait according to the board.
    pub fn look(
        &mut self,
        now_ns: u64,
        views: &[RankView],
        neighbours: Neighbours,
        others: impl FnMut(&RankView) -> Others,
    ) -> Look {
        let before = self.looked_ns.replace(now_ns);
        let is_late = before.is_some_and(|before| now_ns.saturating_sub(before) > LATE.as_nanos() as u64);
        if let Some((since, _)) = self.quiet.as_mut().filter(|_| is_late) {
            *since = now_ns;
        }
        if let Some(silent_ns) = self.silent_ns.take() {
            let silence_ns = now_ns.saturating_sub(silent_ns);
            self.retried_ns = now_ns + silence_ns.saturating_mul(2).min(RETRY.as_nanos() as u64);
        }
        self.count_polls(now_ns, all_views(views, &neighbours));
        let Some(mut hang) = self.all_wait(now_ns, views, &neighbours, others) else {
            self.begin_anew();
            return Look::Quiet;
        };
        let epochs = epochs(views, &neighbours);
        let since = match &self.quiet {
            Some((since, old)) if *old == epochs => *since,
            _ => {
                self.quiet = Some((now_ns, epochs));
                self.due_ns = None;
                return Look::Quiet;
            }
        };
        let quiet_ns = now_ns.saturating_sub(since);
        let waits_ns = now_ns.saturating_sub(last_began(all_views(views, &neighbours)));
        // A process that is still exiting may end with an error, which tells more than the hang.
        let is_leaving = all_views(views, &neighbours).any(|view| view.state == State::Finalized);
        let lasts = match hang.doubtful || is_leaving || self.is_between_hosts {
            _ if !neighbours.unseen.is_empty() => quiet_ns >= self.after_ns.saturating_mul(UNSEEN),
            true => {
                let only_polls = !hang.may_go_on && !is_leaving && !self.is_between_hosts;
                quiet_ns >= self.after_ns.saturating_mul(if only_polls { POLLING } else { DOUBT })
            }
            false => waits_ns >= self.after_ns,
        };
        if quiet_ns < QUIET.as_nanos() as u64 || !lasts || now_ns < self.retried_ns {
            return Look::Quiet;
        }
        hang.neighbours = neighbours;
        let (reported, with_doubt) = &self.reported;
        if *reported != epochs || (*with_doubt && !hang.doubtful) {
            self.due_ns = hang.may_be_overdue().then(|| now_ns.saturating_add(self.grace_ns));
            self.reported = (epochs, hang.doubtful);
            hang.quiet = Duration::from_nanos(quiet_ns);
            return Look::Hang(hang);
        }
        self.look_again(now_ns, &hang)
    }

    /// Looks at a hang that was reported before.
    fn look_again(&mut self, now_ns: u64, hang: &Hang) -> Look {
        match self.due_ns {
            Some(due) if now_ns >= due => {
                self.due_ns = None;
                Look::Overdue
            }
            // After the report a rank was active for a moment, without effect: the same hang goes on.
            None if hang.may_be_overdue() => {
                self.begin_grace(now_ns);
                Look::Quiet
            }
            _ => Look::Quiet,
        }
    }

    /// Starts the time until a hang with a doubt ends the job.
    pub fn begin_grace(&mut self, now_ns: u64) {
        self.due_ns = Some(now_ns.saturating_add(self.grace_ns));
    }

    /// Returns whether nothing has happened since the last detected hang.
    pub fn still_hangs(&self, views: &[RankView], neighbours: &Neighbours) -> bool {
        let is_there = |view: &RankView| has_left(view) || view.state == State::Running;
        all_views(views, neighbours).all(is_there) && epochs(views, neighbours) == self.reported.0
    }

    fn count_polls<'a>(&mut self, now_ns: u64, views: impl Iterator<Item = &'a RankView>) {
        let mut polls = BTreeMap::new();
        for (view, record) in views.flat_map(|view| view.records.iter().map(move |record| (view, record))) {
            if record.polls > 0 {
                let who = (view.rank, record.thread);
                let before = self.polls.get(&who).filter(|(count, _)| *count == record.polls);
                polls.insert(who, before.copied().unwrap_or((record.polls, now_ns)));
            }
        }
        self.polls = polls;
    }

    /// Returns the hang, if every rank has left or waits, and one waits; in other jobs likewise.
    fn all_wait(
        &self,
        now_ns: u64,
        views: &[RankView],
        neighbours: &Neighbours,
        mut others: impl FnMut(&RankView) -> Others,
    ) -> Option<Hang> {
        let is_unseen = !neighbours.unseen.is_empty();
        let mut hang = Hang { doubtful: is_unseen, may_go_on: is_unseen, ..Hang::default() };
        self.all_of_one_wait(now_ns, views, &mut others, &mut hang)?;
        for other in &neighbours.seen {
            // Rank numbers are those of that job: only the doubt counts.
            let mut theirs = Hang::default();
            self.all_of_one_wait(now_ns, &other.views, &mut others, &mut theirs)?;
            if theirs.doubtful {
                (hang.doubtful, hang.may_go_on) = (true, true);
                hang.others_may_go_on.insert(other.id);
            }
        }
        Some(hang)
    }

    /// Adds the data of one job to the hang. Returns `None` if a rank of the job does not wait.
    fn all_of_one_wait(
        &self,
        now_ns: u64,
        views: &[RankView],
        others: &mut impl FnMut(&RankView) -> Others,
        hang: &mut Hang,
    ) -> Option<()> {
        let staying: Vec<&RankView> = views.iter().filter(|view| !has_left(view)).collect();
        if staying.is_empty() || staying.iter().any(|view| view.state != State::Running) {
            return None;
        }
        hang.may_go_on |= staying.iter().any(|view| waits_for_connection(view));
        // Ranks outside the library are checked first: a busy one makes the other checks unnecessary.
        let (inside, outside): (Vec<&RankView>, Vec<_>) = staying.iter().partition(|view| !view.records.is_empty());
        for view in outside.into_iter().chain(inside) {
            let polls = |thread: u32| self.polls.get(&(view.rank, thread));
            let is_idle = |at: &u64| now_ns.saturating_sub(*at) > POLLS_WITHIN.as_nanos() as u64;
            if view.records.iter().any(|record| polls(record.thread).is_some_and(|(_, at)| is_idle(at))) {
                return None;
            }
            let Others { busy, stuck, non_callers } = others(view);
            if busy || (view.records.is_empty() && (view.asleep > 0 || stuck.is_empty())) {
                return None;
            }
            let caller_is_stuck = stuck.iter().any(|thread| view.callers.contains(thread));
            if !non_callers.is_empty() && (view.records.is_empty() || caller_is_stuck) {
                // A thread that works without the library is awaited by a thread that uses it: a pool, for example.
                return None;
            }
            let polls = view.records.iter().any(|record| record.polls > 0);
            hang.may_go_on |= view.records.is_empty() || !non_callers.is_empty();
            hang.doubtful |= polls || hang.may_go_on;
            hang.stuck.extend((!stuck.is_empty()).then_some((view.rank, stuck)));
            hang.non_callers.extend((!non_callers.is_empty()).then_some((view.rank, non_callers)));
        }
        hang.doubtful |= hang.may_go_on;
        Some(())
    }
}

/// Returns the ranks of all visible jobs.
fn all_views<'a>(views: &'a [RankView], neighbours: &'a Neighbours) -> impl Iterator<Item = &'a RankView> {
    views.iter().chain(neighbours.seen.iter().flat_map(|other| &other.views))
}

fn has_left(view: &RankView) -> bool {
    matches!(view.state, State::Finalized | State::Exited)
}

/// Returns the epochs of all ranks. A job with different neighbours is a different situation.
fn epochs(views: &[RankView], neighbours: &Neighbours) -> Vec<u64> {
    let jobs = neighbours.seen.iter().map(|other| other.id).chain(neighbours.unseen.iter().copied());
    all_views(views, neighbours).map(|view| view.epoch).chain(jobs).collect()
}

/// Returns the time at which the last thread began to wait.
fn last_began<'a>(views: impl Iterator<Item = &'a RankView>) -> u64 {
    let waiting = views.filter(|view| view.state == State::Running);
    waiting.flat_map(|view| view.records.iter().map(|record| record.since_ns)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Other;
    use crate::samples::{MS, blocked, outside, rank, wait};
    use limosa_job::{Kind, Peer, WaitView};

    const NONE: [u64; 0] = [];

    fn pair() -> Vec<RankView> {
        vec![
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(7))]),
        ]
    }

    /// Returns the polls up to then with a result, with their times in milliseconds.
    fn looks(
        until_ms: u64,
        mut views: impl FnMut(u64) -> Vec<RankView>,
        others: impl Fn(u64, &RankView) -> Others,
    ) -> Vec<(u64, Look)> {
        let mut watch = Watch::new(Duration::from_secs(1), Duration::from_secs(30));
        let looks = (0..=until_ms).step_by(PERIOD.as_millis() as usize);
        let looks =
            looks.map(|ms| (ms, watch.look(ms * MS, &views(ms), Neighbours::default(), |view| others(ms, view))));
        looks.filter(|(_, look)| *look != Look::Quiet).collect()
    }

    /// Returns the times, in milliseconds, of the polls that found a hang without a doubt.
    fn alarms(until_ms: u64, views: impl FnMut(u64) -> Vec<RankView>, busy: impl Fn(u64) -> bool) -> Vec<u64> {
        let found = looks(until_ms, views, |ms, _| Others { busy: busy(ms), ..Others::default() });
        found.iter().for_each(|(_, look)| assert!(matches!(look, Look::Hang(hang) if !hang.doubtful), "{look:?}"));
        found.into_iter().map(|(ms, _)| ms).collect()
    }

    /// Returns the times of report and end of a hang with a doubt.
    fn doubtful(found: &[(u64, Look)]) -> [u64; 2] {
        match found {
            [(report, Look::Hang(hang)), (end, Look::Overdue)] if hang.doubtful => [*report, *end],
            _ => panic!("{found:?}"),
        }
    }

    fn polling(rank: u32, polls: u32) -> RankView {
        let mut view = blocked(rank, "MPI_Iprobe", vec![wait(Kind::Receive, 1, Some(7))]);
        view.records[0].polls = polls;
        RankView { asleep: 0, ..view }
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
            // While the process still runs, it may end with an error.
            let after = if state == State::Finalized { 10_000 } else { 1200 };
            assert_eq!(alarms(15_000, |_| views.clone(), |_| false), [after], "{state:?}");
            assert_eq!(alarms(5000, |_| vec![rank(0, state), rank(1, state)], |_| false), NONE, "no rank waits");
        }
    }

    #[test]
    fn between_hosts_it_takes_longer_and_begins_anew_when_a_host_was_not_heard() {
        let mut watch = Watch::new(Duration::from_secs(1), Duration::from_secs(30));
        watch.is_between_hosts = true;
        let mut found = Vec::new();
        for ms in (0..=30_000).step_by(400) {
            if ms == 8000 {
                watch.begin_anew();
            }
            let look = watch.look(ms * MS, &pair(), Neighbours::default(), |_| Others::default());
            found.extend((look != Look::Quiet).then_some(ms));
        }
        assert_eq!(found, [18_000]);
    }

    #[test]
    fn after_a_host_was_silent_there_is_time_for_all_connections_to_be_tried_again() {
        let mut watch = Watch::new(Duration::from_secs(1), Duration::from_secs(30));
        watch.is_between_hosts = true;
        let mut found = Vec::new();
        for ms in (0..=60_000).step_by(400) {
            if (4000..14_000).contains(&ms) {
                watch.host_is_silent(ms * MS);
                continue;
            }
            let look = watch.look(ms * MS, &pair(), Neighbours::default(), |_| Others::default());
            found.extend((look != Look::Quiet).then_some(ms));
        }
        assert_eq!(found, [34_000]);
    }

    #[test]
    fn a_machine_that_stood_still_gets_time_to_go_on() {
        let mut watch = Watch::new(Duration::from_secs(1), Duration::from_secs(30));
        let mut look = |ms: u64| watch.look(ms * MS, &pair(), Neighbours::default(), |_| Others::default());
        let found = [0, 400, 6400, 6800, 8800, 9200].map(&mut look);
        assert!(found.iter().all(|look| *look == Look::Quiet), "{found:?}");
        assert!(matches!(look(9600), Look::Hang(_)));
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
        assert_eq!(alarms(5000, |_| pair(), |ms| ms % 800 == 0), NONE, "some thread runs at every other look");
    }

    #[test]
    fn whoever_waits_for_a_connection_is_a_doubtful_case() {
        let mut views = pair();
        views[0].records[0].waits[0] = WaitView { peer: Peer::Any, ..wait(Kind::Connection, 1, None) };
        let found = looks(20_000, move |_| views.clone(), |_, _| Others::default());
        assert!(matches!(&found[0], (ms, Look::Hang(hang)) if hang.doubtful && *ms > 9000), "{found:?}");
    }

    /// Returns the polls with a result at a rank that waits for job 8, whose ranks `other` returns for a time.
    fn looks_outside(until_ms: u64, other: impl Fn(u64) -> Option<Vec<RankView>>) -> Vec<(u64, Look)> {
        let mut watch = Watch::new(Duration::from_secs(1), Duration::from_secs(30));
        let views = [blocked(0, "MPI_Recv", vec![outside(Kind::Receive, 8, Some(0))])];
        let looks = (0..=until_ms).step_by(PERIOD.as_millis() as usize).map(|ms| {
            let found = Neighbours::find(7, &views, |id| Some(Other { id, views: other(ms)?, ..Other::default() }));
            (ms, watch.look(ms * MS, &views, found, |_| Others::default()))
        });
        looks.filter(|(_, look)| *look != Look::Quiet).collect()
    }

    #[test]
    fn two_jobs_that_wait_for_each_other_hang() {
        let theirs = |_| Some(vec![blocked(0, "MPI_Recv", vec![outside(Kind::Receive, 7, Some(0))])]);
        let found = looks_outside(20_000, theirs);
        assert!(matches!(&found[..], [(1200, Look::Hang(hang))] if !hang.doubtful), "{found:?}");
    }

    #[test]
    fn a_job_that_works_or_goes_on_prevents_the_alarm() {
        assert_eq!(looks_outside(90_000, |_| Some(vec![rank(0, State::Running)])), []);
        let receives = |job: u64| blocked(0, "MPI_Recv", vec![outside(Kind::Receive, job, Some(0))]);
        assert_eq!(looks_outside(90_000, |ms| Some(vec![RankView { epoch: ms / 700, ..receives(7) }])), []);
    }

    #[test]
    fn a_job_that_cannot_be_seen_is_a_doubt_and_never_ends_the_job() {
        let found = looks_outside(200_000, |_| None);
        assert!(matches!(&found[..], [(60_000..61_000, Look::Hang(hang))] if hang.doubtful), "{found:?}");
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
    fn threads_that_wait_for_locks_do_not_prevent_it() {
        let stuck = |_: u64, view: &RankView| Others { stuck: vec![view.pid], ..Others::default() };
        let found = looks(5000, |_| pair(), stuck);
        let Look::Hang(hang) = &found[0].1 else { panic!("{found:?}") };
        assert_eq!((found.len(), hang.doubtful), (1, false));
        assert_eq!(hang.stuck, BTreeMap::from([(0, vec![1000]), (1, vec![1001])]));
    }

    #[test]
    fn a_thread_that_never_called_the_library_leaves_a_doubt() {
        let stranger = |_: u64, _: &RankView| Others { non_callers: vec![77], ..Others::default() };
        assert_eq!(doubtful(&looks(60_000, |_| pair(), stranger)), [10_000, 40_000]);
        // The thread ends; then the hang is certain.
        let ends = |ms: u64, view: &RankView| if ms < 20_000 { stranger(ms, view) } else { Others::default() };
        let found = looks(60_000, |_| pair(), ends);
        assert_eq!(found.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [10_000, 20_000], "{found:?}");
        assert!(matches!(&found[1].1, Look::Hang(hang) if !hang.doubtful));
        // The thread becomes active.
        let acts = |ms: u64| {
            let mut views = pair();
            views[0].epoch += ms / 20_000;
            views
        };
        let found = looks(45_000, acts, stranger);
        assert!(found.iter().all(|(_, look)| *look != Look::Overdue), "{found:?}");
    }

    #[test]
    fn whoever_polls_leaves_a_doubt_as_long_as_it_polls() {
        let views = |polls| vec![polling(0, polls), pair().remove(1)];
        assert_eq!(doubtful(&looks(60_000, |ms| views(1 + ms as u32), |_, _| Others::default())), [5200, 35_200]);
        // A few polls suffice.
        let slow = |ms: u64| views(1 + (ms / 2000) as u32);
        assert_eq!(doubtful(&looks(60_000, slow, |_, _| Others::default())), [5200, 35_200]);
        // A rank that is active for a moment after the report delays the end.
        let active = |ms: u64, _: &RankView| Others { busy: ms == 20_000, ..Others::default() };
        assert_eq!(doubtful(&looks(60_000, |ms| views(1 + ms as u32), active)), [5200, 55_600]);
        // The thread does something else.
        assert_eq!(looks(60_000, |_| views(1), |_, _| Others::default()), []);
        // Other threads may send something.
        let busy = |_: u64, view: &RankView| Others { busy: view.rank == 1, ..Others::default() };
        assert_eq!(looks(60_000, |ms| views(1 + ms as u32), busy), []);
    }

    #[test]
    fn ranks_that_are_not_in_the_library_hang_if_all_their_threads_wait_for_locks() {
        let views = || vec![rank(0, State::Running), pair().remove(1)];
        let stuck = |_: u64, view: &RankView| match view.rank {
            0 => Others { stuck: vec![1000], ..Others::default() },
            _ => Others::default(),
        };
        assert_eq!(doubtful(&looks(60_000, |_| views(), stuck)), [10_000, 40_000]);
        assert_eq!(looks(60_000, |_| views(), |_, _| Others::default()), [], "it has no threads that could be seen");
    }

    #[test]
    fn whoever_waits_for_a_thread_that_never_called_the_library_may_go_on() {
        let pool = |_: u64, view: &RankView| Others { stuck: vec![view.pid], non_callers: vec![77], busy: false };
        let mut views = pair();
        views[0].callers = vec![1000];
        assert_eq!(looks(60_000, |_| views.clone(), pool), [], "beside a thread that waits in the library");
        let views = vec![rank(0, State::Running), pair().remove(1)];
        let of_first = |ms: u64, view: &RankView| if view.rank == 0 { pool(ms, view) } else { Others::default() };
        assert_eq!(looks(60_000, |_| views.clone(), of_first), [], "no thread waits in the library");
    }

    #[test]
    fn a_wake_up_between_alarm_and_report_withdraws_it() {
        let none = Neighbours::default;
        let mut watch = Watch::new(Duration::ZERO, Duration::ZERO);
        let mut views = pair();
        assert_eq!(watch.look(0, &views, none(), |_| Others::default()), Look::Quiet);
        assert!(matches!(watch.look(900 * MS, &views, none(), |_| Others::default()), Look::Hang(_)));
        assert!(watch.still_hangs(&views, &none()));
        views[1].epoch += 1;
        assert!(!watch.still_hangs(&views, &none()));
    }
}
