"""The elementwise ops, a row each: by which functions NumPy, Python and oneDNN compute them, and what holds of them.

The writers of machine code, with the types and the instructions that each takes, are the kernels' own
(`native.operations.OPERATORS`), by the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, UnaryFunction


@dataclass(frozen=True, slots=True)
class ElementwiseOpDef:
    """What is known of an op.

    Attributes:
        op: the graph's name of it.
        numpy: the one NumPy function that its kernel calls, bit by bit; "" where it does more.
        kinds: the kinds of numpy's types for which that holds.
        zero: the function takes a zero behind the operand.
        python: the same of single numbers, as an expression with braces for the operands.
        post_ops: the op of one operand as post-ops; of a gradient (y, dy) what they make of y before it is multiplied
            by dy.
        takes_value: of a gradient: it is multiplied by y as well.
        binary: the op of two operands as a post-op.
        commutative: the operands of that can be exchanged.
        hides_nan: oneDNN computes it without heed to NaN (relu(NaN) is 0): not for programs that train, which must
            notice one.
        gradient: it takes a gradient with what belongs to it, of one shape.
        same_shapes: all operands have the output's shape.
        single: by itself it is as fast in NumPy, or as a primitive, as in a compiled loop.
        one_thread: in NumPy that is so of small tensors alone, for it computes them by one thread.
    """

    op: str
    numpy: str = ""
    kinds: str = ""
    zero: bool = False
    python: str = ""
    post_ops: tuple[Apply, ...] = ()
    takes_value: bool = False
    binary: BinaryFunction | None = None
    commutative: bool = False
    hides_nan: bool = False
    gradient: bool = False
    same_shapes: bool = False
    single: bool = False
    one_thread: bool = False


_FLOATS, _NUMBERS, _BOOL = "f", "fiu", "b"
_ADD, _SUB, _MUL, _DIV = BinaryFunction.ADD, BinaryFunction.SUB, BinaryFunction.MUL, BinaryFunction.DIV
_E, _F = ElementwiseOpDef, UnaryFunction

_ROWS: tuple[ElementwiseOpDef, ...] = (
    # arithmetic
    _E("Add", "add", _NUMBERS, python="{} + {}", binary=_ADD, commutative=True, single=True),
    _E("AddV2", "add", _NUMBERS, python="{} + {}", binary=_ADD, commutative=True, single=True),
    _E("AddN", same_shapes=True),
    _E("BiasAdd", binary=_ADD, commutative=True, single=True),
    _E("BiasAddV1", binary=_ADD, commutative=True),
    _E("Sub", "subtract", _NUMBERS, python="{} - {}", binary=_SUB, single=True),
    _E("Mul", "multiply", _NUMBERS, python="{} * {}", binary=_MUL, commutative=True, single=True),
    _E("RealDiv", "divide", _FLOATS, python="{} / {}", binary=_DIV, single=True),
    _E("DivNoNan"), _E("MulNoNan"), _E("FloorDiv"), _E("FloorMod"), _E("Pow"), _E("SquaredDifference"),
    _E("Neg", "negative", _NUMBERS, python="-{}", post_ops=(Apply(_F.LINEAR, -1.0, 0.0),), single=True),
    _E("Square", "square", _NUMBERS, python="{0} * {0}", post_ops=(Apply(_F.SQUARE),), single=True),
    _E("Abs", "absolute", _NUMBERS, post_ops=(Apply(_F.ABS),), single=True),
    _E("Sign"), _E("Reciprocal"), _E("Inv"), _E("Floor"), _E("Ceil"), _E("Rint"), _E("Round"),
    _E("Sqrt", "sqrt", _FLOATS, post_ops=(Apply(_F.SQRT),), single=True),
    _E("Rsqrt", post_ops=(Apply(_F.POW, 1.0, -0.5),)),
    # primitives get these wrong where there is NaN, so that NumPy has them
    _E("Maximum", "maximum", _NUMBERS, single=True, one_thread=True),
    _E("Minimum", "minimum", _NUMBERS, single=True, one_thread=True),
    # functions; oneDNN's exp(NaN) is infinite
    _E("Exp", "exp", _FLOATS, single=True, one_thread=True),
    _E("Expm1"), _E("Log"), _E("Log1p"), _E("Erf"),
    _E("Sigmoid", post_ops=(Apply(_F.LOGISTIC),)),
    _E("Tanh", "tanh", _FLOATS, post_ops=(Apply(_F.TANH),)),
    _E("Softplus", "logaddexp", _FLOATS, zero=True, post_ops=(Apply(_F.SOFT_RELU, 1.0),)),
    # activations
    _E("Relu", "maximum", _FLOATS, zero=True, post_ops=(Apply(_F.RELU),), hides_nan=True, single=True, one_thread=True),
    _E("Relu6", post_ops=(Apply(_F.CLIP_V2, 0.0, 6.0),), hides_nan=True),
    _E("LeakyRelu"), _E("Selu"), _E("Softsign"),
    _E("Elu", post_ops=(Apply(_F.ELU, 1.0),)),
    # gradients: (dy, x) of activations, (y, dy) of functions
    _E("ReluGrad", gradient=True, same_shapes=True), _E("Relu6Grad", gradient=True, same_shapes=True),
    _E("LeakyReluGrad", gradient=True, same_shapes=True), _E("EluGrad", gradient=True, same_shapes=True),
    _E("SeluGrad", gradient=True, same_shapes=True), _E("SoftplusGrad", gradient=True, same_shapes=True),
    # y (1 - y) dy, and (1 - y^2) dy
    _E("SigmoidGrad", post_ops=(Apply(_F.LINEAR, -1.0, 1.0),), takes_value=True, gradient=True, same_shapes=True),
    _E("TanhGrad", post_ops=(Apply(_F.SQUARE), Apply(_F.LINEAR, -1.0, 1.0)), gradient=True, same_shapes=True),
    _E("SqrtGrad", gradient=True, same_shapes=True), _E("RsqrtGrad", gradient=True, same_shapes=True),
    _E("ReciprocalGrad", gradient=True, same_shapes=True), _E("InvGrad", gradient=True, same_shapes=True),
    # comparisons, choices, types
    _E("Less", "less", _NUMBERS, python="{} < {}", single=True),
    _E("LessEqual", "less_equal", _NUMBERS, python="{} <= {}", single=True),
    _E("Greater", "greater", _NUMBERS, python="{} > {}", single=True),
    _E("GreaterEqual", "greater_equal", _NUMBERS, python="{} >= {}", single=True),
    _E("Equal"), _E("NotEqual"),
    _E("LogicalAnd", "logical_and", _BOOL, python="{} & {}", single=True),
    _E("LogicalOr", "logical_or", _BOOL, python="{} | {}", single=True),
    _E("LogicalNot", "logical_not", _BOOL, python="~{}", single=True),
    _E("IsNan"), _E("IsFinite"), _E("IsInf"),
    _E("Select", same_shapes=True), _E("SelectV2"), _E("Cast"), _E("Identity"),
)  # fmt: skip

#: the rows by op
ELEMENTWISE: Mapping[str, ElementwiseOpDef] = MappingProxyType({row.op: row for row in _ROWS})
if len(ELEMENTWISE) != len(_ROWS):
    raise ValueError("two rows are of one op")
