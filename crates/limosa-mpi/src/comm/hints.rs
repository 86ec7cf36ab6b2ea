//! Hints of communicators: what a program promises about its use of one (MPI-5 section 7.4.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Result;
use crate::info::Info;

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
    }

    /// All hints with their values in use, and the kinds of memory that messages may lie in.
    pub fn to_info(&self) -> Result<Arc<Info>> {
        let info = Info::new();
        for (hint, key) in KEYS {
            info.set(key.as_bytes(), if self.holds(hint) { b"true" } else { b"false" })?;
        }
        info.set(b"mpi_memory_alloc_kinds", b"mpi,system")?;
        Ok(info)
    }
}
