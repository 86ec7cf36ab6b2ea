//! The processes of a simulated run and their schedule.

use crate::process::{Buffer, Process, Progress, What};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::{Devices, Engine, Holdings, Links, Mode, Needs, Options, Wait};
use limosa_sim::{Conditions, Network, Random};
use std::cell::Cell;

/// Options of all engines: messages beyond 6000 bytes use the rendezvous protocol, and there are no service threads.
const OPTIONS: Options = Options {
    wait: Wait::Block,
    spin_ns: 0,
    eager_limit: 6000,
    unexpected_limit: 1 << 30,
    independent_progress: false,
};

/// Contexts: all processes are members of the first, all but the last of the second.
pub const CONTEXTS: [u64; 2] = [10, 12];
const TAGS: usize = 3;
/// Window of a [`World::remote_pair`], in bytes.
pub const WINDOW: usize = 40_000;
/// Memory of a held offer, in bytes; a little more than it is.
const OFFER: usize = 300;
/// First tag of empty messages, each of which has a tag of its own.
const EMPTY_TAGS: i32 = 1000;

/// Returns whether a process is a member of a context's group.
pub fn is_member(context: u64, process: u32, size: u32) -> bool {
    context == CONTEXTS[0] || process + 1 < size
}

/// A message of a run.
pub struct Message {
    pub bytes: Vec<u8>,
    pub from: u32,
    pub to: u32,
    pub envelope: Envelope,
}

pub struct World {
    pub size: u32,
    pub processes: Vec<Process>,
    pub messages: Vec<Message>,
    /// Whether short messages may be offered for want of credit.
    pub limits_credit: bool,
    network: Network,
    random: Random,
    faults: bool,
    notes: Option<Vec<String>>,
}

thread_local! {
    static PRINTS: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether this thread prints schedules.
pub fn print_notes(print: bool) {
    PRINTS.set(print);
}

/// Returns the bytes of a message, which begin with its number.
fn contents(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(number);
    let mut bytes: Vec<u8> = number.to_ne_bytes().to_vec();
    while bytes.len() < len {
        bytes.extend_from_slice(&random.number().to_ne_bytes());
    }
    bytes.truncate(len);
    bytes
}

impl World {
    pub fn new(seed: u64, notes: bool) -> World {
        let mut random = Random::new(seed);
        let size = 2 + random.below(3) as u32;
        let faults = seed % 2 == 1;
        let conditions = Conditions {
            max_data: random.of(&[4200, 6100, 9000]),
            capacity: random.of(&[1, 2, 5, 64]),
            refusals: random.of(&[0, 2, 10]),
            instant: false,
            far: random.one_in(2),
            memory: random.one_in(2),
            memory_failures: if faults { random.of(&[0, 3]) } else { 0 },
        };
        let unexpected_limit = random.of(&[1 << 30, 20_000]);
        World::start(random, size, faults, conditions, unexpected_limit, notes)
    }

    /// Creates two processes that are remote to each other, with a window of [`WINDOW`] bytes.
    pub fn remote_pair(seed: u64) -> World {
        let mut random = Random::new(seed);
        let (capacity, refusals) = (random.of(&[2, 5, 64]), random.of(&[0, 3]));
        let conditions =
            Conditions { capacity, refusals, instant: false, far: true, max_data: 9000, ..Conditions::default() };
        World::start(random, 2, false, conditions, WINDOW, false)
    }

    fn start(
        mut random: Random,
        size: u32,
        faults: bool,
        conditions: Conditions,
        unexpected_limit: usize,
        notes: bool,
    ) -> World {
        let network = Network::new(size, conditions, random.number());
        let process = |rank| Process {
            engine: engine(&network, rank, size, unexpected_limit),
            ops: Vec::new(),
            is_dead: false,
            stopped_for: 0,
        };
        let processes = (0..size).map(process).collect();
        let limits_credit = conditions.far && unexpected_limit <= WINDOW;
        let (messages, notes) = (Vec::new(), notes.then(Vec::new));
        let mut world = World { size, processes, messages, limits_credit, network, random, faults, notes };
        world.note(|| format!("{size} processes, {conditions:?}"));
        world
    }

    pub fn notes(self) -> Vec<String> {
        self.notes.unwrap_or_default()
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            let what = what();
            if PRINTS.get() {
                println!("{what}");
            }
            notes.push(what);
        }
    }

    /// Runs the random part.
    pub fn run(&mut self) {
        let steps = 100 + self.random.below(300);
        let mut kills = if self.faults { self.random.below(self.size as usize) } else { 0 };
        for _ in 0..steps {
            for process in &mut self.processes {
                process.stopped_for = process.stopped_for.saturating_sub(1);
            }
            if self.random.one_in(3) {
                self.deliver();
                continue;
            }
            let rank = self.random.below(self.size as usize);
            if self.processes[rank].is_dead || self.processes[rank].stopped_for > 0 {
                continue;
            }
            if self.faults && self.random.one_in(100) {
                self.processes[rank].stopped_for = self.random.below(100);
                self.note(|| format!("{rank} stops for a while"));
            } else if kills > 0 && self.random.one_in(100) {
                kills -= 1;
                self.processes[rank].is_dead = true;
                self.network.kill(rank as u32);
                self.note(|| format!("{rank} dies"));
            } else {
                self.act(rank);
            }
        }
    }

    /// Lets both processes of a pair wait for a message behind a flood of others. Returns the memory in bytes that a
    /// process held of the flood at most, without the offers.
    pub fn flood(&mut self, messages: usize) -> usize {
        const LAST: i32 = 2;
        for rank in 0..2 {
            let source = Some(1 - rank as i32);
            self.receive(rank, Pattern { context: CONTEXTS[0], source, tag: Some(LAST) }, 30_000);
        }
        let (mut sent, mut most) = ([0, 0], 0);
        while sent != [messages; 2] {
            let rank = self.random.below(2);
            match self.random.below(3) {
                0 if sent[rank] < messages => {
                    self.send(rank, 1 - rank as u32, CONTEXTS[0], 0);
                    sent[rank] += 1;
                }
                1 => _ = self.deliver(),
                // A process that waits takes all packets.
                _ => self.processes[rank].see_end(0, true),
            }
            let engine = &self.processes[rank].engine;
            most = most.max(engine.unexpected_bytes().saturating_sub(OFFER * engine.unreceived().len()));
        }
        (0..2).for_each(|rank| self.send(rank, 1 - rank as u32, CONTEXTS[0], LAST));
        most
    }

    /// Lets one process of a pair receive messages one by one after all were sent, and as many again when it has
    /// received some. Returns the number of receives that did not complete at once.
    pub fn catch_up(&mut self, messages: usize, len: usize) -> usize {
        let waits_for_packets = |number: &usize| {
            if [0, messages / 2].contains(number) {
                (0..messages).for_each(|_| self.send_one(0, 1, CONTEXTS[0], 0, len, Mode::Standard));
            }
            self.settle();
            self.receive(1, Pattern { context: CONTEXTS[0], source: Some(0), tag: Some(0) }, len);
            self.processes[1].is_pending(self.processes[1].ops.len() - 1)
        };
        (0..2 * messages).filter(waits_for_packets).count()
    }

    fn deliver(&mut self) -> bool {
        let event = self.network.step();
        if let Some(event) = event {
            self.note(|| event.to_string());
        }
        event.is_some()
    }

    /// Runs one step of a process.
    fn act(&mut self, rank: usize) {
        match self.random.below(16) {
            0..4 => self.start_send(rank),
            4..8 => self.start_receive(rank),
            8 => {
                self.note(|| format!("{rank} polls"));
                self.processes[rank].engine.poll();
            }
            9 | 10 => {
                self.note(|| format!("{rank} is helped"));
                self.processes[rank].engine.help_once();
            }
            11 => self.hold(rank),
            12 => self.probe_and_receive(rank),
            13 => self.exchange(rank),
            _ => self.touch(rank),
        }
        for index in 0..self.processes[rank].ops.len() {
            self.processes[rank].see_end(index, false);
        }
    }

    /// Tests or cancels an operation, or receives an extracted message.
    fn touch(&mut self, rank: usize) {
        let pending: Vec<usize> =
            (0..self.processes[rank].ops.len()).filter(|&i| self.processes[rank].is_pending(i)).collect();
        if pending.is_empty() {
            return;
        }
        let index = self.random.of(&pending);
        let cancels = self.random.one_in(6);
        self.note(|| format!("{rank} {} operation {index}", if cancels { "cancels" } else { "tests" }));
        let process = &mut self.processes[rank];
        if matches!(process.ops[index].progress, Progress::Held(_)) {
            process.receive_held(index);
        } else if cancels {
            process.cancel(index);
        } else {
            process.see_end(index, true);
        }
    }

    fn context(&mut self, rank: usize) -> u64 {
        let context = self.random.of(&CONTEXTS);
        if is_member(context, rank as u32, self.size) { context } else { CONTEXTS[0] }
    }

    fn members(&self, context: u64) -> u32 {
        (0..self.size).filter(|&process| is_member(context, process, self.size)).count() as u32
    }

    fn block(&mut self) -> Option<usize> {
        self.random.of(&[None, None, Some(100), Some(8192)])
    }

    fn start_send(&mut self, rank: usize) {
        let context = self.context(rank);
        let to = self.random.below(self.members(context) as usize) as u32;
        let tag = self.random.below(TAGS) as i32;
        self.send(rank, to, context, tag);
    }

    fn send(&mut self, rank: usize, to: u32, context: u64, tag: i32) {
        let len = self.random.of(&[0, 8, 40, 300, 4096, 4097, 5900, 6000, 6001, 10_000, 30_000]);
        let mode = if self.random.one_in(4) { Mode::Synchronous } else { Mode::Standard };
        self.send_one(rank, to, context, tag, len, mode);
    }

    fn send_one(&mut self, rank: usize, to: u32, context: u64, tag: i32, len: usize, mode: Mode) {
        let number = self.messages.len() as u64;
        let tag = if len == 0 { EMPTY_TAGS + number as i32 } else { tag };
        let envelope = Envelope { context, source: rank as i32, tag };
        let bytes = contents(number, len);
        let buffer = Buffer::new(&bytes, self.block());
        self.messages.push(Message { bytes, from: rank as u32, to, envelope });
        let index = self.processes[rank].ops.len();
        self.note(|| {
            format!("{rank} sends message {number} of {len} bytes to {to}, {mode:?}, {envelope:?}, operation {index}")
        });
        self.processes[rank].send(to, envelope, number, buffer, mode);
    }

    fn pattern(&mut self, rank: usize) -> Pattern {
        let context = self.context(rank);
        let source = self.random.below(self.members(context) as usize) as i32;
        let tag = self.random.below(TAGS) as i32;
        Pattern {
            context,
            source: (!self.random.one_in(3)).then_some(source),
            tag: (!self.random.one_in(3)).then_some(tag),
        }
    }

    fn start_receive(&mut self, rank: usize) {
        let pattern = self.pattern(rank);
        let room = self.random.of(&[8, 300, 5000, 6000, 30_000, 30_000, 30_000]);
        self.receive(rank, pattern, room);
    }

    fn receive(&mut self, rank: usize, pattern: Pattern, room: usize) {
        let index = self.processes[rank].ops.len();
        self.note(|| format!("{rank} receives up to {room} bytes, {pattern:?}, operation {index}"));
        let buffer = Buffer::new(&vec![0; room], self.block());
        self.processes[rank].receive(pattern, buffer);
    }

    fn hold(&mut self, rank: usize) {
        let pattern = self.pattern(rank);
        let index = self.processes[rank].ops.len();
        if self.processes[rank].hold(pattern) {
            self.note(|| format!("{rank} takes a message, {pattern:?}, operation {index}"));
        }
    }

    /// Probes, and checks that a receive right afterwards gets the probed message.
    fn probe_and_receive(&mut self, rank: usize) {
        let pattern = self.pattern(rank);
        let Ok(Some(seen)) = self.processes[rank].engine.probe(&pattern) else { return };
        self.note(|| format!("{rank} has found a message of {} bytes, {pattern:?}", seen.bytes));
        let exact = Pattern { source: Some(seen.source), tag: Some(seen.tag), ..pattern };
        self.receive(rank, exact, 30_000);
        self.processes[rank].ops.last_mut().expect("just added").foreseen = Some(seen);
    }

    /// Runs one process's part of a collective pattern: receives from the left and sends to the right.
    fn exchange(&mut self, rank: usize) {
        let context = self.context(rank);
        let members = self.members(context);
        let (left, right) = ((rank as u32 + members - 1) % members, (rank as u32 + 1) % members);
        let tag = self.random.below(TAGS) as i32;
        self.receive(rank, Pattern { context, source: Some(left as i32), tag: Some(tag) }, 30_000);
        self.send(rank, right, context, tag);
    }

    /// Delivers everything: no packet is in flight, and no engine has work.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        // A network that refuses packets from time to time may need several attempts.
        while quiet < 100 {
            let mut moved = false;
            while self.deliver() {
                moved = true;
            }
            for process in self.processes.iter_mut().filter(|process| !process.is_dead) {
                let before = process.engine.holdings();
                process.engine.poll();
                for index in 0..process.ops.len() {
                    process.see_end(index, false);
                }
                moved |= process.engine.holdings() != before || before.waiting > 0;
            }
            quiet = if moved { 0 } else { quiet + 1 };
        }
    }

    /// Receives or cancels what is left, and checks that nothing is held.
    pub fn clear_up(&mut self) {
        self.note(|| "clearing up".into());
        for rank in 0..self.size as usize {
            if self.processes[rank].is_dead {
                continue;
            }
            for index in 0..self.processes[rank].ops.len() {
                self.processes[rank].receive_held(index);
                if matches!(self.processes[rank].ops[index].what, What::Receive { .. }) {
                    self.processes[rank].cancel(index);
                }
            }
        }
        self.settle();
        for rank in 0..self.size as usize {
            for context in CONTEXTS {
                let pattern = Pattern { context, source: None, tag: None };
                while !self.processes[rank].is_dead && self.processes[rank].hold(pattern) {
                    let index = self.processes[rank].ops.len() - 1;
                    self.processes[rank].receive_held(index);
                }
            }
        }
        self.settle();
        crate::oracle::judge(self);
        for (rank, process) in self.processes.iter().enumerate().filter(|(_, process)| !process.is_dead) {
            assert_eq!(process.engine.holdings(), Holdings::default(), "what {rank} holds at the end");
        }
    }
}

fn engine(network: &Network, rank: u32, size: u32, unexpected_limit: usize) -> std::sync::Arc<Engine> {
    let mut devices = Devices::new(None);
    let device = devices.add_device(Box::new(network.device(rank)));
    (0..size).for_each(|address| assert_eq!(devices.add_peer(device, address), address));
    if let Some(memory) = network.memory() {
        devices.set_memory(device, memory);
    }
    let links = Links { devices, doorbell: network.doorbell(rank), rank, peers: size, processes_here: 1 };
    let engine = Engine::start(links, Options { unexpected_limit, ..OPTIONS }).expect("an engine");
    engine.set_concerns(Box::new(move |context, needs, peer| match needs {
        Needs::Rank(rank) => rank as u32 == peer,
        Needs::AnyMember => is_member(context, peer, size),
        Needs::Living => false,
    }));
    engine
}
