"""The common interface of results, independent of where tensors are stored: outputs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from ucle.errors import OutputNameError, did_you_mean

T = TypeVar("T")


class Outputs(Mapping[str, T]):
    """The outputs of one execution, by name."""

    def __init__(self, tensors: Mapping[str, T]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self._tensors:
            raise OutputNameError(
                f"the result has no tensor {name!r}",
                where="result",
                expected=", ".join(self._tensors) or "no outputs",
                found=repr(name),
                hint=did_you_mean(name, self._tensors) if isinstance(name, str) else None,
            )
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)
