/* limosa_mcast: a message from one process to a list of processes, in any order of the list, with processes that take
 * no part, among other messages with the same tag, of derived types, and with wrong arguments. */
#include "limosa_test.h"

#include <limosa.h>

static unsigned state = 7;

/* All ranks draw the same numbers. */
static int draw(int below)
{
    state = state * 1103515245u + 12345u;
    return (int)((state >> 16) % (unsigned)below);
}

static int takes_part(int source, int n, const int *dests)
{
    int found = source == lt_rank;
    for (int i = 0; i < n; i++)
        found |= dests[i] == lt_rank;
    return found;
}

static void random_lists(void)
{
    enum { ROUNDS = 200, MOST = 40000 };
    static int buffer[MOST], expected[MOST];
    int dests[16];
    for (int round = 0; round < ROUNDS; round++) {
        int source = draw(lt_size), n = draw(9), tag = draw(3);
        int count = (int[]){0, 1, 2, 300, MOST}[draw(round % 10 ? 4 : 5)];
        for (int i = 0; i < n; i++)
            dests[i] = draw(lt_size);
        for (int i = 0; i < count; i++) {
            expected[i] = round * 131 + i;
            buffer[i] = source == lt_rank ? expected[i] : -1;
        }
        OK(limosa_mcast(buffer, count, MPI_INT, source, n, dests, tag, MPI_COMM_WORLD));
        if (takes_part(source, n, dests))
            CHECK_BYTES(buffer, expected, sizeof(int) * count);
        else
            for (int i = 0; i < count; i++)
                if (buffer[i] != -1) {
                    CHECK_INT(buffer[i], -1);
                    break;
                }
    }
}

static void only_those_in_the_list_call(void)
{
    int last = lt_size - 1, value = lt_rank == last ? 42 : 0;
    if (lt_rank == 0 || lt_rank == last)
        OK(limosa_mcast(&value, 1, MPI_INT, last, 1, (int[]){0}, 5, MPI_COMM_WORLD));
    CHECK_INT(value, lt_rank == 0 || lt_rank == last ? 42 : 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void other_messages_are_left_alone(void)
{
    int value = lt_rank == 0 ? 1 : 0, other = -1, next = (lt_rank + 1) % lt_size;
    int *all = malloc(sizeof(int) * lt_size);
    MPI_Request request;
    for (int i = 0; i < lt_size; i++)
        all[i] = i;
    OK(MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    OK(limosa_mcast(&value, 1, MPI_INT, 0, lt_size, all, 9, MPI_COMM_WORLD));
    CHECK_INT(value, 1);
    OK(MPI_Send(&lt_rank, 1, MPI_INT, next, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(other, (lt_rank + lt_size - 1) % lt_size);
    free(all);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void derived_types(void)
{
    double table[6][4];
    MPI_Datatype column;
    int all[64];
    OK(MPI_Type_vector(6, 1, 4, MPI_DOUBLE, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < 64; i++)
        all[i] = i;
    for (int i = 0; i < 24; i++)
        table[i / 4][i % 4] = lt_rank == 0 ? i : -i;
    OK(limosa_mcast(&table[0][1], 1, column, 0, lt_size, all, 0, MPI_COMM_WORLD));
    for (int i = 0; i < 24; i++)
        CHECK(table[i / 4][i % 4] == (lt_rank == 0 || i % 4 == 1 ? i : -i));
    OK(MPI_Type_free(&column));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void wrong_arguments(void)
{
    int value = 0, beyond = lt_size, none = MPI_PROC_NULL;
    MPI_Comm comm = MPI_COMM_WORLD;
    FAILS(MPI_ERR_RANK, limosa_mcast(&value, 1, MPI_INT, 0, 1, &beyond, 0, comm));
    FAILS(MPI_ERR_RANK, limosa_mcast(&value, 1, MPI_INT, -7, 0, NULL, 0, comm));
    FAILS(MPI_ERR_RANK, limosa_mcast(&value, 1, MPI_INT, 0, 1, &none, 0, comm));
    FAILS(MPI_ERR_TAG, limosa_mcast(&value, 1, MPI_INT, 0, 1, &lt_rank, -1, comm));
    FAILS(MPI_ERR_COUNT, limosa_mcast(&value, -1, MPI_INT, 0, 1, &lt_rank, 0, comm));
    FAILS(MPI_ERR_ARG, limosa_mcast(&value, 1, MPI_INT, 0, -1, &lt_rank, 0, comm));
    FAILS(MPI_ERR_ARG, limosa_mcast(&value, 1, MPI_INT, 0, 2, NULL, 0, comm));
    FAILS(MPI_ERR_TYPE, limosa_mcast(&value, 1, MPI_DATATYPE_NULL, 0, 1, &lt_rank, 0, comm));
    FAILS(MPI_ERR_COMM, limosa_mcast(&value, 1, MPI_INT, 0, 1, &lt_rank, 0, MPI_COMM_NULL));
    OK(MPI_Barrier(comm));
}

/* A rank with room for another length than is sent gets an error, and so do the ranks that it passes the message to. */
static void lengths_that_differ(void)
{
    int all[64], values[4] = {0, 0, 0, 0};
    for (int i = 0; i < 64; i++)
        all[i] = i;
    if (lt_size < 2)
        return;
    for (int sent = 1; sent <= 3; sent += 2) {
        int code = limosa_mcast(values, lt_rank == 0 ? sent : 2, MPI_INT, 0, lt_size, all, 3, MPI_COMM_WORLD);
        if (lt_rank == 0)
            CHECK_INT(lt_class(code), MPI_SUCCESS);
        else
            CHECK(code != MPI_SUCCESS || sent == 3);
        if (lt_rank == 1)
            CHECK_INT(lt_class(code), sent == 3 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

LT_MAIN("multicast", TEST(random_lists), TEST(only_those_in_the_list_call), TEST(other_messages_are_left_alone),
        TEST(derived_types), TEST(wrong_arguments), TEST(lengths_that_differ))
