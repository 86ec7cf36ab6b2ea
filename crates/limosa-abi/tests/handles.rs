//! Invalid arguments to every implemented function must give the right error class, and no crash: an invalid handle in
//! every handle position, a null pointer for every result and string, a negative number for every count.
//!
//! The calls are generated from the table as a C program, which runs as a job of one process under `MPI_ERRORS_RETURN`.
//! All other arguments are valid ones of their kind.

mod common;

use std::fmt::Write;

use common::{Workshop, glue};
use limosa_api::{Arg, Direction, Function, Table, entry};

/// Functions that the program cannot call: they end the program or MPI.
const NOT_CALLED: &[&str] = &["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Session_finalize"];

/// Returns a valid argument as a C expression.
fn valid(arg: &Arg, table: &Table, function: &Function, n: usize) -> String {
    let kind = arg.param.kind.as_str();
    if arg.param.func.is_some() {
        return "0".into();
    }
    if arg.c_type.starts_with("char *") {
        return if arg.c_type == "char *" && arg.param.dir == Direction::In {
            "\"x\"".into()
        } else {
            format!("(void *)room[{n}]")
        };
    }
    if arg.pointer || arg.c_type == "void *" {
        return format!("(void *)room[{n}]");
    }
    let object = match kind {
        "COMMUNICATOR" if function.name.to_lowercase().contains("neighbor_") => "some_ring",
        "COMMUNICATOR" => "MPI_COMM_SELF",
        "DATATYPE" => "MPI_INT",
        "OPERATION" => "MPI_SUM",
        "GROUP" if function.name == "MPI_Intercomm_create_from_groups" => "some_group",
        "GROUP" => "MPI_GROUP_EMPTY",
        "ERRHANDLER" => "MPI_ERRORS_RETURN",
        "MESSAGE" => "MPI_MESSAGE_NO_PROC",
        "INFO" if function.name.starts_with("MPI_Info_") => "some_info",
        "SESSION" => "some_session",
        "WINDOW" => "some_window",
        "FILE" => "some_file",
        "REQUEST" if function.name == "MPI_Parrived" => "some_receive",
        _ => "",
    };
    if !object.is_empty() {
        return object.into();
    }
    if let Some(handle) = table.handle(kind) {
        return handle.null.clone();
    }
    let one = kind.contains("ARRAY_LENGTH") || kind.contains("NUM_ELEM") || kind.contains("SIZE_PI");
    if one { "1".into() } else { "0".into() }
}

/// Returns the invalid values of a handle: name and C expression of type `intptr_t`.
fn bad_values(table: &Table, kind: &str) -> Vec<(&'static str, String)> {
    let null = &table.handle(kind).expect("a handle").null;
    let foreign = if kind == "DATATYPE" { "MPI_COMM_WORLD" } else { "MPI_INT" };
    let mut all = vec![
        ("null handle", format!("(intptr_t){null}")),
        ("null pointer", "(intptr_t)0".into()),
        ("handle of another kind", format!("(intptr_t){foreign}")),
        ("random number", "(intptr_t)0x7edcba98".into()),
        ("stack address", "(intptr_t)&stack".into()),
        ("minus one", "(intptr_t)-1".into()),
    ];
    if matches!(kind, "COMMUNICATOR" | "GROUP" | "INFO" | "DATATYPE" | "OPERATION" | "ERRHANDLER") {
        all.push(("freed handle", format!("freed_{}", kind.to_lowercase())));
    }
    all
}

/// Calls that create and free an object of each kind, and the functions that accept it.
const FREED: &[(&str, &str, &[&str])] = &[
    (
        "communicator",
        "MPI_Comm c; MPI_Comm_dup(MPI_COMM_SELF, &c); freed_communicator = (intptr_t)c; MPI_Comm_free(&c);",
        &["mpi_comm_dup", "mpi_comm_free"],
    ),
    (
        "group",
        "int r = 0; MPI_Group w, g; MPI_Comm_group(MPI_COMM_WORLD, &w); MPI_Group_incl(w, 1, &r, &g); freed_group = \
         (intptr_t)g; MPI_Group_free(&g);",
        &["mpi_comm_group", "mpi_group_incl", "mpi_group_free"],
    ),
    (
        "info",
        "MPI_Info i; MPI_Info_create(&i); freed_info = (intptr_t)i; MPI_Info_free(&i); MPI_Info_create(&i); \
         MPI_Info_create(&some_info);",
        &["mpi_info_create", "mpi_info_free"],
    ),
    (
        "session",
        "MPI_Session s; MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s); freed_session = (intptr_t)s; \
         MPI_Session_finalize(&s); MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &some_session);",
        &["mpi_session_init", "mpi_session_finalize"],
    ),
    (
        "datatype",
        "MPI_Datatype t; MPI_Type_contiguous(2, MPI_INT, &t); freed_datatype = (intptr_t)t; MPI_Type_free(&t);",
        &["mpi_type_contiguous", "mpi_type_free"],
    ),
    (
        "operation",
        "MPI_Op o; MPI_Op_create(user, 1, &o); freed_operation = (intptr_t)o; MPI_Op_free(&o);",
        &["mpi_op_create", "mpi_op_free"],
    ),
    (
        "errhandler",
        "MPI_Errhandler e; MPI_Comm_create_errhandler(handler, &e); freed_errhandler = (intptr_t)e; \
         MPI_Errhandler_free(&e);",
        &["mpi_comm_create_errhandler", "mpi_errhandler_free"],
    ),
];

/// Returns the invalid arguments for one parameter: description, C expression, and expected error class.
fn bad_arguments(table: &Table, function: &Function, arg: &Arg) -> Vec<(String, String, String)> {
    let kind = arg.param.kind.as_str();
    let mut all = Vec::new();
    if let (Some(handle), true) = (table.handle(kind), arg.param.dir != Direction::Out) {
        let null_is_valid = arg.param.null_handle_is_valid(table);
        for (what, value) in bad_values(table, kind) {
            if what == "null handle" && null_is_valid {
                continue;
            }
            let passed = if arg.pointer { format!("({} *)&bad", arg.c_type) } else { format!("({})bad", arg.c_type) };
            all.push((format!("is a {what}"), format!("(bad = {value}, {passed})"), handle.error.clone()));
        }
    }
    for (value, class) in entry::refused(table, function, arg) {
        let what = if value == "0" { "is a null pointer" } else { "is negative" };
        all.push((what.into(), value.into(), class.into()));
    }
    all
}

/// Appends the calls for one function (or its large-count form) to `out`. Returns their number.
fn calls(table: &Table, function: &Function, large: bool, out: &mut String) -> usize {
    let name = if large { format!("{}_c", function.name) } else { function.name.clone() };
    let args = table.args(function, large);
    let mut made = 0;
    for (at, arg) in args.iter().enumerate() {
        for (what, bad, class) in bad_arguments(table, function, arg) {
            let passed: Vec<String> = args
                .iter()
                .enumerate()
                .map(|(n, other)| if n == at { bad.clone() } else { valid(other, table, function, n) })
                .collect();
            let call = format!("check({name}({}), {class});", passed.join(", "));
            writeln!(out, "  if (say(\"{name}\", \"{} {what}\")) {call}", arg.param.name).unwrap();
            made += 1;
        }
    }
    made
}

const PROLOGUE: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long room[20][1024];
static char now[200];
static int failures;
/* -2: there is none */
static intptr_t freed_communicator = -2, freed_group = -2, freed_info = -2, freed_datatype = -2, freed_operation = -2,
                freed_errhandler = -2, freed_session = -2;
static MPI_Info some_info = MPI_INFO_NULL;
static MPI_Comm some_ring;
static MPI_Group some_group;
static MPI_Win some_window = MPI_WIN_NULL;
static MPI_File some_file = MPI_FILE_NULL;
static MPI_Request some_receive = MPI_REQUEST_NULL;
static MPI_Session some_session = MPI_SESSION_NULL;

static int say(const char *function, const char *what)
{
    memset(room, 0, sizeof room);
    snprintf(now, sizeof now, "%s: %s", function, what);
    printf("%s\n", now);
    alarm(20);
    return 1;
}

static void check(int code, int wanted)
{
    int class = -1;
    MPI_Error_class(code, &class);
    if (class != wanted && !(wanted == MPI_ERR_REQUEST && class == MPI_ERR_IN_STATUS)) {
        fprintf(stderr, "%s: error class %d instead of %d\n", now, class, wanted);
        failures++;
    }
}

static void user(void *in, void *inout, int *len, MPI_Datatype *type) { (void)in; (void)inout; (void)len; (void)type; }
static void handler(MPI_Comm *comm, int *code, ...) { (void)comm; (void)code; }
"#;

#[test]
fn a_bad_handle_anywhere_gives_the_class_of_its_kind() {
    let glue = glue();
    let done = |name: &str| glue.contains_key(name);
    if !(done("mpi_init") && done("mpi_comm_set_errhandler")) {
        return; // no call is possible before MPI can be initialised
    }
    let table = Table::load();
    let mut program = String::from(PROLOGUE);
    program.push_str(
        "int main(void)\n{\n  intptr_t bad; int stack = 0;\n  setvbuf(stdout, 0, _IONBF, 0);\n  MPI_Init(0, 0);\n",
    );
    program.push_str("  (void)user; (void)handler; (void)stack;\n");
    program.push_str(
        "  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); MPI_Comm_set_errhandler(MPI_COMM_WORLD, \
         MPI_ERRORS_RETURN);\n",
    );
    program.push_str("  int one = 1; MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &some_ring);\n");
    program.push_str("  MPI_Comm_group(MPI_COMM_SELF, &some_group);\n");
    if done("mpi_win_create") && done("mpi_precv_init") {
        program.push_str(
            "  MPI_Win_create(0, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &some_window);\n  \
             MPI_Win_set_errhandler(some_window, MPI_ERRORS_RETURN);\n  MPI_Precv_init(&one, 1, 1, MPI_INT, 0, 0, \
             MPI_COMM_SELF, MPI_INFO_NULL, &some_receive);\n",
        );
    }
    if done("mpi_file_open") {
        program.push_str(
            "  MPI_File_open(MPI_COMM_SELF, \"some_file\", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, \
             MPI_INFO_NULL, &some_file);\n",
        );
    }
    for (_, code, needs) in FREED {
        if needs.iter().all(|name| done(name)) {
            writeln!(program, "  {{ {code} }}").unwrap();
        }
    }
    let mut made = 0;
    for function in &table.functions {
        if !done(&function.name.to_lowercase())
            || NOT_CALLED.contains(&function.name.as_str())
            || function.chapter == "Tool support"
        {
            continue;
        }
        made += calls(&table, function, false, &mut program);
        if function.large {
            made += calls(&table, function, true, &mut program);
        }
    }
    program.push_str("  if (failures) fprintf(stderr, \"%d failures\\n\", failures);\n  _exit(failures != 0);\n}\n");
    assert!(made > 100, "only {made} calls were generated");
    let shop = Workshop::new();
    shop.write("handles.c", &program);
    shop.compile_mpi("handles", "handles.c");
    let ran = shop.run("handles", &[]);
    assert_eq!(ran.code, Some(0), "last call: {:?}\n{}", ran.stdout.lines().last(), ran.stderr);
}
