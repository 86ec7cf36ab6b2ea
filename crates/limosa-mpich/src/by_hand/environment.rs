//! Texts whose buffers are shorter in the program's ABI, buffers for buffered sends, and what else differs.

use std::ffi::{CStr, c_char};
use std::sync::atomic::AtomicI32;

use crate::convert::{Communicator, Handle, Info, Kind, Session, buffer_to_standard, buffer_to_theirs, result};
use crate::errors::raise;
use crate::standard::{LIBRARY, OWNER, VERSION};
use crate::standard::{abi, standard_value as standard, their_value as theirs};

/// The exit code is the program's, not an error code.
pub(crate) unsafe fn mpi_abort(comm: Handle<Communicator>, code: i32) -> i32 {
    // SAFETY: the library checks the communicator.
    unsafe { result(abi::MPI_Abort(Communicator::to_standard(comm), code)) }
}

/// The variable arguments mean nothing to the library.
pub(crate) unsafe fn mpi_pcontrol(level: i32) -> i32 {
    // SAFETY: any number may be passed.
    unsafe { result(abi::MPI_Pcontrol(level)) }
}

/// Writes a text, cut to `room` bytes with the null character, and its length.
pub(crate) unsafe fn give(text: &str, room: usize, to: usize, length: usize) {
    let mut end = text.len().min(room - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: the buffer has `room` bytes.
    unsafe {
        if to != 0 {
            std::ptr::copy_nonoverlapping(text.as_ptr(), to as *mut u8, end);
            *(to as *mut u8).add(end) = 0;
        }
        if length != 0 {
            *(length as *mut i32) = end as i32;
        }
    }
}

/// Returns the text that the library has written to a buffer.
pub(crate) fn text(buffer: &[c_char]) -> String {
    // SAFETY: the buffer ends with a null character: it was full of them, and has one byte more than the library knows.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned()
}

/// As other libraries answer: this is not the standard ABI. mpi4py selects its module by this answer.
pub(crate) unsafe fn mpi_abi_get_version(major: usize, minor: usize) -> i32 {
    // SAFETY: the library checks the addresses; after a success they are those of integers.
    unsafe {
        let code = abi::MPI_Abi_get_version(major, minor);
        if code == 0 {
            *(major as *mut i32) = -1;
            *(minor as *mut i32) = -1;
        }
        result(code)
    }
}

pub(crate) unsafe fn mpi_get_library_version(version: usize, length: usize) -> i32 {
    let mut own = [0 as c_char; standard::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut own_length = 0i32;
    // SAFETY: the library writes to locals; the program's buffer is as long as its header says.
    unsafe {
        let code = abi::MPI_Get_library_version(own.as_mut_ptr() as usize, &raw mut own_length as usize);
        if code == 0 {
            let ours = format!(
                "{}\n{OWNER}'s ABI ({LIBRARY}, as of {OWNER} {VERSION}), translated by Limosa {}",
                text(&own),
                env!("CARGO_PKG_VERSION")
            );
            give(&ours, theirs::MPI_MAX_LIBRARY_VERSION_STRING as usize, version, length);
        }
        result(code)
    }
}

pub(crate) unsafe fn mpi_get_processor_name(name: usize, length: usize) -> i32 {
    let mut own = [0 as c_char; standard::MPI_MAX_PROCESSOR_NAME as usize + 1];
    let mut own_length = 0i32;
    // SAFETY: likewise.
    unsafe {
        let code = abi::MPI_Get_processor_name(own.as_mut_ptr() as usize, &raw mut own_length as usize);
        if code == 0 {
            give(&text(&own), theirs::MPI_MAX_PROCESSOR_NAME as usize, name, length);
        }
        result(code)
    }
}

/// Gives the program the name of a port, or an error if it does not fit.
unsafe fn give_port(code: i32, own: &[c_char], port: usize) -> i32 {
    static TOO_LONG: AtomicI32 = AtomicI32::new(0);
    let (own, room) = (text(own), theirs::MPI_MAX_PORT_NAME as usize);
    if code == 0 && own.len() >= room {
        let said = format!("the name of the port has {} bytes, and {OWNER}'s ABI has room for {}", own.len(), room - 1);
        return raise(&TOO_LONG, standard::MPI_ERR_PORT, &said);
    }
    if code == 0 {
        // SAFETY: the program's buffer is as long as its header says.
        unsafe { give(&own, room, port, 0) };
    }
    result(code)
}

pub(crate) unsafe fn mpi_open_port(info: Handle<Info>, port: usize) -> i32 {
    let mut own = [0 as c_char; standard::MPI_MAX_PORT_NAME as usize + 1];
    // SAFETY: the library writes to a local.
    unsafe {
        let code = abi::MPI_Open_port(Info::to_standard(info), own.as_mut_ptr() as usize);
        give_port(code, &own, port)
    }
}

pub(crate) unsafe fn mpi_lookup_name(service: usize, info: Handle<Info>, port: usize) -> i32 {
    let mut own = [0 as c_char; standard::MPI_MAX_PORT_NAME as usize + 1];
    // SAFETY: likewise.
    unsafe {
        let code = abi::MPI_Lookup_name(service, Info::to_standard(info), own.as_mut_ptr() as usize);
        give_port(code, &own, port)
    }
}

/// In front of a buffer for buffered sends: what the program has attached.
#[repr(C)]
struct Attached {
    buffer: usize,
    size: i64,
    length: usize,
}

/// Returns the address of a buffer to attach in place of the program's, and its size. The overhead of a message is
/// smaller than in the standard ABI, so that the program's buffer may have no room for its messages.
fn attach(buffer: usize, size: i64, most: i64) -> (usize, i64) {
    let buffer = buffer_to_standard(buffer);
    if buffer == standard::MPI_BUFFER_AUTOMATIC as usize || buffer == 0 || size < 0 {
        return (buffer, size);
    }
    let messages = size / i64::from(theirs::MPI_BSEND_OVERHEAD);
    let more = i64::from(standard::MPI_BSEND_OVERHEAD - theirs::MPI_BSEND_OVERHEAD);
    let whole = size.saturating_add(messages.saturating_mul(more)).min(most);
    let length = size_of::<Attached>() + whole as usize;
    // SAFETY: the memory has `length` bytes, room for the header that is written to it.
    unsafe {
        let made = libc::malloc(length).cast::<Attached>();
        if made.is_null() {
            return (0, size); // which the library refuses
        }
        made.write(Attached { buffer, size, length });
        (made.add(1) as usize, whole)
    }
}

/// Frees the buffer at `address`, attached in place of the program's. Returns the program's buffer and its size.
unsafe fn detach(address: usize, size: i64) -> (usize, i64) {
    if address <= standard::MPI_BUFFER_AUTOMATIC as usize {
        return (buffer_to_theirs(address), size);
    }
    let made = address as *mut Attached;
    // SAFETY: every buffer but the automatic one was made by `attach`; its owner has got it back.
    unsafe {
        let made = made.sub(1);
        let attached = made.read();
        libc::free(made.cast());
        (attached.buffer, attached.size)
    }
}

/// Frees what `attach` has made, if the library has refused it.
unsafe fn attached(code: i32, program: usize, own: usize) -> i32 {
    if code != 0 && own != 0 && own != buffer_to_standard(program) {
        // SAFETY: it was made by `attach`, and the library has not taken it.
        unsafe { libc::free((own as *mut Attached).sub(1).cast()) };
    }
    result(code)
}

/// Defines the functions that attach a buffer to an object and detach it, with small or large counts.
macro_rules! buffers {
    ($most:expr, $size:ty, $at:expr, $($object:expr)?, $attach:ident, $detach:ident, $buffer:ident, $length:ident, attach) => {{
        let (own, whole) = attach($buffer, $length as i64, $most);
        // SAFETY: the buffer is as large as the library is told.
        unsafe { attached(abi::$attach($($object,)? own, whole as $size), $buffer, own) }
    }};
    ($most:expr, $size:ty, $at:expr, $($object:expr)?, $attach:ident, $detach:ident, $buffer:ident, $length:ident, detach) => {{
        let (mut own, mut whole) = (0usize, 0 as $size);
        // SAFETY: the addresses are those of locals, and the program's.
        unsafe {
            let code = abi::$detach($($object,)? &raw mut own as usize, &raw mut whole as usize);
            if code == 0 {
                let (buffer, size) = detach(own, whole as i64);
                if $buffer != 0 {
                    *($buffer as *mut usize) = buffer;
                }
                if $length != 0 {
                    *($length as *mut $size) = size as $size;
                }
            }
            result(code)
        }
    }};
}

const SMALL: i64 = i32::MAX as i64;
const LARGE: i64 = i64::MAX / 2;

pub(crate) unsafe fn mpi_buffer_attach(buffer: usize, size: i32) -> i32 {
    buffers!(SMALL, i32, 0, , MPI_Buffer_attach, MPI_Buffer_detach, buffer, size, attach)
}

pub(crate) unsafe fn mpi_buffer_attach_c(buffer: usize, size: i64) -> i32 {
    buffers!(LARGE, i64, 0, , MPI_Buffer_attach_c, MPI_Buffer_detach_c, buffer, size, attach)
}

pub(crate) unsafe fn mpi_buffer_detach(buffer: usize, size: usize) -> i32 {
    buffers!(SMALL, i32, 0, , MPI_Buffer_attach, MPI_Buffer_detach, buffer, size, detach)
}

pub(crate) unsafe fn mpi_buffer_detach_c(buffer: usize, size: usize) -> i32 {
    buffers!(LARGE, i64, 0, , MPI_Buffer_attach_c, MPI_Buffer_detach_c, buffer, size, detach)
}

pub(crate) unsafe fn mpi_comm_attach_buffer(comm: Handle<Communicator>, buffer: usize, size: i32) -> i32 {
    let comm = Communicator::to_standard(comm);
    buffers!(SMALL, i32, 0, comm, MPI_Comm_attach_buffer, MPI_Comm_detach_buffer, buffer, size, attach)
}

pub(crate) unsafe fn mpi_comm_attach_buffer_c(comm: Handle<Communicator>, buffer: usize, size: i64) -> i32 {
    let comm = Communicator::to_standard(comm);
    buffers!(LARGE, i64, 0, comm, MPI_Comm_attach_buffer_c, MPI_Comm_detach_buffer_c, buffer, size, attach)
}

pub(crate) unsafe fn mpi_comm_detach_buffer(comm: Handle<Communicator>, buffer: usize, size: usize) -> i32 {
    let comm = Communicator::to_standard(comm);
    buffers!(SMALL, i32, 0, comm, MPI_Comm_attach_buffer, MPI_Comm_detach_buffer, buffer, size, detach)
}

pub(crate) unsafe fn mpi_comm_detach_buffer_c(comm: Handle<Communicator>, buffer: usize, size: usize) -> i32 {
    let comm = Communicator::to_standard(comm);
    buffers!(LARGE, i64, 0, comm, MPI_Comm_attach_buffer_c, MPI_Comm_detach_buffer_c, buffer, size, detach)
}

pub(crate) unsafe fn mpi_session_attach_buffer(session: Handle<Session>, buffer: usize, size: i32) -> i32 {
    let session = Session::to_standard(session);
    buffers!(SMALL, i32, 0, session, MPI_Session_attach_buffer, MPI_Session_detach_buffer, buffer, size, attach)
}

pub(crate) unsafe fn mpi_session_attach_buffer_c(session: Handle<Session>, buffer: usize, size: i64) -> i32 {
    let session = Session::to_standard(session);
    buffers!(LARGE, i64, 0, session, MPI_Session_attach_buffer_c, MPI_Session_detach_buffer_c, buffer, size, attach)
}

pub(crate) unsafe fn mpi_session_detach_buffer(session: Handle<Session>, buffer: usize, size: usize) -> i32 {
    let session = Session::to_standard(session);
    buffers!(SMALL, i32, 0, session, MPI_Session_attach_buffer, MPI_Session_detach_buffer, buffer, size, detach)
}

pub(crate) unsafe fn mpi_session_detach_buffer_c(session: Handle<Session>, buffer: usize, size: usize) -> i32 {
    let session = Session::to_standard(session);
    buffers!(LARGE, i64, 0, session, MPI_Session_attach_buffer_c, MPI_Session_detach_buffer_c, buffer, size, detach)
}
