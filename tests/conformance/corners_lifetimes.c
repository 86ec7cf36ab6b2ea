/* Objects that are freed while something still needs them: MPI-5 sections 2.5.1, 3.7.3, 6.12, 6.13, 7.4.3, 12.2, 14.2.
 */
#include "limosa_test.h"

static int next, previous;

static void neighbours(void)
{
    next = (lt_rank + 1) % lt_size;
    previous = (lt_rank + lt_size - 1) % lt_size;
}

static void communicators_types_and_groups_of_messages_under_way(void)
{
    neighbours();
    enum { N = 50000 };
    static int out[2 * N], in[2 * N];
    MPI_Comm comm;
    MPI_Datatype every_other;
    MPI_Request requests[2];
    for (int i = 0; i < 2 * N; i++) {
        out[i] = lt_rank * 7 + i;
        in[i] = -1;
    }
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Irecv(in, 1, every_other, previous, 0, comm, &requests[0]));
    OK(MPI_Isend(out, 1, every_other, next, 0, comm, &requests[1]));
    OK(MPI_Type_free(&every_other));
    OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL && every_other == MPI_DATATYPE_NULL);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * N; i += 997 * 2)
        CHECK_INT(in[i], previous * 7 + i);
    CHECK_INT(in[1], -1);
}

static void add(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)b)[i] += ((int *)a)[i];
}

static void operations_of_collectives_under_way(void)
{
    MPI_Op op;
    MPI_Comm comm;
    MPI_Request requests[3];
    int mine = lt_rank + 1, sum = 0, all[lt_size], root = lt_rank == 0 ? 99 : 0;
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, lt_rank, &comm));
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, op, comm, &requests[0]));
    OK(MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm, &requests[1]));
    OK(MPI_Ibcast(&root, 1, MPI_INT, 0, comm, &requests[2]));
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(sum, lt_size * (lt_size + 1) / 2);
    CHECK_INT(all[lt_size - 1], lt_size);
    CHECK_INT(root, 99);
}

static void what_persistent_requests_need(void)
{
    neighbours();
    MPI_Op op;
    MPI_Comm comm;
    MPI_Datatype pair;
    MPI_Request reduce, send, receive;
    int mine[2] = {0, 0}, sum[2], in[2];
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Allreduce_init(mine, sum, 2, MPI_INT, op, comm, MPI_INFO_NULL, &reduce));
    OK(MPI_Send_init(mine, 1, pair, next, 5, comm, &send));
    OK(MPI_Recv_init(in, 1, pair, previous, 5, comm, &receive));
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&comm));
    for (int round = 0; round < 3; round++) {
        mine[0] = lt_rank;
        mine[1] = round;
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        OK(MPI_Start(&reduce));
        OK(MPI_Wait(&reduce, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        CHECK(sum[0] == lt_size * (lt_size - 1) / 2 && sum[1] == round * lt_size);
        CHECK(in[0] == previous && in[1] == round);
    }
    OK(MPI_Request_free(&reduce));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

static void requests_that_are_freed_while_active(void)
{
    neighbours();
    MPI_Request request;
    int out = lt_rank, in = -1;
    OK(MPI_Isend(&out, 1, MPI_INT, next, 9, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Recv(&in, 1, MPI_INT, previous, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(in, previous);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    REFUSED(MPI_Request_free(&request));
}

static int deleted;

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void keys_and_handlers_that_are_in_use(void)
{
    MPI_Comm comm, copy;
    int keyval, value = 5, flag, *found, freed;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_attr(comm, keyval, &value));
    freed = keyval;
    OK(MPI_Comm_free_keyval(&freed));
    CHECK_INT(freed, MPI_KEYVAL_INVALID);
    /* The attribute is there until its communicators are gone. */
    OK(MPI_Comm_get_attr(comm, keyval, &found, &flag));
    CHECK(flag && *found == 5);
    OK(MPI_Comm_dup(comm, &copy));
    deleted = 0;
    OK(MPI_Comm_free(&comm));
    CHECK_INT(deleted, 5);
    OK(MPI_Comm_get_attr(copy, keyval, &found, &flag));
    CHECK(flag && *found == 5);
    OK(MPI_Comm_free(&copy));
    CHECK_INT(deleted, 10);
}

static void windows_that_are_freed_with_requests_left(void)
{
    neighbours();
    MPI_Win win;
    MPI_Request request;
    int *base, value = 3 + lt_rank;
    OK(MPI_Win_allocate(8, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = base[1] = 0;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Rput(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_INT(base[0], 3 + previous);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); /* the epoch has completed it; the request is still to be freed */
    CHECK(request == MPI_REQUEST_NULL);
    /* An epoch that is open: the window stays. */
    OK(MPI_Win_allocate(8, 4, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
}

static void parts_of_types_that_are_freed(void)
{
    MPI_Datatype inner, outer, dup, parts[1];
    int length = 2, integers[2], n_i, n_a, n_t, combiner, out[4] = {1, 2, 3, 4}, in[4] = {0};
    MPI_Aint at = 0, addresses[1];
    OK(MPI_Type_contiguous(2, MPI_INT, &inner));
    OK(MPI_Type_create_struct(1, &length, &at, &inner, &outer));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_dup(outer, &dup));
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_commit(&dup));
    OK(MPI_Sendrecv(out, 1, dup, lt_rank, 0, in, 4, MPI_INT, lt_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[0] == 1 && in[3] == 4);
    OK(MPI_Type_get_envelope(dup, &n_i, &n_a, &n_t, &combiner));
    CHECK(combiner == MPI_COMBINER_DUP && n_t == 1);
    OK(MPI_Type_get_contents(dup, n_i, n_a, n_t, integers, addresses, parts));
    OK(MPI_Type_get_envelope(parts[0], &n_i, &n_a, &n_t, &combiner));
    CHECK_INT(combiner, MPI_COMBINER_STRUCT);
    OK(MPI_Type_free(&dup));
    OK(MPI_Type_free(&parts[0]));
}

LT_MAIN("corners_lifetimes", TEST(communicators_types_and_groups_of_messages_under_way),
        TEST(operations_of_collectives_under_way), TEST(what_persistent_requests_need),
        TEST(requests_that_are_freed_while_active), TEST(keys_and_handlers_that_are_in_use),
        TEST(windows_that_are_freed_with_requests_left), TEST(parts_of_types_that_are_freed))
