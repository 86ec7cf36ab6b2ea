//! Accumulation: a predefined operation on elements in a target's memory, each of them atomically (MPI-5 sections
//! 12.3.4 and 12.7.1).
//!
//! The rule for each element is the same wherever it is executed: at an origin that shares the memory, or at the
//! target, also on behalf of remote origins. If the processor can change a number of that length at that address
//! atomically, it does ([`Width`]), or many such numbers are changed in bulk, exclusively. Otherwise a lock is held.
//! [`Guard`] separates these modes. `limosa_mpi::op` defines the operations on elements.

use std::ops::Range;
use std::sync::Arc;

use limosa_base::number::Width;
use limosa_mpi::Region;
use limosa_mpi::consts::{MPI_ERR_TYPE, MPI_NO_OP};
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::named::{Float, Group, Kind};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::op::{Kernel, Op, Reduction};
use smallvec::SmallVec;

use crate::guard::Guard;

/// Bytes that are combined per acquisition of the lock.
const CHUNK: usize = 16 << 10;
/// Number of elements from which they are changed in bulk. The standard requires atomicity only per element, but
/// programs replace and read records as bytes, and other libraries never expose half of a record.
const BULK_FROM: usize = 2;
/// Bytes that are changed in bulk before other processes may proceed: a few microseconds.
const BULK: usize = 64 << 10;

/// A contiguous piece of a target's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub at: *mut u8,
    pub len: usize,
}

/// Pieces, often only one.
pub(crate) type Pieces = SmallVec<[Piece; 4]>;

/// Change of one number.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Replace,
    AddInteger,
    AddDouble,
    Combine(Kernel),
}

/// An operation on elements that are numbers of an atomic width.
#[derive(Clone, Copy)]
pub(crate) struct NumberOp {
    pub width: Width,
    reduction: Reduction,
    kernel: Option<Kernel>,
    step: Step,
}

impl NumberOp {
    /// Returns the operation on elements of this predefined type, for which it is defined; `None` if they are not such
    /// numbers.
    fn new(reduction: Reduction, kernel: Option<Kernel>, element: &Datatype) -> Option<NumberOp> {
        let basic = element.as_basic()?;
        let width = Width::of(element.size() as usize)?;
        let step = match (reduction, kernel) {
            (Reduction::NoOp, _) => Step::Read,
            (Reduction::Replace, _) | (_, None) => Step::Replace,
            (Reduction::Sum, _) if matches!(basic.kind, Kind::Signed(_) | Kind::Unsigned(_)) => Step::AddInteger,
            (Reduction::Sum, _) if basic.kind == Kind::Float(Float::Double) => Step::AddDouble,
            (_, Some(kernel)) => Step::Combine(kernel),
        };
        Some(NumberOp { width, reduction, kernel, step })
    }

    /// Returns the operation on elements of this type, if it is predefined and they are such numbers.
    #[inline]
    pub fn find(op: &Op, element: &Datatype) -> Option<NumberOp> {
        let (reduction, kernel) = (op.reduction()?, op.kernel(element));
        let is_defined = kernel.is_some() || matches!(reduction, Reduction::Replace | Reduction::NoOp);
        if is_defined { NumberOp::new(reduction, kernel, element) } else { None }
    }

    /// Returns the operation for [`NumberOp::apply`] only, which needs no kernel to add, replace and read.
    #[inline(always)]
    pub fn find_for_one(op: &Op, element: &Datatype) -> Option<NumberOp> {
        let (reduction, basic) = (op.reduction()?, element.as_basic()?);
        let step = match (reduction, basic.group) {
            (Reduction::NoOp, _) => Step::Read,
            (Reduction::Replace, _) => Step::Replace,
            (Reduction::Sum, Group::CInteger | Group::FortranInteger | Group::MultiLanguage) => Step::AddInteger,
            (Reduction::Sum, Group::FloatingPoint) if basic.kind == Kind::Float(Float::Double) => Step::AddDouble,
            _ => return NumberOp::find(op, element),
        };
        Some(NumberOp { width: Width::of(element.size() as usize)?, reduction, kernel: None, step })
    }

    /// Returns whether this is `MPI_NO_OP`.
    #[inline]
    pub fn only_reads(&self) -> bool {
        self.reduction == Reduction::NoOp
    }

    /// Combines the number at `input`, which is not read for `MPI_NO_OP`, into the number at `place`. Returns the old
    /// value.
    ///
    /// # Safety
    /// As for [`Width::load`] of the place, and for [`Width::get`] of the input.
    #[inline(always)]
    pub unsafe fn apply(&self, place: *mut u8, input: *const u8) -> u64 {
        let width = self.width;
        // SAFETY: the caller's promise.
        unsafe {
            match self.step {
                Step::AddInteger => width.add(place, width.get(input)),
                Step::Read => width.load(place),
                Step::Replace => width.swap(place, width.get(input)),
                Step::AddDouble => {
                    let term = f64::from_bits(width.get(input));
                    width.update(place, |number| (term + f64::from_bits(number)).to_bits())
                }
                Step::Combine(kernel) => NumberOp::combine(width, kernel, place, input),
            }
        }
    }

    /// # Safety
    /// As for [`NumberOp::apply`].
    #[inline(never)]
    unsafe fn combine(width: Width, kernel: Kernel, place: *mut u8, input: *const u8) -> u64 {
        // SAFETY: the caller's promise; one element each.
        unsafe {
            width.update(place, |number| {
                let mut value = [0; 8];
                width.set(value.as_mut_ptr(), number);
                kernel(input, value.as_mut_ptr(), 1);
                width.get(value.as_ptr())
            })
        }
    }

    /// Combines numbers into those of a piece, one by one or in bulk, and writes the old values to `old`. The input is
    /// packed; it is empty for `MPI_NO_OP`.
    ///
    /// # Safety
    /// The piece must be writable memory, aligned for the numbers. Concurrent accesses must use the same guard.
    pub unsafe fn apply_to(&self, piece: Piece, input: &[u8], mut old: Option<&mut [u8]>, guard: &Guard) {
        let is_bulk = piece.len >= BULK_FROM * self.width.bytes();
        let step = if is_bulk { BULK } else { self.width.bytes() };
        let mut from = 0;
        while from < piece.len {
            let range = from..piece.len.min(from + step);
            let place = piece.at.wrapping_add(from);
            let input = if input.is_empty() { input } else { &input[range.clone()] };
            let old = old.as_deref_mut().map(|old| &mut old[range.clone()]);
            if is_bulk {
                // SAFETY: inside the piece; the bulk update excludes all other accesses.
                guard.bulk(|| unsafe { self.apply_plainly(place, range.len(), input, old) });
            } else {
                // SAFETY: inside the piece, and aligned, since the piece is.
                let was = guard.number(|| unsafe { self.apply(place, input.as_ptr()) });
                if let Some(old) = old {
                    self.width.write(was, old);
                }
            }
            from = range.end;
        }
    }

    /// # Safety
    /// The memory must be writable and not be accessed concurrently.
    unsafe fn apply_plainly(&self, place: *mut u8, len: usize, input: &[u8], old: Option<&mut [u8]>) {
        // SAFETY: the caller's promise; `input` and `old` have so many bytes if they are used.
        unsafe {
            if let Some(old) = old {
                std::ptr::copy(place, old.as_mut_ptr(), len);
            }
            match (self.reduction, self.kernel) {
                (Reduction::NoOp, _) => {}
                (Reduction::Replace, _) | (_, None) => std::ptr::copy(input.as_ptr(), place, len),
                (_, Some(kernel)) => kernel(input.as_ptr(), place, len / self.width.bytes()),
            }
        }
    }
}

/// An operation on elements of a predefined type.
pub(crate) struct Combine {
    element: Arc<Datatype>,
    op: Arc<Op>,
    reduction: Reduction,
    kernel: Option<Kernel>,
    number: Option<NumberOp>,
}

impl Combine {
    /// Creates the operation for data of this type.
    ///
    /// # Errors
    /// `MPI_ERR_OP` for a user-defined operation, or one that is not defined for the type; `MPI_ERR_TYPE` for data of
    /// several types.
    pub fn new(op: &Arc<Op>, datatype: &Arc<Datatype>) -> Result<Combine> {
        let Some(reduction) = op.reduction() else {
            fail!(MPI_ERR_OP, "one-sided accumulation takes predefined operations only, not one made by MPI_Op_create")
        };
        let Some(element) = datatype.only_predefined() else {
            fail!(
                MPI_ERR_TYPE,
                "{} is not made of one predefined datatype, as accumulation demands",
                datatype.describe()
            )
        };
        op.check_accumulate(&element)?;
        let kernel = op.kernel(&element);
        let number = NumberOp::new(reduction, kernel, &element);
        Ok(Combine { element, op: op.clone(), reduction, kernel, number })
    }

    /// Returns the predefined type of the elements.
    pub fn element(&self) -> &Arc<Datatype> {
        &self.element
    }

    /// Returns the operation.
    pub fn op(&self) -> &Arc<Op> {
        &self.op
    }

    /// Returns whether this is `MPI_NO_OP`, which only reads.
    pub fn only_reads(&self) -> bool {
        self.reduction == Reduction::NoOp
    }

    /// Returns the bytes of an element.
    pub fn unit(&self) -> usize {
        self.element.size() as usize
    }

    /// Combines the packed elements of `input` into those of the pieces, and writes the old values to `old`, packed.
    /// `input` is empty for `MPI_NO_OP`; otherwise it and `old`, if given, are as long as the pieces together. The
    /// pieces together are whole elements.
    ///
    /// # Safety
    /// The pieces must be writable memory. Concurrent accesses must use the same guard.
    pub unsafe fn apply(&self, pieces: &[Piece], input: &[u8], mut old: Option<&mut [u8]>, guard: &Guard) {
        // Pieces from a packet may divide an element; a piece alone can then not be combined.
        let is_whole = |piece: &Piece| piece.len.is_multiple_of(self.unit());
        let Some(number) = self.number.as_ref().filter(|_| pieces.iter().all(is_whole)) else {
            // SAFETY: the caller's promise.
            return unsafe { self.apply_locked(pieces, input, old, guard) };
        };
        let mut done = 0;
        for piece in pieces {
            let part = if input.is_empty() { input } else { &input[done..done + piece.len] };
            let old = old.as_deref_mut().map(|old| &mut old[done..done + piece.len]);
            done += piece.len;
            // SAFETY: the caller's promise.
            unsafe {
                if number.width.is_aligned(piece.at) {
                    number.apply_to(*piece, part, old, guard);
                } else {
                    self.apply_locked(&[*piece], part, old, guard);
                }
            }
        }
    }

    /// # Safety
    /// As for [`Combine::apply`].
    unsafe fn apply_locked(&self, pieces: &[Piece], input: &[u8], mut old: Option<&mut [u8]>, guard: &Guard) {
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let step = (CHUNK / self.unit()).max(1) * self.unit();
        let mut now = vec![0; step.min(total)];
        for from in (0..total).step_by(step) {
            let len = step.min(total - from);
            let now = &mut now[..len];
            guard.hold(|| {
                each_part(pieces, from, len, |at, range| {
                    // SAFETY: the caller's promise, and the lock is held.
                    unsafe { std::ptr::copy(at, now[range.clone()].as_mut_ptr(), range.len()) }
                });
                if let Some(old) = old.as_deref_mut() {
                    old[from..from + len].copy_from_slice(now);
                }
                if self.only_reads() {
                    return;
                }
                self.combine(&input[from..from + len], now);
                each_part(pieces, from, len, |at, range| {
                    // SAFETY: as above.
                    unsafe { std::ptr::copy(now[range.clone()].as_ptr(), at, range.len()) }
                });
            });
        }
    }

    /// Combines packed elements.
    fn combine(&self, input: &[u8], inout: &mut [u8]) {
        let Some(kernel) = self.kernel else { return inout.copy_from_slice(input) };
        let count = inout.len() / self.unit();
        if self.element.is_dense() {
            // SAFETY: both have so many elements, whose packed form is their memory layout.
            return unsafe { kernel(input.as_ptr(), inout.as_mut_ptr(), count) };
        }
        // Elements with the gaps that a compiler leaves.
        let spread = || vec![0u8; count * self.element.extent() as usize];
        let (mut a, mut b) = (spread(), spread());
        // SAFETY: the blocks have room for so many elements.
        unsafe {
            let region = |block: &mut Vec<u8>| self.element.region(block.as_mut_ptr(), count);
            region(&mut a).write(0, input);
            region(&mut b).write(0, inout);
            kernel(a.as_ptr(), b.as_mut_ptr(), count);
            region(&mut b).read(0, inout);
        }
    }
}

/// Calls `visit` for each contiguous part of the bytes `[from, from + len)` of the stream of these pieces, with its
/// address and its position in the range.
fn each_part(pieces: &[Piece], from: usize, len: usize, mut visit: impl FnMut(*mut u8, Range<usize>)) {
    let (mut start, end) = (0, from + len);
    for piece in pieces {
        let (low, high) = (from.max(start), end.min(start + piece.len));
        if low < high {
            visit(piece.at.wrapping_add(low - start), low - from..high - from);
        }
        start += piece.len;
    }
}

/// A compare-and-swap on an element.
pub(crate) struct Swap<'a> {
    pub element: &'a Datatype,
    width: Option<Width>,
}

impl Swap<'_> {
    /// Creates the operation for elements of this type.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` unless the type is an integer, a logical or a byte (MPI-5 section 12.3.4).
    pub fn new(datatype: &Datatype) -> Result<Swap<'_>> {
        let allowed = datatype.as_basic().is_some_and(|basic| {
            matches!(
                basic.group,
                Group::CInteger | Group::FortranInteger | Group::Logical | Group::MultiLanguage | Group::Byte
            )
        });
        if !allowed {
            let detail = format!(
                "MPI_Compare_and_swap is not defined for {}: it takes integers, logical values, and MPI_BYTE",
                datatype.describe()
            );
            return Err(Error::new(MPI_ERR_TYPE, detail));
        }
        Ok(Swap { element: datatype, width: Width::of(datatype.size() as usize) })
    }

    /// Replaces the element by `new` if it equals `expected`. Writes the old value to `old`.
    ///
    /// # Safety
    /// As for [`Combine::apply`], for the bytes of one element at the address.
    pub unsafe fn apply(&self, at: *mut u8, expected: &[u8], new: &[u8], old: &mut [u8], guard: &Guard) {
        if let Some(width) = self.width.filter(|width| width.is_aligned(at)) {
            // SAFETY: the caller's promise; it is aligned.
            let was = guard.number(|| unsafe { width.compare_and_swap(at, width.number(expected), width.number(new)) });
            return width.write(was, old);
        }
        // SAFETY: the caller's promise, and the lock is held.
        guard.hold(|| unsafe {
            std::ptr::copy(at, old.as_mut_ptr(), old.len());
            if old == expected {
                std::ptr::copy(new.as_ptr(), at, new.len());
            }
        });
    }
}

/// Returns `MPI_NO_OP`, for reading elements atomically.
pub(crate) fn no_op() -> Arc<Op> {
    Op::builtin(MPI_NO_OP).expect("it is predefined")
}

/// Returns the bytes of a region in one block: its own, or a copy in `room`.
pub(crate) fn packed<'a>(region: &'a Region, room: &'a mut Vec<u8>) -> &'a [u8] {
    match region.as_bytes() {
        Some(bytes) => bytes,
        None => {
            room.resize(region.len(), 0);
            region.read(0, room);
            room
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_mpi::consts::*;

    fn apply(op: i32, datatype: i32, place: &mut [u8], input: &[u8]) -> Vec<u8> {
        let combine = Combine::new(&Op::builtin(op).unwrap(), &Datatype::named(datatype)).unwrap();
        let mut old = vec![0; place.len()];
        let pieces = [Piece { at: place.as_mut_ptr(), len: place.len() }];
        // SAFETY: memory of this test.
        unsafe { combine.apply(&pieces, input, Some(&mut old), &Guard::own()) };
        old
    }

    #[test]
    fn aligned_and_unaligned_elements_are_combined_alike() {
        let mut memory = [0u64; 4];
        // SAFETY: the bytes of an array.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), 32) };
        for shift in [0, 1, 3] {
            for (op, datatype, expected) in [
                (MPI_SUM, MPI_INT64_T, 12i64),
                (MPI_PROD, MPI_INT64_T, 35),
                (MPI_MAX, MPI_INT64_T, 7),
                (MPI_REPLACE, MPI_INT64_T, 7),
                (MPI_NO_OP, MPI_INT64_T, 5),
                (MPI_BXOR, MPI_INT64_T, 2),
            ] {
                let place = &mut bytes[shift..shift + 8];
                place.copy_from_slice(&5i64.to_ne_bytes());
                let input = if op == MPI_NO_OP { Vec::new() } else { 7i64.to_ne_bytes().to_vec() };
                assert_eq!(apply(op, datatype, place, &input), 5i64.to_ne_bytes());
                assert_eq!(place, expected.to_ne_bytes(), "op {op}, {shift} bytes from alignment");
            }
        }
    }

    #[test]
    fn pairs_are_combined_without_their_gaps() {
        let pair = |value: f64, index: i32| [&value.to_ne_bytes()[..], &index.to_ne_bytes()].concat();
        let mut place = [pair(1.0, 4), pair(9.0, 2)].concat();
        let old = apply(MPI_MAXLOC, MPI_DOUBLE_INT, &mut place, &[pair(3.0, 7), pair(9.0, 1)].concat());
        assert_eq!(old, [pair(1.0, 4), pair(9.0, 2)].concat());
        assert_eq!(place, [pair(3.0, 7), pair(9.0, 1)].concat());
    }

    #[test]
    fn a_stream_may_lie_in_many_pieces() {
        let mut memory = (0..100u8).collect::<Vec<_>>();
        let base = memory.as_mut_ptr();
        let combine =
            Combine::new(&Op::builtin(MPI_SUM).unwrap(), &Datatype::named(MPI_C_LONG_DOUBLE_COMPLEX)).unwrap();
        assert_eq!(combine.unit(), 32);
        let combine = Combine::new(&Op::builtin(MPI_REPLACE).unwrap(), &Datatype::named(MPI_C_DOUBLE_COMPLEX)).unwrap();
        let pieces = [(1, 5), (20, 11), (40, 16)].map(|(at, len)| Piece { at: base.wrapping_add(at), len });
        let input = (100..132u8).collect::<Vec<_>>();
        let mut old = vec![0; 32];
        // SAFETY: pieces of the vector above.
        unsafe { combine.apply(&pieces, &input, Some(&mut old), &Guard::own()) };
        assert_eq!(old, (1..6).chain(20..31).chain(40..56).collect::<Vec<u8>>());
        assert_eq!(memory[..7], [0, 100, 101, 102, 103, 104, 6]);
        assert_eq!(memory[40..56], (116..132).collect::<Vec<u8>>());
    }

    #[test]
    fn only_elements_of_one_predefined_type_and_predefined_operations_will_do() {
        let class = |result: Result<Combine>| result.err().unwrap().class;
        let sum = Op::builtin(MPI_SUM).unwrap();
        let (int, double) = (Datatype::named(MPI_INT), Datatype::named(MPI_DOUBLE));
        let mixed = Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
        assert_eq!(class(Combine::new(&sum, &mixed)), MPI_ERR_TYPE);
        let user = Op::user(Arc::new(|_, _, _, _| {}), true);
        assert_eq!(class(Combine::new(&user, &int)), MPI_ERR_OP);
        assert_eq!(class(Combine::new(&Op::builtin(MPI_BAND).unwrap(), &double)), MPI_ERR_OP);
        let nested = Datatype::vector(3, 2, 4, &Datatype::dup(&int)).unwrap();
        assert!(Arc::ptr_eq(Combine::new(&sum, &nested).unwrap().element(), &int));
        assert_eq!(Swap::new(&double).err().unwrap().class, MPI_ERR_TYPE);
    }

    #[test]
    fn a_swap_happens_if_the_value_is_as_expected() {
        for shift in [0, 1] {
            let mut memory = [0u32; 2];
            let place = memory.as_mut_ptr().cast::<u8>().wrapping_add(shift);
            let int = Datatype::named(MPI_INT32_T);
            let swap = Swap::new(&int).unwrap();
            let mut old = [0; 4];
            for (expected, new, was) in [(1u32, 5u32, 0u32), (0, 5, 0), (5, 6, 5), (5, 7, 6)] {
                // SAFETY: inside the array.
                unsafe {
                    swap.apply(place, &expected.to_ne_bytes(), &new.to_ne_bytes(), &mut old, &Guard::own());
                }
                assert_eq!(u32::from_ne_bytes(old), was);
            }
        }
    }
}
