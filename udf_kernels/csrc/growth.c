#include "growth.h"

/* Pieces double: few bytes for small groups, few pieces for large ones. */
enum { SMALLEST_PIECE = 512, LARGEST_PIECE = 1 << 20 };

gathered *gathered_for(call *c, gathered **state, size_t rows, size_t cols, const element *fill) {
    gathered *g = *state;
    if (g == NULL) {
        g = memory_hold(c->account, sizeof *g);
        if (g == NULL) {
            fail_for_memory(c, "states");
            return NULL;
        }
        *g = (gathered){.rows = rows, .cols = cols, .fill = *fill};
        *state = g;
        return g;
    }
    if (g->rows == rows && g->cols == cols && memcmp(&g->fill, fill, c->type->size) == 0) return g;
    fail(c, "expected the same rows, columns and fill within a group, got %zu x %zu and %zu x %zu",
         g->rows, g->cols, rows, cols);
    return NULL;
}

static piece *add_piece(call *c, gathered *g, size_t bytes) {
    size_t capacity = g->last == NULL ? SMALLEST_PIECE : 2 * g->last->capacity;
    if (capacity > LARGEST_PIECE) capacity = LARGEST_PIECE;
    if (capacity < bytes) capacity = bytes;
    piece *b = memory_hold(c->account, sizeof *b + capacity);
    if (b == NULL) {
        fail_for_memory(c, "states");
        return NULL;
    }
    *b = (piece){.capacity = capacity};
    if (g->last == NULL)
        g->first = b;
    else
        g->last->next = b;
    g->last = b;
    return b;
}

char *gathered_more(call *c, gathered *g, size_t bytes) {
    piece *p = add_piece(c, g, bytes);
    if (p == NULL) return NULL;
    p->used = bytes;
    return p->data;
}

bool gathered_merge(call *c, const gathered *from, gathered **into) {
    gathered *g = gathered_for(c, into, from->rows, from->cols, &from->fill);
    for (const piece *b = from->first; g != NULL && b != NULL; b = b->next) {
        if (watch_stops(&c->watch, 64 + b->used / 8)) return fail_with(c, INTERRUPTED);
        char *room = gathered_room(c, g, b->used);
        if (room == NULL) return false;
        memcpy(room, b->data, b->used);
    }
    if (g != NULL) g->records += from->records;
    return g != NULL;
}

void gathered_release(gathered **state) {
    gathered *g = *state;
    for (piece *b = g == NULL ? NULL : g->first, *next; b != NULL; b = next) {
        next = b->next;
        memory_release(b);
    }
    memory_release(g);
    *state = NULL;
}
