/* Processes that a job over several hosts starts later. Arguments:
 * spawn ROOT COUNT [HOST]: rank ROOT spawns, with HOST twice and there; both groups exchange data, and it says where
 * the spawned processes are.
 * again ROUNDS: rank 0 spawns two processes so many times; all exchange a little with all.
 * leave HOST: rank 0 spawns two processes there, which end at once, and sends to the last one until it is told so.
 * miss HOST: the same, but it receives from the last one.
 * fail PROGRAM HOST: rank 0 spawns what cannot be started there.
 * names: the first and the last rank each publish a port, which the other one looks up and connects to. */
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

/* A first message from each to each, at the same time. */
static void greet(MPI_Comm other, int is_spawned)
{
    MPI_Comm all;
    MPI_Intercomm_merge(other, is_spawned, &all);
    int me, members;
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &members);
    int *out = malloc((size_t)members * sizeof *out), *in = malloc((size_t)members * sizeof *in);
    MPI_Request *requests = malloc(2 * (size_t)members * sizeof(MPI_Request));
    for (int peer = 0; peer < members; peer++) {
        out[peer] = 100 * me + peer;
        MPI_Irecv(in + peer, 1, MPI_INT, peer, 3, all, requests + peer);
    }
    for (int peer = 0; peer < members; peer++) {
        MPI_Isend(out + peer, 1, MPI_INT, peer, 3, all, requests + members + peer);
    }
    MPI_Waitall(2 * members, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < members; peer++) {
        check(in[peer] == 100 * peer + me, "a wrong greeting");
    }
    free(requests);
    free(in);
    free(out);
    MPI_Comm_free(&all);
}

static void spawn_again(char *program, int rounds)
{
    char *arguments[] = {"again", NULL};
    for (int round = 0; round < rounds; round++) {
        MPI_Comm children;
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        greet(children, 0);
        MPI_Comm_disconnect(&children);
    }
    if (rank == 0) {
        printf("%d times\n", rounds);
    }
}

/* Spawns processes that exchange nothing with this one, and sends to the last one for as long as that works, or
 * receives from it. */
static void outlive(char *program, char *host, int sends)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host);
    MPI_Comm children;
    char *arguments[] = {"leave", NULL};
    MPI_Comm_spawn(program, arguments, 2, info, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN);
    int code = MPI_SUCCESS, length;
    if (!sends) {
        code = MPI_Recv(&code, 1, MPI_INT, 1, 3, children, MPI_STATUS_IGNORE);
    }
    while (code == MPI_SUCCESS) {
        code = MPI_Send(&rank, 1, MPI_INT, 1, 3, children);
    }
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(code, text, &length);
    printf("%s\n", text);
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

/* Rank `server` publishes a port and accepts; rank `client` looks it up and connects. Afterwards the port is closed. */
static void meet(int server, int client)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    if (rank == server) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("weather", MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, server, MPI_COMM_WORLD);
    MPI_Lookup_name("weather", MPI_INFO_NULL, found);
    check(strcmp(port, found) == 0, "another port was found");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm other = MPI_COMM_NULL;
    if (rank == server) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    } else if (rank == client) {
        MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    }
    if (other != MPI_COMM_NULL) {
        int got = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 5, &got, 1, MPI_INT, 0, 5, other, MPI_STATUS_IGNORE);
        check(got == (rank == server ? client : server), "the partner is not the expected one");
        MPI_Comm_disconnect(&other);
    }
    if (rank == server) {
        MPI_Unpublish_name("weather", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == client) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        int length, class, code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        MPI_Error_class(code, &class);
        check(class == MPI_ERR_PORT, "a closed port cannot be connected to");
        char text[MPI_MAX_ERROR_STRING];
        MPI_Error_string(code, text, &length);
        printf("%d met %d; then: %s\n", client, server, text);
    }
    MPI_Barrier(MPI_COMM_WORLD);
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
        if (strcmp(what, "again") == 0) {
            greet(parent, 1);
        } else if (strcmp(what, "leave") == 0) {
            return MPI_Finalize();
        } else {
            exchange(parent, 1, 0);
        }
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
    } else if (strcmp(what, "again") == 0) {
        spawn_again(argv[0], atoi(argv[2]));
    } else if (strcmp(what, "leave") == 0 || strcmp(what, "miss") == 0) {
        if (rank == 0) {
            outlive(argv[0], argv[2], what[0] == 'l');
        }
    } else if (strcmp(what, "fail") == 0) {
        fail(argv[2], argv[3]);
    } else {
        meet(0, size - 1);
        meet(size - 1, 0);
    }
    MPI_Finalize();
    return 0;
}
