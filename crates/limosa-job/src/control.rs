//! The launcher's control socket: what ranks ask their launcher for, and what it answers.
//!
//! The socket is in the abstract namespace, so that nothing of it is left behind; its name contains the job's id, which
//! is random. Either side checks that the other one belongs to its own user.
//!
//! A message is its length and a list of byte strings, each with its length. One connection serves one request:
//!
//! | request | answers |
//! |---|---|
//! | [`Request::Spawn`] | [`Reply::Places`], then, after [`Request::Go`], [`Reply::Started`]; or [`Reply::Refused`] |
//! | [`Request::Publish`], [`Request::Unpublish`] | [`Reply::Done`] or [`Reply::Refused`] |
//! | [`Request::Lookup`] | [`Reply::Port`] or [`Reply::Refused`] |
//! | [`Request::Reach`] | [`Reply::Done`], and from then on what the port's owner says; or [`Reply::Refused`] |

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// Most bytes of a message; bounds what a broken one can make us allocate.
pub const LONGEST: u32 = 64 << 20;

/// How names of control sockets begin.
const NAME: &str = "limosa-job-";

/// How names of ports begin, which are sockets in the abstract namespace, too.
pub const PORT: &str = "limosa-port-";

/// One program of a spawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<Vec<u8>>,
    /// How many processes.
    pub count: u32,
    /// The fewest processes with which the program is content.
    pub least: u32,
    /// Keys and values that say how.
    pub info: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a rank asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Processes of these programs.
    Spawn {
        /// The rank that asks.
        rank: u32,
        /// The folder that relative names are seen from.
        folder: Vec<u8>,
        /// The programs.
        programs: Vec<Program>,
    },
    /// The places are ready: start the processes.
    Go,
    /// A name for a port.
    Publish {
        /// The name.
        service: Vec<u8>,
        /// The port.
        port: Vec<u8>,
    },
    /// The end of a name.
    Unpublish {
        /// The name.
        service: Vec<u8>,
    },
    /// The port of this name.
    Lookup {
        /// The name.
        service: Vec<u8>,
    },
    /// A connection with a port on another host: what the two processes say is passed on.
    Reach {
        /// The rank that has opened the port.
        rank: u32,
        /// The port.
        port: Vec<u8>,
    },
}

/// What the launcher answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The ranks from `first` on are for the spawn with this number: so many of each program.
    Places {
        /// First rank.
        first: u32,
        /// Number of the spawn.
        number: u64,
        /// Processes of each program.
        counts: Vec<u32>,
    },
    /// All processes have joined the job.
    Started,
    /// The port.
    Port(Vec<u8>),
    /// It is done.
    Done,
    /// It cannot be done.
    Refused {
        /// What kind of refusal.
        why: Refusal,
        /// Why, in a sentence.
        text: String,
    },
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The processes cannot be started.
    Spawn,
    /// There is such a name already, or none.
    Name,
    /// The request is not understood.
    Request,
    /// A value of the info object is wrong.
    Info,
}

/// A message: its fields.
pub type Fields = Vec<Vec<u8>>;

/// The name of the control socket of a job.
fn address(id: u64) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{NAME}{id:016x}"))
}

/// Opens the control socket of a job, for its launcher.
///
/// # Errors
/// The operating system's.
pub fn listen(id: u64) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(id)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Takes the next process that connects, if it belongs to this user. It is given up when it takes longer than `limit`
/// to send or to take a part of a message.
pub fn accept(listener: &UnixListener, limit: Duration) -> Option<UnixStream> {
    let (stream, _) = listener.accept().ok()?;
    check_user(stream.as_fd()).ok()?;
    stream.set_nonblocking(false).ok()?;
    limited(stream, limit).ok()
}

/// A connection that is given up when the other end takes longer than this to send or to take a part of a message.
///
/// # Errors
/// The operating system's.
pub fn limited(stream: UnixStream, limit: Duration) -> io::Result<UnixStream> {
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Connects to the launcher of a job.
///
/// # Errors
/// The operating system's; the launcher has ended, for example.
pub fn connect(id: u64) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address(id)?)?;
    check_user(stream.as_fd())?;
    Ok(stream)
}

/// Connects to a port of a process of this host.
///
/// # Errors
/// The operating system's; `PermissionDenied` if the process belongs to another user.
pub fn connect_to_port(port: &[u8]) -> io::Result<UnixStream> {
    if !port.starts_with(PORT.as_bytes()) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "this is not the name of a port"));
    }
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(port)?)?;
    check_user(stream.as_fd())?;
    Ok(stream)
}

/// How long another job's launcher may take to answer.
const OTHERS: Duration = Duration::from_secs(2);

/// Connects to the launchers of all other jobs of this user. One that does not answer makes a request fail after a
/// while.
pub fn connect_to_others(own: u64) -> Vec<UnixStream> {
    // Names may be any bytes.
    let sockets = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mut jobs: Vec<u64> =
        String::from_utf8_lossy(&sockets).lines().filter_map(job_that_listens).filter(|job| *job != own).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let connected = jobs.into_iter().filter_map(|job| {
        let stream = UnixStream::connect_addr(&address(job).ok()?).ok()?;
        let owner = rustix::net::sockopt::socket_peercred(&stream).ok()?.uid;
        let stream = limited(stream, OTHERS).ok()?;
        (owner == rustix::process::geteuid()).then_some(stream)
    });
    connected.collect()
}

/// The job whose control socket a line of `/proc/net/unix` shows.
fn job_that_listens(line: &str) -> Option<u64> {
    u64::from_str_radix(line.rsplit(' ').next()?.strip_prefix('@')?.strip_prefix(NAME)?, 16).ok()
}

/// Fails if the process at the other end belongs to another user.
///
/// # Errors
/// `PermissionDenied`, or the operating system's.
pub fn check_user(socket: BorrowedFd<'_>) -> io::Result<()> {
    let other = rustix::net::sockopt::socket_peercred(socket)?.uid;
    if other == rustix::process::geteuid() || other.is_root() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process at the other end belongs to another user"))
}

/// Sends a message.
///
/// # Errors
/// The operating system's.
pub fn send(mut to: impl Write, fields: &[Vec<u8>]) -> io::Result<()> {
    let mut body = Vec::new();
    for field in fields {
        body.extend_from_slice(&(field.len() as u32).to_ne_bytes());
        body.extend_from_slice(field);
    }
    let mut bytes = (body.len() as u32).to_ne_bytes().to_vec();
    bytes.append(&mut body);
    to.write_all(&bytes)
}

/// Receives a message.
///
/// # Errors
/// The operating system's; `InvalidData` for what is no message.
pub fn receive(mut from: impl Read) -> io::Result<Fields> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(broken());
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    let (mut rest, mut fields) = (&body[..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (field, behind) = behind.split_at_checked(u32::from_ne_bytes(*length) as usize).ok_or_else(broken)?;
        fields.push(field.to_vec());
        rest = behind;
    }
    if rest.is_empty() { Ok(fields) } else { Err(broken()) }
}

/// What is wrong with a message that is none.
pub fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message that is not understood")
}

/// A number as a field.
pub fn number(value: impl Into<u64>) -> Vec<u8> {
    value.into().to_ne_bytes().to_vec()
}

/// Reads fields in turn.
pub struct Reader(std::vec::IntoIter<Vec<u8>>);

impl Reader {
    /// From the first one on.
    pub fn new(fields: Fields) -> Reader {
        Reader(fields.into_iter())
    }

    /// The next field.
    ///
    /// # Errors
    /// `InvalidData`, as for all that follow: there is none, or it is something else.
    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        self.0.next().ok_or_else(broken)
    }

    /// The next field, a number.
    ///
    /// # Errors
    /// As above.
    pub fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_ne_bytes(self.bytes()?.try_into().map_err(|_| broken())?))
    }

    /// The next field, a number of 32 bits.
    ///
    /// # Errors
    /// As above.
    pub fn small(&mut self) -> io::Result<u32> {
        u32::try_from(self.number()?).map_err(|_| broken())
    }

    /// The next fields: their number, and then what `read` reads, so many times.
    ///
    /// # Errors
    /// As above.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Reader) -> io::Result<T>) -> io::Result<Vec<T>> {
        let count = self.small()?;
        (0..count).map(|_| read(self)).collect()
    }
}

impl Program {
    fn write(&self, to: &mut Fields) {
        to.push(number(self.words.len() as u64));
        to.extend(self.words.iter().cloned());
        to.extend([number(self.count), number(self.least), number(self.info.len() as u64)]);
        to.extend(self.info.iter().flat_map(|(key, value)| [key.clone(), value.clone()]));
    }

    fn read(from: &mut Reader) -> io::Result<Program> {
        let words = from.list(Reader::bytes)?;
        let (count, least) = (from.small()?, from.small()?);
        let info = from.list(|from| Ok((from.bytes()?, from.bytes()?)))?;
        Ok(Program { words, count, least, info })
    }
}

impl Request {
    /// As a message.
    pub fn fields(&self) -> Fields {
        match self {
            Request::Spawn { rank, folder, programs } => {
                let mut fields = vec![b"spawn".to_vec(), number(*rank), folder.clone(), number(programs.len() as u64)];
                programs.iter().for_each(|program| program.write(&mut fields));
                fields
            }
            Request::Go => vec![b"go".to_vec()],
            Request::Publish { service, port } => vec![b"publish".to_vec(), service.clone(), port.clone()],
            Request::Unpublish { service } => vec![b"unpublish".to_vec(), service.clone()],
            Request::Lookup { service } => vec![b"lookup".to_vec(), service.clone()],
            Request::Reach { rank, port } => vec![b"reach".to_vec(), number(*rank), port.clone()],
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// `InvalidData` for what is no request.
    pub fn read(fields: Vec<Vec<u8>>) -> io::Result<Request> {
        let mut from = Reader::new(fields);
        Ok(match &*from.bytes()? {
            b"spawn" => {
                Request::Spawn { rank: from.small()?, folder: from.bytes()?, programs: from.list(Program::read)? }
            }
            b"go" => Request::Go,
            b"publish" => Request::Publish { service: from.bytes()?, port: from.bytes()? },
            b"unpublish" => Request::Unpublish { service: from.bytes()? },
            b"lookup" => Request::Lookup { service: from.bytes()? },
            b"reach" => Request::Reach { rank: from.small()?, port: from.bytes()? },
            _ => return Err(broken()),
        })
    }
}

impl Reply {
    /// As a message.
    pub fn fields(&self) -> Fields {
        match self {
            Reply::Places { first, number: spawn, counts } => {
                let head = [b"places".to_vec(), number(*first), number(*spawn), number(counts.len() as u64)];
                head.into_iter().chain(counts.iter().map(|count| number(*count))).collect()
            }
            Reply::Started => vec![b"started".to_vec()],
            Reply::Port(port) => vec![b"port".to_vec(), port.clone()],
            Reply::Done => vec![b"done".to_vec()],
            Reply::Refused { why, text } => {
                let why = match why {
                    Refusal::Spawn => 1u64,
                    Refusal::Name => 2,
                    Refusal::Request => 3,
                    Refusal::Info => 4,
                };
                vec![b"refused".to_vec(), number(why), text.as_bytes().to_vec()]
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// `InvalidData` for what is no answer.
    pub fn read(fields: Vec<Vec<u8>>) -> io::Result<Reply> {
        let mut from = Reader::new(fields);
        Ok(match &*from.bytes()? {
            b"places" => {
                Reply::Places { first: from.small()?, number: from.number()?, counts: from.list(Reader::small)? }
            }
            b"started" => Reply::Started,
            b"port" => Reply::Port(from.bytes()?),
            b"done" => Reply::Done,
            b"refused" => {
                let why = match from.number()? {
                    1 => Refusal::Spawn,
                    2 => Refusal::Name,
                    4 => Refusal::Info,
                    _ => Refusal::Request,
                };
                Reply::Refused { why, text: String::from_utf8_lossy(&from.bytes()?).into_owned() }
            }
            _ => return Err(broken()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(fields: &[Vec<u8>]) -> Fields {
        let mut bytes = Vec::new();
        send(&mut bytes, fields).expect("memory");
        receive(&bytes[..]).expect("a message")
    }

    proptest! {
        #[test]
        fn requests_come_as_they_were_sent(
            words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..5), count: u32
        ) {
            let info = words.iter().map(|word| (word.clone(), b"value".to_vec())).collect();
            let programs = vec![Program { words, count, least: 1, info }; 2];
            let request = Request::Spawn { rank: 3, folder: b"/x".to_vec(), programs };
            prop_assert_eq!(&Request::read(through(&request.fields())).expect("a request"), &request);
        }

        #[test]
        fn bytes_that_are_no_message_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(fields) = receive(&bytes[..]) {
                let _ = (Request::read(fields.clone()), Reply::read(fields));
            }
        }
    }

    #[test]
    fn jobs_are_found_by_their_control_sockets() {
        let id = 0x5ca1_ab1e_0000_0000 | u64::from(std::process::id());
        let _listener = listen(id).expect("a socket");
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("a list");
        assert!(sockets.lines().filter_map(job_that_listens).any(|job| job == id));
        assert_eq!(job_that_listens("0000: 00000002 00000000 00010000 0001 01 9 @limosa-port-12"), None);
        assert_eq!(job_that_listens(""), None);
    }

    #[test]
    fn who_says_nothing_is_given_up() {
        let id = 0x5ca1_ab1e_0001_0000 | u64::from(std::process::id());
        let listener = listen(id).expect("a socket");
        assert!(accept(&listener, OTHERS).is_none(), "there is no connection");
        let mut rank = connect(id).expect("a connection");
        let stream = accept(&listener, Duration::from_millis(1)).expect("this user");
        rank.write_all(&[1]).expect("room");
        assert_eq!(receive(&stream).expect_err("a part").kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn answers_come_as_they_were_sent() {
        let refused = |why| Reply::Refused { why, text: "no room".into() };
        for reply in [
            Reply::Places { first: 4, number: 9, counts: vec![2, 1] },
            Reply::Started,
            Reply::Port(b"p".to_vec()),
            Reply::Done,
            refused(Refusal::Spawn),
            refused(Refusal::Name),
            refused(Refusal::Request),
            refused(Refusal::Info),
        ] {
            assert_eq!(Reply::read(through(&reply.fields())).expect("an answer"), reply);
        }
    }
}
