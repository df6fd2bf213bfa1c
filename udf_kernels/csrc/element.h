/* An element type as the kernels see it: how large its elements are, and a table of loops.
 *
 * Tensors are arrays of elements at any address: BLOBs are not aligned. The loops come from one
 * template, loops_template.h, compiled once per type. NaN and infinity behave as in NumPy; only
 * the order of summation differs.
 */
#ifndef UCLE_ELEMENT_H
#define UCLE_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops.h"
#include "watch.h"

/* The largest size that is taken from SQL: tensors that hold nothing may have any, and up to here
 * float64 counts. */
static const size_t LARGEST_SIZE = (size_t)1 << 53;

/* Stored elements: they need not be aligned and may lie in memory of any declared type. */
typedef double f64 __attribute__((aligned(1), may_alias));
typedef float f32 __attribute__((aligned(1), may_alias));
typedef int64_t i64 __attribute__((aligned(1), may_alias));
typedef uint8_t boolean; /* any byte but 0 is true */
typedef struct __attribute__((packed, may_alias)) c128 {
    double re, im;
} c128;
typedef struct __attribute__((packed, may_alias)) c64 {
    float re, im;
} c64;

/* One element of any type. */
typedef union element {
    double f64;
    float f32;
    int64_t i64;
    boolean boolean;
    c128 c128;
    c64 c64;
} element;

/* What went wrong in a loop: a set of bits, 0 if nothing did. */
typedef uint64_t trouble;
#define OVERFLOWS ((trouble)1 << 63) /* the sign bit: loops get it without a branch */
#define NEGATIVE_POWER ((trouble)1)
#define CANNOT_HOLD ((trouble)2)
#define NO_MEMORY ((trouble)4)
#define INTERRUPTED ((trouble)8)

/* A matrix in memory; element (i, j) lies i * row + j * column elements behind data. */
typedef struct matrix {
    const void *data;
    size_t row, column;
} matrix;

/* Which entries come first. */
enum top_order { TOP_MAX, TOP_MIN };

typedef struct kernel kernel;
typedef struct csr_loops csr_loops;
typedef struct multiway_loops multiway_loops;

/* What becomes of c: c + a b, c - a b, or, of real numbers, c less each term of a b after the other, as
 * elimination does it. In a sum of the terms, what cancels c would leave rounding errors. */
enum gemm_mode { GEMM_ADD, GEMM_SUBTRACT, GEMM_ELIMINATE };

typedef struct element_type {
    const char *name; /* NumPy's */
    enum type_number number;
    size_t size, log_size;      /* in bytes, a power of two: divisions are slow */
    size_t parts;               /* 2, each of half the size, if complex, else 1 */
    uint64_t maps, combines, reduces; /* bit sets of the operations it has */
    element identity[REDUCES];
    const csr_loops *csr; /* over the entries of compressed tensors */
    const multiway_loops *multiway; /* NULL: a type of two parts */
    const kernel *kernels;
    size_t kernel_count;

    trouble (*map)(enum map_op op, size_t n, const void *x, void *restrict out);
    /* out[i] = a[i * sa] op b[i * sb] */
    trouble (*combine)(enum combine_op op, size_t n, const void *a, size_t sa, const void *b,
                       size_t sb, void *restrict out);
    /* out[i * so] = out[i * so] op x[i * sx]; so = 0 folds all of x into *out */
    trouble (*reduce)(enum reduce_op op, size_t n, const void *x, size_t sx, void *restrict out,
                      size_t so);
    /* Of planes of n elements each, out's from the first one on are what x's are up to them, one op
     * the other; those before are there. */
    trouble (*running)(enum reduce_op op, size_t first, size_t planes, size_t n, const void *x,
                       void *out);
    /* Of float64 and int64, see top_template.h: planes first to end - 1 of x, which begins at the
     * first one, into a list of k pairs for each of their lanes; the lists of another state, too; and
     * n entries that are step apart, as pairs in order. */
    void (*top)(enum top_order order, size_t first, size_t end, size_t lanes, size_t k,
                const void *x, void *lists);
    void (*top_merge)(enum top_order order, size_t lanes, size_t k, const void *from, void *into);
    void (*top_sort)(enum top_order order, size_t n, const void *x, size_t step, void *pairs);
    trouble (*cast[TYPES])(size_t n, const void *x, void *restrict out);

    void (*fill)(size_t n, const void *value, void *restrict out);
    /* out[i * so] = x[i * sx] */
    void (*copy)(size_t n, const void *x, ptrdiff_t sx, void *restrict out, ptrdiff_t so);
    /* How many differ from fill; NaN differs from everything but NaN. */
    size_t (*count_not)(size_t n, const void *x, const void *fill);
    /* Whether there is neither NaN nor infinity. */
    bool (*all_finite)(size_t n, const void *x);
    /* Takes over what does not have the very bits of fill. */
    void (*overlay)(size_t n, const void *fill, const void *x, void *restrict out);

    /* Sums of products, for all types but bool: y += c x, y += a * b, *out += x . y, and
     * y (n) += x (k) times the k x n matrix a, row-major. */
    trouble (*axpy)(size_t n, const void *c, const void *x, void *restrict y);
    trouble (*multiply_add)(size_t n, const void *a, const void *b, void *restrict y);
    trouble (*dot)(size_t n, const void *x, const void *y, void *restrict out);
    trouble (*vector_matrix)(size_t n, size_t k, const void *x, const void *a, void *restrict y);
    trouble (*matrix_vector)(size_t m, size_t k, const void *a, const void *x, void *restrict y);

    /* Of types whose sums need totals, see sums.h: totals += x; into += from, both totals; out =
     * totals + x. Of integers besides: y -= x, which undoes what wrapped around; and the contraction
     * totals[i * so] += a[i * sa] * b[i * sb], or without b. */
    size_t total_size;
    trouble (*gather)(size_t n, const void *x, void *restrict totals);
    trouble (*join_totals)(size_t n, const void *from, void *restrict into);
    trouble (*narrow)(size_t n, const void *totals, const void *x, void *out);
    void (*retract)(size_t n, const void *x, void *restrict y);
    trouble (*exact)(size_t n, const void *a, size_t sa, const void *b, size_t sb,
                     void *restrict totals, size_t so);

    /* Blocked matrix products, where there are any: of c (m x n), a (m x k) and b (k x n), in as many
     * bytes of panels as the other one says. */
    size_t (*panel_bytes)(size_t m, size_t n, size_t k);
    trouble (*gemm)(size_t m, size_t n, size_t k, enum gemm_mode mode, matrix a, matrix b, void *c,
                    size_t c_row, size_t c_column, void *panels, watch *w);

    /* Of complex types: between elements and separate real and imaginary parts. */
    void (*join)(size_t n, const void *re, const void *im, void *restrict out);
    void (*split)(size_t n, const void *x, void *restrict re, void *restrict im);
} element_type;

#define UCLE_EXTERN(tag, text) extern const element_type type_##tag;
EACH_TYPE(UCLE_EXTERN)

/* Reductions to one element go on from block to block of so many, whoever cuts them into blocks; sums
 * do so in a wider type, where there is one. */
enum { FOLD_BLOCK = 512, SUM_BLOCK = 128 };

/* The address of element i, or the distance to it. */
static inline const void *at(const element_type *type, const void *data, size_t i) {
    return (const char *)data + i * type->size;
}
static inline void *at_out(const element_type *type, void *data, size_t i) {
    return (char *)data + i * type->size;
}

#endif
