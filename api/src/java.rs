//! Renders the bindings of Java's Foreign Function & Memory API: the class `org.limosa.abi.Abi`, with a static method
//! for every exported function and a field for every constant of C.
//!
//! Handles are `long`, whatever C passes by address is a `MemorySegment`. Each function is looked up and linked at its
//! first call, in a class of its own: a program pays for what it calls.

use std::fmt::Write;

use crate::{Arg, Constant, Function, Table, Value};

/// How a C type is passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Int,
    Long,
    Double,
    Segment,
    Nothing,
}

impl Carrier {
    fn of_argument(arg: &Arg) -> Carrier {
        match arg.c_type.as_str() {
            _ if arg.pointer || arg.param.func.is_some() || arg.c_type.ends_with('*') => Carrier::Segment,
            "int" | "MPI_Fint" | "MPI_T_cb_safety" | "MPI_T_source_order" => Carrier::Int,
            _ => Carrier::Long,
        }
    }

    fn of_result(c_type: &str) -> Carrier {
        match c_type {
            "int" | "MPI_Fint" => Carrier::Int,
            "double" => Carrier::Double,
            "void" => Carrier::Nothing,
            _ => Carrier::Long,
        }
    }

    fn java(self) -> &'static str {
        match self {
            Carrier::Int => "int",
            Carrier::Long => "long",
            Carrier::Double => "double",
            Carrier::Segment => "MemorySegment",
            Carrier::Nothing => "void",
        }
    }

    /// The letter that stands for it in the text that `Link` reads.
    fn letter(self) -> char {
        match self {
            Carrier::Int => 'i',
            Carrier::Long => 'l',
            Carrier::Double => 'd',
            Carrier::Segment => 'a',
            Carrier::Nothing => 'v',
        }
    }
}

/// The class's text.
pub fn render(table: &Table) -> String {
    let mut out = String::from(
        "// Generated from api/mpi5.json: the functions and constants of the MPI-5 ABI.\n\
         package org.limosa.abi;\n\n\
         import java.lang.foreign.MemorySegment;\nimport java.lang.invoke.MethodHandle;\n\n\
         /**\n * The functions and constants of the MPI-5 ABI, as in C. Handles are {@code long}; arrays, buffers and\n \
         * results are memory segments. Functions return the error code of C.\n */\n\
         public final class Abi {\n    private Abi() {}\n",
    );
    for constant in &table.constants {
        declare(table, constant, &mut out);
    }
    let status = &table.status;
    writeln!(out, "    /** Bytes of an MPI_Status. */\n    public static final int STATUS_BYTES = {};", status.size)
        .unwrap();
    for (name, _, _, offset) in &status.fields {
        writeln!(
            out,
            "    /** Where {name} is in an MPI_Status. */\n    public static final int {name}_OFFSET = {offset};"
        )
        .unwrap();
    }
    for (name, function, large) in table.symbols() {
        if is_bound(function) {
            method(table, &name, function, large, &mut out);
        }
    }
    out.push_str("}\n");
    out
}

/// Variable arguments cannot be bound once for all calls.
fn is_bound(function: &Function) -> bool {
    !function.params.iter().any(|param| param.kind == "VARARGS")
}

fn declare(table: &Table, constant: &Constant, out: &mut String) {
    let (Some(c_type), Value::Int(value)) = (&constant.c_type, &constant.value) else { return };
    let name = &constant.name;
    let handle = table.handles.iter().any(|h| &h.c_type == c_type);
    let (java, value) = match c_type.as_str() {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => ("int", value.to_string()),
        "MPI_Offset" => ("long", format!("{value}L")),
        _ if handle => ("long", format!("0x{value:x}L")),
        _ if c_type.ends_with('*') => ("MemorySegment", format!("MemorySegment.ofAddress({value}L)")),
        _ => ("long", format!("{value}L")),
    };
    writeln!(out, "    /** {{@code {name}}}. */\n    public static final {java} {name} = {value};").unwrap();
}

fn method(table: &Table, name: &str, function: &Function, large: bool, out: &mut String) {
    let args = table.args(function, large);
    let carriers: Vec<Carrier> = args.iter().map(Carrier::of_argument).collect();
    let idents: Vec<String> = args.iter().map(|arg| ident(&arg.param.name)).collect();
    let typed: Vec<String> = idents.iter().zip(&carriers).map(|(i, c)| format!("{} {i}", c.java())).collect();
    let result = Carrier::of_result(&table.return_type(function));
    let letters: String = carriers.iter().map(|c| c.letter()).collect();
    let call = format!("{name}_link.CALL.invokeExact({})", idents.join(", "));
    let call = if result == Carrier::Nothing { call } else { format!("return ({}) {call}", result.java()) };
    writeln!(
        out,
        r#"
    private static final class {name}_link {{
        static final MethodHandle CALL = Link.function("{name}", "{}{letters}");
    }}

    /** {{@code {name}}}: {}. */
    public static {} {name}({}) {{
        try {{
            {call};
        }} catch (Throwable thrown) {{
            throw Link.failed(thrown);
        }}
    }}"#,
        result.letter(),
        if function.chapter.is_empty() { "MPI-5" } else { &function.chapter },
        result.java(),
        typed.join(", ")
    )
    .unwrap();
}

/// A parameter's name that is none of Java's words.
fn ident(name: &str) -> String {
    match name {
        "native" | "class" | "new" | "final" | "public" | "private" | "assert" => format!("{name}_"),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_bound_but_those_with_variable_arguments() {
        let table = Table::load();
        let text = render(&table);
        for (name, function, _) in table.symbols() {
            assert_eq!(text.contains(&format!(" {name}(")), is_bound(function), "{name}");
        }
        assert_eq!(table.symbols().iter().filter(|(_, function, _)| !is_bound(function)).count(), 1);
    }

    #[test]
    fn counts_handles_and_addresses_are_passed_as_c_does() {
        let text = render(&Table::load());
        assert!(text.contains(r#"Link.function("MPI_Send", "iailiil")"#));
        assert!(text.contains(r#"Link.function("MPI_Send_c", "ialliil")"#));
        assert!(text.contains("public static int MPI_Comm_rank(long comm, MemorySegment rank)"));
        assert!(text.contains("public static double MPI_Wtime()"));
        assert!(text.contains("MemorySegment MPI_IN_PLACE = MemorySegment.ofAddress("));
    }
}
