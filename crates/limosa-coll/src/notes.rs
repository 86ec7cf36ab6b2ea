//! Notes in shared memory describe the contributions of ranks, in blocking operations and in the background.
//!
//! In an operation a rank posts at most one note in a [`SlotSegment`]. The note carries the signature of the writer's
//! operation ([`Signed`]), and its tag has the form of the contribution:
//!
//! | form | place of the bytes | words of the note |
//! |---|---|---|
//! | 0 to 48 | in the note: so many bytes for all, or so many for each rank | |
//! | `AREA` | in an area: bytes for all, or as many for each rank | length, area |
//! | `TABLE` | per rank: a line at the beginning of an area has place and length | bytes of the area, area |
//! | `BLOCKS` | per block: a line at the beginning of an area has place, length, and receiver | bytes of the area, area, blocks |
//! | `LENT_BLOCKS` | the same, with the lines in the writer's memory | bytes of the lines, address, blocks |
//! | `ADDRESS` | in the writer's memory | length, address |
//! | `OPERAND` | in the writer's memory, to be combined by pieces | length, address, address of the result, shape (`crate::pieces`) |
//! | `ROUNDS` | in the round buffers, round by round; of an exchange with neighbours, in messages | length |
//! | `OF_RANK` | described by the note of a rank (in a note of the group) | rank |
//! | `NOTHING` | none: the writer takes no further part, or the ranks disagree | |
//!
//! An area is memory that the writer shares. Area 0 is its slot of this operation. Areas beside the slots differ
//! ([`Notes::area_beside`]): a place on a ring buffer in blocking operations, a large slot in the background.
//!
//! A line of a table has a place and a length. A place below the bytes of the area is a place in it; [`BY_MESSAGE`]
//! means that the bytes go by message; all others are addresses in the writer's memory.
//!
//! Contract
//! - A note is read when it is known to be posted. Its writer changes neither the note nor its areas until all ranks
//!   have finished the operation.
//! - The content of a note was written by another process: it is checked, and an invalid note is an error.

use std::sync::Arc;

use limosa_base::slots::{BODY_BYTES, Body, SlotSegment};
use limosa_p2p::memory::Region;

use super::buffer::Blocks;
use super::disagreement;
use super::kind::{Collective, Signed};
use super::memory::read;
use super::schedule::mismatch;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::op::Op;

const AREA: u8 = 0xff;
const TABLE: u8 = 0xfe;
const ADDRESS: u8 = 0xfd;
const OPERAND: u8 = 0xfc;
const ROUNDS: u8 = 0xfb;
const OF_RANK: u8 = 0xfa;
const NOTHING: u8 = 0xf9;
const BLOCKS: u8 = 0xf8;
const LENT_BLOCKS: u8 = 0xf7;

/// Bytes of a line of a table.
pub(crate) const LINE: usize = 16;

/// Bytes of a line about a block: a line of a table, and the receiver's rank.
pub(crate) const BLOCK_LINE: usize = LINE + 8;

/// Place in a line of a table: the bytes go by message.
pub(crate) const BY_MESSAGE: u64 = u64::MAX;

/// A note to be posted. The body comes first and is aligned for all types, because reductions may combine there.
#[repr(C, align(16))]
pub(crate) struct SlotNote {
    body: Body,
    form: u8,
}

impl SlotNote {
    #[inline]
    fn new(form: u8, words: [u64; 2]) -> SlotNote {
        let [first, second] = words;
        SlotNote { form, body: [first, second, 0, 0, 0, 0] }
    }

    /// Makes a note that the writer is in the operation, without bytes.
    #[inline]
    pub(crate) fn signal() -> SlotNote {
        SlotNote::new(0, [0; 2])
    }

    /// Makes a note of `len` bytes for all, at most 48, which the caller writes to [`SlotNote::bytes`].
    #[inline]
    pub(crate) fn of_bytes(len: usize) -> SlotNote {
        assert!(len <= BODY_BYTES, "{len} bytes do not fit a note");
        SlotNote::new(len as u8, [0; 2])
    }

    /// Returns the place of the bytes in a note that contains them.
    #[inline]
    pub(crate) fn bytes(&mut self) -> *mut u8 {
        (&raw mut self.body).cast()
    }

    /// Makes a note of `len` bytes for all, or for each rank, in an area.
    #[inline]
    pub(crate) fn of_area(len: usize, area: &Area) -> SlotNote {
        SlotNote::new(AREA, [len as u64, area.number])
    }

    /// Makes a note of a table in an area, with or without the bytes.
    pub(crate) fn of_table(area: &Area) -> SlotNote {
        SlotNote::new(TABLE, [area.bytes as u64, area.number])
    }

    /// Makes a note of lines about so many blocks in an area, with or without the bytes.
    pub(crate) fn of_blocks(area: &Area, blocks: usize) -> SlotNote {
        SlotNote { form: BLOCKS, body: [area.bytes as u64, area.number, blocks as u64, 0, 0, 0] }
    }

    /// Makes a note of lines about so many blocks in the writer's memory.
    pub(crate) fn of_lent_blocks(address: u64, blocks: usize) -> SlotNote {
        SlotNote { form: LENT_BLOCKS, body: [(blocks * BLOCK_LINE) as u64, address, blocks as u64, 0, 0, 0] }
    }

    /// Makes a note of `len` bytes in the writer's memory.
    pub(crate) fn of_address(len: usize, address: u64) -> SlotNote {
        SlotNote::new(ADDRESS, [len as u64, address])
    }

    /// Makes a note of an operand of `len` bytes in the writer's memory, to be combined by pieces, and of its result.
    pub(crate) fn of_operand(len: usize, ends: Ends, shape: u64) -> SlotNote {
        SlotNote { form: OPERAND, body: [len as u64, ends.operand, ends.result, shape, 0, 0] }
    }

    /// Makes a note of `len` bytes that come through the round buffers.
    pub(crate) fn of_rounds(len: usize) -> SlotNote {
        SlotNote::new(ROUNDS, [len as u64, 0])
    }

    /// Makes a note of the group whose bytes are described by the note of this rank.
    pub(crate) fn of_rank(rank: usize) -> SlotNote {
        SlotNote::new(OF_RANK, [rank as u64, 0])
    }

    /// Makes a note that the writer takes no further part, or that the ranks disagree.
    pub(crate) fn of_nothing() -> SlotNote {
        SlotNote::new(NOTHING, [0; 2])
    }
}

/// Shared memory of a rank for one operation.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
    /// Number of the area in notes.
    pub(crate) number: u64,
}

impl Area {
    /// Returns its first bytes.
    ///
    /// # Safety
    /// The area must be this rank's, unused by other threads until a note refers to it, and stay mapped meanwhile.
    pub(crate) unsafe fn first<'a>(self, bytes: usize) -> &'a mut [u8] {
        assert!(bytes <= self.bytes, "{bytes} bytes do not fit an area of {}", self.bytes);
        // SAFETY: the area has so many bytes; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start, bytes) }
    }
}

/// Writes a line of a table.
pub(crate) fn write_line(table: &mut [u8], rank: usize, place: u64, len: usize) {
    let line = &mut table[rank * LINE..][..LINE];
    line[..8].copy_from_slice(&place.to_ne_bytes());
    line[8..].copy_from_slice(&(len as u64).to_ne_bytes());
}

/// Writes a table about the parts for other ranks than `me`, and behind it the parts for which `elsewhere` returns no
/// place. Parts begin at multiples of `aligned`. `elsewhere` is told whether there is room for the part.
///
/// # Errors
/// Those of `elsewhere`.
pub(crate) fn write_table(
    area: &mut [u8],
    parts: &Blocks,
    [size, me]: [usize; 2],
    aligned: usize,
    mut elsewhere: impl FnMut(usize, &Region, bool) -> Result<Option<u64>>,
) -> Result<()> {
    let mut used = (size * LINE).next_multiple_of(aligned);
    for rank in (0..size).filter(|rank| *rank != me) {
        let region = parts.region(rank);
        let len = region.len();
        let fits = len <= area.len().saturating_sub(used);
        let place = match elsewhere(rank, &region, fits)? {
            Some(place) => place,
            None if len == 0 => 0,
            None => {
                read(&region, &mut area[used..used + len]);
                let place = used as u64;
                used += len.next_multiple_of(aligned);
                place
            }
        };
        write_line(area, rank, place, len);
    }
    Ok(())
}

/// Lines about the blocks that a rank contributes, and the bytes of the area that contains them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    start: *const u8,
    blocks: usize,
    bytes: u64,
}

impl Lines {
    /// Makes lines of so many blocks, none of which is behind the lines.
    pub(crate) fn lent(start: *const u8, blocks: usize) -> Lines {
        Lines { start, blocks, bytes: 0 }
    }

    /// Finds this rank's block behind `before` other blocks; `None` if the block is not for this rank.
    ///
    /// # Errors
    /// Rank `from` has written an invalid line.
    pub(crate) fn find(&self, from: usize, me: usize, before: usize) -> Result<Option<PostedBytes>> {
        // SAFETY: the area has so many lines, as was checked; any bytes are integers.
        let line = |at: usize| unsafe { self.start.add(at * BLOCK_LINE).cast::<[u64; 3]>().read_unaligned() };
        let mut for_this = (0..self.blocks).map(line).filter(|[_, _, rank]| *rank == me as u64);
        let Some([place, len, _]) = for_this.nth(before) else { return Ok(None) };
        Ok(Some(match place {
            place if place < self.bytes && len <= self.bytes - place => {
                PostedBytes::here(len, self.start.wrapping_add(place as usize))
            }
            place if place < self.bytes => return Err(nonsense(from)),
            BY_MESSAGE => PostedBytes { len: len as usize, place: Location::ByMessage },
            address => PostedBytes { len: len as usize, place: Location::There { address } },
        }))
    }
}

/// Writes a line about a block.
pub(crate) fn write_block_line(lines: &mut [u8], block: usize, place: u64, len: usize, rank: usize) {
    let line = &mut lines[block * BLOCK_LINE..][..BLOCK_LINE];
    write_line(line, 0, place, len);
    line[LINE..].copy_from_slice(&(rank as u64).to_ne_bytes());
}

/// Length and location of a contribution, or of its part for this rank, from its note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedBytes {
    /// Number of bytes.
    pub(crate) len: usize,
    /// Location of the bytes.
    pub(crate) place: Location,
}

/// Addresses of a rank's operand and of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) operand: u64,
    pub(crate) result: u64,
}

/// Location of contributed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location {
    /// In shared memory; readable until this rank finishes the operation.
    Here(*const u8),
    /// In the memory of the rank that posted the note.
    There {
        /// Their address.
        address: u64,
    },
    /// In the memory of the rank that posted the note, to be combined by pieces.
    Operand {
        /// Their address, and that of the result.
        ends: Ends,
        /// The shape, which must be equal on all ranks.
        shape: u64,
    },
    /// They come by message.
    ByMessage,
    /// In the round buffers, round by round; of an exchange with neighbours, in messages.
    InRounds,
    /// In blocks, described by these lines.
    InBlocks(Lines),
    /// In blocks, described by lines in the memory of the rank that posted the note.
    InLentBlocks {
        /// Address of the lines.
        address: u64,
        blocks: usize,
    },
    /// Nowhere.
    Nowhere,
}

impl PostedBytes {
    fn here(len: u64, start: *const u8) -> PostedBytes {
        PostedBytes { len: len as usize, place: Location::Here(start) }
    }

    /// Fails unless the number of bytes is the one that this rank expects.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT`.
    #[inline(always)]
    pub(crate) fn check(self, rank: usize, expected: usize) -> Result<PostedBytes> {
        if self.len == expected { Ok(self) } else { Err(mismatch(rank, self.len, expected)) }
    }
}

/// The notes of a group of ranks, and the areas that they refer to. As a rank, the number of ranks stands for the
/// group.
pub(crate) trait Notes {
    /// Prefix of the names of operations that post notes here.
    const FORM: &'static str;

    /// Returns the segment of the notes.
    fn slots(&self) -> &SlotSegment;

    /// Returns area `area` of a rank, other than its slot, if it has at least `bytes` bytes.
    ///
    /// # Errors
    /// The area does not exist, or cannot be mapped.
    fn area_beside(&self, rank: usize, area: u64, bytes: u64) -> Result<*mut u8>;

    /// Posts this rank's note for operation `number`.
    #[inline(always)]
    fn post(&self, number: u64, call: Signed, note: &SlotNote) {
        self.slots().post(number, call.word, note.form.into(), &note.body);
    }

    /// Posts this rank's note with `len` bytes for all, or for each rank. `fill` writes `all` bytes, at most 48.
    #[inline(always)]
    fn post_bytes(&self, number: u64, call: Signed, [len, all]: [usize; 2], fill: impl FnOnce(&mut [u8])) {
        assert!(all <= BODY_BYTES, "{all} bytes do not fit a note");
        self.slots().post_filled(number, call.word, len as u16, |place| {
            // SAFETY: the bytes of a note, to which this rank has exclusive access before it is posted.
            fill(unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), all) });
        });
    }

    /// Posts the note of the group, on behalf of all.
    #[inline]
    fn post_for_all(&self, number: u64, call: Signed, note: &SlotNote) {
        self.slots().post_for_all(number, call.word, note.form.into(), &note.body);
    }

    /// Returns a rank's slot of an operation.
    fn slot(&self, rank: usize, number: u64) -> Area {
        Area { start: self.slots().slot_of(rank, number), bytes: self.slots().slot_bytes(), number: 0 }
    }

    /// Finds the contribution of a rank for all. Its note must be posted.
    ///
    /// # Errors
    /// The rank is in another operation, has left this one out, or has written an invalid note.
    #[inline(always)]
    fn find(&self, rank: usize, number: u64, call: Signed) -> Result<PostedBytes> {
        let form = self.form_of(rank, number, call)?;
        let body = self.slots().body_of(rank, number);
        if usize::from(form) <= BODY_BYTES {
            return Ok(PostedBytes { len: form.into(), place: Location::Here(body.cast()) });
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the operation.
        let [len, area, ..] = unsafe { *body };
        if form == AREA && area == 0 && len <= self.slots().slot_bytes() as u64 {
            return Ok(PostedBytes::here(len, self.slots().slot_of(rank, number)));
        }
        self.find_elsewhere(rank, number, call, form)
    }

    /// Finds a contribution that is neither in its note nor in its slot.
    #[inline(never)]
    fn find_elsewhere(&self, rank: usize, number: u64, call: Signed, form: u8) -> Result<PostedBytes> {
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the operation.
        let [len, second, result, shape, ..] = unsafe { *self.slots().body_of(rank, number) };
        let size = self.slots().size();
        let place = match form {
            BLOCKS if result <= len / BLOCK_LINE as u64 => {
                let start = self.area(rank, number, second, Some(len))?;
                Location::InBlocks(Lines { start, blocks: result as usize, bytes: len })
            }
            LENT_BLOCKS if result.checked_mul(BLOCK_LINE as u64) == Some(len) => {
                Location::InLentBlocks { address: second, blocks: result as usize }
            }
            AREA => return Ok(PostedBytes::here(len, self.area(rank, number, second, Some(len))?)),
            ADDRESS => Location::There { address: second },
            OPERAND => Location::Operand { ends: Ends { operand: second, result }, shape },
            ROUNDS => Location::InRounds,
            NOTHING => return Ok(PostedBytes { len: 0, place: Location::Nowhere }),
            OF_RANK if rank == size && len < size as u64 => return self.find(len as usize, number, call),
            _ => return Err(nonsense(rank)),
        };
        Ok(PostedBytes { len: len as usize, place })
    }

    /// Finds the contribution of a rank for this rank. Its note must be posted.
    ///
    /// # Errors
    /// As for [`Notes::find`].
    fn find_part(&self, rank: usize, number: u64, call: Signed) -> Result<PostedBytes> {
        let form = self.form_of(rank, number, call)?;
        let (size, me) = (self.slots().size(), self.slots().me());
        let body = self.slots().body_of(rank, number);
        if usize::from(form) <= BODY_BYTES {
            let len = usize::from(form);
            let fits = len * size <= BODY_BYTES;
            return if fits {
                Ok(PostedBytes::here(len as u64, body.cast::<u8>().wrapping_add(me * len)))
            } else {
                Err(nonsense(rank))
            };
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the operation.
        let [first, area, ..] = unsafe { *body };
        match form {
            AREA => {
                let start = self.area(rank, number, area, first.checked_mul(size as u64))?;
                Ok(PostedBytes::here(first, start.wrapping_add(me * first as usize)))
            }
            TABLE => {
                let start =
                    self.area(rank, number, area, Some(first).filter(|bytes| *bytes >= (size * LINE) as u64))?;
                // SAFETY: the area has room for the lines of all ranks; any bytes are integers.
                let [place, len] = unsafe { start.add(me * LINE).cast::<[u64; 2]>().read_unaligned() };
                match place {
                    place if place < first && len <= first - place => {
                        Ok(PostedBytes::here(len, start.wrapping_add(place as usize)))
                    }
                    place if place < first => Err(nonsense(rank)),
                    BY_MESSAGE => Ok(PostedBytes { len: len as usize, place: Location::ByMessage }),
                    address => Ok(PostedBytes { len: len as usize, place: Location::There { address } }),
                }
            }
            // Only with another length than this rank expects.
            ROUNDS => Ok(PostedBytes { len: first as usize, place: Location::InRounds }),
            NOTHING => Ok(PostedBytes { len: 0, place: Location::Nowhere }),
            _ => Err(nonsense(rank)),
        }
    }

    /// Returns the address of an area, of which a rank has used `bytes`.
    ///
    /// # Errors
    /// There is no such area, or it is shorter.
    fn area(&self, rank: usize, number: u64, area: u64, bytes: Option<u64>) -> Result<*mut u8> {
        match bytes {
            Some(bytes) if area == 0 && bytes <= self.slots().slot_bytes() as u64 => {
                Ok(self.slots().slot_of(rank, number))
            }
            Some(bytes) if area != 0 && rank < self.slots().size() => self.area_beside(rank, area, bytes),
            _ => Err(nonsense(rank)),
        }
    }

    /// Returns the form of a rank's note, which must be posted.
    ///
    /// # Errors
    /// The rank is in another operation, has left this one out, or has withdrawn its note.
    #[inline(always)]
    fn form_of(&self, rank: usize, number: u64, call: Signed) -> Result<u8> {
        match self.slots().tag_of(rank, number) {
            Some(tag) if self.slots().signature_of(rank, number) == call.word => Ok(tag as u8),
            _ => self.form_of_other(rank, number, call),
        }
    }

    /// As [`Notes::form_of`], for a note that does not carry the signatures that this rank has.
    #[cold]
    #[inline(never)]
    fn form_of_other(&self, rank: usize, number: u64, call: Signed) -> Result<u8> {
        let slots = self.slots();
        let (tag, word) = (slots.tag_of(rank, number), slots.noted(rank, number));
        if let Some(word) = word
            && let Some(difference) = disagreement::between((number, word), (number, call.word))
        {
            return Err(self.differ(rank, difference));
        }
        if let Some(difference) = disagreement::tolerated(call.word, word.unwrap_or(0))
            && slots.me() == self.leader(call)
            && rank < slots.size()
        {
            self.warn([rank, slots.me()], difference);
        }
        match (tag, word) {
            // The preceding call is not known there or here.
            (Some(tag), Some(_)) => Ok(tag as u8),
            (Some(_), None) => Err(given_up(rank, call.kind)),
            (None, _) => Err(left_out((rank, slots.size()), call.kind, Self::FORM)),
        }
    }

    /// Returns the member whose operation is carried out if ranks have named different ones in a reduction.
    #[inline]
    fn leader(&self, call: Signed) -> usize {
        let root = call.signature().root() as usize;
        // In a stage of a composed operation, the root may be outside the group.
        if root < self.slots().size() { root } else { 0 }
    }

    /// Returns the leader's operation of a reduction, if it differs from this rank's. The leader's note must be posted.
    #[inline]
    fn leading_op(&self, number: u64, call: Signed) -> Option<&'static Arc<Op>> {
        let leader = self.leader(call);
        if self.slots().signature_of(leader, number) == call.word { None } else { self.other_op(leader, number, call) }
    }

    #[cold]
    fn other_op(&self, leader: usize, number: u64, call: Signed) -> Option<&'static Arc<Op>> {
        disagreement::tolerated(self.slots().noted(leader, number)?, call.word)?.first.predefined_op()
    }

    /// Warns that the first of two ranks has named another operation of a reduction than this rank. The operation of
    /// the second is carried out.
    fn warn(&self, ranks: [usize; 2], difference: disagreement::Difference);

    /// Makes the error that a rank, or the rank on behalf of all, has called something else than this rank.
    fn differ(&self, rank: usize, difference: disagreement::Difference) -> Error;
}

#[cold]
fn left_out((rank, size): (usize, usize), kind: Collective, form: &str) -> Error {
    let subject = if rank < size { format!("rank {rank}") } else { "the last rank to arrive".to_owned() };
    let own = kind.name();
    Error::new(
        limosa_mpi::consts::MPI_ERR_OTHER,
        format!(
            "{subject} has left this operation out where this rank is in {form}{own}: all ranks must call the same \
             collectives in the same order"
        ),
    )
}

/// Makes the error that a rank takes no further part, and that its note is void.
#[cold]
pub(crate) fn given_up(rank: usize, kind: Collective) -> Error {
    let detail = format!(
        "rank {rank} has given up {}, because a process of the communicator has died, or its ranks disagree",
        kind.name()
    );
    Error::new(limosa_mpi::consts::MPI_ERR_PROC_ABORTED, detail)
}

/// Makes the error of an invalid note.
#[cold]
pub(crate) fn nonsense(rank: usize) -> Error {
    Error::new(limosa_mpi::consts::MPI_ERR_INTERN, format!("rank {rank} has left an invalid note in shared memory"))
}

/// Makes the error that a rank takes no further part.
#[cold]
pub(crate) fn withdrawn(rank: usize, kind: Collective) -> Error {
    let name = kind.name();
    let detail = format!("rank {rank} has withdrawn from {name}: it or a rank before it has another number of bytes");
    Error::new(limosa_mpi::consts::MPI_ERR_COUNT, detail)
}

/// Makes the error that the note of the group has no bytes, though all ranks agree.
#[cold]
pub(crate) fn failed_for_all(kind: Collective) -> Error {
    let name = kind.name();
    let detail = format!(
        "the rank that was to combine the operands of {name} for all could not: the error that it got says why"
    );
    Error::new(limosa_mpi::consts::MPI_ERR_OTHER, detail)
}
