//! Choice of the path of a rendezvous message when both paths are possible: pulled from the sender's memory by system
//! calls, or streamed through shared memory. The faster path differs between machines, by factors in both directions.
//! It is therefore measured: every message is a sample.
//!
//! Pure: times are passed in. Costs are kept per size class (powers of two), in nanoseconds per KB. At first the paths
//! alternate; afterwards the cheaper one is used, and occasionally the dearer one, in case conditions have changed.

/// How the bytes of a rendezvous message travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferPath {
    /// The receiver copies from the sender's memory, with the sender's help if it waits.
    Pull,
    /// The sender copies into shared memory while the receiver copies out.
    Stream,
}

/// Samples of each path before the cheaper one is preferred.
const FIRST: u8 = 4;
/// Messages per sample of the dearer path.
const RETRY: u32 = 64;
/// Binary logarithm of the smallest size class, which holds all messages below 32 KB. The largest holds all from 8 MB
/// on.
const SMALLEST: u32 = 14;
const CLASSES: usize = 10;

#[derive(Clone, Copy, Default)]
struct Class {
    /// Cost of each path, and its number of samples up to [`FIRST`].
    cost: [u64; 2],
    samples: [u8; 2],
    messages: u32,
}

/// Measurements so far.
#[derive(Default)]
pub struct Choice {
    classes: [Class; CLASSES],
}

fn class_of(bytes: u64) -> usize {
    (bytes.max(1).ilog2().saturating_sub(SMALLEST) as usize).min(CLASSES - 1)
}

impl Choice {
    /// Returns the path for the next message of so many bytes.
    pub fn next(&mut self, bytes: u64) -> TransferPath {
        let class = &mut self.classes[class_of(bytes)];
        let [pull, stream] = class.samples;
        if pull < FIRST || stream < FIRST {
            return if pull <= stream { TransferPath::Pull } else { TransferPath::Stream };
        }
        class.messages = class.messages.wrapping_add(1);
        let retry = class.messages.is_multiple_of(RETRY);
        if (class.cost[0] <= class.cost[1]) == retry { TransferPath::Stream } else { TransferPath::Pull }
    }

    /// Records that a message took this path and so many nanoseconds.
    pub fn learn(&mut self, path: TransferPath, bytes: u64, ns: u64) {
        let class = &mut self.classes[class_of(bytes)];
        let cost = ns.saturating_mul(1024) / bytes.max(1);
        let known = &mut class.cost[path as usize];
        let samples = &mut class.samples[path as usize];
        *known = match *samples {
            0 => cost,
            // Many causes make a sample too slow, but hardly any makes it too fast.
            _ if cost < *known => cost,
            n if n < FIRST => *known,
            _ => *known + (cost - *known) / 16,
        };
        *samples = (*samples + 1).min(FIRST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(choice: &mut Choice, messages: usize, bytes: u64, cost: impl Fn(TransferPath) -> u64) -> usize {
        (0..messages)
            .filter(|_| {
                let path = choice.next(bytes);
                choice.learn(path, bytes, cost(path));
                path == TransferPath::Stream
            })
            .count()
    }

    #[test]
    fn the_cheaper_way_is_found_and_kept_for_each_size() {
        let mut choice = Choice::default();
        let cheap = |path: TransferPath| move |w: TransferPath| if w == path { 1000 } else { 3000 };
        assert_eq!(run(&mut choice, 8, 20_000, cheap(TransferPath::Stream)), 4, "they take turns at first");
        assert!(run(&mut choice, 1000, 20_000, cheap(TransferPath::Stream)) > 950);
        assert!(run(&mut choice, 1000, 1 << 22, cheap(TransferPath::Pull)) < 50);
        assert!(run(&mut choice, 1000, 20_000, cheap(TransferPath::Stream)) > 950, "sizes do not mix");
    }

    #[test]
    fn a_change_is_noticed() {
        let mut choice = Choice::default();
        run(&mut choice, 1000, 65_536, |path| if path == TransferPath::Pull { 1000 } else { 3000 });
        run(&mut choice, 5000, 65_536, |path| if path == TransferPath::Pull { 5000 } else { 2000 });
        assert!(run(&mut choice, 1000, 65_536, |path| if path == TransferPath::Pull { 5000 } else { 2000 }) > 900);
    }

    #[test]
    fn one_slow_sample_does_not_turn_the_choice() {
        let mut choice = Choice::default();
        run(&mut choice, 1000, 65_536, |path| if path == TransferPath::Pull { 1000 } else { 1500 });
        choice.learn(TransferPath::Pull, 65_536, 5000);
        assert!(run(&mut choice, 100, 65_536, |path| if path == TransferPath::Pull { 1000 } else { 1500 }) < 10);
    }
}
