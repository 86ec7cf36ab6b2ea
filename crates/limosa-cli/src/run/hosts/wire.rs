//! Messages between the head of a job over several hosts and its agents.
//!
//! An agent begins with a line of text, [`greeting`], which every version understands; what a login script may have
//! printed before is skipped. Then both send messages over a [`Stream`](crate::run::stream::Stream): fields with their
//! lengths (`limosa_job::control`), the first of which names the message.
//!
//! What comes from another host is untrusted: a message is checked when it is read, and what is none ends the job.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use limosa_job::control::{self, Fields, Reader, broken, number};
use limosa_job::{CARD_BYTES, HostPlan, MAX_RANKS};

use crate::hang::stacks::{Places, Program, SourcePosition};
use crate::run::binding::BindTo;
use crate::run::plan::App;
use crate::run::rank::Ended;

/// Changes with every change of the messages.
const PROTOCOL: u32 = 11;

/// Begins the first line of an agent.
const GREETING: &str = "limosa-agent";

/// The longest first line, and what may come before it.
const LONGEST_GREETING: usize = 64 * 1024;

/// From the head to an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Prepares the job. The first message, which the agent answers with `Ready` or `NotStarted`.
    Start(Box<Start>),
    /// Starts the ranks: all hosts are ready.
    Begin,
    /// A signal for all ranks.
    Signal(i32),
    /// The job ends: asks the ranks to end.
    End,
    /// Kills all that belongs to the job.
    Kill,
    /// For the standard input of the ranks that read it. The agent answers with `Taken` when they have got it.
    Input(Vec<u8>),
    /// Their standard input ends.
    InputEnds,
    /// What a rank of another host has published about itself.
    Card(u32, Vec<u8>),
    /// The process of a rank of another host has ended in good order.
    Left(u32),
    /// Makes places for ranks that are spawned.
    Prepare(Box<Prepare>),
    /// Starts one of them, which is on the agent's host.
    Spawn(u32, Box<App>),
    /// Kills the process of a rank.
    KillRank(u32),
    /// Asks, with this number, for the source lines of Python ranks.
    Places(u64),
    /// For the process that has asked for something under this number.
    Answer(u64, Fields),
    /// Nothing more is said to it.
    AskEnds(u64),
    /// Connects to a port on the agent's host. Its owner is from then on a process that asks, under this number.
    Reach(u64, Vec<u8>),
    /// Logs in to the host of this number, and starts an agent there.
    Login(u32),
    /// Sends the agent there the `Start` of this one, with that host's number.
    Share(u32),
    /// For that agent.
    Pass(u32, Vec<u8>),
    /// Orders for this agent and for those that it has started, which pass them on likewise.
    Spread(Vec<u8>),
    /// Ends that login.
    Cut(u32),
    /// The courier of the host of this number has files for this one, whose courier is to connect to it.
    Call(u32),
    /// The head lives.
    Alive,
    /// The job has ended: the agent ends.
    Done,
}

/// From an agent to the head.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The ranks of this host can be started.
    Ready,
    /// The process of a rank was started, bound to these processors if there are any.
    Started { rank: u32, pid: u32, processors: Vec<usize> },
    /// The process of a rank could not be started.
    NotStarted { rank: u32, why: String },
    /// A rank has written to stdout (`kind` 0) or stderr (1).
    Output { rank: u32, kind: u32, bytes: Vec<u8> },
    /// That stream has ended.
    OutputEnds { rank: u32, kind: u32 },
    /// A rank's place on the status board, when the agent's clock showed this time.
    Place { rank: u32, now_ns: u64, copy: Vec<u8> },
    /// What a rank has published about itself.
    Card { rank: u32, card: Vec<u8> },
    /// A rank has aborted the job.
    Abort { rank: u32, code: i32, message: String },
    /// The process of a rank has ended.
    Ended { rank: u32, how: Ended, out_of_memory: bool },
    /// Process `pid`, which was the rank, has ended, but not the wrapper around it.
    InnerEnded { rank: u32, pid: u32 },
    /// The answer to such a question.
    Places { question: u64, places: Places },
    /// There are places for the ranks of this spawn, or why there are none.
    Prepared { spawn: u64, refusal: Option<String> },
    /// A process asks the launcher for something; the agent's number for it, which stays the same for the process.
    Asks { ask: u64, fields: Fields },
    /// That process asks for nothing more.
    AskEnds { ask: u64 },
    /// The readers have got the input.
    Taken,
    /// Messages of this host are under way to others, or not any more.
    Carrying(bool),
    /// The courier has files for the host of this number, whose courier is to connect to it.
    Call(u32),
    /// What has come from a host that the agent has logged in to.
    Passed { host: u32, come: Come },
    /// The agent lives.
    Alive,
}

/// Bytes received from another host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Come {
    /// From the agent.
    pub bytes: Vec<u8>,
    /// What ssh has said, or the agent to people.
    pub errors: Vec<u8>,
    /// Nothing more comes.
    pub has_ended: bool,
}

/// What an agent starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The job's id.
    pub id: u64,
    /// Ranks that may be added later, and how many processes there may be in all.
    pub spare: u32,
    pub universe: u32,
    /// All hosts, and which of them the agent's is.
    pub hosts: Vec<HostPlan>,
    pub here: u32,
    /// The programs, and for each rank of the job which one it runs.
    pub apps: Vec<App>,
    pub ranks: Vec<u32>,
    /// The variables of the head that mean something here.
    pub env: Vec<(OsString, OsString)>,
    /// What each rank is bound to.
    pub bind_to: BindTo,
    /// The ranks of all hosts that get the input.
    pub readers: Vec<u32>,
}

/// Places for ranks that are spawned.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// The number of the spawn, and the rank that has asked for it.
    pub spawn: u64,
    pub parent: u32,
    /// The first of the ranks; for each the number of its program and its host.
    pub first: u32,
    pub appnums: Vec<u32>,
    pub hosts: Vec<u32>,
}

/// The first line of an agent of this version.
pub fn greeting() -> String {
    format!("{GREETING} {PROTOCOL} {}\n", env!("CARGO_PKG_VERSION"))
}

/// The first line of a login to an agent that has ended.
pub fn no_agent() -> String {
    format!("{GREETING} none\n")
}

/// Reads the first line of an agent from the start of what has come, and removes it. `None`: there must come more.
///
/// # Errors
/// A sentence about what is there instead.
pub fn take_greeting(bytes: &mut Vec<u8>) -> Option<Result<(), String>> {
    let mut start = 0;
    while let Some(length) = bytes[start..].iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&bytes[start..start + length + 1]).into_owned();
        start += length + 1;
        if line.starts_with(&format!("{GREETING} ")) {
            bytes.drain(..start);
            if line == greeting() {
                return Some(Ok(()));
            }
            let version = line.trim_end().rsplit(' ').next().unwrap_or_default().to_owned();
            return Some(Err(format!(
                "it has Limosa {version}, and this is Limosa {}: install the same version on all hosts",
                env!("CARGO_PKG_VERSION")
            )));
        }
    }
    (bytes.len() > LONGEST_GREETING).then(|| Err("what answers there is not Limosa".to_owned()))
}

/// The message at the start of what has come; it is removed. `None`: there must come more.
///
/// # Errors
/// `InvalidData` for what is no message.
pub fn take(bytes: &mut Vec<u8>) -> io::Result<Option<Fields>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_ne_bytes(*length) as usize;
    if length > control::LONGEST as usize {
        return Err(broken());
    }
    if rest.len() < length {
        return Ok(None);
    }
    let fields = control::receive(&bytes[..4 + length])?;
    bytes.drain(..4 + length);
    Ok(Some(fields))
}

/// What a message says as an order, and as a report about ranks below `size`, written again; `None` for what is none.
/// The fuzz target `protocols` uses it.
#[doc(hidden)]
pub fn again(fields: &Fields, size: u32) -> [Option<Vec<u8>>; 2] {
    let order = Order::read(fields.clone()).ok().map(|order| order.bytes());
    [order, Report::read(fields.clone(), size).ok().map(|report| report.bytes())]
}

fn write(fields: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // INVARIANT: memory takes everything.
    control::send(&mut bytes, fields).expect("written to memory");
    bytes
}

fn word(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn signed(value: i32) -> Vec<u8> {
    number(value.cast_unsigned())
}

fn text(from: &mut Reader) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&from.bytes()?).into_owned())
}

fn os_text(from: &mut Reader) -> io::Result<OsString> {
    from.bytes().map(OsString::from_vec)
}

fn card(from: &mut Reader) -> io::Result<Vec<u8>> {
    from.bytes().and_then(|card| if card.len() <= CARD_BYTES { Ok(card) } else { Err(broken()) })
}

fn push_list<T>(fields: &mut Fields, list: &[T], mut push: impl FnMut(&mut Fields, &T)) {
    fields.push(number(list.len() as u64));
    list.iter().for_each(|item| push(fields, item));
}

fn push_pair(fields: &mut Fields, (name, value): &(OsString, OsString)) {
    fields.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
}

fn pair(from: &mut Reader) -> io::Result<(OsString, OsString)> {
    Ok((os_text(from)?, os_text(from)?))
}

fn push_app(fields: &mut Fields, app: &App) {
    fields.extend([app.program.as_os_str().as_bytes().to_vec(), app.name.as_bytes().to_vec()]);
    push_list(fields, &app.args, |fields, arg| fields.push(arg.as_bytes().to_vec()));
    push_list(fields, &app.env, push_pair);
    fields.push(number(u32::from(app.clear_env)));
    fields.push(app.wdir.as_deref().map_or(OsStr::new(""), |dir| dir.as_os_str()).as_bytes().to_vec());
}

fn read_app(from: &mut Reader) -> io::Result<App> {
    let (program, name) = (PathBuf::from(os_text(from)?), os_text(from)?);
    let (args, env) = (from.list(os_text)?, from.list(pair)?);
    let clear_env = from.small()? != 0;
    let wdir = Some(PathBuf::from(os_text(from)?)).filter(|dir| !dir.as_os_str().is_empty());
    Ok(App { program, name, args, env, clear_env, wdir })
}

fn push_places(fields: &mut Fields, places: &Places) {
    fields.push(number(places.program as u32));
    push_list(fields, &places.notes, |fields, note| fields.push(word(note)));
    fields.push(number(places.threads.len() as u64));
    for ((rank, thread), place) in &places.threads {
        fields.extend([number(*rank), number(*thread), word(&place.line)]);
        for words in [place.verb.as_deref(), place.text.as_deref()] {
            push_list(fields, words.as_slice(), |fields, text| fields.push(word(text)));
        }
    }
}

fn read_places(from: &mut Reader, size: u32) -> io::Result<Places> {
    let program = *Program::ALL.get(from.small()? as usize).ok_or_else(broken)?;
    let notes = from.list(text)?;
    let threads = from.list(|from| {
        let (rank, thread, line) = (from.small()?, from.small()?, text(from)?);
        let [verb, code] = [from.list(text)?.pop(), from.list(text)?.pop()];
        if rank < size { Ok(((rank, thread), SourcePosition { line, verb, text: code })) } else { Err(broken()) }
    })?;
    Ok(Places { threads: threads.into_iter().collect(), notes, program })
}

impl Order {
    /// As bytes.
    pub fn bytes(&self) -> Vec<u8> {
        write(&match self {
            Order::Start(start) => start.fields(),
            Order::Begin => vec![word("begin")],
            Order::Signal(signal) => vec![word("signal"), signed(*signal)],
            Order::End => vec![word("end")],
            Order::Kill => vec![word("kill")],
            Order::Input(bytes) => vec![word("input"), bytes.clone()],
            Order::InputEnds => vec![word("input ends")],
            Order::Card(rank, card) => vec![word("card"), number(*rank), card.clone()],
            Order::Left(rank) => vec![word("left"), number(*rank)],
            Order::Prepare(prepare) => prepare.fields(),
            Order::Spawn(rank, app) => {
                let mut fields = vec![word("spawn"), number(*rank)];
                push_app(&mut fields, app);
                fields
            }
            Order::KillRank(rank) => vec![word("kill rank"), number(*rank)],
            Order::Places(question) => vec![word("places"), number(*question)],
            Order::Answer(ask, answer) => {
                [vec![word("answer"), number(*ask), number(answer.len() as u64)], answer.clone()].concat()
            }
            Order::AskEnds(ask) => vec![word("ask ends"), number(*ask)],
            Order::Reach(ask, port) => vec![word("reach"), number(*ask), port.clone()],
            Order::Login(host) => vec![word("login"), number(*host)],
            Order::Share(host) => vec![word("share"), number(*host)],
            Order::Pass(host, bytes) => vec![word("pass"), number(*host), bytes.clone()],
            Order::Spread(bytes) => vec![word("spread"), bytes.clone()],
            Order::Cut(host) => vec![word("cut"), number(*host)],
            Order::Call(host) => vec![word("call"), number(*host)],
            Order::Alive => vec![word("alive")],
            Order::Done => vec![word("done")],
        })
    }

    /// Reads a message.
    ///
    /// # Errors
    /// `InvalidData` for what is none.
    pub fn read(fields: Fields) -> io::Result<Order> {
        let mut from = Reader::new(fields);
        Ok(match &*from.bytes()? {
            b"start" => Order::Start(Box::new(Start::read(&mut from)?)),
            b"begin" => Order::Begin,
            b"signal" => Order::Signal(from.small()?.cast_signed()),
            b"end" => Order::End,
            b"kill" => Order::Kill,
            b"input" => Order::Input(from.bytes()?),
            b"input ends" => Order::InputEnds,
            b"card" => Order::Card(from.small()?, card(&mut from)?),
            b"left" => Order::Left(from.small()?),
            b"prepare" => Order::Prepare(Box::new(Prepare::read(&mut from)?)),
            b"spawn" => Order::Spawn(from.small()?, Box::new(read_app(&mut from)?)),
            b"kill rank" => Order::KillRank(from.small()?),
            b"places" => Order::Places(from.number()?),
            b"answer" => Order::Answer(from.number()?, from.list(Reader::bytes)?),
            b"ask ends" => Order::AskEnds(from.number()?),
            b"reach" => Order::Reach(from.number()?, from.bytes()?),
            b"login" => Order::Login(from.small()?),
            b"share" => Order::Share(from.small()?),
            b"pass" => Order::Pass(from.small()?, from.bytes()?),
            b"spread" => Order::Spread(from.bytes()?),
            b"cut" => Order::Cut(from.small()?),
            b"call" => Order::Call(from.small()?),
            b"alive" => Order::Alive,
            b"done" => Order::Done,
            _ => return Err(broken()),
        })
    }
}

impl Report {
    /// The rank that it is about.
    pub fn rank(&self) -> Option<u32> {
        match self {
            Report::Started { rank, .. }
            | Report::NotStarted { rank, .. }
            | Report::Output { rank, .. }
            | Report::OutputEnds { rank, .. }
            | Report::Place { rank, .. }
            | Report::Card { rank, .. }
            | Report::Abort { rank, .. }
            | Report::Ended { rank, .. }
            | Report::InnerEnded { rank, .. } => Some(*rank),
            Report::Places { .. } | Report::Prepared { .. } | Report::Asks { .. } | Report::AskEnds { .. } => None,
            Report::Ready | Report::Taken | Report::Carrying(_) | Report::Call(_) => None,
            Report::Passed { .. } | Report::Alive => None,
        }
    }

    /// As bytes.
    pub fn bytes(&self) -> Vec<u8> {
        write(&match self {
            Report::Ready => vec![word("ready")],
            Report::Started { rank, pid, processors } => {
                let mut fields = vec![word("started"), number(*rank), number(*pid)];
                push_list(&mut fields, processors, |fields, processor| fields.push(number(*processor as u64)));
                fields
            }
            Report::NotStarted { rank, why } => vec![word("not started"), number(*rank), word(why)],
            Report::Output { rank, kind, bytes } => vec![word("output"), number(*rank), number(*kind), bytes.clone()],
            Report::OutputEnds { rank, kind } => vec![word("output ends"), number(*rank), number(*kind)],
            Report::Place { rank, now_ns, copy } => vec![word("place"), number(*rank), number(*now_ns), copy.clone()],
            Report::Card { rank, card } => vec![word("card"), number(*rank), card.clone()],
            Report::Abort { rank, code, message } => vec![word("abort"), number(*rank), signed(*code), word(message)],
            Report::Ended { rank, how, out_of_memory } => {
                let (kind, value) = match how {
                    Ended::Code(code) => (0u32, *code),
                    Ended::Signal(signal) => (1, *signal),
                };
                vec![word("ended"), number(*rank), number(kind), signed(value), number(u32::from(*out_of_memory))]
            }
            Report::InnerEnded { rank, pid } => vec![word("inner ended"), number(*rank), number(*pid)],
            Report::Places { question, places } => {
                let mut fields = vec![word("places"), number(*question)];
                push_places(&mut fields, places);
                fields
            }
            Report::Prepared { spawn, refusal } => {
                let mut fields = vec![word("prepared"), number(*spawn)];
                fields.extend(refusal.as_deref().map(word));
                fields
            }
            Report::Asks { ask, fields } => {
                [vec![word("asks"), number(*ask), number(fields.len() as u64)], fields.clone()].concat()
            }
            Report::AskEnds { ask } => vec![word("ask ends"), number(*ask)],
            Report::Taken => vec![word("taken")],
            Report::Carrying(are_under_way) => vec![word("carrying"), number(u32::from(*are_under_way))],
            Report::Call(host) => vec![word("call"), number(*host)],
            Report::Passed { host, come: Come { bytes, errors, has_ended } } => {
                let ends = number(u32::from(*has_ended));
                vec![word("passed"), number(*host), bytes.clone(), errors.clone(), ends]
            }
            Report::Alive => vec![word("alive")],
        })
    }

    /// Reads a message about ranks below `size`.
    ///
    /// # Errors
    /// `InvalidData` for what is none.
    pub fn read(fields: Fields, size: u32) -> io::Result<Report> {
        let mut from = Reader::new(fields);
        let name = from.bytes()?;
        let mut below = |limit: u32| from.small().and_then(|n| if n < limit { Ok(n) } else { Err(broken()) });
        let mut rank = || below(size);
        Ok(match &*name {
            b"ready" => Report::Ready,
            b"started" => {
                let (rank, pid) = (rank()?, from.small()?);
                Report::Started { rank, pid, processors: from.list(|from| Ok(from.small()? as usize))? }
            }
            b"not started" => Report::NotStarted { rank: rank()?, why: text(&mut from)? },
            b"output" => Report::Output { rank: rank()?, kind: below(2)?, bytes: from.bytes()? },
            b"output ends" => Report::OutputEnds { rank: rank()?, kind: below(2)? },
            b"place" => Report::Place { rank: rank()?, now_ns: from.number()?, copy: from.bytes()? },
            b"card" => Report::Card { rank: rank()?, card: card(&mut from)? },
            b"abort" => Report::Abort { rank: rank()?, code: from.small()?.cast_signed(), message: text(&mut from)? },
            b"ended" => {
                let (rank, kind, value) = (rank()?, below(2)?, from.small()?.cast_signed());
                let how = if kind == 0 { Ended::Code(value) } else { Ended::Signal(value) };
                Report::Ended { rank, how, out_of_memory: from.small()? != 0 }
            }
            b"inner ended" => Report::InnerEnded { rank: rank()?, pid: from.small()? },
            b"places" => Report::Places { question: from.number()?, places: read_places(&mut from, size)? },
            b"prepared" => Report::Prepared { spawn: from.number()?, refusal: text(&mut from).ok() },
            b"asks" => Report::Asks { ask: from.number()?, fields: from.list(Reader::bytes)? },
            b"ask ends" => Report::AskEnds { ask: from.number()? },
            b"taken" => Report::Taken,
            b"carrying" => Report::Carrying(below(2)? == 1),
            b"call" => Report::Call(from.small()?),
            b"passed" => Report::Passed {
                host: from.small()?,
                come: Come { bytes: from.bytes()?, errors: from.bytes()?, has_ended: from.small()? != 0 },
            },
            b"alive" => Report::Alive,
            _ => return Err(broken()),
        })
    }
}

impl Prepare {
    fn fields(&self) -> Fields {
        let mut fields = vec![word("prepare"), number(self.spawn), number(self.parent), number(self.first)];
        push_list(&mut fields, &self.appnums, |fields, app| fields.push(number(*app)));
        push_list(&mut fields, &self.hosts, |fields, host| fields.push(number(*host)));
        fields
    }

    /// Reads the rest of the message.
    fn read(from: &mut Reader) -> io::Result<Prepare> {
        let (spawn, parent, first) = (from.number()?, from.small()?, from.small()?);
        let (appnums, hosts) = (from.list(Reader::small)?, from.list(Reader::small)?);
        if appnums.len() != hosts.len() {
            return Err(broken());
        }
        Ok(Prepare { spawn, parent, first, appnums, hosts })
    }
}

impl Start {
    /// How many processes the job has room for.
    pub fn capacity(&self) -> u32 {
        (self.ranks.len() as u32).saturating_add(self.spare).min(MAX_RANKS)
    }

    fn fields(&self) -> Fields {
        let mut fields = vec![word("start"), number(self.id), number(self.spare), number(self.universe)];
        push_list(&mut fields, &self.hosts, |fields, host| {
            fields.extend([word(&host.name), number(host.ranks.start), number(host.ranks.end)]);
        });
        fields.push(number(self.here));
        push_list(&mut fields, &self.apps, push_app);
        push_list(&mut fields, &self.ranks, |fields, app| fields.push(number(*app)));
        push_list(&mut fields, &self.env, push_pair);
        let bind_to = BindTo::ALL.iter().position(|known| *known == self.bind_to);
        fields.push(number(bind_to.unwrap_or(0) as u64));
        push_list(&mut fields, &self.readers, |fields, rank| fields.push(number(*rank)));
        fields
    }

    /// Reads the rest of the message. What refers to something else in it is checked.
    fn read(from: &mut Reader) -> io::Result<Start> {
        let (id, spare, universe) = (from.number()?, from.small()?, from.small()?);
        let hosts = from.list(|from| Ok(HostPlan { name: text(from)?, ranks: from.small()?..from.small()? }))?;
        let here = from.small()?;
        let apps = from.list(read_app)?;
        let ranks = from.list(Reader::small)?;
        let env = from.list(pair)?;
        let bind_to = *BindTo::ALL.get(from.small()? as usize).ok_or_else(broken)?;
        let readers = from.list(Reader::small)?;
        let size = ranks.len() as u32;
        let is_whole = (here as usize) < hosts.len()
            && !apps.is_empty()
            && hosts.iter().all(|host| host.ranks.start <= host.ranks.end && host.ranks.end <= size)
            && ranks.iter().all(|app| (*app as usize) < apps.len());
        if !is_whole {
            return Err(broken());
        }
        Ok(Start { id, spare, universe, hosts, here, apps, ranks, env, bind_to, readers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start() -> Start {
        let host = |name: &str, ranks| HostPlan { name: name.into(), ranks };
        Start {
            id: u64::MAX,
            spare: 60,
            universe: 2,
            hosts: vec![host("a", 0..1), host("b", 1..3)],
            here: 1,
            apps: vec![App {
                program: "/bin/sh".into(),
                name: "sh".into(),
                args: vec!["-c".into(), OsString::from_vec(vec![255, 10])],
                env: vec![("A".into(), "=".into())],
                clear_env: true,
                wdir: Some("/x".into()),
            }],
            ranks: vec![0, 0, 0],
            env: vec![("HOME".into(), "".into())],
            bind_to: BindTo::Socket,
            readers: vec![2],
        }
    }

    fn places() -> Places {
        let bare = SourcePosition { line: "a.py:1 in f".into(), verb: None, text: None };
        let full = SourcePosition { verb: Some("send".into()), text: Some("x".into()), ..bare.clone() };
        Places {
            threads: [((0, 7), bare), ((2, 8), full)].into(),
            notes: vec!["no tool".into()],
            program: Program::Java,
        }
    }

    #[test]
    fn orders_come_as_they_were_sent() {
        let orders = [
            Order::Start(Box::new(start())),
            Order::Begin,
            Order::Signal(libc::SIGTERM),
            Order::End,
            Order::Kill,
            Order::Input(vec![0, 255]),
            Order::InputEnds,
            Order::Card(3, vec![7; CARD_BYTES]),
            Order::Left(2),
            Order::Prepare(Box::new(Prepare { spawn: 1, parent: 2, first: 3, appnums: vec![0, 1], hosts: vec![1, 0] })),
            Order::Spawn(3, Box::new(start().apps[0].clone())),
            Order::KillRank(3),
            Order::Places(7),
            Order::Answer(u64::MAX, vec![vec![], vec![1]]),
            Order::AskEnds(3),
            Order::Reach(9, b"limosa-port-1".to_vec()),
            Order::Login(1),
            Order::Share(1),
            Order::Pass(1, vec![0, 10, 255]),
            Order::Spread(vec![0, 10, 255]),
            Order::Cut(1),
            Order::Call(1),
            Order::Alive,
            Order::Done,
        ];
        let mut bytes: Vec<u8> = orders.iter().flat_map(Order::bytes).collect();
        for order in &orders {
            let fields = take(&mut bytes).expect("a message").expect("it has come");
            assert_eq!(&Order::read(fields).expect("an order"), order);
        }
        assert_eq!(take(&mut bytes).expect("nothing"), None);
    }

    #[test]
    fn reports_come_as_they_were_sent_whatever_parts_they_come_in() {
        let reports = [
            Report::Ready,
            Report::Started { rank: 2, pid: 77, processors: vec![0, 4] },
            Report::NotStarted { rank: 0, why: "no".into() },
            Report::Output { rank: 1, kind: 1, bytes: b"line\n".to_vec() },
            Report::OutputEnds { rank: 1, kind: 0 },
            Report::Place { rank: 2, now_ns: 5, copy: vec![1; 100] },
            Report::Card { rank: 1, card: vec![] },
            Report::Abort { rank: 2, code: -1, message: "why".into() },
            Report::Ended { rank: 0, how: Ended::Code(-3), out_of_memory: false },
            Report::Ended { rank: 0, how: Ended::Signal(9), out_of_memory: true },
            Report::InnerEnded { rank: 1, pid: 9 },
            Report::Places { question: 7, places: places() },
            Report::Prepared { spawn: 1, refusal: None },
            Report::Prepared { spawn: 1, refusal: Some("no memory".into()) },
            Report::Asks { ask: 1, fields: vec![vec![0], vec![]] },
            Report::AskEnds { ask: 1 },
            Report::Taken,
            Report::Carrying(true),
            Report::Call(1),
            Report::Passed { host: 1, come: Come { bytes: vec![0], errors: b"no".to_vec(), has_ended: true } },
            Report::Alive,
        ];
        let (mut come, mut read) = (Vec::new(), Vec::new());
        for byte in reports.iter().flat_map(Report::bytes) {
            come.push(byte);
            read.extend(take(&mut come).expect("a message").map(|fields| Report::read(fields, 3).expect("a report")));
        }
        assert_eq!(read, reports);
    }

    #[test]
    fn a_greeting_is_found_behind_what_a_login_script_prints() {
        let mut bytes = format!("Welcome!\n\n{}rest", greeting()).into_bytes();
        assert_eq!(take_greeting(&mut bytes), Some(Ok(())));
        assert_eq!(bytes, b"rest");
        assert_eq!(take_greeting(&mut b"limosa-ag".to_vec()), None);
        let other =
            take_greeting(&mut b"limosa-agent 99 7.6.5\n".to_vec()).expect("a line").expect_err("a different version");
        assert!(other.contains("7.6.5"), "{other}");
        assert!(take_greeting(&mut vec![b'\n'; LONGEST_GREETING + 1]).expect("enough").is_err());
    }

    #[test]
    fn ranks_and_programs_that_are_not_there_are_refused() {
        let take_one = |mut bytes: Vec<u8>| take(&mut bytes).expect("a message").expect("it has come");
        assert!(Report::read(take_one(Report::Started { rank: 3, pid: 1, processors: vec![] }.bytes()), 3).is_err());
        for spoil in
            [|s: &mut Start| s.here = 2, |s: &mut Start| s.ranks[0] = 1, |s: &mut Start| s.hosts[1].ranks.end = 9]
        {
            let mut start = start();
            spoil(&mut start);
            assert!(Order::read(take_one(Order::Start(Box::new(start)).bytes())).is_err());
        }
        let hosts = vec![HostPlan { name: "a".into(), ranks: 0..0 }];
        let none = Start { hosts, here: 0, apps: vec![], ranks: vec![], readers: vec![], ..start() };
        assert!(Order::read(take_one(Order::Start(Box::new(none)).bytes())).is_err(), "a job without programs");
    }

    proptest! {
        #[test]
        fn bytes_that_are_no_message_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = take_greeting(&mut bytes.clone());
            if let Ok(Some(fields)) = take(&mut bytes) {
                let _ = (Order::read(fields.clone()), Report::read(fields, 2));
            }
        }
    }
}
