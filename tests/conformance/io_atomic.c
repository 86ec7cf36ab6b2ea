/* Atomic mode: of writes that overlap, each is wholly visible or not at all (MPI-5 section 14.6.1). */
#include "io.h"

enum { N = 30000, ROUNDS = 30 };

static void the_mode(void)
{
    int flag = -1;
    MPI_File file = io_new("mode");
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_INT(flag, 1);
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_File_close(&file));
}

/* Whether all elements are what one rank has written at once; the first that is not. */
static int uniform(const int *numbers, int n)
{
    for (int i = 1; i < n; i++)
        if (numbers[i] != numbers[0])
            return 0;
    return 1;
}

/* Every rank writes the same places and reads them while the others write. */
static void overlapping(const char *name, MPI_Datatype filetype, int collective)
{
    static int out[N], in[N];
    MPI_Status status;
    int torn = 0;
    MPI_File file = io_new(name);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_set_view(file, 4, MPI_INT, filetype, "native", MPI_INFO_NULL));
    memset(out, 0, sizeof out);
    OK(MPI_File_write_at_all(file, 0, out, N, MPI_INT, NO_STATUS));
    OK(MPI_Barrier(WORLD));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            out[i] = round * 1000 + lt_rank;
        if (collective)
            OK(MPI_File_write_at_all(file, 0, out, N, MPI_INT, &status));
        else
            OK(MPI_File_write_at(file, 0, out, N, MPI_INT, &status));
        CHECK_COUNT(&status, MPI_INT, N);
        OK(MPI_File_read_at(file, 0, in, N, MPI_INT, &status));
        CHECK_COUNT(&status, MPI_INT, N);
        torn += !uniform(in, N);
        /* What is seen is a value that a rank has written, not older than one's own. */
        CHECK(in[0] % 1000 < lt_size && in[0] / 1000 < ROUNDS);
    }
    CHECK_INT(torn, 0);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_read_at(file, 0, in, N, MPI_INT, &status));
    CHECK(uniform(in, N));
    CHECK_INT(in[0] / 1000, ROUNDS - 1);
    OK(MPI_File_close(&file));
}

static void contiguous(void)
{
    overlapping("contiguous", MPI_INT, 0);
}

static void contiguous_collective(void)
{
    overlapping("contiguous-all", MPI_INT, 1);
}

static MPI_Datatype holes(void)
{
    MPI_Datatype pieces, type;
    int lengths[] = {3, 1, 7}, places[] = {0, 5, 9};
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &pieces));
    OK(MPI_Type_create_resized(pieces, 0, 80, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&pieces));
    return type;
}

static void in_pieces(void)
{
    MPI_Datatype type = holes();
    overlapping("pieces", type, 0);
    OK(MPI_Type_free(&type));
}

static void in_pieces_collective(void)
{
    MPI_Datatype type = holes();
    overlapping("pieces-all", type, 1);
    OK(MPI_Type_free(&type));
}

/* Memory in pieces too, and non-blocking. */
static void nonblocking(void)
{
    static int out[2 * N], in[N];
    MPI_Datatype gaps;
    MPI_Request request;
    int torn = 0;
    MPI_File file = io_new("nonblocking");
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &gaps));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at_all(file, 0, in, 4 * N, MPI_BYTE, NO_STATUS));
    OK(MPI_Barrier(WORLD));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2 * N; i++)
            out[i] = i % 2 ? -1 : round * 1000 + lt_rank;
        OK(MPI_File_iwrite_at(file, 0, out, N, gaps, &request));
        OK(MPI_Wait(&request, NO_STATUS));
        OK(MPI_File_iread_at(file, 0, in, N, MPI_INT, &request));
        OK(MPI_Wait(&request, NO_STATUS));
        torn += !uniform(in, N);
    }
    CHECK_INT(torn, 0);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&gaps));
}

/* In atomic mode a write is visible once its call has returned: no sync is needed. */
static void visible_without_sync(void)
{
    MPI_File file = io_new("visible");
    OK(MPI_File_set_atomicity(file, 1));
    for (int round = 0; round < 20; round++) {
        int in = -1;
        if (lt_rank == round % lt_size)
            OK(MPI_File_write_at(file, 0, &round, 1, MPI_INT, NO_STATUS));
        OK(MPI_Barrier(WORLD));
        OK(MPI_File_read_at(file, 0, &in, 1, MPI_INT, NO_STATUS));
        CHECK_INT(in, round);
        OK(MPI_Barrier(WORLD));
    }
    OK(MPI_File_close(&file));
}

IO_MAIN("io_atomic", TEST(the_mode), TEST(contiguous), TEST(contiguous_collective), TEST(in_pieces),
        TEST(in_pieces_collective), TEST(nonblocking), TEST(visible_without_sync))
