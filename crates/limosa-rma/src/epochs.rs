//! Epochs: the accesses that a process may make now, by target, and the synchronisation calls that may follow (MPI-5
//! section 12.5).
//!
//! A pure state machine over the calls of this process; it does not know those of other processes. A call in the wrong
//! state is `MPI_ERR_RMA_SYNC` and changes nothing. The accessible targets are also published in [`Gates`], for the
//! fast paths, which bypass the state machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use limosa_mpi::error::Result;
use limosa_mpi::fail;
use smallvec::{SmallVec, smallvec};

/// Whether accesses to each target are legal without a state transition. Closed in doubt.
pub(crate) struct Gates(Box<[AtomicU8]>);

const CLOSED: u8 = 0;
/// In the epoch of a fence, or of `MPI_Win_start`.
const ACTIVE: u8 = 1;
/// Locked.
const PASSIVE: u8 = 2;

impl Gates {
    fn new(targets: usize) -> Gates {
        Gates((0..targets).map(|_| AtomicU8::new(CLOSED)).collect())
    }

    /// Returns whether accesses to a target are legal now. A concurrent call that ends the epoch makes the program
    /// erroneous.
    #[inline(always)]
    pub fn is_open(&self, target: usize) -> bool {
        self.0[target].load(Ordering::Relaxed) != CLOSED
    }

    /// Returns whether a target is accessed in an epoch that the target ends too: of a fence, or of `MPI_Win_start`.
    #[inline]
    pub fn is_active(&self, target: usize) -> bool {
        self.0[target].load(Ordering::Relaxed) == ACTIVE
    }

    /// Returns whether a target is locked.
    #[inline(always)]
    pub fn is_locked(&self, target: usize) -> bool {
        self.0[target].load(Ordering::Relaxed) == PASSIVE
    }

    fn set(&self, target: u32, state: u8) {
        if let Some(gate) = self.0.get(target as usize) {
            gate.store(state, Ordering::Relaxed);
        }
    }

    fn set_all(&self, state: u8) {
        self.0.iter().for_each(|gate| gate.store(state, Ordering::Relaxed));
    }
}

/// Mode of a lock on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// `MPI_MODE_NOCHECK`: the lock was not requested and need not be released.
    pub unchecked: bool,
}

/// Some ranks of a window.
pub(crate) type Ranks = SmallVec<[u32; 8]>;

/// Locked targets.
type Locks = SmallVec<[(u32, Held); 4]>;

/// Returns the mode of the lock on a target, if it is locked.
fn held(locks: &Locks, target: u32) -> Option<Held> {
    locks.iter().find(|(rank, _)| *rank == target).map(|(_, held)| *held)
}

/// Access epoch of this process as an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    /// Nothing.
    None,
    /// After a fence. `used`: there was an access.
    Fence { used: bool },
    /// `MPI_Win_start` to these targets.
    Started(Ranks),
    /// `MPI_Win_lock` of each of these targets.
    Locked(Locks),
    /// `MPI_Win_lock_all`.
    LockedAll(Held),
}

/// The epochs of a process on a window.
pub(crate) struct Epochs {
    gates: Arc<Gates>,
    access: Access,
    /// Origins of the exposure epoch of `MPI_Win_post`.
    posted: Option<Ranks>,
}

impl Epochs {
    /// Creates the state of a window with so many targets: no epoch.
    pub fn new(targets: usize) -> Epochs {
        Epochs { gates: Arc::new(Gates::new(targets)), access: Access::None, posted: None }
    }

    /// Returns the gates of the targets.
    pub fn gates(&self) -> &Arc<Gates> {
        &self.gates
    }

    /// Returns whether the epoch of a fence is open.
    pub fn is_fenced(&self) -> bool {
        matches!(self.access, Access::Fence { .. })
    }

    /// Describes the open epoch.
    fn open(&self) -> String {
        match &self.access {
            Access::None => "no access epoch is open".to_owned(),
            Access::Fence { .. } => "an epoch of MPI_Win_fence is open".to_owned(),
            Access::Started(_) => "an epoch of MPI_Win_start is open".to_owned(),
            Access::Locked(held) => {
                let ranks = held.iter().map(|(rank, _)| rank.to_string()).collect::<Vec<_>>().join(", ");
                format!("MPI_Win_lock holds rank {ranks}")
            }
            Access::LockedAll(_) => "MPI_Win_lock_all holds all ranks".to_owned(),
        }
    }

    /// Checks an access to `target`, and records it. `passive`: it needs a lock, as accesses with requests do.
    pub fn access(&mut self, target: u32, passive: bool) -> Result<()> {
        let allowed = match &mut self.access {
            Access::None => false,
            Access::Fence { used } if !passive => {
                if !*used {
                    self.gates.set_all(ACTIVE);
                }
                *used = true;
                true
            }
            Access::Started(targets) if !passive => targets.contains(&target),
            Access::Fence { .. } | Access::Started(_) => false,
            Access::Locked(locks) => held(locks, target).is_some(),
            Access::LockedAll(_) => true,
        };
        if allowed {
            return Ok(());
        }
        let open = self.open();
        if passive {
            fail!(
                MPI_ERR_RMA_SYNC,
                "rank {target} is not locked ({open}): operations with requests need MPI_Win_lock or MPI_Win_lock_all"
            )
        }
        fail!(
            MPI_ERR_RMA_SYNC,
            "there is no access epoch for rank {target} ({open}): call MPI_Win_fence, MPI_Win_start or MPI_Win_lock \
             first"
        )
    }

    fn nothing_else(&self, call: &str) -> Result<()> {
        match &self.access {
            Access::None | Access::Fence { used: false } => Ok(()),
            Access::Fence { used: true } => {
                fail!(
                    MPI_ERR_RMA_SYNC,
                    "{call} was called in an epoch of MPI_Win_fence with accesses: end it with another MPI_Win_fence"
                )
            }
            _ => fail!(MPI_ERR_RMA_SYNC, "{call} cannot begin an epoch: {}", self.open()),
        }
    }

    /// Checks that `MPI_Win_fence` may begin.
    pub fn check_fence(&self) -> Result<()> {
        if self.posted.is_some() {
            fail!(MPI_ERR_RMA_SYNC, "MPI_Win_fence was called in an epoch of MPI_Win_post: call MPI_Win_wait first");
        }
        match &self.access {
            Access::None | Access::Fence { .. } => Ok(()),
            _ => fail!(MPI_ERR_RMA_SYNC, "MPI_Win_fence was called while {}", self.open()),
        }
    }

    /// Records the end of a fence. `succeed`: accesses may follow.
    pub fn fence(&mut self, succeed: bool) {
        self.gates.set_all(CLOSED);
        self.access = if succeed { Access::Fence { used: false } } else { Access::None };
    }

    pub fn check_lock(&self, target: u32) -> Result<()> {
        match &self.access {
            Access::Locked(locks) if held(locks, target).is_some() => {
                fail!(MPI_ERR_RMA_SYNC, "rank {target} is locked already: call MPI_Win_unlock first")
            }
            Access::Locked(_) => Ok(()),
            _ => self.nothing_else("MPI_Win_lock"),
        }
    }

    pub fn lock(&mut self, target: u32, held: Held) {
        self.gates.set(target, PASSIVE);
        if let Access::Locked(locks) = &mut self.access {
            locks.insert(locks.partition_point(|(rank, _)| *rank < target), (target, held));
        } else {
            self.access = Access::Locked(smallvec![(target, held)]);
        }
    }

    pub fn check_unlock(&self, target: u32) -> Result<Held> {
        if let Access::Locked(locks) = &self.access
            && let Some(held) = held(locks, target)
        {
            return Ok(held);
        }
        match &self.access {
            Access::LockedAll(_) => {
                fail!(MPI_ERR_RMA_SYNC, "all ranks are locked by MPI_Win_lock_all: call MPI_Win_unlock_all")
            }
            _ => fail!(MPI_ERR_RMA_SYNC, "rank {target} is not locked ({})", self.open()),
        }
    }

    pub fn unlock(&mut self, target: u32) {
        self.gates.set(target, CLOSED);
        if let Access::Locked(locks) = &mut self.access {
            locks.retain(|(rank, _)| *rank != target);
            if locks.is_empty() {
                self.access = Access::None;
            }
        }
    }

    pub fn check_lock_all(&self) -> Result<()> {
        self.nothing_else("MPI_Win_lock_all")
    }

    pub fn lock_all(&mut self, held: Held) {
        self.gates.set_all(PASSIVE);
        self.access = Access::LockedAll(held);
    }

    pub fn check_unlock_all(&self) -> Result<Held> {
        match &self.access {
            Access::LockedAll(held) => Ok(*held),
            _ => fail!(MPI_ERR_RMA_SYNC, "MPI_Win_unlock_all needs MPI_Win_lock_all, but {}", self.open()),
        }
    }

    pub fn unlock_all(&mut self) {
        self.gates.set_all(CLOSED);
        self.access = Access::None;
    }

    /// Checks the lock that `MPI_Win_flush` and its variants need: of `target`, or of any.
    pub fn check_flush(&self, target: Option<u32>) -> Result<()> {
        let allowed = match &self.access {
            Access::Locked(locks) => target.is_none_or(|target| held(locks, target).is_some()),
            Access::LockedAll(_) => true,
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        let what = target.map_or_else(|| "no rank is locked".to_owned(), |rank| format!("rank {rank} is not locked"));
        fail!(MPI_ERR_RMA_SYNC, "{what} ({}): flushing is for epochs of MPI_Win_lock or MPI_Win_lock_all", self.open())
    }

    pub fn check_start(&self) -> Result<()> {
        self.nothing_else("MPI_Win_start")
    }

    pub fn start(&mut self, targets: Ranks) {
        targets.iter().for_each(|target| self.gates.set(*target, ACTIVE));
        self.access = Access::Started(targets);
    }

    /// Returns the targets of the epoch that `MPI_Win_complete` ends.
    pub fn check_complete(&self) -> Result<Ranks> {
        match &self.access {
            Access::Started(targets) => Ok(Ranks::from_slice(targets)),
            _ => fail!(MPI_ERR_RMA_SYNC, "MPI_Win_complete needs MPI_Win_start, but {}", self.open()),
        }
    }

    pub fn complete(&mut self) {
        self.gates.set_all(CLOSED);
        self.access = Access::None;
    }

    pub fn check_post(&self) -> Result<()> {
        if self.posted.is_some() {
            fail!(MPI_ERR_RMA_SYNC, "an epoch of MPI_Win_post is open already: call MPI_Win_wait first");
        }
        if self.access == (Access::Fence { used: true }) {
            self.nothing_else("MPI_Win_post")?;
        }
        Ok(())
    }

    pub fn post(&mut self, origins: Ranks) {
        self.posted = Some(origins);
        if matches!(self.access, Access::Fence { .. }) {
            self.access = Access::None;
        }
    }

    /// Returns the origins of the epoch that `MPI_Win_wait` ends.
    pub fn check_wait(&self) -> Result<Ranks> {
        match &self.posted {
            Some(origins) => Ok(Ranks::from_slice(origins)),
            None => fail!(MPI_ERR_RMA_SYNC, "MPI_Win_wait and MPI_Win_test need MPI_Win_post, which was not called"),
        }
    }

    pub fn waited(&mut self) {
        self.posted = None;
    }

    pub fn check_free(&self) -> Result<()> {
        if self.posted.is_some() {
            fail!(MPI_ERR_RMA_SYNC, "the window cannot be freed: an epoch of MPI_Win_post is open");
        }
        match &self.access {
            Access::None | Access::Fence { used: false } => Ok(()),
            Access::Fence { used: true } => {
                fail!(MPI_ERR_RMA_SYNC, "the window cannot be freed: accesses were made since the last MPI_Win_fence")
            }
            _ => fail!(MPI_ERR_RMA_SYNC, "the window cannot be freed: {}", self.open()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_mpi::consts::MPI_ERR_RMA_SYNC;

    const HELD: Held = Held { unchecked: false };

    fn refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.class, MPI_ERR_RMA_SYNC);
        assert!(error.detail.contains(words), "{}", error.detail);
    }

    #[test]
    fn accesses_need_an_epoch_for_their_target() {
        let mut epochs = Epochs::new(5);
        refused(epochs.access(0, false), "no access epoch");
        epochs.start(smallvec![1, 3]);
        epochs.access(3, false).unwrap();
        refused(epochs.access(2, false), "rank 2");
        refused(epochs.access(3, true), "requests");
        assert_eq!(epochs.check_complete().unwrap()[..], [1, 3]);
        epochs.complete();
        refused(epochs.access(3, false), "rank 3");
        epochs.lock(2, HELD);
        epochs.access(2, true).unwrap();
        refused(epochs.access(1, false), "rank 1");
        epochs.unlock(2);
        epochs.lock_all(HELD);
        epochs.access(7, true).unwrap();
    }

    #[test]
    fn locks_are_of_one_sort_and_end_as_they_began() {
        let mut epochs = Epochs::new(5);
        refused(epochs.check_unlock(0), "not locked");
        refused(epochs.check_unlock_all(), "MPI_Win_lock_all");
        epochs.check_lock(0).unwrap();
        epochs.lock(0, HELD);
        refused(epochs.check_lock(0), "already");
        epochs.check_lock(1).unwrap();
        epochs.lock(1, HELD);
        refused(epochs.check_lock_all(), "rank 0, 1");
        refused(epochs.check_start(), "MPI_Win_start");
        refused(epochs.check_fence(), "MPI_Win_fence");
        refused(epochs.check_free(), "freed");
        epochs.check_flush(Some(1)).unwrap();
        refused(epochs.check_flush(Some(2)), "rank 2");
        epochs.check_flush(None).unwrap();
        assert_eq!(epochs.check_unlock(1).unwrap(), HELD);
        epochs.unlock(1);
        epochs.unlock(0);
        refused(epochs.check_flush(None), "no rank");
        epochs.check_lock_all().unwrap();
        epochs.lock_all(HELD);
        refused(epochs.check_unlock(0), "MPI_Win_unlock_all");
        epochs.check_unlock_all().unwrap();
        epochs.unlock_all();
        epochs.check_free().unwrap();
    }

    /// Returns the targets that may be accessed.
    fn open(epochs: &Epochs) -> Vec<usize> {
        (0..5).filter(|target| epochs.gates().is_open(*target)).collect()
    }

    #[test]
    fn the_gates_are_open_where_accesses_are_legal() {
        let mut epochs = Epochs::new(5);
        assert_eq!(open(&epochs), []);
        epochs.fence(true);
        assert_eq!(open(&epochs), [], "the first access is noted");
        epochs.access(2, false).unwrap();
        assert_eq!(open(&epochs), [0, 1, 2, 3, 4]);
        assert!(!epochs.gates().is_locked(2));
        epochs.fence(false);
        assert_eq!(open(&epochs), []);
        epochs.lock(1, HELD);
        epochs.lock(3, HELD);
        assert_eq!(open(&epochs), [1, 3]);
        assert!(epochs.gates().is_locked(3) && !epochs.gates().is_locked(0));
        epochs.unlock(3);
        assert_eq!(open(&epochs), [1]);
        epochs.unlock(1);
        epochs.lock_all(HELD);
        assert_eq!(open(&epochs), [0, 1, 2, 3, 4]);
        epochs.unlock_all();
        epochs.start(smallvec![0, 4]);
        assert_eq!(open(&epochs), [0, 4]);
        epochs.complete();
        assert_eq!(open(&epochs), []);
    }

    #[test]
    fn a_fence_without_accesses_after_it_leaves_room_for_other_epochs() {
        let mut epochs = Epochs::new(5);
        epochs.check_fence().unwrap();
        epochs.fence(true);
        epochs.check_lock(0).unwrap();
        epochs.check_free().unwrap();
        epochs.access(0, false).unwrap();
        refused(epochs.check_lock(0), "MPI_Win_fence");
        refused(epochs.check_free(), "MPI_Win_fence");
        refused(epochs.check_flush(Some(0)), "MPI_Win_fence");
        epochs.fence(false);
        refused(epochs.access(0, false), "no access epoch");
    }

    #[test]
    fn exposure_begins_with_post_and_ends_with_wait() {
        let mut epochs = Epochs::new(5);
        refused(epochs.check_wait(), "MPI_Win_post");
        epochs.check_post().unwrap();
        epochs.post(smallvec![4]);
        refused(epochs.check_post(), "already");
        refused(epochs.check_fence(), "MPI_Win_wait");
        refused(epochs.check_free(), "MPI_Win_post");
        epochs.check_start().unwrap();
        assert_eq!(epochs.check_wait().unwrap()[..], [4]);
        epochs.waited();
        epochs.check_free().unwrap();
    }
}
