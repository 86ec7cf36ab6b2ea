//! `limosa run`, also called `mpiexec` and `mpirun`.
//!
//! options → [`plan`] (everything that can be wrong is found here) → [`launch`] (processes, streams, signals, the end).

mod binding;
mod debugger;
mod ends;
mod files;
mod foreign;
mod guardian;
pub(crate) mod hosts;
mod input;
mod launch;
pub mod options;
mod other;
mod outcome;
pub mod output;
mod patience;
mod placement;
pub mod plan;
mod profile;
mod rank;
mod strangers;
mod stream;
mod tuning;

use std::ffi::OsString;
use std::process::ExitCode;

use limosa_job::config::{Config, OnHang};

use binding::BindTo;
use debugger::Debugged;
#[doc(hidden)]
pub use hosts::wire::again;

use crate::exit;
use crate::message::say;
use crate::{installation, python};

/// How long a rank may take to send a request that it has begun.
const REQUEST: std::time::Duration = std::time::Duration::from_secs(2);

/// What the launcher itself does, apart from the plan.
struct Settings {
    tag_output: bool,
    on_hang: OnHang,
    hang_after: std::time::Duration,
    hang_grace: std::time::Duration,
    verbose: bool,
    timeout: Option<std::time::Duration>,
    bind_to: BindTo,
    report_bindings: bool,
    show_map: bool,
    output: Option<options::Destination>,
    /// The rank under a debugger.
    debugged: Option<Debugged>,
    /// MPI_UNIVERSE_SIZE.
    universe: Option<u32>,
    /// What the environment of the ranks says.
    config: Config,
}

/// Runs the command. `called` is its name as the user knows it.
pub fn main(called: &str, args: &[OsString]) -> ExitCode {
    if args.iter().eq(["--adopt"].iter()) {
        return adopt();
    }
    if options::asks_for_libraries(args) {
        return list_libraries(called);
    }
    let sections = match options::parse(called, args) {
        Ok(sections) => sections,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    let other = options::library(&sections);
    if other == Some("list") {
        return list_libraries(called);
    }
    let unusable = |error: options::Unusable| {
        say(&error.what, error.hint.as_deref());
        ExitCode::from(exit::USAGE)
    };
    let mut plan = match plan::plan(&sections).and_then(hosts::check) {
        Ok(plan) => plan,
        Err(error) => return unusable(error),
    };
    if let Some(name) = other {
        return other::main(called, name, &sections, &mut plan);
    }
    let prepared = debugger::choose(&sections, &mut plan).and_then(|debugged| {
        let profile = profile::prepare(&sections, &mut plan)?;
        tuning::prepare(&sections, &mut plan).map(|()| (debugged, profile))
    });
    let (debugged, profile) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return unusable(error),
    };
    if let Some(prefix) = installation::damaged_prefix() {
        let (text, cure) = installation::complaint(&prefix, &installation::damage(&prefix));
        say(&format!("warning: {text}"), Some(&cure));
    }
    // Which device the ranks use, and whether they keep files, is the same for all of a job.
    let of_ranks = plan::config_of_ranks(&plan);
    if !is_usable(&sections, &plan, &of_ranks) {
        return ExitCode::from(exit::USAGE);
    }
    let settings = settings_of(&sections, of_ranks, debugged);
    match launch::launch(&plan, &settings) {
        Ok(code) => {
            if let Some(profile) = profile {
                profile.show();
            }
            ExitCode::from(code)
        }
        Err(error) => {
            say(&error.what, error.hint.as_deref());
            ExitCode::from(exit::ENVIRONMENT)
        }
    }
}

/// What the command line and the launcher's own variables say of the launcher; `of_ranks`: what the ranks will see.
fn settings_of(sections: &[options::Options], of_ranks: Config, debugged: Option<Debugged>) -> Settings {
    let (config, _) = limosa_job::config::parse(std::env::vars_os());
    let bind_to = sections.iter().find_map(|s| s.bind_to).unwrap_or(BindTo::None);
    // While a debugger has stopped a rank, the others wait, for as long as the user thinks.
    let is_debugging = debugged.is_some();
    let default_on_hang = if is_debugging { OnHang::Off } else { config.on_hang };
    Settings {
        // Of ranks that are threads, only Java knows which of them writes.
        tag_output: (config.tag_output || sections.iter().any(|s| s.tag_output)) && !sections.iter().any(|s| s.threads),
        on_hang: sections.iter().find_map(|s| s.on_hang).map_or(default_on_hang, OnHang::from),
        hang_after: config.hang_after,
        hang_grace: config.hang_grace,
        verbose: sections.iter().any(|s| s.verbose),
        timeout: sections.iter().find_map(|s| s.timeout).filter(|_| !is_debugging),
        bind_to,
        report_bindings: sections.iter().any(|s| s.report_bindings),
        show_map: sections.iter().any(|s| s.show_map),
        output: sections.iter().find_map(|s| s.output_filename.clone()),
        debugged,
        universe: sections.iter().find_map(|s| s.universe_size).or_else(universe_of_mpiexec),
        config: of_ranks,
    }
}

/// The size that the documentation of mpi4py.futures gives in a variable, as MPICH's launcher reads it.
fn universe_of_mpiexec() -> Option<u32> {
    std::env::var("MPIEXEC_UNIVERSE_SIZE").ok()?.trim().parse().ok().filter(|size| *size > 0)
}

/// Reports options that are not obeyed and wrong values of the ranks' variables. Returns whether ranks can start with
/// them.
fn is_usable(sections: &[options::Options], plan: &plan::Plan, of_ranks: &Config) -> bool {
    if sections.iter().any(|section| section.debug.is_some()) && sections.iter().any(|s| s.timeout.is_some()) {
        say("--timeout does not count with --debug", None);
    }
    for note in sections.iter().flat_map(|section| &section.dropped).filter_map(|option| option.note) {
        say(note, None);
    }
    if let Some(refusal) = &of_ranks.refusal {
        say(refusal, None);
        return false;
    }
    for complaint in plan::complaints(plan) {
        say(&format!("warning: {complaint}"), None);
    }
    true
}

/// Takes over the job of one that has started this process, and starts what it spawns.
fn adopt() -> ExitCode {
    let (config, _) = limosa_job::config::parse(std::env::vars_os());
    let settings = Settings {
        tag_output: config.tag_output,
        on_hang: config.on_hang,
        hang_after: config.hang_after,
        hang_grace: config.hang_grace,
        verbose: false,
        timeout: None,
        bind_to: BindTo::None,
        report_bindings: false,
        show_map: false,
        output: None,
        debugged: None,
        universe: None,
        config,
    };
    match launch::adopt::adopt(&settings) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&error.what, error.hint.as_deref());
            ExitCode::from(exit::ENVIRONMENT)
        }
    }
}

fn list_libraries(called: &str) -> ExitCode {
    python::hand_over(&format!("{called} --mpi list"), python::LIMOSA, "limosa.engines", &["list".into()])
}
