//! What processes, launchers and couriers say to each other, as none of them would: packets of a network, cards, lines
//! of PMI, requests and answers of a launcher, messages between head and agents, and frames between couriers.
//!
//! What was understood, written again and read again, says the same.

use arbitrary::{Result, Unstructured};
use limosa_cli::run::again;
use limosa_device::fabric::packet::{self, Card};
use limosa_device::files::courier::frames;
use limosa_job::control::{self, Fields, Reply, Request};
use limosa_job::site::pmi::Line;

/// First fields of messages, so that inputs reach what follows soon.
const NAMES: &[&str] = &[
    "spawn",
    "go",
    "publish",
    "unpublish",
    "lookup",
    "places",
    "started",
    "port",
    "done",
    "refused",
    "start",
    "signal",
    "kill",
    "input",
    "input ends",
    "card",
    "prepare",
    "kill rank",
    "answer",
    "alive",
    "not started",
    "output",
    "output ends",
    "place",
    "abort",
    "ended",
    "inner ended",
    "prepared",
    "asks",
    "ask ends",
    "taken",
    "carrying",
];

/// Processes of a job whose agents speak.
const SIZE: u32 = 4;

/// A packet of a network, and a card.
fn network(bytes: &[u8]) {
    if let Some((label, meta, data)) = packet::read(bytes) {
        let mut head = [0; packet::HEADER];
        packet::write_head(&mut head, &label, &meta);
        assert_eq!((head.len() + data.len(), &head[..20]), (bytes.len(), &bytes[..20]));
        assert_eq!(packet::read(&head).map(|(label, meta, _)| (label, meta)), Some((label, meta)));
    }
    if let Some(card) = Card::read(bytes).filter(|_| bytes.len() <= packet::CARD_BYTES) {
        assert_eq!(card.write().as_deref(), Some(bytes));
    }
}

/// A line of a launcher.
fn line(bytes: &[u8]) {
    let line = Line::parse(bytes);
    for key in ["cmd", "rc", "rank", "size", "value", "kvsname"] {
        let value = line.get(key).unwrap_or_default();
        assert!(!value.contains(|letter: char| letter.is_ascii_whitespace()) && value.len() <= 3 * bytes.len());
        assert!(line.number(key).is_none_or(|number| value.parse() == Ok(number)));
    }
}

/// Fields of a message: its name, and numbers, lists of which are short, or anything.
fn fields(u: &mut Unstructured<'_>) -> Result<Fields> {
    let mut fields: Fields = vec![u.choose(NAMES)?.as_bytes().to_vec()];
    for _ in 0..u.int_in_range(0..=40u8)? {
        fields.push(match u.int_in_range(0..=3u8)? {
            0 | 1 => control::number(u.int_in_range(0..=3u8)?),
            2 => control::number(u.arbitrary::<u64>()?),
            _ => u.arbitrary()?,
        });
    }
    Ok(fields)
}

fn written(fields: &[Vec<u8>]) -> Fields {
    let mut bytes = Vec::new();
    control::send(&mut bytes, fields).expect("memory takes everything");
    control::receive(&bytes[..]).expect("what was written")
}

/// A message of a launcher, a rank, the head or an agent.
fn message(fields: &Fields) {
    assert_eq!(&written(fields), fields);
    if let Ok(request) = Request::read(fields.clone()) {
        assert_eq!(Request::read(written(&request.fields())).ok(), Some(request));
    }
    if let Ok(reply) = Reply::read(fields.clone()) {
        assert_eq!(Reply::read(written(&reply.fields())).ok(), Some(reply));
    }
    for (side, bytes) in again(fields, SIZE).into_iter().enumerate() {
        let Some(bytes) = bytes else { continue };
        let read = control::receive(&bytes[..]).expect("what was written");
        assert_eq!(again(&read, SIZE)[side].as_ref(), Some(&bytes));
    }
}

/// What a courier reads from a connection.
fn courier(bytes: &[u8]) {
    if let Ok(Some(end)) = frames::greeting(bytes) {
        assert!(bytes[..end].ends_with(frames::GREETING));
    }
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = frames::first(rest) {
        let mut again = Vec::new();
        frame.write(&mut again);
        assert_eq!(again, rest[..length]);
        rest = &rest[length..];
    }
}

/// Runs one input.
pub fn target(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let fields = match kind % 5 {
        0 => return network(rest),
        1 => return line(rest),
        2 => return courier(rest),
        3 => control::receive(rest).ok(),
        _ => fields(&mut Unstructured::new(rest)).ok(),
    };
    // An input that ends too early is not worth more.
    if let Some(fields) = fields {
        message(&fields);
    }
}
