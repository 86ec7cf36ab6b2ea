//! Where threads of Python ranks are in the program's source. Found by the launcher.

use std::collections::BTreeMap;

use crate::hints::Language;

/// Where the threads of Python ranks are.
#[derive(Debug, Default)]
pub struct Places {
    /// By rank and kernel's thread number.
    pub threads: BTreeMap<(u32, u32), Place>,
    /// Why source lines are missing, as hints.
    pub notes: Vec<String>,
    /// Some ranks run Python.
    pub python: bool,
}

/// Where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The user's innermost line: `file:line in function`.
    pub line: String,
    /// The function of our package that the user's code has called, if it is in one.
    pub verb: Option<String>,
    /// The method of mpi4py by which that line receives an object, which mpi4py does by a probe and a receive.
    pub receives: Option<&'static str>,
}

impl Places {
    /// Where this thread of a rank is, if that is known.
    pub fn find(&self, rank: u32, thread: u32) -> Option<&Place> {
        self.threads.get(&(rank, thread))
    }

    /// The language that the program's ranks communicate in.
    pub fn language(&self) -> Language {
        match self.python {
            true if self.threads.values().any(|place| place.verb.is_some()) => Language::Limosa,
            true => Language::Mpi4py,
            false => Language::Mpi,
        }
    }
}
