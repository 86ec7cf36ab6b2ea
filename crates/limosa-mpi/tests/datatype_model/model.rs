//! The model: a type map is a list of entries, and constructors are the formulas of the standard, read aloud.

use std::sync::Arc;

use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use proptest::prelude::*;

/// Basic types that appear in the trees, and their sizes. The last three are made of parts that external32 turns one by
/// one.
const BASICS: [(i32, i64); 8] = [
    (MPI_CHAR, 1),
    (MPI_SHORT, 2),
    (MPI_INT, 4),
    (MPI_FLOAT, 4),
    (MPI_DOUBLE, 8),
    (MPI_INT64_T, 8),
    (MPI_REAL16, 16),
    (MPI_C_DOUBLE_COMPLEX, 16),
];

pub fn basic_size(handle: i32) -> i64 {
    BASICS.iter().find(|basic| basic.0 == handle).unwrap().1
}

/// Returns the external32 form of a value.
pub fn external(handle: i32, native: &[u8]) -> Vec<u8> {
    let part = if handle == MPI_C_DOUBLE_COMPLEX { 8 } else { native.len() };
    native.chunks(part).flat_map(|part| part.iter().rev()).copied().collect()
}

/// A datatype as a tree of constructor calls.
#[derive(Clone, Debug)]
pub enum Spec {
    Named(i32),
    Dup(Box<Spec>),
    Contiguous(i64, Box<Spec>),
    Vector(i64, i64, i64, Box<Spec>),
    Hvector(i64, i64, i64, Box<Spec>),
    /// (length, displacement); in elements or bytes.
    Indexed(Vec<(i64, i64)>, bool, Box<Spec>),
    IndexedBlock(i64, Vec<i64>, bool, Box<Spec>),
    Struct(Vec<(i64, i64, Spec)>),
    Resized(i64, i64, Box<Spec>),
    /// (size, part, start)
    Subarray(Vec<(i64, i64, i64)>, bool, Box<Spec>),
    /// (size, distribution, argument, processes, place of this process)
    Darray(Vec<(i64, i32, i32, i32, i32)>, bool, Box<Spec>),
}

fn order(c: bool) -> i32 {
    if c { MPI_ORDER_C } else { MPI_ORDER_FORTRAN }
}

impl Spec {
    /// Returns the library's datatype.
    pub fn build(&self) -> Arc<Datatype> {
        let built = match self {
            Spec::Named(handle) => Ok(Datatype::named(*handle)),
            Spec::Dup(old) => Ok(Datatype::dup(&old.build())),
            Spec::Contiguous(count, old) => Datatype::contiguous(*count, &old.build()),
            Spec::Vector(count, length, stride, old) => Datatype::vector(*count, *length, *stride, &old.build()),
            Spec::Hvector(count, length, stride, old) => Datatype::hvector(*count, *length, *stride, &old.build()),
            Spec::Indexed(blocks, bytes, old) => {
                let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().copied().unzip();
                if *bytes {
                    Datatype::hindexed(&lengths, &places, &old.build())
                } else {
                    Datatype::indexed(&lengths, &places, &old.build())
                }
            }
            Spec::IndexedBlock(length, places, true, old) => Datatype::hindexed_block(*length, places, &old.build()),
            Spec::IndexedBlock(length, places, false, old) => Datatype::indexed_block(*length, places, &old.build()),
            Spec::Struct(fields) => {
                let lengths: Vec<i64> = fields.iter().map(|field| field.0).collect();
                let places: Vec<i64> = fields.iter().map(|field| field.1).collect();
                let types: Vec<_> = fields.iter().map(|field| field.2.build()).collect();
                Datatype::structure(&lengths, &places, &types)
            }
            Spec::Resized(lb, extent, old) => Datatype::resized(&old.build(), *lb, *extent),
            Spec::Subarray(dims, c, old) => {
                let column = |get: fn(&(i64, i64, i64)) -> i64| dims.iter().map(get).collect::<Vec<i64>>();
                Datatype::subarray(&column(|d| d.0), &column(|d| d.1), &column(|d| d.2), order(*c), &old.build())
            }
            Spec::Darray(dims, c, old) => {
                let column = |get: fn(&(i64, i32, i32, i32, i32)) -> i32| dims.iter().map(get).collect::<Vec<i32>>();
                let (rank, size) = dims.iter().fold((0, 1), |(rank, size), d| (rank * d.3 + d.4, size * d.3));
                let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
                Datatype::darray(
                    size,
                    rank,
                    &sizes,
                    &column(|d| d.1),
                    &column(|d| d.2),
                    &column(|d| d.3),
                    order(*c),
                    &old.build(),
                )
            }
        };
        built.unwrap()
    }

    /// Entries of the type map, without making it.
    fn entries(&self) -> i64 {
        match self {
            Spec::Named(_) => 1,
            Spec::Dup(old) | Spec::Resized(_, _, old) => old.entries(),
            Spec::Contiguous(count, old) => count * old.entries(),
            Spec::Vector(count, length, _, old) | Spec::Hvector(count, length, _, old) => {
                count * length * old.entries()
            }
            Spec::Indexed(blocks, _, old) => blocks.iter().map(|block| block.0).sum::<i64>() * old.entries(),
            Spec::IndexedBlock(length, places, _, old) => length * places.len() as i64 * old.entries(),
            Spec::Struct(fields) => fields.iter().map(|field| field.0 * field.2.entries()).sum(),
            Spec::Subarray(dims, _, old) => dims.iter().map(|d| d.1).product::<i64>() * old.entries(),
            Spec::Darray(dims, _, old) => dims.iter().map(|d| d.0).product::<i64>() * old.entries(),
        }
    }
}

/// Random trees of up to four levels.
pub fn trees() -> impl Strategy<Value = Spec> {
    let leaf = prop::sample::select(&BASICS[..]).prop_map(|basic| Spec::Named(basic.0));
    let tree = leaf.prop_recursive(4, 24, 3, |inner| {
        let old = inner.clone().prop_map(Box::new);
        let length = 0i64..4;
        let place = -40i64..40;
        let dimension =
            (1i64..5, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(size, part, start)| {
                let part = part.index(size as usize) as i64 + 1;
                (size, part, start.index((size - part + 1) as usize) as i64)
            });
        let share = (1i64..7, 0..4, 1i32..4, any::<prop::sample::Index>(), 1i32..3).prop_map(
            |(size, kind, processes, place, block)| {
                let place = place.index(processes as usize) as i32;
                match kind {
                    0 => (size, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG, 1, 0),
                    1 => (size, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, processes, place),
                    2 => (size, MPI_DISTRIBUTE_CYCLIC, block, processes, place),
                    _ => (size, MPI_DISTRIBUTE_BLOCK, size as i32, processes, place),
                }
            },
        );
        prop_oneof![
            old.clone().prop_map(Spec::Dup),
            (0i64..5, old.clone()).prop_map(|(n, old)| Spec::Contiguous(n, old)),
            (0i64..5, length.clone(), -5i64..6, old.clone()).prop_map(|(n, l, s, old)| Spec::Vector(n, l, s, old)),
            (0i64..5, length.clone(), place.clone(), old.clone())
                .prop_map(|(n, l, s, old)| Spec::Hvector(n, l, s, old)),
            (prop::collection::vec((length.clone(), -6i64..7), 0..5), old.clone())
                .prop_map(|(b, old)| Spec::Indexed(b, false, old)),
            (prop::collection::vec((length.clone(), place.clone()), 0..5), old.clone())
                .prop_map(|(b, old)| Spec::Indexed(b, true, old)),
            (length.clone(), prop::collection::vec(-6i64..7, 0..5), old.clone())
                .prop_map(|(l, p, old)| Spec::IndexedBlock(l, p, false, old)),
            (length.clone(), prop::collection::vec(place.clone(), 0..5), old.clone())
                .prop_map(|(l, p, old)| Spec::IndexedBlock(l, p, true, old)),
            prop::collection::vec((length.clone(), place.clone(), inner.clone()), 0..4).prop_map(Spec::Struct),
            (place.clone(), -30i64..60, old.clone()).prop_map(|(lb, extent, old)| Spec::Resized(lb, extent, old)),
            (prop::collection::vec(dimension, 1..4), any::<bool>(), old.clone())
                .prop_map(|(d, c, old)| Spec::Subarray(d, c, old)),
            (prop::collection::vec(share, 1..3), any::<bool>(), old).prop_map(|(d, c, old)| Spec::Darray(d, c, old)),
        ]
    });
    tree.prop_filter("small enough to expand", |tree| tree.entries() <= 1500)
}

/// One entry of a type map.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub at: i64,
    pub handle: i32,
}

/// A type map, and the places of lower and upper bounds in it: those of markers, and those of the old types without
/// markers.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub entries: Vec<Entry>,
    markers: Vec<(i64, i64)>,
    bounds: Vec<(i64, i64)>,
}

impl Model {
    pub fn of(spec: &Spec) -> Model {
        let mut new = Model::default();
        match spec {
            Spec::Named(handle) => {
                new.entries.push(Entry { at: 0, handle: *handle });
                new.bounds.push((0, basic_size(*handle)));
            }
            Spec::Dup(old) => new = Model::of(old),
            Spec::Contiguous(count, old) => new.add(&Model::of(old), 0, *count),
            Spec::Vector(count, length, stride, old) => {
                let old = Model::of(old);
                (0..*count).for_each(|i| new.add(&old, i * stride * old.extent(), *length));
            }
            Spec::Hvector(count, length, stride, old) => {
                let old = Model::of(old);
                (0..*count).for_each(|i| new.add(&old, i * stride, *length));
            }
            Spec::Indexed(blocks, bytes, old) => {
                let old = Model::of(old);
                let unit = if *bytes { 1 } else { old.extent() };
                blocks.iter().for_each(|(length, place)| new.add(&old, place * unit, *length));
            }
            Spec::IndexedBlock(length, places, bytes, old) => {
                let old = Model::of(old);
                let unit = if *bytes { 1 } else { old.extent() };
                places.iter().for_each(|place| new.add(&old, place * unit, *length));
            }
            Spec::Struct(fields) => {
                fields.iter().for_each(|(length, place, old)| new.add(&Model::of(old), *place, *length))
            }
            Spec::Resized(lb, extent, old) => {
                new = Model { entries: Model::of(old).entries, markers: vec![(*lb, lb + extent)], bounds: vec![] };
            }
            Spec::Subarray(dims, c, old) => {
                let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
                new.array(&sizes, *c, &Model::of(old), |index| {
                    index.iter().zip(dims).all(|(i, (_, part, start))| *i >= *start && *i < start + part)
                });
            }
            Spec::Darray(dims, c, old) => {
                let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
                new.array(&sizes, *c, &Model::of(old), |index| {
                    index.iter().zip(dims).all(|(i, d)| owner(*i, *d) == d.4 as i64)
                });
            }
        }
        new
    }

    /// Appends `count` consecutive copies of `old`, the first at byte `at`.
    fn add(&mut self, old: &Model, at: i64, count: i64) {
        for i in 0..count {
            let shift = at + i * old.extent();
            self.entries.extend(old.entries.iter().map(|entry| Entry { at: entry.at + shift, ..*entry }));
            self.markers.extend(old.markers.iter().map(|(lb, ub)| (lb + shift, ub + shift)));
            if old.markers.is_empty() && !old.entries.is_empty() {
                self.bounds.push((old.lb() + shift, old.lb() + old.extent() + shift));
            }
        }
    }

    /// Those elements of an array that `take` selects by their indices, in the order in which they are stored.
    fn array(&mut self, sizes: &[i64], c: bool, old: &Model, take: impl Fn(&[i64]) -> bool) {
        let total: i64 = sizes.iter().product();
        for number in 0..total {
            let (mut index, mut rest) = (vec![0; sizes.len()], number);
            let fastest_first: Vec<usize> =
                if c { (0..sizes.len()).rev().collect() } else { (0..sizes.len()).collect() };
            for d in fastest_first {
                index[d] = rest % sizes[d];
                rest /= sizes[d];
            }
            if take(&index) {
                self.add(old, number * old.extent(), 1);
            }
        }
        self.markers = vec![(0, total * old.extent())];
    }

    pub fn size(&self) -> i64 {
        self.entries.iter().map(|entry| basic_size(entry.handle)).sum()
    }

    pub fn true_lb(&self) -> i64 {
        self.entries.iter().map(|entry| entry.at).min().unwrap_or(0)
    }

    pub fn true_ub(&self) -> i64 {
        self.entries.iter().map(|entry| entry.at + basic_size(entry.handle)).max().unwrap_or(0)
    }

    pub fn lb(&self) -> i64 {
        let bounds = if self.markers.is_empty() { &self.bounds } else { &self.markers };
        bounds.iter().map(|bounds| bounds.0).min().unwrap_or(0)
    }

    pub fn extent(&self) -> i64 {
        if let Some(ub) = self.markers.iter().map(|bounds| bounds.1).max() {
            return ub - self.lb();
        }
        // Rounded up to the strictest alignment; that of a complex number is that of its parts.
        let alignment = |handle| if handle == MPI_C_DOUBLE_COMPLEX { 8 } else { basic_size(handle) };
        let strictest = self.entries.iter().map(|entry| alignment(entry.handle)).max().unwrap_or(1);
        let span = self.bounds.iter().map(|bounds| bounds.1).max().unwrap_or(0) - self.lb();
        (span..).find(|extent| extent % strictest == 0).unwrap()
    }

    /// Returns the address of every byte of `count` elements in stream order, relative to the base address.
    pub fn addresses(&self, count: usize) -> Vec<i64> {
        let element = |i: usize| {
            let shift = i as i64 * self.extent();
            self.entries
                .iter()
                .flat_map(move |entry| (0..basic_size(entry.handle)).map(move |byte| shift + entry.at + byte))
        };
        (0..count).flat_map(element).collect()
    }
}

/// Returns the process of a dimension that owns element `i`.
fn owner(i: i64, (size, distribution, argument, processes, _): (i64, i32, i32, i32, i32)) -> i64 {
    let (block, processes) = (argument as i64, processes as i64);
    match distribution {
        MPI_DISTRIBUTE_NONE => 0,
        MPI_DISTRIBUTE_BLOCK if argument == MPI_DISTRIBUTE_DFLT_DARG => i / ((size + processes - 1) / processes),
        MPI_DISTRIBUTE_BLOCK => i / block,
        _ => i / block % processes,
    }
}

/// Memory around a base address that covers a list of addresses and a margin.
pub struct Memory {
    bytes: Vec<u8>,
    low: i64,
}

impl Memory {
    pub fn of(addresses: &[i64]) -> Memory {
        const MARGIN: i64 = 16;
        let (low, high) =
            (addresses.iter().min().unwrap_or(&0) - MARGIN, addresses.iter().max().unwrap_or(&0) + MARGIN);
        Memory { bytes: vec![0xaa; (high - low) as usize], low }
    }

    /// As large, and empty.
    pub fn blank(&self) -> Memory {
        Memory { bytes: vec![0xaa; self.bytes.len()], low: self.low }
    }

    /// Gives all bytes values that tell them apart.
    pub fn fill(&mut self) {
        let mut state = 0x9e37_79b9u32;
        for byte in &mut self.bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
    }

    /// Returns the base address; memory may lie on both sides, or only far away from it.
    pub fn base(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_offset(-self.low as isize)
    }

    pub fn get(&self, at: i64) -> u8 {
        self.bytes[(at - self.low) as usize]
    }

    pub fn set(&mut self, at: i64, byte: u8) {
        self.bytes[(at - self.low) as usize] = byte;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
