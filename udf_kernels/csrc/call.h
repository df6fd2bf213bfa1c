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

#include "csr_loops.h"
#include "duckdb_api.h"
#include "ein.h"
#include "element.h"
#include "kernel_limits.h"
#include "memory.h"
#include "strided.h"
#include "sums.h"

typedef struct call call;

enum { MAX_ARGUMENTS = 8, CSR_ARGUMENTS = 4, WORK_BUFFERS = 7 + CSR_ARGUMENTS, SPARES = 2 };

/* Signature letters: b BLOB, s VARCHAR, i BIGINT, I BIGINT[], o BOOLEAN; e is one element of the
 * kernel's type, E a list of them. v, the last parameter, is any number of BLOBs that may be NULL; B a
 * list of BLOBs. */

enum layout {
    LAYOUT_FIXED,        /* entries: values of one size; complex ones in their parts instead */
    LAYOUT_DUCK_STRING,  /* entries: duck_string */
    LAYOUT_DUCK_LIST,    /* entries: duck_list, data: elements */
    LAYOUT_ARROW_32,     /* entries: int32 offsets, data: bytes or elements */
    LAYOUT_ARROW_64      /* entries: int64 offsets */
};

/* The real or the imaginary parts of complex numbers, which SQL keeps in a STRUCT. That of number i
 * stands at i + shift. */
typedef struct part {
    const void *data;
    const uint8_t *validity;
    size_t shift;
} part;

typedef struct column {
    enum layout layout;
    const uint8_t *validity;       /* bit per entry, lowest first; NULL: all are valid */
    const void *entries;
    const void *data;
    const uint8_t *child_validity; /* of list elements */
    size_t child_first;            /* Arrow: where the child's slice begins */
    size_t first, step;            /* row r reads entry first + r * step; step 0 repeats one */
    part parts[2];                 /* of complex entries or list elements */
} column;

typedef struct view {
    const char *data;
    size_t bytes;
} view;

static inline bool same_bytes(view u, view v) {
    return u.bytes == v.bytes &&
           (u.bytes == 0 || u.data == v.data || memcmp(u.data, v.data, u.bytes) == 0);
}

/* A tensor in flight. */
typedef struct tensor {
    const void *data;
    size_t length;
} tensor;

/* Elements first to first + length - 1 of a child column. */
typedef struct list {
    const void *data;
    const uint8_t *validity;
    size_t first, length;
} list;

/* Memory that grows and is reused from row to row. */
typedef struct buffer {
    char *data;
    size_t capacity;
} buffer;

typedef struct writer {
    char type;         /* the signature letter */
    void *vector;      /* the DuckDB vector, or NULL: results go to Arrow buffers */
    void *values;      /* fixed-size values, DuckDB list entries, or Arrow's int64 offsets */
    void *parts[2];    /* DuckDB: complex values instead */
    uint8_t *validity; /* Arrow: made when the first NULL is written */
    size_t rows;
    char *next;        /* what is left of the room that was asked for last */
    bool in_place;     /* it lies in the DuckDB vector */
    buffer store;      /* Arrow: all tensors; DuckDB: the tensor that awaits its copy */
    size_t used;       /* elements in the store, or in the child vector of DuckDB's lists */
    buffer ends;       /* Arrow: where each BLOB of a list ends in the store */
    size_t items;      /* how many there are */
} writer;

typedef struct addend addend;
typedef struct growth growth;

struct kernel {
    const char *name;
    const char *signature; /* parameters, '>', result */
    const char *gathered;  /* aggregates: 'x' where Arrow rows bring a list, '-' where one value */
    const element_type *type, *result; /* of tensors that come and go; they differ in casts only */
    size_t (*apply)(call *, size_t row);                 /* scalar: rows done, 0 after an error */
    bool (*prepare)(call *, size_t row, addend *);       /* aggregate: checks a row */
    trouble (*add)(call *, const addend *, void *state); /* aggregate: accumulates it */
    int op;
    ein_plan (*plan)(const call *, const addend *);      /* aggregate: the same as a contraction */
    trouble (*add_to_totals)(call *, const addend *, void *totals); /* or its sums without a plan */
    const growth *growth;  /* aggregate: instead of these, where states grow (growth.h) */
};

struct call {
    const kernel *kernel;
    const element_type *type; /* the kernel's */
    account *account; /* of all memory of the call */
    size_t arguments, rows;
    column args[MAX_ARGUMENTS];
    column *tail; /* the arguments of a parameter v, which are not counted above */
    size_t tail_count;
    buffer *tail_work; /* of each of them */
    writer out;
    bool failed;
    watch watch;
    size_t result_bytes; /* of all rows so far */
    char message[512];
    buffer scratch;
    buffer work[WORK_BUFFERS];
    size_t zeroed[WORK_BUFFERS]; /* bytes of them */
    size_t sums_clear;           /* accumulators that stand at nothing, for this operation */
    enum reduce_op sums_op;
    view narrowed;               /* the operand whose columns were numbered last */
    size_t narrowed_columns;
    view checked[CSR_ARGUMENTS]; /* the compressed tensors that were looked at last */
    size_t expanded[CSR_ARGUMENTS]; /* bytes of their entries, if they were runs that were expanded */
    view forest; /* the tensor whose forest was read last */
    buffer *spares; /* memory that the result may take over, or NULL */
    ein_plan plan; /* of the spec and sizes seen last */
    view plan_spec, plan_sizes;
    bool plan_ready;
};

/* What kernels make of nothing: results that are larger than their operands account for have at
 * most so many elements. */
enum { MOST_OF_NOTHING = 1 << 24 };

/* What one row of an aggregate adds to its state. */
struct addend {
    size_t length; /* elements that the state must have */
    element start; /* what a fresh state is filled with */
    tensor a, b;
    element c;
    size_t m, n, k;
    size_t terms;  /* that are added to each entry one by one */
    strided place; /* of stack kernels, which set it; the others never read it */
};
/* An addend before its row was read. Clearing the place, too, takes longer than adding a short row. */
static inline void addend_clear(addend *x) {
    memset(x, 0, offsetof(addend, place));
    x->terms = 1;
}

static inline bool kernel_has_tail(const kernel *k) { return strchr(k->signature, 'v') != NULL; }
static inline bool kernel_is_aggregate(const kernel *k) {
    return k->prepare != NULL || k->growth != NULL;
}
/* Whether its states may need totals. */
static inline bool kernel_has_totals(const kernel *k) {
    return kernel_is_aggregate(k) && k->op == REDUCE_sum && has_totals(k->type) &&
           (k->plan != NULL || k->add_to_totals != NULL);
}
static inline size_t max_elements(const element_type *type) { return UCLE_LARGEST_BLOB / type->size; }

/* A call over the rows of one of DuckDB's chunks, or without one; whoever opens it reads its columns,
 * those behind the others with room that the call gives. */
void call_open(call *c, const kernel *k, account *account, void *chunk);
bool call_tail(call *c, size_t count);
void call_run(call *c);
void call_release(call *c);
/* A call that is released at the end of its block, also where DuckDB throws an exception through it. */
#define CALL __attribute__((cleanup(call_release))) call

/* Records the first error of a call, `name: message`; returns false for `return fail(...)`. */
__attribute__((format(printf, 2, 3))) bool fail(call *c, const char *format, ...);
bool fail_with(call *c, trouble bad);
/* What does not fit is kept from call to call, or is of this one. */
bool fail_for_memory(call *c, const char *what);
bool fail_to_borrow(call *c, size_t bytes);
static inline bool settle(call *c, trouble bad) { return bad == 0 || fail_with(c, bad); }

/* Integers that SQL hands over are looked at one by one, before they are multiplied: from 0 to `most`,
 * and what two of them come to. */
bool check_whole(call *c, int64_t found, size_t most, const char *what, size_t *value);
bool read_whole(call *c, int arg, size_t row, size_t most, const char *what, size_t *value);
bool multiply_sizes(call *c, size_t a, size_t b, size_t *product);

/* Memory of the call; NULL after an error. */
char *call_scratch(call *c, size_t bytes);
/* The same, of which there are several: see csr_work.h. */
char *call_work(call *c, int which, size_t bytes);
char *call_tail_work(call *c, size_t number, size_t bytes);
/* Zeros, which the caller leaves as zeros. */
char *call_zeros(call *c, int which, size_t bytes);

/* A BLOB is written in two steps: the kernel fills the room of a row, then makes it the result. Room
 * of zeros may be for several rows, which take their share of it in order. NULL after an error. */
void *writer_room(call *c, size_t row, size_t elements);
void *writer_zeros(call *c, size_t row, size_t rows, size_t elements);
void writer_take(call *c, size_t row, size_t elements);
/* Copies the results of several rows into DuckDB's vector at once, RUN_BYTES at most; the rows take
 * them in order, each more than fits into a duck_string. Not for the Arrow route. */
enum { RUN_BYTES = 1 << 25 };
void writer_copy_run(call *c, size_t row, const void *data, size_t elements);
/* The others take a result that lies in memory. */
bool writer_put(call *c, size_t row, const void *data, size_t elements);
bool writer_put_list(call *c, size_t row, const void *data, size_t elements);
bool writer_put_tensors(call *c, size_t row, const view *tensors, size_t count);
void writer_put_element(call *c, size_t row, const void *value);
bool writer_null(call *c, size_t row);

/* Copies one element, whose size is a constant in each case: no call of memcpy or memcmp. */
static inline void copy_element(size_t size, const void *from, void *to) {
    switch (size) {
    case 1: memcpy(to, from, 1); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, 16); break;
    }
}

/* Whether two elements have the same bytes. */
static inline bool same_element(size_t size, const void *a, const void *b) {
    switch (size) {
    case 1: return memcmp(a, b, 1) == 0;
    case 4: return memcmp(a, b, 4) == 0;
    case 8: return memcmp(a, b, 8) == 0;
    default: return memcmp(a, b, 16) == 0;
    }
}

static inline bool bit(const uint8_t *mask, size_t i) {
    return mask == NULL || (mask[i >> 3] >> (i & 7) & 1);
}
static inline size_t column_index(const column *k, size_t row) { return k->first + row * k->step; }
static inline bool column_valid(const column *k, size_t row) {
    return bit(k->validity, column_index(k, row));
}
static inline int64_t column_integer(const call *c, int arg, size_t row) {
    return ((const i64 *)c->args[arg].entries)[column_index(&c->args[arg], row)];
}
static inline int64_t list_integer(const list *l, size_t i) {
    return ((const i64 *)l->data)[l->first + i];
}
static inline bool row_valid(const call *c, size_t row) {
    for (size_t j = 0; j < c->arguments; j++)
        if (!column_valid(&c->args[j], row)) return false;
    return true;
}

/* Whether no argument of any row is NULL. */
static inline bool all_valid(const call *c) {
    for (size_t j = 0; j < c->arguments; j++)
        if (c->args[j].validity != NULL) return false;
    return true;
}

view column_view(const column *k, size_t row);
list column_list(const column *k, size_t row);

/* These fail where something is NULL inside, or a BLOB does not hold whole elements. */
bool read_complex(call *c, int arg, size_t row, element *value);
static inline bool read_element(call *c, int arg, size_t row, element *value) {
    const column *k = &c->args[arg];
    if (c->type->parts == 2) return read_complex(c, arg, row, value);
    copy_element(c->type->size, at(c->type, k->entries, column_index(k, row)), value);
    return true;
}
bool read_tensor(call *c, int arg, size_t row, tensor *t);
bool read_list(call *c, int arg, size_t row, list *l);
/* Copies the elements of a list. */
bool read_elements(call *c, int arg, const list *l, void *out);
/* Reads the three arguments of a row and checks every position against the tensor's length. */
bool read_strided(call *c, size_t row, int offset, int sizes, int strides, size_t length,
                  strided *s);

#endif
