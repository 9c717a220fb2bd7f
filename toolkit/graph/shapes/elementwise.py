"""Shapes of ops that work element by element."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape, broadcast
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function(
    "Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1",
    "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1",
    "Cast", "Ceil", "CheckNumerics", "CheckNumericsV2", "ComplexAbs", "Conj", "Cos", "Cosh",
    "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3", "Dawsn", "DeepCopy", "Digamma", "Elu", "Erf", "Erfc",
    "Erfinv", "Exp", "Expint", "Expm1", "FresnelCos", "FresnelSin", "Floor", "GuaranteeConst", "Imag", "Inv",
    "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri", "Neg",
    "OnesLike", "PopulationCount", "PreventGradient", "Real", "Reciprocal", "Relu", "Relu6", "Rint",
    "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Spence", "Sqrt", "Square",
    "StopGradient", "Tan", "Tanh", "ZerosLike", "_CopyFromGpuToHost", "_CopyFromHostToGpu", "_EagerConst",
    "_UnaryOpsComposition",
)  # fmt: skip
def unchanged(c: ShapeContext) -> list[Shape]:
    """The output has the shape of the first input."""
    return [c.inputs[0]]


@shape_function(
    "Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan", "FloorDiv",
    "FloorMod", "Greater", "GreaterEqual", "Igamma", "IgammaGradA", "Igammac", "LeftShift", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "Polygamma", "Pow",
    "RealDiv", "RightShift", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy",
    "Zeta",
)  # fmt: skip
def binary(c: ShapeContext) -> list[Shape]:
    """Both inputs broadcast together."""
    return [broadcast(c.inputs[0], c.inputs[1])]


@shape_function("Equal", "NotEqual", "ApproximateEqual")
def equality(c: ShapeContext) -> list[Shape]:
    if c.node.op == "ApproximateEqual":
        return [c.inputs[0].merge(c.inputs[1])]
    a, b = c.inputs
    if not c.attr("incompatible_shape_error"):
        # Shapes that do not broadcast give a scalar false, which only the run can tell.
        if a.dims is None or b.dims is None:
            return [UNKNOWN]
        pairs = list(zip(reversed(a.dims), reversed(b.dims), strict=False))
        if any(x != y and None not in (x, y) and 1 not in (x, y) for x, y in pairs):
            return [SCALAR]
        certain = all(1 in (x, y) or (x is not None and x == y) for x, y in pairs)
        return [broadcast(a, b) if certain else UNKNOWN]
    return [broadcast(a, b)]


@shape_function("Betainc")
def betainc(c: ShapeContext) -> list[Shape]:
    # Scalars broadcast against the others, which must agree.
    out: Shape | None = None
    unknown = False
    for shape in c.inputs:
        if shape.dims is None:
            unknown = True
        elif shape.dims:
            out = shape if out is None else out.merge(shape)
    if out is not None:
        return [out]
    return [UNKNOWN if unknown else SCALAR]


@shape_function("ClipByValue")
def clip(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")
def grad_of_unary(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")
def merged_grad(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].merge(c.inputs[1])]


@shape_function("AddN", "AccumulateNV2")
def add_n(c: ShapeContext) -> list[Shape]:
    if c.node.op == "AccumulateNV2":
        return [c.attr("shape")]
    out = c.inputs[-1]
    for shape in reversed(c.inputs[:-1]):
        out = shape.merge(out)
    return [out]


@shape_function("Select")
def select(c: ShapeContext) -> list[Shape]:
    """The old select: one condition per element, per row, or for all."""
    condition = c.inputs[0]
    data = c.inputs[1].merge(c.inputs[2])
    if condition.dims is None or data.dims is None or not condition.dims:
        return [data]
    if len(condition.dims) == 1 and len(data.dims) != 1:
        if not data.dims:
            raise GraphmillError(f"a condition of shape {condition} cannot select between scalars")
        Shape([condition[0]]).merge(data.slice(0, 1))
        return [data]
    return [data.merge(condition)]


@shape_function("SelectV2")
def select_v2(c: ShapeContext) -> list[Shape]:
    condition, then, other = c.inputs
    return [broadcast(condition, broadcast(then, other))]


@shape_function("Bitcast")
def bitcast(c: ShapeContext) -> list[Shape]:
    source, target = c.attr("T").base.size, c.attr("type").base.size
    shape = c.inputs[0]
    if not source or not target or source == target or shape.dims is None:
        return [shape if source == target else UNKNOWN]
    if source > target:
        return [Shape([*shape.dims, source // target])]
    if not shape.dims or shape.dims[-1] not in (None, target // source):
        raise GraphmillError(f"the last size of {shape} must be {target // source} to be cast to {c.attr('type')}")
    return [shape.slice(0, -1)]


@shape_function("QuantizeDownAndShrinkRange")
def shrink_range(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0], SCALAR, SCALAR]
