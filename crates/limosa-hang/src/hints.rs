//! Hints at the end of a hang report, in the language of the program.

/// Interface in whose terms a program communicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Names of MPI.
    #[default]
    Mpi,
    /// Names of mpi4py.
    Mpi4py,
    /// Names of `import limosa`.
    Limosa,
    /// Names of Octave's functions `limosa_...`.
    Octave,
    /// Names of Java's package `mpi`.
    Java,
}

/// Remedy for a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// A rank has left too early.
    BeforeTheEnd,
    /// Ranks are in different collective calls.
    SameOrder,
    /// A rank waits for itself.
    ToItself,
    /// All receive first.
    ReceiveFirst,
    /// All send first.
    SendFirst,
    /// The communicators of a message and its receive differ.
    Communicator,
    /// The tags differ.
    Tag,
    /// The sources differ.
    Source,
}

impl Hint {
    /// Returns the hint as text.
    pub fn text(self, language: Language) -> String {
        // By language: MPI, mpi4py, limosa, Octave, Java.
        let of = |names: [&'static str; 5]| names[language as usize];
        let sendrecv = of(["MPI_Sendrecv", "Sendrecv", "sendrecv", "limosa_sendrecv", "Sendrecv"]);
        let irecv = of(["MPI_Irecv", "Irecv", "irecv", "limosa_irecv", "Irecv"]);
        let isend = of(["MPI_Isend", "Isend", "isend", "limosa_isend", "Isend"]);
        match self {
            Hint::BeforeTheEnd => format!(
                "every message needs a send and a receive, and every collective call all ranks of its communicator, \
                 before {}",
                of(["MPI_Finalize", "the script ends", "the script ends", "the script ends", "MPI.Finalize"])
            ),
            Hint::SameOrder => {
                "all ranks of a communicator must make the same collective calls in the same order".into()
            }
            Hint::ToItself => {
                format!("a rank that sends to itself needs a receive that is posted before, or {sendrecv}")
            }
            Hint::ReceiveFirst => {
                format!("each of them receives before it sends: let one send first, or use {sendrecv} or {irecv}")
            }
            Hint::SendFirst => format!(
                "each of them sends before it receives, which large messages cannot survive: use {sendrecv}, or \
                 {isend} or {irecv}"
            ),
            Hint::Communicator => "a message is received only on the communicator that it was sent on".into(),
            Hint::Tag => format!(
                "a message is received only with the tag that it was sent with, or with {}",
                of(["MPI_ANY_TAG", "MPI.ANY_TAG", "limosa.ANY", "\"any\"", "MPI.ANY_TAG"])
            ),
            Hint::Source => format!(
                "a message is received only from the rank that sent it, or from {}",
                of(["MPI_ANY_SOURCE", "MPI.ANY_SOURCE", "limosa.ANY", "\"any\"", "MPI.ANY_SOURCE"])
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_have_the_names_of_the_language() {
        let hints = |hint: Hint| {
            [Language::Mpi, Language::Mpi4py, Language::Limosa, Language::Octave, Language::Java]
                .map(|language| hint.text(language).rsplit_once(' ').unwrap().1.to_owned())
        };
        let irecv = ["MPI_Irecv", "Irecv", "irecv", "limosa_irecv", "Irecv"];
        assert_eq!(hints(Hint::ReceiveFirst), irecv);
        assert_eq!(hints(Hint::SendFirst), irecv);
        let any = ["MPI_ANY_TAG", "MPI.ANY_TAG", "limosa.ANY", "\"any\"", "MPI.ANY_TAG"];
        assert_eq!(hints(Hint::Tag), any);
    }
}
