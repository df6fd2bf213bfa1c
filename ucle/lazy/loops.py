"""`ucle.iterate`: apply a function of lazy tensors repeatedly, until a condition holds.

The function is called once, on tensors that stand for the state. The result is the program of a
step, which `EinsumProgram.iterate` runs repeatedly on its own results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ucle.database.data_versions import settle
from ucle.database.session import Database
from ucle.errors import ArgumentError, ArgumentTypeError, LabelError, ValueTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.foundation.progress import Watch
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.table_input import TableInput
from ucle.lazy.compute import compile_tensors, known_type
from ucle.lazy.inputs import lift_input
from ucle.lazy.nodes import Apply, Lazy, Leaf, Node
from ucle.lazy.tensor import Tensor, tensor_operand
from ucle.operators import (
    EQUAL,
    LESS,
    LESS_EQUAL,
    NOT_EQUAL,
    Combine,
)
from ucle.run.step_engine import History, Iteration

CONDITION = "condition"
"""The name, in a history, of the number that a loop's condition compares with a constant."""

_SIGNS = {
    LESS.name: "<",
    LESS_EQUAL.name: "<=",
    "greater": ">",
    "greater_equal": ">=",
    EQUAL.name: "==",
    NOT_EQUAL.name: "!=",
}


@dataclass(frozen=True)
class TensorIteration:
    """The outcome of a loop over tensors; made by `ucle.iterate`."""

    state: Any
    """The last state: a tensor, a tuple or a dict of tensors, like the first state."""
    result: Iteration
    """The results of the loop, which hold the tables; the state is readable until it is closed."""

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.result.steps

    @property
    def converged(self) -> bool:
        """True if the condition held after the last step."""
        return self.result.converged

    @property
    def interrupted(self) -> bool:
        """True if the loop was interrupted from the keyboard; the last complete step counts."""
        return self.result.interrupted

    @property
    def history(self) -> History:
        """Numbers of each step: the watched ones, and the number that ``condition`` compares."""
        return self.result.history

    def __enter__(self) -> TensorIteration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the tables; the state cannot be read afterwards."""
        self.result.close()


@validated(
    step=args.function,
    until=args.function,
    max_steps=args.count(1),
    watch=args.function,
    database=args.database_or_spark,
    progress=args.function,
    checkpoint=args.mapping(args.text, args.text, "a dict from state to table"),
    every=args.count(1),
)
def iterate(
    step: Callable[..., Any],
    state: Any,
    until: Callable[[Any, Any], Any] | None = None,
    *,
    max_steps: int | None = None,
    watch: Callable[[Any, Any], Mapping[str, Any]] | None = None,
    database: Database = None,
    progress: Watch | None = None,
    checkpoint: Mapping[str, str] | None = None,
    every: int = 10,
    **options: Any,
) -> TensorIteration:
    """Compute a state from the previous state repeatedly, until a condition holds.

    The functions are called with lazy tensors, and their results are compiled: a condition in
    Python (``if``) does not see the numbers. The SQL of a step does not grow with the steps.

    Args:
        step: computes the next state from a state. A dict state is passed as keywords, a tuple as
            positional arguments; the result has the same structure.
        state: the initial state: an array, a table or a tensor, or a tuple or a dict of these. The
            next state has the same shapes, names of axes and element types.
        until: computes the condition, a tensor without axes, from the new state and the old one.
            The loop ends after the first step for which the condition holds.
        max_steps: the largest number of steps; with a condition, 1000 by default.
        watch: computes numbers, as a dict of tensors without axes, from the new state and the old
            one. The history contains them for each step.
        database: where tables are; by default the database that the tensors were made with.
        progress: as for `EinsumProgram.iterate`.
        checkpoint: tables for parts of the state, by the keys of a dict, ``state0`` and so on for a
            tuple, ``state`` for one tensor.
        every: the number of steps between two checkpoints.
        options: as for `ucle.einsum_program`.

    Returns:
        The last state, with ``steps``, ``converged`` and ``history``.

    Warns:
        NotConvergedWarning: the condition does not hold after `max_steps`.

    Raises:
        ArgumentTypeError: a function returns an object of the wrong kind.
        LabelError: the next state has different axes, or the condition has axes.
        UcleError: as for `EinsumProgram.iterate`.

    >>> import ucle
    >>> A = ucle.array([[0.5, 0.25], [0.5, 0.75]])
    >>> found = ucle.iterate(
    ...     lambda x: A @ x, [1.0, 0.0], until=lambda new, old: abs(new - old).max() < 1e-9
    ... )
    >>> found.state.to_numpy().round(6), found.steps, found.history["condition"][:2]
    (array([0.333333, 0.666667]), 16, array([0.5  , 0.125]))
    """
    parts = {name: _lift_value(name, value, database) for name, value in _parts(state).items()}
    parts |= _first(step, state, parts, database)
    old = {name: _as_state(name, part) for name, part in parts.items()}
    before = _like(state, old)
    after = _call(step, state, before)
    new = _next_state(state, old, after)
    added = {} if until is None else _condition(until(_like(state, new), before))
    watched = {} if watch is None else _lift_watched(watch(_like(state, new), before))
    _check_names(new, added, watched)
    outputs = {name: x.lazy for name, x in {**new, **watched}.items()} | {
        name: lazy for name, (lazy, _) in added.items()
    }
    # The carried state is read without its axes of size 1, which have no label.
    whole = {name: Lazy(x.lazy.node, x.lazy.node.axes) for name, x in new.items()}
    names = unique_names([f"{name}_next" for name in whole], {fold_name(x) for x in outputs})
    units = [any(axis.unit for axis in x.lazy.axes) for x in new.values()]
    carried = dict(zip(whole, names, strict=True))
    outputs |= {carried[x]: whole[x] for x, unit in zip(whole, units, strict=True) if unit}
    made = {x: carried[x] if unit else x for x, unit in zip(whole, units, strict=True)}
    program = compile_tensors(outputs, database, **options)
    inputs = {x.described.spec.name: y for y, x in program.compiled.all_inputs.items()}
    carry = {inputs[_own(name)]: made[name] for name in old if _own(name) in inputs}
    result = program.iterate(
        carry,
        next((text for _, text in added.values()), None),
        max_steps=max_steps,
        progress=progress,
        checkpoint=checkpoint,
        every=every,
    )
    return TensorIteration(_like(state, {name: result[name] for name in new}), result)


def _parts(state: Any) -> dict[str, Any]:
    """The parts of a state by name."""
    if isinstance(state, Mapping):
        return dict(state)
    if isinstance(state, tuple):
        return {f"state{n}": value for n, value in enumerate(state)}
    return {"state": state}


def _like(state: Any, parts: Mapping[str, Any]) -> Any:
    """Assemble parts in the structure of a state."""
    if isinstance(state, Mapping):
        return dict(parts)
    return tuple(parts.values()) if isinstance(state, tuple) else parts["state"]


def _call(step: Callable[..., Any], state: Any, tensors: Any) -> Any:
    if isinstance(state, Mapping):
        return step(**tensors)
    return step(*tensors) if isinstance(state, tuple) else step(tensors)


def _own(name: str) -> str:
    """A name that distinguishes a part of the state from constant inputs with the same data."""
    return f"{name} of the state"


def _lift_value(name: str, value: Any, database: Database) -> Tensor:
    """Convert a part of the state to a tensor."""
    if isinstance(value, RandomTensor):
        value = Tensor(tensor_operand(value))
    if isinstance(value, Tensor):
        return value
    return Tensor(lift_input(value, name=name, database=database))


def _first(
    step: Callable[..., Any], state: Any, parts: Mapping[str, Tensor], database: Database
) -> dict[str, Tensor]:
    """Compute the initial values of parts that are not inputs.

    They are computed together with the step, which may need longer axes than a part by itself: some
    pages are only the targets of links.
    """
    first = {
        name: part.lazy for name, part in parts.items() if not isinstance(part.lazy.node, Leaf)
    }
    if not first:
        return {}
    following = _next_state(state, parts, _call(step, state, _like(state, parts)))
    names = unique_names([f"{name}_after" for name in following], set(map(fold_name, first)))
    beside = {name: part.lazy for name, part in zip(names, following.values(), strict=True)}
    program = compile_tensors({**first, **beside}, database, outputs=tuple(first))
    with program.execute() as result:
        return {
            name: Tensor(lift_input(settle(result[name].to_arrow()), name=name)) for name in first
        }


def _as_state(name: str, part: Tensor) -> Tensor:
    """A tensor that stands for a part of the state, and for nothing else in the program."""
    lazy = part.lazy
    leaf = lazy.node
    assert isinstance(leaf, Leaf)
    spec = leaf.value if isinstance(leaf.value, TableInput) else TableInput(leaf.value)
    own = replace(spec, varies=True, name=_own(name))
    fresh = Leaf(own, leaf.axes, name, leaf.dtype, leaf.database)
    return Tensor(Lazy(fresh, lazy.axes))


def _next_state(state: Any, old: Mapping[str, Tensor], after: Any) -> dict[str, Tensor]:
    """The parts of the next state, with axes in the order of the previous state.

    Raises:
        ArgumentTypeError: it has another structure.
        LabelError: a part has other axes.
    """
    if isinstance(state, Mapping):
        alike = isinstance(after, Mapping) and set(after) == set(state)
    elif isinstance(state, tuple):
        alike = isinstance(after, tuple) and len(after) == len(state)
    else:
        alike = not isinstance(after, Mapping | tuple)
    if not alike:
        raise ArgumentTypeError(
            "the next state is not put together as the state is",
            where="iterate, step",
            expected=_kind(state),
            found=_kind(after),
        )
    parts = _parts(after)
    return {name: _in_order(name, tensor, parts[name]) for name, tensor in old.items()}


def _kind(state: Any) -> str:
    if isinstance(state, Mapping):
        return "a dict of " + ", ".join(map(str, state))
    return f"a tuple of {len(state)}" if isinstance(state, tuple) else type(state).__qualname__


def _in_order(name: str, before: Tensor, value: Any) -> Tensor:
    after = Tensor(tensor_operand(value))
    if before.axes != after.axes and sorted(map(str, before.axes)) == sorted(map(str, after.axes)):
        after = after.permute_dims([axis for axis in before.axes if axis is not None])
    sizes = zip(before.shape, after.shape, strict=False)
    fits = all(None in (x, y) or x == y for x, y in sizes)
    if before.axes != after.axes or not fits:
        raise LabelError(
            f"the next {name} has other axes than {name}",
            where="iterate, step",
            expected=str(before.lazy),
            found=str(after.lazy),
        )
    return after


def _condition(value: Any) -> dict[str, tuple[Lazy, str]]:
    """The tensor for a condition, and the text of the condition in the language."""
    lazy = _number(value, "until")
    compared = _find_comparison(lazy.node)
    if compared is not None:
        left, sign, number = compared
        return {CONDITION: (Lazy(left, ()), f"{CONDITION}[] {sign} {number!r}")}
    if known_type(lazy) not in (DType.BOOL, None):
        raise ValueTypeError(
            "a condition must be true or false",
            where="iterate, until",
            expected="a comparison, such as abs(new - old).max() < 1e-9",
            found=str(Tensor(lazy).dtype),
        )
    return {CONDITION: (lazy, f"{CONDITION}[]")}


def _find_comparison(node: Node) -> tuple[Node, str, float] | None:
    """The tensor, the sign and the number of a node that compares a tensor with a number."""
    if not isinstance(node, Apply) or not isinstance(node.function, Combine) or node.reduce:
        return None
    left, *others = (operand.source for operand in node.operands)
    sign = _SIGNS.get(node.function.name)
    if sign is None or len(others) != 1 or not isinstance(left, Leaf | Apply):
        return None
    (number,) = others
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    if not math.isfinite(number) or any(operand.indices for operand in node.operands):
        return None
    return left, sign, number


def _lift_watched(numbers: Any) -> dict[str, Tensor]:
    if not isinstance(numbers, Mapping):
        raise ArgumentTypeError(
            "watched numbers must have names",
            where="iterate, watch",
            expected="a dict from name to tensor",
            found=type(numbers).__qualname__,
        )
    return {name: Tensor(_number(x, f"watch, {name}")) for name, x in numbers.items()}


def _number(value: Any, where: str) -> Lazy:
    """Check that a value is a tensor without axes."""
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            "this is no tensor",
            where=f"iterate, {where}",
            expected="a lazy tensor without axes, made of the states",
            found=repr(value)[:80],
        )
    if value.axes:
        raise LabelError(
            "this is not one number",
            where=f"iterate, {where}",
            expected="a tensor without axes",
            found=str(value.lazy),
            hint="reduce it with .all(), .max() or .sum()",
        )
    return value.lazy


def _check_names(*groups: Iterable[str]) -> None:
    names = [name for group in groups for name in group]
    twice = next((x for n, x in enumerate(names) if x in names[:n]), None)
    if twice is not None:
        raise ArgumentError(
            f"the name {twice} is used twice",
            where="iterate",
            expected=f"different names of states and of what is watched, none of them {CONDITION}",
            found=twice,
        )


__all__ = ["TensorIteration", "iterate"]
