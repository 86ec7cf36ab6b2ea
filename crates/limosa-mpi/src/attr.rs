//! Attribute caching on communicators, datatypes and windows (MPI-5 section 7.7).
//!
//! Contract
//! - A *keyval* is an integer that names a kind of attribute together with what happens to its value when the object is
//!   duplicated ([`CopyRule`]) and when the attribute is removed ([`DeleteRule`]). It belongs to one [`Kind`] of
//!   object.
//! - An object owns one [`Attributes`]: the values set on it, in the order in which they were set. A value is a word of
//!   the size of a pointer and means nothing to this library.
//! - User callbacks run without any lock held, so that they may call the library, also about the same object.
//! - A callback's error code is passed on: an attribute whose delete callback fails is not deleted.
//! - Freeing a keyval takes its name out of use; attributes set under it keep it alive and can still be read and
//!   deleted.
//! - Removing all attributes goes from the last set to the first, the order which the standard asks for on
//!   `MPI_COMM_SELF`.
//! - Keyval numbers are never reused.
//!
//! The attributes that the standard predefines for `MPI_COMM_WORLD` are integers of the process ([`Predefined`]);
//! programs read them through pointers and cannot change them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::consts::{
    MPI_APPNUM, MPI_HOST, MPI_IO, MPI_KEYVAL_INVALID, MPI_LASTUSEDCODE, MPI_TAG_UB, MPI_UNIVERSE_SIZE, MPI_WIN_BASE,
    MPI_WIN_CREATE_FLAVOR, MPI_WIN_DISP_UNIT, MPI_WIN_MODEL, MPI_WIN_SIZE, MPI_WTIME_IS_GLOBAL,
};
use crate::error::Result;
use crate::fail;

/// The kinds of objects that carry attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Datatypes.
    Datatype,
    /// Windows.
    Window,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Kind::Comm => "communicators",
            Kind::Datatype => "datatypes",
            Kind::Window => "windows",
        }
    }
}

/// Copy callback: (handle of the old object, keyval, value) to the new object's value, or `None` if it gets none.
pub type CopyFn = Arc<dyn Fn(usize, i32, usize) -> Result<Option<usize>> + Send + Sync>;

/// Delete callback: (handle of the object, keyval, value).
pub type DeleteFn = Arc<dyn Fn(usize, i32, usize) -> Result<()> + Send + Sync>;

/// What becomes of an attribute when its object is duplicated.
pub enum CopyRule {
    /// The new object does not get it (`MPI_COMM_NULL_COPY_FN`).
    Forget,
    /// The new object gets the same value (`MPI_COMM_DUP_FN`).
    Share,
    /// The program decides.
    Ask(CopyFn),
}

/// What happens when an attribute is removed.
pub enum DeleteRule {
    /// Nothing (`MPI_COMM_NULL_DELETE_FN`).
    Ignore,
    /// Calls the callback of the program.
    Tell(DeleteFn),
}

/// A keyval: its number, the kind of object it is for, and its callbacks.
pub struct Keyval {
    number: i32,
    kind: Kind,
    copy: CopyRule,
    delete: DeleteRule,
}

/// Keyvals that programs made and did not free. Attributes hold their keyvals themselves.
static KEYVALS: Mutex<Option<FxHashMap<i32, Arc<Keyval>>>> = Mutex::new(None);

/// Numbers below are the standard's own; the next number to hand out.
static NEXT_KEYVAL: AtomicI32 = AtomicI32::new(0x1000);

/// Makes a keyval and returns its number (`MPI_Comm_create_keyval` and its sisters).
pub fn create_keyval(kind: Kind, copy: CopyRule, delete: DeleteRule) -> Result<i32> {
    let next = NEXT_KEYVAL.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1));
    let Ok(number) = next else { fail!(MPI_ERR_NO_MEM, "all keyval numbers are used up") };
    KEYVALS.lock().get_or_insert_default().insert(number, Arc::new(Keyval { number, kind, copy, delete }));
    Ok(number)
}

/// Takes a keyval out of use (`MPI_Comm_free_keyval` and its sisters). Attributes set under it live on.
pub fn free_keyval(kind: Kind, keyval: i32) -> Result<()> {
    find_keyval(kind, keyval)?;
    if let Some(keyvals) = KEYVALS.lock().as_mut() {
        keyvals.remove(&keyval);
    }
    Ok(())
}

fn find_keyval(kind: Kind, number: i32) -> Result<Arc<Keyval>> {
    if number == MPI_KEYVAL_INVALID {
        fail!(
            MPI_ERR_KEYVAL,
            "the keyval is MPI_KEYVAL_INVALID; make one with the create_keyval function for {}",
            kind.noun()
        );
    }
    if is_predefined(number) {
        fail!(MPI_ERR_KEYVAL, "keyval {number} is predefined; programs can only read it");
    }
    let found = KEYVALS.lock().as_ref().and_then(|keyvals| keyvals.get(&number).cloned());
    match found {
        Some(keyval) if keyval.kind == kind => Ok(keyval),
        Some(keyval) => {
            fail!(MPI_ERR_KEYVAL, "keyval {number} was made for {}, not for {}", keyval.kind.noun(), kind.noun())
        }
        None => fail!(MPI_ERR_KEYVAL, "{number} is not a keyval, or it was freed"),
    }
}

/// True for the keyvals of the standard itself.
pub fn is_predefined(keyval: i32) -> bool {
    matches!(
        keyval,
        MPI_TAG_UB
            | MPI_IO
            | MPI_HOST
            | MPI_WTIME_IS_GLOBAL
            | MPI_APPNUM
            | MPI_LASTUSEDCODE
            | MPI_UNIVERSE_SIZE
            | MPI_WIN_BASE
            | MPI_WIN_DISP_UNIT
            | MPI_WIN_SIZE
            | MPI_WIN_CREATE_FLAVOR
            | MPI_WIN_MODEL
    )
}

/// The attributes of one object.
pub struct Attributes {
    kind: Kind,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Clone)]
struct Entry {
    keyval: Arc<Keyval>,
    value: usize,
}

impl Entry {
    fn tell_delete(&self, object: usize) -> Result<()> {
        match &self.keyval.delete {
            DeleteRule::Ignore => Ok(()),
            DeleteRule::Tell(callback) => callback(object, self.keyval.number, self.value),
        }
    }

    fn copied_value(&self, object: usize) -> Result<Option<usize>> {
        match &self.keyval.copy {
            CopyRule::Forget => Ok(None),
            CopyRule::Share => Ok(Some(self.value)),
            CopyRule::Ask(callback) => callback(object, self.keyval.number, self.value),
        }
    }
}

impl Attributes {
    /// No attributes, on an object of this kind.
    pub fn new(kind: Kind) -> Attributes {
        Attributes { kind, entries: Mutex::new(Vec::new()) }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.lock().is_empty()
    }

    /// Sets a value; one already there is deleted first, as if by [`Attributes::delete`]. `object` is the handle that
    /// callbacks see.
    pub fn set(&self, object: usize, keyval: i32, value: usize) -> Result<()> {
        let keyval = match self.entry(keyval) {
            Some(old) => {
                old.tell_delete(object)?;
                self.forget(keyval);
                old.keyval
            }
            None => find_keyval(self.kind, keyval)?,
        };
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.keyval.number != keyval.number);
        entries.push(Entry { keyval, value });
        Ok(())
    }

    /// Returns the value set under a keyval, if any. Predefined attributes are not found here but in [`Predefined`].
    pub fn get(&self, keyval: i32) -> Result<Option<usize>> {
        match self.entry(keyval) {
            Some(entry) => Ok(Some(entry.value)),
            None => find_keyval(self.kind, keyval).map(|_| None),
        }
    }

    /// Removes a value after its delete callback agreed. Removing what is not set is no error.
    pub fn delete(&self, object: usize, keyval: i32) -> Result<()> {
        match self.entry(keyval) {
            Some(entry) => {
                entry.tell_delete(object)?;
                self.forget(keyval);
                Ok(())
            }
            None => find_keyval(self.kind, keyval).map(|_| ()),
        }
    }

    /// Removes everything, last set first, and stops at the first delete callback that fails: what is left stays set.
    pub fn delete_all(&self, object: usize) -> Result<()> {
        loop {
            let Some(last) = self.entries.lock().last().cloned() else { return Ok(()) };
            last.tell_delete(object)?;
            self.forget(last.keyval.number);
        }
    }

    /// Fills `copy`, the attributes of a duplicate of `object`, as the copy rules say, in the order in which the values
    /// were set.
    ///
    /// If a copy callback fails, what was copied before is deleted again, and the duplicate must be given up.
    pub fn copy_to(&self, object: usize, copy: &Attributes) -> Result<()> {
        let entries = self.entries.lock().clone();
        for entry in entries {
            match entry.copied_value(object) {
                Ok(Some(value)) => copy.entries.lock().push(Entry { keyval: entry.keyval, value }),
                Ok(None) => {}
                Err(error) => {
                    // The copy's own failure is the one to report; those of the clean-up come second and are dropped.
                    let _ = copy.delete_all(0);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, keyval: i32) -> Option<Entry> {
        self.entries.lock().iter().find(|entry| entry.keyval.number == keyval).cloned()
    }

    fn forget(&self, keyval: i32) {
        self.entries.lock().retain(|entry| entry.keyval.number != keyval);
    }
}

/// One predefined attribute of `MPI_COMM_WORLD`: an integer of the process, whose address programs are given.
pub struct Predefined {
    value: AtomicI32,
    known: AtomicBool,
}

impl Predefined {
    const fn unknown() -> Predefined {
        Predefined { value: AtomicI32::new(0), known: AtomicBool::new(false) }
    }

    const fn value(value: i32) -> Predefined {
        Predefined { value: AtomicI32::new(value), known: AtomicBool::new(true) }
    }

    /// Gives the attribute its value.
    pub fn set(&self, value: i32) {
        self.value.store(value, Ordering::Relaxed);
        self.known.store(true, Ordering::Release);
    }

    /// Returns the value, if the attribute has one.
    pub fn get(&self) -> Option<i32> {
        self.known.load(Ordering::Acquire).then(|| self.value.load(Ordering::Relaxed))
    }

    /// Returns the address of the value; `None` while the attribute has none (`flag` is then false).
    pub fn address(&self) -> Option<*const i32> {
        self.known.load(Ordering::Acquire).then(|| self.value.as_ptr().cast_const())
    }

    /// Returns the predefined attribute of this keyval, if there is one. They are the same on every communicator.
    pub fn of(keyval: i32) -> Option<&'static Predefined> {
        Some(match keyval {
            MPI_TAG_UB => &TAG_UB,
            MPI_IO => &IO,
            MPI_HOST => &HOST,
            MPI_WTIME_IS_GLOBAL => &WTIME_IS_GLOBAL,
            MPI_APPNUM => &APPNUM,
            MPI_UNIVERSE_SIZE => &UNIVERSE_SIZE,
            MPI_LASTUSEDCODE => &LAST_USED_CODE,
            _ => return None,
        })
    }
}

/// Largest tag: every non-negative `int` is a tag.
pub static TAG_UB: Predefined = Predefined::value(i32::MAX);
/// Every process can do input and output.
pub static IO: Predefined = Predefined::value(crate::consts::MPI_ANY_SOURCE);
/// There is no host process.
pub static HOST: Predefined = Predefined::value(crate::consts::MPI_PROC_NULL);
/// Whether the clocks of all processes are synchronised.
pub static WTIME_IS_GLOBAL: Predefined = Predefined::value(0);
/// Number of this process's application in the job; known only when a launcher started it.
pub static APPNUM: Predefined = Predefined::unknown();
/// Number of processes that could run in the job.
pub static UNIVERSE_SIZE: Predefined = Predefined::unknown();
/// Last error code in use, raised by `MPI_Add_error_class` and `MPI_Add_error_code`.
pub static LAST_USED_CODE: Predefined = Predefined::value(crate::consts::MPI_ERR_LASTCODE);

#[cfg(test)]
mod tests;
