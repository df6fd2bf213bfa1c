"""The description of a stored model: all that another process needs beside the tables of weights.

It is JSON, in a row of the table ``ucle.models``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ucle.errors import ModelError, UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.models.graph import ModelInput, ModelOutput

FORMAT = 1
"""The version of the format. A description in another one is refused."""


@dataclass(frozen=True)
class StoredWeight:
    """A weight in a table of the schema ``ucle``."""

    table: str
    shape: tuple[int, ...]
    """The sizes of its axes; for names their number."""
    dtype: str
    """The element type, as the language names it; ``string`` for names with their positions."""
    blocks: tuple[int, ...] = ()
    """The blocks of the leading axes; see `ucle.models.weight_layouts`."""
    columns: tuple[tuple[str, str], ...] = ()
    """The names and types of its columns."""
    digest: str = ""
    """The digest of its rows, as `ucle.database.data_versions.digest` computes it."""
    facts: str = ""
    """The statistics of its rows, as `ucle.database.statistics_store.facts_text` writes them."""


@dataclass(frozen=True)
class ModelDocument:
    """A stored model."""

    name: str
    version: str
    statements: tuple[str, ...]
    sizes: Mapping[str, int]
    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelOutput, ...]
    weights: Mapping[str, StoredWeight]
    """By their names in the statements."""
    stored: str = ""
    """The time at which it was stored, in UTC."""

    @property
    def where(self) -> str:
        """The model, for messages.

        >>> ModelDocument("churn", "2", (), {}, (), (), {}).where
        'model churn, version 2'
        """
        return f"model {self.name}, version {self.version}"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables of its weights."""
        return tuple(each.table for each in self.weights.values())

    def to_json(self) -> str:
        """Return the description as text."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> ModelDocument:
        """Read a description.

        Raises:
            UnsupportedError: it is of another version of the format.
            ModelError: it is damaged.
        """
        try:
            read = json.loads(text)
        except ValueError:
            read = None
        if isinstance(read, dict) and read.pop("format", FORMAT) != FORMAT:
            raise UnsupportedError(
                "this model was stored by another version of ucle",
                where="stored model",
                expected=f"format {FORMAT} of its description",
                found=text[:80],
                hint="store it again from its file",
            )
        try:
            inputs = tuple(ModelInput(**_tuples(x)) for x in read.pop("inputs"))
            outputs = tuple(ModelOutput(**_tuples(x)) for x in read.pop("outputs"))
            weights = {x: StoredWeight(**_tuples(y)) for x, y in read.pop("weights").items()}
            plain = _tuples(read)
            return cls(**plain, inputs=inputs, outputs=outputs, weights=weights)
        except (AttributeError, KeyError, TypeError) as error:
            raise ModelError(
                "the description of a stored model is damaged",
                where="stored model, table ucle.models",
                expected="what store wrote",
                found=text[:80],
            ) from error


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with tuples in the place of lists, to any depth."""

    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, list) else value

    return {name: plain(value) for name, value in values.items()}
