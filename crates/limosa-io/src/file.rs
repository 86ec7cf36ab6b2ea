//! Files: opening and closing, properties, and views (MPI-5 sections 14.2, 14.3 and 14.6).
//!
//! Contract
//! - A file has a communicator of its own, a child of the one that it was opened with, and named after the file: hang
//!   reports show that name.
//! - The first process creates the file; the others open it when that has succeeded.
//! - The first process changes the size of the file; no process continues before.

use std::ffi::{CStr, OsStr, c_int};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use limosa_base::file::RangeLock;
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::errhandler::{Errhandler, Scope};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::group::Group;
use limosa_mpi::info::Info;
use limosa_mpi::request::Request;
use parking_lot::{Mutex, RwLock};
use rustix::fs::{FallocateFlags, Mode};
use rustix::io::Errno;

use crate::access::Core;
use crate::agree;
use crate::amode::Amode;
use crate::datarep::{Datarep, room};
use crate::hints::Values;
use crate::mapped::Kept;
use crate::pointers::SharedPointer;
use crate::strips::Strips;
use crate::system::{SystemFile, error_of};
use crate::view::View;

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

impl Direction {
    pub(crate) fn is_write(self) -> bool {
        self == Direction::Write
    }

    pub(crate) fn noun(self) -> &'static str {
        if self.is_write() { "write" } else { "read" }
    }
}

/// Kind of a split collective access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// `_all`
    All,
    /// `_at_all`
    AtAll,
    /// `_ordered`
    Ordered,
}

impl Split {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Split::All => "all",
            Split::AtAll => "at_all",
            Split::Ordered => "ordered",
        }
    }
}

/// A split collective access in progress.
pub(crate) struct SplitAccess {
    pub split: Split,
    pub direction: Direction,
    pub base: usize,
    pub request: Arc<Request>,
}

impl SplitAccess {
    pub(crate) fn is_in_the_way(&self) -> Error {
        let detail = format!(
            "MPI_File_{}_{}_begin was called before, and has not been ended: until then no other collective access to \
             the file is allowed",
            self.direction.noun(),
            self.split.name()
        );
        Error::new(MPI_ERR_IO, detail)
    }
}

/// An open file.
pub struct File {
    pub(crate) comm: Arc<Comm>,
    pub(crate) core: Arc<Core>,
    amode: Amode,
    view: RwLock<Arc<View>>,
    /// Individual file pointer, in etypes.
    pub(crate) position: Mutex<i64>,
    pub(crate) shared: SharedPointer,
    pub(crate) begun: Mutex<Option<SplitAccess>>,
    /// Strip buffer of an aggregator, reused by collective accesses.
    pub(crate) strip_buffer: Mutex<Vec<u8>>,
    pub(crate) sharing: Mutex<Sharing>,
    pub(crate) kept: Mutex<Kept>,
    /// Set when some process cannot map the file.
    pub(crate) cannot_map: AtomicBool,
    errhandler: RwLock<Arc<Errhandler>>,
    is_closed: AtomicBool,
    /// Handle under which the ABI layer registered this file; 0 if none.
    pub handle: AtomicUsize,
}

/// Shared memory of the file's processes for collective accesses, created on first use.
pub(crate) enum Sharing {
    Untried,
    Impossible,
    Strips(Strips),
}

/// Error handler of newly opened files; `None` is `MPI_ERRORS_RETURN`.
static DEFAULT: RwLock<Option<Arc<Errhandler>>> = RwLock::new(None);

/// Returns the error handler of `MPI_FILE_NULL`, which new files inherit.
pub fn default_errhandler() -> Arc<Errhandler> {
    DEFAULT.read().clone().unwrap_or_else(Errhandler::returning)
}

/// Sets the error handler of `MPI_FILE_NULL`.
///
/// # Errors
/// `MPI_ERR_ERRHANDLER`.
pub fn set_default_errhandler(errhandler: Arc<Errhandler>) -> Result<()> {
    errhandler.check_fits(Scope::File)?;
    *DEFAULT.write() = Some(errhandler);
    Ok(())
}

fn path_of(name: &CStr) -> Result<&Path> {
    if name.is_empty() {
        fail!(MPI_ERR_BAD_FILE, "the file name is empty");
    }
    Ok(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// Performs `MPI_File_delete`.
///
/// # Errors
/// Those of the system.
pub fn delete(name: &CStr) -> Result<()> {
    let path = path_of(name)?;
    rustix::fs::unlink(path).map_err(|error| error_of("deleting", path, error))
}

/// Returns the number of the open descriptor that a path names, such as `/dev/stdout`.
fn descriptor_of(path: &Path) -> Option<i32> {
    match path.to_str()? {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        path => path.strip_prefix("/dev/fd/").or(path.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
}

fn open_here(path: &Path, amode: Amode, is_first: bool, hints: &Values) -> Result<SystemFile> {
    let mode = Mode::from_raw_mode(hints.permissions);
    // A file opened anew would be written from its beginning, over what the program has written to the descriptor.
    let descriptor = descriptor_of(path).filter(|_| amode.is_sequential());
    let open = || match descriptor {
        // SAFETY: the descriptor is borrowed only for this call, which fails if it is not open.
        Some(number) => rustix::io::fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(number) }, 0),
        None => rustix::fs::open(path, amode.flags(is_first), mode),
    };
    let fd = loop {
        match open() {
            Ok(fd) => break fd,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error_of("opening", path, error)),
        }
    };
    let has_no_offsets = rustix::fs::tell(&fd) == Err(Errno::SPIPE);
    if has_no_offsets && !amode.is_sequential() {
        fail!(
            MPI_ERR_AMODE,
            "\"{}\" is a pipe, a terminal or the like, which has no offsets: open it with MPI_MODE_SEQUENTIAL, and use \
             the shared file pointer",
            path.display()
        );
    }
    let stat = rustix::fs::fstat(&fd).map_err(|error| error_of("opening", path, error))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(error_of("opening", path, Errno::ISDIR));
    }
    let is_stream = has_no_offsets || descriptor.is_some();
    Ok(SystemFile::new(fd, path.to_path_buf(), amode.can_read(), is_stream))
}

impl File {
    /// Performs `MPI_File_open`, on all members of a communicator.
    ///
    /// # Errors
    /// `MPI_ERR_AMODE`, `MPI_ERR_NOT_SAME`, `MPI_ERR_COMM`, and those of the system; at all members.
    pub fn open(comm: &Arc<Comm>, name: &CStr, amode: c_int, info: Option<&Info>) -> Result<Arc<File>> {
        comm.check_intra()?;
        let Some(comm) = comm.create(comm.group())? else {
            fail!(MPI_ERR_INTERN, "this process is no member of its communicator")
        };
        comm.set_name(&[b"file ", name.to_bytes()].concat());
        let opened = File::open_on(&comm, name, amode, info);
        if opened.is_err() {
            // The communicator has no other user.
            let _ = comm.free();
        }
        opened
    }

    fn open_on(comm: &Arc<Comm>, name: &CStr, amode: c_int, info: Option<&Info>) -> Result<Arc<File>> {
        let mut hints = Values::new(info);
        let checked = path_of(name).and_then(|path| Ok((path, Amode::new(amode)?)));
        let common = hints.common();
        let words = [amode as u64, common[0], common[1], common[2]];
        let ((path, amode), all) = agree::on(comm, checked, words)?;
        if let Some(rank) = all.iter().position(|words| words[0] != all[0][0]) {
            fail!(
                MPI_ERR_NOT_SAME,
                "amode must be the same at all processes, but is {:#x} at rank 0 and {:#x} at rank {rank}",
                all[0][0],
                all[rank][0]
            );
        }
        hints.set_common([all[0][1], all[0][2], all[0][3]]);
        let is_first = comm.rank() == 0;
        let first = if is_first { open_here(path, amode, true, &hints).map(Some) } else { Ok(None) };
        let system = match agree::on_outcome(comm, first)? {
            Some(system) if comm.size() == 1 => system,
            first => agree::on_outcome(comm, first.map_or_else(|| open_here(path, amode, false, &hints), Ok))?,
        };
        let end = if amode.has(MPI_MODE_APPEND) { system.size()? as i64 } else { 0 };
        let shared = SharedPointer::make(comm)?;
        if is_first && end > 0 {
            shared.set(end)?;
        }
        if end > 0 {
            limosa_coll::barrier(comm)?;
        }
        let core = Core {
            system,
            can_read: amode.can_read(),
            is_atomic: AtomicBool::new(false),
            may_sieve: AtomicBool::new(false),
            hints: RwLock::new(hints),
            outstanding: AtomicUsize::new(0),
        };
        Ok(Arc::new(File {
            comm: comm.clone(),
            core: Arc::new(core),
            amode,
            view: RwLock::new(Arc::new(View::bytes())),
            position: Mutex::new(end),
            shared,
            begun: Mutex::new(None),
            strip_buffer: Mutex::default(),
            sharing: Mutex::new(Sharing::Untried),
            kept: Mutex::default(),
            cannot_map: AtomicBool::new(false),
            errhandler: RwLock::new(default_errhandler()),
            is_closed: AtomicBool::new(false),
            handle: AtomicUsize::new(0),
        }))
    }

    /// Performs `MPI_File_close`, collectively. The file stays open if a process has pending accesses
    /// ([`File::is_closed`]).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST`, and those of the system.
    pub fn close(&self) -> Result<()> {
        agree::on_outcome(&self.comm, self.check_nothing_under_way())?;
        self.is_closed.store(true, Ordering::Release);
        self.kept.lock().clear();
        let freed = match std::mem::replace(&mut *self.sharing.lock(), Sharing::Impossible) {
            Sharing::Strips(strips) => strips.free(),
            Sharing::Untried | Sharing::Impossible => Ok(()),
        };
        let freed = freed.and(self.shared.free());
        let deleted = if self.amode.has(MPI_MODE_DELETE_ON_CLOSE) {
            let path = self.core.system.path();
            // All processes have ended their accesses.
            let deleted = match self.comm.rank() {
                0 => rustix::fs::unlink(path).map_err(|error| error_of("deleting", path, error)),
                _ => Ok(()),
            };
            agree::on_outcome(&self.comm, deleted)
        } else {
            Ok(())
        };
        self.comm.free()?;
        freed.and(deleted)
    }

    fn check_nothing_under_way(&self) -> Result<()> {
        if self.begun.lock().is_some() {
            fail!(
                MPI_ERR_REQUEST,
                "a split collective access to \"{}\" has begun and not ended: call the function that ends it first",
                self.core.system.path().display()
            );
        }
        match self.core.outstanding.load(Ordering::Relaxed) {
            0 => Ok(()),
            n => fail!(
                MPI_ERR_REQUEST,
                "{n} non-blocking accesses to \"{}\" have not been completed: wait for their requests first",
                self.core.system.path().display()
            ),
        }
    }

    /// Returns whether the file was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns the name under which the file was opened.
    pub fn path(&self) -> PathBuf {
        self.core.system.path().to_path_buf()
    }

    /// Returns the group of processes that have opened the file.
    pub fn group(&self) -> &Arc<Group> {
        self.comm.group()
    }

    /// Returns the access mode.
    pub fn amode(&self) -> c_int {
        self.amode.bits()
    }

    /// Performs `MPI_File_get_size`.
    ///
    /// # Errors
    /// The system's.
    pub fn size(&self) -> Result<i64> {
        self.core.system.size().map(|size| size as i64)
    }

    /// Performs `MPI_File_set_size`, collectively.
    ///
    /// # Errors
    /// `MPI_ERR_READ_ONLY`, `MPI_ERR_ARG`, `MPI_ERR_NOT_SAME`, and those of the system.
    pub fn set_size(&self, size: i64) -> Result<()> {
        self.change_size(size, |file| {
            rustix::fs::ftruncate(file.fd(), size as u64).map_err(|error| file.error("setting the size of", error))
        })
    }

    /// Performs `MPI_File_preallocate`, collectively.
    ///
    /// # Errors
    /// As for [`File::set_size`].
    pub fn preallocate(&self, size: i64) -> Result<()> {
        self.change_size(size, |file| match rustix::fs::fallocate(file.fd(), FallocateFlags::empty(), 0, size as u64) {
            Ok(()) => Ok(()),
            Err(Errno::INVAL) if size == 0 => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file, size as u64),
            Err(error) => Err(file.error("reserving space for", error)),
        })
    }

    fn change_size(&self, size: i64, change: impl FnOnce(&SystemFile) -> Result<()>) -> Result<()> {
        let checked = self.check_writes().and_then(|()| match size {
            0.. => Ok(()),
            _ => fail!(MPI_ERR_ARG, "size is {size}, but it must not be negative"),
        });
        let checked = checked.and_then(|()| self.check_nothing_under_way());
        agree::on_same(&self.comm, checked, size as u64, "size")?;
        let changed = if self.comm.rank() == 0 { change(&self.core.system) } else { Ok(()) };
        agree::on_outcome(&self.comm, changed)
    }

    /// Performs `MPI_File_sync`, collectively: all earlier writes of the processes are on the disk.
    ///
    /// # Errors
    /// The system's, and `MPI_ERR_REQUEST` if accesses are pending.
    pub fn sync(&self) -> Result<()> {
        let system = &self.core.system;
        let synced = self.check_nothing_under_way().and_then(|()| match rustix::fs::fsync(system.fd()) {
            Err(Errno::INVAL) if system.is_stream() => Ok(()),
            synced => synced.map_err(|error| system.error("flushing", error)),
        });
        agree::on_outcome(&self.comm, synced)
    }

    /// Performs `MPI_File_set_atomicity`, collectively.
    ///
    /// # Errors
    /// `MPI_ERR_NOT_SAME`, and those of a file system without locks.
    pub fn set_atomicity(&self, is_atomic: bool) -> Result<()> {
        // A lock now shows whether the file system supports locks, before the first access.
        let lock = if self.amode.can_read() { RangeLock::Shared } else { RangeLock::Exclusive };
        let tried = if is_atomic { self.core.system.lock(lock, 0, 1).map(drop) } else { Ok(()) };
        agree::on_same(&self.comm, tried, u64::from(is_atomic), "flag")?;
        self.core.is_atomic.store(is_atomic, Ordering::Relaxed);
        Ok(())
    }

    /// Performs `MPI_File_get_atomicity`.
    pub fn atomicity(&self) -> bool {
        self.core.is_atomic.load(Ordering::Relaxed)
    }

    /// Returns the view.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Performs `MPI_File_get_view`. Returns displacement, etype, filetype and name of the data representation.
    pub fn view_parts(&self) -> (i64, Arc<Datatype>, Arc<Datatype>, String) {
        let view = self.view();
        (view.disp as i64, view.etype.clone(), view.filetype.clone(), view.datarep.name().to_owned())
    }

    /// Performs `MPI_File_get_type_extent`.
    ///
    /// # Errors
    /// Those of the functions of a data representation.
    pub fn type_extent(&self, datatype: &Arc<Datatype>) -> Result<i64> {
        Ok(self.view().datarep.in_file(datatype)?.extent())
    }

    /// Performs `MPI_File_set_view`, collectively.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, `MPI_ERR_TYPE`, `MPI_ERR_UNSUPPORTED_DATAREP`, `MPI_ERR_NOT_SAME`.
    pub fn set_view(
        &self,
        disp: i64,
        etype: &Arc<Datatype>,
        filetype: &Arc<Datatype>,
        datarep: &str,
        info: Option<&Info>,
    ) -> Result<()> {
        let made = self.check_nothing_under_way().and_then(|()| self.make_view(disp, etype, filetype, datarep));
        let mut hints = self.core.hints.read().clone();
        hints.update(info);
        let name = datarep.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let (extent, gaps) = made.as_ref().map_or((0, 0), |view| (view.etype_extent, u64::from(view.start.is_none())));
        let [a, b, c] = hints.common();
        let (view, all) = agree::on(&self.comm, made, [extent as u64, name, gaps, a, b, c])?;
        if let Some(rank) = all.iter().position(|words| words[..2] != all[0][..2]) {
            fail!(
                MPI_ERR_NOT_SAME,
                "data representation and extent of the etype must be the same at all processes of the file, but those of \
                 ranks 0 and {rank} differ"
            );
        }
        hints.set_common([all[0][3], all[0][4], all[0][5]]);
        *self.core.hints.write() = hints;
        self.core.may_sieve.store(all.iter().any(|words| words[2] != 0), Ordering::Relaxed);
        *self.view.write() = Arc::new(view);
        *self.position.lock() = 0;
        // All processes are here, so none uses the pointer; none continues before it is 0.
        let set = if self.comm.rank() == 0 { self.shared.set(0) } else { Ok(()) };
        agree::on_outcome(&self.comm, set)
    }

    fn make_view(&self, disp: i64, etype: &Arc<Datatype>, filetype: &Arc<Datatype>, datarep: &str) -> Result<View> {
        let sequential = self.amode.is_sequential();
        let disp = match disp {
            MPI_DISPLACEMENT_CURRENT if sequential => self.view().byte_of(self.shared.get()? as u64) as i64,
            _ if sequential => fail!(
                MPI_ERR_ARG,
                "disp is {disp}, but a file that was opened with MPI_MODE_SEQUENTIAL needs MPI_DISPLACEMENT_CURRENT"
            ),
            0.. => disp,
            _ => fail!(MPI_ERR_ARG, "disp is {disp}, but it must not be negative"),
        };
        let view = View::new(disp as u64, etype, filetype, Datarep::find(datarep)?)?;
        if self.amode.can_write() && view.overlaps {
            fail!(MPI_ERR_TYPE, "the filetype overlaps itself, which is allowed for files that are only read");
        }
        Ok(view)
    }

    /// Performs `MPI_File_set_info`, collectively.
    ///
    /// # Errors
    /// Errors of the machine.
    pub fn set_info(&self, info: Option<&Info>) -> Result<()> {
        let mut hints = self.core.hints.read().clone();
        hints.update(info);
        let all = agree::words(&self.comm, hints.common())?;
        hints.set_common(all[0]);
        *self.core.hints.write() = hints;
        Ok(())
    }

    /// Performs `MPI_File_get_info`.
    ///
    /// # Errors
    /// None.
    pub fn info(&self) -> Result<Arc<Info>> {
        self.core.hints.read().to_info()
    }

    /// Returns the current error handler.
    pub fn errhandler(&self) -> Arc<Errhandler> {
        self.errhandler.read().clone()
    }

    /// Sets the error handler.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER`.
    pub fn set_errhandler(&self, errhandler: Arc<Errhandler>) -> Result<()> {
        errhandler.check_fits(Scope::File)?;
        *self.errhandler.write() = errhandler;
        Ok(())
    }

    /// Fails if the file is not open for writing.
    pub(crate) fn check_writes(&self) -> Result<()> {
        if self.amode.can_write() {
            return Ok(());
        }
        fail!(
            MPI_ERR_READ_ONLY,
            "\"{}\" was opened with MPI_MODE_RDONLY, so it cannot be changed",
            self.core.system.path().display()
        )
    }

    /// Fails if the file is not open for reading.
    pub(crate) fn check_reads(&self) -> Result<()> {
        if self.amode.can_read() {
            return Ok(());
        }
        fail!(
            MPI_ERR_ACCESS,
            "\"{}\" was opened with MPI_MODE_WRONLY, so nothing can be read there",
            self.core.system.path().display()
        )
    }

    /// Fails if only the shared file pointer may be used.
    pub(crate) fn check_not_sequential(&self) -> Result<()> {
        if !self.amode.is_sequential() {
            return Ok(());
        }
        Err(Error::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            format!(
                "\"{}\" was opened with MPI_MODE_SEQUENTIAL, which allows accesses with the shared file pointer only",
                self.core.system.path().display()
            ),
        ))
    }
}

/// Extends a file to `size` bytes by writing zeros, where the system cannot reserve space.
fn fill(file: &SystemFile, size: u64) -> Result<()> {
    let zeros = room(1 << 20)?;
    let mut at = file.size()?;
    while at < size {
        at += file.write(&zeros[..zeros.len().min((size - at) as usize)], at)? as u64;
    }
    Ok(())
}

/// File pointers (MPI-5 section 14.4): one per process, and one shared by all. Both count etypes of the view.
impl File {
    /// Returns the target of a seek.
    fn target(&self, offset: i64, whence: c_int, current: impl FnOnce() -> Result<i64>) -> Result<i64> {
        let base = match whence {
            MPI_SEEK_SET => 0,
            MPI_SEEK_CUR => current()?,
            MPI_SEEK_END => self.view().end(self.core.system.size()?),
            _ => fail!(MPI_ERR_ARG, "whence is {whence}, but must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"),
        };
        match base.checked_add(offset) {
            Some(to) if to >= 0 => Ok(to),
            _ => fail!(MPI_ERR_ARG, "the offset {offset} from {base} lies before the beginning of the view"),
        }
    }

    /// Performs `MPI_File_seek`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn seek(&self, offset: i64, whence: c_int) -> Result<()> {
        self.check_not_sequential()?;
        let mut position = self.position.lock();
        *position = self.target(offset, whence, || Ok(*position))?;
        Ok(())
    }

    /// Performs `MPI_File_get_position`.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn position(&self) -> Result<i64> {
        self.check_not_sequential()?;
        Ok(*self.position.lock())
    }

    /// Performs `MPI_File_seek_shared`, collectively.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, `MPI_ERR_NOT_SAME`, `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn seek_shared(&self, offset: i64, whence: c_int) -> Result<()> {
        let checked = self.check_not_sequential();
        let value = (offset as u64).rotate_left(16) ^ u64::from(whence as u32);
        agree::on_same(&self.comm, checked, value, "offset and whence")?;
        let sought = if self.comm.rank() == 0 {
            self.target(offset, whence, || self.shared.get()).and_then(|to| self.shared.set(to))
        } else {
            Ok(())
        };
        agree::on_outcome(&self.comm, sought)
    }

    /// Performs `MPI_File_get_position_shared`.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn shared_position(&self) -> Result<i64> {
        self.check_not_sequential()?;
        self.shared.get()
    }

    /// Performs `MPI_File_get_byte_offset`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn byte_offset(&self, offset: i64) -> Result<i64> {
        self.check_not_sequential()?;
        let view = self.view();
        let at = self.stream_offset(&view, offset)?;
        Ok(view.byte_of(at) as i64)
    }
}
