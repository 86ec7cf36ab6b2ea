//! Reduction operations (MPI-5 sections 6.9.5 to 6.9.7).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::op::{Op, UserFunction};
use limosa_mpi::{Error, Result, consts};

use crate::args::AnyFn;
use crate::calls::kinds;
use crate::cx::Cx;
use crate::entry::callback;
use crate::handles::{Handle, HandleTable, Object};

/// Calls `function` with a handle of the datatype. One that was freed while an operation still uses it gets a handle for the call.
fn with_handle(datatype: &Arc<Datatype>, function: impl Fn(Handle)) {
    let table: &HandleTable<Datatype> = Datatype::table();
    match datatype.handle() {
        0 => {
            let lent = datatype.again();
            let handle = table.insert(lent).unwrap_or(Handle::predefined(consts::MPI_DATATYPE_NULL));
            function(handle);
            // The program may have freed it, against the rules: nothing is left to do then.
            let _ = table.remove(handle);
        }
        handle => function(Handle(handle)),
    }
}

/// A user function of the base form, whose counts are `int`: more elements are passed in several calls.
fn narrow(function: callback::MPI_User_function) -> UserFunction {
    Arc::new(move |input, inout, count, datatype| {
        with_handle(datatype, |handle| {
            let mut done = 0;
            while done < count {
                let mut length = (count - done).min(c_int::MAX as usize) as c_int;
                let mut handle = handle;
                let offset = done as isize * datatype.extent() as isize;
                let (from, to) = (input.wrapping_offset(offset).cast_mut().cast(), inout.wrapping_offset(offset).cast());
                // SAFETY: the program promises a function of this type; buffers are its own or of the library, both large enough.
                unsafe { function(from, to, &raw mut length, &raw mut handle) };
                done += (count - done).min(c_int::MAX as usize);
            }
        });
    })
}

/// A user function of the large-count form.
fn wide(function: callback::MPI_User_function_c) -> UserFunction {
    Arc::new(move |input, inout, count, datatype| {
        with_handle(datatype, |handle| {
            let (mut length, mut handle) = (count as i64, handle);
            // SAFETY: the program promises a function of this type; buffers are its own or of the library, both large enough.
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
            return Err(Error::new(consts::MPI_ERR_BUFFER, format!("{arg} is MPI_IN_PLACE, which has no meaning here")));
        }
        datatype.check_buffer(buffer.cast(), count, arg)?;
    }
    if inbuf == inoutbuf && count > 0 && datatype.size() > 0 && !inbuf.is_null() {
        return Err(Error::new(consts::MPI_ERR_BUFFER, "inbuf and inoutbuf are the same buffer, but they must not overlap"));
    }
    // SAFETY: the program promises two buffers of `count` elements that do not overlap.
    unsafe { op.reduce_local(inbuf.cast(), inoutbuf.cast(), count as usize, datatype) }
}
