//! Attribute caching (MPI-5 section 7.7 and the deprecated section 16.1).

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::attr::{self, CopyFn, CopyRule, DeleteFn, DeleteRule, Kind, Predefined};
use limosa_mpi::comm::Comm;
use limosa_mpi::{Result, consts};

use crate::args;
use crate::callback;
use crate::cx::Cx;
use crate::errors::answer;
use crate::handles::Handle;
use crate::kinds;

/// The C type of the copy callbacks of all kinds of objects.
type CCopy = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// The C type of the delete callbacks of all kinds of objects.
type CDelete = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// Returns the copy rule for `function`. The predefined functions are not functions but the addresses 0 and 1.
fn copy_rule(function: Option<CCopy>, extra_state: *mut c_void) -> CopyRule {
    let Some(function) = function else { return CopyRule::Forget };
    if function as usize == consts::MPI_COMM_DUP_FN {
        return CopyRule::Share;
    }
    let extra_state = extra_state as usize;
    let call: CopyFn = Arc::new(move |object, keyval, value| {
        let (mut copied, mut flag) = (std::ptr::null_mut::<c_void>(), 0);
        // SAFETY: the program promises a function of this type; it writes to the two places during the call only.
        let code = unsafe {
            function(
                Handle(object),
                keyval,
                extra_state as *mut c_void,
                value as *mut c_void,
                (&raw mut copied).cast(),
                &raw mut flag,
            )
        };
        answer(code, format_args!("copy function of keyval {keyval}"))?;
        Ok((flag != 0).then_some(copied as usize))
    });
    CopyRule::Ask(call)
}

fn delete_rule(function: Option<CDelete>, extra_state: *mut c_void) -> DeleteRule {
    let Some(function) = function else { return DeleteRule::Ignore };
    let extra_state = extra_state as usize;
    let call: DeleteFn = Arc::new(move |object, keyval, value| {
        // SAFETY: the program promises a function of this type.
        let code = unsafe { function(Handle(object), keyval, value as *mut c_void, extra_state as *mut c_void) };
        answer(code, format_args!("delete function of keyval {keyval}"))
    });
    DeleteRule::Tell(call)
}

fn create(
    kind: Kind,
    copy: Option<CCopy>,
    delete: Option<CDelete>,
    keyval: &mut c_int,
    extra_state: *mut c_void,
) -> Result<()> {
    *keyval = attr::create_keyval(kind, copy_rule(copy, extra_state), delete_rule(delete, extra_state))?;
    Ok(())
}

fn free(kind: Kind, keyval: &mut c_int) -> Result<()> {
    attr::free_keyval(kind, *keyval)?;
    *keyval = consts::MPI_KEYVAL_INVALID;
    Ok(())
}

/// Stores an attribute at the address `attribute_val` of a pointer.
pub(super) fn give(value: Option<usize>, attribute_val: *mut c_void, flag: &mut c_int) -> Result<()> {
    args::not_null(attribute_val, "attribute_val")?;
    *flag = value.is_some().into();
    if let Some(value) = value {
        // SAFETY: the program promises the address of a pointer.
        unsafe { attribute_val.cast::<usize>().write_unaligned(value) };
    }
    Ok(())
}

fn handle(comm: &Comm) -> usize {
    comm.handle.load(Ordering::Relaxed)
}

pub(crate) fn mpi_comm_create_keyval(
    _cx: &Cx,
    comm_copy_attr_fn: Option<callback::MPI_Comm_copy_attr_function>,
    comm_delete_attr_fn: Option<callback::MPI_Comm_delete_attr_function>,
    comm_keyval: &mut c_int,
    extra_state: *mut c_void,
) -> Result<()> {
    create(Kind::Comm, comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state)
}

pub(crate) fn mpi_comm_free_keyval(_cx: &Cx, comm_keyval: &mut c_int) -> Result<()> {
    free(Kind::Comm, comm_keyval)
}

pub(crate) fn mpi_comm_set_attr(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<()> {
    comm.attributes().set(handle(comm), comm_keyval, attribute_val as usize)
}

pub(crate) fn mpi_comm_get_attr(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
    flag: &mut c_int,
) -> Result<()> {
    let value = match Predefined::of(comm_keyval) {
        Some(predefined) => predefined.address().map(|address| address as usize),
        None => comm.attributes().get(comm_keyval)?,
    };
    give(value, attribute_val, flag)
}

pub(crate) fn mpi_comm_delete_attr(_cx: &Cx, comm: &Arc<kinds::Communicator>, comm_keyval: c_int) -> Result<()> {
    comm.attributes().delete(handle(comm), comm_keyval)
}

pub(crate) fn mpi_keyval_create(
    cx: &Cx,
    copy_fn: Option<callback::MPI_Copy_function>,
    delete_fn: Option<callback::MPI_Delete_function>,
    keyval: &mut c_int,
    extra_state: *mut c_void,
) -> Result<()> {
    mpi_comm_create_keyval(cx, copy_fn, delete_fn, keyval, extra_state)
}

pub(crate) fn mpi_keyval_free(cx: &Cx, keyval: &mut c_int) -> Result<()> {
    mpi_comm_free_keyval(cx, keyval)
}

pub(crate) fn mpi_attr_put(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<()> {
    mpi_comm_set_attr(cx, comm, keyval, attribute_val)
}

pub(crate) fn mpi_attr_get(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: &mut c_int,
) -> Result<()> {
    mpi_comm_get_attr(cx, comm, keyval, attribute_val, flag)
}

pub(crate) fn mpi_attr_delete(cx: &Cx, comm: &Arc<kinds::Communicator>, keyval: c_int) -> Result<()> {
    mpi_comm_delete_attr(cx, comm, keyval)
}

pub(crate) fn mpi_type_create_keyval(
    _cx: &Cx,
    type_copy_attr_fn: Option<callback::MPI_Type_copy_attr_function>,
    type_delete_attr_fn: Option<callback::MPI_Type_delete_attr_function>,
    type_keyval: &mut c_int,
    extra_state: *mut c_void,
) -> Result<()> {
    create(Kind::Datatype, type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state)
}

pub(crate) fn mpi_type_free_keyval(_cx: &Cx, type_keyval: &mut c_int) -> Result<()> {
    free(Kind::Datatype, type_keyval)
}

pub(crate) fn mpi_win_create_keyval(
    _cx: &Cx,
    win_copy_attr_fn: Option<callback::MPI_Win_copy_attr_function>,
    win_delete_attr_fn: Option<callback::MPI_Win_delete_attr_function>,
    win_keyval: &mut c_int,
    extra_state: *mut c_void,
) -> Result<()> {
    create(Kind::Window, win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state)
}

pub(crate) fn mpi_win_free_keyval(_cx: &Cx, win_keyval: &mut c_int) -> Result<()> {
    free(Kind::Window, win_keyval)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;

    use super::*;

    /// Adds one to the value if the extra state is success, and returns the extra state otherwise.
    unsafe extern "C" fn copy(
        _: Handle,
        _: c_int,
        extra: *mut c_void,
        value: *mut c_void,
        copied: *mut c_void,
        flag: *mut c_int,
    ) -> c_int {
        // SAFETY: the test passes an integer as extra state, the library valid addresses for the results.
        unsafe {
            copied.cast::<usize>().write(value as usize + 1);
            *flag = 1;
            (*extra.cast::<AtomicI32>()).load(Ordering::Relaxed)
        }
    }

    unsafe extern "C" fn delete(_: Handle, _: c_int, _: *mut c_void, extra: *mut c_void) -> c_int {
        // SAFETY: as above.
        unsafe { (*extra.cast::<AtomicI32>()).load(Ordering::Relaxed) }
    }

    fn cx() -> Cx {
        Cx::new("MPI_Test", false)
    }

    fn keyval(copy: Option<CCopy>, delete: Option<CDelete>, extra: &AtomicI32) -> c_int {
        let mut keyval = consts::MPI_KEYVAL_INVALID;
        mpi_comm_create_keyval(&cx(), copy, delete, &mut keyval, extra.as_ptr().cast()).unwrap();
        keyval
    }

    fn value(comm: &Arc<Comm>, keyval: c_int) -> Option<usize> {
        let (mut value, mut flag) = (0usize, 7);
        mpi_comm_get_attr(&cx(), comm, keyval, (&raw mut value).cast(), &mut flag).unwrap();
        (flag != 0).then_some(value)
    }

    #[test]
    fn callbacks_of_the_program_and_the_predefined_ones_are_told_apart() {
        let answer = AtomicI32::new(0);
        // SAFETY: the address 1, which is never called, as the constant MPI_COMM_DUP_FN.
        let dup_fn = unsafe { std::mem::transmute::<usize, Option<CCopy>>(consts::MPI_COMM_DUP_FN) };
        let [own, shared, none] = [Some(copy as CCopy), dup_fn, None].map(|copy| keyval(copy, None, &answer));
        let comm = Comm::without_engine(1, 0);
        for keyval in [own, shared, none] {
            mpi_comm_set_attr(&cx(), &comm, keyval, 40 as *mut c_void).unwrap();
        }
        let dup = comm.dup(None).unwrap();
        assert_eq!([own, shared, none].map(|keyval| value(&dup, keyval)), [Some(41), Some(40), None]);
    }

    #[test]
    fn the_error_code_of_a_callback_is_that_of_the_call() {
        let answer = AtomicI32::new(consts::MPI_ERR_OTHER);
        let keyval = keyval(Some(copy), Some(delete), &answer);
        let comm = Comm::without_engine(1, 0);
        mpi_comm_set_attr(&cx(), &comm, keyval, std::ptr::null_mut()).unwrap();
        for error in [comm.dup(None).err().unwrap(), mpi_comm_delete_attr(&cx(), &comm, keyval).unwrap_err()] {
            assert_eq!((error.class, error.verbatim), (consts::MPI_ERR_OTHER, true));
        }
        answer.store(0, Ordering::Relaxed);
        mpi_comm_delete_attr(&cx(), &comm, keyval).unwrap();
        assert_eq!(value(&comm, keyval), None);
    }

    #[test]
    fn predefined_attributes_are_addresses_of_integers() {
        let address = value(&Comm::without_engine(1, 0), consts::MPI_TAG_UB).unwrap() as *const c_int;
        // SAFETY: the address of a static integer.
        assert_eq!(unsafe { *address }, c_int::MAX);
    }

    #[test]
    fn a_freed_keyval_is_invalid() {
        let mut keyval = keyval(None, None, &AtomicI32::new(0));
        mpi_keyval_free(&cx(), &mut keyval).unwrap();
        assert_eq!(keyval, consts::MPI_KEYVAL_INVALID);
        assert_eq!(mpi_keyval_free(&cx(), &mut keyval).unwrap_err().class, consts::MPI_ERR_KEYVAL);
    }
}
