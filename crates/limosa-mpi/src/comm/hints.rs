//! Hints of communicators: what a program promises about its use of one (MPI-5 section 7.4.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use limosa_job::{Board, Job};

use super::Comm;
use crate::error::Result;
use crate::info::Info;

/// Hint of a process whose death does not end the job, such as a pool's worker.
const EXPENDABLE: &[u8] = b"limosa_expendable";

/// Key of the hints in use for members that have died while the job goes on: `RANK:STATUS,RANK:STATUS`, with the status
/// of `waitpid`.
const DEATHS: &[u8] = b"limosa_deaths";

/// Key of the hints in use for the number of this process among the members on its host, and theirs: `RANK:SIZE`.
const LOCAL: &[u8] = b"limosa_local";

/// Maximum number of listed deaths: a value of an info object is short.
const MOST_DEATHS: usize = 32;

/// The promises that the standard knows. All are off until the program makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// No receive uses `MPI_ANY_TAG`.
    NoAnyTag = 1,
    /// No receive uses `MPI_ANY_SOURCE`.
    NoAnySource = 2,
    /// Every receive is exactly as long as its message.
    ExactLength = 4,
    /// Messages may overtake each other.
    AllowOvertaking = 8,
    /// Persistent collectives are started in the same order everywhere.
    StrictPersistentOrder = 16,
}

const KEYS: [(Hint, &str); 5] = [
    (Hint::NoAnyTag, "mpi_assert_no_any_tag"),
    (Hint::NoAnySource, "mpi_assert_no_any_source"),
    (Hint::ExactLength, "mpi_assert_exact_length"),
    (Hint::AllowOvertaking, "mpi_assert_allow_overtaking"),
    (Hint::StrictPersistentOrder, "mpi_assert_strict_persistent_collective_ordering"),
];

/// The hints in use on one communicator.
#[derive(Default)]
pub struct Hints(AtomicU8);

impl Hints {
    /// Whether the program made this promise.
    pub fn holds(&self, hint: Hint) -> bool {
        self.0.load(Ordering::Relaxed) & hint as u8 != 0
    }

    /// Takes over the hints that `info` gives a value of "true" or "false". Other keys and values are ignored, as the
    /// standard allows.
    pub fn update(&self, info: &Info) {
        for (hint, key) in KEYS {
            match info.lookup(key.as_bytes()).as_deref() {
                Some(b"true") => self.0.fetch_or(hint as u8, Ordering::Relaxed),
                Some(b"false") => self.0.fetch_and(!(hint as u8), Ordering::Relaxed),
                _ => continue,
            };
        }
        if let (Some(value), Some(job)) = (info.lookup(EXPENDABLE), Job::current()) {
            job.seat().set_expendable(value == b"true");
        }
    }

    /// Returns all hints with their values in use, and the kinds of memory that messages may lie in.
    pub fn to_info(&self) -> Result<Arc<Info>> {
        let info = Info::new();
        for (hint, key) in KEYS {
            info.set(key.as_bytes(), if self.holds(hint) { b"true" } else { b"false" })?;
        }
        info.set(b"mpi_memory_alloc_kinds", b"mpi,system")?;
        Ok(info)
    }
}

impl Comm {
    /// Returns the hints in use, the number of this process on its host, and the members that have died.
    pub fn info_in_use(&self) -> Result<Arc<Info>> {
        let info = self.hints().to_info()?;
        let (rank, size) = self.place_on_host();
        info.set(LOCAL, format!("{rank}:{size}").as_bytes())?;
        let deaths = Job::current().map_or_else(Vec::new, |job| self.deaths(job.board()));
        if !deaths.is_empty() {
            info.set(DEATHS, deaths.join(",").as_bytes())?;
        }
        Ok(info)
    }

    /// Returns the number of this process among the local group's members on its host, and their number.
    fn place_on_host(&self) -> (usize, usize) {
        let hosts = self.world().hosts_of(self.group());
        let me = self.rank() as usize;
        let on_host = |members: &[u32]| members.iter().filter(|host| **host == hosts[me]).count();
        (on_host(&hosts[..me]), on_host(&hosts))
    }

    fn deaths(&self, board: &Board) -> Vec<String> {
        let status = |rank: usize| {
            let number = self.peers().world_rank(rank).filter(|number| *number < board.used())?;
            let seat = board.seat(number);
            seat.wait_status().filter(|_| seat.is_expendable()).map(|status| format!("{rank}:{status}"))
        };
        (0..self.peers().size()).filter_map(status).take(MOST_DEATHS).collect()
    }
}
