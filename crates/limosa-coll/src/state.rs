//! What collectives keep with a communicator.

use std::sync::{Arc, OnceLock, Weak};

use super::background::Mailboxes;
use super::call_log::CallLog;
use super::choice::{self, Background};
use super::hosts::Hosts;
use super::kind::{KINDS, Kind};
use super::numbers::Numbers;
use super::shared::{HostGroup, SharedGroup};
use limosa_mpi::comm::{Attachment, Comm};
use limosa_mpi::error::Result;
use limosa_mpi::topo::Neighbours;

/// What collectives keep with a communicator, made at the first of them and dropped with it.
#[derive(Default)]
pub(super) struct CommState {
    pub(super) numbers: Arc<Numbers>,
    /// What the members share for blocking collectives, made at the first of them.
    group: OnceLock<Option<Arc<SharedGroup>>>,
    /// Where the members are.
    hosts: OnceLock<Hosts>,
    /// What those on this host share for blocking collectives that are composed; made at the first blocking one.
    host_group: OnceLock<Option<Box<HostGroup>>>,
    /// What the members share for non-blocking ones, found at the first of them.
    mailboxes: OnceLock<Option<Arc<Mailboxes>>>,
    /// How each kind of operation goes in the background.
    limits: OnceLock<[Background; KINDS]>,
    /// This process's neighbours in the communicator's topology.
    neighbours: OnceLock<Arc<Neighbours>>,
    /// What this rank has called, opened at the first collective.
    log: OnceLock<Arc<CallLog>>,
}

impl CommState {
    /// That of a communicator.
    #[inline]
    pub(super) fn of(comm: &Comm) -> &CommState {
        comm.attachment(CommState::default)
    }

    /// What the members share for blocking collectives, set up at the first call, which is a collective one; `None`
    /// where there is nothing to gain or no memory.
    #[inline]
    pub(super) fn group(&self, comm: &Comm) -> Option<&SharedGroup> {
        match self.group.get() {
            Some(group) => group.as_deref(),
            None => self.first_group(comm),
        }
    }

    /// What the members share for blocking collectives, if it was set up.
    #[inline(always)]
    pub(super) fn group_if_any(&self) -> Option<&SharedGroup> {
        self.group.get()?.as_deref()
    }

    #[cold]
    fn first_group(&self, comm: &Comm) -> Option<&SharedGroup> {
        // Without an engine there is nothing to set up, and plans are made for their own sake.
        let engine = comm.engine_if_any()?;
        let log = self.log(comm);
        let group =
            self.group.get_or_init(|| SharedGroup::establish(comm, engine, &self.numbers).map(Arc::new)).as_ref();
        if let (Some(group), Some(log)) = (group, log) {
            let calls: Weak<SharedGroup> = Arc::downgrade(group);
            log.read_also(calls);
        }
        let group = group.map(|group| &**group);
        // Here, where all members are, whatever becomes of their first operation.
        if group.is_none() && self.hosts(comm).are_mixed() {
            self.host_group
                .get_or_init(|| HostGroup::establish(comm, engine, self.hosts(comm), &self.numbers).map(Box::new));
        }
        group
    }

    /// What this rank has called; `None` where nothing can move.
    pub(super) fn log(&self, comm: &Comm) -> Option<&Arc<CallLog>> {
        match self.log.get() {
            Some(log) => Some(log),
            None => {
                let engine = comm.engine_if_any().filter(|_| comm.size() > 1)?;
                Some(self.log.get_or_init(|| CallLog::open(comm, engine, &self.numbers)))
            }
        }
    }

    /// Where the members are.
    pub(super) fn hosts(&self, comm: &Comm) -> &Hosts {
        self.hosts.get_or_init(|| Hosts::of(comm))
    }

    /// What the members on this host share for blocking collectives, if anything.
    pub(super) fn host_group(&self) -> Option<&HostGroup> {
        self.host_group.get()?.as_deref()
    }

    /// The mailboxes for non-blocking operations; `None` where there is none, which all members find alike.
    pub(super) fn mailboxes(&self, comm: &Comm) -> Option<&Arc<Mailboxes>> {
        match self.mailboxes.get() {
            Some(mailboxes) => mailboxes.as_ref(),
            None => {
                let engine = comm.engine_if_any()?;
                self.mailboxes.get_or_init(|| Mailboxes::for_all(comm, engine)).as_ref()
            }
        }
    }

    /// The mailboxes for non-blocking operations, if one was used.
    pub(super) fn mailboxes_if_any(&self) -> Option<&Arc<Mailboxes>> {
        self.mailboxes.get()?.as_ref()
    }
}

impl CommState {
    /// This process's neighbours in the communicator's topology.
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

    /// How an operation goes in the background on this communicator.
    pub(super) fn in_background(&self, kind: Kind, ranks: usize) -> Background {
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
