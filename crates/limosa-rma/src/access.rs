//! Accesses to the memory of a target: origin side (MPI-5 section 12.3).

use std::sync::Arc;

use limosa_base::number::Width;
use limosa_mpi::Region;
use limosa_mpi::consts::MPI_PROC_NULL;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::op::Op;
use limosa_mpi::operation::{End, Operation};
use limosa_mpi::request::Request;
use limosa_p2p::{Address, slice};

use crate::accumulate::{Combine, NumberOp, Piece, Pieces, Swap, packed};
use crate::conflicts::Act;
use crate::fetch::Fetch;
use crate::guard::Guard;
use crate::packets::Parcel;
use crate::station::AwaitedAnswers;
use crate::window::{Reach, Window, WindowTarget};
use crate::wire::{Action, Header};

/// Location of an access at its target.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Rank of the target.
    pub rank: i32,
    /// Displacement in units of the target; an address for dynamic windows.
    pub disp: i64,
    /// Number of elements.
    pub count: i64,
    /// Type of the elements.
    pub datatype: &'a Arc<Datatype>,
}

/// Operand of an access, at its origin.
pub struct Origin<'a> {
    /// Memory of the operand.
    pub region: Region,
    /// Type of the elements.
    pub datatype: &'a Arc<Datatype>,
}

/// The target of an access that has been checked.
struct CheckedTarget<'w> {
    target: &'w WindowTarget,
    rank: u32,
    /// Offset in the window, in bytes.
    offset: i64,
    /// Bytes of data.
    bytes: usize,
}

/// Maximum number of bytes that travel by a packet, rather than by a system copy, if the target polls or will poll
/// before its epoch ends. A system copy takes some microseconds even for one byte.
const SHORT: usize = 512;

/// Maximum number of memory slices per system copy.
const MAX_SLICES: usize = 512;

impl Window {
    /// Performs `MPI_Put`; with `request`, `MPI_Rput`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK`, `MPI_ERR_RMA_SYNC`, `MPI_ERR_RMA_RANGE`, `MPI_ERR_TRUNCATE`, `MPI_ERR_TYPE`.
    pub fn put(&self, origin: &Region, at: &At<'_>, request: bool) -> Result<Option<Arc<Request>>> {
        let Some(found) = self.find(at, request)? else { return Ok(done(request)) };
        let len = origin.len();
        if len > found.bytes {
            fail!(
                MPI_ERR_TRUNCATE,
                "the origin has {len} bytes to put, but target_count and target_datatype describe only {}",
                found.bytes
            )
        }
        self.note(&found, at, len, || Some(Act::Put))?;
        if let Some(at) = found.direct(at, self)? {
            move_bytes(origin, &at, len);
            return Ok(done(request));
        }
        if let Some(attached) = self.attached(&found, len, true)
            && self.copy_attached(attached, &found, at, origin, len, true)
        {
            return Ok(done(request));
        }
        let header = |pieces| Header::plain(Action::Put, pieces);
        self.send_parts(found.parcel(at, len, 1), &header, Some(origin), None)?;
        Ok(done(request))
    }

    /// Performs `MPI_Get`; with `request`, `MPI_Rget`.
    ///
    /// # Errors
    /// As for [`Window::put`].
    pub fn get(&self, origin: &Region, at: &At<'_>, request: bool) -> Result<Option<Arc<Request>>> {
        let Some(found) = self.find(at, request)? else { return Ok(done(request)) };
        let len = found.bytes;
        if len > origin.len() {
            fail!(
                MPI_ERR_TRUNCATE,
                "target_count and target_datatype describe {len} bytes to get, but the origin has room for {}",
                origin.len()
            )
        }
        // An access with a request may be complete before the next access.
        self.note(&found, at, len, || (!request).then_some(Act::Get))?;
        if let Some(at) = found.direct(at, self)? {
            move_bytes(&at, origin, len);
            return Ok(done(request));
        }
        if let Some(attached) = self.attached(&found, len, false)
            && self.copy_attached(attached, &found, at, origin, len, false)
        {
            return Ok(done(request));
        }
        let fetch = request.then(|| Fetch::new(self, found.rank));
        let header = |pieces| Header::plain(Action::Get, pieces);
        self.send_parts(
            Parcel { awaited: answers_of(&fetch), ..found.parcel(at, len, 1) },
            &header,
            None,
            Some(origin),
        )?;
        Ok(under_way(request, fetch))
    }

    /// Performs `MPI_Accumulate`; with `request`, `MPI_Raccumulate`.
    ///
    /// # Errors
    /// As for [`Window::put`]; `MPI_ERR_OP`.
    pub fn accumulate(
        &self,
        origin: &Origin<'_>,
        at: &At<'_>,
        op: &Arc<Op>,
        request: bool,
    ) -> Result<Option<Arc<Request>>> {
        self.combine(Some(origin), None, at, op, request)
    }

    /// Performs `MPI_Get_accumulate`; with `request`, `MPI_Rget_accumulate`. The operand is not read for `MPI_NO_OP`.
    ///
    /// # Errors
    /// As for [`Window::accumulate`].
    pub fn get_accumulate(
        &self,
        origin: Option<&Origin<'_>>,
        result: &Region,
        at: &At<'_>,
        op: &Arc<Op>,
        request: bool,
    ) -> Result<Option<Arc<Request>>> {
        self.combine(origin, Some(result), at, op, request)
    }

    fn combine(
        &self,
        origin: Option<&Origin<'_>>,
        result: Option<&Region>,
        at: &At<'_>,
        op: &Arc<Op>,
        request: bool,
    ) -> Result<Option<Arc<Request>>> {
        let Some(found) = self.find(at, request)? else { return Ok(done(request)) };
        if found.bytes == 0 && origin.is_none_or(|origin| origin.region.is_empty()) {
            return Ok(done(request));
        }
        let combine = Combine::new(op, at.datatype)?;
        if combine.only_reads() && result.is_none() {
            fail!(MPI_ERR_OP, "MPI_NO_OP changes nothing: use it with MPI_Get_accumulate or MPI_Fetch_and_op")
        }
        let origin = origin.filter(|_| !combine.only_reads());
        self.check_operands(&combine, origin, result, found.bytes)?;
        self.note(&found, at, found.bytes, || Act::accumulate(op, combine.element()))?;
        if let Some(at) = found.direct(at, self)? {
            let pieces = pieces_of(&at, found.bytes);
            let mut room = Vec::new();
            let input = match origin {
                Some(origin) => packed(&origin.region, &mut room),
                None => &[],
            };
            let mut old = vec![0; if result.is_some() { found.bytes } else { 0 }];
            // SAFETY: memory of the window, checked to be in its range; all processes that accumulate there follow the
            // same rule.
            unsafe { combine.apply(&pieces, input, result.is_some().then_some(&mut old[..]), found.guard()) };
            if let Some(result) = result {
                result.write(0, &old);
            }
            return Ok(done(request));
        }
        let fetch = (request && result.is_some()).then(|| Fetch::new(self, found.rank));
        let action = if result.is_some() { Action::Fetch } else { Action::Accumulate };
        let header = |pieces| Header::typed(action, Some(combine.op()), combine.element(), pieces);
        let parcel = Parcel { awaited: answers_of(&fetch), ..found.parcel(at, found.bytes, combine.unit()) };
        self.send_parts(parcel, &header, origin.map(|origin| &origin.region), result)?;
        Ok(under_way(request, fetch))
    }

    /// Checks that operands of an accumulation have the target's type and length.
    fn check_operands(
        &self,
        combine: &Combine,
        origin: Option<&Origin<'_>>,
        result: Option<&Region>,
        bytes: usize,
    ) -> Result<()> {
        if let Some(origin) = origin {
            if origin.region.len() != bytes {
                fail!(
                    MPI_ERR_COUNT,
                    "the origin has {} bytes to accumulate, but target_count and target_datatype describe {bytes}",
                    origin.region.len()
                )
            }
            if !origin.datatype.only_predefined().is_some_and(|element| Arc::ptr_eq(&element, combine.element())) {
                fail!(
                    MPI_ERR_TYPE,
                    "the elements of the origin are {}, but those of the target are {}: accumulation needs equal types",
                    origin.datatype.describe(),
                    combine.element().describe()
                )
            }
        }
        match result {
            Some(result) if result.len() != bytes => {
                fail!(
                    MPI_ERR_COUNT,
                    "the result has {} bytes, but target_count and target_datatype describe {bytes}",
                    result.len()
                )
            }
            _ => Ok(()),
        }
    }

    /// Performs `MPI_Fetch_and_op`, on one element.
    ///
    /// # Errors
    /// As for [`Window::accumulate`].
    pub fn fetch_and_op(&self, origin: Option<&Origin<'_>>, result: &Region, at: &At<'_>, op: &Arc<Op>) -> Result<()> {
        self.check_one(at, "MPI_Fetch_and_op")?;
        if self.access_log.is_none()
            && let Some(number) = NumberOp::find(op, at.datatype)
            && let Some((place, guard)) = self.find_number(at, number.width)?
            && let Some(input) = origin.map_or(Some(&[][..]), |origin| origin.region.as_bytes())
        {
            let mut old = [0; 8];
            let old = &mut old[..number.width.bytes()];
            // SAFETY: an aligned number in the window; all processes that accumulate there follow the same rule.
            number.width.write(guard.number(|| unsafe { number.apply(place, input.as_ptr()) }), old);
            result.write(0, old);
            return Ok(());
        }
        self.combine(origin, Some(result), at, op, false).map(|_| ())
    }

    /// Performs `MPI_Compare_and_swap`, on one element.
    ///
    /// # Errors
    /// As for [`Window::accumulate`].
    pub fn compare_and_swap(&self, new: &Region, expected: &Region, result: &Region, at: &At<'_>) -> Result<()> {
        self.check_one(at, "MPI_Compare_and_swap")?;
        let swap = Swap::new(at.datatype)?;
        let Some(found) = self.find(at, false)? else { return Ok(()) };
        self.note(&found, at, found.bytes, || Some(Act::swap(at.datatype)))?;
        // No element of a swappable type is longer.
        let (mut operands, mut old, len) = ([0; 32], [0; 16], found.bytes);
        let operands = &mut operands[..2 * len];
        expected.read(0, &mut operands[..len]);
        new.read(0, &mut operands[len..]);
        if let Some(at) = found.direct(at, self)? {
            let old = &mut old[..len];
            let start = at.as_contiguous().expect("an element of a basic type has no gaps");
            // SAFETY: as for accumulation.
            unsafe { swap.apply(start, &operands[..len], &operands[len..], old, found.guard()) };
            result.write(0, old);
            return Ok(());
        }
        self.send_swap(found.rank, (found.offset as u64, len as u64), swap.element, operands, result)
    }

    /// Returns the address of a number in memory that is mapped here, with its guard, if it is aligned.
    #[inline]
    fn find_number(&self, at: &At<'_>, width: Width) -> Result<Option<(*mut u8, &Guard)>> {
        if self.station.memory.is_dynamic {
            return Ok(None);
        }
        let Some(found) = self.find(at, false)? else { return Ok(None) };
        let Reach::Direct(base) = found.target.reach else { return Ok(None) };
        let place = base.wrapping_offset(found.offset as isize);
        Ok(width.is_aligned(place).then(|| (place, found.guard())))
    }

    fn check_one(&self, at: &At<'_>, call: &str) -> Result<()> {
        if !at.datatype.is_predefined() {
            fail!(MPI_ERR_TYPE, "{call} takes predefined datatypes only, not {}", at.datatype.describe())
        }
        Ok(())
    }

    /// Compares an access of so many bytes with earlier ones, if the job checks conflicts. `act` returns the kind of
    /// access, or `None` if it cannot conflict.
    #[inline]
    fn note(
        &self,
        found: &CheckedTarget<'_>,
        at: &At<'_>,
        bytes: usize,
        act: impl FnOnce() -> Option<Act>,
    ) -> Result<()> {
        let Some(access_log) = &self.access_log else { return Ok(()) };
        let Some(act) = act() else { return Ok(()) };
        let mut ranges = Vec::new();
        found.parcel(at, bytes, 1).places.pieces(0, bytes, &mut |offset, len| {
            let low = offset.addr() as u64;
            ranges.push((low, low + len as u64));
            true
        });
        let is_fenced = self.epochs.lock().is_fenced();
        access_log.lock().note(found.rank, act, &ranges, is_fenced)
    }

    /// Checks the location of an access. Returns `None` for `MPI_PROC_NULL`.
    fn find(&self, at: &At<'_>, passive: bool) -> Result<Option<CheckedTarget<'_>>> {
        if at.rank == MPI_PROC_NULL {
            return Ok(None);
        }
        let Some(target) = usize::try_from(at.rank).ok().and_then(|rank| self.targets.get(rank)) else {
            self.comm.partner(at.rank, "target rank")?;
            fail!(MPI_ERR_RANK, "the target rank is {}", at.rank)
        };
        at.datatype.check_committed()?;
        let rank = at.rank as u32;
        self.epochs.lock().access(rank, passive)?;
        let bytes = at.datatype.bytes_of(at.count)? as usize;
        let offset = i128::from(at.disp) * i128::from(target.unit);
        if bytes > 0 && !self.station.memory.is_dynamic {
            self.check_range(at, target, offset)?;
        }
        Ok(Some(CheckedTarget { target, rank, offset: offset as i64, bytes }))
    }

    /// Checks that all data lie in the window.
    #[inline]
    fn check_range(&self, at: &At<'_>, target: &WindowTarget, offset: i128) -> Result<()> {
        let last = (i128::from(at.count) - 1) * i128::from(at.datatype.extent());
        let low = offset + i128::from(at.datatype.true_lb()) + last.min(0);
        let high = offset + i128::from(at.datatype.true_lb() + at.datatype.true_extent()) + last.max(0);
        if low >= 0 && high <= i128::from(target.size) {
            return Ok(());
        }
        fail!(
            MPI_ERR_RMA_RANGE,
            "bytes {low} to {high} of the window are to be accessed at rank {}, which has {} bytes (displacement {}, \
             unit {})",
            at.rank,
            target.size,
            at.disp,
            target.unit
        )
    }

    /// Returns the address of a target's memory for a system copy of `len` bytes, if that is the path of the access.
    fn attached(&self, found: &CheckedTarget<'_>, len: usize, writes: bool) -> Option<(Address, u64)> {
        let Reach::Attached(peer, base) = found.target.reach else { return None };
        let is_polling = || self.comm.engine().expect_peer_memory().is_polling(peer);
        let is_packet_faster = len <= SHORT && (writes && self.can_send_silently(found.rank) || is_polling());
        (!is_packet_faster).then_some((peer, base))
    }

    /// Copies between the origin's memory and the target's by system calls. Returns false if the system cannot.
    fn copy_attached(
        &self,
        (peer, base): (Address, u64),
        found: &CheckedTarget<'_>,
        at: &At<'_>,
        origin: &Region,
        len: usize,
        writes: bool,
    ) -> bool {
        let memory = self.comm.engine().expect_peer_memory();
        // SAFETY: addresses only, which the kernel checks.
        let there =
            unsafe { at.datatype.region((base as i64).wrapping_add(found.offset) as *mut u8, at.count as usize) };
        let mut done = 0;
        while done < len {
            let (mut local, mut remote) = (Vec::new(), Vec::new());
            let here = slices(origin, done, len - done, &mut local).min(slices(&there, done, len - done, &mut remote));
            cut(&mut local, here);
            cut(&mut remote, here);
            // SAFETY: memory of the program, which it does not touch during the call, and the target's window.
            let copied = unsafe {
                if writes {
                    memory.write(peer, &mut local, &mut remote)
                } else {
                    memory.read(peer, &mut local, &mut remote)
                }
            };
            if copied.is_err() {
                return false;
            }
            done += here;
        }
        true
    }
}

/// Lists slices of a region, beginning at a byte. Returns their total bytes.
fn slices(region: &Region, from: usize, len: usize, list: &mut Vec<limosa_p2p::Slice>) -> usize {
    let mut bytes = 0;
    region.pieces(from, len, &mut |at, n| {
        list.push(slice(at as u64, n));
        bytes += n;
        list.len() < MAX_SLICES
    });
    bytes
}

/// Shortens a list of slices to so many bytes.
fn cut(list: &mut Vec<limosa_p2p::Slice>, bytes: usize) {
    let mut left = bytes;
    list.retain_mut(|slice| {
        slice.iov_len = slice.iov_len.min(left);
        left -= slice.iov_len;
        slice.iov_len > 0
    });
}

impl<'w> CheckedTarget<'w> {
    /// Returns the guard of the target's memory, which is mapped here.
    fn guard(&self) -> &'w Guard {
        self.target.guard.as_ref().expect("memory that is mapped here has a guard")
    }

    /// Returns the target's memory, if it is mapped here.
    fn direct(&self, at: &At<'_>, window: &Window) -> Result<Option<Region>> {
        let Reach::Direct(base) = self.target.reach else { return Ok(None) };
        // SAFETY: the range was checked, or is checked before any access.
        let region = unsafe { at.datatype.region(base.wrapping_offset(self.offset as isize), at.count as usize) };
        if window.station.memory.is_dynamic {
            let mut places = Vec::new();
            region.pieces(0, region.len(), &mut |at, len| {
                places.push((at as u64, len as u64));
                true
            });
            window.station.pieces(&places)?;
        }
        Ok(Some(region))
    }

    /// Returns the description of the target's memory for packets: `bytes` of it, in indivisible groups of `unit`
    /// bytes.
    fn parcel(&self, at: &At<'_>, bytes: usize, unit: usize) -> Parcel {
        // SAFETY: offsets instead of addresses; nothing is accessed.
        let places = unsafe { at.datatype.region(self.offset as usize as *mut u8, at.count as usize) };
        Parcel { target: self.rank, places, bytes, unit, awaited: None }
    }
}

/// Returns the pieces of the first bytes of a region.
fn pieces_of(region: &Region, bytes: usize) -> Pieces {
    let mut pieces = Pieces::new();
    region.pieces(0, bytes, &mut |at, len| {
        pieces.push(Piece { at, len });
        true
    });
    pieces
}

/// Copies the first bytes of one region's stream to another's.
#[inline]
fn move_bytes(from: &Region, to: &Region, len: usize) {
    if len == 0 {
        return;
    }
    if let (Some(from), Some(to)) = (from.as_contiguous(), to.as_contiguous()) {
        // SAFETY: both have at least so many bytes, one the program's and one the window's. They overlap only in an
        // erroneous program, and then nothing else is touched.
        return unsafe {
            if from.addr().abs_diff(to.addr()) < len {
                std::ptr::copy(from, to, len);
            } else {
                limosa_base::copy::copy(from, to, len);
            }
        };
    }
    let mut done = 0;
    if from.as_contiguous().is_some() {
        from.pieces(0, len, &mut |at, n| {
            // SAFETY: a piece of readable memory.
            to.write(done, unsafe { std::slice::from_raw_parts(at, n) });
            done += n;
            true
        });
    } else {
        to.pieces(0, len, &mut |at, n| {
            // SAFETY: a piece of writable memory without other references.
            from.read(done, unsafe { std::slice::from_raw_parts_mut(at, n) });
            done += n;
            true
        });
    }
}

/// Returns the request of a complete access.
fn done(request: bool) -> Option<Arc<Request>> {
    request.then(|| Request::done(None, End::empty()))
}

/// Returns the answers of an access with a request.
fn answers_of(fetch: &Option<Arc<Fetch>>) -> Option<Arc<AwaitedAnswers>> {
    fetch.as_ref().map(|fetch| fetch.answers.clone())
}

/// Returns the request of an access whose answers are pending.
fn under_way(request: bool, fetch: Option<Arc<Fetch>>) -> Option<Arc<Request>> {
    match fetch {
        Some(fetch) => {
            fetch.answers.count();
            Some(Request::under_way(None, fetch as Arc<dyn Operation>))
        }
        None => done(request),
    }
}
