"""Models as table macros, called by clients of DuckDB that know nothing of ucle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skl2onnx")

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ucle
from ucle.errors import NameResolutionError, UnsupportedError
from ucle.models import from_sklearn, stored
from ucle.udf_kernels.native import LIBRARY

CLIENT = """
import json, sys
import duckdb

path, library, query = sys.argv[1:]
config = {"allow_unsigned_extensions": "true"}
with duckdb.connect(path, read_only=True, config=config) as connection:
    if library:
        connection.execute(f"LOAD '{library}'")
    print(json.dumps(connection.execute(query).fetchall()))
assert "ucle" not in sys.modules
"""


def client(path: Path, query: str, *, kernels: bool) -> Any:
    """The rows of a query in a process that does not import ucle."""
    command = [sys.executable, "-c", CLIENT, str(path), str(LIBRARY) if kernels else "", query]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def people(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {name: rng.normal(size=count) for name in "abc"}
    plan = rng.choice(["basic", "team"], count)
    return pd.DataFrame({"id": rng.permutation(9 * count)[:count], **numbers, "plan": plan})


def fitted(kind: str) -> Any:
    frame = people(300, 0)
    target = np.where((frame.a + frame.b > 0) ^ (frame.plan == "team"), "stays", "leaves")
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "b", "c"]), ("names", OneHotEncoder(), ["plan"])]
    )
    endings = {
        "logistic": LogisticRegression(),
        "forest": RandomForestClassifier(5, max_depth=4, random_state=0),
        "network": MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0),
    }
    if kind == "network":
        target = frame.a * frame.b
    return make_pipeline(columns, endings[kind]).fit(frame, target)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with duckdb.connect(str(path)) as connection:
        for name, count in (("customers", 40), ("later", 700)):
            connection.register("frame", people(count, count))
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    return path


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("kind", ["logistic", "forest", "network"])
def test_a_client_without_python(kind: str, kernels: bool, shop: Path) -> None:
    if kind == "forest" and not kernels:
        pytest.skip("packed forests are kernels")
    pipeline = fitted(kind)
    output = "variable" if kind == "network" else "label"
    with ucle.connect(shop) as connection:
        from_sklearn(pipeline).store(connection, kind)
        model = stored(kind, connection)
        script = model.macro_sql(
            "customers", database=connection, rows="id", outputs=[output], kernels=kernels
        )
        connection.execute(script).fetchall()
    for table, count in (("customers", 40), ("later", 700)):
        query = f"SELECT id, val FROM score(customers_table := '{table}') ORDER BY id"
        rows = client(shop, query, kernels=kernels)
        frame = people(count, count).sort_values("id")
        assert [key for key, _ in rows] == frame.id.tolist()
        expected = pipeline.predict(frame)
        if kind == "network":
            np.testing.assert_allclose([value for _, value in rows], expected, rtol=1e-9)
        else:
            assert [value for _, value in rows] == expected.tolist()


@pytest.mark.filterwarnings("ignore")
def test_small_weights_are_written_into_macros(shop: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    frame = people(300, 0)
    pipeline.fit(frame[["a", "b", "c"]], frame.plan == "team")
    with ucle.connect(shop) as connection:
        model = from_sklearn(pipeline)
        script = model.macro_sql("customers", database=connection, rows="id", name="team")
        connection.execute(script).fetchall()
    rows = client(
        shop, "SELECT val FROM team_probabilities('later') WHERE i2 = 1 ORDER BY id", kernels=True
    )
    later = people(700, 700).sort_values("id")[["a", "b", "c"]]
    expected = pipeline.predict_proba(later)[:, 1]
    np.testing.assert_allclose([value for (value,) in rows], expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_what_a_macro_cannot_read(shop: Path) -> None:
    model = from_sklearn(fitted("forest"))
    with ucle.connect(shop) as connection:
        with pytest.raises(UnsupportedError, match="memory"):
            model.macro_sql("customers", database=connection, rows="id")
        with pytest.raises(UnsupportedError, match="memory"):
            model.macro_sql(people(9, 0), database=connection, rows="id")


def test_tables_that_are_no_parameters() -> None:
    with ucle.connect() as connection:
        for name in "AB":
            connection.execute(f"CREATE TABLE {name} AS SELECT 0 AS i, 2.0 AS v").fetchall()
        program = ucle.einsum_program("y[i] = A[i] * B[i]", A="A", B="B", database=connection)
        connection.execute(program.macro_sql(tables=["B"], names={"y": "times"})).fetchall()
        connection.execute("CREATE TABLE C AS SELECT 0 AS i, 5.0 AS v").fetchall()
        assert connection.sql("FROM times()").fetchall() == [(0, 4.0)]
        assert connection.sql("FROM times(B_table := 'C')").fetchall() == [(0, 10.0)]
        with pytest.raises(duckdb.Error, match="does not support"):
            connection.sql("FROM times(A_table := 'C')")
        with pytest.raises(NameResolutionError, match="no input D"):
            program.macro_sql(tables=["D"])
