/* Wrong use of windows: each call gives its error class, and the window works afterwards (MPI-5 chapter 12). */
#include "limosa_test.h"

static int memory[16];
static MPI_Win win;
static const int one = 1;

static void begin(void)
{
    OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

/* It still works. */
static void end(void)
{
    int next = (lt_rank + 1) % lt_size;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memory[3] = 0;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&one, 1, MPI_INT, next, 3, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_INT(memory[3], 1);
    OK(MPI_Win_free(&win));
}

static void arguments_of_creation(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_DISP, MPI_Win_create(memory, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_DISP, MPI_Win_create(memory, 4, lt_rank ? 1 : -1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK(win == MPI_WIN_NULL);
    FAILS(MPI_ERR_SIZE, MPI_Win_create(memory, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_BASE, MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    void *base;
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate((MPI_Aint)1 << 60, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    if (!lt_one_host())
        FAILS(MPI_ERR_RMA_SHARED, MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    FAILS(MPI_ERR_COMM, MPI_Win_create(memory, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win));
}

static void arguments_of_accesses(void)
{
    begin();
    int many[32] = {0};
    OK(MPI_Win_lock_all(0, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_INT, 0, 16, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(many, 2, MPI_INT, 0, 15, 2, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Accumulate(many, 17, MPI_INT, 0, 0, 17, MPI_INT, MPI_SUM, win));
    FAILS(MPI_ERR_TRUNCATE, MPI_Put(many, 2, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_TRUNCATE, MPI_Get(many, 1, MPI_INT, 0, 0, 2, MPI_INT, win));
    FAILS(MPI_ERR_RANK, MPI_Put(&one, 1, MPI_INT, lt_size, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RANK, MPI_Put(&one, 1, MPI_INT, -7, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_COUNT, MPI_Put(&one, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_TYPE, MPI_Put(&one, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_BUFFER, MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_TYPE, MPI_Accumulate(many, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win));
    FAILS(MPI_ERR_COUNT, MPI_Accumulate(many, 1, MPI_INT, 0, 0, 2, MPI_INT, MPI_SUM, win));
    FAILS(MPI_ERR_OP, MPI_Accumulate(many, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
    FAILS(MPI_ERR_OP, MPI_Accumulate(many, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win));
    FAILS(MPI_ERR_OP, MPI_Accumulate(many, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win));
    float a = 0, b = 0, c;
    FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&a, &b, &c, MPI_FLOAT, 0, 0, win));
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    FAILS(MPI_ERR_TYPE, MPI_Put(many, 1, pair, 0, 0, 2, MPI_INT, win));
    OK(MPI_Type_commit(&pair));
    FAILS(MPI_ERR_TYPE, MPI_Fetch_and_op(many, many + 4, pair, 0, 0, MPI_SUM, win));
    OK(MPI_Type_free(&pair));
    OK(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 99, 1, MPI_INT, win));
    /* For MPI_NO_OP alone the origin means nothing. */
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, many, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
    FAILS(MPI_ERR_TYPE,
          MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, many, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    /* No process, no lock, nothing to wait for. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
    OK(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    end();
}

static void calls_outside_their_epochs(void)
{
    begin();
    MPI_Group all, self;
    MPI_Request request;
    int in, flag;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Get(&in, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, lt_rank, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, lt_rank, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(self, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    if (lt_size > 1)
        FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, (lt_rank + 1) % lt_size, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(lt_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_post(self, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_post(self, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    OK(MPI_Win_start(self, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Rput(&one, 1, MPI_INT, lt_rank, 0, 1, MPI_INT, win, &request));
    OK(MPI_Put(&one, 1, MPI_INT, lt_rank, 5, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_INT(memory[5], 1);
    FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(7, 0, 0, win));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, lt_size, 0, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_fence(1, win));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&self));
    end();
}

static void memory_of_dynamic_windows(void)
{
    MPI_Win dynamic;
    MPI_Aint mine, *at = lt_alloc(sizeof(MPI_Aint) * (size_t)lt_size);
    int *base, size;
    MPI_Aint bytes;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(dynamic, 0, &bytes, &size, &base));
    OK(MPI_Win_attach(dynamic, memory, sizeof memory));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(dynamic, memory + 3, 4));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory + 3));
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    int next = (lt_rank + 1) % lt_size, refused, six[6] = {0};
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, dynamic));
    /* The target knows: the origin is told by this call, or when it flushes. */
    refused = lt_class(MPI_Put(&one, 1, MPI_INT, next, at[next] + (MPI_Aint)sizeof memory, 1, MPI_INT, dynamic));
    if (refused == MPI_SUCCESS)
        refused = lt_class(MPI_Win_flush(next, dynamic));
    CHECK_INT(refused, MPI_ERR_RMA_RANGE);
    /* An error of a request is the window's: it gets no other error handler. */
    MPI_Request request;
    int got;
    refused =
        lt_class(MPI_Rget(&got, 1, MPI_INT, next, at[next] + (MPI_Aint)sizeof memory, 1, MPI_INT, dynamic, &request));
    if (refused == MPI_SUCCESS) {
        MPI_Errhandler of_self;
        OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &of_self));
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
        refused = lt_class(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, of_self));
        OK(MPI_Errhandler_free(&of_self));
    }
    CHECK_INT(refused, MPI_ERR_RMA_RANGE);
    /* Pieces that adjoin are as good as one. */
    OK(MPI_Win_unlock(next, dynamic));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(dynamic, memory));
    OK(MPI_Win_attach(dynamic, memory, 4 * sizeof(int)));
    OK(MPI_Win_attach(dynamic, memory + 4, sizeof memory - 4 * sizeof(int)));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, dynamic));
    OK(MPI_Put(six, 6, MPI_INT, next, at[next] + (MPI_Aint)sizeof(int), 6, MPI_INT, dynamic));
    OK(MPI_Win_flush(next, dynamic));
    memory[7] = 0;
    OK(MPI_Put(&one, 1, MPI_INT, next, at[next] + 7 * (MPI_Aint)sizeof(int), 1, MPI_INT, dynamic));
    OK(MPI_Win_unlock(next, dynamic));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(dynamic, memory));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory));
    OK(MPI_Win_detach(dynamic, memory + 4));
    OK(MPI_Win_free(&dynamic));
    begin();
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, memory, 4));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, memory));
    FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, MPI_WIN_SIZE, NULL));
    end();
    free(at);
}

LT_MAIN("rma_errors", TEST(arguments_of_creation), TEST(arguments_of_accesses), TEST(calls_outside_their_epochs),
        TEST(memory_of_dynamic_windows))
