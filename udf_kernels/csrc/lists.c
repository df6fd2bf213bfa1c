/* Reads and writes the lists and matrices of a chunk of rows. */
#include "lists.h"

/* ---- Reading ---- */

static void read_lists(list_column *k, void *vector) {
    void *child = duck_list_child(vector);
    k->lists = duck_vector_data(vector);
    k->lists_validity = duck_vector_validity(vector);
    k->data = duck_vector_data(child);
    k->data_validity = duck_vector_validity(child);
}

static list_column list_column_from_vector(char letter, void *vector) {
    list_column k = {.letter = letter, .validity = duck_vector_validity(vector)};
    switch (letter) {
    case 'i': k.integers = duck_vector_data(vector); break;
    case 'E': read_lists(&k, vector); break;
    case 'L':
        k.outer = duck_vector_data(vector);
        read_lists(&k, duck_list_child(vector));
        break;
    default:
        for (uint64_t i = 0; i < 2; i++) {
            void *child = duck_struct_child(vector, i);
            k.shape[i] = duck_vector_data(child);
            k.shape_validity[i] = duck_vector_validity(child);
        }
        read_lists(&k, duck_struct_child(vector, 2));
    }
    return k;
}

void list_call_open(list_call *l, const list_overload *overload, void *chunk, void *result) {
    call *c = &l->call;
    call_open(c, &overload->kernel, &overload->loaded->account, chunk);
    for (size_t j = 0; chunk != NULL && j < c->arguments; j++)
        l->args[j] = list_column_from_vector(overload->kernel.signature[j],
                                             duck_chunk_column(chunk, j));
    list_writer *w = &l->out;
    *w = (list_writer){.letter = c->out.type, .vector = result};
    if (result == NULL) return;
    if (w->letter == 'E') w->lists = result;
    if (w->letter == 'M') w->lists = duck_struct_child(result, 2);
    if (w->letter == 'L') {
        w->rows = result;
        w->lists = duck_list_child(result);
    }
}

static bool same_bit(const uint8_t *mask, size_t i, size_t j) { return bit(mask, i) == bit(mask, j); }

static bool same_list(const duck_list *lists, size_t i, size_t j) {
    return lists[i].offset == lists[j].offset && lists[i].length == lists[j].length;
}

bool same_argument(const list_column *k, size_t row, size_t other) {
    if (!same_bit(k->validity, row, other)) return false;
    switch (k->letter) {
    case 'i': return k->integers[row] == k->integers[other];
    case 'E': return same_list(k->lists, row, other);
    case 'L': return same_list(k->outer, row, other);
    default:
        return same_list(k->lists, row, other) && same_bit(k->lists_validity, row, other) &&
               k->shape[0][row] == k->shape[0][other] && k->shape[1][row] == k->shape[1][other] &&
               same_bit(k->shape_validity[0], row, other) &&
               same_bit(k->shape_validity[1], row, other);
    }
}

/* The first of the elements that is NULL, or their number; eight at a time where all are there. */
static uint64_t first_null(const uint8_t *mask, const duck_list *entry) {
    uint64_t i = 0;
    while (mask != NULL && i < entry->length) {
        uint64_t at = entry->offset + i;
        if ((at & 7) == 0 && i + 8 <= entry->length && mask[at >> 3] == 0xff)
            i += 8;
        else if (bit(mask, at))
            i++;
        else
            return i;
    }
    return entry->length;
}

static bool elements_valid(list_call *l, int arg, const duck_list *entry) {
    uint64_t i = first_null(l->args[arg].data_validity, entry);
    return i == entry->length ||
           fail(&l->call, "expected numbers as argument %d, got NULL as its element %llu", arg + 1,
                (unsigned long long)i + 1);
}

bool read_vector(list_call *l, int arg, size_t row, array *v) {
    const list_column *k = &l->args[arg];
    duck_list entry = k->lists[row];
    *v = (array){at(l->call.type, k->data, entry.offset), 1, entry.length};
    return elements_valid(l, arg, &entry);
}

bool read_matrix(list_call *l, int arg, size_t row, array *a) {
    const list_column *k = &l->args[arg];
    call *c = &l->call;
    if (!bit(k->shape_validity[0], row) || !bit(k->shape_validity[1], row) ||
        !bit(k->lists_validity, row))
        return fail(c, "expected a matrix as argument %d, got one whose rows, cols or val is NULL",
                    arg + 1);
    int64_t rows = k->shape[0][row], cols = k->shape[1][row];
    duck_list entry = k->lists[row];
    if (rows < 0 || cols < 0 || (uint64_t)rows * (uint64_t)cols != entry.length)
        return fail(c, "expected a matrix of rows x cols elements as argument %d, got %lld x %lld "
                       "with %llu elements", arg + 1, (long long)rows, (long long)cols,
                    (unsigned long long)entry.length);
    *a = (array){at(c->type, k->data, entry.offset), (size_t)rows, (size_t)cols};
    return elements_valid(l, arg, &entry);
}

/* ---- Writing ---- */

/* That a chunk of results fits into memory: what it holds already and `bytes` more. */
static bool expect_room(list_call *l, size_t held, size_t bytes) {
    size_t most = account_batch_limit(l->call.account);
    if (bytes <= most && held <= most - bytes) return true;
    return fail(&l->call, "expected results of at most %zu bytes in one batch of rows, got %zu and "
                          "%zu more", most, held, bytes);
}

static char *room(list_call *l, size_t elements) {
    size_t size = l->call.kernel->result->size;
    list_writer *w = &l->out;
    size_t bytes = elements <= SIZE_MAX / size ? elements * size : SIZE_MAX;
    if (!expect_room(l, w->used * size, bytes)) return NULL;
    duck_list_reserve(w->lists, w->used + elements); /* throws where there is no memory */
    return (char *)duck_vector_data(duck_list_child(w->lists)) + w->used * size; /* it may have moved */
}

static void take(list_call *l, size_t entry, size_t elements) {
    ((duck_list *)duck_vector_data(l->out.lists))[entry] = (duck_list){l->out.used, elements};
    l->out.used += elements;
}

void *put_vectors(list_call *l, size_t row, size_t rows, size_t elements) {
    char *out = room(l, rows * elements);
    for (size_t i = 0; out != NULL && i < rows; i++) take(l, row + i, elements);
    return out;
}

/* That a side fits into INTEGER, and the product of both into memory. */
static bool expect_shape(list_call *l, size_t rows, size_t cols) {
    if (rows <= INT32_MAX && cols <= INT32_MAX && (cols == 0 || rows <= SIZE_MAX / 16 / cols))
        return true;
    return fail(&l->call, "expected at most %d rows and columns, got %zu x %zu", INT32_MAX, rows,
                cols);
}

void *put_matrix(list_call *l, size_t row, size_t rows, size_t cols) {
    char *out = expect_shape(l, rows, cols) ? room(l, rows * cols) : NULL;
    if (out == NULL) return NULL;
    const size_t shape[2] = {rows, cols};
    for (uint64_t i = 0; i < 2; i++)
        ((int32_t *)duck_vector_data(duck_struct_child(l->out.vector, i)))[row] = (int32_t)shape[i];
    take(l, row, rows * cols);
    return out;
}

void *put_rows(list_call *l, size_t row, size_t rows, size_t cols) {
    list_writer *w = &l->out;
    if (!expect_shape(l, rows, cols) ||
        !expect_room(l, w->used_rows * sizeof(duck_list), rows * sizeof(duck_list)))
        return NULL;
    if (watch_stops(&l->call.watch, rows)) {
        fail_with(&l->call, INTERRUPTED);
        return NULL;
    }
    char *out = room(l, rows * cols);
    if (out == NULL) return NULL;
    duck_list_reserve(w->rows, w->used_rows + rows);
    w->lists = duck_list_child(w->rows);
    ((duck_list *)duck_vector_data(w->rows))[row] = (duck_list){w->used_rows, rows};
    duck_list *lists = (duck_list *)duck_vector_data(w->lists) + w->used_rows;
    for (size_t i = 0; i < rows; i++) lists[i] = (duck_list){w->used + i * cols, cols};
    w->used += rows * cols;
    w->used_rows += rows;
    return out;
}

void put_null(list_call *l, size_t row) {
    list_writer *w = &l->out;
    duck_set_null(w->vector, row);
    for (uint64_t i = 0; w->letter == 'M' && i < 3; i++) /* DuckDB wants the parts to be NULL */
        duck_set_null(duck_struct_child(w->vector, i), row);
    if (w->letter == 'L')
        ((duck_list *)duck_vector_data(w->rows))[row] = (duck_list){w->used_rows, 0};
    else if (w->letter != 'e')
        take(l, row, 0);
}

/* ---- Calls ---- */

static bool arguments_valid(const list_call *l, size_t row) {
    for (size_t j = 0; j < l->call.arguments; j++)
        if (!bit(l->args[j].validity, row)) return false;
    return true;
}

static bool same_arguments(const list_call *l, size_t row, size_t other) {
    for (size_t j = 0; j < l->call.arguments; j++)
        if (!same_argument(&l->args[j], row, other)) return false;
    return true;
}

static void copy_list(void *vector, size_t from, size_t to) {
    duck_list *lists = duck_vector_data(vector);
    lists[to] = lists[from];
}

/* The result of a row once more: lists may share what they hold. */
static void put_again(list_call *l, size_t from, size_t to) {
    const list_writer *w = &l->out;
    const element_type *type = l->call.kernel->result;
    char *numbers = w->letter == 'e' ? duck_vector_data(w->vector) : NULL;
    switch (w->letter) {
    case 'e': copy_element(type->size, numbers + from * type->size, numbers + to * type->size); break;
    case 'L': copy_list(w->rows, from, to); break;
    case 'E': copy_list(w->lists, from, to); break;
    default:
        copy_list(w->lists, from, to);
        for (uint64_t i = 0; i < 2; i++) {
            int32_t *shape = duck_vector_data(duck_struct_child(w->vector, i));
            shape[to] = shape[from];
        }
    }
}

void list_scalar_callback(void *info, void *chunk, void *result) {
    const list_overload *overload = DUCK(SLOT_SCALAR_GET_EXTRA, void *, void *)(info);
    LIST_CALL l;
    call *c = &l.call;
    list_call_open(&l, overload, chunk, result);
    for (size_t row = 0; row < c->rows && !c->failed;) {
        if (watch_stops(&c->watch, 64))
            fail_with(c, INTERRUPTED);
        else if (!arguments_valid(&l, row))
            put_null(&l, row++);
        else if (row > 0 && same_arguments(&l, row, row - 1)) /* as of what is joined to all rows */
            put_again(&l, row - 1, row), row++;
        else
            row += overload->function->apply(&l, row);
    }
    if (!c->failed && l.out.lists != NULL) {
        duck_list_set_size(l.out.lists, l.out.used);
        if (l.out.rows != NULL) duck_list_set_size(l.out.rows, l.out.used_rows);
    }
    if (c->failed) DUCK(SLOT_SCALAR_ERROR, void, void *, const char *)(info, c->message);
    call_release(c);
}
