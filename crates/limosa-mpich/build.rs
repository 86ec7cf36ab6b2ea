//! Generates the exported functions from the table of MPI-5 and from the facts about MPICH's ABI, and names the
//! library. Functions that `src/by_hand/` has are called instead of generated.

use limosa_api::{Table, mpich, translation};

fn main() {
    let table = Table::load();
    translation::build(&mpich::abi(&table), &table, &["src/by_hand"]);
}
