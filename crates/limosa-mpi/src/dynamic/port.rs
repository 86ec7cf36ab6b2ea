//! Groups that meet by a port, or by a socket of the program (MPI-5 sections 11.9 and 11.10).
//!
//! A port is a socket in the abstract namespace with an unguessable name. The roots of two groups introduce themselves
//! over it; everything else goes by messages. A port on another host of the job is reached through the launcher, which
//! forwards the bytes of the roots.
//!
//! ```text
//!   connects:  hello (terms, process)                              connected?
//!   accepts:                          hello, context, connected?
//! ```
//!
//! Each of them gets to know the other one before it answers, so that neither sends a message before that. If they
//! belong to different jobs and have no connection, they make one then ([`World::link`]).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;

use limosa_job::control::{self, PORT, Reply, Request};
use parking_lot::Mutex;

use super::{Meeting, ask, job, receive, wait_readable};
use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::mix::mix;
use crate::world::{Terms, WORDS, World};

/// The ports of this process that are open.
static OPEN: Mutex<Option<HashMap<Vec<u8>, Arc<UnixListener>>>> = Mutex::new(None);

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        Ok(_) => fail!(MPI_ERR_OTHER, "the operating system has no random numbers"),
        Err(error) => fail!(MPI_ERR_OTHER, "the operating system has no random numbers: {error}"),
    }
}

/// Opens a port (`MPI_Open_port`); returns its name.
///
/// # Errors
/// `MPI_ERR_OTHER` when the system refuses.
pub fn open() -> Result<Vec<u8>> {
    let job = job()?;
    let name = format!("{PORT}{:016x}-{:x}-{:016x}{:016x}", job.id(), job.rank(), random()?, random()?);
    let bound = SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address));
    match bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener)) {
        Ok(listener) => {
            OPEN.lock().get_or_insert_default().insert(name.clone().into_bytes(), Arc::new(listener));
            Ok(name.into_bytes())
        }
        Err(error) => fail!(MPI_ERR_OTHER, "the operating system refused a port: {error}"),
    }
}

/// Returns the job and the rank that have opened this port, as its name says.
fn opener(name: &str) -> Option<(u64, u32)> {
    let mut words = name.strip_prefix(PORT)?.split('-');
    Some((u64::from_str_radix(words.next()?, 16).ok()?, u32::from_str_radix(words.next()?, 16).ok()?))
}

/// Returns the id of the job that has opened this port, if it is not this job.
fn other_job(name: &str) -> Option<u64> {
    let (id, _) = opener(name)?;
    job().ok().filter(|own| own.id() != id).map(|_| id)
}

/// Returns a connection with a port on another host of this job; `None` if it is not on one.
fn reach(name: &str) -> Result<Option<UnixStream>> {
    let (Some((id, rank)), job) = (opener(name), job()?) else { return Ok(None) };
    let board = job.board();
    if id != job.id() || rank >= board.capacity() || board.is_here(rank) {
        return Ok(None);
    }
    match ask(&Request::Reach { rank, port: name.as_bytes().to_vec() })? {
        (stream, Reply::Done) => Ok(Some(stream)),
        (_, Reply::Refused { text, .. }) => fail!(MPI_ERR_PORT, "the port `{name}` cannot be reached: {text}"),
        _ => fail!(MPI_ERR_INTERN, "the launcher's answer is not understood"),
    }
}

/// Closes a port (`MPI_Close_port`): a process that is about to connect to it fails.
///
/// # Errors
/// `MPI_ERR_PORT` if this process has no such port.
pub fn close(name: &[u8]) -> Result<()> {
    match OPEN.lock().as_mut().and_then(|open| open.remove(name)) {
        Some(_) => Ok(()),
        None => no_port(name),
    }
}

fn no_port<T>(name: &[u8]) -> Result<T> {
    let name = String::from_utf8_lossy(name);
    fail!(MPI_ERR_PORT, "this process has no open port `{name}`: only the process that has opened a port can use it")
}

/// Waits for another group to connect (`MPI_Comm_accept`). The root's `name` is that of one of its ports.
///
/// # Errors
/// `MPI_ERR_PORT` if there is no such port; that the program was interrupted.
pub fn accept(comm: &Arc<Comm>, root: i32, name: impl FnOnce() -> Result<Vec<u8>>) -> Result<Arc<Comm>> {
    meet(comm, root, false, |world| {
        let name = name()?;
        let listener = OPEN.lock().as_ref().and_then(|open| open.get(&name).cloned());
        let Some(listener) = listener else { return no_port(&name) };
        let meeting = Meeting { comm, port: &String::from_utf8_lossy(&name), job: None };
        loop {
            wait_readable(listener.as_fd(), Some(meeting))?;
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => fail!(MPI_ERR_PORT, "the port cannot be used any more: {error}"),
            };
            // Connections of foreign users, and closed ones, do not count.
            if control::check_user(stream.as_fd()).is_ok()
                && let Ok(Some(found)) = welcome(world, meeting, stream)
            {
                return Ok(found);
            }
        }
    })
}

/// Connects to a group that accepts (`MPI_Comm_connect`).
///
/// # Errors
/// `MPI_ERR_PORT` if there is no such port; that the program was interrupted.
pub fn connect(comm: &Arc<Comm>, root: i32, name: impl FnOnce() -> Result<Vec<u8>>) -> Result<Arc<Comm>> {
    meet(comm, root, true, |world| {
        let name = name()?;
        let shown = String::from_utf8_lossy(&name);
        if !name.starts_with(PORT.as_bytes()) {
            fail!(MPI_ERR_PORT, "`{shown}` is not the name of a port: MPI_Open_port gives names");
        }
        let stream = match (reach(&shown)?, control::connect_to_port(&name)) {
            (Some(stream), _) | (None, Ok(stream)) => stream,
            (None, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                fail!(MPI_ERR_PORT, "the port `{shown}` belongs to another user")
            }
            (None, Err(error)) => fail!(
                MPI_ERR_PORT,
                "there is no open port `{shown}` on this host: {error}; jobs that were started separately have no device \
                 in common between hosts, so a port of another job is reached on the host on which it was opened only"
            ),
        };
        greet(world, Meeting { comm, port: &shown, job: other_job(&shown) }, stream)
    })
}

/// Meets the process at the other end of a socket, which does the same (`MPI_Comm_join`).
///
/// # Errors
/// `MPI_ERR_ARG` for what is no connected socket; errors of `comm`, which has this process as its only member.
pub fn join(comm: &Arc<Comm>, socket: i32) -> Result<Arc<Comm>> {
    if socket < 0 {
        fail!(MPI_ERR_ARG, "the descriptor is {socket}, but it must be that of a connected socket");
    }
    // SAFETY: only duplicated; if the number is not open that fails.
    let borrowed = unsafe { BorrowedFd::borrow_raw(socket) };
    let stream = match rustix::io::fcntl_dupfd_cloexec(borrowed, 3) {
        Ok(own) => UnixStream::from(own),
        Err(error) => fail!(MPI_ERR_ARG, "descriptor {socket} cannot be used: {error}"),
    };
    // The program's socket may be a non-blocking one, and is shared with it.
    let stream = Quiet(stream);
    let mine = random()?;
    let theirs = match stream.exchange(comm, mine)? {
        Some(theirs) if theirs != mine => theirs,
        _ => fail!(MPI_ERR_ARG, "descriptor {socket} is not a connected socket with MPI_Comm_join at the other end"),
    };
    let own = stream.0;
    let is_first = mine < theirs;
    let meeting = Meeting { comm, port: "", job: None };
    meet(comm, 0, is_first, |world| {
        if is_first {
            return greet(world, meeting, own);
        }
        match welcome(world, meeting, own)? {
            Some(found) => Ok(found),
            None => fail!(MPI_ERR_OTHER, "the process at the other end of the socket cannot be met, or has gone away"),
        }
    })
}

/// A socket of the program.
struct Quiet(UnixStream);

impl Quiet {
    /// Gives the other end a number, and gets its own; `None` if there is no other end.
    fn exchange(&self, comm: &Comm, mine: u64) -> Result<Option<u64>> {
        if control::send(&self.0, &[mine.to_ne_bytes().to_vec()]).is_err() {
            return Ok(None);
        }
        let fields = receive(&self.0, Some(Meeting { comm, port: "", job: None }))?.unwrap_or_default();
        Ok(fields.first().and_then(|field| field[..].try_into().ok()).map(u64::from_ne_bytes))
    }
}

fn words(fields: io::Result<Vec<Vec<u8>>>) -> Option<Vec<u64>> {
    fields.ok()?.iter().map(|field| field[..].try_into().ok().map(u64::from_ne_bytes)).collect()
}

fn send_words(stream: &UnixStream, words: &[u64]) -> io::Result<()> {
    control::send(stream, &words.iter().map(|word| word.to_ne_bytes().to_vec()).collect::<Vec<_>>())
}

/// Words with which a process introduces itself: the conditions under which it exchanges messages, and its identity.
const HELLO: usize = 4 + WORDS;

fn hello(world: &World) -> [u64; HELLO] {
    let (terms, own) = (world.terms().0, world.introduction(world.rank()));
    std::array::from_fn(|at| if at < terms.len() { terms[at] } else { own[at - terms.len()] })
}

/// Returns the process that introduces itself, or why it cannot be met.
fn met(world: &Arc<World>, said: &[u64]) -> Result<u32> {
    let Some((terms, who)) = said.split_first_chunk() else {
        fail!(MPI_ERR_PORT, "the port was closed before the connection was accepted")
    };
    let Some(who) = who.first_chunk::<WORDS>() else {
        fail!(MPI_ERR_PORT, "the process at the other end is not one of this version of Limosa")
    };
    // Processes of one job have everything in common but the machine, and all reach each other.
    let [own_job, ..] = world.introduction(world.rank());
    if who[0] != own_job
        && let Some(what) = world.terms().difference(Terms(*terms))
    {
        fail!(MPI_ERR_PORT, "the process at the other end cannot be met: {what}");
    }
    match world.introduced(*who)? {
        Some(peer) => {
            world.acquaint(&Group::contiguous(peer, 1))?;
            Ok(peer)
        }
        None => fail!(MPI_ERR_PORT, "the process at the other end is none that this job has"),
    }
}

/// Whether this process has a connection with the other one, or needs none.
fn is_linked(world: &World, peer: u32) -> Result<bool> {
    Ok(world.open_links(&Group::contiguous(peer, 1))? == [1])
}

/// Introduces this root, which connects. Returns the other root and a number for the context.
fn greet(world: &Arc<World>, meeting: Meeting<'_>, stream: UnixStream) -> Result<(u32, u64)> {
    let answer = match send_words(&stream, &hello(world)) {
        Ok(()) => words(receive(&stream, Some(meeting))?).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let peer = met(world, &answer)?;
    let [context, theirs] = answer[HELLO..] else {
        fail!(MPI_ERR_PORT, "the process at the other end does not accept this one")
    };
    let links = is_linked(world, peer)? && theirs != 0;
    if send_words(&stream, &[links.into()]).is_err() {
        fail!(MPI_ERR_PORT, "the process that has accepted has gone away");
    }
    if !links {
        world.link(context, &[peer])?;
    }
    Ok((peer, context))
}

/// Introduces this root, which accepts; returns `None` if the other root cannot be met, or goes away.
fn welcome(world: &Arc<World>, meeting: Meeting<'_>, stream: UnixStream) -> Result<Option<(u32, u64)>> {
    let said = words(receive(&stream, Some(meeting))?).unwrap_or_default();
    let own = hello(world);
    let (Ok(peer), context) = (met(world, &said), random()?) else {
        let _ = send_words(&stream, &own);
        return Ok(None);
    };
    let answer = [&own[..], &[context, is_linked(world, peer)?.into()]].concat();
    let is_told = send_words(&stream, &answer).is_ok();
    let ready = if is_told { words(receive(&stream, Some(meeting))?) } else { None };
    match ready.as_deref() {
        Some([1]) => Ok(Some((peer, context))),
        Some([0]) => world.link(context, &[peer]).map(|()| Some((peer, context))),
        _ => Ok(None),
    }
}

/// Makes the intercommunicator of two groups whose roots have found each other.
fn meet(
    comm: &Arc<Comm>,
    root: i32,
    connects: bool,
    find: impl FnOnce(&Arc<World>) -> Result<(u32, u64)>,
) -> Result<Arc<Comm>> {
    comm.check_intra()?;
    let root = comm.check_root(root)? as usize;
    let world = comm.world();
    let bytes = comm.led(root, || {
        let (peer, context) = find(world)?;
        Ok([u64::from(peer).to_ne_bytes(), context.to_ne_bytes()].concat())
    })?;
    let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
    let (Some(peer), Some(context)) = (word(0), word(8)) else {
        fail!(MPI_ERR_INTERN, "the root has told its group nothing of the group that it has met")
    };
    let leaders = (comm.rank() as usize == root).then(|| Ok(Some(Comm::of_two(world, peer as u32, connects, context))));
    let proposal = mix(context, u64::from(connects));
    let made = comm.meet(root, proposal, leaders, &comm.errhandler())?;
    Ok(made.expect("there is a remote group, since its leader has answered"))
}
