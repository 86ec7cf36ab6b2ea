//! The engine: one per process. Starts operations, makes progress, and waits.
//!
//! Contract:
//! - every method may be called by any thread at any time; the lock is held for protocol work only, never while a
//!   continuation runs or a large message is copied out of a peer's memory;
//! - started operations complete whatever the program does: when no thread is in the library, the helper thread serves
//!   what cannot wait;
//! - a blocked call spins for about as long as a wake-up costs, yields when there are more processes than processors,
//!   and then sleeps.
//!
//! The doorbell's state is set under the lock. It rests at `Away` (or `AwayAll` while continuations are outstanding); a
//! blocked call sets `Asleep` before it sleeps, and `Awake` while it polls for something urgent, so that it is not
//! served twice.

use crate::handlers::{self, Chapter, DeathHook, Handler};
use crate::interrupt::Interrupted;
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::request::{Completion, Continuation, Failure, Label, Owner, Phase, RequestId, Short, Taken, Unknown};
use crate::state::{Begun, Concerns, Mode, ProgramJob, State};
use limosa_base::alarm::Alarm;
use limosa_base::biased::Biased;
use limosa_base::doorbell::State as Bell;
use limosa_base::{cpu, reserve, thread};
use limosa_device::shm::{DoorbellRef, HostMemory, ShmDevice};
use limosa_device::{Address, Devices, Meta, Peer, PeerMemory, Urgency};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

mod fast_path;
mod holdings;
mod leaving;
mod listening;
mod peers;
mod probes;
mod sharing;
mod sleepers;
#[cfg(test)]
mod tests;
mod waiting;
mod watch;
mod withdrawing;

use watch::{DeathWatcher, Watch};
use withdrawing::interrupted_if_cancelled;

pub use fast_path::Awaited;
pub use holdings::{Holdings, Traffic, Unreceived};
pub use leaving::in_service;
pub(crate) use listening::Listeners;
pub use listening::{Listener, Words};
pub use probes::Matched;
pub(crate) use sleepers::Wishes;

/// How often a blocking receive looks for its message before it begins to wait in earnest.
const FIRST_LOOKS: u32 = 16;

/// How a blocked call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Spin, then yield if processors are scarce, then sleep.
    Auto,
    /// Spin for ever.
    Poll,
    /// Sleep at once.
    Block,
}

/// Configuration of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How blocked calls wait.
    pub wait: Wait,
    /// How long `Wait::Auto` spins, in nanoseconds.
    pub spin_ns: u64,
    /// Longest message that travels with its envelope, in bytes; up to four times as much when processes outnumber
    /// processors.
    pub eager_limit: usize,
    /// How much memory messages may take that no receive was posted for, in bytes, before a process that waits for
    /// nothing takes no more.
    pub unexpected_limit: usize,
    /// Whether a helper thread serves what cannot wait while no thread of the program is in the library. Tests that
    /// decide themselves who runs when do without.
    pub independent_progress: bool,
}

/// What an engine stands on.
pub struct Links {
    /// The devices, with the peers that are known from the start.
    pub devices: Devices,
    /// This process's doorbell, which all devices ring or have rung.
    pub doorbell: DoorbellRef,
    /// This process among the peers.
    pub rank: Peer,
    /// Number of peers, this process among them.
    pub peers: u32,
    /// How many of them share this host's processors.
    pub processes_here: u32,
}

/// Told when a blocked call is about to sleep (or has polled for long), and when it goes on; always without the
/// engine's lock.
pub trait Observer {
    /// The call is going to sleep if its condition, evaluated once more after this, still does not hold: for telling
    /// those who can make it hold that they must ring ([`HostMemory::ring`]). Called with the engine's lock.
    fn arrange(&self) {}
    /// The call sleeps no more: takes back what [`Observer::arrange`] told.
    fn retract(&self) {}
    /// The call has waited for so long that others may want to know.
    fn blocked(&self);
    /// The call waits no more, or something has moved: it looks around.
    fn resumed(&self);
    /// It has been woken and has looked: nothing moved, and its condition does not hold. For counting only; the engine's
    /// lock may be held.
    fn woken_for_nothing(&self) {}
    /// After how long it wants [`Observer::overdue`] called if the call waits on; asked while it is reported as blocked.
    fn patience(&self) -> Option<Duration> {
        None
    }
    /// The call has waited for that long.
    fn overdue(&self) {}
}

/// An observer that does nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn blocked(&self) {}
    fn resumed(&self) {}
}

/// Why labelled requests were not awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAwaited {
    /// There is no request of the name with this index.
    Unknown(usize),
    /// The program was interrupted.
    Interrupted,
}

/// A send or receive that was started.
#[derive(Debug)]
#[must_use]
pub enum Started {
    /// It is done already.
    Done,
    /// It is under way.
    Pending(RequestId),
}

/// Read access to the ends of requests, for conditions of [`Engine::block_on`].
pub struct View<'a>(&'a State);

impl View<'_> {
    /// True if the request is done (or does not exist any more).
    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        self.0.requests.get(id).is_none_or(|r| matches!(r.phase, Phase::Done))
    }

    /// True if the device has failed for good.
    pub fn is_broken(&self) -> bool {
        self.0.broken.is_some()
    }

    /// Why a group that acts together on this context cannot do so any more, if so: the device has failed, or a member
    /// has died.
    #[inline]
    pub fn lost_group(&self, context: u64) -> Option<Failure> {
        self.0.lost_group(context)
    }
}

impl From<ShmDevice> for Links {
    /// All processes that share this device's memory.
    fn from(device: ShmDevice) -> Links {
        let (rank, peers, doorbell) = (device.rank(), device.size(), device.doorbell());
        Links { devices: device.into(), doorbell, rank, peers, processes_here: peers }
    }
}

struct Core {
    devices: Devices,
    state: State,
    /// Threads in blocking calls, except for those that run jobs.
    waiters: usize,
    /// Those of them that sleep.
    sleepers: usize,
    /// The alarm is set, and this long was its time when it was set.
    alarm: Option<Duration>,
    /// How often in a row the attendant wanted to be called again.
    reminders: u32,
    /// Sleeps with a backlog since something moved.
    sleeps_in_vain: u32,
    /// Packets that handlers want sent when the device is free.
    answers: Vec<(Peer, Meta)>,
}

impl Core {
    fn start_send(
        &mut self,
        me: Peer,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
    ) -> Result<Option<RequestId>, Failure> {
        if peer == me {
            self.state.send_local(envelope, region, mode)
        } else {
            self.state.send(&mut self.devices, peer, envelope, region, mode)
        }
    }

    /// Sends a message that can be on its way at once, without changing anything for anybody else; false if this is not
    /// such a one.
    #[inline]
    fn send_now(&mut self, me: Peer, peer: Peer, envelope: &Envelope, region: &Region) -> bool {
        peer != me
            && region.as_bytes().is_some_and(|bytes| self.state.send_now(&mut self.devices, peer, envelope, bytes))
    }

    /// Nothing is to be done, and no thread sleeps.
    #[inline]
    fn is_quiet(&self) -> bool {
        let state = &self.state;
        self.sleepers == 0
            && state.continuations == 0
            && state.jobs.is_empty()
            && state.unannounced.is_empty()
            && !self.devices.is_unwatched()
            && !state.has_backlog()
    }

    fn joint_to_help(&mut self) -> Option<Help> {
        let (joint, peer, region) = self.state.joint_to_help(&self.devices)?;
        let (me, to) = self.devices.host_address(self.state.rank).zip(self.devices.host_address(peer))?;
        Some(Help { me, joint, to, region })
    }
}

/// A copy that this process can help with: joint number `joint` of this process, to be written to the memory of the
/// receiver `to`.
struct Help {
    me: Address,
    joint: usize,
    to: Address,
    region: Region,
}

/// The message engine of a process.
pub struct Engine {
    this: Weak<Engine>,
    core: Biased<Core>,
    doorbell: DoorbellRef,
    memory: Option<Arc<dyn PeerMemory>>,
    host: Option<Arc<HostMemory>>,
    options: Options,
    rank: Peer,
    oversubscribed: bool,
    sharing: sharing::Sharing,
    stopping: AtomicBool,
    /// A device has failed, or a peer has died: what the state says too, to be read without the lock.
    impaired: Arc<AtomicBool>,
    helper: Mutex<Option<JoinHandle<()>>>,
    /// Descriptors of devices that do not ring the doorbell.
    watched: Mutex<Vec<Watch>>,
    deaths: Option<DeathWatcher>,
    /// There are other processes on this host from the start.
    has_company: bool,
    alarm: Alarm,
    /// Counts how often a thread left something to the alarm. Written under the lock, read by the alarm thread without
    /// it.
    put_off: AtomicU32,
    /// The count when the alarm was set.
    put_off_then: AtomicU32,
    /// The time for which it was set then, in microseconds.
    linger_us: AtomicU32,
    alarm_thread: Mutex<Option<JoinHandle<()>>>,
    attendant: OnceLock<Attendant>,
    panic_hook: OnceLock<PanicHook>,
}

/// A callback of the layer above. A thread that another process has woken calls it, without the lock. It returns true
/// to be called again after a while.
pub type Attendant = fn() -> bool;

/// A callback that ends the job, for the reason in the text. A thread of the engine that has panicked calls it, without
/// the lock.
pub type PanicHook = fn(&str);

impl Engine {
    /// An engine over these devices, with its helper thread.
    ///
    /// # Errors
    /// The operating system's, when the helper thread cannot be started.
    pub fn start(links: Links, options: Options) -> io::Result<Arc<Engine>> {
        let Links { devices, doorbell, rank, peers, processes_here } = links;
        let oversubscribed = processes_here as usize > cpu::allowed();
        let host = devices.host_memory()?.map(Arc::new);
        if let Some(host) = host.as_ref().filter(|_| processes_here > 1) {
            cpu::begin_on(host.me() as usize);
        }
        // An offer's answer may have to wait for its turn on a processor; a copy more costs less.
        let eager_limit = if oversubscribed { 4 * options.eager_limit } else { options.eager_limit }
            .min(devices.least_max_data() - 8);
        let memory = devices.peer_memory();
        let watched = devices
            .wait_descriptors()?
            .into_iter()
            .map(|(descriptor, ready)| Watch::new(descriptor, ready))
            .collect::<Vec<_>>();
        let deaths = devices.death_watch().map(DeathWatcher::new);
        let core = Core {
            devices,
            state: State::new(rank, peers, eager_limit, options.unexpected_limit),
            waiters: 0,
            sleepers: 0,
            alarm: None,
            reminders: 0,
            sleeps_in_vain: 0,
            answers: Vec::new(),
        };
        let impaired = core.state.is_impaired.clone();
        reserve::hold();
        let alarm = Alarm::new()?;
        let engine = Arc::new_cyclic(|this| Engine {
            this: this.clone(),
            core: Biased::new(core),
            doorbell,
            memory,
            host,
            options: Options { eager_limit, ..options },
            rank,
            oversubscribed,
            sharing: sharing::Sharing::new(),
            stopping: AtomicBool::new(false),
            impaired,
            helper: Mutex::new(None),
            watched: Mutex::new(watched),
            deaths,
            has_company: processes_here > 1,
            alarm,
            put_off: AtomicU32::new(0),
            put_off_then: AtomicU32::new(0),
            linger_us: AtomicU32::new(0),
            alarm_thread: Mutex::new(None),
            attendant: OnceLock::new(),
            panic_hook: OnceLock::new(),
        });
        engine.doorbell.set(Bell::Away);
        if options.independent_progress {
            engine.resume()?;
        }
        Ok(engine)
    }

    /// Starts the threads that make progress independent, unless they run.
    ///
    /// # Errors
    /// The operating system's, when there can be no more threads.
    pub fn resume(&self) -> io::Result<()> {
        let mut helper = self.helper.lock();
        let Some(this) = self.this.upgrade().filter(|_| helper.is_none() && self.options.independent_progress) else {
            return Ok(());
        };
        self.stopping.store(false, Ordering::Release);
        for watch in &*self.watched.lock() {
            watch.start(&this)?;
        }
        self.deaths.iter().for_each(DeathWatcher::stay);
        *helper =
            Some(thread::spawn_without_signals("limosa-helper", move || this.serve("helper", Engine::run_helper))?);
        Ok(())
    }

    /// Ends the threads of [`Engine::resume`]. Operations may still be started and waited for afterwards, without
    /// independent progress.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.doorbell.call_helper();
        if let Some(helper) = self.helper.lock().take() {
            // It does not panic: see `serve`.
            let _ = helper.join();
        }
        self.watched.lock().iter().for_each(Watch::stop);
        self.deaths.iter().for_each(DeathWatcher::stop);
        let told = self.alarm.set(Duration::ZERO);
        // If the program has closed the timer, the thread sleeps until the process ends.
        if let Some(thread) = self.alarm_thread.lock().take().filter(|_| told) {
            let _ = thread.join();
        }
        self.core.lock().alarm = None;
    }

    /// This process's number in the job.
    pub fn rank(&self) -> Peer {
        self.rank
    }

    /// Longest message that travels with its envelope, in bytes.
    pub fn eager_limit(&self) -> usize {
        self.options.eager_limit
    }

    /// Memory that messages take here that no receive was posted for, in bytes.
    pub fn unexpected_bytes(&self) -> usize {
        self.core.lock().state.unexpected_bytes
    }

    /// How often other processes had to wake this one.
    pub fn rings(&self) -> u32 {
        self.doorbell.rings()
    }

    /// Sets the callback for wake-ups that are not about messages. The first one that is set stays.
    pub fn set_attendant(&self, attendant: Attendant) {
        self.attendant.get_or_init(|| attendant);
    }

    /// Says how to find out which receives may need a peer that has died.
    pub fn set_concerns(&self, concerns: Box<Concerns>) {
        self.core.lock().state.deaths.set_concerns(concerns);
    }

    /// True if a device has failed or a peer has died: operations under way may have to be ended.
    #[inline]
    pub fn is_impaired(&self) -> bool {
        self.impaired.load(Ordering::Relaxed)
    }

    /// What [`Engine::is_impaired`] looks at, for who asks often.
    pub fn impaired_flag(&self) -> Arc<AtomicBool> {
        self.impaired.clone()
    }

    /// As [`View::lost_group`].
    pub fn lost_group(&self, context: u64) -> Option<Failure> {
        self.core.lock().state.lost_group(context)
    }

    /// Sets the callback for a panic in a thread of the engine. The first one that is set stays. Without one, such a
    /// panic ends this process.
    pub fn set_panic_hook(&self, panic_hook: PanicHook) {
        self.panic_hook.get_or_init(|| panic_hook);
    }

    /// Has the attendant called after a while, whatever the program does.
    pub fn remind(&self) {
        let mut core = self.core.lock();
        core.reminders = 0;
        self.set_reminder(&mut core);
        self.leave(core);
    }

    /// Has the attendant called soon, unless the program comes back first.
    pub fn remind_soon(&self) {
        let mut core = self.core.lock();
        core.reminders = 0;
        self.set_alarm_soon(&mut core);
        self.leave(core);
    }

    /// True if there are more processes than processors they may use.
    pub fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    // ---- packets of other layers -----------------------------------------------------------------------------------

    /// Registers a chapter's handlers, for its kinds of packets from the first on; see [`Handler`] for what they may
    /// do.
    ///
    /// # Panics
    /// The chapter has registered handlers already.
    pub fn register(&self, chapter: Chapter, handlers: Vec<Handler>) {
        self.core.lock().state.handlers.register(chapter, handlers);
    }

    /// Has a layer told of each peer that dies from now on.
    pub fn on_death(&self, hook: DeathHook) {
        self.core.lock().state.deaths.add_hook(hook);
    }

    /// Sends a packet of a chapter's kind ([`Chapter::kind`]) to another process, behind what waits for it. The data
    /// are few, and copied if they have to wait.
    ///
    /// # Errors
    /// That communication has ended.
    pub fn send_packet(&self, to: Peer, meta: Meta, data: &[u8], urgency: Urgency) -> Result<(), Failure> {
        assert!(meta.kind >= handlers::FIRST_KIND, "kind {} is a message's", meta.kind);
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        state.control(devices, to, meta, data, urgency);
        let broken = state.broken.clone();
        self.leave(core);
        broken.map_or(Ok(()), Err)
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    /// Starts a send to process `peer`. The region must stay readable and unchanged until the send is done.
    ///
    /// # Errors
    /// [`Failure::Device`], [`Failure::NoMemory`], [`Failure::PeerDied`].
    pub fn send(&self, peer: Peer, envelope: &Envelope, region: Region, mode: Mode) -> Result<Started, Failure> {
        let mut core = self.core.lock();
        let started = core.start_send(self.rank, peer, envelope, region, mode);
        self.leave(core);
        Ok(started?.map_or(Started::Done, Started::Pending))
    }

    /// Starts a receive into the region, which must stay writable and otherwise untouched until the receive is done.
    pub fn receive(&self, pattern: &Pattern, region: Region) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let id = core_ref.state.receive(&mut core_ref.devices, pattern, region);
        self.leave(core);
        id
    }

    /// As [`Engine::send`], for a layer that keeps nothing but the request's short name.
    ///
    /// # Errors
    /// As for [`Engine::send`].
    #[inline]
    pub fn send_labelled(
        &self,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
        label: Label,
    ) -> Result<Started, Failure> {
        let mut core = self.core.lock();
        if mode == Mode::Standard && core.send_now(self.rank, peer, envelope, &region) {
            return Ok(Started::Done);
        }
        let started = core.start_send(self.rank, peer, envelope, region, mode);
        if let Ok(Some(id)) = started
            && let Some(request) = core.state.requests.get_mut(id)
        {
            request.label = Some(label);
        }
        self.leave(core);
        Ok(started?.map_or(Started::Done, Started::Pending))
    }

    /// As [`Engine::receive`], for a layer that keeps nothing but the request's short name.
    #[inline]
    pub fn receive_labelled(&self, pattern: &Pattern, region: Region, label: Label) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let small = region.len() <= core_ref.state.eager_limit;
        let id = core_ref.state.receive(&mut core_ref.devices, pattern, region);
        let request = core.state.requests.get_mut(id).expect("just inserted");
        request.label = Some(label);
        if small && matches!(request.phase, Phase::Posted { .. }) {
            return id; // Nothing has changed for anybody else.
        }
        self.leave(core);
        id
    }

    /// The labelled request of this name, unless it has been taken or released.
    pub fn find(&self, short: Short) -> Option<(RequestId, Label)> {
        self.core.lock().state.requests.find(short).and_then(|(id, r)| Some((id, r.label?)))
    }

    /// The label of a request that is not done.
    pub fn open_label(&self, short: Short) -> Option<Label> {
        self.core
            .lock()
            .state
            .requests
            .find(short)
            .filter(|(_, r)| !matches!(r.phase, Phase::Done))
            .and_then(|(_, r)| r.label)
    }

    /// True if a labelled request of this context has not been taken.
    pub fn has_labelled(&self, context: u64) -> bool {
        self.core.lock().state.requests.has_labelled(context)
    }

    /// Waits until all of `n` labelled requests are done, and takes their ends: `name(i)` is the name of the i-th
    /// (`None`: nothing to wait for), and `done(i, note, is_send, end)`, with the note of its label, is called for each
    /// in turn, under the lock.
    ///
    /// # Errors
    /// [`NotAwaited::Unknown`], before anything is waited for; [`NotAwaited::Interrupted`], with the requests from the
    /// first one on whose end was not taken still under way.
    #[inline]
    pub fn wait_each(
        &self,
        n: usize,
        name: impl Fn(usize) -> Option<Short>,
        observer: &dyn Observer,
        mut done: impl FnMut(usize, usize, bool, Completion),
    ) -> Result<(), NotAwaited> {
        let mut core = self.core.lock();
        if let Some(unknown) = (0..n).find(|&i| name(i).is_some_and(|short| core.state.requests.find(short).is_none()))
        {
            self.leave(core);
            return Err(NotAwaited::Unknown(unknown));
        }
        let mut next = 0;
        let mut take = |state: &mut State| {
            while next < n {
                if let Some(short) = name(next) {
                    match state.requests.take(short) {
                        Taken::Done { note, is_send, end } => done(next, note, is_send, end),
                        Taken::Pending => return false,
                        Taken::Unknown => {} // The same name came before.
                    }
                }
                next += 1;
            }
            true
        };
        let mut waited = Ok(());
        if !take(&mut core.state) {
            (core, waited) = self.wait_with(core, &mut take, observer);
        }
        self.leave(core);
        waited.map_err(|Interrupted| NotAwaited::Interrupted)
    }

    /// Takes the end of a labelled request if it is done, with its label's note and whether it is a send; makes
    /// progress once if not.
    ///
    /// # Errors
    /// [`Unknown`].
    pub fn test_one(&self, short: Short) -> Result<Option<(usize, bool, Completion)>, Unknown> {
        let mut core = self.core.lock();
        let mut taken = core.state.requests.take(short);
        if let Taken::Pending = taken {
            self.progress(&mut core);
            taken = core.state.requests.take(short);
        }
        self.leave(core);
        match taken {
            Taken::Unknown => Err(Unknown),
            Taken::Pending => Ok(None),
            Taken::Done { note, is_send, end } => Ok(Some((note, is_send, end))),
        }
    }

    /// Receives into the region and waits for it.
    pub fn receive_blocking(&self, pattern: &Pattern, region: Region, observer: &dyn Observer) -> Completion {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let end;
        core_ref.state.may_stream = !self.oversubscribed;
        match core_ref.state.receive_blocking(&mut core_ref.devices, pattern, region) {
            Begun::Done(completion) => end = completion,
            Begun::Direct => {
                // Often the message is there, or about to come.
                // While it waits for a large one, others have to be told that somebody is looking.
                let looks = if self.oversubscribed || core.state.interest > 0 { 1 } else { FIRST_LOOKS };
                if !((0..looks).any(|_| self.progress(&mut core)) && core.state.direct_done()) {
                    let waited;
                    (core, waited) = self.wait_with(core, &mut |state| state.direct_done(), observer);
                    if waited.is_err() {
                        core = self.withdraw_direct(core, observer);
                    }
                }
                end = core.state.take_direct();
            }
            Begun::Request(id) => {
                core = self.wait_or_withdraw(core, id, observer);
                end = core.state.requests.remove(id).map_or_else(Completion::default, interrupted_if_cancelled);
            }
        }
        core.state.may_stream = false;
        self.leave(core);
        end
    }

    /// Sends and waits until the region may be used again.
    ///
    /// # Errors
    /// As for [`Engine::send`].
    pub fn send_blocking(
        &self,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
        observer: &dyn Observer,
    ) -> Result<(), Failure> {
        let mut core = self.core.lock();
        if mode == Mode::Standard && core.send_now(self.rank, peer, envelope, &region) {
            return Ok(());
        }
        let started = core.start_send(self.rank, peer, envelope, region, mode);
        let mut failure = None;
        let started = match started {
            Ok(Some(id)) => {
                core = self.wait_or_withdraw(core, id, observer);
                failure = core.state.requests.remove(id).and_then(|end| interrupted_if_cancelled(end).failure);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        self.leave(core);
        started.and(failure.map_or(Ok(()), |failure| Err(*failure)))
    }

    /// Asks for an operation to be cancelled; whether it was, its completion says.
    pub fn cancel(&self, id: RequestId) {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        core_ref.state.cancel(&mut core_ref.devices, id);
        self.leave(core);
    }

    /// How the request ended, if it has; makes progress if not. The request stays.
    pub fn test(&self, id: RequestId) -> Option<Completion> {
        let mut core = self.core.lock();
        let mut end = core.state.end_of(id);
        if end.is_none() {
            self.progress(&mut core);
            end = core.state.end_of(id);
        }
        self.leave(core);
        end
    }

    /// How the request ended, if it has, without trying to make progress. The request stays.
    pub fn peek(&self, id: RequestId) -> Option<Completion> {
        self.core.lock().state.end_of(id)
    }

    /// Takes the end of a request that is done, and frees it.
    pub fn take(&self, id: RequestId) -> Option<Completion> {
        let mut core = self.core.lock();
        core.state.end_of(id)?;
        core.state.requests.remove(id)
    }

    /// Nobody will ask about this request again: it is freed when it is done.
    pub fn release(&self, id: RequestId) {
        let mut core = self.core.lock();
        if core.state.end_of(id).is_some() {
            core.state.requests.remove(id);
        } else if let Some(request) = core.state.requests.get_mut(id) {
            request.owner = Owner::Nobody;
        }
    }

    /// Runs `then` when the request is done (now, if it is), without the lock, and frees the request.
    pub fn then(&self, id: RequestId, then: Continuation) {
        let mut core = self.core.lock();
        if core.state.end_of(id).is_some() {
            let end = core.state.requests.remove(id).unwrap_or_default();
            drop(core);
            then(self, end);
            return;
        }
        let state = &mut core.state;
        if let Some(request) = state.requests.get_mut(id) {
            request.owner = Owner::Continuation(then);
            state.continuations += 1;
        }
        self.leave(core);
    }

    /// Leaves something to the next thread of the program that is in the library, which does it without the lock: for
    /// what the helper and the alarm thread must not do ([`in_service`]).
    pub fn leave_to_program(&self, job: ProgramJob) {
        let mut core = self.core.lock();
        core.state.for_program.push(job);
        core.state.continuations += 1;
        if core.sleepers > 0 {
            self.doorbell.wake_own();
        }
    }

    /// Wakes threads of this process that sleep in [`Engine::block_on`], so that they look at their conditions again.
    pub fn notify(&self) {
        let core = self.core.lock();
        if core.sleepers > 0 {
            self.doorbell.wake_own();
        }
    }

    /// Makes progress once.
    pub fn poll(&self) {
        let mut core = self.core.lock();
        self.progress(&mut core);
        self.leave(core);
    }
}
