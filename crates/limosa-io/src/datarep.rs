//! Data representations (MPI-5 section 14.5).
//!
//! | name | in the file |
//! |---|---|
//! | `native` | the bytes of memory |
//! | `internal` | the same: all processes of a job have the same representation of processor |
//! | `external32` | as `MPI_Pack_external` writes them |
//! | registered ones | as functions of the program write them |
//!
//! Data in another representation are converted as a whole, between the program's buffer and a byte stream that then
//! moves to or from the pieces of a view like other data. Etypes and filetypes are rebuilt from elements that have the
//! lengths of the representation; displacements in bytes are already those in the file.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use parking_lot::Mutex;

/// A conversion function of the program: user buffer, datatype, count, file buffer, position.
pub type Conversion = Arc<dyn Fn(*mut u8, &Arc<Datatype>, i64, *mut u8, i64) -> Result<()> + Send + Sync>;
/// The program's function that returns the length of a predefined type in the file.
pub type Extent = Arc<dyn Fn(&Arc<Datatype>) -> Result<i64> + Send + Sync>;

/// A data representation.
pub struct Datarep {
    name: String,
    representation: Representation,
}

enum Representation {
    Native,
    External32,
    User { read: Option<Conversion>, write: Option<Conversion>, extent: Extent },
}

static REGISTERED: LazyLock<Mutex<HashMap<String, Arc<Datarep>>>> = LazyLock::new(Mutex::default);

fn predefined(name: &str) -> Option<Arc<Datarep>> {
    let representation = match name {
        "native" | "internal" => Representation::Native,
        "external32" => Representation::External32,
        _ => return None,
    };
    Some(Arc::new(Datarep { name: name.to_owned(), representation }))
}

/// Performs `MPI_Register_datarep`. A conversion that is `None` copies.
///
/// # Errors
/// `MPI_ERR_DUP_DATAREP`, `MPI_ERR_ARG`.
pub fn register(name: &str, read: Option<Conversion>, write: Option<Conversion>, extent: Extent) -> Result<()> {
    if name.is_empty() || name.len() > MPI_MAX_DATAREP_STRING as usize - 1 {
        fail!(
            MPI_ERR_ARG,
            "the name of a data representation must have 1 to {} bytes, but this one has {}",
            MPI_MAX_DATAREP_STRING - 1,
            name.len()
        );
    }
    let mut registered = REGISTERED.lock();
    if predefined(name).is_some() || registered.contains_key(name) {
        fail!(MPI_ERR_DUP_DATAREP, "there is a data representation \"{name}\" already");
    }
    let datarep = Datarep { name: name.to_owned(), representation: Representation::User { read, write, extent } };
    registered.insert(name.to_owned(), Arc::new(datarep));
    Ok(())
}

impl Datarep {
    /// Returns the `native` representation.
    pub fn native() -> Arc<Datarep> {
        static NATIVE: LazyLock<Arc<Datarep>> = LazyLock::new(|| predefined("native").expect("it is predefined"));
        NATIVE.clone()
    }

    /// Returns the representation of this name.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_DATAREP`.
    pub fn find(name: &str) -> Result<Arc<Datarep>> {
        if let Some(found) = predefined(name).or_else(|| REGISTERED.lock().get(name).cloned()) {
            return Ok(found);
        }
        fail!(
            MPI_ERR_UNSUPPORTED_DATAREP,
            "there is no data representation \"{name}\": there are \"native\", \"internal\", \"external32\", and those \
             that MPI_Register_datarep has made known"
        )
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the data in the file equal those in memory, for a direction.
    pub fn copies(&self, is_write: bool) -> bool {
        match &self.representation {
            Representation::Native => true,
            Representation::External32 => false,
            Representation::User { read, write, .. } => {
                if is_write {
                    write.is_none()
                } else {
                    read.is_none()
                }
            }
        }
    }

    /// Returns a type in file representation.
    ///
    /// # Errors
    /// Those of the program's function.
    pub(crate) fn in_file(&self, datatype: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        let translated = match &self.representation {
            Representation::Native => return Ok(datatype.clone()),
            Representation::External32 if datatype.external_size(1)? == datatype.size() => return Ok(datatype.clone()),
            Representation::External32 => translate(datatype, &|basic| basic.external_size(1))?,
            Representation::User { extent, .. } => translate(datatype, &**extent)?,
        };
        translated.commit();
        Ok(translated)
    }

    /// Converts data to be written.
    ///
    /// # Errors
    /// `MPI_ERR_CONVERSION`, `MPI_ERR_NO_MEM`, and those of the program's function.
    ///
    /// # Safety
    /// `base` must point to that many readable elements.
    pub(crate) unsafe fn pack(&self, base: *mut u8, datatype: &Arc<Datatype>, count: i64) -> Result<Vec<u8>> {
        let mut packed = room(self.in_file(datatype)?.bytes_of(count)?)?;
        match &self.representation {
            // SAFETY: the caller's promise.
            Representation::External32 => unsafe { datatype.pack_external(base, count, &mut packed, &mut 0)? },
            Representation::User { write: Some(write), .. } => write(base, datatype, count, packed.as_mut_ptr(), 0)?,
            // SAFETY: the caller's promise.
            _ => unsafe { datatype.pack_elements(base, count, &mut packed, &mut 0)? },
        }
        Ok(packed)
    }

    /// Converts data that were read into the program's buffer. Returns the number of bytes there.
    ///
    /// # Errors
    /// As for [`Datarep::pack`].
    ///
    /// # Safety
    /// `base` must point to that many writable elements.
    pub(crate) unsafe fn unpack(&self, packed: &mut [u8], base: *mut u8, datatype: &Arc<Datatype>) -> Result<u64> {
        let each = self.in_file(datatype)?.size();
        let count = if each == 0 { 0 } else { packed.len() as i64 / each };
        match &self.representation {
            // SAFETY: the caller's promise.
            Representation::External32 => unsafe { datatype.unpack_external(packed, &mut 0, base, count)? },
            Representation::User { read: Some(read), .. } => read(base, datatype, count, packed.as_mut_ptr(), 0)?,
            // SAFETY: the caller's promise.
            _ => unsafe { datatype.unpack_elements(packed, &mut 0, base, count)? },
        }
        Ok((count * datatype.size()) as u64)
    }
}

/// Allocates so many zeros.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub(crate) fn room(bytes: i64) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    let Ok(bytes) = usize::try_from(bytes) else { fail!(MPI_ERR_COUNT, "{bytes} bytes exceed the address space") };
    if room.try_reserve_exact(bytes).is_err() {
        fail!(MPI_ERR_NO_MEM, "there is not enough memory for {bytes} bytes of a file");
    }
    room.resize(bytes, 0);
    Ok(room)
}

/// Rebuilds a type from basic elements of other lengths.
fn translate(datatype: &Arc<Datatype>, length: &dyn Fn(&Arc<Datatype>) -> Result<i64>) -> Result<Arc<Datatype>> {
    if datatype.is_predefined() {
        return Datatype::contiguous(length(datatype)?.max(0), &Datatype::named(MPI_BYTE));
    }
    let contents = datatype.contents()?;
    let types = contents.types.iter().map(|old| translate(old, length)).collect::<Result<Vec<_>>>()?;
    // The large-count form has everything in one list, in the order of the arguments.
    let is_array = matches!(contents.combiner, MPI_COMBINER_SUBARRAY | MPI_COMBINER_DARRAY);
    let all: Vec<i64> = match is_array {
        true => contents.integers.iter().chain(&contents.large_counts).copied().collect(),
        false => contents.integers.iter().chain(&contents.large_counts).chain(&contents.addresses).copied().collect(),
    };
    let old = &types[0];
    let n = all.first().copied().unwrap_or(0) as usize;
    match contents.combiner {
        MPI_COMBINER_DUP => Ok(old.clone()),
        MPI_COMBINER_CONTIGUOUS => Datatype::contiguous(all[0], old),
        MPI_COMBINER_VECTOR => Datatype::vector(all[0], all[1], all[2], old),
        MPI_COMBINER_HVECTOR => Datatype::hvector(all[0], all[1], all[2], old),
        MPI_COMBINER_INDEXED => Datatype::indexed(&all[1..=n], &all[n + 1..2 * n + 1], old),
        MPI_COMBINER_HINDEXED => Datatype::hindexed(&all[1..=n], &all[n + 1..2 * n + 1], old),
        MPI_COMBINER_INDEXED_BLOCK => Datatype::indexed_block(all[1], &all[2..n + 2], old),
        MPI_COMBINER_HINDEXED_BLOCK => Datatype::hindexed_block(all[1], &all[2..n + 2], old),
        MPI_COMBINER_STRUCT => Datatype::structure(&all[1..=n], &all[n + 1..2 * n + 1], &types),
        MPI_COMBINER_RESIZED => Datatype::resized(old, all[0], all[1]),
        MPI_COMBINER_SUBARRAY | MPI_COMBINER_DARRAY => translate_array(contents.combiner, datatype, old),
        other => fail!(MPI_ERR_TYPE, "a type made by combiner {other} cannot be the etype or filetype of a view"),
    }
}

fn translate_array(combiner: i32, datatype: &Arc<Datatype>, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
    let contents = datatype.contents()?;
    let (integers, counts) = (&contents.integers, &contents.large_counts);
    if combiner == MPI_COMBINER_SUBARRAY {
        let n = integers[0] as usize;
        let order = *integers.last().expect("the order") as i32;
        let of = |i: usize| match counts.is_empty() {
            true => &integers[1 + i * n..1 + (i + 1) * n],
            false => &counts[i * n..(i + 1) * n],
        };
        return Datatype::subarray(of(0), of(1), of(2), order, old);
    }
    let n = integers[2] as usize;
    let (gsizes, rest) = match counts.is_empty() {
        true => (&integers[3..3 + n], &integers[3 + n..]),
        false => (&counts[..n], &integers[3..]),
    };
    let ints = |from: usize| rest[from..from + n].iter().map(|int| *int as i32).collect::<Vec<i32>>();
    let (size, rank, order) = (integers[0] as i32, integers[1] as i32, rest[3 * n] as i32);
    Datatype::darray(size, rank, gsizes, &ints(0), &ints(n), &ints(2 * n), order, old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_get_the_lengths_of_the_representation() {
        let extent: Extent = Arc::new(|datatype| Ok(2 * datatype.size()));
        register("doubled", None, None, extent.clone()).unwrap();
        assert_eq!(register("doubled", None, None, extent).unwrap_err().class, MPI_ERR_DUP_DATAREP);
        let doubled = Datarep::find("doubled").unwrap();
        let int = Datatype::named(MPI_INT);
        let vector = Datatype::vector(3, 2, 4, &int).unwrap();
        let sub = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], MPI_ORDER_C, &int).unwrap();
        let indexed = Datatype::indexed(&[1, 2], &[3, 5], &int).unwrap();
        for (native, size, true_lb, extent) in [(vector, 48, 0, 80), (sub, 48, 64, 192), (indexed, 24, 24, 32)] {
            let there = doubled.in_file(&native).unwrap();
            assert_eq!((there.size(), there.true_lb(), there.extent()), (size, true_lb, extent), "{native:?}");
        }
    }

    #[test]
    fn unknown_representations_are_refused() {
        assert_eq!(Datarep::find("utf8").map(|_| ()).unwrap_err().class, MPI_ERR_UNSUPPORTED_DATAREP);
        assert!(Datarep::find("internal").unwrap().copies(true));
    }
}
