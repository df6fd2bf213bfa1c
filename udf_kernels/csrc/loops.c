#include "loops.h"

#include <math.h>

/* One build serves old and new processors: the dynamic linker picks a clone of each loop. That
 * needs GCC and glibc; elsewhere, and under sanitizers, which cannot run before the linker's
 * choice, the plain loops are compiled. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(UCLE_PLAIN_LOOPS)
#if __GNUC__ >= 12 /* levels bring fused multiply-add along; "arch=haswell" would ask for the model */
#define HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HOT __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define HOT
#endif

static inline double minimum(double a, double b) { return a < b || a != a ? a : b; }
static inline double maximum(double a, double b) { return a > b || a != a ? a : b; }

static inline double sigmoid(double x) {
    double e = exp(-fabs(x)); /* at most 1: no overflow on either side */
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

double reduce_identity(enum reduce_op op) {
    switch (op) {
    case REDUCE_SUM: return 0.0;
    case REDUCE_PROD: return 1.0;
    case REDUCE_MIN: return INFINITY;
    default: return -INFINITY;
    }
}

#define MAP(expression)                \
    for (size_t i = 0; i < n; i++) {   \
        double v = x[i];               \
        out[i] = (expression);         \
    }                                  \
    break

HOT void loop_map(enum map_op op, size_t n, const f64 *x, f64 *restrict out) {
    switch (op) {
    case MAP_RELU: MAP(maximum(v, 0.0));
    case MAP_LEAKY_RELU: MAP(v > 0 ? v : 0.01 * v);
    case MAP_SIGMOID: MAP(sigmoid(v));
    case MAP_TANH: MAP(tanh(v));
    case MAP_EXP: MAP(exp(v));
    case MAP_LOG: MAP(log(v));
    case MAP_LOG1P: MAP(log1p(v));
    case MAP_SQRT: MAP(sqrt(v));
    case MAP_ABS: MAP(fabs(v));
    case MAP_NEG: MAP(-v);
    case MAP_SQUARE: MAP(v * v);
    case MAP_RECIPROCAL: MAP(1.0 / v);
    case MAP_SIGN: MAP(v > 0 ? 1.0 : v < 0 ? -1.0 : v != v ? v : 0.0);
    }
}

/* The strides that occur most get loops of their own, which the compiler can vectorise. */
#define COMBINE_LOOP(p, q, expression)    \
    for (size_t i = 0; i < n; i++) {      \
        double u = a[p], v = b[q];        \
        out[i] = (expression);            \
    }
#define COMBINE(expression)                                           \
    if (sa == 1 && sb == 1) { COMBINE_LOOP(i, i, expression) }        \
    else if (sa == 1 && sb == 0) { COMBINE_LOOP(i, 0, expression) }   \
    else if (sa == 0 && sb == 1) { COMBINE_LOOP(0, i, expression) }   \
    else { COMBINE_LOOP(i * sa, i * sb, expression) }                 \
    break

HOT void loop_combine(enum combine_op op, size_t n, const f64 *a, size_t sa, const f64 *b, size_t sb,
                      f64 *restrict out) {
    switch (op) {
    case OP_MULT: COMBINE(u * v);
    case OP_ADD: COMBINE(u + v);
    case OP_SUB: COMBINE(u - v);
    case OP_DIV: COMBINE(u / v);
    case OP_POW: COMBINE(pow(u, v));
    case OP_MIN: COMBINE(minimum(u, v));
    case OP_MAX: COMBINE(maximum(u, v));
    }
}

#define STEP_SUM(u, v) ((u) + (v))
#define STEP_PROD(u, v) ((u) * (v))

/* Four chains hide the latency of the operation; one of them takes what is left over. */
#define FOLD(STEP)                                                                             \
    {                                                                                          \
        size_t q = n / 4;                                                                      \
        double r0 = identity, r1 = identity, r2 = identity, r3 = identity;                     \
        if (sx == 1)                                                                           \
            for (size_t i = 0; i < q; i++) {                                                   \
                r0 = STEP(r0, x[4 * i]), r1 = STEP(r1, x[4 * i + 1]);                          \
                r2 = STEP(r2, x[4 * i + 2]), r3 = STEP(r3, x[4 * i + 3]);                      \
            }                                                                                  \
        else                                                                                   \
            for (size_t i = 0; i < q; i++) {                                                   \
                const f64 *p = x + 4 * i * sx;                                                 \
                r0 = STEP(r0, p[0]), r1 = STEP(r1, p[sx]);                                     \
                r2 = STEP(r2, p[2 * sx]), r3 = STEP(r3, p[3 * sx]);                            \
            }                                                                                  \
        for (size_t i = 4 * q; i < n; i++) r0 = STEP(r0, x[i * sx]);                           \
        *out = STEP(*out, STEP(STEP(r0, r1), STEP(r2, r3)));                                   \
    }
#define EACH(STEP)                                                                             \
    if (so == 1 && sx == 1)                                                                    \
        for (size_t i = 0; i < n; i++) out[i] = STEP(out[i], x[i]);                            \
    else                                                                                       \
        for (size_t i = 0; i < n; i++) out[i * so] = STEP(out[i * so], x[i * sx]);
#define REDUCE(STEP)          \
    if (so == 0) FOLD(STEP)   \
    else { EACH(STEP) }       \
    break

HOT void loop_reduce(enum reduce_op op, size_t n, const f64 *x, size_t sx, f64 *restrict out,
                     size_t so) {
    double identity = reduce_identity(op);
    switch (op) {
    case REDUCE_SUM: REDUCE(STEP_SUM);
    case REDUCE_PROD: REDUCE(STEP_PROD);
    case REDUCE_MIN: REDUCE(minimum);
    case REDUCE_MAX: REDUCE(maximum);
    }
}

HOT void loop_axpy(size_t n, double c, const f64 *x, f64 *restrict y) {
    for (size_t i = 0; i < n; i++) y[i] += c * x[i];
}

HOT void loop_multiply_add(size_t n, const f64 *a, const f64 *b, f64 *restrict y) {
    for (size_t i = 0; i < n; i++) y[i] += a[i] * b[i];
}

HOT double loop_dot(size_t n, const f64 *x, const f64 *y) {
    /* A quarter of the vectors per chain: four independent vector accumulators. */
    size_t q = n / 4;
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (size_t i = 0; i < q; i++) {
        s0 += x[i] * y[i];
        s1 += x[i + q] * y[i + q];
        s2 += x[i + 2 * q] * y[i + 2 * q];
        s3 += x[i + 3 * q] * y[i + 3 * q];
    }
    for (size_t i = 4 * q; i < n; i++) s0 += x[i] * y[i];
    return (s0 + s1) + (s2 + s3);
}

HOT void loop_vector_matrix(size_t n, size_t k, const f64 *x, const f64 *a, size_t stride,
                            f64 *restrict y) {
    size_t l = 0;
    for (; l + 4 <= k; l += 4) { /* four rows per pass over y */
        const f64 *a0 = a + l * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
        double c0 = x[l], c1 = x[l + 1], c2 = x[l + 2], c3 = x[l + 3];
        for (size_t i = 0; i < n; i++)
            y[i] += (c0 * a0[i] + c1 * a1[i]) + (c2 * a2[i] + c3 * a3[i]);
    }
    for (; l < k; l++) {
        const f64 *row = a + l * stride;
        double c = x[l];
        for (size_t i = 0; i < n; i++) y[i] += c * row[i];
    }
}

HOT void loop_fill(size_t n, double value, f64 *out) {
    for (size_t i = 0; i < n; i++) out[i] = value;
}

HOT size_t loop_count_not(size_t n, const f64 *x, double fill) {
    size_t count = 0;
    if (fill != fill)
        for (size_t i = 0; i < n; i++) count += x[i] == x[i];
    else
        for (size_t i = 0; i < n; i++) count += x[i] != fill;
    return count;
}
