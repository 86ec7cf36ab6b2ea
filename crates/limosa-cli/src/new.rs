//! `limosa new`: writes a commented first program and its test into a folder.

use std::fs::{File, create_dir_all};
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum, ValueHint};

use crate::exit;
use crate::message::{print, say};

/// Options of `limosa new`.
#[derive(Args)]
pub struct Options {
    /// Language of the program
    #[arg(value_enum, ignore_case = true)]
    language: Language,
    /// Folder for its files, made if it is not there; without it `first-LANGUAGE`
    #[arg(value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

/// Languages with a first program.
#[derive(Clone, Copy, ValueEnum)]
enum Language {
    #[value(alias = "py")]
    Python,
    C,
    #[value(name = "c++", aliases = ["cpp", "cxx", "cc"])]
    Cpp,
    #[value(aliases = ["f90", "f"])]
    Fortran,
    #[value(aliases = ["matlab", "m"])]
    Octave,
    Java,
}

/// Files of a first program.
struct Program {
    /// Name and text of each file.
    files: &'static [(&'static str, &'static str)],
    /// Command that runs it, in its folder.
    run: &'static str,
    /// Command that tests it, in its folder.
    test: &'static str,
}

/// Lists files of the folder `templates`, each with its text.
macro_rules! templates {
    ($language:literal: $($name:literal),*) => {
        &[$(($name, include_str!(concat!("../templates/", $language, "/", $name)))),*]
    };
}

impl Language {
    fn program(self) -> Program {
        match self {
            Language::Python => Program {
                files: templates!("python": "first.py", "test_first.py"),
                run: "limosa run -n 4 first.py",
                test: "python -m pytest",
            },
            Language::C => Program {
                files: templates!("c": "first.c", "Makefile"),
                run: "make && limosa run -n 4 ./first",
                test: "make test",
            },
            Language::Cpp => Program {
                files: templates!("cpp": "first.cpp", "Makefile"),
                run: "make && limosa run -n 4 ./first",
                test: "make test",
            },
            Language::Fortran => Program {
                files: templates!("fortran": "first.f90", "Makefile"),
                run: "make && limosa run -n 4 ./first",
                test: "make test",
            },
            Language::Octave => Program {
                files: templates!("octave": "first.m", "circle_area.m", "test_first.m"),
                run: "limosa run -n 4 first.m",
                test: "limosa run -n 3 test_first.m",
            },
            Language::Java => Program {
                files: templates!("java": "First.java", "TestFirst.java"),
                run: "limosa run -n 4 First.java",
                test: "limosa run -n 3 TestFirst.java",
            },
        }
    }
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let program = options.language.program();
    let name = options.language.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let folder = options.folder.clone().unwrap_or_else(|| format!("first-{name}").into());
    let present = program.files.iter().map(|(file, _)| folder.join(file)).find(|file| file.symlink_metadata().is_ok());
    if let Some(file) = present {
        say(&format!("{} exists and is not overwritten", file.display()), Some("name another folder"));
        return ExitCode::from(exit::USAGE);
    }
    if let Err((place, error)) = write(&folder, program.files) {
        say(&format!("cannot write {}: {error}", place.display()), None);
        return ExitCode::from(exit::ENVIRONMENT);
    }
    for (file, _) in program.files {
        print(&format!("{}\n", folder.join(file).display()));
    }
    let enter = match folder.as_path() == Path::new(".") {
        true => String::new(),
        false => format!("cd {} && ", shlex::try_quote(&folder.to_string_lossy()).unwrap_or_default()),
    };
    say(&format!("to run it, type: {enter}{}", program.run), Some(&format!("then test it: {}", program.test)));
    ExitCode::SUCCESS
}

/// Writes the files; on failure gives the file or folder with the reason. A file that has appeared meanwhile stays.
fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), (PathBuf, Error)> {
    create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
    for (name, text) in files {
        let place = folder.join(name);
        File::create_new(&place)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| (place, error))?;
    }
    Ok(())
}
