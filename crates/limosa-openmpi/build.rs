//! Generates the exported functions and variables from the table of MPI-5 and from the facts about Open MPI's ABI, and
//! names the library. Functions that `by_hand` has, here or in limosa-mpich, are called instead of generated.

use limosa_api::{Table, openmpi, translation};

fn main() {
    let table = Table::load();
    translation::build(&openmpi::abi(&table), &table, &["src/by_hand", "../limosa-mpich/src/by_hand"]);
}
