"""Random ONNX graphs over rows: shapes, products, reductions and functions, one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Identity", "Softplus", "HardSwish")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


class Graph:
    """A graph as it grows; sizes of tensors are known but for the rows, which are None.

    Args:
        seed: of all choices.
        rows: whether the first axis is open.
    """

    def __init__(self, seed: int, *, rows: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.shapes: dict[str, tuple[int | None, ...]] = {}
        first = None if rows else 3
        self.inputs = [self.add_input("x", (first, *self.sizes(int(self.rng.integers(1, 4)))))]

    def sizes(self, count: int) -> tuple[int, ...]:
        return tuple(int(n) for n in self.rng.choice([1, 2, 3, 4, 6], count))

    def add_input(self, name: str, shape: tuple[int | None, ...]) -> Any:
        self.shapes[name] = shape
        dims = ["rows" if n is None else n for n in shape]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(
        self, kind: str, inputs: list[str], shape: tuple[int | None, ...], **given: Any
    ) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **given))
        self.shapes[name] = shape
        return name

    def pick(self) -> str:
        names = list(self.shapes)
        return names[max(len(names) - 1 - int(self.rng.exponential(1.5)), 0)]

    def grow(self) -> None:
        """Add one operator, or a few."""
        choice = self.rng.choice(
            [
                *("unary", "binary", "weight", "matmul", "permute", "reshape", "reduce", "slice"),
                *("concat", "unsqueeze", "softmax", "expand", "gather", "norm", "self", "pad"),
            ]
        )
        getattr(self, f"_{choice}")(self.pick())

    def _unary(self, x: str) -> None:
        self.node(str(self.rng.choice(UNARY)), [x], self.shapes[x])

    def _binary(self, x: str) -> None:
        other = [name for name, shape in self.shapes.items() if shape == self.shapes[x]]
        self.node(str(self.rng.choice(BINARY)), [x, str(self.rng.choice(other))], self.shapes[x])

    def _weight(self, x: str) -> None:
        shape = self.shapes[x]
        tail = [n if n and self.rng.random() < 0.7 else 1 for n in shape]
        tail = tail[int(self.rng.integers(0, len(tail) + 1)) :] or [1]
        w = self.constant(self.rng.normal(size=tail).astype("f4"))
        self.node(str(self.rng.choice(BINARY)), [x, w], shape)

    def _matmul(self, x: str) -> None:
        shape = self.shapes[x]
        if len(shape) < 2 or shape[-1] is None:
            return
        out = int(self.rng.integers(1, 5))
        w = self.constant(self.rng.normal(size=(shape[-1], out)).astype("f4"))
        self.node("MatMul", [x, w], (*shape[:-1], out))

    def _self(self, x: str) -> None:
        shape = self.shapes[x]
        if len(shape) < 3 or shape[-1] is None or shape[-2] is None:
            return
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        turned = self.node("Transpose", [x], tuple(shape[n] for n in order), perm=order)
        self.node("MatMul", [x, turned], (*shape[:-1], shape[-2]))

    def _permute(self, x: str) -> None:
        order = [int(n) for n in self.rng.permutation(len(self.shapes[x]))]
        self.node("Transpose", [x], tuple(self.shapes[x][n] for n in order), perm=order)

    def _reshape(self, x: str) -> None:
        shape = self.shapes[x]
        if None in shape and shape[0] is not None:
            return
        sizes = [n for n in shape if n is not None]
        total = math.prod(sizes)
        made: list[int] = []
        while total > 1 and len(made) < 3:
            parts = [n for n in range(2, total + 1) if total % n == 0]
            made.append(int(self.rng.choice(parts)))
            total //= made[-1]
        made.append(total)
        head: list[int | None] = [None] if None in shape else []
        target = [-1 if n is None else n for n in (*head, *made)]
        name = self.constant(np.array(target, np.int64))
        self.node("Reshape", [x, name], (*head, *made))

    def _reduce(self, x: str) -> None:
        shape = self.shapes[x]
        places = [n for n, size in enumerate(shape) if size is not None]
        if not places or len(shape) < 2:
            return
        axis, keep = int(self.rng.choice(places)), int(self.rng.integers(0, 2))
        kind = str(self.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"]))
        axes = self.constant(np.array([axis], np.int64))
        left = tuple(1 if n == axis else s for n, s in enumerate(shape) if keep or n != axis)
        self.node(kind, [x, axes], left, keepdims=keep)

    def _slice(self, x: str) -> None:
        shape = self.shapes[x]
        places = [n for n, size in enumerate(shape) if size is not None and size > 1]
        if not places:
            return
        axis = int(self.rng.choice(places))
        size = shape[axis]
        assert size is not None
        step = int(self.rng.choice([1, 1, 2, -1]))
        start, end = (0, size) if step > 0 else (size - 1, -size - 1)
        if step == 1:
            start = int(self.rng.integers(0, size))
            end = int(self.rng.integers(start + 1, size + 1))
        count = len(range(size)[start:end:step])
        parts = [self.constant(np.array([n], np.int64)) for n in (start, end, axis, step)]
        self.node("Slice", [x, *parts], (*shape[:axis], count, *shape[axis + 1 :]))

    def _concat(self, x: str) -> None:
        shape = self.shapes[x]
        places = [n for n, size in enumerate(shape) if size is not None]
        if not places:
            return
        axis = int(self.rng.choice(places))
        fitting = [
            name
            for name, other in self.shapes.items()
            if len(other) == len(shape)
            and all(a == b for n, (a, b) in enumerate(zip(shape, other, strict=True)) if n != axis)
            and other[axis] is not None
        ]
        other = str(self.rng.choice(fitting))
        size = (shape[axis] or 0) + (self.shapes[other][axis] or 0)
        self.node("Concat", [x, other], (*shape[:axis], size, *shape[axis + 1 :]), axis=axis)

    def _unsqueeze(self, x: str) -> None:
        shape = self.shapes[x]
        place = int(self.rng.integers(0, len(shape) + 1))
        axes = self.constant(np.array([place], np.int64))
        self.node("Unsqueeze", [x, axes], (*shape[:place], 1, *shape[place:]))

    def _softmax(self, x: str) -> None:
        places = [n for n, size in enumerate(self.shapes[x]) if size is not None]
        if places:
            kind = str(self.rng.choice(["Softmax", "LogSoftmax"]))
            self.node(kind, [x], self.shapes[x], axis=int(self.rng.choice(places)))

    def _expand(self, x: str) -> None:
        shape = self.shapes[x]
        places = [n for n, size in enumerate(shape) if size == 1]
        if not places:
            return
        axis = int(self.rng.choice(places))
        size = int(self.rng.integers(2, 4))
        made = tuple(size if n == axis else s for n, s in enumerate(shape))
        target = self.constant(np.array([n if n == size else 1 for n in made], np.int64))
        wide = tuple(n if (n == size or n is None) else s for n, s in zip(made, shape, strict=True))
        self.node(
            "Expand",
            [x, target],
            tuple(a if a != 1 else b for a, b in zip(shape, wide, strict=True)),
        )

    def _gather(self, x: str) -> None:
        shape = self.shapes[x]
        places = [n for n, size in enumerate(shape) if size is not None]
        if not places:
            return
        axis = int(self.rng.choice(places))
        size = shape[axis] or 1
        rank = int(self.rng.integers(0, 3))
        indices = self.rng.integers(-size, size, self.rng.integers(1, 4, rank))
        name = self.constant(np.asarray(indices, np.int64))
        self.node(
            "Gather", [x, name], (*shape[:axis], *np.shape(indices), *shape[axis + 1 :]), axis=axis
        )

    def _norm(self, x: str) -> None:
        size = self.shapes[x][-1]
        if size is None:
            return
        parts = [self.constant(self.rng.normal(size=size).astype("f4")) for _ in range(2)]
        self.node("LayerNormalization", [x, *parts], self.shapes[x], axis=-1, epsilon=0.1)

    def _pad(self, x: str) -> None:
        shape = self.shapes[x]
        low, high = (
            [
                0 if size is None else int(n)
                for n, size in zip(self.rng.integers(0, 2, len(shape)), shape, strict=True)
            ]
            for _ in range(2)
        )
        pads = self.constant(np.array([*low, *high], np.int64))
        made = tuple(
            None if s is None else s + a + b for s, a, b in zip(shape, low, high, strict=True)
        )
        self.node("Pad", [x, pads], made)

    def model(self, steps: int) -> Any:
        """The model after some steps, whose outputs are the last two tensors."""
        for _ in range(steps):
            self.grow()
            if math.prod(n or 1 for n in self.shapes[list(self.shapes)[-1]]) > 2000:
                break
        names = list(self.shapes)[-2:]
        names = [name for name in names if name != "x"] or [
            self.node("Identity", ["x"], self.shapes["x"])
        ]
        outputs = [self.add_input(name, self.shapes[name]) for name in names]
        graph = helper.make_graph(self.nodes, "random", self.inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
