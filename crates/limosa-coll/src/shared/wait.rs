//! Waiting for progress of another rank in the slots.
//!
//! Three stages, each longer than the one before:
//! 1. polling without the engine, as long as an answer takes if its sender is running;
//! 2. where processes outnumber processors: yielding the processor repeatedly. Up to a limit, that is cheaper than
//!    sleeping and a wake-up; the engine makes progress meanwhile;
//! 3. [`Engine::block_on`](limosa_p2p::Engine::block_on), which makes progress and finally sleeps. The slots then have
//!    the wait condition of this rank, so that it is woken when the condition holds and not before.
//!
//! `LIMOSA_WAIT=block` begins with 3.
//!
//! In stage 3 a rank publishes its call, and compares it with those of the other ranks: if ranks wait for each other
//! because their calls differ, at least one finds out.

use std::cell::Cell;

use limosa_base::clock;
use limosa_base::slots::Awaited;
use limosa_job::config::{self, WaitMode};
use limosa_p2p::Engine;

use super::SharedGroup;
use crate::notes::Notes;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::{Result, error_of};
use limosa_mpi::observe::{Sleeper, Waiting};

/// Number of polls when every rank has a processor of its own: some microseconds.
const LOOKS: u32 = 64;
/// Number of polls when processes outnumber processors.
const LOOKS_SCARCE: u32 = 4;
/// Time of yielding before sleeping, in nanoseconds. Once the ranks of an operation have to be woken, that takes a
/// fifth of this for eight of them. If the ranks that wait for them slept sooner, all of them would keep sleeping and
/// waking.
const YIELDING_NS: u64 = 1_000_000;
/// Number of yields between polls of the engine.
const YIELDS_PER_POLL: u32 = 8;

/// Evaluations of a condition, while the thread does not sleep, between two comparisons with the calls of other ranks.
const LOOKS_PER_COMPARISON: u32 = 64;

/// Waits until a condition holds, in a call with this number and this word of its notes.
///
/// # Errors
/// The program was interrupted; ranks have called different operations; the device failed or a member has died, so that
/// the condition may never hold. The other members learn of a death too and give up likewise, whichever rank the
/// condition depends on.
#[inline]
pub(super) fn wait(group: &SharedGroup, comm: &Comm, call: (u64, u64), awaited: Awaited) -> Result<()> {
    if group.slots.holds(awaited) { Ok(()) } else { wait_long(group, comm, call, awaited) }
}

/// Polls for a while, without sleeping, until a condition holds that other ranks are about to make true.
pub fn look(engine: &Engine, holds: impl Fn() -> bool) -> bool {
    if config::get().wait == WaitMode::Block {
        return holds();
    }
    let scarce = engine.oversubscribed();
    for _ in 0..if scarce { LOOKS_SCARCE } else { LOOKS } {
        if holds() {
            return true;
        }
        std::hint::spin_loop();
    }
    if scarce {
        let end = clock::now_ns() + YIELDING_NS;
        let mut yields = 0u32;
        loop {
            engine.hand_on();
            if holds() {
                return true;
            }
            yields += 1;
            if yields.is_multiple_of(YIELDS_PER_POLL) {
                engine.poll();
            }
            if clock::now_ns() > end {
                break;
            }
        }
    }
    false
}

#[inline(never)]
fn wait_long(group: &SharedGroup, comm: &Comm, (number, word): (u64, u64), awaited: Awaited) -> Result<()> {
    if look(&group.engine, || group.slots.holds(awaited)) {
        return Ok(());
    }
    group.slots.declare(number, word);
    let is_asleep = Cell::new(false);
    let (mut lost, mut difference, mut looks) = (None, None, 0u32);
    let inquirer = group.inquirer(comm, number, word);
    let waited = group.engine.block_on(
        &mut |view| {
            lost = view.lost_group(comm.coll_context());
            if lost.is_some() || group.slots.holds(awaited) {
                return true;
            }
            if is_asleep.get() || looks.is_multiple_of(LOOKS_PER_COMPARISON) {
                difference = group.find_difference(number, word);
            }
            looks = looks.wrapping_add(1);
            difference.is_some()
        },
        &Sleeper {
            waiting: &Waiting::collective(comm, Some(&inquirer)),
            begin_sleep: &|| {
                is_asleep.set(true);
                group.slots.begin_sleep(awaited);
            },
            end_sleep: &|| {
                is_asleep.set(false);
                group.slots.end_sleep();
            },
        },
    );
    group.slots.end_declaration();
    if let Err(interrupted) = waited {
        group.engine.fall_out_of_step(comm.coll_context());
        return Err(interrupted.into());
    }
    match (lost, difference) {
        _ if group.slots.holds(awaited) => Ok(()),
        (Some(failure), _) => Err(error_of(failure)),
        (None, Some((rank, difference))) => Err(group.differ(rank, difference)),
        (None, None) => Ok(()),
    }
}
