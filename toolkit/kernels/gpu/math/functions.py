"""Elementwise functions of one, two or many tensors, and gradients of activations."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import check_broadcast, require, shape_text
from toolkit.kernels.cpu.math.special_gamma import common_shape
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches, number_kernel
from toolkit.kernels.registry import Compute, KernelNode

UNARY = (
    "Neg", "Abs", "Square", "Invert", "LogicalNot", "Sign", "IsNan", "IsInf", "IsFinite", "Conj", "Sqrt", "Rsqrt",
    "Exp", "Expm1", "Log", "Log1p", "Reciprocal", "Inv", "Sigmoid", "Tanh", "Sin", "Cos", "Tan", "Asin", "Acos",
    "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Floor", "Ceil", "Rint", "Round",
    "PopulationCount", "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Erf", "Erfc",
    "Erfinv", "Ndtri", "Lgamma", "Digamma", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1",
    "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Expint", "FresnelCos",
    "FresnelSin", "Spence",
)  # fmt: skip
BINARY = (
    "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "TruncateDiv", "FloorDiv", "Mod",
    "TruncateMod", "FloorMod", "Maximum", "Minimum", "Pow", "SquaredDifference", "Atan2", "NextAfter", "Xdivy",
    "Xlogy", "Xlog1py", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "Complex", "Igamma",
    "Igammac", "IgammaGradA", "RandomGammaGrad", "Zeta", "Polygamma",
)  # fmt: skip
#: of two tensors of one shape: functions by their value y and dy, activations by dy and x or y
VALUE_GRADIENTS = ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")
GRADIENTS = (
    "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad",
)  # fmt: skip
#: tensors that one kernel adds: each is a load of 16 bytes that waits in four registers
_MOST_ADDED = 8


@number_kernel(*UNARY)
def unary(op: KernelNode) -> Compute:
    run = ElementwiseLaunches.of(op).run

    def compute(x: GpuArray) -> GpuArray:
        return run(x.shape, x)

    return compute


@number_kernel("Real", "Imag", "ComplexAbs", "Angle")
def complex_part(op: KernelNode) -> Compute:
    """Parts of complex numbers, in the type `Tout`."""
    given, made = op.input_types[0], op.output_types[0]
    require(given.size == 2 * made.size, f"Signature mismatch: {op.op} of {given} is no {made}")
    return unary(op)


@number_kernel(*BINARY)
def binary(op: KernelNode) -> Compute:
    """Operands broadcast.

    Raises:
        InvalidArgumentError: they do not.
    """
    run = ElementwiseLaunches.of(op).run

    def compute(x: GpuArray, y: GpuArray) -> GpuArray:
        return run(x.shape if x.shape == y.shape else check_broadcast(x, y), x, y)

    return compute


@number_kernel(*VALUE_GRADIENTS)
def value_gradient(op: KernelNode) -> Compute:
    run = ElementwiseLaunches.of(op).run

    def compute(y: GpuArray, dy: GpuArray) -> GpuArray:
        require(
            y.shape == dy.shape,
            f"The gradient has shape {shape_text(dy)} but the value has shape {shape_text(y)}",
        )
        return run(y.shape, y, dy)

    return compute


@number_kernel(*GRADIENTS)
def gradient(op: KernelNode) -> Compute:
    run, name = ElementwiseLaunches.of(op).run, op.name

    def compute(dy: GpuArray, x: GpuArray) -> GpuArray:
        if dy.shape != x.shape:
            raise InvalidArgumentError(
                f"the inputs must have the same shape, not {list(dy.shape)} and {list(x.shape)}", node=name
            )
        return run(x.shape, dy, x)

    return compute


@number_kernel("ClipByValue")
def clip_by_value(op: KernelNode) -> Compute:
    run = ElementwiseLaunches.of(op).run

    def compute(x: GpuArray, low: GpuArray, high: GpuArray) -> GpuArray:
        for bound, name in ((low, "clip_value_min"), (high, "clip_value_max")):
            require(
                bound.ndim == 0 or bound.shape == x.shape,
                f"{name} must be a scalar or of the shape {shape_text(x)} of the input, got {shape_text(bound)}",
            )
        return run(x.shape, x, low, high)

    return compute


@number_kernel("Betainc")
def betainc(op: KernelNode) -> Compute:
    """a, b and x have one shape, or are scalars."""
    run = ElementwiseLaunches.of(op).run

    def compute(a: GpuArray, b: GpuArray, x: GpuArray) -> GpuArray:
        return run(common_shape(a, b, x), a, b, x)

    return compute


@number_kernel("AddN")
def add_n(op: KernelNode) -> Compute:
    """Sums of so many tensors at a time; between them float16 and bfloat16 stay floats."""
    launches = ElementwiseLaunches.of(op)
    device, dtype = launches.device, op.output_types[0].numpy
    wide = "float32" if dtype.name in ("float16", "bfloat16") else dtype.name

    def part(types: list[str], target: str) -> ElementwiseLaunches:
        """Of tensors of these types, computed in the wide one."""
        count = len(types)
        steps = [NestStep("Cast", (i,), wide) for i in range(count)]
        steps.append(NestStep("AddN", tuple(range(count, 2 * count)), wide))
        return ElementwiseLaunches(device, [*steps, NestStep("Cast", (2 * count,), target)], dtype_of(target))

    def dtype_of(name: str) -> object:
        return dtype if name == dtype.name else name

    def compute(*values: GpuArray) -> GpuArray:
        first = values[0]
        for i, value in enumerate(values):
            if value.shape != first.shape:
                raise InvalidArgumentError(
                    f"Inputs to operation {op.name} of type {op.op} must have the same size and shape. Input 0: "
                    f"{shape_text(first)} != input {i}: {shape_text(value)}"
                )
        if len(values) == 1:
            return first
        if len(values) <= _MOST_ADDED:
            return launches.run(first.shape, *values)
        total, rest = first, values[1:]
        while rest:
            some, rest = rest[: _MOST_ADDED - 1], rest[_MOST_ADDED - 1 :]
            target = wide if rest else dtype.name
            total = part([total.dtype.name, *(each.dtype.name for each in some)], target).run(first.shape, total, *some)
        return total

    return compute
