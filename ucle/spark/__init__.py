"""Programs on Spark: it moves rows, and a DuckDB on each partition computes.

In: a SparkSession, classic or Connect, and inputs that are its tables, DataFrames or files. Out:
`spark_program`, which `ucle.einsum_program` calls for such a database. PySpark is imported where it
is there already: whoever has a session has it. May import: all rooms up to `ucle.prepared`.
"""

from ucle.spark.program import ENGINES, SparkProgram, SparkResult, SparkTensor, spark_program

__all__ = ["ENGINES", "SparkProgram", "SparkResult", "SparkTensor", "spark_program"]
