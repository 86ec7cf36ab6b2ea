/* call LIBRARY FUNCTION: calls a function of the library with arguments that are all zero, and says what it
 * returned. */
#include <dlfcn.h>
#include <stdio.h>

typedef int function(long, long, long, long, long, long, long, long, long, long, long, long, long, long);

int main(int argc, char **argv)
{
    void *library, *symbol;
    function *call;

    if (argc != 3) {
        fprintf(stderr, "usage: %s library function\n", argv[0]);
        return 2;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, argv[2]) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    *(void **)&call = symbol;
    printf("returned %d\n", call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    return 0;
}
