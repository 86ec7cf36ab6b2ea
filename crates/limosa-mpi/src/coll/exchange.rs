//! Every rank sends something to every other rank: the core of the one-step algorithms.
//!
//! In step `k` rank `r` sends to `r + k` and receives from `r - k`, so that no rank is everybody's partner at once. `WINDOW` steps make a
//! round: enough to overlap their latencies, few enough that a large job does not post thousands of transfers at once.
//!
//! Cost for blocks of n bytes: ceil((p - 1) / WINDOW) a + (p - 1) n b, where `a` is the latency of a message and `b` the time of a byte.

use limosa_p2p::memory::Region;

use super::schedule::Schedule;

/// Transfers to and from this many partners are under way at once.
pub(super) const WINDOW: usize = 32;

/// Sends `send(j)` to and receives `receive(j)` from every other rank `j`. The last round is left open, for steps that need not wait for it.
pub(super) fn exchange(s: &mut Schedule, send: impl Fn(usize) -> Region, receive: impl Fn(usize) -> Region) {
    let (rank, size) = (s.rank(), s.size());
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        s.receive(from, receive(from));
        s.send(to, send(to));
        if step % WINDOW == 0 && step + 1 < size {
            s.wait();
        }
    }
}
