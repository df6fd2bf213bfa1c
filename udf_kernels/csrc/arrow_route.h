/* The route over Arrow arrays, called from Python: what cffi sees of the kernels. */
#ifndef UCLE_ARROW_ROUTE_H
#define UCLE_ARROW_ROUTE_H

#include <stdint.h>

/* A buffer of an Arrow array, and how many bytes may be read of it. */
typedef struct ucle_buffer {
    const void *start;
    int64_t bytes;
} ucle_buffer;

/* One Arrow array by its buffers; `offset` and `length` count entries of this array. The children of
 * a list are its elements, those of a struct its two parts. */
typedef struct ucle_array {
    ucle_buffer validity, offsets, data;
    int64_t offset, length;
    int wide; /* 64-bit offsets */
    const struct ucle_array *children;
    int child_count;
} ucle_array;

/* Buffers of the result; the caller frees each with ucle_free. Complex numbers lie in their places
 * as pairs. */
typedef struct ucle_result {
    void *validity, *values, *data;
    int64_t data_bytes;
    void *ends; /* where each BLOB of a list ends in the data */
    int64_t items;
} ucle_result;

int ucle_kernel_count(void);
const char *ucle_kernel_name(int index);
const char *ucle_kernel_type(int index);
const char *ucle_kernel_signature(int index);
const char *ucle_kernel_gathered(int index);

/* Runs a kernel over rows, with so many bytes of memory; 0: what the machine has. Returns 0, or 1 with
 * a message. */
int ucle_arrow_run(int index, int64_t memory_limit, int64_t rows, const ucle_array *arrays,
                   int array_count, ucle_result *result, char *message, int message_size);
void ucle_free(void *buffer);

/* What kernels hold at the moment, of all databases that have them. */
int64_t ucle_memory_held(void);

/* Ends long calls of kernels in this process, as Ctrl-C does; those of either route. */
void ucle_interrupt(void);

/* How often DuckDB has initialised this image of the library. */
int ucle_load_count(void);

#endif
