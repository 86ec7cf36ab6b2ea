/* Calls about the ABI and the languages' types, and deprecated names that do the work of others: MPI-5 chapters 16, 19
 * and 20. */
#include "limosa_test.h"

/* The value of a key of an info object; empty if it is not there. */
static const char *value_of(MPI_Info info, const char *key)
{
    static char value[64];
    int flag = 0, length = (int)sizeof value;
    value[0] = 0;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    return flag ? value : "";
}

static void version_and_sizes(void)
{
    int major = 0, minor = -1;
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK_INT(major, MPI_ABI_VERSION);
    CHECK_INT(minor, MPI_ABI_SUBVERSION);
    MPI_Info info;
    OK(MPI_Abi_get_info(&info));
    CHECK_INT(atoi(value_of(info, "mpi_aint_size")), sizeof(MPI_Aint));
    CHECK_INT(atoi(value_of(info, "mpi_count_size")), sizeof(MPI_Count));
    CHECK_INT(atoi(value_of(info, "mpi_offset_size")), sizeof(MPI_Offset));
    OK(MPI_Info_free(&info));
}

static void fortran_types(void)
{
    MPI_Info info;
    int size;
    OK(MPI_Abi_get_fortran_info(&info));
    OK(MPI_Type_size(MPI_LOGICAL, &size));
    CHECK_INT(atoi(value_of(info, "mpi_logical_size")), size);
    OK(MPI_Type_size(MPI_INTEGER, &size));
    CHECK_INT(atoi(value_of(info, "mpi_integer_size")), size);
    OK(MPI_Type_size(MPI_REAL, &size));
    CHECK_INT(atoi(value_of(info, "mpi_real_size")), size);
    OK(MPI_Type_size(MPI_DOUBLE_PRECISION, &size));
    CHECK_INT(atoi(value_of(info, "mpi_double_precision_size")), size);
    CHECK_STR(value_of(info, "mpi_integer8_supported"), "true");
    OK(MPI_Info_free(&info));
    REFUSED(MPI_Abi_set_fortran_info(MPI_INFO_NULL));
}

static void fortran_booleans(void)
{
    for (int size = 1; size <= 16; size *= 2) {
        unsigned char t[17], f[17], one[17] = {1}, zero[17] = {0};
        int is_set = 0;
        memset(t, 0xee, sizeof t);
        memset(f, 0xee, sizeof f);
        one[size] = zero[size] = 0xee;
        OK(MPI_Abi_get_fortran_booleans(size, t, f, &is_set));
        CHECK_INT(is_set, 1);
        CHECK_BYTES(t, one, (size_t)size + 1);
        CHECK_BYTES(f, zero, (size_t)size + 1);
    }
    int value = 0, is_set;
    FAILS(MPI_ERR_ARG, MPI_Abi_get_fortran_booleans(3, &value, &value, &is_set));
    FAILS(MPI_ERR_ARG, MPI_Abi_get_fortran_booleans(4, NULL, &value, &is_set));
    FAILS(MPI_ERR_ARG, MPI_Abi_get_fortran_booleans(4, &value, NULL, &is_set));
    FAILS(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(0, &value, &value));
    REFUSED(MPI_Abi_set_fortran_booleans(4, &value, &value));
}

static int deleted;

static int count_deletions(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void deprecated_attributes(void)
{
    int keyval = MPI_KEYVAL_INVALID, flag = -1, number = 7, *found = NULL;
    deleted = 0;
    OK(MPI_Keyval_create(MPI_NULL_COPY_FN, count_deletions, &keyval, NULL));
    CHECK(keyval != MPI_KEYVAL_INVALID);
    OK(MPI_Attr_get(MPI_COMM_SELF, keyval, &found, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Attr_put(MPI_COMM_SELF, keyval, &number));
    OK(MPI_Attr_get(MPI_COMM_SELF, keyval, &found, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(found, &number);
    OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));
    CHECK_INT(deleted, 1);
    OK(MPI_Keyval_free(&keyval));
    CHECK_INT(keyval, MPI_KEYVAL_INVALID);
}

static void deprecated_extents(void)
{
    MPI_Datatype type, parts[1] = {MPI_INT};
    int lengths[1] = {3};
    MPI_Aint places[1] = {8};
    OK(MPI_Type_create_struct(1, lengths, places, parts, &type));
    MPI_Count lb = -1, extent = -1, true_lb = -1, true_extent = -1, size = -1;
    OK(MPI_Type_get_extent_x(type, &lb, &extent));
    OK(MPI_Type_get_true_extent_x(type, &true_lb, &true_extent));
    OK(MPI_Type_size_x(type, &size));
    CHECK_INT(lb, 8);
    CHECK_INT(extent, 12);
    CHECK_INT(true_lb, 8);
    CHECK_INT(true_extent, 12);
    CHECK_INT(size, 12);
    OK(MPI_Type_commit(&type));
    MPI_Status status;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_elements_x(&status, type, 6));
    MPI_Count elements = -1;
    OK(MPI_Get_elements_x(&status, type, &elements));
    CHECK_INT(elements, 6);
    OK(MPI_Type_free(&type));
}

static void keyvals_of_windows(void)
{
    int keyval = MPI_KEYVAL_INVALID;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    CHECK(keyval != MPI_KEYVAL_INVALID);
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    OK(MPI_Win_free_keyval(&keyval));
    CHECK_INT(keyval, MPI_KEYVAL_INVALID);
    FAILS(MPI_ERR_KEYVAL, MPI_Win_free_keyval(&keyval));
}

static void ignore_file(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
}

static void ignore_win(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
}

static void ignore_session(MPI_Session *session, int *code, ...)
{
    (void)session, (void)code;
}

/* A handler fits objects of its own kind only. */
static void handlers_of_other_objects(void)
{
    MPI_Errhandler handlers[3];
    OK(MPI_File_create_errhandler(ignore_file, &handlers[0]));
    OK(MPI_Win_create_errhandler(ignore_win, &handlers[1]));
    OK(MPI_Session_create_errhandler(ignore_session, &handlers[2]));
    for (int i = 0; i < 3; i++) {
        CHECK(handlers[i] != MPI_ERRHANDLER_NULL);
        REFUSED(MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[i]));
        OK(MPI_Errhandler_free(&handlers[i]));
        CHECK_PTR(handlers[i], MPI_ERRHANDLER_NULL);
    }
    MPI_Errhandler none;
    FAILS(MPI_ERR_ARG, MPI_Comm_create_errhandler(NULL, &none));
}

LT_MAIN("abi", TEST(version_and_sizes), TEST(fortran_types), TEST(fortran_booleans), TEST(deprecated_attributes),
        TEST(deprecated_extents), TEST(keyvals_of_windows), TEST(handlers_of_other_objects))
