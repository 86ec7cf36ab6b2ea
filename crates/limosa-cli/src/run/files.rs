//! `--output-filename`: what each rank writes goes to files of its own, as Open MPI names them:
//! `FOLDER/1/rank.N/stdout` and `stderr`, where the 1 stands for the job. A file has what the rank has written so far,
//! unfinished lines too.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::options::{Destination, Unusable};

/// The open files of all ranks.
pub struct RankFiles {
    /// For each rank stdout and stderr.
    files: Vec<[(PathBuf, File); 2]>,
    /// Where the folders of ranks are, and how many digits their numbers have.
    job: PathBuf,
    digits: usize,
    /// Output is shown by the launcher too.
    pub copy: bool,
}

impl RankFiles {
    /// Makes folders and files; files of the same names are emptied.
    pub fn create(to: &Destination, ranks: usize) -> Result<RankFiles, Unusable> {
        let digits = ranks.saturating_sub(1).to_string().len();
        let mut files = RankFiles { files: Vec::new(), job: to.folder.join("1"), digits, copy: to.copy };
        files.add(ranks)?;
        Ok(files)
    }

    /// Makes those of further ranks, up to `ranks` in all.
    pub fn add(&mut self, ranks: usize) -> Result<(), Unusable> {
        for rank in self.files.len()..ranks {
            let folder = self.job.join(format!("rank.{rank:0digits$}", digits = self.digits));
            fs::create_dir_all(&folder).map_err(|error| unusable("make the folder", &folder, &error))?;
            let file = |name: &str| {
                let path = folder.join(name);
                let file = File::create(&path).map_err(|error| unusable("write the file", &path, &error))?;
                Ok((path, file))
            };
            self.files.push([file("stdout")?, file("stderr")?]);
        }
        Ok(())
    }

    /// Adds to the file of a rank's stdout (`kind` 0) or stderr (1). An error names the file.
    pub fn write(&mut self, rank: usize, kind: usize, bytes: &[u8]) -> Result<(), String> {
        let (path, file) = &mut self.files[rank][kind];
        file.write_all(bytes).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn unusable(what: &str, path: &Path, error: &io::Error) -> Unusable {
    let many = error.raw_os_error() == Some(libc::EMFILE);
    Unusable {
        what: format!("cannot {what} {} for the output of a rank: {error}", path.display()),
        hint: Some(match many {
            true => "each rank takes eight descriptors of the launcher: raise their limit (`ulimit -n`)".into(),
            false => "--output-filename takes a folder that can be written".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ranks_have_the_same_length() {
        let dir = tempfile::tempdir().expect("a folder");
        let to = Destination { folder: dir.path().join("new"), copy: true };
        let mut files = RankFiles::create(&to, 11).map_err(|error| error.what).expect("files");
        files.write(3, 1, b"a").expect("written");
        assert_eq!(fs::read(dir.path().join("new/1/rank.03/stderr")).expect("a file"), b"a");
        assert!(dir.path().join("new/1/rank.10/stdout").is_file());
    }
}
