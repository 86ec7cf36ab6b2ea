//! Times of single calls, by `make micro-bench`.

use limosa_p2p::matching::{Envelope, Matcher, Pattern};

fn main() {
    divan::main();
}

/// A message that meets its receive, with others posted before it.
#[divan::bench(args = [0, 16, 1024])]
fn post_and_arrive(bencher: divan::Bencher, others: i32) {
    let mut matcher = Matcher::<u32, u32>::default();
    for tag in 0..others {
        matcher.post(&Pattern { context: 2, source: Some(1), tag: Some(tag) }, 0);
    }
    let envelope = Envelope { context: 2, source: 1, tag: others };
    bencher.bench_local(|| {
        matcher.post(&Pattern { context: 2, source: Some(1), tag: Some(others) }, 7);
        matcher.arrive(divan::black_box(&envelope))
    });
}

/// An unexpected message that is taken with wildcards.
#[divan::bench]
fn store_and_take(bencher: divan::Bencher) {
    let mut matcher = Matcher::<u32, u32>::default();
    let envelope = Envelope { context: 2, source: 1, tag: 3 };
    bencher.bench_local(|| {
        matcher.store(&envelope, 7);
        matcher.take(divan::black_box(&Pattern { context: 2, source: None, tag: None }))
    });
}
