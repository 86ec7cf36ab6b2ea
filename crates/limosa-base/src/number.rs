//! Atomic access to a number at an address, in shared memory or in memory of the program.
//!
//! The number has 1, 2, 4 or 8 bytes and is aligned to its length; [`Width::of`] checks the length. It is passed as an
//! unsigned number in a `u64`, which the caller interprets.

#![allow(clippy::useless_conversion)] // for one of the widths it is one

use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Width in bytes of a number that the processor can change atomically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
}

/// `each!(width, place, |atomic| expression)` evaluates the expression with the number as an atomic of its width.
macro_rules! each {
    ($width:expr, $place:expr, |$atomic:ident: $number:ident| $body:expr) => {
        // SAFETY: each function's caller promises a valid, aligned number that is accessed atomically only.
        unsafe {
            match $width {
                Width::One => {
                    #[allow(dead_code)]
                    type $number = u8;
                    let $atomic = AtomicU8::from_ptr($place);
                    $body
                }
                Width::Two => {
                    #[allow(dead_code)]
                    type $number = u16;
                    let $atomic = AtomicU16::from_ptr($place.cast());
                    $body
                }
                Width::Four => {
                    #[allow(dead_code)]
                    type $number = u32;
                    let $atomic = AtomicU32::from_ptr($place.cast());
                    $body
                }
                Width::Eight => {
                    #[allow(dead_code)]
                    type $number = u64;
                    let $atomic = AtomicU64::from_ptr($place.cast());
                    $body
                }
            }
        }
    };
}

impl Width {
    /// Returns the width of numbers of so many bytes, if there are atomics of that width.
    pub fn of(bytes: usize) -> Option<Width> {
        Some(match bytes {
            1 => Width::One,
            2 => Width::Two,
            4 => Width::Four,
            8 => Width::Eight,
            _ => return None,
        })
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }

    /// Returns whether a number at this address is aligned.
    pub fn is_aligned(self, place: *const u8) -> bool {
        place.addr().is_multiple_of(self.bytes())
    }

    /// Returns the number.
    ///
    /// # Safety
    /// The address must hold a valid, aligned number of this width, which is accessed only atomically during the call.
    #[inline]
    pub unsafe fn load(self, place: *mut u8) -> u64 {
        each!(self, place, |atomic: Number| u64::from(atomic.load(Ordering::SeqCst)))
    }

    /// Replaces the number. Returns the old value.
    ///
    /// # Safety
    /// As for [`Width::load`].
    #[inline]
    pub unsafe fn swap(self, place: *mut u8, new: u64) -> u64 {
        each!(self, place, |atomic: Number| u64::from(atomic.swap(new as Number, Ordering::SeqCst)))
    }

    /// Adds to the number as an integer that wraps around. Returns the old value.
    ///
    /// # Safety
    /// As for [`Width::load`].
    #[inline]
    pub unsafe fn add(self, place: *mut u8, by: u64) -> u64 {
        each!(self, place, |atomic: Number| u64::from(atomic.fetch_add(by as Number, Ordering::SeqCst)))
    }

    /// Replaces the number if it equals `expected`. Returns the old value.
    ///
    /// # Safety
    /// As for [`Width::load`].
    #[inline]
    pub unsafe fn compare_and_swap(self, place: *mut u8, expected: u64, new: u64) -> u64 {
        each!(self, place, |atomic: Number| {
            match atomic.compare_exchange(expected as Number, new as Number, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) | Err(old) => u64::from(old),
            }
        })
    }

    /// Replaces the number by a function of it, which may be called several times. Returns the old value.
    ///
    /// # Safety
    /// As for [`Width::load`].
    #[inline]
    pub unsafe fn update(self, place: *mut u8, mut change: impl FnMut(u64) -> u64) -> u64 {
        each!(self, place, |atomic: Number| {
            let mut old = atomic.load(Ordering::Relaxed);
            loop {
                let new = change(u64::from(old)) as Number;
                match atomic.compare_exchange_weak(old, new, Ordering::SeqCst, Ordering::Relaxed) {
                    Ok(_) => break u64::from(old),
                    Err(now) => old = now,
                }
            }
        })
    }

    /// Returns the number at an address, aligned or not.
    ///
    /// # Safety
    /// It must be readable, and must not change during the call.
    #[inline]
    pub unsafe fn get(self, from: *const u8) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Width::One => u64::from(*from),
                Width::Two => u64::from(from.cast::<u16>().read_unaligned()),
                Width::Four => u64::from(from.cast::<u32>().read_unaligned()),
                Width::Eight => from.cast::<u64>().read_unaligned(),
            }
        }
    }

    /// Stores a number at an address, aligned or not.
    ///
    /// # Safety
    /// It must be writable, and must not be accessed concurrently.
    #[inline]
    pub unsafe fn set(self, to: *mut u8, number: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Width::One => *to = number as u8,
                Width::Two => to.cast::<u16>().write_unaligned(number as u16),
                Width::Four => to.cast::<u32>().write_unaligned(number as u32),
                Width::Eight => to.cast::<u64>().write_unaligned(number),
            }
        }
    }

    /// Decodes a number from bytes, of which there are as many as the width says.
    #[inline]
    pub fn number(self, bytes: &[u8]) -> u64 {
        match (self, bytes) {
            (Width::One, &[a]) => u64::from(a),
            (Width::Two, &[a, b]) => u64::from(u16::from_ne_bytes([a, b])),
            (Width::Four, &[a, b, c, d]) => u64::from(u32::from_ne_bytes([a, b, c, d])),
            (Width::Eight, &[a, b, c, d, e, f, g, h]) => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => panic!("{} bytes are no number of {}", bytes.len(), self.bytes()),
        }
    }

    /// Encodes a number into bytes.
    #[inline]
    pub fn write(self, number: u64, bytes: &mut [u8]) {
        match self {
            Width::One => bytes[0] = number as u8,
            Width::Two => bytes.copy_from_slice(&(number as u16).to_ne_bytes()),
            Width::Four => bytes.copy_from_slice(&(number as u32).to_ne_bytes()),
            Width::Eight => bytes.copy_from_slice(&number.to_ne_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: [Width; 4] = [Width::One, Width::Two, Width::Four, Width::Eight];

    #[test]
    fn every_width_does_what_it_says_and_touches_nothing_else() {
        for width in WIDTHS {
            let mut memory = [u64::MAX; 2];
            let place = memory.as_mut_ptr().cast::<u8>();
            let mask = u64::MAX >> (64 - 8 * width.bytes());
            // SAFETY: the first bytes of an aligned array private to this test.
            unsafe {
                assert_eq!(width.swap(place, 7), mask);
                assert_eq!(width.add(place, mask), 7, "wraps around");
                assert_eq!(width.compare_and_swap(place, 5, 9), 6);
                assert_eq!(width.compare_and_swap(place, 6, 9), 6);
                assert_eq!(width.update(place, |old| old * 2), 9);
                assert_eq!(width.load(place), 18);
            }
            assert_eq!(memory[1], u64::MAX);
            let mut bytes = vec![0; width.bytes()];
            width.write(18, &mut bytes);
            assert_eq!(width.number(&bytes), 18);
            let mut bytes = vec![0; width.bytes() + 2];
            // SAFETY: inside the vector.
            unsafe {
                width.set(bytes.as_mut_ptr().add(1), 18);
                assert_eq!(width.get(bytes.as_ptr().add(1)), 18);
            }
            assert_eq!((bytes[0], bytes[bytes.len() - 1]), (0, 0));
            assert_eq!(Width::of(width.bytes()), Some(width));
        }
        assert_eq!(Width::of(16), None);
    }

    #[test]
    fn updates_of_several_threads_are_all_there() {
        for width in [Width::Four, Width::Eight] {
            let number = AtomicU64::new(0);
            let place = number.as_ptr() as usize;
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(move || {
                        for _ in 0..500 {
                            // SAFETY: an aligned number that the threads access only atomically.
                            unsafe { width.update(place as *mut u8, |old| old + 1) };
                        }
                    });
                }
            });
            let mut bytes = vec![0; width.bytes()];
            bytes.copy_from_slice(&number.load(Ordering::Relaxed).to_ne_bytes()[..width.bytes()]);
            assert_eq!(width.number(&bytes), 1500);
        }
    }
}
