//! `limosa doctor`: is this machine ready for MPI programs, and if not, what to do. With a program: for which MPI that
//! was compiled ([`program`]).
//!
//! Each check tries the operation itself. A warning means that jobs run slower or with less comfort, a failure that
//! they do not run.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use limosa_device::fabric::Library;
use rustix::fs::{Access, FallocateFlags, MemfdFlags};
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::json;

mod between;
mod program;

use crate::message::{Format, bytes, coloured, print};
use crate::{exit, installation, procfs, python, sys};

/// Options of `limosa doctor`.
#[derive(Args)]
pub struct Options {
    /// Look at this program, extension module or library instead of the machine: which MPI is it compiled for?
    program: Option<PathBuf>,
    /// How to write the findings
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// What a check found.
struct Finding {
    what: &'static str,
    level: Level,
    text: String,
    /// What to do about it.
    cure: Option<String>,
}

fn ok(what: &'static str, text: impl Into<String>) -> Finding {
    Finding { what, level: Level::Ok, text: text.into(), cure: None }
}

fn warn(what: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Finding {
    Finding { what, level: Level::Warn, text: text.into(), cure: Some(cure.into()) }
}

fn fail(what: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Finding {
    Finding { what, level: Level::Fail, text: text.into(), cure: Some(cure.into()) }
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let findings = match &options.program {
        Some(program) => vec![program::look(program)],
        None => of_machine(),
    };
    match options.format {
        Format::Json => {
            let list: Vec<_> = findings
                .iter()
                .map(|f| json!({ "check": f.what, "result": word(f.level), "text": f.text, "cure": f.cure }))
                .collect();
            print(&format!("{:#}\n", json!(list)));
        }
        Format::Text => findings.iter().for_each(|f| {
            let colour = match f.level {
                Level::Ok => 32,
                Level::Warn => 33,
                Level::Fail => 31,
            };
            print(&format!("{:<4} {}: {}\n", coloured(&format!("{:<4}", word(f.level)), colour), f.what, f.text));
            if let Some(cure) = &f.cure {
                print(&format!("     hint: {cure}\n"));
            }
        }),
    }
    ExitCode::from(if findings.iter().any(|f| f.level == Level::Fail) { exit::FAILED } else { 0 })
}

/// Checks the machine.
fn of_machine() -> Vec<Finding> {
    vec![
        processors(),
        memory(),
        memory_limit(),
        memory_files(),
        dev_shm(),
        cross_memory(),
        yama(),
        membarrier(),
        descriptors_of_processes(),
        network(),
        between::ssh(),
        between::message_folder(),
        library(),
        commands(),
        mpi4py(),
        compiler("mpicc", &["gcc", "cc", "clang"]),
        compiler("mpicxx", &["g++", "c++", "clang++"]),
        py_spy(),
        octave(),
        java(),
    ]
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "fail",
    }
}

fn processors() -> Finding {
    let allowed = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count() as usize,
        Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let online = std::fs::read_to_string("/proc/cpuinfo")
        .map(|t| t.lines().filter(|l| l.starts_with("processor")).count())
        .unwrap_or(allowed);
    let of = if online > allowed { format!(" of {online}") } else { String::new() };
    match procfs::cpu_quota() {
        Some(quota) if quota < allowed as f64 => warn(
            "processors",
            format!("{allowed}{of} allowed, but the control group allows the CPU time of {quota:.1} only"),
            format!("start at most {} ranks, or raise the quota", quota.floor().max(1.0)),
        ),
        _ => ok(
            "processors",
            format!("{allowed}{of} allowed; more ranks than that share them and sleep while they wait"),
        ),
    }
}

fn memory() -> Finding {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    });
    match available {
        Some(n) if n < 256 << 20 => {
            warn("memory", format!("{} available", bytes(n)), "end other programs before you start large jobs")
        }
        Some(n) => ok("memory", format!("{} available", bytes(n))),
        None => warn("memory", "cannot be read from /proc/meminfo", "mount /proc"),
    }
}

fn memory_limit() -> Finding {
    match procfs::memory_limit() {
        None => ok("memory limit", "none set for this control group"),
        Some(limit) if limit < 256 << 20 => warn(
            "memory limit",
            format!("{} for all ranks together", bytes(limit)),
            "raise the memory limit of the container or control group",
        ),
        Some(limit) => ok("memory limit", format!("{} for all ranks together", bytes(limit))),
    }
}

/// The memory of a job is an anonymous file whose space is reserved at start.
fn memory_files() -> Finding {
    const SIZE: u64 = 1 << 20;
    let attempt = rustix::fs::memfd_create("limosa-doctor", MemfdFlags::CLOEXEC).and_then(|fd| {
        rustix::fs::ftruncate(&fd, SIZE)?;
        rustix::fs::fallocate(fd.as_fd(), FallocateFlags::empty(), 0, SIZE)
    });
    match attempt {
        Ok(()) => ok("shared memory", "anonymous memory files work"),
        Err(error) => fail(
            "shared memory",
            format!("an anonymous memory file of {} is refused: {error}", bytes(SIZE)),
            "allow memfd_create and fallocate in the sandbox, or free memory",
        ),
    }
}

fn dev_shm() -> Finding {
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => {
            ok("/dev/shm", format!("{}; not used, its size does not matter", bytes(stat.f_blocks * stat.f_frsize)))
        }
        Err(_) => ok("/dev/shm", "absent; not used"),
    }
}

/// A child reads a word of this process, as ranks read each other.
fn cross_memory() -> Finding {
    const WORD: u64 = 0x4c69_6d6f_7361_2121;
    const WRONG: i32 = 200;
    let what = "cross-memory copy";
    let word = WORD;
    let address = &raw const word as usize;
    let parent = std::process::id();
    sys::allow_readers();
    let child = sys::fork(|| match sys::read_word_of(parent, address) {
        Ok(WORD) => 0,
        Ok(_) => WRONG,
        Err(error) => error.raw_os_error().unwrap_or(WRONG),
    });
    let pid = child.ok().and_then(|pid| rustix::process::Pid::from_raw(pid as i32));
    let status = pid.and_then(|pid| rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).ok()?);
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => ok(what, "works: large messages are copied once"),
        Some(code) if code < WRONG => warn(
            what,
            format!("refused ({}): large messages are copied twice", std::io::Error::from_raw_os_error(code)),
            "in a container allow process_vm_readv, for example with --cap-add=SYS_PTRACE or a seccomp profile; it \
             also works without",
        ),
        _ => warn(
            what,
            "could not be tried: large messages are copied twice",
            "see whether processes can be started (`ulimit -u`)",
        ),
    }
}

fn yama() -> Finding {
    let what = "ptrace scope";
    match std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().and_then(|t| t.trim().parse::<u32>().ok())
    {
        None => ok(what, "not restricted"),
        Some(0) => ok(what, "0, not restricted"),
        Some(1) => ok(what, "1; the ranks of a job allow each other what it restricts"),
        Some(n) => warn(
            what,
            format!("{n}: only administrators may read other processes"),
            "set kernel.yama.ptrace_scope to 1 for single-copy messages and for source lines in hang reports",
        ),
    }
}

fn membarrier() -> Finding {
    const GLOBAL_EXPEDITED: i64 = 1 << 1;
    const PRIVATE_EXPEDITED: i64 = 1 << 3;
    let what = "membarrier";
    match sys::membarrier_commands() {
        Ok(bits) if bits & GLOBAL_EXPEDITED != 0 && bits & PRIVATE_EXPEDITED != 0 => {
            ok(what, "works: senders need no fence")
        }
        Ok(_) => warn(
            what,
            "the kernel offers no expedited commands: small messages cost a fence more",
            "use Linux 4.16 or later",
        ),
        Err(error) => warn(
            what,
            format!("refused ({error}): small messages cost a fence more"),
            "allow the system call membarrier in the sandbox",
        ),
    }
}

fn descriptors_of_processes() -> Finding {
    match pidfd_open(rustix::process::getpid(), PidfdFlags::empty()) {
        Ok(_) => ok("pidfd_open", "works: the launcher waits for its processes without threads"),
        Err(error) => warn(
            "pidfd_open",
            format!("refused ({error}): the launcher has a thread for each process"),
            "use Linux 5.3 or later, or allow this system call in the sandbox; it also works without",
        ),
    }
}

/// What messages by a network need. Jobs on one machine do without.
fn network() -> Finding {
    let what = "libfabric";
    let config = limosa_job::config::get();
    let offers = Library::load(config.fabric_library.as_deref())
        .and_then(|library| Ok((library.offers().map_err(|error| error.to_string())?, library)));
    match offers {
        Ok((offers, library)) => {
            let mut providers: Vec<&str> = offers.iter().map(|offer| offer.provider.as_str()).collect();
            providers.sort_unstable();
            providers.dedup();
            let (major, minor) = library.version();
            let path = library.path.display();
            ok(what, format!("{path}, version {major}.{minor}, with the providers {}", providers.join(", ")))
        }
        Err(error) => ok(what, format!("not used, and needed with LIMOSA_DEVICE=fabric only: {error}")),
    }
}

/// The library where mpi4py and our compiler wrappers look: in the `lib` folder of the environment.
fn library() -> Finding {
    const NAME: &str = "libmpi_abi.so.1";
    let exe = std::env::current_exe().ok();
    let own = exe.as_deref().and_then(Path::parent).and_then(Path::parent).map(|prefix| prefix.join("lib").join(NAME));
    let active = std::env::var_os("VIRTUAL_ENV").map(|dir| PathBuf::from(dir).join("lib").join(NAME));
    let listed = std::env::var_os("LD_LIBRARY_PATH");
    let listed = listed.iter().flat_map(std::env::split_paths).map(|dir| dir.join(NAME));
    let found = own.into_iter().chain(active).chain(listed).find(|file| file.is_file());
    match found {
        Some(file) => ok("MPI library", file.display().to_string()),
        None => warn(
            "MPI library",
            format!(
                "{NAME} is not in the lib folder beside this command, of the active virtual environment, or in \
                 LD_LIBRARY_PATH"
            ),
            "install the limosa package into the environment that your programs use",
        ),
    }
}

/// Whether the files beside this command are still those that were installed with it.
fn commands() -> Finding {
    let what = "commands";
    let Some(prefix) = installation::prefix() else { return ok(what, "not installed by pip: not looked at") };
    let damage = installation::damage(&prefix);
    if damage.is_empty() {
        return ok(what, format!("mpiexec, mpicc and the others in {} are Limosa's", prefix.display()));
    }
    let (text, cure) = installation::complaint(&prefix, &damage);
    fail(what, text, cure)
}

/// Which library Python programs use.
fn mpi4py() -> Finding {
    const ASK: &str = "\
import importlib.util, sys
if importlib.util.find_spec('mpi4py') is None: sys.exit(3)
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version().split(chr(10))[0].strip(chr(0)))";
    const INSTALL: &str = "`python -m limosa.install_mpi4py` installs one that uses Limosa";
    let what = "mpi4py";
    let Some(python) = python::find() else { return ok(what, "there is no python3") };
    let asked = Command::new(&python).args(["-c", ASK]).stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            match version.starts_with("Limosa") {
                true => ok(what, format!("that of {} uses {version}", python.display())),
                false => fail(
                    what,
                    format!("that of {} uses {version}: under `limosa run` each rank is alone", python.display()),
                    INSTALL,
                ),
            }
        }
        Ok(output) if output.status.code() == Some(3) => {
            warn(what, format!("{} has none, which Python programs need", python.display()), INSTALL)
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it says nothing").to_owned();
            fail(what, format!("that of {} cannot be imported: {last}", python.display()), INSTALL)
        }
        Err(error) => warn(what, format!("cannot run {}: {error}", python.display()), "repair this Python"),
    }
}

fn compiler(wrapper: &'static str, names: &[&str]) -> Finding {
    let chosen = std::env::var_os(if wrapper == "mpicc" { "CC" } else { "CXX" }).filter(|v| !v.is_empty());
    let found = chosen.map(PathBuf::from).or_else(|| names.iter().find_map(|name| in_path(name)));
    match found {
        Some(file) => ok(wrapper, format!("would call {}", file.display())),
        None => warn(
            wrapper,
            format!("finds no compiler ({})", names.join(", ")),
            "only needed to compile MPI programs: install a compiler, for example `apt install gcc g++`",
        ),
    }
}

fn py_spy() -> Finding {
    let beside =
        std::env::current_exe().ok().map(|exe| exe.with_file_name("py-spy")).filter(|file| is_executable(file));
    let Some(file) = beside.or_else(|| in_path("py-spy")) else {
        return warn(
            "py-spy",
            "not found: hang reports show no source lines of Python programs",
            "`pip install py-spy`",
        );
    };
    let version = Command::new(&file).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match version {
        Ok(output) if output.status.success() => {
            ok("py-spy", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => warn("py-spy", format!("{} does not run", file.display()), "`pip install --force-reinstall py-spy`"),
    }
}

/// Octave, and what compiles the functions that `limosa run script.m` needs.
fn octave() -> Finding {
    let Some(file) = in_path("octave-cli") else {
        return ok("octave", "not found (needed only for `limosa run script.m`; Debian's package is octave)");
    };
    if in_path("mkoctfile").is_none() {
        return warn(
            "octave",
            format!("{} has no mkoctfile: Limosa's functions for Octave cannot be compiled", file.display()),
            "on Debian: sudo apt-get install octave-dev",
        );
    }
    let version = Command::new(&file).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match version {
        Ok(output) if output.status.success() => {
            ok("octave", String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
        }
        _ => warn("octave", format!("{} does not run", file.display()), "install Octave again"),
    }
}

/// The Java that `limosa run Main.java` would use, as `limosa._java` finds it.
fn java() -> Finding {
    const ASK: &str = "from limosa import _java
try:
    print('ok', _java.jar() and _java.find())
except _java.JavaError as error:
    print('no', error)";
    let Some(python) = crate::python::find() else {
        return ok("java", "not looked for: there is no Python");
    };
    let output = Command::new(python).args(["-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    match text.split_once(' ') {
        Some(("ok", file)) => ok("java", file.to_owned()),
        Some((_, reason)) => ok("java", format!("not usable (needed only for `limosa run Main.java`): {reason}")),
        None => ok("java", "not found (needed only for `limosa run Main.java`)"),
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok()
}
