/* Troubles of file systems, in the middle of collective accesses.  usage: storage WHAT FOLDER
 *
 *   full        FOLDER has room for 2 MB
 *   read-only   FOLDER is mounted read-only and has the file "data" with some bytes
 *   deleted     another program deletes an open file
 *
 * Each call must give the right class at all ranks, with the name of the file. Then the ranks look that the library and
 * the file can be used, and that nothing is lost, and print "rank N done".
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 512, PART = 200 * PIECE, MUCH = 4000 * PIECE, RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR };

static int rank, size;
static char path[4096], bytes[MUCH], got[MUCH];
static MPI_File file;

static void expect(const char *what, int wanted, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
    }
    if (class == wanted && (wanted == MPI_SUCCESS || strstr(text, path) != NULL))
        return;
    fprintf(stderr, "rank %d: %s: class %d instead of %d for %s: %s\n", rank, what, class, wanted, path, text);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

#define EXPECT(class, call) expect(#call, (class), (call))
#define OK(call) EXPECT(MPI_SUCCESS, call)

/* The ranks take turns, piece by piece. */
static void open_file(const char *folder, const char *name)
{
    MPI_Datatype piece, turns;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    OK(MPI_File_open(MPI_COMM_WORLD, path, RDWR, MPI_INFO_NULL, &file));
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * size, &turns);
    MPI_Type_commit(&turns);
    OK(MPI_File_set_view(file, (MPI_Offset)PIECE * rank, MPI_BYTE, turns, "native", MPI_INFO_NULL));
    MPI_Type_free(&turns);
    MPI_Type_free(&piece);
}

static int write_together(MPI_Offset at, int n)
{
    return MPI_File_write_at_all(file, at, bytes, n, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* The first PART bytes of this rank, by the file system's or the library's means. */
static void expect_part(void)
{
    MPI_Status status;
    int count;
    memset(got, 0, sizeof got);
    OK(MPI_File_read_at_all(file, 0, got, PART, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != PART || memcmp(got, bytes, PART) != 0) {
        fprintf(stderr, "rank %d: %d bytes are there, or wrong ones\n", rank, count);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static void full(const char *folder)
{
    open_file(folder, "data");
    OK(write_together(0, PART));
    OK(MPI_File_sync(file));
    for (int again = 0; again < 3; again++) {
        EXPECT(MPI_ERR_NO_SPACE, write_together(PART, MUCH));
        expect_part();
    }
    EXPECT(MPI_ERR_NO_SPACE, MPI_File_preallocate(file, (MPI_Offset)2 * MUCH * size));
    EXPECT(MPI_ERR_NO_SPACE, MPI_File_write_at(file, PART, bytes, MUCH, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    /* When there is room again, the same file is good. */
    OK(MPI_File_set_size(file, (MPI_Offset)PART * size));
    expect_part();
    OK(write_together(PART, PART));
    OK(MPI_File_sync(file));
    expect_part();
    OK(MPI_File_close(&file));
}

static void read_only(const char *folder)
{
    snprintf(path, sizeof path, "%s/data", folder);
    EXPECT(MPI_ERR_READ_ONLY, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EXPECT(MPI_ERR_READ_ONLY, MPI_File_delete(path, MPI_INFO_NULL));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at_all(file, 0, got, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT(MPI_ERR_READ_ONLY, write_together(0, 4));
    OK(MPI_File_close(&file));
    snprintf(path, sizeof path, "%s/new", folder);
    EXPECT(MPI_ERR_READ_ONLY, MPI_File_open(MPI_COMM_WORLD, path, RDWR, MPI_INFO_NULL, &file));
}

static void deleted(const char *folder)
{
    open_file(folder, "data");
    OK(write_together(0, PART));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    /* A process that has opened it still has it. */
    expect_part();
    OK(write_together(PART, PART));
    OK(MPI_File_sync(file));
    OK(MPI_File_close(&file));
    EXPECT(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EXPECT(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(path, MPI_INFO_NULL));
    OK(MPI_File_open(MPI_COMM_WORLD, path, RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(MPI_ERR_NO_SUCH_FILE, MPI_File_close(&file));
    snprintf(path, sizeof path, "%s/missing/data", folder);
    EXPECT(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path, RDWR, MPI_INFO_NULL, &file));
}

int main(int argc, char **argv)
{
    int sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 99);
    for (int i = 0; i < MUCH; i++)
        bytes[i] = (char)(i * 7 + i / PIECE + rank);
    if (strcmp(argv[1], "full") == 0)
        full(argv[2]);
    else if (strcmp(argv[1], "read-only") == 0)
        read_only(argv[2]);
    else
        deleted(argv[2]);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d done\n", rank);
    MPI_Finalize();
    return sum != size * (size - 1) / 2;
}
