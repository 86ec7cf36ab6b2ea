//! Runs the schedules of all ranks against each other in one thread, without an engine, with selectable timing of
//! transfers.
//!
//! It checks the contract of schedules: until the next wait, no step changes the memory of a send or accesses that of a
//! receive.

use std::collections::VecDeque;
use std::ops::Range;

use limosa_p2p::memory::Region;

use crate::schedule::{Schedule, Step};

/// Time of a transfer that both sides have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Immediately.
    Early,
    /// When no rank can continue without it: a send reads the memory of that time.
    Late,
    /// As [`Timing::Late`], and the transfer that was started last comes first.
    LateReversed,
}

pub const TIMINGS: [Timing; 3] = [Timing::Early, Timing::Late, Timing::LateReversed];

struct Transfer {
    region: Region,
    from: usize,
    to: usize,
}

#[derive(Default)]
struct Rank {
    next: usize,
    open: usize,
    /// Memory of the transfers since the last wait, and whether they write to it.
    claimed: Vec<(Range<usize>, bool)>,
}

impl Rank {
    /// Fails if this use of memory disturbs a transfer.
    fn check(&self, rank: usize, region: &Region, writes: bool) {
        let wanted = pieces(region);
        for (range, written) in self.claimed.iter().filter(|(_, written)| writes || *written) {
            let overlap = wanted.iter().any(|wanted| range.start < wanted.end && wanted.start < range.end);
            assert!(
                !overlap,
                "rank {rank}, step {}, disturbs a transfer that {}",
                self.next,
                if *written { "writes" } else { "reads" }
            );
        }
    }

    fn claim(&mut self, rank: usize, region: &Region, writes: bool) {
        self.check(rank, region, writes);
        self.claimed.extend(pieces(region).into_iter().map(|piece| (piece, writes)));
        self.open += 1;
    }
}

/// The contiguous pieces of a region.
fn pieces(region: &Region) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    region.pieces(0, region.len(), &mut |address, length| {
        let start = address as usize;
        match pieces.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end += length,
            None => pieces.push(start..start + length),
        }
        true
    });
    pieces
}

/// Runs the schedules of ranks 0, 1, ... to their ends.
///
/// # Panics
/// If they wait for each other for ever, disagree about a message's length, or leave a message behind.
pub fn simulate(schedules: &[Schedule], timing: Timing) {
    let size = schedules.len();
    let mut ranks: Vec<Rank> = (0..size).map(|_| Rank::default()).collect();
    let mut sends: Vec<VecDeque<Transfer>> = (0..size * size).map(|_| VecDeque::new()).collect();
    let mut receives: Vec<VecDeque<Transfer>> = (0..size * size).map(|_| VecDeque::new()).collect();
    let mut moved = true;
    while moved {
        moved = false;
        for rank in 0..size {
            while let Some(step) = schedules[rank].steps.get(ranks[rank].next) {
                match step {
                    Step::Send { to, region } => {
                        let to = *to as usize;
                        sends[rank * size + to].push_back(Transfer { region: region.clone(), from: rank, to });
                        ranks[rank].claim(rank, region, false);
                    }
                    Step::Receive { from, region } => {
                        let from = *from as usize;
                        receives[from * size + rank].push_back(Transfer { region: region.clone(), from, to: rank });
                        ranks[rank].claim(rank, region, true);
                    }
                    Step::Wait if ranks[rank].open > 0 => break,
                    Step::Wait => ranks[rank].claimed.clear(),
                    local => {
                        let (from, to) = schedules[rank].touched_by(local);
                        ranks[rank].check(rank, &from, false);
                        ranks[rank].check(rank, &to, true);
                        schedules[rank].do_local(local).expect("the operation is defined for the type");
                    }
                }
                ranks[rank].next += 1;
                moved = true;
                if timing == Timing::Early {
                    deliver(&mut ranks, &mut sends, &mut receives, timing);
                }
            }
        }
        moved |= deliver(&mut ranks, &mut sends, &mut receives, timing);
    }
    for (rank, state) in ranks.iter().enumerate() {
        assert!(
            state.open == 0 && state.next == schedules[rank].steps.len(),
            "rank {rank} waits for ever at step {}",
            state.next
        );
    }
    assert!(sends.iter().chain(&receives).all(VecDeque::is_empty), "transfers are left");
}

fn deliver(
    ranks: &mut [Rank],
    sends: &mut [VecDeque<Transfer>],
    receives: &mut [VecDeque<Transfer>],
    timing: Timing,
) -> bool {
    let mut matched = Vec::new();
    for (sends, receives) in sends.iter_mut().zip(receives) {
        while !sends.is_empty() && !receives.is_empty() {
            matched.push((sends.pop_front().expect("not empty"), receives.pop_front().expect("not empty")));
        }
    }
    if timing == Timing::LateReversed {
        matched.reverse();
    }
    for (send, receive) in &matched {
        let (from, to) = (send.from, receive.to);
        assert_eq!(
            send.region.len(),
            receive.region.len(),
            "a message from rank {from} to rank {to} has another length than was expected"
        );
        let mut bytes = vec![0; send.region.len()];
        send.region.read(0, &mut bytes);
        receive.region.write(0, &bytes);
        ranks[from].open -= 1;
        ranks[to].open -= 1;
    }
    !matched.is_empty()
}
