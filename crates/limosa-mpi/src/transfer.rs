//! Sends and receives as operations of requests: one that is under way in the engine, a persistent one, and a send and
//! a receive that count as one.

use crate::check;
use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::headers;
use crate::observe::Awaits;
use crate::operation::{End, Operation, awaits_message};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Engine, RequestId, View};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kind and partner of a transfer, for its end and for the hang report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A send.
    To {
        /// The receiver's rank.
        dest: i32,
        /// The message's tag.
        tag: i32,
    },
    /// A receive.
    From {
        /// The sender's rank; `None`: any.
        source: Option<i32>,
        /// The message's tag; `None`: any.
        tag: Option<i32>,
    },
}

impl Direction {
    fn awaits(self, comm: Option<&Arc<Comm>>) -> Option<Awaits<'_>> {
        match self {
            Direction::To { dest, tag } => awaits_message(comm, true, Some(dest), Some(tag)),
            Direction::From { source, tag } => awaits_message(comm, false, source, tag),
        }
    }

    /// Returns the end of a transfer with which the engine had nothing to do.
    fn end_of_nothing(self) -> End {
        match self {
            Direction::To { .. } => End::empty(),
            Direction::From { .. } => End::proc_null(),
        }
    }

    fn end_of(self, completion: Completion) -> End {
        match self {
            Direction::To { .. } => End::of_send(completion),
            Direction::From { .. } if completion.cancelled => End { cancelled: true, ..End::empty() },
            Direction::From { .. } => End::of_receive(completion),
        }
    }
}

/// Starts a persistent transfer; `None` if it has ended already.
pub(crate) type Begin = Box<dyn Fn() -> Result<Option<RequestId>> + Send + Sync>;

/// A send or a receive.
pub(crate) struct Transfer {
    engine: Arc<Engine>,
    comm: Option<Arc<Comm>>,
    direction: Direction,
    /// Its name in the engine; [`Transfer::ENDED`] if the engine has nothing to do with it.
    id: AtomicU64,
    begin: Option<Begin>,
    /// The message's memory, while the checks are on ([`crate::check`]).
    checked: Option<Region>,
}

impl Transfer {
    /// No request of the engine has this name: there are far fewer than 2^32 slots.
    const ENDED: u64 = u64::MAX;

    /// One that is under way. `comm` is `None` if its communicator is no longer known.
    pub(crate) fn under_way(
        engine: &Arc<Engine>,
        id: RequestId,
        comm: Option<Arc<Comm>>,
        direction: Direction,
    ) -> Transfer {
        let id = AtomicU64::new(id.to_wire());
        Transfer { engine: engine.clone(), comm, direction, id, begin: None, checked: None }
    }

    /// One that was started, and is under way unless `id` is `None`, while the checks are on.
    pub(crate) fn checked(comm: &Arc<Comm>, id: Option<RequestId>, direction: Direction, region: Region) -> Transfer {
        let (engine, comm) = (comm.engine().clone(), Some(comm.clone()));
        let id = AtomicU64::new(id.map_or(Transfer::ENDED, RequestId::to_wire));
        Transfer { engine, comm, direction, id, begin: None, checked: Some(region) }
    }

    /// Makes a persistent transfer. `region` is the message's memory.
    pub(crate) fn persistent(comm: &Arc<Comm>, direction: Direction, begin: Begin, region: &Region) -> Transfer {
        let id = AtomicU64::new(Transfer::ENDED);
        let (engine, comm) = (comm.engine().clone(), Some(comm.clone()));
        let checked = check::is_on().then(|| region.clone());
        Transfer { engine, comm, direction, id, begin: Some(begin), checked }
    }

    /// With what the checks have found.
    fn end_of(&self, completion: Completion) -> End {
        let end = self.direction.end_of(completion);
        if matches!(self.direction, Direction::From { .. }) { headers::judged(self.checked.as_ref(), end) } else { end }
    }

    /// Received messages are compared with this region's types.
    pub(crate) fn compared_with(self, checked: Option<Region>) -> Transfer {
        Transfer { checked, ..self }
    }

    fn id(&self) -> Option<RequestId> {
        match self.id.load(Ordering::Acquire) {
            Transfer::ENDED => None,
            word => Some(RequestId::from_wire(word)),
        }
    }
}

impl Operation for Transfer {
    fn start(self: Arc<Self>) -> Result<()> {
        let Some(begin) = &self.begin else {
            fail!(MPI_ERR_REQUEST, "only persistent requests can be started, and this one is not");
        };
        self.id.store(begin()?.map_or(Transfer::ENDED, RequestId::to_wire), Ordering::Release);
        Ok(())
    }

    fn progress(&self) -> bool {
        self.id().is_none_or(|id| self.engine.peek(id).is_some())
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        self.id().is_none_or(|id| view.is_done(id))
    }

    fn finish(&self) -> Option<End> {
        match self.id() {
            None => Some(self.direction.end_of_nothing()),
            Some(id) => self.engine.take(id).map(|completion| self.end_of(completion)),
        }
    }

    fn look(&self) -> Option<End> {
        match self.id() {
            None => Some(self.direction.end_of_nothing()),
            Some(id) => self.engine.test(id).map(|completion| self.end_of(completion)),
        }
    }

    fn cancel(&self) -> Result<()> {
        if let Some(id) = self.id() {
            self.engine.cancel(id);
        }
        Ok(())
    }

    fn release(&self) -> Result<()> {
        if let Some(id) = self.id() {
            self.engine.release(id);
        }
        Ok(())
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        self.direction.awaits(self.comm.as_ref())
    }

    fn bytes(&self) -> Option<u64> {
        self.checked.as_ref().map(|region| check::without_header(region.len() as u64))
    }
}

/// A receive (`None`: from `MPI_PROC_NULL`) and a send (`None`: done) that count as one.
pub(crate) struct Combined {
    pub(crate) comm: Arc<Comm>,
    pub(crate) receive: Option<RequestId>,
    pub(crate) send: Option<RequestId>,
    /// What the send reads from.
    pub(crate) _copy: Option<Box<[u8]>>,
    pub(crate) source: Option<i32>,
    pub(crate) tag: Option<i32>,
    /// Where the message is received, while the checks are on.
    pub(crate) checked: Option<Region>,
}

impl Combined {
    fn received(&self, completion: Completion) -> End {
        headers::judged(self.checked.as_ref(), End::of_receive(completion))
    }

    fn both(&self) -> impl Iterator<Item = RequestId> {
        [self.receive, self.send].into_iter().flatten()
    }
}

impl Operation for Combined {
    fn start(self: Arc<Self>) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "only persistent requests can be started, and this one is not")
    }

    fn progress(&self) -> bool {
        self.both().all(|id| self.comm.engine().peek(id).is_some())
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        self.both().all(|id| view.is_done(id))
    }

    fn finish(&self) -> Option<End> {
        if !self.progress() {
            return None;
        }
        let engine = self.comm.engine();
        let sent = self.send.and_then(|id| engine.take(id)).map_or_else(End::empty, End::of_send);
        let received = self.receive.and_then(|id| engine.take(id));
        let received = received.map_or_else(End::proc_null, |completion| self.received(completion));
        Some(End { error: received.error.or(sent.error), ..received })
    }

    fn look(&self) -> Option<End> {
        let engine = self.comm.engine();
        self.send.map_or(Some(Completion::default()), |id| engine.test(id))?;
        self.receive.map_or_else(|| Some(End::proc_null()), |id| engine.test(id).map(|end| self.received(end)))
    }

    fn cancel(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "combined sends and receives cannot be cancelled")
    }

    fn release(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "an active combined send and receive cannot be freed: complete it first")
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        Some(Awaits::Receive { comm: &self.comm, source: self.source, tag: self.tag })
    }
}
