"""Networks of float32 made networks of 8 bits, with ranges that are known before anything runs (static quantization).

What convolutions and products take is rounded to 256 steps of a range that was measured on calibration data, and their
weights to 255 steps around 0, of a size of its own for each output channel. Both are written as TensorFlow's round
trips, nodes that round floats and give floats: FakeQuantWithMinMaxVars for tensors, QuantizeAndDequantizeV3 for weights
(TensorFlow's version 4 takes no range for each channel). So TensorFlow runs the graph as it is, and a runtime that
knows what the round trips mean computes in 8 bits between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.arithmetic.fold_constants import FoldConstants
from toolkit.passes.optimize.flow.inline_functions import InlineFunctions
from toolkit.passes.optimize.nn.fold_batch_norms import FoldBatchNorms
from toolkit.passes.optimize.nn.unfuse_epilogues import UnfuseEpilogues
from toolkit.passes.optimize.quantization.rounded_tensors import PRODUCTS, Rounded, find_rounded
from toolkit.passes.optimize.quantization.weights import error_of
from toolkit.passes.optimize.removal.remove_control_edges import RemoveControlEdges
from toolkit.passes.optimize.removal.remove_identities import RemoveIdentities
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

Array = Any
#: (graph, tensors, percentile) -> by tensor, the least and the largest number that it had; see `QuantizeStatic.measure`
Measure = Callable[[Graph, Sequence[str], float | None], Mapping[str, tuple[float, float]]]
#: steps of 8 bits: of a tensor, and of weights on either side of 0
_STEPS, _SIDE = 255, 127
#: a range below which all counts as 0: its steps are far above the least float32, and far below what anybody measures
_LEAST = 2.0**-100
#: above it, a range's ends, their difference or a step of it times 255 may not be finite in float32
_MOST = 2.0**126
#: nodes that a note names; the report has all
_NAMED = 3


@dataclass(frozen=True)
class QuantizeStatic(Optimization):
    """Round what convolutions and products take, and their weights, to 8 bits and back, in ranges that are given.

    Calls of functions are replaced by their nodes, as `inline_functions` does, fused convolutions taken apart, and
    constants and batch norms folded first. Sums of two tensors, one of which a
    convolution makes, are rounded where 8 bits follow. A tensor is rounded once, before max pools and reshapes, for all
    who take it. Results of the network and what follows float operations alone stay as they are.

    The report has `quantized`, nodes by op; `ranges` of rounded tensors; `errors` of weights as `quantize_weights`
    tells them; `left`: why a convolution or product stays float32; and `notes`.

    Attributes:
        method: ranges from the least to the largest number that was seen, or the `percentile`, which leaves out rare
            large ones so that the others get finer steps.
        percentile: how many of the numbers lie within the range, in percent; as many are left out below as above.
        ignore: nodes, or ops, that stay as they are.
        measure: runs the graph on calibration data. Raises GraphmillError where the data do not fit.
    """

    name: ClassVar[str] = "quantize_static"
    in_functions: ClassVar[bool] = False
    once: ClassVar[bool] = True
    undoes: ClassVar[tuple[str, ...]] = ("fuse_epilogues",)

    method: Literal["minmax", "percentile"] = "minmax"
    percentile: float = 99.99
    ignore: tuple[str, ...] = ()
    measure: Measure | None = field(default=None, kw_only=True, repr=False, metadata={"option": False})

    def __post_init__(self) -> None:
        if not 50 < self.percentile <= 100:
            raise UsageError(f"percentile is {self.percentile:g}; expected more than 50, up to 100")

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: there are no calibration data, or `ignore` names nothing of the graph.
        """
        plain = InlineFunctions(kept=self.kept).apply(graph).graph
        ops = {node.op for node in [*graph, *plain]}
        for name in self.ignore:
            if name not in graph and name not in plain and name not in ops:
                near = did_you_mean(name, [*PRODUCTS, *(node.name for node in plain)])
                raise UsageError(f"ignore is '{name}', which is no node or op of the graph{near}")
        # constants of one call wait for another, though it has no effects, and results are handed on; one goes with
        # the other
        after_calls = (RemoveControlEdges, RemoveIdentities) * 2 if plain is not graph else ()
        for before in (*after_calls, UnfuseEpilogues, FoldConstants, FoldBatchNorms):
            plain = before(kept=self.kept).apply(plain).graph
        result = _Quantizing(self, Subgraphs(plain, self.kept)).run()
        if not result.report["quantized"]:  # what was done before alone is no work of this pass
            return PassResult(graph, False, result.report)
        return PassResult(result.graph, True, result.report)


class _Quantizing:
    """The state of the pass."""

    def __init__(self, options: QuantizeStatic, work: Subgraphs):
        self.options = options
        self.work = work
        self.weights: dict[tuple[Output, int], Output] = {}
        self.errors: dict[str, Any] = {}

    def run(self) -> PassResult:
        found = find_rounded(self.work, frozenset(self.options.ignore))
        ranges = self._ranges([each.tensor for each in found.tensors])
        left = dict(found.left)
        unusable = {tensor for tensor, ends in ranges.items() if ends is None}
        counts: Counter[str] = Counter()
        for product in found.products:
            if product.rounded in unusable:
                left[product.node.name] = f"'{product.rounded.name}' has no finite range on these data"
                continue
            if product.axis is not None:
                self._round_weights(product.node, product.axis)
            counts[product.node.op] += 1
        if counts:
            for each in found.tensors:
                ends = ranges[each.tensor]
                if ends is not None:
                    self._round(each, ends)
        report: dict[str, Any] = {
            "quantized": dict(counts),
            "ranges": {tensor.name: list(ends) for tensor, ends in ranges.items() if ends is not None},
            "errors": self.errors,
            "left": left,
            "notes": _notes(sum(counts.values()), left),
        }
        return self.work.result(report)

    # -- ranges ----------------------------------------------------------------------------------------------------

    def _ranges(self, tensors: Sequence[Output]) -> dict[Output, tuple[float, float] | None]:
        """What each tensor is rounded to: the ends of 256 steps, one of which is 0. None where it is not finite."""
        if not tensors:
            return {}
        if self.options.measure is None:
            raise UsageError("the pass 'quantize_static' measures ranges on calibration data: --calibrate FILE.npz")
        percentile = self.options.percentile if self.options.method == "percentile" else None
        seen = self.options.measure(self.work.graph, [tensor.name for tensor in tensors], percentile)
        return {tensor: ends_of(*seen[tensor.name]) for tensor in tensors}

    # -- round trips -----------------------------------------------------------------------------------------------

    def _round(self, rounded: Rounded, ends: tuple[float, float]) -> None:
        """A FakeQuant behind a tensor, for those who take it in 8 bits."""
        import numpy as np

        work, tensor = self.work, rounded.tensor
        takers = [node for node in work.takers(tensor) if rounded.takers is None or node in rounded.takers]
        name = f"{tensor.node.name}_rounded" + (f"_{tensor.index}" if tensor.index else "")
        low, high = (
            work.add_constant(f"{name}/{what}", np.float32(value), [tensor.node]).output()
            for what, value in zip(("min", "max"), ends, strict=True)
        )
        attrs = {"num_bits": 8, "narrow_range": False}
        made = work.add(
            "FakeQuantWithMinMaxVars", name, [tensor, low, high], attrs=attrs, device=tensor.node.device
        ).output()
        for taker in takers:
            work.set_inputs(taker, [made if source == tensor else source for source in taker.inputs])

    def _round_weights(self, node: Node, axis: int) -> None:
        """Weights in steps of a size of its own for each output channel; those of several nodes once."""
        import numpy as np

        work, source = self.work, node.inputs[1]
        made = self.weights.get((source, axis))
        if made is None:
            weights = work.array(source)
            peaks = np.abs(weights).max(axis=tuple(a for a in range(weights.ndim) if a != axis), initial=0)
            peaks = np.maximum(peaks, np.float32(_LEAST))
            name = f"{source.node.name}_rounded"
            high = work.add_constant(f"{name}/max", peaks, [source.node]).output()
            low = work.add_constant(f"{name}/min", -peaks, [source.node]).output()
            bits = work.add_constant(f"{name}/bits", np.int32(8), [source.node]).output()
            attrs = {
                "T": dtypes.float32, "signed_input": True, "range_given": True, "narrow_range": True, "axis": axis
            }  # fmt: skip
            trip = work.add(
                "QuantizeAndDequantizeV3", name, [source, low, high, bits], attrs=attrs, device=source.node.device
            )
            made = self.weights[source, axis] = trip.output()
            self.errors[source.node.name] = error_of(weights, _rounded(weights, peaks, axis))
        work.set_inputs(node, [node.inputs[0], made, *node.inputs[2:]])


def ends_of(low: float, high: float) -> tuple[float, float] | None:
    """The ends of 256 steps around a range and 0, moved so that 0 is one of the steps; None where they are not finite.

    A range of nothing but 0 is one from 0 to 1.
    """
    import numpy as np

    low, high = min(low, 0.0), max(high, 0.0)
    if not (np.isfinite(low) and np.isfinite(high)) or high - low > _MOST:
        return None
    if high - low < _LEAST:
        return 0.0, 1.0
    step = (high - low) / _STEPS
    zero = round(-low / step)
    return -zero * step, (_STEPS - zero) * step


def _rounded(weights: Array, peaks: Array, axis: int) -> Array:
    """What the round trip makes of weights, but for float32's own error."""
    import numpy as np

    shape = [1] * weights.ndim
    shape[axis] = -1
    steps = peaks.astype(np.float64).reshape(shape) / _SIDE
    return np.rint(weights / steps) * steps


def _notes(count: int, left: Mapping[str, str]) -> list[str]:
    """What a user is told."""
    if not count and not left:
        return ["the graph has no convolution or product"]
    if not left:
        return []
    named = [f"'{name}' ({why})" for name, why in list(left.items())[:_NAMED]]
    more = f" and {len(left) - _NAMED} more, which --report lists" if len(left) > _NAMED else ""
    return [f"{len(left)} of {len(left) + count} convolutions and products stay float32: {', '.join(named)}{more}"]
