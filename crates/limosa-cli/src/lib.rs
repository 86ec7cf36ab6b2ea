//! The `limosa` command: start MPI programs, look at them, check the machine.
//!
//! Called as `mpiexec` or `mpirun` it is `limosa run`. Data goes to stdout, everything else to stderr. Exit codes: see
//! `exit`.
//!
//! What reads words and bytes from outside is public for the fuzz targets (`tests/fuzz`).

mod completion;
mod doctor;
mod env;
mod exit;
pub mod hang;
mod installation;
mod message;
mod messages;
mod new;
mod procfs;
mod ps;
mod python;
pub mod run;
mod running;
mod stack;
mod sys;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Run MPI programs on one or several hosts, show what they do, check the machine.
#[derive(Parser)]
#[command(name = "limosa", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(
    after_help = "More commands: report, predict, study, messages, modernize, completion. mpiexec and mpirun are \
                        `limosa run`."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program in several processes
    #[command(disable_help_flag = true)]
    Run {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Measure the library, alone or beside other MPI libraries
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Predict what a collective operation costs on more processes and hosts
    #[command(disable_help_flag = true, hide = true)]
    Predict {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Show the profiles that `limosa run --profile` has recorded
    #[command(disable_help_flag = true)]
    Profile {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Put everything that was measured on one page of HTML
    #[command(disable_help_flag = true, hide = true)]
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Measure MPI libraries, and fit models that predict what communication costs
    #[command(disable_help_flag = true)]
    Model {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Find faster ways for collectives on this machine, for `limosa run` to use
    #[command(disable_help_flag = true)]
    Tune {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Repeat published measurements: of Python modules for MPI, of messages by files
    #[command(disable_help_flag = true, hide = true)]
    Study {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Start an interactive session on several processes
    #[command(disable_help_flag = true)]
    Shell {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Start a command in the background; `limosa status`, `log` and `cancel` look after it
    #[command(disable_help_flag = true)]
    Submit {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Show what has become of submitted jobs
    #[command(disable_help_flag = true, hide = true)]
    Status {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Print what a submitted job has written
    #[command(disable_help_flag = true, hide = true)]
    Log {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// End submitted jobs
    #[command(disable_help_flag = true, hide = true)]
    Cancel {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Turn Python 2 sources into Python 3
    #[command(disable_help_flag = true, hide = true)]
    Modernize {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Compile a C program: what `mpicc` does, even if another package has installed a command of that name
    #[command(disable_help_flag = true)]
    Cc {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        args: Vec<OsString>,
    },
    /// Starts the ranks of one host; for the launcher
    #[command(hide = true)]
    Agent {
        /// Brings a new connection to the agent of this job and host
        #[arg(long, num_args = 2, value_names = ["ID", "HOST"])]
        again: Vec<String>,
    },
    /// Brings a connection to the courier of a job on this host; for couriers
    #[command(hide = true)]
    Courier { id: String, host: u32 },
    /// Print the completion of the command line for a shell, or write man pages
    #[command(hide = true)]
    Completion(completion::Options),
    /// Check whether this machine is ready for MPI programs, and say what to do
    Doctor(doctor::Options),
    /// List the LIMOSA_* variables with their current values
    Env(env::Options),
    /// List the messages in the files of a folder (see `limosa run --device file:DIR`)
    #[command(hide = true)]
    Messages(messages::Options),
    /// Write a commented first program and its test: Python, C, C++, Fortran, Octave or Java
    New(new::Options),
    /// Show the running jobs and what each rank is doing
    Ps(ps::Options),
    /// Show where every rank of a job is now: the stacks of all its threads
    Stack(stack::Options),
}

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    let args = with_options_for_words(std::env::args_os().collect());
    if let Some(name) = args.first().and_then(|program| launcher_name(program)) {
        return run::main(name, &args[1..]);
    }
    // The launcher's options have forms that clap does not know (`-np 4`, `-genv A B`, `:`), so it reads them itself.
    if args.get(1).is_some_and(|arg| arg == "run") {
        return run::main("limosa run", &args[2..]);
    }
    match Cli::parse_from(args).command {
        Command::Run { args } => run::main("limosa run", &args),
        Command::Bench { args } => laboratory("bench", args),
        Command::Model { args } => laboratory("model", args),
        Command::Tune { args } => laboratory("tune", args),
        Command::Predict { args } => laboratory("predict", args),
        Command::Profile { args } => laboratory("profile", args),
        Command::Report { args } => laboratory("report", args),
        Command::Study { args } => laboratory("study", args),
        Command::Shell { args } => python::hand_over("limosa shell", python::LIMOSA, "limosa.shell", &args),
        Command::Submit { args } => background("submit", args),
        Command::Status { args } => background("status", args),
        Command::Log { args } => background("log", args),
        Command::Cancel { args } => background("cancel", args),
        Command::Modernize { args } => python::hand_over("limosa modernize", python::LIMOSA, "limosa.modernize", &args),
        Command::Cc { args } => compile(&args),
        Command::Agent { again } => match &again[..] {
            [id, host] => run::hosts::agent::again(id, host.parse().unwrap_or(u32::MAX)),
            _ => run::hosts::agent::main(),
        },
        Command::Courier { id, host } => run::hosts::courier::door(&id, host),
        Command::Completion(options) => completion::main(&options, &Cli::command()),
        Command::Doctor(options) => doctor::main(&options),
        Command::Env(options) => env::main(&options),
        Command::Messages(options) => messages::main(&options),
        Command::New(options) => new::main(&options),
        Command::Ps(options) => ps::main(&options),
        Command::Stack(options) => stack::main(&options),
    }
}

/// `limosa help` and `limosa version` as the options of these names, `limosa help run` as `limosa run --help`.
fn with_options_for_words(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_launcher = args.first().is_some_and(|program| launcher_name(program).is_some());
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") if !is_launcher => {
            args.remove(1);
            args.truncate(2);
            args.push("--help".into());
        }
        Some("version") if !is_launcher => {
            args.truncate(1);
            args.push("--version".into());
        }
        _ => {}
    }
    args
}

/// The compiler wrapper, with what it finds beside itself found beside this command.
fn compile(args: &[OsString]) -> ExitCode {
    use std::os::unix::process::CommandExt;

    const WRAPPER: &str = include_str!("../../../python/scripts/mpicc");
    // A name of no file: what lies there as mpicc may be a link to somewhere else.
    let name = std::env::current_exe().unwrap_or_default().with_file_name("limosa-cc");
    let error = std::process::Command::new("sh").args(["-c", WRAPPER]).arg(name).args(args).exec();
    message::say(&format!("cannot run sh: {error}"), None);
    ExitCode::from(exit::ENVIRONMENT)
}

/// A command that the laboratory carries out.
fn laboratory(command: &str, args: Vec<OsString>) -> ExitCode {
    let args: Vec<OsString> = std::iter::once(command.into()).chain(args).collect();
    python::hand_over(&format!("limosa {command}"), python::LABORATORY, "limosa_lab", &args)
}

/// A command about jobs in the background.
fn background(command: &str, args: Vec<OsString>) -> ExitCode {
    let args: Vec<OsString> = std::iter::once(command.into()).chain(args).collect();
    python::hand_over(&format!("limosa {command}"), python::LIMOSA, "limosa.jobs", &args)
}

/// The name of the launcher if the command is called by one.
fn launcher_name(program: &std::ffi::OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_name()?.to_str()?;
    ["mpiexec", "mpirun"].into_iter().find(|known| name == *known || name.starts_with(&format!("{known}.")))
}
