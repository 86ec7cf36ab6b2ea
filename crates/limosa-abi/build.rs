//! Generates the exported functions from the table and names the library.
//!
//! A function counts as implemented when `src/calls/` has glue for it, and has a fast path when `src/fast_path.rs` has
//! one. This script therefore reruns whenever they change.

use std::path::PathBuf;

use limosa_api::{Table, coverage, entry};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/calls");
    println!("cargo:rerun-if-changed=src/fast_path.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let table = Table::load();
    let glue = coverage::scan(&table, &manifest.join("src/calls"));
    let short = coverage::fast_paths(&table, &manifest.join("src/fast_path.rs"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo")).join("entry.rs");
    std::fs::write(&out, entry::render(&table, &glue, &short))
        .unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
}
