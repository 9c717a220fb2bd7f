"""A convolution between SpaceToBatchND and BatchToSpaceND becomes a dilated one.

TensorFlow 1 wrote every dilated convolution so. Conv2D has dilations; for depthwise convolutions TensorFlow's
processors have none, so their filters are filled up with zeros, as the Graph Transform Tool did with all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs, same_device

Array = Any


@dataclass(frozen=True)
class FlattenAtrousConv(Optimization):
    """SpaceToBatchND, convolution, BatchToSpaceND become one convolution with the same padding.

    The report has `flattened`: how many.

    Attributes:
        upsample: fill up the filters of Conv2D with zeros too, for runtimes that know no dilations.
    """

    name: ClassVar[str] = "flatten_atrous_conv"

    upsample: bool = False

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        flattened = 0
        for node in found.each("BatchToSpaceND"):
            conv = node.inputs[0].node
            if conv.op in ("Conv2D", "DepthwiseConv2dNative") and self._flatten(found, node, conv):
                flattened += 1
        return found.result({"flattened": flattened})

    def _flatten(self, found: Subgraphs, node: Node, conv: Node) -> bool:
        import numpy as np

        split = conv.inputs[0].node
        if split.op != "SpaceToBatchND" or not found.is_inner(conv) or not found.is_inner(split):
            return False
        if any(found.is_fed(each) for each in (node, conv, split)) or not same_device(node, conv, split):
            return False
        if conv.attr("data_format") != b"NHWC" or any(size != 1 for size in conv.attr("strides")):
            return False
        if any(size != 1 for size in conv.attr("dilations")):
            return False
        block, again = found.array(split.inputs[1]), found.array(node.inputs[1])
        paddings, crops = found.array(split.inputs[2]), found.array(node.inputs[2])
        if block is None or again is None or paddings is None or crops is None:
            return False
        if block.shape != (2,) or not np.array_equal(block, again) or (block < 1).any():
            return False
        window = _window(found, conv)
        if paddings.shape != (2, 2) or crops.shape != (2, 2) or window is None:
            return False
        pads = paddings.astype(np.int64) - crops + _inner_pads(conv, window) * block.astype(np.int64)[:, None]
        if (pads < 0).any():
            return False
        upsample = self.upsample or conv.op != "Conv2D"
        filter_ = conv.inputs[1]
        attrs: dict[str, Any] = plain_attrs(conv)
        attrs["padding"], attrs["explicit_paddings"] = _padding(pads, (window - 1) * block)
        if attrs["padding"] == b"EXPLICIT" and conv.op != "Conv2D":
            return False  # as in `fold_pads`
        if upsample:
            const = found.own_constant(filter_)
            weights = None if const is None else found.array(filter_)
            if const is None or weights is None or weights.ndim != 4:
                return False
            found.set_value(const, _upsampled(weights, block))
        else:
            attrs["dilations"] = [1, int(block[0]), int(block[1]), 1]
        found.make(node, conv.op, [split.inputs[0], filter_], attrs, [conv, split], conv.device or node.device)
        return True


def _window(found: Subgraphs, conv: Node) -> Array:
    """Height and width of the filter, or None."""
    import numpy as np

    weights = found.array(conv.inputs[1])
    return None if weights is None or weights.ndim != 4 else np.asarray(weights.shape[:2], np.int64)


def _inner_pads(conv: Node, window: Array) -> Array:
    """What the convolution itself pads, in rows of the split image: [[before, behind], ...]."""
    import numpy as np

    padding: bytes = conv.attr("padding")
    if padding == b"EXPLICIT":
        return np.asarray(conv.attr("explicit_paddings"), np.int64).reshape(4, 2)[1:3]
    if padding == b"VALID":
        return np.zeros((2, 2), np.int64)
    before = (window - 1) // 2
    return np.stack([before, window - 1 - before], 1)


def _padding(pads: Array, reach: Array) -> tuple[bytes, list[int]]:
    """The attributes for a padding: by its name where it has one.

    Args:
        reach: how far the dilated window reaches beyond its first row and column.
    """
    import numpy as np

    if not pads.any():
        return b"VALID", []
    before = reach // 2
    if np.array_equal(pads, np.stack([before, reach - before], 1)):
        return b"SAME", []
    return b"EXPLICIT", [0, 0, *(int(size) for size in pads.reshape(-1)), 0, 0]


def _upsampled(weights: Array, block: Array) -> Array:
    import numpy as np

    height, width = (int((size - 1) * step + 1) for size, step in zip(weights.shape[:2], block, strict=True))
    out = np.zeros((height, width, *weights.shape[2:]), weights.dtype)
    out[:: int(block[0]), :: int(block[1])] = weights
    return out
