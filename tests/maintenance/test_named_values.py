"""Tensors that hold names, as `argmax` along words or dates does, and what is computed of them."""

from __future__ import annotations

from typing import Any

import pytest

import ucle

PROGRAMS: dict[str, dict[str, Any]] = {
    "y[t] = argmax[c](X[c,t])": {},
    "y[c] = argmax[t](X[c,t]); z[c,t] = X[c,t] - 1": {},
    "y[t,r] = arg_top_k[c,r](X[c,t])": {"bounds": {"r": 2}},
    "y[t] = argmax[c](X[c,t]); z[t] = y[t] + 1; n[] = sum[t](y[t])": {},
}
CHANGES = (
    (["('d', DATE '2024-01-01', 99)", "('b', DATE '2024-01-02', 1.5)"], "v < 0"),
    (["('a', DATE '2024-01-02', 200)"], "c = 'a' AND t = DATE '2024-01-02'"),
    (["('b', DATE '2024-02-01', 3)", "('a', DATE '2024-02-01', 2)"], "c = 'd'"),
)


def as_ids(text: str) -> str:
    """SQL with large integers in place of its words."""
    for number, word in enumerate("abcd"):
        text = text.replace(f"'{word}'", str(10**9 + 7 * number))
    return text


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["words", "ids"])
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("way", ["auto", "affected keys", "from scratch", "a script"])
def test_names_follow_the_data(text: str, way: str, kind: str) -> None:
    """Ids are names, too, which positions may not be taken for."""
    written = as_ids if kind == "ids" else str
    with ucle.connect() as connection:
        connection.execute(
            written("""
            CREATE TABLE s AS SELECT ['a', 'b', 'c'][c + 1] AS c, DATE '2024-01-01' + i::INT AS t,
                (6 + c + i)::DOUBLE AS v
            FROM range(3) a(c), range(2) b(i) WHERE (c, i) <> (1, 1)
        """)
        )
        X = ucle.table("s", ["c", "t"], "v", coordinates={"c": "people"})
        outputs = [part.split("[")[0] for part in text.split("; ")]
        program = ucle.einsum_program(
            text, X=X, database=connection, outputs=outputs, **PROGRAMS[text]
        )
        kept = program.maintain("kept", connection)
        for number, (rows, condition) in enumerate(CHANGES):
            gone = written(condition)
            new, old = f"new_{number}", f"old_{number}"
            connection.execute(f"CREATE TABLE {old} AS FROM s WHERE {gone}")
            connection.execute(f"CREATE TABLE {new} AS FROM s LIMIT 0")
            connection.execute(f"INSERT INTO {new} VALUES {written(', '.join(rows))}")
            if way == "a script":
                connection.execute(kept.to_sql(inserted={"X": new}, deleted={"X": old}))
            else:
                connection.execute(f"DELETE FROM s WHERE {gone}")
                connection.execute(f"INSERT INTO s FROM {new}")
                kept.refresh(way=way)
            with program.recompile().execute() as result:
                for name, table in kept.outputs.items():
                    rows_of: Any = "nonfill" if name == "z" else "all"
                    expected = result[name].shown(**{} if name == "y" else {"rows": rows_of})
                    found = connection.table(table).fetchall()
                    assert sorted(found) == sorted(expected.fetchall()), name
