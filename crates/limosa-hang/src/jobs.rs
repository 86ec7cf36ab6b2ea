//! Jobs of one user that wait for each other: the jobs that a job waits for, and cycles over several jobs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use limosa_job::{Kind, Peer, RankView, State, WaitView};

use crate::hints::Hint;
use crate::verdict::{does_its_part, shortest_circle, targets};
use crate::words::short;

/// Another job, as its status board shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Other {
    /// Id of the job.
    pub id: u64,
    /// Its launcher and command, as text.
    pub title: String,
    /// Views of its ranks.
    pub views: Vec<RankView>,
}

/// The jobs that a job waits for, directly and indirectly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Id of the job itself.
    pub own: u64,
    /// Jobs whose status board is readable.
    pub seen: Vec<Other>,
    /// Ids of jobs whose status board is not readable; 0 stands for processes of several jobs.
    pub unseen: BTreeSet<u64>,
}

/// A rank of a job.
type Node = (u64, u32);

impl Neighbours {
    /// Finds the jobs that a job waits for. `look` reads the status board of the job with this id.
    pub fn find(own: u64, views: &[RankView], mut look: impl FnMut(u64) -> Option<Other>) -> Neighbours {
        let mut found = Neighbours { own, ..Neighbours::default() };
        let mut open: BTreeSet<u64> = awaited(views).collect();
        let mut known = BTreeSet::from([own]);
        while let Some(id) = open.pop_first() {
            if !known.insert(id) {
                continue;
            }
            match look(id) {
                Some(other) => {
                    open.extend(awaited(&other.views));
                    found.seen.push(other);
                }
                None => {
                    found.unseen.insert(id);
                }
            }
        }
        found
    }

    /// Returns all jobs with their ranks, the own one first.
    fn with<'a>(&'a self, views: &'a [RankView]) -> impl Iterator<Item = (u64, &'a [RankView])> {
        std::iter::once((self.own, views)).chain(self.seen.iter().map(|other| (other.id, &other.views[..])))
    }

    /// Describes the cycles over several jobs, and other waits for jobs.
    pub(crate) fn verdict(&self, views: &[RankView]) -> (Vec<String>, BTreeSet<Hint>) {
        let (mut findings, mut hints) = (Vec::new(), BTreeSet::new());
        let edges = self.edges(views);
        let mut named: BTreeSet<Node> = BTreeSet::new();
        let mut jobs: BTreeSet<u64> = BTreeSet::new();
        for start in edges.keys().copied().filter(|(job, _)| *job == self.own) {
            let circle = if named.contains(&start) { None } else { shortest_circle(&edges, start) };
            let Some(circle) = circle.filter(|circle| circle.iter().any(|(job, _)| *job != self.own)) else { continue };
            named.extend(&circle);
            let others: BTreeSet<u64> = circle.iter().map(|(job, _)| *job).filter(|job| *job != self.own).collect();
            let ring: Vec<String> = circle.iter().chain(circle.first()).map(|node| self.name(*node)).collect();
            let names: Vec<String> = others.iter().map(|job| short(*job)).collect();
            findings.push(format!(
                "ranks of this job and of job {} wait for each other in a circle: {}",
                names.join(" and job "),
                ring.join(" -> ")
            ));
            jobs.extend(others);
            hints.extend(self.hint(views, &circle));
        }
        for id in self.seen.iter().map(|other| other.id).filter(|id| !jobs.contains(id)) {
            findings.push(format!("job {} waits, too, and nothing is under way in it", short(id)));
        }
        (findings, hints)
    }

    /// Describes a rank in a cycle: its number, and the job if it is not the own one.
    fn name(&self, (job, rank): Node) -> String {
        if job == self.own { rank.to_string() } else { format!("{rank} of job {}", short(job)) }
    }

    /// Returns the wait-for graph.
    fn edges(&self, views: &[RankView]) -> BTreeMap<Node, BTreeSet<Node>> {
        let mut edges: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
        for (job, ranks) in self.with(views) {
            for view in ranks.iter().filter(|view| view.state == State::Running) {
                let waits = view.records.iter().flat_map(|record| record.waits.iter().map(move |wait| (record, wait)));
                for (record, wait) in waits {
                    let inside = targets(wait, view.rank, ranks.len() as u32).into_iter().map(|rank| (job, rank));
                    let wanted = inside.chain(self.outside(views, wait));
                    let open = wanted.filter_map(|node| Some((node, self.view(views, node)?)));
                    let open = open.filter(|(_, other)| other.state == State::Running);
                    let open = open.filter(|((theirs, _), other)| {
                        !does_its_part(record, wait, other, |peer| is_for((job, view.rank), *theirs, peer))
                    });
                    edges.entry((job, view.rank)).or_default().extend(open.map(|(node, _)| node));
                }
            }
        }
        edges
    }

    /// Returns the ranks of another job that a wait is for.
    fn outside(&self, views: &[RankView], wait: &WaitView) -> Vec<Node> {
        match wait.peer {
            Peer::Outside { job, member: Some((_, rank)) } => vec![(job, rank)],
            Peer::Outside { job, member: None } => {
                let theirs = self.with(views).find(|(id, _)| *id == job).map_or(&[][..], |(_, ranks)| ranks);
                theirs.iter().map(|view| (job, view.rank)).collect()
            }
            Peer::Any | Peer::Members | Peer::Rank { .. } => vec![],
        }
    }

    fn view<'a>(&'a self, views: &'a [RankView], (job, rank): Node) -> Option<&'a RankView> {
        let (_, ranks) = self.with(views).find(|(id, _)| *id == job)?;
        ranks.iter().find(|view| view.rank == rank)
    }

    /// Returns the remedy for a cycle, if all its ranks wait in the same way.
    fn hint(&self, views: &[RankView], circle: &[Node]) -> Option<Hint> {
        let ranks = circle.iter().filter_map(|node| self.view(views, *node));
        let waits = ranks.flat_map(|view| &view.records).flat_map(|record| &record.waits);
        let kinds: BTreeSet<Kind> = waits.map(|wait| wait.kind).collect();
        match kinds.into_iter().collect::<Vec<_>>()[..] {
            [Kind::Receive] => Some(Hint::ReceiveFirst),
            [Kind::Send] => Some(Hint::SendFirst),
            _ => None,
        }
    }
}

/// Returns the other jobs that some rank waits for.
fn awaited(views: &[RankView]) -> impl Iterator<Item = u64> {
    let waiting = views.iter().filter(|view| view.state == State::Running);
    let waits = waiting.flat_map(|view| &view.records).flat_map(|record| &record.waits);
    waits.filter_map(|wait| if let Peer::Outside { job, .. } = wait.peer { Some(job) } else { None })
}

/// Returns whether what a rank of job `theirs` waits for may be rank `own`.
fn is_for(own: Node, theirs: u64, peer: Peer) -> bool {
    match peer {
        Peer::Outside { member: Some(_), .. } if own.0 == theirs => false,
        Peer::Outside { job, member: Some((_, rank)) } => (job, rank) == own,
        Peer::Rank { world, .. } => own == (theirs, world),
        Peer::Outside { .. } => true,
        Peer::Any | Peer::Members => own.0 == theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{blocked, outside, rank, wait};

    const OWN: u64 = 0xaaaa_aaaa_0000_0001;
    const OTHER: u64 = 0xbbbb_bbbb_0000_0002;

    fn other(id: u64, views: Vec<RankView>) -> Other {
        Other { id, views, ..Other::default() }
    }

    fn findings(views: &[RankView], others: &[Other]) -> Vec<String> {
        let found = Neighbours::find(OWN, views, |id| others.iter().find(|other| other.id == id).cloned());
        found.verdict(views).0
    }

    #[test]
    fn two_receives_facing_each_other_are_a_circle_and_have_a_hint() {
        let views = [blocked(0, "MPI_Recv", vec![outside(Kind::Receive, OTHER, Some(1))])];
        let theirs = vec![
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![outside(Kind::Receive, OWN, Some(0))]),
        ];
        let others = [other(OTHER, theirs)];
        let found = Neighbours::find(OWN, &views, |id| others.iter().find(|other| other.id == id).cloned());
        let (findings, hints) = found.verdict(&views);
        assert_eq!(
            findings,
            ["ranks of this job and of job bbbbbbbb wait for each other in a circle: 0 -> 1 of job bbbbbbbb -> 0"]
        );
        assert_eq!(hints, BTreeSet::from([Hint::ReceiveFirst]));
    }

    #[test]
    fn a_circle_goes_through_as_many_jobs_as_it_needs() {
        let third = 0xcccc_cccc_0000_0003;
        let receives = |job: u64| vec![blocked(0, "MPI_Recv", vec![outside(Kind::Receive, job, Some(0))])];
        let found = findings(&receives(OTHER), &[other(OTHER, receives(third)), other(third, receives(OWN))]);
        assert_eq!(
            found,
            ["ranks of this job and of job bbbbbbbb and job cccccccc wait for each other in a circle: \
              0 -> 0 of job bbbbbbbb -> 0 of job cccccccc -> 0"]
        );
    }

    #[test]
    fn whoever_is_in_the_same_collective_is_not_waited_for() {
        let in_barrier = |r: u32, job: u64| blocked(r, "MPI_Barrier", vec![outside(Kind::Collective, job, None)]);
        let views = [in_barrier(0, OTHER)];
        let theirs = vec![in_barrier(0, OWN), blocked(1, "MPI_Recv", vec![outside(Kind::Receive, OWN, Some(0))])];
        let found = findings(&views, &[other(OTHER, theirs)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("in a circle: 0 -> 1 of job bbbbbbbb -> 0"), "{found:?}");
    }

    #[test]
    fn a_job_that_waits_for_itself_is_mentioned() {
        let views = [blocked(0, "MPI_Recv", vec![outside(Kind::Receive, OTHER, Some(0))])];
        let theirs = vec![
            blocked(0, "MPI_Recv", vec![wait(Kind::Receive, 1, Some(7))]),
            blocked(1, "MPI_Recv", vec![wait(Kind::Receive, 0, Some(7))]),
        ];
        let found = findings(&views, &[other(OTHER, theirs)]);
        assert_eq!(found, ["job bbbbbbbb waits, too, and nothing is under way in it"]);
    }

    #[test]
    fn jobs_that_cannot_be_seen_are_known() {
        let views = [
            blocked(0, "MPI_Recv", vec![outside(Kind::Receive, OTHER, Some(0))]),
            blocked(1, "MPI_Recv", vec![outside(Kind::Receive, 0, None)]),
            rank(2, State::Finalized),
        ];
        assert_eq!(Neighbours::find(OWN, &views, |_| None).unseen, BTreeSet::from([0, OTHER]));
    }
}
