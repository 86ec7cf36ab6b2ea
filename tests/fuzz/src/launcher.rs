//! What the launcher reads: command lines, host files, the output of ranks, and what py-spy says.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};
use limosa_cli::hang::stacks;
use limosa_cli::run::options;
use limosa_cli::run::output::{Lines, Shown};
use limosa_cli::run::plan;

const WORDS: &[&str] = &[
    "-n",
    "-np",
    "--np=2",
    "-c",
    "0",
    "1",
    "3",
    "65536",
    "65537",
    "-1",
    ":",
    "--",
    "-host",
    "localhost",
    "a:2,b",
    "::1",
    "-hostfile",
    "-wdir",
    "/tmp",
    "-x",
    "A=1",
    "=",
    "A",
    "-env",
    "-genv",
    "-genvlist",
    "PATH,HOME",
    "-genvnone",
    "-l",
    "--stdin",
    "all",
    "none",
    "2",
    "--on-hang",
    "abort",
    "--mpi",
    "mpich",
    "list",
    "--dialect",
    "pympi",
    "-v",
    "true",
    "sh",
    "-mca",
    "--bind-to",
    "core",
    "-ppn",
    "-f",
    "-h",
    "--help",
    "-V",
    "-",
    "--=",
    "-n=1",
    "./true",
    "x.py",
    "--tag-output",
    "-nn",
    "\u{1F600}",
];

fn command_line(u: &mut Unstructured<'_>) -> Result<()> {
    let mut args: Vec<OsString> = Vec::new();
    for _ in 0..u.int_in_range(0..=16usize)? {
        args.push(if u.ratio(5, 6)? { OsString::from(u.choose(WORDS)?) } else { OsString::from_vec(u.arbitrary()?) });
    }
    let _ = options::asks_for_libraries(&args);
    let mut sections = match options::parse("limosa run", &args) {
        Ok(sections) => sections,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has words");
            return Ok(());
        }
    };
    let _ = options::library(&sections);
    let mut hosts = tempfile::NamedTempFile::new().expect("a file");
    hosts.write_all(u.arbitrary()?).expect("room in the file");
    for section in &mut sections {
        assert!(section.count.is_none_or(|count| (1..=65536).contains(&count)) && !section.command.is_empty());
        section.hostfile = section.hostfile.take().map(|_| hosts.path().to_owned());
    }
    match plan::plan(&sections) {
        Ok(plan) => {
            // Without a number, a program gets as many ranks as the hosts have slots.
            let counted: Option<usize> = sections.iter().map(|section| section.count.map(|count| count as usize)).sum();
            assert_eq!(plan.apps.len(), sections.len());
            assert_eq!(counted.unwrap_or(plan.ranks.len()), plan.ranks.len());
            for app in &plan.apps {
                assert!(app.program.is_absolute() && app.env.iter().all(|(name, _)| !name.is_empty()));
            }
            let _ = plan::complaints(&plan);
        }
        Err(error) => assert!(!error.what.is_empty(), "an error has words"),
    }
    Ok(())
}

/// Every byte comes out, in order, behind its rank's tag; lines of different ranks do not mix.
fn output(u: &mut Unstructured<'_>) -> Result<()> {
    const RANKS: usize = 3;
    let (eager, mut now) = (u.arbitrary()?, Instant::now());
    let (mut lines, mut out) = (Lines::new(RANKS, true, eager), Shown::default());
    let mut sent: [Vec<u8>; RANKS] = Default::default();
    for _ in 0..u.int_in_range(0..=30usize)? {
        let rank = u.choose_index(RANKS)?;
        let bytes: &[u8] = u.arbitrary()?;
        sent[rank].extend_from_slice(bytes);
        lines.push(rank, bytes, now, &mut out);
        now += Duration::from_millis(u.int_in_range(0..=60)?);
        lines.tick(now, &mut out);
    }
    for (rank, stream) in sent.iter_mut().enumerate() {
        stream.push(b'\n');
        lines.push(rank, b"\n", now, &mut out);
        lines.end(rank, &mut out);
    }
    if eager {
        return Ok(()); // A line that was shown early may have been cut by another rank's.
    }
    let out = out.bytes().expect("lines that were held can be read");
    for (rank, stream) in sent.iter().enumerate() {
        let tag = format!("[{rank}] ").into_bytes();
        let own = out.split_inclusive(|b| *b == b'\n').filter(|line| line.starts_with(&tag));
        assert_eq!(
            &own.flat_map(|line| line[tag.len()..].to_vec()).collect::<Vec<u8>>(),
            stream,
            "output of rank {rank}"
        );
    }
    Ok(())
}

/// Reads a command line, output of ranks, or a stack dump.
pub fn target(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An input that ends too early is not worth more.
    let _ = match u.arbitrary::<u8>().unwrap_or(0) % 4 {
        0 | 1 => command_line(&mut u),
        2 => output(&mut u),
        _ => {
            let _ = stacks::parse(u.take_rest());
            Ok(())
        }
    };
}
