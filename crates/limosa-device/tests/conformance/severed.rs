//! Errors of message files: both processes of the pair are told, with the file's name, and the others continue.

use crate::fabrics::{self, Fabric};
use crate::{awaited, received, send};
use limosa_base::doorbell::DoorbellState;
use limosa_device::{Data, DeviceError, Devices, Meta, Sent, Urgency};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

fn path(f: &Fabric, name: &str) -> PathBuf {
    f.folder.as_ref().expect("it was made with one").path().join(name)
}

/// Interval at which a process that polls without notices lists a folder.
const LISTED: Duration = Duration::from_millis(1);

/// Returns the errors that a member reports within a few polls, and the number of packets.
fn polled(f: &mut Fabric, member: usize) -> (Vec<String>, usize) {
    let (mut errors, mut packets) = (Vec::new(), 0);
    for _ in 0..10 {
        match f.members[member].device.poll(&mut |_, _, _| packets += 1) {
            Ok(_) => {}
            Err(error @ DeviceError::Severed { .. }) => errors.push(error.to_string()),
            Err(error) => panic!("{error}"),
        }
        if !f.members[member].patience.is_zero() {
            thread::sleep(LISTED);
        }
    }
    (errors, packets)
}

/// Checks that process 0 and 1 exchange nothing any more because of this file, for this reason; 2 exchanges with both.
fn are_parted(f: &mut Fabric, file: &str, reason: &str) {
    let mut reported = [Vec::new(), Vec::new()];
    // Either of them may be the first to find out.
    for me in [0, 1, 0] {
        reported[me].extend(polled(f, me).0);
    }
    for (me, peer) in [(0, 1), (1, 0)] {
        let errors = &reported[me];
        assert_eq!(errors.len(), 1, "process {me}: {errors:?}");
        assert!(errors[0].starts_with(&format!("process {peer} ")), "{errors:?}");
        assert!(errors[0].contains(file) && errors[0].contains(reason), "{errors:?}");
        let sent = f.members[me].device.send(peer, &Meta::default(), Data::Bytes(&[]), Urgency::Normal);
        assert!(matches!(sent, Err(DeviceError::Severed { peer: p, .. }) if p == peer), "{sent:?}");
    }
    for me in [0, 1] {
        assert_eq!(send(&mut f.members[me], 2, 5, &[], Urgency::Normal), Sent::Done);
        assert_eq!(awaited(&mut f.members[2], 1).len(), 1);
        assert_eq!(send(&mut f.members[2], me as u32, 5, &[], Urgency::Normal), Sent::Done);
        assert_eq!(awaited(&mut f.members[me], 1).len(), 1);
    }
}

#[test]
fn a_full_disk_is_told_to_both_after_what_was_sent_before() {
    let mut f = fabrics::files();
    assert_eq!(send(&mut f.members[0], 1, 1, &[1; 50], Urgency::Normal), Sent::Done);
    symlink("/dev/full", path(&f, "drafts/0-1")).expect("a link");
    f.members[1].bell.set(DoorbellState::Asleep);
    let sent = f.members[0].device.send(1, &Meta::default(), Data::Bytes(&[2; 50]), Urgency::Normal);
    let error = sent.expect_err("the disk is full").to_string();
    assert!(error.contains("1/0/1.msg could not be written: No space left on device"), "{error}");
    assert!(f.members[1].is_woken(), "a process that waits for the message must learn that it does not come");
    let mut packets = 0;
    let polled = f.members[1].device.poll(&mut |_, _, _| packets += 1);
    assert!(matches!(polled, Err(DeviceError::Severed { peer: 0, .. })) && packets == 1, "{polled:?} {packets}");
    // Once more, for both: the second time nothing is reported to process 1.
    assert!(super::severed::polled(&mut f, 1).0.is_empty());
    assert_eq!(super::severed::polled(&mut f, 0).0.len(), 1);
}

#[test]
fn a_packet_that_was_held_is_missed_when_it_cannot_be_written_later() {
    let mut f = fabrics::files();
    for i in 0..5 {
        assert_eq!(send(&mut f.members[0], 1, i, &[i; 50], Urgency::Normal), Sent::Done);
    }
    symlink("/dev/full", path(&f, "drafts/0-1")).expect("a link");
    // Process 1 reads what has been written, so that the rest is to be written now.
    assert!(polled(&mut f, 1).1 > 0);
    are_parted(&mut f, "1/0/2.msg", "No space left on device");
}

#[test]
fn message_files_that_cannot_be_used_part_two_processes_only() {
    type Damage = fn(&PathBuf);
    let damages: [(Damage, &str); 4] = [
        (|file| fs::remove_file(file).expect("the message"), "No such file or directory"),
        (|file| fs::write(file, b"").expect("the message"), "not one that Limosa writes"),
        (|file| fs::write(file, [0x5a; 3000]).expect("the message"), "not one that Limosa writes"),
        (
            |file| fs::File::options().write(true).open(file).and_then(|file| file.set_len(60)).expect("the message"),
            "not one that Limosa writes",
        ),
    ];
    for fabric in [fabrics::files, fabrics::files_by_clock] {
        for (damage, reason) in damages {
            let mut f = fabric();
            assert_eq!(send(&mut f.members[0], 1, 1, &[1; 50], Urgency::Normal), Sent::Done);
            damage(&path(&f, "1/0/0.msg"));
            are_parted(&mut f, "1/0/0.msg", reason);
        }
    }
}

#[test]
fn a_lock_file_that_was_removed_is_not_needed_or_missed() {
    for fabric in [fabrics::files, fabrics::files_by_clock] {
        let mut f = fabric();
        assert_eq!(send(&mut f.members[0], 1, 1, &[1; 50], Urgency::Normal), Sent::Done);
        assert_eq!(send(&mut f.members[0], 1, 2, &[1; 50], Urgency::Normal), Sent::Done);
        fs::remove_file(path(&f, "1/0/0.lock")).expect("the lock");
        match f.members[1].device.poll(&mut |_, meta, _| assert_eq!(meta.kind, 1)) {
            Ok(any) => assert!(any),
            Err(_) => are_parted_from_then_on(&mut f),
        }
    }
}

fn are_parted_from_then_on(f: &mut Fabric) {
    let sent = f.members[1].device.send(0, &Meta::default(), Data::Bytes(&[]), Urgency::Normal);
    assert!(matches!(sent, Err(DeviceError::Severed { peer: 0, .. })), "{sent:?}");
    let (errors, _) = polled(f, 0);
    assert!(errors.len() == 1 && errors[0].contains("1/0/0.msg could not be read"), "{errors:?}");
}

#[test]
fn what_came_together_with_bad_news_is_taken_by_the_next_poll() {
    let mut f = fabrics::files();
    let receiver = f.members.remove(1).device;
    let mut devices = Devices::new(None);
    let id = devices.add_device(receiver);
    for address in 0..3 {
        devices.add_peer(id, address);
    }
    while devices.poll(&mut |_, _, _| {}).expect("poll") {}
    // Two files of process 2, and a message file of process 0 that is none.
    for kind in [1, 2] {
        assert_eq!(send(&mut f.members[1], 1, kind, &[], Urgency::Normal), Sent::Done);
    }
    assert_eq!(send(&mut f.members[0], 1, 1, &[], Urgency::Normal), Sent::Done);
    fs::write(path(&f, "1/0/0.msg"), b"").expect("the message");
    let (_, ready) = devices.wait_descriptor(id).expect("a copy").expect("a descriptor");
    ready.set();
    // A thread looks on while something moves, and an error counts as that.
    let (mut kinds, mut errors) = (Vec::new(), 0);
    loop {
        match devices.poll(&mut |_, meta, _| kinds.push(meta.kind)) {
            Ok(false) => break,
            Ok(true) => {}
            Err(_) => errors += 1,
        }
    }
    assert_eq!((kinds, errors), (vec![1, 2], 1));
}

#[test]
fn every_process_learns_that_the_folder_was_deleted() {
    for (fabric, is_clock) in [(fabrics::files as fn() -> Fabric, false), (fabrics::files_by_clock, true)] {
        let mut f = fabric();
        assert_eq!(send(&mut f.members[0], 1, 1, &[1; 50], Urgency::Normal), Sent::Done);
        for member in 0..2 {
            let _ = received(&mut f.members[member]);
            f.members[member].bell.set(DoorbellState::Asleep);
        }
        let folder = path(&f, "");
        fs::remove_dir_all(&folder).expect("the folder");
        for (me, peer) in [(0, 1), (1, 0)] {
            if is_clock {
                // Its next tick wakes.
                thread::sleep(2 * LISTED);
            } else {
                assert!(f.members[me].is_woken());
            }
            let error = f.members[me].device.poll(&mut |_, _, _| {}).expect_err("there is no folder").to_string();
            assert!(
                error.contains(&format!("{}/{me} ", folder.display().to_string().trim_end_matches('/'))),
                "{error}"
            );
            assert!(error.contains("No such file or directory"), "{error}");
            let sent = f.members[me].device.send(peer, &Meta::default(), Data::Bytes(&[]), Urgency::Normal);
            assert!(matches!(sent, Err(DeviceError::Severed { .. })), "{sent:?}");
        }
    }
}
