/* Rarely used semantics of files: MPI-5 chapter 14. */
#include "limosa_test.h"

#include <unistd.h>

static char path[256];
static MPI_Status status;

static MPI_File open_new(int mode)
{
    MPI_File file;
    snprintf(path, sizeof path, "%s/limosa-corners-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", lt_size);
    if (lt_rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | mode, MPI_INFO_NULL, &file));
    return file;
}

static void done(MPI_File *file)
{
    OK(MPI_File_close(file));
    CHECK(*file == MPI_FILE_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (lt_rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void shared_pointer_in_resized_views(void)
{
    /* One int in every two: all ranks have the same view, as the shared pointer demands. */
    MPI_File file = open_new(MPI_MODE_RDWR);
    MPI_Datatype every_other;
    MPI_Offset at, byte, end;
    int value = 100 + lt_rank, all[32], seen = 0;
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_File_set_view(file, 4, MPI_INT, every_other, "native", MPI_INFO_NULL));
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, lt_size);
    OK(MPI_File_get_byte_offset(file, at, &byte));
    CHECK_INT(byte, 4 + 8 * lt_size);
    OK(MPI_File_get_size(file, &end));
    CHECK_INT(end, 4 + 8 * (lt_size - 1) + 4);
    OK(MPI_File_read_at(file, 0, all, lt_size, MPI_INT, &status));
    for (int i = 0; i < lt_size; i++)
        if (all[i] >= 100 && all[i] < 100 + lt_size)
            seen |= 1 << (all[i] - 100);
    CHECK_INT(seen, (1 << lt_size) - 1);
    /* A view sets both pointers to its begin. */
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_Type_free(&every_other));
    done(&file);
}

static void seeking_with_the_shared_pointer(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    MPI_Offset at;
    int ten[10] = {0};
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    if (lt_rank == 0)
        OK(MPI_File_write_at(file, 0, ten, 10, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(file, 3, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, 2, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 5);
    OK(MPI_File_seek_shared(file, -4, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 6);
    /* The file is as it was after each error. */
    REFUSED(MPI_File_seek_shared(file, -1, MPI_SEEK_SET));
    REFUSED(MPI_File_seek_shared(file, -7, MPI_SEEK_CUR));
    REFUSED(MPI_File_seek_shared(file, 0, 12345));
    if (lt_size > 1)
        REFUSED(MPI_File_seek_shared(file, lt_rank, MPI_SEEK_SET)); /* all must pass the same */
    REFUSED(MPI_File_seek(file, -1, MPI_SEEK_SET));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 6);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    done(&file);
}

static void reading_beyond_the_end(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    int three[3] = {1, 2, 3}, five[5] = {0}, count;
    if (lt_rank == 0)
        OK(MPI_File_write_at(file, 0, three, 3, MPI_INT, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at(file, 4, five, 5, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 2);
    CHECK(five[0] == 2 && five[1] == 3 && five[2] == 0);
    OK(MPI_File_read_at_all(file, 1000, five, 5, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 0);
    OK(MPI_File_read_at(file, 9, five, 1, MPI_INT, &status)); /* three bytes are left */
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, MPI_BYTE, &count));
    CHECK_INT(count, 3);
    done(&file);
}

static void modes_that_exclude_calls(void)
{
    MPI_File file = open_new(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    int value = 1;
    MPI_Offset at;
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_get_position(file, &at));
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    done(&file);
    file = open_new(MPI_MODE_WRONLY);
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status));
    int mode = 0;
    OK(MPI_File_get_amode(file, &mode));
    CHECK_INT(mode, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    done(&file);
    file = open_new(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(path, F_OK) != 0);
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(path, MPI_INFO_NULL));
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK(file == MPI_FILE_NULL);
}

static void split_accesses_one_at_a_time(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    int value = lt_rank, other = -1;
    OK(MPI_File_write_at_all_begin(file, 4 * lt_rank, &value, 1, MPI_INT));
    REFUSED(MPI_File_read_at_all_begin(file, 0, &other, 1, MPI_INT));
    REFUSED(MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, &status));
    REFUSED(MPI_File_read_at_all_end(file, &other, &status));
    OK(MPI_File_write_at_all_end(file, &value, &status));
    REFUSED(MPI_File_write_at_all_end(file, &value, &status));
    OK(MPI_File_read_at_all_begin(file, 4 * lt_rank, &other, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, &other, &status));
    CHECK_INT(other, lt_rank);
    done(&file);
}

static void views_say_what_they_are(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    MPI_Datatype row, etype, filetype;
    MPI_Offset disp;
    char representation[MPI_MAX_DATAREP_STRING];
    int a, b, c, combiner;
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, representation));
    CHECK(disp == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && !strcmp(representation, "native"));
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_File_set_view(file, 8, MPI_INT, row, "external32", MPI_INFO_NULL));
    OK(MPI_Type_free(&row)); /* the view keeps it */
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, representation));
    CHECK(disp == 8 && etype == MPI_INT && !strcmp(representation, "external32"));
    OK(MPI_Type_get_envelope(filetype, &a, &b, &c, &combiner));
    CHECK(combiner == MPI_COMBINER_VECTOR || combiner == MPI_COMBINER_DUP);
    if (combiner == MPI_COMBINER_VECTOR || combiner == MPI_COMBINER_DUP)
        OK(MPI_Type_free(&filetype));
    MPI_Aint extent;
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK_INT(extent, 4);
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, -3, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL)); /* no multiple of the etype */
    MPI_Datatype uncommitted;
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, uncommitted, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&uncommitted));
    done(&file);
}

static void atomicity_sizes_groups(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    int flag = 7, result;
    MPI_Offset size;
    MPI_Group group, world;
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_INT(flag, 1);
    if (lt_size > 1)
        REFUSED(MPI_File_set_atomicity(file, lt_rank));
    OK(MPI_File_preallocate(file, 4096));
    OK(MPI_File_get_size(file, &size));
    CHECK_INT(size, 4096);
    OK(MPI_File_preallocate(file, 100)); /* never makes it shorter */
    OK(MPI_File_get_size(file, &size));
    CHECK_INT(size, 4096);
    OK(MPI_File_set_size(file, 10));
    OK(MPI_File_get_size(file, &size));
    CHECK_INT(size, 10);
    REFUSED(MPI_File_set_size(file, -1));
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    done(&file);
}

static int heard, heard_class;

static void hear(MPI_File *file, int *code, ...)
{
    (void)file;
    heard++;
    MPI_Error_class(*code, &heard_class);
}

static void handlers_of_files(void)
{
    /* New files have the handler of MPI_FILE_NULL, which is MPI_ERRORS_RETURN at first. */
    MPI_Errhandler of_null, mine, got;
    int value = 0;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &of_null));
    CHECK(of_null == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(hear, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    MPI_File file = open_new(MPI_MODE_WRONLY);
    OK(MPI_File_get_errhandler(file, &got));
    CHECK(got == mine);
    heard = 0;
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status));
    CHECK(heard == 1 && heard_class == MPI_ERR_ACCESS);
    OK(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
    CHECK(heard == 2 && heard_class == MPI_ERR_OTHER);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status));
    CHECK_INT(heard, 2);
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL));
    CHECK_INT(heard, 3);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&mine));
    done(&file);
}

static void requests_of_files_beside_others(void)
{
    MPI_File file = open_new(MPI_MODE_RDWR);
    int value = 7 + lt_rank, message = -1, next = (lt_rank + 1) % lt_size, previous = (lt_rank + lt_size - 1) % lt_size;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int count;
    OK(MPI_File_iwrite_at(file, 4 * lt_rank, &value, 1, MPI_INT, &requests[0]));
    OK(MPI_Irecv(&message, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isend(&value, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Waitall(4, requests, statuses));
    OK(MPI_Get_count(&statuses[0], MPI_INT, &count));
    CHECK_INT(count, 1);
    CHECK_INT(message, 7 + previous);
    int back = -1;
    OK(MPI_File_iread_all(file, &back, 0, MPI_INT, &requests[0]));
    OK(MPI_File_iread_at_all(file, 4 * lt_rank, &back, 1, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(back, value);
    done(&file);
}

LT_MAIN("corners_io", TEST(shared_pointer_in_resized_views), TEST(seeking_with_the_shared_pointer),
        TEST(reading_beyond_the_end), TEST(modes_that_exclude_calls), TEST(split_accesses_one_at_a_time),
        TEST(views_say_what_they_are), TEST(atomicity_sizes_groups), TEST(handlers_of_files),
        TEST(requests_of_files_beside_others))
