//! Stations: a window's state in one process, as packet handlers use it.
//!
//! A [`Station`] contains both sides of a window: target (memory, queue of the lock) and origin (pending accesses to
//! each target). Packet handlers find it by the context of the window's communicator. They run on any thread, under the
//! engine's lock. Hence a thread that holds the lock of a station's state must not call the engine.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use limosa_mpi::Region;
use limosa_mpi::consts::{MPI_ERR_RMA_ATTACH, MPI_ERR_RMA_RANGE, MPI_ERR_WIN};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::group::Group;
use limosa_mpi::world::World;
use limosa_p2p::{Actions, Chapter, Engine, Handler, Meta, Peer, Urgency};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::accumulate::{Combine, Piece, Pieces, Swap, no_op};
use crate::guard::Guard;
use crate::locks::LockQueue;
use crate::notices::Notice;
use crate::wire::{self, Action, Header, PieceRange};

/// Memory that a process exposes.
pub(crate) struct Exposed {
    pub base: usize,
    pub size: u64,
    /// Whether memory is attached later, and offsets are addresses.
    pub is_dynamic: bool,
}

/// A window in this process, as packets see it.
pub(crate) struct Station {
    pub context: u64,
    pub group: Arc<Group>,
    pub rank: u32,
    pub memory: Exposed,
    pub guard: Arc<Guard>,
    /// Maximum bytes of a packet.
    pub max_packet: usize,
    /// Number of accesses of each member by packets that were executed here; the counters wrap around.
    pub done: Box<[AtomicU32]>,
    pub state: Mutex<StationState>,
}

/// Pending accesses to a target.
#[derive(Default)]
pub(crate) struct Link {
    /// Numbers of requested and received answers.
    pub asked: u64,
    pub answered: u64,
    /// Packets since the last one that requested an answer.
    pub silent: u32,
    /// Whether there were accesses since the last flush.
    pub is_used: bool,
    /// Packets with accesses in total, and those announced to the target; the counters wrap around.
    pub sent: u32,
    pub announced: u32,
    /// Pending answers with data.
    pub results: u32,
    /// Number of the last granted request for its lock.
    pub granted: u64,
    /// Untaken notices of it that came by packets ([`Notice`]).
    pub notices: [u32; 2],
    /// First error that the target has reported.
    pub refusal: Option<Error>,
}

/// Answers that an access awaits, from several packets.
pub(crate) struct AwaitedAnswers {
    /// Number of pending answers, plus one while requests are being sent.
    open: AtomicUsize,
    error: Mutex<Option<Error>>,
}

impl AwaitedAnswers {
    /// Begins to send requests.
    pub fn new() -> Arc<AwaitedAnswers> {
        Arc::new(AwaitedAnswers { open: AtomicUsize::new(1), error: Mutex::new(None) })
    }

    /// Counts one more pending answer.
    pub fn expect(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer as received, or the end of the requests.
    pub fn count(&self) {
        self.open.fetch_sub(1, Ordering::Release);
    }

    /// Fails the access.
    pub fn fail(&self, error: Error) {
        self.error.lock().get_or_insert(error);
    }

    /// Whether all answers have come.
    pub fn have_come(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// Returns the first error.
    pub fn error(&self) -> Option<Error> {
        self.error.lock().clone()
    }
}

/// A pending answer.
pub(crate) struct Pending {
    pub target: u32,
    /// Destination of the data, unless it was withdrawn, and its length.
    pub into: Option<Region>,
    pub offset: usize,
    pub len: usize,
    pub awaited: Option<Arc<AwaitedAnswers>>,
}

#[derive(Default)]
pub(crate) struct StationState {
    pub links: Vec<Link>,
    pub pending: FxHashMap<u64, Pending>,
    /// Numbers of the last requested answer and of the last request for a lock.
    pub answers: u64,
    pub tickets: u64,
    pub locks: LockQueue,
    /// Attached memory: length by address.
    pub attached: BTreeMap<usize, usize>,
}

impl StationState {
    pub fn new(ranks: usize) -> StationState {
        StationState { links: (0..ranks).map(|_| Link::default()).collect(), ..StationState::default() }
    }

    /// Withdraws all pending answers after a failed operation: none of them is written to memory of the program. A
    /// death ends all operations on a window, so none that could succeed is affected.
    pub fn withdraw(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.into = None);
    }

    /// Returns whether all these bytes are attached, in one block or in several adjacent ones.
    pub fn is_attached(&self, at: usize, len: usize) -> bool {
        let Some(end) = at.checked_add(len) else { return false };
        let mut from = at;
        loop {
            match self.attached.range(..=from).next_back() {
                Some((start, bytes)) if end <= start + bytes => return true,
                Some((start, bytes)) if from < start + bytes => from = start + bytes,
                _ => return false,
            }
        }
    }
}

impl Station {
    /// Returns the memory at these places.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_RANGE`, `MPI_ERR_RMA_ATTACH`.
    pub fn pieces(&self, places: &[PieceRange]) -> Result<Pieces> {
        let state = self.memory.is_dynamic.then(|| self.state.lock());
        places
            .iter()
            .map(|&(at, len)| {
                if let Some(state) = &state {
                    if !state.is_attached(at as usize, len as usize) {
                        fail!(
                            MPI_ERR_RMA_RANGE,
                            "{len} bytes at address {at:#x} are not attached to the window at rank {}",
                            self.rank
                        );
                    }
                } else if at.checked_add(len).is_none_or(|end| end > self.memory.size) {
                    fail!(
                        MPI_ERR_RMA_RANGE,
                        "{len} bytes at byte {at} are outside the window of rank {}, which has {} bytes",
                        self.rank,
                        self.memory.size
                    );
                }
                Ok(Piece { at: self.memory.base.wrapping_add(at as usize) as *mut u8, len: len as usize })
            })
            .collect()
    }

    /// Executes an access. Returns its answer; `None` if the access is invalid.
    fn perform(&self, header: &Header, places: &[PieceRange], operands: &[u8]) -> Option<Result<Vec<u8>>> {
        let total = places.iter().try_fold(0u64, |sum, (_, len)| sum.checked_add(*len))?;
        let total = usize::try_from(total).ok().filter(|total| *total <= self.max_packet)?;
        let pieces = match self.pieces(places) {
            Ok(pieces) => pieces,
            Err(error) => return Some(Err(error)),
        };
        let expected = match header.action {
            Action::Get => 0,
            Action::Swap => total.checked_mul(2)?,
            Action::Fetch if operands.is_empty() => 0,
            _ => total,
        };
        if operands.len() != expected {
            return None;
        }
        let mut answer = Vec::new();
        let guard = &*self.guard;
        match header.action {
            Action::Put => copy(&pieces, |at, range| {
                // SAFETY: memory of the window, checked above. The program guarantees that there is no conflicting
                // access.
                unsafe { std::ptr::copy(operands[range.clone()].as_ptr(), at, range.len()) }
            }),
            Action::Get => {
                answer.resize(total, 0);
                copy(&pieces, |at, range| {
                    // SAFETY: as above.
                    unsafe { std::ptr::copy(at, answer[range.clone()].as_mut_ptr(), range.len()) }
                });
            }
            Action::Accumulate | Action::Fetch => {
                let op = if operands.is_empty() { no_op() } else { header.op()? };
                let combine = Combine::new(&op, &header.element()?).ok()?;
                if !total.is_multiple_of(combine.unit()) {
                    return None;
                }
                answer.resize(if header.action == Action::Fetch { total } else { 0 }, 0);
                let old = (header.action == Action::Fetch).then_some(&mut answer[..]);
                // SAFETY: as above; all accumulations here follow the same rule.
                unsafe { combine.apply(&pieces, operands, old, guard) };
            }
            Action::Swap => {
                let element = header.element()?;
                let swap = Swap::new(&element).ok()?;
                let &[Piece { at, len }] = &pieces[..] else { return None };
                if len != swap.element.size() as usize {
                    return None;
                }
                answer.resize(len, 0);
                let (expected, new) = operands.split_at(len);
                // SAFETY: as above.
                unsafe { swap.apply(at, expected, new, &mut answer, guard) };
            }
        }
        Some(Ok(answer))
    }

    /// Records a received answer. Returns false if it was not requested.
    fn answered(&self, from: u32, number: u64, data: std::result::Result<&[u8], Error>) -> bool {
        let state = &mut *self.state.lock();
        let link = &mut state.links[from as usize];
        if let Err(error) = &data
            && link.refusal.is_none()
        {
            link.refusal = Some(error.clone());
        }
        if number == 0 {
            return data.is_err();
        }
        let Some(pending) = state.pending.remove(&number).filter(|pending| pending.target == from) else {
            return false;
        };
        link.answered += 1;
        link.results -= u32::from(pending.len > 0);
        match data {
            Ok(data) if data.len() != pending.len => return false,
            Ok(data) => pending.into.iter().for_each(|region| region.write(pending.offset, data)),
            Err(error) => {
                if let Some(awaited) = &pending.awaited {
                    link.refusal = None;
                    awaited.fail(error);
                }
            }
        }
        if let Some(awaited) = pending.awaited {
            awaited.count();
        }
        true
    }

    /// Grants this process's lock. Returns the ranks that get it now.
    pub fn grants(&self, state: &mut StationState) -> Vec<(u32, u64)> {
        let grants: Vec<_> = std::iter::from_fn(|| state.locks.grant()).collect();
        if let Some((_, ticket)) = grants.iter().find(|(rank, _)| *rank == self.rank) {
            state.links[self.rank as usize].granted = *ticket;
        }
        grants
    }

    /// Creates the packet that grants this process's lock.
    pub fn grant(&self, ticket: u64) -> Meta {
        Meta { kind: wire::GRANT, words: [self.context, ticket] }
    }
}

/// Executes the access of a packet on some memory, like the target of a window of this memory: for tests with generated
/// packets. Returns the answer or the error; `None` if the packet is invalid.
pub fn perform_access(memory: &mut [u8], packet: &[u8]) -> Option<Result<Vec<u8>>> {
    let (header, places, operands) = wire::read(packet)?;
    let memory = Exposed { base: memory.as_mut_ptr() as usize, size: memory.len() as u64, is_dynamic: false };
    let station = Station {
        context: 0,
        group: Group::empty(),
        rank: 0,
        memory,
        guard: Arc::new(Guard::own()),
        max_packet: 1 << 16,
        done: Box::default(),
        state: Mutex::new(StationState::new(0)),
    };
    station.perform(&header, &places, operands)
}

/// Handles a packet from a rank of the window. Returns false if the packet is invalid.
type Handle = fn(&mut Actions<'_>, &Station, u32, &Meta, &[u8]) -> bool;

/// Windows of a world in this process, by context.
#[derive(Default)]
pub(crate) struct Stations {
    by_context: Arc<Mutex<FxHashMap<u64, Arc<Station>>>>,
}

impl Stations {
    /// Returns the stations of a world, with handlers registered.
    pub fn of(world: &World) -> &Stations {
        world.windows(|| {
            let stations = Stations::default();
            if let Some(engine) = world.engine_if_any() {
                engine.register(Chapter::Windows, stations.handlers());
            }
            stations
        })
    }

    /// Accepts packets for the station from now on.
    pub fn enter(&self, station: &Arc<Station>, engine: &Engine) {
        self.by_context.lock().insert(station.context, station.clone());
        engine.serve_others(true);
    }

    /// Stops accepting packets for the station.
    pub fn leave(&self, station: &Station, engine: &Engine) {
        if self.by_context.lock().remove(&station.context).is_some() {
            engine.serve_others(false);
        }
    }

    /// Returns the handlers, by kind of packet.
    fn handlers(&self) -> Vec<Handler> {
        let handle: [Handle; 9] = [access, flush, answer, refused, lock, grant, unlock, post, complete];
        let handler = |(kind, handle): (usize, Handle)| {
            let by_context = self.by_context.clone();
            Box::new(move |actions: &mut Actions<'_>, from: Peer, meta: &Meta, data: &[u8]| {
                let station = by_context.lock().get(&meta.words[0]).cloned();
                match station.and_then(|station| Some((station.group.rank_of(from)?, station))) {
                    Some((rank, station)) => handle(actions, &station, rank, meta, data),
                    // The window was freed, or could not be created.
                    None => {
                        if kind <= 1 {
                            let error = Error::new(MPI_ERR_WIN, "the target has no such window any more");
                            refuse(actions, from, meta, &error);
                        }
                        true
                    }
                }
            }) as Handler
        };
        handle.into_iter().enumerate().map(handler).collect()
    }
}

/// Calls `piece` with the address and the range in the stream of each piece.
fn copy(pieces: &[Piece], mut piece: impl FnMut(*mut u8, Range<usize>)) {
    let mut done = 0;
    for &Piece { at, len } in pieces {
        piece(at, done..done + len);
        done += len;
    }
}

fn peer_of(station: &Station, rank: u32) -> Peer {
    station.group.world_rank(rank as usize).expect("the rank of a member")
}

fn refuse(actions: &mut Actions<'_>, to: Peer, meta: &Meta, error: &Error) {
    let data = [&error.class.to_ne_bytes()[..], error.detail.as_bytes()].concat();
    actions.send(to, Meta { kind: wire::REFUSED, words: meta.words }, &data, Urgency::Normal);
}

fn access(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, data: &[u8]) -> bool {
    let Some((header, places, operands)) = wire::read(data) else { return false };
    let to = peer_of(station, from);
    let outcome = station.perform(&header, &places, operands);
    // Pairs with the acquire of a waiting thread. Only handlers write it, one at a time.
    let done = &station.done[from as usize];
    done.store(done.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    actions.notify();
    match outcome {
        None => return false,
        Some(Err(error)) => refuse(actions, to, meta, &error),
        Some(Ok(answer)) if meta.words[1] != 0 => {
            actions.send(to, Meta { kind: wire::ANSWER, words: meta.words }, &answer, Urgency::Normal);
        }
        Some(Ok(_)) => {}
    }
    true
}

fn flush(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, _data: &[u8]) -> bool {
    let meta = Meta { kind: wire::ANSWER, words: meta.words };
    actions.send(peer_of(station, from), meta, &[], Urgency::Normal);
    true
}

fn answer(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, data: &[u8]) -> bool {
    actions.notify();
    station.answered(from, meta.words[1], Ok(data))
}

fn refused(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, data: &[u8]) -> bool {
    let Some((class, detail)) = data.split_first_chunk::<4>() else { return false };
    let class = match i32::from_ne_bytes(*class) {
        known @ (MPI_ERR_RMA_RANGE | MPI_ERR_RMA_ATTACH | MPI_ERR_WIN) => known,
        _ => return false,
    };
    actions.notify();
    station.answered(from, meta.words[1], Err(Error::new(class, String::from_utf8_lossy(detail).into_owned())))
}

fn send_grants(actions: &mut Actions<'_>, station: &Station, state: &mut StationState) {
    for (rank, ticket) in station.grants(state) {
        if rank == station.rank {
            actions.notify();
        } else {
            actions.send(peer_of(station, rank), station.grant(ticket), &[], Urgency::Normal);
        }
    }
}

fn lock(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, _data: &[u8]) -> bool {
    let state = &mut *station.state.lock();
    let is_asked = state.locks.request(from, meta.words[1] & 1 == 1, meta.words[1] >> 1);
    send_grants(actions, station, state);
    is_asked
}

/// Handles a granted lock: that of the rank in the packet, or the sender's.
fn grant(actions: &mut Actions<'_>, station: &Station, from: u32, meta: &Meta, data: &[u8]) -> bool {
    let target = data.try_into().map_or(from, u32::from_ne_bytes);
    let state = &mut *station.state.lock();
    let Some(link) = state.links.get_mut(target as usize) else { return false };
    link.granted = meta.words[1];
    actions.notify();
    true
}

fn unlock(actions: &mut Actions<'_>, station: &Station, from: u32, _meta: &Meta, _data: &[u8]) -> bool {
    let state = &mut *station.state.lock();
    let was_held = state.locks.release(from);
    send_grants(actions, station, state);
    was_held
}

fn post(actions: &mut Actions<'_>, station: &Station, from: u32, _meta: &Meta, _data: &[u8]) -> bool {
    station.state.lock().links[from as usize].notices[Notice::Post as usize] += 1;
    actions.notify();
    true
}

fn complete(actions: &mut Actions<'_>, station: &Station, from: u32, _meta: &Meta, _data: &[u8]) -> bool {
    station.state.lock().links[from as usize].notices[Notice::Complete as usize] += 1;
    actions.notify();
    true
}
