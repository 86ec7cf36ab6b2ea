//! Windows over a simulated network that delays and reorders packets, runs out of room, and loses packets of a dead
//! sender. Whatever happens, the memory equals that of a sequential model at the end, and a process that needs a dead
//! one gets an error.
//!
//! A run consists of phases separated by barriers. In each phase every slot of every process's memory has a use (put,
//! accumulate, count or read, by certain origins), which all processes derive from the seed. The model is thus a list
//! of numbers. The processes are threads; their accesses travel by packets, since they seem to share no memory. In
//! every second run a process dies.
//!
//! - `LIMOSA_SIM_SEEDS=n` sets the number of seeds;
//! - `LIMOSA_SIM_SEED=n` runs one seed. A failure prints its seed. The seed determines the calls of the processes and
//!   the behaviour of the network, but not the interleaving of the threads.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::group::Group;
use limosa_mpi::op::Op;
use limosa_mpi::world::World;
use limosa_p2p::memory::Region;
use limosa_p2p::{Devices, Engine, Links, Options, Wait};
use limosa_rma::{At, Flavor, LockKind, Origin, Window, WindowPart};
use limosa_sim::{Conditions, Network, Random};

/// Number of seeds by default.
const SEEDS: u64 = 120;
/// Time after which a run counts as hanging: a thousand times its usual duration.
const RUN_TIMEOUT: Duration = Duration::from_secs(600);
/// Slots of each process's memory.
const SLOTS: usize = 5;
const SLOT: usize = 400;
const PHASES: usize = 6;

/// Use of a slot in a phase.
#[derive(Clone, Debug)]
enum Use {
    /// No access.
    Nothing,
    /// One process writes numbers, starting with this one.
    Put { origin: usize, first: u64 },
    /// These processes add to all numbers.
    Sum { origins: Vec<usize>, value: u64 },
    /// These processes increment the first number, so often each, and get its old values.
    Count { origins: Vec<usize>, times: usize },
    /// As `Count`, by compare-and-swap. Only where an access can be completed at once.
    Swap { origins: Vec<usize>, times: usize },
    /// These processes read.
    Read { origins: Vec<usize> },
    /// These processes read the first number and write the next one, with the target locked.
    Next { origins: Vec<usize> },
}

/// Synchronisation of the accesses of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Fence,
    Post,
    Lock,
    LockAll,
}

/// A phase.
struct Phase {
    number: usize,
    sync: Sync,
    /// Numbers of a slot that are accessed.
    len: usize,
    /// Uses by target and slot.
    uses: Vec<Vec<Use>>,
}

fn some(random: &mut Random, size: usize) -> Vec<usize> {
    let mut some: Vec<usize> = (0..size).filter(|_| random.one_in(2)).collect();
    if some.is_empty() {
        some.push(random.below(size));
    }
    some
}

impl Use {
    fn is_by(&self, process: usize) -> bool {
        match self {
            Use::Nothing => false,
            Use::Put { origin, .. } => *origin == process,
            Use::Sum { origins, .. }
            | Use::Count { origins, .. }
            | Use::Swap { origins, .. }
            | Use::Read { origins }
            | Use::Next { origins } => origins.contains(&process),
        }
    }
}

impl Phase {
    fn new(number: usize, size: usize, random: &mut Random) -> Phase {
        let sync = random.of(&[Sync::Fence, Sync::Post, Sync::Lock, Sync::LockAll]);
        let is_passive = matches!(sync, Sync::Lock | Sync::LockAll);
        let len = random.of(&[1, 3, 40, SLOT]);
        let mut slot = || match random.below(8) {
            0 | 1 => Use::Put { origin: random.below(size), first: random.number() >> 1 },
            2 | 3 => Use::Sum { origins: some(random, size), value: random.number() },
            4 => Use::Count { origins: some(random, size), times: 1 + random.below(4) },
            5 if is_passive => Use::Swap { origins: some(random, size), times: 1 + random.below(3) },
            6 if sync == Sync::Lock => Use::Next { origins: some(random, size) },
            6 | 7 => Use::Read { origins: some(random, size) },
            _ => Use::Nothing,
        };
        let uses = (0..size).map(|_| (0..SLOTS).map(|_| slot()).collect()).collect();
        Phase { number, sync, len, uses }
    }

    /// Returns whether a process accesses a target.
    fn accesses(&self, origin: usize, target: usize) -> bool {
        self.uses[target].iter().any(|use_| use_.is_by(origin))
    }

    /// Applies the phase to the model of all processes' memory.
    fn apply(&self, model: &mut [Vec<u64>]) {
        for (target, slots) in self.uses.iter().enumerate() {
            for (slot, use_) in slots.iter().enumerate() {
                let numbers = &mut model[target][slot * SLOT..][..self.len];
                match use_ {
                    Use::Nothing | Use::Read { .. } => {}
                    Use::Put { first, .. } => (*first..).zip(numbers).for_each(|(value, number)| *number = value),
                    Use::Sum { origins, value } => {
                        let sum = value.wrapping_mul(origins.len() as u64);
                        numbers.iter_mut().for_each(|number| *number = number.wrapping_add(sum));
                    }
                    Use::Count { origins, times } | Use::Swap { origins, times } => {
                        numbers[0] = numbers[0].wrapping_add((origins.len() * times) as u64);
                    }
                    Use::Next { origins } => numbers[0] = numbers[0].wrapping_add(origins.len() as u64),
                }
            }
        }
    }
}

/// State that all processes of a run share.
struct Run {
    seed: u64,
    size: usize,
    network: Network,
    /// The process that dies, the phase, and the number of accesses before.
    death: Option<(usize, usize, usize)>,
    /// Old values of each count, by phase, target and slot.
    counted: Mutex<HashMap<(usize, usize, usize), Vec<u64>>>,
}

/// A process of a run.
struct Process<'r> {
    run: &'r Run,
    me: usize,
    comm: Arc<Comm>,
    window: Arc<Window>,
    /// Type of all numbers.
    datatype: Arc<Datatype>,
    sum: &'static Arc<Op>,
    /// Source of its own choices.
    random: Random,
    /// Numbers that are read when the epoch has ended, and their expected values.
    reads: Vec<(Vec<u64>, Vec<u64>)>,
    /// Old values of counts, by target and slot.
    counts: Vec<(usize, usize, Box<u64>)>,
    /// Accesses until it dies, in the phase in which it does.
    left: Option<usize>,
}

/// A process stops: it has died, or got the error that a peer has died.
struct Stopped;

type Step<T = ()> = std::result::Result<T, Stopped>;

/// Accepts the error that a peer is dead, and no other.
fn expect<T>(run: &Run, result: Result<T>) -> Step<T> {
    result.map_err(|error| {
        assert!(run.death.is_some(), "an error although no process dies: {}", error.detail);
        assert_eq!(error.class, MPI_ERR_PROC_ABORTED, "{}", error.detail);
        Stopped
    })
}

fn region(numbers: &mut [u64]) -> Region {
    // SAFETY: the numbers live until the access has ended, or the process has stopped.
    unsafe { Region::contiguous(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

impl Process<'_> {
    fn ok<T>(&self, result: Result<T>) -> Step<T> {
        expect(self.run, result)
    }

    /// Completes the accesses to a target.
    fn flush(&self, target: usize) -> Step {
        self.ok(self.window.flush(target as i32))
    }

    fn at(&self, target: usize, slot: usize, count: usize) -> At<'_> {
        At { rank: target as i32, disp: (slot * SLOT) as i64, count: count as i64, datatype: &self.datatype }
    }

    fn origin(&self, numbers: &mut [u64]) -> Origin<'_> {
        Origin { region: region(numbers), datatype: &self.datatype }
    }

    /// Increments a number.
    fn count(&mut self, target: usize, slot: usize) -> Step {
        let mut old = Box::new(0);
        let result = region(std::slice::from_mut(&mut *old));
        self.counts.push((target, slot, old));
        let mut one = [1];
        let origin = self.origin(&mut one);
        self.ok(self.window.fetch_and_op(Some(&origin), &result, &self.at(target, slot, 1), self.sum))
    }

    /// Increments a number by compare-and-swap.
    fn swap(&mut self, target: usize, slot: usize) -> Step {
        let mut expected = [0u64];
        loop {
            let (mut new, mut old) = ([expected[0].wrapping_add(1)], Box::new(0));
            let (new, result) = (region(&mut new), region(std::slice::from_mut(&mut *old)));
            // The allocation stays in place while its answer is pending.
            self.counts.push((target, slot, old));
            let at = self.at(target, slot, 1);
            self.ok(self.window.compare_and_swap(&new, &region(&mut expected), &result, &at))?;
            self.flush(target)?;
            let old = *self.counts.last().expect("pushed above").2;
            if old == expected[0] {
                return Ok(());
            }
            self.counts.pop();
            expected[0] = old;
        }
    }

    /// Does its part of a slot's use.
    fn access(&mut self, phase: &Phase, target: usize, slot: usize, model: &[Vec<u64>]) -> Step {
        match &phase.uses[target][slot] {
            Use::Nothing => Ok(()),
            Use::Put { first, .. } => {
                let mut numbers: Vec<u64> = (*first..).take(phase.len).collect();
                self.ok(self.window.put(&region(&mut numbers), &self.at(target, slot, phase.len), false)).map(|_| ())
            }
            Use::Sum { value, .. } => {
                let mut numbers = vec![*value; phase.len];
                let (origin, at) = (self.origin(&mut numbers), self.at(target, slot, phase.len));
                self.ok(self.window.accumulate(&origin, &at, self.sum, false)).map(|_| ())
            }
            Use::Count { times, .. } => (0..*times).try_for_each(|_| self.count(target, slot)),
            Use::Swap { times, .. } => (0..*times).try_for_each(|_| self.swap(target, slot)),
            Use::Read { .. } => {
                let mut read = vec![0; phase.len];
                let into = region(&mut read);
                self.reads.push((read, model[target][slot * SLOT..][..phase.len].to_vec()));
                self.ok(self.window.get(&into, &self.at(target, slot, phase.len), false)).map(|_| ())
            }
            Use::Next { .. } => {
                let mut number = vec![0];
                let (buffer, before) = (region(&mut number), model[target][slot * SLOT]);
                self.reads.push((number, Vec::new()));
                self.ok(self.window.get(&buffer, &self.at(target, slot, 1), false))?;
                self.flush(target)?;
                let (number, expected) = self.reads.last_mut().expect("pushed above");
                // The order is unknown, but each increment adds one.
                assert!(number[0].wrapping_sub(before) < self.run.size as u64, "{} after {before}", number[0]);
                number[0] = number[0].wrapping_add(1);
                expected.clone_from(number);
                self.ok(self.window.put(&buffer, &self.at(target, slot, 1), false)).map(|_| ())
            }
        }
    }

    /// Makes all its accesses of a phase, in an order of its own.
    fn accesses(&mut self, phase: &Phase, model: &[Vec<u64>]) -> Step {
        let all = (0..self.run.size).flat_map(|target| (0..SLOTS).map(move |slot| (target, slot)));
        let mut mine: Vec<_> = all.filter(|&(target, slot)| phase.uses[target][slot].is_by(self.me)).collect();
        while !mine.is_empty() {
            match &mut self.left {
                Some(0) => return Err(Stopped),
                Some(left) => *left -= 1,
                None => {}
            }
            let (target, slot) = mine.swap_remove(self.random.below(mine.len()));
            if phase.sync == Sync::Lock {
                let alone = matches!(phase.uses[target][slot], Use::Next { .. }) || self.random.one_in(3);
                let kind = if alone { LockKind::Exclusive } else { LockKind::Shared };
                self.ok(self.window.lock(kind, target as i32, 0))?;
            }
            self.access(phase, target, slot, model)?;
            if phase.sync == Sync::Lock {
                self.ok(self.window.unlock(target as i32))?;
            } else if phase.sync == Sync::LockAll && self.random.one_in(4) {
                self.flush(target)?;
            }
        }
        if self.left.is_some() { Err(Stopped) } else { Ok(()) }
    }

    fn group(&self, is_member: impl Fn(usize) -> bool) -> Arc<Group> {
        Group::from_world_ranks((0..self.run.size).filter(|rank| is_member(*rank)).map(|rank| rank as u32).collect())
    }

    fn begin(&self, phase: &Phase) -> Step {
        match phase.sync {
            Sync::Fence => self.ok(self.window.fence(0)),
            Sync::Post => {
                self.ok(self.window.post(&self.group(|origin| phase.accesses(origin, self.me)), 0))?;
                self.ok(self.window.start(&self.group(|target| phase.accesses(self.me, target)), 0))
            }
            Sync::Lock => Ok(()),
            Sync::LockAll => self.ok(self.window.lock_all(0)),
        }
    }

    fn end(&mut self, phase: &Phase) -> Step {
        match phase.sync {
            Sync::Fence => self.ok(self.window.fence(MPI_MODE_NOSUCCEED)),
            Sync::Post => {
                self.ok(self.window.complete())?;
                if self.random.one_in(2) {
                    return self.ok(self.window.wait_for_origins());
                }
                while !self.ok(self.window.test_for_origins())? {
                    std::thread::yield_now();
                }
                Ok(())
            }
            Sync::Lock => Ok(()),
            Sync::LockAll => self.ok(self.window.unlock_all()),
        }
    }

    fn phase(&mut self, phase: &Phase, model: &mut [Vec<u64>]) -> Step {
        self.left = self.run.death.filter(|death| (death.0, death.1) == (self.me, phase.number)).map(|death| death.2);
        self.begin(phase)?;
        self.accesses(phase, model)?;
        self.end(phase)?;
        for (read, expected) in self.reads.drain(..) {
            assert_eq!(read, expected, "what was read in phase {}", phase.number);
        }
        for (target, slot, old) in self.counts.drain(..) {
            let mut counted = self.run.counted.lock().unwrap();
            counted.entry((phase.number, target, slot)).or_default().push(*old);
        }
        self.ok(limosa_coll::barrier(&self.comm))?;
        self.compare(phase, model);
        self.ok(limosa_coll::barrier(&self.comm))
    }

    /// Compares its memory with the model, after updating the model.
    fn compare(&self, phase: &Phase, model: &mut [Vec<u64>]) {
        let before = model[self.me].clone();
        phase.apply(model);
        let base = self.window.base().cast::<u64>();
        // SAFETY: the window's memory, which is not accessed between the barriers.
        let memory = unsafe { std::slice::from_raw_parts(base, SLOTS * SLOT) };
        let differs = (0..memory.len()).find(|at| memory[*at] != model[self.me][*at]);
        assert_eq!(differs, None, "number in phase {} ({:?}): {:?}", phase.number, phase.sync, phase.uses[self.me]);
        for slot in 0..SLOTS {
            let olds = self.run.counted.lock().unwrap().remove(&(phase.number, self.me, slot));
            let counts = olds.iter().flatten().map(|old| old.wrapping_sub(before[slot * SLOT]));
            let mut counts: Vec<u64> = counts.collect();
            counts.sort_unstable();
            assert!(counts.iter().copied().eq(0..counts.len() as u64), "counted in phase {}: {counts:?}", phase.number);
        }
    }
}

fn world(network: &Network, rank: u32, size: usize) -> Arc<World> {
    let mut devices = Devices::new(None);
    let device = devices.add_device(Box::new(network.device(rank)));
    (0..size as u32).for_each(|address| assert_eq!(devices.add_peer(device, address), address));
    let options = Options {
        wait: Wait::Auto,
        spin_ns: 1000,
        eager_limit: 2000,
        unexpected_limit: 1 << 30,
        independent_progress: true,
    };
    let links =
        Links { devices, doorbell: network.doorbell(rank), rank, peers: size as u32, processes_here: size as u32 };
    World::with_engine(Engine::start(links, options).expect("an engine"), 1, size as u32)
}

/// Runs one process.
fn process(run: &Run, me: usize, comm: Arc<Comm>) -> Step {
    let part =
        WindowPart { flavor: Flavor::Allocate, base: std::ptr::null_mut(), size: (SLOTS * SLOT * 8) as i64, unit: 8 };
    let mut process = Process {
        run,
        me,
        window: expect(run, Window::make(&comm, part, None))?,
        comm,
        datatype: Datatype::named(MPI_UINT64_T),
        sum: Op::always(MPI_SUM as usize).expect("a predefined operation"),
        random: Random::new(run.seed.wrapping_mul(31).wrapping_add(me as u64)),
        reads: Vec::new(),
        counts: Vec::new(),
        left: None,
    };
    let mut random = Random::new(run.seed);
    let mut model = vec![vec![0; SLOTS * SLOT]; run.size];
    for number in 0..PHASES {
        let phase = Phase::new(number, run.size, &mut random);
        if let Err(stopped) = process.phase(&phase, &mut model) {
            // No answer may arrive any more for memory that is about to be freed.
            process.comm.engine().stop();
            return Err(stopped);
        }
    }
    process.ok(process.window.free())
}

/// Delivers packets until the run has ended.
fn deliver(run: &Run, has_ended: &AtomicBool) {
    let mut pauses = Random::new(run.seed);
    while !has_ended.load(Ordering::Relaxed) {
        if run.network.step().is_none() || pauses.one_in(8) {
            std::thread::yield_now();
        }
    }
}

/// Runs one seed.
fn run(seed: u64) {
    let random = &mut Random::new(seed.wrapping_add(1 << 40));
    let size = 2 + random.below(3);
    let conditions = Conditions {
        max_data: random.of(&[2100, 4200, 9000]),
        capacity: random.of(&[1, 2, 5, 64]),
        refusals: random.of(&[0, 2, 10]),
        instant: false,
        far: random.one_in(2),
        memory: false,
        memory_failures: 0,
    };
    let death = (seed % 2 == 1).then(|| (random.below(size), random.below(PHASES), random.below(6)));
    let network = Network::new(size as u32, conditions, random.number());
    let run = &Run { seed, size, network, death, counted: Mutex::default() };
    let has_ended = &AtomicBool::new(false);
    let worlds: Vec<_> = (0..size as u32).map(|rank| world(&run.network, rank, size)).collect();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| deliver(run, has_ended));
        let start = |(me, world): (usize, &Arc<World>)| {
            let world = world.clone();
            scope.spawn(move || {
                world.enter().expect("threads");
                let ended = catch_unwind(AssertUnwindSafe(|| process(run, me, Comm::all_of(&world))));
                if !matches!(ended, Ok(Ok(()))) {
                    run.network.kill(me as u32);
                    world.engine().stop();
                }
                ended
            })
        };
        let started: Vec<_> = worlds.iter().enumerate().map(start).collect();
        let ended: Vec<_> = started.into_iter().map(|process| process.join().expect("panics are caught")).collect();
        worlds.iter().for_each(|world| world.engine().stop());
        has_ended.store(true, Ordering::Relaxed);
        ended
    });
    for process in ended {
        match process {
            Ok(outcome) => assert!(outcome.is_ok() || death.is_some()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Runs one seed. Returns false if it fails.
fn succeeds(seed: u64) -> bool {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(catch_unwind(|| run(seed)).is_ok()));
    told.recv_timeout(RUN_TIMEOUT).unwrap_or_else(|_| {
        println!("seed {seed} hangs");
        false
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")))
}

#[test]
fn whatever_the_network_does_windows_hold_what_a_sequential_model_holds() {
    limosa_coll::plug_in();
    if let Some(seed) = number("LIMOSA_SIM_SEED") {
        assert!(succeeds(seed), "seed {seed} fails");
        return;
    }
    let seeds = number("LIMOSA_SIM_SEEDS").unwrap_or(SEEDS);
    let failed: Vec<u64> = (0..seeds).filter(|seed| !succeeds(*seed)).take(5).collect();
    assert!(failed.is_empty(), "of {seeds} seeds these failed: {failed:?}; LIMOSA_SIM_SEED={} repeats one", failed[0]);
}
