/* Products of compressed matrices: by rows, after Gustavson. */
#include "csr_work.h"

#include "csr_sort.h"

/* Which columns a row of the result has: a bit for each, and a list in the order of arrival. */
typedef struct columns {
    uint64_t *bits;
    u32 *list;
    size_t count, first, last; /* the columns lie from first to last */
} columns;

static void mark(columns *m, size_t n, const u32 *idx) {
    uint64_t *bits = m->bits;
    u32 *list = m->list;
    size_t count = m->count;
    for (size_t e = 0; e < n; e++) {
        uint32_t j = idx[e];
        uint64_t word = bits[j >> 6];
        list[count] = j;
        count += !(word >> (j & 63) & 1);
        bits[j >> 6] = word | (uint64_t)1 << (j & 63);
    }
    m->count = count;
    if (n > 0 && idx[0] < m->first) m->first = idx[0];
    if (n > 0 && idx[n - 1] > m->last) m->last = idx[n - 1];
}

/* Reading the bits is cheaper than sorting where so many words or fewer come to one column. */
enum { WORDS_PER_COLUMN = 16 };

static void order_by_bits(columns *m) {
    size_t count = 0;
    for (size_t w = m->first >> 6; w <= m->last >> 6; w++) {
        for (uint64_t word = m->bits[w]; word != 0; word &= word - 1)
            m->list[count++] = (u32)(w << 6 | (size_t)__builtin_ctzll(word));
        m->bits[w] = 0;
    }
}

/* Puts the list in order and clears the bits. */
static bool order_columns(call *c, columns *m) {
    size_t n = m->count;
    if (n == 0) return true;
    if ((m->last >> 6) - (m->first >> 6) < WORDS_PER_COLUMN * n) {
        order_by_bits(m);
        return true;
    }
    uint64_t *keys = (uint64_t *)call_scratch(c, 2 * n * sizeof(uint64_t));
    if (keys == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        keys[i] = m->list[i];
        m->bits[m->list[i] >> 6] = 0;
    }
    keys = sort_keys(n, keys, keys + n);
    for (size_t i = 0; i < n; i++) m->list[i] = (u32)keys[i];
    return true;
}

/* The second operand with as many columns as hold something, if they are few among many: what is
 * worked with is then no larger than its entries. */
typedef struct narrowed {
    size_t cols;
    const u32 *idx, *names; /* indices, and which columns they stand for; NULL: themselves */
} narrowed;

enum { FEW_COLUMNS = 1 << 16 };
static bool has_few_columns(size_t cols, size_t nnz) {
    return cols <= FEW_COLUMNS || cols / 16 <= nnz;
}

static bool narrow_columns(call *c, const csr *b, narrowed *out) {
    *out = (narrowed){b->cols, b->idx, NULL};
    if (has_few_columns(b->cols, b->nnz)) return true;
    size_t n = b->nnz;
    char *memory = call_work(c, WORK_RANKS, 2 * n * (sizeof(uint64_t) + sizeof(u32)));
    if (memory == NULL) return false;
    uint64_t *keys = (uint64_t *)memory;
    u32 *ranks = (u32 *)(keys + 2 * n), *names = ranks + n;
    if (c->narrowed.data == b->bytes.data && c->narrowed.bytes == b->bytes.bytes) {
        *out = (narrowed){c->narrowed_columns, ranks, names};
        return true;
    }
    for (size_t e = 0; e < n; e++) keys[e] = (uint64_t)b->idx[e] << 32 | e;
    keys = sort_keys(n, keys, keys + n);
    size_t cols = 0;
    for (size_t e = 0; e < n; e++) {
        u32 col = (u32)(keys[e] >> 32);
        if (cols == 0 || names[cols - 1] != col) names[cols++] = col;
        ranks[(u32)keys[e]] = (u32)(cols - 1);
    }
    c->narrowed = b->bytes; /* the next row may bring the same operand */
    c->narrowed_columns = cols;
    *out = (narrowed){cols, ranks, names};
    return true;
}

/* value ⊗ a row, added to accumulators at its indices. */
static trouble spread(const element_type *type, const semiring *by, const void *value, size_t n,
                      const u32 *idx, const void *line, void *sums) {
    if (sums_products(type, by)) return type->csr->spread(n, value, idx, line, sums);
    element block[CSR_BLOCK];
    trouble bad = 0;
    for (size_t e = 0, count; e < n && !bad; e += count) {
        count = n - e < CSR_BLOCK ? n - e : CSR_BLOCK;
        bad = combine_swapped(type, by, count, value, 0, at(type, line, e), 1, block);
        if (!bad) bad = type->csr->spread_reduce(by->reduce, count, idx + e, block, sums);
    }
    return bad;
}

/* How many pairs of entries come to row r of a product. */
static size_t pairs_of_row(const csr *a, size_t r, const csr *b) {
    size_t pairs = 0;
    for (size_t e = a->ptr[r]; e < a->ptr[r + 1]; e++) pairs += csr_row_length(b, a->idx[e]);
    return pairs;
}

static bool read_product(call *c, size_t row, int first, csr *a, csr *b) {
    return read_csr(c, first, row, a) && read_csr(c, first + 1, row, b) &&
           expect_shape(c, "as many rows in the second operand as columns in the first:", a->cols,
                        b->rows);
}

size_t apply_csr_csr(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr a, b;
    csr_built out;
    narrowed right;
    if (!read_semiring(c, 0, row, &by) || !read_product(c, row, 1, &a, &b) ||
        !narrow_columns(c, &b, &right) || !csr_build(c, a.rows, &out))
        return 0;
    columns m;
    void *sums = csr_sums(c, by.reduce, right.cols);
    m.bits = (uint64_t *)call_zeros(c, WORK_BITS, ((right.cols >> 6) + 1) * sizeof(uint64_t));
    m.list = (u32 *)call_work(c, WORK_LIST, (right.cols + 1) * sizeof(u32));
    if (sums == NULL || m.bits == NULL || m.list == NULL) return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        size_t pairs = pairs_of_row(&a, r, &b);
        if (watch_stops(&c->watch, 16 + 4 * pairs)) return fail_with(c, INTERRUPTED);
        m.count = 0, m.first = SIZE_MAX, m.last = 0;
        for (size_t e = a.ptr[r]; e < a.ptr[r + 1] && !bad; e++) {
            size_t start = b.ptr[a.idx[e]], n = b.ptr[a.idx[e] + 1] - start;
            if (n == 0) continue;
            bad = spread(type, &by, at(type, a.values, e), n, right.idx + start,
                         at(type, b.values, start), sums);
            mark(&m, n, right.idx + start);
        }
        if (!order_columns(c, &m) || !csr_build_more(c, &out, m.count)) return 0;
        u32 *idx = out.idx + out.nnz;
        if (!bad)
            bad = type->csr->collect(by.reduce, m.count, m.list, sums,
                                     at_out(type, out.values, out.nnz));
        for (size_t i = 0; i < m.count; i++)
            idx[i] = right.names == NULL ? m.list[i] : right.names[m.list[i]];
        csr_build_row(c, &out, r, m.count, &type->identity[by.reduce]);
    }
    return settle(c, bad) ? csr_build_end(c, row, a.rows, b.cols, &out) : 0;
}

/* ---- Only at the places of a mask ---- */

/* One row of a mask: what its places have come to, and whether anything did. */
typedef struct masked_row {
    const csr *mask;
    size_t start, count;
    u32 *found, *in_mask, *in_line; /* of `count` each */
    char *hit;
    char *picked, *more;            /* values, of as many */
} masked_row;

static bool masked_open(call *c, const csr *mask, size_t r, masked_row *m) {
    size_t n = csr_row_length(mask, r), size = c->type->size;
    *m = (masked_row){.mask = mask, .start = mask->ptr[r], .count = n};
    char *memory = call_work(c, WORK_LIST, n * (2 * size + 1) + (3 * n + 2) * sizeof(u32));
    if (memory == NULL) return false;
    m->picked = memory;
    m->more = m->picked + n * size;
    m->found = (u32 *)(m->more + n * size);
    m->in_mask = m->found + n; /* these two are written one further */
    m->in_line = m->in_mask + n + 1;
    m->hit = (char *)(m->in_line + n + 1);
    memset(m->hit, 0, n);
    return true;
}

/* Ends a row: `inner`, whose entries belong to places m->found of the mask, combined with it. */
static trouble masked_end(call *c, const semiring *by, masked_row *m, size_t r, size_t found,
                          const void *inner, csr_built *out) {
    const element_type *type = c->type;
    void *values = at_out(type, out->values, out->nnz);
    for (size_t e = 0; e < found; e++)
        out->idx[out->nnz + e] = m->mask->idx[m->start + m->found[e]];
    type->csr->pick(found, at(type, m->mask->values, m->start), m->found, m->more);
    trouble bad = combine_swapped(type, by, found, m->more, 1, inner, 1, values);
    csr_build_row(c, out, r, found, &type->identity[by->reduce]);
    return bad;
}

/* `slots` says where a place of the mask's row stands, counted from 1, and 0 elsewhere. */
static size_t look_up(const u32 *slots, size_t n, const u32 *idx, u32 *in_mask, u32 *in_line) {
    size_t found = 0;
    for (size_t e = 0; e < n; e++) {
        u32 slot = slots[idx[e]];
        in_mask[found] = slot - 1;
        in_line[found] = (u32)e;
        found += slot != 0;
    }
    return found;
}

enum { LOOK_UP_MOST = 16 }; /* times as long as the mask's: beyond it, leaps are cheaper */

/* The entries of a line that lie at places of the mask. */
static size_t line_at_mask(const masked_row *m, const u32 *slots, size_t n, const u32 *idx) {
    const u32 *places = m->mask->idx + m->start;
    if (slots == NULL || n / LOOK_UP_MOST > m->count)
        return csr_intersect(m->count, places, n, idx, m->in_mask, m->in_line);
    return look_up(slots, n, idx, m->in_mask, m->in_line);
}

size_t apply_csr_csr_masked(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr mask, a, b;
    csr_built out;
    if (!read_semiring(c, 0, row, &by) || !read_csr(c, 1, row, &mask) ||
        !read_product(c, row, 2, &a, &b) ||
        !expect_shape(c, "as many rows in the mask as in the product:", a.rows, mask.rows) ||
        !expect_shape(c, "as many columns in the mask as in the product:", b.cols, mask.cols) ||
        !csr_build(c, a.rows, &out))
        return 0;
    bool few = has_few_columns(mask.cols, b.nnz);
    u32 *slots = few ? (u32 *)call_zeros(c, WORK_BITS, mask.cols * sizeof(u32)) : NULL;
    if (few && slots == NULL) return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        masked_row m;
        out.ptr[r + 1] = (u32)out.nnz;
        if (csr_row_length(&mask, r) == 0 || csr_row_length(&a, r) == 0) continue;
        if (watch_stops(&c->watch, 16 + 4 * pairs_of_row(&a, r, &b)))
            return fail_with(c, INTERRUPTED);
        if (!masked_open(c, &mask, r, &m) || !csr_build_more(c, &out, m.count)) return 0;
        void *sums = csr_sums(c, by.reduce, m.count);
        if (sums == NULL) return 0;
        const u32 *places = mask.idx + m.start;
        for (size_t e = 0; few && e < m.count; e++) slots[places[e]] = (u32)(e + 1);
        for (size_t e = a.ptr[r]; e < a.ptr[r + 1] && !bad; e++) {
            size_t start = b.ptr[a.idx[e]], n = b.ptr[a.idx[e] + 1] - start;
            size_t found = line_at_mask(&m, slots, n, b.idx + start);
            if (found == 0) continue;
            type->csr->pick(found, at(type, b.values, start), m.in_line, m.picked);
            bad = spread(type, &by, at(type, a.values, e), found, m.in_mask, m.picked, sums);
            for (size_t i = 0; i < found; i++) m.hit[m.in_mask[i]] = 1;
        }
        for (size_t e = 0; few && e < m.count; e++) slots[places[e]] = 0;
        size_t found = 0;
        for (size_t e = 0; e < m.count; e++)
            if (m.hit[e]) m.found[found++] = (u32)e;
        if (!bad) bad = type->csr->collect(by.reduce, found, m.found, sums, m.picked);
        if (!bad) bad = masked_end(c, &by, &m, r, found, m.picked, &out);
    }
    return settle(c, bad) ? csr_build_end(c, row, a.rows, b.cols, &out) : 0;
}

/* A row of a times a row of the transpose of b. */
static trouble dot_rows(call *c, const semiring *by, const csr *a, size_t r, const csr *bt,
                        size_t s, element *out, bool *hit) {
    const element_type *type = c->type;
    size_t n = csr_row_length(a, r), m = csr_row_length(bt, s), most = n < m ? n : m;
    u32 *pairs = (u32 *)call_scratch(c, 2 * most * (sizeof(u32) + type->size));
    if (pairs == NULL) return NO_MEMORY;
    size_t found = csr_intersect(n, a->idx + a->ptr[r], m, bt->idx + bt->ptr[s], pairs, pairs + most);
    char *x = (char *)(pairs + 2 * most), *y = x + most * type->size;
    *hit = found > 0;
    *out = type->identity[by->reduce];
    if (found == 0) return 0;
    type->csr->pick(found, at(type, a->values, a->ptr[r]), pairs, x);
    type->csr->pick(found, at(type, bt->values, bt->ptr[s]), pairs + most, y);
    return csr_fold_terms(type, by, found, x, y, out);
}

size_t apply_csr_csr_t_masked(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr mask, a, bt;
    csr_built out;
    if (!read_semiring(c, 0, row, &by) || !read_csr(c, 1, row, &mask) ||
        !read_csr(c, 2, row, &a) || !read_csr(c, 3, row, &bt) ||
        !expect_shape(c, "as many columns in both operands:", a.cols, bt.cols) ||
        !expect_shape(c, "as many rows in the mask as in the product:", a.rows, mask.rows) ||
        !expect_shape(c, "as many columns in the mask as in the product:", bt.rows, mask.cols) ||
        !csr_build(c, a.rows, &out))
        return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        masked_row m;
        size_t found = 0;
        out.ptr[r + 1] = (u32)out.nnz;
        if (csr_row_length(&mask, r) == 0 || csr_row_length(&a, r) == 0) continue;
        if (!masked_open(c, &mask, r, &m) || !csr_build_more(c, &out, m.count)) return 0;
        for (size_t e = 0; e < m.count && !bad; e++) {
            size_t s = mask.idx[m.start + e];
            element sum;
            bool hit;
            if (watch_stops(&c->watch, 16 + 2 * csr_row_length(&a, r))) bad = INTERRUPTED;
            bad |= dot_rows(c, &by, &a, r, &bt, s, &sum, &hit);
            if (!hit || bad) continue;
            copy_element(type->size, &sum, at_out(type, m.picked, found));
            m.found[found++] = (u32)e;
        }
        if (!bad) bad = masked_end(c, &by, &m, r, found, m.picked, &out);
    }
    return settle(c, bad) ? csr_build_end(c, row, a.rows, mask.cols, &out) : 0;
}
