//! Functions that are not generated. Those that are not here are common to all translations, from `limosa-mpich`.

#![allow(clippy::too_many_arguments, reason = "the signatures are those of the standard")]

#[path = "../../../limosa-mpich/src/by_hand/attributes.rs"]
pub(crate) mod attributes;
#[path = "../../../limosa-mpich/src/by_hand/callbacks.rs"]
pub(crate) mod callbacks;
#[path = "../../../limosa-mpich/src/by_hand/datatypes.rs"]
pub(crate) mod datatypes;
#[path = "../../../limosa-mpich/src/by_hand/environment.rs"]
pub(crate) mod environment;
pub(crate) mod extensions;
#[path = "../../../limosa-mpich/src/by_hand/fortran.rs"]
pub(crate) mod fortran;
pub(crate) mod texts;
#[path = "../../../limosa-mpich/src/by_hand/tools.rs"]
pub(crate) mod tools;
