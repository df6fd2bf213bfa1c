"""The history of benchmarks, and that the page of comparisons leaves nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.history import (
    COMPARISONS,
    Comparison,
    Measurement,
    keep,
    kept,
    latest,
    measurements,
    now,
)

IDS = [f"{x.table}-{x.against}" for x in COMPARISONS]
PAGE = """
# A table

| work | size | ucle / theirs | theirs / ucle |
| --- | --- | --- | --- |
| norm | 10 | 1,250.5 | 0.001 |
| sum | 10 |  | 4 |
| prod | 20 | ended at 60 | 0 |
"""


@pytest.mark.sample(None)
@pytest.mark.parametrize("comparison", COMPARISONS, ids=IDS)
def test_each_ratio_of_a_table_is_the_last_one_of_its_history(comparison: Comparison) -> None:
    """After a table was measured again, `make history` takes it over."""
    last = {each: found[-1].ratio for each, found in latest(kept()).items()}
    there = list(measurements(comparison, "", now()[comparison.table]))
    assert there, f"{comparison.ratio} is no column of {comparison.table}.md any more"
    for each in there:
        found = last[each.table, each.against, each.work]
        assert found == pytest.approx(each.ratio, rel=6e-3), f"{each.work}: make history"


def test_cells_that_are_no_ratios_are_left_out() -> None:
    plain = Comparison("t", "", ("work", "size"), "ucle / theirs", "theirs")
    inverse = Comparison("t", "", ("work",), "theirs / ucle", "theirs", inverse=True)
    assert [(x.work, x.ratio) for x in measurements(plain, "", PAGE)] == [("norm, 10", 1250.5)]
    found = [(x.work, x.ratio) for x in measurements(inverse, "", PAGE)]
    assert found == [("norm", 1000.0), ("sum", 0.25)]
    assert not list(measurements(Comparison("t", "", ("work",), "of NumPy", ""), "", PAGE))


def test_what_is_kept_comes_back_in_the_order_of_days(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    days = "2026-03-01", "2026-01-01", "2026-02-01"
    keep([Measurement(day, "t", "a, b", "c", n + 0.125) for n, day in enumerate(days)], path)
    (found,) = latest(kept(path)).values()
    assert [(x.date[5:7], x.ratio) for x in found] == [("01", 1.12), ("02", 2.12), ("03", 0.125)]
