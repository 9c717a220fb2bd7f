"""Rows about shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.passes.validate_corpus.rows import both, inside, put, row
from tests.passes.validate_graphs import (
    F,
    I,
    add,
    calls,
    const,
    loop,
    net,
    tensor,
)
from toolkit.graph.shape import Shape

for name, size in (("x", [None, 8, 8, 4]), ("x", [None, 8, 8]), ("x", [None, 9, 9, 3])):
    # 9 x 9 pixels make 324 features; the last layers take 256
    where = "conv/out" if size != [None, 9, 9, 3] else ""
    if where:
        row(f"x of shape {size}", "shapes/contradiction", net, put(name, "shape", Shape(size)), where)
row("x of a fixed wrong size", "shapes/contradiction", net, put("x", "shape", Shape([1, 9, 9, 3])), "flat")


def replace_const(name: str, values: Any, shape: list[int], dtype: Any = F) -> Callable[[Any], None]:
    return put(name, "value", tensor(values, shape, dtype))


row("a bias of five", "shapes/contradiction", net, replace_const("conv/bias", [0.0], [5]), "conv/biased")
row("a bias that is a matrix", "shapes/contradiction", net, replace_const("conv/bias", [0.0], [2, 2]), "conv/biased")
row(
    "a kernel of three dimensions",
    "shapes/contradiction",
    net,
    replace_const("conv/kernel", [0.0], [3, 3, 3]),
    "conv/out",
)
row(
    "a kernel for four channels",
    "shapes/contradiction",
    net,
    replace_const("conv/kernel", [0.0], [3, 3, 4, 4]),
    "conv/out",
)
row("a dense layer of 255", "shapes/contradiction", net, replace_const("dense/kernel", [0.0], [255, 10]), "logits")
row(
    "a dense layer that is a vector", "shapes/contradiction", net, replace_const("dense/kernel", [0.0], [256]), "logits"
)
row("a transposed dense layer", "shapes/contradiction", net, put("logits", "transpose_b", True), "logits")
row("strides of three", "shapes/contradiction", net, put("conv/out", "strides", [1, 1, 1]), "conv/out")
row("a reshape to seven columns", "shapes/contradiction", net, replace_const("flat/shape", [-1, 7], [2], I), "logits")
row("a reshape by a matrix", "shapes/contradiction", net, replace_const("flat/shape", [1], [1, 2], I), "flat")
row("a matrix as condition's bound", "shapes/contradiction", loop,
    both(lambda g: add(g, "Placeholder", "a", dtype=F, shape=Shape([2, 3])),
         lambda g: add(g, "MatMul", "m", ["a", "a"], T=F)), "m")  # fmt: skip
row(
    "shapes in a function",
    "shapes/contradiction",
    calls,
    inside(
        "negative",
        both(
            lambda f: const(f, "two", [1.0], [2]),
            lambda f: const(f, "three", [1.0], [3]),
            lambda f: add(f, "AddV2", "bad", ["two:output:0", "three:output:0"], T=F),
        ),
    ),
    "bad",
)
row("a noted shape that is wrong", "shapes/noted", net, put("relu", "_output_shapes", [Shape([None, 8, 8, 5])]), "relu")
row("a noted rank that is wrong", "shapes/noted", net, put("logits", "_output_shapes", [Shape([10])]), "logits")
