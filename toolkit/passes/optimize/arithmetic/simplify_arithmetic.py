"""Arithmetic with fewer or cheaper operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.arithmetic.constants import is_negative_zero, is_number, keeps_shape, number_of, same_shape
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure


@dataclass(frozen=True)
class SimplifyArithmetic(Optimization):
    """Drop operations that change nothing, cancel those that undo each other, take cheaper ones.

    x*1, x/1, x-0, x**1, --x, not not x, x or x become x; x + -y becomes x - y, 0 - x becomes -x, x*x becomes
    square(x), x / c becomes x * (1/c), relu(relu(x)) becomes relu(x), not (a == b) becomes a != b, and so on. All of it
    is exact, for NaN, infinities and signed zeros too: x + 0.0 is not x where x is -0.0, so it stays (x + -0.0 goes),
    and x * 0 becomes 0 for whole numbers only.

    Attributes:
        approximate: also what differs in the last bits: x / c as x * (1/c) for any c, pow(x, 2) as a square,
            a / sqrt(b) as a * rsqrt(b).
        signed_zeros: whether -0.0 is another number than 0.0; without, x + 0.0 becomes x too.
    """

    name: ClassVar[str] = "simplify_arithmetic"

    approximate: bool = False
    signed_zeros: bool = True

    def apply(self, graph: Graph) -> PassResult:
        """The report has `simplified`, how many nodes were, and `rules`, how often each rule."""
        work = Rewriting(graph, self.kept)
        counts: dict[str, int] = {}
        for original in graph.topological_order():
            rules = _RULES.get(original.op)
            if rules is None:
                continue
            node = work.graph.node(original.name)
            if work.is_fed(node) or not is_pure(node) or node.output_types[0].is_quantized:
                continue
            for rule in rules:
                if rule(_Place(work, node, self)):
                    name = rule.__name__.strip("_")
                    counts[name] = counts.get(name, 0) + 1
                    break
        return work.result({"simplified": sum(counts.values()), "rules": counts})


class _Place:
    """A node that rules look at."""

    def __init__(self, work: Rewriting, node: Node, options: SimplifyArithmetic):
        self.work, self.node, self.options = work, node, options
        self.inputs = node.inputs
        self.dtype = node.output_types[0].base
        self.is_whole = self.dtype.kind in "iu"
        self.is_float = self.dtype.kind in "fc"

    def number(self, position: int) -> Any:
        return number_of(self.work, self.inputs[position])

    def keep(self, position: int) -> bool:
        """The node is one of its inputs, where shapes allow."""
        if len(self.inputs) == 2 and not keeps_shape(
            self.work, self.node, self.inputs[position], self.inputs[1 - position]
        ):
            return False
        self.work.hand_on(self.node, self.inputs[position])
        return True

    def become(self, source: Output) -> bool:
        """The node is a tensor that something before it is made of."""
        if source.node.op in ("Const",) or source.dtype.is_ref:
            return False
        self.work.hand_on(self.node, source)
        return True

    def turn(self, op: str, *inputs: Output, **attrs: Any) -> bool:
        """The node does something else to some of what it is made of."""
        if any(source.dtype.is_ref for source in inputs):
            return False
        waits = dict.fromkeys(self.node.control_inputs)
        gone = {source.node for source in self.inputs} - {source.node for source in inputs}
        for each in sorted(gone, key=lambda one: one.id):
            if each.op == "Const":
                waits.update(dict.fromkeys(each.control_inputs))
            elif not self.work.is_idle_wait(each, self.node) and not self._needs_only(each, inputs):
                waits[each] = None
        self.work.turn(self.node, op, inputs, attrs or {"T": self.dtype}, waits)
        return True

    def _needs_only(self, node: Node, inputs: tuple[Output, ...]) -> bool:
        """Whether a node that is passed over runs whenever these inputs are there, and waits for nothing else."""
        return not node.control_inputs and all(source in inputs for source in node.inputs)

    def made_by(self, position: int, *ops: str) -> Node | None:
        """The node that makes an input, if it is of one of these ops and nobody feeds it."""
        node = self.inputs[position].node
        if (
            node.op in ops
            and not self.work.is_fed(node)
            and not node.control_inputs
            and self.inputs[position].index == 0
        ):
            return node
        return None

    def constant(self, number: Any, like: Output) -> Output:
        """A new scalar constant where `like`, a constant, was."""
        import numpy as np

        from toolkit.formats.arrays.tensor import from_array

        dtype = like.dtype.base
        proto = from_array(np.asarray(number, dtype.numpy), dtype)
        made = self.work.add(
            "Const", f"{self.node.name}/constant", control_inputs=like.node.control_inputs,
            attrs={"dtype": dtype, "value": proto}, device=like.node.device,
        )  # fmt: skip
        return made.output()


_Rule = Callable[[_Place], bool]


def _times_one(at: _Place) -> bool:
    return any(is_number(at.work, at.inputs[i], 1) and at.keep(1 - i) for i in (0, 1))


def _by_one(at: _Place) -> bool:
    return is_number(at.work, at.inputs[1], 1) and at.keep(0)


def _whole_by_one(at: _Place) -> bool:
    return at.is_whole and _by_one(at)


def _times_zero(at: _Place) -> bool:
    if not at.is_whole:
        return False
    for i in (0, 1):
        if is_number(at.work, at.inputs[i], 0) and keeps_shape(at.work, at.node, at.inputs[1 - i], at.inputs[i]):
            return at.turn("ZerosLike", at.inputs[1 - i])
    return False


def _plus_zero(at: _Place) -> bool:
    if at.dtype.kind == "s":
        return False
    for i in (0, 1):
        number = at.number(i)
        if number is not None and number == 0 and (at.is_whole or _vanishes(at, number, negative=True)):
            return at.keep(1 - i)
    return False


def _no_bias(at: _Place) -> bool:
    """The bias is zero; what it is added to has the shape of the sum."""
    number = at.number(1)
    if number is None or number != 0 or not (at.is_whole or _vanishes(at, number, negative=True)):
        return False
    at.work.hand_on(at.node, at.inputs[0])
    return True


def _minus_zero(at: _Place) -> bool:
    number = at.number(1)
    return number is not None and number == 0 and (at.is_whole or _vanishes(at, number, negative=False)) and at.keep(0)


def _vanishes(at: _Place, number: Any, *, negative: bool) -> bool:
    """Whether adding a floating-point zero changes nothing: -0.0 does not, 0.0 makes 0.0 of -0.0."""
    if not at.options.signed_zeros:
        return True
    return at.dtype.kind == "f" and is_negative_zero(number) is negative


def _zero_minus(at: _Place) -> bool:
    number = at.number(0)
    if number is None or number != 0 or at.dtype.kind == "u":
        return False
    if not (at.is_whole or _vanishes(at, number, negative=True)):
        return False
    return keeps_shape(at.work, at.node, at.inputs[1], at.inputs[0]) and at.turn("Neg", at.inputs[1])


def _minus_itself(at: _Place) -> bool:
    return at.is_whole and at.inputs[0] == at.inputs[1] and at.turn("ZerosLike", at.inputs[0])


def _plus_negative(at: _Place) -> bool:
    if at.dtype.kind not in "ifc":
        return False
    for i in (1, 0):
        negative = at.made_by(i, "Neg")
        if negative is not None:
            return at.turn("Sub", at.inputs[1 - i], negative.inputs[0])
    return False


def _minus_negative(at: _Place) -> bool:
    negative = at.made_by(1, "Neg")
    return negative is not None and at.turn("AddV2", at.inputs[0], negative.inputs[0])


def _both_negative(at: _Place) -> bool:
    first, second = at.made_by(0, "Neg"), at.made_by(1, "Neg")
    return first is not None and second is not None and at.turn(at.node.op, first.inputs[0], second.inputs[0])


def _undone(at: _Place) -> bool:
    inner = at.made_by(0, at.node.op)
    return inner is not None and at.become(inner.inputs[0])


def _done_already(at: _Place) -> bool:
    inner = at.made_by(0, *_DONE[at.node.op])
    return inner is not None and at.become(inner.output())


def _sign_lost(at: _Place) -> bool:
    if at.dtype.kind == "c" and at.node.op == "Abs":
        return False
    inner = at.made_by(0, "Neg", *(("Abs",) if at.dtype.kind != "c" else ()))
    return inner is not None and at.turn(at.node.op, inner.inputs[0])


def _itself(at: _Place) -> bool:
    return at.inputs[0] == at.inputs[1] and at.become(at.inputs[0])


def _squared(at: _Place) -> bool:
    return at.inputs[0] == at.inputs[1] and at.dtype in _SQUARES and at.turn("Square", at.inputs[0])


def _by_constant(at: _Place) -> bool:
    number = at.number(1)
    if number is None or at.dtype not in (dtypes.float32, dtypes.float64) or number == 0 or not math.isfinite(number):
        return False
    mantissa, exponent = math.frexp(float(number))
    info = _LEAST_EXPONENT[at.dtype.name]
    if abs(exponent) >= info or not (abs(mantissa) == 0.5 or at.options.approximate):
        return False
    if not keeps_shape(at.work, at.node, at.inputs[0], at.inputs[1]):
        return False
    return at.turn("Mul", at.inputs[0], at.constant(1 / number, at.inputs[1]))


def _by_root(at: _Place) -> bool:
    root = at.made_by(1, "Sqrt")
    if root is None or not at.options.approximate or not at.work.is_only_taken_by(root.output(), at.node):
        return False
    at.work.turn(root, "Rsqrt", root.inputs, {"T": at.dtype})
    return at.turn("Mul", at.inputs[0], root.output())


def _reciprocal_of_root(at: _Place) -> bool:
    root = at.made_by(0, "Sqrt")
    return root is not None and at.options.approximate and at.turn("Rsqrt", root.inputs[0])


def _power(at: _Place) -> bool:
    number = at.number(1)
    if number is None or not keeps_shape(at.work, at.node, at.inputs[0], at.inputs[1]):
        return False
    if number == 1:
        return at.keep(0)
    if number == 0 and at.dtype.kind == "f":
        return at.turn("OnesLike", at.inputs[0])
    if number == 2 and at.dtype in _SQUARES and (at.is_whole or at.options.approximate):
        return at.turn("Square", at.inputs[0])
    return (
        bool(number == -1) and at.dtype.kind == "f" and at.options.approximate and at.turn("Reciprocal", at.inputs[0])
    )


def _not_compared(at: _Place) -> bool:
    inner = at.made_by(0, *_OPPOSITE)
    if inner is None or not at.work.is_only_taken_by(inner.output(), at.node):
        return False
    op, any_type = _OPPOSITE[inner.op]
    dtype = inner.inputs[0].dtype.base
    if not (any_type or dtype.kind in "iu"):
        return False
    kept = {key: inner.attrs.proto(key) for key in ("incompatible_shape_error",) if key in inner.attrs}
    return at.turn(op, *inner.inputs, T=dtype, **kept)


def _chosen(at: _Place) -> bool:
    number = at.number(0)
    if number is None:
        return False
    source = at.inputs[1] if number else at.inputs[2]
    if not same_shape(at.work.shape(source), at.work.shape(at.node.output())):
        return False
    at.work.hand_on(at.node, source)
    return True


def _either_constant(at: _Place) -> bool:
    """x and True, x or False are x."""
    neutral = at.node.op == "LogicalAnd"
    for i in (0, 1):
        number = at.number(i)
        if number is not None and bool(number) is neutral and at.keep(1 - i):
            return True
    return False


_SQUARES = frozenset({
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64,
})  # fmt: skip
#: exponents from which on 1/c may be subnormal or infinite
_LEAST_EXPONENT = {"float32": 120, "float64": 1000}
#: comparison -> its opposite, and whether that holds for floating-point numbers (NaN) too
_OPPOSITE = {
    "Equal": ("NotEqual", True), "NotEqual": ("Equal", True), "Less": ("GreaterEqual", False),
    "LessEqual": ("Greater", False), "Greater": ("LessEqual", False), "GreaterEqual": ("Less", False),
}  # fmt: skip
#: op -> ops behind which it changes nothing
_DONE = {
    "Relu": ("Relu", "Relu6"), "Relu6": ("Relu6",), "Abs": ("Abs", "Square", "Exp"),
    "Floor": ("Floor", "Ceil", "Rint", "Round"), "Ceil": ("Floor", "Ceil", "Rint", "Round"),
    "Rint": ("Floor", "Ceil", "Rint", "Round"), "Round": ("Floor", "Ceil", "Rint", "Round"),
    "Sign": ("Sign",), "ZerosLike": ("ZerosLike",), "OnesLike": ("OnesLike",),
}  # fmt: skip
_RULES: dict[str, tuple[_Rule, ...]] = {
    "Mul": (_times_one, _times_zero, _both_negative, _squared),
    "BiasAdd": (_no_bias,),
    "Add": (_plus_zero, _plus_negative), "AddV2": (_plus_zero, _plus_negative),
    "Sub": (_minus_zero, _zero_minus, _minus_itself, _minus_negative),
    "RealDiv": (_by_one, _both_negative, _by_constant, _by_root), "Div": (_by_one,), "DivNoNan": (_by_one,),
    "TruncateDiv": (_by_one,), "FloorDiv": (_whole_by_one,),
    "Pow": (_power,), "Neg": (_undone,), "LogicalNot": (_undone, _not_compared), "Invert": (_undone,),
    "Conj": (_undone,),
    "Reciprocal": (_reciprocal_of_root,), "Square": (_sign_lost,), "Cos": (_sign_lost,), "Cosh": (_sign_lost,),
    "Abs": (_done_already, _sign_lost),
    "Maximum": (_itself,), "Minimum": (_itself,), "BitwiseAnd": (_itself,), "BitwiseOr": (_itself,),
    "LogicalAnd": (_itself, _either_constant), "LogicalOr": (_itself, _either_constant),
    "Select": (_chosen,), "SelectV2": (_chosen,),
    **{op: (_done_already,) for op in _DONE if op != "Abs"},
}  # fmt: skip
