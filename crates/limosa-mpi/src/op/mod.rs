//! Reduction operations (MPI-5 section 6.9).
//!
//! Contract
//! - [`Op::reduce_local`] computes `inout[i] = input[i] op inout[i]`, in this order of the operands.
//! - A predefined operation takes the predefined types that section 6.9.2 (and 6.9.4 for value-index pairs) gives it,
//!   whether they have a name or were selected by `MPI_Type_create_f90_*`; [`Op::check`] refuses others. Two
//!   extensions: logical operations also take addresses, counts and offsets, and all operations on integers take
//!   `MPI_CHAR`, unless the checks are strict. `MPI_REPLACE` and `MPI_NO_OP` are for one-sided accumulation only
//!   (section 12.3.4).
//! - Integer arithmetic wraps around. `MPI_MIN` and `MPI_MAX` keep the value of `inout` unless that of `input` compares
//!   smaller or greater, so which NaN or zero of several survives depends on the order of evaluation. Logical results
//!   are 0 or 1 for C types; those of Fortran types are represented as their operands are.
//! - A user function gets whatever type the program passes, derived ones too. It runs in threads of the program only,
//!   and no lock is held meanwhile: background reductions test [`Op::is_predefined`] and leave all other operations to
//!   these threads.
//!
//! | module | holds |
//! |---|---|
//! | `kernels` | element-wise loops that the compiler vectorises |
//! | `location` | `MPI_MINLOC` and `MPI_MAXLOC` |
//! | `wide` | `long double` and binary128 arithmetic, done by C |

mod kernels;
mod location;
mod wide;

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use crate::check;
use crate::consts::*;
use crate::datatype::Datatype;
use crate::datatype::named::{self, Basic};
use crate::error::Result;
use crate::fail;

/// The predefined operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // named like the standard's
pub enum Reduction {
    Sum,
    Min,
    Max,
    Prod,
    Band,
    Bor,
    Bxor,
    Land,
    Lor,
    Lxor,
    Minloc,
    Maxloc,
    Replace,
    NoOp,
}

/// Handle value, name, operation of each.
const PREDEFINED: [(i32, &str, Reduction); 14] = [
    (MPI_SUM, "MPI_SUM", Reduction::Sum),
    (MPI_MIN, "MPI_MIN", Reduction::Min),
    (MPI_MAX, "MPI_MAX", Reduction::Max),
    (MPI_PROD, "MPI_PROD", Reduction::Prod),
    (MPI_BAND, "MPI_BAND", Reduction::Band),
    (MPI_BOR, "MPI_BOR", Reduction::Bor),
    (MPI_BXOR, "MPI_BXOR", Reduction::Bxor),
    (MPI_LAND, "MPI_LAND", Reduction::Land),
    (MPI_LOR, "MPI_LOR", Reduction::Lor),
    (MPI_LXOR, "MPI_LXOR", Reduction::Lxor),
    (MPI_MINLOC, "MPI_MINLOC", Reduction::Minloc),
    (MPI_MAXLOC, "MPI_MAXLOC", Reduction::Maxloc),
    (MPI_REPLACE, "MPI_REPLACE", Reduction::Replace),
    (MPI_NO_OP, "MPI_NO_OP", Reduction::NoOp),
];

impl Reduction {
    /// Returns the standard's name of the operation with this number, which another process may have sent.
    pub fn name_of(number: u32) -> Option<&'static str> {
        PREDEFINED.iter().find(|entry| entry.2 as u32 == number).map(|entry| entry.1)
    }
}

/// A user function: (input, inout, count, datatype). It reads `count` elements at `input` and combines them into those
/// at `inout`.
pub type UserFunction = Arc<dyn Fn(*const u8, *mut u8, usize, &Arc<Datatype>) + Send + Sync>;

enum Action {
    Predefined(Reduction, &'static str),
    User(UserFunction),
}

/// A reduction operation.
pub struct Op {
    action: Action,
    commutative: bool,
    handle: AtomicUsize,
}

static BUILTIN: LazyLock<Vec<Arc<Op>>> = LazyLock::new(|| {
    let op = |&(handle, name, reduction): &(i32, &'static str, Reduction)| {
        let commutative = !matches!(reduction, Reduction::Replace | Reduction::NoOp);
        Arc::new(Op {
            action: Action::Predefined(reduction, name),
            commutative,
            handle: AtomicUsize::new(handle as usize),
        })
    };
    PREDEFINED.iter().map(op).collect()
});

impl Op {
    /// Returns the predefined operation of this handle value, `None` for any other value and for `MPI_OP_NULL`.
    pub fn builtin(handle: i32) -> Option<Arc<Op>> {
        let at = PREDEFINED.iter().position(|entry| entry.0 == handle)?;
        Some(BUILTIN[at].clone())
    }

    /// Returns the predefined operation of this handle value, which always exists; `None` for any other value.
    #[inline]
    pub fn always(handle: usize) -> Option<&'static Arc<Op>> {
        let at = PREDEFINED.iter().position(|entry| entry.0 as usize == handle)?;
        BUILTIN.get(at)
    }

    /// `MPI_Op_create`.
    pub fn user(function: UserFunction, commutative: bool) -> Arc<Op> {
        Arc::new(Op { action: Action::User(function), commutative, handle: AtomicUsize::new(0) })
    }

    /// Returns the predefined operation with this number, which another process may have sent.
    pub fn numbered(number: u32) -> Option<&'static Arc<Op>> {
        let at = PREDEFINED.iter().position(|entry| entry.2 as u32 == number)?;
        BUILTIN.get(at)
    }

    /// Whether the operands may change places.
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// True for the standard's own operations, which cannot be freed.
    pub fn is_predefined(&self) -> bool {
        matches!(self.action, Action::Predefined(..))
    }

    /// Which of the standard's operations this is, if any.
    #[inline]
    pub fn reduction(&self) -> Option<Reduction> {
        match self.action {
            Action::Predefined(reduction, _) => Some(reduction),
            Action::User(_) => None,
        }
    }

    /// Returns the standard's name, or "a user operation".
    pub fn name(&self) -> &'static str {
        match self.action {
            Action::Predefined(_, name) => name,
            Action::User(_) => "a user operation",
        }
    }

    /// Returns the handle under which the operation is registered; 0 if it has none.
    pub fn handle(&self) -> usize {
        self.handle.load(Ordering::Relaxed)
    }

    /// Remembers the handle.
    pub fn set_handle(&self, handle: usize) {
        self.handle.store(handle, Ordering::Relaxed);
    }

    /// What combines elements of the type, if this is one of the standard's reductions and defined for it.
    #[inline]
    pub fn kernel(&self, datatype: &Datatype) -> Option<Kernel> {
        match Work::find(self.reduction()?, datatype)? {
            Work::Elements(kernel) => Some(kernel),
            Work::Nothing | Work::Replace => None,
        }
    }

    /// Fails if the operation is not one for reductions, or not defined for the type.
    pub fn check(&self, datatype: &Datatype) -> Result<()> {
        if let Some(Reduction::Replace | Reduction::NoOp) = self.reduction() {
            fail!(
                MPI_ERR_OP,
                "{} is not a reduction: it is for one-sided accumulation only, such as MPI_Get_accumulate",
                self.name()
            )
        }
        self.check_accumulate(datatype)
    }

    /// Fails if the operation, which may be `MPI_REPLACE` or `MPI_NO_OP` here, is not defined for the type.
    pub fn check_accumulate(&self, datatype: &Datatype) -> Result<()> {
        let Action::Predefined(reduction, name) = self.action else { return Ok(()) };
        let is_text = datatype.as_basic().is_some_and(|basic| basic.handle == MPI_CHAR);
        let is_for_text = matches!(reduction, Reduction::Replace | Reduction::NoOp) || !check::is_strict();
        if Work::find(reduction, datatype).is_some() && (!is_text || is_for_text) {
            return Ok(());
        }
        let what = datatype.describe();
        if datatype.is_predefined() {
            fail!(
                MPI_ERR_OP,
                "{name} is not defined for {what}; section 6.9.2 of the standard lists the types that it takes"
            )
        }
        fail!(
            MPI_ERR_OP,
            "{name} is not defined for {what}, which is a derived type; use a predefined type, or make an operation \
             with MPI_Op_create"
        )
    }

    /// `MPI_Reduce_local`: `inout[i] = input[i] op inout[i]` for `count` elements.
    ///
    /// # Safety
    /// `input` must be readable and `inout` readable and writable for `count` elements, and they must not overlap.
    pub unsafe fn reduce_local(
        &self,
        input: *const u8,
        inout: *mut u8,
        count: usize,
        datatype: &Arc<Datatype>,
    ) -> Result<()> {
        let reduction = match &self.action {
            Action::Predefined(reduction, _) => *reduction,
            Action::User(function) => {
                function(input, inout, count, datatype);
                return Ok(());
            }
        };
        let Some(work) = Work::find(reduction, datatype) else { return self.check_accumulate(datatype) };
        if count == 0 {
            return Ok(());
        }
        match work {
            Work::Nothing => {}
            // SAFETY: the caller's promise; the kernel is that of the type.
            Work::Elements(kernel) => unsafe { kernel(input, inout, count) },
            Work::Replace => {
                // SAFETY: regions of the program's memory that do not overlap, by the caller's promise.
                let (from, to) = unsafe { (datatype.region(input.cast_mut(), count), datatype.region(inout, count)) };
                let mut from_piece = 0;
                to.pieces(0, to.len(), &mut |at, size| {
                    // SAFETY: the piece is part of the program's memory, and no other reference to it exists.
                    from.read(from_piece, unsafe { std::slice::from_raw_parts_mut(at, size) });
                    from_piece += size;
                    true
                });
            }
        }
        Ok(())
    }
}

/// Combines `count` elements at the first address into those at the second.
///
/// Callers promise what [`Op::reduce_local`] asks for.
pub type Kernel = unsafe fn(*const u8, *mut u8, usize);

/// Execution of an operation for a type.
enum Work {
    Nothing,
    Replace,
    Elements(Kernel),
}

impl Work {
    fn find(reduction: Reduction, datatype: &Datatype) -> Option<Work> {
        match reduction {
            Reduction::NoOp if datatype.is_predefined() => Some(Work::Nothing),
            Reduction::Replace if datatype.is_predefined() => Some(Work::Replace),
            Reduction::NoOp | Reduction::Replace => None,
            Reduction::Minloc | Reduction::Maxloc => {
                let (value, index) = datatype.as_pair()?;
                location::find(reduction == Reduction::Maxloc, value, index).map(Work::Elements)
            }
            _ => Work::of_basic(reduction, datatype.as_basic()?).map(Work::Elements),
        }
    }

    /// Returns the kernel of an operation for a basic type. What was found once is kept, since each call asks twice.
    #[inline]
    fn of_basic(reduction: Reduction, basic: &'static Basic) -> Option<Kernel> {
        /// Of each operation and type the kernel, once it was found.
        static FOUND: [[AtomicPtr<()>; named::HANDLES]; PREDEFINED.len()] =
            [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; named::HANDLES] }; PREDEFINED.len()];
        let found = &FOUND[reduction as usize][basic.number()];
        let kernel = found.load(Ordering::Relaxed);
        if !kernel.is_null() {
            // SAFETY: only kernels are stored below, and a function pointer is never null.
            return Some(unsafe { std::mem::transmute::<*mut (), Kernel>(kernel) });
        }
        let kernel = kernels::find(reduction, basic)?;
        found.store(kernel as *mut (), Ordering::Relaxed);
        Some(kernel)
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Op({})", self.name())
    }
}
