//! Three connected processes on each device.

use limosa_base::doorbell::DoorbellState;
use limosa_base::pool::POOL_BYTES;
use limosa_base::process::Identity;
use limosa_base::segment::{self, PAGE};
use limosa_device::fabric::packet::Card;
use limosa_device::fabric::{Cards, FabricDevice, Library, Wish};
use limosa_device::files::{FileDevice, FileOptions, Folders, Notify};
use limosa_device::messages::MessagesDevice;
use limosa_device::shm::{DoorbellRef, Seats, ShmDevice};
use limosa_device::{Address, Data, Device, DeviceError, Meta, Sent, Urgency};
use limosa_sim::{Conditions, Network, Random, socket_device, socket_pairs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SIZE: u32 = 3;
/// Longer than a network of one machine ever takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process: its device, and its doorbell.
pub struct Member {
    pub device: Box<dyn Device>,
    pub bell: DoorbellRef,
    /// Longest time that a packet may need: none where processes share memory.
    pub patience: Duration,
}

impl Member {
    fn at_once(bell: DoorbellRef, device: Box<dyn Device>) -> Member {
        Member { device, bell, patience: Duration::ZERO }
    }

    /// True if a thread that sleeps on the doorbell, or on the descriptor, is woken.
    pub fn is_woken(&mut self) -> bool {
        self.wakes_within(Duration::ZERO)
    }

    /// As [`Member::is_woken`], for events that the device must notice: a network may take its time for them.
    pub fn wakes(&mut self) -> bool {
        self.wakes_within(self.patience)
    }

    fn wakes_within(&mut self, patience: Duration) -> bool {
        // Acts as a thread of the engine.
        if self.device.death_watch().is_some_and(|watch| watch.look()) {
            self.device.notice_deaths();
            self.bell.ring(true);
        }
        self.device.rest();
        match self.device.wait_descriptor() {
            None => self.bell.is(DoorbellState::Awake),
            Some(descriptor) => {
                let time = Timespec { tv_sec: patience.as_secs() as _, tv_nsec: 0 };
                poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&time)).expect("poll") > 0
            }
        }
    }
}

pub struct Fabric {
    pub members: Vec<Member>,
    /// Makes the same fabric again.
    pub again: fn() -> Fabric,
    kill: fn(&mut Fabric, Address),
    corrupt: fn(&Fabric, &mut Random),
    network: Option<Network>,
    file: Option<(File, u64)>,
    raw: Vec<Option<OwnedFd>>,
    pub folder: Option<tempfile::TempDir>,
    intruder: Option<Mutex<FabricDevice>>,
}

impl Fabric {
    /// Kills a process.
    pub fn kill(&mut self, who: Address) {
        (self.kill)(self, who);
    }

    /// Has a process end, without a word from anyone to the others.
    pub fn end(&mut self, who: usize) {
        self.members[who].device = Box::new(DeadProcess);
    }

    /// Damages packets on their way to process 1.
    pub fn corrupt(&self, seed: u64) {
        (self.corrupt)(self, &mut Random::new(seed));
    }

    /// Connects all members: a first packet may have to wait for that.
    fn connect(&mut self) {
        for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let mut is_sent = false;
            let mut has_come = false;
            while !has_come {
                let empty = Data::Bytes(&[]);
                is_sent = is_sent
                    || self.members[from].device.send(to, &Meta::default(), empty, Urgency::Normal).expect("send")
                        == Sent::Done;
                for (i, member) in self.members.iter_mut().enumerate() {
                    member.device.poll(&mut |_, _, _| has_come |= i == to as usize).expect("poll");
                }
            }
        }
    }

    /// Connects the intruder with process 1, which notices its packets, or not.
    fn connect_intruder(&mut self, is_noticed: bool) {
        let mut intruder = self.intruder.as_ref().expect("it was made with one").lock().expect("no panic");
        let mut is_sent = false;
        loop {
            let empty = Data::Bytes(&[]);
            is_sent =
                is_sent || intruder.send(1, &Meta::default(), empty, Urgency::Normal).expect("send") == Sent::Done;
            let _ = intruder.poll(&mut |_, _, _| {});
            if self.members[1].device.poll(&mut |_, _, _| {}).is_err() || (is_sent && !is_noticed) {
                return;
            }
        }
    }

    fn of(again: fn() -> Fabric, members: Vec<Member>) -> Fabric {
        Fabric {
            members,
            again,
            kill: |_, _| panic!("this device does not notice deaths"),
            corrupt: |_, _| panic!("no bytes travel on this device"),
            network: None,
            file: None,
            raw: Vec::new(),
            folder: None,
            intruder: None,
        }
    }
}

fn joined(file: &OwnedFd) -> Vec<ShmDevice> {
    (0..SIZE)
        .map(|rank| ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, SIZE), true).expect("joining"))
        .collect()
}

fn file() -> OwnedFd {
    segment::create(c"limosa-test", PAGE as u64).expect("a memfd")
}

/// Has another process of this host be the member, and kills it.
fn kill_process(fabric: &mut Fabric, who: Address) {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a process");
    let watch = fabric.members[who as usize].device.death_watch().expect("processes of a host have one");
    watch.stand_for(Identity::of(child.id()));
    child.kill().expect("our child");
    child.wait().expect("our child");
}

/// Changes some of the bytes that are on the lane from 0 to 1 of the devices at `offset`.
fn damage_lane(fabric: &Fabric, random: &mut Random) {
    const LANE_BYTES: u64 = 64 * 1024;
    let (file, offset) = fabric.file.as_ref().expect("it was made with one");
    let size = u64::from(SIZE);
    let lanes_and_pools = (size * size * LANE_BYTES + size * POOL_BYTES as u64).next_multiple_of(PAGE as u64);
    let lane = offset + ShmDevice::bytes_without_areas(SIZE) - lanes_and_pools + size * LANE_BYTES;
    let mut bytes = vec![0; LANE_BYTES as usize];
    file.read_exact_at(&mut bytes, lane).expect("the lane");
    let written: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] != 0).collect();
    assert!(!written.is_empty(), "this is not the lane");
    for _ in 0..3 {
        let at = random.of(&written);
        file.write_all_at(&[random.number() as u8], lane + at as u64).expect("the lane");
    }
}

pub fn shm() -> Fabric {
    let file = file();
    let member = |device: ShmDevice| Member::at_once(device.doorbell(), Box::new(device));
    let members = joined(&file).into_iter().map(member).collect();
    Fabric {
        corrupt: damage_lane,
        kill: kill_process,
        file: Some((file.into(), PAGE as u64)),
        ..Fabric::of(shm, members)
    }
}

pub fn messages() -> Fabric {
    let file = file();
    let offset = (PAGE as u64 + ShmDevice::bytes_without_areas(SIZE)).next_multiple_of(PAGE as u64);
    let member = |shm: ShmDevice| {
        let packets = shm.join_beside(offset).expect("joining");
        Member::at_once(shm.doorbell(), Box::new(MessagesDevice::new(packets)))
    };
    let members = joined(&file).into_iter().map(member).collect();
    Fabric {
        corrupt: damage_lane,
        kill: kill_process,
        file: Some((file.into(), offset)),
        ..Fabric::of(messages, members)
    }
}

/// Processes that exchange files and learn of them in this way.
fn files_noticed_by(notify: Notify, again: fn() -> Fabric) -> Fabric {
    let segment = file();
    let folder = tempfile::tempdir().expect("a folder");
    let folders = Folders::below(folder.path());
    let options = FileOptions { notify, keep: false };
    let member = |host: ShmDevice| {
        let bell = host.doorbell();
        let device = Box::new(FileDevice::join(&folders, host, options).expect("joining"));
        // Without notices folders are listed once per millisecond.
        let patience = if notify == Notify::Clock { PATIENCE } else { Duration::ZERO };
        Member { device, bell, patience }
    };
    let members = joined(&segment).into_iter().map(member).collect();
    Fabric { corrupt: damage_message, kill: kill_process, folder: Some(folder), ..Fabric::of(again, members) }
}

pub fn files() -> Fabric {
    files_noticed_by(Notify::Inotify, files)
}

pub fn files_by_clock() -> Fabric {
    files_noticed_by(Notify::Clock, files_by_clock)
}

/// Changes some of the bytes of a message from 0 to 1.
fn damage_message(fabric: &Fabric, random: &mut Random) {
    let folder = fabric.folder.as_ref().expect("it was made with one").path().join("1/0");
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    // After an error nothing comes any more.
    let Some(message) = entries.filter(|path| path.extension() == Some("msg".as_ref())).min() else { return };
    let mut bytes = std::fs::read(&message).expect("the message");
    for _ in 0..3 {
        let at = random.below(bytes.len());
        bytes[at] = random.number() as u8;
    }
    std::fs::write(&message, bytes).expect("the message");
}

pub fn simulated() -> Fabric {
    let network = Network::new(SIZE, Conditions::default(), 1);
    let members = (0..SIZE).map(|me| Member::at_once(network.doorbell(me), Box::new(network.device(me)))).collect();
    let kill = |fabric: &mut Fabric, who| {
        fabric.network.as_ref().expect("it was made with one").kill(who);
    };
    Fabric { kill, network: Some(network), ..Fabric::of(simulated, members) }
}

pub fn sockets() -> Fabric {
    let mut fds = socket_pairs(SIZE + 1).expect("sockets");
    // The last process belongs to no member: it writes what no device does.
    let raw = fds.pop().unwrap_or_default();
    let member = |fds| {
        let device = socket_device(fds).expect("a device");
        Member::at_once(DoorbellRef::private(), Box::new(device))
    };
    let members = fds.into_iter().map(member).collect();
    let kill = |fabric: &mut Fabric, who: Address| {
        fabric.members[who as usize].device = Box::new(DeadProcess);
    };
    let corrupt = |fabric: &Fabric, random: &mut Random| {
        let bytes = vec![1; 1 + random.below(16)];
        let raw = fabric.raw[1].as_ref().expect("it was made with one");
        rustix::net::send(raw, &bytes, rustix::net::SendFlags::empty()).expect("send");
    };
    Fabric { kill, corrupt, raw, ..Fabric::of(sockets, members) }
}

/// The cards of processes that are reached by libfabric, and the processes that have left.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<[Option<Vec<u8>>; SIZE as usize]>>, Arc<Mutex<Vec<Address>>>);

/// One process's view of it.
struct Place {
    board: Board,
    /// `None`: a process that only reads.
    me: Option<Address>,
}

impl Cards for Place {
    fn publish(&self, card: &[u8]) {
        if let Some(me) = self.me {
            self.board.0.lock().expect("no panic")[me as usize] = Some(card.to_vec());
        }
    }

    fn card(&self, of: Address) -> Option<Vec<u8>> {
        self.board.0.lock().expect("no panic")[of as usize].clone()
    }

    fn has_left(&self, who: Address) -> bool {
        self.board.1.lock().expect("no panic").contains(&who)
    }
}

/// By libfabric over this machine's own network.
pub fn network() -> Fabric {
    let (mut fabric, _) = unconnected(None, network);
    fabric.connect();
    fabric.connect_intruder(true);
    fabric
}

/// As [`network`], by the provider for TCP without another layer on top, whatever is chosen otherwise.
pub fn network_alone() -> Fabric {
    let offers = Library::load(None).and_then(|library| library.offers()).expect("libfabric");
    let alone = ["tcp", "net"].into_iter().find(|name| offers.iter().any(|offer| offer.provider == *name));
    let (mut fabric, _) = unconnected(Some(alone.expect("every libfabric has TCP")), network_alone);
    fabric.connect();
    fabric.connect_intruder(true);
    fabric
}

/// As [`network`], but no processes are connected, and process 2 announces a provider that the others do not use.
pub fn network_with_a_misfit() -> Fabric {
    let (fabric, board) = unconnected(None, network_with_a_misfit);
    let mut cards = board.0.lock().expect("no panic");
    let card = cards[2].as_deref().and_then(Card::read).expect("its card");
    cards[2] = Card { provider: "pigeons".into(), ..card }.write();
    drop(cards);
    fabric
}

/// As [`network`], but no process is connected with process 2, which has left.
pub fn network_that_one_has_left() -> Fabric {
    let (mut fabric, board) = unconnected(None, network_that_one_has_left);
    fabric.members[2].device = Box::new(DeadProcess);
    board.1.lock().expect("no panic").push(2);
    fabric
}

/// As [`network`], but the intruder does not know the token of process 1.
pub fn network_with_a_stranger() -> Fabric {
    let (mut fabric, board) = unconnected(None, network_with_a_stranger);
    fabric.connect();
    let mut cards = board.0.lock().expect("no panic");
    let card = cards[1].as_deref().and_then(Card::read).expect("its card");
    cards[1] = Card { token: card.token ^ 1, ..card }.write();
    drop(cards);
    fabric.connect_intruder(false);
    fabric
}

fn unconnected(provider: Option<&str>, again: fn() -> Fabric) -> (Fabric, Board) {
    let (board, segment) = (Board::default(), file());
    let wish = Wish { is_local: true, provider: provider.map(Into::into), ..Wish::default() };
    let join = |host: ShmDevice, me| {
        let cards = Box::new(Place { board: board.clone(), me });
        FabricDevice::join(&wish, cards, host).expect("libfabric is needed for this test (`apt install libfabric1`)")
    };
    let members = joined(&segment)
        .into_iter()
        .map(|host| {
            let (bell, me) = (host.doorbell(), host.rank());
            Member { bell, patience: PATIENCE, device: Box::new(join(host, Some(me))) }
        })
        .collect();
    // It knows all tokens, and has a number of no process.
    let segment = file();
    let fourth = ShmDevice::join(segment.as_fd(), PAGE as u64, &Seats::all(SIZE, SIZE + 1), true).expect("joining");
    let intruder = join(fourth, None);
    let corrupt = |fabric: &Fabric, random: &mut Random| {
        let mut intruder = fabric.intruder.as_ref().expect("it was made with one").lock().expect("no panic");
        let bytes = vec![1; random.below(100)];
        while intruder.send(1, &Meta::default(), Data::Bytes(&bytes), Urgency::Normal).expect("send") == Sent::NoRoom {
            let _ = intruder.poll(&mut |_, _, _| {});
        }
    };
    let intruder = Some(Mutex::new(intruder));
    (Fabric { corrupt, kill: kill_process, intruder, ..Fabric::of(again, members) }, board)
}

/// The device of a dead process.
struct DeadProcess;

impl Device for DeadProcess {
    fn name(&self) -> &'static str {
        "dead"
    }

    fn max_data(&self) -> usize {
        0
    }

    fn send(&mut self, _: Address, _: &Meta, _: Data<'_>, _: Urgency) -> Result<Sent, DeviceError> {
        Ok(Sent::NoRoom)
    }

    fn want_room(&mut self, _: Address) {}

    fn poll(&mut self, _: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        Ok(false)
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
