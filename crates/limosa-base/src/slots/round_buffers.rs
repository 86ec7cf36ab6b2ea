//! Memory beside the slots: as many bytes for each member, and for the group. How it is used is the affair of the layer
//! above.

use crate::segment::{Foreign, Shared};

/// More room for the members of a slot segment: as many bytes for each, and for the group.
pub struct RoundBuffers {
    memory: Shared<Bytes>,
    part_bytes: usize,
}

/// Bytes that processes share.
pub struct Bytes(());

// SAFETY: nothing is read through this type.
unsafe impl Foreign for Bytes {}

impl RoundBuffers {
    /// Bytes of shared memory that round buffers takes.
    pub fn bytes(size: usize, part_bytes: usize) -> usize {
        (size + 1) * part_bytes
    }

    /// The round buffers in `memory`.
    pub fn new(memory: Shared<Bytes>, part_bytes: usize) -> RoundBuffers {
        RoundBuffers { memory, part_bytes }
    }

    /// Bytes of a part.
    pub fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Where the part of a member, or of the group, is.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part_of(&self, member: usize) -> *mut u8 {
        let end = (member + 1) * self.part_bytes;
        assert!(end <= self.memory.mapping().len(), "no such part of the round_buffers");
        self.memory.mapping().address(end - self.part_bytes)
    }
}
