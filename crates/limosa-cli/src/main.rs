//! The `limosa` command; see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    limosa_cli::main()
}
