//! Access modes (MPI-5 section 14.2.1).

use std::ffi::c_int;

use limosa_mpi::consts::*;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use rustix::fs::OFlags;

/// A valid combination of the `MPI_MODE_*` constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amode(c_int);

const ALL: c_int = MPI_MODE_RDONLY
    | MPI_MODE_RDWR
    | MPI_MODE_WRONLY
    | MPI_MODE_CREATE
    | MPI_MODE_EXCL
    | MPI_MODE_DELETE_ON_CLOSE
    | MPI_MODE_UNIQUE_OPEN
    | MPI_MODE_SEQUENTIAL
    | MPI_MODE_APPEND;

impl Amode {
    /// Checks the program's argument.
    ///
    /// # Errors
    /// `MPI_ERR_AMODE`.
    pub fn new(amode: c_int) -> Result<Amode> {
        if amode & !ALL != 0 {
            fail!(MPI_ERR_AMODE, "amode is {amode:#x}, which has bits that are no access mode");
        }
        let mode = Amode(amode);
        let ways = [MPI_MODE_RDONLY, MPI_MODE_RDWR, MPI_MODE_WRONLY].into_iter().filter(|way| mode.has(*way)).count();
        if ways != 1 {
            fail!(
                MPI_ERR_AMODE,
                "amode must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY, but it has {ways} \
                 of them"
            );
        }
        if mode.has(MPI_MODE_RDONLY) && (mode.has(MPI_MODE_CREATE) || mode.has(MPI_MODE_EXCL)) {
            fail!(
                MPI_ERR_AMODE,
                "amode has MPI_MODE_RDONLY together with MPI_MODE_CREATE or MPI_MODE_EXCL: what is created must be \
                 opened for writing"
            );
        }
        if mode.has(MPI_MODE_RDWR) && mode.has(MPI_MODE_SEQUENTIAL) {
            fail!(
                MPI_ERR_AMODE,
                "amode has MPI_MODE_RDWR together with MPI_MODE_SEQUENTIAL: a sequential file is read or written, \
                 not both"
            );
        }
        Ok(mode)
    }

    /// Returns whether this bit is set.
    pub fn has(self, bit: c_int) -> bool {
        self.0 & bit != 0
    }

    /// Returns the constants combined.
    pub fn bits(self) -> c_int {
        self.0
    }

    pub fn can_read(self) -> bool {
        !self.has(MPI_MODE_WRONLY)
    }

    pub fn can_write(self) -> bool {
        !self.has(MPI_MODE_RDONLY)
    }

    pub fn is_sequential(self) -> bool {
        self.has(MPI_MODE_SEQUENTIAL)
    }

    /// Returns the flags of `open`. The first process creates the file, exclusively if it must not exist.
    pub fn flags(self, is_first: bool) -> OFlags {
        let mut flags = OFlags::CLOEXEC;
        flags |= match (self.can_read(), self.can_write()) {
            (true, true) => OFlags::RDWR,
            (false, _) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        if self.has(MPI_MODE_CREATE) && is_first {
            flags |= OFlags::CREATE;
        }
        if self.has(MPI_MODE_EXCL) && is_first {
            flags |= OFlags::EXCL;
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_says_in_exactly_one_way_what_is_allowed() {
        for good in [
            MPI_MODE_RDONLY,
            MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL,
            MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN,
            MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
        ] {
            assert_eq!(Amode::new(good).unwrap().bits(), good);
        }
        for bad in [
            0,
            MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_WRONLY,
            MPI_MODE_RDONLY | MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_EXCL,
            MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
            MPI_MODE_RDONLY | 1 << 20,
        ] {
            assert_eq!(Amode::new(bad).unwrap_err().class, MPI_ERR_AMODE);
        }
    }

    #[test]
    fn only_the_first_process_creates() {
        let mode = Amode::new(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL).unwrap();
        assert!(mode.flags(true).contains(OFlags::CREATE | OFlags::EXCL));
        assert!(!mode.flags(false).intersects(OFlags::CREATE | OFlags::EXCL));
    }
}
