"""Optimisers against PyTorch's, step by step, on both routes and in several decompositions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import CASES, PARAMETERS, STEPS, TEXT, inputs

import ucle
from ucle import optim
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    LabelError,
    NameResolutionError,
    UnsupportedError,
)
from ucle.language.syntax_to_text import statement_text
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.oracle import evaluate

VECTORS: dict[str, Any] = json.loads(
    Path(__file__).with_name("training_vectors.json").read_text(encoding="utf-8")
)


def optimiser_of(name: str) -> Any:
    return eval(CASES[name].ucle, {"optim": optim})


def a_step(name: str, database: Any = None) -> ucle.EinsumProgram:
    program = ucle.einsum_program(TEXT, inputs=inputs(), database=database)
    return program.minimize("loss", PARAMETERS, optimiser_of(name))


def arrays(program: ucle.EinsumProgram) -> dict[str, Any]:
    """The inputs of a program as arrays."""
    every = program._build.request.inputs
    return {n: np.asarray(getattr(value, "relation", value)) for n, value in every.items()}


def check_last(name: str, losses: list[float], state: dict[str, Any]) -> None:
    np.testing.assert_allclose(losses, VECTORS[name]["loss"], rtol=1e-12)
    for parameter in PARAMETERS:
        expected = VECTORS[name][parameter]
        np.testing.assert_allclose(state[parameter], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_are_those_of_pytorch(name: str) -> None:
    """The statements themselves, in NumPy."""
    program = a_step(name)
    text = "; ".join(map(statement_text, program._build.request.statements))
    state, losses = arrays(program), []
    for _ in range(STEPS):
        made = evaluate(text, state)
        losses.append(made["loss"].item())
        state |= {old: made[new] for old, new in program.carry.items()}
    check_last(name, losses, state)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_of_compiled_programs(name: str, routes: Routes) -> None:
    """Each step in another way: the routes take turns, and so do decompositions."""
    program = a_step(name, routes["native"])
    ways: list[Any] = ["auto", "relational", *some_decompositions(program, 0, 4)]
    text, losses = program._build.request.statements, []
    state = arrays(program)
    for n in range(STEPS):
        given = {
            key: ucle.parameter(value) if key in program.carry else value
            for key, value in state.items()
        }
        step = ucle.einsum_program(
            text,
            inputs=given,
            outputs=program.outputs,
            database=routes[("native", "arrow")[n % 2]],
            decomposition=ways[n % len(ways)],
        )
        with step.execute() as result:
            losses.append(result["loss"].to_numpy().item())
            state |= {old: result[new].to_numpy() for old, new in program.carry.items()}
    check_last(name, losses, state)


def test_outputs_and_carry() -> None:
    step = a_step("adam")
    assert dict(step.carry) == {
        "step": "step_next",
        **{f"{s}{x}": f"{s}{x}_next" for x in PARAMETERS for s in ("m_", "v_", "")},
    }
    assert set(step.outputs) == {"loss", *step.carry.values()}
    state = arrays(step)
    assert state["step"].dtype == np.int64
    assert all(state[f"m_{x}"].shape == state[x].shape for x in PARAMETERS)
    assert dict(step.recompile().carry) == dict(step.carry)
    assert dict(step.with_decomposition("relational").carry) == dict(step.carry)
    plain = ucle.einsum_program(TEXT, inputs=inputs())
    assert dict(plain.carry) == {}
    assert dict(plain.gradient("loss", "b").carry) == {}
    assert "step" not in a_step("momentum").carry


def test_outputs_that_were_asked_for_stay() -> None:
    """Such as what is measured on other data while it is trained, for the history of a loop."""
    program = ucle.einsum_program(
        "loss = sum[i](square(w[i] - 1.0)); off = max[i](abs(w[i] - 2.0)); other = w[0] * 2",
        w=[0.0, 4.0],
        outputs=["loss", "off"],
    )
    step = program.minimize("loss", "w", optim.sgd(0.25))
    assert step.outputs == ("loss", "off", "w_next")
    assert step.iterate(max_steps=3).history["off"].tolist() == [2.0, 1.5, 1.25]


def test_results_have_the_labels_of_their_parameters(fresh: Any) -> None:
    """So that what is written back says what it is of; a label with a bound may be shorter."""
    fresh.execute("CREATE TABLE bought AS FROM (VALUES ('ann', 'tea'), ('bob', 'rye')) t(a, b)")
    program = ucle.einsum_program(
        """
        guess[who,what] = sum[k](P[who,k] * Q[what,k]) + b[what]
        step = sum[k](v[k] * v[k+1])
        loss = sum[who,what](square(B[who,what] - guess[who,what])) + step[]
        """,
        B="bought",
        P=np.ones((2, 2)),
        Q=np.ones((2, 2)),
        b=np.ones(2),
        v=np.ones(3),
        bounds={"k": 2},
        database=fresh,
    )
    step = program.minimize("loss", ["P", "Q", "b", "v"], optim.sgd(0.25, 0.5))
    with step.execute() as result:
        columns = {name: result[name].to_arrow().column_names[:-1] for name in result}
        assert columns.pop("loss") == []
        axes = {"P": ["who", "k_1"], "Q": ["what", "k_1"], "b": ["what"], "v": ["k_1"]}
        assert columns == {f"{s}{x}_next": axes[x] for x in axes for s in ("", "m_")}
        result["b_next"].to_table("offsets")
        names = fresh.execute("SELECT what FROM offsets ORDER BY what").fetchall()
        assert names == [("rye",), ("tea",)]
        assert result["v_next"].to_numpy().shape == (3,)


def test_other_tensors_that_a_step_hands_out() -> None:
    """A step hands out tensors as they are before it, from what it computes anyway."""
    given = inputs()
    program = ucle.einsum_program(f"{TEXT}; worst = max[i](abs(p[i] - y[i]))", inputs=given)
    plain = program.minimize("loss", PARAMETERS, optim.sgd(0.1))
    step = program.minimize("loss", PARAMETERS, optim.sgd(0.1), outputs=["p", "worst", "loss"])
    assert step.outputs == ("loss", "p", "worst", *plain.carry.values())
    with step.prepare() as run:
        expected = np.tanh(given["X"] @ given["W1"] + given["b"]) @ given["w2"]
        for _ in range(2):
            result = run()
            np.testing.assert_allclose(result["p"].to_numpy(), expected)
            assert result["worst"].item() == pytest.approx(abs(expected - given["y"]).max())
            W1, b, w2 = (run.state[name].to_numpy() for name in PARAMETERS)
            expected = np.tanh(given["X"] @ W1 + b) @ w2
    assert program.minimize("loss", "b", optim.sgd(0.1), outputs="H").outputs[1] == "H"
    with pytest.raises(NameResolutionError, match="no statement computes y"):
        program.minimize("loss", "b", optim.sgd(0.1), outputs=["y"])


def test_names_that_are_taken() -> None:
    text = "m_w[i] = w[i] * step[i]; clip = 2 * sum[i](m_w[i]); loss = square(clip[] - w_next[])"
    given = {"w": [1.0, 2.0], "step": [3.0, 4.0], "w_next": 5.0}
    program = ucle.einsum_program(text, inputs=given)
    step = program.minimize("loss", "w", optim.adam(0.1, clip_norm=1))
    assert len({x.casefold() for x in (*step.carry, *step.carry.values())}) == 8
    with step.execute() as result:
        found = result[step.carry["w"]].to_numpy()
    np.testing.assert_allclose(found, [0.9, 1.9], rtol=1e-6)


def test_sql_does_not_depend_on_what_states_hold() -> None:
    program = a_step("adam")
    later = {
        key: ucle.parameter(value + 1) if key in program.carry else value
        for key, value in arrays(program).items()
    }
    again = ucle.einsum_program(
        program._build.request.statements, inputs=later, outputs=program.outputs
    )
    assert again.to_sql() == program.to_sql()


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["auto", "relational"])
def test_types_stay(way: str) -> None:
    given = {name: value.astype(np.float32) for name, value in inputs().items()}
    program = ucle.einsum_program(TEXT, inputs=given, decomposition=way)
    optimiser = optim.adamw(optim.cosine(0.1, 10), clip_norm=1.0)
    step = program.minimize("loss", PARAMETERS, optimiser)
    with step.execute() as result:
        for old, new in step.carry.items():
            assert result[new].to_numpy().dtype == (np.int64 if old == "step" else np.float32)


def test_a_parameter_that_is_read_at_indices() -> None:
    given = {"W": np.ones((4, 2)), "idx": np.array([0, 2, 2])}
    program = ucle.einsum_program("loss = sum[i,k](square(W[idx[i],k]))", inputs=given)
    with program.minimize("loss", "W", optim.sgd(0.1, 0.9)).execute() as result:
        expected = [[0.8] * 2, [1] * 2, [0.6] * 2, [1] * 2]
        np.testing.assert_allclose(result["W_next"].to_numpy(), expected)


def test_a_parameter_in_a_table(fresh: Any) -> None:
    fresh.execute("CREATE TABLE W AS SELECT * FROM (VALUES (0, 1.0), (2, 3.0)) t(i, v)").fetchall()
    program = ucle.einsum_program("loss = sum[i](square(W[i]))", W="W", database=fresh)
    with program.minimize("loss", "W", optim.sgd(0.25, 0.9)).execute() as result:
        np.testing.assert_allclose(result["W_next"].to_numpy(), [0.5, 0, 1.5])


SCHEDULES = {
    "optim.constant(0.1)": lambda n: 0.1,
    "optim.step_decay(0.1, 30)": lambda n: 0.1 * 0.1 ** (n // 30),
    "optim.exponential_decay(0.5, 0.99)": lambda n: 0.5 * 0.99**n,
    "optim.cosine(0.1, 40, 0.02)": lambda n: 0.02 + 0.04 * (1 + math.cos(math.pi * min(n / 40, 1))),
    "optim.warmup(8, 0.5)": lambda n: 0.5 * min((n + 1) / 8, 1),
    "optim.warmup(4, optim.warmup(3, optim.cosine(1, 20)))": lambda n: (
        min((n + 1) / 4, 1)
        * min((max(n - 4, 0) + 1) / 3, 1)
        * 0.5
        * (1 + math.cos(math.pi * min(max(max(n - 4, 0) - 3, 0) / 20, 1)))
    ),
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules(text: str) -> None:
    schedule = eval(text, {"optim": optim})
    rate = f"rate[n] = float64({schedule.text.replace('step', 'step[n]')}) + 0.0 * step[n]"
    steps = np.arange(100)
    found = ucle.einsum_program(rate, step=steps).execute()["rate"].to_numpy()
    expected = [SCHEDULES[text](int(n)) for n in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)


def test_what_cannot_be_minimised() -> None:
    program = ucle.einsum_program(TEXT, inputs=inputs())
    with pytest.raises(NameResolutionError, match="no input"):
        program.minimize("loss", ["H"], optim.adam())
    with pytest.raises(NameResolutionError, match="no tensor"):
        program.minimize("losses", ["b"], optim.adam())
    with pytest.raises(LabelError):
        program.minimize("p", ["b"], optim.adam())
    with pytest.raises(NameResolutionError, match="no parameter"):
        program.minimize("loss", ["b"], optim.adam(weight_decay={"W1": 0.1}))
    with pytest.raises(ArgumentTypeError, match="no optimiser"):
        program.minimize("loss", ["b"], "adam")  # type: ignore[arg-type]
    integers = ucle.einsum_program("loss = sum[i](x[i] * 2.0)", x=[1, 2])
    with pytest.raises(UnsupportedError, match="real"):
        integers.minimize("loss", "x", optim.sgd(0.1))


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "text",
    [
        "optim.sgd(-0.1)",
        "optim.sgd(0.1, nesterov=True)",
        "optim.sgd(0.1, weight_decay=-1)",
        "optim.sgd(0.1, weight_decay={'W': -1})",
        "optim.adam(0.1, (0.9, 1.0))",
        "optim.adam(0.1, (0.9,))",
        "optim.adamw(clip_norm=0)",
        "optim.adam(float('nan'))",
        "optim.step_decay(0.1, 0)",
        "optim.cosine(0.1, 10, -1)",
        "optim.warmup(0, 0.1)",
    ],
)
def test_numbers_that_cannot_be(text: str) -> None:
    with pytest.raises(ArgumentError):
        eval(text, {"optim": optim})


@pytest.mark.parametrize("rate", ["0.1", None, True, [0.1]])
def test_what_is_no_rate(rate: Any) -> None:
    with pytest.raises((ArgumentTypeError, TypeError)):
        optim.sgd(rate)
