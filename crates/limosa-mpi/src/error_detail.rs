//! Error codes that carry a sentence: what `MPI_Error_string` says of the code that a failed call returned (MPI-5
//! section 9.4, which leaves the codes to the library and fixes only the classes).
//!
//! ```text
//! bit 31   30   29..23   22..0
//!      0    1   class    number of the sentence; its slot is the number modulo the slots of the ring
//! ```
//!
//! Contract
//! - [`Ring::keep`] stores a sentence and returns its code. The code contains the class, as its index in the table of
//!   classes, and can always be read, in any process. The sentence stays until its slot is used again;
//!   [`Ring::sentence`] then returns nothing, never another sentence.
//! - Numbers repeat after 2^23 sentences. A code that old could name a newer sentence of its class.
//! - Place 0 is the class `MPI_SUCCESS`, which no error has: `1 << 30` is not a code.
//! - Storing a sentence neither waits for another thread nor allocates memory. It works in a forked child, whatever the
//!   other threads of the parent were doing, and when memory has run out. If the slot is in use at that moment, the
//!   error has no sentence.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::consts::MPI_MAX_ERROR_STRING;

/// Set in all codes that carry a sentence. The program's own codes stay below.
pub(crate) const FIRST: i32 = 1 << 30;
const PLACE_SHIFT: u32 = 23;
const NUMBERS: u32 = 1 << PLACE_SHIFT;
/// More classes than this have no code.
pub(crate) const PLACES: usize = 1 << (30 - PLACE_SHIFT);
/// Bytes of a sentence, without the zero byte that C adds.
const LONGEST: usize = MPI_MAX_ERROR_STRING as usize - 1;

struct Slot {
    /// The code whose sentence is here; 0 if there is none yet.
    code: i32,
    length: usize,
    text: [u8; LONGEST],
}

impl Slot {
    const EMPTY: Slot = Slot { code: 0, length: 0, text: [0; LONGEST] };

    /// Appends a text; if there is too little room, as many whole characters as fit.
    fn push(&mut self, text: &str) {
        let mut taken = text.len().min(LONGEST - self.length);
        while !text.is_char_boundary(taken) {
            taken -= 1;
        }
        self.text[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
    }
}

/// The last `N` sentences.
pub(crate) struct Ring<const N: usize> {
    slots: [Mutex<Slot>; N],
    kept: AtomicU32,
}

impl<const N: usize> Ring<N> {
    pub(crate) const fn new() -> Ring<N> {
        assert!(
            N.is_power_of_two() && N < NUMBERS as usize,
            "slots must follow each other when the numbers start again"
        );
        Ring { slots: [const { Mutex::new(Slot::EMPTY) }; N], kept: AtomicU32::new(0) }
    }

    fn slot(&self, code: i32) -> &Mutex<Slot> {
        &self.slots[code as usize % N]
    }

    /// Returns a code for this error; `None` if it can have none. `origin` is the number of the ring's first sentence,
    /// the same at every call.
    pub(crate) fn keep(&self, origin: u32, place: usize, function: &str, detail: &str) -> Option<i32> {
        if place == 0 || place >= PLACES {
            return None;
        }
        let number = origin.wrapping_add(self.kept.fetch_add(1, Ordering::Relaxed)) % NUMBERS;
        let code = FIRST | (place << PLACE_SHIFT) as i32 | number as i32;
        let mut slot = self.slot(code).try_lock()?;
        (slot.code, slot.length) = (code, 0);
        for part in [function, ": ", detail] {
            slot.push(part);
        }
        Some(code)
    }

    /// Returns the sentence of a code, unless its slot has been used again.
    pub(crate) fn sentence(&self, code: i32) -> Option<String> {
        place(code)?;
        let slot = self.slot(code).lock();
        (slot.code == code).then(|| String::from_utf8_lossy(&slot.text[..slot.length]).into_owned())
    }
}

/// Returns the place of a code's class; `None` for codes that cannot carry a sentence.
pub(crate) fn place(code: i32) -> Option<usize> {
    (code > FIRST).then_some((code ^ FIRST) as usize >> PLACE_SHIFT).filter(|place| *place > 0)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_code_has_its_class_and_its_sentence() {
        let ring = Ring::<4>::new();
        let code = ring.keep(0, 6, "MPI_Send", "destination rank 7 is not there").unwrap();
        assert!(code > FIRST);
        assert_eq!(place(code), Some(6));
        assert_eq!(ring.sentence(code).unwrap(), "MPI_Send: destination rank 7 is not there");
    }

    #[test]
    fn what_is_not_an_error_has_no_code() {
        let ring = Ring::<4>::new();
        assert_eq!(ring.keep(0, 0, "MPI_Send", "all is well"), None);
        assert_eq!(ring.keep(0, PLACES, "MPI_Send", "no such class"), None);
        for code in [i32::MIN, -1, 0, 1, FIRST - 1, FIRST, FIRST + 1] {
            assert_eq!((place(code), ring.sentence(code)), (None, None), "{code}");
        }
    }

    #[test]
    fn an_overwritten_sentence_is_gone_and_the_class_stays() {
        // From 0, and across the end of the numbers.
        for origin in [0, NUMBERS - 6, u32::MAX - 6] {
            let ring = Ring::<4>::new();
            let kept: Vec<(i32, String)> = (0..20)
                .map(|i| (ring.keep(origin, 1 + i % 3, "MPI_Recv", &i.to_string()).unwrap(), format!("MPI_Recv: {i}")))
                .collect();
            let (old, last) = kept.split_at(16);
            for (i, (code, _)) in old.iter().enumerate() {
                assert_eq!((place(*code), ring.sentence(*code)), (Some(1 + i % 3), None), "{i} from {origin}");
            }
            for (code, text) in last {
                assert_eq!(ring.sentence(*code).as_ref(), Some(text), "from {origin}");
            }
        }
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_character() {
        let ring = Ring::<1>::new();
        // One byte before the first character of two bytes, so that some boundary does not fit.
        for lead in ["x", "xx"] {
            let code = ring.keep(0, 1, lead, &"é".repeat(LONGEST)).unwrap();
            let text = ring.sentence(code).unwrap();
            assert!(
                (LONGEST - 1..=LONGEST).contains(&text.len()) && !text.contains(char::REPLACEMENT_CHARACTER),
                "{text}"
            );
        }
        assert_eq!(
            ring.sentence(ring.keep(0, 1, "f", "short").unwrap()).unwrap(),
            "f: short",
            "nothing of a longer one is left"
        );
    }

    #[test]
    fn a_slot_in_use_is_passed_over() {
        let ring = Ring::<2>::new();
        let slot = ring.slots[0].lock();
        assert_eq!(ring.keep(0, 1, "MPI_Recv", "first"), None);
        let second = ring.keep(0, 1, "MPI_Recv", "second").unwrap();
        assert_eq!(ring.keep(0, 1, "MPI_Recv", "third"), None);
        drop(slot);
        assert_eq!(ring.sentence(second).unwrap(), "MPI_Recv: second");
    }

    const THREADS: usize = 8;
    const EACH: usize = 2000;

    /// Every thread keeps sentences and reads them back; returns how many it found, none of which is another's.
    fn found<const N: usize>(ring: &Ring<N>) -> usize {
        let one = |thread: usize| {
            let kept: Vec<_> = (0..EACH)
                .map(|i| (ring.keep(0, 1, "f", &format!("{thread} {i}")), format!("f: {thread} {i}")))
                .collect();
            let read = |(code, text): &(Option<i32>, String)| {
                code.and_then(|code| ring.sentence(code)).inspect(|read| assert_eq!(read, text))
            };
            kept.iter().filter_map(read).count()
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || one(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    }

    #[test]
    fn threads_never_read_each_others_sentences() {
        static SMALL: Ring<8> = Ring::new();
        static LARGE: Ring<{ (THREADS * EACH).next_power_of_two() }> = Ring::new();
        found(&SMALL);
        assert_eq!(found(&LARGE), THREADS * EACH, "where there is room for all, nothing is lost");
    }
}
