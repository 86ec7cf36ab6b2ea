/* unsupported FUNCTION ...: calls functions with arguments that are all zero, under MPI_ERRORS_RETURN, and prints
 * the class and the string of the code that each returned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

typedef int function(long, long, long, long, long, long, long, long, long, long, long, long, long, long);

int main(int argc, char **argv)
{
    int i;

    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (i = 1; i < argc; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, argv[i]);
        function *call;
        char text[MPI_MAX_ERROR_STRING] = "";
        int code, class = -1, length;
        *(void **)&call = symbol;
        code = symbol ? call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : -1;
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        printf("%s %d %s\n", argv[i], class, text);
    }
    fflush(stdout);
    _exit(0);
}
