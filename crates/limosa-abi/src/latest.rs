//! Cache of the window that a thread has used last: programs use one window many times, and its look-up would cost more
//! than a short access.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use limosa_base::biased::this_thread;
use limosa_mpi::check;

use crate::handles::{Handle, Object};
use crate::kinds::Window;

/// Cached window of a thread; valid while no window has been freed since.
struct Latest {
    handle: AtomicUsize,
    window: AtomicPtr<Window>,
    /// Value of [`FREED`] at that time.
    freed: AtomicUsize,
}

impl Latest {
    const fn new() -> Latest {
        Latest { handle: AtomicUsize::new(0), window: AtomicPtr::new(std::ptr::null_mut()), freed: AtomicUsize::new(0) }
    }

    /// Returns the window of a handle, if it is the cached one; null otherwise.
    #[inline(always)]
    fn window(&self, handle: Handle) -> *const Window {
        let freed = FREED.load(Ordering::Acquire);
        let is_same = self.handle.load(Ordering::Relaxed) == handle.0 && self.freed.load(Ordering::Relaxed) == freed;
        if is_same { self.window.load(Ordering::Relaxed) } else { look_up(self, handle, freed) }
    }
}

/// The first thread that has used a window, and its cache. It costs less than a thread-local value, and most programs
/// use windows on one thread. 0: none. A thread that gets the number of an ended thread may continue with its cache.
static FIRST: (AtomicUsize, Latest) = (AtomicUsize::new(0), Latest::new());

thread_local! {
    /// Caches of all other threads.
    static LATEST: Latest = const { Latest::new() };
}

/// Counter of freed windows, from 1.
static FREED: AtomicUsize = AtomicUsize::new(1);

/// Invalidates all caches: a window's handle has been freed, and the window is about to be dropped.
pub(crate) fn forget() {
    FREED.fetch_add(1, Ordering::SeqCst);
}

/// Returns the window of a handle, for the duration of a call.
#[inline(always)]
pub(crate) fn window<'call>(handle: Handle) -> Option<&'call Window> {
    let (first, latest) = &FIRST;
    let is_first = first.load(Ordering::Relaxed) == this_thread();
    let window = if is_first { latest.window(handle) } else { other_window(handle) };
    // SAFETY: no window has been freed since this one was found under its handle, so it is alive. It stays alive until
    // the handle is freed: the program promises not to do that while another of its threads uses the window.
    unsafe { window.as_ref() }
}

/// Returns the window of a handle on a thread that is not the first, or not yet.
#[inline(never)]
fn other_window(handle: Handle) -> *const Window {
    let _ = FIRST.0.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed);
    LATEST.with(|latest| latest.window(handle))
}

/// Looks up the window of a handle and caches it; null if there is none. Also null in a job that checks every access,
/// which fast paths do not.
#[inline(never)]
fn look_up(latest: &Latest, handle: Handle, freed: usize) -> *const Window {
    if check::is_on() {
        return std::ptr::null();
    }
    let Ok(window) = Window::table().get(handle) else { return std::ptr::null() };
    latest.handle.store(handle.0, Ordering::Relaxed);
    latest.window.store(Arc::as_ptr(&window).cast_mut(), Ordering::Relaxed);
    latest.freed.store(freed, Ordering::Relaxed);
    Arc::as_ptr(&window)
}
