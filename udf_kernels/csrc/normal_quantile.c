/* Wichura's algorithm AS 241 (Applied Statistics 37, 1988) with a logarithm of its own, in the four
 * operations and roots alone: these are rounded alike everywhere, as long as no product is fused
 * with a sum. ucle/foundation/random_numbers.py says the same in NumPy, in the same order. */
#include "normal_quantile.h"

#include <math.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

enum { DEGREE = 7, TERMS = 18, ROOTS = 6, MORE_ROOTS = 4 };

static const double centre[2][DEGREE + 1] = {
    {2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946,
     1971.5909503065513, 133.14166789178438, 3.3871328727963665},
    {5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597,
     5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0},
};
static const double middle[2][DEGREE + 1] = {
    {0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684,
     3.6478483247632045, 5.769497221460691, 4.630337846156546, 1.4234371107496835},
    {1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008,
     0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0},
};
static const double far[2][DEGREE + 1] = {
    {2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124,
     0.29656057182850487, 1.7848265399172913, 5.463784911164114, 6.657904643501103},
    {2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133,
     0.014875361290850615, 0.1369298809227358, 0.599832206555888, 1.0},
};

static inline double ratio(const double of[2][DEGREE + 1], double x) {
    double above = of[0][0], below = of[1][0];
    for (int n = 1; n <= DEGREE; n++) {
        above = above * x + of[0][n];
        below = below * x + of[1][n];
    }
    return above / below;
}

/* 2^roots times the logarithm of that root, of which the series of artanh is short. */
static inline double logarithm(double r) {
    double y = r, scale = 64;
    if (r < 0x1p-64) {
        for (int n = 0; n < MORE_ROOTS; n++) y = sqrt(y);
        scale *= 16;
    }
    for (int n = 0; n < ROOTS; n++) y = sqrt(y);
    double t = (y - 1) / (y + 1), square = t * t, series = 2.0 / (2 * TERMS - 1);
    for (int n = TERMS - 2; n >= 0; n--) series = series * square + 2.0 / (2 * n + 1);
    return series * t * scale;
}

double normal_quantile(double p) {
    double q = p - 0.5;
    if (fabs(q) <= 0.425) return q * ratio(centre, 0.180625 - q * q);
    if (p == 0 || p == 1) return q * INFINITY;
    if (!(p > 0 && p < 1)) return NAN;
    double r = sqrt(-logarithm(q < 0 ? p : 1 - p));
    double size = r <= 5 ? ratio(middle, r - 1.6) : ratio(far, r - 5);
    return q < 0 ? -size : size;
}
