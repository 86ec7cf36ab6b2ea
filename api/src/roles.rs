//! What the standard says about parameters beyond the Forum's description: `roles.json`, read, checked and merged into
//! the table.
//!
//! The file's schema is in `api/README.md`. Whatever is wrong with an entry is reported with the entry and the reason,
//! all of it at once: [`Table::load`] panics with that list, so that no generator works from a bad table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table::is_pointer;
use crate::{Array, Direction, Function, Param, Table};

/// The role of a parameter: what its value means, which values are legal, where it is significant. All names are the
/// standard's.
#[derive(Serialize, Deserialize, Clone, Default, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Least legal value; of an array, of each element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<i64>,
    /// Error class of a smaller value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Named constants that may be passed and have a meaning of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allows: Option<Vec<String>>,
    /// What the process of this rank is: `root`, `destination`, `source`, `target`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_of: Option<String>,
    /// The parameter with the rank of the only process at which this argument is significant, or [`EVERYWHERE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub significant: Option<String>,
    /// Of a buffer: the parameter with its number of elements, or bytes without `datatype`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// Of a buffer: the parameter with the datatype of its elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datatype: Option<String>,
    /// Of a buffer: the parameter that says where its blocks are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub displacements: Option<String>,
    /// Of a buffer with more than one block: how many, as in `length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// Number of elements of an array, where the Forum's description leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<String>,
    /// The result is not wanted if the pointer is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_pointer: Option<bool>,
    /// The call frees the object and sets the handle to the null handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frees: Option<bool>,
    /// The handle is not looked up: any value will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<bool>,
}

/// Value of [`Role::significant`] for an argument that is significant at every process.
pub const EVERYWHERE: &str = "everywhere";

/// Lengths that no parameter holds.
const LENGTHS: &[&str] = &["group_size", "local_group_size", "indegree", "outdegree", "ndims", "terminated"];

/// The other forms of a blocking operation.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// Starts the operation and returns a request.
    pub nonblocking: String,
    /// Makes a persistent request of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent: Option<String>,
}

/// In which form a function does its operation.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Returns when it is complete.
    Blocking,
    /// Returns a request.
    Nonblocking,
    /// Returns a persistent request.
    Persistent,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Form::Blocking => "blocking",
            Form::Nonblocking => "nonblocking",
            Form::Persistent => "persistent",
        })
    }
}

/// The whole of `roles.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Roles {
    /// What holds for every in or inout parameter of a kind.
    kinds: BTreeMap<String, Role>,
    /// What holds for functions; of entries that say different things, the last.
    functions: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Functions, or prefixes that end in `*`. An operation's entry is also that of its other forms.
    names: Vec<String>,
    #[serde(default)]
    any_time: bool,
    #[serde(default)]
    collective: bool,
    forms: Option<Forms>,
    #[serde(default)]
    params: BTreeMap<String, Role>,
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

impl Role {
    /// Lets `other` overrule what it says.
    fn overlay(&mut self, other: &Role) {
        fn set<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        set(&mut self.least, &other.least);
        set(&mut self.error, &other.error);
        set(&mut self.allows, &other.allows);
        set(&mut self.rank_of, &other.rank_of);
        set(&mut self.significant, &other.significant);
        set(&mut self.count, &other.count);
        set(&mut self.datatype, &other.datatype);
        set(&mut self.displacements, &other.displacements);
        set(&mut self.blocks, &other.blocks);
        set(&mut self.length, &other.length);
        set(&mut self.null_pointer, &other.null_pointer);
        set(&mut self.frees, &other.frees);
        set(&mut self.unchecked, &other.unchecked);
    }

    /// True if that constant may be passed.
    pub fn allows(&self, constant: &str) -> bool {
        self.allows.iter().flatten().any(|name| name == constant)
    }

    /// The parameter that says at which process alone the argument is significant.
    pub fn significant_at(&self) -> Option<&str> {
        self.significant.as_deref().filter(|at| *at != EVERYWHERE)
    }
}

/// Writes the roles into the table. Returns what is wrong with them.
pub(crate) fn merge(table: &mut Table, roles: &Roles) -> Vec<String> {
    let mut wrong = forms(table, roles);
    let kinds: Vec<&str> = table.kinds.iter().map(|k| k.kind.as_str()).collect();
    wrong.extend(
        roles
            .kinds
            .keys()
            .filter(|k| !kinds.contains(&k.as_str()))
            .map(|k| format!("kinds: there is no parameter kind {k}")),
    );
    for function in &mut table.functions {
        for param in &mut function.params {
            if param.root {
                param.role.significant = Some("root".into());
            }
            if let (Some(role), true) = (roles.kinds.get(&param.kind), param.dir != Direction::Out) {
                param.role.overlay(role);
            }
        }
        for entry in &roles.functions {
            if entry
                .names
                .iter()
                .any(|pattern| matches(pattern, &function.name) || matches(pattern, function.operation()))
            {
                function.any_time |= entry.any_time;
                function.collective |= entry.collective;
                for param in &mut function.params {
                    if let Some(role) = entry.params.get(&param.name) {
                        param.role.overlay(role);
                    }
                }
            }
        }
    }
    wrong.extend(roles.functions.iter().flat_map(|entry| stray(table, entry)));
    wrong.extend(table.functions.iter().flat_map(|f| f.params.iter().flat_map(|p| check(table, f, p))));
    wrong
}

/// Tells each operation its forms, and each form its operation.
fn forms(table: &mut Table, roles: &Roles) -> Vec<String> {
    let mut wrong = Vec::new();
    for entry in &roles.functions {
        let Some(forms) = &entry.forms else { continue };
        let [name] = &entry.names[..] else {
            wrong.push(format!("functions {:?}: forms are those of one operation", entry.names));
            continue;
        };
        let Some(base) = table.functions.iter().position(|f| f.name == *name) else { continue };
        table.functions[base].forms = Some(forms.clone());
        let others = [(Some(&forms.nonblocking), Form::Nonblocking), (forms.persistent.as_ref(), Form::Persistent)];
        for (other, form) in others.into_iter().filter_map(|(other, form)| Some((other?, form))) {
            let Some(at) = table.functions.iter().position(|f| f.name == *other) else {
                wrong.push(format!("{name}: its {form} form {other} is not a function"));
                continue;
            };
            if let Some(why) = mismatch(&table.functions[base], &table.functions[at]) {
                wrong.push(format!("{name}: {other} is not its {form} form: {why}"));
            }
            table.functions[at].form_of = Some((name.clone(), form));
        }
    }
    wrong
}

/// Why one function cannot be a form of another: it must have the same parameters, without a status, and then an info
/// or none, and a request.
fn mismatch(operation: &Function, form: &Function) -> Option<String> {
    let same = |a: &Param, b: &Param| (&a.name, &a.kind, a.dir, &a.array) == (&b.name, &b.kind, b.dir, &b.array);
    let wanted: Vec<&Param> = operation.params.iter().filter(|p| p.kind != "STATUS").collect();
    let (shared, own) = form.params.split_at(wanted.len().min(form.params.len()));
    if let Some((want, have)) = wanted.iter().zip(shared).find(|(want, have)| !same(want, have)) {
        return Some(format!("its parameter {} is not like the operation's {}", have.name, want.name));
    }
    let kinds: Vec<&str> = own.iter().map(|p| p.kind.as_str()).collect();
    // Duplication of a communicator has its result before the request.
    (!matches!(kinds[..], ["REQUEST"] | ["INFO", "REQUEST"]))
        .then(|| format!("its last parameters are {kinds:?}, not a request"))
}

/// Names in an entry that lead nowhere.
fn stray(table: &Table, entry: &Entry) -> Vec<String> {
    let mut wrong = Vec::new();
    for pattern in &entry.names {
        let functions: Vec<&Function> = table.functions.iter().filter(|f| matches(pattern, &f.name)).collect();
        if functions.is_empty() {
            wrong.push(format!("functions: {pattern} matches no function"));
            continue;
        }
        for name in entry.params.keys() {
            if !functions.iter().any(|f| f.param(name).is_some()) {
                wrong.push(format!("functions: {pattern} has no parameter {name}"));
            }
        }
    }
    wrong
}

/// What is wrong with the roles of one parameter, in sentences.
fn check(table: &Table, function: &Function, param: &Param) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |ok: bool, what: String| {
        if !ok {
            wrong.push(format!("{}, {}: {what}", function.name, param.name));
        }
    };
    check_values(table, param, &mut say);
    check_relations(function, param, &mut say);
    check_length(function, param, &mut say);
    let (role, result, handle) = (&param.role, param.dir == Direction::Out, table.handle(&param.kind));
    say(role.null_pointer.is_none() || result, "null_pointer, but it is not a result".into());
    say(
        role.frees.is_none() || handle.is_some() && param.dir == Direction::Inout,
        "frees, but it is not an inout handle".into(),
    );
    say(role.unchecked.is_none() || handle.is_some(), "unchecked, but it is not a handle".into());
    wrong
}

/// Takes whether a property is as it should be, and what is wrong if it is not.
type Say<'a> = &'a mut dyn FnMut(bool, String);

/// Checks which values a parameter may have.
fn check_values(table: &Table, param: &Param, say: Say) {
    let role = &param.role;
    let number = table
        .kind(&param.kind)
        .c
        .as_deref()
        .is_some_and(|c| matches!(c, "int" | "MPI_Aint" | "MPI_Count" | "MPI_Offset"));
    if let Some(least) = role.least {
        say(number, format!("least is {least}, but a {} is not a number", param.kind));
        say(role.error.is_some(), format!("least is {least}, but no error class is given for smaller values"));
    }
    if let Some(error) = &role.error {
        say(role.least.is_some(), format!("an error class {error}, but no least value"));
        let class = table.constants.iter().any(|c| c.name == *error && c.category == "ERROR_CLASSES");
        say(class, format!("{error} is not an error class"));
    }
    for name in role.allows.iter().flatten() {
        match table.constants.iter().find(|c| c.name == *name) {
            None => say(false, format!("{name} is not a constant")),
            Some(constant) => {
                let own = table.c_type(param, false).replace(' ', "");
                let fits = constant
                    .c_type
                    .as_deref()
                    .is_some_and(|c| c == own || is_pointer(table, param) && c == format!("{own}*"));
                say(fits, format!("{name} does not have its type"));
            }
        }
    }
}

/// Checks which other parameters say something about this one.
fn check_relations(function: &Function, param: &Param, say: Say) {
    let (role, buffer) = (&param.role, param.kind == "BUFFER");
    say(
        role.rank_of.is_none() || param.kind.starts_with("RANK"),
        format!("rank_of, but a {} is not a rank", param.kind),
    );
    if let Some(at) = role.significant_at() {
        let rank = function.param(at).is_some_and(|p| p.role.rank_of.is_some());
        say(rank, format!("significant at {at}, which is not a parameter with rank_of"));
    }
    for (what, name, kinds) in [
        ("count", &role.count, &["NUM_ELEM", "PACK_SIZE", "NUM_BYTES", "SIZE"][..]),
        ("datatype", &role.datatype, &["DATATYPE"][..]),
        ("displacements", &role.displacements, &["DISPLACEMENT"][..]),
    ] {
        let Some(name) = name else { continue };
        say(buffer, format!("{what}, but a {} is not a buffer", param.kind));
        let fits = function.param(name).is_some_and(|p| kinds.iter().any(|kind| p.kind.contains(kind)));
        say(fits, format!("its {what} is {name}, which is not a parameter of such a kind"));
    }
    if let Some(blocks) = &role.blocks {
        say(buffer, format!("blocks, but a {} is not a buffer", param.kind));
        say(
            is_length(function, blocks),
            format!("its blocks are {blocks}, which is neither a parameter nor a known length"),
        );
    }
}

/// Checks that a length is given for an array exactly if the Forum's description does not give it.
fn check_length(function: &Function, param: &Param, say: Say) {
    let open = matches!(&param.array, Some(Array::Length(length)) if length == "*" || length.is_empty());
    match &param.role.length {
        Some(length) => {
            let taken = open || param.kind == "STRING_ARRAY";
            say(taken, "a length, but it is not an array whose length the Forum's description leaves open".into());
            say(
                is_length(function, length),
                format!("its length is {length}, which is neither a parameter nor a known length"),
            );
        }
        None => {
            let known = !open || function.chapter == "Tool support";
            say(known, "the Forum's description leaves its length open, and no entry gives one".into());
        }
    }
}

/// A parameter, the sum or last element of one, or one of [`LENGTHS`].
fn is_length(function: &Function, length: &str) -> bool {
    let inner =
        ["sum(", "last("].iter().find_map(|call| length.strip_prefix(call)?.strip_suffix(')')).unwrap_or(length);
    LENGTHS.contains(&length) || function.param(inner).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is reported about the project's table with these roles.
    fn reported(kinds: &str, functions: &str) -> Vec<String> {
        let roles = serde_json::from_str(&format!("{{\"kinds\": {{{kinds}}}, \"functions\": [{functions}]}}")).unwrap();
        let mut table = Table::bare();
        let open = "leaves its length open";
        merge(&mut table, &roles)
            .into_iter()
            .filter(|what| !what.contains(open) && !what.contains("significant at root"))
            .collect()
    }

    /// Entries with a mistake, and what is to be said about each.
    const MISTAKEN: &[(&str, &str)] = &[
        (r#"{"names": ["MPI_Sendd"]}"#, "MPI_Sendd matches no function"),
        (r#"{"names": ["MPI_Send"], "params": {"bufs": {}}}"#, "MPI_Send has no parameter bufs"),
        (
            r#"{"names": ["MPI_Send"], "params": {"buf": {"count": "dest"}}}"#,
            "MPI_Send, buf: its count is dest, which is not a parameter of such a kind",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"buf": {"datatype": "type"}}}"#,
            "MPI_Send, buf: its datatype is type, which is not",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"tag": {"datatype": "datatype"}}}"#,
            "MPI_Send, tag: datatype, but a TAG is not a buffer",
        ),
        (r#"{"names": ["MPI_Send"], "params": {"dest": {"allows": ["MPI_NOBODY"]}}}"#, "MPI_NOBODY is not a constant"),
        (
            r#"{"names": ["MPI_Send"], "params": {"dest": {"allows": ["MPI_IN_PLACE"]}}}"#,
            "MPI_IN_PLACE does not have its type",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"tag": {"rank_of": "destination"}}}"#,
            "rank_of, but a TAG is not a rank",
        ),
        (r#"{"names": ["MPI_Send"], "params": {"count": {"least": 0}}}"#, "no error class is given"),
        (
            r#"{"names": ["MPI_Send"], "params": {"count": {"least": 0, "error": "MPI_INT"}}}"#,
            "MPI_INT is not an error class",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"comm": {"least": 0, "error": "MPI_ERR_ARG"}}}"#,
            "a COMMUNICATOR is not a number",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"buf": {"significant": "comm"}}}"#,
            "significant at comm, which is not a parameter with rank_of",
        ),
        (
            r#"{"names": ["MPI_Send"], "params": {"count": {"length": "group_size"}}}"#,
            "it is not an array whose length",
        ),
        (
            r#"{"names": ["MPI_Gatherv"], "params": {"displs": {"length": "many"}}}"#,
            "its length is many, which is neither",
        ),
        (
            r#"{"names": ["MPI_Gather"], "params": {"recvbuf": {"blocks": "many"}}}"#,
            "its blocks are many, which is neither",
        ),
        (r#"{"names": ["MPI_Send"], "params": {"comm": {"frees": true}}}"#, "frees, but it is not an inout handle"),
        (r#"{"names": ["MPI_Send"], "params": {"tag": {"unchecked": true}}}"#, "unchecked, but it is not a handle"),
        (
            r#"{"names": ["MPI_Send"], "params": {"tag": {"null_pointer": true}}}"#,
            "null_pointer, but it is not a result",
        ),
        (
            r#"{"names": ["MPI_Send"], "forms": {"nonblocking": "MPI_Iscnd"}}"#,
            "its nonblocking form MPI_Iscnd is not a function",
        ),
        (
            r#"{"names": ["MPI_Send"], "forms": {"nonblocking": "MPI_Irecv"}}"#,
            "its parameter buf is not like the operation's buf",
        ),
        (
            r#"{"names": ["MPI_Send"], "forms": {"nonblocking": "MPI_Bsend"}}"#,
            "its last parameters are [], not a request",
        ),
        (
            r#"{"names": ["MPI_Send", "MPI_Recv"], "forms": {"nonblocking": "MPI_Isend"}}"#,
            "forms are those of one operation",
        ),
    ];

    #[test]
    fn what_is_wrong_with_an_entry_is_said() {
        for (entry, wanted) in MISTAKEN {
            let said = reported("", entry);
            assert!(said.iter().any(|what| what.contains(wanted)), "{entry}: {wanted:?} is not in {said:#?}");
        }
        let said = reported(r#""RNAK": {}"#, "");
        assert_eq!(said, ["kinds: there is no parameter kind RNAK"]);
    }

    #[test]
    fn a_misspelt_property_is_refused() {
        let misspelt = r#"{"kinds": {}, "functions": [{"names": ["MPI_Send"], "params": {"dest": {"alows": []}}}]}"#;
        let error = serde_json::from_str::<Roles>(misspelt).err().expect("refused").to_string();
        assert!(error.contains("unknown field `alows`"), "{error}");
    }

    #[test]
    fn an_open_length_without_an_entry_is_reported() {
        let roles = serde_json::from_str(r#"{"kinds": {}, "functions": []}"#).unwrap();
        let wrong = merge(&mut Table::bare(), &roles);
        assert!(
            wrong
                .iter()
                .any(|what| what.starts_with("MPI_Gatherv, displs: ") && what.contains("leaves its length open")),
            "{wrong:#?}"
        );
    }

    #[test]
    fn every_form_has_the_roles_of_its_operation() {
        let table = Table::load();
        for name in ["MPI_Gather", "MPI_Igather", "MPI_Gather_init"] {
            let function = table.function(name).unwrap();
            let role = |param| &function.param(param).unwrap().role;
            assert!(role("sendbuf").allows("MPI_IN_PLACE"), "{name}");
            assert_eq!(
                (role("recvbuf").count.as_deref(), role("recvbuf").significant_at()),
                (Some("recvcount"), Some("root")),
                "{name}"
            );
            assert!(role("root").allows("MPI_ROOT") && function.collective, "{name}");
        }
        // The Forum's description marks this one as significant at the root only.
        assert_eq!(table.function("MPI_Scatterv_init").unwrap().param("recvbuf").unwrap().role.significant_at(), None);
    }

    #[test]
    fn every_buffer_of_a_communication_is_described() {
        let table = Table::load();
        let chapters = [
            "Point-to-point communication",
            "Partitioned communication",
            "Collective communication",
            "Process topologies",
        ];
        for function in table.functions.iter().filter(|f| chapters.contains(&f.chapter.as_str())) {
            for param in function.params.iter().filter(|p| p.kind == "BUFFER") {
                assert!(param.role.count.is_some(), "{}: the count of {} is not known", function.name, param.name);
            }
        }
    }
}
