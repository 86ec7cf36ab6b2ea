/* limosa._fast_path: the calls of MPI that `import limosa` makes most often, with nothing between Python and MPI.
 *
 * Contract
 * --------
 * A `Channel` belongs to one communicator of mpi4py. Its methods named as calls of MPI do that call with bytes, and
 * raise what mpi4py would raise. The others exchange the slots of a collective call of `limosa.Comm`. They give the
 * result of the call; or NotImplemented, if they have done nothing; or False, if the ranks differ; or True, if they do
 * not, but the result is still to be made. The Python code, which can do everything, goes on from there. What slots and
 * heads are is said in `limosa._packet`, where `limosa._channel` says the same of a slower twin.
 *
 * The module is built on Python's stable ABI and on MPI's standard ABI. It is not linked with an MPI library: it takes
 * the functions of the one that mpi4py has loaded. Without it `import limosa` works the same, only slower.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- MPI ------------------------------------------------------------------------------------------------------- */

#define FUNCTIONS(F) F(Send) F(Recv) F(Allgather)

#define MEMBER(name) __typeof__(MPI_##name) *name;
static struct {
    FUNCTIONS(MEMBER)
} mpi;

/* Find the functions in the library that the process has loaded under the standard's name. */
static bool find_functions(void)
{
    void *library = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
        PyErr_SetString(PyExc_ImportError, "no MPI library with the standard ABI is loaded");
        return false;
    }
#define LOOK_UP(name)                                                                                                  \
    *(void **)&mpi.name = dlsym(library, "MPI_" #name);                                                                \
    if (mpi.name == NULL) {                                                                                            \
        PyErr_SetString(PyExc_ImportError, "the MPI library has no MPI_" #name);                                       \
        return false;                                                                                                  \
    }
    FUNCTIONS(LOOK_UP)
    return true; /* The library stays open: mpi4py needs it as long as we do. */
}

/* ---- channels -------------------------------------------------------------------------------------------------- */

/* What a call with arrays of one dtype and shape needs; made by the Python code at the first of them. */
typedef struct {
    const void *call;    /* which verb, by the identity of a Python object */
    const void *op;      /* the reduction, as the user gave it */
    const void *dtype;   /* of the array; identity is enough, another object only means a slower call */
    Py_ssize_t shape[3]; /* unused lengths are -1 */
    int root;
    PyObject *owned[4]; /* what keeps the above and the memory below alive: call, op, dtype, stack */
    Py_buffer slot;     /* the marked slot; the array's data go behind its head */
    PyObject *stack;    /* an array over the slots of all ranks: (size, *shape) */
    char kind;          /* of the elements, see `fold`; 0 if they are not folded here */
    char fold;          /* how: + * > <, or 0 */
} Entry;

/* Of a slot: its head, the part of it that says which array follows, and what must be the same in one call: which it
 * is, and its root. */
enum { HEAD = 48, DESCRIPTION = 44, CALL_FROM = 3, CALL_BYTES = 5, ENTRIES = 64, PICKLE = (char)0x80 };

typedef struct {
    PyObject_HEAD MPI_Comm comm;
    int rank, size;
    Py_buffer memory;               /* where the slots of all ranks arrive */
    PyObject *error;                /* mpi4py's exception */
    PyObject *array;                /* the type numpy.ndarray */
    PyObject *copy;                 /* its method */
    PyObject *dumps, *loads, *five; /* pickle's functions, and its protocol */
    PyObject *any;                  /* limosa.ANY */
    PyObject *other, *nothing;      /* what `value` gives if the message is of another kind; if it has received none */
    Py_buffer inbox;                /* where `value` receives */
    PyObject *inbox_view;           /* the same as an object */
    bool receiving;                 /* a thread is there; a second one takes the slower way */
    bool busy; /* in an exchange; a second thread there is the program's error and takes the slower way */
    Entry entries[ENTRIES];
    struct {
        char head[DESCRIPTION];
        PyObject *view; /* an array over what the slot that begins so has for this rank; NULL if there is none */
    } last, arrived;    /* array that another rank gave to all; array that came with the last message */
} Channel;

/* Raise what mpi4py would raise. */
static PyObject *failure(const Channel *self, int code)
{
    PyObject *number = PyLong_FromLong(code);
    if (number != NULL)
        PyErr_SetObject(self->error, number);
    Py_XDECREF(number);
    return NULL;
}

static PyObject *outcome(const Channel *self, int code)
{
    if (code != MPI_SUCCESS)
        return failure(self, code);
    Py_RETURN_NONE;
}

/* Do a call of MPI without Python's lock. */
#define CALL(code, ...)                                                                                                \
    do {                                                                                                               \
        Py_BEGIN_ALLOW_THREADS(code) = (__VA_ARGS__);                                                                  \
        Py_END_ALLOW_THREADS                                                                                           \
    } while (0)

/* Give memory for `flags`, or false with a Python error. */
static bool memory_of(PyObject *object, Py_buffer *view, int flags)
{
    if (PyObject_GetBuffer(object, view, flags) != 0)
        return false;
    if (view->len > INT_MAX) {
        PyBuffer_Release(view);
        PyErr_SetString(PyExc_OverflowError, "more than 2^31 - 1 bytes");
        return false;
    }
    return true;
}

static bool number_of(PyObject *object, int *number)
{
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred())
        return false;
    if (value < INT_MIN || value > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "value too large to convert to int");
        return false;
    }
    *number = (int)value;
    return true;
}

static PyObject *refused(void)
{
    PyErr_SetString(PyExc_ValueError, "the slot has another length than those of the channel");
    return NULL;
}

static bool expect(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given != wanted)
        PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", wanted, given);
    return given == wanted;
}

/* ---- single calls of MPI, with bytes ---------------------------------------------------------------------------- */

/* send(data, to, tag) */
static PyObject *channel_send(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int to, tag, code;
    Py_buffer data;
    if (!expect(given, 3) || !number_of(args[1], &to) || !number_of(args[2], &tag) ||
        !memory_of(args[0], &data, PyBUF_SIMPLE))
        return NULL;
    CALL(code, mpi.Send(data.buf, (int)data.len, MPI_BYTE, to, tag, self->comm));
    PyBuffer_Release(&data);
    return outcome(self, code);
}

/* send_pickled(x, to, tag, most): send the pickle of an object; gives the pickle, unsent, if it is longer than `most`.
 */
static PyObject *channel_send_pickled(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int to, tag, most, code;
    char *stream;
    Py_ssize_t length;
    if (!expect(given, 4) || !number_of(args[1], &to) || !number_of(args[2], &tag) || !number_of(args[3], &most))
        return NULL;
    PyObject *pickled = PyObject_CallFunctionObjArgs(self->dumps, args[0], self->five, NULL);
    if (pickled == NULL || PyBytes_AsStringAndSize(pickled, &stream, &length) != 0) {
        Py_XDECREF(pickled);
        return NULL;
    }
    if (length > most)
        return pickled;
    CALL(code, mpi.Send(stream, (int)length, MPI_BYTE, to, tag, self->comm));
    Py_DECREF(pickled);
    return outcome(self, code);
}

/* send_array(head, x, to, tag): send the head and the memory of a C-contiguous array; False if it is none. */
static PyObject *channel_send_array(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    enum { MOST = 8192 };
    char message[MOST];
    int to, tag, code;
    Py_buffer head, array;
    if (!expect(given, 4) || !number_of(args[2], &to) || !number_of(args[3], &tag) ||
        !memory_of(args[0], &head, PyBUF_SIMPLE))
        return NULL;
    if (PyObject_GetBuffer(args[1], &array, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        PyBuffer_Release(&head);
        Py_RETURN_FALSE;
    }
    const Py_ssize_t length = head.len + array.len;
    if (length <= MOST) {
        memcpy(message, head.buf, (size_t)head.len);
        memcpy(message + head.len, array.buf, (size_t)array.len);
    }
    PyBuffer_Release(&head);
    PyBuffer_Release(&array);
    if (length > MOST)
        Py_RETURN_FALSE;
    CALL(code, mpi.Send(message, (int)length, MPI_BYTE, to, tag, self->comm));
    return outcome(self, code);
}

/* value(source, tag): receive a message; its value if it is a pickle or an array like one that `done` has described,
 * else `other`, and the message is in the inbox; `nothing` if none has been received. */
static PyObject *channel_value(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG, code;
    if (!expect(given, 2))
        return NULL;
    if (self->receiving || (args[0] != self->any && !PyLong_CheckExact(args[0])) ||
        (args[1] != self->any && !PyLong_CheckExact(args[1])))
        return Py_NewRef(self->nothing);
    if ((args[0] != self->any && !number_of(args[0], &source)) || (args[1] != self->any && !number_of(args[1], &tag)))
        return NULL;
    if ((source < 0 && args[0] != self->any) || (tag < 0 && args[1] != self->any))
        return Py_NewRef(self->nothing);
    char *inbox = self->inbox.buf;
    self->receiving = true;
    CALL(code, mpi.Recv(inbox, (int)self->inbox.len, MPI_BYTE, source, tag, self->comm, MPI_STATUS_IGNORE));
    PyObject *value;
    if (code != MPI_SUCCESS)
        value = failure(self, code);
    else if (self->arrived.view != NULL && memcmp(inbox, self->arrived.head, DESCRIPTION) == 0)
        value = PyObject_CallFunctionObjArgs(self->copy, self->arrived.view, NULL);
    else if (inbox[0] == PICKLE)
        value = PyObject_CallFunctionObjArgs(self->loads, self->inbox_view, NULL);
    else
        return Py_NewRef(self->other); /* `done` says that the inbox is free again */
    self->receiving = false;
    return value;
}

/* done(view): the inbox has been read; `view` is the array in it, or None if it is of another kind. */
static PyObject *channel_done(Channel *self, PyObject *view)
{
    self->receiving = false;
    if ((PyObject *)Py_TYPE(view) == self->array) {
        memcpy(self->arrived.head, self->inbox.buf, DESCRIPTION);
        Py_XDECREF(self->arrived.view);
        self->arrived.view = Py_NewRef(view);
    }
    Py_RETURN_NONE;
}

/* recv(room, source, tag) */
static PyObject *channel_recv(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int source, tag, code;
    Py_buffer room;
    if (!expect(given, 3) || !number_of(args[1], &source) || !number_of(args[2], &tag) ||
        !memory_of(args[0], &room, PyBUF_WRITABLE))
        return NULL;
    CALL(code, mpi.Recv(room.buf, (int)room.len, MPI_BYTE, source, tag, self->comm, MPI_STATUS_IGNORE));
    PyBuffer_Release(&room);
    return outcome(self, code);
}

/* ---- reductions of short arrays ---------------------------------------------------------------------------------- */

/* Combine elements as NumPy does: `into` is the operand of the lower ranks and the result. */
#define LOOP(type, value)                                                                                              \
    do {                                                                                                               \
        type *into = result;                                                                                           \
        const type *from = operand;                                                                                    \
        for (Py_ssize_t i = 0; i < bytes / (Py_ssize_t)sizeof(type); i++) {                                            \
            const type a = into[i], b = from[i];                                                                       \
            into[i] = (value);                                                                                         \
        }                                                                                                              \
        return;                                                                                                        \
    } while (0)

/* Sums and products of integers wrap around: they are computed without a sign. */
#define COMBINE(type, plain)                                                                                           \
    switch (op) {                                                                                                      \
    case '+': LOOP(type, (type)((plain)a + (plain)b));                                                                 \
    case '*': LOOP(type, (type)((plain)a * (plain)b));                                                                 \
    case '>': LOOP(type, a >= b || a != a ? a : b);                                                                    \
    case '<': LOOP(type, a <= b || a != a ? a : b);                                                                    \
    }                                                                                                                  \
    return

static void combine(char kind, char op, void *result, const void *operand, Py_ssize_t bytes)
{
    switch (kind) {
    case 'd': COMBINE(double, double);
    case 'f': COMBINE(float, float);
    case 'l': COMBINE(int64_t, uint64_t);
    case 'L': COMBINE(uint64_t, uint64_t);
    case 'i': COMBINE(int32_t, uint32_t);
    case 'I': COMBINE(uint32_t, uint32_t);
    }
}

/* ---- whole collective calls with short arrays ---------------------------------------------------------------------
 */

static size_t place_of(const void *call, const void *op, const void *dtype, const Py_ssize_t *shape, int root)
{
    size_t mix = (size_t)call * 31 + (size_t)op;
    mix = mix * 31 + (size_t)dtype;
    for (int i = 0; i < 3; i++)
        mix = mix * 31 + (size_t)shape[i];
    mix = mix * 31 + (size_t)root;
    return (mix ^ mix >> 7 ^ mix >> 17) % ENTRIES;
}

/* Copy the lengths of an array's axes; false if there are too many. */
static bool shape_of(const Py_buffer *array, Py_ssize_t *shape)
{
    if (array->ndim > 3)
        return false;
    for (int i = 0; i < 3; i++)
        shape[i] = i < array->ndim ? array->shape[i] : -1;
    return true;
}

static void forget(Entry *entry)
{
    if (entry->stack == NULL)
        return;
    for (int i = 0; i < 4; i++)
        Py_CLEAR(entry->owned[i]);
    PyBuffer_Release(&entry->slot);
    memset(entry, 0, sizeof *entry);
}

/* remember(call, root, op, x, slot, stack, kind, fold): keep what calls with arrays like x need. */
static PyObject *channel_remember(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    Entry made = {0};
    Py_buffer array;
    if (self->busy)
        Py_RETURN_NONE;
    if (!expect(given, 8) || !number_of(args[1], &made.root))
        return NULL;
    if (PyObject_GetBuffer(args[3], &array, PyBUF_ND) != 0) {
        PyErr_Clear(); /* not contiguous, or of a dtype that has no buffer */
        Py_RETURN_NONE;
    }
    const bool fits = shape_of(&array, made.shape) && array.len <= self->memory.len / self->size - HEAD;
    PyBuffer_Release(&array);
    PyObject *kind = PyUnicode_AsASCIIString(args[6]), *fold = kind ? PyUnicode_AsASCIIString(args[7]) : NULL;
    if (fold != NULL) {
        made.kind = PyBytes_AsString(kind)[0];
        made.fold = PyBytes_AsString(fold)[0];
    }
    Py_XDECREF(kind);
    Py_XDECREF(fold);
    if (fold == NULL)
        return NULL;
    PyObject *dtype = fits ? PyObject_GetAttrString(args[3], "dtype") : NULL;
    if (dtype == NULL || !memory_of(args[4], &made.slot, PyBUF_WRITABLE)) {
        Py_XDECREF(dtype);
        if (fits)
            return NULL;
        Py_RETURN_NONE;
    }
    if (made.slot.len * self->size != self->memory.len) {
        PyBuffer_Release(&made.slot);
        Py_DECREF(dtype);
        Py_RETURN_NONE;
    }
    made.call = args[0];
    made.op = args[2];
    made.dtype = dtype;
    made.stack = args[5];
    made.owned[0] = Py_NewRef(args[0]);
    made.owned[1] = Py_NewRef(args[2]);
    made.owned[2] = dtype;
    made.owned[3] = Py_NewRef(args[5]);
    Entry *entry = &self->entries[place_of(made.call, made.op, made.dtype, made.shape, made.root)];
    forget(entry);
    *entry = made;
    Py_RETURN_NONE;
}

/* Find the entry for an array, whose memory is then in `array`; NULL without an error if there is none. */
static Entry *entry_for(Channel *self, PyObject *call, int root, PyObject *op, PyObject *x, Py_buffer *array)
{
    if ((PyObject *)Py_TYPE(x) != self->array || self->busy)
        return NULL;
    PyObject *dtype = PyObject_GetAttrString(x, "dtype");
    if (dtype == NULL)
        return NULL;
    Py_DECREF(dtype); /* only its identity counts, and x keeps it */
    if (PyObject_GetBuffer(x, array, PyBUF_ND) != 0) {
        PyErr_Clear(); /* not contiguous, or of a dtype that has no buffer */
        return NULL;
    }
    Py_ssize_t shape[3];
    if (shape_of(array, shape)) {
        Entry *entry = &self->entries[place_of(call, op, dtype, shape, root)];
        if (entry->call == call && entry->op == op && entry->dtype == dtype && entry->root == root &&
            memcmp(entry->shape, shape, sizeof shape) == 0)
            return entry;
    }
    PyBuffer_Release(array);
    return NULL;
}

/* Exchange slots. Gives 1 if `length` bytes from `from` on are the same in all, 0 if they differ, -1 with a Python
 * error. */
static int exchanged(Channel *self, const Py_buffer *slot, size_t from, size_t length)
{
    int code;
    const char *own = slot->buf, *all = self->memory.buf;
    const int bytes = (int)slot->len;
    self->busy = true;
    CALL(code, mpi.Allgather(own, bytes, MPI_BYTE, self->memory.buf, bytes, MPI_BYTE, self->comm));
    self->busy = false;
    if (code != MPI_SUCCESS) {
        failure(self, code);
        return -1;
    }
    for (int rank = 0; rank < self->size; rank++)
        if (memcmp(all + (size_t)rank * (size_t)bytes + from, own + from, length) != 0)
            return 0;
    return 1;
}

/* Combine the operands of the first ranks in new memory like that of x. */
static PyObject *folded(Channel *self, const Entry *entry, PyObject *x, int number)
{
    Py_buffer result;
    PyObject *made = PyObject_CallFunctionObjArgs(self->copy, x, NULL);
    if (made == NULL || !memory_of(made, &result, PyBUF_WRITABLE)) {
        Py_XDECREF(made);
        return NULL;
    }
    const char *slots = self->memory.buf;
    memcpy(result.buf, slots + HEAD, (size_t)result.len);
    for (int rank = 1; rank < number; rank++)
        combine(entry->kind, entry->fold, result.buf, slots + rank * entry->slot.len + HEAD, result.len);
    PyBuffer_Release(&result);
    return made;
}

/* reduced(call, x, op, root, number): the reduction over the first ranks; None if their number is 0. */
static PyObject *channel_reduced(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int root, number;
    Py_buffer array;
    if (!expect(given, 5) || !number_of(args[3], &root) || !number_of(args[4], &number))
        return NULL;
    Entry *entry = entry_for(self, args[0], root, args[2], args[1], &array);
    if (entry == NULL || entry->fold == 0 || entry->kind == 0 || number > self->size) {
        if (entry != NULL)
            PyBuffer_Release(&array);
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    memcpy((char *)entry->slot.buf + HEAD, array.buf, (size_t)array.len);
    PyBuffer_Release(&array);
    const int same = exchanged(self, &entry->slot, 0, HEAD);
    if (same < 0)
        return NULL;
    if (same == 0)
        Py_RETURN_FALSE;
    if (number <= 0)
        Py_RETURN_NONE;
    return folded(self, entry, args[1], number);
}

/* stacked(call, x, root, wanted): the arrays of all ranks, one above the other; None if it is not wanted. */
static PyObject *channel_stacked(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int root, wanted;
    Py_buffer array;
    if (!expect(given, 4) || !number_of(args[2], &root) || !number_of(args[3], &wanted))
        return NULL;
    Entry *entry = entry_for(self, args[0], root, Py_None, args[1], &array);
    if (entry == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    memcpy((char *)entry->slot.buf + HEAD, array.buf, (size_t)array.len);
    PyBuffer_Release(&array);
    const int same = exchanged(self, &entry->slot, 0, HEAD);
    if (same < 0)
        return NULL;
    if (same == 0)
        Py_RETURN_FALSE;
    if (!wanted)
        Py_RETURN_NONE;
    return PyObject_CallFunctionObjArgs(self->copy, entry->stack, NULL);
}

/* met(slot): exchange slots, whatever is in them; whether all ranks make the same call with the same root. */
static PyObject *channel_met(Channel *self, PyObject *object)
{
    Py_buffer slot;
    if (!memory_of(object, &slot, PyBUF_SIMPLE))
        return NULL;
    if (slot.len * self->size != self->memory.len) {
        PyBuffer_Release(&slot);
        return refused();
    }
    const int same = exchanged(self, &slot, CALL_FROM, CALL_BYTES);
    PyBuffer_Release(&slot);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

/* given(call, x, root): as `met`, with the slot of an array, which this rank gives to others. */
static PyObject *channel_given(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int root;
    Py_buffer array;
    if (!expect(given, 3) || !number_of(args[2], &root))
        return NULL;
    Entry *entry = entry_for(self, args[0], root, Py_None, args[1], &array);
    if (entry == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    memcpy((char *)entry->slot.buf + HEAD, array.buf, (size_t)array.len);
    PyBuffer_Release(&array);
    const int same = exchanged(self, &entry->slot, CALL_FROM, CALL_BYTES);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

/* received(slot, root): as `met`, but gives the array that the root has given, if `expected` has described it. */
static PyObject *channel_received(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int root;
    if (!expect(given, 2) || !number_of(args[1], &root))
        return NULL;
    PyObject *met = channel_met(self, args[0]);
    if (met != Py_True || root < 0 || root >= self->size || self->last.view == NULL)
        return met;
    const char *slot = (char *)self->memory.buf + self->memory.len / self->size * root;
    if (memcmp(slot, self->last.head, DESCRIPTION) != 0)
        return met;
    Py_DECREF(met);
    return PyObject_CallFunctionObjArgs(self->copy, self->last.view, NULL);
}

/* expected(root, view): describe arrays that come in slots like the one that lies there now from the root. */
static PyObject *channel_expected(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    int root;
    if (!expect(given, 2) || !number_of(args[0], &root))
        return NULL;
    if (root < 0 || root >= self->size || (PyObject *)Py_TYPE(args[1]) != self->array) {
        PyErr_SetString(PyExc_ValueError, "a root and an array are needed");
        return NULL;
    }
    memcpy(self->last.head, (char *)self->memory.buf + self->memory.len / self->size * root, DESCRIPTION);
    Py_XDECREF(self->last.view);
    self->last.view = Py_NewRef(args[1]);
    Py_RETURN_NONE;
}

/* ---- the type and the module ------------------------------------------------------------------------------------- */

/* Channel(handle, rank, size, memory, inbox, error, array, any, other, nothing) */
static PyObject *channel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    long long handle;
    int rank, size;
    PyObject *memory, *inbox, *error, *array, *any, *other, *nothing;
    if (keywords != NULL && PyDict_Size(keywords) != 0) {
        PyErr_SetString(PyExc_TypeError, "Channel takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "LiiOOOOOOO", &handle, &rank, &size, &memory, &inbox, &error, &array, &any, &other,
                          &nothing))
        return NULL;
    PyObject *made = PyType_GenericAlloc(type, 0), *pickle = PyImport_ImportModule("pickle");
    if (made == NULL || pickle == NULL) {
        Py_XDECREF(made);
        Py_XDECREF(pickle);
        return NULL;
    }
    Channel *self = (Channel *)made;
    self->comm = (MPI_Comm)(intptr_t)handle;
    self->rank = rank;
    self->size = size;
    self->error = Py_NewRef(error);
    self->array = Py_NewRef(array);
    self->any = Py_NewRef(any);
    self->other = Py_NewRef(other);
    self->nothing = Py_NewRef(nothing);
    self->copy = PyObject_GetAttrString(array, "copy");
    self->dumps = PyObject_GetAttrString(pickle, "dumps");
    self->loads = PyObject_GetAttrString(pickle, "loads");
    self->five = PyLong_FromLong(5);
    Py_DECREF(pickle);
    if (self->copy == NULL || self->dumps == NULL || self->loads == NULL || self->five == NULL ||
        !memory_of(memory, &self->memory, PyBUF_WRITABLE) || !memory_of(inbox, &self->inbox, PyBUF_WRITABLE) ||
        (self->inbox_view = PyMemoryView_FromObject(inbox)) == NULL) {
        Py_DECREF(made);
        return NULL;
    }
    if (size < 1 || rank < 0 || rank >= size || self->memory.len % size != 0 || self->memory.len / size < HEAD ||
        self->inbox.len < HEAD) {
        PyErr_SetString(PyExc_ValueError, "the memory has no room for a slot of each rank, or the inbox for a head");
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

static void channel_dealloc(PyObject *object)
{
    Channel *self = (Channel *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < ENTRIES; i++)
        forget(&self->entries[i]);
    PyObject *owned[] = {self->error,      self->array,     self->copy,         self->dumps,
                         self->loads,      self->five,      self->any,          self->other,
                         self->inbox_view, self->last.view, self->arrived.view, self->nothing};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        Py_XDECREF(owned[i]);
    if (self->memory.obj != NULL)
        PyBuffer_Release(&self->memory);
    if (self->inbox.obj != NULL)
        PyBuffer_Release(&self->inbox);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#define METHOD(name, flags, text) {#name, (PyCFunction)(void (*)(void))channel_##name, flags, text}

static PyMethodDef channel_methods[] = {
    METHOD(send, METH_FASTCALL, "send(data, to, tag): MPI_Send of bytes"),
    METHOD(recv, METH_FASTCALL, "recv(room, source, tag): MPI_Recv of bytes"),
    METHOD(send_pickled, METH_FASTCALL, "send_pickled(x, to, tag, most): send the pickle of an object"),
    METHOD(send_array, METH_FASTCALL, "send_array(head, x, to, tag): send a head and the memory of an array"),
    METHOD(value, METH_FASTCALL, "value(source, tag): receive a value"),
    METHOD(done, METH_O, "done(view): the inbox has been read"),
    METHOD(met, METH_O, "met(slot): exchange slots; whether all ranks make the same call"),
    METHOD(given, METH_FASTCALL, "given(call, x, root): as met, with the slot of an array"),
    METHOD(received, METH_FASTCALL, "received(slot, root): as met, or the array that the root has given"),
    METHOD(expected, METH_FASTCALL, "expected(root, view): describe such arrays"),
    METHOD(remember, METH_FASTCALL,
           "remember(call, root, op, x, slot, stack, kind, fold): for given, reduced and stacked"),
    METHOD(reduced, METH_FASTCALL, "reduced(call, x, op, root, number): the reduction of the first ranks' arrays"),
    METHOD(stacked, METH_FASTCALL, "stacked(call, x, root, wanted): the arrays of all ranks"),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot channel_slots[] = {
    {Py_tp_doc, "The fast path of one communicator; see the head of the source file."},
    {Py_tp_new, channel_new},
    {Py_tp_dealloc, channel_dealloc},
    {Py_tp_methods, channel_methods},
    {0, NULL},
};

static PyType_Spec channel_spec = {"limosa._fast_path.Channel", sizeof(Channel), 0, Py_TPFLAGS_DEFAULT, channel_slots};

static int execute(PyObject *module)
{
    PyObject *type = find_functions() ? PyType_FromSpec(&channel_spec) : NULL;
    if (type == NULL)
        return -1;
    const int result = PyModule_AddObjectRef(module, "Channel", type);
    Py_DECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "limosa._fast_path",
    "Calls of MPI without mpi4py's preparations.",
    0,
    NULL,
    module_slots,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__fast_path(void)
{
    return PyModuleDef_Init(&module);
}
