//! What only jobs over several hosts need: logins by ssh, and a folder for messages that are files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use limosa_device::files::is_local;
use limosa_job::config::{self, DeviceChoice};
use rustix::fs::inotify;

use super::{Finding, fail, in_path, is_executable, ok, warn};

/// The command that logs in, and the keys that it can use without asking.
pub(super) fn ssh() -> Finding {
    let what = "ssh";
    let command = config::get().ssh.split_whitespace().next().unwrap_or("ssh");
    let found = match command.contains('/') {
        true => Some(PathBuf::from(command)).filter(|file| is_executable(file)),
        false => in_path(command),
    };
    let Some(client) = found else {
        return ok(what, format!("`{command}` is not found, and needed for jobs over several hosts only"));
    };
    let client = client.display();
    if command != "ssh" {
        return ok(what, format!("{client} (LIMOSA_SSH)"));
    }
    let (offered, files) = (offered_keys(), key_files());
    let keys = match (offered, files.is_empty()) {
        (0, true) => "no key: jobs over several hosts need one (`ssh-keygen`, then `ssh-copy-id HOST`)".to_owned(),
        (0, false) => format!("keys in {}; an agent offers none", files.join(", ")),
        (count, _) => format!("an agent offers keys: {count}"),
    };
    ok(what, format!("{client}, {keys}"))
}

/// How many keys an agent has.
fn offered_keys() -> usize {
    let listed = Command::new("ssh-add").arg("-l").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = listed.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.map_or(0, |text| text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
}

/// The files with private keys that ssh tries by itself.
fn key_files() -> Vec<String> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else { return Vec::new() };
    let names = ["id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"];
    names
        .into_iter()
        .filter(|name| home.join(".ssh").join(name).is_file())
        .map(|name| format!("~/.ssh/{name}"))
        .collect()
}

/// The folder of `LIMOSA_DEVICE=file:FOLDER`.
pub(super) fn message_folder() -> Finding {
    let what = "message folder";
    let (folder, has_each_host_one) = match &config::get().device {
        DeviceChoice::Files(folder) => (folder, false),
        DeviceChoice::LocalFiles(folder) => (folder, true),
        _ => return ok(what, "not used: messages are files with LIMOSA_DEVICE=file:FOLDER only"),
    };
    let shown = folder.display();
    match try_folder(folder) {
        Err(error) => fail(what, format!("{shown} cannot be used: {error}"), "name another folder in LIMOSA_DEVICE"),
        Ok(Tried { is_local: false, .. }) if has_each_host_one => warn(
            what,
            format!("{shown} may be shared by several machines"),
            "with file:local each host needs a folder of its own: give file:FOLDER, or file:local:FOLDER",
        ),
        Ok(Tried { is_local: false, .. }) => {
            ok(what, format!("{shown}, perhaps on several machines: a clock looks for new files, every 1 to 50 ms"))
        }
        Ok(Tried { is_told: false, .. }) => warn(
            what,
            format!("{shown}: the system does not tell of new files, so a clock looks for them, every 1 to 50 ms"),
            "raise the number of inotify instances of a user (fs.inotify.max_user_instances)",
        ),
        Ok(_) if has_each_host_one => ok(what, format!("{shown}, on this machine; the system tells of new files")),
        Ok(_) => ok(what, format!("{shown}, which only this machine sees; the system tells of new files")),
    }
}

/// What a folder does.
struct Tried {
    /// It is on a file system of this machine alone.
    is_local: bool,
    /// The system says when a file is new.
    is_told: bool,
}

fn try_folder(folder: &Path) -> io::Result<Tried> {
    let was_there = folder.is_dir();
    let trial = folder.join(format!("limosa-doctor-{}", std::process::id()));
    fs::create_dir_all(&trial)?;
    let tried = look_at(&trial);
    let _ = fs::remove_dir_all(&trial);
    if !was_there {
        let _ = fs::remove_dir(folder);
    }
    tried
}

fn look_at(trial: &Path) -> io::Result<Tried> {
    Ok(Tried { is_local: is_local(trial)?, is_told: is_told_of_files(trial)? })
}

/// Whether the system says that a file is new in a folder.
///
/// # Errors
/// The file cannot be written.
fn is_told_of_files(folder: &Path) -> io::Result<bool> {
    let notices = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok();
    let notices = notices.filter(|fd| inotify::add_watch(fd, folder, inotify::WatchFlags::CREATE).is_ok());
    fs::write(folder.join("0.msg"), b"a message")?;
    Ok(notices.is_some_and(|fd| rustix::io::read(&fd, &mut [0u8; 512]).is_ok()))
}
