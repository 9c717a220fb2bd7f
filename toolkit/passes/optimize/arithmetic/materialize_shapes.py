"""Put constants in the place of shapes that are known before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.values.evaluator import is_foldable
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

_TYPES = frozenset({dtypes.int32, dtypes.int64, dtypes.bool_})


@dataclass(frozen=True)
class MaterializeShapes(Optimization):
    """Compute Shape, ShapeN, Size and Rank, and the arithmetic on them, from static shapes.

    A part of a shape is enough: of `Shape(x)[1]` only the second size has to be known. Integers only, of int32 and
    int64. Of a placeholder the shape that it declares counts, of what is fed in the middle of a graph nothing. The
    constant waits for the tensor where that has an effect, or runs in a loop or branch only.
    """

    name: ClassVar[str] = "materialize_shapes"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `materialized`, how many nodes became constants."""
        work = Rewriting(graph, self.kept)
        count = 0
        for original in graph.topological_order():
            if original.op == "Const" or not original.inputs or not is_foldable(original.op):
                continue
            node = work.graph.node(original.name)
            if is_pure(node) and not work.is_fed(node):
                count += _materialize(work, node)
        return work.result({"materialized": count})


def _materialize(work: Rewriting, node: Node) -> bool:
    types = [dtype.base for dtype in node.output_types]
    if not types or any(dtype not in _TYPES for dtype in types):
        return False
    if len(types) == 1:
        value = work.value(node.output())
        if not _is_known(value):
            return False
        work.turn_constant(node, _tensor(value, types[0]))
        return True
    done = False
    for index, dtype in enumerate(types):
        output = node.output(index)
        if work.is_asked_for(output) or not work.takers(output) or not _is_known(value := work.value(output)):
            continue
        source = node.inputs[index].node if node.op == "ShapeN" else None
        waits = [
            *node.control_inputs,
            *([source] if source is not None and not work.is_idle_wait(source, node) else ()),
        ]
        if source is None and not all(work.is_idle_wait(each, node) for each, _ in node.inputs):
            continue
        attrs = {"dtype": dtype, "value": _tensor(value, dtype)}
        made = work.add("Const", f"{node.name}/known_{index}", control_inputs=waits, attrs=attrs, device=node.device)
        done = bool(work.redirect(output, made.output())) or done
    return done


def _is_known(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_known(each) for each in value)  # pyright: ignore[reportUnknownVariableType] -- nested lists
    return value is not None


def _tensor(value: Any, dtype: Any) -> Any:
    import numpy as np

    from toolkit.formats.arrays.tensor import from_array

    return from_array(np.asarray(value, dtype.numpy), dtype)
