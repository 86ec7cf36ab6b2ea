//! Generates the wrappers, and the names of what they pass on, from the table.

use std::path::PathBuf;

use limosa_api::{Table, check};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let table = Table::load();
    for (file, text) in [("wrappers.rs", check::render(&table)), ("names.rs", check::names(&table))] {
        let out = folder.join(file);
        std::fs::write(&out, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
    }
}
