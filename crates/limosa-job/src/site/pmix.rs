//! PMIx, by the site's own library, which is loaded while the program runs: few machines have it, and launcher and
//! library must fit together.
//!
//! It is looked for under the name in `LIMOSA_PMIX_LIBRARY`, then as the file that the launcher itself has loaded, then
//! where the system finds libraries. Structures are those of PMIx's header `pmix_common.h`, which have not changed
//! since version 3; all versions of the library named `libpmix.so.2` have these functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use super::Manager;
use crate::layout::MAX_RANKS;

const NAME: &str = "libpmix.so.2";
const SUCCESS: c_int = 0;
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
const GLOBAL: u8 = 3;
const EVERYBODY: u32 = u32::MAX - 1;
/// How far up from this process its launcher's daemon is looked for.
const ANCESTORS: usize = 4;

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Proc {
    nspace: [u8; 256],
    rank: u32,
}

/// `pmix_value_t`: the kind, and a union whose longest member has three words.
#[repr(C)]
struct Value {
    kind: u16,
    data: [u64; 3],
}

/// `pmix_info_t`
#[repr(C)]
struct Info {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

const _: () = assert!(size_of::<Proc>() == 260 && size_of::<Value>() == 32 && size_of::<Info>() == 552);

type Init = unsafe extern "C" fn(*mut Proc, *const Info, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *const Proc, usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// The library's functions.
struct Library {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    abort: Abort,
    error_string: ErrorString,
}

/// This process as a client of its launcher.
pub(super) struct Client {
    name: &'static str,
    library: Library,
    me: Proc,
    size: u32,
    is_open: bool,
}

impl Client {
    /// The launcher of this process, if it offers PMIx.
    pub(super) fn find(name: &'static str, value: &dyn Fn(&str) -> Option<String>) -> Option<Result<Client, String>> {
        value("PMIX_RANK")?;
        value("PMIX_NAMESPACE")?;
        Some(Client::start(name, crate::config::get().pmix_library.as_deref()))
    }

    fn start(name: &'static str, named: Option<&Path>) -> Result<Client, String> {
        let library = Library::load(named)?;
        let mut me = Proc { nspace: [0; 256], rank: 0 };
        // SAFETY: `me` is a structure that the library fills.
        let code = unsafe { (library.init)(&raw mut me, null(), 0) };
        library.check("PMIx_Init", code)?;
        let mut client = Client { name, library, me, size: 0, is_open: true };
        let size = client.number(EVERYBODY, c"pmix.job.size")?;
        if me.rank >= size || size > MAX_RANKS {
            return Err(format!("it says that this is process {} of {size}", me.rank));
        }
        client.size = size;
        Ok(client)
    }

    /// Calls `take` with a value that is known of process `of`.
    fn value<T>(&self, of: u32, key: &CStr, take: impl FnOnce(&Value) -> Option<T>) -> Result<T, String> {
        let proc = Proc { rank: of, ..self.me };
        let mut value: *mut Value = null_mut();
        // SAFETY: all pointers are to what lives during the call; the library allocates the value.
        let code = unsafe { (self.library.get)(&raw const proc, key.as_ptr(), null(), 0, &raw mut value) };
        self.library.check("PMIx_Get", code)?;
        // SAFETY: the library has returned a value, or null.
        let taken = unsafe { value.as_ref() }.and_then(take);
        // SAFETY: the caller owns the value, which came from `malloc`, as does the text in it.
        unsafe {
            if let Some(value) = value.as_ref()
                && value.kind == STRING
            {
                libc::free(value.data[0] as *mut c_void);
            }
            libc::free(value.cast());
        }
        taken.ok_or_else(|| format!("its value of {} is of another kind", key.to_string_lossy()))
    }

    fn number(&self, of: u32, key: &CStr) -> Result<u32, String> {
        self.value(of, key, |value| (value.kind == UINT32).then_some(value.data[0] as u32))
    }
}

/// The key of a notice.
fn key_of(key: &str) -> Result<CString, String> {
    CString::new(format!("limosa.{key}")).map_err(|_| "a key has a zero byte".to_owned())
}

impl Manager for Client {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> (u32, u32) {
        (self.me.rank, self.size)
    }

    fn appnum(&mut self) -> u32 {
        self.number(self.me.rank, c"pmix.appnum").unwrap_or(0)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (key, text) = (key_of(key)?, CString::new(value).map_err(|_| "a value has a zero byte")?);
        let mut value = Value { kind: STRING, data: [text.as_ptr() as u64, 0, 0] };
        // SAFETY: the library copies key and value, which live during the call.
        let code = unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        self.library.check("PMIx_Put", code)?;
        // SAFETY: the function takes nothing.
        self.library.check("PMIx_Commit", unsafe { (self.library.commit)() })
    }

    fn fence(&mut self) -> Result<(), String> {
        let mut info = Info { key: [0; 512], flags: 0, value: Value { kind: BOOL, data: [1, 0, 0] } };
        let name = b"pmix.collect";
        info.key[..name.len()].copy_from_slice(name);
        let all = Proc { rank: EVERYBODY, ..self.me };
        // SAFETY: the structures live during the call.
        let code = unsafe { (self.library.fence)(&raw const all, 1, &raw const info, 1) };
        self.library.check("PMIx_Fence", code)
    }

    fn get(&mut self, from: u32, key: &str) -> Result<String, String> {
        self.value(from, &key_of(key)?, |value| {
            let text = value.data[0] as *const c_char;
            if value.kind != STRING || text.is_null() {
                return None;
            }
            // SAFETY: a value of this kind has a text that ends with a zero byte.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        })
    }

    fn abort(&mut self, code: i32, message: &str) {
        let text = CString::new(message).unwrap_or_default();
        if self.is_open {
            // SAFETY: the text lives during the call; no processes means all of this job.
            unsafe { (self.library.abort)(code, text.as_ptr(), null(), 0) };
        }
    }

    fn finalize(&mut self) {
        if std::mem::take(&mut self.is_open) {
            // SAFETY: the library was initialised once, and is not used after this.
            unsafe { (self.library.finalize)(null(), 0) };
        }
    }
}

impl Library {
    fn load(named: Option<&Path>) -> Result<Library, String> {
        if let Some(path) = named {
            let failed = |error| format!("LIMOSA_PMIX_LIBRARY is {}, which cannot be loaded: {error}", path.display());
            return Library::open(path).map_err(failed);
        }
        let launchers = loaded_by_ancestors();
        let opened = launchers.iter().map(PathBuf::as_path).find_map(|path| Library::open(path).ok());
        opened.map_or_else(|| Library::open(Path::new(NAME)), Ok).map_err(|error| {
            format!(
                "it needs PMIx, whose library cannot be loaded ({error}): install it (on Debian and Ubuntu the package \
                 libpmix2), or name its file in LIMOSA_PMIX_LIBRARY"
            )
        })
    }

    fn open(path: &Path) -> Result<Library, String> {
        use std::os::unix::ffi::OsStrExt;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "the name has a zero byte".to_owned())?;
        // SAFETY: loading runs the library's own initialisation, which the launcher asks for by its variables. Its
        // plugins find its functions only if these are visible to all.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: after a failure this is a text, or null.
            let text = unsafe { libc::dlerror() };
            // SAFETY: as above; it ends with a zero byte.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
            return Err(text.unwrap_or_default());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of a loaded library.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if symbol.is_null() { Err(format!("it has no function {}", name.to_string_lossy())) } else { Ok(symbol) }
        };
        // SAFETY: the functions have these types in all versions of the library of this name.
        unsafe {
            Ok(Library {
                init: std::mem::transmute::<*mut c_void, Init>(symbol(c"PMIx_Init")?),
                finalize: std::mem::transmute::<*mut c_void, Finalize>(symbol(c"PMIx_Finalize")?),
                put: std::mem::transmute::<*mut c_void, Put>(symbol(c"PMIx_Put")?),
                commit: std::mem::transmute::<*mut c_void, Commit>(symbol(c"PMIx_Commit")?),
                fence: std::mem::transmute::<*mut c_void, Fence>(symbol(c"PMIx_Fence")?),
                get: std::mem::transmute::<*mut c_void, Get>(symbol(c"PMIx_Get")?),
                abort: std::mem::transmute::<*mut c_void, Abort>(symbol(c"PMIx_Abort")?),
                error_string: std::mem::transmute::<*mut c_void, ErrorString>(symbol(c"PMIx_Error_string")?),
            })
        }
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a text that lives as long as the library.
        let text = unsafe { (self.error_string)(code) };
        // SAFETY: as above.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        Err(format!("{call} fails with {} ({code})", text.unwrap_or_default()))
    }
}

/// The PMIx libraries that the processes have loaded that started this one, the nearest first: one of them is the
/// launcher's daemon. Of processes of another user nothing is seen.
fn loaded_by_ancestors() -> Vec<PathBuf> {
    let parent_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok().filter(|parent| *parent > 1)
    };
    let ancestors = std::iter::successors(parent_of(std::process::id()), |pid| parent_of(*pid)).take(ANCESTORS);
    let loaded = |pid: u32| {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        let is_pmix = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libpmix"));
        paths.filter(|path| path.contains(".so")).find(is_pmix).map(PathBuf::from)
    };
    ancestors.filter_map(loaded).collect()
}
