//! Addresses and memory (MPI-5 sections 5.1.5 and 9.2).

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::sync::Arc;

use limosa_mpi::{Error, Result, consts, instance};
use limosa_rma::allocated;

use super::kinds::Info;
use crate::args;
use crate::cx::Cx;

/// Blocks start on a cache line, and are preceded by one that holds their size.
const LINE: usize = 64;

pub(crate) fn mpi_get_address(_cx: &Cx, location: *const c_void, address: &mut i64) -> Result<()> {
    *address = location as i64;
    Ok(())
}

pub(crate) fn mpi_aint_add(_cx: &Cx, base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

pub(crate) fn mpi_aint_diff(_cx: &Cx, addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

/// Memory that other processes of this host can map, if there are any: windows of it are accessed directly.
fn shared(size: i64) -> Option<*mut u8> {
    allocated::allocate(instance::world()?.engine_if_any()?, usize::try_from(size).ok()?)
}

pub(crate) fn mpi_alloc_mem(_cx: &Cx, size: i64, _info: Option<&Arc<Info>>, baseptr: *mut c_void) -> Result<()> {
    args::not_null(baseptr, "baseptr")?;
    if let Some(start) = shared(size) {
        // SAFETY: as below.
        unsafe { baseptr.cast::<*mut u8>().write_unaligned(start) };
        return Ok(());
    }
    let no_memory = || Error::new(consts::MPI_ERR_NO_MEM, format!("{size} bytes could not be allocated"));
    let total = usize::try_from(size).ok().and_then(|n| n.checked_add(LINE)).ok_or_else(no_memory)?;
    let layout = Layout::from_size_align(total, LINE).map_err(|_| no_memory())?;
    // SAFETY: the layout is not empty; the first line of the block has room for the size.
    let start = unsafe {
        let block = alloc::alloc(layout);
        if block.is_null() {
            return Err(no_memory());
        }
        block.cast::<usize>().write(total);
        block.add(LINE)
    };
    // SAFETY: `baseptr` is the address of a pointer of the program, checked for null above; it need not be aligned as
    // Rust's is.
    unsafe { baseptr.cast::<*mut u8>().write_unaligned(start) };
    Ok(())
}

pub(crate) fn mpi_free_mem(_cx: &Cx, base: *mut c_void) -> Result<()> {
    if base.is_null() {
        return Err(Error::new(consts::MPI_ERR_BASE, "base is a null pointer"));
    }
    if allocated::free(base.cast()) {
        return Ok(());
    }
    if !(base as usize).is_multiple_of(LINE) {
        return Err(Error::new(consts::MPI_ERR_BASE, format!("base {base:p} was not allocated by MPI_Alloc_mem")));
    }
    // SAFETY: the program promises a block of `mpi_alloc_mem`, which is preceded by a line with its size.
    unsafe {
        let block = base.cast::<u8>().sub(LINE);
        let total = block.cast::<usize>().read();
        alloc::dealloc(block, Layout::from_size_align_unchecked(total, LINE));
    }
    Ok(())
}
