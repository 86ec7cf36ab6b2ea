//! `limosa env`: the `LIMOSA_*` variables with their current values.

use std::process::ExitCode;

use clap::Args;
use limosa_job::config::{Audience, VARIABLES, parse};
use serde_json::json;

use crate::message::{Format, print, say};

/// Options of `limosa env`.
#[derive(Args)]
pub struct Options {
    /// How to write the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// List also the variables that the launcher sets for the ranks
    #[arg(long)]
    all: bool,
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let (config, complaints) = parse(std::env::vars_os());
    let shown = VARIABLES.iter().filter(|v| options.all || v.audience == Audience::User);
    let value = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    match options.format {
        Format::Json => {
            let list: Vec<_> = shown
                .map(|v| {
                    json!({ "name": v.name, "value": value(v.name), "default": v.default, "form": v.form.describe(),
                            "text": v.text,
                            "set_by": if v.audience == Audience::User { "user" } else { "launcher" } })
                })
                .collect();
            print(&format!("{:#}\n", json!(list)));
        }
        Format::Text => {
            for v in shown {
                let setting = match value(v.name) {
                    Some(value) => format!("{}={value}", v.name),
                    None if v.default.is_empty() => format!("{} is not set", v.name),
                    None => format!("{}={} (default)", v.name, v.default),
                };
                print(&format!("{setting:<40} {} [{}]\n", v.text, v.form.describe()));
            }
        }
    }
    for complaint in complaints.into_iter().chain(config.refusal) {
        say(&format!("warning: {complaint}"), None);
    }
    ExitCode::SUCCESS
}
