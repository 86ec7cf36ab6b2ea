//! Arguments: checks, and types that abstract from narrow and wide integers.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use limosa_mpi::consts::{self, ErrorClass};
use limosa_mpi::datatype::{Datatype, Held};
use limosa_mpi::{Error, Result};

use crate::cx::Cx;
use crate::handles::{Handle, Object};

/// A function pointer whose real type the glue knows from [`Cx::large`].
pub(crate) type AnyFn = Option<unsafe extern "C" fn()>;

#[cold]
fn null(arg: &str) -> Error {
    Error::new(consts::MPI_ERR_ARG, format!("{arg} is a null pointer"))
}

/// Checks the lower bound of an integer argument.
#[inline]
pub(crate) fn at_least(value: i64, least: i64, arg: &str, class: ErrorClass) -> Result<()> {
    if value >= least { Ok(()) } else { Err(too_small(value, least, arg, class)) }
}

#[cold]
fn too_small(value: i64, least: i64, arg: &str, class: ErrorClass) -> Error {
    let wanted = if least == 0 { "it must not be negative".to_owned() } else { format!("it must be at least {least}") };
    Error::new(class, format!("{arg} is {value}, but {wanted}"))
}

/// Checks a pointer for null.
#[inline]
pub(crate) fn not_null<T>(pointer: *const T, arg: &str) -> Result<()> {
    if pointer.is_null() { Err(null(arg)) } else { Ok(()) }
}

/// Returns the location of a result.
///
/// # Safety
/// A non-null pointer must be valid, and not be accessed otherwise, for the duration of the call.
#[inline]
pub(crate) unsafe fn out<'a, T>(pointer: *mut T, arg: &str) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(arg))
}

/// Stores the null handle where the handle of a new object will be returned.
///
/// # Safety
/// As for [`out`].
#[inline]
pub(crate) unsafe fn clear<T: Object>(pointer: *mut Handle) {
    // SAFETY: the caller's promise.
    if let Some(place) = unsafe { pointer.as_mut() } {
        *place = Handle::predefined(T::KIND.null);
    }
}

/// Returns an argument that is passed by address.
///
/// # Safety
/// A non-null pointer must be valid for the duration of the call.
#[inline]
pub(crate) unsafe fn input<'a, T>(pointer: *const T, arg: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(arg))
}

/// Returns a string argument.
///
/// # Safety
/// A non-null pointer must point to a string that ends in a zero byte.
#[inline]
pub(crate) unsafe fn text<'a>(pointer: *const c_char, arg: &str) -> Result<&'a CStr> {
    not_null(pointer, arg)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Returns the handle at an address; 0, which is no handle, if the address is null.
///
/// # Safety
/// As for [`input`].
#[inline]
pub(crate) unsafe fn peek(pointer: *const Handle) -> Handle {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.copied().unwrap_or_default()
}

/// Copies a string into a C array of `limit` bytes, cut at a character boundary if necessary, with a terminating zero
/// byte. Returns the length without that byte.
///
/// # Safety
/// `to` must have room for `limit` bytes; `limit` must not be 0.
pub(crate) unsafe fn copy_text(to: *mut c_char, limit: usize, from: &str) -> c_int {
    let mut end = from.len().min(limit - 1);
    while !from.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end + 1 <= limit` bytes are written.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr().cast(), to, end);
        *to.add(end) = 0;
    }
    end as c_int
}

/// Copies bytes into a C array of `limit` bytes, cut if necessary, with a terminating zero byte. Returns the length
/// without that byte.
///
/// # Safety
/// As for [`copy_text`].
pub(crate) unsafe fn copy_bytes(to: *mut c_char, limit: usize, from: &[u8]) -> c_int {
    let end = from.len().min(limit - 1);
    // SAFETY: `end + 1 <= limit` bytes are written.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr().cast(), to, end);
        *to.add(end) = 0;
    }
    end as c_int
}

/// An array of counts or displacements: `int` in the base function, 8 bytes wide in some functions and in large-count
/// forms.
#[derive(Clone, Copy)]
pub(crate) enum IntArray {
    /// `int`
    Narrow(*const c_int),
    /// `MPI_Aint` or `MPI_Count`
    Large(*const i64),
}

impl From<*const c_int> for IntArray {
    fn from(start: *const c_int) -> IntArray {
        IntArray::Narrow(start)
    }
}

impl From<*const i64> for IntArray {
    fn from(start: *const i64) -> IntArray {
        IntArray::Large(start)
    }
}

impl IntArray {
    /// Returns whether the program passed a null pointer.
    pub(crate) fn is_null(&self) -> bool {
        match self {
            IntArray::Narrow(start) => start.is_null(),
            IntArray::Large(start) => start.is_null(),
        }
    }

    /// Returns element `i`.
    ///
    /// The program guarantees that the array has as many elements as the standard requires. The glue reads no others,
    /// and checks for null before.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> i64 {
        // SAFETY: see above.
        unsafe {
            match self {
                IntArray::Narrow(start) => *start.add(i) as i64,
                IntArray::Large(start) => *start.add(i),
            }
        }
    }

    /// Returns the first `n` elements. Null is allowed if `n` is 0.
    pub(crate) fn to_vec(self, n: usize, arg: &str) -> Result<Vec<i64>> {
        if n > 0 && self.is_null() {
            return Err(Error::new(
                consts::MPI_ERR_ARG,
                format!("{arg} is a null pointer, but {n} elements are wanted"),
            ));
        }
        Ok((0..n).map(|i| self.get(i)).collect())
    }
}

/// Location of an integer result: `int` in the base function, 8 bytes in the large-count form.
#[derive(Clone, Copy)]
pub(crate) enum OutInt {
    /// `int`
    Narrow(*mut c_int),
    /// `MPI_Aint` or `MPI_Count`
    Large(*mut i64),
}

impl From<*mut c_int> for OutInt {
    fn from(place: *mut c_int) -> OutInt {
        OutInt::Narrow(place)
    }
}

impl From<*mut i64> for OutInt {
    fn from(place: *mut i64) -> OutInt {
        OutInt::Large(place)
    }
}

impl OutInt {
    /// Returns the location of a result that this form of the function does not have; stores have no effect.
    pub(crate) fn absent() -> OutInt {
        OutInt::Narrow(std::ptr::null_mut())
    }

    /// Fails if the program passed a null pointer.
    pub(crate) fn check(&self, arg: &str) -> Result<()> {
        match self {
            OutInt::Narrow(place) => not_null(*place, arg),
            OutInt::Large(place) => not_null(*place, arg),
        }
    }

    /// Returns the current value of a parameter that is read and written; 0 if absent.
    pub(crate) fn get(&self) -> i64 {
        // SAFETY: null, or valid by the promise of the C function's caller.
        unsafe {
            match self {
                OutInt::Narrow(place) => place.as_ref().map_or(0, |v| *v as i64),
                OutInt::Large(place) => place.as_ref().copied().unwrap_or(0),
            }
        }
    }

    /// Stores the result; a value that does not fit becomes `MPI_UNDEFINED`.
    pub(crate) fn set(&self, value: i64) {
        // SAFETY: null, or valid by the promise of the C function's caller.
        unsafe {
            match self {
                OutInt::Narrow(place) if !place.is_null() => {
                    **place = c_int::try_from(value).unwrap_or(consts::MPI_UNDEFINED)
                }
                OutInt::Large(place) if !place.is_null() => **place = value,
                _ => {}
            }
        }
    }
}

/// An object argument that is looked up when the glue needs it. It is insignificant in some calls (`recvtype` of
/// `MPI_Gather` at non-root processes, `sendtype` with `MPI_IN_PLACE`) and may then have any value.
pub(crate) struct Late<T> {
    handle: Handle,
    arg: &'static str,
    object: std::marker::PhantomData<fn() -> T>,
}

impl<T: Object> Late<T> {
    /// Creates the argument `arg` with that value.
    pub(crate) fn new(handle: Handle, arg: &'static str) -> Late<T> {
        Late { handle, arg, object: std::marker::PhantomData }
    }

    /// Returns the object, or the error that the handle is invalid.
    pub(crate) fn get(&self, cx: &Cx) -> Result<Arc<T>> {
        cx.get(self.handle, self.arg).map(|object| Arc::clone(&object))
    }
}

impl Late<Datatype> {
    /// Returns the datatype, held for an operation.
    #[inline(always)]
    pub(crate) fn held(&self, cx: &Cx) -> Result<Held> {
        match Datatype::always(self.handle.0) {
            Some(held) => Ok(held),
            None => self.get(cx).map(Held::from),
        }
    }
}

/// A count that is checked when the glue needs it, for the same reason as [`Late`].
#[derive(Clone, Copy)]
pub(crate) struct LateCount {
    count: i64,
    arg: &'static str,
}

impl LateCount {
    /// Creates the argument `arg` with that value.
    pub(crate) fn new(count: i64, arg: &'static str) -> LateCount {
        LateCount { count, arg }
    }

    /// Returns the count, or the error that it is negative.
    pub(crate) fn get(&self) -> Result<i64> {
        at_least(self.count, 0, self.arg, consts::MPI_ERR_COUNT)?;
        Ok(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_too_large_for_an_int_becomes_undefined() {
        let (mut narrow, mut wide) = (0, 0i64);
        OutInt::from(&raw mut narrow).set(1 << 40);
        OutInt::from(&raw mut wide).set(1 << 40);
        assert_eq!((narrow, wide), (consts::MPI_UNDEFINED, 1 << 40));
        OutInt::absent().set(5);
    }

    #[test]
    fn integer_arrays_of_both_widths_read_alike() {
        let (narrow, wide) = ([3, -1], [3i64, -1]);
        for array in [IntArray::from(narrow.as_ptr()), IntArray::from(wide.as_ptr())] {
            assert_eq!(array.to_vec(2, "counts").unwrap(), [3, -1]);
        }
        assert!(IntArray::from(std::ptr::null::<c_int>()).to_vec(0, "counts").unwrap().is_empty());
        assert_eq!(
            IntArray::from(std::ptr::null::<c_int>()).to_vec(1, "counts").unwrap_err().class,
            consts::MPI_ERR_ARG
        );
    }

    #[test]
    fn text_is_shortened_to_whole_characters() {
        let mut room = [1 as c_char; 5];
        // SAFETY: five bytes of room.
        let length = unsafe { copy_text(room.as_mut_ptr(), 5, "abcé") };
        assert_eq!(length, 3);
        assert_eq!(room[3], 0);
    }
}
