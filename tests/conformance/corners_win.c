/* Rarely used semantics of windows: MPI-5 chapter 12. */
#include "limosa_test.h"

static int fence_value = 5;

static void query_of_windows_that_share_nothing(void)
{
    /* 12.2.3: MPI_Win_shared_query of memory that is not shared gives a size of 0 and no address. */
    MPI_Win win;
    MPI_Aint size = 77;
    int unit = 77, memory[4];
    void *base = &win;
    OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_shared_query(win, (lt_rank + 1) % lt_size, &size, &unit, &base));
    if (lt_size > 1)
        CHECK((size == 0 && base == NULL) || (size == sizeof memory && base));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, lt_rank, &size, &unit, &base));
    OK(MPI_Win_free(&win));
}

static void query_of_ranks_without_memory(void)
{
    if (!lt_one_host())
        return;
    /* Only the last rank has memory: MPI_PROC_NULL means the first rank that has some. */
    MPI_Win win;
    MPI_Aint size = lt_rank == lt_size - 1 ? 64 : 0;
    int unit = 0, *base, *found;
    OK(MPI_Win_allocate_shared(size, lt_rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &found));
    CHECK_INT(size, 64);
    CHECK_INT(unit, lt_size);
    CHECK(found != NULL);
    OK(MPI_Win_fence(0, win));
    if (lt_rank == 0)
        found[3] = 42;
    OK(MPI_Win_fence(0, win));
    CHECK_INT(found[3], 42);
    OK(MPI_Win_free(&win));
    /* No rank has any. */
    OK(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    size = 9;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &found));
    CHECK_INT(size, 0);
    CHECK(found == NULL);
    OK(MPI_Win_free(&win));
}

static void attached_memory_of_dynamic_windows(void)
{
    static int memory[64];
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(win, memory, 128));
    /* Overlapping areas must not be attached at the same time (12.2.4). */
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory + 16, 128));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory + 1));
    OK(MPI_Win_attach(win, memory + 32, 128)); /* adjacent ones may */
    MPI_Aint mine, theirs[64];
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, theirs, 1, MPI_AINT, MPI_COMM_WORLD));
    int next = (lt_rank + 1) % lt_size, value = lt_rank + 10, got = -1;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, MPI_Aint_add(theirs[next], 4 * 40), 1, MPI_INT, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(&got, 1, MPI_INT, next, MPI_Aint_add(theirs[next], 4 * 40), 1, MPI_INT, win));
    OK(MPI_Win_flush_all(win));
    CHECK_INT(got, value);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_attach(win, memory, 64));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_detach(win, memory + 32));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory + 32));
    OK(MPI_Win_free(&win));
}

static void requests_of_accesses_beside_others(void)
{
    MPI_Win win;
    int *base, next = (lt_rank + 1) % lt_size, previous = (lt_rank + lt_size - 1) % lt_size;
    int sent[2] = {lt_rank, lt_rank + 1}, got[2] = {-1, -1}, message = -1, one = 1, old = -1, done = 0;
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, 16);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request requests[5];
    OK(MPI_Irecv(&message, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Rput(sent, 2, MPI_INT, next, 0, 2, MPI_INT, win, &requests[1]));
    OK(MPI_Rget_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, next, 2, 1, MPI_INT, MPI_SUM, win, &requests[2]));
    OK(MPI_Raccumulate(&one, 1, MPI_INT, next, 3, 1, MPI_INT, MPI_SUM, win, &requests[3]));
    OK(MPI_Isend(sent, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[4]));
    for (int left = 5; left > 0; left--) {
        int index;
        MPI_Status status = {0};
        OK(MPI_Waitany(5, requests, &index, &status));
        CHECK(index >= 0 && index < 5 && requests[index] == MPI_REQUEST_NULL);
        done |= 1 << index;
        if (index == 0)
            CHECK_INT(status.MPI_SOURCE, previous);
    }
    CHECK_INT(done, 31);
    CHECK_INT(message, previous);
    CHECK_INT(old, 0);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Rget(got, 2, MPI_INT, next, 0, 2, MPI_INT, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(got[0] == sent[0] && got[1] == sent[1]);
    OK(MPI_Rput(sent, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

static void requests_only_in_passive_epochs(void)
{
    MPI_Win win;
    MPI_Request request = MPI_REQUEST_NULL;
    int *base;
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Rput(&fence_value, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
}

static void predefined_attributes_of_each_flavor(void)
{
    MPI_Win win;
    int flag, *flavor, *model, *unit;
    MPI_Aint *size;
    void *base, *found;
    char memory[24];
    OK(MPI_Win_create(memory, 24, 3, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag));
    CHECK(flag && found == memory);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag));
    CHECK(flag && *size == 24);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag));
    CHECK(flag && *unit == 3);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag));
    CHECK(flag && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    REFUSED(MPI_Win_set_attr(win, MPI_WIN_BASE, memory));
    REFUSED(MPI_Win_delete_attr(win, MPI_WIN_SIZE));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag));
    CHECK(flag && found == MPI_BOTTOM);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag));
    CHECK(flag && *size == 0);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag));
    CHECK(flag && *unit == 1);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate(0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag));
    CHECK(flag && *size == 0);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
    OK(MPI_Win_free(&win));
}

static void groups_and_names_of_windows(void)
{
    MPI_Win win;
    MPI_Group group, world;
    int result, length;
    char name[MPI_MAX_OBJECT_NAME] = "x";
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0 && name[0] == 0);
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    /* A window of a communicator that is freed before it. */
    MPI_Comm comm;
    int *base;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Comm_free(&comm));
    *base = 0;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&fence_value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (lt_rank == 0)
        CHECK_INT(*base, 5 * lt_size);
    OK(MPI_Win_free(&win));
}

static void accumulation_of_pairs_and_no_op(void)
{
    struct {
        double value;
        int index;
    } *base, mine = {lt_rank * 1.5, lt_rank}, old = {-1, -1};
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &win));
    base->value = -1;
    base->index = 99;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_NO_OP,
                          win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(old.value == (lt_size - 1) * 1.5 && old.index == lt_size - 1);
    OK(MPI_Win_free(&win));
}

static void info_of_windows(void)
{
    MPI_Win win;
    MPI_Info info, used;
    char value[MPI_MAX_INFO_VAL];
    int flag, room = sizeof value, *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "accumulate_ops", "same_op"));
    OK(MPI_Info_set(info, "unheard_of", "1"));
    OK(MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &used));
    OK(MPI_Info_get_string(used, "no_locks", &room, value, &flag));
    CHECK(flag && !strcmp(value, "true"));
    room = sizeof value;
    OK(MPI_Info_get_string(used, "unheard_of", &room, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_free(&used));
    OK(MPI_Win_set_info(win, MPI_INFO_NULL));
    OK(MPI_Win_free(&win));
}

static void negative_displacements_and_empty_accesses(void)
{
    MPI_Win win;
    int memory[8] = {0}, values[2] = {1, 2};
    MPI_Datatype pair;
    /* The datatype begins before its displacement. */
    MPI_Aint places[2] = {-8, 4};
    int lengths[2] = {1, 1};
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, 2, MPI_INT, lt_rank, 3, 1, pair, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(values, 2, MPI_INT, lt_rank, 1, 1, pair, win));
    OK(MPI_Put(NULL, 0, MPI_INT, lt_rank, 0, 0, MPI_INT, win));
    OK(MPI_Put(values, 0, MPI_INT, lt_rank, 8, 0, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[1] == 1 && memory[4] == 2 && memory[0] == 0 && memory[3] == 0);
    OK(MPI_Type_free(&pair));
    OK(MPI_Win_free(&win));
}

LT_MAIN("corners_win", TEST(query_of_windows_that_share_nothing), TEST(query_of_ranks_without_memory),
        TEST(attached_memory_of_dynamic_windows), TEST(requests_of_accesses_beside_others),
        TEST(requests_only_in_passive_epochs), TEST(predefined_attributes_of_each_flavor),
        TEST(groups_and_names_of_windows), TEST(accumulation_of_pairs_and_no_op), TEST(info_of_windows),
        TEST(negative_displacements_and_empty_accesses))
