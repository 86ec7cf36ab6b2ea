/* Wrong use of files: each call gives its error class, and files work afterwards (MPI-5 sections 14.2, 14.7 and 14.8).
 *
 * The error handler of files is MPI_ERRORS_RETURN from the start. */
#include "io.h"

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <signal.h>

static int value[16];
static MPI_Status status;

static int open_it(const char *name, int mode, MPI_File *file)
{
    *file = MPI_FILE_NULL;
    return MPI_File_open(WORLD, io_path(name), mode, MPI_INFO_NULL, file);
}

/* Files work: called after each group of mistakes. */
static void usable(void)
{
    int out = lt_rank + 7, in = -1;
    MPI_File file = io_new("usable");
    OK(MPI_File_write_at_all(file, 4 * (MPI_Offset)lt_rank, &out, 1, MPI_INT, NO_STATUS));
    io_settle(file);
    OK(MPI_File_read_at_all(file, 4 * (MPI_Offset)((lt_rank + 1) % lt_size), &in, 1, MPI_INT, NO_STATUS));
    CHECK_INT(in, (lt_rank + 1) % lt_size + 7);
    OK(MPI_File_close(&file));
}

static void modes(void)
{
    static const int wrong[] = {
        0,
        MPI_MODE_CREATE,
        MPI_MODE_RDONLY | MPI_MODE_WRONLY,
        MPI_MODE_RDONLY | MPI_MODE_RDWR,
        MPI_MODE_WRONLY | MPI_MODE_RDWR | MPI_MODE_CREATE,
        MPI_MODE_RDONLY | MPI_MODE_CREATE,
        MPI_MODE_RDONLY | MPI_MODE_EXCL,
        MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
    };
    MPI_File file;
    io_make(io_path("there"), "abc", 3);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FAILS(MPI_ERR_AMODE, open_it("there", wrong[i], &file));
        CHECK(file == MPI_FILE_NULL);
    }
    if (lt_size > 1)
        FAILS(MPI_ERR_NOT_SAME, open_it("there", lt_rank ? MPI_MODE_RDONLY : MPI_MODE_RDWR, &file));
    CHECK_FILE(io_path("there"), "abc", 3);
    usable();
}

static void names(void)
{
    MPI_File file;
    char long_name[400];
    io_make(io_path("there"), "abc", 3);
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing", MPI_MODE_RDONLY, &file));
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing", MPI_MODE_RDWR, &file));
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing-folder/file", NEW, &file));
    REFUSED(open_it("there/file", NEW, &file)); /* a file in place of a folder */
    REFUSED(open_it("", NEW, &file));           /* a folder in place of a file */
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_ERR_FILE_EXISTS, open_it("there", NEW | MPI_MODE_EXCL, &file));
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    FAILS(MPI_ERR_BAD_FILE, MPI_File_open(WORLD, long_name, NEW, MPI_INFO_NULL, &file));
    CHECK_INT(io_size(io_path("missing")), -1);
    CHECK_FILE(io_path("there"), "abc", 3);
    if (lt_rank == 0) {
        FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(io_path("missing"), MPI_INFO_NULL));
        FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(io_path("missing-folder/file"), MPI_INFO_NULL));
        REFUSED(MPI_File_delete(io_folder, MPI_INFO_NULL));
    }
    usable();
}

/* The sentence names the file. */
static void sentences(void)
{
    MPI_File file;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    int code = open_it("a-file-that-is-not-there", MPI_MODE_RDONLY, &file);
    OK(MPI_Error_string(code, text, &n));
    CHECK(strstr(text, "a-file-that-is-not-there") != NULL);
}

static void permissions(void)
{
    MPI_File file;
    const char *device = getenv("LIMOSA_DEVICE");
    if (geteuid() == 0 && device && strncmp(device, "file:", 5) == 0) {
        if (lt_rank == 0)
            printf("permissions: not run, since the user that root turns into may not read root's message files\n");
        return;
    }
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0) {
        mkdir(io_path("locked"), 0700);
        close(open(io_path("secret"), O_CREAT | O_WRONLY, 0600));
        CHECK(chmod(io_path("secret"), geteuid() ? 0 : 0600) == 0 && (!geteuid() || chmod(io_path("locked"), 0) == 0));
    }
    OK(MPI_Barrier(WORLD));
    if (geteuid() == 0) { /* permissions do not stop root: ask as a different user */
        chmod(io_folder, 0755);
        setfsuid(65534);
    }
    FAILS(MPI_ERR_ACCESS, open_it("secret", MPI_MODE_RDONLY, &file));
    FAILS(MPI_ERR_ACCESS, open_it("secret", MPI_MODE_RDWR, &file));
    FAILS(MPI_ERR_ACCESS, open_it("locked/file", NEW, &file));
    setfsuid(geteuid());
    prctl(PR_SET_DUMPABLE, 1); /* the change of user has taken it away, and with it the access of other ranks */
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0)
        chmod(io_path("locked"), 0700);
    usable();
}

/* A file system that is mounted read-only, if there is one. */
static void read_only_file_systems(void)
{
    static char path[600];
    FILE *mounts = lt_rank == 0 ? fopen("/proc/mounts", "r") : NULL;
    struct statvfs state;
    char place[300];
    path[0] = 0;
    while (mounts && fscanf(mounts, "%*s %299s %*[^\n]", place) == 1)
        if (statvfs(place, &state) == 0 && (state.f_flag & ST_RDONLY) && access(place, X_OK) == 0) {
            struct stat what;
            if (stat(place, &what) == 0 && S_ISDIR(what.st_mode))
                snprintf(path, sizeof path, "%s/limosa-test", place);
        }
    if (mounts)
        fclose(mounts);
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, WORLD));
    MPI_File file;
    if (path[0])
        FAILS(MPI_ERR_READ_ONLY, MPI_File_open(WORLD, path, NEW, MPI_INFO_NULL, &file));
}

static void wrong_direction(void)
{
    MPI_File file;
    MPI_Request request;
    io_make(io_path("there"), "abcdefgh", 8);
    OK(open_it("there", MPI_MODE_RDONLY, &file));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_write(file, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_write_at(file, 0, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_write_shared(file, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_iwrite_at(file, 0, value, 1, MPI_INT, &request));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_write_all(file, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_set_size(file, 100));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_preallocate(file, 100));
    OK(MPI_File_read(file, value, 1, MPI_INT, &status));
    CHECK_BYTES(value, "abcd", 4);
    OK(MPI_File_close(&file));
    OK(open_it("there", MPI_MODE_WRONLY, &file));
    FAILS(MPI_ERR_ACCESS, MPI_File_read(file, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ACCESS, MPI_File_iread(file, value, 1, MPI_INT, &request));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at_all(file, 0, value, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("there"), "abcdefgh", 8);
    OK(open_it("there", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, &file));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read_at(file, 0, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read(file, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_close(&file));
    usable();
}

static void arguments_of_accesses(void)
{
    MPI_Datatype uncommitted;
    MPI_Request request;
    MPI_File file = io_new("arguments");
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    FAILS(MPI_ERR_COUNT, MPI_File_write(file, value, -1, MPI_INT, &status));
    FAILS(MPI_ERR_COUNT, MPI_File_read_at(file, 0, value, -5, MPI_INT, &status));
    FAILS(MPI_ERR_COUNT, MPI_File_iwrite_at(file, 0, value, -1, MPI_INT, &request));
    FAILS(MPI_ERR_COUNT, MPI_File_write_all(file, value, -1, MPI_INT, &status));
    FAILS(MPI_ERR_TYPE, MPI_File_write(file, value, 1, MPI_DATATYPE_NULL, &status));
    FAILS(MPI_ERR_TYPE, MPI_File_write_at(file, 0, value, 1, uncommitted, &status));
    FAILS(MPI_ERR_TYPE, MPI_File_read_shared(file, value, 1, uncommitted, &status));
    FAILS(MPI_ERR_BUFFER, MPI_File_write(file, NULL, 1, MPI_INT, &status));
    FAILS(MPI_ERR_BUFFER, MPI_File_iread(file, NULL, 1, MPI_INT, &request));
    FAILS(MPI_ERR_ARG, MPI_File_write_at(file, -1, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ARG, MPI_File_read_at(file, -4, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ARG, MPI_File_write_at_all(file, -4, value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ARG, MPI_File_iread_at(file, -4, value, 1, MPI_INT, &request));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_CUR));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_END));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, 0, 4711));
    FAILS(MPI_ERR_ARG, MPI_File_seek_shared(file, -1, MPI_SEEK_SET));
    FAILS(MPI_ERR_ARG, MPI_File_set_size(file, -1));
    FAILS(MPI_ERR_ARG, MPI_File_preallocate(file, -1));
    if (lt_size > 1) {
        REFUSED(MPI_File_set_size(file, 10 + lt_rank));
        REFUSED(MPI_File_seek_shared(file, 10 + lt_rank, MPI_SEEK_SET));
    }
    MPI_Offset at = -1;
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_File_close(&file));
    CHECK_INT(io_size(io_path("arguments")), 0);
    usable();
}

static MPI_Datatype indexed(int first, int second, int extent)
{
    int lengths[] = {2, 2}, places[] = {first, second};
    MPI_Datatype pieces, type;
    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &pieces));
    OK(MPI_Type_create_resized(pieces, 0, 4 * extent, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&pieces));
    return type;
}

static void views(void)
{
    MPI_Datatype uncommitted, backward = indexed(4, 0, 6), overlapping = indexed(0, 1, 4), early = indexed(-2, 2, 6);
    MPI_Datatype odd, etype = MPI_BYTE, filetype;
    MPI_Offset disp = -1;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_File file = io_new("views");
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(3, MPI_CHAR, &odd));
    OK(MPI_Type_commit(&odd));
    REFUSED(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_INT, uncommitted, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, odd, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, backward, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, early, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no-such", MPI_INFO_NULL));
    if (lt_size > 1) {
        REFUSED(MPI_File_set_view(file, 0, lt_rank ? MPI_INT : MPI_CHAR, MPI_INT, "native", MPI_INFO_NULL));
        REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, lt_rank ? "internal" : "native", MPI_INFO_NULL));
    }
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep)); /* the old one still holds */
    CHECK(disp == 0 && etype == MPI_BYTE);
    CHECK_STR(datarep, "native");
    /* Not a whole number of elements. */
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_write(file, value, 3, MPI_CHAR, &status));
    REFUSED(MPI_File_read_at(file, 0, value, 1, MPI_SHORT, &status));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Type_free(&backward));
    OK(MPI_Type_free(&early));
    OK(MPI_Type_free(&odd));
    /* To read the same element twice is no mistake. */
    for (int i = 0; i < 16; i++)
        value[i] = i;
    io_make(io_path("overlapping"), value, sizeof value);
    OK(open_it("overlapping", MPI_MODE_RDONLY, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL));
    OK(MPI_File_read(file, value, 4, MPI_INT, &status));
    CHECK(value[0] == 0 && value[1] == 1 && value[2] == 1 && value[3] == 2);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&overlapping));
    usable();
}

static void handles(void)
{
    MPI_Offset offset;
    MPI_Info info;
    MPI_Group group;
    MPI_File none = MPI_FILE_NULL, file = io_new("handles"), closed = file;
    int flag;
    OK(MPI_File_close(&file));
    const MPI_File wrong[] = {MPI_FILE_NULL, closed, MPI_File_fromint(0x7a7a7a7a)};
    for (int i = 0; i < 3; i++) {
        FAILS(MPI_ERR_FILE, MPI_File_write(wrong[i], value, 1, MPI_INT, &status));
        FAILS(MPI_ERR_FILE, MPI_File_read_at_all(wrong[i], 0, value, 1, MPI_INT, &status));
        FAILS(MPI_ERR_FILE, MPI_File_seek(wrong[i], 0, MPI_SEEK_SET));
        FAILS(MPI_ERR_FILE, MPI_File_get_size(wrong[i], &offset));
        FAILS(MPI_ERR_FILE, MPI_File_get_info(wrong[i], &info));
        FAILS(MPI_ERR_FILE, MPI_File_get_group(wrong[i], &group));
        FAILS(MPI_ERR_FILE, MPI_File_get_atomicity(wrong[i], &flag));
        FAILS(MPI_ERR_FILE, MPI_File_sync(wrong[i]));
        FAILS(MPI_ERR_FILE, MPI_File_set_view(wrong[i], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        FAILS(MPI_ERR_FILE, MPI_File_write_all_begin(wrong[i], value, 1, MPI_INT));
    }
    FAILS(MPI_ERR_FILE, MPI_File_close(&none));
    FAILS(MPI_ERR_FILE, MPI_File_close(&closed));
    FAILS(MPI_ERR_COMM, MPI_File_open(MPI_COMM_NULL, io_path("handles"), NEW, MPI_INFO_NULL, &file));
    usable();
}

/* No room on the device, and files limited to some length. */
static void no_room(void)
{
    MPI_File file;
    enum { LIMIT = 100000 };
    struct rlimit old, limit;
    static char much[3 * LIMIT];
    OK(MPI_File_open(WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_NO_SPACE, MPI_File_write_at(file, 0, value, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = LIMIT;
    file = io_new("limited");
    setrlimit(RLIMIT_FSIZE, &limit);
    OK(MPI_File_write_at(file, 10 * lt_rank, value, 10, MPI_BYTE, &status));
    REFUSED(MPI_File_write_at(file, 0, much, sizeof much, MPI_BYTE, &status));
    REFUSED(MPI_File_write_at(file, 2 * LIMIT, much, 10, MPI_BYTE, &status));
    OK(MPI_Barrier(WORLD));
    REFUSED(MPI_File_write_at_all(file, LIMIT + 10 * lt_rank, much, 10, MPI_BYTE, &status));
    OK(MPI_File_write_at_all(file, 10 * lt_rank, much, 10, MPI_BYTE, &status));
    setrlimit(RLIMIT_FSIZE, &old);
    OK(MPI_File_close(&file));
    CHECK(io_size(io_path("limited")) <= LIMIT);
    usable();
}

static int calls, last_class;
static MPI_File last_file;

static void count_errors(MPI_File *file, int *code, ...)
{
    calls++;
    last_file = *file;
    MPI_Error_class(*code, &last_class);
}

static void error_handlers(void)
{
    MPI_Errhandler counting, got;
    MPI_File file, other;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(count_errors, &counting));
    file = io_new("handlers");
    OK(MPI_File_get_errhandler(file, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_File_set_errhandler(file, counting));
    FAILS(MPI_ERR_COUNT, MPI_File_write(file, value, -1, MPI_INT, &status));
    CHECK_INT(calls, 1);
    CHECK_INT(last_class, MPI_ERR_COUNT);
    CHECK(last_file == file);
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    CHECK_INT(calls, 2);
    CHECK_INT(last_class, MPI_ERR_IO);
    OK(MPI_File_get_errhandler(file, &got));
    CHECK(got == counting);
    OK(MPI_Errhandler_free(&got));
    /* Other files and opening are not concerned, until MPI_FILE_NULL has the handler. */
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing", MPI_MODE_RDONLY, &other));
    CHECK_INT(calls, 2);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, counting));
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing", MPI_MODE_RDONLY, &other));
    CHECK_INT(calls, 3);
    CHECK_INT(last_class, MPI_ERR_NO_SUCH_FILE);
    CHECK(last_file == MPI_FILE_NULL);
    OK(MPI_Errhandler_free(&counting));
    other = io_new("inherits");
    FAILS(MPI_ERR_ARG, MPI_File_seek(other, -1, MPI_SEEK_SET));
    CHECK_INT(calls, 4);
    OK(MPI_File_close(&other));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_NO_SUCH_FILE, open_it("missing", MPI_MODE_RDONLY, &other));
    CHECK_INT(calls, 4);
    OK(MPI_File_close(&file));
    usable();
}

IO_MAIN("io_errors", TEST(modes), TEST(names), TEST(sentences), TEST(permissions), TEST(read_only_file_systems),
        TEST(wrong_direction), TEST(arguments_of_accesses), TEST(views), TEST(handles), TEST(no_room),
        TEST(error_handlers))
