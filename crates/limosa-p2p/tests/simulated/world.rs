//! The processes of a simulated run and their schedule.

use crate::process::{Buffer, Process, Progress, What};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::{Devices, Engine, Holdings, Links, Mode, Needs, Options, Wait};
use limosa_sim::{Conditions, Network, Random};
use std::cell::Cell;

/// Options of all engines: messages beyond 6000 bytes are offered. No thread does anything by itself.
const OPTIONS: Options = Options {
    wait: Wait::Block,
    spin_ns: 0,
    eager_limit: 6000,
    unexpected_limit: 1 << 30,
    independent_progress: false,
};

/// Contexts: on the first all processes are members, on the second all but the last.
pub const CONTEXTS: [u64; 2] = [10, 12];
const TAGS: usize = 3;
/// The tags of empty messages, each of which has its own, begin here.
const EMPTY_TAGS: i32 = 1000;

/// True if a process is a member of a context's group.
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
    network: Network,
    random: Random,
    faults: bool,
    notes: Option<Vec<String>>,
}

thread_local! {
    static PRINTS: Cell<bool> = const { Cell::new(false) };
}

/// Whether schedules are printed by this thread.
pub fn print_notes(print: bool) {
    PRINTS.set(print);
}

/// The bytes of a message, which begin with its number.
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
            memory: random.one_in(2),
            memory_failures: if faults { random.of(&[0, 3]) } else { 0 },
        };
        let unexpected_limit = random.of(&[1 << 30, 20_000]);
        let network = Network::new(size, conditions, random.number());
        let process = |rank| Process {
            engine: engine(&network, rank, size, unexpected_limit),
            ops: Vec::new(),
            is_dead: false,
            stopped_for: 0,
        };
        let processes = (0..size).map(process).collect();
        let mut world =
            World { size, processes, messages: Vec::new(), network, random, faults, notes: notes.then(Vec::new) };
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

    /// The random part.
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
            let who = self.random.below(self.size as usize);
            if self.processes[who].is_dead || self.processes[who].stopped_for > 0 {
                continue;
            }
            if self.faults && self.random.one_in(100) {
                self.processes[who].stopped_for = self.random.below(100);
                self.note(|| format!("{who} stops for a while"));
            } else if kills > 0 && self.random.one_in(100) {
                kills -= 1;
                self.processes[who].is_dead = true;
                self.network.kill(who as u32);
                self.note(|| format!("{who} dies"));
            } else {
                self.act(who);
            }
        }
    }

    fn deliver(&mut self) -> bool {
        let event = self.network.step();
        if let Some(event) = event {
            self.note(|| event.to_string());
        }
        event.is_some()
    }

    /// One step of a process.
    fn act(&mut self, who: usize) {
        match self.random.below(16) {
            0..4 => self.start_send(who),
            4..8 => self.start_receive(who),
            8 => {
                self.note(|| format!("{who} polls"));
                self.processes[who].engine.poll();
            }
            9 | 10 => {
                self.note(|| format!("{who} is helped"));
                self.processes[who].engine.help_once();
            }
            11 => self.hold(who),
            12 => self.probe_and_receive(who),
            13 => self.exchange(who),
            _ => self.touch(who),
        }
        for index in 0..self.processes[who].ops.len() {
            self.processes[who].see_end(index, false);
        }
    }

    /// Tests or cancels an operation, or receives a message that was taken.
    fn touch(&mut self, who: usize) {
        let pending: Vec<usize> =
            (0..self.processes[who].ops.len()).filter(|&i| self.processes[who].is_pending(i)).collect();
        if pending.is_empty() {
            return;
        }
        let index = self.random.of(&pending);
        let cancels = self.random.one_in(6);
        self.note(|| format!("{who} {} operation {index}", if cancels { "cancels" } else { "tests" }));
        let process = &mut self.processes[who];
        if matches!(process.ops[index].progress, Progress::Held(_)) {
            process.receive_held(index);
        } else if cancels {
            process.cancel(index);
        } else {
            process.see_end(index, true);
        }
    }

    fn context(&mut self, who: usize) -> u64 {
        let context = self.random.of(&CONTEXTS);
        if is_member(context, who as u32, self.size) { context } else { CONTEXTS[0] }
    }

    fn members(&self, context: u64) -> u32 {
        (0..self.size).filter(|&process| is_member(context, process, self.size)).count() as u32
    }

    fn block(&mut self) -> Option<usize> {
        self.random.of(&[None, None, Some(100), Some(8192)])
    }

    fn start_send(&mut self, who: usize) {
        let context = self.context(who);
        let to = self.random.below(self.members(context) as usize) as u32;
        let tag = self.random.below(TAGS) as i32;
        self.send(who, to, context, tag);
    }

    fn send(&mut self, who: usize, to: u32, context: u64, tag: i32) {
        let number = self.messages.len() as u64;
        let len = self.random.of(&[0, 8, 40, 300, 4096, 4097, 5900, 6000, 6001, 10_000, 30_000]);
        let tag = if len == 0 { EMPTY_TAGS + number as i32 } else { tag };
        let mode = if self.random.one_in(4) { Mode::Synchronous } else { Mode::Standard };
        let envelope = Envelope { context, source: who as i32, tag };
        let bytes = contents(number, len);
        let buffer = Buffer::new(&bytes, self.block());
        self.messages.push(Message { bytes, from: who as u32, to, envelope });
        let index = self.processes[who].ops.len();
        self.note(|| {
            format!("{who} sends message {number} of {len} bytes to {to}, {mode:?}, {envelope:?}, operation {index}")
        });
        self.processes[who].send(to, envelope, number, buffer, mode);
    }

    fn pattern(&mut self, who: usize) -> Pattern {
        let context = self.context(who);
        let source = self.random.below(self.members(context) as usize) as i32;
        let tag = self.random.below(TAGS) as i32;
        Pattern {
            context,
            source: (!self.random.one_in(3)).then_some(source),
            tag: (!self.random.one_in(3)).then_some(tag),
        }
    }

    fn start_receive(&mut self, who: usize) {
        let pattern = self.pattern(who);
        let room = self.random.of(&[8, 300, 5000, 6000, 30_000, 30_000, 30_000]);
        self.receive(who, pattern, room);
    }

    fn receive(&mut self, who: usize, pattern: Pattern, room: usize) {
        let index = self.processes[who].ops.len();
        self.note(|| format!("{who} receives up to {room} bytes, {pattern:?}, operation {index}"));
        let buffer = Buffer::new(&vec![0; room], self.block());
        self.processes[who].receive(pattern, buffer);
    }

    fn hold(&mut self, who: usize) {
        let pattern = self.pattern(who);
        let index = self.processes[who].ops.len();
        if self.processes[who].hold(pattern) {
            self.note(|| format!("{who} takes a message, {pattern:?}, operation {index}"));
        }
    }

    /// A receive right after a probe gets what was probed.
    fn probe_and_receive(&mut self, who: usize) {
        let pattern = self.pattern(who);
        let Ok(Some(seen)) = self.processes[who].engine.probe(&pattern) else { return };
        self.note(|| format!("{who} has found a message of {} bytes, {pattern:?}", seen.bytes));
        let exact = Pattern { source: Some(seen.source), tag: Some(seen.tag), ..pattern };
        self.receive(who, exact, 30_000);
        self.processes[who].ops.last_mut().expect("just added").foreseen = Some(seen);
    }

    /// One process's part of a pattern as collectives have it: receives from the left and sends to the right.
    fn exchange(&mut self, who: usize) {
        let context = self.context(who);
        let members = self.members(context);
        let (left, right) = ((who as u32 + members - 1) % members, (who as u32 + 1) % members);
        let tag = self.random.below(TAGS) as i32;
        self.receive(who, Pattern { context, source: Some(left as i32), tag: Some(tag) }, 30_000);
        self.send(who, right, context, tag);
    }

    /// Has everything happen that can: no packet is on its way, and no engine has anything to do.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        // A network that refuses packets now and then may need several attempts.
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

    /// Receives or cancels what is left; then nothing is held any more.
    pub fn clear_up(&mut self) {
        self.note(|| "clearing up".into());
        for who in 0..self.size as usize {
            if self.processes[who].is_dead {
                continue;
            }
            for index in 0..self.processes[who].ops.len() {
                self.processes[who].receive_held(index);
                if matches!(self.processes[who].ops[index].what, What::Receive { .. }) {
                    self.processes[who].cancel(index);
                }
            }
        }
        self.settle();
        for who in 0..self.size as usize {
            for context in CONTEXTS {
                let pattern = Pattern { context, source: None, tag: None };
                while !self.processes[who].is_dead && self.processes[who].hold(pattern) {
                    let index = self.processes[who].ops.len() - 1;
                    self.processes[who].receive_held(index);
                }
            }
        }
        self.settle();
        crate::oracle::judge(self);
        for (who, process) in self.processes.iter().enumerate().filter(|(_, process)| !process.is_dead) {
            assert_eq!(process.engine.holdings(), Holdings::default(), "what {who} holds at the end");
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
        Needs::Anybody => is_member(context, peer, size),
        Needs::Living => false,
    }));
    engine
}
