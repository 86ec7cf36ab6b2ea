/* Start, end, inquiry, clocks, names, versions, memory: MPI-5 chapters 9 and 11, and the sizes that the ABI chapter
 * fixes. */
#include "limosa_test.h"

#include <unistd.h>

static void versions(void)
{
    int major, minor, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Get_version(&major, &minor));
    CHECK_INT(major, 5);
    CHECK_INT(minor, 0);
#ifndef OPEN_MPI /* whose header is of an older standard */
    CHECK_INT(MPI_VERSION, 5);
    CHECK_INT(MPI_SUBVERSION, 0);
#endif
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK_INT(major, MPI_ABI_VERSION);
    CHECK_INT(minor, MPI_ABI_SUBVERSION);
    OK(MPI_Get_library_version(text, &length));
    CHECK(length > 0 && length < MPI_MAX_LIBRARY_VERSION_STRING);
    CHECK_INT(strlen(text), length);
}

static void abi_sizes(void)
{
#if !defined MPICH && !defined OPEN_MPI /* which have other sizes */
    CHECK_INT(sizeof(MPI_Status), 32);
    CHECK_INT(offsetof(MPI_Status, MPI_SOURCE), 0);
    CHECK_INT(offsetof(MPI_Status, MPI_TAG), 4);
    CHECK_INT(offsetof(MPI_Status, MPI_ERROR), 8);
    CHECK_INT(sizeof(MPI_Aint), sizeof(void *));
    CHECK_INT(sizeof(MPI_Offset), 8);
    CHECK_INT(sizeof(MPI_Count), 8);
    CHECK_INT(sizeof(MPI_Comm), sizeof(void *));
#endif
}

static void handles_as_integers(void)
{
#ifndef MPICH /* which has other numbers */
    CHECK_INT(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
    CHECK_PTR(MPI_Comm_fromint(0x102), MPI_COMM_SELF);
#endif
    CHECK_PTR(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)), MPI_DOUBLE);
    CHECK_PTR(MPI_Op_fromint(MPI_Op_toint(MPI_MAXLOC)), MPI_MAXLOC);
    CHECK_PTR(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)), MPI_GROUP_EMPTY);
    CHECK_PTR(MPI_Info_fromint(MPI_Info_toint(MPI_INFO_ENV)), MPI_INFO_ENV);
    CHECK_PTR(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)), MPI_REQUEST_NULL);
    CHECK_PTR(MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)), MPI_MESSAGE_NO_PROC);
    CHECK_PTR(MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN)), MPI_ERRORS_RETURN);
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    CHECK_PTR(MPI_Comm_fromint(MPI_Comm_toint(dup)), dup);
    OK(MPI_Comm_free(&dup));
    MPI_Datatype type;
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    CHECK_PTR(MPI_Type_fromint(MPI_Type_toint(type)), type);
    OK(MPI_Type_free(&type));
    CHECK_PTR(type, MPI_DATATYPE_NULL);
}

static void initialised(void)
{
    int flag = -1, provided = -1;
    OK(MPI_Initialized(&flag));
    CHECK_INT(flag, 1);
    OK(MPI_Finalized(&flag));
    CHECK_INT(flag, 0);
    OK(MPI_Query_thread(&provided));
    CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    CHECK_INT(flag, 1);
}

static void world_and_self(void)
{
    int rank = -1, size = -1, result;
    OK(MPI_Comm_rank(MPI_COMM_SELF, &rank));
    OK(MPI_Comm_size(MPI_COMM_SELF, &size));
    CHECK_INT(rank, 0);
    CHECK_INT(size, 1);
    CHECK(lt_rank >= 0 && lt_rank < lt_size);
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result));
    CHECK_INT(result, lt_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
    MPI_Comm parent = MPI_COMM_SELF;
    OK(MPI_Comm_get_parent(&parent));
    CHECK_PTR(parent, MPI_COMM_NULL);
}

static void clocks(void)
{
    double tick = MPI_Wtick(), start = MPI_Wtime(), last = start;
    CHECK(tick > 0 && tick < 1e-3);
    for (int i = 0; i < 10000; i++) {
        double now = MPI_Wtime();
        CHECK(now >= last);
        last = now;
    }
    usleep(20000);
    CHECK(MPI_Wtime() - start >= 0.019);
}

static void processor_name(void)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = -1;
    OK(MPI_Get_processor_name(name, &length));
    CHECK(length > 0 && length < MPI_MAX_PROCESSOR_NAME);
    CHECK_INT(strlen(name), length);
}

static void hardware_info(void)
{
    MPI_Info info = MPI_INFO_NULL;
    OK(MPI_Get_hw_resource_info(&info));
    CHECK(info != MPI_INFO_NULL);
    int n = -1;
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&info));
}

static void memory(void)
{
    for (MPI_Aint n = 1; n <= 1 << 22; n *= 16) {
        unsigned char *memory = NULL;
        OK(MPI_Alloc_mem(n, MPI_INFO_NULL, &memory));
        CHECK(memory != NULL);
        CHECK_INT((uintptr_t)memory % 16, 0);
        lt_fill(memory, (size_t)n, 3);
        CHECK_FILLED(memory, (size_t)n, 3);
        OK(MPI_Free_mem(memory));
    }
    void *huge = NULL;
    FAILS(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &huge));
}

static void addresses(void)
{
    static int data[10];
    MPI_Aint first, last;
    OK(MPI_Get_address(&data[0], &first));
    OK(MPI_Get_address(&data[9], &last));
    CHECK_INT(MPI_Aint_diff(last, first), 9 * sizeof(int));
    CHECK_INT(MPI_Aint_add(first, 9 * sizeof(int)), last);
    CHECK_PTR((void *)first, &data[0]);
    MPI_Aint bottom = -1;
    OK(MPI_Get_address(MPI_BOTTOM, &bottom));
    CHECK_INT(bottom, 0);
}

static void pcontrol(void)
{
    OK(MPI_Pcontrol(0));
    OK(MPI_Pcontrol(1));
    OK(MPI_Pcontrol(2, "extra"));
}

/* What may be called before MPI_Init and after MPI_Finalize (section 11.4.1). */
static void outside(int finalized)
{
    int flag = -1, major, minor, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Initialized(&flag));
    CHECK_INT(flag, finalized);
    OK(MPI_Finalized(&flag));
    CHECK_INT(flag, finalized);
    OK(MPI_Get_version(&major, &minor));
    CHECK_INT(major, 5);
    OK(MPI_Get_library_version(version, &length));
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK_INT(major, MPI_ABI_VERSION);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    int buflen = sizeof version;
    OK(MPI_Info_get_string(info, "key", &buflen, version, &flag));
    CHECK_INT(flag, 1);
    CHECK_STR(version, "value");
    OK(MPI_Info_free(&info));
    int error_class = -1;
    OK(MPI_Error_class(MPI_ERR_TAG, &error_class));
    CHECK_INT(error_class, MPI_ERR_TAG);
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Error_string(MPI_ERR_TAG, text, &length));
    CHECK(length > 0);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(versions),       TEST(abi_sizes),      TEST(handles_as_integers),
                                    TEST(initialised),    TEST(world_and_self), TEST(clocks),
                                    TEST(processor_name), TEST(hardware_info),  TEST(memory),
                                    TEST(addresses),      TEST(pcontrol)};
    lt_current = "before MPI_Init";
    outside(0);
    OK(MPI_Init(&argc, &argv));
    CHECK_STR(argv[0] + strlen(argv[0]) - 3, "env");
    lt_run("env", tests, sizeof tests / sizeof *tests);
    OK(MPI_Finalize());
    lt_current = "after MPI_Finalize";
    outside(1);
    return lt_failures != 0;
}
