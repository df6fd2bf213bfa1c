"""Random programs that compute with labels: other reads, conditions, diagonals, scans."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ucle.errors import ProgramSyntaxError
from ucle.language.parse import parse_program
from ucle.language.statements import input_labels
from ucle.testing.generate import LABELS, LOGICAL, Case, ProgramDraw, is_stable
from ucle.testing.random_inputs import random_array

COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


def indexed_case(seed: int, size: int = 6) -> Case:
    """The case of a seed: the first draw that computes with labels, is finite inside and stable.

    Args:
        seed: any number.
        size: the most accesses to tensors and functions in the program.

    >>> case = indexed_case(3)
    >>> sorted(case.expected()) == sorted(indexed_case(3).expected())
    True
    """
    for attempt in range(10_000):
        rng = np.random.default_rng([seed, attempt, 2])
        draw = IndexedDraw(rng)
        try:
            case = replace(draw.case(), indexed=True)
        except ProgramSyntaxError:  # // of a name that is not a label, which no tensor has
            continue
        if not input_labels(parse_program(case.text)).keys() <= case.arrays.keys():
            continue  # a name that is not a label is a tensor
        if not draw.indexed or len(re.findall(r"\w+[\[(]", case.text)) > size + 2:
            continue
        if is_stable(case, rng):
            return case
    raise AssertionError(f"no stable program for seed {seed}")


class IndexedDraw(ProgramDraw):
    """One draw of a program; `indexed` is True if it computes with labels."""

    indexed = False

    def _axes(self, labels: list[str]) -> list[str]:
        """Draw labels of the left side; sometimes one occurs twice, or occurs nowhere else."""
        axes = super()._axes(labels)[:3]
        if axes and self._rng.random() < 0.15:
            axes.insert(int(self._rng.integers(len(axes) + 1)), self._pick(axes))
            self.indexed = True
        elif self._rng.random() < 0.15:
            others = [x for x in LABELS if x not in labels]
            if others:
                axes.append(self._pick(others))
                self.indexed = True
        return axes

    def _expression(self, depth: int) -> tuple[str, list[str]]:
        text, labels = super()._expression(depth)
        if depth < 1 or not labels or self._rng.random() > 0.35:
            return text, labels
        self.indexed = True
        kind = self._pick(("times", "times", "when", "value", "alone", "running", "first", "first"))
        if kind == "first":
            return self._first(text, labels)
        if kind == "running":
            name = self._pick(("cumsum", "cumsum", "cumprod", "cummax", "cummin"))
            return f"{name}[{self._pick(labels)}]({text})", labels
        if kind == "value":
            label = self._pick(labels)
            return f"({text} {self._pick(('*', '+', '-'))} {label})", labels
        own = labels if self._rng.random() < 0.7 else [*labels, self._pick(LABELS)]
        condition, used = self._condition(own)
        every = list(dict.fromkeys((*labels, *used)))
        if len(every) > 5:
            return text, labels
        if kind == "when":
            return f"when({condition}, {text})", every
        operator = "*" if kind == "times" else "+"
        return f"(({condition}) {operator} {text})", every

    def _first(self, text: str, labels: list[str]) -> tuple[str, list[str]]:
        """Draw a top-k expression along a label, or its positions."""
        label = self._pick(labels)
        others = [x for x in labels if x != label]
        ranks = [x for x in LABELS if x not in labels and self._bounds[x] <= self._bounds[label]]
        if not ranks or self._rng.random() < 0.3:
            return f"{self._pick(('argmax', 'argmin'))}[{label}]({text})", others
        end, rank = self._pick(("top", "bottom")), ranks[0]
        if self._rng.random() < 0.3:
            return f"among_{end}_k[{label},{rank}]({text})", labels
        arg = self._pick(("", "arg_"))
        return f"{arg}{end}_k[{label},{rank}]({text})", [*others, rank]

    def _condition(self, labels: list[str]) -> tuple[str, list[str]]:
        """Draw a condition on some labels, and return it with these."""
        one, other = self._pick(labels), self._pick(labels)
        sign = self._pick(COMPARISONS)
        number = int(self._rng.integers(-1, 4))
        forms = (
            f"{one} {sign} {other}",
            f"{one} {sign} {number}",
            f"abs({one} - {other}) {sign} {number}",
            f"{one} + 2 * {other} {sign} {number}",
            f"not ({one} {sign} {other} + {number})",
            f"({one} + {other}) % 2 {sign} {number}",
            f"{one} // 2 {sign} {other}",
        )
        text = str(self._pick(forms))
        if self._rng.random() < 0.3:
            more, also = self._condition(labels)
            return f"{text} {self._pick(LOGICAL)} ({more})", [one, other, *also]
        return text, [one, other]

    def _access(self) -> tuple[str, list[str]]:
        if self._rng.random() > 0.35:
            return super()._access()
        self.indexed = True
        indices, shape, labels = list[str](), list[int](), list[str]()
        for _ in range(self._pick((1, 2, 3), (5, 4, 1))):
            text, size, own = self._index()
            indices.append(text)
            shape.append(size)
            labels += own
        name = f"{self._pick(('S', 'shifted'))}{len(self._arrays)}"
        self._shapes[name] = tuple(shape)
        density = self._pick((0.2, 0.5, 0.8, 1.0))
        dtype = self._pick(self._dtypes)
        self._arrays[name] = random_array(self._rng, tuple(shape), density, dtype)
        return f"{name}[{','.join(indices)}]", list(dict.fromkeys(labels))

    def _index(self) -> tuple[str, int, list[str]]:
        """Draw an index, the size of an axis that it fits, and its labels."""
        one, other = self._pick(LABELS), self._pick(LABELS)
        n, m = self._bounds[one], self._bounds[other]
        by, more = int(self._rng.integers(0, 3)), int(self._rng.integers(0, 2))
        kinds = "plain", "shift", "stride", "back", "sum", "number", "outside", "split", "split"
        kind = self._pick(kinds)
        match kind:
            case "plain":
                return one, n, [one]
            case "shift":
                return f"{one}+{by}", n + by + (more if by else 0), [one]
            case "stride":
                return f"2*{one}+{by}", 2 * n + by + more, [one]
            case "back":
                return f"{n + by}-{one}", n + by + 1 + more, [one]
            case "sum":
                return f"{one}+{other}+{by}", n + m + by + more, [one, other]
            case "number":
                return str(by), by + 1 + more, []
            case "split":
                part = max(m - 1 + by, 0) // (more + 2)
                text = f"({other}+{by})//{more + 2}"
                if self._rng.random() < 0.5:
                    return f"{one}+{text}", n + part, [one, other]
                return text, part + 1, [other]
        sign = self._pick(("+", "-"))
        if self._rng.random() < 0.3:
            return f"~(({one}-{by})%{by + 2})", int(self._rng.integers(0, 4)), [one]
        return f"~({one}{sign}{by}{sign}{other})", int(self._rng.integers(0, 6)), [one, other]
