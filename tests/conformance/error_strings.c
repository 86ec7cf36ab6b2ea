/* Error codes that carry a sentence: MPI-5 section 9.4 leaves codes and strings to the library; these are Limosa's.
 *
 * A code is of the right class, and its string is "MPI_Function: what is wrong". Codes that the standard names, and
 * codes of the program, stay as they are.
 */
#include "limosa_test.h"

#include <pthread.h>

enum { KEPT = 1024, NOBODY = 1 << 20 };

static int value[4];

/* A call that is always wrong: there is no such rank. */
static int wrong(int rank)
{
    return MPI_Send(value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
}

/* The string of a code begins with one text and contains another. */
static void says(int code, const char *start, const char *part)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = -1;
    OK(MPI_Error_string(code, text, &length));
    CHECK_INT(strlen(text), length);
    lt_count_check();
    if (strncmp(text, start, strlen(start)) != 0 || strstr(text, part) == NULL)
        lt_fail(__FILE__, __LINE__, "expected a string '%s ... %s', got '%s'", start, part, text);
}

static int last_used(void)
{
    int *used, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &used, &flag));
    return *used;
}

static void function_and_sentence(void)
{
    int code = wrong(4711), used = last_used();
    CHECK_INT(lt_class(code), MPI_ERR_RANK);
    says(code, "MPI_Send: ", "4711");
    says(PMPI_Send(value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD), "MPI_Send: ", "4711");
    says(MPI_Send_c(value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD), "MPI_Send_c: ", "4711");
    says(PMPI_Send_c(value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD), "MPI_Send_c: ", "4711");
    says(MPI_Recv(value, -17, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv: ", "-17");
    /* Later errors do not change what an earlier code says. */
    says(code, "MPI_Send: ", "4711");
#ifndef MPICH /* whose MPI_ERR_LASTCODE is the last code of a predefined class, not the last predefined class */
    CHECK(code > MPI_ERR_LASTCODE);
#endif
    CHECK_INT(last_used(), used);
    CHECK_INT(used, MPI_ERR_LASTCODE);
}

static void of_truncation(void)
{
    int code, out[4] = {0};
    MPI_Status status;
    status.MPI_ERROR = -5;
    MPI_Request request;
    OK(MPI_Isend(out, 4, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
    code = MPI_Recv(value, 2, MPI_INT, 0, 0, MPI_COMM_SELF, &status);
    CHECK_INT(lt_class(code), MPI_ERR_TRUNCATE);
    says(code, "MPI_Recv: ", "16");
    /* A call with one status leaves its error field alone. */
    CHECK_INT(status.MPI_ERROR, -5);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static int handled, handled_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled++;
    handled_code = *code;
    says(*code, "MPI_Send: ", "4711");
    /* An error of the handler's own calls has a code of its own. */
    int own = MPI_Recv(value, 1, MPI_INT, NOBODY, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(own != *code);
    says(own, "MPI_Recv: ", "1048576");
}

static void seen_by_handlers(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    int code = MPI_Send(value, 1, MPI_INT, 4711, 0, comm);
    CHECK_INT(handled, 1);
    CHECK_INT(handled_code, code);
    /* What the program raises reaches the handler as it is. */
    OK(MPI_Comm_call_errhandler(comm, code));
    CHECK_INT(handled, 2);
    CHECK_INT(handled_code, code);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&mine));
}

/* Three messages to oneself, of which the second is too long for its receive. */
static int receive_three(MPI_Request *requests, int (*complete)(MPI_Request *, MPI_Status *), MPI_Status *statuses)
{
    static int out[4], in[3];
    MPI_Request sends[3];
    for (int i = 0; i < 3; i++) {
        OK(MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]));
        OK(MPI_Isend(out, i == 1 ? 4 : 1, MPI_INT, 0, i, MPI_COMM_SELF, &sends[i]));
    }
    OK(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE));
    return complete(requests, statuses);
}

static int by_waitall(MPI_Request *requests, MPI_Status *statuses)
{
    return MPI_Waitall(3, requests, statuses);
}

static int by_waitsome(MPI_Request *requests, MPI_Status *statuses)
{
    int count, indices[3];
    int code = MPI_Waitsome(3, requests, &count, indices, statuses);
    CHECK_INT(count, 3);
    return code;
}

static int by_testall(MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 0, code = MPI_SUCCESS;
    while (!flag && code == MPI_SUCCESS)
        code = MPI_Testall(3, requests, &flag, statuses);
    return code;
}

static void in_statuses(void)
{
    const struct {
        const char *start;
        int (*complete)(MPI_Request *, MPI_Status *);
    } calls[] = {{"MPI_Waitall: ", by_waitall}, {"MPI_Waitsome: ", by_waitsome}, {"MPI_Testall: ", by_testall}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        MPI_Request requests[3];
        MPI_Status statuses[3];
        /* The standard names this code, and programs compare with it. */
        CHECK_INT(receive_three(requests, calls[i].complete, statuses), MPI_ERR_IN_STATUS);
        CHECK_INT(statuses[0].MPI_ERROR, MPI_SUCCESS);
        CHECK_INT(statuses[2].MPI_ERROR, MPI_SUCCESS);
        CHECK_INT(lt_class(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
        says(statuses[1].MPI_ERROR, calls[i].start, "16");
        /* Without statuses the code is all there is. */
        int code = receive_three(requests, calls[i].complete, MPI_STATUSES_IGNORE);
        CHECK_INT(lt_class(code), MPI_ERR_IN_STATUS);
        says(code, calls[i].start, "16");
    }
}

static int answer;

static int refuse_to_delete(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)attribute, (void)extra;
    return answer;
}

/* The code that a function of the program returns is the code of the call, whatever it is. */
static void of_the_programs_functions(void)
{
    int keyval, error_class, own;
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Add_error_code(error_class, &own));
    OK(MPI_Add_error_string(own, "the pump has stopped"));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_to_delete, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    const int answers[] = {MPI_ERR_OTHER, own, wrong(4711)};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        answer = answers[i];
        CHECK_INT(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval), answer);
    }
    says(own, "the pump has stopped", "");
    says(answer, "MPI_Send: ", "4711");
    answer = MPI_SUCCESS;
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Remove_error_string(own));
    OK(MPI_Remove_error_code(own));
    OK(MPI_Remove_error_class(error_class));
}

/* A code outlives its sentence. */
static void forgotten(void)
{
    int code = wrong(4711);
    for (int i = 0; i < 2 * KEPT; i++)
        FAILS(MPI_ERR_RANK, wrong(NOBODY + i));
    CHECK_INT(lt_class(code), MPI_ERR_RANK);
    says(code, "MPI_ERR_RANK: ", "invalid rank");
}

/* Codes that carry a sentence are no codes of the program. */
static void not_to_be_changed(void)
{
    int got, code = wrong(4711);
    REFUSED(MPI_Add_error_string(code, "x"));
    REFUSED(MPI_Remove_error_code(code));
    REFUSED(MPI_Add_error_code(code, &got));
    says(code, "MPI_Send: ", "4711");
}

enum { THREADS = 4, ERRORS = 100 };

static void *errors_of_a_thread(void *thread)
{
    int codes[ERRORS];
    char part[32];
    for (int i = 0; i < ERRORS; i++)
        codes[i] = wrong(NOBODY + ERRORS * *(int *)thread + i);
    for (int i = 0; i < ERRORS; i++) {
        snprintf(part, sizeof part, " %d,", NOBODY + ERRORS * *(int *)thread + i);
        says(codes[i], "MPI_Send: ", part);
    }
    return NULL;
}

/* Every thread reads its own sentences. */
static void of_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, errors_of_a_thread, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

LT_MAIN("error_strings", TEST(function_and_sentence), TEST(of_truncation), TEST(seen_by_handlers), TEST(in_statuses),
        TEST(of_the_programs_functions), TEST(forgotten), TEST(not_to_be_changed), TEST(of_threads))
