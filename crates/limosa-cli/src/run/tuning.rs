//! The tuning file, which `limosa tune` writes: what it has found of MPI libraries on this machine.
//!
//! For Limosa it holds rows for the table of collective algorithms. They count whenever the file is in its usual place,
//! or where `LIMOSA_TUNING` or `--tuned=FILE` says. For another library it holds rules by which its collectives are
//! done by others: with `--tuned`, a library that follows them is loaded before it.
//!
//! Contract: the launcher alone reads the file, and gives all ranks the same. A file that is damaged, or of another
//! machine, or another version of the library, is ignored, with a line that says why. A file that was asked for and is
//! not there ends the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use limosa_job::{ENV_COLL_TUNED, config};
use serde_json::Value;

use super::options::{Options, Unusable};
use super::plan::Plan;
use super::profile::preload;
use crate::installation;
use crate::message::say;

/// The format that is read.
const FORMAT: u64 = 1;
/// The rules for the library that replaces collectives.
const RULES: &str = "LIMOSA_TUNED";

/// The tuning file of a job, and whether it was asked for by name.
struct File {
    path: PathBuf,
    is_named: bool,
}

/// Gives the ranks what the tuning file says of Limosa.
pub fn prepare(sections: &[Options], plan: &mut Plan) -> Result<(), Unusable> {
    // An outer job's rows are not this one's.
    let is_set = std::env::var_os(ENV_COLL_TUNED).is_some();
    let rows = match file(sections) {
        Some(file) => read(&file, "limosa", &format!("Limosa {}", env!("CARGO_PKG_VERSION")), "rows")?,
        None => None,
    };
    for app in plan.apps.iter_mut().filter(|_| is_set || rows.is_some()) {
        app.env.push((ENV_COLL_TUNED.into(), rows.clone().unwrap_or_default().into()));
    }
    Ok(())
}

/// With `--tuned`, loads the library that replaces collectives of another library. `version`: what that says it is.
pub fn prepare_other(name: &str, version: &str, sections: &[Options], plan: &mut Plan) -> Result<(), Unusable> {
    if sections.iter().all(|section| section.tuned.is_none()) {
        return Ok(());
    }
    let Some(file) = file(sections) else {
        return Err(Unusable {
            what: format!("--tuned: there is no tuning file {}", usual_place().unwrap_or_default().display()),
            hint: Some(format!("`limosa tune --against {name}` makes it")),
        });
    };
    let Some(rules) = read(&file, name, version, "rules")? else { return Ok(()) };
    let Some(library) = installation::own_library("liblimosa_tuned.so") else {
        return Err(Unusable {
            what: "--tuned: what replaces collectives is not installed with this command".into(),
            hint: Some("install the wheel of Limosa again: it holds lib/limosa/liblimosa_tuned.so".into()),
        });
    };
    for app in &mut plan.apps {
        preload(&library, app);
        app.env.push((RULES.into(), OsString::from(&rules)));
    }
    Ok(())
}

/// Where the file is, if it is anywhere.
fn file(sections: &[Options]) -> Option<File> {
    let given = sections.iter().find_map(|section| section.tuned.as_ref()).filter(|path| !path.is_empty());
    let (config, _) = config::parse(std::env::vars_os());
    let named = given.cloned().or(config.tuning.map(OsString::from));
    match named {
        Some(path) if path == "off" => None,
        Some(path) => Some(File { path: path.into(), is_named: true }),
        None => usual_place().filter(|path| path.exists()).map(|path| File { path, is_named: false }),
    }
}

/// Where `limosa tune` puts the file.
fn usual_place() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(config.join("limosa/tuning.json"))
}

/// What the file says of a library: a text for the ranks; `None` if it says nothing, or is not for this machine or
/// version.
fn read(file: &File, library: &str, version: &str, field: &str) -> Result<Option<String>, Unusable> {
    let text = match std::fs::read_to_string(&file.path) {
        Ok(text) => text,
        Err(error) if file.is_named && error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Unusable {
                what: format!("there is no tuning file {}", file.path.display()),
                hint: Some("`limosa tune` makes one; LIMOSA_TUNING=off does without".into()),
            });
        }
        Err(error) => {
            ignore(&file.path, &format!("it cannot be read: {error}"));
            return Ok(None);
        }
    };
    Ok(lines(&text, library, version, field, &machine()).unwrap_or_else(|reason| {
        ignore(&file.path, &reason);
        None
    }))
}

fn ignore(path: &Path, reason: &str) {
    let hint = "`limosa tune` makes a new one; LIMOSA_TUNING=off does without";
    say(&format!("warning: the tuning file {} is ignored: {reason}", path.display()), Some(hint));
}

/// What a file's text says of a library, separated by semicolons, or why it is not to be used.
fn lines(
    text: &str,
    library: &str,
    version: &str,
    field: &str,
    machine: &(String, u64),
) -> Result<Option<String>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("it is damaged: {error}"))?;
    let damaged = |what: &str| format!("it is damaged: {what} is missing, or not what it should be");
    let format = file["format"].as_u64().ok_or_else(|| damaged("`format`"))?;
    if format != FORMAT {
        return Err(format!("it has format {format}, and this version reads format {FORMAT}"));
    }
    let cpu = file["machine"]["cpu"].as_str().ok_or_else(|| damaged("`machine.cpu`"))?;
    let processors = file["machine"]["processors"].as_u64().ok_or_else(|| damaged("`machine.processors`"))?;
    if (cpu, processors) != (machine.0.as_str(), machine.1) {
        return Err(format!(
            "it was made on another machine: {processors} processors `{cpu}`, and here are {} processors `{}`",
            machine.1, machine.0
        ));
    }
    let libraries = file["libraries"].as_object().ok_or_else(|| damaged("`libraries`"))?;
    let Some(own) = libraries.get(library) else { return Ok(None) };
    let of = own["version"].as_str().ok_or_else(|| damaged(&format!("`version` of {library}")))?;
    if !version.split_whitespace().any(|word| word == of) {
        return Err(format!("it was made for version {of} of {library}, and this is {version}"));
    }
    let lines = own[field].as_array().ok_or_else(|| damaged(&format!("`{field}` of {library}")))?;
    let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
    let text = lines.ok_or_else(|| damaged(&format!("a line in `{field}` of {library}")))?.join(";");
    if text.contains(['\n', '\0']) {
        return Err(damaged(&format!("a line in `{field}` of {library}")));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The processor's name, and how many of them this process may use: as `limosa_lab.machine` has them.
fn machine() -> (String, u64) {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = info.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == "model name");
    let name = field.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, value)| value.trim().to_owned());
    (name, std::thread::available_parallelism().map_or(1, |number| number.get() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"format": 1, "machine": {"cpu": "Z80", "processors": 4}, "libraries": {
        "limosa": {"version": "0.1.0", "rows": ["bcast shared 4 * - rounds", "reduce shared 4 * - rounds"]},
        "mpich": {"version": "5.0.2", "rules": []}}}"#;

    fn of(text: &str, library: &str, version: &str, field: &str) -> Result<Option<String>, String> {
        lines(text, library, version, field, &("Z80".into(), 4))
    }

    #[test]
    fn lines_are_those_of_the_library() {
        let rows = of(FILE, "limosa", "Limosa 0.1.0", "rows").unwrap();
        assert_eq!(rows.as_deref(), Some("bcast shared 4 * - rounds;reduce shared 4 * - rounds"));
        assert_eq!(of(FILE, "mpich", "MPICH 5.0.2", "rules"), Ok(None));
        assert_eq!(of(FILE, "intel", "Intel 2021", "rules"), Ok(None));
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_the_reason() {
        for (from, to, reason) in [
            ("Z80", "6502", "it was made on another machine: 4 processors `6502`, and here are 4 processors `Z80`"),
            ("\"processors\": 4", "\"processors\": 8", "another machine: 8 processors"),
            ("0.1.0", "0.0.9", "it was made for version 0.0.9 of limosa, and this is Limosa 0.1.0"),
            ("\"format\": 1", "\"format\": 2", "it has format 2, and this version reads format 1"),
            ("\"format\": 1", "\"format\": \"1\"", "it is damaged: `format` is missing"),
            ("\"rows\": [", "\"rows\": [1, ", "a line in `rows` of limosa"),
            ("\"rows\"", "\"columns\"", "`rows` of limosa is missing"),
            ("\"cpu\"", "\"gpu\"", "`machine.cpu` is missing"),
            ("rounds\"", "rounds\\n\"", "a line in `rows` of limosa"),
            ("}}}", "", "it is damaged: EOF"),
        ] {
            let told = of(&FILE.replace(from, to), "limosa", "Limosa 0.1.0", "rows").expect_err(to);
            assert!(told.contains(reason), "{told}");
        }
        assert!(of("", "limosa", "Limosa 0.1.0", "rows").unwrap_err().contains("damaged"));
        assert!(of("[]", "limosa", "Limosa 0.1.0", "rows").unwrap_err().contains("damaged"));
    }
}
