/* The half of with_c.f90 that is in C: attributes that both languages see (MPI-5 section 19.3.7), handles and statuses,
 * and a function of a profiling tool. */

#include <stddef.h>

#include <mpi.h>

static int sends;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int sends_in_c(void)
{
    return sends;
}

static MPI_Comm comm_of(int comm)
{
    return MPI_Comm_f2c(comm);
}

int new_key_in_c(void)
{
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    return keyval;
}

void set_in_c(int comm, int keyval, MPI_Aint value)
{
    MPI_Comm_set_attr(comm_of(comm), keyval, (void *)value);
}

/* C sees an attribute of Fortran as the address of an address-sized integer. */
MPI_Aint get_in_c(int comm, int keyval)
{
    MPI_Aint *value;
    int flag;
    MPI_Comm_get_attr(comm_of(comm), keyval, &value, &flag);
    return flag ? *value : -1;
}

int source_in_c(const int *f_status)
{
    MPI_Status status;
    MPI_Status_f2c(f_status, &status);
    return status.MPI_SOURCE;
}
