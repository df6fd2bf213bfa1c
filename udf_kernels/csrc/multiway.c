/* Sums of products of several matrices: their programs, memory and results. See multiway.h. */
#include "multiway.h"

#include "csr_work.h"

/* ---- Programs ----
 *
 * Integers with a space between: how many labels, the label of the result or -1; the vectors of the
 * outermost label: how many, and which operands; how many lists. For each list, in the order in which
 * labels are bound: the label that is bound, its own label, the list before it or -1, its matrix, and
 * its vectors. For each label but the outermost: its parent and its list.
 */

typedef struct reader {
    call *c;
    const char *at, *end;
} reader;

static bool bad_program(reader *r, const char *expected) {
    return fail(r->c, "expected %s, %zu characters before the end of the program", expected,
                (size_t)(r->end - r->at));
}

/* An integer from `least` to below `end`. */
static bool take(reader *r, int least, size_t end, const char *what, int *value) {
    bool negative = r->at < r->end && *r->at == '-';
    const char *at = r->at + negative;
    size_t found = 0, digits = 0;
    for (; at < r->end && *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
        found = 10 * found + (size_t)(*at - '0');
    bool right = negative ? found == 1 && least < 0 : found < end && (least < 1 || found > 0);
    if (digits == 0 || !right || (at < r->end && *at != ' ')) return bad_program(r, what);
    r->at = at + (at < r->end);
    *value = negative ? NOTHING : (int)found;
    return true;
}

/* Compressed tensors and vectors stand in the kernel's tail. */
static bool take_matrix(reader *r, size_t row, csr *x) {
    int n;
    return take(r, 0, r->c->tail_count, "the number of a matrix", &n) &&
           read_csr_of_tail(r->c, (size_t)n, row, x);
}

static bool set_size(call *c, multiway *m, size_t label, size_t size) {
    size_t *known = &m->labels[label].size;
    if (*known == SIZE_MAX) *known = size;
    return *known == size ||
           fail(c, "expected %zu positions of label %zu, got %zu", *known, label, size);
}

static bool take_scales(reader *r, size_t row, multiway *m, size_t label, scales *by) {
    call *c = r->c;
    int count, n;
    if (!take(r, 0, MULTIWAY_VECTORS + 1, "how many vectors there are", &count)) return false;
    for (; by->count < (size_t)count; by->count++) {
        if (!take(r, 0, c->tail_count, "the number of a vector", &n)) return false;
        view bytes = column_view(&c->tail[n], row);
        if (bytes.bytes % c->type->size != 0)
            return fail(c, "expected whole elements as argument %d, got %zu bytes", n + 2, bytes.bytes);
        if (!set_size(c, m, label, bytes.bytes / c->type->size)) return false;
        by->vectors[by->count] = bytes.data;
    }
    return true;
}

static bool take_list(reader *r, size_t row, multiway *m, size_t number) {
    candidates *l = &m->lists[number];
    int binder, label;
    if (!take(r, 0, m->label_count, "the label that makes a list", &binder) ||
        !take(r, 1, m->label_count, "the label of a list", &label) ||
        !take(r, NOTHING, number, "a list before", &l->source) || !take_matrix(r, row, &l->matrix) ||
        !set_size(r->c, m, (size_t)binder, l->matrix.rows) ||
        !set_size(r->c, m, (size_t)label, l->matrix.cols) ||
        !take_scales(r, row, m, (size_t)label, &l->by))
        return false;
    l->binder = (size_t)binder, l->label = (size_t)label;
    bound *b = &m->labels[binder];
    if (b->end == 0) b->first = number;
    bool follows = b->end == 0 || b->end == number;
    if (l->source != NOTHING) {
        candidates *before = &m->lists[l->source];
        follows = follows && before->matrix.cols == l->matrix.cols && before->binder <= l->binder;
        before->listed = before->marked = true;
        if (l->by.count > 0) return bad_program(r, "no vectors of a list that has one before it");
    }
    b->end = number + 1;
    return follows || bad_program(r, "a list that follows those that it is made of");
}

static bool take_label(reader *r, multiway *m, size_t number) {
    bound *b = &m->labels[number];
    int parent;
    if (!take(r, 0, number, "a parent that comes first", &parent) ||
        !take(r, 0, m->list_count, "the list of a label", &b->list))
        return false;
    const candidates *l = &m->lists[b->list];
    b->sibling = m->labels[parent].child;
    m->labels[parent].child = (int)number;
    return (l->binder <= (size_t)parent && l->label == number) ||
           set_size(r->c, m, number, l->matrix.cols);
}

/* Which labels lie on the way to the result's columns, and what is needed of each list. */
static bool find_needs(reader *r, multiway *m, const int *parents) {
    for (int label = m->output; label > 0; label = parents[label]) m->labels[label].kept = true;
    for (size_t n = 1; n < m->label_count; n++) {
        const bound *b = &m->labels[n];
        bool walked = b->kept || b->child != NOTHING;
        m->lists[b->list].listed |= walked;
        int up = parents[n]; /* a list is made before the label that walks it, on the same branch */
        while (up > 0 && (size_t)up != m->lists[b->list].binder) up = parents[up];
        if ((size_t)up != m->lists[b->list].binder)
            return bad_program(r, "lists that are made above their label");
    }
    for (size_t n = 0; n < m->list_count; n++) {
        const candidates *l = &m->lists[n];
        if (l->source == NOTHING) continue;
        size_t wanted = m->lists[l->source].binder, up = l->binder;
        while (up > 0 && up != wanted) up = (size_t)parents[up];
        if (up != wanted) return bad_program(r, "lists that are made of those above them");
    }
    return true;
}

/* Finds which sums may be remembered: those that depend on one or two of the labels above. */
static void find_given(multiway *m, const int *parents) {
    uint64_t binders[MULTIWAY_LABELS] = {0}, below[MULTIWAY_LABELS] = {0};
    for (size_t n = m->label_count; n-- > 1;) { /* children first */
        below[n] |= (uint64_t)1 << n;
        for (int l = m->labels[n].list; l != NOTHING; l = m->lists[l].source)
            binders[n] |= (uint64_t)1 << m->lists[l].binder;
        binders[parents[n]] |= binders[n];
        below[parents[n]] |= below[n];
    }
    for (size_t n = 1; n < m->label_count; n++) {
        bound *b = &m->labels[n];
        uint64_t given = binders[n] & ~below[n];
        int count = __builtin_popcountll(given), above = 0;
        for (int up = (int)n; up > 0; up = parents[up]) above++;
        if (b->kept || b->child == NOTHING || count > 2 || count >= above) continue;
        b->given[0] = __builtin_ctzll(given);
        b->given[1] = 63 - __builtin_clzll(given);
        uint64_t most = m->labels[b->given[0]].size;
        if (count == 2) most *= m->labels[b->given[1]].size;
        for (b->slots = 1; b->slots < most && b->slots < MULTIWAY_SLOTS;) b->slots *= 2;
    }
}

static bool read_program(call *c, size_t row, multiway *m) {
    view program = column_view(&c->args[0], row);
    reader r = {c, program.data, program.data + program.bytes};
    int labels, lists, parents[MULTIWAY_LABELS] = {0};
    *m = (multiway){.watch = &c->watch};
    if (!take(&r, 1, MULTIWAY_LABELS + 1, "the number of labels", &labels)) return false;
    m->label_count = (size_t)labels;
    for (size_t n = 0; n < m->label_count; n++)
        m->labels[n] = (bound){.list = NOTHING, .child = NOTHING, .sibling = NOTHING,
                               .size = SIZE_MAX};
    if (!take(&r, NOTHING, m->label_count, "the label of the result", &m->output) ||
        !take_scales(&r, row, m, 0, &m->outermost) ||
        !take(&r, 1, MULTIWAY_LISTS + 1, "the number of lists", &lists))
        return false;
    for (; m->list_count < (size_t)lists; m->list_count++)
        if (!take_list(&r, row, m, m->list_count)) return false;
    for (size_t n = 1; n < m->label_count; n++) {
        const char *start = r.at;
        if (!take_label(&r, m, n)) return false;
        reader again = {c, start, r.end};
        if (!take(&again, 0, n, "a parent", &parents[n])) return false;
    }
    if (m->labels[0].size == SIZE_MAX) return bad_program(&r, "a list of the outermost label");
    if (!find_needs(&r, m, parents)) return false;
    find_given(m, parents);
    return r.at == r.end || bad_program(&r, "the end");
}

/* ---- Memory ---- */

static size_t longest_row(const csr *x) {
    size_t most = 0;
    for (size_t r = 0; r < x->rows; r++) {
        size_t length = csr_row_length(x, r);
        most = length > most ? length : most;
    }
    return most;
}

enum { MULTIWAY_ALIGNMENT = 16 };
static size_t aligned(size_t bytes) {
    return (bytes + MULTIWAY_ALIGNMENT - 1) & ~(size_t)(MULTIWAY_ALIGNMENT - 1);
}

/* Places everything behind `memory`, or only counts its bytes where that is NULL. */
static size_t place_lists(multiway *m, size_t weight, size_t sums, char *memory) {
    size_t used = 0;
#define PLACE(where, bytes)                            \
    do {                                               \
        if (memory != NULL) (where) = (void *)(memory + used); \
        used += aligned(bytes);                        \
    } while (0)
    for (size_t n = 0; n < m->list_count; n++) {
        candidates *l = &m->lists[n];
        size_t most = l->listed ? longest_row(&l->matrix) : 0;
        PLACE(l->total, weight);
        if (l->listed) PLACE(l->idx, (most + 1) * sizeof(u32));
        if (l->listed) PLACE(l->weights, (most + 1) * weight);
        if (l->marked) PLACE(l->at, l->matrix.cols * weight);
    }
    for (size_t n = 0; n < m->label_count; n++) {
        PLACE(m->labels[n].keys, m->labels[n].slots * sizeof(uint64_t));
        PLACE(m->labels[n].known, m->labels[n].slots * weight);
    }
    PLACE(m->sums, sums * weight);
    if (m->output > 0) PLACE(m->touched, ((sums >> 6) + 1) * sizeof(uint64_t));
#undef PLACE
    return used;
}

static bool prepare(call *c, size_t row, multiway *m) {
    if (!read_program(c, row, m)) return false;
    size_t weight = c->type->multiway->weight_size;
    size_t sums = m->output == NOTHING ? 1 : m->labels[m->output].size;
    size_t bytes = place_lists(m, weight, sums, NULL) + MULTIWAY_ALIGNMENT;
    char *memory = call_scratch(c, bytes);
    if (memory == NULL) return false;
    memset(memory, 0, bytes);
    memory += aligned((size_t)memory) - (size_t)memory;
    place_lists(m, weight, sums, memory);
    return true;
}

static bool operands_are_there(const call *c, size_t row) {
    for (size_t n = 0; n < c->tail_count; n++)
        if (!column_valid(&c->tail[n], row)) return false;
    return true;
}

/* ---- Results ---- */

size_t apply_multiway_sca(call *c, size_t row) {
    multiway *m = (multiway *)call_work(c, WORK_LIST, sizeof *m);
    element out = {0};
    if (m == NULL) return 0;
    if (!operands_are_there(c, row)) return writer_null(c, row);
    if (!prepare(c, row, m)) return 0;
    if (m->output != NOTHING) return fail(c, "expected a program whose result is a number");
    for (size_t r = 0; r < m->labels[0].size && !m->bad; r++) c->type->multiway->row(m, r);
    trouble bad = m->bad ? m->bad : c->type->multiway->collect(1, NULL, m->sums, &out);
    return settle(c, bad) ? put_element(c, row, &out) : 0;
}

/* The columns of a row whose bits are set, which are cleared. */
static size_t touched_columns(multiway *m, u32 *idx) {
    size_t count = 0, words = (m->labels[m->output].size >> 6) + 1;
    for (size_t w = 0; w < words; w++) {
        for (uint64_t word = m->touched[w]; word != 0; word &= word - 1)
            idx[count++] = (u32)(w << 6 | (size_t)__builtin_ctzll(word));
        m->touched[w] = 0;
    }
    return count;
}

static size_t count_touched(const multiway *m) {
    size_t count = 0, words = (m->labels[m->output].size >> 6) + 1;
    for (size_t w = 0; w < words; w++) count += (size_t)__builtin_popcountll(m->touched[w]);
    return count;
}

static size_t put_vector(call *c, size_t row, multiway *m) {
    const element_type *type = c->type;
    size_t rows = m->labels[0].size;
    for (size_t r = 0; r < rows && !m->bad; r++) type->multiway->row(m, r);
    void *out = writer_room(c, row, rows * type->size);
    if (out == NULL) return 0;
    trouble bad = m->bad ? m->bad : type->multiway->collect(rows, NULL, m->sums, out);
    if (!settle(c, bad)) return 0;
    writer_take(c, row, rows * type->size);
    return 1;
}

/* A vector over the outermost label, or a matrix of it and another one. */
size_t apply_multiway(call *c, size_t row) {
    const element_type *type = c->type;
    multiway *m = (multiway *)call_work(c, WORK_LIST, sizeof *m);
    csr_built out;
    element zero = {0};
    if (m == NULL) return 0;
    if (!operands_are_there(c, row)) return writer_null(c, row);
    if (!prepare(c, row, m)) return 0;
    if (m->output == NOTHING) return fail(c, "expected a program whose result has a label");
    if (m->output == 0) return put_vector(c, row, m);
    size_t rows = m->labels[0].size;
    if (!csr_build(c, rows, &out)) return 0;
    for (size_t r = 0; r < rows && !m->bad; r++) {
        type->multiway->row(m, r);
        size_t count = count_touched(m);
        if (!csr_build_more(c, &out, count)) return 0;
        u32 *idx = out.idx + out.nnz;
        touched_columns(m, idx);
        if (!m->bad)
            m->bad |= type->multiway->collect(count, idx, m->sums, at_out(type, out.values, out.nnz));
        csr_build_row(c, &out, r, count, &zero);
    }
    return settle(c, m->bad) ? csr_build_end(c, row, rows, m->labels[m->output].size, &out) : 0;
}
