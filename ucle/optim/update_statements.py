"""The statements that advance the parameters of a program and their states by one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from ucle.errors import NameResolutionError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import unique_names
from ucle.ir.vertices import Span
from ucle.language.parse import template
from ucle.language.syntax import Access, Binary, Call, Expression, Reduction, Statement
from ucle.language.templates import substitute
from ucle.operators import ADD, SUM
from ucle.optim.descent import Optimiser

HERE = Span(1, 1)

NORM_EPS = 1e-6
"""The constant that PyTorch adds to a norm before dividing by it."""


@dataclass(frozen=True)
class Trained:
    """A parameter of a program, with its gradient."""

    name: str
    gradient: str
    labels: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True)
class Update:
    """The additions of a step to a program.

    `states` are new inputs, by the parameters that have their shapes; `step` is the one that counts
    steps, if there is one. `carry` has for each input that changes the tensor that replaces it.
    """

    statements: tuple[Statement, ...]
    states: Mapping[str, str]
    step: str | None
    carry: Mapping[str, str]


def update_statements(
    optimiser: Optimiser, parameters: Sequence[Trained], taken: set[str]
) -> Update:
    """Return the statements of one step.

    Args:
        optimiser: the optimiser.
        parameters: the parameters that it updates.
        taken: folded names that are in use; those of new tensors are added.

    Raises:
        NameResolutionError: the weight decay names something that is not a parameter.

    >>> from ucle.language.syntax_to_text import statement_text
    >>> from ucle.optim import sgd
    >>> w = Trained("w", "d_w", ("j",), DType.FLOAT64)
    >>> for statement in update_statements(sgd(0.1, 0.9), [w], set()).statements:
    ...     print(statement_text(statement))
    m_w_next[j] = 0.9 * m_w[j] + d_w[j]
    w_next[j] = w[j] - 0.1 * m_w_next[j]
    """
    _check_decay(optimiser, [x.name for x in parameters])
    made: list[Statement] = []
    carry: dict[str, str] = {}
    shared: dict[str, Expression] = {}
    step = None
    if optimiser.counts:
        step, carry_to = unique_names(["step", "step_next"], taken)
        carry[step] = carry_to
        shared["step"] = Access(step, (), HERE)
        made.append(_statement(carry_to, (), "step + 1", shared))
    for stem, text in optimiser.shared_numbers().items():
        (name,) = unique_names([stem], taken)
        made.append(_statement(name, (), text, shared))
        shared[stem] = Access(name, (), HERE)
    if optimiser.clip_norm is not None:
        (name,) = unique_names(["clip"], taken)
        made.append(_clip(name, optimiser, parameters))
        shared["clip"] = Access(name, (), HERE)
    states: dict[str, str] = {}
    for parameter in parameters:
        labels = parameter.labels
        values = {
            **shared,
            "w": Access(parameter.name, labels, HERE),
            "g": Access(parameter.gradient, labels, HERE),
        }
        names = {"w": parameter.name}
        for stem in optimiser.states:
            (names[stem],) = unique_names([f"{stem}_{parameter.name}"], taken)
            states[names[stem]] = parameter.name
            values[stem] = Access(names[stem], labels, HERE)
        for stem, text in optimiser.updates(optimiser.decay_of(parameter.name)).items():
            (after,) = unique_names([f"{names[stem]}_next"], taken)
            made.append(_statement(after, labels, text, values, parameter.dtype))
            values[f"{stem}_next"] = Access(after, labels, HERE)
            carry[names[stem]] = after
    return Update(tuple(made), states, step, carry)


def _statement(
    name: str,
    labels: tuple[str, ...],
    text: str,
    values: Mapping[str, Expression],
    dtype: DType = DType.FLOAT64,
) -> Statement:
    expression = substitute(template(text), values, (), HERE)
    if dtype is not DType.FLOAT64:  # rates are of 64 bits
        expression = Call(dtype, (expression,), HERE)
    return Statement(Access(name, labels, HERE), None, expression, HERE)


def _clip(name: str, optimiser: Optimiser, parameters: Sequence[Trained]) -> Statement:
    """Return the factor on all gradients that limits their joint norm, as a statement."""
    squares: list[Expression] = []
    for parameter in parameters:
        values = {"g": Access(parameter.gradient, parameter.labels, HERE)}
        square = substitute(template(f"square({optimiser.clipped})"), values, (), HERE)
        if parameter.labels:
            square = Reduction(SUM, parameter.labels, square, HERE)
        squares.append(square)
    total = reduce(lambda left, right: Binary(ADD, left, right, HERE), squares)
    text = f"min({optimiser.clip_norm!r} / (sqrt(total) + {NORM_EPS!r}), 1.0)"
    return _statement(name, (), text, {"total": total})


def _check_decay(optimiser: Optimiser, names: Sequence[str]) -> None:
    decay = optimiser.weight_decay
    for name in decay if isinstance(decay, Mapping) else ():
        if name not in names:
            raise NameResolutionError(
                f"{name} is no parameter",
                where="minimize, weight_decay",
                expected="one of " + ", ".join(names),
                found=name,
                hint=did_you_mean(name, names),
            )
