//! Groups against lists: each operation is repeated on plain vectors by its definition in the standard.

use super::*;
use crate::consts::{MPI_ERR_ARG, MPI_ERR_RANK};
use proptest::prelude::*;

/// Distinct world ranks in any order; small numbers, so that two of them overlap.
fn members() -> impl Strategy<Value = Vec<u32>> {
    let any_order = proptest::collection::hash_set(0u32..40, 0..30)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    let even = (0u32..10, 1i64..4, 0usize..12, any::<bool>()).prop_map(|(first, stride, len, reverse)| {
        let mut ranks: Vec<u32> = (0..len).map(|i| first + i as u32 * stride as u32).collect();
        if reverse {
            ranks.reverse();
        }
        ranks
    });
    prop_oneof![any_order, even]
}

fn list(group: &Group) -> Vec<u32> {
    group.iter().collect()
}

proptest! {
    #[test]
    fn ranks_and_members_are_inverse(ranks in members()) {
        let group = Group::from_world_ranks(ranks.clone());
        prop_assert_eq!(group.size(), ranks.len());
        prop_assert_eq!(list(&group), ranks.clone());
        for world in 0..80 {
            prop_assert_eq!(group.rank_of(world), ranks.iter().position(|&r| r == world).map(|at| at as u32));
        }
        prop_assert_eq!(group.world_rank(ranks.len()), None);
    }

    #[test]
    fn set_operations_follow_their_definitions(a in members(), b in members()) {
        let (ga, gb) = (Group::from_world_ranks(a.clone()), Group::from_world_ranks(b.clone()));
        let mut union = a.clone();
        union.extend(b.iter().filter(|r| !a.contains(r)));
        prop_assert_eq!(list(&ga.union(&gb)), union);
        prop_assert_eq!(list(&ga.intersection(&gb)), a.iter().copied().filter(|r| b.contains(r)).collect::<Vec<_>>());
        prop_assert_eq!(list(&ga.difference(&gb)), a.iter().copied().filter(|r| !b.contains(r)).collect::<Vec<_>>());
        prop_assert_eq!(ga.is_subset_of(&gb), a.iter().all(|r| b.contains(r)));
        prop_assert_eq!(ga.content_hash() == gb.content_hash(), a == b);
    }

    #[test]
    fn comparison_sees_members_and_order(a in members(), b in members()) {
        let (ga, gb) = (Group::from_world_ranks(a.clone()), Group::from_world_ranks(b.clone()));
        let sorted = |v: &Vec<u32>| { let mut v = v.clone(); v.sort_unstable(); v };
        let expected = if a == b {
            Comparison::Ident
        } else if sorted(&a) == sorted(&b) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        };
        prop_assert_eq!(ga.compare(&gb), expected);
        let reversed = Group::from_world_ranks(a.iter().rev().copied().collect());
        let expected = if a.len() < 2 { Comparison::Ident } else { Comparison::Similar };
        prop_assert_eq!(ga.compare(&reversed), expected);
    }

    #[test]
    fn incl_and_excl_pick_and_drop(ranks in members(), picks in proptest::collection::vec(-2i32..32, 0..8)) {
        let group = Group::from_world_ranks(ranks.clone());
        let legal = picks.iter().all(|&p| p >= 0 && (p as usize) < ranks.len())
            && picks.iter().enumerate().all(|(at, p)| !picks[..at].contains(p));
        match (group.incl(&picks), group.excl(&picks)) {
            (Ok(incl), Ok(excl)) => {
                prop_assert!(legal);
                prop_assert_eq!(list(&incl), picks.iter().map(|&p| ranks[p as usize]).collect::<Vec<_>>());
                let kept: Vec<u32> =
                    (0..ranks.len()).filter(|&at| !picks.contains(&(at as i32))).map(|at| ranks[at]).collect();
                prop_assert_eq!(list(&excl), kept);
            }
            (Err(incl), Err(excl)) => {
                prop_assert!(!legal);
                prop_assert_eq!((incl.class, excl.class), (MPI_ERR_RANK, MPI_ERR_RANK));
            }
            _ => prop_assert!(false, "incl and excl accept the same lists"),
        }
    }

    #[test]
    fn ranges_are_shorthand_for_lists(
        size in 1u32..30,
        ranges in proptest::collection::vec((-1i32..30, -1i32..30, -3i32..4), 0..4),
    ) {
        let group = Group::contiguous(5, size);
        let ranges: Vec<RankRange> = ranges.into_iter().map(|(f, l, s)| [f, l, s]).collect();
        let mut expanded = Vec::new();
        let mut directed = true;
        for &[first, last, stride] in &ranges {
            directed &= stride != 0 && (last - first) * stride >= 0;
            let mut rank = first;
            while stride != 0 && (if stride > 0 { rank <= last } else { rank >= last }) {
                expanded.push(rank);
                rank += stride;
            }
        }
        match group.range_incl(&ranges) {
            Ok(got) => {
                prop_assert!(directed);
                prop_assert_eq!(list(&got), list(&group.incl(&expanded).unwrap()));
                prop_assert_eq!(list(&group.range_excl(&ranges).unwrap()), list(&group.excl(&expanded).unwrap()));
            }
            Err(error) => {
                prop_assert!(error.class == MPI_ERR_RANK || error.class == MPI_ERR_ARG);
                prop_assert!(!directed || group.incl(&expanded).is_err());
            }
        }
    }

    #[test]
    fn translation_goes_through_the_process(a in members(), b in members()) {
        let (ga, gb) = (Group::from_world_ranks(a.clone()), Group::from_world_ranks(b.clone()));
        for (rank, world) in a.iter().enumerate() {
            let expected = b.iter().position(|r| r == world).map_or(MPI_UNDEFINED, |at| at as i32);
            prop_assert_eq!(ga.translate(rank as i32, &gb).unwrap(), expected);
        }
        prop_assert_eq!(ga.translate(MPI_PROC_NULL, &gb).unwrap(), MPI_PROC_NULL);
        prop_assert_eq!(ga.translate(a.len() as i32, &gb).unwrap_err().class, MPI_ERR_RANK);
    }
}

#[test]
fn a_wild_range_is_refused_without_being_expanded() {
    let group = Group::contiguous(0, 4);
    assert_eq!(group.range_incl(&[[0, i32::MAX, 1]]).unwrap_err().class, MPI_ERR_RANK);
    assert_eq!(group.range_incl(&[[i32::MIN, i32::MAX, 1]]).unwrap_err().class, MPI_ERR_RANK);
}

#[test]
fn the_last_rank_of_a_range_need_not_be_reached() {
    let group = Group::contiguous(0, 4);
    assert_eq!(list(&group.range_incl(&[[1, 9, 9]]).unwrap()), [1]);
}

#[test]
fn results_without_members_are_the_empty_group() {
    let group = Group::contiguous(0, 4);
    assert!(Arc::ptr_eq(&group.incl(&[]).unwrap(), &Group::empty()));
    assert!(Arc::ptr_eq(&group.difference(&group), &Group::empty()));
}

#[test]
fn messages_name_the_rank_and_the_limits() {
    let error = Group::contiguous(0, 4).incl(&[0, 7]).unwrap_err();
    assert_eq!(error.detail, "entry 1 of the list of ranks is 7, but the group has ranks 0 to 3");
}
