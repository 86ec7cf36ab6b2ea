//! Functions of the next MPI library, and queries beside the program's calls. Only local functions are called, with
//! handles that the library has just accepted.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `MPI_IN_PLACE` in the ABI.
pub const IN_PLACE: usize = 1;
/// Handles below this value are predefined in the ABI.
pub const PREDEFINED: usize = 4096;

/// A function of the next library, looked up at the first call.
pub struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    /// Creates the reference to the function of that name.
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicUsize::new(0) }
    }

    /// Returns the address of the function. If there is none, the process ends: the program could not have called it.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        // SAFETY: the name is a string that ends with a null character.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        if found == 0 {
            let name = self.name.to_string_lossy();
            eprintln!("limosa: the program calls {name}, which the MPI library does not have");
            std::process::abort();
        }
        self.address.store(found, Relaxed);
        found
    }
}

/// Calls a function of the form `MPI_Comm_size`. Returns its result.
pub fn ask(function: &Next, comm: usize) -> Option<i32> {
    // SAFETY: all functions that are passed here have this type.
    let function: unsafe extern "C" fn(usize, *mut i32) -> i32 = unsafe { std::mem::transmute(function.address()) };
    let mut value = 0;
    // SAFETY: the library has accepted the communicator, or it is MPI_COMM_WORLD.
    (unsafe { function(comm, &mut value) } == 0).then_some(value)
}

static OF_COMM: Next = Next::new(c"PMPI_Comm_group");

/// Returns the ranks in `MPI_COMM_WORLD` of a communicator's (remote) or a window's group; negative for processes
/// outside.
pub fn world_ranks(object: usize, is_window: bool) -> Option<Vec<i32>> {
    static REMOTE: Next = Next::new(c"PMPI_Comm_remote_group");
    static TEST_INTER: Next = Next::new(c"PMPI_Comm_test_inter");
    static OF_WINDOW: Next = Next::new(c"PMPI_Win_get_group");
    match is_window {
        true => translated(&OF_WINDOW, object),
        false if ask(&TEST_INTER, object)? != 0 => translated(&REMOTE, object),
        false => translated(&OF_COMM, object),
    }
}

/// Returns the ranks in `MPI_COMM_WORLD` of a communicator's own group.
pub fn own_world_ranks(comm: usize) -> Option<Vec<i32>> {
    translated(&OF_COMM, comm)
}

/// Returns the ranks in `MPI_COMM_WORLD` of the group that a function extracts from an object.
fn translated(group_of: &Next, object: usize) -> Option<Vec<i32>> {
    static GROUP_SIZE: Next = Next::new(c"PMPI_Group_size");
    static TRANSLATE: Next = Next::new(c"PMPI_Group_translate_ranks");
    static FREE: Next = Next::new(c"PMPI_Group_free");
    let group = |function: &Next, object: usize| {
        // SAFETY: this is the type of the functions that extract a group.
        let function: unsafe extern "C" fn(usize, *mut usize) -> i32 =
            unsafe { std::mem::transmute(function.address()) };
        let mut made = 0usize;
        // SAFETY: the library has accepted the object, or it is MPI_COMM_WORLD.
        (unsafe { function(object, &mut made) } == 0).then_some(made)
    };
    let free = |mut group: usize| {
        // SAFETY: this is the type of MPI_Group_free.
        let function: unsafe extern "C" fn(*mut usize) -> i32 = unsafe { std::mem::transmute(FREE.address()) };
        // SAFETY: the group was created above and is no longer used.
        unsafe { function(&mut group) };
    };
    let of_object = group(group_of, object)?;
    let Some(world) = group(&OF_COMM, WORLD) else {
        free(of_object);
        return None;
    };
    let size = ask(&GROUP_SIZE, of_object).unwrap_or(0);
    let (from, mut to): (Vec<i32>, Vec<i32>) = ((0..size).collect(), vec![-1; size as usize]);
    // SAFETY: this is the type of MPI_Group_translate_ranks.
    let translate: unsafe extern "C" fn(usize, i32, *const i32, usize, *mut i32) -> i32 =
        unsafe { std::mem::transmute(TRANSLATE.address()) };
    // SAFETY: both arrays have `size` elements.
    let code = unsafe { translate(of_object, size, from.as_ptr(), world, to.as_mut_ptr()) };
    free(of_object);
    free(world);
    (code == 0).then_some(to)
}

/// `MPI_COMM_WORLD` in the ABI.
pub const WORLD: usize = 0x101;
