//! Rings, futex waiting, memory segments, clocks and OS calls.
