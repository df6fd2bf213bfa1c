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

bool fail_for_memory(call *c, const char *what) {
    return fail(c, "expected %s to fit what kernels may hold at a time (%zu bytes: the memory_limit "
                   "of the database) beside %zu bytes that they hold already",
                what, account_limit(c->account), account_held(c->account));
}

bool fail_to_borrow(call *c, size_t bytes) {
    return fail(c, "expected %zu bytes to fit what kernels may hold at a time (%zu bytes: the "
                   "memory_limit of the database) beside %zu bytes that they hold already",
                bytes, account_batch_limit(c->account), account_held(c->account));
}

bool fail_with(call *c, trouble bad) {
    if (bad & NEGATIVE_POWER)
        return fail(c, "integers to negative integer powers are not allowed");
    if (bad & CANNOT_HOLD)
        return fail(c, "int64 cannot hold NaN, infinity or a number of 2^63 or more");
    if (bad & INTERRUPTED) return fail(c, "interrupted");
    if (bad & NO_MEMORY) return fail_for_memory(c, "its sums");
    return fail(c, "int64 overflow");
}

static bool writes_lists(const writer *w) {
    return w->type == 'E' || w->type == 'I' || w->type == 'B';
}

void call_open(call *c, const kernel *k, account *account, void *chunk) {
    /* Only what is read before it is written: the plan alone has a kilobyte. */
    c->kernel = k;
    c->type = k->type;
    c->account = account;
    c->arguments = strcspn(k->signature, "v>");
    c->tail = NULL;
    c->tail_count = 0;
    c->tail_work = NULL;
    c->rows = chunk == NULL ? 0 : duck_chunk_rows(chunk);
    c->failed = false;
    c->watch = (watch){0};
    c->result_bytes = 0;
    c->plan_ready = false;
    c->scratch = (buffer){0};
    memset(c->work, 0, sizeof c->work);
    memset(c->zeroed, 0, sizeof c->zeroed);
    c->sums_clear = 0;
    c->spares = NULL;
    c->narrowed = c->forest = (view){NULL, 0};
    memset(c->checked, 0, sizeof c->checked);
    memset(c->expanded, 0, sizeof c->expanded);
    c->out = (writer){.type = strchr(k->signature, '>')[1]};
}

bool call_tail(call *c, size_t count) {
    if (count > UCLE_MOST_OPERANDS)
        return fail(c, "expected at most %d tensors, got %zu", UCLE_MOST_OPERANDS, count);
    c->tail = calloc(count + 1, sizeof *c->tail);
    c->tail_work = calloc(count + 1, sizeof *c->tail_work);
    if (c->tail == NULL || c->tail_work == NULL) return fail(c, "out of memory");
    c->tail_count = count;
    return true;
}

void call_run(call *c) {
    for (size_t row = 0; row < c->rows && !c->failed;) {
        if (watch_stops(&c->watch, 64))
            fail_with(c, INTERRUPTED);
        else if (row_valid(c, row))
            row += c->kernel->apply(c, row);
        else
            writer_null(c, row++);
    }
    if (c->out.vector != NULL && writes_lists(&c->out) && !c->failed)
        duck_list_set_size(c->out.vector, c->out.used);
}

static void buffer_release(call *c, buffer *b) {
    account_repay(c->account, b->capacity);
    free(b->data);
    *b = (buffer){0};
}

/* Results that were handed over no longer belong to the call: their pointers are NULL by then. Once
 * more does nothing. */
void call_release(call *c) {
    watch_end(&c->watch);
    buffer_release(c, &c->scratch);
    for (int i = 0; i < WORK_BUFFERS; i++) buffer_release(c, &c->work[i]);
    buffer_release(c, &c->out.store);
    buffer_release(c, &c->out.ends);
    for (size_t i = 0; c->tail_work != NULL && i < c->tail_count; i++)
        buffer_release(c, &c->tail_work[i]);
    free(c->tail);
    free(c->tail_work);
    c->tail = NULL;
    c->tail_work = NULL;
    if (c->out.vector == NULL) {
        free(c->out.values);
        free(c->out.validity);
        c->out.values = NULL;
        c->out.validity = NULL;
    }
}

/* ---- Memory ---- */

/* A capacity for so many bytes that the account has room for: half as much again as before, if it
 * can be. 0 if there is none. */
static size_t borrowed_capacity(call *c, const buffer *b, size_t bytes) {
    size_t capacity = b->capacity + b->capacity / 2;
    if (capacity < 64) capacity = 64;
    if (capacity > bytes && account_borrow(c->account, capacity - b->capacity)) return capacity;
    return account_borrow(c->account, bytes - b->capacity) ? bytes : 0;
}

static char *reserve(call *c, buffer *b, size_t bytes) {
    if (b->data != NULL && bytes <= b->capacity) return b->data;
    size_t capacity = borrowed_capacity(c, b, bytes);
    if (capacity == 0 && c->spares != NULL) {
        for (size_t i = 0; i < SPARES; i++) buffer_release(c, &c->spares[i]);
        capacity = borrowed_capacity(c, b, bytes);
    }
    if (capacity == 0) return fail_to_borrow(c, bytes), NULL;
    char *data = realloc(b->data, capacity);
    if (data == NULL) {
        account_repay(c->account, capacity - b->capacity);
        fail(c, "out of memory for %zu bytes", bytes);
        return NULL;
    }
    b->data = data;
    b->capacity = capacity;
    return data;
}

char *call_scratch(call *c, size_t bytes) { return reserve(c, &c->scratch, bytes); }
char *call_work(call *c, int which, size_t bytes) { return reserve(c, &c->work[which], bytes); }
char *call_tail_work(call *c, size_t number, size_t bytes) {
    return reserve(c, &c->tail_work[number], bytes);
}
char *call_zeros(call *c, int which, size_t bytes) {
    char *data = call_work(c, which, bytes);
    size_t *zeroed = &c->zeroed[which];
    if (data == NULL || bytes <= *zeroed) return data;
    memset(data + *zeroed, 0, bytes - *zeroed);
    *zeroed = bytes;
    return data;
}

/* ---- Writing ---- */

static bool fits(call *c, size_t elements) {
    size_t most = max_elements(c->kernel->result);
    if (elements > most)
        return fail(c, "expected a result of at most %zu elements, got %zu", most, elements);
    c->result_bytes += elements * c->kernel->result->size;
    size_t limit = account_batch_limit(c->account);
    return c->result_bytes <= limit ||
           fail(c, "expected results of at most %zu bytes in one batch of rows, got %zu", limit,
                c->result_bytes);
}

/* DuckDB copies what it is handed, and has no way to be asked for room. So it is handed zeros, which
 * take no memory, as nobody ever writes to them: the copy is the room, and several rows share it. */
enum { IN_PLACE_LEAST = 1 << 16, IN_PLACE_MOST = 1 << 26 };
static char zeros[IN_PLACE_MOST];

/* Copies bytes into the vector; the rows from this one on take their shares of the copy. */
static char *copy_to_vector(writer *w, size_t row, const void *data, size_t bytes) {
    duck_vector_assign_bytes(w->vector, row, data, bytes);
    w->in_place = true;
    w->next = (char *)((duck_string *)w->values)[row].far.data;
    return w->next;
}

/* Memory of the size of a result that nobody needs any more: its pages are there already. */
static void take_spare(call *c, size_t bytes) {
    for (size_t i = 0; i < SPARES; i++) {
        buffer *spare = &c->spares[i];
        if (spare->capacity < bytes || spare->capacity / 2 > bytes) continue;
        c->out.store = *spare;
        *spare = (buffer){0};
        return;
    }
}

/* Room in memory of ours, from where results are copied or, on the Arrow route, handed over. */
static char *room_in_store(call *c, size_t bytes) {
    writer *w = &c->out;
    if (w->vector != NULL) w->used = 0; /* DuckDB has copied what was taken before */
    size_t used = w->used * c->kernel->result->size;
    if (c->spares != NULL && w->store.data == NULL) take_spare(c, bytes);
    char *base = reserve(c, &w->store, used + bytes);
    if (base == NULL) return NULL;
    w->in_place = false;
    w->next = base + used;
    return w->next;
}

static char *room(call *c, size_t row, size_t rows, size_t elements) {
    size_t each = elements * c->kernel->result->size, bytes = rows * each;
    for (size_t i = 0; i < rows; i++)
        if (!fits(c, elements)) return NULL;
    if (c->out.vector != NULL && c->out.type == 'b' && each > DUCK_INLINE_BYTES &&
        bytes >= IN_PLACE_LEAST && bytes <= IN_PLACE_MOST)
        return copy_to_vector(&c->out, row, zeros, bytes);
    return room_in_store(c, bytes);
}

void *writer_room(call *c, size_t row, size_t elements) { return room(c, row, 1, elements); }

void *writer_zeros(call *c, size_t row, size_t rows, size_t elements) {
    char *out = room(c, row, rows, elements);
    if (out != NULL && !c->out.in_place)
        memset(out, 0, rows * elements * c->kernel->result->size);
    return out;
}

void writer_take(call *c, size_t row, size_t elements) {
    writer *w = &c->out;
    size_t size = c->kernel->result->size, bytes = elements * size;
    if (w->in_place) {
        duck_string *s = (duck_string *)w->values + row;
        *s = (duck_string){.far = {(uint32_t)bytes, "", w->next}};
        memcpy(s->far.prefix, w->next, sizeof s->far.prefix);
    } else if (w->vector != NULL) {
        duck_vector_assign_bytes(w->vector, row, w->next, bytes);
    }
    w->next += bytes;
    w->used += elements;
    if (w->vector == NULL) ((int64_t *)w->values)[row + 1] = (int64_t)(w->used * size);
}

void writer_copy_run(call *c, size_t row, const void *data, size_t elements) {
    copy_to_vector(&c->out, row, data, elements * c->kernel->result->size);
}

/* One copy on either route. */
bool writer_put(call *c, size_t row, const void *data, size_t elements) {
    size_t bytes = elements * c->kernel->result->size;
    if (!fits(c, elements)) return false;
    if (c->out.vector != NULL) {
        duck_vector_assign_bytes(c->out.vector, row, data, bytes);
        return true;
    }
    char *out = room_in_store(c, bytes);
    if (out == NULL) return false;
    if (bytes > 0) memcpy(out, data, bytes);
    writer_take(c, row, elements);
    return true;
}

/* Appends to the child of a vector of lists. */
static bool duck_list_append(call *c, const void *data, size_t elements) {
    const element_type *type = c->kernel->result;
    void *vector = c->out.vector;
    size_t used = c->out.used, part = type->size / 2;
    if (duck_list_reserve(vector, used + elements) != 0)
        return fail(c, "out of memory for %zu elements", elements);
    void *child = duck_list_child(vector); /* may have moved */
    if (type->parts == 2) {
        char *re = duck_vector_data(duck_struct_child(child, 0));
        char *im = duck_vector_data(duck_struct_child(child, 1));
        type->split(elements, data, re + used * part, im + used * part);
    } else {
        type->copy(elements, data, 1, at_out(type, duck_vector_data(child), used), 1);
    }
    return true;
}

bool writer_put_list(call *c, size_t row, const void *data, size_t elements) {
    writer *w = &c->out;
    if (!fits(c, elements)) return false;
    if (w->vector != NULL) {
        if (!duck_list_append(c, data, elements)) return false;
        ((duck_list *)w->values)[row] = (duck_list){w->used, elements};
        w->used += elements;
        return true;
    }
    const element_type *type = c->kernel->result;
    char *out = room_in_store(c, elements * type->size);
    if (out == NULL) return false;
    type->copy(elements, data, 1, out, 1);
    w->used += elements;
    ((int64_t *)w->values)[row + 1] = (int64_t)w->used;
    return true;
}

/* Appends to the child of a vector of lists of BLOBs. */
static bool duck_tensors_append(call *c, const view *tensors, size_t count) {
    writer *w = &c->out;
    if (duck_list_reserve(w->vector, w->used + count) != 0)
        return fail(c, "out of memory for %zu tensors", count);
    void *child = duck_list_child(w->vector);
    for (size_t i = 0; i < count; i++)
        duck_vector_assign_bytes(child, w->used + i, tensors[i].data, tensors[i].bytes);
    return true;
}

bool writer_put_tensors(call *c, size_t row, const view *tensors, size_t count) {
    writer *w = &c->out;
    for (size_t i = 0; i < count; i++)
        if (!fits(c, tensors[i].bytes)) return false;
    if (w->vector != NULL) {
        if (!duck_tensors_append(c, tensors, count)) return false;
        ((duck_list *)w->values)[row] = (duck_list){w->used, count};
        w->used += count;
        return true;
    }
    int64_t *ends = (int64_t *)reserve(c, &w->ends, (w->items + count) * sizeof *ends);
    if (ends == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        char *out = room_in_store(c, tensors[i].bytes);
        if (out == NULL) return false;
        if (tensors[i].bytes > 0) memcpy(out, tensors[i].data, tensors[i].bytes);
        w->used += tensors[i].bytes;
        ends[w->items++] = (int64_t)w->used;
    }
    ((int64_t *)w->values)[row + 1] = (int64_t)w->items;
    return true;
}

void writer_put_element(call *c, size_t row, const void *value) {
    const element_type *type = c->kernel->result;
    writer *w = &c->out;
    size_t part = type->size / 2;
    if (w->parts[0] != NULL) {
        copy_element(part, value, (char *)w->parts[0] + row * part);
        copy_element(part, (const char *)value + part, (char *)w->parts[1] + row * part);
    } else {
        copy_element(type->size, value, at_out(type, w->values, row));
    }
}

bool writer_null(call *c, size_t row) {
    writer *w = &c->out;
    if (w->vector != NULL) {
        duck_set_null(w->vector, row);
        if (writes_lists(w)) ((duck_list *)w->values)[row] = (duck_list){w->used, 0};
        for (uint64_t i = 0; i < 2 && w->parts[0] != NULL; i++) /* DuckDB wants both to be NULL */
            duck_set_null(duck_struct_child(w->vector, i), row);
        return true;
    }
    if (w->validity == NULL) {
        size_t bytes = w->rows / 8 + 1;
        w->validity = malloc(bytes);
        if (w->validity == NULL) return fail(c, "out of memory");
        memset(w->validity, 0xff, bytes);
    }
    w->validity[row >> 3] &= (uint8_t)~(1u << (row & 7));
    /* The values of all rows were 0 from the start; only offsets have to go on. */
    size_t size = c->kernel->result->size;
    if (w->type == 'b') ((int64_t *)w->values)[row + 1] = (int64_t)(w->used * size);
    if (w->type == 'B')
        ((int64_t *)w->values)[row + 1] = (int64_t)w->items;
    else if (writes_lists(w))
        ((int64_t *)w->values)[row + 1] = (int64_t)w->used;
    return true;
}

/* ---- Reading ---- */

bool check_whole(call *c, int64_t found, size_t most, const char *what, size_t *value) {
    *value = (size_t)found;
    if (found < 0)
        return fail(c, "expected %s of at least 0, got %lld", what, (long long)found);
    return (size_t)found <= most ||
           fail(c, "expected %s of at most %zu, got %lld", what, most, (long long)found);
}

bool read_whole(call *c, int arg, size_t row, size_t most, const char *what, size_t *value) {
    return check_whole(c, column_integer(c, arg, row), most, what, value);
}

bool multiply_sizes(call *c, size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product) ||
           fail(c, "expected sizes whose product fits 64 bits, got %zu and %zu", a, b);
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

/* Whether complex numbers first to first + count - 1 have both their parts. */
static bool parts_valid(call *c, int arg, size_t first, size_t count) {
    for (int p = 0; p < 2; p++) {
        const part *x = &c->args[arg].parts[p];
        for (size_t i = 0; x->validity != NULL && i < count; i++)
            if (!bit(x->validity, first + i + x->shift))
                return fail(c, "expected complex numbers as argument %d, got one whose %s is NULL",
                            arg + 1, p == 0 ? "re" : "im");
    }
    return true;
}

static void join_parts(const call *c, int arg, size_t first, size_t count, void *out) {
    const part *re = &c->args[arg].parts[0], *im = &c->args[arg].parts[1];
    size_t part = c->type->size / 2;
    c->type->join(count, (const char *)re->data + (first + re->shift) * part,
                  (const char *)im->data + (first + im->shift) * part, out);
}

bool read_complex(call *c, int arg, size_t row, element *value) {
    size_t i = column_index(&c->args[arg], row);
    if (!parts_valid(c, arg, i, 1)) return false;
    join_parts(c, arg, i, 1, value);
    return true;
}

bool read_tensor(call *c, int arg, size_t row, tensor *t) {
    view v = column_view(&c->args[arg], row);
    size_t size = c->type->size;
    if (v.bytes & (size - 1))
        return fail(c, "expected a BLOB of %s (a multiple of %zu bytes) as argument %d, got %zu",
                    c->type->name, size, arg + 1, v.bytes);
    *t = (tensor){v.data, v.bytes >> c->type->log_size};
    return true;
}

bool read_list(call *c, int arg, size_t row, list *l) {
    *l = column_list(&c->args[arg], row);
    if (l->validity != NULL)
        for (size_t i = 0; i < l->length; i++)
            if (!bit(l->validity, l->first + i))
                return fail(c, "expected a list without NULL as argument %d, got NULL as its "
                               "element %zu", arg + 1, i + 1);
    return true;
}

bool read_elements(call *c, int arg, const list *l, void *out) {
    if (l->length == 0) return true;
    if (c->type->parts == 1) {
        memcpy(out, at(c->type, l->data, l->first), l->length * c->type->size);
        return true;
    }
    if (!parts_valid(c, arg, l->first, l->length)) return false;
    join_parts(c, arg, l->first, l->length, out);
    return true;
}

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
