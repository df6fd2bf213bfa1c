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
    if (g->last == NULL) {
        g->first = b;
    } else {
        g->last->unused = g->unused;
        g->last->next = b;
    }
    g->last = b;
    g->next = b->data;
    g->unused = capacity;
    return b;
}

char *gathered_more(call *c, gathered *g, size_t bytes) {
    return add_piece(c, g, bytes) == NULL ? NULL : gathered_room(c, g, bytes);
}

bool gathered_merge(call *c, const gathered *from, gathered **into) {
    gathered *g = gathered_for(c, into, from->rows, from->cols, &from->fill);
    for (const piece *b = from->first; g != NULL && b != NULL; b = b->next) {
        size_t used = piece_used(from, b);
        if (watch_stops(&c->watch, 64 + used / 8)) return fail_with(c, INTERRUPTED);
        char *room = gathered_room(c, g, used);
        if (room == NULL) return false;
        memcpy(room, b->data, used);
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
