//! The table itself: the types that `mpi5.json` deserialises into, and what follows directly from them.

use std::collections::HashMap;

use serde::Deserialize;

/// The whole interface.
#[derive(Deserialize)]
pub struct Table {
    /// Version and subversion of the standard.
    pub mpi: [i32; 2],
    /// Version and subversion of the ABI.
    pub abi: [i32; 2],
    /// Layout of `MPI_Status`.
    pub status: Status,
    /// Chapter titles in the order of the standard.
    pub chapters: Vec<String>,
    /// Handle types with their null handles.
    pub handles: Vec<HandleType>,
    /// Parameter kinds with their C types.
    pub kinds: Vec<Kind>,
    /// Named constants.
    pub constants: Vec<Constant>,
    /// Types of functions that the user passes in.
    pub callbacks: Vec<Function>,
    /// Functions, each with its large-count twin implied by [`Function::large`].
    pub functions: Vec<Function>,
    #[serde(skip)]
    kind_index: HashMap<String, usize>,
}

/// Layout of `MPI_Status`: size in bytes and fields as (name, C type, elements, offset).
#[derive(Deserialize)]
pub struct Status {
    /// Size in bytes.
    pub size: usize,
    /// Name, C type, number of elements, offset in bytes.
    pub fields: Vec<(String, String, usize, usize)>,
}

/// A handle type of the ABI.
#[derive(Deserialize)]
pub struct HandleType {
    /// Parameter kind of such handles.
    pub kind: String,
    /// C type.
    #[serde(rename = "type")]
    pub c_type: String,
    /// Name of the null handle.
    pub null: String,
    /// Error class of an invalid handle.
    pub error: String,
}

/// A parameter kind.
#[derive(Deserialize)]
pub struct Kind {
    /// Name.
    pub kind: String,
    /// C type; none where the declaration depends on the parameter (functions).
    pub c: Option<String>,
    /// C type in the large-count twin, where it differs.
    pub large: Option<String>,
}

/// Value of a constant.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number: an integer, a handle value or an address.
    Int(i64),
    /// The name of something that only Fortran knows.
    Name(String),
    /// Left to the implementation.
    Unset,
}

/// A named constant.
#[derive(Deserialize)]
pub struct Constant {
    /// Name.
    pub name: String,
    /// Category in the standard's annex.
    pub category: String,
    /// Value in the ABI.
    pub value: Value,
    /// C type; none for constants that only Fortran has.
    #[serde(rename = "type")]
    pub c_type: Option<String>,
    /// C type that a predefined datatype names.
    pub c: Option<String>,
    /// C++ type that a predefined datatype names.
    pub cpp: Option<String>,
    /// Fortran type that a predefined datatype names.
    pub fortran: Option<String>,
}

/// Direction of a parameter.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Read by the function.
    In,
    /// Written by the function.
    Out,
    /// Read and written.
    Inout,
}

/// Length of an array parameter.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(untagged)]
pub enum Array {
    /// Name of the parameter or constant that holds the length, or `*`.
    Length(String),
    /// Length and inner dimension of a two-dimensional array.
    Matrix(Vec<String>),
}

/// A C parameter.
#[derive(Deserialize, Clone)]
pub struct Param {
    /// Name in the standard.
    pub name: String,
    /// Parameter kind.
    pub kind: String,
    /// Direction.
    pub dir: Direction,
    /// Declared `const` in C.
    #[serde(rename = "const", default)]
    pub constant: bool,
    /// Length, for arrays.
    pub array: Option<Array>,
    /// Explicitly a pointer, or explicitly not one, against what the direction implies.
    pub pointer: Option<bool>,
    /// Function type, for kinds that are functions.
    pub func: Option<String>,
    /// Significant at the root of a rooted operation only.
    #[serde(default)]
    pub root: bool,
    /// Exists in the large-count twin only.
    #[serde(default)]
    pub large_only: bool,
}

/// A function or a function type.
#[derive(Deserialize, Clone)]
pub struct Function {
    /// Name in the standard.
    pub name: String,
    /// Chapter of the standard; empty for function types.
    #[serde(default)]
    pub chapter: String,
    /// Kind of the result; `ERROR_CODE` for most, `NOTHING` for void.
    pub returns: String,
    /// Has a twin with the suffix `_c` and wide counts.
    #[serde(default)]
    pub large: bool,
    /// C parameters in order.
    pub params: Vec<Param>,
    /// Exported by the library (default) or only defined in `mpi.h`.
    #[serde(default = "yes")]
    pub symbol: bool,
}

fn yes() -> bool {
    true
}

/// A parameter with its C type resolved for one of the twins.
pub struct Arg<'a> {
    /// The parameter.
    pub param: &'a Param,
    /// C type of one element, without qualifiers: `int`, `MPI_Comm`, `void *`.
    pub c_type: String,
    /// Passed as a pointer to `c_type` (or as an array of it).
    pub pointer: bool,
}

impl Table {
    /// Parses the table that is built into this crate.
    pub fn load() -> Table {
        let mut table: Table = serde_json::from_str(include_str!("../mpi5.json")).expect("api/mpi5.json is not a valid table");
        table.kind_index = table.kinds.iter().enumerate().map(|(i, k)| (k.kind.clone(), i)).collect();
        table
    }

    /// The kind of that name.
    pub fn kind(&self, name: &str) -> &Kind {
        &self.kinds[*self.kind_index.get(name).unwrap_or_else(|| panic!("the table has no parameter kind {name}"))]
    }

    /// The handle type of a kind, if its parameters are handles.
    pub fn handle(&self, kind: &str) -> Option<&HandleType> {
        self.handles.iter().find(|h| h.kind == kind)
    }

    /// The parameters of one of the twins, with C types.
    pub fn args<'a>(&self, function: &'a Function, large: bool) -> Vec<Arg<'a>> {
        let shown = |p: &&Param| large || !p.large_only;
        let arg = |param| Arg { param, c_type: self.c_type(param, large), pointer: is_pointer(param) };
        function.params.iter().filter(shown).map(arg).collect()
    }

    /// C type of a result.
    pub fn return_type(&self, function: &Function) -> String {
        self.kind(&function.returns).c.clone().expect("results have a C type")
    }

    fn c_type(&self, param: &Param, large: bool) -> String {
        if param.kind == "ARGUMENT_LIST" && param.pointer == Some(false) {
            return "char **".into();
        }
        if let Some(func) = &param.func {
            let twin = if large && param.kind.starts_with("POLY") { "_c" } else { "" };
            return format!("{func}{twin}");
        }
        let kind = self.kind(&param.kind);
        let wide = if large { kind.large.as_ref() } else { None };
        wide.or(kind.c.as_ref()).cloned().unwrap_or_else(|| "...".into())
    }

    /// Every exported function as (exported name, function, is the large-count twin), sorted by name.
    pub fn symbols(&self) -> Vec<(String, &Function, bool)> {
        let mut all: Vec<_> = self.functions.iter().filter(|f| f.symbol).map(|f| (f.name.clone(), f, false)).collect();
        all.extend(self.functions.iter().filter(|f| f.symbol && f.large).map(|f| (format!("{}_c", f.name), f, true)));
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// Whether C passes the parameter as a pointer to, or array of, its kind's type. Kinds that are pointers or functions by themselves are not.
fn is_pointer(param: &Param) -> bool {
    let kind = param.kind.as_str();
    let itself = param.func.is_some()
        || kind == "VARARGS"
        || kind.contains("BUFFER")
        || kind.starts_with("ATTRIBUTE_VAL")
        || kind.starts_with("EXTRA_STATE")
        || kind.starts_with("STRING") && !kind.starts_with("STRING_LENGTH")
        || matches!(kind, "LOGICAL_VOID" | "TOOL_MPI_OBJ" | "ARGUMENT_LIST");
    let status = kind.ends_with("STATUS");
    !itself && (param.array.is_some() || status || param.pointer.unwrap_or(param.dir != Direction::In))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_abi_has_664_functions() {
        assert_eq!(Table::load().symbols().len(), 664);
    }

    #[test]
    fn every_kind_in_use_is_in_the_table() {
        let table = Table::load();
        for function in table.functions.iter().chain(&table.callbacks) {
            table.return_type(function);
            for large in [false, true] {
                for arg in table.args(function, large) {
                    assert!(!arg.c_type.is_empty(), "{}.{}", function.name, arg.param.name);
                }
            }
        }
    }

    #[test]
    fn predefined_handles_do_not_overlap() {
        let table = Table::load();
        let mut seen: HashMap<i64, &str> = HashMap::new();
        for constant in &table.constants {
            let Some(c_type) = &constant.c_type else { continue };
            if let (Value::Int(v), true) = (&constant.value, table.handles.iter().any(|h| &h.c_type == c_type)) {
                let owner = seen.entry(*v).or_insert(c_type);
                assert_eq!(owner, c_type, "{} has the value of another type's handle", constant.name);
            }
        }
    }
}
