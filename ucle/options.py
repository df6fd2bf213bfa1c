"""Compiler options of a program, as every stage receives them.

Checks that concern an option by itself are made here, when options are created, before anything is
opened or read. Checks that depend on the program are made with it (`ucle.pipeline.stages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ucle.errors import ArgumentTypeError, InputError, LabelError, did_you_mean
from ucle.foundation.arguments import count, several, text
from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import TILE
from ucle.language.bounds import checked_size
from ucle.plan.complete_keyless import complete_keyless
from ucle.plan.compute_columns import compute_columns
from ucle.plan.fuse_dense_steps import fuse_dense_steps
from ucle.plan.fuse_maps import fuse_maps
from ucle.plan.inline import inline_constants, keep_in_statement
from ucle.plan.join_every_tuple import join_every_tuple
from ucle.plan.load_every_tuple import load_every_tuple
from ucle.plan.materialise import materialise_large, materialise_shared
from ucle.plan.nest_keyless import nest_keyless
from ucle.plan.pair_scans import pair_scans
from ucle.plan.partition_aggregates import partition_aggregates
from ucle.plan.pass_by_reference import pass_by_reference
from ucle.plan.pass_context import REFERENCE_BYTES
from ucle.plan.passes import Pass
from ucle.plan.prices import Profile
from ucle.plan.resources import Resources
from ucle.plan.split_small_scans import split_small_scans
from ucle.plan.windows_of_time import windows_of_time
from ucle.stats.estimate import Estimator
from ucle.stats.estimators import DEFAULT, ESTIMATORS, PAPER

GivenDecomposition = str | Mapping[str, Iterable[str]]
"""``"auto"``, ``"relational"``, ``"as-written"``, or promoted labels by tensor name."""


ContractionPath = Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]
"""Positions of factors, as opt_einsum writes a path; for one statement, or by tensor name."""


ASSOCIATIONS = ("free", "as-written")
SEARCHES = ("dag", "trees", "greedy")
STATISTICS = ("auto", "transient", "exact")
NONFINITE = ("exact", "sparse")
REWRITES = ("auto", "safe", "algebraic", "none")
ENGINES = ("auto", "spark", "duckdb")
RUNS = 100
"""The number of runs that is assumed for a program that is made for a loop."""
DECOMPOSITIONS = ("auto", "relational", "as-written")


@dataclass(frozen=True)
class Optimisations:
    """One switch for each optimisation, and the limits up to which searches are exhaustive.

    They never change the answers.

    They are for tests and measurements, and not arguments of `ucle.einsum_program`: users gain
    nothing by them beyond `decomposition` and `association`. `ucle.testing.recompiled` sets them.
    """

    merge: bool = True
    """Inline statements into the ones that use them, where that allows a cheaper join order."""
    push_down_masks: bool = True
    """Mask push-down: compute values that are only read under a mask there, if cheaper."""
    mask_gain: float = 0.01
    """The share of the cost that mask push-down has to gain."""
    mask_share: float = 0.25
    """The largest share of stored entries for which an input is used as a mask."""
    rewrite_gain: float = 0.1
    """The share of the cost that rewritten sums of products have to gain."""
    rewrite_saving: float = 4.0
    """How many times cheaper a form must be whose condition numbers decide whether it is used."""
    rewrite_effort: float = 1.0
    """The effort of the search for rewrites, relative to the default; 0 for no search."""
    association: bool = True
    """Join the factors of products in another order than the written one, where that pays."""
    association_effort: int = 1500
    """The most decompositions of vertices that all tried join orders may have together."""
    association_work: float = 20e6
    """The work of changing join orders, in nanoseconds, that any program may take.

    Infinity for all of it, whatever statements cost.
    """
    association_gain: float = 0.01
    """The share of the cost that another join order than the written one has to gain."""
    multiway: float | None = 5e6
    """The cost that `ucle.optimiser.multiway_joins` have to save; None for none of them."""
    lookups: float | None = 5e5
    """The cost that `ucle.optimiser.lookup_joins` have to save; None for none of them."""
    skip_small: bool = True
    """Do not search tensors so small that promoting a label gains nothing."""
    exact_cells: int = 1 << 20
    """Entries of one table up to which the dynamic program solves shared vertices exactly."""
    wide_vertex: int = 32
    """Decompositions of one vertex from which on only some of them are considered."""
    more_starts: float = 1e5
    """The cost of a plan, per price of its search, from which on several starts pay off.

    That is ten times what one price takes. A measured time would let the load of the machine
    choose the plan.
    """
    runs_to_pay: float = 10.0
    """Runs of a program that have to win back the work of a long step of its search."""
    like_shapes: float | None = 2.0
    """The factor by which sizes may differ from those of a program whose plan is taken over.

    None for no plan that was chosen for another program.
    """
    levels: bool = True
    """Allow labels to be tiled, and to be compressed inside the arrays."""
    tile: int = TILE
    """Positions of a tile."""
    materialise: bool = True
    """Store in tables what several steps read, where that is cheaper than computing it again."""
    constants: bool = True
    """Write small arrays from memory into statements."""
    references: int | None = REFERENCE_BYTES
    """Payload in bytes from which cross joins get a tensor by reference; None for never."""
    nest: bool = True
    """Nest steps without key columns in their readers."""
    slices: float | None = 5e6
    """The cost from which on a statement over few tuples is spread over threads; None for never."""
    rounds: float | None = 0.5
    """The share of the memory from which on groups are aggregated in rounds; None for never.

    Rounds are used where DuckDB would spill the groups.
    """
    tapes: bool = True
    """Fuse calls on whole tensors into one call, where they make several tensors."""
    columns: float | None = 20_000
    """The rows from which expressions over columns compute a wide table; None for never.

    To write and plan the expressions takes milliseconds.
    """
    windows: bool = True
    """Aggregate over windows of time by windows of SQL, and not over pairs of times."""
    every_tuple: bool = True
    """Hand over arrays with the tuples of their fill, where these would be found again."""
    inner_joins: bool = True
    """Join by inner joins, and complete nothing, where no tuple can be missing."""
    pairs: bool = True
    """Read a table once for two tensors whose entries are in the same rows."""
    chains: bool = True
    """Fuse pointwise functions of tensors without key columns into one call, in one statement."""

    @property
    def off(self) -> tuple[Pass, ...]:
        """The passes over the plan that are switched off."""
        switches: dict[Pass, bool] = {
            compute_columns: self.columns is not None,
            windows_of_time: self.windows,
            load_every_tuple: self.every_tuple,
            join_every_tuple: self.inner_joins,
            pair_scans: self.pairs,
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
    """Compiler options: see `ucle.einsum_program`."""

    profile: Profile
    resources: Resources
    decomposition: GivenDecomposition = "auto"
    bounds: Mapping[str, int] | None = None
    outputs: tuple[str, ...] | None = None
    path: ContractionPath | None = None
    nonfinite: str = "exact"
    search: str = "dag"
    store: bool | frozenset[str] = False
    """Inputs to be stored in the layouts in which the program reads them; True for all."""
    statistics: str = "auto"
    association: str = "free"
    rewrite: str = "auto"
    rewrite_tolerance: float | None = None
    """The largest relative error of sums in another form; None for that of their element type."""
    optimisations: Optimisations = field(default_factory=Optimisations)
    runs: int = 1
    """The number of runs in which only the data of replaceable inputs changes.

    Values that depend on none of these inputs are computed once.
    """
    carried: frozenset[str] = frozenset()
    """Inputs that an output replaces after the first run: their own layouts count only once."""
    estimator: str = "auto"
    """One of `ucle.stats.estimators`; ``"auto"`` selects the one of the profile."""

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
        """The estimator of the sizes that are priced."""
        own = PAPER if self.profile.paper_estimates else DEFAULT
        return ESTIMATORS[own if self.estimator == "auto" else self.estimator]

    @property
    def order_estimator(self) -> Estimator:
        """The estimator that ranks join orders; the paper's profile does not specify one."""
        return ESTIMATORS[DEFAULT if self.estimator == "auto" else self.estimator]


def check_decomposition(decomposition: Any) -> None:
    """Check the form of a decomposition; its labels are checked with the program.

    Raises:
        LabelError: there is no decomposition of that name.
        ArgumentTypeError: neither a name nor labels by tensor.
    """
    choices = DECOMPOSITIONS
    if isinstance(decomposition, Mapping):
        for name, promoted in decomposition.items():
            if not isinstance(promoted, Iterable) or not all(
                isinstance(label, str) for label in _peek_labels(promoted)
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
    """Check that a path consists of steps of positions; their range is checked with the program."""
    steps = path.values() if isinstance(path, Mapping) else (path,)
    expected = "tuples of positions of factors, such as [(1, 2), (0, 1)]; a dict of such by tensor"
    position = several(count(), expected)
    for name in path if isinstance(path, Mapping) else ():
        text(name, "path")
    for each in steps:
        several(position, expected)(each, "path")


def _peek_labels(labels: Iterable[str]) -> Iterable[str]:
    """Return labels that can be read more than once, and none for an iterator."""
    return () if isinstance(labels, Iterator) else labels


def names_of(names: str | Iterable[str], where: str) -> tuple[str, ...]:
    """Return names of tensors as a tuple; a caller may write one name or several.

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
