//! Files (MPI-5 chapter 14): opening and closing, properties, views, and file pointers. Data accesses are in
//! `file_access.rs`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_io::{Conversion, Extent};
use limosa_mpi::{Error, Result, consts, error_code};

use crate::args::{self, AnyFn, OutInt};
use crate::callback;
use crate::calls::datatype::handle_of_part;
use crate::calls::errhandler::handle_of;
use crate::calls::group::register_group;
use crate::cx::Cx;
use crate::errors::{self, ErrorTarget};
use crate::handles::Handle;
use crate::kinds::{self, File};

pub(crate) fn mpi_file_open(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    filename: &CStr,
    amode: c_int,
    info: Option<&Arc<kinds::Info>>,
    fh: &mut Handle,
) -> Result<()> {
    *fh = Handle::predefined(consts::MPI_FILE_NULL);
    let opened = File::open(comm, filename, amode, info.map(|info| &**info))?;
    *fh = cx.register(opened)?;
    Ok(())
}

/// Keeps the handle valid if the file cannot be closed.
pub(crate) fn mpi_file_close(cx: &Cx, fh: &mut Handle) -> Result<()> {
    let file = Arc::clone(&*cx.get::<File>(*fh, "fh")?);
    let closed = file.close();
    if file.is_closed() {
        // From here on an error is still one of this file.
        if closed.is_err() {
            cx.blame_handler(&file.errhandler());
        }
        drop(file);
        cx.free::<File>(fh, "fh")?;
    }
    closed
}

pub(crate) fn mpi_file_delete(_cx: &Cx, filename: &CStr, _info: Option<&Arc<kinds::Info>>) -> Result<()> {
    limosa_io::delete(filename)
}

pub(crate) fn mpi_file_get_amode(_cx: &Cx, fh: &Arc<File>, amode: &mut c_int) -> Result<()> {
    *amode = fh.amode();
    Ok(())
}

pub(crate) fn mpi_file_get_group(cx: &Cx, fh: &Arc<File>, group: &mut Handle) -> Result<()> {
    *group = register_group(cx, fh.group().clone())?;
    Ok(())
}

pub(crate) fn mpi_file_get_size(_cx: &Cx, fh: &Arc<File>, size: &mut i64) -> Result<()> {
    *size = fh.size()?;
    Ok(())
}

pub(crate) fn mpi_file_set_size(_cx: &Cx, fh: &Arc<File>, size: i64) -> Result<()> {
    fh.set_size(size)
}

pub(crate) fn mpi_file_preallocate(_cx: &Cx, fh: &Arc<File>, size: i64) -> Result<()> {
    fh.preallocate(size)
}

pub(crate) fn mpi_file_sync(_cx: &Cx, fh: &Arc<File>) -> Result<()> {
    fh.sync()
}

pub(crate) fn mpi_file_set_atomicity(_cx: &Cx, fh: &Arc<File>, flag: bool) -> Result<()> {
    fh.set_atomicity(flag)
}

pub(crate) fn mpi_file_get_atomicity(_cx: &Cx, fh: &Arc<File>, flag: &mut c_int) -> Result<()> {
    *flag = fh.atomicity().into();
    Ok(())
}

pub(crate) fn mpi_file_set_info(_cx: &Cx, fh: &Arc<File>, info: Option<&Arc<kinds::Info>>) -> Result<()> {
    fh.set_info(info.map(|info| &**info))
}

pub(crate) fn mpi_file_get_info(cx: &Cx, fh: &Arc<File>, info_used: &mut Handle) -> Result<()> {
    *info_used = cx.register(fh.info()?)?;
    Ok(())
}

pub(crate) fn mpi_file_set_view(
    _cx: &Cx,
    fh: &Arc<File>,
    disp: i64,
    etype: &Arc<kinds::Datatype>,
    filetype: &Arc<kinds::Datatype>,
    datarep: &CStr,
    info: Option<&Arc<kinds::Info>>,
) -> Result<()> {
    fh.set_view(disp, etype, filetype, &datarep.to_string_lossy(), info.map(|info| &**info))
}

pub(crate) fn mpi_file_get_view(
    cx: &Cx,
    fh: &Arc<File>,
    disp: &mut i64,
    etype: &mut Handle,
    filetype: &mut Handle,
    datarep: *mut c_char,
) -> Result<()> {
    args::not_null(datarep, "datarep")?;
    let (place, element, seen, name) = fh.view_parts();
    *disp = place;
    *etype = handle_of_part(cx, element)?;
    *filetype = handle_of_part(cx, seen)?;
    // SAFETY: the program promises room for MPI_MAX_DATAREP_STRING bytes.
    unsafe { args::copy_text(datarep, consts::MPI_MAX_DATAREP_STRING as usize, &name) };
    Ok(())
}

pub(crate) fn mpi_file_get_type_extent(
    _cx: &Cx,
    fh: &Arc<File>,
    datatype: &Arc<kinds::Datatype>,
    extent: OutInt,
) -> Result<()> {
    extent.set(fh.type_extent(datatype)?);
    Ok(())
}

pub(crate) fn mpi_file_get_byte_offset(_cx: &Cx, fh: &Arc<File>, offset: i64, disp: &mut i64) -> Result<()> {
    *disp = fh.byte_offset(offset)?;
    Ok(())
}

pub(crate) fn mpi_file_seek(_cx: &Cx, fh: &Arc<File>, offset: i64, whence: c_int) -> Result<()> {
    fh.seek(offset, whence)
}

pub(crate) fn mpi_file_get_position(_cx: &Cx, fh: &Arc<File>, offset: &mut i64) -> Result<()> {
    *offset = fh.position()?;
    Ok(())
}

pub(crate) fn mpi_file_seek_shared(_cx: &Cx, fh: &Arc<File>, offset: i64, whence: c_int) -> Result<()> {
    fh.seek_shared(offset, whence)
}

pub(crate) fn mpi_file_get_position_shared(_cx: &Cx, fh: &Arc<File>, offset: &mut i64) -> Result<()> {
    *offset = fh.shared_position()?;
    Ok(())
}

/// Sets, for the null handle, the error handler of files that are opened from now on.
pub(crate) fn mpi_file_set_errhandler(
    _cx: &Cx,
    file: Option<&Arc<File>>,
    errhandler: &Arc<kinds::Errhandler>,
) -> Result<()> {
    match file {
        Some(file) => file.set_errhandler(errhandler.clone()),
        None => limosa_io::set_default_errhandler(errhandler.clone()),
    }
}

pub(crate) fn mpi_file_get_errhandler(cx: &Cx, file: Option<&Arc<File>>, errhandler: &mut Handle) -> Result<()> {
    let handler = file.map_or_else(limosa_io::default_errhandler, |file| file.errhandler());
    *errhandler = handle_of(cx, &handler)?;
    Ok(())
}

/// Succeeds if the handler was called and returned.
pub(crate) fn mpi_file_call_errhandler(cx: &Cx, fh: &Arc<File>, errorcode: c_int) -> Result<()> {
    error_code::class_of(errorcode)?;
    let text = error_code::own_string(errorcode).map_or_else(String::new, |text| format!(": {text}"));
    let detail = format!("the program itself raised this error{text}");
    let handle = Handle(fh.handle.load(Ordering::Relaxed));
    errors::raise(cx.name(), ErrorTarget::File(handle), Error::verbatim(errorcode, detail));
    Ok(())
}

/// Address that the program's functions get back.
#[derive(Clone, Copy)]
struct ExtraState(*mut c_void);

// SAFETY: the library only passes it to the program's functions.
unsafe impl Send for ExtraState {}
// SAFETY: as above.
unsafe impl Sync for ExtraState {}

impl ExtraState {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Converts the result of a function of the program.
fn outcome(code: c_int, what: &str) -> Result<()> {
    match code {
        consts::MPI_SUCCESS => Ok(()),
        code => Err(Error::new(
            consts::MPI_ERR_CONVERSION,
            format!("the {what} function of the data representation has returned the error code {code}"),
        )),
    }
}

/// Converts a conversion function of the program; `None` for `MPI_CONVERSION_FN_NULL`.
fn conversion(function: AnyFn, is_large: bool, state: ExtraState, what: &'static str) -> Option<Conversion> {
    let function = function?;
    Some(Arc::new(move |user, datatype, count, file, position| {
        let (datatype, extra) = (Handle(datatype.handle()), state.get());
        // SAFETY: the program promises a function of the type that belongs to the form of MPI_Register_datarep that it
        // called, and the buffers have the elements that it is told.
        let code = unsafe {
            if is_large {
                let function: callback::MPI_Datarep_conversion_function_c = std::mem::transmute(function);
                function(user.cast(), datatype, count, file.cast(), position, extra)
            } else {
                let function: callback::MPI_Datarep_conversion_function = std::mem::transmute(function);
                let Ok(count) = c_int::try_from(count) else {
                    return Err(Error::new(
                        consts::MPI_ERR_COUNT,
                        "the conversion function takes counts of int only: register it with MPI_Register_datarep_c",
                    ));
                };
                function(user.cast(), datatype, count, file.cast(), position, extra)
            }
        };
        outcome(code, what)
    }))
}

pub(crate) fn mpi_register_datarep(
    cx: &Cx,
    datarep: &CStr,
    read_conversion_fn: AnyFn,
    write_conversion_fn: AnyFn,
    dtype_file_extent_fn: Option<callback::MPI_Datarep_extent_function>,
    extra_state: *mut c_void,
) -> Result<()> {
    let Some(function) = dtype_file_extent_fn else {
        return Err(Error::new(
            consts::MPI_ERR_ARG,
            "dtype_file_extent_fn is a null pointer; give a function that says how long types are in the file",
        ));
    };
    let state = ExtraState(extra_state);
    let extent: Extent = Arc::new(move |datatype| {
        let mut extent = 0;
        // SAFETY: the program promises a function of this type.
        let code = unsafe { function(Handle(datatype.handle()), &raw mut extent, state.get()) };
        outcome(code, "extent")?;
        Ok(extent)
    });
    let read = conversion(read_conversion_fn, cx.large(), state, "read conversion");
    let write = conversion(write_conversion_fn, cx.large(), state, "write conversion");
    limosa_io::register(&datarep.to_string_lossy(), read, write, extent)
}
