/* Functions whose arguments no rule describes: callbacks, attributes, lengths that count the null character in C,
 * arguments of started programs. Included twice by library.c, as fortran_calls.h. */

#define KEYVALS(object, type)                                                                                          \
    void NAME(mpi_##object##_create_keyval_)(function * copy, function * delete, MPI_Fint * keyval,                    \
                                             MPI_Aint * extra_state, MPI_Fint * ierror)                                \
    {                                                                                                                  \
        HERE SET_ERROR(CALL(MPI_##type##_create_keyval)(limosa_copy_##object, limosa_delete_##object, keyval,          \
                                                        limosa_keyval(copy, delete, *extra_state)));                   \
    }                                                                                                                  \
    void NAME(mpi_##object##_set_attr_)(MPI_Fint * handle, MPI_Fint * keyval, MPI_Aint * value, MPI_Fint * ierror)     \
    {                                                                                                                  \
        HERE void *cell = limosa_cell(*value);                                                                         \
        int error = CALL(MPI_##type##_set_attr)(PMPI_##type##_fromint(*handle), *keyval, cell);                        \
        if (error != MPI_SUCCESS)                                                                                      \
            limosa_free_cell(cell);                                                                                    \
        SET_ERROR(error);                                                                                              \
    }                                                                                                                  \
    void NAME(mpi_##object##_get_attr_)(MPI_Fint * handle, MPI_Fint * keyval, MPI_Aint * value, MPI_Fint * flag,       \
                                        MPI_Fint * ierror)                                                             \
    {                                                                                                                  \
        HERE void *attribute;                                                                                          \
        int is_set = 0;                                                                                                \
        int error = CALL(MPI_##type##_get_attr)(PMPI_##type##_fromint(*handle), *keyval, &attribute, &is_set);         \
        if (error == MPI_SUCCESS && is_set)                                                                            \
            *value = limosa_attribute_of(*keyval, attribute);                                                          \
        *flag = is_set != 0;                                                                                           \
        SET_ERROR(error);                                                                                              \
    }

KEYVALS(comm, Comm)
KEYVALS(type, Type)
KEYVALS(win, Win)

void NAME(mpi_keyval_create_)(function *copy, function *delete, MPI_Fint *keyval, MPI_Fint *extra_state,
                              MPI_Fint *ierror)
{
    HERE SET_ERROR(CALL(MPI_Comm_create_keyval)(limosa_copy_old, limosa_delete_old, keyval,
                                                limosa_keyval(copy, delete, *extra_state)));
}

void NAME(mpi_attr_put_)(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *attribute_val, MPI_Fint *ierror)
{
    HERE MPI_Aint value = *attribute_val;
    NAME(mpi_comm_set_attr_)(comm, keyval, &value, ierror);
}

void NAME(mpi_attr_get_)(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *attribute_val, MPI_Fint *flag, MPI_Fint *ierror)
{
    HERE MPI_Aint value = 0;
    NAME(mpi_comm_get_attr_)(comm, keyval, &value, flag, ierror);
    if (*flag)
        *attribute_val = (MPI_Fint)value;
}

#define ERRHANDLER(object, type)                                                                                       \
    void NAME(mpi_##object##_create_errhandler_)(function * handler, MPI_Fint * errhandler, MPI_Fint * ierror)         \
    {                                                                                                                  \
        HERE MPI_Errhandler made;                                                                                      \
        int slot = limosa_slot(limosa_##object##_handlers, handler);                                                   \
        int error = slot < 0 ? limosa_no_slot("MPI_" #type "_create_errhandler")                                       \
                             : CALL(MPI_##type##_create_errhandler)(limosa_##object##_handler_slots[slot], &made);     \
        if (error == MPI_SUCCESS)                                                                                      \
            *errhandler = PMPI_Errhandler_toint(made);                                                                 \
        SET_ERROR(error);                                                                                              \
    }

ERRHANDLER(comm, Comm)
ERRHANDLER(win, Win)
ERRHANDLER(file, File)
ERRHANDLER(session, Session)

#define OP_CREATE(symbol, call, slots, functions)                                                                      \
    void NAME(symbol)(function * user_fn, MPI_Fint * commute, MPI_Fint * op, MPI_Fint * ierror)                        \
    {                                                                                                                  \
        HERE MPI_Op made;                                                                                              \
        int slot = limosa_slot(functions, user_fn);                                                                    \
        int error = slot < 0 ? limosa_no_slot(#call) : CALL(call)(slots[slot], *commute != 0, &made);                  \
        if (error == MPI_SUCCESS)                                                                                      \
            *op = PMPI_Op_toint(made);                                                                                 \
        SET_ERROR(error);                                                                                              \
    }

OP_CREATE(mpi_op_create_, MPI_Op_create, limosa_operation_slots, limosa_operations)
OP_CREATE(mpi_op_create_c_, MPI_Op_create_c, limosa_large_operation_slots, limosa_large_operations)

#define REGISTER_DATAREP(symbol, call, none, no_function, read_fn, write_fn)                                           \
    void NAME(symbol)(char *datarep, function *read, function *write, function *extent, MPI_Aint *extra_state,         \
                      MPI_Fint *ierror, size_t length)                                                                 \
    {                                                                                                                  \
        HERE Datarep *callbacks = limosa_allocate(sizeof *callbacks);                                                  \
        *callbacks = (Datarep){read, write, extent, *extra_state};                                                     \
        char *name = limosa_text(datarep, length);                                                                     \
        SET_ERROR(CALL(call)(name, read == (function *)none ? no_function : read_fn,                                   \
                             write == (function *)none ? no_function : write_fn, limosa_file_extent, callbacks));      \
        free(name);                                                                                                    \
    }

REGISTER_DATAREP(mpi_register_datarep_, MPI_Register_datarep, mpi_conversion_fn_null_, MPI_CONVERSION_FN_NULL,
                 limosa_read, limosa_write)
REGISTER_DATAREP(mpi_register_datarep_c_, MPI_Register_datarep_c, mpi_conversion_fn_null_c_, MPI_CONVERSION_FN_NULL_C,
                 limosa_large_read, limosa_large_write)

void NAME(mpi_grequest_start_)(function *query, function *free_fn, function *cancel, MPI_Aint *extra_state,
                               MPI_Fint *request, MPI_Fint *ierror)
{
    HERE MPI_Request made;
    Grequest *callbacks = limosa_allocate(sizeof *callbacks);
    *callbacks = (Grequest){query, free_fn, cancel, *extra_state};
    int error = CALL(MPI_Grequest_start)(limosa_query, limosa_free, limosa_cancel, callbacks, &made);
    if (error == MPI_SUCCESS)
        *request = PMPI_Request_toint(made);
    SET_ERROR(error);
}

void NAME(mpi_info_get_)(MPI_Fint *info, char *key, MPI_Fint *valuelen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
                         size_t key_length, size_t value_length)
{
    HERE char *c_key = limosa_trimmed(key, key_length);
    char *c_value = limosa_text_space(*valuelen > 0 ? (size_t)*valuelen : 0);
    int is_set = 0;
    int error = CALL(MPI_Info_get)(PMPI_Info_fromint(*info), c_key, *valuelen, c_value, &is_set);
    if (error == MPI_SUCCESS && is_set)
        limosa_padded(c_value, value, value_length);
    *flag = is_set != 0;
    free(c_key);
    free(c_value);
    SET_ERROR(error);
}

void NAME(mpi_info_get_string_)(MPI_Fint *info, char *key, MPI_Fint *buflen, char *value, MPI_Fint *flag,
                                MPI_Fint *ierror, size_t key_length, size_t value_length)
{
    HERE char *c_key = limosa_trimmed(key, key_length);
    size_t room = *buflen > 0 ? (size_t)*buflen : 0;
    char *c_value = limosa_text_space(room);
    int length = room ? (int)room + 1 : 0, is_set = 0;
    int error = CALL(MPI_Info_get_string)(PMPI_Info_fromint(*info), c_key, &length, c_value, &is_set);
    if (error == MPI_SUCCESS && is_set) {
        *buflen = length - 1;
        if (room)
            limosa_padded(c_value, value, value_length);
    }
    *flag = is_set != 0;
    free(c_key);
    free(c_value);
    SET_ERROR(error);
}

void NAME(mpi_session_get_nth_pset_)(MPI_Fint *session, MPI_Fint *info, MPI_Fint *n, MPI_Fint *pset_len,
                                     char *pset_name, MPI_Fint *ierror, size_t name_length)
{
    HERE size_t room = *pset_len > 0 ? (size_t)*pset_len : 0;
    char *name = limosa_text_space(room);
    int length = room ? (int)room + 1 : 0;
    int error =
        CALL(MPI_Session_get_nth_pset)(PMPI_Session_fromint(*session), PMPI_Info_fromint(*info), *n, &length, name);
    if (error == MPI_SUCCESS) {
        *pset_len = length - 1;
        if (room)
            limosa_padded(name, pset_name, name_length);
    }
    free(name);
    SET_ERROR(error);
}

void NAME(mpi_comm_spawn_)(char *command, char *argv, MPI_Fint *maxprocs, MPI_Fint *info, MPI_Fint *root,
                           MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *array_of_errcodes, MPI_Fint *ierror,
                           size_t command_length, size_t argv_length)
{
    HERE MPI_Comm c_comm = PMPI_Comm_fromint(*comm), made;
    int rank = -1;
    PMPI_Comm_rank(c_comm, &rank);
    char *c_command = limosa_text(command, command_length);
    int has_arguments = rank == *root && argv != mpi_fortran_argv_null_;
    char **arguments = has_arguments ? limosa_arguments(argv, argv_length, 1) : MPI_ARGV_NULL;
    int *codes = array_of_errcodes == mpi_fortran_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : array_of_errcodes;
    int error =
        CALL(MPI_Comm_spawn)(c_command, arguments, *maxprocs, PMPI_Info_fromint(*info), *root, c_comm, &made, codes);
    if (error == MPI_SUCCESS)
        *intercomm = PMPI_Comm_toint(made);
    free(c_command);
    if (has_arguments)
        limosa_free_arguments(arguments);
    SET_ERROR(error);
}

void NAME(mpi_comm_spawn_multiple_)(MPI_Fint *count, char *array_of_commands, char *array_of_argv,
                                    MPI_Fint *array_of_maxprocs, MPI_Fint *array_of_info, MPI_Fint *root,
                                    MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *array_of_errcodes, MPI_Fint *ierror,
                                    size_t command_length, size_t argv_length)
{
    HERE MPI_Comm c_comm = PMPI_Comm_fromint(*comm), made;
    int rank = -1;
    PMPI_Comm_rank(c_comm, &rank);
    size_t n = rank == *root && *count > 0 ? (size_t)*count : 0;
    int has_arguments = n > 0 && array_of_argv != mpi_fortran_argvs_null_;
    char **commands = limosa_allocate((n + 1) * sizeof *commands);
    char ***arguments = limosa_allocate((n + 1) * sizeof *arguments);
    MPI_Info *infos = limosa_allocate((n + 1) * sizeof *infos);
    for (size_t i = 0; i < n; i++) {
        commands[i] = limosa_text(array_of_commands + i * command_length, command_length);
        infos[i] = PMPI_Info_fromint(array_of_info[i]);
        if (has_arguments)
            arguments[i] = limosa_arguments(array_of_argv + i * argv_length, argv_length, n);
    }
    int *codes = array_of_errcodes == mpi_fortran_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : array_of_errcodes;
    int error = CALL(MPI_Comm_spawn_multiple)(*count, commands, has_arguments ? arguments : MPI_ARGVS_NULL,
                                              array_of_maxprocs, infos, *root, c_comm, &made, codes);
    if (error == MPI_SUCCESS)
        *intercomm = PMPI_Comm_toint(made);
    for (size_t i = 0; i < n; i++)
        limosa_free_arguments(arguments[i]);
    limosa_free_arguments(commands);
    free(arguments);
    free(infos);
    SET_ERROR(error);
}

void NAME(mpi_pcontrol_)(MPI_Fint *level)
{
    HERE CALL(MPI_Pcontrol)(*level);
}

void NAME(mpi_status_f2f08_)(MPI_Fint *f_status, MPI_Fint *f08_status, MPI_Fint *ierror)
{
    HERE memcpy(f08_status, f_status, sizeof(MPI_Status));
    SET_ERROR(MPI_SUCCESS);
}

void NAME(mpi_status_f082f_)(MPI_Fint *f08_status, MPI_Fint *f_status, MPI_Fint *ierror)
{
    HERE memcpy(f_status, f08_status, sizeof(MPI_Status));
    SET_ERROR(MPI_SUCCESS);
}

void NAME(mpi_f_sync_reg_)(void *buf)
{
    HERE(void) buf;
}

void NAME(mpi_f_sync_reg_f08ts_)(const Descriptor *buf)
{
    HERE(void) buf;
}

void NAME(mpi_sizeof_f08ts_)(const Descriptor *x, MPI_Fint *size, MPI_Fint *ierror)
{
    HERE *size = (MPI_Fint)x->elem_len;
    SET_ERROR(MPI_SUCCESS);
}

#undef KEYVALS
#undef ERRHANDLER
#undef OP_CREATE
#undef REGISTER_DATAREP
