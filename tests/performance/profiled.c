/* Calls whose instructions are counted on one rank, with and without the profiler, and through the translation of
 * MPICH's ABI; see counting.py. */
#include <mpi.h>
#include <valgrind/callgrind.h>

/* The first repetitions build what is built once. */
#define REPETITIONS 6
#define COUNT(name, call)                                                                                              \
    do {                                                                                                               \
        CALLGRIND_ZERO_STATS;                                                                                          \
        call;                                                                                                          \
        CALLGRIND_DUMP_STATS_AT(name);                                                                                 \
    } while (0)

int main(int argc, char **argv)
{
    int rank, flag;
    char out[8] = {0}, in[8];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < REPETITIONS; i++) {
        COUNT("comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        COUNT("iprobe", MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
        COUNT("isend", MPI_Isend(out, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request));
        COUNT("recv", MPI_Recv(in, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        COUNT("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
#ifdef WITH_SEND
        MPI_Irecv(in, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
        COUNT("send", MPI_Send(out, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
        COUNT("test", MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    }
    MPI_Finalize();
    return 0;
}
