//! Balanced factorisation of a number of processes (`MPI_Dims_create`, MPI-5 section 8.5.2).
//!
//! The standard wants the sizes "as close to each other as possible". That is read here as: the difference between the
//! largest and the smallest size is as small as any factorisation allows, and among those with the same difference the
//! largest size is the smallest possible, then the second largest, and so on. Sizes come out in non-increasing order.

use crate::error::Result;
use crate::fail;

/// Replaces the zeros in `dims` by sizes so that all sizes multiply up to `nodes`; sizes already given stay.
pub fn dims_create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    if nodes <= 0 {
        fail!(MPI_ERR_ARG, "the number of nodes is {nodes}, but it must be positive");
    }
    let mut given: i64 = 1;
    for (at, &size) in dims.iter().enumerate() {
        if size < 0 {
            fail!(MPI_ERR_DIMS, "dimension {at} is {size}; give a positive size, or 0 to have it chosen");
        }
        if size > 0 {
            given = given.saturating_mul(i64::from(size));
        }
    }
    if i64::from(nodes) % given != 0 {
        fail!(MPI_ERR_DIMS, "{nodes} nodes cannot be divided by the given sizes, whose product is {given}");
    }
    let free = dims.iter().filter(|&&size| size == 0).count();
    let mut sizes = balanced((i64::from(nodes) / given) as u32, free).into_iter();
    for size in dims.iter_mut().filter(|size| **size == 0) {
        *size = sizes.next().expect("one size per zero") as i32;
    }
    Ok(())
}

/// Returns the most even factorisation of `n` into `count` factors, in non-increasing order.
fn balanced(n: u32, count: usize) -> Vec<u32> {
    if count == 0 {
        return Vec::new();
    }
    let mut search = Search { divisors: divisors(n), best: None, chosen: vec![0; count] };
    search.place(n, 0, n);
    search.best.expect("n x 1 x ... x 1 is a factorisation").1
}

/// Depth-first search that places the largest factor first and tries small ones first. Every completed factorisation
/// that is more even than the best so far narrows the search: factors then lie within the best difference of the first
/// one.
struct Search {
    divisors: Vec<u32>,
    /// Difference and factors of the best factorisation so far.
    best: Option<(u32, Vec<u32>)>,
    chosen: Vec<u32>,
}

impl Search {
    /// Places the factors from `at` on, whose product is `rest`, none larger than `limit`.
    fn place(&mut self, rest: u32, at: usize, limit: u32) {
        let left = self.chosen.len() - at;
        if left == 1 {
            if rest <= limit {
                self.chosen[at] = rest;
                let difference = self.chosen[0] - rest;
                if self.best.as_ref().is_none_or(|best| difference < best.0) {
                    self.best = Some((difference, self.chosen.clone()));
                }
            }
            return;
        }
        // The largest of the factors left is at least their geometric mean.
        let from = self.divisors.partition_point(|&d| power(d, left) < u64::from(rest));
        for i in from..self.divisors.len() {
            let factor = self.divisors[i];
            if factor > limit {
                break;
            }
            if !rest.is_multiple_of(factor) {
                continue;
            }
            self.chosen[at] = factor;
            let first = self.chosen[0];
            // The smallest factor is at most the geometric mean of those after this one. If even that is too far below
            // the first factor for anything better than the best so far, so it is for every larger factor here.
            let lowest = self.best.as_ref().map_or(0, |best| (first + 1).saturating_sub(best.0));
            if power(lowest, left - 1) > u64::from(rest / factor) {
                break;
            }
            self.place(rest / factor, at + 1, factor);
        }
    }
}

/// `base^exponent`, or something above all 32-bit numbers if it is above them.
fn power(base: u32, exponent: usize) -> u64 {
    let mut product: u64 = 1;
    for _ in 0..exponent {
        product *= u64::from(base);
        if product > u64::from(u32::MAX) {
            break;
        }
    }
    product
}

/// Returns all divisors of `n` in increasing order.
fn divisors(n: u32) -> Vec<u32> {
    let small: Vec<u32> =
        (1..).take_while(|&d| u64::from(d) * u64::from(d) <= u64::from(n)).filter(|&d| n.is_multiple_of(d)).collect();
    let large: Vec<u32> =
        small.iter().rev().map(|d| n / d).filter(|&d| u64::from(d) * u64::from(d) > u64::from(n)).collect();
    [small, large].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::{MPI_ERR_ARG, MPI_ERR_DIMS};

    fn dims<const N: usize>(nodes: i32) -> [i32; N] {
        let mut dims = [0; N];
        dims_create(nodes, &mut dims).unwrap();
        dims
    }

    /// Returns all non-increasing factorisations.
    fn factorisations(n: u32, count: usize, limit: u32) -> Vec<Vec<u32>> {
        if count == 0 {
            return if n == 1 { vec![vec![]] } else { vec![] };
        }
        let mut all = Vec::new();
        for factor in (1..=limit.min(n)).filter(|&f| n.is_multiple_of(f)) {
            for mut rest in factorisations(n / factor, count - 1, factor) {
                rest.insert(0, factor);
                all.push(rest);
            }
        }
        all
    }

    #[test]
    fn familiar_numbers() {
        assert_eq!(dims(6), [3, 2]);
        assert_eq!(dims(7), [7, 1]);
        assert_eq!(dims(12), [3, 2, 2]);
        assert_eq!(dims(16), [4, 2, 2]);
        assert_eq!(dims(1), [1, 1, 1]);
        assert_eq!(dims(60), [5, 4, 3]);
        assert_eq!(dims(1 << 30), [1 << 10, 1 << 10, 1 << 10]);
        assert_eq!(dims(i32::MAX), [i32::MAX, 1]);
        assert_eq!(dims::<1>(42), [42]);
        assert_eq!(dims::<0>(5), []);
    }

    #[test]
    fn every_small_number_is_divided_as_evenly_as_possible() {
        for n in 1..=400 {
            for count in 1..=5 {
                let best =
                    factorisations(n, count, n).into_iter().min_by_key(|f| (f[0] - f[count - 1], f.clone())).unwrap();
                assert_eq!(balanced(n, count), best, "{n} in {count} dimensions");
            }
        }
    }

    #[test]
    fn numbers_with_many_divisors_are_quick() {
        for n in [2_095_133_040, 1_396_755_360, 1 << 30, 1_162_261_467, 735_134_400] {
            for count in 1..40 {
                let sizes = balanced(n, count);
                assert_eq!(sizes.iter().map(|&s| u64::from(s)).product::<u64>(), u64::from(n));
                assert!(sizes.is_sorted_by(|a, b| a >= b));
            }
        }
    }

    #[test]
    fn given_sizes_stay() {
        let mut dims = [0, 3, 0];
        dims_create(12, &mut dims).unwrap();
        assert_eq!(dims, [2, 3, 2]);
        let mut dims = [2, 0, 0];
        dims_create(12, &mut dims).unwrap();
        assert_eq!(dims, [2, 3, 2]);
    }

    #[test]
    fn impossible_requests_are_refused() {
        let class = |nodes, mut dims: [i32; 2]| dims_create(nodes, &mut dims).unwrap_err().class;
        assert_eq!(class(7, [3, 0]), MPI_ERR_DIMS);
        assert_eq!(class(4, [-1, 0]), MPI_ERR_DIMS);
        assert_eq!(class(0, [0, 0]), MPI_ERR_ARG);
        assert_eq!(class(-4, [0, 0]), MPI_ERR_ARG);
        assert_eq!(class(6, [i32::MAX, i32::MAX]), MPI_ERR_DIMS);
    }
}
