// Arguments, buffers and requests of the functions of MPITB; the contract is in mpitb.h.

#include "mpitb.h"
#include "session.h"

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include <octave/ov-base-mat.h>
#include <octave/ov-base-scalar.h>
#include <octave/stack-frame.h>

namespace limosa
{
namespace mpitb
{
namespace
{
struct Pending : Held {
    bool persistent = false;
};

// What each unfinished request holds, by its handle.
std::unordered_map<MPI_Request, Pending> &pending()
{
    static std::unordered_map<MPI_Request, Pending> table;
    return table;
}

// What is held for a window or a file, with the rank of the target (-1: until the object is freed).
std::multimap<const void *, std::pair<int, Buffer>> &held_for()
{
    static std::multimap<const void *, std::pair<int, Buffer>> table;
    return table;
}

// What requests held that were freed before they were complete. When these operations end is not known.
std::vector<Held> &orphans()
{
    static std::vector<Held> list;
    return list;
}

std::exception_ptr postponed;

// Where the elements are: of a matrix, or of a scalar. With `write`, elements that other values share are copied.
template <typename Matrix, typename Scalar> void *storage(octave_base_value *rep, bool write)
{
    if (auto *matrix = dynamic_cast<octave_base_matrix<Matrix> *>(rep)) {
        if (write)
            return matrix->matrix_ref().fortran_vec();
        const auto *constant = matrix;
        return const_cast<void *>(static_cast<const void *>(constant->matrix_ref().data()));
    }
    if (auto *scalar = dynamic_cast<octave_base_scalar<Scalar> *>(rep))
        return &scalar->scalar_ref();
    return nullptr;
}

// Describes the value, if MPI can read its elements where they are.
bool describe(Buffer &buffer, const octave_value &value, bool write)
{
    auto set = [&](MPI_Datatype type, int unit, std::size_t size, void *data) {
        buffer.type = type;
        buffer.unit = unit;
        buffer.size = size;
        buffer.data = data;
        buffer.count = static_cast<MPI_Count>(value.numel()) * unit;
        buffer.value = value;
        return data != nullptr || buffer.count == 0;
    };
    if (value.issparse() || value.is_range())
        return false;
    octave_base_value *rep = value.internal_rep();
    switch (value.builtin_type()) {
    case btyp_double: return set(MPI_DOUBLE, 1, 8, storage<NDArray, double>(rep, write));
    case btyp_complex: return set(MPI_DOUBLE, 2, 8, storage<ComplexNDArray, Complex>(rep, write));
    case btyp_float: return set(MPI_FLOAT, 1, 4, storage<FloatNDArray, float>(rep, write));
    case btyp_float_complex: return set(MPI_FLOAT, 2, 4, storage<FloatComplexNDArray, FloatComplex>(rep, write));
    case btyp_int8: return set(MPI_INT8_T, 1, 1, storage<int8NDArray, octave_int8>(rep, write));
    case btyp_int16: return set(MPI_INT16_T, 1, 2, storage<int16NDArray, octave_int16>(rep, write));
    case btyp_int32: return set(MPI_INT32_T, 1, 4, storage<int32NDArray, octave_int32>(rep, write));
    case btyp_int64: return set(MPI_INT64_T, 1, 8, storage<int64NDArray, octave_int64>(rep, write));
    case btyp_uint8: return set(MPI_UINT8_T, 1, 1, storage<uint8NDArray, octave_uint8>(rep, write));
    case btyp_uint16: return set(MPI_UINT16_T, 1, 2, storage<uint16NDArray, octave_uint16>(rep, write));
    case btyp_uint32: return set(MPI_UINT32_T, 1, 4, storage<uint32NDArray, octave_uint32>(rep, write));
    case btyp_uint64: return set(MPI_UINT64_T, 1, 8, storage<uint64NDArray, octave_uint64>(rep, write));
    case btyp_bool: return set(MPI_C_BOOL, 1, 1, storage<boolNDArray, bool>(rep, write));
    case btyp_char: return set(MPI_CHAR, 1, 1, storage<charNDArray, char>(rep, write));
    default: return false;
    }
}

// Ranges, diagonal matrices and their like as ordinary arrays.
octave_value expanded(const octave_value &value)
{
    const bool is_array = value.isnumeric() || value.islogical() || value.is_string();
    return is_array && !value.issparse() ? value.full_value() : value;
}
} // namespace

Buffer Buffer::of(const octave_value &value)
{
    Buffer buffer;
    if (!describe(buffer, value, false) && !describe(buffer, expanded(value), false))
        return Buffer();
    return buffer;
}

// --- arguments

Call::Call(octave::interpreter &interp, const octave_value_list &args, int nargout, const char *name, const char *usage,
           int least, int most)
    : m_interp(interp), m_args(args), m_nargout(nargout), m_name(name), m_usage(usage)
{
    const int n = args.length();
    if (n < least || (most >= 0 && n > most))
        error_with_id("limosa:usage", "%s: %d arguments; the call is %s", name, n, usage);
    // These functions have no other purpose than their second result: the script is one of a toolbox in which it is the
    // first, and would take the error code for it.
    if (nargout == 1 && (!std::strcmp(name, "MPI_Comm_rank") || !std::strcmp(name, "MPI_Comm_size")))
        error_with_id("limosa:usage",
                      "%s: one result is asked for, which is the error code; the call is %s; a script of MatlabMPI or "
                      "of Octave's package mpi needs --dialect matlabmpi or --dialect mpi",
                      name, usage);
}

void Call::fail(const char *id, const std::string &what) const
{
    error_with_id(id, "%s: %s", m_name, what.c_str());
    std::abort(); // error_with_id does not return
}

std::string Call::place(int i, const char *param) const
{
    return "argument " + std::to_string(i + 1) + " (" + param + ")";
}

long long Call::integer(const octave_value &value, int i, const char *param) const
{
    if (value.numel() == 1 && (value.isnumeric() || value.islogical()) && !value.iscomplex()) {
        if (value.isinteger())
            return value.is_uint64_type() ? static_cast<long long>(value.uint64_scalar_value().value())
                                          : static_cast<long long>(value.int64_scalar_value().value());
        const double number = value.double_value();
        if (number == std::floor(number) && std::abs(number) < 9007199254740993.0)
            return static_cast<long long>(number);
    }
    fail("limosa:arg", place(i, param) + " must be one whole number");
}

std::vector<long long> Call::integers(int i, const char *param) const
{
    const octave_value value = m_args(i);
    if (!(value.isnumeric() || value.islogical()) || value.iscomplex())
        fail("limosa:arg", place(i, param) + " must be an array of whole numbers");
    const NDArray array = value.array_value();
    std::vector<long long> all;
    for (octave_idx_type k = 0; k < array.numel(); k++) {
        if (array(k) != std::floor(array(k)))
            fail("limosa:arg", place(i, param) + " must be an array of whole numbers");
        all.push_back(static_cast<long long>(array(k)));
    }
    return all;
}

intptr_t Call::handle_value(const octave_value &value, int i, const char *param) const
{
    if (value.numel() != 1 || !value.isnumeric() || value.iscomplex())
        fail("limosa:arg", place(i, param) + " must be a handle of MPI, which is one number");
    return static_cast<intptr_t>(integer(value, i, param));
}

std::vector<intptr_t> Call::handle_values(const octave_value &value, int i, const char *param) const
{
    if (!value.isnumeric() || value.iscomplex())
        fail("limosa:arg", place(i, param) + " must be handles of MPI, which are numbers");
    const uint64NDArray array = value.uint64_array_value();
    std::vector<intptr_t> all;
    for (octave_idx_type k = 0; k < array.numel(); k++)
        all.push_back(static_cast<intptr_t>(array(k).value()));
    return all;
}

std::string Call::text(int i, const char *param) const
{
    if (!m_args(i).is_string())
        fail("limosa:arg", place(i, param) + " must be a text");
    return m_args(i).string_value();
}

bool Call::is_constant(int i, const char *constant) const
{
    return m_args(i).is_string() && m_args(i).rows() == 1 && m_args(i).string_value() == constant;
}

// --- the caller's variables

std::string Call::name_of(int i) const
{
    const string_vector tags = m_args.name_tags();
    return tags.numel() == m_args.length() ? tags(i) : std::string();
}

std::string Call::variable(int i, const char *param) const
{
    const std::string name = name_of(i);
    if (name.empty() || !m_interp.is_variable(name) || m_interp.varval(name).internal_rep() != m_args(i).internal_rep())
        fail("limosa:name", place(i, param) + " must be a variable, since the call changes it; put the value into one");
    return name;
}

void Call::assign(int i, const char *param, const octave_value &value)
{
    m_interp.assign(variable(i, param), value);
}

// --- buffers

Buffer Call::read(int i, const char *param, bool in_place) const
{
    Buffer buffer;
    buffer.param = param;
    if (in_place && is_constant(i, "MPI_IN_PLACE")) {
        buffer.in_place = true;
        buffer.data = MPI_IN_PLACE;
        return buffer;
    }
    if (!describe(buffer, m_args(i), false) && !describe(buffer, expanded(m_args(i)), false))
        fail("limosa:class", place(i, param) + " is a " + m_args(i).class_name() +
                                 (m_args(i).issparse() ? " sparse matrix" : "") +
                                 "; buffers are full numeric, char or logical arrays: send others with MPI_Pack");
    buffer.name = name_of(i);
    return buffer;
}

Buffer Call::write(int i, const char *param, bool in_place)
{
    Buffer buffer;
    buffer.param = param;
    if (in_place && is_constant(i, "MPI_IN_PLACE"))
        return read(i, param, true);
    const std::string name = variable(i, param);
    octave_value value = m_args(i);
    // The owners of a value that no other variable has: the variable, the list of arguments, and `value`.
    const bool shared = value.get_count() > 3;
    if (shared || !describe(buffer, value, true)) {
        value = octave_value(expanded(value).internal_rep()->clone());
        if (!describe(buffer, value, true))
            fail("limosa:class",
                 place(i, param) + " is a " + m_args(i).class_name() + (m_args(i).issparse() ? " sparse matrix" : "") +
                     "; buffers are full numeric, char or logical arrays: receive others with MPI_Unpack");
        m_interp.assign(name, value);
    }
    buffer.name = name;
    buffer.written = true;
    return buffer;
}

void Call::check_operation(MPI_Op op, bool blocking, std::initializer_list<Buffer *> buffers) const
{
    if (!is_own_operation(op))
        return;
    if (!blocking)
        fail("limosa:arg", "op is an Octave function, which only blocking calls can use: Octave has one thread");
    for (Buffer *buffer : buffers)
        if (buffer->unit == 2) {
            buffer->type = buffer->type == MPI_DOUBLE ? MPI_C_DOUBLE_COMPLEX : MPI_C_FLOAT_COMPLEX;
            buffer->unit = 1;
            buffer->size *= 2;
            buffer->count /= 2;
        }
}

// --- requests, and what is held

Requests Call::requests(int first, const char *param) const
{
    Requests all;
    for (int i = first; i < nargin(); i++)
        for (intptr_t bits : handle_values(m_args(i), i, param))
            all.now.push_back(reinterpret_cast<MPI_Request>(bits));
    all.before = all.now;
    return all;
}

void Call::set_requests(int first, const char *param, const Requests &requests)
{
    std::size_t k = 0;
    for (int i = first; i < nargin(); i++) {
        const dim_vector dims = m_args(i).dims();
        uint64NDArray array(dims);
        bool changed = false;
        for (octave_idx_type j = 0; j < array.numel(); j++, k++) {
            changed |= requests.now[k] != requests.before[k];
            array(j) = static_cast<uint64_t>(reinterpret_cast<intptr_t>(requests.now[k]));
        }
        if (changed)
            assign(i, param, array.numel() == 1 ? octave_value(array(0)) : octave_value(array));
    }
}

void Call::starting(const Requests &requests)
{
    for (MPI_Request request : requests.now) {
        auto found = pending().find(request);
        if (found == pending().end())
            continue;
        for (Buffer &buffer : found->second.buffers) {
            std::shared_ptr<octave::stack_frame> frame = buffer.frame.lock();
            if (buffer.written || !frame || buffer.name.empty())
                continue;
            const octave_value current = frame->varval(buffer.name);
            Buffer fresh;
            if (current.is_undefined() || current.internal_rep() == buffer.value.internal_rep())
                continue;
            if (!describe(fresh, expanded(current), false) || !fresh.same_class(buffer) || fresh.count != buffer.count)
                fail("limosa:class",
                     "the variable " + buffer.name + " has another class or size than when the request was made");
            std::memcpy(buffer.data, fresh.data, static_cast<std::size_t>(fresh.bytes()));
        }
    }
}

void Call::put_back(Held &held)
{
    for (Buffer &buffer : held.buffers) {
        std::shared_ptr<octave::stack_frame> frame = buffer.frame.lock();
        if (!buffer.written || !frame)
            continue;
        const octave_value current = frame->varval(buffer.name);
        if (current.is_defined() && current.internal_rep() != buffer.value.internal_rep())
            frame->assign(buffer.name, buffer.value);
    }
}

void Call::settle(const Requests &requests)
{
    for (int i = 0; i < requests.size(); i++) {
        auto found = pending().find(requests.before[i]);
        if (found == pending().end())
            continue;
        if (requests.now[i] == MPI_REQUEST_NULL) {
            Pending done = std::move(found->second);
            pending().erase(found);
            put_back(done);
        } else if (found->second.persistent) {
            int complete = 0;
            MPI_Request_get_status(requests.now[i], &complete, MPI_STATUS_IGNORE);
            if (complete)
                put_back(found->second);
        }
    }
}

void Call::hold(MPI_Request request, bool persistent, std::vector<Buffer> buffers,
                std::vector<std::shared_ptr<void>> arrays)
{
    if (request == MPI_REQUEST_NULL)
        return;
    Pending entry;
    entry.persistent = persistent;
    for (Buffer &buffer : buffers)
        buffer.frame = m_interp.get_evaluator().current_user_frame();
    entry.buffers = std::move(buffers);
    entry.arrays = std::move(arrays);
    pending()[request] = std::move(entry);
}

void Call::hold_for(const void *object, int rank, std::vector<Buffer> buffers)
{
    for (Buffer &buffer : buffers) {
        buffer.frame = m_interp.get_evaluator().current_user_frame();
        held_for().insert({object, {rank, buffer}});
    }
}

std::vector<Buffer> Call::release(const void *object, int rank)
{
    Held done;
    auto range = held_for().equal_range(object);
    for (auto each = range.first; each != range.second;)
        if (rank == -1 || each->second.first == rank) {
            done.buffers.push_back(each->second.second);
            each = held_for().erase(each);
        } else
            each++;
    return done.buffers;
}

void Call::give(std::vector<Buffer> buffers)
{
    Held done;
    done.buffers = std::move(buffers);
    put_back(done);
}

void Call::release_epoch(MPI_Win win, int rank)
{
    Held done;
    auto range = held_for().equal_range(win);
    for (auto each = range.first; each != range.second;)
        if (each->second.first >= 0 && (rank == -1 || each->second.first == rank)) {
            done.buffers.push_back(each->second.second);
            each = held_for().erase(each);
        } else
            each++;
    put_back(done);
}

void Call::keep(Buffer &buffer, bool persistent) const
{
    if (persistent && !buffer.in_place && buffer.value.is_defined())
        describe(buffer, octave_value(buffer.value.internal_rep()->clone()), true);
}

void orphan(MPI_Request request)
{
    auto found = pending().find(request);
    if (found == pending().end())
        return;
    int complete = 0;
    MPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE);
    if (!complete)
        orphans().push_back(std::move(found->second));
    pending().erase(found);
}

void release_everything()
{
    pending().clear();
    held_for().clear();
    orphans().clear();
}

int number_held()
{
    return static_cast<int>(pending().size() + held_for().size() + orphans().size());
}

// --- results

octave_value_list Call::results(int info)
{
    raise_postponed();
    return m_nargout == 0 ? octave_value_list() : ovl(info);
}

void Call::postpone(std::exception_ptr error)
{
    if (!postponed)
        postponed = error;
}

void Call::raise_postponed()
{
    limosa::throw_interrupt();
    if (!postponed)
        return;
    std::exception_ptr error;
    std::swap(error, postponed);
    std::rethrow_exception(error);
}

octave_value Call::to_value(const MPI_Status &status) const
{
    MPI_Count bytes = 0;
    int cancelled = 0;
    MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    MPI_Test_cancelled(&status, &cancelled);
    octave_scalar_map map;
    map.assign("src", status.MPI_SOURCE);
    map.assign("tag", status.MPI_TAG);
    map.assign("err", status.MPI_ERROR);
    map.assign("len", static_cast<double>(bytes));
    map.assign("cnt", static_cast<double>(bytes));
    map.assign("can", cancelled);
    return octave_value(map);
}

octave_value Call::statuses(const std::vector<MPI_Status> &all, int n) const
{
    string_vector names(std::vector<std::string>{"src", "tag", "err", "len", "cnt", "can"});
    octave_map map(dim_vector(1, std::max(0, n)), names);
    for (int i = 0; i < n; i++)
        map.fast_elem_insert(i, to_value(all[i]).scalar_map_value());
    return octave_value(map);
}

MPI_Status Call::status(int i, const char *param) const
{
    const octave_value value = m_args(i);
    if (!value.isstruct() || value.numel() != 1)
        fail("limosa:arg", place(i, param) + " must be a status, a structure with the fields src, tag, err, cnt");
    const octave_scalar_map map = value.scalar_map_value();
    auto field = [&](const char *name) -> long long {
        const octave_value entry = map.getfield(name);
        return entry.is_defined() ? integer(entry, i, param) : 0;
    };
    MPI_Status status{};
    status.MPI_SOURCE = static_cast<int>(field("src"));
    status.MPI_TAG = static_cast<int>(field("tag"));
    status.MPI_ERROR = static_cast<int>(field("err"));
    MPI_Status_set_elements_c(&status, MPI_BYTE, map.isfield("cnt") ? field("cnt") : field("len"));
    MPI_Status_set_cancelled(&status, static_cast<int>(field("can")));
    return status;
}
} // namespace mpitb
} // namespace limosa
