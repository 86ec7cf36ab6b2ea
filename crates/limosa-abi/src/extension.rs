//! Extensions to the standard: the functions that `limosa.h` declares.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use limosa_coll::multicast;
use limosa_mpi::instance::interrupt;

use crate::args;
use crate::calls::p2p::region;
use crate::cx::{When, enter};
use crate::errors::ErrorTarget;
use crate::handles::Handle;
use crate::kinds;
use crate::python;

/// Hook of the program, from the first call of [`limosa_set_interrupt_hook`].
static INTERRUPTED: OnceLock<extern "C" fn() -> c_int> = OnceLock::new();

/// Registers the hook that tells whether a waiting call is to end; see `limosa.h`.
#[unsafe(no_mangle)]
pub extern "C" fn limosa_set_interrupt_hook(hook: Option<extern "C" fn() -> c_int>) -> c_int {
    if let Some(hook) = hook {
        INTERRUPTED.get_or_init(|| hook);
        interrupt::set_hook(|| {
            let is_wanted = INTERRUPTED.get().is_some_and(|hook| hook() != 0);
            if is_wanted {
                python::note_cut_short();
            }
            is_wanted
        });
    }
    limosa_mpi::consts::MPI_SUCCESS
}

/// Sends a message to a list of processes; see `limosa.h`.
#[unsafe(no_mangle)]
pub extern "C" fn limosa_mcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    ndests: c_int,
    dests: *const c_int,
    tag: c_int,
    comm: Handle,
) -> c_int {
    enter("limosa_mcast", false, When::Running, ErrorTarget::Comm(comm), |cx| {
        let comm = cx.get::<kinds::Communicator>(comm, "comm")?;
        args::at_least(count, 0, "count", limosa_mpi::consts::MPI_ERR_COUNT)?;
        let datatype = cx.get::<kinds::Datatype>(datatype, "datatype")?;
        args::at_least(ndests.into(), 0, "ndests", limosa_mpi::consts::MPI_ERR_ARG)?;
        let dests = cx.slice(dests, ndests as usize, "dests")?;
        multicast(&comm, region(buffer, count, &datatype)?, source, dests, tag)
    })
}
