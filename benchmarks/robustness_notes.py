"""The notes below the tables of `benchmarks.robustness`, and on those of the paper."""

from __future__ import annotations

SETTING = """\
Sparse inputs are tables of entries, dense inputs are arrays from memory. A time is that of one
execution, including loading. A plan that takes ten times as long as the chosen one is interrupted
(TLE, time limit exceeded); one that takes three times as long runs only once."""

GREEDY_NOTES = f"""\
{SETTING}
"The paper's constants" are the profile `paper`, with the paper's estimates. The plans that a
search chooses with them run on this engine, like all others. Searches that choose the same plan
show the same time.

What differs from the paper. The published times are seconds on PostgreSQL with TACO kernels, on
another machine, so only ratios can be compared. In the paper, greedy search loses a factor of
about four on every data set; here, it loses nothing. Greedy search goes wrong if the cheapest way
to compute a tensor does not lead to the layout in which the tensor is read. In the paper's
prototype, inputs cost nothing in any layout, so the first steps of greedy search may choose
layouts that later steps have to repartition. Here, inputs are tables of entries, and reading them
in another layout has a price. Therefore, X, the first operand of every program, leads both
searches to the same start, and the layout that is cheapest to compute from there is the one that
the next step reads. (With constants that were not fitted to measured times, greedy search lost a
factor of 1.9 on the largest graph.) Dense attention fits on this machine's disk, because it never
leaves memory; the paper reports OOD for the largest graph. The paper's constants charge as much
for a byte as for a floating-point operation, and 15 times as much for a tuple. With them, dense
products of long vectors look no cheaper than single dot products. This engine batches such
products, which makes them far cheaper, so dense attention takes 5 to 9 times as long with the
plans that the paper's constants choose."""

CONSTANTS_NOTES = f"""\
C_xfer stands for the prices of a byte (`transfer`, `write`, `state`), C_kernel for those of a
floating-point operation (`flop`, `dot`, `gemm`), and C_fixed for those of tuples and groups
(`fixed`, `scan`, `group`, `position`). The prices of a pipeline and of a temporary table, `step`
and `statement`, have no counterpart in the paper and stay the same.
{SETTING}

What differs from the paper. In the paper, every change of a constant changes the plan, whose time
is then 0.7 to 5.3 times as long. Here, nearly every change leaves the plan as it is. With the
paper's three constants, a plan trades one cost for another that is about as large. The prices of
this engine are further apart: a hash probe costs as much as thousands of bytes or hundreds of
multiplications, so even if one of these prices is ten times too high or too low, the order of the
plans seldom changes. It does change on a small, sparse graph: if tuples cost ten times as much,
graph convolution stores entries in arrays that are mostly zeros, and takes more than four times as
long, which is as bad as the worst case of the paper. In the paper, a tenth of C_xfer is better
than the value that was chosen for it. That is not so here; these constants were fitted to measured
times."""

NOISE_NOTES = f"""\
For each kind of noise, ten searches ran. Every estimate in a search (the size of a tensor, of one
of its layouts, of a join, of an aggregation) was multiplied by its own random number from a Gamma
distribution. The cells show the mean time of the plans, the number of plans that were interrupted,
and, in parentheses, how many of the ten plans are the same as without noise. The mean does not
include interrupted plans.
{SETTING}

What differs from the paper. In the paper, Γ(1, 1) costs nothing at all. Here, between five and ten
of the ten searches still choose the same plan, and the mean time is up to half as long again. Both
layers of the program are written out, which gives four million decompositions, many of which are
close to each other. The sizes of inputs, which the search otherwise knows exactly, are multiplied
by noise, too. The times in the paper are a hundred times as long, and may include more work that
is the same in all plans, such as PostgreSQL's own work on single tuples. Here, times rise with the
variance. In the paper, Γ(1/3, 3) is worse than Γ(1/10, 10), which the paper itself calls
interesting. This may well be chance: the distribution is so skewed that most of its ten draws are
nearly zero. If one estimate is tiny, it hides one bad choice; if all are tiny, plans can no longer
be compared."""
