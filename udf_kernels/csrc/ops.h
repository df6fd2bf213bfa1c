/* The operations, and which family of element types has which.
 *
 * All else about an operation is generated from these lists: its loops, its kernels, its word in
 * the spec of a contraction. What it computes stands in ops_real.h and its siblings.
 * ../reference.py states the same facts for Python, and a test compares the two.
 */
#ifndef UCLE_OPS_H
#define UCLE_OPS_H

/* The element types, by their tags in C and in SQL, and their families. */
#define EACH_TYPE(X) \
    X(f64, "f64") X(f32, "f32") X(i64, "i64") X(boolean, "bool") X(c128, "c128") X(c64, "c64")

/* ---- Pointwise maps ---- */

#define EACH_MAP(X) MAPS_real(X) X(conj) X(real) X(imag) X(bit_count)

#define MAPS_real(X)                                                                       \
    X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(asinh) X(acosh)         \
    X(atanh) X(expm1) X(log2) X(log10) X(trunc) X(isinf)                                   \
    X(relu) X(leaky_relu) X(sigmoid) X(tanh) X(exp) X(log) X(log1p) X(sqrt) X(abs) X(neg)  \
    X(square) X(reciprocal) X(sign) X(gelu) X(silu) X(softplus) X(floor) X(ceil) X(round)  \
    X(erf) X(normal_quantile) X(isnan) X(isfinite) X(finite) X(one_if_zero) X(not)
#define MAPS_integer(X) X(relu) X(abs) X(neg) X(square) X(sign) X(one_if_zero) X(not) X(bit_count)
#define MAPS_boolean(X) X(one_if_zero) X(not)
#define MAPS_complex(X)                                                                    \
    X(sigmoid) X(tanh) X(exp) X(log) X(sqrt) X(abs) X(neg) X(square) X(reciprocal) X(conj) \
    X(real) X(imag) X(isnan) X(isinf) X(isfinite) X(one_if_zero) X(not)

/* ---- Combinations of two elements; the ordered ones differ if the two change places ---- */

#define EACH_COMBINE(X) SYMMETRIC_real(X) ORDERED_real(X) BITS(X) SHIFTS(X) X(random_bits)

#define SELECTING_real(X) X(when_one) X(when_lowest) X(when_highest)
#define SYMMETRIC(X) X(mult) X(add) X(least) X(greatest) X(equal) X(not_equal) X(sparse_mult)
#define SYMMETRIC_real(X) SYMMETRIC(X) X(hypot) X(logaddexp)
#define FLOORED(X) X(remainder) X(floor_divide)
#define BITS(X) X(bit_and) X(bit_or) X(bit_xor)
#define SHIFTS(X) X(bitwise_left_shift) X(bitwise_right_shift)
#define ORDERED_real(X) \
    X(sub) X(div) X(pow) X(less) X(less_equal) X(when) X(unless) X(sparse_div) \
    SELECTING_real(X) FLOORED(X) X(atan2) X(copysign) X(nextafter)
#define SYMMETRIC_integer(X) SYMMETRIC(X) BITS(X)
#define ORDERED_integer(X) \
    X(sub) X(pow) X(less) X(less_equal) X(when) X(unless) SELECTING_real(X) FLOORED(X) SHIFTS(X) \
    X(random_bits)
#define SYMMETRIC_boolean(X) SYMMETRIC(X) BITS(X)
#define ORDERED_boolean(X) X(less) X(less_equal) X(when) X(unless) SELECTING_real(X)
#define SYMMETRIC_complex(X) X(mult) X(add) X(equal) X(not_equal) X(sparse_mult)
#define ORDERED_complex(X) \
    X(sub) X(div) X(pow) X(when) X(unless) X(sparse_div) X(when_one)

/* ---- Reductions ---- */

#define EACH_REDUCE(X) X(sum) X(prod) X(min) X(max)

#define REDUCES_real(X) EACH_REDUCE(X)
#define REDUCES_integer(X) EACH_REDUCE(X)
#define REDUCES_boolean(X) X(min) X(max)
#define REDUCES_complex(X) X(sum) X(prod)

/* ---- Definitions, in ops_real.h and its siblings; V is the type that is computed with ---- */

#define MAP(name, expression) \
    static inline V map_##name(V v) { return expression; }
#define COMBINE(name, expression) \
    static inline V combine_##name(V u, V v) { return expression; }

/* ---- Their numbers ---- */

#define UCLE_MAP(name) MAP_##name,
#define UCLE_COMBINE(name) OP_##name,
#define UCLE_REDUCE(name) REDUCE_##name,
#define UCLE_TYPE(tag, text) TYPE_##tag,

enum map_op { EACH_MAP(UCLE_MAP) MAPS };
enum combine_op { EACH_COMBINE(UCLE_COMBINE) COMBINES };
enum reduce_op { EACH_REDUCE(UCLE_REDUCE) REDUCES };
enum type_number { EACH_TYPE(UCLE_TYPE) TYPES };

#endif
