//! Attributes as a program sees them.

use super::*;
use crate::consts::{MPI_ERR_KEYVAL, MPI_ERR_OTHER};
use crate::error::Error;

/// What the callbacks were told, in order.
type Log = Arc<Mutex<Vec<(&'static str, usize, i32, usize)>>>;

fn logging_keyval(log: &Log) -> i32 {
    let (at_copy, at_delete) = (log.clone(), log.clone());
    let copy: CopyFn = Arc::new(move |object, keyval, value| {
        at_copy.lock().push(("copy", object, keyval, value));
        Ok(Some(value + 1))
    });
    let delete: DeleteFn = Arc::new(move |object, keyval, value| {
        at_delete.lock().push(("delete", object, keyval, value));
        Ok(())
    });
    create_keyval(Kind::Comm, CopyRule::Ask(copy), DeleteRule::Tell(delete)).unwrap()
}

fn refusing_keyval() -> i32 {
    let copy: CopyFn = Arc::new(|_, _, _| Err(Error::new(MPI_ERR_OTHER, "no copy")));
    let delete: DeleteFn = Arc::new(|_, _, _| Err(Error::new(MPI_ERR_OTHER, "no delete")));
    create_keyval(Kind::Comm, CopyRule::Ask(copy), DeleteRule::Tell(delete)).unwrap()
}

#[test]
fn a_value_is_found_until_it_is_deleted() {
    let attributes = Attributes::new(Kind::Comm);
    let key = create_keyval(Kind::Comm, CopyRule::Forget, DeleteRule::Ignore).unwrap();
    assert_eq!(attributes.get(key).unwrap(), None);
    attributes.set(1, key, 42).unwrap();
    assert_eq!(attributes.get(key).unwrap(), Some(42));
    attributes.delete(1, key).unwrap();
    assert_eq!(attributes.get(key).unwrap(), None);
    attributes.delete(1, key).unwrap();
}

#[test]
fn replacing_a_value_deletes_the_old_one() {
    let log = Log::default();
    let (attributes, key) = (Attributes::new(Kind::Comm), logging_keyval(&log));
    attributes.set(9, key, 1).unwrap();
    attributes.set(9, key, 2).unwrap();
    assert_eq!(*log.lock(), [("delete", 9, key, 1)]);
    assert_eq!(attributes.get(key).unwrap(), Some(2));
}

#[test]
fn duplication_follows_the_copy_rules() {
    let log = Log::default();
    let asked = logging_keyval(&log);
    let shared = create_keyval(Kind::Comm, CopyRule::Share, DeleteRule::Ignore).unwrap();
    let forgotten = create_keyval(Kind::Comm, CopyRule::Forget, DeleteRule::Ignore).unwrap();
    let (old, new) = (Attributes::new(Kind::Comm), Attributes::new(Kind::Comm));
    for key in [asked, shared, forgotten] {
        old.set(7, key, 10).unwrap();
    }
    old.copy_to(7, &new).unwrap();
    assert_eq!([asked, shared, forgotten].map(|key| new.get(key).unwrap()), [Some(11), Some(10), None]);
    assert_eq!(*log.lock(), [("copy", 7, asked, 10)]);
}

#[test]
fn a_failed_copy_deletes_what_was_copied() {
    let log = Log::default();
    let (first, second) = (logging_keyval(&log), refusing_keyval());
    let (old, new) = (Attributes::new(Kind::Comm), Attributes::new(Kind::Comm));
    old.set(7, first, 10).unwrap();
    old.set(7, second, 20).unwrap();
    assert_eq!(old.copy_to(7, &new).unwrap_err().class, MPI_ERR_OTHER);
    assert!(new.is_empty());
    assert_eq!(*log.lock(), [("copy", 7, first, 10), ("delete", 0, first, 11)]);
}

#[test]
fn everything_is_deleted_in_reverse_order() {
    let log = Log::default();
    let attributes = Attributes::new(Kind::Comm);
    let keys: Vec<i32> = (0..4).map(|_| logging_keyval(&log)).collect();
    for &key in &keys {
        attributes.set(3, key, key as usize).unwrap();
    }
    attributes.delete_all(3).unwrap();
    let told: Vec<i32> = log.lock().iter().map(|entry| entry.2).collect();
    assert_eq!(told, keys.into_iter().rev().collect::<Vec<_>>());
    assert!(attributes.is_empty());
}

#[test]
fn an_attribute_whose_deletion_fails_stays() {
    let log = Log::default();
    let (attributes, below, key, above) =
        (Attributes::new(Kind::Comm), logging_keyval(&log), refusing_keyval(), logging_keyval(&log));
    for key in [below, key, above] {
        attributes.set(1, key, 5).unwrap();
    }
    assert_eq!(attributes.delete(1, key).unwrap_err().class, MPI_ERR_OTHER);
    assert_eq!(attributes.delete_all(1).unwrap_err().class, MPI_ERR_OTHER);
    assert_eq!([below, key, above].map(|key| attributes.get(key).unwrap()), [Some(5), Some(5), None]);
    assert_eq!(attributes.set(1, key, 6).unwrap_err().class, MPI_ERR_OTHER);
    assert_eq!(attributes.get(key).unwrap(), Some(5));
}

#[test]
fn callbacks_may_use_the_same_object() {
    let attributes = Arc::new(Attributes::new(Kind::Comm));
    let other = create_keyval(Kind::Comm, CopyRule::Share, DeleteRule::Ignore).unwrap();
    let inner = attributes.clone();
    let delete: DeleteFn = Arc::new(move |object, _, value| {
        assert_eq!(inner.get(other).unwrap(), Some(1));
        inner.set(object, other, value)
    });
    let key = create_keyval(Kind::Comm, CopyRule::Forget, DeleteRule::Tell(delete)).unwrap();
    attributes.set(1, other, 1).unwrap();
    attributes.set(1, key, 8).unwrap();
    attributes.delete(1, key).unwrap();
    assert_eq!(attributes.get(other).unwrap(), Some(8));
}

#[test]
fn a_freed_keyval_serves_the_attributes_that_have_it() {
    let log = Log::default();
    let (attributes, key) = (Attributes::new(Kind::Comm), logging_keyval(&log));
    attributes.set(1, key, 4).unwrap();
    free_keyval(Kind::Comm, key).unwrap();
    assert_eq!(attributes.get(key).unwrap(), Some(4));
    attributes.delete(1, key).unwrap();
    assert_eq!(*log.lock(), [("delete", 1, key, 4)]);
    assert_eq!(attributes.get(key).unwrap_err().class, MPI_ERR_KEYVAL);
    assert_eq!(free_keyval(Kind::Comm, key).unwrap_err().class, MPI_ERR_KEYVAL);
}

#[test]
fn a_keyval_of_another_kind_is_refused() {
    let key = create_keyval(Kind::Datatype, CopyRule::Forget, DeleteRule::Ignore).unwrap();
    let attributes = Attributes::new(Kind::Comm);
    let error = attributes.set(1, key, 1).unwrap_err();
    assert_eq!(error.class, MPI_ERR_KEYVAL);
    assert_eq!(error.detail, format!("keyval {key} was made for datatypes, not for communicators"));
    assert_eq!(free_keyval(Kind::Window, key).unwrap_err().class, MPI_ERR_KEYVAL);
}

#[test]
fn predefined_and_invalid_keyvals_cannot_be_set() {
    let attributes = Attributes::new(Kind::Comm);
    for key in [MPI_KEYVAL_INVALID, MPI_TAG_UB, MPI_WIN_BASE, 77] {
        assert_eq!(attributes.set(1, key, 1).unwrap_err().class, MPI_ERR_KEYVAL);
        assert_eq!(free_keyval(Kind::Comm, key).unwrap_err().class, MPI_ERR_KEYVAL);
    }
}

#[test]
fn predefined_attributes_are_read_through_an_address() {
    let address = Predefined::of(MPI_TAG_UB).unwrap().address().unwrap();
    // SAFETY: the address of a static integer.
    assert_eq!(unsafe { *address }, i32::MAX);
    assert!(Predefined::of(MPI_WIN_BASE).is_none());
    let unknown = Predefined::unknown();
    assert!(unknown.address().is_none());
    unknown.set(3);
    assert!(unknown.address().is_some());
}
