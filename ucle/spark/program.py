"""Compiled programs on Spark, and the properties of a session that they use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn, cast
from weakref import WeakKeyDictionary

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.foundation.progress import Watch, progress_bar
from ucle.gradients.build_gradient import build_gradient
from ucle.gradients.build_training import build_training
from ucle.inputs.table_input import TableInput
from ucle.language.syntax import Statement
from ucle.optim.descent import Optimiser
from ucle.options import RUNS, Options, names_of
from ucle.partitions.choices import Network, Repeated
from ucle.partitions.distribute import EstimatedSizes, candidates, distribute, distribute_cheapest
from ucle.partitions.engine import PartitionEngine, dictionary_tables, run_distributed
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.placed_files import PlacedFiles
from ucle.partitions.run_fragment import Task
from ucle.partitions.step_plans import Cut, StepPlans
from ucle.partitions.steps import OnPartitions, StepOutputs
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.plan.sources import TableSource
from ucle.run.build import Build, build_text, vary_inputs, with_outputs
from ucle.run.carried import check_carry
from ucle.run.current_data import Preparations, Prepared
from ucle.run.iterate import Loop, iterate
from ucle.run.prepared_program import PreparedProgram
from ucle.spark.actions import action
from ucle.spark.by_rdds import has_rdds
from ucle.spark.driver import Driver
from ucle.spark.engine import SparkEngine
from ucle.spark.sources import SparkInput, ids_of, spark_inputs, stand_in
from ucle.spark.spark_facts import measure_on_spark
from ucle.spark.spark_results import SparkIteration, SparkOutputs, SparkResult, SparkSteps
from ucle.sqlgen import emit
from ucle.sqlgen.script import render_script
from ucle.stats.measure import MeasuredInput


@dataclass(frozen=True)
class Cluster:
    """Properties of a Spark session that programs use."""

    partitions: int
    memory: str | None
    network: Network

    @property
    def tasks(self) -> int:
        """The most tasks that read an input: several for each core, as some are slow."""
        return TASKS * self.network.workers

    @staticmethod
    def of(spark: Any) -> Cluster:
        """Read the properties from the settings of a session.

        ``spark.ucle.partitions`` is the number of partitions, by default that of all cores;
        ``spark.ucle.memoryLimit`` is the memory of DuckDB in each task, ``spark.ucle.gigabits`` the
        speed of the network.
        """

        def setting(name: str, otherwise: Any) -> Any:
            with contextlib.suppress(Exception):
                return spark.conf.get(name) or otherwise
            return otherwise

        cores = setting("spark.default.parallelism", None)
        if cores is None:
            with contextlib.suppress(Exception):  # Spark Connect has no context
                cores = spark.sparkContext.defaultParallelism
        if cores is None:
            cores = _cores(spark) or min(int(setting("spark.sql.shuffle.partitions", 8)), 64)
        partitions = int(setting("spark.ucle.partitions", cores))
        gigabits = float(setting("spark.ucle.gigabits", Network.gigabits))
        network = Network(workers=int(cores), gigabits=gigabits)
        return Cluster(partitions, setting("spark.ucle.memoryLimit", None), network)


_COUNTED: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""The cores of the servers of sessions, which it takes a job to count."""


def _cores(spark: Any) -> int | None:
    """The partitions into which a server divides a range: one for each core, as Spark does."""
    if spark not in _COUNTED:
        with contextlib.suppress(Exception), action(spark, "count cores"):
            # Spark aggregates no expression that is not deterministic, but columns that one made.
            ids = spark.range(1 << 12).selectExpr("spark_partition_id() AS part")
            _COUNTED[spark] = int(ids.selectExpr("max(part)").collect()[0][0]) + 1
    return _COUNTED.get(spark)


TASKS = 4
"""The number of tasks for each core that read an input."""

CANDIDATES = 6
"""Decompositions of a program that are tried on a cluster: the cheapest ones on one machine, and as
many by prices of several workers."""


FETCH = 0.3
"""Seconds for transferring a table to the driver, however small it is."""


class SparkProgram:
    """A program over Spark tables; `execute` runs it on Spark or on a single DuckDB."""

    def __init__(
        self,
        spark: Any,
        build: Build,
        inputs: Mapping[str, SparkInput],
        session: Session,
        cluster: Cluster,
        engine: str,
    ) -> None:
        self._spark = spark
        self._build = build
        self._inputs = inputs
        self._session = session
        self.cluster = cluster
        self._asked = engine

    @cached_property
    def _distributed(self) -> tuple[Compiled, DistributedPlan]:
        build, cluster = self._build, self.cluster
        tried = candidates(build.compiled, build.options, CANDIDATES, cluster.network)
        return distribute_cheapest(tried, cluster.network, cluster.partitions, self._files)

    @property
    def compiled(self) -> Compiled:
        """The program with the decomposition that is the cheapest where it runs."""
        return self._build.compiled if self.engine == "duckdb" else self._distributed[0]

    @property
    def plan(self) -> DistributedPlan:
        """The fragments of one execution."""
        return self._distributed[1]

    @cached_property
    def _files(self) -> Mapping[str, PlacedFiles]:
        """The files of inputs in folders that are named by keys."""
        return {x: each.files for x, each in self._inputs.items() if each.files is not None}

    @property
    def carry(self) -> Mapping[str, str]:
        """The inputs that an output replaces in the next step; empty except after `minimize`."""
        return MappingProxyType(dict(self._build.request.carry))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that `execute` returns."""
        return tuple(self.compiled.program.outputs)

    @property
    def engine(self) -> str:
        """The engine that runs the program: ``"spark"``, or ``"duckdb"`` on the driver."""
        if self._asked != "auto":
            return self._asked
        return "duckdb" if self.seconds["duckdb"] <= self.seconds["spark"] else "spark"

    @property
    def seconds(self) -> dict[str, float]:
        """Estimated seconds on either engine; a single DuckDB reads all inputs on the driver."""
        alone = self._build.compiled
        size = EstimatedSizes(alone).read(self._inputs)
        fetch = FETCH * len(self._inputs) + self.cluster.network.price_fetch(size) / 1e9
        return {"spark": self.plan.seconds, "duckdb": alone.decomposed.total_cost / 1e9 + fetch}

    def explain(self, *, carry: Mapping[str, str] | None = None, swap: Sequence[str] = ()) -> str:
        """Explain the choice of the engine, the fragments, and the bytes that move between them.

        Args:
            carry: explain a step of a loop with these inputs and the outputs that replace them.
            swap: inputs that get another array in each step, as for `prepare`.
        """
        if carry is not None:
            step = self.step_plan(carry, swap=swap)
            return "\n".join(
                [
                    f"a step takes {step.seconds:.2f} s on {self.cluster.partitions} partitions of "
                    "Spark by estimate",
                    f"moves {step.bytes:,.0f} bytes for {_stages(step)} in each step, and "
                    f"{step.bytes_once:,.0f} before the first",
                    str(step),
                ]
            )
        seconds = self.seconds
        lines = [
            f"runs on {self.engine}: {seconds['spark']:.2f} s on {self.cluster.partitions} "
            f"partitions of Spark by estimate, {seconds['duckdb']:.2f} s on one DuckDB"
        ]
        if self._asked != "auto":
            lines[0] += f' (engine="{self._asked}" was asked for)'
        elif self.engine == "duckdb":
            lines.append('one DuckDB is estimated to be faster; engine="spark" overrides this')
        lines.append(f"moves {self.plan.bytes:,.0f} bytes for {_stages(self.plan)}")
        return "\n".join([*lines, str(self.plan)])

    def to_sql(self) -> str:
        """Return the SQL of each fragment, which the DuckDB of a partition runs."""
        compiled, plan = self._distributed
        capabilities = self._build.target.engine[0]
        parts = []
        for number, fragment in enumerate(plan.fragments, 1):
            steps, outputs = emit(Task.of(compiled, fragment).first, capabilities)
            comes = [f"{x.tensor} comes {x.placement}" for x in fragment.incoming]
            parts.append(render_script([f"fragment {number}", *comes], steps, outputs))
        return "\n\n".join(parts)

    def execute(self) -> SparkResult:
        """Compute the outputs. They are on the executors when it returns.

        Raises:
            UcleError: a task failed; nothing is left behind.
        """
        prepared = Prepared(self.compiled, self._build.options)
        return prepared.attempt(
            self._session, lambda order: self._run(order.compiled), elsewhere=True
        )

    def maintain(self, name: str, *arguments: Any, **options: Any) -> NoReturn:
        """Not available on Spark: ucle cannot follow the changes of Spark's tables.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "tables of Spark are not followed",
            where=f"maintain {name!r}",
            expected="a program over a database of DuckDB",
            found=f"a program on Spark, with the inputs {', '.join(self._inputs)}",
            hint="execute() computes the outputs again; or copy the tables into DuckDB, and "
            "maintain the program there",
        )

    def _run(self, compiled: Compiled) -> SparkResult:
        alone = self.engine == "duckdb"
        on_cluster, engine = self._engines(compiled, alone=alone)
        plan = self.plan
        if alone or compiled is not self.compiled:
            files = None if alone else self._files
            plan = distribute(compiled, self.cluster.network, engine.partitions, files=files)
        try:
            frames = run_distributed(plan, engine)
            engine.compute(frames, ())
            ids = dictionary_tables(compiled.plan, engine)
        except BaseException:
            engine.close()
            raise
        made = StepOutputs(compiled, frames, compiled.plan.outputs, {}, ids)
        return SparkResult(SparkOutputs(self._spark, made, on_cluster, engine.close))

    def _engines(
        self, compiled: Compiled, *, alone: bool, steps: bool = False
    ) -> tuple[SparkEngine, PartitionEngine]:
        """The engine of the cluster, and the one that runs: this, or the driver if `alone`."""
        cluster = self.cluster
        frames = {name: each.frame for name, each in self._inputs.items()}
        engine = SparkEngine(
            self._spark,
            compiled,
            self._session,
            frames,
            1 if alone else cluster.partitions,
            cluster.memory,
            cluster.tasks,
            steps=steps,
        )
        return engine, Driver(engine) if alone else engine

    # ---- Gradients, and repeated runs ----

    def gradient(
        self, loss: str, wrt: Sequence[str], *, stored: Sequence[str] = ()
    ) -> SparkProgram:
        """Return the program that also computes gradients, as `EinsumProgram.gradient`."""
        given = loss, tuple(wrt), tuple(stored)
        return self._derived(build_gradient(self._build, self._session.connection, *given))

    def minimize(
        self,
        loss: str,
        wrt: str | Sequence[str],
        optimiser: Optimiser,
        *,
        outputs: str | Sequence[str] = (),
    ) -> SparkProgram:
        """Return the program of one training step, as `EinsumProgram.minimize`."""
        names, shown = names_of(wrt, "minimize, wrt"), names_of(outputs, "minimize, outputs")
        where = self._session.connection
        return self._derived(build_training(self._build, where, loss, names, optimiser, shown))

    def _derived(self, build: Build) -> SparkProgram:
        """A program on the same tables, which it may read under other names."""
        tables = {each.table: each for each in self._inputs.values()}
        inputs = {}
        for name, given in build.request.inputs.items():
            relation = given.relation if isinstance(given, TableInput) else given
            if isinstance(relation, str) and relation in tables:
                inputs[name] = tables[relation]
        return SparkProgram(self._spark, build, inputs, self._session, self.cluster, self._asked)

    def prepare(
        self, *, carry: Mapping[str, str] | None = None, swap: Sequence[str] = ()
    ) -> PreparedProgram:
        """Prepare the program for many runs, as `EinsumProgram.prepare`.

        The tables of carried inputs and all that depends on no changing input stay on the
        executors, where steps read them. Only arrays can be replaced: the program always uses the
        rows that a Spark table had at first.
        """
        carried = dict(self.carry if carry is None else carry)
        return PreparedProgram(
            self._build, self._session, carried, tuple(swap), self._steps(carried, swap)
        )

    def iterate(
        self,
        carry: Mapping[str, str] | None = None,
        until: str | None = None,
        *,
        max_steps: int | None = None,
        swap: Sequence[str] = (),
        progress: Watch | None = None,
        checkpoint: Mapping[str, str] | None = None,
        every: int = 10,
    ) -> SparkIteration:
        """Run the program on its own results repeatedly, as `EinsumProgram.iterate`.

        See `prepare` for what stays on the executors. A `checkpoint` writes tables of Spark's
        catalogue, one after the other.
        """
        carried = dict(self.carry if carry is None else carry)
        loop = Loop(carried, until, max_steps, tuple(swap), progress, checkpoint or {}, every)
        steps = self._steps(carried, swap)
        shown = progress_bar() if progress is None else contextlib.nullcontext(progress)
        try:
            with shown as watch:
                made = iterate(self._build, self._session, replace(loop, progress=watch), steps)
        except BaseException:
            steps.close()
            raise
        return cast(SparkIteration, made)

    def _steps(self, carry: Mapping[str, str], swap: Sequence[str]) -> OnPartitions:
        """Where steps run."""
        if tables := [name for name in swap if name in self._inputs]:
            raise UnsupportedError(
                "the rows of a table on Spark are not read again",
                where=f"swap, input {tables[0]}",
                expected="an input that is an array",
                found="a table on Spark",
                hint="compile the program for the new rows",
            )
        alone = self._asked == "duckdb"
        on_cluster, engine = self._engines(self._build.compiled, alone=alone, steps=True)
        changing, cut = (*carry, *swap), self._cut(engine.partitions)

        def begin(preparations: Preparations) -> Prepared:
            compiled = preparations.latest.compiled
            if not alone:
                compiled = self._cheapest_step(compiled, carry, changing).compiled
            return Prepared(compiled, self._build.options)

        results = SparkSteps(self._spark, on_cluster, engine.close)
        return OnPartitions(engine, results, carry, cut, begin)

    def _cut(self, partitions: int) -> Cut:
        """The function that cuts plans for so many partitions."""
        stays = has_rdds(self._spark)
        files = self._files if partitions > 1 else None

        def cut_plan(planned: Planned, repeated: Repeated) -> DistributedPlan:
            own = repeated
            if not stays:
                own = Repeated(dict.fromkeys(repeated.kept))
            return distribute(planned, self.cluster.network, partitions, own, files)

        return cut_plan

    def _cheapest_step(
        self, compiled: Compiled, carry: Mapping[str, str], changing: Sequence[str]
    ) -> StepPlans:
        """The plans of a step with the decomposition that is the cheapest on the cluster."""
        cut = self._cut(self.cluster.partitions)
        network = self.cluster.network
        tried = candidates(compiled, self._build.options, CANDIDATES, network)
        plans = (StepPlans(each, carry, changing, cut) for each in tried)
        return min(plans, key=lambda each: each.step.again.seconds)

    def step_plan(
        self, carry: Mapping[str, str] | None = None, *, swap: Sequence[str] = ()
    ) -> DistributedPlan:
        """Return the fragments of one step of a loop.

        Args:
            carry: as for `prepare`.
            swap: as for `prepare`.
        """
        carried = dict(self.carry if carry is None else carry)
        changing = (*carried, *swap)
        where = self._session.connection
        build = with_outputs(self._build, where, tuple(carried.values()))
        build = vary_inputs(build, where, changing, carried=carried, runs=RUNS)
        check_carry(build.compiled, carried)
        return self._cheapest_step(build.compiled, carried, changing).step.again

    def __repr__(self) -> str:
        return f"<SparkProgram of {', '.join(self.outputs)}, on {self.engine}>"


def _stages(plan: DistributedPlan) -> str:
    stages = len(plan.fragments)
    return f"{stages} stage{'s' if stages > 1 else ''}"


def spark_program(
    text: str | tuple[Statement, ...],
    operands: Sequence[Any],
    inputs: Mapping[str, Any],
    spark: Any,
    options: Options,
    memory_limit: str | int | None,
    engine: str = "auto",
) -> SparkProgram:
    """Compile a program over tables of Spark; arguments and errors as for `ucle.einsum_program`."""
    there = spark_inputs(spark, inputs)
    cluster = Cluster.of(spark)
    session = DUCKDB.open(":memory:")
    try:
        for each in there.values():
            stand_in(session, each)
        standing = {name: each.standing for name, each in there.items()}
        given = {**inputs, **standing}
        options = replace(options, statistics="transient")
        if options.rewrite == "auto":  # a fragment that has run cannot run again in another form
            options = replace(options, rewrite="safe")
        seen = build_text(text, operands, given, session.connection, options, memory_limit)
        measured = _measure(there, seen, session, cluster)
        standing |= {x: replace(standing[x], measured=found) for x, found in measured.items()}
        given = {**inputs, **standing}
        made = build_text(text, operands, given, session.connection, options, memory_limit)
    except BaseException:
        session.close()
        raise
    return SparkProgram(spark, made, there, session, cluster, engine)


def _measure(
    there: Mapping[str, SparkInput], seen: Build, session: Session, cluster: Cluster
) -> dict[str, MeasuredInput]:
    """Measure all inputs at once, as small jobs wait most of their time; ids are fetched."""

    def measure(name: str) -> tuple[dict[str, pa.Array], MeasuredInput | None]:
        each, bound = there[name], seen.compiled.all_inputs[name]
        source = bound.source
        assert isinstance(source, TableSource)
        encoded = [key for axis, key in enumerate(source.keys) if source.is_encoded(axis)]
        ids = {key: ids_of(each, key) for key in encoded}
        found = measure_on_spark(
            each.frame, name, source, bound.fill, cluster.memory, cluster.tasks
        )
        return ids, found

    measured = {}
    with ThreadPoolExecutor(max(len(there), 1)) as pool:
        for name, (ids, found) in zip(there, pool.map(measure, there), strict=True):
            if ids:
                stand_in(session, there[name], ids)
            if found is not None:
                measured[name] = found
    return measured
