/* Correct programs: partitioned communication (MPI-5 chapter 4). Rank 0 sends, rank 1 receives. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64];

static void exchange(int out, MPI_Datatype out_type, int out_count, int in, MPI_Datatype in_type, int in_count,
                     int late)
{
    MPI_Request request;
    if (rank == 0)
        MPI_Psend_init(x, out, out_count, out_type, 1, 3, WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(x, in, in_count, in_type, 0, 3, WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++)
            x[i] = rank == 0 ? round + i : -1;
        MPI_Start(&request);
        for (int i = out - 1; rank == 0 && i >= 0; i--) {
            if (late)
                nap(0.05);
            MPI_Pready(i, request);
        }
        int flag = rank == 0;
        while (!flag)
            MPI_Parrived(request, 0, &flag);
        MPI_Wait(&request, ANY);
        EXPECT(x[63], round + 63);
        EXPECT(x[0], round);
    }
    MPI_Request_free(&request);
}

static void equal_partitions(void)
{
    exchange(4, MPI_INT, 16, 4, MPI_INT, 16, 0);
}

static void other_partitions_at_the_receiver(void)
{
    exchange(8, MPI_INT, 8, 2, MPI_INT, 32, 0);
}

static void partitions_marked_late(void)
{
    exchange(4, MPI_INT, 16, 16, MPI_INT, 4, 1);
}

static void same_elements_by_other_types(void)
{
    MPI_Datatype four;
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    exchange(4, four, 4, 4, MPI_INT, 16, 0);
    exchange(4, MPI_INT, 16, 2, MPI_BYTE, 128, 0);
    MPI_Type_free(&four);
}

CASES(MPI_THREAD_SINGLE, CASE(equal_partitions), CASE(other_partitions_at_the_receiver), CASE(partitions_marked_late),
      CASE(same_elements_by_other_types))
