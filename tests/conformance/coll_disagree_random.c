/* Random collectives, of which one rank calls one differently.  usage: coll_disagree_random [rounds [seed]]
 *
 * Each round has a communicator of its own and some operations: blocking ones, non-blocking ones that are completed at
 * once or at the end, and persistent ones. At a random place one rank takes another operation, root, operation of a
 * reduction, or form; in every fourth round none does. Where that matters, all ranks must be told that, and where it
 * does not, none. All have the same length: of ranks that are one operation apart, two that call the same one would be
 * told that their lengths differ. A failure names the round and the seed. */
#include "limosa_test.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST = 300000, MOST_STEPS = 24, FORMS = 3, RIGHT = 4 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, SCAN, REDUCE_SCATTER, KINDS };
enum { BLOCKING, NONBLOCKING, PERSISTENT };

typedef struct {
    int kind, form, n, root, which, is_late;
} step;

static int rounds = 60;
static uint64_t seed;
static int *in, *out;

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(uint64_t *state, int limit)
{
    return (int)(next(state) % (unsigned)limit);
}

#define IN_FORM(blocking, nonblocking, persistent, ...)                                                                \
    (s->form == BLOCKING      ? blocking(__VA_ARGS__)                                                                  \
     : s->form == NONBLOCKING ? nonblocking(__VA_ARGS__, request)                                                      \
                              : persistent(__VA_ARGS__, MPI_INFO_NULL, request))

/* Calls one operation; what is to be completed is in `request` afterwards. */
static int begin(const step *s, MPI_Comm comm, MPI_Request *request)
{
    MPI_Op op = s->which ? MPI_SUM : MPI_MAX;
    int n = s->n, root = s->root;
    switch (s->kind) {
    case BARRIER: return IN_FORM(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, comm);
    case BCAST: return IN_FORM(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, in, n, MPI_INT, root, comm);
    case REDUCE: return IN_FORM(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, in, out, n, MPI_INT, op, root, comm);
    case ALLREDUCE: return IN_FORM(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, in, out, n, MPI_INT, op, comm);
    case GATHER: return IN_FORM(MPI_Gather, MPI_Igather, MPI_Gather_init, in, n, MPI_INT, out, n, MPI_INT, root, comm);
    case SCATTER:
        return IN_FORM(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, in, n, MPI_INT, out, n, MPI_INT, root, comm);
    case ALLGATHER:
        return IN_FORM(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, in, n, MPI_INT, out, n, MPI_INT, comm);
    case ALLTOALL:
        return IN_FORM(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, in, n, MPI_INT, out, n, MPI_INT, comm);
    case SCAN: return IN_FORM(MPI_Scan, MPI_Iscan, MPI_Scan_init, in, out, n, MPI_INT, op, comm);
    default:
        return IN_FORM(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, in, out, n,
                       MPI_INT, op, comm);
    }
}

static step random_step(uint64_t *state, int n)
{
    step s = {.kind = below(state, KINDS), .n = n};
    int form = below(state, FORMS + 1);
    s.form = form == FORMS ? BLOCKING : form;
    s.root = below(state, lt_size);
    s.which = below(state, 2);
    s.is_late = below(state, 2);
    return s;
}

/* Something else; true if the others can see that. */
static int change(step *s, uint64_t *state)
{
    int is_rooted = s->kind == BCAST || s->kind == REDUCE || s->kind == GATHER || s->kind == SCATTER;
    int reduces = s->kind == REDUCE || s->kind == ALLREDUCE || s->kind == SCAN || s->kind == REDUCE_SCATTER;
    switch (below(state, 4)) {
    case 0: s->kind = (s->kind + 1 + below(state, KINDS - 1)) % KINDS; return 1;
    case 1: s->root = (s->root + 1) % lt_size; return is_rooted && lt_size > 1;
    case 2: s->which ^= 1; return reduces;
    default: s->form = (s->form + 1 + below(state, FORMS - 1)) % FORMS; return 1;
    }
}

static int first(int code, int then)
{
    return code != MPI_SUCCESS ? code : then;
}

/* Does the steps until one fails, and completes what is under way. The last operation is like none of the steps, so
 * that it shows if a rank has done fewer of a form. */
static int play(const step *steps, int count, MPI_Comm comm, uint64_t *own)
{
    MPI_Request late[MOST_STEPS];
    int n_late = 0, code = MPI_SUCCESS, one = 1, product;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (below(own, 5) == 0)
            for (double end = MPI_Wtime() + 1e-3 * below(own, 20); MPI_Wtime() < end;)
                continue;
        code = begin(&steps[i], comm, &request);
        if (code == MPI_SUCCESS && steps[i].form == PERSISTENT)
            code = MPI_Start(&request);
        if (steps[i].form == NONBLOCKING && steps[i].is_late) {
            late[n_late++] = request;
        } else if (steps[i].form != BLOCKING) {
            code = first(code, MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (request != MPI_REQUEST_NULL)
                OK(MPI_Request_free(&request));
        }
    }
    for (int i = 0; i < n_late; i++)
        code = first(code, MPI_Wait(&late[i], MPI_STATUS_IGNORE));
    return first(code, MPI_Allreduce(&one, &product, 1, MPI_INT, MPI_PROD, comm));
}

static void one_rank_differs(void)
{
    in = lt_alloc(sizeof *in * MOST * (size_t)lt_size);
    out = lt_alloc(sizeof *out * MOST * (size_t)lt_size);
    OK(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    for (int round = 0; round < rounds; round++) {
        static const int lengths[] = {1, 3, 60, 900, 5000, 40000, MOST};
        uint64_t common = seed + 1000003u * (uint64_t)round, own = common + 7919u * (uint64_t)(lt_rank + 1);
        step steps[MOST_STEPS];
        int n = lengths[below(&common, sizeof lengths / sizeof *lengths)];
        int count = 4 + below(&common, MOST_STEPS - 4), is_wrong = 0, told, all, any, length;
        MPI_Comm comm;
        char text[MPI_MAX_ERROR_STRING] = "";
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        for (int i = 0; i < count; i++)
            steps[i] = random_step(&common, n);
        int odd = below(&common, lt_size), at = below(&common, count);
        step other = steps[at];
        if (round % RIGHT != 0 && lt_size > 1)
            is_wrong = change(&other, &common);
        if (lt_rank == odd)
            steps[at] = other;
        int code = play(steps, count, comm, &own);
        told = code != MPI_SUCCESS;
        if (told)
            OK(MPI_Error_string(code, text, &length));
        OK(MPI_Allreduce(&told, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        OK(MPI_Allreduce(&told, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        int is_clear = strstr(text, " called ") != NULL || strstr(text, " has left this operation out ") != NULL;
        if (all != is_wrong || any != is_wrong || (told && !is_clear))
            lt_fail(__FILE__, __LINE__, "seed %llu, round %d: rank %d differs at step %d: %d; this rank is told: %s",
                    (unsigned long long)seed, round, odd, at, is_wrong, told ? text : "nothing");
        lt_checks++;
        OK(MPI_Comm_free(&comm));
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(one_rank_differs)};
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)getpid() * 7919u;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 98;
    long failures = lt_run("coll_disagree_random", tests, 1);
    MPI_Finalize();
    return failures != 0;
}
