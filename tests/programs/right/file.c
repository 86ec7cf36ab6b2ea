/* Correct programs: files. Nothing may be reported. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD
enum { NEW = MPI_MODE_CREATE | MPI_MODE_RDWR };

static int x[1000], y[1000];
static MPI_File file;
static MPI_Request requests[10];
static MPI_Status status;

/* A new file without a name: nothing is left of it. */
static void open_scratch(void)
{
    char path[] = "/tmp/limosa-program-XXXXXX";
    if (rank == 0 && close(mkstemp(path)) != 0)
        abort();
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, WORLD);
    EXPECT(MPI_File_open(WORLD, path, NEW, MPI_INFO_NULL, &file), MPI_SUCCESS);
    MPI_Barrier(WORLD);
    if (rank == 0)
        unlink(path);
    for (int i = 0; i < 1000; i++)
        x[i] = rank * 1000 + i;
}

static void end(void)
{
    EXPECT(MPI_File_close(&file), MPI_SUCCESS);
}

static void checkpoint(void)
{
    open_scratch();
    for (int step = 0; step < 50; step++) {
        EXPECT(MPI_File_write_at_all(file, (MPI_Offset)sizeof x * rank, x, 1000, MPI_INT, ANY), MPI_SUCCESS);
        MPI_File_sync(file);
    }
    MPI_File_read_at_all(file, (MPI_Offset)sizeof x * rank, y, 1000, MPI_INT, &status);
    EXPECT(memcmp(x, y, sizeof x), 0);
    end();
}

static void common_log(void)
{
    MPI_Offset bytes;
    open_scratch();
    for (int i = 0; i < 100; i++)
        MPI_File_write_shared(file, x, 5, MPI_INT, ANY);
    MPI_Barrier(WORLD);
    MPI_File_get_size(file, &bytes);
    EXPECT(bytes, 2000 * size);
    end();
}

static void late_rank(void)
{
    open_scratch();
    if (rank == 1)
        nap(3);
    MPI_File_write_ordered(file, x, 10, MPI_INT, ANY);
    if (rank == 0)
        compute(3);
    end();
}

static void long_computation_before_wait(void)
{
    open_scratch();
    MPI_File_iwrite_at_all(file, 4000 * (MPI_Offset)rank, x, 1000, MPI_INT, &requests[0]);
    compute(rank ? 3 : 0);
    MPI_Wait(&requests[0], &status);
    int n;
    MPI_Get_count(&status, MPI_INT, &n);
    EXPECT(n, 1000);
    end();
}

static void long_split(void)
{
    open_scratch();
    MPI_File_write_all_begin(file, x, rank ? 0 : 1000, MPI_INT);
    nap(rank ? 3 : 0);
    MPI_File_write_all_end(file, x, ANY);
    end();
}

static void errors_handled(void)
{
    int class;
    EXPECT(MPI_File_open(WORLD, "/tmp/limosa-program-never", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == 0, 0);
    open_scratch();
    int code = MPI_File_write_at(file, -1, x, 1, MPI_INT, ANY);
    MPI_Error_class(code, &class);
    EXPECT(class, MPI_ERR_ARG);
    EXPECT(MPI_File_write_at(file, 0, x, 1, MPI_INT, ANY), MPI_SUCCESS);
    end();
}

static void file_of_one_rank(void)
{
    char path[] = "/tmp/limosa-program-XXXXXX";
    if (rank == 0) {
        if (close(mkstemp(path)) != 0)
            abort();
        MPI_File_open(MPI_COMM_SELF, path, NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
        MPI_File_write_all(file, x, 100, MPI_INT, ANY);
        end();
        EXPECT(access(path, F_OK), -1);
    }
    MPI_Barrier(WORLD);
}

static void empty_reads(void)
{
    int n = -1;
    open_scratch();
    MPI_File_read(file, y, 1000, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    EXPECT(n, 0);
    MPI_File_read_all(file, NULL, 0, MPI_INT, &status);
    MPI_File_iread(file, y, 10, MPI_INT, &requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Get_count(&status, MPI_INT, &n);
    EXPECT(n, 0);
    end();
}

CASES(MPI_THREAD_SINGLE, CASE(checkpoint), CASE(common_log), CASE(late_rank), CASE(long_computation_before_wait),
      CASE(long_split), CASE(errors_handled), CASE(file_of_one_rank), CASE(empty_reads))
