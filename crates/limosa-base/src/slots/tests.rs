//! Tests of slot segments. The members are threads, each with a mapping of its own.

use super::*;
use crate::segment;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A member that sleeps for so long was never woken.
const PATIENCE: Duration = Duration::from_secs(300);

fn segments(size: usize) -> Vec<SlotSegment> {
    let bytes = SlotSegment::bytes(size, 256);
    let file = segment::create(c"limosa-test", bytes as u64).expect("a memfd");
    let view = |me| SlotSegment::new(Shared::new(file.as_fd(), 0, bytes).expect("map"), size, me, 256);
    (0..size).map(view).collect()
}

#[test]
fn a_note_is_seen_by_all_until_another_takes_its_place() {
    let all = segments(3);
    assert_eq!(all[0].tag_of(1, 5), None);
    all[1].post(5, 3, 7, &[1, 2, 3, 4, 5, 6]);
    for slots in &all {
        assert_eq!(slots.tag_of(1, 5), Some(7));
        // SAFETY: the note was posted, and is not being written.
        assert_eq!(unsafe { *slots.body_of(1, 5) }, [1, 2, 3, 4, 5, 6]);
        assert_eq!(slots.signature_of(1, 5), 3);
        assert!(slots.holds(Awaited::Note(1, 5)) && !slots.holds(Awaited::AllNotes(5)));
    }
    all[1].post(5 + NOTES, 0, 8, &[0; 6]);
    assert_eq!(all[0].tag_of(1, 5), None);
    assert!(all[0].holds(Awaited::Note(1, 5)), "a wait for a replaced note must end");
}

#[test]
fn a_withdrawn_note_is_invalid_and_copying_members_are_visible() {
    let all = segments(2);
    all[0].withdraw(5);
    assert!(!all[1].is_withdrawn(0, 5), "there was none");
    all[0].post(5, 0, 7, &[0; 6]);
    all[1].begin_copying(5);
    assert!(!all[1].is_withdrawn(0, 5));
    all[0].withdraw(5);
    assert!(all[0].is_copying(1, 5) && !all[0].is_copying(1, 6));
    assert!(all[1].is_withdrawn(0, 5) && !all[1].is_withdrawn(0, 6));
    all[1].end_copying();
    assert!(!all[0].is_copying(1, 5));
    assert!(all[1].holds(Awaited::Note(0, 5)), "a wait for a withdrawn note must end");
}

#[test]
fn slots_do_not_overlap() {
    let all = segments(2);
    for member in 0..=2 {
        for number in 0..SLOTS {
            // SAFETY: the access to the slot is exclusive.
            unsafe { all[0].slot_of(member, number).write_bytes((member as u64 * SLOTS + number) as u8, 256) };
        }
    }
    for member in 0..=2 {
        for number in 0..SLOTS {
            // SAFETY: as above.
            let slot = unsafe { std::slice::from_raw_parts(all[1].slot_of(member, number), 256) };
            assert!(slot.iter().all(|&byte| u64::from(byte) == member as u64 * SLOTS + number));
        }
    }
}

#[test]
fn counts_belong_to_their_call() {
    let all = segments(2);
    assert_eq!((all[0].arrive(9), all[1].arrive(9)), (1, 2));
    assert_eq!(all[0].arrive(9 + NOTES), 1);
    assert_eq!((all[0].take_piece(3, 2), all[1].take_piece(3, 2), all[1].take_piece(3, 2)), (Some(0), Some(1), None));
    assert_eq!((all[0].has_pieces(3, 3), all[0].has_pieces(3, 2)), (true, false));
    assert_eq!(
        (all[1].take_piece(4, 1), all[0].take_piece(3, 3)),
        (Some(0), Some(2)),
        "calls have counts of their own"
    );
    assert_eq!((all[1].take_piece(3 + NOTES, 1), all[0].take_piece(3, 9)), (Some(0), None), "the call is over");
    assert!(!all[0].has_pieces(3, 9), "the call is over");
    assert!(!all[0].count_share(1, 3, 2) && !all[0].holds(Awaited::Complete(1, 3)));
    assert!(all[1].count_share(1, 3, 2) && all[0].holds(Awaited::Complete(1, 3)));
}

#[test]
fn a_failed_piece_is_known_to_all_and_not_in_other_calls() {
    let all = segments(3);
    assert_eq!(all[1].failed_piece(3), None);
    all[2].fail_piece(3, false);
    assert_eq!((all[1].count_piece(3), all[0].count_piece(3)), (1, 2));
    let failed = |member, given_up| Some(FailedPiece { member, given_up });
    assert_eq!(all[1].failed_piece(3), failed(2, false));
    assert_eq!((all[1].failed_piece(4), all[1].failed_piece(3 + NOTES)), (None, None));
    all[1].fail_piece(3, true);
    all[2].fail_piece(3, false);
    assert_eq!(all[0].failed_piece(3), failed(1, true), "all hear that a member has given up");
    all[0].fail_piece(3 + NOTES, false);
    assert_eq!((all[0].failed_piece(3), all[1].failed_piece(3 + NOTES)), (None, failed(0, false)));
}

#[test]
fn only_those_are_woken_whose_condition_holds() {
    let all = segments(4);
    let woken = |by: usize| {
        let mut list = Vec::new();
        all[by].for_each_wakeable(|member| list.push(member));
        list
    };
    assert!(!all[0].has_sleepers());
    all[1].begin_sleep(Awaited::Note(0, 1));
    all[2].begin_sleep(Awaited::AllNotes(1));
    all[3].begin_sleep(Awaited::AllFinished(1));
    assert!(all[0].has_sleepers());
    all[0].post(1, 0, 0, &[0; 6]);
    assert_eq!(woken(0), [1]);
    all[1].end_sleep();
    (1..4).for_each(|member| all[member].post(1, 0, 0, &[0; 6]));
    assert_eq!(woken(3), [2]);
    all[2].end_sleep();
    all.iter().for_each(|slots| slots.finish(1));
    assert_eq!(woken(0), [3]);
    all[3].end_sleep();
    assert!(!all[0].has_sleepers());
}

#[test]
fn a_request_is_granted_once_it_holds_and_needs_no_sleep() {
    let all = segments(3);
    let told = |by: usize| {
        let mut list = Vec::new();
        all[by].for_each_requester(|member| list.push(member));
        list
    };
    all[2].request(Some(Awaited::NotesBelow(2, 1)));
    assert!(all[0].has_sleepers());
    all[0].post(1, 0, 0, &[0; 6]);
    assert!(told(0).is_empty());
    all[1].post(1, 0, 0, &[0; 6]);
    assert_eq!(told(1), [2]);
    all[2].request(Some(Awaited::AllFinished(1)));
    assert!(told(1).is_empty());
    all[2].request(None);
    all[2].request(None);
    assert!(!all[0].has_sleepers());
    all[1].begin_sleep(Awaited::AllFinished(9));
    all[1].await_anything();
    let mut woken = Vec::new();
    all[0].for_each_wakeable(|member| woken.push(member));
    assert_eq!(woken, [1], "a member that awaits anything is woken by any change");
}

#[test]
fn a_request_for_room_is_visible_until_it_ends() {
    let all = segments(2);
    assert!(!all[0].is_room_wanted());
    all[1].ask_for_room(true);
    assert!(all[0].is_room_wanted());
    all[1].ask_for_room(false);
    assert!(!all[0].is_room_wanted());
}

#[test]
fn steps_of_later_calls_come_later() {
    let all = segments(2);
    all[0].advance(Progress::new(7, 3));
    assert!(
        all[1].holds(Awaited::Progress(0, Progress::new(7, 3)))
            && !all[1].holds(Awaited::AllProgress(Progress::new(7, 3)))
    );
    all[1].advance(Progress::new(8, 0));
    assert!(
        all[1].holds(Awaited::AllProgress(Progress::new(7, 3)))
            && !all[1].holds(Awaited::Progress(0, Progress::new(8, 0)))
    );
    all[1].advance_all(Progress::new(7, MAX_STEPS));
    assert!(all[0].holds(Awaited::Progress(2, Progress::new(7, MAX_STEPS))));
}

#[test]
fn a_condition_survives_its_encoding() {
    let step = Progress::new(1 << 43, MAX_STEPS);
    let kinds =
        [Awaited::Note(65534, u64::MAX), Awaited::AllNotes(1), Awaited::AllFinished(2), Awaited::Complete(0, 77)];
    let more = [Awaited::Progress(5, step), Awaited::AllProgress(step), Awaited::NotesBelow(9, 4), Awaited::Anything];
    let more = more.into_iter().chain([Awaited::Finished(3, 8)]);
    for awaited in kinds.into_iter().chain(more) {
        let (what, value) = awaited.encode();
        assert_eq!(Awaited::decode(what, value), Some(awaited));
    }
    assert_eq!(Awaited::decode(0, 5), None);
}

#[test]
fn the_last_user_is_told_so() {
    let all = segments(3);
    all[0].open();
    assert_eq!((all[2].leave(), all[0].leave(), all[1].leave()), (false, false, true));
}

/// Parks and unparks the members' threads.
struct Bells(Vec<Mutex<Option<Thread>>>);

impl Bells {
    fn changed(&self, slots: &SlotSegment) {
        if slots.has_sleepers() {
            slots.for_each_wakeable(|member| {
                if let Some(thread) = &*self.0[member].lock().unwrap() {
                    thread.unpark();
                }
            });
        }
    }

    /// Sleeps at once until the condition holds, by the contract of the module.
    fn sleep_until(&self, slots: &SlotSegment, awaited: Awaited) {
        let begun = Instant::now();
        while !slots.holds(awaited) {
            slots.begin_sleep(awaited);
            fence::heavy();
            if !slots.holds(awaited) {
                thread::park_timeout(PATIENCE);
                assert!(begun.elapsed() < PATIENCE, "member {} was never woken for {awaited:?}", slots.me);
            }
            slots.end_sleep();
        }
    }
}

/// Has every member perform calls of all kinds, and sleeps for every wait. A lost wake-up leaves it asleep.
#[test]
fn no_wake_up_is_lost() {
    const MEMBERS: usize = 4;
    const CALLS: u64 = 4000;
    fence::register();
    let bells = Bells((0..MEMBERS).map(|_| Mutex::new(None)).collect());
    let segments = segments(MEMBERS);
    thread::scope(|scope| {
        for (me, slots) in segments.iter().enumerate() {
            let bells = &bells;
            scope.spawn(move || {
                *bells.0[me].lock().unwrap() = Some(thread::current());
                for number in 1..=CALLS {
                    if number > NOTES {
                        bells.sleep_until(slots, Awaited::AllFinished(number - NOTES));
                    }
                    let leader = (number % MEMBERS as u64) as usize;
                    match number % 5 {
                        0 => {
                            slots.post(number, 0, 1, &[number; 6]);
                            bells.changed(slots);
                            bells.sleep_until(slots, Awaited::AllNotes(number));
                        }
                        1 if me == leader => {
                            slots.post(number, 0, 1, &[number; 6]);
                            bells.changed(slots);
                        }
                        1 => bells.sleep_until(slots, Awaited::Note(leader, number)),
                        2 => {
                            if slots.arrive(number) == MEMBERS as u64 {
                                slots.post_for_all(number, 0, 1, &[number; 6]);
                                bells.changed(slots);
                            }
                            bells.sleep_until(slots, Awaited::Note(MEMBERS, number));
                        }
                        3 => {
                            slots.advance(Progress::new(number, 1));
                            bells.changed(slots);
                            bells.sleep_until(slots, Awaited::AllProgress(Progress::new(number, 1)));
                        }
                        _ => {
                            while slots.take_share(leader, number, 3).is_some() {
                                if slots.count_share(leader, number, 3) {
                                    bells.changed(slots);
                                }
                            }
                            bells.sleep_until(slots, Awaited::Complete(leader, number));
                        }
                    }
                    slots.finish(number);
                    bells.changed(slots);
                }
            });
        }
    });
    assert!(segments.iter().all(|slots| slots.holds(Awaited::AllFinished(CALLS))));
    assert!(!segments[0].has_sleepers());
}
