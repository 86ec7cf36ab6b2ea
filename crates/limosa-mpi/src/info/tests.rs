//! Info objects against a plain list of pairs.

use super::*;
use crate::consts::{MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY, MPI_ERR_INFO_VALUE};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    Set(String, String),
    Delete(String),
}

fn step() -> impl Strategy<Value = Action> {
    let key = "[a-d]{1,2}";
    prop_oneof![(key, "[x-z ]{0,5}").prop_map(|(k, v)| Action::Set(k, v)), key.prop_map(Action::Delete)]
}

proptest! {
    #[test]
    fn an_info_object_is_an_ordered_map(steps in proptest::collection::vec(step(), 0..40)) {
        let info = Info::new();
        let mut model: Vec<(String, String)> = Vec::new();
        for step in steps {
            match step {
                Action::Set(key, value) => {
                    info.set(key.as_bytes(), value.as_bytes()).unwrap();
                    match model.iter_mut().find(|pair| pair.0 == key) {
                        Some(pair) => pair.1 = value,
                        None => model.push((key, value)),
                    }
                }
                Action::Delete(key) => {
                    let known = model.iter().any(|pair| pair.0 == key);
                    model.retain(|pair| pair.0 != key);
                    match info.delete(key.as_bytes()) {
                        Ok(()) => prop_assert!(known),
                        Err(error) => prop_assert!(!known && error.class == MPI_ERR_INFO_NOKEY),
                    }
                }
            }
        }
        for info in [info.dup(), info] {
            prop_assert_eq!(info.len(), model.len());
            for (n, (key, value)) in model.iter().enumerate() {
                prop_assert_eq!(info.nth_key(n as i64).unwrap(), key.as_bytes());
                prop_assert_eq!(info.get(key.as_bytes()).unwrap().unwrap(), value.as_bytes());
            }
        }
    }
}

#[test]
fn limits_are_those_of_the_abi() {
    let info = Info::new();
    info.set(&[b'k'; 255], &[b'v'; 1023]).unwrap();
    assert_eq!(info.set(&[b'k'; 256], b"v").unwrap_err().class, MPI_ERR_INFO_KEY);
    assert_eq!(info.set(b"", b"v").unwrap_err().class, MPI_ERR_INFO_KEY);
    assert_eq!(info.set(b"k", &[b'v'; 1024]).unwrap_err().class, MPI_ERR_INFO_VALUE);
    assert_eq!(info.nth_key(1).unwrap_err().class, MPI_ERR_ARG);
    assert_eq!(info.nth_key(-1).unwrap_err().class, MPI_ERR_ARG);
    assert_eq!(info.get(b"other").unwrap(), None);
}

#[test]
fn a_duplicate_lives_its_own_life() {
    let info = Info::new();
    info.set(b"key", b"old").unwrap();
    let copy = info.dup();
    copy.set(b"key", b"new").unwrap();
    assert_eq!(info.get(b"key").unwrap().unwrap(), b"old");
}

#[test]
fn the_environment_names_command_and_place() {
    let argv = [b"prog".to_vec(), b"-n".to_vec(), b"7".to_vec()];
    let info = Info::with(environment_pairs(&argv, 4), false);
    assert_eq!(info.get(b"command").unwrap().unwrap(), b"prog");
    assert_eq!(info.get(b"argv").unwrap().unwrap(), b"-n 7");
    assert_eq!(info.get(b"maxprocs").unwrap().unwrap(), b"4");
    assert_eq!(info.get(b"wdir").unwrap().unwrap(), std::env::current_dir().unwrap().as_os_str().as_bytes());
    assert!(info.get(b"host").unwrap().is_some_and(|host| !host.is_empty()));
}

#[test]
fn the_predefined_environment_is_read_only_and_its_duplicate_is_not() {
    let env = Info::predefined_environment();
    assert!(env.get(b"command").unwrap().is_some());
    assert_eq!(env.get(b"maxprocs").unwrap(), None);
    assert_eq!(env.set(b"a", b"b").unwrap_err().class, MPI_ERR_INFO);
    assert_eq!(env.delete(b"command").unwrap_err().class, MPI_ERR_INFO);
    env.dup().set(b"a", b"b").unwrap();
}
