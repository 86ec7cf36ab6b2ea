//! Consequences of a process's death: the operations that it ends, and those that continue.

use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{
    Chapter, Completion, Devices, Engine, Failure, Holdings, Links, Listener, Meta, Mode, Needs, Options, ProgramJob,
    RequestId, Started, Unobserved, Urgency, Wait, Words,
};
use limosa_sim::{Conditions, Network};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const OPTIONS: Options = Options {
    wait: Wait::Block,
    spin_ns: 0,
    eager_limit: 6000,
    unexpected_limit: 1 << 30,
    independent_progress: false,
};
/// A context of processes 0, 1 and 2.
const ALL: u64 = 10;
const WITHOUT_1: u64 = 12;
/// A collective context of all processes.
const TOGETHER: u64 = 11;

fn engines(network: &Network) -> Vec<Arc<Engine>> {
    let engine = |rank| {
        let mut devices = Devices::new(None);
        let device = devices.add_device(Box::new(network.device(rank)));
        (0..3).for_each(|address| assert_eq!(devices.add_peer(device, address), address));
        let links = Links { devices, doorbell: network.doorbell(rank), rank, peers: 3, processes_here: 1 };
        let engine = Engine::start(links, OPTIONS).expect("an engine");
        engine.set_concerns(Box::new(|context, needs, peer| match needs {
            _ if context == TOGETHER => true,
            Needs::Rank(rank) => rank as u32 == peer,
            Needs::AnyMember => context == ALL || peer != 1,
            Needs::Living => false,
        }));
        engine
    };
    (0..3).map(engine).collect()
}

fn network() -> Network {
    Network::new(3, Conditions { capacity: 2, ..Conditions::default() }, 1)
}

fn out(data: &[u8]) -> Region {
    // SAFETY: the tests keep the data until the send is complete.
    unsafe { Region::contiguous(data.as_ptr().cast_mut(), data.len()) }
}

fn room(data: &mut [u8]) -> Region {
    // SAFETY: the tests do not touch the data until the receive is complete.
    unsafe { Region::contiguous(data.as_mut_ptr(), data.len()) }
}

fn send(engine: &Engine, to: u32, tag: i32, data: &[u8], mode: Mode) -> Option<RequestId> {
    match engine.send(to, &Envelope { context: ALL, source: engine.rank() as i32, tag }, out(data), mode).expect("send")
    {
        Started::Done => None,
        Started::Pending(id) => Some(id),
    }
}

fn receive(engine: &Engine, context: u64, source: Option<i32>, tag: i32, data: &mut [u8]) -> RequestId {
    engine.receive(&Pattern { context, source, tag: Some(tag) }, room(data))
}

/// Returns the process that a failed operation names.
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

    // Process 1 has sent two unexpected messages, and streams a third.
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
    let to_two = send(&e[0], 2, 1, &large, Mode::Standard).expect("it is not received yet");
    e[0].poll();

    network.kill(1);
    (0..20).for_each(|_| e[0].poll());
    for id in posted.into_iter().chain(queued).chain(waiting.into_iter().flatten()).chain([streamed]) {
        assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    }
    assert!(
        unconcerned.iter().chain([&to_two]).all(|id| e[0].peek(*id).is_none()),
        "what does not need process 1 goes on"
    );

    // New operations with the dead process fail at once. Its whole message can be received; the one that stayed with it
    // cannot.
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

    // Process 2 still answers.
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
                // The receiver may fall asleep or not; the outcome is the same.
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
    // The lane has room for the beginning and one segment.
    let id = receive(&e[0], ALL, Some(2), 1, posted);
    send(&e[2], 0, 1, &data, Mode::Standard).expect("there is no room for all");
    e[0].poll();
    send(&e[1], 0, 1, &data, Mode::Standard).expect("there is no room for all");
    e[0].poll();
    let from_one = Pattern { context: ALL, source: Some(1), tag: None };
    let matched = e[0].probe_matched(&from_one).expect("it lives").expect("it has begun to arrive");
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

#[test]
fn what_a_group_does_together_ends_for_all_when_one_has_died() {
    let network = network();
    let e = engines(&network);
    let (small, large) = (vec![7u8; 8], vec![8u8; 60_000]);
    let mut rooms = vec![vec![0u8; 60_000]; 3];
    let [awaited, later, taken] = &mut rooms[..] else { unreachable!() };
    let offer =
        |to, tag| match e[0].send(to, &Envelope { context: TOGETHER, source: 0, tag }, out(&large), Mode::Standard) {
            Ok(Started::Pending(id)) => id,
            other => panic!("{other:?}"),
        };
    let offered = [offer(2, 1), offer(1, 2), offer(2, 4)];
    let waiting = receive(&e[0], TOGETHER, Some(2), 3, awaited);
    e[2].poll();
    // Process 2 is fetching one of the messages when it learns of the death.
    let fetched = receive(&e[2], TOGETHER, Some(0), 4, taken);
    network.kill(1);
    (0..20).for_each(|_| e.iter().step_by(2).for_each(|engine| engine.poll()));
    assert_eq!(dead(e[0].take(offered[0])).as_deref(), Some("1"), "process 2 has given it back");
    assert_eq!(dead(e[0].take(offered[1])).as_deref(), Some("1"));
    assert_eq!(dead(e[0].take(waiting)).as_deref(), Some("1"));
    assert!(
        e[0].take(offered[2]).is_some_and(|end| end.failure.is_none())
            && e[2].take(fetched).is_some_and(|end| end.failure.is_none())
    );
    // No operation begins there any more; other contexts are not affected.
    let envelope = Envelope { context: TOGETHER, source: 0, tag: 0 };
    assert!(matches!(e[0].send(2, &envelope, out(&small), Mode::Standard), Err(Failure::PeerDied(_))));
    assert!(
        dead(Some(e[0].receive_blocking(
            &Pattern { context: TOGETHER, source: Some(2), tag: None },
            room(later),
            &Unobserved
        )))
        .is_some()
    );
    assert!(send(&e[0], 2, 1, &small, Mode::Standard).is_none());
    e[2].poll();
    let id = receive(&e[2], ALL, Some(0), 1, awaited);
    assert!(e[2].take(id).is_some_and(|end| end.failure.is_none() && end.bytes == 8));
    assert_eq!(e[0].holdings(), Holdings::default());
}

/// Counts the statements of other members of a group.
#[derive(Default)]
struct Heard(AtomicU32);

impl Listener for Heard {
    fn unasked(&self, _: &Envelope) -> Option<ProgramJob> {
        None
    }

    fn told(&self, _: u32, _: Words) -> Option<ProgramJob> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[test]
fn from_the_first_sign_of_a_death_on_nothing_is_said_in_its_group_that_others_could_take_for_a_disagreement() {
    let network = network();
    let e = engines(&network);
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn Listener> = heard.clone();
    e[2].listen(TOGETHER, &listener);
    let say = || {
        e[0].say(2, TOGETHER, Words::default(), Urgency::Normal);
        e[2].poll();
    };
    say();
    assert_eq!(heard.0.load(Ordering::Relaxed), 1);
    network.kill(1);
    // Process 0 cannot send to the dead process, but has not polled for more from it. Process 2 knows nothing.
    let envelope = |source| Envelope { context: TOGETHER, source, tag: 0 };
    assert!(matches!(e[0].send(1, &envelope(0), out(&[1]), Mode::Standard), Err(Failure::PeerDied(_))));
    say();
    assert_eq!(heard.0.load(Ordering::Relaxed), 1);
    assert!(matches!(e[0].send(2, &envelope(0), out(&[1]), Mode::Standard), Err(Failure::PeerDied(_))));
    let mut word = [0; 8];
    let id = receive(&e[0], TOGETHER, Some(2), 0, &mut word);
    assert_eq!(dead(e[0].take(id)).as_deref(), Some("1"));
    e[0].end_group(TOGETHER, 0..3, 16, "process 0 called something else");
    e[2].poll();
    assert!(e[0].ended_groups().is_empty() && e[2].ended_groups().is_empty());
    // A disagreement does not hide the death.
    e[2].end_group(TOGETHER, 0..3, 16, "process 2 called something else");
    e[0].poll();
    assert!(matches!(e[0].lost_group(TOGETHER), Some(Failure::PeerDied(_))), "{:?}", e[0].lost_group(TOGETHER));
}

/// Remote counters: the operations of a layer with packets of its own. A process asks a peer to add a number, and waits
/// for the answer.
#[derive(Default)]
struct Counters {
    count: u64,
    /// The peers whose answers are awaited.
    awaited: Vec<u32>,
    ended: Vec<(u32, Result<u64, Failure>)>,
    told: Vec<String>,
}

const ADD: u8 = Chapter::Windows.kind(0);
const ADDED: u8 = Chapter::Windows.kind(1);
const GONE: u8 = Chapter::Windows.kind(2);

fn counters(engine: &Engine) -> Arc<Mutex<Counters>> {
    let counters: Arc<Mutex<Counters>> = Arc::default();
    let about = |kind, word| Meta { kind, words: [word, 0] };
    let [adding, added, told, dead] = std::array::from_fn(|_| counters.clone());
    engine.register(
        Chapter::Windows,
        vec![
            Box::new(move |actions, from, meta, _| {
                let mut counters = adding.lock().expect("no panic");
                counters.count += meta.words[0];
                actions.send(from, about(ADDED, counters.count), &[], Urgency::Normal);
                true
            }),
            Box::new(move |_, from, meta, _| {
                let mut counters = added.lock().expect("no panic");
                let Some(at) = counters.awaited.iter().position(|peer| *peer == from) else { return false };
                counters.awaited.remove(at);
                counters.ended.push((from, Ok(meta.words[0])));
                true
            }),
            Box::new(move |_, from, meta, _| {
                told.lock().expect("no panic").told.push(format!("{from} says that {} has died", meta.words[0]));
                true
            }),
        ],
    );
    engine.on_death(Box::new(move |actions, peer, failure| {
        let mut counters = dead.lock().expect("no panic");
        let lost = counters.awaited.extract_if(.., |awaited| *awaited == peer).collect::<Vec<_>>();
        counters.ended.extend(lost.into_iter().map(|peer| (peer, Err(failure.clone()))));
        (0..3)
            .filter(|other| *other != peer)
            .for_each(|other| actions.send(other, about(GONE, u64::from(peer)), &[], Urgency::Normal));
        let heard = dead.clone();
        actions.run_unlocked(Box::new(move |engine| {
            heard.lock().expect("no panic").told.push(format!("{} has heard", engine.rank()))
        }));
    }));
    counters
}

#[test]
fn another_layers_operations_end_when_it_hears_of_a_death() {
    let network = network();
    let e = engines(&network);
    let c: Vec<_> = e.iter().map(|engine| counters(engine)).collect();
    let add = |to, amount| {
        c[0].lock().expect("no panic").awaited.push(to);
        e[0].send_packet(to, Meta { kind: ADD, words: [amount, 0] }, &[], Urgency::Urgent)
            .expect("it lives as far as is known");
    };
    // The first answer is in flight when process 1 dies; the second request is never read.
    add(1, 5);
    e[1].poll();
    add(1, 7);
    add(2, 3);
    network.kill(1);
    (0..20).for_each(|_| e.iter().step_by(2).for_each(|engine| engine.poll()));
    let heard = c[0].lock().expect("no panic");
    assert_eq!(heard.awaited, []);
    assert_eq!(heard.ended.len(), 3);
    assert!(heard.ended.contains(&(1, Ok(5))) && heard.ended.contains(&(2, Ok(3))));
    let has_died =
        |end: &Result<u64, Failure>| matches!(end, Err(Failure::PeerDied(text)) if text.contains("process 1 "));
    assert!(heard.ended.iter().any(|(peer, end)| *peer == 1 && has_died(end)));
    assert_eq!(heard.told.iter().filter(|text| *text == "0 has heard").count(), 1, "{:?}", heard.told);
    assert!(heard.told.iter().any(|text| text == "2 says that 1 has died"));
    assert_eq!(c[2].lock().expect("no panic").count, 3);
}
