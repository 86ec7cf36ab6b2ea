//! The facts about Open MPI's ABI, for `limosa-openmpi`: `api/openmpi.json` and the objects behind predefined handles.
//!
//! A predefined handle of Open MPI is the address of an exported variable. Programs that are linked for a fixed address
//! have copies of these variables in their own memory, as large as the variable in Open MPI's library is (copy
//! relocations). The first word of each variable holds the handle of the standard ABI.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::translation::{Abi, classes};
use crate::{Table, Value};

/// The file.
#[derive(Deserialize)]
struct Facts {
    openmpi: String,
    constants: BTreeMap<String, i64>,
    /// The variable behind each predefined handle.
    objects: BTreeMap<String, String>,
    /// Sizes of these variables.
    sizes: BTreeMap<String, usize>,
    functions: Vec<String>,
}

/// Datatypes of Open MPI, and those of the standard that are the same. Functions return the last one of a kind:
/// programs in C get theirs, not Fortran's.
const ALIASES: [(&str, &str); 3] = [
    ("MPIX_SHORT_FLOAT", "MPI_REAL2"),
    ("MPIX_CXX_SHORT_FLOAT_COMPLEX", "MPI_COMPLEX4"),
    ("MPIX_C_SHORT_FLOAT_COMPLEX", "MPI_COMPLEX4"),
];

/// The facts that are built into this crate.
///
/// # Panics
/// If the file is wrong.
pub fn abi(table: &Table) -> Abi {
    let facts: Facts =
        serde_json::from_str(include_str!("../openmpi.json")).unwrap_or_else(|e| panic!("api/openmpi.json: {e}"));
    // Open MPI has no class of its own for error handlers.
    let mut with_aliases = facts.constants.clone();
    with_aliases.insert("MPI_ERR_ERRHANDLER".into(), facts.constants["MPI_ERR_ARG"]);
    Abi {
        owner: "Open MPI",
        library: "libmpi.so.40",
        tables: objects(table, &facts) + &classes(table, &with_aliases),
        version: facts.openmpi,
        constants: facts.constants,
        functions: facts.functions,
        has_integers: false,
    }
}

/// The exported variables, and their addresses by the standard ABI's handles.
fn objects(table: &Table, facts: &Facts) -> String {
    let mut standard = BTreeMap::<&str, i64>::new();
    let mut addresses = BTreeMap::<i64, &str>::new();
    for constant in &table.constants {
        if let (Value::Int(value), Some(symbol)) = (&constant.value, facts.objects.get(&constant.name)) {
            standard.entry(symbol).or_insert(*value);
            addresses.entry(*value).or_insert(symbol);
        }
    }
    // Extensions under other names.
    for (name, own) in ALIASES {
        let constant = table.constants.iter().find(|constant| constant.name == own);
        if let (Some(Value::Int(value)), Some(symbol)) = (constant.map(|c| &c.value), facts.objects.get(name)) {
            standard.insert(symbol, *value);
            addresses.insert(*value, symbol);
        }
    }
    let mut out = String::new();
    for (symbol, size) in &facts.sizes {
        // What the standard ABI has not becomes a number that no library takes for a handle; variables that are no
        // objects are zero.
        let is_object = facts.objects.values().any(|object| object == symbol);
        let value = standard.get(symbol.as_str()).copied().unwrap_or(if is_object { 0xfff } else { 0 });
        writeln!(
            out,
            "#[unsafe(no_mangle)] pub static {symbol}: crate::handles::Object<{}> = crate::handles::Object::new({value});",
            size.saturating_sub(size_of::<usize>())
        )
        .unwrap();
    }
    // Handles of the standard ABI lie below 1024; each value belongs to one kind.
    let entries = (0..1024).map(|value| match addresses.get(&value) {
        Some(symbol) => format!("crate::handles::Address::of(&raw const {symbol})"),
        None => "crate::handles::Address::NONE".into(),
    });
    let entries = entries.collect::<Vec<_>>().join(", ");
    writeln!(out, "pub(crate) static OBJECTS: [crate::handles::Address; 1024] = [{entries}];").unwrap();
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn predefined_handles_of_the_standard_have_an_object_in_open_mpi() {
        let table = Table::load();
        let facts: Facts = serde_json::from_str(include_str!("../openmpi.json")).unwrap();
        let is_handle = |c_type: &Option<String>| table.handles.iter().any(|h| Some(&h.c_type) == c_type.as_ref());
        let missing = table.constants.iter().filter(|c| is_handle(&c.c_type) && !facts.objects.contains_key(&c.name));
        let missing: BTreeSet<_> = missing.map(|constant| constant.name.as_str()).collect();
        assert_eq!(missing, BTreeSet::from(["MPI_LOGICAL16"]));
    }
}
