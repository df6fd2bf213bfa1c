/* int64. */
#define S i64
#define V int64_t
#define NAME "int64"
#define TAG "i64"
#define SUFFIX "_i64"
#define HAS_TOP 1
#define HAS_GEMM 0
#define TOTAL_SIZE sizeof(__int128)
#define IS_EXACT 1
#define OWN_KERNELS                                                                             \
    {"random_bits", "ii>i", "", &TYPE, &TYPE, apply_random_bits, NULL, NULL, 0, NULL, NULL, NULL}, \
    {"hits" SUFFIX, "bis>b", "", &TYPE, &type_boolean, apply_hits, NULL, NULL, 0, NULL, NULL, NULL},

#include "element.h"
#include "ops_integer.h"
#include "loops_template.h"

typedef __int128 int128;

/* Nobody gets so far by addition; products of large numbers may. */
static inline int128 total_sum(int128 t, int128 x, trouble *bad) {
    int128 r;
    *bad |= __builtin_add_overflow(t, x, &r) ? OVERFLOWS : 0;
    return r;
}
#define TOTAL int128
#define TOTAL_ADD(t, x) total_sum(t, x, &bad)
#define TOTAL_IS_OUTSIDE(t) ((t) != (V)(t))
#include "totals_template.h"

static void retract(size_t n, const void *from, void *restrict to) {
    const S *x = from;
    S *y = to;
    for (size_t i = 0; i < n; i++) y[i] = (V)((uint64_t)y[i] - (uint64_t)x[i]);
}

static trouble exact(size_t n, const void *left, size_t sa, const void *right, size_t sb,
                     void *restrict to, size_t so) {
    const S *a = left, *b = right;
    int128 *totals = to;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) {
        int128 term = b == NULL ? a[i * sa] : (int128)a[i * sa] * b[i * sb];
        totals[i * so] = total_sum(totals[i * so], term, &bad);
    }
    return bad;
}
#include "top_template.h"
#include "type_template.h"
