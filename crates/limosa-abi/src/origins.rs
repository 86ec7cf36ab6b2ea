//! Origins of objects and requests: the call and the line of the program that created each, for the report of leaks at
//! `MPI_Finalize`. Recorded only while the checks are on ([`limosa_mpi::check`]).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use limosa_mpi::comm::Comm;
use limosa_mpi::world::World;
use limosa_mpi::{check, consts, leftovers};
use parking_lot::Mutex;

use crate::handles::{Handle, Object};
use crate::kinds::{
    Communicator, Datatype, Errhandler, File, Group, Info, Message, Operation, Request, Session, Window,
};
use crate::python;
use crate::site::{self, Site};

/// Origin of an object.
#[derive(Clone)]
struct Origin {
    /// Name of the function that created it.
    call: &'static str,
    /// Line of the program.
    site: Site,
}

/// Origins by handle, without its generation. A reused slot has the origin of its current object.
static ORIGINS: Mutex<Option<HashMap<usize, Origin>>> = Mutex::new(None);

/// Maximum number of lines of a rank's report.
const MOST_LINES: usize = 10;

/// Communicators of our Python package that exist as long as the program. If the package starts the program, they come
/// from no line of the user's code.
const OF_PACKAGE: &[u8] = b"limosa.world";

/// Records that `call` created the object of this handle.
#[cold]
pub(crate) fn note(handle: Handle, call: &'static str) {
    // Before the lock: this may run code of the program.
    let site = site::here();
    // Users know both forms of a function by one name.
    let call = call.strip_suffix("_c").unwrap_or(call);
    ORIGINS.lock().get_or_insert_with(HashMap::new).insert(handle.without_generation().0, Origin { call, site });
}

fn origin_of(handle: Handle) -> Origin {
    let known = ORIGINS.lock().as_ref().and_then(|all| all.get(&handle.without_generation().0).cloned());
    known.unwrap_or(Origin { call: "an unknown call", site: Site::default() })
}

/// Prints the leaked objects of the program, at `MPI_Finalize`. While the checks are on, this waits for the other
/// ranks, so that their last messages have arrived. Prints nothing for a Python program that was ended by an exception
/// or a signal.
pub(crate) fn report(world: &Arc<World>) {
    if check::is_on() {
        // Dead ranks are not waited for; then messages may be missed.
        let _ = limosa_coll::barrier(&Comm::of_finalize(world));
    }
    if python::was_cut_short() {
        return;
    }
    let mut all = leftovers::messages(world);
    all.extend(differences());
    if check::is_on() {
        all.extend(limosa_coll::check::late_differences());
        all.extend(requests());
        // Objects of a session may outlive MPI_Finalize.
        if Session::table().live().is_empty() {
            all.extend(objects());
        }
    }
    let text = block(world.rank(), all);
    if !text.is_empty() {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Finds ranks whose last collectives were different, or had different roots, undetected.
fn differences() -> impl Iterator<Item = String> {
    let describe = |comm: Arc<Communicator>| {
        let difference = limosa_coll::unseen_difference(comm.carrier())?;
        Some(format!("{difference}, on {}", comm.describe()))
    };
    let world =
        Communicator::table().get(Handle::predefined(consts::MPI_COMM_WORLD)).ok().map(|comm| Arc::clone(&comm));
    let made = Communicator::table().live().into_iter().map(|(_, comm)| comm);
    world.into_iter().chain(made).filter_map(describe)
}

/// Formats one line per item; equal items share a line.
fn block(rank: u32, all: Vec<String>) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for line in all {
        match counted.iter_mut().find(|(known, _)| *known == line) {
            Some((_, times)) => *times += 1,
            None => counted.push((line, 1)),
        }
    }
    let mut text = String::new();
    for (line, times) in counted.iter().take(MOST_LINES) {
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        let _ = writeln!(text, "limosa: rank {rank}, at MPI_Finalize: {line}{times}");
    }
    if let Some(more) = counted.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        let _ = writeln!(text, "limosa: rank {rank}, at MPI_Finalize: and {more} more");
    }
    text
}

fn requests() -> Vec<String> {
    let describe = |(handle, request): (Handle, Arc<Request>)| {
        let Origin { call, site } = origin_of(handle);
        leftovers::request(&request, call) + &site.in_words()
    };
    Request::table().live().into_iter().map(describe).collect()
}

/// Returns the objects that the program has created and not freed.
fn objects() -> Vec<String> {
    let mut left = Left::default();
    for (handle, comm) in Communicator::table().live() {
        if comm.name() != OF_PACKAGE {
            left.add::<Communicator>(handle, &comm.describe());
        }
    }
    for (handle, datatype) in Datatype::table().live() {
        left.add::<Datatype>(handle, &datatype.describe());
    }
    left.add_all::<Group>();
    left.add_all::<Operation>();
    left.add_all::<Info>();
    left.add_all::<Errhandler>();
    left.add_all::<Window>();
    for (handle, file) in File::table().live() {
        left.add::<File>(handle, &format!("\"{}\"", file.path().display()));
    }
    for (handle, _) in Message::table().live() {
        let Origin { call, site } = origin_of(handle);
        left.lines.push(format!("a message was matched by {call} and never received{}", site.in_words()));
    }
    left.lines
}

/// Lines about leaked objects.
#[derive(Default)]
struct Left {
    lines: Vec<String>,
}

impl Left {
    fn add_all<T: Object>(&mut self) {
        T::table().live().into_iter().for_each(|(handle, _)| self.add::<T>(handle, ""));
    }

    /// Adds an object, unless our Python package created it: its users need not free anything.
    fn add<T: Object>(&mut self, handle: Handle, name: &str) {
        let Origin { call, site } = origin_of(handle);
        if site.in_package {
            return;
        }
        let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
        let ended = if T::KIND.tag == File::KIND.tag { "closed" } else { "freed" };
        self.lines.push(format!("{} was never {ended}: {name}made by {call}{}", T::KIND.noun, site.in_words()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_report_is_cut_and_what_is_the_same_is_counted() {
        assert_eq!(block(1, Vec::new()), "");
        let lines = (0..13).map(|i| format!("thing {i}")).chain(["thing 0".into()]);
        let text = block(3, lines.collect());
        assert!(text.starts_with("limosa: rank 3, at MPI_Finalize: thing 0 (2 times)\n"), "{text}");
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("and 3 more\n"), "{text}");
    }
}
