//! Several worlds in one process: ranks that are threads, jobs beside each other, users that come and go.

use super::*;
use crate::comm::Comm;
use crate::consts::{MPI_ANY_SOURCE, MPI_ERR_PROC_ABORTED};
use crate::p2p::{self, SendMode};
use limosa_base::segment::{self, PAGE};
use limosa_p2p::Unobserved;
use limosa_p2p::memory::Region;
use limosa_sim::{Conditions, Network};
use std::os::fd::AsFd;

const OPTIONS: Options = Options {
    wait: Wait::Auto,
    spin_ns: 20_000,
    eager_limit: 8192,
    unexpected_limit: 1 << 20,
    independent_progress: true,
};

/// Returns the worlds of a job of `size` ranks, all in this process.
fn job(id: u64, size: u32) -> Vec<Arc<World>> {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let world = |rank| {
        let device = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, size), true).expect("joining");
        let options = Options { independent_progress: false, ..OPTIONS };
        World::with_engine(Engine::start(device.into(), options).expect("an engine"), id, size)
    };
    (0..size).map(world).collect()
}

fn send(comm: &Arc<Comm>, to: i32, value: u64) {
    let mut bytes = value.to_ne_bytes();
    // SAFETY: the bytes live until the send has ended.
    let region = unsafe { Region::contiguous(bytes.as_mut_ptr(), bytes.len()) };
    p2p::send(comm, region, to, 7, SendMode::Standard).expect("send");
}

fn receive(comm: &Arc<Comm>, from: i32) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the bytes live until the receive has ended.
    let region = unsafe { Region::contiguous(bytes.as_mut_ptr(), bytes.len()) };
    p2p::receive(comm, region, from, 7).expect("receive");
    u64::from_ne_bytes(bytes)
}

#[test]
fn ranks_of_two_jobs_in_one_process_talk_within_their_jobs_only() {
    let jobs = [job(1, 2), job(2, 2)];
    std::thread::scope(|scope| {
        for (number, world) in jobs.iter().flatten().enumerate() {
            scope.spawn(move || {
                let comm = Comm::all_of(world);
                let (job, me) = (number as u64 / 2, comm.rank());
                for round in 0..100 {
                    if me == 0 {
                        send(&comm, 1, job * 1000 + round);
                        assert_eq!(receive(&comm, 1), job * 1000 + round + 500);
                    } else {
                        assert_eq!(receive(&comm, 0), job * 1000 + round);
                        send(&comm, 0, job * 1000 + round + 500);
                    }
                }
            });
        }
    });
}

#[test]
fn contexts_of_different_jobs_and_ranks_differ() {
    let world = |id, rank| Arc::new(World::new(None, id, rank, 3, Hosts::One));
    let mut contexts: Vec<u64> = [1, 2, u64::MAX].iter().map(|id| Comm::all_of(&world(*id, 0)).context()).collect();
    contexts.extend((0..3).map(|rank| Comm::self_of(&world(1, rank)).context()));
    contexts.extend((0..3).map(|rank| Comm::self_of(&world(2, rank)).context()));
    contexts.sort_unstable();
    contexts.dedup();
    assert_eq!(contexts.len(), 9);
    assert_eq!(Comm::all_of(&world(1, 0)).context(), Comm::all_of(&world(1, 2)).context());
    assert!(contexts.iter().all(|context| context % 2 == 0));
}

#[test]
fn a_world_works_before_between_and_after_its_users() {
    let worlds = job(3, 2);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for world in &worlds {
                // Several users at once, as sessions initialised by several threads are.
                for user in 0..3 {
                    scope.spawn(move || {
                        world.enter().expect("threads");
                        if user == 0 {
                            let comm = Comm::all_of(world);
                            if comm.rank() == 0 { send(&comm, 1, 5) } else { assert_eq!(receive(&comm, 0), 5) }
                        }
                        world.leave(&Unobserved);
                    });
                }
            }
        });
    }
}

#[test]
fn blocks_of_ranks_pretend_to_share_a_host() {
    let hosts = |hosts: Hosts, size| (0..size).map(|rank| hosts.find(rank, size)).collect::<Vec<_>>();
    assert_eq!(hosts(Hosts::One, 3), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(hosts(Hosts::Alone, 3), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(hosts(Hosts::Blocks(2), 5), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    assert_eq!(hosts(Hosts::Blocks(9), 2), [(0, 0), (1, 0)]);
}

#[test]
fn a_world_tells_the_host_of_each_process() {
    let worlds = job(4, 2);
    let process = worlds[0].process(1);
    assert_eq!(process, Process { host: 0, rank_on_host: 1, device: "shm", is_alive: true });
    assert_eq!(worlds[0].shared_addresses(&Group::contiguous(0, 2)).as_deref(), Some([0, 1].as_slice()));
    assert_eq!(World::without_engine(2, 0).shared_addresses(&Group::contiguous(0, 2)), None);
}

#[test]
fn a_dead_process_is_named_where_it_was_needed_and_nowhere_else() {
    let network = Network::new(3, Conditions::default(), 1);
    let world = |rank| {
        let mut devices = Devices::new(None);
        let device = devices.add_device(Box::new(network.device(rank)));
        (0..3).for_each(|address| assert_eq!(devices.add_peer(device, address), address));
        let links = Links { devices, doorbell: network.doorbell(rank), rank, peers: 3, processes_here: 1 };
        let options = Options { independent_progress: false, ..OPTIONS };
        World::with_engine(Engine::start(links, options).expect("an engine"), 1, 3)
    };
    let worlds: Vec<_> = (0..3).map(world).collect();
    let all: Vec<_> = worlds.iter().map(Comm::all_of).collect();
    let alone = Comm::self_of(&worlds[0]);
    send(&all[1], 0, 77);
    network.kill(1);
    worlds[0].engine().poll();

    assert_eq!(receive(&all[0], 1), 77, "what had arrived stays");
    let aborted = |error: crate::Error| (error.class == MPI_ERR_PROC_ABORTED).then_some(error.to_string());
    for source in [1, MPI_ANY_SOURCE] {
        let error = p2p::iprobe(&all[0], source, 7).map(|_| ()).expect_err("process 1 is dead");
        assert!(aborted(error).is_some_and(|text| text.contains("process 1 ")));
    }
    assert!(p2p::iprobe(&all[0], 2, 7).is_ok_and(|end| end.is_none()));
    assert!(p2p::iprobe(&alone, MPI_ANY_SOURCE, 7).is_ok_and(|end| end.is_none()), "process 1 is no member");
    send(&all[2], 0, 78);
    assert_eq!(receive(&all[0], 2), 78);
}
