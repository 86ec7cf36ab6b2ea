//! A copy shared by two processes: each claims the next step until none is left.
//!
//! The sender owns the joint copy and lends it to one message at a time. The receiver opens it, and both processes
//! claim steps. At the end the receiver waits until the sender has finished its current step.
//!
//! | `cursor` | meaning |
//! |---|---|
//! | [`CLOSED`] | not open: nothing to claim |
//! | less than `len` | offset of the next step |
//! | more | all steps are claimed |
//!
//! Why no helper writes after the end: a helper increments `helpers` before it claims, and a claim is an atomic
//! read-modify-write of `cursor`. The receiver closes the cursor by a swap and then loads `helpers`. The swap acquires
//! what earlier claims released, so the receiver sees those helpers; a later claim finds the cursor closed.
//!
//! A helper that dies stays counted. The waiting process therefore checks from time to time whether the helper is
//! alive.

use crate::sync::{AtomicU32, AtomicU64, Ordering, spin_loop, yield_now};

const CLOSED: u64 = 1 << 62;
const NOTHING: u64 = u64::MAX;
/// Reads of `helpers` before each yield of the processor.
const SPINS: u32 = if cfg!(loom) { 1 } else { 1000 };
/// Yields before a system call checks whether the helper is alive.
const YIELDS: u32 = if cfg!(loom) { u32::MAX } else { 64 };

/// Shared state of a copy, in cache lines of its own. Zeroed memory is a joint copy without work.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Joint {
    cursor: AtomicU64,
    len: AtomicU64,
    step: AtomicU64,
    /// Destination address, in the receiver's memory.
    address: AtomicU64,
    /// Offset of a step that a helper claimed but failed to copy.
    lost: AtomicU64,
    /// 1 while a helper claims or copies.
    helpers: AtomicU32,
}

/// A claimed step: `len` bytes from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Joint {
    /// Prepares the joint copy for one message, before the receiver learns of it. Called by the sender.
    pub fn lend(&self) {
        self.lost.store(NOTHING, Ordering::Relaxed);
        self.cursor.store(CLOSED, Ordering::Release);
    }

    /// Opens a copy of `len` bytes to `address`, in steps of `step` bytes. Called by the receiver.
    pub fn open(&self, address: u64, len: u64, step: u64) {
        self.address.store(address, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.step.store(step, Ordering::Relaxed);
        self.cursor.store(0, Ordering::Release);
    }

    /// Returns whether there are steps to claim.
    #[inline]
    pub fn is_open(&self) -> bool {
        let cursor = self.cursor.load(Ordering::Acquire);
        cursor < CLOSED && cursor < self.len.load(Ordering::Relaxed)
    }

    /// Returns the destination address.
    pub fn address(&self) -> u64 {
        self.address.load(Ordering::Relaxed)
    }

    /// Claims the next step, if there is one.
    pub fn claim(&self) -> Option<Stretch> {
        let (len, step) = (self.len.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
        // A step of 0 bytes, which only a broken peer could request, would never end.
        let offset = self.cursor.fetch_add(step.max(1), Ordering::AcqRel);
        (offset < len).then(|| Stretch { offset, len: step.min(len - offset) })
    }

    /// Copies steps with `copy` until none is left or one fails. Called by the sender, only if [`Joint::is_open`]. Does
    /// nothing after a failure, or while another thread helps: the receiver can be told of one lost step only.
    pub fn help<E>(&self, mut copy: impl FnMut(Stretch) -> Result<(), E>) {
        // Released by the first claim. Acquires the lost step of an earlier helper.
        if self.helpers.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        while self.lost.load(Ordering::Relaxed) == NOTHING
            && let Some(step) = self.claim()
        {
            if copy(step).is_err() {
                self.lost.store(step.offset, Ordering::Relaxed);
                break;
            }
        }
        // Pairs with the acquire load in `finish`.
        self.helpers.fetch_sub(1, Ordering::Release);
    }

    /// Copies steps with `copy`, waits for the helper's last one, and copies the step that the helper lost. Called by
    /// the receiver. A long wait calls `still_there` from time to time, which fails if the helper has died.
    ///
    /// # Errors
    /// The first error of `copy` or `still_there`.
    pub fn finish<E>(
        &self,
        mut copy: impl FnMut(Stretch) -> Result<(), E>,
        mut still_there: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(step) = self.claim()
        {
            outcome = copy(step);
        }
        // No helper may write after an error either.
        self.cursor.swap(CLOSED, Ordering::AcqRel);
        let (mut spins, mut yields) = (0u32, 0u32);
        while self.helpers.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins.is_multiple_of(SPINS) {
                yield_now();
                yields = yields.wrapping_add(1);
                if yields.is_multiple_of(YIELDS) {
                    still_there()?;
                }
            }
            spin_loop();
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if outcome.is_ok() && lost != NOTHING {
            let (len, step) = (self.len.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
            outcome = copy(Stretch { offset: lost, len: step.min(len.saturating_sub(lost)) });
        }
        outcome
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Mutex;

    /// Records a step.
    fn note(steps: &Mutex<Vec<Stretch>>, step: Stretch) -> Result<(), Infallible> {
        steps.lock().unwrap().push(step);
        Ok(())
    }

    fn covers(mut steps: Vec<Stretch>, len: u64) {
        steps.sort_by_key(|s| s.offset);
        let end = steps.iter().fold(0, |at, step| {
            assert_eq!(step.offset, at);
            at + step.len
        });
        assert_eq!(end, len);
    }

    #[test]
    fn a_joint_that_is_zero_or_lent_offers_nothing() {
        let joint = Joint::default();
        assert!(!joint.is_open());
        joint.lend();
        assert!(!joint.is_open());
        joint.open(77, 10, 4);
        assert!(joint.is_open());
        assert_eq!(joint.address(), 77);
    }

    #[test]
    fn every_byte_is_copied_once_however_the_two_share_it() {
        let joint = Joint::default();
        let steps = Mutex::new(Vec::new());
        for round in 0..2000u64 {
            let len = 1 + round * 37 % 5000;
            joint.lend();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !joint.is_open() && !steps.lock().unwrap().iter().any(|s: &Stretch| s.offset == 0) {
                        spin_loop();
                    }
                    joint.help(|step| note(&steps, step));
                });
                joint.open(0, len, 64);
                joint.finish(|step| note(&steps, step), || Ok(())).unwrap();
            });
            covers(std::mem::take(&mut *steps.lock().unwrap()), len);
        }
    }

    #[test]
    fn a_step_that_the_helper_loses_is_done_by_the_receiver() {
        let joint = Joint::default();
        joint.lend();
        joint.open(0, 100, 30);
        joint.help(|step| if step.offset == 30 { Err(()) } else { Ok(()) });
        let steps = Mutex::new(vec![Stretch { offset: 0, len: 30 }]);
        joint.finish(|step| note(&steps, step), || Ok(())).unwrap();
        covers(steps.into_inner().unwrap(), 100);
    }

    #[test]
    fn a_helper_that_has_lost_a_step_takes_no_other() {
        let joint = Joint::default();
        joint.lend();
        joint.open(0, 100, 30);
        joint.help(|_| Err(()));
        assert!(joint.is_open());
        joint.help(|step| -> Result<(), ()> { panic!("{step:?} is claimed") });
        let steps = Mutex::new(Vec::new());
        joint.finish(|step| note(&steps, step), || Ok(())).unwrap();
        covers(steps.into_inner().unwrap(), 100);
        // The next copy accepts a helper again.
        joint.lend();
        joint.open(0, 100, 30);
        let helped = Mutex::new(Vec::new());
        joint.help(|step| note(&helped, step));
        covers(helped.into_inner().unwrap(), 100);
    }

    #[test]
    fn a_helper_that_died_is_not_waited_for_for_ever() {
        let joint = Joint::default();
        joint.lend();
        joint.open(0, 100, 30);
        // A helper that is counted, has claimed a step, and will never finish it.
        joint.helpers.store(1, Ordering::Relaxed);
        assert!(joint.claim().is_some());
        let mut asked = 0;
        let still_there = || {
            asked += 1;
            if asked < 3 { Ok(()) } else { Err("gone") }
        };
        assert_eq!(joint.finish(|_| Ok(()), still_there), Err("gone"));
    }

    #[test]
    fn steps_of_no_bytes_come_to_an_end() {
        let joint = Joint::default();
        joint.lend();
        joint.open(0, 100, 0);
        let mut steps = 0;
        joint.help(|_| {
            steps += 1;
            Ok::<(), ()>(())
        });
        assert_eq!(steps, 100);
    }

    #[test]
    fn after_a_failure_nothing_is_left_to_claim() {
        let joint = Joint::default();
        joint.lend();
        joint.open(0, 100, 30);
        assert_eq!(joint.finish(|_| Err("gone"), || Ok(())), Err("gone"));
        assert!(!joint.is_open());
        assert_eq!(joint.claim(), None);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;
    use std::convert::Infallible;

    #[derive(Default)]
    struct Copied {
        joint: Joint,
        bytes: [UnsafeCell<u32>; 2],
    }

    impl Copied {
        /// Copies a step. loom checks that the access to these bytes is exclusive.
        fn copy(&self, step: Stretch) -> Result<(), Infallible> {
            // SAFETY: by the contract of the module, as checked by loom.
            self.bytes[step.offset as usize].with_mut(|byte| unsafe { *byte += 1 });
            Ok(())
        }
    }

    #[test]
    fn all_is_copied_once_and_never_after_the_end() {
        loom::model(|| {
            let shared = Arc::new(Copied::default());
            shared.joint.lend();
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || {
                    if shared.joint.is_open() {
                        shared.joint.help(|step| shared.copy(step));
                    }
                })
            };
            shared.joint.open(0, 2, 1);
            let Ok(()) = shared.joint.finish(|step| shared.copy(step), || Ok(()));
            for byte in &shared.bytes {
                // SAFETY: as above.
                byte.with(|byte| assert_eq!(unsafe { *byte }, 1));
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn what_the_helper_could_not_do_is_done() {
        loom::model(|| {
            let shared = Arc::new(Copied::default());
            shared.joint.lend();
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || {
                    // A waiting sender helps repeatedly.
                    for _ in 0..2 {
                        if shared.joint.is_open() {
                            shared.joint.help(|_| Err(()));
                        }
                    }
                })
            };
            shared.joint.open(0, 2, 1);
            let Ok(()) = shared.joint.finish(|step| shared.copy(step), || Ok(()));
            for byte in &shared.bytes {
                // SAFETY: as above.
                byte.with(|byte| assert_eq!(unsafe { *byte }, 1));
            }
            sender.join().unwrap();
        });
    }
}
