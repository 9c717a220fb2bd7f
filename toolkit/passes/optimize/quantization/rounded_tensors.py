"""Which tensors of a network are rounded to 8 bits, so that its convolutions and products run in 8 bits.

A convolution or product with constant weights takes rounded numbers; what gives them to it is rounded where they are
made, before max pools and reshapes, which hand on some of the numbers that they take. Where a sum joins the result of
such a product with another tensor, and 8 bits follow, both and the sum are rounded: then there are 8-bit numbers from
one product to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.graph import dtypes
from toolkit.graph.node import Node, Output
from toolkit.passes.optimize.subgraph import Subgraphs

#: op -> the axis of its weights for which there is a step each: its output channels, or the groups of them that a
#: depthwise convolution makes of one channel
PRODUCTS = {"Conv2D": 3, "DepthwiseConv2dNative": 2, "MatMul": 1}
#: products that are told to stay float32: there are no 8-bit ones of them
_OTHER_PRODUCTS = frozenset({
    "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropInputV2", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum",
    "_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul",
})  # fmt: skip
#: nodes that round to a few bits and back
ROUND_TRIPS = frozenset({
    "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", "QuantizeAndDequantize",
    "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4",
})  # fmt: skip
#: ops whose output has some of the numbers of their first input
_HANDS_ON = frozenset({"MaxPool", "Reshape", "Squeeze", "ExpandDims", "Identity"})
_PADDED = frozenset({"Conv2D", "DepthwiseConv2dNative"})
_ADDS = frozenset({"Add", "AddV2"})
#: what a product does to its sums before it rounds them
_CLIPS = frozenset({"Relu", "Relu6"})
#: what takes 8-bit numbers at the end of a network: a sum that it takes is rounded as the others are
_MEANS = frozenset({"Mean", "AvgPool"})
#: over how many nodes a tensor is followed; networks have three, and the pass stays linear
_MOST_PASSED = 16


@dataclass(slots=True)
class Product:
    """A convolution or product that is to run in 8 bits.

    Attributes:
        rounded: the tensor that is rounded for it.
        axis: of its weights, which are rounded for each index of it; None where they are rounded already.
    """

    node: Node
    rounded: Output
    axis: int | None


@dataclass(slots=True)
class Rounded:
    """A tensor that is rounded.

    Attributes:
        takers: who takes the rounded one; None for all: then nobody needs the floats.
    """

    tensor: Output
    takers: set[Node] | None


@dataclass(slots=True)
class Found:
    """What is rounded.

    Attributes:
        left: products that stay float32, and why.
    """

    products: list[Product] = field(default_factory=list[Product])
    tensors: list[Rounded] = field(default_factory=list[Rounded])
    left: dict[str, str] = field(default_factory=dict[str, str])


def find_rounded(work: Subgraphs, ignored: frozenset[str]) -> Found:
    """What is rounded in a graph.

    Args:
        ignored: names or ops of nodes that stay as they are.
    """
    return _Finding(work, ignored).run()


class _Finding:
    """Looks at products first, then at sums, the last ones first."""

    def __init__(self, work: Subgraphs, ignored: frozenset[str]):
        self.work = work
        self.ignored = ignored
        self.found = Found()
        self.products: set[Node] = set()
        #: rounded tensor -> who takes it in 8 bits
        self.takers: dict[Output, set[Node]] = {}
        self.sums: set[Output] = set()

    def run(self) -> Found:
        order = self.work.graph.topological_order()
        for node in order:
            if node.op in PRODUCTS:
                self._product(node)
            elif node.op in _OTHER_PRODUCTS and self.work.array(node.inputs[1]) is not None:
                self.found.left[node.name] = f"there is no 8-bit {node.op}"
        for node in reversed(order):
            if node.op in _ADDS:
                self._sum(node)
        position = {node: index for index, node in enumerate(order)}
        for tensor in sorted(self.takers, key=lambda each: (position[each.node], each.index)):
            if tensor.node.op not in ROUND_TRIPS:
                everybody = tensor in self.sums or self._made_by(tensor) is not None
                self.found.tensors.append(Rounded(tensor, None if everybody else self.takers[tensor]))
        return self.found

    # -- products --------------------------------------------------------------------------------------------------

    def _product(self, node: Node) -> None:
        if node.name in self.ignored or node.op in self.ignored:
            return
        why, axis = self._refusal(node)
        if why:
            self.found.left[node.name] = why
            return
        tensor, taker = self._source(node, node.inputs[0])
        self.products.add(node)
        self.takers.setdefault(tensor, set()).add(taker)
        self.found.products.append(Product(node, tensor, axis))

    def _refusal(self, node: Node) -> tuple[str, int | None]:
        """Why a product stays float32, "" where it does not; and the axis of its weights that has steps."""
        import numpy as np

        work = self.work
        if node.output_types[0] != dtypes.float32:
            return f"it is {node.output_types[0]}", None
        if work.is_fed(node):
            return "it is fed", None
        if not work.is_plain(node):
            return "it is in a loop or a branch, or behind a call or an effect", None
        if work.constant(node.inputs[0]) is not None:
            return "what it takes is constant", None
        second = node.inputs[1].node
        if second.op in ROUND_TRIPS and work.constant(second.inputs[0]) is not None:
            return "", None
        weights = work.array(node.inputs[1])
        if weights is None:
            return "its weights are no constants", None
        axis = PRODUCTS[node.op]
        if node.op == "MatMul" and node.attr("transpose_b"):
            axis = 0
        if weights.ndim <= axis or not weights.size:
            return "its weights are empty or have another rank", None
        if not np.isfinite(weights).all():
            return "its weights are not finite", None
        return "", axis

    def _source(self, node: Node, tensor: Output) -> tuple[Output, Node]:
        """Where a tensor is rounded that a node takes, and who takes it there."""
        for _ in range(_MOST_PASSED):
            source = tensor.node
            if tensor.index or self.work.is_fed(source) or not self.work.is_plain(source):
                break
            # zeros around the input of a convolution, which make its own padding, are numbers of 8 bits as well
            if source.op not in _HANDS_ON and not (source.op == "Pad" and node.op in _PADDED):
                break
            node, tensor = source, source.inputs[0]
        return tensor, node

    # -- sums ------------------------------------------------------------------------------------------------------

    def _sum(self, node: Node) -> None:
        """Both tensors that are added and their sum are rounded, where a product makes one and 8 bits follow."""
        work = self.work
        if node.name in self.ignored or node.op in self.ignored or node.output_types[0] != dtypes.float32:
            return
        if work.is_fed(node) or not work.is_plain(node):
            return
        left, right = node.inputs
        if left == right or any(work.constant(source) is not None for source in (left, right)):
            return
        shapes = [work.shape(source).dims for source in (left, right)]
        if shapes[0] is None or shapes[0] != shapes[1]:
            return
        if not any(self._made_by(source) is not None and self._only(source, node) for source in (left, right)):
            return
        end = self._clipped(node)
        following = {user for user in work.takers(end) if self._takes_eight(user, end)}
        if not following:
            return
        self.sums.add(end)
        self.takers.setdefault(end, set()).update(following)
        for source in (left, right):
            tensor, taker = self._source(node, source)
            self.takers.setdefault(tensor, set()).add(taker)

    def _only(self, tensor: Output, node: Node) -> bool:
        return self.work.is_only_taken_by(tensor, node)

    def _clipped(self, node: Node) -> Output:
        """The output of a sum behind what clips it."""
        for _ in range(_MOST_PASSED):
            reader = self.work.reader(node)
            if reader is None or reader.op not in _CLIPS or self.work.is_fed(reader):
                break
            node = reader
        return node.output()

    def _takes_eight(self, user: Node, tensor: Output) -> bool:
        return user in self.takers.get(tensor, ()) or user.op in _MEANS

    def _made_by(self, tensor: Output) -> Node | None:
        """The product whose sums a tensor is, with a bias and clipped; nobody takes anything in between."""
        node = tensor.node
        for _ in range(_MOST_PASSED):
            if tensor.index or self.work.is_fed(node):
                return None
            if node in self.products:
                return node
            source = self._unfinished(node)
            if source is None or not self.work.is_inner(source.node):
                return None
            tensor, node = source, source.node
        return None

    def _unfinished(self, node: Node) -> Output | None:
        """What a node clips or adds a constant to."""
        if node.op in _CLIPS or node.op == "Identity":
            return node.inputs[0]
        if node.op == "BiasAdd":
            return node.inputs[0] if self.work.constant(node.inputs[1]) is not None else None
        if node.op in _ADDS:
            left, right = node.inputs
            if self.work.constant(right) is not None:
                return left
            if self.work.constant(left) is not None:
                return right
        return None
