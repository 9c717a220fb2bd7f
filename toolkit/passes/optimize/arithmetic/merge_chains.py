"""Reshapes, transposes, casts and their like: those that change nothing, and several in a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.arithmetic.constants import array_of, same_shape
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

_RESHAPES = ("Reshape", "Squeeze", "ExpandDims")


@dataclass(frozen=True)
class MergeChains(Optimization):
    """Remove nodes that only look as if they did something, and merge two of a kind.

    Nothing is done by a Reshape, BroadcastTo, Slice or StridedSlice to the shape there is, a Transpose that keeps the
    order, a Cast or Bitcast to the same type, a Tile by ones, a Pad by zeros, a concatenation of one tensor, a sum of
    one, a split into one, a reduction over no axis or over axes of size one that are kept. A Reshape of a Reshape,
    Squeeze or ExpandDims is one of the first tensor; two Transposes are one or none; a Cast of a Cast is one where the
    first loses nothing.
    """

    name: ClassVar[str] = "merge_chains"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `removed` and `merged`, how many nodes."""
        work = Rewriting(graph, self.kept)
        removed = merged = 0
        for original in graph.topological_order():
            rule = _NOTHING.get(original.op)
            joins = _MERGES.get(original.op)
            if rule is None and joins is None:
                continue
            node = work.graph.node(original.name)
            if work.is_fed(node) or not is_pure(node) or any(source.dtype.is_ref for source in node.inputs):
                continue
            position = rule(work, node) if rule is not None else None
            if position is not None and not (node.num_outputs != 1 and work.is_kept(node)):
                work.hand_on(node, node.inputs[position])
                removed += 1
            elif joins is not None and joins(work, node):
                merged += 1
        return work.result({"removed": removed, "merged": merged})


# -- what does nothing: the position of the input that the node hands on, or None ---------------------------


def _same(work: Rewriting, node: Node) -> int | None:
    """Neither elements nor their order change where the shape does not."""
    return 0 if same_shape(work.shape(node.inputs[0]), work.shape(node.output())) else None


def _same_type(work: Rewriting, node: Node) -> int | None:
    return 0 if node.inputs[0].dtype.base is node.output_types[0].base else None


def _permutation(work: Rewriting, node: Node) -> list[int] | None:
    found = work.value(node.inputs[1])
    if not isinstance(found, list):
        return None
    order = [each for each in cast("list[Any]", found) if isinstance(each, int)]
    order = [each + len(order) if each < 0 else each for each in order]
    return order if sorted(order) == list(range(len(order))) else None


def _in_order(work: Rewriting, node: Node) -> int | None:
    order = _permutation(work, node)
    if order is None:
        return None
    if order == sorted(order):
        return 0
    dims = work.shape(node.inputs[0]).dims  # moving axes of size one moves no element, but changes the shape
    return (
        0 if dims is not None and len(dims) == len(order) and _same(work, node) == 0 and _keeps(dims, order) else None
    )


def _keeps(dims: Any, order: list[int]) -> bool:
    large = [axis for axis in order if dims[axis] != 1]
    return large == sorted(large)


def _all(number: int, position: int) -> Callable[[Rewriting, Node], int | None]:
    def rule(work: Rewriting, node: Node) -> int | None:
        array = array_of(work, node.inputs[position])
        return 0 if array is not None and bool((array == number).all()) else None

    return rule


def _whole(work: Rewriting, node: Node) -> int | None:
    """A slice of the size of what it is cut from, forwards."""
    if node.op == "StridedSlice":
        strides = array_of(work, node.inputs[3])
        if strides is None or not bool((strides == 1).all()):
            return None
    return _same(work, node)


def _one_input(work: Rewriting, node: Node) -> int | None:
    tensors = [i for i in range(len(node.inputs)) if not _is_axis(node, i)]
    return tensors[0] if len(tensors) == 1 else None


def _is_axis(node: Node, position: int) -> bool:
    return (node.op == "ConcatV2" and position == len(node.inputs) - 1) or (node.op == "Concat" and position == 0)


def _one_part(work: Rewriting, node: Node) -> int | None:
    return (1 if node.op == "Split" else 0) if node.num_outputs == 1 else None


def _no_axis(work: Rewriting, node: Node) -> int | None:
    """A reduction over no axis, or over kept axes of size one: of one element, none of these changes it."""
    if node.op == "Mean" and not node.output_types[0].is_floating:
        return None
    axes = array_of(work, node.inputs[1])
    if axes is None:
        return None
    if not axes.size:
        return 0
    dims = work.shape(node.inputs[0]).dims
    if dims is None or not node.attr("keep_dims"):
        return None
    flat = [int(axis) for axis in axes.reshape(-1)]
    return 0 if all(-len(dims) <= axis < len(dims) and dims[axis] == 1 for axis in flat) else None


def _no_reversal(work: Rewriting, node: Node) -> int | None:
    axes, dims = array_of(work, node.inputs[1]), work.shape(node.inputs[0]).dims
    if axes is None or axes.dtype.kind == "b" or dims is None:
        return None
    flat = [int(axis) for axis in axes.reshape(-1)]
    return 0 if all(-len(dims) <= axis < len(dims) and dims[axis] == 1 for axis in flat) else None


_Nothing = Callable[[Rewriting, Node], int | None]
_NOTHING: dict[str, _Nothing] = {
    "Reshape": _same, "BroadcastTo": _same, "Squeeze": _same, "Slice": _whole, "StridedSlice": _whole,
    "Transpose": _in_order, "Cast": _same_type, "Bitcast": _same_type, "Tile": _all(1, 1), "Pad": _all(0, 1),
    "PadV2": _all(0, 1), "MirrorPad": _all(0, 1), "ConcatV2": _one_input, "Concat": _one_input, "AddN": _one_input,
    "Split": _one_part, "SplitV": _one_part, "ReverseV2": _no_reversal,
    **dict.fromkeys(("Sum", "Prod", "Max", "Min", "Mean", "All", "Any"), _no_axis),
}  # fmt: skip


# -- two of a kind -------------------------------------------------------------------------------------------


def _inner(work: Rewriting, node: Node, *ops: str) -> Node | None:
    """What makes the node's first input, if it is of these ops and nothing hangs on it but what it computes."""
    source, index = node.inputs[0]
    if source.op not in ops or index or work.is_fed(source) or source.control_inputs or not is_pure(source):
        return None
    return source


def _passed(work: Rewriting, node: Node, inner: Node) -> list[Node] | None:
    """What a node has to wait for when it no longer takes `inner`; None where that is not to be said."""
    waits = dict.fromkeys(node.control_inputs)
    for source, _ in inner.inputs[1:]:
        if source.op == "Const":
            waits.update(dict.fromkeys(source.control_inputs))
        elif not work.is_idle_wait(source, node):
            return None
    return list(waits)


def _merge_reshapes(work: Rewriting, node: Node) -> bool:
    inner = _inner(work, node, *_RESHAPES)
    if inner is None or inner.inputs[0].dtype.is_ref:
        return False
    waits = _passed(work, node, inner)
    if waits is None:
        return False
    if node.op == "Reshape":  # its shape says all, and a -1 in it stands for the same number of elements
        work.set_inputs(node, [inner.inputs[0], node.inputs[1]])
        work.set_controls(node, waits)
        return True
    if same_shape(work.shape(inner.inputs[0]), work.shape(node.output())):
        work.turn_identity(node, inner.inputs[0], waits)
        return True
    return False


def _merge_transposes(work: Rewriting, node: Node) -> bool:
    inner = _inner(work, node, "Transpose")
    if inner is None:
        return False
    first, second = _permutation(work, inner), _permutation(work, node)
    waits = _passed(work, node, inner)
    if first is None or second is None or waits is None or len(first) != len(second):
        return False
    joined = [first[axis] for axis in second]
    if joined == sorted(joined):
        work.turn_identity(node, inner.inputs[0], waits)
        return True
    import numpy as np

    from toolkit.formats.arrays.tensor import from_array

    dtype = node.inputs[1].dtype.base
    attrs = {"dtype": dtype, "value": from_array(np.asarray(joined, dtype.numpy), dtype)}
    old = node.inputs[1].node
    made = work.add(
        "Const", f"{node.name}/perm", control_inputs=old.control_inputs if old.op == "Const" else (),
        attrs=attrs, device=node.device,
    )  # fmt: skip
    if old.op != "Const" and not work.is_idle_wait(old, node):
        waits.append(old)
    work.set_inputs(node, [inner.inputs[0], made.output()])
    work.set_controls(node, waits)
    return True


def _merge_casts(work: Rewriting, node: Node) -> bool:
    inner = _inner(work, node, "Cast")
    if inner is None or inner.attr("Truncate"):
        return False
    source = inner.inputs[0]
    if not _loses_nothing(source.dtype.base, inner.output_types[0].base):
        return False
    if source.dtype.base is node.output_types[0].base:
        work.turn_identity(node, source)
        return True
    work.turn(
        node, "Cast", [source],
        {"SrcT": source.dtype.base, "DstT": node.output_types[0].base, "Truncate": node.attr("Truncate")},
    )  # fmt: skip
    return True


def _loses_nothing(small: DType, large: DType) -> bool:
    """Whether every value of one type is one of the other."""
    if small is large:
        return True
    if small.kind == "b":
        return large.kind in "iufc"
    if small.kind in "iu" and large.kind in "iu":
        return small.size < large.size and (small.kind == "u" or large.kind == "i")
    if small.kind in "iu" and large.kind == "f":
        return 8 * small.size - (small.kind == "i") <= _DIGITS.get(large, 0)
    if small.kind == "f" and large.kind == "f":
        return small in _DIGITS and large in _DIGITS and (large is dtypes.float64 or (
            large is dtypes.float32 and small in (dtypes.float16, dtypes.bfloat16)
        ))  # fmt: skip
    return False


#: bits of the significand
_DIGITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}
_MERGES: dict[str, Callable[[Rewriting, Node], bool]] = {
    "Reshape": _merge_reshapes, "Squeeze": _merge_reshapes, "ExpandDims": _merge_reshapes,
    "Transpose": _merge_transposes, "Cast": _merge_casts,
}  # fmt: skip
