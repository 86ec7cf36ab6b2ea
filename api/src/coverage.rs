//! Renders `docs/coverage.md`: every function of the standard, by chapter, with what is done.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use crate::{Function, Table, entry};

/// Finds the functions that are done: those with glue in a module of the folder `calls`. Maps the lower-case name to the module. Only files
/// that `mod.rs` names are modules, so a file counts from the moment it is part of the crate.
///
/// # Panics
/// If a file cannot be read or two modules define the same glue.
pub fn scan(calls: &Path) -> HashMap<String, String> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let mut found = HashMap::new();
    for line in read(&calls.join("mod.rs")).lines() {
        let Some(module) = line.strip_prefix("pub(crate) mod ").and_then(|rest| rest.strip_suffix(';')) else { continue };
        for line in read(&calls.join(format!("{module}.rs"))).lines() {
            let Some(rest) = line.strip_prefix("pub(crate) fn mpi_") else { continue };
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = format!("mpi_{}", &rest[..end]);
            if let Some(other) = found.insert(name.clone(), module.to_owned()) {
                panic!("{name} has glue in both calls/{other}.rs and calls/{module}.rs");
            }
        }
    }
    found
}

fn is_done(function: &Function, glue: &HashMap<String, String>) -> bool {
    !function.symbol || entry::converter(function).is_some() || glue.contains_key(&function.name.to_lowercase())
}

/// The page.
pub fn render(table: &Table, glue: &HashMap<String, String>) -> String {
    let mut out = String::from(
        "# Coverage of MPI-5\n\nEvery C function of the standard, by chapter. *done*: implemented; *not yet*: exported, but reports \
         `MPI_ERR_UNSUPPORTED_OPERATION` and its name through the error handler. A function with a large-count twin is listed once, with `(_c)`.\n\
         *in mpi.h*: a conversion for Fortran, outside the ABI, that the header expresses through functions of the ABI.\n\n\
         This page is generated: `cargo run -p limosa-api -- coverage > docs/coverage.md`.\n\n",
    );
    let mut rows = String::new();
    let mut details = String::new();
    let (mut all_done, mut all) = (0, 0);
    for chapter in &table.chapters {
        let functions: Vec<&Function> = table.functions.iter().filter(|f| &f.chapter == chapter).collect();
        let done = functions.iter().filter(|f| is_done(f, glue)).count();
        (all_done, all) = (all_done + done, all + functions.len());
        writeln!(rows, "| {chapter} | {done} | {} |", functions.len()).unwrap();
        writeln!(details, "\n## {chapter}\n\n| function | state |\n|---|---|").unwrap();
        for f in functions {
            let state = match (is_done(f, glue), f.symbol) {
                (_, false) => "in mpi.h",
                (true, _) => "done",
                (false, _) => "not yet",
            };
            writeln!(details, "| {}{} | {state} |", f.name, if f.large { " (_c)" } else { "" }).unwrap();
        }
    }
    writeln!(out, "| chapter | done | functions |\n|---|---|---|\n{rows}| **all** | **{all_done}** | **{all}** |").unwrap();
    out + &details
}
