/* Ends long calls when somebody presses Ctrl-C.
 *
 * DuckDB looks for interruption between chunks of rows, and its stable C API does not say whether
 * there was one. So a call that has gone on for a while listens for SIGINT itself, hands the signal
 * on to the handler that was there before (Python's, a shell's), and gives up with an error. A
 * process that ignores SIGINT or leaves it alone is left alone.
 */
#ifndef UCLE_WATCH_H
#define UCLE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct watch {
    uint64_t work; /* done so far, of about a nanosecond each */
    unsigned seen; /* interruptions before the call listened */
    bool on;
} watch;

/* A quarter of a second: no caller waits for shorter calls, which are told from longer ones by
 * counting alone. */
#define WATCH_PATIENCE ((uint64_t)1 << 28)

bool watch_look(watch *w);
void watch_end(watch *w);

/* Ends the calls that listen now, as a signal does. Those that begin to listen later do not hear it. */
void watch_interrupt(void);

/* Whether to give up, asked before so much more work. */
static inline bool watch_stops(watch *w, uint64_t work) {
    w->work += work;
    return w->work >= WATCH_PATIENCE && watch_look(w);
}

#endif
