//! Datatypes against a slow model: random type trees, expanded to their type maps entry by entry, must give the same
//! sizes, bounds, packed bytes, pieces, element counts and contents as the library (MPI-5 chapter 5).

mod model;

use std::sync::Arc;

use limosa_mpi::consts::*;
use limosa_mpi::datatype::signature::matches;
use limosa_mpi::datatype::{Datatype, contents::Contents};
use limosa_p2p::memory::Layout;
use model::{Memory, Model, Spec, basic_size, external, trees};
use proptest::prelude::*;

/// Returns the constructor that `Contents` describe, called once more.
fn rebuilt(datatype: &Arc<Datatype>) -> Arc<Datatype> {
    let envelope = datatype.envelope();
    if envelope.combiner == MPI_COMBINER_NAMED {
        return datatype.clone();
    }
    let Contents { combiner, integers, addresses, large_counts, types } = datatype.contents().unwrap();
    assert_eq!(
        (envelope.combiner, envelope.integers, envelope.addresses, envelope.large_counts, envelope.types),
        (combiner, integers.len(), addresses.len(), large_counts.len(), types.len())
    );
    let types: Vec<_> = types.iter().map(rebuilt).collect();
    // In the large form everything but the small integers of arrays is a large count.
    let is_array = matches!(combiner, MPI_COMBINER_SUBARRAY | MPI_COMBINER_DARRAY);
    let values: Vec<i64> =
        if datatype.is_large() && !is_array { large_counts.clone() } else { [integers.clone(), addresses].concat() };
    let counts = if datatype.is_large() { large_counts } else { integers.clone() };
    let n = values.first().copied().unwrap_or(0) as usize;
    let ints = |range: std::ops::Range<usize>| integers[range].iter().map(|v| *v as i32).collect::<Vec<i32>>();
    let built = match combiner {
        MPI_COMBINER_DUP => Ok(Datatype::dup(&types[0])),
        MPI_COMBINER_CONTIGUOUS => Datatype::contiguous(values[0], &types[0]),
        MPI_COMBINER_VECTOR => Datatype::vector(values[0], values[1], values[2], &types[0]),
        MPI_COMBINER_HVECTOR => Datatype::hvector(values[0], values[1], values[2], &types[0]),
        MPI_COMBINER_INDEXED => Datatype::indexed(&values[1..=n], &values[n + 1..], &types[0]),
        MPI_COMBINER_HINDEXED => Datatype::hindexed(&values[1..=n], &values[n + 1..], &types[0]),
        MPI_COMBINER_INDEXED_BLOCK => Datatype::indexed_block(values[1], &values[2..], &types[0]),
        MPI_COMBINER_HINDEXED_BLOCK => Datatype::hindexed_block(values[1], &values[2..], &types[0]),
        MPI_COMBINER_STRUCT => Datatype::structure(&values[1..=n], &values[n + 1..], &types),
        MPI_COMBINER_RESIZED => Datatype::resized(&types[0], values[0], values[1]),
        MPI_COMBINER_SUBARRAY => {
            let (d, counts) = (integers[0] as usize, if datatype.is_large() { &counts[..] } else { &counts[1..] });
            Datatype::subarray(
                &counts[..d],
                &counts[d..2 * d],
                &counts[2 * d..3 * d],
                *integers.last().unwrap() as i32,
                &types[0],
            )
        }
        MPI_COMBINER_DARRAY => {
            let d = integers[2] as usize;
            let (sizes, at) = if datatype.is_large() { (&counts[..d], 3) } else { (&counts[3..3 + d], 3 + d) };
            let (distributions, arguments, processes) =
                (ints(at..at + d), ints(at + d..at + 2 * d), ints(at + 2 * d..at + 3 * d));
            let order = *integers.last().unwrap() as i32;
            Datatype::darray(
                integers[0] as i32,
                integers[1] as i32,
                sizes,
                &distributions,
                &arguments,
                &processes,
                order,
                &types[0],
            )
        }
        other => panic!("unknown combiner {other}"),
    };
    built.unwrap()
}

fn bounds(datatype: &Datatype) -> [i64; 5] {
    [datatype.size(), datatype.lb(), datatype.extent(), datatype.true_lb(), datatype.true_extent()]
}

/// Packs the stream bytes `[from, to)`.
fn pack(datatype: &Datatype, memory: &mut Memory, count: usize, from: usize, to: usize) -> Vec<u8> {
    let mut packed = vec![0; to - from];
    if to > from {
        // SAFETY: the memory was made for `count` elements of this type.
        unsafe { datatype.pack(memory.base(), count, from, &mut packed) };
    }
    packed
}

/// Checks that the pieces of the stream from byte `from` on are these bytes of memory in order, no two pieces touching,
/// and that listing them ends when the caller wants no more.
fn check_pieces(
    datatype: &Datatype,
    base: *mut u8,
    count: usize,
    from: usize,
    bytes: &[i64],
) -> Result<(), TestCaseError> {
    let mut pieces: Vec<(i64, usize)> = Vec::new();
    datatype.pieces(base, count, from, bytes.len(), &mut |at, size| {
        pieces.push(((at as i64).wrapping_sub(base as i64), size));
        true
    });
    let listed: Vec<i64> = pieces.iter().flat_map(|(at, size)| *at..*at + *size as i64).collect();
    prop_assert_eq!(&listed[..], bytes);
    prop_assert!(pieces.windows(2).all(|p| p[0].0 + p[0].1 as i64 != p[1].0));
    let mut seen = 0;
    datatype.pieces(base, count, from, bytes.len(), &mut |_, _| {
        seen += 1;
        seen < 2
    });
    prop_assert_eq!(seen, pieces.len().min(2));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_types_agree_with_their_type_maps(
        tree in trees(),
        count in 0usize..4,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 4),
        large: bool,
    ) {
        let model = Model::of(&tree);
        let datatype = if large { tree.build().again().into_large() } else { tree.build() };
        datatype.commit();
        let true_extent = model.true_ub() - model.true_lb();
        prop_assert_eq!(
            bounds(&datatype),
            [model.size(), model.lb(), model.extent(), model.true_lb(), true_extent]
        );

        let bytes = model.addresses(count);
        let mut memory = Memory::of(&bytes);
        memory.fill();
        let stream: Vec<u8> = bytes.iter().map(|at| memory.get(*at)).collect();

        // Whole, in two parts cut anywhere, and any part.
        prop_assert_eq!(&pack(&datatype, &mut memory, count, 0, stream.len()), &stream);
        let step = stream.len() / 150 + 1;
        for cut in (0..=stream.len()).step_by(step) {
            prop_assert_eq!(&pack(&datatype, &mut memory, count, 0, cut), &stream[..cut]);
            prop_assert_eq!(&pack(&datatype, &mut memory, count, cut, stream.len()), &stream[cut..]);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        for part in cuts.windows(2) {
            prop_assert_eq!(&pack(&datatype, &mut memory, count, part[0], part[1]), &stream[part[0]..part[1]]);
        }

        // Unpacked part by part, into memory that is otherwise left alone.
        let (mut expected, mut got) = (memory.blank(), memory.blank());
        bytes.iter().zip(&stream).for_each(|(at, byte)| expected.set(*at, *byte));
        for part in cuts.windows(2).filter(|part| part[0] < part[1]) {
            // SAFETY: the memory was made for `count` elements of this type.
            unsafe { datatype.unpack(got.base(), count, part[0], &stream[part[0]..part[1]]) };
        }
        prop_assert_eq!(got.bytes(), expected.bytes());

        // The pieces of any part are its bytes in order, no two of them touching.
        let base = memory.base();
        for part in cuts.windows(2).filter(|part| part[0] < part[1]) {
            check_pieces(&datatype, base, count, part[0], &bytes[part[0]..part[1]])?;
        }

        // A region is contiguous exactly if the bytes are.
        // SAFETY: the memory was made for `count` elements of this type.
        let region = unsafe { datatype.region(base, count) };
        let contiguous = bytes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        prop_assert_eq!(region.len(), stream.len());
        prop_assert_eq!(region.as_contiguous().is_some(), contiguous);
        let mut read = vec![0; stream.len()];
        region.read(0, &mut read);
        prop_assert_eq!(&read, &stream);
    }

    #[test]
    fn random_types_agree_with_what_is_rebuilt_from_their_contents_and_entries(
        tree in trees(),
        count in 0usize..4,
        large: bool,
    ) {
        let model = Model::of(&tree);
        let datatype = if large { tree.build().again().into_large() } else { tree.build() };
        datatype.commit();
        let bytes = model.addresses(count);
        let mut memory = Memory::of(&bytes);
        memory.fill();

        // Made once more from its contents it is the same type.
        let twin = rebuilt(&datatype);
        twin.commit();
        prop_assert_eq!(bounds(&twin), bounds(&datatype));
        let stream = pack(&datatype, &mut memory, count, 0, bytes.len());
        prop_assert_eq!(pack(&twin, &mut memory, count, 0, bytes.len()), stream);
        prop_assert!(matches((&twin, 3), (&datatype, 3)));

        // Its signature is that of its entries one by one.
        let parts: Vec<_> = model.entries.iter().map(|entry| Datatype::named(entry.handle)).collect();
        let places = model.entries.iter().map(|e| e.at).collect::<Vec<_>>();
        let flat = Datatype::structure(&vec![1; parts.len()], &places, &parts).unwrap();
        prop_assert!(matches((&flat, 2), (&datatype, 2)));
    }

    #[test]
    fn elements_are_counted_as_in_the_type_map(tree in trees()) {
        let (model, datatype) = (Model::of(&tree), tree.build());
        let sizes: Vec<i64> = (0..2).flat_map(|_| &model.entries).map(|entry| basic_size(entry.handle)).collect();
        let mut wanted = vec![None; 2 * model.size() as usize + 1];
        let mut at = 0;
        wanted[0] = Some(0);
        for (i, size) in sizes.iter().enumerate() {
            at += size;
            wanted[at as usize] = Some(i as i64 + 1);
            prop_assert_eq!(datatype.bytes_of_elements(i as i64 + 1), Some(at));
        }
        for (bytes, elements) in wanted.iter().enumerate() {
            prop_assert_eq!(datatype.elements_of_bytes(bytes as i64), *elements);
        }
    }

    #[test]
    fn external32_has_each_value_in_big_endian(tree in trees(), count in 0usize..3) {
        let (model, datatype) = (Model::of(&tree), tree.build());
        datatype.commit();
        let bytes = model.addresses(count);
        let mut memory = Memory::of(&bytes);
        memory.fill();
        let native: Vec<u8> = bytes.iter().map(|at| memory.get(*at)).collect();
        let (mut expected, mut at) = (Vec::new(), 0);
        for entry in (0..count).flat_map(|_| &model.entries) {
            let size = basic_size(entry.handle) as usize;
            expected.extend(external(entry.handle, &native[at..at + size]));
            at += size;
        }
        prop_assert_eq!(datatype.external_size(count as i64).unwrap(), expected.len() as i64);
        let (mut packed, mut position) = (vec![0; expected.len() + 3], 2);
        // SAFETY: the memory was made for `count` elements of this type.
        unsafe { datatype.pack_external(memory.base(), count as i64, &mut packed, &mut position).unwrap() };
        prop_assert_eq!(position, 2 + expected.len() as i64);
        prop_assert_eq!(&packed[2..2 + expected.len()], &expected[..]);
        let (mut wanted, mut got, mut position) = (memory.blank(), memory.blank(), 0);
        bytes.iter().zip(&native).for_each(|(at, byte)| wanted.set(*at, *byte));
        // SAFETY: as above.
        unsafe { datatype.unpack_external(&expected, &mut position, got.base(), count as i64).unwrap() };
        prop_assert_eq!(got.bytes(), wanted.bytes());
    }
}

#[test]
fn the_model_follows_the_standards_examples() {
    // MPI-5 example 5.1: {(double, 0), (char, 8)} has extent 16.
    let tree = Spec::Struct(vec![(1, 0, Spec::Named(MPI_DOUBLE)), (1, 8, Spec::Named(MPI_CHAR))]);
    let model = Model::of(&tree);
    assert_eq!((model.size(), model.lb(), model.extent()), (9, 0, 16));
    assert_eq!(bounds(&tree.build()), [9, 0, 16, 0, 9]);
}
