//! Datatypes that are nested far deeper than a thread's stack has room for: whatever is done with them must not
//! recurse.

use std::sync::Arc;

use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_p2p::memory::Layout;

const DEPTH: i64 = 100_000;

/// Makes a level out of its number and the level below.
type Wrap = fn(i64, &Arc<Datatype>) -> Arc<Datatype>;

/// Runs a test in a thread with as little stack as the library's own threads have.
fn with_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(test).unwrap().join().unwrap();
}

fn byte() -> Arc<Datatype> {
    Datatype::named(MPI_BYTE)
}

/// Each level of `wrap` around the one before.
fn nested(innermost: Arc<Datatype>, wrap: impl Fn(i64, &Arc<Datatype>) -> Arc<Datatype>) -> Arc<Datatype> {
    (0..DEPTH).fold(innermost, |old, level| wrap(level, &old))
}

/// Bytes at the even places: level i adds the one at 2 i + 2, and no level can be simplified.
fn comb() -> Arc<Datatype> {
    nested(byte(), |level, old| Datatype::structure(&[1, 1], &[0, 2 * level + 2], &[old.clone(), byte()]).unwrap())
}

#[test]
fn a_chain_of_every_constructor_is_dropped() {
    with_a_small_stack(|| {
        let wraps: [Wrap; 9] = [
            |_, old| Datatype::dup(old),
            |_, old| Datatype::contiguous(1, old).unwrap(),
            |_, old| Datatype::vector(1, 1, 1, old).unwrap(),
            |_, old| Datatype::hvector(1, 1, 1, old).unwrap(),
            |_, old| Datatype::indexed(&[1], &[0], old).unwrap(),
            |_, old| Datatype::hindexed_block(1, &[0], old).unwrap(),
            |_, old| Datatype::structure(&[1], &[0], std::slice::from_ref(old)).unwrap(),
            |_, old| Datatype::subarray(&[1], &[1], &[0], MPI_ORDER_C, old).unwrap(),
            |_, old| Datatype::resized(old, 0, 1).unwrap(),
        ];
        for wrap in wraps {
            drop(nested(byte(), wrap));
        }
    });
}

#[test]
fn only_the_last_reference_drops_what_is_below() {
    with_a_small_stack(|| {
        let deep = nested(byte(), |_, old| Datatype::contiguous(1, old).unwrap());
        let below = deep.contents().unwrap().types.remove(0);
        let copy = deep.again();
        drop(deep);
        assert_eq!(copy.contents().unwrap().types[0].size(), 1);
        drop(copy);
        assert_eq!((below.size(), below.contents().unwrap().integers[0]), (1, 1));
    });
}

#[test]
fn a_deep_chain_that_is_one_byte_is_committed_and_measured() {
    with_a_small_stack(|| {
        let deep = nested(byte(), |_, old| Datatype::contiguous(1, old).unwrap());
        deep.commit();
        assert!(deep.is_dense());
        assert_eq!(deep.elements_of_bytes(7), Some(7));
        assert_eq!(deep.bytes_of_elements(7), Some(7));
        assert_eq!(deep.external_size(3).unwrap(), 3);
    });
}

#[test]
fn a_deep_structure_is_packed_unpacked_and_counted() {
    with_a_small_stack(|| {
        let deep = comb();
        deep.commit();
        assert_eq!(deep.size(), DEPTH + 1);
        let memory: Vec<u8> = (0..2 * DEPTH + 1).map(|i| if i % 2 == 0 { (i / 2 % 251) as u8 } else { 255 }).collect();
        let mut packed = vec![0; deep.size() as usize];
        // SAFETY: the type covers `memory`.
        unsafe { deep.pack_elements(memory.as_ptr(), 1, &mut packed, &mut 0).unwrap() };
        assert!(packed.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8));

        let mut back = vec![255; memory.len()];
        // SAFETY: the type covers `back`.
        unsafe { deep.unpack_elements(&packed, &mut 0, back.as_mut_ptr(), 1).unwrap() };
        assert_eq!(back, memory);

        // A part from the middle, and its pieces.
        let (from, len) = (DEPTH as usize / 2, 1000);
        let mut part = vec![0; len];
        // SAFETY: the type covers `memory`.
        unsafe { deep.pack(memory.as_ptr(), 1, from, &mut part) };
        assert_eq!(part, packed[from..from + len]);
        let base = memory.as_ptr().cast_mut();
        let mut pieces = Vec::new();
        deep.pieces(base, 1, from, len, &mut |at, bytes| {
            pieces.push((at as usize - base as usize, bytes));
            true
        });
        assert_eq!(pieces, (from..from + len).map(|i| (2 * i, 1)).collect::<Vec<_>>());

        assert_eq!(deep.elements_of_bytes(12_345), Some(12_345));
        assert_eq!(deep.bytes_of_elements(DEPTH + 3), Some(DEPTH + 3));
    });
}

#[test]
fn a_deep_structure_goes_through_the_external_representation() {
    with_a_small_stack(|| {
        let deep = comb();
        let memory: Vec<u8> = (0..2 * DEPTH + 1).map(|i| (i % 253) as u8).collect();
        let mut packed = vec![0; deep.external_size(1).unwrap() as usize];
        // SAFETY: the type covers `memory`.
        unsafe { deep.pack_external(memory.as_ptr(), 1, &mut packed, &mut 0).unwrap() };
        assert!(packed.iter().enumerate().all(|(i, byte)| *byte == (2 * i % 253) as u8));
        let mut back = vec![0; memory.len()];
        // SAFETY: the type covers `back`.
        unsafe { deep.unpack_external(&packed, &mut 0, back.as_mut_ptr(), 1).unwrap() };
        assert!(back.iter().zip(&memory).step_by(2).all(|(a, b)| a == b));
        assert!(back.iter().skip(1).step_by(2).all(|byte| *byte == 0));
    });
}

#[test]
fn loops_around_a_deep_structure_find_their_turns() {
    with_a_small_stack(|| {
        let deep = Datatype::resized(&comb(), 0, 2 * DEPTH + 2).unwrap();
        let turns = 3;
        let looped = Datatype::vector(turns, 1, 2, &deep).unwrap();
        looped.commit();
        let memory: Vec<u8> = (0..2 * turns * (2 * DEPTH + 2)).map(|i| (i % 241) as u8).collect();
        let mut packed = vec![0; looped.size() as usize];
        // SAFETY: the type covers `memory`.
        unsafe { looped.pack_elements(memory.as_ptr(), 1, &mut packed, &mut 0).unwrap() };
        for (i, byte) in packed.iter().enumerate() {
            let (turn, within) = (i as i64 / (DEPTH + 1), i as i64 % (DEPTH + 1));
            assert_eq!(*byte, ((turn * 2 * (2 * DEPTH + 2) + 2 * within) % 241) as u8);
        }
    });
}
