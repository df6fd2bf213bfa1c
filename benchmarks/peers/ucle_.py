"""ucle itself: inputs stored in the plan's layouts, or passed from memory."""

from __future__ import annotations

from typing import Any

import ucle
from benchmarks.paper.tasks import Task
from benchmarks.peers import MEMORY, THREADS
from benchmarks.stored import input_tables, store_chosen


class Engine:
    """A database in memory and the compiled program."""

    def load(self, task: Task) -> None:
        """Store the inputs and compile."""
        self.connection = ucle.connect(threads=THREADS, memory_limit=MEMORY)
        self.connection.execute("SET enable_progress_bar = false")
        if task.stored:
            self.program = store_chosen(
                self.connection, task.program, task.inputs, task.association
            )
        else:
            inputs = input_tables(self.connection, task.inputs)
            self.program = ucle.einsum_program(
                task.program,
                database=self.connection,
                inputs=inputs,
                association=task.association,
            )
        self._output = task.output
        self._result: ucle.Result | None = None

    def run(self) -> None:
        """Execute the program; its outputs are tables."""
        self._drop()
        self._result = self.program.execute(self.connection)

    def result(self) -> Any:
        """Return the output; matrices are in scipy's form, as they may be sparse."""
        assert self._result is not None
        tensor = self._result[self._output]
        return tensor.to_scipy() if len(tensor.shape) == 2 else tensor.to_numpy()

    def close(self) -> None:
        """Close the database."""
        self._drop()
        self.connection.close()

    def _drop(self) -> None:
        if self._result is not None:
            self._result.close()
            self._result = None
