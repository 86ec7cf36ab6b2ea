//! Descriptions of what a thread waits for.

use limosa_job::{Kind, MOST_COUNTED, Peer, RankView, Record, State, WaitView};

use crate::words::short;

/// Describes a record: `MPI_Recv from rank 1, tag 7, on MPI_COMM_WORLD`.
pub fn describe(record: &Record) -> String {
    let mut parts: Vec<String> = record.waits.iter().map(|wait| describe_wait(&record.call, wait)).collect();
    // A communicator that all parts have in common is named once, at the end.
    for at in 1..parts.len() {
        let common = format!(",{}", on(&record.call, &record.waits[at].comm));
        if parts[at].ends_with(&common) && parts[at - 1].ends_with(&common) {
            let kept = parts[at - 1].len() - common.len() + 1;
            parts[at - 1].truncate(kept);
        }
    }
    if record.more > 0 {
        let is_exact = record.waits.len() + (record.more as usize) < MOST_COUNTED;
        parts.push(format!("{}{} more", if is_exact { "" } else { "at least " }, record.more));
    }
    let joint = if record.all { " and " } else { " or " };
    let polls = if record.polls > 0 { "polls with " } else { "" };
    match parts.len() {
        0 => format!("{polls}{}", record.call),
        _ => {
            let what = parts.join(joint);
            let space = if what.starts_with("which ") { ", " } else { " " };
            format!("{polls}{}{space}{what}", record.call)
        }
    }
}

/// Describes the wait for another group to connect to a port, or to accept.
fn describe_connection(call: &str, port: &str) -> String {
    let what = if call.contains("connect") || call.contains("Connect") {
        "where no process accepts"
    } else {
        "to which no process has connected"
    };
    if port.is_empty() {
        "at a socket with no process at the other end".into()
    } else {
        format!("at port {port}..., {what}")
    }
}

pub(crate) fn describe_wait(call: &str, wait: &WaitView) -> String {
    if wait.kind == Kind::Connection {
        return describe_connection(call, &wait.comm);
    }
    let on = on(call, &wait.comm);
    let tag = match (wait.kind, wait.tag) {
        (Kind::Collective, _) if !wait.started.is_empty() => {
            return format!("for {}{on}, which {}", wait.started, peer(wait));
        }
        (Kind::Collective, _) if on.is_empty() => return format!("which {}", peer(wait)),
        (Kind::Collective, _) => return format!("{}, which {}", on.trim_start(), peer(wait)),
        (Kind::Other, None) => String::new(),
        (_, Some(tag)) => format!(", tag {tag}"),
        (_, None) => ", any tag".into(),
    };
    let on = if on.is_empty() { on } else { format!(",{on}") };
    format!("{}{tag}{on}", peer(wait))
}

/// Returns whether a thread of the rank waits for another group, of any job, to connect or to accept.
pub(crate) fn waits_for_connection(view: &RankView) -> bool {
    let is_one = |wait: &WaitView| wait.kind == Kind::Connection && wait.peer == Peer::Any;
    view.state == State::Running && view.records.iter().any(|record| record.waits.iter().any(is_one))
}

/// Describes the peer of a wait.
pub fn peer(wait: &WaitView) -> String {
    let word = match wait.kind {
        Kind::Receive => "from",
        Kind::Send => "to",
        Kind::Collective => "needs",
        Kind::Other | Kind::Connection => "waits for",
    };
    match wait.peer {
        Peer::Any if wait.kind == Kind::Connection => format!("{word} another group"),
        Peer::Any => format!("{word} any rank"),
        Peer::Members => format!("{word} all other ranks"),
        Peer::Outside { job: 0, .. } => format!("{word} processes of other jobs"),
        Peer::Outside { job, member: None } => format!("{word} processes of job {}", short(job)),
        Peer::Outside { job, member: Some((rank, world)) } if rank == world => {
            format!("{word} rank {rank} of job {}", short(job))
        }
        Peer::Outside { job, member: Some((rank, world)) } => {
            format!("{word} rank {rank} (rank {world} of job {})", short(job))
        }
        Peer::Rank { rank, world } if rank == world => format!("{word} rank {rank}"),
        Peer::Rank { rank, world } => format!("{word} rank {rank} (world rank {world})"),
    }
}

/// Returns ` on <communicator>`, unless the name of the call implies it.
pub fn on(call: &str, comm: &str) -> String {
    if call.strip_prefix(comm).is_some_and(|rest| rest.starts_with('.')) {
        String::new()
    } else {
        format!(" on {comm}")
    }
}
