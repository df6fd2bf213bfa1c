"""One planted mistake."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One mistake; `old` stands exactly once in `file`.

    `tests` are known to notice it; where none are named, its program in `test_sharp.py` does.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The tests to run first."""
        return self.tests or (f"tests/mutations/test_sharp.py::test_program[{self.name}]",)
