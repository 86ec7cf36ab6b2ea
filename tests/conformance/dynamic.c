/* Dynamic processes: MPI-5 sections 11.7 to 11.10. The program spawns itself; the first argument of a spawned process
 * says what it is to do. A check that fails in a spawned process ends the job with 1. */
#include "dynamic.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

static char *program;

/* Spawns `n` processes that do `role`, from `comm`. */
static MPI_Comm spawn(const char *role, int n, MPI_Comm comm, int root)
{
    MPI_Comm children = MPI_COMM_NULL;
    char *argv[] = {(char *)role, "a b", "", NULL};
    int codes[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    OK(MPI_Comm_spawn(program, argv, n, MPI_INFO_NULL, root, comm, &children, codes));
    for (int i = 0; i < n; i++)
        CHECK_INT(codes[i], MPI_SUCCESS);
    return children;
}

static void nobody_has_spawned_the_first_processes(void)
{
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    int *universe, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag));
    CHECK(flag && *universe >= lt_size);
}

static void spawned_processes_talk_with_all(void)
{
    MPI_Comm children = spawn("talk", 2, MPI_COMM_WORLD, lt_size - 1);
    talk(children);
    OK(MPI_Comm_disconnect(&children));
    CHECK(children == MPI_COMM_NULL);
}

static void merged_groups_work_together(void)
{
    MPI_Comm children = spawn("merge", 3, MPI_COMM_WORLD, 0);
    merge(children, 0);
    OK(MPI_Comm_disconnect(&children));
}

static void each_process_may_spawn(void)
{
    MPI_Comm children = spawn("talk", 1, MPI_COMM_SELF, 0);
    talk(children);
    OK(MPI_Comm_disconnect(&children));
}

static void a_part_may_spawn(void)
{
    MPI_Comm part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank % 2, -lt_rank, &part));
    MPI_Comm children = spawn("merge", 2, part, 0);
    merge(children, 0);
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Comm_free(&part));
}

static void spawned_processes_spawn(void)
{
    MPI_Comm children = spawn("nested", 2, MPI_COMM_WORLD, 0);
    talk(children);
    OK(MPI_Comm_disconnect(&children));
}

static void several_programs_make_one_world(void)
{
    MPI_Comm children;
    char *commands[] = {program, program};
    char *first[] = {"appnum", "0", NULL}, *second[] = {"appnum", "1", NULL};
    char **lists[] = {first, second};
    int counts[] = {2, 1}, codes[3] = {-1, -1, -1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Comm_spawn_multiple(2, commands, lists, counts, infos, 0, MPI_COMM_WORLD, &children, codes));
    int remote;
    OK(MPI_Comm_remote_size(children, &remote));
    CHECK_INT(remote, 3);
    CHECK_INT(codes[2], MPI_SUCCESS);
    talk(children);
    OK(MPI_Comm_disconnect(&children));
}

static void the_folder_is_that_of_the_info_object(void)
{
    MPI_Comm children;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "wdir", "/"));
    char *argv[] = {"folder", "/", NULL};
    OK(MPI_Comm_spawn(program, argv, 1, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    talk(children);
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Info_free(&info));
}

static void what_cannot_be_started_is_an_error(void)
{
    MPI_Comm children = MPI_COMM_WORLD;
    int codes[2] = {0, 0};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("no-such-program-at-all", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                        &children, codes));
    CHECK(children == MPI_COMM_NULL);
    /* On all ranks, though only the root says how many are to be started. */
    CHECK_INT(lt_class(codes[0]), MPI_ERR_SPAWN);
    CHECK_INT(lt_class(codes[1]), MPI_ERR_SPAWN);
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/dev/null", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                                        MPI_ERRCODES_IGNORE));
    /* It ends before MPI_Init. */
    FAILS(MPI_ERR_SPAWN,
          MPI_Comm_spawn("true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("true", MPI_ARGV_NULL, 100000, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                                        MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_ROOT, MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, lt_size, MPI_COMM_WORLD, &children,
                                       MPI_ERRCODES_IGNORE));
    /* The library stays usable. */
    children = spawn("talk", 1, MPI_COMM_WORLD, 0);
    talk(children);
    OK(MPI_Comm_disconnect(&children));
}

static void groups_connect_by_a_port(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm children = spawn("connect", 2, MPI_COMM_WORLD, 0), other;
    if (lt_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, children));
    }
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
        talk(other);
        OK(MPI_Comm_disconnect(&other));
    }
    if (lt_rank == 0)
        OK(MPI_Close_port(port));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    FAILS(MPI_ERR_PORT, MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect("no port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    if (lt_rank == 0)
        FAILS(MPI_ERR_PORT, MPI_Close_port(port));
    OK(MPI_Comm_disconnect(&children));
}

/* Two groups that were spawned by different processes meet. */
static void separate_spawns_connect(void)
{
    MPI_Comm first = spawn("meet accept", 2, MPI_COMM_WORLD, 0), second = spawn("meet connect", 1, MPI_COMM_WORLD, 0);
    char port[MPI_MAX_PORT_NAME];
    if (lt_rank == 0) {
        OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, first, MPI_STATUS_IGNORE));
        OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, second));
    }
    OK(MPI_Comm_disconnect(&first));
    OK(MPI_Comm_disconnect(&second));
}

static void services_have_names(void)
{
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], service[64];
    /* Other jobs of this user see it too. */
    int number = (int)getpid();
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(service, sizeof service, "limosa-service-%d", number);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, found));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (lt_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Publish_name(service, MPI_INFO_NULL, port));
    }
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
    CHECK_STR(found, port);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (lt_rank == 0) {
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
}

/* Two connected sockets, one of rank 0 and one of rank 1 of `two`. On one host they have a name in the abstract
 * namespace, which both ranks know; between hosts they use the network. */
static int connected(MPI_Comm two)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", own[MPI_MAX_PROCESSOR_NAME] = "";
    int length, apart, pid = (int)getpid();
    OK(MPI_Get_processor_name(own, &length));
    memcpy(name, own, sizeof name);
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, two));
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, two));
    apart = strcmp(name, own) != 0;
    OK(MPI_Allreduce(MPI_IN_PLACE, &apart, 1, MPI_INT, MPI_MAX, two));
    struct {
        sa_family_t family;
        char name[32];
    } here = {AF_UNIX, ""};
    snprintf(here.name + 1, sizeof here.name - 1, "limosa-test-%d", pid);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct sockaddr *address = apart ? (struct sockaddr *)&there : (struct sockaddr *)&here;
    socklen_t bytes = apart ? sizeof there : sizeof here;
    int fd = socket(apart ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    if (lt_rank == 0) {
        int listener = fd;
        CHECK(bind(listener, address, bytes) == 0 && listen(listener, 1) == 0);
        CHECK(!apart || getsockname(listener, address, &bytes) == 0);
        OK(MPI_Bcast(&there.sin_port, sizeof there.sin_port, MPI_BYTE, 0, two));
        fd = accept(listener, NULL, NULL);
        close(listener);
        return fd;
    }
    struct addrinfo *found = NULL, wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    if (apart && getaddrinfo(name, NULL, &wanted, &found) == 0) {
        memcpy(&there, found->ai_addr, sizeof there);
        freeaddrinfo(found);
    }
    OK(MPI_Bcast(&there.sin_port, sizeof there.sin_port, MPI_BYTE, 0, two));
    CHECK(connect(fd, address, bytes) == 0);
    return fd;
}

static void sockets_join(void)
{
    MPI_Comm other;
    FAILS(MPI_ERR_ARG, MPI_Comm_join(-1, &other));
    int ends[2];
    if (pipe(ends) == 0) {
        FAILS(MPI_ERR_ARG, MPI_Comm_join(ends[0], &other));
        close(ends[0]);
        close(ends[1]);
    }
    if (lt_rank > 1 || lt_size < 2)
        return;
    MPI_Comm two;
    MPI_Group all, pair;
    int ranks[] = {0, 1};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 2, ranks, &pair));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, pair, 0, &two));
    OK(MPI_Group_free(&pair));
    OK(MPI_Group_free(&all));
    int fd = connected(two);
    OK(MPI_Comm_join(fd, &other));
    talk(other);
    OK(MPI_Comm_disconnect(&other));
    /* The socket is the program's again, with nothing left in it. */
    char byte = 0;
    if (lt_rank == 0)
        CHECK(write(fd, "x", 1) == 1);
    else
        CHECK(read(fd, &byte, 1) == 1 && byte == 'x');
    close(fd);
    OK(MPI_Comm_free(&two));
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* Resident memory in pages. */
static long pages(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = -1;
    if (file)
        fclose(file);
    return resident;
}

static void cycles_leave_nothing(void)
{
    int rounds = getenv("FULL") ? 1000 : 100, files = 0, threads = 0;
    long memory = 0;
    for (int i = 0; i < rounds; i++) {
        MPI_Comm children = spawn("leave", 2, MPI_COMM_WORLD, 0);
        int sum;
        OK(MPI_Allreduce(&lt_rank, &sum, 1, MPI_INT, MPI_SUM, children));
        OK(MPI_Comm_disconnect(&children));
        if (i == 20) {
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
            memory = pages();
        }
    }
    /* Descriptors of processes that have just ended may be open for a moment. */
    CHECK(entries("/proc/self/fd") < files + 20);
    /* The threads that set an alarm and that watch for deaths start when they are first needed, and stay. */
    threads += 2;
    for (int i = 0; i < 10000 && entries("/proc/self/task") > threads; i++)
        usleep(10000); /* Threads of connections end a moment later. */
    CHECK(entries("/proc/self/task") <= threads);
    /* Less than a page for each round: handles and numbers that are kept, at most. On several hosts numbers are used
     * once, and each has a place on the status board. */
    CHECK(pages() - memory < rounds * (lt_one_host() ? 1 : 4));
}

static void be_a_child(char **argv, MPI_Comm parent)
{
    const char *role = argv[1];
    char name[MPI_MAX_OBJECT_NAME];
    int length, *appnum, flag;
    lt_current = role;
    OK(MPI_Comm_get_name(parent, name, &length));
    CHECK_STR(name, "MPI_COMM_PARENT");
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
    CHECK(flag);
    if (strcmp(role, "talk") == 0) {
        CHECK_STR(argv[2], "a b");
        CHECK_STR(argv[3], "");
        talk(parent);
    } else if (strcmp(role, "merge") == 0) {
        merge(parent, 1);
    } else if (strcmp(role, "nested") == 0) {
        MPI_Comm children = spawn("merge", 1, MPI_COMM_WORLD, 1);
        talk(parent);
        merge(children, 0);
        OK(MPI_Comm_disconnect(&children));
    } else if (strcmp(role, "appnum") == 0) {
        CHECK_INT(*appnum, atoi(argv[2]));
        CHECK_INT(lt_size, 3);
        talk(parent);
    } else if (strcmp(role, "folder") == 0) {
        char folder[4096];
        CHECK_STR(getcwd(folder, sizeof folder), argv[2]);
        talk(parent);
    } else if (strcmp(role, "connect") == 0) {
        char port[MPI_MAX_PORT_NAME] = "";
        MPI_Comm other;
        if (lt_rank == 0)
            OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE));
        for (int i = 0; i < 3; i++) {
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
            talk(other);
            OK(MPI_Comm_disconnect(&other));
        }
    } else if (strcmp(role, "meet accept") == 0) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Comm other;
        if (lt_rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent));
        }
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
        talk(other);
        merge(other, 0);
        OK(MPI_Comm_disconnect(&other));
    } else if (strcmp(role, "meet connect") == 0) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Comm other;
        OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE));
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
        talk(other);
        merge(other, 1);
        OK(MPI_Comm_disconnect(&other));
    } else {
        int sum;
        OK(MPI_Allreduce(&lt_rank, &sum, 1, MPI_INT, MPI_SUM, parent));
    }
    MPI_Comm again;
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parent);
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {
        TEST(nobody_has_spawned_the_first_processes),
        TEST(spawned_processes_talk_with_all),
        TEST(merged_groups_work_together),
        TEST(each_process_may_spawn),
        TEST(a_part_may_spawn),
        TEST(spawned_processes_spawn),
        TEST(several_programs_make_one_world),
        TEST(the_folder_is_that_of_the_info_object),
        TEST(what_cannot_be_started_is_an_error),
        TEST(groups_connect_by_a_port),
        TEST(separate_spawns_connect),
        TEST(services_have_names),
        TEST(sockets_join),
        TEST(cycles_leave_nothing),
    };
    static char path[4096];
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 98;
    program = realpath(argv[0], path);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_rank(MPI_COMM_WORLD, &lt_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &lt_size);
        MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
        be_a_child(argv, parent);
    } else {
        lt_run("dynamic", tests, sizeof tests / sizeof *tests);
    }
    MPI_Finalize();
    return lt_failures != 0;
}
