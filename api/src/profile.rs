//! Renders the wrappers of the profiler as Rust, for `limosa-profile`: for every exported function one of the same name
//! that calls the next library's function and records what the table knows of the call.
//!
//! Each has an entry that notes where the call came from (`entry!` in `limosa-profile`), and goes on in the wrapper.
//!
//! Arguments only pass through, so their types are reduced to how they are passed: integers of 32 and 64 bits, and
//! words for pointers and handles.

use std::fmt::Write;

use crate::{Arg, Direction, Function, Table};

/// `NAMES`: the wrapped functions by number.
pub fn names(table: &Table) -> String {
    let names: Vec<String> = wrapped(table).map(|(name, _, _)| format!("{name:?}")).collect();
    format!("const NAMES: [&str; {}] = [{}];", names.len(), names.join(", "))
}

/// The wrappers. A wrapper's number is the index of its name in [`names`].
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    for (number, (name, function, large)) in wrapped(table).enumerate() {
        wrapper(table, number, &name, function, large, &mut out);
    }
    out
}

/// The functions that have a wrapper, with their symbols, and whether those are of the form with large counts.
fn wrapped(table: &Table) -> impl Iterator<Item = (String, &Function, bool)> {
    table.symbols().into_iter().filter(|(_, function, _)| is_wrapped(function))
}

/// Left out are functions with variable arguments, which cannot be passed on, and identities between handles and
/// integers, which do nothing.
fn is_wrapped(function: &Function) -> bool {
    let variable = function.params.iter().any(|param| param.kind == "VARARGS");
    !variable && crate::entry::converter(function).is_none()
}

/// How an argument is passed.
pub(crate) fn passed(arg: &Arg) -> &'static str {
    match arg.c_type.as_str() {
        _ if arg.pointer => "usize",
        "int" | "MPI_Fint" | "MPI_T_cb_safety" | "MPI_T_source_order" => "i32",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        _ => "usize",
    }
}

/// How a result is passed.
pub(crate) fn returned(c_type: &str) -> &'static str {
    match c_type {
        "int" | "MPI_Fint" => "i32",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        "double" => "f64",
        "void" => "()",
        _ => "usize",
    }
}

fn wrapper(table: &Table, number: usize, name: &str, function: &Function, large: bool, out: &mut String) {
    let args = table.args(function, large);
    let idents: Vec<String> = args.iter().map(|arg| format!("{}_", arg.param.name.to_lowercase())).collect();
    let typed: Vec<String> = idents.iter().zip(&args).map(|(ident, arg)| format!("{ident}: {}", passed(arg))).collect();
    let types: Vec<&str> = args.iter().map(passed).collect();
    let result = returned(&table.return_type(function));
    let is_code = function.returns == "ERROR_CODE";
    let (record, trace) = match is_code {
        true => (facts(&args, &idents), details(function, &args, &idents)),
        false => ("Facts::NONE".into(), "Details::NONE".into()),
    };
    let (asked, parts) = match parts(function, &args, &idents) {
        Some((asked, parts)) => (asked, format!("|| {parts}")),
        None => (String::new(), "Vec::new".into()),
    };
    let success = if is_code { "result == 0" } else { "true" };
    let after = match function.name.as_str() {
        "MPI_Init" | "MPI_Init_thread" if is_code => "if result == 0 { record::joined(); }",
        _ => "",
    };
    let freed = args.iter().position(|arg| is_group_of_processes(arg) && arg.param.role.frees == Some(true));
    let before = match (function.name.as_str(), freed) {
        ("MPI_Finalize", _) => "record::ending();".into(),
        (_, Some(freed)) => format!("record::forget({}, {});", kind_of_object(&args[freed]), idents[freed]),
        _ => String::new(),
    };
    let received = if is_code { status_of_message(&args) } else { None };
    let own_status = received.map_or(String::new(), |index| {
        let status = &idents[index];
        format!("let mut own = OwnStatus::new();\n    let received = Received({status}, &mut own);\n    let {status} = received.status();")
    });
    let types = types.join(", ");
    let (typed, idents) = (typed.join(", "), idents.join(", "));
    writeln!(
        out,
        r#"
entry!({name}, wrapped_{number});
unsafe extern "C" fn wrapped_{number}({typed}) -> {result} {{
    static NEXT: Next = Next::new(c"{name}");
    // SAFETY: this is the function's type as the standard declares it, reduced to how its arguments are passed.
    let next: unsafe extern "C" fn({types}) -> {result} = unsafe {{ std::mem::transmute(NEXT.address()) }};
    {before}
    {own_status}
    {asked}
    // SAFETY: the arguments are the caller's, but for statuses of ours in place of none.
    let run = || unsafe {{ next({idents}) }};
    let Some(call) = Call::begin() else {{ return run() }};
    let result = run();
    call.end({number}, {success}, || {record}, || {trace}, {parts});
    {after}
    result
}}"#
    )
    .unwrap();
}

/// The status that says how many bytes a call has received or read, if it receives or reads and completes.
fn status_of_received(args: &[Arg]) -> Option<usize> {
    let sends = args.iter().any(|arg| arg.param.role.count.is_some() && arg.param.dir != Direction::Out);
    let receives = args.iter().any(|arg| arg.param.role.count.is_some() && arg.param.dir == Direction::Out);
    let status = args.iter().position(|arg| {
        arg.param.kind == "STATUS" && arg.param.array.is_none() && arg.param.role.allows("MPI_STATUS_IGNORE")
    });
    status.filter(|_| receives && !sends)
}

/// The status that says from where a message has come, which a call has received or found.
fn status_of_message(args: &[Arg]) -> Option<usize> {
    let has_source = args.iter().any(|arg| arg.param.role.rank_of.as_deref() == Some("source"));
    let completes = args.iter().all(|arg| arg.param.kind != "REQUEST" && arg.param.kind != "LOGICAL");
    let status = args.iter().position(|arg| arg.param.kind == "STATUS" && arg.param.array.is_none());
    status.filter(|_| has_source && (completes || found_message(args).is_some())).or(status_of_received(args))
}

/// The message that a call has found and that no other call can receive.
fn found_message(args: &[Arg]) -> Option<usize> {
    args.iter().position(|arg| arg.param.kind == "MESSAGE" && arg.param.dir == Direction::Out)
}

/// For a call that starts or completes several requests, or receives a message of MPI_Mprobe: the code that notes them
/// before the call, and an expression for its parts.
fn parts(function: &Function, args: &[Arg], idents: &[String]) -> Option<(String, String)> {
    let of = |name: &str| args.iter().position(|arg| arg.param.name == name).map_or("", |index| &idents[index]);
    let kind = |kind: &str| args.iter().position(|arg| arg.param.kind == kind).map_or("", |index| &idents[index]);
    let (handles, status) = (kind("REQUEST"), kind("STATUS"));
    let count = match kind("ARRAY_LENGTH_NNI") {
        "" => "1",
        count => count,
    };
    let parts = match function.name.as_str() {
        "MPI_Wait" | "MPI_Waitall" => "asked.all()".into(),
        "MPI_Test" | "MPI_Testall" => {
            format!("if number_at({}) != 0 {{ asked.all() }} else {{ Vec::new() }}", of("flag"))
        }
        "MPI_Waitany" | "MPI_Testany" => format!("asked.one(number_at({}))", of("index")),
        "MPI_Waitsome" | "MPI_Testsome" => {
            format!("asked.some(number_at({}), {})", of("outcount"), of("array_of_indices"))
        }
        "MPI_Startall" => {
            return Some((format!("let asked = Asked::handles({count}, {handles});"), "asked.all()".into()));
        }
        "MPI_Mrecv" | "MPI_Imrecv" => {
            return Some((format!("let asked = Asked::handles(1, {});", kind("MESSAGE")), "asked.all()".into()));
        }
        _ => return None,
    };
    // Some of these have one status for all of their requests.
    let room = if function.name.ends_with("any") { format!("{count}.min(1)") } else { count.into() };
    let asked = format!(
        "let asked = Asked::completing({count}, {handles}, {room}, {status});\n    let {status} = asked.statuses({status});"
    );
    Some((asked, parts))
}

/// The number by which the kind of an object goes.
fn kind_of_object(arg: &Arg) -> u32 {
    match arg.param.kind.as_str() {
        "COMMUNICATOR" => 1,
        "WINDOW" => 2,
        _ => 3,
    }
}

fn is_group_of_processes(arg: &Arg) -> bool {
    matches!(arg.param.kind.as_str(), "COMMUNICATOR" | "WINDOW")
}

/// An expression for what is recorded of a successful call: bytes, peer, and the object that it is about.
fn facts(args: &[Arg], idents: &[String]) -> String {
    let at = |name: &str| args.iter().position(|arg| arg.param.name == name);
    let object = args
        .iter()
        .position(|arg| matches!(arg.param.kind.as_str(), "COMMUNICATOR" | "WINDOW" | "FILE") && !arg.pointer);
    let object_kind = object
        .map_or("Object::NONE".into(), |index| format!("Object({}, {})", kind_of_object(&args[index]), idents[index]));
    let peer = rank(args, idents, &["destination", "target"]).unwrap_or("-1");
    let bytes = match status_of_received(args) {
        Some(_) => "received.bytes()".into(),
        None => amount(args, idents, &at).unwrap_or("0".into()),
    };
    format!("Facts {{ bytes: {bytes}, peer: {peer}, object: {object_kind} }}")
}

/// The argument that is a rank with one of these meanings.
fn rank<'a>(args: &[Arg], idents: &'a [String], meanings: &[&str]) -> Option<&'a str> {
    let is_meant = |arg: &Arg| arg.param.role.rank_of.as_deref().is_some_and(|of| meanings.contains(&of));
    args.iter().position(is_meant).map(|index| idents[index].as_str())
}

/// An expression for what is recorded beside that where calls are recorded one by one.
fn details(function: &Function, args: &[Arg], idents: &[String]) -> String {
    let tag = |names: [&str; 2]| {
        let at = names.iter().find_map(|name| args.iter().position(|arg| arg.param.name == *name));
        at.map_or("-1", |index| idents[index].as_str())
    };
    let sends = rank(args, idents, &["destination"]).is_some();
    let sent = if sends { tag(["sendtag", "tag"]) } else { "-1" };
    let (source, received) = match rank(args, idents, &["source"]) {
        Some(_) if status_of_message(args).is_some() => ("received.source()", "received.tag()"),
        Some(source) => (source, tag(["recvtag", "tag"])),
        None => ("-1", "-1"),
    };
    // One that is not completed is the same as before.
    let is_said =
        |arg: &Arg| arg.param.dir == Direction::Out || ["MPI_Start", "MPI_Test"].contains(&function.name.as_str());
    let request = args.iter().position(|arg| arg.param.kind == "REQUEST" && arg.param.array.is_none() && is_said(arg));
    let request = request.or(found_message(args)).map_or("0", |index| &idents[index]);
    let details = format!("Details {{ tag: {sent}, source: {source}, received_tag: {received}, request: {request} }}");
    match args.iter().position(|arg| arg.param.kind == "LOGICAL").filter(|_| found_message(args).is_some()) {
        Some(flag) => format!("if number_at({}) != 0 {{ {details} }} else {{ Details::NONE }}", idents[flag]),
        None => details,
    }
}

/// An expression for the bytes of the call's first buffer that is significant at every process, one that is sent if
/// there is any: of a receive it is what was asked for.
fn amount(args: &[Arg], idents: &[String], at: &dyn Fn(&str) -> Option<usize>) -> Option<String> {
    let is_buffer = |arg: &&Arg| {
        let role = &arg.param.role;
        role.count.is_some() && role.datatype.is_some() && role.significant_at().is_none()
    };
    let sent = args.iter().filter(is_buffer).find(|arg| arg.param.dir != Direction::Out);
    let buffer = sent.or_else(|| args.iter().find(is_buffer))?;
    let role = &buffer.param.role;
    let (count, datatype) = (at(role.count.as_ref()?)?, at(role.datatype.as_ref()?)?);
    if args[datatype].pointer || args[datatype].param.role.significant_at().is_some() {
        return None;
    }
    let address = &idents[at(&buffer.param.name)?];
    // With MPI_IN_PLACE a count of this buffer alone means nothing.
    let shared = args.iter().filter(|arg| arg.param.role.count == role.count).count() > 1;
    let present = if shared { "true".into() } else { format!("{address} != IN_PLACE") };
    let datatype = &idents[datatype];
    if args[count].pointer {
        let comm = args.iter().position(|arg| arg.param.kind == "COMMUNICATOR" && !arg.pointer)?;
        if role.blocks.as_deref() != Some("group_size") {
            return None;
        }
        let wide = args[count].c_type != "int";
        let (counts, comm) = (&idents[count], &idents[comm]);
        return Some(format!("bytes_of_blocks({present}, {counts}, {wide}, {datatype}, {comm})"));
    }
    let times = at("partitions").map_or(String::new(), |index| format!(" * i64::from({})", idents[index]));
    Some(format!("bytes_of({present}, {} as i64{times}, {datatype})", idents[count]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_wrapped_but_identities_and_variable_arguments() {
        let table = Table::load();
        let text = render(&table);
        for (name, function, _) in table.symbols() {
            assert_eq!(text.contains(&format!("entry!({name},")), is_wrapped(function), "{name}");
        }
        assert!(!is_wrapped(table.function("MPI_Pcontrol").unwrap()));
        assert!(!is_wrapped(table.function("MPI_Comm_toint").unwrap()));
    }

    #[test]
    fn what_is_recorded_follows_from_the_roles() {
        let table = Table::load();
        let of = |name: &str, large: bool| {
            let function = table.function(name).unwrap();
            let args = table.args(function, large);
            let idents: Vec<String> = args.iter().map(|arg| arg.param.name.clone()).collect();
            facts(&args, &idents)
        };
        assert_eq!(
            of("MPI_Send", false),
            "Facts { bytes: bytes_of(buf != IN_PLACE, count as i64, datatype), peer: dest, object: Object(1, comm) }"
        );
        // The receive buffer is significant at the root only; sent is what counts.
        assert!(of("MPI_Gather", false).contains("bytes_of(sendbuf != IN_PLACE, sendcount as i64, sendtype)"));
        assert!(of("MPI_Scatter", false).contains("recvcount as i64, recvtype"));
        // One count for both buffers holds with MPI_IN_PLACE, too.
        assert!(of("MPI_Allreduce", true).contains("bytes_of(true, count as i64, datatype)"));
        assert!(
            of("MPI_Alltoallv", false).contains("bytes_of_blocks(sendbuf != IN_PLACE, sendcounts, false, sendtype")
        );
        assert!(of("MPI_Alltoallv", true).contains("sendcounts, true, sendtype"));
        assert!(of("MPI_Put", false).contains("peer: target_rank, object: Object(2, win)"));
        assert_eq!(of("MPI_Barrier", false), "Facts { bytes: 0, peer: -1, object: Object(1, comm) }");
        assert!(of("MPI_Recv", false).contains("bytes: received.bytes()"));
        assert!(of("MPI_File_read_at", true).contains("bytes: received.bytes()"));
        assert!(of("MPI_Sendrecv", false).contains("sendcount as i64, sendtype), peer: dest"));
        assert!(of("MPI_Wait", false).contains("object: Object::NONE"));
    }

    #[test]
    fn messages_can_be_matched_by_what_is_traced() {
        let table = Table::load();
        let of = |name: &str| {
            let function = table.function(name).unwrap();
            let args = table.args(function, false);
            let idents: Vec<String> = args.iter().map(|arg| arg.param.name.clone()).collect();
            (details(function, &args, &idents), parts(function, &args, &idents).unwrap_or_default().1)
        };
        let from_status = "source: received.source(), received_tag: received.tag()";
        for name in ["MPI_Recv", "MPI_Mprobe", "MPI_Sendrecv"] {
            assert!(of(name).0.contains(from_status), "{name}");
        }
        assert!(of("MPI_Sendrecv").0.contains("tag: sendtag"));
        assert_eq!(of("MPI_Send").0, "Details { tag: tag, source: -1, received_tag: -1, request: 0 }");
        assert_eq!(of("MPI_Irecv").0, "Details { tag: -1, source: source, received_tag: tag, request: request }");
        assert!(of("MPI_Improbe").0.starts_with("if number_at(flag) != 0"));
        assert!(of("MPI_Improbe").0.contains(from_status) && of("MPI_Improbe").0.contains("request: message"));
        assert!(of("MPI_Iprobe").0.contains("source: source"));
        for name in ["MPI_Start", "MPI_Test", "MPI_Send_init", "MPI_Ibarrier", "MPI_Barrier_init", "MPI_Imrecv"] {
            assert!(of(name).0.contains("request: request"), "{name}");
        }
        assert!(of("MPI_Wait").0.contains("request: 0"));
        for (name, parts) in [
            ("MPI_Wait", "asked.all()"),
            ("MPI_Waitany", "asked.one(number_at(index))"),
            ("MPI_Waitsome", "asked.some(number_at(outcount), array_of_indices)"),
            ("MPI_Test", "if number_at(flag) != 0 { asked.all() } else { Vec::new() }"),
            ("MPI_Testany", "asked.one(number_at(index))"),
            ("MPI_Startall", "asked.all()"),
            ("MPI_Mrecv", "asked.all()"),
            ("MPI_Start", ""),
            ("MPI_Request_get_status", ""),
        ] {
            assert_eq!(of(name).1, parts, "{name}");
        }
    }
}
