"""Zeros written around a convolution's input become its own padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs, same_device

_CONVOLUTIONS = ("Conv2D", "_FusedConv2D")


@dataclass(frozen=True)
class FoldPads(Optimization):
    """Pad and a convolution without padding, or with explicit padding, become one with explicit padding.

    Depthwise convolutions keep their Pad: where a bias and an activation or a sigmoid follow, TensorFlow 2.21's
    optimizer fuses them without looking at explicit padding, and its shape inference ends the process.

    The report has `folded`: how many pads vanished.
    """

    name: ClassVar[str] = "fold_pads"

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        folded = 0
        for conv in found.each(*_CONVOLUTIONS):
            pad = conv.inputs[0].node
            pads = _pads(found, conv, pad)
            if pads is None:
                continue
            attrs: dict[str, Any] = plain_attrs(conv)
            attrs["padding"] = b"EXPLICIT" if any(pads) else b"VALID"
            attrs["explicit_paddings"] = pads if any(pads) else []
            found.make(conv, conv.op, [pad.inputs[0], *conv.inputs[1:]], attrs, [pad])
            folded += 1
        return found.result({"folded": folded})


def _pads(found: Subgraphs, conv: Node, pad: Node) -> list[int] | None:
    """What the convolution pads on both sides of each dimension when it does it all; None where it cannot."""
    import numpy as np

    if pad.op not in ("Pad", "PadV2") or not found.is_inner(pad) or found.is_fed(pad) or found.is_fed(conv):
        return None
    if conv.inputs[0].index != 0 or not same_device(pad, conv):
        return None
    padding: bytes = conv.attr("padding")
    if padding not in (b"VALID", b"EXPLICIT"):
        return None
    sizes = found.array(pad.inputs[1])
    if sizes is None or sizes.shape != (4, 2) or (sizes < 0).any():
        return None
    if pad.op == "PadV2":
        value = found.array(pad.inputs[2])
        if value is None or value.size != 1 or np.asarray(value).astype(np.complex128).any():
            return None
    own = np.zeros(8, np.int64) if padding == b"VALID" else np.asarray(conv.attr("explicit_paddings"), np.int64)
    if own.shape != (8,):
        return None
    channels = 1 if conv.attr("data_format") == b"NCHW" else 3
    if sizes[0].any() or sizes[channels].any():
        return None
    return [int(size) for size in own + sizes.reshape(-1)]
