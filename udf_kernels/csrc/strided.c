#include "strided.h"

#include "call.h"

bool read_strided(call *c, size_t row, int offset, int sizes, int strides, size_t length,
                  strided *s) {
    list size, stride;
    if (!read_list(c, sizes, row, &size) || !read_list(c, strides, row, &stride)) return false;
    if (size.length != stride.length)
        return fail(c, "expected as many strides as sizes (%zu), got %zu", size.length,
                    stride.length);
    if (size.length > UCLE_MOST_LABELS)
        return fail(c, "expected at most %d sizes, got %zu", UCLE_MOST_LABELS, size.length);
    s->rank = size.length;
    s->count = 1;
    s->offset = column_integer(c, offset, row);
    for (size_t i = 0; i < s->rank; i++) {
        s->size[i] = list_integer(&size, i);
        s->stride[i] = list_integer(&stride, i);
        if (s->size[i] == 1) s->stride[i] = 0; /* nobody goes there, but its bytes might overflow */
        size_t extent;
        if (!check_whole(c, s->size[i], LARGEST_SIZE, "sizes", &extent) ||
            !multiply_sizes(c, s->count, extent, &s->count))
            return false;
    }
    if (s->rank == 0) { /* a single entry: a dimension of size 1 */
        s->rank = 1;
        s->size[0] = s->stride[0] = 1;
    }
    if (s->count == 0) return true;
    int64_t low = s->offset, high = s->offset, span;
    bool overflow = false;
    for (size_t i = 0; i < s->rank; i++) {
        overflow |= __builtin_mul_overflow(s->size[i] - 1, s->stride[i], &span);
        overflow |= __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
    }
    if (overflow || low < 0 || high < 0 || (size_t)high >= length)
        return fail(c, "expected positions within %zu elements, got positions outside", length);
    return true;
}

/* The steps of a dense tensor of these sizes. */
static void dense_steps(const strided *s, int64_t *step) {
    step[s->rank - 1] = 1;
    for (size_t i = s->rank - 1; i-- > 0;) step[i] = step[i + 1] * s->size[i + 1];
}

/* Copies from one layout to another, the innermost dimension at a time. */
static void walk(const element_type *type, const strided *s, size_t depth, const char *from,
                 const int64_t *from_step, char *to, const int64_t *to_step) {
    if (depth + 1 == s->rank) {
        type->copy((size_t)s->size[depth], from, from_step[depth], to, to_step[depth]);
        return;
    }
    int64_t from_bytes = from_step[depth] * (int64_t)type->size;
    int64_t to_bytes = to_step[depth] * (int64_t)type->size;
    for (int64_t i = 0; i < s->size[depth]; i++)
        walk(type, s, depth + 1, from + i * from_bytes, from_step, to + i * to_bytes, to_step);
}

void strided_gather(const element_type *type, const strided *s, const void *tensor, void *dense) {
    if (s->count == 0) return;
    int64_t step[UCLE_MOST_LABELS];
    dense_steps(s, step);
    const char *first = (const char *)tensor + s->offset * (int64_t)type->size;
    walk(type, s, 0, first, s->stride, dense, step);
}

void strided_scatter(const element_type *type, const strided *s, const void *dense, void *tensor) {
    if (s->count == 0) return;
    int64_t step[UCLE_MOST_LABELS];
    dense_steps(s, step);
    char *first = (char *)tensor + s->offset * (int64_t)type->size;
    walk(type, s, 0, dense, step, first, s->stride);
}
