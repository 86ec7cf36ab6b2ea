//! Renders the translation of MPICH's ABI as Rust, for `limosa-mpich`: for every function that MPICH's `libmpi.so.12`
//! exports, one of the same name that converts its arguments, calls the function of the standard ABI, and converts
//! what that has written and returned.
//!
//! `api/mpich.json` has the facts about MPICH: values of constants and names of functions. How a kind of parameter is
//! converted is decided in [`convert`]; the conversions themselves are functions of `limosa-mpich`. Functions for which
//! that crate has code by hand are not rendered but called, with the signature that the code has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Deserialize;

use crate::{Arg, Array, Direction, Function, Table, Value};

/// The facts about MPICH's ABI.
#[derive(Deserialize)]
pub struct Mpich {
    /// Version of MPICH that they are taken from.
    #[serde(rename = "mpich")]
    pub version: String,
    /// Values of the constants.
    pub constants: BTreeMap<String, i64>,
    /// Functions that MPICH exports, without those with the prefix `PMPI`.
    pub functions: Vec<String>,
    /// Variables that MPICH exports.
    pub variables: Vec<String>,
    /// Functions that only Intel MPI exports.
    pub intel: Vec<String>,
}

/// A function by hand: its name in lower case, its parameters and its result as the source has them.
pub struct ByHand {
    /// Module in the crate.
    pub module: String,
    /// Name in lower case.
    pub name: String,
    /// Text between the parentheses.
    pub params: String,
    /// Text behind the arrow.
    pub result: String,
}

impl Mpich {
    /// The facts that are built into this crate.
    ///
    /// # Panics
    /// If the file is wrong.
    pub fn load() -> Mpich {
        serde_json::from_str(include_str!("../mpich.json")).unwrap_or_else(|e| panic!("api/mpich.json: {e}"))
    }
}

/// Sets of constants that one kind of parameter may have, by the name of their conversion. A name that ends in `*`
/// means all constants with that prefix.
const FAMILIES: [(&str, &[&str]); 19] = [
    ("no_process", &["MPI_PROC_NULL", "MPI_ANY_SOURCE", "MPI_ROOT"]),
    ("thread_level", &["MPI_THREAD_*"]),
    ("order", &["MPI_ORDER_*"]),
    ("distribution", &["MPI_DISTRIBUTE_BLOCK", "MPI_DISTRIBUTE_CYCLIC", "MPI_DISTRIBUTE_NONE"]),
    ("distribution_argument", &["MPI_DISTRIBUTE_DFLT_DARG"]),
    ("combiner", &["MPI_COMBINER_*"]),
    ("typeclass", &["MPI_TYPECLASS_*"]),
    ("comparison", &["MPI_IDENT", "MPI_CONGRUENT", "MPI_SIMILAR", "MPI_UNEQUAL"]),
    ("topology", &["MPI_CART", "MPI_GRAPH", "MPI_DIST_GRAPH"]),
    ("split_type", &["MPI_COMM_TYPE_*"]),
    ("lock_type", &["MPI_LOCK_*"]),
    ("whence", &["MPI_SEEK_*"]),
    (
        "keyval",
        &[
            "MPI_KEYVAL_INVALID",
            "MPI_TAG_UB",
            "MPI_IO",
            "MPI_HOST",
            "MPI_WTIME_IS_GLOBAL",
            "MPI_APPNUM",
            "MPI_LASTUSEDCODE",
            "MPI_UNIVERSE_SIZE",
            "MPI_WIN_BASE",
            "MPI_WIN_DISP_UNIT",
            "MPI_WIN_SIZE",
            "MPI_WIN_CREATE_FLAVOR",
            "MPI_WIN_MODEL",
        ],
    ),
    ("verbosity", &["MPI_T_VERBOSITY_*"]),
    ("bind", &["MPI_T_BIND_*"]),
    ("scope", &["MPI_T_SCOPE_*"]),
    ("pvar_class", &["MPI_T_PVAR_CLASS_*"]),
    ("source_order", &["MPI_T_SOURCE_*"]),
    ("safety", &["MPI_T_CB_REQUIRE_*"]),
];

/// Sets of bits, likewise.
const MODES: [(&str, &[&str]); 2] = [
    (
        "access_mode",
        &[
            "MPI_MODE_APPEND",
            "MPI_MODE_CREATE",
            "MPI_MODE_DELETE_ON_CLOSE",
            "MPI_MODE_EXCL",
            "MPI_MODE_RDONLY",
            "MPI_MODE_RDWR",
            "MPI_MODE_SEQUENTIAL",
            "MPI_MODE_UNIQUE_OPEN",
            "MPI_MODE_WRONLY",
        ],
    ),
    (
        "assertion",
        &["MPI_MODE_NOCHECK", "MPI_MODE_NOPRECEDE", "MPI_MODE_NOPUT", "MPI_MODE_NOSTORE", "MPI_MODE_NOSUCCEED"],
    ),
];

/// Functions of the table that return ranks which may be `MPI_PROC_NULL` or `MPI_ANY_SOURCE`. All others return ranks
/// of processes, or `MPI_UNDEFINED`, which is the same number in both ABIs.
const RETURN_NO_PROCESS: [&str; 3] = ["MPI_Cart_shift", "MPI_Status_get_source", "MPI_Group_translate_ranks"];

/// Names of the functions of the standard ABI, by number.
pub fn names(table: &Table) -> String {
    let names: Vec<String> = table.symbols().iter().map(|(name, ..)| format!("c{name:?}")).collect();
    let class = table.constants.iter().find(|constant| constant.name == "MPI_ERR_UNSUPPORTED_OPERATION");
    let Some(Value::Int(class)) = class.map(|class| &class.value) else { panic!("an error class has a number") };
    format!(
        "const NAMES: [&CStr; {}] = [{}];\nconst UNSUPPORTED_OPERATION: c_int = {class};\n",
        names.len(),
        names.join(", ")
    )
}

/// Constants of both ABIs with their conversions, and the functions of the standard ABI.
pub fn standard(table: &Table, mpich: &Mpich) -> String {
    let mut out = String::new();
    constants(table, mpich, &mut out);
    tables(table, mpich, &mut out);
    families(table, mpich, &mut out);
    functions(table, &mut out);
    out
}

/// The exported functions.
pub fn entries(table: &Table, mpich: &Mpich, by_hand: &[ByHand]) -> String {
    let symbols = table.symbols();
    let mut out = String::new();
    // The two that MPICH 5.0 lacks are in the standard and cost nothing.
    let more = symbols.iter().map(|(name, ..)| name).filter(|name| !mpich.functions.contains(name));
    for name in mpich.functions.iter().chain(&mpich.intel).chain(more) {
        let lower = name.to_lowercase();
        let hand = by_hand.iter().find(|hand| hand.name == lower);
        let generated = symbols.iter().find(|(symbol, ..)| symbol == name);
        match (hand, generated) {
            (Some(hand), _) => {
                let params = hand.params.split(',').filter_map(|param| param.trim().split(':').next());
                let passed = params.collect::<Vec<_>>().join(", ");
                let call = format!("    unsafe {{ crate::by_hand::{}::{}({passed}) }}", hand.module, hand.name);
                entry(name, &hand.params, &hand.result, &call, &mut out);
            }
            // Handles are integers: the conversions of handles are identities.
            _ if ["_toint", "_fromint", "_c2f", "_f2c"].iter().any(|end| name.ends_with(end)) => {
                entry(name, "value: i32", "i32", "    value", &mut out);
            }
            (_, Some((_, function, large))) => translated(table, name, function, *large, &mut out),
            _ => {
                assert!(name.starts_with("MPIX_"), "{name} has no code: neither in the table nor by hand");
                entry(name, "", "i32", &format!("    crate::errors::unsupported({name:?})"), &mut out);
            }
        }
    }
    out
}

/// The constants that both ABIs have, with their values: (name, standard, MPICH).
fn common<'a>(table: &'a Table, mpich: &Mpich) -> Vec<(&'a str, i64, i64)> {
    let value = |name: &str| mpich.constants.get(name).copied();
    let both = table.constants.iter().filter_map(|constant| match constant.value {
        Value::Int(standard) => value(&constant.name).map(|theirs| (constant.name.as_str(), standard, theirs)),
        _ => None,
    });
    both.collect()
}

fn constants(table: &Table, mpich: &Mpich, out: &mut String) {
    out.push_str("/// Values in the standard ABI.\npub(crate) mod standard_value {\n");
    for constant in &table.constants {
        if let Value::Int(value) = constant.value {
            writeln!(out, "    pub(crate) const {}: i32 = {};", constant.name, value as i32).unwrap();
        }
    }
    out.push_str("}\n/// Values in MPICH's ABI.\npub(crate) mod mpich_value {\n");
    for (name, value) in &mpich.constants {
        writeln!(out, "    pub(crate) const {name}: i32 = {};", *value as i32).unwrap();
    }
    writeln!(out, "}}\npub(crate) const MPICH_VERSION: &str = {:?};", mpich.version).unwrap();
}

/// A table's text: `entries` by index, `rest` elsewhere.
fn array(name: &str, element: &str, entries: &BTreeMap<usize, i64>, length: usize, rest: i64, out: &mut String) {
    let values = (0..length).map(|index| entries.get(&index).copied().unwrap_or(rest).to_string());
    let values = values.collect::<Vec<_>>().join(", ");
    writeln!(out, "pub(crate) static {name}: [{element}; {length}] = [{values}];").unwrap();
}

fn tables(table: &Table, mpich: &Mpich, out: &mut String) {
    let both = common(table, mpich);
    let c_type = |name: &str| table.constants.iter().find(|c| c.name == name).and_then(|c| c.c_type.as_deref());
    let is_handle = |name: &str| table.handles.iter().any(|h| Some(h.c_type.as_str()) == c_type(name));
    // Handles of the standard ABI lie below 1024; each value belongs to one kind.
    let handles = both.iter().filter(|(name, ..)| is_handle(name));
    let mut to_mpich: BTreeMap<usize, i64> =
        handles.map(|(_, standard, theirs)| (*standard as usize, i64::from(*theirs as i32))).collect();
    // MPICH has two names for IEEE 754's binary16 and the standard one: programs in C get theirs.
    let binary16 = both.iter().find(|(name, ..)| *name == "MPI_REAL2").expect("a datatype of Fortran").1;
    let in_c = mpich.constants["MPIX_C_FLOAT16"];
    to_mpich.insert(binary16 as usize, in_c);
    array("PREDEFINED", "i32", &to_mpich, 1024, 0, out);
    let datatypes = |first: i64, mask: i64| {
        let of_kind = both.iter().filter(|(name, ..)| c_type(name) == Some("MPI_Datatype"));
        let chosen = of_kind.filter(move |(_, _, theirs)| theirs & 0xffff_ffff & !mask == first);
        chosen.map(move |(_, standard, theirs)| ((theirs & mask & 0xff) as usize, *standard)).collect()
    };
    // What MPICH has and the standard ABI has not becomes a number that no library takes for a datatype.
    let mut single: BTreeMap<usize, i64> = datatypes(0x4c00_0000, 0xffff);
    single.insert((in_c & 0xff) as usize, binary16);
    array("DATATYPES", "u16", &single, 256, 0xfff, out);
    array("PAIRS", "u16", &datatypes(0x8c00_0000, 0xff), 8, 0xfff, out);
    let operations = both.iter().filter(|(name, _, theirs)| c_type(name) == Some("MPI_Op") && theirs >> 24 == 0x58);
    let operations = operations.map(|(_, standard, theirs)| ((theirs & 0xff) as usize, *standard)).collect();
    array("OPERATIONS", "u16", &operations, 256, 0xfff, out);
    let classes = both.iter().filter(|(name, ..)| name.contains("_ERR_") || *name == "MPI_SUCCESS");
    let classes: Vec<_> = classes.filter(|(name, ..)| *name != "MPI_ERR_LASTCODE").collect();
    let from_mpich: BTreeMap<usize, i64> =
        classes.iter().map(|(_, standard, theirs)| (*theirs as usize, *standard)).collect();
    array("CLASSES_FROM_MPICH", "i32", &from_mpich, 128, -1, out);
    let low = classes.iter().filter(|(_, standard, _)| *standard < 128);
    array("CLASSES", "i32", &low.map(|(_, s, t)| (*s as usize, *t)).collect(), 128, -1, out);
    let of_tools = classes.iter().filter(|(_, standard, _)| *standard > 1000);
    array("CLASSES_OF_TOOLS", "i32", &of_tools.map(|(_, s, t)| ((*s - 1000) as usize, *t)).collect(), 32, -1, out);
}

/// Functions that convert numbers of one meaning.
fn families(table: &Table, mpich: &Mpich, out: &mut String) {
    let both = common(table, mpich);
    for (name, members) in FAMILIES {
        let chosen: Vec<_> = both.iter().filter(|(constant, ..)| is_member(constant, members)).collect();
        for (direction, swap) in [("to_standard", false), ("to_mpich", true)] {
            let arms = chosen.iter().map(|(_, standard, theirs)| {
                let (from, to) = if swap { (standard, theirs) } else { (theirs, standard) };
                format!("{} => {}, ", *from as i32, *to as i32)
            });
            let arms: String = arms.collect::<BTreeSet<_>>().into_iter().collect();
            writeln!(
                out,
                "#[inline] pub(crate) fn {name}_{direction}(value: i32) -> i32 {{ match value {{ {arms}_ => value }} }}"
            )
            .unwrap();
        }
    }
    for (name, members) in MODES {
        let chosen: Vec<_> = both.iter().filter(|(constant, ..)| members.contains(constant)).collect();
        let all = chosen.iter().fold(0, |bits, (_, _, theirs)| bits | theirs);
        for (direction, swap) in [("to_standard", false), ("to_mpich", true)] {
            let bits: String = chosen
                .iter()
                .map(|(_, standard, theirs)| if swap { (standard, theirs) } else { (theirs, standard) })
                .map(|(from, to)| format!(" | if value & {from} != 0 {{ {to} }} else {{ 0 }}"))
                .collect();
            writeln!(out, "pub(crate) fn {name}_{direction}(value: i32) -> i32 {{ (value & !{all}){bits} }}").unwrap();
        }
    }
}

fn is_member(constant: &str, members: &[&str]) -> bool {
    members.iter().any(|member| match member.strip_suffix('*') {
        Some(prefix) => constant.starts_with(prefix) && !constant.contains("_NULL"),
        None => constant == *member,
    })
}

/// How an argument is passed in the standard ABI: numbers by their size, all else as a word.
fn word(table: &Table, arg: &Arg) -> &'static str {
    if arg.pointer || arg.param.func.is_some() {
        return "usize";
    }
    of_type(table, &arg.c_type)
}

fn of_type(table: &Table, c_type: &str) -> &'static str {
    match c_type {
        "int" | "MPI_Fint" | "MPI_T_cb_safety" | "MPI_T_source_order" => "i32",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        "double" => "f64",
        "void" => "()",
        _ if table.handles.iter().any(|h| h.c_type == c_type) => "usize",
        _ => "usize",
    }
}

fn idents(args: &[Arg]) -> Vec<String> {
    args.iter().map(|arg| format!("{}_", arg.param.name.to_lowercase())).collect()
}

/// The arguments of a function but variable ones: all are passed on as they are by not looking at them.
fn arguments<'a>(table: &'a Table, function: &'a Function, large: bool) -> Vec<Arg<'a>> {
    table.args(function, large).into_iter().filter(|arg| arg.param.kind != "VARARGS").collect()
}

/// The functions of the standard ABI, by their names.
fn functions(table: &Table, out: &mut String) {
    let symbols = table.symbols();
    out.push_str("/// The functions of the standard ABI.\npub(crate) mod abi {\n    use crate::library::function;\n");
    for (number, (name, function, large)) in symbols.iter().enumerate() {
        let args = arguments(table, function, *large);
        let types: Vec<_> = args.iter().map(|arg| word(table, arg)).collect();
        let idents = idents(&args);
        let typed: Vec<_> = idents.iter().zip(&types).map(|(ident, ty)| format!("{ident}: {ty}")).collect();
        let result = of_type(table, &table.return_type(function));
        let (typed, types, idents) = (typed.join(", "), types.join(", "), idents.join(", "));
        writeln!(
            out,
            "    #[inline(always)] pub(crate) unsafe fn {name}({typed}) -> {result} {{\n        // SAFETY: this is the \
             function's type as the standard declares it, reduced to how its arguments are passed.\n        unsafe {{ \
             std::mem::transmute::<usize, unsafe extern \"C\" fn({types}) -> {result}>(function({number}))({idents}) \
             }}\n    }}"
        )
        .unwrap();
    }
    out.push_str("}\n");
}

/// Conversion of an argument: its type in MPICH's ABI, the code before the call, and the expression that is passed.
struct Converted {
    c: &'static str,
    before: String,
    passed: String,
    after: String,
}

/// Name of the crate's type for a kind of handle.
fn kind(kind: &str) -> String {
    let lower = kind.to_lowercase();
    lower[..1].to_uppercase() + &lower[1..]
}

/// The number of elements of an array, as an expression.
fn length(function: &Function, arg: &Arg) -> Option<String> {
    let named = match &arg.param.array {
        Some(Array::Length(name)) if !name.is_empty() && name != "*" => Some(name.as_str()),
        _ => arg.param.role.length.as_deref(),
    }?;
    let comm = || {
        let comm = function.params.iter().find(|param| param.kind == "COMMUNICATOR").expect("a communicator");
        format!("Communicator::to_standard({}_)", comm.name.to_lowercase())
    };
    Some(match named {
        _ if function.param(named).is_some() => format!("{}_ as i64", named.to_lowercase()),
        "group_size" | "outdegree" | "indegree" => format!("sizes::{named}({})", comm()),
        _ => return None,
    })
}

fn sends_only(function: &Function) -> bool {
    let has = |of: &str| function.params.iter().any(|param| param.role.rank_of.as_deref() == Some(of));
    has("destination") && !has("source")
}

/// The conversion of a number of a kind, if there is one.
fn number(function: &Function, arg: &Arg) -> Option<&'static str> {
    Some(match arg.param.kind.as_str() {
        "RANK" | "RANK_NNI" if arg.param.dir == Direction::In && arg.param.array.is_none() => "rank",
        "RANK" if RETURN_NO_PROCESS.contains(&function.name.as_str()) => "rank",
        // A message is sent with no other tags than in MPICH.
        "TAG" if arg.param.name != "sendtag" && !sends_only(function) => "tag",
        "THREAD_LEVEL" => "thread_level",
        "ORDER" => "order",
        "DISTRIB_ENUM" => "distribution",
        "DTYPE_DISTRIBUTION" => "distribution_argument",
        "COMBINER" => "combiner",
        "TYPECLASS" => "typeclass",
        "COMM_COMPARISON" | "GROUP_COMPARISON" => "comparison",
        "TOPOLOGY_TYPE" => "topology",
        "SPLIT_TYPE" => "split_type",
        "LOCK_TYPE" => "lock_type",
        "UPDATE_MODE" => "whence",
        "KEYVAL" => "keyval",
        "TOOL_VAR_VERBOSITY" => "verbosity",
        "BIND_TYPE" => "bind",
        "VARIABLE_SCOPE" => "scope",
        "PVAR_CLASS" => "pvar_class",
        "SOURCE_ORDERING" => "source_order",
        "CALLBACK_SAFETY" => "safety",
        "ACCESS_MODE" => "access_mode",
        "ASSERT" => "assertion",
        "ERROR_CLASS" | "ERROR_CODE" => "error_code",
        _ => return None,
    })
}

/// Decides what becomes of an argument.
fn convert(table: &Table, function: &Function, arg: &Arg) -> Converted {
    let param = arg.param;
    let name = format!("{}_", param.name.to_lowercase());
    if let Some(handle) = table.handle(&param.kind) {
        return of_handle(function, arg, &kind(&handle.kind), &name);
    }
    let plain = |passed: String| Converted { c: word(table, arg), before: String::new(), passed, after: String::new() };
    match param.kind.as_str() {
        "STATUS" if param.array.is_some() => {
            let before = format!("let mut own_{name} = Statuses::new({name}, {});", known_length(function, arg));
            Converted::around(before, format!("own_{name}.address({name})"), format!("own_{name}.write({name});"))
        }
        "STATUS" => {
            let reads = param.dir != Direction::Out;
            let first = if reads { format!("Status::read({name})") } else { "Status::fresh()".into() };
            let after = if param.dir == Direction::In { String::new() } else { format!("own_{name}.write({name});") };
            Converted::around(format!("let mut own_{name} = {first};"), format!("own_{name}.address({name})"), after)
        }
        // The address is the result.
        "BUFFER" if function.name == "MPI_Get_address" => plain(name),
        "BUFFER" => plain(format!("buffer_to_standard({name})")),
        "OFFSET" if param.dir == Direction::In && function.name == "MPI_File_set_view" => {
            plain(format!("displacement_to_standard({name})"))
        }
        _ => match number(function, arg) {
            None => plain(name),
            Some(number) if !arg.pointer => plain(format!("{number}_to_standard({name})")),
            Some(number) => of_numbers(function, arg, number, &name).unwrap_or_else(|| plain(name)),
        },
    }
}

impl Converted {
    fn around(before: String, passed: String, after: String) -> Converted {
        Converted { c: "usize", before, passed, after }
    }
}

fn known_length(function: &Function, arg: &Arg) -> String {
    length(function, arg).unwrap_or_else(|| panic!("{}: no length of {}", function.name, arg.param.name))
}

/// What becomes of a handle, its address, or an array of handles.
fn of_handle(function: &Function, arg: &Arg, kind: &str, name: &str) -> Converted {
    let Arg { param, pointer, .. } = arg;
    if !pointer {
        let c = if kind == "File" { "usize" } else { "i32" };
        return Converted {
            c,
            ..Converted::around(String::new(), format!("{kind}::to_standard({name})"), String::new())
        };
    }
    let own = format!("own_{name}");
    if param.array.is_none() {
        let reads = param.dir != Direction::Out;
        let first = if reads { format!("handle_at::<{kind}>({name})") } else { format!("{kind}::NULL") };
        let passed = format!("address_unless_null({name}, &mut {own})");
        return Converted::around(
            format!("let mut {own} = {first};"),
            passed,
            format!("set_handle::<{kind}>({name}, {own});"),
        );
    }
    // Where the send buffer is MPI_IN_PLACE, its datatypes are not significant.
    let in_place = function.params.iter().find(|buffer| buffer.role.allows("MPI_IN_PLACE"));
    let read = match in_place {
        Some(buffer) if param.name == "sendtypes" => format!("unless_in_place({}_, {name})", buffer.name),
        _ => name.into(),
    };
    let before = format!("let mut {own} = Handles::<{kind}>::read({read}, {});", known_length(function, arg));
    let after = if param.dir == Direction::In { String::new() } else { format!("{own}.write({name});") };
    Converted::around(before, format!("{own}.address({name})"), after)
}

/// What becomes of the address of a number, or of an array of numbers.
fn of_numbers(function: &Function, arg: &Arg, number: &str, name: &str) -> Option<Converted> {
    let own = format!("own_{name}");
    let (before, passed, after) = match (arg.param.array.is_some(), arg.param.dir) {
        (true, Direction::In) => (
            format!("let {own} = Numbers::read({name}, {}, {number}_to_standard);", length(function, arg)?),
            format!("{own}.address({name})"),
            String::new(),
        ),
        (true, _) => {
            let after = format!("convert_numbers({name}, {}, {number}_to_mpich);", length(function, arg)?);
            (String::new(), name.into(), after)
        }
        (false, Direction::Out) => {
            (String::new(), name.into(), format!("if code == 0 {{ convert_number({name}, {number}_to_mpich); }}"))
        }
        (false, _) => (
            format!("let mut {own} = number_at({name}, {number}_to_standard);"),
            format!("address_unless_null({name}, &mut {own})"),
            format!("set_number({name}, {number}_to_mpich({own}));"),
        ),
    };
    Some(Converted::around(before, passed, after))
}

/// Conversion of an argument with a value that most calls have, without a call of a function: the code before the
/// call, with `otherwise!()` for other values, the expression that is passed, and the code after the call. None if
/// [`convert`] is as quick.
fn quick(table: &Table, function: &Function, arg: &Arg) -> Option<[String; 3]> {
    let Arg { param, pointer, .. } = arg;
    let name = format!("{}_", param.name.to_lowercase());
    let own = format!("own_{name}");
    let value = |before: String, passed: String| Some([before, passed, String::new()]);
    if let Some(handle) = table.handle(&param.kind) {
        let kind = kind(&handle.kind);
        let after = format!("set_quick::<{kind}>({name}, {own});");
        return match (pointer, param.dir) {
            _ if kind == "File" || param.array.is_some() => None,
            (false, _) => value(format!("let Some({own}) = {kind}::quick({name}) else {{ otherwise!() }};"), own),
            (true, Direction::In) => None,
            (true, Direction::Out) => Some([
                format!("if !is_quick({name}) {{ otherwise!() }} let mut {own} = {kind}::NULL;"),
                format!("&raw mut {own} as usize"),
                after,
            ]),
            (true, Direction::Inout) => Some([
                format!(
                    "if !is_quick({name}) {{ otherwise!() }} let Some(mut {own}) = {kind}::quick(*({name} as *const i32)) \
                     else {{ otherwise!() }};"
                ),
                format!("&raw mut {own} as usize"),
                after,
            ]),
        };
    }
    match param.kind.as_str() {
        "STATUS" if param.array.is_none() && param.role.allows("MPI_STATUS_IGNORE") => {
            value(format!("if {name} != mpich_value::MPI_STATUS_IGNORE as usize {{ otherwise!() }}"), "0".into())
        }
        "STATUS" => None,
        "BUFFER" if function.name == "MPI_Get_address" => None,
        "BUFFER" => value(format!("if ({name} as isize) < 0 {{ otherwise!() }}"), name),
        _ => match number(function, arg) {
            None => value(String::new(), name),
            Some("rank") if !pointer => value(format!("if {name} < 0 {{ otherwise!() }}"), name),
            Some("tag") if !pointer => value(String::new(), format!("tag_to_standard({name})")),
            Some(_) => None,
        },
    }
}

/// An exported function of the table.
fn translated(table: &Table, name: &str, function: &Function, large: bool, out: &mut String) {
    let args = arguments(table, function, large);
    let idents = idents(&args);
    let converted: Vec<_> = args.iter().map(|arg| convert(table, function, arg)).collect();
    let typed: Vec<_> = idents.iter().zip(&converted).map(|(ident, done)| format!("{ident}: {}", done.c)).collect();
    let (typed, idents) = (typed.join(", "), idents.join(", "));
    let result = of_type(table, &table.return_type(function));
    let parts = converted.into_iter().map(|done| [done.before, done.passed, done.after]);
    let general = body(name, function, &parts.collect::<Vec<_>>());
    let quick: Option<Vec<_>> = args.iter().map(|arg| quick(table, function, arg)).collect();
    // Nothing is gained where no argument has a quick conversion of its own.
    let Some(quick) = quick.filter(|quick| quick.iter().any(|part| part[0].contains("otherwise!"))) else {
        return entry(name, &typed, result, &general, out);
    };
    let mut inner = |attributes: &str, prefix: &str, body: &str| {
        let head = format!("{attributes}unsafe extern \"C\" fn {prefix}_{name}({typed}) -> {result}");
        writeln!(out, "{head} {{\n{body}\n}}").unwrap();
    };
    let otherwise =
        |next: &str| format!("    macro_rules! otherwise {{ () => {{ return {next}_{name}({idents}) }} }}\n");
    inner("#[cold]\n#[inline(never)]\n", "general", &general);
    let quick_body = otherwise("general") + &body(name, function, &quick);
    match predefined(table, &args, &quick) {
        Some(parts) => {
            inner("#[inline(never)]\n", "quick", &quick_body);
            entry(name, &typed, result, &(otherwise("quick") + &body(name, function, &parts)), out);
        }
        None => entry(name, &typed, result, &quick_body, out),
    }
}

/// As [`quick`], for predefined communicators, datatypes and operations: one test for all of them. None if a function
/// has none of these.
fn predefined(table: &Table, args: &[Arg], quick: &[[String; 3]]) -> Option<Vec<[String; 3]>> {
    let kind_of = |arg: &Arg| {
        let kind = table.handle(&arg.param.kind).filter(|_| !arg.pointer).map(|handle| kind(&handle.kind))?;
        ["Communicator", "Datatype", "Operation"].contains(&kind.as_str()).then_some(kind)
    };
    let named = |arg: &Arg| format!("{}_", arg.param.name.to_lowercase());
    let tests = args.iter().filter_map(|arg| Some(format!("{}::distance({})", kind_of(arg)?, named(arg))));
    let tests = tests.collect::<Vec<_>>().join(" | ");
    let mut parts = quick.to_vec();
    for (part, arg) in parts.iter_mut().zip(args) {
        if let Some(kind) = kind_of(arg) {
            *part = [String::new(), format!("{kind}::predefined({})", named(arg)), String::new()];
        }
    }
    if tests.is_empty() {
        return None;
    }
    parts[0][0].insert_str(0, &format!("if ({tests}) >> 24 != 0 {{ otherwise!() }} "));
    Some(parts)
}

/// The body of a function; `parts` are the code before the call, the expression that is passed, and the code after the
/// call, for each argument.
fn body(name: &str, function: &Function, parts: &[[String; 3]]) -> String {
    let lines = |index: usize| {
        let lines = parts.iter().map(|part| &part[index]).filter(|line| !line.is_empty());
        lines.map(|line| format!("        {line}\n")).collect::<String>()
    };
    let passed: Vec<_> = parts.iter().map(|part| part[1].as_str()).collect();
    let end = if function.returns == "ERROR_CODE" { "result(code)" } else { "code" };
    format!(
        "    // SAFETY: what the program passes is valid as the standard says; the rest lives until the end.\n    unsafe \
         {{\n{}        let code = abi::{name}({});\n{}        {end}\n    }}",
        lines(0),
        passed.join(", "),
        lines(2)
    )
}

/// A function under both of its names.
fn entry(name: &str, params: &str, result: &str, body: &str, out: &mut String) {
    for prefix in ["", "P"] {
        writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({params}) -> {result} {{\n{body}\n}}"
        )
        .unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_of_a_family_is_in_both_abis() {
        let (table, mpich) = (Table::load(), Mpich::load());
        let both = common(&table, &mpich);
        for (name, members) in FAMILIES.iter().chain(&MODES) {
            for member in members.iter().filter(|member| !member.ends_with('*')) {
                assert!(both.iter().any(|(constant, ..)| constant == member), "{name}: {member}");
            }
            assert!(both.iter().any(|(constant, ..)| is_member(constant, members)), "{name}");
        }
    }

    #[test]
    fn error_classes_of_the_standard_have_numbers_in_mpich() {
        let (table, mpich) = (Table::load(), Mpich::load());
        for constant in table.constants.iter().filter(|c| c.category == "ERROR_CLASSES") {
            assert!(mpich.constants.contains_key(&constant.name), "{}", constant.name);
        }
    }
}
