//! Names from the table: of the functions that all ranks of a communicator call together, and of the predefined
//! datatypes and operations with their handles.

include!(concat!(env!("OUT_DIR"), "/names.rs"));
