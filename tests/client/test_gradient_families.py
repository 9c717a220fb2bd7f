"""The gradient of every op that TensorFlow has one for, family by family, against TensorFlow's on the same graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.client.client_programs import tf1_semantics
from tests.client.gradient_oracle import compare, numeric
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.tensor import Tensor

pytestmark = pytest.mark.tensorflow
RNG = np.random.default_rng(7)
X = np.array([[0.3, -0.7, 1.2], [0.9, 0.1, -0.4]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)


@dataclass(frozen=True)
class Case:
    """`build` gets a placeholder for each feed; gradients are taken by those of floating or complex type."""

    build: Callable[..., Any]
    feeds: tuple[Any, ...]
    dynamic: bool = True  # also with unknown sizes, which some of TensorFlow's gradients or shape functions cannot do
    run_ours: bool = True
    v1: bool = False  # TensorFlow's own needs control flow of version 1
    #: compared with differences, and why not with TensorFlow's gradient
    why_differences: str = ""


WRONG_ALIGNMENT = "TensorFlow's gradient of the V2 op aligns diagonals as V3 does by default, the op itself to the left"
NOT_CONJUGATED = "TensorFlow's gradient leaves out a conjugate: it is right for real matrices only"
OTHER_ORDER = "TensorFlow takes the gradient of BlockLSTM, whose gates stand in another order"
DEPRECATED = "TensorFlow refuses the op in graphs of this version"
NO_KERNEL = "TensorFlow has no CPU kernel for it"

CASES: dict[str, Case] = {}
STATIC = ("MatrixDiag", "MatrixSetDiag", "FractionalAvgPool", "ExtractVolumePatches")


def case(name: str, build: Callable[..., Any], *feeds: Any, **options: Any) -> None:
    assert name not in CASES
    options.setdefault("dynamic", not name.startswith(STATIC))
    CASES[name] = Case(build, tuple(np.asarray(f) for f in feeds), **options)


def measure(y: Tensor) -> Tensor | None:
    """A real tensor whose gradient by y is not uniform; None for what has no gradient."""
    kind = y.dtype.base.kind
    if kind == "c":
        part = "float64" if y.dtype.base.name == "complex128" else "float32"
        re, im = ops.real(y, Tout=part), ops.imag(y, Tout=part)
        return re * re + im * im * im + re * 3.0
    return y * y + y * 0.5 if kind == "f" else None


def floats(*shape: int, low: float = -1, high: float = 1, dtype: Any = np.float32) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(dtype)


# -- special functions ------------------------------------------------------------------------------------

for _op, _x in {
    "BesselI0": X, "BesselI1": X, "BesselI0e": X, "BesselI1e": X, "BesselK0": POSITIVE, "BesselK0e": POSITIVE,
    "BesselK1": POSITIVE, "BesselK1e": POSITIVE, "BesselJ0": X, "BesselJ1": X, "BesselY0": POSITIVE,
    "BesselY1": POSITIVE, "Dawsn": X, "Expint": POSITIVE, "FresnelCos": X, "FresnelSin": X, "Spence": POSITIVE,
}.items():  # fmt: skip
    case(_op, ops.function(_op), _x)
for _op in ("BesselI1", "BesselI1e", "BesselJ1"):
    case(f"{_op} at 0", ops.function(_op), np.zeros(3, np.float32))
case("Spence at 1", ops.spence, np.ones(2, np.float32))
case("Igammac", ops.igammac, POSITIVE, POSITIVE[:1] + 0.3)
case("Betainc", ops.betainc, POSITIVE + 1, POSITIVE + 2, np.float32([[0.1, 0.4, 0.8], [0.3, 0.5, 0.7]]))
case("Zeta", ops.zeta, POSITIVE + 2, POSITIVE[:1])
case("Polygamma", ops.polygamma, np.float32(2), POSITIVE)
case("NextAfter", ops.next_after, X, X[:1] + 1)
case("RandomGamma", lambda a: ops.random_gamma([4], a, seed=3, seed2=5), POSITIVE)
case("StatelessRandomGammaV2", lambda a: ops.stateless_random_gamma_v2([4, 2, 3], [3, 5], a), POSITIVE)
case(
    "StatelessRandomGammaV3",
    lambda a: ops.stateless_random_gamma_v3([2, 3], gm.constant([7], "uint64"), gm.constant([1, 2], "uint64"), 1, a),
    POSITIVE,
)  # fmt: skip

# -- Fourier transforms -----------------------------------------------------------------------------------

for _dtype in (np.complex64, np.complex128):
    _z = (floats(2, 4, 3, 5) + 1j * floats(2, 4, 3, 5)).astype(_dtype)
    for _op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"):
        case(f"{_op} {_dtype.__name__}", ops.function(_op), _z)
for _n in (4, 5):
    case(f"RFFT {_n}", lambda x, n=_n: ops.rfft(x, [n], Tcomplex=gm.complex64), floats(3, _n))
    case(f"RFFT2D {_n}", lambda x, n=_n: ops.rfft2d(x, [3, n], Tcomplex=gm.complex64), floats(2, 3, _n))
    _half = _n // 2 + 1
    _z = (floats(3, _half) + 1j * floats(3, _half)).astype(np.complex64)
    case(f"IRFFT {_n}", lambda z, n=_n: ops.irfft(z, [n], Treal=gm.float32), _z)
    case(f"IRFFT2D {_n}", lambda z, n=_n: ops.irfft2d(z, [3, n], Treal=gm.float32), _z[None])

# -- linear algebra ---------------------------------------------------------------------------------------


def spd(n: int, dtype: Any = np.float64) -> np.ndarray:
    a = floats(2, n, n, dtype=np.float64)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * floats(2, n, n, dtype=np.float64)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(dtype)


def general(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    a = floats(*shape, dtype=np.float64)
    return (a + 1j * floats(*shape, dtype=np.float64)).astype(dtype) if np.dtype(dtype).kind == "c" else a


def symmetric(x: Tensor) -> Tensor:
    from toolkit.client.gradients.linalg_grad import adjoint

    return x + adjoint(x)


for _dtype in (np.float64, np.complex128):
    _t = _dtype.__name__
    _why = NOT_CONJUGATED if _dtype is np.complex128 else ""
    case(f"Cholesky {_t}", lambda a: ops.cholesky(symmetric(a)), spd(3, _dtype))
    case(f"MatrixDeterminant {_t}", ops.matrix_determinant, general(2, 3, 3, dtype=_dtype))
    case(f"LogMatrixDeterminant {_t}", lambda a: ops.log_matrix_determinant(a)[1], spd(3, _dtype))
    for _turned in (False, True):
        case(
            f"MatrixSolve {_t} {_turned}",
            lambda a, b, t=_turned: ops.matrix_solve(a, b, adjoint=t),
            spd(3, _dtype),
            general(2, 3, 2, dtype=_dtype),
        )
        for _lower in (False, True):
            case(
                f"MatrixTriangularSolve {_t} {_turned} {_lower}",
                lambda a, b, t=_turned, w=_lower: ops.matrix_triangular_solve(a, b, adjoint=t, lower=w),
                spd(3, _dtype)[:1],
                general(2, 3, 2, dtype=_dtype),
            )
            case(
                f"BandedTriangularSolve {_t} {_turned} {_lower}",
                lambda a, b, t=_turned, w=_lower: ops.banded_triangular_solve(a, b, adjoint=t, lower=w),
                general(2, 2, 4, dtype=_dtype) + 2,
                general(2, 4, 3, dtype=_dtype),
            )
    for _m, _n in ((3, 3), (4, 2), (2, 4)):
        case(f"Qr {_t} {_m}x{_n}", lambda a: list(ops.qr(a)), general(2, _m, _n, dtype=_dtype), dynamic=False)
        case(
            f"MatrixSolveLs {_t} {_m}x{_n}",
            lambda a, b: ops.matrix_solve_ls(a, b, gm.constant(0.1, "float64")),
            general(2, _m, _n, dtype=_dtype),
            general(2, _m, 2, dtype=_dtype),
            dynamic=False,
            why_differences=_why,
        )
        case(
            f"Svd values {_t} {_m}x{_n}",
            lambda a: ops.svd(a, compute_uv=False)[0],
            general(2, _m, _n, dtype=_dtype),
        )
    case(
        f"SelfAdjointEigV2 {_t}",
        lambda a: list(ops.self_adjoint_eig_v2(symmetric(a))),
        spd(3, _dtype),
        run_ours=False,
    )
    case(
        f"SelfAdjointEigV2 values {_t}",
        lambda a: ops.self_adjoint_eig_v2(symmetric(a), compute_v=False)[0],
        spd(3, _dtype),
    )
    case(f"MatrixSquareRoot {_t}", ops.matrix_square_root, spd(3, _dtype), why_differences=_why)
    case(
        f"TridiagonalMatMul {_t}",
        ops.tridiagonal_mat_mul,
        *(general(2, 1, 4, dtype=_dtype) for _ in range(3)),
        general(2, 4, 3, dtype=_dtype),
    )
    for _pivot in (False, True):
        case(
            f"TridiagonalSolve {_t} {_pivot}",
            lambda d, b, p=_pivot: ops.tridiagonal_solve(d, b, partial_pivoting=p),
            general(2, 3, 4, dtype=_dtype) + np.array([[0], [3], [0]]),
            general(2, 4, 2, dtype=_dtype),
            why_differences=_why,
        )


def _svd(full: bool) -> Callable[[Tensor], list[Tensor]]:
    def build(a: Tensor) -> list[Tensor]:
        s, u, v = ops.svd(a, compute_uv=True, full_matrices=full)
        k = s.shape[-1]
        return [s, u[..., :k], v[..., :k]]

    return build


for _m, _n in ((3, 3), (5, 3), (2, 4)):
    # signs of singular vectors are free: TensorFlow's and ours may differ when run here
    case(f"Svd {_m}x{_n}", _svd(False), general(2, _m, _n), dynamic=False, run_ours=False)
    case(
        f"Svd complex {_m}x{_n}",
        _svd(False),
        general(_m, _n, dtype=np.complex128),
        dynamic=False,
        run_ours=False,
    )
case("Svd full", _svd(True), general(3, 4), dynamic=False, run_ours=False)
case("Eig", lambda a: list(ops.eig(a, Tout=gm.complex128)), general(2, 3, 3), run_ours=False)
case(
    "Eig complex",
    lambda a: list(ops.eig(a, Tout=gm.complex128)),
    general(3, 3, dtype=np.complex128),
    run_ours=False,
)
case(
    "Eig values",
    lambda a: ops.eig(a, compute_v=False, Tout=gm.complex128)[0],
    general(3, 3),
    run_ours=False,
)

for _ta in (False, True):
    for _tb in (False, True):
        _a = floats(*((3, 2) if _ta else (2, 3)))
        _b = floats(*((4, 3) if _tb else (3, 4)))
        case(
            f"SparseMatMul {_ta} {_tb}",
            lambda a, b, t=_ta, u=_tb: ops.sparse_mat_mul(a, b, transpose_a=t, transpose_b=u, b_is_sparse=True),
            _a,
            _b,
        )

# -- Einsum -----------------------------------------------------------------------------------------------

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "i": 3, "j": 2, "n": 2}
for _equation in (
    "ab->ba", "ab->a", "ab->", "aab->ab", "ii->i", "ii->", "iij->j", "a->aa", "abc->cb", "aib->b",
    "ab,bc->ac", "ab,bc->ca", "ab,ab->", "a,b->ab", "abc,cd->abd", "nab,nbc->nac", "nabc,ncd->nabd", "ab,ac->bc",
    "ab,cb->a", "abc,cb->b", "aab,bc->ac", "ii,ij->j", "ab,b->ab", "a,->a",
):  # fmt: skip
    _terms = _equation.partition("->")[0].split(",")
    case(
        f"Einsum {_equation}",
        lambda *xs, e=_equation: ops.einsum(list(xs), equation=e),
        *(floats(*(SIZES[label] for label in term), dtype=np.float64) for term in _terms),
    )
for _equation, _shapes in {
    "...ab->...ba": [(2, 3, 4)], "...a->a...": [(2, 3, 4)], "...ab->...b": [(5, 2, 3, 4)], "a...->...": [(2, 3, 4)],
    "...ab,...bc->...ac": [(2, 3, 4), (2, 4, 2)], "...ab,bc->...ac": [(5, 2, 3, 4), (4, 2)],
    "ab,...bc->...ac": [(3, 4), (5, 2, 4, 2)], "a...b,b...c->a...c": [(2, 5, 3), (3, 1, 4)],
    "...ab,...b->...a": [(3, 1, 2, 4), (2, 4)], "...i,...i->...": [(2, 1, 3), (4, 3)],
    "i...,j...->ij...": [(2, 1), (3, 4)],
}.items():  # fmt: skip
    case(
        f"Einsum {_equation} {_shapes}",
        lambda *xs, e=_equation: ops.einsum(list(xs), equation=e),
        *(floats(*shape, dtype=np.float64) for shape in _shapes),
    )
case(
    "Einsum complex",
    lambda x, y: ops.einsum([x, y], equation="ab,bc->ac"),
    general(2, 3, dtype=np.complex128),
    general(3, 2, dtype=np.complex128),
)

# -- diagonals --------------------------------------------------------------------------------------------

case("Diag", ops.diag, floats(2, 3))
case("DiagPart", ops.diag_part, floats(2, 3, 2, 3))
case("MatrixSetDiag", ops.matrix_set_diag, floats(2, 3, 4), floats(2, 3))
for _version in ("V2", "V3"):
    for _align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT") if _version == "V3" else ("",):
        _more = {"align": _align} if _align else {}
        _why = "" if _align else WRONG_ALIGNMENT
        case(
            f"MatrixDiag{_version} {_align}",
            lambda d, v=_version, m=_more: ops.function("MatrixDiag" + v)(d, [-1, 1], 4, 4, 0.0, **m),
            floats(2, 3, 4),
            why_differences=_why,
        )
        case(
            f"MatrixDiagPart{_version} {_align}",
            lambda x, v=_version, m=_more: ops.function("MatrixDiagPart" + v)(x, [-1, 1], 0.5, **m),
            floats(2, 4, 5),
        )
        case(
            f"MatrixSetDiag{_version} {_align}",
            lambda x, d, v=_version, m=_more: ops.function("MatrixSetDiag" + v)(x, d, [-1, 1], **m),
            floats(2, 4, 4),
            floats(2, 3, 4),
            why_differences=_why,
        )

# -- reductions and segments ------------------------------------------------------------------------------

for _keep in (False, True):
    case(f"EuclideanNorm {_keep}", lambda x, k=_keep: ops.euclidean_norm(x, [1], keep_dims=k), floats(2, 3, 4))
for _exclusive in (False, True):
    for _reverse in (False, True):
        case(
            f"CumulativeLogsumexp {_exclusive} {_reverse}",
            lambda x, e=_exclusive, r=_reverse: ops.exp(ops.cumulative_logsumexp(x, 1, exclusive=e, reverse=r)) * x,
            floats(2, 4),
        )
case("NthElement", lambda x: ops.nth_element(x, 2, reverse=True), np.float32([[3, 1, 1, 2], [5, 5, 5, 0]]))
case(
    "ApproxTopK",
    lambda x: ops.approx_top_k(x, k=2, reduction_dimension=1)[0],
    RNG.permutation(42).reshape(3, 7, 2).astype(np.float32),
    why_differences=NO_KERNEL,
)
_SEGMENTS = np.int32([0, 0, 2, 2, 2])
_ROWS = np.float32([[1, 2], [1, -3], [0, 4], [2, 0], [3, 0]])
for _op in ("SegmentMax", "SegmentMin", "SegmentProd", "SegmentSum", "SegmentMean"):
    case(_op, lambda x, o=_op: ops.function(o)(x, _SEGMENTS), _ROWS)
for _op in ("UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentSum"):
    case(_op, lambda x, o=_op: ops.function(o)(x, [1, 0, 1, -1, 0], 4), _ROWS + 1)
for _op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    case(
        f"{_op}WithNumSegments",
        lambda x, o=_op: ops.function(o + "WithNumSegments")(x, [0, 3, 3, 1], [0, 0, 2, 2], 4),
        _ROWS,
    )

# -- moving elements --------------------------------------------------------------------------------------

case("Roll", lambda x: ops.roll(x, [1, -1], [0, 1]), floats(3, 4))
case("Reverse", lambda x: ops.function("Reverse")(x, [True, False]), floats(3, 4))
case("TensorScatterSub", lambda x, u: ops.tensor_scatter_sub(x, [[0], [2], [0]], u), floats(4, 2), floats(3, 2))
for _op in ("TensorScatterMax", "TensorScatterMin"):
    case(_op, lambda x, u, o=_op: ops.function(o)(x, [[0], [2], [0]], u), np.float32([1, 2, 3]), np.float32([1, 4, 1]))
case(
    "ScatterNdNonAliasingAdd",
    lambda x, u: ops.scatter_nd_non_aliasing_add(x, [[0], [2]], u),
    floats(4, 2),
    floats(2, 2),
)
case(
    "TensorStridedSliceUpdate",
    lambda x, v: ops.tensor_strided_slice_update(x, [1], [4], [2], v),
    floats(5, 2),
    floats(2, 2),
)

# -- neural networks --------------------------------------------------------------------------------------

_IMAGE, _VOLUME = floats(2, 6, 6, 3), floats(1, 4, 5, 4, 2)
_K2, _S2 = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1]}, {"padding": "SAME"}
_K3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def second(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The gradient of a gradient: y's by its first argument, weighted, as the tensor to go through."""

    def made(x: Tensor, *rest: Tensor) -> Tensor:
        y = build(x, *rest)
        return gm.grad(y * y * y, x)[0]  # type: ignore[return-value]

    return made


case("AvgPool3DGrad", second(lambda x: ops.avg_pool3d(x, **_K3)), _VOLUME)
case("MaxPool3DGrad", second(lambda x: ops.max_pool3d(x, **_K3)), _VOLUME)
case("MaxPoolGrad", second(lambda x: ops.max_pool(x, **_K2, **_S2)), _IMAGE)
case("MaxPoolGradV2", second(lambda x: ops.max_pool_v2(x, [1, 2, 2, 1], [1, 2, 2, 1], **_S2)), _IMAGE)
case("MaxPoolGradGrad", second(second(lambda x: ops.max_pool(x, **_K2, **_S2))), _IMAGE)
case("MaxPool3DGradGrad", second(second(lambda x: ops.max_pool3d(x, **_K3))), _VOLUME)
case(
    "Conv3DBackprop",
    second(lambda x, w: ops.conv3d(x, w, strides=[1, 1, 1, 1, 1], padding="SAME")),
    _VOLUME,
    floats(2, 2, 2, 2, 2),
)
case("SeluGrad", second(ops.selu), X)
case(
    "Dilation2D",
    lambda x, w: ops.dilation2d(x, w, strides=[1, 1, 2, 1], rates=[1, 2, 1, 1], padding="SAME"),
    _IMAGE,
    floats(2, 2, 3),
)
for _op in ("FractionalAvgPool", "FractionalMaxPool"):
    for _overlap in (False, True):
        case(
            f"{_op} {_overlap}",
            lambda x, o=_op, v=_overlap: ops.function(o)(
                x, pooling_ratio=[1.0, 1.5, 1.4, 1.0], deterministic=True, seed=3, seed2=4, overlapping=v
            )[0],
            _IMAGE,
        )


def _old_batch_norm(x: Tensor, m: Tensor, v: Tensor, b: Tensor, g: Tensor) -> Any:
    """Only graphs of before version 9 have it."""
    gm.get_default_graph().core.versions.producer = 8
    return ops.batch_norm_with_global_normalization(
        x, m, v, b, g, variance_epsilon=0.01, scale_after_normalization=True
    )


case(
    "BatchNormWithGlobalNormalization",
    _old_batch_norm,
    floats(1, 2, 2, 3),
    floats(3),
    floats(3, low=1, high=2),
    floats(3),
    floats(3),
    why_differences=DEPRECATED,
)
for _training in (False, True):
    for _op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        case(
            f"{_op}Grad {_training}",
            second(
                lambda x, s, b, m, v, o=_op, t=_training: ops.function(o)(x, s, b, m, v, is_training=t, epsilon=0.01)[0]
            )
            if not _training
            else second(lambda x, s, b, o=_op: ops.function(o)(x, s, b, [], [], is_training=True, epsilon=0.01)[0]),
            _IMAGE,
            floats(3),
            floats(3),
            *(() if _training else (floats(3), floats(3, low=0.5))),
        )
case(
    "CTCLoss",
    lambda x: ops.ctc_loss(x, gm.constant([[0, 0], [0, 1], [1, 0]], "int64"), [1, 2, 0], [5, 4])[0],
    floats(5, 2, 4),
)
_LSTM = (floats(3, 2, 4), floats(2, 3), floats(2, 3), floats(7, 12), floats(3), floats(3), floats(3), floats(12))
for _op in ("BlockLSTM", "BlockLSTMV2"):
    for _peephole in (False, True):
        case(
            f"{_op} {_peephole}",
            lambda x, c, h, w, wi, wf, wo, b, o=_op, p=_peephole: [
                ops.function(o)(gm.constant(3, "int64"), x, c, h, w, wi, wf, wo, b, use_peephole=p)[i] for i in (1, 6)
            ],
            *_LSTM,
            why_differences=OTHER_ORDER if _op == "BlockLSTMV2" else "",
        )

# -- quantization -----------------------------------------------------------------------------------------

case("FakeQuantWithMinMaxArgs", lambda x: ops.fake_quant_with_min_max_args(x, min=-0.5, max=0.6), floats(4, 3))
case("FakeQuantWithMinMaxVars", ops.fake_quant_with_min_max_vars, floats(4, 3), np.float32(-0.5), np.float32(0.6))
case(
    "FakeQuantWithMinMaxVarsPerChannel",
    ops.fake_quant_with_min_max_vars_per_channel,
    floats(4, 3),
    np.float32([-0.5, -0.3, -0.9]),
    np.float32([0.5, 0.3, 0.9]),
)
case("QuantizeAndDequantizeV2", lambda x: ops.quantize_and_dequantize_v2(x, -0.5, 0.5, range_given=True), floats(4, 3))
case(
    "QuantizeAndDequantizeV3", lambda x: ops.quantize_and_dequantize_v3(x, -0.5, 0.5, 8, range_given=True), floats(4, 3)
)
case(
    "QuantizeAndDequantizeV4",
    lambda x, a, b: ops.quantize_and_dequantize_v4(x, a, b, range_given=True),
    floats(4, 3),
    np.float32(-0.5),
    np.float32(0.5),
)

# -- images -----------------------------------------------------------------------------------------------

case(
    "CropAndResize",
    lambda x, b: ops.crop_and_resize(x, b, [0, 1, 0], [3, 4]),
    _IMAGE,
    np.float32([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, 0.3, 0.2, 1.2]]),
)
case(
    "ScaleAndTranslate",
    lambda x: ops.scale_and_translate(x, [4, 9], [0.7, 1.4], [0.3, -0.2], kernel_type="triangle"),
    _IMAGE,
)
_TURN = np.float32([[0.9, 0.1, 0.2, -0.1, 0.8, 0.3, 0.01, 0.02]])
for _how in ("NEAREST", "BILINEAR"):
    case(
        f"ImageProjectiveTransformV2 {_how}",
        lambda x, h=_how: ops.image_projective_transform_v2(x, _TURN, [5, 4], interpolation=h),
        _IMAGE,
    )
    case(
        f"ImageProjectiveTransformV3 {_how}",
        lambda x, h=_how: ops.image_projective_transform_v3(x, _TURN, [5, 4], 0.5, interpolation=h),
        _IMAGE,
    )
case("RGBToHSV", ops.rgb_to_hsv, floats(40, 3, low=0.05))
for _padding in ("SAME", "VALID"):
    case(
        f"ExtractImagePatches {_padding}",
        lambda x, p=_padding: ops.extract_image_patches(
            x, ksizes=[1, 3, 2, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=p
        ),
        _IMAGE,
    )
    case(
        f"ExtractVolumePatches {_padding}",
        lambda x, p=_padding: ops.extract_volume_patches(x, ksizes=[1, 2, 2, 3, 1], strides=[1, 1, 2, 1, 1], padding=p),
        _VOLUME,
    )

# -- sparse and ragged ------------------------------------------------------------------------------------

_I = np.int64([[0, 1], [1, 0], [1, 2]])
_J = np.int64([[0, 1], [1, 1]])
_V, _W = floats(3), floats(2)
_SHAPE = np.int64([2, 3])
case("SparseReorder", lambda v: ops.sparse_reorder(_I[::-1].copy(), v, _SHAPE)[1], _V)
case("SparseAdd", lambda v, w: ops.sparse_add(_I, v, _SHAPE, _J, w, _SHAPE, 0.0)[1], _V, _W)
case("SparseTensorDenseAdd", lambda v, d: ops.sparse_tensor_dense_add(_I, v, _SHAPE, d), _V, floats(2, 3))
for _axes in ([0], [-1], [0, 1]):
    for _keep in (False, True):
        case(
            f"SparseReduceSum {_axes} {_keep}",
            lambda v, a=_axes, k=_keep: ops.sparse_reduce_sum(_I, v, _SHAPE, a, keep_dims=k),
            _V,
        )
case(
    "SparseSlice",
    lambda v: ops.sparse_slice(_I, v, _SHAPE, gm.constant([0, 1], "int64"), gm.constant([2, 2], "int64"))[1],
    _V,
)
for _dtype in (np.float32, np.complex64):
    for _aa in (False, True):
        for _ab in (False, True):
            _b = (
                general(*((4, 2) if _ab else (2, 4)), dtype=_dtype)
                if _aa
                else general(*((4, 3) if _ab else (3, 4)), dtype=_dtype)
            )
            case(
                f"SparseTensorDenseMatMul {_dtype.__name__} {_aa} {_ab}",
                lambda v, b, a=_aa, c=_ab: ops.sparse_tensor_dense_mat_mul(_I, v, _SHAPE, b, adjoint_a=a, adjoint_b=c),
                general(3, dtype=_dtype).astype(_dtype),
                _b.astype(_dtype),
            )
for _op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
    for _dense in (floats(2, 3, low=0.5), floats(1, 3, low=0.5), floats(3, low=0.5)):
        case(f"{_op} {_dense.shape}", lambda v, o=_op, d=_dense: ops.function(o)(_I, v, _SHAPE, d), _V)
case("SparseSoftmax", lambda v: ops.sparse_softmax(_I, v, _SHAPE), _V)
case(
    "SparseFillEmptyRows",
    lambda v, d: ops.sparse_fill_empty_rows(_I, v, gm.constant([4, 3], "int64"), d)[1],
    _V,
    np.float32(0.7),
)
case("SparseToDense", lambda v, d: ops.sparse_to_dense(_I, _SHAPE, v, d), _V, np.float32(0.7))
_SPLITS = np.int64([0, 2, 2, 5])
case("RaggedTensorToSparse", lambda v: ops.ragged_tensor_to_sparse([_SPLITS], v)[1], floats(5))
case(
    "RaggedTensorToTensor",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 2], "int64"), v, d, [_SPLITS], row_partition_types=["ROW_SPLITS"]
    ),
    floats(5),
    np.float32(0.3),
)
case(
    "RaggedTensorToTensor rows",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 4, 2], "int64"),
        v,
        d,
        [gm.constant(3, "int64"), gm.constant([0, 0, 2, 2, 2], "int64")],
        row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
    ),
    floats(5, 2),
    floats(2),
)
case("RaggedGather", lambda v: ops.ragged_gather([_SPLITS], v, [2, 0, 2], OUTPUT_RAGGED_RANK=1)[-1], floats(5, 2))
case(
    "RaggedFillEmptyRows",
    lambda v, d: ops.ragged_fill_empty_rows(gm.constant([0, 0, 2], "int64"), v, gm.constant(4, "int64"), d)[1],
    floats(3),
    np.float32(0.5),
)


def _through_variant(v: Tensor) -> Tensor:
    variant = ops.ragged_tensor_to_variant([_SPLITS], v, batched_input=True)
    return ops.ragged_tensor_from_variant(
        variant, input_ragged_rank=0, output_ragged_rank=1, Tvalues=gm.float32, Tsplits=gm.int64
    )[-1]


case("RaggedTensorToVariant", _through_variant, floats(5))
case(
    "Optional",
    lambda x, y: [
        t * t
        for t in ops.optional_get_value(
            ops.optional_from_value([x, y]), output_types=[gm.float32, gm.float32], output_shapes=[None, None]
        )
    ],
    X,
    X + 1,
)

# -- lists and arrays -------------------------------------------------------------------------------------


def a_list(x: Tensor, y: Tensor) -> Tensor:
    made = ops.empty_tensor_list([2], 5, element_dtype=gm.float32)
    return ops.tensor_list_push_back(ops.tensor_list_push_back(made, x), y)


def _item(handle: Tensor, index: int) -> Tensor:
    return ops.tensor_list_get_item(handle, index, [2], element_dtype=gm.float32)


def _stacked(handle: Tensor) -> Tensor:
    return ops.tensor_list_stack(handle, [2], element_dtype=gm.float32)


_A, _B, _M = floats(2), floats(2), floats(3, 2)
case("TensorListPushBack", lambda x, y: _stacked(a_list(x, y)), _A, _B)


def _popped(x: Tensor, y: Tensor) -> list[Tensor]:
    rest, last = ops.tensor_list_pop_back(a_list(x * y, y), [2], element_dtype=gm.float32)
    return [_stacked(rest), last]


case("TensorListPopBack", _popped, _A, _B)
case("TensorListFromTensor", lambda m: _stacked(ops.tensor_list_from_tensor(m, [2])), _M)
case("TensorListGetItem", lambda m: _item(ops.tensor_list_from_tensor(m, [2]), 1), _M)
case("TensorListGetItem twice", lambda m: _item(t := ops.tensor_list_from_tensor(m, [2]), 1) * _item(t, 0), _M)
case(
    "TensorListSetItem",
    lambda m, x: _stacked(ops.tensor_list_set_item(ops.tensor_list_from_tensor(m, [2]), 1, x)),
    _M,
    _A,
)
case("TensorListResize", lambda m: _item(ops.tensor_list_resize(ops.tensor_list_from_tensor(m, [2]), 2), 1), _M)
case(
    "TensorListGather",
    lambda m: ops.tensor_list_gather(ops.tensor_list_from_tensor(m, [2]), [2, 0], [2], element_dtype=gm.float32),
    _M,
)
case("TensorListScatter", lambda m: _stacked(ops.tensor_list_scatter(m, [1, 0, 2], [2])), _M)
case("TensorListScatterV2", lambda m: _stacked(ops.tensor_list_scatter_v2(m, [1, 0, 2], [2], 3)), _M)
case(
    "TensorListScatterIntoExistingList",
    lambda m, n: _stacked(ops.tensor_list_scatter_into_existing_list(ops.tensor_list_from_tensor(m, [2]), n, [2, 0])),
    _M,
    floats(2, 2),
)
case(
    "TensorListConcat",
    lambda m: ops.tensor_list_concat_v2(
        ops.tensor_list_split(m, [-1, 2], gm.constant([1, 2], "int64")),
        [-1, 2],
        gm.constant([], "int64"),
        element_dtype=gm.float32,
    )[0],
    _M,
)


def _array(size: int) -> Any:
    return ops.tensor_array_v3(size, dtype=gm.float32, clear_after_read=False)


def _read_written(x: Tensor, y: Tensor) -> Tensor:
    handle, flow = _array(2)
    flow = ops.tensor_array_write_v3(handle, 1, y * x, ops.tensor_array_write_v3(handle, 0, x, flow))
    first, again = (ops.tensor_array_read_v3(handle, 0, flow, dtype=gm.float32) for _ in range(2))
    return first * ops.tensor_array_read_v3(handle, 1, flow, dtype=gm.float32) + again


def _gathered(m: Tensor) -> Tensor:
    handle, flow = _array(3)
    flow = ops.tensor_array_scatter_v3(handle, [2, 0, 1], m, flow)
    return ops.tensor_array_gather_v3(handle, [1, 2], flow, dtype=gm.float32)


def _concatenated(m: Tensor) -> Tensor:
    handle, flow = _array(2)
    flow = ops.tensor_array_split_v3(handle, m, gm.constant([1, 2], "int64"), flow)
    return ops.tensor_array_concat_v3(handle, flow, dtype=gm.float32)[0]


case("TensorArrayRead", _read_written, _A, _B, v1=True)
case("TensorArrayGather", _gathered, _M, v1=True)
case("TensorArrayConcat", _concatenated, _M, v1=True)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("name", CASES)
def test_gradient(tf: ModuleType, name: str, known: bool) -> None:
    row = CASES[name]
    if not known and not row.dynamic:
        known = True

    def build() -> tuple[list[Tensor], list[Tensor]]:
        xs = [
            gm.placeholder(value.dtype, value.shape if known else [None] * value.ndim, name=f"x{i}")
            for i, value in enumerate(row.feeds)
        ]
        made = row.build(*xs)
        ys = [m for y in (made if isinstance(made, list | tuple) else [made]) if (m := measure(y)) is not None]
        return ys, xs

    feeds = {f"x{i}": value for i, value in enumerate(row.feeds)}
    if row.why_differences:
        exact = row.feeds[0].dtype.itemsize >= 8
        found, wanted = numeric(build, feeds, 1e-6 if exact else 1e-2)
        for mine, other in zip(found, wanted, strict=True):
            # central differences of float32 lose half of the digits, and more by subtraction
            np.testing.assert_allclose(mine, other, rtol=1e-6 if exact else 5e-3, atol=1e-7 if exact else 5e-3)
        return
    with tf1_semantics(tf) if row.v1 else nullcontext():
        compare(tf, build, feeds, run_ours=row.run_ours)


# -- the registry -----------------------------------------------------------------------------------------

#: differentiable for TensorFlow, and why not here
NOT_HERE = {
    "no kernel on a CPU, or only for devices and clusters that are not here": """
        AllToAll CollectivePermute CopyToMesh CopyToMeshGrad CrossReplicaSum CudnnRNN CudnnRNNV2 CudnnRNNV3
        NcclAllReduce NcclBroadcast NcclReduce Relayout RelayoutLike TPUEmbeddingActivations XlaClusterOutput XlaEinsum
        XlaSharding XlaSpmdFullToShardShape XlaSpmdShardToFullShape""",
    "Python's or the debugger's own": """
        EagerPyFunc _EagerConst DebugGradientIdentity DebugGradientRefIdentity DebugIdentityV2
        CompositeTensorVariantFromComponents CompositeTensorVariantToComponents""",
    "sparse matrices as variants": """
        CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor DenseToCSRSparseMatrix SparseMatrixAdd SparseMatrixMatMul
        SparseMatrixMul SparseMatrixSoftmax SparseMatrixSparseMatMul SparseMatrixTranspose
        SparseTensorToCSRSparseMatrix""",
    "rare": "IsotonicRegression StatelessParameterizedTruncatedNormal",
    "its function only returns None: here it has none": """
        ArgMax ArgMin Ceil Floor FloorDiv LoopCond Rint Round TruncateDiv""",
}
#: of no registered op, or for TPUs
NO_OPS = (
    "Queue ScatterNdDiv ScatterNdMul StatelessRandomShuffle TPUReplicatedInput XlaVariadicReduce AudioMicrofrontend"
)


def test_every_gradient_of_tensorflow_is_here_or_listed(tf: ModuleType) -> None:
    import importlib
    import pkgutil

    from tensorflow.python import ops as package
    from tensorflow.python.framework import ops as framework

    from toolkit.client.gradients import registry

    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_grad") or module.name in ("while_v2", "cond_v2"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    theirs = framework.gradient_registry
    missing: set[str] = set()
    for name in theirs.list():
        kind = "none" if theirs.lookup(name) is None else "function"
        if registry.kind_of(name) != kind:
            missing.add(name)
    listed = {name for names in (*NOT_HERE.values(), NO_OPS) for name in names.split()}
    # tests beside this one register gradients of their own, and so does whoever calls a tf.custom_gradient
    unknown = {name for name in missing - listed if not name.startswith(("Test", "CustomGradient-"))}
    assert unknown == set(), "TensorFlow has gradients that are neither here nor in the lists above"
    assert listed - set(theirs.list()) == set() and listed <= missing, "listed, but here, or not TensorFlow's"
