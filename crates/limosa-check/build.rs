//! Generates the wrappers from the table.

use std::path::PathBuf;

use limosa_api::{Table, check};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo")).join("wrappers.rs");
    std::fs::write(&out, check::render(&Table::load()))
        .unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
}
