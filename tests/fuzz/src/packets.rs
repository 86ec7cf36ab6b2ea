//! Packets as no engine sends them: each is a message, or an error that ends communication; no byte beside a message's
//! memory changes.
//!
//! The engine of process 0 stands on a device that hands it the input's packets. Its own threads stay out, so that an
//! input always does the same.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};

use arbitrary::{Result, Unstructured};
use limosa_base::segment::{self, PAGE};
use limosa_device::{Address, Data, Device, DeviceError, Devices, Meta, Sent, Urgency};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Engine, Links, Mode, Options, RequestId, Seats, ShmDevice, Started, Wait};

const PEERS: u32 = 4;
const MARGIN: usize = 64;
const MARK: u8 = 0xa5;

/// What travels, and how much room there is for it.
#[derive(Default)]
struct Wire {
    coming: VecDeque<(Address, Meta, Vec<u8>)>,
    room: usize,
    /// Numbers that the engine has sent: an answer names them.
    words: Vec<u64>,
}

struct Scripted(Arc<Mutex<Wire>>);

impl Device for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn max_data(&self) -> usize {
        8192
    }

    fn send(
        &mut self,
        _to: Address,
        meta: &Meta,
        mut data: Data<'_>,
        _urgency: Urgency,
    ) -> std::result::Result<Sent, DeviceError> {
        let mut wire = self.0.lock().expect("one thread");
        if wire.room == 0 {
            return Ok(Sent::NoRoom);
        }
        wire.room -= 1;
        let mut bytes = vec![0; data.len()];
        data.write(&mut bytes);
        wire.words.extend(meta.words);
        wire.words.extend(
            bytes.chunks_exact(8).take(5).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))),
        );
        Ok(Sent::Done)
    }

    fn want_room(&mut self, _to: Address) {}

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> std::result::Result<bool, DeviceError> {
        let packet = self.0.lock().expect("one thread").coming.pop_front();
        let Some((from, meta, data)) = packet else { return Ok(false) };
        sink(from, &meta, &data);
        Ok(true)
    }
}

fn engine(wire: &Arc<Mutex<Wire>>) -> Arc<Engine> {
    static HOST: OnceLock<(OwnedFd, Mutex<ShmDevice>)> = OnceLock::new();
    let (_, host) = HOST.get_or_init(|| {
        let file = segment::create(c"limosa-fuzz", PAGE as u64).expect("a memory file");
        let device = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(0, 1), false).expect("a device");
        (file, Mutex::new(device))
    });
    let doorbell = host.lock().expect("one thread").doorbell();
    let mut devices = Devices::new(None);
    let device = devices.add_device(Box::new(Scripted(wire.clone())));
    (0..PEERS).for_each(|address| {
        devices.add_peer(device, address);
    });
    let options = Options {
        wait: Wait::Poll,
        spin_ns: 0,
        eager_limit: 6000,
        independent_progress: false,
        unexpected_limit: 1 << 16,
    };
    Engine::start(Links { devices, doorbell, rank: 0, peers: PEERS, processes_here: 1 }, options).expect("an engine")
}

/// Memory of messages, with marks around it.
#[derive(Default)]
struct Memory(Vec<Box<[u8]>>);

impl Memory {
    fn region(&mut self, len: usize) -> Region {
        let mut block = vec![MARK; len + 2 * MARGIN].into_boxed_slice();
        block[MARGIN..MARGIN + len].fill(0);
        // SAFETY: the block lives until the engine is gone, and no code touches its middle before.
        let region = unsafe { Region::contiguous(block.as_mut_ptr().add(MARGIN), len) };
        self.0.push(block);
        region
    }

    fn check(&self) {
        for block in &self.0 {
            let (front, back) = (&block[..MARGIN], &block[block.len() - MARGIN..]);
            assert!(front.iter().chain(back).all(|byte| *byte == MARK), "a message was written beside its memory");
        }
    }
}

fn word(u: &mut Unstructured<'_>, wire: &Wire) -> Result<u64> {
    Ok(match u.int_in_range(0..=4u8)? {
        0 => crate::number(u)? as u64,
        1 => u.int_in_range(0..=2)? << 32 | u.int_in_range(0..=3)?,
        2 => u.int_in_range(0..=10_000)?,
        _ if wire.words.is_empty() => 0,
        _ => wire.words[wire.words.len() - 1 - u.choose_index(wire.words.len().min(20))?],
    })
}

fn packet(u: &mut Unstructured<'_>, wire: &mut Wire) -> Result<()> {
    let from = u.int_in_range(1..=PEERS - 1)?;
    let kind = if u.ratio(15, 16)? { u.int_in_range(1..=11)? } else { u.arbitrary()? };
    let mut words = [word(u, wire)?, word(u, wire)?];
    if u.arbitrary()? {
        words = [2, (u.int_in_range(0..=3u64)?) << 32 | u.int_in_range(0..=3u64)?]; // an envelope
    }
    let mut data = Vec::new();
    for _ in 0..u.int_in_range(0..=5usize)? {
        data.extend(word(u, wire)?.to_ne_bytes());
    }
    match u.int_in_range(0..=3u8)? {
        0 => data.truncate(u.int_in_range(0..=40usize)?),
        1 => data.resize(data.len() + u.int_in_range(0..=4096usize)?, 7),
        _ => {}
    }
    wire.coming.push_back((from, Meta { kind, words }, data));
    Ok(())
}

fn length(u: &mut Unstructured<'_>) -> Result<usize> {
    Ok(match u.int_in_range(0..=5u8)? {
        0 => 0,
        1 => u.int_in_range(0..=64)?,
        2 => 4096 + u.int_in_range(0..=1)?,
        3 => 6000 + u.int_in_range(0..=1)?,
        4 => 20_000,
        _ => u.int_in_range(0..=9000)?,
    })
}

fn step(
    u: &mut Unstructured<'_>,
    engine: &Engine,
    wire: &Mutex<Wire>,
    memory: &mut Memory,
    requests: &mut Vec<(RequestId, usize)>,
) -> Result<()> {
    let some = |u: &mut Unstructured<'_>| Ok(if u.arbitrary()? { Some(u.int_in_range(0..=3)?) } else { None });
    match u.int_in_range(0..=12u8)? {
        0 | 1 => {
            let pattern = Pattern { context: 2, source: some(u)?, tag: some(u)? };
            let len = length(u)?;
            requests.push((engine.receive(&pattern, memory.region(len)), len));
        }
        2 | 3 => {
            let envelope = Envelope { context: 2, source: 0, tag: u.int_in_range(0..=3)? };
            let mode = if u.arbitrary()? { Mode::Standard } else { Mode::Synchronous };
            let region = memory.region(length(u)?);
            if let Ok(Started::Pending(id)) = engine.send(u.int_in_range(0..=PEERS - 1)?, &envelope, region, mode) {
                requests.push((id, 0));
            }
        }
        4 if !requests.is_empty() => engine.cancel(u.choose(requests)?.0),
        5 if !requests.is_empty() => {
            let at = u.choose_index(requests.len())?;
            if let Some(end) = engine.take(requests[at].0) {
                assert!(
                    end.bytes <= requests[at].1 as u64 || end.cancelled,
                    "{} bytes received in {}",
                    end.bytes,
                    requests[at].1
                );
                requests.swap_remove(at);
            }
        }
        6 => {
            let pattern = Pattern { context: 2, source: some(u)?, tag: some(u)? };
            let _ = engine.probe(&pattern);
            if let Ok(Some(matched)) = engine.probe_matched(&pattern) {
                let len = length(u)?;
                requests.push((engine.receive_matched(matched, memory.region(len)), len));
            }
        }
        7 => wire.lock().expect("one thread").room = u.int_in_range(0..=40)?,
        8 => engine.poll(),
        _ => {
            packet(u, &mut wire.lock().expect("one thread"))?;
            engine.poll();
        }
    }
    Ok(())
}

/// Mixes operations with packets.
pub fn target(data: &[u8]) {
    let wire = Arc::new(Mutex::new(Wire { room: 30, ..Wire::default() }));
    let engine = engine(&wire);
    let (mut memory, mut requests) = (Memory::default(), Vec::new());
    let mut u = Unstructured::new(data);
    for _ in 0..100 {
        if u.is_empty() || step(&mut u, &engine, &wire, &mut memory, &mut requests).is_err() {
            break;
        }
    }
    engine.poll();
    engine.stop();
    memory.check();
    // The memory goes last.
    drop(engine);
}
