//! The job's description as others may have left it: a damaged status board, odd variables.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

use arbitrary::{Result, Unstructured};
use limosa_cli::hang::explain;
use limosa_cli::hang::stacks::Places;
use limosa_cli::hang::watch::Hang;
use limosa_job::config::{self, Audience, VARIABLES};
use limosa_job::{Board, Peer, Shape};

/// A variable's name and value: those that exist, near misses, and anything.
fn variable(u: &mut Unstructured<'_>) -> Result<(OsString, OsString)> {
    let mut name = u.choose(VARIABLES)?.name.as_bytes().to_vec();
    if u.ratio(1, 4)? {
        let at = u.choose_index(name.len())?;
        name[at] = u.arbitrary()?;
    }
    let value = match u.int_in_range(0..=3u8)? {
        0 => u
            .choose(&[
                "auto", "poll", "1", "0", "on", "p2p", "abort", "-1", "1e9", "1e-400", "inf", "NaN", " 8192 ", "",
            ])?
            .as_bytes()
            .to_vec(),
        1 => crate::number(u)?.to_string().into_bytes(),
        _ => u.arbitrary()?,
    };
    Ok((OsString::from_vec(name), OsString::from_vec(value)))
}

fn variables(u: &mut Unstructured<'_>) -> Result<()> {
    let count = u.int_in_range(0..=6usize)?;
    let vars: Vec<(OsString, OsString)> = (0..count).map(|_| variable(u)).collect::<Result<_>>()?;
    let (read, complaints) = config::parse(vars.iter().cloned());
    assert!(complaints.len() <= vars.len(), "one complaint for each variable");
    assert!(read.eager_bytes <= 1 << 24 && read.spin.as_secs() <= 1, "numbers are in their ranges");
    // What counts as right is said without a complaint in its plain spelling, and means the same.
    let mut plain = Vec::new();
    for (name, value) in &vars {
        // The launcher's own variables are no part of the configuration, but for this one.
        let is_read = |variable: &&config::Variable| {
            variable.audience == Audience::User || variable.name == limosa_job::ENV_COLL_TUNED
        };
        let known = name.to_str().and_then(config::find).filter(is_read);
        if let (Some(variable), Ok(value)) =
            (known, known.map_or(Err(String::new()), |v| v.form.check(value.to_string_lossy().trim())))
        {
            plain.push((OsString::from(variable.name), OsString::from(value)));
        }
    }
    assert_eq!(config::parse(plain), (read, Vec::new()));
    Ok(())
}

fn board(u: &mut Unstructured<'_>) -> Result<()> {
    let ranks = u.int_in_range(1..=4u32)?;
    let (fd, _own) = Board::create(&Shape { appnums: vec![0; ranks as usize], spare: 3, universe: 1, launcher_pid: 1 })
        .expect("memory for a board");
    let end = rustix::fs::fstat(&fd).expect("a file").st_size as u64;
    for _ in 0..u.int_in_range(0..=60usize)? {
        // Words of the header and of the entries; few of the numbers mean anything.
        let at = u.int_in_range(0..=end / 4 - 1)? * 4;
        let word: u32 = if u.arbitrary()? { u.int_in_range(0..=6)? } else { u.arbitrary()? };
        rustix::io::pwrite(&fd, &word.to_ne_bytes(), at).expect("writing to memory");
    }
    // The board itself is sealed: a shorter file is a different one.
    let shorter = if u.ratio(1, 8)? { Some(beginning(&fd, u.int_in_range(0..=end)?)) } else { None };
    let file = shorter.as_ref().map_or(fd.as_fd(), AsFd::as_fd);
    let Ok(board) = Board::open(file) else { return Ok(()) };
    if let Some(abort) = board.aborted() {
        assert!(abort.rank < board.used(), "an abort names a rank of the job");
    }
    let views = board.views();
    assert_eq!(views.len(), board.used() as usize);
    for wait in views.iter().flat_map(|view| &view.records).flat_map(|record| &record.waits) {
        if let Peer::Rank { world, .. } = wait.peer {
            assert!(world < board.used(), "a wait is for a rank of the job");
        }
    }
    let report = explain::report(u.arbitrary()?, &views, &Hang::default(), &Places::default(), None);
    assert!(report.len() < 100_000, "a report is short");
    Ok(())
}

/// A file with so many of the first bytes of this one.
fn beginning(fd: &impl AsFd, bytes: u64) -> std::fs::File {
    let mut head = vec![0; bytes as usize];
    let read = rustix::io::pread(fd, head.as_mut_slice(), 0).expect("reading memory");
    let file = tempfile::tempfile().expect("a temporary file");
    rustix::io::pwrite(&file, &head[..read], 0).expect("writing a file");
    file
}

/// Reads variables or a board.
pub fn target(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An input that ends too early is not worth more.
    let _ = if u.arbitrary().unwrap_or(false) { variables(&mut u) } else { board(&mut u) };
}
