//! Programs that use another MPI library: each of their processes is a job of its own, of one rank.
//!
//! Such a program does not join the launcher's job, as a program without MPI does not. What tells them apart are the
//! libraries that its processes have loaded, while they run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{installation, message};

/// When the first look is; each later one is after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(25);
/// The longest time between looks.
const LONGEST: Duration = Duration::from_millis(800);

/// What the processes of a job that nobody has joined have loaded.
pub struct Strangers {
    next_look: Instant,
    pause: Duration,
    library: Option<PathBuf>,
}

impl Strangers {
    /// The processes are started now.
    pub fn new(now: Instant) -> Strangers {
        Strangers { next_look: now + FIRST_LOOK, pause: FIRST_LOOK, library: None }
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks at these processes.
    pub fn look(&mut self, now: Instant, processes: &[u32]) {
        self.pause = (2 * self.pause).min(LONGEST);
        self.next_look = now + self.pause;
        if self.library.is_none() {
            let maps = processes.iter().filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
            self.library = maps.filter_map(|maps| mpi_library(&maps)).next();
        }
    }

    /// What to say of a job that nobody has joined; nothing if its program uses no MPI library, or has loaded ours and
    /// not used it.
    pub fn report(&self, ranks: usize) -> Option<String> {
        let library = self.library.as_ref().filter(|library| !installation::is_ours(library))?;
        let text = format!(
            "none of the {ranks} ranks has joined the job: the program uses another MPI library, {}",
            library.display()
        );
        let hint = "each process was a job of its own; run it with that library's mpiexec, or make it use Limosa \
                    (`limosa cc` for C, `python -m limosa.install_mpi4py` for mpi4py)";
        Some(message::block(&text, Some(hint)))
    }
}

/// The first MPI library in a list of mappings (`/proc/PID/maps`).
fn mpi_library(maps: &str) -> Option<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_mpi = |path: &&Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split_once(".so").map_or("", |(stem, _)| stem);
        // Wheels put a hash behind the name: libmpi-1a2b3c4d.so.12.
        let stem = stem.split_once('-').map_or(stem, |(stem, _)| stem);
        ["libmpi", "libmpich", "libmpi_abi", "libmpi_intel", "libmpi_mt", "libpmpi"].contains(&stem)
    };
    paths.into_iter().find(is_mpi).map(Path::to_owned)
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
            assert_eq!(mpi_library(&maps(file)), Some(PathBuf::from(file)));
        }
        for file in ["/usr/lib/libmpfr.so.6", "/usr/lib/libmpi_cxx_helper.so", "/x/libmpi.txt", "[heap]", "/"] {
            assert_eq!(mpi_library(&maps(file)), None, "{file}");
        }
        assert_eq!(mpi_library(""), None);
    }
}
