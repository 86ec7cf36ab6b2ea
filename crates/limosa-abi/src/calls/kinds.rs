//! Rust types behind the handles: every kind of handle of the ABI has an alias here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::comm::Comm;
use limosa_mpi::consts;
use limosa_mpi::errhandler::{self, Action};
use limosa_mpi::instance;
use limosa_mpi::light;
use limosa_mpi::operation::End;

use crate::cx::ErrorTarget;
use crate::entry::kind;
use crate::errors::Handler;
use crate::handles::{Handle, HandleKind, HandleTable, Object};

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

/// Returns the error handler for an error of `target`: that of `MPI_COMM_SELF` if there is no such object, the default
/// before initialisation. If the program has set only that of `MPI_COMM_WORLD`, it is used: until MPI-4 such errors
/// went there.
pub(crate) fn handler(target: ErrorTarget) -> Handler {
    let of_comm = |handle| Communicator::table().get(handle).ok().map(|comm| (comm.errhandler(), handle));
    let named = match target {
        ErrorTarget::Comm(handle) => of_comm(handle),
        ErrorTarget::Win(handle) => Window::table().get(handle).ok().map(|window| (window.errhandler(), handle)),
        // Without a file, the handler of MPI_FILE_NULL (MPI-5 section 14.7).
        ErrorTarget::File(handle) => Some(File::table().get(handle).map_or_else(
            |_| (limosa_io::default_errhandler(), Handle::predefined(consts::MPI_FILE_NULL)),
            |file| (file.errhandler(), handle),
        )),
        ErrorTarget::Session(handle) => Session::table().get(handle).ok().map(|session| (session.errhandler(), handle)),
        ErrorTarget::Default => None,
    };
    // Taken from the instance: after MPI_Finalize, errors go there too, when the handle has no object any more.
    let of_self = || {
        let instance = instance::get()?;
        let (own, world) = (instance.comm_self(), instance.comm_world());
        if !own.has_own_errhandler() && world.has_own_errhandler() {
            return Some((world.errhandler(), Handle::predefined(consts::MPI_COMM_WORLD)));
        }
        Some((own.errhandler(), Handle::predefined(consts::MPI_COMM_SELF)))
    };
    let Some((errhandler, object)) = named.or_else(of_self) else {
        // Before MPI starts there is no communicator that could have another handler.
        return Handler::AreFatal;
    };
    running(&errhandler, object)
}

/// Returns the action of this error handler for an error raised on an object.
pub(crate) fn running(errhandler: &Errhandler, object: Handle) -> Handler {
    match &errhandler.action {
        Action::Fatal => Handler::AreFatal,
        Action::Abort => Handler::Abort,
        Action::Return => Handler::Return,
        Action::User(_, function) => {
            let function = function.clone();
            Handler::Call(Box::new(move |code| function(object.0, code)))
        }
    }
}
