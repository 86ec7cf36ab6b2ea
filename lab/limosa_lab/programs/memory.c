/* lab: ranks=2,4,8,16,32,64 */
/* Memory inside the library against the number of ranks and of partners. After MPI_Init, and again each time the
 * number of partners has about doubled, every rank says by how much its memory has grown since before MPI_Init; a
 * partner is a rank with which messages of 8 B, 4 KB and 64 KB were exchanged in both directions. x.partners is
 * their number, x.kind is explained in usage.h; the largest of all ranks counts. The messages' own buffers exist,
 * and were used, beforehand; the barrier and the reduction that each reading takes are part of what it sees. Only
 * the hot form. Verified: all bytes of every message. */
#include "usage.h"

enum { LARGEST = 64 << 10 };

static char out[LARGEST], in[LARGEST];

static bool talk(int partner)
{
    static const size_t sizes[] = {8, 4 << 10, LARGEST};
    bool well = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        lab_fill(out, sizes[i], lab_key(lab.rank, partner, i));
        memset(in, LAB_UNRECEIVED, sizes[i]);
        MPI_Sendrecv(out, (int)sizes[i], MPI_BYTE, partner, 1, in, (int)sizes[i], MPI_BYTE, partner, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        well = well && lab_check(in, sizes[i], lab_key(partner, lab.rank, i));
    }
    return well;
}

static void report(int partners, const struct memory *before)
{
    char x[64];
    MPI_Barrier(MPI_COMM_WORLD); /* all have come this far: pages are shared by all processes that will share them */
    struct memory now = memory_used();
    struct lab_case c = {.bench = "memory", .form = "hot", .x = x};
    for (enum memory_kind kind = ANONYMOUS; kind < MEMORY_KINDS; kind++) {
        snprintf(x, sizeof x, "{\"partners\":%d,\"kind\":\"%s\"}", partners, memory_names[kind]);
        memory_print(&c, "growth", &now, before, kind);
    }
}

int main(int argc, char **argv)
{
    bool well = true;
    memset(out, 1, sizeof out);
    memset(in, 1, sizeof in);
    struct memory before = memory_used();
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    if (lab.ranks & (lab.ranks - 1))
        lab_refuse("runs with a power of two of ranks, this job has %d", lab.ranks);
    if (!lab_wanted("memory") || !lab.forms[0])
        return lab_end();
    report(0, &before);
    /* Partner number i differs from this rank by the bits of i, so that both see each other at the same time. */
    for (int i = 1; i < lab.ranks; i++) {
        well = talk(lab.rank ^ i) && well;
        if ((i & (i - 1)) && i != lab.ranks - 1)
            continue;
        lab_right(well);
        report(i, &before);
    }
    return lab_end();
}
