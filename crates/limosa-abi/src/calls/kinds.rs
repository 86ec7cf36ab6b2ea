//! Which Rust types handles stand for.
//!
//! Every kind of handle of the ABI has an alias here. A kind whose objects do not exist yet has an empty placeholder: any handle but the null
//! handle is then invalid.

use crate::cx::Target;
use crate::entry::kind;
use crate::errors::Handler;
use crate::handles::{Handle, HandleTable, Kind, Object};

/// `Alias: KIND = Type, set |object, handle| ..., builtin |value| ...;` makes `Type` an [`Object`].
#[allow(unused_macros)] // until the first object type is switched on
macro_rules! objects {
    ($($alias:ident: $kind:ident = $type:ty, set $set:expr, builtin $builtin:expr;)*) => {$(
        #[doc = concat!("What handles of kind ", stringify!($kind), " stand for.")]
        pub(crate) type $alias = $type;

        impl Object for $type {
            const KIND: Kind = kind::$kind;

            fn table() -> &'static HandleTable<Self> {
                static TABLE: HandleTable<$type> = HandleTable::new();
                &TABLE
            }

            fn set_handle(&self, handle: Handle) {
                let set: fn(&$type, Handle) = $set;
                set(self, handle)
            }

            fn builtin(value: i32) -> Option<std::sync::Arc<Self>> {
                let builtin: fn(i32) -> Option<std::sync::Arc<$type>> = $builtin;
                builtin(value)
            }
        }
    )*};
}

/// Placeholders for kinds without objects.
macro_rules! none_yet {
    ($($alias:ident: $kind:ident;)*) => {$(
        #[doc = concat!("No object of kind ", stringify!($kind), " exists yet.")]
        pub(crate) enum $alias {}

        impl Object for $alias {
            const KIND: Kind = kind::$kind;

            fn table() -> &'static HandleTable<Self> {
                static TABLE: HandleTable<$alias> = HandleTable::new();
                &TABLE
            }
        }
    )*};
}

none_yet! {
    Communicator: COMMUNICATOR;
    Group: GROUP;
    Datatype: DATATYPE;
    Operation: OPERATION;
    Info: INFO;
    Errhandler: ERRHANDLER;
    Request: REQUEST;
    Message: MESSAGE;
    Window: WINDOW;
    File: FILE;
    Session: SESSION;
}

/// The error handler for an error of `target`; that of `MPI_COMM_SELF` if there is no such object.
pub(crate) fn handler(target: Target) -> Handler {
    let _ = target;
    Handler::AreFatal
}
