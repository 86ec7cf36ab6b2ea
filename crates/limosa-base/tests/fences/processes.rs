//! Tests that processes agree on one kind of fence, even with one that may not use `membarrier`.
//!
//! Each member of a group is a process of its own: this program again, controlled through its standard input. In one of
//! them a filter for system calls makes `membarrier` fail, as in a container that was started differently.

use limosa_base::fence::{self, Members, Membership, Word};
use limosa_base::segment::{self, Foreign, PAGE, Shared};
use limosa_base::sync::{AtomicU64, Ordering};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

const MEMBERS: u32 = 3;
/// Rounds of the handshake.
const ROUNDS: u64 = 3000;

/// State that the members share.
#[repr(C)]
struct Common {
    words: [Word; MEMBERS as usize],
    sides: [Side; 2],
    clutter: [Line; 8],
}

/// One side of a handshake. In each round it stores the round's number in `mine` and loads the word of its partner.
#[repr(C, align(128))]
struct Side {
    mine: AtomicU64,
    ready: Line,
    done: Line,
    /// The last round in which it did not see its partner's store.
    missed: Line,
}

#[repr(C, align(128))]
struct Line(AtomicU64);

// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for Common {}

struct Group(Shared<Common>);

impl Members for Group {
    fn word(&self, member: u32) -> &Word {
        &self.0.words[member as usize]
    }
}

// ---- a member -------------------------------------------------------------------------------------------------------

/// Makes `membarrier` fail in this process from now on.
fn refuse_membarrier() {
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        // The number of the system call is the first word of the filter's input.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_membarrier as u32)
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter is valid during the call, and allows all other calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(done, "a filter for system calls: {}", std::io::Error::last_os_error());
}

fn await_round(line: &Line, round: u64) {
    let mut spins = 0u32;
    while line.0.load(Ordering::Acquire) < round {
        spins += 1;
        if spins.is_multiple_of(200) {
            std::thread::yield_now();
        }
    }
}

/// Plays one side of the handshake. Returns the number of rounds in which neither side saw its partner's store.
fn shake_hands(common: &Common, side: usize, fence: fn()) -> u64 {
    let (own, other) = (&common.sides[side], &common.sides[1 - side]);
    let mut failures = 0;
    for round in 1..=ROUNDS {
        own.ready.0.store(round, Ordering::Release);
        await_round(&other.ready, round);
        // These lines are in the partner's cache. The store below queues behind their stores, unless the fence makes it
        // visible.
        common.clutter.iter().for_each(|line| line.0.store(round, Ordering::Relaxed));
        own.mine.store(round, Ordering::Relaxed);
        fence();
        if other.mine.load(Ordering::Relaxed) < round {
            own.missed.0.store(round, Ordering::Relaxed);
        }
        own.done.0.store(round, Ordering::Release);
        await_round(&other.done, round);
        failures += u64::from([own, other].iter().all(|side| side.missed.0.load(Ordering::Relaxed) == round));
    }
    failures
}

fn member(fd: i32, me: u32) {
    // SAFETY: the parent keeps this descriptor open for this process.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let group = Arc::new(Group(Shared::new(file, 0, PAGE).expect("map")));
    let further = Arc::new(Group(Shared::new(file, PAGE as u64, PAGE).expect("map")));
    let mut memberships: Vec<Membership> = Vec::new();
    for line in std::io::stdin().lines() {
        let answer = match line.expect("a command").as_str() {
            "refuse" => {
                refuse_membarrier();
                String::from("refused")
            }
            "join" => {
                memberships.push(fence::join(group.clone(), me, MEMBERS));
                String::from("joined")
            }
            "join further" => {
                memberships.push(fence::join(further.clone(), me, MEMBERS));
                String::from("joined")
            }
            "leave" => {
                drop(memberships.pop());
                String::from("left")
            }
            "kind" => {
                (0..1000).for_each(|_| fence::light());
                String::from(if fence::are_asymmetric() { "asymmetric" } else { "full" })
            }
            "light" => shake_hands(&group.0, 0, fence::light).to_string(),
            "heavy" => shake_hands(&group.0, 1, fence::heavy).to_string(),
            other => panic!("no such command: {other}"),
        };
        println!("{answer}");
    }
}

// ---- the tests ------------------------------------------------------------------------------------------------------

struct Process {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(file: &OwnedFd, me: u32) -> Process {
        // SAFETY: clears the close-on-exec flag of our own descriptor.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .env("LIMOSA_TEST_MEMBER", format!("{} {me}", file.as_raw_fd()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (commands, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("a pipe")));
        Process { child, commands, answers }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands.as_mut().expect("a pipe"), "{command}").expect("the member listens");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the member answers");
        line.trim().to_owned()
    }

    fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.commands = None;
        let status = self.child.wait().expect("our child");
        assert!(status.success() || std::thread::panicking(), "a member ended with {status}");
    }
}

fn processes() -> Vec<Process> {
    let file = segment::create(c"limosa-test", 2 * PAGE as u64).expect("a memfd");
    segment::reserve(file.as_fd(), 0, 2 * PAGE).expect("memory");
    (0..MEMBERS).map(|me| Process::start(&file, me)).collect()
}

/// Runs the handshake: the first process plays the light side, the second the heavy one.
fn failed_handshakes(all: &mut [Process]) -> String {
    all[0].tell("light");
    all[1].tell("heavy");
    let answers = [all[0].answer(), all[1].answer()];
    assert_eq!(answers[0], answers[1]);
    answers[0].clone()
}

fn kinds(all: &mut [Process]) -> Vec<String> {
    all.iter_mut().map(|process| process.ask("kind")).collect()
}

fn fences_become_light_once_all_have_joined() {
    let mut all = processes();
    all[0].ask("join");
    all[1].ask("join");
    assert_eq!(kinds(&mut all[..2]), ["full", "full"], "the third may yet turn out to be unable");
    assert_eq!(failed_handshakes(&mut all), "0");
    all[2].ask("join");
    assert_eq!(kinds(&mut all), ["asymmetric"; 3]);
}

fn light_and_heavy_fences_go_together() {
    let mut all = processes();
    all.iter_mut().for_each(|process| assert_eq!(process.ask("join"), "joined"));
    assert_eq!(kinds(&mut all), ["asymmetric"; 3]);
    assert_eq!(failed_handshakes(&mut all), "0");
}

fn a_process_that_may_not_use_membarrier_keeps_all_to_full_fences() {
    for unable in [0, 1, 2] {
        let mut all = processes();
        all[unable].ask("refuse");
        let others_first = (0..MEMBERS as usize).filter(|member| *member != unable).chain([unable]);
        others_first.for_each(|member| assert_eq!(all[member].ask("join"), "joined"));
        assert_eq!(kinds(&mut all), ["full"; 3]);
        assert_eq!(failed_handshakes(&mut all), "0");
    }
}

fn who_joins_a_further_group_waits_for_its_members_too() {
    let mut all = processes();
    all.iter_mut().for_each(|process| assert_eq!(process.ask("join"), "joined"));
    assert_eq!(kinds(&mut all), ["asymmetric"; 3]);
    all[0].ask("join further");
    assert_eq!(kinds(&mut all), ["full", "asymmetric", "asymmetric"]);
    assert_eq!(failed_handshakes(&mut all), "0");
    all[0].ask("leave");
    assert_eq!(kinds(&mut all), ["asymmetric"; 3]);
}

pub fn main() {
    if let Ok(arguments) = std::env::var("LIMOSA_TEST_MEMBER") {
        let (fd, me) = arguments.split_once(' ').expect("two numbers");
        return member(fd.parse().expect("a number"), me.parse().expect("a number"));
    }
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let tests: [(&str, fn()); 4] = [
        ("fences_become_light_once_all_have_joined", fences_become_light_once_all_have_joined),
        ("light_and_heavy_fences_go_together", light_and_heavy_fences_go_together),
        ("who_joins_a_further_group_waits_for_its_members_too", who_joins_a_further_group_waits_for_its_members_too),
        (
            "a_process_that_may_not_use_membarrier_keeps_all_to_full_fences",
            a_process_that_may_not_use_membarrier_keeps_all_to_full_fences,
        ),
    ];
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&wanted)) {
        test();
        println!("test {name} ... ok");
    }
}
