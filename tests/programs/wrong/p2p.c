/* Wrong programs: messages between two ranks (MPI-5 chapter 3). */
#include "cases.h"

#include <limits.h>

#define WORLD MPI_COMM_WORLD

static int x[1024], y[1024];

static void destination_beyond_the_end(void)
{
    MPI_Send(x, 1, MPI_INT, size, 0, WORLD);
}

static void destination_negative(void)
{
    MPI_Send(x, 1, MPI_INT, -7, 0, WORLD);
}

static void destination_any_source(void)
{
    MPI_Send(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, WORLD);
}

static void source_beyond_the_end(void)
{
    MPI_Recv(x, 1, MPI_INT, size, 0, WORLD, ANY);
}

static void rank_of_world_in_half(void)
{
    /* The classic: the rank in MPI_COMM_WORLD is used in a part of it. */
    MPI_Comm half;
    MPI_Comm_split(WORLD, rank / 2, rank, &half);
    if (rank == 2)
        MPI_Send(x, 1, MPI_INT, 3, 0, half);
    if (rank == 3)
        MPI_Recv(x, 1, MPI_INT, 2, 0, half, ANY);
    MPI_Comm_free(&half);
}

static void tag_negative(void)
{
    MPI_Send(x, 1, MPI_INT, 1 - rank, -3, WORLD);
}

static void tag_any_in_send(void)
{
    MPI_Send(x, 1, MPI_INT, 1 - rank, MPI_ANY_TAG, WORLD);
}

static void count_negative(void)
{
    MPI_Send(x, -1, MPI_INT, 1 - rank, 0, WORLD);
}

static void count_overflowed(void)
{
    int n = 1 << 16;
    MPI_Send(x, (int)((unsigned)n * (unsigned)n * 2u - 4u), MPI_INT, 1 - rank, 0, WORLD);
}

static void buffer_null(void)
{
    MPI_Send(NULL, 4, MPI_INT, 1 - rank, 0, WORLD);
}

static void receive_into_null(void)
{
    MPI_Recv(NULL, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void communicator_null(void)
{
    MPI_Send(x, 1, MPI_INT, 0, 0, MPI_COMM_NULL);
}

static void communicator_freed(void)
{
    MPI_Comm dup, stale;
    MPI_Comm_dup(WORLD, &dup);
    stale = dup;
    MPI_Comm_free(&dup);
    MPI_Send(x, 1, MPI_INT, 1 - rank, 0, stale);
}

static void communicator_uninitialised(void)
{
    MPI_Comm comm;
    memset(&comm, 0x5a, sizeof comm);
    MPI_Send(x, 1, MPI_INT, 1 - rank, 0, comm);
}

static void datatype_as_communicator(void)
{
    MPI_Send(x, 1, MPI_INT, 1 - rank, 0, (MPI_Comm)MPI_INT);
}

static void count_and_type_exchanged(void)
{
    MPI_Send(x, (int)(size_t)MPI_INT, (MPI_Datatype)(size_t)1, 1 - rank, 0, WORLD);
}

static void type_uncommitted(void)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Send(x, 1, pair, 1 - rank, 0, WORLD);
    MPI_Type_free(&pair);
}

static void send_more_than_fits(int count)
{
    int *large = zeros(sizeof(int) * (size_t)count);
    if (rank == 0)
        MPI_Send(large, count, MPI_INT, 1, 0, WORLD);
    else
        MPI_Recv(large, count - 1, MPI_INT, 0, 0, WORLD, ANY);
    free(large);
}

static void truncated_short(void)
{
    send_more_than_fits(2);
}

static void truncated_middle(void)
{
    send_more_than_fits(1500);
}

static void truncated_large(void)
{
    send_more_than_fits(1 << 20);
}

static void truncated_irecv(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Send(x, 10, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Irecv(x, 5, MPI_INT, 0, 0, WORLD, &request);
        MPI_Wait(&request, ANY);
    }
}

static void truncated_sendrecv(void)
{
    MPI_Sendrecv(x, 8, MPI_INT, 1 - rank, 0, y, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void truncated_sendrecv_replace(void)
{
    MPI_Sendrecv_replace(x, rank == 0 ? 8 : 4, MPI_INT, 1 - rank, 0, 1 - rank, 0, WORLD, ANY);
}

static void truncated_mrecv(void)
{
    MPI_Message message;
    if (rank == 0) {
        MPI_Send(x, 10, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Mprobe(0, 0, WORLD, &message, ANY);
        MPI_Mrecv(x, 5, MPI_INT, &message, ANY);
    }
}

static void truncated_to_self(void)
{
    MPI_Request request;
    MPI_Irecv(y, 1, MPI_INT, rank, 0, WORLD, &request);
    MPI_Send(x, 2, MPI_INT, rank, 0, WORLD);
    MPI_Wait(&request, ANY);
}

static void message_received_twice(void)
{
    MPI_Message message, again;
    MPI_Send(x, 1, MPI_INT, rank, 0, WORLD);
    MPI_Mprobe(rank, 0, WORLD, &message, ANY);
    again = message;
    MPI_Mrecv(y, 1, MPI_INT, &message, ANY);
    MPI_Mrecv(y, 1, MPI_INT, &again, ANY);
}

static void message_null(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mrecv(y, 1, MPI_INT, &message, ANY);
}

static void in_place_send(void)
{
    MPI_Send(MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD);
}

static void in_place_recv(void)
{
    MPI_Recv(MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void in_place_isend(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD, &request);
    MPI_Wait(&request, ANY);
}

static void in_place_irecv(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD, &request);
    if (request != MPI_REQUEST_NULL)
        MPI_Send(x, 4, MPI_INT, 1 - rank, 0, WORLD);
    MPI_Wait(&request, ANY);
}

static void in_place_sendrecv(void)
{
    MPI_Sendrecv(x, 4, MPI_INT, 1 - rank, 0, MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void in_place_send_init(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Send_init(MPI_IN_PLACE, 4, MPI_INT, 1 - rank, 0, WORLD, &request);
    if (request != MPI_REQUEST_NULL)
        MPI_Start(&request), MPI_Wait(&request, ANY);
}

static void sendrecv_same_buffer(void)
{
    MPI_Sendrecv(x, 8, MPI_INT, 1 - rank, 0, x, 8, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void sendrecv_overlapping(void)
{
    MPI_Sendrecv(x, 8, MPI_INT, 1 - rank, 0, x + 4, 8, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void buffered_without_buffer(void)
{
    MPI_Bsend(x, 1, MPI_INT, 1 - rank, 0, WORLD);
}

static void buffered_beyond_buffer(void)
{
    static char buffer[4096];
    void *old;
    int n;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(x, 1024, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    MPI_Bsend(x, 1024, MPI_INT, rank, 0, WORLD);
    MPI_Buffer_detach(&old, &n);
}

static void buffer_attached_twice(void)
{
    static char buffer[2][4096];
    void *old;
    int n;
    MPI_Buffer_attach(buffer[0], sizeof buffer[0]);
    MPI_Buffer_attach(buffer[1], sizeof buffer[1]);
    MPI_Buffer_detach(&old, &n);
}

static void buffer_detached_without_attach(void)
{
    void *old;
    int n;
    MPI_Buffer_detach(&old, &n);
}

static void ready_without_receive(void)
{
    if (rank == 0) {
        MPI_Rsend(x, 1, MPI_INT, 1, 0, WORLD);
        MPI_Send(x, 0, MPI_INT, 1, 1, WORLD);
    } else {
        MPI_Recv(x, 0, MPI_INT, 0, 1, WORLD, ANY);
        MPI_Recv(x, 1, MPI_INT, 0, 0, WORLD, ANY);
    }
}

/* --- deadlocks ---------------------------------------------------------------------------------------------------- */

static void both_receive_first(void)
{
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 5, WORLD, ANY);
    MPI_Send(x, 1, MPI_INT, 1 - rank, 5, WORLD);
}

static void ring_of_receives(void)
{
    MPI_Recv(x, 1, MPI_INT, (rank + size - 1) % size, 5, WORLD, ANY);
    MPI_Send(x, 1, MPI_INT, (rank + 1) % size, 5, WORLD);
}

static void both_send_synchronously(void)
{
    MPI_Ssend(x, 1, MPI_INT, 1 - rank, 5, WORLD);
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 5, WORLD, ANY);
}

static void both_send_large(void)
{
    int n = 1 << 20, *out = zeros(sizeof(int) << 20);
    MPI_Send(out, n, MPI_INT, 1 - rank, 5, WORLD);
    MPI_Recv(out, n, MPI_INT, 1 - rank, 5, WORLD, ANY);
}

static void wrong_tag(void)
{
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, 1, 5, WORLD, ANY);
    else
        MPI_Send(x, 1, MPI_INT, 0, 6, WORLD);
    MPI_Barrier(WORLD);
}

static void wrong_source(void)
{
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, 2, 5, WORLD, ANY);
    if (rank == 1)
        MPI_Send(x, 1, MPI_INT, 0, 5, WORLD);
    MPI_Barrier(WORLD);
}

static void wrong_communicator(void)
{
    MPI_Comm dup;
    MPI_Comm_dup(WORLD, &dup);
    MPI_Comm_set_name(dup, "other");
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, 1, 5, dup, ANY);
    else
        MPI_Send(x, 1, MPI_INT, 0, 5, WORLD);
    MPI_Barrier(WORLD);
}

static void one_message_too_few(void)
{
    for (int i = 0; i < 3; i++) {
        if (rank == 0 && i < 2)
            MPI_Send(x, 1, MPI_INT, 1, 5, WORLD);
        if (rank == 1)
            MPI_Recv(x, 1, MPI_INT, 0, 5, WORLD, ANY);
    }
    MPI_Barrier(WORLD);
}

static void receive_from_self(void)
{
    MPI_Recv(x, 1, MPI_INT, rank, 5, WORLD, ANY);
}

static void synchronous_send_to_self(void)
{
    MPI_Ssend(x, 1, MPI_INT, rank, 5, WORLD);
}

static void receive_that_nobody_serves(void)
{
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, ANY);
}

static void probe_that_nobody_serves(void)
{
    MPI_Status status;
    if (rank == 1)
        MPI_Probe(0, 3, WORLD, &status);
    MPI_Barrier(WORLD);
}

static void iprobe_loop(void)
{
    int flag = 0;
    while (rank == 1 && !flag)
        MPI_Iprobe(0, 3, WORLD, &flag, ANY);
    MPI_Barrier(WORLD);
}

static void wildcard_takes_the_wrong_message(void)
{
    /* The answer for the second receive is taken by the first, which is not particular. */
    if (rank == 0) {
        MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, ANY);
        MPI_Recv(x, 1, MPI_INT, 1, 1, WORLD, ANY);
    } else if (rank == 1) {
        MPI_Send(x, 1, MPI_INT, 0, 1, WORLD);
    } else {
        nap(0.2);
        MPI_Recv(x, 1, MPI_INT, 0, 2, WORLD, ANY);
        MPI_Send(x, 1, MPI_INT, 0, 1, WORLD);
    }
}

static void master_forgets_a_worker(void)
{
    if (rank == 0) {
        for (int i = 1; i < size; i++)
            MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, ANY);
        for (int i = 1; i < size - 1; i++)
            MPI_Send(x, 1, MPI_INT, i, 2, WORLD);
    } else {
        MPI_Send(x, 1, MPI_INT, 0, 1, WORLD);
        MPI_Recv(x, 1, MPI_INT, 0, 2, WORLD, ANY);
    }
}

static void sender_has_exited(void)
{
    if (rank == 1)
        MPI_Recv(x, 1, MPI_INT, 0, 3, WORLD, ANY);
}

/* --- what may pass ------------------------------------------------------------------------------------------------ */

static void types_differ(void)
{
    double pi = 3.14;
    if (rank == 0)
        MPI_Send(&pi, 1, MPI_DOUBLE, 1, 0, WORLD);
    else
        MPI_Recv(x, 2, MPI_INT, 0, 0, WORLD, ANY);
}

static void floats_as_integers(void)
{
    float f = 1;
    if (rank == 0)
        MPI_Send(&f, 1, MPI_FLOAT, 1, 0, WORLD);
    else
        MPI_Recv(x, 1, MPI_INT, 0, 0, WORLD, ANY);
}

static void message_never_received(void)
{
    if (rank == 0)
        MPI_Send(x, 1, MPI_INT, 1, 77, WORLD);
}

static void large_message_never_received(void)
{
    int *out = zeros(sizeof(int) << 20);
    if (rank == 0)
        MPI_Send(out, 1 << 20, MPI_INT, 1, 77, WORLD);
    free(out);
}

static void relies_on_buffering(void)
{
    MPI_Send(x, 4, MPI_INT, 1 - rank, 0, WORLD);
    MPI_Recv(x, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void race_of_wildcards(void)
{
    if (rank == 0) {
        MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, WORLD, ANY);
        MPI_Recv(y, 1, MPI_INT, MPI_ANY_SOURCE, 0, WORLD, ANY);
    } else {
        MPI_Send(x, 1, MPI_INT, 0, 0, WORLD);
    }
}

CASES(MPI_THREAD_SINGLE, CASE(destination_beyond_the_end), CASE(destination_negative), CASE(destination_any_source),
      CASE(source_beyond_the_end), CASE(rank_of_world_in_half), CASE(tag_negative), CASE(tag_any_in_send),
      CASE(count_negative), CASE(count_overflowed), CASE(buffer_null), CASE(receive_into_null), CASE(communicator_null),
      CASE(communicator_freed), CASE(communicator_uninitialised), CASE(datatype_as_communicator),
      CASE(count_and_type_exchanged), CASE(type_uncommitted), CASE(truncated_short), CASE(truncated_middle),
      CASE(truncated_large), CASE(truncated_irecv), CASE(truncated_sendrecv), CASE(truncated_sendrecv_replace),
      CASE(truncated_mrecv), CASE(truncated_to_self), CASE(message_received_twice), CASE(message_null),
      CASE(in_place_send), CASE(in_place_recv), CASE(in_place_isend), CASE(in_place_irecv), CASE(in_place_sendrecv),
      CASE(in_place_send_init), CASE(sendrecv_same_buffer), CASE(sendrecv_overlapping), CASE(buffered_without_buffer),
      CASE(buffered_beyond_buffer), CASE(buffer_attached_twice), CASE(buffer_detached_without_attach),
      CASE(ready_without_receive), CASE(both_receive_first), CASE(ring_of_receives), CASE(both_send_synchronously),
      CASE(both_send_large), CASE(wrong_tag), CASE(wrong_source), CASE(wrong_communicator), CASE(one_message_too_few),
      CASE(receive_from_self), CASE(synchronous_send_to_self), CASE(receive_that_nobody_serves),
      CASE(probe_that_nobody_serves), CASE(iprobe_loop), CASE(wildcard_takes_the_wrong_message),
      CASE(master_forgets_a_worker), CASE(sender_has_exited), CASE(types_differ), CASE(floats_as_integers),
      CASE(message_never_received), CASE(large_message_never_received), CASE(relies_on_buffering),
      CASE(race_of_wildcards))
