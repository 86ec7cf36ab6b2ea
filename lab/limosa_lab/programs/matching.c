/* lab: ranks=2 */
/* What it costs to find the right message among many: 1 to 10,000 posted receives, or as many messages that no rank
 * has received yet. All messages have 8 bytes. x.posted and x.unexpected say how many there are.
 *
 *   matching_posted
 *       half the round trip of a ping-pong while that many receives of other tags are posted on both ranks
 *   matching_posted_reverse
 *       time per message when that many posted receives are matched in reverse order
 *   matching_unexpected
 *       half the round trip of a ping-pong while that many messages of other tags lie unreceived on both ranks
 *   matching_unexpected_reverse
 *       time per MPI_Recv when that many messages are received in reverse order
 *
 * Only the hot form. Verified: each message is found by the right receive. */
#include "lab.h"

enum { MOST = 10000, PING = 1, GO = 2, FIRST = 100 /* the tags from here on are those of the many */ };

static uint64_t values[MOST], sent[MOST];
static MPI_Request requests[MOST];

static uint64_t value(int sender, int i)
{
    return lab_key(sender, 1 - sender, (size_t)i);
}

/* Did message `i` of the many carry what the partner had put in, for all of them? Clears them. */
static bool all_right(struct lab_case *c, int many)
{
    for (int i = 0; i < many; i++) {
        if (values[i] != value(c->peer, i)) {
            fprintf(stderr, "%s: rank %d: the message with tag %d has the bytes of another\n", lab.program, lab.rank,
                    FIRST + i);
            return false;
        }
        values[i] = 0;
    }
    return true;
}

static void post_many(struct lab_case *c, int many)
{
    for (int i = 0; i < many; i++)
        MPI_Irecv(&values[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD, &requests[i]);
}

static void start_many(struct lab_case *c, int many)
{
    for (int i = 0; i < many; i++)
        MPI_Isend(&sent[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD, &requests[i]);
}

static void wait_many(int many)
{
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
}

static double run_pingpong(struct lab_case *c, long operations)
{
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        if (lab.rank == 0) {
            MPI_Send(out, 8, MPI_BYTE, c->peer, PING, MPI_COMM_WORLD);
            MPI_Recv(in, 8, MPI_BYTE, c->peer, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, 8, MPI_BYTE, c->peer, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, 8, MPI_BYTE, c->peer, PING, MPI_COMM_WORLD);
        }
    }
    return lab_now() - start;
}

/* One operation is a pass over the many; `more` points to their number. Rank 1 receives and takes the time. */
static double run_posted_reverse(struct lab_case *c, long operations)
{
    int many = *(int *)c->more;
    double seconds = 0;
    for (long pass = 0; pass < operations; pass++) {
        if (lab.rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = many - 1; i >= 0; i--)
                MPI_Send(&sent[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD);
        } else {
            post_many(c, many);
            double start = lab_now();
            MPI_Send(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD);
            wait_many(many);
            seconds += lab_now() - start;
            lab.wrong |= !all_right(c, many);
        }
    }
    return seconds;
}

/* The go-ahead is sent last, so when it is received all messages before it have arrived. */
static double run_unexpected_reverse(struct lab_case *c, long operations)
{
    int many = *(int *)c->more;
    double seconds = 0;
    for (long pass = 0; pass < operations; pass++) {
        if (lab.rank == 0) {
            start_many(c, many);
            MPI_Send(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD);
            wait_many(many);
            MPI_Recv(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double start = lab_now();
            for (int i = many - 1; i >= 0; i--)
                MPI_Recv(&values[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            seconds += lab_now() - start;
            lab.wrong |= !all_right(c, many);
            MPI_Send(NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD);
        }
    }
    return seconds;
}

/* A ping-pong while the many stand in the way. */
static void measure_beside(struct lab_case *c, int many, bool unexpected)
{
    static struct lab_samples samples;
    c->run = run_pingpong;
    c->fill = lab_fill_pair;
    c->check = lab_check_pair;
    lab_pool_open(&c->pool, 8, 8, false);
    if (unexpected) {
        start_many(c, many);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, c->peer, GO, NULL, 0, MPI_BYTE, c->peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wait_many(many);
    } else {
        post_many(c, many);
    }
    lab_measure(c, &samples);
    /* The many are received now, in the order in which they can be found at once. */
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < many; i++)
            if (unexpected && turn == 0)
                MPI_Recv(&values[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else if (!unexpected && lab.rank == turn)
                MPI_Send(&sent[i], 8, MPI_BYTE, c->peer, FIRST + i, MPI_COMM_WORLD);
            else if (!unexpected)
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    samples.verified = lab_right(all_right(c, many)) && samples.verified;
    lab_print_times(c, &samples, "latency", "us", 0.5e6);
    lab_pool_close(&c->pool);
}

static void measure_reverse(struct lab_case *c, int many, bool unexpected)
{
    static struct lab_samples samples;
    c->run = unexpected ? run_unexpected_reverse : run_posted_reverse;
    c->more = &many;
    lab_pool_open(&c->pool, 0, 0, false);
    lab_measure(c, &samples);
    samples.verified = lab_right(!lab.wrong);
    lab_print_times(c, &samples, "time_per_message", "us", 1e6 / many);
    lab_pool_close(&c->pool);
}

int main(int argc, char **argv)
{
    static const int thorough[] = {1, 10, 100, 1000, MOST, 0}, few[] = {1, 1000, 0};
    static const struct {
        const char *bench;
        void (*measure)(struct lab_case *, int many, bool unexpected);
        bool unexpected;
    } kinds[] = {{"matching_posted", measure_beside, false},
                 {"matching_posted_reverse", measure_reverse, false},
                 {"matching_unexpected", measure_beside, true},
                 {"matching_unexpected_reverse", measure_reverse, true}};
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < MOST; i++)
        sent[i] = value(lab.rank, i);
    for (size_t k = 0; lab.forms[0] && lab_bytes_wanted(8) && k < sizeof kinds / sizeof *kinds; k++)
        for (const int *many = lab.quick ? few : thorough; *many && lab_wanted(kinds[k].bench); many++) {
            char x[64];
            struct lab_case c = {.bench = kinds[k].bench, .form = "hot", .bytes = 8, .x = x, .peer = 1 - lab.rank};
            snprintf(x, sizeof x, "{\"%s\":%d}", kinds[k].unexpected ? "unexpected" : "posted", *many);
            kinds[k].measure(&c, *many, kinds[k].unexpected);
        }
    return lab_end();
}
