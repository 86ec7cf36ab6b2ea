//! What a blocked call writes on the status board, for `limosa ps` and the hang doctor.
//!
//! The fast path costs one thread-local store per call ([`entering`]); everything else is done when a call is about to
//! sleep.

use crate::check;
use crate::comm::Comm;
use limosa_base::clock;
use limosa_job::{Asleep, Blocked, Job, Kind, Lying, Peer, Polling, Seat, WAITS, Wait};
use limosa_p2p::Observer;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

/// What is known about the calling thread.
struct Caller {
    /// The call that it entered last.
    call: Cell<&'static str>,
    /// The status board counts it, and says nothing of it that the next call would change.
    counted: Cell<bool>,
}

thread_local! {
    static CALLER: Caller = const { Caller { call: Cell::new(""), counted: Cell::new(false) } };
}

/// Records which call of the standard this thread enters.
#[inline]
pub fn entering(call: &'static str) {
    // A thread's last steps (destructors) may come after its thread-local values are gone; the name is lost then.
    let counted = CALLER.try_with(|caller| {
        caller.call.set(call);
        caller.counted.get()
    });
    if counted == Ok(false) {
        introduce(call);
    }
}

/// Returns the call of the standard that this thread entered last.
pub fn current_call() -> &'static str {
    CALLER.try_with(|caller| caller.call.get()).unwrap_or("")
}

/// How the names of calls begin that poll.
const POLLS: &[&str] = &["MPI_Test", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status"];
/// The same of local calls that bindings make around them.
const LOCAL: &[&str] = &["MPI_Status_", "MPI_Get_", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Wti", "MPI_Query_thread"];

/// Counts this thread on the status board among those that use the library. If the board shows it as polling, that ends
/// when it enters a call of another kind, or when the last poll has not been in vain.
#[cold]
fn introduce(call: &'static str) {
    let Some(job) = Job::current() else { return };
    job.seat().thread();
    let polls = POLLER.try_with(|poller| {
        let mut poller = poller.borrow_mut();
        let starts_like = |names: &[&str]| names.iter().any(|name| call.starts_with(name));
        if poller.shown.is_some() && starts_like(LOCAL) {
            return true;
        }
        if let Some(shown) = poller.shown.as_mut().filter(|shown| starts_like(POLLS) && !shown.under_way) {
            shown.under_way = true;
            return true;
        }
        poller.shown = None;
        false
    });
    let _ = CALLER.try_with(|caller| caller.counted.set(!polls.unwrap_or(false)));
}

/// Whether more than one thread of this process has called the library, of those that live.
pub fn has_several_callers() -> bool {
    Job::current().is_some_and(|job| job.seat().threads() > 1)
}

/// Polls in vain between looks at the clock.
const POLLS_PER_LOOK: u32 = 8;
/// A thread that has polled in vain for this time is shown as polling, in nanoseconds.
const POLLING_NS: u64 = 100_000_000;

/// What is known of a thread that polls (`MPI_Test`, `MPI_Iprobe`).
struct Poller {
    /// How often it has polled in vain.
    polls: u32,
    /// When it did so first, in nanoseconds.
    since_ns: Option<u64>,
    /// What the status board says.
    shown: Option<Shown>,
}

/// A thread that the status board shows as polling.
struct Shown {
    record: Polling<'static>,
    /// What it asks for; `None` once that has changed.
    subject: Option<u64>,
    /// It has entered the call again. If it does so once more before [`polled`] is called, the poll was not in vain.
    under_way: bool,
    /// It inquires as a thread does that waits.
    inquiries: Inquiries,
}

thread_local! {
    static POLLER: RefCell<Poller> = const { RefCell::new(Poller { polls: 0, since_ns: None, shown: None }) };
}

/// Notes that this thread has asked in vain whether something has ended or arrived. `subject` is the same number
/// whenever it asks for the same; `list` gives what it would wait for.
pub fn polled(subject: u64, list: &ListAwaits<'_>) {
    let due = POLLER.try_with(|poller| poller.borrow_mut().polled(subject));
    let Ok(Some(due)) = due else { return };
    // An inquiry may call functions of the program, which call the library: the state is not borrowed meanwhile.
    let call = current_call();
    list(&mut |awaits| awaits.inquire());
    let _ = CALLER.try_with(|caller| caller.call.set(call));
    if let Due::Show { since_ns } = due {
        let _ = POLLER.try_with(|poller| poller.borrow_mut().begin(subject, since_ns, list));
    }
}

/// What is to be done after a poll in vain.
enum Due {
    /// Ask the others.
    Inquire,
    /// Ask the others, and show on the status board that this thread polls.
    Show { since_ns: u64 },
}

impl Poller {
    fn polled(&mut self, subject: u64) -> Option<Due> {
        self.polls = self.polls.wrapping_add(1);
        let looks = self.polls.is_multiple_of(POLLS_PER_LOOK);
        if let Some(shown) = &mut self.shown {
            shown.under_way = false;
            shown.record.again();
            if shown.subject.is_some_and(|before| before != subject) {
                self.shown = None;
                self.show(None, &|_| {});
            } else if looks && shown.inquiries.left().is_some_and(|left| left.is_zero()) {
                shown.inquiries.made += 1;
                return Some(Due::Inquire);
            }
            return None;
        }
        if !looks {
            return None;
        }
        let now = clock::now_ns();
        let since_ns = *self.since_ns.get_or_insert(now);
        (now.saturating_sub(since_ns) >= POLLING_NS).then(|| {
            self.since_ns = None;
            Due::Show { since_ns }
        })
    }

    /// This thread is shown from now on.
    fn begin(&mut self, subject: u64, since_ns: u64, list: &ListAwaits<'_>) {
        self.show(Some(subject), list);
        if let Some(shown) = &mut self.shown {
            shown.inquiries = Inquiries { made: Inquiries::MADE_BY_POLLERS, since_ns };
        }
    }

    #[cold]
    fn show(&mut self, subject: Option<u64>, list: &ListAwaits<'_>) {
        let record = Waiting::several(list, false).show(|seat, blocked| seat.polling(blocked)).flatten();
        let inquiries = Inquiries { made: Inquiries::MOST, since_ns: 0 };
        self.shown = record.map(|record| Shown { record, subject, under_way: false, inquiries });
        if self.shown.is_some() {
            // So that the next call looks here.
            let _ = CALLER.try_with(|caller| caller.counted.set(false));
        }
    }
}

/// What one operation waits for, in the standard's terms.
#[derive(Clone, Copy)]
pub enum Awaits<'a> {
    /// That `dest` takes a message.
    Send {
        /// On this communicator.
        comm: &'a Comm,
        /// The receiver.
        dest: Option<i32>,
        /// The message's tag.
        tag: Option<i32>,
    },
    /// A message.
    Receive {
        /// On this communicator.
        comm: &'a Comm,
        /// From this rank; `None`: from any.
        source: Option<i32>,
        /// With this tag; `None`: with any.
        tag: Option<i32>,
    },
    /// That the other members take part in a collective.
    Collective {
        /// On this communicator.
        comm: &'a Comm,
        /// The call that started it; empty if that is the one that waits.
        started: &'static str,
        /// How to find out what keeps the others.
        inquiry: Option<&'a dyn Inquiry>,
    },
    /// Something on a window.
    Window {
        /// The window's communicator.
        comm: &'a Comm,
        /// By this member; `None`: by all.
        target: Option<i32>,
    },
    /// That another group connects, or accepts.
    Connection {
        /// The communicator of this group.
        comm: &'a Comm,
        /// The port; empty if there is none.
        port: &'a str,
        /// The other job, if only processes of that one can do so.
        job: Option<u64>,
    },
}

/// Asks other members what they do instead of what is awaited of them, when that takes long.
pub trait Inquiry {
    /// Asks. The answer may end what is awaited.
    fn inquire(&self);
}

impl Awaits<'_> {
    fn inquire(&self) {
        if let Awaits::Collective { inquiry: Some(inquiry), .. } = self {
            inquiry.inquire();
        }
    }

    fn comm(&self) -> &Comm {
        match self {
            Awaits::Send { comm, .. }
            | Awaits::Receive { comm, .. }
            | Awaits::Collective { comm, .. }
            | Awaits::Window { comm, .. }
            | Awaits::Connection { comm, .. } => comm,
        }
    }

    /// As a record for the status board.
    fn record<'n>(&self, comm_name: &'n str) -> Wait<'n> {
        let comm = self.comm();
        let member = |rank: Option<i32>| rank.map_or_else(|| some(comm, Peer::Any), |rank| one(comm, rank));
        let (kind, peer, tag, started) = match *self {
            Awaits::Send { dest, tag, .. } => (Kind::Send, member(dest), tag, ""),
            Awaits::Receive { source, tag, .. } => (Kind::Receive, member(source), tag, ""),
            Awaits::Collective { started, .. } => (Kind::Collective, some(comm, Peer::Members), None, started),
            Awaits::Connection { job, .. } => {
                (Kind::Connection, job.map_or(Peer::Any, |job| Peer::Outside { job, member: None }), None, "")
            }
            Awaits::Window { target: None, .. } => (Kind::Other, some(comm, Peer::Members), None, ""),
            Awaits::Window { target, .. } => (Kind::Other, member(target), None, ""),
        };
        let series = if peer == Peer::Members { series(comm) } else { None };
        Wait { kind, peer, tag, context: comm.context(), comm: comm_name, members: comm.size() as u32, series, started }
    }
}

/// Returns the first member and the distance of the others, if they lie at regular distances in the job. In a
/// communicator of as many ranks as the job has, the board's readers know the members.
fn series(comm: &Comm) -> Option<(u32, u32)> {
    let mut members = comm.group().iter();
    let (first, second) = (members.next()?, members.next()?);
    let distance = second.checked_sub(first)?;
    let mut next = second;
    let is_regular = !comm.is_inter()
        && members.all(|member| {
            next = next.wrapping_add(distance);
            member == next
        });
    is_regular.then_some((first, distance))
}

/// One member, for the status board.
fn one(comm: &Comm, rank: i32) -> Peer {
    let number = comm.world_rank_of(rank).unwrap_or(u32::MAX);
    match comm.world().outside(number) {
        Some((job, world)) => Peer::Outside { job, member: Some((rank as u32, world)) },
        None => Peer::Rank { rank: rank as u32, world: number },
    }
}

/// Any or all members, which are `inside` if they are all of this job.
fn some(comm: &Comm, inside: Peer) -> Peer {
    if !comm.has_outsiders() {
        return inside;
    }
    let world = comm.world();
    let mut jobs = comm.group().iter().chain(comm.peers().iter()).filter_map(|peer| Some(world.outside(peer)?.0));
    let first = jobs.next().unwrap_or(0);
    Peer::Outside { job: if jobs.all(|job| job == first) { first } else { 0 }, member: None }
}

/// Calls its argument with the wait of each of several operations.
pub type ListAwaits<'a> = dyn Fn(&mut dyn FnMut(Awaits<'_>)) + 'a;

/// What a thread waits for.
pub struct Waiting<'a> {
    what: What<'a>,
    asleep: RefCell<Option<Asleep<'static>>>,
    inquiries: Cell<Inquiries>,
}

/// The inquiries of a thread that waits.
#[derive(Clone, Copy)]
struct Inquiries {
    /// How many there were.
    made: u32,
    /// When it began to wait, in nanoseconds.
    since_ns: u64,
}

impl Inquiries {
    const NONE: Inquiries = Inquiries { made: 0, since_ns: 0 };
    /// A thread that has waited for so long inquires, and again whenever it has waited for twice as long.
    const AFTER: Duration = Duration::from_millis(10);
    /// So often, which is 20 s: others keep in mind what they were asked.
    const MOST: u32 = 12;
    /// A thread that polls inquires first when it is shown on the status board, which counts as so many.
    const MADE_BY_POLLERS: u32 = 4;

    /// How long it is until the next one.
    fn left(self) -> Option<Duration> {
        let waited = Duration::from_nanos(clock::now_ns().saturating_sub(self.since_ns));
        (self.made < Inquiries::MOST).then(|| (Inquiries::AFTER * (1 << self.made)).saturating_sub(waited))
    }
}

enum What<'a> {
    One(Awaits<'a>),
    Several { list: &'a ListAwaits<'a>, all: bool },
    Nothing,
}

impl<'a> Waiting<'a> {
    #[inline]
    fn new(what: What<'a>) -> Waiting<'a> {
        Waiting { what, asleep: RefCell::new(None), inquiries: Cell::new(Inquiries::NONE) }
    }

    /// Makes the description of a wait for a message from `source` (`None`: any source) with `tag` (`None`: any).
    #[inline]
    pub fn receive(comm: &'a Comm, source: Option<i32>, tag: Option<i32>) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Receive { comm, source, tag }))
    }

    /// That `dest` takes a message.
    #[inline]
    pub fn send(comm: &'a Comm, dest: i32, tag: i32) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Send { comm, dest: Some(dest), tag: Some(tag) }))
    }

    /// That the other members take part in a collective.
    #[inline]
    pub fn collective(comm: &'a Comm, inquiry: Option<&'a dyn Inquiry>) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Collective { comm, started: "", inquiry }))
    }

    /// Something that a member of a window is to do, or all of them.
    pub fn window(comm: &'a Comm, target: Option<i32>) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Window { comm, target }))
    }

    /// That another group, of this other job if there is one, connects or accepts.
    pub fn connection(comm: &'a Comm, port: &'a str, job: Option<u64>) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Connection { comm, port, job }))
    }

    /// Makes the description of a wait for all or any of several operations. `list` is called when the thread is about
    /// to sleep.
    #[inline]
    pub fn several(list: &'a ListAwaits<'a>, all: bool) -> Waiting<'a> {
        Waiting::new(What::Several { list, all })
    }

    /// Something that has no name in the standard.
    pub fn nothing_in_particular() -> Waiting<'a> {
        Waiting::new(What::Nothing)
    }
}

impl Waiting<'_> {
    /// Calls its argument with each wait.
    fn each(&self, tell: &mut dyn FnMut(Awaits<'_>)) {
        match &self.what {
            What::One(awaits) => tell(*awaits),
            What::Several { list, .. } => list(tell),
            What::Nothing => {}
        }
    }

    fn can_inquire(&self) -> bool {
        let mut can = false;
        self.each(&mut |awaits| can |= matches!(awaits, Awaits::Collective { inquiry: Some(_), .. }));
        can
    }

    /// Passes to `write` what is awaited, and the place on the status board.
    fn show<T>(&self, write: impl FnOnce(Seat<'static>, &Blocked<'_>) -> T) -> Option<T> {
        let job = Job::current()?;
        let mut names: Vec<String> = Vec::new();
        let mut waits: Vec<Wait<'_>> = Vec::new();
        let mut more = 0;
        let mut messages: Option<Vec<Message>> = None;
        let is_single = job.size() == 1;
        let mut accompanied = is_single && matches!(self.what, What::Nothing);
        let mut add = |awaits: Awaits<'_>| {
            let may_come = matches!(awaits, Awaits::Connection { .. });
            accompanied |= may_come || (is_single && (awaits.comm().is_inter() || awaits.comm().size() > 1));
            if matches!(awaits, Awaits::Receive { .. }) {
                messages.get_or_insert_with(|| unreceived(awaits.comm()));
            }
            // Before each sleep of a wait for many operations: the others are only counted.
            if waits.len() == WAITS {
                more += 1;
                return;
            }
            names.push(match awaits {
                Awaits::Connection { port, .. } => port.to_owned(),
                _ => awaits.comm().describe(),
            });
            waits.push(awaits.record(""));
        };
        self.each(&mut add);
        let all = !matches!(self.what, What::Several { all: false, .. });
        let waits: Vec<Wait<'_>> = waits.into_iter().zip(&names).map(|(wait, comm)| Wait { comm, ..wait }).collect();
        let lying: Vec<Lying<'_>> = messages.iter().flatten().map(Message::show).collect();
        let written = write(job.seat(), &Blocked { call: current_call(), waits: &waits, more, all, lying: &lying });
        if limosa_hang::alone::is_in_charge(job) {
            limosa_hang::alone::about_to_wait(job, accompanied);
        }
        Some(written)
    }
}

/// A message of the program that was not received.
struct Message {
    comm: Arc<Comm>,
    name: String,
    source: i32,
    tag: i32,
    bytes: u64,
}

impl Message {
    fn show(&self) -> Lying<'_> {
        Lying {
            source: self.source as u32,
            source_world: match self.comm.has_outsiders() {
                true => self.source as u32,
                false => self.comm.world_rank_of(self.source).unwrap_or(u32::MAX),
            },
            tag: self.tag,
            bytes: self.bytes,
            context: self.comm.context(),
            comm: &self.name,
        }
    }
}

/// Returns some messages of the program in the communicator's world that have arrived and were not received.
fn unreceived(comm: &Comm) -> Vec<Message> {
    let Some(engine) = comm.engine_if_any() else { return Vec::new() };
    let found = engine.some_unreceived().into_iter().filter_map(|(envelope, bytes)| {
        let comm = Comm::find(comm.world(), envelope.context)?;
        let bytes = check::without_header(bytes);
        Some(Message { name: comm.describe(), comm, source: envelope.source, tag: envelope.tag, bytes })
    });
    found.collect()
}

/// A wait that is reported before the thread sleeps, and taken back when it has woken.
pub struct Sleeper<'a> {
    /// What the status board says.
    pub waiting: &'a Waiting<'a>,
    /// Reports that a thread is about to sleep; called with the engine's lock.
    pub begin_sleep: &'a dyn Fn(),
    /// Takes that back.
    pub end_sleep: &'a dyn Fn(),
}

impl Observer for Sleeper<'_> {
    fn arrange(&self) {
        (self.begin_sleep)();
    }

    fn retract(&self) {
        (self.end_sleep)();
    }

    fn blocked(&self) {
        self.waiting.blocked();
    }

    fn resumed(&self) {
        self.waiting.resumed();
    }

    fn woken_for_nothing(&self) {
        self.waiting.woken_for_nothing();
    }

    fn patience(&self) -> Option<Duration> {
        self.waiting.patience()
    }

    fn overdue(&self) {
        self.waiting.overdue();
    }
}

impl Observer for Waiting<'_> {
    #[cold]
    fn blocked(&self) {
        let _ = POLLER.try_with(|poller| poller.borrow_mut().shown = None);
        *self.asleep.borrow_mut() = self.show(|seat, blocked| seat.blocked(blocked));
    }

    #[cold]
    fn resumed(&self) {
        *self.asleep.borrow_mut() = None;
    }

    #[cold]
    fn woken_for_nothing(&self) {
        if let Some(job) = Job::current() {
            job.seat().woken_for_nothing();
        }
    }

    fn patience(&self) -> Option<Duration> {
        if self.inquiries.get().since_ns == 0 {
            let made = if self.can_inquire() { 0 } else { Inquiries::MOST };
            self.inquiries.set(Inquiries { made, since_ns: clock::now_ns() });
        }
        self.inquiries.get().left()
    }

    #[cold]
    fn overdue(&self) {
        let inquiries = self.inquiries.get();
        self.inquiries.set(Inquiries { made: inquiries.made + 1, ..inquiries });
        self.each(&mut |awaits| awaits.inquire());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_inquiry_calls_may_poll_too() {
        entering("MPI_Test");
        let inquired = Cell::new(false);
        while !inquired.get() {
            polled(1, &|_| {
                entering("MPI_Iprobe");
                polled(2, &|_| {});
                inquired.set(true);
            });
        }
        assert_eq!(current_call(), "MPI_Test");
    }
}
