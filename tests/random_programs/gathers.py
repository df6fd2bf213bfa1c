"""Random programs that read and write tensors at the entries of others."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from random_programs.indices import IndexedDraw

from ucle.errors import ProgramSyntaxError
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.testing.generate import LABELS, Case, is_stable


def gathered_case(seed: int, size: int = 6) -> Case:
    """The case of a seed: the first draw that gathers or scatters, is finite inside and stable.

    Args:
        seed: any number.
        size: the most accesses to tensors and functions in the program.

    >>> case = gathered_case(3)
    >>> sorted(case.expected()) == sorted(gathered_case(3).expected())
    True
    """
    for attempt in range(10_000):
        rng = np.random.default_rng([seed, attempt, 3])
        draw = _GatherDraw(rng)
        try:
            case = replace(draw.case(), indexed=True)
        except ProgramSyntaxError:  # a label outside brackets is a tensor, and divided
            continue
        if not re.search(r"at\d+\[", case.text) or len(re.findall(r"\w+[\[(]", case.text)) > size:
            continue
        if _is_whole(case) and is_stable(case, rng):
            return case
    raise AssertionError(f"no stable program for seed {seed}")


def _is_whole(case: Case) -> bool:
    """True if all names are tensors: a label outside brackets is none."""
    statements = parse_program(case.text)
    read = {access.tensor for each in statements for access in accesses(each.expression)}
    return read <= {*case.arrays, *(each.target.tensor for each in statements)}


class _GatherDraw(IndexedDraw):
    """One draw of a program; tensors of indices are called ``at`` and a number."""

    def _index(self) -> tuple[str, int, list[str]]:
        """An index, about half of the time the entry of a tensor."""
        if self._rng.random() < 0.4:
            return super()._index()
        labels = [self._pick(LABELS) for _ in range(self._pick((1, 2), (4, 1)))]
        size, permissive = int(self._rng.integers(1, 6)), self._rng.random() < 0.2
        beyond = 2 if permissive else 0
        text = self._entries(labels, -beyond, size + beyond)
        form = self._pick(("{x}", "{x}", "{n}-{x}", "{x}*({x}-{x})"))
        text = form.format(x=text, n=size - 1)
        return f"~({text})" if permissive else text, size, list(dict.fromkeys(labels))

    def _entries(self, labels: list[str], low: int, high: int) -> str:
        """The text of a tensor of indices, which has these labels."""
        name = f"at{len(self._arrays)}"
        shape = tuple(self._bounds[x] for x in labels)
        self._shapes[name] = shape
        self._arrays[name] = self._rng.integers(low, high, size=shape, dtype=np.int64)
        return f"{name}[{','.join(labels)}]"

    def _with_inputs(self, text: str, outputs: tuple[str, ...] | None) -> Case:
        """Return the case; some statements that are not read write at the entries of tensors."""
        lines = []
        for line in text.split("\n"):
            target = re.match(r"(T\d)\[([^\]]+)\] (\S+=) ", line)
            unread = target is not None and len(re.findall(rf"\b{target[1]}\b", text)) == 1
            if target is None or not unread or target[3] in ("=", "mean="):
                lines.append(line)
                continue
            axes = target[2].split(",")
            n = int(self._rng.integers(len(axes)))
            if self._bounds[axes[n]] and self._rng.random() < 0.6:
                axes[n] = self._entries([axes[n]], 0, 5)
                # Where a label stops before the end of an axis, the data does not tell the size.
                if "+" in line or "-" in line or self._rng.random() < 0.3:
                    self._bounds[axes[n].partition("[")[0]] = 6
            lines.append(f"{target[1]}[{','.join(axes)}] {target[3]} {line[target.end() :]}")
        return super()._with_inputs("\n".join(lines), outputs)
