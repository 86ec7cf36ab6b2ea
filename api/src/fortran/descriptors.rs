//! The C functions that take the descriptors of choice buffers in `mpi_f08`, and pass addresses to the others.

use std::fmt::Write;

use super::glue::{declared, head};
use super::{Dummy, Routine, Type};
use crate::Direction;

/// How an array section that is not contiguous is passed to a call.
#[derive(PartialEq)]
enum Section {
    /// The address of its first element is all that the call needs.
    Base,
    /// The call is complete when it returns: the section is copied.
    Copy,
    /// The call has a count and a datatype for the whole buffer: a datatype of the section takes their place.
    Type,
    /// The call returns an error.
    Refuse,
}

fn section(routine: &Routine, dummy: &Dummy) -> Section {
    let function = routine.function;
    let name = function.name.as_str();
    let role = &dummy.param.role;
    if dummy.param.kind == "LOGICAL_VOID"
        || name.ends_with("_end")
        || ["MPI_Get_address", "MPI_Free_mem", "MPI_Fetch_and_op", "MPI_Compare_and_swap"].contains(&name)
    {
        return Section::Base;
    }
    let is_one_sided = function.chapter == "One-sided communication";
    let has_request = function.params.iter().any(|p| p.kind == "REQUEST" && p.dir == Direction::Out);
    let is_attached = ["attach", "Win_create"].iter().any(|part| name.contains(part));
    if !is_one_sided && !has_request && !is_attached && !name.ends_with("_begin") {
        return Section::Copy;
    }
    let is_scalar = |parameter: &Option<String>| {
        parameter.as_ref().and_then(|name| function.param(name)).is_some_and(|p| p.array.is_none())
    };
    let is_reduction = !is_one_sided && function.params.iter().any(|p| p.kind == "OPERATION");
    let is_whole = is_scalar(&role.count) && is_scalar(&role.datatype) && role.blocks.is_none();
    if is_whole && !is_reduction { Section::Type } else { Section::Refuse }
}

/// Statements around the call of the function that takes addresses.
#[derive(Default)]
struct Around {
    enter: String,
    leave: String,
    arguments: Vec<String>,
}

impl Around {
    fn buffer(&mut self, routine: &Routine, position: usize) {
        let dummy = &routine.dummies[position];
        let x = dummy.name();
        let how = section(routine, dummy);
        if how == Section::Base {
            self.arguments[position] = format!("{x}->base_addr");
            return;
        }
        self.arguments[position] = format!("s_{x}.address");
        writeln!(self.enter, "    Section s_{x} = {{{x}->base_addr, 0, MPI_SUCCESS}};").unwrap();
        match how {
            Section::Copy => {
                let is_result = i32::from(!(dummy.param.dir == Direction::In && dummy.param.constant));
                writeln!(self.enter, "    if (limosa_is_split({x}))").unwrap();
                writeln!(self.enter, "        limosa_copy_in(&s_{x}, {x}, {is_result});").unwrap();
                writeln!(self.leave, "    if (s_{x}.is_split)").unwrap();
                writeln!(self.leave, "        limosa_copy_out(&s_{x}, {x}, {is_result});").unwrap();
                return;
            }
            Section::Type => self.datatype(routine, dummy),
            _ => {
                writeln!(self.enter, "    if (limosa_is_split({x}))").unwrap();
                writeln!(self.enter, "        s_{x}.error = limosa_section_error();").unwrap();
            }
        }
        writeln!(self.enter, "    if (s_{x}.error != MPI_SUCCESS) {{\n        {};", raise(routine, x)).unwrap();
        writeln!(self.enter, "        if (ierror)\n            *ierror = s_{x}.error;\n        return;\n    }}")
            .unwrap();
    }

    /// The section's datatype takes the place of count and datatype. Two buffers never share them in such calls.
    fn datatype(&mut self, routine: &Routine, dummy: &Dummy) {
        let x = dummy.name();
        let position = |name: &Option<String>| {
            let name = name.as_deref().expect("a whole buffer has a count and a datatype");
            routine.dummies.iter().position(|other| other.name() == name).expect("it is an argument")
        };
        let (count, datatype) = (position(&dummy.param.role.count), position(&dummy.param.role.datatype));
        let number = declared(&routine.dummies[count]).replacen('*', "", 1);
        let number = number.split(' ').next().expect("a type");
        writeln!(self.enter, "    {number} n_{x} = *{};", routine.dummies[count].name()).unwrap();
        writeln!(self.enter, "    MPI_Fint t_{x} = *{};", routine.dummies[datatype].name()).unwrap();
        writeln!(self.enter, "    if (limosa_is_split({x})) {{").unwrap();
        writeln!(self.enter, "        limosa_section_type(&s_{x}, {x}, n_{x}, &t_{x});\n        n_{x} = 1;\n    }}")
            .unwrap();
        writeln!(self.leave, "    if (s_{x}.is_split)\n        limosa_free_type(&t_{x});").unwrap();
        self.arguments[count] = format!("&n_{x}");
        self.arguments[datatype] = format!("&t_{x}");
    }
}

/// Calls the error handler of the object that the call belongs to.
fn raise(routine: &Routine, buffer: &str) -> String {
    let objects = ["MPI_Comm", "MPI_Win", "MPI_File"];
    let object = routine.dummies.iter().find_map(|dummy| match &dummy.ty {
        Type::Handle(c_type) if objects.contains(&c_type.as_str()) => Some((c_type, dummy.name())),
        _ => None,
    });
    match object {
        Some((c_type, name)) => {
            format!("P{c_type}_call_errhandler(P{c_type}_fromint(*{name}), s_{buffer}.error)")
        }
        None => format!("PMPI_Comm_call_errhandler(MPI_COMM_SELF, s_{buffer}.error)"),
    }
}

/// The C function that takes the descriptors of choice buffers.
pub(super) fn described(routine: &Routine, out: &mut String) {
    let argument = |dummy: &Dummy| match dummy.ty {
        Type::Choice | Type::Text => format!("const Descriptor *{}", dummy.name()),
        _ => declared(dummy),
    };
    let names = routine.dummies.iter().map(|dummy| match dummy.ty {
        Type::Text => format!("{}->base_addr", dummy.name()),
        _ => dummy.name().to_owned(),
    });
    let mut around = Around { arguments: names.collect(), ..Around::default() };
    for (position, dummy) in routine.dummies.iter().enumerate() {
        if dummy.ty == Type::Choice {
            around.buffer(routine, position);
        }
    }
    let Around { enter, leave, mut arguments } = around;
    if !routine.is_without_error() {
        arguments.push("ierror".into());
    }
    let text = routine.dummies.iter().filter(|dummy| dummy.ty == Type::Text);
    arguments.extend(text.map(|dummy| format!("{}->elem_len", dummy.name())));
    writeln!(out, "{}\n{{\n    HERE", head(routine, "_f08ts", argument, false)).unwrap();
    writeln!(out, "{enter}    NAME({}_)({});\n{leave}}}\n", routine.symbol(), arguments.join(", ")).unwrap();
}
