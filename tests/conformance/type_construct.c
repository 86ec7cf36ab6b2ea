/* Every datatype constructor against the model of type_layout.h, their large-count forms, and nests of them: MPI-5
 * section 5.1. */
#include "type_layout.h"

/* Compares, frees type and model. */
static void done(const char *name, MPI_Datatype type, layout l)
{
    layout_compare(name, type, &l);
    OK(MPI_Type_free(&type));
    CHECK_PTR(type, MPI_DATATYPE_NULL);
    layout_free(&l);
}

/* Old types of several shapes, each with its model: plain, with a gap, with a negative lower bound, with an extent
 * smaller than its data. */
enum { OLD = 5 };
static MPI_Datatype old_types[OLD];
static layout old_layouts[OLD];

static void setup(void)
{
    MPI_Datatype vector;
    old_types[0] = MPI_DOUBLE;
    old_layouts[0] = layout_basic(8);
    old_types[1] = MPI_CHAR;
    old_layouts[1] = layout_basic(1);
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &old_types[2]));
    layout int_layout = layout_basic(4);
    for (int i = 0; i < 2; i++)
        layout_place(&old_layouts[2], &int_layout, i * 12, 1);
    OK(MPI_Type_create_resized(old_types[2], -4, 28, &old_types[3]));
    layout_place(&old_layouts[3], &old_layouts[2], 0, 1);
    old_layouts[3].lb = -4;
    old_layouts[3].ub = 24;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
    OK(MPI_Type_create_resized(vector, 0, 4, &old_types[4]));
    OK(MPI_Type_free(&vector));
    layout_place(&old_layouts[4], &int_layout, 0, 1);
    layout_place(&old_layouts[4], &int_layout, 8, 1);
    old_layouts[4].ub = 4;
    layout_free(&int_layout);
}

static MPI_Aint extent_of(int old)
{
    return old_layouts[old].ub - old_layouts[old].lb;
}

static void contiguous(void)
{
    for (int old = 0; old < OLD; old++) {
        for (int count = 1; count <= 40; count += 13) {
            /* Old type 4 overlaps itself when repeated: legal to send, not to receive, so it is left to the forms that
             * space it out. */
            if (old == 4 && count > 2)
                continue;
            MPI_Datatype type;
            layout l = {0};
            layout_place(&l, &old_layouts[old], 0, count);
            if (old == 4)
                l.ub = l.lb + 64;
            OK(count % 2 ? MPI_Type_contiguous_c(count, old_types[old], &type)
                         : MPI_Type_contiguous(count, old_types[old], &type));
            if (old == 4) {
                MPI_Datatype wide;
                OK(MPI_Type_create_resized(type, 0, 64, &wide));
                OK(MPI_Type_free(&type));
                type = wide;
            }
            done("contiguous", type, l);
        }
    }
}

static void vector(void)
{
    static const int cases[][3] = {{1, 1, 1}, {4, 1, 1}, {4, 2, 5}, {3, 2, 2}, {3, 1, -4}, {5, 2, -3}, {7, 3, 8}};
    for (int old = 0; old < 4; old++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            for (int large = 0; large < 2; large++) {
                int count = cases[c][0], length = cases[c][1], stride = cases[c][2];
                MPI_Datatype type, bytes;
                layout l = {0}, h = {0};
                MPI_Aint hstride = stride * extent_of(old) + (stride > 0 ? 8 : -8);
                for (int i = 0; i < count; i++) {
                    layout_place(&l, &old_layouts[old], i * stride * extent_of(old), length);
                    layout_place(&h, &old_layouts[old], i * hstride, length);
                }
                OK(large ? MPI_Type_vector_c(count, length, stride, old_types[old], &type)
                         : MPI_Type_vector(count, length, stride, old_types[old], &type));
                OK(large ? MPI_Type_create_hvector_c(count, length, hstride, old_types[old], &bytes)
                         : MPI_Type_create_hvector(count, length, hstride, old_types[old], &bytes));
                MPI_Aint gap = 3 * (l.ub - l.lb) + 16, hgap = 3 * (h.ub - h.lb) + 16;
                /* Elements of a type with negative stride would overlap: space them out. */
                MPI_Datatype wide, hwide;
                OK(MPI_Type_create_resized(type, l.lb, gap, &wide));
                OK(MPI_Type_create_resized(bytes, h.lb, hgap, &hwide));
                l.ub = l.lb + gap;
                h.ub = h.lb + hgap;
                OK(MPI_Type_free(&type));
                OK(MPI_Type_free(&bytes));
                done("vector", wide, l);
                done("hvector", hwide, h);
            }
        }
    }
}

static void indexed(void)
{
    static const int lengths[] = {2, 0, 1, 3, 1}, at[] = {4, 100, 0, 9, -5};
    enum { N = 5 };
    for (int old = 0; old < 4; old++) {
        MPI_Datatype type;
        MPI_Aint bytes_at[N];
        MPI_Count lengths_c[N], at_c[N], bytes_at_c[N];
        for (int n = 1; n <= N; n++) {
            layout l = {0}, h = {0};
            for (int i = 0; i < N; i++) {
                lengths_c[i] = lengths[i];
                at_c[i] = at[i];
                bytes_at_c[i] = bytes_at[i] = at[i] * extent_of(old) + 8 * i;
            }
            bytes_at_c[N - 1] = bytes_at[N - 1] -= 8 * N;
            for (int i = 0; i < n; i++) {
                layout_place(&l, &old_layouts[old], at[i] * extent_of(old), lengths[i]);
                layout_place(&h, &old_layouts[old], bytes_at[i], lengths[i]);
            }
            layout l2 = {0}, h2 = {0};
            layout_place(&l2, &l, 0, 1);
            layout_place(&h2, &h, 0, 1);
            OK(MPI_Type_indexed(n, lengths, at, old_types[old], &type));
            done("indexed", type, l);
            OK(MPI_Type_indexed_c(n, lengths_c, at_c, old_types[old], &type));
            done("indexed_c", type, l2);
            OK(MPI_Type_create_hindexed(n, lengths, bytes_at, old_types[old], &type));
            done("hindexed", type, h);
            OK(MPI_Type_create_hindexed_c(n, lengths_c, bytes_at_c, old_types[old], &type));
            done("hindexed_c", type, h2);
        }
    }
}

static void indexed_block(void)
{
    static const int at[] = {6, 0, 3, 12, -7};
    enum { N = 5 };
    for (int old = 0; old < 4; old++) {
        for (int length = 1; length <= 3; length++) {
            MPI_Datatype type;
            MPI_Aint bytes_at[N];
            MPI_Count at_c[N], bytes_at_c[N];
            layout l[2] = {{0}}, h[2] = {{0}};
            for (int i = 0; i < N; i++) {
                at_c[i] = at[i];
                bytes_at_c[i] = bytes_at[i] = at[i] * extent_of(old) * 2 + 8;
                for (int k = 0; k < 2; k++) {
                    layout_place(&l[k], &old_layouts[old], at[i] * extent_of(old), length);
                    layout_place(&h[k], &old_layouts[old], bytes_at[i], length);
                }
            }
            OK(MPI_Type_create_indexed_block(N, length, at, old_types[old], &type));
            done("indexed_block", type, l[0]);
            OK(MPI_Type_create_indexed_block_c(N, length, at_c, old_types[old], &type));
            done("indexed_block_c", type, l[1]);
            OK(MPI_Type_create_hindexed_block(N, length, bytes_at, old_types[old], &type));
            done("hindexed_block", type, h[0]);
            OK(MPI_Type_create_hindexed_block_c(N, length, bytes_at_c, old_types[old], &type));
            done("hindexed_block_c", type, h[1]);
        }
    }
}

struct record {
    char tag;
    double value[3];
    int index;
    short last;
};

static void structure(void)
{
    static const int lengths[] = {1, 3, 1, 1};
    static const MPI_Count lengths_c[] = {1, 3, 1, 1};
    const MPI_Aint at[] = {offsetof(struct record, tag), offsetof(struct record, value), offsetof(struct record, index),
                           offsetof(struct record, last)};
    const MPI_Count at_c[] = {at[0], at[1], at[2], at[3]};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
    for (int large = 0; large < 2; large++) {
        MPI_Datatype type;
        layout l = {0};
        layout_block(&l, at[0], 1);
        layout_block(&l, at[1], 24);
        layout_block(&l, at[2], 4);
        layout_block(&l, at[3], 2);
        /* The upper bound is rounded up to the strictest alignment among the types, as the compiler does for a
         * structure. */
        layout_bounds(&l, 0, sizeof(struct record));
        OK(large ? MPI_Type_create_struct_c(4, lengths_c, at_c, types, &type)
                 : MPI_Type_create_struct(4, lengths, at, types, &type));
        done("struct", type, l);
    }
}

static void structure_of_derived(void)
{
    static const int lengths[] = {2, 1, 3};
    const MPI_Aint at[] = {0, 200, 64};
    const MPI_Datatype types[] = {old_types[2], old_types[3], MPI_DOUBLE};
    MPI_Datatype type, wide;
    layout l = {0};
    layout_place(&l, &old_layouts[2], at[0], 2);
    layout_place(&l, &old_layouts[3], at[1], 1);
    layout_place(&l, &old_layouts[0], at[2], 3);
    OK(MPI_Type_create_struct(3, lengths, at, types, &type));
    /* The rounding of the bounds is the library's business: fix them. */
    OK(MPI_Type_create_resized(type, 0, 256, &wide));
    OK(MPI_Type_free(&type));
    l.lb = 0;
    l.ub = 256;
    done("struct of derived", wide, l);
}

static void resized_and_dup(void)
{
    static const MPI_Aint bounds[][2] = {{0, 8}, {0, 40}, {-16, 32}, {8, 48}, {-100, 300}};
    for (int old = 0; old < 3; old++) {
        for (size_t c = 0; c < sizeof bounds / sizeof *bounds; c++) {
            MPI_Datatype type, copy;
            layout l = {0}, m = {0};
            if (bounds[c][1] < 20 && old == 2)
                continue;
            layout_place(&l, &old_layouts[old], 0, 1);
            layout_place(&m, &old_layouts[old], 0, 1);
            l.lb = m.lb = bounds[c][0];
            l.ub = m.ub = bounds[c][0] + bounds[c][1];
            OK(c % 2 ? MPI_Type_create_resized_c(old_types[old], bounds[c][0], bounds[c][1], &type)
                     : MPI_Type_create_resized(old_types[old], bounds[c][0], bounds[c][1], &type));
            OK(MPI_Type_dup(type, &copy));
            done("resized", type, l);
            done("dup of a freed type", copy, m);
        }
    }
}

/* A type may be freed as soon as a new one is built from it, and while a message of it is under way. */
static void freed_early(void)
{
    MPI_Datatype inner, outer;
    MPI_Request requests[2];
    int out[12], in[12];
    for (int i = 0; i < 12; i++) {
        out[i] = i + 1;
        in[i] = 0;
    }
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_contiguous(3, inner, &outer));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_commit(&outer));
    OK(MPI_Irecv(in, 1, outer, 0, 1, MPI_COMM_SELF, &requests[0]));
    OK(MPI_Isend(out, 1, outer, 0, 1, MPI_COMM_SELF, &requests[1]));
    OK(MPI_Type_free(&outer));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    /* extent 3 ints: elements 0 2, 3 5, 6 8 */
    static const int expected[12] = {1, 0, 3, 4, 0, 6, 7, 0, 9, 0, 0, 0};
    CHECK_BYTES(in, expected, sizeof in);
}

static void empty_types(void)
{
    MPI_Datatype type;
    int size = -1, value = 5;
    MPI_Aint lb = -1, extent = -1;
    const int none[1] = {0};
    const MPI_Aint no_at[1] = {0};
    for (int kind = 0; kind < 5; kind++) {
        switch (kind) {
        case 0: OK(MPI_Type_contiguous(0, MPI_INT, &type)); break;
        case 1: OK(MPI_Type_vector(0, 3, 4, MPI_INT, &type)); break;
        case 2: OK(MPI_Type_indexed(0, none, none, MPI_INT, &type)); break;
        case 3: OK(MPI_Type_create_struct(0, none, no_at, NULL, &type)); break;
        default: OK(MPI_Type_vector(3, 0, 4, MPI_INT, &type)); break;
        }
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_size(type, &size));
        CHECK_INT(size, 0);
        OK(MPI_Type_get_extent(type, &lb, &extent));
        if (kind != 4) {
            CHECK_INT(lb, 0);
            CHECK_INT(extent, 0);
        }
        MPI_Status status;
        OK(MPI_Sendrecv(&value, 4, type, 0, 0, &value, 4, type, 0, 0, MPI_COMM_SELF, &status));
        CHECK_INT(value, 5);
        int count = -1;
        OK(MPI_Get_count(&status, type, &count));
        CHECK_INT(count, 0);
        OK(MPI_Type_free(&type));
    }
}

/* Absolute addresses relative to MPI_BOTTOM, with two separate buffers in one type. */
static void bottom(void)
{
    static int a[4], b[3], c[7];
    MPI_Aint at[2];
    const int lengths[] = {4, 3};
    MPI_Datatype type;
    MPI_Request request;
    OK(MPI_Get_address(a, &at[0]));
    OK(MPI_Get_address(b, &at[1]));
    OK(MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 4; i++)
        a[i] = i;
    for (int i = 0; i < 3; i++)
        b[i] = 10 + i;
    OK(MPI_Irecv(c, 7, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Send(MPI_BOTTOM, 1, type, 0, 0, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    static const int expected[] = {0, 1, 2, 3, 10, 11, 12}, back[] = {7, 6, 5, 4, 3, 2, 1};
    CHECK_BYTES(c, expected, sizeof c);
    OK(MPI_Irecv(MPI_BOTTOM, 1, type, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Send(back, 7, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_BYTES(a, back, sizeof a);
    CHECK_BYTES(b, back + 4, sizeof b);
    OK(MPI_Type_free(&type));
}

/* Types whose size and extent exceed 31 bits; nothing is sent. */
static void beyond_int(void)
{
    MPI_Datatype big, bigger;
    int size = 0, lb_flag;
    MPI_Count size_c = 0, lb = 0, extent = 0;
    (void)lb_flag;
    OK(MPI_Type_contiguous_c(3000000000, MPI_INT, &big));
    OK(MPI_Type_size(big, &size));
    CHECK_INT(size, MPI_UNDEFINED);
    OK(MPI_Type_size_c(big, &size_c));
    CHECK_INT(size_c, 12000000000);
    OK(MPI_Type_vector_c(4, 1, 2, big, &bigger));
    OK(MPI_Type_size_c(bigger, &size_c));
    CHECK_INT(size_c, 48000000000);
    OK(MPI_Type_get_extent_c(bigger, &lb, &extent));
    CHECK_INT(extent, 84000000000);
    OK(MPI_Type_commit(&bigger));
    OK(MPI_Type_free(&big));
    OK(MPI_Type_free(&bigger));
}

LT_MAIN("type_construct", TEST(setup), TEST(contiguous), TEST(vector), TEST(indexed), TEST(indexed_block),
        TEST(structure), TEST(structure_of_derived), TEST(resized_and_dup), TEST(freed_early), TEST(empty_types),
        TEST(bottom), TEST(beyond_int))
