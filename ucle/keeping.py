"""Keeps inputs in the layouts in which a program reads them, as tables for this and later programs.

An input lies in one layout, and its conversion costs what a repartition costs (sparse_einsum.txt,
section 7.2, takes it to be free). With ``store=`` it is converted once: the program that copies the
input into the layout is compiled and run like any other, and its result becomes a table of the
schema ``ucle``, ordered by its keys. `ucle.kept_tables` finds it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ucle.binding import BoundInput
from ucle.dictionaries import Dictionaries
from ucle.errors import InputError, NameResolutionError
from ucle.execute import execute_script, script_of
from ucle.ir import Label, Layout, Operand, Program, Tensor, Vertex
from ucle.kept_tables import Origins, key_names, keepable, record, table_for
from ucle.pipeline import Compiled, Options, plan_decomposition
from ucle.results import TensorRelation
from ucle.session import Session
from ucle.sources import TableSource
from ucle.stats.estimate import Occupancy

COPY = "kept"


def inputs_to_store(store: bool | str | Iterable[str], inputs: Iterable[str]) -> frozenset[str]:
    """The inputs that ``store=`` names.

    Raises:
        NameResolutionError: it names something else.
    """
