//! Messages on the fast path, mixed at random with messages on the general path, compared with a model.

use limosa_base::segment::{self, PAGE};
use limosa_device::shm::{Seats, ShmDevice};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Engine, FastWait, Label, Mode, Options, Received, RequestId, Short, Started, Unobserved, Wait};
use proptest::prelude::*;
use std::os::fd::AsFd;
use std::sync::Arc;

const OPTIONS: Options = Options {
    wait: Wait::Auto,
    spin_ns: 20_000,
    eager_limit: 16384,
    unexpected_limit: 1 << 28,
    independent_progress: false,
};
const ROOM: usize = 5000;

/// Creates two engines whose locks are biased to the calling thread.
fn pair() -> [Arc<Engine>; 2] {
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    [0, 1].map(|rank| {
        let device = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true).expect("joining");
        Engine::start(device.into(), OPTIONS).expect("an engine")
    })
}

#[derive(Clone, Debug)]
enum Step {
    Send {
        tag: i32,
        len: usize,
        fast: bool,
    },
    Start {
        named: bool,
        tag: Option<i32>,
        fast: bool,
    },
    /// A blocking receive, if a message for it has been sent.
    Receive {
        tag: Option<i32>,
        fast: bool,
    },
    /// A poll of the receiver.
    Poll,
    /// A wait for this receive and the next ones, if they can complete.
    Wait {
        first: usize,
        count: usize,
        fast: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![4 => 0..41usize, 1 => 41..300usize, 1 => 300..ROOM];
    let tag = || prop::option::weighted(0.8, 0..2);
    let step = prop_oneof![
        6 => (0..2, len, prop::bool::weighted(0.8)).prop_map(|(tag, len, fast)| Step::Send { tag, len, fast }),
        3 => (prop::bool::weighted(0.8), tag(), prop::bool::weighted(0.8))
            .prop_map(|(named, tag, fast)| Step::Start { named, tag, fast }),
        3 => (tag(), prop::bool::weighted(0.8)).prop_map(|(tag, fast)| Step::Receive { tag, fast }),
        1 => Just(Step::Poll),
        3 => (0..8usize, 1..4usize, any::<bool>()).prop_map(|(first, count, fast)| Step::Wait { first, count, fast }),
    ];
    prop::collection::vec(step, 0..150)
}

/// A started receive.
struct Open {
    id: RequestId,
    tag: Option<i32>,
    buffer: Box<[u8]>,
    /// Number of the message that it gets.
    message: Option<usize>,
}

#[derive(Default)]
struct Model {
    /// Tag and bytes of each message.
    sent: Vec<(i32, Vec<u8>)>,
    /// Messages that no receive matches yet.
    free: Vec<usize>,
    open: Vec<Open>,
}

fn fits(tag: Option<i32>, message: i32) -> bool {
    tag.is_none_or(|tag| tag == message)
}

impl Model {
    fn send(&mut self, tag: i32, len: usize) {
        let number = self.sent.len();
        self.sent.push((tag, (0..len).map(|i| (i * 7 + number) as u8).collect()));
        match self.open.iter_mut().find(|open| open.message.is_none() && fits(open.tag, tag)) {
            Some(open) => open.message = Some(number),
            None => self.free.push(number),
        }
    }

    /// Returns the message that a receive gets which begins now.
    fn take(&mut self, tag: Option<i32>) -> Option<usize> {
        let at = self.free.iter().position(|&number| fits(tag, self.sent[number].0))?;
        Some(self.free.remove(at))
    }

    fn check(&self, number: usize, received: Received, buffer: &[u8]) {
        let (tag, bytes) = &self.sent[number];
        assert_eq!(received, Received { source: 0, tag: *tag, bytes: bytes.len() as u64 });
        assert_eq!(buffer[..bytes.len()], bytes[..]);
    }
}

fn room(buffer: &mut [u8]) -> Region {
    // SAFETY: the buffers live until their receives are complete, and are not read before.
    unsafe { Region::contiguous(buffer.as_mut_ptr(), buffer.len()) }
}

fn pattern(tag: Option<i32>, named: bool) -> Pattern {
    Pattern { context: 2, source: if named { Some(0) } else { None }, tag }
}

/// Waits for some receives, all of which get messages. Returns whether that was possible.
fn wait(engine: &Engine, model: &mut Model, first: usize, count: usize, fast: bool) -> bool {
    let last = model.open.len().min(first + count);
    if first >= last || model.open[first..last].iter().any(|open| open.message.is_none()) {
        return false;
    }
    let names: Vec<Short> = model.open[first..last].iter().map(|open| open.id.short()).collect();
    let mut ends = vec![None; names.len()];
    let waited = match fast {
        true => engine.try_wait(names.len(), |i| FastWait::Request(names[i]), |i, received| ends[i] = received),
        false => engine
            .wait_each(
                names.len(),
                |i| Some(names[i]),
                &Unobserved,
                |i, _, _, end| {
                    assert_eq!((end.failure, end.cancelled), (None, false));
                    ends[i] = Some(Received { source: end.source, tag: end.tag, bytes: end.bytes });
                },
            )
            .is_ok(),
    };
    assert!(waited || (fast && ends.iter().all(Option::is_none)), "all or nothing");
    if waited {
        let done: Vec<Open> = model.open.drain(first..last).collect();
        for (open, end) in done.iter().zip(ends) {
            model.check(open.message.expect("checked above"), end.expect("a receive"), &open.buffer);
        }
        assert!(
            names.iter().all(|&name| !engine.try_wait(1, |_| FastWait::Request(name), |_, _| ())),
            "a name is good for one wait"
        );
    }
    waited
}

fn send(engine: &Engine, receiver: &Engine, model: &mut Model, tag: i32, len: usize, fast: bool) {
    model.send(tag, len);
    let bytes = &mut model.sent.last_mut().expect("just sent").1;
    let envelope = Envelope { context: 2, source: 0, tag };
    if fast && engine.try_send(1, &envelope, bytes) {
        return;
    }
    if let Started::Pending(id) = engine.send(1, &envelope, room(bytes), Mode::Standard).expect("send") {
        while engine.test(id).is_none() {
            receiver.poll();
        }
        engine.release(id);
    }
}

fn start(engine: &Engine, model: &mut Model, named: bool, tag: Option<i32>, fast: bool) {
    let mut buffer = vec![0; ROOM].into_boxed_slice();
    let label = Label { context: 2, note: 0, peer: None, tag, is_send: false };
    let pattern = pattern(tag, named);
    let peer = if named { Some(0) } else { None };
    // SAFETY: the buffer lives until its receive is complete.
    let started = if fast { unsafe { engine.try_start_receive(peer, &pattern, &mut buffer, label) } } else { None };
    let id = started.unwrap_or_else(|| engine.receive_labelled(&pattern, room(&mut buffer), label));
    let message = model.take(tag);
    model.open.push(Open { id, tag, buffer, message });
}

fn receive(engine: &Engine, model: &mut Model, tag: Option<i32>, fast: bool) {
    let Some(number) = model.free.iter().copied().find(|&number| fits(tag, model.sent[number].0)) else { return };
    let mut buffer = vec![0; ROOM];
    let pattern = pattern(tag, true);
    let received = match if fast { engine.try_receive(0, &pattern, &mut buffer) } else { None } {
        Some(received) => received,
        None => {
            let end = engine.receive_blocking(&pattern, room(&mut buffer), &Unobserved);
            Received { source: end.source, tag: end.tag, bytes: end.bytes }
        }
    };
    assert_eq!(model.take(tag), Some(number));
    model.check(number, received, &buffer);
}

proptest! {
    #[test]
    fn every_receive_gets_its_message_whichever_way_they_go(steps in steps()) {
        let [a, b] = pair();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Send { tag, len, fast } => send(&a, &b, &mut model, tag, len, fast),
                Step::Start { named, tag, fast } => start(&b, &mut model, named, tag, fast),
                Step::Receive { tag, fast } => receive(&b, &mut model, tag, fast),
                Step::Poll => b.poll(),
                Step::Wait { first, count, fast } => {
                    wait(&b, &mut model, first, count, fast);
                }
            }
        }
        // The open receives get their messages now.
        for tag in 0..2 {
            for _ in 0..model.open.len() {
                send(&a, &b, &mut model, tag, 8, true);
            }
        }
        while !model.open.is_empty() {
            let message = model.open[0].message;
            prop_assert!(message.is_some() && wait(&b, &mut model, 0, 3, false));
        }
        while !model.free.is_empty() {
            receive(&b, &mut model, None, true);
        }
        prop_assert_eq!((a.holdings(), b.holdings()), Default::default());
    }
}

/// Operations that must take the general path.
#[test]
fn unusual_operations_take_the_general_path() {
    let [a, b] = pair();
    let envelope = Envelope { context: 2, source: 0, tag: 1 };
    let any = pattern(None, true);
    let mut buffer = [0; 8];
    assert!(!a.try_send(1, &envelope, &[7; 8]), "nothing was sent to this process before");
    assert!(!a.try_send(0, &envelope, &[7; 8]), "to itself");
    assert_eq!(b.try_receive(0, &any, &mut buffer), None, "there is nothing");
    assert!(!b.try_wait(1, |_| FastWait::Request(Short { index: 77, generation: 1 }), |_, _| ()), "no such request");
    let first = a.send(1, &envelope, room(&mut [7; 8]), Mode::Standard).expect("send");
    assert!(matches!(first, Started::Done));
    b.receive_blocking(&any, room(&mut buffer), &Unobserved);
    assert!(a.try_send(1, &envelope, &[7; 9]));
    assert_eq!(b.try_receive(0, &any, &mut buffer), None, "it is too long");
    let end = b.receive_blocking(&any, room(&mut buffer), &Unobserved);
    assert!(end.failure.is_some());
    assert!(a.try_send(1, &envelope, &[7; 8]));
    assert_eq!(b.try_receive(0, &Pattern { context: 4, ..any }, &mut buffer), None, "another context");
    assert_eq!(b.try_receive(0, &pattern(Some(2), true), &mut buffer), None, "another tag");
    assert_eq!(b.try_receive(0, &any, &mut buffer), Some(Received { source: 0, tag: 1, bytes: 8 }));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let at_first = a.try_send(1, &envelope, &[7; 8]);
            assert!(!at_first, "the lock is biased to another thread");
            let _ = a.holdings(); // takes the lock, which revokes the bias
            a.try_send(1, &envelope, &[8; 8])
        });
        assert!(other.join().expect("a thread"), "the lock has no bias any more");
    });
    assert_eq!(b.try_receive(0, &any, &mut buffer), Some(Received { source: 0, tag: 1, bytes: 8 }));
    assert_eq!(buffer, [8; 8]);
    assert_eq!(b.holdings(), Default::default());
}
