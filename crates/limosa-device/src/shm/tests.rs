//! Tests of the shared-memory device: lanes, pools, and processes that come late or die.

use super::*;
use limosa_base::process::Identity;
use std::os::fd::AsFd;

pub(super) fn pair() -> (ShmDevice, ShmDevice) {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let join = |rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true).expect("joining");
    (join(0), join(1))
}

#[test]
fn a_pool_without_memory_gets_some_once_there_is_some() {
    let (mut a, mut b) = pair();
    let mut exchange = |a: &mut ShmDevice| {
        assert_eq!(a.send(1, &Meta::default(), Data::Bytes(&[7; 1000]), Urgency::Normal).expect("send"), Sent::Done);
        assert_eq!(received(&mut b).pop(), Some((0, Meta::default(), vec![7; 1000])));
    };
    assert_eq!(a.send(1, &Meta::default(), Data::Bytes(&[]), Urgency::Normal).expect("send"), Sent::Done);
    let nowhere = std::fs::File::open("/dev/null").expect("a file that has no memory").into();
    let nowhere = Descriptor::new(nowhere).expect("a descriptor");
    let shared = std::mem::replace(&mut a.fd, nowhere);
    (0..3).for_each(|_| exchange(&mut a));
    assert!(a.pool.is_none());
    a.fd = shared;
    (0..=FIRST_PAUSE).for_each(|_| exchange(&mut a));
    assert!(a.pool.is_some());
}

/// Makes a process that has been killed.
pub(super) fn killed() -> Identity {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a process");
    let identity = Identity::of(child.id());
    child.kill().expect("our child");
    child.wait().expect("our child");
    identity
}

#[test]
fn what_a_dead_receiver_keeps_of_the_pool_comes_back() {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let mut all: Vec<_> = (0..4)
        .map(|rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 4), true).expect("joining"))
        .collect();
    let bytes = [7u8; 16384];
    let send = |all: &mut [ShmDevice], to| {
        all[0].send(to, &Meta::default(), Data::Bytes(&bytes), Urgency::Normal).expect("send")
    };
    let is_grown = |all: &[ShmDevice]| all[0].pool.as_ref().is_some_and(|pool| pool.blocks.is_grown());
    let kept = |all: &[ShmDevice], peer| {
        all[0].pool.as_ref().is_some_and(|pool| pool.blocks.next_holder(peer - 1) == Some(peer))
    };
    // Receivers 1 and 2 keep all of the pool between them.
    while !is_grown(&all) || all[0].refused == 0 {
        let _ = (send(&mut all, 1), send(&mut all, 2));
    }
    all[0].ports.of(2).is_that_of(killed());
    while kept(&all, 2) {
        let _ = send(&mut all, 3);
        received(&mut all[3]);
    }
    assert!(kept(&all, 1), "a living process keeps its blocks");
    let before = all[0].refused;
    for _ in 0..200 {
        assert_eq!(send(&mut all, 3), Sent::Done);
        assert_eq!(received(&mut all[3]).len(), 1);
    }
    assert_eq!(all[0].refused, before, "the pool has room again");
    assert_eq!(received(&mut all[1])[0].2, bytes);
}

#[test]
fn a_peer_that_joins_late_can_be_pulled_from() {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let join = |rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true).expect("joining");
    let early = join(0).peer_memory();
    assert!(!early.can_access(1), "there is no such process yet");
    let _late = join(1);
    assert!(early.can_access(1));
}

pub(super) fn received(device: &mut ShmDevice) -> Vec<(Address, Meta, Vec<u8>)> {
    let mut got = Vec::new();
    while device.poll(&mut |peer, meta, data| got.push((peer, *meta, data.to_vec()))).expect("poll") {}
    got
}

#[test]
fn packets_of_all_lengths_arrive_whole_and_in_order() {
    let (mut a, mut b) = pair();
    for round in 0..20u64 {
        let lengths = [0, 1, 39, 40, 41, 64, 96, 97, 200, 264, 265, 1000, 16384, a.max_data()];
        let mut sent = Vec::new();
        for (i, &len) in lengths.iter().enumerate() {
            let bytes: Vec<u8> = (0..len).map(|j| (j as u64 * 31 + i as u64 + round) as u8).collect();
            let meta = Meta { kind: i as u8, words: [round, u64::MAX - round] };
            while a.send(1, &meta, Data::Bytes(&bytes), Urgency::Normal).expect("send") == Sent::NoRoom {
                sent.drain(..).zip(received(&mut b)).for_each(|(s, r)| assert_eq!(s, r));
            }
            sent.push((0, meta, bytes));
        }
        let got = received(&mut b);
        assert_eq!(sent.len(), got.len());
        sent.into_iter().zip(got).for_each(|(s, r)| assert_eq!(s, r));
    }
}

/// Returns the error of `poll` for a cell that no sender writes.
fn refusal(info: u32, place: [u64; 2]) -> &'static str {
    let (mut a, mut b) = pair();
    assert_eq!(a.send(1, &Meta::default(), Data::Bytes(&[]), Urgency::Normal).expect("send"), Sent::Done);
    assert_eq!(received(&mut b).len(), 1);
    let lane = a.outgoing[1].as_mut().expect("a lane");
    let mut body: Body = [0; BODY_BYTES / 8];
    body[2..4].copy_from_slice(&place);
    assert!(lane.producer.push(&lane.memory, info, &body));
    match b.poll(&mut |_, _, data| panic!("{} bytes were handed on", data.len())) {
        Err(DeviceError::Corrupt { peer: 0, what }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_and_places_outside_their_memory_are_refused() {
    for len in [0, INLINE_BYTES, CHAIN_BYTES + 1, 0xffff] {
        assert_eq!(refusal(IN_CHAIN << 8 | (len as u32) << 16, [0; 2]), "a chain of impossible length");
    }
    for len in [INLINE_BYTES as u32 + 1, IN_POOL - 1] {
        assert_eq!(refusal(len << 8, [0; 2]), "a cell of impossible length");
    }
    for (start, len) in
        [(u64::from(u32::MAX), 1), (0, POOL_BYTES as u64 + 1), (0, u64::MAX), (pool::SLOTS as u64 - 1, 1 << 20)]
    {
        assert_eq!(refusal(IN_POOL << 8, [start, len]), "a block outside its pool");
    }
    let arena = ARENA_BYTES as u64;
    for (position, len) in [(0, arena + 1), (arena - 64, 128), (7 * arena + 1, arena), (0, u64::MAX), (64, u64::MAX)] {
        assert_eq!(refusal(IN_ARENA << 8, [position, len]), "a block outside its lane");
    }
}

#[test]
fn a_sender_that_does_not_exist_is_refused() {
    let (_a, mut b) = pair();
    b.ports.of(1).senders[0].store(1 << 2, Ordering::Release);
    let error = b.poll(&mut |_, _, _| panic!("no packet was sent"));
    assert!(matches!(error, Err(DeviceError::Corrupt { peer: 2, .. })), "{error:?}");
}

#[test]
fn a_full_lane_says_so_and_takes_packets_again_later() {
    let (mut a, mut b) = pair();
    let meta = Meta::default();
    let mut sent = 0;
    while a.send(1, &meta, Data::Bytes(&[7; 8]), Urgency::Normal).expect("send") == Sent::Done {
        sent += 1;
    }
    assert_eq!(sent, CELLS);
    assert_eq!(received(&mut b).len(), CELLS);
    assert_eq!(a.send(1, &meta, Data::Bytes(&[7; 8]), Urgency::Normal).expect("send"), Sent::Done);
}

#[test]
fn memory_grows_with_the_pairs_that_talk() {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let mut a = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(0, 64), true).expect("joining");
    let used = || {
        let copy = std::fs::File::from(file.try_clone().expect("dup"));
        std::os::unix::fs::MetadataExt::blocks(&copy.metadata().expect("stat")) * 512
    };
    let before = used();
    // Making the file longer, here and in `create`, takes a page each.
    assert!(before <= 128 * 1024 + 2 * PAGE as u64, "{before} bytes before any packet");
    let _ = a.send(5, &Meta::default(), Data::Bytes(&[]), Urgency::Normal).expect("send");
    assert_eq!(used() - before, LANE_BYTES as u64);
}

/// Returns what a process receives that reuses a number, after `before` packets between its former process and process
/// 0 in each direction, `unread` that process 0 has not taken, and `late` that it sends to the former process only now.
fn second_holder(before: usize, unread: usize, late: usize) {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let join = |me, known| {
        ShmDevice::join(file.as_fd(), PAGE as u64, &Seats { me, known, capacity: 2 }, true).expect("joining")
    };
    let send = |from: &mut ShmDevice, to, byte: u8, len| {
        from.send(to, &Meta::default(), Data::Bytes(&vec![byte; len]), Urgency::Normal)
    };
    let mut one = join(0, 0..1);
    one.prepare(1).expect("memory");
    let mut former = join(1, 1..2);
    one.meet(1, false);
    former.meet(0, false);
    for n in 0..before {
        let len = [0, 8, 200, 3000][n % 4];
        assert_eq!(send(&mut one, 1, 1, len).expect("send"), Sent::Done);
        assert_eq!(send(&mut former, 0, 2, len).expect("send"), Sent::Done);
        assert_eq!((received(&mut one).len(), received(&mut former).len()), (1, 1));
    }
    (0..unread).for_each(|_| assert_eq!(send(&mut former, 0, 3, 8).expect("send"), Sent::Done));
    drop(former);
    one.prepare(1).expect("memory");
    for _ in 0..late {
        let sent = send(&mut one, 1, 4, 8);
        assert!(
            before > 0 || matches!(sent, Err(DeviceError::Died { peer: 1, .. })),
            "no lane to a stranger: {sent:?}"
        );
    }
    let mut new = join(1, 1..2);
    assert_eq!((received(&mut one), received(&mut new)), (vec![], vec![]), "{before} {unread} {late}");
    one.meet(1, true);
    new.meet(0, false);
    for n in 0..2 * CELLS {
        let len = [0, 8, 200, 3000][n % 4];
        assert_eq!(send(&mut one, 1, 5, len).expect("send"), Sent::Done);
        assert_eq!(send(&mut new, 0, 6, len).expect("send"), Sent::Done);
        assert_eq!(received(&mut new), [(0, Meta::default(), vec![5; len])], "{before} {unread} {late}, packet {n}");
        assert_eq!(received(&mut one), [(1, Meta::default(), vec![6; len])], "{before} {unread} {late}, packet {n}");
    }
}

#[test]
fn nothing_of_the_former_holder_of_a_number_reaches_the_new_one() {
    for before in [0, 1, 5, 44, CELLS - 1, CELLS, CELLS + 44] {
        for (unread, late) in [(0, 0), (0, 1), (3, 0), (3, 3), (CELLS, CELLS + 1)] {
            second_holder(before, unread, late);
        }
    }
}
