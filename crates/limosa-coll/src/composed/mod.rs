//! Collectives composed of collectives over subgroups: inside each host, and between one leader per host.
//!
//! A composed algorithm is described once, as the *stages* of a rank. Each stage is an operation over the members of
//! its host or over the leaders. Two executors run it:
//!
//! - [`Composition::run`], for blocking calls, runs stages inside the host in memory that its members share
//!   ([`HostGroup`]), if they have any and the table selects it, and stages between leaders as schedules;
//! - [`Composition::into_schedule`], for calls in the background, plans all stages as one schedule.
//!
//! Contract
//! - All ranks of a host have the same stages over it in the same order, and all leaders the same between them. The
//!   table selects the algorithm of a stage, by what all ranks of the stage know.
//! - Between two hosts, only their leaders exchange messages.
//! - Reductions combine first inside hosts, then hosts in the order of their lowest ranks. That is rank order where the
//!   ranks of each host are consecutive; elsewhere only operations that commute are composed. Only one rank of a host
//!   combines the operands of other hosts, so all ranks of an allreduce get the same bits.
//! - After a failed stage, a rank still runs the following stages, so that no other rank waits for it. The first error
//!   is returned.
//!
//! Gatherv and scatterv are not composed: only the root knows their lengths, so a leader could not tell how many bytes
//! pass through it.

use std::sync::Arc;

use super::buffer::{Blocks, Buffer};
use super::by_messages;
use super::choice::Subject;
use super::hosts::Leaders;
use super::run::run;
use super::schedule::{Member, Schedule, Temporary, loose_elements};
use super::select::select_part;
use super::shared::{self, HostGroup};
use super::{Call, Collective};
use smallvec::SmallVec;

use limosa_mpi::consts::MPI_BYTE;
use limosa_mpi::datatype::{Datatype, Held};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::op::Op;

mod allgather;
mod alltoall;
mod barrier;
mod reduction;
mod rooted;

pub(super) use allgather::allgather;
pub(super) use alltoall::alltoall;
pub(super) use barrier::barrier;
pub(super) use reduction::{allreduce, reduce};
pub(super) use rooted::{bcast, gather, scatter};

/// The group of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// The members on this rank's host.
    Host,
    /// The leaders of all hosts, of which this rank is one.
    Leaders,
}

/// The operation of a stage. Roots are ranks in the subgroup.
enum StageOperation {
    /// All other ranks signal the root.
    Arrive {
        root: usize,
    },
    /// The root signals all other ranks.
    Release {
        root: usize,
    },
    /// No rank continues before all have called.
    Barrier,
    Bcast {
        buffer: Buffer,
        root: usize,
    },
    /// `most`: bytes of the longest contribution; `even`: all have that many, and blocks are [`Blocks::even`].
    Gather {
        send: Option<Buffer>,
        receive: Option<Blocks>,
        root: usize,
        most: usize,
        even: bool,
    },
    /// As for `Gather`, of parts.
    Scatter {
        send: Option<Blocks>,
        receive: Option<Buffer>,
        root: usize,
        most: usize,
        even: bool,
    },
    Allgather {
        send: Option<Buffer>,
        receive: Blocks,
    },
    /// Among leaders only.
    Alltoall {
        send: Blocks,
        receive: Blocks,
    },
    Reduce {
        input: Buffer,
        result: Option<Buffer>,
        root: usize,
    },
    Allreduce {
        input: Buffer,
        result: Buffer,
    },
}

/// The part of one rank in a composed operation.
pub(super) struct Composition {
    here: Box<[u32]>,
    leaders: Box<[u32]>,
    stages: Vec<(Over, StageOperation)>,
    /// Memory between stages. Each schedule shares it: a failed schedule may have to keep it for ever.
    temporaries: Vec<Arc<Temporary>>,
    /// The operation of reductions, and its datatype.
    reduction: Option<(Arc<Op>, Held)>,
}

/// Execution of a stage.
enum StagePath<'a> {
    InMemory(&'a HostGroup, &'a StageOperation),
    ByMessages(Schedule),
}

impl Composition {
    fn new(leaders: Leaders<'_>) -> Composition {
        Composition {
            here: leaders.here.into(),
            leaders: leaders.ranks,
            stages: Vec::new(),
            temporaries: Vec::new(),
            reduction: None,
        }
    }

    fn add(&mut self, over: Over, part: StageOperation) {
        self.stages.push((over, part));
    }

    /// Allocates temporary memory of so many bytes.
    fn temporary(&mut self, bytes: usize) -> Result<*mut u8> {
        let temporary = Arc::new(Temporary::new(bytes)?);
        let start = temporary.start();
        self.temporaries.push(temporary);
        Ok(start)
    }

    /// Allocates temporary memory for as many elements as the buffer has.
    fn elements_like(&mut self, buffer: &Buffer) -> Result<Buffer> {
        let (temporary, elements) = loose_elements(buffer.count, &buffer.datatype)?;
        self.temporaries.push(Arc::new(temporary));
        Ok(elements)
    }

    /// Runs all stages in the calling thread.
    ///
    /// # Errors
    /// The first error of a stage.
    pub(super) fn run(&self, call: &Call<'_>) -> Result<()> {
        call.enter();
        let host = call.state.host_group();
        // An error here comes before any data move.
        let mut ways: SmallVec<[StagePath<'_>; 3]> = SmallVec::new();
        for (over, part) in &self.stages {
            ways.push(match host.filter(|host| *over == Over::Host && part.fits(host)) {
                Some(host) => StagePath::InMemory(host, part),
                None => StagePath::ByMessages(self.schedule(Member::from(call), &[(*over, part)])?),
            });
        }
        let (mut outcome, mut index) = (Ok(()), 0);
        for way in ways {
            outcome = outcome.and(match way {
                StagePath::InMemory(host, part) => {
                    index += 1;
                    part.run_in_memory(host, call, index - 1, self.op()).map_err(|error| self.placed(error))
                }
                StagePath::ByMessages(schedule) => run(call.comm, schedule),
            });
        }
        outcome
    }

    /// Translates an error in shared memory, which counts ranks by their places on this host.
    #[cold]
    fn placed(&self, error: Error) -> Error {
        if error.verbatim || self.here.iter().enumerate().all(|(place, rank)| place == *rank as usize) {
            return error;
        }
        let ranks = self.here.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        Error {
            detail: format!("among ranks {ranks}, here counted from 0 as they share a host: {}", error.detail).into(),
            ..error
        }
    }

    /// Plans all stages as one schedule.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn into_schedule(self, member: impl Into<Member>) -> Result<Schedule> {
        let stages: Vec<(Over, &StageOperation)> = self.stages.iter().map(|(over, part)| (*over, part)).collect();
        self.schedule(member.into(), &stages)
    }

    fn schedule(&self, member: Member, stages: &[(Over, &StageOperation)]) -> Result<Schedule> {
        let mut schedule = Schedule::new(member);
        schedule.keep(&self.temporaries);
        if let Some((op, datatype)) = &self.reduction {
            schedule.reduce_with(op.clone(), datatype.clone());
        }
        for (over, part) in stages {
            let members = if *over == Over::Host { &self.here } else { &self.leaders };
            schedule.over(members, |s| part.plan(s, self.op()))?;
        }
        Ok(schedule)
    }

    fn op(&self) -> Option<&Arc<Op>> {
        self.reduction.as_ref().map(|(op, _)| op)
    }
}

impl StageOperation {
    /// Plans the part by messages.
    fn plan(&self, s: &mut Schedule, op: Option<&Arc<Op>>) -> Result<()> {
        let size = s.size();
        match self {
            StageOperation::Arrive { root } => barrier::arrive(s, *root),
            StageOperation::Release { root } => barrier::release(s, *root),
            StageOperation::Barrier => select_part(Collective::Barrier, by_messages::BARRIER, size, 0, None)(s),
            StageOperation::Bcast { buffer, root } => {
                select_part(Collective::Bcast, by_messages::BCAST, size, buffer.bytes(), None)(s, buffer, *root)?;
            }
            StageOperation::Gather { send, receive, root, most, even } => {
                let plan = if *even {
                    select_part(Collective::Gather, by_messages::GATHER, size, *most, None)
                } else {
                    by_messages::GATHER_ANY
                };
                plan(s, send.as_ref(), receive.as_ref(), *root)?;
            }
            StageOperation::Scatter { send, receive, root, most, even } => {
                let plan = if *even {
                    select_part(Collective::Scatter, by_messages::SCATTER, size, *most, None)
                } else {
                    by_messages::SCATTER_ANY
                };
                plan(s, send.as_ref(), receive.as_ref(), *root)?;
            }
            StageOperation::Allgather { send, receive } => {
                let all = (0..size).map(|rank| receive.bytes(rank)).fold(0, usize::saturating_add);
                let plan = match receive.are_even() {
                    true => select_part(Collective::Allgather, by_messages::ALLGATHER, size, receive.bytes(0), None),
                    false => select_part(Subject::ALLGATHERV, by_messages::ALLGATHER, size, all, None),
                };
                plan(s, send.as_ref(), receive)?;
            }
            StageOperation::Alltoall { send, receive } => {
                select_part(Collective::Alltoall, by_messages::ALLTOALL, size, receive.most_bytes(size), None)(
                    s,
                    Some(send),
                    receive,
                )?;
            }
            StageOperation::Reduce { input, result, root } => {
                select_part(Collective::Reduce, by_messages::REDUCE, size, input.bytes(), op)(
                    s,
                    input,
                    result.as_ref(),
                    *root,
                )?;
            }
            StageOperation::Allreduce { input, result } => {
                select_part(Collective::Allreduce, by_messages::ALLREDUCE, size, input.bytes(), op)(s, input, result)?;
            }
        }
        Ok(())
    }

    /// Returns the kind of the part and its bytes in shared memory among `ranks` ranks.
    fn need(&self, ranks: usize) -> (Collective, usize) {
        match self {
            // Counts as one byte, so that a row of the table can select messages.
            StageOperation::Arrive { .. } | StageOperation::Release { .. } | StageOperation::Barrier => {
                (Collective::Barrier, 1)
            }
            StageOperation::Bcast { buffer, .. } => (Collective::Bcast, buffer.bytes()),
            StageOperation::Gather { most, .. } => (Collective::Gather, *most),
            StageOperation::Scatter { most, .. } => (Collective::Scatter, most.saturating_mul(ranks)),
            StageOperation::Allgather { receive, .. } => (Collective::Allgather, receive.most_bytes(ranks)),
            StageOperation::Alltoall { receive, .. } => {
                (Collective::Alltoall, receive.most_bytes(ranks).saturating_mul(ranks))
            }
            StageOperation::Reduce { input, .. } => (Collective::Reduce, input.bytes()),
            StageOperation::Allreduce { input, .. } => (Collective::Allreduce, input.bytes()),
        }
    }

    /// Whether the part is done in the memory that the members on this host share.
    fn fits(&self, host: &HostGroup) -> bool {
        let (kind, bytes) = self.need(host.size());
        host.can_move(kind, bytes)
    }

    /// Runs the part in that memory, as the operation's stage with this index.
    fn run_in_memory(&self, host: &HostGroup, call: &Call<'_>, index: u64, op: Option<&Arc<Op>>) -> Result<()> {
        let (kind, _) = self.need(host.size());
        let op = || op.expect("a composed reduction has an operation");
        let nothing = Buffer { base: std::ptr::null_mut(), count: 0, datatype: Datatype::named(MPI_BYTE).into() };
        host.stage(call.comm, (call.number, index), (kind, call.signature), |stage| match self {
            StageOperation::Arrive { root } => {
                let room = Blocks::even(nothing.base, 0, nothing.datatype.clone(), host.size(), "nothing")?;
                shared::gather(stage, Some(&nothing), Some(&room), *root)
            }
            StageOperation::Release { root } => shared::bcast(stage, &nothing, *root),
            StageOperation::Barrier => shared::barrier(stage),
            StageOperation::Bcast { buffer, root } => shared::bcast(stage, buffer, *root),
            StageOperation::Gather { send, receive, root, .. } => {
                shared::gather(stage, send.as_ref(), receive.as_ref(), *root)
            }
            StageOperation::Scatter { send, receive, root, .. } => {
                shared::scatter(stage, send.as_ref(), receive.as_ref(), *root)
            }
            StageOperation::Allgather { send, receive } => shared::allgather(stage, send.as_ref(), receive),
            StageOperation::Alltoall { send, receive } => shared::alltoall(stage, Some(send), receive),
            StageOperation::Reduce { input, result, root } => {
                shared::reduce(stage, input, result.as_ref(), op(), *root)
            }
            StageOperation::Allreduce { input, result } => shared::allreduce(stage, input, result, op()),
        })
    }
}

/// Allocates temporary memory for `ranks` blocks of `bytes` bytes.
fn packed(composition: &mut Composition, ranks: usize, bytes: usize) -> Result<Blocks> {
    let all = ranks.saturating_mul(bytes);
    Blocks::even(composition.temporary(all)?, bytes as i64, Datatype::named(MPI_BYTE), ranks, "temporary memory")
}
