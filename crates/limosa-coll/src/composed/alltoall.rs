//! Alltoall: each leader collects the blocks that its host sends, leaders exchange the blocks between their hosts, and
//! each leader scatters the blocks that have arrived for its host.
//!
//! Cost between h hosts of m ranks, for blocks of n bytes: an exchange of m m n bytes among h ranks, and p m n bytes in
//! and out of each leader inside its host. Two hosts exchange one message each way instead of m m, which pays for short
//! blocks.

use super::{Composition, Over, StageOperation, packed};
use crate::buffer::Blocks;
use crate::hosts::Hosts;
use limosa_mpi::error::Result;

/// Blocks of `bytes` bytes each. `send` is `None` for `MPI_IN_PLACE`.
pub(crate) fn alltoall(hosts: &Hosts, send: Option<&Blocks>, receive: &Blocks, bytes: usize) -> Result<Composition> {
    let leaders = hosts.leaders(None);
    let (here, root, leads) = (hosts.here(), leaders.leader, leaders.leads);
    let size = hosts.all().len();
    let most = size.saturating_mul(bytes);
    let mut composition = Composition::new(leaders);
    // Blocks of each rank here for each rank, and blocks for each rank here from each rank.
    let (mut leaving, mut arriving) = (None, None);
    if leads {
        leaving = Some(packed(&mut composition, here.len() * size, bytes)?);
        arriving = Some(packed(&mut composition, here.len() * size, bytes)?);
    }
    let rows = |blocks: &Option<Blocks>| blocks.as_ref().map(|blocks| blocks.grouped(size));
    let own = Some(send.unwrap_or(receive).run(0, size));
    composition.add(Over::Host, StageOperation::Gather { send: own, receive: rows(&leaving), root, most, even: true });
    if let (Some(leaving), Some(arriving)) = (&leaving, &arriving) {
        // Both sides have the blocks between two hosts by senders, then by receivers.
        let place = |row: usize, column: u32| (row * size) as u32 + column;
        let to = |there: &[u32]| -> Vec<u32> {
            (0..here.len()).flat_map(|row| there.iter().map(move |rank| place(row, *rank))).collect()
        };
        let from = |there: &[u32]| -> Vec<u32> {
            there.iter().flat_map(|rank| (0..here.len()).map(move |row| place(row, *rank))).collect()
        };
        let sides = [hosts.groups().map(to).collect::<Vec<_>>(), hosts.groups().map(from).collect()];
        let [send, receive] = sides.each_ref().map(|side| side.iter().map(|group| &**group));
        let (send, receive) = (leaving.joined(send, None)?, arriving.joined(receive, None)?);
        composition.add(Over::Leaders, StageOperation::Alltoall { send, receive });
    }
    let own = Some(receive.run(0, size));
    composition
        .add(Over::Host, StageOperation::Scatter { send: rows(&arriving), receive: own, root, most, even: true });
    Ok(composition)
}
