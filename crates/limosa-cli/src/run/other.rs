//! `limosa run --mpi NAME`: the job on another MPI library, started by that library's own launcher.
//!
//! Python knows the libraries (`limosa.engines`): it finds or installs one and says which launcher belongs to it and
//! which variables it needs. Here our options are translated for that launcher, and this process becomes it, or waits
//! for it if there is a profile to be shown at the end. An option without a translation is refused.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

use serde_json::Value;

use super::foreign;
use super::options::{MapBy, Options, Stdin, Unusable};
use super::plan::{App, Plan};
use super::profile::{self, preload};
use super::tuning;
use crate::message::say;
use crate::{exit, installation, python, sys};

/// Which options a launcher has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// MPICH's and Intel's.
    Hydra,
    /// Open MPI's.
    Prrte,
    /// Some other: nothing but `-n` can be relied on.
    Unknown,
}

/// Becomes the library's launcher; returns if that is not possible, or with the job's exit code if it has a profile.
pub fn main(called: &str, name: &str, sections: &[Options], plan: &mut Plan) -> ExitCode {
    let before = format!("--before={}", standing_before(sections));
    let asked = ["describe", before.as_str(), name];
    let engine = match python::ask(&format!("{called} --mpi"), python::LIMOSA, "limosa.engines", &asked) {
        Ok(engine) => engine,
        Err(code) => return code,
    };
    let words: Vec<&str> = engine["launcher"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let family = match engine["family"].as_str() {
        Some("hydra") => Family::Hydra,
        Some("prrte") => Family::Prrte,
        _ => Family::Unknown,
    };
    let version = engine["version"].as_str().unwrap_or(name);
    let Some((program, first)) = words.split_first() else {
        say(&format!("there is no launcher for {version}"), None);
        return ExitCode::from(exit::ENVIRONMENT);
    };
    let environment: Vec<(&str, &str)> = engine["environment"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let prepared = tuning::prepare_other(name, version, sections, plan)
        .and_then(|()| checks(sections, plan))
        .and_then(|()| profile::prepare(sections, plan))
        .and_then(|profile| Ok((profile, translate(family, version, &environment, sections, plan)?)));
    let (profile, args) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            say(&error.what, error.hint.as_deref());
            return ExitCode::from(exit::USAGE);
        }
    };
    let mut command = Command::new(program);
    command.args(first).args(&args);
    // A job inside a job of ours is not part of it.
    for variable in limosa_job::config::VARIABLES.iter().filter(|v| v.audience != limosa_job::config::Audience::User) {
        command.env_remove(variable.name);
    }
    command.envs(environment);
    if sections.iter().any(|s| s.verbose) {
        say(&format!("running on {version}: {command:?}"), None);
    }
    let error = match profile {
        None => command.exec(),
        Some(profile) => match wait_for(command) {
            Ok(status) => {
                profile.show();
                let code = status.code().or(status.signal().map(|signal| 128 + signal));
                return ExitCode::from(code.unwrap_or(1) as u8);
            }
            Err(error) => error,
        },
    };
    say(&format!("cannot run {program}: {error}"), None);
    ExitCode::from(exit::ENVIRONMENT)
}

/// Runs the launcher as a child and waits for its end. Signals to this process are passed on to it; those of a key go
/// to both anyway.
fn wait_for(mut command: Command) -> io::Result<ExitStatus> {
    const PASSED_ON: [i32; 6] =
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
    let this = std::process::id();
    // SAFETY: plain calls on sets of this function's; the first one makes the new one.
    let (set, before) = unsafe {
        let (mut set, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigemptyset(&mut set);
        for signal in PASSED_ON.iter().chain([&libc::SIGCHLD]) {
            libc::sigaddset(&mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
        (set, before)
    };
    // SAFETY: the closure calls async-signal-safe functions only.
    unsafe { command.pre_exec(move || sys::end_with(this)) };
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            // SAFETY: the mask is the one from before.
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
            return Ok(status);
        }
        // SAFETY: the signal is written to our variable; the child is not waited for yet, so its number is its own.
        unsafe {
            let mut info = std::mem::zeroed::<libc::siginfo_t>();
            let signal = libc::sigwaitinfo(&set, &mut info);
            if PASSED_ON.contains(&signal) && info.si_code != libc::SI_KERNEL {
                libc::kill(child.id() as i32, signal);
            }
        }
    }
}

/// The options by which a library of ours stands before the other one, in words; that takes the standard ABI.
fn standing_before(sections: &[Options]) -> String {
    let options = [
        ("--check", sections.iter().any(|section| section.check)),
        ("--profile", sections.iter().any(|section| section.profile.is_some())),
    ];
    let wanted: Vec<&str> = options.into_iter().filter_map(|(name, is_wanted)| is_wanted.then_some(name)).collect();
    wanted.join(" and ")
}

/// With `--check`, loads the library that checks calls; Limosa does that itself.
fn checks(sections: &[Options], plan: &mut Plan) -> Result<(), Unusable> {
    if sections.iter().all(|section| !section.check) {
        return Ok(());
    }
    let Some(library) = installation::own_library("liblimosa_check.so") else {
        return Err(Unusable {
            what: "--check: what checks calls on other libraries is not installed with this command".into(),
            hint: Some("install the wheel of Limosa again: it holds lib/limosa/liblimosa_check.so".into()),
        });
    };
    plan.apps.iter_mut().for_each(|app| preload(&library, app));
    Ok(())
}

/// The words behind the launcher's own. `environment`: what the library needs.
fn translate(
    family: Family,
    version: &str,
    environment: &[(&str, &str)],
    sections: &[Options],
    plan: &Plan,
) -> Result<Vec<OsString>, Unusable> {
    let bind_to = sections.iter().find_map(|s| s.bind_to);
    refuse_our_own(family, version, sections, plan)?;
    let wdir = &plan.apps[0].wdir;
    if family != Family::Prrte && plan.apps.iter().any(|app| app.wdir != *wdir) {
        let why = "give all programs the same one, or let them change it themselves";
        return Err(refusal(version, "a different -wdir for each program", why));
    }
    let job = JobOptions {
        tagged: sections.iter().any(|s| s.tag_output),
        hosts: sections.iter().find_map(|s| s.host.as_ref()),
        hostfile: sections.iter().find_map(|s| s.hostfile.as_ref()),
        per_host: sections.iter().find_map(|s| s.per_host),
        map_by: sections.iter().find_map(|s| s.map_by),
        universe: sections.iter().find_map(|s| s.universe_size),
    };
    let mut args = match family {
        Family::Hydra => hydra(&job, version, environment, plan)?,
        Family::Prrte => prrte(&job, version, plan)?,
        Family::Unknown => unknown(&job, version, plan)?,
    };
    if let Some(bind_to) = bind_to {
        args.extend(["--bind-to".into(), bind_to.word().into()]);
    }
    // What means nothing here may mean something there.
    let is_known = |dropped: &&foreign::Dropped| match dropped.family {
        foreign::Family::Hydra => family == Family::Hydra,
        foreign::Family::Prrte => family == Family::Prrte,
    };
    args.extend(sections.iter().flat_map(|s| &s.dropped).filter(is_known).flat_map(|dropped| dropped.words.clone()));
    for (i, (app, section)) in plan.apps.iter().zip(sections).enumerate() {
        args.extend((i > 0).then(|| ":".into()));
        args.extend(["-n".into(), section.count.unwrap_or(1).to_string().into()]);
        args.extend(local_options(family, app));
        args.push(app.program.clone().into_os_string());
        args.extend_from_slice(&app.args);
    }
    Ok(args)
}

/// Refuses options that only this launcher has, or that are not known there.
fn refuse_our_own(family: Family, version: &str, sections: &[Options], plan: &Plan) -> Result<(), Unusable> {
    let refused = |option: &str, why: &str| Err(refusal(version, option, why));
    if sections.iter().any(|s| s.on_hang.is_some()) {
        return refused("--on-hang", "only Limosa notices hangs: leave --on-hang or --mpi out");
    }
    if sections.iter().any(|s| s.timeout.is_some()) {
        return refused("--timeout", "write `timeout SECONDS` before the command");
    }
    if sections.iter().any(|s| s.output_filename.is_some()) {
        return refused("--output-filename", "each launcher has an option of its own for that");
    }
    if sections.iter().any(|s| s.report_bindings) {
        return refused("--report-bindings", "each launcher has an option of its own for that");
    }
    if sections.iter().any(|s| s.bind_to.is_some()) && family == Family::Unknown {
        return refused("--bind-to", "it is not known what that launcher understands");
    }
    if sections.iter().any(|s| s.debug.is_some()) {
        return refused("--debug", "put the command of the debugger before the program of that rank");
    }
    if plan.stdin != Stdin::Rank(0) && family != Family::Prrte {
        return refused("--stdin", "rank 0 reads standard input there");
    }
    Ok(())
}

/// The options of a whole job that have translations.
struct JobOptions<'a> {
    tagged: bool,
    hosts: Option<&'a String>,
    hostfile: Option<&'a PathBuf>,
    per_host: Option<u32>,
    map_by: Option<MapBy>,
    universe: Option<u32>,
}

fn refusal(version: &str, option: &str, why: &str) -> Unusable {
    Unusable { what: format!("{option} is not supported by the launcher of {version}"), hint: Some(why.to_owned()) }
}

fn hydra(
    job: &JobOptions,
    version: &str,
    environment: &[(&str, &str)],
    plan: &Plan,
) -> Result<Vec<OsString>, Unusable> {
    if job.hosts.is_some() && job.hostfile.is_some() {
        return Err(refusal(version, "-host together with a host file", "give one of them"));
    }
    let mut args: Vec<OsString> = Vec::new();
    let per_host = match job.map_by {
        Some(MapBy::Node) => Some(1),
        Some(MapBy::PerNode(number)) => Some(number),
        Some(MapBy::Slot) | None => None,
    };
    if let Some(number) = job.per_host.or(per_host) {
        args.extend(["-ppn".into(), number.to_string().into()]);
    }
    args.extend(job.universe.into_iter().flat_map(|size| ["-usize".into(), size.to_string().into()]));
    args.extend(job.tagged.then(|| "-l".into()));
    args.extend(job.hosts.into_iter().flat_map(|list| ["-hosts".into(), list.into()]));
    args.extend(job.hostfile.into_iter().flat_map(|file| ["-f".into(), file.into()]));
    args.extend(plan.apps[0].wdir.iter().flat_map(|dir| ["-wdir".into(), dir.into()]));
    if plan.apps[0].clear_env {
        args.push("-genvnone".into());
        args.extend(environment.iter().flat_map(|(name, value)| ["-genv".into(), name.into(), value.into()]));
    }
    Ok(args)
}

fn prrte(job: &JobOptions, version: &str, plan: &Plan) -> Result<Vec<OsString>, Unusable> {
    if plan.apps.iter().any(|app| app.clear_env) {
        return Err(refusal(version, "passing on no variables", "unset them before"));
    }
    if job.universe.is_some() {
        return Err(refusal(version, "--universe-size", "there it is the number of slots of the hosts"));
    }
    let mut args: Vec<OsString> = Vec::new();
    let map_by = match (job.per_host, job.map_by) {
        (Some(number), _) | (None, Some(MapBy::PerNode(number))) => Some(format!("ppr:{number}:node")),
        (None, Some(MapBy::Node)) => Some("node".into()),
        (None, Some(MapBy::Slot)) => Some("slot".into()),
        (None, None) => None,
    };
    args.extend(map_by.into_iter().flat_map(|how| ["--map-by".into(), how.into()]));
    args.extend(job.tagged.then_some(["--output", "tag"]).into_iter().flatten().map(OsString::from));
    args.extend(job.hosts.into_iter().flat_map(|list| ["--host".into(), list.into()]));
    args.extend(job.hostfile.into_iter().flat_map(|file| ["--hostfile".into(), file.into()]));
    let who = match plan.stdin {
        Stdin::Rank(rank) => rank.to_string(),
        Stdin::All => "all".into(),
        Stdin::None => "none".into(),
    };
    args.extend(["--stdin".into(), who.into()]);
    Ok(args)
}

fn unknown(job: &JobOptions, version: &str, plan: &Plan) -> Result<Vec<OsString>, Unusable> {
    let needed = [
        ("-l", job.tagged),
        ("--host", job.hosts.is_some()),
        ("--hostfile", job.hostfile.is_some()),
        ("-ppn", job.per_host.is_some()),
        ("--map-by", job.map_by.is_some()),
        ("--universe-size", job.universe.is_some()),
        ("-wdir", plan.apps[0].wdir.is_some()),
        ("-x", plan.apps.iter().any(|app| app.clear_env || !app.env.is_empty())),
    ];
    match needed.into_iter().find(|(_, is_needed)| *is_needed) {
        Some((option, _)) => Err(refusal(version, option, "its options are not known; only -n is passed on")),
        None => Ok(Vec::new()),
    }
}

/// The options in front of one program.
fn local_options(family: Family, app: &App) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    for (name, value) in &app.env {
        match family {
            Family::Hydra => args.extend(["-env".into(), name.clone(), value.clone()]),
            _ => args.extend(["-x".into(), [name.as_os_str(), value].join(std::ffi::OsStr::new("="))]),
        }
    }
    if let Some(dir) = app.wdir.as_ref().filter(|_| family == Family::Prrte) {
        args.extend(["--wdir".into(), dir.into()]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::super::{options, plan};
    use super::*;

    fn words(family: Family, line: &str) -> Result<String, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let sections = options::parse("limosa run", &args).unwrap();
        let plan = plan::plan(&sections).unwrap();
        let words = translate(family, "Other 1.0", &[("LIB", "/l")], &sections, &plan).map_err(|error| error.what)?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn our_options_are_said_in_the_launchers_own_words() {
        let line = "--mpi other -l -n 3 -x A=1 -wdir /tmp /bin/echo -n x : -n 1 -wdir /tmp /bin/true";
        assert_eq!(
            words(Family::Hydra, line).unwrap(),
            "-l -wdir /tmp -n 3 -env A 1 /bin/echo -n x : -n 1 -env A 1 /bin/true"
        );
        assert_eq!(
            words(Family::Prrte, line).unwrap(),
            "--output tag --stdin 0 -n 3 -x A=1 --wdir /tmp /bin/echo -n x : -n 1 -x A=1 --wdir /tmp /bin/true"
        );
        assert_eq!(words(Family::Unknown, "--mpi other -n 2 /bin/true").unwrap(), "-n 2 /bin/true");
    }

    #[test]
    fn what_the_library_needs_is_passed_on_even_if_nothing_else_is() {
        assert_eq!(
            words(Family::Hydra, "--mpi other -genvnone /bin/true").unwrap(),
            "-genvnone -genv LIB /l -n 1 /bin/true"
        );
    }

    #[test]
    fn other_hosts_are_the_other_launchers_business() {
        assert_eq!(words(Family::Hydra, "--mpi other -host a,b -n 2 /bin/true").unwrap(), "-hosts a,b -n 2 /bin/true");
        let line = "--mpi other -ppn 2 --mca btl self -iface lo -n 2 /bin/true";
        assert_eq!(words(Family::Hydra, line).unwrap(), "-ppn 2 --iface lo -n 2 /bin/true");
        let passed = "--map-by ppr:2:node --stdin 0 --mca btl self -n 2 /bin/true";
        assert_eq!(words(Family::Prrte, line).unwrap(), passed);
    }

    #[test]
    fn what_has_no_translation_is_refused() {
        for (family, line, option) in [
            (Family::Hydra, "--mpi other --on-hang=abort /bin/true", "--on-hang"),
            (Family::Hydra, "--mpi other --stdin all /bin/true", "--stdin"),
            (Family::Hydra, "--mpi other -wdir /tmp /bin/true : -wdir / /bin/true", "a different -wdir"),
            (Family::Unknown, "--mpi other -l /bin/true", "-l"),
            (Family::Unknown, "--mpi other -ppn 2 /bin/true", "-ppn"),
            (Family::Prrte, "--mpi other -usize 2 /bin/true", "--universe-size"),
            (Family::Hydra, "--mpi other -host a -hostfile b /bin/true", "-host together with a host file"),
            (Family::Unknown, "--mpi other -x A=1 /bin/true", "-x"),
        ] {
            let what = words(family, line).unwrap_err();
            assert!(
                what.starts_with(option) && what.ends_with("is not supported by the launcher of Other 1.0"),
                "{what}"
            );
        }
    }
}
