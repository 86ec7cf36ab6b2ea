"""Collectives replaced at run time: results stay the same with everything replaced, and tuning files are checked."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest
from conformance.c_programs import Programs, runs_of
from jobs import PATIENCE, sleeping_yield
from limosa_lab.tune import store
from limosa_lab.tune.rules import MULTIPLE, RECIPES, Entry, everything
from limosa_lab.tune.store import Part

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sysconfig.get_path("scripts"))
LIBRARY = Path(sysconfig.get_path("data")) / "lib" / "limosa" / "liblimosa_tuned.so"
VERSION = subprocess.run([BIN / "limosa", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]

# Of several recipes of an operation the first rule counts: each of these texts has a different one of them.
FORCED = everything()

# What has calls of all kinds on all kinds of communicators. Left out are programs about calls that do not fit together:
# what they are told names the calls that are made in place of theirs.
PROGRAMS = ("coll_ops", "coll_user_op", "coll_alltoall", "inter", "attr", "errhandler", "coll_persistent_lengths")


def run(*words, env=None, limit=240 * PATIENCE):
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a program, each text once."""
    folder = tmp_path_factory.mktemp("compiled")

    @functools.cache
    def compile_it(text, options=()):
        program = Path(tempfile.mkdtemp(dir=folder)) / "program"
        command = [BIN / "mpicc", "-O1", *options, "-x", "c", "-", "-o", program]
        subprocess.run(command, input=text, text=True, check=True)
        return program

    return compile_it


CONFORMANCE = [run for run in runs_of() if run.program in PROGRAMS and run.np == 3]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("rules", FORCED, ids=range(len(FORCED)))
@pytest.mark.parametrize("program", CONFORMANCE, ids=[run.name for run in CONFORMANCE])
def test_conformance_programs_pass_with_everything_replaced(programs, program, rules):
    programs.check(program, {"LD_PRELOAD": str(LIBRARY), "LIMOSA_TUNED": rules})


LAYOUTS = r"""
/* Every collective with datatypes that have gaps and differ between ranks, in place and not, on the world, its reverse
 * and a half of it; with an operation that does not commute. Compared with what follows by hand. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;
#define SAME(got, want) \
    do { \
        if ((got) != (want) && wrong++ < 5) \
            printf("line %d: %d instead of %d\n", __LINE__, (int)(got), (int)(want)); \
    } while (0)

/* 2 x 2 matrices as four ints, multiplied: associative, not commutative. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                    a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void matrix(int *to, int rank, int at)
{
    int m[4] = {1, rank + at + 1, 0, 1 - 2 * (rank % 2)};
    memcpy(to, m, sizeof m);
}

static void product(int *to, int ranks, int at)
{
    int one = 1, next[4];
    memcpy(to, (int[]){1, 0, 0, 1}, 16);
    for (int i = 0; i < ranks; i++) {
        matrix(next, i, at);
        multiply(to, next, &one, NULL);
        memcpy(to, next, 16);
    }
}

static void blocks(MPI_Comm comm, int count, MPI_Datatype pairs)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* `pairs` is an int, a gap, an int; count of them are 2 * count ints. Odd ranks use plain ints instead. */
    int n = 2 * count, *gaps = calloc(3 * count * size, 4), *plain = calloc(n * size, 4);
    for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
        memset(gaps, 0x77, 3 * count * size * 4);
        for (int i = 0; i < n; i++)
            gaps[i / 2 * 3 + i % 2 * 2] = plain[i] = rank == root ? 100 * root + i : -1;
        rank % 2 ? MPI_Bcast(plain, n, MPI_INT, root, comm) : MPI_Bcast(gaps, count, pairs, root, comm);
        for (int i = 0; i < n; i++)
            SAME(rank % 2 ? plain[i] : gaps[i / 2 * 3 + i % 2 * 2], 100 * root + i);
        if (count)
            SAME(rank % 2 ? 0x77777777 : gaps[1], 0x77777777); /* what lies in a gap stays */

        int *mine = malloc(n * 4);
        for (int i = 0; i < n; i++)
            mine[i] = 1000 * rank + i;
        /* gathered into gaps, then scattered out of them */
        memset(gaps, 0x77, 3 * count * size * 4);
        MPI_Gather(mine, n, MPI_INT, gaps, count, pairs, root, comm);
        for (int i = 0; rank == root && i < n * size; i++)
            SAME(gaps[i / 2 * 3 + i % 2 * 2], 1000 * (i / n) + i % n);
        memset(mine, 0, n * 4);
        MPI_Scatter(gaps, count, pairs, mine, n, MPI_INT, root, comm);
        for (int i = 0; i < n; i++)
            SAME(mine[i], 1000 * rank + i);
        MPI_Allgather(mine, n, MPI_INT, gaps, count, pairs, comm);
        for (int i = 0; i < n * size; i++)
            SAME(gaps[i / 2 * 3 + i % 2 * 2], 1000 * (i / n) + i % n);
        /* in place */
        memcpy(plain + rank * n, mine, n * 4);
        if (rank == root)
            MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plain, n, MPI_INT, root, comm);
        else
            MPI_Gather(plain + rank * n, n, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, comm);
        for (int i = 0; rank == root && i < n * size; i++)
            SAME(plain[i], 1000 * (i / n) + i % n);
        if (rank == root)
            MPI_Scatter(plain, n, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm);
        else
            MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, plain + rank * n, n, MPI_INT, root, comm);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plain, n, MPI_INT, comm);
        for (int i = 0; i < n * size; i++)
            SAME(plain[i], 1000 * (i / n) + i % n);
        /* Blocks of different lengths: those of odd ranks are half as long, and in the places of whole ones. */
        int counts[64], places[64];
        for (int i = 0; i < size; i++) {
            counts[i] = i % 2 ? count / 2 : count;
            places[i] = i * count;
        }
        for (int place = 0; place < 2; place++) {
            memset(gaps, 0x77, 3 * count * size * 4);
            for (int i = 0; i < 2 * counts[rank]; i++)
                gaps[rank * 3 * count + i / 2 * 3 + i % 2 * 2] = mine[i] = 1000 * rank + i;
            MPI_Allgatherv(place ? MPI_IN_PLACE : mine, 2 * counts[rank], MPI_INT, gaps, counts, places, pairs, comm);
            for (int i = 0; i < n * size; i++) {
                int want = i % n < 2 * counts[i / n] ? 1000 * (i / n) + i % n : 0x77777777;
                SAME(gaps[i / 2 * 3 + i % 2 * 2], want);
            }
        }
        for (int i = 0; i < n * size; i++)
            plain[i] = 1000 * rank + i / n;
        MPI_Alltoall(plain, n, MPI_INT, gaps, count, pairs, comm);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plain, n, MPI_INT, comm);
        for (int i = 0; i < n * size; i++) {
            SAME(gaps[i / 2 * 3 + i % 2 * 2], 1000 * (i / n) + rank);
            SAME(plain[i], 1000 * (i / n) + rank);
        }
        free(mine);
    }
    free(gaps);
    free(plain);
}

static void reductions(MPI_Comm comm, int count, MPI_Op op, MPI_Datatype type)
{
    int rank, size, want[4];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int total = count * size, *in = malloc(16 * total), *out = malloc(16 * total), counts[64];
    for (int place = 0; place < 2; place++) {
        const void *from = place ? MPI_IN_PLACE : (void *)in;
#define FILL(n) \
    for (int i = 0; i < (n); i++) \
        matrix((place ? out : in) + 4 * i, rank, i)
#define CHECK(first, n, ranks) \
    for (int i = 0; i < (n); i++) { \
        product(want, ranks, (first) + i); \
        SAME(memcmp(out + 4 * i, want, 16), 0); \
    }
        FILL(count);
        MPI_Allreduce(from, out, count, type, op, comm);
        CHECK(0, count, size);
        FILL(count);
        int root = size - 1;
        MPI_Reduce(rank == root ? from : place ? out : in, rank == root ? out : NULL, count, type, op, root, comm);
        if (rank == root)
            CHECK(0, count, size);
        FILL(count);
        MPI_Scan(from, out, count, type, op, comm);
        CHECK(0, count, rank + 1);
        FILL(count);
        memset(place ? in : out, 0x77, 16 * count);
        MPI_Exscan(from, out, count, type, op, comm);
        if (rank)
            CHECK(0, count, rank);
        FILL(total);
        MPI_Reduce_scatter_block(from, out, count, type, op, comm);
        CHECK(rank * count, count, size);
        int before = 0, sum = 0;
        for (int i = 0; i < size; sum += counts[i++]) {
            counts[i] = i % 2 ? 0 : count;
            before += i < rank ? counts[i] : 0;
        }
        FILL(sum);
        MPI_Reduce_scatter(from, out, counts, type, op, comm);
        CHECK(before, counts[rank], size);
    }
    MPI_Barrier(comm);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    MPI_Datatype pairs, matrices;
    MPI_Comm comms[3], inter;
    MPI_Op op;
    int rank, size, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
    MPI_Type_create_indexed_block(2, 1, (int[]){0, 2}, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_contiguous(4, MPI_INT, &matrices);
    MPI_Type_commit(&matrices);
    MPI_Op_create(multiply, 0, &op);
    for (int i = 0; i < 3; i++)
        for (int count = 0; count < 40; count += count < 3 ? 1 : 17) {
            blocks(comms[i], count, pairs);
            reductions(comms[i], count, op, matrices);
        }
    /* On intercommunicators nothing is replaced. */
    if (size > 1) {
        int value = rank == 0 ? 42 : -1;
        MPI_Intercomm_create(comms[2], 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 3, &inter);
        int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Bcast(&value, 1, MPI_INT, root, inter);
        SAME(value, rank % 2 || rank == 0 ? 42 : -1);
        MPI_Comm_free(&inter);
    }
    /* An error goes to the communicator's handler, and comes back as it would. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int class, code = MPI_Bcast(&all, -1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    SAME(class, MPI_ERR_COUNT);
    MPI_Error_class(MPI_Bcast(&all, 1, MPI_INT, size, MPI_COMM_WORLD), &class);
    SAME(class, MPI_ERR_ROOT);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
"""


@pytest.mark.parametrize("rules", FORCED, ids=range(len(FORCED)))
@pytest.mark.parametrize("library", ["limosa", "mpich"])
def test_results_are_the_same_with_everything_replaced(compiled, library, rules, tmp_path):
    program = compiled(LAYOUTS)
    preloaded = f"{LIBRARY}:{sleeping_yield(tmp_path)}" if library == "mpich" else LIBRARY
    for ranks in (2, 3, 5):
        variables = ["-x", f"LD_PRELOAD={preloaded}", "-x", f"LIMOSA_TUNED={rules}"]
        code, text = run(BIN / "limosa", "run", "--mpi", library, "-n", ranks, *variables, program)
        assert (code, text.strip()) == (0, "0 wrong"), text


def test_rules_that_make_no_sense_are_told_once_and_nothing_is_replaced(compiled):
    program = compiled(LAYOUTS)
    levels = [f"bcast=send * 0-* {word}" for word in ("quad", "multiple-single", "single-", "single multiple", "")]
    wrong = ("bcast=magic * 0-*", "bcast=scatter+allgather 4", "bcast=scatter+allgather * 9-3", "x" * 5000)
    for rules in (*wrong, *levels):
        text = run(
            BIN / "limosa", "run", "-n", 2, "-x", f"LD_PRELOAD={LIBRARY}", "-x", f"LIMOSA_TUNED={rules}", program
        )[1]
        assert "0 wrong" in text
        assert text.count("is not a rule; nothing is replaced") == 1


LEVELS = r"""
/* Asks for the thread level of the first argument, ranks but 0 for that of the second if there is one; -1 is MPI_Init.
 * Broadcasts. With a third argument it broadcasts also in one communicator with a spawned process, which asks for that
 * level, and in MPI_COMM_WORLD again. Rank 0 prints how many messages its calls in MPI_COMM_WORLD have sent by
 * themselves, and those in the other communicator. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int sent;
/* What stands before the library finds this function first. */
int PMPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    sent++;
    return MPI_Send(buffer, count, type, to, tag, comm);
}

static int broadcast(MPI_Comm comm)
{
    int rank, value;
    MPI_Comm_rank(comm, &rank);
    value = rank ? 0 : 42;
    sent = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, comm);
    if (value != 42)
        MPI_Abort(comm, 1);
    return sent;
}

int main(int argc, char **argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    const char *own = getenv("PMI_RANK");
    int rank, provided, level = atoi(argv[argc > 2 && own && atoi(own) ? 2 : 1]);
    if (level < 0)
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, levels[level], &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int first = broadcast(MPI_COMM_WORLD), second = 0;
    MPI_Comm parent, between, all;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL || argc > 3) {
        char *words[] = {argv[argc > 3 ? 3 : 1], NULL};
        if (parent == MPI_COMM_NULL)
            MPI_Comm_spawn(argv[0], words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        else
            between = parent;
        MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
        second = broadcast(all);
        first += parent == MPI_COMM_NULL ? broadcast(MPI_COMM_WORLD) : 0;
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&between);
    }
    if (rank == 0 && parent == MPI_COMM_NULL)
        printf("%d %d\n", first, second);
    MPI_Finalize();
    return 0;
}
"""

UP_TO_SERIALIZED = "bcast=send * 0-* single-serialized"


@pytest.mark.parametrize(
    ("rules", "levels", "sent"),
    [
        (UP_TO_SERIALIZED, "-1", "1 0"),
        (UP_TO_SERIALIZED, "0", "1 0"),
        (UP_TO_SERIALIZED, "2", "1 0"),
        (UP_TO_SERIALIZED, "3", "0 0"),
        ("bcast=send * 0-* multiple", "0", "0 0"),
        ("bcast=send * 0-* multiple", "3", "1 0"),
        ("bcast=allreduce * 0-* funneled;bcast=send * 0-*", "1", "0 0"),
        ("bcast=allreduce * 0-* funneled;bcast=send * 0-*", "2", "1 0"),
        # Ranks with different levels: only rules without a level hold.
        (UP_TO_SERIALIZED, "0 3", "0 0"),
        (f"{UP_TO_SERIALIZED};bcast=send * 0-*", "3 0", "1 0"),
        # In one communicator with a spawned process nothing is replaced; in MPI_COMM_WORLD two calls are.
        (UP_TO_SERIALIZED, "0 0 3", "2 0"),
        ("bcast=send * 0-*", "0 0 3", "2 0"),
    ],
)
def test_rules_hold_at_the_thread_level_that_they_name(compiled, rules, levels, sent, tmp_path):
    """On MPICH: Limosa provides MPI_THREAD_MULTIPLE whatever a program asks for."""
    program = compiled(LEVELS, options=("-rdynamic",))
    variables = ["-x", f"LD_PRELOAD={LIBRARY}:{sleeping_yield(tmp_path)}", "-x", f"LIMOSA_TUNED={rules}"]
    code, text = run(BIN / "limosa", "run", "--mpi", "mpich", "-n", 2, *variables, program, *levels.split())
    assert (code, text.strip()) == (0, sent)


CALLS = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        pages = -1;
    fclose(file);
    return pages;
}
int main(int argc, char **argv)
{
    int value[64] = {0}, rank;
    long first = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 300000; i++) {
        MPI_Allreduce(MPI_IN_PLACE, value, 64, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (i == 10000)
            first = resident();
    }
    if (rank == 0)
        printf("%ld pages more\n", resident() - first);
    MPI_Finalize();
    return 0;
}
"""


def test_memory_does_not_grow_with_the_calls(compiled):
    rules = "allreduce=reduce_scatter+allgather * 0-*"
    variables = ["-x", f"LD_PRELOAD={LIBRARY}", "-x", f"LIMOSA_TUNED={rules}"]
    code, text = run(BIN / "limosa", "run", "-n", 2, *variables, compiled(CALLS))
    assert code == 0, text
    assert int(text.split()[0]) < 64


COUNTED = r"""
/* What calls cost beside the library's own work: functions of the library that are asked, and pages of memory. */
#define _GNU_SOURCE
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int asked;
/* What stands before the library finds these functions first. */
#define ASKED(name, parameters, arguments) \
    int PMPI_##name parameters \
    { \
        asked++; \
        return MPI_##name arguments; \
    }
ASKED(Comm_test_inter, (MPI_Comm c, int *f), (c, f))
ASKED(Comm_size, (MPI_Comm c, int *n), (c, n))
ASKED(Comm_rank, (MPI_Comm c, int *n), (c, n))
ASKED(Type_size, (MPI_Datatype t, int *n), (t, n))
ASKED(Type_get_extent, (MPI_Datatype t, MPI_Aint *a, MPI_Aint *b), (t, a, b))
ASKED(Type_get_true_extent, (MPI_Datatype t, MPI_Aint *a, MPI_Aint *b), (t, a, b))
ASKED(Type_get_envelope, (MPI_Datatype t, int *a, int *b, int *c, int *d), (t, a, b, c, d))

static long faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

int main(int argc, char **argv)
{
    enum { COUNT = 1 << 16, CALLS = 100 };
    int rank;
    double *mine = calloc(COUNT, 8), *sum = calloc(COUNT, 8);
    /* Without that, the C library learns in time to keep such memory, in some programs. */
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    asked = 0;
    MPI_Bcast(mine, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    int without_rules = asked;
    asked = 0;
    MPI_Allreduce(mine, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int beside_rules = asked;
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    long before = faults();
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    long pages = (faults() - before) / CALLS;
    MPI_Finalize();
    if (rank == 0)
        printf("%d %d %ld\n", without_rules, beside_rules, pages);
    return 0;
}
"""


def test_calls_cost_little_beside_the_librarys_own_work(compiled):
    """A call that is replaced takes no new memory; one that is not asks the library for no more than it needs."""
    program = compiled(COUNTED, options=("-rdynamic",))
    env = os.environ | {"LIMOSA_TUNED": "allreduce=reduce_scatter+allgather 2 65536-*"}
    words = (BIN / "limosa", "run", "-n", 2, "-x", f"LD_PRELOAD={LIBRARY}", program)
    code, text = run(*words, env=env)
    assert code == 0, text
    without_rules, beside_rules, pages = map(int, text.split())
    assert without_rules == 0
    # The ranks, and the size of the datatype.
    assert beside_rules == 2
    # Each call needs 64 pages for a part of the result.
    assert pages < 8


def tuning(tmp_path, change=lambda content: content, **libraries):
    content = {"format": 1, "machine": store.fingerprint(), "libraries": libraries}
    file = tmp_path / "tuning.json"
    file.write_text(json.dumps(change(content)))
    return file


def limosa(**more):
    return {"version": VERSION, "rows": ["bcast shared 2 * - rounds"], "rules": []} | more


HELLO = ["-n", "2", "sh", "-c", 'echo "rows: $LIMOSA_TUNED_ROWS"']


def test_ranks_of_limosa_get_the_rows_of_the_file(tmp_path):
    file = tuning(tmp_path, limosa=limosa())
    code, text = run(BIN / "limosa", "run", f"--tuned={file}", *HELLO)
    assert (code, text) == (0, "rows: bcast shared 2 * - rounds\n" * 2)

    folder = tmp_path / "limosa"
    folder.mkdir()
    file.rename(folder / "tuning.json")
    usual = os.environ | {"XDG_CONFIG_HOME": str(tmp_path)}
    assert run(BIN / "limosa", "run", *HELLO, env=usual)[1] == "rows: bcast shared 2 * - rounds\n" * 2
    assert run(BIN / "limosa", "run", *HELLO, env=usual | {"LIMOSA_TUNING": "off"})[1] == "rows: \n" * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content | {"machine": {"cpu": "Z80", "processors": 1}}, "it was made on another machine"),
        (lambda content: content | {"libraries": {"limosa": limosa(version="0.0.1")}}, "it was made for version 0.0.1"),
        (lambda content: content | {"format": 9}, "it has format 9"),
        (lambda content: {}, "it is damaged: `format` is missing"),
        (
            lambda content: content | {"libraries": {"limosa": limosa(rows=7)}},
            "it is damaged: `rows` of limosa is missing",
        ),
    ],
)
def test_a_file_of_something_else_is_ignored_with_the_reason(tmp_path, change, reason):
    code, text = run(BIN / "limosa", "run", f"--tuned={tuning(tmp_path, change, limosa=limosa())}", *HELLO)
    assert code == 0
    assert text.count("rows: \n") == 2
    assert "is ignored: " + reason in text
    assert text.count("warning") == 1


def test_an_empty_or_damaged_file_is_ignored_and_a_missing_one_is_not(tmp_path):
    file = tmp_path / "tuning.json"
    for text in ("", "{", "\0\0\0"):
        file.write_text(text)
        assert "is ignored: it is damaged" in run(BIN / "limosa", "run", f"--tuned={file}", *HELLO)[1]
    code, text = run(BIN / "limosa", "run", f"--tuned={tmp_path / 'none'}", *HELLO)
    assert code == 2
    assert "there is no tuning file" in text


def test_rows_that_make_no_sense_are_told_by_one_rank_and_ignored(tmp_path, compiled):
    file = tuning(tmp_path, limosa=limosa(rows=["bcast shared 2 * - magic"]))
    code, text = run(BIN / "limosa", "run", f"--tuned={file}", "-n", 2, compiled(LAYOUTS))
    assert code == 0
    assert text.count("the tuning file is invalid") == 1
    assert "`magic` is not an algorithm of bcast shared" in text


def test_results_are_the_same_with_tuned_rows(tmp_path, compiled):
    rows = [
        "bcast shared 3 64..1K direct single_copy",
        "bcast shared 3 2K..* - rounds",
        "allreduce shared 3 8..* - rounds",
    ]
    file = tuning(tmp_path, limosa=limosa(rows=rows))
    code, text = run(BIN / "limosa", "run", f"--tuned={file}", "-n", 3, compiled(LAYOUTS))
    assert (code, text.strip()) == (0, "0 wrong")


def version_of_mpich():
    return run(BIN / "limosa", "run", "--mpi", "list")[1].partition("MPICH ")[2].split()[0]


def test_a_file_for_one_thread_level_changes_programs_with_that_level_alone(tmp_path, compiled):
    file, program = tmp_path / "tuning.json", compiled(LEVELS, options=("-rdynamic",))
    entry = Entry("bcast", "bcast = send", 2, 1, None, 0.5, 0.1, level=MULTIPLE)
    store.write(file, {}, {"mpich": Part("MPICH", version_of_mpich(), (entry,))})
    for level, sent in ((0, 0), (3, 1)):
        words = ["--mpi", "mpich", f"--tuned={file}", "-n", 2, "-x", f"LD_PRELOAD={sleeping_yield(tmp_path)}"]
        code, text = run(BIN / "limosa", "run", *words, program, level)
        assert (code, text.strip()) == (0, f"{sent} 0")


def test_another_library_is_given_the_rules_and_what_replaces_its_collectives(tmp_path, compiled):
    version = version_of_mpich()
    rules = [f"{recipe.replace(' ', '')} * 0-*" for recipe in sorted(RECIPES)]
    file = tuning(tmp_path, mpich={"version": version, "rows": [], "rules": rules})
    code, text = run(BIN / "limosa", "run", "--mpi", "mpich", f"--tuned={file}", "-n", 3, compiled(LAYOUTS))
    assert (code, text.strip()) == (0, "0 wrong")
    words = ["-n", "1", "sh", "-c", 'echo "$LIMOSA_TUNED"; echo "$LD_PRELOAD"']
    text = run(BIN / "limosa", "run", "--mpi", "mpich", f"--tuned={file}", *words)[1]
    assert "liblimosa_tuned.so" in text
    assert ";".join(rules) in text
    old = tuning(tmp_path, mpich={"version": "1.0", "rows": [], "rules": rules})
    text = run(BIN / "limosa", "run", "--mpi", "mpich", f"--tuned={old}", *words)[1]
    assert "it was made for version 1.0 of mpich" in text
    assert "bcast=" not in text
