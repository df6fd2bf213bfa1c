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
 *
 * The last line may also repeat those before it, as rounds of a loop:
 *
 *     vec_add($0,$1);...;repeat $2 until $6 while $7 unless $8 set $0=$5 keep $4 keep $6
 *
 * The operand after "repeat" is an integer, the most rounds. After each of them, every operand that is
 * set is the tensor behind its equals sign in the next one. Tensors after "until", "while" and
 * "unless" are single booleans: the round in which one after "until" is true is the last one. A round
 * in which one after "while" is false, or one after "unless" is true, does not count, and ends the
 * loop, too. The results are first the operands that were set, as the last round that counts has left
 * them, and then what is kept: the tensors of these rounds, one behind the other.
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

/* What a loop holds beside the tape: what an operand becomes, or the tensors that are kept. */
typedef struct held {
    size_t operand; /* that is set */
    size_t size;    /* of what is kept of a round */
    view bytes;
    buffer owned;
} held;

typedef struct rounds {
    held *set, *kept;
    size_t sets, keeps, done;
    int64_t most;
    bool last, counts; /* the round */
} rounds;

typedef struct tape {
    call *c;
    const char *start, *at, *end;
    size_t operands, count, line, lines;
    made *made;       /* operands first */
    int64_t *numbers; /* room for the lists of a line: as many as the program could name */
    argument argument[MAX_ARGUMENTS];
    call line_call;
    buffer spares[SPARES]; /* of tensors that were let go, for the next ones */
    size_t spared;
} tape;

enum { SPARE_LEAST = 1 << 16 };

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
static bool take_tensor(tape *t, size_t *number, const char *ends) {
    int64_t value;
    if (!take(t, "$")) return bad_tape(t, "a tensor");
    if (!read_integer(take_until(t, ends), &value) || value < 0 || (size_t)value >= t->count)
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
    if (!take_tensor(t, &number, ",);] ")) return false;
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
    c->spares = t->spares;
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
    if (!take_tensor(t, operand, " ")) return false;
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

static void let_go(tape *t, buffer *owned) {
    account *a = t->c->account;
    account_disclaim(a, owned->capacity);
    if (owned->capacity >= SPARE_LEAST && account_borrow(a, owned->capacity)) {
        buffer *spare = &t->spares[t->spared++ % SPARES], before = *spare;
        *spare = *owned;
        *owned = before;
        account_repay(a, before.capacity);
    }
    free(owned->data);
    *owned = (buffer){0};
}

static void free_spares(tape *t) {
    for (size_t i = 0; i < SPARES; i++) {
        account_repay(t->c->account, t->spares[i].capacity);
        free(t->spares[i].data);
    }
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

/* ---- Rounds ---- */

static bool take_flag(tape *t, bool *flag) {
    view bytes;
    if (!take_given(t, &bytes)) return false;
    if (bytes.bytes != sizeof(boolean)) return bad_tape(t, "a single boolean");
    *flag = *bytes.data != 0;
    return true;
}

static bool take_most(tape *t, rounds *r) {
    view bytes;
    if (!take_given(t, &bytes)) return false;
    if (bytes.bytes != sizeof r->most) return bad_tape(t, "a single integer");
    memcpy(&r->most, bytes.data, sizeof r->most);
    return r->most > 0 || bad_tape(t, "a positive number of rounds");
}

static bool take_set(tape *t, rounds *r) {
    held *h = &r->set[r->sets++];
    if (!take_tensor(t, &h->operand, "=")) return false;
    if (h->operand >= t->operands || !take(t, "=")) return bad_tape(t, "an operand before \"=\"");
    for (size_t i = 0; i + 1 < r->sets; i++)
        if (r->set[i].operand == h->operand) return bad_tape(t, "an operand that is set once");
    return take_given(t, &h->bytes);
}

/* Reads how the round ends, once it has run. */
static bool take_ends(tape *t, rounds *r) {
    bool flag;
    r->sets = r->keeps = 0;
    r->last = false, r->counts = true;
    if (!take_most(t, r)) return false;
    while (t->at < t->end) {
        if (take(t, " until ")) {
            if (!take_flag(t, &flag)) return false;
            r->last |= flag;
        } else if (take(t, " while ")) {
            if (!take_flag(t, &flag)) return false;
            r->counts &= flag;
        } else if (take(t, " unless ")) {
            if (!take_flag(t, &flag)) return false;
            r->counts &= !flag;
        } else if (take(t, " set ")) {
            if (!take_set(t, r)) return false;
        } else if (take(t, " keep ")) {
            if (!take_given(t, &r->kept[r->keeps++].bytes)) return false;
        } else {
            return bad_tape(t, "the end of the program");
        }
    }
    return true;
}

static bool hold(tape *t, held *h, size_t bytes) {
    if (!account_claim(t->c->account, bytes)) return fail_for_memory(t->c, "the rounds of a tape");
    h->owned = (buffer){malloc(bytes > 0 ? bytes : 1), bytes};
    if (h->owned.data != NULL) return true;
    account_disclaim(t->c->account, bytes);
    h->owned.capacity = 0;
    return fail(t->c, "out of memory");
}

/* Puts a tensor behind those of earlier rounds, for all of which there is room. */
static bool keep_round(tape *t, rounds *r, held *h) {
    size_t bytes, size = h->bytes.bytes;
    if (r->done == 0) {
        h->size = size;
        if (!multiply_sizes(t->c, size, (size_t)r->most, &bytes) || !hold(t, h, bytes)) return false;
    }
    if (size != h->size || h->owned.capacity < (r->done + 1) * size)
        return fail(t->c, "a tensor that is kept has another size in another round");
    memcpy(h->owned.data + r->done * size, h->bytes.data, size);
    return true;
}

/* The operands that are set take over what the lines have made; all of it is there until then. */
static bool set_operands(tape *t, rounds *r) {
    for (size_t i = 0; i < r->sets; i++) {
        held *h = &r->set[i];
        made *from = NULL;
        for (size_t k = t->operands; k < t->count && from == NULL; k++)
            if (t->made[k].owned.data == h->bytes.data && h->bytes.bytes > 0) from = &t->made[k];
        if (from != NULL) {
            h->owned = from->owned;
            from->owned = (buffer){0};
        } else {
            if (!hold(t, h, h->bytes.bytes)) return false;
            memcpy(h->owned.data, h->bytes.data, h->bytes.bytes);
        }
    }
    for (size_t i = 0; i < r->sets; i++) {
        held *h = &r->set[i];
        made *m = &t->made[h->operand];
        let_go(t, &m->owned);
        *m = (made){.bytes = {h->owned.data, h->bytes.bytes}, .given = true, .owned = h->owned};
        h->owned = (buffer){0};
    }
    return true;
}

static bool put_rounds(tape *t, const rounds *r, size_t row) {
    view *results = (view *)call_scratch(t->c, (r->sets + r->keeps + 1) * sizeof *results);
    if (results == NULL) return false;
    for (size_t i = 0; i < r->sets; i++) results[i] = t->made[r->set[i].operand].bytes;
    for (size_t i = 0; i < r->keeps; i++)
        results[r->sets + i] = (view){r->kept[i].owned.data, r->done * r->kept[i].size};
    return writer_put_tensors(t->c, row, results, r->sets + r->keeps);
}

static bool end_round(tape *t, rounds *r, size_t row, bool *again) {
    if (!take_ends(t, r)) return false;
    if (r->counts) {
        for (size_t i = 0; i < r->keeps; i++)
            if (!keep_round(t, r, &r->kept[i])) return false;
        if (!set_operands(t, r)) return false;
        r->done++;
    }
    *again = r->counts && !r->last && r->done < (size_t)r->most;
    return *again || put_rounds(t, r, row);
}

/* ---- The program ---- */

/* Runs the lines, up to "return" or "repeat". */
static bool run_lines(tape *t, bool *repeats) {
    *repeats = false;
    for (t->line = 0; !take(t, "return"); t->line++) {
        if (take(t, "repeat ")) {
            *repeats = true;
            break;
        }
        if (t->line == t->lines) return bad_tape(t, "\"return\"");
        if (!run_line(t)) return false;
        for (size_t i = t->operands; i < t->count; i++)
            if (t->made[i].last_use <= t->line) let_go(t, &t->made[i].owned);
    }
    return true;
}

static bool run(tape *t, rounds *r, size_t row) {
    bool repeats, again;
    do {
        t->at = t->start;
        if (!run_lines(t, &repeats)) return false;
        if (!repeats) return put_results(t, row);
        if (!end_round(t, r, row, &again)) return false;
        for (; t->count > t->operands; t->count--) let_go(t, &t->made[t->count - 1].owned);
    } while (again);
    return true;
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
    size_t words = program.bytes / strlen(" keep $0") + 1; /* as many as it could set or keep */
    size_t bytes = tensors * sizeof *t->made + numbers * sizeof *t->numbers +
                   2 * words * sizeof(held);
    rounds r = {0};
    bool done = account_borrow(c->account, bytes) || fail_to_borrow(c, bytes);
    if (done) {
        t->made = calloc(tensors, sizeof *t->made);
        t->numbers = calloc(numbers, sizeof *t->numbers);
        r.set = calloc(2 * words, sizeof *r.set);
        done = (t->made != NULL && t->numbers != NULL && r.set != NULL) || fail(c, "out of memory");
        if (done) {
            r.kept = r.set + words;
            find_last_uses(t);
            read_operands(t, row);
            done = run(t, &r, row);
            for (size_t i = 0; i < t->count; i++) let_go(t, &t->made[i].owned);
            for (size_t i = 0; i < 2 * words; i++) let_go(t, &r.set[i].owned);
            free_spares(t);
        }
        account_repay(c->account, bytes);
    }
    free(t->made);
    free(t->numbers);
    free(r.set);
    free(t);
    return done;
}
