//! Allgather: each leader gathers the contributions of its host in their final places, leaders exchange them, and each
//! leader broadcasts the whole on its host.
//!
//! Cost between h hosts, for p contributions of n bytes: an allgather of p/h n bytes among h ranks.

use super::{Composition, Over, StageOperation};
use crate::buffer::{Blocks, Buffer};
use crate::hosts::Hosts;
use limosa_mpi::error::Result;

pub(crate) fn allgather(hosts: &Hosts, send: Option<&Buffer>, receive: &Blocks) -> Result<Composition> {
    let leaders = hosts.leaders(None);
    let (here, root, leads, is_alone) = (hosts.here(), leaders.leader, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    let mut own = send.cloned();
    if !is_alone {
        let most = here.iter().map(|rank| receive.bytes(*rank as usize)).max().unwrap_or(0);
        let even = receive.are_even() && hosts.is_consecutive_here();
        // A leader's contribution may be in place; its senders' contributions then arrive beside it.
        let send = if leads { own.take() } else { Some(own.take().unwrap_or_else(|| receive.of(hosts.rank()))) };
        let room = leads.then(|| receive.subset(here));
        composition.add(Over::Host, StageOperation::Gather { send, receive: room, root, most, even });
    }
    if leads {
        let receive = receive.joined(hosts.groups(), hosts.each())?;
        composition.add(Over::Leaders, StageOperation::Allgather { send: own, receive });
    }
    if !is_alone {
        composition.add(Over::Host, StageOperation::Bcast { buffer: receive.together(&hosts.all())?, root });
    }
    Ok(composition)
}
