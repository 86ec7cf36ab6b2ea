//! Dynamic processes (MPI-5 sections 11.7 to 11.10).
//!
//! Arguments of the root are read only there.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use limosa_mpi::comm::Comm;
use limosa_mpi::dynamic::spawn::{self, Program};
use limosa_mpi::dynamic::{names, port};
use limosa_mpi::{Result, consts, fail, instance};

use crate::args;
use crate::calls::comm::register_comm;
use crate::cx::Cx;
use crate::handles::{Handle, Object};
use crate::kinds;

/// Handle of the communicator with the parents; 0 for none.
static PARENT: AtomicUsize = AtomicUsize::new(0);

/// Connects to the processes that have spawned this one. Called at the end of initialisation.
pub(crate) fn meet_parent(cx: &Cx) -> Result<()> {
    if let Some(parent) = spawn::meet_parent()? {
        PARENT.store(cx.register(parent)?.0, Ordering::Release);
    }
    Ok(())
}

/// Returns the null handle once the communicator has been freed.
pub(crate) fn mpi_comm_get_parent(_cx: &Cx, parent: &mut Handle) -> Result<()> {
    let handle = Handle(PARENT.load(Ordering::Acquire));
    let is_there = handle.0 != 0 && kinds::Communicator::table().get(handle).is_ok();
    *parent = if is_there { handle } else { Handle::predefined(consts::MPI_COMM_NULL) };
    Ok(())
}

fn text<'a>(pointer: *const c_char, arg: &str) -> Result<&'a CStr> {
    // SAFETY: the program promises strings that end in a zero byte.
    unsafe { args::text(pointer, arg) }
}

/// Returns the strings of a list that ends in a null pointer.
fn list(start: *const *mut c_char) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    if start.is_null() {
        return words;
    }
    loop {
        // SAFETY: the program promises a list that ends in a null pointer; elements are read from the start up to it.
        let word = unsafe { *start.add(words.len()) };
        if word.is_null() {
            return words;
        }
        // SAFETY: the program promises strings that end in a zero byte.
        words.push(unsafe { CStr::from_ptr(word) }.to_bytes().to_vec());
    }
}

/// Creates the description of one program from the arguments of a call.
fn program(cx: &Cx, command: &CStr, words: Vec<Vec<u8>>, count: c_int, info: Handle) -> Result<Program> {
    if count < 0 {
        fail!(MPI_ERR_ARG, "maxprocs is {count}, but it must not be negative");
    }
    if command.is_empty() {
        fail!(MPI_ERR_SPAWN, "the command is empty: name a program");
    }
    let mut pairs = Vec::new();
    if let Some(info) = cx.get_or_null::<kinds::Info>(info, "info")? {
        for n in 0..info.len() {
            let key = info.nth_key(n as i64)?;
            pairs.extend(info.get(&key)?.map(|value| (key, value)));
        }
    }
    let count = count as u32;
    let least = least(&pairs, count)?;
    let words = std::iter::once(command.to_bytes().to_vec()).chain(words).collect();
    Ok(Program { words, count, least, info: pairs })
}

/// Returns the smallest number of processes that `soft` allows: numbers and ranges `first:last:stride`, separated by
/// commas.
fn least(info: &[(Vec<u8>, Vec<u8>)], count: u32) -> Result<u32> {
    let Some((_, soft)) = info.iter().find(|(key, _)| key == b"soft") else { return Ok(count) };
    let soft = String::from_utf8_lossy(soft);
    let first = |range: &str| range.split(':').next().and_then(|first| first.trim().parse::<u32>().ok());
    match soft.split(',').map(first).collect::<Option<Vec<u32>>>().and_then(|all| all.into_iter().min()) {
        Some(least) => Ok(least.clamp(count.min(1), count)),
        None => fail!(MPI_ERR_INFO_VALUE, "soft is `{soft}`, but must be numbers or ranges such as 1:4, with commas"),
    }
}

/// Spawns processes, and stores the error code of each requested one.
fn perform(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    root: c_int,
    counts: &[c_int],
    all: *mut c_int,
    programs: impl FnOnce() -> Result<Vec<Program>>,
) -> Result<Handle> {
    let counts: Vec<u32> = counts.iter().map(|count| (*count).max(0) as u32).collect();
    // All members return codes, but only the root knows how many.
    let asked = spawn::asked_for(comm, root, &counts)?;
    let room = if all.is_null() { 0 } else { asked.iter().map(|count| *count as usize).sum() };
    let mut rest = cx.slice_mut(all, room, "array_of_errcodes")?;
    rest.fill(consts::MPI_ERR_SPAWN);
    let (made, started) = spawn::spawn(comm, root, programs)?;
    for (asked, started) in asked.into_iter().zip(started) {
        let (own, behind) = rest.split_at_mut((asked as usize).min(rest.len()));
        own.iter_mut().take(started as usize).for_each(|code| *code = consts::MPI_SUCCESS);
        rest = behind;
    }
    register_comm(cx, Some(made))
}

pub(crate) fn mpi_comm_spawn(
    cx: &Cx,
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Handle,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    intercomm: &mut Handle,
    array_of_errcodes: *mut c_int,
) -> Result<()> {
    let programs = || Ok(vec![program(cx, text(command, "command")?, list(argv), maxprocs, info)?]);
    *intercomm = perform(cx, comm, root, &[maxprocs], array_of_errcodes, programs)?;
    Ok(())
}

pub(crate) fn mpi_comm_spawn_multiple(
    cx: &Cx,
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const Handle,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    intercomm: &mut Handle,
    array_of_errcodes: *mut c_int,
) -> Result<()> {
    let is_root = comm.rank() as c_int == root;
    let all = if is_root { count.max(0) as usize } else { 0 };
    let counts: &[c_int] = if array_of_maxprocs.is_null() { &[] } else { cx.slice(array_of_maxprocs, all, "")? };
    let programs = || {
        args::at_least(count.into(), 1, "count", consts::MPI_ERR_ARG)?;
        for info in cx.slice(array_of_info, all, "array_of_info")? {
            cx.get_or_null::<kinds::Info>(*info, "array_of_info")?;
        }
        let commands = cx.slice(array_of_commands.cast_const(), all, "array_of_commands")?;
        let counts = cx.slice(array_of_maxprocs, all, "array_of_maxprocs")?;
        let infos = cx.slice(array_of_info, all, "array_of_info")?;
        let lists = if array_of_argv.is_null() { &[] } else { cx.slice(array_of_argv.cast_const(), all, "argv")? };
        let each = commands.iter().zip(counts).zip(infos).enumerate();
        each.map(|(at, ((command, count), info))| {
            let words = lists.get(at).map_or_else(Vec::new, |words| list(words.cast_const()));
            program(cx, text(*command, "array_of_commands")?, words, *count, *info)
        })
        .collect()
    };
    *intercomm = perform(cx, comm, root, counts, array_of_errcodes, programs)?;
    Ok(())
}

/// Stores the name of a port.
fn put(port_name: *mut c_char, name: &[u8]) -> Result<()> {
    args::not_null(port_name, "port_name")?;
    // SAFETY: the program promises room for MPI_MAX_PORT_NAME bytes.
    unsafe { args::copy_bytes(port_name, consts::MPI_MAX_PORT_NAME as usize, name) };
    Ok(())
}

pub(crate) fn mpi_open_port(_cx: &Cx, _info: Option<&Arc<kinds::Info>>, port_name: *mut c_char) -> Result<()> {
    args::not_null(port_name, "port_name")?;
    put(port_name, &port::open()?)
}

pub(crate) fn mpi_close_port(_cx: &Cx, port_name: &CStr) -> Result<()> {
    port::close(port_name.to_bytes())
}

pub(crate) fn mpi_comm_accept(
    cx: &Cx,
    port_name: *const c_char,
    info: Handle,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    newcomm: &mut Handle,
) -> Result<()> {
    let name = || {
        cx.get_or_null::<kinds::Info>(info, "info")?;
        text(port_name, "port_name").map(|name| name.to_bytes().to_vec())
    };
    *newcomm = register_comm(cx, Some(port::accept(comm, root, name)?))?;
    Ok(())
}

pub(crate) fn mpi_comm_connect(
    cx: &Cx,
    port_name: *const c_char,
    info: Handle,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    newcomm: &mut Handle,
) -> Result<()> {
    let name = || {
        cx.get_or_null::<kinds::Info>(info, "info")?;
        text(port_name, "port_name").map(|name| name.to_bytes().to_vec())
    };
    *newcomm = register_comm(cx, Some(port::connect(comm, root, name)?))?;
    Ok(())
}

pub(crate) fn mpi_comm_join(cx: &Cx, fd: c_int, intercomm: &mut Handle) -> Result<()> {
    let Some(instance) = instance::get() else {
        fail!(MPI_ERR_OTHER, "MPI_Comm_join needs MPI_Init: a session has no MPI_COMM_SELF")
    };
    // A communicator of its own, unaffected by concurrent operations on MPI_COMM_SELF.
    let own: Arc<Comm> = instance.comm_self().dup(None)?;
    let made = port::join(&own, fd);
    own.free()?;
    *intercomm = register_comm(cx, Some(made?))?;
    Ok(())
}

pub(crate) fn mpi_publish_name(
    _cx: &Cx,
    service_name: &CStr,
    _info: Option<&Arc<kinds::Info>>,
    port_name: &CStr,
) -> Result<()> {
    names::publish(service_name.to_bytes(), port_name.to_bytes())
}

pub(crate) fn mpi_unpublish_name(
    _cx: &Cx,
    service_name: &CStr,
    _info: Option<&Arc<kinds::Info>>,
    _port_name: &CStr,
) -> Result<()> {
    names::unpublish(service_name.to_bytes())
}

pub(crate) fn mpi_lookup_name(
    _cx: &Cx,
    service_name: &CStr,
    _info: Option<&Arc<kinds::Info>>,
    port_name: *mut c_char,
) -> Result<()> {
    args::not_null(port_name, "port_name")?;
    put(port_name, &names::look_up(service_name.to_bytes())?)
}
