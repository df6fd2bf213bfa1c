"""Descriptions of tensors in schemas: followed where they are of the table, else not at all.

`CRAFTED` are descriptions that a foreign program, a later edit or an attacker may have left in a
file. Each is read by its meaning, or refused with a typed error, or the table is read as one that
has none, with a warning.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import ucle
from ucle.errors import UcleError, ValueTypeError
from ucle.inputs.metadata import KEY, read_description

ARRAY = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
"""The contents of the table by its description; without it, the last row is unknown."""

GOOD = {
    "version": 1,
    "labels": ["i", "m"],
    "bounds": [3, 2],
    "promoted": 1,
    "dtype": "float64",
    "fill": "0.0",
    "dictionaries": [],
    "order": None,
    "columns": ["i", "val"],
}
DEEP = "[" * 100_000
CRAFTED: list[Any] = [
    *(b"", b"{", b"null", b"[]", b"17", b'"text"', b"\xff\xfe", b"\x00", b"NaN", DEEP.encode()),
    *({name: absent} for name in GOOD if name not in ("order", "columns") for absent in ("-",)),
    *({"version": version} for version in (0, 2, "1", None, [], 1.5)),
    *({"labels": labels} for labels in (None, "im", ["i"], ["i", "i"], ["i", 5], [[], []], {})),
    {"bounds": None},
    {"bounds": 3},
    {"bounds": [3]},
    {"bounds": [3, 2, 1]},
    {"bounds": ["3", 2]},
    {"bounds": [3.5, 2]},
    {"bounds": [True, 2]},
    {"bounds": [-1, 2]},
    {"bounds": [None, 2]},
    {"bounds": [3, None]},
    {"bounds": [3, 10**12]},
    {"bounds": [3, 10**12], "order": [1, 0]},
    {"bounds": [2**63, 2]},
    {"bounds": [10**30, 2]},
    {"promoted": -1},
    {"promoted": 0},
    {"promoted": 2},
    {"promoted": 10**9},
    {"promoted": 1.0},
    {"promoted": True},
    {"promoted": "1"},
    {"dtype": "float16"},
    {"dtype": "float32"},
    {"dtype": "int64"},
    {"dtype": "complex128", "fill": "0j"},
    {"dtype": "object"},
    {"dtype": 5},
    {"dtype": ["float64"]},
    {"fill": 0.0},
    {"fill": ""},
    {"fill": "one"},
    {"fill": "1" * 5000},
    {"fill": None},
    {"dictionaries": None},
    {"dictionaries": 0},
    {"dictionaries": [1]},
    {"dictionaries": [-1]},
    {"dictionaries": ["i"]},
    {"dictionaries": [0]},
    {"order": [0]},
    {"order": [0, 0]},
    {"order": [0, 2]},
    {"order": ["1", "0"]},
    {"order": 1},
    {"order": {"0": 1}},
    {"columns": ["val", "i"]},
    {"columns": ["j", "val"]},
    {"columns": ["i"]},
    {"columns": "i, val"},
]


def table(noted: Any) -> pa.Table:
    arrays = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64()))
    made = pa.table({"i": pa.array([0, 1], pa.int32()), "val": arrays})
    if isinstance(noted, dict):
        fields = {name: part for name, part in {**GOOD, **noted}.items() if part != "-"}
        noted = json.dumps(fields).encode()
    return made.replace_schema_metadata({KEY: noted})


def read(given: Any, labels: str = "i,m") -> Any:
    program = ucle.einsum_program(f"B[{labels}] = A[{labels}]", A=given)
    return program.execute()["B"].to_numpy()


def test_a_good_description_is_followed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read(table(GOOD)), ARRAY)
        without_columns = {name: x for name, x in GOOD.items() if name != "columns"}
        noted = json.dumps(without_columns).encode()  # as earlier versions wrote it
        np.testing.assert_array_equal(read(table(noted)), ARRAY)
        np.testing.assert_array_equal(read(table({"order": [1, 0]})), ARRAY.T)
        assert read(table({"bounds": [5, 2]})).shape == (5, 2)
        # Without its file a later version's cannot be followed; that is no fault of the table.
        assert read(table({"version": 2})).shape == (2, 2)


def test_there_are_enough() -> None:
    assert len(CRAFTED) >= 55


@pytest.mark.sample(None)
@pytest.mark.parametrize("noted", CRAFTED, ids=lambda noted: str(noted)[:40])
def test_crafted_descriptions(noted: Any) -> None:
    later = isinstance(noted, dict) and "version" in noted
    given = table(noted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read_description(given.schema) is None
    kinds = [warning.category for warning in caught]
    assert kinds == ([] if later else [ucle.MetadataWarning])


@pytest.mark.parametrize("noted", CRAFTED[::7], ids=lambda noted: str(noted)[:40])
@pytest.mark.filterwarnings("ignore::ucle.MetadataWarning")
def test_a_table_without_its_description_is_plain(noted: Any, tmp_path: Path) -> None:
    np.testing.assert_array_equal(read(table(noted)), ARRAY[:2])
    pq.write_table(table(noted), tmp_path / "t.parquet")
    np.testing.assert_array_equal(read(str(tmp_path / "t.parquet")), ARRAY[:2])


def test_arrays_of_other_lengths_than_described() -> None:
    """Nothing of the size that is stated is made before it is seen not to be there."""
    for noted in ({"bounds": [3, 2**31 - 1]}, {"bounds": [3, 2**31 - 1], "order": [1, 0]}):
        with pytest.raises(ValueTypeError, match="does not have the shape"):
            read(table(noted))
    ragged = pa.table({"i": [0, 1, 2], "val": [[1.0, 2.0], None, [3.0]]})
    with pytest.raises(ValueTypeError, match="does not have the shape") as info:
        read(ragged.replace_schema_metadata(table({"order": [1, 0]}).schema.metadata))
    assert info.value.where == "column val, row 1"


def test_bounds_that_are_too_small() -> None:
    with pytest.raises(UcleError, match="outside its bound"):
        read(table({"bounds": [1, 2]}))


def result(fill: float = np.inf) -> pa.Table:
    """A result with key columns only, of shape (3, 4)."""
    array = np.full((3, 4), fill)
    array[1, 2], array[2, 0] = 5, 6
    tensor = ucle.tensor(ucle.table(array, fill=fill), axes=("i", "j"))
    return tensor.compute().entries()


def test_what_the_caller_states_wins() -> None:
    made = result()
    assert read(made, "i,j")[0, 0] == np.inf
    assert read(ucle.table(made, fill=0.0), "i,j")[0, 0] == 0
    assert read(ucle.table(made, fill=0), "i,j").shape == (3, 4)
    whole = read(ucle.table(made, dtype="float32"), "i,j")
    assert whole.dtype == np.float32
    assert whole[0, 0] == np.inf


def test_a_changed_result_is_not_what_it_was() -> None:
    made = result()
    noted = made.schema.metadata
    halved = pc.divide(made["val"], 4.0)
    changed = [
        made.select(["j", "i", "val"]),
        made.rename_columns(["a", "b", "val"]).replace_schema_metadata(noted),
        made.set_column(2, "val", made["val"].cast(pa.int64())),
        made.set_column(0, "i", made["i"].cast(pa.string())),
    ]
    for table_ in changed:
        with pytest.warns(ucle.MetadataWarning):
            found = read(table_, "i,j")
        assert found[0, 1] == 0
    with pytest.warns(ucle.MetadataWarning):
        np.testing.assert_array_equal(read(changed[0], "i,j"), [[0, 0, 6], [0, 0, 0], [0, 5, 0]])
    # Other values of the same kind are of the same tensor.
    kept = read(made.set_column(2, "val", halved), "i,j")
    assert (kept[1, 2], kept[0, 0], kept.shape) == (1.25, np.inf, (3, 4))


def test_a_further_column_is_asked_about() -> None:
    made = result()
    more = made.append_column("weight", made["val"])
    with pytest.warns(ucle.MetadataWarning), pytest.raises(UcleError, match="not clear which"):
        read(more, "i,j")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who states the columns is not warned
        read(ucle.table(more, ["i", "j"], "weight"), "i,j")
