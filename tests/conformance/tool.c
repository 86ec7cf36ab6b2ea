/* The tool information interface MPI_T: control and performance variables, enumerations, categories, events and their
 * errors; before, during and after MPI: MPI-5 chapter 15. */
#include "limosa_test.h"

static void names_and_lengths(void)
{
    int n, len, verbosity, bind, scope, found;
    MPI_Datatype type;
    MPI_T_enum words;
    char name[200], text[400];
    OK(MPI_T_cvar_get_num(&n));
    CHECK(n > 10);
    for (int i = 0; i < n; i++) {
        int name_len = sizeof name, text_len = sizeof text;
        OK(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &words, text, &text_len, &bind, &scope));
        CHECK_INT(name_len, (int)strlen(name) + 1);
        CHECK_INT(text_len, (int)strlen(text) + 1);
        CHECK(strncmp(name, "LIMOSA_", 7) == 0);
        CHECK_INT(bind, MPI_T_BIND_NO_OBJECT);
        OK(MPI_T_cvar_get_index(name, &found));
        CHECK_INT(found, i);
    }
    /* A short array gets what fits; the length that is needed comes back; all pointers may be null. */
    len = 4;
    OK(MPI_T_cvar_get_info(0, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK_INT((int)strlen(name), 3);
    CHECK(len > 4);
    len = 0;
    OK(MPI_T_cvar_get_info(0, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(len > 4);
    OK(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK_INT(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CHECK_INT(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CHECK_INT(MPI_T_cvar_get_index("LIMOSA_NO_SUCH", &found), MPI_T_ERR_INVALID_NAME);
    CHECK_INT(MPI_T_cvar_get_index(NULL, &found), MPI_T_ERR_INVALID);
}

static MPI_T_cvar_handle variable(const char *name, int *count)
{
    int index;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, count));
    return handle;
}

static void control_variables(void)
{
    int count, wait, cma, index, items, value, len, written = 1;
    unsigned long long eager;
    double after;
    static char table[1 << 16];
    char word[40];
    MPI_T_enum words;
    MPI_T_cvar_handle handle = variable("LIMOSA_WAIT", &count), stale;
    CHECK_INT(count, 1);
    OK(MPI_T_cvar_read(handle, &wait));
    OK(MPI_T_cvar_get_index("LIMOSA_WAIT", &index));
    OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &words, NULL, NULL, NULL, NULL));
    CHECK(words != MPI_T_ENUM_NULL);
    OK(MPI_T_enum_get_info(words, &items, NULL, NULL));
    CHECK_INT(items, 3);
    len = sizeof word;
    OK(MPI_T_enum_get_item(words, wait, &value, word, &len));
    const char *set = getenv("LIMOSA_WAIT");
    CHECK_STR(word, set ? set : "auto");
    CHECK_INT(MPI_T_enum_get_item(words, 3, &value, word, &len), MPI_T_ERR_INVALID_ITEM);
    CHECK_INT(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &items, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    /* The library has read it: it is too late. */
    CHECK_INT(MPI_T_cvar_write(handle, &written), MPI_T_ERR_CVAR_SET_NOT_NOW);
    stale = handle;
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    CHECK_INT(MPI_T_cvar_read(stale, &wait), MPI_T_ERR_INVALID_HANDLE);
    CHECK_INT(MPI_T_cvar_handle_free(&handle), MPI_T_ERR_INVALID_HANDLE);

    handle = variable("LIMOSA_EAGER", &count);
    OK(MPI_T_cvar_read(handle, &eager));
    /* As the program set it before MPI_Init. */
    CHECK_INT((int)eager, 5000);
    OK(MPI_T_cvar_handle_free(&handle));
    handle = variable("LIMOSA_CMA", &count);
    OK(MPI_T_cvar_read(handle, &cma));
    CHECK_INT(cma, getenv("LIMOSA_CMA") ? atoi(getenv("LIMOSA_CMA")) : 1);
    OK(MPI_T_cvar_handle_free(&handle));
    handle = variable("LIMOSA_COLL_TABLE", &count);
    CHECK(count > 1 && count < (int)sizeof table);
    OK(MPI_T_cvar_read(handle, table));
    CHECK_STR(table, "");
    OK(MPI_T_cvar_handle_free(&handle));
    handle = variable("LIMOSA_HANG_AFTER", &count);
    OK(MPI_T_cvar_read(handle, &after));
    CHECK(after > 0);
    CHECK_INT(MPI_T_cvar_write(handle, &after), MPI_T_ERR_CVAR_SET_NEVER);
    OK(MPI_T_cvar_handle_free(&handle));
}

static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter(const char *name, int var_class)
{
    int index = -1, count;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    OK(MPI_T_pvar_get_index(name, var_class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    CHECK_INT(count, 1);
    return handle;
}

static unsigned long long read_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 12345678;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static void exchange(int times, int bytes)
{
    static char out[1 << 20], in[1 << 20];
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int i = 0; i < times; i++)
        OK(MPI_Sendrecv(out, bytes, MPI_CHAR, to, 1, in, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void performance_variables(void)
{
    enum { N = 4 };
    const char *names[N] = {"limosa_messages_sent", "limosa_bytes_sent", "limosa_messages_received",
                            "limosa_bytes_received"};
    int classes[N] = {MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_CLASS_AGGREGATE, MPI_T_PVAR_CLASS_COUNTER,
                      MPI_T_PVAR_CLASS_AGGREGATE};
    int sizes[] = {0, 8, 300, 5000, 20000, 1 << 20}, n, found;
    MPI_T_pvar_handle handles[N];
    unsigned long long value;
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < N; i++)
        handles[i] = counter(names[i], classes[i]);
    CHECK_INT(MPI_T_pvar_get_index("limosa_messages_sent", MPI_T_PVAR_CLASS_LEVEL, &found), MPI_T_ERR_INVALID_NAME);
    exchange(3, 8);
    for (int i = 0; i < N; i++)
        CHECK_INT((int)read_of(handles[i]), 0); /* not started */
    for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
        OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
        OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
        exchange(5, sizes[s]);
        OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
        exchange(2, 100); /* not counted */
        for (int i = 0; i < N; i++)
            CHECK_INT((int)read_of(handles[i]), i % 2 ? 5 * sizes[s] : 5);
    }
    OK(MPI_T_pvar_readreset(session, handles[0], &value));
    CHECK_INT((int)value, 5);
    CHECK_INT((int)read_of(handles[0]), 0);
    value = 40;
    OK(MPI_T_pvar_write(session, handles[0], &value));
    OK(MPI_T_pvar_start(session, handles[0]));
    exchange(2, 8);
    CHECK_INT((int)read_of(handles[0]), 42);
    /* Levels run by themselves. */
    MPI_T_pvar_handle level = counter("limosa_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL);
    int flag = 0, byte = 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unsigned long long before = read_of(level);
    OK(MPI_Send(&byte, 1, MPI_INT, lt_rank, 7, MPI_COMM_WORLD));
    OK(MPI_Iprobe(lt_rank, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK_INT((int)(read_of(level) - before), 1);
    OK(MPI_Recv(&byte, 1, MPI_INT, lt_rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT((int)(read_of(level) - before), 0);
    CHECK_INT(MPI_T_pvar_start(session, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_INT(MPI_T_pvar_reset(session, level), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_INT(MPI_T_pvar_write(session, level, &value), MPI_T_ERR_PVAR_NO_WRITE);
    /* Every variable can be read. */
    OK(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        int var_class, readonly, continuous, atomic, count, len = 100;
        char name[100];
        MPI_T_pvar_handle handle;
        OK(MPI_T_pvar_get_info(i, name, &len, NULL, &var_class, NULL, NULL, NULL, NULL, NULL, &readonly, &continuous,
                               &atomic));
        OK(MPI_T_pvar_get_index(name, var_class, &found));
        CHECK_INT(found, i);
        CHECK_INT(readonly, continuous);
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
        OK(MPI_T_pvar_read(session, handle, &value));
    }
    MPI_T_pvar_session other, stale = session;
    OK(MPI_T_pvar_session_create(&other));
    CHECK_INT(MPI_T_pvar_read(other, level, &value), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_session_free(&other));
    OK(MPI_T_pvar_handle_free(session, &level));
    CHECK(level == MPI_T_PVAR_HANDLE_NULL);
    OK(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    CHECK_INT(MPI_T_pvar_read(stale, handles[0], &value), MPI_T_ERR_INVALID_SESSION);
    CHECK_INT(MPI_T_pvar_session_free(&session), MPI_T_ERR_INVALID_SESSION);
}

/* What the counts of one operation's algorithms add up to, those by one way alone if it is given. */
static unsigned long long chosen(MPI_T_pvar_session session, const char *operation, const char *way, int create)
{
    static MPI_T_pvar_handle handles[300];
    char prefix[60], name[100];
    int n;
    unsigned long long sum = 0, value;
    snprintf(prefix, sizeof prefix, "limosa_coll_%s_%s", operation, way);
    OK(MPI_T_pvar_get_num(&n));
    CHECK(n <= 300);
    for (int i = 0; i < n; i++) {
        int len = sizeof name, count, var_class;
        OK(MPI_T_pvar_get_info(i, name, &len, NULL, &var_class, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        if (create) {
            OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handles[i], &count));
            if (var_class != MPI_T_PVAR_CLASS_LEVEL)
                OK(MPI_T_pvar_start(session, handles[i]));
        } else if (strncmp(name, prefix, strlen(prefix)) == 0) {
            OK(MPI_T_pvar_read(session, handles[i], &value));
            sum += value;
        }
    }
    return sum;
}

static void algorithms_of_collectives(void)
{
    MPI_T_pvar_session own;
    MPI_Request request;
    int one = 1, sum;
    OK(MPI_T_pvar_session_create(&own));
    chosen(own, "", "", 1);
    for (int i = 0; i < 5; i++)
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    const char *coll = getenv("LIMOSA_COLL");
    if (lt_size > 1 && lt_one_host() && (coll == NULL || strcmp(coll, "auto") == 0)) {
        CHECK_INT(chosen(own, "allreduce", "shared_slots", 0), 5);
        CHECK_INT(chosen(own, "allreduce", "background_mailbox", 0), 3);
        CHECK_INT(chosen(own, "allreduce", "", 0), 8);
        CHECK_INT(chosen(own, "bcast", "", 0), 1);
        CHECK_INT(chosen(own, "scan", "", 0), 1);
    } else if (lt_one_host()) {
        CHECK(chosen(own, "allreduce", "messages", 0) >= 5);
        CHECK(chosen(own, "allreduce", "", 0) >= 8);
    } else {
        /* Parts of an operation are counted, too. */
        CHECK(chosen(own, "allreduce", "messages", 0) >= 8);
        CHECK(chosen(own, "bcast", "messages", 0) >= 1);
        CHECK(chosen(own, "scan", "messages", 0) >= 1);
        CHECK_INT(chosen(own, "allreduce", "background", 0), 0);
    }
    OK(MPI_T_pvar_session_free(&own));
}

static void categories(void)
{
    int n, found, cvars, pvars, subs, events, total[3] = {0}, all[3], list[300], changed = -1;
    OK(MPI_T_category_get_num(&n));
    for (int i = 0; i < n; i++) {
        char name[100];
        int len = sizeof name;
        OK(MPI_T_category_get_info(i, name, &len, NULL, NULL, &cvars, &pvars, &subs));
        OK(MPI_T_category_get_num_events(i, &events));
        OK(MPI_T_category_get_index(name, &found));
        CHECK_INT(found, i);
        OK(MPI_T_category_get_cvars(i, 100, list));
        OK(MPI_T_category_get_pvars(i, 300, list));
        OK(MPI_T_category_get_events(i, 100, list));
        OK(MPI_T_category_get_categories(i, 100, list));
        total[0] += cvars, total[1] += pvars, total[2] += events;
    }
    OK(MPI_T_cvar_get_num(&all[0]));
    OK(MPI_T_pvar_get_num(&all[1]));
    OK(MPI_T_event_get_num(&all[2]));
    for (int i = 0; i < 3; i++)
        CHECK_INT(total[i], all[i]); /* each is in one */
    OK(MPI_T_category_changed(&changed));
    CHECK_INT(changed, 0);
    CHECK_INT(MPI_T_category_get_cvars(n, 1, list), MPI_T_ERR_INVALID_INDEX);
    CHECK_INT(MPI_T_category_get_index("none", &found), MPI_T_ERR_INVALID_NAME);
}

static struct {
    int calls, size, source;
    unsigned long long context;
    MPI_Count time;
    MPI_T_event_instance last;
} seen;

static void note(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    char copy[12];
    (void)registration, (void)safety;
    CHECK_PTR(data, &seen);
    seen.calls++;
    seen.last = event;
    OK(MPI_T_event_read(event, 0, &seen.context));
    OK(MPI_T_event_read(event, 1, &seen.size));
    OK(MPI_T_event_get_timestamp(event, &seen.time));
    OK(MPI_T_event_get_source(event, &seen.source));
    OK(MPI_T_event_copy(event, copy));
    CHECK_BYTES(copy, &seen.context, 8);
    CHECK_BYTES(copy + 8, &seen.size, 4);
    CHECK_INT(MPI_T_event_read(event, 2, copy), MPI_T_ERR_INVALID_INDEX);
}

static int freed;

static void note_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety;
    freed += data == &seen;
}

static void events(void)
{
    int index, elements = 2, sources;
    MPI_Datatype types[2];
    MPI_Aint displacements[2];
    MPI_T_event_registration made, failed, stale;
    MPI_Comm comm;
    MPI_Count before, after, ticks;
    MPI_Info info;
    OK(MPI_T_event_get_index("limosa_comm_created", &index));
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, types, displacements, &elements, NULL, &info, NULL, NULL, NULL));
    CHECK_INT(elements, 2);
    CHECK(types[0] == MPI_UNSIGNED_LONG_LONG && types[1] == MPI_INT);
    CHECK_INT((int)displacements[1], 8);
    OK(MPI_Info_free(&info));
    OK(MPI_T_source_get_num(&sources));
    CHECK_INT(sources, 1);
    OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, &ticks, NULL, NULL));
    CHECK(ticks == 1000000000);
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &made));
    OK(MPI_T_event_register_callback(made, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen, note));
    OK(MPI_T_event_get_index("limosa_error", &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &failed));
    OK(MPI_T_event_register_callback(failed, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen, note));
    OK(MPI_T_source_get_timestamp(0, &before));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_T_source_get_timestamp(0, &after));
    CHECK_INT(seen.calls, 1);
    CHECK_INT(seen.size, lt_size);
    CHECK_INT(seen.source, 0);
    CHECK(before <= seen.time && seen.time <= after);
    FAILS(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_INT, lt_size, 0, MPI_COMM_WORLD));
    CHECK_INT(seen.calls, 2);
    CHECK_INT((int)seen.context, MPI_ERR_RANK);
    CHECK_INT(MPI_T_event_read(seen.last, 0, &seen.context), MPI_T_ERR_INVALID_HANDLE); /* it is over */
    stale = failed;
    OK(MPI_T_event_handle_free(failed, &seen, note_free));
    CHECK_INT(freed, 1);
    FAILS(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_INT, lt_size, 0, MPI_COMM_WORLD));
    CHECK_INT(seen.calls, 2);
    CHECK_INT(MPI_T_event_handle_free(stale, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_event_set_dropped_handler(made, NULL));
    OK(MPI_T_event_handle_free(made, NULL, NULL));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {
        TEST(names_and_lengths),         TEST(control_variables), TEST(performance_variables),
        TEST(algorithms_of_collectives), TEST(categories),        TEST(events)};
    int provided, count, n, outside = 0;
    unsigned long long eager = 5000;
    /* Before MPI_Init: not initialised, then usable, and variables can be set. */
    outside += MPI_T_cvar_get_num(&n) != MPI_T_ERR_NOT_INITIALIZED;
    outside += MPI_T_finalize() != MPI_T_ERR_NOT_INITIALIZED;
    outside += MPI_T_init_thread(MPI_THREAD_MULTIPLE, NULL) == MPI_SUCCESS;
    outside += MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS || provided != MPI_THREAD_MULTIPLE;
    outside += MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS;
    MPI_T_cvar_handle handle = variable("LIMOSA_EAGER", &count);
    outside += MPI_T_cvar_write(handle, &eager) != MPI_SUCCESS;
    eager = 1ull << 40;
    outside += MPI_T_cvar_write(handle, &eager) != MPI_T_ERR_INVALID;
    outside += MPI_T_cvar_handle_free(&handle) != MPI_SUCCESS;
    outside += lt_failures != 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 98;
    long failures = lt_run("tool", tests, sizeof tests / sizeof *tests);
    MPI_Finalize();
    outside += MPI_T_cvar_get_num(&n) != MPI_SUCCESS;
    outside += MPI_T_finalize() != MPI_SUCCESS || MPI_T_finalize() != MPI_SUCCESS;
    outside += MPI_T_cvar_get_num(&n) != MPI_T_ERR_NOT_INITIALIZED;
    if (outside)
        printf("FAIL tool: %d checks before MPI_Init and after MPI_Finalize\n", outside);
    return failures != 0 || outside;
}
