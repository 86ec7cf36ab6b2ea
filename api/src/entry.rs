//! Renders the exported functions of the library as Rust, for `limosa-abi`.
//!
//! Per function of the table there is one private function that checks and decodes the arguments and calls the glue,
//! and up to four exported ones that only widen their integers and pass their name: `MPI_X`, `PMPI_X`, `MPI_X_c`,
//! `PMPI_X_c`. Which Rust type the glue sees for which kind of parameter is the convention written down in
//! `crates/limosa-abi/src/calls/mod.rs`; [`Passing`] is that convention as code.
//!
//! A function without glue becomes one that reports `MPI_ERR_UNSUPPORTED_OPERATION`.

use std::collections::HashMap;
use std::fmt::Write;

use crate::coverage::Glue;
use crate::roles::Form;
use crate::{Arg, Direction, Function, Table, Value};

/// What a parameter becomes on its way to the glue.
#[derive(Clone, Copy, PartialEq)]
enum Passing {
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

fn passing(table: &Table, function: &Function, arg: &Arg) -> Passing {
    let Arg { param, c_type, pointer } = arg;
    let kind = param.kind.as_str();
    let role = &param.role;
    let poly = kind.starts_with("POLY");
    let elsewhere = role.significant_at().is_some();
    let late = function.collective && function.describes_buffer(param);
    if function.chapter == "Tool support" {
        return Passing::Plain;
    }
    match kind {
        "POLYFUNCTION" => return Passing::AnyFunction,
        "STRING" if elsewhere => return Passing::Plain,
        "STRING" if param.dir == Direction::In => return Passing::Text,
        "STRING" if role.null_pointer == Some(true) => return Passing::Plain,
        "STRING" => return Passing::TextOut,
        "STATUS" if param.array.is_some() => return Passing::Plain,
        "STATUS" if role.allows("MPI_STATUS_IGNORE") => return Passing::StatusOut,
        "STATUS" if param.dir == Direction::Out => return Passing::Out,
        "STATUS" if param.dir == Direction::Inout => return Passing::Out,
        "STATUS" => return Passing::StatusIn,
        "ARGUMENT_COUNT" | "ARGUMENT_LIST" => return Passing::Plain,
        "LOGICAL" if param.dir == Direction::In && !pointer => return Passing::Bool,
        _ => {}
    }
    if c_type == "void *" {
        return Passing::Memory;
    }
    if let Some(handle) = table.handle(kind) {
        return match *pointer {
            true if param.array.is_some() => Passing::Plain,
            true => Passing::Out,
            _ if late => Passing::LateObject,
            _ if elsewhere || role.unchecked == Some(true) => Passing::Plain,
            _ if role.allows(&handle.null) => Passing::NullableObject,
            _ => Passing::Object,
        };
    }
    if param.func.is_some() || c_type.contains('*') {
        return Passing::Plain;
    }
    match (*pointer, param.array.is_some()) {
        (_, true) if poly => Passing::WideArray,
        (_, true) => Passing::Plain,
        (true, _) if poly => Passing::WideOut,
        (true, _) if role.null_pointer == Some(true) => Passing::Plain,
        (true, _) => Passing::Out,
        _ if late => Passing::LateCount,
        _ if poly || c_type != "int" => Passing::Wide,
        _ if role.least.is_some() && !elsewhere => Passing::Bounded,
        _ => Passing::Plain,
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
fn common_type(passing: Passing, plain: String) -> String {
    match passing {
        Passing::Wide | Passing::LateCount => "i64".into(),
        Passing::WideArray => "IntArray".into(),
        Passing::WideOut => "OutInt".into(),
        Passing::AnyFunction => "AnyFn".into(),
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

/// What the entry point checks of a parameter besides handles: the bad C arguments that it refuses, with the error
/// class. For tests.
pub fn refused<'a>(table: &Table, function: &Function, arg: &Arg<'a>) -> Vec<(&'static str, &'a str)> {
    let passing = passing(table, function, arg);
    let role = &arg.param.role;
    let least =
        role.error.as_deref().filter(|_| matches!(passing, Passing::Wide | Passing::Bounded | Passing::LateCount));
    let null =
        matches!(passing, Passing::Out | Passing::WideOut | Passing::Text | Passing::TextOut | Passing::StatusIn);
    least.map(|class| ("-1", class)).into_iter().chain(null.then_some(("0", "MPI_ERR_ARG"))).collect()
}

/// The entry points. `glue` has the glue of each function that is done, by its lower-case name; `short` names those
/// that have a fast path, and says whether it wants the call's name.
pub fn render(table: &Table, glue: &HashMap<String, Glue>, short: &HashMap<String, bool>) -> String {
    let mut out = String::new();
    for function in table.functions.iter().filter(|f| f.symbol) {
        match converter(function) {
            Some(_) => conversion(table, function, &mut out),
            None => {
                inner(table, function, glue.get(&snake(&function.name)), &mut out);
                let fast_path = short.get(&snake(&function.name)).copied();
                exported(table, function, false, fast_path, &mut out);
                if function.large {
                    exported(table, function, true, fast_path, &mut out);
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

/// Renders the kinds of handles, which the module `handles` describes.
pub fn kinds(table: &Table) -> String {
    let (mut out, mut all) = (String::new(), Vec::new());
    for (i, handle) in table.handles.iter().enumerate() {
        let values =
            table.constants.iter().filter(|c| c.c_type.as_ref() == Some(&handle.c_type)).filter_map(|c| {
                match c.value {
                    Value::Int(v) => Some(v),
                    _ => None,
                }
            });
        let (low, high) = (values.clone().min().unwrap(), values.max().unwrap());
        let word = handle.kind.to_lowercase();
        let article = if "aeiou".contains(&word[..1]) { "an" } else { "a" };
        let null = &handle.null;
        let class = &handle.error;
        let tag = i + 1;
        writeln!(
            out,
            "pub(crate) const {}: HandleKind = HandleKind {{ noun: {:?}, null: consts::{null}, null_name: {null:?}, class: \
             consts::{class}, tag: {tag}, low: {low}, high: {high} }};",
            handle.kind,
            format!("{article} {word}")
        )
        .unwrap();
        all.push(handle.kind.clone());
    }
    writeln!(out, "pub(crate) const ALL: &[HandleKind] = &[{}];", all.join(", ")).unwrap();
    out
}

/// Renders the types of functions that programs pass.
pub fn callbacks(table: &Table) -> String {
    let mut out = String::new();
    for function in &table.callbacks {
        for large in [false, true] {
            if large && !function.large {
                continue;
            }
            let args = table.args(function, large);
            let types: Vec<String> = args
                .iter()
                .map(|a| if a.param.kind == "VARARGS" { "...".into() } else { extern_type(table, a) })
                .collect();
            let result = rust_type(table, &table.return_type(function));
            let twin = if large { "_c" } else { "" };
            writeln!(
                out,
                "pub(crate) type {}{twin} = unsafe extern \"C\" fn({}) -> {result};",
                function.name,
                types.join(", ")
            )
            .unwrap();
        }
    }
    out
}

/// The object whose error handler hears of an error in this function.
fn target(table: &Table, function: &Function) -> String {
    // Errors of calls that have no file yet are raised on MPI_FILE_NULL (section 14.7).
    if matches!(function.name.as_str(), "MPI_File_open" | "MPI_File_delete" | "MPI_Register_datarep") {
        return "ErrorTarget::File(Handle::default())".into();
    }
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
                "ErrorTarget::{variant}({{\n        // SAFETY: valid or null by the caller's promise.\n        unsafe {{ \
                 args::peek({name}) }} }})"
            ),
            false => format!("ErrorTarget::{variant}({name})"),
        };
    }
    "ErrorTarget::Default".into()
}

/// When the function may be called: the variant of `When` in the ABI layer.
fn when(function: &Function) -> &'static str {
    let is_tool = function.name.starts_with("MPI_T_") && function.name != "MPI_T_init_thread";
    match function.any_time {
        true if is_tool => "Tool",
        true => "AnyTime",
        false => "Running",
    }
}

/// The private function behind all exported forms of `function`.
fn inner(table: &Table, function: &Function, glue: Option<&Glue>, out: &mut String) {
    let args: Vec<(Arg, Passing)> = table
        .args(function, true)
        .into_iter()
        .filter(|a| a.param.kind != "VARARGS")
        .map(|a| {
            let p = passing(table, function, &a);
            (a, p)
        })
        .collect();
    let fn_name = snake(&function.name);
    let params: Vec<String> = args
        .iter()
        .map(|(a, r)| format!("{}: {}", ident(&a.param.name), common_type(*r, extern_type(table, a))))
        .collect();
    let params = params.iter().map(|p| format!(", {p}")).collect::<String>();
    let result = rust_type(table, &table.return_type(function));
    let fallible = function.returns == "ERROR_CODE";
    writeln!(out, "fn {fn_name}(call_name: &'static str, large: bool{params}) -> {result} {{").unwrap();
    match glue {
        None => {
            if fallible {
                writeln!(out, "    unsupported(call_name, {})\n}}", target(table, function)).unwrap();
            } else {
                writeln!(out, "    unsupported(call_name, ErrorTarget::Default);\n    Default::default()\n}}").unwrap();
            }
        }
        Some(glue) => {
            let call = format!("crate::calls::{}::{}", glue.module, glue.name);
            if !fallible {
                let names = args.iter().map(|(a, _)| format!(", {}", ident(&a.param.name))).collect::<String>();
                writeln!(out, "    {call}(&Cx::new(call_name, large){names})\n}}").unwrap();
                return;
            }
            let time = when(function);
            writeln!(out, "    enter(call_name, large, When::{time}, {}, |cx| {{", target(table, function)).unwrap();
            let mut order: Vec<&(Arg, Passing)> = args.iter().collect();
            order
                .sort_by_key(|(a, _)| !matches!(a.param.kind.as_str(), "COMMUNICATOR" | "WINDOW" | "FILE" | "SESSION"));
            for (arg, passing) in &order {
                clear(table, arg, *passing, out);
            }
            for (arg, passing) in order {
                match partner(function, arg) {
                    Some((count, rank)) if *passing == Passing::Object => decode_of_message(arg, &count, &rank, out),
                    _ => decode(arg, *passing, out),
                }
            }
            let passed = if glue.plan {
                to_plan(table, function, &args)
            } else {
                args.iter().map(|(a, p)| pass(a, *p)).collect()
            };
            let passed = passed.iter().map(|p| format!(", {p}")).collect::<String>();
            writeln!(out, "        {call}(cx{passed})\n    }})\n}}").unwrap();
        }
    }
}

/// What the plan of an operation gets from one of its forms: the form, and the operation's own parameters.
fn to_plan(table: &Table, function: &Function, args: &[(Arg, Passing)]) -> Vec<String> {
    let form = match function.form() {
        Form::Blocking => "Blocking",
        Form::Nonblocking => "Nonblocking { request }",
        Form::Persistent => "Persistent { request }",
    };
    let operation = table.function(function.operation()).expect("the operation of a form is a function");
    let own = args.iter().filter(|(a, _)| operation.param(&a.param.name).is_some()).map(|(a, p)| pass(a, *p));
    std::iter::once(format!("form::{form}")).chain(own).collect()
}

/// Name of the object type in the module `kinds`.
fn object_type(kind: &str) -> String {
    let lower = kind.to_lowercase();
    lower[..1].to_uppercase() + &lower[1..]
}

/// The statement that sets the handle of an object that the call makes to the null handle, which it keeps if the call
/// fails.
fn clear(table: &Table, arg: &Arg, passing: Passing, out: &mut String) {
    let is_handle = table.handles.iter().any(|handle| handle.kind == arg.param.kind);
    if passing == Passing::Out && arg.param.dir == Direction::Out && is_handle {
        let (name, object) = (ident(&arg.param.name), object_type(&arg.param.kind));
        writeln!(
            out,
            "        // SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.\n        \
             unsafe {{ args::clear::<kinds::{object}>({name}) }};"
        )
        .unwrap();
    }
}

/// For the datatype of a message: the parameters with the number of elements, and with the rank of the partner.
fn partner(function: &Function, arg: &Arg) -> Option<(String, String)> {
    let buffer = function.params.iter().find(|p| p.role.datatype.as_ref() == Some(&arg.param.name))?;
    let rank = |of: &str| function.params.iter().find(|p| p.role.rank_of.as_deref() == Some(of));
    let (dest, source) = (rank("destination"), rank("source"));
    let partner = match (dest, source) {
        (Some(_), Some(_)) if buffer.name == "sendbuf" => dest,
        (Some(_), Some(_)) if buffer.name == "recvbuf" => source,
        (Some(_), Some(_)) => None,
        _ => dest.or(source),
    }?;
    Some((ident(buffer.role.count.as_ref()?), ident(&partner.name)))
}

/// As [`decode`], for the datatype of a message: without elements and without a partner it may be the null handle.
fn decode_of_message(arg: &Arg, count: &str, rank: &str, out: &mut String) {
    let name = ident(&arg.param.name);
    let quoted = format!("{:?}", arg.param.name);
    writeln!(out, "        let {name} = cx.get_of_message({name}, {quoted}, {count}, {rank})?;").unwrap();
}

/// The statement that checks and decodes one argument, if it needs one.
fn decode(arg: &Arg, passing: Passing, out: &mut String) {
    let name = ident(&arg.param.name);
    let quoted = format!("{:?}", arg.param.name);
    let object = object_type(&arg.param.kind);
    let safety = "// SAFETY: by the caller's promise a non-null pointer is valid for the duration of the call.";
    let line = match passing {
        Passing::Wide | Passing::Bounded => match (arg.param.role.least, &arg.param.role.error) {
            (Some(least), Some(class)) => {
                format!("args::at_least({name} as i64, {least}, {quoted}, consts::{class})?;")
            }
            _ => return,
        },
        Passing::Object => format!("let {name} = cx.get::<kinds::{object}>({name}, {quoted})?;"),
        Passing::NullableObject => format!("let {name} = cx.get_or_null::<kinds::{object}>({name}, {quoted})?;"),
        Passing::LateObject => format!("let {name} = Late::<kinds::{object}>::new({name}, {quoted});"),
        Passing::LateCount => format!("let {name} = LateCount::new({name}, {quoted});"),
        Passing::Bool => format!("let {name} = {name} != 0;"),
        Passing::Out => format!("{safety}\n        let {name} = unsafe {{ args::out({name}, {quoted}) }}?;"),
        Passing::WideOut if arg.param.large_only => return,
        Passing::WideOut => format!("{name}.check({quoted})?;"),
        Passing::Text => format!("{safety}\n        let {name} = unsafe {{ args::text({name}, {quoted}) }}?;"),
        Passing::TextOut => format!("args::not_null({name}, {quoted})?;"),
        Passing::StatusOut => format!("{safety}\n        let {name} = unsafe {{ {name}.as_mut() }};"),
        Passing::StatusIn => format!("{safety}\n        let {name} = unsafe {{ args::input({name}, {quoted}) }}?;"),
        Passing::Plain | Passing::Memory | Passing::WideArray | Passing::AnyFunction => return,
    };
    writeln!(out, "        {line}").unwrap();
}

/// How the decoded argument is passed to the glue.
fn pass(arg: &Arg, passing: Passing) -> String {
    let name = ident(&arg.param.name);
    match passing {
        Passing::Object => format!("&{name}"),
        Passing::NullableObject => format!("{name}.as_deref()"),
        _ => name,
    }
}

/// `MPI_X` and `PMPI_X`, of the function or of its large-count twin. `fast_path`: there is one, which may want the
/// name.
fn exported(table: &Table, function: &Function, large: bool, fast_path: Option<bool>, out: &mut String) {
    let twin = if large { "_c" } else { "" };
    let name = format!("{}{twin}", function.name);
    let mut params = Vec::new();
    let mut passed = Vec::new();
    // The inner function has the parameters of the large form; those that this form lacks get a neutral value.
    for arg in table.args(function, true) {
        if arg.param.kind == "VARARGS" {
            continue;
        }
        let passing = passing(table, function, &arg);
        let id = ident(&arg.param.name);
        if arg.param.large_only && !large {
            passed.push(match passing {
                Passing::WideOut => "OutInt::absent()".into(),
                Passing::Wide => "0".into(),
                _ => "std::ptr::null_mut()".to_string(),
            });
            continue;
        }
        let own =
            table.args(function, large).into_iter().find(|a| a.param.name == arg.param.name).expect("same parameter");
        params.push(format!("{id}: {}", extern_type(table, &own)));
        passed.push(match passing {
            Passing::Wide | Passing::LateCount => format!("{id} as i64"),
            Passing::WideArray => format!("IntArray::from({id})"),
            Passing::WideOut => format!("OutInt::from({id})"),
            Passing::AnyFunction => format!(
                "{{\n    // SAFETY: a function pointer is a function pointer; the glue casts it back to the type that \
                 `large` implies.\n    unsafe {{ std::mem::transmute({id}) }} }}"
            ),
            _ => id,
        });
    }
    let result = rust_type(table, &table.return_type(function));
    let function = snake(&function.name);
    // What is not done by the fast path goes the general path.
    let attempt = match fast_path {
        Some(wants_name) => format!(
            "if let Some(code) = fast_path({name:?}, {large}, || crate::fast_path::{function}({}{})) {{ return code }} ",
            if wants_name { format!("{name:?}, ") } else { String::new() },
            passed.join(", ")
        ),
        None => String::new(),
    };
    let passed = passed.iter().map(|p| format!(", {p}")).collect::<String>();
    let params = params.join(", ");
    for prefix in ["", "P"] {
        writeln!(
            out,
            "#[unsafe(no_mangle)]\npub extern \"C\" fn {prefix}{name}({params}) -> {result} {{ \
             {attempt}{function}({name:?}, {large}{passed}) }}"
        )
        .unwrap();
    }
}

/// The first line of the glue of a function, for its author; of a collective operation, that of the plan for all
/// its forms.
pub fn skeleton(table: &Table, function: &Function) -> String {
    let function =
        if function.collective { table.function(function.operation()).expect("a function") } else { function };
    let params = table.args(function, true).into_iter().filter(|a| a.param.kind != "VARARGS").map(|arg| {
        let passing = passing(table, function, &arg);
        let object = object_type(&arg.param.kind);
        let ty = match passing {
            Passing::LateCount => "LateCount".into(),
            Passing::Object => format!("&Arc<kinds::{object}>"),
            Passing::NullableObject => format!("Option<&Arc<kinds::{object}>>"),
            Passing::LateObject => format!("Late<kinds::{object}>"),
            Passing::Out => format!("&mut {}", rust_type(table, &arg.c_type)),
            Passing::Bool => "bool".into(),
            Passing::Text => "&CStr".into(),
            Passing::StatusOut => "Option<&mut Status>".into(),
            Passing::StatusIn => "&Status".into(),
            _ => common_type(passing, extern_type(table, &arg)),
        };
        format!(", {}: {ty}", ident(&arg.param.name))
    });
    let result = match function.returns.as_str() {
        "ERROR_CODE" => "Result<()>".into(),
        _ => rust_type(table, &table.return_type(function)),
    };
    let (name, form) = match function.collective {
        true => (snake(&function.name).replacen("mpi_", "plan_", 1) + "<F: Form>", ", form: F"),
        false => (snake(&function.name), ""),
    };
    format!("pub(crate) fn {name}(cx: &Cx{form}{}) -> {result} {{", params.collect::<String>())
}
