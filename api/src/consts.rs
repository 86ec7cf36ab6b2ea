//! Renders the constants as Rust, for `limosa-mpi`.
//!
//! Error classes become `ErrorClass`, handles and other C ints `i32`, addresses (`MPI_IN_PLACE`, `MPI_COMM_DUP_FN`,
//! ...) `usize`, and `MPI_DISPLACEMENT_CURRENT` `i64`. Constants that only Fortran has are left out.

use std::fmt::Write;

use crate::{Constant, Table, Value};

/// The Rust type of a constant, if C has it and its value is a number.
fn rust_type(table: &Table, constant: &Constant) -> Option<&'static str> {
    let c_type = constant.c_type.as_deref()?;
    Some(match c_type {
        "int" if constant.category == "ERROR_CLASSES" => "ErrorClass",
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "i32",
        "MPI_Offset" => "i64",
        _ if table.handles.iter().any(|h| h.c_type == c_type) => "i32",
        _ => "usize",
    })
}

/// What a reader of the generated documentation wants to know about a constant.
fn doc(constant: &Constant) -> String {
    let words = constant.category.to_lowercase().replace('_', " ");
    let named: Vec<&str> =
        [&constant.c, &constant.cpp, &constant.fortran].into_iter().flatten().map(String::as_str).collect();
    if named.is_empty() { words } else { format!("{words}: `{}`", named.join("`, `")) }
}

/// Rust source: one `pub const` per constant, `ERROR_CLASS_NAMES`, `PREDEFINED_HANDLES` and `PREDEFINED_DATATYPES`.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    for constant in &table.constants {
        if let (Some(ty), Value::Int(value)) = (rust_type(table, constant), &constant.value) {
            writeln!(out, "/// {}\npub const {}: {ty} = {value};", doc(constant), constant.name).unwrap();
        }
    }
    let number = |c: &Constant| {
        if let Value::Int(v) = c.value { v } else { unreachable!("error classes and handles are numbers") }
    };

    out.push_str(
        "/// Error classes with their names, in ascending order.\n\
         pub const ERROR_CLASS_NAMES: &[(ErrorClass, &str)] = &[\n",
    );
    let mut classes: Vec<&Constant> = table.constants.iter().filter(|c| c.category == "ERROR_CLASSES").collect();
    classes.sort_by_key(|c| number(c));
    for c in classes {
        writeln!(out, "    ({}, {:?}),", number(c), c.name).unwrap();
    }
    out.push_str("];\n");

    for (name, doc, wanted) in [
        ("PREDEFINED_HANDLES", "All predefined handles", None),
        ("PREDEFINED_DATATYPES", "Predefined datatypes", Some("MPI_Datatype")),
    ] {
        writeln!(out, "/// {doc} as (value, name) in ascending order; of synonyms the first by name.").unwrap();
        writeln!(out, "pub const {name}: &[(i32, &str)] = &[").unwrap();
        let of_kind = |c: &&Constant| match wanted {
            Some(c_type) => c.c_type.as_deref() == Some(c_type),
            None => table.handles.iter().any(|h| Some(&h.c_type) == c.c_type.as_ref()),
        };
        let mut handles: Vec<&Constant> = table.constants.iter().filter(of_kind).collect();
        handles.sort_by_key(|c| (number(c), c.name.clone()));
        handles.dedup_by_key(|c| number(c));
        for c in handles {
            writeln!(out, "    ({}, {:?}),", number(c), c.name).unwrap();
        }
        out.push_str("];\n");
    }
    out
}
