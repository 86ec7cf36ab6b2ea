//! Division of a collective access among the processes: the same result at all of them, from the descriptions of all.

use crate::hints::Buffering;
use crate::view::View;

/// Mean length in bytes from which accesses piece by piece are as fast.
const LONG_PIECE: u64 = 32 << 10;
/// Shortest strip, in bytes, that is worth a system call of its own.
const MIN_STRIP: u64 = 64 << 10;
/// Longest strip, in bytes, in shared memory. It stays in a processor's cache between its copies.
pub(crate) const SHARED_STRIP: u64 = 256 << 10;
/// Default alignment of strips, in bytes: pages, and blocks of most file systems.
const BLOCK: u64 = 4096;
/// Minimum accessed fraction of the range is 1/SPARSE; otherwise most strips would be empty.
const SPARSE: u64 = 64;
/// A process that reads at least 1/DENSE of its range does so alone.
const DENSE: u64 = 8;
/// Reads of at most so many bytes in total go through shared memory nevertheless, which then stays in the caches.
const SHORT_READ: u64 = 2 << 20;
/// Total bytes from which mapping the file costs less than it saves.
const MIN_MAPPED: u64 = 1 << 20;
/// At most 1/HOLES of the range of a mapped write may be gaps: space is reserved for them, too.
const HOLES: u64 = 8;
/// Strips in shared memory are read as a whole, so at least 1/DENSE_STRIP of them must be requested.
const DENSE_STRIP: u64 = 2;

/// Words that each process exchanges before the first round.
pub(crate) const WORDS: usize = 6;

/// Description of one process's access.
#[derive(Clone, Copy)]
pub(crate) struct AccessSummary {
    pub first: u64,
    pub end: u64,
    pub bytes: u64,
    pub pieces: u64,
    pub is_ordered: bool,
    pub processors: u64,
    /// Size of the file in bytes, as the first process sees it before a read.
    pub size: u64,
}

impl AccessSummary {
    pub fn new(view: &View, from: u64, bytes: u64, size: u64) -> AccessSummary {
        let processors = limosa_base::cpu::allowed() as u64;
        let (first, end) = match bytes {
            0 => (0, 0),
            _ => (view.byte_of(from), view.byte_of(from + bytes - 1) + 1),
        };
        let pieces = bytes.div_ceil((view.mean_piece() as u64).max(1));
        AccessSummary { first, end, bytes, pieces, is_ordered: view.is_ordered_in(from, bytes), processors, size }
    }

    pub fn words(&self) -> [u64; WORDS] {
        let last = self.processors << 1 | u64::from(self.is_ordered);
        [self.first, self.end, self.bytes, self.pieces, last, self.size]
    }

    pub fn of([first, end, bytes, pieces, last, size]: [u64; WORDS]) -> AccessSummary {
        AccessSummary { first, end, bytes, pieces, is_ordered: last & 1 == 1, processors: last >> 1, size }
    }
}

/// Parameters of a collective access, from the hints and the job.
#[derive(Clone, Copy)]
pub(crate) struct PlanParameters {
    pub is_write: bool,
    pub buffering: Buffering,
    /// Number of aggregators; 0 for an automatic choice.
    pub wanted: u64,
    /// Maximum bytes of a strip.
    pub buffer: u64,
    /// Alignment of strips in bytes; 0 for an automatic choice.
    pub stripe: u64,
    pub hosts: u64,
    /// Whether all processes can share memory.
    pub shares: bool,
    /// Whether all processes can map the file, as far as is known.
    pub maps: bool,
    /// The range that all processes have mapped already, if any.
    pub mapped: (u64, u64),
}

/// The strips of the accessed range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// First accessed byte, and the byte behind the last.
    pub first: u64,
    pub end: u64,
    /// Start of the first strip.
    pub start: u64,
    pub strip: u64,
    pub strips: u64,
}

impl Cut {
    fn new(first: u64, end: u64, strip: u64, block: u64) -> Cut {
        let start = first / block * block;
        Cut { first, end, start, strip, strips: (end - start).div_ceil(strip) }
    }

    pub fn start_of(&self, strip: u64) -> u64 {
        self.start + strip * self.strip
    }
}

/// Path of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataPath {
    /// Each process copies its own data, in the page cache of the file.
    Mapped,
    /// All processes copy in shared memory; so many of them at a time move strips to or from the file.
    Shared(u64),
    /// The processes of these ranks are aggregators, to which the others send messages.
    Aggregators(Vec<usize>),
}

/// Division of a collective access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub cut: Cut,
    pub path: DataPath,
}

impl Plan {
    /// Returns the plan; `None` if each process should move its own data.
    pub fn new(accesses: &[AccessSummary], parameters: &PlanParameters) -> Option<Plan> {
        let PlanParameters { is_write, buffering, wanted, buffer, stripe, hosts, shares, maps, mapped } = *parameters;
        let total: u64 = accesses.iter().map(|access| access.bytes).sum();
        let busy: Vec<&AccessSummary> = accesses.iter().filter(|access| access.bytes > 0).collect();
        let first = busy.iter().map(|access| access.first).min()?;
        let end = busy.iter().map(|access| access.end).max()?;
        let span = end - first;
        let can =
            busy.iter().all(|access| access.is_ordered) && span / SPARSE <= total && buffering != Buffering::Never;
        if !can || accesses.len() == 1 {
            return None;
        }
        let is_dense = !is_write || span - span / HOLES <= total;
        if maps && hosts == 1 && wanted == 0 && stripe == 0 && is_dense {
            let is_mapped = mapped.0 <= first && end <= mapped.1;
            let interleaved = are_interleaved(&busy) && mean_piece(&busy, total) < LONG_PIECE;
            let pays = interleaved && (is_mapped || total >= MIN_MAPPED);
            if pays || buffering == Buffering::Always {
                return Some(Plan { cut: Cut::new(first, end, span, BLOCK), path: DataPath::Mapped });
            }
        }
        let shares = shares && stripe <= SHARED_STRIP && (is_write || span / DENSE_STRIP <= total);
        if buffering == Buffering::Automatic && !pays(&busy, total, is_write, hosts, shares) {
            return None;
        }
        let size = accesses.len() as u64;
        let processors = accesses[0].processors.max(1);
        let block = if stripe > 0 { stripe } else { BLOCK };
        let strip = |parts: u64, most: u64| {
            let most = (most / block * block).max(block);
            span.div_ceil(parts).max(MIN_STRIP).next_multiple_of(block).min(most)
        };
        if shares {
            let strip = strip(size.min(processors), buffer.min(SHARED_STRIP));
            // Most file systems let one process at a time write to a file.
            let good = if is_write { 1 } else { processors };
            let most = if wanted > 0 { wanted } else { good };
            return Some(Plan { cut: Cut::new(first, end, strip, block), path: DataPath::Shared(most.min(size)) });
        }
        let most = if wanted > 0 { wanted } else { processors.saturating_mul(hosts) }.clamp(1, size);
        let cut = Cut::new(first, end, strip(most, buffer), block);
        let count = most.min(cut.strips);
        let aggregators = (0..count).map(|i| (i * size / count) as usize).collect();
        Some(Plan { cut, path: DataPath::Aggregators(aggregators) })
    }
}

/// Returns whether two phases are faster than accesses by each process alone.
fn pays(busy: &[&AccessSummary], total: u64, is_write: bool, hosts: u64, shares: bool) -> bool {
    // On one host the other processes have already brought the gaps into memory: reading them is a copy.
    let reads_alone = !is_write
        && hosts == 1
        && !(shares && total <= SHORT_READ)
        && busy.iter().all(|access| (access.end - access.first) / DENSE <= access.bytes);
    are_interleaved(busy) && !reads_alone && mean_piece(busy, total) < LONG_PIECE
}

/// Returns whether the ranges of different processes are interleaved.
fn are_interleaved(busy: &[&AccessSummary]) -> bool {
    let mut ranges: Vec<(u64, u64)> = busy.iter().map(|access| (access.first, access.end)).collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

fn mean_piece(busy: &[&AccessSummary], total: u64) -> u64 {
    total / busy.iter().map(|access| access.pieces).sum::<u64>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(first: u64, end: u64, bytes: u64, pieces: u64) -> AccessSummary {
        AccessSummary { first, end, bytes, pieces, is_ordered: true, processors: 2, size: 0 }
    }

    const WRITE: PlanParameters = PlanParameters {
        is_write: true,
        buffering: Buffering::Automatic,
        wanted: 0,
        buffer: 1 << 20,
        stripe: 0,
        hosts: 1,
        shares: false,
        maps: false,
        mapped: (0, 0),
    };

    fn plan(accesses: &[AccessSummary]) -> Option<Plan> {
        Plan::new(accesses, &WRITE)
    }

    const SHORT: [(u64, u64, u64, u64); 2] = [(0, 9_000_000, 1 << 20, 1000), (5000, 9_005_000, 1 << 20, 1000)];

    fn short() -> [AccessSummary; 2] {
        SHORT.map(|(first, end, bytes, pieces)| access(first, end, bytes, pieces))
    }

    #[test]
    fn two_phases_are_for_short_pieces_that_interleave() {
        let made = plan(&short()).unwrap();
        assert_eq!((made.cut.start, made.cut.strip), (0, 1 << 20));
        assert_eq!(made.path, DataPath::Aggregators(vec![0, 1]));
        assert_eq!(made.cut.strips, 9_005_000u64.div_ceil(1 << 20));
        let long = short().map(|access| AccessSummary { pieces: 10, ..access });
        assert_eq!(plan(&long), None);
        let apart = [access(0, 5000, 500, 50), access(5000, 10_000, 500, 50)];
        assert_eq!(plan(&apart), None);
        let backwards = short().map(|access| AccessSummary { is_ordered: false, ..access });
        assert_eq!(plan(&backwards), None);
        let sparse = short().map(|access| AccessSummary { end: access.end << 10, ..access });
        assert_eq!(plan(&sparse), None);
        assert_eq!(plan(&[access(0, 0, 0, 0); 3]), None);
        assert!(Plan::new(&apart, &PlanParameters { buffering: Buffering::Always, wanted: 1, ..WRITE }).is_some());
        assert_eq!(Plan::new(&short(), &PlanParameters { buffering: Buffering::Never, ..WRITE }), None);
    }

    #[test]
    fn what_is_not_scattered_is_read_alone_where_no_memory_is_shared() {
        let read = PlanParameters { is_write: false, ..WRITE };
        let much = short().map(|access| AccessSummary { bytes: 2 << 20, ..access });
        assert_eq!(Plan::new(&much, &read), None);
        assert!(Plan::new(&short().map(|access| AccessSummary { bytes: 1 << 19, ..access }), &read).is_some());
        assert!(Plan::new(&much, &PlanParameters { hosts: 2, ..read }).is_some());
        let shares = PlanParameters { shares: true, ..read };
        assert_eq!(Plan::new(&much, &shares), None);
        let little = [access(0, 1 << 20, 1 << 19, 1000), access(512, (1 << 20) + 512, 1 << 19, 1000)];
        assert_eq!(Plan::new(&little, &shares).unwrap().path, DataPath::Shared(2));
        let sparse = little.map(|access| AccessSummary { bytes: 1 << 15, ..access });
        let made = Plan::new(&sparse, &shares);
        assert!(matches!(made.unwrap().path, DataPath::Aggregators(_)), "most of the strips would be read for nothing");
    }

    #[test]
    fn the_file_is_mapped_for_much_that_is_dense() {
        let maps = PlanParameters { shares: true, maps: true, ..WRITE };
        let much = [access(0, 2 << 20, 1 << 20, 1000), access(512, (2 << 20) + 512, 1 << 20, 1000)];
        let path = |accesses: &[AccessSummary], parameters: &PlanParameters| {
            Plan::new(accesses, parameters).map(|plan| plan.path)
        };
        assert_eq!(path(&much, &maps), Some(DataPath::Mapped));
        assert_eq!(path(&much, &PlanParameters { is_write: false, ..maps }), Some(DataPath::Mapped));
        assert_eq!(path(&much, &PlanParameters { wanted: 1, ..maps }), Some(DataPath::Shared(1)));
        assert!(matches!(
            path(&much, &PlanParameters { hosts: 2, shares: false, ..maps }),
            Some(DataPath::Aggregators(_))
        ));
        assert_eq!(path(&short(), &maps), Some(DataPath::Shared(1)), "most of it is holes");
        let little =
            much.map(|access| AccessSummary { end: access.end >> 4, bytes: access.bytes >> 4, pieces: 100, ..access });
        assert_eq!(path(&little, &maps), Some(DataPath::Shared(1)));
        assert_eq!(path(&little, &PlanParameters { mapped: (0, 2 << 20), ..maps }), Some(DataPath::Mapped));
        assert_eq!(path(&much.map(|access| AccessSummary { pieces: 2, ..access }), &maps), None, "long pieces");
    }

    #[test]
    fn strips_in_shared_memory_are_short_and_obey_hints() {
        let strips =
            |parameters: PlanParameters| Plan::new(&short(), &PlanParameters { shares: true, ..parameters }).unwrap();
        assert_eq!((strips(WRITE).cut.strip, strips(WRITE).path), (SHARED_STRIP, DataPath::Shared(1)));
        assert_eq!(strips(PlanParameters { buffer: 70_000, ..WRITE }).cut.strip, 69_632);
        assert_eq!(strips(PlanParameters { buffer: 5000, stripe: 8192, ..WRITE }).cut.strip, 8192);
        assert_eq!(strips(PlanParameters { wanted: 2, ..WRITE }).path, DataPath::Shared(2));
        assert!(matches!(strips(PlanParameters { stripe: 1 << 20, ..WRITE }).path, DataPath::Aggregators(_)));
    }
}
