//! Models of slot segments for loom.

#![cfg_attr(not(test), allow(dead_code, reason = "only the models make a slots on the heap"))]

use super::*;
use std::ops::Deref;

/// A segment on the heap, without slots: a model that needs slots adds its own.
#[derive(Default)]
pub struct Heap {
    common: Common,
    members: Box<[Member]>,
}

impl Deref for Heap {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl SlotSegment {
    fn modelled(memory: Memory, me: usize) -> SlotSegment {
        let members = NonNull::from(&memory.members[0]);
        SlotSegment { members, size: memory.members.len() - 1, me, slot_bytes: 0, memory }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex;
    use loom::thread;
    use std::sync::Arc;

    /// State that the members share.
    struct Group<const SIZE: usize> {
        heap: Memory,
        bells: [AtomicU32; SIZE],
        slots: [UnsafeCell<u64>; SIZE],
    }

    impl<const SIZE: usize> Group<SIZE> {
        fn new() -> Group<SIZE> {
            Group {
                heap: Arc::new(Heap {
                    common: Common::default(),
                    members: (0..=SIZE).map(|_| Member::default()).collect(),
                }),
                bells: std::array::from_fn(|_| AtomicU32::new(0)),
                slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            }
        }

        fn ring(&self, member: usize) {
            self.bells[member].swap(1, Ordering::AcqRel);
            futex::wake_all(&self.bells[member]);
        }

        fn sleep(&self, member: usize) {
            while self.bells[member].swap(0, Ordering::Acquire) == 0 {
                futex::wait(&self.bells[member], 0, None);
            }
        }

        /// Rings the members whose condition holds, after a change.
        fn tell_sleepers(&self, slots: &SlotSegment) {
            if slots.has_sleepers() {
                slots.for_each_wakeable(|member| self.ring(member));
                slots.for_each_requester(|member| self.ring(member));
            }
        }
    }

    /// Runs `member` for each member in a thread of its own, with a bounded number of preemptions.
    fn check<const SIZE: usize>(
        preemptions: usize,
        member: impl Fn(&Group<SIZE>, &SlotSegment) + Send + Sync + 'static,
    ) {
        let member = Arc::new(member);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let group = Arc::new(Group::<SIZE>::new());
            let threads: Vec<_> = (1..SIZE)
                .map(|me| {
                    let (group, member) = (group.clone(), member.clone());
                    thread::spawn(move || member(&group, &SlotSegment::modelled(group.heap.clone(), me)))
                })
                .collect();
            member(&group, &SlotSegment::modelled(group.heap.clone(), 0));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    fn spin_until(slots: &SlotSegment, awaited: Awaited) {
        while !slots.holds(awaited) {
            thread::yield_now();
        }
    }

    /// Sleeps by the contract of the module.
    fn sleep_until<const SIZE: usize>(group: &Group<SIZE>, slots: &SlotSegment, awaited: Awaited) {
        if !slots.holds(awaited) {
            slots.begin_sleep(awaited);
            fence::heavy();
            while !slots.holds(awaited) {
                group.sleep(slots.me());
            }
            slots.end_sleep();
        }
    }

    #[test]
    fn notes_and_slots_are_not_written_while_they_are_read() {
        check::<2>(4, |group, slots| {
            for call in 1..=NOTES + 1 {
                if slots.me() == 0 {
                    spin_until(slots, Awaited::AllFinished(call.saturating_sub(NOTES.min(SLOTS))));
                    // SAFETY: loom checks that there is no concurrent reader of the slot.
                    group.slots[0].with_mut(|slot| unsafe { *slot = call });
                    slots.post(call, call, call as u16, &[call; 6]);
                } else {
                    spin_until(slots, Awaited::Note(0, call));
                    assert_eq!(slots.tag_of(0, call), Some(call as u16));
                    // SAFETY: loom checks that there is no concurrent writer of the note or the slot.
                    slots.note(0, call).body.with(|body| assert_eq!(unsafe { *body }, [call; 6]));
                    // SAFETY: as above.
                    group.slots[0].with(|slot| assert_eq!(unsafe { *slot }, call));
                }
                slots.finish(call);
            }
        });
    }

    #[test]
    fn a_sleeper_is_woken_by_the_note_that_it_awaits() {
        check::<2>(4, |group, slots| {
            if slots.me() == 0 {
                sleep_until(group, slots, Awaited::Note(1, 1));
            } else {
                slots.post(1, 0, 0, &[0; 6]);
                group.tell_sleepers(slots);
            }
        });
    }

    #[test]
    fn a_sleeper_that_needs_two_is_woken_by_one_of_them() {
        check::<3>(2, |group, slots| {
            slots.finish(1);
            if slots.me() == 0 {
                sleep_until(group, slots, Awaited::AllFinished(1));
            } else {
                group.tell_sleepers(slots);
            }
        });
    }

    #[test]
    fn two_members_that_sleep_for_each_other_both_wake() {
        check::<2>(3, |group, slots| {
            slots.post(1, 0, 0, &[0; 6]);
            group.tell_sleepers(slots);
            sleep_until(group, slots, Awaited::AllNotes(1));
            slots.finish(1);
        });
    }

    #[test]
    fn a_request_is_granted_once() {
        check::<2>(4, |group, slots| {
            if slots.me() == 0 {
                let awaited = Awaited::NotesBelow(2, 1);
                slots.post(1, 0, 0, &[0; 6]);
                slots.request(Some(awaited));
                fence::heavy();
                while !slots.holds(awaited) {
                    group.sleep(0);
                }
                slots.request(None);
            } else {
                slots.post(1, 0, 0, &[0; 6]);
                group.tell_sleepers(slots);
            }
        });
    }

    #[test]
    fn a_request_for_room_sees_the_room_or_is_seen() {
        check::<2>(4, |group, slots| {
            if slots.me() == 0 {
                slots.ask_for_room(true);
                fence::heavy();
                if !slots.has_finished(1, 1) {
                    // The other member has yet to check, and will see the flag.
                    group.sleep(0);
                }
                slots.ask_for_room(false);
            } else {
                slots.finish(1);
                if slots.is_room_wanted() {
                    group.ring(0);
                }
            }
        });
    }

    #[test]
    fn a_withdrawn_member_owns_its_memory_once_no_member_copies() {
        check::<2>(4, |group, slots| {
            if slots.me() == 0 {
                slots.post(1, 0, 0, &[0; 6]);
                slots.withdraw(1);
                while slots.is_copying(1, 1) {
                    thread::yield_now();
                }
                // SAFETY: loom checks that the access to the slot is exclusive.
                group.slots[0].with_mut(|slot| unsafe { *slot = 7 });
            } else if slots.tag_of(0, 1).is_some() {
                slots.begin_copying(1);
                if !slots.is_withdrawn(0, 1) {
                    // SAFETY: as above.
                    group.slots[0].with(|slot| assert_eq!(unsafe { *slot }, 0));
                }
                slots.end_copying();
            }
        });
    }

    #[test]
    fn the_last_to_arrive_sees_what_the_others_did() {
        check::<3>(3, |group, slots| {
            let me = slots.me();
            // SAFETY: loom checks that the access to the slot is exclusive.
            group.slots[me].with_mut(|slot| unsafe { *slot = 7 });
            if slots.arrive(1) == 3 {
                // SAFETY: as above.
                group.slots.iter().for_each(|slot| slot.with(|slot| assert_eq!(unsafe { *slot }, 7)));
            }
        });
    }

    #[test]
    fn pieces_of_a_transfer_are_taken_once_and_all_are_done_when_it_is_complete() {
        check::<2>(4, |group, slots| {
            while let Some(piece) = slots.take_share(0, 1, 2) {
                // SAFETY: loom checks that the access to the piece is exclusive.
                group.slots[piece as usize].with_mut(|slot| unsafe { *slot += 1 });
                slots.count_share(0, 1, 2);
            }
            spin_until(slots, Awaited::Complete(0, 1));
            // SAFETY: as above.
            group.slots.iter().for_each(|slot| slot.with(|slot| assert_eq!(unsafe { *slot }, 1)));
        });
    }

    #[test]
    fn a_reader_of_the_groups_note_sees_all_pieces_and_the_failure() {
        check::<2>(3, |group, slots| {
            while let Some(piece) = slots.take_piece(1, 2) {
                // SAFETY: loom checks that the access to the piece is exclusive.
                group.slots[piece as usize].with_mut(|slot| unsafe { *slot += 1 });
                if piece == 1 {
                    slots.fail_piece(1, false);
                }
                if slots.count_piece(1) == 2 {
                    slots.post_for_all(1, 0, 0, &[0; 6]);
                    group.tell_sleepers(slots);
                }
            }
            sleep_until(group, slots, Awaited::Note(2, 1));
            // SAFETY: as above.
            group.slots.iter().for_each(|slot| slot.with(|slot| assert_eq!(unsafe { *slot }, 1)));
            assert!(slots.failed_piece(1).is_some() && !slots.has_pieces(1, 2));
        });
    }
}
