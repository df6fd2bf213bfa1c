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
#define TIMES(v, n) ((V)((double)(v) * (double)(n)))
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

static inline V logaddexp(V u, V v) { /* equal numbers may both be infinite */
    if (u == v) return u + (V)0.69314718055994530942;
    V apart = u - v;
    if (apart != apart) return apart;
    return (u > v ? u : v) + MATH(log1p)(MATH(exp)(-MATH(fabs)(apart)));
}
/* Quotients that are rounded down, and what they leave, which has the divisor's sign: NumPy's
 * algorithm, and Python's. */
static inline V left_over(V u, V v) {
    V left = MATH(fmod)(u, v);
    return left != 0 && (left < 0) != (v < 0) ? left + v : left;
}
static inline V rounded_down(V u, V v) {
    if (v == 0) return u / (v + 0);
    V left = MATH(fmod)(u, v), quotient = (u - left) / v;
    if (left != 0 && (left < 0) != (v < 0)) quotient -= 1;
    V below = MATH(floor)(quotient);
    return quotient - below > (V)0.5 ? below + 1 : below;
}

COMBINE(hypot, MATH(hypot)(u, v))
COMBINE(logaddexp, logaddexp(u, v))
COMBINE(atan2, MATH(atan2)(u + 0, v + 0))
COMBINE(copysign, v < 0 ? -MATH(fabs)(u) : MATH(fabs)(u)) /* nor has NaN a sign */
COMBINE(nextafter, MATH(nextafter)(u, v))
COMBINE(remainder, left_over(u, v))
COMBINE(floor_divide, rounded_down(u, v))

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
MAP(sin, MATH(sin)(v))
MAP(cos, MATH(cos)(v))
MAP(tan, MATH(tan)(v))
MAP(asin, MATH(asin)(v))
MAP(acos, MATH(acos)(v))
MAP(atan, MATH(atan)(v))
MAP(sinh, MATH(sinh)(v))
MAP(cosh, MATH(cosh)(v))
MAP(asinh, MATH(asinh)(v))
MAP(acosh, MATH(acosh)(v))
MAP(atanh, MATH(atanh)(v))
MAP(expm1, MATH(expm1)(v))
MAP(log2, MATH(log2)(v))
MAP(log10, MATH(log10)(v))
MAP(sqrt, MATH(sqrt)(v))
MAP(abs, MATH(fabs)(v))
MAP(neg, -v)
MAP(square, v * v)
MAP(reciprocal, 1 / (v + 0))
MAP(sign, v > 0 ? 1 : v < 0 ? -1 : v != v ? v : 0)
MAP(gelu, gelu(v))
MAP(silu, v * sigmoid(v))
MAP(softplus, MATH(log1p)(MATH(exp)(-MATH(fabs)(v))) + combine_greatest(v, 0))
MAP(erf, MATH(erf)(v))
MAP(floor, MATH(floor)(v))
MAP(ceil, MATH(ceil)(v))
MAP(trunc, MATH(trunc)(v))
MAP(round, MATH(rint)(v)) /* half to even */
MAP(normal_quantile, (V)normal_quantile((double)v))
MAP(isnan, v != v)
MAP(isinf, !IS_FINITE(v) && v == v)
MAP(isfinite, IS_FINITE(v))
MAP(finite, IS_FINITE(v) ? v : 0)
MAP(one_if_zero, v == 0 ? 1 : v)
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
