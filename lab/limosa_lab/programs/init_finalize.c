/* lab: ranks=1,2,4,8,16,32,64 */
/* The smallest program: starts MPI, passes one barrier, ends. How long that takes as a whole is measured from
 * outside; it says itself
 *   init    the time of MPI_Init, on the slowest rank
 *   memory  what a rank uses after the barrier, the largest of all ranks; x.kind is explained in usage.h
 *   growth  by how much that is more than before MPI_Init: the part that the library takes
 * Only the hot form. Nothing is transferred, so nothing is verified. */
#include "usage.h"

int main(int argc, char **argv)
{
    char x[64];
    struct memory before = memory_used();
    double start = lab_now();
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    double mine = lab_now() - start, most;
    MPI_Barrier(MPI_COMM_WORLD);
    struct memory after = memory_used();
    struct lab_case c = {.bench = "init_finalize", .form = "hot"};
    if (!lab_wanted(c.bench) || !lab.forms[0])
        return lab_end();
    MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    most *= 1e3;
    lab_print(&c, "init", "ms", &most, 1, true);
    for (enum memory_kind kind = 0; kind < MEMORY_KINDS; kind++) {
        snprintf(x, sizeof x, "{\"kind\":\"%s\"}", memory_names[kind]);
        c.x = x;
        memory_print(&c, "memory", &after, NULL, kind);
        memory_print(&c, "growth", &after, &before, kind);
    }
    return lab_end();
}
