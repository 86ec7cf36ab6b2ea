#include "interface.inc"
program topologies
  use MPI_MODULE
  use checks
  implicit none
  integer :: ierr, rank, size, dims(2), coords(2), source, dest, number, indegree, outdegree
  integer :: neighbours(4), sources(2), dests(2), weights(2), more_weights(2)
  logical :: periods(2), reorder, weighted
  HANDLE(MPI_Comm) :: cart, line, graph
  HANDLE(MPI_Datatype) :: types(4)
  integer(kind=MPI_ADDRESS_KIND) :: places(4)
  integer :: i, got(4)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  dims = 0
  call MPI_Dims_create(size, 2, dims, ierr)
  call check(product(dims) == size, "MPI_Dims_create")
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., cart, ierr)
  call MPI_Topo_test(cart, number, ierr)
  call check(number == MPI_CART, "MPI_Topo_test")
  periods = .false.
  call MPI_Cart_get(cart, 2, dims, periods, coords, ierr)
  call check(periods(1) .and. .not. periods(2), "MPI_Cart_get")
  call MPI_Cart_rank(cart, coords, number, ierr)
  call check(number == rank, "MPI_Cart_rank")
  call MPI_Cart_shift(cart, 1, 1, source, dest, ierr)
  call check(coords(2) /= dims(2) - 1 .or. dest == MPI_PROC_NULL, "MPI_Cart_shift")
  call MPI_Cart_sub(cart, [.true., .false.], line, ierr)
  call MPI_Comm_size(line, number, ierr)
  call check(number == dims(1), "MPI_Cart_sub")
  neighbours = -1
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, neighbours, 1, MPI_INTEGER, cart, ierr)
  call MPI_Cart_shift(cart, 0, 1, source, dest, ierr)
  call check(neighbours(1) == source .and. neighbours(2) == dest, "MPI_Neighbor_allgather")
  types = MPI_INTEGER
  places = [(4 * i, i = 0, 3)]
  got = -1
  call MPI_Neighbor_alltoallw([(rank, i = 1, 4)], [1, 1, 1, 1], places, types, got, [1, 1, 1, 1], places, types, cart, ierr)
  call check(all(got == neighbours), "MPI_Neighbor_alltoallw")
  call MPI_Comm_free(line, ierr)
  call MPI_Comm_free(cart, ierr)

  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + size - 1, size)], [3], 1, [mod(rank + 1, size)], [4], &
    MPI_INFO_NULL, .false., graph, ierr)
  call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
  call check(indegree == 1 .and. outdegree == 1 .and. weighted, "MPI_Dist_graph_neighbors_count")
  call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, dests, more_weights, ierr)
  call check(dests(1) == mod(rank + 1, size) .and. weights(1) == 3, "MPI_Dist_graph_neighbors")
  call MPI_Comm_free(graph, ierr)
  reorder = .false.
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [mod(rank + 1, size)], MPI_UNWEIGHTED, MPI_INFO_NULL, &
    reorder, graph, ierr)
  call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
  call check(.not. weighted, "MPI_UNWEIGHTED")
  call MPI_Comm_free(graph, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
