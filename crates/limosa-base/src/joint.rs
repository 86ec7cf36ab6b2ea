//! A copy that two processes make together: each takes the next step of it until none is left.
//!
//! The sender owns the joint and lends it to one copy at a time. The receiver opens it, both claim steps, and the receiver waits at the end until
//! the sender has finished the step that it is at.
//!
//! | `cursor` | meaning |
//! |---|---|
//! | [`CLOSED`] | nothing to do: not yet opened |
//! | less than `len` | the next step begins here |
//! | more | all steps are claimed |
//!
//! Why nobody writes after the end: a helper counts itself in `helpers` before it claims. The receiver looks at `helpers` only after the cursor has
//! passed `len`. Both words are accessed in one total order, so a helper that is not counted by then finds nothing to claim.

use std::hint;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const CLOSED: u64 = 1 << 62;
const NOTHING: u64 = u64::MAX;

/// The shared state of a copy, in a cache line or two of its own. Zeroed memory is a joint with nothing to do.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Joint {
    cursor: AtomicU64,
    len: AtomicU64,
    step: AtomicU64,
    /// Where the bytes go, in the receiver's memory.
    address: AtomicU64,
    /// First byte of a step that a helper claimed and could not do.
    lost: AtomicU64,
    helpers: AtomicU32,
}

/// A claimed step: `len` bytes from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Joint {
    /// The owner prepares it for one copy, before it tells the receiver.
    pub fn lend(&self) {
        self.lost.store(NOTHING, Ordering::Relaxed);
        self.cursor.store(CLOSED, Ordering::Release);
    }

    /// The receiver begins a copy of `len` bytes to `address`, in steps of `step` bytes.
    pub fn open(&self, address: u64, len: u64, step: u64) {
        self.address.store(address, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.step.store(step, Ordering::Relaxed);
        self.cursor.store(0, Ordering::Release);
    }

    /// True if there are steps to claim.
    #[inline]
    pub fn is_open(&self) -> bool {
        let cursor = self.cursor.load(Ordering::Acquire);
        cursor < CLOSED && cursor < self.len.load(Ordering::Relaxed)
    }

    /// Where the bytes go.
    pub fn address(&self) -> u64 {
        self.address.load(Ordering::Relaxed)
    }

    /// Takes the next step, if there is one.
    pub fn claim(&self) -> Option<Step> {
        let (len, step) = (self.len.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
        let offset = self.cursor.fetch_add(step, Ordering::SeqCst);
        (offset < len).then(|| Step { offset, len: step.min(len - offset) })
    }

    /// The sender does steps with `copy` until none is left or one fails. Call only when [`Joint::is_open`].
    pub fn help<E>(&self, mut copy: impl FnMut(Step) -> Result<(), E>) {
        self.helpers.fetch_add(1, Ordering::SeqCst);
        while let Some(step) = self.claim() {
            if copy(step).is_err() {
                self.lost.store(step.offset, Ordering::Relaxed);
                break;
            }
        }
        self.helpers.fetch_sub(1, Ordering::SeqCst);
    }

    /// The receiver does steps with `copy`, waits for the helper's last one, and does what the helper could not.
    ///
    /// # Errors
    /// The first one of `copy`.
    pub fn finish<E>(&self, mut copy: impl FnMut(Step) -> Result<(), E>) -> Result<(), E> {
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(step) = self.claim()
        {
            outcome = copy(step);
        }
        // After an error too nobody may write any more.
        self.cursor.store(CLOSED, Ordering::SeqCst);
        let mut spins = 0u32;
        while self.helpers.load(Ordering::SeqCst) != 0 {
            spins += 1;
            if spins.is_multiple_of(1000) {
                crate::cpu::yield_now();
            }
            hint::spin_loop();
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if outcome.is_ok() && lost != NOTHING {
            let (len, step) = (self.len.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
            outcome = copy(Step { offset: lost, len: step.min(len.saturating_sub(lost)) });
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Mutex;

    fn joint() -> Joint {
        Joint {
            cursor: AtomicU64::new(0),
            len: AtomicU64::new(0),
            step: AtomicU64::new(0),
            address: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            helpers: AtomicU32::new(0),
        }
    }

    /// Notes a step.
    fn note(steps: &Mutex<Vec<Step>>, step: Step) -> Result<(), Infallible> {
        steps.lock().unwrap().push(step);
        Ok(())
    }

    fn covers(mut steps: Vec<Step>, len: u64) {
        steps.sort_by_key(|s| s.offset);
        let end = steps.iter().fold(0, |at, step| {
            assert_eq!(step.offset, at);
            at + step.len
        });
        assert_eq!(end, len);
    }

    #[test]
    fn a_joint_that_is_zero_or_lent_offers_nothing() {
        let joint = joint();
        assert!(!joint.is_open());
        joint.lend();
        assert!(!joint.is_open());
        joint.open(77, 10, 4);
        assert!(joint.is_open());
        assert_eq!(joint.address(), 77);
    }

    #[test]
    fn every_byte_is_copied_once_however_the_two_share_it() {
        let joint = joint();
        let steps = Mutex::new(Vec::new());
        for round in 0..2000u64 {
            let len = 1 + round * 37 % 5000;
            joint.lend();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !joint.is_open() && !steps.lock().unwrap().iter().any(|s: &Step| s.offset == 0) {
                        hint::spin_loop();
                    }
                    joint.help(|step| note(&steps, step));
                });
                joint.open(0, len, 64);
                joint.finish(|step| note(&steps, step)).unwrap();
            });
            covers(std::mem::take(&mut *steps.lock().unwrap()), len);
        }
    }

    #[test]
    fn a_step_that_the_helper_loses_is_done_by_the_receiver() {
        let joint = joint();
        joint.lend();
        joint.open(0, 100, 30);
        joint.help(|step| if step.offset == 30 { Err(()) } else { Ok(()) });
        let steps = Mutex::new(vec![Step { offset: 0, len: 30 }]);
        joint.finish(|step| note(&steps, step)).unwrap();
        covers(steps.into_inner().unwrap(), 100);
    }

    #[test]
    fn after_a_failure_nothing_is_left_to_claim() {
        let joint = joint();
        joint.lend();
        joint.open(0, 100, 30);
        assert_eq!(joint.finish(|_| Err("gone")), Err("gone"));
        assert!(!joint.is_open());
        assert_eq!(joint.claim(), None);
    }
}
