/* Compressed tensors: a BLOB of the places that hold something, row by row, and their values.
 *
 *     u32 magic and version, rows, cols, 0;  u32 ptr[rows + 1];  u32 idx[nnz];  0 to 7 bytes of 0;
 *     element values[nnz]
 *
 * Little-endian. Entries ptr[r] to ptr[r + 1] - 1 belong to row r, ptr[rows] is nnz, and idx ascends
 * within a row and stays below cols. A list is one with a single row. BLOBs are users': whoever
 * reads one checks all of this, in one pass, and again only where the bytes are others.
 *
 * With CSR_RUNS in place of the 0, nnz counts runs of one value each: idx has the column where each
 * begins, u32 ends[nnz] behind it the one behind its last column. Runs have columns, and do not
 * overlap. Kernels that gain nothing by runs read the entries that they stand for.
 */
#ifndef UCLE_CSR_H
#define UCLE_CSR_H

#include "kernels.h"

enum { CSR_MAGIC = 0x01525343, CSR_HEAD = 16, CSR_ALIGNMENT = 8 }; /* "CSR", version 1 */
enum { CSR_ENTRIES = 0, CSR_RUNS = 1 };

typedef struct csr {
    size_t rows, cols, nnz;
    const u32 *ptr, *idx;
    const u32 *ends; /* of runs; NULL: entries */
    const char *values;
    view bytes;
} csr;

/* The parts of a new one. */
typedef struct csr_parts {
    u32 *ptr, *idx, *ends;
    char *values;
    size_t bytes; /* of all */
} csr_parts;

/* The operations of a spec: `reduce.combine` or only one of both. */
typedef struct semiring {
    enum reduce_op reduce;
    enum combine_op combine;
    bool swapped; /* the operands of combine change places */
} semiring;

static inline size_t csr_row_length(const csr *x, size_t r) { return x->ptr[r + 1] - x->ptr[r]; }

/* Bytes before the values, of which there are so many places: two for each run. */
static inline size_t csr_values_at(size_t rows, size_t places) {
    return (CSR_HEAD + sizeof(u32) * (rows + 1 + places) + CSR_ALIGNMENT - 1) &
           ~(size_t)(CSR_ALIGNMENT - 1);
}
static inline size_t csr_places(const csr *x) { return x->ends == NULL ? x->nnz : 2 * x->nnz; }

/* Argument `arg`, below CSR_ARGUMENTS, checked: its entries; or entries or runs, as they are stored.
 * Values are of the kernel's type; of any size in the last case. */
bool read_csr(call *c, int arg, size_t row, csr *x);
bool read_csr_stored(call *c, int arg, size_t row, csr *x);
bool read_csr_places(call *c, int arg, size_t row, csr *x);

/* The entries of what an argument has stored, if these are runs: in memory of the call. */
bool csr_expand(call *c, int arg, csr *x);
bool csr_expand_tail(call *c, size_t number, csr *x);

/* The entries of a tensor of a parameter v, checked each time. */
bool read_csr_of_tail(call *c, size_t number, size_t row, csr *x);

/* The parts of one that was checked before. */
csr csr_of(view bytes);

/* Room for a result whose header and padding are written; `csr_take` makes it the result. The
 * kernel's result type is one of bytes. */
bool csr_room(call *c, size_t row, size_t rows, size_t cols, size_t nnz, csr_parts *out);
bool csr_room_of_runs(call *c, size_t row, size_t rows, size_t cols, size_t nnz, csr_parts *out);
/* Writes the header and the padding of one into memory that has room for it. */
void csr_begin(char *bytes, size_t rows, size_t cols, size_t nnz, bool runs, csr_parts *out);
/* The same with the places of x, which are written, too. */
bool csr_room_like(call *c, size_t row, const csr *x, csr_parts *out);
static inline size_t csr_take(call *c, size_t row, const csr_parts *out) {
    writer_take(c, row, out->bytes);
    return 1;
}
/* A result of rows times columns; nothing is made of a shape that no BLOB can hold. */
bool csr_fits(call *c, size_t rows, size_t cols, size_t nnz);

/* '' is sum.mult (or mult), as in ein; `r` before the combination swaps its operands. */
bool read_semiring(call *c, int arg, size_t row, semiring *s);
bool read_combination(call *c, int arg, size_t row, semiring *s);
bool read_reduction(call *c, int arg, size_t row, semiring *s);

/* A dense matrix of so many lines of n elements. */
bool read_lines(call *c, int arg, size_t row, size_t lines, size_t n, tensor *t);

/* An argument of 0 to UINT32_MAX. */
bool read_extent(call *c, int arg, size_t row, const char *what, size_t *extent);

static inline bool sums_products(const element_type *type, const semiring *s) {
    return s->reduce == REDUCE_sum && s->combine == OP_mult && type->axpy != NULL;
}
static inline trouble combine_swapped(const element_type *type, const semiring *s, size_t n,
                                      const void *a, size_t sa, const void *b, size_t sb,
                                      void *restrict out) {
    return s->swapped ? type->combine(s->combine, n, b, sb, a, sa, out)
                      : type->combine(s->combine, n, a, sa, b, sb, out);
}

#endif
