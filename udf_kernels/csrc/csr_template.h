/* The loops over compressed entries, compiled once per element type like loops_template.h, which
 * comes before. */
#include "csr_loops.h"

#define DIFFERS(v, fill, fill_is_nan) \
    ((fill_is_nan) ? !IS_NAN(v) : NONZERO(combine_not_equal(v, fill)))

HOT void csr_pick(size_t n, const void *from, const u32 *idx, void *restrict to) {
    const S *x = from;
    S *out = to;
    for (size_t i = 0; i < n; i++) out[i] = x[idx[i]];
}

HOT void csr_place(size_t n, const void *from, const u32 *idx, void *restrict to) {
    const S *x = from;
    S *out = to;
    for (size_t i = 0; i < n; i++) out[idx[i]] = (V)x[i];
}

HOT size_t csr_keep(size_t n, const void *from, const u32 *idx, const void *value, u32 *idx_out,
                    void *to) {
    const S *x = from;
    S *out = to;
    V fill = *(const S *)value;
    bool nan = IS_NAN(fill);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        V v = x[i];
        if (!DIFFERS(v, fill, nan)) continue;
        idx_out[kept] = idx == NULL ? (u32)i : idx[i];
        out[kept++] = v;
    }
    return kept;
}

#if HAS_PRODUCTS

/* A matrix of one column: sums in blocks whose chains are short, WIDE goes on from block to block. */
static inline trouble csr_add_numbers(size_t count, const S *x, const u32 *idx, const S *a, S *y) {
    enum { LENGTH = 128 };
    V end = *y;
    WIDE total = WIDEN(end);
    trouble bad = 0;
    for (size_t start = 0; start < count; start += LENGTH) {
        size_t stop = count - start < LENGTH ? count : start + LENGTH, e = start;
        V s0 = IDENTITY_sum, s1 = IDENTITY_sum;
        for (; e + 2 <= stop; e += 2) {
            V p0 = combine_mult(x[e], a[idx[e]]), p1 = combine_mult(x[e + 1], a[idx[e + 1]]);
            s0 = combine_add(s0, p0), s1 = combine_add(s1, p1);
        }
        if (e < stop) {
            V p0 = combine_mult(x[e], a[idx[e]]);
            s0 = combine_add(s0, p0);
        }
        s0 = combine_add(s0, s1);
        total = WIDE_ADD(total, s0);
    }
    *y = NARROW(total);
    return bad;
}

static inline trouble csr_add_lines(size_t count, const S *x, const u32 *idx, const S *a, size_t n,
                                    S *restrict y) {
    trouble bad = 0;
    if (n == 1) return csr_add_numbers(count, x, idx, a, y);
    size_t e = 0;
    for (; e + 4 <= count; e += 4) { /* four rows per pass over y */
        const S *a0 = a + idx[e] * n, *a1 = a + idx[e + 1] * n;
        const S *a2 = a + idx[e + 2] * n, *a3 = a + idx[e + 3] * n;
        V c0 = x[e], c1 = x[e + 1], c2 = x[e + 2], c3 = x[e + 3];
        for (size_t i = 0; i < n; i++) {
            V p0 = combine_mult(c0, a0[i]), p1 = combine_mult(c1, a1[i]);
            V p2 = combine_mult(c2, a2[i]), p3 = combine_mult(c3, a3[i]);
            V p01 = combine_add(p0, p1), p23 = combine_add(p2, p3), p = combine_add(p01, p23);
            y[i] = combine_add(y[i], p);
        }
    }
    for (; e < count; e++) {
        const S *row = a + idx[e] * n;
        V c = x[e];
        for (size_t i = 0; i < n; i++) {
            V p = combine_mult(c, row[i]);
            y[i] = combine_add(y[i], p);
        }
    }
    return bad;
}

HOT trouble csr_add_rows(size_t count, const void *x, const u32 *idx, const void *a, size_t n,
                         void *restrict y) {
    return csr_add_lines(count, x, idx, a, n, y);
}

HOT trouble csr_multiply_rows(size_t rows, const u32 *ptr, const u32 *idx, const void *factors,
                              const void *a, size_t n, void *restrict to) {
    const S *x = factors;
    trouble bad = 0;
    for (size_t r = 0; r < rows; r++) {
        size_t start = ptr[r], count = ptr[r + 1] - start;
        bad |= csr_add_lines(count, x + start, idx + start, a, n, (S *)to + r * n);
    }
    return bad;
}

HOT trouble csr_add_to_rows(size_t count, const void *factors, const u32 *idx, const void *from,
                            size_t n, void *restrict to) {
    const S *x = factors, *line = from;
    trouble bad = 0;
    for (size_t e = 0; e < count; e++) {
        S *y = (S *)to + idx[e] * n;
        V c = x[e];
        for (size_t i = 0; i < n; i++) {
            V p = combine_mult(c, line[i]);
            y[i] = combine_add(y[i], p);
        }
    }
    return bad;
}

/* The sum of n numbers, in blocks whose chains are short. */
static inline V csr_sum_of(size_t n, const S *a, trouble *trouble_met) {
    enum { LENGTH = 128 };
    V none = IDENTITY_sum;
    WIDE total = WIDEN(none);
    trouble bad = 0;
    for (size_t start = 0; start < n; start += LENGTH) {
        size_t end = n - start < LENGTH ? n : start + LENGTH;
        V s = IDENTITY_sum;
        SUM_IN_VECTORS(omp simd reduction(+ : s))
        for (size_t l = start; l < end; l++) {
            V v = a[l];
            s = combine_add(s, v);
        }
        total = WIDE_ADD(total, s);
    }
    *trouble_met |= bad;
    return NARROW(total);
}

/* Numbers below the ends of the type may have a sum beyond, whose product would be within. */
#define STAYS(v) (IS_NAN(combine_sub(v, v)) ? OVERFLOWS : 0)

static inline trouble csr_add_run_numbers(size_t count, const S *x, const u32 *idx, const u32 *ends,
                                          const S *a, S *y) {
    V before = *y;
    WIDE total = WIDEN(before);
    trouble bad = 0;
    for (size_t e = 0; e < count; e++) {
        V s = csr_sum_of(ends[e] - idx[e], a + idx[e], &bad), c = x[e];
        bad |= STAYS(s);
        V p = combine_mult(c, s);
        total = WIDE_ADD(total, p);
    }
    *y = NARROW(total);
    return bad;
}

/* A block of columns at a time, whose sums stay in the cache. */
HOT trouble csr_add_runs(size_t count, const void *factors, const u32 *idx, const u32 *ends,
                         const void *matrix, size_t n, void *restrict to) {
    enum { COLUMNS = 128 };
    const S *x = factors, *a = matrix;
    S *y = to;
    WIDE totals[COLUMNS], sums[COLUMNS];
    V none = IDENTITY_sum;
    trouble bad = 0;
    if (n == 1) return csr_add_run_numbers(count, x, idx, ends, a, y);
    for (size_t j = 0; j < n; j += COLUMNS) {
        size_t some = n - j < COLUMNS ? n - j : COLUMNS;
        for (size_t i = 0; i < some; i++) {
            V before = y[j + i];
            totals[i] = WIDEN(before);
        }
        for (size_t e = 0; e < count; e++) {
            V c = x[e];
            for (size_t i = 0; i < some; i++) sums[i] = WIDEN(none);
            for (size_t l = idx[e]; l < ends[e]; l++) {
                const S *line = a + l * n + j;
                for (size_t i = 0; i < some; i++) {
                    V v = line[i];
                    sums[i] = WIDE_ADD(sums[i], v);
                }
            }
            for (size_t i = 0; i < some; i++) {
                V s = NARROW(sums[i]);
                bad |= STAYS(s);
                V p = combine_mult(c, s);
                totals[i] = WIDE_ADD(totals[i], p);
            }
        }
        for (size_t i = 0; i < some; i++) y[j + i] = NARROW(totals[i]);
    }
    return bad;
}

HOT trouble csr_sum_runs(size_t count, const void *factors, const u32 *idx, const u32 *ends,
                         void *to) {
    const S *x = factors;
    V before = *(const S *)to;
    WIDE total = WIDEN(before);
    trouble bad = 0;
    for (size_t e = 0; e < count; e++) {
        V v = x[e], p = TIMES(v, ends[e] - idx[e]);
        total = WIDE_ADD(total, p);
    }
    *(S *)to = NARROW(total);
    return bad;
}

/* Four rows per pass over x, like matrix_vector. */
HOT trouble csr_dots(size_t count, const u32 *idx, size_t n, const void *vector, const void *matrix,
                     void *restrict to) {
    const S *x = vector, *a = matrix;
    S *y = to;
    trouble bad = 0;
    size_t e = 0;
    for (; e + 4 <= count; e += 4) {
        const S *a0 = a + idx[e] * n, *a1 = a + idx[e + 1] * n;
        const S *a2 = a + idx[e + 2] * n, *a3 = a + idx[e + 3] * n;
        V none = IDENTITY_sum;
        WIDE t0 = WIDEN(none), t1 = t0, t2 = t0, t3 = t0;
        for (size_t start = 0; start < n; start += DOT_LENGTH) {
            size_t end = n - start < DOT_LENGTH ? n : start + DOT_LENGTH;
            V s0 = IDENTITY_sum, s1 = IDENTITY_sum, s2 = IDENTITY_sum, s3 = IDENTITY_sum;
            SUM_IN_VECTORS(omp simd reduction(+ : s0, s1, s2, s3))
            for (size_t l = start; l < end; l++) {
                V c = x[l];
                V p0 = combine_mult(c, a0[l]), p1 = combine_mult(c, a1[l]);
                V p2 = combine_mult(c, a2[l]), p3 = combine_mult(c, a3[l]);
                s0 = combine_add(s0, p0), s1 = combine_add(s1, p1);
                s2 = combine_add(s2, p2), s3 = combine_add(s3, p3);
            }
            t0 = WIDE_ADD(t0, s0), t1 = WIDE_ADD(t1, s1);
            t2 = WIDE_ADD(t2, s2), t3 = WIDE_ADD(t3, s3);
        }
        y[e] = NARROW(t0), y[e + 1] = NARROW(t1), y[e + 2] = NARROW(t2), y[e + 3] = NARROW(t3);
    }
    for (; e < count; e++) {
        V none = IDENTITY_sum;
        y[e] = none;
        bad |= dot(n, x, a + idx[e] * n, y + e);
    }
    return bad;
}

/* ---- Accumulators ---- */

#ifdef IS_EXACT
#define SUM __int128
#define SUM_ADD(s, v) total_sum(s, v, &bad)
#define SUM_PRODUCT(s, u, v) total_sum(s, (__int128)(u) * (v), &bad)
#define SUM_END(s) (bad |= (s) != (V)(s) ? OVERFLOWS : 0, (V)(s))
#else
#define SUM WIDE
#define SUM_ADD(s, v) WIDE_ADD(s, v)
#define SUM_PRODUCT(s, u, v) WIDE_ADD(s, combine_mult(u, v))
#define SUM_END(s) NARROW(s)
#endif

HOT trouble csr_spread(size_t n, const void *factor, const u32 *idx, const void *from,
                       void *restrict to) {
    const S *x = from;
    SUM *acc = to;
    V c = *(const S *)factor;
    trouble bad = 0;
    for (size_t e = 0; e < n; e++) {
        V v = x[e];
        acc[idx[e]] = SUM_PRODUCT(acc[idx[e]], c, v);
    }
    return bad;
}

#endif

#define CLEAR_CASE(name)                                             \
    case REDUCE_##name:                                              \
        for (size_t e = 0; e < n; e++) {                             \
            V none = IDENTITY_##name;                                \
            ((S *)acc)[e] = none;                                    \
        }                                                            \
        break;
#define SPREAD_CASE(name)                                            \
    case REDUCE_##name:                                              \
        for (size_t e = 0; e < n; e++) {                             \
            V u = acc[idx[e]], v = x[e];                             \
            acc[idx[e]] = STEP_##name(u, v);                         \
        }                                                            \
        break;
#define COLLECT_CASE(name)                                           \
    case REDUCE_##name:                                              \
        for (size_t e = 0; e < n; e++) {                             \
            size_t at = idx == NULL ? e : idx[e];                    \
            V none = IDENTITY_##name, v = ((S *)acc)[at];            \
            out[e] = v;                                              \
            ((S *)acc)[at] = none;                                   \
        }                                                            \
        break;

static void csr_clear(enum reduce_op op, size_t n, void *acc) {
#if HAS_PRODUCTS
    if (op == REDUCE_sum) {
        memset(acc, 0, n * sizeof(SUM));
        return;
    }
#endif
    switch (op) {
        FAMILY_REDUCES(CLEAR_CASE)
    default: break;
    }
}

HOT trouble csr_spread_reduce(enum reduce_op op, size_t n, const u32 *idx, const void *from,
                              void *restrict to) {
    const S *x = from;
    S *acc = to;
    trouble bad = 0;
#if HAS_PRODUCTS
    if (op == REDUCE_sum) {
        SUM *sums = to;
        for (size_t e = 0; e < n; e++) {
            V v = x[e];
            sums[idx[e]] = SUM_ADD(sums[idx[e]], v);
        }
        return bad;
    }
#endif
    switch (op) {
        FAMILY_REDUCES(SPREAD_CASE)
    default: break;
    }
    return bad;
}

#if HAS_PRODUCTS
static trouble csr_add_line(size_t lines, size_t pitch, size_t n, const S *factor, const S *x,
                            SUM *sums) {
    V none = IDENTITY_sum;
    SUM line[CSR_BLOCK];
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) {
        V v = x[i];
        SUM zero = WIDEN(none);
        line[i] = factor == NULL ? SUM_ADD(zero, v) : SUM_PRODUCT(zero, *factor, v);
    }
    if (n == 1 && pitch == 1) {
        SUM v = line[0];
        for (size_t l = 0; l < lines; l++) sums[l] = SUM_ADD(sums[l], v);
        return bad;
    }
    for (size_t l = 0; l < lines; l++, sums += pitch)
        for (size_t i = 0; i < n; i++) sums[i] = SUM_ADD(sums[i], line[i]);
    return bad;
}
#endif

#define LINE_CASE(name)                                              \
    case REDUCE_##name:                                              \
        for (size_t l = 0; l < lines; l++, acc += pitch)             \
            for (size_t i = 0; i < n; i++) {                         \
                V u = acc[i], v = x[i];                              \
                acc[i] = STEP_##name(u, v);                          \
            }                                                        \
        break;
#define LONG_CASE(name)                                              \
    case REDUCE_##name:                                              \
        for (size_t l = 0; l < lines; l++) {                         \
            V u = acc[l];                                            \
            acc[l] = STEP_##name(u, once);                           \
        }                                                            \
        break;

HOT trouble csr_spread_line(enum reduce_op op, size_t lines, size_t pitch, size_t n,
                            const void *factor, const void *from, void *restrict to) {
    const S *x = from;
    S *acc = to;
    trouble bad = 0;
#if HAS_PRODUCTS
    if (op == REDUCE_sum) return csr_add_line(lines, pitch, n, factor, x, to);
#endif
    (void)factor; /* of sums alone */
    if (n == 1 && pitch == 1) {
        V once = x[0];
        switch (op) {
            FAMILY_REDUCES(LONG_CASE)
        default: break;
        }
        return bad;
    }
    switch (op) {
        FAMILY_REDUCES(LINE_CASE)
    default: break;
    }
    return bad;
}

HOT trouble csr_collect(enum reduce_op op, size_t n, const u32 *idx, void *acc, void *restrict to) {
    S *out = to;
    trouble bad = 0;
#if HAS_PRODUCTS
    if (op == REDUCE_sum) {
        V none = IDENTITY_sum;
        SUM *sums = acc;
        for (size_t e = 0; e < n; e++) {
            size_t at = idx == NULL ? e : idx[e];
            out[e] = SUM_END(sums[at]);
            sums[at] = WIDEN(none);
        }
        return bad;
    }
#endif
    switch (op) {
        FAMILY_REDUCES(COLLECT_CASE)
    default: break;
    }
    return bad;
}

/* ---- Entries in any order ---- */

typedef struct __attribute__((packed, may_alias)) csr_record {
    u32 row, col;
    S value;
} csr_record;

static size_t csr_count_records(size_t n, const char *records, const void *value, u32 *count) {
    const csr_record *x = (const csr_record *)records;
    V fill = *(const S *)value;
    bool nan = IS_NAN(fill);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        V v = x[i].value;
        bool differs = DIFFERS(v, fill, nan);
        count[x[i].row] += differs;
        kept += differs;
    }
    return kept;
}

static void csr_put_records(size_t n, const char *records, const void *value, u32 *next, u32 *idx,
                            void *values) {
    const csr_record *x = (const csr_record *)records;
    S *out = values;
    V fill = *(const S *)value;
    bool nan = IS_NAN(fill);
    for (size_t i = 0; i < n; i++) {
        V v = x[i].value;
        if (!DIFFERS(v, fill, nan)) continue;
        size_t at = next[x[i].row]++;
        idx[at] = x[i].col;
        out[at] = v;
    }
}

/* Counts how many are smaller than each, without a branch. */
HOT bool csr_sort_few(size_t n, u32 *idx, void *values) {
    uint32_t keys[CSR_FEW];
    S copy[CSR_FEW], *x = values;
    uint32_t same = 0;
    for (size_t i = 0; i < n; i++) keys[i] = idx[i], copy[i] = x[i];
    for (size_t i = 0; i < n; i++) {
        uint32_t key = keys[i], rank = 0;
        for (size_t j = 0; j < n; j++) rank += keys[j] < key, same += keys[j] == key;
        idx[rank] = key;
        x[rank] = copy[i];
    }
    return same == n;
}

static const csr_loops loops_of_csr = {
    .pick = csr_pick, .place = csr_place, .keep = csr_keep,
#if HAS_PRODUCTS
    .add_rows = csr_add_rows, .multiply_rows = csr_multiply_rows,
    .add_runs = csr_add_runs, .sum_runs = csr_sum_runs, .add_to_rows = csr_add_to_rows, .dots = csr_dots, .spread = csr_spread, .sum_size = sizeof(SUM),
#endif
    .clear = csr_clear, .spread_reduce = csr_spread_reduce, .spread_line = csr_spread_line,
    .collect = csr_collect,
    .count_records = csr_count_records, .put_records = csr_put_records, .sort_few = csr_sort_few,
};
