/* Files without views: opening, sizes, explicit offsets, individual pointers, ends of files, info, groups, deletion
 * (MPI-5 sections 14.2 and 14.4). */
#include "io.h"

#include <errno.h>

static void open_and_close(void)
{
    MPI_File file = io_new("basic");
    int mode = 0, same = -1;
    MPI_Group group, all;
    MPI_Offset bytes = -1;
    CHECK(file != MPI_FILE_NULL);
    OK(MPI_File_get_amode(file, &mode));
    CHECK_INT(mode, NEW);
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(WORLD, &all));
    OK(MPI_Group_compare(group, all, &same));
    CHECK_INT(same, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 0);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    CHECK_INT(io_size(io_path("basic")), 0);
}

static void modes_of_opening(void)
{
    static const char text[] = "0123456789";
    char in[20] = "";
    MPI_Status status;
    MPI_Offset at = -1;
    io_make(io_path("modes"), text, 10);
    MPI_File file = io_open(WORLD, "modes", MPI_MODE_RDONLY);
    OK(MPI_File_read(file, in, 10, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 10);
    CHECK_BYTES(in, text, 10);
    OK(MPI_File_close(&file));
    file = io_open(WORLD, "modes", MPI_MODE_WRONLY);
    if (lt_rank == 0)
        OK(MPI_File_write_at(file, 2, "xy", 2, MPI_CHAR, &status));
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("modes"), "01xy456789", 10);
    /* MPI_MODE_CREATE keeps what the file has. */
    file = io_open(WORLD, "modes", NEW);
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("modes"), "01xy456789", 10);
    file = io_open(WORLD, "modes", MPI_MODE_WRONLY | MPI_MODE_APPEND);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 10);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 10);
    OK(MPI_Barrier(WORLD));
    if (lt_rank == lt_size - 1)
        OK(MPI_File_write(file, "AB", 2, MPI_CHAR, &status));
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("modes"), "01xy456789AB", 12);
    file = io_open(WORLD, "exclusive", NEW | MPI_MODE_EXCL | MPI_MODE_UNIQUE_OPEN);
    OK(MPI_File_close(&file));
    file = io_open(WORLD, "short-lived", NEW | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_write_at(file, 0, text, 10, MPI_CHAR, &status));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    CHECK_INT(io_size(io_path("short-lived")), -1);
}

static void explicit_offsets(void)
{
    enum { N = 1000 };
    static int out[N], in[N];
    MPI_File file = io_new("explicit");
    MPI_Status status;
    MPI_Offset mine = (MPI_Offset)sizeof out * lt_rank, at = -1;
    int next = (lt_rank + 1) % lt_size;
    lt_fill(out, sizeof out, (uint64_t)lt_rank);
    OK(MPI_File_write_at(file, mine, out, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    io_settle(file);
    OK(MPI_File_read_at(file, (MPI_Offset)sizeof out * next, in, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_FILLED(in, sizeof in, (uint64_t)next);
    OK(MPI_File_read_at_all(file, mine + 400, in, 10, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 10);
    CHECK_BYTES(in, out + 100, 40);
    OK(MPI_File_write_at_all(file, mine, out, N, MPI_INT, NO_STATUS));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_File_get_size(file, &at));
    CHECK_INT(at, (long long)sizeof out * lt_size);
    /* Nothing at all. */
    OK(MPI_File_write_at(file, 0, NULL, 0, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 0);
    OK(MPI_File_read_at(file, 0, NULL, 0, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 0);
    OK(MPI_File_close(&file));
}

/* Memory with gaps, both ways. */
static void types_of_memory(void)
{
    enum { N = 5000 };
    static int out[2 * N], in[2 * N];
    MPI_Datatype every_other, pair;
    MPI_Status status;
    MPI_File file = io_new("memory");
    MPI_Offset mine = (MPI_Offset)(N * sizeof(int)) * lt_rank;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &pair));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Type_commit(&pair));
    for (int i = 0; i < 2 * N; i++) {
        out[i] = i % 2 ? -1 : lt_rank * 100000 + i;
        in[i] = -7;
    }
    OK(MPI_File_write_at(file, mine, out, 1, every_other, &status));
    CHECK_COUNT(&status, every_other, 1);
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_read_at(file, mine, in, N, pair, &status));
    CHECK_COUNT(&status, pair, N);
    for (int i = 0; i < N; i++)
        if (in[2 * i] != out[2 * i] || in[2 * i + 1] != -7) {
            CHECK_INT(in[2 * i], out[2 * i]);
            CHECK_INT(in[2 * i + 1], -7);
            break;
        }
    OK(MPI_File_read_at(file, mine, in, N, MPI_INT, &status));
    for (int i = 0; i < N; i++)
        if (in[i] != out[2 * i]) {
            CHECK_INT(in[i], out[2 * i]);
            break;
        }
    OK(MPI_Type_free(&every_other));
    OK(MPI_Type_free(&pair));
    OK(MPI_File_close(&file));
}

static void individual_pointers(void)
{
    int out[8], in[8];
    MPI_Status status;
    MPI_Offset at = -1, shared = -1;
    MPI_File file = io_new("pointers");
    for (int i = 0; i < 8; i++)
        out[i] = lt_rank * 8 + i;
    OK(MPI_File_seek(file, 32 * (MPI_Offset)lt_rank, MPI_SEEK_SET));
    OK(MPI_File_write(file, out, 3, MPI_INT, &status));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 32 * lt_rank + 12);
    OK(MPI_File_write(file, out + 3, 5, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 5);
    io_settle(file);
    OK(MPI_File_seek(file, -32, MPI_SEEK_CUR));
    OK(MPI_File_read(file, in, 8, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_seek(file, -4, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 32 * lt_size - 4);
    OK(MPI_File_read(file, in, 1, MPI_INT, &status));
    CHECK_INT(in[0], 8 * lt_size - 1);
    /* Beyond the end is a place to write, not an error. */
    OK(MPI_File_seek(file, 1000, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 32 * lt_size + 1000);
    OK(MPI_File_get_position_shared(file, &shared));
    CHECK_INT(shared, 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all(file, in, 2, MPI_INT, &status));
    CHECK_INT(in[1], 1);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 8);
    OK(MPI_File_close(&file));
}

static void end_of_file(void)
{
    char in[20], marks[20];
    MPI_Status status;
    int elements = -1;
    short numbers[10];
    memset(marks, '#', sizeof marks);
    io_make(io_path("end"), "abcdefghij", 10);
    MPI_File file = io_open(WORLD, "end", MPI_MODE_RDONLY);
    memcpy(in, marks, sizeof in);
    OK(MPI_File_read_at(file, 7, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 3);
    CHECK_BYTES(in, "hij#", 4);
    OK(MPI_File_read_at(file, 10, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 0);
    OK(MPI_File_read_at(file, 1000, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 0);
    OK(MPI_File_read_at_all(file, 8, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 2);
    OK(MPI_File_read_at(file, 0, numbers, 10, MPI_SHORT, &status));
    CHECK_COUNT(&status, MPI_SHORT, 5);
    OK(MPI_Get_elements(&status, MPI_SHORT, &elements));
    CHECK_INT(elements, 5);
    OK(MPI_File_seek(file, 8, MPI_SEEK_SET));
    OK(MPI_File_read(file, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 2);
    OK(MPI_File_read(file, in, 8, MPI_CHAR, &status));
    CHECK_COUNT(&status, MPI_CHAR, 0);
    CHECK_BYTES(in, "ij", 2);
    OK(MPI_File_close(&file));
}

/* A pair of which only the first half is in the file. */
static void end_within_an_element(void)
{
    int in[6] = {0}, elements = -1;
    MPI_Status status;
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    io_make(io_path("half"), "aaaabbbbcccc", 12);
    MPI_File file = io_open(WORLD, "half", MPI_MODE_RDONLY);
    OK(MPI_File_read(file, in, 3, pair, &status));
    CHECK_COUNT(&status, pair, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, pair, &elements));
    CHECK_INT(elements, 3);
    CHECK_BYTES(in, "aaaabbbbcccc", 12);
    OK(MPI_Type_free(&pair));
    OK(MPI_File_close(&file));
}

static void sizes(void)
{
    char in[10];
    MPI_Offset bytes = -1;
    io_make(io_path("sizes"), "0123456789", 10);
    MPI_File file = io_open(WORLD, "sizes", MPI_MODE_RDWR);
    OK(MPI_File_set_size(file, 100));
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 100);
    OK(MPI_File_set_size(file, 4));
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 4);
    OK(MPI_File_read_at(file, 0, in, 4, MPI_CHAR, NO_STATUS));
    CHECK_BYTES(in, "0123", 4);
    OK(MPI_File_preallocate(file, 5000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 5000);
    OK(MPI_File_preallocate(file, 50)); /* never shorter */
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 5000);
    OK(MPI_File_read_at(file, 0, in, 4, MPI_CHAR, NO_STATUS));
    CHECK_BYTES(in, "0123", 4);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_close(&file));
    CHECK_INT(io_size(io_path("sizes")), 0);
}

static void information(void)
{
    MPI_Info info, used;
    MPI_File file;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag, n;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "access_style", "read_once,sequential"));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_Info_set(info, "cb_nodes", "1"));
    OK(MPI_Info_set(info, "a_hint_of_nobody", "42"));
    OK(MPI_File_open(WORLD, io_path("info"), NEW, info, &file));
    OK(MPI_File_get_info(file, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get_nkeys(used, &n));
    CHECK(n >= 0);
    OK(MPI_Info_get(used, "cb_buffer_size", MPI_MAX_INFO_VAL, value, &flag));
    if (flag)
        CHECK_STR(value, "65536");
    OK(MPI_Info_free(&used));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
    OK(MPI_File_get_info(file, &used));
    CHECK(used != MPI_INFO_NULL && used != info);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0)
        OK(MPI_File_delete(io_path("info"), MPI_INFO_NULL));
    OK(MPI_Barrier(WORLD));
    CHECK_INT(io_size(io_path("info")), -1);
}

/* What one rank has written and synchronised, a second one reads after that. */
static void sync_and_see(void)
{
    MPI_File file = io_new("sync");
    for (int round = 0; round < 20; round++) {
        int writer = round % lt_size, in = -1;
        if (lt_rank == writer)
            OK(MPI_File_write_at(file, 0, &round, 1, MPI_INT, NO_STATUS));
        io_settle(file);
        OK(MPI_File_read_at(file, 0, &in, 1, MPI_INT, NO_STATUS));
        CHECK_INT(in, round);
        OK(MPI_Barrier(WORLD));
    }
    OK(MPI_File_close(&file));
}

/* Files of one rank each, and of half of the ranks. */
static void other_communicators(void)
{
    char name[20];
    int in[2] = {-1, -1}, half, position;
    MPI_Group group;
    MPI_Comm comm;
    snprintf(name, sizeof name, "self-%d", lt_rank);
    MPI_File own = io_open(MPI_COMM_SELF, name, NEW);
    for (int i = 0; i <= lt_rank; i++)
        OK(MPI_File_write(own, &i, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_get_group(own, &group));
    OK(MPI_Group_size(group, &half));
    CHECK_INT(half, 1);
    OK(MPI_Group_free(&group));
    OK(MPI_File_close(&own));
    CHECK_INT(io_size(io_path(name)), 4 * (lt_rank + 1));
    OK(MPI_Comm_split(WORLD, lt_rank % 2, -lt_rank, &comm));
    OK(MPI_Comm_rank(comm, &position));
    MPI_File file = io_open(comm, lt_rank % 2 ? "odd" : "even", NEW);
    OK(MPI_Comm_free(&comm)); /* the file has its own */
    OK(MPI_File_write_at_all(file, 4 * (MPI_Offset)position, &lt_rank, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, 0, in, 1, MPI_INT, NO_STATUS));
    CHECK_INT(in[0] % 2, lt_rank % 2);
    CHECK(in[0] + 2 >= lt_size);
    OK(MPI_File_close(&file));
}

static int open_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void many_files(void)
{
    enum { FILES = 30 };
    MPI_File files[FILES];
    char name[20];
    int in = -1, before = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof name, "many-%d", i);
            files[i] = io_open(WORLD, name, NEW);
            OK(MPI_File_write_at(files[i], 4 * (MPI_Offset)lt_rank, &i, 1, MPI_INT, NO_STATUS));
        }
        for (int i = 0; i < FILES; i++) {
            OK(MPI_File_read_at(files[i], 4 * (MPI_Offset)lt_rank, &in, 1, MPI_INT, NO_STATUS));
            CHECK_INT(in, i);
            OK(MPI_File_close(&files[i]));
        }
        if (round == 0)
            before = open_descriptors();
    }
    CHECK(open_descriptors() <= before + 5); /* some for connections, none for each file */
}

static void extents(void)
{
    MPI_File file = io_new("extents");
    MPI_Aint extent = -1, lb, expected;
    MPI_Datatype type;
    int blocks[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, blocks, places, types, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK_INT(extent, 4);
    OK(MPI_File_get_type_extent(file, type, &extent));
    OK(MPI_Type_get_extent(type, &lb, &expected));
    CHECK_INT(extent, expected);
    OK(MPI_Type_free(&type));
    OK(MPI_File_close(&file));
}

IO_MAIN("io_basic", TEST(open_and_close), TEST(modes_of_opening), TEST(explicit_offsets), TEST(types_of_memory),
        TEST(individual_pointers), TEST(end_of_file), TEST(end_within_an_element), TEST(sizes), TEST(information),
        TEST(sync_and_see), TEST(other_communicators), TEST(many_files), TEST(extents))
