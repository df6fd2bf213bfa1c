"""Mistakes in functions of whole matrices, and in what follows from them.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

TESTS = "tests/lazy/test_linear_algebra.py"
MAPS = "tests/language/test_matrix_maps.py"

LINEAR_ALGEBRA: tuple[Mutation, ...] = (
    Mutation(
        "every-result-is-the-first",
        "ucle/language/lift_scans.py",
        "places = *others, Affine((), number), *matrix",
        "places = *others, Affine((), 0), *matrix",
        "R of a QR decomposition is Q",
        (f"{MAPS}::test_every_decomposition[E[a,i] = qr_r[i,a](W[i,a])]",),
    ),
    Mutation(
        "a-factorisation-for-each-result",
        "ucle/language/lift_scans.py",
        "if key not in self.known:",
        "if key not in self.known or number:",
        "a matrix is decomposed once for each result",
        (f"{MAPS}::test_a_factorisation_is_computed_once",),
    ),
    Mutation(
        "parts-of-keys-in-another-order",
        "sqlgen/scans.py",
        "if place + 1 < len(sizes):",
        "if place == 0:",
        "of keys, the rows of a part are those of others",
        (f"{MAPS}::test_every_decomposition[E[i,a] = qr_q[i,a](W[i,a])]",),
    ),
    Mutation(
        "squares-of-any-shape",
        "ucle/ir/axis_functions.py",
        "return self is MatrixShape.ANY or rows == columns",
        "return True",
        "that a matrix is not square is said when it is computed",
        (f"{MAPS}::test_refused[E[u,i] = inv[u,i](b[u,i])-BoundError-square]",),
    ),
    Mutation(
        "sides-in-another-order",
        "ucle/language/lift_scans.py",
        "wanted = *others, call.row, *own",
        "wanted = *others, *own, call.row",
        "the right-hand sides of a system are read as its equations",
        (f"{TESTS}::test_systems[shapes2-float64]",),
    ),
    Mutation(
        "missing-sides-left-out",
        "ucle/plan/plan_program.py",
        "right if has_every_tuple(right, self._relations) else Densify(right)",
        "right",
        "a system whose right-hand side is not stored has no solution",
        (f"{MAPS}::test_sides_that_are_not_stored",),
    ),
    Mutation(
        "unknowns-for-equations",
        "ucle/lazy/matrices.py",
        "(unknowns,) = (name for name in names[-2:] if name != equations)",
        "equations, unknowns = names[-2:]",
        "right-hand sides along the second axis are taken for those along the first",
        (f"{MAPS}::test_names_of_axes",),
    ),
    Mutation(
        "determinants-without-sign",
        "ucle/lazy/matrices.py",
        "sign(pivots).prod(-1)",
        "sign(pivots).max(-1)",
        "the sign of a determinant is that of its greatest pivot",
        (f"{TESTS}::test_determinants_that_would_overflow",),
    ),
    Mutation(
        "complete-with-the-first-columns",
        "ucle/lazy/factorisations.py",
        "crop_axis(completed.lazy, vectors.ndim - 1, columns, rows - columns)",
        "crop_axis(completed.lazy, vectors.ndim - 1, 0, rows - columns)",
        "full left singular vectors are there twice",
        (f"{TESTS}::test_factorisations[shape6-float64]",),
    ),
    Mutation(
        "tiny-singular-values-inverted",
        "ucle/lazy/least_squares.py",
        "kept = values > limit",
        "kept = values > 0",
        "rounding errors of singular matrices decide about pseudoinverses",
        (f"{TESTS}::test_tolerances_of_each_matrix",),
    ),
    Mutation(
        "ranks-of-the-other-tolerance",
        "ucle/lazy/least_squares.py",
        "return greatest * _each(rtol)",
        "return _each(rtol)",
        "a relative tolerance is an absolute one",
        (f"{TESTS}::test_tolerances_of_each_matrix",),
    ),
    Mutation(
        "norms-along-the-last-axes",
        "ucle/lazy/linear_algebra.py",
        "values = svdvals(Tensor(permute_axes(x.lazy, [*kept, *places])))",
        "values = svdvals(x)",
        "norms of singular values are along the last two axes",
        (f"{TESTS}::test_norms_of_singular_values[2]",),
    ),
    Mutation(
        "covariances-of-all-observations",
        "ucle/lazy/covariances.py",
        "lost = 1 - bool(bias) if ddof is None else ddof",
        "lost = 0 if ddof is None else ddof",
        "covariances are those of whole populations",
        (f"{TESTS}::test_covariances[shape4-True]",),
    ),
    Mutation(
        "correlations-of-one-deviation",
        "ucle/lazy/covariances.py",
        "plain / deviations[..., :, None] / deviations[..., None, :]",
        "plain / deviations[..., :, None] / deviations[..., :, None]",
        "correlations are divided by the deviation of one variable",
        (f"{TESTS}::test_covariances[shape4-True]",),
    ),
)
