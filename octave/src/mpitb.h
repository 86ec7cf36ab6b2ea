// What the functions of the module mpitb are made of: arguments of a call, buffers that are variables of the caller,
// requests and what they hold, results. The functions themselves are generated from the table of MPI
// (`cargo run -p limosa-api -- octave-functions`) or, where no rule expresses them, in mpitb_special.cc.
//
// Contract
// - Every call is [info, ...] = MPI_X (...). With no output wanted, nothing is returned, so that nothing is printed.
// - A buffer that MPI writes is a named variable of the caller. It keeps class and size. A value that has other owners
//   is copied first, so no alias changes.
// - A value that an unfinished operation reads or writes is held until the operation ends. If the variable has been
//   assigned meanwhile, the received value is put into it at the end; if it has been cleared, or its function has
//   returned, the value is dropped.
// - Handles are uint64 scalars. Functions that free an object, or complete a request, set the caller's variable.
// - A wrong argument is an Octave error with an identifier: limosa:usage, limosa:arg, limosa:class, limosa:size,
//   limosa:name. What MPI reports follows MPI's error handler.

#if !defined(LIMOSA_MPITB_H)
#define LIMOSA_MPITB_H 1

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include <octave/oct.h>
#include <octave/interpreter.h>
#include <octave/pt-eval.h>

namespace limosa
{
namespace mpitb
{
using Value = octave_value;
using Values = octave_value_list;

// A value as MPI sees it. Complex numbers are pairs, so counts are `unit` times the number of elements.
struct Buffer {
    void *data = nullptr;
    MPI_Count count = 0; // in elements of `type`
    MPI_Datatype type = MPI_BYTE;
    int unit = 1;          // elements of `type` in an element of the Octave value
    std::size_t size = 1;  // bytes of an element of `type`
    bool in_place = false; // the argument was MPI_IN_PLACE
    bool written = false;  // MPI writes it
    const char *param = "";
    octave_value value;                       // keeps the storage alive
    std::string name;                         // of the caller's variable, if it has one
    std::weak_ptr<octave::stack_frame> frame; // where that variable lives; set while the value is held

    MPI_Count bytes() const
    {
        return count * static_cast<MPI_Count>(size);
    }
    // The value as it lies in memory; no data if it is none that MPI can read.
    static Buffer of(const octave_value &value);

    bool same_class(const Buffer &other) const
    {
        return type == other.type && unit == other.unit;
    }
};

// Arrays of numbers that MPI may read until an operation ends; none where the argument is not significant.
template <typename T> using Numbers = std::shared_ptr<std::vector<T>>;

template <typename T> T *pointer(const Numbers<T> &numbers)
{
    return numbers ? numbers->data() : nullptr;
}

// What an unfinished operation holds.
struct Held {
    std::vector<Buffer> buffers;
    std::vector<std::shared_ptr<void>> arrays;
};

// The caller's request variables, in the order of the arguments.
struct Requests {
    std::vector<MPI_Request> now;
    std::vector<MPI_Request> before;
    int size() const
    {
        return static_cast<int>(now.size());
    }
};

class Call
{
  public:
    // Checks the number of arguments; `most` is -1 if there is no limit.
    Call(octave::interpreter &interp, const octave_value_list &args, int nargout, const char *name, const char *usage,
         int least, int most);

    int nargin() const
    {
        return m_args.length();
    }
    octave_value arg(int i) const
    {
        return m_args(i);
    }
    octave::interpreter &interp()
    {
        return m_interp;
    }
    const char *name() const
    {
        return m_name;
    }

    // True if the output after info with that number, from 1, is wanted.
    bool wants(int output) const
    {
        return m_nargout > output;
    }

    [[noreturn]] void fail(const char *id, const std::string &what) const;

    // --- arguments by value; i counts from 0

    template <typename T> T number(int i, const char *param) const
    {
        return static_cast<T>(integer(m_args(i), i, param));
    }

    template <typename T> Numbers<T> numbers(int i, const char *param) const
    {
        const std::vector<long long> all = integers(i, param);
        return std::make_shared<std::vector<T>>(all.begin(), all.end());
    }

    template <typename H> H handle(int i, const char *param) const
    {
        return reinterpret_cast<H>(handle_value(m_args(i), i, param));
    }

    template <typename H> Numbers<H> handles(int i, const char *param) const
    {
        auto all = std::make_shared<std::vector<H>>();
        for (intptr_t bits : handle_values(m_args(i), i, param))
            all->push_back(reinterpret_cast<H>(bits));
        return all;
    }

    std::string text(int i, const char *param) const;
    MPI_Status status(int i, const char *param) const;

    // True if the argument is that constant, one of those that are addresses in C and texts here.
    bool is_constant(int i, const char *constant) const;

    // --- the caller's variables

    // The text of the argument in the caller's program: the name, if it is a variable.
    std::string name_of(int i) const;
    // The name of the variable that was passed; an error if it was not a variable.
    std::string variable(int i, const char *param) const;
    void assign(int i, const char *param, const octave_value &value);

    template <typename H> void set_handle(int i, const char *param, H handle)
    {
        assign(i, param, to_value(handle));
    }

    // --- buffers

    Buffer read(int i, const char *param, bool in_place = false) const;
    Buffer write(int i, const char *param, bool in_place = false);

    // --- counts

    // The counts that the caller gave, times the unit of the buffer; there must be n.
    template <typename T> Numbers<T> counts(int i, const char *param, MPI_Count n, long long factor) const
    {
        Numbers<T> all = numbers<T>(i, param);
        check_length(i, param, static_cast<MPI_Count>(all->size()), n);
        for (T &each : *all)
            each *= static_cast<T>(factor);
        return all;
    }

    void check_length(int i, const char *param, MPI_Count has, MPI_Count needs) const;
    // The buffer holds that many elements of its type.
    void check_fits(const Buffer &buffer, MPI_Count count) const;
    void check_same_class(const Buffer &a, const Buffer &b) const;
    void check_one(const Buffer &buffer) const;
    MPI_Count share(const Buffer &buffer, MPI_Count blocks) const;

    template <typename D>
    void check_blocks(const Buffer &buffer, const Numbers<MPI_Count> &counts, const Numbers<D> &displacements,
                      std::size_t size) const
    {
        for (std::size_t i = 0; i < counts->size(); i++) {
            const MPI_Count begin = (*displacements)[i] / static_cast<MPI_Count>(size);
            if (begin < 0)
                fail("limosa:size", std::string("a displacement in ") + buffer.param + " is negative");
            if ((*counts)[i] > 0)
                check_fits(buffer, begin + (*counts)[i]);
        }
    }

    // --- what the communicator says

    int group_size(MPI_Comm comm) const; // of the remote group, if there is one
    int local_group_size(MPI_Comm comm) const;
    int local_rank(MPI_Comm comm) const;
    int indegree(MPI_Comm comm) const;
    int outdegree(MPI_Comm comm) const;
    bool is_root(int root, MPI_Comm comm) const;
    int cart_dims(MPI_Comm comm) const;
    int graph_nodes(MPI_Comm comm) const;
    int graph_edges(MPI_Comm comm) const;
    int graph_neighbors(MPI_Comm comm, int rank) const;

    // Numbers of control variables (0), performance variables (1) and categories (2) in a category of MPI_T.
    int category_size(int category, int which) const;
    int category_events(int category) const;

    // Rows of a matrix of Octave, in order.
    template <typename T> static void transpose(std::vector<T> &all, int rows, int columns)
    {
        const std::vector<T> from = all;
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++)
                all[row * columns + column] = from[column * rows + row];
    }

    // A reduction with one of the caller's own operations sees complex numbers as such, and cannot go on in the
    // background, since Octave has one thread.
    void check_operation(MPI_Op op, bool blocking, std::initializer_list<Buffer *> buffers) const;

    // --- requests, and what is held

    Requests requests(int first, const char *param) const;
    void set_requests(int first, const char *param, const Requests &requests);
    void starting(const Requests &requests);
    void settle(const Requests &requests);
    // An operation has begun that lasts as long as the request.
    void hold(MPI_Request request, bool persistent, std::vector<Buffer> buffers,
              std::vector<std::shared_ptr<void>> arrays);
    // An operation has begun that lasts until `release` for the same object (and rank, or all ranks with -1).
    void hold_for(const void *object, int rank, std::vector<Buffer> buffers);
    std::vector<Buffer> release(const void *object, int rank = -1);
    // Puts what was received into the variables it belongs to.
    void give(std::vector<Buffer> buffers);
    // The operations on the window that have begun are complete at that rank, or at all with -1.
    void release_epoch(MPI_Win win, int rank);
    // Before an operation that goes on: a persistent one sends from storage of its own, into which MPI_Start copies
    // what the variable then holds.
    void keep(Buffer &buffer, bool persistent) const;

    // --- results

    octave_value_list results(int info);

    template <typename... Values> octave_value_list results(int info, const Values &...values)
    {
        raise_postponed();
        if (m_nargout == 0)
            return octave_value_list();
        octave_value_list list(ovl(info, to_value(values)...));
        return list.slice(0, std::min<octave_idx_type>(list.length(), m_nargout));
    }

    // The result of a function that returns no error code.
    template <typename T> Values value(const T &result)
    {
        return Values(to_value(result));
    }

    // An error of Octave code that MPI has called back: kept until MPI returns.
    static void postpone(std::exception_ptr error);
    static void raise_postponed();

    static octave_value to_value(const octave_value &value)
    {
        return value;
    }
    static octave_value to_value(const std::string &text)
    {
        return octave_value(text);
    }
    static octave_value to_value(double number)
    {
        return octave_value(number);
    }
    static octave_value to_value(int number)
    {
        return octave_value(number);
    }
    static octave_value to_value(long number)
    {
        return octave_value(static_cast<double>(number));
    }
    static octave_value to_value(long long number)
    {
        return octave_value(static_cast<double>(number));
    }
    template <typename T> static octave_value to_value(T *handle)
    {
        return octave_value(octave_uint64(static_cast<uint64_t>(reinterpret_cast<intptr_t>(handle))));
    }
    octave_value to_value(const MPI_Status &status) const;
    octave_value statuses(const std::vector<MPI_Status> &all, int n) const;

    template <typename T> static octave_value row(const std::vector<T> &all, MPI_Count n)
    {
        RowVector row(std::max<octave_idx_type>(0, n));
        for (octave_idx_type i = 0; i < row.numel(); i++)
            row(i) = static_cast<double>(all[i]);
        return octave_value(row);
    }

    template <typename T> static octave_value row(const std::vector<T *> &all, MPI_Count n)
    {
        uint64NDArray row(dim_vector(1, std::max<octave_idx_type>(0, n)));
        for (octave_idx_type i = 0; i < row.numel(); i++)
            row(i) = static_cast<uint64_t>(reinterpret_cast<intptr_t>(all[i]));
        return octave_value(row);
    }

  private:
    octave::interpreter &m_interp;
    const octave_value_list &m_args;
    int m_nargout;
    const char *m_name;
    const char *m_usage;

    std::string place(int i, const char *param) const;
    long long integer(const octave_value &value, int i, const char *param) const;
    std::vector<long long> integers(int i, const char *param) const;
    intptr_t handle_value(const octave_value &value, int i, const char *param) const;
    std::vector<intptr_t> handle_values(const octave_value &value, int i, const char *param) const;
    void put_back(Held &held);
};

// --- for mpitb_special.cc

// The operation is one that MPI_Op_create made of an Octave function.
bool is_own_operation(MPI_Op op);
void release_everything();
// The request is freed before it is complete: what it holds stays until MPI_Finalize.
void orphan(MPI_Request request);
// Number of operations that hold values: for the test that nothing is left behind.
int number_held();
} // namespace mpitb
} // namespace limosa

// Begins the definition of a function of the module. The names of functions are not macros of mpi.h.
#define MPITB(NAME, LEAST, MOST, USAGE)                                                                                \
    static octave_value_list call_##NAME(limosa::mpitb::Call &call);                                                   \
    DEFMETHOD_DLD(NAME, interp, args, nargout, USAGE)                                                                  \
    {                                                                                                                  \
        limosa::mpitb::Call call(interp, args, nargout, #NAME, USAGE, LEAST, MOST);                                    \
        return call_##NAME(call);                                                                                      \
    }                                                                                                                  \
    static octave_value_list call_##NAME(limosa::mpitb::Call &call)

#endif
