//! Renders the translation of another library's ABI as Rust, for `limosa-mpich` and `limosa-openmpi`: for every
//! function that the other library exports, one of the same name that converts its arguments, calls the function of the
//! standard ABI, and converts what that has written and returned.
//!
//! [`Abi`] has the facts about the other library and its tables of predefined handles; [`crate::mpich`] and
//! [`crate::openmpi`] give them. How a kind of parameter is converted is decided in [`convert`]; the conversions
//! themselves are functions of those crates. Functions for which a crate has code by hand are not rendered but called,
//! with the signature that the code has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::{Arg, Array, Direction, Function, Table, Value};

/// The ABI of another library: its constants, its functions, and the conversions of its handles.
pub struct Abi {
    /// The other library.
    pub owner: &'static str,
    /// Name of its library's file.
    pub library: &'static str,
    /// Version that the facts are taken from.
    pub version: String,
    /// Values of the constants that are numbers.
    pub constants: BTreeMap<String, i64>,
    /// Functions that it exports, without those with the prefix `PMPI`.
    pub functions: Vec<String>,
    /// Conversions of predefined handles and of error classes, as Rust.
    pub tables: String,
    /// Whether handles in C are the integers of Fortran.
    pub has_integers: bool,
}

/// A function by hand: its name in lower case, its parameters and its result as the source has them.
pub struct ByHand {
    /// Name of the module.
    pub module: String,
    /// Name in lower case.
    pub name: String,
    /// Text between the parentheses.
    pub params: String,
    /// Text behind the arrow.
    pub result: String,
}

/// Writes the generated sources into the folder that Cargo gives to a build script. `folders` have the modules of
/// functions by hand; of two modules with one name, the first counts.
///
/// # Panics
/// If a file cannot be read or written.
pub fn build(abi: &Abi, table: &Table, folders: &[&str]) {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{}", abi.library);
    // The standard ABI's library is searched for beside this one, and a folder or two above it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--enable-new-dtags,-rpath,$ORIGIN:$ORIGIN/..:$ORIGIN/../..");
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut files = BTreeMap::new();
    for folder in folders {
        println!("cargo:rerun-if-changed={folder}");
        for entry in std::fs::read_dir(manifest.join(folder)).expect("a folder of the crate") {
            let file = entry.expect("a folder of the crate").path();
            let module = file.file_stem().expect("a source of the crate").to_string_lossy().into_owned();
            files.entry(module).or_insert(file);
        }
    }
    let by_hand: Vec<_> = files.iter().flat_map(|(module, file)| functions_in(module, file)).collect();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let generated = [
        ("names.rs", names(table)),
        ("standard.rs", standard(table, abi)),
        ("entry.rs", entries(table, abi, &by_hand)),
    ];
    for (name, text) in generated {
        let file = out.join(name);
        std::fs::write(&file, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
    }
}

/// The functions `pub(crate) unsafe fn mpi_...` of a module.
fn functions_in(module: &str, file: &Path) -> Vec<ByHand> {
    let text = std::fs::read_to_string(file).expect("a source of the crate");
    let functions = text.split("pub(crate) unsafe fn mpi").skip(1).map(|part| {
        let (name, rest) = part.split_once('(').expect("parameters");
        let (params, rest) = rest.split_once(')').expect("parameters");
        let result = rest.split_once('{').expect("a body").0.trim();
        let params = params.split(',').map(str::trim).filter(|param| !param.is_empty()).collect::<Vec<_>>();
        ByHand {
            module: module.into(),
            name: format!("mpi{name}"),
            params: params.join(", "),
            result: result.strip_prefix("->").expect("a result").trim().into(),
        }
    });
    functions.collect()
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
fn names(table: &Table) -> String {
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
fn standard(table: &Table, abi: &Abi) -> String {
    let mut out = String::new();
    constants(table, abi, &mut out);
    out.push_str(&abi.tables);
    families(table, abi, &mut out);
    functions(table, &mut out);
    out
}

/// The exported functions.
fn entries(table: &Table, abi: &Abi, by_hand: &[ByHand]) -> String {
    let symbols = table.symbols();
    let mut out = String::new();
    // What the other library lacks is in the standard and costs nothing.
    let more = symbols.iter().map(|(name, ..)| name).filter(|name| !abi.functions.contains(name));
    for name in abi.functions.iter().chain(more) {
        let lower = name.to_lowercase();
        let hand = by_hand.iter().find(|hand| hand.name == lower);
        // Other names of the same functions: persistent collectives of Open MPI 4.1, conversions of handles.
        let adopted = if name.ends_with("_init") { name.replacen("MPIX_", "MPI_", 1) } else { name.clone() };
        let adopted = adopted.replace("_c2f", "_toint").replace("_f2c", "_fromint");
        let generated = symbols.iter().find(|(symbol, ..)| *symbol == adopted);
        match (hand, generated) {
            (Some(hand), _) => {
                let params = hand.params.split(',').filter_map(|param| param.trim().split(':').next());
                let passed = params.collect::<Vec<_>>().join(", ");
                let call = format!("    unsafe {{ crate::by_hand::{}::{}({passed}) }}", hand.module, hand.name);
                entry(name, &hand.params, &hand.result, &call, &mut out);
            }
            // Handles are integers: the conversions of handles are identities.
            _ if abi.has_integers && ["_toint", "_fromint", "_c2f", "_f2c"].iter().any(|end| name.ends_with(end)) => {
                entry(name, "value: i32", "i32", "    value", &mut out);
            }
            (_, Some((symbol, function, large))) => translated(table, name, symbol, function, *large, &mut out),
            _ => {
                let is_extension = name.starts_with("MPIX_") || *name == "MPI_Session_set_info";
                assert!(is_extension, "{name} has no code: neither in the table nor by hand");
                entry(name, "", "i32", &format!("    crate::errors::unsupported({name:?})"), &mut out);
            }
        }
    }
    out
}

/// The constants that are numbers in both ABIs, with their values: (name, standard, theirs).
pub(crate) fn common<'a>(table: &'a Table, constants: &BTreeMap<String, i64>) -> Vec<(&'a str, i64, i64)> {
    let value = |name: &str| constants.get(name).copied();
    let both = table.constants.iter().filter_map(|constant| match constant.value {
        Value::Int(standard) => value(&constant.name).map(|theirs| (constant.name.as_str(), standard, theirs)),
        _ => None,
    });
    both.collect()
}

fn constants(table: &Table, abi: &Abi, out: &mut String) {
    out.push_str("/// Values in the standard ABI.\npub(crate) mod standard_value {\n");
    for constant in &table.constants {
        if let Value::Int(value) = constant.value {
            writeln!(out, "    pub(crate) const {}: i32 = {};", constant.name, value as i32).unwrap();
        }
    }
    out.push_str("}\n/// Values in the program's ABI.\npub(crate) mod their_value {\n");
    for (name, value) in &abi.constants {
        writeln!(out, "    pub(crate) const {name}: i32 = {};", *value as i32).unwrap();
    }
    out.push_str("}\n");
    for (name, text) in [("OWNER", abi.owner), ("LIBRARY", abi.library), ("VERSION", abi.version.as_str())] {
        writeln!(out, "pub(crate) const {name}: &str = {text:?};").unwrap();
    }
}

/// A table's text: `entries` by index, `rest` elsewhere.
pub(crate) fn array(
    name: &str,
    element: &str,
    entries: &BTreeMap<usize, i64>,
    length: usize,
    rest: i64,
    out: &mut String,
) {
    let values = (0..length).map(|index| entries.get(&index).copied().unwrap_or(rest).to_string());
    let values = values.collect::<Vec<_>>().join(", ");
    writeln!(out, "pub(crate) static {name}: [{element}; {length}] = [{values}];").unwrap();
}

/// Tables of the error classes.
pub(crate) fn classes(table: &Table, constants: &BTreeMap<String, i64>) -> String {
    let mut out = String::new();
    let both = common(table, constants);
    let classes = both.iter().filter(|(name, ..)| name.contains("_ERR_") || *name == "MPI_SUCCESS");
    let classes: Vec<_> = classes.filter(|(name, ..)| *name != "MPI_ERR_LASTCODE").collect();
    // Of two classes with one number, the first is meant.
    let from_theirs: BTreeMap<usize, i64> =
        classes.iter().rev().map(|(_, standard, theirs)| (*theirs as usize, *standard)).collect();
    array("CLASSES_FROM_THEIRS", "i32", &from_theirs, 128, -1, &mut out);
    let low = classes.iter().filter(|(_, standard, _)| *standard < 128);
    array("CLASSES", "i32", &low.map(|(_, s, t)| (*s as usize, *t)).collect(), 128, -1, &mut out);
    let of_tools = classes.iter().filter(|(_, standard, _)| *standard > 1000);
    array("CLASSES_OF_TOOLS", "i32", &of_tools.map(|(_, s, t)| ((*s - 1000) as usize, *t)).collect(), 32, -1, &mut out);
    out
}

/// Functions that convert numbers of one meaning.
fn families(table: &Table, abi: &Abi, out: &mut String) {
    let both = common(table, &abi.constants);
    for (name, members) in FAMILIES {
        let chosen: Vec<_> = both.iter().filter(|(constant, ..)| is_member(constant, members)).collect();
        // Keyvals of the library may have the numbers that predefined ones have in the program's ABI.
        let is_small = *name == *"keyval" && chosen.iter().any(|(_, _, theirs)| (0..64).contains(theirs));
        let rest = if is_small { "_ if value & !(1 << 30) < 64 => value ^ 1 << 30, _ => value" } else { "_ => value" };
        for (direction, swap) in [("to_standard", false), ("to_theirs", true)] {
            let arms = chosen.iter().map(|(_, standard, theirs)| {
                let (from, to) = if swap { (standard, theirs) } else { (theirs, standard) };
                format!("{} => {}, ", *from as i32, *to as i32)
            });
            let arms: String = arms.collect::<BTreeSet<_>>().into_iter().collect();
            writeln!(
                out,
                "#[inline] pub(crate) fn {name}_{direction}(value: i32) -> i32 {{ match value {{ {arms}{rest} }} }}"
            )
            .unwrap();
        }
    }
    for (name, members) in MODES {
        let chosen: Vec<_> = both.iter().filter(|(constant, ..)| members.contains(constant)).collect();
        for (direction, swap) in [("to_standard", false), ("to_theirs", true)] {
            let pairs = || {
                chosen.iter().map(|(_, standard, theirs)| if swap { (standard, theirs) } else { (theirs, standard) })
            };
            let all = pairs().fold(0, |bits, (from, _)| bits | from);
            let bits: String =
                pairs().map(|(from, to)| format!(" | if value & {from} != 0 {{ {to} }} else {{ 0 }}")).collect();
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

/// Conversion of an argument: its type in the program's ABI, the code before the call, the expression that is passed,
/// and the code after the call.
struct Converted {
    c: String,
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
        // A message is sent with no other tags than in the program's ABI.
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
    let plain =
        |passed: String| Converted { c: word(table, arg).into(), before: String::new(), passed, after: String::new() };
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
        "WEIGHT" => plain(format!("weights_to_standard({name})")),
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
        Converted { c: "usize".into(), before, passed, after }
    }
}

fn known_length(function: &Function, arg: &Arg) -> String {
    length(function, arg).unwrap_or_else(|| panic!("{}: no length of {}", function.name, arg.param.name))
}

/// What becomes of a handle, its address, or an array of handles.
fn of_handle(function: &Function, arg: &Arg, kind: &str, name: &str) -> Converted {
    let Arg { param, pointer, .. } = arg;
    if !pointer {
        let c = format!("Handle<{kind}>");
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
            let after = format!("convert_numbers({name}, {}, {number}_to_theirs);", length(function, arg)?);
            (String::new(), name.into(), after)
        }
        (false, Direction::Out) => {
            (String::new(), name.into(), format!("if code == 0 {{ convert_number({name}, {number}_to_theirs); }}"))
        }
        (false, _) => (
            format!("let mut {own} = number_at({name}, {number}_to_standard);"),
            format!("address_unless_null({name}, &mut {own})"),
            format!("set_number({name}, {number}_to_theirs({own}));"),
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
                    "if !is_quick({name}) {{ otherwise!() }} let Some(mut {own}) = {kind}::quick(*({name} as *const Handle<{kind}>)) \
                     else {{ otherwise!() }};"
                ),
                format!("&raw mut {own} as usize"),
                after,
            ]),
        };
    }
    match param.kind.as_str() {
        "STATUS" if param.array.is_none() && param.role.allows("MPI_STATUS_IGNORE") => {
            value(format!("if {name} != their_value::MPI_STATUS_IGNORE as usize {{ otherwise!() }}"), "0".into())
        }
        "STATUS" => None,
        "BUFFER" if function.name == "MPI_Get_address" => None,
        "WEIGHT" => value(String::new(), format!("weights_to_standard({name})")),
        "BUFFER" => value(format!("if !is_plain_buffer({name}) {{ otherwise!() }}"), name),
        _ => match number(function, arg) {
            None => value(String::new(), name),
            Some("rank") if !pointer => value(format!("if {name} < 0 {{ otherwise!() }}"), name),
            Some("tag") if !pointer => value(String::new(), format!("tag_to_standard({name})")),
            Some(_) => None,
        },
    }
}

/// An exported function of the table.
fn translated(table: &Table, name: &str, symbol: &str, function: &Function, large: bool, out: &mut String) {
    let args = arguments(table, function, large);
    let idents = idents(&args);
    let converted: Vec<_> = args.iter().map(|arg| convert(table, function, arg)).collect();
    let typed: Vec<_> = idents.iter().zip(&converted).map(|(ident, done)| format!("{ident}: {}", done.c)).collect();
    let (typed, idents) = (typed.join(", "), idents.join(", "));
    let returned = table.return_type(function);
    let handle = table.handles.iter().find(|handle| handle.c_type == returned).map(|handle| kind(&handle.kind));
    let result = handle.as_ref().map_or(of_type(table, &returned).into(), |kind| format!("Handle<{kind}>"));
    let end = match handle {
        Some(kind) => format!("{kind}::to_theirs(code)"),
        None if function.returns == "ERROR_CODE" => "result(code)".into(),
        None => "code".into(),
    };
    let parts = converted.into_iter().map(|done| [done.before, done.passed, done.after]);
    let general = body(symbol, &end, &parts.collect::<Vec<_>>());
    let quick: Option<Vec<_>> = args.iter().map(|arg| quick(table, function, arg)).collect();
    // Nothing is gained where no argument has a quick conversion of its own.
    let Some(quick) = quick.filter(|quick| quick.iter().any(|part| part[0].contains("otherwise!"))) else {
        return entry(name, &typed, &result, &general, out);
    };
    let mut inner = |attributes: &str, prefix: &str, body: &str| {
        let head = format!("{attributes}unsafe extern \"C\" fn {prefix}_{name}({typed}) -> {result}");
        writeln!(out, "{head} {{\n{body}\n}}").unwrap();
    };
    let otherwise =
        |next: &str| format!("    macro_rules! otherwise {{ () => {{ return {next}_{name}({idents}) }} }}\n");
    inner("#[cold]\n#[inline(never)]\n", "general", &general);
    let quick_body = otherwise("general") + &body(symbol, &end, &quick);
    match predefined(table, &args, &quick) {
        Some(parts) => {
            inner("#[inline(never)]\n", "quick", &quick_body);
            entry(name, &typed, &result, &(otherwise("quick") + &body(symbol, &end, &parts)), out);
        }
        None => entry(name, &typed, &result, &quick_body, out),
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
    parts[0][0].insert_str(0, &format!("if !are_predefined({tests}) {{ otherwise!() }} "));
    Some(parts)
}

/// The body of a function that calls `name` of the standard ABI and ends with the expression `end`; `parts` are the
/// code before the call, the expression that is passed, and the code after the call, for each argument.
fn body(name: &str, end: &str, parts: &[[String; 3]]) -> String {
    let lines = |index: usize| {
        let lines = parts.iter().map(|part| &part[index]).filter(|line| !line.is_empty());
        lines.map(|line| format!("        {line}\n")).collect::<String>()
    };
    let passed: Vec<_> = parts.iter().map(|part| part[1].as_str()).collect();
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
    use crate::{mpich, openmpi};

    #[test]
    fn every_constant_of_a_family_is_in_the_standard_and_most_are_in_each_abi() {
        let table = Table::load();
        for abi in [mpich::abi(&table), openmpi::abi(&table)] {
            let both = common(&table, &abi.constants);
            for (name, members) in FAMILIES.iter().chain(&MODES) {
                for member in members.iter().filter(|member| !member.ends_with('*')) {
                    assert!(both.iter().any(|(constant, ..)| constant == member), "{name}: {member}, {}", abi.owner);
                }
                // Open MPI has no events.
                let is_here = both.iter().any(|(constant, ..)| is_member(constant, members));
                assert!(is_here || ["source_order", "safety"].contains(name), "{name}, {}", abi.owner);
            }
        }
    }
}
