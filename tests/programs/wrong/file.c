/* Wrong programs: files (MPI-5 chapter 14).
 *
 * Errors of files are returned unless a program asks for something else. All but the last of these ask for the end of
 * the job. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD
enum { NEW = MPI_MODE_CREATE | MPI_MODE_RDWR };

static int x[64];
static MPI_File file;

static void record_file(MPI_File *which, int *code, ...)
{
    (void)which;
    record(NULL, code);
}

/* Errors of all files from now on. */
static void strict(void)
{
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    if (recording)
        MPI_File_create_errhandler(record_file, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    if (recording)
        MPI_Errhandler_free(&handler);
}

/* Opens a new file without a name: nothing is left of it. */
static void open_scratch(MPI_Comm comm, int mode)
{
    char path[] = "/tmp/limosa-program-XXXXXX";
    int me;
    strict();
    MPI_Comm_rank(comm, &me);
    if (me == 0 && close(mkstemp(path)) != 0)
        abort();
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, comm);
    MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file);
    MPI_Barrier(comm);
    if (me == 0)
        unlink(path);
}

static void end(void)
{
    MPI_File_close(&file);
}

static void write_to_read_only(void)
{
    open_scratch(WORLD, MPI_MODE_RDONLY);
    MPI_File_write(file, x, 4, MPI_INT, ANY);
    end();
}

static void read_from_write_only(void)
{
    open_scratch(WORLD, MPI_MODE_WRONLY);
    MPI_File_read_at(file, 0, x, 4, MPI_INT, ANY);
    end();
}

static void mode_missing(void)
{
    strict();
    MPI_File_open(WORLD, "/tmp/limosa-program-never", MPI_MODE_CREATE, MPI_INFO_NULL, &file);
}

static void modes_contradictory(void)
{
    strict();
    MPI_File_open(WORLD, "/tmp/limosa-program-never", MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
}

static void modes_differ(void)
{
    strict();
    MPI_File_open(WORLD, "/dev/null", rank ? MPI_MODE_RDONLY : MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
}

static void file_missing(void)
{
    strict();
    MPI_File_open(WORLD, "/tmp/limosa-program-never", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

static void folder_missing(void)
{
    strict();
    MPI_File_open(WORLD, "/tmp/limosa-program-never/a", NEW, MPI_INFO_NULL, &file);
}

static void folder_as_file(void)
{
    strict();
    MPI_File_open(WORLD, "/tmp", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
}

static void exclusive_but_there(void)
{
    strict();
    MPI_File_open(WORLD, "/dev/null", NEW | MPI_MODE_EXCL, MPI_INFO_NULL, &file);
}

static void delete_missing(void)
{
    strict();
    MPI_File_delete("/tmp/limosa-program-never", MPI_INFO_NULL);
}

static void disk_full(void)
{
    strict();
    MPI_File_open(WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, x, 4, MPI_INT, ANY);
    end();
}

static void offset_negative(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_at(file, -8, x, 4, MPI_INT, ANY);
    end();
}

static void seek_before_start(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_seek(file, -12, MPI_SEEK_CUR);
    end();
}

static void seek_whence(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_seek(file, 0, SEEK_END + 40);
    end();
}

static void seek_in_sequential(void)
{
    open_scratch(WORLD, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    end();
}

static void count_negative(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_all(file, x, -1, MPI_INT, ANY);
    end();
}

static void type_uncommitted(void)
{
    MPI_Datatype type;
    open_scratch(WORLD, NEW);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_File_write_at(file, 0, x, 1, type, ANY);
    MPI_Type_free(&type);
    end();
}

static void buffer_null(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_at(file, 0, NULL, 2, MPI_INT, ANY);
    end();
}

static void file_null(void)
{
    strict();
    MPI_File_write(MPI_FILE_NULL, x, 1, MPI_INT, ANY);
}

static void file_closed(void)
{
    open_scratch(WORLD, NEW);
    MPI_File copy = file;
    end();
    MPI_File_write(copy, x, 1, MPI_INT, ANY);
}

static void communicator_as_file(void)
{
    strict();
    MPI_File_write_at((MPI_File)MPI_COMM_WORLD, 0, x, 1, MPI_INT, ANY);
}

static void set_bad_view(int first, int second)
{
    int lengths[] = {2, 2}, places[] = {first, second};
    MPI_Datatype type;
    open_scratch(WORLD, NEW);
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
    end();
}

static void view_backward(void)
{
    set_bad_view(4, 0);
}

static void view_overlapping(void)
{
    set_bad_view(0, 1);
}

static void view_before_start(void)
{
    set_bad_view(-2, 3);
}

static void view_of_other_elements(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL);
    end();
}

static void representation_unknown(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nativ", MPI_INFO_NULL);
    end();
}

static void half_an_element(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write(file, x, 6, MPI_CHAR, ANY);
    end();
}

static void size_negative(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_set_size(file, -1);
    end();
}

static void split_begun_twice(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_all_begin(file, x, 4, MPI_INT);
    MPI_File_write_all_begin(file, x, 4, MPI_INT);
    MPI_File_write_all_end(file, x, ANY);
    end();
}

static void split_not_begun(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_read_all_end(file, x, ANY);
    end();
}

static void split_ended_by_another_form(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_all_begin(file, x, 4, MPI_INT);
    MPI_File_write_at_all_end(file, x, ANY);
    MPI_File_write_all_end(file, x, ANY);
    end();
}

static void closed_within_split(void)
{
    open_scratch(WORLD, NEW);
    MPI_File_write_all_begin(file, x, 4, MPI_INT);
    MPI_File_close(&file);
    MPI_File_write_all_end(file, x, ANY);
    end();
}

static void opened_by_one_rank(void)
{
    strict();
    if (rank == 0)
        MPI_File_open(WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(WORLD);
}

static void closed_by_one_rank(void)
{
    open_scratch(WORLD, NEW);
    if (rank == 0)
        MPI_File_close(&file);
    MPI_Barrier(WORLD);
}

static void resized_by_one_rank(void)
{
    open_scratch(WORLD, NEW);
    if (rank == 1)
        MPI_File_set_size(file, 100);
    MPI_Barrier(WORLD);
    end();
}

static void ordered_on_one_rank(void)
{
    open_scratch(WORLD, NEW);
    if (rank == 1)
        MPI_File_write_ordered(file, x, 10, MPI_INT, ANY);
    MPI_Barrier(WORLD);
    end();
}

static void file_against_message(void)
{
    open_scratch(WORLD, NEW);
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, 1, 5, WORLD, ANY);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    if (rank == 1)
        MPI_Send(x, 1, MPI_INT, 0, 5, WORLD);
    end();
}

static void never_closed(void)
{
    open_scratch(WORLD, NEW);
}

static void error_not_looked_at(void)
{
    MPI_File_open(WORLD, "/tmp/limosa-program-never", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

CASES(MPI_THREAD_SINGLE, CASE(write_to_read_only), CASE(read_from_write_only), CASE(mode_missing),
      CASE(modes_contradictory), CASE(modes_differ), CASE(file_missing), CASE(folder_missing), CASE(folder_as_file),
      CASE(exclusive_but_there), CASE(delete_missing), CASE(disk_full), CASE(offset_negative), CASE(seek_before_start),
      CASE(seek_whence), CASE(seek_in_sequential), CASE(count_negative), CASE(type_uncommitted), CASE(buffer_null),
      CASE(file_null), CASE(file_closed), CASE(communicator_as_file), CASE(view_backward), CASE(view_overlapping),
      CASE(view_before_start), CASE(view_of_other_elements), CASE(representation_unknown), CASE(half_an_element),
      CASE(size_negative), CASE(split_begun_twice), CASE(split_not_begun), CASE(split_ended_by_another_form),
      CASE(closed_within_split), CASE(opened_by_one_rank), CASE(closed_by_one_rank), CASE(resized_by_one_rank),
      CASE(ordered_on_one_rank), CASE(file_against_message), CASE(never_closed), CASE(error_not_looked_at))
