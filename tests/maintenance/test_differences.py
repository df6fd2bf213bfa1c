"""Sums of products that grow by what their factors differ by."""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.differences import Difference, update

GROWN = {"A": Difference("dA", True), "B": Difference("dB", True)}


def difference(text: str, changed: str = "A", fresh: str = "", **options: bool) -> str | None:
    """Return the expression of a statement's difference; None if it has none."""
    (statement,) = parse_program(text)
    own = {name: GROWN[name] for name in changed if name in GROWN}
    found = update(
        statement,
        "old",
        own,
        dict.fromkeys(changed),
        str.lower,
        lambda name: options.get("zero", True),
        exact=options.get("exact", False),
        fresh=fresh,
    )
    return None if found is None else statement_text(found.statements[0]).partition(" = ")[2]


def test_products_of_changed_factors() -> None:
    assert difference("T[i,k] += A[i,j] * B[j,k]") == "sum[j](dA[i,j] * B[j,k])"
    assert difference("T[i,k] += A[i,j] * B[j,k]", "AB") == (
        "sum[j](dA[i,j] * B[j,k]) + sum[j](A[i,j] * dB[j,k]) - sum[j](dA[i,j] * dB[j,k])"
    )
    assert difference("T[i] += A[i,j] * A[j,i]") == (
        "sum[j](dA[i,j] * A[j,i]) + sum[j](A[i,j] * dA[j,i]) - sum[j](dA[i,j] * dA[j,i])"
    )
    assert difference("T[] += 2 * A[i,j]") == "sum[i,j](2 * dA[i,j])"
    assert difference("T[j,i] = A[i,j]") == "dA[i,j]"


def test_functions_of_new_entries() -> None:
    assert difference("n[i] count= A[i,j] > 2", fresh="A") == "sum[j](int64(bool(2 < dA[i,j])))"
    assert difference("n[i] count= A[i,j] > 2") is None  # there may have been others before
    assert difference("n[i] count= A[i,j] > -1", fresh="A") is None  # nothing counts, too
    assert difference("T[i] += A[i,j] ^ 2 * B[j,i]", fresh="A") == "sum[j](dA[i,j] ^ 2 * B[j,i])"
    assert difference("T[i] += A[i,j] * relu(B[j,i])") == "sum[j](dA[i,j] * relu(B[j,i]))"
    assert difference("T[i] += A[i,j] / B[j,i]", fresh="A") is None  # which may be 0
    assert difference("T[i] += (A[i,j] + B[j,i]) * 2", fresh="A") is None


@pytest.mark.parametrize(
    ("text", "changed", "options"),
    [
        ("T[i] max= A[i,j]", "A", {}),
        ("T[i] += relu(A[i,j])", "A", {}),
        ("T[i] += A[i,j] + B[i,j]", "A", {}),
        ("T[i] += A[i,j] * x[j]", "Ax", {"exact": True}),  # nothing says by how much x differs
        ("T[i] += A[p[i],j]", "Ap", {}),
        ("T[i] += A[i,j]", "A", {"zero": False}),
        ("T[] += A[i,j] * A[j,k] * A[k,l] * A[l,i]", "A", {}),
        ("T[i] += x[i]", "A", {}),
    ],
)
def test_what_has_no_difference(text: str, changed: str, options: dict[str, bool]) -> None:
    assert difference(text, changed, **options) is None


def test_digits_come_back_when_rows_are_removed() -> None:
    for kind in ("DOUBLE", "BIGINT"):
        with ucle.connect() as connection:
            connection.execute(f"CREATE TABLE A (i BIGINT, j BIGINT, val {kind})")
            connection.execute(
                "INSERT INTO A VALUES (0, 0, 1), (0, 1, 10000000000000000), (1, 1, 2)"
            )
            program = ucle.einsum_program("T[i] += A[i,j]", A="A", database=connection)
            kept = program.maintain("sums", connection)
            connection.execute("DELETE FROM A WHERE val > 5")
            (report,) = kept.refresh(way="differences").tensors
            assert report.way == ("affected keys" if kind == "DOUBLE" else "differences")
            assert connection.sql("FROM sums ORDER BY i").fetchall() == [(0, 1), (1, 2)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT"])
def test_sums_grow(kind: str) -> None:
    rng = np.random.default_rng(7)
    with ucle.connect() as connection:
        for name in "AB":
            connection.execute(f"CREATE TABLE {name} (i BIGINT, j BIGINT, val {kind})")
        text = "T[i,k] += A[i,j] * B[j,k]; s[] += T[i,k] * T[i,k]"
        for name in "AB":
            connection.execute(f"INSERT INTO {name} VALUES (0, 0, 1), (7, 7, 1)")
        program = ucle.einsum_program(text, A="A", B="B", database=connection, outputs=["T", "s"])
        kept = program.maintain("sums", connection, append_only=["A"])
        ways = set()
        for _ in range(6):
            for name in "AB":
                row = [int(x) for x in (*rng.integers(0, 8, 2), rng.integers(1, 5))]
                connection.execute(
                    f"INSERT INTO {name} SELECT * FROM (SELECT ? AS i, ? AS j, ? AS val) "
                    f"ANTI JOIN {name} USING (i, j)",
                    row,
                )
            ways |= {x.way for x in kept.refresh(way="differences").tensors}
            with program.recompile().execute() as result:
                for name, table in kept.outputs.items():
                    found = sorted(connection.table(table).fetchall())
                    rows = "nonfill" if name == "T" else "all"
                    assert found == sorted(result[name].shown(rows=rows).fetchall())
        assert "differences" in ways


def test_a_number_that_was_zero() -> None:
    """The row of a kept number is there whatever it is; an entry is one that differs from 0."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, val::BIGINT AS val FROM "
            "(VALUES (0, 0, -1), (1, 0, -3), (2, 1, 0), (2, 2, 1), (1, 2, 3)) t(i, j, val)"
        )
        text = "t[] += A[i,j] * A[j,k] * A[i,k]; c[i] += A[i,j] * A[j,k] * A[i,k]"
        program = ucle.einsum_program(text, A="A", database=connection)
        kept = program.maintain("kept", connection)
        assert connection.sql("FROM kept_t").fetchall() == [(0,)]
        connection.execute("INSERT INTO A VALUES (0, 1, -2), (1, 1, 3)")
        kept.refresh(way="differences")
        assert connection.sql("FROM kept_t").fetchall() == [(101,)]
        assert connection.sql("FROM kept_c ORDER BY i").fetchall() == [(0, 1), (1, 99), (2, 1)]
