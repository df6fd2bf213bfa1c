/* The loops over compressed entries of one element type; csr_template.h defines them. */
#ifndef UCLE_CSR_LOOPS_H
#define UCLE_CSR_LOOPS_H

#include "element.h"

/* Indices in a BLOB, at any address. */
typedef uint32_t u32 __attribute__((aligned(1), may_alias));

enum { CSR_FEW = 64, CSR_BLOCK = 256 };

struct csr_loops {
    /* out[i] = x[idx[i]], and out[idx[i]] = x[i] */
    void (*pick)(size_t n, const void *x, const u32 *idx, void *restrict out);
    void (*place)(size_t n, const void *x, const u32 *idx, void *restrict out);
    /* Keeps what differs from fill, with its index (idx NULL: its position); returns how many. */
    size_t (*keep)(size_t n, const void *x, const u32 *idx, const void *fill, u32 *idx_out,
                   void *out);
    /* y (n) += the sum of x[e] times row idx[e] of a matrix of n columns. */
    trouble (*add_rows)(size_t count, const void *x, const u32 *idx, const void *a, size_t n,
                        void *restrict y);
    /* The same for so many rows of y. */
    trouble (*multiply_rows)(size_t rows, const u32 *ptr, const u32 *idx, const void *x,
                             const void *a, size_t n, void *restrict y);
    /* The rows at idx of a matrix of n columns: each += x[e] times one line of n. */
    trouble (*add_to_rows)(size_t count, const void *x, const u32 *idx, const void *line, size_t n,
                           void *restrict out);
    /* y (n) += the sum of x[e] times the sum of rows idx[e] to ends[e] - 1; OVERFLOWS where a sum of
     * rows does not stay a number. */
    trouble (*add_runs)(size_t count, const void *x, const u32 *idx, const u32 *ends, const void *a,
                        size_t n, void *restrict y);
    /* *out += the sum of x[e] times the length of the run. */
    trouble (*sum_runs)(size_t count, const void *x, const u32 *idx, const u32 *ends, void *out);
    /* out[e] = x . row idx[e] of a matrix of n columns. */
    trouble (*dots)(size_t count, const u32 *idx, size_t n, const void *x, const void *a,
                    void *restrict out);

    /* Accumulators, of sums as wide as they are exact or as in double: acc[idx[e]] += factor x[e]; or
     * op= x[e]. */
    size_t sum_size;
    void (*clear)(enum reduce_op op, size_t n, void *acc);
    trouble (*spread)(size_t n, const void *factor, const u32 *idx, const void *x, void *restrict acc);
    trouble (*spread_reduce)(enum reduce_op op, size_t n, const u32 *idx, const void *x,
                             void *restrict acc);
    /* Lines of n, at most CSR_BLOCK, whose distance is `pitch`: each op= x[i]; or += factor x[i]. */
    trouble (*spread_line)(enum reduce_op op, size_t lines, size_t pitch, size_t n,
                           const void *factor, const void *x, void *restrict acc);
    /* out[e] = acc[idx[e]] (idx NULL: acc[e]), which is cleared. */
    trouble (*collect)(enum reduce_op op, size_t n, const u32 *idx, void *acc, void *restrict out);

    /* Records of an entry each: u32 row, u32 column, value. Those that differ from fill are counted,
     * count[row]++, and put where next[row]++ says. */
    size_t (*count_records)(size_t n, const char *records, const void *fill, u32 *count);
    void (*put_records)(size_t n, const char *records, const void *fill, u32 *next, u32 *idx,
                        void *values);
    /* Sorts up to CSR_FEW entries by their indices; false if two are the same. */
    bool (*sort_few)(size_t n, u32 *idx, void *values);
};

#endif
