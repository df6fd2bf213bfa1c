/* Aggregates whose states grow with their rows: records of one size, in pieces of memory.
 *
 * Nothing is merged or sorted before the end, when the result is made of all records. A state may be
 * finished several times, and go on in between (windows do that).
 */
#ifndef UCLE_GROWTH_H
#define UCLE_GROWTH_H

#include "call.h"

typedef struct piece {
    struct piece *next;
    size_t capacity, unused; /* bytes; of the last piece the state says what is unused */
    char data[];
} piece;

/* One state. What describes its result is the same in all rows of a group. Where the next record
 * goes stands in it, so that one look at the piece itself is saved for each row. */
typedef struct gathered {
    char *next;
    size_t unused;
    piece *first, *last;
    size_t records, rows, cols;
    element fill;
} gathered;

struct growth {
    /* Adds rows without NULLs, to a state that is made if there is none. */
    bool (*add)(call *c, size_t row, size_t count, gathered **state);
    bool (*finish)(call *c, size_t row, const gathered *state);
};

extern const growth growth_of_stack_csr, growth_of_stack_csr_rows,
    growth_of_stack_runs;

/* A state for such results, or that there is, which has to be one for such. NULL after an error. */
gathered *gathered_for(call *c, gathered **state, size_t rows, size_t cols, const element *fill);
/* Room for more bytes in a row, which the caller fills; NULL after an error. */
char *gathered_more(call *c, gathered *state, size_t bytes);
static inline char *gathered_room(call *c, gathered *state, size_t bytes) {
    if (state->unused < bytes) return gathered_more(c, state, bytes);
    char *room = state->next;
    state->next += bytes;
    state->unused -= bytes;
    return room;
}
static inline size_t piece_used(const gathered *state, const piece *p) {
    return p->capacity - (p == state->last ? state->unused : p->unused);
}
/* Copies all records. */
bool gathered_merge(call *c, const gathered *from, gathered **into);
void gathered_release(gathered **state);

#endif
