//! The table itself: the types that `mpi5.json` deserialises into, with what `roles.json` adds, and what follows
//! directly from them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::roles::{self, Form, Forms, Role};

/// The whole interface.
#[derive(Serialize, Deserialize)]
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
#[derive(Serialize, Deserialize)]
pub struct Status {
    /// Size in bytes.
    pub size: usize,
    /// Name, C type, number of elements, offset in bytes.
    pub fields: Vec<(String, String, usize, usize)>,
}

/// A handle type of the ABI.
#[derive(Serialize, Deserialize)]
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
#[derive(Serialize, Deserialize)]
pub struct Kind {
    /// Name.
    pub kind: String,
    /// C type; none where the declaration depends on the parameter (functions).
    pub c: Option<String>,
    /// C type in the large-count twin, where it differs.
    pub large: Option<String>,
}

/// Value of a constant.
#[derive(Serialize, Deserialize)]
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
#[derive(Serialize, Deserialize)]
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
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(untagged)]
pub enum Array {
    /// Name of the parameter or constant that holds the length, or `*`.
    Length(String),
    /// Length and inner dimension of a two-dimensional array.
    Matrix(Vec<String>),
}

/// A C parameter.
#[derive(Serialize, Deserialize, Clone)]
pub struct Param {
    /// Name in the standard.
    pub name: String,
    /// Parameter kind.
    pub kind: String,
    /// Direction.
    pub dir: Direction,
    /// Declared `const` in C.
    #[serde(rename = "const", default, skip_serializing_if = "is_false")]
    pub constant: bool,
    /// Length, for arrays.
    pub array: Option<Array>,
    /// Explicitly a pointer, or explicitly not one, against what the direction implies.
    pub pointer: Option<bool>,
    /// Function type, for kinds that are functions.
    pub func: Option<String>,
    /// The Forum's mark of what is significant at the root only; see [`Role::significant`], which corrects it.
    #[serde(default, skip_serializing)]
    pub(crate) root: bool,
    /// Exists in the large-count twin only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub large_only: bool,
    /// Declared `ASYNCHRONOUS` in Fortran: the call may return before it is done with the argument.
    #[serde(rename = "async", default, skip_serializing_if = "is_false")]
    pub asynchronous: bool,
    /// What `roles.json` says about it.
    #[serde(flatten)]
    pub role: Role,
}

/// The Fortran interfaces that have a function.
#[derive(Serialize, Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Fortran {
    /// `mpif.h` and both modules.
    #[default]
    All,
    /// `mpif.h` and module `mpi`: a function that MPI-2 deprecated.
    Mpi,
    /// A function of C alone.
    None,
}

impl Fortran {
    fn is_all(&self) -> bool {
        *self == Fortran::All
    }
}

/// A function or a function type.
#[derive(Serialize, Deserialize, Clone)]
pub struct Function {
    /// Name in the standard.
    pub name: String,
    /// Chapter of the standard; empty for function types.
    #[serde(default)]
    pub chapter: String,
    /// Kind of the result; `ERROR_CODE` for most, `NOTHING` for void.
    pub returns: String,
    /// Has a twin with the suffix `_c` and wide counts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub large: bool,
    /// May be called before initialisation and after finalisation (from `roles.json`, as all that follows up to the
    /// parameters).
    #[serde(default, skip_serializing_if = "is_false")]
    pub any_time: bool,
    /// A collective operation that transfers data or synchronises.
    #[serde(default, skip_serializing_if = "is_false")]
    pub collective: bool,
    /// The other forms of this blocking operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<Forms>,
    /// The blocking operation of which this function is another form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form_of: Option<(String, Form)>,
    /// C parameters in order.
    pub params: Vec<Param>,
    /// Exported by the library (default) or only defined in `mpi.h`.
    #[serde(default = "yes")]
    pub symbol: bool,
    /// The Fortran interfaces that have it.
    #[serde(default, skip_serializing_if = "Fortran::is_all")]
    pub fortran: Fortran,
}

fn yes() -> bool {
    true
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Param {
    /// True if the null handle may be passed, or if the entry point does not look at the handle.
    pub fn null_handle_is_valid(&self, table: &Table) -> bool {
        let null = table.handle(&self.kind).is_some_and(|handle| self.role.allows(&handle.null));
        null || self.role.unchecked == Some(true) || self.role.significant_at().is_some()
    }
}

impl Function {
    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }

    /// The name of the operation: that of its blocking form.
    pub fn operation(&self) -> &str {
        self.form_of.as_ref().map_or(&self.name, |(operation, _)| operation)
    }

    /// The form of the operation.
    pub fn form(&self) -> Form {
        self.form_of.as_ref().map_or(Form::Blocking, |(_, form)| *form)
    }

    /// True if the parameter is the count or the datatype of a buffer.
    pub fn describes_buffer(&self, param: &Param) -> bool {
        self.params
            .iter()
            .any(|p| [&p.role.count, &p.role.datatype].into_iter().any(|name| name.as_ref() == Some(&param.name)))
    }
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
    /// The table that is built into this crate, with the roles.
    ///
    /// # Panics
    /// If one of the files is wrong; says where and why.
    pub fn load() -> Table {
        let mut table = Table::bare();
        let roles =
            serde_json::from_str(include_str!("../roles.json")).unwrap_or_else(|e| panic!("api/roles.json: {e}"));
        let wrong = roles::merge(&mut table, &roles);
        assert!(wrong.is_empty(), "api/roles.json is wrong:\n  {}", wrong.join("\n  "));
        table
    }

    /// The table without the roles.
    pub(crate) fn bare() -> Table {
        let mut table: Table =
            serde_json::from_str(include_str!("../mpi5.json")).unwrap_or_else(|e| panic!("api/mpi5.json: {e}"));
        table.kind_index = table.kinds.iter().enumerate().map(|(i, k)| (k.kind.clone(), i)).collect();
        table
    }

    /// The table with the roles as JSON, for generators in other languages.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a table has no maps with keys other than text")
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
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
        let arg = |param| Arg { param, c_type: self.c_type(param, large), pointer: is_pointer(self, param) };
        function.params.iter().filter(shown).map(arg).collect()
    }

    /// C type of a result.
    pub fn return_type(&self, function: &Function) -> String {
        self.kind(&function.returns).c.clone().expect("results have a C type")
    }

    pub(crate) fn c_type(&self, param: &Param, large: bool) -> String {
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

/// Whether C passes the parameter as a pointer to, or array of, its kind's type. Kinds that are pointers or functions
/// by themselves are not.
pub(crate) fn is_pointer(table: &Table, param: &Param) -> bool {
    let itself = param.func.is_some() || table.kind(&param.kind).c.as_ref().is_none_or(|c| c.ends_with('*'));
    let status = param.kind.ends_with("STATUS");
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
