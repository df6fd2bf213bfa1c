"""Compiled programs on Spark, and their results."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.artifacts import Compiled
from ucle.compile import Build, build_text
from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import ArgumentError, ResultClosedError
from ucle.foundation.dtypes import Scalar
from ucle.foundation.libraries import pa
from ucle.language.syntax import Statement
from ucle.options import Options
from ucle.partitions.distribute import distribute
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.network import Network
from ucle.partitions.run import run_distributed
from ucle.partitions.sizes import EstimatedSizes
from ucle.plan.sources import TableSource
from ucle.prepared import Prepared
from ucle.replan import cheapest_decompositions, plan_decomposed
from ucle.spark.driver import Driver
from ucle.spark.engine import Frame, SparkEngine
from ucle.spark.failures import unpacked
from ucle.spark.shown import show_rows, shown_schema
from ucle.spark.sources import SparkInput, ids_of, spark_inputs, stand_in
from ucle.spark.spark_facts import measured_on_spark
from ucle.spark.tasks import Circumstances, RowsTask
from ucle.sqlgen import emit
from ucle.sqlgen.script import render_script
from ucle.sqlgen.sql_trees import key_columns

CANDIDATES = 6
"""Decompositions of a program that are tried on a cluster: the cheapest on one machine."""

MOST_ROWS = 10_000_000
"""Rows that results hand over to the driver unless more are asked for."""


@dataclass(frozen=True)
class Cluster:
    """What programs know of a Spark session."""

    partitions: int
    memory: str | None
    network: Network

    @staticmethod
    def of(spark: Any) -> Cluster:
        """As its settings say it.

        ``spark.ucle.partitions`` is the number of partitions, by default that of all cores;
        ``spark.ucle.memoryLimit`` what DuckDB may use in each task, ``spark.ucle.gigabits`` the
        network.
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
            cores = min(int(setting("spark.sql.shuffle.partitions", 8)), 64)
        partitions = int(setting("spark.ucle.partitions", cores))
        gigabits = float(setting("spark.ucle.gigabits", Network.gigabits))
        network = Network(workers=int(cores), gigabits=gigabits)
        return Cluster(partitions, setting("spark.ucle.memoryLimit", None), network)


class SparkProgram:
    """A program over tables of Spark; `execute` runs it there, or on one DuckDB where that pays."""

    def __init__(
        self,
        spark: Any,
        build: Build,
        inputs: Mapping[str, SparkInput],
        session: Session,
        engine: str,
    ) -> None:
        self._spark = spark
        self._build = build
        self._inputs = inputs
        self._session = session
        self.cluster = Cluster.of(spark)
        self._asked = engine
        self.compiled, self.plan = _chosen(build.compiled, build.options, self.cluster)
        weakref.finalize(self, session.close).atexit = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that `execute` gives."""
        return tuple(self.compiled.program.outputs)

    @property
    def engine(self) -> str:
        """Where it runs: ``"spark"``, or ``"duckdb"`` on the driver."""
        if self._asked != "auto":
            return self._asked
        return "duckdb" if self.seconds["duckdb"] <= self.seconds["spark"] else "spark"

    @property
    def seconds(self) -> dict[str, float]:
        """What it takes by estimate on either: on one DuckDB, all inputs travel to the driver."""
        sizes = EstimatedSizes(self.compiled)
        fetched = sum(
            sizes.tuples(step.tensor, step.relation.layout).bytes
            for step in self.compiled.plan.steps
            if step.tensor in self._inputs and step.name in self._sources
        )
        network = self.cluster.network
        moved = network.moved(fetched) * network.workers
        fetch = FETCH * len(self._inputs)
        return {"spark": self.plan.seconds, "duckdb": self.plan.alone + fetch + moved / 1e9}

    @functools.cached_property
    def _sources(self) -> frozenset[str]:
        return frozenset(
            step.name for step in self.compiled.plan.steps if hasattr(step.relation, "source")
        )

    def explain(self) -> str:
        """Where it runs and why, its fragments, and the bytes that move between them."""
        seconds = self.seconds
        lines = [
            f"runs on {self.engine}: {seconds['spark']:.2f} s on {self.cluster.partitions} "
            f"partitions of Spark by estimate, {seconds['duckdb']:.2f} s on one DuckDB"
        ]
        if self._asked != "auto":
            lines[0] += f' (engine="{self._asked}" was asked for)'
        elif self.engine == "duckdb":
            lines.append('it is below the break-even; engine="spark" insists')
        stages = len(self.plan.fragments)
        plural = "s" if stages > 1 else ""
        lines.append(f"moves {self.plan.bytes:,.0f} bytes for {stages} stage{plural}")
        return "\n".join([*lines, str(self.plan)])

    def to_sql(self) -> str:
        """The SQL of each fragment, as the DuckDB of a partition runs it."""
        capabilities = self._build.target.engine[0]
        parts = []
        for number, fragment in enumerate(self.plan.fragments, 1):
            alone = replace(self.compiled, plan=fragment.plan, threads=1)
            steps, outputs = emit(alone.physical, capabilities)
            comes = [f"{x.tensor} comes {x.placement}" for x in fragment.incoming]
            parts.append(render_script([f"fragment {number}", *comes], steps, outputs))
        return "\n\n".join(parts)

    def execute(self) -> SparkResult:
        """Compute the outputs. They are there when it returns, on the executors.

        Raises:
            UcleError: a task failed; nothing is left behind.
        """
        prepared = Prepared(self.compiled, self._build.options)
        return prepared.attempt(self._session, lambda order: self._run(order.compiled))

    def _run(self, compiled: Compiled) -> SparkResult:
        cluster = self.cluster
        frames = {name: each.frame for name, each in self._inputs.items()}
        alone = self.engine == "duckdb"
        partitions = 1 if alone else cluster.partitions
        engine = SparkEngine(
            self._spark, compiled, self._session, frames, partitions, cluster.memory
        )
        plan = self.plan
        if alone or compiled is not self.compiled:
            sizes = EstimatedSizes(compiled)
            plan = distribute(compiled.plan, sizes, cluster.network, partitions)
        try:
            if alone:
                driver = Driver(engine, compiled)
                made = run_distributed(plan, driver)
                found = {name: engine.uploaded(rows) for name, rows in made.items()}
            else:
                found = run_distributed(plan, engine)
                engine.run(found)
        except BaseException:
            engine.close()
            raise
        dictionaries = {each.name: engine.dictionary(each) for each in compiled.plan.dictionaries}
        return SparkResult(self._spark, compiled, engine, found, dictionaries)

    def __repr__(self) -> str:
        return f"<SparkProgram of {', '.join(self.outputs)}, on {self.engine}>"


FETCH = 0.3
"""Seconds that a table takes to come to the driver, however small it is."""


def _chosen(
    compiled: Compiled, options: Options, cluster: Cluster
) -> tuple[Compiled, DistributedPlan]:
    """Decomposition and distribution together: the cheapest pair of those that are tried."""

    def spread(each: Compiled) -> DistributedPlan:
        sizes = EstimatedSizes(each)
        return distribute(each.plan, sizes, cluster.network, cluster.partitions)

    best = compiled, spread(compiled)
    if options.decomposition != "auto":
        return best
    for decomposed in cheapest_decompositions(compiled, CANDIDATES, options):
        other = plan_decomposed(compiled, decomposed, options)
        plan = spread(other)
        if plan.seconds < best[1].seconds:
            best = other, plan
    return best


class SparkTensor:
    """One output: a tensor on the executors."""

    def __init__(self, result: SparkResult, name: str, frame: Frame) -> None:
        self._result = result
        self._frame = frame
        self.name = name
        read = result.compiled.plan.outputs[name]
        self.type, self.layout = read.type, read.layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return self.type.shape

    @property
    def fill(self) -> Scalar:
        """What positions without a row are worth."""
        return self.type.fill

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the labels of all axes, then ``val``."""
        return (*key_columns(self.type), "val")

    @functools.cached_property
    def relation(self) -> Any:
        """A DataFrame with a row for each entry that is not the fill."""
        self._result.check()
        return self._result.shown(self.name, self._frame)

    def to_table(self, name: str, *, mode: str = "error") -> None:
        """Save the entries as a table of Spark's catalogue.

        Args:
            name: of the table, such as ``"lake.z"``.
            mode: what happens if there is one: ``"error"``, ``"overwrite"`` or ``"append"``.

        Raises:
            ExecutionError: Spark refused it.
        """
        self._write(lambda: self.relation.write.mode(mode).saveAsTable(name))

    def to_parquet(self, path: str, *, mode: str = "error") -> None:
        """Save the entries as Parquet files; arguments as of `to_table`."""
        self._write(lambda: self.relation.write.mode(mode).parquet(path))

    def _write(self, write: Callable[[], object]) -> None:
        self._result.check()
        try:
            write()
        except Exception as error:
            raise unpacked(error) from error

    def to_arrow(self, *, max_rows: int = MOST_ROWS) -> pa.Table:
        """The entries, on the driver.

        Raises:
            ArgumentError: there are more rows than `max_rows`.
        """
        return self._fetched(self.relation, max_rows)

    def _fetched(self, frame: Any, max_rows: int) -> pa.Table:
        self._result.check()
        try:
            rows = frame.limit(max_rows + 1).toArrow()
        except Exception as error:
            raise unpacked(error) from error
        if len(rows) > max_rows:
            raise ArgumentError(
                "the result has too many rows for the driver",
                where=f"result {self.name}",
                expected=f"at most {max_rows:,}",
                found="more",
                hint="max_rows= allows more; .to_table and .to_parquet keep them on the cluster",
            )
        return rows

    def to_numpy(self, *, max_rows: int = MOST_ROWS) -> NDArray[Any]:
        """The tensor as an array, on the driver; errors as of `to_arrow`.

        Ids are in their order; `coordinates` tells which they are.
        """
        rows = self._fetched(self._result.entries(self.name, self._frame), max_rows)
        array = np.full(self.shape, self.fill, self.type.dtype.numpy)
        keys = tuple(rows[name].to_numpy() for name in self.columns[:-1])
        values: Any = rows["val"].combine_chunks()
        if pa.types.is_struct(values.type):
            values = values.field(0).to_numpy() + 1j * values.field(1).to_numpy()
        else:
            values = values.to_numpy(zero_copy_only=False)
        if keys:
            array[keys] = values
        elif len(values):
            array[()] = values[0]
        return array

    def coordinates(self, label: str) -> pa.Array:
        """The ids along an axis, by their positions; positions where it has none."""
        axis = self.type.axes[self.columns[:-1].index(label)]
        if axis.dictionary is None:
            return pa.array(np.arange(axis.bound))
        ids = self._result.dictionaries[axis.dictionary].sort_by("id")
        return ids["value"].combine_chunks()

    def __repr__(self) -> str:
        return f"<SparkTensor {self.name}, columns {', '.join(self.columns)}>"


class SparkResult(Mapping[str, SparkTensor]):
    """The outputs of one execution, by name; Spark keeps them until it is closed, or collected."""

    def __init__(
        self,
        spark: Any,
        compiled: Compiled,
        engine: SparkEngine,
        frames: Mapping[str, Frame],
        dictionaries: Mapping[str, pa.Table],
    ) -> None:
        self.compiled = compiled
        self._spark = spark
        self.dictionaries = dictionaries
        self._finalizer = weakref.finalize(self, engine.close)
        self._finalizer.atexit = False
        self._tensors = {name: SparkTensor(self, name, frame) for name, frame in frames.items()}

    def check(self) -> None:
        """Whether the outputs are still there.

        Raises:
            ResultClosedError: they are not.
        """
        if not self._finalizer.alive:
            raise ResultClosedError(
                "the result is closed",
                where="result",
                expected="one that is open",
                found="a closed one",
                hint="read outputs inside of the with block, or keep them with to_table",
            )

    def entries(self, name: str, frame: Frame) -> Any:
        """The entries of an output that are not the fill, with positions for coordinates."""
        read = self.compiled.plan.outputs[name]
        task = RowsTask(
            functools.partial(show_rows, name=name, type_=read.type, layout=read.layout),
            "rows",
            made=frame.number is not None,
            circumstances=Circumstances(kernels=not read.layout.scalar),
        )
        return frame.own().mapInArrow(task.__call__, shown_schema(read.type))

    def shown(self, name: str, frame: Frame) -> Any:
        """The same with the coordinates of the data."""
        type_ = self.compiled.plan.outputs[name].type
        rows = self.entries(name, frame)
        for axis, label in zip(type_.axes, key_columns(type_), strict=True):
            if axis.dictionary is not None:
                ids = self.dictionaries[axis.dictionary]
                table = self._spark.createDataFrame(
                    pa.table({"ucle_id": ids["id"], "ucle_value": ids["value"]})
                )
                rows = rows.join(table, rows[f"`{label}`"] == table["ucle_id"]).drop("ucle_id")
                rows = rows.drop(label).withColumnRenamed("ucle_value", label)
        return rows.select(*(f"`{x}`" for x in (*key_columns(type_), "val")))

    def __getitem__(self, name: str) -> SparkTensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __enter__(self) -> SparkResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let Spark forget the outputs."""
        self._finalizer()


def spark_program(
    text: str | tuple[Statement, ...],
    operands: Sequence[Any],
    inputs: Mapping[str, Any],
    spark: Any,
    options: Options,
    memory_limit: str | int | None,
    engine: str = "auto",
) -> SparkProgram:
    """Compile a program over tables of Spark; arguments and errors as of `ucle.einsum_program`."""
    there = spark_inputs(spark, inputs)
    session = DUCKDB.open(":memory:")
    try:
        for each in there.values():
            stand_in(session, each)
        standing = {name: each.standing for name, each in there.items()}
        given = {**inputs, **standing}
        options = replace(options, statistics="transient")
        seen = build_text(text, operands, given, session.connection, options, memory_limit)
        for name, each in there.items():
            bound = seen.compiled.all_inputs[name]
            source = bound.source
            assert isinstance(source, TableSource)
            encoded = [key for axis, key in enumerate(source.keys) if source.is_encoded(axis)]
            if encoded:
                stand_in(session, each, {key: ids_of(each, key) for key in encoded})
            measured = measured_on_spark(each.frame, name, source, bound.fill)
            if measured is not None:
                standing[name] = replace(standing[name], measured=measured)
        given = {**inputs, **standing}
        made = build_text(text, operands, given, session.connection, options, memory_limit)
    except BaseException:
        session.close()
        raise
    return SparkProgram(spark, made, there, session, engine)
