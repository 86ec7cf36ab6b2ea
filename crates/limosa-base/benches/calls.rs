//! Times of single calls, by `make micro-bench`. The instructions of whole MPI calls have ceilings
//! (`tests/performance`); these times show where a change of a structure pays.

use limosa_base::clock;
use limosa_base::ring::{Consumer, Producer, Ring};

fn main() {
    divan::main();
}

/// A cell through a ring, by one thread.
#[divan::bench]
fn ring_push_and_take(bencher: divan::Bencher) {
    let ring = Box::new(Ring::<64>::new());
    let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
    bencher.bench_local(|| {
        assert!(producer.push(&ring, 1, &divan::black_box(Default::default())));
        let taken = consumer.peek(&ring);
        consumer.advance(&ring);
        taken
    });
}

#[divan::bench]
fn clock_now() -> u64 {
    clock::now_ns()
}
