//! What the library has beside the standard: the functions that `limosa.h` declares.

use std::ffi::{c_int, c_void};

use limosa_coll::multicast;

use crate::args;
use crate::calls::kinds;
use crate::calls::p2p::region;
use crate::cx::{Target, When, enter};
use crate::handles::Handle;

/// A message from one process to a list of processes; see `limosa.h`.
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
    enter("limosa_mcast", false, When::Running, Target::Comm(comm), |cx| {
        let comm = cx.get::<kinds::Communicator>(comm, "comm")?;
        args::at_least(count, 0, "count", limosa_mpi::consts::MPI_ERR_COUNT)?;
        let datatype = cx.get::<kinds::Datatype>(datatype, "datatype")?;
        args::at_least(ndests.into(), 0, "ndests", limosa_mpi::consts::MPI_ERR_ARG)?;
        let dests = cx.slice(dests, ndests as usize, "dests")?;
        multicast(&comm, region(buffer, count, &datatype)?, source, dests, tag)
    })
}
