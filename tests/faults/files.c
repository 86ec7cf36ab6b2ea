/* Ranks that write to a file until they are killed.  usage: files WAY FILE
 *
 * Each rank writes its own blocks of numbers in WAY and synchronises the file. Then it prints "rank N PID", and goes on
 * writing behind what is synchronised, for ever.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1000, BLOCKS = 60 };

static int rank, size;
static int numbers[BLOCK * BLOCKS];

static void check(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* The ranks take turns, block by block. */
static void set_view(MPI_File file)
{
    MPI_Datatype block, turns;
    MPI_Type_contiguous(BLOCK, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)sizeof(int) * BLOCK * size, &turns);
    MPI_Type_commit(&turns);
    check("set_view",
          MPI_File_set_view(file, (MPI_Offset)sizeof(int) * BLOCK * rank, MPI_INT, turns, "native", MPI_INFO_NULL));
    MPI_Type_free(&turns);
    MPI_Type_free(&block);
}

static void write_all_blocks(MPI_File file, const char *way)
{
    MPI_Request requests[BLOCKS];
    if (strcmp(way, "independent") == 0) {
        check("write", MPI_File_write(file, numbers, BLOCK * BLOCKS, MPI_INT, MPI_STATUS_IGNORE));
    } else if (strcmp(way, "collective") == 0) {
        check("write_all", MPI_File_write_all(file, numbers, BLOCK * BLOCKS, MPI_INT, MPI_STATUS_IGNORE));
    } else if (strcmp(way, "nonblocking") == 0) {
        for (int i = 0; i < BLOCKS; i++)
            check("iwrite", MPI_File_iwrite(file, numbers + i * BLOCK, BLOCK, MPI_INT, &requests[i]));
        check("waitall", MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
    } else { /* ordered: the same places, without the view */
        for (int i = 0; i < BLOCKS; i++)
            check("write_ordered",
                  MPI_File_write_ordered(file, numbers + i * BLOCK, BLOCK, MPI_INT, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 99);
    for (int i = 0; i < BLOCK * BLOCKS; i++)
        numbers[i] = rank * 1000000 + i;
    check("open", MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (strcmp(argv[1], "ordered") != 0)
        set_view(file);
    write_all_blocks(file, argv[1]);
    check("sync", MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d %d\n", rank, (int)getpid());
    fflush(stdout);
    memset(numbers, 0xff, sizeof numbers);
    for (;;)
        write_all_blocks(file, argv[1]);
}
