/* What groups of processes do that have met: by a spawn, or by a port. */
#ifndef DYNAMIC_H
#define DYNAMIC_H

#include "limosa_test.h"

/* What both sides do with an intercommunicator. */
static LT_UNUSED void talk(MPI_Comm other)
{
    int rank, size, remote, sum = -1, inter = -1;
    OK(MPI_Comm_test_inter(other, &inter));
    CHECK_INT(inter, 1);
    OK(MPI_Comm_rank(other, &rank));
    OK(MPI_Comm_size(other, &size));
    OK(MPI_Comm_remote_size(other, &remote));
    OK(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, other));
    CHECK_INT(sum, remote * remote);
    /* Each sends to each, short and long. */
    enum { LONG = 1 << 17 };
    int *sent = malloc(LONG * sizeof *sent), *got = malloc(LONG * sizeof *got);
    for (int round = 0; round < 2; round++) {
        int count = round == 0 ? 1 : LONG;
        MPI_Request *requests = malloc((size_t)remote * sizeof *requests);
        for (int i = 0; i < count; i++)
            sent[i] = rank + i;
        for (int to = 0; to < remote; to++)
            OK(MPI_Isend(sent, count, MPI_INT, to, round, other, &requests[to]));
        for (int from = 0; from < remote; from++) {
            MPI_Status status;
            OK(MPI_Recv(got, count, MPI_INT, from, round, other, &status));
            CHECK_INT(got[0], from);
            CHECK_INT(got[count - 1], from + count - 1);
        }
        OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
        free(requests);
    }
    free(sent);
    free(got);
}

/* What all members of a merged communicator do. */
static LT_UNUSED void work_together(MPI_Comm all)
{
    int rank, size, sum = -1;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    for (int i = 0; i < 50; i++) {
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK_INT(sum, size * (size - 1) / 2);
    }
    OK(MPI_Barrier(all));
    /* A window: each adds to a counter of its right neighbour. */
    int *memory;
    MPI_Win window;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, all, &memory, &window));
    *memory = 0;
    OK(MPI_Win_fence(0, window));
    int value = rank + 1;
    OK(MPI_Accumulate(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, window));
    OK(MPI_Win_fence(0, window));
    CHECK_INT(*memory, (rank + size - 1) % size + 1);
    OK(MPI_Win_free(&window));
    /* Memory shared by those that are on one host. */
    MPI_Comm host;
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int here;
    OK(MPI_Comm_rank(host, &here));
    OK(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, host, &memory, &window));
    OK(MPI_Win_lock_all(0, window));
    *memory = here + 7;
    OK(MPI_Win_sync(window));
    OK(MPI_Barrier(host));
    OK(MPI_Win_sync(window));
    MPI_Aint bytes;
    int unit, *first;
    OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &first));
    CHECK_INT(*first, 7);
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Win_free(&window));
    OK(MPI_Comm_free(&host));
}

static LT_UNUSED void merge(MPI_Comm other, int high)
{
    MPI_Comm all;
    OK(MPI_Intercomm_merge(other, high, &all));
    work_together(all);
    OK(MPI_Comm_disconnect(&all));
}

#endif
