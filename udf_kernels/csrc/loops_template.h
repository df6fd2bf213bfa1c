/* The hot loops of one element type, compiled by its own file (f64.c, f32.c, ...).
 *
 * That file defines S, the element as it is stored, and V, what is computed with; ops_*.h, which it
 * includes before, says what the operations mean. The loops note in `bad` what goes wrong; only
 * integers and casts touch it.
 */
#include <string.h>

#include "element.h"
#include "hot.h"

/* ---- Entry by entry ---- */

#define MAP_CASE(name)                                                          \
    case MAP_##name:                                                            \
        for (size_t i = 0; i < n; i++) {                                        \
            V v = x[i];                                                         \
            out[i] = map_##name(v);                                             \
        }                                                                       \
        break;

HOT trouble map(enum map_op op, size_t n, const void *from, void *restrict to) {
    const S *x = from;
    S *out = to;
    trouble bad = 0;
    switch (op) {
        FAMILY_MAPS(MAP_CASE)
    default: break;
    }
    return bad;
}

/* The strides that occur most get loops of their own, which the compiler can vectorise. */
#define COMBINE_LOOP(p, q, name)            \
    for (size_t i = 0; i < n; i++) {        \
        V u = a[p], v = b[q];               \
        out[i] = combine_##name(u, v);      \
    }
#define COMBINE_CASE(name)                                              \
    case OP_##name:                                                     \
        if (sa == 1 && sb == 1) { COMBINE_LOOP(i, i, name) }            \
        else if (sa == 1 && sb == 0) { COMBINE_LOOP(i, 0, name) }       \
        else if (sa == 0 && sb == 1) { COMBINE_LOOP(0, i, name) }       \
        else { COMBINE_LOOP(i * sa, i * sb, name) }                     \
        break;

HOT trouble combine(enum combine_op op, size_t n, const void *left, size_t sa, const void *right,
                    size_t sb, void *restrict to) {
    const S *a = left, *b = right;
    S *out = to;
    trouble bad = 0;
    switch (op) {
        FAMILY_SYMMETRIC(COMBINE_CASE)
        FAMILY_ORDERED(COMBINE_CASE)
    default: break;
    }
    return bad;
}

#define CONVERT_f64(v) ((double)REAL(v))
#define CONVERT_f32(v) ((float)REAL(v))
#define CONVERT_i64(v) TO_INT64(v)
#define CONVERT_boolean(v) NONZERO(v)
#define CONVERT_c128(v) ((c128){(double)REAL(v), (double)IMAG(v)})
#define CONVERT_c64(v) ((c64){(float)REAL(v), (float)IMAG(v)})

/* As C does it, but C leaves open what becomes of numbers that do not fit. */
static inline int64_t truncated(double v, trouble *bad) {
    if (v >= -0x1p63 && v < 0x1p63) return (int64_t)v;
    *bad |= CANNOT_HOLD;
    return 0;
}

#define CAST_LOOP(tag, text)                                                     \
    HOT trouble cast_to_##tag(size_t n, const void *from, void *restrict to) {   \
        const S *x = from;                                                       \
        tag *out = to;                                                           \
        trouble bad = 0;                                                         \
        for (size_t i = 0; i < n; i++) {                                         \
            V v = x[i];                                                          \
            out[i] = CONVERT_##tag(v);                                           \
        }                                                                        \
        return bad;                                                              \
    }
EACH_TYPE(CAST_LOOP)

HOT void fill(size_t n, const void *value, void *restrict to) {
    S *out = to;
    V v = *(const S *)value;
    for (size_t i = 0; i < n; i++) out[i] = v;
}

/* Through V: a bool that is stored as 2 becomes 1. */
HOT void copy(size_t n, const void *from, ptrdiff_t sx, void *restrict to, ptrdiff_t so) {
    const S *x = from;
    S *out = to;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) out[i * so] = (V)x[i * sx];
}

HOT size_t count_not(size_t n, const void *from, const void *value) {
    const S *x = from;
    V fill = *(const S *)value;
    size_t count = 0;
    if (IS_NAN(fill))
        for (size_t i = 0; i < n; i++) {
            V v = x[i];
            count += !IS_NAN(v);
        }
    else
        for (size_t i = 0; i < n; i++) {
            V v = x[i];
            count += NONZERO(combine_not_equal(v, fill));
        }
    return count;
}

HOT bool all_finite(size_t n, const void *from) {
    enum { BLOCK = 4096 }; /* one that is not finite is reported soon, and no branch is in the loop */
    const S *x = from;
    for (size_t first = 0; first < n; first += BLOCK) {
        size_t end = n - first < BLOCK ? n : first + BLOCK;
        unsigned all = 1;
        for (size_t i = first; i < end; i++) {
            V v = x[i];
            all &= IS_FINITE(v);
        }
        if (!all) return false;
    }
    return true;
}

HOT void overlay(size_t n, const void *fill, const void *from, void *restrict to) {
    const S *x = from;
    S *out = to;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&x[i], fill, sizeof(S)) != 0) out[i] = x[i];
}

/* ---- Reductions ---- */

#define STEP_sum(u, v) combine_add(u, v)
#define STEP_prod(u, v) combine_mult(u, v)
#define STEP_min(u, v) combine_least(u, v)
#define STEP_max(u, v) combine_greatest(u, v)

/* Four chains hide the latency of the operation; one of them takes what is left over. `result` is
 * what x has from element `start` to `start + n - 1`. */
#define CHAINS(STEP, none, result, start, n)                                                   \
    {                                                                                          \
        const S *first = x + (start) * sx;                                                     \
        size_t q = (n) / 4;                                                                    \
        V r0 = none, r1 = none, r2 = none, r3 = none;                                          \
        if (sx == 1)                                                                           \
            for (size_t i = 0; i < q; i++) {                                                   \
                const S *p = first + 4 * i;                                                    \
                V x0 = p[0], x1 = p[1], x2 = p[2], x3 = p[3];                                  \
                r0 = STEP(r0, x0), r1 = STEP(r1, x1), r2 = STEP(r2, x2), r3 = STEP(r3, x3);    \
            }                                                                                  \
        else                                                                                   \
            for (size_t i = 0; i < q; i++) {                                                   \
                const S *p = first + 4 * i * sx;                                               \
                V x0 = p[0], x1 = p[sx], x2 = p[2 * sx], x3 = p[3 * sx];                       \
                r0 = STEP(r0, x0), r1 = STEP(r1, x1), r2 = STEP(r2, x2), r3 = STEP(r3, x3);    \
            }                                                                                  \
        for (size_t i = 4 * q; i < (n); i++) {                                                 \
            V v = first[i * sx];                                                               \
            r0 = STEP(r0, v);                                                                  \
        }                                                                                      \
        r0 = STEP(r0, r1), r2 = STEP(r2, r3), result = STEP(r0, r2);                           \
    }
#define FOLD(STEP, IDENTITY)                                                              \
    {                                                                                     \
        V none = IDENTITY, all = *out;                                                    \
        for (size_t start = 0; start < n; start += FOLD_BLOCK) {                          \
            size_t length = n - start < FOLD_BLOCK ? n - start : FOLD_BLOCK;              \
            V block;                                                                      \
            CHAINS(STEP, none, block, start, length)                                      \
            all = STEP(all, block);                                                       \
        }                                                                                 \
        *out = all;                                                                       \
    }
/* Sums are kept short: each chain takes 32 elements, then the block is added in WIDE. */
#define FOLD_SUM                                                                  \
    {                                                                             \
        V none = IDENTITY_sum, end = *out;                                        \
        WIDE total = WIDEN(end);                                                  \
        for (size_t start = 0; start < n; start += SUM_BLOCK) {                   \
            size_t length = n - start < SUM_BLOCK ? n - start : SUM_BLOCK;        \
            V block;                                                              \
            CHAINS(STEP_sum, none, block, start, length)                          \
            total = WIDE_ADD(total, block);                                       \
        }                                                                         \
        *out = NARROW(total);                                                     \
    }
#define FOLD_prod FOLD(STEP_prod, IDENTITY_prod)
#define FOLD_min FOLD(STEP_min, IDENTITY_min)
#define FOLD_max FOLD(STEP_max, IDENTITY_max)
#define FOLD_sum FOLD_SUM
#define EACH(STEP, p, q)                     \
    for (size_t i = 0; i < n; i++) {         \
        V u = out[p], v = x[q];              \
        out[p] = STEP(u, v);                 \
    }
#define REDUCE_CASE(name)                                                \
    case REDUCE_##name:                                                  \
        if (so == 0) FOLD_##name                                         \
        else if (so == 1 && sx == 1) { EACH(STEP_##name, i, i) }         \
        else { EACH(STEP_##name, i * so, i * sx) }                       \
        break;

/* From left to right, as NumPy does it: what is rounded, is rounded at every step. */
#define RUNNING_CASE(name)                                                  \
    case REDUCE_##name:                                                     \
        if (n == 1) {                                                       \
            V all = out[first - 1];                                         \
            for (size_t i = first; i < planes; i++) {                       \
                V v = x[i];                                                 \
                all = STEP_##name(all, v);                                  \
                out[i] = all;                                               \
            }                                                               \
            break;                                                          \
        }                                                                   \
        for (size_t plane = first; plane < planes; plane++) {               \
            const S *before = out + (plane - 1) * n, *own = x + plane * n;  \
            S *after = out + plane * n;                                     \
            for (size_t i = 0; i < n; i++) {                                \
                V u = before[i], v = own[i];                                \
                after[i] = STEP_##name(u, v);                               \
            }                                                               \
        }                                                                   \
        break;

HOT trouble running(enum reduce_op op, size_t first, size_t planes, size_t n, const void *from,
                    void *to) {
    const S *x = from;
    S *out = to;
    trouble bad = 0;
    if (first == 0) {
        copy(n, x, 1, out, 1);
        first = 1;
    }
    switch (op) {
        FAMILY_REDUCES(RUNNING_CASE)
    default: break;
    }
    return bad;
}

HOT trouble reduce(enum reduce_op op, size_t n, const void *from, size_t sx, void *restrict to,
                   size_t so) {
    const S *x = from;
    S *out = to;
    trouble bad = 0;
    switch (op) {
        FAMILY_REDUCES(REDUCE_CASE)
    default: break;
    }
    return bad;
}

/* ---- Sums of products ---- */

#if HAS_PRODUCTS

HOT trouble axpy(size_t n, const void *factor, const void *from, void *restrict to) {
    const S *x = from;
    S *y = to;
    V c = *(const S *)factor;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) {
        V p = combine_mult(c, x[i]);
        y[i] = combine_add(y[i], p);
    }
    return bad;
}

HOT trouble multiply_add(size_t n, const void *left, const void *right, void *restrict to) {
    const S *a = left, *b = right;
    S *y = to;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) {
        V p = combine_mult(a[i], b[i]);
        y[i] = combine_add(y[i], p);
    }
    return bad;
}

#define ADD_PRODUCT(sum, i)                 \
    {                                       \
        V p = combine_mult(x[i], y[i]);     \
        sum = combine_add(sum, p);          \
    }

/* Sums of products in blocks whose chains are short; WIDE goes on from block to block. */
enum { DOT_LENGTH = 1024 };

HOT trouble dot(size_t n, const void *left, const void *right, void *restrict to) {
    S *out = to;
    V end = *out;
    WIDE total = WIDEN(end);
    trouble bad = 0;
    for (size_t start = 0; start < n; start += DOT_LENGTH) {
        /* A quarter of the vectors per chain: four independent vector accumulators. */
        size_t length = n - start < DOT_LENGTH ? n - start : DOT_LENGTH, q = length / 4;
        const S *x = (const S *)left + start, *y = (const S *)right + start;
        V s0 = IDENTITY_sum, s1 = IDENTITY_sum, s2 = IDENTITY_sum, s3 = IDENTITY_sum;
        SUM_IN_VECTORS(omp simd reduction(+ : s0, s1, s2, s3))
        for (size_t i = 0; i < q; i++) {
            ADD_PRODUCT(s0, i)
            ADD_PRODUCT(s1, i + q)
            ADD_PRODUCT(s2, i + 2 * q)
            ADD_PRODUCT(s3, i + 3 * q)
        }
        for (size_t i = 4 * q; i < length; i++) ADD_PRODUCT(s0, i)
        s0 = combine_add(s0, s1), s2 = combine_add(s2, s3), s0 = combine_add(s0, s2);
        total = WIDE_ADD(total, s0);
    }
    *out = NARROW(total);
    return bad;
}

HOT trouble vector_matrix(size_t n, size_t k, const void *vector, const void *matrix,
                          void *restrict to) {
    const S *x = vector, *a = matrix;
    S *y = to;
    trouble bad = 0;
    size_t l = 0;
    for (; l + 4 <= k; l += 4) { /* four rows per pass over y */
        const S *a0 = a + l * n, *a1 = a0 + n, *a2 = a1 + n, *a3 = a2 + n;
        V c0 = x[l], c1 = x[l + 1], c2 = x[l + 2], c3 = x[l + 3];
        for (size_t i = 0; i < n; i++) {
            V p0 = combine_mult(c0, a0[i]), p1 = combine_mult(c1, a1[i]);
            V p2 = combine_mult(c2, a2[i]), p3 = combine_mult(c3, a3[i]);
            V p01 = combine_add(p0, p1), p23 = combine_add(p2, p3), p = combine_add(p01, p23);
            y[i] = combine_add(y[i], p);
        }
    }
    for (; l < k; l++) {
        V c = x[l];
        for (size_t i = 0; i < n; i++) {
            V p = combine_mult(c, a[l * n + i]);
            y[i] = combine_add(y[i], p);
        }
    }
    return bad;
}

HOT trouble matrix_vector(size_t m, size_t k, const void *matrix, const void *vector,
                          void *restrict to) {
    const S *a = matrix, *x = vector;
    S *y = to;
    trouble bad = 0;
    size_t i = 0;
    for (; i + 4 <= m; i += 4) { /* four rows per pass over x */
        V y0 = y[i], y1 = y[i + 1], y2 = y[i + 2], y3 = y[i + 3];
        WIDE t0 = WIDEN(y0), t1 = WIDEN(y1), t2 = WIDEN(y2), t3 = WIDEN(y3);
        for (size_t start = 0; start < k; start += DOT_LENGTH) {
            size_t end = k - start < DOT_LENGTH ? k : start + DOT_LENGTH;
            const S *a0 = a + i * k, *a1 = a0 + k, *a2 = a1 + k, *a3 = a2 + k;
            V s0 = IDENTITY_sum, s1 = IDENTITY_sum, s2 = IDENTITY_sum, s3 = IDENTITY_sum;
            SUM_IN_VECTORS(omp simd reduction(+ : s0, s1, s2, s3))
            for (size_t l = start; l < end; l++) {
                V c = x[l];
                V p0 = combine_mult(a0[l], c), p1 = combine_mult(a1[l], c);
                V p2 = combine_mult(a2[l], c), p3 = combine_mult(a3[l], c);
                s0 = combine_add(s0, p0), s1 = combine_add(s1, p1);
                s2 = combine_add(s2, p2), s3 = combine_add(s3, p3);
            }
            t0 = WIDE_ADD(t0, s0), t1 = WIDE_ADD(t1, s1);
            t2 = WIDE_ADD(t2, s2), t3 = WIDE_ADD(t3, s3);
        }
        y[i] = NARROW(t0), y[i + 1] = NARROW(t1), y[i + 2] = NARROW(t2), y[i + 3] = NARROW(t3);
    }
    for (; i < m; i++) bad |= dot(k, a + i * k, x, y + i);
    return bad;
}

#endif
