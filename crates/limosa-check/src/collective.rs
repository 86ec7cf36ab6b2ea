//! Collective calls: before each, all ranks of the communicator tell each other what they are about to call
//! ([`crate::agreement`]), on a communicator of the checker's own. A call that only begins an operation does not wait
//! for that; the answer is looked at when the operation is completed, or later.
//!
//! This may make a rank wait for the others. A correct program cannot notice, since the standard lets every
//! collective operation do so.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use limosa_interpose::next::IN_PLACE;
use limosa_interpose::site::Site;

use crate::agreement::{self, Record, WORDS};
use crate::names::{IS_BLOCKING, NAMES};
use crate::report::say;
use crate::state::{self, Begins, Check, Comm, Message, Request, State};
use crate::{mpi, place};

/// A buffer with the same number of elements for each rank.
pub(crate) struct Block {
    pub address: usize,
    pub count: i64,
    pub datatype: usize,
    pub only_at_root: bool,
}

/// A buffer with a number of elements for each rank, where every other rank has one block.
pub(crate) struct Blocks {
    pub address: usize,
    pub counts: usize,
    /// The numbers have 64 bits.
    pub wide: bool,
    pub datatype: usize,
    pub only_at_root: bool,
}

/// A collective call.
pub(crate) struct Collective {
    /// By its place in `NAMES`.
    pub function: usize,
    pub comm: usize,
    pub root: Option<i32>,
    pub op: Option<usize>,
    pub blocks: [Option<Block>; 2],
    pub each: Option<Blocks>,
}

/// Makes a collective call after the check.
pub(crate) fn call(of: &Collective, begins: Begins, next: impl FnOnce() -> i32) -> i32 {
    if mpi::is_nested() {
        return next();
    }
    let site = place::here();
    poll(of.comm);
    let check = start(of, site);
    let name = NAMES[of.function];
    let begun = match (begins, check) {
        (Begins::Nothing, Some(check)) => {
            if let Err(code) = check.finish() {
                return code;
            }
            return mpi::nested(next);
        }
        (Begins::Nothing, None) => return mpi::nested(next),
        (_, check) => check,
    };
    let code = mpi::nested(next);
    state::with(|state| {
        let comm = state.number_of.get(&of.comm).copied().unwrap_or(0);
        let number = begun.as_ref().map(|check| check.number);
        if let (Some(check), Some(comm)) = (begun, state.comms.get_mut(&comm)) {
            comm.checks.push(check);
        }
        if code == mpi::SUCCESS {
            let check = number.filter(|_| matches!(begins, Begins::Request(_)));
            let new = Request { check, ..Request::new(name, site, begins, comm, Message::default()) };
            state.add_request(begins, new);
        }
    });
    code
}

/// Begins to tell the others; none where that is not possible.
fn start(of: &Collective, site: Site) -> Option<Check> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (record, shadow, is_inter, each, me) = state::with(|state| {
        let (_, comm) = state.comm(of.comm)?;
        let (shadow, is_inter) = (comm.shadow?, comm.is_inter);
        let me = mpi::number(mpi::comm_rank, of.comm);
        let record = record(state, of, is_inter, me);
        let each = each(state, of, is_inter, me);
        Some((record, shadow, is_inter, each, me))
    })?;
    let size = mpi::number(if is_inter { mpi::comm_remote_size } else { mpi::comm_size }, shadow);
    let mut check = Check {
        number: LAST.fetch_add(1, Relaxed) + 1,
        request: mpi::REQUEST_NULL,
        mine: record.words().into(),
        all: vec![0; WORDS * usize::try_from(size).unwrap_or(0)].into(),
        comm: of.comm,
        shadow,
        function: of.function,
        site,
        is_inter,
        me,
        each,
    };
    let (mine, all, words) = (check.mine.as_ptr(), check.all.as_mut_ptr(), WORDS as i32);
    // SAFETY: the buffers have room for what is exchanged, and are kept until it is complete.
    let code = unsafe { mpi::iallgather(mine, words, mpi::INT64, all, words, mpi::INT64, shadow, &mut check.request) };
    (code == mpi::SUCCESS).then_some(check)
}

fn record(state: &mut State, of: &Collective, is_inter: bool, me: i32) -> Record {
    let mut block = |block: &Option<Block>| {
        let block = block.as_ref().filter(|block| !block.only_at_root || of.root == Some(me))?;
        let count = u64::try_from(block.count).ok().filter(|_| block.address != IN_PLACE && !is_inter)?;
        let (signature, size) = state.signatures.of(block.datatype);
        Some((signature, size * count))
    };
    let blocks = [block(&of.blocks[0]), block(&of.blocks[1])];
    let op = of.op.map(|op| if state::is_made(op) { -1 } else { op as i64 });
    Record { function: of.function, root: of.root.filter(|_| !is_inter), op, blocks, is_uneven: of.each.is_some() }
}

/// The bytes of the block for each rank.
fn each(state: &mut State, of: &Collective, is_inter: bool, me: i32) -> Option<Vec<u64>> {
    let each = of.each.as_ref().filter(|each| !each.only_at_root || of.root == Some(me))?;
    if is_inter || each.address == IN_PLACE || each.counts == 0 {
        return None;
    }
    let (_, size) = state.signatures.of(each.datatype);
    let count = |at: usize| {
        // SAFETY: the program passes a count for each rank of the communicator.
        let count = unsafe {
            if each.wide {
                *(each.counts as *const i64).add(at)
            } else {
                i64::from(*(each.counts as *const i32).add(at))
            }
        };
        u64::try_from(count).unwrap_or(0) * size
    };
    let ranks = mpi::number(mpi::comm_size, of.comm);
    Some((0..usize::try_from(ranks).unwrap_or(0)).map(count).collect())
}

impl Check {
    /// Waits for the others, and says in what they differ. An error was given to the communicator's error handler.
    pub(crate) fn finish(mut self) -> Result<(), i32> {
        // SAFETY: the request is that of the exchange.
        unsafe { mpi::wait(&mut self.request, 0) };
        self.judge(true)
    }

    /// The same if all others have said what they call; otherwise gives the check back.
    fn try_finish(mut self) -> Option<Check> {
        let mut flag = 0;
        // SAFETY: as above.
        let code = unsafe { mpi::test(&mut self.request, &mut flag, 0) };
        if code == mpi::SUCCESS && flag == 0 {
            return Some(self);
        }
        let _ = self.judge(false);
        None
    }

    fn judge(self, is_raised: bool) -> Result<(), i32> {
        let mut records: Vec<Record> = self.all.chunks_exact(WORDS).map(Record::of).collect();
        self.compare_each(&records);
        if self.is_inter {
            // Those of the other group; of this one only the own is known.
            records.iter_mut().for_each(|record| record.function = record.function.min(NAMES.len() - 1));
            records.truncate(1);
            records.push(Record::of(&self.mine));
        }
        let Some((class, text)) = agreement::disagreement(&records) else { return Ok(()) };
        let begins = |record: &Record| !IS_BLOCKING[record.function];
        let all_block = is_raised && !self.is_inter && !records.iter().any(begins);
        if self.me == 0 || !all_block {
            let (name, comm) = (NAMES[self.function], state::name_of_comm(self.comm));
            let place = place::words(&place::text(self.site));
            let text = if self.is_inter { "the two groups call different functions".into() } else { text };
            say(&format!("error in {name} on {comm}: the ranks do not agree: {text}{place}"));
            if is_raised {
                limosa_base::file::wait_until_read(std::io::stderr());
            }
        }
        if !is_raised {
            return Ok(());
        }
        if all_block {
            // The line is out before any rank ends the job.
            // SAFETY: all ranks have found the same.
            unsafe { mpi::barrier(self.shadow) };
        }
        mpi::raise(self.comm, class);
        Err(class)
    }

    /// Says where another rank's block is not as long as this rank says.
    fn compare_each(&self, records: &[Record]) {
        let Some(each) = &self.each else { return };
        let wrong = each.iter().zip(records).enumerate().find_map(|(rank, (mine, record))| {
            let (_, theirs) = record.blocks.iter().flatten().next()?;
            (record.function == self.function && mine != theirs).then_some((rank, *mine, *theirs))
        });
        if let Some((rank, mine, theirs)) = wrong {
            let (name, comm) = (NAMES[self.function], state::name_of_comm(self.comm));
            let (me, place) = (self.me, place::words(&place::text(self.site)));
            say(&format!(
                "error in {name} on {comm}: rank {me} has {mine} bytes for rank {rank}, which has {theirs}{place}"
            ));
        }
    }
}

/// Looks at the checks of earlier calls on a communicator.
pub(crate) fn poll(comm: usize) {
    let checks = state::with(|state| state.comm(comm).map(|(_, comm)| std::mem::take(&mut comm.checks)));
    let mut checks = checks.unwrap_or_default().into_iter();
    // All ranks begin them in the same order, so none behind an unfinished one is looked at: with many under way, each
    // call would look at all of them.
    let unfinished = checks.find_map(Check::try_finish);
    put_back(comm, unfinished.into_iter().chain(checks).collect());
}

fn put_back(comm: usize, left: Vec<Check>) {
    if left.is_empty() {
        return;
    }
    state::with(|state| {
        if let Some((_, comm)) = state.comm(comm) {
            comm.checks.splice(0..0, left);
        }
    });
}

/// The same for all communicators, at the end.
pub(crate) fn poll_all() {
    let all = state::with(|state| state.comms.values_mut().flat_map(|comm| std::mem::take(&mut comm.checks)).collect());
    let _: Vec<Check> = Vec::into_iter(all).filter_map(Check::try_finish).collect::<Vec<_>>();
}

/// Waits for the check of an operation that is about to be completed.
pub(crate) fn finish(comm: u64, number: u64) -> Result<(), i32> {
    let take = |comm: &mut Comm| {
        let at = comm.checks.iter().position(|check| check.number == number)?;
        Some(comm.checks.remove(at))
    };
    let check = state::with(|state| state.comms.get_mut(&comm).and_then(take));
    check.map_or(Ok(()), Check::finish)
}
