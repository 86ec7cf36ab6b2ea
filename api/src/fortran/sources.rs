//! `mpif.h` and the modules.

use std::fmt::Write;

use super::{Dummy, KINDS, Routine, SENTINELS, Type, bounds, dummies, has_constant, large_routines, routines};
use crate::table::Fortran;
use crate::{Constant, Direction, Function, Table, Value};

/// Longest line of the modules' sources, whose limit is 132.
const WIDTH: usize = 110;

/// Where declarations stand.
#[derive(Clone, Copy, PartialEq)]
enum Module {
    Mpi,
    F08,
}

/// One statement, continued where it is too long for a line.
fn statement(indent: usize, text: &str, out: &mut String) {
    let mut line = " ".repeat(indent);
    for (i, part) in text.split_inclusive(", ").enumerate() {
        if i > 0 && line.len() + part.len() > WIDTH {
            writeln!(out, "{line}&").unwrap();
            line = " ".repeat(indent + 4);
        }
        line.push_str(part);
    }
    writeln!(out, "{}", line.trim_end()).unwrap();
}

fn integer(constant: &Constant) -> Option<i64> {
    match (&constant.value, constant.c_type.as_deref()) {
        (_, Some(c_type)) if c_type.ends_with('*') => None,
        (Value::Int(value), _) if has_constant(constant) => Some(*value),
        _ => None,
    }
}

/// Names of the predefined callbacks, with their types.
fn predefined(table: &Table, module: Option<Module>) -> Vec<(&str, &str)> {
    let function = |c: &'_ Constant| c.category == "FUNCTIONS" || c.category == "DEPRECATED_FUNCS";
    let named = table
        .constants
        .iter()
        .filter(|c| function(c))
        .map(|c| (c.name.as_str(), c.c_type.as_deref().expect("functions have a type").trim_end_matches('*')));
    named
        .filter(|(_, ty)| match module {
            Some(Module::F08) => !matches!(*ty, "MPI_Copy_function" | "MPI_Delete_function"),
            _ => !ty.ends_with("_c"),
        })
        .collect()
}

/// The text of `mpif.h`, which is valid in fixed and in free source form.
pub fn mpif(table: &Table) -> String {
    let mut out = String::from(
        "! mpif.h: constants of MPI-5 in its standard ABI, for fixed and free source form.\n! Generated from \
         api/mpi5.json.\n",
    );
    let mut parameter = |ty: &str, name: &str, value: &str| {
        writeln!(out, "      {ty} {name}\n      PARAMETER ({name}={value})").unwrap();
    };
    parameter("LOGICAL", "MPI_SUBARRAYS_SUPPORTED", ".FALSE.");
    parameter("LOGICAL", "MPI_ASYNC_PROTECTS_NONBLOCKING", ".FALSE.");
    for (name, value) in KINDS {
        parameter("INTEGER", name, &value.to_string());
    }
    for constant in &table.constants {
        if let Some(value) = integer(constant) {
            let wide = constant.c_type.as_deref() == Some("MPI_Offset");
            parameter(if wide { "INTEGER(KIND=8)" } else { "INTEGER" }, &constant.name, &value.to_string());
        }
    }
    for (name, ty, dims) in SENTINELS {
        let (ty, dims) = match (ty, dims) {
            ("STATUS", "") => ("INTEGER", "(MPI_STATUS_SIZE)".to_owned()),
            ("STATUS", _) => ("INTEGER", format!("(MPI_STATUS_SIZE,{dims})")),
            ("CHARACTER", _) => ("CHARACTER*1", format!("({dims})")),
            (ty, "") => (ty, String::new()),
            (ty, _) => (ty, format!("({dims})")),
        };
        writeln!(out, "      {ty} {name}{dims}\n      COMMON /{}/ {name}", block(name)).unwrap();
    }
    for (name, _) in predefined(table, None) {
        writeln!(out, "      EXTERNAL {name}").unwrap();
    }
    for routine in routines(table) {
        let ty = match routine.result {
            Some(Type::Double) => "DOUBLE PRECISION",
            Some(_) => "INTEGER(KIND=MPI_ADDRESS_KIND)",
            None => continue,
        };
        for prefix in ["", "P"] {
            let name = format!("{prefix}{}", routine.name.to_uppercase());
            writeln!(out, "      {ty} {name}\n      EXTERNAL {name}").unwrap();
        }
    }
    out
}

/// Name of the COMMON block of a sentinel.
fn block(name: &str) -> String {
    name.replacen("MPI_", "MPI_FORTRAN_", 1)
}

/// The text of `mpi.f90`: the types that both modules share, and module `mpi`.
pub fn mpi(table: &Table) -> String {
    let mut out = String::from("! Module mpi of MPI-5 over its standard ABI. Generated from api/mpi5.json.\n\n");
    types(table, &mut out);
    out.push_str(
        "\nmodule mpi\n  use limosa_mpi_types\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n  \
         public\n  private :: c_ptr\n",
    );
    constants(table, Module::Mpi, &mut out);
    out.push_str("  interface\n");
    for prefix in ["", "P"] {
        for routine in routines(table) {
            let has_pointer = routine.dummies.iter().any(|dummy| dummy.ty == Type::Pointer);
            if has_pointer {
                let name = format!("{prefix}{}", routine.name);
                writeln!(out, "  end interface\n  interface {name}").unwrap();
                procedure(&routine, &name, Module::Mpi, "", false, &mut out);
                procedure(&routine, &format!("{name}_cptr"), Module::Mpi, "", true, &mut out);
                out.push_str("  end interface\n  interface\n");
            } else {
                procedure(&routine, &format!("{prefix}{}", routine.name), Module::Mpi, "", false, &mut out);
            }
        }
        writeln!(out, "    subroutine {prefix}MPI_F_sync_reg(buf)").unwrap();
        choice("buf", &mut out);
        out.push_str("    end subroutine\n");
    }
    out.push_str("  end interface\n");
    sizeof("mpi", &mut out);
    out.push_str("end module mpi\n");
    out
}

/// `MPI_Sizeof`, for which a descriptor tells the size.
fn sizeof(module: &str, out: &mut String) {
    for prefix in ["", "P"] {
        let specific = format!("limosa_{module}_{prefix}sizeof");
        write!(
            out,
            "  interface {prefix}MPI_Sizeof\n    subroutine {specific}(x, size, ierror) &\n        \
             bind(C, name=\"{}mpi_sizeof_f08ts_\")\n      type(*), dimension(..), intent(in) :: x\n      \
             integer, intent(out) :: size\n      integer, optional, intent(out) :: ierror\n    \
             end subroutine\n  end interface\n",
            prefix.to_lowercase()
        )
        .unwrap();
    }
}

fn types(table: &Table, out: &mut String) {
    out.push_str("module limosa_mpi_types\n  implicit none\n  public\n");
    for (name, value) in KINDS {
        writeln!(out, "  integer, parameter :: {name} = {value}").unwrap();
    }
    out.push_str("  type, bind(C) :: MPI_Status\n");
    for (name, _, count, _) in &table.status.fields {
        let array = if *count > 1 { format!("({count})") } else { String::new() };
        writeln!(out, "    integer :: {name}{array}").unwrap();
    }
    out.push_str("  end type\n");
    for handle in &table.handles {
        writeln!(out, "  type, bind(C) :: {}\n    integer :: MPI_VAL\n  end type", handle.c_type).unwrap();
    }
    let operators = [("==", "equal"), ("/=", "differ")];
    for (operator, word) in operators {
        let names: Vec<String> = table.handles.iter().map(|h| format!("{}_{word}", h.c_type)).collect();
        writeln!(out, "  interface operator ({operator})").unwrap();
        statement(4, &format!("module procedure {}", names.join(", ")), out);
        writeln!(out, "  end interface").unwrap();
        statement(2, &format!("private :: {}", names.join(", ")), out);
    }
    out.push_str("contains\n");
    for handle in &table.handles {
        for (operator, word) in operators {
            write!(
                out,
                "  elemental logical function {0}_{word}(a, b)\n    type({0}), intent(in) :: a, b\n    {0}_{word} = \
                 a%MPI_VAL {operator} b%MPI_VAL\n  end function\n",
                handle.c_type
            )
            .unwrap();
        }
    }
    out.push_str("end module limosa_mpi_types\n");
}

fn constants(table: &Table, module: Module, out: &mut String) {
    out.push_str("  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.\n");
    out.push_str("  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.\n");
    for constant in &table.constants {
        let Some(value) = integer(constant) else { continue };
        let name = &constant.name;
        let c_type = constant.c_type.as_deref().unwrap_or_default();
        let is_handle = table.handles.iter().any(|h| h.c_type == c_type);
        match c_type {
            "MPI_Offset" => {
                writeln!(out, "  integer(kind=MPI_OFFSET_KIND), parameter :: {name} = {value}_MPI_OFFSET_KIND")
            }
            _ if is_handle && module == Module::F08 => {
                writeln!(out, "  type({c_type}), parameter :: {name} = {c_type}({value})")
            }
            _ => writeln!(out, "  integer, parameter :: {name} = {value}"),
        }
        .unwrap();
    }
    for (name, ty, dims) in SENTINELS {
        let (ty, dims) = match (ty, dims, module) {
            ("STATUS", _, Module::F08) => ("type(MPI_Status)", dims.to_owned()),
            ("STATUS", "", _) => ("integer", "MPI_STATUS_SIZE".to_owned()),
            ("STATUS", _, _) => ("integer", format!("MPI_STATUS_SIZE,{dims}")),
            ("CHARACTER", ..) => ("character(len=1)", dims.to_owned()),
            _ => ("integer", dims.to_owned()),
        };
        let dims = if dims.is_empty() { dims } else { format!("({dims})") };
        writeln!(out, "  {ty} :: {name}{dims}\n  common /{}/ {name}", block(name)).unwrap();
    }
    if module == Module::F08 {
        out.push_str("  abstract interface\n");
        for callback in table.callbacks.iter().filter(|c| is_f08_callback(c)) {
            abstract_interface(table, callback, false, out);
            if callback.large {
                abstract_interface(table, callback, true, out);
            }
        }
        out.push_str("  end interface\n");
    }
    for (name, ty) in predefined(table, Some(module)) {
        match module {
            Module::Mpi => writeln!(out, "  external :: {name}"),
            Module::F08 => writeln!(out, "  procedure({ty}) :: {name}"),
        }
        .unwrap();
    }
}

fn is_f08_callback(callback: &Function) -> bool {
    !callback.name.starts_with("MPI_T_")
        && !matches!(callback.name.as_str(), "MPI_Copy_function" | "MPI_Delete_function")
}

/// The interface of a callback of `mpi_f08`: its arguments have no intent (MPI-5 section 19.1.2).
fn abstract_interface(table: &Table, callback: &Function, large: bool, out: &mut String) {
    let dummies = dummies(table, callback, large);
    let with_error = callback.returns == "ERROR_CODE";
    let mut names: Vec<&str> = dummies.iter().map(Dummy::name).collect();
    if with_error {
        names.push("ierror");
    }
    let name = format!("{}{}", callback.name, if large { "_c" } else { "" });
    statement(4, &format!("subroutine {name}({})", names.join(", ")), out);
    out.push_str("      import\n");
    for dummy in &dummies {
        match dummy.ty {
            Type::Pointer => writeln!(out, "      type(c_ptr), value :: {}", dummy.name()).unwrap(),
            _ => writeln!(out, "      {} :: {}", type_name(&dummy.ty, Module::F08), dummy.name()).unwrap(),
        }
    }
    if with_error {
        out.push_str("      integer :: ierror\n");
    }
    out.push_str("    end subroutine\n");
}

fn type_name(ty: &Type, module: Module) -> String {
    match (ty, module) {
        (Type::Integer | Type::OldStatus, _) | (Type::Handle(_), Module::Mpi) => "integer".into(),
        (Type::Handle(c_type), Module::F08) => format!("type({c_type})"),
        (Type::Address, _) | (Type::Pointer, Module::Mpi) => "integer(kind=MPI_ADDRESS_KIND)".into(),
        (Type::Count, _) => "integer(kind=MPI_COUNT_KIND)".into(),
        (Type::Offset, _) => "integer(kind=MPI_OFFSET_KIND)".into(),
        (Type::Logical, _) => "logical".into(),
        (Type::Double, _) => "double precision".into(),
        (Type::Text, _) => "character(len=*)".into(),
        (Type::Status, _) => "type(MPI_Status)".into(),
        (Type::Pointer | Type::UnusedPointer, _) => "type(c_ptr)".into(),
        (Type::Procedure(c_type), _) => format!("procedure({c_type})"),
        (Type::Choice, _) => "type(*), dimension(..)".into(),
    }
}

/// Declares a buffer of any type in module `mpi`, where the compiler passes an address.
fn choice(name: &str, out: &mut String) {
    writeln!(out, "!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n!DIR$ IGNORE_TKR {name}").unwrap();
    writeln!(out, "      type(*), dimension(*) :: {name}").unwrap();
}

/// The interface body of one subroutine or function.
fn procedure(routine: &Routine, name: &str, module: Module, binding: &str, c_pointers: bool, out: &mut String) {
    let mut names: Vec<&str> = routine.dummies.iter().map(Dummy::name).collect();
    if !routine.is_without_error() {
        names.push("ierror");
    }
    let word = if routine.result.is_some() { "function" } else { "subroutine" };
    let bind = if binding.is_empty() { String::new() } else { format!(", bind(C, name=\"{binding}\")") };
    // The comma lets a long line be continued before BIND.
    statement(4, &format!("{word} {name}({}){}", names.join(", "), bind.replacen(", ", " ", 1)), out);
    out.push_str("      import\n");
    for dummy in &routine.dummies {
        declare(dummy, module, c_pointers, out);
    }
    if let Some(ty) = &routine.result {
        writeln!(out, "      {} :: {name}", type_name(ty, module)).unwrap();
    } else if !routine.is_without_error() {
        let attributes = if module == Module::F08 { ", optional, intent(out)" } else { "" };
        writeln!(out, "      integer{attributes} :: ierror").unwrap();
    }
    writeln!(out, "    end {word}").unwrap();
}

fn declare(dummy: &Dummy, module: Module, c_pointers: bool, out: &mut String) {
    let name = dummy.name();
    if module == Module::Mpi {
        match &dummy.ty {
            Type::Choice | Type::UnusedPointer => return choice(name, out),
            Type::Procedure(_) => return writeln!(out, "      external :: {name}").unwrap(),
            Type::Status if dummy.param.kind == "STATUS" => {
                let more = if dummy.is_array() { ",*" } else { "" };
                return writeln!(out, "      integer :: {name}(MPI_STATUS_SIZE{more})").unwrap();
            }
            Type::Pointer if c_pointers => return writeln!(out, "      type(c_ptr) :: {name}").unwrap(),
            _ => {}
        }
    }
    let array = match dummy.param.kind.as_str() {
        "STRING_2DARRAY" => "(count,*)".into(),
        "F90_STATUS" => "(MPI_STATUS_SIZE)".into(),
        _ if dummy.is_array() => format!("({})", bounds(dummy.param)),
        _ => String::new(),
    };
    let mut attributes = String::new();
    if module == Module::F08 && !matches!(dummy.ty, Type::Procedure(_)) {
        // MPI_STATUS_IGNORE, MPI_UNWEIGHTED and the like may stand for results: these have no intent.
        let may_be_sentinel = matches!(dummy.ty, Type::Choice)
            || dummy.param.kind == "STATUS"
            || dummy.is_array() && matches!(dummy.param.kind.as_str(), "WEIGHT" | "ERROR_CODE");
        attributes = match dummy.param.dir {
            Direction::In => ", intent(in)".into(),
            _ if may_be_sentinel => String::new(),
            Direction::Out => ", intent(out)".into(),
            Direction::Inout => ", intent(inout)".into(),
        };
        if dummy.param.asynchronous {
            attributes.push_str(", asynchronous");
        }
        if dummy.ty == Type::Choice && !dummy.param.constant {
            attributes = attributes.replace(", intent(in)", "");
        }
    }
    writeln!(out, "      {}{attributes} :: {name}{array}", type_name(&dummy.ty, module)).unwrap();
}

/// The text of `mpi_f08.f90`.
pub fn mpi_f08(table: &Table) -> String {
    let mut out = String::from("! Module mpi_f08 of MPI-5 over its standard ABI. Generated from api/mpi5.json.\n\n");
    out.push_str(
        "module mpi_f08\n  use limosa_mpi_types\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n  \
         public\n  private :: c_ptr\n",
    );
    constants(table, Module::F08, &mut out);
    let large = large_routines(table);
    for prefix in ["", "P"] {
        for routine in routines(table).iter().filter(|r| r.function.fortran == Fortran::All) {
            let twin = large.iter().find(|twin| twin.function.name == routine.function.name);
            writeln!(out, "  interface {prefix}{}", routine.name).unwrap();
            specific(routine, prefix, &mut out);
            match twin {
                // A compiler cannot tell procedure arguments apart: the two forms have two names.
                Some(twin) if twin.dummies.iter().any(|dummy| matches!(dummy.ty, Type::Procedure(_))) => {
                    writeln!(out, "  end interface\n  interface {prefix}{}", twin.name).unwrap();
                    specific(twin, prefix, &mut out);
                }
                Some(twin) => specific(twin, prefix, &mut out),
                None => {}
            }
            out.push_str("  end interface\n");
        }
        write!(
            out,
            "  interface {prefix}MPI_F_sync_reg\n    subroutine {prefix}MPI_F_sync_reg_f08ts(buf) bind(C, \
             name=\"{}mpi_f_sync_reg_f08ts_\")\n      type(*), dimension(..), asynchronous :: buf\n    end \
             subroutine\n  end interface\n",
            prefix.to_lowercase()
        )
        .unwrap();
    }
    sizeof("f08", &mut out);
    out.push_str("end module mpi_f08\n");
    out
}

fn specific(routine: &Routine, prefix: &str, out: &mut String) {
    let name = format!("{prefix}{}", routine.specific());
    let binding = if routine.has_choice() { format!("{}_", name.to_lowercase()) } else { String::new() };
    procedure(routine, &name, Module::F08, &binding, false, out);
}
