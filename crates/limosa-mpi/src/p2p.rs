//! Point-to-point communication on communicators (MPI-5 chapter 3): argument rules, and calls to the engine.

use crate::bsend;
use crate::check;
use crate::comm::Comm;
use crate::consts::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL};
use crate::error::{Result, error_of};
use crate::fail;
use crate::headers;
use crate::light::{self, NotAwaited};
use crate::mix::mix;
use crate::observe::{self, Awaits, Waiting};
use crate::operation::End;
use crate::request::Request;
use crate::transfer::{Combined, Direction, Transfer};
pub use limosa_p2p::Received;
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Interrupted, Label, Matched, Mode, RequestId, Short, Started};
use std::sync::Arc;

/// The four send modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// `MPI_Send`
    Standard,
    /// `MPI_Bsend`
    Buffered,
    /// `MPI_Ssend`
    Synchronous,
    /// `MPI_Rsend`
    Ready,
}

/// A checked destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dest {
    rank: i32,
    /// `None`: `MPI_PROC_NULL`.
    world: Option<u32>,
}

/// A checked source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `MPI_PROC_NULL`
    ProcNull,
    /// `MPI_ANY_SOURCE`
    Any,
    /// A member.
    Rank(i32),
}

impl Source {
    fn pattern(self) -> Option<i32> {
        if let Source::Rank(rank) = self { Some(rank) } else { None }
    }
}

/// Checks a destination rank and a tag.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
#[inline]
pub fn check_dest(comm: &Comm, dest: i32, tag: i32) -> Result<Dest> {
    if tag < 0 {
        fail!(MPI_ERR_TAG, "the tag is {tag}, but the tag of a send must be between 0 and MPI_TAG_UB ({})", i32::MAX);
    }
    if dest == MPI_PROC_NULL {
        return Ok(Dest { rank: dest, world: None });
    }
    Ok(Dest { rank: dest, world: Some(comm.partner(dest, "destination rank")?) })
}

/// Checks a source rank and a tag; gives the tag to match, `None` for `MPI_ANY_TAG`.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
#[inline]
pub fn check_source(comm: &Comm, source: i32, tag: i32) -> Result<(Source, Option<i32>)> {
    let tag = match tag {
        MPI_ANY_TAG => None,
        0.. => Some(tag),
        _ => fail!(
            MPI_ERR_TAG,
            "the tag is {tag}, but the tag of a receive must be MPI_ANY_TAG or a non-negative integer"
        ),
    };
    let source = match source {
        MPI_ANY_SOURCE => Source::Any,
        MPI_PROC_NULL => Source::ProcNull,
        rank => {
            comm.partner(rank, "source rank")?;
            Source::Rank(rank)
        }
    };
    Ok((source, tag))
}

#[inline(always)]
fn envelope(comm: &Comm, tag: i32) -> Envelope {
    Envelope { context: comm.context(), source: comm.rank() as i32, tag }
}

/// Starts a send without a label; `None` if it has ended already.
fn start_send(comm: &Comm, dest: Dest, tag: i32, region: Region, mode: SendMode) -> Result<Option<RequestId>> {
    let Some(world) = dest.world else { return Ok(None) };
    if mode == SendMode::Buffered {
        bsend::send(comm, world, &envelope(comm, tag), &region)?;
        return Ok(None);
    }
    let mode = if mode == SendMode::Synchronous { Mode::Synchronous } else { Mode::Standard };
    match comm.engine().send(world, &envelope(comm, tag), region, mode).map_err(error_of)? {
        Started::Done => Ok(None),
        Started::Pending(id) => Ok(Some(id)),
    }
}

/// Starts a receive without a label; `None` from `MPI_PROC_NULL`.
fn start_receive(comm: &Comm, source: Source, tag: Option<i32>, region: Region) -> Option<RequestId> {
    if source == Source::ProcNull {
        return None;
    }
    Some(comm.engine().receive(&Pattern { context: comm.context(), source: source.pattern(), tag }, region))
}

/// Sends and waits until the region may be used again.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`, `MPI_ERR_BUFFER` (no room for a buffered send), and errors of the machine.
#[inline]
pub fn send(comm: &Arc<Comm>, region: Region, dest: i32, tag: i32, mode: SendMode) -> Result<()> {
    let checked = check_dest(comm, dest, tag)?;
    let Some(world) = checked.world else { return Ok(()) };
    let mode = match mode {
        SendMode::Buffered => return bsend::send(comm, world, &envelope(comm, tag), &region),
        SendMode::Synchronous => Mode::Synchronous,
        SendMode::Standard | SendMode::Ready => Mode::Standard,
    };
    comm.engine()
        .send_blocking(world, &envelope(comm, tag), region, mode, &Waiting::send(comm, dest, tag))
        .map_err(error_of)
}

/// Sends in standard mode if that can be done immediately.
///
/// As for all functions named `try_...`, false (or `None`) means that nothing has happened, for whatever reason: the
/// ordinary function finds it.
#[inline(always)]
pub fn try_send(comm: &Comm, bytes: &[u8], dest: i32, tag: i32) -> bool {
    let Some(peer) = comm.peers().world_rank(dest as usize) else { return false };
    tag >= 0 && comm.engine_if_any().is_some_and(|engine| engine.try_send(peer, &envelope(comm, tag), bytes))
}

/// Returns the pattern of a receive, and the peer that it asks for by name; `None` if these arguments are not those of
/// an ordinary receive.
#[inline(always)]
fn fast_pattern(comm: &Comm, source: i32, tag: i32) -> Option<(Pattern, Option<u32>)> {
    let tag = match tag {
        MPI_ANY_TAG => None,
        0.. => Some(tag),
        _ => return None,
    };
    let (source, peer) = match source {
        MPI_ANY_SOURCE => (None, None),
        rank => (Some(rank), Some(comm.peers().world_rank(rank as usize)?)),
    };
    Some((Pattern { context: comm.context(), source, tag }, peer))
}

/// Receives a message if it is there and ends without an error.
#[inline(always)]
pub fn try_receive(comm: &Comm, to: &mut [u8], source: i32, tag: i32) -> Option<Received> {
    let (pattern, peer) = fast_pattern(comm, source, tag)?;
    comm.engine_if_any()?.try_receive(peer?, &pattern, to)
}

/// Starts a receive if that can be done immediately.
///
/// # Safety
/// The memory must stay writable and otherwise untouched until the receive is done.
#[inline(always)]
pub unsafe fn try_ireceive(comm: &Comm, to: &mut [u8], source: i32, tag: i32) -> Option<Short> {
    let (pattern, peer) = fast_pattern(comm, source, tag)?;
    let label = label(comm, pattern.source, pattern.tag, false);
    // SAFETY: the caller's promise.
    Some(unsafe { comm.engine_if_any()?.try_start_receive(peer, &pattern, to, label) }?.short())
}

/// A non-blocking operation that was started.
pub enum Issued {
    /// A send that is complete.
    Sent,
    /// One that lives in the engine (see [`crate::light`]).
    Light(Short),
    /// One with an object of its own.
    Object(Arc<Request>),
}

impl Issued {
    /// Returns the operation as an object.
    pub fn into_object(self) -> Arc<Request> {
        match self {
            Issued::Sent => Request::done(None, End::empty()),
            Issued::Light(short) => light::object(short).expect("it was started a moment ago"),
            Issued::Object(request) => request,
        }
    }
}

#[inline(always)]
fn label(comm: &Comm, peer: Option<i32>, tag: Option<i32>, is_send: bool) -> Label {
    Label { context: comm.context(), note: comm.handle.load(std::sync::atomic::Ordering::Relaxed), peer, tag, is_send }
}

/// Starts a send.
///
/// # Errors
/// As for [`send`].
#[inline(always)]
pub fn isend(comm: &Arc<Comm>, region: Region, dest: i32, tag: i32, mode: SendMode) -> Result<Issued> {
    if check::is_on() {
        isend_checked(comm, region, dest, tag, mode)
    } else {
        isend_light(comm, region, dest, tag, mode)
    }
}

#[cold]
fn isend_checked(comm: &Arc<Comm>, region: Region, dest: i32, tag: i32, mode: SendMode) -> Result<Issued> {
    let id = start_send(comm, check_dest(comm, dest, tag)?, tag, region.clone(), mode)?;
    let transfer = Transfer::checked(comm, id, Direction::To { dest, tag }, region);
    Ok(Issued::Object(Request::under_way(Some(comm), Arc::new(transfer))))
}

#[inline(always)]
fn isend_light(comm: &Arc<Comm>, region: Region, dest: i32, tag: i32, mode: SendMode) -> Result<Issued> {
    let checked = check_dest(comm, dest, tag)?;
    let Some(world) = checked.world else { return Ok(Issued::Sent) };
    let mode = match mode {
        SendMode::Buffered => {
            bsend::send(comm, world, &envelope(comm, tag), &region)?;
            return Ok(Issued::Sent);
        }
        SendMode::Synchronous => Mode::Synchronous,
        SendMode::Standard | SendMode::Ready => Mode::Standard,
    };
    let label = label(comm, Some(dest), Some(tag), true);
    Ok(match comm.engine().send_labelled(world, &envelope(comm, tag), region, mode, label).map_err(error_of)? {
        Started::Done => Issued::Sent,
        Started::Pending(id) => Issued::Light(id.short()),
    })
}

/// Receives and waits.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`. If the message was too long, the end's `error` says so; the end also describes what
/// was received.
#[inline]
pub fn receive(comm: &Arc<Comm>, region: Region, source: i32, tag: i32) -> Result<End> {
    let (source, tag) = check_source(comm, source, tag)?;
    if source == Source::ProcNull {
        return Ok(End::proc_null());
    }
    let pattern = Pattern { context: comm.context(), source: source.pattern(), tag };
    let checked = kept(&region);
    let end = End::of_receive(comm.engine().receive_blocking(
        &pattern,
        region,
        &Waiting::receive(comm, source.pattern(), tag),
    ));
    Ok(headers::judged(checked.as_ref(), end))
}

/// Returns the region once more, while the checks are on, which judge the received data at the end.
#[inline(always)]
fn kept(region: &Region) -> Option<Region> {
    check::is_on().then(|| region.clone())
}

/// Starts a receive.
///
/// # Errors
/// As for [`receive`].
#[inline(always)]
pub fn ireceive(comm: &Arc<Comm>, region: Region, source: i32, tag: i32) -> Result<Issued> {
    if check::is_on() { ireceive_checked(comm, region, source, tag) } else { ireceive_light(comm, region, source, tag) }
}

#[cold]
fn ireceive_checked(comm: &Arc<Comm>, region: Region, source: i32, tag: i32) -> Result<Issued> {
    let (source, tag) = check_source(comm, source, tag)?;
    let id = start_receive(comm, source, tag, region.clone());
    let transfer = Transfer::checked(comm, id, Direction::From { source: source.pattern(), tag }, region);
    Ok(Issued::Object(Request::under_way(Some(comm), Arc::new(transfer))))
}

#[inline(always)]
fn ireceive_light(comm: &Arc<Comm>, region: Region, source: i32, tag: i32) -> Result<Issued> {
    let (source, tag) = check_source(comm, source, tag)?;
    if source == Source::ProcNull {
        return Ok(Issued::Object(Request::done(Some(comm), End::proc_null())));
    }
    let pattern = Pattern { context: comm.context(), source: source.pattern(), tag };
    Ok(Issued::Light(
        comm.engine().receive_labelled(&pattern, region, label(comm, source.pattern(), tag, false)).short(),
    ))
}

/// Makes a persistent send.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn send_init(comm: &Arc<Comm>, region: Region, dest: i32, tag: i32, mode: SendMode) -> Result<Arc<Request>> {
    let checked = check_dest(comm, dest, tag)?;
    let on = comm.clone();
    let memory = region.clone();
    let begin = Box::new(move || start_send(&on, checked, tag, region.clone(), mode));
    Ok(Request::persistent(comm, Arc::new(Transfer::persistent(comm, Direction::To { dest, tag }, begin, &memory))))
}

/// Makes a persistent receive.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn receive_init(comm: &Arc<Comm>, region: Region, source: i32, tag: i32) -> Result<Arc<Request>> {
    let (source, tag) = check_source(comm, source, tag)?;
    let on = comm.clone();
    let memory = region.clone();
    let begin = Box::new(move || Ok(start_receive(&on, source, tag, region.clone())));
    let direction = Direction::From { source: source.pattern(), tag };
    Ok(Request::persistent(comm, Arc::new(Transfer::persistent(comm, direction, begin, &memory))))
}

/// One message to send and one to receive, for [`send_receive`].
pub struct Exchange {
    /// Memory to send.
    pub send: Region,
    /// Rank of the receiver.
    pub dest: i32,
    /// Its tag.
    pub send_tag: i32,
    /// Memory to receive into.
    pub receive: Region,
    /// Rank of the sender.
    pub source: i32,
    /// Its tag.
    pub receive_tag: i32,
}

/// Sends and receives at once (`MPI_Sendrecv`), and waits for both.
///
/// # Errors
/// As for [`send`] and [`receive`].
pub fn send_receive(comm: &Arc<Comm>, exchange: Exchange) -> Result<End> {
    // Both sides are checked before either begins, so that an error leaves nothing behind.
    check_dest(comm, exchange.dest, exchange.send_tag)?;
    let checked = kept(&exchange.receive);
    let receive = ireceive_light(comm, exchange.receive, exchange.source, exchange.receive_tag)?;
    let send = isend_light(comm, exchange.send, exchange.dest, exchange.send_tag, SendMode::Standard)?;
    // What has an object of its own is over: it came from MPI_PROC_NULL.
    let short = |issued: &Issued| if let Issued::Light(short) = issued { Some(*short) } else { None };
    let names = [short(&receive), short(&send)];
    let mut ends = [End::proc_null(), End::empty()];
    let mut taken = 0;
    let waited = light::wait_each(2, |i| names[i], |i, _, end| (ends[i], taken) = (end, i + 1));
    if waited == Err(NotAwaited::Interrupted) {
        let left = |i: usize| names[i].filter(|_| i >= taken);
        light::withdraw((0..2).filter_map(left));
        let known = light::wait_each(2, left, |i, _, end| ends[i] = end);
        debug_assert!(known.is_ok(), "both are done now");
        if ends.iter().any(|end| end.cancelled) {
            return Err(Interrupted.into());
        }
    }
    let [receive, send] = ends;
    let receive = headers::judged(checked.as_ref(), receive);
    Ok(End { error: receive.error.or(send.error), ..receive })
}

/// Sends and receives at once (`MPI_Isendrecv`). `copy` is memory that the send reads from, kept until it is done.
///
/// # Errors
/// As for [`send_receive`].
pub fn isend_receive(comm: &Arc<Comm>, exchange: Exchange, copy: Option<Box<[u8]>>) -> Result<Arc<Request>> {
    let Exchange { send, dest, send_tag, receive, source, receive_tag } = exchange;
    let to = check_dest(comm, dest, send_tag)?;
    let (from, tag) = check_source(comm, source, receive_tag)?;
    let checked = kept(&receive);
    let receive = start_receive(comm, from, tag, receive);
    let send = start_send(comm, to, send_tag, send, SendMode::Standard)?;
    let combined = Combined { comm: comm.clone(), receive, send, _copy: copy, source: from.pattern(), tag, checked };
    Ok(Request::under_way(Some(comm), Arc::new(combined)))
}

/// Returns a packed copy of a message, and the region that sends it while the copy lives.
pub fn copy_of(region: &Region) -> (Region, Box<[u8]>) {
    let mut copy = vec![0u8; region.len()].into_boxed_slice();
    region.read(0, &mut copy);
    // SAFETY: the caller keeps the copy, whose bytes do not move with the box, until the send is done.
    (unsafe { Region::contiguous(copy.as_mut_ptr(), copy.len()) }, copy)
}

/// Returns the message that a receive would get now, if there is one (`MPI_Iprobe`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn iprobe(comm: &Arc<Comm>, source: i32, tag: i32) -> Result<Option<End>> {
    let (source, tag) = check_source(comm, source, tag)?;
    if source == Source::ProcNull {
        return Ok(Some(End::proc_null()));
    }
    let pattern = Pattern { context: comm.context(), source: source.pattern(), tag };
    let found = comm.engine().probe(&pattern).map_err(error_of)?;
    if found.is_none() {
        probed_in_vain(comm, &pattern);
    }
    Ok(found.map(End::of_receive))
}

fn probed_in_vain(comm: &Comm, pattern: &Pattern) {
    let Pattern { context, source, tag } = *pattern;
    let envelope = u64::from(source.unwrap_or(-1) as u32) << 32 | u64::from(tag.unwrap_or(-1) as u32);
    observe::polled(mix(context, envelope), &|tell| tell(Awaits::Receive { comm, source, tag }));
}

/// Waits for a message that a receive would get (`MPI_Probe`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn probe(comm: &Arc<Comm>, source: i32, tag: i32) -> Result<End> {
    let (source, tag) = check_source(comm, source, tag)?;
    if source == Source::ProcNull {
        return Ok(End::proc_null());
    }
    let pattern = Pattern { context: comm.context(), source: source.pattern(), tag };
    let found =
        comm.engine().block_on_probe(&pattern, &Waiting::receive(comm, source.pattern(), tag)).map_err(error_of)?;
    Ok(End::of_receive(found))
}

/// A message taken by a matched probe (`MPI_Message`).
pub struct Message {
    matched: parking_lot::Mutex<Option<Matched>>,
    comm: Arc<Comm>,
    from: Option<i32>,
    /// The handle under which the ABI layer registered the message.
    pub handle: std::sync::atomic::AtomicUsize,
}

impl Message {
    fn new(comm: &Arc<Comm>, matched: Matched) -> (End, Arc<Message>) {
        let end = End::of_receive(matched.completion());
        let from = Some(end.source);
        let matched = parking_lot::Mutex::new(Some(matched));
        (end, Arc::new(Message { matched, comm: comm.clone(), from, handle: Default::default() }))
    }

    /// Returns the message of `MPI_PROC_NULL` (`MPI_MESSAGE_NO_PROC`).
    pub fn no_proc(comm: &Arc<Comm>) -> Arc<Message> {
        Arc::new(Message {
            matched: parking_lot::Mutex::new(None),
            comm: comm.clone(),
            from: None,
            handle: Default::default(),
        })
    }

    /// Returns the communicator that the message came on.
    pub fn comm(&self) -> &Arc<Comm> {
        &self.comm
    }

    /// Starts to receive the message (`MPI_Imrecv`). A message is received once.
    pub fn receive(&self, region: Region) -> Arc<Request> {
        match self.matched.lock().take() {
            Some(matched) => {
                let checked = kept(&region);
                let id = self.comm.engine().receive_matched(matched, region);
                let direction = Direction::From { source: self.from, tag: None };
                let transfer = Transfer::under_way(self.comm.engine(), id, Some(self.comm.clone()), direction);
                Request::light(Some(self.comm.clone()), transfer.compared_with(checked))
            }
            None => Request::done(Some(&self.comm), End::proc_null()),
        }
    }
}

/// What a matched probe found.
pub enum Found {
    /// Nothing.
    Nothing,
    /// It was asked about `MPI_PROC_NULL`.
    NoProc,
    /// A message.
    Message(End, Arc<Message>),
}

/// Takes the message that a receive would get now, if there is one (`MPI_Improbe`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn improbe(comm: &Arc<Comm>, source: i32, tag: i32) -> Result<Found> {
    take_probed(comm, source, tag, true)
}

fn take_probed(comm: &Arc<Comm>, source: i32, tag: i32, polls: bool) -> Result<Found> {
    let (source, tag) = check_source(comm, source, tag)?;
    if source == Source::ProcNull {
        return Ok(Found::NoProc);
    }
    let pattern = Pattern { context: comm.context(), source: source.pattern(), tag };
    Ok(match comm.engine().probe_matched(&pattern).map_err(error_of)? {
        None => {
            if polls {
                probed_in_vain(comm, &pattern);
            }
            Found::Nothing
        }
        Some(matched) => {
            let (end, message) = Message::new(comm, matched);
            Found::Message(end, message)
        }
    })
}

/// Waits for a message that a receive would get, and takes it (`MPI_Mprobe`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn mprobe(comm: &Arc<Comm>, source: i32, tag: i32) -> Result<Found> {
    loop {
        let found = take_probed(comm, source, tag, false)?;
        if !matches!(found, Found::Nothing) {
            return Ok(found);
        }
        // Another thread may take the message between the look and the probe; then this one waits again.
        probe(comm, source, tag)?;
    }
}
