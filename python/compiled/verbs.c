/* The methods of `limosa.Comm` that programs call most often, from Python's call to MPI's without a frame of Python.
 *
 * Contract
 * --------
 * `limosa.Comm` is derived from `Verbs`, which has its channel, and `adopt(Comm, faults)` puts a compiled method before
 * each method of Python that is listed here. The compiled one does a call with ordinary arguments and short values. It
 * leaves the rest to Python:
 *
 * - to `_long_VERB`, what goes on after the exchange of a collective call, or a message that is not short;
 * - to the method of Python before which it stands, whatever else it was given: that one also says what is wrong;
 * - to `_blame` or `_explained`, an exception of MPI, which these translate.
 *
 * The compiled methods have the docstrings of those of Python.
 */
#include "channel.h"

#include <limits.h>
#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD PyObject *channel;
} Verbs;

enum { MOST_VALUES = 3, MOST_DEFAULTS = 8 };

/* What a parameter is if it is not given. */
enum { REQUIRED, NONE, ZERO, SUM, ANY };

typedef struct {
    const char *name;
    int otherwise;
} Parameter;

typedef struct {
    const char *name;
    Parameter parameters[MOST_VALUES]; /* that can be given without a name; `out` comes behind them */
    int count;
    const char *method_of_channel; /* NULL for messages */
    const char *signature;
    /* Filled by `adopt`. */
    const PyMethodDef *method;
    PyObject *general, *at_length;
    char *doc;
} Verb;

#define X {"x", REQUIRED}
#define X_OF_ROOT {"x", NONE}
#define VALUES {"values", REQUIRED}
#define ROOT {"root", ZERO}
#define OP {"op", SUM}
#define TAG_TO_SEND {"tag", ZERO}

enum {
    SEND_VERB,
    RECV_VERB,
    BARRIER_VERB,
    BCAST_VERB,
    GATHER_VERB,
    ALLGATHER_VERB,
    SCATTER_VERB,
    ALLTOALL_VERB,
    REDUCE_VERB,
    ALLREDUCE_VERB,
    SCAN_VERB,
    EXSCAN_VERB,
    REDUCE_SCATTER_VERB,
    VERBS
};

static Verb verbs[VERBS] = {
    [SEND_VERB] = {"send", {X, {"to", REQUIRED}, TAG_TO_SEND}, 3, NULL, "($self, /, x, to, tag=0)"},
    [RECV_VERB] =
        {"recv", {{"source", ANY}, {"tag", ANY}}, 2, NULL, "($self, /, source=..., tag=..., *, out=None, status=None)"},
    [BARRIER_VERB] = {"barrier", {{NULL, 0}}, 0, "barrier", "($self, /)"},
    [BCAST_VERB] = {"bcast", {X_OF_ROOT, ROOT}, 2, "bcast", "($self, /, x=None, root=0, *, out=None)"},
    [GATHER_VERB] = {"gather", {X, ROOT}, 2, "gather", "($self, /, x, root=0, *, out=None)"},
    [ALLGATHER_VERB] = {"allgather", {X}, 1, "allgather", "($self, /, x, *, out=None)"},
    [SCATTER_VERB] =
        {"scatter", {{"values", NONE}, ROOT}, 2, "scatter", "($self, /, values=None, root=0, *, out=None)"},
    [ALLTOALL_VERB] = {"alltoall", {VALUES}, 1, "alltoall", "($self, /, values, *, out=None)"},
    [REDUCE_VERB] = {"reduce", {X, OP, ROOT}, 3, "reduce", "($self, /, x, op='sum', root=0, *, out=None)"},
    [ALLREDUCE_VERB] = {"allreduce", {X, OP}, 2, "allreduce", "($self, /, x, op='sum', *, out=None)"},
    [SCAN_VERB] = {"scan", {X, OP}, 2, "scan", "($self, /, x, op='sum', *, out=None)"},
    [EXSCAN_VERB] = {"exscan", {X, OP}, 2, "exscan", "($self, /, x, op='sum', *, out=None)"},
    [REDUCE_SCATTER_VERB] =
        {"reduce_scatter", {VALUES, OP}, 2, "reduce_scatter", "($self, /, values, op='sum', *, out=None)"},
};

static PyTypeObject *channel_type;
static PyObject *defaults[MOST_DEFAULTS]; /* by the names above */
static PyObject *faults;                  /* a tuple of exceptions */

/* ---- arguments ------------------------------------------------------------------------------------------------- */

/* What a call was given. The references are borrowed. */
typedef struct {
    PyObject *values[MOST_VALUES];
    PyObject *out, *status;
} Given;

static PyObject **place_of(const Verb *verb, Given *given, PyObject *name)
{
    for (int i = 0; i < verb->count; i++)
        if (PyUnicode_CompareWithASCIIString(name, verb->parameters[i].name) == 0)
            return &given->values[i];
    if (verb != &verbs[SEND_VERB] && verb != &verbs[BARRIER_VERB] && PyUnicode_CompareWithASCIIString(name, "out") == 0)
        return &given->out;
    if (verb == &verbs[RECV_VERB] && PyUnicode_CompareWithASCIIString(name, "status") == 0)
        return &given->status;
    return NULL;
}

/* Sort the arguments; false if they are not right. */
static bool sort(const Verb *verb, PyObject *const *args, Py_ssize_t number, PyObject *names, Given *given)
{
    *given = (Given){.out = NULL};
    if (number > verb->count)
        return false;
    for (Py_ssize_t i = 0; i < number; i++)
        given->values[i] = args[i];
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++) {
        PyObject **place = place_of(verb, given, PyTuple_GetItem(names, i));
        if (place == NULL || *place != NULL)
            return false;
        *place = args[number + i];
    }
    for (int i = 0; i < verb->count; i++)
        if (given->values[i] == NULL && (given->values[i] = defaults[verb->parameters[i].otherwise]) == NULL)
            return false;
    if (given->out == Py_None)
        given->out = NULL;
    if (given->status == Py_None)
        given->status = NULL;
    return true;
}

/* Do the call with the method of Python. */
static PyObject *general(const Verb *verb, PyObject *self, PyObject *const *args, Py_ssize_t number, PyObject *names)
{
    const Py_ssize_t named = names == NULL ? 0 : PyTuple_Size(names);
    PyObject *positional = PyTuple_New(number + 1), *keywords = named > 0 ? PyDict_New() : NULL, *result = NULL;
    if (positional == NULL || (named > 0 && keywords == NULL))
        goto end;
    PyTuple_SetItem(positional, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < number; i++)
        PyTuple_SetItem(positional, i + 1, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; i < named; i++)
        if (PyDict_SetItem(keywords, PyTuple_GetItem(names, i), args[number + i]) != 0)
            goto end;
    result = PyObject_Call(verb->general, positional, keywords);
end:
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

/* Take the exception that has been raised, as an object. */
static PyObject *raised(void)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    return value;
}

/* ---- collective calls -------------------------------------------------------------------------------------------- */

typedef PyObject *(*WithArray)(PyObject *, PyObject *const *, Py_ssize_t);

/* Do the exchange; see `limosa._channel`. */
static PyObject *exchange(const Verb *verb, PyObject *channel, const Given *given)
{
    const PyCFunction method = verb->method->ml_meth;
    if ((verb->method->ml_flags & METH_FASTCALL) != 0)
        return ((WithArray)(void (*)(void))method)(channel, given->values, verb->count);
    return method(channel, verb->count > 0 ? given->values[0] : NULL);
}

static PyObject *at_length(const Verb *verb, PyObject *self, const Given *given)
{
    PyObject *const *values = given->values, *out = given->out;
    switch (verb->count) {
    case 0: return PyObject_CallFunctionObjArgs(verb->at_length, self, NULL);
    case 1: return PyObject_CallFunctionObjArgs(verb->at_length, self, values[0], out, NULL);
    case 2: return PyObject_CallFunctionObjArgs(verb->at_length, self, values[0], values[1], out, NULL);
    default: return PyObject_CallFunctionObjArgs(verb->at_length, self, values[0], values[1], values[2], out, NULL);
    }
}

static PyObject *collective(const Verb *verb, PyObject *self, PyObject *const *args, Py_ssize_t number, PyObject *names)
{
    Given given;
    PyObject *channel = ((Verbs *)self)->channel;
    if (channel == NULL || Py_TYPE(channel) != channel_type || !sort(verb, args, number, names, &given))
        return general(verb, self, args, number, names);
    Py_INCREF(channel);
    PyObject *result =
        given.out == NULL ? exchange(verb, channel, &given) : PyObject_CallMethod(channel, "announce", NULL);
    Py_DECREF(channel);
    if (result == Py_NotImplemented) {
        Py_DECREF(result);
        result = at_length(verb, self, &given);
    }
    if (result == NULL && PyErr_ExceptionMatches(faults)) {
        PyObject *error = raised();
        result = PyObject_CallMethod(self, "_blame", "Os", error, verb->name);
        Py_DECREF(error);
    }
    return result;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Whether this is a number that a rank or tag may be. */
static bool is_natural(PyObject *object, int *number)
{
    if (Py_TYPE(object) != &PyLong_Type)
        return false;
    int overflow;
    const long value = PyLong_AsLongAndOverflow(object, &overflow);
    *number = (int)value;
    return overflow == 0 && value >= 0 && value <= INT_MAX;
}

/* Raise what `limosa.errors` has for what MPI has raised in a call with this partner and tag. */
static PyObject *explained(const Verb *verb, PyObject *self, PyObject *partner, PyObject *tag)
{
    if (!PyErr_ExceptionMatches(faults) && !PyErr_ExceptionMatches(PyExc_OverflowError))
        return NULL;
    PyObject *error = raised();
    PyObject *result = PyObject_CallMethod(self, "_explained", "OsOO", error, verb->name, partner, tag);
    Py_DECREF(error);
    return result;
}

/* Send a short value; NotImplemented, and nothing has been sent, if it is none. The pickle of an object that is longer
 * is given in `stream`. */
static PyObject *send_short(Channel *channel, PyObject *x, int to, int tag, PyObject **stream)
{
    if ((PyObject *)Py_TYPE(x) == channel->array)
        return send_short_array(channel, x, to, tag);
    const int trusted = PySet_Contains(channel->trusted, (PyObject *)Py_TYPE(x));
    if (trusted <= 0) {
        if (trusted < 0)
            return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyObject *result = send_pickle(channel, x, to, tag, channel->inbox.len);
    if (result != NULL && result != Py_None) {
        *stream = result;
        Py_RETURN_NOTIMPLEMENTED;
    }
    return result;
}

static PyObject *verb_send(PyObject *self, PyObject *const *args, Py_ssize_t number, PyObject *names)
{
    const Verb *verb = &verbs[SEND_VERB];
    Given given;
    int to, tag;
    PyObject *channel = ((Verbs *)self)->channel, *stream = NULL;
    if (channel == NULL || Py_TYPE(channel) != channel_type || !sort(verb, args, number, names, &given) ||
        !is_natural(given.values[1], &to) || !is_natural(given.values[2], &tag))
        return general(verb, self, args, number, names);
    Py_INCREF(channel);
    PyObject *result = send_short((Channel *)channel, given.values[0], to, tag, &stream);
    Py_DECREF(channel);
    if (result == Py_NotImplemented) {
        Py_DECREF(result);
        result = PyObject_CallFunctionObjArgs(verb->at_length, self, given.values[0], given.values[1], given.values[2],
                                              stream, NULL);
        Py_XDECREF(stream);
        return result;
    }
    return result == NULL ? explained(verb, self, given.values[1], given.values[2]) : result;
}

static PyObject *verb_recv(PyObject *self, PyObject *const *args, Py_ssize_t number, PyObject *names)
{
    const Verb *verb = &verbs[RECV_VERB];
    Given given;
    PyObject *channel = ((Verbs *)self)->channel;
    if (channel == NULL || Py_TYPE(channel) != channel_type || !sort(verb, args, number, names, &given))
        return general(verb, self, args, number, names);
    PyObject *source = given.values[0], *tag = given.values[1];
    const bool plain = given.out == NULL && given.status == NULL;
    Py_INCREF(channel);
    PyObject *value = plain ? receive_value((Channel *)channel, given.values) : Py_NewRef(defaults[NONE]);
    const bool nothing = plain && value == ((Channel *)channel)->nothing;
    const bool other = plain && value == ((Channel *)channel)->other;
    Py_DECREF(channel);
    if (value == NULL)
        return explained(verb, self, source, tag);
    if (plain && !nothing && !other)
        return value;
    Py_DECREF(value);
    return PyObject_CallFunctionObjArgs(verb->at_length, self, source, tag, given.out == NULL ? Py_None : given.out,
                                        given.status == NULL ? Py_None : given.status, other ? Py_True : Py_False,
                                        NULL);
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

#define COLLECTIVE(name, number)                                                                                       \
    static PyObject *verb_##name(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names)             \
    {                                                                                                                  \
        return collective(&verbs[number], self, args, given, names);                                                   \
    }
COLLECTIVE(barrier, BARRIER_VERB)
COLLECTIVE(bcast, BCAST_VERB)
COLLECTIVE(gather, GATHER_VERB)
COLLECTIVE(allgather, ALLGATHER_VERB)
COLLECTIVE(scatter, SCATTER_VERB)
COLLECTIVE(alltoall, ALLTOALL_VERB)
COLLECTIVE(reduce, REDUCE_VERB)
COLLECTIVE(allreduce, ALLREDUCE_VERB)
COLLECTIVE(scan, SCAN_VERB)
COLLECTIVE(exscan, EXSCAN_VERB)
COLLECTIVE(reduce_scatter, REDUCE_SCATTER_VERB)

#define METHOD(number, name)                                                                                           \
    [number] = {#name, (PyCFunction)(void (*)(void))verb_##name, METH_FASTCALL | METH_KEYWORDS, NULL}

/* Their texts are filled in by `adopt`. */
static PyMethodDef methods[VERBS] = {
    METHOD(SEND_VERB, send),
    METHOD(RECV_VERB, recv),
    METHOD(BARRIER_VERB, barrier),
    METHOD(BCAST_VERB, bcast),
    METHOD(GATHER_VERB, gather),
    METHOD(ALLGATHER_VERB, allgather),
    METHOD(SCATTER_VERB, scatter),
    METHOD(ALLTOALL_VERB, alltoall),
    METHOD(REDUCE_VERB, reduce),
    METHOD(ALLREDUCE_VERB, allreduce),
    METHOD(SCAN_VERB, scan),
    METHOD(EXSCAN_VERB, exscan),
    METHOD(REDUCE_SCATTER_VERB, reduce_scatter),
};

/* Give a text as Python finds the signature in it; NULL with a Python error. It is never freed: neither are methods. */
static char *text_of(const Verb *verb)
{
    PyObject *doc = PyObject_GetAttrString(verb->general, "__doc__");
    PyObject *text = doc == NULL ? NULL : PyUnicode_FromFormat("%s%s\n--\n\n%S", verb->name, verb->signature, doc);
    Py_ssize_t length;
    const char *bytes = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &length);
    char *copy = bytes == NULL ? NULL : PyMem_Malloc((size_t)length + 1);
    if (copy != NULL)
        memcpy(copy, bytes, (size_t)length + 1);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(doc);
    Py_XDECREF(text);
    return copy;
}

static const PyMethodDef *method_of_channel(const char *name)
{
    for (int i = 0; i < COLLECTIVE_METHODS; i++)
        if (strcmp(collective_methods[i].ml_name, name) == 0)
            return &collective_methods[i];
    PyErr_Format(PyExc_SystemError, "a channel has no method %s", name);
    return NULL;
}

static bool adopt_verb(PyObject *comm, Verb *verb, PyMethodDef *definition)
{
    PyObject *name = PyUnicode_FromFormat("_long_%s", verb->name);
    verb->general = PyObject_GetAttrString(comm, verb->name);
    verb->at_length = name == NULL ? NULL : PyObject_GetAttr(comm, name);
    Py_XDECREF(name);
    if (verb->general == NULL || verb->at_length == NULL)
        return false;
    if (verb->method_of_channel != NULL && (verb->method = method_of_channel(verb->method_of_channel)) == NULL)
        return false;
    definition->ml_doc = text_of(verb);
    PyObject *method = definition->ml_doc == NULL ? NULL : PyDescr_NewMethod((PyTypeObject *)comm, definition);
    const bool fine = method != NULL && PyObject_SetAttrString(comm, verb->name, method) == 0;
    Py_XDECREF(method);
    return fine;
}

PyObject *adopt(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *comm, *any;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyType_Type, &comm, &any, &PyTuple_Type, &faults))
        return NULL;
    if (defaults[NONE] != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "there is one class of communicators");
        return NULL;
    }
    Py_INCREF(faults);
    defaults[NONE] = Py_NewRef(Py_None);
    defaults[ZERO] = PyLong_FromLong(0);
    defaults[SUM] = PyUnicode_InternFromString("sum");
    defaults[ANY] = Py_NewRef(any);
    if (defaults[ZERO] == NULL || defaults[SUM] == NULL)
        return NULL;
    for (int i = 0; i < VERBS; i++)
        if (!adopt_verb(comm, &verbs[i], &methods[i]))
            return NULL;
    Py_RETURN_NONE;
}

static void verbs_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_CLEAR(((Verbs *)object)->channel);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"_channel", T_OBJECT_EX, offsetof(Verbs, channel), 0, "What this communicator communicates through."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What communicators are derived from: methods for short values."},
    {Py_tp_dealloc, verbs_dealloc},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {"limosa._fast_path.Verbs", sizeof(Verbs), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           slots};

PyObject *verbs_type(PyTypeObject *type_of_channels)
{
    channel_type = type_of_channels;
    return PyType_FromSpec(&spec);
}
