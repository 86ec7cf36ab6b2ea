//! `limosa completion`: completion of the command line for shells, and man pages, from the definition of the commands.
//!
//! The options of commands in Python are in `python_commands.json`, which `python/tools/python_commands.py` writes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, Args, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use serde_json::{Map, Value};

use crate::message::{print, say};
use crate::{exit, run};

/// Options of `limosa completion`.
#[derive(Args)]
#[command(
    after_help = "In bash: source <(limosa completion bash). An installed Limosa has these files below share/ of its \
                        environment; if that is active, man and bash-completion 2.12 find them by themselves."
)]
pub struct Options {
    /// Shell to print the completion for
    #[arg(value_enum, required_unless_present = "man")]
    shell: Option<Shell>,
    /// Write a man page of each command into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "shell")]
    man: Option<PathBuf>,
}

/// Runs the command. `short`: the command line as clap reads it.
pub fn main(options: &Options, short: &Command) -> ExitCode {
    if let Some(folder) = &options.man {
        return match write_pages(folder, short) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("cannot write man pages into {}: {error}", folder.display()), None);
                ExitCode::from(exit::ENVIRONMENT)
            }
        };
    }
    let Some(shell) = options.shell else { return ExitCode::from(exit::USAGE) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut limosa(short), "limosa", &mut script);
    for name in ["mpiexec", "mpirun"] {
        clap_complete::generate(shell, &mut launcher(), name, &mut script);
    }
    print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Writes `limosa.1`, a page for each command, and those of the launcher's other names.
fn write_pages(folder: &Path, short: &Command) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(limosa(short), folder)?;
    for entry in std::fs::read_dir(folder)? {
        let page = entry?.path();
        // The examples keep their lines.
        let text = std::fs::read_to_string(&page)?.replace(".SH EXTRA\n", ".SH NOTES\n.nf\n");
        std::fs::write(page, text)?;
    }
    for name in ["mpiexec", "mpirun"] {
        std::fs::write(folder.join(name).with_extension("1"), ".so man1/limosa-run.1\n")?;
    }
    Ok(())
}

/// The whole command line: also the options that the launcher and Python read, and commands that the help leaves out.
fn limosa(short: &Command) -> Command {
    let in_python: &'static Map<String, Value> = Box::leak(Box::new(
        serde_json::from_str(include_str!("python_commands.json")).expect("the file is written by json.dumps"),
    ));
    let commands = short.get_subcommands().filter(|command| !INTERNAL.contains(&command.get_name())).map(|command| {
        let whole = match in_python.get(command.get_name()) {
            Some(description) => described(command.clone(), description),
            None if command.get_name() == "run" => launcher(),
            None => command.clone(),
        };
        let about = command.get_about().cloned().unwrap_or_default();
        whole.name(command.get_name().to_owned()).about(about).hide(false)
    });
    let about = short.get_about().cloned().unwrap_or_default();
    Command::new("limosa").version(env!("CARGO_PKG_VERSION")).about(about).subcommands(commands)
}

/// Commands that the launcher itself starts.
const INTERNAL: [&str; 2] = ["agent", "courier"];

/// The command line of `limosa run`.
fn launcher() -> Command {
    let program =
        |arg: Arg| arg.hide(false).trailing_var_arg(true).value_hint(ValueHint::CommandWithArguments).help("Program");
    // Man pages leave out the help of an option that the short help leaves out.
    run::options::Options::command().mut_args(|arg| arg.hide_short_help(false)).mut_arg("command", program)
}

/// A command with the options of its parser in Python.
fn described(command: Command, description: &'static Value) -> Command {
    let text = |value: &'static Value, key: &str| value[key].as_str().unwrap_or_default();
    let list = |value: &'static Value| value.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let arguments = list(&description["arguments"]).enumerate().map(move |(number, given)| {
        let value = given["value"].as_str();
        let mut arg = Arg::new(format!("argument{number}")).help(text(given, "help"));
        for option in list(&given["options"]).filter_map(Value::as_str) {
            arg = match option.strip_prefix("--") {
                Some(long) => arg.long(long),
                None => arg.short(option.chars().nth(1)),
            };
        }
        arg = match value {
            Some(name) => arg.value_name(name).value_hint(match name {
                "DIR" | "FOLDER" => ValueHint::DirPath,
                "FILE" => ValueHint::FilePath,
                _ => ValueHint::Unknown,
            }),
            None => arg.action(ArgAction::SetTrue),
        };
        if let Some(choices) = given["choices"].as_array() {
            arg = arg.value_parser(choices.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        }
        if given["many"] == true { arg.num_args(1..).action(ArgAction::Append) } else { arg }
    });
    Command::new(command.get_name().to_owned())
        .long_about(text(description, "about"))
        .after_long_help(text(description, "epilog"))
        .args(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_described_with_its_options() {
        let passed_on = crate::Cli::command();
        let whole = limosa(&passed_on);
        whole.clone().debug_assert();
        let options = |name: &str| {
            let command = whole.find_subcommand(name).unwrap_or_else(|| panic!("no command {name}"));
            command.get_arguments().filter_map(Arg::get_long).collect::<Vec<_>>()
        };
        assert!(options("run").contains(&"on-hang"));
        assert!(options("bench").contains(&"against"));
        assert!(options("submit").contains(&"chdir"));
        assert!(whole.find_subcommand("agent").is_none());
        for command in passed_on.get_subcommands().filter(|command| command.is_disable_help_flag_set()) {
            let name = command.get_name();
            let described = whole.find_subcommand(name).and_then(|command| command.get_arguments().next());
            assert!(described.is_some_and(|arg| !arg.is_hide_set()) || name == "cc", "no arguments of {name}");
        }
    }
}
