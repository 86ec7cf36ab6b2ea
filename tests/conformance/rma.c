/* One-sided communication: data, epochs and objects (MPI-5 chapter 12), for every flavour of window. Accumulation is in
 * rma_accumulate.c, wrong use in rma_errors.c. */
#include "limosa_test.h"
#include <sched.h>

enum { CREATE, CREATE_ALLOCATED, ALLOCATE, SHARED, DYNAMIC, FLAVORS };

typedef struct {
    MPI_Win win;
    char *base;
    char *block;     /* of MPI_Alloc_mem */
    MPI_Aint at[64]; /* the displacement of the start of each rank's memory */
    int flavor;
} window;

/* A window of `bytes` zero bytes per rank with a unit of one byte; 0 if this flavour is not possible here. */
static int make(window *w, int flavor, MPI_Aint bytes)
{
    memset(w, 0, sizeof *w);
    w->flavor = flavor;
    if (flavor == SHARED && !lt_one_host())
        return 0;
    switch (flavor) {
    case CREATE:
        w->base = lt_alloc((size_t)bytes);
        OK(MPI_Win_create(w->base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
        break;
    case CREATE_ALLOCATED:
        /* In the middle of a block; on some ranks only, so that there are both sorts in a window. */
        OK(MPI_Alloc_mem(bytes + 40, MPI_INFO_NULL, &w->block));
        w->base = lt_rank % 3 == 2 ? lt_alloc((size_t)bytes) : w->block + 24;
        OK(MPI_Win_create(w->base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
        break;
    case ALLOCATE: OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->base, &w->win)); break;
    case SHARED: OK(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->base, &w->win)); break;
    default:
        w->base = lt_alloc((size_t)bytes);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
        OK(MPI_Win_attach(w->win, w->base, bytes));
        MPI_Aint mine;
        OK(MPI_Get_address(w->base, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, w->at, 1, MPI_AINT, MPI_COMM_WORLD));
    }
    OK(MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN));
    memset(w->base, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return 1;
}

static void unmake(window *w)
{
    if (w->flavor == DYNAMIC) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_detach(w->win, w->base));
    }
    OK(MPI_Win_free(&w->win));
    CHECK_INT(w->win == MPI_WIN_NULL, 1);
    if (w->flavor == CREATE || w->flavor == DYNAMIC || (w->flavor == CREATE_ALLOCATED && lt_rank % 3 == 2))
        free(w->base);
    if (w->block)
        OK(MPI_Free_mem(w->block));
}

static void fences_separate_puts_and_gets(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        const int n = 1000;
        if (!make(&w, flavor, (MPI_Aint)n * lt_size))
            continue;
        char *out = lt_alloc((size_t)n), *in = lt_alloc((size_t)n);
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win));
        for (int to = 0; to < lt_size; to++) {
            lt_fill(out, (size_t)n, (uint64_t)(lt_rank * 100 + to));
            OK(MPI_Put(out, n, MPI_CHAR, to, w.at[to] + (MPI_Aint)n * lt_rank, n, MPI_CHAR, w.win));
            OK(MPI_Win_fence(0, w.win));
        }
        for (int from = 0; from < lt_size; from++)
            CHECK_FILLED(w.base + n * from, (size_t)n, (uint64_t)(from * 100 + lt_rank));
        for (int from = 0; from < lt_size; from++) {
            OK(MPI_Get(in, n, MPI_CHAR, from, w.at[from] + (MPI_Aint)n * lt_rank, n, MPI_CHAR, w.win));
            OK(MPI_Win_fence(0, w.win));
            CHECK_FILLED(in, (size_t)n, (uint64_t)(lt_rank * 100 + from));
        }
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOPUT | MPI_MODE_NOSTORE, w.win));
        free(out);
        free(in);
        unmake(&w);
    }
}

static void derived_types_on_both_sides(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        enum { N = 600 };
        if (!make(&w, flavor, 4 * N * sizeof(int)))
            continue;
        MPI_Datatype columns, backwards;
        int at[N], lengths[N];
        for (int i = 0; i < N; i++) {
            at[i] = 3 * (N - 1 - i);
            lengths[i] = 1;
        }
        OK(MPI_Type_vector(N, 1, 4, MPI_INT, &columns));
        OK(MPI_Type_indexed(N, lengths, at, MPI_INT, &backwards));
        OK(MPI_Type_commit(&columns));
        OK(MPI_Type_commit(&backwards));
        int *out = lt_alloc(3 * N * sizeof(int)), *in = lt_alloc(3 * N * sizeof(int));
        int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
        for (int i = 0; i < 3 * N; i++)
            out[i] = lt_rank * 10000 + i;
        memset(in, -1, 3 * N * sizeof(int));
        OK(MPI_Win_fence(0, w.win));
        OK(MPI_Put(out, 1, backwards, to, w.at[to], 1, columns, w.win));
        OK(MPI_Win_fence(0, w.win));
        const int *mine = (const int *)w.base;
        for (int i = 0; i < 4 * N; i++)
            CHECK_INT(mine[i], i % 4 ? 0 : from * 10000 + 3 * (N - 1 - i / 4));
        OK(MPI_Get(in, 1, backwards, to, w.at[to], 1, columns, w.win));
        OK(MPI_Win_fence(0, w.win));
        for (int i = 0; i < 3 * N; i++)
            CHECK_INT(in[i], i % 3 ? -1 : out[i]);
        OK(MPI_Type_free(&columns));
        OK(MPI_Type_free(&backwards));
        free(out);
        free(in);
        unmake(&w);
    }
}

static void an_exclusive_lock_excludes(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        if (!make(&w, flavor, sizeof(long)))
            continue;
        const int turns = 40;
        for (int i = 0; i < turns; i++) {
            long value = -1;
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
            OK(MPI_Get(&value, 1, MPI_LONG, 0, w.at[0], 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(0, w.win));
            value++;
            OK(MPI_Put(&value, 1, MPI_LONG, 0, w.at[0], 1, MPI_LONG, w.win));
            OK(MPI_Win_unlock(0, w.win));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        long sum = -1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
        OK(MPI_Get(&sum, 1, MPI_LONG, 0, w.at[0], 1, MPI_LONG, w.win));
        OK(MPI_Win_unlock(0, w.win));
        CHECK_INT(sum, turns * lt_size);
        unmake(&w);
    }
}

/* Writers alone, readers together, in any order: no rank sees half of what a writer does, and all get their turns. */
static void readers_share_a_lock_and_see_whole_writes(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        if (!make(&w, flavor, 2 * sizeof(long)))
            continue;
        const int turns = 24;
        for (int i = 0; i < turns; i++) {
            const int writes = (i + lt_rank) % 3 == 0;
            const int target = i % lt_size;
            long pair[2] = {-1, -2};
            OK(MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w.win));
            OK(MPI_Get(&pair[0], 1, MPI_LONG, target, w.at[target], 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(target, w.win));
            OK(MPI_Get(&pair[1], 1, MPI_LONG, target, w.at[target] + (MPI_Aint)sizeof(long), 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(target, w.win));
            CHECK_INT(pair[0], pair[1]);
            pair[0]++, pair[1]++;
            for (int k = 0; writes && k < 2; k++) {
                OK(MPI_Put(&pair[k], 1, MPI_LONG, target, w.at[target] + k * (MPI_Aint)sizeof(long), 1, MPI_LONG,
                           w.win));
                OK(MPI_Win_flush(target, w.win));
            }
            OK(MPI_Win_unlock(target, w.win));
            if (i % 10 == 0) {
                OK(MPI_Win_lock_all(0, w.win));
                OK(MPI_Win_unlock_all(w.win));
            }
        }
        unmake(&w);
    }
}

static void locks_of_several_targets_and_of_all(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        if (!make(&w, flavor, (MPI_Aint)sizeof(int) * lt_size))
            continue;
        int out = lt_rank + 1;
        MPI_Aint place = (MPI_Aint)sizeof(int) * lt_rank;
        for (int to = 0; to < lt_size; to++)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, to, to % 2 ? MPI_MODE_NOCHECK : 0, w.win));
        for (int to = 0; to < lt_size; to++)
            OK(MPI_Put(&out, 1, MPI_INT, to, w.at[to] + place, 1, MPI_INT, w.win));
        for (int to = lt_size - 1; to >= 0; to--)
            OK(MPI_Win_unlock(to, w.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock_all(0, w.win));
        for (int from = 0; from < lt_size; from++) {
            int *in = lt_alloc(sizeof(int) * (size_t)lt_size);
            OK(MPI_Get(in, lt_size, MPI_INT, from, w.at[from], lt_size, MPI_INT, w.win));
            OK(from % 2 ? MPI_Win_flush_local(from, w.win) : MPI_Win_flush_all(w.win));
            for (int i = 0; i < lt_size; i++)
                CHECK_INT(in[i], i + 1);
            free(in);
        }
        OK(MPI_Win_sync(w.win));
        OK(MPI_Win_flush_local_all(w.win));
        OK(MPI_Win_unlock_all(w.win));
        unmake(&w);
    }
}

/* The target is not in the library until the data are there. */
static void a_target_that_computes_delays_nobody(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        if (!make(&w, flavor, 2 * sizeof(long)))
            continue;
        if (lt_rank == 0) {
            volatile long *mine = (volatile long *)w.base;
            while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != lt_size - 1)
                sched_yield();
        } else {
            long one = 1, old = -1;
            OK(MPI_Win_lock(lt_rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
            OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, w.at[0], MPI_SUM, w.win));
            OK(MPI_Win_unlock(0, w.win));
            CHECK(old >= 0 && old < lt_size);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        unmake(&w);
    }
}

static void post_start_complete_and_wait(void)
{
    MPI_Group all, others[2];
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    int right = (lt_rank + 1) % lt_size, left = (lt_rank + lt_size - 1) % lt_size;
    OK(MPI_Group_incl(all, 1, &right, &others[0]));
    OK(MPI_Group_incl(all, 1, &left, &others[1]));
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        if (!make(&w, flavor, 5000 * sizeof(int)))
            continue;
        int *out = lt_alloc(5000 * sizeof(int));
        for (int turn = 0; turn < 5; turn++) {
            for (int i = 0; i < 5000; i++)
                out[i] = turn * 7000 + lt_rank * 31 + i;
            OK(MPI_Win_post(others[1], 0, w.win));
            OK(MPI_Win_start(others[0], 0, w.win));
            OK(MPI_Put(out, 5000, MPI_INT, right, w.at[right], 5000, MPI_INT, w.win));
            OK(MPI_Win_complete(w.win));
            if (turn % 2) {
                OK(MPI_Win_wait(w.win));
            } else {
                int flag = 0;
                while (!flag)
                    OK(MPI_Win_test(w.win, &flag));
            }
            const int *mine = (const int *)w.base;
            CHECK_INT(mine[0], turn * 7000 + left * 31);
            CHECK_INT(mine[4999], turn * 7000 + left * 31 + 4999);
        }
        OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, w.win));
        OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, w.win));
        OK(MPI_Win_complete(w.win));
        OK(MPI_Win_wait(w.win));
        free(out);
        unmake(&w);
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&others[0]));
    OK(MPI_Group_free(&others[1]));
}

static void requests_complete(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        enum { N = 30000 };
        if (!make(&w, flavor, 2 * N * sizeof(int)))
            continue;
        int *out = lt_alloc(N * sizeof(int)), *in = lt_alloc(N * sizeof(int)), *old = lt_alloc(N * sizeof(int));
        int to = (lt_rank + 1) % lt_size;
        for (int i = 0; i < N; i++)
            out[i] = lt_rank + i;
        MPI_Request requests[2];
        OK(MPI_Win_lock_all(0, w.win));
        OK(MPI_Rput(out, N, MPI_INT, to, w.at[to], N, MPI_INT, w.win, &requests[0]));
        OK(MPI_Raccumulate(out, N, MPI_INT, to, w.at[to] + N * (MPI_Aint)sizeof(int), N, MPI_INT, MPI_SUM, w.win,
                           &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        memset(out, 0, N * sizeof(int));
        OK(MPI_Win_flush(to, w.win));
        OK(MPI_Rget(in, N, MPI_INT, to, w.at[to], N, MPI_INT, w.win, &requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        OK(MPI_Rget_accumulate(out, N, MPI_INT, old, N, MPI_INT, to, w.at[to] + N * (MPI_Aint)sizeof(int), N, MPI_INT,
                               MPI_SUM, w.win, &requests[1]));
        int flag = 0;
        while (!flag)
            OK(MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE));
        int wrong = 0;
        for (int i = 0; i < N; i++)
            wrong += in[i] != lt_rank + i || old[i] != lt_rank + i;
        CHECK_INT(wrong, 0);
        OK(MPI_Rget(in, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win, &requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        OK(MPI_Win_unlock_all(w.win));
        free(out);
        free(in);
        free(old);
        unmake(&w);
    }
}

static void long_transfers(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        const size_t n = 3 << 20;
        if (!make(&w, flavor, (MPI_Aint)n))
            continue;
        char *out = lt_alloc(n), *in = lt_alloc(n);
        int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
        lt_fill(out, n, (uint64_t)lt_rank);
        OK(MPI_Win_fence(0, w.win));
        OK(MPI_Put(out, (int)n, MPI_BYTE, to, w.at[to], (int)n, MPI_BYTE, w.win));
        OK(MPI_Win_fence(0, w.win));
        CHECK_FILLED(w.base, n, (uint64_t)from);
        OK(MPI_Get_c(in, (MPI_Count)n, MPI_BYTE, to, w.at[to], (MPI_Count)n, MPI_BYTE, w.win));
        OK(MPI_Win_fence(0, w.win));
        CHECK_FILLED(in, n, (uint64_t)lt_rank);
        free(out);
        free(in);
        unmake(&w);
    }
}

static void shared_memory_is_one_block_or_not(void)
{
    MPI_Comm node;
    int rank, size;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_rank(node, &rank));
    OK(MPI_Comm_size(node, &size));
    for (int apart = 0; apart < 2; apart++) {
        MPI_Info info;
        MPI_Win win;
        int *mine, unit, *first;
        MPI_Aint bytes;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
        /* Rank 0 has none. */
        OK(MPI_Win_allocate_shared(4 * rank, 4, info, node, &mine, &win));
        OK(MPI_Info_free(&info));
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < rank; i++)
            mine[i] = 100 * rank + i;
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(node));
        OK(MPI_Win_sync(win));
        OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
        CHECK_INT(bytes, size > 1 ? 4 : 0);
        int *expected = first;
        for (int peer = 0; peer < size; peer++) {
            int *theirs;
            OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &theirs));
            CHECK_INT(bytes, 4 * peer);
            CHECK_INT(unit, 4);
            CHECK_INT(theirs == NULL, peer == 0);
            for (int i = 0; i < peer; i++)
                CHECK_INT(theirs[i], 100 * peer + i);
            if (!apart && peer > 0) {
                CHECK_PTR(theirs, expected);
                expected += peer;
            }
        }
        OK(MPI_Barrier(node));
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Comm_free(&node));
}

static int deleted;

static int on_delete(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win, (void)keyval, (void)extra;
    deleted += (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static void attributes_names_info_and_group(void)
{
    double memory[10];
    MPI_Win win;
    void *value;
    int flag, length, keyval;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == memory);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag && *(MPI_Aint *)value == sizeof memory);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *(int *)value == 8);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL));
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Win_set_attr(win, keyval, (void *)5));
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK(flag && value == (void *)5);
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK_INT(deleted, 5);
    OK(MPI_Win_set_attr(win, keyval, (void *)6));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_STR(name, "");
    OK(MPI_Win_set_name(win, "boundary"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_STR(name, "boundary");
    CHECK_INT(length, 8);
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK_STR(name, "MPI_WIN_NULL");
    MPI_Group group, all;
    int result;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_compare(group, all, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    MPI_Info info;
    char text[32];
    int room = sizeof text;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "same_size", &room, text, &flag));
    CHECK(flag && strcmp(text, "true") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));
    CHECK_INT(deleted, 11);
    deleted = 0;
    OK(MPI_Win_free_keyval(&keyval));
}

static int handled;

static void on_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    handled = lt_class(*code);
}

static void error_handlers_of_windows(void)
{
    MPI_Win win;
    MPI_Errhandler own, got;
    int byte = 0;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(on_error, &own));
    OK(MPI_Win_set_errhandler(win, own));
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK_INT(handled, MPI_ERR_OTHER);
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&byte, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win));
    CHECK_INT(handled, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == own);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&own));
    OK(MPI_Win_free(&win));
}

static void several_windows_on_parts_of_the_world(void)
{
    MPI_Comm half;
    MPI_Win wins[3];
    int *base[3], rank, size;
    OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank % 2, -lt_rank, &half));
    OK(MPI_Comm_rank(half, &rank));
    OK(MPI_Comm_size(half, &size));
    for (int i = 0; i < 3; i++)
        OK(MPI_Win_allocate(sizeof(int) * (i + 1), sizeof(int), MPI_INFO_NULL, half, &base[i], &wins[i]));
    OK(MPI_Comm_free(&half)); /* a window does not need it */
    for (int i = 0; i < 3; i++) {
        int value = lt_rank * 10 + i;
        OK(MPI_Win_fence(0, wins[i]));
        OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, i, 1, MPI_INT, wins[i]));
        OK(MPI_Win_fence(0, wins[i]));
        int left = (rank + size - 1) % size, first = lt_rank % 2, last = first + 2 * (size - 1);
        CHECK_INT(base[i][i], (last - 2 * left) * 10 + i);
    }
    for (int i = 2; i >= 0; i--)
        OK(MPI_Win_free(&wins[i]));
}

static void windows_come_and_go(void)
{
    enum { AT_ONCE = 100 };
    static MPI_Win wins[AT_ONCE];
    long *base;
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < AT_ONCE; i++) {
            long value = turn * AT_ONCE + i;
            OK(MPI_Win_allocate(1000 * i, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[i]));
            OK(MPI_Win_fence(0, wins[i]));
            if (i > 0)
                OK(MPI_Put(&value, 1, MPI_LONG, (lt_rank + 1) % lt_size, 0, 1, MPI_LONG, wins[i]));
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]));
            if (i > 0)
                CHECK_INT(*base, value);
        }
        for (int i = 0; i < AT_ONCE; i++)
            OK(MPI_Win_free(&wins[(i * 37) % AT_ONCE]));
    }
}

/* Each of a pair waits for its partner's accumulate, which no rank flushes, by looking at its own memory. */
static void who_looks_sees_accesses(void)
{
    int *memory, one = 1, looks = 0, partner = lt_rank ^ 1;
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    *memory = 0;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (partner < lt_size) {
        OK(MPI_Accumulate(&one, 1, MPI_INT, partner, 0, 1, MPI_INT, MPI_REPLACE, win));
        while (__atomic_load_n(memory, __ATOMIC_RELAXED) == 0)
            if (looks++ % 2)
                MPI_Win_sync(win);
            else
                MPI_Win_flush(lt_rank, win);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

static void memory_begins_where_the_program_wants_it(void)
{
    for (size_t alignment = 32; alignment <= 1 << 20; alignment *= 32) {
        MPI_Info info;
        MPI_Win win;
        char *memory, value[20];
        OK(MPI_Info_create(&info));
        snprintf(value, sizeof value, "%zu", alignment);
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", value));
        OK(MPI_Alloc_mem(100, info, &memory));
        CHECK_INT((uintptr_t)memory % alignment, 0);
        lt_fill(memory, 100, 7);
        CHECK_FILLED(memory, 100, 7);
        OK(MPI_Free_mem(memory));
        OK(MPI_Win_allocate(40, 1, info, MPI_COMM_WORLD, &memory, &win));
        CHECK_INT((uintptr_t)memory % alignment, 0);
        OK(MPI_Win_free(&win));
        for (int apart = 0; apart < 2; apart++) {
            OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
            MPI_Comm node;
            int rank;
            OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
            OK(MPI_Comm_rank(node, &rank));
            OK(MPI_Win_allocate_shared(40, 1, info, node, &memory, &win));
            CHECK(((uintptr_t)memory - (apart ? 0 : 40 * (uintptr_t)rank)) % alignment == 0);
            OK(MPI_Win_free(&win));
            OK(MPI_Comm_free(&node));
        }
        OK(MPI_Info_free(&info));
    }
}

LT_MAIN("rma", TEST(fences_separate_puts_and_gets), TEST(derived_types_on_both_sides), TEST(an_exclusive_lock_excludes),
        TEST(readers_share_a_lock_and_see_whole_writes), TEST(locks_of_several_targets_and_of_all),
        TEST(a_target_that_computes_delays_nobody), TEST(post_start_complete_and_wait), TEST(requests_complete),
        TEST(long_transfers), TEST(shared_memory_is_one_block_or_not), TEST(memory_begins_where_the_program_wants_it),
        TEST(attributes_names_info_and_group), TEST(error_handlers_of_windows),
        TEST(several_windows_on_parts_of_the_world), TEST(windows_come_and_go), TEST(who_looks_sees_accesses))
