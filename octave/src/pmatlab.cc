// The communication of pMatlab's distributed arrays.
//
// The toolbox (octave/pmatlab) does everything that needs no speed in Octave itself. Here is what moves elements:
//
//   [rank, size] = __pmatlab_ranks__ (comm)                  begins with these ranks; [] for all
//   part = __pmatlab_move__ (part, from, ranks, to, ranks, np)               one all-to-all between two layouts
//   whole = __pmatlab_gather__ (part, layout, ranks, np, everywhere)         on rank 0 (others: []), or on all ranks
//   values = __pmatlab_swap__ (values, dests, sources)                       one value of any class to each of `dests`
//   value = __pmatlab_bcast__ (value, root)
//   array = __pmatlab_reduce__ (array, operation)                            "+", "min" or "max"; on all ranks
//   numbers = __pmatlab_uniform__ (seed, places)             random numbers in [0, 1) by their places in the stream
//   __pmatlab_conditions__ ()                                makes `if X` of a distributed array call pm_true
//   __pmatlab_write__ (file, matrix, row, column, rows)      writes it where it belongs in a file of `rows` rows
//
// A layout is a matrix with a column for each dimension: its length, the cells along it, the block, the overlap (see
// layout.h). `np` is the number of ranks of the program: with 1 nothing here touches MPI. The calls are collective
// over all ranks, but for the swap, in which each pair of ranks must agree. They use communicators of their own.

#include <octave/Cell.h>
#include <octave/oct.h>
#include <octave/ov-classdef.h>
#include <octave/ov-cx-mat.h>
#include <octave/ov-flt-cx-mat.h>
#include <octave/parse.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "layout.h"
#include "philox.h"
#include "session.h"
#include "values.h"

using namespace limosa;

namespace
{
// The communicators of this toolbox: a duplicate of all ranks, the ranks of this host, and the first ranks of the
// hosts.
struct Ranks {
    MPI_Comm world, host, leaders;
    int rank, size, hosts;
    std::vector<int> order; // the ranks, host by host
};

Ranks current;
bool has_begun = false;

// Makes the communicators for the ranks of this one. Those of an earlier job are forgotten: its other ranks are gone.
void begin(MPI_Comm comm)
{
    Ranks all;
    check(MPI_Comm_dup(comm, &all.world));
    MPI_Comm_rank(all.world, &all.rank);
    MPI_Comm_size(all.world, &all.size);
    check(MPI_Comm_split_type(all.world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &all.host));
    int place, leader = all.rank;
    MPI_Comm_rank(all.host, &place);
    check(MPI_Bcast(&leader, 1, MPI_INT, 0, all.host));
    check(MPI_Comm_split(all.world, place == 0 ? 0 : MPI_UNDEFINED, 0, &all.leaders));
    std::vector<int> leaders(all.size);
    check(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, all.world));
    all.order.resize(all.size);
    std::iota(all.order.begin(), all.order.end(), 0);
    std::stable_sort(all.order.begin(), all.order.end(), [&](int a, int b) { return leaders[a] < leaders[b]; });
    all.hosts = 0;
    for (int rank = 0; rank < all.size; rank++)
        all.hosts += leaders[rank] == rank;
    current = all;
    has_begun = true;
}

const Ranks &ranks()
{
    if (!has_begun)
        fail("other", "pMatlab has not been started; hint: call pMatlab_Init first");
    return current;
}

Layout layout_of(const octave_value &axes, const octave_value &ranks)
{
    Layout layout;
    Matrix columns = axes.matrix_value();
    for (octave_idx_type d = 0; d < columns.cols(); d++)
        layout.axes.push_back({Index(columns(0, d)), Index(columns(1, d)), Index(columns(2, d)), Index(columns(3, d))});
    Matrix list = ranks.matrix_value();
    for (octave_idx_type i = 0; i < list.numel(); i++)
        layout.ranks.push_back(int(list(i)));
    return layout;
}

// The dimensions of the part of a cell; without a cell 0 x 0.
dim_vector dimensions(const Layout &layout, Index cell)
{
    dim_vector dims(0, 0);
    if (cell < 0)
        return dims;
    dims.resize(layout.axes.size());
    for (std::size_t d = 0; d < layout.axes.size(); d++) {
        dims(d) = layout.axes[d].stored(cell % layout.axes[d].cells);
        cell /= layout.axes[d].cells;
    }
    dims.chop_trailing_singletons();
    return dims;
}

// The part of a rank, with a class on which all ranks agree. Ranks without elements go along with the others.
struct Part {
    Dense view;
    Class cls;
    std::uint8_t flags;
};

// Octave makes complex numbers real where all imaginary parts are 0, on each rank for itself.
octave_value as_complex(const octave_value &value)
{
    if (value.is_single_type())
        return octave_value(new octave_float_complex_matrix(value.float_complex_array_value()));
    return octave_value(new octave_complex_matrix(value.complex_array_value()));
}

Part agreed(const octave_value &value, bool alone, const dim_vector &expected)
{
    Part part;
    if (!dense(value, part.view))
        fail("class", "pMatlab: a local part of class %s cannot be moved between ranks", value.class_name().c_str());
    if (part.view.elements != 0 && part.view.dims != expected)
        fail("shape", "pMatlab: the local part is %s, but the map gives this rank %s elements",
             part.view.dims.str().c_str(), expected.str().c_str());
    part.cls = part.view.cls;
    part.flags = part.view.flags & complex_flag;
    if (alone)
        return part;
    // The class, and whether any part is complex: the largest, and the smallest as the largest negative one.
    int mine = static_cast<int>(part.cls), codes[3] = {-1, -256, 0}, all[3];
    if (part.view.elements != 0) {
        codes[0] = mine;
        codes[1] = -mine;
        codes[2] = part.flags;
    }
    check(MPI_Allreduce(codes, all, 3, MPI_INT, MPI_MAX, ranks().world));
    if (all[0] < 0)
        return part;
    if (all[0] != -all[1])
        fail("class",
             "pMatlab: the local parts have different classes on different ranks; this rank's "
             "is %s; hint: give all parts one class before the array is moved",
             value.class_name().c_str());
    part.cls = static_cast<Class>(all[0]);
    part.flags = all[2];
    if (part.view.elements != 0 && part.flags != (part.view.flags & complex_flag))
        dense(as_complex(value), part.view);
    return part;
}

// One side of an exchange: for each rank the box of its elements, and where they lie in the buffer.
struct Parcels {
    std::vector<Box> boxes;
    std::vector<MPI_Count> bytes;
    std::vector<MPI_Aint> places;
    MPI_Count total = 0;
    bool in_place = true; // all boxes are contiguous: the buffer is the local part

    explicit Parcels(int size) : boxes(size), bytes(size, 0), places(size, 0)
    {
    }

    void set(int rank, Box box, Index element)
    {
        bytes[rank] = count(box) * element;
        total += bytes[rank];
        Index place = contiguous(box);
        if (place < 0)
            in_place = false;
        places[rank] = place * element;
        boxes[rank] = std::move(box);
    }

    // Memory for the packed elements, unless they can stay where they are; the boxes follow each other by `order`.
    std::unique_ptr<char[]> buffer(const std::vector<int> &order)
    {
        if (in_place)
            return nullptr;
        MPI_Aint place = 0;
        for (int rank : order) {
            places[rank] = place;
            place += bytes[rank];
        }
        return std::unique_ptr<char[]>(new char[total]);
    }
};

void *writable(const void *data)
{
    return const_cast<void *>(data);
}

// The bytes of an element.
Index bytes_of(const Part &part)
{
    int bytes;
    MPI_Type_size(datatype(part.cls, part.flags), &bytes);
    return bytes;
}

// The elements that stay on this rank.
void keep(const Box &source, const Box &target, Index element, const void *from, void *to)
{
    char *local = static_cast<char *>(writable(from)), *made = static_cast<char *>(to);
    Index first = contiguous(source), last = contiguous(target);
    if (first >= 0) {
        copy_box<false>(target, element, made, local + first * element);
    } else if (last >= 0) {
        copy_box<true>(source, element, local, made + last * element);
    } else {
        std::unique_ptr<char[]> packed(new char[count(source) * element]);
        copy_box<true>(source, element, local, packed.get());
        copy_box<false>(target, element, made, packed.get());
    }
}

octave_value move(const octave_value_list &args)
{
    Layout from = layout_of(args(1), args(2)), to = layout_of(args(3), args(4));
    int size = args(5).int_value(), rank = size > 1 ? ranks().rank : 0;
    Index here = from.cell(rank), there = to.cell(rank);
    Part part = agreed(args(0), size == 1, dimensions(from, here));
    Fresh made(part.cls, part.flags, dimensions(to, there));
    const Index element = bytes_of(part);
    Parcels out(size), in(size);
    Box source, target;
    for (int other = 0; other < size; other++) {
        if (other == rank) {
            if (between(from, here, to, there, source, target))
                keep(source, target, element, part.view.data(), made.data());
            continue;
        }
        if (between(from, here, to, to.cell(other), source, target))
            out.set(other, std::move(source), element);
        if (between(from, from.cell(other), to, there, source, target))
            in.set(other, std::move(target), element);
    }
    if (size == 1)
        return made.value();
    const std::vector<int> &order = ranks().order;
    std::unique_ptr<char[]> packed = out.buffer(order), arrived = in.buffer(order);
    if (packed)
        for (int other = 0; other < size; other++)
            if (out.bytes[other] != 0)
                copy_box<true>(out.boxes[other], element, writable(part.view.data()), packed.get() + out.places[other]);
    check(MPI_Alltoallv_c(packed ? packed.get() : part.view.data(), out.bytes.data(), out.places.data(), MPI_BYTE,
                          arrived ? arrived.get() : made.data(), in.bytes.data(), in.places.data(), MPI_BYTE,
                          ranks().world));
    if (arrived)
        for (int other = 0; other < size; other++)
            if (in.bytes[other] != 0)
                copy_box<false>(in.boxes[other], element, made.data(), arrived.get() + in.places[other]);
    return made.value();
}

// Gathers what each rank sends on rank 0: within each host at its first rank, and then from these. The parcels follow
// each other host by host (`Ranks::order`), so that what a host has gathered is one piece of the result.
void gather_by_host(const void *mine, const std::vector<MPI_Count> &bytes, void *all)
{
    const Ranks &every = ranks();
    int place, size;
    MPI_Comm_rank(every.host, &place);
    MPI_Comm_size(every.host, &size);
    std::vector<MPI_Count> counts(size);
    std::vector<MPI_Aint> places(size, 0);
    check(MPI_Gather_c(&bytes[every.rank], sizeof(MPI_Count), MPI_BYTE, counts.data(), sizeof(MPI_Count), MPI_BYTE, 0,
                       every.host));
    for (int i = 1; i < size; i++)
        places[i] = places[i - 1] + counts[i - 1];
    MPI_Count total = places[size - 1] + counts[size - 1];
    bool leads_all = every.rank == 0;
    std::unique_ptr<char[]> collected(place == 0 && !leads_all ? new char[total] : nullptr);
    check(MPI_Gatherv_c(mine, bytes[every.rank], MPI_BYTE, leads_all ? all : collected.get(), counts.data(),
                        places.data(), MPI_BYTE, 0, every.host));
    if (place != 0)
        return;
    std::vector<MPI_Count> of_hosts(every.hosts);
    std::vector<MPI_Aint> begins(every.hosts, 0);
    check(MPI_Gather_c(&total, sizeof(MPI_Count), MPI_BYTE, of_hosts.data(), sizeof(MPI_Count), MPI_BYTE, 0,
                       every.leaders));
    for (int i = 1; i < every.hosts; i++)
        begins[i] = begins[i - 1] + of_hosts[i - 1];
    check(MPI_Gatherv_c(leads_all ? MPI_IN_PLACE : collected.get(), total, MPI_BYTE, all, of_hosts.data(),
                        begins.data(), MPI_BYTE, 0, every.leaders));
}

octave_value gather(const octave_value_list &args)
{
    Layout from = layout_of(args(1), args(2)), whole;
    for (const Axis &axis : from.axes)
        whole.axes.push_back({axis.length, 1, std::max<Index>(axis.length, 1), 0});
    int size = args(3).int_value(), rank = size > 1 ? ranks().rank : 0;
    bool everywhere = args(4).bool_value();
    Index here = from.cell(rank);
    Part part = agreed(args(0), size == 1, dimensions(from, here));
    bool receives = everywhere || rank == 0;
    Fresh made(part.cls, part.flags, receives ? dimensions(whole, 0) : dim_vector(0, 0));
    const Index element = bytes_of(part);
    Parcels in(size), out(size);
    Box source, target;
    for (int other = 0; other < size; other++)
        if (between(from, from.cell(other), whole, 0, source, target)) {
            if (other == rank)
                out.set(rank, source, element);
            in.set(other, std::move(target), element);
        }
    if (size == 1) {
        if (part.view.elements != 0)
            keep(out.boxes[0], in.boxes[0], element, part.view.data(), made.data());
        return made.value();
    }
    const Ranks &every = ranks();
    std::unique_ptr<char[]> packed = out.buffer({rank});
    if (packed)
        copy_box<true>(out.boxes[rank], element, writable(part.view.data()), packed.get());
    const char *mine = (packed ? packed.get() : static_cast<const char *>(part.view.data())) + out.places[rank];
    std::vector<MPI_Count> &bytes = in.bytes;
    // What follows each other in the result in the order in which it comes is received in place.
    MPI_Aint next = 0;
    for (int other : every.order) {
        in.in_place = in.in_place && (bytes[other] == 0 || in.places[other] == next);
        next += bytes[other];
    }
    std::unique_ptr<char[]> arrived;
    if (receives)
        arrived = in.buffer(every.order);
    void *all = arrived ? arrived.get() : made.data();
    if (everywhere)
        check(
            MPI_Allgatherv_c(mine, bytes[rank], MPI_BYTE, all, bytes.data(), in.places.data(), MPI_BYTE, every.world));
    else
        gather_by_host(mine, bytes, all);
    if (arrived)
        for (int other = 0; other < size; other++)
            if (bytes[other] != 0)
                copy_box<false>(in.boxes[other], element, made.data(), arrived.get() + in.places[other]);
    return made.value();
}

octave_value swap(const octave_value_list &args)
{
    Cell values = args(0).cell_value();
    Array<int> dests = args(1).int_vector_value(), sources = args(2).int_vector_value();
    const int tag = 1;
    MPI_Comm world = ranks().world;
    std::vector<Sending> sends;
    for (octave_idx_type i = 0; i < dests.numel(); i++)
        sends.emplace_back(std::make_shared<Message>(values(i)), dests(i), tag, world);
    Cell result(1, sources.numel());
    for (octave_idx_type i = 0; i < sources.numel(); i++) {
        MPI_Message message;
        MPI_Status status;
        probe(sources(i), tag, world, message, status);
        result(i) = receive(message, status, world);
    }
    for (Sending &sending : sends)
        wait(sending.request());
    return result;
}

octave_value bcast(const octave_value_list &args)
{
    int root = args(1).int_value();
    MPI_Comm world = ranks().world;
    if (ranks().rank == root) {
        Message message(args(0));
        check(MPI_Bcast_c(writable(message.envelope()), envelope_bytes, MPI_BYTE, root, world));
        check(MPI_Bcast_c(writable(message.body()), message.body_bytes(), MPI_BYTE, root, world));
        return args(0);
    }
    char envelope[envelope_bytes];
    check(MPI_Bcast_c(envelope, envelope_bytes, MPI_BYTE, root, world));
    Arrival arrival(envelope_bytes + Arrival::announced(envelope));
    std::memcpy(arrival.envelope(), envelope, envelope_bytes);
    check(MPI_Bcast_c(arrival.body(), arrival.body_bytes(), MPI_BYTE, root, world));
    return arrival.value();
}

octave_value reduce(const octave_value_list &args)
{
    std::string name = args(1).string_value();
    MPI_Op op = name == "min" ? MPI_MIN : name == "max" ? MPI_MAX : MPI_SUM;
    Dense view;
    if (!dense(args(0), view) || (view.cls != Class::double_ && view.cls != Class::single_))
        fail("class", "gagg: a value of class %s cannot be reduced; hint: double or single arrays",
             args(0).class_name().c_str());
    // All ranks must have the same class and number of elements; what differs is found before anything is reduced.
    std::int64_t mine[6] = {
        std::int64_t(view.elements), -std::int64_t(view.elements), int(view.cls), -int(view.cls), view.flags,
        -std::int64_t(view.flags)};
    std::int64_t all[6];
    check(MPI_Allreduce(mine, all, 6, MPI_INT64_T, MPI_MAX, ranks().world));
    if (all[0] != -all[1])
        fail("shape",
             "gagg: the ranks have arrays of different sizes, from %ld to %ld elements; "
             "this rank's is %s",
             long(-all[1]), long(all[0]), view.dims.str().c_str());
    if (all[2] != -all[3])
        fail("class", "gagg: some ranks have double arrays, others single ones");
    bool is_complex = all[4] & complex_flag;
    if (is_complex && op != MPI_SUM)
        fail("class", "gagg: complex numbers have no %simum", name.c_str());
    if (is_complex && !(view.flags & complex_flag))
        dense(as_complex(args(0)), view);
    Fresh made(view.cls, view.flags, view.dims);
    check(MPI_Allreduce_c(view.data(), made.data(), view.elements * (is_complex ? 2 : 1), datatype(view.cls, 0), op,
                          ranks().world));
    return made.value();
}
// Columns that are whole follow each other in the file: then it is one piece.
void write_part(const std::string &name, const Dense &part, Index row, Index column, Index rows)
{
    int file = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        fail("file", "save_dmat: %s cannot be opened: %s", name.c_str(), std::strerror(errno));
    Index pieces = part.dims(1), length = part.dims(0) * part.element_bytes;
    if (part.dims(0) == rows) {
        length *= pieces;
        pieces = 1;
    }
    const char *from = static_cast<const char *>(part.data());
    int problem = 0;
    for (Index k = 0; k < pieces && problem == 0; k++) {
        Index to = ((column + k) * rows + row) * part.element_bytes;
        for (Index left = length; left > 0 && problem == 0;) {
            ssize_t written = pwrite(file, from, left, to);
            if (written < 0 && errno != EINTR)
                problem = errno;
            written = std::max<ssize_t>(written, 0);
            from += written;
            to += written;
            left -= written;
        }
    }
    if (close(file) != 0 && problem == 0)
        problem = errno;
    if (problem != 0)
        fail("file", "save_dmat: writing to %s failed: %s", name.c_str(), std::strerror(problem));
}

// --- conditions ------------------------------------------------------------------------------------------------------
// Octave takes every object of a class as false in `if`, `while`, `until`, `&&` and `||`, and calls no method of the
// class. So the virtual function that decides is replaced for objects of classdef classes. This module stays loaded.

using IsTrue = bool (*)(const octave_base_value *);
IsTrue is_true_of_octave = nullptr;

bool is_true(const octave_base_value *value)
{
    if (value->class_name() != "dmat")
        return is_true_of_octave(value);
    octave_value X(const_cast<octave_base_value *>(value), true);
    return octave::feval("pm_true", ovl(X), 1)(0).bool_value();
}

void replace_condition()
{
    if (is_true_of_octave)
        return;
    // A pointer to a virtual member function has the offset in the table of virtual functions; one of its two lowest
    // bits, in the first or in the second word, says that it is virtual (Itanium C++ ABI; the second word on ARM).
    bool (octave_classdef::*member)() const = &octave_classdef::is_true;
    std::ptrdiff_t words[2];
    static_assert(sizeof member == sizeof words, "the pointer to a member function has two words");
    std::memcpy(words, &member, sizeof words);
    const octave_classdef object;
    char *table;
    std::memcpy(&table, static_cast<const void *>(&object), sizeof table); // an object begins with its table's address
    char *entry = table + (words[0] & ~std::ptrdiff_t(1));
    const std::uintptr_t page = sysconf(_SC_PAGESIZE), begin = std::uintptr_t(entry) / page * page;
    const std::size_t length = std::uintptr_t(entry) + sizeof(IsTrue) - begin;
    if (!((words[0] | words[1]) & 1) || mprotect(reinterpret_cast<void *>(begin), length, PROT_READ | PROT_WRITE) != 0)
        fail("other", "pMatlab: conditions of distributed arrays cannot be evaluated on this machine: %s",
             std::strerror(errno));
    std::memcpy(&is_true_of_octave, entry, sizeof is_true_of_octave);
    const IsTrue replacement = is_true;
    std::memcpy(entry, &replacement, sizeof replacement);
}
} // namespace

DEFUN_DLD(__pmatlab_conditions__, , , "Conditions of distributed arrays: see octave/src/pmatlab.cc.")
{
    replace_condition();
    return octave_value_list();
}

DEFUN_DLD(__pmatlab_ranks__, args, , "Begin with the ranks of a communicator: see octave/src/pmatlab.cc.")
{
    start();
    begin(comm_argument(args, 0));
    return ovl(current.rank, current.size);
}

DEFUN_DLD(__pmatlab_move__, args, , "Move a local part from one layout to another: see octave/src/pmatlab.cc.")
{
    if (args.length() != 6)
        print_usage();
    return ovl(move(args));
}

DEFUN_DLD(__pmatlab_gather__, args, , "Gather local parts: see octave/src/pmatlab.cc.")
{
    if (args.length() != 5)
        print_usage();
    return ovl(gather(args));
}

DEFUN_DLD(__pmatlab_swap__, args, , "Exchange values between pairs of ranks: see octave/src/pmatlab.cc.")
{
    if (args.length() != 3)
        print_usage();
    return ovl(swap(args));
}

DEFUN_DLD(__pmatlab_bcast__, args, , "Send a value from one rank to all: see octave/src/pmatlab.cc.")
{
    if (args.length() != 2)
        print_usage();
    return ovl(bcast(args));
}

DEFUN_DLD(__pmatlab_reduce__, args, , "Combine arrays of all ranks: see octave/src/pmatlab.cc.")
{
    if (args.length() != 2)
        print_usage();
    return ovl(reduce(args));
}

DEFUN_DLD(__pmatlab_write__, args, , "Write a part of a matrix to a file: see octave/src/pmatlab.cc.")
{
    Dense part;
    if (args.length() != 5 || !dense(args(1), part) || part.dims.ndims() != 2)
        print_usage();
    write_part(args(0).string_value(), part, args(2).long_value(), args(3).long_value(), args(4).long_value());
    return octave_value_list();
}

DEFUN_DLD(__pmatlab_uniform__, args, , "Random numbers by their places in the stream: see octave/src/pmatlab.cc.")
{
    if (args.length() != 2)
        print_usage();
    const std::uint64_t seed = args(0).uint64_scalar_value();
    NDArray numbers = args(1).array_value();
    double *each = numbers.fortran_vec();
    for (octave_idx_type i = 0; i < numbers.numel(); i++)
        each[i] = (philox(seed, std::uint64_t(each[i])) >> 11) * 0x1p-53;
    return ovl(numbers);
}
