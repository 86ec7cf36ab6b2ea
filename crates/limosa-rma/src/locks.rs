//! Passive-target locks at their target: the holders and the queue of waiting ranks.
//!
//! Pure. Requests are granted in the order of arrival; consecutive readers (`MPI_LOCK_SHARED`) share the lock. Hence no
//! rank starves.

use std::collections::VecDeque;

/// The lock of one target.
#[derive(Debug, Default)]
pub(crate) struct LockQueue {
    /// Ranks that hold the lock; several only if it is shared.
    holders: Vec<u32>,
    is_exclusive: bool,
    waiting: VecDeque<Waiting>,
}

/// A waiting rank.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    exclusive: bool,
    /// Number of its request.
    ticket: u64,
}

impl LockQueue {
    /// Requests the lock for a rank. Returns false if the rank has requested it already.
    pub fn request(&mut self, rank: u32, exclusive: bool, ticket: u64) -> bool {
        if self.holders.contains(&rank) || self.waiting.iter().any(|other| other.rank == rank) {
            return false;
        }
        self.waiting.push_back(Waiting { rank, exclusive, ticket });
        true
    }

    /// Releases the lock of a rank, or cancels its request. Returns false if it has neither.
    pub fn release(&mut self, rank: u32) -> bool {
        let before = self.holders.len() + self.waiting.len();
        self.holders.retain(|holder| *holder != rank);
        self.waiting.retain(|other| other.rank != rank);
        before != self.holders.len() + self.waiting.len()
    }

    /// Grants the lock to the next rank, if possible now. Returns the rank and the number of its request.
    pub fn grant(&mut self) -> Option<(u32, u64)> {
        let &Waiting { rank, exclusive, ticket } = self.waiting.front()?;
        if !self.holders.is_empty() && (exclusive || self.is_exclusive) {
            return None;
        }
        self.waiting.pop_front();
        self.holders.push(rank);
        self.is_exclusive = exclusive;
        Some((rank, ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn granted(queue: &mut LockQueue) -> Vec<u32> {
        std::iter::from_fn(|| queue.grant()).map(|(rank, _)| rank).collect()
    }

    #[test]
    fn readers_share_and_writers_wait_their_turn() {
        let mut queue = LockQueue::default();
        for (rank, exclusive) in [(0, false), (1, false), (2, true), (3, false)] {
            assert!(queue.request(rank, exclusive, 0));
        }
        assert_eq!(granted(&mut queue), [0, 1]);
        assert!(queue.release(0));
        assert_eq!(granted(&mut queue), []);
        assert!(queue.release(1));
        assert_eq!(granted(&mut queue), [2]);
        assert!(!queue.request(2, false, 0), "it has the lock");
        assert!(queue.release(2));
        assert_eq!(granted(&mut queue), [3]);
        assert!(!queue.release(2));
    }

    proptest! {
        #[test]
        fn nobody_shares_with_a_writer_and_all_get_their_turn(
            steps in prop::collection::vec((0u32..6, any::<bool>()), 1..200)
        ) {
            let (mut queue, mut held, mut asked) = (LockQueue::default(), Vec::<(u32, bool)>::new(), Vec::new());
            for (rank, exclusive) in steps {
                if let Some(at) = held.iter().position(|(holder, _)| *holder == rank) {
                    held.remove(at);
                    prop_assert!(queue.release(rank));
                } else if queue.request(rank, exclusive, 0) {
                    asked.push((rank, exclusive));
                }
                while let Some((rank, _)) = queue.grant() {
                    let next = asked.remove(0);
                    prop_assert_eq!(next.0, rank, "in the order of asking");
                    held.push(next);
                }
                let writers = held.iter().filter(|(_, exclusive)| *exclusive).count();
                prop_assert!(writers == 0 || held.len() == 1);
            }
            while !held.is_empty() || !asked.is_empty() {
                prop_assert!(!held.is_empty(), "a rank waits for a free lock");
                let (rank, _) = held.remove(0);
                queue.release(rank);
                while queue.grant().is_some() {
                    held.push(asked.remove(0));
                }
            }
        }
    }
}
