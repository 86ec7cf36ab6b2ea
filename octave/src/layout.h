// layout.h: which elements of a distributed array each cell of a grid of processes has, and what two cells share.
//
// An axis of N indices is dealt to c cells in blocks of b indices, in turn: a block distribution has one block for each
// cell (b = ceil(N / c)), a cyclic one has b = 1. With an overlap o (blocks only) a cell also stores the first o
// indices after its block. A cell keeps its indices in rising order.
//
// The indices that two cells share along an axis are progressions of runs (`Runs`). The elements that travel between
// them are the products of the runs of all axes, packed with the first axis fastest. No MPI and no Octave here.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace limosa
{

using Index = std::int64_t;

// `count` runs of `length` consecutive elements; the first begins at `first`, each further one `step` later.
struct Runs {
    Index first, length, step, count;
};

// The places of some indices in the local part of one cell, along one axis of `extent` elements.
struct Side {
    Index extent;
    std::vector<Runs> runs;
};

struct Axis {
    Index length, cells, block, overlap;

    Index period() const
    {
        return cells * block;
    }

    // Begin of the block number `turn` of a cell.
    Index start(Index cell, Index turn) const
    {
        return turn * period() + cell * block;
    }

    // End of that block; `stored` counts the overlap in.
    Index end(Index cell, Index turn, bool stored) const
    {
        return std::min(start(cell, turn) + block + (stored ? overlap : 0), length);
    }

    // The number of indices that a cell stores.
    Index stored(Index cell) const
    {
        Index full = length / period(), rest = length % period();
        Index owned = full * block + std::min(std::max(rest - cell * block, Index(0)), block);
        return owned == 0 ? 0 : std::min(owned + overlap, length - (overlap ? cell * block : 0));
    }

    // The first block of a cell that does not end at or before an index.
    Index turn_at(Index cell, Index index) const
    {
        Index from = index - cell * block - block - overlap + 1;
        return from <= 0 ? 0 : (from + period() - 1) / period();
    }
};

// Appends a run; runs of one length at one distance become one progression.
inline void append_run(std::vector<Runs> &runs, Index first, Index length)
{
    if (!runs.empty()) {
        Runs &last = runs.back();
        Index next = last.first + last.count * last.step;
        if (last.count == 1 && last.first + last.length == first) {
            last.length += length;
            return;
        }
        if (last.length == length && last.count == 1) {
            last.step = first - last.first;
            last.count = 2;
            return;
        }
        if (last.length == length && next == first) {
            last.count++;
            return;
        }
    }
    runs.push_back({first, length, 0, 1});
}

// The indices that cell p of `from` owns and cell q of `to` stores: their places in either's local part.
inline void shared(const Axis &from, Index p, const Axis &to, Index q, Side &source, Side &target)
{
    source = {from.stored(p), {}};
    target = {to.stored(q), {}};
    Index k = from.turn_at(p, to.start(q, 0)), l = to.turn_at(q, from.start(p, k));
    while (from.start(p, k) < from.length && to.start(q, l) < to.length) {
        Index low = std::max(from.start(p, k), to.start(q, l));
        Index high = std::min(from.end(p, k, false), to.end(q, l, true));
        if (low < high) {
            append_run(source.runs, k * from.block + low - from.start(p, k), high - low);
            append_run(target.runs, l * to.block + low - to.start(q, l), high - low);
        }
        if (from.end(p, k, false) <= to.end(q, l, true))
            k++;
        else
            l++;
    }
}

inline Index count(const Side &side)
{
    Index sum = 0;
    for (const Runs &runs : side.runs)
        sum += runs.length * runs.count;
    return sum;
}

// Some elements of a local part: one side for each axis.
using Box = std::vector<Side>;

inline Index count(const Box &box)
{
    Index product = 1;
    for (const Side &side : box)
        product *= count(side);
    return product;
}

// Joins axes of which the box has everything to the axis after them: longer runs, fewer axes.
inline Box joined(Box box)
{
    while (box.size() > 1) {
        Side &first = box[0];
        if (first.runs.size() != 1 || first.runs[0].count != 1 || first.runs[0].length != first.extent)
            break;
        for (Runs &runs : box[1].runs)
            runs = {runs.first * first.extent, runs.length * first.extent, runs.step * first.extent, runs.count};
        box[1].extent *= first.extent;
        box.erase(box.begin());
    }
    return box;
}

// Where a (joined) box begins if its elements follow each other in memory, otherwise -1.
inline Index contiguous(const Box &box)
{
    Index place = 0, stride = 1;
    for (std::size_t d = 0; d < box.size(); d++) {
        const Side &side = box[d];
        if (side.runs.size() != 1 || side.runs[0].count != 1 || (d > 0 && side.runs[0].length != 1))
            return -1;
        place += side.runs[0].first * stride;
        stride *= side.extent;
    }
    return place;
}

template <typename T, bool pack> void copy_box(const Box &box, std::size_t axis, T *local, T *&packed)
{
    if (axis > 0) {
        Index stride = 1;
        for (std::size_t d = 0; d < axis; d++)
            stride *= box[d].extent;
        for (const Runs &runs : box[axis].runs)
            for (Index n = 0; n < runs.count; n++)
                for (Index i = 0; i < runs.length; i++)
                    copy_box<T, pack>(box, axis - 1, local + (runs.first + n * runs.step + i) * stride, packed);
        return;
    }
    for (const Runs &runs : box[0].runs) {
        T *place = local + runs.first;
        if (runs.length == 1) {
            for (Index n = 0; n < runs.count; n++, place += runs.step, packed++)
                if (pack)
                    *packed = *place;
                else
                    *place = *packed;
            continue;
        }
        for (Index n = 0; n < runs.count; n++, place += runs.step, packed += runs.length)
            std::memcpy(pack ? packed : place, pack ? place : packed, runs.length * sizeof(T));
    }
}

struct Sixteen {
    std::uint64_t words[2];
};

// Copies the elements of a box from a local part (pack) or into one (unpack). `size`: bytes of an element.
template <bool pack> void copy_box(const Box &box, Index size, void *local, void *packed)
{
    auto run = [&](auto *sample) {
        using T = std::remove_pointer_t<decltype(sample)>;
        T *place = static_cast<T *>(packed);
        copy_box<T, pack>(box, box.size() - 1, static_cast<T *>(local), place);
    };
    switch (size) {
    case 1: return run(static_cast<std::uint8_t *>(nullptr));
    case 2: return run(static_cast<std::uint16_t *>(nullptr));
    case 4: return run(static_cast<std::uint32_t *>(nullptr));
    case 8: return run(static_cast<std::uint64_t *>(nullptr));
    default: return run(static_cast<Sixteen *>(nullptr));
    }
}

// How an array is dealt: an axis for each dimension, and the ranks of the cells, the first axis fastest.
struct Layout {
    std::vector<Axis> axes;
    std::vector<int> ranks;

    // The number of the cell of a rank, or -1.
    Index cell(int rank) const
    {
        auto found = std::find(ranks.begin(), ranks.end(), rank);
        return found == ranks.end() ? -1 : found - ranks.begin();
    }
};

// What the rank p of `from` has for the rank q of `to`: where it lies on either side. False if nothing.
inline bool between(const Layout &from, Index cell_p, const Layout &to, Index cell_q, Box &source, Box &target)
{
    std::size_t dimensions = from.axes.size();
    source.assign(dimensions, {});
    target.assign(dimensions, {});
    if (cell_p < 0 || cell_q < 0)
        return false;
    for (std::size_t d = 0; d < dimensions; d++) {
        const Axis &a = from.axes[d], &b = to.axes[d];
        shared(a, cell_p % a.cells, b, cell_q % b.cells, source[d], target[d]);
        cell_p /= a.cells;
        cell_q /= b.cells;
        if (source[d].runs.empty())
            return false;
    }
    source = joined(source);
    target = joined(target);
    return true;
}

} // namespace limosa
