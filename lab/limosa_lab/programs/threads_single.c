/* lab: ranks=2 */
/* The programs of threads.c with one thread under MPI_THREAD_SINGLE, for comparison. */
#define LEVEL MPI_THREAD_SINGLE
#define LEVEL_NAME "single"
#define THREADS 1
#include "threads.c"
