"""Programs on Spark: Spark moves rows, and a DuckDB on each partition computes.

program, sources, lake_tables, spark_facts
                compiled programs, their inputs, and how these are measured
engine, driver, frames, by_frames, by_rdds, labels, result_limits, actions, failures
                the engines for fragments, and jobs of Spark
tasks, packs, workers
                what executors run, on a DuckDB that tasks share
spark_results, shown, kinds
                tensors whose rows stay there

In: a SparkSession, classic or Connect; inputs are its tables, DataFrames or files.
Out: `spark_program`, which `ucle.einsum_program` calls for such a database. PySpark is imported
only if it is already loaded, as it is for anyone with a session. May import: `ucle.run`,
`ucle.gradients`, `ucle.partitions`, and packages below them.
"""

from ucle.spark.program import SparkProgram, spark_program
from ucle.spark.spark_results import SparkIteration, SparkResult, SparkTensor

__all__ = ["SparkIteration", "SparkProgram", "SparkResult", "SparkTensor", "spark_program"]
