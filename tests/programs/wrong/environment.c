/* Wrong programs: the beginning and the end, error handlers, info objects (MPI-5 chapters 9 to 11). The cases call
 * MPI_Init themselves.
 */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[8], n;

static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
}

static void call_before_init(void)
{
    MPI_Comm_rank(WORLD, &rank);
}

static void send_before_init(void)
{
    MPI_Send(x, 1, MPI_INT, 0, 0, WORLD);
}

static void call_after_finalize(void)
{
    begin();
    MPI_Finalize();
    MPI_Barrier(WORLD);
}

static void init_twice(void)
{
    begin();
    MPI_Init(NULL, NULL);
    MPI_Finalize();
}

static void init_after_finalize(void)
{
    begin();
    MPI_Finalize();
    MPI_Init(NULL, NULL);
    MPI_Finalize();
}

static void finalize_twice(void)
{
    begin();
    MPI_Finalize();
    MPI_Finalize();
}

static void finalize_before_init(void)
{
    MPI_Finalize();
}

static void thread_level_unknown(void)
{
    MPI_Init_thread(NULL, NULL, 4711, &n);
    MPI_Finalize();
}

static void no_finalize(void)
{
    begin();
}

static void no_finalize_on_one_rank(void)
{
    begin();
    if (rank == 0)
        MPI_Finalize();
}

static void exit_before_init(void)
{
    if (getenv("LIMOSA_RANK") && strcmp(getenv("LIMOSA_RANK"), "1") == 0)
        exit(0);
    begin();
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static void abort_with_a_code(void)
{
    begin();
    if (rank == 1)
        MPI_Abort(WORLD, 17);
    MPI_Barrier(WORLD);
}

static void abort_with_zero(void)
{
    begin();
    if (rank == 1)
        MPI_Abort(WORLD, 0);
    MPI_Barrier(WORLD);
}

static void null_pointer(void)
{
    begin();
    if (rank == 1)
        *(volatile int *)8 = 1;
    MPI_Barrier(WORLD);
}

static void assertion_fails(void)
{
    begin();
    if (rank == 1)
        abort();
    MPI_Barrier(WORLD);
}

static void error_handler_null(void)
{
    begin();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRHANDLER_NULL);
    MPI_Finalize();
}

static void error_code_unknown(void)
{
    char text[MPI_MAX_ERROR_STRING];
    begin();
    MPI_Error_string(-77, text, &n);
    MPI_Finalize();
}

static void error_class_of_the_standard_changed(void)
{
    begin();
    MPI_Add_error_string(MPI_ERR_RANK, "mine");
    MPI_Finalize();
}

static void info_key_too_long(void)
{
    char key[MPI_MAX_INFO_KEY + 10];
    MPI_Info info;
    begin();
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, "value");
    MPI_Info_free(&info);
    MPI_Finalize();
}

static void info_key_not_there(void)
{
    MPI_Info info;
    begin();
    MPI_Info_create(&info);
    MPI_Info_delete(info, "nothing");
    MPI_Info_free(&info);
    MPI_Finalize();
}

static void info_null(void)
{
    begin();
    MPI_Info_set(MPI_INFO_NULL, "key", "value");
    MPI_Finalize();
}

static void errors_returned_and_ignored(void)
{
    /* The program asks to handle errors itself, and does not look. */
    begin();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Send(x, 1, MPI_INT, size, 0, WORLD);
    MPI_Finalize();
}

static void errors_abort(void)
{
    begin();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ABORT);
    if (rank == 1)
        MPI_Send(x, 1, MPI_INT, size, 0, WORLD);
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static MPI_Win window_of_x(void)
{
    MPI_Win window;
    begin();
    MPI_Win_create(x, sizeof x, 1, MPI_INFO_NULL, WORLD, &window);
    return window;
}

static void window_accessed_outside_an_epoch(void)
{
    MPI_Win window = window_of_x();
    MPI_Put(x, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_free(&window);
    MPI_Finalize();
}

static void window_too_small(void)
{
    MPI_Win window = window_of_x();
    MPI_Win_fence(0, window);
    MPI_Put(x, 1, MPI_INT, 1, sizeof x, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Finalize();
}

static void window_lock_is_not_given_back(void)
{
    MPI_Win window = window_of_x();
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Barrier(WORLD);
    if (rank == 0)
        MPI_Recv(x, 1, MPI_INT, 1, 4, WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Finalize();
}

static void window_never_started(void)
{
    MPI_Group all;
    MPI_Win window = window_of_x();
    MPI_Win_get_group(window, &all);
    MPI_Win_post(all, 0, window);
    MPI_Win_wait(window);
    MPI_Finalize();
}

static void file_not_there(void)
{
    /* Files have the handler MPI_ERRORS_RETURN by default: the code must not be success. */
    MPI_File file;
    begin();
    if (MPI_File_open(WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(stderr, "MPI_File_open failed\n");
        exit(5);
    }
    MPI_Finalize();
}

CASES(-1, CASE(call_before_init), CASE(send_before_init), CASE(call_after_finalize), CASE(init_twice),
      CASE(init_after_finalize), CASE(finalize_twice), CASE(finalize_before_init), CASE(thread_level_unknown),
      CASE(no_finalize), CASE(no_finalize_on_one_rank), CASE(exit_before_init), CASE(abort_with_a_code),
      CASE(abort_with_zero), CASE(null_pointer), CASE(assertion_fails), CASE(error_handler_null),
      CASE(error_code_unknown), CASE(error_class_of_the_standard_changed), CASE(info_key_too_long),
      CASE(info_key_not_there), CASE(info_null), CASE(errors_returned_and_ignored), CASE(errors_abort),
      CASE(window_accessed_outside_an_epoch), CASE(window_too_small), CASE(window_lock_is_not_given_back),
      CASE(window_never_started), CASE(file_not_there))
