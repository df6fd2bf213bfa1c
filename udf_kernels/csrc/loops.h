/* The hot loops. They take doubles at any address: BLOBs are not aligned.
 *
 * NaN and infinity behave as in NumPy; only the order of summation differs.
 */
#ifndef UCLE_LOOPS_H
#define UCLE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values that need not be aligned and may lie in memory of any declared type. */
typedef double f64 __attribute__((aligned(1), may_alias));
typedef int64_t i64 __attribute__((aligned(1), may_alias));

enum map_op {
    MAP_RELU, MAP_LEAKY_RELU, MAP_SIGMOID, MAP_TANH, MAP_EXP, MAP_LOG, MAP_LOG1P,
    MAP_SQRT, MAP_ABS, MAP_NEG, MAP_SQUARE, MAP_RECIPROCAL, MAP_SIGN
};
enum combine_op { OP_MULT, OP_ADD, OP_SUB, OP_DIV, OP_POW, OP_MIN, OP_MAX };
enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MIN, REDUCE_MAX };

double reduce_identity(enum reduce_op op);

void loop_map(enum map_op op, size_t n, const f64 *x, f64 *restrict out);

/* out[i] = a[i * sa] op b[i * sb] */
void loop_combine(enum combine_op op, size_t n, const f64 *a, size_t sa, const f64 *b, size_t sb,
                  f64 *restrict out);

/* out[i * so] = out[i * so] op x[i * sx]; so = 0 folds all of x into *out */
void loop_reduce(enum reduce_op op, size_t n, const f64 *x, size_t sx, f64 *restrict out, size_t so);

/* y += c x, y += a * b, and x . y */
void loop_axpy(size_t n, double c, const f64 *x, f64 *restrict y);
void loop_multiply_add(size_t n, const f64 *a, const f64 *b, f64 *restrict y);
double loop_dot(size_t n, const f64 *x, const f64 *y);

/* y (n) += x (k) times the k x n matrix a whose rows lie `stride` apart */
void loop_vector_matrix(size_t n, size_t k, const f64 *x, const f64 *a, size_t stride,
                        f64 *restrict y);

void loop_fill(size_t n, double value, f64 *out);
size_t loop_count_not(size_t n, const f64 *x, double fill);

#endif
