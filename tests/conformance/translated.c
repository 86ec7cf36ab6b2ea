/* What programs compiled for MPICH and Open MPI have and the standard ABI has not: functions of MPI-1, extensions,
 * conversions of handles as functions, fields of statuses, the sizes of these headers. Compiled with them only. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#include "limosa_test.h"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#ifndef MPI_LB /* hidden in the header of Open MPI 4.1 */
extern char ompi_mpi_lb[], ompi_mpi_ub[];
#define MPI_LB ((MPI_Datatype)ompi_mpi_lb)
#define MPI_UB ((MPI_Datatype)ompi_mpi_ub)
#endif
#endif

static void functions_of_mpi_1(void)
{
    struct {
        char letter;
        double numbers[2];
    } pair = {'x', {1, 2}};
    MPI_Aint first, second, extent, lower, upper;
    OK(MPI_Address(&pair, &first));
    OK(MPI_Address(pair.numbers, &second));
    CHECK_INT(second - first, offsetof(__typeof__(pair), numbers));
    OK(MPI_Get_address(MPI_IN_PLACE, &first));
    CHECK_INT(first, (MPI_Aint)MPI_IN_PLACE);
    OK(MPI_Address(&pair, &first));
    MPI_Datatype types[4] = {MPI_LB, MPI_CHAR, MPI_DOUBLE, MPI_UB}, made, other;
    int lengths[4] = {1, 1, 2, 1};
    MPI_Aint places[4] = {-8, 0, second - first, 64};
    OK(MPI_Type_struct(4, lengths, places, types, &made));
    OK(MPI_Type_commit(&made));
    OK(MPI_Type_lb(made, &lower));
    OK(MPI_Type_ub(made, &upper));
    OK(MPI_Type_extent(made, &extent));
    CHECK(lower == -8 && upper == 64 && extent == 72);
    OK(MPI_Type_hvector(2, 1, 32, MPI_INT, &other));
    OK(MPI_Type_extent(other, &extent));
    CHECK_INT(extent, 32 + (int)sizeof(int));
    OK(MPI_Type_free(&other));
    OK(MPI_Type_hindexed(2, lengths, places + 1, MPI_INT, &other));
    OK(MPI_Type_free(&other));
    OK(MPI_Type_free(&made));
    CHECK(made == MPI_DATATYPE_NULL);
}

static int handled;
static MPI_Comm handled_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handled = lt_class(*code);
    handled_comm = *comm;
}

static void error_handlers(void)
{
    MPI_Errhandler made, got;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Errhandler_create(handler, &made));
    OK(MPI_Errhandler_set(comm, made));
    OK(MPI_Errhandler_get(comm, &got));
    CHECK(got == made);
    int value = 0, code = MPI_Send(&value, 1, MPI_INT, 4711, 0, comm);
    CHECK_INT(lt_class(code), MPI_ERR_RANK);
    CHECK_INT(handled, MPI_ERR_RANK);
    CHECK(handled_comm == comm);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&made));
    OK(MPI_Comm_free(&comm));
}

static void attributes_of_objects(void)
{
    int *value, flag;
    MPI_Win win;
    void *base;
    OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
    CHECK(!flag || *value == MPI_PROC_NULL || (*value >= 0 && *value < lt_size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(!flag || *value == MPI_ANY_SOURCE || *value >= 0);
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *value == MPI_WIN_FLAVOR_ALLOCATE);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && (*value == MPI_WIN_UNIFIED || *value == MPI_WIN_SEPARATE));
    OK(MPI_Win_free(&win));
    int keyval, copied = 0;
    MPI_Comm comm;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &copied));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    CHECK(flag && value == &copied);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval));
    OK(MPI_Comm_free_keyval(&keyval));
    CHECK_INT(keyval, MPI_KEYVAL_INVALID);
}

/* MPICH's header has these as macros, other headers of the same ABI as functions. */
#undef MPI_Comm_c2f
#undef MPI_Comm_f2c
#undef MPI_Type_c2f
#undef MPI_Type_f2c
#undef MPI_Request_f2c

static void handles_of_fortran(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm);
#ifdef MPICH
    CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == 0x44000000);
#endif
    CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
    OK(MPI_Comm_free(&comm));
    MPI_File file;
    char name[256];
    snprintf(name, sizeof name, "%s/translated-%d", lt_folder(), lt_rank);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    int mode;
    OK(MPI_File_get_amode(file, &mode));
    CHECK_INT(mode, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
}

static void statuses(void)
{
    double out = 1, in;
    MPI_Status status, copy;
    MPI_Fint fortran[MPI_F_STATUS_SIZE];
    memset(&status, 0x55, sizeof status);
    OK(MPI_Sendrecv(&out, 1, MPI_DOUBLE, lt_rank, 7, &in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                    &status));
    CHECK_STATUS(&status, lt_rank, 7, MPI_DOUBLE, 1);
#ifdef MPICH
    CHECK_INT(status.count_lo, (int)sizeof in);
    CHECK_INT(status.count_hi_and_cancelled, 0);
#else
    CHECK_INT(status._ucount, sizeof in);
    CHECK_INT(status._cancelled, 0);
#endif
    OK(MPI_Status_c2f(&status, fortran));
    CHECK(fortran[MPI_F_SOURCE] == lt_rank && fortran[MPI_F_TAG] == 7);
    OK(MPI_Status_f2c(fortran, &copy));
    CHECK_BYTES(&copy, &status, sizeof status);
    REFUSED(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &copy));
    OK(MPI_Recv(&in, 1, MPI_DOUBLE, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_DOUBLE, 0);
}

#ifdef MPICH
#define OWNER "MPICH"
#else
#define OWNER "Open MPI"
#endif

static void texts(void)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1], version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length = -1;
    memset(name, 'x', sizeof name);
    OK(MPI_Get_processor_name(name, &length));
    CHECK(length > 0 && length < MPI_MAX_PROCESSOR_NAME && (int)strlen(name) == length);
    CHECK(name[MPI_MAX_PROCESSOR_NAME] == 'x');
    char object[MPI_MAX_OBJECT_NAME + 1], text[MPI_MAX_ERROR_STRING + 1];
    memset(object, 'x', sizeof object);
    memset(text, 'x', sizeof text);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    char longest[MPI_MAX_OBJECT_NAME];
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Comm_set_name(comm, longest));
    OK(MPI_Comm_get_name(comm, object, &length));
    CHECK_INT(length, MPI_MAX_OBJECT_NAME - 1);
    CHECK(!strcmp(object, longest) && object[MPI_MAX_OBJECT_NAME] == 'x');
    OK(MPI_Comm_free(&comm));
    OK(MPI_Error_string(MPI_ERR_RANK, text, &length));
    CHECK((int)strlen(text) == length && text[MPI_MAX_ERROR_STRING] == 'x');
    OK(MPI_Get_library_version(version, &length));
    CHECK((int)strlen(version) == length);
    CHECK(strstr(version, OWNER "'s ABI") != NULL && strstr(version, "Limosa") != NULL);
}

static void weights(void)
{
    int neighbour = lt_rank, degree[2], weighted;
    MPI_Comm graph;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &neighbour, MPI_UNWEIGHTED, 1, &neighbour, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &degree[0], &degree[1], &weighted));
    CHECK(degree[0] == 1 && degree[1] == 1 && !weighted);
    OK(MPI_Comm_free(&graph));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                      MPI_INFO_NULL, 0, &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &degree[0], &degree[1], &weighted));
    CHECK(degree[0] == 0 && degree[1] == 0 && weighted);
    OK(MPI_Comm_free(&graph));
}

static void extensions(void)
{
    CHECK_INT(MPIX_Query_cuda_support(), 0);
    int length;
#ifdef MPICH
    int is_supported = -1;
    MPIX_Stream stream;
    CHECK_INT(MPIX_Query_hip_support(), 0);
    CHECK_INT(MPIX_Query_ze_support(), 0);
    OK(MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_supported));
    CHECK_INT(is_supported, 0);
    int code = MPIX_Stream_create(MPI_INFO_NULL, &stream);
    const char *name = "MPIX_Stream_create";
#else
    int MPIX_Comm_revoke(MPI_Comm comm); /* Open MPI 4.1 does not declare it. */
    int code = MPIX_Comm_revoke(MPI_COMM_WORLD);
    const char *name = "MPIX_Comm_revoke";
#endif
    CHECK_INT(lt_class(code), MPI_ERR_UNSUPPORTED_OPERATION);
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, name) != NULL);
}

static void buffered_sends(void)
{
    /* As large as the header says, for four messages. */
    char room[4 * (MPI_BSEND_OVERHEAD + 100)], data[100] = "hello", in[100];
    void *back = NULL;
    int size = 0;
    OK(MPI_Buffer_attach(room, sizeof room));
    for (int i = 0; i < 4; i++)
        OK(MPI_Bsend(data, 100, MPI_CHAR, lt_rank, i, MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++)
        OK(MPI_Recv(in, 100, MPI_CHAR, lt_rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == room && size == (int)sizeof room);
}

LT_MAIN("translated", TEST(functions_of_mpi_1), TEST(error_handlers), TEST(attributes_of_objects),
        TEST(handles_of_fortran), TEST(statuses), TEST(texts), TEST(weights), TEST(extensions), TEST(buffered_sends))
