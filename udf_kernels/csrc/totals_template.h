/* Totals: where the sums of a type that needs it go on, in a wider type. Needs TOTAL; the loops of
 * sums.c call these. */

/* totals += x */
HOT trouble gather(size_t n, const void *from, void *restrict to) {
    const S *x = from;
    TOTAL *totals = to;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) totals[i] = TOTAL_ADD(totals[i], (TOTAL)x[i]);
    return bad;
}

/* into += from, both totals */
HOT trouble join_totals(size_t n, const void *from, void *restrict to) {
    const TOTAL *x = from;
    TOTAL *totals = to;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) totals[i] = TOTAL_ADD(totals[i], x[i]);
    return bad;
}

/* out = totals + x, rounded or refused */
HOT trouble narrow(size_t n, const void *wide, const void *from, void *to) {
    const TOTAL *totals = wide;
    const S *x = from;
    S *out = to;
    trouble bad = 0;
    for (size_t i = 0; i < n; i++) {
        TOTAL total = TOTAL_ADD(totals[i], (TOTAL)x[i]);
        out[i] = (V)total;
        if (TOTAL_IS_OUTSIDE(total)) bad |= OVERFLOWS;
    }
    return bad;
}
