#include "duckdb_states.h"

#include <stdint.h>
#include <string.h>

#include "duckdb_api.h"

/* duckdb::AggregateFunction, from its first callback on. A function that the C API has just made
 * has the first five and `bind`, and no others; a destructor may be added. */
enum { UPDATE = 2, BIND = 8, DESTRUCTOR = 9, CALLBACKS = 10 };
static const char set_at_first[CALLBACKS] = {1, 1, 1, 1, 1, 0, 0, 0, 1, 0};

/* Behind its name, arguments and so on, which are longer than this is short. */
enum { FIRST_WORD = 8, LAST_WORD = 64 };

/* duckdb::Vector begins with its type, one byte. */
enum { CONSTANT_VECTOR = 2 };

typedef void (*update_callback)(void *inputs, void *data, uint64_t count, const void *states,
                                uint64_t rows);

static update_callback original;
static _Thread_local bool one_state;

bool duck_updates_one_state(void) {
    bool one = one_state;
    one_state = false;
    return one;
}

static void update(void *inputs, void *data, uint64_t count, const void *states, uint64_t rows) {
    one_state = *(const uint8_t *)states == CONSTANT_VECTOR;
    original(inputs, data, count, states, rows);
}

static bool forgets_constants(void) {
    const char *version = DUCK(SLOT_LIBRARY_VERSION, const char *, void)();
    return version != NULL && strncmp(version, "v1.", 3) == 0;
}

static void no_destructor(void **states, uint64_t count) { (void)states, (void)count; }

static bool looks_right(const uintptr_t *callbacks) {
    for (int i = 0; i < CALLBACKS; i++)
        if ((callbacks[i] != 0) != set_at_first[i]) return false;
    return true;
}

/* Where the callbacks of a function stand: where a destructor appears when one is set, and all
 * others are as they have to be. 0: nowhere. */
static size_t find_callbacks(const uintptr_t *words) {
    void *other = DUCK(SLOT_AGGREGATE_CREATE, void *, void)();
    DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)(other, no_destructor);
    const uintptr_t *with = other;
    size_t found = 0;
    for (size_t i = FIRST_WORD; i + CALLBACKS <= LAST_WORD && found == 0; i++)
        if (looks_right(words + i) && with[i + DESTRUCTOR] != 0 &&
            memcmp(words + i, with + i, DESTRUCTOR * sizeof *words) == 0)
            found = i;
    DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&other);
    return found;
}

bool duck_watch_updates(void *function) {
    static size_t callbacks;
    if (!forgets_constants()) return true;
    uintptr_t *words = function;
    if (callbacks == 0) callbacks = find_callbacks(words);
    if (callbacks == 0 || !looks_right(words + callbacks)) return false;
    update_callback found = (update_callback)words[callbacks + UPDATE];
    if (original != NULL && original != found) return false;
    original = found;
    words[callbacks + UPDATE] = (uintptr_t)update;
    return true;
}
