/* The scalar kernels. Each takes one row (or a run of rows) and writes its result. */
#include "kernels.h"
#include "philox.h"

bool expect_length(call *c, const char *what, size_t expected, size_t got) {
    if (expected == got) return true;
    return fail(c, "expected %zu elements as %s, got %zu", expected, what, got);
}

bool expect_start(call *c, const void *expected, const void *got) {
    return memcmp(expected, got, sizeof(element)) == 0 ||
           fail(c, "expected the same fill, or number of entries, in all rows of a group");
}

bool expect_multiple(call *c, size_t of, size_t got) {
    if (of == 0 ? got == 0 : got % of == 0) return true;
    return fail(c, "expected a matrix of a multiple of %zu elements, got %zu", of, got);
}

bool read_pair(call *c, size_t row, tensor *a, tensor *b) {
    return read_tensor(c, 0, row, a) && read_tensor(c, 1, row, b);
}

/* ---- Making and reading tensors ---- */

static bool outgrows_string(const call *c, const list *l) {
    return l->length * c->type->size > DUCK_INLINE_BYTES;
}

/* Rows from here on whose lists lie one behind the other, as a scan hands them out: one copy serves
 * all. 0 where there is no second one. */
static size_t pack_run(call *c, size_t row, const list *first) {
    list next = *first;
    size_t rows = 0, elements = 0, most = RUN_BYTES / c->type->size;
    while (outgrows_string(c, &next) && next.first == first->first + elements &&
           elements + next.length <= most) {
        elements += next.length;
        rows++;
        if (row + rows == c->rows || !row_valid(c, row + rows)) break;
        if (!read_list(c, 0, row + rows, &next)) return 0;
    }
    if (rows < 2) return 0;
    writer_copy_run(c, row, at(c->type, first->data, first->first), elements);
    for (size_t i = 0; i < rows; i++)
        writer_take(c, row + i, column_list(&c->args[0], row + i).length);
    return rows;
}

size_t apply_pack(call *c, size_t row) {
    list l;
    if (!read_list(c, 0, row, &l)) return 0;
    if (c->type->parts == 1 && c->out.vector != NULL) {
        size_t rows = pack_run(c, row, &l);
        if (rows > 0 || c->failed) return rows;
    }
    if (c->type->parts == 1 && l.length > 0) /* where it lies */
        return writer_put(c, row, at(c->type, l.data, l.first), l.length);
    void *out = writer_room(c, row, l.length);
    if (out == NULL || !read_elements(c, 0, &l, out)) return 0;
    writer_take(c, row, l.length);
    return 1;
}

size_t apply_vec_to_list(call *c, size_t row) {
    tensor t;
    return read_tensor(c, 0, row, &t) && writer_put_list(c, row, t.data, t.length);
}

size_t apply_full(call *c, size_t row) {
    size_t n;
    element value;
    if (!read_whole(c, 0, row, max_elements(c->type), "a length", &n) ||
        !read_element(c, 1, row, &value))
        return 0;
    void *out = writer_room(c, row, n);
    if (out == NULL) return 0;
    c->type->fill(n, &value, out);
    writer_take(c, row, n);
    return 1;
}

size_t apply_sca_to_vec(call *c, size_t row) {
    element value;
    return read_element(c, 0, row, &value) && writer_put(c, row, &value, 1);
}

size_t apply_element(call *c, size_t row) {
    tensor t;
    element value;
    int64_t i = column_integer(c, 1, row);
    if (!read_tensor(c, 0, row, &t)) return 0;
    if (i < 0 || (size_t)i >= t.length)
        return fail(c, "expected an offset below %zu, got %lld", t.length, (long long)i);
    c->type->copy(1, at(c->type, t.data, (size_t)i), 1, &value, 1);
    return put_element(c, row, &value);
}

size_t apply_slice(call *c, size_t row) {
    tensor t;
    strided s;
    if (!read_tensor(c, 0, row, &t) || !read_strided(c, row, 1, 2, 3, t.length, &s) ||
        !expect_something(c, s.count, t.length))
        return 0;
    void *out = writer_room(c, row, s.count);
    if (out == NULL) return 0;
    strided_gather(c->type, &s, t.data, out);
    writer_take(c, row, s.count);
    return 1;
}

/* Puts an element at position i of a list, which is below n; nowhere if that is NULL. */
static bool put_at(call *c, const list *places, size_t i, size_t n, const void *value, char *out) {
    if (!bit(places->validity, places->first + i)) return true;
    int64_t place = list_integer(places, i);
    if (place < 0 || (size_t)place >= n)
        return fail(c, "expected positions below %zu, got %lld", n, (long long)place);
    copy_element(c->type->size, value, out + (size_t)place * c->type->size);
    return true;
}

/* Elements at their positions, then one element at others; of those that share a position, the last.
 * Where an element or a position is NULL, there is none. */
size_t apply_scatter(call *c, size_t row) {
    list values = column_list(&c->args[0], row), places = column_list(&c->args[1], row),
         others = column_list(&c->args[2], row);
    size_t n;
    element fill, value;
    if (!expect_length(c, "positions", values.length, places.length) ||
        !read_whole(c, 3, row, max_elements(c->type), "a length", &n) ||
        !read_element(c, 4, row, &fill) || !read_element(c, 5, row, &value) ||
        !expect_something(c, n, values.length))
        return 0;
    char *out = writer_room(c, row, n);
    if (out == NULL) return 0;
    c->type->fill(n, &fill, out);
    for (size_t i = 0; i < values.length; i++)
        if (bit(values.validity, values.first + i) &&
            !put_at(c, &places, i, n, at(c->type, values.data, values.first + i), out))
            return 0;
    for (size_t i = 0; i < others.length; i++)
        if (!put_at(c, &others, i, n, &value, out)) return 0;
    writer_take(c, row, n);
    return 1;
}

static bool count_not(call *c, size_t row, size_t *count) {
    tensor t;
    element fill;
    if (!read_tensor(c, 0, row, &t) || !read_element(c, 1, row, &fill)) return false;
    *count = c->type->count_not(t.length, t.data, &fill);
    return true;
}

size_t apply_any_not(call *c, size_t row) {
    size_t count;
    if (!count_not(c, row, &count)) return 0;
    ((uint8_t *)c->out.values)[row] = count > 0;
    return 1;
}

size_t apply_count_not(call *c, size_t row) {
    size_t count;
    if (!count_not(c, row, &count)) return 0;
    ((int64_t *)c->out.values)[row] = (int64_t)count;
    return 1;
}

size_t apply_all_finite(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    ((uint8_t *)c->out.values)[row] = c->type->all_finite(t.length, t.data);
    return 1;
}

/* ---- Numbers ---- */

size_t apply_random_bits(call *c, size_t row) {
    uint64_t key = (uint64_t)column_integer(c, 0, row), place = (uint64_t)column_integer(c, 1, row);
    ((int64_t *)c->out.values)[row] = (int64_t)philox_bits(key, place);
    return 1;
}

/* ---- Entry by entry ---- */

/* So many elements are done before somebody who waits is asked. */
enum { PATIENT_ELEMENTS = 1 << 18 };

typedef trouble (*elementwise)(call *c, size_t n, const void *a, size_t sa, const void *b,
                               size_t sb, void *out);
static trouble in_parts(call *c, elementwise loop, size_t n, const void *a, size_t sa,
                        const void *b, size_t sb, void *out) {
    trouble bad = 0;
    for (size_t i = 0; i < n && !bad; i += PATIENT_ELEMENTS) {
        size_t part = n - i < PATIENT_ELEMENTS ? n - i : PATIENT_ELEMENTS;
        if (watch_stops(&c->watch, 8 * part)) return INTERRUPTED;
        bad = loop(c, part, at(c->type, a, i * sa), sa, b == NULL ? b : at(c->type, b, i * sb), sb,
                   at_out(c->kernel->result, out, i));
    }
    return bad;
}

static trouble cast_part(call *c, size_t n, const void *a, size_t sa, const void *b, size_t sb,
                         void *out) {
    (void)sa, (void)b, (void)sb;
    return c->type->cast[c->kernel->op](n, a, out);
}
static trouble map_part(call *c, size_t n, const void *a, size_t sa, const void *b, size_t sb,
                        void *out) {
    (void)sa, (void)b, (void)sb;
    return c->type->map((enum map_op)c->kernel->op, n, a, out);
}
static trouble combine_part(call *c, size_t n, const void *a, size_t sa, const void *b, size_t sb,
                            void *out) {
    return c->type->combine((enum combine_op)c->kernel->op, n, a, sa, b, sb, out);
}

size_t apply_cast(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    void *out = writer_room(c, row, t.length);
    if (out == NULL) return 0;
    return finish(c, row, t.length, in_parts(c, cast_part, t.length, t.data, 1, NULL, 0, out));
}

size_t apply_map(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    void *out = writer_room(c, row, t.length);
    if (out == NULL) return 0;
    return finish(c, row, t.length, in_parts(c, map_part, t.length, t.data, 1, NULL, 0, out));
}

static size_t combine(call *c, size_t row, size_t n, const void *a, size_t sa, const void *b,
                      size_t sb) {
    void *out = writer_room(c, row, n);
    if (out == NULL) return 0;
    return finish(c, row, n, in_parts(c, combine_part, n, a, sa, b, sb, out));
}

size_t apply_vec_vec(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    return combine(c, row, a.length, a.data, 1, b.data, 1);
}

size_t apply_vec_sca(call *c, size_t row) {
    tensor a;
    element value;
    if (!read_tensor(c, 0, row, &a) || !read_element(c, 1, row, &value)) return 0;
    return combine(c, row, a.length, a.data, 1, &value, 0);
}

size_t apply_sca_vec(call *c, size_t row) {
    tensor b;
    element value;
    if (!read_tensor(c, 1, row, &b) || !read_element(c, 0, row, &value)) return 0;
    return combine(c, row, b.length, &value, 0, b.data, 1);
}

/* ---- General contractions ---- */

int whole_characters(view text, size_t most) {
    size_t bytes = text.bytes;
    if (bytes > most)
        for (bytes = most; bytes > 0 && (text.data[bytes] & 0xC0) == 0x80;) bytes--;
    return (int)bytes;
}

/* The spec and the sizes rarely change within a batch: parse them again only when they do. */
static bool plan_for(call *c, size_t row) {
    bool unary = c->arguments == 3;
    view spec = column_view(&c->args[0], row);
    list sizes;
    if (!read_list(c, 1, row, &sizes)) return false;
    const i64 *first = sizes.length > 0 ? (const i64 *)sizes.data + sizes.first : NULL;
    view bytes = {(const char *)first, sizes.length * sizeof(int64_t)};
    /* A short spec lies inside the row's entry, which outlives the batch like any other. */
    if (c->plan_ready && same_bytes(spec, c->plan_spec) && same_bytes(bytes, c->plan_sizes))
        return true;
    char message[320];
    c->plan_ready = ein_parse(&c->plan, c->type, unary, spec.data, spec.bytes, first, sizes.length,
                              message, sizeof message);
    c->plan_spec = spec;
    c->plan_sizes = bytes;
    if (!c->plan_ready)
        return fail(c, "%s (spec '%.*s')", message, shown_bytes(spec), spec.data);
    return true;
}

bool prepare_ein_operands(call *c, size_t row, tensor *a, tensor *b) {
    *b = (tensor){NULL, 0};
    if (!plan_for(c, row) || !read_tensor(c, 2, row, a)) return false;
    if (!expect_length(c, "first operand", c->plan.length_a, a->length)) return false;
    if (c->plan.unary) return true;
    return read_tensor(c, 3, row, b) &&
           expect_length(c, "second operand", c->plan.length_b, b->length);
}

/* What is larger than the operand that it is made of may not be very large. */
bool expect_something(call *c, size_t elements, size_t operand) {
    size_t most = operand > MOST_OF_NOTHING ? operand : MOST_OF_NOTHING;
    return elements <= most ||
           fail(c, "expected a result of at most %zu elements of an operand of %zu, got %zu", most,
                operand, elements);
}

/* An entry of a result has operands, unless there is nothing to reduce. */
bool expect_ein_result(call *c, const ein_plan *plan) {
    return !plan->empty || expect_something(c, plan->length_out, 0);
}

size_t apply_ein(call *c, size_t row) {
    tensor a, b;
    if (!prepare_ein_operands(c, row, &a, &b) || !expect_ein_result(c, &c->plan)) return 0;
    size_t n = c->plan.length_out;
    void *out = writer_room(c, row, n);
    if (out == NULL) return 0;
    c->type->fill(n, &c->type->identity[c->plan.reduce], out);
    return finish(c, row, n, contract_into(c, &c->plan, a.data, b.data, out));
}

size_t apply_ein_sca(call *c, size_t row) {
    tensor a, b;
    if (!prepare_ein_operands(c, row, &a, &b)) return 0;
    /* Without output labels; one that has only size 1 would do as well, but not in SQL's eyes. */
    view spec = column_view(&c->args[0], row);
    if (spec.data[spec.bytes - 1] != '>')
        return fail(c, "expected a spec without output labels, got '%.*s'", shown_bytes(spec),
                    spec.data);
    element out = c->type->identity[c->plan.reduce];
    if (!settle(c, contract_into(c, &c->plan, a.data, b.data, &out))) return 0;
    return put_element(c, row, &out);
}
