/* limosa._fast_path: the calls of MPI that `import limosa` makes most often, with nothing between Python and MPI.
 *
 * Contract
 * --------
 * A `Channel` belongs to one communicator of mpi4py. Its methods for messages are here; those of collective calls are
 * in collectives.c, and the methods of `limosa.Comm` that use them in verbs.c. They raise what mpi4py would raise.
 * `limosa._channel` says what each does, and has a slower twin.
 *
 * The module is built on Python's stable ABI and on MPI's standard ABI. It is not linked with an MPI library: it takes
 * the functions of the one that mpi4py has loaded. Without it `import limosa` works the same, only slower.
 */
#include "channel.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

/* ---- MPI ------------------------------------------------------------------------------------------------------- */

struct functions mpi;

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

/* Raise what mpi4py would raise. It is made at once: if a signal has ended the call, this raises what its handler has.
 */
PyObject *failure(const Channel *self, int code)
{
    PyObject *number = PyLong_FromLong(code);
    PyObject *error = number == NULL ? NULL : PyObject_CallFunctionObjArgs(self->error, number, NULL);
    if (error != NULL)
        PyErr_SetObject(self->error, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *outcome(const Channel *self, int code)
{
    if (code != MPI_SUCCESS)
        return failure(self, code);
    Py_RETURN_NONE;
}

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
    int to, tag, most;
    if (!expect(given, 4) || !number_of(args[1], &to) || !number_of(args[2], &tag) || !number_of(args[3], &most))
        return NULL;
    return send_pickle(self, args[0], to, tag, most);
}

PyObject *send_pickle(const Channel *self, PyObject *x, int to, int tag, Py_ssize_t most)
{
    int code;
    char *stream;
    Py_ssize_t length;
    PyObject *pickled = PyObject_CallFunctionObjArgs(self->dumps, x, self->five, NULL);
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

/* The longest message that is put together here. */
enum { MOST = 8192 };

PyObject *send_short_array(const Channel *self, PyObject *x, int to, int tag)
{
    enum { CONTIGUOUS = 1, MOST_DIMS = 3, ARRAY_KIND = 1, NAME_AT = 8, SHAPE_AT = 20 };
    const Array *array = (const Array *)x;
    const int dtype = index_of(self->all.dtypes, array->dtype);
    if (dtype < 0 || array->ndim > MOST_DIMS || (array->flags & CONTIGUOUS) == 0)
        Py_RETURN_NOTIMPLEMENTED;
    int64_t shape[MOST_DIMS] = {-1, -1, -1};
    size_t bytes = self->all.itemsizes[dtype];
    bool short_axes = true;
    for (int i = 0; i < array->ndim; i++) {
        shape[i] = array->shape[i];
        short_axes = short_axes && shape[i] <= MOST;
        bytes *= short_axes ? (size_t)shape[i] : 0;
    }
    if (!short_axes || bytes > MOST - HEAD)
        Py_RETURN_NOTIMPLEMENTED;
    /* The head is described in limosa/_packet.py. */
    char message[MOST];
    const int32_t rank = self->rank;
    memset(message, 0, HEAD);
    message[0] = ARRAY_KIND;
    memcpy(message + 4, &rank, sizeof rank);
    memcpy(message + NAME_AT, self->all.names[dtype], DTYPE_NAME);
    memcpy(message + SHAPE_AT, shape, sizeof shape);
    memcpy(message + HEAD, array->data, bytes);
    int code;
    CALL(code, mpi.Send(message, (int)(HEAD + bytes), MPI_BYTE, to, tag, self->comm));
    return outcome(self, code);
}

/* send_array(head, x, to, tag): send the head and the memory of a C-contiguous array; False if it is none. */
static PyObject *channel_send_array(Channel *self, PyObject *const *args, Py_ssize_t given)
{
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
    return expect(given, 2) ? receive_value(self, args) : NULL;
}

PyObject *receive_value(Channel *self, PyObject *const *args)
{
    int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG, code;
    if (self->receiving || self->diverted || (args[0] != self->any && !PyLong_CheckExact(args[0])) ||
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
    else if (inbox[0] == PICKLE_MARK)
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

/* divert(yes): whether `value` receives nothing from now on */
static PyObject *channel_divert(Channel *self, PyObject *yes)
{
    self->diverted = yes == Py_True;
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

/* ---- the type and the module ------------------------------------------------------------------------------------- */

/* Channel(handle, rank, size, inbox, error, array, any, other, nothing, dtypes, scalars, ops, pickled, trusted) */
static PyObject *channel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    long long handle;
    int rank, size;
    PyObject *inbox, *error, *array, *any, *other, *nothing, *dtypes, *scalars, *ops, *pickled, *trusted;
    if (keywords != NULL && PyDict_Size(keywords) != 0) {
        PyErr_SetString(PyExc_TypeError, "Channel takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "LiiOOOOOOOOOOO!", &handle, &rank, &size, &inbox, &error, &array, &any, &other,
                          &nothing, &dtypes, &scalars, &ops, &pickled, &PySet_Type, &trusted))
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
    self->trusted = Py_NewRef(trusted);
    self->copy = PyObject_GetAttrString(array, "copy");
    self->dumps = PyObject_GetAttrString(pickle, "dumps");
    self->loads = PyObject_GetAttrString(pickle, "loads");
    self->five = PyLong_FromLong(5);
    Py_DECREF(pickle);
    if (size < 1 || rank < 0 || rank >= size) {
        PyErr_SetString(PyExc_ValueError, "there is no such rank");
        Py_DECREF(made);
        return NULL;
    }
    if (self->copy == NULL || self->dumps == NULL || self->loads == NULL || self->five == NULL ||
        !memory_of(inbox, &self->inbox, PyBUF_WRITABLE) ||
        (self->inbox_view = PyMemoryView_FromObject(inbox)) == NULL ||
        !set_up_collectives(self, dtypes, scalars, ops, pickled)) {
        Py_DECREF(made);
        return NULL;
    }
    if (self->inbox.len < HEAD) {
        PyErr_SetString(PyExc_ValueError, "the inbox has no room for a head");
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

static void channel_dealloc(PyObject *object)
{
    Channel *self = (Channel *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *owned[] = {self->error, self->array, self->copy,       self->dumps,        self->loads,   self->five,
                         self->any,   self->other, self->inbox_view, self->arrived.view, self->nothing, self->trusted};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        Py_XDECREF(owned[i]);
    if (self->inbox.obj != NULL)
        PyBuffer_Release(&self->inbox);
    tear_down_collectives(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#define METHOD(name, flags, text) {#name, (PyCFunction)(void (*)(void))channel_##name, flags, text}

static PyMethodDef message_methods[] = {
    METHOD(send, METH_FASTCALL, "send(data, to, tag): MPI_Send of bytes"),
    METHOD(recv, METH_FASTCALL, "recv(room, source, tag): MPI_Recv of bytes"),
    METHOD(send_pickled, METH_FASTCALL, "send_pickled(x, to, tag, most): send the pickle of an object"),
    METHOD(send_array, METH_FASTCALL, "send_array(head, x, to, tag): send a head and the memory of an array"),
    METHOD(value, METH_FASTCALL, "value(source, tag): receive a value"),
    METHOD(done, METH_O, "done(view): the inbox has been read"),
    METHOD(divert, METH_O, "divert(yes): whether `value` receives nothing from now on"),
};

enum { MESSAGE_METHODS = sizeof message_methods / sizeof *message_methods };

/* All of them; filled when the module is made. */
static PyMethodDef channel_methods[MESSAGE_METHODS + COLLECTIVE_METHODS + 1];

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
    memcpy(channel_methods, message_methods, sizeof message_methods);
    memcpy(channel_methods + MESSAGE_METHODS, collective_methods, COLLECTIVE_METHODS * sizeof *collective_methods);
    PyObject *type = find_functions() ? PyType_FromSpec(&channel_spec) : NULL;
    if (type == NULL)
        return -1;
    int result = PyModule_AddObjectRef(module, "Channel", type);
    PyObject *base = result == 0 ? verbs_type((PyTypeObject *)type) : NULL;
    if (base == NULL || PyModule_AddObjectRef(module, "Verbs", base) != 0)
        result = -1;
    Py_DECREF(type);
    Py_XDECREF(base);
    return result;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyMethodDef functions[] = {
    {"adopt", adopt, METH_VARARGS, "adopt(Comm, ANY, faults): put the compiled methods before those of a class"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "limosa._fast_path",
    "Calls of MPI without mpi4py's preparations.",
    0,
    functions,
    module_slots,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__fast_path(void)
{
    return PyModuleDef_Init(&module);
}
