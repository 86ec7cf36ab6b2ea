//! Hints of windows: promises of the program about their use (MPI-5 section 12.2.1 and following).

use std::sync::Arc;

use limosa_mpi::error::Result;
use limosa_mpi::info::Info;
use parking_lot::Mutex;

/// Keys and default values.
const KEYS: [(&str, &str); 7] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("mpi_accumulate_granularity", "0"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
    ("alloc_shared_noncontig", "false"),
];

/// The hints in use on one window.
pub struct Hints(Mutex<[Vec<u8>; KEYS.len()]>);

impl Hints {
    pub(crate) fn new(info: Option<&Info>) -> Hints {
        let hints = Hints(Mutex::new(KEYS.map(|(_, value)| value.as_bytes().to_vec())));
        if let Some(info) = info {
            hints.update(info);
        }
        hints
    }

    /// Sets the hints for which `info` has a valid value. Others are ignored, as the standard allows.
    pub fn update(&self, info: &Info) {
        let mut values = self.0.lock();
        for ((key, default), value) in KEYS.iter().zip(&mut *values) {
            let is_flag = *default == "false";
            if let Some(new) = info.lookup(key.as_bytes())
                && (!is_flag || new == b"true" || new == b"false")
            {
                *value = new;
            }
        }
    }

    /// Returns whether the parts of shared memory need not be contiguous.
    pub(crate) fn are_apart(&self) -> bool {
        self.0.lock()[KEYS.len() - 1] == b"true"
    }

    /// Returns all hints with their values in use.
    ///
    /// # Errors
    /// None.
    pub fn to_info(&self) -> Result<Arc<Info>> {
        let info = Info::new();
        for ((key, _), value) in KEYS.iter().zip(&*self.0.lock()) {
            info.set(key.as_bytes(), value)?;
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_ignored() {
        let info = Info::new();
        for (key, value) in [("no_locks", "maybe"), ("same_size", "true"), ("accumulate_ordering", "none"), ("x", "y")]
        {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let used = Hints::new(Some(&info)).to_info().unwrap();
        let value = |key: &str| used.get(key.as_bytes()).unwrap();
        assert_eq!(value("no_locks").as_deref(), Some(&b"false"[..]));
        assert_eq!(value("same_size").as_deref(), Some(&b"true"[..]));
        assert_eq!(value("accumulate_ordering").as_deref(), Some(&b"none"[..]));
        assert_eq!(value("x"), None);
    }
}
