"""Float operations made TensorFlow's 8-bit ones, as the Graph Transform Tool's quantize_nodes did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.flow.inline_functions import awaited
from toolkit.passes.optimize.quantization.quantized_forms import FORMS, Form, form_of
from toolkit.passes.optimize.quantization.weights import error_of
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs

_QUINT8, _QINT32 = dtypes.from_name("quint8"), dtypes.from_name("qint32")
_FIRST: dict[str, Any] = {"T": _QUINT8, "mode": "MIN_FIRST"}
#: operations whose 8-bit numbers keep their range and their order: clamped before or after, they are the same
_KEEPS_RANGE = frozenset({"Relu", "Relu6", "MaxPool", "Reshape"})
#: the upper end of a range whose ends are both 0; the root of the least float32, nothing beside any other
_LEAST_MAX = 2.0**-63
#: over how many of them a range is handed on to the operation that can use it; networks have three
_MOST_MOVED = 16


class _Eight(NamedTuple):
    """A tensor in 8 bits with its range.

    Attributes:
        may_be_empty: whether the range may be from 0 to 0, where all numbers are 0: sums and products refuse that.
    """

    value: Output
    low: Output
    high: Output
    may_be_empty: bool = False


@dataclass(frozen=True)
class QuantizeNodes(Optimization):
    """Compute in 8 bits what TensorFlow has 8-bit kernels for: convolutions, products, sums, pools, activations.

    Numbers become steps of a range (MIN_FIRST: 0 is exact). A float tensor's range is measured in each step; sums of 32
    bits are brought to 8 by the range that they use, or by the fallback range; FakeQuant nodes say theirs. Between
    8-bit operations nothing becomes float again. Constants are stored in 8 bits. A node keeps its name, as the
    Dequantize behind its 8-bit form, which is called NAME/eightbit.

    The report has `quantized`, nodes by op, `errors` of constants as `quantize_weights` tells them, and `inputs`: the
    placeholders that take quint8 now. How far results are off in the end says `optimize --verify`.

    Attributes:
        input_min, input_max: the range of all placeholders of float32, which then take numbers of 8 bits; both or none.
        fallback_min, fallback_max: the range of all sums of 32 bits, instead of measuring them; 0 lies in it.
        ignore_op: ops that stay as they are.
    """

    name: ClassVar[str] = "quantize_nodes"

    input_min: float | None = None
    input_max: float | None = None
    fallback_min: float | None = None
    fallback_max: float | None = None
    ignore_op: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.input_min is None) is not (self.input_max is None):
            raise UsageError("input_min and input_max are given together, or none of them")
        for what, low, high in (("input", self.input_min, self.input_max), ("fallback", *(self.fallback or (0, 1)))):
            if low is not None and high is not None and not low < high:
                raise UsageError(
                    f"{what}_min is {low:g} and {what}_max is {high:g}; expected a smaller and a larger one"
                )
        if self.fallback is not None and not self.fallback[0] <= 0 <= self.fallback[1]:
            raise UsageError(f"the fallback range {self.fallback[0]:g} to {self.fallback[1]:g} leaves 0 out")
        for op in self.ignore_op:
            if op not in FORMS:
                near = did_you_mean(op, FORMS)
                raise UsageError(f"ignore_op is '{op}', which is never quantized{near}; there are {', '.join(FORMS)}")

    @property
    def fallback(self) -> tuple[float, float] | None:
        """The range of 32-bit sums; an end that is not given is 0, as it was in the tool."""
        if self.fallback_min is None and self.fallback_max is None:
            return None
        return self.fallback_min or 0.0, self.fallback_max or 0.0

    def apply(self, graph: Graph) -> PassResult:
        return _Quantizing(self, Subgraphs(graph, self.kept)).run()


class _Quantizing:
    def __init__(self, options: QuantizeNodes, work: Subgraphs):
        self.options = options
        self.work = work
        #: float tensors that are there in 8 bits, and in 32
        self.eight: dict[Output, _Eight] = {}
        self.wide: dict[Output, tuple[Output, Output, Output]] = {}
        #: tensors of which a FakeQuant says the range, and those that are in 8 bits of this range
        self.ranges: dict[Output, tuple[float, float]] = {}
        self.in_range: dict[Output, tuple[float, float]] = {}
        self.counts: Counter[str] = Counter()
        self.errors: dict[str, Any] = {}
        self.inputs: list[str] = []

    def run(self) -> PassResult:
        work = self.work
        fakes = [node for node in work.graph if node.op in ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxArgs")]
        for node in fakes:
            self._hand_range_on(node)
        for node in work.graph.topological_order():
            if work.is_fed(node) and not (node.op == "Placeholder" and self.options.input_min is not None):
                continue
            if node.op == "Placeholder":
                self._placeholder(node)
            elif node.op == "Dequantize":
                self._known(node)
            elif node in fakes:
                self._fake(node)
            elif node.op not in self.options.ignore_op and node.op in FORMS:
                form = form_of(work, node)
                if form is not None:
                    self._quantize(node, form)
        return work.result({"quantized": dict(self.counts), "errors": self.errors, "inputs": self.inputs})

    # -- where 8-bit numbers come from -------------------------------------------------------------------

    def _placeholder(self, node: Node) -> None:
        options = self.options
        if options.input_min is None or options.input_max is None or node.attr("dtype") is not dtypes.float32:
            return
        low, high = (
            self._constant(f"{node.name}_eightbit/{what}", value, node.output())
            for what, value in (("min", options.input_min), ("max", options.input_max))
        )
        takers = self.work.users(node)
        node.attrs["dtype"] = _QUINT8
        node.invalidate_types()
        back = self.work.add(
            "Dequantize",
            f"{node.name}_eightbit/dequantize",
            [node.output(), low, high],
            attrs=_FIRST,
            device=node.device,
        )
        for taker in takers:
            inputs = [back.output() if source == node.output() else source for source in taker.inputs]
            self.work.set_inputs(taker, inputs)
        self.eight[back.output()] = _Eight(node.output(), low, high)
        self.inputs.append(node.name)

    def _known(self, node: Node) -> None:
        """What comes out of 8 bits is there in 8 bits: weights that were stored so."""
        plain = node.attr("axis") == -1 and not node.attr("narrow_range") and node.attr("T") is _QUINT8
        if plain and node.text("mode") == "MIN_FIRST" and node.output_types[0] is dtypes.float32:
            low, high = (self.work.array(source) for source in node.inputs[1:])
            is_there = low is not None and high is not None and (low < high).all()
            self.eight[node.output()] = _Eight(*node.inputs, may_be_empty=not is_there)

    def _fake(self, node: Node) -> None:
        """A FakeQuant: its range is the tensor's, and what it hands on has 8 bits already."""
        found = self._range_of(node)
        source = node.inputs[0]
        if found is None:
            return
        eight = self.eight.get(source)
        if eight is None or self.in_range.get(source) != found:
            low, high = (
                self._constant(f"{node.name}_eightbit/{what}", value, source)
                for what, value in zip(("min", "max"), found, strict=True)
            )
            if source in self.wide:
                taken, attrs = [*self.wide[source], low, high], {"Tinput": _QINT32, "out_type": _QUINT8}
                made = self._add("Requantize", f"{node.name}_eightbit/requantize", taken, attrs, node)
            else:
                made = self._add("QuantizeV2", f"{node.name}_eightbit/quantize", [source, low, high], _FIRST, node)
            eight = _outputs(made)
        self.counts[node.op] += 1
        self._replace(node, eight)

    def _range_of(self, node: Node) -> tuple[float, float] | None:
        """The range of a FakeQuant of 8 bits, with 0 in it; None where it is not known."""
        if node.attr("num_bits") != 8 or node.attr("narrow_range"):
            return None
        if node.op == "FakeQuantWithMinMaxArgs":
            low, high = node.attr("min"), node.attr("max")
        else:
            ends = [self.work.array(source) for source in node.inputs[1:]]
            if any(end is None or end.size != 1 for end in ends):
                return None
            low, high = (float(end.reshape(())) for end in ends)
        low, high = min(low, 0.0), max(high, 0.0)
        return (low, high) if low < high else None

    def _hand_range_on(self, node: Node) -> None:
        """Give the range of a FakeQuant to the operation before it whose sums it can bring to 8 bits."""
        found = self._range_of(node)
        source = node.inputs[0]
        for _ in range(_MOST_MOVED):
            if found is None or self.work.is_fed(source.node) or not self.work.is_inner(source.node):
                return
            self.ranges[source] = found
            if source.node.op not in _KEEPS_RANGE or form_of(self.work, source.node) is None:
                return
            source = source.node.inputs[0]

    def _eight_of(self, user: Node, source: Output) -> _Eight:
        """A float tensor in 8 bits, made where it is not there."""
        import numpy as np

        if source in self.eight:
            return self.eight[source]
        array = self.work.array(source)
        name = f"{user.name}_eightbit/{source.node.name}" + (f"_{source.index}" if source.index else "")
        is_stored = array is not None and array.size and np.isfinite(array).all()
        made = self._stored(name, source, array) if is_stored else self._measured(name, source)
        self.eight[source] = made
        return made

    def _stored(self, name: str, source: Output, array: Any) -> _Eight:
        """A constant in 8 bits, by the numbers that QuantizeV2 would make of it."""
        import numpy as np

        from toolkit.kernels.cpu.quantized.quantize import as_floats, min_first, range_around

        low, high = range_around(array.min(), array.max(), np.float32(0.01))  # as QuantizeV2 does unless told otherwise
        stored = np.clip(min_first(array, low, high, _QUINT8.numpy), 0, 255).astype(_QUINT8.numpy)
        self.errors[source.node.name] = error_of(array, as_floats(stored, low, high))
        value = self._constant(f"{name}/quantized", stored, source, _QUINT8)
        return _Eight(value, self._constant(f"{name}/min", low, source), self._constant(f"{name}/max", high, source))

    def _measured(self, name: str, source: Output) -> _Eight:
        """A tensor quantized by the least and the largest of its numbers."""
        import numpy as np

        dims = self._constant(f"{name}/reshape_dims", np.array([-1], np.int32), source)
        axis = self._constant(f"{name}/reduction_dims", np.array([0], np.int32), source)
        like = source.node
        flat = self._add(
            "Reshape", f"{name}/reshape", [source, dims], {"T": dtypes.float32, "Tshape": dtypes.int32}, like
        )
        ends = [
            self._add(
                op, f"{name}/{op.lower()}", [flat.output(), axis], {"T": dtypes.float32, "Tidx": dtypes.int32}, like
            )
            for op in ("Min", "Max")
        ]
        inputs = [source, *(end.output() for end in ends)]
        return _outputs(self._add("QuantizeV2", f"{name}/quantize", inputs, _FIRST, like))

    # -- operations --------------------------------------------------------------------------------------

    def _quantize(self, node: Node, form: Form) -> None:
        count = len(node.inputs)
        plain = {index % count for index in form.plain}
        taken = {index: self._eight_of(node, source) for index, source in enumerate(node.inputs) if index not in plain}
        if form.needs_range:
            taken = {index: self._not_empty(node, index, each) for index, each in taken.items()}
        inputs = [taken[index].value if index in taken else source for index, source in enumerate(node.inputs)]
        if form.axis_first:
            inputs = [inputs[-1], *inputs[:-1]]
        if form.separate:
            inputs += [each.low for each in taken.values()] + [each.high for each in taken.values()]
        else:
            inputs += [end for each in taken.values() for end in (each.low, each.high)]
        given = plain_attrs(node)
        attrs: dict[str, Any] = {key: given[key] for key in form.copied if key in given} | form.types
        made = self._add(form.op, f"{node.name}/eightbit", inputs, attrs, node, node.control_inputs)
        self.counts[node.op] += 1
        output = node.output()
        if form.wide:
            self.wide[output] = (made.output(0), made.output(1), made.output(2))
            if output in self.ranges:
                self.in_range[output] = self.ranges[output]
            fixed = self.ranges.get(output) or self.options.fallback
            made = self._narrow(node, made, fixed)
            eight = _outputs(made, may_be_empty=fixed is None)
        else:
            eight = _outputs(made, may_be_empty=any(each.may_be_empty for each in taken.values()))
            if node.op in _KEEPS_RANGE and node.inputs[0] in self.in_range:
                self.in_range[output] = self.in_range[node.inputs[0]]
        self._replace(node, eight)

    def _not_empty(self, node: Node, index: int, eight: _Eight) -> _Eight:
        """The range of numbers that may all be 0, made one that is there: too little for any other range to change."""
        if not eight.may_be_empty:
            return eight
        least = self._constant(f"{node.name}_eightbit/least_max_{index}", _LEAST_MAX, eight.high)
        high = self._add(
            "Maximum", f"{node.name}_eightbit/max_{index}", [eight.high, least], {"T": dtypes.float32}, node
        )
        return eight._replace(high=high.output(), may_be_empty=False)

    def _narrow(self, node: Node, made: Node, fixed: tuple[float, float] | None) -> Node:
        """32-bit sums in 8 bits, in a range that is given or that they use."""
        wide = [made.output(index) for index in range(3)]
        if fixed is None:
            used = self._add("RequantizationRange", f"{made.name}/requant_range", wide, {"Tinput": _QINT32}, made)
            ends = [used.output(0), used.output(1)]
        else:
            ends = [
                self._constant(f"{made.name}/fallback_{what}", value, node.output())
                for what, value in zip(("min", "max"), fixed, strict=True)
            ]
        attrs = {"Tinput": _QINT32, "out_type": _QUINT8}
        return self._add("Requantize", f"{made.name}/requantize", [*wide, *ends], attrs, made)

    def _replace(self, node: Node, eight: _Eight) -> None:
        """Have a node make floats again of what is computed in 8 bits."""
        self.work.make(node, "Dequantize", eight[:3], _FIRST)
        self.work.set_controls(node, ())
        self.eight[node.output()] = eight

    # -- making ------------------------------------------------------------------------------------------

    def _add(
        self, op: str, name: str, inputs: list[Output], attrs: dict[str, Any], like: Node, waits: Iterable[Node] = ()
    ) -> Node:
        return self.work.add(op, name, inputs, attrs=attrs, device=like.device, control_inputs=waits)

    def _constant(self, name: str, value: Any, like: Output, dtype: Any = None) -> Output:
        """A constant on the device, in the loop and in the branch of a tensor."""
        import numpy as np

        array = np.float32(value) if isinstance(value, float) else value
        node = like.node
        const = self.work.add_constant(name, array, [node] if node.op == "Const" else [], dtype)
        const.device = node.device
        if node.op != "Const" and not self.work.is_plain(node):
            self.work.wait(const, [awaited(self.work, like)])
        return const.output()


def _outputs(node: Node, may_be_empty: bool = False) -> _Eight:
    return _Eight(node.output(0), node.output(1), node.output(2), may_be_empty)
