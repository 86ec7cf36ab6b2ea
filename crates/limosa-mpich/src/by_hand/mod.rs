//! Functions that are not generated: what the program passes outlives the call, or the standard ABI has no such
//! function. The build script reads their names and signatures; exported ones of these names call them.

#![allow(clippy::too_many_arguments, reason = "the signatures are those of the standard")]

pub(crate) mod attributes;
pub(crate) mod callbacks;
pub(crate) mod datatypes;
pub(crate) mod environment;
pub(crate) mod extensions;
pub(crate) mod fortran;
pub(crate) mod tools;
