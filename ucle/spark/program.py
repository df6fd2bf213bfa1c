"""Compiled programs on Spark, and the properties of a session that they use."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.language.syntax import Statement
from ucle.options import Options
from ucle.partitions.choices import Network
from ucle.partitions.distribute import EstimatedSizes, candidates, distribute, distribute_cheapest
from ucle.partitions.engine import run_distributed
from ucle.partitions.run_fragment import Task
from ucle.pipeline.artifacts import Compiled
from ucle.plan.sources import TableSource
from ucle.run.build import Build, build_text
from ucle.run.current_data import Prepared
from ucle.spark.engine import Driver, SparkEngine
from ucle.spark.sources import SparkInput, ids_of, spark_inputs, stand_in
from ucle.spark.spark_facts import measure_on_spark
from ucle.spark.spark_results import SparkResult
from ucle.sqlgen import emit
from ucle.sqlgen.script import render_script


@dataclass(frozen=True)
class Cluster:
    """Properties of a Spark session that programs use."""

    partitions: int
    memory: str | None
    network: Network

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
            cores = min(int(setting("spark.sql.shuffle.partitions", 8)), 64)
        partitions = int(setting("spark.ucle.partitions", cores))
        gigabits = float(setting("spark.ucle.gigabits", Network.gigabits))
        network = Network(workers=int(cores), gigabits=gigabits)
        return Cluster(partitions, setting("spark.ucle.memoryLimit", None), network)


CANDIDATES = 6
"""Decompositions of a program that are tried on a cluster: the cheapest ones on one machine."""


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
        tried = candidates(build.compiled, build.options, CANDIDATES)
        self.compiled, self.plan = distribute_cheapest(
            tried, self.cluster.network, self.cluster.partitions
        )
        weakref.finalize(self, session.close).atexit = False

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
        size = EstimatedSizes(self.compiled).read(self._inputs)
        fetch = FETCH * len(self._inputs) + self.cluster.network.price_fetch(size) / 1e9
        return {"spark": self.plan.seconds, "duckdb": self.plan.alone + fetch}

    def explain(self) -> str:
        """Explain the choice of the engine, the fragments, and the bytes that move between them."""
        seconds = self.seconds
        lines = [
            f"runs on {self.engine}: {seconds['spark']:.2f} s on {self.cluster.partitions} "
            f"partitions of Spark by estimate, {seconds['duckdb']:.2f} s on one DuckDB"
        ]
        if self._asked != "auto":
            lines[0] += f' (engine="{self._asked}" was asked for)'
        elif self.engine == "duckdb":
            lines.append('one DuckDB is estimated to be faster; engine="spark" overrides this')
        stages = len(self.plan.fragments)
        plural = "s" if stages > 1 else ""
        lines.append(f"moves {self.plan.bytes:,.0f} bytes for {stages} stage{plural}")
        return "\n".join([*lines, str(self.plan)])

    def to_sql(self) -> str:
        """Return the SQL of each fragment, which the DuckDB of a partition runs."""
        capabilities = self._build.target.engine[0]
        parts = []
        for number, fragment in enumerate(self.plan.fragments, 1):
            steps, outputs = emit(Task.of(self.compiled, fragment).first, capabilities)
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
        """Refuse to keep outputs: nothing follows the changes of Spark's tables.

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
        cluster = self.cluster
        frames = {name: each.frame for name, each in self._inputs.items()}
        alone = self.engine == "duckdb"
        partitions = 1 if alone else cluster.partitions
        engine = SparkEngine(
            self._spark, compiled, self._session, frames, partitions, cluster.memory
        )
        plan = self.plan
        if alone or compiled is not self.compiled:
            plan = distribute(compiled, cluster.network, partitions)
        try:
            if alone:
                driver = Driver(engine, compiled)
                made = run_distributed(plan, driver)
                found = {name: engine.upload_rows(rows) for name, rows in made.items()}
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
        for name, each in there.items():
            bound = seen.compiled.all_inputs[name]
            source = bound.source
            assert isinstance(source, TableSource)
            encoded = [key for axis, key in enumerate(source.keys) if source.is_encoded(axis)]
            if encoded:
                stand_in(session, each, {key: ids_of(each, key) for key in encoded})
            measured = measure_on_spark(each.frame, name, source, bound.fill, cluster.memory)
            if measured is not None:
                standing[name] = replace(standing[name], measured=measured)
        given = {**inputs, **standing}
        made = build_text(text, operands, given, session.connection, options, memory_limit)
    except BaseException:
        session.close()
        raise
    return SparkProgram(spark, made, there, session, cluster, engine)
