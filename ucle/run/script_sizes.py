"""The sizes for which a script is made: those that its data has to have when it runs."""

from __future__ import annotations

from collections.abc import Callable

from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.run.size_groups import SizeDependence, shape_guards, table_groups
from ucle.sqlgen.guards import Guard, SizeGuard


def script_guards(
    compiled: Compiled, options: Options, text: Callable[[Compiled], str]
) -> list[Guard]:
    """Return the guards of a script: for each size that it depends on, and for arrays in tables.

    Where a bound is stated or an array has the size, tables may have fewer coordinates.

    Args:
        compiled: the program.
        options: those it was compiled with.
        text: the script of a program.
    """
    guards: list[Guard] = [*shape_guards(compiled.front.inputs)]
    if not (groups := table_groups(compiled, options)):
        return guards
    outputs = compiled.program.outputs
    written = SizeDependence(
        compiled, options, lambda program: dict.fromkeys(outputs, text(program))
    )
    for group in written.relevant(groups):
        least = 0 if group.stated or group.by_array else group.size
        guards.append(SizeGuard(group.title, group.columns, group.encoded, group.size, least))
    return guards
