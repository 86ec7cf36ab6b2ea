//! Jobs over several hosts, as the status board knows them.
//!
//! Each host has a segment of its own, for all ranks of the job under the same numbers: the launcher's, or that of an
//! *agent* of the launcher. Ranks of other hosts have nothing there but a place on the board, which says where they
//! are. The launcher's board shows them all: agents send it copies of the places of their ranks
//! ([`Board::copy_of`], [`Board::show`]).
//!
//! What comes from another host is untrusted: a copy of any bytes leads to nothing worse than a wrong display.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::board::{Board, Seat};
use crate::layout::{ENTRY_WORDS, Entry, RECORDS, RecordSlot};
use crate::view::State;

/// How often a record is read that changes meanwhile, before it is left out.
const ATTEMPTS: usize = 10;

/// A host of a job and its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name; 48 bytes of it are shown.
    pub name: String,
    /// Its ranks.
    pub ranks: Range<u32>,
}

impl Board {
    /// For launcher and agents, before any rank starts: where the ranks are. This segment is that of host `here`.
    pub fn set_hosts(&self, here: u32, hosts: &[HostPlan]) {
        let header = self.header();
        header.host_here.store(here, Relaxed);
        header.hosts.store(hosts.len() as u32, Release);
        for (number, host) in (0..).zip(hosts) {
            for rank in host.ranks.clone() {
                let entry = self.seat(rank).entry();
                entry.host.store(number, Relaxed);
                entry.host_first.store(host.ranks.start, Relaxed);
                entry.host_size.store(host.ranks.end - host.ranks.start, Relaxed);
                entry.host_name.store(&host.name);
            }
        }
    }

    /// For launcher and agents, after [`Board::prepare`]: on which host a spawned rank will be. It shares memory with
    /// no other one.
    pub fn set_host_of_spawned(&self, rank: u32, host: u32, name: &str) {
        let entry = self.seat(rank).entry();
        entry.host.store(host, Relaxed);
        entry.host_first.store(rank, Relaxed);
        entry.host_size.store(1, Relaxed);
        entry.host_name.store(name);
    }

    /// On how many hosts the job runs.
    pub fn hosts(&self) -> u32 {
        self.header().hosts.load(Acquire).max(1)
    }

    /// The host whose segment this is.
    pub fn host_here(&self) -> u32 {
        self.header().host_here.load(Relaxed)
    }

    /// Whether the rank is on the host whose segment this is.
    pub fn is_here(&self, rank: u32) -> bool {
        self.seat(rank).host() == self.host_here()
    }

    /// A copy of what a rank of this host has written, to be shown elsewhere.
    pub fn copy_of(&self, rank: u32) -> Vec<u8> {
        let entry = self.seat(rank).entry();
        let mut words: Vec<u64> = entry.words().iter().map(|word| word.load(Acquire)).collect();
        for number in 0..RECORDS {
            let range = Entry::words_of_record(number);
            let record = &entry.records[number];
            let is_whole = (0..ATTEMPTS).any(|_| {
                let before = record.seq.load(Acquire);
                words[range.clone()]
                    .iter_mut()
                    .zip(&entry.words()[range.clone()])
                    .for_each(|(to, from)| *to = from.load(Acquire));
                before.is_multiple_of(2) && record.seq.load(Acquire) == before
            });
            if !is_whole {
                words[range].fill(0);
            }
        }
        while words.last() == Some(&0) {
            words.pop();
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Shows the copy of a place on the board of another host, whose clock is behind this one's by so many nanoseconds.
    pub fn show(&self, rank: u32, copy: &[u8], behind_ns: i64) {
        let seat = self.seat(rank);
        let entry = seat.entry();
        let (host, first, size) = (seat.host(), seat.host_first(), seat.host_size());
        let mut words = vec![0u64; ENTRY_WORDS];
        for (word, bytes) in words.iter_mut().zip(copy.chunks_exact(8)) {
            *word = u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        }
        let times = std::iter::once(Entry::WORD_OF_STATE_SINCE).chain((0..RECORDS).map(Entry::word_of_since));
        for at in times.filter(|at| words[*at] != 0).collect::<Vec<_>>() {
            words[at] = words[at].saturating_add_signed(behind_ns);
        }
        let name = seat.host_name();
        entry.words().iter().zip(words).for_each(|(word, value)| word.store(value, Release));
        entry.host.store(host, Relaxed);
        entry.host_first.store(first, Relaxed);
        entry.host_size.store(size, Relaxed);
        entry.host_name.store(&name);
    }
}

impl Seat<'_> {
    /// The rank's host, counted from 0.
    pub fn host(&self) -> u32 {
        self.entry().host.load(Relaxed)
    }

    /// The first rank of that host.
    pub fn host_first(&self) -> u32 {
        self.entry().host_first.load(Relaxed)
    }

    /// Number of ranks of that host.
    pub fn host_size(&self) -> u32 {
        self.entry().host_size.load(Relaxed)
    }

    /// The name of that host; empty in a job on one host.
    pub fn host_name(&self) -> String {
        self.entry().host_name.load()
    }

    /// For an agent: the process of this rank, on another host, has ended in good order.
    pub fn left_elsewhere(&self) {
        self.finalized();
        self.exited();
    }

    /// The process of this rank has finalized, whether it still runs or not.
    pub fn has_finalized(&self) -> bool {
        self.entry().finalized.load(Relaxed) != 0
    }

    /// The process of this rank has ended, and had finalized.
    pub fn has_left(&self) -> bool {
        let entry = self.entry();
        entry.state.load(Acquire) == State::Exited as u32 && entry.finalized.load(Relaxed) != 0
    }

    /// Changes whenever there is something new to show.
    pub fn mark(&self) -> (u64, u32) {
        let polls = |record: &RecordSlot| record.polls.load(Relaxed);
        let polls = self.entry().records.iter().map(polls).fold(0, u32::wrapping_add);
        (self.entry().epoch.load(Acquire), polls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocked, Kind, Peer, Shape, Wait};

    fn board() -> Board {
        let shape = Shape { appnums: vec![0; 4], spare: 4, universe: 4, launcher_pid: 1 };
        let (_, board) = Board::create(&shape).expect("memory");
        let host = |name: &str, ranks| HostPlan { name: name.into(), ranks };
        board.set_hosts(1, &[host("first", 0..1), host("second", 1..4)]);
        board
    }

    #[test]
    fn each_rank_has_a_host() {
        let board = board();
        assert_eq!((board.hosts(), board.host_here()), (2, 1));
        let of = |rank| (board.seat(rank).host(), board.seat(rank).host_first(), board.seat(rank).host_size());
        assert_eq!([of(0), of(1), of(3)], [(0, 0, 1), (1, 1, 3), (1, 1, 3)]);
        assert_eq!(board.seat(3).host_name(), "second");
        assert!(!board.is_here(0) && board.is_here(1));
    }

    #[test]
    fn what_a_rank_waits_for_is_shown_on_the_board_of_another_host() {
        let (there, here) = (board(), board());
        let seat = there.claim(2, 77).expect("free");
        seat.running();
        let wait = Wait {
            kind: Kind::Receive,
            peer: Peer::Rank { rank: 0, world: 0 },
            tag: Some(7),
            context: 5,
            comm: "MPI_COMM_WORLD",
            members: 4,
            series: None,
            started: "",
        };
        let _asleep = seat.blocked(&Blocked { call: "MPI_Recv", waits: &[wait], more: 0, all: true, lying: &[] });
        here.show(2, &there.copy_of(2), 1000);
        let (original, shown) = (there.view(2), here.view(2));
        assert_eq!((shown.pid, shown.state, shown.epoch), (77, State::Running, original.epoch));
        assert_eq!(shown.records[0].waits, original.records[0].waits);
        assert_eq!(shown.records[0].since_ns, original.records[0].since_ns + 1000);
        assert_eq!(shown.state_since_ns, original.state_since_ns + 1000);
        assert_eq!(here.seat(2).host_name(), "second");
    }

    #[test]
    fn who_has_left_on_another_host_is_known() {
        let board = board();
        assert!(!board.seat(0).has_left());
        board.seat(0).left_elsewhere();
        assert!(board.seat(0).has_left() && !board.seat(1).has_left());
        board.seat(1).exited();
        assert!(!board.seat(1).has_left(), "it has not finalized");
    }

    #[test]
    fn a_copy_of_any_bytes_does_no_harm() {
        let here = board();
        for length in [0, 1, 8, 4096, 100_000] {
            for byte in [0, 1, 0x7f, 0xff] {
                here.show(1, &vec![byte; length], i64::MIN);
                let _ = (here.view(1), here.copy_of(1));
                assert_eq!((here.seat(1).host(), here.seat(1).host_size()), (1, 3));
            }
        }
    }
}
