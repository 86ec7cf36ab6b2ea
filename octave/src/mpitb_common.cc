// Checks of arguments, and what communicators say: the same for Octave and for MEX files. Which mpitb.h this is
// compiled with is said by -I.

#include <mpitb.h>

namespace limosa
{
namespace mpitb
{
// --- checks

void Call::check_length(int i, const char *param, MPI_Count has, MPI_Count needs) const
{
    if (has != needs)
        fail("limosa:size",
             place(i, param) + " has " + std::to_string(has) + " elements and must have " + std::to_string(needs));
}

void Call::check_fits(const Buffer &buffer, MPI_Count count) const
{
    if (count > buffer.count)
        fail("limosa:size", std::string(buffer.param) + " has " + std::to_string(buffer.count / buffer.unit) +
                                " elements and needs " + std::to_string(count / buffer.unit));
}

void Call::check_same_class(const Buffer &a, const Buffer &b) const
{
    if (!a.same_class(b))
        fail("limosa:class", std::string(a.param) + " and " + b.param + " are of different classes");
}

void Call::check_one(const Buffer &buffer) const
{
    if (buffer.count != 1)
        fail("limosa:size", std::string(buffer.param) + " must be one real element");
}

MPI_Count Call::share(const Buffer &buffer, MPI_Count blocks) const
{
    const MPI_Count elements = buffer.count / buffer.unit;
    if (blocks > 0 && elements % blocks != 0)
        fail("limosa:size", std::string(buffer.param) + " has " + std::to_string(elements) +
                                " elements, which do not divide into " + std::to_string(blocks) + " equal blocks");
    return blocks > 0 ? elements / blocks * buffer.unit : 0;
}

// --- what the communicator says

int Call::local_group_size(MPI_Comm comm) const
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

int Call::group_size(MPI_Comm comm) const
{
    int inter = 0, size = 0;
    MPI_Comm_test_inter(comm, &inter);
    if (!inter)
        return local_group_size(comm);
    MPI_Comm_remote_size(comm, &size);
    return size;
}

int Call::local_rank(MPI_Comm comm) const
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

bool Call::is_root(int root, MPI_Comm comm) const
{
    int inter = 0;
    MPI_Comm_test_inter(comm, &inter);
    return inter ? root == MPI_ROOT : root == local_rank(comm);
}

namespace
{
// Sources and destinations of the calling process in the topology of the communicator.
std::pair<int, int> degrees(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0, rank = 0;
    MPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        MPI_Cartdim_get(comm, &in);
        return {2 * in, 2 * in};
    }
    if (kind == MPI_GRAPH) {
        MPI_Comm_rank(comm, &rank);
        MPI_Graph_neighbors_count(comm, rank, &in);
        return {in, in};
    }
    if (kind == MPI_DIST_GRAPH)
        MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    return {in, out};
}
} // namespace

int Call::indegree(MPI_Comm comm) const
{
    return degrees(comm).first;
}
int Call::outdegree(MPI_Comm comm) const
{
    return degrees(comm).second;
}

int Call::cart_dims(MPI_Comm comm) const
{
    int n = 0;
    return MPI_Cartdim_get(comm, &n) == MPI_SUCCESS ? n : 0;
}

int Call::graph_nodes(MPI_Comm comm) const
{
    int nodes = 0, edges = 0;
    return MPI_Graphdims_get(comm, &nodes, &edges) == MPI_SUCCESS ? nodes : 0;
}

int Call::graph_edges(MPI_Comm comm) const
{
    int nodes = 0, edges = 0;
    return MPI_Graphdims_get(comm, &nodes, &edges) == MPI_SUCCESS ? edges : 0;
}

int Call::graph_neighbors(MPI_Comm comm, int rank) const
{
    int n = 0;
    return MPI_Graph_neighbors_count(comm, rank, &n) == MPI_SUCCESS ? n : 0;
}

int Call::category_size(int category, int which) const
{
    int name_length = 0, text_length = 0;
    int sizes[3] = {0, 0, 0};
    MPI_T_category_get_info(category, nullptr, &name_length, nullptr, &text_length, &sizes[0], &sizes[1], &sizes[2]);
    return sizes[which];
}

int Call::category_events(int category) const
{
    int n = 0;
    return MPI_T_category_get_num_events(category, &n) == MPI_SUCCESS ? n : 0;
}
} // namespace mpitb
} // namespace limosa
