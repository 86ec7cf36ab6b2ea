//! Engines with two devices: processes 0 and 1 share memory, and both are connected with process 2 by sockets.

use limosa_base::segment::{self, PAGE};
use limosa_device::DeviceId;
use limosa_device::shm::{DoorbellRef, Seats, ShmDevice};
use limosa_device::sockets::SocketDevice;
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{
    Completion, Devices, Engine, Failure, Links, Mode, Needs, Options, RequestId, Started, Unobserved, View, Wait,
};
use limosa_sim::socket_devices;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Blocked calls sleep at once: only a wake-up ends them.
const OPTIONS: Options =
    Options { wait: Wait::Block, spin_ns: 0, eager_limit: 8000, unexpected_limit: 1 << 30, independent_progress: true };

/// Creates three engines. `third`: options of process 2, which the others reach through sockets.
fn engines(third: Options) -> Vec<Arc<Engine>> {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let sockets = socket_devices(3).expect("sockets");
    let start = |(rank, socket): (u32, SocketDevice)| {
        let shm = (rank < 2)
            .then(|| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true).expect("joining"));
        let doorbell = shm.as_ref().map_or_else(DoorbellRef::private, ShmDevice::doorbell);
        let mut devices = Devices::new(shm);
        let by_socket = devices.add_device(Box::new(socket));
        for peer in 0..3 {
            let device = if rank < 2 && peer < 2 { DeviceId::SHM } else { by_socket };
            assert_eq!(devices.add_peer(device, peer), peer);
        }
        let links = Links { devices, doorbell, rank, peers: 3, processes_here: 1 };
        Engine::start(links, if rank == 2 { third } else { OPTIONS }).expect("an engine")
    };
    (0..3).zip(sockets).map(start).collect()
}

fn out(data: &[u8]) -> Region {
    // SAFETY: the tests keep the data until the send is complete.
    unsafe { Region::contiguous(data.as_ptr().cast_mut(), data.len()) }
}

fn room(data: &mut [u8]) -> Region {
    // SAFETY: the tests do not touch the data until the receive is complete.
    unsafe { Region::contiguous(data.as_mut_ptr(), data.len()) }
}

fn start(engine: &Engine, to: u32, data: &[u8]) -> Option<RequestId> {
    let envelope = Envelope { context: 2, source: engine.rank() as i32, tag: 0 };
    match engine.send(to, &envelope, out(data), Mode::Standard).expect("send") {
        Started::Done => None,
        Started::Pending(id) => Some(id),
    }
}

fn send(engine: &Engine, to: u32, data: &[u8]) {
    let envelope = Envelope { context: 2, source: engine.rank() as i32, tag: 0 };
    engine.send_blocking(to, &envelope, out(data), Mode::Standard, &Unobserved).expect("send");
}

fn receive(engine: &Engine, source: Option<i32>, data: &mut [u8]) -> Completion {
    engine.receive_blocking(&Pattern { context: 2, source, tag: None }, room(data), &Unobserved)
}

#[test]
fn messages_of_all_lengths_travel_on_both_devices() {
    let e = engines(OPTIONS);
    assert_eq!((e[0].device_name(1), e[0].device_name(2), e[2].device_name(0)), ("shm", "sockets", "sockets"));
    assert!(e[0].host_address(1).is_some() && e[0].host_address(2).is_none());
    let lengths = [0, 8, 300, 4096, 5000, 8000, 8001, 100_000, 1_000_000];
    let data = |from: usize, len: usize| -> Vec<u8> { (0..len).map(|i| (i * 7 + from + len) as u8).collect() };
    std::thread::scope(|scope| {
        for me in 0..3usize {
            let e = &e;
            scope.spawn(move || {
                for len in lengths {
                    let (right, left) = ((me + 1) % 3, (me + 2) % 3);
                    let mine = data(me, len);
                    let pending = start(&e[me], right as u32, &mine);
                    let mut got = vec![0; len];
                    assert_eq!(receive(&e[me], Some(left as i32), &mut got).bytes, len as u64);
                    assert!(got == data(left, len), "{len} bytes from {left} to {me}");
                    if let Some(id) = pending {
                        e[me].block_on(&mut |view| view.is_done(id), &Unobserved).expect("not interrupted");
                        e[me].take(id);
                    }
                }
            });
        }
    });
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_blocked_receive_is_woken_by_either_device() {
    let e = engines(OPTIONS);
    std::thread::scope(|scope| {
        for from in [1, 2] {
            let e = &e;
            scope.spawn(move || {
                for i in 0..300u64 {
                    send(&e[from], 0, &i.to_ne_bytes());
                    // The next message is sent when this one was answered: process 0 sleeps repeatedly.
                    receive(&e[from], Some(0), &mut [0; 8]);
                }
            });
        }
        for _ in 0..600 {
            let mut got = [0; 8];
            let end = receive(&e[0], None, &mut got);
            send(&e[0], end.source as u32, &got);
        }
    });
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_peer_that_is_stopped_holds_up_nobody_on_the_other_device() {
    // No thread of process 2 polls.
    let e = engines(Options { independent_progress: false, ..OPTIONS });
    let data = vec![5; 4000];
    let stuck: Vec<RequestId> = (0..2000).filter_map(|_| start(&e[0], 2, &data)).collect();
    assert!(!stuck.is_empty(), "its socket is full");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..500 {
                let mut got = [0; 8];
                receive(&e[1], Some(0), &mut got);
                send(&e[1], 0, &got);
            }
        });
        for i in 0..500u64 {
            send(&e[0], 1, &i.to_ne_bytes());
            let mut got = [0; 8];
            receive(&e[0], Some(1), &mut got);
            assert_eq!(u64::from_ne_bytes(got), i);
        }
    });
    assert!(stuck.iter().any(|&id| e[0].peek(id).is_none()), "process 2 has still not looked");
    // It resumes: everything arrives.
    for _ in 0..2000 {
        let mut got = vec![0; 4000];
        let id = e[2].receive(&Pattern { context: 2, source: Some(0), tag: None }, room(&mut got));
        while e[2].test(id).is_none() {
            std::thread::yield_now();
        }
        assert!(e[2].take(id).is_some_and(|end| end.bytes == 4000) && got == data);
    }
    e[0].block_on(&mut |view| stuck.iter().all(|&id| view.is_done(id)), &Unobserved).expect("not interrupted");
    e.iter().for_each(|e| e.stop());
}

#[test]
fn a_death_on_one_device_ends_a_blocked_receive_and_leaves_the_other_device_alone() {
    let mut e = engines(OPTIONS);
    for engine in &e {
        engine.set_concerns(Box::new(|_, needs, peer| needs == Needs::AnyMember || needs == Needs::Rank(peer as i32)));
    }
    let dying = e.pop().expect("process 2");
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| receive(&e[0], Some(2), &mut [0; 8]));
        dying.stop();
        drop(dying);
        let end = blocked.join().expect("no panic");
        assert!(
            matches!(end.failure.as_deref(), Some(Failure::PeerDied(what)) if what.starts_with("process 2 ")),
            "{end:?}"
        );
    });
    std::thread::scope(|scope| {
        scope.spawn(|| send(&e[0], 1, &[9; 100_000]));
        let mut got = vec![0; 100_000];
        assert_eq!(receive(&e[1], Some(0), &mut got).failure, None);
        assert!(got == [9; 100_000]);
    });
    e.iter().for_each(|e| e.stop());
}

#[test]
fn the_helper_leaves_a_device_to_a_thread_that_polls() {
    let e = engines(Options { wait: Wait::Poll, ..OPTIONS });
    let (has_begun, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut before, mut after) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut condition = |_: &View<'_>| {
                has_begun.store(true, Ordering::Relaxed);
                ends.load(Ordering::Relaxed)
            };
            e[2].block_on(&mut condition, &Unobserved).expect("not interrupted");
        });
        while !has_begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        e[2].help_once();
        before = e[2].traffic().helped;
        for count in 1..=50 {
            send(&e[1], 2, &[0; 100]);
            while e[2].unreceived().len() < count {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        after = e[2].traffic().helped;
        ends.store(true, Ordering::Relaxed);
    });
    // The first message arrives while the doorbell still calls the helper.
    assert!(after <= before + 1, "the helper was called {} times although a thread polls", after - before);
    e.iter().for_each(|e| e.stop());
}

/// Processes 0 and 1 share memory from the start; each learns of process 2 while its engine runs.
#[test]
fn peers_that_join_later_are_reached_by_a_device_that_is_added() {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let mut sockets = socket_devices(3).expect("sockets").into_iter();
    let join = |rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true).expect("joining");
    let early: Vec<_> = (0..2).map(|rank| Engine::start(join(rank).into(), OPTIONS).expect("an engine")).collect();
    let mut before = [0];
    send(&early[0], 1, &[1]);
    assert_eq!(receive(&early[1], Some(0), &mut before).bytes, 1);
    for engine in &early {
        let device = engine.add_device(Box::new(sockets.next().expect("a socket"))).expect("watched");
        assert_eq!(engine.add_peer(device, 2), 2);
    }
    let mut devices = Devices::new(None);
    let device = devices.add_device(Box::new(sockets.next().expect("a socket")));
    (0..3).for_each(|peer| assert_eq!(devices.add_peer(device, peer), peer));
    let links = Links { devices, doorbell: DoorbellRef::private(), rank: 2, peers: 3, processes_here: 1 };
    let late = Engine::start(links, OPTIONS).expect("an engine");
    std::thread::scope(|scope| {
        for engine in &early {
            scope.spawn(|| {
                // Sleeps until the packet from the new device wakes it.
                let mut got = vec![0; 100_000];
                assert_eq!(receive(engine, Some(2), &mut got).bytes, 100_000);
                send(engine, 2, &got[..9]);
            });
        }
        (0..2).for_each(|peer| send(&late, peer, &vec![7; 100_000]));
        (0..2).for_each(|peer| assert_eq!(receive(&late, Some(peer), &mut [0; 9]).bytes, 9));
    });
    send(&early[0], 1, &[2]);
    assert_eq!(receive(&early[1], Some(0), &mut before).bytes, 1);
    assert_eq!(before, [2]);
    early.iter().chain([&late]).for_each(|engine| engine.stop());
}
