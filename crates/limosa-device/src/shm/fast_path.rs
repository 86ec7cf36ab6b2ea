//! The fast path of the shared-memory device: short packets over lanes that are open already. Every function here does
//! all of its work or none of it.

use super::{INLINE_BYTES, ShmDevice};
use crate::{Address, Data, Device, Meta, Sent, Urgency};
use limosa_base::copy::copy;
use limosa_base::fence;

impl ShmDevice {
    /// Sends a short packet of normal urgency to a process that this process has sent to before, if there is room;
    /// returns false if not, without any effect.
    #[inline(always)]
    pub fn try_send(&mut self, to: Address, meta: &Meta, bytes: &[u8]) -> bool {
        if bytes.len() > INLINE_BYTES {
            // An error comes again when the packet is sent the general path.
            return matches!(self.send(to, meta, Data::Bytes(bytes), Urgency::Normal), Ok(Sent::Done));
        }
        let Some(Some(lane)) = self.outgoing.get_mut(to as usize) else { return false };
        let info = u32::from(meta.kind) | (bytes.len() as u32) << 8;
        let sent = lane.producer.push_parts(&lane.memory, info, meta.words, bytes);
        if sent {
            lane.doorbell.ring(false);
        }
        sent
    }

    /// Takes the next packet of `from` if it has arrived, lies in one cell, matches `wanted`, and fits into `to`.
    /// Returns its second word, and the length of the data, which are then in `to`. It matches if it has this kind and
    /// first word, and the bits of `mask` in the second word.
    #[inline(always)]
    pub fn try_take(&mut self, from: Address, wanted: &Meta, mask: u64, to: &mut [u8]) -> Option<(u64, usize)> {
        let index = *self.lane_of.get(from as usize)? as usize;
        let lane = self.incoming.get_mut(index)?;
        let cell = lane.consumer.peek_in_place(&lane.memory)?;
        let words = cell.words();
        if cell.info as u8 != wanted.kind || words[0] != wanted.words[0] || words[1] & mask != wanted.words[1] {
            return None;
        }
        let data = cell.tail().get(..(cell.info >> 8 & 0xff) as usize)?;
        to.get_mut(..data.len())?;
        // SAFETY: there is room for the data, which lie in shared memory and so not in `to`.
        unsafe { copy(data.as_ptr(), to.as_mut_ptr(), data.len()) };
        lane.consumer.advance(&lane.memory);
        self.favourite = index;
        fence::light();
        if lane.memory.take_starved() {
            self.ports.doorbell(from).ring(true);
        }
        Some((words[1], data.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{pair, received};
    use super::super::{CELLS, Seats};
    use super::*;
    use crate::DeviceError;
    use limosa_base::segment::{self, PAGE};
    use std::os::fd::AsFd;

    /// Takes a packet on the fast path that has this second word in the bits of the mask.
    fn taken(device: &mut ShmDevice, word: u64, mask: u64, room: usize) -> Option<(u64, Vec<u8>)> {
        let mut to = vec![0; room];
        let (word, len) = device.try_take(0, &Meta { kind: 1, words: [3, word] }, mask, &mut to)?;
        to.truncate(len);
        Some((word, to))
    }

    #[test]
    fn short_packets_are_sent_and_taken_fast_where_the_way_is_open() {
        let (mut a, mut b) = pair();
        let meta = |i| Meta { kind: 1, words: [3, i] };
        assert!(!a.try_send(1, &meta(0), &[1]), "no lane is open");
        assert_eq!(a.send(1, &meta(0), Data::Bytes(&[1]), Urgency::Normal).expect("send"), Sent::Done);
        assert_eq!(taken(&mut b, 0, u64::MAX, 8), None, "the lane is not known");
        assert_eq!(b.try_take(7, &meta(0), 0, &mut []), None, "there is no such process");
        assert_eq!(received(&mut b), [(0, meta(0), vec![1])]);
        for i in 1..1000u64 {
            let bytes = vec![i as u8; i as usize % 41];
            assert!(a.try_send(1, &meta(i), &bytes));
            assert_eq!(taken(&mut b, i ^ 1, u64::MAX, 40), None, "a different packet is wanted");
            assert_eq!(b.try_take(0, &Meta { kind: 2, ..meta(i) }, u64::MAX, &mut [0; 40]), None, "another kind");
            assert_eq!(
                b.try_take(0, &Meta { kind: 1, words: [4, i] }, u64::MAX, &mut [0; 40]),
                None,
                "another first word"
            );
            if !bytes.is_empty() {
                assert_eq!(taken(&mut b, i, u64::MAX, bytes.len() - 1), None, "there is no room");
            }
            assert_eq!(taken(&mut b, i & 0xf0, 0xf0, bytes.len()), Some((i, bytes)));
        }
        for len in [41, 264, 265, 5000] {
            assert!(a.try_send(1, &meta(0), &vec![7; len]));
            assert_eq!(taken(&mut b, 0, u64::MAX, len), None, "it lies elsewhere");
            assert_eq!(received(&mut b), [(0, meta(0), vec![7; len])]);
        }
        while a.try_send(1, &meta(0), &[7; 8]) {}
        assert_eq!(received(&mut b).len(), CELLS);
    }

    #[test]
    fn a_sender_that_waits_for_room_is_woken_when_a_packet_is_taken_fast() {
        let (mut a, mut b) = pair();
        let meta = Meta { kind: 1, words: [3, 5] };
        while a.send(1, &meta, Data::Bytes(&[7; 8]), Urgency::Normal).expect("send") == Sent::Done {}
        b.accept_lanes(0).expect("lanes");
        a.want_room(1);
        let doorbell = a.doorbell();
        doorbell.set(limosa_base::doorbell::DoorbellState::Asleep);
        assert!(taken(&mut b, 5, u64::MAX, 8).is_some());
        assert!(doorbell.is(limosa_base::doorbell::DoorbellState::Awake));
        assert!(a.try_send(1, &meta, &[7; 8]));
    }

    #[test]
    fn lanes_are_found_after_the_death_of_another_peer() {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        let mut all: Vec<_> = (0..3)
            .map(|rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 3), true).expect("joining"))
            .collect();
        let meta = Meta { kind: 1, words: [3, 5] };
        for sender in &mut all[..2] {
            assert_eq!(sender.send(2, &meta, Data::Bytes(&[7]), Urgency::Normal).expect("send"), Sent::Done);
        }
        let last = &mut all[2];
        assert_eq!(received(last).len(), 2);
        // As `notice_deaths` does when process 0 has died.
        last.dead.push(0);
        last.dying.push(0);
        last.expected[0] = !last.accepted[0];
        let died = (0..10).find_map(|_| last.poll(&mut |_, _, _| ()).err());
        assert!(matches!(died, Some(DeviceError::Died { peer: 0, .. })));
        assert!(all[1].try_send(2, &meta, &[9]));
        assert_eq!(all[2].try_take(0, &meta, u64::MAX, &mut [0; 8]), None);
        assert_eq!(all[2].try_take(1, &meta, u64::MAX, &mut [0; 8]), Some((5, 1)));
    }
}
