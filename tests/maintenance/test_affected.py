"""The keys that a change may affect, as statements of the language."""

from __future__ import annotations

import pytest

from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.affected import (
    EVERYTHING,
    AffectedKeys,
    Mask,
    affected_in_product,
    affected_keys,
    depends_on_sizes,
)

CHANGED = {
    "A": (Mask("dA", (0, 1)),),
    "B": (Mask("dB", (0, 1)),),
    "C": (Mask("dC", (0, 1, 2)),),
    "x": (Mask("dx", (0,)),),
}


def texts(affected: AffectedKeys) -> list[str]:
    return [statement_text(each).replace("_mask", "") for each in affected.statements]


@pytest.mark.parametrize(
    ("text", "reads", "masks"),
    [
        ("T[i,m] += A[i,l] * H[l,m]", "A", ["T[i] any= dA[i,l]"]),
        ("T[i,k] += A[i,j] * B[j,k]", "AB", ["T[i] any= dA[i,j]", "T[k] any= dB[j,k]"]),
        ("T[i,j] = A[i,j] + x[i]", "Ax", ["T[i,j] = dA[i,j]", "T[i] = dx[i]"]),
        ("T[j,i] = A[i,j] + B[j,i]", "AB", ["T[j,i] = dA[i,j] or dB[j,i]"]),
        ("T[i] = x[i] - x[~(i-1)]", "x", ["T[i] = dx[i] or dx[~(i - 1)]"]),
        ("T[k] += C[i,k,i]", "C", ["T[k] any= dC[i,k,i]"]),
        ("T[i,j] = cumsum[j](A[i,j])", "A", ["T[i] any= dA[i,j]"]),
        ("T[i,r] = top_k[j,r](A[i,j])", "A", ["T[i] any= dA[i,j]"]),
        ("T[i] = x[i] / sum[j](x[j])", "x", None),
        ("T[] += A[i,j]", "A", None),
        ("T[i,j] = inv[i,j](A[i,j])", "A", None),
        ("T[i] = H[i] * 2", "A", []),
    ],
)
def test_masks(text: str, reads: str, masks: list[str] | None) -> None:
    (statement,) = parse_program(text)
    changed = {name: CHANGED[name] for name in reads}
    affected = affected_keys(statement, changed, lambda stem: stem)
    assert affected.everything is (masks is None)
    if masks is not None:
        assert texts(affected) == masks
        assert EVERYTHING not in affected.masks


def test_products_where_the_other_factor_is_or_was() -> None:
    (statement,) = parse_program("T[i,k] += A[i,j] * B[j,k]")
    one = {"A": CHANGED["A"]}
    affected = affected_in_product(
        statement, one, lambda stem: stem, lambda name: True, lambda name: True
    )
    assert affected is not None
    assert texts(affected) == ["T[i,k] any= dA[i,j] * (B[j,k] != 0)"]
    both = {"A": CHANGED["A"], "B": CHANGED["B"]}
    affected = affected_in_product(
        statement, both, lambda stem: stem, lambda name: True, lambda name: True
    )
    assert affected is not None
    assert texts(affected) == [
        "T[i,k] = any[j](dA[i,j] * (B[j,k] != 0 or dB[j,k])) "
        "or any[j](dB[j,k] * (A[i,j] != 0 or dA[i,j]))"
    ]
    affected = affected_in_product(
        statement, both, lambda stem: stem, lambda name: True, lambda name: True, fresh=["A"]
    )
    assert affected is not None  # what A was is a part of what it is
    assert texts(affected) == [
        "T[i,k] = any[j](dA[i,j] * (B[j,k] != 0 or dB[j,k])) or any[j](dB[j,k] * (A[i,j] != 0))"
    ]
    assert (
        affected_in_product(
            statement, one, lambda stem: stem, lambda name: False, lambda name: True
        )
        is None
    )


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        (
            "T[j] = 0.1 + 0.9 * sum[i](A[i,j] * H[i] / max(x[i], 1))",
            None,
            "T[j] any= dx[i] * (A[i,j] != 0) * (H[i] != 0)",
        ),
        ("T[j] += A[i,j] * H[i] / x[i]", None, None),  # which may divide by 0
        ("T[i] += relu(A[i,j] * x[j])", None, "T[i] any= dx[j] * (A[i,j] != 0)"),
        (
            "T[i,k] += A[i,j] * B[j,k] * x[j]",
            "i",
            "T[i] any= dx[j] * (A[i,j] != 0) * (B[j,k] != 0)",
        ),
        ("T[i,k] += A[i,j] * B[j,k] * x[i]", "i", "T[i] = dx[i]"),
    ],
)
def test_factors_beside_what_has_changed(
    text: str, label: str | None, expected: str | None
) -> None:
    (statement,) = parse_program(text)
    found = affected_in_product(
        statement, {"x": CHANGED["x"]}, str, lambda name: True, lambda name: True, label
    )
    assert (None if found is None else texts(found)) == (expected and [expected])


@pytest.mark.parametrize(
    ("sparse", "expected"), [("AH", " * (A[i,j] != 0) * (H[i] != 0)"), ("A", " * (A[i,j] != 0)")]
)
def test_factors_that_are_everywhere_leave_nothing_out(sparse: str, expected: str) -> None:
    (statement,) = parse_program("T[j] += A[i,j] * H[i] * x[i]")
    changed, none = {"x": CHANGED["x"]}, "x"
    found = affected_in_product(statement, changed, str, lambda name: True, sparse.__contains__)
    assert found is not None
    assert texts(found) == [f"T[j] any= dx[i]{expected}"]
    found = affected_in_product(statement, changed, str, lambda name: True, none.__contains__)
    assert found is None


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("T[i,k] += A[i,j] * B[j,k]", False),
        ("T[i,k] += A[i,j] * x[k]", False),
        ("T[i,j] = A[i,j] + x[i]", True),
        ("T[i] mean= A[i,j]", True),
        ("T[i] max= A[i,j]", True),
        ("T[i] any= A[i,j]", False),
        ("T[i,j] = A[i,j] * sum[k](B[k,j])", True),
    ],
)
def test_sizes(text: str, depends: bool) -> None:
    (statement,) = parse_program(text)
    assert depends_on_sizes(statement, lambda name: True) is depends
