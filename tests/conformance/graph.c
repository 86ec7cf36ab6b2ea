/* Graph and distributed graph topologies: MPI-5 sections 8.5.3 to 8.5.5 and 8.5.7, and reordering over hosts. */
#include "limosa_test.h"

/* The ring 0 - 1 - ... - 0 over n processes as MPI_Graph_create takes it. */
static void ring(int n, int *index, int *edges)
{
    for (int i = 0; i < n; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + n - 1) % n;
        edges[2 * i + 1] = (i + 1) % n;
    }
}

static void graphs_are_what_was_asked_for(void)
{
    int *index = malloc(sizeof(int) * lt_size), *edges = malloc(2 * sizeof(int) * lt_size);
    ring(lt_size, index, edges);
    MPI_Comm comm, copy;
    OK(MPI_Graph_create(MPI_COMM_WORLD, lt_size, index, edges, 0, &comm));
    OK(MPI_Comm_dup(comm, &copy));
    MPI_Comm both[] = {comm, copy};
    for (int c = 0; c < 2; c++) {
        int kind, nodes, n, rank;
        OK(MPI_Topo_test(both[c], &kind));
        CHECK_INT(kind, MPI_GRAPH);
        OK(MPI_Comm_rank(both[c], &rank));
        CHECK_INT(rank, lt_rank);
        OK(MPI_Graphdims_get(both[c], &nodes, &n));
        CHECK_INT(nodes, lt_size);
        CHECK_INT(n, 2 * lt_size);
        int *got_index = malloc(sizeof(int) * nodes), *got_edges = malloc(sizeof(int) * n);
        OK(MPI_Graph_get(both[c], nodes, n, got_index, got_edges));
        CHECK(memcmp(got_index, index, sizeof(int) * nodes) == 0);
        CHECK(memcmp(got_edges, edges, sizeof(int) * n) == 0);
        for (int r = 0; r < lt_size; r++) {
            int neighbours[2] = {-1, -1};
            OK(MPI_Graph_neighbors_count(both[c], r, &n));
            CHECK_INT(n, 2);
            OK(MPI_Graph_neighbors(both[c], r, 2, neighbours));
            CHECK_INT(neighbours[0], (r + lt_size - 1) % lt_size);
            CHECK_INT(neighbours[1], (r + 1) % lt_size);
        }
        FAILS(MPI_ERR_RANK, MPI_Graph_neighbors_count(both[c], lt_size, &n));
        FAILS(MPI_ERR_RANK, MPI_Graph_neighbors_count(both[c], -1, &n));
        FAILS(MPI_ERR_ARG, MPI_Graph_neighbors(both[c], 0, 1, got_edges));
        FAILS(MPI_ERR_ARG, MPI_Graph_get(both[c], nodes - 1, 2 * nodes, got_index, got_edges));
        FAILS(MPI_ERR_ARG, MPI_Graph_get(both[c], nodes, 2 * nodes - 1, got_index, got_edges));
        FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(both[c], &n));
        FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(both[c], &n, &n, &n));
        free(got_index);
        free(got_edges);
    }
    int n;
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(MPI_COMM_WORLD, &n, &n));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&copy));

    /* A part of the processes, and none of them. */
    int half = lt_size / 2;
    if (half > 0) {
        ring(half, index, edges);
        OK(MPI_Graph_create(MPI_COMM_WORLD, half, index, edges, 0, &comm));
        CHECK((comm != MPI_COMM_NULL) == (lt_rank < half));
        int place;
        OK(MPI_Graph_map(MPI_COMM_WORLD, half, index, edges, &place));
        CHECK((place != MPI_UNDEFINED) == (lt_rank < half));
        if (comm != MPI_COMM_NULL)
            OK(MPI_Comm_free(&comm));
    }
    comm = MPI_COMM_WORLD;
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 1, &comm));
    CHECK(comm == MPI_COMM_NULL);
    free(index);
    free(edges);
}

static void wrong_graphs_are_refused(void)
{
    MPI_Comm comm;
    int place, descending[] = {2, 1}, edges[] = {0, 0, 0}, one[] = {1}, outside[] = {1}, negative[] = {-1};
    int many[64] = {0};
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, -1, one, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, negative, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 2, descending, edges, 0, &comm));
    FAILS(MPI_ERR_RANK, MPI_Graph_create(MPI_COMM_WORLD, 1, one, outside, 0, &comm));
    FAILS(MPI_ERR_RANK, MPI_Graph_create(MPI_COMM_WORLD, 1, one, negative, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, lt_size + 1, many, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, NULL, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_map(MPI_COMM_WORLD, lt_size + 1, many, edges, &place));

    /* A rank that is wrong takes part, so that the others do not wait: it gets the error, they get a communicator. */
    int wrong = lt_rank == lt_size - 1, source = wrong ? lt_size : lt_rank, degree = 1, destination = 0, weight = -1;
    if (wrong) {
        FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, &destination, MPI_UNWEIGHTED,
                                                  MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &destination, &degree, &destination, &weight,
                                                 MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &destination, &weight, &destination, MPI_UNWEIGHTED,
                                                 MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &destination, &degree, &destination,
                                                 MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_RANK, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &source, MPI_UNWEIGHTED, 0, NULL,
                                                           MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, &source, MPI_UNWEIGHTED, 0, NULL,
                                                          MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &comm));
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &destination, MPI_UNWEIGHTED, 1,
                                                          &destination, &degree, MPI_INFO_NULL, 1, &comm));
        return;
    }
    for (int i = 0; i < 7; i++) {
        if (i < 4)
            OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, &destination, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                     1, &comm));
        else
            OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 1, &comm));
        OK(MPI_Comm_free(&comm));
    }
}

static void neighbours_of_a_distributed_graph_are_those_listed(void)
{
    /* Every process lists, for its successor, an edge to the successor's successor, and two loops. */
    int successor = (lt_rank + 1) % lt_size, predecessor = (lt_rank + lt_size - 1) % lt_size;
    int destinations[] = {(lt_rank + 2) % lt_size, successor, successor}, degree = 3;
    int weights[] = {10 + lt_rank, 7, 8};
    for (int weighted = 0; weighted < 2; weighted++) {
        MPI_Comm comm, copy;
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &successor, &degree, destinations,
                                 weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
        OK(MPI_Comm_dup(comm, &copy));
        MPI_Comm both[] = {comm, copy};
        for (int c = 0; c < 2; c++) {
            int kind, in, out, has_weights;
            OK(MPI_Topo_test(both[c], &kind));
            CHECK_INT(kind, MPI_DIST_GRAPH);
            OK(MPI_Dist_graph_neighbors_count(both[c], &in, &out, &has_weights));
            CHECK_INT(in, 3);
            CHECK_INT(out, 3);
            CHECK_INT(!!has_weights, weighted);
            int from[3], to[3], from_weights[3] = {-1, -1, -1}, to_weights[3] = {-1, -1, -1};
            OK(MPI_Dist_graph_neighbors(both[c], 3, from, from_weights, 3, to, to_weights));
            int loops = 0, sum = 0;
            for (int i = 0; i < 3; i++) {
                CHECK(from[i] == predecessor || from[i] == lt_rank);
                CHECK(to[i] == successor || to[i] == lt_rank);
                loops += from_weights[i] == 7 || from_weights[i] == 8;
                sum += from_weights[i] + to_weights[i];
            }
            if (weighted) {
                /* My own edge was listed by my predecessor, the one that comes to me by its predecessor. */
                CHECK_INT(loops, 2);
                CHECK_INT(sum, 10 + predecessor + 15 + 10 + (predecessor + lt_size - 1) % lt_size + 15);
            } else {
                CHECK_INT(sum, -6);
            }
            /* With less room the first ones come; weights are not wanted. */
            int first[] = {-1, -1};
            OK(MPI_Dist_graph_neighbors(both[c], 1, first, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
            CHECK_INT(first[0], from[0]);
            CHECK_INT(first[1], -1);
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_free(&copy));
    }
}

static void adjacent_lists_keep_their_order(void)
{
    int a = (lt_rank + 1) % lt_size, b = (lt_rank + lt_size - 1) % lt_size;
    int from[] = {b, lt_rank, a, b}, to[] = {a, b, lt_rank, a}, in_weights[] = {1, 2, 3, 4},
        out_weights[] = {4, 3, 2, 1};
    MPI_Comm comm;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, from, in_weights, 4, to, out_weights, info, 0, &comm));
    int got_from[4], got_to[4], got_in[4], got_out[4];
    OK(MPI_Dist_graph_neighbors(comm, 4, got_from, got_in, 4, got_to, got_out));
    CHECK(memcmp(from, got_from, sizeof from) == 0 && memcmp(in_weights, got_in, sizeof got_in) == 0);
    CHECK(memcmp(to, got_to, sizeof to) == 0 && memcmp(out_weights, got_out, sizeof got_out) == 0);
    MPI_Info used;
    char value[8] = "";
    int flag, room = sizeof value;
    OK(MPI_Comm_get_info(comm, &used));
    OK(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &room, value, &flag));
    CHECK(flag && strcmp(value, "true") == 0);
    MPI_Errhandler errhandler;
    OK(MPI_Comm_get_errhandler(comm, &errhandler));
    CHECK(errhandler == MPI_ERRORS_RETURN);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comm));

    int in, out, weighted;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                      MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted);
    OK(MPI_Dist_graph_neighbors(comm, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY));
    OK(MPI_Comm_free(&comm));
}

/* Number of pairs (rank, next rank in the ring) on different hosts. */
static int hops(MPI_Comm comm)
{
    int size, world, sum = 0;
    MPI_Comm_size(comm, &size);
    int *worlds = malloc(sizeof(int) * size);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    OK(MPI_Allgather(&world, 1, MPI_INT, worlds, 1, MPI_INT, comm));
    for (int i = 0; i < size; i++)
        sum += lt_host(worlds[i]) != lt_host(worlds[(i + 1) % size]);
    free(worlds);
    return sum;
}

/* Ranks in an order that changes hosts at every step, in a ring: reordered, the ring leaves each host once only. */
static void reordering_brings_neighbours_to_one_host(void)
{
    int half = (lt_size + 1) / 2, hosts = 1;
    for (int r = 1; r < lt_size; r++)
        hosts += lt_host(r) != lt_host(r - 1);
    int fewest = hosts == 1 ? 0 : hosts;
    MPI_Comm mixed, comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, lt_rank < half ? 2 * lt_rank : 2 * (lt_rank - half) + 1, &mixed));
    int *index = malloc(sizeof(int) * lt_size), *edges = malloc(2 * sizeof(int) * lt_size), periodic = 1, rank, got;
    ring(lt_size, index, edges);
    OK(MPI_Comm_rank(mixed, &rank));

    OK(MPI_Cart_create(mixed, 1, &lt_size, &periodic, 1, &comm));
    CHECK_INT(hops(comm), fewest);
    int mapped;
    OK(MPI_Cart_map(mixed, 1, &lt_size, &periodic, &mapped));
    OK(MPI_Comm_rank(comm, &got));
    CHECK_INT(mapped, got);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Cart_create(mixed, 1, &lt_size, &periodic, 0, &comm));
    OK(MPI_Comm_rank(comm, &got));
    CHECK_INT(got, rank);
    OK(MPI_Comm_free(&comm));

    OK(MPI_Graph_create(mixed, lt_size, index, edges, 1, &comm));
    CHECK_INT(hops(comm), fewest);
    OK(MPI_Graph_map(mixed, lt_size, index, edges, &mapped));
    OK(MPI_Comm_rank(comm, &got));
    CHECK_INT(mapped, got);
    OK(MPI_Comm_free(&comm));

    for (int adjacent = 0; adjacent < 2; adjacent++) {
        int next = (rank + 1) % lt_size, previous = (rank + lt_size - 1) % lt_size, degree = 1, weight = 100 + rank;
        if (adjacent) {
            int from_weight = 100 + previous;
            OK(MPI_Dist_graph_create_adjacent(mixed, 1, &previous, &from_weight, 1, &next, &weight, MPI_INFO_NULL, 1,
                                              &comm));
        } else {
            OK(MPI_Dist_graph_create(mixed, 1, &rank, &degree, &next, &weight, MPI_INFO_NULL, 1, &comm));
        }
        CHECK_INT(hops(comm), fewest);
        /* The process that has a rank now has the edges that the node of that rank was given. */
        int from, to, from_weight, to_weight;
        OK(MPI_Comm_rank(comm, &got));
        OK(MPI_Dist_graph_neighbors(comm, 1, &from, &from_weight, 1, &to, &to_weight));
        CHECK_INT(to, (got + 1) % lt_size);
        CHECK_INT(from, (got + lt_size - 1) % lt_size);
        CHECK_INT(to_weight, 100 + got);
        CHECK_INT(from_weight, 100 + from);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_free(&mixed));
    free(index);
    free(edges);
}

LT_MAIN("graph", TEST(graphs_are_what_was_asked_for), TEST(wrong_graphs_are_refused),
        TEST(neighbours_of_a_distributed_graph_are_those_listed), TEST(adjacent_lists_keep_their_order),
        TEST(reordering_brings_neighbours_to_one_host))
