//! Source lines at which threads of a program in Python, Octave or Java are. Found by the launcher.

use std::collections::BTreeMap;

use crate::hints::Language;

/// Language of a job's program, as far as it can be recognised.
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
    /// All languages, in the order of their numbers.
    pub const ALL: [Program; 4] = [Program::Compiled, Program::Python, Program::Octave, Program::Java];
}

/// Source lines of the ranks' threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// By rank and kernel thread id.
    pub threads: BTreeMap<(u32, u32), SourcePosition>,
    /// Reasons for missing source lines, as hints.
    pub notes: Vec<String>,
    /// Language of the ranks' program; of several languages, one.
    pub program: Program,
}

/// Position of a thread in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// Innermost line of the user's code: `file:line in function`.
    pub line: String,
    /// Function of our package that the user's code has called, if the thread is in one.
    pub verb: Option<String>,
    /// Text of that line, if no frame tells which function of our package it has called.
    pub text: Option<String>,
}

/// Collective methods of our package that have no frame while values are short.
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

/// Methods of mpi4py for objects, by the calls of MPI that implement them: a receive is a probe and a receive. A wait
/// or a test has the name of the call and another beginning.
const OF_MPI4PY: [(&str, &[&str]); 9] = [
    ("MPI_Mprobe", &["recv", "sendrecv"]),
    ("MPI_Wait", &["Request.wait"]),
    ("MPI_Waitall", &["Request.waitall"]),
    ("MPI_Waitany", &["Request.waitany"]),
    ("MPI_Waitsome", &["Request.waitsome"]),
    ("MPI_Test", &["Request.test"]),
    ("MPI_Testall", &["Request.testall"]),
    ("MPI_Testany", &["Request.testany"]),
    ("MPI_Testsome", &["Request.testsome"]),
];

/// Returns whether a communicator of this name belongs to our package.
pub fn is_of_package(comm: &str) -> bool {
    comm == "limosa.world" || (comm.starts_with("a communicator of ") && comm.ends_with(" ranks"))
}

impl SourcePosition {
    /// Returns the method of mpi4py for objects by which that line makes this call of MPI.
    pub fn method_of_mpi4py(&self, call: &str) -> Option<&'static str> {
        let (_, names) = OF_MPI4PY.iter().find(|(of, _)| *of == call)?;
        only_called(self.text.as_deref()?, names)
    }

    /// Returns the method of our package without a frame that makes this call of MPI on one of its communicators.
    pub fn method(&self, call: &str) -> Option<&'static str> {
        match call {
            "MPI_Send" => Some("send"),
            "MPI_Recv" => Some("recv"),
            "MPI_Test" => Some(if self.text.as_deref().is_some_and(|text| text.contains(".test(")) {
                "test"
            } else {
                "an awaited request"
            }),
            "MPI_Allgather" => Some(
                self.text.as_deref().and_then(|text| only_called(text, &COLLECTIVES)).unwrap_or("a collective call"),
            ),
            _ => None,
        }
    }
}

/// Returns the method that a line calls, if it is only one of these. Names may have the class in front.
fn only_called(line: &str, names: &[&'static str]) -> Option<&'static str> {
    let is_called = |name: &str| line.contains(&format!(".{}(", name.rsplit('.').next().unwrap_or(name)));
    let mut found = names.iter().filter(|name| is_called(name));
    found.next().filter(|_| found.next().is_none()).copied()
}

impl Places {
    /// Returns the position of this thread of a rank, if it is known.
    pub fn find(&self, rank: u32, thread: u32) -> Option<&SourcePosition> {
        self.threads.get(&(rank, thread))
    }

    /// Returns the interface in whose terms the program's ranks communicate.
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
