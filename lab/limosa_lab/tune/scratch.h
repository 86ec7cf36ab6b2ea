/* Memory for intermediate data, kept from call to call.
 *
 * Memory that is allocated and freed with each call is mapped and unmapped each time where it is large, and the system
 * clears each page of it again, which takes longer than many a collective operation.
 *
 * Contract
 * - `take` gives memory to one caller until `give`; any thread may call both.
 * - At most MOST_KEPT bytes are kept, in SLOTS pieces. What exceeds that is allocated and freed as usual. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { SLOTS = 16 };
#define MOST_KEPT ((size_t)64 << 20)

static struct {
    pthread_mutex_t lock;
    size_t kept;
    struct {
        void *memory;
        size_t bytes;
        bool is_taken;
    } slot[SLOTS];
} scratch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The free slot that fits best: the smallest with so many bytes, or else the largest one; -1: all are taken. */
static int slot_for(size_t bytes)
{
    int best = -1;
    for (int i = 0; i < SLOTS; i++) {
        if (scratch.slot[i].is_taken)
            continue;
        bool fits = scratch.slot[i].bytes >= bytes, best_fits = best >= 0 && scratch.slot[best].bytes >= bytes;
        bool is_smaller = best >= 0 && scratch.slot[i].bytes < scratch.slot[best].bytes;
        if (best < 0 || (fits && !best_fits) || (fits == best_fits && is_smaller == fits))
            best = i;
    }
    return best;
}

/* Memory of at least so many bytes; NULL: there is none. */
static void *take(size_t bytes)
{
    void *memory = NULL;
    pthread_mutex_lock(&scratch.lock);
    int at = slot_for(bytes);
    if (at >= 0 && scratch.slot[at].bytes < bytes) {
        size_t wanted = 4096, others = scratch.kept - scratch.slot[at].bytes;
        while (wanted < bytes && wanted < MOST_KEPT)
            wanted *= 2;
        void *grown = wanted >= bytes && wanted <= MOST_KEPT - others ? malloc(wanted) : NULL;
        if (grown) {
            free(scratch.slot[at].memory);
            scratch.kept = others + wanted;
            scratch.slot[at].memory = grown;
            scratch.slot[at].bytes = wanted;
        } else
            at = -1;
    }
    if (at >= 0) {
        scratch.slot[at].is_taken = true;
        memory = scratch.slot[at].memory;
    }
    pthread_mutex_unlock(&scratch.lock);
    return memory ? memory : malloc(bytes ? bytes : 1);
}

/* Gives back what was taken; nothing if that is NULL. */
static void give(void *memory)
{
    bool is_kept = false;
    pthread_mutex_lock(&scratch.lock);
    for (int i = 0; memory && i < SLOTS; i++)
        if (scratch.slot[i].memory == memory) {
            scratch.slot[i].is_taken = false;
            is_kept = true;
        }
    pthread_mutex_unlock(&scratch.lock);
    if (!is_kept)
        free(memory);
}

#endif
