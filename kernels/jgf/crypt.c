/* IDEA encryption and decryption: as Crypt.java. */
#include "jgf.h"

enum { ROUNDS = 8, KEYS = 52, MODULUS = 0x10001 };

static const int sizes[] = {3000000, 20000000, 50000000};

static void encryption_keys(int *z)
{
    jgf_random random = jgf_seed(136506717);
    for (int i = 0; i < 8; i++)
        z[i] = jgf_next(&random, 32) & 0xffff;
    for (int i = 8; i < KEYS; i++) {
        int j = i % 8, high = j == 7 ? z[i - 15] : z[i - 7], low = j < 6 ? z[i - 6] : z[i - 14];
        z[i] = (high >> 9 | low << 7) & 0xffff;
    }
}

/* The multiplicative inverse modulo 65537; 0 and 1 are their own. */
static int inverse(int x)
{
    int64_t result = 1, power = x;
    if (x <= 1)
        return x;
    for (int exponent = MODULUS - 2; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = result * power % MODULUS;
        power = power * power % MODULUS;
    }
    return (int)result & 0xffff;
}

static void decryption_keys(const int *z, int *d)
{
    for (int round = 0; round <= ROUNDS; round++) {
        int from = (ROUNDS - round) * 6, to = round * 6, is_swapped = round > 0 && round < ROUNDS;
        d[to] = inverse(z[from]);
        d[to + 1] = -z[from + (is_swapped ? 2 : 1)] & 0xffff;
        d[to + 2] = -z[from + (is_swapped ? 1 : 2)] & 0xffff;
        d[to + 3] = inverse(z[from + 3]);
        if (round < ROUNDS) {
            d[to + 4] = z[from - 2];
            d[to + 5] = z[from - 1];
        }
    }
}

static inline int times(int a, int b)
{
    return (int)((int64_t)a * b % MODULUS) & 0xffff;
}

static inline int word(const uint8_t *bytes)
{
    return bytes[0] | bytes[1] << 8;
}

static inline void put(uint8_t *bytes, int value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static void cipher(const uint8_t *from, uint8_t *to, int length, const int *key)
{
    for (int at = 0; at < length; at += 8) {
        int x1 = word(from + at), x2 = word(from + at + 2), x3 = word(from + at + 4), x4 = word(from + at + 6), k = 0;
        for (int round = 0; round < ROUNDS; round++, k += 6) {
            x1 = times(x1, key[k]);
            x2 = (x2 + key[k + 1]) & 0xffff;
            x3 = (x3 + key[k + 2]) & 0xffff;
            x4 = times(x4, key[k + 3]);
            int t2 = times(x1 ^ x3, key[k + 4]);
            int t1 = times((t2 + (x2 ^ x4)) & 0xffff, key[k + 5]);
            t2 = (t1 + t2) & 0xffff;
            x1 ^= t1;
            x4 ^= t2;
            t2 ^= x2;
            x2 = x3 ^ t1;
            x3 = t2;
        }
        put(to + at, times(x1, key[k]));
        put(to + at + 2, (x3 + key[k + 1]) & 0xffff);
        put(to + at + 4, (x2 + key[k + 2]) & 0xffff);
        put(to + at + 6, times(x4, key[k + 3]));
    }
}

/* Deals blocks of rank 0's bytes to the others, or collects them. */
static void move(uint8_t *all, uint8_t *own, int n, int block, int is_out)
{
    int mine = jgf_share(n, block, jgf_rank);
    if (jgf_rank == 0) {
        if (is_out)
            memcpy(own, all, mine);
        else
            memcpy(all, own, mine);
        for (int k = 1; k < jgf_processes; k++) {
            uint8_t *part = all + (size_t)k * block;
            int theirs = jgf_share(n, block, k);
            if (is_out)
                MPI_Ssend(part, theirs, MPI_BYTE, k, k, MPI_COMM_WORLD);
            else
                MPI_Recv(part, theirs, MPI_BYTE, k, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else if (is_out) {
        MPI_Recv(own, mine, MPI_BYTE, 0, jgf_rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Ssend(own, mine, MPI_BYTE, 0, jgf_rank, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int n = sizes[jgf_start("Crypt", argc, argv)];
    int block = jgf_block(n, 8), mine = jgf_share(n, block, jgf_rank), encryption[KEYS], decryption[KEYS];
    encryption_keys(encryption);
    decryption_keys(encryption, decryption);
    uint8_t *plain = jgf_allocate(jgf_rank ? 0 : n, 1), *decrypted = jgf_allocate(jgf_rank ? 0 : n, 1);
    uint8_t *text = jgf_allocate(block, 1), *secret = jgf_allocate(block, 1);
    for (int i = 0; i < n && jgf_rank == 0; i++)
        plain[i] = (uint8_t)i;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    move(plain, text, n, block, 1);
    cipher(text, secret, mine, encryption);
    cipher(secret, text, mine, decryption);
    MPI_Barrier(MPI_COMM_WORLD);
    move(decrypted, text, n, block, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;
    static const uint8_t first[] = {0xb4, 0x94, 0xa0, 0xba, 0x72, 0xd2, 0xf7, 0x7e};
    int is_right = jgf_rank || (!memcmp(plain, decrypted, n) && !memcmp(secret, first, sizeof first));
    return jgf_end(seconds, 2.0 * n / 1000, "Kbyte", is_right);
}
