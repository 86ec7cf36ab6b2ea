//! Renders `mpi.h`, the C header of the ABI (MPI-5 section 20.2).
//!
//! - Handles are pointers to structures that are never defined; constants are macros, usable in `#if` where C allows
//!   it.
//! - Valid C90 given `<stdint.h>`, and C++.
//! - Functions with Fortran integers in their signature are not in the ABI. The header expresses them through functions
//!   that are, so that a program compiled here runs with any library of the ABI.

use std::fmt::Write;

use crate::{Arg, Array, Constant, Direction, Function, Table, Value};

/// Opaque handle types of the tool information interface.
const TOOL_HANDLES: [&str; 6] =
    ["enum", "cvar_handle", "pvar_handle", "pvar_session", "event_registration", "event_instance"];

/// The header's text.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    out.push_str("/* mpi.h: the C interface of MPI-5 in its standard ABI. Generated from api/mpi5.json. */\n");
    out.push_str(
        "#ifndef LIMOSA_MPI_H\n#define LIMOSA_MPI_H\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    );
    types(table, &mut out);
    out.push_str("/* function types */\n");
    for callback in &table.callbacks {
        callback_type(table, callback, &mut out);
    }
    for object in ["Comm", "File", "Win", "Session"] {
        writeln!(out, "typedef MPI_{object}_errhandler_function MPI_{object}_errhandler_fn;").unwrap();
    }
    constants(table, &mut out);
    for (title, prefix) in [("functions", ""), ("the same functions for profiling tools to call", "P")] {
        writeln!(out, "\n/* {title} */").unwrap();
        for (name, function, large) in table.symbols() {
            let declared = declarator(table, function, large);
            writeln!(out, "{} {prefix}{name}({declared});", table.return_type(function)).unwrap();
        }
    }
    fortran(table, &mut out);
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

fn types(table: &Table, out: &mut String) {
    out.push_str(
        "/* types */\ntypedef intptr_t MPI_Aint;\ntypedef int64_t MPI_Count;\ntypedef int64_t MPI_Offset;\ntypedef int \
         MPI_Fint;\n\n",
    );
    out.push_str("typedef struct MPI_Status {\n");
    for (name, c_type, count, _) in &table.status.fields {
        let array = if *count > 1 { format!("[{count}]") } else { String::new() };
        writeln!(out, "    {c_type} {name}{array};").unwrap();
    }
    out.push_str("} MPI_Status;\ntypedef MPI_Status MPI_F08_status;\n\n");
    for handle in &table.handles {
        writeln!(out, "typedef struct MPI_ABI_{} *{};", handle.c_type.trim_start_matches("MPI_"), handle.c_type)
            .unwrap();
    }
    for handle in TOOL_HANDLES {
        writeln!(out, "typedef struct MPI_ABI_T_{handle} *MPI_T_{handle};").unwrap();
    }
    for (c_type, category) in [("MPI_T_cb_safety", "CB_SAFETY_REQ_LEVELS"), ("MPI_T_source_order", "SOURCE_ORDERINGS")]
    {
        writeln!(out, "typedef enum {c_type} {{").unwrap();
        let members: Vec<&Constant> = table.constants.iter().filter(|c| c.category.ends_with(category)).collect();
        let rows: Vec<String> = members.iter().map(|c| format!("    {} = {}", c.name, number(c))).collect();
        writeln!(out, "{}\n}} {c_type};", rows.join(",\n")).unwrap();
    }
    out.push('\n');
}

fn callback_type(table: &Table, callback: &Function, out: &mut String) {
    for large in [false, true] {
        if large && !callback.large {
            continue;
        }
        let twin = if large { "_c" } else { "" };
        let declared = declarator(table, callback, large);
        writeln!(out, "typedef {} ({}{twin})({declared});", table.return_type(callback), callback.name).unwrap();
    }
}

fn number(constant: &Constant) -> i64 {
    match constant.value {
        Value::Int(v) => v,
        _ => panic!("{} has no number", constant.name),
    }
}

fn constants(table: &Table, out: &mut String) {
    let mut category = "";
    for constant in &table.constants {
        let Some(c_type) = &constant.c_type else { continue };
        if c_type.starts_with("MPI_T_")
            && !c_type.ends_with("handle")
            && !c_type.ends_with("session")
            && c_type != "MPI_T_enum"
        {
            continue; // an enumerator above
        }
        if category != constant.category {
            category = &constant.category;
            writeln!(out, "\n/* {} */", category.to_lowercase().replace('_', " ")).unwrap();
        }
        let value = number(constant);
        let handle = table.handles.iter().any(|h| &h.c_type == c_type);
        match c_type.as_str() {
            "int" if value < 0 => writeln!(out, "#define {} ({value})", constant.name),
            "int" => writeln!(out, "#define {} {value}", constant.name),
            _ if handle => writeln!(out, "#define {} (({c_type})0x{value:x})", constant.name),
            _ => writeln!(out, "#define {} (({c_type}){value})", constant.name),
        }
        .unwrap();
    }
}

/// The parameter list of a C prototype.
fn declarator(table: &Table, function: &Function, large: bool) -> String {
    let args = table.args(function, large);
    if args.is_empty() {
        return "void".into();
    }
    args.iter().map(parameter).collect::<Vec<_>>().join(", ")
}

fn parameter(arg: &Arg) -> String {
    let Arg { param, c_type, pointer } = arg;
    let name = &param.name;
    let constant = if param.constant { "const " } else { "" };
    if param.kind == "VARARGS" {
        return "...".into();
    }
    if param.func.is_some() {
        return format!("{c_type} *{name}");
    }
    match c_type.as_str() {
        "char **" => return format!("char *{name}[]"),
        "char ***" if param.array.is_some() && param.kind == "STRING_2DARRAY" => return format!("char **{name}[]"),
        _ => {}
    }
    match &param.array {
        Some(Array::Matrix(dims)) => format!("{constant}{c_type} {name}[][{}]", dims[1]),
        // MPI_UNWEIGHTED is no address of an array, and compilers warn where one is passed for `[]`.
        Some(Array::Length(_)) if param.kind == "WEIGHT" => format!("{constant}{c_type} *{name}"),
        Some(Array::Length(_)) if *pointer => format!("{constant}{c_type} {name}[]"),
        _ if *pointer => format!("{constant}{c_type} *{name}"),
        _ if c_type.ends_with('*') => format!("{constant}{c_type}{name}"),
        // A scalar by value: `const` would say nothing to the caller, except where the standard's own prototype has it.
        _ if param.dir == Direction::In && param.kind == "PROFILE_LEVEL" => format!("const {c_type} {name}"),
        _ => format!("{c_type} {name}"),
    }
}

/// Conversions between C and Fortran handles and statuses (MPI-5 section 19.3), in terms of the ABI.
fn fortran(table: &Table, out: &mut String) {
    out.push_str(
        "\n/* conversions between C and Fortran: not part of the ABI, therefore expressed by functions that are */\n",
    );
    for function in table.functions.iter().filter(|f| !f.symbol && !f.name.starts_with("MPI_Status_")) {
        let abi = function.name.replace("_c2f", "_toint").replace("_f2c", "_fromint");
        for prefix in ["", "P"] {
            writeln!(out, "#define {prefix}{} {prefix}{abi}", function.name).unwrap();
        }
    }
    out.push_str(
        "#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)\n\
         #define LIMOSA_INLINE static inline\n#elif defined(__GNUC__)\n#define LIMOSA_INLINE static __inline__\n\
         #else\n#define LIMOSA_INLINE static\n#endif\n\
         LIMOSA_INLINE int limosa_status_copy(const int *from, int *to)\n{\n    int i;\n    \
         for (i = 0; i < MPI_F_STATUS_SIZE; i++)\n        to[i] = from[i];\n    return MPI_SUCCESS;\n}\n",
    );
    for function in table.functions.iter().filter(|f| !f.symbol && f.name.starts_with("MPI_Status_")) {
        for prefix in ["", "P"] {
            // Status of C, of Fortran and of Fortran 2008 have one layout: eight default integers.
            writeln!(
                out,
                "#define {prefix}{}(from, to) limosa_status_copy((const int *)(from), (int *)(to))",
                function.name
            )
            .unwrap();
        }
    }
}
