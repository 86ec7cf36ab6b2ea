//! PMI-1: lines of text over a socket that the launcher has opened for each process (`PMI_FD`), or to which the process
//! connects (`PMI_PORT`). hydra speaks it, and `srun --mpi=pmi2` understands it too.
//!
//! A line is `cmd=NAME KEY=VALUE ...`. The process asks, the launcher answers each line with one, those of a barrier
//! when all have come. What is read is untrusted: a line has at most [`LINE`] bytes, and everything in it may be
//! missing.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::FileType;
use rustix::io::{Errno, FdFlags};
use rustix::net::SendFlags;

use super::Manager;

/// Longest line.
const LINE: u64 = 16 * 1024;
/// Most processes that a launcher may claim to have started.
const MOST: u32 = crate::layout::MAX_RANKS;

/// A line of the protocol, as it was read.
#[derive(Debug)]
pub struct Line(HashMap<String, String>);

impl Line {
    /// What can be understood of the line; later words win.
    pub fn parse(line: &[u8]) -> Line {
        let text = String::from_utf8_lossy(line);
        let words = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        Line(words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// A value of the line.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A number of the line.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }
}

/// The connection with the launcher.
pub(crate) struct Client {
    name: &'static str,
    /// None after [`Manager::finalize`].
    stream: Option<Stream>,
    place: (u32, u32),
    space: String,
}

struct Stream {
    from: BufReader<File>,
    to: OwnedFd,
}

impl Client {
    /// The launcher of this process, if it offers PMI; not asked for one process alone.
    pub(super) fn find(name: &'static str, value: &dyn Fn(&str) -> Option<String>) -> Option<Result<Client, String>> {
        let number = |name: &str| value(name).and_then(|text| text.trim().parse::<u32>().ok());
        let place = number("PMI_RANK").zip(number("PMI_SIZE"));
        if let Some(port) = value("PMI_PORT") {
            let id = number("PMI_ID").or(number("PMI_RANK")).unwrap_or(0);
            return Some(Client::connect(name, &port, id));
        }
        let fd = value("PMI_FD")?;
        // A single process has no partners, and its launcher does not miss it.
        if place.is_some_and(|(_, size)| size == 1) {
            return None;
        }
        Some(Client::inherit(name, &fd, place))
    }

    fn inherit(name: &'static str, fd: &str, place: Option<(u32, u32)>) -> Result<Client, String> {
        let place = place.ok_or("PMI_FD is set, but PMI_RANK and PMI_SIZE are not two numbers")?;
        let socket = inherited(fd)?;
        Client::start(name, socket, place)
    }

    /// Connects to `HOST:PORT`; the launcher says then which process this is.
    fn connect(name: &'static str, port: &str, id: u32) -> Result<Client, String> {
        let stream = TcpStream::connect(port).map_err(|error| format!("PMI_PORT is {port}: {error}"))?;
        let _ = stream.set_nodelay(true);
        let mut stream = Stream::new(OwnedFd::from(stream))?;
        stream.say(&format!("cmd=initack pmiid={id}"))?;
        stream.expect("initack")?;
        let mut place = (id, 0);
        for _ in 0..3 {
            let line = stream.expect("set")?;
            let number = |key| line.number(key).and_then(|number| u32::try_from(number).ok());
            place = (number("rank").unwrap_or(place.0), number("size").unwrap_or(place.1));
        }
        Client::greet(name, stream, place)
    }

    /// Begins with a socket.
    pub(crate) fn start(name: &'static str, socket: OwnedFd, place: (u32, u32)) -> Result<Client, String> {
        Client::greet(name, Stream::new(socket)?, place)
    }

    fn greet(name: &'static str, mut stream: Stream, place: (u32, u32)) -> Result<Client, String> {
        if place.0 >= place.1 || place.1 > MOST {
            return Err(format!("it says that this is process {} of {}", place.0, place.1));
        }
        stream.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let line = stream.ask("cmd=get_my_kvsname", "my_kvsname")?;
        let space = line.get("kvsname").ok_or("its answer to get_my_kvsname has no name")?.to_owned();
        Ok(Client { name, stream: Some(stream), place, space })
    }

    fn ask(&mut self, question: &str, answer: &str) -> Result<Line, String> {
        self.stream.as_mut().ok_or("the connection has been closed")?.ask(question, answer)
    }
}

impl Manager for Client {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> (u32, u32) {
        self.place
    }

    fn appnum(&mut self) -> u32 {
        let line = self.ask("cmd=get_appnum", "appnum").ok();
        line.and_then(|line| line.number("appnum")).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        let question = format!("cmd=put kvsname={} key=limosa-{key}-{} value={value}", self.space, self.place.0);
        self.ask(&question, "put_result").map(|_| ())
    }

    fn fence(&mut self) -> Result<(), String> {
        self.ask("cmd=barrier_in", "barrier_out").map(|_| ())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<String, String> {
        let question = format!("cmd=get kvsname={} key=limosa-{key}-{from}", self.space);
        let line = self.ask(&question, "get_result")?;
        line.get("value").map(str::to_owned).ok_or_else(|| format!("it has no value of limosa-{key}-{from}"))
    }

    fn abort(&mut self, code: i32, _message: &str) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.say(&format!("cmd=abort exitcode={code}"));
        }
    }

    fn finalize(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            let _ = stream.ask("cmd=finalize", "finalize_ack");
        }
    }
}

/// The socket that the launcher has left open under this number. Programs that this process starts do not get it.
fn inherited(fd: &str) -> Result<OwnedFd, String> {
    let number: RawFd =
        fd.trim().parse().ok().filter(|fd| *fd >= 0).ok_or(format!("PMI_FD is `{fd}`, not a number"))?;
    // SAFETY: only looked at; if the number is not open the system says so.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let kind = rustix::fs::fstat(borrowed).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if kind != Ok(FileType::Socket) {
        return Err(format!(
            "PMI_FD is {number}, which is not a socket that is open: what started this process has closed it, or \
             another process of the same rank uses it already"
        ));
    }
    let _ = rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    // SAFETY: the launcher has opened it for this process alone, which takes it once (`JOB` in `job.rs`).
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

impl Stream {
    fn new(socket: OwnedFd) -> Result<Stream, String> {
        let from = socket.try_clone().map_err(|error| error.to_string())?;
        Ok(Stream { from: BufReader::new(File::from(from)), to: socket })
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            // No signal if the launcher has gone: the program may not be ready for one.
            match rustix::net::send(&self.to, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(format!("it takes no message: {error}")),
            }
        }
        Ok(())
    }

    /// The next line, which must be the command `answer` and report no failure.
    fn expect(&mut self, answer: &str) -> Result<Line, String> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(LINE).read_until(b'\n', &mut bytes);
        read.map_err(|error| format!("it sends no answer: {error}"))?;
        if bytes.last() != Some(&b'\n') {
            let what = if bytes.len() as u64 == LINE {
                "it sends a line without an end"
            } else {
                "it has closed the \
                connection; perhaps another process has failed"
            };
            return Err(what.to_owned());
        }
        let line = Line::parse(&bytes);
        if line.get("cmd") != Some(answer) {
            return Err(format!("its answer is not `{answer}`, but `{}`", shown(&bytes)));
        }
        match line.number("rc") {
            None | Some(0) => Ok(line),
            Some(_) => Err(format!("it refuses: `{}`", shown(&bytes))),
        }
    }

    fn ask(&mut self, question: &str, answer: &str) -> Result<Line, String> {
        self.say(question)?;
        self.expect(answer)
    }
}

/// The beginning of a line, for people.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().chars().filter(|letter| !letter.is_control()).take(80).collect()
}
