//! Error classes, codes and strings, predefined and the program's own (MPI-5 sections 9.4 and 9.5).
//!
//! - The library's own error codes are the predefined classes, and codes that carry a sentence ([`carrying`]), which
//!   have bit 30 set.
//! - The program adds classes and codes, which are numbered from `MPI_ERR_LASTCODE + 1`, below bit 30; a class is also
//!   a code. Numbers that were removed are not given out again. `MPI_LASTUSEDCODE` is about these alone, as the
//!   standard has it.
//! - All of this works before initialisation and after finalisation, from any thread.

use std::borrow::Cow;
use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::consts::*;
use crate::error_detail::{self, Ring};
use crate::{Error, Result, fail};

struct Added {
    /// The class; a class is its own.
    class: ErrorClass,
    text: String,
}

struct Registry {
    added: BTreeMap<i32, Added>,
    last: i32,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { added: BTreeMap::new(), last: MPI_ERR_LASTCODE });

/// The sentences of the last failed calls. Half a megabyte of address space; only used pages take memory.
static SENTENCES: Ring<1024> = Ring::new();

impl Registry {
    fn remove(&mut self, code: i32, arg: &str) -> Result<()> {
        if self.added.get(&code).is_some_and(|added| !added.text.is_empty()) {
            fail!(MPI_ERR_OTHER, "{arg} {code} still has a string: remove it with MPI_Remove_error_string first");
        }
        self.added.remove(&code);
        Ok(())
    }

    fn add(&mut self, class: Option<ErrorClass>) -> Result<i32> {
        if self.last == error_detail::FIRST - 1 {
            fail!(MPI_ERR_OTHER, "no error code is left to add");
        }
        self.last += 1;
        let code = self.last;
        self.added.insert(code, Added { class: class.unwrap_or(code), text: String::new() });
        crate::attr::LAST_USED_CODE.set(code);
        Ok(code)
    }

    fn added(&mut self, code: i32, what: &str) -> Result<&mut Added> {
        if class_is_predefined(code) || carried_class(code).is_some() {
            fail!(MPI_ERR_ARG, "{what} {code} is the library's own, only codes that the program added can be changed");
        }
        match self.added.get_mut(&code) {
            Some(added) => Ok(added),
            None => fail!(MPI_ERR_ARG, "{what} {code} does not exist: it was never added, or has been removed"),
        }
    }
}

fn class_is_predefined(code: i32) -> bool {
    error_class_name(code).is_some()
}

/// Returns the class of a code that carries a sentence.
fn carried_class(code: i32) -> Option<ErrorClass> {
    TEXTS.get(error_detail::place(code)?).map(|entry| entry.0)
}

/// Returns a code of a class for an error in `function`, whose string will be both of these. The class itself if it is
/// not a predefined one.
pub fn carrying(class: ErrorClass, function: &str, detail: &str) -> i32 {
    // Processes start with different numbers, so that a code from another process does not name a sentence of this one.
    let origin = std::process::id().wrapping_mul(0x9e37_79b1);
    let place = TEXTS.binary_search_by_key(&class, |entry| entry.0).ok();
    place.and_then(|place| SENTENCES.keep(origin, place, function, detail)).unwrap_or(class)
}

/// Returns the class of an error code.
pub fn class_of(code: i32) -> Result<ErrorClass> {
    if class_is_predefined(code) {
        return Ok(code);
    }
    if let Some(class) = carried_class(code) {
        return Ok(class);
    }
    match REGISTRY.lock().added.get(&code) {
        Some(added) => Ok(added.class),
        None => fail!(MPI_ERR_ARG, "errorcode {code} is not an error code"),
    }
}

/// Makes a new error class.
pub fn add_class() -> Result<ErrorClass> {
    REGISTRY.lock().add(None)
}

/// Makes a new error code of an existing class.
pub fn add_code(class: ErrorClass) -> Result<i32> {
    let mut registry = REGISTRY.lock();
    let is_class = class_is_predefined(class) || registry.added.get(&class).is_some_and(|a| a.class == class);
    if !is_class {
        fail!(MPI_ERR_ARG, "errorclass {class} is not an error class");
    }
    registry.add(Some(class))
}

/// Sets the text of a class or code that the program added.
pub fn set_text(code: i32, text: &str) -> Result<()> {
    REGISTRY.lock().added(code, "errorcode")?.text = text.to_owned();
    Ok(())
}

/// Removes a class that no code belongs to and that has no text (any more).
pub fn remove_class(class: ErrorClass) -> Result<()> {
    let mut registry = REGISTRY.lock();
    if registry.added(class, "errorclass")?.class != class {
        fail!(MPI_ERR_ARG, "errorclass {class} is an error code, not a class");
    }
    if let Some((code, _)) = registry.added.iter().find(|(code, a)| a.class == class && **code != class) {
        fail!(MPI_ERR_OTHER, "errorclass {class} still has error code {code}: remove its codes first");
    }
    registry.remove(class, "errorclass")
}

/// Removes a code that has no text (any more).
pub fn remove_code(code: i32) -> Result<()> {
    let mut registry = REGISTRY.lock();
    if registry.added(code, "errorcode")?.class == code {
        fail!(MPI_ERR_ARG, "errorcode {code} is an error class: remove it with MPI_Remove_error_class");
    }
    registry.remove(code, "errorcode")
}

/// Removes the text of a class or code.
pub fn remove_text(code: i32) -> Result<()> {
    let mut registry = REGISTRY.lock();
    let added = registry.added(code, "errorcode")?;
    if added.text.is_empty() {
        return Err(Error::new(MPI_ERR_ARG, format!("errorcode {code} has no error string")));
    }
    added.text.clear();
    Ok(())
}

/// Returns the largest error code in use: the value of the attribute `MPI_LASTUSEDCODE`.
pub fn last_used() -> i32 {
    REGISTRY.lock().last
}

/// What `MPI_Error_string` says: the sentence that the code carries, as long as it is kept, otherwise name and text of
/// the class; for codes that the program added, its own text.
pub fn string(code: i32) -> Result<String> {
    let class = class_of(code)?;
    if let Some(sentence) = SENTENCES.sentence(code) {
        return Ok(sentence);
    }
    let code = if carried_class(code).is_some() { class } else { code };
    let name = error_class_name(code).map(|name| format!("{name}: ")).unwrap_or_default();
    Ok(name + &text(code))
}

/// What an error code says beyond its class; `None` for a class, and for a code that says no more.
pub fn own_string(code: i32) -> Option<String> {
    let added = || REGISTRY.lock().added.get(&code).filter(|added| added.class != code).map(|added| added.text.clone());
    SENTENCES.sentence(code).or_else(added).filter(|text| !text.is_empty())
}

/// Returns the text of a class, or of a code that the program added; empty for one without text.
pub fn text(code: i32) -> Cow<'static, str> {
    if let Ok(at) = TEXTS.binary_search_by_key(&code, |entry| entry.0) {
        return Cow::Borrowed(TEXTS[at].1);
    }
    match REGISTRY.lock().added.get(&code) {
        Some(added) => Cow::Owned(added.text.clone()),
        None => Cow::Owned(format!("unknown error code {code}")),
    }
}

/// One line per predefined class, in ascending order.
const TEXTS: &[(ErrorClass, &str)] = &[
    (MPI_SUCCESS, "no error"),
    (MPI_ERR_BUFFER, "invalid buffer pointer"),
    (MPI_ERR_COUNT, "invalid count"),
    (MPI_ERR_TYPE, "invalid datatype"),
    (MPI_ERR_TAG, "invalid tag"),
    (MPI_ERR_COMM, "invalid communicator"),
    (MPI_ERR_RANK, "invalid rank"),
    (MPI_ERR_REQUEST, "invalid request or message"),
    (MPI_ERR_ROOT, "invalid root"),
    (MPI_ERR_GROUP, "invalid group"),
    (MPI_ERR_OP, "invalid reduction operation"),
    (MPI_ERR_TOPOLOGY, "the communicator has no such topology"),
    (MPI_ERR_DIMS, "invalid dimensions"),
    (MPI_ERR_ARG, "invalid argument"),
    (MPI_ERR_UNKNOWN, "unknown error"),
    (MPI_ERR_TRUNCATE, "the message is longer than the receive buffer"),
    (MPI_ERR_OTHER, "error of no particular class"),
    (MPI_ERR_INTERN, "internal error of the library"),
    (MPI_ERR_PENDING, "the operation has not completed yet"),
    (MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    (MPI_ERR_ACCESS, "permission denied"),
    (MPI_ERR_AMODE, "invalid access mode"),
    (MPI_ERR_ASSERT, "invalid assertion"),
    (MPI_ERR_BAD_FILE, "invalid file name"),
    (MPI_ERR_BASE, "invalid base address"),
    (MPI_ERR_CONVERSION, "a data conversion failed"),
    (MPI_ERR_DISP, "invalid displacement"),
    (MPI_ERR_DUP_DATAREP, "the data representation is already defined"),
    (MPI_ERR_FILE_EXISTS, "the file exists"),
    (MPI_ERR_FILE_IN_USE, "the file is in use"),
    (MPI_ERR_FILE, "invalid file handle"),
    (MPI_ERR_INFO_KEY, "the info key is empty or too long"),
    (MPI_ERR_INFO_NOKEY, "the info object has no such key"),
    (MPI_ERR_INFO_VALUE, "the info value is empty or too long"),
    (MPI_ERR_INFO, "invalid info object"),
    (MPI_ERR_IO, "input or output failed"),
    (MPI_ERR_KEYVAL, "invalid attribute key"),
    (MPI_ERR_LOCKTYPE, "invalid lock type"),
    (MPI_ERR_NAME, "the service name is not published"),
    (MPI_ERR_NO_MEM, "out of memory"),
    (MPI_ERR_NOT_SAME, "the processes of a collective call disagree"),
    (MPI_ERR_NO_SPACE, "no space is left on the device"),
    (MPI_ERR_NO_SUCH_FILE, "the file does not exist"),
    (MPI_ERR_PORT, "invalid port name"),
    (MPI_ERR_QUOTA, "the quota is exceeded"),
    (MPI_ERR_READ_ONLY, "the file or file system is read-only"),
    (MPI_ERR_RMA_ATTACH, "the memory cannot be attached"),
    (MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    (MPI_ERR_RMA_RANGE, "the target memory is outside the window"),
    (MPI_ERR_RMA_SHARED, "the memory cannot be shared"),
    (MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    (MPI_ERR_SERVICE, "the service name cannot be unpublished"),
    (MPI_ERR_SIZE, "invalid size"),
    (MPI_ERR_SPAWN, "processes could not be started"),
    (MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is not supported"),
    (MPI_ERR_UNSUPPORTED_OPERATION, "the operation is not supported"),
    (MPI_ERR_WIN, "invalid window"),
    (MPI_ERR_RMA_FLAVOR, "wrong flavour of window"),
    (MPI_ERR_PROC_ABORTED, "a peer process has aborted"),
    (MPI_ERR_VALUE_TOO_LARGE, "the value does not fit in its type"),
    (MPI_ERR_SESSION, "invalid session"),
    (MPI_ERR_ERRHANDLER, "invalid error handler"),
    (MPI_ERR_ABI, "the binary interface does not support this"),
    (MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialised"),
    (MPI_T_ERR_NOT_ACCESSIBLE, "the tool interface is not accessible at present"),
    (MPI_T_ERR_NOT_INITIALIZED, "the tool interface is not initialised"),
    (MPI_T_ERR_NOT_SUPPORTED, "the tool interface does not support this"),
    (MPI_T_ERR_MEMORY, "the tool interface is out of memory"),
    (MPI_T_ERR_INVALID, "invalid use of the tool interface"),
    (MPI_T_ERR_INVALID_INDEX, "invalid index"),
    (MPI_T_ERR_INVALID_ITEM, "invalid item of an enumeration"),
    (MPI_T_ERR_INVALID_SESSION, "invalid session of the tool interface"),
    (MPI_T_ERR_INVALID_HANDLE, "invalid handle of the tool interface"),
    (MPI_T_ERR_INVALID_NAME, "invalid name"),
    (MPI_T_ERR_OUT_OF_HANDLES, "no handle of the tool interface is left"),
    (MPI_T_ERR_OUT_OF_SESSIONS, "no session of the tool interface is left"),
    (MPI_T_ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set at present"),
    (MPI_T_ERR_CVAR_SET_NEVER, "the control variable cannot be set"),
    (MPI_T_ERR_PVAR_NO_WRITE, "the performance variable cannot be written"),
    (MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    (MPI_T_ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and reset in one step"),
    (MPI_ERR_LASTCODE, "last predefined error code"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predefined_class_has_a_text() {
        let named: Vec<_> = ERROR_CLASS_NAMES.iter().map(|e| e.0).collect();
        let texts: Vec<_> = TEXTS.iter().map(|e| e.0).collect();
        assert_eq!(named, texts);
        assert!(TEXTS.iter().all(|e| e.1.len() < MPI_MAX_ERROR_STRING as usize));
        assert!(TEXTS.len() <= error_detail::PLACES && TEXTS[0].0 == MPI_SUCCESS);
    }

    #[test]
    fn a_code_carries_a_sentence_until_others_need_its_place() {
        for (class, meaning) in [
            (MPI_ERR_RANK, "MPI_ERR_RANK: invalid rank"),
            (MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME: invalid name"),
        ] {
            let code = carrying(class, "MPI_Send", "destination rank 7 is not in the communicator, which has 4 ranks");
            assert!(code > MPI_ERR_LASTCODE && class_of(code) == Ok(class));
            assert_eq!(
                string(code).unwrap(),
                "MPI_Send: destination rank 7 is not in the communicator, which has 4 ranks"
            );
            for _ in 0..1024 {
                assert_ne!(carrying(class, "MPI_Send", "another"), code);
            }
            assert_eq!((class_of(code), string(code).unwrap().as_str()), (Ok(class), meaning));
        }
    }

    #[test]
    fn codes_that_carry_a_sentence_are_not_the_programs() {
        let code = carrying(MPI_ERR_TAG, "MPI_Send", "tag is -1");
        let used = last_used();
        assert_eq!(set_text(code, "x").unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(add_code(code).unwrap_err().class, MPI_ERR_ARG);
        assert!(used < code && remove_code(code).unwrap_err().detail.contains("the library's own"));
        let own = add_class().unwrap();
        assert_eq!(carrying(own, "MPI_Send", "x"), own, "a class of the program is its own code");
        assert_eq!(class_of(1 << 30).unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(class_of(i32::MAX).unwrap_err().class, MPI_ERR_ARG, "there are not so many classes");
    }

    #[test]
    fn the_program_adds_and_removes_classes_and_codes() {
        let class = add_class().unwrap();
        assert!(class > MPI_ERR_LASTCODE);
        let code = add_code(class).unwrap();
        assert_eq!((class_of(class), class_of(code)), (Ok(class), Ok(class)));
        assert!(last_used() >= code);
        assert_eq!(text(code), "");
        set_text(code, "the moon is full").unwrap();
        set_text(class, "astronomy").unwrap();
        assert_eq!(text(code), "the moon is full");
        assert_eq!((own_string(code).as_deref(), own_string(class)), (Some("the moon is full"), None));
        assert_eq!(remove_class(class).unwrap_err().class, MPI_ERR_OTHER);
        remove_text(code).unwrap();
        assert_eq!(text(code), "");
        remove_code(code).unwrap();
        remove_text(class).unwrap();
        remove_class(class).unwrap();
        assert_eq!(class_of(code).unwrap_err().class, MPI_ERR_ARG);
    }

    #[test]
    fn predefined_codes_cannot_be_changed() {
        assert_eq!(set_text(MPI_ERR_COUNT, "x").unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(remove_class(MPI_ERR_COUNT).unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(add_code(-5).unwrap_err().class, MPI_ERR_ARG);
        assert!(class_of(add_code(MPI_ERR_COUNT).unwrap()) == Ok(MPI_ERR_COUNT));
    }
}
