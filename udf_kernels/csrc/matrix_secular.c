/* Eigenvalues of a diagonal matrix to which rho z z^T has been added: the roots of
 *
 *     1 / rho + sum_j z_j^2 / (d_j - x)
 *
 * of which one is behind each d_j, before the next one. They are found as distances from the nearest
 * d_j, as differences between a root and all d_j have to be exact where they are tiny. */
#include <float.h>
#include <math.h>

#include "hot.h"
#include "matrix.h"

/* The sums over d_0 to d_i and over those behind it, and their derivatives. */
typedef struct sums_of_poles {
    double low, low_slope, high, high_slope;
} sums_of_poles;

HOT void add_poles(size_t n, const double *d, const double *squares, double origin, double x,
                   double *sum, double *slope) {
    double s = 0, t = 0;
#pragma omp simd reduction(+ : s, t)
    for (size_t j = 0; j < n; j++) {
        double inverse = 1 / ((d[j] - origin) - x), term = squares[j] * inverse;
        s += term;
        t += term * inverse;
    }
    *sum = s;
    *slope = t;
}

static sums_of_poles poles_at(const secular *s, size_t i, double origin, double x) {
    sums_of_poles p;
    add_poles(i + 1, s->d, s->squares, origin, x, &p.low, &p.low_slope);
    add_poles(s->n - i - 1, s->d + i + 1, s->squares + i + 1, origin, x, &p.high, &p.high_slope);
    return p;
}

/* The step to the root of a function with poles at distances `low` and, if there are any behind,
 * `high`, which has the value and the slopes of this one ("middle way", R.-C. Li). */
static double step_to_root(double value, sums_of_poles p, bool is_last, double low, double high) {
    double slope = p.low_slope + p.high_slope, step;
    if (is_last) {
        double c = value - low * p.low_slope;
        step = low + low * low * p.low_slope / c;
    } else {
        double c = value - low * p.low_slope - high * p.high_slope;
        double a = (low + high) * value - low * high * slope, b = low * high * value;
        double root = sqrt(fabs(a * a - 4 * b * c));
        step = a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
    }
    return value * step < 0 ? step : -value / slope;
}

double secular_root(const secular *s, size_t i, double *differences) {
    enum { MOST_STEPS = 200 }; /* halves alone take fewer */
    const double *d = s->d;
    bool is_last = i + 1 == s->n;
    double gap = is_last ? s->rho * s->total : d[i + 1] - d[i], constant = 1 / s->rho;
    double origin = d[i], least = 0, most = gap, x = gap / 2;
    sums_of_poles p = poles_at(s, i, origin, x);
    double value = constant + p.low + p.high;
    if (value < 0 && !is_last) {
        origin = d[i + 1];
        x -= gap;
        least = -gap;
        most = 0;
    }
    for (int steps = 0; steps < MOST_STEPS; steps++) {
        double slope = p.low_slope + p.high_slope;
        double rounding = 8 * (p.high - p.low) + constant + fabs(x) * slope;
        if (fabs(value) <= DBL_EPSILON * rounding) break;
        *(value < 0 ? &least : &most) = x;
        double low = (d[i] - origin) - x, high = is_last ? 0 : (d[i + 1] - origin) - x;
        double next = x + step_to_root(value, p, is_last, low, high);
        if (!(next > least && next < most)) next = least + (most - least) / 2;
        if (next == x || next == least || next == most) break;
        x = next;
        p = poles_at(s, i, origin, x);
        value = constant + p.low + p.high;
    }
    for (size_t j = 0; j < s->n; j++) differences[j] = (d[j] - origin) - x;
    return origin + x;
}
