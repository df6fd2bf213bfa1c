"""Tests of `explain`: steps that were run, the runner-up, and the picture."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects

import ucle
from ucle.explain import drawing
from ucle.explain import text as explain_text_module
from ucle.explain.drawing import LETTER
from ucle.explain.model import explain
from ucle.options import Optimisations
from ucle.testing import random_case, recompiled


def measured(text: str) -> dict[str, list[str]]:
    """The cells of the last section, by step."""
    section = text.rsplit("\n\n", maxsplit=1)[-1].splitlines()[2:]
    return {line.split()[0]: line.split()[1:] for line in section}


@pytest.mark.parametrize("decomposition", ["auto", "relational", {"T": ["i"]}])
def test_rows_of_every_step(decomposition: object) -> None:
    rng = np.random.default_rng(0)
    a = sp.random_array((30, 20), density=0.2, rng=rng, format="coo")
    h = rng.random((20, 4))
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * H[j,k]\nZ[i,k] = relu(T[i,k])", A=a, H=h, decomposition=decomposition
    )
    steps = measured(program.explain(analyze=True))
    assert list(steps) == [step.name for step in program.compiled.plan.steps]
    with program.execute() as result:
        found = len(result["Z"].stored.fetchall())
    assert steps["Z"][1] == str(found)
    assert "Measured" not in program.explain()


def test_an_estimate_that_is_far_off_is_marked() -> None:
    """Two diagonals that never meet: a join of 200 tuples is expected, and has none."""
    n = np.arange(200)
    x = sp.coo_array((np.ones(200), (n, 2 * n)), shape=(400, 400))
    y = sp.coo_array((np.ones(200), (2 * n + 1, n)), shape=(400, 400))
    program = ucle.einsum_program("T[i,k] += X[i,j] * Y[j,k]", X=x, Y=y, decomposition="relational")
    steps = measured(program.explain(analyze=True))
    assert steps["T"][1] == "0"
    assert steps["T"][3:6] == ["<-", "off", "by"]
    assert len(steps["X"]) == 3 if "X" in steps else len(steps["X_2"]) == 3


def test_nothing_is_left_behind() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT range::INTEGER AS i, 1.0 AS v FROM range(5)")
        table = ucle.table("a", ["i"], "v")
        program = ucle.einsum_program("s += A[i] * A[i]", A=table, database=connection)
        before = temporary_objects(connection)
        program.explain(analyze=True)
        assert temporary_objects(connection) == before
        connection.execute("DROP TABLE a")
        with pytest.raises(ucle.UcleError):
            program.explain(analyze=True)


GCN = """
T[i,m] += A[i,l] * H[l,m]
Z[i,n] = relu(T[i,m] * W[m,n] - 0.5)
Y[i] = where(Z[i,n] < T[i,m], 1, 0)
"""


@pytest.fixture(scope="module")
def program() -> ucle.EinsumProgram:
    rng = np.random.default_rng(0)
    a = sp.random_array((300, 200), density=0.02, rng=rng, format="coo")
    return ucle.einsum_program(GCN, A=a, H=rng.random((200, 4)), W=rng.random((4, 3)))


def test_the_runner_up_is_the_second_plan(program: ucle.EinsumProgram) -> None:
    assert "Runner-up (the same cost)" in program.explain()  # A is listed along its other axis
    program = recompiled(program, Optimisations(levels=False))
    first, second = program.plans(2)
    assert first.cost == program.cost
    ((number, unit),) = re.findall(
        r"Runner-up \(([\d.,]+)(% more expensive| times the cost)\)", program.explain()
    )
    said = float(number.replace(",", ""))
    ratio = 1 + said / 100 if unit == "% more expensive" else said
    assert ratio == pytest.approx(second.cost / first.cost, rel=0.01)
    found = explain(program.compiled, program.options).runner_up
    assert found is not None
    more = sum(difference for *_, difference in found.differences)
    assert more == pytest.approx(second.cost - first.cost)
    told = re.findall(r"costs (more|less) +[\d.,]+\w* in the (\w+) of (\w+)", program.explain())
    assert told == [
        ("more" if by > 0 else "less", part, name) for name, part, by in found.differences[:5]
    ]
    chosen = second.compiled.decomposed.decompositions
    vertices = second.compiled.program.vertices
    assert [change.other for change in found.changes] == [
        vertex.text(chosen[vertex.name])
        for vertex in vertices
        if chosen[vertex.name] != program.compiled.decomposed.decompositions[vertex.name]
    ]


def test_a_decomposition_that_is_given_may_lose(program: ucle.EinsumProgram) -> None:
    text = program.with_decomposition("relational").explain()
    assert re.search(r"Runner-up \([\d.]+% cheaper\)", text)
    pinned = {v.name: {x.name for x in v.all_labels} for v in program.compiled.program.vertices}
    assert "Runner-up" not in program.with_decomposition(pinned).explain()


def test_a_runner_up_that_costs_many_times_as_much() -> None:
    large = sp.coo_array((np.ones(9), (np.arange(9), np.arange(9))), shape=(50_000, 50_000))
    program = ucle.einsum_program("C[i,k] += A[i,j] * A[j,k]", A=large)
    program = recompiled(program, Optimisations(levels=False))
    first, second = program.plans(2)
    (title,) = re.findall(r"Runner-up \(([\d,.]+) times the cost\)", program.explain())
    assert float(title.replace(",", "")) == pytest.approx(second.cost / first.cost, rel=0.01)


def test_the_dag_as_dot(program: ucle.EinsumProgram) -> None:
    text, dag = program.explain("dot"), program.compiled.program
    nodes = re.findall(r'^  "(\w+)" \[label=', text, re.MULTILINE)
    assert nodes == [*(tensor.name for tensor in dag.inputs), *(v.name for v in dag.vertices)]
    edges = re.findall(r'^  "(\w+)" -> "(\w+)" \[label=', text, re.MULTILINE)
    uses = [(o.tensor, v.name) for v in dag.vertices for o in dict.fromkeys(v.inputs)]
    assert edges == uses
    assert text.count('"') % 2 == 0


@pytest.mark.parametrize("seed", range(30))
def test_nothing_overlaps_in_the_picture(seed: int) -> None:
    case = random_case(seed)
    with ucle.connect() as connection:
        case.create_tables(connection)
        program = case.compile(connection)
    picture = ElementTree.fromstring(program.explain("svg"))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        {size: float(box.attrib[size]) for size in ("x", "y", "width", "height")}
        for box in picture.iter(f"{space}rect")
    ]
    texts = [
        (float(text.attrib["x"]), float(text.attrib["y"]), len(text.text or ""))
        for text in picture.iter(f"{space}text")
    ]
    dag = program.compiled.program
    assert len(boxes) == len(dag.types)
    for one, other in combinations(boxes, 2):
        assert (
            one["x"] + one["width"] <= other["x"]
            or other["x"] + other["width"] <= one["x"]
            or one["y"] + one["height"] <= other["y"]
            or other["y"] + other["height"] <= one["y"]
        )
    for (x, y, letters), (x2, y2, letters2) in combinations(texts, 2):
        assert y != y2 or abs(x - x2) >= (letters + letters2) / 2 * LETTER
    width, height = (float(picture.attrib[size]) for size in ("width", "height"))
    assert all(x - n * LETTER / 2 >= 0 and x + n * LETTER / 2 <= width for x, _, n in texts)
    assert all(0 < y < height for _, y, _ in texts)


def test_html_is_well_formed_and_escaped(program: ucle.EinsumProgram) -> None:
    text = program._repr_html_()
    assert text == program.explain("html")
    root = ElementTree.fromstring(text.replace("<br>", "<br/>").replace(" open>", ">"))
    said = "".join(root.itertext())
    decomposed = program.compiled.decomposed
    for vertex in decomposed.program.vertices:
        assert vertex.text(decomposed.decompositions[vertex.name]) in said
    assert program.to_sql() in said
    titles = [summary.text for summary in root.iter("summary")]
    assert [title.split(" (")[0].strip() for title in titles if title][-2:] == ["Steps", "SQL"]


def test_without_igraph(program: ucle.EinsumProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    monkeypatch.setattr(explain_text_module, "can_draw", lambda: False)
    with pytest.raises(ucle.UcleError, match="ucle\\[draw\\]"):
        program.explain("svg")
    assert "<svg" not in program._repr_html_()
    with pytest.raises(ucle.UcleError, match="unknown value"):
        program.explain("png")
