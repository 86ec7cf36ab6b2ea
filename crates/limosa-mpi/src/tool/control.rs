//! Control variables (MPI-5 section 15.3.6): the `LIMOSA_*` variables of the user.
//!
//! They can be written before the library reads them, which it does in `MPI_Init` at the latest; what the tool writes
//! counts more than the environment. Those that only the launcher reads cannot be written.

use super::{error, index, next_handle};
use crate::consts;
use crate::error::Result;
use limosa_job::config::{self, Audience, VARIABLES};
pub use limosa_job::config::{Form, Variable};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Longest name of a file that a variable can hold, with the zero byte at its end.
pub const TEXT_BYTES: usize = 4096;

/// Variables that only the launcher reads.
const LAUNCHERS: [&str; 6] = [
    "LIMOSA_ON_HANG",
    "LIMOSA_HANG_AFTER",
    "LIMOSA_HANG_GRACE",
    "LIMOSA_TAG_OUTPUT",
    "LIMOSA_DIALECT",
    "LIMOSA_PYTHON_FAST_PATH",
];

static HANDLES: LazyLock<Mutex<FxHashMap<usize, usize>>> = LazyLock::new(Mutex::default);

/// Returns the control variables, by index.
pub fn variables() -> Vec<&'static Variable> {
    VARIABLES.iter().filter(|variable| variable.audience == Audience::User).collect()
}

/// A value as the tool sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `MPI_INT`: a switch, or the number of a word of the variable's enumeration.
    Int(i32),
    /// `MPI_UNSIGNED_LONG_LONG`.
    Unsigned(u64),
    /// `MPI_DOUBLE`: seconds.
    Double(f64),
    /// [`TEXT_BYTES`] of `MPI_CHAR`.
    Text(String),
}

/// Returns the variable with this index.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn at(cvar_index: i32) -> Result<&'static Variable> {
    let all = variables();
    Ok(all[index(cvar_index, all.len())?])
}

/// Returns the words of a variable that has an enumeration.
pub fn words(variable: &Variable) -> Option<&'static [&'static str]> {
    if let Form::Choice(words) = variable.form { Some(words) } else { None }
}

/// Whether it can be written, if that is in time.
pub fn is_writable(variable: &Variable) -> bool {
    !LAUNCHERS.contains(&variable.name)
}

/// Makes a handle for the variable with this index.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn allocate(cvar_index: i32) -> Result<usize> {
    let at = index(cvar_index, variables().len())?;
    let handle = next_handle();
    HANDLES.lock().insert(handle, at);
    Ok(handle)
}

/// Frees a handle.
///
/// # Errors
/// `MPI_T_ERR_INVALID_HANDLE`.
pub fn free(handle: usize) -> Result<()> {
    HANDLES.lock().remove(&handle).map(drop).ok_or_else(|| error(consts::MPI_T_ERR_INVALID_HANDLE))
}

/// Returns the variable of a handle.
///
/// # Errors
/// `MPI_T_ERR_INVALID_HANDLE`.
pub fn of(handle: usize) -> Result<&'static Variable> {
    let at = HANDLES.lock().get(&handle).copied().ok_or_else(|| error(consts::MPI_T_ERR_INVALID_HANDLE))?;
    Ok(variables()[at])
}

/// Returns the value of a variable.
pub fn read(variable: &Variable) -> Value {
    let text = config::value(variable);
    match variable.form {
        Form::Choice(words) => Value::Int(words.iter().position(|word| *word == text).map_or(0, |at| at as i32)),
        Form::Switch => Value::Int((text == "1").into()),
        Form::Number { .. } => Value::Unsigned(text.parse().unwrap_or_default()),
        Form::Seconds => Value::Double(text.parse().unwrap_or_default()),
        Form::Device | Form::Filter | Form::Path | Form::Text => Value::Text(text),
    }
}

/// Sets a variable.
///
/// # Errors
/// `MPI_T_ERR_CVAR_SET_NEVER` for a variable of the launcher, `MPI_T_ERR_CVAR_SET_NOT_NOW` after the library has read
/// it, `MPI_T_ERR_INVALID` for an invalid value.
pub fn write(variable: &Variable, value: &Value) -> Result<()> {
    if !is_writable(variable) {
        return Err(error(consts::MPI_T_ERR_CVAR_SET_NEVER));
    }
    let text = match (value, words(variable)) {
        (Value::Int(at), Some(words)) => {
            words[index(*at, words.len()).map_err(|_| error(consts::MPI_T_ERR_INVALID))?].to_owned()
        }
        (Value::Int(switch), None) => switch.to_string(),
        (Value::Unsigned(number), _) => number.to_string(),
        (Value::Double(seconds), _) => seconds.to_string(),
        (Value::Text(text), _) => text.clone(),
    };
    match config::set(variable, &text) {
        Ok(true) => Ok(()),
        Ok(false) => Err(error(consts::MPI_T_ERR_CVAR_SET_NOT_NOW)),
        Err(_) => Err(error(consts::MPI_T_ERR_INVALID)),
    }
}
