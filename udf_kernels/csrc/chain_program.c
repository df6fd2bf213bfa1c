/* Reads the programs of chains. What a step makes lies in a block of memory, which is free again once
 * it was read. */
#include "chain.h"
#include "constants.h"
#include "kernels.h"

typedef struct compiler {
    call *c;
    chain *p;
    const char *at, *end; /* the rest of the program */
    size_t depth;
    chain_source stack[UCLE_DEEPEST_STACK];
    bool used[UCLE_DEEPEST_STACK + 1]; /* blocks that wait on the stack */
} compiler;

#define WORD(name) #name,
#define TYPE_WORD(tag, text) text,
static const char *const map_names[MAPS] = {EACH_MAP(WORD)};
static const char *const type_names[TYPES] = {EACH_TYPE(TYPE_WORD)};
enum { ALL = -1 };

static bool bad_program(compiler *m, const char *expected) {
    size_t rest = (size_t)(m->end - m->at);
    return fail(m->c, "expected %s, %zu characters before the end of the chain", expected, rest);
}

/* The place of a word among those names that are in a set, or -1. */
static int find(view word, const char *const *names, int count, uint64_t set) {
    for (int i = 0; i < count; i++)
        if (set >> i & 1 && is_word(word, names[i])) return i;
    return -1;
}

/* ---- Constants ---- */

static bool is_number(view word) {
    return (*word.data >= '0' && *word.data <= '9') || *word.data == '-' || is_word(word, "inf") ||
           is_word(word, "nan") || is_word(word, "true") || is_word(word, "false");
}

/* Gives a constant the type of what it is combined with. */
static bool settle_type(compiler *m, chain_source *x, const element_type *type) {
    if (x->from != FROM_TEXT) return x->type == type || bad_program(m, "operands of one type");
    if (m->p->constants == UCLE_LONGEST_CHAIN) return bad_program(m, "fewer constants");
    if (!read_constant(x->text, type, &m->p->constant[m->p->constants]))
        return bad_program(m, "a constant of the type of what it is combined with");
    *x = (chain_source){FROM_CONSTANT, type, m->p->constants++, true, {0}};
    return true;
}

/* ---- The stack ---- */

static bool push(compiler *m, chain_source x) {
    if (m->depth == UCLE_DEEPEST_STACK) return bad_program(m, "fewer tensors at a time");
    m->stack[m->depth++] = x;
    return true;
}

static bool push_operand(compiler *m, char letter, const element_type *type) {
    bool single = letter >= 'A' && letter <= 'Z';
    size_t number = (size_t)(letter - (single ? 'A' : 'a'));
    chain *p = m->p;
    if (number >= p->operands) return bad_program(m, "the letter of an operand");
    if (p->operand_type[number] != NULL &&
        (p->operand_type[number] != type || p->single[number] != single))
        return bad_program(m, "an operand as it was read before");
    p->operand_type[number] = type;
    p->single[number] = single;
    return push(m, (chain_source){FROM_OPERAND, type, number, single, {0}});
}

static void release(compiler *m, const chain_source *x) {
    if (x->from == FROM_BLOCK) m->used[x->number] = false;
}

/* Adds a step that takes two sources, or one twice, and pushes what it makes of them. */
static bool add_step(compiler *m, enum chain_action action, int op, chain_source a, chain_source b,
                     const element_type *type) {
    chain *p = m->p;
    if (p->steps == UCLE_LONGEST_CHAIN) return bad_program(m, "fewer steps");
    size_t block = 0; /* loops may not write where they read, so both are still in use */
    while (m->used[block]) block++;
    m->used[block] = true;
    release(m, &a);
    release(m, &b);
    if (block >= p->blocks) p->blocks = block + 1;
    chain_source made = {FROM_BLOCK, type, block, a.single && b.single, {0}};
    p->step[p->steps++] = (chain_step){action, op, a, b, made};
    return push(m, made);
}

static bool take_one(compiler *m, chain_source *x) {
    if (m->depth < 1) return bad_program(m, "a tensor before a function");
    *x = m->stack[--m->depth];
    return x->from != FROM_TEXT || bad_program(m, "a tensor, not a constant, before a function");
}

static bool combine(compiler *m, chain_source a, chain_source b, int op) {
    const element_type *type = a.from == FROM_TEXT ? b.type : a.type;
    if (type == NULL) return bad_program(m, "a tensor beside a constant");
    if (!(type->combines >> op & 1)) return bad_program(m, "a combination that the type has");
    return settle_type(m, &a, type) && settle_type(m, &b, type) &&
           add_step(m, CHAIN_COMBINE, op, a, b, type);
}

/* ---- The words ---- */

static bool take_operand(compiler *m, view word) {
    if (word.bytes == 1) return push_operand(m, *word.data, m->c->type);
    int type = find((view){word.data + 2, word.bytes - 2}, type_names, TYPES, ALL);
    if (type < 0) return bad_program(m, "an operand with its type like a:f64");
    return push_operand(m, *word.data, element_types[type]);
}

static bool take_word(compiler *m, view word) {
    chain_source x, y;
    int op;
    if (word.bytes == 0) return bad_program(m, "a word");
    if (word.bytes == 1 ? *word.data > '9' : word.data[1] == ':') return take_operand(m, word);
    if (is_number(word)) return push(m, (chain_source){FROM_TEXT, NULL, 0, true, word});
    if ((op = find(word, combine_names, COMBINES, ALL)) >= 0) {
        if (m->depth < 2) return bad_program(m, "two tensors before a combination");
        y = m->stack[--m->depth], x = m->stack[--m->depth];
        return combine(m, x, y, op);
    }
    if ((op = find(word, type_names, TYPES, ALL)) >= 0)
        return take_one(m, &x) && add_step(m, CHAIN_CAST, op, x, x, element_types[op]);
    if ((op = find(word, map_names, MAPS, ALL)) < 0)
        return bad_program(m, "an operand, a constant or a function");
    if (!take_one(m, &x)) return false;
    return x.type->maps >> op & 1 ? add_step(m, CHAIN_MAP, op, x, x, x.type)
                                  : bad_program(m, "a function that the type has");
}

static bool take_reduction(compiler *m, view word) {
    const element_type *type = m->c->type;
    m->p->mean = is_word(word, "mean") && type->combines >> OP_div & 1;
    m->p->reduce = m->p->mean ? (int)REDUCE_sum : find(word, reduce_names, REDUCES, type->reduces);
    return m->p->reduce >= 0 || bad_program(m, "a reduction that the type has");
}

static view next_word(compiler *m) {
    const char *start = m->at, *space = memchr(start, ' ', (size_t)(m->end - start));
    m->at = space == NULL ? m->end : space + 1;
    return (view){start, (size_t)((space == NULL ? m->end : space) - start)};
}

/* One tensor of the kernel's type is left; that of a single step goes where the result is. */
static bool finish_program(compiler *m, bool reduces) {
    chain *p = m->p;
    const chain_source *left = &m->stack[0];
    if (m->depth != 1 || left->from == FROM_TEXT || left->type != m->c->type)
        return bad_program(m, "one tensor of the kernel's type in the end");
    if (left->single) return bad_program(m, "a tensor of more than single elements");
    for (size_t i = 0; i < p->operands; i++)
        if (p->operand_type[i] == NULL) return bad_program(m, "all operands in the chain");
    if (!reduces && left->from == FROM_OPERAND &&
        !add_step(m, CHAIN_COPY, 0, *left, *left, left->type))
        return false;
    p->result = m->stack[m->depth - 1];
    return true;
}

bool chain_parse(call *c, chain *p, view program, size_t operands, bool reduces) {
    compiler m = {.c = c, .p = p, .at = program.data, .end = program.data + program.bytes};
    memset(p, 0, sizeof *p);
    p->operands = operands;
    p->reduce = -1;
    if (program.bytes == 0 || program.data[program.bytes - 1] == ' ')
        return bad_program(&m, "a word");
    while (m.at < m.end) {
        view word = next_word(&m);
        if (reduces && m.at == m.end) {
            if (!take_reduction(&m, word)) return false;
        } else if (!take_word(&m, word)) {
            return false;
        }
    }
    return finish_program(&m, reduces);
}
