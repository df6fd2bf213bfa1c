"""Labels whose key columns are of several types: one type by a rule, or an error naming both."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import uuid
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import ucle
from ucle import errors
from ucle.testing.check_matrix import Routes
from ucle.testing.partitions import run_on_partitions

DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(1999, 12, 31)]
TIMES = [dt.datetime.combine(day, dt.time()) for day in DAYS]
IDS = [uuid.UUID(int=n) for n in (1, 2, 3)]
KINDS: dict[str, tuple[str, list[list[Any]]]] = {
    # By kind: columns of DuckDB's types that hold the same three coordinates.
    "integers": ("5 7 12", [[name] for name in (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
        "UBIGINT",
    )]),
    "text": ("5 07 12", [["VARCHAR"], ["ENUM('5', '07', '12')"], ["ENUM('x', '12', '07', '5')"]]),
    "times": ("2020-01-01 2020-01-02 1999-12-31", [[name] for name in (
        "DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS",
    )]),
    "zones": ("2020-01-01 2020-01-02 1999-12-31", [["TIMESTAMP WITH TIME ZONE"]]),
    "uuid": (" ".join(map(str, IDS)), [["UUID"]]),
    "clock": ("01:00:00 02:00:00 03:00:00", [["TIME"]]),
}  # fmt: skip
SUM = "T[a] = X[a] + Y[a]"


def table_of(connection: Any, name: str, kind: str, type_: str, values: list[float]) -> None:
    """A table with the coordinates of a kind in a type, and values."""
    texts = KINDS[kind][0].split(" ")
    rows = ", ".join(f"('{x}'::{type_}, {v})" for x, v in zip(texts, values, strict=False))
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM (VALUES {rows}) t(a, v)")


def keyed(name: str) -> Any:
    return ucle.table(name, ["a"], "v", coordinates="dictionary")


@pytest.mark.sample(1)
def test_types_of_one_kind_are_one_type_and_others_are_refused(
    fresh: duckdb.DuckDBPyConnection,
) -> None:
    """All pairs of types: right by Python's own equality, or an error before anything runs."""
    every = [(kind, type_) for kind, (_, types) in KINDS.items() for (type_,) in types]
    pairs = list(itertools.combinations(every, 2))
    seen: set[tuple[str, str]] = set()
    for n, ((one, first), (other, second)) in enumerate(pairs):
        if one == other and n % 3:  # a third of the pairs of a kind, one of each two kinds
            continue
        if one != other and (one, other) in seen:
            continue
        seen.add((one, other))
        table_of(fresh, "x", one, first, [1.0, 2.0, 4.0])
        table_of(fresh, "y", other, second, [10.0, 20.0])
        given = {"X": keyed("x"), "Y": keyed("y")}
        if one != other:
            with pytest.raises(errors.ValueTypeError, match="of two types") as info:
                ucle.einsum_program(SUM, inputs=given, database=fresh)
            said = str(info.value)
            assert "input X, x, column a" in said
            assert "input Y, y, column a" in said
            assert first[:40] in said
            assert second[:40] in said
            continue
        with ucle.einsum_program(SUM, inputs=given, database=fresh).execute() as result:
            assert sorted(result["T"].to_numpy()) == [4.0, 11.0, 22.0], (first, second)
            assert len(result["T"].coordinates("a")) == 3


def test_no_text_is_read_as_a_number(routes: Routes) -> None:
    """Finding A1: '05' was 5, and '1' and '01' were one position."""
    numbers = pa.table({"a": [7, 5], "v": [1.0, 2.0]})
    text = pa.table({"a": ["05", "7"], "v": [10.0, 20.0]})
    square = pa.table({"p": ["1", "01"], "q": [1, 2], "v": [1.0, 2.0]})
    mixed = pa.table({"p": ["1", "abc"], "q": [1, 2], "v": [1.0, 2.0]})
    for connection in routes.values():
        for statement in ("T += X[a] * Y[a]", SUM):
            for x, y in ((numbers, text), (text, numbers)):
                given = {"X": ucle.table(x, coordinates="dictionary"), "Y": y}
                with pytest.raises(errors.ValueTypeError, match="Y, Arrow table, column a"):
                    ucle.einsum_program(statement, inputs=given, database=connection)
        for table in (square, mixed):
            for ids in ("dictionary", {"i": "ids", "j": "ids"}):
                given = ucle.table(table, coordinates=ids)
                with pytest.raises(errors.ValueTypeError, match="of two types"):
                    ucle.einsum_program("T[i,k] += A[i,j] * A[j,k]", A=given, database=connection)
            with pytest.raises(errors.ValueTypeError, match="VARCHAR") as info:
                ucle.einsum_program("T[i,k] += A[i,j] * A[j,k]", A=table, database=connection)
            assert "dictionary'" not in str(info.value.hint)  # which would be refused, too
            with pytest.raises(errors.ValueTypeError, match="symmetric"):
                ucle.einsum_program(
                    "T[i] += A[i,j]", A=ucle.table(table, symmetric=True), database=connection
                )


def test_keys_that_are_no_coordinates_stay_refused_beside_integers() -> None:
    """Floats, decimals and truth values never meet integers."""
    positions = pa.table({"a": [0, 1], "v": [1.0, 2.0]})
    for keys in (
        pa.array([0.0, 1.0]),
        pa.array([0.0, 1.0], pa.float32()),
        pa.array([decimal.Decimal("0"), decimal.Decimal("1")]),
        pa.array([False, True]),
    ):
        for encode in ("auto", "dictionary"):
            given = ucle.table(pa.table({"a": keys, "v": [10.0, 20.0]}), coordinates=encode)
            with pytest.raises(errors.ValueTypeError, match="does not hold coordinates"):
                ucle.einsum_program(SUM, X=positions, Y=given)


def test_a_date_is_the_timestamp_at_its_midnight(routes: Routes) -> None:
    """Whatever the unit; what is not at midnight is another coordinate. Against Python's own."""
    noon = [TIMES[0], TIMES[1] + dt.timedelta(hours=12)]
    expected = dict(zip(TIMES, [1.0, 2.0, 4.0], strict=True))
    for time, value in zip(noon, [10.0, 20.0], strict=True):
        expected[time] = expected.get(time, 0.0) + value
    dates = pa.table({"a": DAYS, "v": [1.0, 2.0, 4.0]})
    for unit, connection in itertools.product(("s", "ms", "us", "ns"), routes.values()):
        times = pa.table({"a": pa.array(noon, pa.timestamp(unit)), "v": [10.0, 20.0]})
        program = ucle.einsum_program(SUM, X=dates, Y=times, database=connection)
        with program.execute() as result:
            found = result["T"].to_numpy()
        assert found.tolist() == [expected[x] for x in sorted(expected)]
        zoned = pa.table({"a": pa.array(noon, pa.timestamp(unit, "UTC")), "v": [10.0, 20.0]})
        with pytest.raises(errors.ValueTypeError, match=r"TIME ZONE|TIMESTAMPTZ"):
            ucle.einsum_program(SUM, X=dates, Y=zoned, database=connection)


def test_wide_integers_meet_narrow_ones(connection: duckdb.DuckDBPyConnection) -> None:
    """2^53 + 1 and 2^63 stay apart from their neighbours, as they would not as floats."""
    ids = [2**53, 2**53 + 1, 2**63 - 1]
    wide = pa.array([2**53 + 1, 2**63, 2**63 - 1], pa.uint64())
    given = {
        "X": ucle.table(pa.table({"a": ids, "v": [1.0, 2.0, 4.0]}), coordinates="dictionary"),
        "Y": ucle.table(pa.table({"a": wide, "v": [10.0, 20.0, 40.0]}), coordinates="dictionary"),
    }
    with ucle.einsum_program(SUM, inputs=given, database=connection).execute() as result:
        assert result["T"].to_numpy().tolist() == [1.0, 12.0, 44.0, 20.0]
        assert [int(x) for x in result["T"].coordinates("a").to_pylist()] == [*ids, 2**63]


@pytest.mark.sample(1)
def test_other_inputs_and_changed_tables_are_held_to_the_rule(
    fresh: duckdb.DuckDBPyConnection,
) -> None:
    """A table whose keys change their type, other inputs, and views: never a cast."""
    table_of(fresh, "x", "integers", "BIGINT", [1.0, 2.0, 4.0])
    table_of(fresh, "y", "integers", "INTEGER", [10.0, 20.0])
    program = ucle.einsum_program(SUM, X=keyed("x"), Y=keyed("y"), database=fresh)
    for type_ in ("UBIGINT", "HUGEINT", "UTINYINT", "INTEGER"):
        table_of(fresh, "y", "integers", type_, [10.0, 20.0])
        with program.execute() as result:
            assert sorted(result["T"].to_numpy()) == [4.0, 11.0, 22.0]
    program.create_views(fresh)
    assert sorted(fresh.sql("SELECT val FROM T").fetchall()) == [(4.0,), (11.0,), (22.0,)]
    table_of(fresh, "y", "text", "VARCHAR", [10.0, 20.0])
    with pytest.raises(errors.ValueTypeError, match="of two types"):
        program.execute()
    text = ucle.table(pa.table({"a": ["05", "7"], "v": [1.0, 2.0]}))
    with pytest.raises(errors.UcleError, match=r"of two types|by a dictionary in one"):
        program.execute(inputs={"Y": text})
    stamped = pa.table({"a": pa.array(TIMES[:2]), "v": [10.0, 20.0]})
    dated = pa.table({"a": DAYS, "v": [1.0, 2.0, 4.0]})
    other = ucle.einsum_program(SUM, X=dated, Y=dated)
    with other.execute(inputs={"Y": stamped}) as result:
        assert result["T"].to_numpy().tolist() == [4.0, 11.0, 22.0]


def test_lazy_tensors_and_picks_keep_to_the_rule() -> None:
    """A sum of tables, and `sel`: dates pick timestamps, text picks categories, and no numbers."""
    dated = ucle.tensor(pa.table({"a": DAYS, "v": [1.0, 2.0, 4.0]}), axes=["a"])
    stamped = ucle.tensor(pa.table({"a": pa.array(TIMES), "v": [10.0, 20.0, 40.0]}), axes=["a"])
    assert (dated + stamped).to_numpy().tolist() == [44.0, 11.0, 22.0]
    assert dated.sel(a=DAYS[1]).item() == 2.0
    assert stamped.sel(a=DAYS[1]).item() == 20.0
    enum = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "v": [1.0, 2.0]})
    assert ucle.tensor(enum, axes=["a"]).sel(a="y").item() == 2.0
    numbers = ucle.table(pa.table({"a": [5, 7], "v": [1.0, 2.0]}), coordinates="dictionary")
    for picked in ("05", "7", "x"):
        with pytest.raises(errors.UcleError):
            ucle.tensor(numbers, axes=["a"]).sel(a=picked).item()


def test_partitions_compare_in_the_same_type() -> None:
    """Partitions check their rows in the type of the ids."""
    dated = pa.table({"a": DAYS, "v": [1.0, 2.0, 4.0]})
    stamped = pa.table({"a": pa.array(TIMES[:2], pa.timestamp("us")), "v": [10.0, 20.0]})
    with ucle.connect() as connection:
        connection.register("dated", dated)
        connection.register("stamped", stamped)
        program = ucle.einsum_program(SUM, X="dated", Y="stamped", database=connection)
        for seed in range(4):
            with run_on_partitions(program, connection, 2, seed) as result:
                assert result["T"].to_numpy().tolist() == [4.0, 11.0, 22.0]


def test_instants_of_any_unit_and_zone_are_one_kind() -> None:
    """They count from the same moment; the session's zone says nothing of them."""
    times = [x.replace(tzinfo=dt.UTC) for x in TIMES]
    tables = {}
    for unit, zone in (("us", "UTC"), ("ns", "Europe/Berlin")):
        column = pa.array(times, pa.timestamp(unit, zone))
        tables[unit] = pa.table({"a": column, "v": [1.0, 2.0, 4.0]})
    with ucle.einsum_program(SUM, X=tables["us"], Y=tables["ns"]).execute() as result:
        assert result["T"].to_numpy().tolist() == [8.0, 2.0, 4.0]


def test_symmetric_tables_of_two_widths(routes: Routes) -> None:
    """The columns take each other's place in one type."""
    for connection in routes.values():
        for one, other in (("int8", "int64"), ("uint64", "int16"), ("int32", "uint32")):
            pairs = pa.table({
                "p": pa.array([0, 1], one), "q": pa.array([1, 2], other), "v": [1.0, 10.0],
            })  # fmt: skip
            for ids in ("auto", "dictionary"):
                both = ucle.table(pairs, symmetric=True, coordinates=ids)
                program = ucle.einsum_program("T[i] += A[i,j]", A=both, database=connection)
                with program.execute() as result:
                    assert result["T"].to_numpy().tolist() == [1.0, 11.0, 10.0]


@pytest.mark.parametrize("type_", ["UUID", "UBIGINT", "BIGINT", "TIME", "TIMESTAMPTZ", "TIMESTAMP"])
def test_coordinates_of_each_type_are_selected(
    type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """A single one, and several, as Python has them."""
    written = {
        "UUID": ["00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
        "UBIGINT": ["5", "18446744073709551615"],
        "BIGINT": ["-9223372036854775807", "9223372036854775807"],
        "TIME": ["00:00:00", "23:59:59.999999"],
        "TIMESTAMPTZ": ["1895-03-01 01:02:03+02", "2024-01-01 00:00:00-05"],
        "TIMESTAMP": ["1895-03-01 01:02:03.000004", "2024-01-01 00:00:00"],
    }[type_]
    rows = ", ".join(f"('{key}'::{type_}, {n}.5)" for n, key in enumerate(written))
    connection.execute(f"CREATE OR REPLACE TABLE typed AS FROM (VALUES {rows}) t(k, v)")
    keys = [row[0] for row in connection.execute("SELECT k FROM typed ORDER BY k").fetchall()]
    spec = ucle.table("typed", ["k"], "v", coordinates="dictionary")
    x = ucle.tensor(spec, axes=("k",), database=connection)
    for n, key in enumerate(keys):
        assert x.sel(k=key).item() == n + 0.5
        assert x.sel(k=[key]).to_numpy().tolist() == [n + 0.5]
    assert x.sel(k=keys).to_numpy().tolist() == [0.5, 1.5]
    with pytest.raises(errors.LabelError, match="twice"):
        x.sel(k=[keys[0], keys[0]])


def test_integers_beyond_64_bits_are_no_coordinates_to_select() -> None:
    x = ucle.tensor(pa.table({"k": [1], "v": [1.0]}), axes=("k",))
    with pytest.raises(errors.LabelError, match=r"64 bits(.|\n)*VARCHAR"):
        x.sel(k=2**64)
