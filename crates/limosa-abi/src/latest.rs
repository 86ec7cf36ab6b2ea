//! The window that a thread has used last: programs use one window many times, and looking its handle up would cost more
//! than a short access.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use limosa_mpi::check;

use crate::calls::kinds::Window;
use crate::handles::{Handle, Object};

/// What a thread remembers; valid while no window has been freed since.
struct Latest {
    handle: Cell<usize>,
    window: Cell<*const Window>,
    /// [`FREED`] at that time.
    freed: Cell<usize>,
}

thread_local! {
    static LATEST: Latest =
        const { Latest { handle: Cell::new(0), window: Cell::new(std::ptr::null()), freed: Cell::new(0) } };
}

/// Counts the windows that were freed, from 1.
static FREED: AtomicUsize = AtomicUsize::new(1);

/// A window's handle has been freed, and the window is about to be dropped.
pub(crate) fn forget() {
    FREED.fetch_add(1, Ordering::SeqCst);
}

/// The window of a handle, for the duration of a call.
#[inline(always)]
pub(crate) fn window<'call>(handle: Handle) -> Option<&'call Window> {
    let freed = FREED.load(Ordering::Acquire);
    let window = LATEST.with(|latest| {
        let is_same = latest.handle.get() == handle.0 && latest.freed.get() == freed;
        if is_same { latest.window.get() } else { look_up(latest, handle, freed) }
    });
    // SAFETY: no window has been freed since this one was found under its handle, so it is alive, and stays so until the
    // handle is freed: the program promises not to do that while another of its threads uses the window.
    unsafe { window.as_ref() }
}

/// The window of a handle, null if it has none; it becomes the thread's latest. Null, too, for a job that wants every
/// access looked at, which no fast path does.
#[inline(never)]
fn look_up(latest: &Latest, handle: Handle, freed: usize) -> *const Window {
    if check::is_on() {
        return std::ptr::null();
    }
    let Ok(window) = Window::table().get(handle) else { return std::ptr::null() };
    latest.handle.set(handle.0);
    latest.window.set(Arc::as_ptr(&window));
    latest.freed.set(freed);
    latest.window.get()
}
