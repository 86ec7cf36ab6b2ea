//! The committed coverage page tells the truth.

use std::path::Path;

use limosa_api::{Table, coverage, octave};

#[test]
fn the_coverage_page_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/coverage.md")).expect("docs/coverage.md exists");
    let table = Table::load();
    let fresh = coverage::render(&table, &coverage::scan(&table, &root.join("crates/limosa-abi/src/calls")));
    assert!(
        page == fresh,
        "docs/coverage.md is out of date: run `cargo run -p limosa-api -- coverage > docs/coverage.md`"
    );
}

#[test]
fn the_octave_coverage_page_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/octave-coverage.md")).expect("docs/octave-coverage.md exists");
    assert_eq!(
        page,
        octave::coverage(&Table::load()),
        "out of date: run `cargo run -p limosa-api -- octave-coverage > docs/octave-coverage.md`"
    );
}
