//! The host-to-rank map: which host has which processes.
//!
//! `ROOT/hosts` has a line for each host, in the order of their processes: its name, its first process, and how many
//! there are; behind that stands why the host was given up, if it was. A process that was started later has a line of
//! its own. Processes look at the map to name a host.

use super::Folders;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// A host of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub ranks: Range<u32>,
    /// Its processes that were started later.
    pub later: Vec<u32>,
}

impl Place {
    /// Makes a host with these processes.
    pub fn new(name: &str, ranks: Range<u32>) -> Place {
        Place { name: name.to_owned(), ranks, later: Vec::new() }
    }

    /// Whether it has a process.
    pub fn has(&self, rank: u32) -> bool {
        self.ranks.contains(&rank) || self.later.contains(&rank)
    }

    /// Returns all its processes.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        self.ranks.clone().chain(self.later.clone())
    }
}

/// Returns the path of the map.
pub fn path(folders: &Folders) -> PathBuf {
    folders.0.join("hosts")
}

/// Makes an empty map, where no other courier has made one.
///
/// # Errors
/// The operating system's.
pub fn claim(folders: &Folders) -> io::Result<()> {
    File::create_new(path(folders)).map(drop)
}

/// Writes the map; `lost`: a host that was given up, and why.
///
/// # Errors
/// The operating system's.
pub fn write(folders: &Folders, hosts: &[Place], lost: Option<(usize, &str)>) -> io::Result<()> {
    // Hosts that were given up before stay so.
    let known: Vec<String> =
        hosts.iter().map(|place| why_lost(folders, place.ranks.start).unwrap_or_default()).collect();
    let lines = |(at, place): (usize, &Place)| {
        let why = lost.filter(|(host, _)| *host == at).map_or(known[at].as_str(), |(_, why)| why);
        let why = why.replace('\n', " ");
        let line = |first: u32, count: usize| format!("{} {first} {count} {why}\n", place.name);
        let later: String = place.later.iter().map(|rank| line(*rank, 1)).collect();
        line(place.ranks.start, place.ranks.len()) + &later
    };
    fs::write(path(folders), hosts.iter().enumerate().map(lines).collect::<String>())
}

/// Returns the host of a process, if there is a map and the process is in it.
pub fn host_of(folders: &Folders, rank: u32) -> Option<String> {
    look_up(folders, rank).map(|(name, _)| name)
}

/// Why the host of a process was given up, if it was.
pub fn why_lost(folders: &Folders, rank: u32) -> Option<String> {
    look_up(folders, rank).map(|(_, why)| why).filter(|why| !why.is_empty())
}

fn look_up(folders: &Folders, rank: u32) -> Option<(String, String)> {
    let text = fs::read_to_string(path(folders)).ok()?;
    text.lines().find_map(|line| {
        let mut words = line.splitn(4, ' ');
        let name = words.next()?;
        let (first, count) = (words.next()?.parse::<u32>().ok()?, words.next()?.parse::<u32>().ok()?);
        (rank.checked_sub(first)? < count).then(|| (name.to_owned(), words.next().unwrap_or_default().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_process_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders = Folders::below(folder.path());
        assert_eq!(host_of(&folders, 0), None, "there is no map");
        let mut hosts = [Place::new("a", 0..2), Place::new("b", 2..3)];
        write(&folders, &hosts, None).expect("a map");
        let names = [0, 1, 2, 3].map(|rank| host_of(&folders, rank));
        assert_eq!(names, [Some("a".to_owned()), Some("a".to_owned()), Some("b".to_owned()), None]);
        write(&folders, &hosts, Some((1, "no route"))).expect("a map");
        write(&folders, &hosts, Some((0, "no\nroute known"))).expect("a map");
        let reasons = [1, 2].map(|rank| why_lost(&folders, rank));
        assert_eq!(reasons, [Some("no route known".to_owned()), Some("no route".to_owned())]);
        hosts[1].later.push(7);
        write(&folders, &hosts, None).expect("a map");
        assert_eq!([6, 7].map(|rank| host_of(&folders, rank)), [None, Some("b".to_owned())]);
        assert_eq!(why_lost(&folders, 7), Some("no route".to_owned()));
    }
}
