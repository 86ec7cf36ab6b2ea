//! Reduce and allreduce: each leader gets the combined operands of its host, and leaders combine these.
//!
//! Cost between h hosts, for n bytes: a reduction of n bytes among h ranks.

use std::sync::Arc;

use super::{Composition, Over, StageOperation};
use crate::buffer::Buffer;
use crate::hosts::Hosts;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

pub(crate) fn reduce(
    hosts: &Hosts,
    input: &Buffer,
    result: Option<&Buffer>,
    op: &Arc<Op>,
    root: usize,
) -> Result<Composition> {
    let leaders = hosts.leaders(Some(root));
    let (leader, root, leads, is_alone) = (leaders.leader, leaders.root, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    composition.reduction = Some((op.clone(), input.datatype.clone()));
    let mut combined = input.clone();
    if !is_alone {
        let partial = match result {
            Some(result) => Some(result.clone()),
            None if leads => Some(composition.elements_like(input)?),
            None => None,
        };
        combined = partial.clone().unwrap_or(combined);
        composition.add(Over::Host, StageOperation::Reduce { input: input.clone(), result: partial, root: leader });
    }
    if leads {
        composition.add(Over::Leaders, StageOperation::Reduce { input: combined, result: result.cloned(), root });
    }
    Ok(composition)
}

pub(crate) fn allreduce(hosts: &Hosts, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Composition {
    let leaders = hosts.leaders(None);
    let (root, leads, is_alone) = (leaders.leader, leaders.leads, leaders.is_alone());
    let mut composition = Composition::new(leaders);
    composition.reduction = Some((op.clone(), input.datatype.clone()));
    if !is_alone {
        let partial = leads.then(|| result.clone());
        composition.add(Over::Host, StageOperation::Reduce { input: input.clone(), result: partial, root });
    }
    if leads {
        let input = if is_alone { input } else { result };
        composition.add(Over::Leaders, StageOperation::Allreduce { input: input.clone(), result: result.clone() });
    }
    if !is_alone {
        composition.add(Over::Host, StageOperation::Bcast { buffer: result.clone(), root });
    }
    composition
}
