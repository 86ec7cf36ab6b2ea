/* The functions with counts of one type; included once for each (substitute.c), without a guard. */

static MPI_Count GIVEN(const void *array, int index)
{
    return ((const COUNT *)array)[index];
}

static MPI_Count GIVEN_PLACE(const void *array, int index)
{
    return ((const PLACE *)array)[index];
}

int PLAIN(Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[BCAST] && bcast(&code, buffer, count, type, root, comm)
               ? code
               : NEXT(Bcast)(buffer, count, type, root, comm);
}

int PLAIN(Allgather)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[ALLGATHER] && allgather(&code, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
               ? code
               : NEXT(Allgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int PLAIN(Allgatherv)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
                      const COUNT recvcounts[], const PLACE displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[ALLGATHERV] && allgatherv(&code, sendbuf, sendcount, sendtype, recvbuf, GIVEN, recvcounts,
                                               GIVEN_PLACE, displs, recvtype, comm)
               ? code
               : NEXT(Allgatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

int PLAIN(Gather)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[GATHER] && gather(&code, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
               ? code
               : NEXT(Gather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

int PLAIN(Scatter)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[SCATTER] && scatter(&code, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
               ? code
               : NEXT(Scatter)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

int PLAIN(Alltoall)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
                    MPI_Datatype recvtype, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[ALLTOALL] && alltoall(&code, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
               ? code
               : NEXT(Alltoall)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int PLAIN(Reduce)(const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                  MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[REDUCE] && reduce(&code, sendbuf, recvbuf, count, type, op, root, comm)
               ? code
               : NEXT(Reduce)(sendbuf, recvbuf, count, type, op, root, comm);
}

int PLAIN(Allreduce)(const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[ALLREDUCE] && allreduce(&code, sendbuf, recvbuf, count, type, op, comm)
               ? code
               : NEXT(Allreduce)(sendbuf, recvbuf, count, type, op, comm);
}

int PLAIN(Scan)(const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[SCAN] && scan(&code, SCAN, sendbuf, recvbuf, count, type, op, comm)
               ? code
               : NEXT(Scan)(sendbuf, recvbuf, count, type, op, comm);
}

int PLAIN(Exscan)(const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[EXSCAN] && scan(&code, EXSCAN, sendbuf, recvbuf, count, type, op, comm)
               ? code
               : NEXT(Exscan)(sendbuf, recvbuf, count, type, op, comm);
}

int PLAIN(Reduce_scatter)(const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[REDUCE_SCATTER] && reduce_scatter(&code, sendbuf, recvbuf, GIVEN, recvcounts, type, op, comm)
               ? code
               : NEXT(Reduce_scatter)(sendbuf, recvbuf, recvcounts, type, op, comm);
}

int PLAIN(Reduce_scatter_block)(const void *sendbuf, void *recvbuf, COUNT recvcount, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[REDUCE_SCATTER_BLOCK] && reduce_scatter_block(&code, sendbuf, recvbuf, recvcount, type, op, comm)
               ? code
               : NEXT(Reduce_scatter_block)(sendbuf, recvbuf, recvcount, type, op, comm);
}
