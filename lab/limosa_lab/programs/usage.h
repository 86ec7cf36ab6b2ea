/* What memory this process uses, from the kernel's files about it. In megabytes of 10^6 bytes. */
#ifndef USAGE_H
#define USAGE_H

#include "lab.h"

enum memory_kind { PEAK, ANONYMOUS, SHARED, PSS, MEMORY_KINDS };

/* peak: the most that was ever resident; anonymous: of its own, as heap and stacks; shared: resident pages of shared
 * memory, counted in every process; pss: everything resident, where a page that n processes use counts as 1/n. */
static const char *const memory_names[MEMORY_KINDS] = {"peak", "anonymous", "shared", "pss"};

struct memory {
    double megabytes[MEMORY_KINDS];
};

/* The number behind `name`, given in kB by the kernel. */
static inline double memory_field(const char *file, const char *name)
{
    char line[256];
    double kilobytes = -1;
    size_t length = strlen(name);
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, length) && line[length] == ':')
            kilobytes = strtod(line + length + 1, NULL);
    if (f)
        fclose(f);
    if (kilobytes < 0) {
        fprintf(stderr, "cannot measure memory: %s has no field %s\n", file, name);
        exit(2);
    }
    return kilobytes * 1024e-6;
}

static inline struct memory memory_used(void)
{
    struct memory m;
    m.megabytes[PEAK] = memory_field("/proc/self/status", "VmHWM");
    m.megabytes[ANONYMOUS] = memory_field("/proc/self/status", "RssAnon");
    m.megabytes[SHARED] = memory_field("/proc/self/status", "RssShmem");
    m.megabytes[PSS] = memory_field("/proc/self/smaps_rollup", "Pss");
    return m;
}

/* Prints for one kind the most that any rank has; with `before`, the most by which it grew since. On all ranks. */
static inline void memory_print(struct lab_case *c, const char *metric, const struct memory *now,
                                const struct memory *before, enum memory_kind kind)
{
    double mine = now->megabytes[kind] - (before ? before->megabytes[kind] : 0), most;
    MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    lab_print(c, metric, "MB", &most, 1, !lab.wrong);
}

#endif
