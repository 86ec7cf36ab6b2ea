//! Barrier: the members of a host tell their leader, leaders wait for each other, and each tells its host.
//!
//! Cost between h hosts: ceil(log2 h) a.

use super::{Composition, Over, Part};
use crate::hosts::Hosts;
use crate::schedule::Schedule;

pub(crate) fn barrier(hosts: &Hosts) -> Composition {
    let leaders = hosts.leaders(None);
    let (root, leads, is_alone) = (leaders.leader, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    if !is_alone {
        composition.add(Over::Host, Part::Arrive { root });
    }
    if leads {
        composition.add(Over::Leaders, Part::Barrier);
    }
    if !is_alone {
        composition.add(Over::Host, Part::Release { root });
    }
    composition
}

/// All others tell the root that they are here.
pub(super) fn arrive(s: &mut Schedule, root: usize) {
    if s.rank() != root {
        return s.signal(root);
    }
    (0..s.size()).filter(|&from| from != root).for_each(|from| s.receive_signal(from));
}

/// The root tells all others that it is here.
pub(super) fn release(s: &mut Schedule, root: usize) {
    if s.rank() != root {
        return s.receive_signal(root);
    }
    (0..s.size()).filter(|&to| to != root).for_each(|to| s.signal(to));
}
