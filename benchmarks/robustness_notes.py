"""The notes below the tables of `benchmarks.robustness`, and on those of the paper."""

from __future__ import annotations

SETTING = """\
Sparse inputs are tables of entries, dense ones arrays from memory; a time is that of one
execution, loading included. A plan that takes ten times as long as the chosen one is
interrupted (TLE); one that takes three times as long is run once."""

GREEDY_NOTES = f"""\
{SETTING} The paper's constants are the profile `paper` with its estimates; the plan that a search
picks under them runs on this engine like any other. Searches that pick the same plan show the
same time.

What differs from the paper. Published times are seconds on PostgreSQL with kernels of TACO, on
another machine; only ratios compare. There greedy search loses a factor of four or so on every
data set, here nothing. Greedy search goes wrong where the cheapest way to make a tensor is not
the way its reader wants it. In the paper's prototype inputs cost nothing in any layout, so that
the first steps of greedy search are free to pick what later steps have to repartition. Here
inputs lie in tables of entries already, and reading them in another layout has its price: X, the
first operand of every program, draws both searches to the same start, and what is cheapest to
make from there is what the next step reads. (With constants that were not fitted to measured times
greedy search lost 1.9 times on the largest graph.) Dense attention fits on this machine's disk as
it never leaves memory. The paper's constants charge a byte and a floating point operation alike,
15 of which are a tuple. That makes dense products of long vectors look no cheaper than single dot
products; on this engine, which batches them, they are by far, and dense attention takes 5 to 9
times as long under those constants."""

CONSTANTS_NOTES = f"""\
C_xfer stands for what is charged by the byte (`transfer`, `write`, `state`), C_kernel for
floating point operations (`flop`, `dot`, `gemm`), C_fixed for tuples and groups (`fixed`, `scan`,
`group`, `position`). The prices of a pipeline and of a temporary table, `step` and `statement`,
have no counterpart in the paper and stay. {SETTING}

What differs from the paper. There every change of a constant changes the plan and its time,
between 0.7 and 5.3 times; here nearly all leave the plan as it is. The paper's three constants
trade one cost for another that is about as large. The engine's prices lie further apart: a hash
probe costs as much as thousands of bytes or hundreds of multiplications, so that ten times more
or less of one seldom turns the order around. Where it does on a small and sparse graph, as with
ten times the price of tuples in graph convolution, entries are given up for arrays that are mostly
zeros, and the plan takes more than four times as long: as bad as the worst of the paper. The
paper's finding that a tenth of C_xfer is better than the value that was chosen for it does not
recur; the constants here were fitted to measured times."""

NOISE_NOTES = f"""\
Means of ten searches whose every estimate (the size of a tensor, of a layout of it, of a
join, of an aggregation) is multiplied by a Gamma draw of its own; how many of them chose the plan
of the search without noise, and how many were interrupted, which do not count in the mean.
{SETTING}

What differs from the paper. There Γ(1, 1) costs nothing at all; here it leaves the plan in five
to ten of ten searches and costs up to half as much again. The program is written out in both of its
layers, which gives four million decompositions, many of which are close to each other; and sizes of
inputs, which the search knows exactly otherwise, are perturbed as well. The times that the paper
prints are a hundred times as long and may hold more that is the same in all plans, such as
PostgreSQL's own work on single tuples. Times here rise with the variance. In the paper Γ(1/3, 3) is
worse than Γ(1/10, 10), which it calls interesting itself; with ten draws of so skewed a
distribution, most of which are nearly zero, it may well be chance: a draw that makes one estimate
tiny hides one bad choice, and if all are tiny nothing is compared with anything."""
