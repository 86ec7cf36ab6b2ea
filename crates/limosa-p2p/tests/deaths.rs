//! What ends when a process dies, and what goes on.

use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Devices, Engine, Failure, Holdings, Links, Mode, Options, RequestId, Started, Unobserved, Wait};
use limosa_sim::{Conditions, Network};
use std::sync::Arc;

const OPTIONS: Options =
    Options { wait: Wait::Block, spin_ns: 0, eager_limit: 6000, unexpected_limit: 1 << 30, independent_progress: false };
/// A context of processes 0, 1 and 2, and one of 0 and 2.
const ALL: u64 = 10;
const WITHOUT_1: u64 = 12;

fn engines(network: &Network) -> Vec<Arc<Engine>> {
    let engine = |rank| {
        let mut devices = Devices::new(None);
        let device = devices.add_device(Box::new(network.device(rank)));
        (0..3).for_each(|address| assert_eq!(devices.add_peer(device, address), address));
        let links = Links { devices, doorbell: network.doorbell(rank), rank, peers: 3, processes_here: 1 };
        let engine = Engine::start(links, OPTIONS).expect("an engine");
        engine.set_concerns(Box::new(|context, source, peer| source.map_or(context == ALL || peer != 1, |source| source as u32 == peer)));
        engine
    };
    (0..3).map(engine).collect()
}

fn network() -> Network {
    Network::new(3, Conditions { capacity: 2, ..Conditions::default() }, 1)
}

fn out(data: &[u8]) -> Region {
    // SAFETY: the tests keep the data until the send is done.
    unsafe { Region::contiguous(data.as_ptr().cast_mut(), data.len()) }
}

fn room(data: &mut [u8]) -> Region {
    // SAFETY: the tests leave the data alone until the receive is done.
    unsafe { Region::contiguous(data.as_mut_ptr(), data.len()) }
}

fn send(engine: &Engine, to: u32, tag: i32, data: &[u8], mode: Mode) -> Option<RequestId> {
    match engine.send(to, &Envelope { context: ALL, source: engine.rank() as i32, tag }, out(data), mode).expect("send") {
        Started::Done => None,
        Started::Pending(id) => Some(id),
    }
}

fn receive(engine: &Engine, context: u64, source: Option<i32>, tag: i32, data: &mut [u8]) -> RequestId {
    engine.receive(&Pattern { context, source, tag: Some(tag) }, room(data))
}

/// The process that a failed operation names.
fn dead(end: Option<Completion>) -> Option<String> {
    match end?.failure.as_deref() {
        Some(Failure::PeerDied(what)) => what.split_whitespace().nth(1).map(str::to_owned),
        other => panic!("{other:?} says nothing of a death"),
    }
}

#[test]
fn a_death_ends_what_needs_the_dead_and_nothing_else() {
    let network = network();
    let e = engines(&network);
    let (small, large) = (vec![7u8; 8], vec![8u8; 60_000]);
    let mut rooms = vec![vec![0u8; 60_000]; 8];
    let [one, any, elsewhere, two, streamed, whole, offered, later] = &mut rooms[..] else { unreachable!() };

    // Process 1 has sent two messages that nobody has asked for, and streams one.
    send(&e[1], 0, 6, &small, Mode::Standard);
    send(&e[1], 0, 7, &large, Mode::Standard);
    e[0].poll();
    send(&e[1], 0, 5, &large, Mode::Standard);
    e[0].poll();
    let streamed = receive(&e[0], ALL, Some(1), 5, streamed);
    e[1].poll();
    e[0].poll();
    let posted = [receive(&e[0], ALL, Some(1), 1, one), receive(&e[0], ALL, None, 2, any)];
    let unconcerned = [receive(&e[0], WITHOUT_1, None, 2, elsewhere), receive(&e[0], ALL, Some(2), 1, two)];
    let queued: Vec<_> = (0..4).filter_map(|tag| send(&e[0], 1, tag, &small, Mode::Standard)).collect();
    assert_eq!(queued.len(), 2, "the lane has room for two");
    let waiting = [send(&e[0], 1, 9, &large, Mode::Standard), send(&e[0], 1, 9, &small, Mode::Synchronous)];
    let to_two = send(&e[0], 2, 1, &large, Mode::Standard).expect("nobody has received it");
    e[0].poll();

    network.kill(1);
    (0..20).for_each(|_| e[0].poll());
    for id in posted.into_iter().chain(queued).chain(waiting.into_iter().flatten()).chain([streamed]) {
        assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    }
    assert!(unconcerned.iter().chain([&to_two]).all(|id| e[0].peek(*id).is_none()), "what does not need process 1 goes on");

    // New operations with the dead fail at once; its whole message can be received, the one that stayed with it cannot.
    let envelope = Envelope { context: ALL, source: 0, tag: 0 };
    assert!(matches!(e[0].send(1, &envelope, out(&small), Mode::Standard), Err(Failure::PeerDied(_))));
    let id = receive(&e[0], ALL, Some(1), 6, whole);
    assert_eq!(e[0].take(id).map(|end| (end.bytes, end.failure)), Some((8, None)));
    assert_eq!(whole[..8], small);
    let id = receive(&e[0], ALL, Some(1), 7, offered);
    assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    let id = receive(&e[0], ALL, None, 1, later);
    assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    assert!(matches!(e[0].probe(&Pattern { context: ALL, source: None, tag: None }), Err(Failure::PeerDied(_))));

    // Process 2 answers as before.
    let mut got = vec![0u8; 60_000];
    let at_two = receive(&e[2], ALL, Some(0), 1, &mut got);
    send(&e[2], 0, 1, &small, Mode::Standard);
    (0..20).for_each(|_| e.iter().step_by(2).for_each(|engine| engine.poll()));
    assert!(e[2].take(at_two).is_some_and(|end| end.failure.is_none()));
    assert!(got == large);
    assert!(e[0].take(to_two).is_some_and(|end| end.failure.is_none()));
    assert!(e[0].take(unconcerned[1]).is_some_and(|end| end.failure.is_none()));
    e[0].cancel(unconcerned[0]);
    e[0].take(unconcerned[0]);
    assert_eq!(e[0].holdings(), Holdings::default());
}

#[test]
fn a_death_ends_blocked_calls() {
    let pattern = |source| Pattern { context: ALL, source, tag: Some(1) };
    for round in 0..50 {
        let network = network();
        let e = engines(&network);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| {
                let mut got = [0; 8];
                let end = e[0].receive_blocking(&pattern((round % 2 == 0).then_some(1)), room(&mut got), &Unobserved);
                assert_eq!(dead(Some(end)).as_deref(), Some("1"));
                let probed = e[0].block_on_probe(&pattern(Some(1)), &Unobserved);
                assert!(matches!(probed, Err(Failure::PeerDied(_))));
            });
            if round % 3 > 0 {
                // Let it fall asleep sometimes; the outcome is the same.
                std::thread::yield_now();
            }
            network.kill(1);
            blocked.join().expect("no panic");
        });
    }
}

#[test]
fn a_message_that_comes_in_parts_from_a_dying_process_fails_where_it_is_received() {
    let network = network();
    let e = engines(&network);
    let data = vec![3u8; 5000];
    let mut rooms = vec![vec![0u8; 5000]; 3];
    let [posted, held, never] = &mut rooms[..] else { unreachable!() };
    // The lane takes the beginning and one part.
    let id = receive(&e[0], ALL, Some(2), 1, posted);
    send(&e[2], 0, 1, &data, Mode::Standard).expect("there is no room for all");
    e[0].poll();
    send(&e[1], 0, 1, &data, Mode::Standard).expect("there is no room for all");
    e[0].poll();
    let matched = e[0].probe_matched(&Pattern { context: ALL, source: Some(1), tag: None }).expect("it has begun to arrive");
    network.kill(1);
    network.kill(2);
    (0..20).for_each(|_| e[0].poll());
    assert_eq!(dead(e[0].take(id)).as_deref(), Some("2"));
    let id = e[0].receive_matched(matched, room(held));
    assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    let id = receive(&e[0], ALL, Some(1), 1, never);
    assert!(dead(e[0].take(id)).is_some());
    assert_eq!(e[0].holdings(), Holdings::default());
}

#[test]
fn a_message_that_was_given_back_is_not_counted() {
    let e = engines(&network());
    let id = send(&e[0], 1, 1, &[1; 40], Mode::Synchronous).expect("it waits for its receiver");
    e[1].poll();
    assert!(e[1].holdings().unexpected_bytes >= 40);
    e[0].cancel(id);
    e[1].poll();
    e[0].poll();
    assert!(e[0].take(id).is_some_and(|end| end.cancelled));
    assert_eq!(e[1].holdings(), Holdings::default());
}
