#include "call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool fail(call *c, const char *format, ...) {
    if (c->failed) return false;
    c->failed = true;
    int head = snprintf(c->message, sizeof c->message, "%s: ", c->kernel->name);
    va_list values;
    va_start(values, format);
    vsnprintf(c->message + head, sizeof c->message - (size_t)head, format, values);
    va_end(values);
    return false;
}

void call_run(call *c) {
    for (size_t row = 0; row < c->rows && !c->failed;) {
        if (row_valid(c, row))
            row += c->kernel->apply(c, row);
        else
            writer_null(c, row++);
    }
    if (c->out.vector != NULL && c->out.type == 'D' && !c->failed)
        duck_list_set_size(c->out.vector, c->out.used);
}

/* Results that were handed over no longer belong to the call: their pointers are NULL by then. */
void call_release(call *c) {
    free(c->scratch[0].data);
    free(c->scratch[1].data);
    free(c->out.store.data);
    if (c->out.vector == NULL) {
        free(c->out.values);
        free(c->out.validity);
    }
}

double *buffer_reserve(buffer *b, size_t doubles) {
    if (b->data != NULL && doubles <= b->capacity) return b->data;
    size_t capacity = b->capacity + b->capacity / 2;
    if (capacity < doubles) capacity = doubles;
    if (capacity < 8) capacity = 8;
    if (capacity > SIZE_MAX / sizeof(double)) return NULL;
    double *data = realloc(b->data, capacity * sizeof(double));
    if (data == NULL) return NULL;
    b->data = data;
    b->capacity = capacity;
    return data;
}

double *call_scratch(call *c, int which, size_t doubles) {
    double *data = buffer_reserve(&c->scratch[which], doubles);
    if (data == NULL) fail(c, "out of memory for %zu doubles", doubles);
    return data;
}

/* Room for the next results, to be taken in row order. NULL after an error. */
double *writer_room(call *c, size_t doubles) {
    writer *w = &c->out;
    if (doubles > MAX_DOUBLES) {
        fail(c, "expected a result of at most %zu doubles, got %zu", MAX_DOUBLES, doubles);
        return NULL;
    }
    double *base;
    if (w->vector != NULL && w->type == 'D') {
        if (duck_list_reserve(w->vector, w->used + doubles) != 0) {
            fail(c, "out of memory for %zu doubles", doubles);
            return NULL;
        }
        base = duck_vector_data(duck_list_child(w->vector));
    } else {
        if (w->vector != NULL) w->used = 0; /* DuckDB has copied what was taken before */
        base = buffer_reserve(&w->store, w->used + doubles);
        if (base == NULL) {
            fail(c, "out of memory for %zu doubles", doubles);
            return NULL;
        }
    }
    w->room = base;
    return base + w->used;
}

static void set_end(writer *w, size_t row) {
    ((int64_t *)w->values)[row + 1] = (int64_t)(w->type == 'D' ? w->used : w->used * sizeof(double));
}

/* Makes the next doubles of the room the result of a row. */
void writer_take(call *c, size_t row, size_t doubles) {
    writer *w = &c->out;
    if (w->vector == NULL) {
        w->used += doubles;
        set_end(w, row);
        return;
    }
    if (w->type == 'D')
        ((duck_list *)w->values)[row] = (duck_list){w->used, doubles};
    else
        duck_vector_assign_bytes(w->vector, row, w->room + w->used, doubles * sizeof(double));
    w->used += doubles;
}

/* A result that already lies in memory: one copy on either route. */
bool writer_put(call *c, size_t row, const f64 *data, size_t doubles) {
    writer *w = &c->out;
    if (w->vector != NULL && w->type == 'b' && doubles <= MAX_DOUBLES) {
        duck_vector_assign_bytes(w->vector, row, data, doubles * sizeof(double));
        return true;
    }
    double *room = writer_room(c, doubles);
    if (room == NULL) return false;
    if (doubles > 0) memcpy(room, data, doubles * sizeof(double));
    writer_take(c, row, doubles);
    return true;
}

bool writer_null(call *c, size_t row) {
    writer *w = &c->out;
    w->nulls++;
    if (w->vector != NULL) {
        duck_vector_make_validity(w->vector);
        w->validity = duck_vector_validity(w->vector);
        if (w->type == 'D') ((duck_list *)w->values)[row] = (duck_list){w->used, 0};
    } else {
        if (w->validity == NULL) {
            size_t bytes = w->rows / 8 + 1;
            w->validity = malloc(bytes);
            if (w->validity == NULL) return fail(c, "out of memory");
            memset(w->validity, 0xff, bytes);
        }
        if (w->type == 'b' || w->type == 'D')
            set_end(w, row);
        else /* a defined value beneath the NULL */
            memset((char *)w->values + row * (w->type == 'o' ? 1 : 8), 0, w->type == 'o' ? 1 : 8);
    }
    w->validity[row >> 3] &= (uint8_t)~(1u << (row & 7));
    return true;
}

view column_view(const column *k, size_t row) {
    size_t i = column_index(k, row);
    if (k->layout == LAYOUT_DUCK_STRING) {
        const duck_string *s = (const duck_string *)k->entries + i;
        return (view){s->length <= DUCK_INLINE_BYTES ? s->near.data : s->far.data,
                      s->length};
    }
    list l = column_list(k, row);
    return (view){(const char *)k->data + l.first, l.length};
}

list column_list(const column *k, size_t row) {
    size_t i = column_index(k, row), first, end;
    if (k->layout == LAYOUT_DUCK_LIST) {
        duck_list entry = ((const duck_list *)k->entries)[i];
        first = entry.offset;
        end = first + entry.length;
    } else if (k->layout == LAYOUT_ARROW_32) {
        first = (size_t)((const int32_t *)k->entries)[i] + k->child_first;
        end = (size_t)((const int32_t *)k->entries)[i + 1] + k->child_first;
    } else {
        first = (size_t)((const int64_t *)k->entries)[i] + k->child_first;
        end = (size_t)((const int64_t *)k->entries)[i + 1] + k->child_first;
    }
    return (list){k->data, k->child_validity, first, end - first};
}

bool read_tensor(call *c, int arg, size_t row, tensor *t) {
    view v = column_view(&c->args[arg], row);
    if (v.bytes % sizeof(double) != 0)
        return fail(c, "expected a BLOB of float64 (a multiple of 8 bytes) as argument %d, got %zu bytes",
                    arg + 1, v.bytes);
    *t = (tensor){(const f64 *)v.data, v.bytes / sizeof(double)};
    return true;
}

bool read_list(call *c, int arg, size_t row, list *l) {
    *l = column_list(&c->args[arg], row);
    if (l->validity != NULL)
        for (size_t i = 0; i < l->length; i++)
            if (!bit(l->validity, l->first + i))
                return fail(c, "expected a list without NULL as argument %d, got NULL at element %zu",
                            arg + 1, i + 1);
    l->elements = (const char *)l->elements + (l->length > 0 ? l->first * 8 : 0);
    return true;
}
