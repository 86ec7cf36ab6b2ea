//! Large counts: sizes beyond 32 bits, seeking in huge streams, and overflow (MPI-5 sections 2.5.8 and 5.1).

use std::sync::Arc;

use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_p2p::memory::Layout;

const GIGA: i64 = 1 << 30;

fn int() -> Arc<Datatype> {
    Datatype::named(MPI_INT)
}

/// Returns the pieces of some stream bytes, as offsets from a base address of 0.
fn pieces(datatype: &Datatype, count: usize, from: usize, length: usize) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    datatype.pieces(std::ptr::null_mut(), count, from, length, &mut |at, size| {
        pieces.push((at as usize, size));
        true
    });
    pieces
}

#[test]
fn three_gigabytes_are_one_piece() {
    let datatype = Datatype::contiguous(3 * GIGA, &Datatype::named(MPI_BYTE)).unwrap();
    datatype.commit();
    assert_eq!((datatype.size(), datatype.extent()), (3 * GIGA, 3 * GIGA));
    assert_eq!(pieces(&datatype, 2, 0, 6 * GIGA as usize), [(0, 6 * GIGA as usize)]);
}

#[test]
fn any_position_of_a_huge_stream_is_found_at_once() {
    // A plane of a cube of 2^20 numbers each way: 2^40 numbers with gaps, at whose end a walk from the start would
    // never arrive.
    let side = 1i64 << 20;
    let row = Datatype::vector(side, 1, 2, &int()).unwrap();
    let plane = Datatype::hvector(side, 1, 16 * side, &row).unwrap();
    let pair = Datatype::structure(&[1, 1], &[0, 1 << 50], &[plane.clone(), plane.clone()]).unwrap();
    pair.commit();
    assert_eq!(pair.size(), 2 * 4 * side * side);
    let last = pair.size() as usize - 4;
    let place = (1usize << 50) + (side as usize - 1) * 16 * side as usize + (side as usize - 1) * 8;
    assert_eq!(pieces(&pair, 1, last, 4), [(place, 4)]);
    assert_eq!(pieces(&pair, 1, last - 2, 4), [(place - 8 + 2, 2), (place, 2)]);
    assert_eq!(pair.elements_of_bytes(last as i64), Some(2 * side * side - 1));
}

#[test]
fn evenly_spaced_blocks_are_told_from_others_however_they_were_made() {
    let columns = 1000;
    let by_vector = Datatype::vector(columns, 1, 10, &int()).unwrap();
    let by_index = Datatype::indexed_block(1, &(0..columns).map(|i| i * 10).collect::<Vec<_>>(), &int()).unwrap();
    let column = Datatype::resized(&int(), 0, 40).unwrap();
    let by_extent = Datatype::contiguous(columns, &column).unwrap();
    for datatype in [by_vector, by_index, by_extent] {
        datatype.commit();
        assert_eq!(datatype.mean_piece(), 4);
        assert_eq!(pieces(&datatype, 1, 3996, 4), [(39960, 4)]);
    }
}

#[test]
fn what_does_not_fit_in_64_bits_is_refused() {
    let large = i64::MAX;
    let many = Datatype::contiguous(1 << 61, &int());
    let refused = [
        Datatype::contiguous(large, &int()),
        many,
        Datatype::vector(2, 1, large, &int()),
        Datatype::hvector(3, 1, large, &int()),
        Datatype::indexed(&[1, 1], &[0, large], &int()),
        Datatype::hindexed(&[1], &[large - 2], &int()),
        Datatype::structure(&[1, 1], &[-large, large - 4], &[int(), int()]),
        Datatype::structure(&[large, large], &[0, 0], &[Datatype::named(MPI_BYTE), Datatype::named(MPI_BYTE)]),
        Datatype::resized(&int(), large, 1),
        Datatype::subarray(&[large, 8], &[1, 1], &[0, 0], MPI_ORDER_C, &int()),
    ];
    for (i, made) in refused.into_iter().enumerate() {
        assert_eq!(made.unwrap_err().class, MPI_ERR_VALUE_TOO_LARGE, "case {i}");
    }
    assert_eq!(int().pack_size(large).unwrap_err().class, MPI_ERR_COUNT);
    // Where nothing is, nothing overflows.
    assert_eq!(Datatype::hindexed(&[0], &[large], &int()).unwrap().size(), 0);
    assert_eq!(Datatype::vector(1, 1, large, &int()).unwrap().extent(), 4);
}

#[test]
fn wrong_arguments_are_named() {
    let ints = int();
    for (made, class, what) in [
        (Datatype::contiguous(-1, &ints), MPI_ERR_COUNT, "-1"),
        (Datatype::vector(1, -2, 1, &ints), MPI_ERR_ARG, "blocklength is -2"),
        (Datatype::indexed(&[1, -3], &[0, 0], &ints), MPI_ERR_ARG, "array_of_blocklengths[1] is -3"),
        (Datatype::subarray(&[4], &[5], &[0], MPI_ORDER_C, &ints), MPI_ERR_ARG, "array_of_subsizes[0] is 5"),
        (Datatype::subarray(&[4], &[2], &[3], MPI_ORDER_C, &ints), MPI_ERR_ARG, "array_of_starts[0] is 3"),
        (Datatype::subarray(&[4], &[2], &[0], 99, &ints), MPI_ERR_ARG, "order is 99"),
        (
            Datatype::darray(4, 0, &[8], &[MPI_DISTRIBUTE_BLOCK], &[1], &[4], MPI_ORDER_C, &ints),
            MPI_ERR_ARG,
            "array_of_dargs[0] is 1",
        ),
        (
            Datatype::darray(3, 0, &[8], &[MPI_DISTRIBUTE_BLOCK], &[2], &[4], MPI_ORDER_C, &ints),
            MPI_ERR_ARG,
            "size is 3",
        ),
        (
            Datatype::darray(4, 4, &[8], &[MPI_DISTRIBUTE_BLOCK], &[2], &[4], MPI_ORDER_C, &ints),
            MPI_ERR_RANK,
            "rank is 4",
        ),
        (Datatype::f90_integer(39), MPI_ERR_ARG, "39"),
        (Datatype::f90_real(40, 10), MPI_ERR_ARG, "40"),
        (Datatype::match_size(MPI_TYPECLASS_REAL, 3), MPI_ERR_ARG, "no real type has 3 bytes"),
    ] {
        let error = made.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(error.detail.contains(what), "{error}");
    }
    let mut position = 0;
    let mut room = [0; 6];
    // SAFETY: two integers.
    let error = unsafe { ints.pack_elements([1i32, 2].as_ptr().cast(), 2, &mut room, &mut position) }.unwrap_err();
    assert_eq!((error.class, position), (MPI_ERR_TRUNCATE, 0));
    assert_eq!(ints.check_buffer(std::ptr::null(), 1, "buf").unwrap_err().class, MPI_ERR_BUFFER);
    let absolute = Datatype::hindexed(&[1], &[0x7000_0000_0000], &ints).unwrap();
    absolute.check_buffer(std::ptr::null(), 1, "buf").unwrap();
    assert_eq!(Datatype::contiguous(2, &ints).unwrap().check_committed().unwrap_err().class, MPI_ERR_TYPE);
}

#[test]
fn the_same_parameters_give_the_same_predefined_type() {
    assert!(Arc::ptr_eq(&Datatype::f90_real(6, 30).unwrap(), &Datatype::f90_real(6, 30).unwrap()));
    let value_index = |value, index| Datatype::value_index(&Datatype::named(value), &Datatype::named(index));
    assert!(Arc::ptr_eq(&value_index(MPI_DOUBLE, MPI_INT).unwrap(), &Datatype::named(MPI_DOUBLE_INT)));
    assert!(Arc::ptr_eq(&value_index(MPI_REAL, MPI_REAL).unwrap(), &Datatype::named(MPI_2REAL)));
    assert!(value_index(MPI_C_DOUBLE_COMPLEX, MPI_INT).is_none() && value_index(MPI_INT, MPI_DOUBLE).is_none());
}
