//! Renders the exported functions of the library as Rust, for `limosa-abi`.
//!
//! Per function of the table there is one private function that checks and decodes the arguments and calls the glue, and up to four
//! exported ones that only widen their integers and pass their name: `MPI_X`, `PMPI_X`, `MPI_X_c`, `PMPI_X_c`. Which Rust type the glue sees
//! for which kind of parameter is the convention written down in `crates/limosa-abi/src/calls/mod.rs`; [`Role`] is that convention as code.
//!
//! A function without glue becomes one that reports `MPI_ERR_UNSUPPORTED_OPERATION`.

use std::collections::HashMap;
use std::fmt::Write;

use crate::{Arg, Direction, Function, Param, Table, Value};

/// Functions that may be called before initialisation and after finalisation (MPI-5 section 11.4.1), by name or prefix ending in `*`.
/// `MPI_Abort` is an addition: whoever wants the end at such a time, or in a forked child, gets it.
const ANY_TIME: &[&str] = &[
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Initialized",
    "MPI_Finalized",
    "MPI_Abort",
    "MPI_Get_version",
    "MPI_Get_library_version",
    "MPI_Abi_*",
    "MPI_Info_*",
    "MPI_Session_init",
    "MPI_Session_create_errhandler",
    "MPI_Session_call_errhandler",
    "MPI_Errhandler_free",
    "MPI_Error_class",
    "MPI_Error_string",
    "MPI_Add_error_*",
    "MPI_Remove_error_*",
    "MPI_T_*",
    "MPI_Wtime",
    "MPI_Wtick",
    "MPI_Aint_*",
];

/// Handle parameters for which the null handle has a meaning: the glue gets an `Option`.
const NULL_IS_VALID: &[(&str, &str)] = &[
    ("MPI_Comm_get_name", "comm"),
    ("MPI_Type_get_name", "datatype"),
    ("MPI_Win_get_name", "win"),
    ("MPI_Request_get_status", "request"),
    ("MPI_File_set_errhandler", "file"),
    ("MPI_File_get_errhandler", "file"),
];

/// Handle parameters that the glue gets undecoded, because they are insignificant on some processes or wanted in any state.
const RAW_HANDLES: &[(&str, &str)] = &[("MPI_Abort", "comm"), ("MPI_Intercomm_create", "peer_comm")];

/// Pointers of results that may be null, so that the glue gets them unchecked.
const NULL_POINTERS: &[(&str, &str)] =
    &[("MPI_Info_get_string", "value"), ("MPI_Session_get_nth_pset", "pset_name"), ("MPI_Comm_spawn*", "array_of_errcodes")];

/// What a parameter becomes on its way to the glue.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Passed on as it is: pointers, arrays, plain integers.
    Plain,
    /// A pointer to untyped memory.
    Memory,
    /// An integer that is wide in the glue, checked as [`minimum`] says.
    Wide,
    /// A count of a collective operation, which may be insignificant: `LateCount`.
    LateCount,
    /// A plain integer with a lower bound.
    Bounded,
    /// `IntArray`
    WideArray,
    /// `OutInt`
    WideOut,
    /// `&Arc<T>`
    Object,
    /// `Option<&Arc<T>>`
    NullableObject,
    /// `Late<T>`: an object of a collective operation, which may be insignificant.
    LateObject,
    /// `&mut T`
    Out,
    /// `bool`
    Bool,
    /// `&CStr`
    Text,
    /// `*mut c_char`, not null
    TextOut,
    /// `Option<&mut Status>`
    StatusOut,
    /// `&Status`
    StatusIn,
    /// A function pointer whose type depends on the twin: `AnyFn`
    AnyFunction,
}

fn matches(rules: &[&str], name: &str) -> bool {
    rules.iter().any(|rule| rule.strip_suffix('*').map_or(*rule == name, |prefix| name.starts_with(prefix)))
}

fn listed(rules: &[(&str, &str)], function: &Function, param: &Param) -> bool {
    rules.iter().any(|(f, p)| matches(&[f], &function.name) && *p == param.name)
}

/// Collective operations name counts and datatypes that are insignificant at some processes or with `MPI_IN_PLACE`.
fn is_collective(function: &Function) -> bool {
    function.chapter == "Collective communication" && function.params.iter().any(|p| p.kind == "COMMUNICATOR")
}

fn role(table: &Table, function: &Function, arg: &Arg) -> Role {
    let Arg { param, c_type, pointer } = arg;
    let kind = param.kind.as_str();
    let poly = kind.starts_with("POLY");
    if function.chapter == "Tool support" {
        return Role::Plain;
    }
    match kind {
        "POLYFUNCTION" => return Role::AnyFunction,
        "STRING" if param.root => return Role::Plain,
        "STRING" if param.dir == Direction::In => return Role::Text,
        "STRING" if listed(NULL_POINTERS, function, param) => return Role::Plain,
        "STRING" => return Role::TextOut,
        "STATUS" if param.array.is_some() => return Role::Plain,
        "STATUS" if param.dir == Direction::Out => return Role::StatusOut,
        "STATUS" if param.dir == Direction::Inout => return Role::Out,
        "STATUS" => return Role::StatusIn,
        "ARGUMENT_COUNT" | "ARGUMENT_LIST" => return Role::Plain,
        "LOGICAL" if param.dir == Direction::In && !pointer => return Role::Bool,
        _ => {}
    }
    if c_type == "void *" {
        return Role::Memory;
    }
    if table.handle(kind).is_some() {
        return match (*pointer, kind) {
            (true, _) if param.array.is_some() => Role::Plain,
            (true, _) => Role::Out,
            _ if listed(RAW_HANDLES, function, param) => Role::Plain,
            _ if listed(NULL_IS_VALID, function, param) => Role::NullableObject,
            (_, "INFO") if !function.name.starts_with("MPI_Info_") => Role::NullableObject,
            (_, "DATATYPE") if is_collective(function) => Role::LateObject,
            _ => Role::Object,
        };
    }
    if param.func.is_some() || c_type.contains('*') {
        return Role::Plain;
    }
    match (*pointer, param.array.is_some()) {
        (_, true) if poly => Role::WideArray,
        (_, true) => Role::Plain,
        (true, _) if poly => Role::WideOut,
        (true, _) if listed(NULL_POINTERS, function, param) => Role::Plain,
        (true, _) => Role::Out,
        _ if is_collective(function) && kind == "POLYXFER_NUM_ELEM_NNI" => Role::LateCount,
        _ if poly || c_type != "int" => Role::Wide,
        _ if minimum(function, param).is_some() => Role::Bounded,
        _ => Role::Plain,
    }
}

/// Least legal value of an integer parameter, with the error class of a smaller one.
fn minimum(function: &Function, param: &Param) -> Option<(i64, &'static str)> {
    let chapter = function.chapter.as_str();
    match param.kind.as_str() {
        "POLYXFER_NUM_ELEM_NNI" | "POLYDTYPE_NUM_ELEM_NNI" | "XFER_NUM_ELEM_NNI" => Some((0, "MPI_ERR_COUNT")),
        "POLYXFER_NUM_ELEM" => Some((0, "MPI_ERR_COUNT")),
        "POLYDTYPE_NUM_ELEM" if param.name != "stride" => Some((0, "MPI_ERR_COUNT")),
        "ARRAY_LENGTH_NNI" | "ARRAY_LENGTH" if chapter.starts_with("Point-to-point") => Some((0, "MPI_ERR_COUNT")),
        "ARRAY_LENGTH_NNI" | "ARRAY_LENGTH" | "POLYNUM_BYTES_NNI" | "POLYDTYPE_PACK_SIZE" => Some((0, "MPI_ERR_ARG")),
        "ARRAY_LENGTH_PI" | "COMM_SIZE_PI" => Some((1, "MPI_ERR_ARG")),
        "RMA_DISPLACEMENT_NNI" => Some((0, "MPI_ERR_DISP")),
        "ALLOC_MEM_NUM_BYTES" => Some((0, "MPI_ERR_ARG")),
        "WINDOW_SIZE" | "WIN_ATTACH_SIZE" => Some((0, "MPI_ERR_SIZE")),
        _ => None,
    }
}

/// Rust type of a C type in an exported signature, for one element.
fn rust_type(table: &Table, c_type: &str) -> String {
    match c_type {
        "int" | "MPI_Fint" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int".into(),
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64".into(),
        "double" => "f64".into(),
        "void" => "()".into(),
        "void *"
        | "MPI_T_enum"
        | "MPI_T_cvar_handle"
        | "MPI_T_pvar_handle"
        | "MPI_T_pvar_session"
        | "MPI_T_event_registration"
        | "MPI_T_event_instance" => "*mut c_void".into(),
        "char *" => "*mut c_char".into(),
        "char **" => "*mut *mut c_char".into(),
        "char ***" => "*mut *mut *mut c_char".into(),
        "MPI_Status" | "MPI_F08_status" => "Status".into(),
        _ if table.handles.iter().any(|h| h.c_type == c_type) => "Handle".into(),
        _ => format!("Option<callback::{c_type}>"),
    }
}

/// Rust type of an argument in an exported signature.
fn extern_type(table: &Table, arg: &Arg) -> String {
    let element = rust_type(table, &arg.c_type);
    match (arg.pointer, arg.param.constant && arg.param.dir == Direction::In) {
        (true, true) => format!("*const {element}"),
        (true, false) => format!("*mut {element}"),
        (false, true) if element == "*mut c_char" => "*const c_char".into(),
        _ => element,
    }
}

/// Rust type of an argument after widening: what the twins have in common.
fn common_type(role: Role, plain: String) -> String {
    match role {
        Role::Wide | Role::LateCount => "i64".into(),
        Role::WideArray => "IntArray".into(),
        Role::WideOut => "OutInt".into(),
        Role::AnyFunction => "AnyFn".into(),
        _ => plain,
    }
}

/// A C parameter name as a Rust identifier.
fn ident(name: &str) -> String {
    if matches!(name, "type" | "in" | "ref" | "loop" | "move" | "fn") { format!("r#{name}") } else { name.into() }
}

fn snake(name: &str) -> String {
    name.to_lowercase()
}

/// True if the null handle has a meaning for that handle parameter, or if it is not looked at by the entry point at all.
pub fn null_is_valid(function: &Function, param: &Param) -> bool {
    let optional_info = param.kind == "INFO" && param.array.is_none() && !function.name.starts_with("MPI_Info_");
    optional_info || listed(NULL_IS_VALID, function, param) || listed(RAW_HANDLES, function, param)
}

/// What the entry point checks of a parameter besides handles: the bad C arguments that it refuses, with the error class. For tests.
pub fn refused(table: &Table, function: &Function, arg: &Arg) -> Vec<(&'static str, &'static str)> {
    let role = role(table, function, arg);
    let least = minimum(function, arg.param).filter(|_| matches!(role, Role::Wide | Role::Bounded | Role::LateCount));
    let null = matches!(role, Role::Out | Role::WideOut | Role::Text | Role::TextOut | Role::StatusIn);
    least.map(|(_, class)| ("-1", class)).into_iter().chain(null.then_some(("0", "MPI_ERR_ARG"))).collect()
}

/// The entry points. `glue` maps the lower-case name of each function that is done to the module of `calls` that has its glue.
pub fn render(table: &Table, glue: &HashMap<String, String>) -> String {
    let mut out = String::new();
    kinds(table, &mut out);
    callbacks(table, &mut out);
    for function in table.functions.iter().filter(|f| f.symbol) {
        match converter(function) {
            Some(_) => conversion(table, function, &mut out),
            None => {
                inner(table, function, glue.get(&snake(&function.name)), &mut out);
                exported(table, function, false, &mut out);
                if function.large {
                    exported(table, function, true, &mut out);
                }
            }
        }
    }
    out
}

/// True if the function is an identity between handles and integers, which needs no glue.
pub fn converter(function: &Function) -> Option<&str> {
    [("_toint"), ("_fromint")].into_iter().find(|s| function.name.ends_with(s))
}

fn conversion(table: &Table, function: &Function, out: &mut String) {
    let arg = &table.args(function, false)[0];
    let (from, to) = (extern_type(table, arg), rust_type(table, &table.return_type(function)));
    let body = if to == "Handle" { "Handle(value as u32 as usize)" } else { "value.0 as c_int" };
    for name in [function.name.clone(), format!("P{}", function.name)] {
        writeln!(out, "#[unsafe(no_mangle)]\npub extern \"C\" fn {name}(value: {from}) -> {to} {{ {body} }}").unwrap();
    }
}

fn kinds(table: &Table, out: &mut String) {
    out.push_str("pub(crate) mod kind {\n    use super::*;\n");
    let mut all = Vec::new();
    for (i, handle) in table.handles.iter().enumerate() {
        let values = table.constants.iter().filter(|c| c.c_type.as_ref() == Some(&handle.c_type)).filter_map(|c| match c.value {
            Value::Int(v) => Some(v),
            _ => None,
        });
        let (low, high) = (values.clone().min().unwrap(), values.max().unwrap());
        let word = handle.kind.to_lowercase();
        let article = if "aeiou".contains(&word[..1]) { "an" } else { "a" };
        let null = &handle.null;
        let class = &handle.error;
        let tag = i + 1;
        writeln!(
            out,
            "    pub(crate) const {}: Kind = Kind {{ noun: {:?}, null: consts::{null}, null_name: {null:?}, class: consts::{class}, tag: {tag}, low: {low}, high: {high} }};",
            handle.kind,
            format!("{article} {word}")
        )
        .unwrap();
        all.push(handle.kind.clone());
    }
    writeln!(out, "    pub(crate) const ALL: &[Kind] = &[{}];\n}}", all.join(", ")).unwrap();
}

fn callbacks(table: &Table, out: &mut String) {
    out.push_str("pub(crate) mod callback {\n    use super::*;\n");
    for function in &table.callbacks {
        for large in [false, true] {
            if large && !function.large {
                continue;
            }
            let args = table.args(function, large);
            let types: Vec<String> =
                args.iter().map(|a| if a.param.kind == "VARARGS" { "...".into() } else { extern_type(table, a) }).collect();
            let result = rust_type(table, &table.return_type(function));
            let twin = if large { "_c" } else { "" };
            writeln!(out, "    pub(crate) type {}{twin} = unsafe extern \"C\" fn({}) -> {result};", function.name, types.join(", "))
                .unwrap();
        }
    }
    out.push_str("}\n");
}

/// The object whose error handler hears of an error in this function.
fn target(table: &Table, function: &Function) -> String {
    for arg in table.args(function, true) {
        let variant = match arg.param.kind.as_str() {
            "COMMUNICATOR" => "Comm",
            "WINDOW" => "Win",
            "FILE" => "File",
            "SESSION" => "Session",
            _ => continue,
        };
        if arg.param.dir == Direction::Out || arg.param.array.is_some() {
            continue;
        }
        let name = ident(&arg.param.name);
        return match arg.pointer {
            true => format!(
                "Target::{variant}({{\n        // SAFETY: valid or null by the caller's promise.\n        unsafe {{ args::peek({name}) }} }})"
            ),
            false => format!("Target::{variant}({name})"),
        };
    }
    "Target::Default".into()
}

/// The private function behind all exported forms of `function`.
fn inner(table: &Table, function: &Function, glue: Option<&String>, out: &mut String) {
    let args: Vec<(Arg, Role)> = table
        .args(function, true)
        .into_iter()
        .filter(|a| a.param.kind != "VARARGS")
        .map(|a| {
            let r = role(table, function, &a);
            (a, r)
        })
        .collect();
    let fn_name = snake(&function.name);
    let params: Vec<String> =
        args.iter().map(|(a, r)| format!("{}: {}", ident(&a.param.name), common_type(*r, extern_type(table, a)))).collect();
    let params = params.iter().map(|p| format!(", {p}")).collect::<String>();
    let result = rust_type(table, &table.return_type(function));
    let fallible = function.returns == "ERROR_CODE";
    writeln!(out, "fn {fn_name}(call_name: &'static str, large: bool{params}) -> {result} {{").unwrap();
    match glue {
        None => {
            if fallible {
                writeln!(out, "    unsupported(call_name, large, {})\n}}", target(table, function)).unwrap();
            } else {
                writeln!(out, "    unsupported(call_name, large, Target::Default);\n    Default::default()\n}}").unwrap();
            }
        }
        Some(module) => {
            let call = format!("crate::calls::{module}::{fn_name}");
            if !fallible {
                let names = args.iter().map(|(a, _)| format!(", {}", ident(&a.param.name))).collect::<String>();
                writeln!(out, "    {call}(&Cx::new(call_name, large){names})\n}}").unwrap();
                return;
            }
            let time = if matches(ANY_TIME, &function.name) { "AnyTime" } else { "Running" };
            writeln!(out, "    enter(call_name, large, When::{time}, {}, |cx| {{", target(table, function)).unwrap();
            let mut order: Vec<&(Arg, Role)> = args.iter().collect();
            order.sort_by_key(|(a, _)| !matches!(a.param.kind.as_str(), "COMMUNICATOR" | "WINDOW" | "FILE" | "SESSION"));
            for (arg, role) in order {
                decode(function, arg, *role, out);
            }
            let names: Vec<String> = args.iter().map(|(a, r)| pass(a, *r)).collect();
            writeln!(out, "        {call}(cx{})\n    }})\n}}", names.iter().map(|n| format!(", {n}")).collect::<String>()).unwrap();
        }
    }
}

/// Name of the object type in `calls::kinds`.
fn object_type(kind: &str) -> String {
    let lower = kind.to_lowercase();
    lower[..1].to_uppercase() + &lower[1..]
}

/// The statement that checks and decodes one argument, if it needs one.
fn decode(function: &Function, arg: &Arg, role: Role, out: &mut String) {
    let name = ident(&arg.param.name);
    let quoted = format!("{:?}", arg.param.name);
    let object = object_type(&arg.param.kind);
    let safety = "// SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.";
    let line = match role {
        Role::Wide | Role::Bounded => match minimum(function, arg.param) {
            Some((least, class)) => format!("args::at_least({name} as i64, {least}, {quoted}, consts::{class})?;"),
            None => return,
        },
        Role::Object => format!("let {name} = cx.get::<kinds::{object}>({name}, {quoted})?;"),
        Role::NullableObject => format!("let {name} = cx.get_or_null::<kinds::{object}>({name}, {quoted})?;"),
        Role::LateObject => format!("let {name} = Late::<kinds::{object}>::new({name}, {quoted});"),
        Role::LateCount => format!("let {name} = LateCount::new({name}, {quoted});"),
        Role::Bool => format!("let {name} = {name} != 0;"),
        Role::Out => format!("{safety}\n        let {name} = unsafe {{ args::out({name}, {quoted}) }}?;"),
        Role::WideOut if arg.param.large_only => return,
        Role::WideOut => format!("{name}.check({quoted})?;"),
        Role::Text => format!("{safety}\n        let {name} = unsafe {{ args::text({name}, {quoted}) }}?;"),
        Role::TextOut => format!("args::not_null({name}, {quoted})?;"),
        Role::StatusOut => format!("{safety}\n        let {name} = unsafe {{ {name}.as_mut() }};"),
        Role::StatusIn => format!("{safety}\n        let {name} = unsafe {{ args::input({name}, {quoted}) }}?;"),
        Role::Plain | Role::Memory | Role::WideArray | Role::AnyFunction => return,
    };
    writeln!(out, "        {line}").unwrap();
}

/// How the decoded argument is passed to the glue.
fn pass(arg: &Arg, role: Role) -> String {
    let name = ident(&arg.param.name);
    match role {
        Role::Object => format!("&{name}"),
        Role::NullableObject => format!("{name}.as_deref()"),
        _ => name,
    }
}

/// `MPI_X` and `PMPI_X`, of the function or of its large-count twin.
fn exported(table: &Table, function: &Function, large: bool, out: &mut String) {
    let twin = if large { "_c" } else { "" };
    let name = format!("{}{twin}", function.name);
    let mut params = Vec::new();
    let mut passed = Vec::new();
    // The inner function has the parameters of the large form; those that this form lacks get a neutral value.
    for arg in table.args(function, true) {
        if arg.param.kind == "VARARGS" {
            continue;
        }
        let role = role(table, function, &arg);
        let id = ident(&arg.param.name);
        if arg.param.large_only && !large {
            passed.push(match role {
                Role::WideOut => "OutInt::absent()".into(),
                Role::Wide => "0".into(),
                _ => "std::ptr::null_mut()".to_string(),
            });
            continue;
        }
        let own = table.args(function, large).into_iter().find(|a| a.param.name == arg.param.name).expect("same parameter");
        params.push(format!("{id}: {}", extern_type(table, &own)));
        passed.push(match role {
            Role::Wide | Role::LateCount => format!("{id} as i64"),
            Role::WideArray => format!("IntArray::from({id})"),
            Role::WideOut => format!("OutInt::from({id})"),
            Role::AnyFunction => format!("{{\n    // SAFETY: a function pointer is a function pointer; the glue casts it back to the type that `large` implies.\n    unsafe {{ std::mem::transmute({id}) }} }}"),
            _ => id,
        });
    }
    let result = rust_type(table, &table.return_type(function));
    let passed = passed.iter().map(|p| format!(", {p}")).collect::<String>();
    let params = params.join(", ");
    for prefix in ["", "P"] {
        writeln!(
            out,
            "#[unsafe(no_mangle)]\npub extern \"C\" fn {prefix}{name}({params}) -> {result} {{ {}({name:?}, {large}{passed}) }}",
            snake(&function.name)
        )
        .unwrap();
    }
}

/// The first line of the glue of a function, for whoever writes it.
pub fn skeleton(table: &Table, function: &Function) -> String {
    let params = table.args(function, true).into_iter().filter(|a| a.param.kind != "VARARGS").map(|arg| {
        let role = role(table, function, &arg);
        let object = object_type(&arg.param.kind);
        let ty = match role {
            Role::LateCount => "LateCount".into(),
            Role::Object => format!("&Arc<kinds::{object}>"),
            Role::NullableObject => format!("Option<&Arc<kinds::{object}>>"),
            Role::LateObject => format!("Late<kinds::{object}>"),
            Role::Out => format!("&mut {}", rust_type(table, &arg.c_type)),
            Role::Bool => "bool".into(),
            Role::Text => "&CStr".into(),
            Role::StatusOut => "Option<&mut Status>".into(),
            Role::StatusIn => "&Status".into(),
            _ => common_type(role, extern_type(table, &arg)),
        };
        format!(", {}: {ty}", ident(&arg.param.name))
    });
    let result = match function.returns.as_str() {
        "ERROR_CODE" => "Result<()>".into(),
        _ => rust_type(table, &table.return_type(function)),
    };
    format!("pub(crate) fn {}(cx: &Cx{}) -> {result} {{", snake(&function.name), params.collect::<String>())
}
