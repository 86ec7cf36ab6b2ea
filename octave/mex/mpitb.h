// What the functions of the MEX file limosa_mex are made of. It has the interface of ../src/mpitb.h, for which the
// functions are generated, on the C MEX API alone, so that MATLAB can use it.
//
//   [info, changed ..., outputs ...] = limosa_mex ('MPI_X', arguments ...)
//   value = limosa_mex ('MPI_CONSTANT')
//
// Contract
// - Values are values here: an argument that MPI changes (a received buffer, a request, a freed handle) is an output,
//   in the order of the arguments, before the other outputs.
// - What a non-blocking operation reads or writes is a copy that lives until the operation ends. Wait and test give the
//   received buffers of the requests that they complete after the requests themselves.
// - Complex arrays need the interleaved complex API.
// - Errors have the identifiers of ../mpitb.h.

#if !defined(LIMOSA_MEX_MPITB_H)
#define LIMOSA_MEX_MPITB_H 1

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include <mex.h>

namespace limosa
{
namespace mpitb
{
using Value = mxArray *;
using Values = std::vector<mxArray *>;

// Thrown instead of leaving by mexErrMsgIdAndTxt, which would run no destructors.
struct Error {
    std::string id, text;
};

// Keeps an error of a function that MPI has called; it is thrown when MPI has returned.
void postpone(Error error);

struct Buffer {
    void *data = nullptr;
    MPI_Count count = 0;
    MPI_Datatype type = MPI_BYTE;
    int unit = 1;
    std::size_t size = 1;
    bool in_place = false;
    bool written = false;
    const char *param = "";
    mxArray *array = nullptr;

    MPI_Count bytes() const
    {
        return count * static_cast<MPI_Count>(size);
    }
    bool same_class(const Buffer &other) const
    {
        return type == other.type && unit == other.unit;
    }
};

template <typename T> using Numbers = std::shared_ptr<std::vector<T>>;

template <typename T> T *pointer(const Numbers<T> &numbers)
{
    return numbers ? numbers->data() : nullptr;
}

struct Requests {
    std::vector<MPI_Request> now, before;
    int size() const
    {
        return static_cast<int>(now.size());
    }
};

class Call
{
  public:
    Call(const char *name, int nargout, std::vector<const mxArray *> args);

    int nargin() const
    {
        return static_cast<int>(m_args.size());
    }
    bool wants(int output) const
    {
        return m_nargout > output; // what has changed comes before it
    }
    [[noreturn]] void fail(const char *id, const std::string &what) const;

    // An argument, for questions that are asked of Octave's values too.
    struct Argument {
        const mxArray *array;
        bool is_string() const
        {
            return mxIsChar(array);
        }
        bool isempty() const
        {
            return mxIsEmpty(array);
        }
    };
    Argument arg(int i) const
    {
        return {m_args[i]};
    }

    template <typename T> T number(int i, const char *param) const
    {
        const std::vector<long long> all = integers(i, param);
        if (all.size() != 1)
            fail("limosa:arg", place(i, param) + " must be one whole number");
        return static_cast<T>(all[0]);
    }
    template <typename T> Numbers<T> numbers(int i, const char *param) const
    {
        const std::vector<long long> all = integers(i, param);
        return std::make_shared<std::vector<T>>(all.begin(), all.end());
    }
    template <typename H> H handle(int i, const char *param) const
    {
        return reinterpret_cast<H>(number<std::intptr_t>(i, param));
    }
    template <typename H> Numbers<H> handles(int i, const char *param) const
    {
        auto all = std::make_shared<std::vector<H>>();
        for (long long bits : integers(i, param))
            all->push_back(reinterpret_cast<H>(static_cast<std::intptr_t>(bits)));
        return all;
    }
    std::string text(int i, const char *param) const;
    MPI_Status status(int i, const char *param) const;
    bool is_constant(int i, const char *constant) const;

    // Every argument can be changed: it comes back as an output.
    void variable(int, const char *) const
    {
    }
    void assign(int, const char *, mxArray *value)
    {
        m_changed.push_back(value);
    }

    Buffer read(int i, const char *param, bool in_place = false) const;
    Buffer write(int i, const char *param, bool in_place = false);
    void keep(Buffer &buffer, bool persistent) const;

    template <typename T> Numbers<T> counts(int i, const char *param, MPI_Count n, long long factor) const
    {
        Numbers<T> all = numbers<T>(i, param);
        check_length(i, param, static_cast<MPI_Count>(all->size()), n);
        for (T &each : *all)
            each *= static_cast<T>(factor);
        return all;
    }
    void check_length(int i, const char *param, MPI_Count has, MPI_Count needs) const;
    void check_fits(const Buffer &buffer, MPI_Count count) const;
    void check_same_class(const Buffer &a, const Buffer &b) const;
    void check_one(const Buffer &buffer) const;
    MPI_Count share(const Buffer &buffer, MPI_Count blocks) const;
    template <typename D>
    void check_blocks(const Buffer &buffer, const Numbers<MPI_Count> &counts, const Numbers<D> &displacements,
                      std::size_t size) const
    {
        for (std::size_t i = 0; i < counts->size(); i++) {
            if ((*displacements)[i] < 0)
                fail("limosa:size", std::string("a displacement in ") + buffer.param + " is negative");
            if ((*counts)[i] > 0)
                check_fits(buffer, (*displacements)[i] / static_cast<MPI_Count>(size) + (*counts)[i]);
        }
    }

    int group_size(MPI_Comm comm) const;
    int local_group_size(MPI_Comm comm) const;
    int local_rank(MPI_Comm comm) const;
    int indegree(MPI_Comm comm) const;
    int outdegree(MPI_Comm comm) const;
    bool is_root(int root, MPI_Comm comm) const;
    int cart_dims(MPI_Comm comm) const;
    int graph_nodes(MPI_Comm comm) const;
    int graph_edges(MPI_Comm comm) const;
    int graph_neighbors(MPI_Comm comm, int rank) const;
    int category_size(int category, int which) const;
    int category_events(int category) const;
    template <typename T> static void transpose(std::vector<T> &all, int rows, int columns)
    {
        const std::vector<T> from = all;
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++)
                all[row * columns + column] = from[column * rows + row];
    }

    void check_operation(MPI_Op op, bool blocking, std::initializer_list<Buffer *> buffers) const;

    Requests requests(int first, const char *param) const;
    void set_requests(int first, const char *param, const Requests &requests);
    void starting(const Requests &)
    {
    }
    void settle(const Requests &requests);
    void hold(MPI_Request request, bool persistent, std::vector<Buffer> buffers,
              std::vector<std::shared_ptr<void>> arrays);
    void hold_for(const void *object, int rank, std::vector<Buffer> buffers);
    std::vector<Buffer> release(const void *object, int rank = -1);
    void give(const std::vector<Buffer> &buffers);
    void release_epoch(MPI_Win win, int rank);

    template <typename... T> Values results(int info, const T &...values)
    {
        Values all{to_value(info)};
        all.insert(all.end(), m_changed.begin(), m_changed.end());
        const Value rest[] = {nullptr, to_value(values)...};
        all.insert(all.end(), rest + 1, rest + 1 + sizeof...(values));
        return all;
    }
    template <typename T> Values value(const T &result)
    {
        return {to_value(result)};
    }

    static mxArray *handles_value(const std::vector<std::intptr_t> &bits, mwSize rows, mwSize columns);

    // An array of the API, which may be a void pointer; handles of MPI are pointers to structures.
    static mxArray *to_value(mxArray *value)
    {
        return value;
    }
    static mxArray *to_value(const std::string &text)
    {
        return mxCreateString(text.c_str());
    }
    static mxArray *to_value(double number)
    {
        return mxCreateDoubleScalar(number);
    }
    static mxArray *to_value(int number)
    {
        return mxCreateDoubleScalar(number);
    }
    static mxArray *to_value(long number)
    {
        return mxCreateDoubleScalar(static_cast<double>(number));
    }
    static mxArray *to_value(const MPI_Status &status);
    template <typename T> static mxArray *to_value(T *handle)
    {
        return handles_value({reinterpret_cast<std::intptr_t>(handle)}, 1, 1);
    }
    static mxArray *statuses(const std::vector<MPI_Status> &all, int n);
    template <typename T> static mxArray *row(const std::vector<T> &all, MPI_Count n)
    {
        mxArray *row = mxCreateDoubleMatrix(1, static_cast<mwSize>(std::max<MPI_Count>(0, n)), mxREAL);
        std::copy_n(all.begin(), mxGetNumberOfElements(row), static_cast<double *>(mxGetData(row)));
        return row;
    }
    template <typename T> static mxArray *row(const std::vector<T *> &all, MPI_Count n)
    {
        std::vector<std::intptr_t> bits;
        for (T *handle : all)
            bits.push_back(reinterpret_cast<std::intptr_t>(handle));
        return handles_value(bits, 1, static_cast<mwSize>(std::max<MPI_Count>(0, n)));
    }

  private:
    const char *m_name;
    int m_nargout;
    std::vector<const mxArray *> m_args;
    Values m_changed;

    std::string place(int i, const char *param) const;
    std::vector<long long> integers(int i, const char *param) const;
    Buffer describe(mxArray *array, int i, const char *param) const;
};

// Makes a function known by its name.
struct Function {
    Function(const char *name, Values (*body)(Call &), const char *usage, int least, int most);
};
} // namespace mpitb
} // namespace limosa

using limosa::mpitb::Value;

#define MPITB(NAME, LEAST, MOST, USAGE)                                                                                \
    static limosa::mpitb::Values call_##NAME(limosa::mpitb::Call &call);                                               \
    static const limosa::mpitb::Function function_##NAME(#NAME, call_##NAME, USAGE, LEAST, MOST);                      \
    static limosa::mpitb::Values call_##NAME(limosa::mpitb::Call &call)

#endif
