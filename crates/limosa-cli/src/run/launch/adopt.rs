//! A launcher for a job that was begun without one: a program that runs by itself starts it when it first spawns
//! processes. It takes the job over, with the program as rank 0, and ends after it.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use limosa_job::{Board, ENV_FD, ENV_PID};

use super::{Job, refused};
use crate::procfs;
use crate::run::Settings;
use crate::run::guardian::Guardian;
use crate::run::options::{Stdin, Unusable};
use crate::run::placement::Placement;
use crate::run::plan::{App, Plan};
use crate::run::rank::Rank;

/// Carries out the whole job. Returns the exit code, which is not asked for.
pub fn adopt(settings: &Settings) -> Result<u8, Unusable> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let (Some(fd), Some(pid)) = (number(ENV_FD), number(ENV_PID)) else {
        return Err(refused("--adopt", &"only a program that spawns processes starts a launcher like this"));
    };
    // SAFETY: only looked at; if the number is not open that fails.
    let inherited = unsafe { BorrowedFd::borrow_raw(fd as i32) };
    let board = Board::open(inherited).map_err(|error| refused("cannot find the memory of the job", &error))?;
    // SAFETY: it is the job's memory, which the program has left open for this process alone.
    let segment = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let guardian =
        Guardian::start(&settings.config).map_err(|error| refused("cannot start the guardian process", &error))?;
    board.set_launcher(std::process::id());
    let name = procfs::name(pid).unwrap_or_else(|| "the program".into());
    let app = App {
        program: name.clone().into(),
        name: name.into(),
        args: Vec::new(),
        env: Vec::new(),
        clear_env: false,
        wdir: None,
    };
    let plan = Plan { apps: vec![app], ranks: vec![0], stdin: Stdin::None, placement: Placement::default() };
    let mut job = Job::new(&plan, settings, guardian, segment, board)?;
    let program: &Arc<App> = &job.apps[0];
    let adopted = Rank::adopt(program, pid).map_err(|error| refused("cannot watch the program", &error))?;
    job.ranks.push(adopted);
    job.start_threads().map_err(|error| refused("cannot start a thread", &error))?;
    Ok(job.run())
}
