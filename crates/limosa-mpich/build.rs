//! Generates the exported functions from the table of MPI-5 and from the facts about MPICH's ABI, and names the
//! library. Functions that `src/by_hand/` has are called instead of generated.

use std::path::{Path, PathBuf};

use limosa_api::Table;
use limosa_api::mpich::{self, ByHand, Mpich};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/by_hand");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    // The standard ABI's library is searched for beside this one, and a folder or two above it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--enable-new-dtags,-rpath,$ORIGIN:$ORIGIN/..:$ORIGIN/../..");
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let by_hand = by_hand(&manifest.join("src/by_hand"));
    let (table, facts) = (Table::load(), Mpich::load());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let generated = [
        ("names.rs", mpich::names(&table)),
        ("standard.rs", mpich::standard(&table, &facts)),
        ("entry.rs", mpich::entries(&table, &facts, &by_hand)),
    ];
    for (name, text) in generated {
        let file = out.join(name);
        std::fs::write(&file, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
    }
}

/// The functions `pub(crate) unsafe fn mpi_...` of a folder.
fn by_hand(folder: &Path) -> Vec<ByHand> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of this crate") {
        let file = entry.expect("a folder of this crate").path();
        let text = std::fs::read_to_string(&file).expect("a source of this crate");
        let module = file.file_stem().expect("a source of this crate").to_string_lossy().into_owned();
        for part in text.split("pub(crate) unsafe fn mpi").skip(1) {
            let (name, rest) = part.split_once('(').expect("parameters");
            let (params, rest) = rest.split_once(')').expect("parameters");
            let result = rest.split_once('{').expect("a body").0.trim();
            let params = params.split(',').map(str::trim).filter(|param| !param.is_empty()).collect::<Vec<_>>();
            found.push(ByHand {
                module: module.clone(),
                name: format!("mpi{name}"),
                params: params.join(", "),
                result: result.strip_prefix("->").expect("a result").trim().into(),
            });
        }
    }
    found
}
