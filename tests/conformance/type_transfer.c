/* Different types with equal signatures, partial receives, MPI_Get_count and MPI_Get_elements, packed messages,
 * external32, attributes and duplicates of types: MPI-5 sections 3.2.5, 5.1.5, 5.1.11, 5.2, 5.3, 7.7.4. */
#include "limosa_test.h"

static int to, from;

static void setup(void)
{
    to = (lt_rank + 1) % lt_size;
    from = (lt_rank + lt_size - 1) % lt_size;
}

/* A row-major matrix arrives transposed: rows on one side, columns at the receiver. */
static void transpose(void)
{
    enum { N = 57 };
    static int a[N][N], b[N][N];
    MPI_Datatype column, columns;
    OK(MPI_Type_vector(N, 1, N, MPI_INT, &column));
    OK(MPI_Type_create_hvector(N, 1, sizeof(int), column, &columns));
    OK(MPI_Type_commit(&columns));
    for (int i = 0; i < N * N; i++)
        (&a[0][0])[i] = lt_rank * 10000 + i;
    for (int way = 0; way < 2; way++) {
        memset(b, 0, sizeof b);
        OK(MPI_Sendrecv(a, way ? 1 : N * N, way ? columns : MPI_INT, to, 0, b, way ? N * N : 1, way ? MPI_INT : columns,
                        from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++)
                CHECK_INT(b[i][j], from * 10000 + j * N + i);
        }
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&columns));
}

struct mixed {
    int a;
    double b;
};

/* The same sequence (int, double) x n sent as a structure, received as an indexed type over two arrays. */
static void structure_to_arrays(void)
{
    enum { N = 300 };
    static struct mixed out[N];
    static struct {
        int a[N];
        double b[N];
    } in;
    MPI_Datatype one, record, spread, lengths_type;
    const int ones[] = {1, 1};
    const MPI_Aint at[] = {offsetof(struct mixed, a), offsetof(struct mixed, b)};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, ones, at, types, &one));
    OK(MPI_Type_create_resized(one, 0, sizeof(struct mixed), &record));
    int lengths[2 * N];
    MPI_Aint places[2 * N];
    MPI_Datatype both[2 * N];
    for (int i = 0; i < N; i++) {
        out[i] = (struct mixed){lt_rank + i, lt_rank + i + 0.5};
        lengths[2 * i] = lengths[2 * i + 1] = 1;
        places[2 * i] = (MPI_Aint)((char *)&in.a[i] - (char *)&in);
        places[2 * i + 1] = (MPI_Aint)((char *)&in.b[i] - (char *)&in);
        both[2 * i] = MPI_INT;
        both[2 * i + 1] = MPI_DOUBLE;
    }
    OK(MPI_Type_create_struct(2 * N, lengths, places, both, &spread));
    OK(MPI_Type_dup(spread, &lengths_type));
    OK(MPI_Type_commit(&record));
    OK(MPI_Type_commit(&lengths_type));
    OK(MPI_Sendrecv(out, N, record, to, 0, &in, 1, lengths_type, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++) {
        CHECK_INT(in.a[i], from + i);
        CHECK(in.b[i] == from + i + 0.5);
    }
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&record));
    OK(MPI_Type_free(&spread));
    OK(MPI_Type_free(&lengths_type));
}

/* A message that ends inside an element: MPI_Get_count is undefined, MPI_Get_elements counts the basic elements. */
static void partial_elements(void)
{
    MPI_Datatype pair, nest;
    MPI_Status status;
    int count = -1;
    MPI_Count count_c = -1;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    const int ones[] = {1, 1};
    const MPI_Aint at[] = {0, 8};
    const MPI_Datatype types[] = {pair, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, ones, at, types, &nest));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_commit(&nest));
    for (int n = 0; n <= 5; n++) {
        int out[8] = {1, 2, 3, 4, 5, 6, 7, 8}, in[8] = {0};
        OK(MPI_Sendrecv(out, n, MPI_INT, to, 0, in, 4, pair, from, 0, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, pair, &count));
        CHECK_INT(count, n % 2 ? MPI_UNDEFINED : n / 2);
        OK(MPI_Get_elements(&status, pair, &count));
        CHECK_INT(count, n);
        OK(MPI_Get_elements_c(&status, pair, &count_c));
        CHECK_INT(count_c, n);
        OK(MPI_Get_elements_x(&status, pair, &count_c));
        CHECK_INT(count_c, n);
        for (int i = 0; i < 8; i++)
            CHECK_INT(in[i], i < n ? i + 1 : 0);
    }
    /* Elements of (int, int, double): 16 bytes each, three basic elements. */
    struct {
        int i[2];
        double d;
    } out[2] = {{{1, 2}, 3}, {{4, 5}, 6}}, in[3];
    for (int n = 1; n <= 2; n++) {
        OK(MPI_Sendrecv(out, n, nest, to, 0, in, 3, nest, from, 0, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, nest, &count));
        CHECK_INT(count, n);
        OK(MPI_Get_elements(&status, nest, &count));
        CHECK_INT(count, 3 * n);
    }
    /* One element and the two integers of the next. */
    MPI_Datatype one_and_a_part;
    const MPI_Aint next[] = {0, 16};
    const MPI_Datatype parts[] = {nest, pair};
    OK(MPI_Type_create_struct(2, ones, next, parts, &one_and_a_part));
    OK(MPI_Type_commit(&one_and_a_part));
    OK(MPI_Sendrecv(out, 1, one_and_a_part, to, 0, in, 3, nest, from, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_elements(&status, nest, &count));
    CHECK_INT(count, 5);
    OK(MPI_Get_count(&status, nest, &count));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Type_free(&one_and_a_part));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&nest));
}

/* Several items packed into one message, received as MPI_PACKED and unpacked; and received directly with the matching
 * type. */
static void packed_messages(void)
{
    char buffer[1000], text[8];
    int position = 0, n = 0, values[10], size;
    double x = 0;
    MPI_Status status;
    for (int i = 0; i < 10; i++)
        values[i] = lt_rank + i;
    x = lt_rank + 0.25;
    int bound = 0;
    OK(MPI_Pack_size(10, MPI_INT, MPI_COMM_WORLD, &size));
    bound += size;
    OK(MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_WORLD, &size));
    bound += size;
    OK(MPI_Pack_size(8, MPI_CHAR, MPI_COMM_WORLD, &size));
    bound += size;
    CHECK(bound >= 56 && bound <= 1000);
    OK(MPI_Pack(values, 10, MPI_INT, buffer, bound, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(&x, 1, MPI_DOUBLE, buffer, bound, &position, MPI_COMM_WORLD));
    OK(MPI_Pack("message", 8, MPI_CHAR, buffer, bound, &position, MPI_COMM_WORLD));
    CHECK(position <= bound);
    char in[1000];
    OK(MPI_Sendrecv(buffer, position, MPI_PACKED, to, 0, in, 1000, MPI_PACKED, from, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_PACKED, &n));
    CHECK_INT(n, position);
    int at = 0;
    OK(MPI_Unpack(in, n, &at, values, 10, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(in, n, &at, &x, 1, MPI_DOUBLE, MPI_COMM_WORLD));
    OK(MPI_Unpack(in, n, &at, text, 8, MPI_CHAR, MPI_COMM_WORLD));
    CHECK_INT(at, n);
    for (int i = 0; i < 10; i++)
        CHECK_INT(values[i], from + i);
    CHECK(x == from + 0.25);
    CHECK_STR(text, "message");
    position = 0;
    OK(MPI_Pack(values, 10, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(buffer, position, MPI_PACKED, to, 0, values, 10, MPI_INT, from, 0, MPI_COMM_WORLD, &status));
    CHECK_INT(values[3], (from + lt_size - 1) % lt_size + 3);
    OK(MPI_Sendrecv(values, 10, MPI_INT, to, 0, in, 1000, MPI_PACKED, from, 0, MPI_COMM_WORLD, &status));
    MPI_Count large = 0, bytes = 0;
    OK(MPI_Pack_size_c(10, MPI_INT, MPI_COMM_WORLD, &bytes));
    CHECK(bytes >= 40);
    OK(MPI_Pack_c(values, 10, MPI_INT, buffer, sizeof buffer, &large, MPI_COMM_WORLD));
    CHECK_INT(large, position);
    /* Too little room. */
    position = 0;
    REFUSED(MPI_Pack(values, 10, MPI_INT, buffer, 12, &position, MPI_COMM_WORLD));
    position = 0;
    REFUSED(MPI_Unpack(buffer, 12, &position, values, 10, MPI_INT, MPI_COMM_WORLD));
}

/* external32 is big-endian with the sizes of the standard's table: here byte for byte. */
static void external32(void)
{
    static const unsigned char expected[] = {
        0x01, 0x02, 0x03, 0x04,                         /* int 0x01020304 */
        0xfe, 0xdc,                                     /* short */
        0x3f, 0xf8, 0,    0,    0,    0,    0,    0,    /* double 1.5 */
        0xc0, 0x20, 0,    0,                            /* float -2.5 */
        'a',                                            /* char */
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* long long */
    };
    int i = 0x01020304;
    short s = (short)0xfedc;
    double d = 1.5;
    float f = -2.5;
    char c = 'a';
    long long l = 0x1122334455667788;
    unsigned char buffer[64] = {0};
    MPI_Aint position = 0, size = 0;
    OK(MPI_Pack_external("external32", &i, 1, MPI_INT, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &s, 1, MPI_SHORT, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &d, 1, MPI_DOUBLE, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &f, 1, MPI_FLOAT, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &c, 1, MPI_CHAR, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &l, 1, MPI_LONG_LONG, buffer, sizeof buffer, &position));
    CHECK_INT(position, sizeof expected);
    CHECK_BYTES(buffer, expected, sizeof expected);
    i = s = 0;
    d = f = c = 0;
    l = 0;
    position = 0;
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &i, 1, MPI_INT));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &s, 1, MPI_SHORT));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &d, 1, MPI_DOUBLE));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &f, 1, MPI_FLOAT));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &c, 1, MPI_CHAR));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &l, 1, MPI_LONG_LONG));
    CHECK_INT(i, 0x01020304);
    CHECK_INT(s, (short)0xfedc);
    CHECK(d == 1.5 && f == -2.5f);
    CHECK_INT(c, 'a');
    CHECK_INT(l, 0x1122334455667788);
    OK(MPI_Pack_external_size("external32", 3, MPI_DOUBLE, &size));
    CHECK_INT(size, 24);
    OK(MPI_Pack_external_size("external32", 1, MPI_LONG_DOUBLE, &size));
    CHECK_INT(size, 16);
    REFUSED(MPI_Pack_external_size("no such representation", 1, MPI_INT, &size));
    /* A strided type keeps its gaps out. */
    MPI_Datatype vector;
    int grid[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
    static const unsigned char strided[] = {0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 5};
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &vector));
    OK(MPI_Type_commit(&vector));
    position = 0;
    OK(MPI_Pack_external("external32", grid, 1, vector, buffer, sizeof buffer, &position));
    CHECK_INT(position, 12);
    CHECK_BYTES(buffer, strided, 12);
    position = 0;
    OK(MPI_Unpack_external("external32", buffer, 12, &position, back, 1, vector));
    static const int every_other[] = {1, 0, 3, 0, 5, 0};
    CHECK_BYTES(back, every_other, sizeof back);
    MPI_Count position_c = 0;
    OK(MPI_Pack_external_c("external32", grid, 1, vector, buffer, sizeof buffer, &position_c));
    CHECK_INT(position_c, 12);
    OK(MPI_Type_free(&vector));
}

/* Overlapping send types are legal: the same value is sent several times. */
static void overlapping_send(void)
{
    MPI_Datatype same;
    int value = lt_rank + 7, in[10];
    OK(MPI_Type_create_hvector(10, 1, 0, MPI_INT, &same));
    OK(MPI_Type_commit(&same));
    OK(MPI_Sendrecv(&value, 1, same, to, 0, in, 10, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 10; i++)
        CHECK_INT(in[i], from + 7);
    OK(MPI_Type_free(&same));
}

/* Uncommitted types may be built on, not communicated. Committing twice is allowed. */
static void commit(void)
{
    MPI_Datatype type;
    int value[2] = {0};
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    FAILS(MPI_ERR_TYPE, MPI_Send(value, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Send(value, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type));
}

static int deleted, copied;

static int copy_attribute(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)type, (void)keyval;
    CHECK_PTR(extra, &copied);
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    MPI_Datatype type, copy;
    int keyval, flag = 0;
    void *value = NULL;
    OK(MPI_Type_create_keyval(copy_attribute, delete_attribute, &keyval, &copied));
    OK(MPI_Type_contiguous(4, MPI_INT, &type));
    OK(MPI_Type_get_attr(type, keyval, &value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Type_set_attr(type, keyval, (void *)100));
    OK(MPI_Type_get_attr(type, keyval, &value, &flag));
    CHECK_INT(flag, 1);
    CHECK_PTR(value, (void *)100);
    OK(MPI_Type_dup(type, &copy));
    CHECK_INT(copied, 1);
    OK(MPI_Type_get_attr(copy, keyval, &value, &flag));
    CHECK_PTR(value, (void *)101);
    OK(MPI_Type_delete_attr(type, keyval));
    CHECK_INT(deleted, 1);
    OK(MPI_Type_free(&copy));
    CHECK_INT(deleted, 2);
    OK(MPI_Type_free(&type));
    CHECK_INT(deleted, 2);
    OK(MPI_Type_free_keyval(&keyval));
    CHECK_INT(keyval, MPI_KEYVAL_INVALID);
}

LT_MAIN("type_transfer", TEST(setup), TEST(transpose), TEST(structure_to_arrays), TEST(partial_elements),
        TEST(packed_messages), TEST(external32), TEST(overlapping_send), TEST(commit), TEST(attributes))
