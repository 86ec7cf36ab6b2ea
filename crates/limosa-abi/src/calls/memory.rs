//! Addresses and memory (MPI-5 sections 5.1.5 and 9.2).

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::sync::Arc;

use limosa_mpi::{Error, Result, consts, instance};
use limosa_rma::allocated::{self, LINE, alignment};

use crate::args;
use crate::cx::Cx;
use crate::kinds::Info;

/// Head at the end of the bytes that precede a block: its size and alignment.
type Head = [usize; 2];

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

/// Allocates memory that other processes of this host can map, if there are any: windows of it are accessed directly.
fn shared(size: i64, alignment: usize) -> Option<*mut u8> {
    allocated::allocate(instance::world()?.engine_if_any()?, usize::try_from(size).ok()?, alignment)
}

pub(crate) fn mpi_alloc_mem(_cx: &Cx, size: i64, info: Option<&Arc<Info>>, baseptr: *mut c_void) -> Result<()> {
    args::not_null(baseptr, "baseptr")?;
    let alignment = alignment(info.map(|info| &**info));
    if let Some(start) = shared(size, alignment) {
        // SAFETY: as below.
        unsafe { baseptr.cast::<*mut u8>().write_unaligned(start) };
        return Ok(());
    }
    let no_memory = || Error::new(consts::MPI_ERR_NO_MEM, format!("{size} bytes could not be allocated"));
    let total = usize::try_from(size).ok().and_then(|n| n.checked_add(alignment)).ok_or_else(no_memory)?;
    let layout = Layout::from_size_align(total, alignment).map_err(|_| no_memory())?;
    // SAFETY: the layout is not empty; the head fits before the aligned start.
    let start = unsafe {
        let block = alloc::alloc(layout);
        if block.is_null() {
            return Err(no_memory());
        }
        let start = block.add(alignment);
        start.cast::<Head>().sub(1).write([total, alignment]);
        start
    };
    // SAFETY: `baseptr` is the address of a pointer of the program, checked for null above; it need not be aligned like
    // a Rust pointer.
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
    // SAFETY: the program promises a block of `mpi_alloc_mem`, which follows a head.
    unsafe {
        let [total, alignment] = base.cast::<Head>().sub(1).read();
        alloc::dealloc(base.cast::<u8>().sub(alignment), Layout::from_size_align_unchecked(total, alignment));
    }
    Ok(())
}
