/* Chains of pointwise functions of whole tensors, as a program for a stack:
 *
 *     a b mult 1 add relu
 *
 * A small letter pushes an operand, by its place among the arguments; a capital one pushes an operand
 * of one element, which serves all entries. Behind a colon stands the type of the elements, unless it
 * is the kernel's. A number pushes a constant, of the type of what it is combined with. The other
 * words take what they need from the stack: a pointwise function takes one tensor, a combination
 * takes two, and a type takes one and pushes its elements in that type. A reduction of all entries
 * (sum, prod, min, max, mean) can only come last.
 *
 * A tape (tape.c) could call the kernels of the same functions, but it reads its program for each row
 * and makes whole tensors between two steps: it takes up to 4 times as long where tensors have 64
 * entries, and up to 6 times where they have a million. A chain reads its program once for a batch of
 * rows, and what lies between two steps stays in the first cache.
 */
#ifndef UCLE_CHAIN_H
#define UCLE_CHAIN_H

#include "call.h"

/* Entries that are done at a time: what lies between two steps stays in the first cache. */
enum { CHAIN_BLOCK = FOLD_BLOCK, CHAIN_BLOCK_BYTES = CHAIN_BLOCK * sizeof(element) };

enum chain_origin { FROM_TEXT, FROM_CONSTANT, FROM_OPERAND, FROM_BLOCK };

/* What a step reads. */
typedef struct chain_source {
    enum chain_origin from;
    const element_type *type; /* of text: none yet */
    size_t number;            /* of the constant, operand or block */
    bool single;              /* one element for all entries */
    view text;
} chain_source;

enum chain_action { CHAIN_COPY, CHAIN_MAP, CHAIN_COMBINE, CHAIN_CAST };

typedef struct chain_step {
    enum chain_action action;
    int op;
    chain_source a, b;
    chain_source result;
} chain_step;

typedef struct chain {
    size_t operands, steps, constants, blocks;
    const element_type *operand_type[UCLE_CHAIN_OPERANDS]; /* NULL: it is not read */
    bool single[UCLE_CHAIN_OPERANDS];
    chain_step step[UCLE_LONGEST_CHAIN];
    element constant[UCLE_LONGEST_CHAIN];
    chain_source result;
    int reduce; /* of all entries; -1: none */
    bool mean;  /* the sum is divided by how many they are */
} chain;

/* Fills a chain of so many operands, or fails. */
bool chain_parse(call *c, chain *p, view program, size_t operands, bool reduces);

#endif
