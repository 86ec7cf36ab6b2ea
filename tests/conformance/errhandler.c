/* Error handlers, error classes, codes and strings: MPI-5 sections 9.3 to 9.5. */
#include "limosa_test.h"

static int calls, last_code;
static MPI_Comm last_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last_code = *code;
    last_comm = *comm;
}

/* A call that is always wrong on this communicator. */
static int wrong(MPI_Comm comm)
{
    int value = 0;
    return MPI_Send(&value, 1, MPI_INT, 1 << 20, 0, comm);
}

static void returns(void)
{
    MPI_Errhandler current = MPI_ERRHANDLER_NULL;
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &current));
    CHECK_PTR(current, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_RANK, wrong(MPI_COMM_WORLD));
    /* Freeing a reference to a predefined handler leaves the handler. */
    OK(MPI_Errhandler_free(&current));
    CHECK_PTR(current, MPI_ERRHANDLER_NULL);
    FAILS(MPI_ERR_RANK, wrong(MPI_COMM_WORLD));
}

static void of_the_user(void)
{
    MPI_Errhandler mine, got = MPI_ERRHANDLER_NULL;
    MPI_Comm comm, child;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    calls = 0;
    int code = wrong(comm);
    CHECK_INT(calls, 1);
    CHECK_PTR(last_comm, comm);
    CHECK_INT(last_code, code);
    CHECK_INT(lt_class(code), MPI_ERR_RANK);
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK_PTR(got, mine);
    OK(MPI_Errhandler_free(&got));
    /* A freed handler works on as long as a communicator has it. */
    OK(MPI_Errhandler_free(&mine));
    CHECK_PTR(mine, MPI_ERRHANDLER_NULL);
    wrong(comm);
    CHECK_INT(calls, 2);
    /* New communicators have the handler of their parent, and keep it. */
    OK(MPI_Comm_dup(comm, &child));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    wrong(comm);
    CHECK_INT(calls, 2);
    wrong(child);
    CHECK_INT(calls, 3);
    CHECK_PTR(last_comm, child);
    wrong(MPI_COMM_WORLD);
    CHECK_INT(calls, 3);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&child));
}

static void called_by_hand(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    calls = 0;
    OK(MPI_Comm_call_errhandler(comm, MPI_ERR_TOPOLOGY));
    CHECK_INT(calls, 1);
    CHECK_INT(last_code, MPI_ERR_TOPOLOGY);
    CHECK_PTR(last_comm, comm);
    OK(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TOPOLOGY));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&mine));
}

static void pardon(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    last_code = *code;
    *code = MPI_SUCCESS;
}

static void pardon_file(MPI_File *file, int *code, ...)
{
    (void)file;
    last_code = *code;
    *code = MPI_ERR_OTHER;
}

/* The handler gets the place of the code that the call returns, and may replace it there. */
static void code_of_the_handler(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    MPI_File file;
    MPI_Request request;
    int value;
    OK(MPI_Comm_create_errhandler(pardon, &mine));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    OK(MPI_Errhandler_free(&mine));
    OK(wrong(comm));
    CHECK_INT(lt_class(last_code), MPI_ERR_RANK);
    /* Also that of a request. */
    last_code = MPI_SUCCESS;
    OK(MPI_Irecv(&value, 0, MPI_INT, lt_rank, 1, comm, &request));
    OK(MPI_Send(&value, 1, MPI_INT, lt_rank, 1, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(lt_class(last_code), MPI_ERR_TRUNCATE);
    OK(MPI_Comm_free(&comm));
    OK(MPI_File_create_errhandler(pardon_file, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    OK(MPI_Errhandler_free(&mine));
    CHECK_INT(MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_OTHER);
    CHECK_INT(lt_class(last_code), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

/* Errors of requests go to the handler of the request's communicator, and are returned by the call that completes it.
 */
static void of_requests(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    MPI_Request request;
    int out[2] = {1, 2}, in = 0;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    calls = 0;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, comm, &request));
    OK(MPI_Send(out, 2, MPI_INT, 0, 0, comm));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(calls, 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&mine));
}

static const int classes[] = {
    MPI_SUCCESS,
    MPI_ERR_BUFFER,
    MPI_ERR_COUNT,
    MPI_ERR_TYPE,
    MPI_ERR_TAG,
    MPI_ERR_COMM,
    MPI_ERR_RANK,
    MPI_ERR_REQUEST,
    MPI_ERR_ROOT,
    MPI_ERR_GROUP,
    MPI_ERR_OP,
    MPI_ERR_TOPOLOGY,
    MPI_ERR_DIMS,
    MPI_ERR_ARG,
    MPI_ERR_UNKNOWN,
    MPI_ERR_TRUNCATE,
    MPI_ERR_OTHER,
    MPI_ERR_INTERN,
    MPI_ERR_PENDING,
    MPI_ERR_IN_STATUS,
    MPI_ERR_ACCESS,
    MPI_ERR_AMODE,
    MPI_ERR_ASSERT,
    MPI_ERR_BAD_FILE,
    MPI_ERR_BASE,
    MPI_ERR_CONVERSION,
    MPI_ERR_DISP,
    MPI_ERR_DUP_DATAREP,
    MPI_ERR_FILE_EXISTS,
    MPI_ERR_FILE_IN_USE,
    MPI_ERR_FILE,
    MPI_ERR_INFO_KEY,
    MPI_ERR_INFO_NOKEY,
    MPI_ERR_INFO_VALUE,
    MPI_ERR_INFO,
    MPI_ERR_IO,
    MPI_ERR_KEYVAL,
    MPI_ERR_LOCKTYPE,
    MPI_ERR_NAME,
    MPI_ERR_NO_MEM,
    MPI_ERR_NOT_SAME,
    MPI_ERR_NO_SPACE,
    MPI_ERR_NO_SUCH_FILE,
    MPI_ERR_PORT,
    MPI_ERR_QUOTA,
    MPI_ERR_READ_ONLY,
    MPI_ERR_RMA_ATTACH,
    MPI_ERR_RMA_CONFLICT,
    MPI_ERR_RMA_RANGE,
    MPI_ERR_RMA_SHARED,
    MPI_ERR_RMA_SYNC,
    MPI_ERR_SERVICE,
    MPI_ERR_SIZE,
    MPI_ERR_SPAWN,
    MPI_ERR_UNSUPPORTED_DATAREP,
    MPI_ERR_UNSUPPORTED_OPERATION,
    MPI_ERR_WIN,
    MPI_ERR_RMA_FLAVOR,
    MPI_ERR_PROC_ABORTED,
    MPI_ERR_VALUE_TOO_LARGE,
    MPI_ERR_SESSION,
    MPI_ERR_ERRHANDLER,
    MPI_ERR_ABI,
};

static void strings(void)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = -1, error_class = -1;
        OK(MPI_Error_class(classes[i], &error_class));
        CHECK_INT(error_class, classes[i]);
        OK(MPI_Error_string(classes[i], text, &length));
        CHECK(length > 0 && length < MPI_MAX_ERROR_STRING);
        CHECK_INT(strlen(text), length);
    }
}

static void of_the_users_own(void)
{
    int error_class = -1, code = -1, second = -1, got = -1, length = -1;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&error_class));
    CHECK(error_class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(error_class, &code));
    OK(MPI_Add_error_code(MPI_ERR_ARG, &second));
    CHECK(code != error_class && second != code);
    OK(MPI_Error_class(code, &got));
    CHECK_INT(got, error_class);
    OK(MPI_Error_class(error_class, &got));
    CHECK_INT(got, error_class);
    OK(MPI_Error_class(second, &got));
    CHECK_INT(got, MPI_ERR_ARG);
    OK(MPI_Error_string(code, text, &length));
    CHECK_INT(length, 0);
    OK(MPI_Add_error_string(code, "the pump has stopped"));
    OK(MPI_Add_error_string(error_class, "a class of pumps"));
    OK(MPI_Error_string(code, text, &length));
    CHECK_STR(text, "the pump has stopped");
    CHECK_INT(length, 20);
    OK(MPI_Error_string(error_class, text, &length));
    CHECK_STR(text, "a class of pumps");
    OK(MPI_Add_error_string(code, "it stands still"));
    OK(MPI_Error_string(code, text, &length));
    CHECK_STR(text, "it stands still");
    /* Predefined codes cannot be renamed, removed or added to by mistake. */
    REFUSED(MPI_Add_error_string(MPI_ERR_ARG, "x"));
    REFUSED(MPI_Remove_error_class(MPI_ERR_ARG));
    REFUSED(MPI_Add_error_code(123456789, &got));
    /* Codes go before their class. */
    REFUSED(MPI_Remove_error_class(error_class));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Error_string(code, text, &length));
    CHECK_INT(length, 0);
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_code(second));
    OK(MPI_Remove_error_string(error_class));
    OK(MPI_Remove_error_class(error_class));
    REFUSED(MPI_Remove_error_class(error_class));
}

static void user_codes_through_handlers(void)
{
    int error_class, code;
    MPI_Errhandler mine;
    MPI_Comm comm;
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Add_error_code(error_class, &code));
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    OK(MPI_Comm_call_errhandler(comm, code));
    CHECK_INT(last_code, code);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(error_class));
}

/* After any number of errors the library is as usable as before. */
static void usable_afterwards(void)
{
    int sum = 0, one = 1;
    for (int i = 0; i < 1000; i++)
        FAILS(MPI_ERR_RANK, wrong(MPI_COMM_WORLD));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(sum, lt_size);
}

LT_MAIN("errhandler", TEST(returns), TEST(of_the_user), TEST(called_by_hand), TEST(code_of_the_handler),
        TEST(of_requests), TEST(strings), TEST(of_the_users_own), TEST(user_codes_through_handlers),
        TEST(usable_afterwards))
