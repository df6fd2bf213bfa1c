/* Equal positions are found without sorting: each position marks one bit of many by its hash. Of two that
 * are equal the later one finds its bit marked, and so do a few others by chance. Those are put into a
 * table, and all positions are looked up there: one that is met twice repeats. */
#include "positions.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    MARKS = 16,   /* bits for each position, at least: one in 32 finds its bit marked by chance */
    AHEAD = 32,   /* positions whose memory is asked for before it is needed */
    SHARE = 8,    /* room for one in so many that find their bits marked, */
    FEWEST = 1024 /* and for so many more */
};

static const uint64_t FREE = UINT64_MAX; /* a place of the table */

/* The steps of the generator SplitMix64, which turn any integers into ones that look random. */
static inline uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    return (x ^ x >> 27) * 0x94D049BB133111EB;
}

/* The least power of two that is not below n, as its exponent: at least 6, the bits of a word. */
static int exponent(uint64_t n) {
    int bits = 6;
    while (((uint64_t)1 << bits) < n) bits++;
    return bits;
}

typedef struct {
    uint64_t *start;
    int64_t count, room;
} list;

/* Those that find their bits marked by others, until there is no room for more. */
static void collect(const int64_t *positions, int64_t count, uint64_t *marks, int bits, list *met) {
    for (int64_t start = 0; start < count; start += AHEAD) {
        int64_t many = count - start < AHEAD ? count - start : AHEAD;
        uint64_t places[AHEAD];
        for (int64_t i = 0; i < many; i++) {
            places[i] = mix((uint64_t)positions[start + i]) >> (64 - bits);
            __builtin_prefetch(marks + (places[i] >> 6), 1);
        }
        for (int64_t i = 0; i < many; i++) {
            uint64_t *word = marks + (places[i] >> 6), bit = (uint64_t)1 << (places[i] & 63);
            if (*word & bit) {
                if (met->count == met->room) return;
                met->start[met->count++] = (uint64_t)positions[start + i];
            }
            *word |= bit;
        }
    }
}

/* A table of values in the place of their hashes or behind it. The last bit of each says whether it was
 * met since. False if one is there already. */
static bool insert(uint64_t *table, int bits, uint64_t value) {
    uint64_t last = ((uint64_t)1 << bits) - 1, at = mix(value) >> (64 - bits);
    for (; table[at] != FREE; at = (at + 1) & last)
        if (table[at] >> 1 == value) return false;
    table[at] = value << 1;
    return true;
}

/* Whether a value of the table is met for the second time. */
static bool met_again(uint64_t *table, int bits, uint64_t place, uint64_t value) {
    uint64_t last = ((uint64_t)1 << bits) - 1;
    for (; table[place] != FREE; place = (place + 1) & last) {
        if (table[place] >> 1 != value) continue;
        bool before = table[place] & 1;
        table[place] |= 1;
        return before;
    }
    return false;
}

static bool any_met_again(const int64_t *positions, int64_t count, uint64_t *table, int bits) {
    for (int64_t start = 0; start < count; start += AHEAD) {
        int64_t many = count - start < AHEAD ? count - start : AHEAD;
        uint64_t places[AHEAD];
        for (int64_t i = 0; i < many; i++) {
            places[i] = mix((uint64_t)positions[start + i]) >> (64 - bits);
            __builtin_prefetch(table + places[i]);
        }
        for (int64_t i = 0; i < many; i++)
            if (met_again(table, bits, places[i], (uint64_t)positions[start + i])) return true;
    }
    return false;
}

/* Whether one of those that found their bits marked is there twice. */
static int look_up(const int64_t *positions, int64_t count, const list *met) {
    int bits = exponent((uint64_t)met->count * 2);
    uint64_t places = (uint64_t)1 << bits;
    uint64_t *table = malloc(places * sizeof *table);
    if (table == NULL) return -1;
    for (uint64_t i = 0; i < places; i++) table[i] = FREE;
    int repeats = 0;
    for (int64_t i = 0; i < met->count && !repeats; i++)
        repeats = !insert(table, bits, met->start[i]); /* it was met behind the first one twice */
    if (!repeats) repeats = any_met_again(positions, count, table, bits);
    free(table);
    return repeats;
}

int ucle_positions_repeat(const int64_t *positions, int64_t count) {
    int bits = exponent((uint64_t)count * MARKS);
    list met = {.room = count / SHARE + FEWEST};
    uint64_t *marks = calloc((uint64_t)1 << (bits - 6), sizeof *marks);
    met.start = malloc((uint64_t)met.room * sizeof *met.start);
    bool good = marks != NULL && met.start != NULL;
    if (good) collect(positions, count, marks, bits, &met);
    free(marks);
    int repeats = !good ? -1 : met.count ? look_up(positions, count, &met) : 0;
    if (!repeats && met.count == met.room) repeats = -1; /* there may have been others */
    free(met.start);
    return repeats;
}

void ucle_count_coordinates(const int64_t *positions, int64_t count, int shift, int bits, int counter_bits,
                            int64_t *counters) {
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (int64_t start = 0; start < count; start += AHEAD) {
        int64_t many = count - start < AHEAD ? count - start : AHEAD;
        uint64_t places[AHEAD];
        for (int64_t i = 0; i < many; i++) {
            places[i] = (uint64_t)positions[start + i] >> shift & mask;
            if (bits > counter_bits) places[i] = mix(places[i]) >> (64 - counter_bits);
            __builtin_prefetch(counters + places[i], 1);
        }
        for (int64_t i = 0; i < many; i++) counters[places[i]]++;
    }
}
