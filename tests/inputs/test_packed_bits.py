"""Truth values packed into words: programs answer as for the truth values themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle import errors
from ucle.foundation.bit_words import mask_words
from ucle.language.packed_bits import over_words
from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import statement_text

Routes = Mapping[str, duckdb.DuckDBPyConnection]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

PROGRAMS = {
    "erosion": """
        V[i,j] = A[~(i-1),j] and A[i,j] and A[~(i+1),j]
        E[i,j] = V[i,~(j-1)] and V[i,j] and V[i,~(j+1)]
    """,
    "dilation": "E[i,j] = A[i,~(j-1)] or A[i,j] or A[i,~(j+1)] or A[~(i-1),j]",
    "far": "E[i,j] = A[i,~(j-5)] & A[i,~(j+70)] | A[i,~(j-64)] xor A[~(i+1),~(j-129)]",
    "edges": "E[i,j] = A[i,j] and not A[i,~(j-1)]; n += E[i,j]; E2[i,j] = E[i,j] xor B[i,j]",
    "complement": "E[i,j] = not A[i,j]; F[i,j] = E[i,~(j-1)] and A[i,j]",
    "sums": """
        n += A[i,j]; m[i] += A[i,j] and B[i,j]; k += not A[i,j]; s[i] = sum[j](A[i,j] or B[i,j])
    """,
    "decisions": """
        t[i] = any[j](A[i,j] and B[i,j]); u = all[i,j](A[i,j] or not A[i,j])
        v = all[i,j](A[i,j])
    """,
    "others": "r[j] += A[i,j]; y[i] += A[i,j] * x[j]; g[i,k] += A[i,j] * A[k,j]; c[i] = A[i,3]",
    "mixed": "E[i,j] = A[i,j] and x[j] > 0.5; F[i,j] = A[i,j] == B[i,j]",
    "first": "p[i] = argmax[j](A[i,j]); q[i] = argmin[j](A[i,j] and B[i,j]); r = argmin[j](A[0,j])",
    "turned": "E[j,i] = A[i,j] and B[i,j]; q[i,k] = any[j](A[i,j] and B[k,j])",
}  # fmt: skip


def _pack(image: Bools, behind: bool = False) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Words of 64 bits; those behind the last position are what `behind` says."""
    length = image.shape[-1]
    padded = np.full((*image.shape[:-1], -(-length // 64) * 64), behind)
    padded[..., :length] = image
    return np.packbits(padded, axis=-1, bitorder="little").view(np.int64)


def _images(length: int, density: float = 0.7) -> tuple[Bools, Bools, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(length)
    A, B = (rng.random((6, length)) < density for _ in range(2))
    return A, B, rng.random(length)


@pytest.mark.sample(1)
@pytest.mark.parametrize("length", [1, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("program", PROGRAMS)
def test_words_answer_like_truth_values(program: str, length: int, routes: Routes) -> None:
    text = PROGRAMS[program]
    if program == "others" and length < 4:
        pytest.skip("there is no fourth column")
    A, B, x = _images(length)
    names = {s.target.tensor for s in parse_program(text)}
    given = {name: value for name, value in {"B": B, "x": x}.items() if f" {name}[" in text}
    packed = given | ({"B": ucle.bits(_pack(B), length)} if "B" in given else {})
    for connection in routes.values():
        options: dict[str, Any] = {"database": connection, "outputs": names}
        plain = ucle.einsum_program(text, A=A, inputs=given, **options)
        made = ucle.einsum_program(
            text, A=ucle.bits(_pack(A, True), length), inputs=packed, **options
        )
        with plain.execute(connection) as expected:
            for plan in [made, *made.plans(6)]:
                with plan.execute(connection) as found:
                    for name in names:
                        one, other = (r[name].to_numpy() for r in (found, expected))
                        assert one.dtype == other.dtype
                        np.testing.assert_allclose(one, other, err_msg=name)


def test_a_table_of_words(routes: Routes) -> None:
    A, _, _ = _images(100, 0.3)
    words = _pack(A)
    row, word = np.indices(words.shape)
    table = pa.table({"i": row.ravel(), "w": word.ravel(), "word": words.ravel()})
    table = table.filter(pa.array(words.ravel() != 0))
    for connection in routes.values():
        connection.register("given", table)
        connection.execute("CREATE OR REPLACE TABLE words AS FROM given").fetchall()
        connection.unregister("given")
        given = ucle.bits(ucle.table("words", ["i", "w"], "word"), 100)
        program = ucle.einsum_program(
            "n += A[i,j] and A[i,~(j-1)]; m[i] += A[i,j]", A=given, database=connection
        )
        for plan in [program, *program.plans(6)]:
            with plan.execute(connection) as result:
                assert result["n"].to_numpy() == (A[:, 1:] & A[:, :-1]).sum()
                found = result["m"].to_numpy()
                np.testing.assert_array_equal(found, A.sum(axis=1)[: len(found)])


def test_words_of_results_and_other_words() -> None:
    A, B, _ = _images(130)
    program = ucle.einsum_program(
        "E[i,j] = A[i,j] and A[i,~(j+1)]", A=ucle.bits(_pack(A), 130), outputs=["E_words"]
    )
    for image in (A, B):
        expected = image & np.pad(image, ((0, 0), (0, 1)))[:, 1:]
        with program.execute(A=_pack(image)) as result:
            np.testing.assert_array_equal(result["E_words"].to_numpy(), _pack(expected))


def test_unsigned_words() -> None:
    A, _, _ = _images(128)
    program = ucle.einsum_program("n += A[i,j]", A=ucle.bits(_pack(A).view(np.uint64), 128))
    assert program.execute()["n"].to_numpy() == A.sum()


def test_no_statement_unpacks_what_words_answer() -> None:
    text = "V[i,j] = A[i,j] and A[~(i-1),j]; E[i,j] = V[i,j] or V[i,~(j-3)]; n += E[i,j]"
    made = over_words(parse_program(text), {"A": 70}, ["n"])
    assert not any("%" in statement_text(each) for each in made.statements)
    assert made.masks == {"bits_mask": 70}
    assert mask_words(70) == [-1, 63]
    # What a result is unpacked by stands there only where it is read or returned.
    made = over_words(parse_program(text), {"A": 70}, ["n", "E"])
    assert sum("%" in statement_text(each) for each in made.statements) == 1


def test_names_that_are_taken() -> None:
    A, _, _ = _images(70)
    text = "A_words[j] += A[i,j]; bits_mask += A[i,j]; j_word = bits_mask + 1"
    names = ["A_words", "bits_mask", "j_word"]
    with ucle.einsum_program(text, A=ucle.bits(_pack(A), 70), outputs=names).execute() as result:
        np.testing.assert_array_equal(result["A_words"].to_numpy(), A.sum(axis=0))
        assert result["j_word"].to_numpy() == A.sum() + 1


@pytest.mark.parametrize(
    ("words", "length", "error"),
    [
        (np.zeros((2, 2), np.int64), 200, errors.ArgumentError),
        (np.zeros((2, 2), np.int64), 0, errors.ArgumentError),
        (np.zeros((2, 2), np.int64), True, errors.ArgumentError),
        (np.zeros((2, 2), np.int64), 1.5, errors.ArgumentError),
        (np.zeros((2, 2), np.int32), 128, errors.ValueTypeError),
        (np.zeros((), np.int64), 64, errors.ValueTypeError),
        (ucle.table("words", fill=-1), 64, errors.ArgumentError),
    ],
)
def test_wrong_words(words: Any, length: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ucle.bits(words, length)
