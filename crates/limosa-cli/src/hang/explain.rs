//! The explanation of a hang: the wait-for graph, its cycles, and the ranks that are missing from a call.

use std::collections::{BTreeMap, BTreeSet};

use limosa_job::{Kind, Peer, RankView, Record, State, WaitView};

use crate::message;

/// Most lines of the graph that are shown.
const MOST_LINES: usize = 64;

/// Why a job hangs.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// One sentence for each cycle, missing rank or mismatch.
    pub findings: Vec<String>,
    /// What to do about it.
    pub hints: Vec<&'static str>,
}

/// Looks for cycles, for ranks that have left, and for calls that do not fit together.
pub fn verdict(views: &[RankView]) -> Verdict {
    let mut findings = Vec::new();
    let mut hints = BTreeSet::new();
    who_has_left(views, &mut findings, &mut hints);
    who_is_missing(views, &mut findings, &mut hints);
    cycles(views, &mut findings, &mut hints);
    tags(views, &mut findings, &mut hints);
    wildcards(views, &mut findings);
    Verdict { findings, hints: hints.into_iter().collect() }
}

/// The whole report. `place` gives the source line of a rank's thread, where known.
pub fn report(now_ns: u64, views: &[RankView], place: impl Fn(u32, u32) -> Option<String>, notes: &[String]) -> String {
    let blocked: Vec<u32> = views.iter().filter(|v| v.is_blocked()).map(|v| v.rank).collect();
    let left = views.len() - blocked.len();
    let others = match left {
        0 => String::new(),
        1 => " (the other one has left)".into(),
        n => format!(" (the other {n} have left)"),
    };
    let verb = if blocked.len() == 1 { "waits" } else { "wait" };
    let mut text =
        format!("limosa: this job hangs: {}{others} {verb} and nothing is under way\n", message::ranks(&blocked));

    // Ranks in the same situation share a line.
    let mut lines: Vec<(Situation, Vec<u32>)> = Vec::new();
    for view in views {
        for situation in situations(view, &place) {
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
        let since = message::duration(now_ns.saturating_sub(situation.since_ns) as f64 / 1e9);
        text.push_str(&format!("  {}: {}, for {since}\n", message::ranks(ranks), situation.what));
        if let Some(place) = &situation.place {
            text.push_str(&format!("      at {place}\n"));
        }
    }
    if lines.len() > MOST_LINES {
        text.push_str(&format!("  and {} more\n", lines.len() - MOST_LINES));
    }
    let verdict = verdict(views);
    for finding in &verdict.findings {
        text.push_str(&format!("limosa: {finding}\n"));
    }
    for hint in verdict.hints.iter().map(|hint| (*hint).to_owned()).chain(notes.iter().cloned()) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

/// What a rank, or one of its threads, is doing.
struct Situation {
    what: String,
    place: Option<String>,
    since_ns: u64,
}

/// What a rank is doing, one entry for each recorded thread.
fn situations(view: &RankView, place: &impl Fn(u32, u32) -> Option<String>) -> Vec<Situation> {
    let whole = |what: &str| vec![Situation { what: what.into(), place: None, since_ns: view.state_since_ns }];
    match view.state {
        State::Finalized => whole("has left by MPI_Finalize"),
        State::Exited => whole("has exited"),
        _ if view.records.is_empty() => whole("waits inside the library"),
        _ => {
            let situation =
                |r: &Record| Situation { what: describe(r), place: place(view.rank, r.thread), since_ns: r.since_ns };
            view.records.iter().map(situation).collect()
        }
    }
}

/// A record in words: `MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD`.
pub fn describe(record: &Record) -> String {
    let mut parts: Vec<String> = record.waits.iter().map(describe_wait).collect();
    if record.more > 0 {
        parts.push(format!("{} more", record.more));
    }
    let joint = if record.all { " and " } else { " or " };
    match parts.len() {
        0 => record.call.clone(),
        _ => format!("{} {}", record.call, parts.join(joint)),
    }
}

fn describe_wait(wait: &WaitView) -> String {
    let tag = match (wait.kind, wait.tag) {
        (Kind::Collective, _) => return format!("on {}, which {}", wait.comm, peer(wait)),
        (Kind::Other, None) => String::new(),
        (_, Some(tag)) => format!(", tag {tag}"),
        (_, None) => ", any tag".into(),
    };
    format!("{}{tag}, on {}", peer(wait), wait.comm)
}

/// The peer of a wait, in words.
pub fn peer(wait: &WaitView) -> String {
    let word = match wait.kind {
        Kind::Receive => "from",
        Kind::Send => "to",
        Kind::Collective => "needs",
        Kind::Other => "waits for",
    };
    match wait.peer {
        Peer::Any => format!("{word} any rank"),
        Peer::Members => format!("{word} all other ranks"),
        Peer::Rank { rank, world } if rank == world => format!("{word} rank {rank}"),
        Peer::Rank { rank, world } => format!("{word} rank {rank} (world rank {world})"),
    }
}

/// The ranks that this wait is certainly for.
fn targets(wait: &WaitView, own: u32, ranks: u32) -> Vec<u32> {
    match wait.peer {
        Peer::Rank { world, .. } => vec![world],
        // All ranks of the job are members of a communicator that has as many.
        Peer::Members if wait.members == ranks => (0..ranks).filter(|rank| *rank != own).collect(),
        Peer::Members | Peer::Any => vec![],
    }
}

/// All waits of blocked ranks: who, in which record, for what.
fn waits(views: &[RankView]) -> impl Iterator<Item = (u32, &Record, &WaitView)> {
    views
        .iter()
        .filter(|v| v.is_blocked())
        .flat_map(|v| v.records.iter().flat_map(move |r| r.waits.iter().map(move |w| (v.rank, r, w))))
}

fn find(views: &[RankView], rank: u32) -> Option<&RankView> {
    views.get(rank as usize).filter(|view| view.rank == rank)
}

fn who_has_left(views: &[RankView], findings: &mut Vec<String>, hints: &mut BTreeSet<&'static str>) {
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
        findings.push(format!("rank {gone} has left by MPI_Finalize while {} {verb} for it", message::ranks(&waiting)));
        hints.insert(
            "every message needs a send and a receive, and every collective call all ranks of its communicator, before \
             MPI_Finalize",
        );
    }
}

/// Ranks that are waited for in a collective call but wait somewhere else.
fn who_is_missing(views: &[RankView], findings: &mut Vec<String>, hints: &mut BTreeSet<&'static str>) {
    let mut calls: BTreeMap<(&str, u64), &WaitView> = BTreeMap::new();
    for (_, record, wait) in waits(views).filter(|(_, _, wait)| wait.kind == Kind::Collective) {
        calls.insert((&record.call, wait.context), wait);
    }
    for ((call, context), wait) in calls {
        let inside: Vec<u32> = views.iter().filter(|view| is_in(view, call, context)).map(|view| view.rank).collect();
        let mut absent: BTreeSet<u32> = BTreeSet::new();
        for (own, _, wait) in waits(views).filter(|(_, record, wait)| record.call == call && wait.context == context) {
            absent.extend(targets(wait, own, views.len() as u32).into_iter().filter(|rank| !inside.contains(rank)));
        }
        // Ranks that are missing for the same reason share a sentence. Ranks that have left already have one.
        let mut reasons: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for view in absent.iter().filter_map(|rank| find(views, *rank)).filter(|view| view.is_blocked()) {
            reasons
                .entry(view.records.first().map(describe).unwrap_or_else(|| "another call".into()))
                .or_default()
                .push(view.rank);
        }
        for (place, ranks) in &reasons {
            let (are, wait_) = if ranks.len() == 1 { ("is", "it waits") } else { ("are", "they wait") };
            findings.push(format!(
                "{} {are} not in {call} on {}; {wait_} in {place}",
                message::ranks(ranks),
                wait.comm
            ));
        }
        // The board does not list the members of a smaller communicator.
        let few = absent.is_empty() && wait.peer == Peer::Members && (inside.len() as u32) < wait.members;
        if few {
            let text = format!(
                "only {} of the {} members of {} are in {call}",
                message::ranks(&inside),
                wait.members,
                wait.comm
            );
            findings.push(if inside.len() == 1 { text.replace(" are in ", " is in ") } else { text });
        }
        if few || !reasons.is_empty() {
            hints.insert("all ranks of a communicator must make the same collective calls in the same order");
        }
    }
}

/// True if a thread of the rank waits in this collective call, or for one on the same communicator that it has started
/// before.
fn is_in(view: &RankView, call: &str, context: u64) -> bool {
    let started_before = |name: &str| name.starts_with("MPI_Wait");
    let same = |r: &Record| r.call == call || started_before(&r.call) || started_before(call);
    view.is_blocked()
        && view
            .records
            .iter()
            .any(|r| same(r) && r.waits.iter().any(|w| w.kind == Kind::Collective && w.context == context))
}

/// Circles of ranks that wait for each other.
fn cycles(views: &[RankView], findings: &mut Vec<String>, hints: &mut BTreeSet<&'static str>) {
    let mut edges: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (own, _, wait) in waits(views) {
        let blocked = targets(wait, own, views.len() as u32)
            .into_iter()
            .filter(|t| find(views, *t).is_some_and(RankView::is_blocked));
        edges.entry(own).or_default().extend(blocked);
    }
    let mut named: BTreeSet<u32> = BTreeSet::new();
    for start in edges.keys().copied() {
        if named.contains(&start) {
            continue;
        }
        let Some(circle) = shortest_circle(&edges, start) else { continue };
        named.extend(&circle);
        if let [only] = circle[..] {
            findings.push(format!("rank {only} waits for itself"));
            hints.insert("a rank that sends to itself needs a receive that is posted before, or MPI_Sendrecv");
            continue;
        }
        let names: Vec<String> = circle.iter().chain(circle.first()).map(u32::to_string).collect();
        findings.push(format!(
            "{} wait for each other in a circle: {}",
            message::ranks(&sorted(&circle)),
            names.join(" -> ")
        ));
        let all = |kind: Kind| {
            let mut waits = waits(views).filter(|(own, _, _)| circle.contains(own)).peekable();
            waits.peek().is_some() && waits.all(|(_, _, wait)| wait.kind == kind)
        };
        if all(Kind::Receive) {
            hints.insert("each of them receives before it sends: let one send first, or use MPI_Sendrecv or MPI_Irecv");
        }
        if all(Kind::Send) {
            hints.insert(
                "each of them sends before it receives, which large messages cannot survive: use MPI_Sendrecv, or \
                 MPI_Isend or MPI_Irecv",
            );
        }
    }
}

/// The shortest way from `start` back to itself, found by breadth.
fn shortest_circle(edges: &BTreeMap<u32, BTreeSet<u32>>, start: u32) -> Option<Vec<u32>> {
    let mut from: BTreeMap<u32, u32> = BTreeMap::new();
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

/// A sender and a receiver that name each other but use different tags or communicators.
fn tags(views: &[RankView], findings: &mut Vec<String>, hints: &mut BTreeSet<&'static str>) {
    for (sender, _, send) in waits(views).filter(|(_, _, wait)| wait.kind == Kind::Send) {
        let Peer::Rank { world: receiver, .. } = send.peer else { continue };
        let Some(view) = find(views, receiver).filter(|v| v.is_blocked()) else { continue };
        let receives = view.records.iter().flat_map(|r| &r.waits).filter(|w| w.kind == Kind::Receive);
        for receive in receives.filter(|w| matches!(w.peer, Peer::Rank { world, .. } if world == sender)) {
            if receive.context != send.context {
                findings.push(format!(
                    "rank {sender} sends to rank {receiver} on {}, but that one receives on {}",
                    send.comm, receive.comm
                ));
                hints.insert("a message is received only on the communicator that it was sent on");
            } else if let (Some(sent), Some(wanted)) = (send.tag, receive.tag)
                && sent != wanted
            {
                findings.push(format!(
                    "rank {sender} sends tag {sent} to rank {receiver}, but that one waits for tag {wanted} from it"
                ));
                hints.insert("a message is received only with the tag that it was sent with, or with MPI_ANY_TAG");
            }
        }
    }
}

fn wildcards(views: &[RankView], findings: &mut Vec<String>) {
    let open: BTreeSet<u32> = waits(views)
        .filter(|(_, _, wait)| wait.kind == Kind::Receive && wait.peer == Peer::Any)
        .map(|(own, _, _)| own)
        .collect();
    if !open.is_empty() {
        let open: Vec<u32> = open.into_iter().collect();
        let verb = if open.len() == 1 { "waits" } else { "wait" };
        findings.push(format!(
            "{} {verb} for a message from any rank, but nobody is left who could send one",
            message::ranks(&open)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::tests::{MS, blocked, rank, wait};
    use super::*;
    use proptest::prelude::*;

    fn findings(views: &[RankView]) -> Vec<String> {
        verdict(views).findings
    }

    #[test]
    fn two_receives_facing_each_other_are_a_circle() {
        let views = [
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(7))]),
        ];
        let verdict = verdict(&views);
        assert_eq!(verdict.findings, ["ranks 0, 1 wait for each other in a circle: 0 -> 1 -> 0"]);
        assert!(verdict.hints[0].contains("receives before it sends"));
        let place = |rank: u32, _| (rank == 1).then(|| "ring.py:12 in exchange".to_owned());
        assert_eq!(
            report(1500 * MS, &views, place, &[]),
            "limosa: this job hangs: ranks 0, 1 wait and nothing is under way\n\
             \x20 rank 0: MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD, for 1.5 s\n\
             \x20 rank 1: MPI_Recv from rank 0, tag 7, on MPI_COMM_WORLD, for 1.5 s\n      at ring.py:12 in exchange\n\
             limosa: ranks 0, 1 wait for each other in a circle: 0 -> 1 -> 0\n\
             hint: each of them receives before it sends: let one send first, or use MPI_Sendrecv or MPI_Irecv\n"
        );
    }

    #[test]
    fn who_left_early_is_named() {
        let views = [
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 2, None)]),
            blocked(1, "MPI_Barrier", vec![wait(Kind::Collective, 2, None)]),
            rank(2, State::Finalized),
        ];
        assert_eq!(findings(&views), ["rank 2 has left by MPI_Finalize while ranks 0, 1 wait for it"]);
        assert!(report(0, &views, |_, _| None, &[]).contains("ranks 0, 1 (the other one has left) wait"));
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
        let all = findings(&views);
        assert_eq!(
            all[0],
            "rank 3 is not in MPI_Barrier on MPI_COMM_WORLD; it waits in MPI_Recv from rank 0, tag 1, on MPI_COMM_WORLD"
        );
        assert_eq!(all[1], "ranks 0-3 wait for each other in a circle: 0 -> 1 -> 2 -> 3 -> 0");
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
        let views =
            [blocked(0, "MPI_Barrier", vec![wait(2)]), blocked(1, "MPI_Wait", vec![wait(2)]), rank(2, State::Exited)];
        assert_eq!(findings(&views), [""; 0], "a collective that was started before may be the same");
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
            ["rank 0 waits for a message from any rank, but nobody is left who could send one"]
        );
    }

    #[test]
    fn ranks_in_the_same_situation_share_a_line() {
        let mut views = vec![rank(0, State::Finalized)];
        views.extend((1..100).map(|r| blocked(r, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(1))])));
        let text = report(2000 * MS, &views, |_, _| None, &[]);
        assert!(text.contains("  ranks 1-99: MPI_Recv from rank 0, tag 1, on MPI_COMM_WORLD, for 2.0 s\n"), "{text}");
    }

    #[test]
    fn a_communicators_own_numbering_is_translated() {
        let view =
            WaitView { peer: Peer::Rank { rank: 0, world: 3 }, comm: "rows".into(), ..wait(Kind::Receive, 0, Some(1)) };
        assert_eq!(describe_wait(&view), "from rank 0 (world rank 3), tag 1, on rows");
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
                // Oracle: who can be reached from `start` in any number of steps.
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
