"""How far two kernels of one op may be apart: what the op suite allows between ours and TensorFlow's.

Each number may be off by what the last roundings of both come to. Where that does not explain a difference:

- what adds up products is held to the length of its sums and the sizes of its summands (`tolerance.of_sums`);
- anything else to its condition. A good algorithm gives numbers near the exact ones of inputs near those that it was
  given (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 1.5). So the definition is run
  again and again with inputs that are off by a unit in the last place each, by chance, and two kernels may be as far
  apart as `tolerance.LIKELY` times what that does, each. Decompositions and solutions of n rows are as good as if
  their whole matrix had been off by n units of its largest number (chapters 9, 10 and 19).

An op whose own method loses more than that stands in `UNITS`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests import perturbed_kernels, tolerance
from toolkit.errors import OpError

#: the last roundings of a function in float32 or wider: Eigen's and NumPy's are good to a few units
_FUNCTION = 8.0
#: a run more or less changes what is allowed by a tenth
_RUNS = 24

#: op: the inputs in which it is a sum of products, where not in all of its floats
SUMS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        (
            "AddN", "AccumulateNV2", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BiasAddGrad", "Conv", "Conv2D",
            "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2",
            "Cumsum", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
            "DepthwiseConv2dNativeBackpropInput", "Einsum", "FusedPadConv2D", "MatMul", "MirrorPadGrad", "ScatterNd",
            "SegmentSum", "SegmentSumV2", "SparseMatMul", "SparseReduceSum", "SparseReduceSumSparse",
            "SparseSegmentSum", "SparseTensorDenseMatMul", "Sum", "TensorScatterAdd", "TridiagonalMatMul",
            "UnsortedSegmentSum",
        )
    ),
    # which numbers are the largest is settled
    **dict.fromkeys(("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", "Dilation2DBackpropInput",
                     "Dilation2DBackpropFilter"), (2,)),
    "MaxPoolGradWithArgmax": (1,),
    # where pixels go is settled
    "ResizeNearestNeighborGrad": (0,),
}  # fmt: skip
#: sums that are divided by their length: of ones they give 1
MEANS = frozenset(("Mean", "SegmentMean", "SparseSegmentMean"))
#: cumulated products: a relative error for each factor
PRODUCTS = frozenset(("Prod", "Cumprod", "SegmentProd", "SegmentProdV2", "UnsortedSegmentProd"))
MATRICES = perturbed_kernels.BACKWARD_STABLE | {
    "CholeskyGrad", "Lu", "MatrixExponential", "MatrixLogarithm", "SelfAdjointEig",
    *(f"Batch{op}" for op in ("Cholesky", "CholeskyGrad", "Svd", "SelfAdjointEig", "SelfAdjointEigV2")),
    *(f"Batch{op}" for op in ("MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixTriangularSolve",
                              "MatrixSolveLs")),
}  # fmt: skip
#: weighted means whose weights are themselves rounded differences of numbers about 1, so that a weight of 0 may come
#: out as a unit: how many pixels are added, each as large as the largest of input and result
WEIGHED = {"ResizeArea": 35, "ResizeBicubic": 16, "ResizeBicubicGrad": 16}
#: units of the result, or of 1 where that is larger, which an op's own method may lose
UNITS: dict[str, tuple[float, str]] = {
    **dict.fromkeys(("Elu", "Selu"), (1.0, "exp(x) - 1: a rounding of a number of about 1")),
    **dict.fromkeys(
        ("CTCLoss", "CTCLossV2"),
        (80.0, "logarithms, about -20, of probabilities of paths, twice along 8 steps: 20 sqrt(16) units of 1"),
    ),
    **dict.fromkeys(
        ("_FusedConv2D", "_FusedMatMul"),
        (16.0, "oneDNN's gelu and mish of numbers down to -10: these times 1 + erf, 1 + tanh, tanh(log(1 + exp))"),
    ),
    "Erfinv": (2.0, "Eigen's is the quantile of the normal distribution at (x + 1) / 2"),
    **dict.fromkeys(
        ("Igamma", "Igammac"), (100.0, "exp(a log(x) - x - lgamma(a)), whose terms are up to 30 log(30) = 100")
    ),
    **dict.fromkeys(("IgammaGradA", "RandomGammaGrad"), (256.0, "a derivative term by term, of hundreds of terms")),
    "Mfcc": (
        1.0,
        "sums of logarithms, up to 27, in float64: of equal ones nothing is left but a rounding, none of 1's",
    ),
    "Polygamma": (_FUNCTION, "Eigen's factorial is an exponential of a logarithm"),
    "LogSoftmax": (_FUNCTION, "the logarithm of a sum that may be about 1"),
}
#: what computes in float32, whatever the types of its inputs and outputs
IN_FLOAT32 = frozenset(
    (
        "AdjustContrast", "CTCBeamSearchDecoder", "CTCLoss", "CropAndResize", "CropAndResizeGradBoxes",
        "CropAndResizeGradImage", "FusedResizeAndPadConv2D", "ResizeBicubicGrad", "ResizeBilinearGrad",
    )
)  # fmt: skip

Run = Callable[[Sequence[Any]], Sequence[Any]]


def last_roundings(wanted: Any, narrowest: float = 0.0) -> Any:
    """How far two results may be apart that were near the exact one before they were rounded, number by number.

    Args:
        narrowest: the unit of the type that they were computed in, where that has fewer digits.
    """
    info = perturbed_kernels.info(wanted.dtype)
    u, sizes = float(info.eps) / 2, np.abs(np.asarray(wanted).astype(perturbed_kernels.wide(wanted.dtype)))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    # narrow types are computed in float32 and rounded once
    units = u if u > 2 * tolerance.unit() else _FUNCTION * max(u, narrowest)
    # below the smallest number with all of its digits there are fewer, or none where that is taken as zero
    return 2 * units * sizes + 2 * float(info.tiny)


def allowed(op: str, run: Run, inputs: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """How far each output of two kernels may be apart, number by number; 0 for what is no float.

    Args:
        run: the outputs of the op's definition of other inputs.
        inputs: what both kernels were given.
        wanted: the outputs of one of them.
    """
    found = _allowed(op, run, inputs, wanted)
    # what is infinite must be the same
    return [np.nan_to_num(each, nan=0.0, posinf=0.0) for each in found]


def _allowed(op: str, run: Run, inputs: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    narrowest = tolerance.unit() if op in IN_FLOAT32 else 0.0
    ends = [last_roundings(each, narrowest) if perturbed_kernels.is_rounded(each) else 0.0 for each in wanted]
    units = UNITS.get(op, (0.0, ""))[0]
    ends = [
        end + 2 * units * max(_unit(each), narrowest) * np.maximum(np.abs(each).astype(np.float64), 1.0)
        if units and perturbed_kernels.is_rounded(each) else end
        for end, each in zip(ends, wanted, strict=True)
    ]  # fmt: skip
    units_of = [0.0, *(_unit(each) for each in wanted if perturbed_kernels.is_rounded(each))]
    with np.errstate(all="ignore"):
        if op in SUMS or op in MEANS:
            return [ends[0] + 2 * _of_sums(op, run, inputs, wanted[0]), *ends[1:]]
        if op in WEIGHED:
            largest = max(_largest(each) for each in (inputs[0], wanted[0]))
            return [ends[0] + 2 * tolerance.likely(WEIGHED[op]) * largest]
        if op in PRODUCTS:
            factors = max(each.size for each in inputs if perturbed_kernels.is_rounded(each))
            return [ends[0] + 2 * tolerance.likely(factors, wanted[0].dtype) * np.abs(wanted[0]).astype(np.float64)]
        return [
            end + 2 * tolerance.LIKELY * moved if perturbed_kernels.is_rounded(each) else end
            for end, moved, each in zip(ends, _moved(op, run, inputs, max(narrowest, *units_of)), wanted, strict=True)
        ]


def _largest(value: Any) -> float:
    sizes = np.abs(np.asarray(value).astype(np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _unit(value: Any) -> float:
    return float(perturbed_kernels.info(value.dtype).eps) / 2


def _of_sums(op: str, run: Run, inputs: Sequence[Any], wanted: Any) -> Any:
    if not perturbed_kernels.is_rounded(wanted):
        return 0.0
    count = inputs[0].size / max(1, wanted.size) if op == "Mean" else len(inputs[0]) if op in MEANS else None
    return tolerance.of_sums(lambda *given: run(given)[0], inputs, SUMS.get(op), count, wanted.dtype)


def _moved(op: str, run: Run, inputs: Sequence[Any], narrowest: float) -> list[Any]:
    """The root of the mean square that outputs move by when inputs are off, by a unit of the narrowest type."""
    random = np.random.default_rng(0)

    def off(value: Any) -> Any:
        if not perturbed_kernels.is_rounded(value) or not value.size:
            return value
        sizes = np.abs(value)
        if op in MATRICES:
            sizes = value.shape[-1] * sizes.max() if value.ndim else sizes
        noise = perturbed_kernels.noise(random, value)
        return (value + noise * max(_unit(value), narrowest) * sizes).astype(value.dtype)

    plain = run(inputs)
    squares = [0.0] * len(plain)
    for _ in range(_RUNS):
        try:
            moved = run([off(each) for each in inputs])
        except OpError:
            continue  # off by chance, an input may be none that the op takes
        for index, (before, after) in enumerate(zip(plain, moved, strict=True)):
            if perturbed_kernels.is_rounded(before) and before.shape == after.shape:  # which may depend on values
                wide = perturbed_kernels.wide(before.dtype)
                squares[index] = squares[index] + np.square(np.abs(after.astype(wide) - before.astype(wide)))
    return [np.nan_to_num(np.sqrt(each / _RUNS), nan=0.0, posinf=0.0) for each in squares]
