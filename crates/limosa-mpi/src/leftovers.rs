//! Leftovers of a program at `MPI_Finalize`: unreceived messages, and unfinished requests, described in words.
//!
//! Always told are messages whose senders wait for them. Everything else is told only under `--check`
//! ([`crate::check`]).

use crate::check;
use crate::comm::Comm;
use crate::observe::Awaits;
use crate::request::Request;
use crate::world::World;
use limosa_p2p::Unreceived;

/// Looks in a row at what lies on the lanes that find nothing.
const IDLE_LOOKS: u32 = 2;
/// Looks, however much arrives.
const MOST_LOOKS: u32 = 1000;

/// Describes the messages of the program that have arrived and were not received, one line for each, oldest first.
/// Without the checks only those whose senders wait for them.
pub fn messages(world: &World) -> Vec<String> {
    let Some(engine) = world.engine_if_any() else { return Vec::new() };
    let look = || {
        let holdings = engine.holdings();
        (holdings.unexpected, holdings.posted)
    };
    let (mut before, mut idle) = (look(), 0);
    for _ in 0..MOST_LOOKS {
        if idle == IDLE_LOOKS {
            break;
        }
        engine.poll();
        let now = look();
        idle = if now == before { idle + 1 } else { 0 };
        before = now;
    }
    let describe = |message: Unreceived| {
        let (source, tag) = (message.envelope.source, message.envelope.tag);
        let comm = Comm::find(world, message.envelope.context);
        if !message.sender_waits && !check::is_on() {
            return None;
        }
        // A process that has ended waits for nothing any more.
        let peer = comm.as_ref().and_then(|comm| comm.world_rank_of(source).ok());
        let sender_waits = message.sender_waits && peer.is_none_or(|peer| engine.is_alive(peer));
        let (on, bytes) = match comm {
            Some(comm) => (comm.describe(), check::without_header(message.bytes)),
            // The odd contexts are those of collectives. Partitioned communication has contexts of its own.
            None if message.envelope.context & 1 == 0 => ("a freed communicator".to_owned(), message.bytes),
            None => return None,
        };
        let waits = if sender_waits { "; its sender waits for that" } else { "" };
        Some(format!("a message from rank {source} was never received: tag {tag}, {bytes} bytes, on {on}{waits}"))
    };
    engine.unreceived().into_iter().filter_map(describe).collect()
}

/// Describes a leftover request: its state, the call that made it, and its arguments.
pub fn request(request: &Request, made_by: &str) -> String {
    let fault = match (request.is_persistent(), request.is_active()) {
        (true, false) => "a persistent request was never freed",
        (true, true) => "a persistent request was neither completed nor freed",
        (false, _) => "a request was never completed",
    };
    let bytes = request.bytes().map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
    let rank_or_any = |rank: Option<i32>| rank.map_or_else(|| "any rank".to_owned(), |rank| format!("rank {rank}"));
    let tag = |tag: Option<i32>| tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
    let on = |comm: &Comm| comm.describe();
    match request.awaits() {
        Some(Awaits::Send { comm, dest, tag: with }) => {
            format!("{fault}: {made_by} to {}, {}{bytes}, on {}", rank_or_any(dest), tag(with), on(comm))
        }
        Some(Awaits::Receive { comm, source, tag: with }) => {
            format!("{fault}: {made_by} from {}, {}{bytes}, on {}", rank_or_any(source), tag(with), on(comm))
        }
        Some(Awaits::Collective { comm, .. } | Awaits::Window { comm, .. } | Awaits::Connection { comm, .. }) => {
            format!("{fault}: {made_by} on {}", on(comm))
        }
        None => format!("{fault}: {made_by}"),
    }
}
