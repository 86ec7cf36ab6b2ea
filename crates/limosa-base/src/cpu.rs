//! How many processors this process may use.

/// The processors that this process may run on: its affinity mask, limited by the cgroup's quota; at least 1.
pub fn allowed() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Gives the processor to another runnable thread, if there is one.
#[inline]
pub fn yield_now() {
    std::thread::yield_now();
}
