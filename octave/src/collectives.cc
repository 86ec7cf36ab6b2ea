// Collective operations of the modern API.
//
// Each is begun as MPI's non-blocking form and then waited for, so that receives which are under way go on meanwhile,
// and Ctrl-C works on every library.
//
// Values travel in two steps: a block of fixed length for each message, with its envelope and, if there is room, its
// body; then the other bodies, from where they lie in memory to where they stay. So nothing is copied but what MPI
// copies.
//
// A value that cannot be sent is an error on all ranks: its rank sends a failure (a message with the mark
// `failure_mark`) in its place.

#include "progress.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <octave/Cell.h>
#include <octave/parse.h>
#include <octave/quit.h>

using namespace limosa;

namespace
{
constexpr std::uint8_t failure_mark = 255;

// The first part of a broadcast: everything, if it is short.
constexpr std::size_t broadcast_block_bytes = 1024;

// The same of a message in an operation in which every rank has one for every other rank.
constexpr std::size_t block_bytes = 256, block_room = block_bytes - envelope_bytes;

int size_of(MPI_Comm comm)
{
    int size;
    check(MPI_Comm_size(comm, &size));
    return size;
}

int rank_of(MPI_Comm comm)
{
    int rank;
    check(MPI_Comm_rank(comm, &rank));
    return rank;
}

// The root that an argument names, as a rank of the communicator.
int root_argument(const octave_value_list &args, int index, MPI_Comm comm, const char *function)
{
    const int root = optional_int(args, index, 0, function, "root");
    if (root < 0 || root >= size_of(comm))
        fail("root", "%s: root %d is no rank of this communicator, which has the ranks 0 to %d", function, root,
             size_of(comm) - 1);
    return root;
}

// A message, or one that says why there is none; the error is thrown after it has been sent.
class Outgoing
{
  public:
    explicit Outgoing(const octave_value &value)
    {
        try {
            m_message.reset(new Message(value));
        } catch (const octave::execution_exception &problem) {
            m_problem = std::current_exception();
            m_message.reset(new Message(octave_value(problem.message()), failure_mark));
        }
    }

    const Message &operator*() const
    {
        return *m_message;
    }
    const Message *operator->() const
    {
        return m_message.get();
    }
    std::exception_ptr problem() const
    {
        return m_problem;
    }

  private:
    std::unique_ptr<Message> m_message;
    std::exception_ptr m_problem;
};

// The value of a message from this rank; an error if it is a failure.
octave_value value_from(int rank, const octave_value &value, std::uint8_t mark)
{
    if (mark == failure_mark && value.is_string())
        fail("class", "on rank %d: %s", rank, value.string_value().c_str());
    return value;
}

// Bodies that do not fit a block, by rank. They lie anywhere: their places count from some other memory.
struct Bodies {
    char *base;
    std::vector<MPI_Count> lengths;
    std::vector<MPI_Aint> places;

    Bodies(std::size_t count, char *counted_from) : base(counted_from), lengths(count, 0), places(count, 0)
    {
    }

    void set(int rank, const char *body, std::size_t bytes)
    {
        lengths[rank] = bytes > block_room ? bytes : 0;
        MPI_Aint place, from;
        check(MPI_Get_address(body, &place));
        check(MPI_Get_address(base, &from));
        places[rank] = MPI_Aint_diff(place, from);
    }
    bool has_any() const
    {
        return std::any_of(lengths.begin(), lengths.end(), [](MPI_Count length) { return length > 0; });
    }
};

void fill(char *block, const Message &message)
{
    std::memcpy(block, message.envelope(), envelope_bytes);
    if (message.body_bytes() <= block_room)
        std::memcpy(block + envelope_bytes, message.body(), message.body_bytes());
}

// Messages from several ranks.
class Inbox
{
  public:
    std::vector<char> blocks;

    explicit Inbox(std::size_t count) : blocks(count * block_bytes), m_bodies(count, blocks.data()), m_values(count)
    {
    }

    // This rank's own message need not be received: its value is here.
    void keep(int rank, const octave_value &value)
    {
        m_values[rank] = value;
    }

    // The blocks have come: makes room for the bodies, and gives it.
    Bodies &open()
    {
        for (std::size_t i = 0; i < m_values.size(); i++) {
            const char *block = blocks.data() + i * block_bytes;
            const bool is_kept = m_values[i].is_defined();
            m_arrivals.emplace_back(envelope_bytes + (is_kept ? 0 : Arrival::announced(block)));
            Arrival &arrival = m_arrivals.back();
            std::memcpy(arrival.envelope(), block, envelope_bytes);
            m_bodies.set(i, arrival.body(), arrival.body_bytes());
            if (arrival.body_bytes() <= block_room)
                std::memcpy(arrival.body(), block + envelope_bytes, arrival.body_bytes());
        }
        return m_bodies;
    }

    char *body(int i)
    {
        return m_arrivals[i].body();
    }

    octave_value value(int i)
    {
        if (m_values[i].is_defined())
            return m_values[i];
        const std::uint8_t mark = m_arrivals[i].mark();
        return value_from(i, m_arrivals[i].value(), mark);
    }

    octave_value cell()
    {
        Cell values(dim_vector(1, m_values.size()));
        for (std::size_t i = 0; i < m_values.size(); i++)
            values(i) = value(i);
        return octave_value(values);
    }

  private:
    std::vector<Arrival> m_arrivals;
    Bodies m_bodies;
    std::vector<octave_value> m_values;
};

// One message for each rank, from a cell or an array with one element per rank. If there is none, all messages are the
// failure that says why.
class Outbox
{
  public:
    std::vector<char> blocks;
    Bodies bodies;

    Outbox(const octave_value &values, int size, const char *function)
        : blocks(size * block_bytes), bodies(size, blocks.data())
    {
        try {
            if (values.numel() != size)
                fail("count", "%s: there are %ld values for %d ranks; give a cell with one value for each rank",
                     function, static_cast<long>(values.numel()), size);
            const Cell cell = values.iscell() ? values.cell_value() : Cell();
            for (int i = 0; i < size; i++) {
                const octave_value value = values.iscell() ? cell(i) : values.fast_elem_extract(i);
                if (!value.is_defined())
                    fail("arg", "%s: give a cell with one value for each rank", function);
                m_messages.emplace_back(new Message(value));
            }
        } catch (const octave::execution_exception &reason) {
            m_problem = std::current_exception();
            m_messages.clear();
            for (int i = 0; i < size; i++)
                m_messages.emplace_back(new Message(octave_value(reason.message()), failure_mark));
        }
        for (int i = 0; i < size; i++) {
            fill(blocks.data() + i * block_bytes, *m_messages[i]);
            bodies.set(i, m_messages[i]->body(), m_messages[i]->body_bytes());
        }
    }

    const Message &operator[](int rank) const
    {
        return *m_messages[rank];
    }

    // Throws the error that the others are told of.
    void raise_problem() const
    {
        if (m_problem)
            std::rethrow_exception(m_problem);
    }

  private:
    std::vector<std::unique_ptr<Message>> m_messages;
    std::exception_ptr m_problem;
};

// The values of all ranks: on every rank if `root` is -1, otherwise there only.
octave_value gathered(const octave_value &value, int root, MPI_Comm comm)
{
    const Outgoing mine(value);
    const int rank = rank_of(comm);
    const bool is_here = root == -1 || rank == root;
    char block[block_bytes] = {};
    fill(block, *mine);
    Inbox inbox(is_here ? size_of(comm) : 0);
    MPI_Request request;
    if (root == -1)
        check(MPI_Iallgather(block, block_bytes, MPI_BYTE, inbox.blocks.data(), block_bytes, MPI_BYTE, comm, &request));
    else
        check(MPI_Igather(block, block_bytes, MPI_BYTE, inbox.blocks.data(), block_bytes, MPI_BYTE, root, comm,
                          &request));
    complete(request);
    // What MPI finds in place is this rank's own body.
    const bool is_kept = is_here && mine->dense_value().is_defined();
    if (is_kept)
        inbox.keep(rank, mine->dense_value());
    Bodies none(0, nullptr);
    Bodies &bodies = is_here ? inbox.open() : none;
    if (is_kept)
        bodies.set(rank, mine->body(), mine->body_bytes());
    else if (is_here)
        std::memcpy(inbox.body(rank), mine->body(), mine->body_bytes());
    if (root == -1 && bodies.has_any()) {
        check(MPI_Iallgatherv_c(MPI_IN_PLACE, 0, MPI_BYTE, bodies.base, bodies.lengths.data(), bodies.places.data(),
                                MPI_BYTE, comm, &request));
        complete(request);
    } else if (root != -1) {
        const MPI_Count length = mine->body_bytes() > block_room ? mine->body_bytes() : 0;
        check(MPI_Igatherv_c(is_here ? MPI_IN_PLACE : mine->body(), length, MPI_BYTE, bodies.base,
                             bodies.lengths.data(), bodies.places.data(), MPI_BYTE, root, comm, &request));
        complete(request);
    }
    if (mine.problem())
        std::rethrow_exception(mine.problem());
    return is_here ? inbox.cell() : octave_value(Matrix());
}

octave_value broadcast(const octave_value &value, int root, MPI_Comm comm)
{
    char block[broadcast_block_bytes] = {};
    constexpr std::size_t room = broadcast_block_bytes - envelope_bytes;
    MPI_Request request;
    if (rank_of(comm) == root) {
        const Outgoing mine(value);
        std::memcpy(block, mine->envelope(), envelope_bytes);
        if (mine->body_bytes() <= room)
            std::memcpy(block + envelope_bytes, mine->body(), mine->body_bytes());
        check(MPI_Ibcast(block, broadcast_block_bytes, MPI_BYTE, root, comm, &request));
        complete(request);
        if (mine->body_bytes() > room) {
            check(MPI_Ibcast_c(const_cast<char *>(mine->body()), mine->body_bytes(), MPI_BYTE, root, comm, &request));
            complete(request);
        }
        if (mine.problem())
            std::rethrow_exception(mine.problem());
        return value;
    }
    check(MPI_Ibcast(block, broadcast_block_bytes, MPI_BYTE, root, comm, &request));
    complete(request);
    Arrival arrival(envelope_bytes + Arrival::announced(block));
    std::memcpy(arrival.envelope(), block, envelope_bytes);
    if (arrival.body_bytes() <= room)
        std::memcpy(arrival.body(), block + envelope_bytes, arrival.body_bytes());
    else {
        check(MPI_Ibcast_c(arrival.body(), arrival.body_bytes(), MPI_BYTE, root, comm, &request));
        complete(request);
    }
    const std::uint8_t mark = arrival.mark();
    return value_from(root, arrival.value(), mark);
}

// --- reductions ------------------------------------------------------------------------------------------------------

// What Octave's `max` and `min` do with NaN: it counts for nothing.
template <typename T, bool is_max> void extreme(void *in, void *inout, int *count, MPI_Datatype *)
{
    const T *a = static_cast<const T *>(in);
    T *b = static_cast<T *>(inout);
    for (int i = 0; i < *count; i++)
        b[i] = is_max ? std::fmax(a[i], b[i]) : std::fmin(a[i], b[i]);
}

MPI_Op made(MPI_User_function *function)
{
    MPI_Op op;
    check(MPI_Op_create(function, 1, &op));
    return op;
}

MPI_Op max_of(bool is_double)
{
    static const MPI_Op double_op = made(extreme<double, true>), single_op = made(extreme<float, true>);
    return is_double ? double_op : single_op;
}

MPI_Op min_of(bool is_double)
{
    static const MPI_Op double_op = made(extreme<double, false>), single_op = made(extreme<float, false>);
    return is_double ? double_op : single_op;
}

// How values are combined: by an operation of MPI, or by an Octave function of two values.
struct Reduction {
    octave_value function;
    MPI_Op op = MPI_OP_NULL;
    std::string name;

    Reduction(const octave_value_list &args, int index, const char *caller)
    {
        static const struct {
            const char *name, *function;
        } known[] = {{"sum", "plus"}, {"prod", "times"}, {"max", "max"},     {"min", "min"},   {"land", "and"},
                     {"lor", "or"},   {"lxor", "xor"},   {"band", "bitand"}, {"bor", "bitor"}, {"bxor", "bitxor"}};
        const octave_value given = index < args.length() && !args(index).isempty() ? args(index) : octave_value("sum");
        if (given.is_function_handle()) {
            function = given;
            name = "a function";
            return;
        }
        if (given.is_string())
            for (const auto &one : known)
                if (given.string_value() == one.name) {
                    name = one.name;
                    function = octave_value(one.function);
                    return;
                }
        fail("op",
             "%s: the operation must be \"sum\", \"prod\", \"max\", \"min\", \"land\", \"lor\", \"lxor\", "
             "\"band\", \"bor\", \"bxor\" or a handle of a function of two values",
             caller);
    }

    // Chooses MPI's operation where it does what Octave would: integers of Octave saturate, those of MPI do not.
    void choose(const Dense &view)
    {
        const bool is_float = view.cls == Class::double_ || view.cls == Class::single_;
        const bool is_complex = view.flags & complex_flag;
        const bool is_integer = !is_float && view.cls != Class::logical_ && view.cls != Class::char_;
        if (name == "sum" && is_float)
            op = MPI_SUM;
        else if (name == "prod" && is_float)
            op = MPI_PROD;
        else if (name == "max" && is_float && !is_complex)
            op = max_of(view.cls == Class::double_);
        else if (name == "min" && is_float && !is_complex)
            op = min_of(view.cls == Class::double_);
        else if (name == "max" && is_integer)
            op = MPI_MAX;
        else if (name == "min" && is_integer)
            op = MPI_MIN;
        else if (name == "band" && is_integer)
            op = MPI_BAND;
        else if (name == "bor" && is_integer)
            op = MPI_BOR;
        else if (name == "bxor" && is_integer)
            op = MPI_BXOR;
        else if (view.cls == Class::logical_ && name[0] == 'l')
            op = name == "land" ? MPI_LAND : name == "lor" ? MPI_LOR : MPI_LXOR;
    }

    octave_value combine(const octave_value &left, const octave_value &right) const
    {
        octave_value_list both;
        both.append(left);
        both.append(right);
        const octave_value result = result_of(function, both);
        if (result.is_undefined())
            fail("op", "the function of a reduction must return a value");
        return result;
    }
};

enum class Form { all, root, scan };

// Whether all ranks give the same number; all learn it.
bool agree(std::uint64_t number, MPI_Comm comm)
{
    const std::int64_t half = static_cast<std::int64_t>(number >> 2);
    const std::int64_t mine[] = {half, -half};
    std::int64_t most[2];
    MPI_Request request;
    check(MPI_Iallreduce(mine, most, 2, MPI_INT64_T, MPI_MAX, comm, &request));
    complete(request);
    return most[0] == -most[1];
}

octave_value reduced(const octave_value &value, Reduction reduction, Form form, int root, MPI_Comm comm)
{
    Dense view;
    // Arrays that MPI combines have the same class and size everywhere; what is different is left to Octave's function,
    // which may know what to do.
    std::uint64_t shape = 1;
    if (dense(value, view))
        reduction.choose(view);
    if (reduction.op != MPI_OP_NULL) {
        const std::string text = std::string(1, char(view.cls)) + char(view.flags) + reduction.name + view.dims.str();
        for (unsigned char byte : text)
            shape = (shape ^ byte) * 1099511628211u;
    }
    if (agree(shape, comm) && reduction.op != MPI_OP_NULL) {
        Fresh result(view.cls, view.flags, view.dims);
        void *const data = result.data();
        const MPI_Datatype type = datatype(view.cls, view.flags);
        const MPI_Count count = view.elements;
        MPI_Request request;
        if (form == Form::all)
            check(MPI_Iallreduce_c(view.data(), data, count, type, reduction.op, comm, &request));
        else if (form == Form::scan)
            check(MPI_Iscan_c(view.data(), data, count, type, reduction.op, comm, &request));
        else
            check(MPI_Ireduce_c(view.data(), data, count, type, reduction.op, root, comm, &request));
        complete(request);
        if (form == Form::root && rank_of(comm) != root)
            return octave_value(Matrix());
        return result.value();
    }
    const octave_value all = gathered(value, form == Form::root ? root : -1, comm);
    if (form == Form::root && rank_of(comm) != root)
        return octave_value(Matrix());
    const Cell values = all.cell_value();
    const int last = form == Form::scan ? rank_of(comm) : static_cast<int>(values.numel()) - 1;
    octave_value result = values(0);
    for (int i = 1; i <= last; i++)
        result = reduction.combine(result, values(i));
    return result;
}
} // namespace

DEFUN_DLD(limosa_barrier, args, , R"(-*- texinfo -*-
@deftypefn {} {} limosa_barrier (@var{comm})
Wait until all ranks have called this function.

@example
limosa_barrier ();
@end example
@end deftypefn)")
{
    count_arguments(args, 0, 1, "limosa_barrier (comm)");
    MPI_Request request;
    check(MPI_Ibarrier(comm_argument(args, 0), &request));
    complete(request);
    return octave_value_list();
}

DEFUN_DLD(limosa_bcast, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{y} =} limosa_bcast (@var{x}, @var{root}, @var{comm})
Return the value @var{x} of rank @var{root} (default 0) on all ranks. What the others give does not matter.

@example
x = [];
if (limosa_rank () == 0) x = struct ("dt", 0.1); end
x = limosa_bcast (x);
@end example
@seealso{limosa_scatter}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "y = limosa_bcast (x, root, comm)");
    const MPI_Comm comm = comm_argument(args, 2);
    return broadcast(args.length() > 0 ? args(0) : octave_value(Matrix()), root_argument(args, 1, comm, "limosa_bcast"),
                     comm);
}

DEFUN_DLD(limosa_gather, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{values} =} limosa_gather (@var{x}, @var{root}, @var{comm})
Return the values @var{x} of all ranks as a cell on rank @var{root} (default 0), and [] on the others.

@example
squares = limosa_gather (limosa_rank () ^ 2);
@end example
@seealso{limosa_allgather, limosa_scatter}
@end deftypefn)")
{
    count_arguments(args, 1, 3, "values = limosa_gather (x, root, comm)");
    const MPI_Comm comm = comm_argument(args, 2);
    return gathered(args(0), root_argument(args, 1, comm, "limosa_gather"), comm);
}

DEFUN_DLD(limosa_allgather, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{values} =} limosa_allgather (@var{x}, @var{comm})
Return the values @var{x} of all ranks as a cell on every rank.

@example
squares = limosa_allgather (limosa_rank () ^ 2);
@end example
@seealso{limosa_gather}
@end deftypefn)")
{
    count_arguments(args, 1, 2, "values = limosa_allgather (x, comm)");
    return gathered(args(0), -1, comm_argument(args, 1));
}

DEFUN_DLD(limosa_scatter, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{x} =} limosa_scatter (@var{values}, @var{root}, @var{comm})
Return to each rank its element of @var{values}, a cell or vector on rank @var{root} (default 0) with one element for
each rank. What the others give does not matter.

@example
values = @{@};
if (limosa_rank () == 0) values = num2cell (1:limosa_size ()); end
x = limosa_scatter (values);   # limosa_rank () + 1
@end example
@seealso{limosa_gather, limosa_bcast}
@end deftypefn)")
{
    count_arguments(args, 0, 3, "x = limosa_scatter (values, root, comm)");
    const MPI_Comm comm = comm_argument(args, 2);
    const int root = root_argument(args, 1, comm, "limosa_scatter"), size = size_of(comm);
    const bool is_root = rank_of(comm) == root;
    Outbox outbox(is_root && args.length() > 0 ? args(0) : octave_value(Matrix()), is_root ? size : 0,
                  "limosa_scatter");
    Inbox inbox(1);
    MPI_Request request;
    check(MPI_Iscatter(outbox.blocks.data(), block_bytes, MPI_BYTE, inbox.blocks.data(), block_bytes, MPI_BYTE, root,
                       comm, &request));
    complete(request);
    if (is_root && outbox[root].dense_value().is_defined()) {
        inbox.keep(0, outbox[root].dense_value());
        outbox.bodies.lengths[root] = 0;
    }
    const Bodies &bodies = inbox.open();
    check(MPI_Iscatterv_c(outbox.bodies.base, outbox.bodies.lengths.data(), outbox.bodies.places.data(), MPI_BYTE,
                          inbox.body(0), bodies.lengths[0], MPI_BYTE, root, comm, &request));
    complete(request);
    outbox.raise_problem();
    return inbox.value(0);
}

DEFUN_DLD(limosa_alltoall, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{y} =} limosa_alltoall (@var{x}, @var{comm})
Send element k of the cell @var{x} to rank k-1, and return a cell whose element k comes from rank k-1.

@example
y = limosa_alltoall (num2cell (10 * limosa_rank () + (0:limosa_size () - 1)));
@end example
@seealso{limosa_allgather}
@end deftypefn)")
{
    count_arguments(args, 1, 2, "y = limosa_alltoall (x, comm)");
    const MPI_Comm comm = comm_argument(args, 1);
    const int size = size_of(comm);
    const int rank = rank_of(comm);
    Outbox outbox(args(0), size, "limosa_alltoall");
    Inbox inbox(size);
    MPI_Request request;
    check(MPI_Ialltoall(outbox.blocks.data(), block_bytes, MPI_BYTE, inbox.blocks.data(), block_bytes, MPI_BYTE, comm,
                        &request));
    complete(request);
    if (outbox[rank].dense_value().is_defined()) {
        inbox.keep(rank, outbox[rank].dense_value());
        outbox.bodies.lengths[rank] = 0;
    }
    const Bodies &bodies = inbox.open();
    check(MPI_Ialltoallv_c(outbox.bodies.base, outbox.bodies.lengths.data(), outbox.bodies.places.data(), MPI_BYTE,
                           bodies.base, bodies.lengths.data(), bodies.places.data(), MPI_BYTE, comm, &request));
    complete(request);
    outbox.raise_problem();
    return inbox.cell();
}

DEFUN_DLD(limosa_reduce, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{y} =} limosa_reduce (@var{x}, @var{op}, @var{root}, @var{comm})
Combine the values @var{x} of all ranks, element by element, and return the result on rank @var{root} (default 0), and
[] on the others.

@var{op} is @qcode{"sum"} (the default), @qcode{"prod"}, @qcode{"max"}, @qcode{"min"}, @qcode{"land"}, @qcode{"lor"},
@qcode{"lxor"}, @qcode{"band"}, @qcode{"bor"}, @qcode{"bxor"}, or a handle of a function of two values. The function is
called with the value of lower ranks first; values of any class can be combined with it.

@example
total = limosa_reduce (limosa_rank () + 1);
names = limosa_reduce (@{sprintf("rank %d", limosa_rank ())@}, @@(a, b) [a, b]);
@end example
@seealso{limosa_allreduce, limosa_scan}
@end deftypefn)")
{
    count_arguments(args, 1, 4, "y = limosa_reduce (x, op, root, comm)");
    const MPI_Comm comm = comm_argument(args, 3);
    return reduced(args(0), Reduction(args, 1, "limosa_reduce"), Form::root,
                   root_argument(args, 2, comm, "limosa_reduce"), comm);
}

DEFUN_DLD(limosa_allreduce, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{y} =} limosa_allreduce (@var{x}, @var{op}, @var{comm})
Combine the values of all ranks as @code{limosa_reduce} does, and return the result on every rank.

@example
total = limosa_allreduce (ones (2, 2));        # limosa_size () everywhere
largest = limosa_allreduce (limosa_rank (), "max");
@end example
@seealso{limosa_reduce, limosa_scan}
@end deftypefn)")
{
    count_arguments(args, 1, 3, "y = limosa_allreduce (x, op, comm)");
    return reduced(args(0), Reduction(args, 1, "limosa_allreduce"), Form::all, 0, comm_argument(args, 2));
}

DEFUN_DLD(limosa_scan, args, , R"(-*- texinfo -*-
@deftypefn {} {@var{y} =} limosa_scan (@var{x}, @var{op}, @var{comm})
Combine the values of rank 0 up to this rank as @code{limosa_reduce} does.

@example
behind = limosa_scan (1);   # limosa_rank () + 1
@end example
@seealso{limosa_reduce}
@end deftypefn)")
{
    count_arguments(args, 1, 3, "y = limosa_scan (x, op, comm)");
    return reduced(args(0), Reduction(args, 1, "limosa_scan"), Form::scan, 0, comm_argument(args, 2));
}

DEFUN_DLD(__limosa_counter__, args, ,
          "A number that ranks count up together: \"start\" and \"end\" by all, \"next\" gives 1, 2, 3 ... by any.")
{
    static std::map<MPI_Comm, MPI_Win> counters;
    count_arguments(args, 2, 2, "__limosa_counter__ (what, comm)");
    const std::string what = args(0).string_value();
    const MPI_Comm comm = comm_argument(args, 1);
    if (what == "start") {
        if (counters.count(comm))
            fail("arg", "limosa_map cannot be used inside a function that limosa_map calls, on the same communicator");
        std::int64_t *memory;
        MPI_Win window;
        check(MPI_Win_allocate(rank_of(comm) == 0 ? sizeof *memory : 0, sizeof *memory, MPI_INFO_NULL, comm, &memory,
                               &window));
        if (rank_of(comm) == 0)
            *memory = 0;
        check(MPI_Win_lock_all(0, window));
        check(MPI_Win_sync(window));
        check(MPI_Barrier(comm));
        counters[comm] = window;
        return octave_value_list();
    }
    const auto found = counters.find(comm);
    if (what == "end") {
        if (found != counters.end()) {
            MPI_Win window = found->second;
            counters.erase(found);
            check(MPI_Win_unlock_all(window));
            check(MPI_Win_free(&window));
        }
        return octave_value_list();
    }
    const std::int64_t one = 1;
    std::int64_t before = 0;
    check(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, found->second));
    check(MPI_Win_flush(0, found->second));
    return octave_value(double(before + 1));
}
