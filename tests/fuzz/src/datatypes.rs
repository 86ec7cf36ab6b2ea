//! Datatype constructors with any arguments: each gives the type that the standard defines, or says that it cannot be.
//!
//! The model is the standard's definition of size and bounds (MPI-5 section 5.1) in 128 bits, and for small types the
//! address of every byte.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::signature::matches;
use limosa_p2p::memory::Layout;

/// Types with more bytes, or further apart, are not packed.
const MOST_BYTES: i128 = 4096;
const FARTHEST: i64 = 1 << 16;

/// A type and what the model knows of it.
#[derive(Clone)]
struct Known {
    lib: Arc<Datatype>,
    /// The bounds are those of a resized type.
    marked: bool,
    alignment: i128,
    /// Every byte in the order of the type map, if these are few.
    bytes: Option<Vec<i64>>,
}

/// `count` blocks of `length` elements of a type, the first at byte `at`, the others `stride` bytes apart.
struct Copies<'a> {
    at: i128,
    count: i64,
    stride: i128,
    length: i64,
    old: &'a Known,
}

/// Size and bounds: size, lb, ub, true lb, true ub, marked, alignment.
type Measure = (i128, i128, i128, i128, i128, bool, i128);

/// What the standard says of a type that is made of these copies; `None` if that does not fit in 64 bits.
fn measure(parts: &[Copies]) -> Option<Measure> {
    let (mut size, mut alignment) = (0i128, 1i128);
    let (mut data, mut marked, mut unmarked) = (None, None, None);
    let stretch = |range: &mut Option<(i128, i128)>, low: i128, high: i128| {
        *range = Some(range.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
    };
    for part in parts.iter().filter(|part| part.count > 0 && part.length > 0) {
        let old = &part.old.lib;
        size = size.checked_add((part.count as i128 * part.length as i128).checked_mul(old.size() as i128)?)?;
        let across = (part.count as i128 - 1).checked_mul(part.stride)?;
        let along = (part.length as i128 - 1) * old.extent() as i128;
        for corner in [0, across, along, across.checked_add(along)?] {
            let at = part.at.checked_add(corner)?;
            if old.size() > 0 {
                let low = at.saturating_add(old.true_lb() as i128);
                stretch(&mut data, low, low.saturating_add(old.true_extent() as i128));
            }
            if part.old.marked || old.size() > 0 {
                let bounds = if part.old.marked { &mut marked } else { &mut unmarked };
                let low = at.saturating_add(old.lb() as i128);
                stretch(bounds, low, low.saturating_add(old.extent() as i128));
            }
        }
        alignment = alignment.max(part.old.alignment);
    }
    // Numbers of 128 bits are not endless either: what 64 bits do not hold is refused before it is computed with.
    let fits = |n: i128| i64::try_from(n).is_ok();
    if ![marked.or(unmarked), data].into_iter().flatten().all(|(low, high)| fits(low) && fits(high)) {
        return None;
    }
    let (lb, ub) = match (marked, unmarked) {
        (Some(bounds), _) => bounds,
        (None, Some((low, high))) => (low, low + (high - low + alignment - 1) / alignment * alignment),
        (None, None) => (0, 0),
    };
    let (true_lb, true_ub) = data.unwrap_or((0, 0));
    let all = [size, lb, ub, ub - lb, true_lb, true_ub, true_ub - true_lb];
    all.into_iter().all(fits).then_some((size, lb, ub, true_lb, true_ub, marked.is_some(), alignment))
}

/// Every byte of a type that is made of these copies, if they are few and near.
fn bytes(parts: &[Copies]) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    for part in parts.iter().filter(|part| part.count > 0 && part.length > 0) {
        let old = part.old.bytes.as_ref()?;
        if part.count as i128 * part.length as i128 * old.len() as i128 > MOST_BYTES {
            return None;
        }
        if old.is_empty() {
            continue;
        }
        for (i, j) in (0..part.count).flat_map(|i| (0..part.length).map(move |j| (i, j))) {
            let shift = part.at + i as i128 * part.stride + j as i128 * part.old.lib.extent() as i128;
            for byte in old {
                all.push(i64::try_from(shift + *byte as i128).ok().filter(|at| at.unsigned_abs() <= FARTHEST as u64)?);
            }
        }
    }
    (all.len() as i128 <= MOST_BYTES).then_some(all)
}

/// Compares what a constructor gave with what it should have given; `refused` if the arguments are wrong in themselves.
fn judge(
    made: limosa_mpi::Result<Arc<Datatype>>,
    parts: &[Copies],
    refused: bool,
    shifted: Option<(i64, i64)>,
) -> Option<Known> {
    let Some((size, mut lb, mut ub, true_lb, true_ub, mut marked, alignment)) =
        (if refused { None } else { measure(parts) })
    else {
        let error = made.expect_err("a type whose size or bounds do not fit, or with negative counts");
        let class = error.class;
        assert!([MPI_ERR_VALUE_TOO_LARGE, MPI_ERR_COUNT, MPI_ERR_ARG].contains(&class), "error class {class}: {error}");
        return None;
    };
    if let Some((low, extent)) = shifted {
        (lb, ub, marked) = (low as i128, low as i128 + extent as i128, true);
        if i64::try_from(ub).is_err() {
            assert_eq!(made.expect_err("an upper bound that does not fit").class, MPI_ERR_VALUE_TOO_LARGE);
            return None;
        }
    }
    let lib = made.expect("a type that fits");
    let got =
        [lib.size(), lib.lb(), lib.lb().wrapping_add(lib.extent()), lib.true_lb(), lib.true_lb() + lib.true_extent()];
    assert_eq!(got.map(i128::from), [size, lb, ub, true_lb, true_ub], "size, lb, ub, true lb, true ub");
    Some(Known { lib, marked, alignment, bytes: bytes(parts) })
}

/// Uses a type in every way that touches no memory, and, if it is small, packs and unpacks it.
fn exercise(known: &Known) {
    let lib = &known.lib;
    lib.commit();
    let _ = (
        lib.describe(),
        lib.envelope(),
        lib.external_size(3).is_ok(),
        lib.elements_of_bytes(7),
        lib.bytes_of_elements(5),
    );
    assert!(matches((lib, 2), (&lib.again(), 2)));
    let (mut seen, mut total) = (0, 0usize);
    lib.pieces(std::ptr::without_provenance_mut(1 << 40), 1, 0, lib.size() as usize, &mut |_, len| {
        total += len;
        seen += 1;
        seen < 100
    });
    assert!(seen == 100 || total == lib.size() as usize, "pieces of {total} bytes of a type of {}", lib.size());
    let Some(bytes) = &known.bytes else { return };
    let low = bytes.iter().copied().min().unwrap_or(0) - 8;
    let high = bytes.iter().copied().max().unwrap_or(0) + 8;
    let mut memory: Vec<u8> = (low..high).map(|at| (at * 37) as u8).collect();
    let before = memory.clone();
    let base = memory.as_mut_ptr().wrapping_offset(-low as isize);
    let stream: Vec<u8> = bytes.iter().map(|at| before[(at - low) as usize]).collect();
    let mut packed = vec![0; stream.len()];
    if !packed.is_empty() {
        // SAFETY: the memory holds every byte of the type around the base address.
        unsafe { lib.pack(base, 1, 0, &mut packed) };
        assert_eq!(packed, stream, "packed");
        // SAFETY: as above.
        unsafe { lib.unpack(base, 1, 0, &packed) };
        assert_eq!(memory, before, "unpacking what was packed changes nothing, and nothing around it");
    }
}

/// Makes one type out of those that there are.
fn step(u: &mut Unstructured<'_>, types: &[Known]) -> Result<Option<Known>> {
    let old = u.choose(types)?.clone();
    let (a, b, c) = (crate::number(u)?, crate::number(u)?, crate::number(u)?);
    let list = u.int_in_range(0..=5usize)?;
    let pairs: Vec<(i64, i64)> =
        (0..list).map(|_| Ok((crate::number(u)?, crate::number(u)?))).collect::<Result<_>>()?;
    let (lengths, places): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    let extent = old.lib.extent();
    let negative = lengths.iter().any(|length| *length < 0);
    let blocks = |unit: i64, each: Option<i64>| -> Vec<Copies<'_>> {
        let copies = |(length, place): &(i64, i64)| Copies {
            at: *place as i128 * unit as i128,
            count: 1,
            stride: 0,
            length: each.unwrap_or(*length),
            old: &old,
        };
        pairs.iter().map(copies).collect()
    };
    let one = |count: i64, stride: i128, length: i64| vec![Copies { at: 0, count, stride, length, old: &old }];
    Ok(match u.int_in_range(0..=10u8)? {
        0 => judge(Ok(Datatype::dup(&old.lib)), &one(1, 0, 1), false, old.marked.then_some((old.lib.lb(), extent))),
        1 => judge(Datatype::contiguous(a, &old.lib), &one(1, 0, a), a < 0, None),
        2 => {
            let bytes = b as i128 * extent as i128;
            let refused = a < 0 || c < 0 || (a > 1 && i64::try_from(bytes).is_err());
            judge(Datatype::vector(a, c, b, &old.lib), &one(a, bytes, c), refused, None)
        }
        3 => judge(Datatype::hvector(a, c, b, &old.lib), &one(a, b as i128, c), a < 0 || c < 0, None),
        4 => judge(Datatype::indexed(&lengths, &places, &old.lib), &blocks(extent, None), negative, None),
        5 => judge(Datatype::hindexed(&lengths, &places, &old.lib), &blocks(1, None), negative, None),
        6 => judge(Datatype::indexed_block(a, &places, &old.lib), &blocks(extent, Some(a)), a < 0, None),
        7 => judge(Datatype::hindexed_block(a, &places, &old.lib), &blocks(1, Some(a)), a < 0, None),
        8 => {
            let of: Vec<&Known> = (0..list).map(|_| u.choose(types)).collect::<Result<_>>()?;
            let libs: Vec<Arc<Datatype>> = of.iter().map(|known| known.lib.clone()).collect();
            let copy = |((length, place), old): (&(i64, i64), &&'_ Known)| (*place as i128, *length, (*old).clone());
            let owned: Vec<(i128, i64, Known)> = pairs.iter().zip(&of).map(copy).collect();
            let parts: Vec<Copies<'_>> = owned
                .iter()
                .map(|(at, length, old)| Copies { at: *at, count: 1, stride: 0, length: *length, old })
                .collect();
            judge(Datatype::structure(&lengths, &places, &libs), &parts, negative, None)
        }
        9 => judge(Datatype::resized(&old.lib, a, b), &one(1, 0, 1), false, Some((a, b))),
        _ => return array(u, &old),
    })
}

/// Arrays: what fits must have as many bytes as elements were chosen, and the bounds of the whole.
fn array(u: &mut Unstructured<'_>, old: &Known) -> Result<Option<Known>> {
    let dims = u.int_in_range(0..=3usize)?;
    let numbers = |u: &mut Unstructured<'_>| (0..dims).map(|_| crate::number(u)).collect::<Result<Vec<i64>>>();
    let (sizes, parts, starts) = (numbers(u)?, numbers(u)?, numbers(u)?);
    let order = if u.arbitrary()? { MPI_ORDER_C } else { MPI_ORDER_FORTRAN };
    let made = if u.arbitrary()? {
        let made = Datatype::subarray(&sizes, &parts, &starts, order, &old.lib);
        if let Ok(made) = &made {
            // Of elements without bytes there can be more than any integer counts.
            let times = |of: &[i64], bytes: i128| {
                of.iter().fold(1i128, |product, n| product.saturating_mul(*n as i128)).saturating_mul(bytes)
            };
            assert_eq!(made.size() as i128, times(&parts, old.lib.size() as i128), "bytes of the part");
            assert_eq!(
                (made.lb(), made.extent() as i128),
                (0, times(&sizes, old.lib.extent() as i128)),
                "bounds of the whole"
            );
        }
        made
    } else {
        let narrow = |list: &[i64]| list.iter().map(|n| *n as i32).collect::<Vec<i32>>();
        let kinds: Vec<i32> = (0..dims)
            .map(|_| u.choose(&[MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC]).copied())
            .collect::<Result<_>>()?;
        let arguments: Vec<i32> =
            starts.iter().map(|n| if *n % 2 == 0 { MPI_DISTRIBUTE_DFLT_DARG } else { *n as i32 }).collect();
        let grid = narrow(&parts);
        let size = grid.iter().try_fold(1i32, |size, n| size.checked_mul(*n)).unwrap_or(1);
        let rank = crate::number(u)? as i32;
        Datatype::darray(size, rank, &sizes, &kinds, &arguments, &grid, order, &old.lib)
    };
    let Ok(lib) = made else { return Ok(None) };
    Ok(Some(Known { lib, marked: true, alignment: old.alignment, bytes: None }))
}

/// Makes up to 40 types out of each other.
pub fn target(data: &[u8]) {
    let basics = [(MPI_CHAR, 1i64), (MPI_SHORT, 2), (MPI_INT, 4), (MPI_DOUBLE, 8)];
    let basic = |(handle, size): (i32, i64)| Known {
        lib: Datatype::named(handle),
        marked: false,
        alignment: size as i128,
        bytes: Some((0..size).collect()),
    };
    let mut types: Vec<Known> = basics.into_iter().map(basic).collect();
    let mut u = Unstructured::new(data);
    for _ in 0..40 {
        if u.is_empty() {
            break;
        }
        let Ok(made) = step(&mut u, &types) else { break };
        if let Some(known) = made {
            exercise(&known);
            types.push(known);
        }
    }
}
