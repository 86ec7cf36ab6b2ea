//! The status boards of other jobs of the same user on this host, for the hang doctor: what their ranks wait for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use limosa_job::RankView;

use super::Job;
use crate::hang::jobs::{Neighbours, Other};
use crate::{procfs, running};

/// Time between searches for a job that was not found: a search looks at all processes.
const AGAIN: Duration = Duration::from_secs(5);

/// Where other jobs are.
#[derive(Default)]
pub(super) struct Launchers {
    found: BTreeMap<u64, u32>,
    missed: BTreeMap<u64, Instant>,
}

impl Launchers {
    /// What the board of the job with this id says; `None` if it cannot be seen, or has ranks on other hosts, whose
    /// threads cannot be asked.
    fn look(&mut self, id: u64) -> Option<Other> {
        let board_at = |launcher: u32| running::board_of(launcher).filter(|board| board.id() == id);
        let known = self.found.get(&id).copied();
        let mut place = known.and_then(|launcher| Some((launcher, board_at(launcher)?)));
        if place.is_none() && self.missed.get(&id).is_none_or(|at| at.elapsed() >= AGAIN) {
            place = procfs::processes().into_iter().find_map(|launcher| Some((launcher, board_at(launcher)?)));
        }
        let Some((launcher, board)) = place else {
            self.found.remove(&id);
            self.missed.entry(id).and_modify(refresh).or_insert_with(Instant::now);
            return None;
        };
        self.found.insert(id, launcher);
        self.missed.remove(&id);
        let command = procfs::command_line(launcher).unwrap_or_default();
        let title = format!("launcher {launcher}, {command}");
        (board.hosts() == 1).then(|| Other { id, title, views: board.views() })
    }
}

/// Counts from now again if the time is over.
fn refresh(at: &mut Instant) {
    if at.elapsed() >= AGAIN {
        *at = Instant::now();
    }
}

impl Job<'_> {
    /// The other jobs that ranks of this one wait for.
    pub(super) fn neighbours(&mut self, views: &[RankView]) -> Neighbours {
        Neighbours::find(self.board.id(), views, |id| self.launchers.look(id))
    }
}
