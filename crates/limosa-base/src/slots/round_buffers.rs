//! Round buffers: memory beside the slots, with one part of equal size for each member and one for the group. The layer
//! above defines their use.

use crate::segment::{Foreign, Shared};

/// One part of equal size for each member of a slot segment, and one for the group.
pub struct RoundBuffers {
    memory: Shared<Bytes>,
    part_bytes: usize,
}

/// Memory of the round buffers.
pub struct Bytes(());

// SAFETY: nothing is read through this type.
unsafe impl Foreign for Bytes {}

impl RoundBuffers {
    /// Returns the bytes of shared memory that the round buffers take.
    pub fn bytes(size: usize, part_bytes: usize) -> usize {
        (size + 1) * part_bytes
    }

    /// Creates the view of the round buffers in `memory`.
    pub fn new(memory: Shared<Bytes>, part_bytes: usize) -> RoundBuffers {
        RoundBuffers { memory, part_bytes }
    }

    /// Returns the bytes of a part.
    pub fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Returns the address of the part of a member, or of the group.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part_of(&self, member: usize) -> *mut u8 {
        let end = (member + 1) * self.part_bytes;
        assert!(end <= self.memory.mapping().len(), "no such part of the round_buffers");
        self.memory.mapping().address(end - self.part_bytes)
    }
}
