//! Asymmetric fences: a store-then-load handshake whose frequent side pays nothing.
//!
//! Two sides each store a word and then load the other's: at least one must see the other's store. The frequent side calls [`light`], the
//! rare side [`heavy`]. Where the kernel offers `membarrier`, light is a compiler fence and heavy makes every processor that runs a registered
//! process execute a full fence; elsewhere both are full fences.
//!
//! All processes of a job must agree, since one side's light fence relies on the other side's heavy one: [`register`] in each of them, then
//! [`enable`] with the job's common decision.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Prepares this process for [`heavy`] fences of others; true if the kernel can do it.
pub fn register() -> bool {
    let commands = membarrier(CMD_QUERY);
    commands > 0
        && commands & libc::c_long::from(CMD_GLOBAL_EXPEDITED) != 0
        && commands & libc::c_long::from(CMD_REGISTER_GLOBAL_EXPEDITED) != 0
        && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0
}

/// Switches light fences to compiler fences. Call only if [`register`] succeeded in every process that takes part.
pub fn enable() {
    ASYMMETRIC.store(true, Ordering::SeqCst);
}

/// The frequent side's fence.
#[inline(always)]
pub fn light() {
    if ASYMMETRIC.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare side's fence.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if ASYMMETRIC.load(Ordering::Relaxed) {
        let done = membarrier(CMD_GLOBAL_EXPEDITED);
        assert!(done == 0, "membarrier failed after it had been registered");
    }
}
