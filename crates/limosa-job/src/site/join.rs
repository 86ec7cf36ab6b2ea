//! How processes that another launcher has started become ranks of one job.
//!
//! 1. Each process leaves a notice that says on which host it is; rank 0's also has the job's id.
//! 2. Ranks that follow each other on one host are a *block*. The first of a block makes the block's segment, as
//!    Limosa's launcher or agent would, and leaves a notice that says where it is; the others open it.
//! 3. No process leaves before all have opened it.
//!
//! A host whose ranks do not follow each other has several blocks, which treat each other as if on different hosts.

use std::fmt::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use super::Manager;
use crate::board::{Board, Shape};
use crate::card::CARD_BYTES;
use crate::error::JobError;
use crate::hosts::HostPlan;
use crate::launch::open_memory_of;
use crate::layout::VERSION;
use crate::sys::random_id;

/// A process, as its notice describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Notice {
    version: u32,
    appnum: u32,
    /// The job's id, if this is rank 0's choice.
    id: u64,
    /// What tells hosts apart: processes with the same can open each other's memory.
    host: String,
    /// The host's name.
    name: String,
}

impl Notice {
    fn mine(appnum: u32) -> Result<Notice, JobError> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let names = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // Containers of one machine have the same boot id, but cannot see each other's processes.
        let host = format!("{}.{}.{name}", read("/proc/sys/kernel/random/boot_id"), names.display());
        Ok(Notice { version: VERSION, appnum, id: random_id()?, host: plain(&host, 200), name: plain(&name, 48) })
    }

    fn write(&self) -> String {
        format!("{},{},{:016x},{},{}", self.version, self.appnum, self.id, self.host, self.name)
    }

    fn read(text: &str) -> Option<Notice> {
        let mut parts = text.split(',');
        let notice = Notice {
            version: parts.next()?.parse().ok()?,
            appnum: parts.next()?.parse().ok()?,
            id: u64::from_str_radix(parts.next()?, 16).ok()?,
            host: parts.next()?.to_owned(),
            name: parts.next()?.to_owned(),
        };
        parts.next().is_none().then_some(notice)
    }
}

/// A text of which only letters, digits, points and dashes remain.
fn plain(text: &str, longest: usize) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).take(longest).collect()
}

/// The blocks of ranks that follow each other on one host.
fn blocks(notices: &[Notice]) -> Vec<HostPlan> {
    let mut blocks: Vec<HostPlan> = Vec::new();
    for (rank, notice) in (0..).zip(notices) {
        match blocks.last_mut() {
            Some(block) if notices[block.ranks.start as usize].host == notice.host => block.ranks.end = rank + 1,
            _ => blocks.push(HostPlan { name: notice.name.clone(), ranks: rank..rank + 1 }),
        }
    }
    blocks
}

/// Joins the job of those that were started together with this process: the segment of its block.
pub(crate) fn join(manager: &mut dyn Manager) -> Result<(OwnedFd, Board), JobError> {
    let name = manager.name();
    let failed = |what: String| {
        JobError::Foreign(format!("it was started by {name}, and cannot join the other processes: {what}"))
    };
    let (rank, size) = manager.place();
    let appnum = manager.appnum();
    let mine = Notice::mine(appnum)?;
    manager.put("host", &mine.write()).map_err(failed)?;
    manager.fence().map_err(failed)?;
    let notices = (0..size).map(|of| {
        let text = manager.get(of, "host")?;
        Notice::read(&text).ok_or_else(|| format!("process {of} is no process of Limosa, or of another version"))
    });
    let notices = notices.collect::<Result<Vec<Notice>, String>>().map_err(failed)?;
    if let Some(other) = notices.iter().position(|notice| notice.version != VERSION) {
        return Err(failed(format!("process {other} uses another version of Limosa")));
    }
    let blocks = blocks(&notices);
    // INVARIANT: the blocks cover all ranks, and the launcher's `place` has a rank below the size.
    let here = blocks.iter().position(|block| block.ranks.contains(&rank)).expect("each rank is in a block");
    let leader = blocks[here].ranks.start;
    let id = notices[0].id.max(1);
    let made = if rank == leader { Some(make(id, &notices, here as u32, &blocks)?) } else { None };
    if let Some((segment, _)) = &made {
        let place = format!("{},{}", std::process::id(), segment.as_raw_fd());
        manager.put("memory", &place).map_err(failed)?;
    }
    manager.fence().map_err(failed)?;
    let joined = match made {
        Some(made) => made,
        None => {
            let place = manager.get(leader, "memory").map_err(failed)?;
            let place = place.split_once(',').and_then(|(pid, fd)| Some((pid.parse().ok()?, fd.parse().ok()?)));
            let (pid, fd) = place.ok_or_else(|| failed("the notice about shared memory makes no sense".into()))?;
            open_memory_of(pid, fd, id).map_err(|error| failed(format!("{error}")))?
        }
    };
    manager.fence().map_err(failed)?;
    Ok(joined)
}

/// Makes the segment of a block.
fn make(id: u64, notices: &[Notice], here: u32, blocks: &[HostPlan]) -> Result<(OwnedFd, Board), JobError> {
    let appnums: Vec<u32> = notices.iter().map(|notice| notice.appnum).collect();
    let universe = appnums.len() as u32;
    let shape = Shape { appnums, spare: 0, universe, launcher_pid: std::process::id() };
    let (segment, board) = Board::create_as(&shape, id)?;
    if blocks.len() > 1 {
        board.set_hosts(here, blocks);
    }
    Ok((segment, board))
}

/// Sends this rank's card to the other hosts, and takes those of their ranks for all ranks of this one. Collective.
pub(crate) fn exchange_cards(manager: &mut dyn Manager, board: &Board) -> Result<(), String> {
    let (rank, size) = manager.place();
    let card = board.seat(rank).card().unwrap_or_default();
    manager.put("card", &hexadecimal(&card))?;
    manager.fence()?;
    if board.seat(rank).host_first() != rank {
        return Ok(());
    }
    for other in (0..size).filter(|other| !board.is_here(*other)) {
        let text = manager.get(other, "card")?;
        let card = bytes(&text).ok_or_else(|| format!("the card of process {other} makes no sense"))?;
        if !card.is_empty() {
            board.seat(other).publish_card(&card);
        }
    }
    Ok(())
}

/// Two digits per byte, after an `x`: a value is never empty.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("x".to_owned(), |mut text, byte| {
        // INVARIANT: writing to a string never fails.
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

/// The bytes that such a text says, if they may be a card.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('x')?.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * CARD_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests;
