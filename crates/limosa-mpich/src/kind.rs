//! Kinds of handles, as the translations of all ABIs see them.

/// A kind of handle.
pub(crate) trait Kind {
    /// Type of a handle in the program's ABI.
    type C: Copy;
    /// The null handle in the standard ABI.
    const NULL: usize;
    /// Converts a handle of the program.
    fn to_standard(handle: Self::C) -> usize;
    /// Converts a handle of the library.
    fn to_theirs(handle: usize) -> Self::C;
}

/// A handle in the program's ABI.
pub(crate) type Handle<K> = <K as Kind>::C;
