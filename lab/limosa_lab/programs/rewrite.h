/* Writing a buffer as programs do before they send it. No MPI is involved. */
#ifndef REWRITE_H
#define REWRITE_H

#include <stddef.h>
#include <string.h>

/* Writes each byte of the buffer again with the value that it has, so that its cache lines are those of this processor
 * alone and patterns stay as they are. */
static inline void rewrite(void *buffer, size_t bytes)
{
    typedef unsigned long long chunk __attribute__((vector_size(16)));
    char *at = buffer, *end = at + bytes;
    for (; (size_t)(end - at) >= sizeof(chunk); at += sizeof(chunk)) {
        chunk value;
        memcpy(&value, at, sizeof value);
        __asm__ volatile("" : "+m"(value)); /* the compiler must not see that the value is the same */
        memcpy(at, &value, sizeof value);
    }
    for (; at < end; at++)
        *(volatile char *)at = *at;
}

#endif
