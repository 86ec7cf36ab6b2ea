//! How a collective access is divided among the processes: the same at all, from what each of them tells.

use crate::hints::Buffering;
use crate::view::View;

/// From this mean length on, pieces are as fast each for itself.
const LONG_PIECE: u64 = 32 << 10;
/// Shortest strip that is worth a system call of its own.
const LEAST_STRIP: u64 = 64 << 10;
/// Longest strip in memory that processes share. It stays in the cache of a processor between its copies.
pub(crate) const SHARED_STRIP: u64 = 256 << 10;
/// Strips begin at multiples of this, unless a hint says otherwise: pages, and blocks of most file systems.
const BLOCK: u64 = 4096;
/// If less than this part of the range is accessed, most strips would be empty.
const SPARSE: u64 = 64;
/// A process that reads at least this part of its range does so alone.
const DENSE: u64 = 8;
/// Reads of at most so many bytes by all processes go through shared memory nevertheless: it stays in their caches.
const SHORT_READ: u64 = 2 << 20;
/// From so many bytes by all processes on, mapping the file costs less than it spares.
const LEAST_MAPPED: u64 = 1 << 20;
/// At most this part of what is written by mapping may lie between the data: room is provided for it, too.
const HOLES: u64 = 8;
/// Strips in shared memory are read as a whole, so this part of them must be wanted.
const DENSE_STRIP: u64 = 2;

/// Words that each process tells before the first round.
pub(crate) const WORDS: usize = 6;

/// What a process is about to access.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub first: u64,
    pub end: u64,
    pub bytes: u64,
    pub pieces: u64,
    pub is_ordered: bool,
    pub processors: u64,
    /// Bytes of the file, as the first process sees it before a read.
    pub size: u64,
}

impl Wish {
    pub fn new(view: &View, from: u64, bytes: u64, size: u64) -> Wish {
        let processors = limosa_base::cpu::allowed() as u64;
        let (first, end) = match bytes {
            0 => (0, 0),
            _ => (view.byte_of(from), view.byte_of(from + bytes - 1) + 1),
        };
        let pieces = bytes.div_ceil((view.mean_piece() as u64).max(1));
        Wish { first, end, bytes, pieces, is_ordered: view.is_ordered_in(from, bytes), processors, size }
    }

    pub fn words(&self) -> [u64; WORDS] {
        let last = self.processors << 1 | u64::from(self.is_ordered);
        [self.first, self.end, self.bytes, self.pieces, last, self.size]
    }

    pub fn of([first, end, bytes, pieces, last, size]: [u64; WORDS]) -> Wish {
        Wish { first, end, bytes, pieces, is_ordered: last & 1 == 1, processors: last >> 1, size }
    }
}

/// What hints and the job say about a collective access.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    pub is_write: bool,
    pub buffering: Buffering,
    /// Aggregators; 0: as many as are good.
    pub wanted: u64,
    /// Most bytes of a strip.
    pub buffer: u64,
    /// What strips are aligned to; 0: as is good.
    pub stripe: u64,
    pub hosts: u64,
    /// All processes can share memory.
    pub shares: bool,
    /// All can map the file, as far as is known.
    pub maps: bool,
    /// The range that all have mapped already, if any.
    pub mapped: (u64, u64),
}

/// The strips of the part of a file that is accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first byte that is accessed, and the one behind the last.
    pub first: u64,
    pub end: u64,
    /// Where the first strip begins.
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

/// Who carries the data of the strips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each process copies its own data, in the pages that the system keeps of the file.
    Mapped,
    /// All processes copy in memory that they share; so many of them at once move strips to or from the file.
    Shared(u64),
    /// The processes of these ranks, to which the others send messages.
    Aggregators(Vec<usize>),
}

/// How the work is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub cut: Cut,
    pub way: Way,
}

impl Plan {
    /// `None` if each process had better move its own data.
    pub fn new(wishes: &[Wish], use_of: &Use) -> Option<Plan> {
        let Use { is_write, buffering, wanted, buffer, stripe, hosts, shares, maps, mapped } = *use_of;
        let total: u64 = wishes.iter().map(|wish| wish.bytes).sum();
        let busy: Vec<&Wish> = wishes.iter().filter(|wish| wish.bytes > 0).collect();
        let first = busy.iter().map(|wish| wish.first).min()?;
        let end = busy.iter().map(|wish| wish.end).max()?;
        let span = end - first;
        let can = busy.iter().all(|wish| wish.is_ordered) && span / SPARSE <= total && buffering != Buffering::Never;
        if !can || wishes.len() == 1 {
            return None;
        }
        let is_dense = !is_write || span - span / HOLES <= total;
        if maps && hosts == 1 && wanted == 0 && stripe == 0 && is_dense {
            let is_mapped = mapped.0 <= first && end <= mapped.1;
            let interleaved = are_interleaved(&busy) && mean_piece(&busy, total) < LONG_PIECE;
            let pays = interleaved && (is_mapped || total >= LEAST_MAPPED);
            if pays || buffering == Buffering::Always {
                return Some(Plan { cut: Cut::new(first, end, span, BLOCK), way: Way::Mapped });
            }
        }
        let shares = shares && stripe <= SHARED_STRIP && (is_write || span / DENSE_STRIP <= total);
        if buffering == Buffering::Automatic && !pays(&busy, total, is_write, hosts, shares) {
            return None;
        }
        let size = wishes.len() as u64;
        let processors = wishes[0].processors.max(1);
        let block = if stripe > 0 { stripe } else { BLOCK };
        let strip = |parts: u64, most: u64| {
            let most = (most / block * block).max(block);
            span.div_ceil(parts).max(LEAST_STRIP).next_multiple_of(block).min(most)
        };
        if shares {
            let strip = strip(size.min(processors), buffer.min(SHARED_STRIP));
            // The system lets one process at a time write to a file of most file systems.
            let good = if is_write { 1 } else { processors };
            let most = if wanted > 0 { wanted } else { good };
            return Some(Plan { cut: Cut::new(first, end, strip, block), way: Way::Shared(most.min(size)) });
        }
        let most = if wanted > 0 { wanted } else { processors.saturating_mul(hosts) }.clamp(1, size);
        let cut = Cut::new(first, end, strip(most, buffer), block);
        let count = most.min(cut.strips);
        let aggregators = (0..count).map(|i| (i * size / count) as usize).collect();
        Some(Plan { cut, way: Way::Aggregators(aggregators) })
    }
}

/// Whether two phases are faster than accesses by each process alone.
fn pays(busy: &[&Wish], total: u64, is_write: bool, hosts: u64, shares: bool) -> bool {
    // On one host the others have brought what this process does not want into memory: reading it is a copy.
    let reads_alone = !is_write
        && hosts == 1
        && !(shares && total <= SHORT_READ)
        && busy.iter().all(|wish| (wish.end - wish.first) / DENSE <= wish.bytes);
    are_interleaved(busy) && !reads_alone && mean_piece(busy, total) < LONG_PIECE
}

/// Whether what processes access lies between each other.
fn are_interleaved(busy: &[&Wish]) -> bool {
    let mut ranges: Vec<(u64, u64)> = busy.iter().map(|wish| (wish.first, wish.end)).collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

fn mean_piece(busy: &[&Wish], total: u64) -> u64 {
    total / busy.iter().map(|wish| wish.pieces).sum::<u64>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(first: u64, end: u64, bytes: u64, pieces: u64) -> Wish {
        Wish { first, end, bytes, pieces, is_ordered: true, processors: 2, size: 0 }
    }

    const WRITE: Use = Use {
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

    fn plan(wishes: &[Wish]) -> Option<Plan> {
        Plan::new(wishes, &WRITE)
    }

    const SHORT: [(u64, u64, u64, u64); 2] = [(0, 9_000_000, 1 << 20, 1000), (5000, 9_005_000, 1 << 20, 1000)];

    fn short() -> [Wish; 2] {
        SHORT.map(|(first, end, bytes, pieces)| wish(first, end, bytes, pieces))
    }

    #[test]
    fn two_phases_are_for_short_pieces_that_interleave() {
        let made = plan(&short()).unwrap();
        assert_eq!((made.cut.start, made.cut.strip), (0, 1 << 20));
        assert_eq!(made.way, Way::Aggregators(vec![0, 1]));
        assert_eq!(made.cut.strips, 9_005_000u64.div_ceil(1 << 20));
        let long = short().map(|wish| Wish { pieces: 10, ..wish });
        assert_eq!(plan(&long), None);
        let apart = [wish(0, 5000, 500, 50), wish(5000, 10_000, 500, 50)];
        assert_eq!(plan(&apart), None);
        let backwards = short().map(|wish| Wish { is_ordered: false, ..wish });
        assert_eq!(plan(&backwards), None);
        let sparse = short().map(|wish| Wish { end: wish.end << 10, ..wish });
        assert_eq!(plan(&sparse), None);
        assert_eq!(plan(&[wish(0, 0, 0, 0); 3]), None);
        assert!(Plan::new(&apart, &Use { buffering: Buffering::Always, wanted: 1, ..WRITE }).is_some());
        assert_eq!(Plan::new(&short(), &Use { buffering: Buffering::Never, ..WRITE }), None);
    }

    #[test]
    fn what_is_not_scattered_is_read_alone_where_no_memory_is_shared() {
        let read = Use { is_write: false, ..WRITE };
        let much = short().map(|wish| Wish { bytes: 2 << 20, ..wish });
        assert_eq!(Plan::new(&much, &read), None);
        assert!(Plan::new(&short().map(|wish| Wish { bytes: 1 << 19, ..wish }), &read).is_some());
        assert!(Plan::new(&much, &Use { hosts: 2, ..read }).is_some());
        let shares = Use { shares: true, ..read };
        assert_eq!(Plan::new(&much, &shares), None);
        let little = [wish(0, 1 << 20, 1 << 19, 1000), wish(512, (1 << 20) + 512, 1 << 19, 1000)];
        assert_eq!(Plan::new(&little, &shares).unwrap().way, Way::Shared(2));
        let sparse = little.map(|wish| Wish { bytes: 1 << 15, ..wish });
        let made = Plan::new(&sparse, &shares);
        assert!(matches!(made.unwrap().way, Way::Aggregators(_)), "most of the strips would be read for nothing");
    }

    #[test]
    fn the_file_is_mapped_for_much_that_is_dense() {
        let maps = Use { shares: true, maps: true, ..WRITE };
        let much = [wish(0, 2 << 20, 1 << 20, 1000), wish(512, (2 << 20) + 512, 1 << 20, 1000)];
        let way = |wishes: &[Wish], use_of: &Use| Plan::new(wishes, use_of).map(|plan| plan.way);
        assert_eq!(way(&much, &maps), Some(Way::Mapped));
        assert_eq!(way(&much, &Use { is_write: false, ..maps }), Some(Way::Mapped));
        assert_eq!(way(&much, &Use { wanted: 1, ..maps }), Some(Way::Shared(1)));
        assert!(matches!(way(&much, &Use { hosts: 2, shares: false, ..maps }), Some(Way::Aggregators(_))));
        assert_eq!(way(&short(), &maps), Some(Way::Shared(1)), "most of it is holes");
        let little = much.map(|wish| Wish { end: wish.end >> 4, bytes: wish.bytes >> 4, pieces: 100, ..wish });
        assert_eq!(way(&little, &maps), Some(Way::Shared(1)));
        assert_eq!(way(&little, &Use { mapped: (0, 2 << 20), ..maps }), Some(Way::Mapped));
        assert_eq!(way(&much.map(|wish| Wish { pieces: 2, ..wish }), &maps), None, "long pieces");
    }

    #[test]
    fn strips_in_shared_memory_are_short_and_obey_hints() {
        let strips = |use_of: Use| Plan::new(&short(), &Use { shares: true, ..use_of }).unwrap();
        assert_eq!((strips(WRITE).cut.strip, strips(WRITE).way), (SHARED_STRIP, Way::Shared(1)));
        assert_eq!(strips(Use { buffer: 70_000, ..WRITE }).cut.strip, 69_632);
        assert_eq!(strips(Use { buffer: 5000, stripe: 8192, ..WRITE }).cut.strip, 8192);
        assert_eq!(strips(Use { wanted: 2, ..WRITE }).way, Way::Shared(2));
        assert!(matches!(strips(Use { stripe: 1 << 20, ..WRITE }).way, Way::Aggregators(_)));
    }
}
