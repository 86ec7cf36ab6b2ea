/* Functions of the program in reductions in the background: MPI-5 sections 6.9.5, 6.12 and 11.6.2. The program asks for
 * no threads, so its functions run in its only one, and no thread holds anything meanwhile that a function may need. */
#include "limosa_test.h"

#include <pthread.h>
#include <unistd.h>

enum { KINDS = 6, LARGE = 1 << 19, MANY = 200 };

/* x -> a * x + b; in turn they depend on the order. */
typedef struct {
    unsigned a, b;
} map;

static pthread_t program;
static MPI_Datatype type;
static MPI_Op op;
static long calls, foreign, wrong_answers;

static map after(map first, map then)
{
    return (map){then.a * first.a, then.a * first.b + then.b};
}

static void compose(void *in, void *inout, int *n, MPI_Datatype *datatype)
{
    int bytes = 0;
    MPI_Aint lb = -1, extent = -1;
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (!pthread_equal(pthread_self(), program))
        __atomic_add_fetch(&foreign, 1, __ATOMIC_RELAXED);
    if (MPI_Type_size(*datatype, &bytes) != MPI_SUCCESS || bytes != (int)sizeof(map) ||
        MPI_Type_get_extent(*datatype, &lb, &extent) != MPI_SUCCESS || extent != (MPI_Aint)sizeof(map))
        __atomic_add_fetch(&wrong_answers, 1, __ATOMIC_RELAXED);
    map *left = in, *right = inout;
    for (int i = 0; i < *n; i++)
        right[i] = after(left[i], right[i]);
}

static map operand(int rank, int i)
{
    return (map){(unsigned)(2 * rank + 3 + i % 5), (unsigned)(rank * 7 + i + 1)};
}

/* What ranks 0 to `last` make of element i. */
static map expected(int last, int i)
{
    map all = operand(0, i);
    for (int rank = 1; rank <= last; rank++)
        all = after(all, operand(rank, i));
    return all;
}

static void make(void)
{
    program = pthread_self();
    OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose, 0, &op));
}

static void discard(void)
{
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

static map *operands(int n)
{
    map *all = lt_alloc(sizeof(map) * (size_t)n);
    for (int i = 0; i < n; i++)
        all[i] = operand(lt_rank, i);
    return all;
}

static void begin(int kind, int persistent, map *out, map *in, int *counts, int n, MPI_Request *q)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info info = MPI_INFO_NULL;
    switch (kind + persistent * KINDS) {
    case 0: OK(MPI_Ireduce(out, in, n, type, op, lt_size - 1, comm, q)); break;
    case 1: OK(MPI_Iallreduce(out, in, n, type, op, comm, q)); break;
    case 2: OK(MPI_Iscan(out, in, n, type, op, comm, q)); break;
    case 3: OK(MPI_Iexscan(out, in, n, type, op, comm, q)); break;
    case 4: OK(MPI_Ireduce_scatter(out, in, counts, type, op, comm, q)); break;
    case 5: OK(MPI_Ireduce_scatter_block(out, in, n / lt_size, type, op, comm, q)); break;
    case 6: OK(MPI_Reduce_init(out, in, n, type, op, lt_size - 1, comm, info, q)); break;
    case 7: OK(MPI_Allreduce_init(out, in, n, type, op, comm, info, q)); break;
    case 8: OK(MPI_Scan_init(out, in, n, type, op, comm, info, q)); break;
    case 9: OK(MPI_Exscan_init(out, in, n, type, op, comm, info, q)); break;
    case 10: OK(MPI_Reduce_scatter_init(out, in, counts, type, op, comm, info, q)); break;
    case 11: OK(MPI_Reduce_scatter_block_init(out, in, n / lt_size, type, op, comm, info, q)); break;
    }
    if (persistent)
        OK(MPI_Start(q));
}

static int same(map got, map wanted)
{
    return got.a == wanted.a && got.b == wanted.b;
}

static void check(int kind, const map *in, int n)
{
    int part = n / lt_size, first = kind >= 4 ? lt_rank * part : 0, here = kind >= 4 ? part : n;
    int last = kind == 2 ? lt_rank : kind == 3 ? lt_rank - 1 : lt_size - 1;
    if ((kind == 0 && lt_rank != lt_size - 1) || (kind == 3 && lt_rank == 0))
        return;
    lt_count_check();
    for (int i = 0; i < here; i++) {
        map wanted = expected(last, first + i);
        if (!same(in[i], wanted)) {
            lt_fail(__FILE__, __LINE__, "kind %d, element %d of %d: expected (%u, %u), got (%u, %u)", kind, i, here,
                    wanted.a, wanted.b, in[i].a, in[i].b);
            return;
        }
    }
}

static void check_calls(void)
{
    CHECK(lt_size == 1 || calls > 0);
    CHECK_INT(foreign, 0);
    CHECK_INT(wrong_answers, 0);
}

/* Ranks compute while reductions are under way: other threads that make progress leave the program's function alone. */
static void while_computing(void)
{
    const int lengths[] = {1, 1000, LARGE};
    int *counts = lt_alloc(sizeof(int) * (size_t)lt_size);
    for (int l = 0; l < 3; l++) {
        int n = (lengths[l] + lt_size - 1) / lt_size * lt_size;
        map *out = operands(n), *in = lt_alloc(sizeof(map) * (size_t)n);
        for (int r = 0; r < lt_size; r++)
            counts[r] = n / lt_size;
        for (int kind = 0; kind < KINDS; kind++) {
            for (int persistent = 0; persistent < 2; persistent++) {
                MPI_Request request;
                begin(kind, persistent, out, in, counts, n, &request);
                for (int again = 0; again <= persistent; again++) {
                    if (again)
                        OK(MPI_Start(&request));
                    usleep((useconds_t)(lt_rank % 2 ? 0 : 20000));
                    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                    check(kind, in, n);
                }
                if (persistent)
                    OK(MPI_Request_free(&request));
            }
        }
        free(out);
        free(in);
    }
    free(counts);
    check_calls();
}

/* More than there is room for, so that ranks need others to finish some. */
static void many_at_once(void)
{
    static MPI_Request requests[MANY];
    map *out = operands(MANY), *in = lt_alloc(sizeof(map) * MANY);
    for (int turn = 0; turn < lt_size; turn++) {
        if (lt_rank == turn)
            usleep(30000);
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Iallreduce(out + i, in + i, 1, type, op, MPI_COMM_WORLD, &requests[i]));
            if (i == MANY / 2 && lt_rank == turn)
                usleep(30000);
        }
        for (int done = 0; !done;)
            OK(MPI_Testall(MANY, requests, &done, MPI_STATUSES_IGNORE));
        check(1, in, MANY);
    }
    free(out);
    free(in);
    check_calls();
}

/* A rank that waits for something else is in the library, and so does its part: the sender of what it waits for needs
 * that before it sends. */
static void while_waiting_for_something_else(void)
{
    const int lengths[] = {1, LARGE};
    static MPI_Request requests[MANY];
    for (int l = 0; l < 2; l++) {
        int n = lengths[l], many = l == 0 ? MANY : 2, go = 0;
        map *out = operands(n), *in = lt_alloc(sizeof(map) * (size_t)n * (size_t)many);
        for (int i = 0; i < many; i++)
            OK(MPI_Iallreduce(out, in + (long)i * n, n, type, op, MPI_COMM_WORLD, &requests[i]));
        if (lt_rank == 0) {
            OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
            for (int r = 1; r < lt_size; r++)
                OK(MPI_Send(&go, 1, MPI_INT, r, 3, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(&go, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
        }
        for (int i = 0; i < many; i++)
            check(1, in + (long)i * n, n);
        free(out);
        free(in);
    }
    check_calls();
}

LT_MAIN("coll_user_op", TEST(make), TEST(while_computing), TEST(many_at_once), TEST(while_waiting_for_something_else),
        TEST(discard))
