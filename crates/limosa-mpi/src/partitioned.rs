//! Partitioned communication (MPI-5 chapter 4): persistent transfers whose data are sent partition by partition, as the
//! program marks them ready.
//!
//! Each partition of the sender is a message of its own, in a context that belongs to this pair of operations alone:
//! both sides compute it from the communicator's, the tag, and the number of such operations made before with that
//! partner and tag, so that operations match in the order in which they were made, without a message. The receiver may
//! divide its buffer into another number of partitions. It has to know the sender's: before the first partition comes a
//! message that says it. From then on each start posts one receive per partition, wherever it ends in the buffer.

use crate::check::{self, HEADER};
use crate::comm::Comm;
use crate::consts::MPI_PROC_NULL;
use crate::datatype::sequence::Sequence;
use crate::error::{Error, Result, error_of};
use crate::fail;
use crate::headers;
use crate::mix::mix;
use crate::observe::{self, Awaits};
use crate::operation::{End, Operation};
use crate::p2p::{check_dest, check_source};
use crate::request::Request;
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Mode, RequestId, Started, View};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Word that makes the contexts of partitioned communication from those of communicators.
const PARTITIONED: u64 = 0x7061_7274;
/// Tag of the message about the sender's partitions; partitions have their number.
const ABOUT: i32 = i32::MAX;
/// Bytes of that message: number of partitions, bytes of each; and while the checks are on, the types of all.
const ABOUT_BYTES: usize = 16 + HEADER;

/// So many of them are sent.
fn about_bytes() -> usize {
    if check::is_on() { ABOUT_BYTES } else { ABOUT_BYTES - HEADER }
}

/// A buffer in equal parts.
#[derive(Clone)]
pub struct Partitions {
    /// All of it.
    pub region: Region,
    /// Number of parts.
    pub count: usize,
    /// What all of it holds, while the checks are on.
    pub types: Option<Sequence>,
}

impl Partitions {
    /// Returns the bytes of one part.
    fn bytes(&self) -> usize {
        self.region.len().checked_div(self.count).unwrap_or(0)
    }

    fn check(&self, partition: i32) -> Result<usize> {
        match usize::try_from(partition) {
            Ok(partition) if partition < self.count => Ok(partition),
            _ => fail!(MPI_ERR_ARG, "the partition is {partition}, but the request has {} (from 0)", self.count),
        }
    }
}

/// What this side shares with its partner.
struct Pair {
    comm: Arc<Comm>,
    peer: i32,
    tag: i32,
    context: u64,
}

impl Pair {
    fn new(comm: &Arc<Comm>, is_send: bool, peer: i32, tag: i32) -> Pair {
        let number = comm.count_partitioned(is_send, peer, tag);
        let context = mix(mix(mix(comm.context(), PARTITIONED), tag as u64), number) & !1;
        Pair { comm: comm.clone(), peer, tag, context }
    }

    /// Receives the message with this tag, and then calls `then`.
    fn receive(&self, tag: i32, region: Region, then: impl FnOnce(Completion) + Send + 'static) {
        let engine = self.comm.engine();
        let pattern = Pattern { context: self.context, source: Some(self.peer), tag: Some(tag) };
        let id = engine.receive(&pattern, region);
        engine.then(id, Box::new(move |_, completion| then(completion)));
    }

    fn send(&self, tag: i32, region: Region) -> Result<Option<RequestId>> {
        let peer = self.comm.partner(self.peer, "destination rank")?;
        let envelope = Envelope { context: self.context, source: self.comm.rank() as i32, tag };
        match self.comm.engine().send(peer, &envelope, region, Mode::Standard).map_err(error_of)? {
            Started::Done => Ok(None),
            Started::Pending(id) => Ok(Some(id)),
        }
    }
}

/// Partitions that are still on their way in one start, and the first error.
struct Round {
    left: AtomicUsize,
    error: Mutex<Option<Error>>,
}

impl Round {
    fn over() -> Round {
        Round { left: AtomicUsize::new(0), error: Mutex::default() }
    }

    fn begin(&self, left: usize) {
        *self.error.lock() = None;
        self.left.store(left, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    fn fail(&self, error: Error) {
        self.error.lock().get_or_insert(error);
    }

    /// `count` partitions have ended.
    fn ended(&self, comm: &Comm, count: usize) {
        if self.left.fetch_sub(count, Ordering::AcqRel) == count {
            comm.engine().notify();
        }
    }

    fn error(&self) -> Option<Error> {
        self.error.lock().clone()
    }
}

/// A partitioned send.
pub struct PartitionedSend {
    /// `None`: to `MPI_PROC_NULL`.
    pair: Option<Pair>,
    partitions: Partitions,
    /// Which ones the program has marked in this start.
    ready: Box<[AtomicBool]>,
    /// The receiver knows the partitions.
    announced: AtomicBool,
    round: Arc<Round>,
}

/// Makes a partitioned send (`MPI_Psend_init`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn send_init(comm: &Arc<Comm>, partitions: Partitions, dest: i32, tag: i32) -> Result<Arc<Request>> {
    check_dest(comm, dest, tag)?;
    let pair = (dest != MPI_PROC_NULL).then(|| Pair::new(comm, true, dest, tag));
    let ready = (0..partitions.count).map(|_| AtomicBool::new(false)).collect();
    let round = Arc::new(Round::over());
    let send = PartitionedSend { pair, partitions, ready, announced: AtomicBool::new(false), round };
    Ok(Request::persistent(comm, Arc::new(send)))
}

impl PartitionedSend {
    /// Tells the receiver how the buffer is divided, before the first partition.
    fn announce(&self, pair: &Pair) -> Result<()> {
        if self.announced.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut about = Box::new([0u8; ABOUT_BYTES]);
        about[..8].copy_from_slice(&(self.partitions.count as u64).to_le_bytes());
        about[8..16].copy_from_slice(&(self.partitions.bytes() as u64).to_le_bytes());
        let header = self.partitions.types.as_ref().map_or([0; HEADER / 8], headers::encode);
        for (place, word) in about[16..].chunks_exact_mut(8).zip(header) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        // SAFETY: the bytes live as long as the transfer: its continuation owns them.
        let region = unsafe { Region::contiguous(about.as_mut_ptr(), about_bytes()) };
        if let Some(id) = pair.send(ABOUT, region)? {
            pair.comm.engine().then(id, Box::new(move |_, _| drop(about)));
        }
        Ok(())
    }

    /// Checks numbers of partitions before any of them is marked.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for one that does not exist.
    pub fn check(&self, partitions: &[i32]) -> Result<()> {
        partitions.iter().try_for_each(|partition| self.partitions.check(*partition).map(drop))
    }

    /// Marks a partition as ready to be sent (`MPI_Pready`). The request is active.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a partition that does not exist or was marked before; those of a send.
    pub fn mark_ready(&self, partition: i32) -> Result<()> {
        let index = self.partitions.check(partition)?;
        if self.ready[index].swap(true, Ordering::Relaxed) {
            fail!(MPI_ERR_ARG, "partition {partition} has been marked ready already since the request was started");
        }
        let Some(pair) = &self.pair else { return Ok(()) };
        let bytes = self.partitions.bytes();
        let sent = pair.send(partition, self.partitions.region.part(index * bytes, bytes));
        if let Ok(Some(id)) = sent {
            let (comm, round) = (pair.comm.clone(), self.round.clone());
            pair.comm.engine().then(
                id,
                Box::new(move |_, completion| {
                    completion.failure.into_iter().for_each(|failure| round.fail(error_of(failure)));
                    round.ended(&comm, 1);
                }),
            );
            return Ok(());
        }
        let sent = sent.map(drop);
        sent.as_ref().err().into_iter().for_each(|error| self.round.fail(error.clone()));
        self.round.ended(&pair.comm, 1);
        sent
    }
}

impl Operation for PartitionedSend {
    fn start(self: Arc<Self>) -> Result<()> {
        self.ready.iter().for_each(|ready| ready.store(false, Ordering::Relaxed));
        let Some(pair) = &self.pair else {
            self.round.begin(0);
            return Ok(());
        };
        self.announce(pair)?;
        self.round.begin(self.partitions.count);
        Ok(())
    }

    fn progress(&self) -> bool {
        self.round.is_over()
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.round.is_over()
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        self.round.is_over().then(|| End { error: self.round.error(), ..End::empty() })
    }

    fn cancel(&self) -> Result<()> {
        not_cancelled()
    }

    fn release(&self) -> Result<()> {
        not_freed()
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        let pair = self.pair.as_ref()?;
        Some(Awaits::Send { comm: &pair.comm, dest: Some(pair.peer), tag: Some(pair.tag) })
    }
}

#[cold]
fn not_cancelled() -> Result<()> {
    fail!(MPI_ERR_REQUEST, "partitioned communication cannot be cancelled")
}

#[cold]
fn not_freed() -> Result<()> {
    fail!(MPI_ERR_REQUEST, "active partitioned communication cannot be freed: complete it first")
}

/// A partitioned receive.
pub struct PartitionedReceive {
    /// `None`: from `MPI_PROC_NULL`.
    incoming: Option<Arc<Incoming>>,
    partitions: Partitions,
}

struct Incoming {
    pair: Pair,
    partitions: Partitions,
    round: Round,
    sender: Mutex<Sender>,
}

/// What is known of the sender's partitions.
#[derive(Default)]
struct Sender {
    /// The message about them is awaited, or was received.
    asked: bool,
    /// Number and bytes.
    known: Option<(usize, usize)>,
    /// Which ones have arrived in this start. Changes together with the numbers: a thread may ask at any time.
    arrived: Vec<bool>,
}

impl Sender {
    /// A start begins, in which nothing has arrived yet.
    fn begin(&mut self, count: usize, bytes: usize) {
        self.known = Some((count, bytes));
        self.arrived = vec![false; count];
    }
}

/// Makes a partitioned receive (`MPI_Precv_init`).
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
pub fn receive_init(comm: &Arc<Comm>, partitions: Partitions, source: i32, tag: i32) -> Result<Arc<Request>> {
    check_source(comm, source, tag)?;
    if tag < 0 || (source < 0 && source != MPI_PROC_NULL) {
        fail!(MPI_ERR_ARG, "partitioned receives name their source and tag: wildcards have no meaning for them");
    }
    let incoming = (source != MPI_PROC_NULL).then(|| {
        let pair = Pair::new(comm, false, source, tag);
        Arc::new(Incoming { pair, partitions: partitions.clone(), round: Round::over(), sender: Mutex::default() })
    });
    Ok(Request::persistent(comm, Arc::new(PartitionedReceive { incoming, partitions })))
}

impl PartitionedReceive {
    /// Whether a partition of an active request has arrived (`MPI_Parrived`). Makes progress if not.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a partition that does not exist.
    pub fn has_arrived(&self, partition: i32) -> Result<bool> {
        let index = self.partitions.check(partition)?;
        let Some(incoming) = self.incoming.as_ref() else { return Ok(true) };
        if incoming.has(index) {
            return Ok(true);
        }
        incoming.pair.comm.engine().poll();
        let has = incoming.has(index);
        if !has {
            let awaits = |tell: &mut dyn FnMut(Awaits<'_>)| self.awaits().into_iter().for_each(tell);
            observe::polled(mix(incoming.pair.context, index as u64), &awaits);
        }
        Ok(has)
    }
}

impl Incoming {
    /// Whether all partitions of the sender have arrived that end in this one.
    fn has(&self, index: usize) -> bool {
        if self.round.is_over() {
            return true;
        }
        let (sender, mine) = (self.sender.lock(), self.partitions.bytes());
        match sender.known {
            Some((_, bytes)) if bytes > 0 && mine > 0 => {
                // The sender may have less than there is room for.
                let first = index * mine / bytes;
                let behind = (((index + 1) * mine - 1) / bytes + 1).min(sender.arrived.len());
                sender.arrived.get(first..behind).is_some_and(|arrived| arrived.iter().all(|arrived| *arrived))
            }
            _ => false,
        }
    }

    /// Bytes that the sender sends in one start, once that is known.
    fn bytes(&self) -> usize {
        self.sender.lock().known.map_or(0, |(count, bytes)| count * bytes)
    }

    /// Asks how the sender divides its buffer. Until that is known, one thing is left.
    fn ask(self: &Arc<Self>) {
        let mut about = Box::new([0u8; ABOUT_BYTES]);
        // SAFETY: the bytes live as long as the transfer: its continuation owns them.
        let region = unsafe { Region::contiguous(about.as_mut_ptr(), about_bytes()) };
        let incoming = self.clone();
        self.pair.receive(ABOUT, region, move |completion| incoming.learn(&about, completion));
    }

    fn learn(self: Arc<Self>, about: &[u8; ABOUT_BYTES], completion: Completion) {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| about[at + i]));
        let (count, bytes) = (word(0) as usize, word(8) as usize);
        let sent = headers::decode(&std::array::from_fn(|i| word(16 + 8 * i)));
        if let Some(failure) = completion.failure {
            self.round.fail(error_of(failure));
        } else if count > ABOUT as usize || count.checked_mul(bytes).is_none() {
            self.round.fail(Error::new(crate::consts::MPI_ERR_OTHER, "the sender announced invalid partitions"));
        } else {
            let difference = sent.zip(self.partitions.types.as_ref()).and_then(|(sent, own)| sent.difference(own));
            if let Some(found) = difference {
                let (holds, expects) = (found.left.name(), found.right.name());
                let detail = format!("the sender's partitions hold {holds}, those of this receive {expects}");
                self.round.fail(Error::new(crate::consts::MPI_ERR_TYPE, detail));
            }
            // One more than there are, so that the operation does not end before this one thing that was left.
            self.round.left.fetch_add(count, Ordering::AcqRel);
            self.receive_partitions(count, bytes);
        }
        self.round.ended(&self.pair.comm, 1);
    }

    /// Posts the receives of one start.
    fn receive_partitions(self: &Arc<Self>, count: usize, bytes: usize) {
        let total = self.partitions.region.len();
        self.sender.lock().begin(count, bytes);
        if count * bytes > total {
            let detail = format!(
                "the sender has {count} partitions of {bytes} bytes, which is more than the {} of {} bytes of this \
                 receive",
                self.partitions.count,
                self.partitions.bytes()
            );
            self.round.fail(Error::new(crate::consts::MPI_ERR_TRUNCATE, detail));
        }
        for index in 0..count {
            // What does not fit is received into nothing, so that the sender ends.
            let start = (index * bytes).min(total);
            let region = self.partitions.region.part(start, bytes.min(total - start));
            let incoming = self.clone();
            self.pair.receive(index as i32, region, move |completion| {
                completion.failure.into_iter().for_each(|failure| incoming.round.fail(error_of(failure)));
                if let Some(arrived) = incoming.sender.lock().arrived.get_mut(index) {
                    *arrived = true;
                }
                incoming.round.ended(&incoming.pair.comm, 1);
            });
        }
    }
}

impl Operation for PartitionedReceive {
    fn start(self: Arc<Self>) -> Result<()> {
        let Some(incoming) = &self.incoming else { return Ok(()) };
        let (asked, known) = {
            let mut sender = incoming.sender.lock();
            (std::mem::replace(&mut sender.asked, true), sender.known)
        };
        match known {
            Some((count, bytes)) => {
                incoming.round.begin(count);
                incoming.receive_partitions(count, bytes);
            }
            None if asked => fail!(MPI_ERR_REQUEST, "an earlier start of this request has failed"),
            None => {
                incoming.round.begin(1);
                incoming.ask();
            }
        }
        Ok(())
    }

    fn progress(&self) -> bool {
        self.incoming.as_ref().is_none_or(|incoming| incoming.round.is_over())
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.progress()
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        let Some(incoming) = &self.incoming else { return Some(End::proc_null()) };
        incoming.round.is_over().then(|| End {
            source: incoming.pair.peer,
            tag: incoming.pair.tag,
            bytes: incoming.bytes().min(self.partitions.region.len()) as u64,
            cancelled: false,
            error: incoming.round.error(),
        })
    }

    fn cancel(&self) -> Result<()> {
        not_cancelled()
    }

    fn release(&self) -> Result<()> {
        not_freed()
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        let pair = &self.incoming.as_ref()?.pair;
        Some(Awaits::Receive { comm: &pair.comm, source: Some(pair.peer), tag: Some(pair.tag) })
    }
}
