//! Collectives in the background: non-blocking and persistent ones (MPI-5 sections 6.12 and 6.13), whichever way they go.

use std::sync::Arc;

use super::depot::{Deal, Desk, Errand};
use super::run::Run;
use super::schedule::Schedule;
use crate::comm::Comm;
use crate::error::Error;
use crate::instance;
use crate::observe::Waiting;

/// What is to be done: planned, but not begun.
pub struct Task(Way);

/// It goes by messages, or by what the members share.
enum Way {
    Messages(Schedule),
    Depot(Arc<Errand>),
}

impl Task {
    pub(super) fn at(desk: Desk, deal: Deal) -> Task {
        Task(Way::Depot(Errand::new(desk, deal)))
    }
}

impl From<Schedule> for Task {
    fn from(schedule: Schedule) -> Task {
        Task(Way::Messages(schedule))
    }
}

/// A collective in the background, to be started once, or, if it is persistent, whenever it is done.
#[derive(Clone)]
pub enum Work {
    /// It goes by messages.
    Run(Arc<Run>),
    /// It goes by what the members share.
    Errand(Arc<Errand>),
}

impl Work {
    /// Work that is not started.
    pub fn new(comm: &Arc<Comm>, task: Task) -> Work {
        match task.0 {
            Way::Messages(schedule) => Work::Run(Run::new(comm, schedule)),
            Way::Depot(mut errand) => {
                Arc::get_mut(&mut errand).expect("nobody knows it yet").prepare(comm);
                Work::Errand(errand)
            }
        }
    }

    /// Starts it; it must be new or done. The messages of all starts have the tag that was drawn when it was planned, and a persistent operation
    /// has a depot of its own, so that persistent collectives may be started in different orders on different ranks.
    pub fn start(&self) {
        match self {
            Work::Run(run) => run.start(instance::engine()),
            Work::Errand(errand) => errand.start(),
        }
    }

    /// True when it has ended. Does what is left to do, if that needs nobody else.
    pub fn is_done(&self) -> bool {
        match self {
            Work::Run(run) => run.is_done(),
            Work::Errand(errand) => errand.finish(),
        }
    }

    /// True when it has ended or [`Work::is_done`] would bring it further. May be called with the engine's lock.
    pub(crate) fn is_ripe(&self) -> bool {
        match self {
            Work::Run(run) => run.is_done(),
            Work::Errand(errand) => errand.is_ripe(),
        }
    }

    /// Waits until it has ended, if it can be waited for without the engine.
    pub(crate) fn wait(&self, waiting: &Waiting<'_>) {
        if let Work::Errand(errand) = self {
            errand.wait(waiting);
        }
    }

    /// What went wrong, if anything; once.
    pub fn take_error(&self) -> Option<Error> {
        match self {
            Work::Run(run) => run.take_error(),
            Work::Errand(errand) => errand.take_error(),
        }
    }
}
