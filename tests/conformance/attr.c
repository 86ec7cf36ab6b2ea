/* Attributes of communicators: MPI-5 sections 7.7.2, 9.1.2 and 11.2.4 (deletion on MPI_COMM_SELF at the start of
 * MPI_Finalize). */
#include "limosa_test.h"

static int copies, deletes, last_delete_value, refuse_delete, refuse_copy;
static MPI_Comm last_delete_comm;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval;
    CHECK_PTR(extra, &copies);
    copies++;
    if (refuse_copy)
        return refuse_copy;
    *(void **)out = (char *)in + 1000;
    *flag = 1;
    return MPI_SUCCESS;
}

static int not_copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval;
    CHECK_PTR(extra, &copies);
    if (refuse_delete)
        return refuse_delete;
    deletes++;
    last_delete_comm = comm;
    last_delete_value = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static void reset(void)
{
    copies = deletes = last_delete_value = 0;
}

static void set_get_delete(void)
{
    int keyval, flag = -1;
    void *value;
    reset();
    OK(MPI_Comm_create_keyval(copy, delete, &keyval, &copies));
    CHECK(keyval != MPI_KEYVAL_INVALID);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, (void *)11));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(value, (void *)11);
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, keyval, &value, &flag));
    CHECK_INT(flag, 0);
    /* A new value: the old one is deleted first. */
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, (void *)12));
    CHECK_INT(deletes, 1);
    CHECK_INT(last_delete_value, 11);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval));
    CHECK_INT(deletes, 2);
    CHECK_INT(last_delete_value, 12);
    CHECK_PTR(last_delete_comm, MPI_COMM_WORLD);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Comm_free_keyval(&keyval));
    CHECK_INT(keyval, MPI_KEYVAL_INVALID);
}

static void copied_and_deleted(void)
{
    int with_copy, without, by_dup, never, flag = -1;
    void *value;
    MPI_Comm dup, of_dup, part;
    reset();
    OK(MPI_Comm_create_keyval(copy, delete, &with_copy, &copies));
    OK(MPI_Comm_create_keyval(not_copied, delete, &without, &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &by_dup, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_attr(dup, with_copy, (void *)1));
    OK(MPI_Comm_set_attr(dup, without, (void *)2));
    OK(MPI_Comm_set_attr(dup, by_dup, (void *)3));
    OK(MPI_Comm_set_attr(dup, never, (void *)4));
    OK(MPI_Comm_dup(dup, &of_dup));
    CHECK_INT(copies, 2);
    OK(MPI_Comm_get_attr(of_dup, with_copy, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(value, (void *)1001);
    OK(MPI_Comm_get_attr(of_dup, without, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Comm_get_attr(of_dup, by_dup, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(value, (void *)3);
    OK(MPI_Comm_get_attr(of_dup, never, &value, &flag));
    CHECK_INT(flag, 0);
    /* MPI_Comm_split and the other constructors copy nothing. */
    OK(MPI_Comm_split(dup, 0, 0, &part));
    CHECK_INT(copies, 2);
    OK(MPI_Comm_get_attr(part, by_dup, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Comm_free(&part));
    CHECK_INT(deletes, 0);
    OK(MPI_Comm_free(&of_dup));
    CHECK_INT(deletes, 1);
    CHECK_INT(last_delete_value, 1001);
    /* The keyval stays alive inside as long as an attribute uses it. */
    int kept = with_copy;
    OK(MPI_Comm_free_keyval(&with_copy));
    OK(MPI_Comm_get_attr(dup, kept, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(value, (void *)1);
    OK(MPI_Comm_free(&dup));
    CHECK_INT(deletes, 3);
    OK(MPI_Comm_free_keyval(&without));
    OK(MPI_Comm_free_keyval(&by_dup));
    OK(MPI_Comm_free_keyval(&never));
}

/* What a callback returns is the result of the call. */
static void callbacks_that_fail(void)
{
    int keyval;
    MPI_Comm dup, of_dup = MPI_COMM_NULL;
    OK(MPI_Comm_create_keyval(copy, delete, &keyval, &copies));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_attr(dup, keyval, (void *)1));
    refuse_copy = MPI_ERR_OTHER;
    REFUSED(MPI_Comm_dup(dup, &of_dup));
    refuse_copy = 0;
    refuse_delete = MPI_ERR_OTHER;
    REFUSED(MPI_Comm_delete_attr(dup, keyval));
    REFUSED(MPI_Comm_set_attr(dup, keyval, (void *)2));
    refuse_delete = 0;
    OK(MPI_Comm_delete_attr(dup, keyval));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free_keyval(&keyval));
}

/* A delete callback may call MPI, also with the communicator that is going. */
static int delete_and_call(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int size = 0, *upper, flag, result;
    (void)keyval, (void)value;
    OK(MPI_Comm_size(comm, &size));
    CHECK_INT(size, lt_size);
    OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static void callbacks_may_call(void)
{
    int keyval, called = 0;
    MPI_Comm dup;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_and_call, &keyval, &called));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_attr(dup, keyval, NULL));
    OK(MPI_Comm_free(&dup));
    CHECK_INT(called, 1);
    OK(MPI_Comm_free_keyval(&keyval));
}

static void predefined(void)
{
    int *value, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK(*value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK(*value == 0 || *value == 1);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(!flag || *value == MPI_ANY_SOURCE || *value == MPI_PROC_NULL || (*value >= 0 && *value < lt_size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= lt_size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(!flag || *value == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK(*value >= MPI_ERR_LASTCODE);
    int error_class, before = *value;
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK_INT(*value, error_class);
    CHECK(error_class > before);
    OK(MPI_Remove_error_class(error_class));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag));
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL));
    REFUSED(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB));
}

/* The clocks are global when the library says so: a message does not arrive before it was sent. */
static void global_clock(void)
{
    int *global, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag));
    if (!flag || !*global)
        return;
    double sent = MPI_Wtime(), theirs;
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    OK(MPI_Sendrecv(&sent, 1, MPI_DOUBLE, to, 0, &theirs, 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(MPI_Wtime() >= theirs);
}

/* Attributes on MPI_COMM_SELF go first in MPI_Finalize, last set first, while MPI still works. */
static int finalize_order[3], finalized;

static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int flag = 1, sum = 0, one = 1;
    (void)keyval, (void)extra;
    CHECK_PTR(comm, MPI_COMM_SELF);
    OK(MPI_Finalized(&flag));
    CHECK_INT(flag, 0);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(sum, lt_size);
    if (finalized < 3)
        finalize_order[finalized] = (int)(intptr_t)value;
    finalized++;
    return MPI_SUCCESS;
}

static void on_self(void)
{
    for (intptr_t i = 1; i <= 3; i++) {
        int keyval;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, (void *)i));
        OK(MPI_Comm_free_keyval(&keyval));
    }
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(set_get_delete),
                                    TEST(copied_and_deleted),
                                    TEST(callbacks_that_fail),
                                    TEST(callbacks_may_call),
                                    TEST(predefined),
                                    TEST(global_clock),
                                    TEST(on_self)};
    MPI_Init(&argc, &argv);
    lt_run("attr", tests, sizeof tests / sizeof *tests);
    lt_current = "MPI_Finalize";
    OK(MPI_Finalize());
    CHECK_INT(finalized, 3);
    for (int i = 0; i < 3; i++)
        CHECK_INT(finalize_order[i], 3 - i);
    return lt_failures != 0;
}
