#include "strided.h"

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
