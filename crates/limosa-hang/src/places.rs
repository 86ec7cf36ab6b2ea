//! Where threads of ranks are in the source of a program in Python, Octave or Java. Found by the launcher.

use std::collections::BTreeMap;

use crate::hints::Language;

/// In which language the program of a job is written, as far as that can be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// A compiled one.
    #[default]
    Compiled,
    /// Python.
    Python,
    /// Octave.
    Octave,
    /// Java.
    Java,
}

impl Program {
    /// All, in the order of their numbers.
    pub const ALL: [Program; 4] = [Program::Compiled, Program::Python, Program::Octave, Program::Java];
}

/// Where the threads of ranks are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// By rank and kernel's thread number.
    pub threads: BTreeMap<(u32, u32), Place>,
    /// Why source lines are missing, as hints.
    pub notes: Vec<String>,
    /// What the ranks run; of several languages, one.
    pub program: Program,
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
    /// The text of that line, if no frame says which function of our package it has called.
    pub text: Option<String>,
}

/// The collective methods of our package that have no frame while values are short.
const COLLECTIVES: [&str; 11] = [
    "barrier",
    "bcast",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reduce_scatter",
];

/// Whether a communicator of this name belongs to our package.
pub fn is_of_package(comm: &str) -> bool {
    comm == "limosa.world" || (comm.starts_with("a communicator of ") && comm.ends_with(" ranks"))
}

impl Place {
    /// The method of our package without a frame that makes this call of MPI on one of its communicators.
    pub fn method(&self, call: &str) -> Option<&'static str> {
        match call {
            "MPI_Send" => Some("send"),
            "MPI_Recv" => Some("recv"),
            "MPI_Test" => Some(if self.text.as_deref().is_some_and(|text| text.contains(".test(")) {
                "test"
            } else {
                "an awaited request"
            }),
            "MPI_Allgather" => Some(self.text.as_deref().and_then(collective).unwrap_or("a collective call")),
            _ => None,
        }
    }
}

/// The collective method that a line calls, if there is only one.
fn collective(line: &str) -> Option<&'static str> {
    let mut found = COLLECTIVES.into_iter().filter(|name| line.contains(&format!(".{name}(")));
    found.next().filter(|_| found.next().is_none())
}

impl Places {
    /// Where this thread of a rank is, if that is known.
    pub fn find(&self, rank: u32, thread: u32) -> Option<&Place> {
        self.threads.get(&(rank, thread))
    }

    /// The language that the program's ranks communicate in.
    pub fn language(&self) -> Language {
        let uses = |begin: &str| {
            self.threads.values().filter_map(|place| place.verb.as_deref()).any(|verb| verb.starts_with(begin))
        };
        match self.program {
            Program::Python if uses("") => Language::Limosa,
            Program::Python => Language::Mpi4py,
            Program::Octave if uses("limosa_") => Language::Octave,
            Program::Java => Language::Java,
            Program::Octave | Program::Compiled => Language::Mpi,
        }
    }
}
