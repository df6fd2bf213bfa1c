"""Programs on partitions: a plan is cut where tuples have to move; ucle runs the parts.

In: a planned program, and an engine that holds tables in partitions. Out: `distribute`, a plan of
fragments and shuffles (tensor_relational_algebra.txt, section 4), `run_distributed`, which runs it,
and `OnPartitions`, which runs the steps of prepared programs and loops. An engine moves tuples in
its own way; each fragment is a script of SQL on a DuckDB of the partition's own. Files in folders
that are named by keys are read where their rows are wanted (`ucle.partitions.placed_files`).
May import: all packages up to `ucle.run`.
"""

from ucle.partitions.choices import NETWORK, Network
from ucle.partitions.distribute import distribute
from ucle.partitions.engine import PartitionEngine, run_distributed
from ucle.partitions.fragments import DistributedPlan, Fragment, FragmentInput, FragmentOutput
from ucle.partitions.in_process import InProcess
from ucle.partitions.steps import OnPartitions

__all__ = [
    "NETWORK",
    "DistributedPlan",
    "Fragment",
    "FragmentInput",
    "FragmentOutput",
    "InProcess",
    "Network",
    "OnPartitions",
    "PartitionEngine",
    "distribute",
    "run_distributed",
]
