//! `limosa run --profile`: the profiler is loaded into every rank before the MPI library; the laboratory shows what it
//! has recorded (`limosa profile`).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options::{Options, Unusable};
use super::plan::{App, Plan};
use crate::message::say;
use crate::{installation, python};

/// The folder of a profile that is being made.
pub struct Profile {
    folder: PathBuf,
}

/// If a profile is wanted, makes its folder and sets the variables by which ranks load the profiler.
pub fn prepare(sections: &[Options], plan: &mut Plan) -> Result<Option<Profile>, Unusable> {
    let Some(given) = sections.iter().find_map(|section| section.profile.as_ref()) else { return Ok(None) };
    let events = sections.iter().find_map(|section| section.profile_events);
    let unusable = |what: String, hint: &str| Unusable { what, hint: Some(hint.into()) };
    let Some(library) = installation::own_library("liblimosa_profile.so") else {
        return Err(unusable(
            "--profile: the profiler is not installed with this command".into(),
            "install the wheel of Limosa again: it holds lib/limosa/liblimosa_profile.so",
        ));
    };
    let folder = match given.is_empty() {
        true => PathBuf::from(format!("limosa-profile-{}", std::process::id())),
        false => given.into(),
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let make = std::fs::create_dir_all(&folder).and_then(|()| std::fs::read_dir(&folder));
    let is_new = make
        .map(|mut entries| entries.next().is_none())
        .map_err(|error| unusable(format!("--profile: cannot make {}: {error}", folder.display()), "choose another"))?;
    if !is_new {
        return Err(unusable(
            format!("--profile: {} is not empty", folder.display()),
            "choose another folder: profiles of two jobs cannot be told apart",
        ));
    }
    for app in &mut plan.apps {
        preload(&library, app);
        app.env.push(("LIMOSA_PROFILE".into(), folder.clone().into()));
        app.env.extend(events.map(|events| ("LIMOSA_PROFILE_EVENTS".into(), events.to_string().into())));
    }
    Ok(Some(Profile { folder }))
}

/// Has a program load a library that stands before the MPI library.
pub fn preload(library: &Path, app: &mut App) {
    let before = app.env.iter().rev().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value.clone());
    let before = before.or_else(|| std::env::var_os("LD_PRELOAD").filter(|_| !app.clear_env));
    app.env.push(("LD_PRELOAD".into(), preloaded(library, before.as_deref())));
}

/// The library, then the MPI library: a module of Python's may load that for itself alone, where the first would not
/// find it.
fn preloaded(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut words = library.as_os_str().to_owned();
    words.push(":libmpi_abi.so.1");
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        words.push(":");
        words.push(before);
    }
    words
}

impl Profile {
    /// Shows the profile of the job, which has ended.
    pub fn show(&self) {
        let hint = format!("`limosa profile {}` shows it where the laboratory is installed", self.folder.display());
        let shown = python::find().and_then(|python| {
            let mut command = Command::new(python);
            command.args(["-m", "limosa_lab", "profile", "--after-run"]).arg(&self.folder);
            command.stdin(Stdio::null()).status().ok()?.code()
        });
        // With other codes it has said what is wrong with the profile.
        if matches!(shown, None | Some(1 | 3)) {
            say(&format!("the profile lies in {}", self.folder.display()), Some(&hint));
        }
    }
}
