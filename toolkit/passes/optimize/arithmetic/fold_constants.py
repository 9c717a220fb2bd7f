"""Compute what depends on constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.measuring.operations import operations
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

#: ops whose results are never larger than their inputs, of a size that only the values tell
_SHRINKING = frozenset({"Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "ListDiff"})


@dataclass(frozen=True)
class FoldConstants(Optimization):
    """Put constants in the place of nodes whose inputs are constants, by the kernels that define the ops here.

    Left alone are nodes with effects, random ones (the stateless too), calls, fed nodes, those whose results are
    larger than `max_bytes` and than the constants that go with them, and those that take longer than `max_operations`.
    What a folded node waited for its constant waits for, so it stays in its loop or branch.

    Attributes:
        max_bytes: how large a result may be that is larger than the constants it replaces (a Fill's or Tile's).
        max_operations: floating-point operations that one node may take.
        exclude: names of ops that are not folded.
    """

    name: ClassVar[str] = "fold_constants"

    max_bytes: int = 100_000
    max_operations: int = 2_000_000_000
    exclude: tuple[str, ...] = ()

    def apply(self, graph: Graph) -> PassResult:
        """The report has `folded`, `too_large` (how many nodes would have grown), and `bytes_added`."""
        return _Folding(graph, self).run()


class _Folding:
    def __init__(self, graph: Graph, options: FoldConstants):
        self.options = options
        self.order = graph.topological_order()
        self.work = Rewriting(graph, options.kept)
        self.arrays: dict[Node, Any] = {}
        self.folded = self.too_large = self.added = 0

    def run(self) -> PassResult:
        for original in self.order:
            node = self.work.graph.node(original.name)
            if node.inputs and all(self._is_constant(source) for source, _ in node.inputs):
                self._fold(original, node)
        facts = {"folded": self.folded, "too_large": self.too_large, "bytes_added": self.added}
        return self.work.result(facts)

    def _is_constant(self, node: Node) -> bool:
        return node.op == "Const" and not self.work.is_fed(node)

    def _fold(self, original: Node, node: Node) -> None:
        work, options = self.work, self.options
        if not is_pure(node) or work.is_fed(node) or node.op in options.exclude or "Random" in node.op:
            return
        if node.op.startswith("Stateless") or any(not _is_plain_type(dtype) for dtype in node.output_types):
            return
        if _is_stored_small(node):
            return
        if node.op == "Identity" and not work.is_only_taken_by(node.inputs[0], node):
            return  # a second constant would save nothing
        if node.num_outputs != 1 and (work.is_kept(node) or work.waiting(node)):
            return
        if not node.num_outputs:
            return
        room = max(options.max_bytes, self._freed(node))
        if not self._fits(original, room):
            return
        outputs = self._compute(node)
        if outputs is None:
            return
        size = sum(map(_bytes, outputs))
        if size > room:
            self.too_large += 1
            return
        self.added += size
        self.folded += 1
        self._put(node, outputs)

    def _fits(self, node: Node, room: int) -> bool:
        """Whether a node's results are known not to be too large, and it does not take too long."""
        shapes = self.work.shapes
        if node.op not in _SHRINKING:
            total = 0
            for shape, dtype in zip(shapes.of(node), node.output_types, strict=False):
                count = shape.num_elements
                if count is None:
                    return False
                total += count * (dtype.size or 1)
            if total > room:
                self.too_large += 1
                return False
        return operations(node, shapes, 1) <= self.options.max_operations

    def _freed(self, node: Node) -> int:
        """The bytes of the constants that nobody needs once the node is folded, as they are stored: one number may
        stand for a whole tensor."""
        sources = {source for source, _ in node.inputs if self.work.is_only_taken_by(source.output(), node)}
        return sum(_stored(source) for source in sources)

    def _array(self, node: Node) -> Any:
        found = self.arrays.get(node)
        if found is None:
            from toolkit.formats.arrays.tensor import to_array

            found = self.arrays[node] = to_array(node.attr("value"))
        return found

    def _compute(self, node: Node) -> list[Any] | None:
        import numpy as np

        from toolkit.kernels.registry import KernelNode, Kind, find

        entry = find(node, defining=True)
        if entry is None or entry.kind is not Kind.PURE:
            return None
        try:
            compute = entry.factory(KernelNode(node))
            with np.errstate(all="ignore"):
                given = compute(*[self._array(source) for source, _ in node.inputs])
        except Exception:  # whatever is wrong is said when the node runs
            return None
        outputs = list(cast("Sequence[Any]", given)) if isinstance(given, tuple | list) else [given]
        if len(outputs) != node.num_outputs:
            return None
        return [np.asarray(output) for output in outputs]

    def _put(self, node: Node, outputs: list[Any]) -> None:
        from toolkit.formats.arrays.tensor import from_array

        types = [dtype.base for dtype in node.output_types]
        protos = [from_array(array, dtype) for array, dtype in zip(outputs, types, strict=True)]
        if len(protos) == 1:
            self.work.turn_constant(node, protos[0])
            self.arrays[node] = outputs[0]
            return
        waits = dict.fromkeys(node.control_inputs)
        for source, _ in node.inputs:
            waits.update(dict.fromkeys(source.control_inputs))
        for index, proto in enumerate(protos):
            if self.work.takers(node.output(index)):
                attrs = {"dtype": types[index], "value": proto}
                made = self.work.add(
                    "Const", f"{node.name}/folded_{index}", control_inputs=waits, attrs=attrs, device=node.device
                )
                self.arrays[made] = outputs[index]
                self.work.redirect(node.output(index), made.output())


def _is_stored_small(node: Node) -> bool:
    """Whether a node is what weights stored in fewer bits are read through."""
    if node.op == "Cast":
        return node.input_types[0].base in (dtypes.float16, dtypes.bfloat16) and node.attr("DstT") == dtypes.float32
    return node.op == "Dequantize"


def _is_plain_type(dtype: Any) -> bool:
    return dtype.base.name not in ("resource", "variant")


def _stored(node: Node) -> int:
    value = node.attr_proto("value")
    return 0 if value is None else value.tensor.ByteSize()


def _bytes(array: Any) -> int:
    if array.dtype.kind == "O":
        return sum(len(item) for item in array.flat)
    return int(array.nbytes)
