/* One batch of rows of one kernel, however the rows arrived.
 *
 * A column is an argument over the rows of the batch: it reads DuckDB vectors and Arrow buffers
 * through the same accessors. A writer takes the results. A call holds both, the error, and
 * scratch memory; kernels see nothing else, so both routes run the same code.
 */
#ifndef UCLE_CALL_H
#define UCLE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "duckdb_api.h"
#include "ein.h"
#include "loops.h"
#include "strided.h"

enum { MAX_ARGUMENTS = 8 };

/* DuckDB counts the bytes of a BLOB in 32 bits. */
#define MAX_DOUBLES ((size_t)0x1fffffff)

/* Signature letters: b BLOB, s VARCHAR, d DOUBLE, i BIGINT, o BOOLEAN, D DOUBLE[], I BIGINT[]. */

enum layout {
    LAYOUT_FIXED,        /* entries: 8-byte values */
    LAYOUT_DUCK_STRING,  /* entries: duck_string */
    LAYOUT_DUCK_LIST,    /* entries: duck_list, data: 8-byte elements */
    LAYOUT_ARROW_32,     /* entries: int32 offsets, data: bytes or elements */
    LAYOUT_ARROW_64      /* entries: int64 offsets */
};

typedef struct column {
    enum layout layout;
    const uint8_t *validity;       /* bit per entry, lowest first; NULL: all are valid */
    const void *entries;
    const void *data;
    const uint8_t *child_validity; /* of list elements */
    size_t child_first;            /* Arrow: where the child's slice begins */
    size_t first, step;            /* row r reads entry first + r * step; step 0 repeats one entry */
} column;

typedef struct view {
    const char *data;
    size_t bytes;
} view;

/* A tensor in flight: doubles at any address. */
typedef struct tensor {
    const f64 *data;
    size_t length;
} tensor;

typedef struct list {
    const void *elements;
    const uint8_t *validity;
    size_t first, length;
} list;

/* Memory that grows and is reused from row to row. */
typedef struct buffer {
    double *data;
    size_t capacity;
} buffer;

typedef struct writer {
    char type;
    void *vector;      /* the DuckDB vector, or NULL: results go to Arrow buffers */
    void *values;      /* fixed-size values, DuckDB list entries, or Arrow's int64 offsets */
    uint8_t *validity; /* Arrow: made when the first NULL is written */
    size_t rows, nulls;
    buffer store;      /* Arrow: all tensors; DuckDB: the tensors that await their copy */
    double *room;      /* where writer_room let the kernel write */
    size_t used;
} writer;

typedef struct addend addend;

typedef struct kernel {
    const char *name;
    const char *signature; /* parameters, '>', result */
    const char *gathered;  /* aggregates: 'x' where Arrow rows bring a list, '-' where one value */
    size_t (*apply)(call *, size_t row);             /* scalar: rows done, 0 after an error */
    bool (*prepare)(call *, size_t row, addend *);   /* aggregate: checks a row */
    void (*add)(call *, const addend *, f64 *state); /* aggregate: accumulates it */
    int op;
} kernel;

struct call {
    const kernel *kernel;
    size_t arguments, rows;
    column args[MAX_ARGUMENTS];
    writer out;
    bool failed;
    char message[256];
    buffer scratch[2];
    ein_plan plan; /* of the spec and sizes seen last */
    view plan_spec, plan_sizes;
    bool plan_ready;
};

/* What one row of an aggregate adds to its state. */
struct addend {
    size_t length; /* doubles that the state must have */
    double start;  /* what a fresh state is filled with */
    tensor a, b;
    double c;
    size_t m, n, k;
    strided place; /* of stack kernels */
};

extern const kernel kernels[];
extern const size_t kernel_count;

static inline bool kernel_is_aggregate(const kernel *k) { return k->prepare != NULL; }

void call_run(call *c);
void call_release(call *c);

/* Records the first error of a call, `name: message`; returns false for `return fail(...)`. */
__attribute__((format(printf, 2, 3))) bool fail(call *c, const char *format, ...);

double *buffer_reserve(buffer *b, size_t doubles);
double *call_scratch(call *c, int which, size_t doubles);

double *writer_room(call *c, size_t doubles);
void writer_take(call *c, size_t row, size_t doubles);
bool writer_put(call *c, size_t row, const f64 *data, size_t doubles);
bool writer_null(call *c, size_t row);

static inline bool bit(const uint8_t *mask, size_t i) {
    return mask == NULL || (mask[i >> 3] >> (i & 7) & 1);
}
static inline size_t column_index(const column *k, size_t row) { return k->first + row * k->step; }
static inline bool column_valid(const column *k, size_t row) {
    return bit(k->validity, column_index(k, row));
}
static inline double column_double(const call *c, int arg, size_t row) {
    return ((const f64 *)c->args[arg].entries)[column_index(&c->args[arg], row)];
}
static inline int64_t column_integer(const call *c, int arg, size_t row) {
    return ((const i64 *)c->args[arg].entries)[column_index(&c->args[arg], row)];
}
static inline bool row_valid(const call *c, size_t row) {
    for (size_t j = 0; j < c->arguments; j++)
        if (!column_valid(&c->args[j], row)) return false;
    return true;
}

view column_view(const column *k, size_t row);
list column_list(const column *k, size_t row);
bool read_tensor(call *c, int arg, size_t row, tensor *t);
bool read_list(call *c, int arg, size_t row, list *l); /* an error where an element is NULL */

#endif
