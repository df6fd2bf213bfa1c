/* Functions that a person calls by hand, on lists as tables hold them.
 *
 * The kernels carry tensors as BLOBs, which a compiled program packs once and unpacks once. These
 * functions take and make DuckDB's lists, FLOAT[] and DOUBLE[], and matrices: STRUCT(rows INTEGER,
 * cols INTEGER, val DOUBLE[]) or with FLOAT[], row-major. What they compute they have the loops of
 * the kernels for.
 */
#ifndef UCLE_LISTS_H
#define UCLE_LISTS_H

#include "call.h"
#include "loaded.h"

/* Signature letters: E a list, M a matrix, L a list of lists, i BIGINT, e one element. */
enum { MOST_LIST_ARGUMENTS = 3 };

typedef struct list_function list_function;

/* A function for one element type. Its kernel is there for what a call asks of one: its name, its
 * types. */
typedef struct list_overload {
    const list_function *function;
    loaded *loaded;
    kernel kernel;
} list_overload;

/* An argument over the rows of a chunk. */
typedef struct list_column {
    char letter;
    const uint8_t *validity;
    const int64_t *integers;         /* i */
    const int32_t *shape[2];         /* M: rows, cols */
    const uint8_t *shape_validity[2];
    const duck_list *outer;          /* L */
    const duck_list *lists;          /* E, M; L: the inner ones */
    const uint8_t *lists_validity;
    const void *data;
    const uint8_t *data_validity;
} list_column;

/* Where the results of a chunk go. */
typedef struct list_writer {
    char letter;
    void *vector;
    void *lists, *rows; /* the vectors of the lists of elements, and of L's inner lists */
    size_t used, used_rows; /* elements, and inner lists, that were written */
} list_writer;

typedef struct list_call {
    call call; /* error, watch and scratch memory */
    list_column args[MOST_LIST_ARGUMENTS];
    list_writer out;
} list_call;

typedef struct array {
    const void *data;
    size_t rows, cols; /* a vector is one row */
} array;

struct list_function {
    const char *name, *signature;
    size_t (*apply)(list_call *, size_t row); /* scalar: rows done, 0 after an error */
    enum list_aggregate { NOT_AN_AGGREGATE, VEC_SUM, VEC_AVG, VEC_MIN, VEC_MAX } aggregate;
};

size_t list_function_count(void);
const list_function *list_function_at(size_t index);

/* Whether the arguments of two rows are the same ones: lists that lie at one place, equal numbers. */
bool same_argument(const list_column *k, size_t row, size_t other);

/* A call over the rows of a chunk; one of an aggregate that combines or finishes has none. */
void list_call_open(list_call *l, const list_overload *overload, void *chunk, void *result);

/* A call that is released at the end of its block. */
static inline void list_call_release(list_call *l) { call_release(&l->call); }
#define LIST_CALL __attribute__((cleanup(list_call_release))) list_call

/* These fail where something is NULL inside, or a matrix has not as many elements as it says. */
bool read_vector(list_call *l, int arg, size_t row, array *v);
bool read_matrix(list_call *l, int arg, size_t row, array *a);

/* Room for the result of a row, which it is at once: a matrix or lists of rows x cols, or a list of
 * `elements` for each of several rows, one behind the other. NULL after an error. */
void *put_vectors(list_call *l, size_t row, size_t rows, size_t elements);
void *put_matrix(list_call *l, size_t row, size_t rows, size_t cols);
void *put_rows(list_call *l, size_t row, size_t rows, size_t cols);
void put_null(list_call *l, size_t row);

void list_scalar_callback(void *info, void *chunk, void *result);

/* The callbacks of the aggregates: list_aggregates.c. */
uint64_t vector_state_size(void *info);
void vector_state_init(void *info, void *state);
void vector_state_update(void *info, void *chunk, void **states);
void vector_state_combine(void *info, void **source, void **target, uint64_t count);
void vector_state_finalize(void *info, void **states, void *result, uint64_t count,
                           uint64_t offset);
void vector_state_destroy(void **states, uint64_t count);

#endif
