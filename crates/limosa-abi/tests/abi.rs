//! Tests of the built library and the generated header from outside: exported names, constants and layouts, unsupported
//! functions.
//!
//! Needs a C and a C++ compiler and `nm`, like the compilation of any MPI program.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

use common::{Workshop, glue, library};
use limosa_api::{Function, Table, Value, entry, header};

/// Its value in the ABI.
const MPI_ERR_UNSUPPORTED_OPERATION: i32 = 55;

#[test]
fn the_library_exports_the_functions_of_the_abi_and_of_its_own_header_and_nothing_else() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
        .expect("nm is part of binutils: install it");
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let table = Table::load();
    let names: Vec<String> = table.symbols().into_iter().flat_map(|(name, _, _)| [format!("P{name}"), name]).collect();
    let mut wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(wanted.len(), 2 * 664);
    wanted.extend(["limosa_mcast", "limosa_set_interrupt_hook"]);
    assert_eq!(exported.symmetric_difference(&wanted).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn the_library_has_the_name_that_programs_look_for() {
    let output =
        Command::new("readelf").arg("-d").arg(library()).output().expect("readelf is part of binutils: install it");
    assert!(String::from_utf8_lossy(&output.stdout).contains("soname: [libmpi_abi.so.1]"));
}

#[test]
fn the_header_is_clean_c_and_cxx_in_every_dialect() {
    let shop = Workshop::new();
    let program = "#include <mpi.h>\nint main(void) {\n  int (*f)(int *, char ***) = MPI_Init;\n  \
                   MPI_Status s[2];\n  MPI_Fint i[MPI_F_STATUS_SIZE];\n  \
                   s[0].MPI_TAG = 1;\n  MPI_Status_c2f(&s[0], i);\n  MPI_Status_f2c(i, &s[1]);\n  \
                   return (f != 0 && MPI_COMM_WORLD != MPI_COMM_NULL && s[1].MPI_TAG == 1) ? MPI_SUCCESS : \
                   MPI_Comm_c2f(MPI_COMM_SELF);\n}\n";
    let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "-o", "/dev/null"];
    for (compiler, file, dialects) in [
        ("cc", "clean.c", &["-std=c90", "-std=c99", "-std=c11", "-std=c17"][..]),
        ("c++", "clean.cc", &["-std=c++11", "-std=c++17"][..]),
    ] {
        shop.write(file, program);
        for dialect in dialects {
            shop.compile(compiler, &[&strict[..], &[dialect, file]].concat());
        }
    }
}

#[test]
fn constants_sizes_and_offsets_are_those_of_the_table() {
    let table = Table::load();
    let mut program = String::from("#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    let mut wanted = String::new();
    let mut expect = |expression: &str, value: i64| {
        writeln!(program, "  printf(\"%s %lld\\n\", \"{expression}\", (long long)(intptr_t)({expression}));").unwrap();
        writeln!(wanted, "{expression} {value}").unwrap();
    };
    for constant in table.constants.iter().filter(|c| c.c_type.is_some()) {
        match constant.value {
            Value::Int(value) => expect(&constant.name, value),
            _ => panic!("{} has no value", constant.name),
        }
    }
    for handle in &table.handles {
        expect(&format!("sizeof({})", handle.c_type), 8);
    }
    for name in ["MPI_Aint", "MPI_Count", "MPI_Offset"] {
        expect(&format!("sizeof({name})"), 8);
    }
    expect("sizeof(MPI_Status)", table.status.size as i64);
    for (field, _, count, offset) in &table.status.fields {
        expect(&format!("offsetof(MPI_Status, {field})"), *offset as i64);
        expect(&format!("sizeof(((MPI_Status *)0)->{field})"), 4 * *count as i64);
    }
    program.push_str("  return 0;\n}\n");
    let shop = Workshop::new();
    shop.write("facts.c", &program);
    shop.compile("cc", &["-o", "facts", "facts.c"]);
    assert_eq!(shop.run("facts", &[]).stdout, wanted);
}

#[test]
fn the_header_declares_every_function_of_the_library() {
    let text = header::render(&Table::load());
    for (name, _, _) in Table::load().symbols() {
        assert!(text.contains(&format!(" {name}(")) && text.contains(&format!(" P{name}(")), "{name} is not declared");
    }
}

/// Returns the exported functions that are not supported.
fn not_done(table: &Table) -> Vec<String> {
    let glue = glue();
    let done = |f: &Function| entry::converter(f).is_some() || glue.contains_key(&f.name.to_lowercase());
    table.symbols().into_iter().filter(|(_, function, _)| !done(function)).map(|(name, _, _)| name).collect()
}

#[test]
fn a_function_that_is_not_done_says_so_and_ends_the_job() {
    let shop = Workshop::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/abi/call.c");
    shop.compile("cc", &["-o", "call", source, "-ldl"]);
    let library = library();
    for name in not_done(&Table::load()) {
        let ran = shop.run("call", &[library.to_str().unwrap(), &name]);
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        for part in [
            &format!("error in {name}: this function is not implemented yet"),
            "MPI_ERR_UNSUPPORTED_OPERATION",
            "MPI_ERRORS_ARE_FATAL",
        ] {
            assert!(ran.stderr.contains(part), "{name}: {ran:?}");
        }
    }
}

#[test]
fn a_function_that_is_not_done_returns_an_error_that_names_it_if_asked_to() {
    let shop = Workshop::new();
    shop.compile_mpi("unsupported", concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/abi/unsupported.c"));
    let names = not_done(&Table::load());
    let both: Vec<String> = names.iter().flat_map(|name| [name.clone(), format!("P{name}")]).collect();
    let ran = shop.run("unsupported", &both.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = |name: &String| {
        let function = name.trim_start_matches('P');
        match function.starts_with("MPI_T_") {
            // Codes of the tool interface are its classes.
            true => format!(
                "{name} {MPI_ERR_UNSUPPORTED_OPERATION} MPI_ERR_UNSUPPORTED_OPERATION: the operation is not supported\n"
            ),
            false => format!(
                "{name} {MPI_ERR_UNSUPPORTED_OPERATION} {function}: this function is not implemented yet in this \
                 version of Limosa\n"
            ),
        }
    };
    let wanted: String = both.iter().map(line).collect();
    assert_eq!(ran.stdout, wanted);
}
