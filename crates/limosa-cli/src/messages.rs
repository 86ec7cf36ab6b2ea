//! `limosa messages`: the messages in the files of a folder, waiting or kept.
//!
//! The folder is that of a job (`limosa-ID`), or the one that was given to the device, with the folders of jobs in it.
//! See docs/file-messages.md for what lies there. Files of a running job may go while this command looks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use limosa_device::files::format::{self, Label};
use limosa_p2p::inspect::{Description, describe};
use serde_json::{Value, json};

use crate::exit;
use crate::message::{Format, print, say};

/// Options of `limosa messages`.
#[derive(Args)]
pub struct Options {
    /// How to write the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The folder: that of a job, or the one that was named as file:DIR
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// What has become of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    WithoutLock,
    Received,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::WithoutLock => "no lock",
            State::Received => "received",
        }
    }
}

/// A message file.
struct Found {
    job: String,
    label: Label,
    state: State,
    /// What is in it, or what is wrong with it.
    content: Result<Vec<Description>, String>,
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let found = match messages(&options.folder) {
        Ok(found) => found,
        Err(error) => {
            say(&format!("cannot read the folder {}: {error}", options.folder.display()), None);
            return ExitCode::from(exit::USAGE);
        }
    };
    match options.format {
        Format::Json => print(&format!("{:#}\n", Value::from(found.iter().map(as_json).collect::<Vec<_>>()))),
        Format::Text if found.is_empty() => {
            let hint = "messages that were received are there only if they are kept: limosa run --keep-messages ...";
            say(&format!("there are no messages in {}", options.folder.display()), Some(hint));
        }
        Format::Text => print(&as_text(&found)),
    }
    ExitCode::SUCCESS
}

/// All messages, in the order of their jobs, senders, receivers and numbers.
fn messages(folder: &Path) -> std::io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = fs::canonicalize(folder)?;
    for path in entries(&folder)? {
        if name(&path).starts_with("limosa-") && path.is_dir() {
            found.extend(of_job(&path, &name(&path))?);
        }
    }
    found.extend(of_job(&folder, &name(&folder))?);
    found.sort_by_key(|f| (f.job.clone(), f.label.from, f.label.to, f.label.number));
    Ok(found)
}

/// What is in a folder. One that has gone is empty.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn of_job(folder: &Path, job: &str) -> std::io::Result<Vec<Found>> {
    let number = |path: &Path| path.file_stem()?.to_str()?.parse::<u64>().ok();
    let process = |path: &Path| u32::try_from(number(path)?).ok();
    let mut found = Vec::new();
    let mut add = |path: &Path, label, state| {
        found.extend(content(path, label).map(|content| Found { job: job.to_owned(), label, state, content }));
    };
    for receiver in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let Some(to) = process(&receiver) else { continue };
        for sender in entries(&receiver)?.into_iter().filter(|path| path.is_dir()) {
            let Some(from) = process(&sender) else { continue };
            for path in entries(&sender)?.into_iter().filter(|path| path.extension() == Some("msg".as_ref())) {
                let state = if path.with_extension("lock").exists() { State::Waiting } else { State::WithoutLock };
                if let Some(number) = number(&path) {
                    add(&path, Label { from, to, number }, state);
                }
            }
        }
    }
    for path in entries(&folder.join("kept"))? {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let numbers: Vec<u64> = stem.split('-').filter_map(|word| word.parse().ok()).collect();
        if let [from, to, number] = numbers[..]
            && let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to))
        {
            add(&path, Label { from, to, number }, State::Received);
        }
    }
    Ok(found)
}

/// What is in a file; `None` if it has gone.
fn content(path: &Path, label: Label) -> Option<Result<Vec<Description>, String>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(format!("cannot be read: {error}"))),
    };
    let read = || {
        let (own, packets) = format::open(&bytes)?;
        if own != label {
            return Err("a message file with another name than it says");
        }
        packets.map(|packet| packet.map(|(meta, data)| describe(&meta, data))).collect()
    };
    Some(read().map_err(str::to_owned))
}

fn as_text(found: &[Found]) -> String {
    let mut text = String::new();
    let mut job = None;
    for file in found {
        if job != Some(&file.job) {
            text.push_str(&format!("{}{}\n", if job.is_some() { "\n" } else { "" }, file.job));
            text.push_str("   from     to    file  state         tag       bytes  what\n");
            job = Some(&file.job);
        }
        let Label { from, to, number } = file.label;
        let head = format!("{from:>7}{to:>7}{number:>8}  {:<8}", file.state.word());
        match &file.content {
            Err(why) => text.push_str(&format!("{head}{:>22}  {why}\n", "")),
            Ok(packets) => packets.iter().for_each(|packet| {
                let tag = packet.envelope.map_or("-".to_owned(), |(_, _, tag)| tag.to_string());
                text.push_str(&format!("{head}{tag:>9}{:>12}  {}\n", packet.bytes, packet.kind));
            }),
        }
    }
    text
}

fn as_json(file: &Found) -> Value {
    let Label { from, to, number } = file.label;
    let mut value = json!({ "job": file.job, "from": from, "to": to, "number": number, "state": file.state.word() });
    match &file.content {
        Err(why) => value["error"] = json!(why),
        Ok(packets) => {
            let packet = |packet: &Description| {
                let (context, source, tag) =
                    packet.envelope.map_or((None, None, None), |(c, s, t)| (Some(c), Some(s), Some(t)));
                json!({ "what": packet.kind, "bytes": packet.bytes, "context": context, "source": source, "tag": tag })
            };
            value["packets"] = packets.iter().map(packet).collect();
        }
    }
    value
}
