//! How many processors this process may use.

/// The processors that this process may run on: its affinity mask, limited by the cgroup's quota; at least 1.
pub fn allowed() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The processor that this thread runs on now.
pub fn current() -> Option<u32> {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Moves this thread to another processor that it may use, if there is one, and leaves it free to move again.
///
/// For a thread that finds itself on one processor with a partner that is busy: when both often sleep, the system sees no more load than one
/// processor can take, and leaves them there.
#[cold]
pub fn step_aside() {
    let Some(here) = current() else { return };
    // SAFETY: a set of processors is an array of integers, for which zero is a value.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid to write to and of the size given; 0 stands for this thread.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) } != 0 {
        return;
    }
    let mut others = allowed;
    // SAFETY: the index is below the set's size, and the sets are valid.
    unsafe {
        if here as usize >= 8 * size_of_val(&others) {
            return;
        }
        libc::CPU_CLR(here as usize, &mut others);
        if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size_of_val(&others), &others) == 0 {
            libc::sched_setaffinity(0, size_of_val(&allowed), &allowed);
        }
    }
}

/// Gives the processor to another runnable thread, if there is one.
#[inline]
pub fn yield_now() {
    std::thread::yield_now();
}
