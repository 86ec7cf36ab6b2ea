//! Context of a call: its function, its object, and the handling of its errors.

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use limosa_base::hazard::Ref;
use limosa_mpi::consts::{self, ErrorClass};
use limosa_mpi::{Error, Result, check, tool};

use crate::errors::{self, ErrorTarget};
use crate::handles::{Handle, Miss, Object, describe};
use crate::kinds::{self, Errhandler};
use crate::{lifecycle, origins};

/// Period in which a function may be called (MPI-5 section 11.4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At any time.
    AnyTime,
    /// Between initialisation and finalisation.
    Running,
    /// Between initialisation and finalisation of the tool interface.
    Tool,
}

/// Data of the call for its glue.
pub(crate) struct Cx {
    /// Name of the function as the program called it, `MPI_Send_c`.
    name: &'static str,
    large: bool,
    blamed: RefCell<Option<Blamed>>,
}

/// Recipient of an error in place of the call's target.
enum Blamed {
    /// The error handler of that communicator, window or file.
    Object(ErrorTarget),
    /// That error handler.
    Handler(Arc<Errhandler>),
}

impl Cx {
    pub(crate) fn new(name: &'static str, large: bool) -> Cx {
        Cx { name, large, blamed: RefCell::new(None) }
    }

    /// Returns the function's name: `MPI_Send`, or `MPI_Send_c`.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether this is the large-count form (`_c`).
    pub(crate) fn large(&self) -> bool {
        self.large
    }

    /// Sets the communicator whose error handler gets an error of this call, for calls that determine it late
    /// (`MPI_Wait`).
    pub(crate) fn blame(&self, comm: Handle) {
        *self.blamed.borrow_mut() = Some(Blamed::Object(ErrorTarget::Comm(comm)));
    }

    /// Sets the window whose error handler gets an error of this call.
    pub(crate) fn blame_window(&self, window: Handle) {
        *self.blamed.borrow_mut() = Some(Blamed::Object(ErrorTarget::Win(window)));
    }

    /// Sets the file whose error handler gets an error of this call.
    pub(crate) fn blame_file(&self, file: Handle) {
        *self.blamed.borrow_mut() = Some(Blamed::Object(ErrorTarget::File(file)));
    }

    /// Directs an error of this call to that error handler, for calls that create an object with a given handler.
    pub(crate) fn blame_handler(&self, errhandler: &Arc<Errhandler>) {
        *self.blamed.borrow_mut() = Some(Blamed::Handler(errhandler.clone()));
    }

    /// Returns the object of a handle; `arg` is the parameter's name, for the message.
    #[inline(always)]
    pub(crate) fn get<T: Object>(&self, handle: Handle, arg: &str) -> Result<Ref<T>> {
        T::table().get(handle).map_err(|miss| bad_handle::<T>(handle, arg, &miss))
    }

    /// Returns the datatype of a message of `count` elements to or from the process `rank`. Without elements or with
    /// `MPI_PROC_NULL` the null handle is accepted: programs do not set it where they have no neighbour.
    #[inline(always)]
    pub(crate) fn get_of_message(
        &self,
        handle: Handle,
        arg: &str,
        count: i64,
        rank: c_int,
    ) -> Result<Ref<kinds::Datatype>> {
        match kinds::Datatype::table().get(handle) {
            Ok(datatype) => Ok(datatype),
            Err(_)
                if count == 0
                    && rank == consts::MPI_PROC_NULL
                    && handle == Handle::predefined(consts::MPI_DATATYPE_NULL) =>
            {
                self.get(Handle::predefined(consts::MPI_BYTE), arg)
            }
            Err(miss) => Err(bad_handle::<kinds::Datatype>(handle, arg, &miss)),
        }
    }

    /// Returns the object of a handle, or `None` for the null handle.
    #[inline]
    pub(crate) fn get_or_null<T: Object>(&self, handle: Handle, arg: &str) -> Result<Option<Ref<T>>> {
        if handle == Handle::predefined(T::KIND.null) { Ok(None) } else { self.get(handle, arg).map(Some) }
    }

    /// Returns the objects of an array of `n` handles.
    pub(crate) fn get_all<T: Object>(&self, handles: *const Handle, n: usize, arg: &str) -> Result<Vec<Arc<T>>> {
        self.slice(handles, n, arg)?
            .iter()
            .enumerate()
            .map(|(i, h)| self.get(*h, &format!("{arg}[{i}]")).map(|r| Arc::clone(&r)))
            .collect()
    }

    /// Returns `n` elements of a C array. Null is allowed if `n` is 0.
    pub(crate) fn slice<'a, T>(&'a self, start: *const T, n: usize, arg: &str) -> Result<&'a [T]> {
        match (start.is_null(), n) {
            (_, 0) => Ok(&[]),
            (true, _) => {
                Err(Error::new(consts::MPI_ERR_ARG, format!("{arg} is a null pointer, but {n} elements are wanted")))
            }
            // SAFETY: the caller of the C function promises an array of at least `n` elements.
            _ => Ok(unsafe { std::slice::from_raw_parts(start, n) }),
        }
    }

    /// Returns `n` writable elements of a C array. Null is allowed if `n` is 0. Call this once for each array: the
    /// slice is valid for the whole call.
    pub(crate) fn slice_mut<'a, T>(&self, start: *mut T, n: usize, arg: &str) -> Result<&'a mut [T]> {
        match (start.is_null(), n) {
            (_, 0) => Ok(&mut []),
            (true, _) => Err(Error::new(
                consts::MPI_ERR_ARG,
                format!("{arg} is a null pointer, but {n} elements are to be written"),
            )),
            // SAFETY: the caller of the C function promises an array of at least `n` elements without other accesses
            // during the call.
            _ => Ok(unsafe { std::slice::from_raw_parts_mut(start, n) }),
        }
    }

    /// Registers an object. Returns its handle.
    pub(crate) fn register<T: Object>(&self, object: Arc<T>) -> Result<Handle> {
        let handle = T::table().insert(object).ok_or_else(|| {
            Error::new(
                consts::MPI_ERR_OTHER,
                format!("no handle is left for {}: free some that are no longer needed", T::KIND.noun),
            )
        })?;
        if check::is_on() {
            origins::note(handle, self.name);
        }
        Ok(handle)
    }

    /// Removes the handle of an object, and sets it to the null handle. Predefined objects cannot be freed.
    pub(crate) fn free<T: Object>(&self, handle: &mut Handle, arg: &str) -> Result<Arc<T>> {
        let object = T::table().remove(*handle).map_err(|miss| bad_handle::<T>(*handle, arg, &miss))?;
        *handle = Handle::predefined(T::KIND.null);
        Ok(object)
    }
}

#[cold]
fn bad_handle<T: Object>(handle: Handle, arg: &str, miss: &Miss) -> Error {
    Error::new(T::KIND.class, format!("{arg} {}", describe(handle, &T::KIND, miss)))
}

/// Runs the body of a call. Returns the result of the C function.
#[inline]
pub(crate) fn enter(
    name: &'static str,
    large: bool,
    when: When,
    target: ErrorTarget,
    body: impl FnOnce(&Cx) -> Result<()>,
) -> c_int {
    let cx = Cx::new(name, large);
    if when == When::Running && !lifecycle::is_running() {
        return errors::raise(name, ErrorTarget::Default, lifecycle::not_running());
    }
    if when == When::Tool && !tool::is_initialized() {
        return consts::MPI_T_ERR_NOT_INITIALIZED;
    }
    limosa_mpi::observe::entering(name);
    match catch_unwind(AssertUnwindSafe(|| body(&cx))) {
        Ok(Ok(())) => consts::MPI_SUCCESS,
        Ok(Err(error)) => fail(&cx, target, error),
        Err(panic) => fail(&cx, target, internal(&*panic)),
    }
}

/// Outcome of a fast path.
pub(crate) enum Attempt {
    /// The fast path did nothing.
    Nothing,
    /// The call is complete.
    Done,
    /// The call has failed.
    Failed(ErrorTarget, Error),
}

impl From<bool> for Attempt {
    #[inline(always)]
    fn from(is_done: bool) -> Attempt {
        if is_done { Attempt::Done } else { Attempt::Nothing }
    }
}

/// Tries the fast path of a call. Returns `None`, without effect, if the call must take the general path.
#[inline(always)]
pub(crate) fn fast_path<A: Into<Attempt>>(
    name: &'static str,
    large: bool,
    fast_path: impl FnOnce() -> A,
) -> Option<c_int> {
    match catch_unwind(AssertUnwindSafe(|| fast_path().into())) {
        Ok(Attempt::Done) => Some(consts::MPI_SUCCESS),
        Ok(Attempt::Nothing) => None,
        Ok(Attempt::Failed(target, error)) => Some(fail(&Cx::new(name, large), target, error)),
        Err(panic) => Some(errors::raise(name, ErrorTarget::Default, internal(&*panic))),
    }
}

#[cold]
fn fail(cx: &Cx, target: ErrorTarget, error: Error) -> ErrorClass {
    let blamed = cx.blamed.borrow_mut().take();
    match blamed {
        None => errors::raise(cx.name, target, error),
        Some(Blamed::Object(object)) => errors::raise(cx.name, object, error),
        Some(Blamed::Handler(errhandler)) => {
            errors::raise_to(cx.name, errors::running(&errhandler, Handle::default()), error)
        }
    }
}

#[cold]
fn internal(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    Error::new(consts::MPI_ERR_INTERN, format!("an internal error of Limosa, please report it: {text}"))
}

/// Implements a function that is not supported yet.
#[cold]
#[allow(dead_code, reason = "the generator uses it for functions that are not done")]
pub(crate) fn unsupported(name: &'static str, target: ErrorTarget) -> c_int {
    let detail = "this function is not implemented yet in this version of Limosa";
    errors::raise(name, target, Error::new(consts::MPI_ERR_UNSUPPORTED_OPERATION, detail))
}
