//! Barrier: the members of a host signal their leader, leaders wait for each other, and each leader releases its host.
//!
//! Cost between h hosts: ceil(log2 h) a.

use super::{Composition, Over, StageOperation};
use crate::hosts::Hosts;
use crate::schedule::Schedule;

pub(crate) fn barrier(hosts: &Hosts) -> Composition {
    let leaders = hosts.leaders(None);
    let (root, leads, is_alone) = (leaders.leader, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    if !is_alone {
        composition.add(Over::Host, StageOperation::Arrive { root });
    }
    if leads {
        composition.add(Over::Leaders, StageOperation::Barrier);
    }
    if !is_alone {
        composition.add(Over::Host, StageOperation::Release { root });
    }
    composition
}

/// Plans signals from all other ranks to the root.
pub(super) fn arrive(s: &mut Schedule, root: usize) {
    if s.rank() != root {
        return s.signal(root);
    }
    (0..s.size()).filter(|&from| from != root).for_each(|from| s.receive_signal(from));
}

/// Plans signals from the root to all other ranks.
pub(super) fn release(s: &mut Schedule, root: usize) {
    if s.rank() != root {
        return s.receive_signal(root);
    }
    (0..s.size()).filter(|&to| to != root).for_each(|to| s.signal(to));
}
