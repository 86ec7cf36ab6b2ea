//! Writes what is generated from the table to standard output, for packaging and for readers.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use limosa_api::{Table, coverage, entry, fortran, header, java, octave};

fn main() -> ExitCode {
    let table = Table::load();
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "header" => print!("{}", header::render(&table)),
        "coverage" => {
            let calls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/limosa-abi/src/calls");
            print!("{}", coverage::render(&table, &coverage::scan(&table, &calls)));
        }
        "glue" => {
            let wanted: Vec<String> = std::env::args().skip(2).map(|name| name.to_lowercase()).collect();
            let asked = |name: &str| wanted.is_empty() || wanted.contains(&name.to_lowercase());
            let functions =
                table.functions.iter().filter(|f| f.symbol && entry::converter(f).is_none() && asked(&f.name));
            for line in functions.map(|f| entry::skeleton(&table, f)).collect::<BTreeSet<_>>() {
                println!("{line}");
            }
        }
        "fortran" => {
            let folder = std::env::args().nth(2).unwrap_or_else(|| ".".into());
            for (name, text) in fortran::files(&table) {
                let file = Path::new(&folder).join(name);
                std::fs::write(&file, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
            }
        }
        "java" => print!("{}", java::render(&table)),
        "octave-functions" => print!("{}", octave::functions(&table)),
        "octave-constants" => print!("{}", octave::constants(&table)),
        "octave-coverage" => print!("{}", octave::coverage(&table)),
        "table" => println!("{}", table.json()),
        "symbols" => {
            for (name, _, _) in table.symbols() {
                println!("{name}\nP{name}");
            }
        }
        _ => {
            eprintln!(
                "usage: limosa-api header|coverage|symbols|table|java|octave-functions|octave-constants|octave-coverage|\
                 fortran [folder]|glue [function ...]"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
