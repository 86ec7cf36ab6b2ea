//! Clocks. All times in the engine are nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.

/// Returns nanoseconds since an arbitrary point that is the same for all processes of this machine.
#[inline]
pub fn now_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec to write to; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns the resolution of [`now_ns`] in nanoseconds.
pub fn resolution_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now_ns`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut t) };
    (t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64).max(1)
}
