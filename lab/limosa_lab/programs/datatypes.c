/* lab: ranks=2 */
/* Ping-pong of derived datatypes, half the round trip, beside that of contiguous bytes. `bytes` is what a message
 * carries; x.block is the length of a contiguous piece. Half of the memory that a type spans are gaps.
 *   datatype_contiguous  MPI_BYTE
 *   datatype_vector      equal blocks at equal distances
 *   datatype_indexed     equal blocks at uneven distances
 *   datatype_struct      array of a structure that has two blocks of different basic types, and gaps
 * Verified: all bytes of the messages in both directions, and that the gaps stay untouched. */
#include "lab.h"

LAB_SIZES(sizes, (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20), (1 << 10, 64 << 10, 1 << 20))

enum { SMALL = 8, LARGE = 1024 };

struct shape {
    size_t block, blocks; /* blocks == 1: contiguous */
    bool uneven;
    MPI_Datatype type;
    int count;
};

/* Where block `i` begins: each has a cell of twice its length; uneven ones lie at the end of every third cell. */
static size_t place(const struct shape *s, size_t i)
{
    return i * 2 * s->block + (s->uneven && i % 3 == 1 ? s->block : 0);
}

static size_t span(const struct shape *s)
{
    return s->blocks == 1 ? s->block : s->blocks * 2 * s->block;
}

static double run(struct lab_case *c, long operations)
{
    const struct shape *s = c->more;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        if (lab.rank == 0) {
            MPI_Send(out, s->count, s->type, c->peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, s->count, s->type, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, s->count, s->type, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, s->count, s->type, c->peer, 1, MPI_COMM_WORLD);
        }
    }
    return lab_now() - start;
}

static void fill(struct lab_case *c, size_t slot, size_t message)
{
    const struct shape *s = c->more;
    char *out = lab_send_slot(&c->pool, slot);
    memset(out, LAB_UNTOUCHED, c->pool.send_bytes);
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->pool.receive_bytes);
    for (size_t i = 0; i < s->blocks; i++)
        lab_fill_from(out + place(s, i), s->block, lab_key(lab.rank, c->peer, message), i * s->block);
}

static bool check(struct lab_case *c, size_t slot, size_t message)
{
    const struct shape *s = c->more;
    const char *in = lab_receive_slot(&c->pool, slot);
    size_t behind = 0; /* the end of the block before */
    bool well = true;
    for (size_t i = 0; well && i < s->blocks; i++) {
        well = lab_untouched(in + behind, place(s, i) - behind, LAB_UNRECEIVED) &&
               lab_check_from(in + place(s, i), s->block, lab_key(c->peer, lab.rank, message), i * s->block);
        behind = place(s, i) + s->block;
    }
    return well && lab_untouched(in + behind, c->pool.receive_bytes - behind, LAB_UNRECEIVED);
}

static void contiguous(struct shape *s)
{
    MPI_Type_dup(MPI_BYTE, &s->type);
    s->count = (int)s->block;
}

static void vector(struct shape *s)
{
    int doubles = (int)(s->block / sizeof(double));
    MPI_Type_vector((int)s->blocks, doubles, 2 * doubles, MPI_DOUBLE, &s->type);
    s->count = 1;
}

static void indexed(struct shape *s)
{
    int doubles = (int)(s->block / sizeof(double));
    int *lengths = malloc(s->blocks * sizeof *lengths), *places = malloc(s->blocks * sizeof *places);
    if (!lengths || !places)
        lab_die("no memory for %zu blocks", s->blocks);
    s->uneven = true;
    for (size_t i = 0; i < s->blocks; i++) {
        lengths[i] = doubles;
        places[i] = (int)(place(s, i) / sizeof(double));
    }
    MPI_Type_indexed((int)s->blocks, lengths, places, MPI_DOUBLE, &s->type);
    s->count = 1;
    free(lengths);
    free(places);
}

/* Two blocks, of int and of double, in cells of twice their length; as many such structures as the message needs. */
static void structure(struct shape *s)
{
    int lengths[2] = {(int)(s->block / sizeof(int)), (int)(s->block / sizeof(double))};
    MPI_Aint places[2] = {0, (MPI_Aint)(2 * s->block)};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, fields;
    MPI_Type_create_struct(2, lengths, places, types, &fields);
    MPI_Type_create_resized(fields, 0, (MPI_Aint)(4 * s->block), &s->type);
    MPI_Type_free(&fields);
    s->count = (int)(s->blocks / 2);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *bench, *x;
        size_t block; /* 0: the whole message */
        void (*make)(struct shape *);
    } kinds[] = {{"datatype_contiguous", NULL, 0, contiguous},
                 {"datatype_vector", "{\"block\":8}", SMALL, vector},
                 {"datatype_vector", "{\"block\":1024}", LARGE, vector},
                 {"datatype_indexed", "{\"block\":8}", SMALL, indexed},
                 {"datatype_indexed", "{\"block\":1024}", LARGE, indexed},
                 {"datatype_struct", "{\"block\":8}", SMALL, structure},
                 {"datatype_struct", "{\"block\":1024}", LARGE, structure}};
    static struct lab_samples samples;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        LAB_EACH_FORM(cold) LAB_EACH_SIZE(bytes, sizes)
        {
            struct shape s = {.block = kinds[k].block ? kinds[k].block : *bytes};
            struct lab_case c = {
                .bench = kinds[k].bench, .form = lab_forms[cold], .bytes = *bytes, .x = kinds[k].x, .more = &s};
            s.blocks = *bytes / s.block;
            if (!lab_wanted(c.bench) || (kinds[k].block && s.blocks < 2))
                continue;
            kinds[k].make(&s);
            MPI_Type_commit(&s.type);
            c.run = run;
            c.fill = fill;
            c.check = check;
            c.peer = 1 - lab.rank;
            lab_pool_open(&c.pool, span(&s), span(&s), cold);
            lab_measure(&c, &samples);
            lab_print_times(&c, &samples, "latency", "us", 0.5e6);
            lab_pool_close(&c.pool);
            MPI_Type_free(&s.type);
        }
    return lab_end();
}
