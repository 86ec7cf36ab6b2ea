//! Collective accesses (MPI-5 section 14.4), in two phases.
//!
//! Where short pieces of different processes are interleaved, there are three paths. Large accesses of processes on one
//! host use the page cache of the file ([`crate::mapped`]). Otherwise the accessed range is cut into strips, which long
//! system calls move to or from the file. The processes exchange the data of the strips: in shared memory, if they have
//! it ([`crate::strips`]), otherwise by messages ([`crate::messages`]).
//!
//! Each process moves its own data ([`crate::access`]) where the ranges of the processes do not overlap, where pieces
//! are long or sparse, and always in atomic mode. [`crate::plan`] decides.

use std::sync::atomic::Ordering;

use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

use crate::agree;
use crate::file::{File, Sharing};
use crate::plan::{AccessSummary, DataPath, Plan, PlanParameters};
use crate::strips::Strips;
use crate::view::View;

impl File {
    /// Does this process's part of a collective access. `mine` is its position in the stream and its data, or the error
    /// that prevents its part.
    pub(crate) fn transfer_together(&self, view: &View, is_write: bool, mine: Result<(u64, &Region)>) -> Result<u64> {
        if self.comm.size() == 1 || self.core.is_atomic.load(Ordering::Relaxed) {
            let (from, region) = mine?;
            return self.core.transfer(view, is_write, from, region);
        }
        if self.core.system.is_stream() {
            return self.transfer_in_turn(view, is_write, mine);
        }
        // A member has died: see `transfer_by_messages`.
        let mine = match mine {
            Err(error) if error.class == MPI_ERR_PROC_ABORTED => return Err(error),
            mine => mine,
        };
        let (from, region) = mine.as_ref().map_or((0, Region::empty()), |(from, region)| (*from, (*region).clone()));
        let is_seen = !view.is_empty() && from.checked_add(region.len() as u64).is_some();
        let wanted = if is_seen { region.len() as u64 } else { 0 };
        let size = if is_write || self.comm.rank() != 0 { 0 } else { self.core.system.size().unwrap_or(0) };
        let access = AccessSummary::new(view, from, wanted, size);
        let accesses: Vec<AccessSummary> =
            agree::words(&self.comm, access.words())?.into_iter().map(AccessSummary::of).collect();
        let mut plan = self.plan(&accesses, is_write)?;
        // Bytes beyond the end of the file are not requested.
        let bytes = match is_write {
            true => wanted,
            false => wanted.min(view.bytes_within(accesses[0].size).saturating_sub(from)),
        };
        let data = (from, &region.part(0, bytes as usize));
        if let Some(Plan { path: DataPath::Mapped, cut }) = &plan {
            if self.kept.lock().transfer((&self.comm, &self.core), (view, is_write), data, cut)? {
                return mine.map(|_| bytes);
            }
            self.cannot_map.store(true, Ordering::Relaxed);
            plan = self.plan(&accesses, is_write)?;
        }
        let Some(plan) = plan else {
            return mine.and_then(|(from, region)| self.core.transfer(view, is_write, from, region));
        };
        match &plan.path {
            DataPath::Mapped => unreachable!("only where it is not known that the file cannot be mapped"),
            DataPath::Shared(movers) => {
                let mut sharing = self.sharing.lock();
                let Sharing::Strips(strips) = &mut *sharing else { unreachable!("planned with shared memory") };
                strips.transfer((&self.comm, &self.core), (view, is_write), data, (&plan.cut, *movers))?;
            }
            DataPath::Aggregators(ranks) => {
                let moved = self.transfer_by_messages(view, is_write, data, &plan.cut, ranks)?;
                agree::on_outcome(&self.comm, moved)?;
            }
        }
        mine.map(|_| bytes)
    }

    /// Reads or writes a file without offsets, one process after another in rank order.
    fn transfer_in_turn(&self, view: &View, is_write: bool, mine: Result<(u64, &Region)>) -> Result<u64> {
        let mut moved = Ok(0);
        for rank in 0..self.comm.size() {
            if rank == self.comm.rank() as usize {
                moved = mine.clone().and_then(|(from, region)| self.core.transfer(view, is_write, from, region));
            }
            limosa_coll::barrier(&self.comm)?;
        }
        moved
    }

    /// Returns the plan, and creates the shared memory that it needs.
    fn plan(&self, accesses: &[AccessSummary], is_write: bool) -> Result<Option<Plan>> {
        let hints = self.core.hints.read();
        let buffering = if is_write { hints.collective_writes } else { hints.collective_reads };
        let (wanted, buffer, stripe) = (hints.aggregators, hints.collective_buffer, hints.stripe);
        drop(hints);
        let hosts = self.hosts();
        let mut sharing = self.sharing.lock();
        let shares = hosts == 1 && !matches!(*sharing, Sharing::Impossible);
        let (maps, mapped) = (!self.cannot_map.load(Ordering::Relaxed), self.kept.lock().range());
        let mut parameters =
            PlanParameters { is_write, buffering, wanted, buffer, stripe, hosts, shares, maps, mapped };
        let plan = Plan::new(accesses, &parameters);
        if !matches!(plan, Some(Plan { path: DataPath::Shared(_), .. })) {
            return Ok(plan);
        }
        if let Sharing::Untried = *sharing {
            *sharing = Strips::make(&self.comm)?.map_or(Sharing::Impossible, Sharing::Strips);
        }
        if let Sharing::Impossible = *sharing {
            parameters.shares = false;
            return Ok(Plan::new(accesses, &parameters));
        }
        Ok(plan)
    }

    /// Returns the number of hosts of the file's processes.
    fn hosts(&self) -> u64 {
        // Hosts are numbered from 0.
        self.comm.world().hosts_of(self.comm.group()).into_iter().max().map_or(0, |last| u64::from(last) + 1)
    }
}
