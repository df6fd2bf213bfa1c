"""The graph that is written: its nodes, its constants, and values with NumPy's operators.

Formulas are expressions of `Value`, such as ``(x > 0) & (y > 0)``. Each operation adds one node,
unless the graph already has an equal node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import find_free_name

OPSET = 18
"""The set of operators that models use: the first one with bitwise operators."""
IR_VERSION = 8
"""The oldest format of files with that set."""


@dataclass(frozen=True, eq=False)
class Value:
    """The result of a node, an input or a constant, with its element type."""

    graph: Graph
    name: str
    dtype: DType

    __array_ufunc__ = None  # NumPy leaves operations with arrays to this class

    def __add__(self, other: Any) -> Value:
        return self._both("Or" if self._truth else "Add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Value:
        return self._both("Sub", other)

    def __rsub__(self, other: Any) -> Value:
        return self.like(other)._both("Sub", self)

    def __mul__(self, other: Any) -> Value:
        return self._both("And" if self._truth else "Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Value:
        return self._both("Div", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.like(other)._both("Div", self)

    def __floordiv__(self, by: int) -> Value:
        return self._both("Sub", self % by)._both("Div", by)

    def __mod__(self, other: Any) -> Value:
        return self._both("Mod", other, fmod=int(self.dtype.kind == "f"))

    def __neg__(self) -> Value:
        return self.apply("Neg")

    def __lt__(self, other: Any) -> Value:
        if self._truth:
            return self.apply("Not")._both("And", other)
        return self._both("Less", other, result=DType.BOOL)

    def __le__(self, other: Any) -> Value:
        if self._truth:
            return self.apply("Not")._both("Or", other)
        return self._both("LessOrEqual", other, result=DType.BOOL)

    def __gt__(self, other: Any) -> Value:
        return self._both("Greater", other, result=DType.BOOL)

    def __ge__(self, other: Any) -> Value:
        return self._both("GreaterOrEqual", other, result=DType.BOOL)

    def equals(self, other: Any) -> Value:
        """True where both are equal."""
        return self._both("Equal", other, result=DType.BOOL)

    def __and__(self, other: Any) -> Value:
        return self._both("And" if self._truth else "BitwiseAnd", other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Value:
        return self._both("Or" if self._truth else "BitwiseOr", other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Value:
        return self._both("Xor" if self._truth else "BitwiseXor", other)

    def __invert__(self) -> Value:
        return self.apply("Not")

    @property
    def _truth(self) -> bool:
        return self.dtype is DType.BOOL

    def like(self, other: Any) -> Value:
        """Another operand: a number or an array becomes a constant of this type."""
        return other if isinstance(other, Value) else self.graph.constant(other, self.dtype)

    def apply(self, operator: str, *others: Value, **attributes: Any) -> Value:
        """A node of this value and others, whose result has this type."""
        return self.graph.node(operator, (self, *others), self.dtype, **attributes)

    def cast(self, dtype: DType) -> Value:
        """This value in another type."""
        if self.graph.element(dtype) == self.graph.element(self.dtype):
            return Value(self.graph, self.name, dtype)
        return self.graph.node("Cast", (self,), dtype, to=self.graph.element(dtype))

    def axes(self, operator: str, axes: Sequence[int], **attributes: Any) -> Value:
        """A node that takes axes as its second operand: ``Unsqueeze``, reductions and the like."""
        if not axes:
            return self
        return self.apply(operator, self.graph.integers(axes), **attributes)

    def transpose(self, order: Sequence[int]) -> Value:
        """This value with its axes in another order."""
        if list(order) == sorted(order):
            return self
        return self.apply("Transpose", perm=list(order))

    def _both(
        self, operator: str, other: Any, result: DType | None = None, **attributes: Any
    ) -> Value:
        return self.graph.node(
            operator, (self, self.like(other)), result or self.dtype, **attributes
        )


def choose(condition: Value, one: Any, other: Any, dtype: DType) -> Value:
    """One value where a condition holds, and the other one elsewhere."""
    graph = condition.graph
    left, right = (x if isinstance(x, Value) else graph.constant(x, dtype) for x in (one, other))
    if dtype is DType.BOOL:  # not every runtime has it of truth values
        inside, outside = condition.apply("And", left), condition.apply("Not").apply("And", right)
        return inside.apply("Or", outside)
    return graph.node("Where", (condition, left, right), dtype)


class Graph:
    """The nodes and constants so far."""

    def __init__(self, onnx: Any, narrow: bool = False) -> None:
        """Begin a graph.

        Args:
            onnx: the module.
            narrow: whether float64 becomes float32.
        """
        self.onnx = onnx
        self.narrow = narrow
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.taken: set[str] = set()
        self.stem = "value"
        """The beginning of the names of new values: the tensor that is being computed."""
        self._known: dict[Any, tuple[Value, ...]] = {}

    def element(self, dtype: DType) -> int:
        """The number of an element type in the file.

        Raises:
            UnsupportedError: complex numbers.
        """
        kinds, types = self.onnx.TensorProto, {DType.BOOL: "BOOL", DType.INT64: "INT64"}
        types |= {DType.FLOAT32: "FLOAT", DType.FLOAT64: "FLOAT" if self.narrow else "DOUBLE"}
        if dtype not in types:
            raise UnsupportedError("complex numbers")
        return int(getattr(kinds, types[dtype]))

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        name = find_free_name(stem, self.taken)
        self.taken.add(name)
        return name

    def input(self, name: str, dtype: DType) -> Value:
        """An input, or a constant that has a name of its own."""
        self.taken.add(name)
        return Value(self, name, dtype)

    def weight(self, name: str, array: Any, dtype: DType) -> Value:
        """A constant with a name."""
        self.constants[name] = self._array(array, dtype)
        return self.input(name, dtype)

    def constant(self, value: Any, dtype: DType) -> Value:
        """A constant, which is kept once."""
        array = self._array(value, dtype)
        key = ("constant", array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            name = self.name("constant")
            self.constants[name] = array
            self._known[key] = (Value(self, name, dtype),)
        return Value(self, self._known[key][0].name, dtype)

    def integers(self, values: Sequence[int]) -> Value:
        """A list of integers, as operators take axes and shapes."""
        return self.constant(np.asarray(list(values), np.int64), DType.INT64)

    def node(
        self, operator: str, operands: Sequence[Value], dtype: DType, **attributes: Any
    ) -> Value:
        """A node with one result."""
        (value,) = self.several(operator, operands, (dtype,), **attributes)
        return value

    def several(
        self, operator: str, operands: Sequence[Value], types: Sequence[DType], **attributes: Any
    ) -> tuple[Value, ...]:
        """A node with several results of these types."""
        names = [operand.name for operand in operands]
        facts = tuple((x, tuple(y) if isinstance(y, list) else y) for x, y in attributes.items())
        key = operator, tuple(names), facts, tuple(map(self.element, types))
        if key not in self._known:
            made = tuple(Value(self, self.name(f"{self.stem}_{operator}"), x) for x in types)
            results = [value.name for value in made]
            self.nodes.append(self.onnx.helper.make_node(operator, names, results, **attributes))
            self._known[key] = made
        return tuple(
            Value(self, x.name, dtype) for x, dtype in zip(self._known[key], types, strict=True)
        )

    def rename(self, names: Mapping[str, str]) -> None:
        """Give results of nodes other names."""
        for node in self.nodes:
            for part in (node.input, node.output):
                for place, name in enumerate(part):
                    part[place] = names.get(name, name)

    def _array(self, value: Any, dtype: DType) -> np.ndarray[Any, Any]:
        self.element(dtype)
        narrow = self.narrow and dtype is DType.FLOAT64
        kind = np.dtype(np.float32) if narrow else dtype.numpy
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(np.asarray(value).astype(kind)).reshape(np.shape(value))
