/* libmpi_abi_fortran.so: the subroutines of Fortran over the standard ABI of MPI-5. It calls nothing but that ABI.
 *
 * fortran_calls.h   most functions, generated from the table of MPI (api/src/fortran/)
 * special.h         functions whose arguments no rule describes
 * sections.h        array sections
 * this file         what both call: sentinels, strings, callbacks, attributes
 *
 * Conventions of gfortran: lower-case names with an underscore, addresses of all arguments, lengths of strings as
 * size_t behind the last argument, .TRUE. = 1, an absent optional argument is a null pointer. */

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

typedef void function(void);

/* Sentinels. Fortran declares them as COMMON blocks of the same names. */

MPI_Fint mpi_fortran_bottom_;
MPI_Fint mpi_fortran_in_place_;
MPI_Fint mpi_fortran_buffer_automatic_;
MPI_Fint mpi_fortran_status_ignore_[MPI_F_STATUS_SIZE];
MPI_Fint mpi_fortran_statuses_ignore_[MPI_F_STATUS_SIZE];
MPI_Fint mpi_fortran_errcodes_ignore_[1];
MPI_Fint mpi_fortran_unweighted_[1];
MPI_Fint mpi_fortran_weights_empty_[1];
char mpi_fortran_argv_null_[1];
char mpi_fortran_argvs_null_[1];

static int limosa_is_in_place(const void *buffer)
{
    return buffer == &mpi_fortran_in_place_;
}

static void *limosa_address(void *buffer)
{
    if (buffer == &mpi_fortran_bottom_)
        return MPI_BOTTOM;
    if (limosa_is_in_place(buffer))
        return MPI_IN_PLACE;
    if (buffer == &mpi_fortran_buffer_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return buffer;
}

/* A status has the same eight integers in C and in Fortran. */
static MPI_Status *limosa_status(MPI_Fint *status)
{
    return status == mpi_fortran_status_ignore_ ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}

static MPI_Status *limosa_statuses(MPI_Fint *statuses)
{
    return statuses == mpi_fortran_statuses_ignore_ ? MPI_STATUSES_IGNORE : (MPI_Status *)statuses;
}

static int *limosa_weights(MPI_Fint *weights)
{
    if (weights == mpi_fortran_unweighted_)
        return MPI_UNWEIGHTED;
    return weights == mpi_fortran_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}

/* Where a program has called, for tools that intercept the functions of C: their return address is in this library. */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static __thread const char *limosa_called_from __attribute__((tls_model("initial-exec")));

static inline int limosa_is_here(const char *address)
{
    return address >= __ehdr_start && address < etext;
}

static inline void limosa_note(const char *address)
{
    if (!limosa_is_here(address))
        limosa_called_from = address;
}

#define HERE limosa_note(__builtin_return_address(0));

/* For tools: an address of the program for a return address in this library, others as they are. */
const char *limosa_fortran_caller(const char *address)
{
    return limosa_is_here(address) ? limosa_called_from : address;
}

/* Memory */

static void *limosa_allocate(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fprintf(stderr, "limosa: a Fortran call cannot allocate %zu bytes\n", size);
        abort();
    }
    return memory;
}

/* Zeroed memory for an array: the caller's own if the array fits. */
static void *limosa_space(MPI_Count count, size_t size, void *local, size_t local_size)
{
    size_t wanted = count > 0 ? (size_t)count * size : 0;
    return wanted <= local_size ? memset(local, 0, local_size) : limosa_allocate(wanted);
}

static pthread_mutex_t limosa_lock = PTHREAD_MUTEX_INITIALIZER;

/* Gives a copy of an array that lives as long as the process, the same one for the same contents: MPI may read the
 * datatypes of MPI_Ialltoallw until the operation is complete. */
static void *limosa_kept(const void *array, size_t size)
{
    static struct Kept {
        struct Kept *next;
        size_t size;
        char bytes[];
    } *all;
    pthread_mutex_lock(&limosa_lock);
    struct Kept *kept = all;
    while (kept && (kept->size != size || memcmp(kept->bytes, array, size)))
        kept = kept->next;
    if (!kept) {
        kept = limosa_allocate(sizeof *kept + size);
        kept->size = size;
        memcpy(kept->bytes, array, size);
        kept->next = all;
        all = kept;
    }
    pthread_mutex_unlock(&limosa_lock);
    return kept->bytes;
}

/* Arrays of handles and of logicals: c_X is the array for C, n_X its length. */

#define HANDLES(type, x, n)                                                                                            \
    type local_##x[32];                                                                                                \
    MPI_Count n_##x = (n);                                                                                             \
    type *c_##x = limosa_space(n_##x, sizeof(type), local_##x, sizeof local_##x);
#define HANDLES_IN(prefix, x)                                                                                          \
    for (MPI_Count i_ = 0; i_ < n_##x; i_++)                                                                           \
        c_##x[i_] = P##prefix##_fromint(x[i_]);
#define HANDLES_OUT(prefix, x)                                                                                         \
    for (MPI_Count i_ = 0; i_ < n_##x; i_++)                                                                           \
        if (c_##x[i_])                                                                                                 \
            x[i_] = P##prefix##_toint(c_##x[i_]);
#define HANDLES_KEEP(x)                                                                                                \
    void *all_##x = c_##x;                                                                                             \
    c_##x = limosa_kept(c_##x, n_##x > 0 ? (size_t)n_##x * sizeof *c_##x : 0);                                         \
    if (all_##x != local_##x)                                                                                          \
        free(all_##x);
#define HANDLES_END(x)                                                                                                 \
    if (c_##x != local_##x)                                                                                            \
        free(c_##x);
#define LOGICALS(x, n) HANDLES(int, x, n)
#define LOGICALS_IN(x)                                                                                                 \
    for (MPI_Count i_ = 0; i_ < n_##x; i_++)                                                                           \
        c_##x[i_] = x[i_] != 0;
#define LOGICALS_OUT(x)                                                                                                \
    for (MPI_Count i_ = 0; i_ < n_##x; i_++)                                                                           \
        x[i_] = c_##x[i_] != 0;

/* Lengths that no argument holds */

static int limosa_group_size(MPI_Fint comm)
{
    MPI_Comm c_comm = PMPI_Comm_fromint(comm);
    int is_inter = 0, size = 0;
    PMPI_Comm_test_inter(c_comm, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_size(c_comm, &size);
    else
        PMPI_Comm_size(c_comm, &size);
    return size;
}

static void limosa_degrees(MPI_Fint comm, int *in, int *out)
{
    MPI_Comm c_comm = PMPI_Comm_fromint(comm);
    int topology = MPI_UNDEFINED, weighted, rank, ndims = 0;
    *in = *out = 0;
    PMPI_Topo_test(c_comm, &topology);
    if (topology == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(c_comm, in, out, &weighted);
    } else if (topology == MPI_GRAPH) {
        PMPI_Comm_rank(c_comm, &rank);
        PMPI_Graph_neighbors_count(c_comm, rank, in);
        *out = *in;
    } else if (topology == MPI_CART) {
        PMPI_Cartdim_get(c_comm, &ndims);
        *in = *out = 2 * ndims;
    }
}

static int limosa_indegree(MPI_Fint comm)
{
    int in, out;
    limosa_degrees(comm, &in, &out);
    return in;
}

static int limosa_outdegree(MPI_Fint comm)
{
    int in, out;
    limosa_degrees(comm, &in, &out);
    return out;
}

static int limosa_ndims(MPI_Fint comm)
{
    int ndims = 0;
    PMPI_Cartdim_get(PMPI_Comm_fromint(comm), &ndims);
    return ndims;
}

/* Strings */

/* A string without its trailing blanks, to be freed. */
static char *limosa_text(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = limosa_allocate(length + 1);
    memcpy(copy, text, length);
    return copy;
}

/* A string without its leading and trailing blanks, to be freed: keys and values of an info object. */
static char *limosa_trimmed(const char *text, size_t length)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    return limosa_text(text, length);
}

/* Memory for a string that C returns: no name has more characters than the version of the library. */
static char *limosa_text_space(size_t length)
{
    size_t most = MPI_MAX_LIBRARY_VERSION_STRING;
    return limosa_allocate((length > most ? length : most) + 1);
}

static void limosa_padded(const char *from, char *to, size_t length)
{
    size_t used = strlen(from);
    if (used > length)
        used = length;
    memcpy(to, from, used);
    memset(to + used, ' ', length - used);
}

#include "sections.h"

/* Tells the library how large the default types of Fortran are, unless it knows. */
static void limosa_set_types(void)
{
    static const char *const sizes[][2] = {{"mpi_logical_size", "4"},
                                           {"mpi_integer_size", "4"},
                                           {"mpi_real_size", "4"},
                                           {"mpi_double_precision_size", "8"}};
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info == MPI_INFO_NULL) {
        PMPI_Info_create(&info);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            PMPI_Info_set(info, sizes[i][0], sizes[i][1]);
        PMPI_Abi_set_fortran_info(info);
    }
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    MPI_Fint is_true = 1, is_false = 0, old_true, old_false;
    int is_set = 0;
    if (PMPI_Abi_get_fortran_booleans(sizeof is_true, &old_true, &old_false, &is_set) == MPI_SUCCESS && !is_set)
        PMPI_Abi_set_fortran_booleans(sizeof is_true, &is_true, &is_false);
}

/* Attributes (MPI-5 section 19.3.7). C sees the value that Fortran has set as the address of an MPI_Aint, which lies in
 * one of these cells; Fortran sees the value that C has set as the pointer's bits. */

enum { CELLS = 256 };

static struct Cells {
    struct Cells *next;
    MPI_Aint cells[CELLS];
    char is_used[CELLS];
} *limosa_cells;

/* The cells that hold an attribute, and its position; null if C has set it. Call with the lock held. */
static struct Cells *limosa_cells_of(const void *attribute, ptrdiff_t *position)
{
    for (struct Cells *cells = limosa_cells; cells; cells = cells->next) {
        const char *first = (const char *)cells->cells;
        if ((const char *)attribute >= first && (const char *)attribute < first + sizeof cells->cells) {
            *position = ((const char *)attribute - first) / (ptrdiff_t)sizeof(MPI_Aint);
            return cells;
        }
    }
    return NULL;
}

static void *limosa_cell(MPI_Aint value)
{
    pthread_mutex_lock(&limosa_lock);
    for (struct Cells *cells = limosa_cells;; cells = cells->next) {
        if (!cells) {
            cells = limosa_allocate(sizeof *cells);
            cells->next = limosa_cells;
            limosa_cells = cells;
        }
        char *unused = memchr(cells->is_used, 0, CELLS);
        if (unused) {
            *unused = 1;
            MPI_Aint *cell = &cells->cells[unused - cells->is_used];
            *cell = value;
            pthread_mutex_unlock(&limosa_lock);
            return cell;
        }
    }
}

static void limosa_free_cell(void *attribute)
{
    ptrdiff_t position;
    pthread_mutex_lock(&limosa_lock);
    struct Cells *cells = limosa_cells_of(attribute, &position);
    if (cells)
        cells->is_used[position] = 0;
    pthread_mutex_unlock(&limosa_lock);
}

/* The value that Fortran sees. */
static MPI_Aint limosa_attribute(void *attribute)
{
    ptrdiff_t position;
    pthread_mutex_lock(&limosa_lock);
    struct Cells *cells = limosa_cells_of(attribute, &position);
    MPI_Aint value = cells ? cells->cells[position] : (MPI_Aint)attribute;
    pthread_mutex_unlock(&limosa_lock);
    return value;
}

/* The same for any attribute key: MPI's own attributes are addresses of integers in C. */
static MPI_Aint limosa_attribute_of(int keyval, void *attribute)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL: return *(int *)attribute;
    case MPI_WIN_SIZE: return *(MPI_Aint *)attribute;
    case MPI_WIN_BASE: return (MPI_Aint)attribute;
    default: return limosa_attribute(attribute);
    }
}

/* Callbacks of an attribute key. */
typedef struct {
    function *copy, *delete;
    MPI_Aint extra_state;
} Keyval;

static Keyval *limosa_keyval(function *copy, function *delete, MPI_Aint extra_state)
{
    Keyval *keyval = limosa_allocate(sizeof *keyval);
    *keyval = (Keyval){copy, delete, extra_state};
    return keyval;
}

/* `integer` is the type of states and values. The callbacks of MPI_Keyval_create have default integers. */
#define ATTRIBUTE_CALLBACKS(form, type, prefix, integer)                                                               \
    static int limosa_copy_##form(type object, int keyval, void *extra, void *in, void *out, int *flag)                \
    {                                                                                                                  \
        typedef void copy(MPI_Fint *, MPI_Fint *, integer *, integer *, integer *, MPI_Fint *, MPI_Fint *);            \
        Keyval *callbacks = extra;                                                                                     \
        MPI_Fint handle = PMPI_##prefix##_toint(object), key = keyval, is_copied = 0, error = MPI_SUCCESS;             \
        integer state = (integer)callbacks->extra_state, old = (integer)limosa_attribute(in), new = 0;                 \
        ((copy *)callbacks->copy)(&handle, &key, &state, &old, &new, &is_copied, &error);                              \
        *flag = error == MPI_SUCCESS && is_copied;                                                                     \
        if (*flag)                                                                                                     \
            *(void **)out = limosa_cell(new);                                                                          \
        return error;                                                                                                  \
    }                                                                                                                  \
    static int limosa_delete_##form(type object, int keyval, void *attribute, void *extra)                             \
    {                                                                                                                  \
        typedef void delete(MPI_Fint *, MPI_Fint *, integer *, integer *, MPI_Fint *);                                 \
        Keyval *callbacks = extra;                                                                                     \
        MPI_Fint handle = PMPI_##prefix##_toint(object), key = keyval, error = MPI_SUCCESS;                            \
        integer state = (integer)callbacks->extra_state, value = (integer)limosa_attribute(attribute);                 \
        ((delete *)callbacks->delete)(&handle, &key, &value, &state, &error);                                          \
        if (error == MPI_SUCCESS)                                                                                      \
            limosa_free_cell(attribute);                                                                               \
        return error;                                                                                                  \
    }

ATTRIBUTE_CALLBACKS(comm, MPI_Comm, Comm, MPI_Aint)
ATTRIBUTE_CALLBACKS(type, MPI_Datatype, Type, MPI_Aint)
ATTRIBUTE_CALLBACKS(win, MPI_Win, Win, MPI_Aint)
ATTRIBUTE_CALLBACKS(old, MPI_Comm, Comm, MPI_Fint)

/* Predefined callbacks */

#define PREDEFINED(prefix, integer)                                                                                    \
    void prefix##null_copy_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra, integer *in, integer *out,          \
                               MPI_Fint *flag, MPI_Fint *ierror)                                                       \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)extra, (void)in, (void)out;                                                  \
        *flag = 0;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void prefix##dup_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra, integer *in, integer *out,                \
                         MPI_Fint *flag, MPI_Fint *ierror)                                                             \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)extra;                                                                       \
        *out = *in;                                                                                                    \
        *flag = 1;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void prefix##null_delete_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *value, integer *extra, MPI_Fint *ierror) \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)value, (void)extra;                                                          \
        *ierror = MPI_SUCCESS;                                                                                         \
    }

PREDEFINED(mpi_comm_, MPI_Aint)
PREDEFINED(mpi_type_, MPI_Aint)
PREDEFINED(mpi_win_, MPI_Aint)
PREDEFINED(mpi_, MPI_Fint)

void mpi_conversion_fn_null_(void *userbuf, MPI_Fint *datatype, MPI_Fint *count, void *filebuf, MPI_Offset *position,
                             MPI_Aint *extra_state, MPI_Fint *ierror)
{
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position, (void)extra_state;
    *ierror = MPI_ERR_CONVERSION;
}

void mpi_conversion_fn_null_c_(void *userbuf, MPI_Fint *datatype, MPI_Count *count, void *filebuf, MPI_Offset *position,
                               MPI_Aint *extra_state, MPI_Fint *ierror)
{
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position, (void)extra_state;
    *ierror = MPI_ERR_CONVERSION;
}

/* Operations and error handlers. MPI hands them no state, so each function of the program has a C function of its own,
 * of which there are SLOTS for each kind. */

enum { SLOTS = 128 };

/* clang-format off */
#define SIXTEEN(make, row) \
    make(row, 0) make(row, 1) make(row, 2) make(row, 3) make(row, 4) make(row, 5) make(row, 6) make(row, 7) \
    make(row, 8) make(row, 9) make(row, A) make(row, B) make(row, C) make(row, D) make(row, E) make(row, F)
#define ALL_SLOTS(make) \
    SIXTEEN(make, 0) SIXTEEN(make, 1) SIXTEEN(make, 2) SIXTEEN(make, 3) \
    SIXTEEN(make, 4) SIXTEEN(make, 5) SIXTEEN(make, 6) SIXTEEN(make, 7)
/* clang-format on */

/* Position of a function among the slots, -1 if all are taken. */
static int limosa_slot(function *slots[], function *wanted)
{
    int slot = 0;
    pthread_mutex_lock(&limosa_lock);
    while (slot < SLOTS && slots[slot] && slots[slot] != wanted)
        slot++;
    if (slot < SLOTS)
        slots[slot] = wanted;
    pthread_mutex_unlock(&limosa_lock);
    return slot < SLOTS ? slot : -1;
}

static int limosa_no_slot(const char *call)
{
    fprintf(stderr, "limosa: %s: the program has passed more than %d different functions\n", call, SLOTS);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

static function *limosa_operations[SLOTS], *limosa_large_operations[SLOTS];

#define OPERATION(row, column)                                                                                         \
    static void limosa_operation_##row##column(void *in, void *inout, int *length, MPI_Datatype *datatype)             \
    {                                                                                                                  \
        MPI_Fint handle = PMPI_Type_toint(*datatype);                                                                  \
        ((void (*)(void *, void *, int *, MPI_Fint *))limosa_operations[0x##row##column])(in, inout, length, &handle); \
    }
#define LARGE_OPERATION(row, column)                                                                                   \
    static void limosa_large_operation_##row##column(void *in, void *inout, MPI_Count *length, MPI_Datatype *datatype) \
    {                                                                                                                  \
        MPI_Fint handle = PMPI_Type_toint(*datatype);                                                                  \
        ((void (*)(void *, void *, MPI_Count *, MPI_Fint *))limosa_large_operations[0x##row##column])(                 \
            in, inout, length, &handle);                                                                               \
    }
ALL_SLOTS(OPERATION)
ALL_SLOTS(LARGE_OPERATION)
#define NAMED(row, column) limosa_operation_##row##column,
static MPI_User_function *const limosa_operation_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED
#define NAMED(row, column) limosa_large_operation_##row##column,
static MPI_User_function_c *const limosa_large_operation_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED

static function *limosa_comm_handlers[SLOTS], *limosa_win_handlers[SLOTS], *limosa_file_handlers[SLOTS],
    *limosa_session_handlers[SLOTS];

#define HANDLER(object, type, row, column)                                                                             \
    static void limosa_##object##_handler_##row##column(type *handle, int *code, ...)                                  \
    {                                                                                                                  \
        MPI_Fint integer = P##type##_toint(*handle), error = *code;                                                    \
        ((void (*)(MPI_Fint *, MPI_Fint *))limosa_##object##_handlers[0x##row##column])(&integer, &error);             \
    }
#define COMM_HANDLER(row, column) HANDLER(comm, MPI_Comm, row, column)
#define WIN_HANDLER(row, column) HANDLER(win, MPI_Win, row, column)
#define FILE_HANDLER(row, column) HANDLER(file, MPI_File, row, column)
#define SESSION_HANDLER(row, column) HANDLER(session, MPI_Session, row, column)
ALL_SLOTS(COMM_HANDLER)
ALL_SLOTS(WIN_HANDLER)
ALL_SLOTS(FILE_HANDLER)
ALL_SLOTS(SESSION_HANDLER)
#define NAMED(row, column) limosa_comm_handler_##row##column,
static MPI_Comm_errhandler_function *const limosa_comm_handler_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED
#define NAMED(row, column) limosa_win_handler_##row##column,
static MPI_Win_errhandler_function *const limosa_win_handler_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED
#define NAMED(row, column) limosa_file_handler_##row##column,
static MPI_File_errhandler_function *const limosa_file_handler_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED
#define NAMED(row, column) limosa_session_handler_##row##column,
static MPI_Session_errhandler_function *const limosa_session_handler_slots[SLOTS] = {ALL_SLOTS(NAMED)};
#undef NAMED

/* Data representations */

typedef struct {
    function *read, *write, *extent;
    MPI_Aint extra_state;
} Datarep;

#define CONVERSION(name, member, number)                                                                               \
    static int name(void *user, MPI_Datatype datatype, number count, void *file, MPI_Offset position, void *extra)     \
    {                                                                                                                  \
        typedef void convert(void *, MPI_Fint *, number *, void *, MPI_Offset *, MPI_Aint *, MPI_Fint *);              \
        Datarep *datarep = extra;                                                                                      \
        MPI_Fint handle = PMPI_Type_toint(datatype), error = MPI_SUCCESS;                                              \
        ((convert *)datarep->member)(user, &handle, &count, file, &position, &datarep->extra_state, &error);           \
        return error;                                                                                                  \
    }
CONVERSION(limosa_read, read, int)
CONVERSION(limosa_write, write, int)
CONVERSION(limosa_large_read, read, MPI_Count)
CONVERSION(limosa_large_write, write, MPI_Count)

static int limosa_file_extent(MPI_Datatype datatype, MPI_Aint *extent, void *extra)
{
    Datarep *datarep = extra;
    MPI_Fint handle = PMPI_Type_toint(datatype), error = MPI_SUCCESS;
    ((void (*)(MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Fint *))datarep->extent)(&handle, extent, &datarep->extra_state,
                                                                                &error);
    return error;
}

/* Generalized requests */

typedef struct {
    function *query, *free, *cancel;
    MPI_Aint extra_state;
} Grequest;

static int limosa_query(void *extra, MPI_Status *status)
{
    Grequest *request = extra;
    MPI_Fint error = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Fint *, MPI_Fint *))request->query)(&request->extra_state, (MPI_Fint *)status, &error);
    return error;
}

static int limosa_free(void *extra)
{
    Grequest *request = extra;
    MPI_Fint error = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Fint *))request->free)(&request->extra_state, &error);
    free(request);
    return error;
}

static int limosa_cancel(void *extra, int complete)
{
    Grequest *request = extra;
    MPI_Fint is_complete = complete != 0, error = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Fint *, MPI_Fint *))request->cancel)(&request->extra_state, &is_complete, &error);
    return error;
}

/* Arguments of programs that are started: a list of strings that ends with a blank one. `step` is the distance of
 * successive strings, counted in strings. */
static char **limosa_arguments(const char *list, size_t length, size_t step)
{
    size_t count = 0;
    for (;; count++) {
        char *argument = limosa_text(list + count * step * length, length);
        int is_last = !*argument;
        free(argument);
        if (is_last)
            break;
    }
    char **arguments = limosa_allocate((count + 1) * sizeof *arguments);
    for (size_t i = 0; i < count; i++)
        arguments[i] = limosa_text(list + i * step * length, length);
    return arguments;
}

static void limosa_free_arguments(char **arguments)
{
    for (char **argument = arguments; argument && *argument; argument++)
        free(*argument);
    free(arguments);
}

/* The functions of Fortran, under MPI's names and under those of the profiling interface. */

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define ALIAS(other, name) extern __typeof__(NAME(name)) NAME(other) __attribute__((alias(TEXT(NAME(name)))));
#define SET_ERROR(code)                                                                                                \
    do {                                                                                                               \
        int error_ = (code);                                                                                           \
        if (ierror)                                                                                                    \
            *ierror = error_;                                                                                          \
    } while (0)

#define NAME(name) name
#define CALL(name) name
#include "special.h"
#include "fortran_calls.h"
#undef NAME
#undef CALL
#define NAME(name) p##name
#define CALL(name) P##name
#include "special.h"
#include "fortran_calls.h"
