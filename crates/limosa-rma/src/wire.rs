//! Packets of windows ([`Chapter::Windows`]).
//!
//! Every packet names its window in the first word: the context of the window's communicator. The second word:
//!
//! | kind | second word | data |
//! |---|---|---|
//! | [`ACCESS`] | number of the requested answer, 0 for none | a [`Header`], pieces, operands |
//! | [`FLUSH`] | number of the requested answer | |
//! | [`ANSWER`] | number | the data read |
//! | [`REFUSED`] | number, 0 if none was requested | error class (4 bytes), and the sentence |
//! | [`LOCK`] | number of the request, with 1 for exclusive in the lowest bit | |
//! | [`GRANT`] | number of the request | the rank whose lock it is (4 bytes), if it is not the sender's |
//! | [`UNLOCK`], [`POST`], [`COMPLETE`] | | |
//!
//! Packets of a pair are handled in order, and so are their answers. Numbers in data are in the byte order of the
//! machine.

use limosa_mpi::consts::MPI_DATATYPE_NULL;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::named::HANDLES;
use limosa_mpi::op::Op;
use limosa_p2p::Chapter;
use std::sync::Arc;

pub(crate) const ACCESS: u8 = Chapter::Windows.kind(0);
pub(crate) const FLUSH: u8 = Chapter::Windows.kind(1);
pub(crate) const ANSWER: u8 = Chapter::Windows.kind(2);
pub(crate) const REFUSED: u8 = Chapter::Windows.kind(3);
pub(crate) const LOCK: u8 = Chapter::Windows.kind(4);
pub(crate) const GRANT: u8 = Chapter::Windows.kind(5);
pub(crate) const UNLOCK: u8 = Chapter::Windows.kind(6);
pub(crate) const POST: u8 = Chapter::Windows.kind(7);
pub(crate) const COMPLETE: u8 = Chapter::Windows.kind(8);

/// Action of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Writes the operands.
    Put,
    /// Returns the current data.
    Get,
    /// Combines the operands with the data.
    Accumulate,
    /// Combines, and returns the old data.
    Fetch,
    /// Replaces the data by the second operand if they equal the first. Returns the old data.
    Swap,
}

const ACTIONS: [Action; 5] = [Action::Put, Action::Get, Action::Accumulate, Action::Fetch, Action::Swap];

/// Bytes of a header.
pub(crate) const HEADER: usize = 20;
/// Bytes of a piece.
pub(crate) const PIECE: usize = 16;

/// A contiguous piece of the target's memory: its offset from the start of the window, and its length.
pub(crate) type PieceRange = (u64, u64);

/// Header of an access. The type of the elements is a basic one, or a pair of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub action: Action,
    pub op: i32,
    pub element: [i32; 2],
    pub pieces: u32,
}

impl Header {
    /// Creates a header without an operation.
    pub fn plain(action: Action, pieces: usize) -> Header {
        Header { action, op: 0, element: [0; 2], pieces: pieces as u32 }
    }

    /// Creates a header for elements of this predefined type.
    pub fn typed(action: Action, op: Option<&Op>, element: &Datatype, pieces: usize) -> Header {
        let element = match (element.as_basic(), element.as_pair()) {
            (Some(basic), _) => [basic.handle, 0],
            (_, Some((value, index))) => [value.handle, index.handle],
            _ => [0, 0],
        };
        Header { action, op: op.map_or(0, |op| op.handle() as i32), element, pieces: pieces as u32 }
    }

    pub fn write(&self, packet: &mut Vec<u8>) {
        for word in [self.action as i32, self.op, self.element[0], self.element[1], self.pieces as i32] {
            packet.extend_from_slice(&word.to_ne_bytes());
        }
    }

    /// Returns the operation; `None` if the number is unknown.
    pub fn op(&self) -> Option<Arc<Op>> {
        Op::builtin(self.op)
    }

    /// Returns the type of the elements; `None` if the number is unknown.
    pub fn element(&self) -> Option<Arc<Datatype>> {
        let named = |handle: i32| {
            let inside = handle > MPI_DATATYPE_NULL && handle < MPI_DATATYPE_NULL + HANDLES as i32;
            inside.then(|| Datatype::builtin(handle)).flatten()
        };
        let first = named(self.element[0])?;
        if self.element[1] == 0 { Some(first) } else { Datatype::value_index(&first, &named(self.element[1])?) }
    }
}

/// Decodes an access: header, places, operands. Returns `None` if the bytes are invalid.
pub(crate) fn read(packet: &[u8]) -> Option<(Header, Vec<PieceRange>, &[u8])> {
    let (header, rest) = packet.split_at_checked(HEADER)?;
    let word = |i: usize| i32::from_ne_bytes(header[4 * i..4 * i + 4].try_into().expect("four bytes"));
    let action = *ACTIONS.get(usize::try_from(word(0)).ok()?)?;
    let header = Header { action, op: word(1), element: [word(2), word(3)], pieces: word(4) as u32 };
    let (places, operands) = rest.split_at_checked((header.pieces as usize).checked_mul(PIECE)?)?;
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    let places = places.chunks_exact(PIECE).map(|place| (number(&place[..8]), number(&place[8..]))).collect();
    Some((header, places, operands))
}

pub(crate) fn write_places(packet: &mut Vec<u8>, places: &[PieceRange]) {
    for (at, len) in places {
        packet.extend_from_slice(&at.to_ne_bytes());
        packet.extend_from_slice(&len.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_mpi::consts::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_says_what_was_meant() {
        for name in [MPI_INT, MPI_DOUBLE_INT, MPI_C_BOOL, MPI_LOGICAL] {
            let (op, element) = (Op::builtin(MPI_SUM).unwrap(), Datatype::named(name));
            let header = Header::typed(Action::Fetch, Some(&op), &element, 1);
            let mut packet = Vec::new();
            header.write(&mut packet);
            write_places(&mut packet, &[(7, 9)]);
            packet.extend_from_slice(b"operands");
            let (read, places, operands) = read(&packet).unwrap();
            assert_eq!((read, &places[..], operands), (header, &[(7, 9)][..], &b"operands"[..]));
            assert!(Arc::ptr_eq(&read.element().unwrap(), &element) && Arc::ptr_eq(&read.op().unwrap(), &op));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_crash(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((header, places, operands)) = read(&bytes) {
                prop_assert_eq!(HEADER + places.len() * PIECE + operands.len(), bytes.len());
                let _ = (header.op(), header.element());
            }
        }
    }
}
