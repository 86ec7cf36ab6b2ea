//! A rank for tests: it attaches to its job and plays the part that its arguments describe, without any message
//! passing.
//!
//! Each argument is a step, `name` or `name:detail:detail`; with `R=` before it, only rank R takes it.

use std::io::Write;
use std::time::Duration;

use limosa_job::{Blocked, Job, Kind, Peer, Seat, Wait};

/// Waits until there is a file of this name.
fn wait_for(file: &str) {
    while !std::path::Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn main() {
    let job = Job::attach().unwrap_or_else(|error| {
        eprintln!("cannot attach: {error}");
        std::process::exit(99);
    });
    let seat = job.seat();
    seat.thread();
    for argument in std::env::args().skip(1) {
        let step = match argument.split_once('=') {
            Some((rank, _)) if rank.parse() != Ok(job.rank()) => continue,
            Some((_, step)) => step,
            None => argument.as_str(),
        };
        take(job, seat, step);
    }
}

/// Takes one step.
fn take(job: &'static Job, seat: Seat<'static>, step: &str) {
    let parts: Vec<&str> = step.split(':').collect();
    let detail = |i: usize| parts.get(i).copied().unwrap_or("");
    let number = |i: usize| detail(i).parse::<f64>().unwrap_or(0.0);
    let pause = |i: usize| {
        std::thread::sleep(if detail(i).is_empty() {
            Duration::from_secs(600)
        } else {
            Duration::from_secs_f64(number(i))
        })
    };
    let peer = match detail(1) {
        "any" => Peer::Any,
        "all" => Peer::Members,
        rank => rank.parse().map_or(Peer::Any, |rank| Peer::Rank { rank, world: rank }),
    };
    let members = job.size();
    let wait =
        |kind, tag| Wait { kind, peer, tag, context: 2, comm: "MPI_COMM_WORLD", members, series: None, started: "" };
    let block = |call: &str, wait: Wait<'_>, seconds: usize| {
        let asleep = seat.blocked(&Blocked { call, waits: &[wait], more: 0, all: true, lying: &[] });
        pause(seconds);
        drop(asleep);
    };
    match parts[0] {
        "init" => seat.running(),
        "finalize" => seat.finalized(),
        "sleep" => pause(1),
        "until" => wait_for(detail(1)),
        "exit" => std::process::exit(number(1) as i32),
        "abort" => job.abort(number(1) as i32, detail(2)),
        "segv" => crash(),
        "print" => println!("{}", detail(1)),
        "prompt" => {
            print!("{}", detail(1));
            let _ = std::io::stdout().flush();
        }
        "place" => println!("{} of {} app {} launched {}", job.rank(), job.size(), job.appnum(), job.launched()),
        "recv" => block("MPI_Recv", wait(Kind::Receive, Some(number(2) as i32)), 3),
        "send" => block("MPI_Send", wait(Kind::Send, Some(number(2) as i32)), 3),
        "barrier" => block("MPI_Barrier", wait(Kind::Collective, None), 2),
        "woken-in-vain" => seat.woken_for_nothing(),
        "compute" => loop {
            std::hint::spin_loop();
        },
        "thread" => {
            // Another thread that uses the library and then computes.
            std::thread::spawn(move || {
                seat.thread();
                std::thread::sleep(Duration::from_secs(600));
            });
            std::thread::sleep(Duration::from_millis(50));
        }
        "child" => run_child(),
        other => panic!("there is no step `{other}`"),
    }
}

/// Ends the process by SIGSEGV.
fn crash() {
    // SAFETY: this is meant to end the process. Rust's own handler, which looks for stack overflows, would survive it.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
}

/// Runs a program that this rank starts, and that happens to use MPI itself.
fn run_child() {
    let exe = std::env::current_exe().expect("this program has a path");
    let status = std::process::Command::new(exe).arg("place").status().expect("the child starts");
    assert!(status.success());
}
