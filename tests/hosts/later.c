/* Processes that a job over several hosts starts later. Arguments:
 * spawn ROOT COUNT [HOST]: rank ROOT spawns, with HOST twice and there; both groups exchange data, and it says where
 * the spawned processes are.
 * fail PROGRAM HOST: rank 0 spawns what cannot be started there.
 * names: rank 0 publishes a port, which the others look up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 300000

static int rank, size;

static void check(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* All data of all members of both groups come to all; the root says on which hosts the spawned ones are. */
static void exchange(MPI_Comm other, int is_spawned, int says)
{
    MPI_Comm all;
    MPI_Intercomm_merge(other, is_spawned, &all);
    int me, members;
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &members);
    int *values = malloc(LENGTH * sizeof *values), *sums = malloc(LENGTH * sizeof *sums);
    for (int i = 0; i < LENGTH; i++) {
        values[i] = me + i;
    }
    MPI_Allreduce(values, sums, LENGTH, MPI_INT, MPI_SUM, all);
    for (int i = 0; i < LENGTH; i++) {
        check(sums[i] == members * (members - 1) / 2 + members * i, "a wrong sum");
    }
    int next = (me + 1) % members, before = (me + members - 1) % members;
    MPI_Sendrecv(values, LENGTH, MPI_INT, next, 7, sums, LENGTH, MPI_INT, before, 7, all, MPI_STATUS_IGNORE);
    check(sums[0] == before && sums[LENGTH - 1] == before + LENGTH - 1, "wrong data came");
    free(values);
    free(sums);

    char own[MPI_MAX_PROCESSOR_NAME] = "", *names = malloc((size_t)members * MPI_MAX_PROCESSOR_NAME);
    int length;
    MPI_Get_processor_name(own, &length);
    MPI_Allgather(own, sizeof own, MPI_CHAR, names, sizeof own, MPI_CHAR, all);
    if (says) {
        int spawned;
        MPI_Comm_remote_size(other, &spawned);
        printf("%d and %d:", members - spawned, spawned);
        for (int i = members - spawned; i < members; i++) {
            printf(" %s", names + i * MPI_MAX_PROCESSOR_NAME);
        }
        printf("\n");
    }
    free(names);
    MPI_Comm_free(&all);
}

static void spawn(const char *program, int root, int count, const char *host)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (host != NULL) {
        MPI_Info_set(info, "host", host);
    }
    MPI_Comm children;
    MPI_Comm_spawn(program, MPI_ARGV_NULL, count, info, root, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    exchange(children, 0, rank == root);
    MPI_Comm_disconnect(&children);
}

static void fail(const char *program, const char *host)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host);
    MPI_Comm children;
    char *no_arguments[] = {NULL};
    int code = MPI_Comm_spawn(program, no_arguments, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    int class, length;
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_SPAWN, "the spawn must fail with MPI_ERR_SPAWN");
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(code, text, &length);
    if (rank == 0) {
        printf("%s\n", text);
    }
    MPI_Info_free(&info);
}

static void publish(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("weather", MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Lookup_name("weather", MPI_INFO_NULL, found);
    check(strcmp(port, found) == 0, "another port was found");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Comm server;
        int length, code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
        char text[MPI_MAX_ERROR_STRING];
        MPI_Error_string(code, text, &length);
        printf("%s\n", text);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Unpublish_name("weather", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    const char *what = argc > 1 ? argv[1] : "";
    if (parent != MPI_COMM_NULL) {
        exchange(parent, 1, 0);
        MPI_Comm_disconnect(&parent);
    } else if (strcmp(what, "spawn") == 0) {
        int *universe, found;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, (void *)&universe, &found);
        check(found, "no MPI_UNIVERSE_SIZE");
        if (rank == 0) {
            printf("room for %d\n", *universe);
            fflush(stdout);
        }
        for (int time = 0; time < (argc > 4 ? 2 : 1); time++) {
            spawn(argv[0], atoi(argv[2]), atoi(argv[3]), argc > 4 ? argv[4] : NULL);
        }
    } else if (strcmp(what, "fail") == 0) {
        fail(argv[2], argv[3]);
    } else {
        publish();
    }
    MPI_Finalize();
    return 0;
}
