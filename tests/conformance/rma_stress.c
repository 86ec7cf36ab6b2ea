/* Random one-sided operations against a model.  usage: rma_stress [SECONDS [SEED]]
 *
 * The memory of each rank has a slice for each origin, in which that origin puts and gets what it likes, and counters
 * to which all add. A round is a random number of operations in an epoch of a random sort; every rank draws what all
 * ranks do, and so knows what its memory must be at the end. */
#include "limosa_test.h"

enum { SLICE = 6000, COUNTERS = 50, MOST_RANKS = 16 };

static uint64_t state, first_seed = 1;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

typedef struct {
    int what, target, at, count, stride, seed;
} operation;

/* The next operation of some rank. */
static operation next(void)
{
    operation op;
    op.what = (int)draw(5);
    op.target = (int)draw((unsigned)lt_size);
    op.count = 1 + (int)draw(draw(3) ? 20 : 1500);
    op.stride = 1 + (int)draw(3);
    op.at = (int)draw((unsigned)(SLICE - op.count * op.stride));
    op.seed = (int)draw(1000);
    return op;
}

static unsigned char model[MOST_RANKS][MOST_RANKS][SLICE]; /* by target and origin */
static long sums[MOST_RANKS][COUNTERS];

static void perform(const operation *op, MPI_Win win, MPI_Aint start, unsigned char *from, unsigned char *into)
{
    MPI_Datatype type;
    long add = op->seed, old;
    MPI_Aint slice = start + (MPI_Aint)COUNTERS * (MPI_Aint)sizeof(long) + (MPI_Aint)SLICE * lt_rank + op->at;
    MPI_Aint counter = start + (MPI_Aint)sizeof(long) * (op->at % COUNTERS);
    OK(MPI_Type_vector(op->count, 1, op->stride, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    switch (op->what) {
    case 0:
    case 1:
        for (int i = 0; i < op->count; i++)
            from[i] = (unsigned char)(op->seed + i);
        OK(MPI_Put(from, op->count, MPI_BYTE, op->target, slice, 1, type, win));
        break;
    case 2: OK(MPI_Get(into, op->count, MPI_BYTE, op->target, slice, 1, type, win)); break;
    case 3: OK(MPI_Accumulate(&add, 1, MPI_LONG, op->target, counter, 1, MPI_LONG, MPI_SUM, win)); break;
    default: OK(MPI_Fetch_and_op(&add, &old, MPI_LONG, op->target, counter, MPI_SUM, win));
    }
    OK(MPI_Type_free(&type));
}

/* What it does to the memory. */
static void imagine(const operation *op, int origin)
{
    if (op->what < 2)
        for (int i = 0; i < op->count; i++)
            model[op->target][origin][op->at + i * op->stride] = (unsigned char)(op->seed + i);
    else if (op->what > 2)
        sums[op->target][op->at % COUNTERS] += op->seed;
}

/* The epoch's flush: only after it may what was got be looked at, and buffers be used again. */
static void settle(MPI_Win win, int epoch, int target)
{
    if (epoch == 3) {
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    } else if (epoch > 0) {
        OK(MPI_Win_flush(target, win));
    } else {
        OK(MPI_Win_fence(0, win));
    }
}

static void one_round(MPI_Win win, const unsigned char *mine, const MPI_Aint *starts)
{
    static unsigned char from[2000], into[2000];
    int epoch = (int)draw(4), n = 1 + (int)draw(12);
    MPI_Group all;
    OK(MPI_Win_get_group(win, &all));
    if (epoch == 0)
        OK(MPI_Win_fence(0, win));
    else if (epoch == 1)
        OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < n; i++) {
        operation ops[MOST_RANKS];
        for (int rank = 0; rank < lt_size; rank++)
            ops[rank] = next();
        const operation *op = &ops[lt_rank];
        if (epoch == 2)
            OK(MPI_Win_lock(op->seed % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, op->target, 0, win));
        if (epoch == 3) {
            OK(MPI_Win_post(all, 0, win));
            OK(MPI_Win_start(all, 0, win));
        }
        perform(op, win, starts[op->target], from, into);
        settle(win, epoch, op->target);
        if (op->what == 2)
            for (int k = 0; k < op->count; k++)
                if (into[k] != model[op->target][lt_rank][op->at + k * op->stride]) {
                    CHECK_INT(into[k], model[op->target][lt_rank][op->at + k * op->stride]);
                    break;
                }
        if (epoch == 2)
            OK(MPI_Win_unlock(op->target, win));
        for (int rank = 0; rank < lt_size; rank++)
            imagine(&ops[rank], rank);
    }
    if (epoch == 1)
        OK(MPI_Win_unlock_all(win));
    OK(MPI_Group_free(&all));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_BYTES(mine, sums[lt_rank], sizeof sums[lt_rank]);
    for (int rank = 0; rank < lt_size; rank++)
        CHECK_BYTES(mine + sizeof sums[lt_rank] + (size_t)SLICE * (size_t)rank, model[lt_rank][rank], SLICE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Short accesses of all to all, many in an epoch, of which each rank sees the results as soon as the epoch has ended:
 * its own memory, and that of the next rank, which may not have been here yet. */
static void many_in_an_epoch(void)
{
    enum { MOST = 40 };
    long *mine = lt_alloc((size_t)lt_size * (MOST + 1) * sizeof *mine), value[MOST], one = 1, sum, last;
    const int next = (lt_rank + 1) % lt_size, width = MOST + 1;
    MPI_Win win;
    MPI_Group all;
    memset(mine, 0, (size_t)lt_size * (MOST + 1) * sizeof *mine);
    OK(MPI_Win_create(mine, (MPI_Aint)lt_size * width * (MPI_Aint)sizeof *mine, sizeof *mine, MPI_INFO_NULL,
                      MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_group(win, &all));
    state = first_seed;
    for (long round = 1; round <= 60; round++) {
        const int is_fenced = (int)draw(2), count = 1 + (int)draw(MOST);
        if (is_fenced) {
            OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        } else {
            OK(MPI_Win_post(all, 0, win));
            OK(MPI_Win_start(all, 0, win));
        }
        for (int target = 0; target < lt_size; target++) {
            for (int i = 0; i < count; i++) {
                value[i] = round * 1000 + lt_rank * 100 + i;
                OK(MPI_Put(&value[i], 1, MPI_LONG, target, (MPI_Aint)lt_rank * width + 1 + i, 1, MPI_LONG, win));
            }
            OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
        }
        if (is_fenced) {
            OK(MPI_Win_fence(0, win));
            OK(MPI_Get(&sum, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
            OK(MPI_Get(&last, 1, MPI_LONG, next, (MPI_Aint)lt_rank * width + count, 1, MPI_LONG, win));
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            CHECK_INT(sum, round * lt_size);
            CHECK_INT(last, round * 1000 + lt_rank * 100 + count - 1);
        } else {
            OK(MPI_Win_complete(win));
            OK(MPI_Win_wait(win));
        }
        CHECK_INT(mine[0], round * lt_size);
        for (int rank = 0; rank < lt_size; rank++)
            for (int i = 0; i < count; i++)
                CHECK_INT(mine[rank * width + 1 + i], round * 1000 + rank * 100 + i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&win));
    free(mine);
}

static double seconds = 2;

static void random_operations(void)
{
    double end = MPI_Wtime() + seconds;
    if (lt_size > MOST_RANKS)
        return;
    for (uint64_t seed = first_seed;; seed++) {
        int ends = MPI_Wtime() >= end || lt_failures, all = 1;
        OK(MPI_Allreduce(&ends, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        if (all)
            break;
        state = seed * 77777 + 5;
        MPI_Aint bytes = (MPI_Aint)(sizeof sums[0]) + (MPI_Aint)SLICE * lt_size, start = 0, starts[MOST_RANKS];
        MPI_Win win;
        unsigned char *mine = NULL;
        int flavor = (int)draw(3);
        if (flavor == 0) {
            OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        } else {
            mine = lt_alloc((size_t)bytes);
            if (flavor == 1) {
                OK(MPI_Win_create(mine, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            } else {
                OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
                OK(MPI_Win_attach(win, mine, bytes));
                OK(MPI_Get_address(mine, &start));
            }
        }
        OK(MPI_Allgather(&start, 1, MPI_AINT, starts, 1, MPI_AINT, MPI_COMM_WORLD));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        memset(mine, 0, (size_t)bytes);
        memset(model, 0, sizeof model);
        memset(sums, 0, sizeof sums);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 10; i++)
            one_round(win, mine, starts);
        OK(MPI_Win_free(&win));
        if (flavor > 0)
            free(mine);
        if (lt_failures)
            printf("rank %d: seed %llu\n", lt_rank, (unsigned long long)seed);
    }
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(random_operations), TEST(many_in_an_epoch)};
    if (argc > 1)
        seconds = atof(argv[1]);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 98;
    long failures = lt_run("rma_stress", tests, 2);
    MPI_Finalize();
    return failures != 0;
}
