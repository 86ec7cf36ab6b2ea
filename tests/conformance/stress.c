/* Random traffic with every byte verified.  usage: stress [seconds [seed [threads]]]
 *
 * Each thread of a rank works with its namesakes of the other ranks on two communicators of their own. A round is a
 * list of messages that all of them draw from the same generator: which rank sends what to which, on which
 * communicator, how it is sent and how it is received. So every receiver knows what must arrive, and a failure repeats
 * with the printed seed. Lengths are 0 to 1 MB, mostly short.
 *
 * Why a round ends: receives of the kinds EXACT and WILD are posted before anything is sent; only messages to such
 * receivers are sent by blocking calls. Everything else is sent by non-blocking ones. Why wildcards cannot take a
 * message of a later round: a round with wildcards ends with a barrier, and tags differ between neighbouring rounds.
 */
#include "limosa_test.h"

#include <pthread.h>

enum { MOST_MESSAGES = 64, COMMS = 2, MOST_THREADS = 4, MOST_BYTES = 1 << 20, MOST_RANKS = 64 };

/* How a rank receives what comes on one communicator in one round. */
typedef enum { EXACT, WILD, LATE, LATE_PROBE, LATE_MATCHED, STYLES } style;
/* How a message is sent; the first three may block until the receiver is there. */
typedef enum { SEND, SSEND, SENDRECV, ISEND, ISSEND, IBSEND, BSEND, SEND_INIT, MODES } mode;

typedef struct {
    int from, to, on, tag, bytes;
    mode how;
    int strided_out, strided_in, persistent_in;
    uint64_t seed;
    unsigned char *out, *in;
    int arrived;
} message;

typedef struct {
    int number;
    uint64_t state;
    MPI_Comm comms[COMMS];
    message messages[MOST_MESSAGES];
    style styles[MOST_RANKS][COMMS];
    long rounds, sent, bytes;
} worker;

static double seconds = 5, deadline;
static uint64_t first_seed;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static unsigned draw(worker *w, unsigned below)
{
    w->state = mix(w->state);
    return (unsigned)(w->state >> 32) % below;
}

/* Mostly some bytes, sometimes kilobytes, seldom up to a megabyte; often at or beside a power of two. */
static int draw_bytes(worker *w)
{
    static const int limits[] = {1, 64, 64, 64, 512, 512, 4096, 4096, 20000, 70000, 300000, MOST_BYTES};
    int limit = limits[draw(w, sizeof limits / sizeof *limits)];
    if (limit == MOST_BYTES && draw(w, 3))
        limit = 1000;
    int bytes = (int)draw(w, (unsigned)limit + 1);
    if (draw(w, 4) == 0 && bytes > 2)
        bytes = (1 << (31 - __builtin_clz((unsigned)bytes))) + (int)draw(w, 3) - 1;
    return bytes;
}

/* A message with the strided flag lies in blocks of 8 bytes with gaps of 16; its length is then a multiple of 8. */
static size_t room(int bytes, int strided)
{
    return strided ? (size_t)bytes * 3 : (size_t)bytes;
}

static unsigned char expected_byte(uint64_t seed, size_t i)
{
    return (unsigned char)(mix(seed + i / 8) >> i % 8 * 8);
}

static void fill(unsigned char *b, int bytes, int strided, uint64_t seed)
{
    for (size_t i = 0; i < (size_t)bytes; i += 8) {
        uint64_t word = mix(seed + i / 8);
        size_t n = (size_t)bytes - i < 8 ? (size_t)bytes - i : 8;
        memcpy(b + (strided ? i * 3 : i), &word, n);
    }
}

static void verify(worker *w, const message *m, const MPI_Status *status)
{
    int count = -1;
    lt_count_check();
    MPI_Get_count(status, MPI_BYTE, &count);
    if (status->MPI_SOURCE != m->from || status->MPI_TAG != m->tag || count != m->bytes)
        lt_fail(__FILE__, __LINE__,
                "seed %llu thread %d round %ld: expected %d bytes with tag %d from %d, got %d with %d from %d",
                (unsigned long long)first_seed, w->number, w->rounds, m->bytes, m->tag, m->from, count, status->MPI_TAG,
                status->MPI_SOURCE);
    for (size_t i = 0; i < (size_t)m->bytes; i += 8) {
        uint64_t word = mix(m->seed + i / 8);
        size_t n = (size_t)m->bytes - i < 8 ? (size_t)m->bytes - i : 8, at = m->strided_in ? i * 3 : i;
        if (memcmp(m->in + at, &word, n) != 0) {
            while (m->in[at] == expected_byte(m->seed, i))
                at++, i++;
            lt_fail(
                __FILE__, __LINE__,
                "seed %llu thread %d round %ld: byte %zu of %d from %d, tag %d, mode %d: expected 0x%02x, got 0x%02x",
                (unsigned long long)first_seed, w->number, w->rounds, i, m->bytes, m->from, m->tag, m->how,
                expected_byte(m->seed, i), m->in[at]);
            return;
        }
    }
}

/* Type and count for a message of this length; a derived type is freed by `drop`. */
static int shape(int bytes, int strided, MPI_Datatype *type)
{
    *type = MPI_BYTE;
    if (!strided)
        return bytes;
    OK(MPI_Type_vector(bytes / 8, 8, 24, MPI_BYTE, type));
    OK(MPI_Type_commit(type));
    return 1;
}

static void drop(MPI_Datatype *type)
{
    if (*type != MPI_BYTE)
        OK(MPI_Type_free(type));
}

static void draw_round(worker *w, int *n)
{
    *n = (int)draw(w, (unsigned)(4 * lt_size < MOST_MESSAGES ? 4 * lt_size : MOST_MESSAGES)) + 1;
    for (int r = 0; r < lt_size; r++) {
        for (int c = 0; c < COMMS; c++)
            w->styles[r][c] = (style)draw(w, STYLES);
    }
    for (int i = 0; i < *n; i++) {
        message *m = &w->messages[i];
        *m = (message){
            .from = (int)draw(w, (unsigned)lt_size), .to = (int)draw(w, (unsigned)lt_size), .on = (int)draw(w, COMMS)};
        m->tag = (int)(w->rounds % 100) * 100 + i;
        m->bytes = draw_bytes(w);
        m->how = (mode)draw(w, MODES);
        style receiver = w->styles[m->to][m->on];
        if (receiver >= LATE && m->how <= SENDRECV)
            m->how = ISEND;
        m->strided_out = m->bytes >= 8 && draw(w, 6) == 0;
        /* Wildcard receives do not know which message comes: they take it as bytes. */
        m->strided_in = m->bytes >= 8 && receiver != WILD && receiver != LATE_PROBE && draw(w, 6) == 0;
        m->persistent_in = draw(w, 8) == 0;
        if (m->strided_out || m->strided_in)
            m->bytes -= m->bytes % 8;
        m->seed = mix(first_seed ^ mix((uint64_t)w->number << 56 ^ (uint64_t)w->rounds << 8 ^ (uint64_t)i));
    }
}

/* The message of this round that a status tells of; NULL if there is none for us. */
static message *find(worker *w, int n, const MPI_Status *status, int on)
{
    int i = status->MPI_TAG - (int)(w->rounds % 100) * 100;
    if (i < 0 || i >= n || w->messages[i].to != lt_rank || w->messages[i].on != on || w->messages[i].arrived++) {
        lt_fail(__FILE__, __LINE__, "seed %llu thread %d round %ld: unexpected message with tag %d from %d",
                (unsigned long long)first_seed, w->number, w->rounds, status->MPI_TAG, status->MPI_SOURCE);
        return NULL;
    }
    return &w->messages[i];
}

static int for_me(const message *m, int on)
{
    return m->to == lt_rank && m->on == on;
}

/* Posts the receives of the kinds EXACT and WILD. Wildcard buffers are as long as the longest message to come. */
static int post(worker *w, int n, MPI_Request *requests, message **owners, unsigned char **wild, int *wild_on)
{
    int posted = 0;
    for (int c = 0; c < COMMS; c++) {
        style how = w->styles[lt_rank][c];
        int longest = 0;
        for (int i = 0; i < n; i++)
            longest = for_me(&w->messages[i], c) && w->messages[i].bytes > longest ? w->messages[i].bytes : longest;
        for (int i = 0; i < n && how <= WILD; i++) {
            message *m = &w->messages[i];
            if (!for_me(m, c))
                continue;
            if (how == WILD) {
                wild[posted] = lt_alloc((size_t)longest);
                wild_on[posted] = c;
                owners[posted] = NULL;
                OK(MPI_Irecv(wild[posted], longest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, w->comms[c],
                             &requests[posted]));
            } else {
                MPI_Datatype type;
                m->in = lt_alloc(room(m->bytes, m->strided_in));
                int count = shape(m->bytes, m->strided_in, &type);
                owners[posted] = m;
                if (m->persistent_in) {
                    OK(MPI_Recv_init(m->in, count, type, m->from, m->tag, w->comms[c], &requests[posted]));
                    OK(MPI_Start(&requests[posted]));
                } else {
                    OK(MPI_Irecv(m->in, count, type, m->from, m->tag, w->comms[c], &requests[posted]));
                }
                drop(&type);
            }
            posted++;
        }
    }
    return posted;
}

static void send(worker *w, message *m, MPI_Request *request)
{
    MPI_Datatype type;
    MPI_Comm comm = w->comms[m->on];
    m->out = lt_alloc(room(m->bytes, m->strided_out));
    fill(m->out, m->bytes, m->strided_out, m->seed);
    int n = shape(m->bytes, m->strided_out, &type);
    *request = MPI_REQUEST_NULL;
    switch (m->how) {
    case SEND: OK(MPI_Send(m->out, n, type, m->to, m->tag, comm)); break;
    case SSEND: OK(MPI_Ssend(m->out, n, type, m->to, m->tag, comm)); break;
    case SENDRECV:
        OK(MPI_Sendrecv(m->out, n, type, m->to, m->tag, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE));
        break;
    case ISEND: OK(MPI_Isend(m->out, n, type, m->to, m->tag, comm, request)); break;
    case ISSEND: OK(MPI_Issend(m->out, n, type, m->to, m->tag, comm, request)); break;
    case IBSEND: OK(MPI_Ibsend(m->out, n, type, m->to, m->tag, comm, request)); break;
    case BSEND: OK(MPI_Bsend(m->out, n, type, m->to, m->tag, comm)); break;
    default: OK(MPI_Send_init(m->out, n, type, m->to, m->tag, comm, request)); OK(MPI_Start(request));
    }
    drop(&type);
    w->sent++;
    w->bytes += m->bytes;
}

/* The receives that are not posted in advance: by name in reverse order, or whatever a probe finds. */
static void receive_late(worker *w, int n)
{
    for (int c = 0; c < COMMS; c++) {
        style how = w->styles[lt_rank][c];
        for (int i = n - 1; i >= 0 && how >= LATE; i--) {
            message *m = &w->messages[i];
            MPI_Status status;
            MPI_Datatype type;
            if (!for_me(m, c))
                continue;
            if (how == LATE_PROBE) {
                int flag = 0;
                if (i % 2) {
                    OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comms[c], &status));
                } else {
                    while (!flag && OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comms[c], &flag, &status))) {
                    }
                }
                m = find(w, n, &status, c);
                if (m == NULL)
                    continue;
            }
            m->in = lt_alloc(room(m->bytes, m->strided_in));
            int count = shape(m->bytes, m->strided_in, &type);
            if (how == LATE_MATCHED) {
                MPI_Message matched;
                MPI_Request request;
                OK(MPI_Mprobe(m->from, m->tag, w->comms[c], &matched, &status));
                if (i % 2) {
                    OK(MPI_Mrecv(m->in, count, type, &matched, &status));
                } else {
                    OK(MPI_Imrecv(m->in, count, type, &matched, &request));
                    OK(MPI_Wait(&request, &status));
                }
            } else {
                OK(MPI_Recv(m->in, count, type, m->from, m->tag, w->comms[c], &status));
            }
            verify(w, m, &status);
            drop(&type);
        }
    }
}

/* Completes everything posted, by one of the four ways to wait. */
static void complete(worker *w, int n, int posted, int all, MPI_Request *requests, message **owners,
                     unsigned char **wild, const int *wild_on)
{
    int way = (int)(mix((uint64_t)w->rounds) % 4), left = all;
    MPI_Status statuses[2 * MOST_MESSAGES];
    if (way == 0) {
        OK(MPI_Waitall(all, requests, statuses));
        left = 0;
    }
    while (left > 0) {
        int index = MPI_UNDEFINED, flag = 0, some = 0, indices[2 * MOST_MESSAGES];
        MPI_Status got[2 * MOST_MESSAGES];
        if (way == 3) {
            OK(MPI_Waitsome(all, requests, &some, indices, got));
        } else if (way == 1) {
            OK(MPI_Waitany(all, requests, &index, &got[0]));
        } else {
            while (!flag && OK(MPI_Testany(all, requests, &index, &flag, &got[0]))) {
            }
        }
        if (way != 3)
            some = index == MPI_UNDEFINED ? MPI_UNDEFINED : (indices[0] = index, 1);
        if (some == MPI_UNDEFINED)
            break;
        for (int i = 0; i < some; i++)
            statuses[indices[i]] = got[i];
        left -= some;
    }
    for (int i = 0; i < posted; i++) {
        message *m = owners[i] != NULL ? owners[i] : find(w, n, &statuses[i], wild_on[i]);
        if (m != NULL && owners[i] == NULL)
            m->in = wild[i];
        else if (owners[i] == NULL)
            free(wild[i]);
        if (m != NULL)
            verify(w, m, &statuses[i]);
    }
    /* What is not null now is persistent and inactive. */
    for (int i = 0; i < all; i++) {
        if (requests[i] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&requests[i]));
    }
}

static void one_round(worker *w)
{
    MPI_Request requests[2 * MOST_MESSAGES];
    message *owners[MOST_MESSAGES];
    unsigned char *wild[MOST_MESSAGES];
    int wild_on[MOST_MESSAGES], n, all, wildcards = 0;
    draw_round(w, &n);
    int posted = all = post(w, n, requests, owners, wild, wild_on);
    for (int i = 0; i < n; i++) {
        if (w->messages[i].from == lt_rank) {
            send(w, &w->messages[i], &requests[all]);
            all += requests[all] != MPI_REQUEST_NULL;
        }
    }
    receive_late(w, n);
    complete(w, n, posted, all, requests, owners, wild, wild_on);
    for (int i = 0; i < n; i++) {
        free(w->messages[i].out);
        free(w->messages[i].in);
        w->messages[i].out = w->messages[i].in = NULL;
    }
    for (int r = 0; r < lt_size; r++) {
        for (int c = 0; c < COMMS; c++)
            wildcards |= w->styles[r][c] == WILD || w->styles[r][c] == LATE_PROBE;
    }
    if (wildcards)
        OK(MPI_Barrier(w->comms[(int)(w->rounds % COMMS)]));
    w->rounds++;
}

static void *work(void *argument)
{
    worker *w = argument;
    int go = 1;
    while (go) {
        for (int i = 0; i < 20; i++)
            one_round(w);
        go = MPI_Wtime() < deadline && lt_failures == 0;
        int everybody = 0;
        OK(MPI_Allreduce(&go, &everybody, 1, MPI_INT, MPI_MIN, w->comms[0]));
        go = everybody;
    }
    return NULL;
}

static int only_threads;

static void traffic(void)
{
    static worker workers[MOST_THREADS];
    long rounds = 0, sent = 0, bytes = 0;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        pthread_t ids[MOST_THREADS];
        if (only_threads && threads != only_threads)
            continue;
        deadline = MPI_Wtime() + (only_threads ? seconds : seconds / MOST_THREADS);
        for (int t = 0; t < threads; t++) {
            memset(&workers[t], 0, sizeof workers[t]);
            workers[t].number = t;
            workers[t].state = mix(first_seed + (uint64_t)(threads * 10 + t));
            for (int c = 0; c < COMMS; c++)
                OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comms[c]));
        }
        for (int t = 1; t < threads; t++)
            pthread_create(&ids[t], NULL, work, &workers[t]);
        work(&workers[0]);
        for (int t = 1; t < threads; t++)
            pthread_join(ids[t], NULL);
        for (int t = 0; t < threads; t++) {
            rounds += workers[t].rounds;
            sent += workers[t].sent;
            bytes += workers[t].bytes;
            for (int c = 0; c < COMMS; c++)
                OK(MPI_Comm_free(&workers[t].comms[c]));
        }
    }
    void *buffer;
    int size;
    OK(MPI_Buffer_detach(&buffer, &size));
    if (lt_rank == 0)
        printf("seed %llu: %ld rounds; rank 0 sent %ld messages, %ld MB\n", (unsigned long long)first_seed, rounds,
               sent, bytes / 1000000);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(traffic)};
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 98;
    seconds = argc > 1 ? atof(argv[1]) : seconds;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)(MPI_Wtime() * 1e6);
    only_threads = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Bcast(&first_seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    long failures = lt_run("stress", tests, 1);
    MPI_Finalize();
    return failures != 0;
}
