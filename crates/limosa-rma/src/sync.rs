//! Synchronisation: fence, lock, flush, post, start, complete, wait (MPI-5 section 12.5).
//!
//! Where all members share memory, the locks are there ([`SharedLocks`](crate::shared_lock::SharedLocks)). Otherwise
//! they are requested by packets, even between processes of one host: each target keeps its lock
//! ([`LockQueue`](crate::locks::LockQueue)), whose holder may use all access paths. The same holds for notices of posts
//! and completions ([`Notices`](crate::notices::Notices)). Requests of a process to itself are executed at once.

use std::ffi::c_int;
use std::sync::atomic::{Ordering, fence};

use limosa_mpi::consts::*;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::group::Group;
use limosa_p2p::Urgency;

use crate::conflicts;
use crate::epochs::{Held, Ranks};
use crate::notices::{Notice, Notices};
use crate::shared_lock::Grants;
use crate::window::{Reach, Window};
use crate::wire;

/// Mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Held by several ranks at a time.
    Shared,
    /// Held by one rank.
    Exclusive,
}

impl LockKind {
    /// Converts a constant of the standard.
    ///
    /// # Errors
    /// `MPI_ERR_LOCKTYPE`.
    pub fn parse(constant: c_int) -> Result<LockKind> {
        match constant {
            MPI_LOCK_SHARED => Ok(LockKind::Shared),
            MPI_LOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
            _ => fail!(MPI_ERR_LOCKTYPE, "lock_type is {constant}, but must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE"),
        }
    }
}

/// Valid assertions of a fence.
pub(crate) const FENCE_ASSERTIONS: c_int = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

fn check_assert(assert: c_int, allowed: c_int, call: &str) -> Result<()> {
    if assert & !allowed == 0 {
        return Ok(());
    }
    fail!(
        MPI_ERR_ASSERT,
        "assert is {assert}, which has bits that mean nothing to {call}: pass 0, or the MPI_MODE_ constants"
    )
}

impl Window {
    /// Performs `MPI_Win_fence`.
    ///
    /// # Errors
    /// `MPI_ERR_ASSERT`, `MPI_ERR_RMA_SYNC`; errors that a target has reported; the death of a member.
    pub fn fence(&self, assert: c_int) -> Result<()> {
        check_assert(assert, FENCE_ASSERTIONS, "MPI_Win_fence")?;
        self.epochs.lock().check_fence()?;
        let all = 0..self.targets.len() as u32;
        let flushed = match self.counting() {
            Some(notices) => self.announce_before_fence(notices, all),
            None => self.flush_targets(all),
        };
        if flushed.as_ref().is_err_and(|error| error.interrupted) {
            return flushed;
        }
        self.meet()?;
        self.finish_fence()?;
        let compared = self.compare_accesses()?;
        self.epochs.lock().fence(assert & MPI_MODE_NOSUCCEED == 0);
        flushed.and(compared)
    }

    /// Returns the notices, if members announce the number of accesses sent by packets.
    fn counting(&self) -> Option<&Notices> {
        self.notices.as_ref().filter(|_| self.counts_packets)
    }

    /// Announces, before the barrier of a fence, the packets to the targets, and to all members whether they must wait.
    fn announce_before_fence(&self, notices: &Notices, targets: std::ops::Range<u32>) -> Result<()> {
        let (mut outcome, mut was_used) = (Ok(()), false);
        for target in targets.filter(|target| !matches!(self.targets[*target as usize].reach, Reach::Direct(_))) {
            match self.announce_packets(notices, target) {
                Ok(is_used) => was_used |= is_used,
                Err(error) if error.interrupted => return Err(error),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        if was_used {
            notices.count_sender();
        }
        outcome
    }

    /// Waits, after the barrier of a fence, until all accesses by packets have been executed, if there were any.
    #[inline]
    pub(crate) fn finish_fence(&self) -> Result<()> {
        let Some(notices) = self.counting() else { return Ok(()) };
        if notices.were_packets_sent() { self.do_packets_of_fence(notices) } else { Ok(()) }
    }

    #[inline(never)]
    fn do_packets_of_fence(&self, notices: &Notices) -> Result<()> {
        let all = 0..self.targets.len() as u32;
        let awaited = self.await_packets(notices, &all.clone().collect::<Ranks>());
        if awaited.as_ref().is_err_and(|error| error.interrupted) {
            // The other members meet once more, and would take this process's next fence for that barrier.
            self.comm.engine().fall_out_of_step(self.comm.coll_context());
        }
        awaited?;
        self.meet()?;
        self.forget_silent(all);
        Ok(())
    }

    /// Performs the barrier of a fence.
    fn meet(&self) -> Result<()> {
        limosa_coll::fast_path::try_barrier(&self.comm).unwrap_or_else(|| limosa_coll::barrier(&self.comm))
    }

    /// Reports the accesses since the last fence to the targets, and the conflicts that these find to all members, if
    /// the job checks conflicts. The inner error is a conflict.
    fn compare_accesses(&self) -> Result<Result<()>> {
        let Some(access_log) = &self.access_log else { return Ok(Ok(())) };
        let mine = access_log.lock().fence();
        let told = limosa_coll::alltoall_bytes(&self.comm, &mine)?;
        let found = conflicts::between_origins(self.me(), &told).unwrap_or_default();
        let all = limosa_coll::alltoall_bytes(&self.comm, &vec![found.into_bytes(); self.targets.len()])?;
        Ok(match all.iter().find(|found| !found.is_empty()) {
            None => Ok(()),
            Some(found) => Err(Error::new(MPI_ERR_RMA_CONFLICT, String::from_utf8_lossy(found).into_owned())),
        })
    }

    /// Performs `MPI_Win_lock`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK`, `MPI_ERR_ASSERT`, `MPI_ERR_RMA_SYNC`; the death of a member.
    pub fn lock(&self, kind: LockKind, rank: i32, assert: c_int) -> Result<()> {
        check_assert(assert, MPI_MODE_NOCHECK, "MPI_Win_lock")?;
        let Some(target) = self.target(rank)? else { return Ok(()) };
        self.epochs.lock().check_lock(target)?;
        let unchecked = assert & MPI_MODE_NOCHECK != 0;
        if !unchecked {
            let ticket = self.ask_for_lock(target, kind)?;
            self.await_lock(target, ticket)?;
            fence(Ordering::SeqCst);
        }
        self.epochs.lock().lock(target, Held { unchecked });
        Ok(())
    }

    /// Performs `MPI_Win_unlock`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn unlock(&self, rank: i32) -> Result<()> {
        let Some(target) = self.target(rank)? else { return Ok(()) };
        let held = self.epochs.lock().check_unlock(target)?;
        let flushed = self.complete_at(target..target + 1);
        if flushed.as_ref().is_err_and(|error| error.interrupted) {
            return flushed;
        }
        self.epochs.lock().unlock(target);
        let given = if held.unchecked { Ok(()) } else { self.give_lock_back(target) };
        flushed.and(given)
    }

    /// Performs `MPI_Win_lock_all`.
    ///
    /// # Errors
    /// As for [`Window::lock`].
    pub fn lock_all(&self, assert: c_int) -> Result<()> {
        check_assert(assert, MPI_MODE_NOCHECK, "MPI_Win_lock_all")?;
        self.epochs.lock().check_lock_all()?;
        let unchecked = assert & MPI_MODE_NOCHECK != 0;
        if !unchecked {
            let all = 0..self.targets.len() as u32;
            let tickets = all.clone().map(|target| self.ask_for_lock(target, LockKind::Shared));
            let tickets = tickets.collect::<Result<Vec<Option<u64>>>>()?;
            for target in all.clone() {
                if let Err(error) = self.await_lock(target, tickets[target as usize]) {
                    let others = all.filter(|other| *other != target);
                    others.for_each(|other| self.leave_lock(other, tickets[other as usize]));
                    return Err(error);
                }
            }
            fence(Ordering::SeqCst);
        }
        self.epochs.lock().lock_all(Held { unchecked });
        Ok(())
    }

    /// Performs `MPI_Win_unlock_all`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn unlock_all(&self) -> Result<()> {
        let held = self.epochs.lock().check_unlock_all()?;
        let all = 0..self.targets.len() as u32;
        let flushed = self.complete_at(all.clone());
        if flushed.as_ref().is_err_and(|error| error.interrupted) {
            return flushed;
        }
        self.epochs.lock().unlock_all();
        let mut outcome = flushed;
        if !held.unchecked {
            for target in all {
                outcome = outcome.and(self.give_lock_back(target));
            }
        }
        outcome
    }

    /// Performs `MPI_Win_flush`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn flush(&self, rank: i32) -> Result<()> {
        let Some(target) = self.target(rank)? else { return Ok(()) };
        self.epochs.lock().check_flush(Some(target))?;
        self.complete_at(target..target + 1)
    }

    /// Performs `MPI_Win_flush_local`. It does as much as [`Window::flush`], but programs may not rely on that.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn flush_local(&self, rank: i32) -> Result<()> {
        let Some(target) = self.target(rank)? else { return Ok(()) };
        self.epochs.lock().check_flush(Some(target))?;
        self.complete_here(target..target + 1);
        self.flush_targets(target..target + 1)
    }

    /// Performs `MPI_Win_flush_all`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn flush_all(&self) -> Result<()> {
        self.epochs.lock().check_flush(None)?;
        self.complete_at(0..self.targets.len() as u32)
    }

    /// Performs `MPI_Win_flush_local_all`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn flush_local_all(&self) -> Result<()> {
        self.epochs.lock().check_flush(None)?;
        self.complete_here(0..self.targets.len() as u32);
        self.flush_targets(0..self.targets.len() as u32)
    }

    /// Performs `MPI_Win_sync`.
    pub fn sync(&self) {
        self.take_accesses();
        fence(Ordering::SeqCst);
    }

    /// Executes the accesses that other processes have sent. Not all of them wake the helper, and a program that polls
    /// its own memory calls only this function and the flushes.
    fn take_accesses(&self) {
        if !self.is_direct {
            self.comm.engine().poll();
        }
    }

    /// Completes all accesses to these targets, at the targets too, and records that.
    fn complete_at(&self, targets: std::ops::Range<u32>) -> Result<()> {
        if let Some(access_log) = &self.access_log {
            let mut access_log = access_log.lock();
            targets.clone().for_each(|target| access_log.complete(target));
        }
        self.flush_targets(targets)
    }

    /// Records that all accesses to these targets are locally complete, as far as the program may know.
    fn complete_here(&self, targets: std::ops::Range<u32>) {
        if let Some(access_log) = &self.access_log {
            let mut access_log = access_log.lock();
            targets.for_each(|target| access_log.complete_here(target));
        }
    }

    /// Completes all accesses to these targets, at the targets too.
    fn flush_targets(&self, targets: std::ops::Range<u32>) -> Result<()> {
        self.take_accesses();
        fence(Ordering::SeqCst);
        let mut outcome = Ok(());
        for target in targets {
            if !matches!(self.targets[target as usize].reach, Reach::Direct(_)) {
                outcome = outcome.and(self.flush_packets(target));
            }
        }
        outcome
    }

    /// Checks the rank of a target. Returns `None` for `MPI_PROC_NULL`.
    fn target(&self, rank: i32) -> Result<Option<u32>> {
        if rank == MPI_PROC_NULL {
            return Ok(None);
        }
        self.comm.partner(rank, "rank")?;
        Ok(Some(rank as u32))
    }

    fn me(&self) -> u32 {
        self.station.rank
    }

    /// Requests a target's lock. Returns the number of the request, `None` if the lock was granted at once.
    fn ask_for_lock(&self, target: u32, kind: LockKind) -> Result<Option<u64>> {
        let exclusive = kind == LockKind::Exclusive;
        if let Some(locks) = &self.locks {
            if locks.try_acquire(target, exclusive) {
                return Ok(None);
            }
            let ticket = {
                let state = &mut *self.station.state.lock();
                state.tickets += 1;
                state.tickets
            };
            self.grant_waiting(target, locks.acquire_or_wait(target, exclusive, ticket))?;
            return Ok(Some(ticket));
        }
        let (ticket, grants) = {
            let state = &mut *self.station.state.lock();
            state.tickets += 1;
            let ticket = state.tickets;
            let mut grants = Vec::new();
            if target == self.me() {
                state.locks.request(target, exclusive, ticket);
                grants = self.station.grants(state);
            }
            (ticket, grants)
        };
        self.send_grants(grants)?;
        if target != self.me() {
            self.send(target, wire::LOCK, ticket << 1 | u64::from(exclusive), &[], Urgency::Urgent)?;
        }
        Ok(Some(ticket))
    }

    /// Notifies the ranks that get a target's lock.
    fn grant_waiting(&self, target: u32, grants: Grants) -> Result<()> {
        for (rank, ticket) in grants {
            if rank == self.me() {
                self.station.state.lock().links[target as usize].granted = ticket;
                self.comm.engine().notify();
            } else {
                self.send(rank, wire::GRANT, ticket, &target.to_ne_bytes(), Urgency::Normal)?;
            }
        }
        Ok(())
    }

    /// Waits for a lock. Cancels the request if that fails.
    fn await_lock(&self, target: u32, ticket: Option<u64>) -> Result<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        let waited = self.wait(Some(target), &|state| state.links[target as usize].granted == ticket);
        if waited.is_err() {
            self.leave_lock(target, Some(ticket));
        }
        waited
    }

    /// Releases a lock, or cancels the request if there is a ticket.
    fn leave_lock(&self, target: u32, ticket: Option<u64>) {
        let _ = match &self.locks {
            Some(locks) if ticket.is_some() => self.grant_waiting(target, locks.withdraw(target)),
            _ => self.give_lock_back(target),
        };
    }

    /// Releases a lock in shared memory. The next ranks can be notified, or are dead.
    pub(crate) fn return_lock(&self, target: u32) {
        let _ = self.give_lock_back(target);
    }

    fn give_lock_back(&self, target: u32) -> Result<()> {
        if let Some(locks) = &self.locks {
            return self.grant_waiting(target, locks.release(target));
        }
        if target != self.me() {
            return self.send(target, wire::UNLOCK, 0, &[], Urgency::Urgent);
        }
        let grants = {
            let state = &mut *self.station.state.lock();
            state.locks.release(target);
            self.station.grants(state)
        };
        self.send_grants(grants)
    }

    fn send_grants(&self, grants: Vec<(u32, u64)>) -> Result<()> {
        for (rank, ticket) in grants {
            if rank == self.me() {
                self.comm.engine().notify();
            } else {
                self.send(rank, wire::GRANT, ticket, &[], Urgency::Normal)?;
            }
        }
        Ok(())
    }

    /// Returns the ranks in this window of a group's members.
    fn ranks(&self, group: &Group) -> Result<Ranks> {
        let mut ranks = Ranks::new();
        for peer in group.iter() {
            match self.comm.rank_of_world(peer) {
                Some(rank) => ranks.push(rank),
                None => fail!(MPI_ERR_GROUP, "a process of the group is no member of the window"),
            }
        }
        Ok(ranks)
    }

    /// Performs `MPI_Win_post`.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP`, `MPI_ERR_ASSERT`, `MPI_ERR_RMA_SYNC`.
    pub fn post(&self, group: &Group, assert: c_int) -> Result<()> {
        check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, "MPI_Win_post")?;
        let origins = self.ranks(group)?;
        let mut epochs = self.epochs.lock();
        epochs.check_post()?;
        epochs.post(Ranks::from_slice(&origins));
        drop(epochs);
        let told = self.tell(&origins, Notice::Post);
        if told.is_err() {
            self.epochs.lock().waited();
        }
        told
    }

    /// Performs `MPI_Win_start`.
    ///
    /// # Errors
    /// As for [`Window::post`]; the death of a member.
    pub fn start(&self, group: &Group, assert: c_int) -> Result<()> {
        check_assert(assert, MPI_MODE_NOCHECK, "MPI_Win_start")?;
        let targets = self.ranks(group)?;
        self.epochs.lock().check_start()?;
        self.take_notices(&targets, Notice::Post)?;
        if self.counts_packets {
            // Before posting, the targets have executed all earlier accesses.
            self.forget_silent(targets.iter().copied());
        }
        self.epochs.lock().start(targets);
        Ok(())
    }

    /// Performs `MPI_Win_complete`.
    ///
    /// # Errors
    /// As for [`Window::fence`].
    pub fn complete(&self) -> Result<()> {
        let mut epochs = self.epochs.lock();
        let targets = epochs.check_complete()?;
        if let Some(access_log) = &self.access_log {
            let mut access_log = access_log.lock();
            targets.iter().for_each(|target| access_log.complete(*target));
        }
        if self.is_direct && self.notices.is_some() {
            epochs.complete();
            drop(epochs);
            return self.tell(&targets, Notice::Complete);
        }
        drop(epochs);
        let mut outcome = Ok(());
        for &target in &targets {
            let is_direct = matches!(self.targets[target as usize].reach, Reach::Direct(_));
            let flushed = match self.counting() {
                Some(_) if is_direct => Ok(()),
                Some(notices) => self.announce_packets(notices, target).map(|_| ()),
                None => self.flush_targets(target..target + 1),
            };
            if flushed.as_ref().is_err_and(|error| error.interrupted) {
                return flushed;
            }
            outcome = outcome.and(flushed);
        }
        self.epochs.lock().complete();
        outcome.and(self.tell(&targets, Notice::Complete))
    }

    /// Performs `MPI_Win_wait`.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC`; the death of a member.
    pub fn wait_for_origins(&self) -> Result<()> {
        let origins = self.epochs.lock().check_wait()?;
        self.take_notices(&origins, Notice::Complete)?;
        if let Some(notices) = self.counting() {
            self.await_packets(notices, &origins)?;
        }
        self.epochs.lock().waited();
        Ok(())
    }

    /// Performs `MPI_Win_test`. Returns whether the epoch has ended.
    ///
    /// # Errors
    /// As for [`Window::wait_for_origins`].
    pub fn test_for_origins(&self) -> Result<bool> {
        let origins = self.epochs.lock().check_wait()?;
        let are_done = |origin| self.counting().is_none_or(|notices| self.are_packets_done(notices, origin));
        let all = || origins.iter().all(|&origin| self.has_notice(origin, Notice::Complete) && are_done(origin));
        if !all() {
            let engine = self.comm.engine();
            engine.poll();
            if !all() {
                let lost = engine.lost_group(self.comm.coll_context());
                return lost.map_or(Ok(false), |failure| Err(limosa_mpi::error::error_of(failure)));
            }
        }
        self.take_notices(&origins, Notice::Complete)?;
        self.epochs.lock().waited();
        Ok(true)
    }

    fn has_notice(&self, rank: u32, notice: Notice) -> bool {
        match &self.notices {
            Some(notices) => notices.has(rank, notice),
            None => self.station.state.lock().links[rank as usize].notices[notice as usize] > 0,
        }
    }

    /// Waits for a notice of each of these ranks, and takes all of them, or none.
    fn take_notices(&self, ranks: &[u32], notice: Notice) -> Result<()> {
        for &rank in ranks {
            let has = || self.has_notice(rank, notice);
            if !has() && !limosa_coll::look(self.comm.engine(), has) {
                self.wait_until(Some(rank), &has)?;
            }
        }
        match &self.notices {
            Some(notices) => ranks.iter().for_each(|rank| notices.take(*rank, notice)),
            None => {
                let state = &mut *self.station.state.lock();
                ranks.iter().for_each(|rank| state.links[*rank as usize].notices[notice as usize] -= 1);
            }
        }
        Ok(())
    }

    /// Sends a notice to each of these ranks.
    fn tell(&self, ranks: &[u32], notice: Notice) -> Result<()> {
        if let Some(notices) = &self.notices {
            ranks.iter().for_each(|rank| notices.tell(*rank, notice));
            return Ok(());
        }
        fence(Ordering::SeqCst);
        for &rank in ranks {
            if rank == self.me() {
                self.station.state.lock().links[rank as usize].notices[notice as usize] += 1;
                self.comm.engine().notify();
            } else {
                let kind = if notice == Notice::Post { wire::POST } else { wire::COMPLETE };
                self.send(rank, kind, 0, &[], Urgency::Normal)?;
            }
        }
        Ok(())
    }
}
