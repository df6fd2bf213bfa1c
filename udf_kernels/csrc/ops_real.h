/* What the operations mean for floating-point numbers. Needs V, the type, and MATH(f), the name of
 * a function of math.h for it. NaN and infinity as in NumPy. */
#include <math.h>

#include "normal_quantile.h"

#define FAMILY_MAPS MAPS_real
#define FAMILY_SYMMETRIC SYMMETRIC_real
#define FAMILY_ORDERED ORDERED_real
#define FAMILY_REDUCES REDUCES_real
#define HAS_PRODUCTS 1

/* Sums go on in double from block to block. */
#define WIDE double
#define WIDEN(v) ((double)(v))
#define NARROW(w) ((V)(w))
#define WIDE_ADD(w, v) ((w) + (double)(v))
#define PARTS 1

COMBINE(mult, u * v)
COMBINE(add, u + v)
COMBINE(sub, u - v)
COMBINE(div, u / (v + 0)) /* a zero has no sign */
COMBINE(pow, MATH(pow)(u + 0, v))
COMBINE(least, u < v || u != u ? u : v)
COMBINE(greatest, u > v || u != u ? u : v)
COMBINE(less, u < v)
COMBINE(less_equal, u <= v)
COMBINE(equal, u == v)
COMBINE(not_equal, u != v)
COMBINE(when, u != 0 ? v : 0)
COMBINE(when_one, u != 0 ? v : 1)
COMBINE(when_lowest, u != 0 ? v : -(V)INFINITY)
COMBINE(when_highest, u != 0 ? v : (V)INFINITY)
COMBINE(unless, u == 0 ? v : 0)
COMBINE(sparse_mult, u == 0 || v == 0 ? 0 : u * v)
COMBINE(sparse_div, u == 0 ? 0 : u / (v + 0))

#define IS_FINITE(v) ((v) - (v) == 0)

static inline V sigmoid(V v) {
    V e = MATH(exp)(-MATH(fabs)(v)); /* at most 1: no overflow on either side */
    return (v >= 0 ? 1 : e) / (1 + e);
}
static inline V gelu(V v) { /* the usual approximation; the constant is sqrt(2 / pi) */
    return (V)0.5 * v * (1 + MATH(tanh)((V)0.79788456080286535588 * (v + (V)0.044715 * v * v * v)));
}

MAP(relu, combine_greatest(v, 0))
MAP(leaky_relu, v > 0 ? v : (V)0.01 * v)
MAP(sigmoid, sigmoid(v))
MAP(tanh, MATH(tanh)(v))
MAP(exp, MATH(exp)(v))
MAP(log, MATH(log)(v))
MAP(log1p, MATH(log1p)(v))
MAP(sqrt, MATH(sqrt)(v))
MAP(abs, MATH(fabs)(v))
MAP(neg, -v)
MAP(square, v * v)
MAP(reciprocal, 1 / (v + 0))
MAP(sign, v > 0 ? 1 : v < 0 ? -1 : v != v ? v : 0)
MAP(gelu, gelu(v))
MAP(silu, v * sigmoid(v))
MAP(softplus, MATH(log1p)(MATH(exp)(-MATH(fabs)(v))) + combine_greatest(v, 0))
MAP(floor, MATH(floor)(v))
MAP(ceil, MATH(ceil)(v))
MAP(round, MATH(rint)(v)) /* half to even */
MAP(normal_quantile, (V)normal_quantile((double)v))
MAP(isnan, v != v)
MAP(isfinite, IS_FINITE(v))
MAP(finite, IS_FINITE(v) ? v : 0)
MAP(not, v == 0)

#define IDENTITY_sum 0
#define IDENTITY_prod 1
#define IDENTITY_min INFINITY
#define IDENTITY_max -INFINITY

/* Lets the compiler reorder a sum over vectors. */
#define SUM_IN_VECTORS(...) _Pragma(#__VA_ARGS__)

#define IS_NAN(v) ((v) != (v))
#define NONZERO(v) ((v) != 0)
#define REAL(v) (v)
#define IMAG(v) 0
#define TO_INT64(v) truncated(v, &bad)
