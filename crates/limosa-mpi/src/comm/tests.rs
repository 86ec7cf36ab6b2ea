//! Communicators, with all ranks of a job simulated in one process.

use super::*;
use crate::attr::{CopyRule, DeleteRule, create_keyval};
use crate::consts::{
    MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED, MPI_COMM_TYPE_SHARED,
    MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_DIMS, MPI_ERR_GROUP, MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_ERR_RANK, MPI_ERR_ROOT,
    MPI_ERR_TAG, MPI_ERR_TOPOLOGY, MPI_UNDEFINED,
};
use crate::error::Error;
use crate::info::Info;
use crate::process_sets::ProcessSet;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// `MPI_COMM_WORLD` as every rank sees it.
fn worlds(size: u32) -> Vec<Arc<Comm>> {
    (0..size).map(|rank| Comm::without_engine(size, rank)).collect()
}

fn ranks(comm: &Comm) -> Vec<u32> {
    comm.group().iter().collect()
}

/// Splits on all ranks at once.
fn split_all(comms: &[Arc<Comm>], colors: &[(i32, i32)]) -> Vec<Result<Option<Arc<Comm>>>> {
    let legal = |color: i32| if color < 0 { MPI_UNDEFINED } else { color };
    let all: Vec<u8> =
        colors.iter().flat_map(|(color, key)| [legal(*color).to_ne_bytes(), key.to_ne_bytes()].concat()).collect();
    comms.iter().zip(colors).map(|(comm, &(color, key))| comm.split_with(color, key, |_, _| Ok(all.clone()))).collect()
}

#[test]
fn the_predefined_communicators_know_their_members() {
    let world = Comm::without_engine(5, 3);
    assert_eq!(
        (world.size(), world.rank(), world.my_world_rank(), world.name()),
        (5, 3, 3, b"MPI_COMM_WORLD".to_vec())
    );
    let this = Comm::self_of(&World::without_engine(4, 3));
    assert_eq!((this.size(), this.rank(), this.my_world_rank(), this.name()), (1, 0, 3, b"MPI_COMM_SELF".to_vec()));
    assert_ne!(world.context(), this.context());
    for comm in [world, this] {
        assert_eq!((comm.context() & 1, comm.coll_context()), (0, comm.context() + 1));
        assert_eq!(comm.free().unwrap_err().class, MPI_ERR_COMM);
    }
}

#[test]
fn ranks_are_checked() {
    let world = Comm::without_engine(3, 0);
    assert_eq!(world.world_rank_of(2).unwrap(), 2);
    for rank in [-1, 3, i32::MIN, i32::MAX] {
        let error = world.world_rank_of(rank).unwrap_err();
        assert_eq!(error.class, MPI_ERR_RANK);
        assert_eq!(error.detail, format!("the rank is {rank}, but MPI_COMM_WORLD has ranks 0 to 2"));
        assert_eq!(world.check_root(rank).unwrap_err().class, MPI_ERR_ROOT);
    }
    assert_eq!(world.check_root(1).unwrap(), 1);
}

#[test]
fn duplicates_have_the_same_context_everywhere_and_a_new_one_each_time() {
    let mut seen = HashSet::new();
    let mut generation = worlds(4);
    for _ in 0..50 {
        let first: Vec<_> = generation.iter().map(|comm| comm.dup(None).unwrap()).collect();
        let second: Vec<_> = generation.iter().map(|comm| comm.dup(None).unwrap()).collect();
        for comms in [&first, &second] {
            assert!(comms.iter().all(|comm| comm.context() == comms[0].context() && comm.context() & 1 == 0));
            assert!(seen.insert(comms[0].context()));
            assert_eq!(comms[2].rank(), 2);
        }
        generation = second;
    }
}

#[test]
fn a_duplicate_takes_attributes_errhandler_and_topology_but_neither_name_nor_hints() {
    let grid = Comm::without_engine(4, 1).cart_create(&[2, 2], &[true, false], true).unwrap().unwrap();
    let key = create_keyval(Kind::Comm, CopyRule::Share, DeleteRule::Ignore).unwrap();
    grid.attributes().set(0, key, 99).unwrap();
    grid.set_errhandler(Errhandler::returning()).unwrap();
    grid.set_name(b"grid");
    let promises = Info::new();
    promises.set(b"mpi_assert_no_any_tag", b"true").unwrap();
    grid.hints().update(&promises);
    let copy = grid.dup(None).unwrap();
    assert_eq!(copy.attributes().get(key).unwrap(), Some(99));
    assert!(Arc::ptr_eq(&copy.errhandler(), &Errhandler::returning()));
    assert_eq!(copy.cart().unwrap(), grid.cart().unwrap());
    assert_eq!((copy.name(), copy.hints().holds(Hint::NoAnyTag)), (vec![], false));
    assert!(grid.dup(Some(&promises)).unwrap().hints().holds(Hint::NoAnyTag));
}

#[test]
fn a_failed_duplicate_does_not_put_the_members_out_of_step() {
    let copy: crate::attr::CopyFn = Arc::new(|_, _, _| Err(Error::new(MPI_ERR_OTHER, "refused")));
    let key = create_keyval(Kind::Comm, CopyRule::Ask(copy), DeleteRule::Ignore).unwrap();
    let worlds = worlds(2);
    worlds[0].attributes().set(0, key, 1).unwrap();
    assert_eq!(worlds[0].dup(None).unwrap_err().class, MPI_ERR_OTHER);
    worlds[0].attributes().delete(0, key).unwrap();
    worlds[1].dup(None).unwrap();
    assert_eq!(worlds[0].dup(None).unwrap().context(), worlds[1].dup(None).unwrap().context());
}

#[test]
fn contexts_of_a_large_family_are_distinct() {
    let world = Comm::without_engine(1, 0);
    let mut seen = HashSet::from([world.context(), Comm::self_of(&World::without_engine(1, 0)).context()]);
    let mut parents = vec![world];
    for _ in 0..3 {
        let children: Vec<_> = parents.iter().flat_map(|parent| (0..20).map(|_| parent.dup(None).unwrap())).collect();
        for child in &children {
            assert!(seen.insert(child.context()));
        }
        parents = children;
    }
}

proptest! {
    #[test]
    fn a_split_sorts_by_key_then_rank(
        colors in proptest::collection::vec((prop_oneof![0i32..3, Just(MPI_UNDEFINED)], -2i32..3), 1..9),
    ) {
        let made = split_all(&worlds(colors.len() as u32), &colors);
        let mut contexts = HashMap::new();
        for (rank, child) in made.into_iter().enumerate() {
            let (color, _) = colors[rank];
            let child = child.unwrap();
            prop_assert_eq!(child.is_none(), color == MPI_UNDEFINED);
            let Some(child) = child else { continue };
            let mut expected: Vec<(i32, u32)> =
                colors.iter()
                    .enumerate()
                    .filter(|(_, entry)| entry.0 == color)
                    .map(|(rank, entry)| (entry.1, rank as u32))
                    .collect();
            expected.sort_unstable();
            prop_assert_eq!(ranks(&child), expected.into_iter().map(|(_, rank)| rank).collect::<Vec<_>>());
            prop_assert_eq!(child.my_world_rank(), rank as u32);
            prop_assert_eq!(*contexts.entry(color).or_insert(child.context()), child.context());
        }
        prop_assert_eq!(contexts.values().collect::<HashSet<_>>().len(), contexts.len());
    }
}

#[test]
fn a_wrong_color_fails_where_it_was_given_and_only_there() {
    let made = split_all(&worlds(3), &[(0, 0), (-5, 0), (0, 0)]);
    assert_eq!(made[1].as_ref().unwrap_err().class, MPI_ERR_ARG);
    assert_eq!(ranks(made[0].as_ref().unwrap().as_ref().unwrap()), [0, 2]);
}

#[test]
fn create_makes_communicators_of_groups() {
    let worlds = worlds(4);
    let group = Group::from_world_ranks(vec![3, 1]);
    let made: Vec<_> = worlds.iter().map(|comm| comm.create(&group).unwrap()).collect();
    assert!(made[0].is_none() && made[2].is_none());
    let (one, three) = (made[1].as_ref().unwrap(), made[3].as_ref().unwrap());
    assert_eq!((one.rank(), three.rank(), one.context() == three.context()), (1, 0, true));
    let stranger = Group::from_world_ranks(vec![9]);
    assert_eq!(worlds[0].create(&stranger).unwrap_err().class, MPI_ERR_GROUP);
    assert!(worlds[0].create(&Group::empty()).unwrap().is_none());
}

#[test]
fn create_group_counts_per_group_and_tag() {
    let worlds = worlds(3);
    let pair = Group::from_world_ranks(vec![0, 2]);
    let mut seen = HashSet::new();
    // Rank 0 makes other communicators in between, of which rank 2 knows nothing.
    for tag in [0, 0, 1] {
        worlds[0].create_group(&Group::from_world_ranks(vec![0, 1]), tag).unwrap().unwrap();
        let zero = worlds[0].create_group(&pair, tag).unwrap().unwrap();
        let two = worlds[2].create_group(&pair, tag).unwrap().unwrap();
        assert_eq!((zero.context(), zero.rank(), two.rank()), (two.context(), 0, 1));
        assert!(seen.insert(zero.context()));
    }
    assert!(worlds[1].create_group(&pair, 0).unwrap().is_none());
    assert_eq!(worlds[0].create_group(&pair, -1).unwrap_err().class, MPI_ERR_TAG);
    assert_eq!(worlds[0].create_group(&Group::from_world_ranks(vec![0, 9]), 0).unwrap_err().class, MPI_ERR_GROUP);
}

#[test]
fn comparison_tells_object_group_and_order_apart() {
    let world = Comm::without_engine(3, 0);
    assert_eq!(world.compare(&world), Comparison::Ident);
    assert_eq!(world.compare(&world.dup(None).unwrap()), Comparison::Congruent);
    let reversed = world.create(&Group::from_world_ranks(vec![2, 1, 0])).unwrap().unwrap();
    assert_eq!(world.compare(&reversed), Comparison::Similar);
    assert_eq!(world.compare(&Comm::self_of(&World::without_engine(1, 0))), Comparison::Unequal);
}

#[test]
fn names_are_cut_at_the_limit_of_the_abi() {
    let comm = Comm::without_engine(1, 0).dup(None).unwrap();
    assert_eq!((comm.name(), comm.describe()), (vec![], "an unnamed communicator of 1 process".to_string()));
    comm.set_name(&[b'x'; 500]);
    assert_eq!(comm.name().len(), MPI_MAX_OBJECT_NAME as usize - 1);
}

#[test]
fn freeing_deletes_attributes_or_fails_with_them() {
    let refuse = Arc::new(AtomicBool::new(true));
    let at_delete = refuse.clone();
    let delete: crate::attr::DeleteFn =
        Arc::new(
            move |_, _, _| {
                if at_delete.load(Ordering::Relaxed) { Err(Error::new(MPI_ERR_OTHER, "refused")) } else { Ok(()) }
            },
        );
    let key = create_keyval(Kind::Comm, CopyRule::Forget, DeleteRule::Tell(delete)).unwrap();
    let comm = Comm::without_engine(1, 0).dup(None).unwrap();
    comm.attributes().set(0, key, 1).unwrap();
    assert_eq!(comm.free().unwrap_err().class, MPI_ERR_OTHER);
    assert!(!comm.is_freed());
    refuse.store(false, Ordering::Relaxed);
    comm.free().unwrap();
    assert!(comm.is_freed());
    assert_eq!(comm.attributes().get(12345).unwrap_err().class, MPI_ERR_KEYVAL);
}

#[test]
fn hints_in_use_are_reported_and_others_ignored() {
    let comm = Comm::without_engine(1, 0).dup(None).unwrap();
    let info = Info::new();
    info.set(b"mpi_assert_exact_length", b"true").unwrap();
    info.set(b"mpi_assert_no_any_tag", b"perhaps").unwrap();
    info.set(b"some_other_library", b"1").unwrap();
    comm.hints().update(&info);
    let used = comm.hints().to_info().unwrap();
    assert_eq!(used.get(b"mpi_assert_exact_length").unwrap().unwrap(), b"true");
    assert_eq!(used.get(b"mpi_assert_no_any_tag").unwrap().unwrap(), b"false");
    assert_eq!(used.get(b"some_other_library").unwrap(), None);
    info.set(b"mpi_assert_exact_length", b"false").unwrap();
    comm.hints().update(&info);
    assert!(!comm.hints().holds(Hint::ExactLength));
}

#[test]
fn split_types_are_read_with_their_info() {
    let info = Info::new();
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_SHARED, None).unwrap(), SplitKind::SharedMemory);
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_UNGUIDED, None).unwrap(), SplitKind::Nothing);
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_GUIDED, Some(&info)).unwrap(), SplitKind::Nothing);
    info.set(b"mpi_hw_resource_type", b"mpi_shared_memory").unwrap();
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_GUIDED, Some(&info)).unwrap(), SplitKind::SharedMemory);
    info.set(b"mpi_hw_resource_type", b"hwloc://NUMANode").unwrap();
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_GUIDED, Some(&info)).unwrap(), SplitKind::Hardware("NUMANode"));
    info.set(b"mpi_hw_resource_type", b"hwloc://Rack").unwrap();
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_GUIDED, Some(&info)).unwrap(), SplitKind::Nothing);
    let info = Info::new();
    info.set(b"mpi_pset_name", b"mpi://SELF").unwrap();
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_HW_GUIDED, Some(&info)).unwrap(), SplitKind::Nothing);
    let set = SplitKind::ProcessSet(ProcessSet::Own);
    assert_eq!(SplitKind::parse(MPI_COMM_TYPE_RESOURCE_GUIDED, Some(&info)).unwrap(), set);
    assert_eq!(SplitKind::parse(MPI_UNDEFINED, None).unwrap(), SplitKind::Nothing);
    assert_eq!(SplitKind::parse(7, None).unwrap_err().class, MPI_ERR_ARG);
}

#[test]
fn there_is_no_other_side() {
    let world = Comm::without_engine(2, 0);
    assert!(!world.is_inter());
    assert_eq!(world.remote_group().unwrap_err().class, MPI_ERR_COMM);
}

#[test]
fn a_grid_takes_the_first_processes() {
    let made: Vec<_> = worlds(7).iter().map(|comm| comm.cart_create(&[3, 2], &[false, true], true).unwrap()).collect();
    assert!(made[6].is_none());
    let grid: Vec<_> = made.into_iter().flatten().collect();
    assert_eq!(ranks(&grid[4]), [0, 1, 2, 3, 4, 5]);
    assert!(grid.iter().all(|comm| comm.context() == grid[0].context()));
    let columns: Vec<_> = grid.iter().map(|comm| comm.cart_sub(&[true, false]).unwrap()).collect();
    assert_eq!(
        (ranks(&columns[3]), columns[3].rank(), columns[3].cart().unwrap().dims()),
        (vec![1, 3, 5], 1, &[3][..])
    );
    assert_eq!(columns[1].context(), columns[5].context());
    assert_ne!(columns[0].context(), columns[1].context());
    let points: Vec<_> = grid.iter().map(|comm| comm.cart_sub(&[false, false]).unwrap()).collect();
    assert_eq!((ranks(&points[2]), points[2].cart().unwrap().dims().len()), (vec![2], 0));
}

#[test]
fn grids_that_do_not_fit_or_are_missing_are_errors() {
    let world = Comm::without_engine(4, 3);
    assert_eq!(world.cart_create(&[5], &[false], true).unwrap_err().class, MPI_ERR_DIMS);
    assert_eq!(world.cart_map(&[5], &[false]).unwrap_err().class, MPI_ERR_DIMS);
    assert_eq!(world.cart().unwrap_err().class, MPI_ERR_TOPOLOGY);
    assert_eq!(world.cart_map(&[4], &[false]).unwrap(), 3);
    assert_eq!(world.cart_map(&[3], &[false]).unwrap(), MPI_UNDEFINED);
    assert!(world.cart_create(&[], &[], true).unwrap().is_none());
    assert_eq!(world.topo_test(), MPI_UNDEFINED);
}
