/* Rarely used semantics of sessions, of communicators made from groups, and of processes that find each other: MPI-5
 * chapters 7 and 11. */
#include "limosa_test.h"

#include <pthread.h>

static MPI_Group group_of(MPI_Session session, const char *set)
{
    MPI_Group group = MPI_GROUP_NULL;
    OK(MPI_Group_from_session_pset(session, set, &group));
    return group;
}

static void sessions_end_in_another_order(void)
{
    MPI_Session sessions[3];
    MPI_Group groups[3];
    MPI_Comm comms[3];
    char tag[16];
    int sum, one = 1;
    for (int i = 0; i < 3; i++) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[i]));
        groups[i] = group_of(sessions[i], i == 1 ? "mpi://SELF" : "mpi://WORLD");
        snprintf(tag, sizeof tag, "corner %d", i);
        OK(MPI_Comm_create_from_group(groups[i], tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comms[i]));
    }
    static const int order[3] = {1, 0, 2};
    for (int k = 0; k < 3; k++) {
        int i = order[k];
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i]));
        CHECK_INT(sum, i == 1 ? 1 : lt_size);
        OK(MPI_Group_free(&groups[i]));
        OK(MPI_Comm_disconnect(&comms[i]));
        OK(MPI_Session_finalize(&sessions[i]));
        CHECK(sessions[i] == MPI_SESSION_NULL);
    }
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

static void what_does_not_belong_together(void)
{
    MPI_Session first, second;
    MPI_Group group = MPI_GROUP_NULL, mine, theirs, both;
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &first));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
    REFUSED(MPI_Group_from_session_pset(first, "no such set", &group));
    REFUSED(MPI_Group_from_session_pset(MPI_SESSION_NULL, "mpi://WORLD", &group));
    mine = group_of(first, "mpi://SELF");
    theirs = group_of(second, "mpi://WORLD");
    /* Operations on groups of different sessions are erroneous, which an implementation need not notice. */
    if (MPI_Group_union(mine, theirs, &both) == MPI_SUCCESS)
        OK(MPI_Group_free(&both));
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "no group", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm == MPI_COMM_NULL);
    char longest[MPI_MAX_STRINGTAG_LEN + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Session_set_errhandler(first, MPI_ERRORS_RETURN));
#ifndef MPICH /* whose MPI_MAX_STRINGTAG_LEN is below the library's */
    REFUSED(MPI_Comm_create_from_group(mine, longest, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
#endif
    longest[MPI_MAX_STRINGTAG_LEN - 1] = 0;
    OK(MPI_Comm_create_from_group(mine, longest, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_create_from_group(mine, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&theirs));
    OK(MPI_Session_finalize(&second));
    OK(MPI_Session_finalize(&first));
    REFUSED(MPI_Session_finalize(&first));
}

static void intercommunicators_from_groups(void)
{
    if (lt_size < 2)
        return;
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Group world = group_of(session, "mpi://WORLD"), low, high;
    int half = lt_size / 2, first[1][3] = {{0, half - 1, 1}}, second[1][3] = {{half, lt_size - 1, 1}};
    OK(MPI_Group_range_incl(world, 1, first, &low));
    OK(MPI_Group_range_incl(world, 1, second, &high));
    int is_low = lt_rank < half, size, remote, is_inter;
    MPI_Comm inter, merged;
    OK(MPI_Intercomm_create_from_groups(is_low ? low : high, half - 1 > 0 && is_low ? half - 1 : 0, is_low ? high : low,
                                        is_low ? 0 : (half - 1 > 0 ? half - 1 : 0), "between", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &inter));
    OK(MPI_Comm_test_inter(inter, &is_inter));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(is_inter && size == (is_low ? half : lt_size - half) && remote == lt_size - size);
    int value = lt_rank, sum = -1, expected = 0;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter));
    for (int i = 0; i < lt_size; i++)
        if ((i < half) != is_low)
            expected += i;
    CHECK_INT(sum, expected);
    OK(MPI_Intercomm_merge(inter, !is_low, &merged));
    int rank;
    OK(MPI_Comm_rank(merged, &rank));
    CHECK_INT(rank, lt_rank);
    OK(MPI_Comm_free(&merged));
    int buffer = is_low ? -1 : 5, root = is_low ? 0 : lt_rank == half ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Bcast(&buffer, 1, MPI_INT, root, inter));
    CHECK_INT(buffer, 5);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&low));
    OK(MPI_Group_free(&high));
    OK(MPI_Session_finalize(&session));
}

static void windows_and_files_of_sessions(void)
{
    MPI_Session session;
    MPI_Comm comm;
    MPI_Win win;
    int *base, one = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Group world = group_of(session, "mpi://WORLD");
    OK(MPI_Comm_create_from_group(world, "windows", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, comm, &base, &win));
    *base = 0;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (lt_rank == 0)
        CHECK_INT(*base, lt_size);
    OK(MPI_Win_free(&win));
    MPI_File file;
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[256];
    snprintf(path, sizeof path, "%s/limosa-corners-session-%d", folder, lt_size);
    OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Comm_free(&comm)); /* the file keeps what it needs */
    OK(MPI_File_write_at_all(file, 4 * lt_rank, &lt_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&session));
}

static void ports_and_names(void)
{
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], name[64];
    snprintf(name, sizeof name, "corner of rank %d", lt_rank);
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    FAILS(MPI_ERR_NAME, MPI_Lookup_name(name, MPI_INFO_NULL, found));
    OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Lookup_name(name, MPI_INFO_NULL, found));
    CHECK(!strcmp(port, found));
    REFUSED(MPI_Publish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
    MPI_Comm comm;
    FAILS(MPI_ERR_PORT, MPI_Comm_connect("no port at all", MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm));
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
}

static MPI_Comm accepted, connected;
static char own_port[MPI_MAX_PORT_NAME];

static void *accept_it(void *nothing)
{
    FAILS(MPI_ERR_COMM, MPI_Comm_accept(own_port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &accepted));
    return nothing;
}

static void connecting_to_oneself_is_refused_on_both_sides(void)
{
    int provided;
    OK(MPI_Query_thread(&provided));
    if (provided < MPI_THREAD_MULTIPLE)
        return;
    pthread_t thread;
    MPI_Comm self;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_Open_port(MPI_INFO_NULL, own_port));
    pthread_create(&thread, NULL, accept_it, NULL);
    FAILS(MPI_ERR_COMM, MPI_Comm_connect(own_port, MPI_INFO_NULL, 0, self, &connected));
    pthread_join(thread, NULL);
    OK(MPI_Close_port(own_port));
    OK(MPI_Comm_free(&self));
}

LT_MAIN("corners_session", TEST(sessions_end_in_another_order), TEST(what_does_not_belong_together),
        TEST(intercommunicators_from_groups), TEST(windows_and_files_of_sessions), TEST(ports_and_names),
        TEST(connecting_to_oneself_is_refused_on_both_sides))
