//! The glue: one short function per MPI function, which calls the method of `limosa-mpi` that does the work.
//!
//! A function of the standard is *implemented* exactly when a file of this folder has a line that starts with
//! `pub(crate) fn mpi_xyz(`, the name in lower case and without `_c`: one glue function serves the base function and
//! its large-count form. The build script finds the line and generates the exported functions to call it. A line
//! `pub(crate) fn plan_xyz(` does this for all forms of the operation `MPI_Xyz` at once (`MPI_Xyz`, `MPI_Ixyz`,
//! `MPI_Xyz_init`; `forms` in `api/roles.json`). A new file needs a `pub(crate) mod` line below; a new kind of object a
//! line in [`kinds`](crate::kinds).
//!
//! # Convention
//!
//! `cargo run -p limosa-api -- glue MPI_Send` prints the line to start from. The first argument is `cx: &Cx`
//! ([`Cx`](crate::cx::Cx): name of the function, conversion of handles); then comes one argument per C parameter of the
//! large-count form, in order. Most functions return `limosa_mpi::Result<()>`. An error goes to the right error handler
//! with the function's name and the rank, so `detail` contains only the problem. The few functions with a value
//! (`MPI_Wtime`) return it directly. For an error that concerns a communicator other than the call's own argument
//! (`MPI_Wait`), call `cx.blame(handle)` before returning.
//!
//! A plan gets the [`Form`](form::Form) as its second argument, and the operation's parameters, but not the info and
//! the request of some forms.
//!
//! | C parameter | glue type | checked before |
//! |---|---|---|
//! | handle, in | `&Arc<T>` (`kinds::Communicator`, ...) | null, freed, foreign, random: error class of the kind |
//! | handle, in, where null means something | `Option<&Arc<T>>` | as above; `api/roles.json` allows the null handle |
//! | info, in | `Option<&Arc<Info>>`; in `MPI_Info_*` `&Arc<Info>` | as above |
//! | datatype of a collective's buffer | `Late<Datatype>` | nothing: it may be insignificant; else `.get(cx)?` |
//! | count of such a buffer | `LateCount` | nothing; `.get()?` checks that it is not negative |
//! | handle, out or inout | `&mut Handle` | null pointer; `cx.get(*h, "request")` decodes, `cx.free(h, "comm")` frees |
//! | array of handles | `*const Handle`, `*mut Handle` | nothing; `cx.get_all`, `cx.slice`, `cx.slice_mut` |
//! | count, size, displacement, offset | `i64` | lower bound where the standard has one |
//! | array of those, `int` or wide | `IntArray` | nothing; `is_null`, `get(i)`, `to_vec(n, "counts")` |
//! | one of those, out or inout | `OutInt` | null pointer; `set` stores MPI_UNDEFINED for what does not fit an int |
//! | rank, tag and other ints | `c_int` | nothing, except array lengths |
//! | int arrays | `*const c_int`, `*mut c_int` | nothing; `cx.slice(p, n, "ranks")?` |
//! | logical | `bool`, out `&mut c_int` | null pointer |
//! | other single results | `&mut c_int`, `&mut i64` | null pointer |
//! | string, in | `&CStr` | null pointer |
//! | string, out | `*mut c_char` | null pointer; fill with `args::copy_text` |
//! | status, out | `Option<&mut Status>` | nothing; `None` is `MPI_STATUS_IGNORE` |
//! | status, in or inout | `&Status`, `&mut Status` | null pointer |
//! | statuses | `*mut Status` | nothing; null is `MPI_STATUSES_IGNORE` |
//! | buffer, attribute value, extra state | `*mut c_void` | nothing |
//! | function | `Option<callback::MPI_Xyz_function>` from [`callback`](crate::callback) | nothing; 0 or 1: maybe predefined |
//! | function with a twin | `AnyFn` | nothing; `cx.large()` says which type it has |
//!
//! In `MPI_T_*` every pointer and handle arrives raw. In the base function, parameters that only the twin has
//! (`max_large_counts`) are 0, null or [`OutInt::absent`](crate::args::OutInt::absent).
//!
//! Functions of the program (reduction functions, attribute callbacks, error handlers) are called without any lock
//! held, through `extern "C"` types, and never unwind into the library.

#![allow(clippy::too_many_arguments)] // the parameter lists are the standard's

pub(crate) mod abi;
pub(crate) mod attr;
pub(crate) mod coll;
pub(crate) mod comm;
pub(crate) mod datatype;
pub(crate) mod dynamic;
pub(crate) mod environment;
pub(crate) mod errhandler;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod file_access;
pub(crate) mod form;
pub(crate) mod grequest;
pub(crate) mod group;
pub(crate) mod info;
pub(crate) mod inter;
pub(crate) mod lifecycle;
pub(crate) mod memory;
pub(crate) mod neighbour;
pub(crate) mod op;
pub(crate) mod p2p;
pub(crate) mod pack;
pub(crate) mod partitioned;
pub(crate) mod request;
pub(crate) mod rma;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod tool;
pub(crate) mod tool_event;
pub(crate) mod tool_variables;
pub(crate) mod topo;
pub(crate) mod win;
