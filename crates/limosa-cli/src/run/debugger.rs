//! `limosa run --debug`: one rank runs under a debugger that has the launcher's terminal, or its standard streams.
//!
//! What the launcher does differently while the debugger runs is in `launch/debugging.rs`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::options::{Debugger, Options, Stdin, Unusable};
use super::plan::{App, Plan, RUN_SCRIPT, find_python, in_folders, is_python, is_run_by_interpreter};

/// What Python does with a script under pdb; a Python that has no package `limosa` uses pdb alone.
const UNDER_PDB: &str = "\
import sys
if sys.path[:1] == ['']: del sys.path[0]
try: from limosa._pdb import main
except ImportError:
    import os
    os.execv(sys.executable, [sys.executable, '-m', 'pdb', *sys.argv[1:]])
main()";

/// The rank that runs under a debugger.
#[derive(Debug)]
pub struct Debugged {
    /// World rank.
    pub rank: u32,
    /// Its debugger.
    pub debugger: Debugger,
    /// File of the debugger; for pdb that of Python.
    file: PathBuf,
}

impl Debugged {
    /// Returns the command that starts `app` under the debugger.
    pub fn command(&self, app: &App) -> App {
        let before: &[&str] = match self.debugger {
            Debugger::Gdb => &["-q", "--args"],
            Debugger::Lldb => &["--"],
            Debugger::Pdb => {
                let words = ["-c".into(), UNDER_PDB.into()].into_iter();
                let args = words.chain(python_words(app).unwrap_or_default()).collect();
                return App { program: self.file.clone(), name: self.file.clone().into(), args, ..app.clone() };
            }
        };
        let words = before.iter().map(OsString::from).chain([app.program.clone().into()]);
        let args = words.chain(app.args.iter().cloned()).collect();
        App { program: self.file.clone(), name: self.debugger.word().into(), args, ..app.clone() }
    }
}

/// Returns the rank to debug, if `--debug` is given, and its debugger. Standard input becomes that of this rank.
///
/// # Errors
/// A sentence if this rank cannot run under this debugger.
pub fn choose(sections: &[Options], plan: &mut Plan) -> Result<Option<Debugged>, Unusable> {
    let Some(debugger) = sections.iter().find_map(|section| section.debug) else { return Ok(None) };
    let rank = sections.iter().find_map(|section| section.rank).unwrap_or(0);
    let unusable = |what: String, hint: &str| Err(Unusable { what, hint: Some(hint.into()) });
    let Some(app) = plan.ranks.get(rank as usize).map(|app| &plan.apps[*app]) else {
        let size = plan.ranks.len();
        return unusable(format!("--rank names rank {rank}, but the job has {size} ranks"), "the first one is rank 0");
    };
    if let Some(host) = plan.placement.elsewhere(rank) {
        let name = &plan.placement.hosts[host].name;
        return unusable(
            format!("rank {rank} runs on the host {name}, but --debug is for ranks on the host of `limosa run`"),
            "choose a rank of this host with --rank, or log in there and attach a debugger: `gdb -p PID`",
        );
    }
    if sections.iter().any(|section| section.profile.is_some()) {
        return unusable("--profile does not work with --debug".into(), "times of a stopped rank tell nothing");
    }
    if sections.iter().any(|section| !matches!(section.stdin, Stdin::Rank(0)) && section.stdin != Stdin::Rank(rank)) {
        return unusable(format!("--debug gives standard input to the debugger of rank {rank}"), "leave out --stdin");
    }
    let file = file_of(debugger, app)?;
    plan.stdin = Stdin::Rank(rank);
    Ok(Some(Debugged { rank, debugger, file }))
}

/// The file of the debugger for this program, if it can start that.
fn file_of(debugger: Debugger, app: &App) -> Result<PathBuf, Unusable> {
    let word = debugger.word();
    let name = app.name.display();
    let unusable = |what: String, hint: String| Err(Unusable { what, hint: Some(hint) });
    let module = app.args.get(1).filter(|_| app.args[0] == "-m").and_then(|module| module.to_str());
    match module {
        Some("limosa._octave") => {
            return unusable(
                format!("--debug {word} does not know Octave's functions and variables"),
                "use Octave's debugger: write `keyboard` into the script, or `dbstop in FUNCTION at LINE`; `limosa run \
                 --stdin RANK` gives it the terminal, and `limosa shell --octave` debugs all ranks"
                    .into(),
            );
        }
        Some("limosa._java") => {
            return unusable(
                format!("--debug {word} does not know the methods and variables of Java"),
                "start that rank with `java -agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=5005 ...`, and \
                 attach to it: `jdb -attach 5005`"
                    .into(),
            );
        }
        _ => {}
    }
    let path = app.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    if debugger == Debugger::Pdb {
        let python = if is_python(&app.program) { Some(app.program.clone()) } else { find_python(&path) };
        return python.filter(|_| python_words(app).is_some()).map_or_else(
            || {
                unusable(
                    format!("--debug pdb is for Python programs, but {name} is none"),
                    "for a script, write `limosa run --debug pdb script.py`; for a compiled program use gdb or lldb"
                        .into(),
                )
            },
            Ok,
        );
    }
    if is_run_by_interpreter(&app.program) {
        return unusable(
            format!("{name} is a script, which {word} cannot start"),
            format!("name its interpreter, as in `limosa run --debug {word} python3 script.py`, or use --debug pdb"),
        );
    }
    in_folders(&path, word).map_or_else(
        || {
            unusable(
                format!("--debug {word}: there is no program `{word}` in PATH"),
                format!("install it; on Debian: sudo apt-get install {word}"),
            )
        },
        Ok,
    )
}

/// A Python script or module with its arguments, as words for Python; none if the program is something else.
fn python_words(app: &App) -> Option<Vec<OsString>> {
    if let [option, text, words @ ..] = &app.args[..]
        && option == "-c"
        && text == RUN_SCRIPT
    {
        return Some(words.to_vec());
    }
    let is_script = app.program.extension() == Some(OsStr::new("py"));
    let is_plain = |word: &OsString| word == "-m" || !word.as_encoded_bytes().starts_with(b"-");
    match app.args.first() {
        _ if is_script => Some(std::iter::once(app.program.clone().into()).chain(app.args.iter().cloned()).collect()),
        Some(first) if is_python(&app.program) && is_plain(first) => Some(app.args.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{options, plan};

    fn chosen(words: &[&str]) -> Result<Option<Debugged>, Unusable> {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        let sections = options::parse("limosa run", &args).expect("the options are known");
        choose(&sections, &mut plan::plan(&sections)?)
    }

    #[test]
    fn what_cannot_be_debugged_is_said_before_anything_starts() {
        let says = |words: &[&str], part: &str| {
            let error = chosen(words).expect_err(part);
            assert!(error.what.contains(part), "{error:?}");
        };
        says(&["-n", "2", "--debug", "pdb", "--rank", "2", "true"], "--rank names rank 2, but the job has 2 ranks");
        says(&["--debug", "pdb", "true"], "--debug pdb is for Python programs, but true is none");
        says(&["--debug", "gdb", "--stdin", "all", "true"], "--debug gives standard input to the debugger of rank 0");
        says(&["--debug", "gdb", "--profile", "true"], "--profile does not work with --debug");
        says(&["--debug", "gdb", "-x", "PATH=/no/such", "/bin/true"], "there is no program `gdb` in PATH");
        says(&["--debug", "gdb", "-host", "far:1", "true"], "rank 0 runs on the host far, but --debug is for ranks on");
    }

    #[test]
    fn scripts_modules_and_interpreters_run_under_pdb() {
        let file = tempfile::Builder::new().suffix(".py").tempfile().expect("a file");
        let script = file.path().to_str().expect("a name");
        for (words, last) in [
            (&["--debug", "pdb", script, "x"][..], [script, "x"]),
            (&["--debug", "pdb", "python3", script, "x"], [script, "x"]),
            (&["--debug", "pdb", "-m", "module"], ["-m", "module"]),
        ] {
            let args: Vec<OsString> = words.iter().map(OsString::from).collect();
            let sections = options::parse("limosa run", &args).expect("the options are known");
            let mut plan = plan::plan(&sections).expect("a plan");
            let debugged = choose(&sections, &mut plan).expect("a Python program").expect("--debug is given");
            let command = debugged.command(&plan.apps[0]);
            assert_eq!(command.args, [OsStr::new("-c"), OsStr::new(UNDER_PDB), last[0].as_ref(), last[1].as_ref()]);
        }
    }
}
