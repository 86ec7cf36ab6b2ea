//! Copies of message bytes: within this process, and from or to a peer's memory.

use crate::completion::RequestId;
use crate::memory::Region;
use crate::wire::Offer;
use limosa_device::{Address, Peer, PeerMemory, Slice, Stretch, slice};
use std::io;

/// Mean length of a piece, in bytes, from which pulling piece by piece is worthwhile.
pub(crate) const MIN_PIECE: usize = 8 * 1024;
/// Bytes of the bounce buffer between a scattered region and a peer's memory.
const BOUNCE_BYTES: usize = 256 * 1024;

/// A message to be pulled from the sender's memory without the engine's lock.
pub(crate) struct Pull {
    pub request: RequestId,
    pub from: Peer,
    /// Address of the sender in [`PeerMemory`].
    pub at: Address,
    pub offer: Offer,
    pub region: Region,
    pub bytes: u64,
}

impl Pull {
    /// Copies the bytes from the sender's memory. Fails if there is no memory for the piece lists; the message is then
    /// streamed.
    pub fn run(&self, memory: &dyn PeerMemory) -> io::Result<()> {
        if self.offer.pieces == 1
            && let Some(target) = self.region.as_contiguous()
            && let Some(joint) = (self.offer.joint as usize).checked_sub(1).and_then(|i| memory.joints(self.at).get(i))
        {
            joint.open(target as u64, self.bytes, joint_step(self.bytes));
            let copy = |step: Stretch| {
                // The step is untrusted: the sender can write to its memory.
                if step.len == 0 || step.offset.checked_add(step.len).is_none_or(|end| end > self.bytes) {
                    return Err(io::Error::from(io::ErrorKind::InvalidData));
                }
                let mut local = [slice(target as u64 + step.offset, step.len as usize)];
                let mut remote = [slice(self.offer.address.wrapping_add(step.offset), step.len as usize)];
                // SAFETY: the step lies in the region, whose memory belongs to this receive until it is done; steps do
                // not overlap.
                unsafe { memory.read(self.at, &mut local, &mut remote) }
            };
            let still_there =
                || if memory.is_alive(self.at) { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) };
            return joint.finish(copy, still_there);
        }
        let mut remote = self.remote_slices(memory)?;
        let bytes = self.bytes as usize;
        if self.region.mean_piece() >= MIN_PIECE || self.region.as_contiguous().is_some() {
            let mut local = Vec::new();
            let mut has_room = true;
            self.region.pieces(0, bytes, &mut |address, len| {
                has_room = local.try_reserve(1).is_ok();
                if has_room {
                    local.push(slice(address as u64, len));
                }
                has_room
            });
            if !has_room {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            // SAFETY: the pieces lie in the region, whose memory belongs to this receive until it is done.
            return unsafe { memory.read(self.at, &mut local, &mut remote) };
        }
        let mut bounce = Vec::new();
        bounce.try_reserve_exact(BOUNCE_BYTES.min(bytes))?;
        bounce.resize(BOUNCE_BYTES.min(bytes), 0u8);
        let mut offset = 0;
        let mut next = 0;
        while offset < bytes {
            let part = bounce.len().min(bytes - offset);
            let mut remote_part = split_front(&mut remote, &mut next, part);
            let mut local = [slice(bounce.as_mut_ptr() as u64, part)];
            // SAFETY: the local slice is inside `bounce`, which is ours.
            unsafe { memory.read(self.at, &mut local, &mut remote_part)? };
            self.region.write(offset, &bounce[..part]);
            offset += part;
        }
        Ok(())
    }

    /// Returns the sender's pieces, cut to the wanted bytes.
    fn remote_slices(&self, memory: &dyn PeerMemory) -> io::Result<Vec<Slice>> {
        let bytes = self.bytes as usize;
        if self.offer.pieces == 1 {
            return Ok(vec![slice(self.offer.address, bytes)]);
        }
        let mut list = vec![(0u64, 0u64); self.offer.pieces as usize];
        let mut local = [slice(list.as_mut_ptr() as u64, size_of_val(&list[..]))];
        // SAFETY: the local slice is `list`, which is ours and may hold any integers.
        unsafe { memory.read(self.at, &mut local, &mut [slice(self.offer.address, size_of_val(&list[..]))])? };
        let mut all: Vec<Slice> = list.iter().map(|&(address, len)| slice(address, len as usize)).collect();
        let total = list.iter().try_fold(0u64, |sum, &(_, len)| sum.checked_add(len));
        if total != Some(self.offer.len) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the sender's list of pieces does not add up"));
        }
        Ok(split_front(&mut all, &mut 0, bytes))
    }
}

/// A message to be written to its receiver's memory without the engine's lock.
pub(crate) struct Push {
    pub request: RequestId,
    pub to: Peer,
    pub region: Region,
    pub address: u64,
    pub bytes: u64,
}

impl Push {
    /// Copies the bytes to the receiver's memory.
    pub fn run(&self, memory: &dyn PeerMemory, at: Address) -> io::Result<()> {
        let base = self
            .region
            .as_contiguous()
            .filter(|_| self.bytes <= self.region.len() as u64)
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut local = [slice(base as u64, self.bytes as usize)];
        let mut remote = [slice(self.address, self.bytes as usize)];
        // SAFETY: the message stays readable until its receiver knows that it is complete. The receiver gave this
        // address for its bytes, and does not touch them until it is told that they are there.
        unsafe { memory.write(at, &mut local, &mut remote) }
    }
}

/// Cuts slices of `bytes` in total from the front of `slices[*next..]`, which holds at least as many.
fn split_front(slices: &mut [Slice], next: &mut usize, bytes: usize) -> Vec<Slice> {
    let mut front = Vec::new();
    let mut rest = bytes;
    while rest > 0 {
        let piece = &mut slices[*next];
        let part = piece.iov_len.min(rest);
        front.push(slice(piece.iov_base as u64, part));
        piece.iov_base = piece.iov_base.wrapping_byte_add(part);
        piece.iov_len -= part;
        rest -= part;
        if piece.iov_len == 0 {
            *next += 1;
        }
    }
    front
}

/// Returns the bytes that each side of a joint copy claims at a time: many enough that a system call's cost is
/// negligible, few enough that both sides end together.
fn joint_step(bytes: u64) -> u64 {
    (bytes / 2).clamp(64 * 1024, 256 * 1024).next_multiple_of(4096)
}

/// Helps the receiver `to` of a message with the joint copy: writes steps of `source` until none is left.
pub(crate) fn help(memory: &dyn PeerMemory, me: Address, index: usize, to: Address, source: &Region) {
    let Some(base) = source.as_contiguous() else { return };
    let joint = &memory.joints(me)[index];
    let target = joint.address();
    joint.help(|step| {
        if step.len == 0 || step.offset.saturating_add(step.len) > source.len() as u64 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut local = [slice(base as u64 + step.offset, step.len as usize)];
        let mut remote = [slice(target.wrapping_add(step.offset), step.len as usize)];
        // SAFETY: the step lies in the message, which stays readable until its receiver is done. The receiver gave this
        // address for the message's bytes and waits until this step is done.
        unsafe { memory.write(to, &mut local, &mut remote) }
    });
}

/// Copies the first `bytes` of one region over the first `bytes` of another of the same process.
pub(crate) fn copy_region(from: &Region, to: &Region, bytes: usize) {
    let mut offset = 0;
    to.pieces(0, bytes, &mut |address, len| {
        // SAFETY: the piece lies in the target region, whose memory belongs to the receive. Source and target of one
        // message do not overlap in a correct program; an incorrect one gets a mixture of its own bytes.
        let piece = unsafe { std::slice::from_raw_parts_mut(address, len) };
        from.read(offset, piece);
        offset += len;
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_of_slices_is_cut_anywhere() {
        let mut slices = vec![slice(100, 10), slice(200, 0), slice(300, 10)];
        let mut next = 0;
        let shape =
            |s: Vec<Slice>| s.iter().map(|s| (s.iov_base as usize, s.iov_len)).filter(|s| s.1 > 0).collect::<Vec<_>>();
        assert_eq!(shape(split_front(&mut slices, &mut next, 4)), [(100, 4)]);
        assert_eq!(shape(split_front(&mut slices, &mut next, 10)), [(104, 6), (300, 4)]);
        assert_eq!(shape(split_front(&mut slices, &mut next, 6)), [(304, 6)]);
    }
}
