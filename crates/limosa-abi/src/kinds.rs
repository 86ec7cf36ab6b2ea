//! Rust types behind the handles: every kind of handle of the ABI has an alias here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::comm::Comm;
use limosa_mpi::consts;
use limosa_mpi::errhandler;
use limosa_mpi::light;
use limosa_mpi::operation::End;

use crate::handles::{Handle, HandleKind, HandleTable, Object, kind};

/// `Alias: KIND = Type, set |object, handle| ..., builtin |value| ...;` implements [`Object`] for `Type`.
macro_rules! objects {
    ($(
        $alias:ident: $kind:ident = $type:ty, set $set:expr, builtin $builtin:expr
        $(, keeps $keeps:expr)? $(, light $light:expr)?;
    )*) => {$(
        #[doc = concat!("What handles of kind ", stringify!($kind), " stand for.")]
        pub(crate) type $alias = $type;

        impl Object for $type {
            const KIND: HandleKind = kind::$kind;

            fn table() -> &'static HandleTable<Self> {
                static TABLE: HandleTable<$type> = HandleTable::new();
                &TABLE
            }

            fn set_handle(&self, handle: Handle) {
                let set: fn(&$type, Handle) = $set;
                set(self, handle)
            }

            fn builtin(value: i32) -> Option<Arc<Self>> {
                let builtin: fn(i32) -> Option<Arc<$type>> = $builtin;
                builtin(value)
            }

            $(fn keeps_memory(&self) -> bool {
                let keeps: fn(&$type) -> bool = $keeps;
                keeps(self)
            })?

            $(fn light(handle: Handle) -> Option<Arc<Self>> {
                let light: fn(Handle) -> Option<Arc<$type>> = $light;
                light(handle)
            })?
        }
    )*};
}

objects! {
    Communicator: COMMUNICATOR = Comm,
        set |comm, handle| comm.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None, // the world is set at initialisation
        keeps |comm| comm.keeps_shared_memory();
    Group: GROUP = limosa_mpi::group::Group,
        set |_, _| {},
        builtin |value| (value == consts::MPI_GROUP_EMPTY).then(limosa_mpi::group::Group::empty);
    Info: INFO = limosa_mpi::info::Info,
        set |_, _| {},
        builtin |value| (value == consts::MPI_INFO_ENV).then(limosa_mpi::info::Info::predefined_environment);
    Errhandler: ERRHANDLER = errhandler::Errhandler,
        set |errhandler, handle| errhandler.handle.store(handle.0, Ordering::Relaxed),
        builtin |value| match value {
            consts::MPI_ERRORS_ARE_FATAL => Some(Errhandler::fatal()),
            consts::MPI_ERRORS_ABORT => Some(Errhandler::abort()),
            consts::MPI_ERRORS_RETURN => Some(Errhandler::returning()),
            _ => None,
        };
    Datatype: DATATYPE = limosa_mpi::datatype::Datatype,
        set |datatype, handle| datatype.set_handle(handle.0),
        builtin limosa_mpi::datatype::Datatype::builtin;
    Operation: OPERATION = limosa_mpi::op::Op,
        set |op, handle| op.set_handle(handle.0),
        builtin limosa_mpi::op::Op::builtin;
    Request: REQUEST = limosa_mpi::request::Request,
        set |request, handle| request.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None,
        keeps |request| request.keeps_memory(),
        light |handle| match handle.short() {
            Some(short) => light::object(short),
            None => Some(limosa_mpi::request::Request::done(None, End::empty())),
        };
    Message: MESSAGE = limosa_mpi::p2p::Message,
        set |message, handle| message.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None; // MPI_MESSAGE_NO_PROC depends on the communicator: the glue looks for it before it decodes
    Session: SESSION = limosa_mpi::session::Session,
        set |session, handle| session.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None;
    Window: WINDOW = limosa_rma::Window,
        set |window, handle| window.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None,
        keeps |_| true;
    File: FILE = limosa_io::File,
        set |file, handle| file.handle.store(handle.0, Ordering::Relaxed),
        builtin |_| None,
        keeps |_| true; // a descriptor
}
