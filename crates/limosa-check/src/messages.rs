//! Which messages a process has sent and received, and what does not fit together. Pure: nothing here calls MPI.
//!
//! Messages with the same communicator, sender, receiver and tag are a *stream*. They are received in the order in
//! which they were sent, by receives in the order in which these were posted. So it is enough that both sides note
//! their own calls, and compare the notes at the end: the first message belongs to the first receive. Nothing is sent
//! meanwhile, and no program can be disturbed.
//!
//! A receive from any source or with any tag has a stream only when it is complete; until then those behind it wait in
//! a queue ([`Receives`]). Where the order is not known (several threads) only numbers of messages are compared; where
//! it is not known whether something was received, nothing.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

use crate::signature::Signature;

/// Different notes that a process keeps; of later messages only the number is known.
const NOTES: usize = 1 << 18;
/// Receives that wait for an earlier one.
const QUEUE: usize = 1 << 18;

/// What a call says of its message: the types and the bytes, the call, and where that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub signature: Signature,
    pub bytes: u64,
    pub call: &'static str,
    pub site: usize,
}

/// Which messages belong together. The peer is a rank in `MPI_COMM_WORLD`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub comm: u64,
    pub peer: i32,
    pub tag: i32,
}

/// The messages of a stream, as one side has noted them.
#[derive(Default)]
struct Stream {
    /// Equal notes in a row, and how many.
    runs: Vec<(Note, u64)>,
    count: u64,
    /// The thread that has noted the last.
    thread: Option<u64>,
    /// The order of the notes is that of the messages.
    is_ordered: bool,
    /// It is known which messages there are.
    is_sure: bool,
}

/// The streams of one side.
#[derive(Default)]
pub(crate) struct Streams {
    all: HashMap<Key, Stream>,
    notes: usize,
}

impl Streams {
    /// Notes a message, or a receive that got one. `thread`: none if the order was already lost.
    pub(crate) fn add(&mut self, key: Key, note: Note, thread: Option<u64>) {
        let new = || Stream { is_ordered: true, is_sure: true, thread, ..Stream::default() };
        let stream = self.all.entry(key).or_insert_with(new);
        stream.count += 1;
        stream.is_ordered &= thread.is_some() && thread == stream.thread;
        match stream.runs.last_mut() {
            Some((last, times)) if *last == note => *times += 1,
            _ if self.notes < NOTES => {
                stream.runs.push((note, 1));
                self.notes += 1;
            }
            _ => stream.is_ordered = false,
        }
    }

    /// It cannot be known any more which messages of a stream there are.
    pub(crate) fn lose(&mut self, key: Key) {
        self.all.entry(key).or_default().is_sure = false;
    }

    /// The streams to a peer, as text for it: a line for each stream, then one for each run.
    pub(crate) fn text_for(&self, peer: i32, place: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        let mut mine: Vec<_> = self.all.iter().filter(|(key, _)| key.peer == peer).collect();
        mine.sort_by_key(|(key, _)| **key);
        for (Key { comm, tag, .. }, stream) in mine {
            let (count, ordered, sure) = (stream.count, stream.is_ordered as u8, stream.is_sure as u8);
            let _ = writeln!(text, "stream\t{comm}\t{tag}\t{count}\t{ordered}\t{sure}");
            for (note, times) in &stream.runs {
                let Note { signature: Signature(signature), bytes, call, site } = note;
                let _ = writeln!(text, "run\t{signature}\t{bytes}\t{times}\t{call}\t{}", place(*site));
            }
        }
        text
    }
}

/// What a peer says of a message.
struct Sent {
    signature: Signature,
    bytes: u64,
    times: u64,
    call: String,
    place: String,
}

/// What does not fit, of some messages of a peer's: the communicator, the tag, and how many.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub comm: u64,
    pub tag: i32,
    pub times: u64,
    pub bytes: u64,
    /// The call that has sent it, and the place of that.
    pub call: String,
    pub place: String,
    /// The types of the message, and of the receive and its place; none: there was no receive.
    pub types: Option<(Signature, Signature, usize)>,
}

/// Compares what a peer says it has sent here with what was received from it. `is_sure` says whether it is known what
/// was received on a communicator.
pub(crate) fn faults(text: &str, peer: i32, received: &Streams, is_sure: impl Fn(u64) -> bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<i64> = line.split('\t').skip(1).map(|word| word.parse::<i128>().unwrap_or(0) as i64).collect();
        let &[comm, tag, count, ordered, sure] = words.as_slice() else { return faults };
        let mut sent = Vec::new();
        while let Some(run) = lines.next_if(|line| line.starts_with("run\t")) {
            sent.extend(parse(run));
        }
        let key = Key { comm: comm as u64, peer, tag: tag as i32 };
        let nothing = Stream { is_ordered: true, is_sure: true, ..Stream::default() };
        let stream = received.all.get(&key).unwrap_or(&nothing);
        if sure == 0 || !stream.is_sure || !is_sure(key.comm) {
            continue;
        }
        let is_ordered = ordered != 0 && stream.is_ordered;
        compare(key, count as u64, sent, stream, is_ordered, &mut faults);
    }
    faults
}

fn parse(line: &str) -> Option<Sent> {
    let mut words = line.splitn(6, '\t').skip(1);
    let mut number = || words.next()?.parse().ok();
    let (signature, bytes, times) = (Signature(number()?), number()?, number()?);
    Some(Sent { signature, bytes, times, call: words.next()?.into(), place: words.next()?.into() })
}

fn compare(key: Key, count: u64, sent: Vec<Sent>, stream: &Stream, is_ordered: bool, faults: &mut Vec<Fault>) {
    let Key { comm, tag, .. } = key;
    let fault = |sent: &Sent, times, types| {
        let (call, place) = (sent.call.clone(), sent.place.clone());
        Fault { comm, tag, times, bytes: sent.bytes, call, place, types }
    };
    if !is_ordered {
        let lost = count.saturating_sub(stream.count);
        faults.extend(sent.last().filter(|_| lost > 0).map(|last| fault(last, lost, None)));
        return;
    }
    let mut receives = stream.runs.iter().copied();
    let mut receive = receives.next();
    for message in sent {
        let mut left = message.times;
        while left > 0 {
            let Some((note, times)) = receive else { break };
            let both = left.min(times);
            if message.signature.differs(message.bytes, note.signature, note.bytes) {
                faults.push(fault(&message, both, Some((message.signature, note.signature, note.site))));
            }
            left -= both;
            receive = if times > both { Some((note, times - both)) } else { receives.next() };
        }
        if left > 0 {
            faults.push(fault(&message, left, None));
        }
    }
}

/// The receives of a communicator in the order in which they were posted.
#[derive(Default)]
pub(crate) struct Receives {
    queue: VecDeque<Posted>,
    /// The number of the first one in the queue.
    first: u64,
    thread: Option<u64>,
    /// Several threads have received, so that the order is not known.
    is_mixed: bool,
    /// It is not known which messages were received.
    pub is_lost: bool,
}

struct Posted {
    /// The source in the communicator and the tag, if they are known; a receive that got nothing has none, and no note.
    from: Option<(i32, i32)>,
    note: Option<Note>,
}

impl Receives {
    /// Posts a receive from a rank with a tag; negative: any. `note` is missing of a message that was only found.
    pub(crate) fn post(&mut self, source: i32, tag: i32, note: Option<Note>, thread: u64) -> u64 {
        self.is_mixed |= self.thread.is_some_and(|last| last != thread);
        self.thread = Some(thread);
        if self.queue.len() >= QUEUE {
            self.is_lost = true;
            self.queue.clear();
        }
        let from = (source >= 0 && tag >= 0).then_some((source, tag));
        self.queue.push_back(Posted { from, note });
        self.first + self.queue.len() as u64 - 1
    }

    /// A receive got a message from there.
    pub(crate) fn resolve(&mut self, number: u64, source: i32, tag: i32) {
        if let Some(posted) = self.find(number) {
            posted.from = Some((source, tag));
        }
    }

    /// A message that was only found is received.
    pub(crate) fn note(&mut self, number: u64, note: Note) {
        if let Some(posted) = self.find(number) {
            posted.note = Some(note);
        }
    }

    /// A receive will get nothing. False if it counts as one that did.
    pub(crate) fn withdraw(&mut self, number: u64) -> bool {
        let found = self.find(number).map(|posted| *posted = Posted { from: Some((-1, -1)), note: None });
        found.is_some()
    }

    fn find(&mut self, number: u64) -> Option<&mut Posted> {
        self.queue.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Those at the front that are known: source, tag, note, and the thread.
    pub(crate) fn known(&mut self) -> Vec<(i32, i32, Note, Option<u64>)> {
        let mut found = Vec::new();
        let thread = self.thread.filter(|_| !self.is_mixed);
        while let Some(Posted { from: Some((source, tag)), note }) = self.queue.front() {
            match note {
                Some(note) => found.push((*source, *tag, *note, thread)),
                None if *source >= 0 => break, // found by MPI_Mprobe, and not received yet
                None => {}
            }
            self.queue.pop_front();
            self.first += 1;
        }
        found
    }

    /// Receives of which it is not known what they got.
    pub(crate) fn has_open(&self) -> bool {
        self.queue.iter().any(|posted| posted.from.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Signature = Signature(68);
    const DOUBLE: Signature = Signature(200);

    fn note(signature: Signature, bytes: u64) -> Note {
        Note { signature, bytes, call: "MPI_X", site: 7 }
    }

    fn key(tag: i32) -> Key {
        Key { comm: 1, peer: 0, tag }
    }

    /// The faults of what was sent, as the other side finds them: tag, times, and whether it was received.
    fn found(sent: &Streams, received: &Streams) -> Vec<(i32, u64, bool)> {
        let text = sent.text_for(0, |site| format!("heat.py:{site}"));
        let faults = faults(&text, 0, received, |_| true);
        faults.iter().map(|fault| (fault.tag, fault.times, fault.types.is_some())).collect()
    }

    #[test]
    fn messages_belong_to_receives_by_their_order() {
        let (mut sent, mut received) = (Streams::default(), Streams::default());
        for types in [INT, INT, DOUBLE] {
            sent.add(key(5), note(types, 8), Some(1));
        }
        for types in [INT, DOUBLE, DOUBLE] {
            received.add(key(5), note(types, 80), Some(1));
        }
        assert_eq!(found(&sent, &received), [(5, 1, true)]);
    }

    #[test]
    fn what_nobody_received_is_told() {
        let (mut sent, mut received) = (Streams::default(), Streams::default());
        for _ in 0..10 {
            sent.add(key(5), note(INT, 4), Some(1));
        }
        sent.add(key(6), note(INT, 0), Some(1));
        received.add(key(5), note(INT, 4), Some(1));
        assert_eq!(found(&sent, &received), [(5, 9, false), (6, 1, false)]);
    }

    #[test]
    fn of_threads_only_numbers_are_compared() {
        let (mut sent, mut received) = (Streams::default(), Streams::default());
        sent.add(key(5), note(INT, 4), Some(1));
        sent.add(key(5), note(DOUBLE, 8), Some(2));
        received.add(key(5), note(DOUBLE, 8), None);
        assert_eq!(found(&sent, &received), [(5, 1, false)]);
        received.add(key(5), note(INT, 4), None);
        assert_eq!(found(&sent, &received), []);
    }

    #[test]
    fn what_is_not_sure_is_not_told() {
        let (mut sent, mut received) = (Streams::default(), Streams::default());
        sent.add(key(5), note(INT, 4), Some(1));
        received.lose(key(5));
        assert_eq!(found(&sent, &received), []);
    }

    #[test]
    fn receives_behind_one_from_any_source_wait_for_it() {
        let mut receives = Receives::default();
        let any = receives.post(-1, -2, Some(note(INT, 4)), 1);
        receives.post(0, 5, Some(note(DOUBLE, 8)), 1);
        assert!(receives.known().is_empty() && receives.has_open());
        receives.resolve(any, 0, 5);
        let tags: Vec<_> = receives.known().iter().map(|(source, tag, note, _)| (*source, *tag, note.bytes)).collect();
        assert_eq!(tags, [(0, 5, 4), (0, 5, 8)]);
        assert!(!receives.has_open());
    }

    #[test]
    fn a_cancelled_receive_got_nothing() {
        let mut receives = Receives::default();
        let any = receives.post(-1, 5, Some(note(INT, 4)), 1);
        assert!(receives.withdraw(any));
        assert!(receives.known().is_empty() && !receives.has_open());
        // One from a known rank counts as complete from the start.
        let known = receives.post(3, 5, Some(note(INT, 4)), 1);
        assert_eq!(receives.known().len(), 1);
        assert!(!receives.withdraw(known));
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut sent, received) = (Streams::default(), Streams::default());
        for number in 0..NOTES as u64 + 1000 {
            sent.add(key(5), note(INT, number), Some(1));
        }
        assert_eq!(sent.notes, NOTES);
        assert_eq!(found(&sent, &received), [(5, NOTES as u64 + 1000, false)]);
    }
}
