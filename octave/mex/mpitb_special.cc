// The functions of the MEX file that call functions of MATLAB, or that no rule expresses: operations, error handlers
// and attributes of the user's own, packing, spawning. ../src/mpitb_special.cc has those of Octave.
//
// A function is a handle or a name. It is called while the call of MPI that needs it runs, in MATLAB's own thread. If
// it fails, its error is thrown when MPI has returned.

#include "mpitb.h"

#include <cstring>
#include <set>

using namespace limosa::mpitb;

namespace
{
using Held = std::shared_ptr<mxArray>;

// A copy that outlives the call.
Held keep(const mxArray *value)
{
    mxArray *copy = mxDuplicateArray(value);
    mexMakeArrayPersistent(copy);
    return Held(copy, mxDestroyArray);
}

std::string text_of(const mxArray *value)
{
    char *copy = value && mxIsChar(value) ? mxArrayToString(value) : nullptr;
    const std::string text = copy ? copy : "";
    mxFree(copy);
    return text;
}

// Calls a function; false if it has failed, and then its error is kept. limosa_mex_call.m catches it: Octave tells MEX
// files not what the error was.
bool run(const mxArray *function, std::vector<mxArray *> arguments, int outputs, mxArray *results[])
{
    arguments.insert(arguments.begin(), {mxCreateDoubleScalar(outputs), const_cast<mxArray *>(function)});
    std::vector<mxArray *> all(1 + outputs);
    const int count = static_cast<int>(arguments.size());
    if (mexCallMATLABWithTrap(1 + outputs, all.data(), count, arguments.data(), "limosa_mex_call")) {
        postpone({"limosa:missing", "limosa_mex_call.m cannot be called; it must lie beside limosa_mex"});
        return false;
    }
    if (!mxIsEmpty(all[0])) {
        postpone({text_of(mxGetCell(all[0], 0)), text_of(mxGetCell(all[0], 1))});
        return false;
    }
    std::copy(all.begin() + 1, all.end(), results);
    return true;
}

const mxArray *function_argument(const Call &call, int i, const char *param)
{
    const mxArray *value = call.arg(i).array;
    if (!mxIsChar(value) && std::strcmp(mxGetClassName(value), "function_handle") != 0)
        call.fail("limosa:arg", std::string(param) + " must be the name of a function or a function handle");
    return value;
}

// Functions of C that know which function they stand for, since MPI gives them nothing to know it by.
constexpr int slots = 64;
Held handlers[slots];
Held operations[slots];
MPI_Op operation_handles[slots];

int slot_for(const Call &call, Held (&table)[slots], const mxArray *function)
{
    for (int i = 0; i < slots; i++)
        if (!table[i]) {
            table[i] = keep(function);
            return i;
        }
    call.fail("limosa:no_mem", "there are " + std::to_string(slots) + " functions already");
}

// --- error handlers

template <int slot, typename Object> void handler_of_slot(Object *object, int *code, ...)
{
    run(handlers[slot].get(), {Call::to_value(*object), Call::to_value(*code)}, 0, nullptr);
}

template <typename Object, int... numbers>
auto handler_in(int slot, std::integer_sequence<int, numbers...>) -> void (*)(Object *, int *, ...)
{
    static void (*const all[])(Object *, int *, ...) = {handler_of_slot<numbers, Object>...};
    return all[slot];
}

// --- operations

mxClassID class_of(MPI_Datatype type)
{
    static const std::pair<MPI_Datatype, mxClassID> classes[] = {
        {MPI_DOUBLE, mxDOUBLE_CLASS},   {MPI_FLOAT, mxSINGLE_CLASS},    {MPI_INT8_T, mxINT8_CLASS},
        {MPI_INT16_T, mxINT16_CLASS},   {MPI_INT32_T, mxINT32_CLASS},   {MPI_INT64_T, mxINT64_CLASS},
        {MPI_UINT8_T, mxUINT8_CLASS},   {MPI_UINT16_T, mxUINT16_CLASS}, {MPI_UINT32_T, mxUINT32_CLASS},
        {MPI_UINT64_T, mxUINT64_CLASS},
    };
    for (const auto &each : classes)
        if (each.first == type)
            return each.second;
    return mxUNKNOWN_CLASS;
}

mxArray *row_of(const void *data, MPI_Count n, MPI_Datatype type)
{
    const mxClassID id = class_of(type);
    mxArray *row = type == MPI_C_BOOL ? mxCreateLogicalMatrix(1, static_cast<mwSize>(n))
                                      : mxCreateNumericMatrix(1, static_cast<mwSize>(n), id, mxREAL);
    std::memcpy(mxGetData(row), data, mxGetNumberOfElements(row) * mxGetElementSize(row));
    return row;
}

template <int slot> void operation_of_slot(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    if (class_of(*type) == mxUNKNOWN_CLASS && *type != MPI_C_BOOL) {
        postpone({"limosa:class", "MPI_Op_create: values of this class are not known to functions of the user's own"});
        return;
    }
    mxArray *result = nullptr;
    mxArray *mine = row_of(inout, *n, *type);
    if (!run(operations[slot].get(), {row_of(in, *n, *type), mine}, 1, &result))
        return;
    if (mxGetClassID(result) != mxGetClassID(mine) || mxIsComplex(result) || mxIsSparse(result) ||
        mxGetNumberOfElements(result) != mxGetNumberOfElements(mine))
        postpone({"limosa:class", "the function of an operation must return an array like its arguments"});
    else
        std::memcpy(inout, mxGetData(result), mxGetNumberOfElements(mine) * mxGetElementSize(mine));
}

template <int... numbers> MPI_User_function_c *operation_in(int slot, std::integer_sequence<int, numbers...>)
{
    static MPI_User_function_c *const all[] = {operation_of_slot<numbers>...};
    return all[slot];
}
} // namespace

void Call::check_operation(MPI_Op op, bool blocking, std::initializer_list<Buffer *> buffers) const
{
    for (int i = 0; i < slots; i++) {
        if (!operations[i] || operation_handles[i] != op)
            continue;
        if (!blocking)
            fail("limosa:arg", "op is a function of the user's own, which only blocking calls can use");
        for (const Buffer *buffer : buffers)
            if (buffer->unit == 2)
                fail("limosa:class",
                     std::string(buffer->param) + " is complex; the user's own functions take real arrays");
    }
}

MPITB(MPI_Op_create, 2, 2, "[info, op] = MPI_Op_create (function, commute)")
{
    const mxArray *function = function_argument(call, 0, "function");
    const int commute = call.number<int>(1, "commute");
    const int slot = slot_for(call, operations, function);
    MPI_Op op = MPI_OP_NULL;
    const int code = MPI_Op_create_c(operation_in(slot, std::make_integer_sequence<int, slots>()), commute, &op);
    operation_handles[slot] = op;
    if (code != MPI_SUCCESS)
        operations[slot].reset();
    return call.results(code, op);
}

MPITB(MPI_Op_free, 1, 1, "[info, op] = MPI_Op_free (op)")
{
    auto op = call.handle<MPI_Op>(0, "op");
    const MPI_Op freed = op;
    const int code = MPI_Op_free(&op);
    for (int i = 0; i < slots && code == MPI_SUCCESS; i++)
        if (operation_handles[i] == freed) {
            operations[i].reset();
            operation_handles[i] = MPI_OP_NULL;
        }
    call.assign(0, "op", Call::to_value(op));
    return call.results(code);
}

#define ERRHANDLER_OF(NAME, KIND, HANDLE)                                                                              \
    MPITB(NAME, 1, 1, "[info, errhandler] = " #NAME " (function)")                                                     \
    {                                                                                                                  \
        const int slot = slot_for(call, handlers, function_argument(call, 0, "function"));                             \
        MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;                                                               \
        const int code = MPI_##KIND##_create_errhandler(                                                               \
            handler_in<HANDLE>(slot, std::make_integer_sequence<int, slots>()), &errhandler);                          \
        return call.results(code, errhandler);                                                                         \
    }

ERRHANDLER_OF(MPI_Comm_create_errhandler, Comm, MPI_Comm)
ERRHANDLER_OF(MPI_File_create_errhandler, File, MPI_File)
ERRHANDLER_OF(MPI_Session_create_errhandler, Session, MPI_Session)
ERRHANDLER_OF(MPI_Win_create_errhandler, Win, MPI_Win)

// --- attributes: values of any class. The functions of a key are those of Octave's form:
//   [info, value, flag] = copy (object, keyval, extra, value)
//   info = delete (object, keyval, value, extra)
// or the names of MPI's own: MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN and their like.

namespace
{
struct Key {
    Held copy, remove, extra;
};

std::set<int> &own_keys()
{
    static std::set<int> keys;
    return keys;
}

bool is_standard(const Held &function, const std::string &end)
{
    const std::string name = text_of(function.get());
    return name.compare(0, 4, "MPI_") == 0 && name.size() > end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
}

template <typename Object> int copy_attribute(Object object, int keyval, void *state, void *in, void *out, int *flag)
{
    const Key &key = *static_cast<Key *>(state);
    const Held &value = *static_cast<Held *>(in);
    *flag = 0;
    if (is_standard(key.copy, "NULL_COPY_FN"))
        return MPI_SUCCESS;
    mxArray *results[3] = {};
    if (!is_standard(key.copy, "DUP_FN") &&
        !run(key.copy.get(), {Call::to_value(object), Call::to_value(keyval), key.extra.get(), value.get()}, 3,
             results))
        return MPI_ERR_OTHER;
    *flag = results[2] ? static_cast<int>(mxGetScalar(results[2])) : 1;
    if (*flag)
        *static_cast<void **>(out) = new Held(keep(results[1] ? results[1] : value.get()));
    return results[0] ? static_cast<int>(mxGetScalar(results[0])) : MPI_SUCCESS;
}

template <typename Object> int delete_attribute(Object object, int keyval, void *in, void *state)
{
    const Key &key = *static_cast<Key *>(state);
    std::unique_ptr<Held> value(static_cast<Held *>(in));
    if (is_standard(key.remove, "NULL_DELETE_FN"))
        return MPI_SUCCESS;
    mxArray *result = nullptr;
    if (!run(key.remove.get(), {Call::to_value(object), Call::to_value(keyval), value->get(), key.extra.get()}, 1,
             &result))
        return MPI_ERR_OTHER;
    const int code = result ? static_cast<int>(mxGetScalar(result)) : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        value.release(); // the attribute stays
    return code;
}

// The attribute as a value. Those that MPI defines are numbers behind an address, or an address.
mxArray *attribute(int keyval, void *address)
{
    if (own_keys().count(keyval))
        return mxDuplicateArray(static_cast<Held *>(address)->get());
    switch (keyval) {
    case MPI_WIN_BASE: return mxCreateDoubleScalar(static_cast<double>(reinterpret_cast<std::intptr_t>(address)));
    case MPI_WIN_SIZE: return mxCreateDoubleScalar(static_cast<double>(*static_cast<MPI_Aint *>(address)));
    default: return mxCreateDoubleScalar(*static_cast<int *>(address));
    }
}

// Keys may be in use as long as the process lives; so are their states.
void *key_state(const Call &call)
{
    mxArray *none = mxCreateDoubleMatrix(0, 0, mxREAL);
    return new Key{keep(function_argument(call, 0, "copy_fn")), keep(function_argument(call, 1, "delete_fn")),
                   keep(call.nargin() > 2 ? call.arg(2).array : none)};
}
} // namespace

#define ATTRIBUTES_OF(KIND, HANDLE)                                                                                    \
    MPITB(MPI_##KIND##_create_keyval, 2, 3,                                                                            \
          "[info, keyval] = MPI_" #KIND "_create_keyval (copy_fn, delete_fn, extra)")                                  \
    {                                                                                                                  \
        int keyval = MPI_KEYVAL_INVALID;                                                                               \
        const int code =                                                                                               \
            MPI_##KIND##_create_keyval(copy_attribute<HANDLE>, delete_attribute<HANDLE>, &keyval, key_state(call));    \
        own_keys().insert(keyval);                                                                                     \
        return call.results(code, keyval);                                                                             \
    }                                                                                                                  \
    MPITB(MPI_##KIND##_set_attr, 3, 3, "info = MPI_" #KIND "_set_attr (object, keyval, value)")                        \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, "object");                                                                \
        const int keyval = call.number<int>(1, "keyval");                                                              \
        if (!own_keys().count(keyval))                                                                                 \
            call.fail("limosa:keyval", "the key was not created here");                                                \
        auto *value = new Held(keep(call.arg(2).array));                                                               \
        const int code = MPI_##KIND##_set_attr(object, keyval, value);                                                 \
        if (code != MPI_SUCCESS)                                                                                       \
            delete value;                                                                                              \
        return call.results(code);                                                                                     \
    }                                                                                                                  \
    MPITB(MPI_##KIND##_get_attr, 2, 2, "[info, value, flag] = MPI_" #KIND "_get_attr (object, keyval)")                \
    {                                                                                                                  \
        auto object = call.handle<HANDLE>(0, "object");                                                                \
        const int keyval = call.number<int>(1, "keyval");                                                              \
        void *address = nullptr;                                                                                       \
        int flag = 0;                                                                                                  \
        const int code = MPI_##KIND##_get_attr(object, keyval, &address, &flag);                                       \
        return call.results(code, flag ? attribute(keyval, address) : mxCreateDoubleMatrix(0, 0, mxREAL), flag);       \
    }

ATTRIBUTES_OF(Comm, MPI_Comm)
ATTRIBUTES_OF(Type, MPI_Datatype)
ATTRIBUTES_OF(Win, MPI_Win)

// --- packing: elements of buffers

MPITB(MPI_Pack_size, 2, 2, "[info, bytes] = MPI_Pack_size (x, comm)")
{
    const Buffer x = call.read(0, "x");
    MPI_Count bytes = 0;
    const int code = MPI_Pack_size_c(x.count, x.type, call.handle<MPI_Comm>(1, "comm"), &bytes);
    return call.results(code, static_cast<double>(bytes));
}

MPITB(MPI_Pack, 4, 4, "[info, buf, position] = MPI_Pack (x, buf, position, comm)")
{
    const Buffer x = call.read(0, "x");
    Buffer buf = call.write(1, "buf");
    MPI_Count position = call.number<MPI_Count>(2, "position");
    const int code = MPI_Pack_c(x.data, x.count, x.type, buf.data, buf.bytes(), &position,
                                call.handle<MPI_Comm>(3, "comm"));
    call.assign(2, "position", Call::to_value(static_cast<double>(position)));
    return call.results(code);
}

MPITB(MPI_Unpack, 4, 4, "[info, position, x] = MPI_Unpack (buf, position, x, comm)")
{
    const Buffer buf = call.read(0, "buf");
    MPI_Count position = call.number<MPI_Count>(1, "position");
    auto comm = call.handle<MPI_Comm>(3, "comm");
    mxArray *moved = mxCreateDoubleMatrix(1, 1, mxREAL);
    call.assign(1, "position", moved);
    Buffer x = call.write(2, "x");
    const int code = MPI_Unpack_c(buf.data, buf.bytes(), &position, x.data, x.count, x.type, comm);
    *static_cast<double *>(mxGetData(moved)) = static_cast<double>(position);
    return call.results(code);
}

// --- processes

MPITB(MPI_Comm_spawn, 6, 6, "[info, children, errcodes] = MPI_Comm_spawn (program, arguments, n, info, root, comm)")
{
    const int root = call.number<int>(4, "root");
    auto comm = call.handle<MPI_Comm>(5, "comm");
    const bool here = call.is_root(root, comm);
    const std::string program = here ? call.text(0, "program") : std::string();
    std::vector<std::string> texts;
    const mxArray *words = call.arg(1).array;
    if (here && mxIsCell(words)) {
        for (std::size_t i = 0; i < mxGetNumberOfElements(words); i++)
            texts.push_back(text_of(mxGetCell(words, i)));
    } else if (here && mxIsChar(words) && !mxIsEmpty(words))
        texts.push_back(text_of(words));
    else if (here && !mxIsEmpty(words))
        call.fail("limosa:arg", "arguments must be a text or a cell of texts");
    std::vector<char *> pointers;
    for (std::string &text : texts)
        pointers.push_back(&text[0]);
    pointers.push_back(nullptr);
    const int n = call.number<int>(2, "n");
    if (n < 0)
        call.fail("limosa:arg", "n must not be negative");
    MPI_Comm children = MPI_COMM_NULL;
    std::vector<int> errcodes(n + 1, MPI_SUCCESS);
    const int code = MPI_Comm_spawn(program.c_str(), pointers.data(), n, call.handle<MPI_Info>(3, "info"), root, comm,
                                    &children, errcodes.data());
    return call.results(code, children, Call::row(errcodes, n));
}
