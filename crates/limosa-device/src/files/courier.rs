//! The courier of a host, where each host has a folder of its own: it carries message files to the hosts of their
//! receivers.
//!
//! A process writes a message file for any process in the folder of its own host. The courier there sees the lock file,
//! and sends the message file to the courier of the receiver's host, which writes message and lock into the folder
//! there. When the receiver has taken the file, that courier reports it, and the courier of the sender deletes the file
//! and its lock. So the sender sees room as if both were on one host.
//!
//! ```text
//!   sender -> ROOT/TO/FROM/N.msg, N.lock    courier ======== courier    ROOT/TO/FROM/N.msg, N.lock -> receiver
//!             deleted when it was taken             <- taken
//! ```
//!
//! Until then the file stays at the sender's host. After a connection has broken, all remaining files are sent once
//! more; the receiving courier knows by their numbers which it has. So no file is lost or duplicated.
//!
//! Notes for the boards ([`super::board`]) of processes of other hosts are written to copies here, which the courier
//! reads and sends. A courier never waits: [`Courier::descriptors`] returns the descriptors to sleep on, and
//! [`Courier::work`] does what can be done without waiting. Connections are made elsewhere.

#[doc(hidden)]
pub mod frames;

mod pairs;
mod stream;

use super::Folders;
use super::board::{self, Fault, Note};
use super::format::Label;
use super::map::{self, Place};
use super::notices::{Entries, Notice, Notices, Notify, Watch};
use frames::{Frame, Kind};
use pairs::{Arrival, Departure};
use rustix::event::{PollFd, PollFlags};
use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::Instant;
use stream::Stream;

/// A pair of processes: sender and receiver.
type Pair = (u32, u32);

/// Content of a watched folder.
#[derive(Clone, Copy)]
enum Watched {
    /// Files for this process of another host.
    Receiver(u32),
    /// Files from here to another host.
    Departures(Pair),
    /// Files that have come from another host.
    Arrivals(Pair),
}

/// The courier of one host.
pub struct Courier {
    folders: Folders,
    hosts: Vec<Place>,
    here: usize,
    notices: Notices,
    watches: HashMap<Watch, Watched>,
    departures: HashMap<Pair, Departure>,
    arrivals: HashMap<Pair, Arrival>,
    /// Processes of other hosts for which something new may lie here.
    look_at: HashSet<u32>,
    /// Notes that were sent: board, and subject.
    noted: HashSet<Pair>,
    /// Hosts for which there are files, or notes, since they were asked for last.
    wanted: HashSet<usize>,
    /// By host.
    streams: Vec<Option<Stream>>,
}

/// An error that concerns two processes only; reads and posts continue.
struct Broken {
    pair: Pair,
    note: Note,
}

impl Courier {
    /// Makes the folders of host `here` of a job with room for `room` processes, before any of them joins.
    ///
    /// # Errors
    /// The operating system's; `AlreadyExists` if the courier of another host has made them: hosts share the folder.
    pub fn new(folders: &Folders, hosts: &[Place], here: usize, processes: u32, notify: Notify) -> io::Result<Courier> {
        folders.make()?;
        map::claim(folders)?;
        map::write(folders, hosts, None)?;
        let notices = Notices::new(&folders.0, notify)?;
        let mut courier = Courier {
            folders: folders.clone(),
            hosts: hosts.to_vec(),
            here,
            notices,
            watches: HashMap::new(),
            departures: HashMap::new(),
            arrivals: HashMap::new(),
            look_at: HashSet::new(),
            noted: HashSet::new(),
            wanted: HashSet::new(),
            streams: hosts.iter().map(|_| None).collect(),
        };
        for (host, place) in hosts.iter().enumerate() {
            for rank in place.ranks.clone() {
                make_place(folders, rank, processes)?;
                courier.watch(host, rank)?;
            }
        }
        Ok(courier)
    }

    /// From now on a host has this process, too, for which there is a place here ([`make_place`]).
    ///
    /// # Errors
    /// The operating system's.
    pub fn add(&mut self, host: usize, rank: u32) -> io::Result<()> {
        self.hosts[host].later.push(rank);
        map::write(&self.folders, &self.hosts, None)?;
        self.look_at.extend((host != self.here).then_some(rank));
        self.watch(host, rank)
    }

    /// Watches for files here for a process of another host.
    fn watch(&mut self, host: usize, rank: u32) -> io::Result<()> {
        if host != self.here {
            let watch = self.notices.watch(&self.folders.of(rank), Entries::NewOrChanged)?;
            self.watches.extend(watch.map(|watch| (watch, Watched::Receiver(rank))));
        }
        Ok(())
    }

    /// Adds a connection to another host over these descriptors; `calls`: this side has made it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn connect(&mut self, host: usize, from: OwnedFd, to: OwnedFd, calls: bool) -> io::Result<()> {
        self.streams[host] = Some(Stream::new(from, to, calls)?);
        self.begin_again(host);
        Ok(())
    }

    /// Whether a host has answered over the connection that there is.
    pub fn reaches(&self, host: usize) -> bool {
        self.streams[host].as_ref().is_some_and(Stream::is_greeted)
    }

    /// Whether files are under way to a host, or may be since there is no connection.
    pub fn is_carrying(&self, host: usize) -> bool {
        let there = &self.hosts[host];
        !self.reaches(host) || self.departures.values().any(|d| there.has(d.to()) && d.is_under_way())
    }

    /// Returns the hosts, since the last call, to which there is no connection and for which something has come.
    pub fn take_wanted(&mut self) -> impl Iterator<Item = usize> + use<> {
        std::mem::take(&mut self.wanted).into_iter()
    }

    /// Returns the descriptors to sleep on.
    pub fn descriptors(&self) -> Vec<PollFd<'_>> {
        let streams = self.streams.iter().flatten().flat_map(Stream::descriptors);
        self.notices.descriptor().iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).chain(streams).collect()
    }

    /// When there is something to do although no descriptor is ready.
    pub fn due(&self) -> Option<Instant> {
        self.streams.iter().flatten().filter_map(Stream::due).min()
    }

    /// This process has been stopped for a while.
    pub fn forgive(&mut self) {
        self.streams.iter_mut().flatten().for_each(Stream::forgive);
    }

    /// Does what can be done without waiting. Gives the hosts whose connections are broken, and why; they are to be
    /// connected again.
    pub fn work(&mut self) -> Vec<(usize, String)> {
        let mut lost = Vec::new();
        self.take_notices();
        let now = Instant::now();
        for host in 0..self.streams.len() {
            // It is out while its frames are handled, which are answered over it.
            let Some(mut stream) = self.streams[host].take() else { continue };
            stream.flush();
            let mut answers = Vec::new();
            let read = stream.read(&mut |frame| self.handle(host, &frame, &mut answers));
            answers.iter().for_each(|label| stream.send(&taken(*label)));
            match read.and_then(|()| stream.keep_alive(now)) {
                Ok(()) => self.streams[host] = Some(stream),
                Err(why) => lost.push((host, why)),
            }
        }
        self.look();
        let found = self.send_files() | self.report_taken();
        self.notices.looked(found);
        // Files that cannot be read make notes.
        self.look();
        lost
    }

    /// A host cannot be reached for good: tells the processes here, and why.
    pub fn give_up(&mut self, host: usize, why: &str) {
        self.streams[host] = None;
        // The host is named without it, too.
        let _ = map::write(&self.folders, &self.hosts, Some((host, why)));
        for there in self.hosts[host].all() {
            for here in self.hosts[self.here].all() {
                let note =
                    Note { fault: Fault::Unreachable, errno: 0, label: Label { from: here, to: there, number: 0 } };
                let _ = board::post(&self.folders.board(here), there, Some(&note));
            }
        }
    }

    /// Sends once more to a host what it may not have got.
    fn begin_again(&mut self, host: usize) {
        let there = &self.hosts[host];
        self.departures.values_mut().filter(|d| there.has(d.to())).for_each(Departure::begin_again);
        self.noted.retain(|(of, _)| !there.has(*of));
        self.look_at.extend(there.all());
    }

    fn take_notices(&mut self) {
        let Courier { notices, watches, departures, arrivals, look_at, hosts, here, .. } = self;
        let taken = notices.take(&mut |notice| match notice {
            Notice::Changed(watch, name) => match watches.get(&watch) {
                Some(Watched::Receiver(rank)) => drop(look_at.insert(*rank)),
                Some(Watched::Departures(pair)) if name.ends_with(b".lock") => {
                    departures.get_mut(pair).into_iter().for_each(Departure::look);
                }
                Some(Watched::Arrivals(pair)) if name.ends_with(b".lock") => {
                    arrivals.get_mut(pair).into_iter().for_each(Arrival::look);
                }
                _ => {}
            },
            Notice::Gone(watch) => drop(watches.remove(&watch)),
            Notice::Anything => {
                let others = hosts.iter().enumerate().filter(|(host, _)| host != here);
                look_at.extend(others.flat_map(|(_, place)| place.all()));
                departures.values_mut().for_each(Departure::look);
                arrivals.values_mut().for_each(Arrival::look);
            }
        });
        // Only this program has its descriptors.
        debug_assert!(taken.is_ok(), "{taken:?}");
    }

    /// Finds new senders to other hosts, and notes for processes there.
    fn look(&mut self) {
        for to in std::mem::take(&mut self.look_at) {
            // A folder that was deleted holds nothing.
            for entry in fs::read_dir(self.folders.of(to)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(from) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
                let is_ours = self.hosts[self.here].has(from);
                if is_ours && !self.departures.contains_key(&(from, to)) {
                    let watch = self.notices.watch(&self.folders.pair(from, to), Entries::New);
                    let watch = watch.ok().flatten();
                    self.watches.extend(watch.map(|watch| (watch, Watched::Departures((from, to)))));
                    self.departures.insert((from, to), Departure::new(&self.folders, from, to));
                }
            }
            self.send_notes(to);
        }
    }

    fn send_notes(&mut self, of: u32) {
        let Some(host) = self.hosts.iter().position(|place| place.has(of)) else { return };
        for (about, note) in board::read(&self.folders.board(of)).unwrap_or_default() {
            let Some(stream) = &mut self.streams[host] else {
                self.wanted.insert(host);
                return;
            };
            if self.noted.insert((of, about)) {
                let label = Label { from: about, to: of, number: 0 };
                stream.send(&Frame { kind: Kind::Note, label, rest: &note.encode() });
            }
        }
    }

    /// Sends new files, as many as there is room for; true if there were any.
    fn send_files(&mut self) -> bool {
        let (mut any, mut broken) = (false, Vec::new());
        for (pair, departure) in &mut self.departures {
            let host = self.hosts.iter().position(|place| place.has(pair.1));
            let Some(host) = host else { continue };
            let Some(stream) = &mut self.streams[host] else {
                self.wanted.extend(departure.is_under_way().then_some(host));
                continue;
            };
            while stream.has_room() {
                match departure.next() {
                    Ok(None) => break,
                    Ok(Some((label, file))) => {
                        any = true;
                        stream.send(&Frame { kind: Kind::Message, label, rest: file });
                    }
                    Err(note) => {
                        broken.push(Broken { pair: *pair, note });
                        break;
                    }
                }
            }
        }
        broken.iter().for_each(|broken| self.part(broken));
        any
    }

    /// Reports which files were taken; true if any were.
    fn report_taken(&mut self) -> bool {
        let mut any = false;
        for (pair, arrival) in &mut self.arrivals {
            let host = self.hosts.iter().position(|place| place.has(pair.0));
            let Some(stream) = host.and_then(|host| self.streams[host].as_mut()) else { continue };
            while let Some(label) = arrival.next_taken() {
                any = true;
                stream.send(&taken(label));
            }
        }
        any
    }

    /// Tells both processes of a pair that their files do not get through: one by its board here, the other process by
    /// the copy of its board, which is sent.
    fn part(&mut self, broken: &Broken) {
        let (from, to) = broken.pair;
        for (of, about) in [(from, to), (to, from)] {
            let _ = board::post(&self.folders.board(of), about, Some(&broken.note));
        }
        let here = &self.hosts[self.here];
        self.look_at.extend([from, to].into_iter().filter(|rank| !here.has(*rank)));
    }

    /// Handles a frame from a host; `answers`: files that were taken before.
    fn handle(&mut self, host: usize, frame: &Frame<'_>, answers: &mut Vec<Label>) -> Result<(), String> {
        let Label { from, to, .. } = frame.label;
        let (there, here) = (&self.hosts[host], &self.hosts[self.here]);
        let fits = match frame.kind {
            Kind::Alive => true,
            Kind::Message => there.has(from) && here.has(to),
            Kind::Taken => here.has(from) && there.has(to),
            Kind::Note => here.has(to),
        };
        if !fits {
            return Err(format!("it has sent something about processes {from} and {to}"));
        }
        match frame.kind {
            Kind::Alive => {}
            Kind::Message => return self.deliver(frame, answers),
            Kind::Taken => {
                if let Some(departure) = self.departures.get_mut(&(from, to)) {
                    departure.taken(frame.label.number)?;
                }
            }
            Kind::Note => {
                if let Some(note) = frame.rest.try_into().ok().and_then(|bytes| Note::decode(&bytes)) {
                    let _ = board::post(&self.folders.board(to), from, Some(&note));
                }
            }
        }
        Ok(())
    }

    /// Puts a file where its receiver looks.
    fn deliver(&mut self, frame: &Frame<'_>, answers: &mut Vec<Label>) -> Result<(), String> {
        let pair = (frame.label.from, frame.label.to);
        if !self.arrivals.contains_key(&pair) {
            let folder = self.folders.pair(pair.0, pair.1);
            // An error here shows when the file is written.
            let _ = make_folder(&folder);
            let watch = self.notices.watch(&folder, Entries::Gone).ok().flatten();
            self.watches.extend(watch.map(|watch| (watch, Watched::Arrivals(pair))));
            self.arrivals.insert(pair, Arrival::new(&self.folders, pair.0, pair.1));
        }
        let arrival = self.arrivals.get_mut(&pair).expect("it was made above");
        match arrival.deliver(frame.label.number, frame.rest) {
            Ok(was_taken) => answers.extend(was_taken.then_some(frame.label)),
            Err(pairs::Fault::OutOfOrder) => return Err("it has sent files in the wrong order".to_owned()),
            Err(pairs::Fault::Unwritten(note)) => self.part(&Broken { pair, note }),
        }
        Ok(())
    }
}

/// Makes the folder and the board of a process of any host, in a job with room for so many.
///
/// # Errors
/// The operating system's.
pub fn make_place(folders: &Folders, rank: u32, processes: u32) -> io::Result<()> {
    make_folder(&folders.of(rank))?;
    board::make(&folders.board(rank), processes)
}

fn taken(label: Label) -> Frame<'static> {
    Frame { kind: Kind::Taken, label, rest: &[] }
}

fn make_folder(path: &std::path::Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
