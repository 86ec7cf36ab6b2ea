//! Writes what is generated from the table to standard output, for packaging and for readers.

use std::path::Path;
use std::process::ExitCode;

use limosa_api::{Table, coverage, header};

fn main() -> ExitCode {
    let table = Table::load();
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "header" => print!("{}", header::render(&table)),
        "coverage" => {
            let calls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/limosa-abi/src/calls");
            print!("{}", coverage::render(&table, &coverage::scan(&calls)));
        }
        "symbols" => {
            for (name, _, _) in table.symbols() {
                println!("{name}\nP{name}");
            }
        }
        _ => {
            eprintln!("usage: limosa-api header|coverage|symbols");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
