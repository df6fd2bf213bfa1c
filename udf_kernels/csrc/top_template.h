/* The first entries in an order, as lists of pairs (value, position), the first one first; included by
 * the files of float64 and int64, which hold positions exactly.
 *
 * Of two equal values that at the smaller position comes first, so that a list depends on what is in
 * it alone. NaN counts as the greatest number. A pair whose position is below 0 is empty, and comes
 * behind all others.
 */
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "hot.h"

static inline bool before_max(V u, V v) { return u > v || (IS_NAN(u) && !IS_NAN(v)); }
static inline bool before_min(V u, V v) { return u < v || (IS_NAN(v) && !IS_NAN(u)); }

#define TOP_LOOPS(order)                                                                           \
    static inline bool ahead_##order(V u, V at_u, V v, V at_v) {                                   \
        return before_##order(u, v) || (at_u < at_v && !before_##order(v, u));                     \
    }                                                                                              \
    static void insert_##order(size_t k, S *list, V v, V place) {                                  \
        size_t low = 0, high = k;                                                                  \
        while (low < high) {                                                                       \
            size_t middle = low + (high - low) / 2;                                                \
            const S *pair = list + 2 * middle;                                                     \
            bool stays = pair[1] >= 0 && ahead_##order(pair[0], pair[1], v, place);                \
            if (stays) low = middle + 1;                                                           \
            else high = middle;                                                                    \
        }                                                                                          \
        if (low == k) return;                                                                      \
        memmove(list + 2 * low + 2, list + 2 * low, (k - 1 - low) * 2 * sizeof(S));                \
        list[2 * low] = v;                                                                         \
        list[2 * low + 1] = place;                                                                 \
    }                                                                                              \
    HOT void top_##order(size_t first, size_t end, size_t lanes, size_t k, const S *x, S *lists) { \
        for (size_t p = first; p < end; p++, x += lanes) {                                         \
            S *last = lists + 2 * (k - 1);                                                         \
            for (size_t lane = 0; lane < lanes; lane++, last += 2 * k) {                           \
                V v = x[lane];                                                                     \
                if (last[1] < 0 || ahead_##order(v, (V)p, last[0], last[1]))                       \
                    insert_##order(k, last - 2 * (k - 1), v, (V)p);                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static int compare_##order(const void *one, const void *other) {                               \
        const S *u = one, *v = other;                                                              \
        return ahead_##order(u[0], u[1], v[0], v[1]) ? -1 : 1;                                     \
    }

TOP_LOOPS(max)
TOP_LOOPS(min)

static void top(enum top_order order, size_t first, size_t end, size_t lanes, size_t k,
                const void *x, void *lists) {
    if (k == 0) return;
    (order == TOP_MAX ? top_max : top_min)(first, end, lanes, k, x, lists);
}

static void top_merge(enum top_order order, size_t lanes, size_t k, const void *from, void *into) {
    const S *pair = from;
    for (size_t lane = 0; lane < lanes; lane++)
        for (size_t i = 0; i < k; i++, pair += 2)
            if (pair[1] >= 0)
                (order == TOP_MAX ? insert_max : insert_min)(k, (S *)into + 2 * k * lane, pair[0],
                                                             pair[1]);
}

static void top_sort(enum top_order order, size_t n, const void *from, size_t step, void *to) {
    const S *x = from;
    S *pairs = to;
    for (size_t i = 0; i < n; i++) {
        pairs[2 * i] = x[i * step];
        pairs[2 * i + 1] = (V)i;
    }
    qsort(pairs, n, 2 * sizeof(S), order == TOP_MAX ? compare_max : compare_min);
}
