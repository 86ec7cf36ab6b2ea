//! Datatypes (MPI-5 chapter 5).
//!
//! A [`Datatype`] is used as `Arc<Datatype>`: derived types hold the types they were made from, operations hold the
//! types of their buffers, so freeing a handle never pulls a type from under its users. A type never changes, except
//! for its name, attributes, handle and the fact that it is committed do.
//!
//! | module | holds |
//! |---|---|
//! | [`named`] | the table of named types |
//! | `construct`, `array`, `unnamed` | the constructors: general, arrays, predefined types found by their properties |
//! | `shape` | how constructors arrange their old types, and the sizes and bounds that follow |
//! | [`contents`] | envelope and contents |
//! | `program`, `walk` | the normalised loop program and how it runs: pack, unpack, pieces |
//! | [`transfer`] | message regions, `MPI_Pack` and its sisters |
//! | `external` | the external32 representation |
//! | `held` | a reference for the time of an operation |
//! | [`elements`] | counting basic elements |
//! | [`signature`] | type signatures, as numbers |
//! | [`sequence`] | the same, to be compared in words |
//!
//! Contract
//! - All sizes, counts and displacements are 64 bits wide; a constructor whose result would not fit fails with
//!   `MPI_ERR_VALUE_TOO_LARGE`.
//! - Bounds follow section 5.1.6: a type with bound markers in its type map (set by resized, subarray and darray types,
//!   and inherited by types made of them) has the markers' bounds, whatever else is in it. Any other has those that
//!   enclose its old types with their bounds, the upper one rounded up so that the extent is a multiple of the
//!   strictest alignment among the basic types. (Where displacements break alignment, the standard's formula leaves out
//!   the padding of the last old type; other libraries and mpi4py count it, and so does this one.) Copies of length 0
//!   are ignored; a type map without entries has bounds 0.
//! - The standard's address `MPI_BOTTOM` is null, and displacements are then absolute addresses.

mod array;
mod construct;
pub mod contents;
pub mod elements;
mod external;
mod held;
pub mod named;
mod program;
pub mod sequence;
mod shape;
pub mod signature;
pub mod transfer;
mod unnamed;
mod walk;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;

use crate::attr;
use crate::consts::MPI_DATATYPE_NULL;
use crate::error::Result;
use crate::fail;
use contents::Maker;
pub use held::Held;
use named::{BASICS, Basic, PAIRS};
use program::Placed;
use sequence::Sequence;
use shape::Measure;

/// An MPI datatype.
pub struct Datatype {
    maker: Arc<Maker>,
    /// Made by a large-count constructor, which shows in envelope and contents.
    large: bool,
    measure: Measure,
    program: OnceLock<Placed>,
    /// Its basic types, computed at the first use.
    sequence: OnceLock<Sequence>,
    committed: AtomicBool,
    /// Bytes of an element if the type is committed and any number of elements lie without gaps from the base address
    /// on; 0 if not, or if not computed yet.
    dense: AtomicUsize,
    name: Mutex<Option<String>>,
    handle: AtomicUsize,
    /// Cached attributes.
    pub attributes: attr::Attributes,
}

/// Predefined types with a name, by the low byte of their handle.
static NAMED: LazyLock<Vec<Option<Arc<Datatype>>>> = LazyLock::new(|| {
    let mut table = vec![None; named::HANDLES];
    for basic in BASICS {
        table[slot(basic.handle)] = Some(named(basic.handle, Maker::Basic(basic)));
    }
    for pair in PAIRS {
        let part = |handle| table[slot(handle)].clone().expect("the table of pairs names basic types");
        let maker = Maker::pair(part(pair.value), part(pair.index), pair.name);
        table[slot(pair.handle)] = Some(named(pair.handle, maker));
    }
    table
});

fn slot(handle: i32) -> usize {
    (handle - MPI_DATATYPE_NULL) as usize
}

fn named(handle: i32, maker: Maker) -> Arc<Datatype> {
    let datatype = Datatype::make(maker).expect("named types are small");
    datatype.commit();
    datatype.set_handle(handle as usize);
    datatype
}

impl Datatype {
    /// Returns the predefined datatype of this handle value, `None` for any other value and for `MPI_DATATYPE_NULL`.
    pub fn builtin(handle: i32) -> Option<Arc<Datatype>> {
        let slot = handle.checked_sub(MPI_DATATYPE_NULL)?;
        NAMED.get(usize::try_from(slot).ok()?)?.clone()
    }

    /// Returns the named datatype of this handle value, which always exists; `None` for any other value.
    #[inline]
    pub fn always(handle: usize) -> Option<Held> {
        NAMED.get(handle.wrapping_sub(MPI_DATATYPE_NULL as usize))?.as_ref().map(Held::Always)
    }

    /// Returns the predefined datatype of one of the constants, `MPI_INT`.
    ///
    /// # Panics
    /// If the value is no datatype's.
    pub fn named(handle: i32) -> Arc<Datatype> {
        Datatype::builtin(handle).unwrap_or_else(|| panic!("{handle:#x} is not the handle of a named datatype"))
    }

    fn make(maker: Maker) -> Result<Arc<Datatype>> {
        let measure = Measure::of(&maker.shape())?;
        Ok(Arc::new(Datatype {
            maker: Arc::new(maker),
            large: false,
            measure,
            program: OnceLock::new(),
            sequence: OnceLock::new(),
            committed: AtomicBool::new(false),
            dense: AtomicUsize::new(0),
            name: Mutex::new(None),
            handle: AtomicUsize::new(0),
            attributes: attr::Attributes::new(attr::Kind::Datatype),
        }))
    }

    /// Another datatype object that is the same in all that constructors decide, for `MPI_Type_get_contents`, whose
    /// caller gets a handle of its own. Name and attributes stay behind.
    pub fn again(&self) -> Arc<Datatype> {
        let again = Datatype {
            maker: self.maker.clone(),
            large: self.large,
            measure: self.measure.clone(),
            program: self.program.clone(),
            sequence: self.sequence.clone(),
            committed: AtomicBool::new(self.is_committed()),
            dense: AtomicUsize::new(0),
            name: Mutex::new(None),
            handle: AtomicUsize::new(0),
            attributes: attr::Attributes::new(attr::Kind::Datatype),
        };
        Arc::new(again)
    }

    /// Marks a type that was just made as the work of a large-count constructor.
    ///
    /// # Panics
    /// If the type is already shared.
    pub fn into_large(mut self: Arc<Self>) -> Arc<Self> {
        Arc::get_mut(&mut self).expect("the type was just made").large = true;
        self
    }

    /// Data bytes of one element.
    pub fn size(&self) -> i64 {
        self.measure.size
    }

    /// Lower bound.
    pub fn lb(&self) -> i64 {
        self.measure.lb
    }

    /// Distance between consecutive elements.
    pub fn extent(&self) -> i64 {
        self.measure.ub - self.measure.lb
    }

    /// Lowest byte of the data.
    pub fn true_lb(&self) -> i64 {
        self.measure.data.map_or(0, |data| data.low)
    }

    /// Bytes from the lowest to the highest byte of the data.
    pub fn true_extent(&self) -> i64 {
        self.measure.data.map_or(0, |data| data.high - data.low)
    }

    /// Makes the type usable in communication. Committing again does nothing.
    pub fn commit(&self) {
        self.program();
        self.committed.store(true, Ordering::Release);
    }

    /// True once committed; named types always are.
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Acquire)
    }

    /// Returns the bytes of an element, if the type is committed and known to be without gaps: [`Datatype::region`]
    /// learns it.
    #[inline(always)]
    pub fn dense_bytes(&self) -> Option<usize> {
        Some(self.dense.load(Ordering::Relaxed)).filter(|&bytes| bytes != 0)
    }

    /// Fails unless the type is committed, for calls that move data.
    pub fn check_committed(&self) -> Result<()> {
        if !self.is_committed() {
            fail!(MPI_ERR_TYPE, "the datatype{} is not committed; call MPI_Type_commit first", self.quoted_name());
        }
        Ok(())
    }

    /// True for types that the standard defines, named or not. They cannot be freed.
    pub fn is_predefined(&self) -> bool {
        matches!(*self.maker, Maker::Basic(_) | Maker::Pair { .. } | Maker::F90 { .. })
    }

    /// Returns the basic type, if this is one: a named single value, or one selected by `MPI_Type_create_f90_*`.
    pub fn as_basic(&self) -> Option<&'static Basic> {
        match &*self.maker {
            Maker::Basic(basic) => Some(basic),
            Maker::F90 { same, .. } => same.as_basic(),
            _ => None,
        }
    }

    /// Returns the types of value and index, if this is a predefined pair type.
    pub fn as_pair(&self) -> Option<(&'static Basic, &'static Basic)> {
        match &*self.maker {
            Maker::Pair { parts, .. } => Some((parts[0].as_basic()?, parts[1].as_basic()?)),
            _ => None,
        }
    }

    /// Returns the name set by the program, else the standard's, else nothing.
    pub fn name(&self) -> String {
        if let Some(name) = &*self.name.lock() {
            return name.clone();
        }
        match &*self.maker {
            Maker::Basic(basic) => basic.name.to_owned(),
            Maker::Pair { name, .. } => (*name).to_owned(),
            _ => String::new(),
        }
    }

    /// Names the type.
    pub fn set_name(&self, name: &str) {
        *self.name.lock() = Some(name.to_owned());
    }

    /// Returns the name for messages: a space and the name, or nothing.
    fn quoted_name(&self) -> String {
        let name = self.name();
        if name.is_empty() { name } else { format!(" {name}") }
    }

    /// Returns the type in words, for messages: its name, or how it was made.
    pub fn describe(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("an unnamed {} datatype of {} bytes", self.maker.noun(), self.size()),
            name => name,
        }
    }

    /// Returns the handle under which the type is registered, for callbacks; 0 if it has none.
    pub fn handle(&self) -> usize {
        self.handle.load(Ordering::Relaxed)
    }

    /// Remembers the handle.
    pub fn set_handle(&self, handle: usize) {
        self.handle.store(handle, Ordering::Relaxed);
    }

    /// Returns the program of one element.
    fn program(&self) -> &Placed {
        self.program.get().unwrap_or_else(|| self.work_out_program())
    }

    /// Works out the programs of all types below first, each after those it is made of: types may be nested deeper than
    /// the stack has room for.
    #[cold]
    fn work_out_program(&self) -> &Placed {
        let mut open = vec![self];
        while let Some(&datatype) = open.last() {
            let known = open.len();
            open.extend(
                datatype.maker.shape().old_types().iter().map(|old| &**old).filter(|old| old.program.get().is_none()),
            );
            if open.len() == known {
                datatype.program.get_or_init(|| datatype.maker.shape().program());
                open.pop();
            }
        }
        self.program.get().expect("the last one worked out is this one")
    }
}

impl std::fmt::Debug for Datatype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Datatype({}, lb {}, extent {})", self.describe(), self.lb(), self.extent())
    }
}
