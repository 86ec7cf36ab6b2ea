//! Operations, error handlers, data representations and generalized requests of the program.
//!
//! The library calls functions of this module, which convert and call the program's. Where the standard passes an extra
//! state, that is how the program's function is found. Operations and error handlers have none: each function of the
//! program gets a function of a pool ([`Pool`]). It keeps it for ever, since an operation may be in use after
//! `MPI_Op_free`; the same function gets the same one again.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::convert::{
    Communicator, Datatype, Errhandler, File, Handle, Kind, Session, Window, error_code_to_standard,
    error_code_to_theirs, result, set_handle,
};
use crate::errors::raise;
use crate::layout::TheirStatus;
use crate::standard::{abi, standard_value as standard};
use crate::status::Status;

/// Functions of the program, by the number of the function that calls each.
struct Pool<const N: usize>([AtomicUsize; N]);

impl<const N: usize> Pool<N> {
    const fn new() -> Pool<N> {
        Pool([const { AtomicUsize::new(0) }; N])
    }

    /// Returns the number of a function, which gets one if it has none; `None` if no number is left.
    fn number(&self, function: usize) -> Option<usize> {
        self.0.iter().position(|slot| match slot.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(taken) => taken == function,
        })
    }

    fn function(&self, number: usize) -> usize {
        self.0[number].load(Ordering::Acquire)
    }
}

/// Lists the 512 instances of a generic function by their addresses.
macro_rules! instances {
    ($function:ident $(, $kind:ident)?) => {{
        macro_rules! eight {
            ($at:expr) => {
                [
                    instances!(@ $function $(, $kind)?, $at), instances!(@ $function $(, $kind)?, $at + 1),
                    instances!(@ $function $(, $kind)?, $at + 2), instances!(@ $function $(, $kind)?, $at + 3),
                    instances!(@ $function $(, $kind)?, $at + 4), instances!(@ $function $(, $kind)?, $at + 5),
                    instances!(@ $function $(, $kind)?, $at + 6), instances!(@ $function $(, $kind)?, $at + 7),
                ]
            };
        }
        macro_rules! many {
            ($base:expr) => {
                [
                    eight!($base), eight!($base + 8), eight!($base + 16), eight!($base + 24), eight!($base + 32),
                    eight!($base + 40), eight!($base + 48), eight!($base + 56),
                ]
            };
        }
        [many!(0), many!(64), many!(128), many!(192)]
    }};
    (@ $function:ident, $at:expr) => { $function::<{ $at }> as *const () };
    (@ $function:ident, $kind:ident, $at:expr) => { $function::<$kind, { $at }> as *const () };
}

/// Functions of a pool: as many as [`instances`] lists.
const SIZE: usize = 256;

fn instance(all: &[[[*const (); 8]; 8]; 4], number: usize) -> usize {
    all[number / 64][number / 8 % 8][number % 8] as usize
}

static OPERATIONS: Pool<SIZE> = Pool::new();
static LARGE_OPERATIONS: Pool<SIZE> = Pool::new();

type Operation = unsafe extern "C" fn(usize, usize, usize, *mut Handle<Datatype>);

unsafe extern "C" fn operate<const N: usize>(operands: usize, results: usize, count: usize, datatype: *const usize) {
    // SAFETY: the program has given a function of this type; the datatype's address is the library's.
    unsafe {
        let mut datatype = Datatype::to_theirs(*datatype);
        std::mem::transmute::<usize, Operation>(OPERATIONS.function(N))(operands, results, count, &mut datatype);
    }
}

unsafe extern "C" fn operate_large<const N: usize>(
    operands: usize,
    results: usize,
    count: usize,
    datatype: *const usize,
) {
    // SAFETY: likewise.
    unsafe {
        let mut datatype = Datatype::to_theirs(*datatype);
        std::mem::transmute::<usize, Operation>(LARGE_OPERATIONS.function(N))(operands, results, count, &mut datatype);
    }
}

/// Raises the error that no function of a pool is left.
fn exhausted(what: &str) -> i32 {
    static CODE: AtomicI32 = AtomicI32::new(0);
    let text = format!("the program has more than {SIZE} different functions for {what}");
    raise(&CODE, standard::MPI_ERR_NO_MEM, &text)
}

pub(crate) unsafe fn mpi_op_create(function: usize, commute: i32, op: usize) -> i32 {
    let number = if function == 0 { Some(0) } else { OPERATIONS.number(function) };
    let Some(number) = number else { return exhausted("operations") };
    let caller = if function == 0 { 0 } else { instance(&instances!(operate), number) };
    // SAFETY: the function has the type of the standard.
    unsafe { create_operation(abi::MPI_Op_create, caller, commute, op) }
}

pub(crate) unsafe fn mpi_op_create_c(function: usize, commute: i32, op: usize) -> i32 {
    let number = if function == 0 { Some(0) } else { LARGE_OPERATIONS.number(function) };
    let Some(number) = number else { return exhausted("operations with large counts") };
    let caller = if function == 0 { 0 } else { instance(&instances!(operate_large), number) };
    // SAFETY: likewise.
    unsafe { create_operation(abi::MPI_Op_create_c, caller, commute, op) }
}

unsafe fn create_operation(create: unsafe fn(usize, i32, usize) -> i32, caller: usize, commute: i32, op: usize) -> i32 {
    let mut made = crate::convert::Operation::NULL;
    let at = if op == 0 { 0 } else { &raw mut made as usize };
    // SAFETY: the operation's address is null or the program's.
    unsafe {
        let code = create(caller, commute, at);
        set_handle::<crate::convert::Operation>(op, made);
        result(code)
    }
}

/// A kind of object with error handlers.
trait Handled: Kind {
    /// The program's functions for this kind.
    fn pool() -> &'static Pool<SIZE>;
}

macro_rules! handled {
    ($($kind:ident)*) => {
        $(impl Handled for $kind {
            fn pool() -> &'static Pool<SIZE> {
                static POOL: Pool<SIZE> = Pool::new();
                &POOL
            }
        })*
    };
}

handled!(Communicator Window File Session);

/// A handler of the program, which may be variadic.
type Handler<C> = unsafe extern "C" fn(*mut C, *mut c_int, ...);

unsafe extern "C" fn handle<K: Handled, const N: usize>(object: *const usize, code: *mut c_int) {
    // SAFETY: the program has given a function of this type; the addresses are the library's.
    unsafe {
        let mut object = K::to_theirs(*object);
        let mut own = error_code_to_theirs(*code);
        let before = own;
        std::mem::transmute::<usize, Handler<K::C>>(K::pool().function(N))(&raw mut object, &raw mut own);
        if own != before {
            *code = if own == 0 { 0 } else { error_code_to_standard(own) };
        }
    }
}

unsafe fn create_handler<K: Handled>(
    create: unsafe fn(usize, usize) -> i32,
    function: usize,
    errhandler: usize,
    all: &[[[*const (); 8]; 8]; 4],
) -> i32 {
    let number = if function == 0 { Some(0) } else { K::pool().number(function) };
    let Some(number) = number else { return exhausted("error handlers") };
    let caller = if function == 0 { 0 } else { instance(all, number) };
    let mut made = Errhandler::NULL;
    let at = if errhandler == 0 { 0 } else { &raw mut made as usize };
    // SAFETY: the function has the type of the standard, but for variable arguments, of which there are none.
    unsafe {
        let code = create(caller, at);
        set_handle::<Errhandler>(errhandler, made);
        result(code)
    }
}

pub(crate) unsafe fn mpi_comm_create_errhandler(function: usize, errhandler: usize) -> i32 {
    let all = &instances!(handle, Communicator);
    // SAFETY: the arguments are the program's.
    unsafe { create_handler::<Communicator>(abi::MPI_Comm_create_errhandler, function, errhandler, all) }
}

pub(crate) unsafe fn mpi_errhandler_create(function: usize, errhandler: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { mpi_comm_create_errhandler(function, errhandler) }
}

pub(crate) unsafe fn mpi_win_create_errhandler(function: usize, errhandler: usize) -> i32 {
    let all = &instances!(handle, Window);
    // SAFETY: likewise.
    unsafe { create_handler::<Window>(abi::MPI_Win_create_errhandler, function, errhandler, all) }
}

pub(crate) unsafe fn mpi_file_create_errhandler(function: usize, errhandler: usize) -> i32 {
    let all = &instances!(handle, File);
    // SAFETY: likewise.
    unsafe { create_handler::<File>(abi::MPI_File_create_errhandler, function, errhandler, all) }
}

pub(crate) unsafe fn mpi_session_create_errhandler(function: usize, errhandler: usize) -> i32 {
    let all = &instances!(handle, Session);
    // SAFETY: likewise.
    unsafe { create_handler::<Session>(abi::MPI_Session_create_errhandler, function, errhandler, all) }
}

pub(crate) unsafe fn mpi_errhandler_set(comm: Handle<Communicator>, errhandler: Handle<Errhandler>) -> i32 {
    let (comm, errhandler) = (Communicator::to_standard(comm), Errhandler::to_standard(errhandler));
    // SAFETY: handles are checked by the library.
    unsafe { result(abi::MPI_Comm_set_errhandler(comm, errhandler)) }
}

pub(crate) unsafe fn mpi_errhandler_get(comm: Handle<Communicator>, errhandler: usize) -> i32 {
    let mut got = Errhandler::NULL;
    // SAFETY: handles are checked by the library; the address is the program's.
    unsafe {
        let code = abi::MPI_Comm_get_errhandler(Communicator::to_standard(comm), &raw mut got as usize);
        set_handle::<Errhandler>(errhandler, got);
        result(code)
    }
}

/// The functions of a data representation. Kept until the process ends, as the representation is.
struct Representation {
    read: usize,
    write: usize,
    extent: usize,
    state: usize,
}

type Conversion = unsafe extern "C" fn(usize, Handle<Datatype>, c_int, usize, i64, usize) -> c_int;
type LargeConversion = unsafe extern "C" fn(usize, Handle<Datatype>, i64, usize, i64, usize) -> c_int;
type Extent = unsafe extern "C" fn(Handle<Datatype>, usize, usize) -> c_int;

/// Converts what a function of the program has returned.
fn answer(code: c_int) -> c_int {
    if code == 0 { 0 } else { error_code_to_standard(code) }
}

/// Defines the function that calls the program's conversion in one direction, with small or large counts.
macro_rules! conversion {
    ($name:ident, $field:ident, $function:ty, $count:ty) => {
        unsafe extern "C" fn $name(
            memory: usize,
            datatype: usize,
            count: $count,
            file: usize,
            position: i64,
            own: &Representation,
        ) -> c_int {
            // SAFETY: the program has given a function of this type; the other arguments are the library's.
            unsafe {
                let function = std::mem::transmute::<usize, $function>(own.$field);
                answer(function(memory, Datatype::to_theirs(datatype), count, file, position, own.state))
            }
        }
    };
}

conversion!(read, read, Conversion, c_int);
conversion!(write, write, Conversion, c_int);
conversion!(read_large, read, LargeConversion, i64);
conversion!(write_large, write, LargeConversion, i64);

unsafe extern "C" fn extent(datatype: usize, extent: usize, own: &Representation) -> c_int {
    // SAFETY: likewise.
    unsafe {
        let function = std::mem::transmute::<usize, Extent>(own.extent);
        answer(function(Datatype::to_theirs(datatype), extent, own.state))
    }
}

/// Registers a representation; `functions` are the program's: those that read and write, and that for extents.
unsafe fn register(
    register: unsafe fn(usize, usize, usize, usize, usize) -> i32,
    name: usize,
    callers: [*const c_void; 2],
    functions: [usize; 3],
    state: usize,
) -> i32 {
    let [read, write, own_extent] = functions;
    // Without a conversion, which is null in both ABIs, the data are as in memory.
    let or_null = |own: usize, caller: *const c_void| if own == 0 { 0 } else { caller as usize };
    let [read_caller, write_caller] = [or_null(read, callers[0]), or_null(write, callers[1])];
    let extent_caller = or_null(own_extent, extent as *const c_void);
    let own = Box::into_raw(Box::new(Representation { read, write, extent: own_extent, state })) as usize;
    // SAFETY: the functions have the types of the standard; the name is the program's.
    unsafe { result(register(name, read_caller, write_caller, extent_caller, own)) }
}

pub(crate) unsafe fn mpi_register_datarep(
    name: usize,
    read_at: usize,
    write_at: usize,
    extent: usize,
    state: usize,
) -> i32 {
    let callers = [read as *const c_void, write as *const c_void];
    // SAFETY: the arguments are the program's.
    unsafe { register(abi::MPI_Register_datarep, name, callers, [read_at, write_at, extent], state) }
}

pub(crate) unsafe fn mpi_register_datarep_c(
    name: usize,
    read_at: usize,
    write_at: usize,
    extent: usize,
    state: usize,
) -> i32 {
    let callers = [read_large as *const c_void, write_large as *const c_void];
    // SAFETY: likewise.
    unsafe { register(abi::MPI_Register_datarep_c, name, callers, [read_at, write_at, extent], state) }
}

/// The functions of a generalized request. Freed by the last of them.
struct Generalized {
    query: unsafe extern "C" fn(usize, *mut TheirStatus) -> c_int,
    free: unsafe extern "C" fn(usize) -> c_int,
    cancel: unsafe extern "C" fn(usize, c_int) -> c_int,
    state: usize,
}

unsafe extern "C" fn query(own: &Generalized, status: &mut Status) -> c_int {
    let mut theirs = TheirStatus::default();
    status.store(&mut theirs);
    // SAFETY: the program has given a function of this type.
    let code = unsafe { (own.query)(own.state, &raw mut theirs) };
    *status = Status::from(&theirs);
    answer(code)
}

unsafe extern "C" fn free(own: *mut Generalized) -> c_int {
    // SAFETY: the library calls this once, and none of the others after it.
    let own = unsafe { Box::from_raw(own) };
    // SAFETY: the program has given a function of this type.
    answer(unsafe { (own.free)(own.state) })
}

unsafe extern "C" fn cancel(own: &Generalized, is_complete: c_int) -> c_int {
    // SAFETY: likewise.
    answer(unsafe { (own.cancel)(own.state, is_complete) })
}

pub(crate) unsafe fn mpi_grequest_start(
    query_at: usize,
    free_at: usize,
    cancel_at: usize,
    state: usize,
    request: usize,
) -> i32 {
    let mut made = crate::convert::Request::NULL;
    let at = if request == 0 { 0 } else { &raw mut made as usize };
    // SAFETY: the program gives functions of these types, or the library refuses the call.
    unsafe {
        let code = if query_at == 0 || free_at == 0 || cancel_at == 0 {
            abi::MPI_Grequest_start(query_at, free_at, cancel_at, 0, at)
        } else {
            let own = Generalized {
                query: std::mem::transmute::<usize, unsafe extern "C" fn(usize, *mut TheirStatus) -> c_int>(query_at),
                free: std::mem::transmute::<usize, unsafe extern "C" fn(usize) -> c_int>(free_at),
                cancel: std::mem::transmute::<usize, unsafe extern "C" fn(usize, c_int) -> c_int>(cancel_at),
                state,
            };
            let own = Box::into_raw(Box::new(own)) as usize;
            let callers = [query as *const c_void, free as *const c_void, cancel as *const c_void];
            let [query, free, cancel] = callers.map(|caller| caller as usize);
            abi::MPI_Grequest_start(query, free, cancel, own, at)
        };
        set_handle::<crate::convert::Request>(request, made);
        result(code)
    }
}
