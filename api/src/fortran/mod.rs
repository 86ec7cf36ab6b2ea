//! Renders the Fortran interfaces (MPI-5 chapter 19) over the standard ABI: `mpif.h`, the modules `mpi` and `mpi_f08`,
//! and the C functions behind them.
//!
//! - [`sources`] — `mpif.h`, `mpi.f90`, `mpi_f08.f90`
//! - [`glue`] — `fortran_calls.h`, one C function for each subroutine; `fortran/` has those written by hand
//!
//! Arguments have the same form in all three interfaces: addresses, and behind them the lengths of strings. Therefore
//! one C function serves them all. Only the choice buffers of `mpi_f08` differ: a second C function takes their
//! descriptors and calls the first ([`descriptors`]).

mod descriptors;
mod glue;
mod sources;

use crate::table::Fortran;
use crate::{Arg, Array, Constant, Function, Param, Table};

/// The generated files: names and texts.
pub fn files(table: &Table) -> [(&'static str, String); 4] {
    [
        ("mpif.h", sources::mpif(table)),
        ("mpi.f90", sources::mpi(table)),
        ("mpi_f08.f90", sources::mpi_f08(table)),
        ("fortran_calls.h", glue::render(table)),
    ]
}

/// Sentinels, which are recognised by their address: name, type, dimensions.
const SENTINELS: [(&str, &str, &str); 10] = [
    ("MPI_BOTTOM", "INTEGER", ""),
    ("MPI_IN_PLACE", "INTEGER", ""),
    ("MPI_BUFFER_AUTOMATIC", "INTEGER", ""),
    ("MPI_STATUS_IGNORE", "STATUS", ""),
    ("MPI_STATUSES_IGNORE", "STATUS", "1"),
    ("MPI_ERRCODES_IGNORE", "INTEGER", "1"),
    ("MPI_UNWEIGHTED", "INTEGER", "1"),
    ("MPI_WEIGHTS_EMPTY", "INTEGER", "1"),
    ("MPI_ARGV_NULL", "CHARACTER", "1"),
    ("MPI_ARGVS_NULL", "CHARACTER", "1,1"),
];

/// Subroutines whose C function is written by hand in `fortran/special.h`.
const BY_HAND: [&str; 8] = [
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Info_get",
    "MPI_Info_get_string",
    "MPI_Pcontrol",
    "MPI_Session_get_nth_pset",
    "MPI_Status_f082f",
    "MPI_Status_f2f08",
];

/// Kinds of integers.
const KINDS: [(&str, i64); 4] =
    [("MPI_INTEGER_KIND", 4), ("MPI_ADDRESS_KIND", 8), ("MPI_OFFSET_KIND", 8), ("MPI_COUNT_KIND", 8)];

/// Fortran type of an argument.
#[derive(Clone, PartialEq, Debug)]
enum Type {
    Integer,
    Address,
    Count,
    Offset,
    Logical,
    Double,
    Text,
    /// C type of the handle.
    Handle(String),
    Status,
    /// A status as an array of integers in `mpi_f08`.
    OldStatus,
    /// A buffer of any type.
    Choice,
    /// `TYPE(C_PTR)` in `mpi_f08`, an address in `mpi`.
    Pointer,
    /// `TYPE(C_PTR)` in `mpi_f08`, a choice buffer that is not used in `mpi`.
    UnusedPointer,
    /// The function type in C.
    Procedure(String),
}

impl Type {
    /// The name of the kind that tells the forms of a generic procedure apart.
    fn width(&self) -> Type {
        match self {
            Type::Count | Type::Offset => Type::Address,
            other => other.clone(),
        }
    }
}

/// An argument of a subroutine.
struct Dummy<'a> {
    param: &'a Param,
    ty: Type,
    /// Passed to C by its address.
    pointer: bool,
}

impl Dummy<'_> {
    fn name(&self) -> &str {
        &self.param.name
    }

    fn is_array(&self) -> bool {
        self.param.array.is_some() && !matches!(self.ty, Type::Text | Type::Choice)
            || matches!(self.param.kind.as_str(), "STRING_ARRAY" | "STRING_2DARRAY")
            || (self.param.kind == "ARGUMENT_LIST")
    }
}

/// A subroutine or function.
struct Routine<'a> {
    /// Name in C, with the suffix of the large-count twin.
    name: String,
    function: &'a Function,
    large: bool,
    dummies: Vec<Dummy<'a>>,
    /// Type of a function's result; none for a subroutine with the argument `ierror`.
    result: Option<Type>,
}

impl Routine<'_> {
    /// Passes a buffer of any type.
    fn has_choice(&self) -> bool {
        self.dummies.iter().any(|dummy| dummy.ty == Type::Choice)
    }

    /// Has no argument `ierror`.
    fn is_without_error(&self) -> bool {
        self.result.is_some() || self.name == "MPI_Pcontrol"
    }

    fn is_by_hand(&self) -> bool {
        let callback = |dummy: &Dummy| {
            matches!(dummy.ty, Type::Procedure(_))
                || matches!(dummy.param.kind.as_str(), "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10")
        };
        BY_HAND.contains(&self.function.name.as_str()) || self.dummies.iter().any(callback)
    }

    /// Name of the C function without the underscore that the compiler appends.
    fn symbol(&self) -> String {
        self.name.to_lowercase()
    }

    /// Name of the form in `mpi_f08` (MPI-5 table 19.1).
    fn specific(&self) -> String {
        format!("{}_{}", self.name, if self.has_choice() { "f08ts" } else { "f08" })
    }
}

fn type_of(arg: &Arg, table: &Table) -> Type {
    let kind = arg.param.kind.as_str();
    if let Some(function) = &arg.param.func {
        return Type::Procedure(arg.c_type.strip_suffix("_c").map_or(function.clone(), |_| format!("{function}_c")));
    }
    if table.handle(kind).is_some() {
        return Type::Handle(arg.c_type.clone());
    }
    match kind {
        "LOGICAL" => Type::Logical,
        "BUFFER" | "LOGICAL_VOID" => Type::Choice,
        "C_BUFFER" | "C_BUFFER3" | "C_BUFFER4" => Type::Pointer,
        "C_BUFFER2" => Type::UnusedPointer,
        "ATTRIBUTE_VAL" | "EXTRA_STATE" => Type::Address,
        "ATTRIBUTE_VAL_10" | "EXTRA_STATE2" => Type::Integer,
        "STRING" | "STRING_ARRAY" | "STRING_2DARRAY" | "ARGUMENT_LIST" => Type::Text,
        "STATUS" | "F08_STATUS" => Type::Status,
        "F90_STATUS" => Type::OldStatus,
        _ => match arg.c_type.as_str() {
            "int" => Type::Integer,
            "MPI_Aint" => Type::Address,
            "MPI_Count" => Type::Count,
            "MPI_Offset" => Type::Offset,
            other => panic!("kind {kind}: Fortran has no type for {other}"),
        },
    }
}

fn dummies<'a>(table: &'a Table, function: &'a Function, large: bool) -> Vec<Dummy<'a>> {
    let is_spawn = function.name.starts_with("MPI_Comm_spawn");
    let hidden = |arg: &Arg| match arg.param.kind.as_str() {
        "VARARGS" | "ARGUMENT_COUNT" => true,
        "ARGUMENT_LIST" => !is_spawn,
        _ => false,
    };
    let args = table.args(function, large).into_iter().filter(|arg| !hidden(arg));
    args.map(|arg| Dummy { ty: type_of(&arg, table), param: arg.param, pointer: arg.pointer }).collect()
}

fn routine<'a>(table: &'a Table, function: &'a Function, large: bool) -> Routine<'a> {
    let result = match function.returns.as_str() {
        "WALL_TIME" | "TICK_RESOLUTION" => Some(Type::Double),
        "LOCATION_SMALL" | "DISPLACEMENT" => Some(Type::Address),
        _ => None,
    };
    let name = format!("{}{}", function.name, if large { "_c" } else { "" });
    Routine { name, function, large, dummies: dummies(table, function, large), result }
}

/// The subroutines and functions of `mpif.h` and module `mpi`.
fn routines(table: &Table) -> Vec<Routine<'_>> {
    let functions = table.functions.iter().filter(|f| f.fortran != Fortran::None);
    functions.map(|function| routine(table, function, false)).collect()
}

/// The subroutines with large counts that `mpi_f08` has beside the others. Where both have the same types of arguments,
/// a second form would be the same procedure.
fn large_routines(table: &Table) -> Vec<Routine<'_>> {
    let functions = table.functions.iter().filter(|f| f.fortran == Fortran::All && f.large);
    let both = functions.map(|function| (routine(table, function, false), routine(table, function, true)));
    let widths = |routine: &Routine| routine.dummies.iter().map(|dummy| dummy.ty.width()).collect::<Vec<_>>();
    both.filter(|(small, large)| widths(small) != widths(large)).map(|(_, large)| large).collect()
}

/// True for the constants that Fortran has.
fn has_constant(constant: &Constant) -> bool {
    !["MPI_T_", "MPI_F_"].iter().any(|prefix| constant.name.starts_with(prefix))
}

/// Upper bounds of an array argument: `*`, or the dimensions of a matrix in Fortran's order.
fn bounds(param: &Param) -> String {
    match &param.array {
        Some(Array::Matrix(dims)) => format!("{},*", dims[1]),
        _ => "*".into(),
    }
}
