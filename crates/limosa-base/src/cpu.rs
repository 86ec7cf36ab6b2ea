//! Processors: how many this process may use, and moves of a thread between them.

use std::sync::OnceLock;

/// Returns the number of processors that this process may run on: its affinity mask, limited by the cgroup's quota; at
/// least 1. Cached on the first call, since computing it takes some twenty system calls.
pub fn allowed() -> usize {
    static ALLOWED: OnceLock<usize> = OnceLock::new();
    *ALLOWED.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Returns the bytes of the second-level cache, which each processor has for itself; `None` if the system does not
/// report them.
pub fn own_cache_bytes() -> Option<usize> {
    // SAFETY: no memory is passed.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) }).ok().filter(|bytes| *bytes > 0)
}

/// Returns the processor that this thread runs on.
pub fn current() -> Option<u32> {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Moves this thread to another allowed processor, if there is one, without pinning it there.
///
/// For a thread that shares its processor with a busy partner. When both often sleep, the scheduler sees no more load
/// than one processor can take, and leaves them together.
#[cold]
pub fn step_aside() {
    let Some(here) = current() else { return };
    move_to(|cpu, _| cpu != here as usize);
}

/// Moves this thread to the `nth` of its allowed processors, modulo their number, without pinning it there.
///
/// Processes that start together would otherwise begin wherever there was room at that moment. The scheduler sees no
/// difference between processes that yield to each other, and takes a tenth of a second and more to spread them evenly.
pub fn begin_on(nth: usize) {
    let many = allowed().max(1);
    move_to(|_, place| place == nth % many);
}

/// Moves this thread to a processor if its affinity allows that, without pinning it there.
#[cold]
pub fn move_onto(processor: u32) {
    move_to(|cpu, _| cpu == processor as usize);
}

/// Returns the numbers of the processors that this thread may use; empty if the system does not report them.
pub fn numbers() -> Vec<u32> {
    // SAFETY: a processor set is an array of integers, for which zero is a value.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid to write to and of the size given; 0 stands for this thread.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) } != 0 {
        return Vec::new();
    }
    // SAFETY: the index is below the set's size, and the set is valid.
    (0..8 * size_of_val(&allowed))
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &allowed) })
        .map(|cpu| cpu as u32)
        .collect()
}

/// Moves this thread to an allowed processor for which `wanted(processor, index among the allowed)` holds, and then
/// restores its affinity.
fn move_to(wanted: impl Fn(usize, usize) -> bool) {
    // SAFETY: a processor set is an array of integers, for which zero is a value.
    let (mut allowed, mut chosen): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid to write to and of the size given; 0 stands for this thread.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) } != 0 {
        return;
    }
    let mut place = 0;
    for cpu in 0..8 * size_of_val(&allowed) {
        // SAFETY: the index is below the set's size, and the sets are valid.
        unsafe {
            if libc::CPU_ISSET(cpu, &allowed) {
                if wanted(cpu, place) {
                    libc::CPU_SET(cpu, &mut chosen);
                }
                place += 1;
            }
        }
    }
    // SAFETY: the sets are valid and of the size given; 0 stands for this thread.
    unsafe {
        if libc::CPU_COUNT(&chosen) > 0 && libc::sched_setaffinity(0, size_of_val(&chosen), &chosen) == 0 {
            libc::sched_setaffinity(0, size_of_val(&allowed), &allowed);
        }
    }
}

/// Requests short time slices for this thread in exchange for low latency: a thread that wakes for a little work may
/// then preempt a computing thread instead of waiting for the end of its slice. No effect before Linux 6.12.
pub fn take_short_turns() {
    /// `struct sched_attr` of the kernel, first version.
    #[repr(C)]
    #[derive(Default)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    /// Minimum time slice of the kernel, in nanoseconds.
    const TURN: u64 = 100_000;
    let size = size_of::<SchedAttr>() as u32;
    let mut attr = SchedAttr::default();
    // SAFETY: 0 stands for this thread; the structure is valid to write to and of the size given.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) } == 0;
    if known && attr.policy == libc::SCHED_OTHER as u32 {
        attr.size = size;
        attr.runtime = TURN;
        // SAFETY: the structure is valid and states its own size; only the time slice differs from what the kernel
        // returned.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    }
}

/// Yields the processor to another runnable thread, if there is one.
#[inline]
pub fn yield_now() {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_moves_may_use_the_same_processors_as_before() {
        std::thread::spawn(|| {
            let before = numbers();
            for nth in 0..2 * before.len() {
                begin_on(nth);
                assert_eq!(numbers(), before);
            }
            step_aside();
            take_short_turns();
            assert_eq!(numbers(), before);
        })
        .join()
        .expect("the thread moves");
    }
}
