//! Lock files in a folder, from a listing of it.
//!
//! A network file system remembers for seconds that a name was absent, so repeated lookups of one name find a new file
//! late. A listing has no such memory: opening a folder on NFS shows its current content. Lock files of a pair appear
//! in the order of their numbers. Of two consecutive listings, the second therefore shows all files that come before
//! any file that the first shows.

use std::fs;
use std::path::Path;

/// Returns the numbers of the lock files in a folder; none if there is no such folder.
pub fn locks(folder: &Path) -> Vec<u64> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| number_of_lock(name.as_encoded_bytes())).collect()
}

/// Returns the number of a lock file of this name; `None` if it is none.
pub fn number_of_lock(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name.strip_suffix(b".lock")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lock_files_are_listed() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["7.lock", "8.msg", "lock", ".lock", "x.lock", "10.lock"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let mut found = locks(folder.path());
        found.sort_unstable();
        assert_eq!(found, [7, 10]);
        assert_eq!(locks(&folder.path().join("absent")), []);
    }
}
