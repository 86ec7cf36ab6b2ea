/* Rarely used semantics of communicators, messages, error handlers and the ABI: MPI-5 chapters 3, 4, 7, 9 and 20. */
#include "limosa_test.h"

static int next, previous;

static void neighbours(void)
{
    next = (lt_rank + 1) % lt_size;
    previous = (lt_rank + lt_size - 1) % lt_size;
}

static void idup_with_info(void)
{
    MPI_Comm comm, second;
    MPI_Request requests[2];
    MPI_Info info, used;
    int result, sum, one = 1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comm, &requests[0]));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &second, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
    CHECK_INT(result, MPI_CONGRUENT);
    OK(MPI_Comm_compare(comm, second, &result));
    CHECK_INT(result, MPI_CONGRUENT);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_INT(sum, lt_size);
    OK(MPI_Comm_get_info(second, &used));
    char value[8];
    int flag, room = sizeof value;
    OK(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &room, value, &flag));
    CHECK(!flag || !strcmp(value, "false")); /* MPI_Comm_idup copies no hints */
    OK(MPI_Info_free(&used));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&second));
}

static void isendrecv_and_replace(void)
{
    neighbours();
    MPI_Request request;
    MPI_Status status;
    int value[3] = {lt_rank, lt_rank * 10, 5}, in[3] = {-1, -1, -1}, count;
    OK(MPI_Isendrecv(value, 3, MPI_INT, next, 1, in, 3, MPI_INT, previous, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(in[0] == previous && in[1] == previous * 10);
    CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == 1);
    OK(MPI_Isendrecv_replace(value, 3, MPI_INT, next, 2, previous, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(value[0] == previous && value[1] == previous * 10 && value[2] == 5);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 3);
    /* No rank at one end. */
    value[0] = 77;
    OK(MPI_Isendrecv_replace(value, 1, MPI_INT, MPI_PROC_NULL, 2, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(value[0] == 77 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    /* With oneself, of a type with holes. */
    MPI_Datatype ends;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &ends));
    OK(MPI_Type_commit(&ends));
    int holes[3] = {1, 2, 3};
    OK(MPI_Isendrecv_replace(holes, 1, ends, 0, 0, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(holes[0] == 1 && holes[1] == 2 && holes[2] == 3);
    OK(MPI_Type_free(&ends));
}

static void partitions_of_different_numbers(void)
{
    neighbours();
    enum { ALL = 60 };
    int out[ALL], in[ALL], arrived;
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, 12, 5, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 4, 15, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ALL; i++)
            out[i] = 1000 * lt_rank + 100 * round + i;
        memset(in, 0, sizeof in);
        OK(MPI_Startall(2, requests));
        for (int p = 11; p >= 6; p--)
            OK(MPI_Pready(p, requests[0]));
        int list[3] = {0, 2, 4};
        OK(MPI_Pready_list(3, list, requests[0]));
        OK(MPI_Pready(1, requests[0]));
        OK(MPI_Pready(3, requests[0]));
        OK(MPI_Pready_range(5, 5, requests[0]));
        do
            OK(MPI_Parrived(requests[1], 2, &arrived));
        while (!arrived);
        for (int i = 30; i < 45; i++)
            CHECK_INT(in[i], 1000 * previous + 100 * round + i);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_INT(in[ALL - 1], 1000 * previous + 100 * round + ALL - 1);
        OK(MPI_Parrived(requests[1], 0, &arrived));
        CHECK_INT(arrived, 1); /* inactive */
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

static void predefined_attributes(void)
{
    int *value, flag, *again;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && (*value == MPI_ANY_SOURCE || *value == lt_rank || *value == MPI_PROC_NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*value == 0 || *value == 1));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= lt_size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    int before = *value, new_class;
    OK(MPI_Add_error_class(&new_class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &again, &flag));
    CHECK(flag && *again > before && *again >= new_class);
    OK(MPI_Remove_error_class(new_class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(!flag || *value >= 0);
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_TAG_UB, &again, &flag));
    CHECK(flag && *again >= 32767);
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &before));
    REFUSED(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB));
    int keyval = MPI_TAG_UB;
    REFUSED(MPI_Comm_free_keyval(&keyval));
}

static void error_handlers_of_communicators_are_inherited(void)
{
    MPI_Comm comm;
    MPI_Errhandler got, of_world;
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world));
    CHECK(of_world == MPI_ERRORS_RETURN);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -lt_rank, &comm));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == MPI_ERRORS_ABORT);
    OK(MPI_Comm_free(&comm));
    REFUSED(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_RETURN);
}

static void abi_functions(void)
{
    int major = -1, minor = -1;
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK(major == MPI_ABI_VERSION && minor >= MPI_ABI_SUBVERSION);
    MPI_Info info = MPI_INFO_NULL;
    OK(MPI_Abi_get_info(&info));
    CHECK(info != MPI_INFO_NULL);
    char value[MPI_MAX_INFO_VAL];
    int flag, room = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_aint_size", &room, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Aint));
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&info));
    if (info != MPI_INFO_NULL)
        OK(MPI_Info_free(&info));
}

static void hardware_info(void)
{
    MPI_Info info = MPI_INFO_NULL;
    int keys = -1;
    OK(MPI_Get_hw_resource_info(&info));
    CHECK(info != MPI_INFO_NULL);
    OK(MPI_Info_get_nkeys(info, &keys));
    CHECK(keys >= 0);
    for (int i = 0; i < keys; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL];
        int flag, room = sizeof value;
        OK(MPI_Info_get_nthkey(info, i, key));
        OK(MPI_Info_get_string(info, key, &room, value, &flag));
        CHECK(flag && (!strcmp(value, "true") || !strcmp(value, "false")));
        CHECK(strstr(key, "://") != NULL);
        /* Only a process that is restricted to one of them is in a communicator of those that share it. */
        MPI_Info resource;
        MPI_Comm part;
        OK(MPI_Info_create(&resource));
        OK(MPI_Info_set(resource, "mpi_hw_resource_type", key));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, i % 2 ? MPI_COMM_TYPE_HW_GUIDED : MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
                               resource, &part));
        CHECK((part != MPI_COMM_NULL) == !strcmp(value, "true"));
        if (part != MPI_COMM_NULL)
            OK(MPI_Comm_free(&part));
        OK(MPI_Info_free(&resource));
    }
    CHECK(keys >= 3);
    OK(MPI_Info_free(&info));
    /* Split by what it names. */
    MPI_Comm comm;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "no such://thing"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm));
    CHECK(comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm));
    CHECK(comm == MPI_COMM_NULL);
    /* Process sets are resources, too. */
    struct {
        const char *set;
        int size;
    } sets[] = {{"mpi://SELF", 1}, {"mpi://WORLD", lt_size}, {"mpi://nothing", 0}};
    for (int i = 0; i < 3; i++) {
        int size = 0;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_pset_name", sets[i].set));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, -lt_rank, info, &comm));
        if (comm != MPI_COMM_NULL) {
            OK(MPI_Comm_size(comm, &size));
            OK(MPI_Comm_free(&comm));
        }
        CHECK_INT(size, sets[i].size);
        OK(MPI_Info_free(&info));
    }
}

static void buffers_of_communicators(void)
{
    neighbours();
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    char room[1000 + MPI_BSEND_OVERHEAD], global[200 + MPI_BSEND_OVERHEAD], data[900] = "hello";
    void *back = NULL;
    int size = -1;
    OK(MPI_Comm_attach_buffer(comm, room, sizeof room));
    REFUSED(MPI_Comm_attach_buffer(comm, global, sizeof global)); /* one at a time */
    OK(MPI_Buffer_attach(global, sizeof global));                 /* for all others */
    OK(MPI_Bsend(data, 900, MPI_CHAR, next, 0, comm));
#ifndef MPICH /* whose smaller MPI_BSEND_OVERHEAD the translation makes up for by a larger buffer */
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, 900, MPI_CHAR, next, 0, MPI_COMM_WORLD));
#endif
    char in[900];
    OK(MPI_Recv(in, 900, MPI_CHAR, previous, 0, comm, MPI_STATUS_IGNORE));
    CHECK(!strcmp(in, "hello"));
    MPI_Request request;
    OK(MPI_Comm_iflush_buffer(comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_flush_buffer(comm));
    OK(MPI_Comm_detach_buffer(comm, &back, &size));
    CHECK(back == room && size == (int)sizeof room);
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == global && size == (int)sizeof global);
    OK(MPI_Buffer_detach(&back, &size)); /* there is none: not an error since MPI-4.1, size 0 */
    CHECK(size == 0);
    /* One that grows. */
    OK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(data, 900, MPI_CHAR, next, 1, comm));
    OK(MPI_Recv(in, 900, MPI_CHAR, previous, 1, comm, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(comm, &back, &size));
    CHECK(back == MPI_BUFFER_AUTOMATIC && size == 0);
    OK(MPI_Comm_free(&comm));
}

static void statuses_that_are_empty_or_changed(void)
{
    MPI_Status status = {.MPI_SOURCE = 1, .MPI_TAG = 2, .MPI_ERROR = 3};
    MPI_Request request = MPI_REQUEST_NULL;
    int flag, count, index;
    OK(MPI_Test(&request, &flag, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    CHECK_INT(status.MPI_ERROR, MPI_SUCCESS);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 0);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    OK(MPI_Waitany(1, &request, &index, &status));
    CHECK_INT(index, MPI_UNDEFINED);
    OK(MPI_Testsome(1, &request, &count, &index, &status));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    OK(MPI_Status_set_source(&status, 5));
    OK(MPI_Status_set_tag(&status, 6));
    OK(MPI_Status_set_error(&status, MPI_ERR_OTHER));
    OK(MPI_Status_set_elements(&status, MPI_DOUBLE, 3));
    OK(MPI_Status_set_cancelled(&status, 1));
    int source, tag, code;
    OK(MPI_Status_get_source(&status, &source));
    OK(MPI_Status_get_tag(&status, &tag));
    OK(MPI_Status_get_error(&status, &code));
    OK(MPI_Get_elements(&status, MPI_DOUBLE, &count));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(source == 5 && tag == 6 && code == MPI_ERR_OTHER && count == 3 && flag);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 6);
}

static void groups_with_nobody(void)
{
    MPI_Group group, world, other;
    MPI_Comm comm;
    int size, rank, result;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 0, NULL, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    OK(MPI_Group_size(MPI_GROUP_EMPTY, &size));
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
    CHECK(size == 0 && rank == MPI_UNDEFINED);
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);
    int range[1][3] = {{lt_size - 1, 0, -1}}, ranks[2] = {0, MPI_PROC_NULL}, there[2];
    OK(MPI_Group_range_incl(world, 1, range, &group));
    OK(MPI_Group_compare(world, group, &result));
    CHECK_INT(result, lt_size == 1 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_translate_ranks(world, 2, ranks, group, there));
    CHECK(there[0] == lt_size - 1 && there[1] == MPI_PROC_NULL);
    OK(MPI_Group_difference(world, group, &other));
    CHECK(other == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&group));
    int bad[1][3] = {{0, lt_size, 1}}, zero[1][3] = {{0, 0, 0}}, twice[2] = {0, 0};
    REFUSED(MPI_Group_range_incl(world, 1, bad, &group));
    REFUSED(MPI_Group_range_incl(world, 1, zero, &group));
    REFUSED(MPI_Group_incl(world, 2, twice, &group));
    OK(MPI_Group_free(&world));
}

static void matched_probes_of_nobody_and_of_nothing(void)
{
    neighbours();
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Request request;
    int flag = -1, value = 3, in = -1;
    OK(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Imrecv(&in, 1, MPI_INT, &message, &request));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && in == -1);
    OK(MPI_Improbe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(!flag);
    OK(MPI_Isend(&value, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &request));
    OK(MPI_Mprobe(previous, 7, MPI_COMM_WORLD, &message, &status));
    /* A receive does not get what was matched. */
    MPI_Request other;
    OK(MPI_Irecv(&in, 1, MPI_INT, previous, 7, MPI_COMM_WORLD, &other));
    int got = 0;
    OK(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
    CHECK_INT(got, 3);
    OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Cancel(&other));
    OK(MPI_Wait(&other, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    REFUSED(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
}

static void info_in_odd_shapes(void)
{
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY + 1], value[16], longer[MPI_MAX_INFO_VAL + 8];
    int n, flag, room;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "one", "first value"));
    OK(MPI_Info_set(info, "two", ""));
    OK(MPI_Info_set(info, "one", "second"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_INT(n, 2);
    room = 4;
    OK(MPI_Info_get_string(info, "one", &room, value, &flag));
    CHECK(flag && room == 7 && !strcmp(value, "sec"));
    room = 0;
    OK(MPI_Info_get_string(info, "one", &room, NULL, &flag));
    CHECK(flag && room == 7);
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "one"));
    FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "one"));
    OK(MPI_Info_get_nkeys(copy, &n));
    CHECK_INT(n, 2);
    OK(MPI_Info_get_nthkey(copy, 0, key));
    CHECK(!strcmp(key, "one"));
    REFUSED(MPI_Info_get_nthkey(copy, 2, key));
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    FAILS(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "long", longer));
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, longer, "x"));
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "x"));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    REFUSED(MPI_Info_set(MPI_INFO_ENV, "a", "b"));
}

LT_MAIN("corners_comm", TEST(idup_with_info), TEST(isendrecv_and_replace), TEST(partitions_of_different_numbers),
        TEST(predefined_attributes), TEST(error_handlers_of_communicators_are_inherited), TEST(abi_functions),
        TEST(hardware_info), TEST(buffers_of_communicators), TEST(statuses_that_are_empty_or_changed),
        TEST(groups_with_nobody), TEST(matched_probes_of_nobody_and_of_nothing), TEST(info_in_odd_shapes))
