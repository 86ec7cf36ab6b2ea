//! Generates the exported functions from the table and names the library. The wheel takes its other generated files
//! from this script, too: nothing of the table is compiled a second time for them.
//!
//! A function counts as implemented when `src/calls/` has glue for it, and has a fast path when `src/fast_path.rs` has
//! one. This script therefore reruns whenever they change.

use std::path::PathBuf;

use limosa_api::{Table, coverage, entry, fortran, header, java, octave};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/calls");
    println!("cargo:rerun-if-changed=src/fast_path.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let table = Table::load();
    let glue = coverage::scan(&table, &manifest.join("src/calls"));
    let short = coverage::fast_paths(&table, &manifest.join("src/fast_path.rs"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let generated = [
        ("entry.rs", entry::render(&table, &glue, &short)),
        ("kind.rs", entry::kinds(&table)),
        ("callback.rs", entry::callbacks(&table)),
        ("mpi.h", header::render(&table)),
        ("mpitb_functions.cc", octave::functions(&table)),
        ("mpitb_constants.cc", octave::constants(&table)),
        ("Abi.java", java::render(&table)),
    ];
    for (name, text) in generated.into_iter().chain(fortran::files(&table)) {
        let file = out.join(name);
        std::fs::write(&file, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
    }
}
