//! State of collectives on a communicator.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use super::background::Mailboxes;
use super::call_log::CallLog;
use super::choice::{self, Background};
use super::hosts::Hosts;
use super::kind::{Collective, KINDS};
use super::numbers::Numbers;
use super::shared::{HostGroup, SharedGroup};
use limosa_mpi::comm::{Attachment, Comm};
use limosa_mpi::error::Result;
use limosa_mpi::topo::Neighbours;

/// State of collectives on a communicator, made at the first collective and dropped with the communicator.
#[derive(Default)]
pub(super) struct CommState {
    pub(super) numbers: Arc<Numbers>,
    /// Shared memory of the members for blocking collectives, made at the first of them.
    group: OnceLock<Option<Arc<SharedGroup>>>,
    /// Hosts of the members.
    hosts: OnceLock<Hosts>,
    /// Shared memory of the members on this host for composed blocking collectives; made at the first blocking
    /// collective.
    host_group: OnceLock<Option<Box<HostGroup>>>,
    /// Mailboxes of the members for non-blocking collectives, joined at the first of them.
    mailboxes: OnceLock<Option<Arc<Mailboxes>>>,
    /// Limits of each kind of operation in the background.
    limits: OnceLock<[Background; KINDS]>,
    /// This process's neighbours in the communicator's topology.
    neighbours: OnceLock<Arc<Neighbours>>,
    /// Log of this rank's calls, opened at the first collective.
    log: OnceLock<Arc<CallLog>>,
    /// Whether the checks have compared the function of this rank's latest blocking call and not yet its arguments.
    /// Used on the communicator of the checks.
    pub(super) is_half_compared: AtomicBool,
}

impl CommState {
    /// Returns the state of a communicator.
    #[inline]
    pub(super) fn of(comm: &Comm) -> &CommState {
        comm.attachment(CommState::default)
    }

    /// Returns the shared memory for blocking collectives, set up at the first call, which is collective; `None` if
    /// there is no gain or no memory.
    #[inline]
    pub(super) fn group(&self, comm: &Comm) -> Option<&SharedGroup> {
        match self.group.get() {
            Some(group) => group.as_deref(),
            None => self.first_group(comm),
        }
    }

    /// Returns the shared memory for blocking collectives, if it was set up.
    #[inline(always)]
    pub(super) fn group_if_any(&self) -> Option<&SharedGroup> {
        self.group.get()?.as_deref()
    }

    #[cold]
    fn first_group(&self, comm: &Comm) -> Option<&SharedGroup> {
        // Without an engine there is nothing to set up; tests plan without running.
        let engine = comm.engine_if_any()?;
        let log = self.log(comm);
        let group =
            self.group.get_or_init(|| SharedGroup::establish(comm, engine, &self.numbers).map(Arc::new)).as_ref();
        if let (Some(group), Some(log)) = (group, log) {
            let calls: Weak<SharedGroup> = Arc::downgrade(group);
            log.read_also(calls);
        }
        let group = group.map(|group| &**group);
        // Here, where all members are, whatever the result of their first operation.
        if group.is_none() && self.hosts(comm).are_mixed() {
            self.host_group
                .get_or_init(|| HostGroup::establish(comm, engine, self.hosts(comm), &self.numbers).map(Box::new));
        }
        group
    }

    /// Returns the log of this rank's calls; `None` without an engine.
    pub(super) fn log(&self, comm: &Comm) -> Option<&Arc<CallLog>> {
        match self.log.get() {
            Some(log) => Some(log),
            None => {
                let engine = comm.engine_if_any().filter(|_| comm.size() > 1)?;
                Some(self.log.get_or_init(|| CallLog::open(comm, engine, &self.numbers)))
            }
        }
    }

    /// Returns the hosts of the members.
    pub(super) fn hosts(&self, comm: &Comm) -> &Hosts {
        self.hosts.get_or_init(|| Hosts::of(comm))
    }

    /// Returns the shared memory of the members on this host for blocking collectives, if there is any.
    pub(super) fn host_group(&self) -> Option<&HostGroup> {
        self.host_group.get()?.as_deref()
    }

    /// Returns the mailboxes for non-blocking operations; `None` if there are none, which all members find alike.
    pub(super) fn mailboxes(&self, comm: &Comm) -> Option<&Arc<Mailboxes>> {
        match self.mailboxes.get() {
            Some(mailboxes) => mailboxes.as_ref(),
            None => {
                let engine = comm.engine_if_any()?;
                self.mailboxes.get_or_init(|| Mailboxes::for_all(comm, engine)).as_ref()
            }
        }
    }

    /// Returns the mailboxes for non-blocking operations, if they were used.
    pub(super) fn mailboxes_if_any(&self) -> Option<&Arc<Mailboxes>> {
        self.mailboxes.get()?.as_ref()
    }
}

impl CommState {
    /// Returns this process's neighbours in the communicator's topology.
    ///
    /// # Errors
    /// `MPI_ERR_TOPOLOGY`: it has none.
    pub(super) fn neighbours(&self, comm: &Comm) -> Result<&Arc<Neighbours>> {
        match self.neighbours.get() {
            Some(neighbours) => Ok(neighbours),
            None => {
                let found = Arc::new(comm.neighbours()?);
                Ok(self.neighbours.get_or_init(|| found))
            }
        }
    }

    /// Returns the limits of an operation in the background on this communicator.
    pub(super) fn in_background(&self, kind: Collective, ranks: usize) -> Background {
        self.limits.get_or_init(|| choice::in_background(ranks))[kind as usize - 1]
    }
}

impl Attachment for CommState {
    fn keeps_shared_memory(&self) -> bool {
        self.group.get().is_some_and(Option::is_some)
            || self.host_group().is_some()
            || self.mailboxes_if_any().is_some()
    }
}
