// See mpitb.h. The gateway of the MEX file, and the functions that are not generated.

#include "mpitb.h"
#include "mpitb_constants.h"

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

namespace limosa
{
namespace mpitb
{
namespace
{
struct Entry {
    Values (*body)(Call &);
    const char *usage;
    int least, most;
};

std::map<std::string, Entry> &functions()
{
    static std::map<std::string, Entry> table;
    return table;
}

struct Scalar {
    bool is_handle;
    double number;
    std::uint64_t handle;
    const char *text;
};

std::map<std::string, Scalar> &constants()
{
    static std::map<std::string, Scalar> table;
    return table;
}

// What an unfinished operation holds: arrays that live beyond the call.
struct Held {
    bool persistent = false;
    std::vector<Buffer> buffers;
    std::vector<std::shared_ptr<void>> arrays;
};

std::unordered_map<MPI_Request, Held> &pending()
{
    static std::unordered_map<MPI_Request, Held> table;
    return table;
}

std::multimap<const void *, std::pair<int, Buffer>> &held_for()
{
    static std::multimap<const void *, std::pair<int, Buffer>> table;
    return table;
}

std::unique_ptr<Error> &postponed()
{
    static std::unique_ptr<Error> error;
    return error;
}

void destroy(const std::vector<Buffer> &buffers)
{
    for (const Buffer &buffer : buffers)
        if (buffer.array)
            mxDestroyArray(buffer.array);
}
} // namespace

void postpone(Error error)
{
    if (!postponed())
        postponed() = std::make_unique<Error>(std::move(error));
}

Function::Function(const char *name, Values (*body)(Call &), const char *usage, int least, int most)
{
    functions()[name] = {body, usage, least, most};
}

Constant::Constant(const char *name, double number)
{
    constants()[name] = {false, number, 0, nullptr};
}

Constant::Constant(const char *name, std::uint64_t handle)
{
    constants()[name] = {true, 0, handle, nullptr};
}

Constant::Constant(const char *name, const char *text)
{
    constants()[name] = {false, 0, 0, text};
}

Call::Call(const char *name, int nargout, std::vector<const mxArray *> args)
    : m_name(name), m_nargout(nargout), m_args(std::move(args))
{
}

void Call::fail(const char *id, const std::string &what) const
{
    throw Error{id, std::string(m_name) + ": " + what};
}

std::string Call::place(int i, const char *param) const
{
    return "argument " + std::to_string(i + 1) + " (" + param + ")";
}

std::vector<long long> Call::integers(int i, const char *param) const
{
    const mxArray *array = m_args[i];
    const std::size_t n = mxGetNumberOfElements(array);
    std::vector<long long> all;
    auto take = [&](auto *elements) {
        for (std::size_t k = 0; k < n; k++) {
            const long long number = static_cast<long long>(elements[k]);
            using Element = std::remove_reference_t<decltype(*elements)>;
            if (static_cast<std::remove_const_t<Element>>(number) != elements[k])
                fail("limosa:arg", place(i, param) + " must be whole numbers");
            all.push_back(number);
        }
    };
    const void *data = mxGetData(array);
    if (mxIsComplex(array) || mxIsSparse(array))
        fail("limosa:arg", place(i, param) + " must be whole numbers");
    switch (mxGetClassID(array)) {
    case mxDOUBLE_CLASS: take(static_cast<const double *>(data)); break;
    case mxSINGLE_CLASS: take(static_cast<const float *>(data)); break;
    case mxINT8_CLASS: take(static_cast<const std::int8_t *>(data)); break;
    case mxINT16_CLASS: take(static_cast<const std::int16_t *>(data)); break;
    case mxINT32_CLASS: take(static_cast<const std::int32_t *>(data)); break;
    case mxINT64_CLASS: take(static_cast<const std::int64_t *>(data)); break;
    case mxUINT8_CLASS: take(static_cast<const std::uint8_t *>(data)); break;
    case mxUINT16_CLASS: take(static_cast<const std::uint16_t *>(data)); break;
    case mxUINT32_CLASS: take(static_cast<const std::uint32_t *>(data)); break;
    case mxUINT64_CLASS: take(static_cast<const std::uint64_t *>(data)); break;
    case mxLOGICAL_CLASS: take(static_cast<const std::uint8_t *>(data)); break;
    default: fail("limosa:arg", place(i, param) + " must be whole numbers");
    }
    return all;
}

std::string Call::text(int i, const char *param) const
{
    if (!mxIsChar(m_args[i]))
        fail("limosa:arg", place(i, param) + " must be a text");
    char *copy = mxArrayToString(m_args[i]);
    const std::string text = copy ? copy : "";
    mxFree(copy);
    return text;
}

bool Call::is_constant(int i, const char *constant) const
{
    return mxIsChar(m_args[i]) && text(i, "") == constant;
}

Buffer Call::describe(mxArray *array, int i, const char *param) const
{
    Buffer buffer;
    buffer.param = param;
    buffer.array = array;
    auto set = [&](MPI_Datatype type, std::size_t size) {
        buffer.type = type;
        buffer.size = size;
    };
    if (mxIsSparse(array))
        fail("limosa:class", place(i, param) + " is sparse; buffers are full numeric, char or logical arrays");
    switch (mxGetClassID(array)) {
    case mxDOUBLE_CLASS: set(MPI_DOUBLE, 8); break;
    case mxSINGLE_CLASS: set(MPI_FLOAT, 4); break;
    case mxINT8_CLASS: set(MPI_INT8_T, 1); break;
    case mxINT16_CLASS: set(MPI_INT16_T, 2); break;
    case mxINT32_CLASS: set(MPI_INT32_T, 4); break;
    case mxINT64_CLASS: set(MPI_INT64_T, 8); break;
    case mxUINT8_CLASS: set(MPI_UINT8_T, 1); break;
    case mxUINT16_CLASS: set(MPI_UINT16_T, 2); break;
    case mxUINT32_CLASS: set(MPI_UINT32_T, 4); break;
    case mxUINT64_CLASS: set(MPI_UINT64_T, 8); break;
    case mxLOGICAL_CLASS: set(MPI_C_BOOL, 1); break;
    case mxCHAR_CLASS: set(sizeof(mxChar) == 1 ? MPI_CHAR : MPI_UINT16_T, sizeof(mxChar)); break;
    default:
        fail("limosa:class",
             place(i, param) + " is a " + mxGetClassName(array) + "; buffers are full numeric, char or logical arrays");
    }
    if (mxIsComplex(array)) {
#if defined(MX_HAS_INTERLEAVED_COMPLEX) && MX_HAS_INTERLEAVED_COMPLEX
        buffer.unit = 2;
#else
        fail("limosa:class", place(i, param) + " is complex, for which limosa_mex must be compiled with -R2018a");
#endif
    }
    buffer.data = mxGetData(array);
    buffer.count = static_cast<MPI_Count>(mxGetNumberOfElements(array)) * buffer.unit;
    return buffer;
}

Buffer Call::read(int i, const char *param, bool in_place) const
{
    if (in_place && is_constant(i, "MPI_IN_PLACE")) {
        Buffer buffer;
        buffer.param = param;
        buffer.in_place = true;
        buffer.data = MPI_IN_PLACE;
        return buffer;
    }
    Buffer buffer = describe(const_cast<mxArray *>(m_args[i]), i, param);
    buffer.array = nullptr; // the caller's
    return buffer;
}

Buffer Call::write(int i, const char *param, bool in_place)
{
    if (in_place && is_constant(i, "MPI_IN_PLACE"))
        return read(i, param, true);
    Buffer buffer = describe(mxDuplicateArray(m_args[i]), i, param);
    buffer.written = true;
    m_changed.push_back(buffer.array);
    return buffer;
}

void Call::keep(Buffer &buffer, bool) const
{
    if (buffer.in_place || !buffer.data)
        return;
    mxArray *copy = mxCreateNumericMatrix(static_cast<mwSize>(buffer.bytes()), 1, mxUINT8_CLASS, mxREAL);
    std::memcpy(mxGetData(copy), buffer.data, static_cast<std::size_t>(buffer.bytes()));
    buffer.array = copy;
    buffer.data = mxGetData(copy);
}

Requests Call::requests(int first, const char *param) const
{
    Requests all;
    for (int i = first; i < nargin(); i++)
        for (long long bits : integers(i, param))
            all.now.push_back(reinterpret_cast<MPI_Request>(static_cast<std::intptr_t>(bits)));
    all.before = all.now;
    return all;
}

void Call::set_requests(int first, const char *param, const Requests &requests)
{
    std::size_t k = 0;
    for (int i = first; i < nargin(); i++) {
        std::vector<std::intptr_t> bits;
        for (std::size_t j = mxGetNumberOfElements(m_args[i]); j > 0; j--)
            bits.push_back(reinterpret_cast<std::intptr_t>(requests.now[k++]));
        assign(i, param, handles_value(bits, mxGetM(m_args[i]), mxGetN(m_args[i])));
    }
}

void Call::settle(const Requests &requests)
{
    for (int i = 0; i < requests.size(); i++) {
        auto found = pending().find(requests.before[i]);
        if (found == pending().end())
            continue;
        const bool ended = requests.now[i] == MPI_REQUEST_NULL;
        int complete = ended;
        if (!ended && found->second.persistent)
            MPI_Request_get_status(requests.now[i], &complete, MPI_STATUS_IGNORE);
        if (!complete)
            continue;
        for (const Buffer &buffer : found->second.buffers)
            if (buffer.written)
                m_changed.push_back(mxDuplicateArray(buffer.array));
        if (ended) {
            destroy(found->second.buffers);
            pending().erase(found);
        }
    }
}

void Call::hold(MPI_Request request, bool persistent, std::vector<Buffer> buffers,
                std::vector<std::shared_ptr<void>> arrays)
{
    for (Buffer &buffer : buffers)
        if (buffer.array) {
            mexMakeArrayPersistent(buffer.array);
            m_changed.erase(std::remove(m_changed.begin(), m_changed.end(), buffer.array), m_changed.end());
        }
    pending()[request] = Held{persistent, std::move(buffers), std::move(arrays)};
}

void Call::hold_for(const void *object, int rank, std::vector<Buffer> buffers)
{
    for (Buffer &buffer : buffers) {
        if (!buffer.array)
            continue;
        mexMakeArrayPersistent(buffer.array);
        m_changed.erase(std::remove(m_changed.begin(), m_changed.end(), buffer.array), m_changed.end());
        held_for().insert({object, {rank, buffer}});
    }
}

std::vector<Buffer> Call::release(const void *object, int rank)
{
    std::vector<Buffer> done;
    auto range = held_for().equal_range(object);
    for (auto each = range.first; each != range.second;)
        if (rank == -1 || each->second.first == rank) {
            done.push_back(each->second.second);
            each = held_for().erase(each);
        } else
            each++;
    return done;
}

// The arrays that were received are outputs of the call that ends the operation.
void Call::give(const std::vector<Buffer> &buffers)
{
    for (const Buffer &buffer : buffers)
        if (buffer.written)
            m_changed.push_back(mxDuplicateArray(buffer.array));
    destroy(buffers);
}

void Call::release_epoch(MPI_Win win, int rank)
{
    std::vector<Buffer> done;
    auto range = held_for().equal_range(win);
    for (auto each = range.first; each != range.second;)
        if (each->second.first >= 0 && (rank == -1 || each->second.first == rank)) {
            done.push_back(each->second.second);
            each = held_for().erase(each);
        } else {
            // The window's own memory, as it is now.
            if (each->second.first < 0)
                m_changed.push_back(mxDuplicateArray(each->second.second.array));
            each++;
        }
    give(done);
}

mxArray *Call::handles_value(const std::vector<std::intptr_t> &bits, mwSize rows, mwSize columns)
{
    mxArray *array = mxCreateNumericMatrix(rows, columns, mxUINT64_CLASS, mxREAL);
    std::copy_n(bits.begin(), mxGetNumberOfElements(array), static_cast<std::uint64_t *>(mxGetData(array)));
    return array;
}

mxArray *Call::to_value(const MPI_Status &status)
{
    return statuses({status}, 1);
}

mxArray *Call::statuses(const std::vector<MPI_Status> &all, int n)
{
    const char *names[] = {"src", "tag", "err", "len", "cnt", "can"};
    mxArray *array = mxCreateStructMatrix(1, static_cast<mwSize>(std::max(0, n)), 6, names);
    for (int i = 0; i < n; i++) {
        MPI_Count bytes = 0;
        int cancelled = 0;
        MPI_Get_elements_c(&all[i], MPI_BYTE, &bytes);
        MPI_Test_cancelled(&all[i], &cancelled);
        const double values[] = {static_cast<double>(all[i].MPI_SOURCE),
                                 static_cast<double>(all[i].MPI_TAG),
                                 static_cast<double>(all[i].MPI_ERROR),
                                 static_cast<double>(bytes),
                                 static_cast<double>(bytes),
                                 static_cast<double>(cancelled)};
        for (int k = 0; k < 6; k++)
            mxSetField(array, i, names[k], mxCreateDoubleScalar(values[k]));
    }
    return array;
}

MPI_Status Call::status(int i, const char *param) const
{
    if (!mxIsStruct(m_args[i]) || mxGetNumberOfElements(m_args[i]) != 1)
        fail("limosa:arg", place(i, param) + " must be a status, a structure with the fields src, tag, err, cnt");
    auto field = [&](const char *name) {
        const mxArray *value = mxGetField(m_args[i], 0, name);
        return value ? static_cast<MPI_Count>(mxGetScalar(value)) : 0;
    };
    MPI_Status status{};
    status.MPI_SOURCE = static_cast<int>(field("src"));
    status.MPI_TAG = static_cast<int>(field("tag"));
    status.MPI_ERROR = static_cast<int>(field("err"));
    MPI_Status_set_elements_c(&status, MPI_BYTE, field("cnt"));
    MPI_Status_set_cancelled(&status, static_cast<int>(field("can")));
    return status;
}
} // namespace mpitb
} // namespace limosa

using namespace limosa::mpitb;

MPITB(MPI_Init, 0, 0, "info = MPI_Init ()")
{
    return call.results(MPI_Init(nullptr, nullptr));
}

MPITB(MPI_Finalize, 0, 0, "info = MPI_Finalize ()")
{
    const int code = MPI_Finalize();
    for (const auto &entry : pending())
        destroy(entry.second.buffers);
    pending().clear();
    for (const auto &entry : held_for())
        destroy({entry.second.second});
    held_for().clear();
    return call.results(code);
}

MPITB(MPI_Get_count, 1, 1, "[info, bytes] = MPI_Get_count (status)")
{
    const MPI_Status status = call.status(0, "status");
    MPI_Count bytes = 0;
    const int code = MPI_Get_count_c(&status, MPI_BYTE, &bytes);
    return call.results(code, static_cast<double>(bytes));
}

namespace
{
Values run(const std::string &name, int nargout, std::vector<const mxArray *> args)
{
    const auto constant = constants().find(name);
    if (constant != constants().end()) {
        const Scalar &value = constant->second;
        if (!args.empty())
            throw Error{"limosa:usage", name + " is a constant: it takes no arguments"};
        if (value.text)
            return {mxCreateString(value.text)};
        if (!value.is_handle)
            return {mxCreateDoubleScalar(value.number)};
        return {Call::handles_value({static_cast<std::intptr_t>(value.handle)}, 1, 1)};
    }
    const auto found = functions().find(name);
    if (found == functions().end())
        throw Error{"limosa:missing", name + ": limosa_mex has no function or constant of that name"};
    const Entry &entry = found->second;
    const int n = static_cast<int>(args.size());
    if (n < entry.least || (entry.most >= 0 && n > entry.most))
        throw Error{"limosa:usage", name + ": " + std::to_string(n) + " arguments; the call is " + entry.usage};
    Call call(found->first.c_str(), nargout, std::move(args));
    const Values results = entry.body(call);
    if (const std::unique_ptr<Error> error = std::move(postponed()))
        throw Error{error->id.empty() ? "limosa:other" : error->id, error->text};
    return results;
}
} // namespace

extern "C" void mexFunction(int nlhs, mxArray *plhs[], int nrhs, const mxArray *prhs[])
{
    static char id[64], text[1024];
    id[0] = '\0';
    try {
        if (nrhs < 1 || !mxIsChar(prhs[0]))
            throw Error{"limosa:usage", "limosa_mex: the first argument is the name of a function or constant of MPI"};
        char *copy = mxArrayToString(prhs[0]);
        const std::string name = copy ? copy : "";
        mxFree(copy);
        mexLock(); // MPI stays with the process
        const Values values = run(name, nlhs, std::vector<const mxArray *>(prhs + 1, prhs + nrhs));
        for (std::size_t i = 0; i < values.size() && static_cast<int>(i) < std::max(1, nlhs); i++)
            plhs[i] = values[i] ? values[i] : mxCreateDoubleMatrix(0, 0, mxREAL);
        return;
    } catch (const Error &error) {
        std::strncpy(id, error.id.c_str(), sizeof id - 1);
        std::strncpy(text, error.text.c_str(), sizeof text - 1);
    }
    mexErrMsgIdAndTxt(id, "%s", text);
}
