"""How to compile: the options of a program, as every stage gets them.

What can be said of an option by itself is checked here, when options are made, before anything is
opened or read. What depends on the program is checked with it (`ucle.pipeline.stages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ucle.cost.prices import Profile
from ucle.errors import ArgumentTypeError, InputError, LabelError, did_you_mean
from ucle.foundation.arguments import count, several, text
from ucle.ir.layouts import TILE
from ucle.language.bounds import checked_size
from ucle.plan.complete_keyless import complete_keyless
from ucle.plan.fuse_dense_steps import fuse_dense_steps
from ucle.plan.fuse_maps import fuse_maps
from ucle.plan.inline_constants import inline_constants
from ucle.plan.keep_in_statement import keep_in_statement
from ucle.plan.materialise import materialise_shared
from ucle.plan.materialise_large import materialise_large
from ucle.plan.nest_keyless import nest_keyless
from ucle.plan.partition_aggregates import partition_aggregates
from ucle.plan.pass_by_reference import pass_by_reference
from ucle.plan.pass_context import REFERENCE_BYTES
from ucle.plan.passes import Pass
from ucle.plan.resources import Resources
from ucle.plan.split_small_scans import split_small_scans
from ucle.stats.estimate import Estimator
from ucle.stats.estimators import DEFAULT, ESTIMATORS, PAPER

GivenDecomposition = str | Mapping[str, Iterable[str]]
"""``"auto"``, ``"relational"``, ``"as-written"``, or promoted labels by tensor name."""


ContractionPath = Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]
"""Positions of factors, as opt_einsum writes a path; of one statement, or by tensor name."""


ASSOCIATIONS = ("free", "as-written")
SEARCHES = ("dag", "trees", "greedy")
STATISTICS = ("auto", "transient", "exact")
NONFINITE = ("exact", "sparse")
REWRITES = ("safe", "algebraic", "none")
ENGINES = ("auto", "spark", "duckdb")
RUNS = 100
"""How often a program may run that is made for a loop."""
DECOMPOSITIONS = ("auto", "relational", "as-written")


@dataclass(frozen=True)
class Optimisations:
    """One switch for each optimisation, and from where on a search no longer looks at everything.

    Answers are the same however they stand.

    For tests and measurements: they are no arguments of `ucle.einsum_program`, as nobody gains by
    them what `decomposition` and `association` do not give. `ucle.testing.recompiled` sets them.
    """

    merge: bool = True
    """Statements become factors of the ones that use them, where that makes a cheaper order."""
    demand: bool = True
    """What is only looked at behind a mask is computed behind it, where that is cheaper."""
    demand_gain: float = 0.01
    """The share of the cost that this has to gain."""
    mask_share: float = 0.25
    """Of the entries of an input, how many may be stored for it to be worth a mask."""
    rewrite_gain: float = 0.1
    """The share of the cost that other sums of products than the written ones have to gain."""
    rewrite_effort: float = 1.0
    """How much longer than by default the search for them may take; 0 for none at all."""
    association: bool = True
    """Factors of products are joined in another order than the written one, where that pays."""
    association_effort: int = 1500
    """Decompositions of vertices that all orders which are tried may have together."""
    association_gain: float = 0.01
    """The share of the cost that another order than the written one has to gain."""
    skip_small: bool = True
    """Tensors so small that nothing is gained by promoting a label are not searched."""
    exact_cells: int = 1 << 20
    """Entries of one table up to which the dynamic program solves shared vertices exactly."""
    wide_vertex: int = 32
    """Decompositions of one vertex from which on only some of them are looked at."""
    more_starts: float = 1e5
    """The cost of a plan, for each price that its search asked for, from which on it is worth to
    search from several starts: ten times what a price takes. Time itself would let the load of the
    machine choose the plan."""
    levels: bool = True
    """Labels may be tiled, and compressed inside the arrays."""
    tile: int = TILE
    """Positions of a tile."""
    materialise: bool = True
    """Tables for what several steps read, where that is cheaper than computing it again."""
    constants: bool = True
    """Small arrays from memory are written into statements."""
    references: int | None = REFERENCE_BYTES
    """Payload in bytes from which cross joins get a tensor by reference; None for never."""
    nest: bool = True
    """Steps without key columns are written into their readers."""
    slices: float | None = 5e6
    """The cost from which on a statement over few tuples is spread over threads; None for never."""
    rounds: float | None = 0.5
    """The share of the memory from which on groups are made in rounds, where DuckDB would spill
    them; None for never."""
    tapes: bool = True
    """Calls on whole tensors are one call, where they make several tensors."""
    chains: bool = True
    """Pointwise functions of tensors without key columns are one call, in one statement."""

    @property
    def off(self) -> tuple[Pass, ...]:
        """The passes over the plan that are left out."""
        switches: dict[Pass, bool] = {
            materialise_shared: self.materialise,
            inline_constants: self.constants,
            pass_by_reference: self.references is not None,
            nest_keyless: self.nest,
            split_small_scans: self.slices is not None,
            materialise_large: self.rounds is not None,
            partition_aggregates: self.rounds is not None,
            complete_keyless: self.chains,
            fuse_maps: self.chains,
            fuse_dense_steps: self.tapes,
            keep_in_statement: self.chains,
        }
        return tuple(rewrite for rewrite, on in switches.items() if not on)


@dataclass(frozen=True)
class Options:
    """How to compile: see `ucle.einsum_program`."""

    profile: Profile
    resources: Resources
    decomposition: GivenDecomposition = "auto"
    bounds: Mapping[str, int] | None = None
    outputs: tuple[str, ...] | None = None
    path: ContractionPath | None = None
    nonfinite: str = "exact"
    search: str = "dag"
    store: bool | frozenset[str] = False
    """Inputs that are kept in the layouts in which the program reads them; True for all."""
    statistics: str = "auto"
    association: str = "free"
    rewrite: str = "safe"
    optimisations: Optimisations = field(default_factory=Optimisations)
    runs: int = 1
    """How often the program runs on the same data, but for the inputs that vary: what depends on
    none of these is computed once."""
    carried: frozenset[str] = frozenset()
    """Inputs in whose place an output comes after the first run: in which layouts their tables lie
    counts only once."""
    estimator: str = "auto"
    """One of `ucle.stats.estimators`; ``"auto"`` stands for the one that the profile asks for."""

    def __post_init__(self) -> None:
        _check_choice("search", self.search, SEARCHES, "unknown way to search for decompositions")
        _check_choice(
            "association", self.association, ASSOCIATIONS, "unknown way to associate products"
        )
        _check_choice("rewrite", self.rewrite, REWRITES, "unknown way to rewrite sums of products")
        _check_choice("statistics", self.statistics, STATISTICS, "unknown way of measuring inputs")
        _check_choice(
            "nonfinite", self.nonfinite, NONFINITE, "unknown treatment of what is not finite"
        )
        _check_choice(
            "estimator", self.estimator, ("auto", *ESTIMATORS), "unknown way of estimating sizes"
        )
        check_decomposition(self.decomposition)
        if self.path is not None:
            _check_path(self.path)
        if self.bounds is not None:
            if not isinstance(self.bounds, Mapping):
                raise _wrong_type("bounds", "a dict from label to size", self.bounds)
            for label, size in self.bounds.items():
                checked_size(size, f"bounds, label {label}")

    @property
    def cost_estimator(self) -> Estimator:
        """What estimates the sizes that are priced."""
        own = PAPER if self.profile.paper_estimates else DEFAULT
        return ESTIMATORS[own if self.estimator == "auto" else self.estimator]

    @property
    def order_estimator(self) -> Estimator:
        """What ranks the orders of products, of which the paper's profile says nothing."""
        return ESTIMATORS[DEFAULT if self.estimator == "auto" else self.estimator]


def check_decomposition(decomposition: Any) -> None:
    """Check that this may be a decomposition; its labels are checked with the program.

    Raises:
        LabelError: there is no decomposition of that name.
        ArgumentTypeError: neither a name nor labels by tensor.
    """
    choices = DECOMPOSITIONS
    if isinstance(decomposition, Mapping):
        for name, promoted in decomposition.items():
            if not isinstance(promoted, Iterable) or not all(
                isinstance(label, str) for label in _looked_at(promoted)
            ):
                shown = f"{promoted!r} for {name}"
                raise _wrong_type("decomposition", "the promoted labels of each tensor", shown)
    elif decomposition not in choices:
        raise LabelError(
            "unknown decomposition",
            where="decomposition",
            expected="'auto', 'relational', 'as-written' or promoted labels by tensor",
            found=repr(decomposition),
            hint=did_you_mean(str(decomposition), choices),
        )


def _check_path(path: object) -> None:
    """A path is made of steps of positions; whether they are there is known with the program."""
    steps = path.values() if isinstance(path, Mapping) else (path,)
    expected = "tuples of positions of factors, such as [(1, 2), (0, 1)]; a dict of such by tensor"
    position = several(count(), expected)
    for name in path if isinstance(path, Mapping) else ():
        text(name, "path")
    for each in steps:
        several(position, expected)(each, "path")


def _looked_at(labels: Iterable[str]) -> Iterable[str]:
    """What can be looked at without being used up."""
    return () if isinstance(labels, Iterator) else labels


def names_of(names: str | Iterable[str], where: str) -> tuple[str, ...]:
    """Names of tensors, as a caller may write them: one, or several.

    Raises:
        ArgumentTypeError: it is neither.
    """
    if isinstance(names, str):
        return (names,)
    listed = tuple(names) if isinstance(names, Iterable) else None
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise _wrong_type(where, "the name of a tensor, or several", names)
    return listed


def _check_choice(option: str, value: object, choices: Sequence[str], message: str) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            message,
            where=option,
            expected="one of " + ", ".join(map(repr, choices)),
            found=repr(value),
            hint=did_you_mean(str(value), choices),
        )


def _wrong_type(where: str, expected: str, found: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "an option has a type that it cannot have",
        where=where,
        expected=expected,
        found=found if isinstance(found, str) else repr(found),
    )
