"""Mirrored borders and bilinear resizing fused into the convolution behind them, as the Graph Transform Tool did.

The fused ops save the memory of what is in between. TensorFlow's kernels compute all images but the first of a batch
from the wrong place (here they do not), so only what is known to be one image is fused; and they resize by the rule
of TensorFlow 1, without half-pixel centers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap, infer
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, same_device

_TYPES = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})


@dataclass(frozen=True)
class _Fusing(Optimization):
    """What the three have in common.

    Attributes:
        any_batch: fuse batches too; TensorFlow's results are then wrong, ours are not.
    """

    any_batch: bool = False

    resizes: ClassVar[bool]
    pads: ClassVar[bool]

    def apply(self, graph: Graph) -> PassResult:
        """The report has `fused`: how many convolutions."""
        found = Subgraphs(graph, self.kept)
        shapes: ShapeMap | None = None
        fused = 0
        for conv in found.each("Conv2D"):
            chain = self._chain(found, conv)
            if chain is None:
                continue
            if not self.any_batch:
                shapes = shapes or infer(graph, strict=False)
                original = graph.get(chain[-1].name)
                if original is None or shapes[Output(original, 0)].rank != 4 or shapes[Output(original, 0)][0] != 1:
                    continue
            self._fuse(found, conv, chain)
            fused += 1
        return found.result({"fused": fused})

    def _chain(self, found: Subgraphs, conv: Node) -> list[Node] | None:
        """What comes before the convolution and goes into it, the nearest first."""
        if conv.output_types[0] not in _TYPES or conv.attr("data_format") != b"NHWC" or found.is_fed(conv):
            return None
        if conv.attr("padding") == b"EXPLICIT" or any(size != 1 for size in conv.attr("dilations")):
            return None
        strides: list[int] = conv.attr("strides")
        if len(strides) != 4 or strides[1] != strides[2]:  # the fused kernels have one stride for both
            return None
        chain: list[Node] = []
        source = conv.inputs[0]
        wanted = [*(["MirrorPad"] if self.pads else []), *(["ResizeBilinear"] if self.resizes else [])]
        for op in wanted:
            node = source.node
            if node.op != op or source.index != 0 or not found.is_inner(node) or found.is_fed(node):
                return None
            if op == "MirrorPad" and node.inputs[1].dtype.base != dtypes.int32:
                return None
            if op == "ResizeBilinear" and (
                node.attr("half_pixel_centers") or conv.output_types[0] != node.inputs[0].dtype.base
            ):
                return None
            chain.append(node)
            source = node.inputs[0]
        return chain if same_device(conv, *chain) else None

    def _fuse(self, found: Subgraphs, conv: Node, chain: list[Node]) -> None:
        import numpy as np

        attrs: dict[str, Any] = {name: conv.attrs.proto(name) for name in ("T", "strides", "padding")}
        pad = chain[0] if self.pads else None
        resize = chain[-1] if self.resizes else None
        if pad is not None:
            paddings = pad.inputs[1]
            attrs["mode"] = pad.attr("mode")
        else:
            paddings = found.add_constant(f"{conv.name}/no_paddings", np.zeros((4, 2), np.int32), [conv]).output()
            attrs["mode"] = "REFLECT"
        inputs = [chain[-1].inputs[0], paddings, conv.inputs[1]]
        if resize is not None:
            inputs.insert(1, resize.inputs[1])
            attrs["resize_align_corners"] = resize.attr("align_corners")
        op = "FusedPadConv2D" if resize is None else "FusedResizeAndPadConv2D"
        found.make(conv, op, inputs, attrs, chain)


@dataclass(frozen=True)
class FusePadAndConv(_Fusing):
    """MirrorPad and Conv2D become FusedPadConv2D."""

    name: ClassVar[str] = "fuse_pad_and_conv"
    resizes: ClassVar[bool] = False
    pads: ClassVar[bool] = True


@dataclass(frozen=True)
class FuseResizeAndConv(_Fusing):
    """ResizeBilinear and Conv2D become FusedResizeAndPadConv2D."""

    name: ClassVar[str] = "fuse_resize_and_conv"
    resizes: ClassVar[bool] = True
    pads: ClassVar[bool] = False


@dataclass(frozen=True)
class FuseResizePadAndConv(_Fusing):
    """ResizeBilinear, MirrorPad and Conv2D become FusedResizeAndPadConv2D."""

    name: ClassVar[str] = "fuse_resize_pad_and_conv"
    resizes: ClassVar[bool] = True
    pads: ClassVar[bool] = True
