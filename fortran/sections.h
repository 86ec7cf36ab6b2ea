/* Choice buffers of mpi_f08, which may be array sections with gaps: copies of sections and datatypes of sections.
 * Included by library.c. */

/* CFI_cdesc_t of ISO_Fortran_binding.h, as far as compilers agree on it. */

typedef struct {
    void *base_addr;
    size_t elem_len;
    int version;
    signed char rank;
    char other[3];
    struct {
        ptrdiff_t lower_bound, extent, stride;
    } dim[];
} Descriptor;

/* A choice buffer as MPI gets it. */
typedef struct {
    void *address;
    int is_split;
    int error;
} Section;

/* Tells whether an array section has gaps. Arrays of assumed size (extent -1) have none. */
static int limosa_is_split(const Descriptor *array)
{
    ptrdiff_t expected = (ptrdiff_t)array->elem_len;
    int has_gaps = 0;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent == 0)
            return 0;
        if (array->dim[i].extent != 1 && array->dim[i].stride != expected)
            has_gaps = 1;
        expected *= array->dim[i].extent;
    }
    return has_gaps;
}

static size_t limosa_elements(const Descriptor *array)
{
    size_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= (size_t)array->dim[i].extent;
    return count;
}

/* Moves `offset` to the next element in array order. */
static void limosa_next(const Descriptor *array, ptrdiff_t index[], ptrdiff_t *offset)
{
    for (int i = 0; i < array->rank; i++) {
        *offset += array->dim[i].stride;
        if (++index[i] < array->dim[i].extent)
            return;
        *offset -= array->dim[i].stride * array->dim[i].extent;
        index[i] = 0;
    }
}

/* Copies the elements of a section to `packed`, or back those that differ from `before`: another call may be writing
 * to the others. */
static void limosa_copy(const Descriptor *array, char *packed, const char *before)
{
    ptrdiff_t index[16] = {0}, offset = 0;
    size_t count = limosa_elements(array), size = array->elem_len;
    for (size_t i = 0; i < count; i++) {
        char *element = (char *)array->base_addr + offset;
        if (!before)
            memcpy(packed + i * size, element, size);
        else if (memcmp(packed + i * size, before + i * size, size))
            memcpy(element, packed + i * size, size);
        limosa_next(array, index, &offset);
    }
}

/* Makes the copy of a section that MPI gets. For a result, a second copy shows which elements the call has changed. */
static void limosa_copy_in(Section *section, const Descriptor *array, int is_result)
{
    size_t size = limosa_elements(array) * array->elem_len;
    section->is_split = 1;
    section->address = limosa_allocate(is_result ? 2 * size : size);
    limosa_copy(array, section->address, NULL);
    if (is_result)
        memcpy((char *)section->address + size, section->address, size);
}

static void limosa_copy_out(Section *section, const Descriptor *array, int is_result)
{
    if (is_result)
        limosa_copy(array, section->address, (char *)section->address + limosa_elements(array) * array->elem_len);
    free(section->address);
}

static int limosa_section_code = MPI_ERR_BUFFER;

static void limosa_make_section_code(void)
{
    int code;
    if (PMPI_Add_error_code(MPI_ERR_BUFFER, &code) != MPI_SUCCESS)
        return;
    PMPI_Add_error_string(code, "an array section with gaps cannot be the buffer of this call; hint: pass a contiguous "
                                "array, for instance a copy of the section");
    limosa_section_code = code;
}

/* Error code for a section that cannot be passed. */
static int limosa_section_error(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, limosa_make_section_code);
    return limosa_section_code;
}

/* Makes a datatype of `count` elements of `datatype` that lie in an array section. The datatype must be contiguous and
 * divide the array's elements. */
static void limosa_section_type(Section *section, const Descriptor *array, MPI_Count count, MPI_Fint *datatype)
{
    MPI_Datatype old = PMPI_Type_fromint(*datatype), new;
    MPI_Count size, lower, extent, true_lower, true_extent;
    section->error = PMPI_Type_size_c(old, &size);
    if (section->error != MPI_SUCCESS)
        return;
    PMPI_Type_get_extent_c(old, &lower, &extent);
    PMPI_Type_get_true_extent_c(old, &true_lower, &true_extent);
    MPI_Count length = (MPI_Count)array->elem_len;
    int is_plain = size > 0 && lower == 0 && true_lower == 0 && extent == size && true_extent == size;
    MPI_Count elements = (MPI_Count)limosa_elements(array);
    if (!is_plain || count < 0 || length % size || count > elements * (length / size)) {
        section->error = limosa_section_error();
        return;
    }
    MPI_Count per_element = length / size;
    MPI_Count needed = (count + per_element - 1) / per_element; /* elements of the array */
    MPI_Count per_run = array->dim[0].stride == (ptrdiff_t)array->elem_len ? array->dim[0].extent : 1;
    MPI_Count runs = (needed + per_run - 1) / per_run, run = 0;
    MPI_Count *lengths = limosa_allocate((size_t)runs * sizeof *lengths);
    MPI_Count *places = limosa_allocate((size_t)runs * sizeof *places);
    ptrdiff_t index[16] = {0}, offset = 0;
    for (MPI_Count i = 0, left = count; i < needed; i++) {
        if (i % per_run == 0)
            places[run++] = offset;
        MPI_Count here = left < per_element ? left : per_element;
        lengths[run - 1] += here;
        left -= here;
        limosa_next(array, index, &offset);
    }
    section->error = PMPI_Type_create_hindexed_c(runs, lengths, places, old, &new);
    free(lengths);
    free(places);
    if (section->error == MPI_SUCCESS) {
        PMPI_Type_commit(&new);
        *datatype = PMPI_Type_toint(new);
        section->is_split = 1;
    }
}

static void limosa_free_type(MPI_Fint *datatype)
{
    MPI_Datatype made = PMPI_Type_fromint(*datatype);
    PMPI_Type_free(&made);
}
