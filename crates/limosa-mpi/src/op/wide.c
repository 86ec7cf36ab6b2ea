/* Reductions on long double and IEEE binary128, for wide.rs: inout[i] = input[i] op inout[i]. Buffers may have any
 * alignment. */
#include <float.h>
#include <stddef.h>
#include <string.h>

#if LDBL_MANT_DIG == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif

/* An element-wise loop; VALUE says what becomes of a and b. */
#define LOOP(NAME, TYPE, VALUE)                                                                                        \
    void NAME(const unsigned char *input, unsigned char *inout, size_t count)                                          \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++, input += sizeof(TYPE), inout += sizeof(TYPE)) {                             \
            TYPE a, b, c;                                                                                              \
            memcpy(&a, input, sizeof a);                                                                               \
            memcpy(&b, inout, sizeof b);                                                                               \
            c = (VALUE);                                                                                               \
            memcpy(inout, &c, sizeof c);                                                                               \
        }                                                                                                              \
    }

#define FORMAT(PREFIX, TYPE)                                                                                           \
    LOOP(PREFIX##_sum, TYPE, a + b)                                                                                    \
    LOOP(PREFIX##_prod, TYPE, a *b)                                                                                    \
    LOOP(PREFIX##_min, TYPE, a < b ? a : b)                                                                            \
    LOOP(PREFIX##_max, TYPE, a > b ? a : b)                                                                            \
                                                                                                                       \
    void PREFIX##_complex_prod(const unsigned char *input, unsigned char *inout, size_t count)                         \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++, input += 2 * sizeof(TYPE), inout += 2 * sizeof(TYPE)) {                     \
            TYPE a[2], b[2], c[2];                                                                                     \
            memcpy(a, input, sizeof a);                                                                                \
            memcpy(b, inout, sizeof b);                                                                                \
            c[0] = a[0] * b[0] - a[1] * b[1];                                                                          \
            c[1] = a[0] * b[1] + a[1] * b[0];                                                                          \
            memcpy(inout, c, sizeof c);                                                                                \
        }                                                                                                              \
    }

FORMAT(limosa_extended, long double)
FORMAT(limosa_quad, quad)

/* -1, 0 or 1 as a is smaller than, equal to or greater than b; 2 if they do not compare. */
int limosa_extended_compare(const unsigned char *left, const unsigned char *right)
{
    long double a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}
