//! Writes the standard's constants, from the table, where `src/consts.rs` includes them; compiles the reductions that
//! need C.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo")).join("consts.rs");
    std::fs::write(&out, limosa_api::consts::render(&limosa_api::Table::load()))
        .unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
    println!("cargo:rerun-if-changed=src/op/wide.c");
    cc::Build::new().file("src/op/wide.c").warnings_into_errors(true).opt_level(2).compile("limosa_wide");
}
