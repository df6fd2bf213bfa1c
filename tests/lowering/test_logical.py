"""The logical program: what statements become, and what each pass over it keeps as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_programs.product_chains import chain_case

import ucle
from ucle.ir.contraction_trees import every_tree
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.lowering.contract import contract
from ucle.lowering.find_inlinable import find_merges
from ucle.lowering.inline_statements import KnownMerges, merge
from ucle.lowering.logical import MOST_MAPS, Contraction, LogicalProgram
from ucle.lowering.pairwise import KnownPairwise
from ucle.lowering.share_subexpressions import SharedVertices
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.operators import COMBINES, SUM
from ucle.pipeline import plan_cache
from ucle.stats.estimate import MeasuredInputs
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case, random_case

PROGRAMS = [(draw, seed) for draw in (chain_case, random_case) for seed in range(25)]


def source_of(text: str, **options: Any) -> ResolvedProgram:
    """The lowered source of a program: capitals are square matrices, lower case vectors."""
    rng = np.random.default_rng(0)
    names = [name for name in "ABCDabcd" if f"{name}[" in text]
    inputs = {x: rng.random((4, 4) if x.isupper() else 4) for x in names}
    front = ucle.einsum_program(text, inputs=inputs, **options).compiled.front
    assert front is not None
    return front.source


def logical_of(text: str, **options: Any) -> LogicalProgram:
    return syntax_to_logical(source_of(text, **options))


def all_merged(logical: LogicalProgram) -> LogicalProgram:
    return merge(logical, find_merges(logical, contract(logical).types, ()))


def steps_of(logical: LogicalProgram) -> list[Contraction]:
    return [step for statement in logical.statements for step in statement.steps]


def same_outputs(program: Program, logical: LogicalProgram) -> None:
    """Check that outputs have the names, shapes and types of the logical program."""
    assert program.outputs == logical.outputs
    for name in program.outputs:
        found, expected = program.types[name], logical.types[name]
        assert found.axes == expected.axes, name
        assert found.dtype is expected.dtype, name
        np.testing.assert_allclose(found.fill, expected.fill, rtol=1e-6, err_msg=name)
        assert found.entries.finite == expected.entries.finite, name


# Syntax to logical


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("T[i,j] = A[i,j]", []),
        ("T[i] = relu(A[i,i])", ["T.1 = A[i,i]"]),
        ("T += A[i,i]", ["T.1 = sum[i](A[i,i])"]),
        ("T[i] max= exp(A[i,j])", ["T.1 = max[j](exp(A[i,j]))"]),
        ("T[i,j] = A[i,j] - a[i]", ["T.1 = A[i,j] - a[i]"]),
        ("T[i] += A[i,j] - a[i]", ["T.1 = sum[j](A[i,j] - a[i])"]),
        (
            "T[i] += 2 * A[i,j] * (B[j,k] * c[k] * 3)",
            ["T.1 = sum[j,k](2 * A[i,j] * B[j,k] * c[k] * 3)"],
        ),
        (
            "T[i] = sum[k](sum[j](A[i,j] * B[j,k])) - a[i]",
            ["T.1 = sum[k,j](A[i,j] * B[j,k])", "T.2 = T.1[i] - a[i]"],
        ),
        ("T = sum[i](sum[k](sum[j](A[i,j] * B[j,k])))", ["T.1 = sum[i,k,j](A[i,j] * B[j,k])"]),
        (
            "T = max[i](min[j](A[i,j] + a[i]))",
            ["T.1 = min[j](A[i,j] + a[i])", "T.2 = max[i](T.1[i])"],
        ),
        (  # the logarithm of 0 is infinite: nothing is summed before all is joined
            "T[i] += log(A[i,j]) * B[j,k] * c[k]",
            ["T.1 = log(A[i,j]) * B[j,k]", "T.2 = sum[j,k](T.1[i,j,k] * c[k])"],
        ),
    ],
)
def test_statements_become_steps(text: str, steps: list[str]) -> None:
    logical = logical_of(text)
    assert [str(step) for step in steps_of(logical)] == steps


def test_a_chain_keeps_what_the_text_says() -> None:
    (step,) = steps_of(logical_of("T[i] += 2 * A[i,j] * (B[j,k] * c[k] * 3)"))
    assert step.is_chain
    assert step.outermost
    assert step.written == (0, (1, 2))
    assert [(x.place, x.value) for x in step.constants] == [(0, 2), (3, 3)]
    assert [str(number) for number in step.maps] == ["2 * x", "3 * x"]
    assert [label.name for label in step.labels] == ["i"]


def test_many_maps_become_steps_of_their_own() -> None:
    deep = f"T[i] = {'exp(' * (2 * MOST_MAPS)}a[i]{')' * (2 * MOST_MAPS)}"
    logical = logical_of(deep, nonfinite="sparse")
    assert [len(step.factors[0].maps) for step in steps_of(logical)] == [MOST_MAPS, MOST_MAPS]
    chain = logical_of("T[i] = a[i]" + " * 2" * (2 * MOST_MAPS))
    assert [len(v.maps) for v in contract(chain).program.vertices] == [2 * MOST_MAPS]


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex128"])
def test_second_powers_are_squares(routes: Routes, dtype: str) -> None:
    """As in NumPy, whose squares are exact to the last bit; other powers stay what they are."""
    written = [steps_of(logical_of(f"T[i] += {x} * b[i]")) for x in ("a[i] ^ 2", "square(a[i])")]
    assert [str(step) for step in written[0]] == [str(step) for step in written[1]]
    a = (np.random.default_rng(0).normal(size=7) * 3).astype(dtype)
    inputs = {"a": a, "n": np.arange(3)}
    text = "S[i] = a[i] ^ 2; T[i] = a[i] ^ 3; U[j] = 2 ^ n[j]; V[j] += a[i] ^ 2 * n[j]"
    check_everywhere(Case(text, inputs, inputs, {}), routes, seed=0)
    for connection in routes.values():
        program = ucle.einsum_program(text, inputs=inputs, database=connection)
        assert np.array_equal(program.execute()["S"].to_numpy(), a**2)


def test_a_program_is_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever orders are looked at: they share one logical program."""
    sources: list[ResolvedProgram] = []
    lower = syntax_to_logical

    def noted(source: ResolvedProgram) -> LogicalProgram:
        sources.append(source)
        return lower(source)

    monkeypatch.setattr(plan_cache, "syntax_to_logical", noted)
    text = "P[i,k] += A[i,j] * B[j,k] * a[j]\nQ[i,l] += P[i,k] * C[k,l] * b[l]"
    arrays = {x: np.ones((4, 4) if x.isupper() else 4) for x in "ABCab"}
    ucle.einsum_program(text, inputs=arrays)
    assert len(sources) == 1


def test_ill_formed_programs_are_refused() -> None:
    logical = logical_of("T[i] += A[i,j] * b[j]")
    (statement,) = logical.statements
    with pytest.raises(AssertionError):
        replace(logical, statements=(replace(statement, steps=()),))
    with pytest.raises(AssertionError):
        replace(logical, inputs=("A",))
    with pytest.raises(AssertionError):
        replace(logical, statements=(replace(statement, labels=()),))


# Every pass


@pytest.mark.parametrize(("draw", "seed"), PROGRAMS)
def test_types_and_outputs_stay_from_pass_to_pass(draw: Any, seed: int, native: Any) -> None:
    case = draw(seed)
    case.create_tables(native)
    compiled = case.compile(native, association="as-written").compiled
    source: ResolvedProgram = compiled.front.source
    measured = MeasuredInputs(compiled.statistics.measured, compiled.statistics.estimator)
    case.drop_tables(native)
    logical = syntax_to_logical(source)
    written = contract(logical)
    for statement in logical.statements:  # exactly those that the steps were given
        assert written.types[statement.target] == logical.types[statement.target]
    same_outputs(written.program, logical)
    same_outputs(contract(logical, measured=measured).program, logical)
    merged = all_merged(logical)
    assert merged.outputs == logical.outputs
    assert all(step.name in merged.types for step in steps_of(merged))
    same_outputs(contract(merged).program, logical)
    same_outputs(contract(merged, measured=measured).program, logical)


# Merging


def test_a_chain_takes_in_another() -> None:
    logical = logical_of(
        "P[i,k] += 2 * A[i,j] * B[j,k] * 3\nQ[j] += 5 * C[j,i] * P[j,i] * 7 * D[j,j]"
    )
    merged = all_merged(logical)
    assert [str(step) for step in steps_of(merged)] == [
        "Q.1 = D[j,j]",
        "Q.2 = sum[i,j_1](5 * C[j,i] * 2 * A[j,j_1] * B[j_1,i] * 3 * 7 * Q.1[j])",
    ]
    assert steps_of(merged)[-1].written == ((0, (1, 2)), 3)
    (statement,) = merged.statements
    assert statement.reads == ("C", "A", "B", "D")
    assert [label.name for label in statement.own_labels] == ["i", "j_1"]


def test_a_diagonal_of_what_is_merged() -> None:
    """The labels of the outer statement make diagonals of what the inner one reads."""
    logical = logical_of("P[i,k] += exp(A[i,k]) * B[i,j] * C[j,k]\nQ += P[i,i] * d[i]")
    merged = all_merged(logical)
    diagonal, product = steps_of(merged)
    assert diagonal.is_diagonal
    assert str(diagonal).endswith("= A[i,i]")
    assert str(product) == f"Q.2 = sum[i,j](exp({diagonal.name}[i]) * B[i,j] * C[j,i] * d[i])"


@pytest.mark.parametrize(
    ("mask", "factor", "product"),
    [
        ("(A[i,j] != 0)", "A[i,j]", "A[i,j] * B[i,k] * C[k,j]"),
        ("bool(A[i,j])", "A[i,j]", "A[i,j] * B[i,k] * C[k,j]"),
        ("(A[i,j] != 0)", "relu(A[i,j])", "relu(A[i,j]) * B[i,k] * C[k,j]"),
        ("(A[i,j] != 1)", "(A[i,j] - 1)", "(A[i,j] - 1) * B[i,k] * C[k,j]"),
        ("(A[i,j] != 1)", "A[i,j]", "A[i,j] * bool(A[i,j] != 1) * B[i,k] * C[k,j]"),
        ("(A[i,j] > 0)", "A[i,j]", "A[i,j] * bool(0 < A[i,j]) * B[i,k] * C[k,j]"),
        ("(A[j,i] != 0)", "A[i,j]", "A[i,j] * bool(A[j,i] != 0) * B[i,k] * C[k,j]"),
        ("(A[i,j] != 0)", "cos(A[i,j])", "cos(A[i,j]) * bool(A[i,j] != 0) * B[i,k] * C[k,j]"),
        ("(D[i,j] != 0)", "A[i,j]", "A[i,j] * bool(D[i,j] != 0) * B[i,k] * C[k,j]"),
    ],
)
def test_the_mask_of_a_factor_is_left_out(mask: str, factor: str, product: str) -> None:
    text = f"T[i,j] += {mask} * B[i,k] * C[k,j]\nS[i] += {factor} * T[i,j]"
    (step,) = steps_of(all_merged(logical_of(text)))
    assert str(step) == f"S.1 = sum[j,k]({product})"


def test_what_was_merged_is_remembered() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]\nQ[i,l] += P[i,k] * C[k,l]\nR[i] += Q[i,l] * d[l]"
    logical = logical_of(text)
    known = KnownMerges()
    merges = find_merges(logical, contract(logical).types, (), known)
    assert merges == {"P": "Q", "Q": "R"}
    once = merge(logical, merges, known)
    again = merge(logical, merges, known)
    assert once == merge(logical, merges)
    assert once.statements[0] is again.statements[0]


def test_programs_with_nothing_merged_are_the_same() -> None:
    logical = logical_of("P[i,k] += A[i,j] * B[j,k]\nQ[i,l] += P[i,k] * C[k,l]")
    assert merge(logical, {}) == logical


# Sharing


def test_what_is_shared_is_read_under_other_labels() -> None:
    i, j = Label("i", 2), Label("j", 3)
    shared = SharedVertices()
    type_ = TensorType((i, j))
    mult, sub = COMBINES["mult"], COMBINES["sub"]
    one, other = Operand("A", (i,)), Operand("B", (j,))
    shared.add(Vertex(NamedTensor("T", type_), (one, other), (i, j), mult))
    x, y = Label("x", 2), Label("y", 3)
    pair = Operand("B", (y,)), Operand("A", (x,))
    assert shared.find(Vertex(NamedTensor("U", type_), pair, (y, x), mult)) == Operand("T", (x, y))
    assert shared.find(Vertex(NamedTensor("U", type_), pair, (y, x), sub)) is None
    assert shared.find(Vertex(NamedTensor("U", type_), pair, (x,), mult, reduce=SUM)) is None
    assert len(shared) == 1


def test_products_of_a_tensor_with_itself_are_shared() -> None:
    """Whichever of the two operands stands on the left."""
    i, j, k = (Label(name, 2) for name in "ijk")
    shared, type_ = SharedVertices(), TensorType((i, j))
    mult, sub = COMBINES["mult"], COMBINES["sub"]
    one, other = Operand("A", (i, j)), Operand("A", (j, k))
    shared.add(Vertex(NamedTensor("T", type_), (one, other), (i, k), mult, reduce=SUM))
    assert shared.find(
        Vertex(NamedTensor("U", type_), (other, one), (k, i), mult, reduce=SUM)
    ) == Operand("T", (i, k))
    x, y = Operand("A", (k, j)), Operand("A", (j, i))
    again = Vertex(NamedTensor("U", type_), (y, x), (i, k), mult, reduce=SUM)
    assert shared.find(again) == Operand("T", (k, i))
    apart = Operand("A", (i, j)), Operand("A", (k, j))
    assert shared.find(Vertex(NamedTensor("U", type_), apart, (i, k), mult, reduce=SUM)) is None
    shared.add(Vertex(NamedTensor("V", type_), (one, other), (i, j, k), sub))
    assert shared.find(Vertex(NamedTensor("U", type_), (other, one), (i, j, k), sub)) is None


def test_common_subexpressions_are_computed_once() -> None:
    text = "P[i,k] = exp(A[i,k]) + B[k,i]\nQ[k,i] = (B[k,i] + exp(A[i,k])) * exp(A[k,i])"
    program = contract(logical_of(text, outputs=["P", "Q"])).program
    assert [len(v.inputs) for v in program.vertices] == [1, 2, 2]
    assert program.vertices[-1].name == "Q"


def test_reads_at_other_places_are_made_once(routes: Routes) -> None:
    """Reads that are statements keep their names; labels of other sizes make other reads."""
    text = (
        "P[i] = a[i+1] * i; Q[l,j] = a[j+1] - j; R[i] = a[i+1]; S[i] = a[i+1]; "
        "T[j] = a[j+1] + B[j+1,j+1]; U[x,y] = B[y,x] * y * when(x < y, a[x]); V[k] = k + a[k]; "
        "W[i] = B[p[i],i]; X[i,h] = B[p[i],i] * h"
    )
    rng = np.random.default_rng(0)
    arrays = {"a": rng.random(4), "B": rng.random((4, 4)), "p": np.array([1, 0, 3, 1])}
    case = Case(text, arrays, arrays, {"l": 2, "h": 4})
    vertices = case.compile(routes["native"]).compiled.program.vertices
    made = sorted(vertex.name for vertex in vertices if vertex.index is not None)
    assert made == ["B_at", "Q", "R", "S", "U_mask", "a_at", "i_value", "p_hits", "y_value"]
    check_everywhere(case, routes, seed=0, sample=3)


# Contracting


@pytest.mark.sample(12)
@pytest.mark.parametrize("tree", list(every_tree(4)))
def test_what_trees_have_in_common_is_remembered(tree: Any) -> None:
    """And it changes nothing."""
    logical = logical_of("T[i,l] += A[i,j] * B[j,k] * C[k,l] * D[l,i]")
    known = KnownPairwise()
    contract(logical, known=known)
    trees = {("T", 0): tree}
    found = contract(logical, trees, known=known)
    assert found == contract(logical, trees)
    assert [product.tree for product in found.products] == [tree]
    assert len(found.program.vertices) == 3
    same_outputs(found.program, logical)


def test_labels_are_aggregated_as_soon_as_no_other_factor_needs_them() -> None:
    text = "T[i] += A[i,j] * B[j,k] * C[l,i]"
    program = contract(logical_of(text)).program
    assert [str(vertex) for vertex in program.vertices] == [
        "T_1[j] += B[j,k]",
        "T_2[i] += C[l,i]",
        "T_3[i] += A[i,j] * T_1[j]",
        "T[i] = T_3[i] * T_2[i]",
    ]
