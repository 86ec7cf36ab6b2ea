//! Random programs on many engines over a simulated network, under random schedules. Whatever the schedule, every
//! operation completes correctly, or fails with an error that names a dead process which it needed.
//!
//! A process of a run performs random operations, none of which waits. After each step the schedule decides what runs
//! next: a process, its helper, or the network. In runs with faults, processes pause or die, and access to a peer's
//! memory fails from time to time. At the end everything is delivered, all completions are judged ([`oracle`]), the
//! rest is received or cancelled, and the engines must hold nothing.
//!
//! - `LIMOSA_SIM_SEEDS=n` sets the number of seeds;
//! - `LIMOSA_SIM_SEED=n` runs one seed and prints its schedule. A failure prints its seed.

mod oracle;
mod process;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{WINDOW, World};

/// Number of seeds by default; half of them have faults.
const SEEDS: u64 = 20_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")))
}

/// Runs one seed. Returns its schedule, if `notes`.
fn run(seed: u64, notes: bool) -> Vec<String> {
    let mut world = World::new(seed, notes);
    world.run();
    world.settle();
    oracle::judge(&world);
    world.clear_up();
    world.notes()
}

#[test]
fn whatever_the_schedule_operations_complete_or_name_the_dead() {
    if let Some(seed) = number("LIMOSA_SIM_SEED") {
        world::print_notes(true);
        run(seed, true);
        return;
    }
    let seeds = number("LIMOSA_SIM_SEEDS").unwrap_or(SEEDS);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let work = |first: u64| {
            let mine = (first..seeds).step_by(workers as usize);
            mine.filter(|&seed| catch_unwind(AssertUnwindSafe(|| run(seed, false))).is_err())
                .take(5)
                .collect::<Vec<u64>>()
        };
        let started: Vec<_> = (0..workers).map(|first| scope.spawn(move || work(first))).collect();
        started.into_iter().flat_map(|worker| worker.join().expect("panics are caught")).collect()
    });
    assert!(
        failed.is_empty(),
        "of {seeds} seeds these failed, among others: {failed:?}; LIMOSA_SIM_SEED={} shows how",
        failed[0]
    );
}

#[test]
fn a_flood_from_a_remote_sender_stops_a_window_ahead_of_the_receives() {
    for seed in 0..200 {
        let mut world = World::remote_pair(seed);
        let held = world.flood(150);
        assert!((WINDOW / 4..WINDOW * 5 / 4).contains(&held), "seed {seed}: {held} bytes");
        world.settle();
        oracle::judge(&world);
        world.clear_up();
    }
}

#[test]
fn receives_that_catch_up_with_a_flood_do_not_wait_for_a_round_trip_each() {
    for seed in 0..50 {
        let mut world = World::remote_pair(seed);
        let waits = world.catch_up(100, 1000);
        assert!(waits <= 5, "seed {seed}: {waits} of 200 receives waited");
        world.settle();
        oracle::judge(&world);
        world.clear_up();
    }
}

#[test]
fn a_seed_repeats_its_schedule() {
    for seed in 0..50 {
        assert_eq!(run(seed, true), run(seed, true), "seed {seed}");
    }
}
