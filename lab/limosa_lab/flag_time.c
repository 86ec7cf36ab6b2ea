/* Prints the time in microseconds that a cache line takes from one processor to another, for the record of a run:
 * flag_time.py.
 *
 * The two processes are bound to the first two processors that may be used, so that every call measures the same
 * pair. The shortest of some batches counts: others may have needed a processor during the rest. Exit code 2: there
 * are no two processors or no process. */
#include "programs/bounce.h"
#include <stdio.h>

enum { BATCHES = 10, TURNS = 5000 };

int main(void)
{
    struct bounce b;
    if (!bounce_start(&b))
        return 2;
    /* The second one first: from then on this process may use one processor only. */
    if (!bounce_bind(b.child, 1) || !bounce_bind(0, 0)) {
        bounce_end(&b);
        return 2;
    }
    double best = bounce(&b, TURNS);
    for (int i = 0; i < BATCHES; i++) {
        double seconds = bounce(&b, TURNS);
        best = seconds < best ? seconds : best;
    }
    bounce_end(&b);
    if (!b.well)
        return 1;
    printf("%.4f\n", best * 1e6);
    return 0;
}
