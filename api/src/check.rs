//! Renders the wrappers of the checker as Rust, for `limosa-check`: for every function that communicates, makes,
//! completes or frees something, one of the same name that passes what the table knows of the call to the checker's
//! function for calls of that sort.
//!
//! The large-count functions have the names of their twins in what the checker says.

use std::fmt::Write;

use crate::profile::{passed, returned};
use crate::roles::Form;
use crate::{Arg, Direction, Function, Table, Value};

/// Kinds of objects that must be freed, in words.
const OBJECTS: [(&str, &str); 7] = [
    ("COMMUNICATOR", "communicator"),
    ("DATATYPE", "datatype"),
    ("WINDOW", "window"),
    ("GROUP", "group"),
    ("OPERATION", "reduction operation"),
    ("INFO", "info object"),
    ("ERRHANDLER", "error handler"),
];

/// Functions that give a handle which need not be freed, or of an object that exists already.
const BORROWED: [&str; 9] = [
    "MPI_Comm_get_parent",
    "MPI_File_get_view",
    "MPI_Type_commit",
    "MPI_Type_create_f90_complex",
    "MPI_Type_create_f90_integer",
    "MPI_Type_create_f90_real",
    "MPI_Type_get_contents",
    "MPI_Type_get_value_index",
    "MPI_Type_match_size",
];

/// Functions that make a communicator, called by all members of the one that they are given.
const OF_PARENT: [&str; 11] = [
    "MPI_Cart_create",
    "MPI_Cart_sub",
    "MPI_Comm_create",
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Dist_graph_create",
    "MPI_Dist_graph_create_adjacent",
    "MPI_Graph_create",
    "MPI_Intercomm_merge",
];

/// Renders the names of the functions that all ranks of a communicator call together, and the predefined datatypes and
/// operations with their handles.
pub fn names(table: &Table) -> String {
    let mut out = String::new();
    let together: Vec<&Function> = table.functions.iter().filter(|f| is_together(f)).collect();
    let names: Vec<String> = together.iter().map(|f| format!("{:?}", f.name)).collect();
    let blocking: Vec<String> = together.iter().map(|f| (f.form() == Form::Blocking).to_string()).collect();
    writeln!(out, "pub(crate) const NAMES: [&str; {}] = [{}];", names.len(), names.join(", ")).unwrap();
    writeln!(out, "pub(crate) const IS_BLOCKING: [bool; {}] = [{}];", names.len(), blocking.join(", ")).unwrap();
    for (name, c_type) in [("DATATYPES", "MPI_Datatype"), ("OPERATIONS", "MPI_Op")] {
        let all: Vec<String> = table
            .constants
            .iter()
            .filter(|constant| constant.c_type.as_deref() == Some(c_type))
            .filter_map(|constant| match constant.value {
                Value::Int(handle) => Some(format!("({:?}, {handle})", constant.name)),
                _ => None,
            })
            .collect();
        writeln!(out, "pub(crate) const {name}: [(&str, usize); {}] = [{}];", all.len(), all.join(", ")).unwrap();
    }
    out
}

/// Renders the wrappers.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    for (number, (name, function, large)) in table.symbols().into_iter().enumerate() {
        if function.returns == "ERROR_CODE" {
            wrapper(table, number, &name, function, large, &mut out);
        }
    }
    out
}

fn is_together(function: &Function) -> bool {
    function.collective || OF_PARENT.contains(&function.name.as_str())
}

/// A function's arguments, and the words by which they are called here.
struct Call<'a> {
    table: &'a Table,
    function: &'a Function,
    args: Vec<Arg<'a>>,
    idents: Vec<String>,
}

fn wrapper(table: &Table, number: usize, name: &str, function: &Function, large: bool, out: &mut String) {
    let args = table.args(function, large);
    let idents: Vec<String> = args.iter().map(|arg| format!("{}_", arg.param.name.to_lowercase())).collect();
    let call = Call { table, function, args, idents };
    let Some(body) = call.body() else { return };
    let types: Vec<&str> = call.args.iter().map(passed).collect();
    let typed: Vec<String> = call.idents.iter().zip(&types).map(|(ident, kind)| format!("{ident}: {kind}")).collect();
    let result = returned(&table.return_type(function));
    let (types, typed, idents) = (types.join(", "), typed.join(", "), call.idents.join(", "));
    let status = call.status().unwrap_or_else(|| "_status".into());
    let run = match body.contains("with_status") {
        true => format!("let with_status = |{status}: usize|"),
        false => "let run = ||".into(),
    };
    writeln!(
        out,
        r#"
entry!({name}, wrapped_{number});
unsafe extern "C" fn wrapped_{number}({typed}) -> {result} {{
    static NEXT: Next = Next::new(c"{name}");
    // SAFETY: this is the function's type as the standard declares it, reduced to how its arguments are passed.
    let next: unsafe extern "C" fn({types}) -> {result} = unsafe {{ std::mem::transmute(NEXT.address()) }};
    // SAFETY: the arguments are the caller's, but for a status of ours in place of none.
    {run} unsafe {{ next({idents}) }};
    {body}
}}"#
    )
    .unwrap();
}

impl Call<'_> {
    fn name(&self) -> &str {
        &self.function.name
    }

    /// The word for the argument of that name.
    fn named(&self, name: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg.param.name == name)?;
        Some(&self.idents[at])
    }

    /// The words for the arguments of a kind, with their directions.
    fn of_kind(&self, kind: &str, is_meant: impl Fn(&Arg) -> bool) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg.param.kind == kind && is_meant(arg))?;
        Some(&self.idents[at])
    }

    fn status(&self) -> Option<String> {
        self.of_kind("STATUS", |arg| arg.param.dir == Direction::Out).map(str::to_owned)
    }

    /// What the wrapper does, if the function has one.
    fn body(&self) -> Option<String> {
        let variable = self.args.iter().any(|arg| arg.param.kind == "VARARGS");
        if variable || self.name().starts_with("MPI_T_") || self.name().starts_with("MPI_Abi_") {
            return None;
        }
        self.special()
            .or_else(|| self.free())
            .or_else(|| self.function.collective.then(|| self.collective()))
            .or_else(|| self.make_comm())
            .or_else(|| self.message())
            .or_else(|| self.make())
    }

    fn special(&self) -> Option<String> {
        let word = |name: &str| self.named(name).unwrap_or("0");
        let requests = format!("{}, {}", word("count"), word("array_of_requests"));
        let some = format!("{}, {}", word("incount"), word("array_of_requests"));
        let one = format!("1, {}", word("request"));
        let status = self.status().unwrap_or_default();
        let complete = |waits: bool, requests: &str, ended: &str| {
            let safety = "// SAFETY: the call has succeeded, and written its results.\n    ";
            format!("{safety}calls::complete({waits}, {requests}, {status}, with_status, || unsafe {{ {ended} }})")
        };
        let int = |name: &str| format!("*({} as *const i32)", word(name));
        let flag = format!("{} != 0", int("flag"));
        let of_some = format!("Completed::Some({}, {})", int("outcount"), word("array_of_indices"));
        Some(match self.name() {
            "MPI_Init" | "MPI_Init_thread" => "calls::init(run)".into(),
            "MPI_Finalize" => "calls::finalize(run)".into(),
            "MPI_Session_init" => "calls::session(run)".into(),
            "MPI_Wait" => format!("calls::complete(true, {one}, {status}, with_status, || Completed::All(true))"),
            "MPI_Waitall" => {
                format!("calls::complete(true, {requests}, {status}, with_status, || Completed::All(true))")
            }
            "MPI_Test" => complete(false, &one, &format!("Completed::All({flag})")),
            "MPI_Testall" => complete(false, &requests, &format!("Completed::All({flag})")),
            "MPI_Waitany" => complete(false, &requests, &format!("Completed::One({})", int("index"))),
            "MPI_Testany" => {
                complete(false, &requests, &format!("Completed::One(if {flag} {{ {} }} else {{ -1 }})", int("index")))
            }
            "MPI_Waitsome" | "MPI_Testsome" => complete(false, &some, &of_some),
            "MPI_Start" => format!("calls::start({one}, run)"),
            "MPI_Startall" => format!("calls::start({requests}, run)"),
            "MPI_Request_free" => format!("calls::free_request({}, run)", word("request")),
            "MPI_Cancel" => format!("calls::cancel({}, run)", word("request")),
            "MPI_Mprobe" | "MPI_Improbe" => {
                let found = if self.name() == "MPI_Mprobe" { "true" } else { &flag };
                let (comm, message) = (word("comm"), word("message"));
                let safety = "// SAFETY: the call has succeeded, and written its results.\n    ";
                let found = if found == "true" { "|| true".into() } else { format!("|| unsafe {{ {found} }}") };
                let safety = if found.contains("unsafe") { safety } else { "" };
                format!("{safety}calls::find({comm}, {message}, {status}, with_status, {found})")
            }
            "MPI_Mrecv" | "MPI_Imrecv" => {
                let (message, count, datatype) = (word("message"), word("count"), word("datatype"));
                let begins = self.begins();
                let next = if status.is_empty() { "run".into() } else { format!("|| with_status({status})") };
                let (name, buffer) = (self.name(), format!("({count} as i64, {datatype})"));
                format!("calls::receive_found({name:?}, {message}, {buffer}, {begins}, {next})")
            }
            _ => return None,
        })
    }

    fn begins(&self) -> String {
        let request = self.of_kind("REQUEST", |arg| arg.param.dir == Direction::Out && arg.param.array.is_none());
        match request {
            Some(request) if self.name().ends_with("_init") => format!("Begins::Persistent({request})"),
            Some(request) => format!("Begins::Request({request})"),
            None => "Begins::Nothing".into(),
        }
    }

    fn free(&self) -> Option<String> {
        OBJECTS.iter().find_map(|(kind, word)| {
            let freed = self.of_kind(kind, |arg| arg.param.role.frees == Some(true))?;
            Some(format!("calls::free({word:?}, {freed}, run)"))
        })
    }

    /// The argument that is a rank with this meaning.
    fn rank(&self, meaning: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg.param.role.rank_of.as_deref() == Some(meaning))?;
        Some(&self.idents[at])
    }

    fn place(&self) -> usize {
        let together = self.table.functions.iter().filter(|f| is_together(f));
        together.map(|f| &f.name).position(|name| *name == self.function.name).expect("the function is one of these")
    }

    fn collective(&self) -> String {
        let (mut blocks, mut each) = (Vec::new(), Vec::new());
        let buffers =
            self.args.iter().filter(|arg| arg.param.role.count.is_some() && arg.param.role.datatype.is_some());
        for buffer in buffers.filter(|_| !self.function.operation().contains("Neighbor")) {
            let role = &buffer.param.role;
            let arg = |name: &Option<String>| self.args.iter().find(|arg| Some(&arg.param.name) == name.as_ref());
            let (Some(count), Some(datatype)) = (arg(&role.count), arg(&role.datatype)) else { continue };
            if datatype.pointer {
                continue;
            }
            let word = |arg: &Arg| self.named(&arg.param.name).unwrap_or_default().to_owned();
            let (address, of, root) = (word(buffer), word(datatype), role.significant_at().is_some());
            let fields = format!("address: {address}, datatype: {of}, only_at_root: {root}");
            match count.pointer {
                true => each.push(format!(
                    "Blocks {{ counts: {}, wide: {}, {fields} }}",
                    word(count),
                    count.c_type != "int"
                )),
                false => blocks.push(format!("Some(Block {{ count: {} as i64, {fields} }})", word(count))),
            }
        }
        // Blocks of different lengths are compared where each other rank has but one.
        let each = if each.len() == 1 && blocks.len() == 1 { format!("Some({})", each[0]) } else { "None".into() };
        blocks.resize(2, "None".into());
        let option = |word: Option<&str>| word.map_or("None".into(), |word| format!("Some({word})"));
        let (root, op) = (option(self.rank("root")), option(self.of_kind("OPERATION", |_| true)));
        let comm = self.of_kind("COMMUNICATOR", |_| true).unwrap_or("0");
        let (place, blocks, begins) = (self.place(), blocks.join(", "), self.begins());
        let what = format!("function: {place}, comm: {comm}, root: {root}, op: {op}, blocks: [{blocks}], each: {each}");
        format!("collective::call(&Collective {{ {what} }}, {begins}, run)")
    }

    fn make_comm(&self) -> Option<String> {
        if BORROWED.contains(&self.name()) {
            return None;
        }
        let new = self.of_kind("COMMUNICATOR", |arg| arg.param.dir == Direction::Out)?;
        let is_begun = self.name().starts_with("MPI_Comm_idup");
        let parent = self.of_kind("COMMUNICATOR", |arg| arg.param.dir == Direction::In);
        let is_of_parent = OF_PARENT.contains(&self.name());
        let parent = parent.filter(|_| is_of_parent || is_begun).unwrap_or("0");
        let (name, place, begins) = (self.name(), if is_of_parent { self.place() } else { 0 }, self.begins());
        Some(format!("calls::make_comm({name:?}, {place}, {parent}, {is_begun}, {new}, {begins}, run)"))
    }

    fn message(&self) -> Option<String> {
        let buffers = |is_meant: &dyn Fn(&Arg) -> bool| {
            self.args.iter().find(|arg| arg.param.role.count.is_some() && is_meant(arg)).map(|arg| &arg.param.role)
        };
        let part = |rank: Option<&str>, tag: &str, role: Option<&crate::roles::Role>| {
            let (peer, role) = (rank?, role?);
            let tag = self.named(tag).or(self.named("tag"))?;
            let (count, datatype) = (self.named(role.count.as_ref()?)?, self.named(role.datatype.as_ref()?)?);
            Some(format!("Some(Part {{ peer: {peer}, tag: {tag}, count: {count} as i64, datatype: {datatype} }})"))
        };
        let sent = part(self.rank("destination"), "sendtag", buffers(&|arg| arg.param.dir != Direction::Out));
        let received = part(self.rank("source"), "recvtag", buffers(&|arg| arg.param.dir != Direction::In));
        if (sent.is_none() && received.is_none()) || self.named("partitions").is_some() {
            return None;
        }
        let none = || "None".to_owned();
        let (sent, received) = (sent.unwrap_or_else(none), received.unwrap_or_else(none));
        let comm = self.of_kind("COMMUNICATOR", |_| true)?;
        let (name, begins, status) = (self.name(), self.begins(), self.status().unwrap_or("0".into()));
        Some(format!("calls::message({name:?}, {comm}, {sent}, {received}, {begins}, {status}, with_status)"))
    }

    fn make(&self) -> Option<String> {
        if BORROWED.contains(&self.name()) {
            return None;
        }
        let is_new = |arg: &Arg| arg.param.dir == Direction::Out && arg.param.array.is_none();
        let made = OBJECTS.iter().find_map(|(kind, word)| Some((*word, self.of_kind(kind, is_new)?)));
        let begins = self.begins();
        if made.is_none() && begins == "Begins::Nothing" {
            return None;
        }
        let (kind, object) = made.unwrap_or(("", "0"));
        let name = self.name();
        Some(format!("calls::make({name:?}, {kind:?}, {object}, {begins}, run)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(name: &str) -> Option<String> {
        let table = Table::load();
        let function = table.function(name).unwrap();
        let args = table.args(function, false);
        let idents = args.iter().map(|arg| arg.param.name.to_lowercase()).collect();
        Call { table: &table, function, args, idents }.body()
    }

    #[test]
    fn calls_go_where_their_roles_say() {
        let has = |name: &str, part: &str| assert!(body(name).unwrap().contains(part), "{name}: {:?}", body(name));
        has(
            "MPI_Send",
            "Some(Part { peer: dest, tag: tag, count: count as i64, datatype: datatype }), None, Begins::Noth",
        );
        has(
            "MPI_Irecv",
            "None, Some(Part { peer: source, tag: tag, count: count as i64, datatype: datatype }), Begins::R",
        );
        has("MPI_Sendrecv", "Some(Part { peer: dest, tag: sendtag, count: sendcount as i64, datatype: sendtype })");
        has(
            "MPI_Sendrecv_replace",
            "Some(Part { peer: source, tag: recvtag, count: count as i64, datatype: datatype })",
        );
        has("MPI_Recv_init", "Begins::Persistent(request)");
        has("MPI_Bcast", "root: Some(root), op: None, blocks: [Some(Block { count: count as i64, address: buffer");
        has("MPI_Gather", "address: recvbuf, datatype: recvtype, only_at_root: true })], each: None");
        has("MPI_Gatherv", "each: Some(Blocks { counts: recvcounts, wide: false, address: recvbuf");
        has("MPI_Ireduce", "op: Some(op)");
        has("MPI_Neighbor_alltoall", "blocks: [None, None]");
        has("MPI_Comm_split", ", comm, false, newcomm, Begins::Nothing, run)");
        has("MPI_Comm_create_group", ", 0, false, newcomm, Begins::Nothing, run)");
        has("MPI_Comm_idup", ", comm, true, newcomm, Begins::Request(request), run)");
        has("MPI_Type_vector", "calls::make(\"MPI_Type_vector\", \"datatype\", newtype");
        has("MPI_Psend_init", "calls::make(\"MPI_Psend_init\", \"\", 0, Begins::Persistent(request)");
        has("MPI_Win_free", "calls::free(\"window\", win, run)");
        for name in ["MPI_Comm_rank", "MPI_Iprobe", "MPI_Put", "MPI_Comm_get_parent", "MPI_Type_commit", "MPI_Pcontrol"]
        {
            assert_eq!(body(name), None, "{name}");
        }
    }
}
