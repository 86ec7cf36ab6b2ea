//! Kinds of collective operations, and signatures: the properties of a call that must be equal on all ranks.

use std::sync::Arc;

use limosa_mpi::check;
use limosa_mpi::consts::{ErrorClass, MPI_ERR_OP, MPI_ERR_OTHER, MPI_ERR_ROOT};
use limosa_mpi::op::{Op, Reduction};

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // named like the standard's
pub(crate) enum Collective {
    Barrier = 1,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAlltoall,
}

/// Number of kinds.
pub(crate) const KINDS: usize = Collective::NeighborAlltoall as usize;

impl Collective {
    /// Returns the name of the MPI function.
    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize - 1]
    }

    const ALL: [Collective; KINDS] = [
        Collective::Barrier,
        Collective::Bcast,
        Collective::Gather,
        Collective::Scatter,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::Reduce,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::Scan,
        Collective::Exscan,
        Collective::NeighborAllgather,
        Collective::NeighborAlltoall,
    ];

    /// Returns the kind of a blocking function, such as `MPI_Gatherv`.
    fn of_function(function: &str) -> Option<Collective> {
        Collective::ALL.into_iter().find(|kind| {
            let (name, endings) = kind.name().split_once('(').unwrap_or((kind.name(), ""));
            let ending = function.get(name.len()..).filter(|_| function[..name.len()].eq_ignore_ascii_case(name));
            ending.is_some_and(|ending| {
                ending.is_empty() || endings.trim_end_matches(')').split(',').any(|known| known == ending)
            })
        })
    }

    /// Whether each rank waits for all other ranks.
    pub(crate) fn is_among_all(self) -> bool {
        matches!(
            self,
            Collective::Barrier
                | Collective::Allgather
                | Collective::Alltoall
                | Collective::Allreduce
                | Collective::ReduceScatter
        )
    }
}

/// Form of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named as in the standard
pub(crate) enum Sort {
    Blocking,
    NonBlocking,
    Persistent,
}

impl Sort {
    pub(crate) const ALL: [Sort; 3] = [Sort::Blocking, Sort::NonBlocking, Sort::Persistent];
}

/// Names of the MPI functions, by [`Collective`](Collective).
const NAMES: [&str; 14] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather(v)",
    "MPI_Scatter(v)",
    "MPI_Allgather(v)",
    "MPI_Alltoall(v,w)",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter(_block)",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Neighbor_allgather(v)",
    "MPI_Neighbor_alltoall(v,w)",
    "its first blocking collective operation",
];

/// The properties of a call that must be equal on all ranks: kind, root, operation of a reduction, and sort. 0 for
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature(u32);

/// Bits of a signature: kind, operation, root, sort.
const KIND_BITS: u32 = 4;
const OP_BITS: u32 = 5;
const ROOT_BITS: u32 = 21;
const SORT_SHIFT: u32 = KIND_BITS + OP_BITS + ROOT_BITS;
const ROOTS: u32 = 1 << ROOT_BITS;
/// Root field of a signature whose root or operation is known to differ, but not its value.
const NOT_KNOWN: u32 = ROOTS - 1;
/// Bits of a code behind those of the kind, for root and operation.
const CODE_BITS: u32 = 10;
const CODES: u32 = 1 << CODE_BITS;
/// Operation fields for a function of the program, and for the making of a communicator.
const OF_PROGRAM: u32 = (1 << OP_BITS) - 1;
const MAKING: u32 = OF_PROGRAM - 1;
/// Operation field of a code for any of the standard's operations.
const PREDEFINED: u32 = MAKING - 1;

impl Signature {
    /// Returns the signature of an operation with a root.
    #[inline(always)]
    pub(crate) fn rooted(kind: Collective, root: usize) -> Signature {
        Signature(kind as u32 | (root as u32 % ROOTS) << (KIND_BITS + OP_BITS))
    }

    /// Returns the signature of a reduction.
    #[inline(always)]
    pub(crate) fn reduction(kind: Collective, op: &Op) -> Signature {
        Signature(kind as u32 | op_code(op) << KIND_BITS)
    }

    /// Returns the signature of a reduction to a root.
    pub(crate) fn rooted_reduction(op: &Op, root: usize) -> Signature {
        Signature(Signature::rooted(Collective::Reduce, root).0 | Signature::reduction(Collective::Reduce, op).0)
    }

    /// Returns the signature of a call by its function's name, as far as the name tells; unknown for other functions.
    pub(crate) fn of_function(function: &str) -> Signature {
        let name = function.strip_suffix("_c").unwrap_or(function);
        let (name, sort) = match (name.strip_suffix("_init"), name.strip_prefix("MPI_I")) {
            (Some(name), _) => (name.to_owned(), Sort::Persistent),
            (None, Some(name)) => (format!("MPI_{name}"), Sort::NonBlocking),
            (None, None) => (name.to_owned(), Sort::Blocking),
        };
        Collective::of_function(&name).map_or_else(Signature::default, |kind| Signature::from(kind).called(sort))
    }

    /// Adds a root.
    pub(crate) fn with_root(self, root: usize) -> Signature {
        if self.is_known() { Signature(self.0 | (root as u32 % ROOTS) << (KIND_BITS + OP_BITS)) } else { self }
    }

    /// Adds an operation.
    pub(crate) fn with_op(self, op: &Op) -> Signature {
        if self.is_known() { Signature(self.0 | op_code(op) << KIND_BITS) } else { self }
    }

    /// Returns the signature of an operation by which the library makes a communicator.
    pub(crate) fn making(kind: Collective) -> Signature {
        Signature(kind as u32 | MAKING << KIND_BITS)
    }

    /// Returns the signature of the set-up at the first blocking operation of any kind.
    pub(crate) fn setting_up() -> Signature {
        Signature(NAMES.len() as u32)
    }

    /// Reads the signature from a word that a rank has written; `None` if it has written none.
    pub(crate) fn of_word(word: u32) -> Option<Signature> {
        Some(Signature(word)).filter(|signature| signature.is_known())
    }

    /// Sets the sort.
    #[inline(always)]
    pub(crate) fn called(self, sort: Sort) -> Signature {
        Signature(self.0 & ((1 << SORT_SHIFT) - 1) | (sort as u32) << SORT_SHIFT)
    }

    /// Returns the sort.
    #[inline]
    pub(crate) fn sort(self) -> Sort {
        match self.0 >> SORT_SHIFT {
            0 => Sort::Blocking,
            1 => Sort::NonBlocking,
            _ => Sort::Persistent,
        }
    }

    /// Whether the kind is known.
    #[inline]
    pub(crate) fn is_known(self) -> bool {
        self.kind() != 0
    }

    /// Returns fourteen bits that are equal for calls that match, and 0 if the kind is not known. They differ if
    /// exactly one of kind, operation and root conflicts, for roots up to 1023.
    #[inline]
    pub(crate) fn code(self) -> u32 {
        let op = if !check::is_strict() && self.has_predefined_op() { PREDEFINED } else { self.op() };
        self.kind() | ((self.root() + (op << OP_BITS)) % CODES) << KIND_BITS
    }

    fn has_predefined_op(self) -> bool {
        (1..=PREDEFINED).contains(&self.op())
    }

    /// Returns the operation of the standard that it names.
    pub(crate) fn predefined_op(self) -> Option<&'static Arc<Op>> {
        Op::numbered(self.op().checked_sub(1)?)
    }

    /// Whether the calls cannot match. Different operations of the standard can, unless the checks are strict.
    pub(crate) fn conflicts_with(self, other: Signature) -> bool {
        self != other && !self.has_other_op(other)
    }

    /// Whether the calls match, but name different operations of the standard.
    pub(crate) fn has_other_op(self, other: Signature) -> bool {
        const OP: u32 = OF_PROGRAM << KIND_BITS;
        let is_same_call = self.0 | OP == other.0 | OP;
        is_same_call && self != other && self.has_predefined_op() && other.has_predefined_op() && !check::is_strict()
    }

    /// Reconstructs another rank's signature from its code, as far as possible, given its sort, this rank's own call,
    /// and the number of ranks.
    pub(crate) fn of_code(code: u32, sort: Sort, own: Signature, ranks: usize) -> Signature {
        const RANKS: usize = 1 << OP_BITS;
        let (kind, rest) = (code & ((1 << KIND_BITS) - 1), code >> KIND_BITS);
        let rooted = [Collective::Bcast, Collective::Gather, Collective::Scatter].map(|kind| kind as u32);
        let (op, root) = if kind == Collective::Reduce as u32 {
            if ranks <= RANKS { (rest >> OP_BITS, rest % RANKS as u32) } else { (own.op(), NOT_KNOWN) }
        } else if rooted.contains(&kind) {
            (0, if ranks <= CODES as usize { rest } else { NOT_KNOWN })
        } else {
            (rest >> OP_BITS, 0)
        };
        Signature(kind | op << KIND_BITS | root << (KIND_BITS + OP_BITS)).called(sort)
    }

    /// Returns the signature as a word.
    #[inline(always)]
    pub(crate) fn word(self) -> u32 {
        self.0
    }

    fn op(self) -> u32 {
        self.0 >> KIND_BITS & OF_PROGRAM
    }

    pub(crate) fn root(self) -> u32 {
        self.0 >> (KIND_BITS + OP_BITS) & (ROOTS - 1)
    }

    fn kind(self) -> u32 {
        self.0 & ((1 << KIND_BITS) - 1)
    }

    /// Describes the call, as far as it differs from another rank's call.
    pub(crate) fn describe(self, other: Signature) -> String {
        if self.op() == MAKING {
            return "a function that makes a communicator".to_owned();
        }
        let Some(name) = NAMES.get((self.kind() as usize).wrapping_sub(1)) else {
            return "another collective operation".to_owned();
        };
        self.in_its_form(name) + &self.distinction(other)
    }

    /// Returns the name of the function, if the kind is known.
    pub(crate) fn name(self) -> String {
        NAMES.get((self.kind() as usize).wrapping_sub(1)).map_or_else(String::new, |name| self.in_its_form(name))
    }

    fn in_its_form(self, name: &str) -> String {
        match self.sort() {
            Sort::Blocking => name.to_owned(),
            Sort::NonBlocking => format!("MPI_I{}", name["MPI_".len()..].to_lowercase()),
            Sort::Persistent => format!("{name}_init"),
        }
    }

    /// Describes the root or the operation by which it differs from a call of the same function: ` with root 1`.
    pub(crate) fn distinction(self, other: Signature) -> String {
        if self.class_of_difference(other) == MPI_ERR_OTHER {
            String::new()
        } else if self.root() == NOT_KNOWN {
            " with another root or operation".to_owned()
        } else if self.root() != other.root() {
            format!(" with root {}", self.root())
        } else {
            format!(" with {}", self.op_name())
        }
    }

    /// Returns the name of the operation of a reduction.
    pub(crate) fn op_name(self) -> &'static str {
        match self.op() {
            OF_PROGRAM => "an operation of the program",
            PREDEFINED => "a predefined operation",
            code => Reduction::name_of(code.wrapping_sub(1)).unwrap_or("another operation"),
        }
    }

    /// Returns the class of the error that another rank's signature differs.
    pub(crate) fn class_of_difference(self, other: Signature) -> ErrorClass {
        let one_is = |op| self.op() == op || other.op() == op;
        if self.kind() != other.kind() || self.sort() != other.sort() || one_is(MAKING) {
            MPI_ERR_OTHER
        } else if self.root() != other.root() {
            MPI_ERR_ROOT
        } else {
            MPI_ERR_OP
        }
    }
}

/// Returns the bits of a signature for an operation.
#[inline(always)]
fn op_code(op: &Op) -> u32 {
    op.reduction().map_or(OF_PROGRAM, |reduction| reduction as u32 + 1)
}

impl From<Collective> for Signature {
    #[inline(always)]
    fn from(kind: Collective) -> Signature {
        Signature(kind as u32)
    }
}

/// An operation with the word of its notes: its signature, and in the upper half that of the operation before it, or 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed {
    pub(crate) kind: Collective,
    pub(crate) word: u64,
}

impl Signed {
    /// Returns the operation's signature.
    #[inline]
    pub(crate) fn signature(self) -> Signature {
        Signature(self.word as u32)
    }

    /// Returns an operation whose preceding operation is unknown.
    #[inline]
    pub(crate) fn alone(kind: Collective, signature: Signature) -> Signed {
        Signed { kind, word: u64::from(signature.word()) }
    }
}

impl From<Collective> for Signed {
    fn from(kind: Collective) -> Signed {
        Signed::alone(kind, kind.into())
    }
}
