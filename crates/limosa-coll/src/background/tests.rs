//! Two ranks in one process, whose threads' steps the test takes one by one.

use std::os::fd::AsFd;
use std::sync::Arc;

use limosa_base::segment::{self, PAGE};
use limosa_p2p::{Engine, Links, Options, ShmDevice, Wait};

use super::{BackgroundOp, Exchange, Limits, MailboxUse, Mailboxes};

const RANKS: u32 = 2;

/// Each rank's mailboxes for one persistent operation.
fn mailbox_sets() -> Vec<Arc<Mailboxes>> {
    let options = Options { wait: Wait::Auto, spin_ns: 0, eager_limit: 16384, unexpected_limit: 1 << 28, independent_progress: true };
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let join = |rank| {
        let device = ShmDevice::join(file.as_fd(), PAGE as u64, rank, RANKS, false).expect("joining");
        let engine = Engine::start(Links::from(device), options).expect("starting");
        Mailboxes::join(&engine, 77, (0..RANKS).collect(), rank as usize, 64, 0).expect("there is memory")
    };
    (0..RANKS).map(join).collect()
}

fn barrier(mailboxes: &Arc<Mailboxes>) -> Arc<BackgroundOp> {
    BackgroundOp::new(
        MailboxUse { mailboxes: mailboxes.clone(), number: None, limits: Limits { most: usize::MAX, lends: false } },
        Exchange::barrier(),
    )
}

#[test]
fn a_helper_that_was_held_up_does_not_finish_the_next_start() {
    let mailbox_sets = mailbox_sets();
    let barriers: Vec<Arc<BackgroundOp>> = mailbox_sets.iter().map(barrier).collect();
    barriers.iter().for_each(|barrier| barrier.start());
    // Rank 0's helper sees that the operation can be finished. Before it goes on, the program finishes it and starts it again.
    let seen = mailbox_sets[0].ready();
    assert_eq!(seen.len(), 1);
    assert!(barriers.iter().all(|barrier| barrier.advance()));
    barriers.iter().for_each(|barrier| barrier.start());
    mailbox_sets[0].finish_ready(seen);
    assert!(barriers.iter().all(|barrier| barrier.advance()));
    for mailboxes in &mailbox_sets {
        assert_eq!(mailboxes.slots.least_finished(), 2, "both ranks say that they have finished both starts");
        assert!(mailboxes.pending.lock().open.is_empty());
    }
}

#[test]
fn a_barrier_ends_when_both_have_started_it() {
    let mailbox_sets = mailbox_sets();
    let barriers: Vec<Arc<BackgroundOp>> = mailbox_sets.iter().map(barrier).collect();
    for _ in 0..100 {
        barriers[0].start();
        assert!(!barriers[0].advance());
        barriers[1].start();
        assert!(barriers.iter().all(|barrier| barrier.advance()));
    }
}
