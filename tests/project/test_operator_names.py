"""The facts of an operator stand in its row: few modules know an operator by its name.

Counted are the string literals that equal the name of an operator, in the modules of the packages:
the row, its place among the functions of `ucle`, and the meaning that `ucle.testing.oracle` has of
its own leave one more. Docstrings, texts of SQL and programs inside of which a name occurs are no
such literals. Names that are ordinary words, too, stand in `OTHER_MEANINGS`. What operators of ONNX
are in the language is in `ucle.models.operators`: names there are pieces of programs, and are not
counted.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ucle.operators import COMBINES, MAPS, PICK, PICK_OR_FILL, REDUCES

ROOT = Path(__file__).parents[2]
PACKAGES = ("ucle", "sqlgen", "stats", "udf_kernels")
PIECES = ROOT / "ucle" / "models" / "operators"
MOST = 4
"""Modules that may name one operator."""

NAMES = frozenset({*COMBINES, *REDUCES, *MAPS, PICK.name, PICK_OR_FILL.name})

OTHER_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "all": {
        "ucle/command/score_models.py": "a choice of rows",
        "ucle/models/imported_model.py": "a choice of rows",
        "ucle/run/wide_frames.py": "a value of an option",
        "ucle/plan/forms.py": "a choice of rows",
    },
    "count": {
        "sqlgen/database_queries.py": "a column of DuckDB's",
        "sqlgen/input_queries.py": "a function of SQL",
        "ucle/inputs/csv_dialect.py": "a usual name of a column",
        "ucle/spark/spark_facts.py": "a column of Spark's",
    },
    "isfinite": {
        "sqlgen/dialects/postgres.py": "a function of DuckDB's SQL",
        "sqlgen/dialects/spark.py": "a function of DuckDB's SQL",
        "sqlgen/sql_trees.py": "a function of DuckDB's SQL",
    },
    "max": {"sqlgen/input_queries.py": "a function of SQL"},
    "min": {
        "sqlgen/input_queries.py": "a function of SQL",
        "ucle/lazy/periods.py": "a unit of time",
    },
    "mult": {"ucle/language/grammar_tables.py": "a rule of the grammar"},
    "sum": {
        "ucle/command/options.py": "a value of an option",
        "ucle/inputs/table_options.py": "a value of an option",
        "ucle/language/grammar_tables.py": "a rule of the grammar",
        "ucle/testing/random_inputs.py": "a value of an option",
    },
}
"""By name and module, what the literal means where it does not mean the operator."""


def literals(source: str) -> Iterator[str]:
    """The string literals of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """By the name of an operator, the modules that have it as a literal."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.is_relative_to(PIECES):
                continue
            for name in NAMES.intersection(literals(path.read_text(encoding="utf-8"))):
                found[name].add(path.relative_to(ROOT).as_posix())
    return found


def test_literals_are_whole_strings() -> None:
    assert set(literals("x = {'mult': f'add {y}'}; z = '''sum(x)'''; cos = 'sin'")) == {
        "mult",
        "add ",
        "sum(x)",
        "sin",
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(NAMES))
def test_few_modules_name_an_operator(name: str, modules: dict[str, set[str]]) -> None:
    named = sorted(modules[name].difference(OTHER_MEANINGS.get(name, {})))
    assert len(named) <= MOST, (
        f"{name!r} stands in {', '.join(named)}: ask the row for a property, "
        "or take the row itself from ucle.operators"
    )


def test_other_meanings_are_needed(modules: dict[str, set[str]]) -> None:
    for name, elsewhere in OTHER_MEANINGS.items():
        assert modules[name] >= set(elsewhere), f"{name!r} is no longer in one of {set(elsewhere)}"
        assert len(modules[name]) > MOST, f"{name!r} needs no list any more"
