/* lab: ranks=2 limit=300 */
/* Dynamic processes. All ranks together start four processes of this program, which do nothing but disconnect: how long
 * the call takes, which returns when they have joined (`spawn`), and how long it then takes to part from them
 * (`spawn_disconnect`). Each two ranks, by MPI_COMM_SELF, meet by a port (`connect`) and part (`connect_disconnect`).
 * Only the hot form. Nothing is transferred, but both groups must have the right sizes. */
#include "lab.h"

enum { CHILDREN = 4 };
enum what { Spawn, SpawnDisconnect, Connect, ConnectDisconnect, WHATS };

static char *program;
static char port[MPI_MAX_PORT_NAME];
static bool well = true;

static MPI_Comm meet(enum what what)
{
    MPI_Comm other;
    char *arguments[] = {(char *)"child", NULL};
    if (what == Spawn || what == SpawnDisconnect)
        MPI_Comm_spawn(program, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    else if (lab.rank % 2 == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    return other;
}

static double run(struct lab_case *c, long operations)
{
    const enum what what = *(const enum what *)c->more;
    double parts[2] = {0, 0};
    for (long i = 0; i < operations; i++) {
        int remote;
        double start = lab_now();
        MPI_Comm other = meet(what);
        double met = lab_now();
        MPI_Comm_remote_size(other, &remote);
        well = well && remote == (what == Spawn || what == SpawnDisconnect ? CHILDREN : 1);
        MPI_Comm_disconnect(&other);
        parts[1] += lab_now() - met;
        parts[0] += met - start;
    }
    return parts[what == SpawnDisconnect || what == ConnectDisconnect];
}

static bool check(struct lab_case *c, size_t slot, size_t message)
{
    (void)c;
    (void)slot;
    (void)message;
    return well;
}

static void measure(const char *bench, enum what what)
{
    static struct lab_samples samples;
    struct lab_case c = {.bench = bench, .form = "hot", .run = run, .check = check, .more = &what};
    if (!lab_wanted(bench) || !lab_pool_open(&c.pool, 8, 8, false))
        return;
    lab_measure(&c, &samples);
    lab_print_times(&c, &samples, "time", "ms", 1e3);
    lab_pool_close(&c.pool);
}

/* Some libraries cannot open a port without a server of theirs. */
static void measure_connections(void)
{
    if (!lab_wanted("connect") && !lab_wanted("connect_disconnect"))
        return;
    int opened = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (lab.rank == 0)
        opened = MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!opened) {
        if (lab.rank == 0)
            fputs("dynamic: MPI_Open_port fails: nothing can connect\n", stderr);
        return;
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    measure("connect", Connect);
    measure("connect_disconnect", ConnectDisconnect);
    if (lab.rank == 0)
        MPI_Close_port(port);
}

/* What a started process does. */
static int be_child(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    MPI_Comm_disconnect(&parent);
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc == 2 && strcmp(argv[1], "child") == 0) {
        MPI_Init(&argc, &argv);
        return be_child();
    }
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    if (lab.forms[0]) {
        measure("spawn", Spawn);
        measure("spawn_disconnect", SpawnDisconnect);
        measure_connections();
    }
    return lab_end();
}
