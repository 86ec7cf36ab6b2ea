/* Troubles with the files that messages travel in (LIMOSA_DEVICE=file:FOLDER).  usage: message_files WHAT FOLDER
 *
 *   full      FOLDER has room for a few MB; process 0 fills it, so that nothing can be sent any more
 *   one       process 0 has no room on the disk for messages to process 1
 *   denied    process 0 may not write into the folder for messages from it to process 1
 *   deleted   the folder of the job is deleted
 *   kept      nothing: two messages of 300 and 5 bytes are sent
 *
 * The others wait for process 0 meanwhile. All ranks that it concerns must be told, with the name of a file. With "one"
 * and "denied" process 2 is not concerned, and goes on with both, but no group of all three does anything together any
 * more. Those that have seen all this print "rank N done".
 */
#include <mpi.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH = 20000, BLOCK = 65536 };

static int rank;
static char bytes[LENGTH];

static void fail(const char *what, const char *text)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* The call must have failed, and say so with this word. */
static void expect(const char *what, int code, const char *word)
{
    char text[MPI_MAX_ERROR_STRING] = "no error";
    int length, class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
    }
    if (class != MPI_ERR_OTHER || strstr(text, word) == NULL)
        fail(what, text);
}

static void succeed(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fail(what, text);
}

#define OK(call) succeed(#call, (call))

/* The file or folder of this name in the folder of the job. */
static const char *inside(const char *folder, const char *name)
{
    static char path[4096];
    glob_t found;
    snprintf(path, sizeof path, "%s/limosa-*", folder);
    if (glob(path, 0, NULL, &found) != 0 || found.gl_pathc != 1)
        fail(path, "there must be one");
    snprintf(path, sizeof path, "%s/%s", found.gl_pathv[0], name);
    globfree(&found);
    return path;
}

static void fill(const char *path)
{
    static char block[BLOCK];
    FILE *file = fopen(path, "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (size_t part = BLOCK; part > 0; part /= 2)
        while (fwrite(block, 1, part, file) == part)
            ;
    fclose(file);
}

static int send_to(int peer)
{
    return MPI_Send(bytes, LENGTH, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
}

static int receive_from(int peer)
{
    return MPI_Recv(bytes, LENGTH, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int peer)
{
    OK(MPI_Sendrecv_replace(bytes, LENGTH, MPI_CHAR, peer, 2, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* No rank is in a collective call or has messages under way after this. */
static void settle(void)
{
    char word = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank != 0) {
        OK(MPI_Send(&word, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD));
        return;
    }
    for (int peer = 1; peer < 3; peer++)
        OK(MPI_Recv(&word, 1, MPI_CHAR, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Processes 0 and 1 are parted. */
static void two(const char *what, const char *folder)
{
    const char *word = "1/0/";
    if (rank == 2) {
        exchange(0);
        exchange(1);
        OK(receive_from(1));
        OK(receive_from(0));
    } else {
        if (rank == 1) {
            expect("receive", receive_from(0), word);
        } else {
            int failed = strcmp(what, "one") == 0 ? symlink("/dev/full", inside(folder, "drafts/0-1"))
                                                  : chmod(inside(folder, "1/0"), 0500);
            if (failed)
                fail("link or chmod", "");
            expect("send", send_to(1), word);
            chmod(inside(folder, "1/0"), 0700);
        }
        expect("send again", send_to(1 - rank), word);
        expect("receive again", receive_from(1 - rank), word);
        exchange(2);
        OK(send_to(2));
    }
    expect("barrier", MPI_Barrier(MPI_COMM_WORLD), word);
}

/* No rank can send anything. */
static void all(const char *what, const char *folder)
{
    char text[4096];
    if (rank != 0) {
        expect("receive", receive_from(0), "limosa-");
        return;
    }
    if (strcmp(what, "full") == 0) {
        snprintf(text, sizeof text, "%s/ballast", folder);
        fill(text);
        expect("send", send_to(1), "No space left on device");
        expect("send", send_to(2), "No space left on device");
        return;
    }
    /* Under another name first, so that no process puts anything into it meanwhile. */
    snprintf(text, sizeof text, "mv %s %s/gone && rm -r %s/gone", inside(folder, ""), folder, folder);
    if (system(text) != 0)
        fail(text, "");
    expect("receive", receive_from(1), "limosa-");
}

static void kept(void)
{
    if (rank != 0) {
        OK(MPI_Recv(bytes, LENGTH, MPI_CHAR, 0, rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        return;
    }
    OK(MPI_Send(bytes, 300, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
    OK(MPI_Send(bytes, 5, MPI_CHAR, 2, 2, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    const char *what = argc == 3 ? argv[1] : "", *folder = argc == 3 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    settle();
    if (strcmp(what, "kept") == 0)
        kept();
    else if (strcmp(what, "full") == 0 || strcmp(what, "deleted") == 0)
        all(what, folder);
    else
        two(what, folder);
    printf("rank %d done\n", rank);
    MPI_Finalize();
    return 0;
}
