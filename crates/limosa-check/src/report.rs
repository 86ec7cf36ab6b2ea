//! What is said at `MPI_Finalize`: messages that do not fit together, and what was never completed or freed.

use std::collections::BTreeMap;

use limosa_interpose::python;
use limosa_interpose::site::Site;

use crate::messages::{self, Fault};
use crate::state::{self, State};
use crate::{mpi, place};

/// Lines of a rank's report that are printed.
const MOST_LINES: usize = 10;

/// Prints a line, in one piece.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("limosa: {text}\n").as_bytes());
}

/// Says what is wrong at the end. All ranks of `MPI_COMM_WORLD` call this; afterwards nothing is checked any more.
pub(crate) fn at_end() {
    let Some(mut state) = state::lock().take() else { return };
    let faults = compare_messages(&mut state);
    if python::has_failed() {
        // What a program that an exception has ended leaves undone says nothing of it.
        return;
    }
    let mut lines: Vec<(String, u64)> =
        faults.iter().map(|(peer, fault)| (message(&state, *peer, fault), fault.times)).collect();
    if !state.has_sessions {
        lines.extend(requests(&state));
        lines.extend(objects(&state));
    }
    let me = mpi::number(mpi::comm_rank, mpi::COMM_WORLD);
    for (line, times) in lines.iter().take(MOST_LINES) {
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        say(&format!("rank {me}, at MPI_Finalize: {line}{times}"));
    }
    if lines.len() > MOST_LINES {
        say(&format!("rank {me}, at MPI_Finalize: {} more such lines are left out", lines.len() - MOST_LINES));
    }
}

/// Tells each rank what was sent to it, and finds what does not fit in what was sent here.
fn compare_messages(state: &mut State) -> Vec<(usize, Fault)> {
    let Some(shadow) = state.comm(mpi::COMM_WORLD).and_then(|(_, world)| world.shadow) else { return Vec::new() };
    let size = mpi::number(mpi::comm_size, mpi::COMM_WORLD);
    let text = |peer| state.sent.text_for(peer, |site| place::text(Site(site))).into_bytes();
    let to_each: Vec<Vec<u8>> = (0..size).map(text).collect();
    let from_each = mpi::exchange(shadow, &to_each);
    mpi::free(shadow);
    let Some(from_each) = from_each else { return Vec::new() };
    // A receive that is not complete, from any rank or with any tag, may have got any message.
    let is_lost = |comm: &state::Comm| comm.receives.is_lost || comm.receives.has_open();
    let lost: Vec<u64> = state.comms.values().filter(|comm| is_lost(comm)).map(|comm| comm.id).collect();
    let of_peer = |(peer, text): (usize, Vec<u8>)| {
        let text = String::from_utf8_lossy(&text).into_owned();
        let faults = messages::faults(&text, peer as i32, &state.received, |comm| {
            state.ids.contains(&comm) && !lost.contains(&comm)
        });
        faults.into_iter().map(move |fault| (peer, fault))
    };
    from_each.into_iter().enumerate().flat_map(of_peer).collect()
}

fn message(state: &State, peer: usize, fault: &Fault) -> String {
    let number = state.comms.iter().find(|(_, comm)| comm.id == fault.comm).map(|(number, _)| *number);
    let on = number.map_or("a freed communicator".into(), |number| state.name(number));
    let Fault { tag, bytes, call, place, .. } = fault;
    let sent = format!("tag {tag}, {bytes} bytes, on {on}, sent by {call}{}", place::words(place));
    match fault.types {
        None => format!("a message from rank {peer} was never received: {sent}"),
        Some((has, wants, site)) => {
            let received = place::words(&place::text(Site(site)));
            let (has, wants) = (has.name(), wants.name());
            format!("a message from rank {peer} holds {has}, and was received as {wants}{received}: {sent}")
        }
    }
}

/// Requests that are left, each with how often.
fn requests(state: &State) -> Vec<(String, u64)> {
    let mut lines = BTreeMap::new();
    for request in state.requests.values().flatten() {
        let fault = match (request.is_persistent, request.is_active) {
            (true, false) => "a persistent request was never freed",
            (true, true) => "a persistent request was neither completed nor freed",
            (false, _) => "a request was never completed",
        };
        let call = plain(request.call);
        let place = place::words(&place::text(Site(request.site)));
        let tag = |tag: i32| if tag < 0 { "any tag".to_owned() } else { format!("tag {tag}") };
        let about = match (&request.message.sends, &request.message.receives) {
            (Some((key, note)), _) => format!(" to rank {}, {}, {} bytes", key.peer, tag(key.tag), note.bytes),
            (None, Some((_, source, with, note))) => {
                let from = if *source < 0 { "any rank".to_owned() } else { format!("rank {source}") };
                format!(" from {from}, {}, {} bytes", tag(*with), note.bytes)
            }
            (None, None) => String::new(),
        };
        let comma = if about.is_empty() { "" } else { "," };
        let on = if request.comm == 0 { String::new() } else { format!("{comma} on {}", state.name(request.comm)) };
        *lines.entry(format!("{fault}: {call}{about}{on}{place}")).or_insert(0) += 1;
    }
    lines.into_iter().collect()
}

/// Objects that were never freed, each with how often.
fn objects(state: &State) -> Vec<(String, u64)> {
    let mut lines = BTreeMap::new();
    for ((kind, handle), made) in &state.objects {
        let name = if *kind == "communicator" { mpi::name(*handle) } else { String::new() };
        let name = if name.is_empty() { name } else { format!("{name}, ") };
        for (call, site) in made.iter().filter(|(_, site)| !place::is_in_package(Site(*site))) {
            let place = place::words(&place::text(Site(*site)));
            let line = format!("{kind} was never freed: {name}made by {}{place}", plain(call));
            let article = if kind.starts_with(['i', 'e', 'o']) { "an" } else { "a" };
            *lines.entry(format!("{article} {line}")).or_insert(0) += 1;
        }
    }
    lines.into_iter().collect()
}

/// The name of a function without the mark of its large-count form.
fn plain(call: &str) -> &str {
    call.strip_suffix("_c").unwrap_or(call)
}
