//! Even distribution of processes over processors when they yield to each other.
//!
//! The scheduler sees no difference between processes that wait for each other and yield. It leaves seven of them on
//! one processor and one on the next for a tenth of a second and more. Each process therefore publishes its processor
//! in shared memory ([`Processor`]), and from time to time reads those of the others ([`better`]). All processes see
//! the same placement, so only the surplus processes of a processor move.

use crate::sync::{AtomicU32, Ordering};

/// Processor of a process, in shared memory. Zeroed memory means none.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Processor(AtomicU32);

impl Processor {
    /// Publishes the processor on which the process runs; `None` while it sleeps.
    #[inline]
    pub fn set(&self, processor: Option<u32>) {
        self.0.store(processor.map_or(0, |cpu| cpu.wrapping_add(1)), Ordering::Relaxed);
    }

    /// Returns the processor on which the process runs; `None` while it sleeps.
    #[inline]
    pub fn get(&self) -> Option<u32> {
        self.0.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// Returns the processor to which process `me` should move, or `None` if it should stay. `places` are the processors of
/// all processes. Those on the processors `mine`, which this process may use, are to be spread evenly by as few moves
/// as possible.
pub fn better(places: &[Option<u32>], me: usize, mine: &[u32]) -> Option<u32> {
    let index_of = |place: &Option<u32>| place.and_then(|cpu| mine.iter().position(|other| *other == cpu));
    let mut counts = vec![0usize; mine.len()];
    let mut at: Vec<Option<usize>> = places.iter().map(index_of).collect();
    at.iter().flatten().for_each(|cpu| counts[*cpu] += 1);
    let here = (*at.get(me)?)?;
    loop {
        let (fullest, most) = counts.iter().enumerate().max_by_key(|(cpu, count)| (**count, usize::MAX - *cpu))?;
        let (emptiest, least) = counts.iter().enumerate().min_by_key(|(cpu, count)| (**count, *cpu))?;
        if *most < least + 2 {
            return None;
        }
        let goes = at.iter().rposition(|cpu| *cpu == Some(fullest))?;
        if goes == me && fullest == here {
            return Some(mine[emptiest]);
        }
        at[goes] = Some(emptiest);
        counts[fullest] -= 1;
        counts[emptiest] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_of_too_many_moves() {
        let places = [Some(0), Some(0), Some(0), Some(1)];
        let wanted: Vec<_> = (0..4).map(|me| better(&places, me, &[0, 1])).collect();
        assert_eq!(wanted, [None, None, Some(1), None]);
    }

    #[test]
    fn processes_that_sleep_or_run_elsewhere_do_not_count() {
        assert_eq!(better(&[Some(0), Some(0), None, None], 1, &[0, 1]), Some(1));
        assert_eq!(better(&[Some(0), Some(9), Some(9), Some(9)], 0, &[0, 1]), None);
        assert_eq!(better(&[Some(0), Some(9), Some(9), Some(9)], 3, &[0, 1]), None);
        assert_eq!(better(&[None, Some(0)], 0, &[0, 1]), None);
    }

    #[test]
    fn a_process_with_one_processor_does_not_move() {
        assert_eq!(better(&[Some(3), Some(3), Some(3)], 2, &[3]), None);
    }

    proptest! {
        #[test]
        fn when_all_have_moved_nobody_wants_to_any_more(
            places in proptest::collection::vec(proptest::option::of(0u32..5), 1..20),
            cpus in 1u32..5,
        ) {
            let mine: Vec<u32> = (0..cpus).collect();
            let after: Vec<Option<u32>> =
                (0..places.len()).map(|me| better(&places, me, &mine).or(places[me])).collect();
            let count = |cpu| after.iter().filter(|place| **place == Some(cpu)).count();
            let counts: Vec<usize> = mine.iter().map(|cpu| count(*cpu)).collect();
            let (most, least) = (counts.iter().max().copied().unwrap_or(0), counts.iter().min().copied().unwrap_or(0));
            prop_assert!(most <= least + 1, "{counts:?}");
        }
    }
}
