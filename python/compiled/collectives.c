/* Collective calls with short values, each in one exchange among all ranks.
 *
 * Contract
 * --------
 * Every collective call of `limosa.Comm` begins with an exchange of *slots* among all ranks (MPI_Allgather): what the
 * rank calls, and its value if that is short. All ranks see the same slots, so all come to the same decision:
 *
 * - All make the same call with the same root and reduction, and all values are short: the call is done here.
 * - Otherwise the method gives NotImplemented, on all ranks. The Python code, which can do everything, goes on from
 *   there, and says which rank called what if the ranks differ.
 *
 * A slot is a mark (the call), a form (what the value is) and the data of the value. It is NARROW bytes long, which
 * costs no more than a barrier where ranks share memory, or WIDE. If a value needs a long slot, the exchange is
 * repeated with long ones, and the next calls begin with those, until PATIENCE calls in a row had no need of them.
 */
#include "channel.h"

#include <limits.h>
#include <string.h>

enum { NARROW = 48, WIDE = 256, BEFORE_DATA = 16, PATIENCE = 4 };

/* Which call it is. */
enum {
    ANNOUNCE,
    BARRIER,
    BCAST,
    GATHER,
    ALLGATHER,
    SCATTER,
    ALLTOALL,
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    REDUCE_SCATTER
};

/* What a value is. LONG is for the Python code, LARGE fits a long slot only. */
enum { LONG, LARGE, NOTHING, FLOAT, INTEGER, BYTES, SCALAR, ARRAY, PICKLE, ITEMS };

enum { SUM = 1, PROD, MAX, MIN }; /* numbers of reductions; others have further ones */

typedef struct {
    uint8_t call, op;
    uint8_t unused[2];
    uint32_t root;
} Mark;

typedef struct {
    uint8_t kind, dtype, ndim, length; /* length: of the data in bytes */
    uint8_t shape[3];
    uint8_t unused;
} Form;

/* The data are aligned for all dtypes. */
typedef struct {
    Mark mark;
    Form form;
    char data[WIDE - BEFORE_DATA];
} Slot;

enum { DATA = WIDE - BEFORE_DATA, SHORT_DATA = NARROW - BEFORE_DATA };

static const Slot *slot_of(const Channel *self, int rank)
{
    return (const Slot *)(self->all.slots + (size_t)rank * self->all.stride);
}

static bool same_form(const Slot *a, const Slot *b)
{
    return memcmp(&a->form, &b->form, sizeof a->form) == 0;
}

/* Whether all ranks have arrays of the same dtype and shape. */
static bool all_arrays(const Channel *self)
{
    const Slot *first = slot_of(self, 0);
    for (int rank = 1; rank < self->size; rank++)
        if (!same_form(first, slot_of(self, rank)))
            return false;
    return first->form.kind == ARRAY;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

enum { FAILED = -1, GENERAL, DONE }; /* with a Python error; the Python code goes on; all values are in the slots */

/* Exchange slots of so many bytes. */
static bool exchange(Channel *self, const Slot *own, int bytes)
{
    int code;
    self->all.stride = (size_t)bytes;
    self->busy = true;
    CALL(code, mpi.Allgather(own, bytes, MPI_BYTE, self->all.slots, bytes, MPI_BYTE, self->comm));
    self->busy = false;
    if (code != MPI_SUCCESS)
        failure(self, code);
    return code == MPI_SUCCESS;
}

/* Say what this rank does, hear what all do, and find out how to go on. */
static int meet(Channel *self, Slot *own)
{
    Collectives *all = &self->all;
    if (self->busy)
        return GENERAL;
    const bool was_wide = all->wide;
    const Form form = own->form;
    if (!was_wide && form.length > SHORT_DATA)
        own->form = (Form){.kind = LARGE};
    if (!exchange(self, own, was_wide ? WIDE : NARROW))
        return FAILED;
    bool large = false;
    int longest = 0;
    for (int rank = 0; rank < self->size; rank++) {
        const Slot *slot = slot_of(self, rank);
        if (slot->form.kind == LONG || memcmp(&slot->mark, &own->mark, sizeof own->mark) != 0) {
            all->wide = false;
            return GENERAL;
        }
        large = large || slot->form.kind == LARGE;
        longest = slot->form.length > longest ? slot->form.length : longest;
    }
    if (large) {
        own->form = form;
        all->wide = true;
        all->idle = 0;
        return exchange(self, own, WIDE) ? DONE : FAILED;
    }
    if (was_wide) {
        all->idle = longest > SHORT_DATA ? 0 : all->idle + 1;
        all->wide = all->idle < PATIENCE;
    }
    return DONE;
}

static PyObject *unless(int outcome)
{
    if (outcome == FAILED)
        return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}

/* ---- from values to slots ---------------------------------------------------------------------------------------- */

/* These give false with a Python error that is not about the value, such as KeyboardInterrupt. What cannot be sent in a
 * slot becomes LONG: the Python code says what is wrong with it, if anything is. */

static bool cannot(Form *form)
{
    *form = (Form){.kind = LONG};
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

static bool put(Form *form, char *data, size_t room, int kind, const void *bytes, size_t length)
{
    if (length > room)
        return cannot(form);
    *form = (Form){.kind = (uint8_t)kind, .length = (uint8_t)length};
    memcpy(data, bytes, length);
    return true;
}

static bool put_pickle(Channel *self, PyObject *x, Form *form, char *data, size_t room)
{
    enum { SURPRISE = 16384 };
    char *bytes;
    Py_ssize_t length;
    PyObject *stream = PyObject_CallFunctionObjArgs(self->dumps, x, self->five, NULL);
    if (stream == NULL || PyBytes_AsStringAndSize(stream, &bytes, &length) != 0) {
        Py_XDECREF(stream);
        return cannot(form);
    }
    /* Such objects are better not pickled in vain again. */
    if (length > SURPRISE && PySet_Discard(self->all.pickled, (PyObject *)Py_TYPE(x)) < 0)
        PyErr_Clear();
    const bool fine = put(form, data, room, PICKLE, bytes, (size_t)length);
    Py_DECREF(stream);
    return fine;
}

/* Find an object among at most DTYPES; -1 if it is not there. */
int index_of(PyObject *const *objects, const PyObject *wanted)
{
    for (int i = 0; i < DTYPES && objects[i] != NULL; i++)
        if (objects[i] == wanted)
            return i;
    return -1;
}

static bool put_array(Channel *self, PyObject *x, Form *form, char *data, size_t room)
{
    enum { CONTIGUOUS = 1 }; /* NPY_ARRAY_C_CONTIGUOUS */
    const Array *array = (const Array *)x;
    const int number = index_of(self->all.dtypes, array->dtype);
    if (number < 0 || array->ndim > 3 || (array->flags & CONTIGUOUS) == 0)
        return cannot(form);
    size_t bytes = self->all.itemsizes[number];
    *form = (Form){.kind = ARRAY, .dtype = (uint8_t)number, .ndim = (uint8_t)array->ndim};
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] > UCHAR_MAX)
            return cannot(form);
        form->shape[i] = (uint8_t)array->shape[i];
        bytes *= (size_t)array->shape[i];
    }
    if (bytes > room)
        return cannot(form);
    form->length = (uint8_t)bytes;
    memcpy(data, array->data, bytes);
    return true;
}

static bool put_scalar(PyObject *x, int dtype, Form *form, char *data, size_t room)
{
    Py_buffer scalar;
    if (PyObject_GetBuffer(x, &scalar, PyBUF_SIMPLE) != 0)
        return cannot(form);
    const bool fine = put(form, data, room, SCALAR, scalar.buf, (size_t)scalar.len);
    PyBuffer_Release(&scalar);
    form->dtype = (uint8_t)dtype;
    return fine;
}

/* Write a value that is no array. */
static bool put_object(Channel *self, PyObject *x, Form *form, char *data, size_t room)
{
    PyObject *type = (PyObject *)Py_TYPE(x);
    if (type == (PyObject *)&PyFloat_Type) {
        const double value = PyFloat_AsDouble(x);
        return put(form, data, room, FLOAT, &value, sizeof value);
    }
    if (type == (PyObject *)&PyLong_Type) {
        int overflow;
        const int64_t value = PyLong_AsLongLongAndOverflow(x, &overflow);
        return overflow ? put_pickle(self, x, form, data, room) : put(form, data, room, INTEGER, &value, sizeof value);
    }
    if (type == (PyObject *)&PyBytes_Type) {
        char *bytes;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(x, &bytes, &length) != 0)
            return cannot(form);
        return put(form, data, room, BYTES, bytes, (size_t)length);
    }
    const int dtype = index_of(self->all.scalars, type);
    if (dtype >= 0)
        return put_scalar(x, dtype, form, data, room);
    const int known = PySet_Contains(self->all.pickled, type);
    return known > 0 ? put_pickle(self, x, form, data, room) : cannot(form);
}

/* Write a value. */
static bool put_value(Channel *self, PyObject *x, Slot *slot)
{
    if ((PyObject *)Py_TYPE(x) == self->array)
        return put_array(self, x, &slot->form, slot->data, DATA);
    return put_object(self, x, &slot->form, slot->data, DATA);
}

/* Before each item of ITEMS. */
enum { ITEM_HEAD = 3 };

/* Write one item for each rank: an array whose first axis has them, or a list or tuple of other values. */
static bool put_items(Channel *self, PyObject *values, Slot *slot)
{
    Form *form = &slot->form;
    const bool is_list = PyList_CheckExact(values);
    if ((PyObject *)Py_TYPE(values) == self->array) {
        const bool fine = put_value(self, values, slot);
        if (form->kind == ARRAY && (form->ndim == 0 || form->shape[0] != self->size))
            cannot(form);
        return fine;
    }
    if ((!is_list && !PyTuple_CheckExact(values)) || PyObject_Size(values) != self->size)
        return cannot(form);
    size_t used = 0;
    for (int rank = 0; rank < self->size; rank++) {
        /* Pickling another item may have changed the list. */
        PyObject *item = is_list ? PyList_GetItem(values, rank) : PyTuple_GetItem(values, rank);
        Form of_item;
        if (item == NULL || used + ITEM_HEAD > DATA)
            return cannot(form);
        Py_INCREF(item);
        const bool fine = put_object(self, item, &of_item, slot->data + used + ITEM_HEAD, DATA - used - ITEM_HEAD);
        Py_DECREF(item);
        if (!fine || of_item.kind == LONG) {
            form->kind = LONG;
            return fine;
        }
        memcpy(slot->data + used, (uint8_t[]){of_item.kind, of_item.dtype, of_item.length}, ITEM_HEAD);
        used += ITEM_HEAD + of_item.length;
    }
    *form = (Form){.kind = ITEMS, .length = (uint8_t)used};
    return true;
}

/* ---- from slots to values ---------------------------------------------------------------------------------------- */

/* Give the array over our memory of this dtype and shape: that of the form without the first `skipped` axes, and with
 * one more before them if `rows` is not negative. The reference is borrowed. */
static PyObject *template_of(Channel *self, const Form *form, int skipped, Py_ssize_t rows)
{
    Collectives *all = &self->all;
    uint64_t number = (uint64_t)(rows + 1) << 32 | (uint64_t)form->dtype << 4 | (uint64_t)(form->ndim - skipped);
    for (int i = skipped; i < form->ndim; i++)
        number |= (uint64_t)form->shape[i] << (8 + 8 * (i - skipped));
    PyObject *key = PyLong_FromUnsignedLongLong(number);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(all->templates, key);
    if (found == NULL && key != NULL && !PyErr_Occurred()) {
        PyObject *shape = PyList_New(0);
        for (int i = skipped - (rows >= 0); shape != NULL && i < form->ndim; i++) {
            PyObject *length = PyLong_FromSsize_t(i < skipped ? rows : form->shape[i]);
            if (length == NULL || PyList_Append(shape, length) != 0)
                Py_CLEAR(shape);
            Py_XDECREF(length);
        }
        PyObject *made = shape == NULL ? NULL
                                       : PyObject_CallFunctionObjArgs(self->array, shape, all->dtypes[form->dtype],
                                                                      all->memory, NULL);
        Py_XDECREF(shape);
        if (PyDict_Size(all->templates) >= 1024)
            PyDict_Clear(all->templates);
        if (made != NULL && PyDict_SetItem(all->templates, key, made) == 0)
            found = made; /* the dict keeps it */
        Py_XDECREF(made);
    }
    Py_XDECREF(key);
    return found;
}

/* Give a new array of what is in our memory; or a NumPy scalar. */
static PyObject *taken(Channel *self, const Form *form, int skipped, Py_ssize_t rows, bool scalar)
{
    PyObject *view = template_of(self, form, skipped, rows);
    if (view == NULL)
        return NULL;
    Py_INCREF(view);
    PyObject *made =
        scalar ? PyObject_GetItem(view, self->all.empty) : PyObject_CallFunctionObjArgs(self->copy, view, NULL);
    Py_DECREF(view);
    return made;
}

static PyObject *value_of(Channel *self, const Form *form, const char *data)
{
    double real;
    int64_t integer;
    PyObject *stream, *made;
    switch (form->kind) {
    case FLOAT: memcpy(&real, data, sizeof real); return PyFloat_FromDouble(real);
    case INTEGER: memcpy(&integer, data, sizeof integer); return PyLong_FromLongLong(integer);
    case BYTES: return PyBytes_FromStringAndSize(data, form->length);
    case SCALAR:
    case ARRAY: memcpy(self->all.start, data, form->length); return taken(self, form, 0, -1, form->kind == SCALAR);
    case PICKLE:
        stream = PyBytes_FromStringAndSize(data, form->length);
        made = stream == NULL ? NULL : PyObject_CallFunctionObjArgs(self->loads, stream, NULL);
        Py_XDECREF(stream);
        return made;
    default: Py_RETURN_NONE;
    }
}

/* Give the item for this rank of a slot. */
static PyObject *item_of(Channel *self, const Slot *slot)
{
    const Form *form = &slot->form;
    if (form->kind == ARRAY) {
        const size_t row = form->length / (size_t)self->size;
        memcpy(self->all.start, slot->data + row * (size_t)self->rank, row);
        return taken(self, form, 1, -1, form->ndim == 1);
    }
    size_t place = 0;
    for (int rank = 0; rank < self->rank; rank++)
        place += ITEM_HEAD + (uint8_t)slot->data[place + 2];
    const uint8_t *head = (const uint8_t *)slot->data + place;
    const Form of_item = {.kind = head[0], .dtype = head[1], .length = head[2]};
    return value_of(self, &of_item, slot->data + place + ITEM_HEAD);
}

/* Give the values of all ranks, or the items for this rank: an array of arrays, else a list. */
static PyObject *values_of(Channel *self, bool items)
{
    if (all_arrays(self)) {
        const Form form = slot_of(self, 0)->form;
        const size_t bytes = form.length / (items ? (size_t)self->size : 1);
        for (int rank = 0; rank < self->size; rank++)
            memcpy(self->all.start + (size_t)rank * bytes,
                   slot_of(self, rank)->data + (items ? bytes * (size_t)self->rank : 0), bytes);
        return taken(self, &form, items, self->size, false);
    }
    PyObject *list = PyList_New(self->size);
    for (int rank = 0; list != NULL && rank < self->size; rank++) {
        const Slot *slot = slot_of(self, rank);
        PyObject *value = items ? item_of(self, slot) : value_of(self, &slot->form, slot->data);
        if (value == NULL || PyList_SetItem(list, rank, value) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* ---- reductions ------------------------------------------------------------------------------------------------ */

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
    case SUM: LOOP(type, (type)((plain)a + (plain)b));                                                                 \
    case PROD: LOOP(type, (type)((plain)a * (plain)b));                                                                \
    case MAX: LOOP(type, a >= b || a != a ? a : b);                                                                    \
    case MIN: LOOP(type, a <= b || a != a ? a : b);                                                                    \
    }                                                                                                                  \
    return

static void combine(char kind, int op, void *result, const void *operand, Py_ssize_t bytes)
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

static bool can_combine(char kind, int op)
{
    return op >= SUM && op <= MIN && kind != 0 && strchr("dflLiI", kind) != NULL;
}

/* Find the number of a reduction and its function (a borrowed reference); 0 if it is not one of those with a name. */
static int reduction_of(const Channel *self, PyObject *op, PyObject **function)
{
    PyObject *found = PyDict_GetItemWithError(self->all.ops, op);
    const long number = found == NULL ? 0 : PyLong_AsLong(PyTuple_GetItem(found, 0));
    if (number > 0)
        *function = PyTuple_GetItem(found, 1);
    PyErr_Clear(); /* it cannot be a key */
    return (int)number;
}

/* Combine two values that are not arrays. */
static PyObject *applied(int op, PyObject *function, bool numbers, PyObject *a, PyObject *b)
{
    if (!numbers || op > MIN)
        return PyObject_CallFunctionObjArgs(function, a, b, NULL);
    if (op == SUM)
        return PyNumber_Add(a, b);
    if (op == PROD)
        return PyNumber_Multiply(a, b);
    const int better = PyObject_RichCompareBool(b, a, op == MAX ? Py_GT : Py_LT); /* as Python's max and min */
    return better < 0 ? NULL : Py_NewRef(better ? b : a);
}

static bool is_number(PyObject *x)
{
    return Py_TYPE(x) == &PyFloat_Type || Py_TYPE(x) == &PyLong_Type;
}

/* Combine the values of the first ranks, or the items for this rank; None if there are none. */
static PyObject *folded(Channel *self, int op, PyObject *function, int number, bool items)
{
    if (number == 0)
        Py_RETURN_NONE;
    if (all_arrays(self)) {
        const Form form = slot_of(self, 0)->form;
        const size_t bytes = form.length / (items ? (size_t)self->size : 1);
        const size_t place = items ? bytes * (size_t)self->rank : 0;
        memcpy(self->all.start, slot_of(self, 0)->data + place, bytes);
        for (int rank = 1; rank < number; rank++)
            combine(self->all.kinds[form.dtype], op, self->all.start, slot_of(self, rank)->data + place,
                    (Py_ssize_t)bytes);
        return taken(self, &form, items, -1, items && form.ndim == 1);
    }
    PyObject *result = NULL;
    for (int rank = 0; rank < number; rank++) {
        const Slot *slot = slot_of(self, rank);
        PyObject *next = items ? item_of(self, slot) : value_of(self, &slot->form, slot->data);
        if (rank == 0) {
            result = next;
        } else {
            PyObject *before = result;
            result = next == NULL ? NULL : applied(op, function, is_number(before) && is_number(next), before, next);
            Py_DECREF(before);
            Py_XDECREF(next);
        }
        if (result == NULL)
            return NULL;
    }
    return result;
}

/* Whether arrays must be combined that differ: the Python code says how. */
static bool differ(const Channel *self)
{
    if (all_arrays(self))
        return false;
    for (int rank = 0; rank < self->size; rank++)
        if (slot_of(self, rank)->form.kind == ARRAY)
            return true;
    return false;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static Slot begin(int call)
{
    Slot own;
    memset(&own, 0, BEFORE_DATA);
    own.mark.call = (uint8_t)call;
    own.form.kind = NOTHING;
    return own;
}

/* Find the root; if it is none, this call is for the Python code. */
static bool root_of(const Channel *self, PyObject *object, Slot *own)
{
    const long root = Py_TYPE(object) == &PyLong_Type ? PyLong_AsLong(object) : -1;
    PyErr_Clear(); /* it is too large */
    const bool valid = root >= 0 && root < self->size;
    own->mark.root = valid ? (uint32_t)root : 0;
    own->form.kind = valid ? NOTHING : LONG;
    return valid;
}

static bool expected(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given != wanted)
        PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", wanted, given);
    return given == wanted;
}

/* What is unpickled or called may make calls of its own: while the slots are read, these go another way. */
#define READING(self, value)                                                                                           \
    do {                                                                                                               \
        (self)->busy = true;                                                                                           \
        PyObject *made = (value);                                                                                      \
        (self)->busy = false;                                                                                          \
        return made;                                                                                                   \
    } while (0)

/* announce(): take part in the exchange at the beginning of a call that the Python code does. */
static PyObject *channel_announce(Channel *self, PyObject *unused)
{
    (void)unused;
    Slot own = begin(ANNOUNCE);
    own.form.kind = LONG;
    return unless(meet(self, &own));
}

/* barrier() */
static PyObject *channel_barrier(Channel *self, PyObject *unused)
{
    (void)unused;
    Slot own = begin(BARRIER);
    const int outcome = meet(self, &own);
    if (outcome != DONE)
        return unless(outcome);
    Py_RETURN_NONE;
}

/* bcast(x, root): on the root x itself. */
static PyObject *channel_bcast(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    Slot own = begin(BCAST);
    if (!expected(given, 2))
        return NULL;
    const bool is_root = root_of(self, args[1], &own) && (int)own.mark.root == self->rank;
    if (is_root && !put_value(self, args[0], &own))
        return NULL;
    const int outcome = meet(self, &own);
    if (outcome != DONE)
        return unless(outcome);
    if (is_root)
        return Py_NewRef(args[0]);
    const Slot *slot = slot_of(self, (int)own.mark.root);
    READING(self, value_of(self, &slot->form, slot->data));
}

/* scatter(values, root) */
static PyObject *channel_scatter(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    Slot own = begin(SCATTER);
    if (!expected(given, 2))
        return NULL;
    const bool is_root = root_of(self, args[1], &own) && (int)own.mark.root == self->rank;
    if (is_root && !put_items(self, args[0], &own))
        return NULL;
    const int outcome = meet(self, &own);
    if (outcome != DONE)
        return unless(outcome);
    if (is_root && own.form.kind == ITEMS) {
        PyObject *item =
            PyList_CheckExact(args[0]) ? PyList_GetItem(args[0], self->rank) : PyTuple_GetItem(args[0], self->rank);
        return Py_XNewRef(item);
    }
    READING(self, item_of(self, slot_of(self, (int)own.mark.root)));
}

/* gather(x, root): None on the others. */
static PyObject *channel_gather(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    Slot own = begin(GATHER);
    if (!expected(given, 2) || (root_of(self, args[1], &own) && !put_value(self, args[0], &own)))
        return NULL;
    const int outcome = meet(self, &own);
    if (outcome != DONE)
        return unless(outcome);
    if ((int)own.mark.root != self->rank)
        Py_RETURN_NONE;
    READING(self, values_of(self, false));
}

/* allgather(x) */
static PyObject *channel_allgather(Channel *self, PyObject *x)
{
    Slot own = begin(ALLGATHER);
    if (!put_value(self, x, &own))
        return NULL;
    const int outcome = meet(self, &own);
    if (outcome != DONE)
        return unless(outcome);
    READING(self, values_of(self, false));
}

/* alltoall(values) */
static PyObject *channel_alltoall(Channel *self, PyObject *values)
{
    Slot own = begin(ALLTOALL);
    if (!put_items(self, values, &own))
        return NULL;
    const int outcome = meet(self, &own);
    if (outcome != DONE || differ(self))
        return unless(outcome);
    READING(self, values_of(self, true));
}

/* Combine the values, or items, of the first ranks. */
static PyObject *reduce(Channel *self, int call, PyObject *x, PyObject *op, PyObject *root, int number)
{
    Slot own = begin(call);
    PyObject *function = NULL;
    const int reduction = reduction_of(self, op, &function);
    own.mark.op = (uint8_t)reduction;
    if ((root != NULL && !root_of(self, root, &own)) || reduction == 0)
        own.form.kind = LONG;
    else if (!(call == REDUCE_SCATTER ? put_items(self, x, &own) : put_value(self, x, &own)))
        return NULL;
    if (own.form.kind == ARRAY && !can_combine(self->all.kinds[own.form.dtype], reduction))
        own.form = (Form){.kind = LONG};
    const int outcome = meet(self, &own);
    if (outcome != DONE || differ(self))
        return unless(outcome);
    if (root != NULL && (int)own.mark.root != self->rank)
        Py_RETURN_NONE;
    READING(self, folded(self, reduction, function, number, call == REDUCE_SCATTER));
}

/* reduce(x, op, root): None on the others. */
static PyObject *channel_reduce(Channel *self, PyObject *const *args, Py_ssize_t given)
{
    return expected(given, 3) ? reduce(self, REDUCE, args[0], args[1], args[2], self->size) : NULL;
}

/* allreduce(x, op), scan(x, op), exscan(x, op), reduce_scatter(values, op) */
#define OF_VALUE_AND_OP(name, call, number)                                                                            \
    static PyObject *channel_##name(Channel *self, PyObject *const *args, Py_ssize_t given)                            \
    {                                                                                                                  \
        return expected(given, 2) ? reduce(self, call, args[0], args[1], NULL, number) : NULL;                         \
    }
OF_VALUE_AND_OP(allreduce, ALLREDUCE, self->size)
OF_VALUE_AND_OP(scan, SCAN, self->rank + 1)
OF_VALUE_AND_OP(exscan, EXSCAN, self->rank)
OF_VALUE_AND_OP(reduce_scatter, REDUCE_SCATTER, self->size)

#define METHOD(name, flags, text) {#name, (PyCFunction)(void (*)(void))channel_##name, flags, text}

PyMethodDef collective_methods[COLLECTIVE_METHODS] = {
    METHOD(announce, METH_NOARGS, "announce(): begin a call that the Python code does"),
    METHOD(barrier, METH_NOARGS, "barrier()"),
    METHOD(bcast, METH_FASTCALL, "bcast(x, root)"),
    METHOD(gather, METH_FASTCALL, "gather(x, root)"),
    METHOD(allgather, METH_O, "allgather(x)"),
    METHOD(scatter, METH_FASTCALL, "scatter(values, root)"),
    METHOD(alltoall, METH_O, "alltoall(values)"),
    METHOD(reduce, METH_FASTCALL, "reduce(x, op, root)"),
    METHOD(allreduce, METH_FASTCALL, "allreduce(x, op)"),
    METHOD(scan, METH_FASTCALL, "scan(x, op)"),
    METHOD(exscan, METH_FASTCALL, "exscan(x, op)"),
    METHOD(reduce_scatter, METH_FASTCALL, "reduce_scatter(values, op)"),
};

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

/* Check where the members of an array are; false with a Python error if this is not so. */
static bool arrays_begin_so(Channel *self)
{
    const Form form = {.kind = ARRAY, .dtype = 1, .ndim = 2, .shape = {1, 3}};
    const Array *array = (const Array *)template_of(self, &form, 0, -1);
    if (array == NULL)
        return false;
    const bool right = array->data == self->all.start && array->ndim == 2 && array->shape[0] == 1 &&
                       array->shape[1] == 3 && array->dtype == self->all.dtypes[1] && (array->flags & 1) != 0;
    if (!right)
        PyErr_SetString(PyExc_ImportError, "the arrays of this NumPy are laid out in another way");
    return right;
}

bool set_up_collectives(Channel *self, PyObject *dtypes, PyObject *scalars, PyObject *ops, PyObject *pickled)
{
    Collectives *all = &self->all;
    if (!PyTuple_Check(dtypes) || !PyTuple_Check(scalars) || PyTuple_Size(dtypes) != PyTuple_Size(scalars) ||
        PyTuple_Size(dtypes) > DTYPES || !PyDict_Check(ops) || !PySet_Check(pickled)) {
        PyErr_SetString(PyExc_TypeError, "dtypes and their scalars in tuples, a dict and a set are needed");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(dtypes); i++) {
        all->dtypes[i] = Py_NewRef(PyTuple_GetItem(dtypes, i));
        all->scalars[i] = Py_NewRef(PyTuple_GetItem(scalars, i));
        PyObject *name = PyObject_GetAttrString(all->dtypes[i], "char");
        PyObject *bytes = name == NULL ? NULL : PyUnicode_AsASCIIString(name);
        all->kinds[i] = bytes == NULL ? 0 : PyBytes_AsString(bytes)[0];
        Py_XDECREF(name);
        Py_XDECREF(bytes);
        PyObject *itemsize = PyObject_GetAttrString(all->dtypes[i], "itemsize");
        all->itemsizes[i] = itemsize == NULL ? 0 : PyLong_AsSize_t(itemsize);
        Py_XDECREF(itemsize);
        PyObject *string = PyObject_GetAttrString(all->dtypes[i], "str");
        PyObject *ascii = string == NULL ? NULL : PyUnicode_AsASCIIString(string);
        if (ascii != NULL)
            strncpy(all->names[i], PyBytes_AsString(ascii), DTYPE_NAME);
        Py_XDECREF(string);
        Py_XDECREF(ascii);
    }
    all->ops = Py_NewRef(ops);
    all->pickled = Py_NewRef(pickled);
    all->empty = PyTuple_New(0);
    all->templates = PyDict_New();
    all->memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)self->size * DATA);
    all->slots = PyMem_Calloc((size_t)self->size, WIDE);
    if (PyErr_Occurred() || all->empty == NULL || all->templates == NULL || all->memory == NULL)
        return false;
    if (all->slots == NULL) {
        PyErr_NoMemory();
        return false;
    }
    all->start = PyByteArray_AsString(all->memory);
    memset(all->start, 0, (size_t)self->size * DATA);
    return arrays_begin_so(self);
}

void tear_down_collectives(Channel *self)
{
    Collectives *all = &self->all;
    for (int i = 0; i < DTYPES; i++) {
        Py_CLEAR(all->dtypes[i]);
        Py_CLEAR(all->scalars[i]);
    }
    Py_CLEAR(all->templates);
    Py_CLEAR(all->memory);
    Py_CLEAR(all->ops);
    Py_CLEAR(all->pickled);
    Py_CLEAR(all->empty);
    PyMem_Free(all->slots);
    all->slots = NULL;
}
