//! Error handlers: what happens when a call fails (MPI-5 section 9.3).
//!
//! Contract
//! - An [`Errhandler`] is immutable and shared as `Arc<Errhandler>`; objects hold the handler in force themselves, so
//!   that freeing the handle of a handler changes nothing for the objects that use it.
//! - The predefined handlers are one object each, so that they can be recognised, and fit every kind of object. A
//!   user's handler fits the kind that it was made for.
//! - This module only says *which* handler is in force. The ABI layer runs it, without any lock held.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::error::{ErrorClass, Result};
use crate::fail;

/// The kinds of objects on which errors are raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Communicators.
    Comm,
    /// Windows.
    Window,
    /// Files.
    File,
    /// Sessions.
    Session,
}

impl Scope {
    fn noun(self) -> &'static str {
        match self {
            Scope::Comm => "communicators",
            Scope::Window => "windows",
            Scope::File => "files",
            Scope::Session => "sessions",
        }
    }
}

/// A program's own handler: (handle of the object, error code). It gives the code that the call returns.
pub type UserHandler = Arc<dyn Fn(usize, ErrorClass) -> ErrorClass + Send + Sync>;

/// What a handler does.
pub enum Action {
    /// Print the error and end the job (`MPI_ERRORS_ARE_FATAL`).
    Fatal,
    /// Print the error and end the processes of the communicator (`MPI_ERRORS_ABORT`).
    Abort,
    /// Return the error code to the caller (`MPI_ERRORS_RETURN`).
    Return,
    /// Call the program, then return the error code that it leaves.
    User(Scope, UserHandler),
}

/// An error handler.
pub struct Errhandler {
    /// What it does.
    pub action: Action,
    /// The handle value under which the ABI layer registered this handler; 0 if none.
    pub handle: AtomicUsize,
    /// References that the program holds: how often it got the handle, less how often it freed it.
    pub references: Mutex<usize>,
}

impl Errhandler {
    fn with(action: Action) -> Arc<Errhandler> {
        Arc::new(Errhandler { action, handle: AtomicUsize::new(0), references: Mutex::new(0) })
    }

    /// `MPI_ERRORS_ARE_FATAL`, the initial handler of all objects.
    pub fn fatal() -> Arc<Errhandler> {
        static FATAL: LazyLock<Arc<Errhandler>> = LazyLock::new(|| Errhandler::with(Action::Fatal));
        FATAL.clone()
    }

    /// `MPI_ERRORS_ABORT`.
    pub fn abort() -> Arc<Errhandler> {
        static ABORT: LazyLock<Arc<Errhandler>> = LazyLock::new(|| Errhandler::with(Action::Abort));
        ABORT.clone()
    }

    /// `MPI_ERRORS_RETURN`.
    pub fn returning() -> Arc<Errhandler> {
        static RETURN: LazyLock<Arc<Errhandler>> = LazyLock::new(|| Errhandler::with(Action::Return));
        RETURN.clone()
    }

    /// Makes a program's own handler for objects of one kind.
    pub fn user(scope: Scope, handler: UserHandler) -> Arc<Errhandler> {
        Errhandler::with(Action::User(scope, handler))
    }

    /// Fails unless this handler can serve objects of the kind `scope`.
    pub fn check_fits(&self, scope: Scope) -> Result<()> {
        match &self.action {
            Action::User(made_for, _) if *made_for != scope => {
                fail!(
                    MPI_ERR_ERRHANDLER,
                    "the error handler was made for {}, not for {}",
                    made_for.noun(),
                    scope.noun()
                )
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::MPI_ERR_ERRHANDLER;

    #[test]
    fn predefined_handlers_are_single_objects_and_fit_everything() {
        for (handler, again) in [
            (Errhandler::fatal(), Errhandler::fatal()),
            (Errhandler::abort(), Errhandler::abort()),
            (Errhandler::returning(), Errhandler::returning()),
        ] {
            assert!(Arc::ptr_eq(&handler, &again));
            for scope in [Scope::Comm, Scope::Window, Scope::File, Scope::Session] {
                handler.check_fits(scope).unwrap();
            }
        }
    }

    #[test]
    fn a_users_handler_fits_its_kind_only() {
        let handler = Errhandler::user(Scope::Window, Arc::new(|_, code| code));
        handler.check_fits(Scope::Window).unwrap();
        assert_eq!(handler.check_fits(Scope::Comm).unwrap_err().class, MPI_ERR_ERRHANDLER);
    }
}
