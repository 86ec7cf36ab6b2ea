//! `limosa doctor PROGRAM`: for which MPI a program, an extension module or a library was compiled, and what `limosa
//! run` makes of it.
//!
//! What tells are the names of the libraries that the file asks for, and those that these ask for in turn.

use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, StringTable};

use super::{Finding, fail, ok, warn};
use crate::installation::{self, Translation};

const WHAT: &str = "program";

/// An MPI that a program can be compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abi {
    Standard,
    Mpich,
    OpenMpi,
    /// A part of MPICH that the translation has not: Fortran, C++.
    PartOfMpich,
    /// Likewise of Open MPI, and its versions with other binary interfaces.
    PartOfOpenMpi,
}

impl Abi {
    /// Returns the MPI of a library with this name, if it is one.
    fn of(name: &str) -> Option<Abi> {
        let (stem, version) = name.split_once(".so").unwrap_or((name, ""));
        // Wheels put a hash behind the name: libmpi-1a2b3c4d.so.12.
        let stem = stem.split_once('-').map_or(stem, |(stem, _)| stem);
        let of_mpich = version.starts_with(".12");
        match stem {
            "libmpi_abi" => Some(Abi::Standard),
            "libmpi" | "libmpich" if of_mpich => Some(Abi::Mpich),
            "libmpi" | "libmpi_cxx" if version.starts_with(".40") => Some(Abi::OpenMpi),
            "libmpi" | "libmpi_cxx" | "libmpi_mpifh" | "libmpi_java" if !version.is_empty() => Some(Abi::PartOfOpenMpi),
            _ if stem.starts_with("libmpi_usempi") => Some(Abi::PartOfOpenMpi),
            "libmpifort" | "libmpicxx" | "libmpichfort" | "libmpichcxx" if of_mpich => Some(Abi::PartOfMpich),
            _ => None,
        }
    }

    /// True if both are of one MPI.
    fn goes_with(self, other: Abi) -> bool {
        let family = |abi| match abi {
            Abi::PartOfMpich => Abi::Mpich,
            Abi::PartOfOpenMpi => Abi::OpenMpi,
            _ => abi,
        };
        family(self) == family(other)
    }

    fn text(self) -> &'static str {
        match self {
            Abi::Standard => "the MPI-5 standard ABI",
            Abi::Mpich | Abi::PartOfMpich => "MPICH's ABI (MPICH, Intel MPI, Cray MPICH, MVAPICH)",
            Abi::OpenMpi | Abi::PartOfOpenMpi => "Open MPI's ABI",
        }
    }
}

/// What the dynamic linker is told by a file.
#[derive(Debug, Default)]
struct Dynamic {
    needed: Vec<String>,
    /// Folders that come before those of `LD_LIBRARY_PATH`.
    rpath: Vec<PathBuf>,
    /// Folders that come after them.
    runpath: Vec<PathBuf>,
}

/// Reads the dynamic section of a file; `None` if it is no 64-bit ELF file.
fn dynamic(file: &Path) -> Option<Dynamic> {
    let data = std::fs::read(file).ok()?;
    let header = FileHeader64::<Endianness>::parse(&*data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*data).ok()?;
    let entries = segments.iter().find_map(|segment| segment.dynamic(endian, &*data).ok()?);
    let mut found = Dynamic::default();
    let Some(entries) = entries else { return Some(found) };
    let value =
        |tag: u32| entries.iter().find(|entry| entry.tag32(endian) == Some(tag)).map(|entry| entry.d_val(endian));
    let (strings, size) = (value(object::elf::DT_STRTAB)?, value(object::elf::DT_STRSZ)?);
    // The table's address, as a place in the file.
    let start = segments.iter().find_map(|segment| {
        let (address, length): (u64, u64) = (segment.p_vaddr(endian), segment.p_filesz(endian));
        let is_inside =
            segment.p_type(endian) == object::elf::PT_LOAD && (address..address + length).contains(&strings);
        is_inside.then(|| segment.p_offset(endian) + (strings - address))
    })?;
    let table = StringTable::new(&*data, start, start + size);
    let folder = file.canonicalize().ok()?.parent()?.to_owned();
    for entry in entries {
        let Some(tag) = entry.tag32(endian) else { continue };
        if ![DT_NEEDED, DT_RPATH, DT_RUNPATH].contains(&tag) {
            continue;
        }
        let text = table.get(u32::try_from(entry.d_val(endian)).ok()?).ok()?;
        let text = String::from_utf8_lossy(text).into_owned();
        let folders = || {
            let origin = folder.to_string_lossy();
            let text = text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
            std::env::split_paths(&text).collect::<Vec<_>>()
        };
        match tag {
            DT_NEEDED => found.needed.push(text),
            DT_RPATH => found.rpath.extend(folders()),
            _ => found.runpath.extend(folders()),
        }
    }
    Some(found)
}

/// Finds a library that a file asks for.
fn find(name: &str, asked_by: &Dynamic) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(name.into());
    }
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    let of_machine = [
        format!("/lib/{}-linux-gnu", std::env::consts::ARCH),
        format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH),
    ];
    let rpath = if asked_by.runpath.is_empty() { asked_by.rpath.clone() } else { Vec::new() };
    let folders = rpath.into_iter().chain(std::env::split_paths(&listed)).chain(asked_by.runpath.clone());
    let folders = folders.chain(of_machine.map(PathBuf::from)).chain(usual);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// An MPI library that a file asks for.
struct Asked {
    abi: Abi,
    library: String,
    by: PathBuf,
    /// Where the dynamic linker finds it, whatever `limosa run` puts in front.
    fixed: Option<PathBuf>,
}

/// Lists the MPI libraries that a file asks for, and those that its libraries ask for.
fn asked(file: &Path, of_file: &Dynamic) -> Vec<Asked> {
    let list = |file: &Path, of_file: &Dynamic| {
        let asked = of_file.needed.iter().filter_map(|name| {
            let fixed = if of_file.runpath.is_empty() { &of_file.rpath[..] } else { &[] };
            let fixed = fixed.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
            Abi::of(name).map(|abi| Asked { abi, library: name.clone(), by: file.to_owned(), fixed })
        });
        asked.collect::<Vec<_>>()
    };
    let mut all = list(file, of_file);
    for name in of_file.needed.iter().filter(|name| Abi::of(name).is_none()) {
        if let Some((library, needed)) =
            find(name, of_file).and_then(|library| Some((library.clone(), dynamic(&library)?)))
        {
            all.extend(list(&library, &needed));
        }
    }
    all
}

/// The file that a word of a command line names.
fn file_of(program: &Path) -> Option<PathBuf> {
    let has_folder = program.components().count() > 1 || program.is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = || std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    if has_folder { program.is_file().then(|| program.to_owned()) } else { in_path() }
}

/// Looks at a program.
pub fn look(program: &Path) -> Finding {
    let Some(file) = file_of(program) else {
        return fail(WHAT, format!("{} is not there", program.display()), "name a file, or a command in PATH");
    };
    let Some(of_file) = dynamic(&file) else {
        return ok(
            WHAT,
            format!(
                "{} is no 64-bit ELF file: what it starts or loads decides; for a script of Python name the extension \
                 module that uses MPI (mpi4py's is `mpi4py/MPI.*.so`)",
                file.display()
            ),
        );
    };
    judge(&file, &asked(&file, &of_file), |translation| translation.find().is_some())
}

fn judge(file: &Path, all: &[Asked], has: impl Fn(&Translation) -> bool) -> Finding {
    let shown = file.display();
    let Some(first) = all.first() else {
        return ok(WHAT, format!("{shown} and its libraries ask for no MPI library; they may load one while they run"));
    };
    if let Some(other) = all.iter().find(|other| !other.abi.goes_with(first.abi)) {
        let text = format!(
            "two MPI libraries are mixed: {} asks for {} ({}), {} for {} ({}); each starts a job of its own",
            first.by.display(),
            first.library,
            first.abi.text(),
            other.by.display(),
            other.library,
            other.abi.text()
        );
        return fail(WHAT, text, "compile all parts for the same MPI: `limosa cc` compiles for the standard ABI");
    }
    let text = format!("{shown} was compiled for {} ({})", first.abi.text(), first.library);
    if let Some(fixed) = all.iter().find_map(|asked| asked.fixed.as_ref()).filter(|fixed| !installation::is_ours(fixed))
    {
        return warn(
            WHAT,
            format!(
                "{text}, and has the folder of {} fixed in it (DT_RPATH): it runs on that library",
                fixed.display()
            ),
            "`patchelf --remove-rpath` lets `limosa run` choose, or link it without `--disable-new-dtags`",
        );
    }
    let (translation, engine) = match first.abi {
        Abi::Standard => return ok(WHAT, format!("{text}: it runs on Limosa")),
        Abi::Mpich | Abi::PartOfMpich => (installation::MPICH, "MPICH"),
        Abi::OpenMpi | Abi::PartOfOpenMpi => (installation::OPEN_MPI, "Open MPI"),
    };
    let folder = translation.folder;
    if let Some(part) = all.iter().find(|asked| matches!(asked.abi, Abi::PartOfMpich | Abi::PartOfOpenMpi)) {
        return fail(
            WHAT,
            format!("{text}; the translation of that ABI has no {}", part.library),
            format!("`limosa run --mpi {folder}` runs it on {engine}"),
        );
    }
    if has(&translation) {
        return ok(WHAT, format!("{text}: it runs on Limosa through the translation of that ABI"));
    }
    fail(
        WHAT,
        format!(
            "{text}: the translation of that ABI, lib/limosa/{folder}/{}, is not beside this command",
            translation.library
        ),
        "install the limosa package again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn libraries_are_told_apart_by_their_names() {
        for (name, abi) in [
            ("libmpi_abi.so.1", Some(Abi::Standard)),
            ("libmpi.so.12", Some(Abi::Mpich)),
            ("libmpich.so.12", Some(Abi::Mpich)),
            ("libmpi-0a1b2c.so.12.3", Some(Abi::Mpich)),
            ("libmpi.so.40", Some(Abi::OpenMpi)),
            ("libmpi.so.40.40.11", Some(Abi::OpenMpi)),
            ("libmpi_cxx.so.40", Some(Abi::OpenMpi)),
            ("libmpi.so.20", Some(Abi::PartOfOpenMpi)),
            ("libmpi_mpifh.so.40", Some(Abi::PartOfOpenMpi)),
            ("libmpifort.so.12", Some(Abi::PartOfMpich)),
            ("libmpfr.so.6", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(Abi::of(name), abi, "{name}");
        }
    }

    #[test]
    fn what_a_program_asks_for_decides() {
        let asked = |abi, library: &str| Asked { abi, library: library.into(), by: "/x/a".into(), fixed: None };
        let of = |all: &[Asked]| judge(Path::new("/x/a"), all, |_| true);
        assert!(of(&[]).text.contains("ask for no MPI library"));
        let (mpich, standard) = (|| asked(Abi::Mpich, "libmpi.so.12"), || asked(Abi::Standard, "libmpi_abi.so.1"));
        assert!(of(&[standard()]).text.ends_with("it runs on Limosa"));
        assert!(of(&[mpich()]).text.ends_with("through the translation of that ABI"));
        assert!(judge(Path::new("/x/a"), &[mpich()], |_| false).level == Level::Fail);
        let mixed = of(&[mpich(), standard()]);
        assert!(mixed.level == Level::Fail && mixed.text.starts_with("two MPI libraries are mixed"), "{}", mixed.text);
        let openmpi = || asked(Abi::OpenMpi, "libmpi.so.40");
        assert!(of(&[openmpi()]).text.ends_with("through the translation of that ABI"));
        assert!(of(&[asked(Abi::PartOfOpenMpi, "libmpi_mpifh.so.40"), openmpi()]).level == Level::Fail);
        assert!(of(&[openmpi(), mpich()]).text.starts_with("two MPI libraries are mixed"));
        assert!(of(&[asked(Abi::PartOfMpich, "libmpifort.so.12"), mpich()]).level == Level::Fail);
        let fixed = Asked { fixed: Some("/opt/mpich/lib/libmpi.so.12".into()), ..mpich() };
        assert!(of(&[fixed]).level == Level::Warn);
    }

    #[test]
    fn a_program_without_mpi_is_read() {
        let found = look(&std::env::current_exe().unwrap());
        assert!(found.text.contains("ask for no MPI library"), "{}", found.text);
        assert!(look(Path::new("/no/such/file")).level == Level::Fail);
    }
}
