"""Learning rates as functions of the number of the step, which is 0 for the first.

A schedule is a text of the language over the scalar tensor ``step``, so that a program computes its
rate and is not compiled again.
"""

from __future__ import annotations

import math

from ucle.errors import ArgumentError, ArgumentTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """A learning rate; returned by the functions of `ucle.optim`.

    `text` is an expression over ``step``. It calls no tensors.
    """

    text: str
    varies: bool = True
    """True if the rate changes from step to step."""


def number(value: float) -> str:
    """Write a number in the language, in parentheses where it has a sign."""
    text = repr(float(value))
    return f"({text})" if value < 0 else text


def positive(value: float, where: str) -> None:
    """Check for a finite number greater than 0.

    Raises:
        ArgumentError: it is none.
    """
    args.real(value, where)
    if not 0 < value < math.inf:
        raise _unfit(where, "a finite number greater than 0", value)


def not_negative(value: float, where: str) -> None:
    """Check for a finite number of at least 0.

    Raises:
        ArgumentError: it is none.
    """
    args.real(value, where)
    if not 0 <= value < math.inf:
        raise _unfit(where, "a finite number of at least 0", value)


def _unfit(where: str, expected: str, value: object) -> ArgumentError:
    return ArgumentError(
        "the argument has a value that it cannot have",
        where=where,
        expected=expected,
        found=repr(value),
    )


@validated(rate=not_negative)
def constant(rate: float) -> Schedule:
    """Return a schedule with the same rate in every step; equivalent to a plain number.

    >>> constant(0.1).text
    '0.1'
    """
    return Schedule(number(rate), varies=False)


@validated(rate=not_negative, every=args.count(1), factor=positive)
def step_decay(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """Return a schedule multiplied by a factor every so many steps; PyTorch's ``StepLR``.

    Args:
        rate: the rate of the first steps.
        every: the number of steps with one rate.
        factor: the factor.

    >>> step_decay(0.1, 30, 0.5).text
    '0.1 * 0.5 ^ floor((step + 0.5) / 30.0)'
    """
    # Half a step keeps quotients away from integers, which they might miss by rounding.
    text = f"{number(rate)} * {number(factor)} ^ floor((step + 0.5) / {number(every)})"
    return Schedule(text)


@validated(rate=not_negative, factor=positive)
def exponential_decay(rate: float, factor: float) -> Schedule:
    """Return a schedule multiplied by a factor every step; PyTorch's ``ExponentialLR``.

    >>> exponential_decay(0.1, 0.99).text
    '0.1 * 0.99 ^ step'
    """
    return Schedule(f"{number(rate)} * {number(factor)} ^ step")


@validated(rate=not_negative, steps=args.count(1), least=not_negative)
def cosine(rate: float, steps: int, least: float = 0.0) -> Schedule:
    """Return a schedule that falls to the least rate by half a cosine wave, and stays there.

    Args:
        rate: the rate of the first step.
        steps: the number of steps until the least rate; up to there, the schedule is PyTorch's
            ``CosineAnnealingLR(T_max=steps)``.
        least: the rate at the end.

    >>> cosine(1.0, 100).varies
    True
    """
    # The cosine is the real part of a complex power of e.
    angle = f"min(step / {number(steps)}, 1.0) * {number(math.pi)} * 1j"
    return Schedule(f"{number(least)} + {number((rate - least) / 2)} * (1.0 + real(exp({angle})))")


@validated(steps=args.count(1))
def warmup(steps: int, then: float | Schedule) -> Schedule:
    """Return a schedule that rises linearly to the first rate of another one, then follows that.

    Args:
        steps: the number of warm-up steps; step n has (n + 1) / steps of the rate.
        then: the rate after the warm-up: a number or a schedule.

    >>> warmup(10, 0.1).text
    'min((step + 1.0) / 10.0, 1.0) * (0.1)'
    """
    after = schedule_of(then, "warmup(then=...)")
    later = after.text.replace("step", f"max(step - {steps}, 0)")
    return Schedule(f"min((step + 1.0) / {number(steps)}, 1.0) * ({later})")


def schedule_of(rate: float | Schedule, where: str) -> Schedule:
    """Return a schedule, which may be given as a number.

    Raises:
        ArgumentTypeError: neither of them.
        ArgumentError: a number that cannot be a rate.
    """
    if isinstance(rate, Schedule):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise ArgumentTypeError(
            "this is not a learning rate",
            where=where,
            expected="a number, or a schedule such as ucle.optim.cosine(1e-2, 200)",
            found=repr(rate)[:80],
        )
    not_negative(rate, where)
    return Schedule(number(rate), varies=False)
