/* Checks for the conformance programs.
 *
 * A program is a list of test functions handed to `lt_main`. Every check that fails prints one line with file, line,
 * rank, expected and got, and is counted; nothing stops at the first failure. At the end rank 0 collects the counts by
 * point-to-point messages and prints `PASS name` or `FAIL name`; a rank that failed exits with 1.
 *
 * The error handler of MPI_COMM_WORLD and MPI_COMM_SELF is MPI_ERRORS_RETURN while the tests run, so OK(call) names the
 * call that failed. The checks may be used from several threads.
 */
#ifndef LIMOSA_TEST_H
#define LIMOSA_TEST_H

#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MPI_ABI_VERSION /* A header of another ABI: MPI_Abi_get_version says that this is not the standard one. */
#define MPI_ABI_VERSION (-1)
#define MPI_ABI_SUBVERSION (-1)
#endif

#define LT_UNUSED __attribute__((unused))
#define LT_MAX_SHOWN 5

typedef struct {
    const char *name;
    void (*run)(void);
} lt_test;

static int lt_rank, lt_size;
static const char *lt_current = "start";
static long lt_failures, lt_checks;

#define TEST(function) {#function, function}

/* Counts a failure and prints where it happened; the first LT_MAX_SHOWN of a rank are shown. */
static void __attribute__((format(printf, 3, 4), unused)) lt_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (__atomic_add_fetch(&lt_failures, 1, __ATOMIC_RELAXED) > LT_MAX_SHOWN)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *slash = strrchr(file, '/');
    fprintf(stdout, "%s:%d: rank %d of %d, %s: %s\n", slash ? slash + 1 : file, line, lt_rank, lt_size, lt_current,
            text);
    fflush(stdout);
}

/* A folder for files that all ranks see. */
static LT_UNUSED const char *lt_folder(void)
{
    const char *folder = getenv("LT_FOLDER");
    return folder != NULL ? folder : "/tmp";
}

/* The host of a rank of MPI_COMM_WORLD: all share one, unless LIMOSA_DEVICE or LIMOSA_HOSTS has them pretend otherwise.
 */
static LT_UNUSED int lt_host(int rank)
{
    const char *device = getenv("LIMOSA_DEVICE"), *hosts = getenv("LIMOSA_HOSTS");
    int elsewhere = device && strncmp(device, "file:", 5) == 0;
    if ((device && strcmp(device, "messages") == 0) || (elsewhere && !hosts))
        return rank;
    int n = hosts ? atoi(hosts) : 1;
    n = n < 1 ? 1 : n > lt_size ? lt_size : n;
    return rank / ((lt_size + n - 1) / n);
}

/* Whether all ranks share memory. */
static LT_UNUSED int lt_one_host(void)
{
    return lt_host(lt_size - 1) == 0;
}

static LT_UNUSED int lt_count_check(void)
{
    __atomic_add_fetch(&lt_checks, 1, __ATOMIC_RELAXED);
    return 1;
}

/* The error class of a code; 0 for success. */
static LT_UNUSED int lt_class(int code)
{
    int error_class = code;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    return error_class;
}

static LT_UNUSED int lt_ok(const char *file, int line, const char *call, int code)
{
    lt_count_check();
    if (code == MPI_SUCCESS)
        return 1;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    lt_fail(file, line, "%s: expected MPI_SUCCESS, got class %d (%s)", call, lt_class(code), text);
    return 0;
}

static LT_UNUSED int lt_bytes(const char *file, int line, const char *what, const void *got, const void *expected,
                              size_t n)
{
    const unsigned char *g = got, *e = expected;
    lt_count_check();
    if (n == 0 || memcmp(got, expected, n) == 0)
        return 1;
    size_t at = 0;
    while (g[at] == e[at])
        at++;
    lt_fail(file, line, "%s: byte %zu of %zu: expected 0x%02x, got 0x%02x", what, at, n, e[at], g[at]);
    return 0;
}

/* The call must succeed. */
#define OK(call) lt_ok(__FILE__, __LINE__, #call, (call))

/* The call must fail with this error class. */
#define FAILS(error_class, call)                                                                                       \
    do {                                                                                                               \
        int lt_got = lt_class(call);                                                                                   \
        lt_count_check();                                                                                              \
        if (lt_got != (error_class))                                                                                   \
            lt_fail(__FILE__, __LINE__, "%s: expected error class %s (%d), got %d", #call, #error_class,               \
                    (error_class), lt_got);                                                                            \
    } while (0)

/* The call must fail; the standard names no class. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        lt_count_check();                                                                                              \
        if ((call) == MPI_SUCCESS)                                                                                     \
            lt_fail(__FILE__, __LINE__, "%s: expected an error, got MPI_SUCCESS", #call);                              \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        lt_count_check();                                                                                              \
        if (!(condition))                                                                                              \
            lt_fail(__FILE__, __LINE__, "expected %s", #condition);                                                    \
    } while (0)

#define CHECK_INT(got, expected)                                                                                       \
    do {                                                                                                               \
        long long lt_g = (long long)(got), lt_e = (long long)(expected);                                               \
        lt_count_check();                                                                                              \
        if (lt_g != lt_e)                                                                                              \
            lt_fail(__FILE__, __LINE__, "%s: expected %s = %lld, got %lld", #got, #expected, lt_e, lt_g);              \
    } while (0)

#define CHECK_PTR(got, expected)                                                                                       \
    do {                                                                                                               \
        const void *lt_g = (const void *)(uintptr_t)(got);                                                             \
        const void *lt_e = (const void *)(uintptr_t)(expected);                                                        \
        lt_count_check();                                                                                              \
        if (lt_g != lt_e)                                                                                              \
            lt_fail(__FILE__, __LINE__, "%s: expected %s = %p, got %p", #got, #expected, lt_e, lt_g);                  \
    } while (0)

#define CHECK_STR(got, expected)                                                                                       \
    do {                                                                                                               \
        const char *lt_g = (got), *lt_e = (expected);                                                                  \
        lt_count_check();                                                                                              \
        if (strcmp(lt_g, lt_e) != 0)                                                                                   \
            lt_fail(__FILE__, __LINE__, "%s: expected \"%s\", got \"%s\"", #got, lt_e, lt_g);                          \
    } while (0)

#define CHECK_BYTES(got, expected, n) lt_bytes(__FILE__, __LINE__, #got, (got), (expected), (n))

/* Byte i of a message called `seed`: every byte differs from its neighbours and from the same byte of another message.
 */
static inline LT_UNUSED unsigned char lt_byte(uint64_t seed, size_t i)
{
    return (unsigned char)(seed * 131 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29 + 1);
}

static LT_UNUSED void lt_fill(void *buffer, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)buffer)[i] = lt_byte(seed, i);
}

static LT_UNUSED int lt_filled(const char *file, int line, const void *buffer, size_t n, uint64_t seed)
{
    const unsigned char *b = buffer;
    lt_count_check();
    for (size_t i = 0; i < n; i++) {
        if (b[i] != lt_byte(seed, i)) {
            lt_fail(file, line, "message %llu: byte %zu of %zu: expected 0x%02x, got 0x%02x", (unsigned long long)seed,
                    i, n, lt_byte(seed, i), b[i]);
            return 0;
        }
    }
    return 1;
}

/* The buffer must hold what lt_fill wrote under this seed. */
#define CHECK_FILLED(buffer, n, seed) lt_filled(__FILE__, __LINE__, (buffer), (n), (seed))

/* Memory that is never NULL, also for a length of zero. */
static LT_UNUSED void *lt_alloc(size_t n)
{
    void *memory = malloc(n ? n : 1);
    if (memory == NULL) {
        fprintf(stderr, "limosa_test: no memory for %zu bytes\n", n);
        exit(99);
    }
    return memory;
}

static LT_UNUSED void lt_status(const char *file, int line, const MPI_Status *status, int source, int tag,
                                MPI_Datatype type, int count)
{
    int got = -12345;
    lt_count_check();
    if (status->MPI_SOURCE != source)
        lt_fail(file, line, "status.MPI_SOURCE: expected %d, got %d", source, status->MPI_SOURCE);
    if (status->MPI_TAG != tag)
        lt_fail(file, line, "status.MPI_TAG: expected %d, got %d", tag, status->MPI_TAG);
    MPI_Get_count(status, type, &got);
    if (got != count)
        lt_fail(file, line, "MPI_Get_count: expected %d, got %d", count, got);
}

#define CHECK_STATUS(status, source, tag, type, count)                                                                 \
    lt_status(__FILE__, __LINE__, (status), (source), (tag), (type), (count))

/* The empty status of MPI-5 section 3.7.3. */
#define CHECK_EMPTY(status)                                                                                            \
    do {                                                                                                               \
        int lt_cancelled = -1;                                                                                         \
        CHECK_STATUS((status), MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE, 0);                                              \
        OK(MPI_Test_cancelled((status), &lt_cancelled));                                                               \
        CHECK_INT(lt_cancelled, 0);                                                                                    \
    } while (0)

/* Does a collective operation in one of its forms: blocking, non-blocking, persistent (twice). `iop` is its name with
 * the I. */
#define COLLECTIVE(form, op, iop, comm, ...)                                                                           \
    do {                                                                                                               \
        MPI_Request lt_request;                                                                                        \
        if (form == 0) {                                                                                               \
            OK(MPI_##op(__VA_ARGS__, comm));                                                                           \
        } else if (form == 1) {                                                                                        \
            OK(MPI_##iop(__VA_ARGS__, comm, &lt_request));                                                             \
            OK(MPI_Wait(&lt_request, MPI_STATUS_IGNORE));                                                              \
        } else {                                                                                                       \
            OK(MPI_##op##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &lt_request));                                        \
            for (int lt_i = 0; lt_i < 2; lt_i++) {                                                                     \
                OK(MPI_Start(&lt_request));                                                                            \
                OK(MPI_Wait(&lt_request, MPI_STATUS_IGNORE));                                                          \
            }                                                                                                          \
            OK(MPI_Request_free(&lt_request));                                                                         \
        }                                                                                                              \
    } while (0)

/* What a buffer of integers holds where nothing was received. */
#define UNTOUCHED (-77)

/* `n` integers and one behind them, all UNTOUCHED. */
static LT_UNUSED int *fresh(size_t n)
{
    int *buffer = lt_alloc(sizeof(int) * (n + 1));
    for (size_t i = 0; i <= n; i++)
        buffer[i] = UNTOUCHED;
    return buffer;
}

/* Runs `tests` between an MPI_Init already done and an MPI_Finalize yet to come; returns the number of failures of this
 * rank. */
static LT_UNUSED long lt_run(const char *name, const lt_test *tests, size_t n)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &lt_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &lt_size);
    const char *only = getenv("LT_ONLY");
    for (size_t i = 0; i < n; i++) {
        if (only != NULL && strstr(tests[i].name, only) == NULL)
            continue;
        lt_current = tests[i].name;
        tests[i].run();
    }
    lt_current = "summary";
    enum { TAG = 31999 };
    long mine[2] = {lt_failures, lt_checks}, total[2] = {lt_failures, lt_checks};
    if (lt_rank != 0) {
        MPI_Send(mine, 2, MPI_LONG, 0, TAG, MPI_COMM_WORLD);
    } else {
        for (int rank = 1; rank < lt_size; rank++) {
            MPI_Recv(mine, 2, MPI_LONG, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            total[0] += mine[0];
            total[1] += mine[1];
        }
        if (total[0] == 0)
            printf("PASS %s: %d tests, %ld checks, %d ranks\n", name, (int)n, total[1], lt_size);
        else
            printf("FAIL %s: %ld of %ld checks failed, %d ranks\n", name, total[0], total[1], lt_size);
        fflush(stdout);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return lt_failures;
}

#define LT_MAIN(name, ...)                                                                                             \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        static const lt_test tests[] = {__VA_ARGS__};                                                                  \
        if (MPI_Init(&argc, &argv) != MPI_SUCCESS)                                                                     \
            return 98;                                                                                                 \
        long failures = lt_run(name, tests, sizeof tests / sizeof *tests);                                             \
        MPI_Finalize();                                                                                                \
        return failures != 0;                                                                                          \
    }

#endif
