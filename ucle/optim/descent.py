"""Optimisers: the update of one parameter as texts of the language.

A text refers to the parameter ``w``, its gradient ``g``, its states, and the numbers that all
parameters share. States are those before the step; with the suffix ``_next`` they are those after
it.

Source of Adam: Kingma and Ba (ICLR 2015); of its decoupled weight decay: Loshchilov and Hutter
(ICLR 2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.optim.schedules import Schedule, not_negative, number, positive, schedule_of

Decay = float | Mapping[str, float]
"""Weight decay of all parameters, or a dict of decays by parameter name."""


@dataclass(frozen=True)
class Optimiser:
    """Common settings of all optimisers; returned by `sgd`, `adam` and `adamw`."""

    rate: Schedule
    weight_decay: Decay = 0.0
    clip_value: float | None = None
    """The largest absolute value that an entry of a gradient may have."""
    clip_norm: float | None = None
    """The largest norm that all gradients together may have."""

    @property
    def states(self) -> tuple[str, ...]:
        """Stems of the state tensors that are kept for each parameter from step to step."""
        return ()

    @property
    def counts(self) -> bool:
        """True if it depends on the number of the step."""
        return self.rate.varies

    @property
    def clipped(self) -> str:
        """The gradient with its entries clipped."""
        if self.clip_value is None:
            return "g"
        end = number(self.clip_value)
        return f"min(max(g, -{end}), {end})"

    def decay_of(self, parameter: str) -> float:
        """The weight decay of a parameter."""
        if isinstance(self.weight_decay, Mapping):
            return self.weight_decay.get(parameter, 0.0)
        return self.weight_decay

    def shared_numbers(self) -> dict[str, str]:
        """Numbers that all parameters share: their texts over ``step`` and earlier ones."""
        return {"rate": self.rate.text} if self.rate.varies else {}

    def updates(self, decay: float) -> dict[str, str]:
        """Return the texts of each state and of ``w`` after a step, in order, for a decay."""
        raise NotImplementedError

    @property
    def _rate(self) -> str:
        return "rate" if self.rate.varies else self.rate.text

    def _gradient(self, decay: float) -> str:
        """The gradient after clipping, plus that of coupled weight decay, if any."""
        text = self.clipped if self.clip_norm is None else f"{self.clipped} * clip"
        return f"({text} + {number(decay)} * w)" if decay else f"({text})"


@dataclass(frozen=True)
class Sgd(Optimiser):
    """Stochastic gradient descent; returned by `sgd`."""

    momentum: float = 0.0
    nesterov: bool = False

    @property
    def states(self) -> tuple[str, ...]:
        """The running sum of gradients, if there is momentum."""
        return ("m",) if self.momentum else ()

    def updates(self, decay: float) -> dict[str, str]:
        """Return the texts of the running sum and the parameter."""
        g = self._gradient(decay)
        if not self.momentum:
            return {"w": f"w - {self._rate} * {g}"}
        along = f"({g} + {number(self.momentum)} * m_next)" if self.nesterov else "m_next"
        return {"m": f"{number(self.momentum)} * m + {g}", "w": f"w - {self._rate} * {along}"}


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam, with coupled or decoupled weight decay; returned by `adam` and `adamw`."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decoupled: bool = False

    @property
    def states(self) -> tuple[str, ...]:
        """The running means of gradients and of their squares."""
        return ("m", "v")

    @property
    def counts(self) -> bool:
        """True: the means begin at 0, and the correction depends on the number of the step."""
        return True

    def shared_numbers(self) -> dict[str, str]:
        """The corrected rate of the first mean, and the root of the second mean's correction."""
        first, second = map(number, self.betas)
        return {
            **super().shared_numbers(),
            "stride": f"{self._rate} / (1.0 - {first} ^ (step + 1))",
            "spread": f"sqrt(1.0 - {second} ^ (step + 1))",
        }

    def updates(self, decay: float) -> dict[str, str]:
        """Return the texts of both means and the parameter."""
        first, second = self.betas
        g = self._gradient(0.0 if self.decoupled else decay)
        w = "w"
        if self.decoupled and decay:
            w = f"w * (1.0 - {self._rate} * {number(decay)})"
        return {
            "m": f"{number(first)} * m + {number(1 - first)} * {g}",
            "v": f"{number(second)} * v + {number(1 - second)} * square{g}",
            "w": f"{w} - stride * (m_next / (sqrt(v_next) / spread + {number(self.eps)}))",
        }


def _decay(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        args.mapping(args.text, not_negative, "a dict from parameter to its decay")(value, where)
    else:
        not_negative(value, where)


def _freeze_decay(decay: Decay) -> Decay:
    if isinstance(decay, Mapping):
        return MappingProxyType({name: float(value) for name, value in decay.items()})
    return float(decay)


def _fraction(value: Any, where: str) -> None:
    args.real(value, where)
    if not 0 <= value < 1:
        raise ArgumentError(
            "the argument has a value that it cannot have",
            where=where,
            expected="a number from 0 on and less than 1",
            found=repr(value),
        )


def _beta_pair(value: Any, where: str) -> None:
    args.several(_fraction, "two numbers")(value, where)
    if len(tuple(value)) != 2:
        raise ArgumentError(
            "each mean needs a number",
            where=where,
            expected="two numbers",
            found=repr(value),
        )


@validated(
    momentum=not_negative,
    nesterov=args.flag,
    weight_decay=_decay,
    clip_value=positive,
    clip_norm=positive,
)
def sgd(
    rate: float | Schedule,
    momentum: float = 0.0,
    *,
    nesterov: bool = False,
    weight_decay: Decay = 0.0,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Sgd:
    """Return stochastic gradient descent, as PyTorch's ``SGD``.

    Args:
        rate: the learning rate: a number, or a schedule.
        momentum: the factor on the running sum of gradients in each step.
        nesterov: True to take the gradient after the momentum step.
        weight_decay: this number times the parameter is added to its gradient; a number for all
            parameters, or a dict by name.
        clip_value: entries of gradients are limited to at most this absolute value.
        clip_norm: gradients are scaled so that the norm of all of them together is at most this.

    Raises:
        ArgumentError: a number is not valid, or ``nesterov`` is set without momentum.

    >>> sgd(0.1, 0.9).updates(0.0)["w"]
    'w - 0.1 * m_next'
    """
    if nesterov and not momentum:
        raise ArgumentError(
            "nesterov=True needs a momentum",
            where="sgd(nesterov=...)",
            expected="momentum greater than 0, too",
            found=f"momentum={momentum!r}",
        )
    schedule = schedule_of(rate, "sgd(rate=...)")
    decay = _freeze_decay(weight_decay)
    return Sgd(schedule, decay, clip_value, clip_norm, float(momentum), bool(nesterov))


@validated(
    betas=_beta_pair,
    eps=not_negative,
    weight_decay=_decay,
    clip_value=positive,
    clip_norm=positive,
)
def adam(
    rate: float | Schedule = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    *,
    eps: float = 1e-8,
    weight_decay: Decay = 0.0,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Adam:
    """Return Adam, as PyTorch's ``Adam``: each entry is scaled by its own gradients' moments.

    Args:
        rate: the learning rate: a number, or a schedule.
        betas: the decay factors of the running means of gradients and of their squares.
        eps: a constant that is added to the divisor.
        weight_decay: this number times the parameter is added to its gradient; a number for all
            parameters, or a dict by name.
        clip_value: entries of gradients are limited to at most this absolute value.
        clip_norm: gradients are scaled so that the norm of all of them together is at most this.

    >>> adam(1e-2, weight_decay={"W1": 5e-4}).decay_of("W2")
    0.0
    """
    schedule, decay = schedule_of(rate, "adam(rate=...)"), _freeze_decay(weight_decay)
    first, second = betas
    return Adam(schedule, decay, clip_value, clip_norm, (float(first), float(second)), float(eps))


@validated(
    betas=_beta_pair,
    eps=not_negative,
    weight_decay=_decay,
    clip_value=positive,
    clip_norm=positive,
)
def adamw(
    rate: float | Schedule = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    *,
    eps: float = 1e-8,
    weight_decay: Decay = 1e-2,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Adam:
    """Return Adam with decoupled weight decay, as PyTorch's ``AdamW``.

    Parameters are multiplied by 1 - rate * weight_decay, and their gradients stay as they are; all
    else is as in `adam`.

    >>> adamw().weight_decay
    0.01
    """
    schedule, decay = schedule_of(rate, "adamw(rate=...)"), _freeze_decay(weight_decay)
    first, second = float(betas[0]), float(betas[1])
    return Adam(schedule, decay, clip_value, clip_norm, (first, second), float(eps), decoupled=True)
