/* Calls of other kernels on whole tensors, one after the other, as one call:
 *
 *     vec_sqrt($0);ein("ab,b->a",[3 4],$1,$2);$3 or full(3,0);vec_add($5,$4);return $4 $6
 *
 * A dollar and a number stand for a tensor: first for the operands, then for what each line makes, in
 * their order. A line ends with a semicolon, after which the next one may be on a line of its own in the
 * text, too. A line calls a scalar kernel that makes a tensor or a number; a number is a tensor of
 * one element, and is taken for a number where a kernel wants one. A line that begins with an operand
 * and "or" is that operand, unless that is NULL. The last line names the results. A complex number is
 * two, with a comma between them.
 */
#include <stdlib.h>

#include "constants.h"
#include "kernels.h"

/* A tensor with a number. What a line made belongs to the tape until its last use. */
typedef struct made {
    view bytes;
    bool given;
    buffer owned;
    element number; /* where the line made one */
    size_t last_use;
} made;

/* An argument of a line, as a column of one row. */
typedef struct argument {
    column k;
    int64_t offsets[2];
    int64_t integer;
    element value;
} argument;

typedef struct tape {
    call *c;
    const char *start, *at, *end;
    size_t operands, count, line, lines;
    made *made;       /* operands first */
    int64_t *numbers; /* room for the lists of a line: as many as the program could name */
    argument argument[MAX_ARGUMENTS];
    call line_call;
} tape;

/* ---- Words ---- */

static bool bad_tape(tape *t, const char *expected) {
    view rest = {t->at, (size_t)(t->end - t->at)};
    return fail(t->c, "line %zu: expected %s before '%.*s'", t->line + 1, expected,
                shown_bytes(rest), rest.data);
}

static bool take(tape *t, const char *sign) {
    size_t length = strlen(sign);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, sign, length) != 0) return false;
    t->at += length;
    return true;
}

/* The text up to one of some signs, which stays. */
static view take_until(tape *t, const char *signs) {
    view text = {t->at, 0};
    while (t->at < t->end && *t->at != 0 && strchr(signs, *t->at) == NULL) t->at++;
    text.bytes = (size_t)(t->at - text.data);
    return text;
}

/* The number of a tensor that is there by now, behind a dollar. */
static bool take_tensor(tape *t, size_t *number) {
    int64_t value;
    if (!take(t, "$")) return bad_tape(t, "a tensor");
    if (!read_integer(take_until(t, ",);] "), &value) || value < 0 || (size_t)value >= t->count)
        return bad_tape(t, "the number of a tensor before");
    *number = (size_t)value;
    return true;
}

/* ---- Arguments ---- */

static void set_bytes(argument *a, view bytes) {
    a->offsets[0] = 0;
    a->offsets[1] = (int64_t)bytes.bytes;
    a->k = (column){.layout = LAYOUT_ARROW_64, .entries = a->offsets, .data = bytes.data, .step = 1};
}

static bool take_given(tape *t, view *bytes) {
    size_t number;
    if (!take_tensor(t, &number)) return false;
    if (!t->made[number].given) return fail(t->c, "operand %zu is NULL", number);
    *bytes = t->made[number].bytes;
    return true;
}

static bool take_text(tape *t, argument *a) {
    if (!take(t, "\"")) return bad_tape(t, "a text between quotes");
    set_bytes(a, take_until(t, "\""));
    return take(t, "\"") || bad_tape(t, "a quote behind a text");
}

static bool take_list(tape *t, argument *a, size_t *used) {
    int64_t *first = t->numbers + *used;
    size_t count = 0;
    if (!take(t, "[")) return bad_tape(t, "a list of integers");
    while (!take(t, "]")) {
        if (!read_integer(take_until(t, " ]"), &first[count++])) return bad_tape(t, "an integer");
        if (!take(t, " ") && (t->at == t->end || *t->at != ']')) return bad_tape(t, "']'");
    }
    *used += count;
    a->offsets[0] = 0;
    a->offsets[1] = (int64_t)count;
    a->k = (column){.layout = LAYOUT_ARROW_64, .entries = a->offsets, .data = first, .step = 1};
    return true;
}

static bool take_number(tape *t, const element_type *type, argument *a) {
    if (t->at < t->end && *t->at == '$') {
        view bytes;
        if (!take_given(t, &bytes)) return false;
        if (bytes.bytes != type->size) return bad_tape(t, "a tensor of one element of the type");
        memcpy(&a->value, bytes.data, type->size);
    } else {
        view text = take_until(t, ",)");
        if (type->parts == 2 && take(t, ",")) text.bytes += 1 + take_until(t, ",)").bytes;
        if (!read_constant(text, type, &a->value)) return bad_tape(t, "a number of the type");
    }
    a->k = (column){.layout = LAYOUT_FIXED, .entries = &a->value, .step = 1};
    for (size_t i = 0; i < 2; i++)
        a->k.parts[i].data = (const char *)&a->value + i * (type->size / 2);
    return true;
}

static bool take_argument(tape *t, const element_type *type, char letter, argument *a,
                          size_t *used) {
    view bytes;
    switch (letter) {
    case 'b':
        if (!take_given(t, &bytes)) return false;
        set_bytes(a, bytes);
        return true;
    case 's': return take_text(t, a);
    case 'I': return take_list(t, a, used);
    case 'i':
        if (!read_integer(take_until(t, ",)"), &a->integer)) return bad_tape(t, "an integer");
        a->k = (column){.layout = LAYOUT_FIXED, .entries = &a->integer, .step = 1};
        return true;
    default: return take_number(t, type, a);
    }
}

/* ---- Lines ---- */

/* Kernels that take or make lists of elements have no part in a tape, nor have tapes. */
static const kernel *take_kernel(tape *t) {
    const kernel *k = kernel_named(take_until(t, "("));
    bool fits = k != NULL && !kernel_is_aggregate(k) && strpbrk(k->signature, "EvB") == NULL &&
                strstr(k->signature, ">I") == NULL;
    if (!fits) bad_tape(t, "the name of a scalar kernel");
    return fits ? k : NULL;
}

static bool take_arguments(tape *t, const kernel *k) {
    size_t used = 0;
    if (!take(t, "(")) return bad_tape(t, "'('");
    for (size_t i = 0; k->signature[i] != '>'; i++) {
        if (i > 0 && !take(t, ",")) return bad_tape(t, "another argument");
        if (!take_argument(t, k->type, k->signature[i], &t->argument[i], &used)) return false;
    }
    return take(t, ")") || bad_tape(t, "')'");
}

/* Has a tensor that a line made, and what its call has borrowed for it. */
static bool keep(tape *t, call *from, size_t bytes) {
    made *m = &t->made[t->count - 1];
    buffer *owned = &from->out.store;
    if (!account_keep(from->account, owned->capacity))
        return fail_for_memory(t->c, "the tensors of a tape");
    m->owned = *owned;
    m->bytes = (view){owned->data, bytes};
    *owned = (buffer){0};
    return true;
}

/* The call of a line, whose results stay in memory of its own. */
static bool run_kernel(tape *t, const kernel *k) {
    call *c = &t->line_call;
    made *m = &t->made[t->count++];
    int64_t offsets[2] = {0, 0};
    char letter;
    *m = (made){.given = true, .last_use = m->last_use};
    call_open(c, k, t->c->account, NULL);
    letter = c->out.type;
    for (size_t i = 0; i < c->arguments; i++) c->args[i] = t->argument[i].k;
    c->rows = c->out.rows = 1;
    c->out.values = letter == 'b' ? (void *)offsets : (void *)&m->number;
    c->watch = t->c->watch;
    call_run(c);
    t->c->watch = c->watch;
    c->watch = (watch){0};
    c->out.values = NULL; /* it is none of the call's */
    bool there = c->out.validity == NULL;
    bool done = !c->failed && there && (letter != 'b' || keep(t, c, (size_t)offsets[1]));
    call_release(c);
    if (c->failed) return fail(t->c, "line %zu, %s", t->line + 1, c->message);
    if (!there) return fail(t->c, "line %zu, %s: NULL", t->line + 1, k->name);
    if (!done || letter == 'b') return done;
    m->bytes = (view){(const char *)&m->number, letter == 'e'   ? k->result->size
                                                : letter == 'o' ? sizeof(boolean)
                                                                : sizeof(i64)};
    return true;
}

static bool take_alternative(tape *t, size_t *operand, bool *there) {
    *there = t->at < t->end && *t->at == '$';
    if (!*there) return true;
    if (!take_tensor(t, operand)) return false;
    if (*operand >= t->operands) return bad_tape(t, "an operand before \"or\"");
    return take(t, " or ") || bad_tape(t, "\" or \"");
}

static bool run_line(tape *t) {
    size_t operand;
    bool alternative;
    if (!take_alternative(t, &operand, &alternative)) return false;
    const kernel *k = take_kernel(t);
    if (k == NULL || !take_arguments(t, k)) return false;
    if (!take(t, ";")) return bad_tape(t, "';'");
    take(t, "\n");
    if (!alternative || !t->made[operand].given) return run_kernel(t, k);
    made *m = &t->made[t->count++];
    *m = (made){.bytes = t->made[operand].bytes, .given = true, .last_use = m->last_use};
    return true;
}

static void release(tape *t, made *m) {
    account_disclaim(t->c->account, m->owned.capacity);
    free(m->owned.data);
    m->owned = (buffer){0};
}

static bool put_results(tape *t, size_t row) {
    size_t count = 0, most = (size_t)(t->end - t->at) / strlen(" $0");
    view *results = (view *)call_scratch(t->c, most * sizeof *results);
    if (results == NULL) return false;
    while (take(t, " "))
        if (count == most || !take_given(t, &results[count++])) return bad_tape(t, "a tensor");
    if (t->at != t->end) return bad_tape(t, "the end of the program");
    return writer_put_tensors(t->c, row, results, count);
}

/* Where each tensor is named last: up to there it is kept. */
static void find_last_uses(tape *t) {
    size_t line = 0;
    for (const char *at = t->start; at < t->end; at++) {
        if (*at == ';') line++;
        if (*at != '$') continue;
        size_t number = 0;
        while (at + 1 < t->end && at[1] >= '0' && at[1] <= '9' && number < t->lines + t->operands)
            number = 10 * number + (size_t)(*++at - '0');
        if (number < t->lines + t->operands) t->made[number].last_use = line;
    }
}

static bool run(tape *t, size_t row) {
    for (t->line = 0; !take(t, "return"); t->line++) {
        if (t->line == t->lines) return bad_tape(t, "\"return\"");
        if (!run_line(t)) return false;
        for (size_t i = t->operands; i < t->count; i++)
            if (t->made[i].last_use <= t->line) release(t, &t->made[i]);
    }
    return put_results(t, row);
}

static void read_operands(tape *t, size_t row) {
    for (size_t i = 0; i < t->operands; i++) {
        const column *k = &t->c->tail[i];
        bool given = column_valid(k, row);
        t->made[i].bytes = given ? column_view(k, row) : (view){NULL, 0};
        t->made[i].given = given;
    }
}

size_t apply_tape(call *c, size_t row) {
    view program = column_view(&c->args[0], row);
    tape *t = calloc(1, sizeof *t);
    if (t == NULL) return fail(c, "out of memory");
    t->c = c;
    t->start = t->at = program.data;
    t->end = program.data + program.bytes;
    t->operands = t->count = c->tail_count;
    for (const char *at = t->start; at < t->end; at++) t->lines += *at == ';';
    size_t tensors = t->operands + t->lines + 1, numbers = program.bytes / 2 + 1;
    size_t bytes = tensors * sizeof *t->made + numbers * sizeof *t->numbers;
    bool done = account_borrow(c->account, bytes) || fail_to_borrow(c, bytes);
    if (done) {
        t->made = calloc(tensors, sizeof *t->made);
        t->numbers = calloc(numbers, sizeof *t->numbers);
        done = (t->made != NULL && t->numbers != NULL) || fail(c, "out of memory");
        if (done) {
            find_last_uses(t);
            read_operands(t, row);
            done = run(t, row);
            for (size_t i = 0; i < t->count; i++) release(t, &t->made[i]);
        }
        account_repay(c->account, bytes);
    }
    free(t->made);
    free(t->numbers);
    free(t);
    return done;
}
