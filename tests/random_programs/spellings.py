"""Random sums of products, each in several spellings of the same mathematics.

A program is a difference or sum of products of matrices and vectors, sparse and dense, with labels
that are aggregated away. It is spelled *flat*, with one sum for each product; *nested*, with sums
around parts of products and around differences; *by statements*, with a statement for each inner
sum; and *lazily*, with `ucle.einsum` of lazy tensors for each inner sum. Entries are small whole
numbers, so that every order of additions gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import ucle

SIZES = (8, 60, 400, 2000)
"""Sizes of labels: of features, and of nodes."""

LABELS = "ijklm"

ENTRIES = 12_000
"""The most entries of a sparse matrix."""

DENSE = 200_000
"""The most entries of a dense matrix."""

MOST_FACTORS, MOST_TERMS = 4, 3


@dataclass(frozen=True)
class Factor:
    """A tensor under labels, or a sum over some labels of a product of factors."""

    labels: str
    tensor: str = ""
    parts: tuple[Factor, ...] = ()
    over: str = ""

    def tensors(self) -> Iterator[Factor]:
        """Yield the tensors of which a factor is made."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.tensors()

    def nested(self) -> str:
        """Return the text of a factor in one expression."""
        if not self.parts:
            return f"{self.tensor}[{','.join(self.labels)}]"
        return f"sum[{','.join(self.over)}]({' * '.join(part.nested() for part in self.parts)})"


@dataclass(frozen=True)
class Term:
    """A product with its sign: its tensors, and the same product in a nested form."""

    sign: str
    factors: tuple[Factor, ...]
    nested: tuple[Factor, ...]
    over: str
    """The labels that the nested form leaves to a sum around the product."""


@dataclass(frozen=True)
class Spelled:
    """A program in several spellings, with its inputs."""

    output: str
    terms: tuple[Term, ...]
    sizes: Mapping[str, int]
    inputs: Mapping[str, Any]
    shared: str
    """Labels of one sum around the whole difference, in the nested spelling."""

    @cached_property
    def texts(self) -> dict[str, str]:
        """The program by the name of its spelling."""
        return {"flat": self._flat(), "nested": self._nested(), "statements": self._statements()}

    def _target(self) -> str:
        return f"y[{','.join(self.output)}]"

    def _flat(self) -> str:
        parts = []
        for term in self.terms:
            over = "".join(dict.fromkeys("".join(x.labels for x in term.factors)))
            over = "".join(label for label in over if label not in self.output)
            product = " * ".join(factor.nested() for factor in term.factors)
            parts.append((term.sign, _sum(over, product)))
        return f"{self._target()} = {_signed(parts)}"

    def _nested(self) -> str:
        parts = []
        for term in self.terms:
            over = "".join(label for label in term.over if label not in self.shared)
            product = " * ".join(factor.nested() for factor in term.nested)
            parts.append((term.sign, _sum(over, product)))
        whole = _signed(parts)
        return f"{self._target()} = {_sum(self.shared, whole)}"

    def _statements(self) -> str:
        lines: list[str] = []

        def stated(factor: Factor) -> str:
            if not factor.parts:
                return factor.nested()
            product = " * ".join(map(stated, factor.parts))
            name = f"T{len(lines)}[{','.join(factor.labels)}]"
            lines.append(f"{name} = sum[{','.join(factor.over)}]({product})")
            return name

        parts = []
        for term in self.terms:
            product = " * ".join(map(stated, term.nested))
            parts.append((term.sign, _sum(term.over, product)))
        return "\n".join([*lines, f"{self._target()} = {_signed(parts)}"])

    def lazily(self, connection: Any) -> ucle.Tensor:
        """Return the program as a lazy tensor."""
        tensors = {
            name: ucle.tensor(value, name=name, database=connection)
            for name, value in self.inputs.items()
        }

        def made(factor: Factor) -> Any:
            if not factor.parts:
                return tensors[factor.tensor]
            return _contracted([(made(x), x.labels) for x in factor.parts], factor.labels)

        total: Any = None
        for term in self.terms:
            value = _contracted([(made(x), x.labels) for x in term.nested], self.output)
            if total is None:
                total = -value if term.sign == "-" else value
            else:
                total = total - value if term.sign == "-" else total + value
        return total  # type: ignore[no-any-return]

    def expected(self) -> Any:
        """Return the result by NumPy and SciPy, in the order that `numpy.einsum` finds."""
        dense = {
            name: value.toarray() if sp.issparse(value) else value
            for name, value in self.inputs.items()
        }
        total: Any = 0.0
        for term in self.terms:
            sides = ",".join(factor.labels for factor in term.factors)
            arrays = [dense[factor.tensor] for factor in term.factors]
            value = np.einsum(f"{sides}->{self.output}", *arrays, optimize="greedy")
            total = total - value if term.sign == "-" else total + value
        return total


def _contracted(operands: Sequence[tuple[Any, str]], labels: str) -> Any:
    sides = ",".join(own for _, own in operands)
    return ucle.einsum(f"{sides}->{labels}", *(tensor for tensor, _ in operands))


def _sum(over: str, text: str) -> str:
    return f"sum[{','.join(over)}]({text})" if over else text


def _signed(parts: Sequence[tuple[str, str]]) -> str:
    first, *others = parts
    text = f"-{first[1]}" if first[0] == "-" else first[1]
    return text + "".join(f" {sign} {part}" for sign, part in others)


def spelled_program(seed: int) -> Spelled:
    """Return the program of a seed.

    >>> program = spelled_program(4)
    >>> print(program.texts["flat"])
    y[i] = sum[l](X0[i,l] * X0[i,l] * X1[i])
    >>> print(program.texts["nested"])
    y[i] = X1[i] * sum[l](X0[i,l] * X0[i,l])
    """
    return _Draw(np.random.default_rng(seed)).program()


class _Draw:
    """One draw of a program."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._sizes = {label: int(rng.choice(SIZES)) for label in LABELS}
        self._inputs: dict[str, Any] = {}
        self._by_labels: dict[tuple[str, ...], list[str]] = {}

    def program(self) -> Spelled:
        rng = self._rng
        output = "".join(rng.permutation(list(LABELS))[: rng.integers(0, 3)])
        terms = tuple(self._term(output, n) for n in range(rng.integers(1, MOST_TERMS + 1)))
        common = set.intersection(*(set(term.over) for term in terms))
        shared = "".join(sorted(common)) if len(terms) > 1 and rng.random() < 0.6 else ""
        return Spelled(output, terms, self._sizes, self._inputs, shared)

    def _term(self, output: str, number: int) -> Term:
        """Draw a product that has all labels of the output, in a connected pattern."""
        rng = self._rng
        first = output or str(rng.choice(list(LABELS)))
        known = first[0]
        factors: list[Factor] = []
        count = int(rng.integers(2, MOST_FACTORS + 1))
        while len(factors) < count or not set(output) <= set(known):
            shared = str(rng.choice(list(known)))
            missing = [x for x in output if x not in known]
            others = missing or [x for x in LABELS if x != shared]
            if rng.random() < 0.25 and not missing:
                factors.append(self._factor(shared))
                continue
            other = str(rng.choice(others))
            factors.append(self._factor(shared + other))
            known = "".join(dict.fromkeys(known + other))
            if len(factors) > MOST_FACTORS + 1:
                break
        sign = "-" if number and rng.random() < 0.5 else "+"
        nested, over = self._nest(factors, output)
        return Term(sign, tuple(factors), nested, over)

    def _factor(self, labels: str) -> Factor:
        """Draw a tensor of some labels, which may be one that is there already."""
        key = tuple(sorted(labels))
        known = self._by_labels.setdefault(key, [])
        if known and self._rng.random() < 0.5:
            return Factor("".join(key), str(self._rng.choice(known)))
        name = f"X{len(self._inputs)}"
        known.append(name)
        self._inputs[name] = self._array([self._sizes[label] for label in key])
        return Factor("".join(key), name)

    def _array(self, shape: Sequence[int]) -> Any:
        rng = self._rng
        cells = int(np.prod(shape))
        if len(shape) < 2:
            return rng.integers(-2, 3, shape).astype(float)
        if cells <= DENSE and rng.random() < 0.5:
            return rng.integers(-2, 3, shape).astype(float)
        entries = min(ENTRIES, cells // 4)
        places = rng.choice(cells, entries, replace=False)
        values = rng.integers(1, 3, entries) * rng.choice([-1, 1], entries)
        return sp.coo_array((values.astype(float), np.unravel_index(places, shape)), shape=shape)

    def _nest(self, factors: Sequence[Factor], output: str) -> tuple[tuple[Factor, ...], str]:
        """Put sums around parts of a product, label by label; return what is left."""
        current = list(factors)
        inner = {label for factor in factors for label in factor.labels} - set(output)
        for label in self._rng.permutation(sorted(inner)):
            own = [factor for factor in current if label in factor.labels]
            if len(own) == len(current) and self._rng.random() < 0.7:
                continue  # a sum around the whole product
            if self._rng.random() < 0.25:
                continue
            left = "".join(sorted({x for factor in own for x in factor.labels} - {label}))
            made = Factor(left, parts=tuple(own), over=str(label))
            current = [factor for factor in current if factor not in own] + [made]
        over = "".join(sorted({x for factor in current for x in factor.labels} - set(output)))
        return tuple(current), over
