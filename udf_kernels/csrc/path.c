/* A tree of contractions in one call, as a program for a stack of tensors:
 *
 *     2048 4;0;1;ab,ca->cb|2 1024 2;1;ab,cb->ac|2 1024 2
 *
 * First the lengths of the operands, which lie one after the other in one BLOB. Then what to do: a
 * number pushes that operand; a spec with the sizes of its labels takes two tensors and pushes their
 * contraction, the one pushed first as its first operand. What is left at the end is the result.
 */
#include "kernels.h"

enum { MAX_SIZES = MAX_LABELS };

typedef struct entry {
    tensor value;
    int store; /* which holds it; -1 for an operand */
} entry;

typedef struct machine {
    call *c;
    const char *at, *end; /* the rest of the program */
    size_t operands, depth;
    tensor operand[UCLE_MOST_OPERANDS];
    entry stack[UCLE_DEEPEST_STACK];
    struct {
        void *data;
        size_t bytes;
        bool used;
    } store[UCLE_DEEPEST_STACK + 1];
} machine;

static bool bad_program(machine *m, const char *expected) {
    size_t rest = (size_t)(m->end - m->at);
    return fail(m->c, "expected %s, %zu characters before the end of the program", expected, rest);
}

static bool is_digit(const machine *m) {
    return m->at < m->end && *m->at >= '0' && *m->at <= '9';
}

static bool take_sign(machine *m, char sign) {
    if (m->at == m->end || *m->at != sign) return false;
    m->at++;
    return true;
}

static bool take_number(machine *m, i64 *value) {
    if (!is_digit(m)) return bad_program(m, "a number");
    for (*value = 0; is_digit(m); m->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *m->at - '0', value))
            return bad_program(m, "a number of less than 2^63");
    return true;
}

/* Numbers with a space between them. */
static bool take_numbers(machine *m, i64 *values, size_t most, size_t *count) {
    *count = 0;
    do {
        if (*count == most) return bad_program(m, "fewer numbers");
        if (!take_number(m, &values[(*count)++])) return false;
    } while (take_sign(m, ' '));
    return true;
}

static bool take_operands(machine *m, tensor all) {
    i64 lengths[UCLE_MOST_OPERANDS];
    if (!take_numbers(m, lengths, UCLE_MOST_OPERANDS, &m->operands)) return false;
    size_t used = 0;
    for (size_t i = 0; i < m->operands; i++) {
        size_t length = (size_t)lengths[i];
        if (length > all.length - used) return bad_program(m, "lengths that fit the operands");
        m->operand[i] = (tensor){at(m->c->type, all.data, used), length};
        used += length;
    }
    return used == all.length || bad_program(m, "lengths of all operands");
}

static bool push(machine *m, tensor value, int store) {
    if (m->depth == UCLE_DEEPEST_STACK) return bad_program(m, "fewer tensors at a time");
    m->stack[m->depth++] = (entry){value, store};
    return true;
}

static bool push_operand(machine *m) {
    i64 number = 0;
    if (!take_number(m, &number)) return false;
    if ((size_t)number >= m->operands) return bad_program(m, "the number of an operand");
    return push(m, m->operand[number], -1);
}

/* A store that no tensor on the stack lies in, with room for so many elements. */
static int free_store(machine *m, size_t elements) {
    int i = 0;
    size_t most = max_elements(m->c->type);
    if (elements > most) {
        fail(m->c, "expected tensors of at most %zu elements, got %zu", most, elements);
        return -1;
    }
    while (m->store[i].used) i++; /* there is one more of them than the stack has places */
    size_t bytes = elements * m->c->type->size;
    if (m->store[i].bytes < bytes || m->store[i].data == NULL) {
        memory_release(m->store[i].data);
        m->store[i].data = memory_hold(bytes);
        m->store[i].bytes = m->store[i].data == NULL ? 0 : bytes;
        if (m->store[i].data == NULL) {
            fail_for_memory(m->c, "its tensors");
            return -1;
        }
    }
    m->store[i].used = true;
    return i;
}

static entry pop(machine *m) { return m->stack[--m->depth]; }

static void release(machine *m, entry x) {
    if (x.store >= 0) m->store[x.store].used = false;
}

static bool take_spec(machine *m, ein_plan *plan) {
    const char *spec = m->at, *bar = memchr(spec, '|', (size_t)(m->end - spec));
    if (bar == NULL) return bad_program(m, "a spec with sizes behind a bar");
    i64 sizes[MAX_SIZES];
    size_t count = 0;
    char message[320];
    m->at = bar + 1;
    if (is_digit(m) && !take_numbers(m, sizes, MAX_SIZES, &count)) return false;
    return ein_parse(plan, m->c->type, false, spec, (size_t)(bar - spec), sizes, count, message,
                     sizeof message) ||
           fail(m->c, "%s", message);
}

static bool contract(machine *m) {
    ein_plan plan;
    if (!take_spec(m, &plan)) return false;
    if (m->depth < 2) return bad_program(m, "two tensors to contract");
    entry b = pop(m), a = pop(m);
    const element_type *type = m->c->type;
    if (!expect_length(m->c, "first operand", plan.length_a, a.value.length) ||
        !expect_length(m->c, "second operand", plan.length_b, b.value.length))
        return false;
    if (!expect_ein_result(m->c, &plan)) return false;
    int store = free_store(m, plan.length_out);
    if (store < 0) return false;
    void *out = m->store[store].data;
    type->fill(plan.length_out, &type->identity[plan.reduce], out);
    if (!settle(m->c, contract_into(m->c, &plan, a.value.data, b.value.data, out))) return false;
    release(m, a);
    release(m, b);
    return push(m, (tensor){out, plan.length_out}, store);
}

static bool run(machine *m, tensor operands) {
    if (!take_operands(m, operands)) return false;
    while (take_sign(m, ';')) {
        const char *end = memchr(m->at, ';', (size_t)(m->end - m->at));
        const char *bar = memchr(m->at, '|', (size_t)((end ? end : m->end) - m->at));
        if (bar == NULL ? !push_operand(m) : !contract(m)) return false;
    }
    if (m->at != m->end) return bad_program(m, "';'");
    return m->depth == 1 || bad_program(m, "one tensor in the end");
}

size_t apply_ein_path(call *c, size_t row) {
    view program = column_view(&c->args[0], row);
    machine m = {.c = c, .at = program.data, .end = program.data + program.bytes};
    tensor operands;
    bool done = read_tensor(c, 1, row, &operands) && run(&m, operands) &&
                writer_put(c, row, m.stack[0].value.data, m.stack[0].value.length);
    for (int i = 0; i <= UCLE_DEEPEST_STACK; i++) memory_release(m.store[i].data);
    return done;
}
