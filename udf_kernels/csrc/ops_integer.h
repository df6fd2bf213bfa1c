/* What the operations mean for integers. Those that overflow say so in `bad`, a variable of the
 * loop around them; an intermediate result that overflows counts, even if the final one would not.
 */

#include "philox.h"

#define FAMILY_MAPS MAPS_integer
#define FAMILY_SYMMETRIC SYMMETRIC_integer
#define FAMILY_ORDERED ORDERED_integer
#define FAMILY_REDUCES REDUCES_integer
#define HAS_PRODUCTS 1

#define WIDE V
#define WIDEN(v) (v)
#define NARROW(w) (w)
#define WIDE_ADD(w, v) combine_add(w, v)
#define TIMES(v, n) combine_mult(v, (V)(n))
#define PARTS 1

/* A sum whose sign neither operand has went wrong. Without a branch, so that loops vectorise. */
static inline V added(V u, V v, trouble *bad) {
    V r = (V)((uint64_t)u + (uint64_t)v);
    *bad |= (trouble)((u ^ r) & (v ^ r)) & OVERFLOWS;
    return r;
}
static inline V difference(V u, V v, trouble *bad) {
    V r = (V)((uint64_t)u - (uint64_t)v);
    *bad |= (trouble)((u ^ v) & (u ^ r)) & OVERFLOWS;
    return r;
}
static inline V product(V u, V v, trouble *bad) {
    V r;
    *bad |= __builtin_mul_overflow(u, v, &r) ? OVERFLOWS : 0;
    return r;
}
static inline V power(V base, V exponent, trouble *bad) {
    if (exponent < 0) {
        *bad |= NEGATIVE_POWER;
        return 0;
    }
    for (V r = 1;;) {
        if (exponent & 1) r = product(r, base, bad);
        exponent >>= 1;
        if (exponent == 0) return r;
        base = product(base, base, bad); /* not once more than needed: it might overflow */
    }
}

/* By 0 they are 0, as in NumPy; by -1 the least number has a quotient that is none. */
static inline V left_over(V u, V v) {
    if (v == 0 || v == -1) return 0;
    V left = u % v;
    return left != 0 && (left < 0) != (v < 0) ? left + v : left;
}
static inline V rounded_down(V u, V v, trouble *bad) {
    if (v == 0) return 0;
    if (v == -1) return difference(0, u, bad);
    return u / v - (u % v != 0 && (u < 0) != (v < 0));
}

/* A number of bits that is none moves all of them out, as in NumPy, and overflows on the left. */
static inline V shifted_left(V u, V v, trouble *bad) {
    if (u == 0 || v < 0) return 0;
    V r = v > 63 ? 0 : (V)((uint64_t)u << v);
    *bad |= v > 63 || r >> v != u ? OVERFLOWS : 0;
    return r;
}

#define combine_mult(u, v) product(u, v, &bad)
#define combine_sparse_mult(u, v) product(u, v, &bad)
#define combine_add(u, v) added(u, v, &bad)
#define combine_sub(u, v) difference(u, v, &bad)
#define combine_pow(u, v) power(u, v, &bad)
#define combine_floor_divide(u, v) rounded_down(u, v, &bad)
#define combine_bitwise_left_shift(u, v) shifted_left(u, v, &bad)

COMBINE(least, u < v ? u : v)
COMBINE(greatest, u > v ? u : v)
COMBINE(remainder, left_over(u, v))
COMBINE(bit_and, u & v)
COMBINE(bit_or, u | v)
COMBINE(bit_xor, u ^ v)
COMBINE(bitwise_right_shift, v < 0 || v > 62 ? -(u < 0) : u >> v)
COMBINE(less, u < v)
COMBINE(less_equal, u <= v)
COMBINE(equal, u == v)
COMBINE(not_equal, u != v)
COMBINE(when, u != 0 ? v : 0)
COMBINE(when_one, u != 0 ? v : 1)
COMBINE(when_lowest, u != 0 ? v : INT64_MIN)
COMBINE(when_highest, u != 0 ? v : INT64_MAX)
COMBINE(unless, u == 0 ? v : 0)

COMBINE(random_bits, (V)philox_bits((uint64_t)u, (uint64_t)v))

#define map_abs(v) (v < 0 ? difference(0, v, &bad) : v)
#define map_neg(v) difference(0, v, &bad)
#define map_square(v) product(v, v, &bad)

MAP(relu, v > 0 ? v : 0)
MAP(sign, (v > 0) - (v < 0))
MAP(one_if_zero, v == 0 ? 1 : v)
MAP(not, v == 0)
MAP(bit_count, __builtin_popcountll((uint64_t)v))

#define IDENTITY_sum 0
#define IDENTITY_prod 1
#define IDENTITY_min INT64_MAX
#define IDENTITY_max INT64_MIN

#define SUM_IN_VECTORS(...)

#define IS_NAN(v) ((void)(v), false)
#define IS_FINITE(v) ((void)(v), true)
#define NONZERO(v) ((v) != 0)
#define REAL(v) (v)
#define IMAG(v) 0
#define TO_INT64(v) (v)
