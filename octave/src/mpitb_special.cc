// The functions of the module mpitb that no rule expresses (api/octave.json says why): they take Octave functions,
// values of any class, names of variables, cells, or have outputs in MPITB's own order.

#include <cstring>
#include <map>
#include <set>

#include <octave/parse.h>

#include "mpitb.h"
#include "session.h"
#include "values.h"

using namespace limosa::mpitb;

// --- beginning and end -----------------------------------------------------------------------------------------------

namespace
{
// The arguments from `first` on, as C has them. The texts live as long as this.
struct Texts {
    std::vector<std::string> texts;
    std::vector<char *> pointers;

    void finish()
    {
        for (std::string &text : texts)
            pointers.push_back(&text[0]);
        pointers.push_back(nullptr);
    }
};

Texts texts_of(const Call &call, int first)
{
    Texts all;
    for (int i = first; i < call.nargin(); i++)
        all.texts.push_back(call.text(i, "argument"));
    all.finish();
    return all;
}

// A cell of texts, one text, or [] or MPI_ARGV_NULL for none.
Texts texts_of(const Call &call, const octave_value &value, const char *param)
{
    Texts all;
    if (value.iscellstr()) {
        const Array<std::string> cells = value.cellstr_value();
        for (octave_idx_type i = 0; i < cells.numel(); i++)
            all.texts.push_back(cells(i));
    } else if (value.is_string() && value.rows() <= 1) {
        const std::string text = value.string_value();
        if (!text.empty() && text != "MPI_ARGV_NULL")
            all.texts.push_back(text);
    } else if (!value.isempty())
        call.fail("limosa:arg", std::string(param) + " must be a text or a cell of texts");
    all.finish();
    return all;
}
} // namespace

MPITB(MPI_Init, 0, -1, "info = MPI_Init (argument, ...)")
{
    Texts texts = texts_of(call, 0);
    int argc = static_cast<int>(texts.texts.size());
    char **argv = texts.pointers.data();
    const int code = MPI_Init(&argc, &argv);
    limosa::listen();
    return call.results(code);
}

MPITB(MPI_Init_thread, 1, -1, "[info, provided] = MPI_Init_thread (required, argument, ...)")
{
    const int required = call.number<int>(0, "required");
    Texts texts = texts_of(call, 1);
    int argc = static_cast<int>(texts.texts.size()), provided = 0;
    char **argv = texts.pointers.data();
    const int code = MPI_Init_thread(&argc, &argv, required, &provided);
    limosa::listen();
    return call.results(code, provided);
}

MPITB(MPI_Finalize, 0, 0, "info = MPI_Finalize ()")
{
    const int code = MPI_Finalize();
    release_everything();
    return call.results(code);
}

// --- statuses and requests -------------------------------------------------------------------------------------------

MPITB(MPI_Get_count, 1, 1, "[info, bytes] = MPI_Get_count (status)")
{
    const MPI_Status status = call.status(0, "status");
    MPI_Count bytes = 0;
    const int code = MPI_Get_count_c(&status, MPI_BYTE, &bytes);
    return call.results(code, static_cast<double>(bytes));
}

static octave_value_list elements(Call &call)
{
    const MPI_Status status = call.status(0, "status");
    const Buffer example = call.read(1, "example");
    MPI_Count bytes = 0;
    const int code = MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    const MPI_Count size = static_cast<MPI_Count>(example.size) * example.unit;
    return call.results(code, static_cast<double>(bytes % size == 0 ? bytes / size : MPI_UNDEFINED));
}

MPITB(MPI_Get_elements, 2, 2, "[info, n] = MPI_Get_elements (status, example)")
{
    return elements(call);
}
MPITB(MPI_Get_elements_x, 2, 2, "[info, n] = MPI_Get_elements_x (status, example)")
{
    return elements(call);
}

MPITB(MPI_Test_cancelled, 1, 1, "[info, flag, status] = MPI_Test_cancelled (status)")
{
    const MPI_Status status = call.status(0, "status");
    int flag = 0;
    const int code = MPI_Test_cancelled(&status, &flag);
    return call.results(code, flag, status);
}

MPITB(MPI_Request_free, 1, 1, "info = MPI_Request_free (request)")
{
    Requests request = call.requests(0, "request");
    call.check_length(0, "request", request.size(), 1);
    call.variable(0, "request");
    orphan(request.before[0]);
    const int code = MPI_Request_free(request.now.data());
    call.set_requests(0, "request", request);
    return call.results(code);
}

// --- packing ---------------------------------------------------------------------------------------------------------
//
// A packed variable is a record: "LPK1", length of the name (4 bytes), length of the value (8 bytes), name, value as in
// values.h. Zero bytes after the last record are the end.

namespace
{
constexpr std::size_t record_bytes = 16;
const char record_mark[] = "LPK1";

std::size_t packed_bytes(const std::string &name, const limosa::Message &message)
{
    return record_bytes + name.size() + message.bytes();
}
} // namespace

MPITB(MPI_Pack, 4, 4, "info = MPI_Pack (variable, buf, position, comm)")
{
    const std::string name = call.name_of(0);
    const limosa::Message message(call.arg(0));
    Buffer buffer = call.write(1, "buf");
    const MPI_Count position = call.number<MPI_Count>(2, "position");
    call.variable(2, "position");
    call.handle<MPI_Comm>(3, "comm");
    const MPI_Count needs = static_cast<MPI_Count>(packed_bytes(name, message));
    if (position < 0 || position + needs > buffer.bytes())
        call.fail("limosa:size", "buf has " + std::to_string(buffer.bytes()) + " bytes and needs " +
                                     std::to_string(position + needs) + ": ask MPI_Pack_size");
    char *to = static_cast<char *>(buffer.data) + position;
    const uint32_t name_bytes = static_cast<uint32_t>(name.size());
    const uint64_t value_bytes = message.bytes();
    std::memcpy(to, record_mark, 4);
    std::memcpy(to + 4, &name_bytes, 4);
    std::memcpy(to + 8, &value_bytes, 8);
    std::memcpy(to + record_bytes, name.data(), name.size());
    message.copy_to(to + record_bytes + name.size());
    call.assign(2, "position", call.to_value(static_cast<double>(position + needs)));
    return call.results(MPI_SUCCESS);
}

MPITB(MPI_Pack_size, 2, 2, "[info, bytes] = MPI_Pack_size (variable, comm)")
{
    const limosa::Message message(call.arg(0));
    call.handle<MPI_Comm>(1, "comm");
    return call.results(MPI_SUCCESS, static_cast<double>(packed_bytes(call.name_of(0), message)));
}

MPITB(MPI_Unpack, 3, -1, "[info, names] = MPI_Unpack (buf, position, comm, name, ...)")
{
    const Buffer buffer = call.read(0, "buf");
    MPI_Count position = call.number<MPI_Count>(1, "position");
    call.handle<MPI_Comm>(2, "comm");
    const MPI_Count end = buffer.bytes();
    std::vector<std::string> names;
    for (int i = 3; i < call.nargin(); i++)
        names.push_back(call.text(i, "name"));
    const std::size_t wanted = names.size();
    std::size_t done = 0;
    auto damaged = [&]() {
        call.fail("limosa:damaged", "there is no packed variable at position " + std::to_string(position));
    };
    if (position < 0 || position > end)
        damaged();
    const char *bytes = static_cast<const char *>(buffer.data);
    for (; wanted == 0 || done < wanted; done++) {
        const char *from = bytes + position;
        const MPI_Count left = end - position;
        if (left < static_cast<MPI_Count>(record_bytes) || std::memcmp(from, record_mark, 4) != 0) {
            if (wanted > 0 || done == 0)
                damaged();
            break;
        }
        uint32_t name_bytes;
        uint64_t value_bytes;
        std::memcpy(&name_bytes, from + 4, 4);
        std::memcpy(&value_bytes, from + 8, 8);
        const uint64_t room = static_cast<uint64_t>(left) - record_bytes;
        if (name_bytes > room || value_bytes > room - name_bytes)
            damaged();
        if (wanted == 0)
            names.emplace_back(from + record_bytes, name_bytes);
        const octave_value value = limosa::decode(from + record_bytes + name_bytes, value_bytes);
        if (!octave::valid_identifier(names[done]))
            call.fail("limosa:name", "'" + names[done] + "' is not the name of a variable: give one to MPI_Unpack");
        call.interp().assign(names[done], value);
        position += static_cast<MPI_Count>(record_bytes + name_bytes + value_bytes);
    }
    if (!call.name_of(1).empty() && octave::valid_identifier(call.name_of(1)))
        call.assign(1, "position", call.to_value(static_cast<double>(position)));
    Cell cells(1, static_cast<octave_idx_type>(done));
    for (std::size_t i = 0; i < done; i++)
        cells(i) = names[i];
    return call.results(MPI_SUCCESS, octave_value(cells));
}

// --- memory ----------------------------------------------------------------------------------------------------------

static octave_value_list address(Call &call)
{
    const Buffer buffer = call.read(0, "variable");
    return call.results(MPI_SUCCESS, static_cast<double>(reinterpret_cast<intptr_t>(buffer.data)));
}

MPITB(MPI_Address, 1, 1, "[info, address] = MPI_Address (variable)")
{
    return address(call);
}
MPITB(MPI_Get_address, 1, 1, "[info, address] = MPI_Get_address (variable)")
{
    return address(call);
}

// What the buffer of the process itself is held for.
static const char process_buffer = 0;

MPITB(MPI_Buffer_attach, 1, 1, "info = MPI_Buffer_attach (buffer)")
{
    Buffer buffer = call.write(0, "buffer");
    const int code = MPI_Buffer_attach_c(buffer.data, buffer.bytes());
    if (code == MPI_SUCCESS)
        call.hold_for(&process_buffer, -1, {buffer});
    return call.results(code);
}

MPITB(MPI_Buffer_detach, 0, 0, "info = MPI_Buffer_detach ()")
{
    void *address = nullptr;
    MPI_Count bytes = 0;
    const int code = MPI_Buffer_detach_c(&address, &bytes);
    if (code == MPI_SUCCESS)
        call.release(&process_buffer);
    return call.results(code);
}

#define BUFFERS_OF(KIND, HANDLE, NAME)                                                                                 \
    MPITB(MPI_##KIND##_attach_buffer, 2, 2, "info = MPI_" #KIND "_attach_buffer (" #NAME ", buffer)")                  \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, #NAME);                                                                   \
        Buffer buffer = call.write(1, "buffer");                                                                       \
        const int code = MPI_##KIND##_attach_buffer_c(object, buffer.data, buffer.bytes());                            \
        if (code == MPI_SUCCESS)                                                                                       \
            call.hold_for(object, -1, {buffer});                                                                       \
        return call.results(code);                                                                                     \
    }                                                                                                                  \
    MPITB(MPI_##KIND##_detach_buffer, 1, 1, "info = MPI_" #KIND "_detach_buffer (" #NAME ")")                          \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, #NAME);                                                                   \
        void *address = nullptr;                                                                                       \
        MPI_Count bytes = 0;                                                                                           \
        const int code = MPI_##KIND##_detach_buffer_c(object, &address, &bytes);                                       \
        if (code == MPI_SUCCESS)                                                                                       \
            call.release(object);                                                                                      \
        return call.results(code);                                                                                     \
    }

BUFFERS_OF(Comm, MPI_Comm, comm)
BUFFERS_OF(Session, MPI_Session, session)

// --- functions of Octave that MPI calls ------------------------------------------------------------------------------

namespace
{
// Calls Octave from MPI. An error is kept and raised when MPI has returned.
template <typename Body> int guarded(const Body &body)
{
    try {
        return body();
    } catch (...) {
        Call::postpone(std::current_exception());
        return MPI_ERR_OTHER;
    }
}

octave_value_list run(const octave_value &function, const octave_value_list &args, int nargout)
{
    return octave::interpreter::the_interpreter()->feval(function, args, nargout);
}

octave_value function_argument(const Call &call, int i, const char *param)
{
    octave_value value = call.arg(i);
    if (!value.is_function_handle() && !(value.is_string() && value.rows() <= 1))
        call.fail("limosa:arg", std::string(param) + " must be the name of a function or a function handle");
    return value;
}

// Functions of C that know which Octave function they stand for, since MPI gives them nothing to know it by.
constexpr int slots = 64;
octave_value handlers[slots];
octave_value operations[slots];
MPI_Op operation_handles[slots];

int slot_for(const Call &call, octave_value (&table)[slots], const octave_value &value)
{
    for (int i = 0; i < slots; i++)
        if (table[i].is_undefined()) {
            table[i] = value;
            return i;
        }
    call.fail("limosa:no_mem", "there are " + std::to_string(slots) + " functions already");
}

void call_handler(int slot, const octave_value &object, int code)
{
    guarded([&]() {
        const octave_value &handler = handlers[slot];
        if (handler.is_function_handle())
            run(handler, ovl(object, code), 0);
        else {
            int status = 0;
            octave::interpreter::the_interpreter()->eval_string(handler.string_value(), false, status, 0);
        }
        return MPI_SUCCESS;
    });
}

template <int slot, typename Object> void handler_of_slot(Object *object, int *code, ...)
{
    call_handler(slot, Call::to_value(*object), *code);
}

template <typename Object, int... numbers>
auto handler_in(int slot, std::integer_sequence<int, numbers...>) -> void (*)(Object *, int *, ...)
{
    static void (*const all[])(Object *, int *, ...) = {handler_of_slot<numbers, Object>...};
    return all[slot];
}

// What a datatype is in Octave; MPI_Op_create's functions get values of these classes.
octave_value value_of(const void *data, MPI_Count n, MPI_Datatype type)
{
    const dim_vector dims(1, static_cast<octave_idx_type>(n));
    auto copy = [&](auto array) {
        std::memcpy(static_cast<void *>(array.fortran_vec()), data, n * sizeof(*array.data()));
        return octave_value(array);
    };
    if (type == MPI_DOUBLE)
        return copy(NDArray(dims));
    if (type == MPI_FLOAT)
        return copy(FloatNDArray(dims));
    if (type == MPI_C_DOUBLE_COMPLEX)
        return copy(ComplexNDArray(dims));
    if (type == MPI_C_FLOAT_COMPLEX)
        return copy(FloatComplexNDArray(dims));
    if (type == MPI_INT8_T)
        return copy(int8NDArray(dims));
    if (type == MPI_INT16_T)
        return copy(int16NDArray(dims));
    if (type == MPI_INT32_T || type == MPI_INT)
        return copy(int32NDArray(dims));
    if (type == MPI_INT64_T || type == MPI_COUNT)
        return copy(int64NDArray(dims));
    if (type == MPI_UINT8_T)
        return copy(uint8NDArray(dims));
    if (type == MPI_UINT16_T)
        return copy(uint16NDArray(dims));
    if (type == MPI_UINT32_T || type == MPI_UNSIGNED)
        return copy(uint32NDArray(dims));
    if (type == MPI_UINT64_T || type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG)
        return copy(uint64NDArray(dims));
    if (type == MPI_C_BOOL)
        return copy(boolNDArray(dims));
    if (type == MPI_CHAR)
        return octave_value(std::string(static_cast<const char *>(data), n));
    error_with_id("limosa:class", "values of this datatype are not known in Octave");
    return octave_value();
}

template <int slot> void operation_of_slot(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    guarded([&]() {
        const octave_value mine = value_of(inout, *n, *type);
        const octave_value_list list = run(operations[slot], ovl(value_of(in, *n, *type), mine), 1);
        const octave_value result = list.length() > 0 ? list(0) : octave_value();
        if (!result.is_defined() || result.class_name() != mine.class_name() || result.numel() != mine.numel())
            error_with_id("limosa:class", "the function of an operation must return an array like its arguments");
        // Octave makes complex numbers without imaginary parts real.
        if (*type == MPI_C_DOUBLE_COMPLEX) {
            const ComplexNDArray array = result.complex_array_value();
            std::copy_n(array.data(), array.numel(), static_cast<Complex *>(inout));
        } else if (*type == MPI_C_FLOAT_COMPLEX) {
            const FloatComplexNDArray array = result.float_complex_array_value();
            std::copy_n(array.data(), array.numel(), static_cast<FloatComplex *>(inout));
        } else {
            const Buffer buffer = Buffer::of(result);
            if (buffer.unit != 1)
                error_with_id("limosa:class", "the function of an operation has made complex numbers of real ones");
            std::memcpy(inout, buffer.data, static_cast<std::size_t>(buffer.bytes()));
        }
        return MPI_SUCCESS;
    });
}

template <int... numbers> MPI_User_function_c *operation_in(int slot, std::integer_sequence<int, numbers...>)
{
    static MPI_User_function_c *const all[] = {operation_of_slot<numbers>...};
    return all[slot];
}
} // namespace

namespace limosa
{
namespace mpitb
{
bool is_own_operation(MPI_Op op)
{
    for (int i = 0; i < slots; i++)
        if (operations[i].is_defined() && operation_handles[i] == op)
            return true;
    return false;
}
} // namespace mpitb
} // namespace limosa

MPITB(MPI_Op_create, 2, 2, "[info, op] = MPI_Op_create (function, commute)")
{
    const octave_value function = function_argument(call, 0, "function");
    const int commute = call.number<int>(1, "commute");
    const int slot = slot_for(call, operations, function);
    MPI_Op op = MPI_OP_NULL;
    const int code = MPI_Op_create_c(operation_in(slot, std::make_integer_sequence<int, slots>()), commute, &op);
    operation_handles[slot] = op;
    if (code != MPI_SUCCESS)
        operations[slot] = octave_value();
    return call.results(code, op);
}

MPITB(MPI_Op_free, 1, 1, "info = MPI_Op_free (op)")
{
    auto op = call.handle<MPI_Op>(0, "op");
    const MPI_Op freed = op;
    call.variable(0, "op");
    const int code = MPI_Op_free(&op);
    for (int i = 0; i < slots && code == MPI_SUCCESS; i++)
        if (operation_handles[i] == freed) {
            operations[i] = octave_value();
            operation_handles[i] = MPI_OP_NULL;
        }
    call.set_handle(0, "op", op);
    return call.results(code);
}

#define ERRHANDLER_OF(NAME, KIND, HANDLE)                                                                              \
    MPITB(NAME, 1, 1, "[info, errhandler] = " #NAME " (command)")                                                      \
    {                                                                                                                  \
        const octave_value command = function_argument(call, 0, "command");                                            \
        const int slot = slot_for(call, handlers, command);                                                            \
        MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;                                                               \
        const int code = MPI_##KIND##_create_errhandler(                                                               \
            handler_in<HANDLE>(slot, std::make_integer_sequence<int, slots>()), &errhandler);                          \
        return call.results(code, errhandler);                                                                         \
    }

ERRHANDLER_OF(MPI_Comm_create_errhandler, Comm, MPI_Comm)
ERRHANDLER_OF(MPI_Errhandler_create, Comm, MPI_Comm)
ERRHANDLER_OF(MPI_File_create_errhandler, File, MPI_File)
ERRHANDLER_OF(MPI_Session_create_errhandler, Session, MPI_Session)
ERRHANDLER_OF(MPI_Win_create_errhandler, Win, MPI_Win)

MPITB(MPI_Errhandler_set, 2, 2, "info = MPI_Errhandler_set (comm, errhandler)")
{
    auto comm = call.handle<MPI_Comm>(0, "comm");
    auto errhandler = call.handle<MPI_Errhandler>(1, "errhandler");
    return call.results(MPI_Comm_set_errhandler(comm, errhandler));
}

MPITB(MPI_Errhandler_get, 1, 1, "[info, errhandler] = MPI_Errhandler_get (comm)")
{
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    const int code = MPI_Comm_get_errhandler(call.handle<MPI_Comm>(0, "comm"), &errhandler);
    return call.results(code, errhandler);
}

// --- attributes ------------------------------------------------------------------------------------------------------
//
// An attribute of a key that Octave code has created is an Octave value. The functions of such a key are
//   [info, value, flag] = copy (object, keyval, extra, value)
//   info = delete (object, keyval, value, extra)
// or one of MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN and their like.

namespace
{
struct Key {
    octave_value copy, remove, extra;
};

std::set<int> &own_keys()
{
    static std::set<int> keys;
    return keys;
}

bool is_standard(const octave_value &function, const char *end)
{
    if (!function.is_string())
        return false;
    const std::string name = function.string_value();
    const std::size_t length = std::strlen(end);
    return name.compare(0, 4, "MPI_") == 0 && name.size() > length &&
           name.compare(name.size() - length, length, end) == 0;
}

template <typename Object> int copy_attribute(Object object, int keyval, void *state, void *in, void *out, int *flag)
{
    return guarded([&]() {
        const Key &key = *static_cast<Key *>(state);
        const octave_value &value = *static_cast<octave_value *>(in);
        *flag = 0;
        if (is_standard(key.copy, "NULL_COPY_FN"))
            return MPI_SUCCESS;
        octave_value copy = value;
        int code = MPI_SUCCESS;
        *flag = 1;
        if (!is_standard(key.copy, "DUP_FN")) {
            const octave_value_list list = run(key.copy, ovl(Call::to_value(object), keyval, key.extra, value), 3);
            code = list.length() > 0 ? list(0).int_value() : MPI_SUCCESS;
            copy = list.length() > 1 ? list(1) : value;
            *flag = list.length() > 2 ? list(2).int_value() : 1;
        }
        if (*flag)
            *static_cast<void **>(out) = new octave_value(copy);
        return code;
    });
}

template <typename Object> int delete_attribute(Object object, int keyval, void *in, void *state)
{
    return guarded([&]() {
        const Key &key = *static_cast<Key *>(state);
        std::unique_ptr<octave_value> value(static_cast<octave_value *>(in));
        if (is_standard(key.remove, "NULL_DELETE_FN"))
            return MPI_SUCCESS;
        const octave_value_list list = run(key.remove, ovl(Call::to_value(object), keyval, *value, key.extra), 1);
        const int code = list.length() > 0 ? list(0).int_value() : MPI_SUCCESS;
        if (code != MPI_SUCCESS)
            value.release(); // the attribute stays
        return code;
    });
}

// The attribute as a value. Those that MPI defines are numbers behind an address, or an address.
octave_value attribute(int keyval, void *address)
{
    if (own_keys().count(keyval))
        return *static_cast<octave_value *>(address);
    switch (keyval) {
    case MPI_WIN_BASE: return octave_value(static_cast<double>(reinterpret_cast<intptr_t>(address)));
    case MPI_WIN_SIZE: return octave_value(static_cast<double>(*static_cast<MPI_Aint *>(address)));
    default: return octave_value(*static_cast<int *>(address));
    }
}

// Keys may be in use as long as the process lives; so are their states.
void *key_state(const Call &call)
{
    return new Key{function_argument(call, 0, "copy_fn"), function_argument(call, 1, "delete_fn"),
                   call.nargin() > 2 ? call.arg(2) : octave_value(Matrix())};
}
} // namespace

#define CREATE_KEYVAL(NAME, KIND, HANDLE)                                                                              \
    MPITB(NAME, 2, 3, "[info, keyval] = " #NAME " (copy_fn, delete_fn, extra)")                                        \
    {                                                                                                                  \
        int keyval = MPI_KEYVAL_INVALID;                                                                               \
        const int code =                                                                                               \
            MPI_##KIND##_create_keyval(copy_attribute<HANDLE>, delete_attribute<HANDLE>, &keyval, key_state(call));    \
        own_keys().insert(keyval);                                                                                     \
        return call.results(code, keyval);                                                                             \
    }

#define SET_ATTRIBUTE(NAME, KIND, HANDLE)                                                                              \
    MPITB(NAME, 3, 3, "info = " #NAME " (object, keyval, value)")                                                      \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, "object");                                                                \
        const int keyval = call.number<int>(1, "keyval");                                                              \
        if (!own_keys().count(keyval))                                                                                 \
            call.fail("limosa:keyval", "the key was not created here");                                                \
        auto *value = new octave_value(call.arg(2));                                                                   \
        const int code = MPI_##KIND##_set_attr(object, keyval, value);                                                 \
        if (code != MPI_SUCCESS)                                                                                       \
            delete value;                                                                                              \
        return call.results(code);                                                                                     \
    }

#define GET_ATTRIBUTE(NAME, KIND, HANDLE)                                                                              \
    MPITB(NAME, 2, 2, "[info, value, flag] = " #NAME " (object, keyval)")                                              \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, "object");                                                                \
        const int keyval = call.number<int>(1, "keyval");                                                              \
        void *address = nullptr;                                                                                       \
        int flag = 0;                                                                                                  \
        const int code = MPI_##KIND##_get_attr(object, keyval, &address, &flag);                                       \
        return call.results(code, flag ? attribute(keyval, address) : octave_value(Matrix()), flag);                   \
    }

CREATE_KEYVAL(MPI_Comm_create_keyval, Comm, MPI_Comm)
CREATE_KEYVAL(MPI_Keyval_create, Comm, MPI_Comm)
CREATE_KEYVAL(MPI_Type_create_keyval, Type, MPI_Datatype)
CREATE_KEYVAL(MPI_Win_create_keyval, Win, MPI_Win)
SET_ATTRIBUTE(MPI_Comm_set_attr, Comm, MPI_Comm)
SET_ATTRIBUTE(MPI_Attr_put, Comm, MPI_Comm)
SET_ATTRIBUTE(MPI_Type_set_attr, Type, MPI_Datatype)
SET_ATTRIBUTE(MPI_Win_set_attr, Win, MPI_Win)
GET_ATTRIBUTE(MPI_Comm_get_attr, Comm, MPI_Comm)
GET_ATTRIBUTE(MPI_Attr_get, Comm, MPI_Comm)
GET_ATTRIBUTE(MPI_Type_get_attr, Type, MPI_Datatype)
GET_ATTRIBUTE(MPI_Win_get_attr, Win, MPI_Win)

MPITB(MPI_Attr_delete, 2, 2, "info = MPI_Attr_delete (comm, keyval)")
{
    auto comm = call.handle<MPI_Comm>(0, "comm");
    return call.results(MPI_Comm_delete_attr(comm, call.number<int>(1, "keyval")));
}

MPITB(MPI_Keyval_free, 1, 1, "info = MPI_Keyval_free (keyval)")
{
    int keyval = call.number<int>(0, "keyval");
    call.variable(0, "keyval");
    const int code = MPI_Comm_free_keyval(&keyval);
    call.assign(0, "keyval", call.to_value(keyval));
    return call.results(code);
}

// --- topologies, info, datatypes -------------------------------------------------------------------------------------

MPITB(MPI_Dims_create, 2, 3, "[info, dims] = MPI_Dims_create (nnodes, ndims, dims)")
{
    const int nnodes = call.number<int>(0, "nnodes");
    const int ndims = call.number<int>(1, "ndims");
    std::vector<int> dims(std::max(0, ndims));
    if (call.nargin() > 2) {
        dims = *call.numbers<int>(2, "dims");
        call.check_length(2, "dims", static_cast<MPI_Count>(dims.size()), ndims);
    }
    const int code = MPI_Dims_create(nnodes, ndims, dims.data());
    return call.results(code, call.row(dims, static_cast<MPI_Count>(dims.size())));
}

namespace
{
// The value of a key of an info object, and whether there is one.
int info_value(MPI_Info info, const std::string &key, std::string &value, int &flag)
{
    int length = 0;
    int code = MPI_Info_get_string(info, key.c_str(), &length, nullptr, &flag);
    if (code != MPI_SUCCESS || !flag)
        return code;
    std::vector<char> text(length + 1);
    length = static_cast<int>(text.size());
    code = MPI_Info_get_string(info, key.c_str(), &length, text.data(), &flag);
    value = text.data();
    return code;
}
} // namespace

MPITB(MPI_Info_get, 2, 2, "[info, flag, value] = MPI_Info_get (info, key)")
{
    std::string value;
    int flag = 0;
    const int code = info_value(call.handle<MPI_Info>(0, "info"), call.text(1, "key"), value, flag);
    return call.results(code, flag, value);
}

MPITB(MPI_Info_get_valuelen, 2, 2, "[info, flag, length] = MPI_Info_get_valuelen (info, key)")
{
    std::string value;
    int flag = 0;
    const int code = info_value(call.handle<MPI_Info>(0, "info"), call.text(1, "key"), value, flag);
    return call.results(code, flag, static_cast<int>(value.size()));
}

MPITB(MPI_Type_get_contents, 1, 1,
      "[info, integers, addresses, large_counts, datatypes] = MPI_Type_get_contents (datatype)")
{
    auto datatype = call.handle<MPI_Datatype>(0, "datatype");
    MPI_Count n[4] = {0, 0, 0, 0};
    int combiner = 0;
    int code = MPI_Type_get_envelope_c(datatype, &n[0], &n[1], &n[2], &n[3], &combiner);
    std::vector<int> integers(n[0] + 1);
    std::vector<MPI_Aint> addresses(n[1] + 1);
    std::vector<MPI_Count> counts(n[2] + 1);
    std::vector<MPI_Datatype> types(n[3] + 1);
    if (code == MPI_SUCCESS)
        code = MPI_Type_get_contents_c(datatype, n[0], n[1], n[2], n[3], integers.data(), addresses.data(),
                                       counts.data(), types.data());
    return call.results(code, call.row(integers, n[0]), call.row(addresses, n[1]), call.row(counts, n[2]),
                        call.row(types, n[3]));
}

// --- processes -------------------------------------------------------------------------------------------------------

MPITB(MPI_Comm_spawn, 6, 6, "[info, children, errcodes] = MPI_Comm_spawn (program, arguments, n, info, root, comm)")
{
    const int root = call.number<int>(4, "root");
    auto comm = call.handle<MPI_Comm>(5, "comm");
    const bool here = call.is_root(root, comm);
    const std::string program = here ? call.text(0, "program") : std::string();
    Texts arguments;
    if (here)
        arguments = texts_of(call, call.arg(1), "arguments");
    const int n = call.number<int>(2, "n");
    auto info = call.handle<MPI_Info>(3, "info");
    if (n < 0)
        call.fail("limosa:arg", "n must not be negative");
    MPI_Comm children = MPI_COMM_NULL;
    std::vector<int> errcodes(n + 1, MPI_SUCCESS);
    const int code = MPI_Comm_spawn(program.c_str(), here ? arguments.pointers.data() : MPI_ARGV_NULL, n, info, root,
                                    comm, &children, errcodes.data());
    return call.results(code, children, call.row(errcodes, n));
}

MPITB(MPI_Comm_spawn_multiple, 6, 6,
      "[info, children, errcodes] = MPI_Comm_spawn_multiple (programs, arguments, n, infos, root, comm)")
{
    const int root = call.number<int>(4, "root");
    auto comm = call.handle<MPI_Comm>(5, "comm");
    const bool here = call.is_root(root, comm);
    MPI_Comm children = MPI_COMM_NULL;
    // Elements of a cell, or of an array of numbers.
    auto element = [&](int i, octave_idx_type k) -> octave_value {
        octave_value value = call.arg(i);
        return value.iscell() ? value.cell_value()(k) : value.index_op(ovl(octave_value(k + 1)));
    };
    if (!here) {
        const int code =
            MPI_Comm_spawn_multiple(0, nullptr, nullptr, nullptr, nullptr, root, comm, &children, MPI_ERRCODES_IGNORE);
        return call.results(code, children, octave_value(RowVector()));
    }
    Texts programs = texts_of(call, call.arg(0), "programs");
    const int count = static_cast<int>(programs.texts.size());
    for (int i = 1; i < 4; i++)
        call.check_length(i, i == 1 ? "arguments" : i == 2 ? "n" : "infos", call.arg(i).numel(), count);
    std::vector<Texts> arguments(count);
    std::vector<char **> pointers;
    std::vector<int> n;
    std::vector<MPI_Info> infos;
    int total = 0;
    for (int k = 0; k < count; k++) {
        arguments[k] = texts_of(call, element(1, k), "arguments");
        n.push_back(element(2, k).int_value());
        total += std::max(0, n.back());
        infos.push_back(reinterpret_cast<MPI_Info>(static_cast<intptr_t>(element(3, k).uint64_value())));
    }
    for (Texts &each : arguments)
        pointers.push_back(each.pointers.data());
    std::vector<int> errcodes(total + 1, MPI_SUCCESS);
    const int code = MPI_Comm_spawn_multiple(count, programs.pointers.data(), pointers.data(), n.data(), infos.data(),
                                             root, comm, &children, errcodes.data());
    return call.results(code, children, call.row(errcodes, total));
}

// --- variables of MPI's implementation -------------------------------------------------------------------------------

namespace
{
struct Variable {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int count = 0;
};

std::map<const void *, Variable> &variables()
{
    static std::map<const void *, Variable> table;
    return table;
}

const Variable &variable_of(const Call &call, const void *handle)
{
    const auto found = variables().find(handle);
    if (found == variables().end())
        call.fail("limosa:arg", "handle is not one that this program has allocated");
    return found->second;
}

std::size_t type_bytes(MPI_Datatype type)
{
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    return static_cast<std::size_t>(bytes);
}

// Reads with `read`, which gets an address.
template <typename Read> octave_value_list read_variable(Call &call, const void *handle, const Read &read)
{
    const Variable &variable = variable_of(call, handle);
    std::vector<char> bytes(variable.count * type_bytes(variable.type) + 1);
    const int code = read(static_cast<void *>(bytes.data()));
    octave_value value = value_of(bytes.data(), variable.count, variable.type);
    if (variable.type == MPI_CHAR)
        value = octave_value(std::string(bytes.data()));
    return call.results(code, value);
}

// The bytes of a value in the class that the variable has.
std::vector<char> bytes_for(const Call &call, const Variable &variable, const octave_value &value)
{
    std::vector<char> bytes(variable.count * type_bytes(variable.type) + 1);
    if (variable.type == MPI_CHAR) {
        const std::string text = value.string_value();
        if (static_cast<int>(text.size()) > variable.count)
            call.fail("limosa:size", "the text is longer than the variable");
        std::memcpy(bytes.data(), text.data(), text.size());
        return bytes;
    }
    const octave_value like = value_of(bytes.data(), variable.count, variable.type);
    const octave_value_list converted = octave::feval(like.class_name(), ovl(value), 1);
    const Buffer buffer = Buffer::of(converted(0));
    if (buffer.bytes() != static_cast<MPI_Count>(bytes.size() - 1))
        call.fail("limosa:size", "the variable has " + std::to_string(variable.count) + " elements");
    std::memcpy(bytes.data(), buffer.data, static_cast<std::size_t>(buffer.bytes()));
    return bytes;
}

// The address of the handle to which a variable is bound; null for none.
void *bound_object(const Call &call, int i, void *&storage)
{
    if (call.arg(i).isempty())
        return nullptr;
    storage = call.handle<void *>(i, "object");
    return &storage;
}
} // namespace

MPITB(MPI_T_cvar_handle_alloc, 2, 2, "[info, handle, count] = MPI_T_cvar_handle_alloc (cvar_index, object)")
{
    const int index = call.number<int>(0, "cvar_index");
    void *storage = nullptr;
    MPI_T_cvar_handle handle{};
    Variable variable;
    int code = MPI_T_cvar_handle_alloc(index, bound_object(call, 1, storage), &handle, &variable.count);
    if (code == MPI_SUCCESS) {
        int none = 0, also_none = 0, verbosity, bind, scope;
        MPI_T_enum enumeration;
        code = MPI_T_cvar_get_info(index, nullptr, &none, &verbosity, &variable.type, &enumeration, nullptr, &also_none,
                                   &bind, &scope);
        variables()[handle] = variable;
    }
    return call.results(code, handle, variable.count);
}

MPITB(MPI_T_cvar_read, 1, 1, "[info, value] = MPI_T_cvar_read (handle)")
{
    auto handle = call.handle<MPI_T_cvar_handle>(0, "handle");
    return read_variable(call, handle, [&](void *to) { return MPI_T_cvar_read(handle, to); });
}

MPITB(MPI_T_cvar_write, 2, 2, "info = MPI_T_cvar_write (handle, value)")
{
    auto handle = call.handle<MPI_T_cvar_handle>(0, "handle");
    const std::vector<char> bytes = bytes_for(call, variable_of(call, handle), call.arg(1));
    return call.results(MPI_T_cvar_write(handle, bytes.data()));
}

MPITB(MPI_T_pvar_handle_alloc, 3, 3, "[info, handle, count] = MPI_T_pvar_handle_alloc (session, pvar_index, object)")
{
    auto session = call.handle<MPI_T_pvar_session>(0, "session");
    const int index = call.number<int>(1, "pvar_index");
    void *storage = nullptr;
    MPI_T_pvar_handle handle{};
    Variable variable;
    int code = MPI_T_pvar_handle_alloc(session, index, bound_object(call, 2, storage), &handle, &variable.count);
    if (code == MPI_SUCCESS) {
        int none = 0, also_none = 0, verbosity, kind, bind, readonly, continuous, atomic;
        MPI_T_enum enumeration;
        code = MPI_T_pvar_get_info(index, nullptr, &none, &verbosity, &kind, &variable.type, &enumeration, nullptr,
                                   &also_none, &bind, &readonly, &continuous, &atomic);
        variables()[handle] = variable;
    }
    return call.results(code, handle, variable.count);
}

#define READ_PVAR(NAME)                                                                                                \
    MPITB(NAME, 2, 2, "[info, value] = " #NAME " (session, handle)")                                                   \
    {                                                                                                                  \
        auto session = call.handle<MPI_T_pvar_session>(0, "session");                                                  \
        auto handle = call.handle<MPI_T_pvar_handle>(1, "handle");                                                     \
        return read_variable(call, handle, [&](void *to) { return NAME(session, handle, to); });                       \
    }

READ_PVAR(MPI_T_pvar_read)
READ_PVAR(MPI_T_pvar_readreset)

MPITB(MPI_T_pvar_write, 3, 3, "info = MPI_T_pvar_write (session, handle, value)")
{
    auto session = call.handle<MPI_T_pvar_session>(0, "session");
    auto handle = call.handle<MPI_T_pvar_handle>(1, "handle");
    const std::vector<char> bytes = bytes_for(call, variable_of(call, handle), call.arg(2));
    return call.results(MPI_T_pvar_write(session, handle, bytes.data()));
}

// --- for tests and for programs that look after themselves -----------------------------------------------------------

MPITB(mpitb_held, 0, 0, "n = mpitb_held (): how many unfinished operations hold values")
{
    (void)call;
    return ovl(number_held());
}
