//! The folder of a job for the files of its messages: made by the launcher, or by the agent where each host has one of
//! its own, and seen by all hosts that are to share it.
//!
//! The maker holds a lock in the folder as long as it lives. A process that makes such a folder first deletes those of
//! the same user with a free lock: their makers and the guardians of these were killed. A lock counts only where it can
//! be trusted: on a file system of this machine, and elsewhere if the maker was a process of this very system. Folders
//! without a lock file are left alone: messages are kept in them, or another launcher's ranks use them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use limosa_device::files::is_local;
use limosa_job::config::Config;
use rustix::fs::{FlockOperation, flock};

/// The folder in a job's folder with the lock, and the lock's name.
const OWNER: &str = "owner";
const LOCK: &str = "lock";
/// How long a file system of several machines may take to show a folder that another machine has made.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// The right to a job's folder. It ends when this is dropped.
pub struct Owner {
    _lock: Option<File>,
    /// The folder around it, if that is new.
    made: Option<PathBuf>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // It stays if anything is in it.
        self.made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

/// Makes the folder of job `id`, if its messages are files, and deletes those of dead jobs beside it.
///
/// # Errors
/// Which folder cannot be used, and why.
pub fn make(config: &Config, id: u64) -> io::Result<Option<Owner>> {
    let Some(messages) = config.device.message_folder(id) else { return Ok(None) };
    let around = messages.parent().unwrap_or(Path::new("/"));
    let made = make_in(around, &messages, !config.file_keep).map_err(|error| {
        let hint = match (error.kind(), around.parent().filter(|parent| !parent.exists())) {
            (io::ErrorKind::NotFound, Some(missing)) => format!("there is no folder {}", missing.display()),
            _ => error.to_string(),
        };
        let text = format!("the folder {} for the files of messages cannot be used: {hint}", around.display());
        io::Error::new(error.kind(), text)
    })?;
    Ok(Some(made))
}

fn make_in(around: &Path, messages: &Path, is_owned: bool) -> io::Result<Owner> {
    let folder = |path: &Path| match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        result => result.map(|()| true),
    };
    let mut made = folder(around)?.then(|| around.to_owned());
    if made.is_none() {
        delete_dead(around);
    }
    match folder(messages) {
        // Another job has made it, and has just ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            made = folder(around)?.then(|| around.to_owned());
            folder(messages)?;
        }
        result => _ = result?,
    }
    let lock = if is_owned { lock_in(messages) } else { None };
    Ok(Owner { _lock: lock, made })
}

/// Takes the lock of a folder; `None` if it is taken, or if the file system has no locks.
fn lock_in(messages: &Path) -> Option<File> {
    let place = messages.join(OWNER);
    DirBuilder::new().mode(0o700).create(&place).ok()?;
    // Under its name it is locked from the beginning.
    let draft = place.join("draft");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&draft).ok()?;
    file.write_all(this_system().as_bytes()).ok()?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    locked.ok().and_then(|()| fs::rename(&draft, place.join(LOCK)).ok()).map(|()| file)
}

/// What tells the running system from all others, and from itself before its last start.
fn this_system() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Deletes the folders of jobs of this user whose makers are dead. What cannot be deleted stays.
fn delete_dead(around: &Path) {
    let is_local = is_local(around).unwrap_or(false);
    let is_of_job = |name: &str| {
        let id = name.strip_prefix("limosa-");
        id.is_some_and(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for entry in fs::read_dir(around).into_iter().flatten().flatten() {
        let folder = entry.path();
        if entry.file_name().to_str().is_some_and(is_of_job) && is_own(&folder) && is_dead(&folder, is_local) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn is_own(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw())
}

/// Whether it is certain that the maker of a folder is dead.
fn is_dead(folder: &Path, is_local: bool) -> bool {
    let Ok(mut lock) = OpenOptions::new().read(true).write(true).open(folder.join(OWNER).join(LOCK)) else {
        return false;
    };
    let mut system = String::new();
    let is_read = lock.read_to_string(&mut system).is_ok();
    let is_trusted = is_local || (is_read && !system.is_empty() && system == this_system());
    is_trusted && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Waits until this host sees the folder of job `id`, which the launcher has made, if all hosts are to share it.
/// `go_on`: called now and then; false ends the wait.
///
/// # Errors
/// The hosts share no such folder.
pub fn await_shared(config: &Config, id: u64, mut go_on: impl FnMut() -> bool) -> io::Result<()> {
    let Some(messages) = config.device.message_folder(id) else { return Ok(()) };
    let (Some(around), Some(name)) = (messages.parent(), messages.file_name()) else { return Ok(()) };
    // A look for the name alone could be answered from a cache; a listing is asked for anew.
    let is_there = || fs::read_dir(around).into_iter().flatten().flatten().any(|entry| entry.file_name() == name);
    let nearest = around.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let limit = if is_local(nearest).unwrap_or(false) { Duration::ZERO } else { SHOWN_WITHIN };
    let begin = Instant::now();
    while !is_there() {
        if begin.elapsed() >= limit || !go_on() {
            let around = around.display();
            return Err(io::Error::other(format!(
                "this host does not share the folder {around} with the launcher's host, whose folder {} it does not \
                 see: give --device file:FOLDER with a folder on a file system that all hosts share, or --device \
                 file:local, which needs none",
                name.display()
            )));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_job::config::{self, DeviceChoice};

    fn config(folder: &Path) -> Config {
        let (mut config, _) = config::parse([]);
        config.device = DeviceChoice::Files(folder.to_owned());
        config
    }

    fn folder(config: &Config, id: u64) -> PathBuf {
        config.device.message_folder(id).expect("messages are files")
    }

    #[test]
    fn folders_of_dead_jobs_are_deleted_and_those_of_others_stay() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = config(dir.path());
        let kept = Config { file_keep: true, ..config.clone() };
        let living = make(&config, 1).expect("a folder");
        drop(make(&config, 2).expect("a folder"));
        drop(make(&kept, 3).expect("a folder"));
        let _own = make(&config, 4).expect("a folder");
        let there = [1, 2, 3, 4].map(|id| folder(&config, id).exists());
        assert_eq!(there, [true, false, true, true], "the second maker is dead, and the third job keeps its messages");
        drop(living);
        delete_dead(dir.path());
        assert!(!folder(&config, 1).exists() && folder(&config, 4).exists());
    }

    #[test]
    fn a_lock_of_another_system_is_trusted_on_a_local_file_system_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = config(dir.path());
        drop(make(&config, 1).expect("a folder"));
        let folder = folder(&config, 1);
        assert!(is_dead(&folder, false));
        fs::write(folder.join(OWNER).join(LOCK), "a different one").expect("a file");
        assert!(!is_dead(&folder, false) && is_dead(&folder, true));
    }

    #[test]
    fn only_the_last_folder_of_a_path_is_made_and_it_goes_with_the_job() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = config(&dir.path().join("new"));
        let owner = make(&config, 1).expect("a folder");
        assert!(folder(&config, 1).is_dir());
        config.delete_messages(1);
        drop(owner);
        assert!(!dir.path().join("new").exists());
        let error = make(&self::config(&dir.path().join("tpyo/deep")), 1).err().expect("no such folder").to_string();
        assert!(error.ends_with(&format!("there is no folder {}", dir.path().join("tpyo").display())), "{error}");
        assert!(!dir.path().join("tpyo").exists());
    }

    #[test]
    fn a_folder_that_is_not_shared_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = config(dir.path());
        let error = await_shared(&config, 1, || false).expect_err("it is not there").to_string();
        assert!(error.contains(&format!("does not share the folder {}", dir.path().display())), "{error}");
        let _owner = make(&config, 1).expect("a folder");
        assert!(await_shared(&config, 1, || false).is_ok());
    }
}
