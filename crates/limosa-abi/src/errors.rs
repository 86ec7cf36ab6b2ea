//! Error handling (MPI-5 section 9.3): an error goes to the error handler of the object of the call.
//!
//! - The object is the call's communicator, window, file or session. Without a valid one, it is `MPI_COMM_SELF`, or
//!   `MPI_COMM_WORLD` if the program has set an error handler only there.
//! - `MPI_ERRORS_ARE_FATAL`, the default, and `MPI_ERRORS_ABORT` print one block and end the job. `MPI_ERRORS_RETURN`
//!   returns the code.
//! - A handler of the program is called with the handle and the code, without any lock held. The call then returns the
//!   code, as the handler has left it.
//! - An interrupt of the program itself ([`crate::python`]) is no error: no handler is called, the code is returned.
//! - The code refers to the function's name and the sentence, which `MPI_Error_string` returns.

use std::ffi::c_int;
use std::fmt;
use std::io::Write;
use std::time::Duration;

use limosa_mpi::errhandler::Action;
use limosa_mpi::tool::event::{self, Event};
use limosa_mpi::{Error, Result, consts, error_code, instance};

use crate::handles::{Handle, Object};
use crate::kinds::{Communicator, Errhandler, File, Session, Window};
use crate::lifecycle;
use crate::python;

/// Object whose error handler gets an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorTarget {
    /// A communicator.
    Comm(Handle),
    /// A window.
    Win(Handle),
    /// A file.
    File(Handle),
    /// A session.
    Session(Handle),
    /// None in particular: `MPI_COMM_SELF`.
    Default,
}

/// Action for an error.
pub(crate) enum Handler {
    /// `MPI_ERRORS_ARE_FATAL`
    AreFatal,
    /// `MPI_ERRORS_ABORT`
    Abort,
    /// `MPI_ERRORS_RETURN`
    Return,
    /// A function of the program. It gets the code, and returns the code for the caller.
    Call(Box<dyn FnOnce(c_int) -> c_int>),
}

/// Converts the return code of a function of the program to the result of the call that called it. `function` describes
/// it.
pub(crate) fn answer(code: c_int, function: fmt::Arguments<'_>) -> Result<()> {
    if code == consts::MPI_SUCCESS {
        return Ok(());
    }
    let text = error_code::own_string(code).map_or_else(String::new, |text| format!(": {text}"));
    Err(Error::verbatim(code, format!("the program's {function} returned error code {code}{text}")))
}

/// Returns whether the call belongs to the tool interface, which has no error handlers and no codes other than its
/// classes (MPI-5 section 15.3.10).
fn is_of_tools(function: &str) -> bool {
    function.starts_with("MPI_T_")
}

/// Returns the code for an error in a call of this function.
#[cold]
pub(crate) fn code(function: &'static str, error: &Error) -> c_int {
    if error.verbatim || is_of_tools(function) {
        return error.class;
    }
    error_code::carrying(error.class, python::known_name(function), &error.detail)
}

/// Returns the error handler for an error of `target`: that of `MPI_COMM_SELF` if there is no such object, the default
/// before initialisation. If the program has set only that of `MPI_COMM_WORLD`, it is used: until MPI-4 such errors
/// went there.
fn handler(target: ErrorTarget) -> Handler {
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

/// Calls the error handler of `target`. Returns the code for the C function, if the handler returns.
#[cold]
pub(crate) fn raise(function: &'static str, target: ErrorTarget, error: Error) -> c_int {
    if is_of_tools(function) {
        return error.class;
    }
    raise_to(function, handler(target), error)
}

/// Calls a known error handler. Returns the code for the C function, if the handler returns.
#[cold]
pub(crate) fn raise_to(function: &'static str, handler: Handler, error: Error) -> c_int {
    if error.interrupted {
        return code(function, &error);
    }
    if is_of_death(&error) {
        // The launcher signals ranks in turn: that peer may have ended because the job ends.
        instance::wait_if_job_is_ending(LAUNCHER_TIME);
    }
    event::happened(Event::Error, (error_code::class_of(error.class).unwrap_or(error.class) as u64, 0));
    match handler {
        Handler::AreFatal => fatal(function, &error, "MPI_ERRORS_ARE_FATAL"),
        Handler::Abort => fatal(function, &error, "MPI_ERRORS_ABORT"),
        Handler::Return => code(function, &error),
        Handler::Call(handler) => handler(code(function, &error)),
    }
}

/// Exit code of a job that ends by an error.
const EXIT_CODE: i32 = 1;

/// Time for which a rank with a fatal error, caused by a peer's death, waits for the launcher to end the job: the
/// launcher knows more about the death. It ends the job at once, unless the machine is very busy, or the dead process
/// is of another job. The same time as in `limosa._uncaught`.
const LAUNCHER_TIME: Duration = Duration::from_secs(10);
/// The same where the launcher may learn of the death, or of the loss of a host, from elsewhere: longer than its
/// timeout for hosts.
const LAUNCHER_TIME_ELSEWHERE: Duration = Duration::from_secs(20);

/// Whether the error says that a peer has died.
fn is_of_death(error: &Error) -> bool {
    error.by_death || error_code::class_of(error.class) == Ok(consts::MPI_ERR_PROC_ABORTED)
}

fn fatal(function: &'static str, error: &Error, handler: &str) -> ! {
    if is_of_death(error) {
        std::thread::sleep(if instance::has_ends_elsewhere() { LAUNCHER_TIME_ELSEWHERE } else { LAUNCHER_TIME });
    }
    let name = python::known_name(function);
    let _ = std::io::stderr().write_all(report(name, lifecycle::rank(), error, handler).as_bytes());
    // The launcher prints a line of its own, which does not repeat the block.
    lifecycle::abort(EXIT_CODE, &format!("error in {name}"))
}

/// Returns the block that the default handler prints.
fn report(function: &str, rank: Option<u32>, error: &Error, handler: &str) -> String {
    let class = error_code::class_of(error.class).unwrap_or(error.class);
    let name = consts::error_class_name(class).map_or_else(|| class.to_string(), str::to_owned);
    let meaning = error_code::text(class);
    let meaning = if meaning.is_empty() { String::new() } else { format!(" ({meaning})") };
    let who = rank.map_or_else(String::new, |rank| format!(" on rank {rank}"));
    format!(
        "limosa: error in {function}{who}: {detail}\n  \
         error class: {name}{meaning}\n  \
         the job ends now, because the error handler is {handler}; to handle errors in the program, set \
         MPI_ERRORS_RETURN\n",
        detail = error.detail,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_function_rank_class_and_what_is_wrong() {
        let error = Error::new(consts::MPI_ERR_COUNT, "count is -1, but it must not be negative");
        let text = report("MPI_Send", Some(3), &error, "MPI_ERRORS_ARE_FATAL");
        for part in ["MPI_Send", "rank 3", "count is -1", "MPI_ERR_COUNT", "MPI_ERRORS_ARE_FATAL"] {
            assert_eq!(text.matches(part).count(), 1, "{part} is to be in this once: {text}");
        }
    }

    #[test]
    fn a_code_carries_function_and_sentence_unless_it_is_to_be_returned_as_it_is() {
        let error = Error::new(consts::MPI_ERR_COUNT, "count is -1");
        for name in ["MPI_Send", "MPI_Send_c"] {
            let code = code(name, &error);
            assert_eq!(error_code::class_of(code), Ok(consts::MPI_ERR_COUNT));
            assert_eq!(error_code::string(code).unwrap(), format!("{name}: count is -1"));
        }
        assert_eq!(code("MPI_T_cvar_read", &error), consts::MPI_ERR_COUNT);
        let verbatim = Error::verbatim(consts::MPI_ERR_COUNT, "count is -1");
        assert_eq!(code("MPI_Send", &verbatim), consts::MPI_ERR_COUNT);
    }
}
