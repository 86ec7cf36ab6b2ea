//! Tests of the collectives without an engine. The schedules of all ranks run against each other, and the outcome is
//! compared with the definitions of the standard. Every algorithm is tested for every number of ranks, whether the
//! tables would select it or not.

mod checks;
mod composed;
mod movement;
mod published;
mod reduction;
mod simulator;

use std::sync::Arc;

use limosa_p2p::memory::Region;

use crate::{Blocks, Buffer, Call, Schedule};
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::mix::mix;
use simulator::{TIMINGS, Timing, simulate};

const SIZES: std::ops::RangeInclusive<usize> = 1..=9;
const COUNTS: [usize; 4] = [0, 1, 7, 1000];
/// Fills memory that must not change.
const MARK: u8 = 0xee;

/// All counts with all timings; the largest with one only, for the sake of time.
fn counts_and_timings() -> impl Iterator<Item = (usize, Timing)> {
    let pairs = COUNTS.into_iter().flat_map(|count| TIMINGS.map(|timing| (count, timing)));
    pairs.filter(|&(count, timing)| count < 100 || timing == Timing::Late)
}

/// `size` ranks of one communicator.
fn world(size: usize) -> Vec<Arc<Comm>> {
    (0..size).map(|rank| Comm::without_engine(size as u32, rank as u32)).collect()
}

/// Plans for every rank, and runs all plans against each other.
fn run_all(comms: &[Arc<Comm>], timing: Timing, plan: impl Fn(&Call<'_>, &mut Schedule, usize) -> Result<()>) {
    let schedules: Vec<Schedule> = comms
        .iter()
        .enumerate()
        .map(|(rank, comm)| {
            let call = Call::begin(comm);
            let mut schedule = Schedule::new(&call);
            plan(&call, &mut schedule, rank).expect("the arguments are right");
            schedule
        })
        .collect();
    simulate(&schedules, timing);
}

/// As [`run_all`], with schedules made by the module's own entry.
fn run_entries(comms: &[Arc<Comm>], plan: impl Fn(&Call<'_>, usize) -> Result<Schedule>) {
    let plan = |rank: usize| plan(&Call::begin(&comms[rank]), rank).expect("the arguments are right");
    simulate(&(0..comms.len()).map(plan).collect::<Vec<_>>(), Timing::Late);
}

/// Elements of a datatype in memory of their own, between marks.
struct Memory {
    bytes: Vec<u8>,
    base: usize,
    count: usize,
    datatype: Arc<Datatype>,
}

impl Memory {
    fn new(count: usize, datatype: &Arc<Datatype>) -> Memory {
        const MARGIN: usize = 64;
        let reach = (count + 1) * datatype.extent().unsigned_abs() as usize + datatype.true_extent() as usize + MARGIN;
        Memory { bytes: vec![MARK; 2 * reach], base: reach, count, datatype: datatype.clone() }
    }

    fn with(stream: &[u8], datatype: &Arc<Datatype>) -> Memory {
        let memory = Memory::new(stream.len() / datatype.size() as usize, datatype);
        memory.region().write(0, stream);
        memory
    }

    fn start(&self) -> *mut u8 {
        self.bytes.as_ptr().wrapping_add(self.base).cast_mut()
    }

    fn buffer(&self) -> Buffer {
        Buffer::new(self.start(), self.count as i64, self.datatype.clone(), "buf").unwrap()
    }

    fn blocks(&self, ranks: usize) -> Blocks {
        Blocks::even(self.start(), (self.count / ranks) as i64, self.datatype.clone(), ranks, "buf").unwrap()
    }

    fn region(&self) -> Region {
        self.buffer().region()
    }

    /// Returns the data, after a check that no byte around them has changed.
    fn data(&self) -> Vec<u8> {
        let mut stream = vec![0; self.region().len()];
        self.region().read(0, &mut stream);
        let rest = Memory { bytes: self.bytes.clone(), ..Memory::new(0, &self.datatype) };
        let rest = Memory { base: self.base, count: self.count, ..rest };
        rest.region().write(0, &vec![MARK; stream.len()]);
        assert!(rest.bytes.iter().all(|&byte| byte == MARK), "bytes beside the data have changed");
        stream
    }
}

/// Returns `bytes` bytes that `from` sends to `to`.
fn content(from: usize, to: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (mix((from << 8 | to) as u64, (i / 8) as u64) >> (i % 8 * 8)) as u8).collect()
}

/// Datatypes of four and of eight bytes: plain, with gaps and a lower bound below the data, and running backwards.
fn shapes() -> [Arc<Datatype>; 3] {
    let int = Datatype::named(MPI_INT32_T);
    let gaps = Datatype::resized(&Datatype::vector(2, 1, 3, &int).unwrap(), -4, 28).unwrap();
    let backwards = Datatype::resized(&Datatype::vector(2, 1, -2, &int).unwrap(), 0, -24).unwrap();
    for datatype in [&gaps, &backwards] {
        datatype.commit();
    }
    [int, gaps, backwards]
}
