"""Recurrent networks: `RNN`, `GRU` and `LSTM`, one step after the other.

Gates of all steps are computed by one product with the inputs; a step adds the product with the
state. The steps of a sequence are statements, so that sequences have at most `MOST_STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.elementwise import dtype_of
from ucle.models.operators.products import contract, transposed
from ucle.models.operators.shapes import cut, join
from ucle.models.values import Outputs, Value
from ucle.models.views import Position, View
from ucle.models.writer import number

MOST_STEPS = 512

ACTIVATIONS = {
    "Sigmoid": "sigmoid({x})",
    "Tanh": "tanh({x})",
    "Relu": "relu({x})",
    "Softsign": "({x}) / (1 + abs({x}))",
    "Softplus": "softplus({x})",
    "Affine": "{alpha} * ({x}) + {beta}",
    "LeakyRelu": "max({x}, 0) + {alpha} * min({x}, 0)",
    "ThresholdedRelu": "when(({x}) > {alpha}, {x})",
    "ScaledTanh": "{alpha} * tanh({beta} * ({x}))",
    "HardSigmoid": "max(0, min(1, {alpha} * ({x}) + {beta}))",
    "Elu": "max({x}, 0) + {alpha} * (exp(min({x}, 0)) - 1)",
}
DEFAULTS = {
    "Affine": (1.0, 0.0),
    "LeakyRelu": (0.01, 0.0),
    "ThresholdedRelu": (1.0, 0.0),
    "ScaledTanh": (1.0, 1.0),
    "HardSigmoid": (0.2, 0.5),
    "Elu": (1.0, 0.0),
}


class Cell:
    """What the directions of a layer have in common.

    Args:
        call: the node.
        gates: the number of gates.
        functions: the default activations of one direction.
    """

    def __init__(self, call: Call, gates: int, functions: Sequence[str]) -> None:
        self.call, self.gates = call, gates
        self.size = int(call.get("hidden_size"))
        directions = 2 if call.get("direction", "forward") == "bidirectional" else 1
        self.directions = directions
        self.functions = list(call.get("activations") or list(functions) * directions)
        self.each = len(functions)
        unknown = [name for name in self.functions if name not in ACTIVATIONS]
        if unknown:
            raise call.refuse("an activation is not there", ", ".join(ACTIVATIONS))
        x = call.view(0)
        if call.get("layout", 0):
            x = x.with_axes((x.axes[1], x.axes[0], x.axes[2]))
        self.x = call.writer.flatten(x, [0, 2])
        self.dtype = dtype_of(call.operand(0))
        self.steps = self.x.shape[0].number
        if self.x.shape[0].rows or self.steps > MOST_STEPS:
            raise call.refuse("the sequence has no known length", f"at most {MOST_STEPS} steps")
        lengths = call.given(4)
        self.lengths: View | None = None
        if lengths is not None:
            full = isinstance(lengths, np.ndarray) and bool((lengths >= self.steps).all())
            self.lengths = None if full else call.view(4)

    def activation(self, place: int, x: str, direction: int) -> str:
        """The text of an activation; `place` is its number within a direction."""
        at = direction * self.each + place
        name = self.functions[at]
        alphas, betas = self.call.get("activation_alpha"), self.call.get("activation_beta")
        alpha, beta = DEFAULTS.get(name, (0.0, 0.0))
        alpha = float(alphas[at]) if alphas and at < len(alphas) else alpha
        beta = float(betas[at]) if betas and at < len(betas) else beta
        return ACTIVATIONS[name].format(x=x, alpha=number(alpha), beta=number(beta))

    def weights(self, place: int, direction: int) -> View | None:
        """The weights of one direction."""
        if self.call.given(place) is None:
            return None
        view = cut(self.call, self.call.view(place), 0, direction, 1, 1)
        return view.with_axes(view.axes[1:])

    def state(self, place: int, direction: int) -> View | None:
        """The first state of one direction: rows by units; None for zeros."""
        if self.call.given(place) is None:
            return None
        view = self.call.view(place)
        if self.call.get("layout", 0):
            view = view.with_axes((view.axes[1], view.axes[0], view.axes[2]))
        view = cut(self.call, view, 0, direction, 1, 1)
        return view.with_axes(view.axes[1:])

    def gate(self, view: View, n: int, axis: int) -> View:
        """The part of an axis that belongs to gate n."""
        return cut(self.call, view, axis, n * self.size, self.size, 1)

    def inputs(self, direction: int) -> list[View]:
        """The products with the inputs plus both biases, for each gate: steps, rows, units."""
        w, b = self.weights(1, direction), self.weights(3, direction)
        assert w is not None
        made = []
        for n in range(self.gates):
            wish = f"{self.call.name}_in{direction}{n}"
            product = contract(
                self.call.writer, wish, self.x, transposed(self.gate(w, n, 0)), self.dtype
            )
            if b is not None:
                parts: list[Value] = [self.gate(b, n, 0)]
                if self.adds_bias(n):
                    parts.append(self.gate(b, n + self.gates, 0))
                product = self.call.writer.pointwise(
                    f"{wish}_bias", [product, *parts], lambda *x: " + ".join(x), self.dtype
                )
            made.append(self.call.writer.stored(product))
        return made

    def adds_bias(self, n: int) -> bool:
        """True if the bias of the recurrence of gate n is added to the inputs."""
        return not (self.call.operator == "GRU" and n == 2)

    def at(self, view: View, step: int) -> View:
        """One step of a tensor over steps, rows and units."""
        fixed = view.substitute({atom: Position(step) for atom in view.axes[0]})
        return View(view.tensor, fixed, view.axes[1:], view.dtype)

    def times(self, state: View | None, weights: View, wish: str) -> View | None:
        """The product of a state with the weights of a gate."""
        if state is None:
            return None
        return contract(self.call.writer, wish, state, transposed(weights), self.dtype)

    def kept(self, new: View, old: View | None, step: int, wish: str) -> View:
        """The new state in rows that are that long, and the old one in others."""
        if self.lengths is None:
            return new
        rows = self.lengths.with_axes((*self.lengths.axes, ()))
        values = [rows, new] + ([] if old is None else [old])

        def write(length: str, x: str, y: str = "0") -> str:
            return f"where({length} > {step}, {x}, {y})"

        return self.call.writer.pointwise(wish, values, write, self.dtype)

    def masked(self, new: View, step: int, wish: str) -> View:
        """The output of a step, 0 in rows that are shorter."""
        if self.lengths is None:
            return new
        rows = self.lengths.with_axes((*self.lengths.axes, ()))
        return self.call.writer.pointwise(
            wish, [rows, new], lambda n, x: f"when({n} > {step}, {x})", self.dtype
        )


def _joined(*texts: str) -> str:
    return " + ".join(text for text in texts if text)


Step = Callable[[Cell, int, list[View], list[View | None], str], list[View]]
"""From a direction, its gates' inputs, its states and a name to the new states; output first."""


def _layer(cell: Cell, step: Step) -> tuple[Value | None, ...]:
    """Run all directions, and put their outputs together."""
    call = cell.call
    direction_of = call.get("direction", "forward")
    outputs: list[list[View]] = []
    last: list[list[View]] = []
    for direction in range(cell.directions):
        backwards = direction == 1 or direction_of == "reverse"
        inputs = cell.inputs(direction)
        states: list[View | None] = [cell.state(5, direction)]
        if call.operator == "LSTM":
            states.append(cell.state(6, direction))
        found: dict[int, View] = {}
        for place in range(cell.steps)[:: -1 if backwards else 1]:
            wish = f"{call.name}_{'back' if backwards else 'step'}{place}"
            now = [cell.at(view, place) for view in inputs]
            fresh = step(cell, direction, now, states, wish)
            found[place] = cell.masked(fresh[0], place, f"{wish}_out")
            states = [
                cell.kept(new, old, place, f"{wish}_kept{n}")
                for n, (new, old) in enumerate(zip(fresh, states, strict=True))
            ]
        outputs.append([found[place] for place in range(cell.steps)])
        last.append([state for state in states if state is not None])
    every = [
        join(call, [x.with_axes(((), *x.axes)) for x in each], 0, f"{call.name}_all{n}")
        for n, each in enumerate(outputs)
    ]
    stacked = [view.with_axes((view.axes[0], (), *view.axes[1:])) for view in every]
    whole = join(call, stacked, 1, call.name) if len(stacked) > 1 else stacked[0]
    ends = []
    for n in range(len(last[0])):
        parts = [states[n].with_axes(((), *states[n].axes)) for states in last]
        ends.append(join(call, parts, 0, f"{call.name}_end{n}") if len(parts) > 1 else parts[0])
    if call.get("layout", 0):
        whole = whole.with_axes((whole.axes[2], whole.axes[0], whole.axes[1], whole.axes[3]))
        ends = [view.with_axes((view.axes[1], view.axes[0], view.axes[2])) for view in ends]
    return whole, *ends


def simple(call: Call) -> Outputs:
    """`RNN`."""
    cell = Cell(call, 1, ["Tanh"])

    def step(
        cell: Cell, direction: int, now: list[View], states: list[View | None], wish: str
    ) -> list[View]:
        r = cell.weights(2, direction)
        assert r is not None
        product = cell.times(states[0], r, f"{wish}_state")
        values = [x for x in (now[0], product) if x is not None]
        made = call.writer.pointwise(
            wish, values, lambda *x: cell.activation(0, _joined(*x), direction), cell.dtype
        )
        return [made]

    return _layer(cell, step)


def gated(call: Call) -> Outputs:
    """`GRU`: the gates are update, reset and hidden."""
    cell = Cell(call, 3, ["Sigmoid", "Tanh"])
    after = bool(call.get("linear_before_reset", 0))

    def step(
        cell: Cell, direction: int, now: list[View], states: list[View | None], wish: str
    ) -> list[View]:
        r, b = cell.weights(2, direction), cell.weights(3, direction)
        assert r is not None
        state = states[0]
        gates = []
        for n, name in enumerate("zr"):
            product = cell.times(state, cell.gate(r, n, 0), f"{wish}_{name}_state")
            values = [x for x in (now[n], product) if x is not None]
            gates.append(
                call.writer.pointwise(
                    f"{wish}_{name}",
                    values,
                    lambda *x: cell.activation(0, _joined(*x), direction),
                    cell.dtype,
                )
            )
        update, reset = gates
        hidden = cell.gate(r, 2, 0)
        bias = None if b is None else cell.gate(b, 5, 0)
        terms: list[View] = [now[2]]
        if after:
            inner = cell.times(state, hidden, f"{wish}_h_state")
            parts = [x for x in (inner, bias) if x is not None]
            if parts:
                terms.append(
                    call.writer.pointwise(
                        f"{wish}_h_reset",
                        [reset, *parts],
                        lambda x, *y: f"{x} * ({_joined(*y)})",
                        cell.dtype,
                    )
                )
        else:
            if state is not None:
                kept = call.writer.pointwise(
                    f"{wish}_h_kept", [reset, state], "{} * {}".format, cell.dtype
                )
                product = cell.times(kept, hidden, f"{wish}_h_state")
                assert product is not None
                terms.append(product)
            terms += [] if bias is None else [bias]
        new = call.writer.pointwise(
            f"{wish}_h", terms, lambda *x: cell.activation(1, _joined(*x), direction), cell.dtype
        )
        values = [update, new] + ([] if state is None else [state])
        made = call.writer.pointwise(
            wish,
            values,
            lambda z, h, s="": f"(1 - {z}) * {h}" + (f" + {z} * {s}" if s else ""),
            cell.dtype,
        )
        return [made]

    return _layer(cell, step)


def long_short(call: Call) -> Outputs:
    """`LSTM`: the gates are input, output, forget and cell, with or without peepholes."""
    cell = Cell(call, 4, ["Sigmoid", "Tanh", "Tanh"])
    if call.get("input_forget", 0):
        raise call.refuse("input and forget gates are coupled", "input_forget=0")

    def gate(
        direction: int, n: int, now: View, states: list[View | None], peep: View | None, wish: str
    ) -> View:
        r, p = cell.weights(2, direction), cell.weights(7, direction)
        assert r is not None
        values = [x for x in (now, cell.times(states[0], cell.gate(r, n, 0), f"{wish}_state")) if x]
        peeps = p is not None and peep is not None and n < 3
        if peeps:
            assert p is not None
            assert peep is not None
            values += [cell.gate(p, n, 0), peep]

        def write(*x: str) -> str:
            text = _joined(*x[:-2], f"{x[-2]} * {x[-1]}") if peeps else _joined(*x)
            return cell.activation(1 if n == 3 else 0, text, direction)

        return call.writer.pointwise(wish, values, write, cell.dtype)

    def step(
        cell: Cell, direction: int, now: list[View], states: list[View | None], wish: str
    ) -> list[View]:
        old = states[1]
        i = gate(direction, 0, now[0], states, old, f"{wish}_i")
        f = None if old is None else gate(direction, 2, now[2], states, old, f"{wish}_f")
        c = gate(direction, 3, now[3], states, None, f"{wish}_g")
        values = [i, c] + ([] if f is None or old is None else [f, old])
        memory = call.writer.pointwise(
            f"{wish}_c",
            values,
            lambda x, y, *z: f"{x} * {y}" + (f" + {z[0]} * {z[1]}" if z else ""),
            cell.dtype,
        )
        o = gate(direction, 1, now[1], states, memory, f"{wish}_o")
        made = call.writer.pointwise(
            wish, [o, memory], lambda x, y: f"{x} * {cell.activation(2, y, direction)}", cell.dtype
        )
        return [made, memory]

    return _layer(cell, step)


OPERATORS: dict[str, Operator] = {"RNN": simple, "GRU": gated, "LSTM": long_short}
