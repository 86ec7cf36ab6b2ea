//! Counts of the chosen algorithms, for tools (MPI-5 section 15.3.7).
//!
//! Contract: before a tool has asked for a count, or the user for a trace, operations only test a flag. Counts are of
//! this process. Where only one rank knows the lengths, the common choice before the lengths are known is counted. The
//! algorithms by messages inside a composed operation are counted, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use limosa_mpi::tool::performance::{self, Class, Source, Variable};
use tracing::{Level, debug, enabled};

use super::algorithms::{self, Algorithm};
use super::{SUBJECTS, Subject, TableWay};

/// Upper bound of the number of algorithms of an operation.
const MOST: usize = 12;

static WANTED: AtomicBool = AtomicBool::new(false);
/// The counts by subject, then in the order of its algorithms.
static COUNTS: [[AtomicU64; MOST]; SUBJECTS.len()] = [const { [const { AtomicU64::new(0) }; MOST] }; SUBJECTS.len()];

/// Counts an operation with the algorithm that `choose` returns, if there is one.
#[inline(always)]
pub(crate) fn count(subject: impl Into<Subject>, choose: impl FnOnce() -> Option<&'static Algorithm>) {
    if WANTED.load(Ordering::Relaxed) {
        add(subject.into(), choose());
    }
}

/// Counts an operation by messages with this algorithm, whatever the table says.
pub(crate) fn count_messages(subject: impl Into<Subject>, name: &str) {
    let subject = subject.into();
    count(subject, || {
        algorithms::of(subject).find(|algorithm| algorithm.way == TableWay::Messages && algorithm.name == name)
    });
}

#[cold]
fn add(subject: Subject, chosen: Option<&'static Algorithm>) {
    let place = chosen.and_then(|chosen| algorithms::of(subject).position(|algorithm| std::ptr::eq(algorithm, chosen)));
    if let Some(chosen) = chosen {
        debug!("{}: {} ({})", subject.name(), chosen.name, chosen.way_name());
    }
    if let Some(place) = place {
        COUNTS[subject.index()][place].fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts as a source of variables, numbered subject times [`MOST`] plus algorithm.
struct Chosen;

impl Source for Chosen {
    fn begin(&self) {
        WANTED.store(true, Ordering::Relaxed);
    }

    fn read(&self, which: usize) -> u64 {
        COUNTS[which / MOST][which % MOST].load(Ordering::Relaxed)
    }
}

/// Begins to count if the user traces choices.
pub(super) fn begin_if_traced() {
    if enabled!(Level::DEBUG) {
        Chosen.begin();
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
