//! Which way an offered message goes, when both ways are open: pulled out of the sender's memory by system calls, or
//! streamed through shared memory. Which is faster differs between machines by factors, in both directions, so it is
//! measured: every message is a sample.
//!
//! Pure: times are passed in. Costs are kept per size class (powers of two), as nanoseconds per KB. At first the ways
//! take turns; then the cheaper one is taken, and now and then the other, in case that things have changed.

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The receiver copies from the sender's memory, with the sender's help if it waits.
    Pull,
    /// The sender copies into shared memory while the receiver copies out of it.
    Stream,
}

/// Samples of each way before one is preferred.
const FIRST: u8 = 4;
/// One of so many messages goes the dearer way.
const RETRY: u32 = 64;
/// Size classes: the smallest holds all messages up to 16 KB, the largest all from 8 MB on.
const SMALLEST: u32 = 14;
const CLASSES: usize = 10;

#[derive(Clone, Copy, Default)]
struct Class {
    /// Of both ways: cost, and number of samples up to [`FIRST`].
    cost: [u64; 2],
    samples: [u8; 2],
    messages: u32,
}

/// What was measured so far.
#[derive(Default)]
pub struct Choice {
    classes: [Class; CLASSES],
}

fn class_of(bytes: u64) -> usize {
    (bytes.max(1).ilog2().saturating_sub(SMALLEST) as usize).min(CLASSES - 1)
}

impl Choice {
    /// The way for the next message of so many bytes.
    pub fn next(&mut self, bytes: u64) -> Way {
        let class = &mut self.classes[class_of(bytes)];
        let [pull, stream] = class.samples;
        if pull < FIRST || stream < FIRST {
            return if pull <= stream { Way::Pull } else { Way::Stream };
        }
        class.messages = class.messages.wrapping_add(1);
        let retry = class.messages.is_multiple_of(RETRY);
        if (class.cost[0] <= class.cost[1]) == retry { Way::Stream } else { Way::Pull }
    }

    /// A message went this way in so many nanoseconds.
    pub fn learn(&mut self, way: Way, bytes: u64, ns: u64) {
        let class = &mut self.classes[class_of(bytes)];
        let cost = ns.saturating_mul(1024) / bytes.max(1);
        let known = &mut class.cost[way as usize];
        let samples = &mut class.samples[way as usize];
        *known = match *samples {
            0 => cost,
            // A sample can be too dear for many reasons, but hardly too cheap.
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

    fn run(choice: &mut Choice, messages: usize, bytes: u64, cost: impl Fn(Way) -> u64) -> usize {
        (0..messages)
            .filter(|_| {
                let way = choice.next(bytes);
                choice.learn(way, bytes, cost(way));
                way == Way::Stream
            })
            .count()
    }

    #[test]
    fn the_cheaper_way_is_found_and_kept_for_each_size() {
        let mut choice = Choice::default();
        let cheap = |way: Way| move |w: Way| if w == way { 1000 } else { 3000 };
        assert_eq!(run(&mut choice, 8, 20_000, cheap(Way::Stream)), 4, "they take turns at first");
        assert!(run(&mut choice, 1000, 20_000, cheap(Way::Stream)) > 950);
        assert!(run(&mut choice, 1000, 1 << 22, cheap(Way::Pull)) < 50);
        assert!(run(&mut choice, 1000, 20_000, cheap(Way::Stream)) > 950, "sizes do not mix");
    }

    #[test]
    fn a_change_is_noticed() {
        let mut choice = Choice::default();
        run(&mut choice, 1000, 65_536, |way| if way == Way::Pull { 1000 } else { 3000 });
        run(&mut choice, 5000, 65_536, |way| if way == Way::Pull { 5000 } else { 2000 });
        assert!(run(&mut choice, 1000, 65_536, |way| if way == Way::Pull { 5000 } else { 2000 }) > 900);
    }

    #[test]
    fn one_slow_sample_does_not_turn_the_choice() {
        let mut choice = Choice::default();
        run(&mut choice, 1000, 65_536, |way| if way == Way::Pull { 1000 } else { 1500 });
        choice.learn(Way::Pull, 65_536, 5000);
        assert!(run(&mut choice, 100, 65_536, |way| if way == Way::Pull { 1000 } else { 1500 }) < 10);
    }
}
