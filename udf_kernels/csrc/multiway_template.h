/* The loops of multiway.h, compiled once for each element type that has no parts. Products and sums
 * are as wide as makes them exact, or double. */
#include "csr_work.h"
#include "multiway.h"

#ifdef IS_EXACT
#define M __int128
static inline M multiway_mult(M u, M v, trouble *bad) {
    M r;
    *bad |= __builtin_mul_overflow(u, v, &r) ? OVERFLOWS : 0;
    return r;
}
static inline M multiway_add(M u, M v, trouble *bad) {
    M r;
    *bad |= __builtin_add_overflow(u, v, &r) ? OVERFLOWS : 0;
    return r;
}
#define M_MULT(u, v) multiway_mult(u, v, &bad)
#define M_ADD(u, v) multiway_add(u, v, &bad)
#define M_END(s) (bad |= (s) != (V)(s) ? OVERFLOWS : 0, (V)(s))
#elif HAS_PRODUCTS
#define M double
#define M_MULT(u, v) ((u) * (v))
#define M_ADD(u, v) ((u) + (v))
#define M_END(s) ((V)(s))
#else
#define M bool
#define M_MULT(u, v) ((u) & (v))
#define M_ADD(u, v) ((u) | (v))
#define M_END(s) (s)
#endif

/* What a position's own vectors make of a weight. */
static inline M multiway_scale(const scales *by, size_t position, M weight, trouble *to) {
    trouble bad = 0;
    for (size_t i = 0; i < by->count; i++) {
        M factor = ((const S *)by->vectors[i])[position];
        weight = M_MULT(weight, factor);
    }
    *to |= bad;
    return weight;
}

/* Lists one more candidate, unless it has no weight; returns how many there are. */
static inline size_t multiway_list(candidates *l, size_t count, uint32_t position, M weight) {
    l->idx[count] = position;
    ((M *)l->weights)[count] = weight;
    return count + (weight != 0);
}

/* A row, or what its positions' vectors leave of it. */
static trouble multiway_start(candidates *l, size_t n, const u32 *idx, const S *x) {
    M total = 0;
    size_t count = 0;
    trouble bad = 0;
    for (size_t e = 0; e < n; e++) {
        M w = multiway_scale(&l->by, idx[e], x[e], &bad);
        count = l->listed ? multiway_list(l, count, idx[e], w) : count + (w != 0);
        total = M_ADD(total, w);
    }
    l->count = count;
    *(M *)l->total = total;
    return bad;
}

/* The entries of a row at places that were candidates before: each is looked up. */
HOT trouble multiway_look_up(candidates *l, const candidates *before, size_t n, const u32 *idx,
                             const void *values) {
    const S *x = values;
    const M *at = before->at;
    M total = 0;
    size_t count = 0;
    trouble bad = 0;
    if (!l->listed) { /* two sums, so that an addition need not wait for the one before */
        M other = 0;
        size_t e = 0;
        for (; e + 2 <= n; e += 2) {
            M v = at[idx[e]], u = at[idx[e + 1]];
            M w = M_MULT(v, (M)x[e]), t = M_MULT(u, (M)x[e + 1]);
            count += (w != 0) + (t != 0);
            total = M_ADD(total, w), other = M_ADD(other, t);
        }
        if (e < n) {
            M v = at[idx[e]], w = M_MULT(v, (M)x[e]);
            count += w != 0;
            total = M_ADD(total, w);
        }
        total = M_ADD(total, other);
    } else {
        for (size_t e = 0; e < n; e++) {
            M v = at[idx[e]], w = M_MULT(v, (M)x[e]);
            count = multiway_list(l, count, idx[e], w);
            total = M_ADD(total, w);
        }
    }
    l->count = count;
    *(M *)l->total = total;
    return bad;
}

/* The same where the row is much longer than the list: each candidate is searched for in it. */
static trouble multiway_leap(candidates *l, const candidates *before, size_t n, const u32 *idx,
                             const S *x) {
    const M *old = before->weights;
    M total = 0;
    size_t count = 0, from = 0;
    trouble bad = 0;
    for (size_t i = 0; i < before->count && from < n; i++) {
        uint32_t wanted = before->idx[i];
        from = csr_leap(n, idx, from, wanted);
        if (from == n || idx[from] != wanted) continue;
        M w = M_MULT(old[i], (M)x[from]);
        count = l->listed ? multiway_list(l, count, wanted, w) : count + (w != 0);
        total = M_ADD(total, w);
    }
    l->count = count;
    *(M *)l->total = total;
    return bad;
}

static inline bool multiway_stops(multiway *m, uint64_t work) {
    if (watch_stops(m->watch, 16 + work)) m->bad |= INTERRUPTED;
    return m->bad != 0;
}

/* The candidates that row r of a list's matrix leaves; whether there are any. */
static bool multiway_narrow(multiway *m, candidates *l, size_t r) {
    const csr *matrix = &l->matrix;
    size_t start = matrix->ptr[r], n = matrix->ptr[r + 1] - start;
    const u32 *idx = matrix->idx + start;
    const S *x = (const S *)matrix->values + start;
    if (multiway_stops(m, 2 * n)) return false;
    M *at = l->at;
    if (l->marked)
        for (size_t i = 0; i < l->count; i++) at[l->idx[i]] = 0;
    if (l->source == NOTHING) {
        m->bad |= multiway_start(l, n, idx, x);
    } else {
        const candidates *before = &m->lists[l->source];
        bool leaps = n / MULTIWAY_LEAP > before->count;
        m->bad |= leaps ? multiway_leap(l, before, n, idx, x)
                        : multiway_look_up(l, before, n, idx, x);
    }
    const M *weights = l->weights;
    if (l->marked)
        for (size_t i = 0; i < l->count; i++) at[l->idx[i]] = weights[i];
    return l->count > 0;
}

static bool multiway_bind(multiway *m, size_t label, size_t position) {
    bound *b = &m->labels[label];
    b->position = position;
    if (b->first == b->end && multiway_stops(m, 0)) return false; /* no list of its own looks */
    for (size_t i = b->first; i < b->end; i++)
        if (!multiway_narrow(m, &m->lists[i], position)) return false;
    return true;
}

static M multiway_sum(multiway *m, size_t label);

/* A weight times the sums of all branches below a label that is bound. */
static M multiway_branches(multiway *m, size_t label, M weight) {
    trouble bad = 0;
    for (int b = m->labels[label].child; b != NOTHING && weight != 0; b = m->labels[b].sibling) {
        if (m->labels[b].kept) continue;
        M sum = m->labels[b].child == NOTHING ? *(const M *)m->lists[m->labels[b].list].total
                                              : multiway_sum(m, (size_t)b);
        weight = sum == 0 ? (M)0 : M_MULT(weight, sum);
    }
    m->bad |= bad;
    return weight;
}

static M multiway_compute(multiway *m, size_t label) {
    const candidates *l = &m->lists[m->labels[label].list];
    const M *weights = l->weights;
    M total = 0;
    trouble bad = 0;
    for (size_t i = 0; i < l->count && !m->bad; i++) {
        if (weights[i] == 0 || !multiway_bind(m, label, l->idx[i])) continue;
        M term = multiway_branches(m, label, weights[i]);
        total = M_ADD(total, term);
        if (!HAS_PRODUCTS && total != 0) break; /* true stays true */
    }
    m->bad |= bad;
    return total;
}

/* The sum over a label and those below it: the one that is remembered, if there is one. */
static M multiway_sum(multiway *m, size_t label) {
    const bound *b = &m->labels[label];
    if (b->slots == 0) return multiway_compute(m, label);
    uint64_t one = m->labels[b->given[0]].position, other = m->labels[b->given[1]].position;
    uint64_t key = (one << 32 | other) + 1;
    size_t slot = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (b->slots - 1);
    M *known = b->known;
    if (b->keys[slot] == key) return known[slot];
    M sum = multiway_compute(m, label);
    b->keys[slot] = key;
    known[slot] = sum;
    return sum;
}

static void multiway_add_to(multiway *m, size_t position, M term) {
    M *sums = m->sums;
    trouble bad = 0;
    sums[position] = M_ADD(sums[position], term);
    m->bad |= bad;
    if (m->touched != NULL) m->touched[position >> 6] |= (uint64_t)1 << (position & 63);
}

/* Walks the labels down to that of the result's columns, at which terms are added. */
static void multiway_spread(multiway *m, size_t label, size_t position, M weight) {
    if (weight == 0 || !multiway_bind(m, label, position)) return;
    M term = multiway_branches(m, label, weight);
    if (term == 0) return;
    if ((int)label == m->output || m->output == NOTHING) {
        multiway_add_to(m, m->output == NOTHING ? 0 : position, term);
        return;
    }
    int next = m->labels[label].child;
    while (!m->labels[next].kept) next = m->labels[next].sibling;
    const candidates *l = &m->lists[m->labels[next].list];
    const M *weights = l->weights;
    trouble bad = 0;
    for (size_t i = 0; i < l->count && !m->bad; i++) {
        M each = M_MULT(term, weights[i]);
        multiway_spread(m, (size_t)next, l->idx[i], each);
    }
    m->bad |= bad;
}

static void multiway_row(multiway *m, size_t r) {
    trouble bad = 0;
    M weight = multiway_scale(&m->outermost, r, 1, &bad);
    m->bad |= bad;
    multiway_spread(m, 0, r, weight);
}

/* out[e] = sums[idx[e]] (idx NULL: sums[e]), which is cleared. */
static trouble multiway_collect(size_t n, const u32 *idx, void *from, void *to) {
    M *sums = from;
    S *out = to;
    trouble bad = 0;
    for (size_t e = 0; e < n; e++) {
        M *sum = &sums[idx == NULL ? e : idx[e]];
        out[e] = M_END(*sum);
        *sum = 0;
    }
    return bad;
}

static const multiway_loops loops_of_multiway = {
    .weight_size = sizeof(M), .row = multiway_row, .collect = multiway_collect};
