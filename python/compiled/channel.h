/* What the parts of `limosa._fast_path` share: the object of a communicator and how it calls MPI. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define FUNCTIONS(F) F(Send) F(Recv) F(Allgather)

#define MEMBER(name) __typeof__(MPI_##name) *name;
/* The functions of the library that mpi4py has loaded. */
extern struct functions {
    FUNCTIONS(MEMBER)
} mpi;

enum { HEAD = 48, DESCRIPTION = 44, DTYPES = 16, DTYPE_NAME = 12, PICKLE_MARK = (char)0x80 };

/* How NumPy's arrays begin. NumPy's own headers read these members directly, so every extension module that uses them
 * relies on their places; `set_up_collectives` checks them all the same. */
typedef struct {
    PyObject_HEAD char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;

/* What the collective calls of one communicator need; see collectives.c. */
typedef struct {
    char *slots;         /* those of all ranks, as the last exchange has brought them */
    size_t stride;       /* bytes from one to the next */
    bool wide;           /* whether the next exchange is of long slots */
    int idle;            /* exchanges of long slots in a row that had no need of them */
    PyObject *memory;    /* a bytearray: here the data of a result are put together */
    char *start;         /* its bytes */
    PyObject *templates; /* arrays over that memory, by dtype and shape */
    PyObject *dtypes[DTYPES], *scalars[DTYPES];
    char kinds[DTYPES]; /* characters of the dtypes; 0 for none */
    size_t itemsizes[DTYPES];
    char names[DTYPES][DTYPE_NAME]; /* as in the head of a message */
    PyObject *ops;                  /* a dict: what users give for a reduction -> (number, function) */
    PyObject *pickled;              /* a set: types whose objects are pickled */
    PyObject *empty;                /* () */
} Collectives;

typedef struct {
    PyObject_HEAD MPI_Comm comm;
    int rank, size;
    PyObject *error;                /* mpi4py's exception */
    PyObject *array;                /* the type numpy.ndarray */
    PyObject *copy;                 /* its method */
    PyObject *dumps, *loads, *five; /* pickle's functions, and its protocol */
    PyObject *any;                  /* limosa.ANY */
    PyObject *trusted;              /* a set: types whose objects are pickled at once */
    PyObject *other, *nothing;      /* what `value` gives if the message is of another kind; if it has received none */
    Py_buffer inbox;                /* where `value` receives */
    PyObject *inbox_view;           /* the same as an object */
    bool receiving;                 /* a thread is there; a second one takes the slower way */
    bool diverted;                  /* `limosa._receive` keeps messages: receives take the slower way */
    bool busy; /* in an exchange; a second thread there is the program's error and takes the slower way */
    struct {
        char head[DESCRIPTION];
        PyObject *view; /* the array in a message that begins so; NULL if there is none */
    } arrived;          /* of the last message */
    Collectives all;
} Channel;

/* Raise what mpi4py would raise. */
PyObject *failure(const Channel *self, int code);

/* Do a call of MPI without Python's lock. */
#define CALL(code, ...)                                                                                                \
    do {                                                                                                               \
        Py_BEGIN_ALLOW_THREADS(code) = (__VA_ARGS__);                                                                  \
        Py_END_ALLOW_THREADS                                                                                           \
    } while (0)

/* From fast_path.c. These send what fits into a first message: a C-contiguous array of a usual dtype, else they give
 * NotImplemented; an object, else they give its pickle. */
PyObject *send_short_array(const Channel *self, PyObject *x, int to, int tag);
PyObject *send_pickle(const Channel *self, PyObject *x, int to, int tag, Py_ssize_t most);
/* As the method `value`, with source and tag. */
PyObject *receive_value(Channel *self, PyObject *const *where);

/* From verbs.c: the base of communicators, and the function `adopt(Comm, ANY, faults)` of the module. */
PyObject *verbs_type(PyTypeObject *type_of_channels);
PyObject *adopt(PyObject *module, PyObject *args);

/* From collectives.c. */
int index_of(PyObject *const *objects, const PyObject *wanted);

/* The methods of collectives.c. */
extern PyMethodDef collective_methods[];
enum { COLLECTIVE_METHODS = 12 };

/* Prepare them; false with a Python error. `numpy` is (dtypes, scalar types), both of the same length. */
bool set_up_collectives(Channel *self, PyObject *dtypes, PyObject *scalars, PyObject *ops, PyObject *pickled);
void tear_down_collectives(Channel *self);
