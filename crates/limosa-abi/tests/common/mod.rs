//! Common code of the tests of the built library: its path, a folder to compile in, and runs with a time limit.

#![allow(dead_code)] // each test program uses its part

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use limosa_api::coverage::Glue;
use limosa_api::{Table, coverage, header};

/// Returns the path of the library. Cargo does not build a `cdylib` for the tests of its own package, so the first
/// caller builds it, beside the tests: with the features of the dependencies that the tests of the workspace have, so
/// that only this crate is compiled.
pub fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let test = std::env::current_exe().expect("a running program has a path");
        let profile = test.ancestors().nth(2).expect("the test is in target/<profile>/deps");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--workspace", "--lib", "--test", "abi", "--target-dir"])
            .arg(profile.parent().expect("target"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo starts").success(), "the library does not build");
        profile.join("libmpi_abi.so")
    };
    BUILT.get_or_init(build).clone()
}

/// Returns the glue of the implemented functions.
pub fn glue() -> HashMap<String, Glue> {
    coverage::scan(&Table::load(), &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/calls"))
}

/// A folder to compile and run C programs in, with `mpi.h`.
pub struct Workshop(tempfile::TempDir);

/// Outcome of a program.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Workshop {
    pub fn new() -> Workshop {
        let shop = Workshop(tempfile::tempdir().expect("a temporary folder"));
        shop.write("mpi.h", &header::render(&Table::load()));
        shop
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), text).expect("the folder is writable");
    }

    /// Runs a compiler in the folder, which must succeed.
    pub fn compile(&self, compiler: &str, args: &[&str]) {
        let output = Command::new(compiler).arg("-I.").args(args).current_dir(&self.0).output();
        let output =
            output.unwrap_or_else(|e| panic!("{compiler} cannot be started ({e}): install a C and C++ compiler"));
        assert!(output.status.success(), "{compiler} {args:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Compiles a program against the library.
    pub fn compile_mpi(&self, program: &str, source: &str) {
        let library = library();
        let folder = library.parent().expect("in a folder").display();
        self.compile(
            "cc",
            &["-o", program, source, library.to_str().unwrap(), &format!("-Wl,-rpath,{folder}"), "-ldl"],
        );
        // The program requests the library by its soname, which Cargo's output does not have.
        let link = self.0.path().join("libmpi_abi.so.1");
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link).expect("the folder is writable");
        }
    }

    /// Runs a program of the folder to its end.
    pub fn run(&self, program: &str, args: &[&str]) -> Ran {
        let output = Command::new(self.0.path().join(program))
            .args(args)
            .env("LD_LIBRARY_PATH", self.0.path())
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("{program} cannot be started: {e}"));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
