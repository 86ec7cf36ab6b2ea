/* lab: ranks=2,4,8 */
/* Blocking collectives; which ones, and what `bytes` means, is said in collectives.h. The time of one operation is
 * that of a sequence of them divided by their number, on the slowest rank; roots rotate. The cold form starts at 4
 * KB. Verified: all results on all ranks for 16 operations in a row, and that what is not to be received stays
 * untouched. */
#include "blocking.h"

LAB_SIZES(sizes, (0, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20),
          (0, 8, 1 << 10, 64 << 10, 4 << 20))

int main(int argc, char **argv)
{
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    for (enum collective which = 0; which < COLLECTIVES; which++)
        LAB_EACH_FORM(cold) LAB_EACH_SIZE(bytes, sizes)
        {
            struct lab_case c = {
                .bench = collectives[which].bench, .form = lab_forms[cold], .bytes = *bytes, .run = collective_run};
            struct collective_arguments a;
            if (!lab_wanted(c.bench) || (which == Barrier) != (*bytes == 0) || (cold && *bytes < 4 << 10))
                continue;
            if (collective_open(&c, &a, which, cold)) {
                collective_measure(&c);
                collective_close(&c, &a);
            }
        }
    return lab_end();
}
