"""Compiled programs of refreshes, kept in the process: the next refresh of the same kind runs them.

A program is taken again if it has the same statements over the same columns, its inputs have about
as many entries, and nothing else that it relies on has changed: sizes, coordinates, and what is
known about values (`ucle.pipeline.resize.fits_data`). All checks of inputs are made in any case.

Programs for different numbers of entries are kept beside each other: days with few changed rows and
days with many come in turn, and a plan for a hundred rows can take minutes for ten thousand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.database.session import Session
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.resize import fits_data
from ucle.pipeline.stages import bind_statements, compile_sized, source_of
from ucle.run.current_data import Prepared

MOST_BYTES = 1 << 25
"""Bytes of all kept programs together."""

ALIKE = 4.0
"""How many times as many entries inputs may have for one plan."""

FEW = 16.0
"""The number of entries up to which it does not matter how many there are."""


MOST_FITS = 4
"""How many states of knowledge about its inputs a program is known to fit."""


@dataclass(frozen=True)
class KeptProgram:
    """A program with its scripts, and the states of its inputs that it is known to fit."""

    prepared: Prepared
    fits: tuple[ResolvedProgram, ...] = ()
    """What was known lately about its inputs beside what it was compiled for: facts about changed
    rows, which are few, come and go."""

    @property
    def compiled(self) -> Compiled:
        """The program."""
        return self.prepared.compiled

    @property
    def cost(self) -> float:
        """Its predicted cost."""
        return self.compiled.decomposed.total_cost


_programs = BoundedCache[KeptProgram](MOST_BYTES, together=4)


def kept_program(
    statements: Sequence[Statement],
    inputs: Mapping[str, TableInput],
    outputs: Sequence[str],
    session: Session,
    options: Options,
) -> KeptProgram:
    """Return a program for present data: one that is kept, or a new one.

    Args:
        statements: of the program.
        inputs: its tables.
        outputs: the tensors to be computed.
        session: on the database.
        options: but for the outputs.

    Raises:
        UcleError: the program cannot be compiled, or inputs do not pass its checks.
    """
    options = replace(options, outputs=tuple(outputs))
    resolved, sized = bind_statements(tuple(statements), inputs, session, options)
    source = source_of(resolved, sized, options)
    facts = {name: (x.source, x.fill, x.dtype) for name, x in sized.bound.items()}
    amounts = {name: _amount(x) for name, x in sized.bound.items()}
    key = ExactKey.find((resolved, facts, options, amounts))
    known = None if key is None else _programs.get(key)
    if known is not None and key is not None:
        if source in (known.compiled.front.source, *known.fits):
            return known
        if fits_data(known.compiled, sized, source):
            _programs.put(key, replace(known, fits=(source, *known.fits[: MOST_FITS - 1])))
            return known
    compiled = compile_sized(session, resolved, sized, options)
    made = KeptProgram(Prepared(compiled, options))
    if key is not None:
        _programs.put(key, made)
    return made


def _amount(bound: BoundInput) -> int:
    """Return a number that inputs with about as many entries have in common."""
    return math.ceil(math.log(max(FEW, bound.statistics.entries) / FEW, ALIKE))
