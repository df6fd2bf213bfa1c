/* What the operations mean for complex numbers. Needs V, the type, PART, that of its parts, and
 * MATH(f), the name of a function of math.h or complex.h for it.
 *
 * C's own complex product recovers infinities from NaN; NumPy takes the schoolbook formula, and so
 * do we, which is also several times as fast. */
#include <complex.h>
#include <math.h>

#define FAMILY_MAPS MAPS_complex
#define FAMILY_SYMMETRIC SYMMETRIC_complex
#define FAMILY_ORDERED ORDERED_complex
#define FAMILY_REDUCES REDUCES_complex
#define HAS_PRODUCTS 1

/* Sums go on in double from block to block. */
#define WIDE c128
#define WIDEN(v) ((c128){(v).re, (v).im})
#define NARROW(w) pair((PART)(w).re, (PART)(w).im)
#define WIDE_ADD(w, v) ((c128){(w).re + (double)(v).re, (w).im + (double)(v).im})
#define TIMES(v, n) pair((PART)((v).re * (double)(n)), (PART)((v).im * (double)(n)))
#define PARTS 2

static inline V pair(PART re, PART im) { return (V){re, im}; }
static inline PART _Complex to_c(V v) { return __builtin_complex(v.re, v.im); }
static inline V from_c(PART _Complex z) { return pair(__real__ z, __imag__ z); }
static inline bool nonzero(V v) { return v.re != 0 || v.im != 0; }
static inline bool same(V u, V v) { return u.re == v.re && u.im == v.im; }

static inline V product(V u, V v) {
    return pair(u.re * v.re - u.im * v.im, u.re * v.im + u.im * v.re);
}

/* Smith's algorithm: the squares of the divisor's parts could overflow. */
static inline V quotient(V u, V v) {
    PART re = MATH(fabs)(v.re), im = MATH(fabs)(v.im);
    if (re == 0 && im == 0) return pair(u.re / re, u.im / im);
    if (re >= im) {
        PART ratio = v.im / v.re, scale = 1 / (v.re + v.im * ratio);
        return pair((u.re + u.im * ratio) * scale, (u.im - u.re * ratio) * scale);
    }
    PART ratio = v.re / v.im, scale = 1 / (v.im + v.re * ratio);
    return pair((u.re * ratio + u.im) * scale, (u.im * ratio - u.re) * scale);
}

static inline V reciprocal(V v) {
    if (MATH(fabs)(v.im) <= MATH(fabs)(v.re)) {
        PART ratio = v.im / v.re, d = v.re + v.im * ratio;
        return pair(1 / d, -ratio / d);
    }
    PART ratio = v.re / v.im, d = v.re * ratio + v.im;
    return pair(ratio / d, -1 / d);
}

/* Like NumPy: small whole powers by multiplication, and 0 to a power is 0, 1 or NaN. */
static inline V power(V base, V exponent) {
    if (!nonzero(exponent)) return pair(1, 0);
    if (!nonzero(base)) return exponent.re > 0 ? pair(0, 0) : pair(NAN, NAN);
    PART n = MATH(fabs)(exponent.re);
    if (exponent.im != 0 || !(n < 100) || n != MATH(floor)(n))
        return from_c(MATH(cpow)(to_c(base), to_c(exponent)));
    if (exponent.re == 1) return base; /* 1 + 0i times infinity would have a NaN in it */
    if (exponent.re == 2) return product(base, base);
    if (exponent.re == 3) return product(base, product(base, base));
    V r = pair(1, 0);
    for (unsigned bits = (unsigned)n;; base = product(base, base)) {
        if (bits & 1) r = product(r, base);
        bits >>= 1;
        if (bits == 0) return exponent.re < 0 ? quotient(pair(1, 0), r) : r;
    }
}

/* Of exp(v) and exp(-v) the one that cannot overflow. */
static inline V sigmoid(V v) {
    V e = from_c(MATH(cexp)(to_c(v.re >= 0 ? pair(-v.re, -v.im) : v)));
    return quotient(v.re >= 0 ? pair(1, 0) : e, pair(1 + e.re, e.im));
}

#define IS_FINITE(v) (((v).re - (v).re == 0) & ((v).im - (v).im == 0))

COMBINE(mult, product(u, v))
COMBINE(add, pair(u.re + v.re, u.im + v.im))
COMBINE(sub, pair(u.re - v.re, u.im - v.im))
COMBINE(div, quotient(u, v))
COMBINE(pow, power(u, v))
COMBINE(equal, pair(same(u, v), 0))
COMBINE(not_equal, pair(!same(u, v), 0))
COMBINE(when, nonzero(u) ? v : pair(0, 0))
COMBINE(when_one, nonzero(u) ? v : pair(1, 0))
COMBINE(unless, nonzero(u) ? pair(0, 0) : v)
COMBINE(sparse_mult, nonzero(u) && nonzero(v) ? product(u, v) : pair(0, 0))
COMBINE(sparse_div, nonzero(u) ? quotient(u, v) : pair(0, 0))

MAP(sigmoid, sigmoid(v))
MAP(tanh, from_c(MATH(ctanh)(to_c(v))))
MAP(exp, from_c(MATH(cexp)(to_c(v))))
MAP(log, from_c(MATH(clog)(to_c(v))))
MAP(sqrt, from_c(MATH(csqrt)(to_c(v))))
MAP(abs, pair(MATH(hypot)(v.re, v.im), 0))
MAP(neg, pair(-v.re, -v.im))
MAP(square, product(v, v))
MAP(reciprocal, reciprocal(v))
MAP(conj, pair(v.re, -v.im))
MAP(real, pair(v.re, 0))
MAP(imag, pair(v.im, 0))
MAP(isnan, pair(v.re != v.re || v.im != v.im, 0))
MAP(isinf, pair(isinf(v.re) || isinf(v.im), 0))
MAP(isfinite, pair(IS_FINITE(v), 0))
MAP(one_if_zero, nonzero(v) ? v : pair(1, 0))
MAP(not, pair(!nonzero(v), 0))

#define IDENTITY_sum {0, 0}
#define IDENTITY_prod {1, 0}

#define SUM_IN_VECTORS(...)

#define IS_NAN(v) ((v).re != (v).re || (v).im != (v).im)
#define NONZERO(v) nonzero(v)
#define REAL(v) ((v).re)
#define IMAG(v) ((v).im)
#define TO_INT64(v) truncated((v).re, &bad)
