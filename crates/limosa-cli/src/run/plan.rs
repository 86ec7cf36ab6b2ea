//! From options to a plan: which program each rank runs, where, and with which variables.
//!
//! All errors in options and files are found here, before any process starts.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use limosa_job::config;
use limosa_job::control::Program;
use rustix::fs::Access;

use super::binding::BindTo;
use super::options::{self, Options, Stdin, Unusable, pairs, unusable};
use super::placement::{self, Placement};
use crate::python;

/// What to start.
#[derive(Debug)]
pub struct Plan {
    /// The programs, in the order of the command line.
    pub apps: Vec<App>,
    /// For each rank the index of its program.
    pub ranks: Vec<usize>,
    /// The ranks that read standard input.
    pub stdin: Stdin,
    /// Which rank is on which host.
    pub placement: Placement,
}

impl Plan {
    /// A program as it is started on other hosts: in the same folder.
    pub fn elsewhere(&self, app: &App) -> App {
        let here = std::env::current_dir().ok();
        let wdir = match (&app.wdir, here) {
            (Some(dir), Some(here)) => Some(here.join(dir)),
            (dir, here) => dir.clone().or(here),
        };
        App { wdir, ..app.clone() }
    }
}

/// One program.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// The file to execute.
    pub program: PathBuf,
    /// `argv[0]`.
    pub name: OsString,
    /// The other arguments.
    pub args: Vec<OsString>,
    /// Variables to set, later ones winning.
    pub env: Vec<(OsString, OsString)>,
    /// Start from no variables instead of ours.
    pub clear_env: bool,
    /// Working directory.
    pub wdir: Option<PathBuf>,
}

type Result<T> = std::result::Result<T, Unusable>;

/// Octave without windows.
const OCTAVE: &str = "octave-cli";

/// What Python does with a script: `limosa.run_script` marks the traceback of an uncaught exception with the rank and
/// ends the job; a Python that has no such package runs the script plainly.
pub const RUN_SCRIPT: &str = "\
import sys
if sys.path[:1] == ['']: del sys.path[0]
try: from limosa.run_script import main
except ImportError:
    import os
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
main()";

/// Makes the plan for these sections of the command line.
pub fn plan(sections: &[Options]) -> Result<Plan> {
    if sections.iter().any(|section| section.threads) {
        return plan(&[threaded(sections)?]);
    }
    // The hosts of another library are its launcher's business.
    let (counts, placement) = match options::library(sections) {
        None => placement::place(sections)?,
        Some(_) => (sections.iter().map(|section| section.count.unwrap_or(1)).collect(), Placement::default()),
    };
    let mut apps = Vec::new();
    let mut ranks = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        apps.push(app(section, sections)?);
        ranks.extend(std::iter::repeat_n(i, counts[i] as usize));
    }
    let stdin = sections[0].stdin;
    if let Stdin::Rank(rank) = stdin
        && rank as usize >= ranks.len()
    {
        return unusable(format!("--stdin names rank {rank}, but the job has {} ranks", ranks.len()), None);
    }
    Ok(Plan { apps, ranks, stdin, placement })
}

/// A job whose ranks are threads: one process, which is told how many.
fn threaded(sections: &[Options]) -> Result<Options> {
    let [section] = sections else {
        return unusable("--threads is for one program", "leave out what follows the `:`".to_owned());
    };
    if section.host.is_some() || section.hostfile.is_some() || options::library(sections).is_some() {
        return unusable("--threads needs no hosts and no other MPI library: all ranks are in one process", None);
    }
    if !is_java(section) {
        let hint = "give a source file, an archive, a class with -cp, or the command `java`; for other programs leave out \
                    --threads";
        return unusable(
            format!("--threads is for Java programs, but {} is none", section.command[0].display()),
            hint.to_owned(),
        );
    }
    if let Some(option) = of_processes(section) {
        return unusable(
            format!("{option} does not work with --threads: Java carries the messages of ranks in one process"),
            format!("leave out {option}, or --threads: the ranks are processes then"),
        );
    }
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get() as u32);
    let mut one = section.clone();
    one.threads = false;
    one.count = Some(1);
    one.export.push(format!("JAVA_LIMOSA_THREADS={}", section.count.unwrap_or(processors)).into());
    if let Some(number) = section.per_jvm {
        one.export.push(format!("JAVA_LIMOSA_PER_JVM={number}").into());
    }
    if section.tag_output {
        one.export.push("LIMOSA_TAG_OUTPUT=1".into());
    }
    // Only Java sees what its threads wait for.
    if let Some(what) = section.on_hang {
        one.export.push(format!("LIMOSA_ON_HANG={}", what.word()).into());
    }
    Ok(one)
}

/// An option that is for ranks that are processes.
fn of_processes(section: &Options) -> Option<&'static str> {
    let given = [
        ("--check", section.check),
        ("--profile", section.profile.is_some()),
        ("--tuned", section.tuned.is_some()),
        ("--debug", section.debug.is_some()),
        ("--output-filename", section.output_filename.is_some()),
        ("--universe-size", section.universe_size.is_some()),
        ("--stdin", !matches!(section.stdin, Stdin::Rank(0) | Stdin::None)),
        ("--bind-to", section.bind_to.is_some_and(|what| what != BindTo::None)),
        ("--device", section.device.is_some()),
        ("--keep-messages", section.keep_messages),
        ("--show-map", section.show_map),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

/// The program of a spawn, by a rank that runs `spawner` in `folder`, and the hosts that may run it.
pub fn spawned(program: &Program, spawner: &App, folder: &Path, placement: &Placement) -> Result<(App, Vec<usize>)> {
    let words: Vec<OsString> = vec!["x".into()];
    let Ok(Some(mut section)) = options::parse("limosa run", &words).map(|sections| sections.into_iter().next()) else {
        return unusable("the program of the spawn cannot be read", None);
    };
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let value = |key: &[u8]| program.info.iter().find(|(known, _)| known == key).map(|(_, value)| text(value));
    section.command = program.words.iter().map(|word| text(word)).collect();
    section.wdir = Some(value(b"wdir").map_or_else(|| folder.to_owned(), |dir| folder.join(dir)));
    section.host = value(b"host").map(|host| host.to_string_lossy().into_owned());
    let hosts = placement::of_spawn(&section, placement)?;
    let own = value(b"env").unwrap_or_default();
    let own: Vec<OsString> =
        own.as_bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(text).collect();
    section.export = own;
    let mut app = app_in(&section, std::slice::from_ref(&section), value(b"path").as_deref())?;
    app.env.splice(0..0, spawner.env.iter().cloned());
    app.clear_env = spawner.clear_env;
    Ok((app, hosts))
}

fn app(section: &Options, all: &[Options]) -> Result<App> {
    app_in(section, all, None)
}

/// The program of a section, looked for in these folders first.
fn app_in(section: &Options, all: &[Options], first: Option<&OsStr>) -> Result<App> {
    if let Some(dir) = &section.wdir {
        match fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return unusable(format!("the working directory {} is not a directory", dir.display()), None),
            Err(error) => {
                return unusable(format!("cannot use the working directory {}: {error}", dir.display()), None);
            }
        }
    }
    let (clear_env, env) = variables(section, all)?;
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let path = first.map_or_else(|| path.clone(), |first| [first, OsStr::new(":"), &path].into_iter().collect());
    let (name, args) = (section.command[0].clone(), &section.command[1..]);
    if section.module {
        let Some(python) = find_python(&path) else {
            return unusable(
                format!("-m {} means a Python module, but there is no python3 in PATH", name.display()),
                "activate the virtual environment that the module needs".to_owned(),
            );
        };
        let words = ["-c".into(), RUN_SCRIPT.into(), "-m".into()];
        let args = words.into_iter().chain(section.command.iter().cloned()).collect();
        let (name, wdir) = (python.clone().into_os_string(), section.wdir.clone());
        return Ok(App { name, program: python, args, env, clear_env, wdir });
    }
    if let Some(words) = java_words(section, &path)? {
        let wdir = section.wdir.clone();
        return java_program(words, App { name, program: PathBuf::new(), args: Vec::new(), env, clear_env, wdir });
    }
    let program = find_program(&name, section.wdir.as_deref(), &path)?;
    if program.extension() == Some(OsStr::new("py")) && !says_how_to_run(&program) {
        let Some(python) = find_python(&path) else {
            return unusable(
                format!("{} is a Python program, but there is no python3 in PATH", program.display()),
                "activate the virtual environment that the program needs".to_owned(),
            );
        };
        let words = ["-c".into(), RUN_SCRIPT.into(), program.into_os_string()];
        let args = words.into_iter().chain(args.iter().cloned()).collect();
        return Ok(App {
            name: python.clone().into_os_string(),
            program: python,
            args,
            env,
            clear_env,
            wdir: section.wdir.clone(),
        });
    }
    if program.extension() == Some(OsStr::new("m")) && !says_how_to_run(&program) {
        let bare = App { name, program: PathBuf::new(), args: Vec::new(), env, clear_env, wdir: section.wdir.clone() };
        return octave_script(&program, args, &path, bare);
    }
    if rustix::fs::access(&program, Access::EXEC_OK).is_err() {
        let hint = format!("make it executable with `chmod +x {}`, or name its interpreter", program.display());
        return unusable(format!("{} is not executable", program.display()), hint);
    }
    Ok(octave_program(App { program, name, args: args.to_vec(), env, clear_env, wdir: section.wdir.clone() }))
}

/// A program: if it is Octave, with or without its version, `limosa._octave` lets it find Limosa's functions.
fn octave_program(app: App) -> App {
    let name = app.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rest = name.strip_prefix("octave-cli").or_else(|| name.strip_prefix("octave"));
    let is_version =
        |rest: &str| rest.trim_start_matches('-').bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    let Some(python) = python::find().filter(|_| rest.is_some_and(is_version)) else {
        return app;
    };
    let words = ["-m".into(), "limosa._octave".into(), "--program".into(), app.program.into_os_string()];
    let args = words.into_iter().chain(app.args).collect();
    App { name: python.clone().into_os_string(), program: python, args, ..app }
}

/// An Octave script, which `limosa._octave` starts: it knows where the Octave package is, and compiles it once.
fn octave_script(script: &Path, args: &[OsString], path: &OsStr, bare: App) -> Result<App> {
    let what = |missing: &str| format!("{} is an Octave script, but there is no {missing} in PATH", script.display());
    if in_folders(path, OCTAVE).is_none() {
        return unusable(what(OCTAVE), "install Octave; on Debian: sudo apt-get install octave".to_owned());
    }
    let Some(python) = python::find() else {
        return unusable(what("python3"), "activate the virtual environment that Limosa is installed in".to_owned());
    };
    let words = ["-m".into(), "limosa._octave".into(), script.as_os_str().to_owned()];
    let args = words.into_iter().chain(args.iter().cloned()).collect();
    Ok(App { name: python.clone().into_os_string(), program: python, args, ..bare })
}

/// Whether the program is a Java program.
fn is_java(section: &Options) -> bool {
    let name = &section.command[0];
    let is_command = Path::new(name).file_name() == Some(OsStr::new("java"));
    !section.module && (is_command || is_java_file(name) || section.class_path.is_some())
}

fn is_java_file(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|known| known == "java" || known == "jar")
}

/// What `limosa._java` is told of a Java program: a source file, an archive, a class, or the words of the command
/// `java`. None if the program is no Java program.
fn java_words(section: &Options, path: &OsStr) -> Result<Option<Vec<OsString>>> {
    let (name, args) = (&section.command[0], &section.command[1..]);
    let is_command = Path::new(name).file_name() == Some(OsStr::new("java"));
    let is_file = is_java_file(name);
    if !is_java(section) {
        return Ok(None);
    }
    let mut words: Vec<OsString> = section.class_path.iter().flat_map(|paths| ["-cp".into(), paths.clone()]).collect();
    if is_command {
        words.insert(0, "--java".into());
    }
    // A class has no file of its name.
    words.push(if is_file || is_command {
        find_program(name, section.wdir.as_deref(), path)?.into_os_string()
    } else {
        name.clone()
    });
    words.extend_from_slice(args);
    Ok(Some(words))
}

/// A Java program, which `limosa._java` starts: it knows where the classes of Limosa are, and compiles source files.
fn java_program(words: Vec<OsString>, bare: App) -> Result<App> {
    let Some(python) = python::find() else {
        return unusable(
            format!("{} is a Java program, but there is no python3 in PATH", bare.name.display()),
            "activate the virtual environment that Limosa is installed in".to_owned(),
        );
    };
    let args = ["-m".into(), "limosa._java".into()].into_iter().chain(words).collect();
    Ok(App { name: python.clone().into_os_string(), program: python, args, ..bare })
}

/// The usable file of this name in the folders of a path.
pub fn in_folders(path: &OsStr, name: &str) -> Option<PathBuf> {
    let usable = |file: &PathBuf| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    std::env::split_paths(path).map(|dir| dir.join(name)).find(usable)
}

/// The file that `name` means: searched for in PATH if it is a bare name, else seen from the working directory of the
/// ranks.
fn find_program(name: &OsStr, wdir: Option<&Path>, path: &OsStr) -> Result<PathBuf> {
    let given = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        let from_wdir = wdir.map(|dir| dir.join(given)).filter(|file| file.is_file());
        let file = from_wdir.unwrap_or_else(|| given.to_owned());
        return match fs::metadata(&file) {
            Ok(meta) if meta.is_file() => absolute(&file),
            Ok(_) => unusable(format!("{} is not a file", file.display()), None),
            Err(error) => unusable(format!("cannot run {}: {error}", given.display()), None),
        };
    }
    let candidates: Vec<PathBuf> =
        std::env::split_paths(path).map(|dir| dir.join(given)).filter(|file| file.is_file()).collect();
    let executable = candidates.iter().find(|file| rustix::fs::access(*file, Access::EXEC_OK).is_ok());
    if let Some(file) = executable {
        return absolute(file);
    }
    let here = wdir.map(|dir| dir.join(given)).unwrap_or_else(|| given.to_owned());
    let is_script = ["py", "m", "java", "jar"].iter().any(|end| given.extension() == Some(OsStr::new(end)));
    if here.is_file() {
        // `limosa run x.py` means a script in the current directory.
        if is_script {
            return absolute(&here);
        }
        return unusable(
            format!("there is no program `{}` in PATH", given.display()),
            format!("there is a file of that name here: write ./{}", given.display()),
        );
    }
    let place = if is_script { "here or in PATH" } else { "in PATH" };
    unusable(format!("there is no program `{}` {place}", given.display()), None)
}

/// True if a script may be executed and its first line names an interpreter; without that line a shell would take it
/// for its own.
fn says_how_to_run(script: &Path) -> bool {
    is_run_by_interpreter(script) && rustix::fs::access(script, Access::EXEC_OK).is_ok()
}

/// True if the file begins with the name of its interpreter.
pub fn is_run_by_interpreter(file: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// True if the program is a Python interpreter, by its name.
pub fn is_python(program: &Path) -> bool {
    program
        .file_name()
        .is_some_and(|name| ["python", "pypy"].iter().any(|start| name.to_string_lossy().starts_with(start)))
}

fn absolute(file: &Path) -> Result<PathBuf> {
    std::path::absolute(file).or_else(|error| unusable(format!("cannot find the current directory: {error}"), None))
}

/// The Python of the virtual environment in use, else the one installed beside this command, else the one in PATH.
pub fn find_python(path: &OsStr) -> Option<PathBuf> {
    let usable = |file: &PathBuf| rustix::fs::access(file, Access::EXEC_OK).is_ok();
    let active = std::env::var_os("VIRTUAL_ENV").map(|dir| PathBuf::from(dir).join("bin/python3"));
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("python3"));
    active.filter(usable).or_else(|| beside.filter(usable)).or_else(|| in_folders(path, "python3"))
}

/// The variables of a section: global ones of all sections first, then its own.
fn variables(section: &Options, all: &[Options]) -> Result<(bool, Vec<(OsString, OsString)>)> {
    let mut env = Vec::new();
    let mut clear = section.genvnone;
    if let Some(list) = section.genvlist.as_ref().or_else(|| all.iter().find_map(|s| s.genvlist.as_ref())) {
        clear = true;
        for name in list.split(',').filter(|name| !name.is_empty()) {
            env.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
    }
    for other in all {
        for word in &other.export {
            let bytes = word.as_bytes();
            match bytes.iter().position(|b| *b == b'=') {
                Some(0) => return unusable(format!("`-x {}` has no variable name", word.display()), None),
                Some(at) => {
                    env.push((OsStr::from_bytes(&bytes[..at]).into(), OsStr::from_bytes(&bytes[at + 1..]).into()))
                }
                None => env.extend(std::env::var_os(word).map(|value| (word.clone(), value))),
            }
        }
        env.extend(pairs(&other.genv).map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    if all.iter().any(|other| other.check) {
        env.push(("LIMOSA_CHECK".into(), "1".into()));
    }
    let device = all.iter().find_map(|other| other.device.as_ref());
    env.extend(device.map(|device| ("LIMOSA_DEVICE".into(), device.into())));
    if all.iter().any(|other| other.keep_messages) {
        env.push(("LIMOSA_FILE_KEEP".into(), "1".into()));
    }
    env.extend(section.dialect.map(|dialect| ("LIMOSA_DIALECT".into(), dialect.word().into())));
    env.extend(pairs(&section.env).map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (name, _) in &env {
        if name.is_empty() || name.as_bytes().iter().any(|b| matches!(b, b'=' | 0)) {
            return unusable(format!("`{}` cannot be the name of a variable", name.display()), None);
        }
    }
    Ok((clear, env))
}

/// What is wrong with the `LIMOSA_*` variables that the ranks will see.
pub fn complaints(plan: &Plan) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for app in &plan.apps {
        for complaint in config::parse(seen_by(app)).1 {
            if !all.contains(&complaint) {
                all.push(complaint);
            }
        }
    }
    all
}

/// The device that the ranks will use, and whether they keep files. These belong to the whole job.
pub fn config_of_ranks(plan: &Plan) -> config::Config {
    config::parse(seen_by(&plan.apps[0])).0
}

/// Whether the ranks are told which device to use.
pub fn names_device(plan: &Plan) -> bool {
    plan.apps.iter().flat_map(seen_by).any(|(name, _)| name == "LIMOSA_DEVICE")
}

/// The variables that the ranks of a program will see.
fn seen_by(app: &App) -> impl Iterator<Item = (OsString, OsString)> {
    let inherited =
        std::env::vars_os().filter(|(name, _)| !app.clear_env && !app.env.iter().any(|(own, _)| own == name));
    // Of several settings the first counts there, and the last one here.
    inherited.chain(app.env.iter().rev().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::options::parse;

    fn plan_of(words: &[&str]) -> Result<Plan> {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        plan(&parse("limosa run", &args).unwrap())
    }

    #[test]
    fn ranks_follow_the_order_of_the_sections() {
        let plan = plan_of(&["-n", "2", "sh", "-c", "x", ":", "-n", "1", "true"]).unwrap();
        assert_eq!(plan.ranks, [0, 0, 1]);
        assert_eq!(plan.apps[0].args, ["-c", "x"]);
        assert_eq!(plan.apps[0].name, "sh");
        assert!(plan.apps[0].program.is_absolute());
    }

    #[test]
    fn global_variables_reach_all_sections_and_local_ones_win() {
        let plan = plan_of(&["-genv", "A", "1", "-env", "A", "2", "true", ":", "-x", "B=3=4", "true"]).unwrap();
        let value = |app: usize, name: &str| {
            plan.apps[app].env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.to_str().unwrap())
        };
        assert_eq!((value(0, "A"), value(0, "B")), (Some("2"), Some("3=4")));
        assert_eq!((value(1, "A"), value(1, "B")), (Some("1"), Some("3=4")));
    }

    #[test]
    fn ranks_that_are_threads_are_one_process_that_is_told_what_to_do_about_hangs() {
        let plan = plan_of(&["--threads", "--on-hang=off", "-l", "-n", "3", "-cp", ".", "Main"]).unwrap();
        assert_eq!(plan.ranks, [0]);
        let value = |name: &str| plan.apps[0].env.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_str().unwrap());
        assert_eq!((value("JAVA_LIMOSA_THREADS"), value("LIMOSA_ON_HANG")), (Some("3"), Some("off")));
        assert_eq!(value("LIMOSA_TAG_OUTPUT"), Some("1"));
    }

    #[test]
    fn what_does_not_work_with_threads_is_refused() {
        let says = |words: &[&str], part: &str| {
            let error = plan_of(&[&["--threads", "-n", "3"], words].concat()).unwrap_err();
            assert!(error.what.contains(part), "{error:?}");
        };
        says(&["true"], "--threads is for Java programs, but true is none");
        says(&["-m", "java"], "--threads is for Java programs, but java is none");
        for option in [
            "--check",
            "--profile",
            "--tuned",
            "--debug=gdb",
            "--output-filename=out",
            "--universe-size=4",
            "--stdin=all",
            "--bind-to=core",
            "--device=shm",
            "--keep-messages",
            "--show-map",
        ] {
            let name = option.split('=').next().unwrap();
            says(&[option, "Main.java"], &format!("{name} does not work with --threads"));
        }
    }

    #[test]
    fn what_cannot_run_is_said_before_anything_starts() {
        let says = |words: &[&str], part: &str| {
            let error = plan_of(words).unwrap_err();
            assert!(error.what.contains(part), "{error:?}");
        };
        says(&["no-such-program-at-all"], "there is no program `no-such-program-at-all` in PATH");
        says(&["no-such-program-at-all.py"], "there is no program `no-such-program-at-all.py` here or in PATH");
        says(&["./no/such"], "cannot run ./no/such: No such file");
        says(&["/tmp"], "/tmp is not a file");
        says(&["/etc/passwd"], "/etc/passwd is not executable");
        says(&["-wdir", "/no/such", "true"], "cannot use the working directory /no/such");
        says(&["-wdir", "/etc/passwd", "true"], "is not a directory");
        says(&["-host", "a:1,b:1", "-n", "3", "true"], "the job has 3 ranks, but the listed hosts take 2");
        says(&["-host", "a", "true", ":", "-host", "b", "true"], "different lists of hosts");
        says(&["-hostfile", "/no/such", "true"], "cannot read the host file /no/such");
        says(&["-n", "2", "--stdin", "2", "true"], "--stdin names rank 2, but the job has 2 ranks");
        says(
            &["-n", "65536", "true", ":", "-n", "2", "true"],
            "the job would have 65538 ranks, but 65536 are the most",
        );
        says(&["-x", "=1", "true"], "has no variable name");
    }
}
