//! Text of the hang report: what each rank waits for and where, why, and what to do. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use limosa_job::{RankView, Record, State};

use super::hints::Language;
use super::places::{Places, Program, SourcePosition, is_of_package};
use super::verdict::{how_it_left, verdict};
use super::waits::waits_for_connection;
pub use super::waits::{describe, peer};
use super::watch::Hang;
use crate::words::{self, short};

/// Maximum number of lines of the graph.
const MOST_LINES: usize = 64;

/// Returns the whole report: summary, waits of the ranks, and causes. `ends_in`: time after which a doubtful hang ends
/// the job.
pub fn report(now_ns: u64, views: &[RankView], hang: &Hang, places: &Places, ends_in: Option<Duration>) -> String {
    let views: Vec<RankView> = views.iter().map(|view| in_words(view, places)).collect();
    let mut text = head(&views, hang);
    text.push_str(&graph(now_ns, &views, hang, places, ""));
    for other in &hang.neighbours.seen {
        let of = format!(" of job {}", short(other.id));
        text.push_str(&format!("  job {}: {}\n", short(other.id), other.title));
        let places = Places { program: places.program, ..Places::default() };
        let views: Vec<RankView> = other.views.iter().map(|view| in_words(view, &places)).collect();
        text.push_str(&graph(now_ns, &views, &Hang::default(), &places, &of));
    }
    let mut verdict = verdict(&views);
    let (findings, hints) = hang.neighbours.verdict(&views);
    verdict.findings.extend(findings);
    verdict.hints.extend(hints);
    for finding in doubts(&views, hang).iter().chain(&verdict.findings) {
        text.push_str(&format!("limosa: {finding}\n"));
    }
    if let Some(after) = ends_in.filter(|_| hang.may_be_overdue()) {
        let after = words::duration(after.as_secs_f64());
        text.push_str(&format!(
            "limosa: the job will be ended in {after} if nothing happens (--on-hang=abort, LIMOSA_HANG_GRACE)\n"
        ));
    }
    let mut waits = views.iter().flat_map(|view| &view.records).flat_map(|record| &record.waits);
    let is_ours = places.program == Program::Python && waits.any(|wait| is_of_package(&wait.comm));
    let language = if is_ours { Language::Limosa } else { places.language() };
    for hint in verdict.hints.iter().map(|hint| hint.text(language)).chain(places.notes.iter().cloned()) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

/// Returns a view whose calls have the names by which the program knows them.
pub fn in_words(view: &RankView, places: &Places) -> RankView {
    let mut view = view.clone();
    for record in &mut view.records {
        if places.program != Program::Compiled {
            // mpi4py and others call the large-count forms, which their users do not know.
            let started = record.waits.iter_mut().map(|wait| &mut wait.started);
            for name in started.chain([&mut record.call]) {
                name.truncate(name.trim_end_matches("_c").len());
            }
        }
        let place = places.find(view.rank, record.thread);
        let short = place.filter(|_| record.waits.iter().any(|wait| is_of_package(&wait.comm)));
        let verb = place.and_then(|place| place.verb.as_deref());
        if let Some(verb) = verb.or_else(|| short?.method(&record.call)) {
            let verb = if verb == "__await__" { "an awaited request" } else { verb };
            let is_request = record.call == "MPI_Test" || record.waits.iter().any(|wait| !wait.started.is_empty());
            let world = record
                .waits
                .first()
                .filter(|wait| wait.comm == "limosa.world" && !is_request && !verb.contains([' ', '.']));
            record.call = world.map_or(verb.to_owned(), |wait| format!("{}.{verb}", wait.comm));
            // Requests of the Python package are not those of MPI: the call that started one means nothing to the user.
            for wait in record.waits.iter_mut().filter(|wait| !wait.started.is_empty()) {
                wait.started = "a non-blocking collective".into();
            }
        } else if let Some(method) = place.and_then(|place| place.method_of_mpi4py(&record.call)) {
            record.call = method.into();
        }
    }
    view
}

/// Returns the first line: which ranks hang.
fn head(views: &[RankView], hang: &Hang) -> String {
    let waiting: Vec<u32> = views.iter().filter(|view| view.state == State::Running).map(|view| view.rank).collect();
    let others = match views.len() - waiting.len() {
        0 => String::new(),
        1 => " (the other one has left)".into(),
        n => format!(" (the other {n} have left)"),
    };
    let verb = if waiting.len() == 1 { "waits" } else { "wait" };
    let ranks = words::ranks(&waiting);
    if hang.doubtful {
        let quiet = words::duration(hang.quiet.as_secs_f64());
        return format!("limosa: this job may hang: {ranks}{others} {verb} and nothing has happened for {quiet}\n");
    }
    format!("limosa: this job hangs: {ranks}{others} {verb} and nothing is under way\n")
}

/// Returns the reasons why this may be no hang, and their conditions.
fn doubts(views: &[RankView], hang: &Hang) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut polling = Vec::new();
    let mut locked = Vec::new();
    for view in views.iter().filter(|view| view.state == State::Running) {
        if view.records.iter().any(|record| record.polls > 0) {
            polling.push(view.rank);
        }
        if view.records.is_empty() {
            locked.push(view.rank);
        }
    }
    if let ([only], 1) = (&polling[..], views.len()) {
        doubts.push(format!("rank {only} polls for what cannot arrive: no other rank is there to send it"));
    } else if !polling.is_empty() {
        let (poll, it) = if polling.len() == 1 { ("polls", "it polls") } else { ("poll", "they poll") };
        doubts.push(format!(
            "{} {poll} for what cannot arrive any more, unless another rank polls no longer: as long as {it}, nothing \
             happens",
            words::ranks(&polling)
        ));
    }
    if !locked.is_empty() {
        let (is, its) = if locked.len() == 1 { ("is", "all its threads wait") } else { ("are", "all threads wait") };
        doubts.push(format!(
            "{} {is} not in the library, and {its} for locks or for each other: only a signal could end that",
            words::ranks(&locked)
        ));
    }
    let accepting: Vec<u32> = views.iter().filter(|view| waits_for_connection(view)).map(|view| view.rank).collect();
    if !accepting.is_empty() {
        let waits = if accepting.len() == 1 { "waits" } else { "wait" };
        doubts.push(format!(
            "{} {waits} for another group to connect or accept: no process of this job does, but a program \
             that is started later could",
            words::ranks(&accepting)
        ));
    }
    doubts.extend(doubts_about_others(hang));
    let mut non_callers: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (rank, threads) in &hang.non_callers {
        non_callers.entry(threads.len()).or_default().push(*rank);
    }
    for (threads, ranks) in non_callers {
        let has = if ranks.len() == 1 { "has" } else { "have" };
        let (count, it) = match threads {
            1 => ("another thread, which sleeps".to_owned(), "it does not call it"),
            n => (format!("{n} other threads, which sleep"), "they do not call it"),
        };
        doubts.push(format!(
            "{} {has} {count} and never called the library: this is a deadlock if {it}",
            words::ranks(&ranks)
        ));
    }
    doubts
}

/// Returns the doubts about other jobs that are waited for.
fn doubts_about_others(hang: &Hang) -> impl Iterator<Item = String> {
    let unseen = hang.neighbours.unseen.iter().map(|id| match id {
        0 => "processes of several other jobs are waited for, which cannot be told apart: they may be at work".into(),
        id => format!(
            "job {} is waited for and cannot be seen from here: it has ended, or is at work on another host or in another \
             container",
            short(*id)
        ),
    });
    let may_go_on = hang.others_may_go_on.iter().map(|id| {
        let why = "a rank of it polls, waits for any group to connect, or has other threads";
        format!("job {} may go on by itself: {why}", short(*id))
    });
    unseen.chain(may_go_on)
}

/// Returns the waits of the ranks. Ranks in the same situation share a line. `of`: text behind the numbers of the
/// ranks.
fn graph(now_ns: u64, views: &[RankView], hang: &Hang, places: &Places, of: &str) -> String {
    let mut text = String::new();
    let mut lines: Vec<(Situation, Vec<u32>)> = Vec::new();
    for view in views {
        for situation in situations(view, hang, places) {
            match lines.iter_mut().find(|(old, _)| (&old.what, &old.place) == (&situation.what, &situation.place)) {
                Some((old, ranks)) => {
                    old.since_ns = old.since_ns.min(situation.since_ns);
                    if ranks.last() != Some(&view.rank) {
                        ranks.push(view.rank);
                    }
                }
                None => lines.push((situation, vec![view.rank])),
            }
        }
    }
    for (situation, ranks) in lines.iter().take(MOST_LINES) {
        let ago = |at: u64| words::duration(now_ns.saturating_sub(at) as f64 / 1e9);
        let since = match situation.since_ns {
            Some(at) if situation.is_over => format!(" {} ago", ago(at)),
            Some(at) => format!(", for {}", ago(at)),
            None => String::new(),
        };
        text.push_str(&format!("  {}{of}: {}{since}\n", words::ranks(ranks), situation.what));
        if let Some(place) = &situation.place {
            text.push_str(&format!("      at {place}\n"));
        }
    }
    if lines.len() > MOST_LINES {
        text.push_str(&format!("  and {} more\n", lines.len() - MOST_LINES));
    }
    text
}

/// Activity of a rank, or of one of its threads.
struct Situation {
    what: String,
    place: Option<String>,
    since_ns: Option<u64>,
    /// Whether it is an event at that time; otherwise a state since that time.
    is_over: bool,
}

/// Returns the activities of a rank: one entry for each thread that waits in the library, and for each thread of
/// interest that waits for a lock. A thread is of interest if it has called the library, or its line is known.
fn situations(view: &RankView, hang: &Hang, places: &Places) -> Vec<Situation> {
    let since_ns = Some(view.state_since_ns);
    if matches!(view.state, State::Finalized | State::Exited) {
        let what = how_it_left(view).trim_start_matches("has ").into();
        return vec![Situation { what, place: None, since_ns, is_over: true }];
    }
    let line = |thread: u32| places.find(view.rank, thread).map(|place: &SourcePosition| place.line.clone());
    let in_library =
        |r: &Record| Situation { what: describe(r), place: line(r.thread), since_ns: Some(r.since_ns), is_over: false };
    let mut all: Vec<Situation> = view.records.iter().map(in_library).collect();
    let what = if all.is_empty() { "a thread that waits" } else { "another thread, which waits" };
    let stuck = hang.stuck.get(&view.rank).into_iter().flatten();
    for thread in stuck.filter(|thread| view.callers.contains(thread) || line(**thread).is_some()) {
        let what = format!("{what} for a lock or for the end of a thread");
        all.push(Situation { what, place: line(*thread), since_ns: None, is_over: false });
    }
    if all.is_empty() {
        all.push(Situation { what: "waits inside the library".into(), place: None, since_ns, is_over: false });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{MS, blocked, rank, wait};
    use crate::waits::describe_wait;
    use limosa_job::{Kind, Peer, WaitView};

    fn places(at: &[(u32, &str, Option<&str>)]) -> Places {
        let place = |(rank, line, verb): &(u32, &str, Option<&str>)| {
            ((*rank, 1000 + rank), SourcePosition { line: (*line).into(), verb: verb.map(str::to_owned), text: None })
        };
        let program = if at.is_empty() { Program::Compiled } else { Program::Python };
        Places { threads: at.iter().map(place).collect(), program, ..Places::default() }
    }

    fn report_at(ms: u64, views: &[RankView]) -> String {
        report(ms * MS, views, &Hang::default(), &Places::default(), None)
    }

    fn pair() -> [RankView; 2] {
        [
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(7))]),
        ]
    }

    #[test]
    fn two_receives_facing_each_other_are_a_circle() {
        let at = places(&[(1, "ring.py:12 in exchange", None)]);
        assert_eq!(
            report(1500 * MS, &pair(), &Hang::default(), &at, None),
            "limosa: this job hangs: ranks 0, 1 wait and nothing is under way\n\
             \x20 rank 0: MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD, for 1.5 s\n\
             \x20 rank 1: MPI_Recv from rank 0, tag 7, on MPI_COMM_WORLD, for 1.5 s\n      at ring.py:12 in exchange\n\
             limosa: ranks 0, 1 wait for each other in a circle: 0 -> 1 -> 0\n\
             hint: each of them receives before it sends: let one send first, or use Sendrecv or Irecv\n"
        );
        assert!(report_at(1500, &pair()).ends_with("or use MPI_Sendrecv or MPI_Irecv\n"));
    }

    #[test]
    fn calls_of_our_package_have_its_names() {
        let named = |comm: &str| {
            let wait = WaitView { peer: Peer::Members, comm: comm.into(), ..wait(Kind::Collective, 0, None) };
            [blocked(0, "MPI_Allgather_c", vec![WaitView { members: 2, ..wait }]), pair()[1].clone()]
        };
        let at = places(&[(0, "sum.py:3 in total", Some("allreduce")), (1, "sum.py:5 in total", None)]);
        let text = report(0, &named("limosa.world"), &Hang::default(), &at, None);
        assert!(text.contains("rank 0: limosa.world.allreduce, which needs all other ranks, for"), "{text}");
        assert!(text.contains("limosa: rank 1 is not in limosa.world.allreduce; it waits in MPI_Recv"), "{text}");
        assert!(!text.contains("MPI_Allgather"), "{text}");
        let text = report(0, &named("rows"), &Hang::default(), &at, None);
        assert!(text.contains("rank 0: allreduce on rows, which needs all other ranks, for"), "{text}");
    }

    #[test]
    fn calls_of_our_package_without_a_frame_are_named_by_the_line() {
        let report_of = |call: &str, comm: &str, text: &str| {
            let wait = WaitView { peer: Peer::Members, comm: comm.into(), ..wait(Kind::Collective, 0, None) };
            let views = [blocked(0, call, vec![WaitView { members: 2, ..wait }]), pair()[1].clone()];
            let mut at = places(&[(0, "sum.py:3 in total", None)]);
            at.threads.values_mut().for_each(|place| place.text = Some(text.into()));
            report(0, &views, &Hang::default(), &at, None)
        };
        let text = report_of("MPI_Allgather", "limosa.world", "    total = world.allreduce(x)");
        assert!(text.contains("rank 0: limosa.world.allreduce, which needs all other ranks, for"), "{text}");
        let text = report_of("MPI_Allgather", "a communicator of 2 ranks", "y = rows.bcast(x) + 1");
        assert!(text.contains("rank 0: bcast on a communicator of 2 ranks, which"), "{text}");
        let text = report_of("MPI_Allgather", "limosa.world", "f(world.bcast(world.scan(x)))");
        assert!(text.contains("rank 0: a collective call on limosa.world, which"), "{text}");
        let text = report_of("MPI_Allgather", "MPI_COMM_WORLD", "comm.bcast(x)");
        assert!(text.contains("rank 0: MPI_Allgather on MPI_COMM_WORLD"), "{text}");
    }

    #[test]
    fn a_wait_of_our_package_does_not_name_the_call_that_it_is_made_of() {
        let wait = WaitView { comm: "limosa.world".into(), ..wait(Kind::Collective, 0, None) };
        let wait = WaitView { peer: Peer::Members, members: 2, started: "MPI_Iallgather_c".into(), ..wait };
        let views = [blocked(0, "MPI_Wait", vec![wait]), pair()[1].clone()];
        let at = places(&[(0, "sum.py:3 in total", Some("wait"))]);
        let text = report(0, &views, &Hang::default(), &at, None);
        let line = "rank 0: wait for a non-blocking collective on limosa.world, which needs all other ranks, for";
        assert!(text.contains(line) && !text.contains("MPI_Iallgather"), "{text}");
        assert!(text.contains("rank 1 has not started a non-blocking collective on limosa.world; it waits"), "{text}");
    }

    #[test]
    fn waits_on_one_communicator_name_it_once() {
        let waits = vec![wait(Kind::Receive, 1, Some(7)), wait(Kind::Receive, 1, Some(8))];
        let text = describe(&blocked(0, "MPI_Waitall", waits).records[0]);
        assert_eq!(text, "MPI_Waitall from rank 1, tag 7, and from rank 1, tag 8, on MPI_COMM_WORLD");
    }

    #[test]
    fn a_hang_with_a_doubt_says_what_the_doubt_is_and_when_the_job_ends() {
        let mut views = pair();
        views[1].records[0].polls = 9;
        views[1].records[0].call = "MPI_Iprobe".into();
        let hang = Hang {
            non_callers: BTreeMap::from([(0, vec![7, 8])]),
            stuck: BTreeMap::from([(0, vec![5])]),
            doubtful: true,
            quiet: Duration::from_secs(10),
            ..Hang::default()
        };
        views[0].callers = vec![5];
        let text = report(12_000 * MS, &views, &hang, &Places::default(), Some(Duration::from_secs(30)));
        for line in [
            "limosa: this job may hang: ranks 0, 1 wait and nothing has happened for 10 s\n",
            "  rank 0: another thread, which waits for a lock or for the end of a thread\n",
            "  rank 1: polls with MPI_Iprobe from rank 0, tag 7, on MPI_COMM_WORLD, for 12 s\n",
            "limosa: rank 0 has 2 other threads, which sleep and never called the library: this is a deadlock if they \
             do not call it\n",
            "limosa: rank 1 polls for what cannot arrive any more",
            "limosa: the job will be ended in 30 s if nothing happens (--on-hang=abort, LIMOSA_HANG_GRACE)\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!report(0, &views, &hang, &Places::default(), None).contains("will be ended"));
    }

    #[test]
    fn a_rank_whose_threads_all_wait_for_locks_is_described() {
        let views = [rank(0, State::Running), pair()[1].clone()];
        let hang = Hang { stuck: BTreeMap::from([(0, vec![1000])]), doubtful: true, ..Hang::default() };
        let at = places(&[(0, "pool.py:4 in main", None)]);
        let text = report(0, &views, &hang, &at, None);
        assert!(text.contains("rank 0: a thread that waits for a lock or for the end of a thread\n      at pool.py:4"));
        assert!(text.contains("limosa: rank 0 is not in the library, and all its threads wait for locks"), "{text}");
    }

    #[test]
    fn ranks_in_the_same_situation_share_a_line() {
        let mut views = vec![rank(0, State::Finalized)];
        views.extend((1..100).map(|r| blocked(r, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(1))])));
        let text = report_at(2000, &views);
        assert!(text.contains("  rank 0: left by MPI_Finalize 2.0 s ago\n"), "{text}");
        assert!(text.contains("  ranks 1-99: MPI_Recv from rank 0, tag 1, on MPI_COMM_WORLD, for 2.0 s\n"), "{text}");
    }

    #[test]
    fn a_communicators_own_numbering_is_translated() {
        let view =
            WaitView { peer: Peer::Rank { rank: 0, world: 3 }, comm: "rows".into(), ..wait(Kind::Receive, 0, Some(1)) };
        assert_eq!(describe_wait("MPI_Recv", &view), "from rank 0 (world rank 3), tag 1, on rows");
    }

    #[test]
    fn who_has_left_is_counted() {
        let views = [pair()[0].clone(), rank(1, State::Finalized)];
        assert!(report_at(0, &views).contains("rank 0 (the other one has left) waits and nothing is under way"));
    }
}
