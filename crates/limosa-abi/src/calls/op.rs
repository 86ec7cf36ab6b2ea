//! Reduction operations (MPI-5 sections 6.9.5 to 6.9.7).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::op::{Op, UserFunction};
use limosa_mpi::{Error, Result, consts};

use crate::args::AnyFn;
use crate::callback;
use crate::cx::Cx;
use crate::handles::{Handle, HandleTable, Object};
use crate::kinds;

/// Calls `function` with a handle of the datatype. A type that was freed while an operation still uses it gets a
/// temporary handle.
fn with_handle(datatype: &Arc<Datatype>, function: impl Fn(Handle)) {
    let table: &HandleTable<Datatype> = Datatype::table();
    match datatype.handle() {
        0 => {
            let lent = datatype.again();
            let handle = table.insert(lent).unwrap_or(Handle::predefined(consts::MPI_DATATYPE_NULL));
            function(handle);
            // An erroneous program may have freed it already.
            let _ = table.remove(handle);
        }
        handle => function(Handle(handle)),
    }
}

/// Wraps a user function of the base form, whose counts are `int`: more elements are passed in several calls.
fn narrow(function: callback::MPI_User_function) -> UserFunction {
    Arc::new(move |input, inout, count, datatype| {
        with_handle(datatype, |handle| {
            let mut done = 0;
            while done < count {
                let mut length = (count - done).min(c_int::MAX as usize) as c_int;
                let mut handle = handle;
                let offset = done as isize * datatype.extent() as isize;
                let (from, to) =
                    (input.wrapping_offset(offset).cast_mut().cast(), inout.wrapping_offset(offset).cast());
                // SAFETY: the program promises a function of this type; the buffers are its own or the library's, and
                // large enough.
                unsafe { function(from, to, &raw mut length, &raw mut handle) };
                done += (count - done).min(c_int::MAX as usize);
            }
        });
    })
}

/// Wraps a user function of the large-count form.
fn wide(function: callback::MPI_User_function_c) -> UserFunction {
    Arc::new(move |input, inout, count, datatype| {
        with_handle(datatype, |handle| {
            let (mut length, mut handle) = (count as i64, handle);
            // SAFETY: the program promises a function of this type; the buffers are its own or the library's, and large
            // enough.
            unsafe { function(input.cast_mut().cast(), inout.cast(), &raw mut length, &raw mut handle) };
        });
    })
}

pub(crate) fn mpi_op_create(cx: &Cx, user_fn: AnyFn, commute: bool, op: &mut Handle) -> Result<()> {
    let Some(function) = user_fn else {
        return Err(Error::new(consts::MPI_ERR_ARG, "user_fn is a null pointer, but it must be a function"));
    };
    let function = if cx.large() {
        // SAFETY: the large-count form takes a pointer to a function of this type.
        wide(unsafe { std::mem::transmute::<unsafe extern "C" fn(), callback::MPI_User_function_c>(function) })
    } else {
        // SAFETY: the base form takes a pointer to a function of this type.
        narrow(unsafe { std::mem::transmute::<unsafe extern "C" fn(), callback::MPI_User_function>(function) })
    };
    *op = cx.register(Op::user(function, commute))?;
    Ok(())
}

pub(crate) fn mpi_op_free(cx: &Cx, op: &mut Handle) -> Result<()> {
    cx.free::<Op>(op, "op")?;
    Ok(())
}

pub(crate) fn mpi_op_commutative(_cx: &Cx, op: &Arc<kinds::Operation>, commute: &mut c_int) -> Result<()> {
    *commute = op.is_commutative().into();
    Ok(())
}

pub(crate) fn mpi_reduce_local(
    _cx: &Cx,
    inbuf: *mut c_void,
    inoutbuf: *mut c_void,
    count: i64,
    datatype: &Arc<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
) -> Result<()> {
    datatype.check_committed()?;
    op.check(datatype)?;
    for (buffer, arg) in [(inbuf, "inbuf"), (inoutbuf, "inoutbuf")] {
        if buffer as usize == consts::MPI_IN_PLACE {
            return Err(Error::new(
                consts::MPI_ERR_BUFFER,
                format!("{arg} is MPI_IN_PLACE, which has no meaning here"),
            ));
        }
        datatype.check_buffer(buffer.cast(), count, arg)?;
    }
    if inbuf == inoutbuf && count > 0 && datatype.size() > 0 && !inbuf.is_null() {
        return Err(Error::new(
            consts::MPI_ERR_BUFFER,
            "inbuf and inoutbuf are the same buffer, but they must not overlap",
        ));
    }
    // SAFETY: the program promises two buffers of `count` elements that do not overlap.
    unsafe { op.reduce_local(inbuf.cast(), inoutbuf.cast(), count as usize, datatype) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cx(large: bool) -> Cx {
        Cx::new("MPI_Test", large)
    }

    /// Adds the number of elements and the extent of their type to the result.
    unsafe extern "C" fn describe(_: *mut c_void, inout: *mut c_void, length: *mut c_int, datatype: *mut Handle) {
        // SAFETY: the library passes valid addresses for all arguments; the test an integer as the result.
        unsafe {
            let datatype = Datatype::table().get(*datatype).unwrap();
            *inout.cast::<i64>() += *length as i64 + datatype.extent() * 100;
        }
    }

    /// Does the same for large counts.
    unsafe extern "C" fn describe_large(_: *mut c_void, inout: *mut c_void, length: *mut i64, datatype: *mut Handle) {
        // SAFETY: as above.
        unsafe {
            let datatype = Datatype::table().get(*datatype).unwrap();
            *inout.cast::<i64>() += *length + datatype.extent() * 100;
        }
    }

    fn create(large: bool) -> Handle {
        let function: unsafe extern "C" fn() = if large {
            // SAFETY: functions are pointers, and the glue converts this one back.
            unsafe { std::mem::transmute::<callback::MPI_User_function_c, unsafe extern "C" fn()>(describe_large) }
        } else {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<callback::MPI_User_function, unsafe extern "C" fn()>(describe) }
        };
        let mut handle = Handle::default();
        mpi_op_create(&cx(large), Some(function), true, &mut handle).unwrap();
        handle
    }

    #[test]
    fn user_functions_see_a_live_handle_even_of_a_freed_type() {
        for large in [false, true] {
            let mut handle = create(large);
            let op = cx(large).get::<Op>(handle, "op").unwrap();
            let (input, mut result) = ([0i64; 4], [0i64; 4]);
            // Never registered, like a freed type.
            let datatype = Datatype::contiguous(2, &Datatype::named(consts::MPI_INT)).unwrap();
            // SAFETY: room for three elements.
            unsafe { op.reduce_local(input.as_ptr().cast(), result.as_mut_ptr().cast(), 3, &datatype).unwrap() };
            assert_eq!(result[0], 803);
            mpi_op_free(&cx(large), &mut handle).unwrap();
            assert_eq!(handle, Handle::predefined(consts::MPI_OP_NULL));
        }
    }

    #[test]
    fn predefined_operations_cannot_be_freed() {
        let mut sum = Handle::predefined(consts::MPI_SUM);
        assert_eq!(mpi_op_free(&cx(false), &mut sum).unwrap_err().class, consts::MPI_ERR_OP);
        assert_eq!(sum, Handle::predefined(consts::MPI_SUM));
    }

    #[test]
    fn buffers_are_checked_before_use() {
        let (int, sum) = (Datatype::named(consts::MPI_INT), Op::builtin(consts::MPI_SUM).unwrap());
        let mut number = 1i32;
        let number: *mut c_void = (&raw mut number).cast();
        let null = std::ptr::null_mut();
        for (input, inout) in
            [(null, number), (number, null), (number, number), (consts::MPI_IN_PLACE as *mut c_void, number)]
        {
            assert_eq!(
                mpi_reduce_local(&cx(false), input, inout, 1, &int, &sum).unwrap_err().class,
                consts::MPI_ERR_BUFFER
            );
        }
        mpi_reduce_local(&cx(false), null, null, 0, &int, &sum).unwrap();
    }
}
