//! Removal of message files in a job of a foreign launcher, which does not know of them and does not report the end of
//! the last process. Each process that ends well therefore leaves a mark, and the last one deletes the files.

use std::sync::OnceLock;

use limosa_job::{Job, State};
use limosa_p2p::Folders;

static FOLDERS: OnceLock<(&'static Job, Folders)> = OnceLock::new();

/// Has this process leave the folders when it exits. A process that is killed leaves nothing, and they stay.
pub(super) fn leave_at_exit(job: &'static Job, folders: Folders) {
    if FOLDERS.set((job, folders)).is_ok() {
        // SAFETY: the function needs nothing but the static above, which is never freed, and does not unwind into C.
        unsafe { libc::atexit(leave) };
    }
}

extern "C" fn leave() {
    let Some((job, folders)) = FOLDERS.get() else { return };
    // A forked child is no rank, and others may still need one that has not finalized.
    if job.is_own_process() && job.board().view(job.rank()).state == State::Finalized {
        folders.leave(job.rank(), job.size());
    }
}
