"""Distributed plans: fragments that run on every partition, and the shuffles between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.partitions.placed_files import PlacedFiles
from ucle.plan.placement_rules import SINGLE, Placement, Spread
from ucle.plan.relation_nodes import Load, Read, TableScan
from ucle.plan.sources import Dictionary, TableSource
from ucle.plan.steps import Plan


@dataclass(frozen=True)
class FragmentInput:
    """A relation that is brought to the partitions for a fragment.

    `name` is that of its table there. `columns` are those by which rows are placed, if any.
    `origin` says what it is: the rows of an input, an array from memory, the table of a dictionary,
    or the result of an earlier fragment, by its name. `bytes` is the estimated number of bytes that
    move: where every partition gets a copy, those of one copy. If it is `kept`, its rows are the
    same in every run of a loop and stay where they are. Of rows in `files`, the names of files are
    brought, and each partition reads its own.
    """

    name: str
    placement: Placement
    columns: tuple[str, ...]
    origin: TableScan | Load | Dictionary | str
    tensor: str
    bytes: float = 0.0
    kept: bool = False
    files: PlacedFiles | None = None

    @property
    def table(self) -> TableSource | None:
        """The table of an input, if it is one."""
        return self.origin.source if isinstance(self.origin, TableScan) else None


@dataclass(frozen=True)
class FragmentOutput:
    """A relation that a fragment makes for later fragments, or for the user."""

    read: Read
    placement: Placement


@dataclass(frozen=True)
class Fragment:
    """Steps between two shuffles; each partition runs them as one script of SQL.

    `plan` reads the tables of `incoming` under their names. `places` are the placements of its
    steps. `finite` are results in which every number has to be finite, each with the names of its
    tensor and of the input that it replaces in the next run. It is `repeated` if it is part of the
    step of a loop.
    """

    incoming: tuple[FragmentInput, ...]
    plan: Plan
    places: Mapping[str, Placement]
    made: tuple[FragmentOutput, ...]
    finite: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    repeated: bool = False

    @property
    def tables(self) -> dict[str, str]:
        """Names of the tables that are brought, by their names in the plan.

        Rows of inputs are read under their own names.
        """
        return {
            each.name: each.name if each.table is not None else f"part {number}"
            for number, each in enumerate(self.incoming)
        }

    def on(self, part: int) -> Plan:
        """Return the plan of one partition: the first one also makes what lies on it alone."""
        if part == 0:
            return self.plan
        steps = [step for step in self.plan.steps if self.places[step.name] != SINGLE]
        there = {step.name for step in steps}
        outputs = {name: read for name, read in self.plan.outputs.items() if read.step in there}
        checked = tuple(read for read in self.plan.checked if read.step in there)
        return replace(self.plan, steps=tuple(steps), outputs=outputs, checked=checked)


@dataclass(frozen=True)
class DistributedPlan:
    """Fragments in the order in which they run, and the result for each output.

    `seconds` is the estimated time.
    """

    fragments: tuple[Fragment, ...]
    outputs: Mapping[str, str]
    """Names of results of the last fragments, by output."""
    partitions: int
    seconds: float
    bytes_before: float = 0.0
    """Estimated bytes that move to make what the runs of a loop read."""

    @property
    def bytes(self) -> float:
        """Estimated number of bytes that move in each run."""
        return self._moved(kept=False)

    def as_step(
        self, finite: Mapping[str, tuple[str, str]], bytes_before: float = 0.0
    ) -> DistributedPlan:
        """Return the plan as the step of a loop.

        Args:
            finite: as in `Fragment`.
            bytes_before: that move to make what steps read.
        """
        fragments = []
        for fragment in self.fragments:
            made = {each.read.step for each in fragment.made}
            own = {step: names for step, names in finite.items() if step in made}
            fragments.append(replace(fragment, finite=own, repeated=True))
        return replace(self, fragments=tuple(fragments), bytes_before=bytes_before)

    @property
    def bytes_once(self) -> float:
        """Estimated number of bytes that move before the first run of a loop."""
        return self.bytes_before + self._moved(kept=True)

    def _moved(self, *, kept: bool) -> float:
        return sum(
            each.bytes * (self.partitions if each.placement.spread is Spread.REPLICATED else 1)
            for fragment in self.fragments
            for each in fragment.incoming
            if each.kept is kept
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for number, fragment in enumerate(self.fragments, 1):
            yield f"fragment {number}"
            for each in fragment.incoming:
                where = each.placement.spread.value
                if each.columns:
                    where = "by " + ", ".join(each.columns)
                once = ", once" if each.kept else ""
                files = ", its files stay there" if each.files else ""
                yield f"  {each.tensor} comes {where}: {each.bytes:,.0f} bytes{once}{files}"
            for step in fragment.plan.steps:
                yield f"  {step.name}: {step.comment}"
            for made in fragment.made:
                labels = tuple(axis.name for axis in made.read.type.axes)
                yield f"  makes {made.read.step}, {made.placement.describe(labels)}"
