//! Tests of the engine's threads, with access to its internals.

use super::leaving::LINGER;
use super::*;
use crate::memory::Region;
use crate::wire::{self, Offer};
use limosa_base::segment::{self, PAGE};
use limosa_device::shm::Seats;
use limosa_device::{Data, Device, Sent, Urgency};
use proptest::prelude::*;
use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;

const OPTIONS: Options = Options {
    wait: Wait::Auto,
    spin_ns: 20_000,
    eager_limit: 16384,
    unexpected_limit: 1 << 28,
    independent_progress: true,
};

fn device(file: &OwnedFd, rank: u32, n: u32) -> ShmDevice {
    ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, n), true).expect("joining")
}

fn engine(file: &OwnedFd, rank: u32, n: u32, options: Options) -> Arc<Engine> {
    Engine::start(device(file, rank, n).into(), options).expect("an engine")
}

fn file() -> OwnedFd {
    segment::create(c"limosa-test", PAGE as u64).expect("a memfd")
}

fn engines(n: u32, options: Options) -> Vec<Arc<Engine>> {
    let file = file();
    (0..n).map(|rank| engine(&file, rank, n, options)).collect()
}

#[test]
fn a_sooner_alarm_wins_over_a_later_one() {
    let e = engines(1, OPTIONS);
    let mut core = e[0].core.lock();
    // The attendant has asked to be called again many times: the next reminder comes late.
    core.reminders = u32::MAX;
    e[0].set_reminder(&mut core);
    assert!(e[0].alarm.remaining() > LINGER, "the reminder is the only alarm");
    assert!(e[0].set_alarm_soon(&mut core));
    assert!(e[0].alarm.remaining() <= LINGER, "an offer has been made since");
    e[0].set_reminder(&mut core);
    assert!(e[0].alarm.remaining() <= LINGER, "a reminder does not put off the alarm for an offer");
    drop(core);
    e[0].stop();
}

#[test]
fn a_new_reminder_does_not_wait_for_an_old_one() {
    let e = engines(1, OPTIONS);
    let mut core = e[0].core.lock();
    core.reminders = u32::MAX;
    e[0].set_reminder(&mut core);
    drop(core);
    let late = e[0].alarm.remaining();
    e[0].remind();
    assert!(e[0].alarm.remaining() * 2 < late);
    e[0].stop();
}

#[test]
fn a_panic_in_a_thread_of_the_engine_is_reported() {
    static REPORT: Mutex<Option<mpsc::Sender<String>>> = Mutex::new(None);
    let (report, reported) = mpsc::channel();
    *REPORT.lock() = Some(report);
    let e = engines(2, OPTIONS);
    e[1].set_panic_hook(|reason| {
        REPORT.lock().as_ref().expect("set above").send(reason.to_owned()).expect("the test waits")
    });
    let id = e[1].receive(&Pattern { context: 2, source: None, tag: None }, Region::empty());
    e[1].then(id, Box::new(|_, _| panic!("too much")));
    let _ = e[0].send(1, &Envelope { context: 2, source: 0, tag: 0 }, Region::empty(), Mode::Standard).expect("send");
    // No thread is in engine 1 except its own.
    let reason = reported.recv().expect("a report");
    assert!(reason.contains("too much"), "{reason}");
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_lazy_continuation_runs_at_the_next_visit_and_is_no_reason_to_serve_all_traffic() {
    let e = engines(2, Options { independent_progress: false, ..OPTIONS });
    let (done, finished) = mpsc::channel();
    let id = e[1].receive(&Pattern { context: 2, source: None, tag: None }, Region::empty());
    e[1].then_lazily(id, Box::new(move |_, _| done.send(()).expect("the test waits")));
    assert!(e[1].doorbell.is(DoorbellState::Away));
    let _ = e[0].send(1, &Envelope { context: 2, source: 0, tag: 0 }, Region::empty(), Mode::Standard).expect("send");
    assert!(finished.try_recv().is_err());
    e[1].poll();
    assert!(finished.try_recv().is_ok());
}

#[test]
fn more_messages_than_one_look_takes_are_all_received_while_nobody_is_in_the_library() {
    const MANY: usize = 100;
    let e = engines(2, OPTIONS);
    let (done, finished) = mpsc::channel();
    for _ in 0..MANY {
        let id = e[1].receive(&Pattern { context: 2, source: None, tag: None }, Region::empty());
        let done = done.clone();
        e[1].then(id, Box::new(move |_, _| done.send(()).expect("the test waits")));
    }
    // All of them arrive before the alarm thread polls.
    let held = e[1].core.lock();
    for _ in 0..MANY {
        let _ =
            e[0].send(1, &Envelope { context: 2, source: 0, tag: 0 }, Region::empty(), Mode::Standard).expect("send");
    }
    drop(held);
    for k in 0..MANY {
        let received = finished.recv_timeout(std::time::Duration::from_secs(300));
        assert!(received.is_ok(), "{k} of {MANY} messages were received");
    }
    e.iter().for_each(|e| e.stop());
}

/// Process 1, which sends packets that no engine sends.
struct Rogue(ShmDevice);

impl Rogue {
    /// Creates a rogue peer beside the engine of process 0, of `n` processes.
    fn with_victim(n: u32) -> (Rogue, Arc<Engine>) {
        let file = file();
        let victim = engine(&file, 0, n, OPTIONS);
        (Rogue(device(&file, 1, n)), victim)
    }

    fn send(&mut self, meta: Meta, data: &[u8]) {
        assert_eq!(self.0.send(0, &meta, Data::Bytes(data), Urgency::Normal).expect("send"), Sent::Done);
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn packets_that_make_no_sense_are_errors() {
    let envelope = Envelope { context: 2, source: 1, tag: 0 };
    let offer = Offer { send: 1, len: 1 << 30, address: 8, pieces: 1, joint: 0 };
    let about = |kind| wire::about(kind, 1 << 32, 0);
    let cases: Vec<(&str, Meta, Vec<u8>)> = vec![
        ("an unknown kind", wire::about(200, 0, 0), vec![]),
        ("a negative rank", wire::enveloped(wire::EAGER, &Envelope { source: -1, ..envelope }), vec![1]),
        ("a negative tag", wire::enveloped(wire::EAGER, &Envelope { tag: -1, ..envelope }), vec![1]),
        ("no send id", wire::enveloped(wire::EAGER_SYNC, &envelope), vec![1; 7]),
        ("parts of nothing", wire::enveloped(wire::BEGIN, &envelope), words(&[0])),
        ("parts of too much", wire::enveloped(wire::BEGIN, &envelope), words(&[1 << 40])),
        ("a part without a beginning", wire::about(wire::PART, 0, 0), vec![1]),
        ("half an offer", wire::enveloped(wire::OFFER, &envelope), vec![1; 39]),
        (
            "too many pieces",
            wire::enveloped(wire::OFFER, &envelope),
            Offer { pieces: u64::MAX, ..offer }.encode().to_vec(),
        ),
        (
            "more pieces than bytes",
            wire::enveloped(wire::OFFER, &envelope),
            Offer { len: 2, pieces: 3, ..offer }.encode().to_vec(),
        ),
        ("a stream without a receive", about(wire::STREAM), vec![1]),
        ("no length", about(wire::ACCEPT), vec![]),
        ("an unknown send, accepted", about(wire::ACCEPT), words(&[8])),
        ("an unknown send, done", about(wire::DONE), vec![]),
        ("an unknown send, given back", wire::about(wire::RECALLED, 1 << 32, 1), vec![]),
        ("an unknown receive, written", about(wire::WRITTEN), vec![]),
        ("an end of no class", Meta { kind: wire::END_GROUP, words: [3, u64::MAX] }, vec![b'x']),
        ("an end in no words", Meta { kind: wire::END_GROUP, words: [3, 1] }, vec![0xff]),
        ("an end in too many words", Meta { kind: wire::END_GROUP, words: [3, 1] }, vec![b'x'; wire::MAX_TEXT + 1]),
    ];
    for (what, meta, data) in cases {
        let (mut rogue, victim) = Rogue::with_victim(2);
        rogue.send(meta, &data);
        let end =
            victim.receive_blocking(&Pattern { context: 2, source: None, tag: None }, Region::empty(), &Unobserved);
        let failure = end.failure.unwrap_or_else(|| panic!("{what}: taken for a message")).to_string();
        assert!(failure.contains(&format!("kind {}", meta.kind)), "{what}: {failure}");
        victim.stop();
    }
}

#[test]
fn no_peer_ends_a_send_to_another() {
    let (mut rogue, victim) = Rogue::with_victim(3);
    let data = [0u8; 8];
    // SAFETY: the data stay until the end of the test.
    let region = unsafe { Region::contiguous(data.as_ptr().cast_mut(), data.len()) };
    let envelope = Envelope { context: 2, source: 0, tag: 0 };
    let Ok(Started::Pending(id)) = victim.send(2, &envelope, region, Mode::Synchronous) else {
        panic!("it has no receive")
    };
    rogue.send(wire::about(wire::DONE, id.to_wire(), 0), &[]);
    victim.block_on(&mut |view| view.is_broken() || view.is_done(id), &Unobserved).expect("not interrupted");
    let end = victim.take(id).expect("it has ended");
    assert!(end.failure.is_some(), "the send counts as received");
    victim.stop();
}

/// Numbers in packets: small ones, ids of the first requests, and very large ones.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..8,
        (1u64..3, 0u64..6).prop_map(|(generation, index)| generation << 32 | index),
        Just(100_000),
        (0u32..64).prop_map(|bits| u64::MAX >> bits)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_packet_is_a_message_or_an_error(
        packets in prop::collection::vec(
            (0u8..14, number(), number(), prop::collection::vec(number(), 0..6), 0usize..3),
            1..30,
        ),
    ) {
        let (mut rogue, victim) = Rogue::with_victim(2);
        // The packets may write to the memory as long as the engine lives, which is longer than this function runs.
        let memory = Box::leak(vec![0u8; 200_000].into_boxed_slice()).as_mut_ptr();
        // SAFETY: all regions lie in the memory, do not overlap, and have no other user.
        let region = |at, len| unsafe { Region::contiguous(memory.add(at), len) };
        let pattern = |tag| Pattern { context: 2, source: None, tag };
        let _ = (victim.receive(&pattern(Some(1)), region(0, 10)), victim.receive(&pattern(None), region(10, 90_000)));
        let envelope = Envelope { context: 2, source: 0, tag: 0 };
        let _ = victim.send(1, &envelope, region(100_000, 8), Mode::Synchronous).expect("send");
        let _ = victim.send(1, &envelope, region(110_000, 90_000), Mode::Standard).expect("send");
        for (kind, first, second, data, cut) in packets {
            let data = words(&data);
            rogue.send(Meta { kind, words: [first, second] }, &data[..data.len().saturating_sub(cut)]);
            victim.poll();
            let _ = victim.probe(&pattern(None));
        }
        victim.stop();
    }
}

#[test]
fn packets_of_other_layers_reach_their_handlers_in_order_and_are_answered() {
    const ASK: u8 = Chapter::Windows.kind(0);
    const ANSWER: u8 = Chapter::Windows.kind(1);
    const COUNT: u64 = 1000;
    let e = engines(2, OPTIONS);
    let (told, answers) = mpsc::channel();
    e[1].register(
        Chapter::Windows,
        vec![Box::new(|actions, from, meta, data| {
            actions.send(from, Meta { kind: ANSWER, words: [meta.words[0], data.len() as u64] }, data, Urgency::Urgent);
            true
        })],
    );
    let mut handled = 0u64;
    e[0].register(
        Chapter::Windows,
        vec![
            Box::new(|_, _, _, _| false),
            Box::new(move |actions, from, meta, data| {
                let (told, seen) = (told.clone(), (handled, from, meta.words, data.to_vec()));
                handled += 1;
                actions.run_unlocked(Box::new(move |engine| told.send((engine.rank(), seen)).expect("the test waits")));
                true
            }),
        ],
    );
    for i in 0..COUNT {
        e[0].send_packet(1, Meta { kind: ASK, words: [i, 0] }, &i.to_ne_bytes()[..(i % 9) as usize], Urgency::Urgent)
            .expect("send");
    }
    // Only the helpers of both processes are in the library. Several threads may have handled packets, and their
    // unlocked work has no defined order.
    let mut answers: Vec<_> = (0..COUNT).map(|_| answers.recv().expect("an answer")).collect();
    answers.sort_by_key(|(_, (handled, ..))| *handled);
    for (i, (rank, (handled, from, words, data))) in (0..COUNT).zip(answers) {
        assert_eq!((rank, handled, from, words), (0, i, 1, [i, i % 9]));
        assert_eq!(data, i.to_ne_bytes()[..(i % 9) as usize]);
    }
    e.iter().for_each(|e| e.stop());
}

#[test]
fn what_is_under_way_in_a_group_whose_members_disagree_ends_everywhere() {
    const GROUP: u64 = 3;
    let e = engines(3, OPTIONS);
    let big = vec![0u8; 1 << 20];
    // SAFETY: the data stay until the end of the test.
    let region = || unsafe { Region::contiguous(big.as_ptr().cast_mut(), big.len()) };
    let pattern = |context| Pattern { context, source: Some(2), tag: Some(5) };
    let envelope = |context, source| Envelope { context, source, tag: 7 };
    let lost = e[1].receive(&pattern(GROUP), Region::empty());
    let other = e[1].receive(&pattern(GROUP + 1), Region::empty());
    let Ok(Started::Pending(sent)) = e[1].send(0, &envelope(GROUP, 1), region(), Mode::Standard) else {
        panic!("no receive takes so much")
    };
    // An unexpected message of an ended group cannot be received.
    let _ =
        e[2].send(1, &Envelope { context: GROUP, source: 2, tag: 9 }, Region::empty(), Mode::Standard).expect("send");
    let text = "rank 0 called one thing, rank 1 another ü".repeat(20);
    e[0].end_group(GROUP, 0..3, 17, &text);
    e[0].end_group(GROUP, 0..3, 18, "known");
    let failure = |failure: Option<Box<Failure>>| match failure.as_deref() {
        Some(Failure::Disagreement { class: 17, detail }) => {
            assert!(text.starts_with(detail) && detail.len() > wire::MAX_TEXT - 4);
        }
        failure => panic!("{failure:?}"),
    };
    for id in [lost, sent] {
        e[1].block_on(&mut |view| view.is_done(id), &Unobserved).expect("not interrupted");
        failure(e[1].take(id).expect("it has ended").failure);
    }
    let unreceived = Pattern { context: GROUP, source: Some(2), tag: Some(9) };
    failure(e[1].receive_blocking(&unreceived, Region::empty(), &Unobserved).failure);
    failure(e[0].send(1, &envelope(GROUP, 0), Region::empty(), Mode::Standard).err().map(Box::new));
    assert!(e[1].is_impaired() && e[1].lost_group(GROUP).is_some() && e[1].lost_group(GROUP + 2).is_none());
    // Other contexts are not affected.
    let _ = e[2]
        .send(1, &Envelope { context: GROUP + 1, source: 2, tag: 5 }, Region::empty(), Mode::Standard)
        .expect("send");
    e[1].block_on(&mut |view| view.is_done(other), &Unobserved).expect("not interrupted");
    assert_eq!(e[1].take(other).expect("it has ended").failure, None);
    e.iter().for_each(|e| e.stop());
}

#[test]
fn who_has_left_a_group_that_disagrees_is_not_waited_for() {
    const GROUP: u64 = 3;
    let e = engines(2, OPTIONS);
    let big = vec![0u8; 1 << 20];
    // SAFETY: the data stay until the end of the test.
    let region = || unsafe { Region::contiguous(big.as_ptr().cast_mut(), big.len()) };
    let send = |context| match e[1].send(0, &Envelope { context, source: 1, tag: 7 }, region(), Mode::Standard) {
        Ok(Started::Pending(id)) => id,
        _ => panic!("no receive takes so much"),
    };
    let [first, other, second] = [GROUP, GROUP + 1, GROUP + 2].map(send);
    e[0].stop();
    // It learns of one end after the leaving process has left, and of the second end before.
    e[1].end_group(GROUP, 1..2, 17, "before");
    e[0].say_farewell(&[0, 1]);
    for (id, text) in [(first, "before"), (second, "after")] {
        e[1].block_on(&mut |view| text == "after" || view.is_done(id), &Unobserved).expect("not interrupted");
        if text == "after" {
            e[1].end_group(GROUP + 2, 1..2, 17, text);
        }
        let failure = e[1].take(id).expect("it has ended").failure;
        assert!(matches!(failure.as_deref(), Some(Failure::Disagreement { detail, .. }) if detail == text));
    }
    assert!(e[1].take(other).is_none(), "that group does not disagree");
    assert_eq!(e[1].ended_groups(), [GROUP, GROUP + 2]);
    e[1].stop();
}

/// Runs a function before a thread sleeps.
struct BeforeSleep<F>(F);

impl<F: Fn()> Observer for BeforeSleep<F> {
    fn blocked(&self) {
        (self.0)();
    }

    fn resumed(&self) {}
}

#[test]
fn a_thread_that_is_late_to_sleep_does_not_miss_what_another_one_has_taken_for_it() {
    let e = engines(2, Options { spin_ns: 0, ..OPTIONS });
    let receive = |tag, observer: &dyn Observer| {
        let pattern = Pattern { context: 2, source: Some(0), tag: Some(tag) };
        assert_eq!(e[1].receive_blocking(&pattern, Region::empty(), observer).failure, None);
    };
    let send = |tag| {
        let envelope = Envelope { context: 2, source: 0, tag };
        let _ = e[0].send(1, &envelope, Region::empty(), Mode::Standard).expect("send");
    };
    let (start, started) = mpsc::channel();
    let (lie_down, lies_down) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let in_time = std::thread::scope(|scope| {
        let (receive, send) = (&receive, &send);
        scope.spawn(move || {
            let news = std::cell::Cell::new(Some((start, lies_down)));
            // The message arrives when this thread has decided to sleep; the second thread takes it and sleeps, too.
            let observer = BeforeSleep(|| {
                if let Some((start, lies_down)) = news.take() {
                    send(1);
                    start.send(()).expect("the second thread waits");
                    lies_down.recv().expect("it is going to sleep");
                }
            });
            receive(1, &observer);
            end.send(()).expect("the test waits");
        });
        scope.spawn(move || {
            started.recv().expect("the first thread is going to sleep");
            let observer = BeforeSleep(|| {
                // The first thread receives once.
                let _ = lie_down.send(());
            });
            receive(2, &observer);
        });
        let in_time = ended.recv_timeout(Duration::from_secs(300)).is_ok();
        send(2);
        in_time
    });
    assert!(in_time, "the first thread has slept until the next message");
    e.iter().for_each(|e| e.stop());
}

/// Counts waits, and reports each wake-up without progress.
struct FruitlessWakeUps(Cell<u32>, mpsc::Sender<()>);

impl Observer for FruitlessWakeUps {
    fn blocked(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn resumed(&self) {}

    fn woken_for_nothing(&self) {
        // The receiver is gone after the last report.
        let _ = self.1.send(());
    }
}

#[test]
fn a_thread_that_is_woken_in_vain_again_and_again_shows_one_wait() {
    let e = engines(2, OPTIONS);
    let (look, looked) = mpsc::channel();
    std::thread::scope(|scope| {
        let e = &e;
        let waiting = scope.spawn(move || {
            let observer = FruitlessWakeUps(Cell::new(0), look);
            let pattern = Pattern { context: 2, source: Some(0), tag: Some(1) };
            assert_eq!(e[1].receive_blocking(&pattern, Region::empty(), &observer).failure, None);
            observer.0.get()
        });
        for _ in 0..3 {
            // A ring before the thread sleeps is no wake-up.
            while looked.recv_timeout(Duration::from_millis(10)).is_err() {
                e[1].doorbell.ring(true);
            }
        }
        let envelope = Envelope { context: 2, source: 0, tag: 1 };
        let _ = e[0].send(1, &envelope, Region::empty(), Mode::Standard).expect("send");
        assert_eq!(waiting.join().expect("no panic"), 1);
    });
    e.iter().for_each(|e| e.stop());
}

/// Puts process 1 into the state in which one thread sleeps and another polls.
fn beside_a_sleeper(awaited: sleepers::WaitReason) -> Vec<Arc<Engine>> {
    let e = engines(2, OPTIONS);
    let mut core = e[1].core.lock();
    core.sleepers = 1;
    core.state.sleep_conditions.add(awaited);
    e[1].doorbell.set(DoorbellState::Asleep);
    e[1].delegate_polling(&core);
    drop(core);
    e
}

/// Lets the polling thread of process 1 take a message. Returns whether the sleeping thread is woken.
fn arrives(e: &[Arc<Engine>], tag: i32) -> bool {
    let envelope = Envelope { context: 2, source: 0, tag };
    let _ = e[0].send(1, &envelope, Region::empty(), Mode::Standard).expect("send");
    let mut core = e[1].core.lock();
    assert!(e[1].progress(&mut core), "the message is there");
    core.state.completed
}

#[test]
fn a_thread_that_sleeps_in_a_probe_is_woken_for_its_message_only() {
    let e = beside_a_sleeper(sleepers::WaitReason::Message(Pattern { context: 2, source: None, tag: Some(7) }));
    assert!(!arrives(&e, 6));
    assert!(arrives(&e, 7));
    assert_eq!(e[1].rings(), 0);
    e[1].core.lock().sleepers = 0;
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_thread_that_waits_for_what_shows_in_shared_memory_is_woken_for_that_only() {
    let e = beside_a_sleeper(sleepers::WaitReason::News);
    assert!(!arrives(&e, 6));
    assert_eq!(e[1].rings(), 0);
    e[0].expect_host_memory().ring(1);
    assert_eq!(e[1].rings(), 1);
    e[1].core.lock().sleepers = 0;
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_packet_without_a_handler_is_an_error_that_names_the_kind() {
    let e = engines(2, OPTIONS);
    e[1].register(Chapter::Files, vec![Box::new(|_, _, _, _| false)]);
    e[0].send_packet(1, Meta { kind: Chapter::Control.kind(3), words: [0; 2] }, &[], Urgency::Normal).expect("send");
    let pattern = Pattern { context: 2, source: None, tag: None };
    let failure = e[1].receive_blocking(&pattern, Region::empty(), &Unobserved).failure.expect("an error");
    assert_eq!(
        failure.to_string(),
        "received a packet of unknown kind 99 from process 0; do the processes run different versions of Limosa?"
    );
    e.iter().for_each(|e| e.stop());

    let e = engines(2, OPTIONS);
    e[1].register(Chapter::Files, vec![Box::new(|_, _, _, _| false)]);
    e[0].send_packet(1, Meta { kind: Chapter::Files.kind(0), words: [0; 2] }, &[], Urgency::Normal).expect("send");
    let failure = e[1].receive_blocking(&pattern, Region::empty(), &Unobserved).failure.expect("an error");
    assert_eq!(
        failure.to_string(),
        "received an invalid packet of kind 64 from process 0; do the processes run different versions of Limosa?"
    );
    e.iter().for_each(|e| e.stop());
}
