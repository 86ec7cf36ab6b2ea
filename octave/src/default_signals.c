/* Loaded before Octave starts as a rank (LD_PRELOAD, limosa._octave): leaves SIGTERM and SIGHUP their default action,
 * by which a process ends at once and silently. Octave's own handlers write the program's variables into a file, and
 * are there before any code of Octave's language could tell them not to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

int sigaction(int number, const struct sigaction *restrict wanted, struct sigaction *restrict before)
{
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (!next)
        next = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    return next(number, number == SIGTERM || number == SIGHUP ? NULL : wanted, before);
}
