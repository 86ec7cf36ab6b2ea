//! Agreement between the processes of a file.

use limosa_mpi::comm::Comm;
use limosa_mpi::consts::MPI_ERR_IO;
use limosa_mpi::error::{Error, ErrorClass, Result};

/// Maximum bytes of an error's sentence that other processes receive.
const TEXT: usize = 232;

/// Exchanges the outcomes of all processes, and `words` of each. Returns the words in rank order.
///
/// # Errors
/// This process's own, otherwise that of the first process that has one.
pub(crate) fn on<T, const N: usize>(comm: &Comm, mine: Result<T>, words: [u64; N]) -> Result<(T, Vec<[u64; N]>)> {
    let mut record = vec![0u8; 8 + TEXT + 8 * N];
    if let Err(error) = &mine {
        let text = &error.detail.as_bytes()[..error.detail.len().min(TEXT)];
        record[..4].copy_from_slice(&error.class.to_ne_bytes());
        record[4..8].copy_from_slice(&(text.len() as u32).to_ne_bytes());
        record[8..8 + text.len()].copy_from_slice(text);
    }
    for (place, word) in record[8 + TEXT..].chunks_exact_mut(8).zip(&words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let all = limosa_coll::allgather_bytes(comm, &record)?;
    let mine = mine?;
    let mut told = Vec::with_capacity(comm.size());
    for (rank, record) in all.chunks_exact(record.len()).enumerate() {
        let class = ErrorClass::from_ne_bytes(record[..4].try_into().expect("four bytes"));
        if class != 0 {
            let len = u32::from_ne_bytes(record[4..8].try_into().expect("four bytes")) as usize;
            let text = String::from_utf8_lossy(&record[8..8 + len.min(TEXT)]).into_owned();
            return Err(Error::new(class, format!("rank {rank} of the file has failed: {text}")));
        }
        let mut of_rank = [0; N];
        for (word, bytes) in of_rank.iter_mut().zip(record[8 + TEXT..].chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        }
        told.push(of_rank);
    }
    Ok((mine, told))
}

/// Exchanges the outcomes of all processes.
///
/// # Errors
/// As for [`on`].
pub(crate) fn on_outcome<T>(comm: &Comm, mine: Result<T>) -> Result<T> {
    on(comm, mine, []).map(|(mine, _)| mine)
}

/// Exchanges one set of words per process.
///
/// # Errors
/// Errors of the machine.
pub(crate) fn words<const N: usize>(comm: &Comm, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let all = limosa_coll::allgather_bytes(comm, &bytes)?;
    if all.len() != bytes.len() * comm.size() {
        return Err(Error::new(MPI_ERR_IO, "the processes of the file did not agree"));
    }
    let of_rank = |bytes: &[u8]| {
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        }
        words
    };
    Ok(all.chunks_exact(bytes.len()).map(of_rank).collect())
}

/// Fails at all processes unless all have passed the same value.
///
/// # Errors
/// `MPI_ERR_NOT_SAME`, and those of [`on`].
pub(crate) fn on_same(comm: &Comm, mine: Result<()>, value: u64, what: &str) -> Result<()> {
    let ((), all) = on(comm, mine, [value])?;
    match all.iter().position(|[other]| *other != all[0][0]) {
        None => Ok(()),
        Some(rank) => limosa_mpi::fail!(
            MPI_ERR_NOT_SAME,
            "{what} must be the same at all processes of the file, but ranks 0 and {rank} have passed different ones"
        ),
    }
}
