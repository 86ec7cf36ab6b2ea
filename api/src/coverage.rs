//! Renders `docs/coverage.md`: every function of the standard, by chapter, with what is done.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use crate::{Function, Table, entry};

/// The glue of a function that is done.
#[derive(Clone, PartialEq, Debug)]
pub struct Glue {
    /// The module of `calls` that holds it.
    pub module: String,
    /// Name of the glue function.
    pub name: String,
    /// It serves all forms of the operation.
    pub plan: bool,
}

/// Finds the functions that are done: those with glue in a module of the folder `calls`, by their lower-case names.
/// Only files that `mod.rs` names are modules, so a file counts from the moment it is part of the crate.
///
/// # Panics
/// If a file cannot be read, if two modules define the glue of one function, or if a plan is not that of an operation
/// with several forms.
pub fn scan(table: &Table, calls: &Path) -> HashMap<String, Glue> {
    let mut found = HashMap::new();
    for line in read(&calls.join("mod.rs")).lines() {
        let Some(module) = line.strip_prefix("pub(crate) mod ").and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        for name in functions(&read(&calls.join(format!("{module}.rs")))) {
            for (function, glue) in served(table, module, name) {
                if let Some(other) = found.insert(function.clone(), glue) {
                    panic!("{function} has glue in both calls/{}.rs and calls/{module}.rs", other.module);
                }
            }
        }
    }
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}

/// The names of the functions that a module offers to its crate.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| line.strip_prefix("pub(crate) fn ")).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// The functions, in lower case, that have a fast path in this file, and whether it wants to know the call's name:
/// those do that may wait.
///
/// # Panics
/// If the file cannot be read, or has a fast path of a function that the standard does not have.
pub fn fast_paths(table: &Table, file: &Path) -> HashMap<String, bool> {
    let source = read(file);
    let wants_name = |name: &str| {
        let start = source.find(&format!("fn {name}(")).expect("it was found by its name");
        let parameters = source[start..].split_once(')').map_or("", |(parameters, _)| parameters);
        parameters.contains("name: &'static str")
    };
    let paths: HashMap<String, bool> = functions(&source).map(|name| (name.to_owned(), wants_name(name))).collect();
    for name in paths.keys() {
        let known = table.functions.iter().any(|f| f.name.to_lowercase() == *name);
        assert!(known, "{} has {name}, but the standard has no such function", file.display());
    }
    paths
}

/// The functions, in lower case, that the Rust function `name` of a module is the glue of.
fn served(table: &Table, module: &str, name: &str) -> Vec<(String, Glue)> {
    let glue = |plan| Glue { module: module.to_owned(), name: name.to_owned(), plan };
    if name.starts_with("mpi_") {
        return vec![(name.to_owned(), glue(false))];
    }
    let Some(operation) = name.strip_prefix("plan_") else { return Vec::new() };
    let forms = table.functions.iter().filter(|f| f.operation().to_lowercase() == format!("mpi_{operation}"));
    let served: Vec<_> = forms.map(|f| (f.name.to_lowercase(), glue(true))).collect();
    assert!(
        served.len() > 1,
        "calls/{module}.rs has {name}, but api/roles.json has no operation of that name with several forms"
    );
    served
}

fn is_done(function: &Function, glue: &HashMap<String, Glue>) -> bool {
    !function.symbol || entry::converter(function).is_some() || glue.contains_key(&function.name.to_lowercase())
}

/// The page.
pub fn render(table: &Table, glue: &HashMap<String, Glue>) -> String {
    let mut out = String::from(
        "# Coverage of MPI-5\n\n\
         Every C function of the standard, by chapter. *done*: implemented; *not yet*: exported, but reports\n\
         `MPI_ERR_UNSUPPORTED_OPERATION` and its name through the error handler. A function with a large-count twin is \
         listed\nonce, with `(_c)`.\n\
         *in mpi.h*: a conversion for Fortran, outside the ABI, that the header expresses through functions of the \
         ABI.\n\n\
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
    writeln!(out, "| chapter | done | functions |\n|---|---|---|\n{rows}| **all** | **{all_done}** | **{all}** |")
        .unwrap();
    out + &details
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_serves_all_forms_and_other_glue_one_function() {
        let table = Table::load();
        let names = |glue: &str| -> Vec<String> {
            served(&table, "coll", glue).into_iter().map(|(function, _)| function).collect()
        };
        assert_eq!(
            names("plan_reduce_scatter"),
            ["mpi_ireduce_scatter", "mpi_reduce_scatter", "mpi_reduce_scatter_init"]
        );
        assert_eq!(names("mpi_igather"), ["mpi_igather"]);
        assert_eq!(names("helper"), Vec::<String>::new());
    }

    #[test]
    #[should_panic(
        expected = "has plan_comm_size, but api/roles.json has no operation of that name with several forms"
    )]
    fn a_plan_of_no_operation_is_reported() {
        served(&Table::load(), "comm", "plan_comm_size");
    }
}
