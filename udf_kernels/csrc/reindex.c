/* Tensors read by an index map: each entry of the result lies behind an affine function of its
 * position, or is a number where that is outside or a condition does not hold.
 *
 * A program of integers says which functions these are:
 *
 *     labels, size of each,
 *     axes, for each: size, stride, one factor per label,
 *     clauses, for each: how many comparisons, for each: sign, one factor per label
 *     perhaps digits, for each: divisor, whether it is the remainder, one factor per label,
 *         and terms, for each: function, factor, digit
 *
 * and a list of constants, which may differ from row to row, has one for each axis, for each
 * comparison and for each digit. A comparison is of its function with 0: at least (0), equal (1) or
 * unequal (2). All clauses have to hold, and of a clause one comparison. A digit is what division
 * makes of a function, rounded down, and terms add multiples of digits to functions, which are
 * numbered: those of axes, of comparisons, of digits. A digit gets all of its terms before it
 * stands in one, and only of digits before it. */
#include "kernels.h"

enum { MOST_AXES = UCLE_MOST_LABELS, MOST_COMPARISONS = 64, MOST_DIGITS = 32, MOST_TERMS = 128 };
enum { MOST_FUNCTIONS = MOST_AXES + MOST_COMPARISONS + MOST_DIGITS };
enum sign { AT_LEAST, EQUAL, UNEQUAL };

typedef struct function {
    int64_t value; /* at the current position, without digits */
    int64_t low, high; /* what it is at least and at most, with them */
    int64_t factor[UCLE_MOST_LABELS];
} function;

typedef struct comparison {
    function f;
    int64_t sign;
    bool last; /* of its clause */
} comparison;

typedef struct source_axis {
    function f;
    int64_t size, stride;
} source_axis;

typedef struct digit {
    function f;
    int64_t by;
    bool remainder, used;
} digit;

typedef struct term {
    size_t function, digit;
    int64_t factor;
} term;

typedef struct index_map {
    size_t rank, axes, comparisons, digits, terms, count;
    bool spans; /* along the last label, the entries that are read lie at neighbouring positions */
    int64_t size[UCLE_MOST_LABELS];
    source_axis axis[MOST_AXES];
    comparison comparison[MOST_COMPARISONS];
    digit digit[MOST_DIGITS];
    term term[MOST_TERMS];
} index_map;

typedef struct reader {
    call *c;
    const list *list;
    size_t next;
} reader;

static bool read_number(reader *r, int64_t *number) {
    if (r->next == r->list->length)
        return fail(r->c, "expected more than %zu numbers in the program of an index map", r->next);
    *number = list_integer(r->list, r->next++);
    return true;
}

static bool read_count(reader *r, size_t most, const char *what, size_t *count) {
    int64_t number;
    if (!read_number(r, &number)) return false;
    if (number < 0 || (uint64_t)number > most)
        return fail(r->c, "expected at most %zu %s, got %lld", most, what, (long long)number);
    *count = (size_t)number;
    return true;
}

/* Reads the factors of a function, and checks that no position makes it leave 64 bits. */
static bool read_function(reader *r, const index_map *map, int64_t constant, function *f) {
    int64_t low = constant, high = constant, span;
    bool overflow = false;
    f->value = constant;
    for (size_t i = 0; i < map->rank; i++) {
        if (!read_number(r, &f->factor[i])) return false;
        /* The walk goes one step beyond the end, and back again. */
        overflow |= __builtin_mul_overflow(f->factor[i], map->size[i], &span);
        overflow |= span == INT64_MIN; /* which has no way back */
        overflow |= __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
    }
    f->low = low, f->high = high;
    return !overflow || fail(r->c, "expected index functions that fit 64 bits");
}

static bool read_constant(call *c, const list *constants, size_t *next, int64_t *constant) {
    if (*next == constants->length)
        return fail(c, "expected more than %zu constants for an index map", *next);
    *constant = list_integer(constants, (*next)++);
    return true;
}

static bool read_axes(reader *r, const list *constants, size_t *next, size_t length,
                      index_map *map) {
    size_t elements = 1;
    if (!read_count(r, MOST_AXES, "axes", &map->axes)) return false;
    for (size_t n = 0; n < map->axes; n++) {
        source_axis *a = &map->axis[n];
        int64_t constant;
        if (!read_number(r, &a->size) || !read_number(r, &a->stride) ||
            !read_constant(r->c, constants, next, &constant) ||
            !read_function(r, map, constant, &a->f))
            return false;
        size_t span, size, stride;
        if (!check_whole(r->c, a->size, LARGEST_SIZE, "sizes of axes", &size) ||
            !check_whole(r->c, a->stride, INT64_MAX, "strides", &stride))
            return false;
        if (size == 0) continue; /* nothing is read along it, and nothing at all */
        if (!multiply_sizes(r->c, size - 1, stride, &span)) return false;
        if (__builtin_add_overflow(elements, span, &elements))
            return fail(r->c, "expected positions that fit 64 bits");
    }
    for (size_t n = 0; n < map->axes; n++)
        if (map->axis[n].size == 0) return true;
    return elements <= length ||
           fail(r->c, "expected a tensor of at least %zu elements, got %zu", elements, length);
}

static bool read_clauses(reader *r, const list *constants, size_t *next, index_map *map) {
    size_t clauses;
    map->comparisons = 0;
    if (!read_count(r, MOST_COMPARISONS, "clauses", &clauses)) return false;
    for (size_t n = 0; n < clauses; n++) {
        size_t parts;
        if (!read_count(r, MOST_COMPARISONS - map->comparisons, "comparisons", &parts))
            return false;
        if (parts == 0) return fail(r->c, "expected clauses of at least one comparison");
        for (size_t k = 0; k < parts; k++) {
            comparison *one = &map->comparison[map->comparisons++];
            int64_t constant;
            if (!read_number(r, &one->sign) || !read_constant(r->c, constants, next, &constant) ||
                !read_function(r, map, constant, &one->f))
                return false;
            if (one->sign < AT_LEAST || one->sign > UNEQUAL)
                return fail(r->c, "expected a sign from 0 to 2, got %lld", (long long)one->sign);
            one->last = k + 1 == parts;
        }
    }
    return true;
}

static function *function_at(index_map *map, size_t number) {
    if (number < map->axes) return &map->axis[number].f;
    number -= map->axes;
    if (number < map->comparisons) return &map->comparison[number].f;
    return &map->digit[number - map->comparisons].f;
}

static int64_t quotient(int64_t value, int64_t by) { return value / by - (value % by < 0); }

/* Not what the quotient leaves: of the least number, that times the divisor is below all others. */
static int64_t remainder_of(int64_t value, int64_t by) {
    int64_t left = value % by;
    return left < 0 ? left + by : left;
}

static bool read_term(reader *r, index_map *map, term *t) {
    size_t before = map->axes + map->comparisons;
    if (!read_count(r, before + map->digits - 1, "functions", &t->function) ||
        !read_number(r, &t->factor) || !read_count(r, map->digits - 1, "digits", &t->digit))
        return false;
    digit *d = &map->digit[t->digit];
    d->used = true;
    if (t->function >= before &&
        (t->function - before <= t->digit || map->digit[t->function - before].used))
        return fail(r->c, "expected digits to be complete where they are used");
    int64_t low = d->remainder ? 0 : quotient(d->f.low, d->by), first;
    int64_t high = d->remainder ? d->by - 1 : quotient(d->f.high, d->by), last;
    function *f = function_at(map, t->function);
    bool overflow = __builtin_mul_overflow(t->factor, t->factor < 0 ? high : low, &first);
    overflow |= __builtin_mul_overflow(t->factor, t->factor < 0 ? low : high, &last);
    overflow |= __builtin_add_overflow(f->low, first < 0 ? first : 0, &f->low);
    overflow |= __builtin_add_overflow(f->high, last > 0 ? last : 0, &f->high);
    return !overflow || fail(r->c, "expected index functions that fit 64 bits");
}

static bool read_digits(reader *r, const list *constants, size_t *next, index_map *map) {
    map->digits = map->terms = 0;
    if (r->next == r->list->length) return true;
    size_t digits, terms;
    if (!read_count(r, MOST_DIGITS, "digits", &digits)) return false;
    if (digits == 0) return fail(r->c, "expected at least one digit, or no word of them");
    for (size_t n = 0; n < digits; n++) {
        digit *d = &map->digit[n];
        int64_t remainder, constant;
        if (!read_number(r, &d->by) || !read_number(r, &remainder) ||
            !read_constant(r->c, constants, next, &constant) ||
            !read_function(r, map, constant, &d->f))
            return false;
        if (d->by < 1) return fail(r->c, "expected divisors of at least 1");
        d->remainder = remainder != 0, d->used = false;
    }
    map->digits = digits;
    if (!read_count(r, MOST_TERMS, "terms", &terms)) return false;
    for (; map->terms < terms; map->terms++)
        if (!read_term(r, map, &map->term[map->terms])) return false;
    return true;
}

static bool read_map(call *c, size_t row, size_t length, index_map *map) {
    list constants, program;
    if (!read_list(c, 1, row, &constants) || !read_list(c, 2, row, &program)) return false;
    reader r = {c, &program, 0};
    size_t next = 0;
    if (!read_count(&r, UCLE_MOST_LABELS, "labels", &map->rank)) return false;
    map->count = 1;
    for (size_t i = 0; i < map->rank; i++) {
        if (!read_number(&r, &map->size[i])) return false;
        size_t extent;
        if (!check_whole(c, map->size[i], LARGEST_SIZE, "sizes", &extent) ||
            !multiply_sizes(c, map->count, extent, &map->count))
            return false;
    }
    if (!read_axes(&r, &constants, &next, length, map) ||
        !read_clauses(&r, &constants, &next, map) || !read_digits(&r, &constants, &next, map))
        return false;
    if (r.next != program.length || next != constants.length)
        return fail(c, "expected an index map of %zu numbers and %zu constants, got %zu and %zu",
                    r.next, next, program.length, constants.length);
    return true;
}

/* Whether every condition is one comparison that neighbouring positions meet, without digits. Numbers
 * at half of the range or more are left to a test of each position: two may be too far apart. */
static bool has_spans(const index_map *map) {
    if (map->digits > 0 || map->rank == 0) return false;
    for (size_t n = 0; n < map->axes; n++)
        if (map->axis[n].f.low < INT64_MIN / 2 || map->axis[n].f.high > INT64_MAX / 2) return false;
    for (size_t n = 0; n < map->comparisons; n++) {
        const comparison *one = &map->comparison[n];
        if (one->sign == UNEQUAL || !one->last) return false;
        if (one->f.low < INT64_MIN / 2 || one->f.high > INT64_MAX / 2) return false;
    }
    return true;
}

static void step(index_map *map, size_t label, int64_t by) {
    for (size_t n = 0; n < map->axes; n++)
        map->axis[n].f.value += by * map->axis[n].f.factor[label];
    for (size_t n = 0; n < map->comparisons; n++)
        map->comparison[n].f.value += by * map->comparison[n].f.factor[label];
    for (size_t n = 0; n < map->digits; n++)
        map->digit[n].f.value += by * map->digit[n].f.factor[label];
}

/* The value of each function at the current position, to which digits add. What is added goes to the
 * value at once: no part of that sum leaves the bounds that were checked, as one without it may. */
static void with_digits(const index_map *map, int64_t *value) {
    size_t first = map->axes + map->comparisons;
    for (size_t n = 0; n < map->axes; n++) value[n] = map->axis[n].f.value;
    for (size_t n = 0; n < map->comparisons; n++)
        value[map->axes + n] = map->comparison[n].f.value;
    for (size_t n = 0; n < map->digits; n++) value[first + n] = map->digit[n].f.value;
    for (size_t n = 0; n < map->digits; n++) {
        const digit *d = &map->digit[n];
        int64_t own = d->remainder ? remainder_of(value[first + n], d->by)
                                   : quotient(value[first + n], d->by);
        for (size_t k = 0; k < map->terms; k++)
            if (map->term[k].digit == n) value[map->term[k].function] += map->term[k].factor * own;
    }
}

static bool holds(int64_t sign, int64_t value) {
    switch (sign) {
    case AT_LEAST: return value >= 0;
    case EQUAL: return value == 0;
    default: return value != 0;
    }
}

/* Whether an entry is read at the current position, and which. */
static bool place(const index_map *map, size_t *offset) {
    bool met = false;
    int64_t values[MOST_FUNCTIONS];
    if (map->digits > 0) with_digits(map, values);
    for (size_t n = 0; n < map->comparisons; n++) {
        const comparison *one = &map->comparison[n];
        met |= holds(one->sign, map->digits > 0 ? values[map->axes + n] : one->f.value);
        if (!map->comparison[n].last) continue;
        if (!met) return false;
        met = false;
    }
    size_t at = 0;
    for (size_t n = 0; n < map->axes; n++) {
        const source_axis *a = &map->axis[n];
        int64_t value = map->digits > 0 ? values[n] : a->f.value;
        if (value < 0 || value >= a->size) return false;
        at += (size_t)value * (size_t)a->stride;
    }
    *offset = at;
    return true;
}

/* Narrows a span of steps to those after which a value that grows by a factor is at least 0. */
static void narrow(int64_t value, int64_t factor, int64_t *first, int64_t *end) {
    int64_t from = 0, to = *end;
    if (factor > 0 && value < 0) from = -(value + 1) / factor + 1;
    if (factor < 0) to = value < 0 ? 0 : value / -factor + 1;
    if (factor == 0 && value < 0) to = 0;
    if (from > *first) *first = from;
    if (to < *end) *end = to;
}

/* The steps along the last label at which an entry is read, all of which follow each other. */
static void find_span(const index_map *map, int64_t *first, int64_t *end) {
    size_t last = map->rank - 1;
    *first = 0, *end = map->size[last];
    for (size_t n = 0; n < map->comparisons; n++) {
        const comparison *one = &map->comparison[n];
        narrow(one->f.value, one->f.factor[last], first, end);
        if (one->sign == EQUAL) narrow(-one->f.value, -one->f.factor[last], first, end);
    }
    for (size_t n = 0; n < map->axes; n++) {
        const source_axis *a = &map->axis[n];
        narrow(a->f.value, a->f.factor[last], first, end);
        narrow(a->size - 1 - a->f.value, -a->f.factor[last], first, end);
    }
    if (*first > *end) *first = *end; /* there are none */
}

/* The distance along the last label of two entries that are read. Modulo 2^64, as offsets are: along
 * an axis of size 1 any stride is right. */
static size_t last_stride(const index_map *map) {
    size_t stride = 0;
    for (size_t n = 0; n < map->axes; n++)
        stride += (size_t)map->axis[n].f.factor[map->rank - 1] * (size_t)map->axis[n].stride;
    return stride;
}

/* Fills a line outside of its span, and copies the entries of the span at once. */
static void copy_span(const call *c, const index_map *map, const element *outside,
                      const void *from, char *to) {
    size_t length = (size_t)map->size[map->rank - 1], bytes = c->type->size, offset = 0;
    int64_t first, end;
    find_span(map, &first, &end);
    c->type->fill((size_t)first, outside, to);
    c->type->fill(length - (size_t)end, outside, to + (size_t)end * bytes);
    if (first == end) return;
    for (size_t n = 0; n < map->axes; n++) {
        const source_axis *a = &map->axis[n];
        offset += (size_t)(a->f.value + first * a->f.factor[map->rank - 1]) * (size_t)a->stride;
    }
    c->type->copy((size_t)(end - first), (const char *)from + offset * bytes,
                  (int64_t)last_stride(map), to + (size_t)first * bytes, 1);
}

/* Positions along the last label at which an entry is read lie at a constant distance, so that runs
 * of them are copied at once; digits make it another one now and then, and a run ends there. */
static void copy_line(const call *c, index_map *map, const void *from, char *to) {
    size_t last = map->rank - 1, length = (size_t)map->size[last], bytes = c->type->size;
    size_t stride = last_stride(map);
    size_t first = 0, run = 0, start = 0, offset = 0;
    for (size_t i = 0; i <= length; i++) {
        bool read = i < length && place(map, &offset);
        size_t distance = offset - first;
        if (map->digits > 0 && run == 1) stride = distance;
        if (run > 0 && (!read || distance != run * stride)) {
            const char *source = (const char *)from + first * bytes;
            c->type->copy(run, source, (int64_t)stride, to + start * bytes, 1);
            run = 0;
        }
        if (read && run++ == 0) first = offset, start = i;
        if (i < length) step(map, last, 1);
    }
    step(map, last, -map->size[last]);
}

static bool walk(call *c, index_map *map, size_t label, const element *outside, const void *from,
                 char **to) {
    if (label + 1 == map->rank) {
        size_t length = (size_t)map->size[label];
        if (watch_stops(&c->watch, map->spans ? length : 8 * length)) return false;
        if (map->spans)
            copy_span(c, map, outside, from, *to);
        else
            copy_line(c, map, from, *to);
        *to += length * c->type->size;
        return true;
    }
    for (int64_t i = 0; i < map->size[label]; i++) {
        if (!walk(c, map, label + 1, outside, from, to)) return false;
        step(map, label, 1);
    }
    step(map, label, -map->size[label]);
    return true;
}

/* True at one position, which the only entry of a tensor is. Where it lies outside, nothing is, or,
 * with the text of what is read there, the call fails; `ucle.database.engine_errors` reads that. */
size_t apply_hits(call *c, size_t row) {
    tensor t;
    size_t n;
    if (!read_tensor(c, 0, row, &t) ||
        !read_whole(c, 1, row, max_elements(c->kernel->result), "a size", &n))
        return 0;
    if (t.length != 1) return fail(c, "expected one position, got %zu", t.length);
    int64_t position = *(const i64 *)t.data;
    bool inside = position >= 0 && (uint64_t)position < n;
    view read = column_view(&c->args[2], row);
    if (!inside && read.bytes > 0)
        return fail(c, "an index is outside of its axis: %.*s is at %lld; it has coordinates below %zu",
                    whole_characters(read, 300), read.data, (long long)position, n);
    char *out = writer_room(c, row, n);
    if (out == NULL) return 0;
    memset(out, 0, n);
    if (inside) out[position] = 1;
    writer_take(c, row, n);
    return 1;
}

size_t apply_reindex(call *c, size_t row) {
    tensor t;
    element outside;
    index_map map;
    if (!read_tensor(c, 0, row, &t) || !read_map(c, row, t.length, &map) ||
        !read_element(c, 3, row, &outside) || !expect_something(c, map.count, t.length))
        return 0;
    void *out = writer_room(c, row, map.count);
    if (out == NULL) return 0;
    map.spans = has_spans(&map);
    if (!map.spans) c->type->fill(map.count, &outside, out);
    size_t offset;
    char *to = out;
    if (map.rank == 0) {
        if (place(&map, &offset)) c->type->copy(1, at(c->type, t.data, offset), 1, out, 1);
    } else if (map.count > 0 && !walk(c, &map, 0, &outside, t.data, &to)) {
        return finish(c, row, map.count, INTERRUPTED);
    }
    writer_take(c, row, map.count);
    return 1;
}
