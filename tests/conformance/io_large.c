/* Positions beyond 4 GiB, more than 2^31 elements, and the forms with large counts: in sparse files, which take little
 * room (MPI-5 chapter 14). */
#include "io.h"

#include <sys/mman.h>

static const MPI_Offset GIB = (MPI_Offset)1 << 30;
enum { N = 1000 };
static int out[N], in[N];

static void numbers(void)
{
    for (int i = 0; i < N; i++)
        out[i] = lt_rank * 10000 + i;
    memset(in, 0, sizeof in);
}

static void far_positions(void)
{
    MPI_Offset at = -1, mine = 9 * GIB + 3 + (MPI_Offset)sizeof out * lt_rank;
    MPI_Status status;
    MPI_File file = io_new("far");
    numbers();
    OK(MPI_File_write_at_all(file, mine, out, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_get_size(file, &at));
    OK(MPI_File_read_at(file, mine, in, N, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_seek(file, mine + 40, MPI_SEEK_SET));
    OK(MPI_File_read(file, in, 10, MPI_INT, &status));
    CHECK_BYTES(in, out + 10, 40);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, mine + 80);
    OK(MPI_File_seek(file, -6 * GIB, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, mine + 80 - 6 * GIB);
    OK(MPI_File_read(file, in, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_INT(in[N - 1], 0);
    OK(MPI_File_seek_shared(file, 9 * GIB + 3, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, in, N, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK(at > 9 * GIB);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_set_size(file, 20 * GIB + 1));
    OK(MPI_File_get_size(file, &at));
    CHECK_INT(at, 20 * GIB + 1);
    OK(MPI_File_close(&file));
    CHECK_INT(io_size(io_path("far")), 20 * GIB + 1);
}

/* The displacement is beyond 4 GiB, the element's number beyond 2^32, and a tile is longer than 4 GiB. */
static void far_views(void)
{
    MPI_Datatype wide;
    MPI_Offset at = -1;
    MPI_Status status;
    MPI_File file = io_new("views");
    numbers();
    OK(MPI_File_set_view(file, 5 * GIB + 1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Offset k = 3 * GIB + (MPI_Offset)N * lt_rank;
    OK(MPI_File_get_byte_offset(file, k, &at));
    CHECK_INT(at, 5 * GIB + 1 + 4 * k);
    OK(MPI_File_write_at(file, k, out, N, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, k, in, N, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_seek(file, k, MPI_SEEK_SET));
    OK(MPI_File_read(file, in, 5, MPI_INT, &status));
    CHECK_BYTES(in, out, 20);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, k + 5);
    OK(MPI_Barrier(WORLD));
    OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(5 * GIB), &wide));
    OK(MPI_Type_commit(&wide));
    OK(MPI_File_set_view(file, 4 * lt_rank, MPI_INT, wide, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, 4, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 4);
    OK(MPI_File_get_byte_offset(file, 3, &at));
    CHECK_INT(at, 15 * GIB + 4 * lt_rank);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    memset(in, 0, sizeof in);
    for (int i = 0; i < 4; i++)
        OK(MPI_File_read_at(file, 5 * i * GIB + 4 * lt_rank, &in[i], 1, MPI_INT, &status));
    CHECK_BYTES(in, out, 16);
    OK(MPI_Type_free(&wide));
    OK(MPI_File_close(&file));
}

#ifndef OPEN_MPI
/* Every form with a count of type MPI_Count. */
static void large_forms(void)
{
    MPI_Count n = N;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset mine = 4 * (MPI_Offset)N * lt_rank;
    MPI_File file = io_new("forms");
    numbers();
    OK(MPI_File_write_at_c(file, mine, out, n, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_read_at_c(file, mine, in, n, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof in);
    OK(MPI_File_write_at_all_c(file, mine, out, n, MPI_INT, &status));
    OK(MPI_File_read_at_all_c(file, mine, in, n, MPI_INT, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_write_c(file, out, n, MPI_INT, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_read_c(file, in, n, MPI_INT, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_write_all_c(file, out, n, MPI_INT, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_read_all_c(file, in, n, MPI_INT, &status));
    OK(MPI_File_iwrite_at_c(file, mine, out, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iread_at_c(file, mine, in, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iwrite_at_all_c(file, mine, out, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iread_at_all_c(file, mine, in, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_write_at_all_begin_c(file, mine, out, n, MPI_INT));
    OK(MPI_File_write_at_all_end(file, out, &status));
    memset(in, 0, sizeof in);
    OK(MPI_File_read_at_all_begin_c(file, mine, in, n, MPI_INT));
    OK(MPI_File_read_at_all_end(file, in, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_BYTES(in, out, sizeof in);
    OK(MPI_File_close(&file));
}

static void large_forms_of_pointers(void)
{
    MPI_Count n = N, extent = -1;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset mine = 4 * (MPI_Offset)N * lt_rank;
    MPI_File file = io_new("pointers");
    numbers();
    OK(MPI_File_write_ordered_c(file, out, n, MPI_INT, &status));
    OK(MPI_File_write_ordered_begin_c(file, out, n, MPI_INT));
    OK(MPI_File_write_ordered_end(file, out, &status));
    io_settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_c(file, in, n, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof in);
    memset(in, 0, sizeof in);
    OK(MPI_File_read_ordered_begin_c(file, in, n, MPI_INT));
    OK(MPI_File_read_ordered_end(file, in, &status));
    CHECK_BYTES(in, out, sizeof in);
    OK(MPI_File_write_shared_c(file, out, n, MPI_INT, &status));
    OK(MPI_File_iwrite_shared_c(file, out, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    io_settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_shared_c(file, in, n, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_iread_shared_c(file, in, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_iread_c(file, in, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_BYTES(in, out, sizeof in);
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_iwrite_c(file, out, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_iwrite_all_c(file, out, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_iread_all_c(file, in, n, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_write_all_begin_c(file, out, n, MPI_INT));
    OK(MPI_File_write_all_end(file, out, &status));
    OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin_c(file, in, n, MPI_INT));
    OK(MPI_File_read_all_end(file, in, &status));
    CHECK_BYTES(in, out, sizeof in);
    OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent));
    CHECK_INT(extent, 8);
    OK(MPI_File_close(&file));
}

/* A count beyond 2^31 of bytes of which few are in the file: the read is short, and says how much it was. */
static void counts_beyond_31_bits(void)
{
    MPI_Count n = 5 * GIB, got = -1;
    MPI_Status status;
    size_t bytes = (size_t)n;
    int *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    for (int i = 0; i < N; i++)
        room[i] = 77 + i;
    MPI_File file = io_new("counts");
    if (lt_rank == 0)
        OK(MPI_File_write_at_c(file, 12 << 20, room, N, MPI_INT, &status));
    io_settle(file);
    memset(room, 0, sizeof(int) * N);
    OK(MPI_File_read_at_c(file, (12 << 20) - 4, room, n, MPI_BYTE, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &got));
    CHECK_INT(got, 4 * (N + 1));
    CHECK_INT(room[0], 0);
    CHECK_INT(room[N], 77 + N - 1);
    OK(MPI_File_read_at_all_c(file, (12 << 20) + 4, room, n / 4, MPI_INT, &status));
    OK(MPI_Get_count_c(&status, MPI_INT, &got));
    CHECK_INT(got, N - 1);
    OK(MPI_File_close(&file));
    munmap(room, bytes);
}
#endif

IO_MAIN("io_large", TEST(far_positions), TEST(far_views),
#ifndef OPEN_MPI
        TEST(large_forms), TEST(large_forms_of_pointers), TEST(counts_beyond_31_bits)
#endif
)
