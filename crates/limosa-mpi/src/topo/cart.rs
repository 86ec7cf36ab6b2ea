//! Cartesian topologies: grids of processes, periodic or not in each dimension (MPI-5 section 8.5).
//!
//! Contract
//! - Ranks are laid out in row-major order: the last coordinate varies fastest.
//! - A grid may have no dimensions; it then has one process, whose list of coordinates is empty.

use crate::consts::MPI_PROC_NULL;
use crate::error::Result;
use crate::fail;
use crate::group::ranks_of;

/// The shape of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    dims: Box<[i32]>,
    periods: Box<[bool]>,
    size: usize,
}

impl Cart {
    /// Makes a grid of these sizes, all of them positive; both slices have one entry per dimension.
    pub fn new(dims: &[i32], periods: &[bool]) -> Result<Cart> {
        debug_assert_eq!(dims.len(), periods.len());
        let mut size: usize = 1;
        for (at, &extent) in dims.iter().enumerate() {
            if extent <= 0 {
                fail!(MPI_ERR_DIMS, "dimension {at} of the grid is {extent}, but it must be positive");
            }
            size = size.saturating_mul(extent as usize);
        }
        Ok(Cart { dims: dims.into(), periods: periods.into(), size })
    }

    /// Makes a grid that must fit into `processes` processes.
    pub(crate) fn fitting(dims: &[i32], periods: &[bool], processes: usize) -> Result<Cart> {
        let cart = Cart::new(dims, periods)?;
        if cart.size > processes {
            fail!(
                MPI_ERR_DIMS,
                "the grid {} needs {} processes, but the communicator has {processes}",
                cart.describe(),
                cart.size
            );
        }
        Ok(cart)
    }

    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Size in each dimension.
    pub fn dims(&self) -> &[i32] {
        &self.dims
    }

    /// Whether each dimension is periodic.
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// Coordinates of a rank.
    pub fn coords(&self, rank: i32) -> Result<Vec<i32>> {
        if rank < 0 || rank as usize >= self.size {
            fail!(MPI_ERR_RANK, "the rank is {rank}, but the grid {} has {}", self.describe(), ranks_of(self.size));
        }
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (coord, extent) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = rest % extent;
            rest /= extent;
        }
        Ok(coords)
    }

    /// Rank at these coordinates. A coordinate outside the grid wraps around in a periodic dimension and is an error in
    /// another.
    pub fn rank(&self, coords: &[i32]) -> Result<i32> {
        debug_assert_eq!(coords.len(), self.dims.len());
        let mut rank = 0;
        for (at, ((&coord, &extent), &periodic)) in coords.iter().zip(&self.dims).zip(&self.periods).enumerate() {
            if !periodic && (coord < 0 || coord >= extent) {
                fail!(
                    MPI_ERR_ARG,
                    "coordinate {at} is {coord}, but that dimension goes from 0 to {} and is not periodic",
                    extent - 1
                );
            }
            rank = rank * extent + coord.rem_euclid(extent);
        }
        Ok(rank)
    }

    /// Source and destination for a shift of the process at `rank` by `displacement` along a dimension; `MPI_PROC_NULL`
    /// beyond an open end.
    pub fn shift(&self, rank: i32, direction: i32, displacement: i32) -> Result<(i32, i32)> {
        if direction < 0 || direction as usize >= self.dims.len() {
            fail!(
                MPI_ERR_ARG,
                "the direction is {direction}, but the grid {} has {} dimensions, counted from 0",
                self.describe(),
                self.dims.len()
            );
        }
        let direction = direction as usize;
        let coords = self.coords(rank)?;
        let neighbour = |distance: i64| {
            let extent = i64::from(self.dims[direction]);
            let target = i64::from(coords[direction]) + distance;
            if !self.periods[direction] && !(0..extent).contains(&target) {
                return Ok(MPI_PROC_NULL);
            }
            let mut coords = coords.clone();
            coords[direction] = target.rem_euclid(extent) as i32;
            self.rank(&coords)
        };
        Ok((neighbour(-i64::from(displacement))?, neighbour(i64::from(displacement))?))
    }

    /// Returns the grid of the dimensions that remain, and the ranks in this grid that share the dropped coordinates of
    /// `rank`, in order.
    pub(crate) fn sub(&self, rank: i32, remain: &[bool]) -> Result<SubGrid> {
        debug_assert_eq!(remain.len(), self.dims.len());
        let kept = |at: &usize| remain[*at];
        let dims: Vec<i32> = (0..self.dims.len()).filter(kept).map(|at| self.dims[at]).collect();
        let periods: Vec<bool> = (0..self.dims.len()).filter(kept).map(|at| self.periods[at]).collect();
        let cart = Cart::new(&dims, &periods)?;
        let mut coords = self.coords(rank)?;
        let mut ranks = Vec::with_capacity(cart.size);
        for sub_rank in 0..cart.size {
            let mut sub_coords = cart.coords(sub_rank as i32)?.into_iter();
            for (coord, _) in coords.iter_mut().zip(remain).filter(|(_, remains)| **remains) {
                *coord = sub_coords.next().expect("one coordinate per dimension that remains");
            }
            ranks.push(self.rank(&coords)?);
        }
        Ok(SubGrid { cart, ranks })
    }

    /// Returns the edges of the grid, at one end each, for [`super::placement`].
    pub(crate) fn links(&self) -> Vec<Vec<(usize, i64)>> {
        let next = |rank: i32, direction: i32| match self.shift(rank, direction, 1) {
            Ok((_, above)) if above != MPI_PROC_NULL => Some((above as usize, 1)),
            _ => None,
        };
        let directions = self.dims.len() as i32;
        (0..self.size as i32).map(|rank| (0..directions).filter_map(|along| next(rank, along)).collect()).collect()
    }

    fn describe(&self) -> String {
        match self.dims.len() {
            0 => "without dimensions".to_string(),
            _ => self.dims.iter().map(i32::to_string).collect::<Vec<_>>().join(" x "),
        }
    }
}

/// A part of a grid.
pub(crate) struct SubGrid {
    pub(crate) cart: Cart,
    /// Its members' ranks in the whole grid.
    pub(crate) ranks: Vec<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::{MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_RANK};
    use proptest::prelude::*;

    fn grid() -> impl Strategy<Value = Cart> {
        proptest::collection::vec((1i32..5, any::<bool>()), 0..4).prop_map(|dims| {
            let (dims, periods): (Vec<i32>, Vec<bool>) = dims.into_iter().unzip();
            Cart::new(&dims, &periods).unwrap()
        })
    }

    /// Returns all coordinates of a grid in row-major order.
    fn all_coords(dims: &[i32]) -> Vec<Vec<i32>> {
        dims.iter().fold(vec![vec![]], |all, &extent| {
            all.into_iter().flat_map(|prefix| (0..extent).map(move |c| [prefix.clone(), vec![c]].concat())).collect()
        })
    }

    proptest! {
        #[test]
        fn ranks_are_laid_out_row_by_row(cart in grid()) {
            for (rank, coords) in all_coords(cart.dims()).into_iter().enumerate() {
                prop_assert_eq!(cart.coords(rank as i32).unwrap(), coords.clone());
                prop_assert_eq!(cart.rank(&coords).unwrap(), rank as i32);
            }
            prop_assert_eq!(cart.coords(cart.size() as i32).unwrap_err().class, MPI_ERR_RANK);
        }

        #[test]
        fn a_shift_moves_along_one_dimension(cart in grid(), displacement in -9i32..10) {
            for (rank, coords) in all_coords(cart.dims()).into_iter().enumerate() {
                for direction in 0..cart.dims().len() {
                    let expect = |distance: i32| {
                        let mut moved = coords.clone();
                        moved[direction] += distance;
                        cart.rank(&moved).unwrap_or(MPI_PROC_NULL)
                    };
                    let got = cart.shift(rank as i32, direction as i32, displacement).unwrap();
                    prop_assert_eq!(got, (expect(-displacement), expect(displacement)));
                }
            }
        }

        #[test]
        fn the_parts_of_a_grid_partition_it(cart in grid(), bits in 0u32..16) {
            let remain: Vec<bool> = (0..cart.dims().len()).map(|at| bits >> at & 1 == 1).collect();
            for rank in 0..cart.size() as i32 {
                let part = cart.sub(rank, &remain).unwrap();
                let mine = cart.coords(rank).unwrap();
                let shares = |other: &i32| {
                    let theirs = cart.coords(*other).unwrap();
                    (0..mine.len()).all(|at| remain[at] || mine[at] == theirs[at])
                };
                prop_assert_eq!(part.ranks, (0..cart.size() as i32).filter(shares).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_grid_without_dimensions_is_one_process() {
        let cart = Cart::new(&[], &[]).unwrap();
        assert_eq!((cart.size(), cart.coords(0).unwrap(), cart.rank(&[]).unwrap()), (1, vec![], 0));
        assert_eq!(cart.shift(0, 0, 1).unwrap_err().class, MPI_ERR_ARG);
    }

    #[test]
    fn extreme_shifts_do_not_overflow() {
        let ring = Cart::new(&[7], &[true]).unwrap();
        assert_eq!(
            ring.shift(3, 0, i32::MIN).unwrap(),
            ((3 + (1i64 << 31)).rem_euclid(7) as i32, (3 - (1i64 << 31)).rem_euclid(7) as i32)
        );
        let line = Cart::new(&[7], &[false]).unwrap();
        assert_eq!(line.shift(3, 0, i32::MAX).unwrap(), (MPI_PROC_NULL, MPI_PROC_NULL));
    }

    #[test]
    fn wrong_grids_are_refused() {
        assert_eq!(Cart::new(&[2, 0], &[false; 2]).unwrap_err().class, MPI_ERR_DIMS);
        assert_eq!(Cart::fitting(&[2, 3], &[false; 2], 5).unwrap_err().class, MPI_ERR_DIMS);
        assert_eq!(Cart::fitting(&[i32::MAX; 5], &[false; 5], 5).unwrap_err().class, MPI_ERR_DIMS);
        assert_eq!(Cart::new(&[3], &[false]).unwrap().rank(&[3]).unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(Cart::new(&[3], &[true]).unwrap().rank(&[-4]).unwrap(), 2);
    }
}
