//! Programs that use another MPI library: each of their processes is a job of its own, of one rank.
//!
//! Such a program does not join the launcher's job, as a program without MPI does not. What tells them apart are the
//! libraries that its processes have loaded, while they run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{installation, message, procfs};

/// When the first look is; each later one is after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(25);
/// The longest time between looks.
const LONGEST: Duration = Duration::from_millis(800);
/// How long after the start a library that is loaded is reported: most programs join the job sooner.
const SURE: Duration = Duration::from_millis(1500);

/// What the processes of a job that no rank has joined have loaded.
pub struct Strangers {
    started: Instant,
    next_look: Instant,
    pause: Duration,
    library: Option<PathBuf>,
    /// Files that have been read, and whether they are ours.
    known: HashMap<PathBuf, bool>,
    is_reported: bool,
}

impl Strangers {
    /// The processes are started now.
    pub fn new(now: Instant) -> Strangers {
        Strangers {
            started: now,
            next_look: now + FIRST_LOOK,
            pause: FIRST_LOOK,
            library: None,
            known: HashMap::new(),
            is_reported: false,
        }
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks at these processes and those that they have started. Returns what to say meanwhile, once: that they use
    /// another MPI library.
    pub fn look(&mut self, now: Instant, processes: &[u32], ranks: usize) -> Option<String> {
        self.pause = (2 * self.pause).min(LONGEST);
        self.next_look = now + self.pause;
        if self.is_reported {
            return None;
        }
        // A wrapper around the program has loaded nothing.
        let all = processes.iter().flat_map(|pid| [vec![*pid], procfs::descendants(*pid)].concat());
        let maps = all.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
        for libraries in maps.map(|maps| mpi_libraries(&maps)) {
            // A program of this library may have a part that was made for a different one.
            if !libraries.iter().any(|file| self.is_ours(file)) {
                self.library = libraries.into_iter().next().or(self.library.take());
            }
        }
        let library = self.library.as_ref().filter(|_| now >= self.started + SURE)?;
        self.is_reported = true;
        Some(text(library, ranks))
    }

    fn is_ours(&mut self, file: &Path) -> bool {
        *self.known.entry(file.to_owned()).or_insert_with(|| installation::is_ours(file))
    }

    /// True if the program of a job that no rank has joined uses another MPI library.
    pub fn are_there(&self) -> bool {
        self.library.is_some()
    }

    /// What to say about that at the end of the job, unless it has been said.
    pub fn report(&self, ranks: usize) -> Option<String> {
        let library = self.library.as_ref().filter(|_| !self.is_reported)?;
        Some(text(library, ranks))
    }
}

fn text(library: &Path, ranks: usize) -> String {
    let library_path = library.display();
    message::block(
        &format!("none of the {ranks} ranks has joined the job: the program uses another MPI library, {library_path}"),
        Some(&format!("each process is a job of its own; {}", cure(library))),
    )
}

/// What to say of a program that has not found its MPI library.
pub fn text_of_missing(library: &str) -> String {
    let text = format!("the program was made for another MPI library, {library}, which is not found");
    message::block(&text, Some(&cure(Path::new(library))))
}

fn cure(library: &Path) -> String {
    format!(
        "run it on that library with `limosa run --mpi {}`, or make it use Limosa (`limosa cc` for C, `python -m \
         limosa.install_mpi4py` for mpi4py)",
        engine_of(library)
    )
}

/// The name of a library for `--mpi`, as far as its file tells.
pub fn engine_of(library: &Path) -> &'static str {
    let path = library.to_string_lossy();
    let version = path.rsplit_once(".so.").map_or("", |(_, version)| version.split('.').next().unwrap_or(""));
    match version {
        "40" | "80" => "openmpi",
        _ if path.contains("openmpi") => "openmpi",
        _ if path.contains("intel") || path.contains("impi") => "intel",
        _ => "mpich",
    }
}

/// The MPI libraries in a list of mappings (`/proc/PID/maps`).
fn mpi_libraries(maps: &str) -> Vec<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_mpi = |path: &&Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split_once(".so").map_or("", |(stem, _)| stem);
        // Wheels put a hash behind the name: libmpi-1a2b3c4d.so.12.
        let stem = stem.split_once('-').map_or(stem, |(stem, _)| stem);
        ["libmpi", "libmpich", "libmpi_abi", "libmpi_intel", "libmpi_mt", "libpmpi"].contains(&stem)
    };
    let mut found: Vec<PathBuf> = paths.filter(is_mpi).map(Path::to_owned).collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_libraries_are_recognised_by_their_names() {
        let maps = |file: &str| {
            format!("7f00-7f01 r--p 00000000 fe:00 42 /usr/lib/libm.so.6\n7f02-7f03 r-xp 0 0:0 7 {file}\n")
        };
        for file in
            ["/opt/a b/libmpi.so.40.30.4", "/usr/lib/libmpich.so.12", "/x/libmpi-1a2b.so.12", "/x/libmpi_abi.so.1"]
        {
            assert_eq!(mpi_libraries(&maps(file)), [PathBuf::from(file)]);
        }
        for file in ["/usr/lib/libmpfr.so.6", "/usr/lib/libmpi_cxx_helper.so", "/x/libmpi.txt", "[heap]", "/"] {
            assert!(mpi_libraries(&maps(file)).is_empty(), "{file}");
        }
        assert!(mpi_libraries("").is_empty());
    }

    #[test]
    fn the_library_to_run_on_is_named_by_the_file() {
        for (file, name) in [
            ("/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.1", "mpich"),
            ("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", "openmpi"),
            ("/opt/intel/oneapi/mpi/latest/lib/libmpi.so.12", "intel"),
            ("libmpi.so.12", "mpich"),
            ("/venv/lib/libmpi_abi.so.1", "mpich"),
        ] {
            assert_eq!(engine_of(Path::new(file)), name, "{file}");
        }
    }
}
