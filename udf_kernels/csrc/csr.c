/* Reading, checking and making compressed tensors, and the words of their operations. */
#include "csr.h"

#include <stdio.h>

#include "hot.h"

/* ---- Reading ---- */

static bool refuse(call *c, int arg, const char *what) {
    return fail(c, "expected a compressed tensor as argument %d, got a BLOB %s", arg + 1, what);
}

HOT bool ascends(size_t n, const u32 *ptr) {
    unsigned good = 1;
    for (size_t i = 1; i < n; i++) good &= ptr[i - 1] <= ptr[i];
    return good;
}

/* How often an index is not above the one before it, and the largest one. */
HOT size_t descents(size_t n, const u32 *idx, uint32_t *largest) {
    uint32_t count = 0, most = n > 0 ? idx[0] : 0;
    for (size_t i = 1; i < n; i++) {
        uint32_t x = idx[i], before = idx[i - 1];
        count += x <= before;
        most = x > most ? x : most;
    }
    *largest = most;
    return count;
}

/* All descents lie between rows exactly if there is none within one. */
static bool indices_are_right(const csr *x) {
    uint32_t largest;
    size_t found = descents(x->nnz, x->idx, &largest), between = 0;
    if (x->nnz > 0 && largest >= x->cols) return false;
    for (size_t r = 0; found > 0 && r < x->rows; r++) {
        size_t start = x->ptr[r];
        if (start > 0 && start < x->ptr[r + 1]) between += x->idx[start] <= x->idx[start - 1];
    }
    return found == between;
}

static bool is_padded(const csr *x) {
    const char *end = (const char *)(x->idx + csr_places(x));
    unsigned any = 0;
    while (end < x->values) any |= (unsigned char)*end++;
    return any == 0;
}

/* Runs have columns, end before the next one of their row begins, and within the columns. */
static bool runs_are_right(const csr *x) {
    bool right = true;
    for (size_t r = 0; r < x->rows && right; r++) {
        size_t free = 0;
        for (size_t e = x->ptr[r]; e < x->ptr[r + 1]; e++) {
            right &= x->idx[e] >= free && x->ends[e] > x->idx[e];
            free = x->ends[e];
        }
        right &= free <= x->cols;
    }
    return right;
}

/* The parts of a BLOB, once its length has been checked. `size` is that of a value, 0 any. */
static bool find_parts(call *c, int arg, view bytes, size_t size, csr *x) {
    const u32 *head = (const u32 *)bytes.data;
    if (bytes.bytes < CSR_HEAD + sizeof(u32)) return refuse(c, arg, "that is too short for one");
    if (head[0] != CSR_MAGIC) return refuse(c, arg, "that does not begin like one");
    if (head[3] > CSR_RUNS) return refuse(c, arg, "with a header of a later version");
    x->bytes = bytes;
    x->rows = head[1];
    x->cols = head[2];
    x->ptr = head + 4;
    if ((bytes.bytes - CSR_HEAD) / sizeof(u32) <= x->rows)
        return refuse(c, arg, "that is too short for its rows");
    x->nnz = x->ptr[x->rows];
    x->idx = x->ptr + x->rows + 1;
    x->ends = head[3] == CSR_RUNS ? x->idx + x->nnz : NULL;
    size_t start = csr_values_at(x->rows, csr_places(x));
    if (bytes.bytes < start) return refuse(c, arg, "that is too short for its entries");
    x->values = bytes.data + start;
    size_t left = bytes.bytes - start;
    bool whole = size > 0 ? left == x->nnz * size : x->nnz == 0 ? left == 0 : left % x->nnz == 0;
    if (!whole)
        return fail(c, "expected a compressed tensor of %s as argument %d, got a BLOB of %zu bytes "
                       "for %zu entries", c->type->name, arg + 1, bytes.bytes, x->nnz);
    return true;
}

csr csr_of(view bytes) {
    const u32 *head = (const u32 *)bytes.data;
    csr x = {.rows = head[1], .cols = head[2], .ptr = head + 4, .bytes = bytes};
    x.nnz = x.ptr[x.rows];
    x.idx = x.ptr + x.rows + 1;
    x.ends = head[3] == CSR_RUNS ? x.idx + x.nnz : NULL;
    x.values = bytes.data + csr_values_at(x.rows, csr_places(&x));
    return x;
}

/* Everything but its length. */
static bool check_parts(call *c, int arg, const csr *x) {
    if (x->ptr[0] != 0 || !ascends(x->rows + 1, x->ptr))
        return refuse(c, arg, "whose rows are not in order");
    if (!is_padded(x)) return refuse(c, arg, "with something where there is to be nothing");
    if (x->ends != NULL)
        return runs_are_right(x) ||
               fail(c, "expected a compressed tensor as argument %d, got runs that overlap, end where "
                       "they begin or are not below its %zu columns", arg + 1, x->cols);
    if (!indices_are_right(x))
        return fail(c, "expected a compressed tensor as argument %d, got indices that do not ascend "
                       "within a row or are not below its %zu columns", arg + 1, x->cols);
    return true;
}

static bool read_parts(call *c, int arg, size_t row, size_t size, csr *x) {
    view bytes = column_view(&c->args[arg], row), *checked = &c->checked[arg];
    if (!find_parts(c, arg, bytes, size, x)) return false;
    if (checked->data == bytes.data && checked->bytes == bytes.bytes) return true;
    if (!check_parts(c, arg, x)) return false;
    *checked = bytes;
    c->expanded[arg] = 0;
    return true;
}

bool read_csr_of_tail(call *c, size_t number, size_t row, csr *x) {
    int arg = (int)(c->arguments + number);
    return find_parts(c, arg, column_view(&c->tail[number], row), c->type->size, x) &&
           check_parts(c, arg, x) && (x->ends == NULL || csr_expand_tail(c, number, x));
}

bool read_csr_stored(call *c, int arg, size_t row, csr *x) {
    return read_parts(c, arg, row, c->type->size, x);
}

bool read_csr(call *c, int arg, size_t row, csr *x) {
    return read_csr_stored(c, arg, row, x) && (x->ends == NULL || csr_expand(c, arg, x));
}

bool read_csr_places(call *c, int arg, size_t row, csr *x) {
    if (!read_parts(c, arg, row, 0, x)) return false;
    size_t size = x->nnz == 0 ? 1 : (x->bytes.bytes - csr_values_at(x->rows, csr_places(x))) / x->nnz;
    return size == 1 || size == 4 || size == 8 || size == 16 ||
           fail(c, "expected a compressed tensor with values of 1, 4, 8 or 16 bytes as argument %d, "
                   "got some of %zu", arg + 1, size);
}

bool read_extent(call *c, int arg, size_t row, const char *what, size_t *extent) {
    return read_whole(c, arg, row, UINT32_MAX, what, extent);
}

bool read_lines(call *c, int arg, size_t row, size_t lines, size_t n, tensor *t) {
    size_t expected;
    if (!read_tensor(c, arg, row, t)) return false;
    return multiply_sizes(c, lines, n, &expected) &&
           (t->length == expected || fail(c, "expected a matrix of %zu x %zu elements as argument %d, "
                                            "got %zu elements", lines, n, arg + 1, t->length));
}

/* ---- Making ---- */

static bool fits(call *c, size_t rows, size_t cols, size_t nnz, size_t places) {
    size_t most = UCLE_LARGEST_BLOB;
    if (cols > UINT32_MAX) return fail(c, "expected at most %u columns, got %zu", UINT32_MAX, cols);
    if (rows < most / sizeof(u32) && nnz < most / sizeof(u32) &&
        csr_values_at(rows, places) + nnz * c->type->size <= most)
        return true;
    return fail(c, "expected a compressed tensor of at most %zu bytes, got one of %zu rows and %zu "
                   "entries", most, rows, nnz);
}

bool csr_fits(call *c, size_t rows, size_t cols, size_t nnz) { return fits(c, rows, cols, nnz, nnz); }

void csr_begin(char *bytes, size_t rows, size_t cols, size_t nnz, bool runs, csr_parts *out) {
    size_t start = csr_values_at(rows, runs ? 2 * nnz : nnz), padding = sizeof(uint64_t);
    memset(bytes + start - padding, 0, padding); /* what is not padding is written over */
    u32 *head = (u32 *)bytes;
    head[0] = CSR_MAGIC;
    head[1] = (u32)rows;
    head[2] = (u32)cols;
    head[3] = runs ? CSR_RUNS : CSR_ENTRIES;
    out->ptr = head + 4;
    out->idx = out->ptr + rows + 1;
    out->ends = runs ? out->idx + nnz : NULL;
    out->values = bytes + start;
}

static bool make_room(call *c, size_t row, size_t rows, size_t cols, size_t nnz, bool runs,
                      csr_parts *out) {
    size_t places = runs ? 2 * nnz : nnz;
    if (!fits(c, rows, cols, nnz, places)) return false;
    out->bytes = csr_values_at(rows, places) + nnz * c->type->size;
    char *bytes = writer_room(c, row, out->bytes);
    if (bytes == NULL) return false;
    csr_begin(bytes, rows, cols, nnz, runs, out);
    return true;
}

bool csr_room(call *c, size_t row, size_t rows, size_t cols, size_t nnz, csr_parts *out) {
    return make_room(c, row, rows, cols, nnz, false, out);
}

bool csr_room_of_runs(call *c, size_t row, size_t rows, size_t cols, size_t nnz, csr_parts *out) {
    return make_room(c, row, rows, cols, nnz, true, out);
}

/* ---- Operations ---- */

static int word_in(const char *const *words, int count, uint64_t set, const char *text,
                   size_t length) {
    for (int i = 0; i < count; i++)
        if (set >> i & 1 && strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
            return i;
    return -1;
}

static bool find_combination(const call *c, const char *text, size_t length, semiring *s) {
    uint64_t set = c->type->combines;
    int found = length == 0 ? OP_mult : word_in(combine_names, COMBINES, set, text, length);
    s->swapped = found < 0 && length > 0 && text[0] == 'r';
    if (s->swapped) found = word_in(combine_names, COMBINES, set, text + 1, length - 1);
    s->combine = (enum combine_op)found;
    return found >= 0;
}

static bool find_reduction(const call *c, const char *text, size_t length, semiring *s) {
    bool sums = c->type->reduces >> REDUCE_sum & 1;
    int found = length == 0 ? (sums ? REDUCE_sum : -1)
                            : word_in(reduce_names, REDUCES, c->type->reduces, text, length);
    s->reduce = (enum reduce_op)found;
    return found >= 0;
}

static bool refuse_words(call *c, const char *like, bool reduces, bool combines) {
    char sums[40], products[EIN_WORDS];
    ein_list_operations(c->type, sums, sizeof sums, products, sizeof products);
    return fail(c, "expected operations like '%s' for %s (%s%s%s)", like, c->type->name,
                reduces ? sums : "", reduces && combines ? "; " : "", combines ? products : "");
}

bool read_semiring(call *c, int arg, size_t row, semiring *s) {
    view text = column_view(&c->args[arg], row);
    const char *dot = text.bytes > 0 ? memchr(text.data, '.', text.bytes) : NULL;
    size_t head = dot == NULL ? 0 : (size_t)(dot - text.data);
    bool found = text.bytes == 0 ? find_reduction(c, "", 0, s) && find_combination(c, "", 0, s)
                                 : head > 0 && head + 1 < text.bytes &&
                                       find_reduction(c, text.data, head, s) &&
                                       find_combination(c, dot + 1, text.bytes - head - 1, s);
    return found || refuse_words(c, "max.add", true, true);
}

bool read_combination(call *c, int arg, size_t row, semiring *s) {
    view text = column_view(&c->args[arg], row);
    return find_combination(c, text.data, text.bytes, s) || refuse_words(c, "rsub", false, true);
}

bool read_reduction(call *c, int arg, size_t row, semiring *s) {
    view text = column_view(&c->args[arg], row);
    return find_reduction(c, text.data, text.bytes, s) || refuse_words(c, "max", true, false);
}
