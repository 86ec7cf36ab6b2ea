//! The engine: one per process. Starts operations, makes progress, and waits.
//!
//! Contract:
//! - every method may be called by any thread at any time; the lock is held for protocol work only, never while a
//!   continuation runs or a large message is copied from a peer's memory;
//! - started operations complete whatever the program does: while no thread is in the library, the helper thread serves
//!   urgent traffic;
//! - a blocked call spins for about as long as a wake-up costs, yields when there are more processes than processors,
//!   and then sleeps.
//!
//! The state of the doorbell is set under the lock. It rests at `Away`, or at `AwayAll` while continuations are
//! outstanding. A blocked call sets `Asleep` before it sleeps, and `Awake` while it polls, so that urgent traffic does
//! not also wake the helper.

use crate::completion::{Completion, Failure, Label, RequestId, Short, Unknown};
use crate::handlers::{self, Chapter, DeathHook, Handler};
use crate::interrupt::Interrupted;
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::request::{Owner, Phase, Taken};
use crate::state::{Begun, Concerns, Mode, ProtocolState};
use limosa_base::alarm::Alarm;
use limosa_base::biased::Biased;
use limosa_base::doorbell::DoorbellState;
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

use watch::{DeathWatcher, Watch, WatcherRing};
use withdrawing::interrupted_if_cancelled;

pub use fast_path::FastWait;
pub use holdings::{Holdings, Traffic, Unreceived};
pub use leaving::in_service;
pub(crate) use listening::Listeners;
pub use listening::{Listener, Words};
pub use probes::Matched;
pub(crate) use sleepers::SleepConditions;

/// Maximum number of times that the interval of a repeated sleep or reminder doubles.
const MAX_DOUBLINGS: u32 = 7;
/// Polls of a blocking receive before it enters the general wait.
const FIRST_POLLS: u32 = 16;

/// Waiting strategy of blocked calls.
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
    /// Waiting strategy of blocked calls.
    pub wait: Wait,
    /// Spin limit of `Wait::Auto`, in nanoseconds.
    pub spin_ns: u64,
    /// Longest message in bytes that travels eagerly, with its envelope; up to four times as long when processes
    /// outnumber processors.
    pub eager_limit: usize,
    /// Bytes of unexpected messages beyond which a process that waits for nothing takes no more packets.
    pub unexpected_limit: usize,
    /// Whether a helper thread serves urgent traffic while no thread of the program is in the library. Off in tests
    /// that schedule progress themselves.
    pub independent_progress: bool,
}

/// Devices and identity of an engine.
pub struct Links {
    /// The devices, with the initial peers.
    pub devices: Devices,
    /// This process's doorbell, which the devices ring.
    pub doorbell: DoorbellRef,
    /// Number of this process among the peers.
    pub rank: Peer,
    /// Number of peers, including this process.
    pub peers: u32,
    /// Number of processes that share this host's processors.
    pub processes_here: u32,
}

/// Observer of blocked calls, for the status board: notified before a call sleeps (or after it has polled for long),
/// and when it resumes. Called without the engine's lock except where stated.
pub trait Observer {
    /// Announces to the processes that can make the condition hold that they must ring ([`HostMemory::ring`]). The call
    /// then evaluates its condition once more, and sleeps if it still does not hold. Called with the engine's lock.
    fn arrange(&self) {}
    /// Withdraws the announcement of [`Observer::arrange`]: the call no longer sleeps.
    fn retract(&self) {}
    /// Reports that the call has waited for long.
    fn blocked(&self);
    /// Reports that the call has ended or has made progress.
    fn resumed(&self);
    /// Counts a wake-up without progress. The engine's lock may be held.
    fn woken_for_nothing(&self) {}
    /// Returns the time of waiting after which [`Observer::overdue`] is called. Asked while the call is reported as
    /// blocked.
    fn patience(&self) -> Option<Duration> {
        None
    }
    /// Reports that the call has waited for [`Observer::patience`].
    fn overdue(&self) {}
}

/// An observer that does nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn blocked(&self) {}
    fn resumed(&self) {}
}

/// Why [`Engine::wait_each`] has not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAwaited {
    /// No request has the name with this index.
    Unknown(usize),
    /// The program was interrupted.
    Interrupted,
}

/// ProtocolState of a send or receive after its start.
#[derive(Debug)]
#[must_use]
pub enum Started {
    /// It is complete.
    Done,
    /// It is pending.
    Pending(RequestId),
}

/// Read access to the completion of requests, for conditions of [`Engine::block_on`].
pub struct View<'a>(&'a ProtocolState);

impl View<'_> {
    /// Returns whether the request is complete (or no longer exists).
    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        self.0.requests.get(id).is_none_or(|r| matches!(r.phase, Phase::Done))
    }

    /// Returns whether a device has failed for good.
    pub fn is_broken(&self) -> bool {
        self.0.broken.is_some()
    }

    /// Returns the reason why a collective context can no longer be used, if any: a device has failed, or a member has
    /// died.
    #[inline]
    pub fn lost_group(&self, context: u64) -> Option<Failure> {
        self.0.lost_group(context)
    }
}

impl From<ShmDevice> for Links {
    /// Uses the shared-memory device alone, for all processes that share its memory.
    fn from(device: ShmDevice) -> Links {
        let (rank, peers, doorbell) = (device.rank(), device.size(), device.doorbell());
        Links { devices: device.into(), doorbell, rank, peers, processes_here: peers }
    }
}

struct Core {
    devices: Devices,
    state: ProtocolState,
    /// Threads in blocking calls, except those that run jobs.
    waiters: usize,
    /// The waiting threads that sleep.
    sleepers: usize,
    /// The time for which the alarm was set, while it is set.
    alarm: Option<Duration>,
    /// Consecutive calls in which the attendant asked to be called again.
    reminders: u32,
    /// Sleeps with a backlog since the last progress.
    fruitless_sleeps: u32,
    /// Packets of handlers, to be sent when the device is free.
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

    /// Sends a message that can leave at once and affects no other thread. Returns false, without effect, for any other
    /// message.
    #[inline]
    fn send_now(&mut self, me: Peer, peer: Peer, envelope: &Envelope, region: &Region) -> bool {
        peer != me
            && region.as_bytes().is_some_and(|bytes| self.state.send_now(&mut self.devices, peer, envelope, bytes))
    }

    /// Returns whether there is no deferred work and no sleeping thread.
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

/// A joint copy that this process can help with: joint number `joint` of this process copies to the memory of the
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
    /// Most data bytes of a packet to any of the initial peers.
    max_packet: usize,
    rank: Peer,
    oversubscribed: bool,
    sharing: sharing::Sharing,
    stopping: AtomicBool,
    /// Copy of `ProtocolState::impaired` for readers without the lock: a device has failed, or a peer has died.
    impaired: Arc<AtomicBool>,
    helper: Mutex<Option<JoinHandle<()>>>,
    /// Watched descriptors of devices that do not ring the doorbell.
    watched: Mutex<Vec<Watch>>,
    watcher_ring: WatcherRing,
    deaths: Option<DeathWatcher>,
    /// Whether this host had other processes of the job at the start.
    has_host_peers: bool,
    alarm: Alarm,
    /// Counts deferrals of work to the alarm. Written under the lock, read by the alarm thread without it.
    deferrals: AtomicU32,
    /// Value of `deferrals` when the alarm was set.
    deferrals_when_set: AtomicU32,
    /// Time for which the alarm was set, in microseconds.
    linger_us: AtomicU32,
    alarm_thread: Mutex<Option<JoinHandle<()>>>,
    attendant: OnceLock<Attendant>,
    panic_hook: OnceLock<PanicHook>,
}

/// Callback of the layer above after a wake-up by another process. Called without the lock. Returns whether it is to be
/// called again later.
pub type Attendant = fn() -> bool;

/// Callback that ends the job for the given reason. Called without the lock by a thread of the engine that has
/// panicked.
pub type PanicHook = fn(&str);

impl Engine {
    /// Creates an engine over these devices and starts its helper thread.
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
        // A rendezvous may wait for a time slice of the receiver; an additional copy costs less.
        let eager_limit = if oversubscribed { 4 * options.eager_limit } else { options.eager_limit };
        let max_packet = devices.least_max_data() - 8;
        let memory = devices.peer_memory();
        let watched = devices.wait_descriptors()?.into_iter();
        let watched = watched.map(|(descriptor, ready)| Watch::new(descriptor, ready)).collect();
        let deaths = devices.death_watch().map(DeathWatcher::new);
        let core = Core {
            devices,
            state: ProtocolState::new(rank, peers, eager_limit, options.unexpected_limit),
            waiters: 0,
            sleepers: 0,
            alarm: None,
            reminders: 0,
            fruitless_sleeps: 0,
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
            options,
            max_packet,
            rank,
            oversubscribed,
            sharing: sharing::Sharing::new(),
            stopping: AtomicBool::new(false),
            impaired,
            helper: Mutex::new(None),
            watched: Mutex::new(watched),
            watcher_ring: WatcherRing::default(),
            deaths,
            has_host_peers: processes_here > 1,
            alarm,
            deferrals: AtomicU32::new(0),
            deferrals_when_set: AtomicU32::new(0),
            linger_us: AtomicU32::new(0),
            alarm_thread: Mutex::new(None),
            attendant: OnceLock::new(),
            panic_hook: OnceLock::new(),
        });
        engine.doorbell.set(DoorbellState::Away);
        if options.independent_progress {
            engine.resume()?;
        }
        Ok(engine)
    }

    /// Starts the threads for independent progress, unless they run.
    ///
    /// # Errors
    /// The operating system's, when no further thread can be created.
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

    /// Stops the threads of [`Engine::resume`]. Operations may still be started and waited for, without independent
    /// progress.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.doorbell.call_helper();
        if let Some(helper) = self.helper.lock().take() {
            // The thread cannot panic: see `serve`.
            let _ = helper.join();
        }
        self.watched.lock().iter().for_each(Watch::stop);
        self.deaths.iter().for_each(DeathWatcher::stop);
        let told = self.alarm.set(Duration::ZERO);
        // If the program has closed the timer, the thread sleeps until the process exits.
        if let Some(thread) = self.alarm_thread.lock().take().filter(|_| told) {
            let _ = thread.join();
        }
        self.core.lock().alarm = None;
    }

    /// Returns this process's number in the job.
    pub fn rank(&self) -> Peer {
        self.rank
    }

    /// Returns the most data bytes of a packet to any of the initial peers.
    pub fn max_packet(&self) -> usize {
        self.max_packet
    }

    /// Returns the memory in bytes that unexpected messages take.
    pub fn unexpected_bytes(&self) -> usize {
        self.core.lock().state.unexpected_bytes
    }

    /// Returns the number of rings that woke a thread of this process.
    pub fn rings(&self) -> u32 {
        self.doorbell.rings()
    }

    /// Sets the callback for wake-ups that do not concern messages. Later calls have no effect.
    pub fn set_attendant(&self, attendant: Attendant) {
        self.attendant.get_or_init(|| attendant);
    }

    /// Sets the function that decides which receives may need a dead peer.
    pub fn set_concerns(&self, concerns: Box<Concerns>) {
        self.core.lock().state.deaths.set_concerns(concerns);
    }

    /// Returns whether a device has failed or a peer has died, so that pending operations may have to be ended.
    #[inline]
    pub fn is_impaired(&self) -> bool {
        self.impaired.load(Ordering::Relaxed)
    }

    /// Returns the flag behind [`Engine::is_impaired`], for frequent polling.
    pub fn impaired_flag(&self) -> Arc<AtomicBool> {
        self.impaired.clone()
    }

    /// Returns the same as [`View::lost_group`].
    pub fn lost_group(&self, context: u64) -> Option<Failure> {
        self.core.lock().state.lost_group(context)
    }

    /// Sets the callback for a panic in a thread of the engine. Later calls have no effect. Without a callback such a
    /// panic ends this process.
    pub fn set_panic_hook(&self, panic_hook: PanicHook) {
        self.panic_hook.get_or_init(|| panic_hook);
    }

    /// Schedules a call of the attendant, whatever the program does.
    pub fn remind(&self) {
        let mut core = self.core.lock();
        core.reminders = 0;
        self.set_reminder(&mut core);
        self.leave(core);
    }

    /// Schedules a prompt call of the attendant, unless a thread of the program enters the engine before.
    pub fn remind_soon(&self) {
        let mut core = self.core.lock();
        core.reminders = 0;
        self.set_alarm_soon(&mut core);
        self.leave(core);
    }

    /// Returns whether there are more processes than processors they may use.
    pub fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    // ---- packets of other layers -----------------------------------------------------------------------------------

    /// Registers a chapter's handlers for its packet kinds, in order; see [`Handler`] for their contract.
    ///
    /// # Panics
    /// If the chapter has registered handlers already.
    pub fn register(&self, chapter: Chapter, handlers: Vec<Handler>) {
        self.core.lock().state.handlers.register(chapter, handlers);
    }

    /// Registers a hook that is called for each peer that dies from now on.
    pub fn on_death(&self, hook: DeathHook) {
        self.core.lock().state.deaths.add_hook(hook);
    }

    /// Sends a packet of a chapter's kind ([`Chapter::kind`]) to a peer, behind the backlog. The data should be short:
    /// they are copied if they have to wait.
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

    /// Starts a send to process `peer`. The region must stay readable and unchanged until completion.
    ///
    /// # Errors
    /// [`Failure::Device`], [`Failure::NoMemory`], [`Failure::PeerDied`].
    pub fn send(&self, peer: Peer, envelope: &Envelope, region: Region, mode: Mode) -> Result<Started, Failure> {
        let mut core = self.core.lock();
        let started = core.start_send(self.rank, peer, envelope, region, mode);
        self.leave(core);
        Ok(started?.map_or(Started::Done, Started::Pending))
    }

    /// Starts a receive into the region, which must stay writable and otherwise untouched until completion.
    pub fn receive(&self, pattern: &Pattern, region: Region) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let id = core_ref.state.receive(&mut core_ref.devices, pattern, region);
        self.leave(core);
        id
    }

    /// Starts a send like [`Engine::send`], for a caller that keeps only the request's short name.
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

    /// Starts a receive like [`Engine::receive`], for a caller that keeps only the request's short name.
    #[inline]
    pub fn receive_labelled(&self, pattern: &Pattern, region: Region, label: Label) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let small = region.len() <= core_ref.state.eager_limit;
        let id = core_ref.state.receive(&mut core_ref.devices, pattern, region);
        let request = core.state.requests.get_mut(id).expect("just inserted");
        request.label = Some(label);
        if small && matches!(request.phase, Phase::Posted { .. }) {
            return id; // No other thread is affected.
        }
        self.leave(core);
        id
    }

    /// Returns the labelled request of this name, unless it has been taken or released.
    pub fn find(&self, short: Short) -> Option<(RequestId, Label)> {
        self.core.lock().state.requests.find(short).and_then(|(id, r)| Some((id, r.label?)))
    }

    /// Returns the labels of the first `most` incomplete ones of these requests.
    pub fn open_labels(&self, shorts: impl Iterator<Item = Short>, most: usize) -> Vec<Label> {
        let core = self.core.lock();
        let open = |short| core.state.requests.find(short).filter(|(_, request)| !matches!(request.phase, Phase::Done));
        shorts.filter_map(|short| open(short)?.1.label).take(most).collect()
    }

    /// Returns whether a labelled request of this context has not been taken.
    pub fn has_labelled(&self, context: u64) -> bool {
        self.core.lock().state.requests.has_labelled(context)
    }

    /// Waits until `n` labelled requests are complete, and takes their completions. `name(i)` is the name of the i-th
    /// request, or `None` for none. `done(i, note, is_send, completion)`, with the note of its label, is called for
    /// each in turn, under the lock.
    ///
    /// # Errors
    /// [`NotAwaited::Unknown`], before any wait. [`NotAwaited::Interrupted`]: the requests whose completion was not
    /// taken are still pending.
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
        let mut take = |state: &mut ProtocolState| {
            while next < n {
                if let Some(short) = name(next) {
                    match state.requests.take(short) {
                        Taken::Done { note, is_send, end } => done(next, note, is_send, end),
                        Taken::Pending => return false,
                        Taken::Unknown => {} // The same name occurred earlier.
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

    /// Takes the completion of a labelled request if it is complete, with its label's note and whether it is a send.
    /// Makes progress once otherwise.
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

    /// Receives into the region and waits for completion.
    pub fn receive_blocking(&self, pattern: &Pattern, region: Region, observer: &dyn Observer) -> Completion {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let end;
        core_ref.state.may_stream = !self.oversubscribed;
        match core_ref.state.receive_blocking(&mut core_ref.devices, pattern, region) {
            Begun::Done(completion) => end = completion,
            Begun::Direct => {
                // Often the message is there, or about to arrive. While large messages are pending, the general wait
                // comes sooner: it announces that a thread polls.
                let polls = if self.oversubscribed || core.state.interest > 0 { 1 } else { FIRST_POLLS };
                if !((0..polls).any(|_| self.progress(&mut core)) && core.state.direct_done()) {
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

    /// Sends and waits until the region may be reused.
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

    /// Requests the cancellation of an operation. Its completion tells whether that succeeded.
    pub fn cancel(&self, id: RequestId) {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        core_ref.state.cancel(&mut core_ref.devices, id);
        self.leave(core);
    }

    /// Returns the completion of the request, if it is complete; makes progress otherwise. The request is kept.
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

    /// Returns the completion of the request, if it is complete, without making progress. The request is kept.
    pub fn peek(&self, id: RequestId) -> Option<Completion> {
        self.core.lock().state.end_of(id)
    }

    /// Takes the completion of a complete request, and frees it.
    pub fn take(&self, id: RequestId) -> Option<Completion> {
        let mut core = self.core.lock();
        core.state.end_of(id)?;
        core.state.requests.remove(id)
    }

    /// Releases a request: it is freed on completion.
    pub fn release(&self, id: RequestId) {
        let mut core = self.core.lock();
        if core.state.end_of(id).is_some() {
            core.state.requests.remove(id);
        } else if let Some(request) = core.state.requests.get_mut(id) {
            request.owner = Owner::Released;
        }
    }

    /// Wakes the threads of this process that sleep in [`Engine::block_on`], so that they reevaluate their conditions.
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
