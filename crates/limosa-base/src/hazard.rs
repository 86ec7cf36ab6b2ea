//! Cells that hold an [`Arc`] which readers borrow without counting: a read costs a few plain loads and stores.
//!
//! A reader publishes the object that it is about to use (a *hazard*), executes a light fence, and checks that the cell
//! still holds the object. A thread that removes an object from its cell puts the cell's count on a list of retired
//! objects. The list is swept when it has some dozens of entries, or on request after the removal of a large object. A
//! sweep executes a heavy fence and drops every retired object that no hazard names. At least one side sees the store
//! of the opposite side: the reader sees that the cell has changed, or the sweep sees the hazard (M. M. Michael,
//! "Hazard Pointers", IEEE TPDS 15(6), 2004; the fence is [`crate::fence`]'s).
//!
//! Invariants
//! - a pointer in a cell owns one count of its `Arc`;
//! - a hazard is published before the cell is rechecked, and withdrawn after the last use;
//! - only a sweep drops a retired object, and decides under the list's lock.

use crate::fence;
use crate::sync::{AtomicPtr, Mutex, Ordering};
use std::cell::Cell as StdCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

/// Hazards per thread. Further borrows count references.
const HAZARDS: usize = if cfg!(loom) { 1 } else { 30 };
/// Number of retired objects that triggers a sweep.
const SWEEP_AT: usize = 32;

/// Hazards of one thread.
struct Board([AtomicPtr<()>; HAZARDS]);

impl Board {
    fn new() -> Board {
        Board(std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())))
    }
}

/// Hazard boards of all threads that have ever borrowed. The boards of ended threads are empty and are reused.
#[derive(Default)]
struct Boards {
    all: Vec<&'static Board>,
    idle: Vec<&'static Board>,
}

struct Retired {
    pointer: *const (),
    drop: unsafe fn(*const ()),
}

// SAFETY: only objects that are `Send` and `Sync` are retired, see `retire`.
unsafe impl Send for Retired {}

#[cfg(not(loom))]
static BOARDS: Mutex<Boards> = Mutex::new(Boards { all: Vec::new(), idle: Vec::new() });
#[cfg(not(loom))]
static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());
#[cfg(loom)]
loom::lazy_static! {
    static ref BOARDS: Mutex<Boards> = Mutex::default();
    static ref RETIRED: Mutex<Vec<Retired>> = Mutex::default();
}

/// This thread's board, and how many of its hazards have been used.
struct Mine {
    board: StdCell<Option<&'static Board>>,
    used: StdCell<usize>,
}

// In a model no board is reused: loom drops thread-locals when its statics may already be gone.
#[cfg(not(loom))]
impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(board) = self.board.take() {
            BOARDS.lock().idle.push(board);
        }
    }
}

#[cfg(not(loom))]
thread_local! {
    static MINE: Mine = const { Mine::new() };
}
#[cfg(loom)]
loom::thread_local! {
    static MINE: Mine = Mine::new();
}

impl Mine {
    const fn new() -> Mine {
        Mine { board: StdCell::new(None), used: StdCell::new(0) }
    }

    #[inline]
    fn board(&self) -> &'static Board {
        self.board.get().unwrap_or_else(|| self.first())
    }

    #[cold]
    fn first(&self) -> &'static Board {
        let mut boards = BOARDS.lock();
        let board = boards.idle.pop().unwrap_or_else(|| {
            let board: &'static Board = Box::leak(Box::new(Board::new()));
            boards.all.push(board);
            board
        });
        self.board.set(Some(board));
        board
    }
}

/// How a [`Ref`] keeps its object alive.
enum Hold {
    /// A hazard of this thread.
    Hazard(&'static AtomicPtr<()>),
    /// A count of its own.
    Counted,
    /// None: the object is never dropped.
    Eternal,
}

/// A borrowed `Arc`, bound to the thread that created it.
pub struct Ref<T> {
    arc: ManuallyDrop<Arc<T>>,
    hold: Hold,
    thread: PhantomData<*const ()>,
}

impl<T> Ref<T> {
    /// Creates a reference that owns a count.
    pub fn counted(arc: Arc<T>) -> Ref<T> {
        Ref { arc: ManuallyDrop::new(arc), hold: Hold::Counted, thread: PhantomData }
    }
}

impl<T> Deref for Ref<T> {
    type Target = Arc<T>;

    #[inline(always)]
    fn deref(&self) -> &Arc<T> {
        &self.arc
    }
}

impl<T> Drop for Ref<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(self.hold, Hold::Eternal) {
            self.let_go();
        }
    }
}

impl<T> Ref<T> {
    /// Ends the use of an object that may be dropped.
    #[inline(never)]
    fn let_go(&mut self) {
        match self.hold {
            Hold::Eternal => {}
            Hold::Hazard(place) => {
                place.store(ptr::null_mut(), Ordering::Release);
                let _ = MINE.try_with(|mine| {
                    let board = mine.board();
                    while mine.used.get() > 0 && board.0[mine.used.get() - 1].load(Ordering::Relaxed).is_null() {
                        mine.used.set(mine.used.get() - 1);
                    }
                });
            }
            // SAFETY: this reference owns a count and is no longer used.
            Hold::Counted => unsafe { ManuallyDrop::drop(&mut self.arc) },
        }
    }
}

/// A cell for an object that may be removed.
pub struct Cell<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
    owns: PhantomData<Arc<T>>,
}

impl<T: Send + Sync + 'static> Cell<T> {
    /// Creates an empty cell.
    #[cfg(not(loom))]
    pub const fn new() -> Cell<T> {
        Cell { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Creates an empty cell; loom has no constant constructors.
    #[cfg(loom)]
    pub fn new() -> Cell<T> {
        Cell { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Borrows the object, if there is one.
    #[inline]
    pub fn get(&self) -> Option<Ref<T>> {
        let Ok(Some(place)) = MINE.try_with(|mine| {
            let place = mine.board().0.get(mine.used.get())?;
            mine.used.set(mine.used.get() + 1);
            Some(place)
        }) else {
            return self.get_counted();
        };
        let mut pointer = self.pointer.load(Ordering::Acquire);
        loop {
            place.store(pointer.cast(), Ordering::Relaxed);
            // Pairs with the heavy fence in `sweep`: either the sweep sees the hazard, or this thread sees the changed
            // cell.
            fence::light();
            let again = self.pointer.load(Ordering::Acquire);
            if again == pointer {
                break;
            }
            pointer = again;
        }
        if pointer.is_null() {
            let _ = MINE.try_with(|mine| mine.used.set(mine.used.get() - 1));
            return None;
        }
        // SAFETY: the cell's count keeps the object alive now, and the hazard keeps it alive until this reference is
        // dropped. The reference does not own the count.
        let arc = ManuallyDrop::new(unsafe { Arc::from_raw(pointer.cast_const()) });
        Some(Ref { arc, hold: Hold::Hazard(place), thread: PhantomData })
    }

    /// Borrows like [`Cell::get`], on a thread that has no free hazard or is ending.
    #[cold]
    fn get_counted(&self) -> Option<Ref<T>> {
        let list = RETIRED.lock();
        let pointer = self.pointer.load(Ordering::Acquire);
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the cell's count has not been retired, or waits for the list's lock, which is held here. The object
        // is alive.
        let arc = unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer.cast_const())
        };
        drop(list);
        Some(Ref::counted(arc))
    }

    /// Stores an object. The previous one lives until its last reader is done.
    pub fn set(&self, object: Arc<T>) {
        let old = self.pointer.swap(Arc::into_raw(object).cast_mut(), Ordering::AcqRel);
        retire::<T>(old);
    }

    /// Removes and returns the object.
    pub fn take(&self) -> Option<Arc<T>> {
        let old = self.pointer.swap(ptr::null_mut(), Ordering::AcqRel);
        if old.is_null() {
            return None;
        }
        // SAFETY: the swap moved the cell's count out with the pointer; the count is retired only below.
        let arc = unsafe {
            Arc::increment_strong_count(old);
            Arc::from_raw(old.cast_const())
        };
        retire::<T>(old);
        Some(arc)
    }
}

impl<T: Send + Sync + 'static> Default for Cell<T> {
    fn default() -> Self {
        Cell::new()
    }
}

impl<T: Send + Sync + 'static> Drop for Cell<T> {
    fn drop(&mut self) {
        retire::<T>(self.pointer.load(Ordering::Relaxed));
    }
}

/// Puts a cell's count on the list of retired objects.
fn retire<T: Send + Sync + 'static>(pointer: *mut T) {
    if pointer.is_null() {
        return;
    }
    /// # Safety
    /// `pointer` owns a count of an `Arc<T>`.
    unsafe fn release<T>(pointer: *const ()) {
        // SAFETY: the caller's promise.
        unsafe { drop(Arc::from_raw(pointer.cast::<T>())) }
    }
    let full = {
        let mut list = RETIRED.lock();
        list.push(Retired { pointer: pointer.cast_const().cast(), drop: release::<T> });
        list.len() >= SWEEP_AT
    };
    if full {
        sweep();
    }
}

/// Returns whether no other thread has ever borrowed. A thread about to borrow first takes the boards' lock, and then
/// sees the removal.
fn is_only_reader(boards: &Boards) -> bool {
    MINE.try_with(|mine| mine.board.get())
        .ok()
        .flatten()
        .is_some_and(|own| boards.all.iter().all(|board| ptr::eq(*board, own)))
}

/// Drops the retired objects that no hazard names.
pub fn sweep() {
    let unused: Vec<Retired> = {
        let mut list = RETIRED.lock();
        let mut boards = BOARDS.lock();
        if !is_only_reader(&boards) {
            drop(boards);
            fence::heavy();
            boards = BOARDS.lock();
        }
        let mut used: Vec<*const ()> = boards
            .all
            .iter()
            .flat_map(|board| board.0.iter().map(|place| place.load(Ordering::Acquire).cast_const()))
            .filter(|pointer| !pointer.is_null())
            .collect();
        used.sort_unstable();
        let (keep, unused) =
            std::mem::take(&mut *list).into_iter().partition(|r| used.binary_search(&r.pointer).is_ok());
        *list = keep;
        unused
    };
    for retired in unused {
        // SAFETY: the count was retired with the pointer, once; no hazard names the object, and no cell leads to it.
        unsafe { (retired.drop)(retired.pointer) };
    }
}

/// A cell for an object that is never dropped, not even when it is replaced.
pub struct Eternal<T> {
    pointer: AtomicPtr<T>,
    owns: PhantomData<Arc<T>>,
}

impl<T: Send + Sync + 'static> Eternal<T> {
    /// Creates an empty cell.
    #[cfg(not(loom))]
    pub const fn new() -> Eternal<T> {
        Eternal { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Creates an empty cell; loom has no constant constructors.
    #[cfg(loom)]
    pub fn new() -> Eternal<T> {
        Eternal { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Returns the object, if there is one.
    #[inline(always)]
    pub fn get(&self) -> Option<Ref<T>> {
        let pointer = self.pointer.load(Ordering::Acquire);
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the cell's count is never released, so the object lives for ever. The reference does not own the
        // count.
        let arc = ManuallyDrop::new(unsafe { Arc::from_raw(pointer.cast_const()) });
        Some(Ref { arc, hold: Hold::Eternal, thread: PhantomData })
    }

    /// Returns the object without a [`Ref`], for immediate use.
    #[inline(always)]
    pub fn look(&self) -> Option<&T> {
        // SAFETY: as above.
        unsafe { self.pointer.load(Ordering::Acquire).as_ref() }
    }

    /// Stores an object.
    pub fn set(&self, object: Arc<T>) {
        self.pointer.store(Arc::into_raw(object).cast_mut(), Ordering::Release);
    }

    /// Empties the cell. The object stays valid for its holders.
    pub fn clear(&self) {
        self.pointer.store(ptr::null_mut(), Ordering::Release);
    }
}

impl<T: Send + Sync + 'static> Default for Eternal<T> {
    fn default() -> Self {
        Eternal::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicUsize;

    /// Counts the living objects, and records in its own memory that it is one.
    struct Canary(Arc<AtomicUsize>, AtomicUsize);

    impl Canary {
        fn new(alive: &Arc<AtomicUsize>) -> Arc<Canary> {
            alive.fetch_add(1, Ordering::Relaxed);
            Arc::new(Canary(alive.clone(), AtomicUsize::new(7)))
        }
    }

    impl Drop for Canary {
        fn drop(&mut self) {
            self.1.store(0, Ordering::Relaxed);
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_borrowed_object_outlives_its_removal_and_no_longer() {
        let alive = Arc::new(AtomicUsize::new(0));
        let cell = Cell::new();
        assert!(cell.get().is_none());
        cell.set(Canary::new(&alive));
        let borrowed = cell.get().expect("an object");
        drop(cell.take());
        assert!(cell.get().is_none());
        sweep();
        assert_eq!((alive.load(Ordering::Relaxed), borrowed.1.load(Ordering::Relaxed)), (1, 7));
        drop(borrowed);
        sweep();
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn more_borrows_than_places_work_and_end_in_any_order() {
        let alive = Arc::new(AtomicUsize::new(0));
        let cell = Cell::new();
        cell.set(Canary::new(&alive));
        let mut borrowed: Vec<_> = (0..3 * HAZARDS).map(|_| cell.get().expect("an object")).collect();
        drop(cell.take());
        sweep();
        while borrowed.len() > 1 {
            borrowed.swap_remove(borrowed.len() / 2);
            assert_eq!(alive.load(Ordering::Relaxed), 1);
        }
        drop(borrowed);
        sweep();
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        cell.set(Canary::new(&alive));
        assert_eq!(cell.get().expect("an object").1.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn readers_never_see_a_dropped_object() {
        fence::register();
        let alive = Arc::new(AtomicUsize::new(0));
        let cell = Cell::<Canary>::new();
        let stop = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while stop.load(Ordering::Relaxed) == 0 {
                        if let Some(object) = cell.get() {
                            assert_eq!(object.1.load(Ordering::Relaxed), 7);
                        }
                    }
                });
            }
            for round in 0..20_000 {
                cell.set(Canary::new(&alive));
                if round % 3 == 0 {
                    drop(cell.take());
                }
            }
            stop.store(1, Ordering::Relaxed);
        });
        drop(cell.take());
        sweep();
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::{AtomicU32, UnsafeCell};
    use loom::thread;

    /// History of the objects. loom reports a use that is not ordered before the drop.
    #[derive(Default)]
    struct Log {
        memory: [UnsafeCell<u32>; 2],
        alive: AtomicU32,
    }

    // SAFETY: loom checks how threads use the cells.
    unsafe impl Sync for Log {}

    struct Canary(Arc<Log>, usize);

    impl Canary {
        fn new(log: &Arc<Log>, index: usize) -> Arc<Canary> {
            log.alive.fetch_add(1, Ordering::Relaxed);
            Arc::new(Canary(log.clone(), index))
        }

        fn is_intact(&self) -> bool {
            // SAFETY: loom checks that there is no concurrent write.
            self.0.memory[self.1].with(|memory| unsafe { *memory == 0 })
        }
    }

    impl Drop for Canary {
        fn drop(&mut self) {
            // SAFETY: loom checks that the access is exclusive.
            self.0.memory[self.1].with_mut(|memory| unsafe { *memory = 1 });
            self.0.alive.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Runs readers of a cell, each holding so many references at a time, concurrently with `change`; then drops
    /// everything.
    fn check(readers: usize, references: usize, change: impl Fn(&Cell<Canary>, &Arc<Log>) + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let log: Arc<Log> = Arc::default();
            let cell = Arc::new(Cell::new());
            cell.set(Canary::new(&log, 0));
            let threads: Vec<_> = (0..readers)
                .map(|_| {
                    let cell = cell.clone();
                    thread::spawn(move || {
                        let held: Vec<_> = (0..references).filter_map(|_| cell.get()).collect();
                        assert!(held.iter().all(|object| object.is_intact()));
                    })
                })
                .collect();
            change(&cell, &log);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            drop(cell.take());
            sweep();
            assert_eq!(log.alive.load(Ordering::Relaxed), 0, "nothing is left behind");
        });
    }

    #[test]
    fn an_object_that_is_taken_away_outlives_its_readers() {
        check(1, 1, |cell, _| {
            drop(cell.take());
            sweep();
        });
    }

    #[test]
    fn a_thread_that_borrows_for_the_first_time_is_noticed() {
        check(1, 1, |cell, _| {
            // This thread has borrowed, so that it may see itself as the only reader.
            drop(cell.get());
            drop(cell.take());
            sweep();
        });
    }

    #[test]
    fn an_object_that_is_replaced_outlives_its_readers() {
        check(1, 1, |cell, log| {
            cell.set(Canary::new(log, 1));
            sweep();
        });
    }

    #[test]
    fn references_beyond_the_places_of_a_thread_are_safe_too() {
        check(1, 2, |cell, _| {
            drop(cell.take());
            sweep();
        });
    }

    #[test]
    fn two_readers_do_not_disturb_each_other() {
        check(2, 1, |cell, _| {
            drop(cell.take());
            sweep();
        });
    }
}
