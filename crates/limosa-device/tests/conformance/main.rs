//! The contract of devices (see the top of the crate), checked on each of them.

mod fabrics;
mod severed;

use fabrics::{Fabric, Member};
use limosa_base::doorbell::DoorbellState;
use limosa_device::fabric::Library;
use limosa_device::{Data, Device, DeviceError, Devices, Meta, Sent, Urgency};
use limosa_sim::{Conditions, Network};
use std::thread;
use std::time::{Duration, Instant};

/// Factor of polls that an operation may need, without and with a network.
const SLOWER: [usize; 2] = [1, 10_000];

type Packet = (u32, Meta, Vec<u8>);

fn send(from: &mut Member, to: u32, kind: u8, bytes: &[u8], urgency: Urgency) -> Sent {
    let meta = Meta { kind, words: [bytes.len() as u64, u64::MAX - u64::from(kind)] };
    from.device.send(to, &meta, Data::Bytes(bytes), urgency).expect("send")
}

/// Returns all packets that have arrived, and at least `count`.
fn awaited(member: &mut Member, count: usize) -> Vec<Packet> {
    let mut got = received(member);
    let deadline = Instant::now() + member.patience;
    while got.len() < count && Instant::now() < deadline {
        thread::sleep(Duration::from_micros(100));
        got.extend(received(member));
    }
    got
}

/// Returns all packets that have arrived.
fn received(member: &mut Member) -> Vec<Packet> {
    let mut got = Vec::new();
    while member.device.poll(&mut |from, meta, data| got.push((from, *meta, data.to_vec()))).expect("poll") {}
    got
}

/// Returns all packets that come to a member until nothing moves any more, and at least `count`. The others are polled
/// too: a sender may hold packets back until earlier ones were taken.
fn exchanged(f: &mut Fabric, to: usize, count: usize) -> Vec<Packet> {
    let mut got = Vec::new();
    let deadline = Instant::now() + f.members[to].patience;
    loop {
        for (i, member) in f.members.iter_mut().enumerate().filter(|(i, _)| *i != to) {
            assert!(received(member).is_empty(), "no packet was sent to {i}");
        }
        let more = received(&mut f.members[to]);
        if more.is_empty() && (got.len() >= count || Instant::now() >= deadline) {
            return got;
        }
        got.extend(more);
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect()
}

/// Fills the lane from one member to another; gives the number of packets.
fn fill(from: &mut Member, to: u32, len: usize) -> usize {
    (0..10_000_000)
        .find(|&i| send(from, to, 1, &bytes(len, i), Urgency::Normal) == Sent::NoRoom)
        .expect("no lane takes so many packets")
}

fn packets_of_all_lengths_arrive_whole_and_in_order(mut f: Fabric) {
    let max = f.members[0].device.max_data();
    let lengths: Vec<usize> = (0..300).chain([1000, 4095, 4096, 4097, 8192, max - 1, max]).collect();
    for round in 0..3 {
        let mut sent = Vec::new();
        let mut got = Vec::new();
        for (i, &len) in lengths.iter().enumerate() {
            let data = bytes(len, i + round);
            let meta = Meta { kind: i as u8, words: [round as u64, u64::MAX - i as u64] };
            // Both forms of data.
            let mut fill = |to: &mut [u8]| to.copy_from_slice(&data);
            while match i % 2 {
                0 => f.members[0].device.send(1, &meta, Data::Bytes(&data), Urgency::Normal),
                _ => f.members[0].device.send(1, &meta, Data::Fill(len, &mut fill), Urgency::Urgent),
            }
            .expect("send")
                == Sent::NoRoom
            {
                got.extend(exchanged(&mut f, 1, 0));
            }
            sent.push((0, meta, data));
        }
        let missing = sent.len() - got.len();
        got.extend(exchanged(&mut f, 1, missing));
        assert!(sent == got, "{} packets were sent and {} arrived", sent.len(), got.len());
    }
}

fn lent_bytes_arrive_whole_and_in_order_and_are_given_back(mut f: Fabric) {
    let max = f.members[0].device.max_data();
    let lengths = [1, 100, max / 2, max, max - 1, 5000.min(max)];
    let lent: Vec<Vec<u8>> = (0..60).map(|i| bytes(lengths[i % lengths.len()], i)).collect();
    let mut got = Vec::new();
    for (i, data) in lent.iter().enumerate() {
        let meta = Meta { kind: i as u8, words: [i as u64, 1] };
        // SAFETY: the bytes stay to the end of this function, which sees to it that they are away.
        while unsafe { f.members[0].device.send_lent(1, &meta, data, Urgency::Normal) }.expect("send") == Sent::NoRoom {
            got.extend(exchanged(&mut f, 1, 0));
        }
    }
    let count = f.members[0].device.packets_to(1);
    let missing = lent.len() - got.len();
    got.extend(exchanged(&mut f, 1, missing));
    let deadline = Instant::now() + f.members[0].patience;
    while !f.members[0].device.is_away(1, count) && Instant::now() < deadline {
        received(&mut f.members[0]);
    }
    assert!(f.members[0].device.is_away(1, count), "all packets were received, but their bytes are not given back");
    assert!(got.iter().map(|packet| &packet.2).eq(&lent), "{} packets were sent and {} arrived", lent.len(), got.len());
}

/// Has process 0 send a message straight to memory of process 1.
fn send_straight(f: &mut Fabric, data: &[u8], room: &mut [u8]) {
    let slice = |bytes: &[u8]| limosa_device::slice(bytes.as_ptr() as u64, bytes.len());
    // SAFETY: this function waits until both have ended.
    let ticket = unsafe { f.members[1].device.expect_straight(0, slice(room), 71) }.expect("a ticket");
    // SAFETY: as above.
    unsafe { f.members[0].device.send_straight(1, ticket, slice(data), 70) }.expect("send");
    assert!(f.members[1].device.is_transferring(), "the memory is posted");
    let deadline = Instant::now() + f.members[1].patience;
    for (who, note) in [(0, 70), (1, 71)] {
        loop {
            exchanged(f, 2, 0);
            assert!(received(&mut f.members[1]).is_empty(), "it is no packet");
            match f.members[who].device.next_ended() {
                Some(ended) => break assert_eq!(ended, note),
                None => assert!(Instant::now() < deadline, "process {who} never hears of the end"),
            }
        }
        assert_eq!(f.members[who].device.next_ended(), None);
        assert!(!f.members[who].device.is_transferring(), "all has ended");
    }
}

fn what_is_sent_straight_arrives_at_its_place(mut f: Fabric) {
    for (seed, len) in [1, 1000, 100_000, 262_143, 262_144, 262_145, 3_000_000].into_iter().enumerate() {
        let data = bytes(len, seed);
        let mut room = vec![0xa5; len + 2];
        send_straight(&mut f, &data, &mut room[1..=len]);
        assert!(room[1..=len] == data && room[0] == 0xa5 && room[len + 1] == 0xa5, "{len} bytes");
    }
}

fn memory_is_given_back_before_the_death_of_its_sender_is_reported(mut f: Fabric) {
    let slice = |bytes: &[u8]| limosa_device::slice(bytes.as_ptr() as u64, bytes.len());
    let room = vec![0xa5; 1_000_000];
    // SAFETY: the memory is not touched otherwise before the end of this function.
    let ticket = unsafe { f.members[1].device.expect_straight(0, slice(&room), 71) }.expect("a ticket");
    f.kill(0);
    let deadline = Instant::now() + f.members[1].patience;
    while !matches!(f.members[1].device.poll(&mut |_, _, _| {}), Err(DeviceError::Died { peer: 0, .. })) {
        f.members[1].wakes();
        assert!(Instant::now() < deadline, "the death is never reported");
    }
    // Bytes that come all the same are not written there.
    let data = bytes(room.len(), 1);
    // SAFETY: the bytes stay longer than the device.
    let _ = unsafe { f.members[0].device.send_straight(1, ticket, slice(&data), 70) };
    for _ in 0..100 {
        received(&mut f.members[0]);
        received(&mut f.members[1]);
        thread::sleep(Duration::from_millis(1));
    }
    assert!(room.iter().all(|byte| *byte == 0xa5), "it was written to");
    assert_eq!(f.members[1].device.next_ended(), None);
    // SAFETY: it is refused.
    assert_eq!(unsafe { f.members[1].device.expect_straight(0, slice(&room), 72) }, None);
    drop(f);
}

fn a_send_without_room_has_no_effect_and_a_sender_that_wants_room_is_woken_when_there_is(mut f: Fabric) {
    for len in [8, 2000] {
        let count = fill(&mut f.members[0], 1, len);
        assert!(count > 0);
        assert_eq!(send(&mut f.members[0], 1, 2, &bytes(len, 7), Urgency::Urgent), Sent::NoRoom);
        f.members[0].bell.set(DoorbellState::Asleep);
        f.members[0].device.want_room(1);
        received(&mut f.members[0]);
        // Packets under way on a network may be delivered by themselves.
        let is_network = !f.members[0].patience.is_zero();
        assert!(is_network || !f.members[0].is_woken(), "there is no room yet");
        let mut got = received(&mut f.members[1]);
        let woken = f.members[0].wakes();
        let missing = count - got.len();
        got.extend(exchanged(&mut f, 1, missing));
        assert_eq!(got.len(), count);
        assert!(got.iter().enumerate().all(|(i, packet)| packet.1.kind == 1 && packet.2 == bytes(len, i)));
        assert!(woken, "there is room again");
        received(&mut f.members[0]);
        assert_eq!(send(&mut f.members[0], 1, 3, &bytes(len, 1), Urgency::Normal), Sent::Done);
        assert_eq!(awaited(&mut f.members[1], 1).len(), 1);
    }
}

fn a_poll_ends_although_packets_keep_coming(mut f: Fabric) {
    let [a, b, ..] = &mut f.members[..] else { unreachable!() };
    let _ = send(a, 1, 1, &[], Urgency::Normal);
    let mut handed = 0;
    let any = b.device.poll(&mut |_, _, _| {
        handed += 1;
        assert!(handed < 10_000, "a poll hands over a bounded number of packets");
        let _ = send(a, 1, 1, &[], Urgency::Normal);
    });
    assert!(any.expect("poll"));
    assert!(handed > 0);
}

fn no_peer_is_starved_by_a_peer_that_sends_much(mut f: Fabric) {
    for _ in 0..20 {
        fill(&mut f.members[0], 1, 8);
        assert_eq!(send(&mut f.members[2], 1, 9, &[], Urgency::Normal), Sent::Done);
        let mut heard = false;
        let mut polls = 0;
        while !heard {
            polls += 1;
            assert!(polls < 100 * SLOWER[usize::from(!f.members[1].patience.is_zero())], "process 2 is never heard");
            f.members[1].device.poll(&mut |from, _, _| heard |= from == 2).expect("poll");
            let _ = send(&mut f.members[0], 1, 1, &[], Urgency::Normal);
            // It may hold its packet back until the previous packet was taken.
            assert!(received(&mut f.members[2]).is_empty());
        }
        received(&mut f.members[1]);
    }
}

fn a_packet_wakes_its_receiver(mut f: Fabric) {
    let cases = [
        (DoorbellState::Asleep, Urgency::Normal),
        (DoorbellState::Asleep, Urgency::Urgent),
        (DoorbellState::AwayAll, Urgency::Normal),
        (DoorbellState::Away, Urgency::Urgent),
    ];
    for (state, urgency) in cases {
        for len in [0, 100, 5000] {
            f.members[1].bell.set(state);
            // A network also wakes for events without packets.
            assert!(!f.members[1].is_woken() || !f.members[1].patience.is_zero());
            assert_eq!(send(&mut f.members[0], 1, 1, &bytes(len, 0), urgency), Sent::Done);
            assert!(f.members[1].wakes(), "{state:?}, {urgency:?}, {len} bytes");
            assert_eq!(awaited(&mut f.members[1], 1).len(), 1);
            f.members[1].bell.set(DoorbellState::Awake);
        }
    }
}

fn a_process_that_has_taken_all_that_came_can_sleep(mut f: Fabric) {
    for round in 0..10 {
        for (from, to) in [(0, 1), (1, 0), (0, 1)] {
            for len in [0, 100, 5000] {
                while send(&mut f.members[from], to as u32, 1, &bytes(len, round), Urgency::Normal) == Sent::NoRoom {
                    received(&mut f.members[from]);
                }
                assert_eq!(awaited(&mut f.members[to], 1).len(), 1);
            }
        }
        for member in &mut f.members[..2] {
            let deadline = Instant::now() + Duration::from_secs(300);
            let mut is_woken = true;
            while is_woken {
                assert!(Instant::now() < deadline, "it is woken again and again although nothing comes");
                member.bell.set(DoorbellState::Asleep);
                received(member);
                is_woken = member.is_woken();
            }
        }
    }
}

fn a_first_packet_arrives_after_polls_in_vain(mut f: Fabric) {
    assert!(received(&mut f.members[1]).is_empty());
    for from in [0, 2] {
        f.members[1].bell.set(DoorbellState::Asleep);
        assert_eq!(send(&mut f.members[from], 1, 1, &[], Urgency::Normal), Sent::Done);
        assert!(f.members[1].wakes());
        assert_eq!(awaited(&mut f.members[1], 1).len(), 1);
        assert!(received(&mut f.members[1]).is_empty());
    }
}

fn a_process_that_may_not_have_noticed_a_packet_can_be_alerted(mut f: Fabric) {
    f.members[1].bell.set(DoorbellState::Away);
    assert_eq!(send(&mut f.members[0], 1, 1, &[], Urgency::Normal), Sent::Done);
    if !f.members[0].device.is_attended(1) {
        assert!(!f.members[1].is_woken(), "a packet that can wait wakes no helper");
        f.members[0].device.alert(1);
    }
    assert!(f.members[1].wakes());
}

fn a_death_is_reported_once_after_all_that_was_sent_and_others_are_served_on(mut f: Fabric) {
    let is_network = !f.members[0].patience.is_zero();
    let count = match is_network {
        // Packets that a network still holds are lost with their sender.
        true => (0..20).filter(|_| send(&mut f.members[1], 0, 1, &[1; 100], Urgency::Normal) == Sent::Done).count(),
        false => fill(&mut f.members[1], 0, 100),
    };
    f.members[1].device.release().expect("release");
    // Packets to it that were not read are lost, without harm to others.
    let _ = send(&mut f.members[0], 1, 1, &[1; 100], Urgency::Normal);
    f.members[0].bell.set(DoorbellState::Asleep);
    f.kill(1);
    assert!(f.members[0].wakes(), "a death is noticed while asleep");
    let (mut got, mut deaths) = (0, 0);
    let deadline = Instant::now() + f.members[0].patience;
    let mut polls = 0;
    while polls < 100 || (deaths == 0 && Instant::now() < deadline) {
        polls += 1;
        match f.members[0].device.poll(&mut |from, _, _| got += usize::from(from == 1)) {
            Ok(_) => {}
            Err(DeviceError::Died { peer: 1, .. }) => {
                deaths += 1;
                assert!(got == count, "{got} of {count} packets came before the death");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(deaths, 1);
    let sent = f.members[0].device.send(1, &Meta::default(), Data::Bytes(&[]), Urgency::Normal);
    assert!(matches!(sent, Err(DeviceError::Died { peer: 1, .. })));
    assert!(!f.members[0].device.is_alive(1) && f.members[0].device.is_alive(2));
    assert_eq!(send(&mut f.members[0], 2, 5, &[], Urgency::Normal), Sent::Done);
    let mut heard = 0;
    let mut polls = 0;
    while polls < 100 || (heard == 0 && Instant::now() < deadline) {
        polls += 1;
        // Process 2 hears of the death too.
        let _ = f.members[2].device.poll(&mut |from, meta, _| heard += usize::from(from == 0 && meta.kind == 5));
    }
    assert_eq!(heard, 1);
}

fn an_unreachable_peer_is_reported_by_the_polls_too(mut f: Fabric) {
    let sent = f.members[0].device.send(2, &Meta::default(), Data::Bytes(&[]), Urgency::Normal);
    assert!(matches!(sent, Err(DeviceError::Died { peer: 2, .. })), "{sent:?}");
    let deadline = Instant::now() + f.members[0].patience;
    let mut reports = 0;
    while reports == 0 && Instant::now() < deadline {
        assert!(f.members[0].wakes(), "a process that waits for process 2 is told that it does not come");
        reports += usize::from(matches!(
            f.members[0].device.poll(&mut |_, _, _| panic!("no packet was sent")),
            Err(DeviceError::Died { peer: 2, .. })
        ));
    }
    assert_eq!(reports, 1);
    assert!(f.members[0].device.poll(&mut |_, _, _| {}).is_ok(), "it is reported once");
    assert_eq!(exchanged_by_first_packets(&mut f), [1, 1]);
}

fn a_process_that_has_left_is_not_waited_for_and_not_missed(mut f: Fabric) {
    let deadline = Instant::now() + f.members[0].patience;
    let left = loop {
        match f.members[0].device.send(2, &Meta::default(), Data::Bytes(&[]), Urgency::Normal) {
            Ok(_) => assert!(Instant::now() < deadline, "it tries to reach process 2 for ever"),
            Err(error) => break error,
        }
        assert!(f.members[0].device.poll(&mut |_, _, _| {}).is_ok(), "no process is missed");
    };
    assert!(matches!(left, DeviceError::Left { peer: 2, .. }), "{left}");
    assert!(f.members[0].device.is_drained() && !f.members[0].device.is_alive(2));
    assert_eq!(exchanged_by_first_packets(&mut f), [1, 1]);
}

fn a_process_leaves_when_all_that_it_has_sent_has_come(mut f: Fabric) {
    for i in 0..5 {
        assert_eq!(send(&mut f.members[0], 1, i, &[1; 100], Urgency::Normal), Sent::Done);
    }
    let deadline = Instant::now() + Duration::from_millis(50);
    while Instant::now() < deadline {
        received(&mut f.members[0]);
        assert!(!f.members[0].device.is_drained(), "process 1 has not taken anything");
    }
    assert_eq!(awaited(&mut f.members[1], 5).len(), 5);
    // Process 0 asks the others, which stay, and then leaves; after it process 1, and the last one has all answers.
    let mut leaving = vec![0];
    let mut left = Vec::new();
    let deadline = Instant::now() + f.members[0].patience;
    while left.len() < f.members.len() && Instant::now() < deadline {
        let staying: Vec<usize> = (0..f.members.len()).filter(|who| !left.contains(who)).collect();
        staying.iter().for_each(|who| assert!(received(&mut f.members[*who]).is_empty()));
        for who in leaving.clone() {
            if f.members[who].device.is_drained() {
                f.end(who);
                left.push(who);
                leaving = (0..f.members.len()).filter(|who| !left.contains(who)).collect();
            }
        }
    }
    assert_eq!(left[0], 0);
    assert_eq!(left.len(), f.members.len(), "only {left:?} have left");
}

fn a_process_with_a_wrong_token_is_not_heard(mut f: Fabric) {
    for seed in 0..20 {
        f.corrupt(seed);
        assert!(received(&mut f.members[1]).is_empty());
    }
    // The packets were there when this one is, or soon after.
    assert_eq!(send(&mut f.members[0], 1, 5, &[], Urgency::Normal), Sent::Done);
    assert_eq!(awaited(&mut f.members[1], 1).len(), 1);
    thread::sleep(Duration::from_millis(50));
    assert!(received(&mut f.members[1]).is_empty());
}

/// Processes 0 and 1 send each other a packet at the same time; how many come to each.
fn exchanged_by_first_packets(f: &mut Fabric) -> [usize; 2] {
    let (mut sent, mut got) = ([false; 2], [0; 2]);
    let deadline = Instant::now() + f.members[0].patience;
    while got != [1, 1] && Instant::now() < deadline {
        for me in [0, 1] {
            sent[me] = sent[me] || send(&mut f.members[me], 1 - me as u32, 5, &[], Urgency::Normal) == Sent::Done;
        }
        for me in [0, 1] {
            got[me] += received(&mut f.members[me]).len();
        }
    }
    got
}

fn invalid_bytes_are_errors(mut f: Fabric) {
    let (mut errors, mut polls) = (0, 0);
    for seed in 0..500 {
        let data = bytes(seed * 13 % 1500, seed);
        let _ = f.members[0].device.send(1, &Meta { kind: 1, words: [0; 2] }, Data::Bytes(&data), Urgency::Normal);
        f.corrupt(seed as u64);
        for _ in 0..3 {
            polls += 1;
            match f.members[1].device.poll(&mut |_, _, _| {}) {
                Ok(_) => {}
                Err(DeviceError::Corrupt { .. } | DeviceError::Severed { .. }) => errors += 1,
                Err(error) => panic!("{error}"),
            }
        }
        // A network takes its time to make.
        if seed % if f.members[1].patience.is_zero() { 4 } else { 100 } == 0 {
            f = (f.again)();
        }
    }
    assert!(errors > 0, "none of {polls} polls has seen anything");
}

/// Runs a test on one device, if there is what that needs.
fn run(test: fn(Fabric), name: &str, make: fn() -> Fabric) {
    match name.starts_with("network").then(Library::without) {
        Some(Some(missing)) => eprintln!("not run: {missing}"),
        _ => test(make()),
    }
}

macro_rules! conform {
    ($part:ident, $($fabric:ident)*, $tests:tt) => {
        mod $part { $(conform!(@ $fabric $tests);)* }
    };
    (@ $fabric:ident { $($name:ident),* }) => {
        mod $fabric {
            $(#[test] fn $name() { crate::run(crate::$name, stringify!($fabric), crate::fabrics::$fabric); })*
        }
    };
}

conform!(clock, files_by_clock, {
    packets_of_all_lengths_arrive_whole_and_in_order,
    a_poll_ends_although_packets_keep_coming,
    no_peer_is_starved_by_a_peer_that_sends_much
});

conform!(packets, shm messages files simulated sockets network network_alone, {
    packets_of_all_lengths_arrive_whole_and_in_order,
    lent_bytes_arrive_whole_and_in_order_and_are_given_back,
    a_send_without_room_has_no_effect_and_a_sender_that_wants_room_is_woken_when_there_is,
    a_poll_ends_although_packets_keep_coming,
    no_peer_is_starved_by_a_peer_that_sends_much,
    a_packet_wakes_its_receiver,
    a_process_that_has_taken_all_that_came_can_sleep,
    a_first_packet_arrives_after_polls_in_vain,
    a_process_that_may_not_have_noticed_a_packet_can_be_alerted
});

conform!(deaths, shm messages files files_by_clock simulated sockets network network_alone, {
    a_death_is_reported_once_after_all_that_was_sent_and_others_are_served_on
});

conform!(strangers, network_with_a_stranger, { a_process_with_a_wrong_token_is_not_heard });
conform!(leavers, network_that_one_has_left, { a_process_that_has_left_is_not_waited_for_and_not_missed });
conform!(misfits, network_with_a_misfit, { an_unreachable_peer_is_reported_by_the_polls_too });

conform!(parting, network network_alone, { a_process_leaves_when_all_that_it_has_sent_has_come });

conform!(memory, network, {
    what_is_sent_straight_arrives_at_its_place,
    memory_is_given_back_before_the_death_of_its_sender_is_reported
});

// Devices that carry bytes.
conform!(nonsense, shm messages files sockets network, { invalid_bytes_are_errors });

#[test]
fn peers_are_added_later_and_packets_from_unknown_addresses_are_errors() {
    let network = Network::new(3, Conditions::default(), 1);
    let mut devices = Devices::new(None);
    let device = devices.add_device(Box::new(network.device(0)));
    let send = |from| network.device(from).send(0, &Meta::default(), Data::Bytes(&[]), Urgency::Normal).expect("send");
    assert_eq!(devices.add_peer(device, 2), 0);
    assert_eq!(send(2), Sent::Done);
    let mut from = Vec::new();
    assert!(devices.poll(&mut |peer, _, _| from.push(peer)).expect("poll"));
    assert_eq!(send(1), Sent::Done);
    assert!(matches!(
        devices.poll(&mut |_, _, _| panic!("no known process has sent this")),
        Err(DeviceError::Corrupt { .. })
    ));
    assert_eq!(devices.add_peer(device, 1), 1);
    assert_eq!(send(1), Sent::Done);
    assert!(devices.poll(&mut |peer, _, _| from.push(peer)).expect("poll"));
    assert_eq!(from, [0, 1]);
    network.kill(1);
    assert!(matches!(devices.poll(&mut |_, _, _| {}), Err(DeviceError::Died { peer: 1, .. })));
}
