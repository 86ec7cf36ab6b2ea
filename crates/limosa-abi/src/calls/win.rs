//! Windows (MPI-5 chapter 12): creation, attributes, and synchronisation. Accesses are in `rma.rs`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::{Error, Result, consts, error_code};
use limosa_rma::{Flavor, LockKind, WindowPart};

use crate::args::{self, OutInt};
use crate::calls::attr::give;
use crate::calls::errhandler::handle_of;
use crate::calls::group::register_group;
use crate::cx::Cx;
use crate::errors::{self, ErrorTarget};
use crate::handles::Handle;
use crate::kinds::{self, Window};
use crate::latest;

fn make(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    part: WindowPart,
    info: Option<&Arc<kinds::Info>>,
    win: &mut Handle,
) -> Result<Arc<Window>> {
    *win = Handle::predefined(consts::MPI_WIN_NULL);
    comm.check_intra()?;
    let made = Window::make(comm, part, info.map(|info| &**info))?;
    *win = cx.register(made.clone())?;
    Ok(made)
}

/// Stores an address at the address of a pointer.
fn set_base(baseptr: *mut c_void, base: *mut u8) {
    // SAFETY: the program promises the address of a pointer, which was checked for null; it need not be aligned.
    unsafe { baseptr.cast::<*mut u8>().write_unaligned(base) };
}

pub(crate) fn mpi_win_create(
    cx: &Cx,
    base: *mut c_void,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<kinds::Info>>,
    comm: &Arc<kinds::Communicator>,
    win: &mut Handle,
) -> Result<()> {
    let part = WindowPart { flavor: Flavor::Create, base: base.cast(), size, unit: disp_unit };
    make(cx, comm, part, info, win).map(|_| ())
}

/// Creates a window on memory of the library, private to each process or shared.
fn allocate(
    cx: &Cx,
    flavor: Flavor,
    [size, unit]: [i64; 2],
    info: Option<&Arc<kinds::Info>>,
    comm: &Arc<kinds::Communicator>,
    baseptr: *mut c_void,
    win: &mut Handle,
) -> Result<()> {
    args::not_null(baseptr, "baseptr")?;
    let part = WindowPart { flavor, base: std::ptr::null_mut(), size, unit };
    let made = make(cx, comm, part, info, win)?;
    set_base(baseptr, made.base());
    Ok(())
}

pub(crate) fn mpi_win_allocate(
    cx: &Cx,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<kinds::Info>>,
    comm: &Arc<kinds::Communicator>,
    baseptr: *mut c_void,
    win: &mut Handle,
) -> Result<()> {
    allocate(cx, Flavor::Allocate, [size, disp_unit], info, comm, baseptr, win)
}

pub(crate) fn mpi_win_allocate_shared(
    cx: &Cx,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<kinds::Info>>,
    comm: &Arc<kinds::Communicator>,
    baseptr: *mut c_void,
    win: &mut Handle,
) -> Result<()> {
    allocate(cx, Flavor::Shared, [size, disp_unit], info, comm, baseptr, win)
}

pub(crate) fn mpi_win_shared_query(
    _cx: &Cx,
    win: &Arc<Window>,
    rank: c_int,
    size: &mut i64,
    disp_unit: OutInt,
    baseptr: *mut c_void,
) -> Result<()> {
    args::not_null(baseptr, "baseptr")?;
    let (bytes, unit, base) = win.query(rank)?;
    *size = bytes;
    disp_unit.set(unit);
    set_base(baseptr, base);
    Ok(())
}

pub(crate) fn mpi_win_create_dynamic(
    cx: &Cx,
    info: Option<&Arc<kinds::Info>>,
    comm: &Arc<kinds::Communicator>,
    win: &mut Handle,
) -> Result<()> {
    let part = WindowPart { flavor: Flavor::Dynamic, base: std::ptr::null_mut(), size: 0, unit: 1 };
    make(cx, comm, part, info, win).map(|_| ())
}

pub(crate) fn mpi_win_attach(_cx: &Cx, win: &Arc<Window>, base: *mut c_void, size: i64) -> Result<()> {
    win.attach(base.cast(), size)
}

pub(crate) fn mpi_win_detach(_cx: &Cx, win: &Arc<Window>, base: *mut c_void) -> Result<()> {
    win.detach(base.cast())
}

/// Keeps the handle valid if the window cannot be freed.
pub(crate) fn mpi_win_free(cx: &Cx, win: &mut Handle) -> Result<()> {
    let window = Arc::clone(&*cx.get::<Window>(*win, "win")?);
    let freed = window.free();
    if window.is_freed() {
        drop(window);
        let gone = cx.free::<Window>(win, "win")?;
        latest::forget();
        drop(gone);
    }
    freed
}

pub(crate) fn mpi_win_get_group(cx: &Cx, win: &Arc<Window>, group: &mut Handle) -> Result<()> {
    *group = register_group(cx, win.group().clone())?;
    Ok(())
}

pub(crate) fn mpi_win_set_info(_cx: &Cx, win: &Arc<Window>, info: Option<&Arc<kinds::Info>>) -> Result<()> {
    if let Some(info) = info {
        win.hints().update(info);
    }
    Ok(())
}

pub(crate) fn mpi_win_get_info(cx: &Cx, win: &Arc<Window>, info_used: &mut Handle) -> Result<()> {
    *info_used = cx.register(win.hints().to_info()?)?;
    Ok(())
}

fn handle(win: &Window) -> usize {
    win.handle.load(Ordering::Relaxed)
}

pub(crate) fn mpi_win_set_attr(
    _cx: &Cx,
    win: &Arc<Window>,
    win_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<()> {
    win.attributes().set(handle(win), win_keyval, attribute_val as usize)
}

pub(crate) fn mpi_win_get_attr(
    _cx: &Cx,
    win: &Arc<Window>,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: &mut c_int,
) -> Result<()> {
    give(win.attribute(win_keyval)?, attribute_val, flag)
}

pub(crate) fn mpi_win_delete_attr(_cx: &Cx, win: &Arc<Window>, win_keyval: c_int) -> Result<()> {
    win.attributes().delete(handle(win), win_keyval)
}

pub(crate) fn mpi_win_set_name(_cx: &Cx, win: &Arc<Window>, win_name: &CStr) -> Result<()> {
    win.set_name(win_name.to_bytes());
    Ok(())
}

/// Returns a name for the null window, too.
pub(crate) fn mpi_win_get_name(
    _cx: &Cx,
    win: Option<&Arc<Window>>,
    win_name: *mut c_char,
    resultlen: &mut c_int,
) -> Result<()> {
    let name = win.map_or_else(|| b"MPI_WIN_NULL".to_vec(), |win| win.name());
    // SAFETY: the program promises room for MPI_MAX_OBJECT_NAME bytes.
    *resultlen = unsafe { args::copy_bytes(win_name, consts::MPI_MAX_OBJECT_NAME as usize, &name) };
    Ok(())
}

pub(crate) fn mpi_win_set_errhandler(_cx: &Cx, win: &Arc<Window>, errhandler: &Arc<kinds::Errhandler>) -> Result<()> {
    win.set_errhandler(errhandler.clone())
}

pub(crate) fn mpi_win_get_errhandler(cx: &Cx, win: &Arc<Window>, errhandler: &mut Handle) -> Result<()> {
    *errhandler = handle_of(cx, &win.errhandler())?;
    Ok(())
}

/// Succeeds if the handler was called and returned.
pub(crate) fn mpi_win_call_errhandler(cx: &Cx, win: &Arc<Window>, errorcode: c_int) -> Result<()> {
    error_code::class_of(errorcode)?;
    let text = error_code::own_string(errorcode).map_or_else(String::new, |text| format!(": {text}"));
    let detail = format!("the program itself raised this error{text}");
    errors::raise(cx.name(), ErrorTarget::Win(Handle(handle(win))), Error::verbatim(errorcode, detail));
    Ok(())
}

pub(crate) fn mpi_win_fence(_cx: &Cx, assert: c_int, win: &Arc<Window>) -> Result<()> {
    win.fence(assert)
}

pub(crate) fn mpi_win_post(_cx: &Cx, group: &Arc<kinds::Group>, assert: c_int, win: &Arc<Window>) -> Result<()> {
    win.post(group, assert)
}

pub(crate) fn mpi_win_start(_cx: &Cx, group: &Arc<kinds::Group>, assert: c_int, win: &Arc<Window>) -> Result<()> {
    win.start(group, assert)
}

pub(crate) fn mpi_win_complete(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.complete()
}

pub(crate) fn mpi_win_wait(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.wait_for_origins()
}

pub(crate) fn mpi_win_test(_cx: &Cx, win: &Arc<Window>, flag: &mut c_int) -> Result<()> {
    *flag = win.test_for_origins()?.into();
    Ok(())
}

pub(crate) fn mpi_win_lock(_cx: &Cx, lock_type: c_int, rank: c_int, assert: c_int, win: &Arc<Window>) -> Result<()> {
    win.lock(LockKind::parse(lock_type)?, rank, assert)
}

pub(crate) fn mpi_win_unlock(_cx: &Cx, rank: c_int, win: &Arc<Window>) -> Result<()> {
    win.unlock(rank)
}

pub(crate) fn mpi_win_lock_all(_cx: &Cx, assert: c_int, win: &Arc<Window>) -> Result<()> {
    win.lock_all(assert)
}

pub(crate) fn mpi_win_unlock_all(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.unlock_all()
}

pub(crate) fn mpi_win_flush(_cx: &Cx, rank: c_int, win: &Arc<Window>) -> Result<()> {
    win.flush(rank)
}

pub(crate) fn mpi_win_flush_all(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.flush_all()
}

/// Needs no communication for operands, which are copied when the access returns; results need the target's answer.
pub(crate) fn mpi_win_flush_local(_cx: &Cx, rank: c_int, win: &Arc<Window>) -> Result<()> {
    win.flush_local(rank)
}

pub(crate) fn mpi_win_flush_local_all(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.flush_local_all()
}

pub(crate) fn mpi_win_sync(_cx: &Cx, win: &Arc<Window>) -> Result<()> {
    win.sync();
    Ok(())
}
