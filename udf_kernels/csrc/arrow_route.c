#include "arrow_route.h"

#include <stdio.h>
#include <stdlib.h>

#include "growth.h"
#include "kernels.h"
#include "watch.h"

int64_t ucle_memory_held(void) { return (int64_t)memory_held(); }
void ucle_interrupt(void) { watch_interrupt(); }
int ucle_kernel_count(void) { return (int)kernel_count(); }
const char *ucle_kernel_name(int index) { return kernel_at((size_t)index)->name; }
const char *ucle_kernel_type(int index) { return kernel_at((size_t)index)->type->name; }
const char *ucle_kernel_signature(int index) { return kernel_at((size_t)index)->signature; }
const char *ucle_kernel_gathered(int index) { return kernel_at((size_t)index)->gathered; }
void ucle_free(void *buffer) { free(buffer); }

/* ---- Checks: whatever Python hands over, nothing beyond a buffer is read ---- */

/* Whether a buffer holds entries first to first + count - 1 of a size in bits. */
static bool holds(ucle_buffer buffer, int64_t first, int64_t count, int64_t bits) {
    if (first < 0 || count < 0 || first > INT64_MAX - count) return false;
    int64_t end = first + count;
    if (end > (INT64_MAX - 7) / bits) return false;
    return count == 0 || (buffer.start != NULL && (end * bits + 7) / 8 <= buffer.bytes);
}

static int64_t offset_at(const ucle_array *array, int64_t i) {
    i += array->offset;
    return array->wide ? ((const int64_t *)array->offsets.start)[i]
                       : ((const int32_t *)array->offsets.start)[i];
}

/* Whether the offsets of strings or lists ascend, and end within what they point into. */
static bool offsets_ascend(const ucle_array *array, int64_t end) {
    if (array->length == 0) return true;
    if (array->length == INT64_MAX ||
        !holds(array->offsets, array->offset, array->length + 1, array->wide ? 64 : 32))
        return false;
    int64_t last = offset_at(array, 0);
    if (last < 0) return false;
    for (int64_t i = 1; i <= array->length; i++) {
        int64_t next = offset_at(array, i);
        if (next < last) return false;
        last = next;
    }
    return last <= end;
}

/* Whether an array has the buffers that its type asks for: a letter of a signature. */
static bool array_holds(const element_type *element, char type, const ucle_array *array) {
    if (array->offset < 0 || array->length < 0) return false;
    if (array->validity.start != NULL && !holds(array->validity, array->offset, array->length, 1))
        return false;
    if (type == 'b' || type == 's' || type == 'v')
        return offsets_ascend(array, array->data.start == NULL ? 0 : array->data.bytes);
    if (type == 'E' || type == 'I')
        return array->child_count == 1 && offsets_ascend(array, array->children->length) &&
               array_holds(element, type == 'E' ? 'e' : 'i', array->children);
    int64_t bits = type == 'e' ? 8 * (int64_t)element->size : 64;
    if (type == 'i' || array->child_count == 0)
        return holds(array->data, array->offset, array->length, bits);
    if (array->child_count != 2) return false;
    for (int i = 0; i < 2; i++) {
        const ucle_array *part = &array->children[i];
        if (part->length < array->length ||
            !holds(part->data, part->offset, array->length, bits / 2) ||
            (part->validity.start != NULL &&
             !holds(part->validity, part->offset, array->length, 1)))
            return false;
    }
    return true;
}

static bool check_arrays(call *c, const ucle_array *arrays, int count) {
    bool tail = kernel_has_tail(c->kernel);
    if (tail ? (size_t)count < c->arguments : (size_t)count != c->arguments)
        return fail(c, "expected %zu arguments, got %d", c->arguments, count);
    for (size_t j = 0; j < (size_t)count; j++) {
        const ucle_array *array = &arrays[j];
        char type = j < c->arguments ? c->kernel->signature[j] : 'v';
        bool good = array->length >= 0 && (size_t)array->length >= c->rows;
        if (kernel_is_aggregate(c->kernel) && c->kernel->gathered[j] == 'x') {
            good = good && array->offset >= 0 && array->child_count == 1 &&
                   offsets_ascend(array, array->children->length) &&
                   (array->validity.start == NULL ||
                    holds(array->validity, array->offset, array->length, 1));
            array = array->children;
        }
        if (!good || !array_holds(c->type, type, array))
            return fail(c, "expected an Arrow array with whole buffers as argument %zu", j + 1);
    }
    return true;
}

/* ---- Columns ---- */

/* The parts of a struct's entries, which begin where the struct's do. */
static void set_parts(column *k, const ucle_array *array) {
    for (int i = 0; i < 2 && i < array->child_count; i++) {
        const ucle_array *child = &array->children[i];
        k->parts[i] = (part){child->data.start, child->validity.start,
                             (size_t)(child->offset - array->offset)};
    }
}

static column column_from_arrow(char type, const ucle_array *array) {
    column k = {.layout = LAYOUT_FIXED, .validity = array->validity.start,
                .entries = array->data.start, .first = (size_t)array->offset, .step = 1};
    if (type == 'e') set_parts(&k, array);
    if (type == 'e' || type == 'i') return k;
    k.layout = array->wide ? LAYOUT_ARROW_64 : LAYOUT_ARROW_32;
    k.entries = array->offsets.start;
    k.data = array->data.start;
    if (type == 'E' || type == 'I') {
        k.data = array->children->data.start;
        k.child_validity = array->children->validity.start;
        k.child_first = (size_t)array->children->offset;
        set_parts(&k, array->children);
    }
    return k;
}

/* The list that an aggregate's argument gathers for each group: only its offsets matter. */
static column column_of_groups(const ucle_array *array) {
    return (column){.layout = array->wide ? LAYOUT_ARROW_64 : LAYOUT_ARROW_32,
                    .validity = array->validity.start, .entries = array->offsets.start,
                    .first = (size_t)array->offset, .step = 1};
}

/* Points the call's columns at the elements of one group; false if an argument is NULL. */
static bool open_group(call *c, size_t group, const column *groups, const column *elements,
                       size_t *length) {
    bool first = true;
    *length = 0;
    for (size_t j = 0; j < c->arguments; j++) {
        if (!column_valid(&groups[j], group)) return false;
        c->args[j] = elements[j];
        if (c->kernel->gathered[j] != 'x') { /* one value for the whole group */
            c->args[j].first += group;
            c->args[j].step = 0;
            continue;
        }
        list l = column_list(&groups[j], group);
        c->args[j].first += l.first;
        if (!first && l.length != *length)
            return fail(c, "expected lists of one length, got %zu and %zu elements", *length,
                        l.length);
        *length = l.length;
        first = false;
    }
    return true;
}

/* One group becomes one row of the result: the elements of its lists, added up. */
static bool aggregate_group(call *c, size_t group, size_t length) {
    sum s = {.type = c->type, .account = c->account};
    element start;
    bool done = true, totals = kernel_has_totals(c->kernel);
    for (size_t i = 0; i < length && done; i++) {
        addend x;
        addend_clear(&x);
        if (watch_stops(&c->watch, 64)) fail_with(c, INTERRUPTED);
        if (!c->failed && !row_valid(c, i)) continue;
        done = !c->failed && c->kernel->prepare(c, i, &x);
        if (done && s.near == NULL) {
            s.near = writer_room(c, group, x.length);
            s.length = x.length;
            done = s.near != NULL;
            if (done) c->type->fill(x.length, &x.start, s.near);
            start = x.start;
        }
        done = done && expect_length(c, "tensors of one group", s.length, x.length) &&
               (c->kernel->op < MERGE_STACK || expect_start(c, &start, &x.start)) &&
               settle(c, totals ? add_to_sum(c, &x, &s) : c->kernel->add(c, &x, s.near));
    }
    if (done && s.near == NULL) return writer_null(c, group);
    done = done && (!totals || settle(c, sum_finish(&s, s.near)));
    sum_release(&s);
    if (done) writer_take(c, group, s.length);
    return done;
}

/* The same for states that grow. */
static bool grow_group(call *c, size_t group, size_t length) {
    const growth *growth = c->kernel->growth;
    gathered *g = NULL;
    for (size_t i = 0; i < length && !c->failed; i++) {
        if (watch_stops(&c->watch, 32)) fail_with(c, INTERRUPTED);
        if (!c->failed && row_valid(c, i)) growth->add(c, i, 1, &g);
    }
    if (!c->failed && g == NULL) writer_null(c, group);
    if (!c->failed && g != NULL) growth->finish(c, group, g);
    gathered_release(&g);
    return !c->failed;
}

static void aggregate_groups(call *c, const ucle_array *arrays) {
    column groups[MAX_ARGUMENTS], elements[MAX_ARGUMENTS];
    for (size_t j = 0; j < c->arguments; j++) {
        char type = c->kernel->signature[j];
        bool gathered = c->kernel->gathered[j] == 'x';
        elements[j] = column_from_arrow(type, gathered ? arrays[j].children : &arrays[j]);
        groups[j] = gathered ? column_of_groups(&arrays[j]) : elements[j];
    }
    for (size_t group = 0; group < c->rows && !c->failed; group++) {
        size_t length;
        if (open_group(c, group, groups, elements, &length))
            (c->kernel->growth != NULL ? grow_group : aggregate_group)(c, group, length);
        else if (!c->failed)
            writer_null(c, group);
    }
}

int ucle_arrow_run(int index, int64_t memory_limit, int64_t rows, const ucle_array *arrays,
                   int array_count, ucle_result *result, char *message, int message_size) {
    account account = account_of_call(memory_limit > 0 ? (size_t)memory_limit : 0);
    const kernel *k = kernel_at((size_t)index);
    call *c = calloc(1, sizeof *c);
    *result = (ucle_result){0};
    if (c == NULL) {
        snprintf(message, (size_t)message_size, "%s: out of memory", k->name);
        return 1;
    }
    c->kernel = k;
    c->type = k->type;
    c->account = &account;
    c->rows = (size_t)rows;
    c->arguments = strcspn(k->signature, "v>");
    c->out.type = strchr(k->signature, '>')[1];
    c->out.rows = c->rows;
    c->out.values = calloc(c->rows + 1, sizeof(element));
    if (c->out.values == NULL) fail(c, "out of memory");
    if (!c->failed) check_arrays(c, arrays, array_count);
    if (!c->failed && kernel_is_aggregate(k)) {
        aggregate_groups(c, arrays);
    } else if (!c->failed) {
        for (size_t j = 0; j < c->arguments; j++)
            c->args[j] = column_from_arrow(k->signature[j], &arrays[j]);
        if (!kernel_has_tail(k) || call_tail(c, (size_t)array_count - c->arguments)) {
            for (size_t j = 0; j < c->tail_count; j++)
                c->tail[j] = column_from_arrow('v', &arrays[c->arguments + j]);
            call_run(c);
        }
    }
    int failed = c->failed;
    if (failed) {
        snprintf(message, (size_t)message_size, "%s", c->message);
    } else {
        *result = (ucle_result){c->out.validity, c->out.values, c->out.store.data,
                                (int64_t)(c->out.used * k->result->size), c->out.ends.data,
                                (int64_t)c->out.items};
        c->out.ends.data = NULL;
        c->out.validity = NULL;
        c->out.values = NULL;
        c->out.store.data = NULL;
    }
    call_release(c);
    free(c);
    return failed;
}
