//! Cards: what a rank tells all others about itself, such as how it is reached over a network.
//!
//! A card is up to [`CARD_BYTES`] bytes in the rank's entry of the status board, under a sequence lock. What the bytes
//! mean is up to the processes that exchange them.
//!
//! - One thread at a time writes a card: one of the rank, or of the process that stands for a rank of another host.
//! - A card can be replaced; readers see the old one or the new one, never parts of both.
//! - The writer may end at any time, and what is read is untrusted: a card that is never whole counts as absent.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Most bytes of a card.
pub const CARD_BYTES: usize = 256;
/// How often a reader tries again while a card changes. A writer needs less than a microsecond.
const TRIES: usize = 1000;

/// A rank's card.
#[repr(C, align(64))]
pub(crate) struct CardSlot {
    /// Sequence lock: odd while the card is written, 0 = there has been none.
    seq: AtomicU32,
    /// Bytes of the card.
    len: AtomicU32,
    reserved: [AtomicU64; 7],
    words: [AtomicU64; CARD_BYTES / 8],
}

const _: () = assert!(size_of::<CardSlot>() == 320);

impl CardSlot {
    /// Writes the card.
    pub(crate) fn write(&self, card: &[u8]) {
        assert!(card.len() <= CARD_BYTES, "a card of {} bytes", card.len());
        let seq = self.seq.load(Relaxed) | 1;
        self.seq.store(seq, Relaxed);
        fence(Release);
        self.len.store(card.len() as u32, Relaxed);
        for (word, part) in self.words.iter().zip(card.chunks(8)) {
            let mut value = [0; 8];
            value[..part.len()].copy_from_slice(part);
            word.store(u64::from_ne_bytes(value), Relaxed);
        }
        // Never 0 again.
        self.seq.store(seq.checked_add(1).unwrap_or(2), Release);
    }

    /// The card; `None` if there is none, or none that is whole while this looks.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        for _ in 0..TRIES {
            let seq = self.seq.load(Acquire);
            if seq == 0 {
                return None;
            }
            if seq.is_multiple_of(2) {
                let len = self.len.load(Relaxed) as usize;
                let words = self.words.iter().take(len.div_ceil(8)).map(|word| word.load(Relaxed));
                let mut card: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
                fence(Acquire);
                if self.seq.load(Relaxed) == seq {
                    if len > CARD_BYTES {
                        return None;
                    }
                    card.truncate(len);
                    return Some(card);
                }
            }
            std::hint::spin_loop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicBool;

    fn slot(fill: impl Fn(usize) -> u64) -> CardSlot {
        CardSlot {
            seq: AtomicU32::new(fill(0) as u32),
            len: AtomicU32::new(fill(1) as u32),
            reserved: std::array::from_fn(|_| AtomicU64::new(0)),
            words: std::array::from_fn(|i| AtomicU64::new(fill(i + 2))),
        }
    }

    proptest! {
        #[test]
        fn a_card_comes_back_as_it_was_written_last(
            cards in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..=CARD_BYTES), 1..4)
        ) {
            let slot = slot(|_| 0);
            prop_assert_eq!(slot.read(), None);
            for card in cards {
                slot.write(&card);
                prop_assert_eq!(slot.read(), Some(card));
            }
        }

        #[test]
        fn a_damaged_card_is_read_without_harm(seed in any::<u64>(), len in any::<u32>()) {
            let slot = slot(|at| if at == 1 { len.into() } else { seed.rotate_left(at as u32) });
            prop_assert!(slot.read().is_none_or(|card| card.len() == len as usize));
        }
    }

    #[test]
    fn a_writer_that_ended_in_the_middle_leaves_no_card() {
        assert_eq!(slot(|_| 7).read(), None);
    }

    #[test]
    fn a_reader_never_sees_parts_of_two_cards() {
        let slot = slot(|_| 0);
        slot.write(&[0; CARD_BYTES]);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..20_000 {
                    let card = [i as u8; CARD_BYTES];
                    slot.write(&card[..64 + i % 192]);
                }
                stop.store(true, Relaxed);
            });
            while !stop.load(Relaxed) {
                if let Some(card) = slot.read() {
                    assert!(card.iter().all(|byte| *byte == card[0]));
                }
            }
        });
    }
}
