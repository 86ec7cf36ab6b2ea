//! Causes of a hang: the wait-for graph, its cycles, ranks missing from a call, messages without a matching receive.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use limosa_job::{Kind, LyingView, Peer, RankView, Record, State, WaitView};

use super::hints::Hint;
use super::waits::{describe, on};
use crate::words;

/// Causes of a hang.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// One sentence for each cycle, missing rank or mismatch.
    pub findings: Vec<String>,
    /// Remedies.
    pub hints: BTreeSet<Hint>,
}

impl Verdict {
    /// Adds a sentence, unless it is there already.
    fn find(&mut self, finding: String) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// Finds cycles, ranks that have left, mismatched calls, and messages without a matching receive.
pub fn verdict(views: &[RankView]) -> Verdict {
    let mut verdict = Verdict::default();
    who_has_left(views, &mut verdict);
    who_is_missing(views, &mut verdict);
    unreceived(views, &mut verdict);
    cycles(views, &mut verdict);
    tags(views, &mut verdict);
    wildcards(views, &mut verdict);
    verdict
}

/// Returns the call that started an awaited operation.
fn operation<'a>(record: &'a Record, wait: &'a WaitView) -> &'a str {
    if wait.started.is_empty() { &record.call } else { &wait.started }
}

/// Returns the ranks that this wait is certainly for.
pub(crate) fn targets(wait: &WaitView, own: u32, ranks: u32) -> Vec<u32> {
    // A communicator with as many members as the job has ranks contains all of them.
    let all = || if wait.members == ranks { Some((0, 1)) } else { None };
    match (wait.peer, wait.series.or_else(all)) {
        (Peer::Rank { world, .. }, _) => vec![world],
        (Peer::Members, Some((first, distance))) => {
            let member = |number: u32| first.wrapping_add(number.wrapping_mul(distance));
            (0..wait.members.min(ranks)).map(member).filter(|rank| *rank != own).collect()
        }
        (Peer::Members | Peer::Any | Peer::Outside { .. }, _) => vec![],
    }
}

/// Returns all waits of ranks that have not left: rank, record and wait.
fn waits(views: &[RankView]) -> impl Iterator<Item = (u32, &Record, &WaitView)> {
    let staying = views.iter().filter(|view| view.state == State::Running);
    staying.flat_map(|v| v.records.iter().flat_map(move |r| r.waits.iter().map(move |w| (v.rank, r, w))))
}

fn find(views: &[RankView], rank: u32) -> Option<&RankView> {
    views.get(rank as usize).filter(|view| view.rank == rank)
}

fn who_has_left(views: &[RankView], verdict: &mut Verdict) {
    let mut missed: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (own, _, wait) in waits(views) {
        for target in targets(wait, own, views.len() as u32) {
            if find(views, target).is_some_and(|v| matches!(v.state, State::Finalized | State::Exited)) {
                missed.entry(target).or_default().insert(own);
            }
        }
    }
    for (gone, waiting) in missed {
        let waiting: Vec<u32> = waiting.into_iter().collect();
        let verb = if waiting.len() == 1 { "waits" } else { "wait" };
        let how = find(views, gone).map_or("has left", how_it_left);
        verdict.find(format!("rank {gone} {how} while {} {verb} for it", words::ranks(&waiting)));
        verdict.hints.insert(Hint::BeforeTheEnd);
    }
}

/// Describes how a rank has left.
pub fn how_it_left(view: &RankView) -> &'static str {
    match view {
        RankView { finalized: true, .. } => "has left by MPI_Finalize",
        RankView { pid: 0, .. } => "has exited without MPI_Init",
        _ => "has exited without MPI_Finalize",
    }
}

fn its(ranks: &[u32]) -> &'static str {
    if ranks.len() == 1 { "its" } else { "their" }
}

/// Returns whether a member may have completed this collective before others have begun: a rank that only contributes,
/// or one that needs only a few contributions.
fn may_be_over_for_some(call: &str) -> bool {
    // In collectives of our Python package all members meet.
    let Some(verb) = call.strip_prefix("MPI_").map(str::to_ascii_lowercase) else { return false };
    let verb = verb.trim_end_matches("_c").trim_end_matches("_init");
    let one_sided = ["bcast", "scatter", "scatterv", "gather", "gatherv", "reduce", "scan", "exscan"];
    one_sided.contains(&verb) || verb.strip_prefix('i').is_some_and(|verb| one_sided.contains(&verb))
}

/// Finds ranks that a collective call waits for, but that wait elsewhere.
fn who_is_missing(views: &[RankView], verdict: &mut Verdict) {
    let mut calls: BTreeMap<(&str, u64), &WaitView> = BTreeMap::new();
    for (_, record, wait) in waits(views).filter(|(_, _, wait)| wait.kind == Kind::Collective) {
        calls.insert((operation(record, wait), wait.context), wait);
    }
    for ((call, context), wait) in calls {
        let inside: Vec<u32> = views.iter().filter(|view| is_in(view, call, context)).map(|view| view.rank).collect();
        let mut absent: BTreeSet<u32> = BTreeSet::new();
        for (own, _, wait) in waits(views).filter(|(_, r, w)| operation(r, w) == call && w.context == context) {
            absent.extend(targets(wait, own, views.len() as u32).into_iter().filter(|rank| !inside.contains(rank)));
        }
        // Ranks that are missing for the same reason share a sentence. Ranks that have left have one already.
        let mut reasons: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let absent_views = absent.iter().filter_map(|rank| find(views, *rank));
        for view in absent_views.filter(|view| view.state == State::Running) {
            let where_ = view.records.first().map_or("no call of the library".into(), describe);
            reasons.entry(where_).or_default().push(view.rank);
        }
        let (on, is_started) = (on(call, &wait.comm), !wait.started.is_empty());
        for (place, ranks) in &reasons {
            let (are, it) = if ranks.len() == 1 { ("is", "it") } else { ("are", "they") };
            let has = if ranks.len() == 1 { "has" } else { "have" };
            let wait = if ranks.len() == 1 { "waits" } else { "wait" };
            let (are, have) = if is_started { (has, "started ") } else { (are, "in ") };
            let or = if may_be_over_for_some(call) {
                format!(", or {has} done {} part of it", its(ranks))
            } else {
                "".into()
            };
            verdict.find(format!("{} {are} not {have}{call}{on}{or}; {it} {wait} in {place}", words::ranks(ranks)));
        }
        // The board does not list the members of a smaller communicator if their ranks are irregular.
        let is_listed = wait.series.is_some() || wait.members == views.len() as u32;
        let few = !is_listed && wait.peer == Peer::Members && (inside.len() as u32) < wait.members;
        if few {
            let (are, to) = if inside.len() == 1 { ("is", "has") } else { ("are", "have") };
            let what = if is_started { format!("{to} started") } else { format!("{are} in") };
            let ranks = words::ranks(&inside);
            verdict.find(format!("only {ranks} of the {} members of {} {what} {call}", wait.members, wait.comm));
        }
        if few || !reasons.is_empty() {
            verdict.hints.insert(Hint::SameOrder);
        }
    }
}

/// Returns whether a thread of the rank waits in this collective call, or for an operation that this call started, or
/// may do so. In some calls the root waits for something else, such as another group that connects.
fn is_in(view: &RankView, call: &str, context: u64) -> bool {
    let same = |record: &Record, wait: &WaitView| {
        let is_part = matches!(wait.kind, Kind::Collective | Kind::Connection);
        is_part && wait.context == context && operation(record, wait) == call
    };
    view.state == State::Running && view.records.iter().any(|r| r.more > 0 || r.waits.iter().any(|w| same(r, w)))
}

/// Finds messages that have arrived where a different one is awaited.
fn unreceived(views: &[RankView], verdict: &mut Verdict) {
    for view in views.iter().filter(|view| view.state == State::Running) {
        for record in &view.records {
            let receives: Vec<&WaitView> = record.waits.iter().filter(|wait| wait.kind == Kind::Receive).collect();
            for lying in record.lying.iter().filter(|_| !receives.is_empty()) {
                let finding = compare(view.rank, lying, &receives, &mut verdict.hints);
                verdict.find(finding);
            }
            if record.more_lying > 0 && !receives.is_empty() {
                verdict.find(format!("{} more messages lie unreceived at rank {}", record.more_lying, view.rank));
            }
        }
    }
}

/// Finds the difference between a message and the awaited ones.
fn compare(rank: u32, lying: &LyingView, receives: &[&WaitView], hints: &mut BTreeSet<Hint>) -> String {
    let LyingView { source, tag, .. } = *lying;
    let from = match lying.source_world {
        world if world == source => format!("rank {source}"),
        world => format!("rank {source} (world rank {world}) of {}", lying.comm),
    };
    let from_peer = |wait: &WaitView| match wait.peer {
        Peer::Rank { world, .. } => world == lying.source_world,
        Peer::Any | Peer::Members | Peer::Outside { .. } => true,
    };
    let with_tag = |wait: &WaitView| wait.tag.is_none_or(|wanted| wanted == tag);
    let here = |wait: &WaitView| wait.context == lying.context;
    if let Some(wait) = receives.iter().find(|wait| here(wait) && from_peer(wait)) {
        hints.insert(Hint::Tag);
        let wanted = wait.tag.map_or("another tag".into(), |tag| format!("tag {tag}"));
        return format!("tag {tag} from {from} lies unreceived at rank {rank} while {wanted} is awaited");
    }
    if let Some(wait) = receives.iter().find(|wait| !here(wait) && from_peer(wait) && with_tag(wait)) {
        hints.insert(Hint::Communicator);
        return format!(
            "tag {tag} from {from} lies unreceived at rank {rank} on {}, while a message on {} is awaited",
            lying.comm, wait.comm
        );
    }
    if let Some(Peer::Rank { rank: wanted, .. }) =
        receives.iter().find(|wait| here(wait) && with_tag(wait)).map(|wait| wait.peer)
    {
        hints.insert(Hint::Source);
        return format!("tag {tag} from {from} lies unreceived at rank {rank} while it is awaited from rank {wanted}");
    }
    format!("tag {tag} from {from} lies unreceived at rank {rank} on {}", lying.comm)
}

/// Finds cycles of ranks that wait for each other.
fn cycles(views: &[RankView], verdict: &mut Verdict) {
    let mut edges: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (own, record, wait) in waits(views) {
        let open = targets(wait, own, views.len() as u32).into_iter();
        let open = open.filter_map(|target| find(views, target)).filter(|view| view.state == State::Running);
        let is_own = |peer: Peer| if let Peer::Rank { world, .. } = peer { world == own } else { true };
        let open = open.filter(|view| !does_its_part(record, wait, view, is_own)).map(|view| view.rank);
        edges.entry(own).or_default().extend(open);
    }
    let mut named: BTreeSet<u32> = BTreeSet::new();
    for start in edges.keys().copied() {
        if named.contains(&start) {
            continue;
        }
        let Some(circle) = shortest_circle(&edges, start) else { continue };
        named.extend(&circle);
        if let [only] = circle[..] {
            verdict.find(format!("rank {only} waits for itself"));
            verdict.hints.insert(Hint::ToItself);
            continue;
        }
        let names: Vec<String> = circle.iter().chain(circle.first()).map(u32::to_string).collect();
        let ranks = words::ranks(&sorted(&circle));
        verdict.find(format!("{ranks} wait for each other in a circle: {}", names.join(" -> ")));
        let all = |kind: Kind| {
            let mut waits = waits(views).filter(|(own, _, _)| circle.contains(own)).peekable();
            waits.peek().is_some() && waits.all(|(_, _, wait)| wait.kind == kind)
        };
        if all(Kind::Receive) {
            verdict.hints.insert(Hint::ReceiveFirst);
        }
        if all(Kind::Send) {
            verdict.hints.insert(Hint::SendFirst);
        }
    }
}

/// Returns whether the other rank does what this wait needs from it: it is in the same collective call, or sends or
/// receives the message. `is_for_us`: whether the other rank waits, or may wait, for the waiting rank.
pub(crate) fn does_its_part(
    record: &Record,
    wait: &WaitView,
    other: &RankView,
    is_for_us: impl Fn(Peer) -> bool,
) -> bool {
    let meets = |theirs: &WaitView| {
        let tags_fit = theirs.tag.is_none() || wait.tag.is_none() || theirs.tag == wait.tag;
        is_for_us(theirs.peer) && tags_fit && theirs.context == wait.context
    };
    let with = |kind: Kind| other.records.iter().flat_map(|r| &r.waits).any(|w| w.kind == kind && meets(w));
    match wait.kind {
        Kind::Collective => is_in(other, operation(record, wait), wait.context),
        Kind::Send => with(Kind::Receive),
        Kind::Receive => with(Kind::Send),
        Kind::Other | Kind::Connection => false,
    }
}

/// Returns the shortest path from `start` back to itself, by breadth-first search.
pub(crate) fn shortest_circle<N: Copy + Ord>(edges: &BTreeMap<N, BTreeSet<N>>, start: N) -> Option<Vec<N>> {
    let mut from: BTreeMap<N, N> = BTreeMap::new();
    let mut front = vec![start];
    while !front.is_empty() {
        let mut next = Vec::new();
        for rank in front {
            for target in edges.get(&rank).into_iter().flatten() {
                if *target == start {
                    let mut way = vec![rank];
                    while let Some(before) = from.get(&way[way.len() - 1]).filter(|_| way[way.len() - 1] != start) {
                        way.push(*before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !from.contains_key(target) {
                    from.insert(*target, rank);
                    next.push(*target);
                }
            }
        }
        front = next;
    }
    None
}

fn sorted(ranks: &[u32]) -> Vec<u32> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks
}

/// Finds a sender and a receiver that name each other but use different tags or communicators.
fn tags(views: &[RankView], verdict: &mut Verdict) {
    for (sender, _, send) in waits(views).filter(|(_, _, wait)| wait.kind == Kind::Send) {
        let Peer::Rank { world: receiver, .. } = send.peer else { continue };
        let Some(view) = find(views, receiver).filter(|view| view.state == State::Running) else { continue };
        let receives = view.records.iter().flat_map(|r| &r.waits).filter(|w| w.kind == Kind::Receive);
        for receive in receives.filter(|w| matches!(w.peer, Peer::Rank { world, .. } if world == sender)) {
            if receive.context != send.context {
                verdict.find(format!(
                    "rank {sender} sends to rank {receiver} on {}, but that one receives on {}",
                    send.comm, receive.comm
                ));
                verdict.hints.insert(Hint::Communicator);
            } else if let (Some(sent), Some(wanted)) = (send.tag, receive.tag)
                && sent != wanted
            {
                verdict.find(format!(
                    "rank {sender} sends tag {sent} to rank {receiver}, but that one waits for tag {wanted} from it"
                ));
                verdict.hints.insert(Hint::Tag);
            }
        }
    }
}

fn wildcards(views: &[RankView], verdict: &mut Verdict) {
    let open = waits(views).filter(|(_, _, wait)| wait.kind == Kind::Receive && wait.peer == Peer::Any);
    let open: BTreeSet<u32> = open.map(|(own, _, _)| own).collect();
    if !open.is_empty() {
        let open: Vec<u32> = open.into_iter().collect();
        let verb = if open.len() == 1 { "waits" } else { "wait" };
        verdict.find(format!(
            "{} {verb} for a message from any rank, but no rank is left that could send one",
            words::ranks(&open)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{blocked, rank, wait};
    use proptest::prelude::*;

    fn findings(views: &[RankView]) -> Vec<String> {
        verdict(views).findings
    }

    #[test]
    fn who_left_early_is_named() {
        let mut views = [
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 2, None)]),
            blocked(1, "MPI_Barrier", vec![wait(Kind::Collective, 2, None)]),
            rank(2, State::Finalized),
        ];
        assert_eq!(findings(&views), ["rank 2 has left by MPI_Finalize while ranks 0, 1 wait for it"]);
        views[2] = RankView { state: State::Exited, ..views[2].clone() };
        assert_eq!(findings(&views), ["rank 2 has left by MPI_Finalize while ranks 0, 1 wait for it"]);
        views[2].finalized = false;
        assert_eq!(findings(&views), ["rank 2 has exited without MPI_Finalize while ranks 0, 1 wait for it"]);
        views[2].pid = 0;
        assert_eq!(findings(&views), ["rank 2 has exited without MPI_Init while ranks 0, 1 wait for it"]);
    }

    #[test]
    fn a_rank_missing_from_a_collective_call_is_named() {
        let barrier = |r, target| blocked(r, "MPI_Barrier", vec![wait(Kind::Collective, target, None)]);
        let views = [
            barrier(0, 1),
            barrier(1, 2),
            barrier(2, 3),
            blocked(3, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(1))]),
        ];
        assert_eq!(
            findings(&views),
            [
                "rank 3 is not in MPI_Barrier on MPI_COMM_WORLD; it waits in MPI_Recv from rank 0, tag 1, on MPI_COMM_WORLD"
            ],
            "the others do not wait for each other: they are all in the barrier"
        );
    }

    #[test]
    fn a_root_that_waits_for_a_connection_is_in_the_call() {
        let all = WaitView { peer: Peer::Members, members: 2, ..wait(Kind::Collective, 0, None) };
        let root = WaitView { peer: Peer::Any, ..wait(Kind::Connection, 0, None) };
        let views = [blocked(0, "MPI_Comm_accept", vec![root]), blocked(1, "MPI_Comm_accept", vec![all])];
        assert_eq!(findings(&views), Vec::<String>::new());
    }

    #[test]
    fn a_collective_call_that_needs_everybody_finds_the_missing_one_too() {
        let everybody = |r| {
            let all = WaitView { peer: Peer::Members, ..wait(Kind::Collective, 0, None) };
            blocked(r, "MPI_Allreduce", vec![all])
        };
        let views =
            [everybody(0), everybody(1), everybody(2), blocked(3, "MPI_Bcast", vec![wait(Kind::Collective, 0, None)])];
        let all = findings(&views);
        assert!(
            all.contains(
                &"rank 3 is not in MPI_Allreduce on MPI_COMM_WORLD; it waits in MPI_Bcast on MPI_COMM_WORLD, which \
                  needs rank 0"
                    .into()
            ),
            "{all:?}"
        );
    }

    #[test]
    fn members_missing_from_a_smaller_communicator_are_counted() {
        let wait = |members| WaitView {
            peer: Peer::Members,
            comm: "rows".into(),
            context: 8,
            members,
            ..wait(Kind::Collective, 0, None)
        };
        let views = [
            blocked(0, "MPI_Barrier", vec![wait(3)]),
            blocked(1, "MPI_Barrier", vec![wait(3)]),
            rank(2, State::Exited),
            rank(3, State::Exited),
        ];
        assert_eq!(findings(&views), ["only ranks 0, 1 of the 3 members of rows are in MPI_Barrier"]);
        let mut started = wait(2);
        started.started = "MPI_Ibarrier".into();
        let views = [
            blocked(0, "MPI_Waitall", vec![started.clone()]),
            blocked(1, "MPI_Wait", vec![started]),
            rank(2, State::Exited),
        ];
        assert_eq!(findings(&views), [""; 0], "both wait for the same, whatever the call");
    }

    #[test]
    fn a_member_missing_from_a_smaller_communicator_is_named() {
        let column = WaitView {
            peer: Peer::Members,
            comm: "column".into(),
            context: 8,
            members: 2,
            series: Some((1, 2)),
            ..wait(Kind::Collective, 0, None)
        };
        let mut views = [
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(4))]),
            blocked(1, "MPI_Barrier", vec![column]),
            blocked(2, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(4))]),
            blocked(3, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(4))]),
        ];
        let found = findings(&views);
        let sentence =
            "rank 3 is not in MPI_Barrier on column; it waits in MPI_Recv from rank 1, tag 4, on MPI_COMM_WORLD";
        assert!(found.iter().any(|finding| finding == sentence), "{found:?}");
        views[3] = rank(3, State::Finalized);
        assert!(findings(&views).contains(&"rank 3 has left by MPI_Finalize while rank 1 waits for it".into()));
    }

    #[test]
    fn ranks_missing_for_the_same_reason_share_a_sentence() {
        let all = WaitView { peer: Peer::Members, members: 6, ..wait(Kind::Collective, 0, None) };
        let mut views = vec![blocked(0, "MPI_Barrier", vec![all])];
        views.extend((1..6).map(|r| blocked(r, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(1))])));
        assert_eq!(
            findings(&views)[0],
            "ranks 1-5 are not in MPI_Barrier on MPI_COMM_WORLD; they wait in MPI_Recv from rank 0, tag 1, on \
             MPI_COMM_WORLD"
        );
    }

    #[test]
    fn tags_and_communicators_that_do_not_match_are_named() {
        let views = [
            blocked(0, "MPI_Send", vec![wait(Kind::Send, 1, Some(3))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(4))]),
        ];
        assert!(
            findings(&views).contains(&"rank 0 sends tag 3 to rank 1, but that one waits for tag 4 from it".into())
        );
        let other = WaitView { context: 8, comm: "rows".into(), ..wait(Kind::Receive, 0, Some(3)) };
        let views = [views[0].clone(), blocked(1, "MPI_Recv", vec![other])];
        assert!(
            findings(&views)
                .contains(&"rank 0 sends to rank 1 on MPI_COMM_WORLD, but that one receives on rows".into())
        );
    }

    #[test]
    fn a_rank_may_wait_for_itself_or_for_anyone() {
        assert_eq!(
            findings(&[blocked(0, "MPI_Ssend", vec![wait(Kind::Send, 0, Some(0))])]),
            ["rank 0 waits for itself"]
        );
        let any = WaitView { peer: Peer::Any, ..wait(Kind::Receive, 0, None) };
        assert_eq!(
            findings(&[blocked(0, "MPI_Recv", vec![any])]),
            ["rank 0 waits for a message from any rank, but no rank is left that could send one"]
        );
    }

    #[test]
    fn members_of_one_collective_call_do_not_wait_for_each_other() {
        let all = |members| WaitView { peer: Peer::Members, members, ..wait(Kind::Collective, 0, None) };
        let mut views: Vec<RankView> = (0..64).map(|r| blocked(r, "MPI_Barrier", vec![all(64)])).collect();
        assert_eq!(findings(&views), [""; 0]);
        views[5] = blocked(5, "MPI_Recv", vec![WaitView { members: 64, ..wait(Kind::Receive, 6, Some(1)) }]);
        let found = findings(&views);
        assert!(
            found[0].starts_with("rank 5 is not in MPI_Barrier on MPI_COMM_WORLD; it waits in MPI_Recv"),
            "{found:?}"
        );
        assert_eq!(found[1..], ["ranks 5, 6 wait for each other in a circle: 5 -> 6 -> 5"]);
    }

    #[test]
    fn whoever_does_its_part_is_not_waited_for() {
        let views = [
            blocked(0, "MPI_Ssend", vec![wait(Kind::Send, 1, Some(3))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(3))]),
        ];
        assert_eq!(findings(&views), [""; 0], "they are about to meet");
    }

    #[test]
    fn collectives_in_the_background_have_the_names_of_the_calls_that_started_them() {
        let started = |r, call: &str| {
            let one = WaitView { started: call.into(), members: 2, ..wait(Kind::Collective, 0, None) };
            blocked(r, "MPI_Wait", vec![WaitView { peer: Peer::Members, ..one }])
        };
        let all = findings(&[started(0, "MPI_Ibarrier"), started(1, "MPI_Ibcast")]);
        assert_eq!(
            all[0],
            "rank 1 has not started MPI_Ibarrier on MPI_COMM_WORLD; it waits in MPI_Wait for MPI_Ibcast on \
             MPI_COMM_WORLD, which needs all other ranks"
        );
        assert!(all[1].starts_with("rank 0 has not started MPI_Ibcast"), "{all:?}");
    }

    fn with_lying(mut view: RankView, source: u32, tag: i32, context: u64) -> RankView {
        let comm = if context == 2 { "MPI_COMM_WORLD" } else { "rows" }.into();
        view.records[0].lying.push(LyingView { source, source_world: source, tag, bytes: 8, context, comm });
        view
    }

    #[test]
    fn messages_that_lie_unreceived_are_compared_with_what_is_awaited() {
        let receive = || blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(5))]);
        for (source, tag, context, sentence, hint) in [
            (1, 6, 2, "tag 6 from rank 1 lies unreceived at rank 0 while tag 5 is awaited", Some(Hint::Tag)),
            (
                2,
                5,
                2,
                "tag 5 from rank 2 lies unreceived at rank 0 while it is awaited from rank 1",
                Some(Hint::Source),
            ),
            (
                1,
                5,
                8,
                "tag 5 from rank 1 lies unreceived at rank 0 on rows, while a message on MPI_COMM_WORLD is awaited",
                Some(Hint::Communicator),
            ),
            (2, 7, 8, "tag 7 from rank 2 lies unreceived at rank 0 on rows", None),
        ] {
            let verdict = verdict(&[with_lying(receive(), source, tag, context)]);
            assert_eq!(verdict.findings, [sentence]);
            assert_eq!(verdict.hints.into_iter().next(), hint);
        }
        let mut many = with_lying(receive(), 1, 6, 2);
        many.records[0].more_lying = 9;
        assert_eq!(findings(&[many])[1], "9 more messages lie unreceived at rank 0");
        let barrier = blocked(0, "MPI_Barrier", vec![WaitView { members: 1, ..wait(Kind::Collective, 0, None) }]);
        assert_eq!(findings(&[with_lying(barrier, 1, 6, 2)]), [""; 0], "no message is awaited");
    }

    proptest! {
        #[test]
        fn a_circle_is_found_exactly_when_there_is_one(
            edges in proptest::collection::btree_map(
                0u32..6,
                proptest::collection::btree_set(0u32..6, 0..4),
                0..6,
            ),
        ) {
            for start in 0..6 {
                // Oracle: the nodes reachable from `start` in any number of steps.
                let mut reached: BTreeSet<u32> = edges.get(&start).cloned().unwrap_or_default();
                for _ in 0..6 {
                    let more: Vec<u32> =
                        reached.iter().flat_map(|r| edges.get(r).into_iter().flatten().copied()).collect();
                    reached.extend(more);
                }
                match shortest_circle(&edges, start) {
                    None => prop_assert!(!reached.contains(&start)),
                    Some(way) => {
                        prop_assert_eq!(way[0], start);
                        for (i, rank) in way.iter().enumerate() {
                            prop_assert!(edges[rank].contains(&way[(i + 1) % way.len()]));
                        }
                        prop_assert_eq!(way.iter().collect::<BTreeSet<_>>().len(), way.len());
                    }
                }
            }
        }
    }
}
