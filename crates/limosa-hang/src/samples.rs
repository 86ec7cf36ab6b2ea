//! Sample views of ranks, for tests.

use limosa_job::{Kind, Peer, RankView, Record, State, WaitView};

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// Creates a rank in this state.
pub fn rank(rank: u32, state: State) -> RankView {
    let (pid, started) = (1000 + rank, 1000 + rank);
    RankView {
        rank,
        pid,
        started,
        state,
        state_since_ns: 0,
        appnum: 0,
        threads: 1,
        asleep: 0,
        callers: vec![],
        finalized: state == State::Finalized,
        epoch: 5,
        sleeps: 0,
        wakeups: 0,
        idle_wakeups: 0,
        records: vec![],
    }
}

/// Creates a wait for a rank, in a communicator of four that is numbered like the job.
pub fn wait(kind: Kind, world: u32, tag: Option<i32>) -> WaitView {
    WaitView {
        kind,
        peer: Peer::Rank { rank: world, world },
        tag,
        context: 2,
        comm: "MPI_COMM_WORLD".into(),
        members: 4,
        series: None,
        started: String::new(),
    }
}

/// Creates a wait for a rank of another job, or for any of its ranks.
pub fn outside(kind: Kind, job: u64, world: Option<u32>) -> WaitView {
    let member = world.map(|world| (world, world));
    WaitView { peer: Peer::Outside { job, member }, comm: "other".into(), context: 9, ..wait(kind, 0, None) }
}

/// Creates a rank that sleeps in `call` since time 0.
pub fn blocked(rank_: u32, call: &str, waits: Vec<WaitView>) -> RankView {
    let record = Record {
        thread: 1000 + rank_,
        call: call.into(),
        since_ns: 0,
        waits,
        more: 0,
        all: true,
        polls: 0,
        lying: vec![],
        more_lying: 0,
    };
    RankView { asleep: 1, records: vec![record], ..rank(rank_, State::Running) }
}
