//! Several engines in one process, each with its own device over the same segment, exchanging messages.

use limosa_base::segment::{self, PAGE};
use limosa_device::shm::{Seats, ShmDevice};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Engine, Failure, Mode, Options, RequestId, Started, Unobserved, Wait};
use std::os::fd::AsFd;
use std::sync::Arc;

const OPTIONS: Options = Options {
    wait: Wait::Auto,
    spin_ns: 20_000,
    eager_limit: 16384,
    unexpected_limit: 1 << 28,
    independent_progress: true,
};

fn engines(n: u32, cross_memory: bool, options: Options) -> Vec<Arc<Engine>> {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    (0..n)
        .map(|rank| {
            let device =
                ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, n), cross_memory).expect("joining");
            Engine::start(device.into(), options).expect("an engine")
        })
        .collect()
}

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as u8
        })
        .collect()
}

fn out(data: &[u8]) -> Region {
    // SAFETY: the tests keep the data until the send is complete.
    unsafe { Region::contiguous(data.as_ptr().cast_mut(), data.len()) }
}

fn room(data: &mut [u8]) -> Region {
    // SAFETY: the tests do not touch the data until the receive is complete.
    unsafe { Region::contiguous(data.as_mut_ptr(), data.len()) }
}

fn finish(engine: &Engine, id: RequestId) -> Completion {
    engine.block_on(&mut |view| view.is_done(id), &Unobserved).expect("not interrupted");
    engine.take(id).expect("the request is done")
}

fn send(engine: &Engine, to: u32, tag: i32, data: &[u8], mode: Mode) {
    let envelope = Envelope { context: 2, source: engine.rank() as i32, tag };
    if let Started::Pending(id) = engine.send(to, &envelope, out(data), mode).expect("send") {
        assert_eq!(finish(engine, id).failure, None);
    }
}

fn receive(engine: &Engine, source: Option<i32>, tag: Option<i32>, data: &mut [u8]) -> Completion {
    let id = engine.receive(&Pattern { context: 2, source, tag }, room(data));
    finish(engine, id)
}

#[test]
fn messages_of_all_lengths_arrive_whole_with_and_without_cross_memory_attach() {
    for cross_memory in [true, false] {
        for wait in [Wait::Auto, Wait::Poll, Wait::Block] {
            let e = engines(2, cross_memory, Options { wait, ..OPTIONS });
            let lengths = [0usize, 1, 8, 40, 41, 1000, 16384, 16385, 100_000, 3_000_000];
            std::thread::scope(|scope| {
                for me in 0..2u32 {
                    let engine = &e[me as usize];
                    scope.spawn(move || {
                        for (i, &len) in lengths.iter().enumerate() {
                            for mode in [Mode::Standard, Mode::Synchronous] {
                                let data = bytes(len, i as u64);
                                let mut got = vec![0; len];
                                if me == 0 {
                                    send(engine, 1, i as i32, &data, mode);
                                    receive(engine, Some(1), Some(i as i32), &mut got);
                                } else {
                                    let end = receive(engine, None, None, &mut got);
                                    assert_eq!((end.source, end.tag, end.bytes), (0, i as i32, len as u64));
                                    send(engine, 0, i as i32, &got, mode);
                                }
                                assert!(got == data, "length {len}");
                            }
                        }
                    });
                }
            });
            e.iter().for_each(|e| e.stop());
        }
    }
}

#[test]
fn crowds_of_messages_stay_in_order_through_full_lanes() {
    for cross_memory in [true, false] {
        let e = engines(4, cross_memory, OPTIONS);
        std::thread::scope(|scope| {
            for me in 0..4u32 {
                let engine = &e[me as usize];
                scope.spawn(move || {
                    const COUNT: usize = 600;
                    let len = |from: u32, i: usize| (i * 7919 + from as usize * 13) % 20_000;
                    let mut sends = Vec::new();
                    let mut data = Vec::new();
                    for to in (0..4).filter(|&to| to != me) {
                        for i in 0..COUNT {
                            data.push((to, bytes(len(me, i), i as u64)));
                        }
                    }
                    for (to, d) in &data {
                        let envelope = Envelope { context: 2, source: me as i32, tag: 5 };
                        if let Started::Pending(id) = engine.send(*to, &envelope, out(d), Mode::Standard).expect("send")
                        {
                            sends.push(id);
                        }
                    }
                    let mut next = [0usize; 4];
                    for _ in 0..3 * COUNT {
                        let mut got = vec![0; 20_000];
                        let end = receive(engine, None, Some(5), &mut got);
                        let from = end.source as usize;
                        let i = next[from];
                        next[from] += 1;
                        assert!(
                            got[..end.bytes as usize] == bytes(len(from as u32, i), i as u64)[..],
                            "message {i} from {from}"
                        );
                    }
                    for id in sends {
                        finish(engine, id);
                    }
                });
            }
        });
        e.iter().for_each(|e| e.stop());
    }
}

#[test]
fn a_transfer_completes_while_its_receiver_computes() {
    for cross_memory in [true, false] {
        let e = engines(2, cross_memory, OPTIONS);
        let data = bytes(4 << 20, 1);
        let mut got = vec![0; data.len()];
        let id = e[1].receive(&Pattern { context: 2, source: Some(0), tag: Some(0) }, room(&mut got));
        // Rank 1 does not call its engine until the sender has its memory back: only its helper thread can do the work.
        send(&e[0], 1, 0, &data, Mode::Standard);
        let end = finish(&e[1], id);
        assert_eq!((end.source, end.bytes, end.failure), (0, data.len() as u64, None));
        assert!(got == data);
        e.iter().for_each(|e| e.stop());
    }
}

#[test]
fn a_transfer_completes_while_its_sender_computes() {
    for cross_memory in [true, false] {
        let e = engines(2, cross_memory, OPTIONS);
        let data = bytes(4 << 20, 1);
        let envelope = Envelope { context: 2, source: 0, tag: 0 };
        let Started::Pending(id) = e[0].send(1, &envelope, out(&data), Mode::Standard).expect("send") else {
            panic!("a large send cannot be done at once");
        };
        let mut got = vec![0; data.len()];
        receive(&e[1], Some(0), Some(0), &mut got);
        assert!(got == data);
        finish(&e[0], id);
        e.iter().for_each(|e| e.stop());
    }
}

#[test]
fn a_flood_of_small_messages_to_a_computing_receiver_does_not_stop_the_sender() {
    let e = engines(2, true, OPTIONS);
    for i in 0..5000u64 {
        send(&e[0], 1, 0, &i.to_ne_bytes(), Mode::Standard);
    }
    for i in 0..5000u64 {
        let mut got = [0; 8];
        receive(&e[1], Some(0), Some(0), &mut got);
        assert_eq!(u64::from_ne_bytes(got), i);
    }
    e.iter().for_each(|e| e.stop());
}

#[test]
fn too_long_messages_are_cut_and_said_to_be() {
    let e = engines(2, true, OPTIONS);
    for len in [100usize, 50_000] {
        let data = bytes(len, 3);
        std::thread::scope(|scope| {
            scope.spawn(|| send(&e[0], 1, 0, &data, Mode::Standard));
            let mut got = vec![0; len / 2];
            let end = receive(&e[1], Some(0), Some(0), &mut got);
            assert_eq!(end.failure.as_deref(), Some(&Failure::Truncated { sent: len as u64, room: len as u64 / 2 }));
            assert!(got == data[..len / 2]);
        });
    }
    e.iter().for_each(|e| e.stop());
}

#[test]
fn operations_can_be_cancelled_until_they_are_matched() {
    let e = engines(2, true, OPTIONS);
    let mut got = vec![0; 8];
    let id = e[0].receive(&Pattern { context: 2, source: Some(1), tag: Some(0) }, room(&mut got));
    e[0].cancel(id);
    assert!(finish(&e[0], id).cancelled);

    let envelope = Envelope { context: 2, source: 0, tag: 0 };
    for (len, mode) in [(1 << 20, Mode::Standard), (100, Mode::Synchronous)] {
        let data = bytes(len, 1);
        let Started::Pending(id) = e[0].send(1, &envelope, out(&data), mode).expect("send") else { panic!("too fast") };
        e[0].cancel(id);
        // The receiver is not in the library; its helper thread returns the message.
        assert!(finish(&e[0], id).cancelled);
        assert_eq!(e[1].unexpected_bytes(), 0, "a message that was given back is not held");
    }
    assert!(e[1].probe(&Pattern { context: 2, source: None, tag: None }).expect("probe").is_none());
    e.iter().for_each(|e| e.stop());
}

#[test]
fn threads_of_one_process_wait_for_different_messages() {
    let e = engines(2, true, OPTIONS);
    std::thread::scope(|scope| {
        for tag in 0..4 {
            let e = &e;
            scope.spawn(move || {
                for i in 0..500u64 {
                    let mut got = [0; 8];
                    receive(&e[1], Some(0), Some(tag), &mut got);
                    assert_eq!(u64::from_ne_bytes(got), i);
                    send(&e[1], 0, tag, &got, Mode::Standard);
                }
            });
            scope.spawn(move || {
                for i in 0..500u64 {
                    let mut got = [0; 8];
                    send(&e[0], 1, tag, &i.to_ne_bytes(), Mode::Standard);
                    receive(&e[0], Some(1), Some(tag), &mut got);
                    assert_eq!(u64::from_ne_bytes(got), i);
                }
            });
        }
    });
    e.iter().for_each(|e| e.stop());
}

#[test]
fn messages_to_oneself_arrive() {
    let e = engines(1, true, OPTIONS);
    for len in [0usize, 8, 100_000] {
        let data = bytes(len, 9);
        let mut got = vec![0; len];
        let id = e[0].receive(&Pattern { context: 2, source: Some(0), tag: Some(1) }, room(&mut got));
        send(&e[0], 0, 1, &data, Mode::Synchronous);
        finish(&e[0], id);
        assert!(got == data);

        let envelope = Envelope { context: 2, source: 0, tag: 1 };
        let started = e[0].send(0, &envelope, out(&data), Mode::Standard).expect("send");
        let mut again = vec![0; len];
        assert_eq!(receive(&e[0], None, None, &mut again).bytes, len as u64);
        if let Started::Pending(id) = started {
            finish(&e[0], id);
        }
        assert!(again == data);
    }
    e[0].stop();
}

#[test]
fn messages_in_parts_reach_receives_posted_before_between_and_after_and_probes() {
    let all = engines(2, true, OPTIONS);
    let (a, b) = (all[0].clone(), all[1].clone());
    let lengths = [4096usize, 4097, 8192, 12_000, 16_384];
    let sender = std::thread::spawn(move || {
        for round in 0..300u64 {
            for (tag, &len) in lengths.iter().enumerate() {
                send(&a, 1, tag as i32, &bytes(len, round * 10 + tag as u64), Mode::Standard);
            }
            send(&a, 1, 99, &bytes(5000, round), Mode::Synchronous);
        }
    });
    for round in 0..300u64 {
        let order: Vec<usize> = (0..lengths.len()).map(|i| (i * 3 + round as usize) % lengths.len()).collect();
        for &tag in &order {
            let pattern = Pattern { context: 2, source: Some(0), tag: Some(tag as i32) };
            // The middle message gets a buffer that is too short for it.
            let room_for = if tag == 2 { 6000 } else { lengths[tag] };
            let mut data = vec![0u8; room_for];
            let end = match (round + tag as u64) % 3 {
                0 => receive(&b, Some(0), Some(tag as i32), &mut data),
                1 => {
                    assert_eq!(b.block_on_probe(&pattern, &Unobserved).expect("a message").bytes, lengths[tag] as u64);
                    let matched = b.probe_matched(&pattern).expect("all live").expect("it was probed");
                    let id = b.receive_matched(matched, room(&mut data));
                    finish(&b, id)
                }
                _ => b.receive_blocking(&pattern, room(&mut data), &Unobserved),
            };
            assert_eq!(data, bytes(lengths[tag], round * 10 + tag as u64)[..room_for]);
            assert_eq!(end.failure.is_some(), tag == 2);
        }
        let mut data = vec![0u8; 5000];
        receive(&b, Some(0), Some(99), &mut data);
        assert_eq!(data, bytes(5000, round));
    }
    sender.join().expect("the sender");
    all.iter().for_each(|e| e.stop());
}

/// Starts `count` sends of `data` with this tag. Returns the incomplete ones.
fn flood(engine: &Engine, to: u32, tag: i32, data: &[u8], count: usize) -> Vec<RequestId> {
    let envelope = Envelope { context: 2, source: engine.rank() as i32, tag };
    let start = |_| match engine.send(to, &envelope, out(data), Mode::Standard).expect("send") {
        Started::Pending(id) => Some(id),
        Started::Done => None,
    };
    (0..count).filter_map(start).collect()
}

const LIMIT: usize = 1 << 20;
/// Bytes that may be taken beyond the limit: one burst of packets.
const BURST: usize = 1 << 17;

#[test]
fn a_flood_to_a_process_that_never_receives_stops_at_the_limit_and_arrives_later() {
    let e = engines(2, true, Options { unexpected_limit: LIMIT, ..OPTIONS });
    let data = bytes(1000, 5);
    let count = 4 * LIMIT / data.len();
    let pending = flood(&e[0], 1, 0, &data, count);
    // No thread of the receiver enters the library; its helper may take packets.
    for _ in 0..200 {
        e[0].poll();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(e[1].unexpected_bytes() < LIMIT + BURST, "{} bytes are held", e[1].unexpected_bytes());
    }
    assert!(pending.iter().any(|id| e[0].peek(*id).is_none()), "the sender was not slowed down");
    for _ in 0..count {
        let mut got = vec![0; data.len()];
        receive(&e[1], Some(0), Some(0), &mut got);
        assert_eq!(got, data);
    }
    for id in pending {
        finish(&e[0], id);
    }
    assert_eq!(e[1].unexpected_bytes(), 0);
    e.iter().for_each(|e| e.stop());
}

#[test]
fn what_is_asked_for_comes_from_behind_a_flood() {
    let e = engines(2, true, Options { unexpected_limit: LIMIT, ..OPTIONS });
    let data = bytes(1000, 5);
    let count = 4 * LIMIT / data.len();
    let mut pending = Vec::new();
    for ask in 0..4 {
        pending.extend(flood(&e[0], 1, 0, &data, count));
        pending.extend(flood(&e[0], 1, 1, &data, 1));
        let (pattern, mut got) = (Pattern { context: 2, source: None, tag: Some(1) }, vec![0; data.len()]);
        match ask {
            0 => drop(receive(&e[1], None, Some(1), &mut got)),
            1 => drop(e[1].receive_blocking(&pattern, room(&mut got), &Unobserved)),
            2 => {
                let id = e[1].receive(&pattern, room(&mut got));
                while e[1].test(id).is_none() {
                    std::thread::yield_now();
                }
                finish(&e[1], id);
            }
            _ => {
                while e[1].probe(&pattern).expect("probe").is_none() {
                    std::thread::yield_now();
                }
                receive(&e[1], None, Some(1), &mut got);
            }
        }
        assert_eq!(got, data);
    }
    for _ in 0..4 * count {
        let mut got = vec![0; data.len()];
        receive(&e[1], None, Some(0), &mut got);
    }
    for id in pending {
        finish(&e[0], id);
    }
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_flood_goes_on_when_some_of_it_has_been_received() {
    let e = engines(2, true, Options { unexpected_limit: LIMIT, ..OPTIONS });
    let data = bytes(1000, 5);
    let count = 4 * LIMIT / data.len();
    let pending = flood(&e[0], 1, 0, &data, count);
    let mut left = count;
    while e[1].unexpected_bytes() <= LIMIT {
        std::thread::yield_now();
    }
    // The receiver leaves later packets on the lane, which the sender fills.
    e[1].help_once();
    e[0].poll();
    let mut held = e[1].unexpected_bytes();
    loop {
        // Such a receive polls for nothing: it takes a held message.
        let mut got = vec![0; data.len()];
        e[1].receive_blocking(&Pattern { context: 2, source: Some(0), tag: Some(0) }, room(&mut got), &Unobserved);
        left -= 1;
        let now = e[1].unexpected_bytes();
        if now >= held {
            break;
        }
        assert!(now > LIMIT / 4, "only {now} bytes are held, and nothing more is taken");
        held = now;
    }
    for _ in 0..left {
        let mut got = vec![0; data.len()];
        receive(&e[1], Some(0), Some(0), &mut got);
    }
    for id in pending {
        finish(&e[0], id);
    }
    e.iter().for_each(|e| e.stop());
}
