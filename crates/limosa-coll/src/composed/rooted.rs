//! Broadcast, gather, scatter: the root leads its host, and each leader forwards the data of the other members of its
//! host.
//!
//! Cost between h hosts of m ranks, for a message, contributions or parts of n bytes: a broadcast among h ranks; a
//! gather or scatter of m n bytes among h ranks.

use super::{Composition, Over, StageOperation, packed};
use crate::buffer::{Blocks, Buffer};
use crate::hosts::Hosts;
use limosa_mpi::error::Result;

pub(crate) fn bcast(hosts: &Hosts, buffer: &Buffer, root: usize) -> Composition {
    let leaders = hosts.leaders(Some(root));
    let (leader, root, leads, is_alone) = (leaders.leader, leaders.root, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    if leads {
        composition.add(Over::Leaders, StageOperation::Bcast { buffer: buffer.clone(), root });
    }
    if !is_alone {
        composition.add(Over::Host, StageOperation::Bcast { buffer: buffer.clone(), root: leader });
    }
    composition
}

/// Composes a gather of `bytes` bytes each. The contributions of a host are packed on their way to the root's host.
pub(crate) fn gather(
    hosts: &Hosts,
    send: Option<&Buffer>,
    receive: Option<&Blocks>,
    root: usize,
    bytes: usize,
) -> Result<Composition> {
    let leaders = hosts.leaders(Some(root));
    let (here, leads, is_alone, at_root) = (hosts.here(), leaders.leads, leaders.is_alone(), hosts.is_at(root));
    let (leader, root, is_root_host) =
        (leaders.leader, leaders.root, leaders.ranks[leaders.root] == here[leaders.leader]);
    let receive = receive.filter(|_| at_root);
    let mut composition = Composition::new(leaders);
    // The contribution that this host's leader sends, or that the root copies to its place.
    let mut own = send.cloned();
    if !is_alone {
        let room = match receive {
            Some(receive) => Some(receive.subset(here)),
            None if leads => Some(packed(&mut composition, here.len(), bytes)?),
            None => None,
        };
        own = room.as_ref().filter(|_| !at_root).map(|room| room.run(0, here.len()));
        let even = !is_root_host || hosts.is_consecutive_here();
        composition.add(
            Over::Host,
            StageOperation::Gather { send: send.cloned(), receive: room, root: leader, most: bytes, even },
        );
    }
    if leads {
        let receive = receive.map(|receive| receive.joined(hosts.groups(), hosts.each())).transpose()?;
        composition.add(
            Over::Leaders,
            StageOperation::Gather {
                send: own,
                receive,
                root,
                most: hosts.most() * bytes,
                even: hosts.each().is_some(),
            },
        );
    }
    Ok(composition)
}

/// Composes a scatter of `bytes` bytes each. The parts of a host are packed on their way from the root's host.
pub(crate) fn scatter(
    hosts: &Hosts,
    send: Option<&Blocks>,
    receive: Option<&Buffer>,
    root: usize,
    bytes: usize,
) -> Result<Composition> {
    let leaders = hosts.leaders(Some(root));
    let (here, leads, is_alone, at_root) = (hosts.here(), leaders.leads, leaders.is_alone(), hosts.is_at(root));
    let (leader, root, is_root_host) =
        (leaders.leader, leaders.root, leaders.ranks[leaders.root] == here[leaders.leader]);
    let send = send.filter(|_| at_root);
    let mut composition = Composition::new(leaders);
    // The first destination of data from the root's host.
    let arriving = match send {
        Some(send) => Some(send.subset(here)),
        None if leads && !is_alone => Some(packed(&mut composition, here.len(), bytes)?),
        None => None,
    };
    if leads {
        let own = match &arriving {
            Some(arriving) if !at_root => Some(arriving.run(0, here.len())),
            _ if is_alone => receive.cloned(),
            _ => None,
        };
        let send = send.map(|send| send.joined(hosts.groups(), hosts.each())).transpose()?;
        composition.add(
            Over::Leaders,
            StageOperation::Scatter {
                send,
                receive: own,
                root,
                most: hosts.most() * bytes,
                even: hosts.each().is_some(),
            },
        );
    }
    if !is_alone {
        let even = !is_root_host || hosts.is_consecutive_here();
        composition.add(
            Over::Host,
            StageOperation::Scatter { send: arriving, receive: receive.cloned(), root: leader, most: bytes, even },
        );
    }
    Ok(composition)
}
