//! The C functions behind the subroutines.
//!
//! `fortran/library.c` includes `fortran_calls.h` twice: for the names of MPI and for those of the profiling interface.
//! The macros that it uses are defined there.

use std::fmt::Write;

use super::descriptors::described;
use super::{Dummy, Routine, Type, large_routines, routines};
use crate::roles::Form;
use crate::{Arg, Array, Direction, Function, Table};

/// The text of `fortran_calls.h`.
pub fn render(table: &Table) -> String {
    let mut out =
        String::from("/* C functions behind the subroutines of Fortran. Generated from api/mpi5.json. */\n\n");
    for routine in routines(table).iter().chain(&large_routines(table)) {
        if !routine.is_by_hand() {
            plain(table, routine, false, &mut out);
            if routine.dummies.iter().any(|dummy| dummy.ty == Type::UnusedPointer) {
                plain(table, routine, true, &mut out);
                continue;
            }
            if routine.dummies.iter().any(|dummy| dummy.ty == Type::Pointer) && !routine.large {
                alias(routine, "_cptr", &mut out);
            }
        }
        match routine.has_choice() {
            true => described(routine, &mut out),
            false => alias(routine, "_f08", &mut out),
        }
    }
    out
}

fn alias(routine: &Routine, suffix: &str, out: &mut String) {
    writeln!(out, "ALIAS({0}{suffix}_, {0}_)\n", routine.symbol()).unwrap();
}

/// Declaration of an argument of the C function.
pub(super) fn declared(dummy: &Dummy) -> String {
    let c_type = match &dummy.ty {
        Type::Integer | Type::Logical | Type::Handle(_) | Type::Status | Type::OldStatus => "MPI_Fint",
        Type::Address => "MPI_Aint",
        Type::Count => "MPI_Count",
        Type::Offset => "MPI_Offset",
        Type::Text => "char",
        Type::Double => "double",
        Type::Choice | Type::Pointer | Type::UnusedPointer => "void",
        Type::Procedure(_) => "function",
    };
    format!("{c_type} *{}", dummy.name())
}

pub(super) fn head(routine: &Routine, suffix: &str, argument: impl Fn(&Dummy) -> String, lengths: bool) -> String {
    let mut arguments: Vec<String> = routine.dummies.iter().map(argument).collect();
    if !routine.is_without_error() {
        arguments.push("MPI_Fint *ierror".into());
    }
    if lengths {
        let text = routine.dummies.iter().filter(|dummy| dummy.ty == Type::Text);
        arguments.extend(text.map(|dummy| format!("size_t {}_length", dummy.name())));
    }
    let result = match &routine.result {
        Some(Type::Double) => "double",
        Some(_) => "MPI_Aint",
        None => "void",
    };
    let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
    format!("{result} NAME({}{suffix}_)({arguments})", routine.symbol())
}

/// Prefix of the functions that convert handles of a C type.
fn converter(c_type: &str) -> &str {
    if c_type == "MPI_Datatype" { "MPI_Type" } else { c_type }
}

/// The C expression for the length of an array argument.
fn length(table: &Table, function: &Function, dummy: &Dummy) -> String {
    let named = |name: &str| function.params.iter().any(|p| p.name == name).then(|| format!("*{name}"));
    let communicator = function.params.iter().find(|p| p.kind == "COMMUNICATOR").map_or("", |p| &p.name);
    let word = match (&dummy.param.role.length, &dummy.param.array) {
        (Some(word), _) => word.as_str(),
        (None, Some(Array::Length(word))) => word.as_str(),
        _ => panic!("{}: {} has no length", function.name, dummy.name()),
    };
    let length = named(word).unwrap_or_else(|| format!("limosa_{word}(*{communicator})"));
    // The datatypes of a buffer that is MPI_IN_PLACE are not read.
    let args: Vec<Arg> = table.args(function, false);
    let buffer = args
        .iter()
        .find(|arg| arg.param.role.datatype.as_deref() == Some(dummy.name()) && arg.param.role.allows("MPI_IN_PLACE"));
    buffer.map_or(length.clone(), |arg| format!("limosa_is_in_place({}) ? 0 : {length}", arg.param.name))
}

/// What a C function does before, in and after the call of MPI.
#[derive(Default)]
struct Body {
    before: String,
    arguments: Vec<String>,
    /// After a call that has succeeded.
    results: String,
    /// After each call.
    after: String,
}

impl Body {
    /// Adds an argument of the call with its conversions.
    fn add(&mut self, table: &Table, function: &Function, dummy: &Dummy, is_f08: bool) {
        let (x, dir) = (dummy.name(), dummy.param.dir);
        let value = match &dummy.ty {
            Type::Handle(c_type) if dummy.is_array() => self.handles(table, function, dummy, c_type),
            Type::Handle(c_type) => self.handle(dummy, c_type),
            Type::Logical => self.logical(table, function, dummy),
            Type::Text => self.text(function, dummy),
            Type::Choice => format!("limosa_address({x})"),
            Type::Status if dir == Direction::Out && dummy.is_array() => format!("limosa_statuses({x})"),
            Type::Status if dir == Direction::Out => format!("limosa_status({x})"),
            Type::Status | Type::OldStatus => format!("(MPI_Status *){x}"),
            Type::UnusedPointer if !is_f08 => {
                writeln!(self.before, "    void *unused_;\n    (void){x};").unwrap();
                "&unused_".into()
            }
            Type::Integer if dummy.param.kind == "INDEX" && dir == Direction::Out => self.index(dummy),
            _ if matches!(dummy.param.array, Some(Array::Matrix(_))) => format!("(void *){x}"),
            _ if dummy.param.kind == "WEIGHT" => format!("limosa_weights({x})"),
            _ if dummy.pointer || matches!(dummy.ty, Type::Pointer | Type::UnusedPointer) => x.into(),
            _ => format!("*{x}"),
        };
        self.arguments.push(value);
    }

    fn handle(&mut self, dummy: &Dummy, c_type: &str) -> String {
        let (x, prefix) = (dummy.name(), converter(c_type));
        match dummy.param.dir {
            Direction::In if !dummy.pointer => return format!("P{prefix}_fromint(*{x})"),
            Direction::Out => {
                writeln!(self.before, "    {c_type} c_{x};").unwrap();
                writeln!(self.results, "        *{x} = P{prefix}_toint(c_{x});").unwrap();
            }
            _ => {
                writeln!(self.before, "    {c_type} c_{x} = P{prefix}_fromint(*{x});").unwrap();
                writeln!(self.after, "    *{x} = P{prefix}_toint(c_{x});").unwrap();
            }
        }
        format!("&c_{x}")
    }

    fn handles(&mut self, table: &Table, function: &Function, dummy: &Dummy, c_type: &str) -> String {
        let (x, dir, prefix) = (dummy.name(), dummy.param.dir, converter(c_type));
        let n = length(table, function, dummy);
        writeln!(self.before, "    HANDLES({c_type}, {x}, {n})").unwrap();
        if dir != Direction::Out {
            writeln!(self.before, "    HANDLES_IN({prefix}, {x})").unwrap();
        }
        match dir {
            Direction::In => {}
            Direction::Out => writeln!(self.results, "        HANDLES_OUT({prefix}, {x})").unwrap(),
            Direction::Inout => writeln!(self.after, "    HANDLES_OUT({prefix}, {x})").unwrap(),
        }
        if dir == Direction::In && function.form() != Form::Blocking {
            writeln!(self.before, "    HANDLES_KEEP({x})").unwrap();
        } else {
            writeln!(self.after, "    HANDLES_END({x})").unwrap();
        }
        format!("c_{x}")
    }

    fn logical(&mut self, table: &Table, function: &Function, dummy: &Dummy) -> String {
        let x = dummy.name();
        if dummy.is_array() {
            let n = length(table, function, dummy);
            writeln!(self.before, "    LOGICALS({x}, {n})").unwrap();
            match dummy.param.dir {
                Direction::Out => writeln!(self.results, "        LOGICALS_OUT({x})").unwrap(),
                _ => writeln!(self.before, "    LOGICALS_IN({x})").unwrap(),
            }
            writeln!(self.after, "    HANDLES_END({x})").unwrap();
            return format!("c_{x}");
        }
        if !dummy.pointer {
            return format!("*{x} != 0");
        }
        writeln!(self.before, "    int c_{x} = 0;").unwrap();
        writeln!(self.results, "        *{x} = c_{x} != 0;").unwrap();
        format!("&c_{x}")
    }

    fn text(&mut self, function: &Function, dummy: &Dummy) -> String {
        let x = dummy.name();
        if dummy.param.dir == Direction::In {
            let trim = if function.name.starts_with("MPI_Info_") { "limosa_trimmed" } else { "limosa_text" };
            writeln!(self.before, "    char *c_{x} = {trim}({x}, {x}_length);").unwrap();
        } else {
            writeln!(self.before, "    char *c_{x} = limosa_text_space({x}_length);").unwrap();
            writeln!(self.results, "        limosa_padded(c_{x}, {x}, {x}_length);").unwrap();
        }
        writeln!(self.after, "    free(c_{x});").unwrap();
        format!("c_{x}")
    }

    /// Requests are counted from 1 in Fortran. The result of `MPI_Graph_get` is no position.
    fn index(&mut self, dummy: &Dummy) -> String {
        let x = dummy.name();
        if x == "array_of_indices" {
            writeln!(self.results, "        for (int i_ = 0; i_ < *outcount; i_++)\n            {x}[i_]++;").unwrap();
        } else if !dummy.is_array() {
            writeln!(self.results, "        if (*{x} != MPI_UNDEFINED)\n            ++*{x};").unwrap();
        }
        x.into()
    }
}

fn plain(table: &Table, routine: &Routine, is_f08: bool, out: &mut String) {
    let function = routine.function;
    let mut body = Body::default();
    for arg in table.args(function, routine.large) {
        match routine.dummies.iter().find(|dummy| dummy.name() == arg.param.name) {
            Some(dummy) => body.add(table, function, dummy, is_f08),
            // argc and argv, which Fortran does not have
            None => body.arguments.push(if arg.pointer || arg.c_type.contains('*') { "NULL" } else { "0" }.into()),
        }
    }
    let suffix = if is_f08 { "_f08" } else { "" };
    writeln!(out, "{}\n{{\n    HERE", head(routine, suffix, declared, true)).unwrap();
    if matches!(function.name.as_str(), "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init") {
        body.results.push_str("        limosa_set_types();\n");
    }
    let call = format!("CALL({})({})", routine.name, body.arguments.join(", "));
    if routine.result.is_some() {
        writeln!(out, "    return {call};\n}}\n").unwrap();
        return;
    }
    writeln!(out, "{}    int error_ = {call};", body.before).unwrap();
    if !body.results.is_empty() {
        writeln!(out, "    if (error_ == MPI_SUCCESS) {{\n{}    }}", body.results).unwrap();
    }
    writeln!(out, "{}    if (ierror)\n        *ierror = error_;\n}}\n", body.after).unwrap();
}
