//! The facts about MPICH's ABI, for `limosa-mpich`: `api/mpich.json` and the tables of predefined handles.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Table;
use crate::translation::{Abi, array, classes, common};

/// The file.
#[derive(Deserialize)]
struct Facts {
    mpich: String,
    constants: BTreeMap<String, i64>,
    functions: Vec<String>,
    /// Functions that only Intel MPI exports.
    intel: Vec<String>,
}

/// The facts that are built into this crate.
///
/// # Panics
/// If the file is wrong.
pub fn abi(table: &Table) -> Abi {
    let facts: Facts =
        serde_json::from_str(include_str!("../mpich.json")).unwrap_or_else(|e| panic!("api/mpich.json: {e}"));
    Abi {
        owner: "MPICH",
        library: "libmpi.so.12",
        tables: tables(table, &facts.constants),
        version: facts.mpich,
        constants: facts.constants,
        functions: [facts.functions, facts.intel].concat(),
        has_integers: true,
    }
}

fn tables(table: &Table, constants: &BTreeMap<String, i64>) -> String {
    let mut out = String::new();
    let both = common(table, constants);
    let c_type = |name: &str| table.constants.iter().find(|c| c.name == name).and_then(|c| c.c_type.as_deref());
    let is_handle = |name: &str| table.handles.iter().any(|h| Some(h.c_type.as_str()) == c_type(name));
    // Handles of the standard ABI lie below 1024; each value belongs to one kind.
    let handles = both.iter().filter(|(name, ..)| is_handle(name));
    let mut to_theirs: BTreeMap<usize, i64> =
        handles.map(|(_, standard, theirs)| (*standard as usize, i64::from(*theirs as i32))).collect();
    // MPICH has two names for IEEE 754's binary16 and the standard one: programs in C get theirs.
    let binary16 = both.iter().find(|(name, ..)| *name == "MPI_REAL2").expect("a datatype of Fortran").1;
    let in_c = constants["MPIX_C_FLOAT16"];
    to_theirs.insert(binary16 as usize, in_c);
    array("PREDEFINED", "i32", &to_theirs, 1024, 0, &mut out);
    let datatypes = |first: i64, mask: i64| {
        let of_kind = both.iter().filter(|(name, ..)| c_type(name) == Some("MPI_Datatype"));
        let chosen = of_kind.filter(move |(_, _, theirs)| theirs & 0xffff_ffff & !mask == first);
        chosen.map(move |(_, standard, theirs)| ((theirs & mask & 0xff) as usize, *standard)).collect()
    };
    // What MPICH has and the standard ABI has not becomes a number that no library takes for a datatype.
    let mut single: BTreeMap<usize, i64> = datatypes(0x4c00_0000, 0xffff);
    single.insert((in_c & 0xff) as usize, binary16);
    array("DATATYPES", "u16", &single, 256, 0xfff, &mut out);
    array("PAIRS", "u16", &datatypes(0x8c00_0000, 0xff), 8, 0xfff, &mut out);
    let operations = both.iter().filter(|(name, _, theirs)| c_type(name) == Some("MPI_Op") && theirs >> 24 == 0x58);
    let operations = operations.map(|(_, standard, theirs)| ((theirs & 0xff) as usize, *standard)).collect();
    array("OPERATIONS", "u16", &operations, 256, 0xfff, &mut out);
    out + &classes(table, constants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_classes_of_the_standard_have_numbers_in_mpich() {
        let table = Table::load();
        let abi = abi(&table);
        for constant in table.constants.iter().filter(|c| c.category == "ERROR_CLASSES") {
            assert!(abi.constants.contains_key(&constant.name), "{}", constant.name);
        }
    }
}
