//! How often each algorithm was chosen, for tools (MPI-5 section 15.3.7).
//!
//! Contract: nothing is counted, and an operation only looks at one flag, before a tool has asked for one of the counts.
//! Counts are of this process. Where only one rank knows the lengths, the choice that all make beforehand is counted. Of
//! a composed operation, the algorithms of its parts by messages are counted, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use limosa_mpi::tool::performance::{self, Class, Source, Variable};

use super::algorithms::{self, Algorithm};
use super::{SUBJECTS, Subject, Way};

/// More than any operation has algorithms.
const MOST: usize = 12;

static WANTED: AtomicBool = AtomicBool::new(false);
/// By subject, then in the order of its algorithms.
static COUNTS: [[AtomicU64; MOST]; SUBJECTS.len()] = [const { [const { AtomicU64::new(0) }; MOST] }; SUBJECTS.len()];

/// One operation was begun for which `choose` tells the algorithm, if there is one.
#[inline(always)]
pub(crate) fn count(subject: impl Into<Subject>, choose: impl FnOnce() -> Option<&'static Algorithm>) {
    if WANTED.load(Ordering::Relaxed) {
        add(subject.into(), choose());
    }
}

/// One operation was begun by messages that has this algorithm, whatever the table says.
pub(crate) fn count_messages(subject: impl Into<Subject>, name: &str) {
    let subject = subject.into();
    count(subject, || {
        algorithms::of(subject).find(|algorithm| algorithm.way == Way::Messages && algorithm.name == name)
    });
}

#[cold]
fn add(subject: Subject, chosen: Option<&'static Algorithm>) {
    let place = chosen.and_then(|chosen| algorithms::of(subject).position(|algorithm| std::ptr::eq(algorithm, chosen)));
    if let Some(place) = place {
        COUNTS[subject.index()][place].fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts as a source of variables: which one is subject times [`MOST`] and place.
struct Chosen;

impl Source for Chosen {
    fn begin(&self) {
        WANTED.store(true, Ordering::Relaxed);
    }

    fn read(&self, which: usize) -> u64 {
        COUNTS[which / MOST][which % MOST].load(Ordering::Relaxed)
    }
}

/// Offers a performance variable for each algorithm of each operation, once.
pub fn offer() {
    performance::offer(|| {
        let all = Subject::all().flat_map(|subject| algorithms::of(subject).enumerate().map(move |at| (subject, at)));
        let variables = all.map(|(subject, (place, algorithm))| {
            let (of, way, name) = (subject.name(), algorithm.way_name(), algorithm.name);
            Variable::new(
                format!("limosa_coll_{of}_{way}_{name}"),
                Class::Counter,
                format!("How often `{name}` was chosen for {of} ({way})"),
                &Chosen,
                subject.index() * MOST + place,
            )
        });
        variables.collect()
    });
}
