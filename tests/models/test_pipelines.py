"""Pipelines of columns: names, missing values, unknown categories, and tables of a database."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skl2onnx")

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

import ucle
from ucle.errors import ArgumentError, ArgumentTypeError, UcleError
from ucle.models import from_sklearn
from ucle.testing import Routes


def people(seed: int, count: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, count),
            "income": rng.lognormal(10, 1, count),
            "children": rng.integers(0, 4, count).astype(float),
            "colour": rng.choice(["red", "blue", "green", "it's"], count),
            "city": rng.choice(["Ulm", "Bonn"], count),
        }
    )
    frame.loc[::7, "age"] = np.nan
    return frame


def target(frame: pd.DataFrame) -> Any:
    return np.where((frame.income > 20000) ^ (frame.colour == "red"), "stay", "churn")


NUMBERS = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
ENDINGS = {
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "forest": lambda: RandomForestClassifier(10, random_state=0),
}
ENCODERS = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore"),
    "one-hot, dropped": lambda: OneHotEncoder(drop="first"),
    "ordinal": OrdinalEncoder,
}


def pipeline(encoder: str, ending: str) -> Any:
    columns = ColumnTransformer(
        [
            ("numbers", NUMBERS, ["age", "income"]),
            ("names", ENCODERS[encoder](), ["colour", "city"]),
            ("rest", MinMaxScaler(), ["children"]),
        ]
    )
    return make_pipeline(columns, ENDINGS[ending]())


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_table_of_the_database(
    encoder: str, ending: str, connection: duckdb.DuckDBPyConnection
) -> None:
    frame = people(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = pipeline(encoder, ending).fit(frame, target(frame))
    model = from_sklearn(fitted)
    rows = people(1, 50)
    if encoder == "one-hot":
        rows.loc[3, "colour"] = "pink"
    rows["customer"] = np.arange(50) * 3 + 100
    name = f"customers_{encoder}_{ending}".replace(", ", "_").replace("-", "_")
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM rows")
    program = model.program(name, database=connection, rows="customer")
    with program.execute() as result:
        labels = result["label"].to_arrow(rows="all").to_pandas().sort_values("customer")
        assert labels["customer"].tolist() == rows["customer"].tolist()
        assert labels["val"].tolist() == fitted.predict(rows).tolist()
        found = result["probabilities"].to_numpy()
    np.testing.assert_allclose(found, fitted.predict_proba(rows), rtol=1e-9, atol=1e-12)
    connection.execute(f"DROP TABLE {name}")


def test_an_unknown_category_is_an_error_with_its_row(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    frame = people(8)
    encoder = make_pipeline(OneHotEncoder(sparse_output=False)).fit(frame[["city"]])
    model = from_sklearn(
        make_pipeline(ColumnTransformer([("c", OneHotEncoder(), ["city"])])).fit(frame)
    )
    rows = frame[["city"]].copy()
    output = model.outputs[0].name
    with model.program(rows, database=connection).execute() as result:
        found = result[output].to_numpy()
    np.testing.assert_array_equal(found, encoder.transform(rows))
    rows.loc[17, "city"] = "Bern"
    with pytest.raises(UcleError, match="rows = 17"):
        model.program(rows, database=connection).execute().close()


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_a_frame_in_memory_and_rows_by_names(connection: duckdb.DuckDBPyConnection) -> None:
    frame = people(2)
    fitted = pipeline("one-hot", "logistic").fit(frame, target(frame))
    model = from_sklearn(fitted)
    rows = people(3, 20)
    with model.program(rows, database=connection).execute() as result:
        found = result["probabilities"].to_numpy()
    np.testing.assert_allclose(found, fitted.predict_proba(rows), rtol=1e-9)
    rows["who"] = [f"person {n}" for n in range(20)]
    with model.program(rows, database=connection, rows="who").execute() as result:
        named = result["label"].to_arrow(rows="all").to_pandas().set_index("who")["val"]
    assert named.loc[rows["who"]].tolist() == fitted.predict(rows).tolist()


def test_a_matrix_with_names_is_read_by_columns(connection: duckdb.DuckDBPyConnection) -> None:
    frame = people(4)[["age", "income", "children"]].fillna(0)
    fitted = make_pipeline(StandardScaler(), LinearRegression()).fit(frame, frame.age * 2 + 1)
    model = from_sklearn(fitted)
    assert model.inputs[0].columns == ("age", "income", "children")
    rows = frame.iloc[::-1][["children", "income", "age"]].reset_index(drop=True)
    with model.program(rows, database=connection).execute() as result:
        found = result["variable"].to_numpy()
    np.testing.assert_allclose(found, fitted.predict(frame)[::-1], rtol=1e-9)


def test_missing_numbers_take_the_branch_of_the_tree(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    frame = people(5, 300)[["age", "income"]]
    fitted = HistGradientBoostingRegressor(max_iter=20).fit(frame, frame.age.fillna(90))
    connection.execute(
        "CREATE OR REPLACE TABLE gaps AS SELECT row_number() OVER () AS id, * FROM frame"
    )
    model = from_sklearn(fitted)
    with model.program("gaps", database=connection, rows="id").execute() as result:
        found = result["variable"].to_arrow(rows="all").to_pandas().sort_values("id")["val"]
    np.testing.assert_allclose(found, fitted.predict(frame), rtol=1e-9)
    connection.execute("DROP TABLE gaps")


def test_a_program_follows_its_table(connection: duckdb.DuckDBPyConnection) -> None:
    frame = people(6)[["age", "income"]].fillna(0)
    fitted = LinearRegression().fit(frame, frame.age)
    connection.execute("CREATE OR REPLACE TABLE growing (id BIGINT, age DOUBLE, income DOUBLE)")
    connection.execute("INSERT INTO growing VALUES (7, 40, 1000)")
    model = from_sklearn(fitted)
    program = model.program("growing", database=connection, rows="id")
    connection.execute("INSERT INTO growing VALUES (9, 50, 2000)")
    with program.execute() as result:
        found = result["variable"].to_arrow(rows="all").to_pandas().set_index("id")["val"]
    named = pd.DataFrame({"age": [40.0, 50.0], "income": [1000.0, 2000.0]})
    np.testing.assert_allclose(found.loc[[7, 9]], fitted.predict(named), rtol=1e-9)
    connection.execute("DROP TABLE growing")


def test_columns_are_lists_by_inputs() -> None:
    frame = people(7)[["age", "income"]].fillna(40)
    model = from_sklearn(LinearRegression().fit(frame.to_numpy(), frame.age))
    (own,) = model.with_columns({"features": ["age", "income"]}).inputs
    assert own.columns == ("age", "income")
    for wrong in (["age", "income"], {"features": "ai"}, {"features": ["age", 1]}, None):
        with pytest.raises(ArgumentTypeError, match="with_columns"):
            model.with_columns(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="2 columns"):
        model.with_columns({"features": ["age"]})


@pytest.mark.sample(1)
def test_what_a_program_refuses(connection: duckdb.DuckDBPyConnection) -> None:
    frame = people(7)
    model = from_sklearn(pipeline("one-hot", "logistic").fit(frame, target(frame)))
    with pytest.raises(ArgumentError, match="several inputs"):
        model.program(np.ones((3, 5)), database=connection)
    with pytest.raises(ArgumentError, match="not those of the model"):
        model.program(age=[1.0], database=connection)
    with pytest.raises(ArgumentError, match="no such output"):
        model.program(frame, outputs=["score"], database=connection)
    with pytest.raises(ArgumentError, match="label of the rows"):
        model.program(frame, rows="label", database=connection)
    with pytest.raises(UcleError, match="city"):
        model.program(frame.drop(columns=["city"]), database=connection)
    frame.loc[4, "colour"] = None
    with pytest.raises(UcleError, match="NULL"):
        model.program(frame, database=connection)


def test_packages_are_named_where_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    files = import_module("ucle.models.onnx_files")
    with pytest.raises(UcleError, match="nowhere") as raised:
        files.models_module("nowhere")
    assert "ucle[models]" in str(raised.value)


def test_the_key_may_be_a_column_that_the_pipeline_was_fitted_with(routes: Routes) -> None:
    """Columns that a pipeline drops are neither inputs nor needed in the table."""
    past = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0], "left": [0, 0, 1]})
    columns = ColumnTransformer([("numbers", StandardScaler(), ["x"])])
    pipeline = make_pipeline(columns, LogisticRegression()).fit(past, past.left)
    model = ucle.models.from_sklearn(pipeline)
    now = pd.DataFrame({"id": ["p", "q"], "x": [0.0, 9.0]})
    for connection in routes.values():
        program = model.program(now, rows="id", database=connection, outputs=["label"])
        with program.execute() as result:
            found = result["label"].to_pandas()
        assert found.id[found.val == 1].tolist() == ["q"]


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("unknown", [-1, np.nan, None])
def test_ordinal_encoder(unknown: Any, routes: Routes) -> None:
    """Unknown names have the number that was told, or are an error, as in scikit-learn."""
    past = pd.DataFrame({"size": ["s", "m", "l", "m"], "colour": ["red", "blue", "red", "green"]})
    options = {} if unknown is None else {"unknown_value": unknown}
    handle = "error" if unknown is None else "use_encoded_value"
    encoder = OrdinalEncoder(handle_unknown=handle, **options)
    columns = ColumnTransformer([("names", encoder, ["size", "colour"])]).fit(past)
    model = from_sklearn(columns)
    now = pd.DataFrame({"size": ["l", "xl", "s"], "colour": ["green", "red", "blue"]})
    for connection in routes.values():
        with model.program(past, database=connection).execute() as result:
            assert np.array_equal(result["variable"].to_numpy(), columns.transform(past))
        program = model.program(now, database=connection)
        if unknown is None:
            with pytest.raises(UcleError, match=r"size_is_known|variable"):
                program.execute()
            continue
        with program.execute() as result:
            found = result["variable"].to_numpy()
        assert np.array_equal(found, columns.transform(now), equal_nan=True)


def test_classes_with_names_are_coordinates(routes: Routes) -> None:
    """Probabilities and scores have a column for each class, by its name."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    classes = np.array(["up", "down", "even"])[(x.a > 0).astype(int) + (x.b > 0)]
    for estimator in (LogisticRegression(), LinearSVC()):
        pipeline = make_pipeline(StandardScaler(), estimator).fit(x, classes)
        probable = hasattr(pipeline, "predict_proba")
        expected = pipeline.predict_proba(x) if probable else pipeline.decision_function(x)
        model = from_sklearn(pipeline)
        output = model.outputs[1].name
        for connection in routes.values():
            with model.program(x.head(5), database=connection).execute() as result:
                wide = result[output].to_pandas().pivot(index="rows", columns="class", values="val")
                assert list(wide.columns) == list(pipeline.classes_)
                np.testing.assert_allclose(wide.to_numpy(), expected[:5], rtol=1e-9, atol=1e-12)
